/* quipu once run: a command that is run once for a key; all others that ask get what it printed. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "cli/hold.h"
#include "cli/listing.h"
#include "cli/special.h"

#define FOR_USUAL_MS  30000
#define FOR_MOST_MS   (24LL * 3600 * 1000)
#define KEEP_MOST_MS  (366LL * 24 * 3600 * 1000)
#define WAIT_PIECE_MS 60000 /* what one call may wait at most */
#define FOR_EVER_MS   (100LL * 365 * 86400 * 1000)

struct once {
    const struct arguments *arguments;
    struct place place;
    const char *name, *key, *owner;
    int64_t for_ms, keep_ms, wait_ms;
    unsigned long long fence;
    int64_t begun_us; /* when it was asked for */
    char **words;
};

/* What it was that somebody has done: as `command` prints it. */
static void result_print(const struct node *result)
{
    if (!result || result->kind == JSON_NULL) return;
    struct slice text = result->kind == JSON_STRING ? result->text : result->source;
    fwrite(text.data, 1, text.len, stdout);
    putchar('\n');
}

/* One call; true when it has to be repeated because its wait was shorter than ours. *status is EXIT_FINE, with a fence
 * where the command is to be run. */
static bool once_ask(struct once *once, int64_t left_ms, int *status)
{
    struct arena arena = {0};
    struct inquiry inquiry = {.method = "POST"};
    int64_t asked_us = monotonic_us();
    inquiry_path(&inquiry, "/v1/once/%s/%s", once->name, once->key);
    buf_text(&inquiry.body, "{");
    put_string_member(&inquiry.body, "owner", slice_of(once->owner));
    put_int_member(&inquiry.body, "for", once->for_ms);
    if (once->keep_ms) put_int_member(&inquiry.body, "keep", once->keep_ms);
    put_int_member(&inquiry.body, "wait", left_ms < WAIT_PIECE_MS ? left_ms : WAIT_PIECE_MS);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&once->place, &arena, &inquiry);
    bool repeats = heard_status(&heard) == EXIT_LATER && left_ms > WAIT_PIECE_MS;
    *status = EXIT_FINE;
    if (heard.status == 201) {
        once->fence = node_count(heard.json, "fence");
        once->begun_us = left_ms ? monotonic_us() : asked_us; /* it may have waited, but not with the hold */
    } else if (heard_status(&heard) == EXIT_FINE) {
        result_print(node_member(heard.json, "result"));
    } else if (!repeats) {
        *status = heard_complain(once->arguments, &once->place, &heard);
    }
    inquiry_free(&inquiry);
    arena_free(&arena);
    return repeats;
}

static int once_begin(struct once *once)
{
    int64_t until_us = monotonic_us() + once->wait_ms * 1000, left_ms = once->wait_ms;
    int status;
    signals_let();
    while (once_ask(once, left_ms, &status)) {
        left_ms = (until_us - monotonic_us()) / 1000;
        if (left_ms < 0) left_ms = 0;
    }
    signals_keep();
    return status;
}

static struct ran command_run(const struct once *once, FILE *output, struct arena *arena)
{
    struct hold hold = {.place = &once->place,
                        .renewal = {.method = "PUT"},
                        .for_ms = once->for_ms,
                        .from_us = once->begun_us};
    const char *settings[] = {arena_printf(arena, "QUIPU_FENCE=%llu", once->fence).data,
                              arena_printf(arena, "QUIPU_KEY=%s", once->key).data, NULL};
    inquiry_path(&hold.renewal, "/v1/once/%s/%s", once->name, once->key);
    buf_printf(&hold.renewal.body, "{\"fence\":%llu,\"for\":%lld}", once->fence, (long long)once->for_ms);
    struct ran ran = hold_run(&hold, &(struct program_run){once->words, settings, -1, fileno(output)});
    inquiry_free(&hold.renewal);
    return ran;
}

/* Ends it, with the result or by giving it up. */
static struct heard once_end(const struct once *once, FILE *output, const char *reason, struct arena *arena)
{
    struct inquiry inquiry = {.method = "POST"};
    inquiry_path(&inquiry, reason ? "/v1/once/%s/%s/fail" : "/v1/once/%s/%s/finish", once->name, once->key);
    buf_printf(&inquiry.body, "{\"fence\":%llu", once->fence);
    if (reason)
        put_string_member(&inquiry.body, "error", slice_of(reason));
    else
        ran_put_result(output, &inquiry.body);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&once->place, arena, &inquiry);
    inquiry_free(&inquiry);
    return heard;
}

/* What the command has printed, as it stands. */
static void output_print(FILE *output)
{
    char room[8192];
    size_t got;
    rewind(output);
    while ((got = fread(room, 1, sizeof room, output)) > 0) fwrite(room, 1, got, stdout);
}

/* Nobody is told of a result before it is stored. */
static int once_work(struct once *once, struct arena *arena)
{
    int status = once_begin(once);
    if (status != EXIT_FINE || !once->fence) return status;
    FILE *output = tmpfile();
    if (!output) return complain("there is no room for a temporary file");
    struct ran ran = command_run(once, output, arena);
    const char *reason = ran_reason(arena, &ran);
    struct heard heard = {0};
    if (!ran.was_lost) heard = once_end(once, output, reason, arena);
    if (heard.status == 413 && !reason) heard = once_end(once, output, heard.message, arena);
    if (ran.failure) complain("'%s' cannot be started: %s", once->words[0], strerror(ran.failure));
    if (ran.was_lost) {
        complain("its time was over, so the command was ended");
        status = EXIT_LOST;
    } else if (heard.error) {
        status = heard_complain(once->arguments, &once->place, &heard);
    } else {
        output_print(output);
        status = ran_status(&ran);
    }
    fclose(output);
    return status;
}

int once_run(const struct arguments *arguments)
{
    struct arena arena = {0};
    const char *owner = argument_text(arguments, "owner");
    struct once once = {.arguments = arguments,
                        .name = argument_word(arguments, 0),
                        .key = argument_word(arguments, 1),
                        .owner = owner ? owner : owner_make(&arena),
                        .for_ms = FOR_USUAL_MS,
                        .wait_ms = FOR_EVER_MS};
    int status = EXIT_USAGE;
    size_t count = argument_words(arguments) - 2;
    once.words = arena_array(&arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) once.words[i] = (char *)(uintptr_t)argument_word(arguments, i + 2);
    once.words[count] = NULL;
    if (!*once.name || !*once.key) {
        complain_of_usage(arguments, "name and key must not be empty");
    } else if (argument_duration(arguments, "for", FOR_MOST_MS, &once.for_ms) &&
               argument_duration(arguments, "keep", KEEP_MOST_MS, &once.keep_ms) &&
               argument_duration(arguments, "wait", FOR_EVER_MS, &once.wait_ms)) {
        status = EXIT_FAULT;
        signals_keep();
        if (place_open(&once.place, arguments, PLACE_MAKE)) {
            status = once_work(&once, &arena);
            place_close(&once.place);
        }
    }
    arena_free(&arena);
    return status;
}
