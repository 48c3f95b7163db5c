/* Parts of JSON texts, as they stand. */
#include "base/raw.h"

#include "base/random.h"
#include "unit/test.h"

static struct arena arena;

TEST(raw_values_are_taken_without_the_space_around_them)
{
    struct json_reader reader;
    struct slice raw;
    json_begin(&reader, SLICE(" [ {\"a\" : 1} ,\n\"x\" , tru ]"), &arena);
    CHECK(json_peek(&reader) == JSON_ARRAY && json_enter(&reader));
    CHECK(json_element(&reader) && raw_take(&reader, &raw));
    CHECK_TEXT(raw, "{\"a\" : 1}");
    CHECK(json_element(&reader) && raw_take(&reader, &raw));
    CHECK_TEXT(raw, "\"x\"");
    CHECK(json_element(&reader) && !raw_take(&reader, &raw) && !raw.data && json_failed(&reader));
    CHECK(!raw_take(&reader, &raw) && !raw.data);
    arena_free(&arena);
}

/* Also where somebody wrote a list instead of a map. */
TEST(raw_elements_have_empty_names)
{
    struct raw_look look;
    struct raw_walk walk;
    struct slice list = SLICE("[1,{\"a\":2}]"), name = SLICE("before"), value;
    raw_look_begin(&look, &arena, list);
    CHECK(raw_look_next(&look, &name, &value));
    CHECK_TEXT(name, "");
    name = SLICE("before");
    raw_walk_begin(&walk, &arena, list);
    CHECK(raw_walk_next(&walk, &name, &value));
    CHECK_TEXT(name, "");
}

TEST(raw_json_is_one_value)
{
    CHECK(raw_is_json(&arena, SLICE(" {\"a\":\"\\u00e4\"} ")) && raw_is_json(&arena, SLICE("0")));
    CHECK(!raw_is_json(&arena, SLICE("")) && !raw_is_json(&arena, SLICE_NONE));
    CHECK(!raw_is_json(&arena, SLICE("{} {}")) && !raw_is_json(&arena, SLICE("[1,]")));
    arena_free(&arena);
}

TEST(raw_scalars_are_read)
{
    CHECK_INT(raw_kind(SLICE(" [")), JSON_ARRAY);
    CHECK_INT(raw_kind(SLICE("-1")), JSON_NUMBER);
    CHECK_INT(raw_kind(SLICE("?")), JSON_FAULT);
    CHECK(raw_kind(SLICE_NONE) == JSON_END && raw_kind(SLICE(" ")) == JSON_END);
    CHECK_TEXT(raw_string(&arena, SLICE("\"a\\nb\"")), "a\nb");
    CHECK_TEXT(raw_text(&arena, SLICE("\"a\\nb\"")), "a\nb");
    CHECK_TEXT(raw_text(&arena, SLICE(" -1.50 ")), "-1.50");
    CHECK(!raw_string(&arena, SLICE("7")).data && !raw_string(&arena, SLICE_NONE).data);
    CHECK(!raw_text(&arena, SLICE("true")).data && !raw_text(&arena, SLICE_NONE).data);
    CHECK(!raw_text(&arena, SLICE("\"open")).data && !raw_text(&arena, SLICE("1.")).data);
    CHECK(raw_string(&arena, SLICE("\"\"")).data != NULL); /* empty, but there */
    arena_free(&arena);
}

TEST(raw_whole_numbers_are_read)
{
    int64_t value = 0;
    CHECK(raw_int(SLICE("9223372036854775807"), &value) && value == INT64_MAX);
    CHECK(raw_int(SLICE("-9223372036854775808"), &value) && value == INT64_MIN);
    CHECK(!raw_int(SLICE("9223372036854775808"), &value));
    CHECK(raw_int(SLICE("1e3"), &value) && value == 1000);
    CHECK(raw_int(SLICE("1500e-2"), &value) && value == 15);
    CHECK(raw_int(SLICE("0.0"), &value) && value == 0);
    CHECK(raw_int(SLICE("100"), &value) && value == 100);
    CHECK(raw_int(SLICE("1000500"), &value) && value == 1000500);
    CHECK(!raw_int(SLICE("0.5"), &value) && !raw_int(SLICE("1e-1"), &value) &&
          !raw_int(SLICE("1e99"), &value));
    CHECK(!raw_int(SLICE_NONE, &value));
}

TEST(raw_digits_are_those_that_count)
{
    struct raw_digits digits;
    raw_digits_read(SLICE("-0.00120500e2"), &digits);
    CHECK(digits.negative && digits.count == 4 && memcmp(digits.digits, "1205", 4) == 0);
    CHECK_INT(digits.exponent, -4);
    raw_digits_read(SLICE("12000"), &digits);
    CHECK(!digits.negative && digits.count == 2 && digits.exponent == 3);
    raw_digits_read(SLICE("0e7"), &digits);
    CHECK(digits.count == 0 && digits.exponent == 0 && !digits.too_many);
    raw_digits_read(SLICE("12345678901234567890123456789012345678000"), &digits);
    CHECK(digits.count == 38 && digits.exponent == 3 && !digits.too_many);
    raw_digits_read(SLICE("123456789012345678901234567890123456789"), &digits);
    CHECK(digits.too_many);
}

TEST(raw_members_are_found_by_their_names)
{
    static const char *const names[] = {"a", "gone", "none", "b"};
    struct slice raws[4], object = SLICE("{\"a\":1, \"b\" : [2, 3] ,\"none\":null,\"a\":{\"c\":4}}");
    CHECK(raw_members(&arena, object, names, raws, 4));
    CHECK_TEXT(raws[0], "{\"c\":4}");
    CHECK(!raws[1].data && !raws[2].data);
    CHECK_TEXT(raws[3], "[2, 3]");
    CHECK_TEXT(raw_member(&arena, object, "a"), "1");
    CHECK_TEXT(raw_member(&arena, object, "none"), "null");
    CHECK(!raw_member(&arena, object, "gone").data && !raw_member(&arena, SLICE("[]"), "a").data);
    CHECK_TEXT(raw_member(&arena, SLICE("{\"\\u0061\":5}"), "a"), "5");
    CHECK(!raw_member(&arena, SLICE_NONE, "a").data && !raw_member(&arena, SLICE("{\"a"), "a").data);
    arena_free(&arena);
}

TEST(raw_members_tell_of_what_is_no_object)
{
    static const char *const names[] = {"a"};
    static const char *const bad[] = {"", "[]", "{\"a\":1", "{\"a\":1} 2", "{\"a\":01}", "null"};
    struct slice raw;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (raw_members(&arena, slice_of(bad[i]), names, &raw, 1))
            test_failed(__FILE__, __LINE__, "took %s", bad[i]);
    CHECK(!raw_members(&arena, SLICE_NONE, names, &raw, 1) && !raw.data);
    CHECK(raw_members(&arena, SLICE(" {} "), names, &raw, 1) && !raw.data);
    arena_free(&arena);
}

TEST(raw_walks_go_over_arrays_and_objects)
{
    struct raw_walk walk;
    struct slice name, value;
    CHECK_INT(raw_walk_begin(&walk, &arena, SLICE("{\"a\":[1],\"b\":\"x\"}")), JSON_OBJECT);
    CHECK(raw_walk_next(&walk, &name, &value));
    CHECK_TEXT(name, "a");
    CHECK_TEXT(value, "[1]");
    CHECK(raw_walk_next(&walk, NULL, &value));
    CHECK_TEXT(value, "\"x\"");
    CHECK(!raw_walk_next(&walk, &name, &value) && !json_failed(&walk.reader));
    CHECK_INT(raw_walk_begin(&walk, &arena, SLICE("[1, 2")), JSON_ARRAY);
    CHECK(raw_walk_next(&walk, NULL, &value) && raw_walk_next(&walk, NULL, &value));
    CHECK_TEXT(value, "2");
    CHECK(!raw_walk_next(&walk, NULL, &value) && json_failed(&walk.reader));
    CHECK_INT(raw_walk_begin(&walk, &arena, SLICE("7")), JSON_NUMBER);
    CHECK(!raw_walk_next(&walk, NULL, &value));
    CHECK_INT(raw_walk_begin(&walk, &arena, SLICE_NONE), JSON_END);
    CHECK(!raw_walk_next(&walk, NULL, &value));
    CHECK_INT(raw_count(&arena, SLICE("[1,[2,3],{}]")), 3);
    CHECK(raw_count(&arena, SLICE("{}")) == 0 && raw_count(&arena, SLICE_NONE) == 0);
    arena_free(&arena);
}

TEST(raw_looks_find_what_walks_find)
{
    struct raw_look look;
    struct slice name, value;
    raw_look_begin(&look, &arena,
                   SLICE(" { \"a\" : [1, {\"]\":\"}\\\"\"}] ,\"\\u0062\":\"x\\\\\" , \"c\":-1.5e3 }"));
    CHECK(look.is_object && raw_look_next(&look, &name, &value));
    CHECK_TEXT(name, "a");
    CHECK_TEXT(value, "[1, {\"]\":\"}\\\"\"}]");
    CHECK(raw_look_next(&look, &name, &value));
    CHECK_TEXT(name, "b");
    CHECK_TEXT(value, "\"x\\\\\"");
    CHECK(raw_look_next(&look, NULL, &value));
    CHECK_TEXT(value, "-1.5e3");
    CHECK(!raw_look_next(&look, &name, &value) && !raw_look_next(&look, &name, &value));
    raw_look_begin(&look, &arena, SLICE("[\"0123456789012345678901234567890123456789\\\"\", true]"));
    CHECK(!look.is_object && raw_look_next(&look, NULL, &value));
    CHECK_INT(value.len, 44);
    CHECK(raw_look_next(&look, NULL, &value));
    CHECK_TEXT(value, "true");
    CHECK(!raw_look_next(&look, NULL, &value));
    static const char *const nothing[] = {"",       "7",       "\"a\"", "{}",  "[]", " ",
                                          "{\"a\"", "{\"a\":", "{a:1}", "[,]", "]"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        raw_look_begin(&look, &arena, slice_of(nothing[i]));
        if (raw_look_next(&look, &name, &value)) test_failed(__FILE__, __LINE__, "found in %s", nothing[i]);
    }
    raw_look_begin(&look, &arena, SLICE_NONE);
    CHECK(!raw_look_next(&look, NULL, &value));
    arena_free(&arena);
}

static void put_random_value(struct random *random, struct buf *out, unsigned depth)
{
    static const char *const pieces[] = {
        "a", "]", "}", "{", "[", "\\\"", "\\\\", ",", ":", "7", "longer than the others"};
    uint64_t kind = random_below(random, depth ? 5 : 3);
    uint64_t count = random_below(random, random_below(random, 8) ? 6 : 60);
    if (kind == 0) {
        buf_printf(out, "%llu", (unsigned long long)random_below(random, 100000));
    } else if (kind <= 2) {
        buf_byte(out, '"');
        while (count--) {
            struct slice piece = slice_of(pieces[random_below(random, sizeof pieces / sizeof *pieces)]);
            buf_slice(out, piece);
        }
        buf_byte(out, '"');
    } else {
        buf_byte(out, kind == 3 ? '[' : '{');
        for (uint64_t i = 0; i < count; i++) {
            if (i) buf_byte(out, ',');
            if (kind == 4) buf_printf(out, "\"]%llu\":", (unsigned long long)i);
            put_random_value(random, out, depth - 1);
        }
        buf_byte(out, kind == 3 ? ']' : '}');
    }
}

/* Long texts are stepped over by the block: wherever its edges fall, what is found is what reading finds. */
TEST(raw_looks_over_long_texts_find_what_walks_find)
{
    struct random random;
    struct buf text = {0};
    random_seed(&random, 5);
    for (int i = 0; i < 3000; i++) {
        struct raw_walk walk;
        struct raw_look look;
        struct slice name, part, other_name, other;
        text.len = 0;
        buf_byte(&text, '[');
        put_random_value(&random, &text, 4);
        buf_text(&text, ",");
        put_random_value(&random, &text, 3);
        buf_text(&text, "]");
        raw_walk_begin(&walk, &arena, buf_view(&text));
        raw_look_begin(&look, &arena, buf_view(&text));
        while (raw_walk_next(&walk, &name, &part)) {
            CHECK(raw_look_next(&look, &other_name, &other));
            CHECK(other.data == part.data && other.len == part.len);
        }
        CHECK(json_done(&walk.reader) && !raw_look_next(&look, &other_name, &other));
        arena_reset(&arena);
    }
    buf_free(&text);
    arena_free(&arena);
}

TEST(raw_picks_are_the_first_of_their_names)
{
    static const char *const names[] = {"b", "gone", "a"};
    struct slice found[3];
    raw_pick(&arena, SLICE("{\"a\":1,\"b\":null,\"a\":2,\"\":3}"), names, found, 3);
    CHECK_TEXT(found[0], "null");
    CHECK_TEXT(found[2], "1");
    CHECK(!found[1].data);
    raw_pick(&arena, SLICE("[\"a\"]"), names, found, 3);
    CHECK(!found[0].data && !found[1].data && !found[2].data);
    arena_free(&arena);
}
