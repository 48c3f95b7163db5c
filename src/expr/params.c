/* The parameters of a request's expressions: their names in faults, and which of them nobody used. */
#include "expr/parse.h"

#include <stdlib.h>

#include "base/buf.h"

struct slice expr_kind_name(enum expr_kind kind)
{
    switch (kind) {
    case EXPR_CONDITION: return SLICE("ConditionExpression");
    case EXPR_FILTER: return SLICE("FilterExpression");
    case EXPR_KEY_CONDITION: return SLICE("KeyConditionExpression");
    case EXPR_SEARCH_CONDITION: return SLICE("SearchConditionExpression");
    case EXPR_PROJECTION: return SLICE("ProjectionExpression");
    case EXPR_UPDATE: return SLICE("UpdateExpression");
    case EXPR_STATEMENT: return SLICE("Statement");
    }
    return SLICE_NONE;
}

/* One parameter, seen alike for names and values. */
struct parameter {
    struct slice placeholder;
    uint32_t bucket, position;
};

static int parameter_order(const void *left, const void *right)
{
    const struct parameter *a = left, *b = right;
    if (a->bucket != b->bucket) return a->bucket < b->bucket ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* The service keeps the unused ones in a hash set and prints them as it walks it. */
static bool refuse_unused(struct arena *arena, struct slice member, struct parameter *unused, uint32_t count,
                          uint32_t capacity, struct slice *fault)
{
    for (uint32_t i = 0; i < count; i++) {
        unused[i].bucket = java_bucket(java_hash(unused[i].placeholder), capacity);
        unused[i].position = i;
    }
    qsort(unused, count, sizeof *unused, parameter_order);
    struct buf keys = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_text(&keys, ", ");
        buf_slice(&keys, unused[i].placeholder);
    }
    FAULT(arena, fault, SLICE("Value provided in "), member, SLICE(" unused in expressions: keys: {"),
          buf_view(&keys), SLICE("}"));
    buf_free(&keys);
    return false;
}

bool expr_params_all_used(struct arena *arena, const struct expr_params *params, struct slice *fault)
{
    uint32_t most = params->name_count > params->value_count ? params->name_count : params->value_count;
    uint32_t count = 0;
    struct parameter *unused = arena_array(arena, struct parameter, most);
    for (uint32_t i = 0; i < params->name_count; i++) {
        if (!params->names[i].used) unused[count++].placeholder = params->names[i].placeholder;
    }
    if (count) {
        return refuse_unused(arena, SLICE("ExpressionAttributeNames"), unused, count,
                             java_set_capacity(params->name_count), fault);
    }
    for (uint32_t i = 0; i < params->value_count; i++) {
        if (!params->values[i].used) unused[count++].placeholder = params->values[i].placeholder;
    }
    if (!count) return true;
    return refuse_unused(arena, SLICE("ExpressionAttributeValues"), unused, count,
                         java_set_capacity(params->value_count), fault);
}
