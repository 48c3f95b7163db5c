/* Keys: bytewise order is the order of the values, nothing is lost, and no key begins another. */
#include "base/random.h"
#include "unit/value_samples.h"
#include "value/value.h"

static struct value key_value(enum value_type type, struct slice bytes)
{
    return (struct value){.type = type, .bytes = bytes};
}

static struct slice encoded(struct arena *arena, const struct value *value)
{
    struct buf out = {0};
    key_encode(&out, value);
    struct slice copy = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return copy;
}

static struct slice prefix_of(struct arena *arena, const struct value *value)
{
    struct buf out = {0};
    key_encode_prefix(&out, value);
    struct slice copy = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return copy;
}

static int sign_of(int order)
{
    return (order > 0) - (order < 0);
}

/* Everything the header promises about two keys of one type. */
static void check_pair(struct arena *arena, const struct value *a, const struct value *b)
{
    struct slice left = encoded(arena, a), right = encoded(arena, b);
    CHECK_INT(sign_of(slice_compare(left, right)), sign_of(value_compare(a, b)));
    if (value_equal(a, b)) {
        CHECK(slice_equal(left, right));
    } else {
        CHECK(!slice_starts(left, right));
        CHECK(!slice_starts(right, left));
    }
    if (a->type == VALUE_N) return;
    CHECK(slice_starts(right, prefix_of(arena, a)) == slice_starts(b->bytes, a->bytes));
    CHECK(slice_starts(left, prefix_of(arena, b)) == slice_starts(a->bytes, b->bytes));
}

/* Two keys one after the other come back whole. */
static void check_round_trip(struct arena *arena, const struct value *a, const struct value *b)
{
    struct buf out = {0};
    key_encode(&out, a);
    key_encode(&out, b);
    struct slice rest = buf_view(&out);
    struct value first, second;
    CHECK(key_decode(arena, &rest, a->type, &first));
    CHECK(key_decode(arena, &rest, b->type, &second));
    CHECK_INT(rest.len, 0);
    CHECK(value_equal(a, &first));
    CHECK(value_equal(b, &second));
    buf_free(&out);
}

TEST(key_keeps_the_order_of_random_values)
{
    static const enum value_type types[] = {VALUE_S, VALUE_N, VALUE_B};
    struct random random;
    random_seed(&random, 20261115);
    struct arena arena = {0};
    for (unsigned i = 0; i < 30000; i++) {
        enum value_type type = types[i % 3];
        struct value a = sample_key(&arena, &random, type), b = sample_neighbour(&arena, &random, &a);
        check_pair(&arena, &a, &b);
        check_round_trip(&arena, &a, &b);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

/* In ascending order, chosen where an encoding is most likely to go wrong. */
static const char *const ascending_numbers[] = {
    "-9.9999999999999999999999999999999999999E125",
    "-9.9E125",
    "-1E125",
    "-12345678901234567890123456789012345678",
    "-1001",
    "-1000",
    "-999.99",
    "-101",
    "-100.1",
    "-100",
    "-99.9",
    "-99",
    "-20",
    "-11",
    "-10.01",
    "-10",
    "-9.9",
    "-9",
    "-1.1",
    "-1.01",
    "-1.001",
    "-1",
    "-0.99",
    "-0.1",
    "-0.099",
    "-0.01",
    "-1.5E-130",
    "-1E-130",
    "0",
    "1E-130",
    "1.5E-130",
    "1E-129",
    "0.01",
    "0.099",
    "0.1",
    "0.1000000001",
    "0.11",
    "0.99",
    "1",
    "1.001",
    "1.01",
    "1.1",
    "9",
    "9.9",
    "10",
    "10.01",
    "11",
    "12",
    "12.000000000000000000000000000000000001",
    "12.1",
    "13",
    "99",
    "99.9",
    "100",
    "100.1",
    "101",
    "110",
    "999",
    "1000",
    "1E37",
    "12345678901234567890123456789012345678",
    "1E124",
    "1E125",
    "9.9E125",
    "9.9999999999999999999999999999999999999E125",
};

TEST(key_orders_numbers_at_the_corners)
{
    struct arena arena = {0};
    size_t count = sizeof ascending_numbers / sizeof *ascending_numbers;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct value a = key_value(VALUE_N, SLICE_NONE), b = a;
            CHECK_INT(number_canonical(&arena, slice_of(ascending_numbers[i]), &a.bytes), NUMBER_OK);
            CHECK_INT(number_canonical(&arena, slice_of(ascending_numbers[j]), &b.bytes), NUMBER_OK);
            CHECK_INT(sign_of(value_compare(&a, &b)), (i > j) - (i < j));
            check_pair(&arena, &a, &b);
            check_round_trip(&arena, &a, &b);
        }
    }
    arena_free(&arena);
}

TEST(key_orders_bytes_at_the_corners)
{
    static const struct slice ascending[] = {
        {"", 0},        {"\0", 1},   {"\0\0", 2},   {"\0\1", 2},   {"\0\xff", 2},   {"\1", 1},
        {"\1\0", 2},    {"a", 1},    {"a\0", 2},    {"a\0\0", 3},  {"a\0\1", 3},    {"a\0b", 3},
        {"a\0\xff", 3}, {"a\1", 2},  {"a\1\0", 3},  {"aa", 2},     {"ab", 2},       {"b", 1},
        {"\xfe", 1},    {"\xff", 1}, {"\xff\0", 2}, {"\xff\1", 2}, {"\xff\xff", 2},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof ascending / sizeof *ascending; i++) {
        for (size_t j = 0; j < sizeof ascending / sizeof *ascending; j++) {
            struct value a = key_value(VALUE_B, ascending[i]), b = key_value(VALUE_B, ascending[j]);
            CHECK_INT(sign_of(slice_compare(encoded(&arena, &a), encoded(&arena, &b))), (i > j) - (i < j));
            check_pair(&arena, &a, &b);
            check_round_trip(&arena, &a, &b);
        }
    }
    arena_free(&arena);
}

/* The bytes are stored: they must not change. */
TEST(key_bytes_stay_as_they_are)
{
    static const struct {
        enum value_type type;
        struct slice value, bytes;
    } cases[] = {
        {VALUE_S, {"", 0}, {"\0\1", 2}},
        {VALUE_S, {"ab", 2}, {"ab\0\1", 4}},
        {VALUE_B,
         {"a\0b", 3},
         {"a\0\xff"
          "b\0\1",
          6}},
        {VALUE_N, {"0", 1}, {"\2", 1}},
        {VALUE_N, {"1", 1}, {"\3\x82\x14", 3}},
        {VALUE_N, {"12", 2}, {"\3\x83\x18", 3}},
        {VALUE_N, {"123", 3}, {"\3\x84\x19\x3c", 4}},
        {VALUE_N, {"-123", 4}, {"\1\x7b\xe6\xc3", 4}},
        {VALUE_N, {"0.05", 4}, {"\3\x80\x64", 3}},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct value value = key_value(cases[i].type, cases[i].value);
        CHECK(slice_equal(encoded(&arena, &value), cases[i].bytes));
    }
    arena_free(&arena);
}

TEST(key_decode_refuses_damage)
{
    static const struct {
        enum value_type type;
        struct slice bytes;
    } damaged[] = {
        {VALUE_S, {"", 0}},
        {VALUE_S, {"abc", 3}},
        {VALUE_S, {"abc\0", 4}},
        {VALUE_S, {"abc\0\2", 5}},
        {VALUE_S, {"abc\0\0\1", 6}},
        {VALUE_B, {"\0\xff", 2}},
        {VALUE_N, {"", 0}},
        {VALUE_N, {"\0", 1}},
        {VALUE_N, {"\4\x82\x14", 3}},
        {VALUE_N, {"\3", 1}},
        {VALUE_N, {"\3\x82", 2}},
        {VALUE_N, {"\3\x82\x15", 3}},   /* more pairs promised */
        {VALUE_N, {"\3\x82\x15\0", 4}}, /* last pair zero */
        {VALUE_N, {"\3\x82\x02", 3}},   /* first digit zero */
        {VALUE_N, {"\3\x82\xc8", 3}},   /* a pair of 100 */
        {VALUE_N, {"\1\x7d\x14", 3}},   /* not inverted: a pair of 117 */
        {VALUE_N,
         {"\3\x82\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x15\x14", 22}},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct slice rest = damaged[i].bytes;
        struct value value;
        if (key_decode(&arena, &rest, damaged[i].type, &value))
            test_failed(__FILE__, __LINE__, "accepted damaged key %zu", i);
    }
    arena_free(&arena);
}

TEST(key_successor_is_the_next_bytes_without_the_prefix)
{
    static const struct {
        struct slice key, next;
    } cases[] = {
        {{"a", 1}, {"b", 1}},     {{"a\xff", 2}, {"b", 1}},   {{"a\xff\xff", 3}, {"b", 1}},
        {{"a\0", 2}, {"a\1", 2}}, {{"\x7f", 1}, {"\x80", 1}}, {{"\xfe\xff", 2}, {"\xff", 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf key = {0};
        buf_slice(&key, cases[i].key);
        CHECK(key_successor(&key));
        CHECK(slice_equal(buf_view(&key), cases[i].next));
        buf_free(&key);
    }
    struct buf none = {0};
    CHECK(!key_successor(&none));
    buf_put(&none, "\xff\xff", 2);
    CHECK(!key_successor(&none));
    buf_free(&none);
}

/* A range from a prefix to its successor holds just what begins with it. */
TEST(key_successor_ends_a_prefix_range)
{
    struct random random;
    random_seed(&random, 7);
    struct arena arena = {0};
    for (unsigned i = 0; i < 5000; i++) {
        struct value start = sample_key(&arena, &random, VALUE_B);
        struct value other = sample_neighbour(&arena, &random, &start);
        struct buf end = {0};
        key_encode_prefix(&end, &start);
        struct slice from = arena_copy(&arena, buf_view(&end)), key = encoded(&arena, &other);
        bool bounded = key_successor(&end);
        bool inside = slice_compare(key, from) >= 0 && (!bounded || slice_compare(key, buf_view(&end)) < 0);
        CHECK(inside == slice_starts(other.bytes, start.bytes));
        buf_free(&end);
        arena_reset(&arena);
    }
    arena_free(&arena);
}
