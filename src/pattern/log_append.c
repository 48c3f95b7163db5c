/* Appending to a log: one transaction moves a partition's head from n to n + k and puts k events.
 *
 * Flows of one process that append to the same partition at the same time join (flow_join): whoever leads
 * writes the events of all, so they do not race each other; the next leader begins on the head that this one
 * leaves (flow_hand_on), in the engine of this process without waiting for it. Another process's append moves
 * the head under the transaction; it is then made again on the head that came back. A head that is sealed
 * sends its events to the children, by the route that stands there now. A token's item is put by the same
 * transaction; where one is there already the event was appended before, and keeps its number. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/log.h"
#include "pattern/tokens.h"

#define EVENTS_MOST  1000 /* of one request */
#define EVENTS_FIRST 32   /* room for so many at first */
#define KEY_MOST     1024
#define TOKEN_MOST   255
#define ITEM_SLACK   4096 /* of an event's item, besides key, data and token */

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
                           "to one partition is appended by one transaction for each 99"},
    [APPEND_REPEATS] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                        .help = "a token for all events of the call"},
};

struct event {
    struct slice key, data, token; /* data: plain JSON */
    uint64_t hash;                 /* of the key */
    int64_t partition;             /* where it belongs; when it is done, where it is */
    bool is_routed, is_done, is_repeated, is_reused;
    int64_t sequence;
};

/* Events of one flow for one partition. */
struct batch {
    struct event **events;
    size_t count, actions, bytes;
    bool is_settled;
    bool has_moved; /* the partition is sealed: ask for the route */
};

struct append {
    struct log_layout layout;
    struct event *events;
    size_t count, room;
    bool asks_routes; /* the layout is not the first any more */
    bool is_alone;    /* it went wrong together */
    struct batch batch;
    struct slice key; /* of the partition that is led */
    struct event **round;
    size_t round_count;
    bool has_head;
    int64_t sequence, time_ms, touched_s; /* of the head as it was seen */
};

static flow_step append_layout, append_next, append_route, append_routed, append_lead, append_led,
    append_head, append_write, append_written;

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

static bool take_data(struct flow *flow, size_t number, struct slice value, struct slice *out)
{
    const char *wrong = plain_fault(flow->arena, value);
    *out = value;
    if (!wrong) return true;
    flow_refuse(flow, 400, "bad-request", "event %zu: data cannot be stored: %s.", number, wrong);
    return false;
}

static bool take_member(struct flow *flow, size_t number, struct slice name, struct slice member,
                        struct event *event)
{
    if (slice_equal(name, SLICE("key"))) return take_name(flow, number, "key", member, KEY_MOST, &event->key);
    if (slice_equal(name, SLICE("data"))) return take_data(flow, number, member, &event->data);
    if (slice_equal(name, SLICE("token")))
        return take_name(flow, number, "token", member, TOKEN_MOST, &event->token);
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
    if (flow_given(flow, APPEND_TOKEN)) append->events[0].token = flow_text(flow, APPEND_TOKEN);
    if (!flow_given(flow, APPEND_KEY)) flow_refuse(flow, 400, "bad-request", "key is missing.");
    return flow_given(flow, APPEND_KEY);
}

void log_append_begin(struct flow *flow)
{
    struct append *append = flow->state = arena_new(flow->arena, struct append);
    bool has_one = flow_given(flow, APPEND_KEY) || flow_given(flow, APPEND_DATA) ||
                   flow_given(flow, APPEND_TOKEN);
    if (flow_given(flow, APPEND_EVENTS) && has_one) {
        flow_refuse(flow, 400, "bad-request", "events exclude key, data and token.");
        return;
    }
    if (flow_given(flow, APPEND_EVENTS) ? !take_list(flow, append) : !take_one(flow, append)) return;
    for (size_t i = 0; i < append->count; i++) {
        struct event *event = &append->events[i];
        if (!event_fits(flow, i, event)) return;
        if (!event->token.data) event->token = token_of_call(flow, append, i);
        event->hash = hash_bytes(event->key);
    }
    log_layout_ask(flow, append_layout);
}

/* ---- where it belongs ---- */

static void append_layout(struct flow *flow)
{
    struct append *append = flow->state;
    if (!log_layout_read(flow, flow_item(flow), &append->layout)) return;
    append->asks_routes = append->layout.version > 0;
    append_next(flow);
}

static struct event *event_unrouted(struct append *append)
{
    for (size_t i = 0; i < append->count; i++)
        if (!append->events[i].is_routed && !append->events[i].is_done) return &append->events[i];
    return NULL;
}

/* All events of the range are the partition's. */
static void route_take(struct append *append, const struct log_range *range)
{
    for (size_t i = 0; i < append->count; i++) {
        struct event *event = &append->events[i];
        if (event->is_routed || event->hash < range->from || event->hash > range->to) continue;
        event->partition = range->partition;
        event->is_routed = true;
    }
}

static void append_route(struct flow *flow)
{
    struct append *append = flow->state;
    log_route_ask(flow, append_routed, event_unrouted(append)->hash);
}

static void append_routed(struct flow *flow)
{
    struct append *append = flow->state;
    struct event *event = event_unrouted(append);
    struct raw_look look;
    struct slice item;
    struct log_range range;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    bool is_route = raw_look_next(&look, NULL, &item) && log_range_read(flow, item, &range) &&
                    event->hash >= range.from && event->hash <= range.to;
    if (!is_route) range = log_range_of(&append->layout, event->hash);
    route_take(append, &range);
    append_next(flow);
}

/* ---- one partition after the other ---- */

/* The next events that go together, in the order of the request. */
static void batch_take(struct flow *flow, struct append *append, const struct event *first)
{
    struct batch *batch = &append->batch;
    *batch = (struct batch){.events = arena_array(flow->arena, struct event *, append->count)};
    for (size_t i = 0; i < append->count; i++) {
        struct event *event = &append->events[i];
        if (event->is_done || event->partition != first->partition) continue;
        size_t actions = event->token.data ? 2 : 1, bytes = event->key.len + event->data.len + ITEM_SLACK;
        if (batch->count &&
            (batch->actions + actions > FLOW_ROUND_ACTIONS || batch->bytes + bytes > FLOW_ROUND_BYTES))
            break;
        batch->events[batch->count++] = event;
        batch->actions += actions;
        batch->bytes += bytes;
    }
}

static void put_result(struct flow *flow, const struct event *event)
{
    if (event->is_reused)
        buf_text(flow->body, "{\"error\":\"token-reused\"}");
    else
        buf_slice(flow->body, flow_compose(flow, "{'partition':%s,'sequence':%d%r}",
                                           log_partition_text(flow, event->partition), event->sequence,
                                           event->is_repeated ? SLICE(",\"repeated\":true") : SLICE("")));
}

static void append_tell(struct flow *flow)
{
    struct append *append = flow->state;
    bool is_reused = false;
    for (size_t i = 0; i < append->count; i++) is_reused |= append->events[i].is_reused;
    if (is_reused && append->count == 1) {
        flow_refuse(flow, 422, "token-reused", "This token belongs to another event.");
        return;
    }
    if (!flow_given(flow, APPEND_EVENTS)) {
        put_result(flow, &append->events[0]);
    } else {
        buf_text(flow->body, "{\"events\":[");
        for (size_t i = 0; i < append->count; i++) {
            if (i) buf_byte(flow->body, ',');
            put_result(flow, &append->events[i]);
        }
        buf_text(flow->body, "]}");
    }
    flow_finish(flow, is_reused ? 422 : 201);
}

static void append_next(struct flow *flow)
{
    struct append *append = flow->state;
    const struct event *first = NULL;
    while (!append->asks_routes && event_unrouted(append)) {
        struct log_range range = log_range_of(&append->layout, event_unrouted(append)->hash);
        route_take(append, &range);
    }
    if (event_unrouted(append)) {
        append_route(flow);
        return;
    }
    for (size_t i = 0; i < append->count && !first; i++)
        if (!append->events[i].is_done) first = &append->events[i];
    if (!first) {
        append_tell(flow);
        return;
    }
    batch_take(flow, append, first);
    append->key = log_key(flow, first->partition);
    if (append->is_alone) {
        flow->follower_count = 0;
        append_lead(flow);
        return;
    }
    struct flow_share share = {&append->batch, append->batch.actions, append->batch.bytes};
    flow_join(flow, flow_topic("append", append->key, flow->world->prefix), share, append_lead, append_led);
}

/* Its part has been done: by its leader or by itself. */
static void append_go_on(struct flow *flow)
{
    struct append *append = flow->state;
    if (append->batch.has_moved) {
        for (size_t i = 0; i < append->batch.count; i++) append->batch.events[i]->is_routed = false;
        append->asks_routes = true;
        flow_again(flow, append_next);
    } else {
        append_next(flow);
    }
}

static void append_led(struct flow *flow)
{
    struct append *append = flow->state;
    if (append->batch.is_settled) {
        append_go_on(flow);
    } else if (flow->led_status >= 500) {
        flow->retry_after_ms = 1000;
        flow_refuse(flow, flow->led_status, "busy", "The database did not get to it. Try again later.");
    } else { /* something is wrong with what another flow brought along */
        append->is_alone = true;
        append_next(flow);
    }
}

/* ---- the round ---- */

static int64_t time_of(const struct flow *flow)
{
    const struct append *append = flow->state;
    return flow->now_ms > append->time_ms ? flow->now_ms : append->time_ms;
}

static int64_t touched_of(const struct flow *flow)
{
    const struct append *append = flow->state;
    int64_t touched_s = time_of(flow) / 1000;
    return touched_s > append->touched_s ? touched_s : append->touched_s;
}

/* The head as the round before leaves it, or as good as has left it. */
static bool baton_take(struct flow *flow)
{
    struct append *append = flow->state;
    if (!flow->baton.is_given) return false;
    append->has_head = true;
    append->sequence = flow->baton.numbers[0];
    append->time_ms = flow->baton.numbers[1];
    append->touched_s = flow->baton.numbers[2];
    return true;
}

static void baton_give(struct flow *flow, int64_t sequence)
{
    struct flow_baton baton = {.is_given = true, .numbers = {sequence, time_of(flow), touched_of(flow)}};
    flow_hand_on(flow, &baton);
}

static void append_lead(struct flow *flow)
{
    struct append *append = flow->state;
    size_t count = append->batch.count;
    for (size_t i = 0; i < flow->follower_count; i++)
        count += ((struct batch *)flow->followers[i]->share.what)->count;
    append->round = arena_array(flow->arena, struct event *, count);
    append->round_count = 0;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        struct batch *batch = i ? flow->followers[i - 1]->share.what : &append->batch;
        memcpy(append->round + append->round_count, batch->events, batch->count * sizeof *batch->events);
        append->round_count += batch->count;
    }
    if (baton_take(flow))
        append_write(flow);
    else
        flow_call(flow, append_head, "GetItem",
                  "{'TableName':%T,'Key':{'partition':%S},'ConsistentRead':true}", &log_heads, append->key);
}

/* All shares are dealt with. Followers are not touched afterwards. */
static void round_end(struct flow *flow, bool has_moved)
{
    struct append *append = flow->state;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        struct batch *batch = i ? flow->followers[i - 1]->share.what : &append->batch;
        batch->has_moved = has_moved;
        batch->is_settled = true;
    }
    flow_disband(flow);
    append_go_on(flow);
}

/* False when the partition is sealed. */
static bool head_take(struct flow *flow, struct slice head)
{
    struct append *append = flow->state;
    append->has_head = head.data != NULL;
    append->sequence = item_int(flow->arena, head, "sequence", 0);
    append->time_ms = item_int(flow->arena, head, "time", 0);
    append->touched_s = item_int(flow->arena, head, "touched", 0);
    return !item_says(flow->arena, head, "state", "SEALED");
}

static void append_head(struct flow *flow)
{
    if (head_take(flow, flow_item(flow)))
        append_write(flow);
    else
        round_end(flow, true);
}

/* The first event of the round with the same token, before this one; NULL: none. */
static struct event *token_twin(const struct append *append, size_t at)
{
    struct slice token = append->round[at]->token;
    for (size_t i = 0; token.data && i < at; i++)
        if (append->round[i]->token.data && slice_equal(append->round[i]->token, token))
            return append->round[i];
    return NULL;
}

static struct slice content_hash(struct flow *flow, const struct event *event)
{
    return log_hex(flow, hash_bytes(event->key) * 31 + hash_bytes(event->data));
}

static void put_head_action(struct flow *flow, struct buf *out, int64_t sequence, int64_t partition)
{
    const struct append *append = flow->state;
    int64_t time_ms = time_of(flow), touched_s = touched_of(flow);
    if (append->has_head)
        buf_slice(out, flow_compose(
                           flow,
                           "{'Update':{'TableName':%T,'Key':{'partition':%S},'UpdateExpression':'SET "
                           "#sequence = :new, #time = :time, #touched = :touched',"
                           "'ConditionExpression':'#sequence = :old and #state = :open',%#,"
                           "'ExpressionAttributeValues':{':new':%N,"
                           "':time':%N,':touched':%N,':old':%N,':open':{'S':'OPEN'}},%O}}",
                           &log_heads, append->key, sequence, time_ms, touched_s, append->sequence));
    else
        buf_slice(out, flow_compose(flow,
                                    "{'Put':{'TableName':%T,'Item':{'partition':%S,'sequence':%N,'time':%N,"
                                    "'touched':%N,'slot':%S,'state':{'S':'OPEN'}},"
                                    "'ConditionExpression':'attribute_not_exists(#partition)',%#,%O}}",
                                    &log_heads, append->key, sequence, time_ms, touched_s,
                                    log_slot(flow, partition % append->layout.slots)));
}

/* What tokens are known by: a log that is made anew knows none of those of the one before. */
static struct slice token_name(struct flow *flow)
{
    const struct append *append = flow->state;
    return arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(flow_text(flow, LOG_NAME)),
                        SLICE_ARG(append->layout.created));
}

static void put_event_action(struct flow *flow, struct buf *out, const struct event *event)
{
    const struct append *append = flow->state;
    int64_t time_ms = time_of(flow), keep_s = append->layout.keep_s;
    flow_put(flow, out,
             ",{'Put':{'TableName':%T,'Item':{'partition':%S,'sequence':%N,'key':%S,'time':%N,'data':%J%r},"
             "'ConditionExpression':'attribute_not_exists(#sequence)',%#}}",
             &log_events, append->key, event->sequence, event->key, time_ms, event->data,
             keep_s ? flow_compose(flow, ",'expires':%N", time_ms / 1000 + keep_s) : SLICE(""));
    if (!event->token.data) return;
    buf_byte(out, ',');
    buf_slice(out, token_put(flow, "log", token_name(flow), event->token,
                             flow_compose(flow, ",'partition':%N,'sequence':%N,'hash':%S", event->partition,
                                          event->sequence, content_hash(flow, event))));
}

static void append_write(struct flow *flow)
{
    struct append *append = flow->state;
    struct buf actions = {0}, events = {0};
    int64_t sequence = append->sequence;
    for (size_t i = 0; i < append->round_count; i++) {
        struct event *event = append->round[i];
        if (event->is_done || token_twin(append, i)) continue;
        event->sequence = ++sequence;
        put_event_action(flow, &events, event);
    }
    if (sequence == append->sequence) {
        round_end(flow, false);
    } else {
        put_head_action(flow, &actions, sequence, append->round[0]->partition);
        buf_slice(&actions, buf_view(&events));
        flow_call(flow, append_written, "TransactWriteItems", "{'TransactItems':[%A]}", buf_view(&actions));
        baton_give(flow, sequence);
    }
    buf_free(&actions);
    buf_free(&events);
}

/* The events with a token that has been used: they stand where it says. */
static void repeats_take(struct flow *flow)
{
    struct append *append = flow->state;
    unsigned action = 1;
    for (size_t i = 0; i < append->round_count; i++) {
        struct event *event = append->round[i];
        struct slice token;
        if (event->is_done || token_twin(append, i)) continue;
        action++;
        if (!event->token.data || !flow_reason(flow, action++, &token)) continue;
        event->partition = item_int(flow->arena, token, "partition", 0);
        event->sequence = item_int(flow->arena, token, "sequence", 0);
        event->is_reused = !slice_equal(item_text(flow->arena, token, "hash"), content_hash(flow, event));
        event->is_done = event->is_repeated = true;
    }
}

/* Events that share a token with an earlier one of the round are that one, once it is done. */
static void twins_take(struct flow *flow)
{
    struct append *append = flow->state;
    for (size_t i = 0; i < append->round_count; i++) {
        struct event *event = append->round[i], *twin = token_twin(append, i);
        if (event->is_done || !twin || !twin->is_done) continue;
        event->partition = twin->partition;
        event->sequence = twin->sequence;
        event->is_reused = !slice_equal(content_hash(flow, twin), content_hash(flow, event));
        event->is_done = event->is_repeated = true;
    }
}

/* The head is as it was: tokens had been used, and the others are written without their events. Else an event
 * stands behind the head's number, which no flow leaves there. */
static void append_rest(struct flow *flow, size_t left)
{
    const struct append *append = flow->state;
    size_t still_left = 0;
    for (size_t i = 0; i < append->round_count; i++) still_left += !append->round[i]->is_done;
    if (still_left < left)
        append_write(flow);
    else
        flow_refuse(flow, 409, "event-there",
                    "Behind the last number of %.*s, %lld, an event stands already.", SLICE_ARG(append->key),
                    (long long)append->sequence);
}

static void append_written(struct flow *flow)
{
    struct append *append = flow->state;
    struct slice head;
    size_t left = 0;
    if (!flow_failed(flow)) {
        for (size_t i = 0; i < append->round_count; i++)
            if (!append->round[i]->is_done && !token_twin(append, i)) append->round[i]->is_done = true;
        twins_take(flow);
        flow_wake(flow, log_topic(flow));
        round_end(flow, false);
        return;
    }
    flow_drop_baton(flow);
    for (size_t i = 0; i < append->round_count; i++) left += !append->round[i]->is_done;
    bool has_raced = flow_reason(flow, 0, &head);
    repeats_take(flow);
    twins_take(flow);
    if (has_raced && !head_take(flow, head))
        round_end(flow, true);
    else if (has_raced)
        flow_again(flow, append_write);
    else
        append_rest(flow, left);
}
