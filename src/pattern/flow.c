/* What all flows have in common: begin, go on, deal with the troubles of the service, end. */
#include "pattern/flow.h"

#include "base/compose.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "dynamo/dynamo.h"
#include "fiber/fiber.h"
#include "pattern/pattern.h"

#define PAUSE_FIRST_MS 4 /* the bound of the first back-off; it doubles with each */
#define PAUSE_MOST_MS  500
#define ATTEMPTS_MOST  12 /* of one call: about three seconds; a remote door has tried for itself before */
#define RACES_MOST     80 /* lost by one flow: about twenty seconds */
#define RETRY_AFTER_MS 1000
#define STEP_WAKES     8 /* topics that one step of a walk wakes */

/* ---- beginning ---- */

static void flow_init(struct flow *flow, const struct flow_start *start)
{
    *flow = (struct flow){.world = start->world,
                          .request = start->request,
                          .arena = start->arena,
                          .now_ms = start->now_ms,
                          .serial = start->serial,
                          .body = start->body,
                          .row = start->row,
                          .body_start = start->body->len,
                          .makes_tables = true};
    random_seed(&flow->random, start->seed);
}

struct beginning {
    struct flow *flow;
    flow_step *step;
};

static void task_run(void *argument)
{
    struct beginning begun = *(const struct beginning *)argument; /* which is gone when it has waited */
    begun.step(begun.flow);
}

static void task_start(struct flow *flow, flow_step *step)
{
    struct beginning begun = {flow, step};
    flow->fiber = fiber_start(task_run, &begun);
    ensure(flow->fiber || flow->want == FLOW_DONE);
}

static void task_resume(struct flow *flow)
{
    if (!fiber_resume(flow->fiber)) flow->fiber = NULL;
    ensure(flow->fiber || flow->want == FLOW_DONE);
}

/* Comes back when what is wanted has happened. */
static void task_wait(struct flow *flow, enum flow_want want)
{
    flow->want = want;
    fiber_wait();
    flow->wakes = NULL;
}

void flow_release(struct flow *flow)
{
    if (!flow->fiber || fiber_current() == flow->fiber) return;
    fiber_drop(flow->fiber);
    flow->fiber = NULL;
}

_Noreturn void task_end(struct flow *flow)
{
    ensure(flow->want == FLOW_DONE);
    fiber_end();
}

void flow_begin(struct flow *flow, const struct flow_start *start)
{
    flow_init(flow, start);
    if (fields_read(flow)) task_start(flow, flow->row->begin);
}

void flow_begin_sweep(struct flow *flow, const struct flow_start *start, const struct flow_sweep *sweep)
{
    flow_init(flow, start);
    flow->makes_tables = false;
    flow->looks_first = true;
    task_start(flow, sweep->begin);
}

/* ---- texts ---- */

/* The table's name, and it is noted for the case that there is no such table. */
static void put_table(struct flow *flow, struct buf *out, const struct flow_table *table)
{
    buf_byte(out, '"');
    buf_slice(out, flow->world->prefix);
    buf_slice(out, slice_of(table->name));
    buf_byte(out, '"');
    ensure(!flow->table || flow->table == table);
    flow->table = table;
}

struct flow_composer {
    struct composer composer; /* first */
    struct flow *flow;
};

static void put_other(struct composer *composer, char kind, va_list *args)
{
    ensure(kind == 'T');
    put_table(((struct flow_composer *)composer)->flow, composer->out,
              va_arg(*args, const struct flow_table *));
}

static void flow_vcompose(struct flow *flow, struct buf *out, const char *format, va_list args)
{
    struct flow_composer own;
    own.composer.out = out;
    own.composer.arena = flow->arena;
    own.composer.put_other = put_other;
    own.flow = flow;
    compose_with(&own.composer, format, args);
}

void flow_put(struct flow *flow, struct buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    flow_vcompose(flow, out, format, args);
    va_end(args);
}

struct slice flow_compose(struct flow *flow, const char *format, ...)
{
    struct buf out = {0};
    va_list args;
    va_start(args, format);
    flow_vcompose(flow, &out, format, args);
    va_end(args);
    return arena_take(flow->arena, &out);
}

/* ---- troubles ---- */

static int64_t back_off_ms(struct flow *flow, unsigned times)
{
    return 1 +
           dynamo_pause_us(times + 1, PAUSE_FIRST_MS * 1000, PAUSE_MOST_MS * 1000, flow_random(flow)) / 1000;
}

static _Noreturn void refuse_busy(struct flow *flow, struct slice sentence)
{
    flow->retry_after_ms = RETRY_AFTER_MS;
    task_refuse(flow, 503, "busy", "%.*s Try again later.", SLICE_ARG(sentence));
}

void flow_refuse_call(struct flow *flow)
{
    struct slice name, message;
    dynamo_error(flow->reply.body, flow->arena, &name, &message);
    if (flow->reply.status == 0) {
        flow_refuse(flow, 503, "no-reply", "The database did not answer: %.*s", SLICE_ARG(message));
    } else if (slice_equal(name, SLICE(DYNAMO_NOT_ISOLATED))) {
        flow_refuse(flow, 501, "not-isolated", "%.*s", SLICE_ARG(message));
    } else if (slice_contains(message, SLICE("size has exceeded")) ||
               slice_contains(message, SLICE("exceeded the maximum allowed size"))) {
        flow_refuse(flow, 413, "too-large",
                    "What was sent does not fit: an item of DynamoDB holds at most 400 KB.");
    } else if (slice_equal(name, SLICE("ValidationException"))) {
        flow_refuse(flow, 400, "refused", "The database refused it: %.*s", SLICE_ARG(message));
    } else {
        flow_refuse(flow, 502, "database-error", "The database answered %.*s: %.*s", SLICE_ARG(name),
                    SLICE_ARG(message));
    }
}

enum verdict { CALL_SETTLED, CALL_PASSES, CALL_LACKS_TABLE, CALL_REFUSED };

static enum verdict verdict_of(struct flow *flow, bool sees_error)
{
    enum dynamo_fault fault = dynamo_fault(flow->reply.status, flow->reply.error);
    if (fault == DYNAMO_FINE || fault == DYNAMO_CONDITION) return CALL_SETTLED;
    if (dynamo_fault_may_pass(fault) && flow->reply.status != 0) return CALL_PASSES;
    if (sees_error) return CALL_SETTLED;
    bool makes_tables = fault == DYNAMO_MISSING && flow->makes_tables && flow->table;
    return makes_tables ? CALL_LACKS_TABLE : CALL_REFUSED;
}

/* Makes the call until its reply is for the task. */
void flow_call(struct flow *flow, bool sees_error, const char *operation, const char *format, ...)
{
    struct buf out = {0};
    va_list args;
    buf_reserve(&out, 512);
    va_start(args, format);
    flow_vcompose(flow, &out, format, args);
    va_end(args);
    struct slice call = cost_ask(flow, slice_of(operation), buf_view(&out));
    buf_free(&out);
    for (unsigned attempts = 0;;) {
        flow->operation = slice_of(operation);
        flow->call = call;
        task_wait(flow, FLOW_CALL);
        cost_count(flow);
        switch (verdict_of(flow, sees_error)) {
        case CALL_SETTLED:
            if (flow->looks_first) flow->makes_tables = true;
            flow->looks_first = false;
            flow->table = NULL;
            return;
        case CALL_PASSES:
            if (attempts++ == ATTEMPTS_MOST)
                refuse_busy(flow, arena_printf(flow->arena, "The database did not get to it (%.*s).",
                                               SLICE_ARG(flow->reply.error)));
            flow->pause_ms = back_off_ms(flow, attempts);
            task_wait(flow, FLOW_PAUSE);
            break;
        case CALL_LACKS_TABLE: flow_make_table(flow); break;
        case CALL_REFUSED: flow_refuse_call(flow); task_end(flow);
        }
    }
}

/* ---- going on ---- */

void flow_rest(struct flow *flow)
{
    ensure(flow->want == FLOW_WATCH);
    flow->reply = (struct flow_reply){0};
    flow->etag = SLICE_NONE;
    flow->wakes = NULL;
    arena_rewind(flow->arena, flow->mark);
}

void flow_rewind(struct flow *flow, struct arena_mark mark)
{
    struct flow_wake wakes[STEP_WAKES];
    size_t count = 0;
    for (const struct flow_wake *wake = flow->wakes; wake; wake = wake->next) {
        ensure(count < STEP_WAKES);
        wakes[count++] = *wake;
    }
    flow->reply = (struct flow_reply){0};
    flow->wakes = NULL;
    flow->races = 0;
    arena_rewind(flow->arena, mark);
    while (count) {
        flow_wake(flow, wakes[--count].topic);
        flow->wakes->at_ms = wakes[count].at_ms;
    }
}

void flow_next(struct flow *flow, int64_t now_ms, const struct flow_reply *reply)
{
    flow->now_ms = now_ms;
    if (flow->want == FLOW_WATCH) flow_rest(flow);
    ensure((flow->want == FLOW_CALL) == (reply != NULL) && flow->want != FLOW_DONE);
    if (reply) flow->reply = *reply;
    task_resume(flow);
}

void flow_give_up(struct flow *flow)
{
    flow->retry_after_ms = RETRY_AFTER_MS;
    flow_refuse(flow, 503, "stopping", "The server is stopping. Try again.");
}

static void flow_drop(struct flow *flow)
{
    flow_refuse(flow, 408, "client-gone", "The connection was closed while the request waited.");
}

void flow_abandon(struct flow *flow, int64_t now_ms)
{
    ensure(flow->want == FLOW_WATCH);
    flow->is_gone = true;
    flow->now_ms = now_ms;
    flow_rest(flow);
    if (flow->outlives_client)
        task_resume(flow);
    else
        flow_drop(flow);
}

struct slice task_get(struct flow *flow, const struct flow_table *table, const char *key, ...)
{
    struct buf out = {0};
    va_list args;
    va_start(args, key);
    flow_vcompose(flow, &out, key, args);
    va_end(args);
    struct slice composed = arena_take(flow->arena, &out); /* the task may end while it waits */
    task_call(flow, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}", table, composed);
    return flow_item(flow);
}

void task_sleep(struct flow *flow, int64_t ms)
{
    flow->pause_ms = ms;
    flow->table = NULL;
    task_wait(flow, FLOW_PAUSE);
}

void task_again(struct flow *flow)
{
    if (flow->races++ == RACES_MOST)
        refuse_busy(flow, SLICE("Too many others write the same thing at the same time."));
    task_sleep(flow, back_off_ms(flow, flow->races - 1));
}

void task_outlives_client(struct flow *flow)
{
    flow->outlives_client = true;
}

void flow_look(struct flow *flow)
{
    if (flow->look == LOOK_NEVER) flow->mark = arena_mark(flow->arena);
    flow->look = LOOK_BEGINS;
}

/* The same request makes the same calls. */
static uint64_t kin_of(const struct flow *flow, uint64_t topic)
{
    const struct rest_call *request = flow->request;
    uint64_t parts[4] = {topic, hash_bytes(request->path), hash_bytes(request->query),
                         hash_bytes(request->body)};
    return hash_bytes((struct slice){(const char *)parts, sizeof parts});
}

void task_watch_as(struct flow *flow, uint64_t topic, uint64_t thing, uint64_t kin, int64_t change_ms,
                   int64_t until_ms)
{
    ensure(flow->look != LOOK_NEVER);
    if (flow->is_gone) {
        flow_drop(flow);
        task_end(flow);
    }
    flow->topic = topic;
    flow->thing = thing;
    flow->kin = kin ? kin : kin_of(flow, topic);
    flow->until_ms = until_ms;
    flow->change_ms = change_ms;
    flow->table = NULL;
    task_wait(flow, FLOW_WATCH);
}

void task_watch(struct flow *flow, uint64_t topic, uint64_t thing, int64_t until_ms)
{
    task_watch_as(flow, topic, thing, 0, INT64_MAX, until_ms);
}

void task_piece(struct flow *flow, struct slice piece)
{
    flow->piece = piece;
    flow->table = NULL;
    task_wait(flow, FLOW_PIECE);
}

bool task_join(struct flow *flow, uint64_t topic, struct flow_share share)
{
    flow->topic = topic;
    flow->share = share;
    flow->leads = true;
    flow->followers = NULL;
    flow->follower_count = 0;
    flow->led_status = 0;
    flow->table = NULL;
    task_wait(flow, FLOW_JOIN);
    return flow->leads;
}

void flow_disband(struct flow *flow)
{
    flow->disbands = true;
    flow->follower_count = 0;
}

/* ---- ending ---- */

void flow_finish(struct flow *flow, int status)
{
    flow->want = FLOW_DONE;
    flow->status = status;
    cost_tell(flow);
    flow_release(flow); /* where the task is not asked any more */
}

void flow_answer(struct flow *flow, int status, const char *format, ...)
{
    va_list args;
    flow->body->len = flow->body_start;
    va_start(args, format);
    flow_vcompose(flow, flow->body, format, args);
    va_end(args);
    flow_finish(flow, status);
}

void flow_refuse_with(struct flow *flow, struct slice members, int status, const char *code,
                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice sentence = arena_vprintf(flow->arena, format, args);
    va_end(args);
    flow->content_type = SLICE_NONE;
    flow->is_bare = false;
    flow_answer(flow, status, "{'error':%s,'message':%s%[%?,%A%]}", slice_of(code), sentence, members.len > 0,
                members);
}

/* ---- topics ---- */

static uint64_t hash_three(struct slice a, struct slice b, struct slice c)
{
    uint64_t parts[3] = {hash_bytes(a), hash_bytes(b), hash_bytes(c)};
    return hash_bytes((struct slice){(const char *)parts, sizeof parts});
}

uint64_t flow_topic(const char *kind, struct slice name, struct slice more)
{
    return hash_three(slice_of(kind), name, more);
}

void flow_wake(struct flow *flow, uint64_t topic)
{
    struct flow_wake *wake = arena_new(flow->arena, struct flow_wake);
    *wake = (struct flow_wake){topic, 0, flow->wakes};
    flow->wakes = wake;
}

void flow_wake_kin_at(struct flow *flow, uint64_t kin, int64_t at_ms)
{
    flow_wake(flow, kin);
    flow->wakes->at_ms = at_ms;
}

/* The word that all tables of a pattern begin with: "job" of jobs and job-parts. */
static struct slice kind_of_table(struct slice table)
{
    struct slice kind = slice_cut(&table, '-');
    if (kind.len && kind.data[kind.len - 1] == 's') kind.len--;
    return kind;
}

/* Keys of further tables begin with the name as rest_encode writes it, and a slash. So that both forms are the
 * same thing, only what stands before the first character that is written otherwise counts. */
static struct slice name_begin(struct slice key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    size_t len = 0;
    while (len < key.len && key.data[len] && strchr(plain, key.data[len])) len++;
    return (struct slice){key.data, len};
}

uint64_t flow_thing(const char *kind, struct slice name)
{
    return hash_three(slice_of(kind), name_begin(name), SLICE(""));
}

uint64_t flow_item_thing(const struct flow_table *table, struct slice hash, struct slice range)
{
    return hash_three(slice_of(table->name), hash, range);
}

void flow_things_of(struct slice table, struct slice hash, struct slice range, uint64_t things[FLOW_THINGS])
{
    things[0] = hash_three(kind_of_table(table), name_begin(hash), SLICE(""));
    things[1] = hash_three(table, hash, SLICE(""));
    things[2] = hash_three(table, hash, range.data ? range : SLICE(""));
}

/* ---- reading ---- */

bool flow_given(const struct flow *flow, unsigned field)
{
    return flow->fields[field].given;
}

struct slice flow_text(const struct flow *flow, unsigned field)
{
    return flow->fields[field].text;
}

struct slice flow_text_or(const struct flow *flow, unsigned field, struct slice otherwise)
{
    return flow->fields[field].given ? flow->fields[field].text : otherwise;
}

int64_t flow_int(const struct flow *flow, unsigned field)
{
    return flow->fields[field].number;
}

int64_t flow_moment(const struct flow *flow, unsigned field)
{
    const struct field_value *value = &flow->fields[field];
    return value->given ? value->number + (value->is_time ? 0 : flow->now_ms) : 0;
}

int64_t flow_int_or(const struct flow *flow, unsigned field, int64_t otherwise)
{
    return flow->fields[field].given ? flow->fields[field].number : otherwise;
}

struct slice flow_then(const struct flow *flow, unsigned field)
{
    struct slice value = flow->fields[field].text;
    return value.data && raw_kind(value) == JSON_STRING ? raw_text(flow->arena, value) : value;
}

struct slice flow_then_shown(struct flow *flow, struct slice then)
{
    return flow->request->role == ROLE_ADMIN ? then : pattern_then_shown(then, flow->arena);
}

struct slice flow_then_member(struct flow *flow, struct slice item)
{
    struct slice then = flow_then_shown(flow, item_text(flow->arena, item, "then"));
    bool is_json = then.len && (then.data[0] == '{' || then.data[0] == '[');
    return flow_compose(flow, is_json ? ",'then':%r" : "%[,'then':%s%]", then);
}

bool flow_failed(const struct flow *flow)
{
    return flow->reply.status != 200;
}

struct slice flow_item(const struct flow *flow)
{
    struct raw_look look;
    struct slice name, value;
    raw_look_begin(&look, flow->arena, flow->reply.body);
    while (look.is_object && raw_look_next(&look, &name, &value))
        if (slice_equal(name, SLICE("Item")) || slice_equal(name, SLICE("Attributes"))) return value;
    return SLICE_NONE;
}

struct slice flow_items(const struct flow *flow)
{
    return raw_member(flow->arena, flow->reply.body, "Items");
}

struct slice flow_last_key(const struct flow *flow)
{
    return raw_member(flow->arena, flow->reply.body, "LastEvaluatedKey");
}

struct slice flow_recall(struct flow *flow, uint64_t topic)
{
    const struct flow_memory *memory = &flow->world->memory;
    return memory->recall ? memory->recall(memory->self, topic, flow->arena) : SLICE_NONE;
}

void flow_remember(struct flow *flow, uint64_t topic, struct slice what)
{
    const struct flow_memory *memory = &flow->world->memory;
    if (memory->remember) memory->remember(memory->self, topic, what);
}

void flow_forget(struct flow *flow, uint64_t topic)
{
    flow_remember(flow, topic, SLICE_NONE);
}

uint64_t flow_random(struct flow *flow)
{
    return random_next(&flow->random);
}

uint64_t flow_random_below(struct flow *flow, uint64_t bound)
{
    return random_below(&flow->random, bound);
}

struct slice flow_new_id(struct flow *flow)
{
    struct slice time = moment_text(flow->arena, flow->now_ms);
    return arena_printf(flow->arena, "%.*s-%06llx-%06llx", SLICE_ARG(time),
                        (unsigned long long)(flow->serial & 0xffffff),
                        (unsigned long long)(flow_random(flow) & 0xffffff));
}
