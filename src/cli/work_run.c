/* quipu work run: claims units of a queue one after the other and runs a command for each: the unit's data on
 * its standard input, its standard output the result, its exit status whether it is done. Beats keep the unit
 * meanwhile; when it is lost to another, the command is ended and nothing is said of the unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "calendar/calendar.h"
#include "cli/hold.h"
#include "cli/listing.h"
#include "cli/special.h"

#define WAIT_PIECE_MS 2000 /* so soon a signal ends the waiting */
#define FOR_USUAL_MS  30000
#define FOR_MOST_MS   (24LL * 3600 * 1000)
#define FAILURES_MOST 20 /* of claims in a row */

struct worker {
    const struct arguments *arguments;
    struct place place;
    const char *queue, *owner;
    int64_t for_ms;          /* 0: the queue's */
    unsigned long long left; /* units to go */
    bool drains;
    unsigned failures; /* of claims in a row */
    char **words;
};

struct unit {
    const struct node *json;
    const char *id;
    unsigned long long fence;
    int64_t for_ms, claimed_us;
    FILE *input, *output;
};

/* ---- claiming ---- */

static void put_for(const struct worker *worker, struct buf *body)
{
    if (!worker->for_ms) return;
    put_int_member(body, "for", worker->for_ms);
}

static struct heard unit_claim(const struct worker *worker, struct arena *arena)
{
    struct inquiry inquiry = {.method = "POST"};
    inquiry_path(&inquiry, "/v1/work/%s/claim", worker->queue, "");
    buf_text(&inquiry.body, "{");
    put_string_member(&inquiry.body, "owner", slice_of(worker->owner));
    put_for(worker, &inquiry.body);
    put_int_member(&inquiry.body, "wait", worker->drains ? 0 : WAIT_PIECE_MS);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&worker->place, arena, &inquiry);
    inquiry_free(&inquiry);
    return heard;
}

/* How long the claim lasts, by the queue's setting: the flow ran here, so `until` is by this clock. */
static void unit_read(const struct worker *worker, struct arena *arena, const struct node *json,
                      struct unit *unit)
{
    int64_t until_ms = 0;
    *unit = (struct unit){.json = json,
                          .id = arena_printf(arena, "%.*s", SLICE_ARG(node_text(json, "id"))).data,
                          .fence = node_count(json, "fence"),
                          .for_ms = worker->for_ms,
                          .claimed_us = monotonic_us()};
    if (!unit->for_ms && moment_parse(node_text(json, "until"), &until_ms))
        unit->for_ms = until_ms - clock_now_ms(&clock_system);
    if (unit->for_ms <= 0) unit->for_ms = FOR_USUAL_MS;
}

/* ---- running ---- */

/* The data as it stands; a text without its quotes. */
static bool files_open(struct unit *unit)
{
    const struct node *data = node_member(unit->json, "data");
    struct slice text = SLICE("");
    if (data && data->kind != JSON_NULL) text = data->kind == JSON_STRING ? data->text : data->source;
    unit->input = tmpfile();
    unit->output = tmpfile();
    if (!unit->input || !unit->output) return false;
    bool fine = fwrite(text.data, 1, text.len, unit->input) == text.len && fflush(unit->input) == 0;
    rewind(unit->input);
    return fine;
}

static void files_close(struct unit *unit)
{
    if (unit->input) fclose(unit->input);
    if (unit->output) fclose(unit->output);
}

static struct ran unit_work(const struct worker *worker, struct arena *arena, struct unit *unit)
{
    const struct node *progress = node_member(unit->json, "progress");
    const char *settings[] = {
        arena_printf(arena, "QUIPU_QUEUE=%s", worker->queue).data,
        arena_printf(arena, "QUIPU_ID=%s", unit->id).data,
        arena_printf(arena, "QUIPU_FENCE=%llu", unit->fence).data,
        arena_printf(arena, "QUIPU_ATTEMPT=%llu", node_count(unit->json, "attempts")).data,
        arena_printf(arena, "QUIPU_PROGRESS=%.*s", SLICE_ARG(progress ? progress->source : SLICE(""))).data,
        NULL};
    struct hold hold = {.place = &worker->place,
                        .renewal = {.method = "POST"},
                        .for_ms = unit->for_ms,
                        .from_us = unit->claimed_us};
    inquiry_path(&hold.renewal, "/v1/work/%s/%s/beat", worker->queue, unit->id);
    buf_printf(&hold.renewal.body, "{\"fence\":%llu", unit->fence);
    put_for(worker, &hold.renewal.body);
    buf_text(&hold.renewal.body, "}");
    struct ran ran = hold_run(
        &hold, &(struct program_run){worker->words, settings, fileno(unit->input), fileno(unit->output)});
    inquiry_free(&hold.renewal);
    return ran;
}

/* ---- telling what came of it ---- */

static struct heard unit_tell(const struct worker *worker, struct arena *arena, struct unit *unit,
                              const char *reason)
{
    struct inquiry inquiry = {.method = "POST"};
    inquiry_path(&inquiry, reason ? "/v1/work/%s/%s/fail" : "/v1/work/%s/%s/finish", worker->queue, unit->id);
    buf_printf(&inquiry.body, "{\"fence\":%llu", unit->fence);
    if (reason)
        put_string_member(&inquiry.body, "reason", slice_of(reason));
    else
        ran_put_result(unit->output, &inquiry.body);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&worker->place, arena, &inquiry);
    inquiry_free(&inquiry);
    return heard;
}

static void unit_settle(const struct worker *worker, struct arena *arena, struct unit *unit,
                        const struct ran *ran)
{
    if (ran->was_lost) {
        complain("%s was lost to another, so the command was ended", unit->id);
        return;
    }
    const char *reason = ran_reason(arena, ran);
    struct heard heard = unit_tell(worker, arena, unit, reason);
    if (heard.status == 413 && !reason) heard = unit_tell(worker, arena, unit, heard.message);
    if (heard.error) {
        complain("%s: %s", unit->id, heard.message);
    } else {
        json_print(heard.body);
        fflush(stdout);
    }
}

/* ---- one after the other ---- */

/* True: go on. */
static bool unit_run(struct worker *worker, struct arena *arena, const struct node *json, int *status)
{
    struct unit unit;
    struct ran ran = {0};
    unit_read(worker, arena, json, &unit);
    if (files_open(&unit)) {
        ran = unit_work(worker, arena, &unit);
        unit_settle(worker, arena, &unit, &ran);
    } else {
        *status = complain("there is no room for temporary files");
    }
    files_close(&unit);
    worker->left--;
    if (ran.failure)
        *status = complain("'%s' cannot be started: %s", worker->words[0], strerror(ran.failure));
    return worker->left && !ran.signal && *status == EXIT_FINE;
}

static bool claim_failed(struct worker *worker, const struct heard *heard, int *status)
{
    bool may_pass = heard->status >= 500 || heard->status == 429;
    if (may_pass && worker->failures < FAILURES_MOST) {
        pause_before_retry(worker->failures++);
        return true;
    }
    *status = heard_complain(worker->arguments, &worker->place, heard);
    return false;
}

static int worker_run(struct worker *worker)
{
    int status = EXIT_FINE;
    bool goes_on = true;
    while (goes_on && !signals_pending()) {
        struct arena arena = {0};
        struct heard heard = unit_claim(worker, &arena);
        if (heard.status == 200) {
            worker->failures = 0;
            goes_on = unit_run(worker, &arena, heard.json, &status);
        } else if (heard.status == 204) {
            worker->failures = 0;
            goes_on = !worker->drains;
        } else {
            goes_on = claim_failed(worker, &heard, &status);
        }
        arena_free(&arena);
    }
    return status;
}

int work_run(const struct arguments *arguments)
{
    struct arena arena = {0};
    const char *owner = argument_text(arguments, "owner");
    unsigned long long units = 0;
    int status = EXIT_USAGE;
    struct worker worker = {.arguments = arguments,
                            .queue = argument_word(arguments, 0),
                            .owner = owner ? owner : owner_make(&arena),
                            .drains = argument_given(arguments, "drain")};
    size_t count = argument_words(arguments) - 1;
    worker.words = arena_array(&arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) worker.words[i] = (char *)(uintptr_t)argument_word(arguments, i + 1);
    worker.words[count] = NULL;
    if (argument_duration(arguments, "for", FOR_MOST_MS, &worker.for_ms) &&
        argument_number(arguments, "units", 1, 1000000000, &units)) {
        worker.left = units ? units : ~0ull;
        status = EXIT_FAULT;
        signals_keep();
        if (place_open(&worker.place, arguments, PLACE_MAKE)) {
            status = worker_run(&worker);
            place_close(&worker.place);
        }
    }
    arena_free(&arena);
    return status;
}
