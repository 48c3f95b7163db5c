/* A table's attributes and keys, and the keys of its indexes, out of a request, with the service's checks in
 * its order. */
#include <stdlib.h>

#include "api/tables.h"
#include "base/fail.h"

/* ---- attributes ---- */

static const struct key_attribute *find_attribute(const struct attributes *attributes, struct slice name)
{
    for (uint32_t i = 0; i < attributes->count; i++)
        if (slice_equal(attributes->list[i].name, name)) return &attributes->list[i];
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct key_attribute *)a)->name, ((const struct key_attribute *)b)->name);
}

void sort_attributes(struct attributes *attributes)
{
    if (attributes->count) qsort(attributes->list, attributes->count, sizeof *attributes->list, by_name);
}

bool define_attributes(struct verdict *verdict, const struct node *list, struct attributes *out)
{
    out->count = 0;
    out->list = arena_array(verdict->arena, struct key_attribute, list->count);
    if (list->count > LIMIT_ATTRIBUTE_DEFINITIONS)
        return reject(verdict, INVALID_VALUES "Some AttributeDefinitions are not used.");
    for (uint32_t i = 0; i < list->count; i++) {
        if (!list->elements[i].present) continue;
        struct key_attribute attribute = {.name = node_member(&list->elements[i], ATTRIBUTE_NAME)->text};
        ensure(value_type_from_name(node_member(&list->elements[i], ATTRIBUTE_TYPE)->text, &attribute.type));
        if (find_attribute(out, attribute.name))
            return reject(verdict, "Attribute Name is duplicated: %.*s", SLICE_ARG(attribute.name));
        out->list[out->count++] = attribute;
    }
    sort_attributes(out);
    return true;
}

/* ---- keys ---- */

/* A KeySchema: names and types one after the other. */
struct key_list {
    struct slice names[2 * INDEX_KEY_PARTS];
    bool is_hash[2 * INDEX_KEY_PARTS];
    uint32_t count;
};

static void take_keys(const struct node *key_schema, struct key_list *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < key_schema->count; i++) {
        const struct node *element = &key_schema->elements[i];
        if (!element->present) continue;
        ensure(out->count < 2 * INDEX_KEY_PARTS);
        out->names[out->count] = node_member(element, KEY_NAME)->text;
        out->is_hash[out->count++] = node_says(node_member(element, KEY_TYPE), "HASH");
    }
}

/* "a, b, c": the names that stand so many bytes apart. */
static struct slice join_names(struct arena *arena, const void *first, uint32_t count, size_t stride)
{
    struct buf text = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_text(&text, ", ");
        buf_slice(&text, *(const struct slice *)((const char *)first + i * stride));
    }
    struct slice copy = arena_copy(arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

static struct slice join_attributes(struct arena *arena, const struct attributes *attributes)
{
    return join_names(arena, attributes->list, attributes->count, sizeof *attributes->list);
}

static bool check_defined(struct verdict *verdict, const struct key_list *keys,
                          const struct attributes *attributes)
{
    if (keys->count > attributes->count)
        return reject(verdict, "Invalid KeySchema: Some index key attribute have no definition");
    for (uint32_t i = 0; i < keys->count; i++)
        if (!find_attribute(attributes, keys->names[i]))
            return reject(
                verdict,
                INVALID_VALUES "Some index key attributes are not defined in AttributeDefinitions. "
                               "Keys: [%.*s], AttributeDefinitions: [%.*s]",
                SLICE_ARG(join_names(verdict->arena, keys->names, keys->count, sizeof *keys->names)),
                SLICE_ARG(join_attributes(verdict->arena, attributes)));
    return true;
}

static bool check_distinct(struct verdict *verdict, const struct key_list *keys)
{
    for (uint32_t i = 1; i < keys->count; i++)
        for (uint32_t j = 0; j < i; j++) {
            if (!slice_equal(keys->names[i], keys->names[j])) continue;
            if (keys->count > 2)
                return reject(verdict, "The KeySchema contains multiple key attributes with the same name");
            return reject(verdict,
                          "Both the Hash Key and the Range Key element in the KeySchema have the same name");
        }
    return true;
}

/* One hash attribute, then at most one range attribute: tables and local indexes. */
static bool check_simple_keys(struct verdict *verdict, const struct key_list *keys,
                              const struct attributes *attributes)
{
    if (!check_defined(verdict, keys, attributes) || !check_distinct(verdict, keys)) return false;
    if (keys->count == 0 || !keys->is_hash[0])
        return reject(verdict, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    if (keys->count == 2 && keys->is_hash[1])
        return reject(verdict, "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
    return true;
}

/* Up to four hash attributes, then up to four range attributes: global indexes. */
static bool check_compound_keys(struct verdict *verdict, const struct key_list *keys,
                                const struct attributes *attributes)
{
    uint32_t hashes = 0;
    if (!check_defined(verdict, keys, attributes) || !check_distinct(verdict, keys)) return false;
    if (keys->count == 0 || !keys->is_hash[0])
        return reject(verdict, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    while (hashes < keys->count && keys->is_hash[hashes]) hashes++;
    for (uint32_t i = hashes; i < keys->count; i++)
        if (keys->is_hash[i])
            return reject(verdict,
                          INVALID_VALUES "All HASH key attributes must precede RANGE key attributes in the "
                                         "KeySchema");
    if (hashes > INDEX_KEY_PARTS || keys->count - hashes > INDEX_KEY_PARTS)
        return reject(verdict,
                      INVALID_VALUES "The KeySchema exceeds the maximum allowed number of %s key attributes",
                      hashes > INDEX_KEY_PARTS ? "HASH" : "RANGE");
    return true;
}

bool define_keys(struct verdict *verdict, const struct node *key_schema, const struct attributes *attributes,
                 struct table_definition *out)
{
    struct key_list keys;
    take_keys(key_schema, &keys);
    if (!check_simple_keys(verdict, &keys, attributes)) return false;
    out->hash = keys.names[0];
    if (keys.count == 2) out->range = keys.names[1];
    return true;
}

static void set_index_keys(struct index_definition *index, const struct key_list *keys)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        if (keys->is_hash[i])
            index->hash[index->hash_count++] = keys->names[i];
        else
            index->range[index->range_count++] = keys->names[i];
    }
}

bool define_local_keys(struct verdict *verdict, const struct node *key_schema,
                       const struct table_definition *table, struct index_definition *out)
{
    struct key_list keys;
    struct attributes attributes = {table->attributes, table->attribute_count};
    take_keys(key_schema, &keys);
    if (!check_simple_keys(verdict, &keys, &attributes)) return false;
    if (keys.count != 2)
        return reject(verdict, INVALID_VALUES "Index KeySchema does not have a range key for index: %.*s",
                      SLICE_ARG(out->name));
    if (!slice_equal(keys.names[0], table->hash))
        return reject(verdict,
                      INVALID_VALUES
                      "Index KeySchema does not have the same leading hash key as table KeySchema for "
                      "index: %.*s. index hash key: %.*s, table hash key: %.*s",
                      SLICE_ARG(out->name), SLICE_ARG(keys.names[0]), SLICE_ARG(table->hash));
    set_index_keys(out, &keys);
    return true;
}

bool define_global_keys(struct verdict *verdict, const struct node *key_schema,
                        const struct attributes *attributes, struct index_definition *out)
{
    struct key_list keys;
    take_keys(key_schema, &keys);
    if (!check_compound_keys(verdict, &keys, attributes)) return false;
    set_index_keys(out, &keys);
    return true;
}

/* ---- attributes and keys together ---- */

static bool is_index_key(const struct index_definition *index, struct slice name)
{
    for (uint32_t i = 0; i < index->hash_count; i++)
        if (slice_equal(index->hash[i], name)) return true;
    for (uint32_t i = 0; i < index->range_count; i++)
        if (slice_equal(index->range[i], name)) return true;
    return false;
}

bool definition_uses(const struct table_definition *definition, struct slice name)
{
    if (slice_equal(definition->hash, name) || slice_equal(definition->range, name)) return true;
    for (uint32_t i = 0; i < definition->index_count; i++)
        if (is_index_key(&definition->indexes[i], name)) return true;
    for (uint32_t i = 0; i < definition->vector_count; i++) {
        const struct vector_definition *vectors = &definition->vectors[i];
        if (is_index_key(&vectors->index, name)) return true;
        for (uint32_t j = 0; j < vectors->filter_count; j++)
            if (slice_equal(vectors->filters[j], name)) return true;
    }
    return false;
}

bool check_all_used(struct verdict *verdict, const struct table_definition *definition)
{
    struct attributes all = {definition->attributes, definition->attribute_count}, used = {.count = 0};
    if (!definition->index_count && !definition->vector_count) {
        if (all.count == (definition->range.len ? 2u : 1u)) return true;
        return reject(verdict,
                      INVALID_VALUES "Number of attributes in KeySchema does not exactly match number of "
                                     "attributes defined in AttributeDefinitions");
    }
    used.list = arena_array(verdict->arena, struct key_attribute, all.count);
    for (uint32_t i = 0; i < all.count; i++)
        if (definition_uses(definition, all.list[i].name)) used.list[used.count++] = all.list[i];
    if (used.count == all.count) return true;
    return reject(verdict,
                  INVALID_VALUES
                  "Some AttributeDefinitions are not used. AttributeDefinitions: [%.*s], keys used: [%.*s]",
                  SLICE_ARG(join_attributes(verdict->arena, &all)),
                  SLICE_ARG(join_attributes(verdict->arena, &used)));
}
