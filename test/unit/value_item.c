/* The stored form of items: nothing is lost, equal items have equal bytes, and damage is noticed. */
#include "base/limits.h"
#include "base/random.h"
#include "unit/value_samples.h"
#include "value/value.h"

/* The bytes are stored: they must not change. */
static const char stored_sample[] = "\1\x25\6"
                                    "\1a\0\3xyz"           /* a: S "xyz" */
                                    "\1b\1\4-1.5"          /* b: N -1.5 */
                                    "\1c\5\4\3\12\4\2\1\0" /* c: L false, true, NULL, B "\0" */
                                    "\1d\6\1\1e\7\2\1p\1q" /* d: M {e: SS "p", "q"} */
                                    "\1f\10\2\2-2\00210"   /* f: NS -2, 10 */
                                    "\1g\11\1\1\xff";      /* g: BS "\xff" */

static struct slice encoded(struct arena *arena, const struct map *item)
{
    struct buf out = {0};
    item_encode(&out, item);
    struct slice copy = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return copy;
}

TEST(item_bytes_stay_as_they_are)
{
    struct arena arena = {0};
    struct slice bytes = {stored_sample, sizeof stored_sample - 1};
    struct map item;
    CHECK(item_decode(&arena, bytes, &item));
    CHECK_INT(item.count, 6);
    CHECK_TEXT(map_find(&item, SLICE("a"))->bytes, "xyz");
    CHECK_TEXT(map_find(&item, SLICE("b"))->bytes, "-1.5");
    const struct value *list = map_find(&item, SLICE("c"));
    CHECK_INT(list->count, 4);
    CHECK(list->elements[0].type == VALUE_BOOL && !list->elements[0].truth);
    CHECK(list->elements[1].type == VALUE_BOOL && list->elements[1].truth);
    CHECK(list->elements[2].type == VALUE_NULL);
    CHECK(slice_equal(list->elements[3].bytes, (struct slice){"\0", 1}));
    CHECK_INT(map_find(&map_find(&item, SLICE("d"))->map, SLICE("e"))->count, 2);
    CHECK_TEXT(map_find(&item, SLICE("f"))->members[1], "10");
    CHECK_TEXT(map_find(&item, SLICE("g"))->members[0], "\xff");
    CHECK(slice_equal(encoded(&arena, &item), bytes));
    CHECK_INT(item_encoded_size(bytes), map_size(&item));
    arena_free(&arena);
}

TEST(item_that_is_empty)
{
    struct arena arena = {0};
    struct map item = {0}, back = {NULL, 9};
    struct slice bytes = encoded(&arena, &item);
    CHECK_INT(bytes.len, 3);
    CHECK(item_decode(&arena, bytes, &back));
    CHECK_INT(back.count, 0);
    CHECK_INT(item_encoded_size(bytes), 0);
    arena_free(&arena);
}

TEST(item_random_items_come_back)
{
    struct random random;
    random_seed(&random, 99);
    struct arena arena = {0};
    for (unsigned i = 0; i < 3000; i++) {
        struct map item = sample_map(&arena, &random, 4), back;
        struct slice bytes = encoded(&arena, &item);
        CHECK(item_decode(&arena, bytes, &back));
        CHECK(map_equal(&item, &back));
        CHECK(slice_equal(encoded(&arena, &back), bytes));
        CHECK_INT(item_encoded_size(bytes), map_size(&item));
        arena_reset(&arena);
    }
    arena_free(&arena);
}

/* V3, both ways: maps made in another order have the same bytes; different maps have not. */
TEST(item_bytes_are_equal_when_items_are)
{
    struct random random;
    random_seed(&random, 100);
    struct arena arena = {0};
    struct value extra = {.type = VALUE_NULL};
    for (unsigned i = 0; i < 500; i++) {
        struct map item = sample_map(&arena, &random, 2), again = {0};
        for (uint32_t j = item.count; j > 0; j--)
            again = map_with(&arena, &again, item.attributes[j - 1].name, &item.attributes[j - 1].value);
        CHECK(slice_equal(encoded(&arena, &item), encoded(&arena, &again)));
        struct map other = map_with(&arena, &item, SLICE("extra"), &extra);
        CHECK(!slice_equal(encoded(&arena, &item), encoded(&arena, &other)));
        arena_reset(&arena);
    }
    arena_free(&arena);
}

TEST(item_cut_short_is_refused)
{
    struct arena arena = {0};
    struct map item;
    for (size_t len = 0; len < sizeof stored_sample - 1; len++)
        CHECK(!item_decode(&arena, (struct slice){stored_sample, len}, &item));
    CHECK(!item_decode(&arena, (struct slice){stored_sample, sizeof stored_sample}, &item));
    CHECK(!item_decode(&arena, SLICE_NONE, &item));
    CHECK_INT(item_encoded_size(SLICE_NONE), 0);
    CHECK_INT(item_encoded_size(SLICE("\1")), 0);
    CHECK_INT(item_encoded_size(SLICE("\1\x80")), 0);
    CHECK_INT(item_encoded_size(SLICE("\2\5")), 0);
    arena_free(&arena);
}

TEST(item_damage_is_refused)
{
    static const struct slice damaged[] = {
        SLICE("\2\0\0"),                     /* another format */
        SLICE("\1\0\x80\0"),                 /* a varint longer than need be */
        SLICE("\1\0\1\1a\13"),               /* a kind that does not exist */
        SLICE("\1\0\2\1b\4\1a\4"),           /* names out of order */
        SLICE("\1\0\2\1a\4\1a\4"),           /* a name twice */
        SLICE("\1\0\1\1a\7\2\1b\1a"),        /* members out of order */
        SLICE("\1\0\1\1a\7\2\1a\1a"),        /* a member twice */
        SLICE("\1\0\1\1a\10\2\00210\0019"),  /* numbers out of order */
        SLICE("\1\0\1\1a\10\2\0019\0019"),   /* a number twice */
        SLICE("\1\0\1\1a\10\2\0019\0038.5"), /* small ones beside others, out of order */
        SLICE("\1\0\1\1a\10\2\0039.5\0019"),
        SLICE("\1\0\1\1a\10\2\0019\00210\00210"),
        SLICE("\1\0\1\1a\10\2\0011\00202"), /* a zero in front */
        SLICE("\1\0\1\1a\1\0"),             /* an empty number */
        SLICE("\1\0\1\1a\1\2"
              "01"), /* numbers that are not canonical */
        SLICE("\1\0\1\1a\1\2-0"),
        SLICE("\1\0\1\1a\1\003"
              "1e5"),
        SLICE("\1\0\1\1a\1\003"
              "1.0"),
        SLICE("\1\0\1\1a\10\1\001x"),
        SLICE("\1\0\x7f\1a\4"), /* counts that the bytes cannot hold */
        SLICE("\1\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f\1a\4"),
        SLICE("\1\0\1\1a\5\x7f\4"),
        SLICE("\1\0\1\1a\7\x7f\1b"),
        SLICE("\1\0\1\x7f"
              "a\4"), /* a name longer than the rest */
        SLICE("\1\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1a\4"),
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct map item;
        if (item_decode(&arena, damaged[i], &item)) test_failed(__FILE__, __LINE__, "accepted damage %zu", i);
    }
    arena_free(&arena);
}

/* One changed byte is refused or gives an item that is sound again: it encodes to the very bytes, but for the
 * size. */
TEST(item_with_a_changed_byte_is_sound_or_refused)
{
    struct arena arena = {0};
    char bytes[sizeof stored_sample - 1];
    for (size_t at = 2; at < sizeof bytes; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(bytes, stored_sample, sizeof bytes);
            bytes[at] = (char)byte;
            struct map item;
            if (!item_decode(&arena, (struct slice){bytes, sizeof bytes}, &item)) continue;
            struct slice again = encoded(&arena, &item);
            CHECK(again.len == sizeof bytes && memcmp(again.data + 2, bytes + 2, sizeof bytes - 2) == 0);
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
}

/* Lists in lists: count levels, as bytes. */
static void nested_lists(struct buf *out, unsigned levels)
{
    buf_put(out, "\1\0\1\1a", 5);
    for (unsigned i = 0; i < levels; i++) buf_put(out, i + 1 < levels ? "\5\1" : "\5\0", 2);
}

TEST(item_nesting_is_bounded)
{
    static const struct {
        unsigned levels;
        bool fine;
    } cases[] = {{1, true},
                 {LIMIT_NESTING, true},
                 {LIMIT_NESTING + 2, true},
                 {LIMIT_NESTING + 50, false},
                 {90000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = {0};
        struct buf bytes = {0};
        struct map item;
        nested_lists(&bytes, cases[i].levels);
        CHECK(item_decode(&arena, buf_view(&bytes), &item) == cases[i].fine);
        if (cases[i].fine) CHECK_INT(value_depth(&item.attributes[0].value), cases[i].levels);
        buf_free(&bytes);
        arena_free(&arena);
    }
}

/* Every level claims as many elements as bytes are left: together they may not claim more than once. */
TEST(item_decode_reserves_no_more_than_the_bytes_can_fill)
{
    struct arena arena = {0};
    struct buf bytes = {0};
    buf_put(&bytes, "\1\0\1\1a", 5);
    for (unsigned i = 0; i < 30; i++) {
        buf_byte(&bytes, VALUE_L);
        buf_varint(&bytes, 100000);
    }
    for (unsigned i = 0; i < 110000; i++) buf_byte(&bytes, VALUE_NULL);
    struct map item;
    CHECK(!item_decode(&arena, buf_view(&bytes), &item));
    CHECK(arena.total_bytes < bytes.len * (sizeof(struct value) + 8));
    buf_free(&bytes);
    arena_free(&arena);
}

TEST(item_of_the_largest_size)
{
    struct arena arena = {0};
    uint32_t count = 100000;
    struct value numbers = {
        .type = VALUE_NS, .count = count, .members = arena_array(&arena, struct slice, count)};
    for (uint32_t i = 0; i < count; i++) numbers.members[i] = arena_printf(&arena, "%u", 1000000 - i);
    CHECK(set_sort(VALUE_NS, numbers.members, count));
    char *text = arena_alloc(&arena, 90000);
    memset(text, 'x', 90000);
    struct value big = {.type = VALUE_S, .bytes = {text, 90000}};
    struct map item = {0}, back;
    item = map_with(&arena, &item, SLICE("numbers"), &numbers);
    item = map_with(&arena, &item, SLICE("text"), &big);
    struct slice bytes = encoded(&arena, &item);
    CHECK(item_decode(&arena, bytes, &back));
    CHECK(map_equal(&item, &back));
    CHECK_INT(item_encoded_size(bytes), map_size(&item));
    arena_free(&arena);
}

/* ---- the numbers of a list, straight from the bytes ---- */

static struct map item_with_numbers(struct arena *arena, struct random *random, uint32_t count)
{
    struct map item = {0};
    struct value other = {.type = VALUE_S, .bytes = SLICE("text")}, list = {.type = VALUE_L, .count = count};
    list.elements = arena_array(arena, struct value, count);
    for (uint32_t i = 0; i < count; i++) {
        int number = (int)random_below(random, 2001) - 1000;
        CHECK_INT(number_canonical(arena,
                                   arena_printf(arena, "%d.%02d", number, (int)random_below(random, 100)),
                                   &list.elements[i].bytes),
                  NUMBER_OK);
        list.elements[i].type = VALUE_N;
    }
    item = map_with(arena, &item, SLICE("a"), &other);
    item = map_with(arena, &item, SLICE("v"), &list);
    return map_with(arena, &item, SLICE("z"), &other);
}

TEST(item_floats_are_those_of_the_list)
{
    enum { COUNT = 20 };
    struct arena arena = {0};
    struct random random;
    float floats[COUNT], number;
    struct map back;
    random_seed(&random, 21);
    for (unsigned round = 0; round < 100; round++) {
        struct map item = item_with_numbers(&arena, &random, COUNT);
        struct slice bytes = encoded(&arena, &item);
        CHECK(item_decode_floats(&arena, bytes, SLICE("v"), COUNT, floats, &back));
        struct map rest = map_without(&arena, &item, SLICE("v"));
        CHECK(map_equal(&back, &rest));
        for (uint32_t i = 0; i < COUNT; i++)
            CHECK(number_to_float(map_find(&item, SLICE("v"))->elements[i].bytes, &number) &&
                  number == floats[i]);
        CHECK(!item_decode_floats(&arena, bytes, SLICE("v"), COUNT - 1, floats, &back));
        CHECK(!item_decode_floats(&arena, bytes, SLICE("v"), COUNT + 1, floats, &back));
        CHECK(!item_decode_floats(&arena, bytes, SLICE("a"), COUNT, floats, &back));
        CHECK(!item_decode_floats(&arena, bytes, SLICE("b"), COUNT, floats, &back));
        for (size_t len = 0; len < bytes.len; len++) /* cut off anywhere */
            CHECK(!item_decode_floats(&arena, (struct slice){bytes.data, len}, SLICE("v"), COUNT, floats,
                                      &back));
        struct value *element = &map_find(&item, SLICE("v"))->elements[random_below(&random, COUNT)];
        *element = (struct value){.type = round % 2 ? VALUE_S : VALUE_NULL, .bytes = SLICE("1")};
        CHECK(!item_decode_floats(&arena, encoded(&arena, &item), SLICE("v"), COUNT, floats, &back));
    }
    arena_free(&arena);
}
