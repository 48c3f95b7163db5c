/* quipu log append from lines, and quipu log read: what was printed is acked, in this order, so that nothing
 * is lost when either end dies; it may be printed again then. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/hold.h"
#include "cli/listing.h"
#include "cli/operation.h"
#include "cli/special.h"

/* ---- append ---- */

#define BATCH_EVENTS  99 /* fit one transaction */
#define BATCH_BYTES   1000000
#define FAILURES_MOST 10
#define LINE_BYTES    (1 << 20)

struct appending {
    const struct arguments *arguments;
    struct place place;
    const char *log, *key; /* key NULL: each line has its own */
    struct buf events;     /* "[...,..." */
    size_t count;          /* in it */
    unsigned long long done, line;
};

/* All of the batch or nothing is repeated: lines with tokens are appended once for all that. */
static int batch_send(struct appending *appending)
{
    struct inquiry inquiry = {.method = "POST"};
    int status = EXIT_FINE;
    if (!appending->count) return EXIT_FINE;
    inquiry_path(&inquiry, "/v1/logs/%s", appending->log, "");
    buf_printf(&inquiry.body, "{\"events\":[%.*s]}", SLICE_ARG(buf_view(&appending->events)));
    struct arena arena = {0};
    struct heard heard = inquiry_run(&appending->place, &arena, &inquiry);
    status = heard_status(&heard);
    if (status == EXIT_FINE) {
        heard_print(appending->arguments, &heard, SLICE("events"));
        appending->done += appending->count;
    } else {
        heard_complain(appending->arguments, &appending->place, &heard);
        complain("the first %llu events are appended; of those behind them, up to line %llu, some may be",
                 appending->done, appending->line);
    }
    inquiry_free(&inquiry);
    arena_free(&arena);
    appending->events.len = 0;
    appending->count = 0;
    return status;
}

/* With a key the line is the data, JSON or else a text; without, an event. */
static int line_take(struct appending *appending, struct slice line)
{
    struct arena arena = {0};
    const char *fault;
    struct buf *events = &appending->events;
    const struct node *json = node_parse(&arena, line, &fault);
    int status = EXIT_FINE;
    if (!utf8_valid(line)) {
        status = complain("line %llu is not UTF-8", appending->line);
    } else if (!appending->key && (!json || json->kind != JSON_OBJECT)) {
        status = complain("line %llu should be {\"key\":...,\"data\":...}: %s", appending->line,
                          json ? "it is no object" : fault);
    } else {
        if (appending->count) buf_byte(events, ',');
        if (appending->key) {
            buf_byte(events, '{');
            put_string_member(events, "key", slice_of(appending->key));
            put_name(events, "data");
        }
        if (json)
            buf_slice(events, line);
        else
            json_put_string(events, line);
        if (appending->key) buf_byte(events, '}');
        appending->count++;
    }
    arena_free(&arena);
    return status;
}

/* The next line, of which no more is kept than is too long; false: there is none. */
static bool line_read(struct buf *text)
{
    int c;
    text->len = 0;
    while (text->len <= LINE_BYTES && (c = getc(stdin)) != EOF) {
        if (c == '\n') return true;
        buf_byte(text, (unsigned char)c);
    }
    return text->len > 0;
}

static int lines_append(struct appending *appending)
{
    struct buf text = {0};
    int status = EXIT_FINE;
    while (status == EXIT_FINE && line_read(&text)) {
        struct slice line = buf_view(&text);
        appending->line++;
        while (line.len && line.data[line.len - 1] == '\r') line.len--;
        if (!line.len) continue;
        status = line.len > LINE_BYTES ? complain("line %llu is longer than 1 MB", appending->line)
                                       : line_take(appending, line);
        bool is_full = appending->count == BATCH_EVENTS || appending->events.len >= BATCH_BYTES;
        if (status == EXIT_FINE && is_full) status = batch_send(appending);
    }
    buf_free(&text);
    if (status == EXIT_FINE) status = batch_send(appending);
    return status;
}

int log_append(const struct arguments *arguments)
{
    const char *key = argument_word(arguments, 1), *flag = argument_text(arguments, "key");
    bool has_data = argument_word(arguments, 2) || argument_given(arguments, "data") ||
                    argument_given(arguments, "events") || argument_given(arguments, "token");
    struct appending appending = {
        .arguments = arguments, .log = argument_word(arguments, 0), .key = key ? key : flag};
    if (has_data || isatty(STDIN_FILENO) == 1 || !*appending.log) return operation_run(arguments);
    if (argument_given(arguments, "idempotency-key"))
        return complain_of_usage(arguments, "--idempotency-key belongs to one call; lines may have tokens");
    if (argument_given(arguments, "expected"))
        return complain_of_usage(arguments, "--expected belongs to one call: give data, or --events");
    if (!place_open(&appending.place, arguments, true)) return EXIT_FAULT;
    int status = lines_append(&appending);
    if (errors_are_terminal()) fprintf(stderr, "%llu events appended\n", appending.done);
    buf_free(&appending.events);
    place_close(&appending.place);
    return status;
}

/* ---- read ---- */

#define WAIT_PIECE_MS 2000 /* so soon a signal ends the following */
#define FOR_MOST_MS   (24LL * 3600 * 1000)
#define WAIT_MOST_MS  (100LL * 365 * 86400 * 1000)
#define EVENTS_USUAL  100

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
        if (place_open(&reading.place, arguments, false)) {
            status = events_read(&reading);
            place_close(&reading.place);
        }
    }
    arena_free(&arena);
    return status;
}
