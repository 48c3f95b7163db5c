/* Query. */
#include "api/items.h"

enum {
    QUERY_SELECT,
    QUERY_INDEX_NAME,
    QUERY_RETURN_CAPACITY,
    QUERY_FILTER,
    QUERY_TABLE_NAME,
    QUERY_CONDITIONAL_OPERATOR,
    QUERY_ATTRIBUTES,
    QUERY_LIMIT,
    QUERY_KEY_CONDITIONS,
    QUERY_START,
    QUERY_CONSISTENT,
    QUERY_FORWARD,
    QUERY_KEY_EXPRESSION,
    QUERY_FILTER_EXPRESSION,
    QUERY_PROJECTION,
    QUERY_NAMES,
    QUERY_VALUES,
};

static const struct shape_member members[] = {
    [QUERY_SELECT] = MEMBER("Select", shape_select),
    [QUERY_INDEX_NAME] = MEMBER("IndexName", shape_index_name),
    [QUERY_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [QUERY_FILTER] = MEMBER("QueryFilter", shape_condition_map),
    [QUERY_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [QUERY_CONDITIONAL_OPERATOR] = MEMBER("ConditionalOperator", shape_conditional_operator),
    [QUERY_ATTRIBUTES] = MEMBER("AttributesToGet", shape_name_list),
    [QUERY_LIMIT] = MEMBER("Limit", shape_limit_terse),
    [QUERY_KEY_CONDITIONS] = MEMBER("KeyConditions", shape_condition_map),
    [QUERY_START] = MEMBER("ExclusiveStartKey", shape_value_map),
    [QUERY_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [QUERY_FORWARD] = MEMBER("ScanIndexForward", shape_bool),
    [QUERY_KEY_EXPRESSION] = MEMBER("KeyConditionExpression", shape_expression),
    [QUERY_FILTER_EXPRESSION] = MEMBER("FilterExpression", shape_expression),
    [QUERY_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [QUERY_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [QUERY_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
static const struct shape shape = STRUCT_SHAPE("QueryInput", members);

/* What lies between the two halves of the checks. */
struct query {
    struct page_request page;
    struct condition *key_expression; /* or NULL: KeyConditions */
    struct key_terms terms;
    struct key_condition keys;
    struct map start;
};

static bool parse(struct api_call *call, const struct node *input, struct expressions *expressions,
                  struct query *query)
{
    struct condition *filter = NULL;
    struct projection *projection = NULL;
    if (!expressions_check(call, expressions) ||
        !filter_to_condition(call, node_member(input, QUERY_FILTER),
                             node_member(input, QUERY_CONDITIONAL_OPERATOR), &filter) ||
        !attributes_to_projection(call, node_member(input, QUERY_ATTRIBUTES), &projection))
        return false;
    if (node_member(input, QUERY_START)->present) {
        if (!start_key_from_node(call, node_member(input, QUERY_START), &query->start)) return false;
        query->page.start = &query->start;
    }
    if (!node_member(input, QUERY_KEY_CONDITIONS)->present &&
        !node_member(input, QUERY_KEY_EXPRESSION)->present)
        return invalid(call, "Either the KeyConditions or KeyConditionExpression parameter must be specified "
                             "in the request.");
    if (!expressions_parse(call, expressions)) return false;
    query->page.filter = filter ? filter : expressions->filter;
    query->page.projection = projection ? projection : expressions->projection;
    query->key_expression = expressions->key_condition;
    return true;
}

/* Of an expression's terms the service says how many the table or index has keys for, of the older ones only that they
 * are one or two, which needs no table unless an index is named. */
static bool read_terms(struct api_call *call, const struct node *input, struct query *query)
{
    struct slice fault;
    if (!query->key_expression &&
        !key_conditions_to_terms(call, node_member(input, QUERY_KEY_CONDITIONS), &query->terms))
        return false;
    if (query->key_expression && !key_terms_read(call->arena, query->key_expression, &query->terms, &fault))
        return invalid_text(call, fault);
    return query->key_expression || node_member(input, QUERY_INDEX_NAME)->present ||
           key_terms_are_plain(call->arena, &query->terms, &fault) || invalid_text(call, fault);
}

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *input, struct query *query)
{
    const struct node *select = node_member(input, QUERY_SELECT);
    struct expressions expressions = {
        .names = node_member(input, QUERY_NAMES),
        .values = node_member(input, QUERY_VALUES),
        .projection_text = node_member(input, QUERY_PROJECTION),
        .filter_text = node_member(input, QUERY_FILTER_EXPRESSION),
        .key_condition_text = node_member(input, QUERY_KEY_EXPRESSION),
        .legacy = {{"AttributesToGet", node_member(input, QUERY_ATTRIBUTES)},
                   {"QueryFilter", node_member(input, QUERY_FILTER)},
                   {"ConditionalOperator", node_member(input, QUERY_CONDITIONAL_OPERATOR)},
                   {"KeyConditions", node_member(input, QUERY_KEY_CONDITIONS)}},
    };
    if (!parse(call, input, &expressions, query)) return false;
    if (!read_terms(call, input, query)) return false;
    query->page.count_only = node_says(select, "COUNT");
    return check_select(call, select, node_member(input, QUERY_PROJECTION),
                        node_member(input, QUERY_ATTRIBUTES), node_member(input, QUERY_INDEX_NAME)->present,
                        true);
}

bool find_page_index(struct api_call *call, const struct node *name, struct page_request *request)
{
    if (!name->present) return true;
    request->index = table_index_find(request->table, name->text);
    if (!request->index)
        return invalid(call, "The table does not have the specified index: %.*s", SLICE_ARG(name->text));
    if (request->index->status == INDEX_CREATING)
        return invalid(call, "Cannot read from backfilling global secondary index: %.*s",
                       SLICE_ARG(name->text));
    if (request->index->global && request->consistent)
        return invalid(call, "Consistent reads are not supported on global secondary indexes");
    return true;
}

bool check_key_lengths(struct api_call *call, const struct key_condition *keys)
{
    struct slice fault = SLICE_NONE;
    for (uint32_t i = 0; !fault.len && i < keys->hash_count; i++)
        fault = key_length_fault(keys->hash[i], true);
    for (uint32_t i = 0; !fault.len && i < keys->equal_count; i++)
        fault = key_length_fault(keys->equal[i], false);
    for (int i = 0; !fault.len && i < 2; i++)
        if (keys->range[i]) fault = key_length_fault(keys->range[i], false);
    return invalid_unless_sound(call, fault);
}

/* The key condition against the keys of the table or index. The start key is looked at in between: the
 * service checks the hash key in both, then the range key in both. */
static bool bind_keys(struct api_call *call, struct query *query)
{
    struct key_fields fields = page_fields(&query->page);
    struct key_condition *keys = &query->keys;
    struct slice fault;
    bool bound = key_terms_bind(call->arena, &query->terms, &fields, keys, &fault);
    if (!check_query_start_hash(call, &query->page)) return false;
    if (!keys->hash_count) return invalid_text(call, fault);
    if (!check_query_start_range(call, &query->page)) return false;
    if (!bound) return invalid_text(call, fault);
    query->page.key_condition = keys;
    return check_key_lengths(call, keys);
}

static bool check_no_key(struct api_call *call, const struct condition *filter, const char *parameter,
                         const struct key_field *fields, uint32_t count)
{
    for (uint32_t i = 0; filter && i < count; i++) {
        if (!condition_mentions(filter, fields[i].name)) continue;
        return invalid(call, "%s can only contain non-primary key attributes: Primary key attribute: %.*s",
                       parameter, SLICE_ARG(fields[i].name));
    }
    return true;
}

bool check_filter_keys(struct api_call *call, const struct condition *filter, const char *parameter,
                       const struct key_fields *keys)
{
    return check_no_key(call, filter, parameter, keys->hash, keys->hash_count) &&
           check_no_key(call, filter, parameter, keys->range, keys->range_count);
}

/* Of an index that may have keys of several attributes the number of terms is looked at only now. */
static bool check_number(struct api_call *call, const struct query *query)
{
    struct key_fields fields = page_fields(&query->page);
    struct slice fault;
    if (key_fields_are_compound(&fields) || key_terms_are_plain(call->arena, &query->terms, &fault))
        return true;
    if (!query->key_expression) return invalid_text(call, fault);
    return invalid(
        call,
        "The number of query conditions (%u) exceeds the number of key attributes defined in the schema "
        "(%u)",
        query->terms.count, fields.hash_count + fields.range_count);
}

/* The checks against the table's schema, in the service's order. */
static bool fit(struct api_call *call, const struct node *input, struct query *query)
{
    struct page_request *page = &query->page;
    if (!find_page_index(call, node_member(input, QUERY_INDEX_NAME), page) || !check_number(call, query) ||
        !check_query_start(call, page) || !bind_keys(call, query) || !check_start_table_key(call, page) ||
        !check_start_conditions(call, page) ||
        !check_key_paths(call, page->table, NULL, NULL, page->projection))
        return false;
    struct key_fields fields = page_fields(page);
    bool is_legacy = node_member(input, QUERY_FILTER)->present;
    if (!check_filter_keys(call, page->filter, is_legacy ? "QueryFilter" : "Filter Expression", &fields))
        return false;
    if (page->index && !check_index_select(call, node_member(input, QUERY_SELECT), page)) return false;
    if (!check_key_paths(call, page->table, page->filter, NULL, NULL)) return false;
    return !page->index || invalid_unless_sound(call, index_filter_fault(call, page));
}

static void begin(struct api_call *call, const struct node *input)
{
    struct query query = {0};
    struct page_request *page = &query.page;
    const struct node *forward = node_member(input, QUERY_FORWARD);
    struct slice name;
    page->table_name = node_member(input, QUERY_TABLE_NAME)->text;
    page->return_capacity = node_member(input, QUERY_RETURN_CAPACITY);
    page->consistent = node_is_true(node_member(input, QUERY_CONSISTENT));
    page->backwards = forward->present && !forward->truth;
    if (node_member(input, QUERY_LIMIT)->present)
        page->limit = (uint64_t)node_member(input, QUERY_LIMIT)->integer;
    if (!understand(call, input, &query)) return;
    if (!table_name_resolve(call, node_member(input, QUERY_TABLE_NAME), &name)) return;
    page->table = find_table(call, name);
    if (!page->table || !fit(call, input, &query)) return;
    page_reply(call, page);
}

const struct operation operation_Query = {SLICE("Query"), &shape, begin, NULL};
