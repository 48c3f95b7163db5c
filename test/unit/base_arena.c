/* Arenas: what was allocated since a mark goes back. */
#include "base/arena.h"
#include "unit/test.h"

TEST(arena_rewinds_to_a_mark)
{
    struct arena arena = {0};
    struct arena_mark empty = arena_mark(&arena);
    struct slice kept = arena_copy(&arena, SLICE("kept"));
    struct arena_mark mark = arena_mark(&arena);
    size_t bytes = arena.total_bytes;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 100; i++) memset(arena_alloc(&arena, 1000), round, 1000);
        CHECK(arena.total_bytes > bytes);
        arena_rewind(&arena, mark);
        CHECK_INT(arena.total_bytes, bytes);
        CHECK_TEXT(kept, "kept");
    }
    char *next = arena_alloc(&arena, 16);
    CHECK(next > kept.data && next < kept.data + 100);
    arena_rewind(&arena, empty);
    CHECK_INT(arena.total_bytes, 0);
    arena_copy(&arena, SLICE("again"));
    arena_free(&arena);
}
