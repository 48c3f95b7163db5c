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

void schema_keys(const struct node *description, const struct node *key_schema, struct key_part *hash,
                 struct key_part *range)
{
    *hash = *range = (struct key_part){SLICE(""), 'S'};
    for (const struct node *one = key_schema ? key_schema->first : NULL; one; one = one->next) {
        struct slice name = node_text(one, "AttributeName");
        *(node_is(one, "KeyType", "HASH") ? hash : range) = (struct key_part){name,
                                                                              type_of(description, name)};
    }
}

static const struct node *find_index(const struct node *description, const char *name)
{
    const char *const lists[] = {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct node *list = node_member(description, lists[i]);
        for (const struct node *one = list ? list->first : NULL; one; one = one->next)
            if (node_is(one, "IndexName", name)) return one;
    }
    return NULL;
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
    schema_keys(out->description, node_member(out->description, "KeySchema"), &out->hash, &out->range);
    out->index_hash = out->hash;
    out->index_range = out->range;
    if (!index) return true;
    const struct node *found = find_index(out->description, index);
    if (!found) return complain("the table '%s' has no index '%s'", table, index), false;
    schema_keys(out->description, node_member(found, "KeySchema"), &out->index_hash, &out->index_range);
    return true;
}
