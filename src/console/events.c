/* GET /console/events: what happens, each second, to all who listen.
 *
 * One thread counts once a second, keeps the sample, and writes the event once for all listeners. Where nobody listens
 * it only counts. It is also the only one that writes to the listeners' replies and ends them; loops and the rest of
 * the server only leave word (under the lock) and wake it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "console/internal.h"

#define TICK_US        1000000
#define GATHER_US      20000 /* what changes within it is sent together */
#define HISTORY_PIECE  (128 * 1024) /* of a day's samples: they come in several events */

/* Samples resemble each other: a window of a few of them makes a tenth of them. It is kept for each who listens. */
#define PACK_WINDOW_BITS  (12 + 16) /* 4 KB; gzip's frame */
#define PACK_MEMORY_LEVEL 5
#define PACK_PIECE        4096

static void *run(void *argument);

void events_open(struct console *console)
{
    cond_init(&console->changed);
    pthread_mutex_init(&console->lock, NULL);
    ring_init(&console->listeners);
}

void console_start(struct console *console, const struct console_source *source)
{
    console->source = *source;
    ensure(pthread_create(&console->thread, NULL, run, console) == 0);
    console->is_running = true;
}

void events_wake(struct console *console)
{
    console->is_woken = true;
    pthread_cond_signal(&console->changed);
}

void console_drain(struct console *console)
{
    pthread_mutex_lock(&console->lock);
    console->is_draining = true;
    events_wake(console);
    pthread_mutex_unlock(&console->lock);
}

void events_close(struct console *console)
{
    pthread_mutex_lock(&console->lock);
    console->is_draining = console->is_ending = true;
    events_wake(console);
    pthread_mutex_unlock(&console->lock);
    if (console->is_running) pthread_join(console->thread, NULL);
    ensure(ring_empty(&console->listeners));
    pthread_cond_destroy(&console->changed);
    pthread_mutex_destroy(&console->lock);
}

void console_put_metrics(struct console *console, struct buf *out)
{
    static const char *const names[] = {[LISTENS_TO_EVENTS] = "events", [LISTENS_TO_CHANGES] = "changes"};
    stats_put_head(out, "quipu_console_streams", "gauge", "Streams that pages of the console have open.");
    pthread_mutex_lock(&console->lock);
    for (int kind = 0; kind < LISTENER_KINDS; kind++)
        buf_printf(out, "quipu_console_streams{kind=\"%s\"} %u\n", names[kind], console->listener_counts[kind]);
    pthread_mutex_unlock(&console->lock);
}

/* ---- fewer bytes ---- */

static z_stream *packer_new(void)
{
    z_stream *packer = must_zero(1, sizeof *packer);
    ensure(deflateInit2(packer, Z_BEST_SPEED, Z_DEFLATED, PACK_WINDOW_BITS, PACK_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) ==
           Z_OK);
    return packer;
}

static void packer_free(struct listener *listener)
{
    if (listener->packer) deflateEnd(listener->packer);
    free(listener->packer);
    listener->packer = NULL;
}

/* flush: Z_SYNC_FLUSH, so that the client can read all of it, or Z_FINISH. */
static void pack(z_stream *packer, struct slice text, int flush, struct buf *out)
{
    packer->next_in = (Bytef *)(uintptr_t)text.data;
    packer->avail_in = (uInt)text.len;
    do {
        buf_reserve(out, PACK_PIECE);
        packer->next_out = (Bytef *)out->data + out->len;
        packer->avail_out = PACK_PIECE;
        int result = deflate(packer, flush);
        ensure(result >= Z_OK || result == Z_BUF_ERROR); /* the last: all was out already */
        out->len += PACK_PIECE - packer->avail_out;
    } while (!packer->avail_out);
}

/* False: the client has gone. */
static bool send_text(struct listener *listener, struct slice text)
{
    struct buf packed = {0};
    if (!listener->packer) return listener->call->piece(listener->call, text);
    pack(listener->packer, text, Z_SYNC_FLUSH, &packed);
    bool is_there = listener->call->piece(listener->call, buf_view(&packed));
    buf_free(&packed);
    return is_there;
}

static void send_end(struct listener *listener)
{
    struct buf packed = {0};
    if (!listener->packer) return;
    pack(listener->packer, SLICE(""), Z_FINISH, &packed);
    listener->call->piece(listener->call, buf_view(&packed));
    buf_free(&packed);
    packer_free(listener);
}

/* ---- who comes and goes, on the loops ---- */

static void listener_left(struct rest_call *call)
{
    struct listener *listener = call->context;
    struct console *console = listener->console;
    pthread_mutex_lock(&console->lock);
    listener->has_left = true;
    events_wake(console);
    pthread_mutex_unlock(&console->lock);
}

bool events_admit(struct listener *listener)
{
    struct console *console = listener->console;
    struct rest_call *call = listener->call;
    pthread_mutex_lock(&console->lock);
    unsigned *count = &console->listener_counts[listener->kind];
    bool has_room = *count < LIMIT_CONSOLE_STREAMS && !console->is_draining;
    if (has_room) {
        ++*count;
        listener->is_new = true;
        call->context = listener;
        call->left = listener_left;
        call->status = 200;
        call->content_type = SLICE("text/event-stream");
        rest_add_header(call, "Cache-Control: no-store");
        rest_add_header(call, "X-Content-Type-Options: nosniff");
        if (listener->packer) rest_add_header(call, "Content-Encoding: gzip");
        ring_append(&console->listeners, &listener->link);
        events_wake(console);
    }
    pthread_mutex_unlock(&console->lock);
    return has_room;
}

void events_refuse(struct rest_call *call)
{
    console_refuse(call, 503, "busy",
                   "There are %d such streams already, or the server is about to stop. Close a tab of the console.",
                   LIMIT_CONSOLE_STREAMS);
}

void events_serve(struct console *console, struct rest_call *call, bool takes_gzip)
{
    struct slice since = rest_query(call, "since"), last = rest_query(call, "last");
    unsigned long long since_ms = 0, last_ms = 0;
    if ((since.data && !slice_to_u64(since, INT64_MAX, &since_ms)) ||
        (last.data && !slice_to_u64(last, INT64_MAX, &last_ms))) {
        console_refuse(call, 400, "bad-request",
                       "since is a time in milliseconds since 1970, last a number of milliseconds.");
        return;
    }
    int64_t from_ms = last.data ? clock_now_ms(console->options.clock) - (int64_t)last_ms : 0;
    if (from_ms < (int64_t)since_ms) from_ms = (int64_t)since_ms;
    struct listener *listener = arena_zero(call->arena, sizeof *listener);
    *listener = (struct listener){
        .call = call, .console = console, .kind = LISTENS_TO_EVENTS, .since_ms = from_ms};
    if (takes_gzip) listener->packer = packer_new();
    if (events_admit(listener)) return;
    packer_free(listener);
    events_refuse(call);
}

/* ---- the thread ---- */

static void put_history(struct buf *out, struct listener *listener, const struct samples *samples, int64_t step_ms,
                        int64_t until_ms)
{
    size_t start = out->len;
    for (uint32_t i = 0; i < samples->count; i++) {
        const struct sample *sample = samples_at(samples, i);
        if (sample_time(sample) <= listener->since_ms || sample_time(sample) > until_ms) continue;
        buf_slice(out, out->len == start ? SLICE("data: {\"history\":[") : SLICE(","));
        sample_put(out, sample, step_ms);
        if (out->len - start < HISTORY_PIECE) continue;
        buf_printf(out, "],\"stepMs\":%lld}\n\n", (long long)step_ms);
        start = out->len;
    }
    if (out->len > start) buf_printf(out, "],\"stepMs\":%lld}\n\n", (long long)step_ms);
}

/* Of the last minutes each second; before them, the tens. */
static void send_history(struct console *console, struct listener *listener)
{
    struct buf out = {0};
    const struct samples *seconds = &console->seconds;
    int64_t oldest_ms = seconds->count ? sample_time(samples_at(seconds, 0)) : 0;
    if (oldest_ms > listener->since_ms) put_history(&out, listener, &console->tens, 10000, oldest_ms);
    put_history(&out, listener, seconds, 1000, INT64_MAX);
    if (!out.len) buf_text(&out, "data: {\"history\":[],\"stepMs\":1000}\n\n");
    listener->is_over = !send_text(listener, buf_view(&out));
    listener->is_new = false;
    buf_free(&out);
}

/* Takes those out who are to end; the others stay. */
static void sort_out(struct console *console, struct ring *ended)
{
    pthread_mutex_lock(&console->lock);
    ring_each(struct listener, listener, link, &console->listeners)
    {
        if (!listener->has_left && !listener->is_over && !console->is_draining) continue;
        ring_remove(&listener->link);
        ring_append(ended, &listener->link);
        console->listener_counts[listener->kind]--;
    }
    pthread_mutex_unlock(&console->lock);
}

static void end_all(struct ring *ended)
{
    ring_each(struct listener, listener, link, ended)
    {
        ring_remove(&listener->link);
        if (listener->kind == LISTENS_TO_CHANGES) changes_end(listener);
        send_end(listener);
        listener->call->done(listener->call); /* it is gone */
    }
}

/* Only this thread takes listeners out of the list, and others add at its end: its members stay while they are
 * written to without the lock. */
static struct listener *next_listener(struct console *console, struct listener *last)
{
    pthread_mutex_lock(&console->lock);
    struct ring *link = last ? last->link.next : console->listeners.next;
    pthread_mutex_unlock(&console->lock);
    return link == &console->listeners ? NULL : ring_owner(link, struct listener, link);
}

static void serve_listeners(struct console *console)
{
    pthread_mutex_lock(&console->lock);
    bool has_changes = console->has_changes;
    pthread_mutex_unlock(&console->lock);
    if (has_changes) usleep(GATHER_US);
    pthread_mutex_lock(&console->lock);
    console->has_changes = false;
    pthread_mutex_unlock(&console->lock);
    for (struct listener *at = NULL; (at = next_listener(console, at));) {
        if (at->kind == LISTENS_TO_CHANGES) changes_send(at);
        if (at->kind == LISTENS_TO_EVENTS && at->is_new) send_history(console, at);
    }
}

static bool is_heard(struct console *console)
{
    pthread_mutex_lock(&console->lock);
    bool heard = console->listener_counts[LISTENS_TO_EVENTS] > 0;
    pthread_mutex_unlock(&console->lock);
    return heard;
}

static void tick(struct console *console)
{
    const struct sample *sample = sample_take(console);
    struct buf out = {0};
    if (is_heard(console) && sample) {
        buf_text(&out, "data: {\"sample\":");
        sample_put(&out, sample, 1000);
        out.len--; /* its brace: there is more */
        size_t known = out.len;
        sample_put_busiest(console, &out);
        if (!console->has_listened) out.len = known; /* it is of more than this second */
        buf_text(&out, "}}\n\n");
    }
    console->has_listened = out.len > 0;
    for (struct listener *at = NULL; out.len && (at = next_listener(console, at));)
        if (at->kind == LISTENS_TO_EVENTS && !at->is_new && !at->is_over)
            at->is_over = !send_text(at, buf_view(&out));
    buf_free(&out);
}

/* Waits for the next tick, or for word. False: the console is being closed. */
static bool wait_until(struct console *console, int64_t at_us)
{
    pthread_mutex_lock(&console->lock);
    while (!console->is_woken && cond_wait_until(&console->changed, &console->lock, at_us)) continue;
    console->is_woken = false;
    bool goes_on = !console->is_ending || !ring_empty(&console->listeners);
    pthread_mutex_unlock(&console->lock);
    return goes_on;
}

static void *run(void *argument)
{
    struct console *console = argument;
    struct ring ended;
    ring_init(&ended);
    pthread_setname_np(pthread_self(), "quipu-console");
    int64_t next_us = monotonic_us();
    do {
        if (monotonic_us() >= next_us) {
            tick(console);
            next_us += TICK_US;
            if (next_us < monotonic_us()) next_us = monotonic_us() + TICK_US; /* it was held up for long */
        }
        serve_listeners(console);
        sort_out(console, &ended);
        end_all(&ended);
    } while (wait_until(console, next_us));
    return NULL;
}
