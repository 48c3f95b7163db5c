/* Plain JSON and DynamoDB's JSON as text. */
#include "base/attribute.h"
#include "unit/test.h"

static struct arena arena;

static struct slice attribute_of(const char *plain)
{
    struct buf out = {0};
    attribute_put_plain(&out, &arena, slice_of(plain));
    struct slice text = arena_copy(&arena, buf_view(&out));
    buf_free(&out);
    return text;
}

static struct slice plain_of(const char *attribute)
{
    struct buf out = {0};
    plain_put_attribute(&out, &arena, slice_of(attribute));
    struct slice text = arena_copy(&arena, buf_view(&out));
    buf_free(&out);
    return text;
}

TEST(item_values_go_both_ways)
{
    CHECK_TEXT(attribute_of("\"a\\\"b\""), "{\"S\":\"a\\\"b\"}");
    CHECK_TEXT(attribute_of("-1.5e3"), "{\"N\":\"-1.5e3\"}");
    CHECK_TEXT(attribute_of("[1,[],{\"a\":null,\"b\":{\"c\":true}}]"),
               "{\"L\":[{\"N\":\"1\"},{\"L\":[]},{\"M\":{\"a\":{\"NULL\":true},"
               "\"b\":{\"M\":{\"c\":{\"BOOL\":true}}}}}]}");
    CHECK_TEXT(attribute_of("{ \"\" :1, \"a\\u0041\\n\":2,\"\xc3\xa9/\" : [ ]}"),
               "{\"M\":{\"\":{\"N\":\"1\"},\"aA\\n\":{\"N\":\"2\"},\"\xc3\xa9/\":{\"L\":[]}}}");
    CHECK_TEXT(attribute_of(""), "{\"NULL\":true}");
    CHECK_TEXT(
        plain_of(
            "{\"L\":[{\"N\":\"1\"},{\"M\":{\"a\":{\"NULL\":true},\"b\":{\"BOOL\":false}}},{\"S\":\"x\"}]}"),
        "[1,{\"a\":null,\"b\":false},\"x\"]");
    CHECK_TEXT(plain_of("{\"NS\":[\"1\",\"2.5\"]}"), "[1,2.5]");
    CHECK_TEXT(plain_of("{\"SS\":[\"a\",\"b\"]}"), "[\"a\",\"b\"]");
    CHECK_TEXT(plain_of("{\"B\":\"AAA=\"}"), "\"AAA=\"");
    CHECK_TEXT(plain_of(""), "null");
    arena_free(&arena);
}

TEST(item_attributes_are_found)
{
    struct slice item = SLICE("{ \"a\" : {\"S\":\"x\"}, \"n\":{\"N\":\"-7\"}, \"l\":{\"L\":[{\"S\":\"p\"}]}, "
                              "\"b\":{\"BOOL\":true}}");
    CHECK_TEXT(item_text(&arena, item, "a"), "x");
    CHECK_TEXT(item_text(&arena, item, "n"), "-7");
    CHECK(!item_text(&arena, item, "l").data && !item_text(&arena, item, "none").data);
    CHECK_INT(item_int(&arena, item, "n", 0), -7);
    CHECK_INT(item_int(&arena, item, "none", 5), 5);
    CHECK(item_says(&arena, item, "a", "x") && !item_says(&arena, item, "a", "y"));
    CHECK(item_has(&arena, item, "b") && !item_has(&arena, item, "c"));
    CHECK_TEXT(item_content(&arena, item, "l"), "[{\"S\":\"p\"}]");
    CHECK(!item_has(&arena, SLICE_NONE, "a") && !item_has(&arena, SLICE("[]"), "a") &&
          !item_has(&arena, SLICE("{\"a"), "a"));
    arena_free(&arena);
}

TEST(what_does_not_fit_an_item_is_told)
{
    CHECK(!plain_fault(&arena, SLICE("{\"a\":[1,2,{\"b\":null}]}")));
    CHECK(!plain_fault(&arena, SLICE("9.9e125")) && plain_fault(&arena, SLICE("1e126")));
    CHECK(!plain_fault(&arena, SLICE("1e-130")) && plain_fault(&arena, SLICE("1e-131")));
    CHECK(!plain_fault(&arena, SLICE("0e999")));
    CHECK(!plain_fault(&arena, SLICE("12345678901234567890123456789012345678000")));
    CHECK(plain_fault(&arena, SLICE("123456789012345678901234567890123456789")) != NULL);
    arena_free(&arena);
}

/* The sizes that the service counts, from its own page and published measurements. */
TEST(items_have_the_size_the_service_counts)
{
    CHECK_INT(item_bytes(&arena, SLICE("{\"pk\":{\"S\":\"abc\"}}")), 5);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"0\"}}")), 2);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"1\"}}")), 3);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"-1\"}}")), 4);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"1234\"}}")), 4);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"12345\"}}")), 5);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"N\":\"0.5\"}}")), 3);
    CHECK_INT(item_bytes(&arena, SLICE("{\"n\":{\"NULL\":true},\"b\":{\"BOOL\":true}}")), 4);
    CHECK_INT(item_bytes(&arena, SLICE("{\"l\":{\"L\":[{\"S\":\"ab\"}]}}")), 1 + 3 + 1 + 2);
    CHECK_INT(item_bytes(&arena, SLICE("{\"m\":{\"M\":{\"k\":{\"S\":\"ab\"}}}}")), 1 + 3 + 1 + 1 + 2);
    CHECK_INT(item_bytes(&arena, SLICE("{\"s\":{\"SS\":[\"ab\",\"c\"]}}")), 4);
    CHECK_INT(item_bytes(&arena, SLICE("{\"s\":{\"NS\":[\"1\",\"100\"]}}")), 1 + 2 + 2);
    arena_free(&arena);
}

TEST(attribute_texts_are_read_however_they_are_written)
{
    static const struct {
        const char *attribute, *text; /* NULL: none */
    } cases[] = {
        {"{\"S\":\"\"}", ""},
        {"{\"S\":\"plain\"}", "plain"},
        {"{\"N\":\"-1.5\"}", "-1.5"},
        {" { \"S\" : \"spaced\" } ", "spaced"},
        {"{\"S\":\"a\\\"b\\\\\"}", "a\"b\\"},
        {"{\"\\u0053\":\"named otherwise\"}", "named otherwise"},
        {"{\"S\":\"ends with }\"}", "ends with }"},
        {"{\"B\":\"QUJD\"}", NULL},
        {"{\"SS\":[\"a\"]}", NULL},
        {"{\"BOOL\":true}", NULL},
        {"{\"S\":1}", "1"},
        {"{}", NULL},
        {"{\"S\"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice text = attribute_text(&arena, slice_of(cases[i].attribute));
        if (cases[i].text)
            CHECK_TEXT(text, cases[i].text);
        else
            CHECK(!text.data);
    }
    CHECK_INT(attribute_int(&arena, SLICE("{\"N\":\"42\"}"), 7), 42);
    CHECK_INT(attribute_int(&arena, SLICE("{\"N\":\"4.5\"}"), 7), 7);
    CHECK_INT(attribute_int(&arena, SLICE_NONE, 7), 7);
    arena_free(&arena);
}

TEST(attribute_members_are_those_that_an_item_has)
{
    struct slice item = SLICE("{\"a\":{\"S\":\"x\"},\"b\":{\"N\":\"7\"}}");
    CHECK_TEXT(item_members(&arena, item, "b none a"), "\"b\":{\"N\":\"7\"},\"a\":{\"S\":\"x\"}");
    CHECK_TEXT(item_members(&arena, item, "none"), "");
    arena_free(&arena);
}
