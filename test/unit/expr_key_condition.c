/* Which conditions a Query takes, and how it refuses the others. */
#include "unit/expr_world.h"

struct example {
    const char *text, *fault;
};

static const struct key_fields hash_and_range = {
    .hash = {{{"pk", 2}, VALUE_S}}, .hash_count = 1, .range = {{{"sk", 2}, VALUE_N}}, .range_count = 1};

static bool bind(struct world *world, const char *text, const struct key_fields *fields,
                 struct key_condition *out)
{
    struct key_terms terms;
    struct condition *condition = condition_parse(&world->arena, EXPR_KEY_CONDITION, slice_of(text),
                                                  &world->params, &world->fault);
    return condition && key_terms_read(&world->arena, condition, &terms, &world->fault) &&
           key_terms_bind(&world->arena, &terms, fields, out, &world->fault);
}

static void check_examples(const struct key_fields *fields, const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) {
        struct key_condition key;
        bool bound = bind(&world, examples[i].text, fields, &key);
        CHECK_TEXT(bound ? SLICE_NONE : world.fault, examples[i].fault);
    }
    world_close(&world);
}

#define CHECK_EXAMPLES(fields, examples)                                                                     \
    check_examples((fields), (examples), sizeof(examples) / sizeof *(examples))

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
        {"pk = :s and pk > :s",
         "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"},
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
    static const struct key_fields hash_only = {.hash = {{{"pk", 2}, VALUE_S}}, .hash_count = 1};
    static const struct example hash_examples[] = {
        {"pk = :s", ""}, {"pk = :s and a = :n", "Query key condition not supported"}};
    CHECK_EXAMPLES(&hash_only, hash_examples);
}

TEST(key_condition_empty_keys)
{
    struct world world;
    struct key_condition key;
    struct key_fields fields = {
        .hash = {{{"pk", 2}, VALUE_S}}, .hash_count = 1, .range = {{{"sk", 2}, VALUE_B}}, .range_count = 1};
    world_open(&world, NULL, "{\":e\":{\"S\":\"\"},\":s\":{\"S\":\"x\"},\":eb\":{\"B\":\"\"}}", NULL);
    CHECK(!bind(&world, "pk = :e and a = :s", &fields, &key));
    CHECK_TEXT(world.fault,
               "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
               "contain an empty string value. Key: pk");
    CHECK(!bind(&world, "pk = :s and sk > :eb", &fields, &key));
    CHECK_TEXT(world.fault,
               "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
               "contain an empty binary value. Key: sk");
    fields.index = SLICE("by-sk");
    CHECK(!bind(&world, "pk = :s and sk > :eb", &fields, &key));
    CHECK_TEXT(world.fault,
               "One or more parameter values are not valid. A value specified for a secondary index key is "
               "not supported. The AttributeValue for a key attribute cannot contain an empty binary value. "
               "IndexName: by-sk, IndexKey: sk");
    world_close(&world);
}

static struct key_condition bound(struct world *world, const char *text)
{
    struct key_condition key = {0};
    CHECK(bind(world, text, &hash_and_range, &key));
    return key;
}

TEST(key_condition_becomes_hash_and_range)
{
    struct world world;
    world_open_usual(&world);
    struct key_condition key = bound(&world, "pk = :s");
    CHECK_INT(key.hash_count, 1);
    CHECK_TEXT(key.hash[0]->bytes, "abc");
    CHECK_INT(key.compare, KEY_NONE);
    key = bound(&world, "sk < :n and :s = pk");
    CHECK_TEXT(key.hash[0]->bytes, "abc");
    CHECK_INT(key.compare, KEY_LT);
    CHECK_INT(key.equal_count, 0);
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

/* ---- keys of several attributes ---- */

static const struct key_fields compound = {
    .index = {"multi", 5},
    .hash = {{{"h1", 2}, VALUE_S}, {{"h2", 2}, VALUE_N}, {{"h3", 2}, VALUE_S}, {{"h4", 2}, VALUE_S}},
    .hash_count = 4,
    .range = {{{"r1", 2}, VALUE_S}, {{"r2", 2}, VALUE_N}, {{"r3", 2}, VALUE_S}, {{"r4", 2}, VALUE_S}},
    .range_count = 4};

#define ALL_HASHES  "h1 = :s and h2 = :n and h3 = :s and h4 = :s"
#define HASH(names) "HASH key attributes " names " must have equality conditions specified in the query"
#define RANGE(names, because)                                                                                \
    "RANGE key attributes " names " must have equality conditions specified in the query because a "         \
                                  "condition is present on key attribute " because
#define MISMATCH                                                                                             \
    "One or more parameter values were invalid: Condition parameter type does not match schema type"

TEST(compound_keys_want_all_hash_attributes)
{
    static const struct example examples[] = {
        {ALL_HASHES, ""},
        {"h4 = :s and :s = h3 and h1 = :s and (h2 = :n)", ""},
        {"h1 = :s", HASH("h2, h3, h4")},
        {"h3 = :s", HASH("h1, h2, h4")},
        {"r4 = :s", HASH("h1, h2, h3, h4")},
        {"h1 = :s and h4 > :s", HASH("h2, h3")},
        {"h1 > :s and h2 = :n and h3 = :s and h4 > :s", HASH("h1, h4")},
        {"h1 = :n and h2 = :n and h3 = :s and h4 > :s", HASH("h4")},
        {"h1 = :n and h2 = :n and h3 = :s and h4 = :s", MISMATCH},
        {"h1 = :n and h2 = :n and h3 = :s and h4 = :s and r4 = :s", MISMATCH},
        {"h1 = :s and h1 = :s",
         "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"},
    };
    CHECK_EXAMPLES(&compound, examples);
}

TEST(compound_keys_want_range_attributes_from_left_to_right)
{
    static const struct example examples[] = {
        {ALL_HASHES " and r1 > :s", ""},
        {"r2 between :n and :n and r1 = :s and " ALL_HASHES, ""},
        {ALL_HASHES " and r1 = :s and r2 = :n and r3 = :s and begins_with(r4, :s)", ""},
        {ALL_HASHES " and r2 = :n", RANGE("r1", "r2")},
        {ALL_HASHES " and r4 = :s", RANGE("r1, r2, r3", "r4")},
        {ALL_HASHES " and r4 = :s and r2 > :n", RANGE("r1", "r2")},
        {ALL_HASHES " and r1 > :s and r3 = :s", RANGE("r2", "r3")},
        {ALL_HASHES " and r1 > :s and r2 = :n", RANGE("r1", "r2")},
        {ALL_HASHES " and r1 > :s and r2 = :n and r3 > :s and r4 = :s", RANGE("r1, r3", "r4")},
        {ALL_HASHES " and r1 > :n and r2 = :n", RANGE("r1", "r2")},
        {ALL_HASHES " and r1 = :n", MISMATCH},
        {ALL_HASHES " and r1 = :n and a = :s", MISMATCH},
        {ALL_HASHES " and a = :s", "Query condition missed key schema element: r1"},
        {ALL_HASHES " and r1 = :s and a = :s", "Query condition missed key schema element: r2"},
        {ALL_HASHES " and r1 = :s and r2 = :n and r3 = :s and r4 = :s and a = :s",
         "Query key condition not supported"},
    };
    CHECK_EXAMPLES(&compound, examples);
    static const struct key_fields hashes = {.hash = {{{"h1", 2}, VALUE_S}, {{"h2", 2}, VALUE_N}},
                                             .hash_count = 2};
    static const struct example without_range[] = {
        {"h1 = :s and h2 = :n", ""},
        {"h1 = :s and a = :n and b = :n", "Query key condition not supported"},
        {"h1 = :s and a = :n", HASH("h2")},
    };
    CHECK_EXAMPLES(&hashes, without_range);
}

TEST(compound_keys_become_equalities_and_a_comparison)
{
    struct world world;
    struct key_condition key;
    world_open_usual(&world);
    CHECK(bind(&world, ALL_HASHES, &compound, &key));
    CHECK_INT(key.hash_count, 4);
    CHECK_TEXT(key.hash[1]->bytes, "5");
    CHECK_INT(key.equal_count, 0);
    CHECK_INT(key.compare, KEY_NONE);
    CHECK(bind(&world, ALL_HASHES " and r1 = :s", &compound, &key));
    CHECK_INT(key.equal_count, 0);
    CHECK_INT(key.compare, KEY_EQ);
    CHECK_TEXT(key.range[0]->bytes, "abc");
    CHECK(bind(&world, ALL_HASHES " and :n <= r2 and r1 = :s", &compound, &key));
    CHECK_INT(key.equal_count, 1);
    CHECK_TEXT(key.equal[0]->bytes, "abc");
    CHECK_INT(key.compare, KEY_GE);
    CHECK_TEXT(key.range[0]->bytes, "5");
    CHECK(!bind(&world, ALL_HASHES " and r2 = :n", &compound, &key));
    CHECK_INT(key.hash_count, 4);
    CHECK(!bind(&world, "h1 = :s", &compound, &key));
    CHECK_INT(key.hash_count, 0);
    world_close(&world);
}
