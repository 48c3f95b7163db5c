/* ExclusiveStartKey: must have just the keys of the table, and of the index that is read, and must stand
 * where the request's own conditions allow. Query and Scan say the same things in different words. */
#include "api/items.h"
#include "base/fail.h"

#define INVALID_START "The provided starting key is invalid"
#define MISMATCH      "The provided key element does not match the schema"

static void take_fields(const struct page_request *request, const struct slice *names, uint32_t count,
                        struct key_field *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i].name = names[i];
        ensure(table_attribute_type(&request->table->definition, names[i], &out[i].type));
    }
}

struct key_fields page_fields(const struct page_request *request)
{
    const struct index_definition *index = request->index;
    const struct table_definition *table = &request->table->definition;
    struct key_fields fields = {.hash_count = 1, .range_count = table->range.len > 0};
    if (index) {
        fields.index = index->name;
        fields.hash_count = index->hash_count;
        fields.range_count = index->range_count;
    }
    take_fields(request, index ? index->hash : &table->hash, fields.hash_count, fields.hash);
    take_fields(request, index ? index->range : &table->range, fields.range_count, fields.range);
    return fields;
}

/* ---- which attributes ---- */

static bool is_table_key(const struct table *table, struct slice name)
{
    return slice_equal(name, table->keys.hash) ||
           (table->keys.range.len && slice_equal(name, table->keys.range));
}

/* How many attributes a start key has. */
static uint32_t start_key_size(const struct page_request *request)
{
    const struct table *table = request->table;
    const struct index_definition *index = request->index;
    uint32_t size = table->keys.range.len ? 2 : 1;
    for (uint32_t i = 0; index && i < index->hash_count; i++) size += !is_table_key(table, index->hash[i]);
    for (uint32_t i = 0; index && i < index->range_count; i++) size += !is_table_key(table, index->range[i]);
    return size;
}

/* One key attribute: it must be there, then have the right type and a value that keys may have. */
static bool check_part(struct api_call *call, const struct page_request *request, struct slice name,
                       bool is_hash)
{
    enum value_type type;
    const struct value *value = map_find(request->start, name);
    ensure(table_attribute_type(&request->table->definition, name, &type));
    if (!value) return invalid(call, INVALID_START);
    if (value->type != type) return invalid(call, MISMATCH);
    return check_key_value(call, name, value, is_hash);
}

static bool check_parts(struct api_call *call, const struct page_request *request, const struct slice *names,
                        uint32_t count, bool is_hash)
{
    for (uint32_t i = 0; i < count; i++)
        if (!check_part(call, request, names[i], is_hash)) return false;
    return true;
}

bool check_query_start(struct api_call *call, const struct page_request *request)
{
    if (!request->start || request->start->count == start_key_size(request)) return true;
    return invalid(call, INVALID_START);
}

bool check_query_start_hash(struct api_call *call, const struct page_request *request)
{
    const struct index_definition *index = request->index;
    if (!request->start) return true;
    if (index) return check_parts(call, request, index->hash, index->hash_count, true);
    return check_part(call, request, request->table->keys.hash, true);
}

bool check_query_start_range(struct api_call *call, const struct page_request *request)
{
    const struct index_definition *index = request->index;
    if (!request->start) return true;
    if (index) return check_parts(call, request, index->range, index->range_count, false);
    return !request->table->keys.range.len || check_part(call, request, request->table->keys.range, false);
}

bool check_scan_start(struct api_call *call, const struct page_request *request)
{
    if (!request->start) return true;
    bool fits = request->start->count == start_key_size(request);
    if (!fits) return invalid(call, request->index ? INVALID_START : INVALID_START ": " MISMATCH);
    return !request->index ||
           (check_query_start_hash(call, request) && check_query_start_range(call, request));
}

static struct slice table_part_fault(struct api_call *call, const struct map *start, struct slice name,
                                     enum value_type type, bool is_hash)
{
    const struct value *value = map_find(start, name);
    if (!value || value->type != type) return SLICE(MISMATCH);
    return key_value_fault(call->arena, name, value, is_hash);
}

bool check_start_table_key(struct api_call *call, const struct page_request *request)
{
    const struct key_schema *keys = &request->table->keys;
    if (!request->start) return true;
    struct slice fault = table_part_fault(call, request->start, keys->hash, keys->hash_type, true);
    if (!fault.len && keys->range.len)
        fault = table_part_fault(call, request->start, keys->range, keys->range_type, false);
    return fault.len ? invalid(call, INVALID_START ": %.*s", SLICE_ARG(fault)) : true;
}

/* ---- where it stands ---- */

static bool admits(const struct key_condition *condition, const struct value *range)
{
    int order = 0;
    if (condition->compare != KEY_NONE && condition->compare != KEY_BEGINS_WITH)
        order = value_compare(range, condition->range[0]);
    switch (condition->compare) {
    case KEY_NONE: return true;
    case KEY_EQ: return order == 0;
    case KEY_LT: return order < 0;
    case KEY_LE: return order <= 0;
    case KEY_GT: return order > 0;
    case KEY_GE: return order >= 0;
    case KEY_BETWEEN: return order >= 0 && value_compare(range, condition->range[1]) <= 0;
    case KEY_BEGINS_WITH: return slice_starts(range->bytes, condition->range[0]->bytes);
    }
    return false;
}

static bool equals(const struct map *start, const struct key_field *fields, uint32_t count,
                   const struct value *const *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (!value_equal(map_find(start, fields[i].name), values[i])) return false;
    return true;
}

bool page_is_one_item(const struct page_request *request)
{
    return request->key_condition && !request->index && !request->table->keys.range.len;
}

/* Behind the only item that a query of one key can find there is nothing to start from. */
static bool refuse_restart(struct api_call *call, const struct page_request *request)
{
    const struct key_schema *keys = &request->table->keys;
    const struct value *hash = map_find(request->start, keys->hash);
    struct buf bytes = {0};
    if (hash->type == VALUE_B)
        json_put_base64(&bytes, hash->bytes);
    else
        buf_slice(&bytes, hash->bytes);
    struct slice shown = arena_copy(call->arena, buf_view(&bytes));
    buf_free(&bytes);
    if (hash->type == VALUE_B) shown = (struct slice){shown.data + 1, shown.len - 2}; /* without quotes */
    return INVALID(call, SLICE("The provided exclusive start key is invalid: ExclusiveStartKey: {"),
                   keys->hash, SLICE("=AttributeValue: {"), value_type_name(hash->type), SLICE(":"), shown,
                   SLICE("}}"));
}

bool check_start_conditions(struct api_call *call, const struct page_request *request)
{
    const struct key_condition *condition = request->key_condition;
    struct key_fields fields = page_fields(request);
    if (!request->start) return true;
    bool same_hash = equals(request->start, fields.hash, fields.hash_count, condition->hash);
    if (same_hash && page_is_one_item(request)) return refuse_restart(call, request);
    if (condition->compare == KEY_NONE)
        return same_hash ||
               invalid(call,
                       "The provided starting key is outside query boundaries based on provided conditions");
    const struct value *compared = map_find(request->start, fields.range[condition->equal_count].name);
    if (!equals(request->start, fields.range, condition->equal_count, condition->equal) ||
        !admits(condition, compared))
        return invalid(call, "The provided starting key does not match the range key predicate");
    return same_hash || invalid(call, "The query can return at most one row and cannot be restarted");
}
