/* The lineage of writes. */
#include "base/limits.h"
#include "func/func.h"
#include "unit/test.h"

TEST(cause_counts_what_it_names)
{
    CHECK_INT(cause_count(SLICE("resize:1,index:12"), SLICE("index")), 12);
    CHECK_INT(cause_count(SLICE("resize:1,index:12"), SLICE("resize")), 1);
    CHECK_INT(cause_count(SLICE("resize:1,index:12"), SLICE("size")), 0);
    CHECK_INT(cause_count(SLICE(""), SLICE("index")), 0);
    CHECK_INT(cause_count(SLICE_NONE, SLICE("index")), 0);
}

TEST(cause_passes_over_what_is_no_cause)
{
    CHECK_INT(cause_count(SLICE(",,a,:3,b:,c:x,d:-1,e:99999999999,f:0,g:2"), SLICE("g")), 2);
    CHECK_INT(cause_count(SLICE("e:99999999999"), SLICE("e")), 0);
    CHECK_INT(cause_count(SLICE("a:b:4"), SLICE("a:b")), 4);
    CHECK_INT(cause_count(SLICE("a:1,a:3,a:2"), SLICE("a")), 3);
}

TEST(cause_grows_by_who_runs)
{
    struct arena arena = {0};
    CHECK_TEXT(cause_add(&arena, SLICE_NONE, SLICE("a")), "a:1");
    CHECK_TEXT(cause_add(&arena, SLICE("a:1"), SLICE("b")), "a:1,b:1");
    CHECK_TEXT(cause_add(&arena, SLICE("a:1,b:1"), SLICE("a")), "b:1,a:2");
    CHECK_TEXT(cause_add(&arena, SLICE("a:999999999"), SLICE("a")), "a:999999999");
    CHECK_TEXT(cause_add(&arena, SLICE("rubbish,,x:y"), SLICE("a")), "a:1");
    arena_free(&arena);
}

TEST(cause_forgets_the_oldest)
{
    struct arena arena = {0};
    struct slice cause = SLICE_NONE;
    for (unsigned i = 0; i < LIMIT_CAUSE_FUNCTIONS + 2; i++) {
        struct slice name = arena_printf(&arena, "f%u", i);
        cause = cause_add(&arena, cause, name);
    }
    CHECK_INT(cause_count(cause, SLICE("f0")), 0);
    CHECK_INT(cause_count(cause, SLICE("f1")), 0);
    CHECK_INT(cause_count(cause, SLICE("f2")), 1);
    CHECK_INT(cause_count(cause, arena_printf(&arena, "f%u", LIMIT_CAUSE_FUNCTIONS + 1)), 1);
    cause = cause_add(&arena, cause, SLICE("f2")); /* known: nobody has to go for it */
    CHECK_INT(cause_count(cause, SLICE("f2")), 2);
    CHECK_INT(cause_count(cause, SLICE("f3")), 1);
    arena_free(&arena);
}

TEST(cause_joins_to_the_higher_counts)
{
    struct arena arena = {0};
    CHECK_TEXT(cause_join(&arena, SLICE("a:1,b:5"), SLICE("b:2,c:1")), "a:1,b:5,c:1");
    CHECK_TEXT(cause_join(&arena, SLICE_NONE, SLICE("b:2")), "b:2");
    CHECK_TEXT(cause_join(&arena, SLICE("b:2"), SLICE("")), "b:2");
    CHECK_TEXT(cause_join(&arena, SLICE("a:1"), SLICE("a:1")), "a:1");
    arena_free(&arena);
}
