/* Plain JSON into DynamoDB's and back. */
#include "cli/plain.h"

#include "unit/test.h"

static struct buf out;

static struct slice to_dynamo(const char *plain)
{
    struct arena arena = {0};
    const char *fault = NULL;
    const struct node *node = node_parse(&arena, slice_of(plain), &fault);
    out.len = 0;
    if (!node || !plain_value_to_dynamo(&out, node, &fault)) {
        out.len = 0;
        buf_printf(&out, "refused: %s", fault);
    }
    arena_free(&arena);
    return buf_view(&out);
}

static struct slice to_plain(const char *dynamo)
{
    struct arena arena = {0};
    const char *fault;
    const struct node *node = node_parse(&arena, slice_of(dynamo), &fault);
    out.len = 0;
    if (!node || !dynamo_value_to_plain(&out, node)) {
        out.len = 0;
        buf_text(&out, "refused");
    }
    arena_free(&arena);
    return buf_view(&out);
}

static const char *const pairs[][2] = {
    {"\"text\"", "{\"S\":\"text\"}"},
    {"\"\"", "{\"S\":\"\"}"},
    {"\"a\\n\\\"b\"", "{\"S\":\"a\\n\\\"b\"}"},
    {"12.50", "{\"N\":\"12.50\"}"},
    {"-1E+125", "{\"N\":\"-1E+125\"}"},
    {"12345678901234567890123456789012345678", "{\"N\":\"12345678901234567890123456789012345678\"}"},
    {"true", "{\"BOOL\":true}"},
    {"false", "{\"BOOL\":false}"},
    {"null", "{\"NULL\":true}"},
    {"[]", "{\"L\":[]}"},
    {"[1,\"a\",[null]]", "{\"L\":[{\"N\":\"1\"},{\"S\":\"a\"},{\"L\":[{\"NULL\":true}]}]}"},
    {"{}", "{\"M\":{}}"},
    {"{\"a\":1,\"b\":{\"c\":\"d\"}}", "{\"M\":{\"a\":{\"N\":\"1\"},\"b\":{\"M\":{\"c\":{\"S\":\"d\"}}}}}"},
    {"{\"$binary\":\"AQI=\"}", "{\"B\":\"AQI=\"}"},
    {"{\"$set\":[\"a\",\"b\"]}", "{\"SS\":[\"a\",\"b\"]}"},
    {"{\"$set\":[1,2.5]}", "{\"NS\":[\"1\",\"2.5\"]}"},
    {"{\"$set\":[{\"$binary\":\"AQ==\"},{\"$binary\":\"\"}]}", "{\"BS\":[\"AQ==\",\"\"]}"},
    /* maps that look like notation, and those that only nearly do */
    {"{\"$map\":{\"$set\":[1]}}", "{\"M\":{\"$set\":{\"L\":[{\"N\":\"1\"}]}}}"},
    {"{\"$map\":{\"$binary\":\"AQI=\"}}", "{\"M\":{\"$binary\":{\"S\":\"AQI=\"}}}"},
    {"{\"$map\":{\"$map\":{}}}", "{\"M\":{\"$map\":{\"M\":{}}}}"},
    {"{\"$set\":[1],\"more\":2}", "{\"M\":{\"$set\":{\"L\":[{\"N\":\"1\"}]},\"more\":{\"N\":\"2\"}}}"},
    {"{\"$other\":1}", "{\"M\":{\"$other\":{\"N\":\"1\"}}}"},
};

TEST(plain_and_dynamo_are_each_others_inverse)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_TEXT(to_dynamo(pairs[i][0]), pairs[i][1]);
        CHECK_TEXT(to_plain(pairs[i][1]), pairs[i][0]);
    }
    buf_free(&out);
}

TEST(plain_values_that_cannot_be)
{
    CHECK_TEXT(to_dynamo("{\"$binary\":1}"), "refused: \"$binary\" needs a string of base64");
    CHECK_TEXT(to_dynamo("{\"$set\":[]}"),
               "refused: \"$set\" needs a list of strings, of numbers or of {\"$binary\":...}");
    CHECK_TEXT(to_dynamo("{\"$set\":[[1]]}"),
               "refused: \"$set\" needs a list of strings, of numbers or of {\"$binary\":...}");
    CHECK_TEXT(to_dynamo("{\"$set\":[1,\"a\"]}"), "refused: the members of a \"$set\" must be of one type");
    CHECK_TEXT(to_dynamo("{\"a\":{\"$map\":3}}"), "refused: \"$map\" needs an object");
    buf_free(&out);
}

TEST(dynamo_values_that_are_none)
{
    const char *const bad[] = {"1",
                               "{}",
                               "{\"X\":1}",
                               "{\"S\":1}",
                               "{\"N\":1}",
                               "{\"N\":\"x\"}",
                               "{\"N\":\"1 2\"}",
                               "{\"N\":\"\"}",
                               "{\"L\":{}}",
                               "{\"M\":[]}",
                               "{\"SS\":[1]}",
                               "{\"NS\":[\"x\"]}",
                               "{\"B\":[]}",
                               "{\"BOOL\":1}",
                               "{\"S\":\"a\",\"N\":\"1\"}",
                               "{\"L\":[1]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!slice_equal(to_plain(bad[i]), SLICE("refused")))
            test_failed(__FILE__, __LINE__, "took %s", bad[i]);
    buf_free(&out);
}

TEST(items_are_objects)
{
    struct arena arena = {0};
    const char *fault = NULL;
    out.len = 0;
    CHECK(!plain_item_to_dynamo(&out, node_parse(&arena, SLICE("[1]"), &fault), &fault));
    CHECK_TEXT(slice_of(fault), "an item is an object: {\"name\":value,...}");
    out.len = 0;
    CHECK(plain_item_to_dynamo(&out, node_parse(&arena, SLICE("{\"$set\":[1], \"\\u00e4\":2}"), &fault),
                               &fault));
    CHECK_TEXT(buf_view(&out), "{\"$set\":{\"L\":[{\"N\":\"1\"}]},\"\xc3\xa4\":{\"N\":\"2\"}}");
    CHECK(!dynamo_item_to_plain(&out, node_parse(&arena, SLICE("[]"), &fault)));
    buf_free(&out);
    arena_free(&arena);
}

TEST(json_trees)
{
    struct arena arena = {0};
    const char *fault = NULL;
    const struct node *tree = node_parse(
        &arena, SLICE(" {\"a\": [1, \"x\", {}], \"n\": 12, \"t\": true, \"s\": \"text\"} "), &fault);
    CHECK_INT(node_children(tree), 4);
    CHECK_TEXT(tree->source, "{\"a\": [1, \"x\", {}], \"n\": 12, \"t\": true, \"s\": \"text\"}");
    CHECK_TEXT(node_member(tree, "a")->source, "[1, \"x\", {}]");
    CHECK_INT(node_children(node_member(tree, "a")), 3);
    CHECK_INT(node_count(tree, "n"), 12);
    CHECK(node_is_true(tree, "t") && !node_is_true(tree, "n") && node_is(tree, "s", "text"));
    CHECK(!node_member(tree, "missing") && !node_member(NULL, "a") &&
          !node_member(node_member(tree, "a"), "a"));
    CHECK_TEXT(node_text(tree, "missing"), "");
    const char *const bad[] = {"", "{", "{} {}", "[1,]", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fault = NULL;
        CHECK(!node_parse(&arena, slice_of(bad[i]), &fault) && fault);
    }
    arena_free(&arena);
}
