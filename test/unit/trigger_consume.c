/* Each setting of a mapping by its effect, with one consumer that nothing happens to. */
#include "unit/trigger_stage.h"

#include <stdlib.h>

#include "base/fail.h"

static unsigned count_records(const struct stage *stage)
{
    return count_text(buf_view(&stage->payloads), "\"eventID\"");
}

/* How many records each invocation had: "3 3 1 ". */
static struct slice batch_sizes(struct stage *stage)
{
    struct buf sizes = {0};
    struct slice rest = buf_view(&stage->payloads);
    while (rest.len) {
        const char *end = memchr(rest.data, '\n', rest.len);
        struct slice line = {rest.data, (size_t)(end - rest.data)};
        buf_printf(&sizes, "%u ", count_text(line, "\"eventID\""));
        rest = slice_from(rest, line.len + 1);
    }
    struct slice copy = arena_copy(&stage->arena, buf_view(&sizes));
    buf_free(&sizes);
    return copy;
}

static void put_many(struct stage *stage, const char *pk, int count)
{
    char text[16];
    snprintf(text, sizeof text, "x%llu", (unsigned long long)engine_stream_next(stage->engine));
    for (int i = 0; i < count; i++) stage_put(stage, pk, i, text); /* no two are the same */
}

static struct actor *start_with(struct stage *stage, struct mapping *mapping)
{
    struct actor *actor = stage_start(stage, 0);
    stage_set(actor, mapping);
    stage_settle(stage);
    return actor;
}

/* Nothing is left to do, as the next to ask is told. */
static bool is_quiet(struct stage *stage, struct actor *actor)
{
    consumer_is_quiet(actor->consumer);
    stage_pass(stage, 10);
    return consumer_is_quiet(actor->consumer);
}

/* ---- reading ---- */

TEST(every_record_is_handed_over_once)
{
    struct stage stage;
    stage_open_things(&stage, 4);
    put_many(&stage, "a", 50);
    struct actor *actor = start_with(&stage, stage_mapping(&stage));
    CHECK_INT(actor->state, MAPPING_ENABLED);
    CHECK_INT(count_records(&stage), 50);
    CHECK(is_quiet(&stage, actor));
    put_many(&stage, "b", 50);
    CHECK(!consumer_is_quiet(actor->consumer));
    stage_pass(&stage, 100);
    CHECK_INT(count_records(&stage), 100);
    CHECK_TEXT(slice_of(actor->result), "OK");
    CHECK(is_quiet(&stage, actor));
    stage_stop(&stage, actor);
    start_with(&stage, stage_mapping(&stage));
    CHECK_INT(count_records(&stage), 100);
    stage_close(&stage);
}

static unsigned quiet_answers;

static void ask_if_quiet(struct actor *actor)
{
    quiet_answers += consumer_is_quiet(actor->consumer);
}

/* Somebody asks on another thread between the taking of an order and the end of the step. */
TEST(what_was_quiet_is_not_when_an_order_is_taken)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    struct actor *actor = stage_start(&stage, 0);
    stage_put(&stage, "a", 1, "x");
    CHECK(is_quiet(&stage, actor)); /* nobody reads it yet */
    stage.on_call = ask_if_quiet;
    quiet_answers = 0;
    stage_set(actor, stage_mapping(&stage));
    consumer_step(actor->consumer);
    CHECK(stage.act_count > 0);
    CHECK_INT(quiet_answers, 0);
    stage.on_call = NULL;
    stage_settle(&stage);
    CHECK(is_quiet(&stage, actor));
    CHECK_INT(stage.invocations, 1);
    stage_close(&stage);
}

TEST(an_event_has_lambdas_form)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage_put(&stage, "a\\\"b", 1, "x");
    start_with(&stage, stage_mapping(&stage));
    struct buf expected = {0};
    buf_printf(
        &expected,
        "\"eventName\":\"INSERT\",\"eventVersion\":\"1.1\",\"eventSource\":\"aws:dynamodb\","
        "\"awsRegion\":\"us-east-1\",\"dynamodb\":{\"ApproximateCreationDateTime\":1794716005,"
        "\"Keys\":{\"pk\":{\"S\":\"a\\\"b\"},\"sk\":{\"N\":\"1\"}},\"NewImage\":{\"pk\":{\"S\":\"a\\\"b\"},"
        "\"sk\":{\"N\":\"1\"},\"text\":{\"S\":\"x\"}},\"SequenceNumber\":\"100000000000000000001\","
        "\"SizeBytes\":23,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},\"eventSourceARN\":\"%s\"}]}\n",
        stage.stream_arn);
    const char *from = strstr(stage.payloads.data, "\"eventName\"");
    CHECK(strncmp(stage.payloads.data, "{\"Records\":[{\"eventID\":\"", 23) == 0);
    CHECK_TEXT(((struct slice){from, stage.payloads.len - (size_t)(from - stage.payloads.data)}),
               arena_copy(&stage.arena, buf_view(&expected)).data);
    buf_free(&expected);
    stage_close(&stage);
}

TEST(records_of_the_service_itself_name_it_in_lower_case)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct json_reader reader;
    struct raw_record raw;
    json_begin(&reader,
               SLICE("{\"eventID\":\"1\",\"cause\":\"resize:1\",\"transaction\":\"t\","
                     "\"dynamodb\":{\"SequenceNumber\":\"42\"},"
                     "\"userIdentity\":{\"PrincipalId\":\"dynamodb.amazonaws.com\",\"Type\":\"Service\"}}"),
               &arena);
    CHECK(raw_record_read(&reader, &raw));
    CHECK_TEXT(raw.cause, "resize:1");
    CHECK_TEXT(raw.sequence, "42");
    put_event_record(&out, &raw, SLICE("\"arn\""), false, &arena);
    CHECK_TEXT(
        buf_view(&out),
        "{\"eventID\":\"1\",\"dynamodb\":{\"SequenceNumber\":\"42\"},"
        "\"userIdentity\":{\"principalId\":\"dynamodb.amazonaws.com\",\"type\":\"Service\"},"
        "\"eventSourceARN\":\"arn\"}");
    out.len = 0;
    put_event_record(&out, &raw, SLICE("\"arn\""), true, &arena); /* a watch gets all there is */
    CHECK(slice_starts(
        buf_view(&out),
        SLICE("{\"eventID\":\"1\",\"cause\":\"resize:1\",\"transaction\":\"t\",\"dynamodb\":{")));
    buf_free(&out);
    arena_free(&arena);
}

/* As ScyllaDB Alternator may tell it. */
TEST(a_change_of_what_was_there_is_no_insert)
{
    static const struct {
        const char *record, *event;
    } cases[] = {
        {"{\"eventName\":\"INSERT\",\"dynamodb\":{\"SequenceNumber\":\"42\",\"OldImage\":{}}}", "\"MODIFY\""},
        {"{\"eventName\":\"INSERT\",\"dynamodb\":{\"SequenceNumber\":\"42\",\"NewImage\":{}}}", "\"INSERT\""},
        {"{\"dynamodb\":{\"SequenceNumber\":\"42\",\"OldImage\":{}},\"eventName\":\"REMOVE\"}", "\"REMOVE\""}};
    for (int i = 0; i < 3; i++) {
        struct arena arena = {0};
        struct buf out = {0};
        struct json_reader reader;
        struct raw_record raw;
        json_begin(&reader, slice_of(cases[i].record), &arena);
        CHECK(raw_record_read(&reader, &raw));
        put_event_record(&out, &raw, SLICE("\"arn\""), false, &arena);
        CHECK_TEXT(raw_member(&arena, buf_view(&out), "eventName"), cases[i].event);
        buf_free(&out);
        arena_free(&arena);
    }
}

TEST(functions_do_not_get_the_exact_time_that_watches_get)
{
    static const char *const records[] = {
        "{\"eventID\":\"1\",\"dynamodb\":{\"SequenceNumber\":\"42\"},\"time\":1794716005340}",
        "{\"eventID\":\"1\",\"time\":1794716005340,\"dynamodb\":{\"SequenceNumber\":\"42\"}}"};
    for (int i = 0; i < 2; i++) {
        struct arena arena = {0};
        struct buf out = {0};
        struct json_reader reader;
        struct raw_record raw;
        json_begin(&reader, slice_of(records[i]), &arena);
        CHECK(raw_record_read(&reader, &raw));
        put_event_record(&out, &raw, SLICE("\"arn\""), false, &arena);
        CHECK_TEXT(buf_view(&out), "{\"eventID\":\"1\",\"dynamodb\":{\"SequenceNumber\":\"42\"},"
                                   "\"eventSourceARN\":\"arn\"}");
        out.len = 0;
        put_event_record(&out, &raw, SLICE("\"arn\""), true, &arena);
        CHECK(slice_contains(buf_view(&out), SLICE("\"time\":1794716005340")));
        buf_free(&out);
        arena_free(&arena);
    }
}

TEST(latest_begins_where_the_mapping_does)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "old", 20);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->start = START_LATEST;
    mapping_keep(mapping);
    struct actor *actor = start_with(&stage, mapping);
    CHECK_INT(actor->state, MAPPING_ENABLED);
    stage_crash(&stage, actor); /* before the first record came */
    put_many(&stage, "new", 20);
    start_with(&stage, mapping);
    CHECK_INT(count_records(&stage), 20);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"old\""), 0);
    stage_close(&stage);
}

TEST(latest_is_known_when_its_iterators_are_not_good_any_more)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "old", 20);
    stage_pass(&stage, 2000);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->start = START_LATEST;
    mapping_keep(mapping);
    stage_crash(&stage, start_with(&stage, mapping));
    stage_pass(&stage, 60 * 60 * 1000);
    put_many(&stage, "new", 20);
    start_with(&stage, mapping);
    stage_pass(&stage, 1000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"old\""), 0);
    CHECK_INT(count_records(&stage), 20);
    stage_close(&stage);
}

TEST(shards_that_come_later_are_read_from_their_begin)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->start = START_LATEST;
    start_with(&stage, mapping);
    put_many(&stage, "a", 5);
    stage_split(&stage);
    put_many(&stage, "a", 5);
    stage_split(&stage);
    put_many(&stage, "a", 5);
    stage_pass(&stage, 3000);
    CHECK_INT(count_records(&stage), 15);
    CHECK(is_quiet(&stage, &stage.actors[0]));
    stage_close(&stage);
}

TEST(iterators_are_renewed)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage_put(&stage, "a", 1, "x");
    start_with(&stage, stage_mapping(&stage));
    stage.now_ms += 3600 * 1000; /* all iterators have expired */
    stage_put(&stage, "a", 2, "x");
    stage_pass(&stage, 1000);
    CHECK_INT(count_records(&stage), 2);
    stage_close(&stage);
}

/* The first record is handled; then the server is down for a while, and the second one is cut off. */
static void check_cut_off(int64_t retention_ms, int64_t pause_ms)
{
    struct stage stage;
    stage_open_keeping(&stage, 1, retention_ms);
    stage_make_things(&stage);
    stage_put(&stage, "a", 1, "x");
    struct mapping *mapping = stage_mapping(&stage);
    mapping_keep(mapping);
    stage_stop(&stage, start_with(&stage, mapping));
    stage_put(&stage, "a", 2, "x");
    for (int i = 0; i < 3; i++) {
        stage.now_ms += pause_ms;
        stage_put(&stage, "b", i, "x");
        while (engine_keep_house(stage.engine)) {
        }
    }
    struct actor *actor = start_with(&stage, mapping);
    stage_pass(&stage, 3000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"a\"},\"sk\":{\"N\":\"2\"}},\"New"), 0);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"b\"},\"sk\":{\"N\":\"2\"}},\"New"), 1);
    CHECK_INT(stats_read(&actor->consumer->counts.trimmed), 1);
    CHECK(is_quiet(&stage, actor));
    stage_close(&stage);
}

TEST(records_that_were_cut_off_are_told_of)
{
    check_cut_off(3600 * 1000, 50 * 60 * 1000); /* of a shard that is there: on from its oldest record */
    check_cut_off(0, 40ll * 3600 * 1000);       /* with all of their shard */
}

TEST(a_stream_that_is_not_there_is_told_of)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->stream_arn = SLICE(
        "arn:aws:dynamodb:us-east-1:000000000000:table/absent/stream/2026-01-01T00:00:00.000");
    struct actor *actor = start_with(&stage, mapping);
    CHECK_TEXT(slice_of(actor->result), "PROBLEM: The stream was not found");
    stage_pass(&stage, 30000);
    CHECK(stage.calls < 20);
    CHECK(is_quiet(&stage, actor));
    stage_close(&stage);
}

static void check_closed(bool shared)
{
    struct stage stage;
    stage_open_things(&stage, 4);
    stage.shared = stage.without_news = shared;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->start = START_LATEST;
    struct actor *actor = start_with(&stage, mapping);
    put_many(&stage, "a", 5);
    CHECK_INT(stage_call(&stage, "DeleteTable", "{\"TableName\":\"things\"}"), 200);
    CHECK(!actor->is_over);
    stage_pass(&stage, 3000);
    CHECK_INT(count_records(&stage), 5);
    CHECK(actor->is_over && slice_starts(slice_of(actor->result), SLICE("PROBLEM: The stream is closed")));
    CHECK(is_quiet(&stage, actor));
    stage_make_things(&stage);
    put_many(&stage, "b", 5);
    mapping = stage_mapping(&stage); /* has the new stream */
    mapping->revision = 2;
    stage_set(actor, mapping);
    stage_pass(&stage, 3000);
    CHECK_INT(count_records(&stage), 10);
    CHECK(actor->state == MAPPING_ENABLED);
    CHECK_TEXT(slice_of(actor->result), "OK");
    stage_pass(&stage, 200000); /* the positions in the old stream are forgotten */
    CHECK_INT(stage_call(&stage, "Scan", "{\"TableName\":\"quipu-positions\",\"Select\":\"COUNT\"}"), 200);
    CHECK(slice_contains(buf_view(&stage.reply), SLICE("\"Count\":5,"))); /* of shards, and the start */
    CHECK_INT(count_records(&stage), 10);
    stage_close(&stage);
}

TEST(a_stream_that_is_closed_and_done_is_told_of_and_the_next_one_is_read)
{
    check_closed(false);
    check_closed(true);
}

/* ---- batches ---- */

TEST(batches_have_their_size)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    put_many(&stage, "a", 10);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->batch_size = 4;
    start_with(&stage, mapping);
    CHECK_TEXT(batch_sizes(&stage), "4 4 2 ");
    stage_close(&stage);
}

TEST(a_batch_gathers_for_its_window)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->batch_size = 3;
    mapping->window_ms = 10000;
    start_with(&stage, mapping);
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 9000);
    CHECK_INT(stage.invocations, 0);
    stage_put(&stage, "a", 2, "x");
    stage_pass(&stage, 900);
    CHECK_INT(stage.invocations, 0);
    stage_pass(&stage, 200);
    CHECK_TEXT(batch_sizes(&stage), "2 ");
    put_many(&stage, "b", 4);
    stage_pass(&stage, 100);
    CHECK_TEXT(batch_sizes(&stage), "2 3 ");
    stage.now_ms += 10000; /* a clock that is set on */
    stage_pass(&stage, 200);
    CHECK_TEXT(batch_sizes(&stage), "2 3 1 ");
    stage_close(&stage);
}

TEST(a_batch_is_not_larger_than_an_event_may_be)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    char *large = malloc(390 * 1024);
    memset(large, 'x', 390 * 1024 - 1);
    large[390 * 1024 - 1] = 0;
    for (int i = 0; i < 20; i++) stage_put(&stage, "a", i, large);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->window_ms = 1000;
    start_with(&stage, mapping);
    stage_pass(&stage, 1500);
    CHECK_TEXT(batch_sizes(&stage), "15 5 ");
    free(large);
    stage_close(&stage);
}

TEST(nothing_is_written_for_records_that_are_filtered_out)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    struct mapping *mapping = stage_mapping(&stage);
    stage_add_filter(mapping, "{\"dynamodb\":{\"NewImage\":{\"text\":{\"S\":[\"wanted\"]}}}}");
    stage_add_filter(mapping, "{\"eventName\":[\"REMOVE\"]}");
    struct actor *actor = start_with(&stage, mapping);
    unsigned calls = stage.calls;
    for (int i = 0; i < 500; i++) {
        stage_put(&stage, "a", i, i == 300 ? "wanted" : "other");
        if (i % 100 == 0) stage_pass(&stage, 1);
    }
    stage_pass(&stage, 10);
    CHECK_INT(count_records(&stage), 1);
    CHECK_INT(stage.invocations, 1);
    stage.operations.len = 0;
    CHECK(stage.calls - calls < 20);
    stage_pass(&stage, 1500);
    CHECK_INT(count_text(buf_view(&stage.operations), "UpdateItem"), 1); /* the position, lazily */
    stage_crash(&stage, actor);
    stage_close(&stage);
}

/* ---- lanes ---- */

static void note_concurrency(struct stage *stage, struct invocation *invocation)
{
    unsigned *most = stage->context, running = 1;
    for (unsigned i = 0; i < stage->act_count; i++) running += stage->acts[i].invocation != NULL;
    if (running > *most) *most = running;
    stage_answer(invocation, "null");
}

static unsigned most_at_once(uint32_t lanes)
{
    struct stage stage;
    unsigned most = 0;
    stage_open_things(&stage, 1);
    for (int i = 0; i < 300; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "key-%d", i % 100);
        stage_put(&stage, pk, i, "x");
    }
    stage.function = note_concurrency;
    stage.context = &most;
    stage.function_us = 1000;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->lanes = lanes;
    mapping->batch_size = 5;
    start_with(&stage, mapping);
    stage_pass(&stage, 2000);
    CHECK_INT(count_records(&stage), 300);
    stage_close(&stage);
    return most;
}

TEST(lanes_run_at_the_same_time)
{
    CHECK_INT(most_at_once(1), 1);
    CHECK_INT(most_at_once(4), 4);
    CHECK_INT(most_at_once(10), 10);
}

TEST(a_change_of_lanes_loses_and_repeats_nothing)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    for (uint32_t round = 0; round < 6; round++) {
        static const uint32_t lanes[] = {1, 4, 2, 10, 1, 3};
        struct mapping *mapping = stage_mapping(&stage);
        mapping->lanes = lanes[round];
        mapping->revision = round + 1;
        if (!stage.actors[0].consumer) stage_start(&stage, 0);
        stage_set(&stage.actors[0], mapping);
        for (int i = 0; i < 20; i++) {
            char pk[16];
            snprintf(pk, sizeof pk, "key-%d", i);
            put_many(&stage, pk, 1);
        }
        stage_pass(&stage, 500);
        CHECK_INT(count_records(&stage), 20 * (round + 1));
        CHECK_INT(stage.actors[0].consumer->readers->shards->lane_count, lanes[round]);
        if (round == 2) stage_crash(&stage, &stage.actors[0]);
    }
    stage_close(&stage);
}

/* ---- causes ---- */

static void put_by(struct stage *stage, const char *pk, const char *cause)
{
    struct dynamo_call call = {.name = SLICE("PutItem"),
                               .request = arena_printf(&stage->arena,
                                                       "{\"TableName\":\"things\","
                                                       "\"Item\":{\"pk\":{\"S\":\"%s\"},"
                                                       "\"sk\":{\"N\":\"1\"}}}",
                                                       pk),
                               .cause = slice_of(cause)};
    stage_run(stage, &call);
}

static void check_loops(uint32_t depth_max, bool is_allowed, const char *expected, unsigned looped)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage.allows_loops = is_allowed;
    stage_make_table(&stage, "dead", "id");
    put_by(&stage, "stranger", "");
    put_by(&stage, "other", "resize:3");
    put_by(&stage, "once", "worker:1");
    put_by(&stage, "twice", "resize:1,worker:2");
    put_by(&stage, "late", "");
    struct mapping *mapping = stage_mapping(&stage);
    mapping->depth_max = depth_max;
    mapping->on_failure = SLICE("dead");
    start_with(&stage, mapping);
    CHECK_TEXT(batch_sizes(&stage), expected);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"cause\""), 0);
    stage_call(&stage, "Scan", "{\"TableName\":\"dead\"}");
    CHECK_INT(count_text(buf_view(&stage.reply), "RecursiveInvocation"), looped);
    CHECK(stage.queue_wakes == looped);
    CHECK_INT(count_text(buf_view(&stage.log), "LOOP function worker was not called"), looped);
    stage_close(&stage);
}

TEST(what_a_function_caused_is_kept_from_it_up_to_a_depth)
{
    check_loops(0, false, "2 1 ", 1); /* both in one document */
    check_loops(1, false, "3 1 ", 1);
    check_loops(2, false, "5 ", 0);
    check_loops(0, true, "5 ", 0);
}

static void write_elsewhere(struct stage *stage, struct invocation *invocation)
{
    (void)stage;
    CHECK_TEXT(invocation->cause, "resize:1,worker:1");
    stage_answer(invocation, "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"things\","
                             "\"Item\":{\"pk\":{\"S\":\"made\"},\"sk\":{\"N\":\"1\"}}}}]}}");
}

TEST(effects_carry_the_lineage_of_their_records)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage.function = write_elsewhere;
    put_by(&stage, "a", "resize:1");
    put_by(&stage, "b", "worker:1");
    struct mapping *mapping = stage_mapping(&stage);
    mapping->depth_max = 1;
    struct actor *actor = start_with(&stage, mapping);
    stage_pass(&stage, 10);
    CHECK_INT(stage.invocations, 1); /* what it wrote itself is worker:2 */
    CHECK_INT(stats_read(&actor->consumer->counts.records_looped), 1);
    stage_close(&stage);
}

/* ---- a mapping's life ---- */

static struct mapping *revised(struct stage *stage, uint64_t revision, bool enabled)
{
    struct mapping *mapping = stage_mapping(stage);
    mapping->revision = revision;
    mapping->enabled = enabled;
    return mapping;
}

TEST(a_mapping_is_disabled_and_enabled_where_it_was)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "a", 5);
    struct actor *actor = start_with(&stage, revised(&stage, 1, true));
    CHECK_INT(count_records(&stage), 5);
    stage_set(actor, revised(&stage, 2, false));
    stage_pass(&stage, 200);
    CHECK_INT(actor->state, MAPPING_DISABLED);
    put_many(&stage, "b", 5);
    stage_pass(&stage, 200);
    CHECK_INT(count_records(&stage), 5);
    CHECK(is_quiet(&stage, actor));
    stage_set(actor, revised(&stage, 3, true));
    stage_pass(&stage, 200);
    CHECK_INT(actor->state, MAPPING_ENABLED);
    CHECK_INT(count_records(&stage), 10);
    stage_set(actor, revised(&stage, 2, false)); /* an old one */
    put_many(&stage, "c", 5);
    stage_pass(&stage, 200);
    CHECK_INT(count_records(&stage), 15);
    stage_close(&stage);
}

TEST(a_batch_under_way_ends_before_its_mapping_is_disabled)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    put_many(&stage, "a", 5);
    stage.function_us = 500000;
    struct actor *actor = start_with(&stage, revised(&stage, 1, true));
    stage_set(actor, revised(&stage, 2, false));
    stage_pass(&stage, 300);
    CHECK(actor->state == MAPPING_ENABLED);
    stage_pass(&stage, 300);
    CHECK(actor->state == MAPPING_DISABLED);
    stage.function_us = 0;
    stage_set(actor, revised(&stage, 3, true));
    stage_pass(&stage, 300);
    CHECK_INT(count_records(&stage), 5);
    stage_close(&stage);
}

TEST(a_mapping_that_begins_disabled_says_so)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    struct actor *actor = start_with(&stage, revised(&stage, 1, false));
    stage_pass(&stage, 100);
    CHECK_INT(actor->state, MAPPING_DISABLED);
    stage_close(&stage);
}

TEST(deletion_removes_all_positions)
{
    struct stage stage;
    stage_open_things(&stage, 40);
    put_many(&stage, "a", 5);
    struct actor *actor = start_with(&stage, stage_mapping(&stage));
    stage_call(&stage, "Scan", "{\"TableName\":\"quipu-positions\",\"Select\":\"COUNT\"}");
    CHECK_TEXT(buf_view(&stage.reply), "{\"Count\":40,\"ScannedCount\":40}");
    consumer_command(actor->consumer, NULL, SLICE(STAGE_ID));
    stage_pass(&stage, 200);
    CHECK_INT(actor->state, MAPPING_DELETING);
    CHECK(actor->consumer->readers == NULL);
    stage_call(&stage, "Scan", "{\"TableName\":\"quipu-positions\",\"Select\":\"COUNT\"}");
    CHECK_TEXT(buf_view(&stage.reply), "{\"Count\":0,\"ScannedCount\":0}");
    consumer_command(actor->consumer, NULL, SLICE(STAGE_ID)); /* one that is not there is gone at once */
    unsigned told = actor->states_told;
    stage_settle(&stage);
    CHECK_INT(actor->states_told, told + 1);
    stage_close(&stage);
}

TEST(positions_that_somebody_deleted_are_begun_anew)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    put_many(&stage, "a", 3);
    start_with(&stage, stage_mapping(&stage));
    CHECK_INT(stage_call(&stage, "DeleteTable", "{\"TableName\":\"quipu-positions\"}"), 200);
    put_many(&stage, "b", 3);
    stage_pass(&stage, 20000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"b\"},\"sk\":{\"N\":\"0\"}},\"New"), 2); /* and again */
    put_many(&stage, "c", 3);
    stage_pass(&stage, 1000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"c\"},\"sk\":{\"N\":\"0\"}},\"New"), 1);
    stage_close(&stage);
}

TEST(a_database_that_was_rolled_back_is_read_anew)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "a", 5);
    struct actor *actor = start_with(&stage, stage_mapping(&stage));
    CHECK(is_quiet(&stage, actor));
    struct engine_snapshot *snapshot = engine_snapshot_take(stage.engine);
    put_many(&stage, "b", 50);
    stage_pass(&stage, 100);
    CHECK_INT(count_records(&stage), 55);
    engine_snapshot_restore(stage.engine, snapshot);
    put_many(&stage, "c", 5); /* with numbers that those before had */
    stage_pass(&stage, 1000);
    CHECK_INT(count_records(&stage), 60);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"c\"},\"sk\":{\"N\":\"0\"}},\"New"), 1);
    CHECK(is_quiet(&stage, actor));
    engine_snapshot_free(snapshot);
    stage_close(&stage);
}

/* ---- where nobody tells of news ---- */

TEST(a_shard_is_not_asked_more_often_than_the_service_allows)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage.without_news = true;
    struct actor *actor = start_with(&stage, stage_mapping(&stage));
    for (int second = 0; second < 20; second++) {
        put_many(&stage, "a", 10);
        stage.operations.len = 0;
        stage_pass(&stage, 1000);
        CHECK(count_text(buf_view(&stage.operations), "GetRecords") <= 5);
    }
    CHECK_INT(count_records(&stage), 200);
    stage_pass(&stage, 10000);
    stage.operations.len = 0;
    stage_pass(&stage, 10000);
    CHECK_INT(count_text(buf_view(&stage.operations), "GetRecords"), 10); /* the pauses have grown */
    CHECK(!consumer_is_quiet(actor->consumer));
    stage_pass(&stage, 250);
    CHECK(consumer_is_quiet(actor->consumer));
    stage_close(&stage);
}
