/* Lenient mode (`quipu serve --lenient`): requests that other local DynamoDBs take and the service refuses
 * become requests that the service takes, between decoding and checking. So every rule stays in one place,
 * and a lenient server stores nothing that a strict one could not hold.
 *
 * DynamoDB Local 3.3 takes numbers as text and text as numbers (decode.c), throughput beside PAY_PER_REQUEST,
 * empty lists of local indexes and of projected attributes, and ARNs of any region. Other emulators also take
 * attributes that are defined and no key, the same definition twice, an empty list of global indexes, and
 * Limit 0. */
#include "api/internal.h"

#include "base/fail.h"

/* The member, or NULL where the shape has none of that name or the request left it out. */
static struct node *member_named(const struct node *node, const char *name)
{
    const struct shape *shape = node->shape;
    for (uint32_t i = 0; i < shape->member_count; i++)
        if (slice_equal(shape->members[i].name, slice_of(name)))
            return node->members[i].present ? &node->members[i] : NULL;
    return NULL;
}

static void drop(struct node *node)
{
    if (node) node->present = false;
}

static struct slice text_of(const struct node *node, const char *name)
{
    const struct node *text = member_named(node, name);
    return text ? text->text : SLICE_NONE;
}

static bool schema_names(const struct node *owner, struct slice name)
{
    const struct node *schema = member_named(owner, "KeySchema");
    for (uint32_t i = 0; schema && i < schema->count; i++)
        if (schema->elements[i].present &&
            slice_equal(text_of(&schema->elements[i], "AttributeName"), name))
            return true;
    return false;
}

static bool index_names(const struct node *input, const char *list, struct slice name)
{
    const struct node *indexes = member_named(input, list);
    for (uint32_t i = 0; indexes && i < indexes->count; i++)
        if (indexes->elements[i].present && schema_names(&indexes->elements[i], name)) return true;
    return false;
}

static bool is_key(const struct node *input, struct slice name)
{
    return schema_names(input, name) || index_names(input, "LocalSecondaryIndexes", name) ||
           index_names(input, "GlobalSecondaryIndexes", name);
}

/* The same name and type stand earlier in the list. */
static bool is_repeated(const struct node *list, uint32_t place)
{
    const struct node *definition = &list->elements[place];
    for (uint32_t i = 0; i < place; i++)
        if (list->elements[i].present &&
            slice_equal(text_of(&list->elements[i], "AttributeName"), text_of(definition, "AttributeName")) &&
            slice_equal(text_of(&list->elements[i], "AttributeType"), text_of(definition, "AttributeType")))
            return true;
    return false;
}

static void drop_definitions(const struct node *input)
{
    struct node *list = member_named(input, "AttributeDefinitions");
    uint32_t kept = 0;
    if (!list || list->count > LIMIT_ATTRIBUTE_DEFINITIONS) return;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *definition = &list->elements[i];
        if (!definition->present || !is_key(input, text_of(definition, "AttributeName"))) continue;
        if (is_repeated(list, i)) continue;
        list->elements[kept++] = *definition;
    }
    if (kept) list->count = kept; /* none left: the checks tell what is wrong */
}

static void drop_empty_list(const struct node *input, const char *name)
{
    struct node *list = member_named(input, name);
    if (list && !list->count) drop(list);
}

static void drop_empty_projections(const struct node *input, const char *list)
{
    const struct node *indexes = member_named(input, list);
    for (uint32_t i = 0; indexes && i < indexes->count; i++) {
        const struct node *index = &indexes->elements[i];
        const struct node *projection = index->present ? member_named(index, "Projection") : NULL;
        if (projection) drop_empty_list(projection, "NonKeyAttributes");
    }
}

static void drop_throughput(const struct node *input)
{
    struct node *indexes = member_named(input, "GlobalSecondaryIndexes");
    const struct node *mode = member_named(input, "BillingMode");
    if (!mode || !node_says(mode, "PAY_PER_REQUEST")) return;
    drop(member_named(input, "ProvisionedThroughput"));
    for (uint32_t i = 0; indexes && i < indexes->count; i++)
        if (indexes->elements[i].present) drop(member_named(&indexes->elements[i], "ProvisionedThroughput"));
}

static void drop_zero_limit(const struct node *input)
{
    struct node *limit = member_named(input, "Limit");
    if (limit && limit->shape->kind == SHAPE_INT && limit->integer == 0) drop(limit);
}

void request_relax(const struct operation *operation, const struct node *input)
{
    ensure(input->shape->kind == SHAPE_STRUCT);
    drop_zero_limit(input);
    if (operation != &operation_CreateTable && operation != &operation_UpdateTable) return;
    drop_throughput(input);
    if (operation == &operation_UpdateTable) return;
    drop_definitions(input);
    drop_empty_list(input, "LocalSecondaryIndexes");
    drop_empty_list(input, "GlobalSecondaryIndexes");
    drop_empty_projections(input, "LocalSecondaryIndexes");
    drop_empty_projections(input, "GlobalSecondaryIndexes");
}
