/* Several servers on one stream: leases, shares, take-overs. */
#include "unit/trigger_stage.h"

#include "base/fail.h"

static void open_shared(struct stage *stage, uint32_t shards)
{
    stage_open_things(stage, shards);
    stage->shared = stage->without_news = true;
}

static struct actor *join(struct stage *stage, unsigned number)
{
    struct actor *actor = stage_start(stage, number);
    stage_set(actor, stage_mapping(stage));
    return actor;
}

static unsigned held_by(const struct actor *actor)
{
    return (unsigned)stats_read(&actor->consumer->counts.shards_held);
}

static void put_many(struct stage *stage, const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        char pk[32];
        snprintf(pk, sizeof pk, "%s-%d", name, i);
        stage_put(stage, pk, i, "x");
    }
}

static unsigned count_records(const struct stage *stage)
{
    return count_text(buf_view(&stage->payloads), "\"eventID\"");
}

TEST(a_newcomer_gets_its_share)
{
    struct stage stage;
    open_shared(&stage, 6);
    struct actor *first = join(&stage, 0);
    stage_pass(&stage, 1000);
    CHECK_INT(held_by(first), 6);
    struct actor *second = join(&stage, 1);
    stage_pass(&stage, 20000);
    CHECK_INT(held_by(first), 3);
    CHECK_INT(held_by(second), 3);
    struct actor *third = join(&stage, 2);
    stage_pass(&stage, 30000);
    CHECK_INT(held_by(first), 2);
    CHECK_INT(held_by(second), 2);
    CHECK_INT(held_by(third), 2);
    put_many(&stage, "a", 60);
    stage_pass(&stage, 3000);
    CHECK_INT(count_records(&stage), 60);
    stage_close(&stage);
}

TEST(shards_of_the_dead_are_taken_over_when_their_lease_is_over)
{
    struct stage stage;
    open_shared(&stage, 4);
    struct actor *first = join(&stage, 0), *second = join(&stage, 1);
    stage_pass(&stage, 20000);
    CHECK_INT(held_by(first) + held_by(second), 4);
    CHECK_INT(held_by(first), 2);
    stage_crash(&stage, first);
    put_many(&stage, "a", 40);
    stage_pass(&stage, 5000);
    CHECK_INT(held_by(second), 2);
    CHECK(count_records(&stage) < 40);
    stage_pass(&stage, 15000);
    CHECK_INT(held_by(second), 4);
    CHECK_INT(count_records(&stage), 40);
    stage_close(&stage);
}

TEST(who_leaves_gives_its_leases_back)
{
    struct stage stage;
    open_shared(&stage, 4);
    struct actor *first = join(&stage, 0);
    stage_pass(&stage, 1000);
    stage_stop(&stage, first);
    struct actor *second = join(&stage, 1);
    stage_pass(&stage, 1000);
    CHECK_INT(held_by(second), 4); /* nobody waited for a lease to end */
    stage_close(&stage);
}

TEST(who_cannot_renew_stops_before_others_begin)
{
    struct stage stage;
    open_shared(&stage, 2);
    struct actor *first = join(&stage, 0);
    stage_pass(&stage, 1000);
    CHECK_INT(held_by(first), 2);
    /* Nothing reaches the door any more; time goes by. */
    for (int i = 0; i < 100 && held_by(first); i++) {
        stage.ticks_us += 200000;
        stage.now_ms += 200;
        consumer_step(first->consumer);
        for (unsigned j = stage.act_count; j-- > 0;) stage_perform_with(&stage, j, MISHAP_NEVER_SENT);
        if (i == 30) CHECK_INT(held_by(first), 2);
    }
    CHECK_INT(held_by(first), 0);
    CHECK(stage.now_ms < 1794716005340 + 1000 + 10000); /* the lease as the item has it */
    stage_close(&stage);
}

TEST(a_stale_owner_moves_nothing)
{
    struct stage stage;
    open_shared(&stage, 1);
    put_many(&stage, "a", 3);
    stage.function_us = 60 * 1000 * 1000;
    struct actor *first = join(&stage, 0);
    stage_pass(&stage, 2000); /* its function runs */
    CHECK_INT(stage.act_count, 1);
    struct act slow = stage.acts[0];
    stage.act_count = 0;
    stage.function_us = 0;
    stage.now_ms += 60000; /* its lease is over by the clock of others; it has not noticed */
    struct actor *second = join(&stage, 1);
    for (int i = 0; i < 100; i++) {
        consumer_step(second->consumer);
        while (stage.act_count) stage_perform(&stage, 0);
        stage.ticks_us += 20000;
    }
    CHECK_INT(held_by(second), 1);
    CHECK_INT(count_records(&stage), 3);
    stage.acts[stage.act_count++] = slow;
    stage_perform(&stage, 0); /* now the first one's function answers */
    stage_pass(&stage, 10000);
    CHECK_INT(held_by(first) + held_by(second), 1);
    CHECK(stats_read(&first->consumer->counts.leases_lost) >= 1);
    CHECK_INT(stats_read(&first->consumer->counts.records_done), 0);
    CHECK_INT(stats_read(&second->consumer->counts.records_done), 3);
    stage_close(&stage);
}

TEST(a_mapping_that_was_deleted_elsewhere_is_not_begun_anew)
{
    struct stage stage;
    open_shared(&stage, 2);
    struct actor *first = join(&stage, 0), *second = join(&stage, 1);
    put_many(&stage, "a", 10);
    stage_pass(&stage, 20000);
    CHECK_INT(count_records(&stage), 10);
    consumer_command(first->consumer, NULL, SLICE(STAGE_ID));
    stage_pass(&stage, 20000); /* the second one has not heard of it yet */
    CHECK_INT(count_records(&stage), 10);
    CHECK_INT(held_by(second), 0);
    consumer_command(second->consumer, NULL, SLICE(STAGE_ID));
    stage_pass(&stage, 1000);
    CHECK_INT(second->state, MAPPING_DELETING);
    stage_close(&stage);
}
