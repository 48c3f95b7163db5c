/* Counters: unique numbers, ever increasing.
 *
 * Table PREFIXcounters: hash key `name` (S); `value` (N): the last number that was given. From the first call with an
 *   Idempotency-Key on: `keys` (S), by which the keys of this counter are known; `given` (N), the last number that
 *   a call with a key got; `intent`, `redo` (intent.h): the token of that call is still to be put.
 * Table PREFIXtokens (tokens.h), kind "counter", the name followed by `keys`: `value` (N), the number that
 *   the call with this Idempotency-Key got; `by` (N). A counter that was removed and made anew knows none of
 *   them.
 *
 * A call adds and is told the sum by the same write, so no number is told twice. With an Idempotency-Key the
 * same write says that the key's token must follow. Whoever repeats the call has that done first and finds the
 * token, and no number is left out. Without, a reply that is lost leaves a gap.
 *
 * A counter ends at 2^53 - 1, and at the same below zero: beyond, clients that read JSON's numbers as doubles
 * would be told the same number twice. */
#include "pattern/counter.h"

#include "pattern/intent.h"
#include "pattern/names.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define NUMBER_MOST      9007199254740991 /* 2^53 - 1: what every JSON reader can hold */
#define NUMBER_MOST_TEXT "9007199254740991"

static const struct flow_table counters = {"counters", FLOW_HASH("name"), NULL};

/* ---- the next number ---- */

enum { NEXT_NAME, NEXT_BY, NEXT_BLOCK, NEXT_START, NEXT_MAX, NEXT_MIN, NEXT_KEY };

static const struct field next_fields[] = {
    [NEXT_NAME] = {"name", IN_PATH, FIELD_NAME, true, .help = "the counter"},
    [NEXT_BY] = {"by", IN_BODY, FIELD_INT, .min = -NUMBER_MOST, .max = NUMBER_MOST,
                 .help = "what to add (default: 1)"},
    [NEXT_BLOCK] = {"block", IN_BODY, FIELD_INT, .min = 1, .max = 1000000000,
                    .help = "how many numbers to take at once"},
    [NEXT_START] = {"start", IN_BODY, FIELD_INT, .min = -NUMBER_MOST, .max = NUMBER_MOST,
                    .help = "the first number of a new counter (default: what is added to 0)"},
    [NEXT_MAX] = {"max", IN_BODY, FIELD_INT, .min = -NUMBER_MOST, .max = NUMBER_MOST,
                  .help = "the value is never raised above it"},
    [NEXT_MIN] = {"min", IN_BODY, FIELD_INT, .min = -NUMBER_MOST, .max = NUMBER_MOST,
                  .help = "the value is never lowered below it"},
    [NEXT_KEY] = {"Idempotency-Key", IN_HEADER, FIELD_NAME, .help = "a repeated call gets its number again"},
};

static int64_t by_of(const struct flow *flow)
{
    return flow_given(flow, NEXT_BLOCK) ? flow_int(flow, NEXT_BLOCK) : flow_int_or(flow, NEXT_BY, 1);
}

/* Where a counter stands that does not exist yet: before `start`, which is the first number that it hands out. */
static int64_t origin_of(const struct flow *flow)
{
    if (!flow_given(flow, NEXT_START)) return 0;
    return flow_int(flow, NEXT_START) - (flow_given(flow, NEXT_BLOCK) ? 1 : by_of(flow));
}

static _Noreturn void refuse_no_number(struct flow *flow, struct slice value)
{
    task_refuse(flow, 409, "no-whole-number", "The counter's value is no whole number of 63 bits: %.*s.",
                SLICE_ARG(value));
}

/* The number of a counter; SLICE_NONE where there is none yet. What is no number ends the task. */
static struct slice value_of(struct flow *flow, struct slice item)
{
    struct slice attribute = item_attribute(flow->arena, item, "value");
    if (!attribute.data) return SLICE_NONE;
    struct slice number = raw_member(flow->arena, attribute, "N");
    if (number.data) return raw_text(flow->arena, number);
    refuse_no_number(flow, flow_compose(flow, "%P", attribute));
}

static void tell(struct flow *flow, struct slice value)
{
    int64_t last;
    if (!flow_given(flow, NEXT_BLOCK))
        flow_answer(flow, 200, "{'value':%r}", value);
    else if (raw_int(value, &last))
        flow_answer(flow, 200, "{'first':%d,'last':%r}", last - by_of(flow) + 1, value);
    else
        refuse_no_number(flow, value);
}

static _Noreturn void refuse_end(struct flow *flow, struct slice value, bool rises)
{
    task_refuse_with(flow, flow_compose(flow, "'value':%r", value), 409, "limit-reached",
                     "The counter stands at %.*s; counters end at %s%lld (2^53 - 1), beyond which JSON's "
                     "numbers are not exact.",
                     SLICE_ARG(value), rises ? "" : "-", (long long)NUMBER_MOST);
}

/* `value`: where the counter stands; SLICE_NONE: it is not there. */
static _Noreturn void refuse_limit(struct flow *flow, struct slice value)
{
    bool rises = by_of(flow) > 0;
    if (!value.data) value = flow_compose(flow, "%d", origin_of(flow));
    if (!flow_given(flow, rises ? NEXT_MAX : NEXT_MIN)) refuse_end(flow, value, rises);
    task_refuse_with(flow, flow_compose(flow, "'value':%r", value), 409, "limit-reached",
                     "The counter stands at %.*s; its next value would pass the given %s.", SLICE_ARG(value),
                     rises ? "max" : "min");
}

/* The limit that counts in the direction of the call. */
static int64_t limit_of(const struct flow *flow)
{
    return by_of(flow) > 0 ? flow_int_or(flow, NEXT_MAX, NUMBER_MOST)
                           : flow_int_or(flow, NEXT_MIN, -NUMBER_MOST);
}

/* The first call of a counter finds that it is not there, and enters its name before it makes it. */
static bool is_to_make(struct flow *flow, struct slice name, bool *may_make)
{
    if (*may_make || !flow_failed(flow) || item_has(flow->arena, flow_item(flow), "value")) return false;
    names_enter(flow, SLICE("counter"), name);
    return *may_make = true;
}

static bool is_beyond(const struct flow *flow, __int128 value)
{
    return by_of(flow) > 0 ? value > limit_of(flow) : value < limit_of(flow);
}

/* The condition that keeps the value within its limit, by :bound; a counter that does not exist yet stands at its
 * origin, where it may be made. */
static struct slice limit_condition(struct flow *flow, bool may_make)
{
    int64_t by = by_of(flow);
    if (!may_make || is_beyond(flow, (__int128)origin_of(flow) + by))
        return by > 0 ? SLICE("#value <= :bound") : SLICE("#value >= :bound");
    return by > 0 ? SLICE("attribute_not_exists(#value) or #value <= :bound")
                  : SLICE("attribute_not_exists(#value) or #value >= :bound");
}

struct slice counter_add_one(struct flow *flow, struct slice name)
{
    bool may_make = false;
    do {
        task_call(flow, "UpdateItem",
                  "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'ADD #value :one',"
                  "'ConditionExpression':'%r#value < :most',%#,"
                  "'ExpressionAttributeValues':{':one':{'N':'1'},':most':{'N':'" NUMBER_MOST_TEXT "'}},"
                  "'ReturnValues':'UPDATED_NEW',%O}",
                  &counters, name, may_make ? SLICE("attribute_not_exists(#value) or ") : SLICE(""));
    } while (is_to_make(flow, name, &may_make));
    struct slice value = value_of(flow, flow_item(flow));
    if (flow_failed(flow)) refuse_end(flow, value, true);
    return value;
}

/* ADD begins at 0 by itself and is the shorter request. */
static void next_without_key(struct flow *flow)
{
    int64_t start = origin_of(flow);
    bool may_make = false;
    if (by_of(flow) == 1 && !flow_given(flow, NEXT_START) && !flow_given(flow, NEXT_MAX)) {
        tell(flow, counter_add_one(flow, flow_text(flow, NEXT_NAME)));
        return;
    }
    do {
        task_call(flow, "UpdateItem",
                  "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'%r','ConditionExpression':'%r',%#,"
                  "'ExpressionAttributeValues':{':by':%N,':bound':%N%A},'ReturnValues':'UPDATED_NEW',%O}",
                  &counters, flow_text(flow, NEXT_NAME),
                  start ? SLICE("SET #value = if_not_exists(#value, :start) + :by") : SLICE("ADD #value :by"),
                  limit_condition(flow, may_make), by_of(flow), limit_of(flow) - by_of(flow),
                  start ? flow_compose(flow, ",':start':%N", start) : SLICE(""));
    } while (is_to_make(flow, flow_text(flow, NEXT_NAME), &may_make));
    struct slice value = value_of(flow, flow_item(flow));
    if (flow_failed(flow)) refuse_limit(flow, value);
    tell(flow, value);
}

/* ---- with a key ---- */

static struct slice token_name(struct flow *flow, struct slice name, struct slice keys)
{
    return arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(name), SLICE_ARG(keys));
}

/* The token of the call that has been given its number. Whoever puts it puts the same. */
static void put_token(struct flow *flow, struct slice counter)
{
    struct slice redo = item_content(flow->arena, counter, "redo");
    struct slice name = token_name(flow, item_text(flow->arena, counter, "name"),
                                   item_text(flow->arena, counter, "keys"));
    token_keep(flow, "counter", name, item_text(flow->arena, redo, "key"),
               flow_compose(flow, ",'value':%A,'by':%A", item_attribute(flow->arena, counter, "given"),
                            item_attribute(flow->arena, redo, "by")));
}

static bool add_with_key(struct flow *flow, const struct intent *intent, struct slice *counter, bool may_make)
{
    struct intent_change change = {
        .redo = flow_compose(flow, "{'M':{'key':%S,'by':%N}}", flow_text(flow, NEXT_KEY), by_of(flow)),
        .update = SLICE(
            ", #keys = if_not_exists(#keys, :keys), #given = if_not_exists(#value, :start) + :by, "
            "#value = if_not_exists(#value, :start) + :by"),
        .condition = limit_condition(flow, may_make),
        .values = flow_compose(flow, ",':keys':%S,':start':%N,':by':%N,':bound':%N", flow_new_id(flow),
                               origin_of(flow), by_of(flow), limit_of(flow) - by_of(flow))};
    return intent_write(flow, intent, counter, &change);
}

/* What the next call with a key of this process goes by: if it is not so any more, its write fails. */
static uint64_t memory_of(struct slice name)
{
    return flow_topic("counter", name, SLICE(""));
}

static void next_with_key(struct flow *flow)
{
    struct slice name = flow_text(flow, NEXT_NAME);
    struct intent intent = {&counters, flow_compose(flow, "{'name':%S}", name), put_token};
    /* Only one at a time can have an intent: those of this process take turns, and nobody else fits the round. */
    task_join(flow, flow_topic("counter turn", name, SLICE("")),
              (struct flow_share){.bytes = FLOW_ROUND_BYTES});
    struct slice counter = flow_recall(flow, memory_of(name));
    bool is_guess = counter.data != NULL;
    if (!is_guess) counter = intent_read(flow, &intent);
    for (;;) {
        struct slice keys = item_text(flow->arena, counter, "keys"), token = SLICE_NONE, before = counter;
        if (keys.data)
            token = token_find(flow, "counter", token_name(flow, name, keys), flow_text(flow, NEXT_KEY));
        if (token.data && is_guess) { /* which no write checks: perhaps of a counter that is gone */
            counter = intent_read(flow, &intent);
            is_guess = false;
            if (!slice_equal(item_text(flow->arena, counter, "keys"), keys)) continue;
        }
        if (token.data) {
            if (item_int(flow->arena, token, "by", 0) != by_of(flow)) token_refuse(flow);
            tell(flow, item_text(flow->arena, token, "value"));
            return;
        }
        bool may_make = !item_has(flow->arena, counter, is_guess ? "intent" : "value");
        if (may_make) names_enter(flow, SLICE("counter"), name);
        if (add_with_key(flow, &intent, &counter, may_make)) {
            flow_remember(flow, memory_of(name),
                          flow_compose(flow, "{%A}", item_members(flow->arena, counter, "keys intent")));
            tell(flow, item_text(flow->arena, counter, "given"));
            return;
        }
        is_guess = false;
        bool is_gone = !may_make && !item_has(flow->arena, counter, "value");
        if (!is_gone && intent_is_same(flow, before, counter)) refuse_limit(flow, value_of(flow, counter));
        task_again(flow);
        counter = intent_finish(flow, &intent, counter);
    }
}

static void next_number(struct flow *flow)
{
    if (flow_given(flow, NEXT_BLOCK) && flow_given(flow, NEXT_BY))
        task_refuse(flow, 400, "bad-request", "by and block exclude each other.");
    if (by_of(flow) == 0) task_refuse(flow, 400, "bad-request", "by must not be 0: GET reads a counter.");
    if (flow_given(flow, NEXT_KEY))
        next_with_key(flow);
    else
        next_without_key(flow);
}

/* ---- read, set, delete, list ---- */

static const struct field name_fields[] = {{"name", IN_PATH, FIELD_NAME, true, .help = "the counter"}};

static _Noreturn void refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-counter", "There is no counter '%.*s'; its first number makes it.",
                SLICE_ARG(flow_text(flow, NEXT_NAME)));
}

static void read_value(struct flow *flow)
{
    struct slice value = value_of(flow, task_get(flow, &counters, "{'name':%S}", flow_text(flow, 0)));
    if (!value.data) refuse_unknown(flow);
    flow_answer(flow, 200, "{'value':%r}", value);
}

enum { SET_NAME, SET_VALUE };

static const struct field set_fields[] = {
    [SET_NAME] = {"name", IN_PATH, FIELD_NAME, true, .help = "the counter"},
    [SET_VALUE] = {"value", IN_BODY, FIELD_INT, true, .min = -NUMBER_MOST, .max = NUMBER_MOST,
                   .help = "the last number that counts as given"},
};

/* It stays the same counter: calls with keys that were made before are known. */
static void set_value(struct flow *flow)
{
    names_note(flow, SLICE("counter"), flow_text(flow, SET_NAME));
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #value = :value',%#,"
              "'ExpressionAttributeValues':{':value':%N}}",
              &counters, flow_text(flow, SET_NAME), flow_int(flow, SET_VALUE));
    flow_answer(flow, 200, "{'value':%d}", flow_int(flow, SET_VALUE));
}

static void delete_counter(struct flow *flow)
{
    task_call(flow, "DeleteItem", "{'TableName':%T,'Key':{'name':%S},'ReturnValues':'ALL_OLD'}", &counters,
              flow_text(flow, 0));
    if (!flow_item(flow).data) refuse_unknown(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    return item_has(flow->arena, item, "value")
               ? flow_compose(flow, ",'value':%P", item_attribute(flow->arena, item, "value"))
               : SLICE_NONE;
}

static void list_counters(struct flow *flow)
{
    names_list(flow,
               (struct names){SLICE("counter"), "counters", "name", "name", .table = &counters,
                              .tell = told_in_list},
               0);
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row counter_rows[] = {
    {"POST", "/v1/counters/{name}", next_number, "The next number of a counter, or a block of them.",
     FIELDS(next_fields), "{'value':42}", "counter add by? -> value"},
    {"GET", "/v1/counters/{name}", read_value, "The last number that a counter gave.", FIELDS(name_fields),
     "{'value':42}", "counter get -> value"},
    {"PUT", "/v1/counters/{name}", set_value, "Sets a counter: numbers may be given again.", FIELDS(set_fields),
     "{'value':42}", "counter set value -> value"},
    {"DELETE", "/v1/counters/{name}", delete_counter, "Removes a counter.", FIELDS(name_fields), "{'deleted':true}",
     "counter rm"},
    {"GET", "/v1/counters", list_counters, "The counters, by name.", FIELDS(names_fields),
     "{'counters':[{'name':'invoices','value':42}],'next':'invoices'}", "counter list -> counters"},
};
/* clang-format on */
ROW_COUNT(counter);
