/* SearchVectors: the items whose vectors are nearest to one that is given. It is checked on the event loop's
 * thread like any request; the search itself may take long, and is done elsewhere. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/items.h"
#include "base/fail.h"
#include "base/raw.h"

enum {
    SEARCH_RETURN_CAPACITY,
    SEARCH_TABLE_NAME,
    SEARCH_INDEX_NAME,
    SEARCH_VECTOR,
    SEARCH_TOP,
    SEARCH_CONDITION,
    SEARCH_PROJECTION,
    SEARCH_NAMES,
    SEARCH_VALUES,
};

static const struct shape shape_top = {.kind = SHAPE_INT, .has_min = true, .min = 1};
static const struct shape_member members[] = {
    [SEARCH_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [SEARCH_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [SEARCH_INDEX_NAME] = REQUIRED("IndexName", shape_index_name),
    [SEARCH_VECTOR] = REQUIRED("SearchVector", shape_value_list),
    [SEARCH_TOP] = REQUIRED("TopK", shape_top),
    [SEARCH_CONDITION] = MEMBER("SearchConditionExpression", shape_expression),
    [SEARCH_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [SEARCH_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [SEARCH_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
struct search {
    struct vector_request request;
    const struct vector_definition *vectors;
    const struct condition *condition;
    const struct projection *projection;
    const struct node *return_capacity;
    float *vector;
    uint32_t dimensions;
    enum engine_result result;
};

/* ---- the request ---- */

/* "at line 1 column 17": where the reader of the body has read up to `end`. */
static struct slice place_text(struct api_call *call, const char *end)
{
    unsigned line = 1;
    const char *start = call->body.data;
    for (const char *at = start; at < end; at++) {
        if (*at != '\n') continue;
        line++;
        start = at + 1;
    }
    return arena_printf(call->arena, "at line %u column %zu", line, (size_t)(end - start));
}

/* The service reads requests of this operation by another reader than those of all others, with words of its own for
 * required members that are null or missing. */
static bool check_body(struct api_call *call)
{
    static const struct {
        const char *name, *kind;
    } required[] = {{"TableName", "a string"},
                    {"IndexName", "a string"},
                    {"SearchVector", "a sequence"},
                    {"TopK", "i32"}};
    bool has[sizeof required / sizeof *required] = {false};
    struct slice name, value, body = slice_trim(call->body);
    struct raw_walk walk;
    raw_walk_begin(&walk, call->arena, body);
    while (raw_walk_next(&walk, &name, &value)) {
        for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
            if (!slice_equal(name, slice_of(required[i].name))) continue;
            has[i] = true;
            if (slice_equal(value, SLICE("null")))
                return refuse(call, "SerializationException", "invalid type: null, expected %s %.*s",
                              required[i].kind, SLICE_ARG(place_text(call, value.data + value.len)));
        }
    }
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!has[i])
            return invalid(call, "missing field `%s` %.*s", required[i].name,
                           SLICE_ARG(place_text(call, body.data + body.len)));
    return true;
}

static const struct shape shape = {.kind = SHAPE_STRUCT,
                                   .type_name = "SearchVectorsInput",
                                   .members = members,
                                   .member_count = sizeof members / sizeof *members,
                                   .check_body = check_body};

static bool take_vector(struct api_call *call, const struct node *list, struct search *search)
{
    search->dimensions = list->count;
    search->vector = arena_array(call->arena, float, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *element = &list->elements[i];
        if (element->present && !element->fault.len && vector_number(&element->value, &search->vector[i]))
            continue;
        return invalid(call,
                       "Search vector contains invalid values. All values in the search vector must be a "
                       "32-bit floating-point number attribute");
    }
    return true;
}

/* What can be said without a table. */
static bool validate(struct api_call *call, const struct node *input, struct search *search)
{
    struct expressions expressions = {
        .names = node_member(input, SEARCH_NAMES),
        .values = node_member(input, SEARCH_VALUES),
        .projection_text = node_member(input, SEARCH_PROJECTION),
        .search_text = node_member(input, SEARCH_CONDITION),
    };
    int64_t top = node_member(input, SEARCH_TOP)->integer;
    if (top > LIMIT_VECTOR_TOP)
        return invalid(call,
                       "Provided TopK value '%lld' is out of valid range. The value must be between 1 and %d "
                       "inclusive",
                       (long long)top, LIMIT_VECTOR_TOP);
    if (!expressions_check(call, &expressions) || !expressions_parse(call, &expressions)) return false;
    search->request.top = (uint32_t)top;
    search->condition = expressions.search;
    search->projection = expressions.projection;
    return take_vector(call, node_member(input, SEARCH_VECTOR), search);
}

/* ---- the condition: equalities of attributes in the search schema, joined by AND ---- */

static bool invalid_comparator(struct api_call *call)
{
    return invalid(call, "Invalid SearchConditionExpression: Invalid comparator used in "
                         "SearchConditionExpression");
}

/* Where the value of this attribute goes; NULL when the schema does not have it. */
static const struct value **place_of(struct search *search, struct slice name)
{
    for (uint32_t i = 0; i < search->vectors->index.hash_count; i++)
        if (slice_equal(search->vectors->index.hash[i], name)) return &search->request.hash[i];
    for (uint32_t i = 0; i < search->vectors->filter_count; i++)
        if (slice_equal(search->vectors->filters[i], name)) return &search->request.filters[i];
    return NULL;
}

static bool take_equality(struct api_call *call, const struct condition *condition, struct search *search)
{
    if (condition->operand_count != 2) return invalid_comparator(call);
    const struct operand *a = &condition->operands[0], *b = &condition->operands[1];
    const struct operand *path = a->kind == OPERAND_PATH ? a : b, *value = path == a ? b : a;
    enum value_type type;
    if (path->kind == OPERAND_PATH) {
        struct slice name = path->path.parts[0].name;
        const struct value **place = path->path.count == 1 ? place_of(search, name) : NULL;
        if (!place)
            return invalid(call,
                           "SearchConditionExpression must not contain any attributes that is not in "
                           "SearchSchema. Invalid attribute: %.*s",
                           SLICE_ARG(name));
        if (condition->kind == CONDITION_EQ && value->kind == OPERAND_VALUE) {
            if (*place)
                return invalid(call,
                               "Invalid SearchConditionExpression: Only one condition is allowed for "
                               "attribute: %.*s",
                               SLICE_ARG(name));
            if (!table_attribute_type(&search->request.table->definition, name, &type) ||
                value->value->type != type)
                return invalid(call,
                               "One or more parameter values were invalid: Condition parameter type does "
                               "not match schema type");
            *place = value->value;
            return true;
        }
    }
    return invalid_comparator(call);
}

static bool take_condition(struct api_call *call, const struct condition *condition, struct search *search)
{
    if (condition->kind == CONDITION_AND)
        return take_condition(call, condition->left, search) &&
               take_condition(call, condition->right, search);
    if (condition->kind == CONDITION_OR || condition->kind == CONDITION_NOT) return invalid_comparator(call);
    if (condition->kind != CONDITION_EQ && condition->operand_count > 0 &&
        condition->operands[0].kind == OPERAND_PATH &&
        !place_of(search, condition->operands[0].path.parts[0].name))
        return invalid(
            call,
            "SearchConditionExpression must not contain any attributes that is not in SearchSchema. "
            "Invalid attribute: %.*s",
            SLICE_ARG(condition->operands[0].path.parts[0].name));
    if (condition->kind != CONDITION_EQ) return invalid_comparator(call);
    return take_equality(call, condition, search);
}

static bool bind_condition(struct api_call *call, struct search *search)
{
    const struct index_definition *index = &search->vectors->index;
    if (!search->condition && index->hash_count)
        return invalid(call, "SearchConditionExpression must be provided when SearchSchema has a HASH key");
    if (search->condition && !take_condition(call, search->condition, search)) return false;
    for (uint32_t i = 0; i < index->hash_count; i++)
        if (!search->request.hash[i])
            return invalid(call, "SearchConditionExpression missed search schema element: %.*s",
                           SLICE_ARG(index->hash[i]));
    return true;
}

/* ---- the projection ---- */

static bool check_projection(struct api_call *call, const struct search *search)
{
    for (uint32_t i = 0; search->projection && i < search->projection->count; i++) {
        struct slice name = search->projection->paths[i].parts[0].name;
        if (vector_projects(search->request.table, search->vectors, name) ||
            slice_equal(name, search->vectors->attribute))
            continue;
        return invalid(call,
                       "One or more parameter values were invalid: Vector index %.*s does not project "
                       "[%.*s]",
                       SLICE_ARG(search->vectors->index.name), SLICE_ARG(name));
    }
    return true;
}

/* ---- the search ---- */

/* Where a float's decimal point may stand: beyond that its text has an exponent. */
#define POINT_FIRST (-5)
#define POINT_LAST  13

/* The shortest text that is this 32-bit float, with a decimal point or an exponent. What is beyond all floats is the
 * largest of them. */
static struct slice float_text(struct arena *arena, float number)
{
    char text[32], digits[16];
    if (number > FLT_MAX) number = FLT_MAX;
    if (number < -FLT_MAX) number = -FLT_MAX;
    for (int precision = 5; precision < 9; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, (double)fabsf(number));
        if (strtof(text, NULL) == fabsf(number)) break;
    }
    const char *sign = number < 0 ? "-" : "", *exponent = strchr(text, 'e') + 1;
    int point = atoi(exponent) + 1, count = 0;
    for (const char *at = text; *at != 'e'; at++)
        if (*at != '.') digits[count++] = *at;
    while (count > 1 && digits[count - 1] == '0') count--;
    if (point < POINT_FIRST || point > POINT_LAST)
        return arena_printf(arena, "%s%c%s%.*se%d", sign, digits[0], count > 1 ? "." : "", count - 1,
                            digits + 1, point - 1);
    if (point <= 0) return arena_printf(arena, "%s0.%.*s%.*s", sign, -point, "00000", count, digits);
    if (point >= count)
        return arena_printf(arena, "%s%.*s%.*s.0", sign, count, digits, point - count, "000000000000");
    return arena_printf(arena, "%s%.*s.%.*s", sign, point, digits, count - point, digits + point);
}

static bool shows_vector(const struct search *search)
{
    const struct projection *projection = search->projection;
    struct slice name = search->vectors->attribute;
    if (!projection) return vector_projects(search->request.table, search->vectors, name);
    for (uint32_t i = 0; i < projection->count; i++)
        if (slice_equal(projection->paths[i].parts[0].name, name)) return true;
    return false;
}

/* The item as the index has it: the numbers of its vector are 32-bit floats. Their texts are not canonical: they can be
 * shown, and nothing else. */
static struct map indexed(struct arena *arena, const struct search *search, const struct map *item)
{
    struct map copy = {arena_array(arena, struct attribute, item->count), item->count};
    memcpy(copy.attributes, item->attributes, item->count * sizeof *item->attributes);
    for (uint32_t i = 0; i < copy.count; i++) {
        struct value *vector = &copy.attributes[i].value;
        if (!slice_equal(copy.attributes[i].name, search->vectors->attribute)) continue;
        const struct value *stored = vector->elements;
        vector->elements = arena_array(arena, struct value, vector->count);
        for (uint32_t k = 0; k < vector->count; k++) {
            float number;
            ensure(vector_number(&stored[k], &number)); /* or it would not be in the index */
            vector->elements[k] = (struct value){.type = VALUE_N, .bytes = float_text(arena, number)};
        }
    }
    return copy;
}

static void work(struct api_call *call)
{
    struct search *search = call->state;
    struct vector_request *request = &search->request;
    search->result = engine_search_vectors(call->api->engine, request);
    if (search->result != ENGINE_OK || !shows_vector(search)) return;
    for (uint32_t i = 0; i < request->count; i++)
        request->results[i].item = indexed(call->arena, search, &request->results[i].item);
}

static void begin(struct api_call *call, const struct node *input)
{
    struct search *search = arena_new(call->arena, struct search);
    struct vector_request *request = &search->request;
    struct slice name;
    search->return_capacity = node_member(input, SEARCH_RETURN_CAPACITY);
    if (!validate(call, input, search)) return;
    if (!table_name_resolve(call, node_member(input, SEARCH_TABLE_NAME), &name)) return;
    request->table = find_table(call, name);
    if (!request->table) return;
    name = node_member(input, SEARCH_INDEX_NAME)->text;
    search->vectors = table_vectors_find(request->table, name, &request->place);
    if (!search->vectors) {
        invalid(call, "The table does not have the specified index: %.*s", SLICE_ARG(name));
        return;
    }
    if (!bind_condition(call, search) || !check_projection(call, search)) return;
    if (search->dimensions != search->vectors->dimensions) {
        invalid(call, "Input search vector dimension %u does not match vector index dimension %u",
                search->dimensions, search->vectors->dimensions);
        return;
    }
    request->vector = search->vector;
    request->arena = call->arena;
    call->state = search;
    call->work = work;
}

/* ---- the reply ---- */

static struct map project(struct api_call *call, const struct search *search, const struct map *item)
{
    if (search->projection) return projection_apply(call->arena, search->projection, item);
    struct map shown = {arena_array(call->arena, struct attribute, item->count), 0};
    for (uint32_t i = 0; i < item->count; i++)
        if (vector_projects(search->request.table, search->vectors, item->attributes[i].name))
            shown.attributes[shown.count++] = item->attributes[i];
    return shown;
}

static bool check_status(struct api_call *call, const struct search *search)
{
    struct slice name = search->vectors->index.name;
    if (search->result != ENGINE_OK) return refuse(call, "InternalServerError", "Internal server error");
    if (search->request.status == VECTORS_READY) return true;
    if (search->request.status == VECTORS_FULL)
        return refuse(
            call, "LimitExceededException",
            "The vector index %.*s does not fit into the memory that vector indexes may have on this "
            "server. Delete vectors and restart it, or move to a machine with more memory",
            SLICE_ARG(name));
    return invalid(call, "Cannot search backfilling vector index: %.*s", SLICE_ARG(name));
}

/* As for the other operations that answer with many items, the reply has a limit. */
static void finish(struct api_call *call)
{
    const struct search *search = call->state;
    uint64_t bytes = 0;
    if (!check_status(call, search)) return;
    buf_text(call->reply, "{\"SearchResults\":[");
    for (uint32_t i = 0; i < search->request.count; i++) {
        const struct vector_result *result = &search->request.results[i];
        struct map shown = project(call, search, &result->item);
        uint64_t entry = vector_entry_bytes(search->request.table, search->vectors, &result->item);
        if (call->reply->len - call->reply_start + entry > LIMIT_BATCH_GET_BYTES) break;
        bytes += entry;
        if (i) buf_byte(call->reply, ',');
        buf_text(call->reply, "{\"Item\":");
        api_put_item_json(call->reply, &shown);
        buf_printf(call->reply, ",\"Score\":%.*s}", SLICE_ARG(float_text(call->arena, result->score)));
    }
    buf_byte(call->reply, ']');
    if (capacity_wanted(search->return_capacity)) {
        buf_printf(call->reply, ",\"ConsumedCapacity\":{\"VectorSearchRequestBytes\":%.1f}",
                   capacity_of_vectors(bytes));
    }
    buf_byte(call->reply, '}');
}

const struct operation operation_SearchVectors = {
    .name = TEXT("SearchVectors"),
    .input = &shape,
    .begin = begin,
    .finish = finish,
};
