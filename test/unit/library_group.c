/* Groups and periods by their C functions. */
#include <unistd.h>

#include "unit/library_fixture.h"

static void check_groups(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_group group;
    struct quipu_group_options rules = {.size = 2, .late = "new", .keep_ms = 3600000};
    CHECK_INT(quipu_group_show(db, "clicks", &reply), QUIPU_MISSING);
    CHECK_INT(quipu_group_put(db, "clicks", &rules, &reply), QUIPU_DONE);
    CHECK_INT(quipu_group_show(db, "clicks", &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "\"complete\":{\"size\":2}") && strstr(reply->json, "\"late\":\"new\""));
    CHECK_INT(quipu_group_get(db, "clicks", "ann", &group, &reply), QUIPU_MISSING);
    struct quipu_group_event event = {.id = "1", .kind = "k", .data = "{\"page\":\"/\"}", .amount = "2.5"};
    CHECK_INT(quipu_group_add(db, "clicks", "ann", &event, &group, &reply), QUIPU_DONE);
    CHECK(group.accepted && !group.completed && !group.complete && group.count == 1 && group.generation == 1);
    CHECK_INT(quipu_group_add(db, "clicks", "ann", &event, &group, &reply), QUIPU_DONE);
    CHECK(!group.accepted && group.count == 1);
    CHECK_INT(count_pages(quipu_group_list(db, "clicks", 0)), 1);
    CHECK_INT(count_pages(quipu_group_list(db, "clicks", 3600000)), 0);
    CHECK_INT(quipu_group_wait(db, "clicks", "ann", 20, &group, &reply), QUIPU_NONE);
    CHECK_INT(group.count, 1);
    CHECK_INT(quipu_group_add(db, "clicks", "ann", NULL, &group, &reply), QUIPU_DONE);
    CHECK(group.accepted && group.completed && group.complete && group.count == 2);
    CHECK_INT(quipu_group_wait(db, "clicks", "ann", -1, &group, &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "\"sum\":2.5"));
    CHECK_INT(quipu_group_get(db, "clicks", "ann", NULL, NULL), QUIPU_FOUND);
    CHECK_INT(count_pages(quipu_group_events(db, "clicks", "ann", 1)), 2);
    CHECK_INT(count_pages(quipu_group_events(db, "clicks", "ann", 7)), -1);
    event.id = "2";
    CHECK_INT(quipu_group_complete(db, "clicks", "bob", 0, NULL, &group, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_group_add(db, "clicks", "bob", &event, &group, &reply), QUIPU_DONE);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(quipu_group_complete(db, "clicks", "bob", 0, "now", &group, &reply), QUIPU_DONE);
        CHECK(group.completed && group.complete && group.generation == 1);
        event.id = "3"; /* opens the next */
        CHECK_INT(quipu_group_add(db, "clicks", "bob", &event, &group, NULL), QUIPU_DONE);
        CHECK_INT(group.generation, 2);
    }
    CHECK_INT(quipu_group_delete(db, "clicks", "", &reply), QUIPU_FAILED); /* and does not forget the rules */
    CHECK_INT(quipu_group_delete(db, "clicks", "ann", &reply), QUIPU_DONE);
    struct quipu_group_event events[] = {{.key = "x", .id = "1", .data = "1"}, {.key = "y", .id = "1"}};
    CHECK_INT(quipu_group_add_many(db, "clicks", events, 2, &reply), QUIPU_DONE);
    CHECK(strstr(reply->json, "{\"events\":[{\"accepted\":true,\"generation\":1,\"count\":1,"));
    CHECK_INT(count_pages(quipu_group_list(db, "clicks", 0)), 3); /* and bob's */
    CHECK_INT(quipu_group_add_many(db, "clicks", events, 0, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_group_forget(db, "clicks", &reply), QUIPU_DONE);
    CHECK_INT(quipu_group_forget(db, "clicks", &reply), QUIPU_MISSING);
    quipu_reply_free(reply);
}

static void check_rules(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_group group;
    const char *const kinds[] = {"login", "recommendation"};
    struct quipu_group_options rules = {.kinds = kinds,
                                        .kind_count = 2,
                                        .when = "sum >= least",
                                        .values = "{\":least\": 10}",
                                        .deadline_ms = 3600000,
                                        .then = "{\"function\":\"offer\"}"};
    CHECK_INT(quipu_group_put(db, "meet", &rules, &reply), QUIPU_FAILED);
    CHECK_TEXT(error_of(reply), "bad-rule");
    rules.when = "#sum >= :least";
    CHECK_INT(quipu_group_put(db, "meet", &rules, &reply), QUIPU_DONE);
    CHECK_INT(quipu_group_add(db, "meet", "a", &(struct quipu_group_event){.kind = "login", .amount = "9"},
                              &group, &reply),
              QUIPU_DONE);
    CHECK_INT(quipu_group_add(db, "meet", "a",
                              &(struct quipu_group_event){.kind = "recommendation", .amount = "1"}, &group,
                              &reply),
              QUIPU_DONE);
    CHECK(group.completed);
    CHECK_INT(quipu_group_add(db, "meet", "a", NULL, &group, &reply), QUIPU_CONFLICT);
    rules.values = "{";
    CHECK_INT(quipu_group_put(db, "meet", &rules, &reply), QUIPU_FAILED);
    CHECK_TEXT(slice_of(reply->message), "What should be JSON is none.");
    CHECK_INT(quipu_group_put(db, "meet", NULL, &reply), QUIPU_FAILED); /* complete by nothing */
    struct quipu_group_options folds = {
        .when = "paid >= :least", .values = "{\":least\":10}", .fold = "{\"paid\":{\"sum\":\"amount\"}}"};
    CHECK_INT(quipu_group_put(db, "folds", &folds, &reply), QUIPU_DONE);
    struct quipu_group_event paid = {.data = "{\"amount\":10}"};
    CHECK_INT(quipu_group_add(db, "folds", "7", &paid, &group, &reply), QUIPU_DONE);
    CHECK(group.completed && strstr(reply->json, "\"fold\":{\"paid\":10}"));
    quipu_reply_free(reply);
}

/* Quiet groups are completed by a sweep. */
static void check_quiet(struct quipu *db)
{
    struct quipu_group group = {0};
    struct quipu_pages *open;
    CHECK_INT(quipu_group_put(db, "still", &(struct quipu_group_options){.quiet_ms = 1}, NULL), QUIPU_DONE);
    CHECK_INT(quipu_group_add(db, "still", "a", NULL, &group, NULL), QUIPU_DONE);
    do {
        usleep(2000);
        CHECK_INT(quipu_sweep(db, NULL), QUIPU_DONE);
        open = quipu_group_list(db, "still", 0);
    } while (count_pages(open) != 0);
    CHECK_INT(quipu_group_get(db, "still", "a", &group, NULL), QUIPU_FOUND);
    CHECK(group.complete);
}

TEST(groups_by_functions)
{
    on_every_engine(check_groups);
    on_every_engine(check_rules);
    on_every_engine(check_quiet);
}

/* ---- periods ---- */

static void check_periods(struct quipu *db)
{
    struct quipu_reply *reply = NULL, *look = NULL;
    struct quipu_bucket found;
    const char *bucket;
    int64_t closed;
    struct quipu_period_options options = {.every_ms = 1000, .shards = 1, .keep_ms = 3600000};
    CHECK_INT(quipu_period_show(db, "digest", &reply), QUIPU_MISSING);
    CHECK_INT(quipu_period_put(db, "digest", &options, &reply), QUIPU_DONE);
    CHECK_INT(quipu_period_show(db, "digest", &reply), QUIPU_FOUND);
    CHECK_INT(quipu_period_add(db, "digest", "a", "{\"n\":1}", 0, &bucket, &reply), QUIPU_DONE);
    CHECK(bucket && bucket[0] == '2');
    CHECK_INT(quipu_period_get(db, "digest", bucket, 0, &found, &look), QUIPU_FOUND);
    CHECK(found.bucket && strcmp(found.bucket, bucket) == 0);
    while (quipu_period_wait(db, "digest", bucket, 0, &found, &look) == QUIPU_NONE) {
        CHECK_INT(quipu_period_close(db, "digest", &closed, NULL), QUIPU_DONE);
        usleep(5000);
    }
    CHECK(found.state == QUIPU_BUCKET_DONE && found.count == 1 && found.parts == 1);
    CHECK(strstr(look->json, "\"data\":{\"n\":1}"));
    CHECK_INT(quipu_period_wait(db, "digest", bucket, -1, &found, &look), QUIPU_FOUND);
    CHECK_INT(quipu_period_get(db, "digest", bucket, 2, &found, &look), QUIPU_MISSING);
    CHECK_INT(quipu_period_add(db, "digest", NULL, "{", 0, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(count_pages(quipu_period_list(db)), 1);
    CHECK(count_pages(quipu_period_buckets(db, "digest", "done")) >= 1);
    CHECK_INT(count_pages(quipu_period_buckets(db, "digest", "shut")), -1);
    CHECK_INT(quipu_period_delete(db, "digest", &reply), QUIPU_DONE);
    CHECK_INT(quipu_period_add(db, "digest", NULL, "1", 0, NULL, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_period_put(db, "digest", NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_period_put(db, "digest", &(struct quipu_period_options){.cron = "never"}, &reply),
              QUIPU_FAILED);
    CHECK_INT(quipu_period_put(db, "d",
                               &(struct quipu_period_options){.cron = "0 9 * * 1-5", .zone = "Europe/Rome"},
                               &reply),
              QUIPU_DONE);
    CHECK_INT(quipu_period_add(db, "d", NULL, "1", clock_now_ms(&clock_system), &bucket, &reply), QUIPU_DONE);
    quipu_reply_free(reply);
    quipu_reply_free(look);
}

TEST(periods_by_functions)
{
    on_every_engine(check_periods);
}
