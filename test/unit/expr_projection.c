/* Parts of items, and of what an update touched. */
#include "unit/expr_world.h"

TEST(projection_keeps_places)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(projection_of(&world, "s, n"), "{n:5 s:\"abc\"}");
    CHECK_TEXT(projection_of(&world, "m.y.z"), "{m:{y:{z:\"deep\"}}}");
    CHECK_TEXT(projection_of(&world, "m.y.z, m.x"), "{m:{x:1 y:{z:\"deep\"}}}");
    CHECK_TEXT(projection_of(&world, "ss, #s"), "{s:\"abc\" ss:<a b c>}");
    world_close(&world);
}

TEST(projection_closes_ranks_in_lists)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(projection_of(&world, "l[3], l[0]"), "{l:[1 <p q>]}");
    CHECK_TEXT(projection_of(&world, "l[2][0], l[1]"), "{l:[\"x\" [2]]}");
    CHECK_TEXT(projection_of(&world, "l[9], l[0]"), "{l:[1]}");
    world_close(&world);
}

TEST(projection_of_what_is_not_there)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(projection_of(&world, "lost, m.lost, l[9], s.x, s[0], m[0], l.x"),
               "Invalid ProjectionExpression: Two "
               "document paths conflict with each other; must remove or rewrite one of these paths; path "
               "one: [s, x], "
               "path two: [s, [0]]");
    CHECK_TEXT(projection_of(&world, "lost, m.lost.x, l[9], s.x, t[0]"), "{}");
    CHECK_TEXT(projection_of(&world, "m[0], l.x, #dotted"), "{}");
    world_close(&world);
}

/* As AttributesToGet gives them. */
TEST(projection_of_paths_in_any_order)
{
    struct world world;
    world_open_usual(&world);
    struct path_part parts[] = {{.name = {"z", 1}}, {.name = {"s", 1}}, {.name = {"n", 1}}};
    struct path paths[] = {{&parts[0], 1}, {&parts[1], 1}, {&parts[2], 1}};
    struct projection projection = {.paths = paths, .count = 3};
    struct map map = projection_apply(&world.arena, &projection, &world.item);
    CHECK_TEXT(item_text(&world, &map), "{n:5 s:\"abc\" z:null}");
    world_close(&world);
}

static void check_touched(const char *text, const char *before, const char *after)
{
    struct world world;
    world_open_usual(&world);
    struct map updated;
    struct update *update = update_parse(&world.arena, slice_of(text), &world.params, &world.fault);
    CHECK(update && update_apply(&world.arena, update, &world.item, &updated, &world.fault));
    struct map old_parts = update_touched(&world.arena, update, &world.item);
    struct map new_parts = update_touched(&world.arena, update, &updated);
    CHECK_TEXT(item_text(&world, &old_parts), before);
    CHECK_TEXT(item_text(&world, &new_parts), after);
    world_close(&world);
}

/* Only the parts that were named, as they were and as they are; an element behind the end of a list is not
 * found again, while the follower of a removed one is. */
TEST(projection_of_an_update)
{
    check_touched("set s = :n", "{s:\"abc\"}", "{s:5}");
    check_touched("set m.x = :n, l[1] = :n", "{l:[\"x\"] m:{x:1}}", "{l:[5] m:{x:5}}");
    check_touched("set m.fresh = :n remove z", "{z:null}", "{m:{fresh:5}}");
    check_touched("set l[100] = :n", "{}", "{}");
    check_touched("remove l[1], m.y.z", "{l:[\"x\"] m:{y:{z:\"deep\"}}}", "{l:[[2]]}");
    check_touched("delete ss :ss add n :n", "{n:5 ss:<a b c>}", "{n:10 ss:<c>}");
    check_touched("remove lost", "{}", "{}");
}
