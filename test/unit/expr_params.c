/* Parameters that nobody used, and the words that need placeholders. */
#include "unit/expr_world.h"

static struct slice unused_after(struct world *world, const char *text)
{
    CHECK_TEXT(fault_of(world, EXPR_CONDITION, text), "");
    if (expr_params_all_used(&world->arena, &world->params, &world->fault)) return SLICE("");
    return world->fault;
}

TEST(params_unused_ones_are_listed)
{
    struct world world;
    world_open(&world, "{\"#b\":\"b\",\"#a\":\"a\"}", "{\":v\":{\"N\":\"1\"}}", NULL);
    CHECK_TEXT(unused_after(&world, "x = y"),
               "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}");
    CHECK_TEXT(unused_after(&world, "#a = y"),
               "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}");
    CHECK_TEXT(unused_after(&world, "#b = y"),
               "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}");
    CHECK_TEXT(unused_after(&world, "x = :v"), "");
    world_close(&world);
}

/* They come as the service's hash set has them. */
TEST(params_unused_ones_in_the_order_of_the_service)
{
    struct world world;
    world_open(&world, "{\"#a\":\"1\",\"#b\":\"2\",\"#zeta\":\"3\",\"#Q\":\"4\",\"#x1\":\"5\",\"#x2\":\"6\"}",
               NULL, NULL);
    CHECK_TEXT(unused_after(&world, "x = y"),
               "Value provided in ExpressionAttributeNames unused in expressions: keys: "
               "{#x1, #zeta, #x2, #a, #Q, #b}");
    world_close(&world);
    world_open(&world, NULL,
               "{\":b\":{\"N\":\"1\"},\":a\":{\"N\":\"1\"},\":foo\":{\"N\":\"1\"},\":bar\":{\"N\":\"1\"}}",
               NULL);
    CHECK_TEXT(unused_after(&world, "x = y"),
               "Value provided in ExpressionAttributeValues unused in expressions: keys: "
               "{:bar, :a, :foo, :b}");
    world_close(&world);
}

TEST(params_reserved_words_in_any_case)
{
    static const char *const reserved[] = {
        "ABORT", "abort",          "Zone", "ZONE", "name", "NAME",   "sTaTuS", "size",
        "year",  "LOCALTIMESTAMP", "by",   "AND",  "set",  "values", "url",    "item"};
    static const char *const free_words[] = {
        "pk", "sk", "id", "aborts", "abor", "a", "zzz", "ABORT_", "contains", "localtimestamps",
        "b1", "x",  "",   "_",      "[",    "@", "zon", "{one"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (!expr_is_reserved(slice_of(reserved[i])))
            test_failed(__FILE__, __LINE__, "%s is free", reserved[i]);
    }
    for (size_t i = 0; i < sizeof free_words / sizeof *free_words; i++) {
        if (expr_is_reserved(slice_of(free_words[i])))
            test_failed(__FILE__, __LINE__, "%s is reserved", free_words[i]);
    }
}

/* One word of every letter's first and last in the list: the index of letters must fit the list. */
TEST(params_reserved_words_of_every_letter)
{
    static const char *const edges[] = {
        "ABORT",      "AVG",     "BACK",    "BYTE",      "CALL",    "CYCLE",    "DATA",    "DYNAMIC",
        "EACH",       "EXTRACT", "FAIL",    "FUNCTIONS", "GENERAL", "GROUPING", "HANDLER", "HOUR",
        "IDENTIFIED", "ITERATE", "JOIN",    "KEY",       "KEYS",    "LAG",      "LOWER",   "MAP",
        "MULTISET",   "NAME",    "NUMERIC", "OBJECT",    "OWNER",   "PAD",      "PUT",     "QUERY",
        "QUORUM",     "RAISE",   "RULES",   "SAMPLE",    "SYSTEM",  "TABLE",    "TYPE",    "UNDER",
        "UUID",       "VACUUM",  "VOID",    "WAIT",      "WRITE",   "YEAR",     "ZONE"};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        if (!expr_is_reserved(slice_of(edges[i]))) test_failed(__FILE__, __LINE__, "%s is free", edges[i]);
    }
}
