/* Documents: members that are found, changed, and go through an item and back. */
#include "func/document.h"

#include "unit/test.h"

static struct document parsed(struct arena *arena, const char *text)
{
    struct document document;
    CHECK(document_parse(slice_of(text), arena, &document));
    return document;
}

static struct slice members(struct arena *arena, const struct document *document)
{
    struct buf out = {0};
    document_put_members(&out, document);
    struct slice copy = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return copy;
}

TEST(document_members_are_found_and_changed)
{
    struct arena arena = {0};
    struct document document = parsed(&arena, "{\"a\":1,\"b\":\"x\\ny\",\"c\":{\"d\":-7},\"a\":2}");
    CHECK_TEXT(document_get(&document, "a"), "2");
    CHECK_TEXT(document_text(&document, "b", &arena), "x\ny");
    struct document inner = document_object(&document, "c", &arena);
    CHECK_INT(document_integer(&inner, "d", 0), -7);
    CHECK_INT(document_integer(&document, "b", 42), 42);
    CHECK(!document_get(&document, "none").data);
    CHECK(!document_text(&document, "a", &arena).data);
    struct document copy = document_copy(&document, &arena);
    document_set(&copy, "a", SLICE_NONE, &arena);
    document_set_text(&copy, "b", SLICE("\"quoted\""), &arena);
    document_set_integer(&copy, "e", 5, &arena);
    CHECK_TEXT(members(&arena, &copy), "\"b\":\"\\\"quoted\\\"\",\"c\":{\"d\":-7},\"e\":5");
    CHECK_TEXT(document_get(&document, "a"), "2");
    arena_free(&arena);
}

TEST(document_that_is_no_object_is_refused)
{
    static const char *const texts[] = {"", "[]", "1", "{", "{\"a\":}", "{\"a\":1}x", "{\"a\":1,}", "null"};
    struct arena arena = {0};
    struct document document;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(!document_parse(slice_of(texts[i]), &arena, &document));
    arena_free(&arena);
}

TEST(document_goes_through_an_item_and_back)
{
    static const char text[] = "{\"s\":\"\\u00e4\\\"\",\"n\":0.25,\"t\":true,\"f\":false,\"z\":null,"
                               "\"m\":{\"k\":[1,\"2\",{\"x\":{}}],\"e\":[]},\"empty\":\"\"}";
    struct arena arena = {0};
    struct document document = parsed(&arena, text), back;
    struct json_reader reader;
    struct buf item = {0};
    buf_byte(&item, '{');
    document_put_attributes(&item, &document, &arena);
    buf_byte(&item, '}');
    json_begin(&reader, buf_view(&item), &arena);
    CHECK(document_of_item(&reader, &back));
    CHECK_TEXT(members(&arena, &back), "\"s\":\"\xc3\xa4\\\"\",\"n\":0.25,\"t\":true,\"f\":false,\"z\":null,"
                                       "\"m\":{\"k\":[1,\"2\",{\"x\":{}}],\"e\":[]},\"empty\":\"\"");
    buf_free(&item);
    arena_free(&arena);
}

TEST(document_leaves_out_what_json_has_not)
{
    static const char item[] = "{\"a\":{\"B\":\"AAAA\"},\"b\":{\"SS\":[\"x\"]},\"c\":{\"N\":\"3\"},"
                               "\"d\":{\"L\":[{\"B\":\"AA==\"},{\"N\":\"4\"},{\"NS\":[\"1\"]}]},"
                               "\"e\":{\"M\":{\"x\":{\"BS\":[]},\"y\":{\"S\":\"z\"}}}}";
    struct arena arena = {0};
    struct document document;
    struct json_reader reader;
    json_begin(&reader, slice_of(item), &arena);
    CHECK(document_of_item(&reader, &document));
    CHECK_TEXT(members(&arena, &document), "\"c\":3,\"d\":[4],\"e\":{\"y\":\"z\"}");
    arena_free(&arena);
}
