/* Moving a mapping's position: each place that it can go to, while it reads, is paused, or its server is gone. */
#include "unit/trigger_stage.h"

#include "base/fail.h"

static void put_many(struct stage *stage, const char *pk, int count)
{
    char text[16];
    snprintf(text, sizeof text, "x%llu", (unsigned long long)engine_stream_next(stage->engine));
    for (int i = 0; i < count; i++) stage_put(stage, pk, i, text);
}

/* A mapping after so many changes, the last of which moved it. */
static struct mapping *moved(const struct stage *stage, unsigned revision, const char *to)
{
    struct mapping *mapping = stage_mapping(stage);
    mapping->revision = revision;
    mapping->move = (struct mapping_move){.number = revision, .to = slice_of(to)};
    return mapping;
}

/* How many records of a key were handed over since this was last asked. */
static unsigned heard(struct stage *stage, const char *pk)
{
    char key[40];
    stage_pass(stage, 3000);
    snprintf(key, sizeof key, "\"Keys\":{\"pk\":{\"S\":\"%s\"}", pk);
    unsigned count = count_text(buf_view(&stage->payloads), key);
    if (!count) return 0;
    stage->payloads.len = 0;
    return count;
}

TEST(moved_to_the_start_it_hands_all_over_again)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "a", 4);
    stage_split(&stage);
    put_many(&stage, "a", 3);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, stage_mapping(&stage));
    CHECK_INT(heard(&stage, "a"), 7);
    stage_set(actor, moved(&stage, 2, "TRIM_HORIZON"));
    CHECK_INT(heard(&stage, "a"), 7);
    CHECK_INT(actor->state, MAPPING_ENABLED);
    /* Once: neither a change of its settings nor another server makes it again. */
    struct mapping *changed = moved(&stage, 2, "TRIM_HORIZON");
    changed->revision = 3;
    changed->batch_size = 1;
    stage_set(actor, mapping_keep(changed));
    CHECK_INT(heard(&stage, "a"), 0);
    stage_crash(&stage, actor);
    stage_set(stage_start(&stage, 0), changed);
    CHECK_INT(heard(&stage, "a"), 0);
    stage_close(&stage);
}

TEST(moved_to_the_end_it_skips_what_waits)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    struct actor *actor = stage_start(&stage, 0);
    struct mapping *paused = stage_mapping(&stage);
    paused->enabled = false;
    stage_set(actor, paused);
    put_many(&stage, "old", 10);
    stage_split(&stage);
    put_many(&stage, "old", 10);
    stage_pass(&stage, 100);
    struct mapping *mapping = moved(&stage, 2, "LATEST");
    mapping->enabled = false;
    unsigned told = actor->states_told;
    stage_set(actor, mapping);
    stage_pass(&stage, 1000);
    CHECK_INT(actor->state, MAPPING_DISABLED); /* told when it has been moved, and it reads nothing */
    CHECK(actor->states_told > told);
    put_many(&stage, "new", 5);
    stage_pass(&stage, 10 * 60 * 1000);
    CHECK_INT(stage.invocations, 0);
    mapping = moved(&stage, 2, "LATEST");
    mapping->revision = 3;
    stage_set(actor, mapping);
    CHECK_INT(heard(&stage, "new"), 5);
    CHECK_INT(heard(&stage, "old"), 0);
    stage_close(&stage);
}

TEST(moved_to_a_time_it_goes_on_with_the_changes_since)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    stage.without_news = true; /* as from elsewhere: the time is that of the records */
    put_many(&stage, "old", 5);
    stage_pass(&stage, 2000);
    int64_t since_ms = stage.now_ms;
    put_many(&stage, "new", 6);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, stage_mapping(&stage));
    CHECK_INT(heard(&stage, "old"), 5);
    struct mapping *mapping = moved(&stage, 2, "LATEST");
    mapping->move.since_ms = since_ms;
    mapping->lanes = 3;
    stage.payloads.len = 0;
    stage_set(actor, mapping);
    stage_pass(&stage, 3000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"S\":\"old\""), 0);
    CHECK_INT(heard(&stage, "new"), 6);
    stage_close(&stage);
}

TEST(moved_behind_a_sequence_number_in_one_shard)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "a", 6);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, stage_mapping(&stage));
    CHECK_INT(heard(&stage, "a"), 6);
    stage_call(&stage, "Query",
               "{\"TableName\":\"quipu-positions\",\"KeyConditionExpression\":\"mapping = :id\","
               "\"ExpressionAttributeValues\":{\":id\":{\"S\":\"" STAGE_ID "\"}}}");
    struct slice items = raw_member(&stage.arena, buf_view(&stage.reply), "Items"), item, shard = SLICE_NONE;
    struct point last = POINT_HORIZON;
    struct raw_look look;
    raw_look_begin(&look, &stage.arena, items);
    while (raw_look_next(&look, NULL, &item)) {
        struct position position = {0};
        struct slice id;
        if (position_parse(item, &stage.arena, &position, &id) && point_is_number(&position.at[0])) {
            shard = id;
            last = position.at[0];
        }
        position_free(&position);
    }
    CHECK(shard.len > 0);
    struct mapping *mapping = moved(&stage, 2, "");
    /* Two before the last: numbers of one shard's records follow each other. */
    char digits[POINT_BYTES];
    memcpy(digits, last.text, last.len);
    ensure(digits[last.len - 1] >= '2');
    digits[last.len - 1] = (char)(digits[last.len - 1] - 2);
    mapping->move.to = arena_copy(&mapping->arena, (struct slice){digits, last.len});
    mapping->move.shard = arena_copy(&mapping->arena, shard);
    stage_set(actor, mapping);
    CHECK_INT(heard(&stage, "a"), 2);
    stage_close(&stage);
}

TEST(a_move_is_made_by_whoever_comes_next)
{
    struct stage stage;
    stage_open_things(&stage, 2);
    put_many(&stage, "a", 6);
    for (unsigned calls = 0;; calls++) { /* it is gone after so many calls of the database */
        struct actor *actor = stage_start(&stage, 0);
        stage_set(actor, moved(&stage, calls + 1, "TRIM_HORIZON"));
        for (unsigned done = 0; done < calls; done++) {
            for (int i = 0; i < 50 && !stage.act_count; i++) {
                stage.ticks_us += 20000;
                stage.now_ms += 20;
                consumer_step(actor->consumer);
            }
            if (stage.act_count) stage_perform(&stage, 0);
        }
        bool is_through = stage.invocations > 0;
        stage_crash(&stage, actor);
        stage.act_count = 0;
        if (is_through) break;
        stage_set(stage_start(&stage, 0), moved(&stage, calls + 1, "TRIM_HORIZON"));
        CHECK_INT(heard(&stage, "a"), 6);
        stage_crash(&stage, &stage.actors[0]);
        stage.act_count = stage.invocations = 0;
    }
    stage_close(&stage);
}

TEST(where_latest_was_is_known_until_every_lane_has_moved)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    for (int i = 0; i < 8; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "k%d", i);
        stage_put(&stage, pk, 1, "old");
    }
    stage_pass(&stage, 2000);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->start = START_LATEST;
    mapping->lanes = 4;
    mapping_keep(mapping);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, mapping);
    stage_pass(&stage, 100);
    stage.function_us = 5 * 1000 * 1000;
    for (int i = 0; i < 8; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "k%d", i);
        stage_put(&stage, pk, 2, "new");
    }
    stage_pass(&stage, 100);
    CHECK(stage.act_count >=
          2); /* one lane's call ends and is committed, the others run when the server dies */
    stage_perform(&stage, 0);
    stage.function_us = 0;
    for (int i = 0; i < 20; i++) {
        consumer_step(actor->consumer);
        for (unsigned j = stage.act_count; j-- > 0;)
            if (stage.acts[j].call) stage_perform(&stage, j);
    }
    stage_crash(&stage, actor);
    stage.act_count = 0;
    stage_set(stage_start(&stage, 0), mapping);
    stage_pass(&stage, 5000);
    CHECK_INT(count_text(buf_view(&stage.payloads), "\"old\""), 0);
    CHECK(count_text(buf_view(&stage.payloads), "\"new\"") >= 8);
    stage_close(&stage);
}

static void fail(struct stage *stage, struct invocation *invocation)
{
    (void)stage;
    stage_fail(invocation, "always");
}

/* The document of before may have been redriven, and its id may not be used again. */
TEST(what_fails_again_after_a_move_is_told_of_anew)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage_make_table(&stage, "dead", "id");
    put_many(&stage, "a", 1);
    stage.function = fail;
    struct actor *actor = stage_start(&stage, 0);
    for (unsigned revision = 1; revision <= 3; revision++) {
        struct mapping *mapping = revision == 1 ? stage_mapping(&stage) : moved(&stage, revision, "TRIM_HORIZON");
        mapping->retries_max = 0;
        mapping->on_failure = SLICE("dead");
        stage_set(actor, mapping);
        CHECK_INT(heard(&stage, "a"), 1);
        stage_call(&stage, "Scan", "{\"TableName\":\"dead\",\"Select\":\"COUNT\"}");
        CHECK_INT(count_text(buf_view(&stage.reply), (const char *[]){"", ":1,", ":2,", ":3,"}[revision]), 1);
    }
    stage_close(&stage);
}
