/* Any text as an expression: the first byte picks the kind. It is refused with a sentence, or it binds to a
 * fixed set of names and values and is evaluated on a fixed item; what an update makes of the item must be an
 * item that can be stored. */
#include "base/fail.h"
#include "expr/expr.h"

static struct value numbers[] = {{.type = VALUE_N, .bytes = {"1", 1}},
                                 {.type = VALUE_N, .bytes = {"-2.5", 4}}};
static struct slice members[] = {{"a", 1}, {"b", 1}};
static struct slice number_members[] = {{"-1", 2}, {"10", 2}};

static struct attribute inner_attributes[] = {
    {{"l", 1}, {.type = VALUE_L, .count = 2, .elements = numbers}},
    {{"x", 1}, {.type = VALUE_N, .bytes = {"1", 1}}},
};

static struct attribute item_attributes[] = {
    {{"a", 1}, {.type = VALUE_N, .bytes = {"99999999999999999999999999999999999999", 38}}},
    {{"b", 1}, {.type = VALUE_B, .bytes = {"\0\xff", 2}}},
    {{"l", 1}, {.type = VALUE_L, .count = 2, .elements = numbers}},
    {{"m", 1}, {.type = VALUE_M, .map = {inner_attributes, 2}}},
    {{"ns", 2}, {.type = VALUE_NS, .count = 2, .members = number_members}},
    {{"pk", 2}, {.type = VALUE_S, .bytes = {"key", 3}}},
    {{"s", 1}, {.type = VALUE_S, .bytes = {"\xc3\xa9text", 6}}},
    {{"ss", 2}, {.type = VALUE_SS, .count = 2, .members = members}},
    {{"t", 1}, {.type = VALUE_BOOL, .truth = true}},
    {{"z", 1}, {.type = VALUE_NULL}},
};
static const struct map item = {item_attributes, sizeof item_attributes / sizeof *item_attributes};

static struct expr_name names[] = {
    {{"#a", 2}, {"a", 1}, false}, {{"#m", 2}, {"m", 1}, false}, {{"#odd", 4}, {"[3].x\0y", 7}, false}};

static struct expr_value values[] = {
    {{":n", 2}, {.type = VALUE_N, .bytes = {"5", 1}}, false},
    {{":s", 2}, {.type = VALUE_S, .bytes = {"S", 1}}, false},
    {{":b", 2}, {.type = VALUE_B, .bytes = {"\0", 1}}, false},
    {{":t", 2}, {.type = VALUE_BOOL}, false},
    {{":l", 2}, {.type = VALUE_L, .count = 2, .elements = numbers}, false},
    {{":m", 2}, {.type = VALUE_M, .map = {inner_attributes, 2}}, false},
    {{":ss", 3}, {.type = VALUE_SS, .count = 2, .members = members}, false},
    {{":ns", 3}, {.type = VALUE_NS, .count = 2, .members = number_members}, false},
};

static struct arena arena;
static struct expr_params params = {
    names, values, sizeof names / sizeof *names, sizeof values / sizeof *values, true, true};

static void check_storable(const struct map *map)
{
    struct buf bytes = {0};
    struct map again;
    item_encode(&bytes, map);
    ensure(item_decode(&arena, buf_view(&bytes), &again) && map_equal(map, &again));
    buf_free(&bytes);
}

static void try_keys(const struct condition *condition)
{
    static const struct key_fields plain = {
        .hash = {{{"pk", 2}, VALUE_S}}, .hash_count = 1, .range = {{{"a", 1}, VALUE_N}}, .range_count = 1};
    static const struct key_fields compound = {
        .hash = {{{"pk", 2}, VALUE_S}, {{"a", 1}, VALUE_N}},
        .hash_count = 2,
        .range = {{{"b", 1}, VALUE_S}, {{"c", 1}, VALUE_N}, {{"d", 1}, VALUE_S}},
        .range_count = 3};
    const struct key_fields *fields[] = {&plain, &compound};
    struct key_terms terms;
    struct slice fault = SLICE_NONE;
    if (!key_terms_read(&arena, condition, &terms, &fault)) {
        ensure(fault.len > 0);
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct key_condition key;
        struct slice refusal = SLICE_NONE;
        bool bound = key_terms_bind(&arena, &terms, fields[i], &key, &refusal);
        ensure(bound == (refusal.len == 0));
        ensure(!bound || key.hash_count == fields[i]->hash_count);
        ensure(!bound || key.equal_count < LIMIT_KEY_PARTS);
    }
}

static bool try_condition(enum expr_kind kind, struct slice text, struct slice *fault)
{
    struct condition *condition = condition_parse(&arena, kind, text, &params, fault);
    if (!condition) return false;
    condition_holds(condition, &item);
    condition_mentions(condition, SLICE("pk"));
    if (kind == EXPR_KEY_CONDITION) try_keys(condition);
    return true;
}

static bool try_projection(struct slice text, struct slice *fault)
{
    struct projection projection;
    if (!projection_parse(&arena, text, &params, &projection, fault)) return false;
    struct map parts = projection_apply(&arena, &projection, &item);
    check_storable(&parts);
    return true;
}

static bool try_update(struct slice text, struct slice *fault)
{
    struct update *update = update_parse(&arena, text, &params, fault);
    if (!update) return false;
    struct map updated, parts;
    struct slice refusal = SLICE_NONE;
    bool applied = update_apply(&arena, update, &item, &updated, &refusal);
    ensure(applied == (refusal.len == 0));
    if (!applied) return true;
    check_storable(&updated);
    parts = update_touched(&arena, update, &updated);
    check_storable(&parts);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    enum expr_kind kind = (enum expr_kind)(data[0] % (EXPR_UPDATE + 1));
    struct slice text = {(const char *)data + 1, size - 1}, fault = SLICE_NONE;
    bool taken = kind == EXPR_PROJECTION ? try_projection(text, &fault)
                 : kind == EXPR_UPDATE   ? try_update(text, &fault)
                                         : try_condition(kind, text, &fault);
    ensure(taken == (fault.len == 0));
    ensure(taken || slice_starts(fault, SLICE("Invalid ")));
    expr_params_all_used(&arena, &params, &fault);
    arena_reset(&arena);
    return 0;
}
