/* Any bytes as what comes from outside: answers of functions and of the door, records, positions. The first
 * byte says as what; nothing may crash, and what is accepted must be sound. */
#include <stdlib.h>

#include "base/fail.h"
#include "trigger/consume.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_answer(struct slice text, struct arena *arena)
{
    struct record records[3] = {
        {.sequence = SLICE("100")}, {.sequence = SLICE("101")}, {.sequence = SLICE("200")}};
    struct answer answer;
    answer_read(text, true, records, 3, arena, &answer);
    ensure(answer.outcome == OUTCOME_DONE || answer.outcome == OUTCOME_PARTIAL ||
           answer.outcome == OUTCOME_FAILED);
    ensure(answer.done < 3);
    ensure((answer.outcome == OUTCOME_FAILED) == (answer.fault != NULL));
}

/* What is shown to Lambda's users must be JSON again. */
static void read_record(struct slice text, struct arena *arena)
{
    struct json_reader reader, again;
    struct raw_record raw;
    struct buf event = {0};
    json_begin(&reader, text, arena);
    if (!raw_record_read(&reader, &raw)) return;
    put_event_record(&event, &raw, SLICE("\"arn\""), raw.sequence.len % 2, arena);
    json_begin(&again, buf_view(&event), arena);
    ensure(json_skip(&again) && json_done(&again));
    ensure(lane_of_keys(raw.keys, SLICE("pk"), 7, arena) < 7);
    buf_free(&event);
}

/* The door has seen that it is JSON. */
static void read_position(struct slice text, struct arena *arena)
{
    struct position position = {0};
    struct json_reader reader;
    struct slice shard;
    json_begin(&reader, text, arena);
    if (!json_skip(&reader) || !json_done(&reader)) return;
    if (position_parse(text, arena, &position, &shard)) {
        ensure(position.lanes >= 1 && position.lanes <= LANES_MAX && shard.len);
        for (uint32_t i = 0; i < position.lanes; i++)
            ensure(position.at[i].len && position.at[i].len <= POINT_BYTES);
    }
    position_free(&position);
}

static void read_cancellation(struct slice text, struct arena *arena)
{
    struct dynamo_cancellation why = dynamo_cancellation(text, arena);
    ensure((why.first >= 0) == (why.code.len > 0) && (why.first >= 0) == (why.has_failed || why.is_refused));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    if (!size) return 0;
    struct slice text = arena_copy(&arena, (struct slice){(const char *)data + 1, size - 1});
    switch (data[0] % 4) {
    case 0: read_answer(text, &arena); break;
    case 1: read_record(text, &arena); break;
    case 2: read_position(text, &arena); break;
    default: read_cancellation(text, &arena); break;
    }
    arena_free(&arena);
    return 0;
}
