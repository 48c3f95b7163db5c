/* FilterSpecification of an export: a key condition and a filter as those of Query, a projection. It is read twice:
 * when the export is asked for, so that a fault is told at once, and when it is done. */
#include "api/export_filter.h"

enum { FILTER_EXPRESSION, FILTER_PROJECTION, FILTER_KEYS, FILTER_NAMES, FILTER_VALUES };

static const struct shape_member members[] = {
    [FILTER_EXPRESSION] = MEMBER("FilterExpression", shape_expression),
    [FILTER_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [FILTER_KEYS] = MEMBER("KeyConditionExpression", shape_expression),
    [FILTER_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [FILTER_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
const struct shape shape_export_filter = STRUCT_SHAPE("FilterSpecification", members);

static bool bind_keys(struct api_call *call, const struct condition *expression, const struct table *table,
                      struct api_filter *out)
{
    struct page_request page = {.table = table, .segments = 1};
    struct key_fields fields = page_fields(&page);
    struct key_condition keys = {0};
    struct key_terms terms;
    struct slice fault;
    if (!key_terms_read(call->arena, expression, &terms, &fault) ||
        !key_terms_are_plain(call->arena, &terms, &fault) ||
        !key_terms_bind(call->arena, &terms, &fields, &keys, &fault))
        return invalid_text(call, fault);
    if (!check_key_lengths(call, &keys) ||
        !check_filter_keys(call, out->condition, "Filter Expression", &fields))
        return false;
    page.key_condition = &keys;
    struct key_range range;
    out->is_empty = !page_range(call, &page, &range);
    out->from = range.from;
    out->to = range.to;
    return true;
}

bool export_filter_read(struct api_call *call, const struct node *filter, const struct table *table,
                        struct api_filter *out)
{
    struct expressions expressions = {
        .names = node_member(filter, FILTER_NAMES),
        .values = node_member(filter, FILTER_VALUES),
        .projection_text = node_member(filter, FILTER_PROJECTION),
        .filter_text = node_member(filter, FILTER_EXPRESSION),
        .key_condition_text = node_member(filter, FILTER_KEYS),
    };
    *out = (struct api_filter){0};
    if (!has_members(filter))
        return invalid(call,
                       "Invalid Request: Invalid FilterSpecification: The specification can not be empty");
    if (!expressions_check(call, &expressions) || !expressions_parse(call, &expressions)) return false;
    out->condition = expressions.filter;
    out->projection = expressions.projection;
    if (!table) return true;
    return (!expressions.key_condition || bind_keys(call, expressions.key_condition, table, out)) &&
           check_key_paths(call, table, out->condition, NULL, out->projection);
}

bool api_filter_read(struct api *api, struct arena *arena, struct slice request, const struct table *table,
                     struct api_filter *out)
{
    struct buf reply = {0};
    struct api_call call = {.api = api, .arena = arena, .reply = &reply, .body = request};
    struct node filter;
    bool fine = request_decode(&call, &shape_export_filter, &filter) && request_check(&call, &filter) &&
                export_filter_read(&call, &filter, table, out);
    buf_free(&reply);
    return fine;
}

bool api_filter_takes(const struct api_filter *filter, struct slice key)
{
    if (filter->is_empty) return false;
    return !filter->to.len || (slice_compare(key, filter->from) >= 0 && slice_compare(key, filter->to) < 0);
}
