/* What a vector index holds of an item: the vector as 32-bit floats, the partition (the values of its HASH
 * attributes), and the values of its INLINE_FILTER attributes. */
#include "engine/vectors.h"

const struct vector_definition *table_vectors_find(const struct table *table, struct slice name,
                                                   uint32_t *place)
{
    for (uint32_t i = 0; i < table->definition.vector_count; i++) {
        *place = i;
        if (slice_equal(table->definition.vectors[i].index.name, name)) return &table->definition.vectors[i];
    }
    return NULL;
}

bool vector_projects(const struct table *table, const struct vector_definition *definition, struct slice name)
{
    const struct index_definition *index = &definition->index;
    for (uint32_t i = 0; i < index->non_key_count; i++)
        if (slice_equal(index->non_key[i], name)) return true;
    if (slice_equal(name, definition->attribute)) return false;
    for (uint32_t i = 0; i < definition->filter_count; i++)
        if (slice_equal(definition->filters[i], name)) return true;
    return index_projects(table, index, name);
}

/* ---- vectors ---- */

bool vector_number(const struct value *value, float *out)
{
    return value->type == VALUE_N && number_to_float(value->bytes, out);
}

bool vector_of_item(const struct vector_definition *definition, const struct map *item, float *out)
{
    const struct value *list = map_find(item, definition->attribute);
    if (!list || list->type != VALUE_L || list->count != definition->dimensions) return false;
    for (uint32_t i = 0; i < list->count; i++)
        if (!vector_number(&list->elements[i], &out[i])) return false;
    return true;
}

bool vector_holds(const struct table *table, const struct vector_definition *definition,
                  const struct map *item)
{
    float number;
    const struct value *list = map_find(item, definition->attribute);
    if (!list || list->type != VALUE_L || list->count != definition->dimensions) return false;
    for (uint32_t i = 0; i < list->count; i++)
        if (!vector_number(&list->elements[i], &number)) return false;
    return index_holds(table, &definition->index, item);
}

/* ---- partitions and filters ---- */

bool vector_partition_of_item(struct buf *out, const struct table *table,
                              const struct vector_definition *definition, const struct map *item)
{
    const struct value *values[INDEX_KEY_PARTS];
    if (!index_holds(table, &definition->index, item)) return false;
    for (uint32_t i = 0; i < definition->index.hash_count; i++)
        values[i] = map_find(item, definition->index.hash[i]);
    vector_partition(out, definition, values);
    return true;
}

void vector_partition(struct buf *out, const struct vector_definition *definition,
                      const struct value *const *values)
{
    out->len = 0;
    for (uint32_t i = 0; i < definition->index.hash_count; i++) key_encode(out, values[i]);
}

/* One after the other: the length of the encoded value and one, then the value; zero: there is none. */
static void put_filter(struct buf *out, struct buf *scratch, const struct value *value)
{
    bool has_key_type = value && (value->type == VALUE_S || value->type == VALUE_N || value->type == VALUE_B);
    scratch->len = 0;
    if (has_key_type) key_encode(scratch, value);
    buf_varint(out, has_key_type ? (uint64_t)value->type + 1 : 0);
    if (!has_key_type) return;
    buf_varint(out, scratch->len);
    buf_slice(out, buf_view(scratch));
}

void vector_note_of_item(struct buf *out, const struct vector_definition *definition, const struct map *item)
{
    struct buf scratch = {0};
    out->len = 0;
    for (uint32_t i = 0; i < definition->filter_count; i++)
        put_filter(out, &scratch, map_find(item, definition->filters[i]));
    buf_free(&scratch);
}

static struct slice take_filter(struct slice *note)
{
    struct slice start = *note;
    uint64_t type = 0, len = 0;
    if (!varint_take(note, &type) || (type && !varint_take(note, &len)) || len > note->len) return SLICE_NONE;
    *note = slice_from(*note, len);
    return (struct slice){start.data, start.len - note->len};
}

bool vector_note_matches(struct slice note, struct slice wanted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slice has = take_filter(&note), wants = take_filter(&wanted);
        if (wants.len > 1 && !slice_equal(has, wants)) return false;
    }
    return true;
}

void vector_note_wanted(struct buf *out, const struct vector_definition *definition,
                        const struct value *const *values)
{
    struct buf scratch = {0};
    out->len = 0;
    for (uint32_t i = 0; i < definition->filter_count; i++) put_filter(out, &scratch, values[i]);
    buf_free(&scratch);
}
