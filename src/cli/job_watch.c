/* quipu job watch: looks at a job again and again until its end. A server's own events would tell it sooner,
 * but the flow runs here, on any endpoint, where looking is all there is. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "calendar/calendar.h"
#include "cli/listing.h"
#include "cli/operation.h"
#include "cli/progress.h"
#include "cli/special.h"

#define LOOK_MS     1000
#define FOR_EVER_MS (100LL * 365 * 86400 * 1000)

struct watch {
    const char *id;
    struct progress progress;
    bool draws;      /* a bar; else lines */
    struct buf told; /* the last line */
};

static void watch_show(struct watch *watch, const struct heard *heard)
{
    if (watch->draws) {
        watch->progress.total = node_count(heard->json, "total"); /* it may grow */
        progress_show(&watch->progress, node_count(heard->json, "done"));
    } else if (!slice_equal(buf_view(&watch->told), heard->body)) {
        json_print(heard->body);
        fflush(stdout);
        watch->told.len = 0;
        buf_slice(&watch->told, heard->body);
    }
}

static bool is_open(struct slice state)
{
    return slice_equal(state, SLICE("OPEN")) || slice_equal(state, SLICE("CLOSING"));
}

static int watch_end(struct watch *watch, const struct heard *heard)
{
    struct slice state = node_text(heard->json, "state");
    bool is_complete = slice_equal(state, SLICE("COMPLETE"));
    if (watch->draws) progress_end(&watch->progress, "done", node_count(heard->json, "done"));
    if (is_complete) return EXIT_FINE;
    if (is_open(state)) return EXIT_LATER;
    return complain("the job is %.*s", SLICE_ARG(state));
}

/* One look; true while there is more to come. */
static bool watch_look(struct watch *watch, const struct arguments *arguments, const struct place *place,
                       const struct inquiry *inquiry, bool is_last, int *status)
{
    struct arena arena = {0};
    struct heard heard = inquiry_run(place, &arena, inquiry);
    bool goes_on = false;
    *status = heard_status(&heard);
    if (*status != EXIT_FINE) {
        heard_complain(arguments, place, &heard);
    } else {
        watch_show(watch, &heard);
        goes_on = is_open(node_text(heard.json, "state")) && !is_last;
        if (!goes_on) *status = watch_end(watch, &heard);
    }
    arena_free(&arena);
    return goes_on;
}

static int watch_job(struct watch *watch, const struct arguments *arguments, const struct place *place,
                     int64_t for_ms)
{
    struct inquiry inquiry = {.method = "GET"};
    int64_t until_us = monotonic_us() + for_ms * 1000;
    int status;
    inquiry_path(&inquiry, "/v1/jobs/%s", watch->id, "");
    while (watch_look(watch, arguments, place, &inquiry, monotonic_us() >= until_us, &status))
        nanosleep(&(struct timespec){LOOK_MS / 1000, LOOK_MS % 1000 * 1000000}, NULL);
    inquiry_free(&inquiry);
    buf_free(&watch->told);
    return status;
}

int job_watch(const struct arguments *arguments)
{
    struct watch watch = {.id = argument_word(arguments, 0), .draws = output_is_terminal()};
    struct place place;
    int64_t for_ms = FOR_EVER_MS;
    const char *length = argument_text(arguments, "for");
    if (length && !duration_parse(slice_of(length), FOR_EVER_MS, &for_ms))
        return complain_of_usage(arguments, "--for should be a duration like 30s or 5m, not '%s'", length);
    if (!place_open(&place, arguments, PLACE_LOOK)) return EXIT_FAULT;
    progress_begin(&watch.progress, watch.id, 0);
    watch.progress.thing = "task";
    int status = watch_job(&watch, arguments, &place, for_ms);
    place_close(&place);
    return status;
}
