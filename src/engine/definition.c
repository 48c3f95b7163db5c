/* A table's definition as stored bytes. It is written as an item (value.h): readable by anyone who can decode an item, and a
 * later version may add attributes without a new format. */
#include "base/fail.h"
#include "engine/internal.h"

/* ---- building the item ---- */

struct builder {
    struct arena *arena;
    struct attribute *attributes;
    uint32_t count, capacity;
};

static void add(struct builder *builder, const char *name, struct value value)
{
    if (builder->count == builder->capacity) {
        uint32_t capacity = builder->capacity ? builder->capacity * 2 : 16;
        struct attribute *larger = arena_array(builder->arena, struct attribute, capacity);
        if (builder->count) memcpy(larger, builder->attributes, builder->count * sizeof *larger);
        builder->attributes = larger;
        builder->capacity = capacity;
    }
    builder->attributes[builder->count++] = (struct attribute){slice_of(name), value};
}

static struct map finish(struct builder *builder)
{
    struct map map = {builder->attributes, builder->count};
    struct slice duplicate;
    ensure(map_sort(&map, &duplicate));
    return map;
}

static struct value text_value(struct slice text)
{
    return (struct value){.type = VALUE_S, .bytes = text};
}

static struct value integer_value(struct arena *arena, int64_t integer)
{
    return (struct value){.type = VALUE_N, .bytes = arena_printf(arena, "%lld", (long long)integer)};
}

static void add_text(struct builder *builder, const char *name, struct slice text)
{
    if (text.len) add(builder, name, text_value(text));
}

static void add_integer(struct builder *builder, const char *name, int64_t integer)
{
    add(builder, name, integer_value(builder->arena, integer));
}

static void add_truth(struct builder *builder, const char *name, bool truth)
{
    add(builder, name, (struct value){.type = VALUE_BOOL, .truth = truth});
}

static void add_texts(struct builder *builder, const char *name, const struct slice *texts, uint32_t count)
{
    struct value list = {.type = VALUE_L, .count = count};
    list.elements = arena_array(builder->arena, struct value, count);
    for (uint32_t i = 0; i < count; i++) list.elements[i] = text_value(texts[i]);
    add(builder, name, list);
}

static void add_throughput(struct builder *builder, const struct throughput *throughput)
{
    add_integer(builder, "read_units", throughput->read_units);
    add_integer(builder, "write_units", throughput->write_units);
    add_integer(builder, "max_read", throughput->max_read);
    add_integer(builder, "max_write", throughput->max_write);
    add_integer(builder, "warm_read", throughput->warm_read);
    add_integer(builder, "warm_write", throughput->warm_write);
}

static struct value index_value(struct arena *arena, const struct index_definition *index)
{
    struct builder builder = {.arena = arena};
    add_text(&builder, "name", index->name);
    add_truth(&builder, "global", index->global);
    add_texts(&builder, "hash", index->hash, index->hash_count);
    add_texts(&builder, "range", index->range, index->range_count);
    add_integer(&builder, "projection", index->projection);
    add_texts(&builder, "non_key", index->non_key, index->non_key_count);
    add_throughput(&builder, &index->throughput);
    return (struct value){.type = VALUE_M, .map = finish(&builder)};
}

static void add_attributes(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->attribute_count * 2};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->attribute_count; i++) {
        list.elements[2 * i] = text_value(definition->attributes[i].name);
        list.elements[2 * i + 1] = text_value(value_type_name(definition->attributes[i].type));
    }
    add(builder, "attributes", list);
}

static void add_indexes(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->index_count};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->index_count; i++)
        list.elements[i] = index_value(builder->arena, &definition->indexes[i]);
    add(builder, "indexes", list);
}

static void add_tags(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->tag_count * 2};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->tag_count; i++) {
        list.elements[2 * i] = text_value(definition->tags[i].key);
        list.elements[2 * i + 1] = text_value(definition->tags[i].value);
    }
    add(builder, "tags", list);
}

void table_definition_encode(struct buf *out, const struct table_definition *definition)
{
    struct arena arena = {0};
    struct builder builder = {.arena = &arena};
    add_text(&builder, "name", definition->name);
    add_text(&builder, "id", definition->id);
    add_integer(&builder, "created_ms", definition->created_ms);
    add_attributes(&builder, definition);
    add_text(&builder, "hash", definition->hash);
    add_text(&builder, "range", definition->range);
    add_truth(&builder, "on_demand", definition->on_demand);
    add_integer(&builder, "on_demand_since_ms", definition->on_demand_since_ms);
    add_integer(&builder, "throughput_raised_ms", definition->throughput_raised_ms);
    add_integer(&builder, "throughput_lowered_ms", definition->throughput_lowered_ms);
    add_integer(&builder, "decreases_today", definition->decreases_today);
    add_throughput(&builder, &definition->throughput);
    add_indexes(&builder, definition);
    add_integer(&builder, "stream", definition->stream);
    add_integer(&builder, "stream_since_ms", definition->stream_since_ms);
    add_truth(&builder, "deletion_protected", definition->deletion_protected);
    add_text(&builder, "table_class", definition->table_class);
    add_integer(&builder, "table_class_changed_ms", definition->table_class_changed_ms);
    add_truth(&builder, "encrypted", definition->encrypted);
    add_text(&builder, "kms_key", definition->kms_key);
    add_text(&builder, "resource_policy", definition->resource_policy);
    add_tags(&builder, definition);
    struct map item = finish(&builder);
    item_encode(out, &item);
    arena_free(&arena);
}

/* ---- reading it back: what is absent keeps its zero ---- */

static struct slice text_of(const struct map *map, const char *name)
{
    const struct value *value = map_find(map, slice_of(name));
    return value && value->type == VALUE_S ? value->bytes : SLICE_NONE;
}

static bool truth_of(const struct map *map, const char *name)
{
    const struct value *value = map_find(map, slice_of(name));
    return value && value->type == VALUE_BOOL && value->truth;
}

static int64_t integer_of(const struct map *map, const char *name)
{
    const struct value *value = map_find(map, slice_of(name));
    struct slice text = value && value->type == VALUE_N ? value->bytes : SLICE_NONE;
    unsigned long long magnitude;
    bool negative = text.len && text.data[0] == '-';
    if (negative) text = slice_from(text, 1);
    if (!slice_to_u64(text, INT64_MAX, &magnitude)) return 0;
    return negative ? -(int64_t)magnitude : (int64_t)magnitude;
}

static const struct value *list_of(const struct map *map, const char *name)
{
    static const struct value empty = {.type = VALUE_L};
    const struct value *value = map_find(map, slice_of(name));
    return value && value->type == VALUE_L ? value : &empty;
}

static struct slice element_text(const struct value *list, uint32_t at)
{
    return at < list->count && list->elements[at].type == VALUE_S ? list->elements[at].bytes : SLICE_NONE;
}

static struct throughput throughput_of(const struct map *map)
{
    return (struct throughput){.read_units = integer_of(map, "read_units"),
                               .write_units = integer_of(map, "write_units"),
                               .max_read = integer_of(map, "max_read"),
                               .max_write = integer_of(map, "max_write"),
                               .warm_read = integer_of(map, "warm_read"),
                               .warm_write = integer_of(map, "warm_write")};
}

static uint32_t key_parts(const struct map *map, const char *name, struct slice parts[INDEX_KEY_PARTS])
{
    const struct value *list = list_of(map, name);
    uint32_t count = list->count < INDEX_KEY_PARTS ? list->count : INDEX_KEY_PARTS;
    for (uint32_t i = 0; i < count; i++) parts[i] = element_text(list, i);
    return count;
}

static void index_from(struct arena *arena, const struct value *value, struct index_definition *out)
{
    static const struct map nothing;
    const struct map *map = value->type == VALUE_M ? &value->map : &nothing;
    *out = (struct index_definition){.name = text_of(map, "name"), .global = truth_of(map, "global")};
    out->hash_count = key_parts(map, "hash", out->hash);
    out->range_count = key_parts(map, "range", out->range);
    out->projection = (enum projection_type)integer_of(map, "projection");
    out->throughput = throughput_of(map);
    const struct value *non_key = list_of(map, "non_key");
    out->non_key_count = non_key->count;
    out->non_key = arena_array(arena, struct slice, non_key->count);
    for (uint32_t i = 0; i < non_key->count; i++) out->non_key[i] = element_text(non_key, i);
}

static void lists_from(struct arena *arena, const struct map *map, struct table_definition *out)
{
    const struct value *list = list_of(map, "attributes");
    out->attribute_count = list->count / 2;
    out->attributes = arena_array(arena, struct key_attribute, out->attribute_count);
    for (uint32_t i = 0; i < out->attribute_count; i++) {
        out->attributes[i] = (struct key_attribute){.name = element_text(list, 2 * i)};
        if (!value_type_from_name(element_text(list, 2 * i + 1), &out->attributes[i].type))
            out->attributes[i].type = VALUE_S;
    }
    list = list_of(map, "indexes");
    out->index_count = list->count;
    out->indexes = arena_array(arena, struct index_definition, list->count);
    for (uint32_t i = 0; i < list->count; i++) index_from(arena, &list->elements[i], &out->indexes[i]);
    list = list_of(map, "tags");
    out->tag_count = list->count / 2;
    out->tags = arena_array(arena, struct tag, out->tag_count);
    for (uint32_t i = 0; i < out->tag_count; i++)
        out->tags[i] = (struct tag){element_text(list, 2 * i), element_text(list, 2 * i + 1)};
}

bool table_definition_decode(struct arena *arena, struct slice bytes, struct table_definition *out)
{
    struct map map;
    enum value_type type;
    if (!item_decode(arena, bytes, &map)) return false;
    *out = (struct table_definition){
        .name = text_of(&map, "name"),
        .id = text_of(&map, "id"),
        .created_ms = integer_of(&map, "created_ms"),
        .hash = text_of(&map, "hash"),
        .range = text_of(&map, "range"),
        .on_demand = truth_of(&map, "on_demand"),
        .on_demand_since_ms = integer_of(&map, "on_demand_since_ms"),
        .throughput_raised_ms = integer_of(&map, "throughput_raised_ms"),
        .throughput_lowered_ms = integer_of(&map, "throughput_lowered_ms"),
        .decreases_today = integer_of(&map, "decreases_today"),
        .throughput = throughput_of(&map),
        .stream = (enum stream_view)integer_of(&map, "stream"),
        .stream_since_ms = integer_of(&map, "stream_since_ms"),
        .deletion_protected = truth_of(&map, "deletion_protected"),
        .table_class = text_of(&map, "table_class"),
        .table_class_changed_ms = integer_of(&map, "table_class_changed_ms"),
        .encrypted = truth_of(&map, "encrypted"),
        .kms_key = text_of(&map, "kms_key"),
        .resource_policy = text_of(&map, "resource_policy"),
    };
    lists_from(arena, &map, out);
    if (!out->name.len || !out->hash.len || !table_attribute_type(out, out->hash, &type)) return false;
    return !out->range.len || table_attribute_type(out, out->range, &type);
}

/* Through the stored form: whatever can be stored can be copied, and nothing can be forgotten in one of two places. */
struct table_definition *table_definition_copy(struct arena *arena, const struct table_definition *definition)
{
    struct buf bytes = {0};
    table_definition_encode(&bytes, definition);
    struct table_definition *copy = arena_new(arena, struct table_definition);
    ensure(table_definition_decode(arena, arena_copy(arena, buf_view(&bytes)), copy));
    buf_free(&bytes);
    return copy;
}
