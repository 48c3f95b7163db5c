/* What holds for which item. */
#include "unit/expr_world.h"

struct example {
    const char *text, *truth;
};

static void check_examples(const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) {
        const char *truth = truth_of(&world, examples[i].text);
        if (strcmp(truth, examples[i].truth) != 0)
            test_failed(__FILE__, __LINE__, "%s: %s", examples[i].text, truth);
    }
    world_close(&world);
}

#define CHECK_EXAMPLES(examples) check_examples((examples), sizeof(examples) / sizeof *(examples))

TEST(condition_equality_is_of_all_types)
{
    static const struct example examples[] = {
        {"s = :s", "true"},    {"s <> :s", "false"},  {"n = :n", "true"},     {"b = :b", "true"},
        {"t = :t", "true"},    {"z = :z", "true"},    {"l[0] = m.x", "true"}, {"m.y.z = :s", "false"},
        {"ss = :ss", "false"}, {"ns <> :ns", "true"}, {"s = :b", "false"},    {"s <> :b", "true"},
        {"l = :l", "false"},   {":m = :m", "true"},   {":l = :m", "false"},   {"#dotted = :n", "false"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_missing_equals_nothing)
{
    static const struct example examples[] = {
        {"lost = :s", "false"},
        {"lost <> :s", "true"},
        {"lost = gone", "false"},
        {"lost <> gone", "true"},
        {"lost < :s", "false"},
        {"not lost < :s", "true"},
        {"lost between :n and :n", "false"},
        {"lost in (:n, gone)", "false"},
        {"l[9] <> :n", "true"},
        {"m.lost.x = :n", "false"},
        {"s.x <> :n", "true"},
        {"s[0] = :n", "false"},
        {"contains(lost, :s)", "false"},
        {"begins_with(lost, :s)", "false"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_order_is_within_one_type)
{
    static const struct example examples[] = {
        {"n < :n", "false"},
        {"n <= :n", "true"},
        {"n > l[0]", "true"},
        {"n >= :n", "true"},
        {"e < :s", "true"},
        {"s < wide", "true"},
        {"s < :n", "false"},
        {"s > :n", "false"},
        {"b >= :b", "true"},
        {"t < t.x", "false"},
        {"t >= z", "false"},
        {"ss < ns", "false"},
        {"n between l[0] and :n", "true"},
        {"n between :n and l[0]", "false"},
        {"s between e and wide", "true"},
        {"s between e and n", "false"},
        {":n between l[0] and n", "true"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_in)
{
    static const struct example examples[] = {
        {"n in (:s, :n)", "true"}, {"n in (:s)", "false"},   {"ss in (:ns, :ss)", "false"},
        {"t in (:t)", "true"},     {":n in (s, n)", "true"}, {"size(s) in (:n, size(b))", "true"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_size_counts_units_bytes_and_members)
{
    static const struct example examples[] = {
        {"size(s) = size(b)", "true"},
        {"size(wide) = size(l)", "true"}, /* four UTF-16 units */
        {"size(e) < size(m)", "true"},
        {"size(ss) = size(ns)", "true"},
        {"size(bs) = size(m)", "true"},
        {"size(n) <> :n", "true"},
        {"size(n) = :n", "false"},
        {"size(t) < :n", "false"},
        {"size(lost) <> size(lost)", "true"},
        {"size(:s) = size(s)", "true"},
        {"size(l[2]) = l[0]", "true"},
        {"size(s) between l[0] and :n", "true"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_contains)
{
    static const struct example examples[] = {
        {"contains(s, e)", "true"},     {"contains(:s, s)", "true"},    {"contains(e, :s)", "false"},
        {"contains(b, :b)", "true"},    {"contains(b, :s)", "false"},   {"contains(ss, :s)", "false"},
        {"contains(ns, l[0])", "true"}, {"contains(ns, :n)", "false"},  {"contains(l, m.x)", "true"},
        {"contains(l, l[2])", "true"},  {"contains(l, :ss)", "false"},  {"contains(m, m.x)", "false"},
        {"contains(n, :n)", "false"},   {"contains(ss, :ss)", "false"}, {"contains(ns, size(bs))", "true"},
    };
    CHECK_EXAMPLES(examples);
}

/* No expression can say it, so it is made by hand. */
TEST(condition_not_contains)
{
    struct world world;
    world_open_usual(&world);
    struct value part = {.type = VALUE_S, .bytes = {"b", 1}};
    struct path_part name = {0};
    struct operand operands[] = {{.kind = OPERAND_PATH, .path = {&name, 1}},
                                 {.kind = OPERAND_VALUE, .value = &part}};
    struct condition condition = {.kind = CONDITION_NOT_CONTAINS, .operands = operands, .operand_count = 2};
    static const struct {
        struct slice name;
        bool holds;
    } examples[] = {
        {{"s", 1}, false}, {{"ss", 2}, false}, {{"e", 1}, true}, {{"n", 1}, true}, {{"lost", 4}, false}};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        name.name = examples[i].name;
        CHECK_INT(condition_holds(&condition, &world.item), examples[i].holds);
    }
    world_close(&world);
}

TEST(condition_functions)
{
    static const struct example examples[] = {
        {"begins_with(s, :s)", "true"},        {"begins_with(s, e)", "true"},
        {"begins_with(b, :b)", "true"},        {"begins_with(s, b)", "false"},
        {"begins_with(n, :s)", "false"},       {"begins_with(e, :s)", "false"},
        {"attribute_exists(m.y.z)", "true"},   {"attribute_exists(m.y.q)", "false"},
        {"attribute_exists(z)", "true"},       {"attribute_exists(l[3])", "true"},
        {"attribute_exists(l[4])", "false"},   {"attribute_exists(m[0])", "false"},
        {"attribute_not_exists(s.x)", "true"}, {"attribute_not_exists(s)", "false"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_attribute_type)
{
    struct world world;
    world_open(&world, NULL, "{\":S\":{\"S\":\"S\"},\":N\":{\"S\":\"N\"},\":NULL\":{\"S\":\"NULL\"}}",
               "{\"a\":{\"S\":\"\"},\"n\":{\"NULL\":true}}");
    CHECK(strcmp(truth_of(&world, "attribute_type(a, :S)"), "true") == 0);
    CHECK(strcmp(truth_of(&world, "attribute_type(a, :N)"), "false") == 0);
    CHECK(strcmp(truth_of(&world, "attribute_type(n, :NULL)"), "true") == 0);
    CHECK(strcmp(truth_of(&world, "attribute_type(:N, :S)"), "true") == 0);
    CHECK(strcmp(truth_of(&world, "attribute_type(size(a), :N)"), "true") == 0);
    CHECK(strcmp(truth_of(&world, "attribute_type(lost, :S)"), "false") == 0);
    world_close(&world);
}

TEST(condition_precedence)
{
    static const struct example examples[] = {
        {"s = :s or lost = :s and n = m.x", "true"},
        {"n = m.x and lost = :s or s = :s", "true"},
        {"(s = :s or lost = :s) and n = m.x", "false"},
        {"not s = :s or n = :n", "true"},
        {"not (s = :s or n = :n)", "false"},
        {"not not s = :s", "true"},
        {"n between l[0] and :n and s = :s", "true"},
        {"s = :s AND n = :n aNd t = :t", "true"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(condition_mentions_its_attributes)
{
    struct world world;
    world_open_usual(&world);
    struct condition *condition = condition_parse(
        &world.arena, EXPR_FILTER, SLICE("a.b = :n and (size(#b) = :n or not contains(:s, x[1]))"),
        &world.params, &world.fault);
    CHECK(condition != NULL);
    CHECK(condition_mentions(condition, SLICE("a")));
    CHECK(condition_mentions(condition, SLICE("b")));
    CHECK(condition_mentions(condition, SLICE("x")));
    CHECK(!condition_mentions(condition, SLICE("n")));
    world_close(&world);
}
