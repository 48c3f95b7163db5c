/* The vector indexes of a table: out of a request, and in a TableDescription. */
#include "api/tables.h"
#include "base/fail.h"

enum { SCHEMA_NAME, SCHEMA_TYPE };
enum { ATTRIBUTE_OF_VECTOR };

static const char *const schema_types[] = {"HASH", "INLINE_FILTER", NULL};
static const char *const distances[] = {"COSINE", "EUCLIDEAN", "DOT_PRODUCT",
                                        NULL}; /* as enum vector_metric */

static const struct shape shape_schema_name = STRING_SHAPE_SIZED(1, LIMIT_KEY_NAME_BYTES);
static const struct shape shape_schema_type = ENUM_SHAPE(schema_types);
static const struct shape_member schema_members[] = {
    [SCHEMA_NAME] = REQUIRED("AttributeName", shape_schema_name),
    [SCHEMA_TYPE] = REQUIRED("SearchSchemaElementType", shape_schema_type),
};
static const struct shape shape_schema_element = STRUCT_SHAPE("SearchSchemaElement", schema_members);
static const struct shape shape_schema = LIST_SHAPE(shape_schema_element);
static const struct shape_member vector_attribute_members[] = {
    [ATTRIBUTE_OF_VECTOR] = REQUIRED("AttributeName", shape_schema_name)};
static const struct shape shape_vector_attribute = STRUCT_SHAPE("VectorAttributeDefinition",
                                                                vector_attribute_members);
static const struct shape shape_distance = ENUM_SHAPE(distances);
static const struct shape shape_dimensions = {.kind = SHAPE_LONG, .has_min = true, .min = 1};

static const struct shape_member vector_members[] = {
    [VECTOR_NAME] = REQUIRED("IndexName", shape_index_name),
    [VECTOR_ATTRIBUTE] = REQUIRED("VectorAttribute", shape_vector_attribute),
    [VECTOR_SCHEMA] = MEMBER("SearchSchema", shape_schema),
    [VECTOR_PROJECTION] = REQUIRED("Projection", shape_projection),
    [VECTOR_DIMENSIONS] = REQUIRED("Dimensions", shape_dimensions),
    [VECTOR_DISTANCE] = REQUIRED("DistanceFunction", shape_distance),
};
static const struct shape shape_vector_index = STRUCT_SHAPE("VectorIndex", vector_members);
const struct shape shape_vector_indexes = LIST_SHAPE(shape_vector_index);
const struct shape shape_vector_index_create = STRUCT_SHAPE("CreateVectorIndexAction", vector_members);

/* ---- out of a request ---- */

static bool is_defined(const struct attributes *attributes, struct slice name)
{
    for (uint32_t i = 0; i < attributes->count; i++)
        if (slice_equal(attributes->list[i].name, name)) return true;
    return false;
}

static bool has_element(const struct vector_definition *vectors, struct slice name)
{
    for (uint32_t i = 0; i < vectors->index.hash_count; i++)
        if (slice_equal(vectors->index.hash[i], name)) return true;
    for (uint32_t i = 0; i < vectors->filter_count; i++)
        if (slice_equal(vectors->filters[i], name)) return true;
    return false;
}

static bool define_search_schema(struct verdict *verdict, const struct node *schema,
                                 const struct attributes *attributes, struct vector_definition *out)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct node *element = &schema->elements[i];
        if (!element->present) continue;
        struct slice name = node_member(element, SCHEMA_NAME)->text;
        bool is_hash = node_says(node_member(element, SCHEMA_TYPE), "HASH");
        if (!is_defined(attributes, name))
            return reject(verdict, INVALID_VALUES
                          "One element in SearchSchema is not defined in attribute definitions");
        if (has_element(out, name))
            return reject(verdict, INVALID_VALUES "Duplicate element in SearchSchema: %.*s", SLICE_ARG(name));
        if (is_hash ? out->index.hash_count == INDEX_KEY_PARTS : out->filter_count == LIMIT_VECTOR_FILTERS)
            return reject(verdict, INVALID_VALUES "SearchSchema exceeds the maximum of %d %s elements",
                          is_hash ? INDEX_KEY_PARTS : LIMIT_VECTOR_FILTERS,
                          is_hash ? "HASH" : "INLINE_FILTER");
        if (is_hash)
            out->index.hash[out->index.hash_count++] = name;
        else
            out->filters[out->filter_count++] = name;
    }
    return true;
}

static bool check_attribute(struct verdict *verdict, const struct table_definition *definition,
                            const struct vector_definition *vectors)
{
    struct slice name = vectors->attribute;
    if (definition_uses(definition, name) || has_element(vectors, name))
        return reject(verdict,
                      INVALID_VALUES
                      "Conflicting attribute definition for '%.*s'. A vector attribute cannot be a "
                      "key or an element of a SearchSchema.",
                      SLICE_ARG(name));
    for (uint32_t i = 0; i < definition->vector_count; i++) {
        const struct vector_definition *other = &definition->vectors[i];
        if (!slice_equal(other->attribute, name) || other->dimensions == vectors->dimensions) continue;
        return reject(verdict,
                      INVALID_VALUES
                      "Conflicting attribute definition for '%.*s'. All VectorIndexes on the same "
                      "vector attribute must use the same dimensions.",
                      SLICE_ARG(name));
    }
    return true;
}

static enum vector_metric metric_from_node(const struct node *node)
{
    unsigned metric = VECTOR_COSINE;
    while (!node_says(node, distances[metric])) {
        metric++;
        ensure(distances[metric]); /* the shape admits no other */
    }
    return (enum vector_metric)metric;
}

/* Appends to out->vectors, which has room. */
static bool define_one(struct verdict *verdict, const struct node *node, const struct attributes *attributes,
                       struct table_definition *out)
{
    struct vector_definition *vectors = &out->vectors[out->vector_count];
    int64_t dimensions = node_member(node, VECTOR_DIMENSIONS)->integer;
    *vectors = (struct vector_definition){
        .index = {.name = node_member(node, VECTOR_NAME)->text, .throughput = throughput_none},
        .attribute = node_member(node_member(node, VECTOR_ATTRIBUTE), ATTRIBUTE_OF_VECTOR)->text,
        .metric = metric_from_node(node_member(node, VECTOR_DISTANCE))};
    if (dimensions > LIMIT_VECTOR_DIMENSIONS)
        return reject(verdict, INVALID_VALUES "Number of dimensions must be between 1 and %d inclusive.",
                      LIMIT_VECTOR_DIMENSIONS);
    vectors->dimensions = (uint32_t)dimensions;
    if (!define_search_schema(verdict, node_member(node, VECTOR_SCHEMA), attributes, vectors) ||
        !define_projection(verdict, node_member(node, VECTOR_PROJECTION), &vectors->index))
        return false;
    if (definition_has_index(out, vectors->index.name))
        return reject(verdict, INVALID_VALUES "Duplicate index name: %.*s", SLICE_ARG(vectors->index.name));
    if (!check_attribute(verdict, out, vectors)) return false;
    out->vector_count++;
    return true;
}

static bool reject_count(struct verdict *verdict)
{
    return reject(verdict, INVALID_VALUES "VectorIndex count exceeds the per-table limit of %d",
                  LIMIT_VECTOR_INDEXES);
}

bool check_vector_billing(struct verdict *verdict, const struct table_definition *definition)
{
    if (!definition->vector_count || definition->on_demand) return true;
    return reject(verdict, INVALID_VALUES "Vector indexes are only supported for PAY_PER_REQUEST tables");
}

bool define_vectors(struct verdict *verdict, const struct node *list, struct table_definition *out)
{
    struct attributes attributes = {out->attributes, out->attribute_count};
    if (!list->present) return true;
    if (list->count == 0) return reject(verdict, INVALID_VALUES "List of VectorIndexes is empty");
    if (list->count > LIMIT_VECTOR_INDEXES) return reject_count(verdict);
    out->vectors = arena_array(verdict->arena, struct vector_definition, list->count);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->elements[i].present && !define_one(verdict, &list->elements[i], &attributes, out))
            return false;
    return check_vector_billing(verdict, out);
}

bool define_added_vectors(struct verdict *verdict, const struct node *node,
                          const struct attributes *attributes, struct table_definition *out)
{
    struct attributes all = {
        .list = arena_array(verdict->arena, struct key_attribute, out->attribute_count + attributes->count)};
    for (uint32_t i = 0; i < out->attribute_count; i++) all.list[all.count++] = out->attributes[i];
    for (uint32_t i = 0; i < attributes->count; i++) all.list[all.count++] = attributes->list[i];
    if (out->vector_count >= LIMIT_VECTOR_INDEXES) return reject_count(verdict);
    struct vector_definition *vectors = arena_array(verdict->arena, struct vector_definition,
                                                    out->vector_count + 1);
    if (out->vector_count) memcpy(vectors, out->vectors, out->vector_count * sizeof *vectors);
    out->vectors = vectors;
    return define_one(verdict, node, &all, out);
}

const struct vector_definition *filling_vectors(const struct table *table)
{
    for (uint32_t i = 0; i < table->definition.vector_count; i++)
        if (vector_index_status(table, i) == VECTORS_BACKFILLING) return &table->definition.vectors[i];
    return NULL;
}

static bool same_names(const struct slice *a, uint32_t a_count, const struct slice *b, uint32_t b_count)
{
    bool same = a_count == b_count;
    for (uint32_t i = 0; same && i < a_count; i++) {
        uint32_t k = 0;
        while (k < b_count && !slice_equal(a[i], b[k])) k++;
        same = k < b_count;
    }
    return same;
}

bool vectors_are_alike(const struct vector_definition *a, const struct vector_definition *b)
{
    return slice_equal(a->attribute, b->attribute) && a->dimensions == b->dimensions && a->metric == b->metric &&
           a->index.projection == b->index.projection &&
           same_names(a->index.hash, a->index.hash_count, b->index.hash, b->index.hash_count) &&
           same_names(a->filters, a->filter_count, b->filters, b->filter_count) &&
           same_names(a->index.non_key, a->index.non_key_count, b->index.non_key, b->index.non_key_count);
}

/* ---- in a TableDescription ---- */

static bool has_vectors(const struct table_definition *definition, struct slice name)
{
    for (uint32_t i = 0; definition && i < definition->vector_count; i++)
        if (slice_equal(definition->vectors[i].index.name, name)) return true;
    return false;
}

static void put_status(struct buf *out, const struct description *description,
                       const struct vector_definition *vectors, uint32_t place)
{
    struct slice name = vectors->index.name;
    const char *status = "ACTIVE", *backfilling = NULL;
    if (description->before && !has_vectors(description->definition, name)) {
        status = "DELETING";
    } else if (description->before && !has_vectors(description->before, name)) {
        status = "CREATING";
        backfilling = "false";
    } else if (strcmp(description->status, "CREATING") == 0) {
        status = "CREATING";
    } else if (description->table && vector_index_status(description->table, place) == VECTORS_BACKFILLING) {
        status = "CREATING";
        backfilling = "true";
    }
    buf_printf(out, ",\"IndexStatus\":\"%s\"", status);
    if (backfilling) buf_printf(out, ",\"Backfilling\":%s", backfilling);
}

static void put_element(struct buf *out, struct slice name, const char *type, bool is_first)
{
    if (!is_first) buf_byte(out, ',');
    buf_text(out, "{\"AttributeName\":");
    json_put_string(out, name);
    buf_printf(out, ",\"SearchSchemaElementType\":\"%s\"}", type);
}

static void put_search_schema(struct buf *out, const struct vector_definition *vectors)
{
    uint32_t hashes = vectors->index.hash_count;
    if (!hashes && !vectors->filter_count) return;
    buf_text(out, ",\"SearchSchema\":[");
    for (uint32_t i = 0; i < hashes; i++) put_element(out, vectors->index.hash[i], "HASH", i == 0);
    for (uint32_t i = 0; i < vectors->filter_count; i++)
        put_element(out, vectors->filters[i], "INLINE_FILTER", hashes + i == 0);
    buf_byte(out, ']');
}

static void put_definition(struct buf *out, const struct vector_definition *vectors)
{
    buf_text(out, "{\"IndexName\":");
    json_put_string(out, vectors->index.name);
    put_search_schema(out, vectors);
    put_projection(out, &vectors->index);
    buf_text(out, ",\"VectorAttribute\":{\"AttributeName\":");
    json_put_string(out, vectors->attribute);
    buf_byte(out, '}');
    put_int(out, "Dimensions", vectors->dimensions);
    buf_printf(out, ",\"DistanceFunction\":\"%s\"", distances[vectors->metric]);
}

void put_vector_definitions(struct buf *out, const struct table_definition *definition)
{
    for (uint32_t i = 0; i < definition->vector_count; i++) {
        buf_slice(out, slice_of(i ? "," : ",\"VectorIndexes\":["));
        put_definition(out, &definition->vectors[i]);
        buf_byte(out, '}');
    }
    if (definition->vector_count) buf_byte(out, ']');
}

static void put_one(struct buf *out, const struct description *description,
                    const struct vector_definition *vectors, uint32_t place)
{
    int64_t items = 0, bytes = 0;
    if (description->table) vector_index_counts(description->table, place, &items, &bytes);
    put_definition(out, vectors);
    put_status(out, description, vectors, place);
    put_int(out, "IndexSizeBytes", bytes);
    put_int(out, "ItemCount", items);
    buf_text(out, ",\"IndexArn\":\"");
    put_table_arn(out, description->api, description->definition->name);
    buf_printf(out, "/index/%.*s\"}", SLICE_ARG(vectors->index.name));
}

void put_vector_indexes(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition, *before = description->before;
    uint32_t count = 0;
    for (uint32_t i = 0; i < definition->vector_count; i++) {
        buf_slice(out, slice_of(count++ ? "," : ",\"VectorIndexes\":["));
        put_one(out, description, &definition->vectors[i], i);
    }
    for (uint32_t i = 0; before && i < before->vector_count; i++) {
        if (has_vectors(definition, before->vectors[i].index.name)) continue;
        buf_slice(out, slice_of(count++ ? "," : ",\"VectorIndexes\":["));
        put_one(out, description, &before->vectors[i], i);
    }
    if (count) buf_byte(out, ']');
}
