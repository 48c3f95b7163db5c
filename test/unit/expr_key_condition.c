/* Which conditions a Query takes, and how it refuses the others. */
#include "unit/expr_world.h"

struct example {
    const char *text, *fault;
};

static const struct key_schema hash_and_range = {
    .hash = {"pk", 2}, .range = {"sk", 2}, .hash_type = VALUE_S, .range_type = VALUE_N};

static void check_examples(const struct key_schema *schema, const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) {
        struct key_condition key;
        struct condition *condition = condition_parse(
            &world.arena, EXPR_KEY_CONDITION, slice_of(examples[i].text), &world.params, &world.fault);
        world.fault = condition ? SLICE_NONE : world.fault;
        if (condition) key_condition_bind(&world.arena, condition, schema, &key, &world.fault);
        CHECK_TEXT(world.fault, examples[i].fault);
    }
    world_close(&world);
}

#define CHECK_EXAMPLES(schema, examples)                                                                     \
    check_examples((schema), (examples), sizeof(examples) / sizeof *(examples))

#define OPERATOR "Invalid operator used in KeyConditionExpression: "
#define INVALID  "Invalid condition in KeyConditionExpression: "

TEST(key_condition_faults_without_a_table)
{
    static const struct example examples[] = {
        {"pk = :s or sk = :n", OPERATOR "OR"},
        {"pk = :s and not sk = :n", OPERATOR "NOT"},
        {"pk = :s and sk <> :n", OPERATOR "<>"},
        {"pk in (:s)", OPERATOR "IN"},
        {"attribute_exists(pk)", OPERATOR "attribute_exists"},
        {"attribute_not_exists(pk)", OPERATOR "attribute_not_exists"},
        {"contains(pk, :s)", OPERATOR "contains"},
        {"size(pk) = :n", "KeyConditionExpressions cannot contain nested operations"},
        {"pk = size(a)", "KeyConditionExpressions cannot contain nested operations"},
        {"pk = a", INVALID "Multiple attribute names used in one condition"},
        {"a between b and size(a)", INVALID "Multiple attribute names used in one condition"},
        {"a.d > c", "KeyConditionExpressions cannot have conditions on nested attributes"},
        {"b > a.b", INVALID "Multiple attribute names used in one condition"},
        {":s = :s", INVALID "No key attribute specified"},
        {":s between a and b", INVALID "BETWEEN operator must have the key attribute as its first operand"},
        {"begins_with(:s, pk)",
         INVALID "begins_with operator must have the key attribute as its first operand"},
        {"pk = :s and pk > :s", "KeyConditionExpressions must only contain one condition per key"},
        {"pk = :s and sk = :n and a = :n", "Conditions can be of length 1 or 2 only"},
        {"(a > :s and b > :s) and (c > :s and d > :s) and e > :s", "Conditions can be of length 1 or 2 only"},
        {"pk = a and pk <> :s", INVALID "Multiple attribute names used in one condition"},
    };
    CHECK_EXAMPLES(&hash_and_range, examples);
}

TEST(key_condition_faults_on_a_schema)
{
    static const struct example examples[] = {
        {"sk = :n", "Query condition missed key schema element: pk"},
        {"a = :n and b = :n", "Query condition missed key schema element: pk"},
        {"pk = :s and a = :n", "Query condition missed key schema element: sk"},
        {"pk > :s", "Query key condition not supported"},
        {"begins_with(pk, :s) and sk = :n", "Query key condition not supported"},
        {"pk = :n",
         "One or more parameter values were invalid: Condition parameter type does not match schema type"},
        {"pk > :n and a = :n",
         "One or more parameter values were invalid: Condition parameter type does not match schema type"},
        {"pk = :s and begins_with(sk, :s)",
         "One or more parameter values were invalid: Condition parameter type does not match schema type"},
        {"pk = :s and sk = :n", ""},
    };
    CHECK_EXAMPLES(&hash_and_range, examples);
    static const struct key_schema hash_only = {.hash = {"pk", 2}, .hash_type = VALUE_S};
    static const struct example hash_examples[] = {
        {"pk = :s", ""}, {"pk = :s and a = :n", "Query key condition not supported"}};
    CHECK_EXAMPLES(&hash_only, hash_examples);
}

TEST(key_condition_empty_keys)
{
    struct world world;
    struct key_condition key;
    static const struct key_schema schema = {
        .hash = {"pk", 2}, .range = {"sk", 2}, .hash_type = VALUE_S, .range_type = VALUE_B};
    world_open(&world, NULL, "{\":e\":{\"S\":\"\"},\":s\":{\"S\":\"x\"},\":eb\":{\"B\":\"\"}}", NULL);
    struct condition *condition = condition_parse(&world.arena, EXPR_KEY_CONDITION,
                                                  SLICE("pk = :e and a = :s"), &world.params, &world.fault);
    CHECK(!key_condition_bind(&world.arena, condition, &schema, &key, &world.fault));
    CHECK_TEXT(world.fault,
               "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
               "contain an empty string value. Key: pk");
    condition = condition_parse(&world.arena, EXPR_KEY_CONDITION, SLICE("pk = :s and sk > :eb"),
                                &world.params, &world.fault);
    CHECK(!key_condition_bind(&world.arena, condition, &schema, &key, &world.fault));
    CHECK_TEXT(world.fault,
               "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
               "contain an empty binary value. Key: sk");
    world_close(&world);
}

static struct key_condition bound(struct world *world, const char *text)
{
    struct key_condition key = {0};
    struct condition *condition = condition_parse(&world->arena, EXPR_KEY_CONDITION, slice_of(text),
                                                  &world->params, &world->fault);
    CHECK(condition && key_condition_check(&world->arena, condition, &world->fault));
    CHECK(condition && key_condition_bind(&world->arena, condition, &hash_and_range, &key, &world->fault));
    return key;
}

TEST(key_condition_becomes_hash_and_range)
{
    struct world world;
    world_open_usual(&world);
    struct key_condition key = bound(&world, "pk = :s");
    CHECK_TEXT(key.hash->bytes, "abc");
    CHECK_INT(key.compare, KEY_NONE);
    key = bound(&world, "sk < :n and :s = pk");
    CHECK_TEXT(key.hash->bytes, "abc");
    CHECK_INT(key.compare, KEY_LT);
    CHECK_TEXT(key.range[0]->bytes, "5");
    key = bound(&world, "(pk = :s) and (:n < sk)");
    CHECK_INT(key.compare, KEY_GT);
    key = bound(&world, "pk = :s and :n >= sk");
    CHECK_INT(key.compare, KEY_LE);
    key = bound(&world, "(pk = :s and sk between :n and :n)");
    CHECK_INT(key.compare, KEY_BETWEEN);
    CHECK_TEXT(key.range[1]->bytes, "5");
    world_close(&world);
}
