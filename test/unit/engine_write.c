/* The writer: what is applied, counted, refused, and what stays when the store fails. */
#include "unit/engine_fixture.h"

#include <pthread.h>
#include <stdlib.h>

TEST(engine_put_get_delete)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    CHECK(fixture_get(&fixture, "a", "1") == NULL);
    CHECK(fixture_put(&fixture, "a", "1", "first"));
    CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "first");
    CHECK(fixture_put(&fixture, "a", "1", "second"));
    CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "second");
    CHECK_INT(fixture.table->counts->items, 1);
    CHECK(fixture_delete(&fixture, "a", "1"));
    CHECK(fixture_get(&fixture, "a", "1") == NULL);
    CHECK_INT(fixture.table->counts->items, 0);
    CHECK_INT(fixture.table->counts->bytes, 0);
    fixture_close(&fixture);
}

static void count_done(struct commit *commit)
{
    CHECK(!commit->failed);
}

TEST(engine_writes_of_one_batch_see_each_other)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    struct write_commit writes[] = {fixture_write(&fixture, WRITE_PUT, "a", "1", "one"),
                                    fixture_write(&fixture, WRITE_DELETE, "a", "1", NULL),
                                    fixture_write(&fixture, WRITE_PUT, "a", "1", "three")};
    struct commit_list list = {0};
    uint64_t batches = engine_stats(fixture.engine)->batches;
    for (int i = 0; i < 3; i++) {
        writes[i].commit.done = count_done;
        commit_list_add(&list, &writes[i].commit);
    }
    engine_submit(fixture.engine, &list);
    CHECK_INT(engine_stats(fixture.engine)->batches - batches, 1);
    CHECK(!writes[0].write.existed && writes[1].write.existed && !writes[2].write.existed);
    CHECK(writes[1].write.old_size > 0);
    CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "three");
    CHECK_INT(fixture.table->counts->items, 1);
    fixture_close(&fixture);
}

/* A store in memory that tells how many entries its last batch had. */
struct counting_store {
    struct store store; /* first */
    struct store *inner;
    uint32_t entries;
};

static struct store *inner_of(struct store *store)
{
    return ((struct counting_store *)store)->inner;
}

static enum store_result counting_get(struct store *store, struct slice key, struct buf *value)
{
    return store_get(inner_of(store), key, value);
}

static enum store_result counting_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                       store_visitor visitor, void *context)
{
    return store_scan(inner_of(store), from, to, backwards, visitor, context);
}

static enum store_result counting_write(struct store *store, const struct store_batch *batch, bool durable)
{
    ((struct counting_store *)store)->entries = batch->count;
    return store_write(inner_of(store), batch, durable);
}

static enum store_result counting_sync(struct store *store)
{
    return store_sync(inner_of(store));
}

static void counting_close(struct store *store)
{
    store_close(inner_of(store));
}

TEST(engine_batch_writes_only_what_changed)
{
    static const struct store_methods methods = {.get = counting_get,
                                                 .scan = counting_scan,
                                                 .write = counting_write,
                                                 .sync = counting_sync,
                                                 .close = counting_close};
    struct counting_store counting = {.store = {.methods = &methods}, .inner = store_open_memory(NULL)};
    struct fixture fixture = {0};
    char pk[16];
    ensure(fixture_open_store(&fixture, &counting.store, true) && fixture_create(&fixture));
    CHECK(fixture_put(&fixture, "a", "1", "one"));
    CHECK_INT(counting.entries, 2); /* the item and the counts */
    CHECK(fixture_put(&fixture, "a", "1", "two"));
    CHECK_INT(counting.entries, 1); /* as many bytes as before */
    CHECK(fixture_put(&fixture, "a", "1", "three"));
    CHECK_INT(counting.entries, 2);

    /* Each key twice in one batch, more of them than the overlay begins with; then a small batch again. */
    enum { KEYS = 700 };
    struct write_commit *writes = must_zero(2 * KEYS, sizeof *writes);
    struct commit_list list = {0};
    for (int i = 0; i < 2 * KEYS; i++) {
        snprintf(pk, sizeof pk, "key%d", i % KEYS);
        writes[i] = fixture_write(&fixture, WRITE_PUT, pk, "1", i < KEYS ? "old" : "new");
        writes[i].commit.done = count_done;
        commit_list_add(&list, &writes[i].commit);
    }
    engine_submit(fixture.engine, &list);
    CHECK_INT(counting.entries, KEYS + 1);
    for (int i = 0; i < 2 * KEYS; i++) CHECK(writes[i].write.existed == (i >= KEYS));
    CHECK(fixture_delete(&fixture, "key0", "1"));
    CHECK_INT(counting.entries, 2);
    for (int i = 1; i < KEYS; i++) {
        snprintf(pk, sizeof pk, "key%d", i);
        CHECK_TEXT(slice_of(fixture_get(&fixture, pk, "1")), "new");
    }
    CHECK(fixture_get(&fixture, "key0", "1") == NULL);
    CHECK_INT(fixture.table->counts->items, KEYS);
    free(writes);
    fixture_close(&fixture);
}

TEST(engine_counts_follow_a_dropped_table)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    CHECK(fixture_put(&fixture, "a", "1", "x"));
    struct slice key = fixture_key(&fixture, "a", "1");
    CHECK(fixture_drop(&fixture));
    CHECK(engine_table_find(fixture.engine, SLICE("things")) == NULL);
    struct write_commit late = fixture_write(&fixture, WRITE_PUT, "a", "2", "late");
    engine_commit(fixture.engine, &late.commit);
    CHECK_INT(late.write.outcome, WRITE_NO_TABLE);
    engine_table_release(fixture.table);
    CHECK(fixture_create(&fixture));
    CHECK(fixture_get(&fixture, "a", "1") == NULL);
    CHECK(!slice_equal(key, fixture_key(&fixture, "a", "1")));
    fixture_close(&fixture);
}

TEST(engine_protected_table_stays)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    struct table_definition definition = things_definition();
    definition.deletion_protected = true;
    struct table_commit replace = {
        .commit = {.apply = apply_table}, .definition = &definition, .change = engine_table_replace};
    engine_commit(fixture.engine, &replace.commit);
    CHECK_INT(replace.result, TABLE_CHANGED);
    CHECK(!fixture_drop(&fixture));
    struct table_commit again = {
        .commit = {.apply = apply_table}, .definition = &definition, .change = engine_table_create};
    engine_commit(fixture.engine, &again.commit);
    CHECK_INT(again.result, TABLE_EXISTS);
    fixture_close(&fixture);
}

TEST(engine_definition_survives_its_stored_form)
{
    struct arena arena = {0};
    struct slice non_key[] = {SLICE("x"), SLICE("y")};
    struct index_definition indexes[] = {
        {.name = SLICE("by-x"),
         .global = true,
         .hash_count = 2,
         .hash = {SLICE("pk"), SLICE("sk")},
         .range_count = 1,
         .range = {SLICE("sk")},
         .projection = PROJECT_INCLUDE,
         .non_key = non_key,
         .non_key_count = 2,
         .throughput = {.read_units = 5, .write_units = 6, .max_read = -1, .max_write = 7, .warm_read = 8}}};
    struct tag tags[] = {{SLICE("team"), SLICE("")}, {SLICE("a"), SLICE("b")}};
    struct table_definition definition = things_definition(), *copy;
    definition.indexes = indexes;
    definition.index_count = 1;
    definition.tags = tags;
    definition.tag_count = 2;
    definition.stream = STREAM_NEW_IMAGE;
    definition.stream_since_ms = 1234567890123;
    definition.table_class = SLICE("STANDARD_INFREQUENT_ACCESS");
    definition.kms_key = SLICE("key");
    copy = table_definition_copy(&arena, &definition);
    CHECK_TEXT(copy->name, "things");
    CHECK_TEXT(copy->range, "sk");
    CHECK_INT(copy->index_count, 1);
    CHECK_TEXT(copy->indexes[0].hash[1], "sk");
    CHECK_TEXT(copy->indexes[0].non_key[1], "y");
    CHECK_INT(copy->indexes[0].throughput.max_read, -1);
    CHECK_INT(copy->indexes[0].throughput.max_write, 7);
    CHECK_TEXT(copy->tags[1].value, "b");
    CHECK_INT(copy->tags[0].value.len, 0);
    CHECK_INT(copy->stream, STREAM_NEW_IMAGE);
    CHECK_INT(copy->stream_since_ms, 1234567890123);
    CHECK_TEXT(copy->table_class, "STANDARD_INFREQUENT_ACCESS");
    arena_free(&arena);
}

/* ---- failing stores ---- */

/* A fixed story; answers whether every step was kept, and what was acknowledged at the end. */
static bool tell_story(struct fixture *fixture, unsigned *acknowledged)
{
    *acknowledged = 0;
    for (int i = 0; i < 6; i++) {
        char sk[16];
        snprintf(sk, sizeof sk, "%d", i);
        if (!fixture_put(fixture, "a", sk, "data")) return false;
        *acknowledged |= 1u << i;
    }
    if (!fixture_delete(fixture, "a", "3")) return false;
    *acknowledged &= ~(1u << 3);
    return fixture_put(fixture, "a", "0", "again");
}

static bool checks_clean(struct store *store)
{
    struct check_report report;
    struct buf out = {0};
    bool clean = engine_check(store, &report, &out) && report.faults == 0;
    if (!clean) fprintf(stderr, "%.*s", SLICE_ARG(buf_view(&out)));
    buf_free(&out);
    return clean;
}

/* Every call of the store fails once: what was acknowledged is there, and the whole checks clean. */
TEST(engine_survives_a_failure_of_any_store_call)
{
    bool finished = false;
    for (uint64_t n = 1; !finished; n++) {
        struct fixture fixture = {0};
        unsigned acknowledged = 0;
        struct store *store = store_open_memory(&fixture.faults);
        struct store_snapshot *after;
        fixture.faults.fail_at = n;
        ensure(n < 1000);
        if (fixture_open_store(&fixture, store, true)) {
            if (fixture_create(&fixture)) finished = tell_story(&fixture, &acknowledged);
            char error[700];
            CHECK(finished != engine_has_failed(fixture.engine, error, sizeof error));
            after = store_snapshot_take(store);
            if (fixture.table) engine_table_release(fixture.table);
            fixture.table = NULL;
            engine_close(fixture.engine);
            store = store_open_memory(NULL);
            store_snapshot_restore(store, after);
            store_snapshot_free(after);
            CHECK(checks_clean(store));
            CHECK(fixture_open_store(&fixture, store, true));
            fixture.table = engine_table_find(fixture.engine, SLICE("things"));
            for (int i = 0; i < 6 && fixture.table; i++) {
                char sk[16];
                snprintf(sk, sizeof sk, "%d", i);
                bool there = fixture_get(&fixture, "a", sk) != NULL;
                if (acknowledged >> i & 1) CHECK(there);
            }
            fixture_close(&fixture);
        }
    }
}

/* ---- threads ---- */

enum { WRITERS = 4, WRITES = 300 };

struct writer_story {
    struct fixture *fixture;
    int number;
    pthread_t thread;
};

static void *write_story(void *argument)
{
    struct writer_story *story = argument;
    struct fixture own = {.engine = story->fixture->engine, .table = story->fixture->table};
    for (int i = 0; i < WRITES; i++) {
        char pk[16], sk[12];
        snprintf(pk, sizeof pk, "%d", story->number);
        snprintf(sk, sizeof sk, "%d", i % 50);
        CHECK(fixture_put(&own, pk, sk, sk));
        CHECK_TEXT(slice_of(fixture_get(&own, pk, sk)), sk);
        if (i % 50 == 49) arena_reset(&own.arena);
    }
    arena_free(&own.arena);
    return NULL;
}

TEST(engine_threads_share_commits_and_read_their_own_writes)
{
    struct fixture fixture;
    struct writer_story stories[WRITERS];
    fixture_open(&fixture, false);
    for (int i = 0; i < WRITERS; i++) {
        stories[i] = (struct writer_story){.fixture = &fixture, .number = i};
        ensure(pthread_create(&stories[i].thread, NULL, write_story, &stories[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(stories[i].thread, NULL);
    CHECK_INT(fixture.table->counts->items, WRITERS * 50);
    CHECK_INT(engine_stats(fixture.engine)->commits, WRITERS * WRITES + 1);
    fixture_close(&fixture);
}
