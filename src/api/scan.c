/* Scan. */
#include "api/items.h"

enum {
    SCAN_SELECT,
    SCAN_INDEX_NAME,
    SCAN_SEGMENTS,
    SCAN_RETURN_CAPACITY,
    SCAN_TABLE_NAME,
    SCAN_CONDITIONAL_OPERATOR,
    SCAN_FILTER,
    SCAN_SEGMENT,
    SCAN_LIMIT,
    SCAN_ATTRIBUTES,
    SCAN_START,
    SCAN_CONSISTENT,
    SCAN_FILTER_EXPRESSION,
    SCAN_PROJECTION,
    SCAN_NAMES,
    SCAN_VALUES,
};

static const struct shape_member members[] = {
    [SCAN_SELECT] = MEMBER("Select", shape_select),
    [SCAN_INDEX_NAME] = MEMBER("IndexName", shape_index_name),
    [SCAN_SEGMENTS] = MEMBER("TotalSegments", shape_segments),
    [SCAN_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [SCAN_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [SCAN_CONDITIONAL_OPERATOR] = MEMBER("ConditionalOperator", shape_conditional_operator),
    [SCAN_FILTER] = MEMBER("ScanFilter", shape_condition_map),
    [SCAN_SEGMENT] = MEMBER("Segment", shape_segment),
    [SCAN_LIMIT] = MEMBER("Limit", shape_limit),
    [SCAN_ATTRIBUTES] = MEMBER("AttributesToGet", shape_name_list),
    [SCAN_START] = MEMBER("ExclusiveStartKey", shape_value_map),
    [SCAN_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [SCAN_FILTER_EXPRESSION] = MEMBER("FilterExpression", shape_expression),
    [SCAN_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [SCAN_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [SCAN_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
static const struct shape shape = STRUCT_SHAPE("ScanInput", members);

static bool check_segments(struct api_call *call, const struct node *segment, const struct node *segments)
{
    if (segment->present && !segments->present)
        return invalid(call,
                       "The TotalSegments parameter is required but was not present in the request when "
                       "Segment parameter is present");
    if (segments->present && !segment->present)
        return invalid(call, "The Segment parameter is required but was not present in the request when "
                             "parameter TotalSegments is present");
    if (segment->present && segment->integer >= segments->integer)
        return invalid(call,
                       "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
                       "Segment: %lld is not less than TotalSegments: %lld",
                       (long long)segment->integer, (long long)segments->integer);
    return true;
}

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *input, struct page_request *page,
                       struct map *start)
{
    const struct node *select = node_member(input, SCAN_SELECT);
    struct condition *filter = NULL;
    struct projection *projection = NULL;
    struct expressions expressions = {
        .names = node_member(input, SCAN_NAMES),
        .values = node_member(input, SCAN_VALUES),
        .projection_text = node_member(input, SCAN_PROJECTION),
        .filter_text = node_member(input, SCAN_FILTER_EXPRESSION),
        .legacy = {{"AttributesToGet", node_member(input, SCAN_ATTRIBUTES)},
                   {"ScanFilter", node_member(input, SCAN_FILTER)},
                   {"ConditionalOperator", node_member(input, SCAN_CONDITIONAL_OPERATOR)}},
    };
    if (!expressions_check(call, &expressions) ||
        !attributes_to_projection(call, node_member(input, SCAN_ATTRIBUTES), &projection) ||
        !filter_to_condition(call, node_member(input, SCAN_FILTER),
                             node_member(input, SCAN_CONDITIONAL_OPERATOR), &filter))
        return false;
    if (node_member(input, SCAN_START)->present) {
        if (!start_key_from_node(call, node_member(input, SCAN_START), start)) return false;
        page->start = start;
    }
    if (!check_segments(call, node_member(input, SCAN_SEGMENT), node_member(input, SCAN_SEGMENTS)) ||
        !expressions_parse(call, &expressions))
        return false;
    page->filter = filter ? filter : expressions.filter;
    page->projection = projection ? projection : expressions.projection;
    page->count_only = node_says(select, "COUNT");
    return check_select(call, select, node_member(input, SCAN_PROJECTION),
                        node_member(input, SCAN_ATTRIBUTES), node_member(input, SCAN_INDEX_NAME)->present,
                        false);
}

/* A start key must lie in the segment whose scan it continues. */
static bool check_segment_start(struct api_call *call, const struct page_request *page)
{
    struct buf from = {0}, to = {0};
    if (!page->start || page->segments == 1) return true;
    struct slice start = page_start(call, page);
    if (page->index) engine_index_scan_range(page->table, page->index, page->segment, page->segments, &from, &to);
    else engine_scan_range(page->table, page->segment, page->segments, &from, &to);
    bool inside = slice_compare(start, buf_view(&from)) >= 0 && slice_compare(start, buf_view(&to)) < 0;
    buf_free(&from);
    buf_free(&to);
    return inside || invalid(call,
                             "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
                             "ExclusiveStartKey with correct Segment. TotalSegments: %u Segment: %u",
                             page->segments, page->segment);
}

/* The checks against the table's schema, in the service's order. */
static bool fit(struct api_call *call, const struct node *input, struct page_request *page)
{
    if (!find_page_index(call, node_member(input, SCAN_INDEX_NAME), page) || !check_scan_start(call, page))
        return false;
    if (page->index && !check_index_select(call, node_member(input, SCAN_SELECT), page)) return false;
    return check_start_table_key(call, page) && check_segment_start(call, page) &&
           check_key_paths(call, page->table, NULL, NULL, page->projection) &&
           check_key_paths(call, page->table, page->filter, NULL, NULL);
}

static void begin(struct api_call *call, const struct node *input)
{
    struct page_request page = {.segments = 1};
    struct map start;
    struct slice name;
    page.table_name = node_member(input, SCAN_TABLE_NAME)->text;
    page.return_capacity = node_member(input, SCAN_RETURN_CAPACITY);
    page.consistent = node_is_true(node_member(input, SCAN_CONSISTENT));
    if (node_member(input, SCAN_LIMIT)->present)
        page.limit = (uint64_t)node_member(input, SCAN_LIMIT)->integer;
    if (!understand(call, input, &page, &start)) return;
    if (node_member(input, SCAN_SEGMENTS)->present) {
        page.segments = (uint32_t)node_member(input, SCAN_SEGMENTS)->integer;
        page.segment = (uint32_t)node_member(input, SCAN_SEGMENT)->integer;
    }
    if (!table_name_resolve(call, node_member(input, SCAN_TABLE_NAME), &name)) return;
    page.table = find_table(call, name);
    if (!page.table || !fit(call, input, &page)) return;
    page_reply(call, &page);
}

const struct operation operation_Scan = {SLICE("Scan"), &shape, begin, NULL};
