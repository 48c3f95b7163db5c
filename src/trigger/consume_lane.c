/* A lane: records of a shard in their order, handed to the function one batch at a time.
 *
 * A batch at hand is a stack of segments: at first one, all of the batch; where it is split, the halves.
 * The uppermost is tried; it is taken away as its records are done. */
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/ring.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define EFFECTS_BYTES     (LIMIT_TRANSACTION_BYTES - 64 * 1024) /* the rest is for the position */
#define PAYLOAD_BYTES     256 /* of an event around its records, but for a window's state */
#define RETRY_MAX_US      10000000
#define THROTTLE_MAX_US   1000000
#define LOOP_LOG_US       60000000 /* one line a minute is enough to be heard */
#define LANE_CAPACITY     16
#define SPARE_BATCHES     16
#define SPARE_BATCH_BYTES (2 * 1024 * 1024) /* one that has grown larger is given back */

/* ---- the queue ---- */

struct record *lane_head(const struct lane *lane)
{
    return &lane->records[lane->first];
}

static void make_room(struct lane *lane)
{
    if (lane->first + lane->count < lane->capacity) return;
    if (lane->first > lane->capacity / 2) {
        memmove(lane->records, lane_head(lane), lane->count * sizeof *lane->records);
    } else {
        lane->capacity = lane->capacity ? lane->capacity * 2 : LANE_CAPACITY;
        struct record *larger = must_alloc(lane->capacity * sizeof *larger);
        if (lane->count) memcpy(larger, lane_head(lane), lane->count * sizeof *larger);
        free(lane->records);
        lane->records = larger;
    }
    lane->first = 0;
}

static void count_bytes(struct lane *lane, size_t more, size_t less)
{
    struct consumer *consumer = lane->shard->reader->consumer;
    lane->bytes += more - less;
    lane->shard->bytes += more - less;
    consumer->buffered_bytes += more - less;
    atomic_store_explicit(&consumer->counts.buffered_bytes, consumer->buffered_bytes, memory_order_relaxed);
}

void lane_add(struct lane *lane, const struct record *record)
{
    make_room(lane);
    lane->records[lane->first + lane->count++] = *record;
    count_bytes(lane, record->event.len, 0);
}

static void lane_pop(struct lane *lane, uint32_t count)
{
    ensure(count <= lane->count);
    for (uint32_t i = 0; i < count; i++) {
        struct record *record = lane_head(lane);
        count_bytes(lane, 0, record->event.len);
        record_free(record);
        lane->first++;
        lane->count--;
    }
}

void lane_free(struct lane *lane)
{
    lane_pop(lane, lane->count);
    free(lane->records);
    buf_free(&lane->settlement.effects);
    buf_free(&lane->settlement.children);
    buf_free(&lane->settlement.cause);
    buf_free(&lane->settlement.state);
    buf_free(&lane->window.state);
    buf_free(&lane->error);
}

const struct mapping *lane_mapping(const struct lane *lane)
{
    return lane->shard->reader->mapping;
}

bool lane_has_room(const struct lane *lane)
{
    uint32_t at_hand = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < lane->depth; i++) at_hand += lane->segments[i];
    for (uint32_t i = 0; i < at_hand && lane->bytes > LIMIT_EVENT_BYTES; i++)
        bytes += lane_head(lane)[i].event.len;
    return lane->count - at_hand < lane_mapping(lane)->batch_size && lane->bytes - bytes < LIMIT_EVENT_BYTES;
}

/* ---- what is done with a batch ---- */

static uint32_t *segment(struct lane *lane)
{
    return &lane->segments[lane->depth - 1];
}

static void rest(struct lane *lane, int64_t pause_us)
{
    lane->state = LANE_PAUSED;
    lane->retry = task_after_us(lane->shard->reader->consumer->host, pause_us);
    shard_touch(lane->shard);
}

void lane_pause(struct lane *lane, bool is_throttled)
{
    lane->pauses++;
    rest(lane, retry_after_us(lane->pauses, is_throttled ? THROTTLE_MAX_US : RETRY_MAX_US,
                              consumer_random(lane->shard->reader->consumer)));
}

/* The next commit moves the lane behind so many records. */
static void lane_settle(struct lane *lane, uint32_t moves)
{
    lane->state = LANE_SETTLED;
    lane->settlement.moves = moves;
    lane->settlement.number = lane->shard->settled++;
    shard_touch(lane->shard);
}

static void clear_settlement(struct settlement *settlement)
{
    struct buf effects = settlement->effects, children = settlement->children, cause = settlement->cause;
    struct buf state = settlement->state;
    effects.len = children.len = cause.len = state.len = 0;
    *settlement = (struct settlement){
        .effects = effects, .children = children, .cause = cause, .state = state};
}

static void split(struct lane *lane, uint32_t first)
{
    uint32_t whole = *segment(lane);
    ensure(first > 0 && first < whole);
    if (lane->depth == SEGMENTS_MAX) { /* what lies below is gathered anew, later */
        memmove(lane->segments, lane->segments + 1, (SEGMENTS_MAX - 1) * sizeof *lane->segments);
        lane->depth--;
    }
    *segment(lane) = whole - first;
    lane->segments[lane->depth++] = first;
}

/* What will be given up need not wait for it. */
static bool is_given_up(const struct lane *lane)
{
    int64_t now_ms = consumer_now_ms(lane->shard->reader->consumer);
    return judge_next(lane_mapping(lane), lane_head(lane), lane->take, now_ms).condition != NULL;
}

void lane_result(struct lane *lane, enum outcome outcome, uint32_t done)
{
    uint32_t count = lane->take;
    struct verdict verdict = judge_result(lane_mapping(lane), outcome, count, done);
    if (!verdict.moves) clear_settlement(&lane->settlement);
    if (verdict.counts) lane_head(lane)[verdict.moves].failures++;
    if (verdict.splits) split(lane, outcome == OUTCOME_TOO_MUCH ? lane->cap : count / 2);
    if (verdict.moves)
        lane_settle(lane, verdict.moves);
    else if (verdict.pauses && !is_given_up(lane))
        lane_pause(lane, outcome == OUTCOME_UNSENT);
    else
        rest(lane, 0);
}

void lane_committed(struct lane *lane)
{
    struct settlement *settlement = &lane->settlement;
    struct consumer_counts *counts = &lane->shard->reader->consumer->counts;
    uint32_t moves = settlement->moves;
    stats_add(settlement->has_document || lane->gives_up ? &counts->records_given_up : &counts->records_done,
              moves);
    stats_add(&counts->effects,
              settlement->effect_count + (settlement->has_document ? 0 : settlement->child_count));
    lane_pop(lane, moves);
    while (moves && lane->depth) {
        uint32_t less = moves < *segment(lane) ? moves : *segment(lane);
        *segment(lane) -= less;
        moves -= less;
        if (!*segment(lane)) lane->depth--;
    }
    window_committed(lane);
    clear_settlement(settlement);
    lane->gives_up = false;
    lane->pauses = 0;
    lane->state = LANE_IDLE;
}

/* What it returned was refused by the door: as if the function had failed. */
static void keep_error(struct lane *lane, const char *type, struct slice message)
{
    if (message.len > LIMIT_BATCH_ERROR_BYTES) message.len = LIMIT_BATCH_ERROR_BYTES;
    while (message.len && !utf8_valid(message)) message.len--; /* a character that was cut */
    lane->error.len = 0;
    compose(&lane->error, "{'errorType':%s,'errorMessage':%s}", slice_of(type), message);
}

void lane_refused(struct lane *lane, const char *reason)
{
    struct reader *reader = lane->shard->reader;
    stats_add(&reader->consumer->counts.failures, 1);
    reader_note(reader, "PROBLEM: Function call failed: its writes were refused: %s", reason);
    keep_error(lane, "Quipu.EffectsRefused", slice_of(reason));
    clear_settlement(&lane->settlement);
    lane_failed(lane);
}

/* Or only the document of its failure was: then the records go without one. */
void lane_undocumented(struct lane *lane, const char *reason)
{
    struct settlement *settlement = &lane->settlement;
    log_line("triggers: mapping %.*s: a failed batch could not be sent to its destination: %s",
             SLICE_ARG(lane_mapping(lane)->id), reason);
    reader_note(lane->shard->reader, "PROBLEM: The destination refused a failed batch: %s", reason);
    settlement->children.len = settlement->child_count = 0;
    settlement->has_document = false;
    lane->state = LANE_SETTLED;
    shard_touch(lane->shard);
}

static void warn_of_loop(struct lane *lane, uint32_t count)
{
    struct reader *reader = lane->shard->reader;
    int64_t now_us = consumer_ticks_us(reader->consumer);
    stats_add(&reader->consumer->counts.records_looped, count);
    if (reader->warned_us && now_us < reader->warned_us + LOOP_LOG_US) return;
    reader->warned_us = now_us;
    log_line("triggers: mapping %.*s: records that function %.*s caused itself are kept from it "
             "(MaximumRecursionDepth is %u)",
             SLICE_ARG(reader->mapping->id), SLICE_ARG(reader->function_name), reader->mapping->depth_max);
    /* Whoever wonders why the function is not called looks into its log first. */
    const struct environment *world = &reader->consumer->world;
    struct buf line = {0};
    buf_printf(&line,
               "LOOP function %.*s was not called for a record that it caused itself, at depth %u "
               "(MaximumRecursionDepth of mapping %.*s is %u). To allow it: aws lambda "
               "put-function-recursion-config --function-name %.*s --recursive-loop Allow\n",
               SLICE_ARG(reader->function_name), cause_count(lane_head(lane)->cause, reader->function_name),
               SLICE_ARG(reader->mapping->id), reader->mapping->depth_max, SLICE_ARG(reader->function_name));
    world->log_to(world->func, reader->function_name, buf_view(&line));
    buf_free(&line);
}

struct failure {
    struct lane *lane;
    uint32_t count;
    const char *condition;
    bool has_document;
};

static void document_failure(void *argument)
{
    struct failure *failure = argument;
    failure->has_document = put_failure_document(failure->lane, failure->count, failure->condition);
}

/* The first records go to the destination, if there is one, and the lane moves on. */
void lane_give_up(struct lane *lane, uint32_t count, const char *condition)
{
    struct reader *reader = lane->shard->reader;
    bool is_looped = count && lane_head(lane)->is_looped;
    clear_settlement(&lane->settlement);
    if (is_looped) warn_of_loop(lane, count);
    struct failure failure = {lane, count, condition, false};
    task_outside(document_failure, &failure); /* it looks into tables */
    bool has_document = failure.has_document;
    if (!has_document && !is_looped)
        log_line("triggers: mapping %.*s: %u records of shard %s are given up: %s",
                 SLICE_ARG(reader->mapping->id), count, lane->shard->id, condition);
    lane->gives_up = true;
    lane_settle(lane, count);
}

/* ---- what a function answered ---- */

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
    if (why && !lane->error.len) keep_error(lane, "Quipu.AnswerRefused", slice_of(why));
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

/* What the records would write is more than a transaction takes: so many at a time are tried. */
static void take_fewer(struct lane *lane, uint32_t cap)
{
    lane->cap = cap;
    lane_result(lane, OUTCOME_TOO_MUCH, 0);
}

/* What fits twice may grow again: not all records return as much. */
static void unlearn_cap(struct lane *lane, uint32_t count, uint32_t most, size_t bytes)
{
    if (!lane->cap || lane->take < lane->cap) return;
    if (count * 2 > most || bytes * 2 > EFFECTS_BYTES) return;
    lane->cap += lane->cap / 2 + 1;
    if (lane->cap >= lane_mapping(lane)->batch_size) lane->cap = 0;
}

/* Puts the returned writes into the lane's settlement; false when they are too many, or wrong. */
static bool take_effects(struct lane *lane, struct batch_call *call)
{
    struct settlement *settlement = &lane->settlement;
    struct slice members, cause;
    uint32_t count;
    char why[200] = "";
    enum effects found = func_effects(buf_view(&call->invocation.reply), UINT32_MAX, &call->arena, &members,
                                      &count, why, sizeof why);
    if (found == EFFECTS_BAD) lane_fail(lane, why);
    if (found != EFFECTS_FOUND) return found == EFFECTS_NONE;
    bool is_watch = lane_mapping(lane)->watch != NULL;
    bool are_children = is_watch || call->invocation.is_repeatable;
    bool has_transactions = are_children || task_has_transactions();
    uint32_t most = has_transactions ? LIMIT_EFFECTS : 1;
    bool fits = count <= most && members.len <= EFFECTS_BYTES;
    if (!fits && lane->take > 1) {
        /* So many records at a time return as much as a transaction takes. */
        uint64_t by_count = (uint64_t)lane->take * most / (count ? count : 1);
        uint64_t by_bytes = (uint64_t)lane->take * EFFECTS_BYTES / (members.len ? members.len : 1);
        uint64_t cap = by_count < by_bytes ? by_count : by_bytes;
        if (cap >= lane->take) cap = lane->take - 1;
        take_fewer(lane, cap ? (uint32_t)cap : 1);
        return false;
    }
    if (!fits && has_transactions) {
        lane_fail(lane, "it returned more writes than one transaction takes");
        return false;
    }
    unlearn_cap(lane, count, most, members.len);
    if (!count) return true;
    cause = call->invocation.cause;
    if (!is_watch) cause = cause_add(&call->arena, cause, lane->shard->reader->function_name);
    buf_slice(are_children ? &settlement->children : &settlement->effects, members);
    *(are_children ? &settlement->child_count : &settlement->effect_count) = count;
    buf_slice(&settlement->cause, cause);
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
    if (lane->window.is_finishing) {
        lane->settlement.window = WINDOW_CLOSES;
        lane_settle(lane, 0);
    } else if (!keeps_any || window_takes_state(lane, answer.state)) {
        lane_result(lane, answer.outcome, answer.done);
    }
}

/* A function tells why in its log; a target without a process has none. Its errors are Target.SOMETHING. */
static const char *words_of_target(struct slice reply, struct arena *arena)
{
    if (!raw_is_json(arena, reply)) return NULL;
    struct slice type = raw_string(arena, raw_member(arena, reply, "errorType"));
    if (!slice_starts(type, SLICE("Target."))) return NULL;
    return arena_copy(arena, raw_string(arena, raw_member(arena, reply, "errorMessage"))).data;
}

/* Of a watch, whose failures are told in the log, all. */
static const char *own_words(const struct lane *lane, struct batch_call *call)
{
    struct slice reply = buf_view(&call->invocation.reply);
    if (!lane_mapping(lane)->watch) return words_of_target(reply, &call->arena);
    return arena_copy(&call->arena, reply).data;
}

/* What a failed function said, as it said it; a long one without what stands beside its message. */
static void take_error(struct lane *lane, struct batch_call *call)
{
    struct slice reply = buf_view(&call->invocation.reply);
    if (!raw_is_json(&call->arena, reply)) {
        keep_error(lane, "Unhandled", reply);
    } else if (reply.len <= LIMIT_BATCH_ERROR_BYTES) {
        buf_slice(&lane->error, reply);
    } else {
        struct slice type = raw_string(&call->arena, raw_member(&call->arena, reply, "errorType"));
        struct slice message = raw_string(&call->arena, raw_member(&call->arena, reply, "errorMessage"));
        bool is_short = type.len && type.len <= LIMIT_BATCH_ERROR_BYTES / 8;
        keep_error(lane, is_short ? arena_copy(&call->arena, type).data : "Unhandled",
                   message.data ? message : reply);
    }
}

static void lane_take_reply(struct lane *lane, struct batch_call *call)
{
    struct invocation *invocation = &call->invocation;
    /* For the document of a failure. */
    bool has_failed = invocation->end == INVOCATION_FAILED;
    memcpy(lane->request_id, invocation->request_id, sizeof lane->request_id);
    memcpy(lane->version, invocation->version, sizeof lane->version);
    snprintf(lane->error_kind, sizeof lane->error_kind, "%s",
             has_failed && invocation->error_kind ? invocation->error_kind : "");
    lane->was_invoked |= has_failed || invocation->end == INVOCATION_ANSWERED;
    lane->error.len = 0;
    if (has_failed) take_error(lane, call);
    switch (invocation->end) {
    case INVOCATION_ANSWERED: take_answer(lane, call); break;
    case INVOCATION_FAILED:
        if (invocation->is_too_much && lane->take > 1)
            take_fewer(lane, lane->take > LIMIT_EFFECTS ? LIMIT_EFFECTS : lane->take / 2);
        else
            lane_fail(lane, own_words(lane, call));
        break;
    case INVOCATION_THROTTLED:
    case INVOCATION_UNKNOWN:
    case INVOCATION_REFUSED: put_off(lane, invocation); break;
    }
}

/* ---- invoking ---- */

void put_payload(struct buf *out, const struct lane *lane, uint32_t count)
{
    const struct record *records = lane_head(lane);
    buf_text(out, "{\"Records\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_byte(out, ',');
        buf_slice(out, records[i].event);
    }
    buf_byte(out, ']');
    if (lane_mapping(lane)->tumbling_ms || lane->window.is_open) window_put_members(out, lane);
    buf_byte(out, '}');
}

struct slice join_causes(const struct lane *lane, uint32_t count, struct arena *arena)
{
    struct slice joined = SLICE("");
    for (uint32_t i = 0; i < count; i++) {
        struct slice cause = lane_head(lane)[i].cause;
        if (!cause.len || (i && slice_equal(cause, lane_head(lane)[i - 1].cause))) continue;
        joined = joined.len ? cause_join(arena, joined, cause) : cause;
    }
    return joined;
}

static void note_start(struct lane *lane, uint32_t count)
{
    struct consumer *consumer = lane->shard->reader->consumer;
    stats_add(&consumer->counts.batches, 1);
    if (!count || lane->invocations) return;
    int64_t waited_us = consumer_ticks_us(consumer) - lane_head(lane)->page->arrived_us;
    histogram_add(&consumer->counts.start_us, waited_us > 0 ? (uint64_t)waited_us : 0);
}

static struct batch_call *batch_call_new(struct consumer *consumer)
{
    struct batch_call *call = consumer->spare_batches;
    if (!call) return must_zero(1, sizeof *call);
    consumer->spare_batches = call->next;
    consumer->spare_batch_count--;
    return call;
}

static void batch_call_free(struct batch_call *call)
{
    arena_free(&call->arena);
    buf_free(&call->payload);
    buf_free(&call->invocation.reply);
    buf_free(&call->invocation.log);
    free(call);
}

/* Kept for the next one, with its memory. */
static void batch_call_retire(struct batch_call *call)
{
    struct consumer *consumer = call->consumer;
    if (consumer->spare_batch_count == SPARE_BATCHES || call->payload.cap > SPARE_BATCH_BYTES) {
        batch_call_free(call);
        return;
    }
    arena_reset(&call->arena);
    call->payload.len = 0;
    buf_free(&call->invocation.reply);
    buf_free(&call->invocation.log);
    call->invocation = (struct invocation){0};
    call->next = consumer->spare_batches;
    consumer->spare_batches = call;
    consumer->spare_batch_count++;
}

void batch_calls_free(struct consumer *consumer)
{
    while (consumer->spare_batches) {
        struct batch_call *call = consumer->spare_batches;
        consumer->spare_batches = call->next;
        batch_call_free(call);
    }
}

static void batch_call_release(struct task_completion *completion)
{
    batch_call_free(ring_owner(completion, struct batch_call, completion));
}

static void invocation_done(struct invocation *invocation)
{
    task_completion_done(&ring_owner(invocation, struct batch_call, invocation)->completion);
}

static void invoke(void *argument)
{
    struct batch_call *call = argument;
    if (call->watch)
        watch_invoke(call->watch, &call->invocation);
    else
        call->consumer->world.invoke(call->consumer->world.func, &call->invocation);
}

/* Hands the first records to the function and deals with what it answers. What it answers after the shard was left is
 * nobody's. */
static void lane_invoke(struct lane *lane, uint32_t count)
{
    struct shard *shard = lane->shard;
    struct consumer *consumer = shard->reader->consumer;
    struct batch_call *call = batch_call_new(consumer);
    call->consumer = consumer;
    call->watch = lane_mapping(lane)->watch;
    put_payload(&call->payload, lane, count);
    call->invocation.function = arena_copy(&call->arena, lane_mapping(lane)->function);
    call->invocation.cause = arena_copy(&call->arena, join_causes(lane, count, &call->arena));
    call->invocation.payload = buf_view(&call->payload);
    call->invocation.arena = &call->arena;
    call->invocation.done = invocation_done;
    note_start(lane, count);
    lane->state = LANE_CALLED;
    lane->take = count;
    lane->invocations++;
    consumer->invocations++;
    task_completion_begin(&call->completion, batch_call_release);
    call->completion.signal = &shard->changed;
    task_outside(invoke, call);
    while (!call->completion.is_done && shard_is_held(shard)) task_await(&shard->changed, TASK_NEVER);
    consumer->invocations--;
    if (!call->completion.is_done) {
        call->completion.signal = NULL;
        task_completion_abandon(&call->completion);
        return;
    }
    if (shard_is_held(shard)) lane_take_reply(lane, call);
    batch_call_retire(call);
}

/* ---- the task ---- */

/* Cuts the next batch, if there is one. Else *until is when there will be. */
static void gather(struct lane *lane, struct task_moment *until)
{
    struct shard *shard = lane->shard;
    struct consumer *consumer = shard->reader->consumer;
    const struct mapping *mapping = lane_mapping(lane);
    struct cut cut = {.batch_size = mapping->batch_size,
                      .window_ms = mapping->window_ms,
                      .before_ms = window_end_for(lane),
                      .room_bytes = LIMIT_EVENT_BYTES - PAYLOAD_BYTES - lane->window.state.len,
                      .now_ms = consumer_now_ms(consumer),
                      .now_us = consumer_ticks_us(consumer),
                      .is_last = shard->is_read_out || shard_is_changing_lanes(shard)};
    if (lane->cap && lane->cap < cut.batch_size) cut.batch_size = lane->cap;
    struct cut_result result = batch_cut(lane_head(lane), lane->count, &cut);
    if (result.take) {
        lane->segments[0] = result.take;
        lane->depth = 1;
        lane->invocations = 0;
        lane->was_invoked = false;
    } else if (lane->count) {
        if (result.ready.ticks_us < until->ticks_us) until->ticks_us = result.ready.ticks_us;
        if (result.ready.now_ms < until->now_ms) until->now_ms = result.ready.now_ms;
    }
}

/* Hands the uppermost segment over, or gives it up. */
static void try_batch(struct lane *lane)
{
    int64_t now_ms = consumer_now_ms(lane->shard->reader->consumer);
    struct next_step step = judge_next(lane_mapping(lane), lane_head(lane), *segment(lane), now_ms);
    if (step.condition)
        lane_give_up(lane, step.count, step.condition);
    else
        lane_invoke(lane, step.count);
}

void lane_task(void *argument)
{
    struct lane *lane = argument;
    struct shard *shard = lane->shard;
    struct task_host *host = shard->reader->consumer->host;
    while (shard_is_held(shard) && !shard->ends_lanes) {
        struct task_moment until = TASK_NEVER;
        bool is_ready = !shard_is_stopping(shard) && (lane->state == LANE_IDLE || lane->state == LANE_PAUSED);
        if (is_ready && lane->state == LANE_PAUSED && !task_moment_is_over(host, &lane->retry)) {
            is_ready = false;
            until = lane->retry;
        }
        if (is_ready) {
            lane->state = LANE_IDLE;
            if (lane->window.old_parts) {
                window_sweep(lane);
                shard_touch(shard);
                continue;
            }
            if (window_is_over(lane, &until)) {
                lane->window.is_finishing = true;
                lane_invoke(lane, 0);
                continue;
            }
            if (!lane->depth) gather(lane, &until);
            if (lane->depth) {
                try_batch(lane);
                continue;
            }
        }
        task_await(&shard->changed, until);
    }
    shard->lane_tasks--;
    shard_touch(shard);
}
