/* Each setting of a mapping by its effect, with one consumer that nothing happens to. */
#include "unit/trigger_stage.h"

#include "base/fail.h"

static void accept_all(struct stage *stage, struct invocation *invocation)
{
    (void)stage;
    stage_answer(invocation, "null");
}

static void open_stage(struct stage *stage, uint32_t shards)
{
    stage_open(stage, shards);
    stage_make_things(stage);
    stage->function = accept_all;
}

static unsigned count_records(const struct stage *stage)
{
    return count_text(buf_view(&stage->payloads), "\"eventID\"");
}

TEST(every_record_is_handed_over_once)
{
    struct stage stage;
    open_stage(&stage, 4);
    for (int i = 0; i < 50; i++) stage_put(&stage, "a", i, "x");
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, stage_mapping(&stage));
    stage_settle(&stage);
    CHECK_INT(actor->state, MAPPING_ENABLED);
    CHECK_INT(count_records(&stage), 50);
    for (int i = 0; i < 50; i++) stage_put(&stage, "b", i, "x");
    stage_pass(&stage, 100);
    CHECK_INT(count_records(&stage), 100);
    CHECK_TEXT(slice_of(actor->result), "OK");
    CHECK(consumer_is_quiet(actor->consumer) || (stage_settle(&stage), consumer_is_quiet(actor->consumer)));
    stage_close(&stage);
}
