/* Following a stream: order, shards that split, waiting, waking, and the end. */
#include <stdatomic.h>

#include "base/clock.h"
#include "library/internal.h"
#include "unit/library_fixture.h"

#define KEYS   10
#define ROUNDS 20

static struct quipu_stream *follow(struct quipu *db, const char *what, enum quipu_stream_start start)
{
    char error[QUIPU_ERROR_BYTES] = "";
    struct quipu_stream *stream = quipu_stream_open(db, what, start, error, sizeof error);
    if (!stream) test_failed(__FILE__, __LINE__, "%s", error);
    return stream;
}

/* Every key gets the values from..to-1 in turn. */
static void write_rounds(struct quipu *db, int from, int to)
{
    char key[20];
    for (int v = from; v < to; v++)
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof key, "key%d", i);
            put(db, key, i, v);
        }
}

/* Reads that many records; each key's values must be from, from + 1, ... */
static void check_records(struct quipu_stream *stream, int from, int count)
{
    int expected[KEYS];
    struct quipu_record record;
    for (int i = 0; i < KEYS; i++) expected[i] = from;
    for (int i = 0; i < count; i++) {
        enum quipu_result result = quipu_stream_next(stream, 5000, &record);
        CHECK_INT(result, QUIPU_FOUND);
        if (result != QUIPU_FOUND) return;
        const char *image = strstr(record.json, "\"NewImage\":");
        int key = image ? number_of(image, "n") : -1;
        CHECK(key >= 0 && key < KEYS);
        if (key < 0 || key >= KEYS) return;
        CHECK_INT(number_of(image, "v"), expected[key]);
        CHECK_TEXT(slice_of(record.event), expected[key] == 0 ? "INSERT" : "MODIFY");
        CHECK(strlen(record.sequence) >= 21 && strstr(record.json, record.sequence) &&
              strlen(record.shard) > 0);
        CHECK_INT(record.json_len, strlen(record.json));
        expected[key]++;
    }
    CHECK_INT(quipu_stream_next(stream, 0, &record), QUIPU_NONE);
}

static void check_following(struct quipu *db)
{
    create_table(db, true);
    write_rounds(db, 0, ROUNDS);
    struct quipu_stream *all = follow(db, "Tab", QUIPU_OLDEST), *latest = follow(db, "Tab", QUIPU_LATEST);
    check_records(all, 0, KEYS * ROUNDS);
    write_rounds(db, ROUNDS, 2 * ROUNDS);
    check_records(all, ROUNDS, KEYS * ROUNDS);
    check_records(latest, ROUNDS, KEYS * ROUNDS);
    quipu_stream_close(all);
    quipu_stream_close(latest);
}

TEST(records_of_all_shards_in_the_order_of_each_item)
{
    struct quipu *db = open_or_fail(":memory:");
    check_following(db);
    quipu_close(db);
}

TEST(records_come_from_a_url_too)
{
    struct served served;
    served_start(&served, NULL);
    struct quipu *db = open_or_fail(served.url);
    check_following(db);
    quipu_close(db);
    served_stop(&served);
}

/* ---- shards that split ---- */

struct split {
    struct commit commit;
    uint32_t stream, shard;
    bool done;
};

static void apply_split(struct commit *commit, struct batch *batch)
{
    struct split *split = (struct split *)commit;
    split->done = engine_shard_roll(batch, split->stream, split->shard, true);
}

/* Splits every open shard of the only stream. */
static void split_all(struct quipu *db)
{
    struct engine *engine = dynamo_engine(db->dynamo);
    struct arena arena = {0};
    uint32_t count;
    struct stream **streams = engine_streams(engine, &arena, &count);
    CHECK_INT(count, 1);
    for (uint32_t i = 0; i < streams[0]->shard_count; i++) {
        if (streams[0]->shards[i].last) continue;
        struct split split = {
            .commit.apply = apply_split, .stream = streams[0]->number, .shard = streams[0]->shards[i].number};
        engine_commit(engine, &split.commit);
        CHECK(split.done);
    }
    for (uint32_t i = 0; i < count; i++) engine_stream_release(streams[i]);
    arena_free(&arena);
}

TEST(parents_are_read_before_their_children)
{
    struct quipu *db = open_or_fail(":memory:");
    create_table(db, true);
    struct quipu_stream *early = follow(db, "Tab", QUIPU_LATEST);
    write_rounds(db, 0, 5);
    split_all(db);
    write_rounds(db, 5, 10);
    split_all(db);
    write_rounds(db, 10, 15);
    struct quipu_stream *late = follow(db, "Tab", QUIPU_OLDEST), *latest = follow(db, "Tab", QUIPU_LATEST);
    check_records(early, 0, 15 * KEYS);
    check_records(late, 0, 15 * KEYS);
    write_rounds(db, 15, 20);
    split_all(db);
    write_rounds(db, 20, 25);
    check_records(early, 15, 10 * KEYS);
    check_records(latest, 15, 10 * KEYS);
    quipu_stream_close(early);
    quipu_stream_close(late);
    quipu_stream_close(latest);
    quipu_close(db);
}

/* More records than one answer holds: children must wait for their parents' second and third. */
TEST(long_parents_are_read_to_their_end_first)
{
    struct quipu *db = open_or_fail(":memory:");
    create_table(db, true);
    write_rounds(db, 0, 600);
    split_all(db);
    write_rounds(db, 600, 650);
    struct quipu_stream *stream = follow(db, "Tab", QUIPU_OLDEST);
    check_records(stream, 0, 650 * KEYS);
    quipu_stream_close(stream);
    quipu_close(db);
}

/* ---- waiting ---- */

struct waiter {
    struct quipu_stream *stream;
    enum quipu_result result;
    _Atomic int64_t seen_us;
};

static void *wait_for_record(void *argument)
{
    struct waiter *waiter = argument;
    struct quipu_record record;
    waiter->result = quipu_stream_next(waiter->stream, -1, &record);
    waiter->seen_us = monotonic_us();
    return NULL;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

TEST(a_waiting_reader_is_woken_by_a_change)
{
    struct quipu *db = open_or_fail(":memory:");
    struct quipu_record record;
    create_table(db, true);
    struct waiter waiter = {.stream = follow(db, "Tab", QUIPU_LATEST)};
    pthread_t thread;
    int64_t asked = monotonic_us();
    CHECK_INT(quipu_stream_next(waiter.stream, 30, &record), QUIPU_NONE);
    CHECK(monotonic_us() - asked >= 30000);
    CHECK(pthread_create(&thread, NULL, wait_for_record, &waiter) == 0);
    sleep_ms(50);
    CHECK_INT(waiter.seen_us, 0);
    put(db, "a", 1, 1);
    pthread_join(thread, NULL);
    CHECK_INT(waiter.result, QUIPU_FOUND);
    quipu_stream_close(waiter.stream);
    quipu_close(db);
}

TEST(a_waiting_reader_is_woken_by_the_program)
{
    struct quipu *db = open_or_fail(":memory:");
    create_table(db, true);
    struct waiter waiter = {.stream = follow(db, "Tab", QUIPU_LATEST)};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_record, &waiter) == 0);
    sleep_ms(20);
    quipu_stream_wake(waiter.stream);
    pthread_join(thread, NULL);
    CHECK_INT(waiter.result, QUIPU_NONE);
    quipu_stream_wake(waiter.stream); /* nobody waits: the next one will not */
    wait_for_record(&waiter);
    CHECK_INT(waiter.result, QUIPU_NONE);
    quipu_stream_close(waiter.stream);
    quipu_close(db);
}

TEST(a_stream_that_was_switched_off_comes_to_its_end)
{
    struct quipu *db = open_or_fail(":memory:");
    struct quipu_record record;
    create_table(db, true);
    struct quipu_stream *stream = follow(db, "Tab", QUIPU_OLDEST);
    put(db, "a", 1, 1);
    call(db, "UpdateTable", "{\"TableName\":\"Tab\",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    put(db, "a", 1, 2);
    CHECK_INT(quipu_stream_next(stream, 5000, &record), QUIPU_FOUND);
    CHECK_INT(quipu_stream_next(stream, -1, &record), QUIPU_ENDED);
    CHECK_INT(quipu_stream_next(stream, -1, &record), QUIPU_ENDED);
    quipu_stream_close(stream);
    quipu_close(db);
}

TEST(a_reader_that_waits_learns_of_the_end)
{
    struct quipu *db = open_or_fail(":memory:");
    create_table(db, true);
    struct waiter waiter = {.stream = follow(db, "Tab", QUIPU_LATEST)};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_record, &waiter) == 0);
    sleep_ms(20);
    call(db, "UpdateTable", "{\"TableName\":\"Tab\",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    pthread_join(thread, NULL);
    CHECK_INT(waiter.result, QUIPU_ENDED);
    quipu_stream_close(waiter.stream);
    quipu_close(db);
}

/* ---- what goes wrong ---- */

TEST(streams_that_are_not_there)
{
    struct quipu *db = open_or_fail(":memory:");
    char error[QUIPU_ERROR_BYTES];
    CHECK(!quipu_stream_open(db, "Tab", QUIPU_OLDEST, error, sizeof error));
    CHECK(strstr(error, "ResourceNotFoundException: "));
    create_table(db, false);
    CHECK(!quipu_stream_open(db, "Tab", QUIPU_OLDEST, error, sizeof error));
    CHECK(strstr(error, "the table Tab has no stream"));
    CHECK(!quipu_stream_open(
        db, "arn:aws:dynamodb:us-east-1:000000000000:table/Tab/stream/2026-11-15T03:42:06.000", QUIPU_OLDEST,
        error, sizeof error));
    CHECK(strstr(error, "ResourceNotFoundException: "));
    quipu_close(db);
}

/* A clock that the test moves; the library's own handle around a door that has it. */
static int64_t moved_ms(void *self)
{
    return clock_now_ms(&clock_system) + atomic_load((_Atomic int64_t *)self);
}

TEST(expired_iterators_are_replaced)
{
    _Atomic int64_t moved = 0;
    struct clock clock = {moved_ms, &moved};
    char error[QUIPU_ERROR_BYTES];
    struct quipu db = {
        .dynamo = dynamo_open(":memory:", &(struct dynamo_options){.clock = &clock}, error, sizeof error)};
    create_table(&db, true);
    struct quipu_stream *all = follow(&db, "Tab", QUIPU_OLDEST), *latest = follow(&db, "Tab", QUIPU_LATEST);
    write_rounds(&db, 0, 5);
    check_records(all, 0, 5 * KEYS);
    atomic_fetch_add(&moved, 16 * 60 * 1000); /* a quarter of an hour and more */
    write_rounds(&db, 5, 10);
    check_records(all, 5, 5 * KEYS);
    check_records(latest, 0, 10 * KEYS);
    quipu_stream_close(all);
    quipu_stream_close(latest);
    dynamo_close(db.dynamo);
}
