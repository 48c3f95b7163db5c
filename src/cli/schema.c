/* A table's keys, as its description tells them: what gives the words of a command line their types. */
#include "cli/place.h"

void request_begin(struct buf *out, const char *table)
{
    out->len = 0;
    buf_text(out, "{\"TableName\":");
    json_put_string(out, slice_of(table));
}

static char type_of(const struct node *description, struct slice name)
{
    const struct node *definitions = node_member(description, "AttributeDefinitions");
    for (const struct node *one = definitions ? definitions->first : NULL; one; one = one->next) {
        struct slice type = node_text(one, "AttributeType");
        if (slice_equal(node_text(one, "AttributeName"), name)) return type.len ? type.data[0] : 'S';
    }
    return 'S';
}

static void add_parts(const struct node *table, const struct node *key_schema, const char *kind,
                      struct key *out)
{
    for (const struct node *one = key_schema ? key_schema->first : NULL; one; one = one->next) {
        struct slice name = node_text(one, "AttributeName");
        if (node_is(one, "KeyType", kind) && out->count < KEY_PARTS_MAX)
            out->parts[out->count++] = (struct key_part){name, type_of(table, name)};
    }
}

void schema_key(const struct node *table, const struct node *key_schema, struct key *out)
{
    *out = (struct key){0};
    add_parts(table, key_schema, "HASH", out);
    out->hash_count = out->count;
    add_parts(table, key_schema, "RANGE", out);
}

void schema_keys(const struct node *table, struct key_part *hash, struct key_part *range)
{
    struct key key;
    schema_key(table, node_member(table, "KeySchema"), &key);
    *hash = key.hash_count > 0 ? key.parts[0] : (struct key_part){SLICE(""), 'S'};
    *range = key.count > key.hash_count ? key.parts[key.hash_count] : (struct key_part){SLICE(""), 'S'};
}

static const struct node *find_index(const struct node *description, const char *list_name, const char *name)
{
    const struct node *list = node_member(description, list_name);
    for (const struct node *one = list ? list->first : NULL; one; one = one->next)
        if (node_is(one, "IndexName", name)) return one;
    return NULL;
}

static bool load_index(struct schema *out)
{
    const char *table = out->table, *index = out->index;
    const struct node *found = find_index(out->description, "GlobalSecondaryIndexes", index);
    out->is_global = found != NULL;
    if (!found) found = find_index(out->description, "LocalSecondaryIndexes", index);
    if (!found && find_index(out->description, "VectorIndexes", index))
        return complain("the index '%s' of the table '%s' is a vector index, which only SearchVectors reads",
                        index, table),
               false;
    if (!found) return complain("the table '%s' has no index '%s'", table, index), false;
    out->index_description = found;
    schema_key(out->description, node_member(found, "KeySchema"), &out->searched);
    return true;
}

bool schema_load(const struct place *place, struct arena *arena, const char *table, const char *index,
                 struct schema *out)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "DescribeTable", &request);
    buf_free(&request);
    if (answer.error) return place_complain(place, table, answer.error, answer.message), false;
    *out = (struct schema){.table = table, .index = index, .description = node_member(answer.json, "Table")};
    schema_keys(out->description, &out->hash, &out->range);
    schema_key(out->description, node_member(out->description, "KeySchema"), &out->searched);
    return !index || load_index(out);
}
