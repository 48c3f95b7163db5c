/* quipu copy: tables from one place to another, also while they are used. */
#include "cli/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/print.h"
#include "cli/interrupt.h"
#include "cli/layout.h"
#include "cli/print.h"
#include "cli/sweep.h"

#define IDLE_US 3000000 /* --until-idle: no change for so long */
#define LOOK_MS 100
#define NOTE_US 500000 /* between two lines about what is being followed, on a terminal */

/* ---- all tables ---- */

struct tables {
    struct copied *list;
    size_t count; /* begun, to be ended */
};

static unsigned long long applied_to_all(const struct tables *tables)
{
    unsigned long long applied = 0;
    for (size_t i = 0; i < tables->count; i++) applied += atomic_load(&tables->list[i].applied);
    return applied;
}

static bool any_has_failed(const struct tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        if (atomic_load(&tables->list[i].has_failed)) return true;
    return false;
}

/* When the last change came, of those since then. */
static int64_t last_change_us(const struct tables *tables, int64_t since_us)
{
    int64_t last = since_us;
    for (size_t i = 0; i < tables->count; i++) {
        int64_t changed = atomic_load(&tables->list[i].changed_us);
        if (changed > last) last = changed;
    }
    return last;
}

static bool copy_tables(struct copy *copy, struct tables *tables, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct copied *copied = &tables->list[tables->count++];
        if (!copied_run(copied, copy, names[i])) return false;
        if (any_has_failed(tables)) return false;
    }
    return true;
}

/* ---- following ---- */

static void note(const struct tables *tables, int64_t *noted_us)
{
    struct buf line = {0};
    if (!errors_are_terminal() || monotonic_us() - *noted_us < NOTE_US) return;
    *noted_us = monotonic_us();
    put_grouped(&line, applied_to_all(tables));
    fprintf(stderr, "\r\033[KFollowing: %.*s changes applied. Ctrl-C switches over.", (int)line.len,
            line.data);
    buf_free(&line);
}

/* Until somebody says so, nothing more happens, or something fails. */
static bool wait_for_switch(const struct tables *tables, bool until_idle)
{
    int64_t noted_us = 0, began_us = monotonic_us();
    while (!is_interrupted() && !any_has_failed(tables)) {
        if (until_idle && monotonic_us() - last_change_us(tables, began_us) > IDLE_US) break;
        note(tables, &noted_us);
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    }
    return !any_has_failed(tables);
}

static bool follow(struct copy *copy, const struct tables *tables, bool until_idle)
{
    if (!copy->follows) return true;
    if (!errors_are_terminal()) fprintf(stderr, "Following; SIGINT switches over.\n");
    bool fine = wait_for_switch(tables, until_idle);
    if (fine && is_interrupted())
        fprintf(stderr,
                "%sSwitching over: what is on its way is applied still; Ctrl-C again ends it at once.\n",
                errors_are_terminal() ? "\r\033[K" : "");
    return fine;
}

/* The followers end by themselves when nothing more comes, or at once when all is lost. */
static bool finish(struct copy *copy, struct tables *tables, bool fine)
{
    atomic_store(fine ? &copy->is_switching : &copy->is_given_up, true);
    unsigned long long applied = 0;
    for (size_t i = 0; i < tables->count; i++) {
        struct copied *copied = &tables->list[i];
        fine = copied_end(copied) && fine;
        applied += atomic_load(&copied->applied);
    }
    fine = sink_drain(copy->sink) && fine;
    if (!fine)
        complain("the copy is not complete; it may be run again");
    else if (copy->follows)
        fprintf(stderr, "%s followed. The target is up to date.\n", counted(applied, "change").text);
    return fine;
}

static bool copy_all(struct copy *copy, const struct arguments *arguments)
{
    struct arena arena = {0};
    size_t count = argument_words(arguments) - 2;
    const char **names = count ? arena_array(&arena, const char *, count)
                               : table_names(&copy->source, &arena, &count);
    for (size_t i = 0; i + 2 < argument_words(arguments); i++) names[i] = argument_word(arguments, i + 2);
    if (!names) return false;
    struct tables tables = {.list = must_zero(count + 1, sizeof *tables.list)};
    copy->sink = sink_new(&copy->target, SINK_LANES);
    bool fine = copy_tables(copy, &tables, names, count) &&
                follow(copy, &tables, argument_given(arguments, "until-idle"));
    fine = finish(copy, &tables, fine);
    sink_free(copy->sink);
    free(tables.list);
    arena_free(&arena);
    return fine;
}

static int run(const struct arguments *arguments)
{
    const char *from = argument_word(arguments, 0), *to = argument_word(arguments, 1);
    struct copy copy = {.deletes_extra = argument_given(arguments, "delete")};
    unsigned long long segments = SWEEP_SEGMENTS;
    if (strcmp(from, to) == 0) return complain_of_usage(arguments, "source and target are the same");
    if (argument_given(arguments, "until-idle") && argument_given(arguments, "no-follow"))
        return complain_of_usage(arguments, "--until-idle and --no-follow exclude each other");
    if (!argument_number(arguments, "segments", 1, 256, &segments)) return EXIT_USAGE;
    copy.segments = (unsigned)segments;
    if (!place_open_at(&copy.source, from, arguments, PLACE_READ)) return EXIT_FAULT;
    /* A folder is ours alone while it is open: nobody can change it. */
    copy.follows = copy.source.is_url && !argument_given(arguments, "no-follow");
    int status = EXIT_FAULT;
    if (place_open_at(&copy.target, to, arguments, PLACE_MAKE)) {
        interrupts_catch();
        if (copy_all(&copy, arguments)) status = EXIT_FINE;
        place_close(&copy.target);
    }
    place_close(&copy.source);
    return status;
}

static const struct flag flags[] = {
    {"until-idle", NULL, "switch over by itself when nothing was changed for 3 seconds"},
    {"no-follow", NULL, "copy what is there and end; for a source that nobody writes to"},
    {"delete", NULL, "delete from the target what the source does not have"},
    {"segments", "NUMBER", "read so many parts of a table at the same time (default 4)"},
    {"region", "NAME", "region to sign for (default: that of the URL, else $AWS_REGION)"},
    {"profile", "NAME", "profile of ~/.aws/credentials (default: $AWS_PROFILE)"},
};

const struct command command_copy = {
    .name = "copy",
    .summary = "copy tables to another place and follow their changes",
    .usage = "SOURCE TARGET [TABLE...] [flags]",
    .about = "Copies tables, or all of them, from one place to another; each is a folder or the URL of any "
             "DynamoDB\n"
             "endpoint. Keys, indexes, capacity, stream, TTL and tags go first, then the items. Meanwhile "
             "the source may be\n"
             "written to: its stream is read from before the first item was, and every change is applied in "
             "order, until\n"
             "Ctrl-C switches over: stop the writers, press it, and when the copy has ended nothing is "
             "missing. A source\n"
             "without a stream gets one for the time of the copy. A folder belongs to one process, so there "
             "is nothing to\n"
             "follow, and the copy ends by itself.\n"
             "\n"
             "It may be run again after any failure, or to bring a target up to date: what is there is "
             "replaced, and\n"
             "nothing but --delete takes anything away.",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .examples = "  quipu copy ./data http://127.0.0.1:8000\n"
                "  quipu copy https://dynamodb.eu-central-1.amazonaws.com ./data Music Users\n"
                "  quipu copy http://127.0.0.1:8000 http://10.0.0.7:8000 --until-idle --delete",
    .words_min = 2,
    .words_max = WORDS_MANY,
    .run = run};
