/* quipu log read: what was printed is acked, in this order, so that nothing is lost when either end dies; it may be
 * printed again then. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/hold.h"
#include "cli/listing.h"
#include "cli/operation.h"
#include "cli/special.h"

/* ---- read ---- */

#define WAIT_PIECE_MS 2000 /* so soon a signal ends the following */
#define FOR_MOST_MS   (24LL * 3600 * 1000)
#define WAIT_MOST_MS  (100LL * 365 * 86400 * 1000)
#define EVENTS_USUAL  100
#define FAILURES_MOST 10

struct reading {
    const struct arguments *arguments;
    struct place place;
    const char *log, *consumer, *owner;
    int64_t for_ms;                /* 0: as the pattern does */
    int64_t until_us;              /* waits so long for the first event, monotonic; 0: not at all */
    unsigned long long left, read; /* events to go, and that were printed */
    bool follows;
    unsigned failures; /* in a row */
};

static void put_path(const struct reading *reading, struct inquiry *inquiry, const char *what)
{
    inquiry_path(inquiry, "/v1/logs/%s/consumers/%s/", reading->log, reading->consumer);
    buf_slice(&inquiry->path, slice_of(what));
}

static bool waits_on(const struct reading *reading)
{
    return reading->follows || (!reading->read && monotonic_us() < reading->until_us);
}

static struct heard events_ask(const struct reading *reading, struct arena *arena)
{
    struct inquiry inquiry = {.method = "POST"};
    put_path(reading, &inquiry, "read");
    buf_text(&inquiry.body, "{");
    put_string_member(&inquiry.body, "owner", slice_of(reading->owner));
    buf_printf(&inquiry.body, ",\"max\":%llu", reading->left < EVENTS_USUAL ? reading->left : EVENTS_USUAL);
    if (reading->for_ms) buf_printf(&inquiry.body, ",\"for\":%lld", (long long)reading->for_ms);
    if (waits_on(reading)) buf_printf(&inquiry.body, ",\"wait\":%d", WAIT_PIECE_MS);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&reading->place, arena, &inquiry);
    inquiry_free(&inquiry);
    return heard;
}

static struct heard events_ack(const struct reading *reading, struct arena *arena, const struct node *read,
                               struct slice sequence)
{
    struct inquiry inquiry = {.method = "POST"};
    put_path(reading, &inquiry, "ack");
    buf_text(&inquiry.body, "{");
    put_string_member(&inquiry.body, "partition", node_text(read, "partition"));
    buf_printf(&inquiry.body, ",\"fence\":%llu,\"sequence\":%.*s}", node_count(read, "fence"),
               SLICE_ARG(sequence));
    struct heard heard = inquiry_run(&reading->place, arena, &inquiry);
    inquiry_free(&inquiry);
    return heard;
}

/* Prints, makes sure that it is out, then acks. False: no more. */
static bool events_take(struct reading *reading, struct arena *arena, const struct heard *heard, int *status)
{
    const struct node *events = node_member(heard->json, "events"), *last = NULL;
    unsigned long long count = 0;
    for (const struct node *event = events ? events->first : NULL; event; event = event->next, count++)
        last = event;
    heard_print(reading->arguments, heard, SLICE("events"));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        *status = complain("standard output cannot be written: nothing was acked");
        return false;
    }
    if (!last) return true;
    struct heard acked = events_ack(reading, arena, heard->json, node_text(last, "sequence"));
    reading->read += count;
    reading->left -= count < reading->left ? count : reading->left;
    if (heard_status(&acked) == EXIT_LOST) /* another reads them again, as the pattern says */
        complain("%s", acked.message);
    else if (acked.error)
        *status = heard_complain(reading->arguments, &reading->place, &acked);
    return *status == EXIT_FINE && reading->left > 0;
}

static bool read_failed(struct reading *reading, const struct heard *heard, int *status)
{
    bool may_pass = heard->status >= 500 && reading->follows;
    if (may_pass && reading->failures < FAILURES_MOST) {
        pause_before_retry(reading->failures++);
        return true;
    }
    *status = heard_complain(reading->arguments, &reading->place, heard);
    return false;
}

static int events_read(struct reading *reading)
{
    int status = EXIT_FINE;
    bool goes_on = true;
    while (goes_on && !signals_pending()) {
        struct arena arena = {0};
        struct heard heard = events_ask(reading, &arena);
        if (heard.status == 200) {
            reading->failures = 0;
            goes_on = events_take(reading, &arena, &heard, &status);
        } else if (heard.status == 204) {
            reading->failures = 0;
            goes_on = waits_on(reading);
        } else {
            goes_on = read_failed(reading, &heard, &status);
        }
        arena_free(&arena);
    }
    if (status != EXIT_FINE || reading->read || reading->follows) return status;
    if (errors_are_terminal()) fprintf(stderr, "There are no unread events.\n");
    return EXIT_LATER;
}

int log_read(const struct arguments *arguments)
{
    struct arena arena = {0};
    const char *word = argument_word(arguments, 2), *flag = argument_text(arguments, "owner");
    unsigned long long most = 0;
    int64_t wait_ms = 0;
    struct reading reading = {.arguments = arguments,
                              .log = argument_word(arguments, 0),
                              .consumer = argument_word(arguments, 1),
                              .owner = word   ? word
                                       : flag ? flag
                                              : owner_make(&arena),
                              .follows = argument_given(arguments, "follow")};
    int status = EXIT_USAGE;
    if (argument_given(arguments, "json") || argument_given(arguments, "cost")) {
        status = operation_run(arguments); /* one reply, not acked */
    } else if (!*reading.log || !*reading.consumer) {
        complain_of_usage(arguments, "log and name must not be empty");
    } else if (argument_duration(arguments, "for", FOR_MOST_MS, &reading.for_ms) &&
               argument_duration(arguments, "wait", WAIT_MOST_MS, &wait_ms) &&
               argument_number(arguments, "max", 1, 1000000000, &most)) {
        reading.left = most ? most : ~0ull;
        reading.until_us = wait_ms ? monotonic_us() + wait_ms * 1000 : 0;
        status = EXIT_FAULT;
        signals_keep();
        if (place_open(&reading.place, arguments, PLACE_WRITE)) {
            status = events_read(&reading);
            place_close(&reading.place);
        }
    }
    arena_free(&arena);
    return status;
}
