/* What only the store in memory can do: fail on purpose, go back to a snapshot; and readers beside a writer.
 */
#include "base/clock.h"
#include "unit/store_fixture.h"

TEST(faults_strike_the_chosen_call)
{
    struct store_faults faults = {0};
    struct store *store = store_open_memory(&faults);
    put(store, "a", "1");
    CHECK_INT(faults.calls, 1);
    faults.fail_at = 3;
    CHECK_TEXT(value_of(store, "a"), "1");
    CHECK_TEXT(value_of(store, "a"), "(failed)");
    CHECK_TEXT(slice_of(store->error), "call 3, a get, fails on purpose");
    CHECK_TEXT(value_of(store, "a"), "1");
    faults.fail_at = 5;
    CHECK_TEXT(content(store, "", "", false), "(failed)");
    put(store, "b", "2");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=2 ");
    CHECK_INT(faults.calls, 7);
    store_close(store);
}

TEST(a_failed_write_changes_nothing_and_ends_writing)
{
    struct store_faults faults = {.fail_at = 2};
    struct store *store = store_open_memory(&faults);
    struct store_batch batch = {0};
    put(store, "a", "1");
    store_batch_put(&batch, SLICE("a"), SLICE("2"));
    store_batch_put(&batch, SLICE("b"), SLICE("2"));
    for (int i = 0; i < 3; i++) CHECK(store_write(store, &batch, true) == STORE_FAILED);
    CHECK(store_sync(store) == STORE_FAILED);
    CHECK_TEXT(slice_of(store->error), "call 2, a write, fails on purpose");
    CHECK_TEXT(content(store, "", "", false), "a=1 ");
    store_batch_free(&batch);
    store_close(store);
}

TEST(a_failed_sync_ends_writing)
{
    struct store_faults faults = {.fail_at = 2};
    struct store *store = store_open_memory(&faults);
    struct store_batch batch = {0};
    put(store, "a", "1");
    CHECK(store_sync(store) == STORE_FAILED);
    CHECK(store_write(store, &batch, false) == STORE_FAILED);
    CHECK_TEXT(slice_of(store->error), "call 2, a sync, fails on purpose");
    CHECK_TEXT(value_of(store, "a"), "1");
    store_close(store);
}

TEST(snapshots_keep_the_past)
{
    struct store *store = store_open_memory(NULL);
    struct store_snapshot *empty = store_snapshot_take(store);
    put(store, "a", "1");
    put(store, "b", "1");
    struct store_snapshot *two = store_snapshot_take(store);
    put(store, "a", "2");
    struct store_batch batch = {0};
    store_batch_delete_range(&batch, SLICE("b"), SLICE("c"));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "a=2 ");
    store_snapshot_restore(store, two);
    CHECK_TEXT(content(store, "", "", false), "a=1 b=1 ");
    put(store, "c", "3");
    store_snapshot_restore(store, empty);
    CHECK_TEXT(content(store, "", "", false), "");
    store_snapshot_restore(store, two);
    CHECK_TEXT(content(store, "", "", false), "a=1 b=1 ");
    store_snapshot_free(empty);
    store_snapshot_free(two);
    store_snapshot_free(NULL);
    store_batch_free(&batch);
    store_close(store);
}

/* How a simulation restarts after a crash: the snapshot outlives its store and fills the next. */
TEST(a_snapshot_moves_to_another_store_and_heals_a_failure)
{
    struct store_faults faults = {.fail_at = 2};
    struct store *first = store_open_memory(NULL), *second = store_open_memory(&faults);
    struct store_batch batch = {0};
    put(first, "a", "1");
    struct store_snapshot *snapshot = store_snapshot_take(first);
    store_close(first);
    put(second, "b", "2");
    CHECK(store_write(second, &batch, false) == STORE_FAILED);
    store_snapshot_restore(second, snapshot);
    store_snapshot_free(snapshot);
    CHECK_TEXT(slice_of(second->error), "");
    put(second, "c", "3");
    CHECK_TEXT(content(second, "", "", false), "a=1 c=3 ");
    store_batch_free(&batch);
    store_close(second);
}

TEST(a_snapshot_costs_nothing_until_something_changes)
{
    enum { SNAPSHOTS = 10000 };
    static struct store_snapshot *snapshots[SNAPSHOTS];
    struct store *store = store_open_memory(NULL);
    for (int i = 0; i < 2000; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i * 7919 % 2000);
        put(store, key, "a value");
    }
    for (int i = 0; i < SNAPSHOTS; i++) snapshots[i] = store_snapshot_take(store);
    put(store, "1000", "changed");
    store_snapshot_restore(store, snapshots[SNAPSHOTS / 2]);
    CHECK_TEXT(value_of(store, "1000"), "a value");
    for (int i = 0; i < SNAPSHOTS; i++) store_snapshot_free(snapshots[i]);
    store_close(store);
}

TEST(stats_in_memory_are_exact)
{
    struct store *store = store_open_memory(NULL);
    struct store_batch batch = {0};
    struct store_stats stats;
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "%03d", i * 7919 % 1000);
        store_batch_put(&batch, slice_of(key), SLICE("0123456789"));
    }
    store_batch_delete(&batch, SLICE("500"));
    store_batch_delete(&batch, SLICE("no such key"));
    store_batch_delete_range(&batch, SLICE("100"), SLICE("200"));
    store_batch_put(&batch, SLICE("150"), SLICE(""));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    store_stats(store, &stats);
    CHECK_INT(stats.keys_estimate, 1000 - 1 - 100 + 1);
    CHECK(stats.memory_bytes > 900 * 13 && stats.memory_bytes < 900 * 200);
    store_batch_clear(&batch);
    store_batch_delete_range(&batch, SLICE(""), SLICE("999"));
    store_batch_delete(&batch, SLICE("999"));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    store_stats(store, &stats);
    CHECK_INT(stats.keys_estimate, 0);
    CHECK_INT(stats.memory_bytes, 0);
    store_batch_free(&batch);
    store_close(store);
}

/* ---- what was there before ---- */

static int64_t hand_now(void *self)
{
    return *(int64_t *)self;
}

static struct slice content_at(struct store *store, int64_t at_ms)
{
    struct store_snapshot *snapshot = store_history_at(store, at_ms);
    if (!snapshot) return SLICE("(not kept)");
    struct store *past = store_open_memory(NULL);
    store_snapshot_restore(past, snapshot);
    struct slice text = content(past, "", "", false);
    store_close(past);
    store_snapshot_free(snapshot);
    return text;
}

TEST(history_has_every_moment_from_its_begin_on)
{
    int64_t now_ms = 1000;
    struct clock clock = {hand_now, &now_ms};
    struct store *store = store_open_memory(NULL);
    put(store, "a", "0");
    CHECK(store_history_from(store) == INT64_MAX);
    CHECK_TEXT(content_at(store, 1000), "(not kept)");
    store_history_begin(store, &clock);
    now_ms = 1005;
    put(store, "a", "1");
    put(store, "b", "1"); /* of one moment the last state counts */
    now_ms = 1009;
    put(store, "a", "2");
    now_ms = 1007; /* a clock that was put back changes no order */
    put(store, "a", "3");
    CHECK_INT(store_history_from(store), 1000);
    CHECK_TEXT(content_at(store, 999), "(not kept)");
    CHECK_TEXT(content_at(store, 1000), "a=0 ");
    CHECK_TEXT(content_at(store, 1004), "a=0 ");
    CHECK_TEXT(content_at(store, 1005), "a=1 b=1 ");
    CHECK_TEXT(content_at(store, 1008), "a=1 b=1 ");
    CHECK_TEXT(content_at(store, 5000), "a=3 b=1 ");
    store_history_end(store);
    CHECK_TEXT(content_at(store, 5000), "(not kept)");
    store_history_begin(store, &clock);
    CHECK_INT(store_history_from(store), 1007);
    store_close(store);
}

TEST(history_gives_up_its_oldest_moments_for_room)
{
    int64_t now_ms = 0;
    struct clock clock = {hand_now, &now_ms};
    struct store *store = store_open_memory(NULL);
    struct buf value = {0};
    store_history_begin(store, &clock);
    for (size_t i = 0; i < 8 * 1024 * 1024; i++) buf_byte(&value, 'x');
    for (now_ms = 1; now_ms <= 40; now_ms++) {
        struct store_batch batch = {0};
        store_batch_put(&batch, SLICE("a"), buf_view(&value));
        CHECK(store_write(store, &batch, true) == STORE_OK);
        store_batch_free(&batch);
    }
    CHECK(store_history_from(store) > 5 && store_history_from(store) < 15);
    struct store_snapshot *snapshot = store_history_at(store, store_history_from(store));
    CHECK(snapshot != NULL && !store_history_at(store, store_history_from(store) - 1));
    store_snapshot_free(snapshot);
    buf_free(&value);
    store_close(store);
}
