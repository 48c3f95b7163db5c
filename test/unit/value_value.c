/* Values, sets and maps: equality, order, sizes, and that updates leave the original alone. */
#include "value/value.h"
#include "base/random.h"
#include "unit/value_samples.h"

static struct value string(const char *text)
{
    return (struct value){.type = VALUE_S, .bytes = slice_of(text)};
}

static struct value number(const char *text)
{
    return (struct value){.type = VALUE_N, .bytes = slice_of(text)};
}

static const struct value truth = {.type = VALUE_BOOL, .truth = true};
static const struct value nothing = {.type = VALUE_NULL};

static struct value list_of(struct value *elements, uint32_t count)
{
    return (struct value){.type = VALUE_L, .count = count, .elements = elements};
}

static struct value map_of(struct attribute *attributes, uint32_t count)
{
    return (struct value){.type = VALUE_M, .map = {attributes, count}};
}

TEST(value_type_names)
{
    static const char *const names[] = {"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"};
    for (unsigned i = 0; i < VALUE_TYPES; i++) {
        enum value_type type;
        CHECK_TEXT(value_type_name((enum value_type)i), names[i]);
        CHECK(value_type_from_name(slice_of(names[i]), &type));
        CHECK_INT(type, i);
    }
    static const char *const unknown[] = {"", "s", "SN", "SSS", "bool", "X", "NUL"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        enum value_type type;
        CHECK(!value_type_from_name(slice_of(unknown[i]), &type));
    }
}

TEST(value_equality_is_deep)
{
    struct slice red_blue[] = {SLICE("blue"), SLICE("red")}, red[] = {SLICE("red")};
    struct value words[] = {string("a"), number("1"), truth},
                 other_words[] = {string("a"), number("2"), truth};
    struct attribute fields[] = {{SLICE("x"), words[0]}}, renamed[] = {{SLICE("y"), words[0]}};
    struct attribute revalued[] = {{SLICE("x"), words[1]}};
    struct value distinct[] = {
        string(""),
        string("a"),
        number("1"),
        {.type = VALUE_B, .bytes = SLICE("a")},
        truth,
        {.type = VALUE_BOOL, .truth = false},
        nothing,
        list_of(NULL, 0),
        list_of(words, 2),
        list_of(words, 3),
        list_of(other_words, 3),
        map_of(NULL, 0),
        map_of(fields, 1),
        map_of(renamed, 1),
        map_of(revalued, 1),
        {.type = VALUE_SS, .count = 2, .members = red_blue},
        {.type = VALUE_SS, .count = 1, .members = red},
        {.type = VALUE_BS, .count = 1, .members = red},
    };
    for (size_t i = 0; i < sizeof distinct / sizeof *distinct; i++)
        for (size_t j = 0; j < sizeof distinct / sizeof *distinct; j++)
            if (value_equal(&distinct[i], &distinct[j]) != (i == j))
                test_failed(__FILE__, __LINE__, "equality of %zu and %zu", i, j);
}

TEST(value_order_is_by_bytes_or_by_number)
{
    struct value a = string("10"), b = string("9"), ten = number("10"), nine = number("9"),
                 minus = number("-10");
    CHECK(value_compare(&a, &b) < 0);
    CHECK(value_compare(&ten, &nine) > 0);
    CHECK(value_compare(&minus, &nine) < 0);
    CHECK(value_compare(&ten, &ten) == 0);
    struct value high = {.type = VALUE_B, .bytes = SLICE("\xff")},
                 low = {.type = VALUE_B, .bytes = SLICE("a\xff")};
    CHECK(value_compare(&high, &low) > 0);
    struct value prefix = string("a"), longer = string("ab");
    CHECK(value_compare(&prefix, &longer) < 0);
}

/* The service's own examples of what an item costs, and each rule alone. */
TEST(value_size_follows_the_services_rules)
{
    struct value text = string("h\xc3\xa9llo"), empty = string("");
    CHECK_INT(value_size(&text), 6);
    CHECK_INT(value_size(&empty), 0);
    struct value amount = number("-12.5");
    CHECK_INT(value_size(&amount), 4);
    CHECK_INT(value_size(&truth), 1);
    CHECK_INT(value_size(&nothing), 1);
    struct value no_list = list_of(NULL, 0), no_map = map_of(NULL, 0);
    CHECK_INT(value_size(&no_list), 3);
    CHECK_INT(value_size(&no_map), 3);
    struct value inner[] = {string("abc"), truth};
    struct value list = list_of(inner, 2);
    CHECK_INT(value_size(&list), 3 + (1 + 3) + (1 + 1));
    struct attribute fields[] = {{SLICE("list"), list}, {SLICE("nul"), nothing}};
    struct value map = map_of(fields, 2);
    CHECK_INT(value_size(&map), 3 + (1 + 4 + 9) + (1 + 3 + 1));
    CHECK_INT(map_size(&map.map), (4 + 9) + (3 + 1));
    struct slice words[] = {SLICE("a"), SLICE("bcd")}, numbers[] = {SLICE("-1"), SLICE("0"), SLICE("100")};
    struct value strings = {.type = VALUE_SS, .count = 2, .members = words};
    struct value number_set = {.type = VALUE_NS, .count = 3, .members = numbers};
    CHECK_INT(value_size(&strings), 4);
    CHECK_INT(value_size(&number_set), 3 + 1 + 2);
}

TEST(value_depth_counts_lists_and_maps)
{
    struct value scalar = string("a"), leaf = list_of(NULL, 0);
    CHECK_INT(value_depth(&scalar), 0);
    CHECK_INT(value_depth(&leaf), 1);
    struct attribute field = {SLICE("x"), leaf};
    struct value map = map_of(&field, 1);
    struct value mixed[] = {scalar, leaf, map, nothing};
    struct value list = list_of(mixed, 4);
    CHECK_INT(value_depth(&map), 2);
    CHECK_INT(value_depth(&list), 3);
    struct slice member = SLICE("a");
    struct value set = {.type = VALUE_SS, .count = 1, .members = &member};
    CHECK_INT(value_depth(&set), 0);
}

/* ---- sets ---- */

/* count distinct members in a scrambled order: 7919 is a prime that divides none of the counts used. */
static struct slice *scrambled(struct arena *arena, enum value_type type, uint32_t count)
{
    struct slice *members = arena_array(arena, struct slice, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shuffled = (uint32_t)((uint64_t)i * 7919 % count);
        members[i] = arena_printf(arena, type == VALUE_NS ? "%d" : "m%d", (int)shuffled - 5);
    }
    return members;
}

TEST(set_sort_orders_small_and_large_sets)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 15, 16, 17, 100, 1000, 100000};
    static const enum value_type types[] = {VALUE_SS, VALUE_NS, VALUE_BS};
    for (size_t i = 0; i < sizeof counts / sizeof *counts * 3; i++) {
        struct arena arena = {0};
        uint32_t count = counts[i / 3];
        enum value_type type = types[i % 3];
        struct slice *members = scrambled(&arena, type, count ? count : 1);
        CHECK(set_sort(type, members, count));
        for (uint32_t j = 1; j < count; j++) {
            struct slice low = members[j - 1], high = members[j];
            CHECK((type == VALUE_NS ? number_text_compare(low, high) : slice_compare(low, high)) < 0);
        }
        if (type == VALUE_NS && count) CHECK_TEXT(members[0], "-5");
        arena_free(&arena);
    }
}

TEST(set_sort_reports_duplicates)
{
    static const uint32_t counts[] = {2, 3, 16, 17, 500};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct arena arena = {0};
        struct slice *members = scrambled(&arena, VALUE_NS, counts[i]);
        members[counts[i] - 1] = members[0];
        CHECK(!set_sort(VALUE_NS, members, counts[i]));
        arena_free(&arena);
    }
    struct slice same[] = {SLICE("a"), SLICE("a")};
    CHECK(!set_sort(VALUE_SS, same, 2));
}

/* Names that differ in their first bytes, behind them, in their length only, or not at all. */
TEST(map_sort_orders_attributes_by_name)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 10, 16, 17, 40};
    struct random random;
    random_seed(&random, 7);
    for (unsigned round = 0; round < 800; round++) {
        struct arena arena = {0};
        struct slice twice = SLICE_NONE;
        uint32_t count = counts[round % 8];
        struct map map = {arena_zero(&arena, 40 * sizeof *map.attributes), count};
        bool has_twice = false;
        for (uint32_t i = 0; i < count; i++) {
            size_t len = random_below(&random, 12);
            char *name = arena_alloc(&arena, len + 1);
            for (size_t j = 0; j < len; j++) name[j] = "\0ab\xff"[random_below(&random, j < 7 ? 2 : 4)];
            map.attributes[i] = (struct attribute){{name, len}, number("1")};
            map.attributes[i].value.bytes = map.attributes[i].name; /* goes where its name goes */
            for (uint32_t j = 0; j < i; j++)
                has_twice |= slice_equal(map.attributes[j].name, map.attributes[i].name);
        }
        CHECK_INT(map_sort(&map, &twice), !has_twice);
        for (uint32_t i = 0; i < count; i++) {
            struct attribute *here = &map.attributes[i];
            CHECK(slice_equal(here->name, here->value.bytes));
            CHECK(i == 0 || slice_compare(here[-1].name, here->name) <= 0);
        }
        arena_free(&arena);
    }
}

static bool contains_by_search(const struct value *set, struct slice member)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (slice_equal(set->members[i], member)) return true;
    return false;
}

static bool is_sorted(const struct value *set)
{
    for (uint32_t i = 1; i < set->count; i++) {
        struct slice low = set->members[i - 1], high = set->members[i];
        if ((set->type == VALUE_NS ? number_text_compare(low, high) : slice_compare(low, high)) >= 0)
            return false;
    }
    return true;
}

/* A random set over a small range, so that two of them overlap; some are dense, some have few members or none. */
static struct value small_set(struct arena *arena, struct random *random, enum value_type type)
{
    struct value set = {.type = type, .members = arena_array(arena, struct slice, 30)};
    uint64_t density = random_below(random, 5);
    for (int i = -15; i < 15; i++)
        if (random_below(random, 4) < density)
            set.members[set.count++] = arena_printf(arena, type == VALUE_NS ? "%d" : "m%d", i);
    CHECK(set_sort(type, set.members, set.count));
    return set;
}

TEST(set_sums_and_differences_are_those_of_sets)
{
    struct random random;
    random_seed(&random, 11);
    struct arena arena = {0};
    for (unsigned i = 0; i < 2000; i++) {
        enum value_type type = i % 2 ? VALUE_NS : VALUE_SS;
        struct value a = small_set(&arena, &random, type), b = small_set(&arena, &random, type);
        struct value sum = set_union(&arena, &a, &b), rest = set_difference(&arena, &a, &b);
        CHECK(is_sorted(&sum) && is_sorted(&rest));
        CHECK(sum.type == type && rest.type == type);
        uint32_t in_either = 0, in_first_only = 0;
        for (int j = -16; j < 16; j++) {
            struct slice member = arena_printf(&arena, type == VALUE_NS ? "%d" : "m%d", j);
            bool in_a = contains_by_search(&a, member), in_b = contains_by_search(&b, member);
            CHECK(set_contains(&a, member) == in_a);
            CHECK(set_contains(&sum, member) == (in_a || in_b));
            CHECK(set_contains(&rest, member) == (in_a && !in_b));
            in_either += in_a || in_b;
            in_first_only += in_a && !in_b;
        }
        CHECK_INT(sum.count, in_either);
        CHECK_INT(rest.count, in_first_only);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

/* ---- maps ---- */

static struct map scrambled_map(struct arena *arena, uint32_t count)
{
    struct map map = {arena_array(arena, struct attribute, count), count};
    struct slice *names = scrambled(arena, VALUE_SS, count);
    for (uint32_t i = 0; i < count; i++)
        map.attributes[i] = (struct attribute){names[i], {.type = VALUE_S, .bytes = names[i]}};
    return map;
}

TEST(map_sort_and_find)
{
    static const uint32_t counts[] = {1, 2, 16, 17, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct arena arena = {0};
        struct map map = scrambled_map(&arena, counts[i]);
        struct slice duplicate;
        CHECK(map_sort(&map, &duplicate));
        for (uint32_t j = 0; j < map.count; j++) {
            if (j > 0) CHECK(slice_compare(map.attributes[j - 1].name, map.attributes[j].name) < 0);
            const struct value *found = map_find(&map, map.attributes[j].name);
            CHECK(found == &map.attributes[j].value);
            CHECK(found && slice_equal(found->bytes, map.attributes[j].name));
        }
        CHECK(!map_find(&map, SLICE("")) && !map_find(&map, SLICE("m")) && !map_find(&map, SLICE("zz")));
        arena_free(&arena);
    }
    struct map empty = {0};
    CHECK(!map_find(&empty, SLICE("x")));
}

TEST(map_sort_names_the_duplicate)
{
    static const uint32_t counts[] = {2, 16, 17, 300};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct arena arena = {0};
        struct map map = scrambled_map(&arena, counts[i]);
        struct slice twice = map.attributes[0].name, duplicate;
        map.attributes[counts[i] - 1].name = twice;
        CHECK(!map_sort(&map, &duplicate));
        CHECK(slice_equal(duplicate, twice));
        arena_free(&arena);
    }
}

/* A map under random changes holds what a plain array of presence says, and older copies stay as they were.
 */
TEST(map_changes_make_new_maps)
{
    struct random random;
    random_seed(&random, 5);
    struct arena arena = {0};
    struct map map = {0};
    struct value *held[40] = {0};
    for (unsigned i = 0; i < 4000; i++) {
        size_t which = random_below(&random, 40);
        struct slice name = arena_printf(&arena, "n%zu", which);
        struct map before = map;
        const struct value *old = map_find(&before, name);
        if (random_below(&random, 2)) {
            struct value *value = arena_new(&arena, struct value);
            *value = (struct value){.type = VALUE_N, .bytes = arena_printf(&arena, "%u", i)};
            map = map_with(&arena, &map, name, value);
            held[which] = value;
        } else {
            map = map_without(&arena, &map, name);
            held[which] = NULL;
        }
        CHECK(map_find(&before, name) == old);
        uint32_t count = 0;
        for (size_t j = 0; j < 40; j++) {
            const struct value *found = map_find(&map, arena_printf(&arena, "n%zu", j));
            CHECK(held[j] ? found && value_equal(found, held[j]) : !found);
            count += held[j] != NULL;
        }
        CHECK_INT(map.count, count);
    }
    arena_free(&arena);
}

TEST(map_equality)
{
    struct random random;
    random_seed(&random, 6);
    struct arena arena = {0};
    for (unsigned i = 0; i < 300; i++) {
        struct map map = sample_map(&arena, &random, 3);
        CHECK(map_equal(&map, &map));
        struct map more = map_with(&arena, &map, SLICE("a name of no sample"), &nothing);
        CHECK(!map_equal(&map, &more));
        struct map back = map_without(&arena, &more, SLICE("a name of no sample"));
        CHECK(map_equal(&map, &back));
        CHECK_INT(map_size(&more), map_size(&map) + 19 + 1);
        arena_reset(&arena);
    }
    arena_free(&arena);
}
