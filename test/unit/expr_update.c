/* What updates make of items. */
#include "unit/expr_world.h"

struct example {
    const char *text, *result;
};

static void check_examples(const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) CHECK_TEXT(update_of(&world, examples[i].text), examples[i].result);
    world_close(&world);
}

#define CHECK_EXAMPLES(examples) check_examples((examples), sizeof(examples) / sizeof *(examples))

#define NO_WAY   "The document path provided in the update expression is invalid for update"
#define BAD_TYPE "An operand in the update expression has an incorrect data type"
#define MISSING  "The provided expression refers to an attribute that does not exist in the item"
#define OVERFLOW "Number overflow. Attempting to store a number with magnitude larger than supported range"

TEST(update_set_reads_the_old_item_only)
{
    static const struct example examples[] = {
        {"set fresh = :s", "{fresh:\"abc\"}"},
        {"set n = s, s = n", "{n:\"abc\" s:5}"},
        {"set fresh = :n, later = fresh", MISSING},
        {"set m.x = l[1], l[1] = m.x", "{l:[1 1 [2] <p q>] m:{x:\"x\" y:{z:\"deep\"}}}"},
        {"set m = :n, n = m.x", "{m:5 n:1}"},
        {"set fresh = lost", MISSING},
        {"set fresh = m.lost", MISSING},
        {"set fresh = s.x", MISSING},
    };
    CHECK_EXAMPLES(examples);
}

TEST(update_paths_must_have_parents)
{
    static const struct example examples[] = {
        {"set lost.x = :n", NO_WAY},   {"set m.lost.x = :n", NO_WAY},
        {"set s.x = :n", NO_WAY},      {"set s[0] = :n", NO_WAY},
        {"set m[0] = :n", NO_WAY},     {"set l.x = :n", NO_WAY},
        {"set l[0].x = :n", NO_WAY},   {"remove lost.x", NO_WAY},
        {"remove s[0]", NO_WAY},       {"add lost.x :n", NO_WAY},
        {"delete lost.x :ss", NO_WAY}, {"set m.y.fresh = :n", "{m:{x:1 y:{fresh:5 z:\"deep\"}}}"},
    };
    CHECK_EXAMPLES(examples);
}

TEST(update_lists)
{
    static const struct example examples[] = {
        {"set l[0] = :n", "{l:[5 \"x\" [2] <p q>]}"},
        {"set l[99] = :n", "{l:[1 \"x\" [2] <p q> 5]}"},
        {"set l[99] = :n, l[50] = :s, l[0] = :t", "{l:[true \"x\" [2] <p q> \"abc\" 5]}"},
        {"set l[2][7] = :n", "{l:[1 \"x\" [2 5] <p q>]}"},
        {"remove l[0], l[2]", "{l:[\"x\" <p q>]}"},
        {"remove l[2], l[0]", "{l:[\"x\" <p q>]}"},
        {"remove l[1] set l[3] = :n", "{l:[1 [2] 5]}"},
        {"remove l[0], l[1] set l[9] = :n add l[7] :n", "{l:[[2] <p q> 5 5]}"},
        {"remove l[9]", "{}"},
        {"remove l[2][0]", "{l:[1 \"x\" [] <p q>]}"},
        {"set l = list_append(l, :l)", "{l:[1 \"x\" [2] <p q> 1]}"},
        {"set l = list_append(:l, l[2])", "{l:[1 2]}"},
        {"set fresh = list_append(if_not_exists(lost, :l), :l)", "{fresh:[1 1]}"},
        {"set fresh = list_append(s, lost)", BAD_TYPE},
        {"set fresh = list_append(lost, s)", MISSING},
    };
    CHECK_EXAMPLES(examples);
}

TEST(update_numbers)
{
    static const struct example examples[] = {
        {"set n = n + :n", "{n:10}"},
        {"set n = n - :n", "{n:0}"},
        {"set fresh = l[0] - :n", "{fresh:-4}"},
        {"set fresh = if_not_exists(lost, :n) + n", "{fresh:10}"},
        {"set fresh = if_not_exists(s, :n) + n", BAD_TYPE},
        {"set fresh = n + s", BAD_TYPE},
        {"set fresh = s + lost", BAD_TYPE},
        {"set fresh = lost + s", MISSING},
        {"add n :n", "{n:10}"},
        {"add fresh :n", "{fresh:5}"},
        {"add m.fresh :n", "{m:{fresh:5 x:1 y:{z:\"deep\"}}}"},
        {"add s :n", BAD_TYPE},
        {"add z :n", BAD_TYPE},
    };
    CHECK_EXAMPLES(examples);
}

TEST(update_numbers_at_their_limits)
{
    struct world world;
    world_open(
        &world, NULL,
        "{\":one\":{\"N\":\"1\"},\":tiny\":{\"N\":\"1E-130\"},\":huge\":{\"N\":\"9E125\"},"
        "\":nines\":{\"N\":\"99999999999999999999999999999999999999\"},\":small\":{\"N\":\"1.1E-130\"}}",
        NULL);
    CHECK_TEXT(update_of(&world, "set a = :nines + :one"), "{a:100000000000000000000000000000000000000}");
    CHECK_TEXT(update_of(&world, "set a = :one + :tiny"), OVERFLOW);
    CHECK_TEXT(update_of(&world, "set a = :huge + :huge"), OVERFLOW);
    CHECK_TEXT(update_of(&world, "set a = :tiny - :tiny"), "{a:0}");
    CHECK_TEXT(update_of(&world, "set a = :small - :tiny"),
               "Number underflow. Attempting to store a number with magnitude smaller than supported range");
    world_close(&world);
}

TEST(update_sets)
{
    static const struct example examples[] = {
        {"add ss :ss", "{}"},           {"add bs :bs", "{}"},       {"add fresh :ss", "{fresh:<a b>}"},
        {"add ns :ss", BAD_TYPE},       {"add l :ss", BAD_TYPE},    {"delete ss :ss", "{ss:<c>}"},
        {"delete bs :bs", "{bs:<ab>}"}, {"delete lost :ss", "{}"},  {"delete m.lost :ss", "{}"},
        {"delete l[9] :ss", "{}"},      {"delete n :ss", BAD_TYPE}, {"delete ns :ss", BAD_TYPE},
    };
    CHECK_EXAMPLES(examples);
}

TEST(update_set_that_loses_all_members_is_gone)
{
    struct world world;
    struct map updated;
    world_open(&world, NULL, "{\":all\":{\"SS\":[\"a\",\"b\",\"z\"]}}",
               "{\"ss\":{\"SS\":[\"a\",\"b\"]},\"m\":{\"M\":{\"ss\":{\"SS\":[\"a\"]}}}}");
    struct update *update = update_parse(&world.arena, SLICE("delete ss :all, m.ss :all"), &world.params,
                                         &world.fault);
    CHECK(update && update_apply(&world.arena, update, &world.item, &updated, &world.fault));
    CHECK_TEXT(item_text(&world, &updated), "{m:{}}");
    world_close(&world);
}

TEST(update_if_not_exists)
{
    static const struct example examples[] = {
        {"set s = if_not_exists(s, :n)", "{}"},
        {"set fresh = if_not_exists(s, :n)", "{fresh:\"abc\"}"},
        {"set fresh = if_not_exists(lost, :n)", "{fresh:5}"},
        {"set fresh = if_not_exists(m.lost.x, if_not_exists(l[9], :n))", "{fresh:5}"},
        {"set fresh = if_not_exists(s, lost)", MISSING}, /* both operands are looked at */
    };
    CHECK_EXAMPLES(examples);
}

/* Of several faults, the one that the service's walk over the paths meets first. */
TEST(update_faults_in_the_order_of_the_service)
{
    static const struct example examples[] = {
        {"set a = lost, b.c = :n", NO_WAY},
        {"set b.c = :n, a = lost", NO_WAY},
        {"set a = lost + :n, c = s + :n", BAD_TYPE},
        {"set a = lost add s :n", BAD_TYPE},
        {"add s :n, b.c :n", BAD_TYPE},
        {"set q = lost, m.lost.x = :n", NO_WAY},
    };
    CHECK_EXAMPLES(examples);
}

static const char *nested(struct world *world, unsigned levels)
{
    struct buf json = {0};
    buf_text(&json, "{\":deep\":");
    for (unsigned i = 0; i < levels; i++) buf_text(&json, "{\"L\":[");
    buf_text(&json, "{\"N\":\"1\"}");
    for (unsigned i = 0; i < levels; i++) buf_text(&json, "]}");
    buf_text(&json, "}");
    const char *text = arena_copy(&world->arena, buf_view(&json)).data;
    buf_free(&json);
    return text;
}

static const char *nesting_fault(unsigned levels, const char *text)
{
    struct world maker = {0}, world;
    world_open(&world, NULL, nested(&maker, levels), "{\"m\":{\"M\":{}}}");
    struct slice result = update_of(&world, text);
    bool refused = slice_equal(result, SLICE("Nesting Levels have exceeded supported limits"));
    world_close(&world);
    world_close(&maker);
    return refused ? "refused" : "taken";
}

TEST(update_nesting)
{
    CHECK(strcmp(nesting_fault(31, "set a = :deep"), "taken") == 0);
    CHECK(strcmp(nesting_fault(32, "set a = :deep"), "refused") == 0);
    CHECK(strcmp(nesting_fault(30, "set m.a = :deep"), "taken") == 0);
    CHECK(strcmp(nesting_fault(31, "set m.a = :deep"), "refused") == 0);
}

TEST(update_of_an_item_that_does_not_exist)
{
    struct world world;
    struct map created;
    world_open(&world, NULL, "{\":n\":{\"N\":\"1\"}}", "{\"pk\":{\"S\":\"k\"}}");
    struct update *update = update_parse(&world.arena, SLICE("remove x.y, z[0] set a = pk"), &world.params,
                                         &world.fault);
    CHECK(update && update_create(&world.arena, update, &world.item, &created, &world.fault));
    CHECK_TEXT(item_text(&world, &created), "{a:\"k\" pk:\"k\"}");
    CHECK(!update_apply(&world.arena, update, &world.item, &created, &world.fault));
    CHECK_TEXT(world.fault, NO_WAY);
    update = update_parse(&world.arena, SLICE("set x.y = :n"), &world.params, &world.fault);
    CHECK(!update_create(&world.arena, update, &world.item, &created, &world.fault));
    CHECK_TEXT(world.fault, NO_WAY);
    world_close(&world);
}

TEST(update_touches_its_targets)
{
    struct world world;
    world_open_usual(&world);
    struct update *update = update_parse(&world.arena, SLICE("set a.b = c remove #dotted"), &world.params,
                                         &world.fault);
    CHECK(update_touches(update, SLICE("a")));
    CHECK(update_touches(update, SLICE("x.y")));
    CHECK(!update_touches(update, SLICE("b")));
    CHECK(!update_touches(update, SLICE("c")));
    world_close(&world);
}
