/* GlobalSecondaryIndexUpdates: indexes updated, created and deleted by UpdateTable. */
#include "api/update_table.h"

#define INDEX_UPDATES_MAX 5 /* the service refuses a longer list whatever it says */

enum { INDEX_UPDATE, INDEX_CREATE, INDEX_DELETE };
enum { CHANGE_NAME, CHANGE_UNITS, CHANGE_ON_DEMAND, CHANGE_WARM };
enum { DELETE_NAME };

static const struct shape_member change_members[] = {
    [CHANGE_NAME] = REQUIRED("IndexName", shape_index_name),
    [CHANGE_UNITS] = MEMBER("ProvisionedThroughput", shape_units),
    [CHANGE_ON_DEMAND] = MEMBER("OnDemandThroughput", shape_on_demand),
    [CHANGE_WARM] = MEMBER("WarmThroughput", shape_warm),
};
static const struct shape shape_change = STRUCT_SHAPE("UpdateGlobalSecondaryIndexAction", change_members);

static const struct shape_member delete_members[] = {[DELETE_NAME] = REQUIRED("IndexName", shape_index_name)};
static const struct shape shape_delete = STRUCT_SHAPE("DeleteGlobalSecondaryIndexAction", delete_members);

static const struct shape_member index_update_members[] = {
    [INDEX_UPDATE] = MEMBER("Update", shape_change),
    [INDEX_CREATE] = MEMBER("Create", shape_global_index_create),
    [INDEX_DELETE] = MEMBER("Delete", shape_delete),
};
static const struct shape shape_index_update = STRUCT_SHAPE("GlobalSecondaryIndexUpdate",
                                                            index_update_members);
const struct shape shape_index_updates = LIST_SHAPE(shape_index_update);

/* ---- checks of the request alone ---- */

static struct slice index_name(const struct node *element)
{
    const struct node *change = node_member(element, INDEX_UPDATE),
                      *create = node_member(element, INDEX_CREATE);
    if (change->present) return node_member(change, CHANGE_NAME)->text;
    if (create->present) return node_member(create, GLOBAL_NAME)->text;
    return node_member(node_member(element, INDEX_DELETE), DELETE_NAME)->text;
}

static bool is_empty(const struct node *element)
{
    return !element->present ||
           (!node_member(element, INDEX_UPDATE)->present && !node_member(element, INDEX_CREATE)->present &&
            !node_member(element, INDEX_DELETE)->present);
}

static bool reject_number(struct verdict *verdict)
{
    return reject_as(
        verdict, "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table");
}

bool check_index_updates(struct verdict *verdict, const struct node *list)
{
    if (list->count > LIMIT_GSI_COUNT * 2) return reject_number(verdict);
    for (uint32_t i = 0; i < list->count; i++) {
        if (is_empty(&list->elements[i]))
            return reject(verdict, INVALID_VALUES "One of GlobalSecondaryIndexUpdate.Update, "
                                                  "GlobalSecondaryIndexUpdate.Create, "
                                                  "GlobalSecondaryIndexUpdate.Delete must not be null");
        struct slice name = index_name(&list->elements[i]);
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(index_name(&list->elements[j]), name))
                return reject(verdict,
                              INVALID_VALUES "Only one global secondary index update per index is allowed "
                                             "simultaneously. Index: %.*s",
                              SLICE_ARG(name));
    }
    return true;
}

/* ---- against the table ---- */

static struct index_definition *find_global(const struct table_definition *definition, struct slice name)
{
    struct index_definition *index = definition_index(definition, name);
    return index && index->global ? index : NULL;
}

static bool change_index(struct table_update *update, const struct node *change)
{
    struct verdict *verdict = &update->verdict;
    const struct node *units = node_member(change, CHANGE_UNITS);
    struct index_definition *index = find_global(update->after, node_member(change, CHANGE_NAME)->text);
    struct verdict bounds = {.arena = verdict->arena};
    if (!index || !check_units(&bounds, units))
        return reject(verdict,
                      "This operation cannot be performed with given input values. Please contact DynamoDB "
                      "service team for more info: Action Blocked: IndexUpdate");
    if (units->present && update->after->on_demand)
        return reject(verdict,
                      INVALID_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                                     "BillingMode is PAY_PER_REQUEST");
    struct throughput old = index->throughput;
    take_units(units, &index->throughput);
    if (units->present && old.read_units == index->throughput.read_units &&
        old.write_units == index->throughput.write_units)
        return reject(
            verdict,
            "The provisioned throughput for the index %.*s will not change. The requested value equals the "
            "current value. Current ReadCapacityUnits provisioned for the index: %lld. Requested "
            "ReadCapacityUnits: %lld. Current WriteCapacityUnits provisioned for the index: %lld. Requested "
            "WriteCapacityUnits: %lld. Refer to the Amazon DynamoDB Developer Guide for current limits and "
            "how to request higher limits.",
            SLICE_ARG(index->name), (long long)old.read_units, (long long)old.read_units,
            (long long)old.write_units, (long long)old.write_units);
    return define_on_demand(verdict, node_member(change, CHANGE_ON_DEMAND), true, &index->throughput) &&
           define_warm(verdict, node_member(change, CHANGE_WARM), &index->throughput);
}

static bool create_index(struct table_update *update, const struct node *create,
                         const struct attributes *attributes)
{
    struct table_definition *after = update->after;
    struct index_definition index;
    uint32_t globals = 0;
    if (definition_index(after, node_member(create, GLOBAL_NAME)->text))
        return reject(&update->verdict, "Attempting to create an index which already exists");
    if (!define_global_index(&update->verdict, create, attributes, after->on_demand, &index)) return false;
    for (uint32_t i = 0; i < after->index_count; i++) globals += after->indexes[i].global;
    if (globals >= LIMIT_GSI_COUNT)
        return reject_as(
            &update->verdict, "LimitExceededException",
            "Subscriber limit exceeded: GlobalSecondaryIndex count exceeds the per-table limit of %d",
            LIMIT_GSI_COUNT);
    struct index_definition *indexes = arena_array(update->verdict.arena, struct index_definition,
                                                   after->index_count + 1);
    if (after->index_count) memcpy(indexes, after->indexes, after->index_count * sizeof *indexes);
    indexes[after->index_count++] = index;
    after->indexes = indexes;
    return true;
}

static bool delete_index(struct table_update *update, struct slice name)
{
    struct table_definition *after = update->after;
    struct index_definition *index = find_global(after, name);
    if (!index)
        return reject_as(&update->verdict, "ResourceNotFoundException",
                         "Requested resource not found: Index: %.*s not found", SLICE_ARG(name));
    size_t behind = (size_t)(after->indexes + after->index_count - (index + 1));
    memmove(index, index + 1, behind * sizeof *index);
    after->index_count--;
    return true;
}

/* Of creations and deletions one request may have one. */
static bool check_number(struct verdict *verdict, const struct node *list)
{
    uint32_t builds = 0;
    for (uint32_t i = 0; i < list->count; i++)
        builds += node_member(&list->elements[i], INDEX_CREATE)->present ||
                  node_member(&list->elements[i], INDEX_DELETE)->present;
    return (list->count <= INDEX_UPDATES_MAX && builds <= 1) || reject_number(verdict);
}

bool apply_index_updates(struct table_update *update, const struct node *list,
                         const struct attributes *attributes)
{
    if (!check_number(&update->verdict, list)) return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *change = node_member(&list->elements[i], INDEX_UPDATE);
        const struct node *create = node_member(&list->elements[i], INDEX_CREATE);
        const struct node *delete = node_member(&list->elements[i], INDEX_DELETE);
        if (change->present && !change_index(update, change)) return false;
        if (create->present && !create_index(update, create, attributes)) return false;
        if (delete->present && !delete_index(update, node_member(delete, DELETE_NAME)->text)) return false;
    }
    return true;
}

bool check_index_units(struct table_update *update)
{
    struct slice missing = SLICE_NONE;
    for (uint32_t i = 0; i < update->after->index_count; i++) {
        const struct index_definition *index = &update->after->indexes[i];
        if (!index->global || index->throughput.read_units) continue;
        missing = arena_printf(update->verdict.arena, "%.*s%s%.*s", SLICE_ARG(missing),
                               missing.len ? "," : "", SLICE_ARG(index->name));
    }
    return !missing.len ||
           reject(&update->verdict, INVALID_VALUES "ProvisionedThroughput must be specified for index: %.*s",
                  SLICE_ARG(missing));
}
