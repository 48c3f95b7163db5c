/* Logs by their C functions. */
#include "unit/library_fixture.h"

#define GROUP "billing"

static void check_append(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    int64_t partition, sequence;
    const struct quipu_event events[] = {
        {.key = "a", .data = "{\"n\":2}"}, {.key = "b", .token = "t2"}, {.key = "c"}};
    CHECK_INT(quipu_log_append(db, "orders", "a", "1", NULL, NULL, NULL, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_log_put(db, "orders", 1, 3600000, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_append(db, "orders", "a", "{\"n\":1}", "t1", &partition, &sequence, &reply),
              QUIPU_DONE);
    CHECK(partition == 0 && sequence == 1);
    CHECK_INT(quipu_log_append(db, "orders", "a", "{\"n\":1}", "t1", &partition, &sequence, &reply),
              QUIPU_DONE);
    CHECK(partition == 0 && sequence == 1);
    CHECK_INT(quipu_log_append_many(db, "orders", events, 3, &reply), QUIPU_DONE);
    CHECK(strstr(reply->json, "\"sequence\":4"));
    CHECK_INT(quipu_log_append_many(db, "orders", events, 0, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_log_append_expected(db, "orders", 1, events, 1, &sequence, &reply), QUIPU_CONFLICT);
    CHECK_INT(sequence, 2);
    CHECK_TEXT(error_of(reply), "unexpected");
    CHECK_INT(quipu_log_append_many(db, "orders", &(struct quipu_event){.key = "k", .data = "1}"}, 1, &reply),
              QUIPU_FAILED);
    CHECK_INT(quipu_log_append(db, "orders", "a", "oops", NULL, NULL, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_log_show(db, "orders", &reply), QUIPU_FOUND);
    CHECK_INT(count_pages(quipu_log_partitions(db, "orders")), 1);
    CHECK_INT(count_pages(quipu_log_events(db, "orders", 0, 0)), 4);
    CHECK_INT(count_pages(quipu_log_events(db, "orders", 0, 3)), 1);
    CHECK_INT(count_pages(quipu_pages_open(db, "GET", "/v1/logs/orders/partitions/0?limit=3")), 4);
    CHECK_INT(count_pages(quipu_log_events(db, "orders", 9, 0)), -1);
    CHECK_INT(count_pages(quipu_log_key(db, "orders", "a", 0)), 2);
    CHECK_INT(count_pages(quipu_log_key(db, "orders", "a", 1)), 1);
    CHECK_INT(quipu_log_put(db, "streams", 1, 0, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_scale(db, "streams", "500/s", "50/s", 16, &reply), QUIPU_DONE);
    CHECK(strstr(reply->json,
                 "\"scale\":{\"split_above\":\"500/s\",\"merge_below\":\"50/s\",\"partitions\":16}"));
    CHECK_INT(quipu_log_scale(db, "streams", "50/s", "50/s", 0, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_log_scale(db, "streams", NULL, NULL, 0, &reply), QUIPU_DONE);
    CHECK(!strstr(reply->json, "scale"));
    CHECK_INT(quipu_log_append_expected(db, "streams", 0, (struct quipu_event[]){{.key = "s"}, {.key = "s"}},
                                        2, &sequence, &reply),
              QUIPU_DONE);
    CHECK_INT(sequence, 2);
    quipu_reply_free(reply);
}

static void check_reading(struct quipu *db)
{
    struct quipu_reply *batch_reply = NULL, *reply = NULL;
    struct quipu_batch batch = {0};
    struct quipu_read read = {.owner = "me", .max = 3, .for_ms = 60000, .wait_ms = -1};
    int64_t lag = -1, parked = -1, replayed;
    CHECK_INT(quipu_log_lag(db, "orders", GROUP, &lag, &parked, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_log_read(db, "orders", GROUP, &read, &batch, &batch_reply), QUIPU_FOUND);
    CHECK(batch.partition == 0 && batch.fence == 1 && batch.position == 0 && batch.more && batch.count == 3);
    CHECK(batch.events[0].sequence == 1 && batch.events[0].time_ms > 0 && batch.until_ms > 0);
    CHECK_TEXT(slice_of(batch.events[0].key), "a");
    CHECK_TEXT(slice_of(batch.events[1].data), "{\"n\":2}");
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, 0, batch.fence, 0, &reply), QUIPU_DONE); /* only renews */
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, 0, batch.fence, 1, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, 0, 7, 2, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "stale-fence");
    CHECK_INT(quipu_log_park(db, "orders", GROUP, 0, batch.fence, 2, "odd", &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, 0, batch.fence, 3, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_read(db, "orders", GROUP, &read, &batch, NULL), QUIPU_FOUND);
    CHECK(batch.position == 3 && batch.count == 0 && !batch.events); /* no reply keeps them */
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, 0, batch.fence, 4, &reply), QUIPU_DONE);
    read.wait_ms = 20;
    CHECK_INT(quipu_log_read(db, "orders", GROUP, &read, &batch, &reply), QUIPU_NONE);
    CHECK_INT(count_pages(quipu_log_parked(db, "orders", GROUP)), 1);
    CHECK_INT(quipu_log_lag(db, "orders", GROUP, &lag, &parked, &reply), QUIPU_FOUND);
    CHECK(lag == 0 && parked == 1);
    CHECK_INT(quipu_log_replay_parked(db, "orders", GROUP, &replayed, &reply), QUIPU_DONE);
    CHECK_INT(replayed, 1);
    CHECK_INT(quipu_log_read(db, "orders", GROUP, &read, &batch, &batch_reply), QUIPU_FOUND);
    CHECK(batch.partition == QUIPU_PARKED && batch.count == 1);
    CHECK_INT(quipu_log_ack(db, "orders", GROUP, QUIPU_PARKED, batch.fence, batch.events[0].sequence, &reply),
              QUIPU_DONE);
    quipu_reply_free(batch_reply);
    quipu_reply_free(reply);
}

static void check_again(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    int64_t lag, children[2] = {0}, child = 0;
    CHECK_INT(quipu_log_replay(db, "orders", GROUP, 0, 3, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_lag(db, "orders", GROUP, &lag, NULL, NULL), QUIPU_FOUND);
    CHECK_INT(lag, 2);
    CHECK_INT(quipu_log_replay_time(db, "orders", GROUP, 0, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_lag(db, "orders", GROUP, &lag, NULL, NULL), QUIPU_FOUND);
    CHECK_INT(lag, 4);
    CHECK_INT(quipu_log_replay_time(db, "orders", GROUP, clock_now_ms(&clock_system), &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_replay_time(db, "orders", GROUP, -1, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_leave(db, "orders", GROUP, &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_leave(db, "orders", GROUP, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_log_split(db, "orders", 0, NULL, children, &reply), QUIPU_DONE);
    CHECK(children[0] == 1 && children[1] == 2);
    CHECK_INT(quipu_log_split(db, "orders", 9, "8000000000000000", children, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_log_merge(db, "orders", 1, 2, &child, &reply), QUIPU_DONE);
    CHECK_INT(child, 3);
    CHECK_INT(quipu_log_merge(db, "orders", 1, 3, &child, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_log_delete(db, "orders", &reply), QUIPU_DONE);
    CHECK_INT(quipu_log_delete(db, "orders", &reply), QUIPU_MISSING);
    quipu_reply_free(reply);
}

static void check_log(struct quipu *db)
{
    check_append(db);
    check_reading(db);
    check_again(db);
}

TEST(logs_by_functions)
{
    on_every_engine(check_log);
}
