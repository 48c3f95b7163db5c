/* quipu tail: a table's changes as they happen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/change.h"
#include "cli/interrupt.h"
#include "cli/print.h"

#define WAIT_MS 250  /* how soon Ctrl-C is noticed */
#define IDLE_MS 1000 /* --no-follow: nothing more came for so long */

/* ---- a line ---- */

static const char *colour_of(struct slice event)
{
    if (slice_equal(event, SLICE("INSERT"))) return "\033[32m";
    return slice_equal(event, SLICE("REMOVE")) ? "\033[31m" : "\033[33m";
}

/* The local time of a change: "14:03:27 ". */
static void put_time(struct buf *out, struct slice seconds)
{
    char text[32];
    struct tm parts;
    if (!seconds.len) return;
    time_t time = (time_t)strtoll(seconds.data, NULL, 10);
    if (!localtime_r(&time, &parts) || !strftime(text, sizeof text, "%H:%M:%S ", &parts)) return;
    buf_slice(out, slice_of(text));
}

static bool put_line(struct buf *out, struct arena *arena, const struct change *change)
{
    bool is_coloured = colour_is_wanted();
    put_time(out, change->time);
    if (is_coloured) buf_slice(out, slice_of(colour_of(change->event)));
    size_t start = out->len;
    bool fine = change_put_words(out, arena, change);
    if (!is_coloured) return fine;
    /* Only the first word is coloured. */
    struct slice words = arena_copy(arena, (struct slice){out->data + start, out->len - start});
    size_t event_len = change->event.len < words.len ? change->event.len : words.len;
    out->len = start + event_len;
    buf_text(out, "\033[0m");
    buf_slice(out, slice_from(words, event_len));
    return fine;
}

static bool print_record(enum form form, struct slice json)
{
    struct arena arena = {0};
    struct buf line = {0};
    struct change change;
    const char *fault;
    const struct node *record = node_parse(&arena, json, &fault);
    bool fine = record && change_read(record, &change);
    if (fine && form == FORM_TABLE)
        fine = put_line(&line, &arena, &change);
    else if (fine && form == FORM_PLAIN)
        fine = change_put_plain(&line, &change);
    else if (fine)
        buf_slice(&line, json);
    if (fine)
        printf("%.*s\n", (int)line.len, line.data);
    else
        complain("this is no record of a stream: %.*s", (int)(json.len < 200 ? json.len : 200), json.data);
    fflush(stdout);
    buf_free(&line);
    arena_free(&arena);
    return fine && !ferror(stdout);
}

/* ---- following ---- */

struct tail {
    struct place place;
    struct quipu_stream *stream;
    enum form form;
    unsigned long long limit;
    bool follows;
};

/* A failure that passes is waited for; others end it. */
static bool goes_on_after(const struct tail *tail, unsigned *in_vain)
{
    const struct quipu_reply *reply = quipu_stream_reply(tail->stream);
    if (error_may_pass(reply->error) && *in_vain < 20) {
        pause_before_retry((*in_vain)++);
        return true;
    }
    place_complain(&tail->place, NULL, reply->error, reply->message);
    return false;
}

static int follow(const struct tail *tail)
{
    struct quipu_record record;
    unsigned in_vain = 0;
    for (unsigned long long count = 0; !is_interrupted() && (!tail->limit || count < tail->limit);) {
        switch (quipu_stream_next(tail->stream, tail->follows ? WAIT_MS : IDLE_MS, &record)) {
        case QUIPU_FOUND:
            count++;
            in_vain = 0;
            if (!print_record(tail->form, (struct slice){record.json, record.json_len})) return EXIT_FAULT;
            break;
        case QUIPU_ENDED:
            if (errors_are_terminal()) fprintf(stderr, "The stream was switched off.\n");
            return EXIT_FINE;
        case QUIPU_NONE:
            if (!tail->follows) return EXIT_FINE;
            break;
        default:
            if (!goes_on_after(tail, &in_vain)) return EXIT_FAULT;
        }
    }
    return EXIT_FINE;
}

static bool open_stream(struct tail *tail, const char *table, enum quipu_stream_start start)
{
    char error[QUIPU_ERROR_BYTES];
    struct arena arena = {0};
    struct schema schema;
    bool fine = schema_load(&tail->place, &arena, table, NULL, &schema);
    if (fine && !node_text(schema.description, "LatestStreamArn").len) {
        complain("the table '%s' has no stream; 'quipu table set %s --stream new-and-old' gives it one",
                 table, table);
        fine = false;
    }
    if (fine) tail->stream = quipu_stream_open(tail->place.db, table, start, error, sizeof error);
    if (fine && !tail->stream) complain("%s", error);
    arena_free(&arena);
    return tail->stream != NULL;
}

static int run(const struct arguments *arguments)
{
    const char *from = argument_text(arguments, "from");
    struct tail tail = {.form = form_chosen(arguments), .follows = !argument_given(arguments, "no-follow")};
    bool from_start = from && strcmp(from, "start") == 0;
    if (from && !from_start && strcmp(from, "now") != 0)
        return complain_of_usage(arguments, "--from is start or now, not '%s'", from);
    if (!argument_number(arguments, "limit", 1, 1000000000000ull, &tail.limit)) return EXIT_USAGE;
    if (!place_open(&tail.place, arguments, PLACE_READ)) return EXIT_FAULT;
    interrupts_catch();
    int status = EXIT_FAULT;
    if (open_stream(&tail, argument_word(arguments, 0), from_start ? QUIPU_OLDEST : QUIPU_LATEST)) {
        if (errors_are_terminal() && tail.follows)
            fprintf(stderr, "Following %s on %s; Ctrl-C ends it.\n", argument_word(arguments, 0),
                    tail.place.where);
        status = follow(&tail);
    }
    quipu_stream_close(tail.stream);
    place_close(&tail.place);
    return status;
}

static const struct flag flags[] = {
    {"from", "WHEN",
     "start: begin with the oldest change that is kept (24 hours);\nnow: with the next one (default)"},
    {"limit", "NUMBER", "stop behind so many changes"},
    {"no-follow", NULL, "stop when there are no more changes"},
    FORM_FLAGS,
};

const struct command command_tail = {
    .name = "tail",
    .summary = "follow the changes of a table",
    .usage = "TABLE [flags]",
    .about = "Prints the changes of a table as they happen, until Ctrl-C: a line of words on a terminal, "
             "otherwise a line\n"
             "of JSON with \"event\", \"time\", \"sequence\", \"keys\" and, as far as the stream carries "
             "them, \"old\" and\n"
             "\"new\"; with --dynamodb-json the records as GetRecords answers them. Changes of one item come "
             "in their\n"
             "order. The table must have a stream ('quipu table set --help').",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .examples = "  quipu tail Music\n"
                "  quipu tail Orders --from start | jq 'select(.event == \"REMOVE\")'",
    .works_on_data = true,
    .words_min = 1,
    .words_max = 1,
    .run = run};
