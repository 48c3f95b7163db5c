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

/* Names, each once, as "[a, b]". */
struct name_list {
    struct slice *names;
    uint32_t count, capacity;
};

static void add_name(struct arena *arena, struct name_list *list, struct slice name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (slice_equal(list->names[i], name)) return;
    if (list->count == list->capacity) {
        uint32_t wider = list->capacity ? list->capacity * 2 : 8;
        struct slice *names = arena_array(arena, struct slice, wider);
        if (list->count) memcpy(names, list->names, list->count * sizeof *names);
        list->names = names;
        list->capacity = wider;
    }
    list->names[list->count++] = name;
}

static struct slice list_text(struct api_call *call, const struct name_list *list)
{
    struct buf text = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        if (i) buf_text(&text, ", ");
        buf_slice(&text, list->names[i]);
    }
    struct slice copy = arena_copy(call->arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

static void add_if_missing(struct api_call *call, const struct page_request *request, struct name_list *list,
                           const struct path *path)
{
    if (path->count && !index_projects(request->table, request->index, path->parts[0].name))
        add_name(call->arena, list, path->parts[0].name);
}

static void add_missing_of(struct api_call *call, const struct page_request *request, struct name_list *list,
                           const struct condition *condition)
{
    if (!condition) return;
    for (uint32_t i = 0; i < condition->operand_count; i++)
        add_if_missing(call, request, list, &condition->operands[i].path);
    add_missing_of(call, request, list, condition->left);
    add_missing_of(call, request, list, condition->right);
}

bool check_index_select(struct api_call *call, const struct node *select, struct page_request *request)
{
    const struct index_definition *index = request->index;
    struct name_list missing = {0};
    bool wants_all = node_says(select, "ALL_ATTRIBUTES") && index->projection != PROJECT_ALL;
    if (wants_all && index->global)
        return invalid(call,
                       "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not "
                       "supported for global secondary index %.*s because its projection type is not ALL",
                       SLICE_ARG(index->name));
    for (uint32_t i = 0; request->projection && i < request->projection->count; i++)
        add_if_missing(call, request, &missing, &request->projection->paths[i]);
    if (missing.count && index->global)
        return invalid(call,
                       "One or more parameter values were invalid: Global secondary index %.*s does not "
                       "project [%.*s]",
                       SLICE_ARG(index->name), SLICE_ARG(list_text(call, &missing)));
    request->fetch_whole = wants_all || missing.count > 0;
    return true;
}

struct slice index_filter_fault(struct api_call *call, const struct page_request *request)
{
    struct name_list missing = {0};
    add_missing_of(call, request, &missing, request->filter);
    if (missing.count == 0) return SLICE_NONE;
    return arena_printf(call->arena,
                        "One or more parameter values were invalid: Secondary index %.*s does not project one "
                        "or more filter attributes: [%.*s]",
                        SLICE_ARG(request->index->name), SLICE_ARG(list_text(call, &missing)));
}
