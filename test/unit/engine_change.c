/* Who waits for items to change: what of a batch is told, and how often. */
#include "engine/internal.h"
#include "unit/engine_fixture.h"

#define WRITES 60

static struct told {
    struct engine_change_watcher watcher;
    unsigned calls, everything;
    size_t count; /* of topics in the last call */
    uint64_t first, last;
} told;

static unsigned topics_of(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                          struct slice range, uint64_t topics[ENGINE_TOPICS])
{
    (void)watcher, (void)table, (void)range;
    for (unsigned i = 0; i < ENGINE_TOPICS; i++) topics[i] = (uint64_t)hash.data[0] * 10 + i;
    return ENGINE_TOPICS;
}

static void changed(struct engine_change_watcher *watcher, const uint64_t *topics, size_t count)
{
    (void)watcher;
    told.calls++;
    told.everything += !topics;
    told.count = count;
    if (!count) return;
    told.first = topics[0];
    told.last = topics[count - 1];
}

static void done(struct commit *commit)
{
    CHECK(!commit->failed);
}

/* One batch with a write for each letter, the first `count` of them, again and again. */
static void write_items(struct fixture *fixture, unsigned count)
{
    struct write_commit writes[WRITES];
    char names[WRITES][2] = {0};
    struct commit_list list = {0};
    for (unsigned i = 0; i < WRITES; i++) {
        names[i][0] = (char)('A' + i % count);
        writes[i] = fixture_write(fixture, WRITE_PUT, names[i], "1", i % 2 ? "x" : "y");
        writes[i].commit.done = done;
        commit_list_add(&list, &writes[i].commit);
    }
    told.calls = told.everything = 0;
    engine_submit(fixture->engine, &list);
}

TEST(engine_changes_of_one_item_are_told_once)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    told = (struct told){.watcher = {.prefix = SLICE("thing"), .topics = topics_of, .changed = changed}};
    engine_watch_changes(fixture.engine, &told.watcher);
    write_items(&fixture, 1);
    CHECK(told.calls == 1 && told.everything == 0);
    CHECK_INT(told.count, ENGINE_TOPICS);
    CHECK(told.first == 'A' * 10 && told.last == 'A' * 10 + ENGINE_TOPICS - 1);
    CHECK(fixture_put(&fixture, "B", "1", "z")); /* the next batch begins anew */
    CHECK(told.calls == 2 && told.everything == 0 && told.first == 'B' * 10);
    CHECK(fixture_put(&fixture, "B", "1", "w"));
    CHECK(told.calls == 3 && told.count == ENGINE_TOPICS);
    struct write_commit quiet = fixture_write(&fixture, WRITE_PUT, "B", "1", "v");
    quiet.commit.is_quiet = true;
    engine_commit(fixture.engine, &quiet.commit);
    CHECK(!quiet.commit.failed && quiet.write.outcome == WRITE_APPLIED);
    CHECK_INT(told.calls, 3);
    write_items(&fixture, 60); /* more than are noted: anything may have changed */
    CHECK(told.calls == 1 && told.everything == 1);
    engine_unwatch_changes(fixture.engine, &told.watcher);
    fixture_close(&fixture);
}

/* ---- observers ---- */

static struct seen {
    struct engine_observer observer;
    unsigned inserted, modified, removed;
    struct map last; /* what the item became */
    struct arena arena;
} seen;

static void see(struct engine_observer *observer, struct slice old, struct slice new)
{
    CHECK(observer == &seen.observer && (old.len || new.len));
    seen.inserted += !old.len;
    seen.modified += old.len && new.len;
    seen.removed += !new.len;
    if (new.len) CHECK(item_decode(&seen.arena, arena_copy(&seen.arena, new), &seen.last));
}

TEST(engine_observers_see_each_change_once_it_is_durable)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    seen = (struct seen){.observer = {.table = SLICE("things"), .changed = see}};
    engine_observe(fixture.engine, &seen.observer);
    CHECK(fixture_put(&fixture, "A", "1", "x"));
    CHECK(fixture_put(&fixture, "A", "1", "x")); /* changes nothing */
    CHECK(fixture_put(&fixture, "A", "1", "y"));
    CHECK(slice_equal(map_find(&seen.last, SLICE("data"))->bytes, SLICE("y")));
    CHECK(fixture_delete(&fixture, "A", "1"));
    CHECK(fixture_delete(&fixture, "A", "1")); /* it is gone already */
    CHECK(seen.inserted == 1 && seen.modified == 1 && seen.removed == 1);
    write_items(&fixture, 2); /* one batch: A and B, again and again the same */
    CHECK(seen.inserted == 3 && seen.modified == 1);
    fixture.faults.is_full = true;
    CHECK(!fixture_put(&fixture, "C", "1", "x")); /* lost: nobody is told, also not later */
    fixture.faults.is_full = false;
    CHECK(fixture_put(&fixture, "D", "1", "x"));
    CHECK(seen.inserted == 4);
    engine_unobserve(fixture.engine, &seen.observer);
    fixture_close(&fixture);
    arena_free(&seen.arena);
}

TEST(engine_observers_see_their_table_only)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    seen = (struct seen){.observer = {.table = SLICE("thing"), .changed = see}};
    engine_observe(fixture.engine, &seen.observer);
    CHECK(fixture_put(&fixture, "A", "1", "x"));
    engine_unobserve(fixture.engine, &seen.observer);
    seen.observer.table = SLICE("things");
    CHECK(fixture_put(&fixture, "A", "1", "y")); /* nobody observes any more */
    CHECK(seen.inserted + seen.modified == 0);
    fixture_close(&fixture);
}

/* ---- the house-keeper ---- */

static enum table_change_result replace_unseen(struct batch *batch, const struct table_definition *definition)
{
    batch->engine->poked = false;
    enum table_change_result result = engine_table_replace(batch, definition);
    CHECK(!batch->engine->poked); /* it would find the table as it was, and rest */
    return result;
}

TEST(engine_wakes_the_keeper_when_a_changed_table_is_there)
{
    struct fixture fixture;
    fixture_open(&fixture, true); /* no thread of its own: nobody takes the mark away */
    struct table_definition definition = things_definition();
    struct table_commit commit = {
        .commit = {.apply = apply_table}, .definition = &definition, .change = replace_unseen};
    engine_commit(fixture.engine, &commit.commit);
    CHECK(commit.result == TABLE_CHANGED && fixture.engine->poked);
    fixture_close(&fixture);
}
