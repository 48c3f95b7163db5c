/* Select: which attributes a Query or Scan answers with, and whether an index can give them. */
#include "api/items.h"

static bool refuse_choice(struct api_call *call, const char *parameter, const struct node *select)
{
    if (node_says(select, "COUNT"))
        return invalid(call, "Cannot specify the %s when choosing to get only the Count", parameter);
    return invalid(call, "Cannot specify the %s when choosing to get %.*s", parameter,
                   SLICE_ARG(select->text));
}

bool check_select(struct api_call *call, const struct node *select, const struct node *projection_text,
                  const struct node *attributes, bool has_index, bool is_query)
{
    if (!select->present) return true;
    if (node_says(select, "SPECIFIC_ATTRIBUTES")) {
        if (projection_text->present || attributes->present) return true;
        return invalid(call,
                       "%sMust specify the AttributesToGet or ProjectionExpression when choosing to get "
                       "SPECIFIC_ATTRIBUTES",
                       is_query ? "1 validation error detected: " : "");
    }
    if (projection_text->present) return refuse_choice(call, "ProjectionExpression", select);
    if (attributes->present) return refuse_choice(call, "AttributesToGet", select);
    if (node_says(select, "ALL_PROJECTED_ATTRIBUTES") && !has_index)
        return invalid(call, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName");
    return true;
}

/* ---- what an index lacks ---- */

static struct name_list missing_of(struct api_call *call, const struct page_request *request,
                                   const struct name_list *names)
{
    struct name_list missing = {0};
    for (uint32_t i = 0; i < names->count; i++)
        if (!index_projects(request->table, request->index, names->names[i]))
            name_list_add(call->arena, &missing, names->names[i]);
    return missing;
}

bool check_index_select(struct api_call *call, const struct node *select, struct page_request *request)
{
    const struct index_definition *index = request->index;
    struct name_list names = {0};
    bool wants_all = node_says(select, "ALL_ATTRIBUTES") && index->projection != PROJECT_ALL;
    if (wants_all && index->global)
        return invalid(call,
                       "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not "
                       "supported for global secondary index %.*s because its projection type is not ALL",
                       SLICE_ARG(index->name));
    name_list_add_projection(call->arena, &names, request->projection);
    struct name_list missing = missing_of(call, request, &names);
    if (missing.count && index->global)
        return invalid(call,
                       "One or more parameter values were invalid: Global secondary index %.*s does not "
                       "project [%.*s]",
                       SLICE_ARG(index->name), SLICE_ARG(name_list_text(call->arena, &missing)));
    request->fetch_whole = wants_all || missing.count > 0;
    return true;
}

/* Their order is that of a hash set: seen are [a, b] of a condition on b and then a, and [zz, aa, mm] as they were
 * written, which fall into one bucket. */
struct slice index_filter_fault(struct api_call *call, const struct page_request *request)
{
    struct name_list names = {0};
    name_list_add_condition(call->arena, &names, request->filter);
    struct name_list missing = missing_of(call, request, &names);
    if (missing.count == 0) return SLICE_NONE;
    name_list_hash_order(&missing);
    return arena_printf(call->arena,
                        "One or more parameter values were invalid: Secondary index %.*s does not project one "
                        "or more filter attributes: [%.*s]",
                        SLICE_ARG(request->index->name), SLICE_ARG(name_list_text(call->arena, &missing)));
}
