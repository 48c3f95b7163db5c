/* Watches: the whole room, with an engine in memory, and somebody who copies what changes. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"
#include "trigger/consume.h"
#include "trigger/trigger.h"
#include "unit/test.h"
#include "unit/trigger_stage.h"

struct copier {
    char folder[64];
    struct dynamo *dynamo;
    struct func *func;
    struct trigger *trigger;
    struct buf reply;
    _Atomic unsigned answers, records;
    _Atomic bool is_failing;
};

static int tell(struct copier *copier, const char *operation, const char *request)
{
    copier->reply.len = 0;
    return dynamo_call(copier->dynamo, slice_of(operation), slice_of(request), &copier->reply);
}

/* ---- who answers ---- */

/* A counter for each record, so that one that comes twice is seen. */
static void put_count(struct buf *out, struct slice id)
{
    if (out->len) buf_byte(out, ',');
    buf_text(out, "{\"Update\":{\"TableName\":\"copies\",\"Key\":{\"pk\":{\"S\":");
    json_put_string(out, id);
    buf_text(out, "}},\"UpdateExpression\":\"ADD times :one\","
                  "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}}");
}

static struct slice record_id(struct slice record, struct arena *arena)
{
    static const char *const names[] = {"eventID"};
    struct slice id;
    ensure(raw_members(arena, record, names, &id, 1));
    return raw_string(arena, id);
}

static bool copy_records(void *context, struct slice event, struct slice cause, struct arena *arena,
                         struct buf *reply)
{
    static const char *const names[] = {"Records"};
    struct copier *copier = context;
    struct slice records, record;
    struct json_reader reader;
    struct buf members = {0};
    (void)cause;
    copier->answers++;
    if (copier->is_failing) {
        buf_text(reply, "{\"errorType\":\"Test\",\"errorMessage\":\"not now\"}");
        return false;
    }
    ensure(raw_members(arena, event, names, &records, 1));
    json_begin(&reader, records, arena);
    json_peek(&reader);
    json_enter(&reader);
    while (json_element(&reader) && raw_take(&reader, &record)) {
        put_count(&members, record_id(record, arena));
        copier->records++;
    }
    buf_text(reply, "{\"quipu\":{\"transact\":[");
    buf_slice(reply, buf_view(&members));
    buf_text(reply, "]}}");
    buf_free(&members);
    return true;
}

/* An item for each record, which is the same when it comes again. */
static bool put_records(void *context, struct slice event, struct slice cause, struct arena *arena,
                        struct buf *reply)
{
    struct copier *copier = context;
    struct raw_walk walk;
    struct slice record;
    unsigned count = 0;
    const char *table = copier->is_failing ? "nowhere" : "copies"; /* one for all of them */
    (void)cause;
    copier->answers++;
    buf_text(reply, "{\"quipu\":{\"transact\":[");
    raw_walk_begin(&walk, arena, raw_member(arena, event, "Records"));
    while (raw_walk_next(&walk, NULL, &record)) {
        buf_printf(reply, "%s{\"Put\":{\"TableName\":\"%s\",\"Item\":{\"pk\":{\"S\":\"%.*s\"},",
                   count++ ? "," : "", table, SLICE_ARG(record_id(record, arena)));
        buf_text(reply, "\"times\":{\"N\":\"1\"}}}}");
    }
    buf_text(reply, "]}}");
    return true;
}

/* ---- the house ---- */

static void make_table(struct copier *copier, const char *name)
{
    char request[500];
    snprintf(request, sizeof request,
             "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\","
             "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],"
             "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\","
             "\"AttributeType\":\"S\"}],\"StreamSpecification\":{\"StreamEnabled\":true,"
             "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}",
             name);
    CHECK_INT(tell(copier, "CreateTable", request), 200);
}

static void put_things(struct copier *copier, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char request[200];
        snprintf(request, sizeof request,
                 "{\"TableName\":\"things\",\"Item\":{\"pk\":{\"S\":\"%d\"},\"kind\":{\"S\":\"%s\"}}}", i,
                 i % 2 ? "odd" : "even");
        CHECK_INT(tell(copier, "PutItem", request), 200);
    }
}

static void watch_things(struct copier *copier, const char *filter)
{
    trigger_watch(copier->trigger, &(struct trigger_watch){.name = "test/things",
                                                           .table = "things",
                                                           .filter = filter,
                                                           .answer = copy_records,
                                                           .context = copier});
}

static void open_trigger(struct copier *copier)
{
    char error[300];
    copier->func = func_open(&(struct func_options){.dynamo = copier->dynamo,
                                                    .clock = &clock_system,
                                                    .folder = copier->folder,
                                                    .region = "us-east-1",
                                                    .account = "000000000000"},
                             error, sizeof error);
    ensure(copier->func);
    copier->trigger = trigger_open(&(struct trigger_options){.dynamo = copier->dynamo,
                                                             .func = copier->func,
                                                             .clock = &clock_system,
                                                             .region = "us-east-1",
                                                             .account = "000000000000"},
                                   error, sizeof error);
    ensure(copier->trigger);
}

static void close_trigger(struct copier *copier)
{
    trigger_close(copier->trigger);
    func_close(copier->func);
}

static void copier_open(struct copier *copier)
{
    char error[300];
    *copier = (struct copier){.folder = "/tmp/quipu-watch-XXXXXX"};
    ensure(mkdtemp(copier->folder) != NULL);
    copier->dynamo = dynamo_open(":memory:", &(struct dynamo_options){.region = "us-east-1"}, error,
                                 sizeof error);
    ensure(copier->dynamo);
    make_table(copier, "copies");
    open_trigger(copier);
}

static void copier_close(struct copier *copier)
{
    char command[100];
    close_trigger(copier);
    dynamo_close(copier->dynamo);
    buf_free(&copier->reply);
    snprintf(command, sizeof command, "rm -rf %s", copier->folder);
    ensure(system(command) == 0);
}

static void wait_until_idle(struct copier *copier)
{
    for (int i = 0; i < 6000 && !trigger_is_idle(copier->trigger); i++) usleep(5000);
    CHECK(trigger_is_idle(copier->trigger));
}

static void check_copies(struct copier *copier, unsigned expected)
{
    CHECK_INT(tell(copier, "Scan", "{\"TableName\":\"copies\"}"), 200);
    CHECK_INT(count_text(buf_view(&copier->reply), "\"pk\""), expected);
    CHECK_INT(count_text(buf_view(&copier->reply), "\"times\":{\"N\":\"1\"}"), expected);
}

/* ---- tests ---- */

TEST(a_table_that_is_made_later_is_read_from_its_beginning)
{
    struct copier copier;
    copier_open(&copier);
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    wait_until_idle(&copier);
    make_table(&copier, "things");
    put_things(&copier, 0, 250);
    wait_until_idle(&copier); /* which it is not before, though nobody has told of the table */
    check_copies(&copier, 250);
    copier_close(&copier);
}

TEST(puts_of_a_watch_may_come_first)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    put_things(&copier, 0, 130);
    copier.is_failing = true; /* they are for a table that is not there: nothing is passed over */
    trigger_watch(copier.trigger, &(struct trigger_watch){.name = "test/things",
                                                          .table = "things",
                                                          .answer = put_records,
                                                          .context = &copier,
                                                          .puts_first = true});
    trigger_start(copier.trigger);
    while (copier.answers < 2) usleep(1000);
    check_copies(&copier, 0);
    copier.is_failing = false;
    wait_until_idle(&copier);
    check_copies(&copier, 130);
    unsigned answers = copier.answers;
    close_trigger(&copier); /* its position has moved: nothing comes again */
    open_trigger(&copier);
    trigger_watch(copier.trigger, &(struct trigger_watch){.name = "test/things",
                                                          .table = "things",
                                                          .answer = put_records,
                                                          .context = &copier,
                                                          .puts_first = true});
    trigger_start(copier.trigger);
    wait_until_idle(&copier);
    CHECK_INT(copier.answers, answers);
    copier_close(&copier);
}

TEST(a_watch_goes_on_where_it_was)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    for (int i = 0; i < 4; i++) {
        watch_things(&copier, NULL);
        watch_things(&copier, NULL); /* changes nothing */
        trigger_start(copier.trigger);
        put_things(&copier, i * 100, 100);
        if (i % 2) wait_until_idle(&copier);
        close_trigger(&copier);
        open_trigger(&copier);
    }
    check_copies(&copier, 400);
    copier_close(&copier);
}

TEST(a_table_that_is_made_again_is_read_from_its_beginning)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    put_things(&copier, 0, 20);
    wait_until_idle(&copier);
    CHECK_INT(tell(&copier, "DeleteTable", "{\"TableName\":\"things\"}"), 200);
    while (tell(&copier, "DescribeTable", "{\"TableName\":\"things\"}") == 200) usleep(1000);
    make_table(&copier, "things");
    put_things(&copier, 0, 20);
    wait_until_idle(&copier);
    check_copies(&copier, 40);
    struct buf metrics = {0};
    trigger_put_metrics(copier.trigger, &metrics);
    CHECK_INT(count_text(buf_view(&metrics), "\nquipu_trigger_watches 1\n"), 1);
    CHECK_INT(count_text(buf_view(&metrics), "\nquipu_trigger_mappings 0\n"), 1);
    buf_free(&metrics);
    copier_close(&copier);
}

TEST(a_watch_hears_only_what_its_filter_lets_through)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    trigger_start(copier.trigger);
    watch_things(&copier, "{\"dynamodb\":{\"NewImage\":{\"kind\":{\"S\":[\"odd\"]}}}}");
    put_things(&copier, 0, 100);
    wait_until_idle(&copier);
    CHECK_INT(copier.records, 50);
    check_copies(&copier, 50);
    copier_close(&copier);
}

TEST(what_could_not_be_answered_comes_again)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    copier.is_failing = true;
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    put_things(&copier, 0, 10);
    for (int i = 0; i < 6000 && copier.answers < 3; i++) usleep(5000);
    CHECK(!trigger_is_idle(copier.trigger));
    check_copies(&copier, 0);
    copier.is_failing = false;
    wait_until_idle(&copier);
    check_copies(&copier, 10);
    copier_close(&copier);
}

static bool has_positions(struct copier *copier)
{
    CHECK_INT(tell(copier, "Scan", "{\"TableName\":\"quipu-positions\"}"), 200);
    return count_text(buf_view(&copier->reply), "\"shard\"") > 0;
}

TEST(who_does_not_watch_any_more_is_not_asked_and_leaves_nothing)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    put_things(&copier, 0, 10);
    wait_until_idle(&copier);
    CHECK(has_positions(&copier));
    trigger_unwatch(copier.trigger, "test/things");
    unsigned answers = copier.answers;
    put_things(&copier, 10, 10);
    for (int i = 0; i < 6000 && has_positions(&copier); i++) usleep(5000);
    CHECK(!has_positions(&copier));
    CHECK_INT(copier.answers, answers);
    watch_things(&copier, NULL); /* anew: all that the stream still has */
    wait_until_idle(&copier);
    CHECK_INT(copier.records, 30);
    copier_close(&copier);
}

/* The new one is not taken away with the old one, whose id it has. */
TEST(who_watches_again_at_once_is_asked)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    for (int i = 0; i < 5; i++) {
        put_things(&copier, i * 10, 10);
        wait_until_idle(&copier);
        trigger_unwatch(copier.trigger, "test/things");
        watch_things(&copier, NULL);
    }
    put_things(&copier, 50, 10);
    wait_until_idle(&copier);
    CHECK_INT(tell(&copier, "Scan", "{\"TableName\":\"copies\"}"), 200);
    CHECK_INT(count_text(buf_view(&copier.reply), "\"pk\""), 60);
    copier_close(&copier);
}

TEST(positions_of_a_watch_that_was_never_found_are_removed_too)
{
    struct copier copier;
    copier_open(&copier);
    make_table(&copier, "things");
    watch_things(&copier, NULL);
    trigger_start(copier.trigger);
    put_things(&copier, 0, 10);
    wait_until_idle(&copier);
    close_trigger(&copier);
    open_trigger(&copier);
    watch_things(&copier, NULL);
    trigger_unwatch(copier.trigger, "test/things");
    trigger_start(copier.trigger);
    for (int i = 0; i < 6000 && has_positions(&copier); i++) usleep(5000);
    CHECK(!has_positions(&copier));
    CHECK_INT(copier.records, 10);
    copier_close(&copier);
}
