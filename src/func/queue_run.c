/* A call from the moment that it is due to its end: it is read, claimed, run, and settled. What follows from its answer
 * is its removal together with what its function returned and what its destination is told; or another attempt, later.
 *
 * An answer whose writes cannot be applied (a condition that fails, a table that is not there) is a
 * function's error like any other: the call is tried again, and told of as failed in the end. */
#include "base/compose.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "base/stats.h"
#include "calendar/calendar.h"
#include "func/queue.h"

static struct slice reply_of(const struct async_call *call)
{
    return buf_view(&call->invocation.reply);
}

static struct slice shown(const struct async_call *call)
{
    return target_shown(call->function, call->arena);
}

/* ---- what a destination is told, in Lambda's words ---- */

/* JSON as it is; other text as a string; nothing as null. */
static struct slice payload_json(struct slice payload, struct arena *arena)
{
    if (!payload.len) return SLICE("null");
    if (raw_is_json(arena, payload)) return payload;
    return compose_in(arena, "%s", utf8_valid(payload) ? payload : SLICE("(not UTF-8)"));
}

static struct slice function_arn(const struct async_call *call)
{
    struct slice arn, name, own, qualifier;
    if (target_is_url(call->function) ||
        !func_resolve(call->queue->func, call->function, call->arena, &arn, &name))
        return shown(call);
    bool is_qualified = function_name_parse(call->function, &own, &qualifier) && qualifier.len;
    return is_qualified ? arn : arena_printf(call->arena, "%.*s:$LATEST", SLICE_ARG(arn));
}

static void put_document(struct buf *out, struct async_call *call, const char *condition, bool with_payloads)
{
    const struct invocation *invocation = &call->invocation;
    bool has_run = invocation->version[0] != 0,
         has_failed = invocation->end == INVOCATION_FAILED || call->rejected;
    compose(
        out,
        "{'version':'1.0','timestamp':%s,'requestContext':{'requestId':%s,'functionArn':%s,'condition':%s,"
        "'approximateInvokeCount':%d},'requestPayload':%A",
        moment_text(call->arena, queue_now_ms(call->queue)), call->id, function_arn(call),
        slice_of(condition), (int64_t)call->attempts + has_run,
        payload_json(with_payloads ? call->payload : SLICE_NONE, call->arena));
    if (has_run)
        compose(out, ",'responseContext':{'statusCode':200,'executedVersion':%s%A},'responsePayload':%A",
                slice_of(invocation->version),
                has_failed ? SLICE(",\"functionError\":\"Unhandled\"") : SLICE_NONE,
                payload_json(with_payloads ? reply_of(call) : SLICE_NONE, call->arena));
    buf_byte(out, '}');
}

/* Lambda: too large with the payloads, it goes without them. */
static struct slice document_of(struct async_call *call, const char *condition)
{
    struct buf out = {0};
    put_document(&out, call, condition, true);
    if (out.len > LIMIT_DESTINATION_BYTES) {
        out.len = 0;
        put_document(&out, call, condition, false);
    }
    return arena_take(call->arena, &out);
}

/* What the destination is told: members of the commit. */
struct telling {
    struct async_call *call;
    struct slice destination, members;
    const char *condition;
};

/* That of a failed call keeps the call, where the destination is a queue, so that it can be sent again. */
static void put_telling(void *argument)
{
    struct telling *telling = argument;
    struct async_call *call = telling->call;
    struct func *func = call->queue->func;
    struct buf members = {0};
    unsigned count = 0;
    bool has_failed = !slice_equal(slice_of(telling->condition), SLICE("Success"));
    struct slice id = arena_printf(call->arena, "%.*s-told", SLICE_ARG(call->id));
    if (slice_equal(telling->destination, call->failure)) /* nobody has looked at it before */
        destination_fault(func, telling->destination);
    const struct func_call again = {.function = call->function,
                                    .payload = call->payload,
                                    .cause = call->cause,
                                    .on_failure = call->failure};
    if (!destination_put(func, telling->destination, document_of(call, telling->condition), id,
                         has_failed ? &again : NULL, &members, &count))
        log_line("the end of a call of %.*s cannot be told to %.*s", SLICE_ARG(shown(call)),
                 SLICE_ARG(target_shown(telling->destination, call->arena)));
    else if (count)
        telling->members = arena_copy(call->arena, buf_view(&members));
    buf_free(&members);
}

/* ---- the end of a call ---- */

/* A tombstone in the list of open calls: its further parts are removed, and what else a late repeat may have put. One
 * that cannot be done with now is found again. */
static int64_t call_bury(struct async_call *call)
{
    task_commit(&(struct task_commit){.anchor = call_tombstone(call, "attribute_exists(ended)", false),
                                      .children = call_part_removals(call)});
    return QUEUE_OVER;
}

static int64_t call_rejected(struct async_call *call, const char *type, struct slice reason);

/* Ends it with its outcome, and repeats that until it is decided or the queue ends. What cannot be told is left out;
 * effects that are refused are the function's error. */
static int64_t call_commit(struct async_call *call, struct slice effects, unsigned effect_count,
                           struct slice told)
{
    struct queue *queue = call->queue;
    struct slice name, qualifier;
    struct buf children = {0};
    bool has_transactions = task_has_transactions();
    bool is_repeatable = effects.len && call->invocation.is_repeatable; /* then they are children */
    if (is_repeatable) buf_slice(&children, effects);
    if (is_repeatable && told.len) buf_byte(&children, ',');
    buf_slice(&children, told);
    struct task_commit commit = {.anchor = call_removal(call),
                                 .tombstone = call_tombstone(call, HOLD_ACT, call->parts > 1),
                                 .children = arena_take(call->arena, &children),
                                 .removals = has_transactions ? call_part_removals(call) : SLICE_NONE,
                                 .effects = is_repeatable ? SLICE_NONE : effects,
                                 .source = call->id,
                                 .marker = SLICE("end"),
                                 .in_order = true};
    if (!function_name_parse(call->function, &name, &qualifier)) name = call->function;
    if (effects.len) commit.cause = cause_add(call->arena, call->cause, name);
    bool is_mended = false; /* the table of queues, which somebody had deleted */
    for (;;) {
        struct task_commit_reply reply = task_commit(&commit);
        if (reply.end == COMMIT_DONE) {
            bool failed = call->rejected || call->invocation.end != INVOCATION_ANSWERED;
            stats_add(failed ? &queue->stats.failed : &queue->stats.succeeded, 1);
            if (!has_transactions && call->parts > 1) call_bury(call);
        }
        if (reply.end == COMMIT_DONE || reply.end == COMMIT_CONDITION) { /* its fence has moved */
            if (told.len) func_queue_wake(queue->func); /* it may have gone into this very queue */
            return QUEUE_OVER;
        }
        if (reply.end == COMMIT_REFUSED && reply.fault == DYNAMO_MISSING && !is_mended) {
            is_mended = func_tables_mend_in_task(queue->func);
            if (is_mended) continue;
        }
        struct slice why = arena_printf(call->arena, "%.*s: %.*s", SLICE_ARG(reply.error),
                                        SLICE_ARG(reply.message));
        bool is_of_effects = reply.part == COMMIT_EFFECT ||
                             (is_repeatable && reply.part == COMMIT_CHILD && reply.number <= effect_count);
        if (reply.end == COMMIT_REFUSED && is_of_effects)
            return call_rejected(
                call, "Quipu.EffectsRefused",
                arena_printf(call->arena, "The returned writes were not applied: %.*s", SLICE_ARG(why)));
        if (queue->is_stopping) return queue_now_ms(queue);
        if (reply.end == COMMIT_REFUSED) {
            log_line("the end of a call of %.*s could not be told: %.*s", SLICE_ARG(shown(call)),
                     SLICE_ARG(why));
            commit.children = is_repeatable ? effects : SLICE_NONE;
            if (reply.part == COMMIT_CHILD) continue;
        }
        task_pause_us((reply.is_busy ? QUEUE_CONFLICT_MS : QUEUE_WRITE_AGAIN_MS) * 1000);
    }
}

/* Ends it with what its function returned and what its destination is told. Where that is not written at once it is
 * kept first; an outcome that is too large for the call's item is not. */
static int64_t call_end(struct async_call *call, const char *condition, struct slice destination,
                        struct slice effects, unsigned effect_count)
{
    struct telling telling = {call, destination, SLICE(""), condition};
    if (destination.len) task_outside(put_telling, &telling); /* it looks into tables */
    struct slice told = telling.members;
    bool is_kept = (told.len || (effects.len && !call->invocation.is_repeatable)) && !task_has_transactions();
    struct slice outcome = SLICE_NONE;
    if (is_kept) outcome = call_outcome(call, call->invocation.is_repeatable ? SLICE_NONE : effects, told);
    while (is_kept) {
        enum dynamo_fault fault = task_request("UpdateItem", outcome).fault;
        if (fault == DYNAMO_CONDITION) return QUEUE_OVER;
        if (!dynamo_fault_may_pass(fault)) break;
        if (call->queue->is_stopping) return queue_now_ms(call->queue);
        task_pause_us(QUEUE_WRITE_AGAIN_MS * 1000);
    }
    return call_commit(call, effects, effect_count, told);
}

/* ---- another attempt ---- */

static int64_t call_again(struct async_call *call, uint32_t attempts, int64_t due_ms)
{
    switch (task_request("UpdateItem", call_retry(call, attempts, due_ms)).fault) {
    case DYNAMO_FINE: return due_ms;
    case DYNAMO_CONDITION: return QUEUE_OVER;
    default: return queue_now_ms(call->queue) + QUEUE_WRITE_AGAIN_MS; /* as if it had not been run */
    }
}

static int64_t call_failed(struct async_call *call)
{
    struct queue *queue = call->queue;
    call->pending->throttles = 0;
    if (call->attempts >= call->settings.retries || call->invocation.is_final)
        return call_end(call, "RetriesExhausted", call->settings.on_failure, SLICE_NONE, 0);
    int64_t due_ms = queue_now_ms(queue) + (int64_t)QUEUE_RETRY_MS * (call->attempts + 1);
    if (due_ms - call->accepted_ms > call->settings.age_max_ms) /* its last answer can still be told */
        return call_end(call, "EventAgeExceeded", call->settings.on_failure, SLICE_NONE, 0);
    stats_add(&queue->stats.retried, 1);
    return call_again(call, call->attempts + 1, due_ms);
}

/* The writes that the function returned were not taken: its own error. */
static int64_t call_rejected(struct async_call *call, const char *type, struct slice reason)
{
    call->invocation.reply.len = 0;
    compose(&call->invocation.reply, "{'errorType':%s,'errorMessage':%s}", slice_of(type), reason);
    call->rejected = true;
    return call_failed(call);
}

/* It was not run: that is no attempt. Where others share, one of them may have more room. */
static int64_t call_put_off(struct async_call *call)
{
    struct queue *queue = call->queue;
    int64_t pause_ms = QUEUE_THROTTLE_MS;
    for (unsigned i = 0; i < call->pending->throttles && pause_ms < QUEUE_THROTTLE_MAX_MS; i++) pause_ms *= 2;
    if (pause_ms > QUEUE_THROTTLE_MAX_MS) pause_ms = QUEUE_THROTTLE_MAX_MS;
    call->pending->throttles++;
    stats_add(&queue->stats.throttled, 1);
    int64_t due_ms = queue_now_ms(queue) + pause_ms;
    return queue->func->options.shared ? call_again(call, call->attempts, due_ms) : due_ms;
}

/* ---- in two ---- */

/* The records of a batch, in two events by a bit of their keys' hash, so that those of one key stay together and in
 * their order; by the first bit in which they differ. False: it is no batch, or all its records are of one key. */
static bool records_divide(const struct async_call *call, struct slice halves[2])
{
    struct arena *arena = call->arena;
    struct raw_walk walk;
    struct slice name, records = SLICE_NONE, record;
    if (!raw_is_json(arena, call->payload) || raw_walk_begin(&walk, arena, call->payload) != JSON_OBJECT)
        return false;
    while (raw_walk_next(&walk, &name, &records))
        if (!slice_equal(name, SLICE("Records"))) return false;
    if (raw_kind(records) != JSON_ARRAY) return false;
    for (unsigned bit = 0; bit < 64; bit++) {
        struct buf events[2] = {0};
        raw_each (arena, records, &record) {
            struct slice keys = raw_member(arena, raw_member(arena, record, "dynamodb"), "Keys");
            struct buf *event = &events[hash_bytes(keys) >> bit & 1];
            buf_slice(event, event->len ? SLICE(",") : SLICE("{\"Records\":["));
            buf_slice(event, record);
        }
        bool is_divided = events[0].len && events[1].len;
        for (unsigned i = 0; i < 2; i++) {
            buf_text(&events[i], "]}");
            halves[i] = arena_take(arena, &events[i]);
        }
        if (is_divided) return true;
    }
    return false;
}

/* Members that put the halves; none where it cannot be divided. */
struct dividing {
    const struct async_call *call;
    struct slice members;
};

static void put_halves(void *argument)
{
    struct dividing *dividing = argument;
    const struct async_call *call = dividing->call;
    struct slice halves[2];
    struct buf members = {0};
    bool is_put = records_divide(call, halves);
    for (unsigned i = 0; is_put && i < 2; i++) {
        const struct func_call half = {
            .function = call->function,
            .payload = halves[i],
            .cause = call->cause,
            .on_failure = call->failure,
            .id = arena_printf(call->arena, "%.*s-%u", SLICE_ARG(call->id), i + 1)};
        if (i) buf_byte(&members, ',');
        is_put = func_queue_put(call->queue->func, &half, &members) > 0;
    }
    dividing->members = is_put ? arena_copy(call->arena, buf_view(&members)) : SLICE("");
    buf_free(&members);
}

/* What its records would write is more than one transaction takes: two calls take its place, each with some of them.
 * Where that cannot be, it has failed. */
static int64_t call_divide(struct async_call *call, const char *type, struct slice why)
{
    struct queue *queue = call->queue;
    struct dividing dividing = {.call = call};
    task_outside(put_halves, &dividing); /* events nest as deep as they like */
    if (!dividing.members.len) return call_rejected(call, type, why);
    const struct task_commit commit = {.anchor = call_removal(call),
                                       .tombstone = call_tombstone(call, HOLD_ACT, call->parts > 1),
                                       .children = dividing.members,
                                       .removals = task_has_transactions() ? call_part_removals(call)
                                                                           : SLICE_NONE};
    for (;;) {
        struct task_commit_reply reply = task_commit(&commit);
        if (reply.end == COMMIT_REFUSED) return call_rejected(call, type, why);
        if (reply.end == COMMIT_DONE && !task_has_transactions() && call->parts > 1) call_bury(call);
        if (reply.end != COMMIT_MAY_PASS) {
            func_queue_wake(queue->func);
            return QUEUE_OVER;
        }
        if (queue->is_stopping) return queue_now_ms(queue);
        task_pause_us((reply.is_busy ? QUEUE_CONFLICT_MS : QUEUE_WRITE_AGAIN_MS) * 1000);
    }
}

/* ---- answers ---- */

static int64_t call_answered(struct async_call *call)
{
    struct slice effects;
    uint32_t count;
    char error[256];
    enum effects found = func_effects(reply_of(call), UINT32_MAX, call->arena, &effects, &count, error,
                                      sizeof error);
    if (found == EFFECTS_FOUND && count > LIMIT_EFFECTS)
        return call_divide(call, "Quipu.EffectsMalformed",
                           arena_printf(call->arena, "\"transact\" has more than %u writes", LIMIT_EFFECTS));
    if (found == EFFECTS_BAD) return call_rejected(call, "Quipu.EffectsMalformed", slice_of(error));
    call->pending->throttles = 0;
    return call_end(call, "Success", call->settings.on_success, effects, count);
}

/* A target that writes as much as it has records has refused them. */
static int64_t call_too_much(struct async_call *call)
{
    struct slice reply = arena_copy(call->arena, reply_of(call)),
                 why = raw_string(call->arena, raw_member(call->arena, reply, "errorMessage"));
    return call_divide(call, "Target.BatchTooLarge", why);
}

/* Another server may have made the function a moment ago. */
static int64_t call_unknown(struct async_call *call)
{
    const struct queue *queue = call->queue;
    if (queue->func->options.shared && queue_now_ms(queue) - call->accepted_ms < QUEUE_UNKNOWN_MS)
        return call_put_off(call);
    log_line("a call of %.*s is %s: there is no such function", SLICE_ARG(shown(call)),
             call->failure.len ? "put aside" : "dropped");
    return call_end(call, "FunctionNotFound", call->failure, SLICE_NONE, 0);
}

/* Without having been run this time. */
static int64_t call_give_up(struct async_call *call, const char *condition)
{
    buf_free(&call->invocation.reply);
    call->invocation = (struct invocation){.end = INVOCATION_THROTTLED};
    return call_end(call, condition, call->settings.on_failure, SLICE_NONE, 0);
}

/* Lambda: a function whose reserved concurrency is 0 is switched off, and calls of it are not tried again.
 * Where nobody is told of them they wait here, as long as they may. */
static bool is_switched_off(const struct async_call *call)
{
    struct slice name, qualifier;
    return call->settings.on_failure.len && function_name_parse(call->function, &name, &qualifier) &&
           registry_reserved(call->queue->func, name) == 0;
}

static int64_t call_settle(struct async_call *call)
{
    switch (call->invocation.end) {
    case INVOCATION_ANSWERED: return call_answered(call);
    case INVOCATION_FAILED: return call->invocation.is_too_much ? call_too_much(call) : call_failed(call);
    case INVOCATION_REFUSED: return call_put_off(call);
    case INVOCATION_UNKNOWN: return call_unknown(call);
    case INVOCATION_THROTTLED: break;
    }
    return is_switched_off(call) ? call_give_up(call, "ZeroReservedConcurrency") : call_put_off(call);
}

/* ---- running ---- */

static void invocation_done(struct invocation *invocation)
{
    task_completion_done(&((struct async_call *)invocation->context)->completion);
}

static void read_settings(void *argument)
{
    struct async_call *call = argument;
    struct slice name, qualifier;
    if (function_name_parse(call->function, &name, &qualifier))
        registry_async_settings(call->queue->func, name, qualifier, call->arena, &call->settings);
    else /* a URL, or another target */
        call->settings = (struct async_settings){.retries = 2, .age_max_ms = QUEUE_URL_AGE_MS};
    if (!call->settings.on_failure.len) call->settings.on_failure = call->failure;
}

/* A destination may be a URL that nobody made a function of, and so may be what reacts to a pattern. One that was being
 * read while the queue was stopped stays in the table for later: its invocation has no function then. */
static void invoke(void *argument)
{
    struct async_call *call = argument;
    pthread_mutex_lock(&call->queue->gate);
    if (call->queue->is_shut)
        call->invocation.function = SLICE_NONE;
    else
        func_invoke_target(call->queue->func, &call->invocation);
    pthread_mutex_unlock(&call->queue->gate);
}

static void nothing_to_release(struct task_completion *completion)
{
    (void)completion; /* the queue ends when all runs have ended */
}

static int64_t call_run(struct async_call *call)
{
    struct queue *queue = call->queue;
    task_outside(read_settings, call);
    if (queue_now_ms(queue) - call->accepted_ms > call->settings.age_max_ms)
        return call_give_up(call, "EventAgeExceeded");
    call->invocation = (struct invocation){.function = call->function,
                                           .payload = call->payload,
                                           .cause = call->cause,
                                           .call_id = call->id,
                                           .accepted_ms = call->accepted_ms,
                                           .arena = call->arena,
                                           .done = invocation_done,
                                           .context = call};
    /* Lambda: all attempts of a call have its id. */
    if (call->id.len < sizeof call->invocation.request_id)
        memcpy(call->invocation.request_id, call->id.data, call->id.len);
    task_completion_begin(&call->completion, nothing_to_release);
    task_outside(invoke, call);
    if (!call->invocation.function.data) {
        task_completion_done(&call->completion);
        task_await_completion(&call->completion, TASK_NEVER);
        return queue_now_ms(queue);
    }
    /* Where others share, it is kept while it runs. A renewal that fails changes nothing: the fence decides. */
    int64_t renew_us = QUEUE_LEASE_MS * 1000ll / 3;
    while (!task_await_completion(&call->completion,
                                  (struct task_moment){queue->func->options.shared
                                                           ? task_host_ticks_us(queue->host) + renew_us
                                                           : HEAP_NEVER,
                                                       HEAP_NEVER}))
        task_request("UpdateItem", call_renewal(call, queue_now_ms(queue)));
    buf_free(&call->invocation.log);
    int64_t due_ms = call_settle(call);
    buf_free(&call->invocation.reply);
    return due_ms;
}

/* All of its items, also where the database gives them out one by one because it is throttled. */
static enum dynamo_fault call_fetch(struct async_call *call)
{
    struct slice request = call_load(call);
    for (;;) {
        struct task_reply reply = task_request("BatchGetItem", request);
        if (reply.fault != DYNAMO_FINE) return reply.fault;
        struct slice rest = call_take(call, arena_copy(call->arena, reply.body));
        if (!rest.data) return DYNAMO_FINE;
        if (call->queue->is_stopping) return DYNAMO_AGAIN;
        task_pause_us(QUEUE_WRITE_AGAIN_MS * 1000);
        request = call_load_rest(call, rest);
    }
}

int64_t call_work(struct async_call *call)
{
    struct queue *queue = call->queue;
    struct task_reply reply;
    enum dynamo_fault fault = call_fetch(call);
    int64_t now_ms = queue_now_ms(queue);
    if (fault == DYNAMO_MISSING) return QUEUE_OVER;
    if (fault != DYNAMO_FINE) return now_ms + QUEUE_WRITE_AGAIN_MS;
    /* Not there: somebody has finished it, or the transaction that was to put it is not through. */
    if (!call_read(call)) return QUEUE_OVER;
    queue_put_found(queue, call->id);
    if (call->has_ended) return call_bury(call);
    /* No pause is longer: else the clock was set back since. */
    bool is_early = call->due_ms > now_ms && call->due_ms - now_ms <= QUEUE_THROTTLE_MAX_MS;
    if (is_early) return call->due_ms;
    enum dynamo_hold_state state = queue_hold_state(queue, call->owner, call->until_ms, now_ms);
    if (state == HOLD_IS_ANOTHERS) return call->until_ms + 1;
    if (!call->has_outcome && !queue_target_enter(call)) return QUEUE_HELD;
    if (state == HOLD_IS_FREE || call->until_ms - now_ms <= QUEUE_LEASE_MS / 2) {
        reply = task_request("UpdateItem", call_claim(call, now_ms));
        if (reply.fault == DYNAMO_CONDITION)
            return queue_now_ms(queue) + QUEUE_LEASE_MS / 3; /* lost: look later */
        if (reply.fault != DYNAMO_FINE) return queue_now_ms(queue) + QUEUE_WRITE_AGAIN_MS;
        call->fence++;
    }
    if (!call->has_outcome) return call_run(call);
    task_outside(read_settings, call);
    call->invocation.end = call->effects.len ? INVOCATION_ANSWERED : INVOCATION_FAILED;
    return call_commit(call, call->effects, 1, call->told);
}
