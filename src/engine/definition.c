/* A table's definition as stored bytes. It is written as an item (value.h): readable by anyone who can decode
 * an item, and a later version may add attributes without a new format. */
#include "base/fail.h"
#include "engine/internal.h"

/* ---- building an item ---- */

void builder_add(struct builder *builder, const char *name, struct value value)
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

struct map builder_finish(struct builder *builder)
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

void builder_text(struct builder *builder, const char *name, struct slice text)
{
    if (text.len) builder_add(builder, name, text_value(text));
}

void builder_integer(struct builder *builder, const char *name, int64_t integer)
{
    builder_add(builder, name, integer_value(builder->arena, integer));
}

void builder_truth(struct builder *builder, const char *name, bool truth)
{
    builder_add(builder, name, (struct value){.type = VALUE_BOOL, .truth = truth});
}

static void add_texts(struct builder *builder, const char *name, const struct slice *texts, uint32_t count)
{
    struct value list = {.type = VALUE_L, .count = count};
    list.elements = arena_array(builder->arena, struct value, count);
    for (uint32_t i = 0; i < count; i++) list.elements[i] = text_value(texts[i]);
    builder_add(builder, name, list);
}

static void add_throughput(struct builder *builder, const struct throughput *throughput)
{
    builder_integer(builder, "read_units", throughput->read_units);
    builder_integer(builder, "write_units", throughput->write_units);
    builder_integer(builder, "max_read", throughput->max_read);
    builder_integer(builder, "max_write", throughput->max_write);
    builder_integer(builder, "warm_read", throughput->warm_read);
    builder_integer(builder, "warm_write", throughput->warm_write);
}

static void add_index(struct builder *builder, const struct index_definition *index)
{
    builder_text(builder, "name", index->name);
    builder_integer(builder, "number", index->number);
    builder_integer(builder, "status", index->status);
    builder_truth(builder, "global", index->global);
    add_texts(builder, "hash", index->hash, index->hash_count);
    add_texts(builder, "range", index->range, index->range_count);
    builder_integer(builder, "projection", index->projection);
    add_texts(builder, "non_key", index->non_key, index->non_key_count);
    add_throughput(builder, &index->throughput);
}

static struct value index_value(struct arena *arena, const struct index_definition *index)
{
    struct builder builder = {.arena = arena};
    add_index(&builder, index);
    return (struct value){.type = VALUE_M, .map = builder_finish(&builder)};
}

static struct value vector_value(struct arena *arena, const struct vector_definition *vector)
{
    struct builder builder = {.arena = arena};
    add_index(&builder, &vector->index);
    builder_text(&builder, "attribute", vector->attribute);
    builder_integer(&builder, "dimensions", vector->dimensions);
    builder_integer(&builder, "metric", vector->metric);
    add_texts(&builder, "filters", vector->filters, vector->filter_count);
    return (struct value){.type = VALUE_M, .map = builder_finish(&builder)};
}

static void add_attributes(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->attribute_count * 2};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->attribute_count; i++) {
        list.elements[2 * i] = text_value(definition->attributes[i].name);
        list.elements[2 * i + 1] = text_value(value_type_name(definition->attributes[i].type));
    }
    builder_add(builder, "attributes", list);
}

static void add_indexes(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->index_count};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->index_count; i++)
        list.elements[i] = index_value(builder->arena, &definition->indexes[i]);
    builder_add(builder, "indexes", list);
}

static void add_vectors(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->vector_count};
    if (!list.count) return;
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->vector_count; i++)
        list.elements[i] = vector_value(builder->arena, &definition->vectors[i]);
    builder_add(builder, "vectors", list);
}

static void add_tags(struct builder *builder, const struct table_definition *definition)
{
    struct value list = {.type = VALUE_L, .count = definition->tag_count * 2};
    list.elements = arena_array(builder->arena, struct value, list.count);
    for (uint32_t i = 0; i < definition->tag_count; i++) {
        list.elements[2 * i] = text_value(definition->tags[i].key);
        list.elements[2 * i + 1] = text_value(definition->tags[i].value);
    }
    builder_add(builder, "tags", list);
}

void table_definition_encode(struct buf *out, const struct table_definition *definition)
{
    struct arena arena = {0};
    struct builder builder = {.arena = &arena};
    builder_text(&builder, "name", definition->name);
    builder_text(&builder, "id", definition->id);
    builder_integer(&builder, "created_ms", definition->created_ms);
    add_attributes(&builder, definition);
    builder_text(&builder, "hash", definition->hash);
    builder_text(&builder, "range", definition->range);
    builder_truth(&builder, "on_demand", definition->on_demand);
    builder_integer(&builder, "on_demand_since_ms", definition->on_demand_since_ms);
    builder_integer(&builder, "throughput_raised_ms", definition->throughput_raised_ms);
    builder_integer(&builder, "throughput_lowered_ms", definition->throughput_lowered_ms);
    builder_integer(&builder, "decreases_today", definition->decreases_today);
    add_throughput(&builder, &definition->throughput);
    add_indexes(&builder, definition);
    add_vectors(&builder, definition);
    builder_integer(&builder, "next_index_number", definition->next_index_number);
    builder_integer(&builder, "stream", definition->stream);
    builder_integer(&builder, "stream_since_ms", definition->stream_since_ms);
    builder_integer(&builder, "stream_number", definition->stream_number);
    builder_text(&builder, "ttl_attribute", definition->ttl_attribute);
    builder_truth(&builder, "ttl_ready", definition->ttl_ready);
    builder_truth(&builder, "deletion_protected", definition->deletion_protected);
    builder_text(&builder, "table_class", definition->table_class);
    builder_integer(&builder, "table_class_changed_ms", definition->table_class_changed_ms);
    builder_truth(&builder, "encrypted", definition->encrypted);
    builder_text(&builder, "kms_key", definition->kms_key);
    builder_text(&builder, "resource_policy", definition->resource_policy);
    add_tags(&builder, definition);
    if (definition->settings.count)
        builder_add(&builder, "settings", (struct value){.type = VALUE_M, .map = definition->settings});
    struct map item = builder_finish(&builder);
    item_encode(out, &item);
    arena_free(&arena);
}

/* ---- reading it back: what is absent keeps its zero ---- */

struct slice stored_text(const struct map *map, const char *name)
{
    const struct value *value = map_find(map, slice_of(name));
    return value && value->type == VALUE_S ? value->bytes : SLICE_NONE;
}

bool stored_truth(const struct map *map, const char *name)
{
    const struct value *value = map_find(map, slice_of(name));
    return value && value->type == VALUE_BOOL && value->truth;
}

int64_t stored_integer(const struct map *map, const char *name)
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
    return (struct throughput){.read_units = stored_integer(map, "read_units"),
                               .write_units = stored_integer(map, "write_units"),
                               .max_read = stored_integer(map, "max_read"),
                               .max_write = stored_integer(map, "max_write"),
                               .warm_read = stored_integer(map, "warm_read"),
                               .warm_write = stored_integer(map, "warm_write")};
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
    *out = (struct index_definition){.name = stored_text(map, "name"),
                                     .number = (uint32_t)stored_integer(map, "number"),
                                     .status = (enum index_status)stored_integer(map, "status"),
                                     .global = stored_truth(map, "global")};
    out->hash_count = key_parts(map, "hash", out->hash);
    out->range_count = key_parts(map, "range", out->range);
    out->projection = (enum projection_type)stored_integer(map, "projection");
    out->throughput = throughput_of(map);
    const struct value *non_key = list_of(map, "non_key");
    out->non_key_count = non_key->count;
    out->non_key = arena_array(arena, struct slice, non_key->count);
    for (uint32_t i = 0; i < non_key->count; i++) out->non_key[i] = element_text(non_key, i);
}

static void vector_from(struct arena *arena, const struct value *value, struct vector_definition *out)
{
    static const struct map nothing;
    const struct map *map = value->type == VALUE_M ? &value->map : &nothing;
    const struct value *filters = list_of(map, "filters");
    *out = (struct vector_definition){.attribute = stored_text(map, "attribute"),
                                      .dimensions = (uint32_t)stored_integer(map, "dimensions"),
                                      .metric = (enum vector_metric)stored_integer(map, "metric")};
    index_from(arena, value, &out->index);
    for (uint32_t i = 0; i < filters->count && i < LIMIT_VECTOR_FILTERS; i++)
        out->filters[out->filter_count++] = element_text(filters, i);
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
    list = list_of(map, "vectors");
    out->vector_count = list->count < LIMIT_VECTOR_INDEXES ? list->count : LIMIT_VECTOR_INDEXES;
    out->vectors = arena_array(arena, struct vector_definition, out->vector_count);
    for (uint32_t i = 0; i < out->vector_count; i++) vector_from(arena, &list->elements[i], &out->vectors[i]);
    list = list_of(map, "tags");
    out->tag_count = list->count / 2;
    out->tags = arena_array(arena, struct tag, out->tag_count);
    for (uint32_t i = 0; i < out->tag_count; i++)
        out->tags[i] = (struct tag){element_text(list, 2 * i), element_text(list, 2 * i + 1)};
    const struct value *settings = map_find(map, SLICE("settings"));
    if (settings && settings->type == VALUE_M) out->settings = settings->map;
}

bool table_definition_decode(struct arena *arena, struct slice bytes, struct table_definition *out)
{
    struct map map;
    enum value_type type;
    if (!item_decode(arena, bytes, &map)) return false;
    *out = (struct table_definition){
        .name = stored_text(&map, "name"),
        .id = stored_text(&map, "id"),
        .created_ms = stored_integer(&map, "created_ms"),
        .hash = stored_text(&map, "hash"),
        .range = stored_text(&map, "range"),
        .on_demand = stored_truth(&map, "on_demand"),
        .on_demand_since_ms = stored_integer(&map, "on_demand_since_ms"),
        .throughput_raised_ms = stored_integer(&map, "throughput_raised_ms"),
        .throughput_lowered_ms = stored_integer(&map, "throughput_lowered_ms"),
        .decreases_today = stored_integer(&map, "decreases_today"),
        .throughput = throughput_of(&map),
        .stream = (enum stream_view)stored_integer(&map, "stream"),
        .next_index_number = (uint32_t)stored_integer(&map, "next_index_number"),
        .stream_since_ms = stored_integer(&map, "stream_since_ms"),
        .stream_number = (uint32_t)stored_integer(&map, "stream_number"),
        .ttl_attribute = stored_text(&map, "ttl_attribute"),
        .ttl_ready = stored_truth(&map, "ttl_ready"),
        .deletion_protected = stored_truth(&map, "deletion_protected"),
        .table_class = stored_text(&map, "table_class"),
        .table_class_changed_ms = stored_integer(&map, "table_class_changed_ms"),
        .encrypted = stored_truth(&map, "encrypted"),
        .kms_key = stored_text(&map, "kms_key"),
        .resource_policy = stored_text(&map, "resource_policy"),
    };
    lists_from(arena, &map, out);
    if (!out->name.len || !out->hash.len || !table_attribute_type(out, out->hash, &type)) return false;
    for (uint32_t i = 0; i < out->vector_count; i++)
        if (out->vectors[i].dimensions < 1 || out->vectors[i].dimensions > LIMIT_VECTOR_DIMENSIONS) return false;
    return !out->range.len || table_attribute_type(out, out->range, &type);
}

/* Through the stored form: whatever can be stored can be copied, and nothing can be forgotten in one of two
 * places. */
struct table_definition *table_definition_copy(struct arena *arena, const struct table_definition *definition)
{
    struct buf bytes = {0};
    table_definition_encode(&bytes, definition);
    struct table_definition *copy = arena_new(arena, struct table_definition);
    ensure(table_definition_decode(arena, arena_copy(arena, buf_view(&bytes)), copy));
    buf_free(&bytes);
    return copy;
}
