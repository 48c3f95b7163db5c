/* What follows from a call's answer: its removal together with what its function returned and what its
 * destination is told; or another attempt, later.
 *
 * An answer whose writes cannot be applied (a condition that fails, a table that is not there) is a
 * function's error like any other: the call is tried again, and told of as failed in the end. */
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "base/stats.h"
#include "func/queue.h"

static void errand_retry_or_fail(struct errand *errand);

static struct slice reply_of(const struct errand *errand)
{
    return buf_view(&errand->invocation.reply);
}

/* ---- what a destination is told, in Lambda's words ---- */

static void put_time(struct buf *out, int64_t time_ms)
{
    buf_byte(out, '"');
    time_put(out, time_ms);
    buf_byte(out, '"');
}

/* JSON as it is; other text as a string; nothing as null. */
static void put_payload(struct buf *out, struct slice payload, struct arena *arena)
{
    if (!payload.len)
        buf_text(out, "null");
    else if (raw_is_json(arena, payload))
        buf_slice(out, payload);
    else
        json_put_string(out, utf8_valid(payload) ? payload : SLICE("(not UTF-8)"));
}

static void put_function_arn(struct buf *out, struct errand *errand)
{
    struct slice arn, name, own, qualifier;
    if (target_is_url(errand->function) ||
        !func_resolve(errand->queue->func, errand->function, &errand->arena, &arn, &name)) {
        json_put_string(out, target_shown(errand->function, &errand->arena));
        return;
    }
    bool is_qualified = function_name_parse(errand->function, &own, &qualifier) && qualifier.len;
    json_put_string(out, is_qualified ? arn : arena_printf(&errand->arena, "%.*s:$LATEST", SLICE_ARG(arn)));
}

static bool has_run(const struct errand *errand)
{
    return errand->invocation.version[0] != 0;
}

static void put_document(struct buf *out, struct errand *errand, const char *condition, bool with_payloads)
{
    const struct invocation *invocation = &errand->invocation;
    unsigned runs = errand->attempts + (has_run(errand) ? 1 : 0);
    buf_text(out, "{\"version\":\"1.0\",\"timestamp\":");
    put_time(out, queue_now_ms(errand->queue));
    buf_text(out, ",\"requestContext\":{\"requestId\":");
    json_put_string(out, (struct slice){errand->id, errand->id_len});
    buf_text(out, ",\"functionArn\":");
    put_function_arn(out, errand);
    buf_printf(out, ",\"condition\":\"%s\",\"approximateInvokeCount\":%u},\"requestPayload\":", condition, runs);
    put_payload(out, with_payloads ? errand->payload : SLICE_NONE, &errand->arena);
    if (has_run(errand)) {
        buf_text(out, ",\"responseContext\":{\"statusCode\":200,\"executedVersion\":");
        json_put_string(out, slice_of(invocation->version));
        if (invocation->end == INVOCATION_FAILED || errand->rejected)
            buf_text(out, ",\"functionError\":\"Unhandled\"");
        buf_text(out, "},\"responsePayload\":");
        put_payload(out, with_payloads ? reply_of(errand) : SLICE_NONE, &errand->arena);
    }
    buf_byte(out, '}');
}

/* Lambda: too large with the payloads, it goes without them. */
static struct slice document_of(struct errand *errand, const char *condition)
{
    struct buf out = {0};
    put_document(&out, errand, condition, true);
    if (out.len > LIMIT_DESTINATION_BYTES) {
        out.len = 0;
        put_document(&out, errand, condition, false);
    }
    struct slice document = arena_copy(&errand->arena, buf_view(&out));
    buf_free(&out);
    return document;
}

/* That of a failed call keeps the call, where the destination is a queue, so that it can be sent again. */
static void put_destination(struct errand *errand, struct slice destination, struct slice document,
                            bool has_failed)
{
    struct arena *arena = &errand->arena;
    struct buf members = {0};
    unsigned count = 0;
    struct slice id = arena_printf(arena, "%.*s-told", (int)errand->id_len, errand->id);
    if (!destination.len) return;
    if (slice_equal(destination, errand->failure)) /* nobody has looked at it before */
        destination_fault(errand->queue->func, destination);
    const struct func_call call = {.function = errand->function,
                                   .payload = errand->payload,
                                   .cause = errand->cause,
                                   .on_failure = errand->failure};
    if (!destination_put(errand->queue->func, destination, document, id, has_failed ? &call : NULL, &members,
                         &count)) {
        log_line("the end of a call of %.*s cannot be told to %.*s",
                 SLICE_ARG(target_shown(errand->function, arena)),
                 SLICE_ARG(target_shown(destination, arena)));
    } else if (count) {
        buf_byte(&errand->request, ',');
        buf_slice(&errand->request, buf_view(&members));
        errand->has_told = true;
    }
    buf_free(&members);
}

/* ---- the end of a call ---- */

static bool failed_with(const struct errand *errand, const char *error)
{
    return errand->call.error && strcmp(errand->call.error, error) == 0;
}

static void after_end(struct errand *errand);

static void end_again(struct errand *errand)
{
    queue_errand_call(errand, "TransactWriteItems", after_end);
}

/* The writes that the function returned were not taken: its own error. */
static void errand_reject(struct errand *errand, const char *type, struct slice reason)
{
    struct buf *reply = &errand->invocation.reply;
    reply->len = 0;
    buf_printf(reply, "{\"errorType\":\"%s\",\"errorMessage\":", type);
    json_put_string(reply, reason);
    buf_byte(reply, '}');
    errand->rejected = true;
    errand_retry_or_fail(errand);
}

/* Removes the call, applies the effects, tells the destination. */
static void errand_end(struct errand *errand, const char *condition, struct slice effects,
                       struct slice destination)
{
    errand->request.len = 0;
    errand->has_effects = effects.len > 0;
    errand->has_told = false;
    buf_text(&errand->request, "{\"TransactItems\":[");
    errand_put_removal(errand, &errand->request);
    if (effects.len) {
        buf_byte(&errand->request, ',');
        buf_slice(&errand->request, effects);
    }
    if (destination.len) {
        bool has_failed = !slice_equal(slice_of(condition), SLICE("Success"));
        put_destination(errand, destination, document_of(errand, condition), has_failed);
    }
    buf_text(&errand->request, "]}");
    end_again(errand);
}

/* The transaction was refused for what stands in it. */
static void end_refused(struct errand *errand, struct slice code)
{
    struct slice name, message;
    dynamo_error(buf_view(&errand->reply), &errand->arena, &name, &message);
    if (errand->has_effects) {
        errand_reject(errand, "Quipu.EffectsRefused",
                      arena_printf(&errand->arena, "The returned writes were not applied: %.*s: %.*s",
                                   SLICE_ARG(code), SLICE_ARG(message)));
    } else if (errand->has_told) {
        log_line("the end of a call of %.*s could not be told: %.*s",
                 SLICE_ARG(target_shown(errand->function, &errand->arena)), SLICE_ARG(message));
        errand_end(errand, "", SLICE_NONE, SLICE_NONE);
    } else {
        log_line("a call of %.*s cannot be removed: %.*s",
                 SLICE_ARG(target_shown(errand->function, &errand->arena)), SLICE_ARG(message));
        errand_pause(errand, QUEUE_WRITE_AGAIN_MS, end_again);
    }
}

static void after_end(struct errand *errand)
{
    struct queue *queue = errand->queue;
    struct slice error = slice_of(errand->call.error ? errand->call.error : "");
    enum dynamo_fault fault = dynamo_fault(errand->call.status, error);
    struct dynamo_cancellation why = {.first = -1};
    if (fault == DYNAMO_CANCELLED) why = dynamo_cancellation(buf_view(&errand->reply), &errand->arena);
    if (errand->call.status == 200) {
        bool failed = errand->rejected || errand->invocation.end != INVOCATION_ANSWERED;
        stats_add(failed ? &queue->stats.failed : &queue->stats.succeeded, 1);
        if (errand->has_told) func_queue_wake(queue->func); /* it may have gone into this very queue */
        errand_forget(errand);
    } else if (why.first == 0) { /* the condition on its fence: somebody else has it, or has ended it */
        errand_forget(errand);
    } else if (why.first > 0) {
        end_refused(errand, why.code);
    } else if (fault != DYNAMO_CANCELLED && !dynamo_fault_may_pass(fault)) {
        end_refused(errand, error);
    } else {
        errand_pause(errand, why.may_pass ? QUEUE_CONFLICT_MS : QUEUE_WRITE_AGAIN_MS, end_again);
    }
}

/* ---- another attempt ---- */

static void after_retry(struct errand *errand)
{
    if (errand->call.status == 200)
        errand_wait(errand, errand->retry_ms);
    else if (failed_with(errand, "ConditionalCheckFailedException"))
        errand_forget(errand);
    else
        errand_wait(errand,
                    queue_now_ms(errand->queue) + QUEUE_WRITE_AGAIN_MS); /* as if it had not been run */
}

static void errand_retry(struct errand *errand, uint32_t attempts, int64_t due_ms)
{
    errand->retry_ms = due_ms;
    errand->request.len = 0;
    errand_put_retry(errand, attempts, due_ms, &errand->request);
    queue_errand_call(errand, "UpdateItem", after_retry);
}

static void errand_retry_or_fail(struct errand *errand)
{
    struct queue *queue = errand->queue;
    errand->throttles = 0;
    errand->written_cause = SLICE_NONE;
    if (errand->attempts >= errand->settings.retries || errand->invocation.is_final) {
        errand_end(errand, "RetriesExhausted", SLICE_NONE, errand->settings.on_failure);
        return;
    }
    int64_t due_ms = queue_now_ms(queue) + (int64_t)QUEUE_RETRY_MS * (errand->attempts + 1);
    if (due_ms - errand->accepted_ms > errand->settings.age_max_ms) { /* its last answer can still be told */
        errand_end(errand, "EventAgeExceeded", SLICE_NONE, errand->settings.on_failure);
        return;
    }
    stats_add(&queue->stats.retried, 1);
    errand_retry(errand, errand->attempts + 1, due_ms);
}

/* Lambda: a function whose reserved concurrency is 0 is switched off, and calls of it are not tried again.
 * Where nobody is told of them they wait here, as long as they may. */
static bool is_switched_off(const struct errand *errand)
{
    struct slice name, qualifier;
    return errand->settings.on_failure.len && function_name_parse(errand->function, &name, &qualifier) &&
           registry_reserved(errand->queue->func, name) == 0;
}

/* It was not run: that is no attempt. Where others share, one of them may have more room. */
static void errand_put_off(struct errand *errand)
{
    struct queue *queue = errand->queue;
    int64_t pause_ms = QUEUE_THROTTLE_MS;
    for (unsigned i = 0; i < errand->throttles && pause_ms < QUEUE_THROTTLE_MAX_MS; i++) pause_ms *= 2;
    if (pause_ms > QUEUE_THROTTLE_MAX_MS) pause_ms = QUEUE_THROTTLE_MAX_MS;
    errand->throttles++;
    stats_add(&queue->stats.throttled, 1);
    if (queue->func->options.shared)
        errand_retry(errand, errand->attempts, queue_now_ms(queue) + pause_ms);
    else
        errand_wait(errand, queue_now_ms(queue) + pause_ms);
}

/* ---- answers ---- */

static void settle_answered(struct errand *errand)
{
    struct slice members, name, qualifier;
    uint32_t count;
    char error[256];
    switch (func_effects(reply_of(errand), LIMIT_EFFECTS, &errand->arena, &members, &count, error,
                         sizeof error)) {
    case EFFECTS_BAD: errand_reject(errand, "Quipu.EffectsMalformed", slice_of(error)); return;
    case EFFECTS_NONE: members = SLICE_NONE; break;
    case EFFECTS_FOUND:
        if (!function_name_parse(errand->function, &name, &qualifier)) name = errand->function;
        errand->written_cause = cause_add(&errand->arena, errand->cause, name);
        break;
    }
    errand->throttles = 0;
    errand_end(errand, "Success", members, errand->settings.on_success);
}

/* Another server may have made the function a moment ago. */
static void errand_unknown(struct errand *errand)
{
    const struct queue *queue = errand->queue;
    if (queue->func->options.shared && queue_now_ms(queue) - errand->accepted_ms < QUEUE_UNKNOWN_MS) {
        errand_put_off(errand);
        return;
    }
    log_line("a call of %.*s is %s: there is no such function",
             SLICE_ARG(target_shown(errand->function, &errand->arena)), errand->failure.len ? "put aside" : "dropped");
    errand_end(errand, "FunctionNotFound", SLICE_NONE, errand->failure);
}

/* Without having been run this time. */
static void errand_give_up(struct errand *errand, const char *condition)
{
    buf_free(&errand->invocation.reply);
    buf_free(&errand->invocation.log);
    errand->invocation = (struct invocation){.end = INVOCATION_THROTTLED};
    errand_end(errand, condition, SLICE_NONE, errand->settings.on_failure);
}

void errand_settle(struct errand *errand)
{
    switch (errand->invocation.end) {
    case INVOCATION_ANSWERED: settle_answered(errand); break;
    case INVOCATION_FAILED: errand_retry_or_fail(errand); break;
    case INVOCATION_THROTTLED:
        if (is_switched_off(errand))
            errand_give_up(errand, "ZeroReservedConcurrency");
        else
            errand_put_off(errand);
        break;
    case INVOCATION_REFUSED: errand_put_off(errand); break;
    case INVOCATION_UNKNOWN: errand_unknown(errand); break;
    }
}

void errand_expire(struct errand *errand)
{
    errand_give_up(errand, "EventAgeExceeded");
}
