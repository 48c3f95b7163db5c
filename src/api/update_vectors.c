/* VectorIndexUpdates: vector indexes created and deleted by UpdateTable. */
#include "api/update_table.h"

enum { ACTION_CREATE, ACTION_DELETE };
enum { DELETE_NAME };

static const struct shape_member delete_members[] = {[DELETE_NAME] = REQUIRED("IndexName", shape_index_name)};
static const struct shape shape_delete = STRUCT_SHAPE("DeleteVectorIndexAction", delete_members);
static const struct shape_member update_members[] = {
    [ACTION_CREATE] = MEMBER("Create", shape_vector_index_create),
    [ACTION_DELETE] = MEMBER("Delete", shape_delete),
};
static const struct shape shape_update = STRUCT_SHAPE("VectorIndexUpdate", update_members);
const struct shape shape_vector_updates = LIST_SHAPE(shape_update);

bool check_vector_updates(struct verdict *verdict, const struct node *list)
{
    if (!list->present) return true;
    if (!list->count) return reject(verdict, INVALID_VALUES "List of VectorIndexUpdates is empty");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *element = &list->elements[i];
        bool creates = element->present && node_member(element, ACTION_CREATE)->present;
        bool deletes = element->present && node_member(element, ACTION_DELETE)->present;
        if (!creates && !deletes)
            return reject(verdict,
                          INVALID_VALUES "One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must "
                                         "not be null");
        if (creates && deletes)
            return reject(verdict, INVALID_VALUES
                          "Only one vector index action is allowed per VectorIndexUpdate object");
    }
    return list->count == 1 || reject_online_index(verdict);
}

static bool create(struct table_update *update, const struct node *node, const struct attributes *attributes)
{
    if (definition_has_index(update->after, node_member(node, VECTOR_NAME)->text))
        return reject(&update->verdict, "Attempting to create an index which already exists");
    return define_added_vectors(&update->verdict, node, attributes, update->after);
}

static bool delete (struct table_update *update, struct slice name)
{
    struct table_definition *after = update->after;
    uint32_t at = 0;
    while (at < after->vector_count && !slice_equal(after->vectors[at].index.name, name)) at++;
    if (at == after->vector_count)
        return reject_as(&update->verdict, "ResourceNotFoundException",
                         "Requested resource not found: Index %.*s for table %.*s", SLICE_ARG(name),
                         SLICE_ARG(after->name));
    after->vector_count--;
    memmove(after->vectors + at, after->vectors + at + 1,
            (after->vector_count - at) * sizeof *after->vectors);
    return true;
}

bool apply_vector_updates(struct table_update *update, const struct node *list,
                          const struct attributes *attributes)
{
    if (!list->present) return true;
    const struct node *creates = node_member(&list->elements[0], ACTION_CREATE),
                      *deletes = node_member(&list->elements[0], ACTION_DELETE);
    const struct vector_definition *filling = filling_vectors(update->table);
    struct slice name = creates->present ? node_member(creates, VECTOR_NAME)->text
                                         : node_member(deletes, DELETE_NAME)->text;
    bool same = filling && slice_equal(filling->index.name, name);
    if (same && creates->present)
        return reject_as(&update->verdict, "ResourceInUseException",
                         IN_USE "Index is being created.  Table: %.*s Index: %.*s",
                         SLICE_ARG(update->before->name), SLICE_ARG(name));
    if (creating_index(update->before) || (filling && !same)) return reject_online_index(&update->verdict);
    return creates->present ? create(update, creates, attributes) : delete (update, name);
}
