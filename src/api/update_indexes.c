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

static unsigned count_actions(const struct node *element)
{
    unsigned count = 0;
    for (unsigned member = INDEX_UPDATE; element->present && member <= INDEX_DELETE; member++)
        count += node_member(element, member)->present;
    return count;
}

static struct slice index_name(const struct node *element)
{
    const struct node *change = node_member(element, INDEX_UPDATE),
                      *create = node_member(element, INDEX_CREATE);
    if (change->present) return node_member(change, CHANGE_NAME)->text;
    if (create->present) return node_member(create, GLOBAL_NAME)->text;
    return node_member(node_member(element, INDEX_DELETE), DELETE_NAME)->text;
}

bool reject_online_index(struct verdict *verdict)
{
    return reject_as(
        verdict, "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table");
}

static bool check_action(struct verdict *verdict, const struct node *element)
{
    if (!count_actions(element))
        return reject(verdict, INVALID_VALUES "One of GlobalSecondaryIndexUpdate.Update, "
                                              "GlobalSecondaryIndexUpdate.Create, "
                                              "GlobalSecondaryIndexUpdate.Delete must not be null");
    if (count_actions(element) > 1)
        return reject(verdict, INVALID_VALUES "Only one global secondary index action is allowed per "
                                              "GlobalSecondaryIndexUpdate object");
    const struct node *change = node_member(element, INDEX_UPDATE);
    if (!change->present) return true;
    const struct node *warm = node_member(change, CHANGE_WARM);
    if (warm->present && !has_members(warm))
        return reject(verdict,
                      INVALID_VALUES "WarmThroughput must have at least one of ReadUnitsPerSecond or "
                                     "WriteUnitsPerSecond specified for index: %.*s",
                      SLICE_ARG(node_member(change, CHANGE_NAME)->text));
    return true;
}

bool check_index_updates(struct verdict *verdict, const struct node *list)
{
    if (list->count > LIMIT_GSI_COUNT * 2) return reject_online_index(verdict);
    for (uint32_t i = 0; i < list->count; i++) {
        if (!check_action(verdict, &list->elements[i])) return false;
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

static uint32_t count_builds(const struct node *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += count_actions(&list->elements[i]) && !node_member(&list->elements[i], INDEX_UPDATE)->present;
    return count;
}

bool builds_indexes(const struct node *list)
{
    return count_builds(list) > 0;
}

/* ---- against the table ---- */

/* The global index of this name; refuses when there is none, or when it is a local one. */
static struct index_definition *find_global(struct table_update *update, struct slice name, const char *verb)
{
    struct index_definition *index = definition_index(update->after, name);
    if (index && index->global) return index;
    if (index)
        reject(&update->verdict, "Cannot %s an index that is not a GlobalSecondaryIndex: %.*s", verb,
               SLICE_ARG(name));
    else
        reject_as(&update->verdict, "ResourceNotFoundException",
                  "Requested resource not found: Index %.*s for table %.*s", SLICE_ARG(name),
                  SLICE_ARG(update->after->name));
    return NULL;
}

static bool reject_same_units(struct verdict *verdict, struct slice name, const struct throughput *units)
{
    return reject(
        verdict,
        "The provisioned throughput for the index %.*s will not change. The requested value equals the "
        "current "
        "value. Current ReadCapacityUnits provisioned for index %.*s: %lld. Requested ReadCapacityUnits: "
        "%lld. "
        "Current WriteCapacityUnits provisioned for index %.*s: %lld. Requested WriteCapacityUnits: %lld. "
        "Refer "
        "to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
        SLICE_ARG(name), SLICE_ARG(name), (long long)units->read_units, (long long)units->read_units,
        SLICE_ARG(name), (long long)units->write_units, (long long)units->write_units);
}

static bool change_units(struct table_update *update, const struct node *units,
                         struct index_definition *index)
{
    struct verdict *verdict = &update->verdict, bounds = {.arena = verdict->arena};
    struct throughput old = index->throughput;
    if (!units->present) return true;
    if (!check_units(&bounds, units))
        return reject(verdict,
                      "This operation cannot be performed with given input values. Please contact DynamoDB "
                      "service team for more info: Action Blocked: IndexUpdate");
    take_units(units, &index->throughput);
    if (old.read_units != index->throughput.read_units || old.write_units != index->throughput.write_units)
        return true;
    return reject_same_units(verdict, index->name, &old);
}

/* What an index may be given depends on how its table is billed. */
static bool check_change(struct verdict *verdict, const struct node *change,
                         const struct throughput_rules *rules)
{
    bool units = node_member(change, CHANGE_UNITS)->present;
    bool other = has_members(node_member(change, CHANGE_ON_DEMAND)) ||
                 has_members(node_member(change, CHANGE_WARM));
    if (rules->on_demand && (units || !other))
        return reject(verdict,
                      INVALID_VALUES
                      "The only Updates for index: %.*s when TableThroughputMode is PAY_PER_REQUEST can "
                      "be to OnDemandThroughput, WarmThroughput",
                      SLICE_ARG(rules->index));
    if (!rules->on_demand && !units && !other)
        return reject(verdict,
                      INVALID_VALUES
                      "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %.*s",
                      SLICE_ARG(rules->index));
    return true;
}

static bool change_index(struct table_update *update, const struct node *change)
{
    struct verdict *verdict = &update->verdict;
    struct index_definition *index = find_global(update, node_member(change, CHANGE_NAME)->text, "update");
    if (!index) return false;
    struct throughput_rules rules = {
        .index = index->name, .on_demand = update->after->on_demand, .is_update = true};
    return check_change(verdict, change, &rules) &&
           change_units(update, node_member(change, CHANGE_UNITS), index) &&
           define_on_demand(verdict, node_member(change, CHANGE_ON_DEMAND), &rules, &index->throughput) &&
           define_warm(verdict, node_member(change, CHANGE_WARM), &rules, &index->throughput);
}

/* "Schema:[SchemaElement: key{a:S:HASH}, SchemaElement: key{b:N:RANGE}]" */
static struct slice schema_text(struct arena *arena, const struct slice *hash, uint32_t hash_count,
                                const struct slice *range, uint32_t range_count,
                                const struct table_definition *types)
{
    struct slice text = SLICE_NONE;
    for (uint32_t i = 0; i < hash_count + range_count; i++) {
        bool is_hash = i < hash_count;
        struct slice name = is_hash ? hash[i] : range[i - hash_count];
        enum value_type type;
        struct slice type_name = table_attribute_type(types, name, &type) ? value_type_name(type)
                                                                          : SLICE_NONE;
        text = arena_printf(arena, "%.*s%sSchemaElement: key{%.*s:%.*s:%s}", SLICE_ARG(text), i ? ", " : "",
                            SLICE_ARG(name), SLICE_ARG(type_name), is_hash ? "HASH" : "RANGE");
    }
    return arena_printf(arena, "Schema:[%.*s]", SLICE_ARG(text));
}

static bool is_named(const struct slice *names, uint32_t count, struct slice name)
{
    for (uint32_t i = 0; i < count; i++)
        if (slice_equal(names[i], name)) return true;
    return false;
}

/* The schema that has the attribute already: the table's, or that of an index. */
static struct slice schema_with(struct arena *arena, const struct table_definition *table, struct slice name)
{
    for (uint32_t i = 0; i < table->index_count; i++) {
        const struct index_definition *index = &table->indexes[i];
        if (is_named(index->hash, index->hash_count, name) ||
            is_named(index->range, index->range_count, name))
            return schema_text(arena, index->hash, index->hash_count, index->range, index->range_count,
                               table);
    }
    return schema_text(arena, &table->hash, 1, &table->range, table->range.len > 0, table);
}

/* What is a key already has its type. */
static bool check_types(struct table_update *update, const struct index_definition *index,
                        const struct attributes *attributes)
{
    struct arena *arena = update->verdict.arena;
    struct table_definition given = {.attributes = attributes->list, .attribute_count = attributes->count};
    for (uint32_t i = 0; i < index->hash_count + index->range_count; i++) {
        struct slice name = i < index->hash_count ? index->hash[i] : index->range[i - index->hash_count];
        enum value_type old, new;
        if (!definition_uses(update->after, name) || !table_attribute_type(update->after, name, &old) ||
            !table_attribute_type(&given, name, &new) || old == new)
            continue;
        struct slice after = schema_text(arena, index->hash, index->hash_count, index->range,
                                         index->range_count, &given);
        return reject(&update->verdict,
                      INVALID_VALUES
                      "Attributes cannot be redefined. Please check that your attribute has the same type as "
                      "previously defined. Existing schema: %.*s New schema: %.*s",
                      SLICE_ARG(schema_with(arena, update->after, name)), SLICE_ARG(after));
    }
    return true;
}

static bool create_index(struct table_update *update, const struct node *create,
                         const struct attributes *attributes)
{
    struct table_definition *after = update->after;
    struct index_definition index;
    uint32_t globals = 0;
    if (definition_has_index(after, node_member(create, GLOBAL_NAME)->text))
        return reject(&update->verdict, "Attempting to create an index which already exists");
    if (!define_added_index(&update->verdict, create, attributes, after->on_demand, &index) ||
        !check_types(update, &index, attributes))
        return false;
    for (uint32_t i = 0; i < after->index_count; i++) globals += after->indexes[i].global;
    if (globals >= LIMIT_GSI_COUNT)
        return reject_as(
            &update->verdict, "LimitExceededException",
            "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of %d",
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
    struct index_definition *index = find_global(update, name, "delete");
    if (!index) return false;
    size_t behind = (size_t)(after->indexes + after->index_count - (index + 1));
    memmove(index, index + 1, behind * sizeof *index);
    after->index_count--;
    return true;
}

/* While an index is being created, no other can be created or deleted; it can itself be deleted. */
static bool check_none_is_built(struct table_update *update, const struct node *list)
{
    const struct index_definition *building = creating_index(update->before);
    const struct vector_definition *filling = filling_vectors(update->table);
    if (!building && filling && builds_indexes(list)) return reject_online_index(&update->verdict);
    for (uint32_t i = 0; building && i < list->count; i++) {
        const struct node *element = &list->elements[i];
        bool same = slice_equal(index_name(element), building->name);
        if (same && node_member(element, INDEX_CREATE)->present)
            return reject_as(&update->verdict, "ResourceInUseException",
                             IN_USE "Index is being created.  Table: %.*s Index: %.*s",
                             SLICE_ARG(update->before->name), SLICE_ARG(building->name));
        if (!same && !node_member(element, INDEX_UPDATE)->present) return reject_online_index(&update->verdict);
    }
    return true;
}

bool apply_index_updates(struct table_update *update, const struct node *list,
                         const struct attributes *attributes)
{
    if (list->count > INDEX_UPDATES_MAX || count_builds(list) > 1) return reject_online_index(&update->verdict);
    if (!check_none_is_built(update, list)) return false;
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
