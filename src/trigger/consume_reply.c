/* What a function's invocation came to: its answer, the writes that it returned, or its failure. */
#include <stdio.h>

#include "base/json.h"
#include "trigger/consume.h"

#define EFFECTS_BYTES (LIMIT_TRANSACTION_BYTES - 64 * 1024) /* the rest is for the position */

/* For the document of a failure. */
static void remember(struct lane *lane, const struct invocation *invocation)
{
    bool has_failed = invocation->end == INVOCATION_FAILED;
    memcpy(lane->request_id, invocation->request_id, sizeof lane->request_id);
    memcpy(lane->version, invocation->version, sizeof lane->version);
    snprintf(lane->error_kind, sizeof lane->error_kind, "%s",
             has_failed && invocation->error_kind ? invocation->error_kind : "");
    lane->was_invoked |= has_failed || invocation->end == INVOCATION_ANSWERED;
}

/* The batch, or the end of its window, has failed. */
void lane_failed(struct lane *lane)
{
    if (lane->window.is_finishing)
        window_failed(lane);
    else
        lane_result(lane, OUTCOME_FAILED, 0);
}

void lane_fail(struct lane *lane, const char *why)
{
    struct reader *reader = lane->shard->reader;
    stats_add(&reader->consumer->counts.failures, 1);
    if (why)
        reader_note(reader, "PROBLEM: Function call failed: %s", why);
    else
        reader_note(reader, "PROBLEM: Function call failed");
    lane_failed(lane);
}

/* It was not even begun: nothing counts against the records. */
static void put_off(struct lane *lane, const struct invocation *invocation)
{
    struct reader *reader = lane->shard->reader;
    stats_add(&reader->consumer->counts.throttled, 1);
    if (invocation->end == INVOCATION_THROTTLED)
        reader_note(reader, "PROBLEM: Function call throttled");
    else if (invocation->end == INVOCATION_UNKNOWN)
        reader_note(reader, "PROBLEM: Function not found");
    else
        reader_note(reader, "PROBLEM: Function cannot be called: %.*s",
                    SLICE_ARG(buf_view(&invocation->reply)));
    if (lane->window.is_finishing)
        lane_pause(lane, true);
    else
        lane_result(lane, OUTCOME_UNSENT, 0);
}

/* So many records at a time return as much as a transaction takes. */
static void learn_cap(struct lane *lane, uint32_t count, size_t bytes)
{
    uint64_t by_count = (uint64_t)lane->take * LIMIT_EFFECTS / (count ? count : 1);
    uint64_t by_bytes = (uint64_t)lane->take * EFFECTS_BYTES / (bytes ? bytes : 1);
    uint64_t cap = by_count < by_bytes ? by_count : by_bytes;
    if (cap >= lane->take) cap = lane->take - 1;
    lane->cap = cap ? (uint32_t)cap : 1;
}

/* What fits twice may grow again: not all records return as much. */
static void unlearn_cap(struct lane *lane, uint32_t count, size_t bytes)
{
    if (!lane->cap || lane->take < lane->cap) return;
    if (count * 2 > LIMIT_EFFECTS || bytes * 2 > EFFECTS_BYTES) return;
    lane->cap += lane->cap / 2 + 1;
    if (lane->cap >= lane_mapping(lane)->batch_size) lane->cap = 0;
}

/* Puts the returned writes into the lane's settlement; false when they are too many, or wrong. */
static bool take_effects(struct lane *lane, struct batch_call *call)
{
    const struct environment *world = &call->consumer->world;
    struct settlement *settlement = &lane->settlement;
    struct slice members, cause;
    uint32_t count;
    char why[200] = "";
    enum effects found = world->effects(buf_view(&call->invocation.reply), UINT32_MAX, &call->arena, &members,
                                        &count, why, sizeof why);
    if (found == EFFECTS_BAD) lane_fail(lane, why);
    if (found != EFFECTS_FOUND) return found == EFFECTS_NONE;
    bool fits = count <= LIMIT_EFFECTS && members.len <= EFFECTS_BYTES;
    if (!fits && lane->take > 1) {
        learn_cap(lane, count, members.len);
        lane_result(lane, OUTCOME_TOO_MUCH, 0);
        return false;
    }
    if (!fits) {
        lane_fail(lane, "it returned more writes than one transaction takes");
        return false;
    }
    unlearn_cap(lane, count, members.len);
    if (!count) return true;
    cause = call->invocation.cause;
    if (!lane_mapping(lane)->watch)
        cause = world->cause_add(&call->arena, cause, lane->shard->reader->function_name);
    buf_slice(&settlement->members, members);
    buf_slice(&settlement->cause, cause);
    settlement->member_count = settlement->effect_count = count;
    settlement->has_effects = true;
    return true;
}

static void take_answer(struct lane *lane, struct batch_call *call)
{
    const struct mapping *mapping = lane_mapping(lane);
    struct answer answer = {.outcome = OUTCOME_DONE};
    if (mapping->reports_failures || mapping->tumbling_ms) /* else nothing in it is of interest */
        answer_read(buf_view(&call->invocation.reply), mapping->reports_failures && lane->take,
                    lane_head(lane), lane->take, &call->arena, &answer);
    if (answer.outcome == OUTCOME_FAILED) {
        lane_fail(lane, answer.fault);
        return;
    }
    bool keeps_any = answer.outcome == OUTCOME_DONE || answer.done;
    if (keeps_any && !take_effects(lane, call)) return;
    if (answer.outcome == OUTCOME_PARTIAL) {
        stats_add(&call->consumer->counts.failures, 1);
        reader_note(lane->shard->reader, "PROBLEM: Function call failed");
    }
    if (lane->window.is_finishing)
        window_finished(lane);
    else if (!keeps_any || window_takes_state(lane, answer.state))
        lane_result(lane, answer.outcome, answer.done);
}

/* A function tells why in its log; a target without a process has none. Its errors are Target.SOMETHING. */
static const char *words_of_target(struct slice reply, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, type = SLICE_NONE, message = SLICE_NONE;
    json_begin(&reader, reply, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return NULL;
    while (json_member(&reader, &name)) {
        struct slice *to = slice_equal(name, SLICE("errorType"))      ? &type
                           : slice_equal(name, SLICE("errorMessage")) ? &message
                                                                      : NULL;
        bool is_text = to && json_peek(&reader) == JSON_STRING;
        if (is_text ? !json_string(&reader, to) : !json_skip(&reader)) return NULL;
    }
    if (json_failed(&reader) || !slice_starts(type, SLICE("Target."))) return NULL;
    return arena_printf(arena, "%.*s", SLICE_ARG(message)).data;
}

/* Of a watch, whose failures are told in the log, all. */
static const char *own_words(const struct lane *lane, struct batch_call *call)
{
    struct slice reply = buf_view(&call->invocation.reply);
    if (!lane_mapping(lane)->watch) return words_of_target(reply, &call->arena);
    return arena_printf(&call->arena, "%.*s", SLICE_ARG(reply)).data;
}

void lane_take_reply(struct lane *lane, struct batch_call *call)
{
    struct invocation *invocation = &call->invocation;
    remember(lane, invocation);
    switch (invocation->end) {
    case INVOCATION_ANSWERED: take_answer(lane, call); break;
    case INVOCATION_FAILED: lane_fail(lane, own_words(lane, call)); break;
    case INVOCATION_THROTTLED:
    case INVOCATION_UNKNOWN:
    case INVOCATION_REFUSED: put_off(lane, invocation); break;
    }
}
