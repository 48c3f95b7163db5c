/* Descriptions say more than requests may: only what a request takes is carried over. */
#include "cli/definition.h"

#include <string.h>

/* ---- from a description ---- */

static bool is_provisioned(const struct node *table)
{
    const struct node *billing = node_member(table, "BillingModeSummary");
    if (node_is(billing, "BillingMode", "PAY_PER_REQUEST")) return false;
    return node_count(node_member(table, "ProvisionedThroughput"), "ReadCapacityUnits") > 0;
}

static void put_throughput(struct buf *out, const struct node *owner)
{
    const struct node *throughput = node_member(owner, "ProvisionedThroughput");
    put_name(out, "ProvisionedThroughput");
    buf_printf(out, "{\"ReadCapacityUnits\":%llu,\"WriteCapacityUnits\":%llu}",
               node_count(throughput, "ReadCapacityUnits"), node_count(throughput, "WriteCapacityUnits"));
}

/* The projection's names in their own order; some endpoints add empty lists that requests must not have. */
static void put_projection(struct buf *out, const struct node *projection)
{
    const struct node *names = node_member(projection, "NonKeyAttributes");
    put_name(out, "Projection");
    buf_byte(out, '{');
    put_string_member(out, "ProjectionType", node_text(projection, "ProjectionType"));
    if (names && names->first) put_raw_member(out, "NonKeyAttributes", names->source);
    buf_byte(out, '}');
}

static void put_index(struct buf *out, const struct node *index, bool with_throughput)
{
    buf_byte(out, '{');
    put_string_member(out, "IndexName", node_text(index, "IndexName"));
    put_raw_member(out, "KeySchema", node_member(index, "KeySchema")->source);
    put_projection(out, node_member(index, "Projection"));
    if (with_throughput) put_throughput(out, index);
    buf_byte(out, '}');
}

static void put_indexes(struct buf *out, const struct node *table, const char *member, bool with_throughput)
{
    const struct node *indexes = node_member(table, member);
    if (!indexes || !indexes->first) return;
    put_name(out, member);
    buf_byte(out, '[');
    for (const struct node *one = indexes->first; one; one = one->next) {
        put_comma(out);
        put_index(out, one, with_throughput);
    }
    buf_byte(out, ']');
}

static void put_vector_index(struct buf *out, const struct node *index)
{
    const struct node *schema = node_member(index, "SearchSchema"), *attribute = node_member(index, "VectorAttribute");
    buf_byte(out, '{');
    put_string_member(out, "IndexName", node_text(index, "IndexName"));
    if (attribute) put_raw_member(out, "VectorAttribute", attribute->source);
    if (schema && schema->first) put_raw_member(out, "SearchSchema", schema->source);
    put_projection(out, node_member(index, "Projection"));
    put_name(out, "Dimensions");
    buf_printf(out, "%llu", node_count(index, "Dimensions"));
    put_string_member(out, "DistanceFunction", node_text(index, "DistanceFunction"));
    buf_byte(out, '}');
}

static void put_vector_indexes(struct buf *out, const struct node *table)
{
    const struct node *indexes = node_member(table, "VectorIndexes");
    if (!indexes || !indexes->first) return;
    put_name(out, "VectorIndexes");
    buf_byte(out, '[');
    for (const struct node *one = indexes->first; one; one = one->next) {
        put_comma(out);
        put_vector_index(out, one);
    }
    buf_byte(out, ']');
}

static void put_settings(struct buf *out, const struct node *table)
{
    const struct node *stream = node_member(table, "StreamSpecification");
    const struct node *class = node_member(table, "TableClassSummary");
    if (node_is_true(stream, "StreamEnabled")) {
        put_name(out, "StreamSpecification");
        buf_text(out, "{\"StreamEnabled\":true");
        put_string_member(out, "StreamViewType", node_text(stream, "StreamViewType"));
        buf_byte(out, '}');
    }
    if (node_text(class, "TableClass").len)
        put_string_member(out, "TableClass", node_text(class, "TableClass"));
    if (node_is_true(table, "DeletionProtectionEnabled"))
        put_raw_member(out, "DeletionProtectionEnabled", SLICE("true"));
}

static void put_ttl(struct buf *out, struct slice attribute)
{
    if (!attribute.len) return;
    put_name(out, "TimeToLiveSpecification");
    buf_text(out, "{\"Enabled\":true");
    put_string_member(out, "AttributeName", attribute);
    buf_byte(out, '}');
}

void definition_put(struct buf *out, const struct node *table, struct slice ttl, struct slice tags)
{
    bool provisioned = is_provisioned(table);
    buf_byte(out, '{');
    put_string_member(out, "TableName", node_text(table, "TableName"));
    put_raw_member(out, "AttributeDefinitions", node_member(table, "AttributeDefinitions")->source);
    put_raw_member(out, "KeySchema", node_member(table, "KeySchema")->source);
    put_string_member(out, "BillingMode", provisioned ? SLICE("PROVISIONED") : SLICE("PAY_PER_REQUEST"));
    if (provisioned) put_throughput(out, table);
    put_indexes(out, table, "LocalSecondaryIndexes", false);
    put_indexes(out, table, "GlobalSecondaryIndexes", provisioned);
    put_vector_indexes(out, table);
    put_settings(out, table);
    if (tags.len) put_raw_member(out, "Tags", tags);
    put_ttl(out, ttl);
    buf_byte(out, '}');
}

bool definition_load(struct buf *out, const struct place *place, struct arena *arena,
                     const struct schema *schema)
{
    const struct node *table = schema->description;
    if (!node_member(table, "AttributeDefinitions") || !node_member(table, "KeySchema")) {
        complain("%s does not tell the keys of the table '%s'", place->where, schema->table);
        return false;
    }
    struct slice arn = node_text(table, "TableArn");
    definition_put(out, table, table_ttl(place, arena, schema->table),
                   arn.len ? table_tags(place, arena, arn) : SLICE(""));
    return true;
}

bool definition_keys(const struct node *definition, struct sink_table *out)
{
    schema_keys(definition, &out->hash, &out->range);
    return out->hash.name.len > 0;
}

/* ---- to a table ---- */

/* The request of CreateTable: everything but the name and what another operation sets. */
static void put_create_request(struct buf *out, const struct node *definition, const char *name)
{
    buf_byte(out, '{');
    put_string_member(out, "TableName", slice_of(name));
    for (const struct node *member = definition->first; member; member = member->next) {
        if (slice_equal(member->name, SLICE("TableName"))) continue;
        if (slice_equal(member->name, SLICE("TimeToLiveSpecification"))) continue;
        put_comma(out);
        json_put_string(out, member->name);
        buf_byte(out, ':');
        buf_slice(out, member->source);
    }
    buf_byte(out, '}');
}

static bool same_part(const struct key_part *a, const struct key_part *b)
{
    return slice_equal(a->name, b->name) && (!a->name.len || a->type == b->type);
}

static bool same_keys(const struct node *definition, const struct schema *schema)
{
    struct sink_table wanted;
    return definition_keys(definition, &wanted) && same_part(&wanted.hash, &schema->hash) &&
           same_part(&wanted.range, &schema->range);
}

static const struct node *find_index(const struct node *table, const char *member, struct slice name)
{
    const struct node *indexes = node_member(table, member);
    for (const struct node *one = indexes ? indexes->first : NULL; one; one = one->next)
        if (slice_equal(node_text(one, "IndexName"), name)) return one;
    return NULL;
}

/* One at a time, as the service wants it. */
static bool add_index(const struct place *place, struct arena *arena, const char *table,
                      const struct node *definition, const struct node *index, const char *updates)
{
    struct buf request = {0};
    request_begin(&request, table);
    put_raw_member(&request, "AttributeDefinitions", node_member(definition, "AttributeDefinitions")->source);
    put_name(&request, updates);
    buf_text(&request, "[{\"Create\":");
    buf_slice(&request, index->source);
    buf_text(&request, "}]}");
    bool fine = place_call(place, arena, "UpdateTable", &request) && table_wait_active(place, table);
    buf_free(&request);
    return fine;
}

static bool add_missing(const struct place *place, struct arena *arena, const struct node *definition,
                        const struct schema *schema, const char *member, const char *updates)
{
    const struct node *wanted = node_member(definition, member);
    for (const struct node *one = wanted ? wanted->first : NULL; one; one = one->next) {
        if (find_index(schema->description, member, node_text(one, "IndexName"))) continue;
        if (!add_index(place, arena, schema->table, definition, one, updates)) return false;
    }
    return true;
}

static bool add_missing_indexes(const struct place *place, struct arena *arena, const struct node *definition,
                                const struct schema *schema)
{
    if (!add_missing(place, arena, definition, schema, "GlobalSecondaryIndexes", "GlobalSecondaryIndexUpdates") ||
        !add_missing(place, arena, definition, schema, "VectorIndexes", "VectorIndexUpdates"))
        return false;
    const struct node *wanted = node_member(definition, "LocalSecondaryIndexes");
    for (const struct node *one = wanted ? wanted->first : NULL; one; one = one->next) {
        struct slice name = node_text(one, "IndexName");
        if (find_index(schema->description, "LocalSecondaryIndexes", name)) continue;
        complain("the table '%s' on %s lacks the local index '%.*s', and local indexes can only be made with "
                 "the table",
                 schema->table, place->where, SLICE_ARG(name));
        return false;
    }
    return true;
}

/* A stream with another view would have to be switched off first, under those who read it: that is left as it
 * is. */
static bool add_stream(const struct place *place, struct arena *arena, const struct node *definition,
                       const struct schema *schema)
{
    const struct node *wanted = node_member(definition, "StreamSpecification");
    const struct node *present = node_member(schema->description, "StreamSpecification");
    if (!wanted || node_is_true(present, "StreamEnabled")) return true;
    struct buf request = {0};
    request_begin(&request, schema->table);
    put_raw_member(&request, "StreamSpecification", wanted->source);
    buf_byte(&request, '}');
    bool fine = place_call(place, arena, "UpdateTable", &request) && table_wait_active(place, schema->table);
    buf_free(&request);
    return fine;
}

static bool add_tags(const struct place *place, struct arena *arena, const struct node *definition,
                     const struct schema *schema)
{
    const struct node *tags = node_member(definition, "Tags");
    if (!tags || !tags->first) return true;
    struct buf request = {0};
    buf_byte(&request, '{');
    put_string_member(&request, "ResourceArn", node_text(schema->description, "TableArn"));
    put_raw_member(&request, "Tags", tags->source);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "TagResource", &request);
    buf_free(&request);
    /* DynamoDB Local, for one, has no tags. */
    if (!answer.error || strcmp(answer.error, "UnknownOperationException") == 0) return true;
    place_complain(place, NULL, answer.error, answer.message);
    return false;
}

static bool bring_up(const struct place *place, struct arena *arena, const struct node *definition,
                     const char *name)
{
    struct schema schema;
    if (!table_wait_active(place, name) || !schema_load(place, arena, name, NULL, &schema)) return false;
    if (!same_keys(definition, &schema)) {
        complain("there is a table '%s' on %s already, and its keys are others", name, place->where);
        return false;
    }
    return add_missing_indexes(place, arena, definition, &schema) &&
           add_stream(place, arena, definition, &schema) && add_tags(place, arena, definition, &schema);
}

static bool apply_ttl(const struct place *place, struct arena *arena, const struct node *definition,
                      const char *name)
{
    const struct node *wanted = node_member(definition, "TimeToLiveSpecification");
    struct slice attribute = node_text(wanted, "AttributeName");
    if (!attribute.len || slice_equal(table_ttl(place, arena, name), attribute)) return true;
    return table_set_ttl(place, arena, name, attribute);
}

bool definition_apply(const struct place *place, const struct node *definition, const char *name)
{
    struct arena arena = {0};
    struct buf request = {0};
    put_create_request(&request, definition, name);
    struct answer answer = place_ask(place, &arena, "CreateTable", &request);
    bool exists = answer.error && strcmp(answer.error, "ResourceInUseException") == 0;
    bool fine = exists ? bring_up(place, &arena, definition, name)
                       : !answer.error && table_wait_active(place, name);
    if (answer.error && !exists) place_complain(place, NULL, answer.error, answer.message);
    fine = fine && apply_ttl(place, &arena, definition, name);
    buf_free(&request);
    arena_free(&arena);
    return fine;
}
