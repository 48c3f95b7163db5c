/* Appending to a log: a page is put behind the end of a partition's chain.
 *
 * Flows of one process that append to the same partition at the same time join (task_join): whoever leads puts the
 * events of all into as few pages as they need. What a process has learnt of the log, its routes and the ends of its
 * partitions it goes by as long as nobody says otherwise: a page that is there already says that others have appended,
 * a seal that the log was split, merged or deleted. Only before the first append to a partition the log itself is asked
 * for, because a partition that nobody has written to is not sealed when the log is deleted. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/log.h"

#define EVENTS_MOST  1000 /* of one request */
#define EVENTS_FIRST 32   /* room for so many at first */
#define KEY_MOST     1024
#define TOKEN_MOST   255
#define ITEM_SLACK   4096 /* of an event's page, besides key, data and token */
#define LATE_MS      5000 /* between the touch and the put, before the head is touched again */

enum { APPEND_KEY = LOG_NAME + 1, APPEND_DATA, APPEND_TOKEN, APPEND_EVENTS, APPEND_REPEATS };

const struct field log_append_fields[] = {
    FIELD_LOG,
    [APPEND_KEY] = {"key", IN_BODY, FIELD_NAME, .max = KEY_MOST,
                    .help = "events of one key stay in order; their partition is found by it"},
    [APPEND_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what happened"},
    [APPEND_TOKEN] = {"token", IN_BODY, FIELD_NAME, .max = TOKEN_MOST,
                      .help = "a repeated call with the same token appends nothing, for a day"},
    [APPEND_EVENTS] = {"events", IN_BODY, FIELD_LIST,
                       .help =
                           "instead of these: up to 1000 objects of key, data and token, in order. What goes "
                           "to one partition is appended together, as far as an item holds it"},
    [APPEND_REPEATS] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                        .help = "a token for all events of the call"},
};

struct event {
    struct slice key, data;   /* data: plain JSON */
    struct chain_entry entry; /* with its token */
    uint64_t hash;            /* of the key */
    int64_t partition;        /* where it belongs; when it is done, where it is */
    bool is_routed, is_done, is_reused;
};

/* Events of one flow for one partition. */
struct batch {
    struct event **events;
    size_t count, bytes;
    bool is_settled;
    bool has_moved; /* not all were appended: the partition is sealed */
};

struct append {
    struct log_layout layout;
    bool is_guess; /* the layout is what this process remembers */
    struct event *events;
    size_t count, room;
    bool is_alone; /* it went wrong together */
};

/* ---- what was asked for ---- */

/* The text of one event's member; false: refused. */
static bool take_name(struct flow *flow, size_t number, const char *name, struct slice value, size_t most,
                      struct slice *out)
{
    *out = raw_kind(value) == JSON_STRING ? raw_text(flow->arena, value) : SLICE_NONE;
    if (out->data && out->len >= 1 && out->len <= most) return true;
    flow_refuse(flow, 400, "bad-request", "event %zu: %s must be a string of 1 to %zu bytes.", number, name,
                most);
    return false;
}

static bool take_member(struct flow *flow, size_t number, struct slice name, struct slice member,
                        struct event *event)
{
    if (slice_equal(name, SLICE("key"))) return take_name(flow, number, "key", member, KEY_MOST, &event->key);
    if (slice_equal(name, SLICE("data"))) {
        event->data = member;
        return true;
    }
    if (slice_equal(name, SLICE("token")))
        return take_name(flow, number, "token", member, TOKEN_MOST, &event->entry.token);
    flow_refuse(flow, 400, "bad-request", "event %zu has a member that is not known here: %.*s.", number,
                SLICE_ARG(flow_shown(name)));
    return false;
}

/* The event that the reader comes to. */
static bool take_event(struct flow *flow, size_t number, struct json_reader *reader, struct event *event)
{
    struct slice name, member;
    *event = (struct event){.data = SLICE("null")};
    if (json_peek(reader) != JSON_OBJECT) {
        flow_refuse(flow, 400, "bad-request", "event %zu must be an object.", number);
        return false;
    }
    json_enter(reader);
    while (json_member(reader, &name)) {
        raw_take(reader, &member);
        if (!take_member(flow, number, name, member, event)) return false;
    }
    if (!event->key.data) flow_refuse(flow, 400, "bad-request", "event %zu: key is missing.", number);
    return event->key.data != NULL;
}

/* The call's own key is the token of each event that has none. */
static struct slice token_of_call(struct flow *flow, const struct append *append, size_t number)
{
    struct slice key = flow_text(flow, APPEND_REPEATS);
    if (!flow_given(flow, APPEND_REPEATS)) return SLICE_NONE;
    return append->count == 1 ? key : arena_printf(flow->arena, "%.*s#%zu", SLICE_ARG(key), number);
}

/* An item must hold it. Text is never shorter than what is stored of it. */
static bool event_fits(struct flow *flow, size_t number, const struct event *event)
{
    size_t bytes = event->key.len + event->data.len + ITEM_SLACK;
    if (bytes <= LIMIT_ITEM_BYTES) return true;
    bytes = event->key.len + ITEM_SLACK +
            item_bytes(flow->arena, flow_compose(flow, "{'data':%J}", event->data));
    if (bytes <= LIMIT_ITEM_BYTES) return true;
    flow_refuse(flow, 413, "too-large", "event %zu does not fit: an item of DynamoDB holds at most 400 KB.",
                number);
    return false;
}

/* Room for one more: the list is read once, so its length is not known before. */
static void events_grow(struct flow *flow, struct append *append)
{
    if (append->count < append->room) return;
    struct event *old = append->events;
    append->room = append->room ? append->room * 2 : EVENTS_FIRST;
    append->events = arena_array(flow->arena, struct event, append->room);
    if (old) memcpy(append->events, old, append->count * sizeof *old);
}

static bool take_list(struct flow *flow, struct append *append)
{
    struct json_reader reader;
    json_begin(&reader, flow_text(flow, APPEND_EVENTS), flow->arena);
    json_enter(&reader);
    while (json_element(&reader) && append->count < EVENTS_MOST) {
        events_grow(flow, append);
        if (!take_event(flow, append->count, &reader, &append->events[append->count])) return false;
        append->count++;
    }
    if (append->count && json_done(&reader)) return true;
    flow_refuse(flow, 400, "bad-request", "events must be 1 to %d.", EVENTS_MOST);
    return false;
}

static bool take_one(struct flow *flow, struct append *append)
{
    append->count = 1;
    append->events = arena_new(flow->arena, struct event);
    append->events[0] = (struct event){.key = flow_text(flow, APPEND_KEY), .data = SLICE("null")};
    if (flow_given(flow, APPEND_DATA)) append->events[0].data = flow_text(flow, APPEND_DATA);
    if (flow_given(flow, APPEND_TOKEN)) append->events[0].entry.token = flow_text(flow, APPEND_TOKEN);
    if (!flow_given(flow, APPEND_KEY)) flow_refuse(flow, 400, "bad-request", "key is missing.");
    return flow_given(flow, APPEND_KEY);
}

/* False: refused. */
static bool take_events(struct flow *flow, struct append *append)
{
    bool has_one = flow_given(flow, APPEND_KEY) || flow_given(flow, APPEND_DATA) ||
                   flow_given(flow, APPEND_TOKEN);
    if (flow_given(flow, APPEND_EVENTS) && has_one) {
        flow_refuse(flow, 400, "bad-request", "events exclude key, data and token.");
        return false;
    }
    if (flow_given(flow, APPEND_EVENTS) ? !take_list(flow, append) : !take_one(flow, append)) return false;
    for (size_t i = 0; i < append->count; i++) {
        struct event *event = &append->events[i];
        if (!event_fits(flow, i, event)) return false;
        event->hash = hash_bytes(event->key);
        const char *wrong = log_entry(flow, event->key, event->data, &event->entry.value);
        if (wrong) {
            flow_refuse(flow, 400, "bad-request", "event %zu: data cannot be stored: %s.", i, wrong);
            return false;
        }
        if (!event->entry.token.data) event->entry.token = token_of_call(flow, append, i);
        if (event->entry.token.data)
            event->entry.mark = log_hex(flow, event->hash * 31 + hash_bytes(event->data));
    }
    return true;
}

/* ---- where they belong ---- */

/* Finds the partition of each event that is not done. */
static void route_events(struct flow *flow, struct append *append)
{
    for (size_t i = 0; i < append->count; i++) {
        if (append->events[i].is_done || append->events[i].is_routed) continue;
        struct log_range range = log_route(flow, &append->layout, append->events[i].hash);
        for (size_t k = i; k < append->count; k++) {
            struct event *event = &append->events[k];
            if (event->is_done || event->is_routed || event->hash < range.from || event->hash > range.to)
                continue;
            event->partition = range.partition;
            event->is_routed = true;
        }
    }
}

/* The next events that go together, in the order of the request; their partition. */
static int64_t batch_take(struct flow *flow, struct append *append, struct batch *batch)
{
    int64_t partition = -1;
    *batch = (struct batch){.events = arena_array(flow->arena, struct event *, append->count)};
    for (size_t i = 0; i < append->count; i++) {
        struct event *event = &append->events[i];
        if (event->is_done || (batch->count && event->partition != partition)) continue;
        partition = event->partition;
        batch->events[batch->count++] = event;
        batch->bytes += event->entry.value.len + event->entry.token.len;
    }
    return partition;
}

/* The partition was sealed: its events go elsewhere. */
static void events_move(struct flow *flow, struct append *append, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->events[i]->is_routed = false;
        log_route_forget(flow, &append->layout, batch->events[i]->hash);
    }
    task_again(flow);
    log_layout_get(flow, &append->layout);
    append->is_guess = false;
    log_change_finish(flow, &append->layout);
    if (append->layout.change.data) log_layout_get(flow, &append->layout);
}

/* ---- the round ---- */

/* Leaves with each event of a batch what became of its entry: numbers only, since the texts are the leader's. */
static void batch_settle(struct batch *batch, const struct chain_entry *entries, int64_t partition)
{
    batch->has_moved = false;
    for (size_t i = 0; i < batch->count; i++) {
        const struct chain_entry *entry = &entries[i];
        struct event *event = batch->events[i];
        event->entry.number = entry->number;
        event->entry.is_repeated = entry->is_repeated;
        event->is_reused = entry->is_repeated && !slice_equal(entry->mark, entry->first_mark);
        event->partition = entry->chain.data ? log_key_number(entry->chain) : partition;
        event->is_done = entry->number != 0;
        if (!event->is_done) batch->has_moved = true;
    }
    batch->is_settled = true;
}

/* Appends what all of the round have brought. */
static void round_lead(struct flow *flow, struct append *append, const struct chain *chain, struct batch *own,
                       int64_t partition)
{
    struct chain_end end;
    size_t count = own->count, at = 0;
    for (size_t i = 0; i < flow->follower_count; i++)
        count += ((struct batch *)flow->followers[i]->share.what)->count;
    struct chain_entry *entries = arena_array(flow->arena, struct chain_entry, count);
    for (size_t i = 0; i <= flow->follower_count; i++) {
        struct batch *batch = i ? flow->followers[i - 1]->share.what : own;
        for (size_t k = 0; k < batch->count; k++) entries[at++] = batch->events[k]->entry;
    }
    bool is_known = log_end_guess(flow, &append->layout, partition, chain, &end);
    if (!is_known && append->is_guess) {
        struct log_layout layout = append->layout;
        log_layout_get(flow, &append->layout);
        append->is_guess = false;
        end.is_sealed |= strcmp(layout.id, append->layout.id) != 0; /* a chain of a log that was deleted */
    }
    int64_t touched_ms = flow->now_ms;
    if (!end.is_sealed) log_touch(flow, &append->layout, partition, chain, &end, count);
    chain_append(flow, chain, &end, entries, count);
    if (flow->now_ms - touched_ms > LATE_MS) log_touch(flow, &append->layout, partition, chain, &end, 0);
    at = 0;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        struct batch *batch = i ? flow->followers[i - 1]->share.what : own;
        batch_settle(batch, entries + at, partition);
        at += batch->count;
    }
    flow_wake(flow, log_topic(flow));
    flow_disband(flow);
}

/* Waits until a batch is dealt with, by this flow or by another one. */
static void batch_append(struct flow *flow, struct append *append, struct batch *batch, int64_t partition)
{
    struct flow_share share = {.what = batch, .bytes = batch->bytes};
    struct chain chain = log_chain(flow, &append->layout, partition);
    if (append->is_alone) {
        flow->follower_count = 0;
        round_lead(flow, append, &chain, batch, partition);
    } else if (task_join(flow, flow_topic("append", chain.key, flow->world->prefix), share)) {
        round_lead(flow, append, &chain, batch, partition);
    } else if (!batch->is_settled && flow->led_status >= 500) {
        flow->retry_after_ms = 1000;
        flow_refuse(flow, flow->led_status, "busy", "The database did not get to it. Try again later.");
        task_end(flow);
    } else if (!batch->is_settled) { /* something is wrong with what another flow brought along */
        append->is_alone = true;
    }
}

/* ---- the answer ---- */

static void put_result(struct flow *flow, const struct event *event)
{
    if (event->is_reused)
        buf_text(flow->body, "{\"error\":\"token-reused\"}");
    else
        flow_put(flow, flow->body, "{'partition':'%d','sequence':%d%A}", event->partition, event->entry.number,
                 event->entry.is_repeated ? SLICE(",\"repeated\":true") : SLICE(""));
}

static void append_tell(struct flow *flow, const struct append *append)
{
    bool has_reused = false;
    for (size_t i = 0; i < append->count; i++) has_reused |= append->events[i].is_reused;
    if (has_reused && append->count == 1) {
        flow_refuse(flow, 422, "token-reused", "This token belongs to another event.");
        return;
    }
    if (flow_given(flow, APPEND_EVENTS)) buf_text(flow->body, "{\"events\":[");
    for (size_t i = 0; i < append->count; i++) {
        if (i) buf_byte(flow->body, ',');
        put_result(flow, &append->events[i]);
    }
    if (flow_given(flow, APPEND_EVENTS)) buf_text(flow->body, "]}");
    flow_finish(flow, has_reused ? 422 : 201);
}

void log_append_begin(struct flow *flow)
{
    struct append *append = arena_new(flow->arena, struct append);
    struct batch *batch = arena_new(flow->arena, struct batch);
    if (!take_events(flow, append)) return;
    append->is_guess = log_layout_guess(flow, &append->layout);
    for (;;) {
        route_events(flow, append);
        int64_t partition = batch_take(flow, append, batch);
        if (!batch->count) break;
        batch_append(flow, append, batch, partition);
        if (batch->has_moved) events_move(flow, append, batch);
    }
    append_tell(flow, append);
}
