/* What a process remembers between flows. */
#include "pattern/memory.h"

#include "base/limits.h"
#include "unit/test.h"

static struct slice recall(struct memory *memory, uint64_t topic, struct arena *arena)
{
    struct flow_memory table = memory_for_flows(memory);
    return table.recall(table.self, topic, arena);
}

static void remember(struct memory *memory, uint64_t topic, struct slice what)
{
    struct flow_memory table = memory_for_flows(memory);
    table.remember(table.self, topic, what);
}

TEST(memory_keeps_the_last_and_forgets)
{
    struct memory *memory = memory_new();
    struct arena arena = {0};
    CHECK(!recall(memory, 7, &arena).data);
    remember(memory, 7, SLICE("one"));
    remember(memory, 7, SLICE("a longer text that does not fit where the first one was"));
    CHECK(slice_equal(recall(memory, 7, &arena),
                      SLICE("a longer text that does not fit where the first one was")));
    remember(memory, 7, SLICE(""));
    CHECK(recall(memory, 7, &arena).data && !recall(memory, 7, &arena).len);
    remember(memory, 7, SLICE_NONE);
    CHECK(!recall(memory, 7, &arena).data);
    remember(memory, 7, SLICE_NONE);
    arena_free(&arena);
    memory_free(memory);
}

TEST(memory_is_bounded)
{
    struct memory *memory = memory_new();
    struct arena arena = {0};
    static char large[LIMIT_REMEMBERED_BYTES + 1];
    memset(large, 'x', sizeof large);
    remember(memory, 1, (struct slice){large, LIMIT_REMEMBERED_BYTES});
    CHECK(recall(memory, 1, &arena).len == LIMIT_REMEMBERED_BYTES);
    remember(memory, 1, (struct slice){large, sizeof large}); /* the old one is not so any more */
    CHECK(!recall(memory, 1, &arena).data);
    unsigned kept = 0;
    for (uint64_t topic = 0; topic < 3 * LIMIT_REMEMBERED; topic++)
        remember(memory, topic, (struct slice){(const char *)&topic, sizeof topic});
    for (uint64_t topic = 0; topic < 3 * LIMIT_REMEMBERED; topic++) {
        struct slice what = recall(memory, topic, &arena);
        if (!what.data) continue;
        CHECK(what.len == sizeof topic && memcmp(what.data, &topic, sizeof topic) == 0);
        CHECK(topic >= 2 * LIMIT_REMEMBERED); /* the oldest give way */
        kept++;
    }
    CHECK(kept == LIMIT_REMEMBERED);
    arena_free(&arena);
    memory_free(memory);
}
