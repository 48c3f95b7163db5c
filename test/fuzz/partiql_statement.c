/* Any text as a statement of PartiQL, with two parameters: it is refused with a sentence, or its plan and its
 * trees can be used. What an update makes of an item must be an item that can be stored, no two parts of a plan
 * may be out of order, and filters hold or do not hold. The first byte says whether it is of a transaction. */
#include "base/fail.h"
#include "partiql/partiql.h"

static struct value numbers[] = {{.type = VALUE_N, .bytes = {"1", 1}},
                                 {.type = VALUE_N, .bytes = {"-2.5", 4}}};
static struct slice members[] = {{"a", 1}, {"b", 1}};
static struct attribute inner_attributes[] = {
    {{"l", 1}, {.type = VALUE_L, .count = 2, .elements = numbers}},
    {{"x", 1}, {.type = VALUE_N, .bytes = {"1", 1}}},
};
static struct attribute item_attributes[] = {
    {{"a", 1}, {.type = VALUE_N, .bytes = {"99999999999999999999999999999999999999", 38}}},
    {{"l", 1}, {.type = VALUE_L, .count = 2, .elements = numbers}},
    {{"m", 1}, {.type = VALUE_M, .map = {inner_attributes, 2}}},
    {{"pk", 2}, {.type = VALUE_S, .bytes = {"key", 3}}},
    {{"sk", 2}, {.type = VALUE_S, .bytes = {"1", 1}}},
    {{"ss", 2}, {.type = VALUE_SS, .count = 2, .members = members}},
    {{"t", 1}, {.type = VALUE_BOOL, .truth = true}},
    {{"z", 1}, {.type = VALUE_NULL}},
};
static const struct map item = {item_attributes, sizeof item_attributes / sizeof *item_attributes};
static const struct value parameters[] = {{.type = VALUE_S, .bytes = {"key", 3}},
                                          {.type = VALUE_SS, .count = 2, .members = members}};
static const struct key_fields table_fields = {
    .hash = {{{"pk", 2}, VALUE_S}}, .range = {{{"sk", 2}, VALUE_S}}, .hash_count = 1, .range_count = 1};
static const struct key_schema keys = {{"pk", 2}, {"sk", 2}, VALUE_S, VALUE_S};

static struct arena arena;

static void check_storable(const struct map *map)
{
    struct buf bytes = {0};
    struct map again;
    item_encode(&bytes, map);
    ensure(item_decode(&arena, buf_view(&bytes), &again) && map_equal(map, &again));
    buf_free(&bytes);
}

static void try_select(const struct statement *statement)
{
    struct key_fields fields = table_fields;
    struct statement_plan plan;
    struct slice fault = SLICE_NONE;
    fields.index = statement->index;
    if (!statement_plan(&arena, statement, &fields, &plan, &fault)) {
        ensure(fault.len > 0);
        return;
    }
    ensure(plan.is_scan == (plan.part_count == 0) && plan.part_count <= LIMIT_STATEMENT_PARTS);
    for (uint32_t i = 0; i < plan.part_count; i++) {
        const struct statement_part *part = &plan.parts[i];
        ensure(part->keys.hash_count == 1 && part->keys.hash[0]->type == VALUE_S);
        ensure(!part->is_get || (part->keys.compare == KEY_EQ && !statement->index.len));
        if (part->filter) condition_holds(part->filter, &item);
    }
    ensure(statement_explain(&arena, statement, &plan).len > 0);
    if (!statement->projection) return;
    struct map projected = projection_apply(&arena, statement->projection, &item);
    check_storable(&projected);
}

static void try_write(const struct statement *statement)
{
    struct statement_pin pin;
    struct slice fault = SLICE_NONE;
    struct map updated;
    if (statement_pin(&arena, statement, &keys, false, &pin, &fault) != PINNED_WHOLE) {
        ensure(fault.len > 0);
        return;
    }
    ensure(pin.key.count == 2);
    if (pin.condition) condition_holds(pin.condition, &item);
    if (!statement->update) return;
    if (update_apply(&arena, statement->update, &item, &updated, &fault))
        check_storable(&updated);
    else
        ensure(fault.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice fault = SLICE_NONE;
    if (size < 2 || size > LIMIT_STATEMENT_CHARACTERS) return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    const struct statement *statement = statement_parse(&arena, text, parameters, 2, data[0] & 1, &fault);
    ensure(statement || fault.len > 0);
    if (statement) {
        if (statement->where) condition_holds(statement->where, &item);
        if (statement->kind == STATEMENT_SELECT)
            try_select(statement);
        else if (statement->kind == STATEMENT_INSERT)
            check_storable(&statement->item);
        else
            try_write(statement);
    }
    arena_reset(&arena);
    return 0;
}
