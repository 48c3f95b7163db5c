/* Appending to a log: a page is put behind the end of a partition's chain.
 *
 * Flows of one process that append to the same partition at the same time join (task_join): whoever leads puts the
 * events of all into as few pages as they need. What a process has learnt of the log, its routes and the ends of its
 * partitions it goes by as long as nobody says otherwise: a page that is there already says that others have appended,
 * a seal that the log was split, merged or deleted. Only before the first append to a partition the log itself is asked
 * for, because a partition that nobody has written to is not sealed when the log is deleted.
 *
 * An append may expect that no event of its key stands behind a number. What the chain decides is one write: a page is
 * put behind an end up to which all events have been looked at. So the call looks at those behind the number before it
 * joins (there are none where it names the partition's last), and whoever leads looks at what has come since. All
 * events of such a call have one key and go into one page, or none of them is appended. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/log.h"

#define EVENTS_MOST  1000 /* of one request */
#define EVENTS_FIRST 32   /* room for so many at first */
#define KEY_MOST     1024
#define TOKEN_MOST   255
#define PAGE_SLACK   100    /* of an event in a page, besides value and token */
#define ITEM_SLACK   4096   /* of an event's page, besides key, data and token */
#define LOOKED_MOST  100000 /* events behind the number that an append expects */
#define LATE_MS      5000   /* between the touch and the put, before the head is touched again */

enum { APPEND_KEY = LOG_NAME + 1, APPEND_DATA, APPEND_TOKEN, APPEND_EVENTS, APPEND_EXPECTED, APPEND_REPEATS };

const struct field log_append_fields[] = {
    FIELD_LOG,
    [APPEND_KEY] = {"key", IN_BODY, FIELD_NAME, .max = KEY_MOST,
                    .help = "events of one key stay in order; their partition is found by it"},
    [APPEND_DATA] = {"data", IN_BODY, FIELD_JSON, .is_unchecked = true, .help = "what happened"},
    [APPEND_TOKEN] = {"token", IN_BODY, FIELD_NAME, .max = TOKEN_MOST,
                      .help = "a repeated call with the same token appends nothing, for a day"},
    [APPEND_EVENTS] = {"events", IN_BODY, FIELD_LIST,
                       .help =
                           "instead of these: up to 1000 objects of key, data and token, in order. What goes "
                           "to one partition is appended together, as far as an item holds it"},
    [APPEND_EXPECTED] = {"expected", IN_BODY, FIELD_INT, .max = LOG_NUMBER_MOST,
                         .help = "only if no event of the key stands behind this number; 0: only if there is "
                                 "none. All events must have one key"},
    [APPEND_REPEATS] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                        .help = "a token for all events of the call"},
};

/* What a call expects of its key. */
struct expectation {
    struct chain_together together; /* the first member */
    struct slice key;
    uint64_t hash;
    int64_t expected;
    int64_t checked; /* all events up to this number have been looked at */
    int64_t present; /* the last of the key behind the expected one; 0: none */
    int64_t end;     /* the partition's last number, where the expected one is not there yet; else -1 */
    bool is_far;     /* too many events stand behind it */
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
    struct expectation *expectation; /* NULL: none */
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

/* All events have one key and fit into one page. */
static bool take_expectation(struct flow *flow, struct append *append)
{
    struct expectation *expectation = arena_new(flow->arena, struct expectation);
    struct event *first = &append->events[0];
    *expectation = (struct expectation){.key = first->key,
                                        .hash = first->hash,
                                        .expected = flow_int(flow, APPEND_EXPECTED),
                                        .checked = flow_int(flow, APPEND_EXPECTED),
                                        .end = -1};
    for (size_t i = 0; i < append->count; i++) {
        struct chain_entry *entry = &append->events[i].entry;
        if (!slice_equal(append->events[i].key, first->key)) {
            flow_refuse(flow, 400, "bad-request", "expected is of one key: event %zu has another one.", i);
            return false;
        }
        expectation->together.bytes += entry->value.len + entry->token.len + PAGE_SLACK;
        entry->together = &expectation->together;
    }
    append->expectation = expectation;
    if (expectation->together.bytes <= CHAIN_PAGE_BYTES || append->count == 1) return true;
    flow_refuse(flow, 413, "too-large",
                "Events that are expected to be appended together must fit into %d KB.",
                CHAIN_PAGE_BYTES / 1000);
    return false;
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
        if (wrong && flow_given(flow, APPEND_EVENTS))
            flow_refuse(flow, 400, "bad-request", "event %zu: data cannot be stored: %s.", i, wrong);
        else if (wrong)
            flow_refuse(flow, 400, "bad-request", "data cannot be stored: %s.", wrong);
        if (wrong) return false;
        if (!event->entry.token.data) event->entry.token = token_of_call(flow, append, i);
        if (event->entry.token.data)
            event->entry.mark = log_hex(flow, event->hash * 31 + hash_bytes(event->data));
    }
    return !flow_given(flow, APPEND_EXPECTED) || take_expectation(flow, append);
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

/* The log as it is, without a change that is under way. */
static void layout_renew(struct flow *flow, struct append *append)
{
    log_layout_get(flow, &append->layout);
    append->is_guess = false;
    log_change_finish(flow, &append->layout);
    if (append->layout.change.data) log_layout_get(flow, &append->layout);
}

/* The partition was sealed: its events go elsewhere. */
static void events_move(struct flow *flow, struct append *append, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->events[i]->is_routed = false;
        log_route_forget(flow, &append->layout, batch->events[i]->hash);
    }
    task_again(flow);
    layout_renew(flow, append);
}

/* ---- what is expected ---- */

static bool is_disappointed(const struct expectation *expectation)
{
    return expectation->present || expectation->is_far || expectation->end >= 0;
}

_Noreturn static void refuse_unexpected(struct flow *flow, const struct expectation *expectation)
{
    long long expected = expectation->expected;
    if (expectation->is_far)
        task_refuse(
            flow, 409, "too-far",
            "More than %d events of the partition stand behind %lld. Read the key, and expect the position "
            "that you come to.",
            LOOKED_MOST, expected);
    if (expectation->end >= 0)
        task_refuse_with(flow, flow_compose(flow, "'end':%d", expectation->end), 409, "unexpected",
                         "There is no number %lld yet: the partition ends with %lld.", expected,
                         (long long)expectation->end);
    task_refuse_with(flow, flow_compose(flow, "'sequence':%d", expectation->present), 409, "unexpected",
                     "The last event of this key has the number %lld; %lld was expected.",
                     (long long)expectation->present, expected);
}

/* Looks at what stands behind the number, also in the partitions that the key was in before. False: the log was only
 * remembered until now, so the partition must be found again. */
static bool expectation_look(struct flow *flow, struct append *append, int64_t partition)
{
    struct expectation *expectation = append->expectation;
    struct chain chain = log_chain(flow, &append->layout, partition);
    struct chain_end end;
    int64_t from = expectation->checked + 1;
    bool is_known = chain_recall_end(flow, &chain, &end);
    if (is_known && end.next == from) return true;
    if (append->is_guess) {
        layout_renew(flow, append);
        for (size_t i = 0; i < append->count; i++) append->events[i].is_routed = false;
        return false;
    }
    struct log_key_reader reader = {.layout = &append->layout,
                                    .key = expectation->key,
                                    .hash = expectation->hash,
                                    .from = from,
                                    .budget = LOOKED_MOST};
    while (log_key_read(flow, &reader)) expectation->present = reader.event.sequence;
    expectation->checked = reader.from - 1;
    expectation->is_far = !reader.budget;
    if (expectation->expected && reader.budget == LOOKED_MOST) { /* nothing is behind it: is it there? */
        struct log_end last = log_end_get(flow, &append->layout, partition);
        if (last.sequence < expectation->expected) expectation->end = last.sequence;
    }
    if (is_known && end.next <= expectation->checked) chain_forget_end(flow, &chain);
    /* a repeat is told what the first was told: tokens are looked for first */
    if (is_disappointed(expectation) && !append->events[0].entry.token.data)
        refuse_unexpected(flow, expectation);
    return true;
}

struct round {
    const struct log_layout *layout;
    int64_t partition;
    uint64_t *hashes; /* of the entries' keys; NULL: nothing is expected */
};

/* Of the entries that expect something: refuses those whose key has an event behind what they expect, and has those
 * wait whose key an entry before them has. */
static void round_check(struct flow *flow, const struct chain *chain, const struct chain_end *end,
                        struct chain_entry *entries, size_t count)
{
    const struct round *round = chain->context;
    int64_t last = end->next - 1, from = last + 1;
    for (size_t i = 0; i < count; i++) {
        const struct expectation *expectation = (const struct expectation *)entries[i].together;
        if (expectation && !entries[i].number && expectation->checked + 1 < from)
            from = expectation->checked + 1;
    }
    if (from <= last) {
        struct log_reader reader = {.layout = round->layout, .partition = round->partition, .from = from};
        while (log_read_event(flow, &reader)) {
            if (reader.sequence > last) last = reader.sequence;
            for (size_t i = 0; i < count; i++) {
                struct expectation *expectation = (struct expectation *)entries[i].together;
                if (expectation && !entries[i].number && reader.sequence > expectation->expected &&
                    slice_equal(reader.key, expectation->key))
                    expectation->present = reader.sequence;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct expectation *expectation = (struct expectation *)entries[i].together;
        if (!expectation || entries[i].number) continue;
        if (expectation->checked < last) expectation->checked = last;
        expectation->together.is_refused = is_disappointed(expectation);
        expectation->together.waits = false;
        for (size_t k = 0; k < i && !expectation->together.waits; k++)
            expectation->together.waits = round->hashes[k] == round->hashes[i] && !entries[k].number &&
                                          entries[k].together != entries[i].together;
    }
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
        event->is_done = entry->number || (entry->together && entry->together->is_refused);
        if (!event->is_done) batch->has_moved = true;
    }
    batch->is_settled = true;
}

static uint64_t *round_hashes(struct flow *flow, const struct batch *own, size_t count)
{
    uint64_t *hashes = arena_array(flow->arena, uint64_t, count);
    size_t at = 0;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        const struct batch *batch = i ? flow->followers[i - 1]->share.what : own;
        for (size_t k = 0; k < batch->count; k++) hashes[at++] = batch->events[k]->hash;
    }
    return hashes;
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
    bool is_checked = false;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        struct batch *batch = i ? flow->followers[i - 1]->share.what : own;
        is_checked |= batch->events[0]->entry.together != NULL;
        for (size_t k = 0; k < batch->count; k++) entries[at++] = batch->events[k]->entry;
    }
    struct round round = {.layout = &append->layout, .partition = partition};
    struct chain checked;
    if (is_checked) {
        round.hashes = round_hashes(flow, own, count);
        checked = *chain;
        checked.check = round_check;
        checked.context = &round;
        chain = &checked;
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
        if (append->expectation && !expectation_look(flow, append, partition)) continue;
        batch_append(flow, append, batch, partition);
        if (batch->has_moved) events_move(flow, append, batch);
    }
    for (size_t i = 0; append->expectation && i < append->count; i++)
        if (!append->events[i].entry.number) refuse_unexpected(flow, append->expectation);
    bool has_reused = false;
    for (size_t i = 0; i < append->count; i++) has_reused |= append->events[i].is_reused;
    if (has_reused && append->count == 1) {
        flow_refuse(flow, 422, "token-reused", "This token belongs to another event.");
        return;
    }
    if (flow_given(flow, APPEND_EVENTS)) buf_text(flow->body, "{\"events\":[");
    for (size_t i = 0; i < append->count; i++) {
        if (i) buf_byte(flow->body, ',');
        const struct event *event = &append->events[i];
        if (event->is_reused)
            buf_text(flow->body, "{\"error\":\"token-reused\"}");
        else
            flow_put(flow, flow->body, "{'partition':'%d','sequence':%d%A}", event->partition,
                     event->entry.number, event->entry.is_repeated ? SLICE(",\"repeated\":true") : SLICE(""));
    }
    if (flow_given(flow, APPEND_EVENTS)) buf_text(flow->body, "]}");
    flow_finish(flow, has_reused ? 422 : 201);
}
