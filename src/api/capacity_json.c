/* ConsumedCapacity and ItemCollectionMetrics. An index costs what the change of its entry costs: entries that
 * stay as they are cost nothing, one that moves to another key is a deletion and an insertion. */
#include "api/items.h"

#define VECTOR_BYTES_MIN 1024 /* of an index's part of a write, and of a search */

bool capacity_wanted(const struct node *return_capacity)
{
    return return_capacity->present && !node_says(return_capacity, "NONE");
}

/* ---- what a write costs ---- */

static bool same_keys(const struct index_definition *index, const struct map *a, const struct map *b)
{
    for (uint32_t i = 0; i < index->hash_count; i++)
        if (!value_equal(map_find(a, index->hash[i]), map_find(b, index->hash[i]))) return false;
    for (uint32_t i = 0; i < index->range_count; i++)
        if (!value_equal(map_find(a, index->range[i]), map_find(b, index->range[i]))) return false;
    return true;
}

static double index_write(struct arena *arena, const struct table *table,
                          const struct index_definition *index, const struct map *old, const struct map *new)
{
    bool was = old && index_holds(table, index, old), is = new &&index_holds(table, index, new);
    if (!was && !is) return 0;
    struct map before = {0}, after = {0};
    if (was) before = index_project(arena, table, index, old);
    if (is) after = index_project(arena, table, index, new);
    if (was && is && map_equal(&before, &after)) return 0;
    size_t old_bytes = map_size(&before), new_bytes = map_size(&after);
    if (was && is && !same_keys(index, old, new))
        return capacity_write(old_bytes, 0) + capacity_write(0, new_bytes);
    return capacity_write(old_bytes, new_bytes);
}

double capacity_of_vectors(uint64_t bytes)
{
    return (double)(bytes < VECTOR_BYTES_MIN ? VECTOR_BYTES_MIN : bytes);
}

static uint64_t float_bytes(const struct vector_definition *vectors)
{
    return vectors->dimensions * sizeof(float);
}

uint64_t vector_entry_bytes(const struct table *table, const struct vector_definition *vectors,
                            const struct map *item)
{
    uint64_t bytes = vectors->attribute.len + float_bytes(vectors);
    for (uint32_t i = 0; i < item->count; i++) {
        const struct attribute *own = &item->attributes[i];
        if (slice_equal(own->name, vectors->attribute) || !vector_projects(table, vectors, own->name)) continue;
        bytes += own->name.len + value_size(&own->value);
    }
    return bytes;
}

/* Whether all that the index has of the item `a` is the same in `b`. */
static bool is_within(const struct table *table, const struct vector_definition *vectors, const struct map *a,
                      const struct map *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct attribute *own = &a->attributes[i];
        if (!slice_equal(own->name, vectors->attribute) && !vector_projects(table, vectors, own->name))
            continue;
        const struct value *other = map_find(b, own->name);
        if (!other || !value_equal(&own->value, other)) return false;
    }
    return true;
}

/* As with other indexes, an entry that stays as it is costs nothing. */
static double vector_write(const struct table *table, const struct vector_definition *vectors,
                           const struct map *old, const struct map *new)
{
    bool was = old && vector_holds(table, vectors, old), is = new &&vector_holds(table, vectors, new);
    if (!was && !is) return 0;
    if (was && is && is_within(table, vectors, old, new) && is_within(table, vectors, new, old)) return 0;
    return capacity_of_vectors(vector_entry_bytes(table, vectors, is ? new : old));
}

/* Writes are charged for a vector as the index has it, whatever numbers the item has. Reads, and the limit of an item,
 * count the numbers. */
static uint64_t written_bytes(const struct table *table, uint64_t bytes, const struct map *item)
{
    const struct table_definition *definition = &table->definition;
    for (uint32_t i = 0; item && i < definition->vector_count; i++) {
        const struct vector_definition *vectors = &definition->vectors[i];
        const struct value *vector = map_find(item, vectors->attribute);
        bool is_counted = !vector || vector->type != VALUE_L || vector->count != vectors->dimensions;
        for (uint32_t j = 0; j < i; j++) /* several indexes may have one attribute */
            is_counted |= slice_equal(definition->vectors[j].attribute, vectors->attribute);
        if (!is_counted) bytes = bytes - value_size(vector) + float_bytes(vectors);
    }
    return bytes;
}

/* The items before and after, where there are any; an image that does not decode counts as none. */
static const struct map *decode_image(struct arena *arena, struct slice image, struct map *out)
{
    return image.len && item_decode(arena, image, out) ? out : NULL;
}

void capacity_add_write(struct api_call *call, struct capacity *capacity, const struct write *write)
{
    const struct table_definition *definition = &write->table->definition;
    if ((definition->index_count == 0 && definition->vector_count == 0) || write->kind == WRITE_CHECK) {
        capacity->table += capacity_write(write->old_size, write->new_size);
        return;
    }
    struct map before, after;
    const struct map *old = decode_image(call->arena, write->old_image, &before);
    const struct map *new = decode_image(call->arena, write->new_image, &after);
    capacity->table += capacity_write(written_bytes(write->table, write->old_size, old),
                                      written_bytes(write->table, write->new_size, new));
    for (uint32_t i = 0; i < definition->index_count; i++)
        capacity->indexes[i] += index_write(call->arena, write->table, &definition->indexes[i], old, new);
    for (uint32_t i = 0; i < definition->vector_count; i++)
        capacity->vector_bytes[i] += vector_write(write->table, &definition->vectors[i], old, new);
}

/* ---- in JSON ---- */

/* Units are whole or halves, always with a decimal point: clients that tell integers from floating-point
 * numbers get the latter, as from the service. */
static void put_number(struct buf *out, double units)
{
    buf_printf(out, "%.1f", units);
}

/* "CapacityUnits":2.0, and once more under the name of the axis. */
static void put_units(struct buf *out, double units, enum capacity_axis axis)
{
    buf_text(out, "\"CapacityUnits\":");
    put_number(out, units);
    if (axis == AXIS_NONE) return;
    buf_slice(out, axis == AXIS_READ ? SLICE(",\"ReadCapacityUnits\":") : SLICE(",\"WriteCapacityUnits\":"));
    put_number(out, units);
}

static void put_arm(struct buf *out, double units, enum capacity_axis axis)
{
    buf_byte(out, '{');
    put_units(out, units, axis);
    buf_byte(out, '}');
}

static void put_indexes(struct buf *out, const struct table *table, const struct capacity *capacity,
                        bool global)
{
    const struct table_definition *definition = &table->definition;
    bool any = false;
    for (uint32_t i = 0; i < definition->index_count; i++) {
        if (definition->indexes[i].global != global || capacity->indexes[i] <= 0) continue;
        if (any)
            buf_byte(out, ',');
        else if (global)
            buf_text(out, ",\"GlobalSecondaryIndexes\":{");
        else
            buf_text(out, ",\"LocalSecondaryIndexes\":{");
        any = true;
        json_put_string(out, definition->indexes[i].name);
        buf_byte(out, ':');
        put_arm(out, capacity->indexes[i], capacity->axis);
    }
    if (any) buf_byte(out, '}');
}

static void put_vectors(struct buf *out, const struct table *table, const struct capacity *capacity)
{
    bool any = false;
    for (uint32_t i = 0; i < table->definition.vector_count; i++) {
        if (capacity->vector_bytes[i] <= 0) continue;
        buf_slice(out, slice_of(any ? "," : ",\"VectorIndexes\":{"));
        any = true;
        json_put_string(out, table->definition.vectors[i].index.name);
        buf_text(out, ":{\"VectorWriteRequestBytes\":");
        put_number(out, capacity->vector_bytes[i]);
        buf_byte(out, '}');
    }
    if (any) buf_byte(out, '}');
}

void capacity_put(struct buf *out, const struct node *return_capacity, struct slice table_name,
                  const struct table *table, const struct capacity *capacity)
{
    double total = capacity->table + capacity->failed;
    for (uint32_t i = 0; i < table->definition.index_count; i++) total += capacity->indexes[i];
    buf_text(out, "{\"TableName\":");
    json_put_string(out, table_name);
    buf_byte(out, ',');
    put_units(out, total, capacity->axis);
    if (node_says(return_capacity, "INDEXES")) {
        buf_text(out, ",\"Table\":");
        put_arm(out, capacity->table, capacity->axis);
        put_indexes(out, table, capacity, false);
        put_indexes(out, table, capacity, true);
        put_vectors(out, table, capacity);
    }
    buf_byte(out, '}');
}

bool metrics_wanted(const struct node *return_metrics, const struct table *table)
{
    if (!node_says(return_metrics, "SIZE")) return false;
    for (uint32_t i = 0; i < table->definition.index_count; i++)
        if (!table->definition.indexes[i].global) return true;
    return false;
}

/* The service tells a range of a gigabyte, and so must we: whoever asks wants to know how far the limit is.
 */
void metrics_put(struct api_call *call, const struct table *table, const struct value *hash)
{
    struct buf *out = call->reply;
    uint64_t bytes;
    if (engine_collection_bytes(call->api->engine, table, hash, &bytes) != ENGINE_OK) bytes = 0;
    unsigned gigabytes = (unsigned)(bytes >> 30);
    buf_text(out, "{\"ItemCollectionKey\":{");
    json_put_string(out, table->keys.hash);
    buf_byte(out, ':');
    value_put_json(out, hash);
    buf_printf(out, "},\"SizeEstimateRangeGB\":[%u.0,%u.0]}", gigabytes, gigabytes + 1);
}

bool refuse_full_collection(struct api_call *call)
{
    return refuse(call, "ItemCollectionSizeLimitExceededException", COLLECTION_FULL);
}
