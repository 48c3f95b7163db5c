/* The indexes of a table out of a request. CreateTable takes all of them at once: the service looks at the
 * keys of all, then at attributes that no key uses, then at everything else. UpdateTable adds one. */
#include <stdlib.h>

#include "api/tables.h"

#define INDEXES_JUDGED_MAX                                                                                   \
    100 /* each index is judged before their number; a longer list only by its number */

struct index_definition *definition_index(const struct table_definition *definition, struct slice name)
{
    for (uint32_t i = 0; i < definition->index_count; i++)
        if (slice_equal(definition->indexes[i].name, name)) return &definition->indexes[i];
    return NULL;
}

const struct index_definition *creating_index(const struct table_definition *definition)
{
    for (uint32_t i = 0; i < definition->index_count; i++)
        if (definition->indexes[i].status == INDEX_CREATING) return &definition->indexes[i];
    return NULL;
}

/* ---- projections ---- */

static int by_bytes(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Kept sorted, as the service shows them. */
static bool take_non_key(struct verdict *verdict, const struct node *list, struct index_definition *out)
{
    out->non_key = arena_array(verdict->arena, struct slice, list->count);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->elements[i].present) out->non_key[out->non_key_count++] = list->elements[i].text;
    if (out->non_key_count) qsort(out->non_key, out->non_key_count, sizeof *out->non_key, by_bytes);
    for (uint32_t i = 1; i < out->non_key_count; i++)
        if (slice_equal(out->non_key[i - 1], out->non_key[i]))
            return reject(verdict, INVALID_VALUES "Duplicate element in NonKeyAttributes: %.*s",
                          SLICE_ARG(out->non_key[i]));
    return true;
}

bool define_projection(struct verdict *verdict, const struct node *node, struct index_definition *out)
{
    const struct node *type = node_member(node, PROJECTION_TYPE),
                      *non_key = node_member(node, PROJECTION_NON_KEY);
    if (!type->present) return reject(verdict, INVALID_VALUES "Unknown ProjectionType: null");
    bool includes = node_says(type, "INCLUDE");
    if (non_key->present && !includes)
        return reject(verdict, INVALID_VALUES "ProjectionType is %.*s, but NonKeyAttributes is specified",
                      SLICE_ARG(type->text));
    if (!non_key->present && includes)
        return reject(verdict,
                      INVALID_VALUES "ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
    out->projection = includes ? PROJECT_INCLUDE : node_says(type, "ALL") ? PROJECT_ALL : PROJECT_KEYS_ONLY;
    return !includes || take_non_key(verdict, non_key, out);
}

bool check_projected(struct verdict *verdict, const struct table_definition *definition)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < definition->index_count; i++) count += definition->indexes[i].non_key_count;
    for (uint32_t i = 0; i < definition->vector_count; i++) /* each has its vector, too */
        count += definition->vectors[i].index.non_key_count + definition->vectors[i].filter_count + 1;
    if (count <= LIMIT_PROJECTED_ATTRIBUTES) return true;
    return reject(verdict,
                  INVALID_VALUES "Number of NonKeyAttributes of all indexes exceeds per-table limit of %d",
                  LIMIT_PROJECTED_ATTRIBUTES);
}

/* ---- throughput ---- */

static bool check_new_units(struct verdict *verdict, const struct node *units, bool on_demand,
                            struct slice name)
{
    if (on_demand && units->present)
        return reject(verdict,
                      INVALID_VALUES
                      "ProvisionedThroughput should not be specified for index: %.*s when BillingMode "
                      "is PAY_PER_REQUEST",
                      SLICE_ARG(name));
    if (!on_demand && !units->present)
        return reject(verdict, INVALID_VALUES "ProvisionedThroughput is not specified for index: %.*s",
                      SLICE_ARG(name));
    return check_units(verdict, units);
}

static bool check_added_units(struct verdict *verdict, const struct node *units, bool on_demand,
                              struct slice name)
{
    if (on_demand && units->present)
        return reject(verdict,
                      INVALID_VALUES
                      "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %.*s "
                      "when BillingMode is PAY_PER_REQUEST",
                      SLICE_ARG(name));
    if (!on_demand && !units->present)
        return reject(verdict,
                      INVALID_VALUES
                      "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %.*s",
                      SLICE_ARG(name));
    return check_units(verdict, units);
}

static bool define_throughput(struct verdict *verdict, const struct node *node, bool on_demand,
                              struct index_definition *out)
{
    struct throughput_rules rules = {.index = out->name, .on_demand = on_demand};
    take_units(node_member(node, GLOBAL_UNITS), &out->throughput);
    return define_on_demand(verdict, node_member(node, GLOBAL_ON_DEMAND), &rules, &out->throughput) &&
           define_warm(verdict, node_member(node, GLOBAL_WARM), &rules, &out->throughput);
}

bool define_added_index(struct verdict *verdict, const struct node *node, const struct attributes *attributes,
                        bool on_demand, struct index_definition *out)
{
    *out = (struct index_definition){
        .name = node_member(node, GLOBAL_NAME)->text, .global = true, .throughput = throughput_none};
    if (!attributes->count)
        return reject(verdict, INVALID_VALUES "AttributeDefinitions is not specified for index: %.*s",
                      SLICE_ARG(out->name));
    return define_global_keys(verdict, node_member(node, GLOBAL_KEYS), attributes, out) &&
           define_projection(verdict, node_member(node, GLOBAL_PROJECTION), out) &&
           check_added_units(verdict, node_member(node, GLOBAL_UNITS), on_demand, out->name) &&
           define_throughput(verdict, node, on_demand, out);
}

/* ---- all indexes of a new table ---- */

static bool reject_local_count(struct verdict *verdict)
{
    return reject(verdict, INVALID_VALUES "Number of LocalSecondaryIndexes exceeds per-table limit of %d",
                  LIMIT_LSI_COUNT);
}

static bool reject_global_count(struct verdict *verdict)
{
    return reject(verdict, INVALID_VALUES "GlobalSecondaryIndex count exceeds the per-table limit of %d",
                  LIMIT_GSI_COUNT);
}

static bool take_local_keys(struct verdict *verdict, const struct node *list, struct table_definition *out)
{
    if (!list->present) return true;
    if (list->count == 0) return reject(verdict, INVALID_VALUES "List of LocalSecondaryIndexes is empty");
    if (list->count > INDEXES_JUDGED_MAX) return reject_local_count(verdict);
    if (out->range.len == 0)
        return reject(verdict,
                      INVALID_VALUES "Table KeySchema does not have a range key, which is required when "
                                     "specifying a LocalSecondaryIndex");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->elements[i];
        struct index_definition *index = &out->indexes[out->index_count];
        if (!node->present) continue;
        *index = (struct index_definition){.name = node_member(node, LOCAL_NAME)->text,
                                           .throughput = throughput_none};
        if (!define_local_keys(verdict, node_member(node, LOCAL_KEYS), out, index)) return false;
        out->index_count++;
    }
    return true;
}

static bool take_global_keys(struct verdict *verdict, const struct node *list, struct table_definition *out)
{
    struct attributes attributes = {out->attributes, out->attribute_count};
    if (!list->present) return true;
    if (list->count == 0) return reject(verdict, INVALID_VALUES "List of GlobalSecondaryIndexes is empty");
    if (list->count > INDEXES_JUDGED_MAX) return reject_global_count(verdict);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->elements[i];
        struct index_definition *index = &out->indexes[out->index_count];
        if (!node->present) continue;
        *index = (struct index_definition){
            .name = node_member(node, GLOBAL_NAME)->text, .global = true, .throughput = throughput_none};
        if (!define_global_keys(verdict, node_member(node, GLOBAL_KEYS), &attributes, index)) return false;
        out->index_count++;
    }
    return true;
}

static bool check_name_is_new(struct verdict *verdict, const struct table_definition *definition,
                              uint32_t place)
{
    struct slice name = definition->indexes[place].name;
    if (definition_index(definition, name) == &definition->indexes[place]) return true;
    return reject(verdict, INVALID_VALUES "Duplicate index name: %.*s", SLICE_ARG(name));
}

static bool finish_local(struct verdict *verdict, const struct node *list, struct table_definition *out,
                         uint32_t *place)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (!list->elements[i].present) continue;
        const struct node *projection = node_member(&list->elements[i], LOCAL_PROJECTION);
        if (!define_projection(verdict, projection, &out->indexes[*place]) ||
            !check_name_is_new(verdict, out, *place))
            return false;
        ++*place;
    }
    return list->count <= LIMIT_LSI_COUNT || reject_local_count(verdict);
}

static bool finish_global(struct verdict *verdict, const struct node *list, struct table_definition *out,
                          uint32_t *place)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->elements[i];
        struct index_definition *index = &out->indexes[*place];
        if (!node->present) continue;
        if (!define_projection(verdict, node_member(node, GLOBAL_PROJECTION), index) ||
            !check_new_units(verdict, node_member(node, GLOBAL_UNITS), out->on_demand, index->name) ||
            !define_throughput(verdict, node, out->on_demand, index) ||
            !check_name_is_new(verdict, out, *place))
            return false;
        ++*place;
    }
    return list->count <= LIMIT_GSI_COUNT || reject_global_count(verdict);
}

bool definition_has_index(const struct table_definition *definition, struct slice name)
{
    for (uint32_t i = 0; i < definition->vector_count; i++)
        if (slice_equal(definition->vectors[i].index.name, name)) return true;
    return definition_index(definition, name) != NULL;
}

bool define_indexes(struct verdict *verdict, const struct node *local, const struct node *global,
                    const struct node *vectors, struct table_definition *out)
{
    uint32_t place = 0;
    out->indexes = arena_array(verdict->arena, struct index_definition, local->count + global->count);
    return take_local_keys(verdict, local, out) && take_global_keys(verdict, global, out) &&
           define_vectors(verdict, vectors, out) && check_all_used(verdict, out) &&
           finish_local(verdict, local, out, &place) &&
           finish_global(verdict, global, out, &place) && check_projected(verdict, out);
}
