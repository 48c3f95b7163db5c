/* A call from the moment that it is due until its function has answered. */
#include <stdio.h>

#include "base/limits.h"
#include "func/queue.h"

/* ---- running ---- */

static void invocation_done(struct invocation *invocation)
{
    struct errand *errand = invocation->context;
    struct queue *queue = errand->queue;
    pthread_mutex_lock(&queue->lock);
    errand->next_done = queue->done;
    queue->done = errand;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

static void after_run(struct errand *errand)
{
    buf_free(&errand->invocation.log);
    errand->state = ERRAND_SETTLES;
    if (errand->is_renewing)
        errand->after_renewal = errand_settle;
    else
        errand_settle(errand);
}

/* A destination may be a URL that nobody made a function of, and so may be what reacts to a pattern. */
static void invoke_named(struct func *func, struct errand *errand)
{
    struct function *function = target_of_text(errand->function);
    if (!function) {
        func_invoke(func, &errand->invocation);
        return;
    }
    target_invoke(func, function, &errand->invocation);
    function_release(function);
}

/* One that was being read while the queue was stopped stays in the table for later. */
static void errand_invoke(struct errand *errand)
{
    struct queue *queue = errand->queue;
    pthread_mutex_lock(&queue->gate);
    bool is_shut = queue->is_shut;
    if (!is_shut) invoke_named(queue->func, errand);
    pthread_mutex_unlock(&queue->gate);
    if (is_shut) errand_wait(errand, queue_now_ms(queue));
}

static void errand_run(struct errand *errand)
{
    struct queue *queue = errand->queue;
    struct slice name, qualifier;
    if (function_name_parse(errand->function, &name, &qualifier))
        registry_async_settings(queue->func, name, qualifier, &errand->arena, &errand->settings);
    else /* a URL, or another target */
        errand->settings = (struct async_settings){.retries = 2, .age_max_ms = QUEUE_URL_AGE_MS};
    if (!errand->settings.on_failure.len) errand->settings.on_failure = errand->failure;
    if (queue_now_ms(queue) - errand->accepted_ms > errand->settings.age_max_ms) {
        errand->state = ERRAND_SETTLES;
        errand_expire(errand);
        return;
    }
    errand->invocation = (struct invocation){.function = errand->function,
                                             .payload = errand->payload,
                                             .cause = errand->cause,
                                             .arena = &errand->arena,
                                             .done = invocation_done,
                                             .context = errand};
    /* Lambda: all attempts of a call have its id. */
    if (errand->id_len < sizeof errand->invocation.request_id)
        memcpy(errand->invocation.request_id, errand->id, errand->id_len);
    errand->state = ERRAND_RUNS;
    errand->renew_us = monotonic_us() + QUEUE_LEASE_MS * 1000ll / 3;
    errand->then = after_run;
    errand_invoke(errand);
}

/* ---- reading and claiming ---- */

static void after_claim(struct errand *errand)
{
    if (errand->call.status == 200) {
        errand->fence++;
        errand_run(errand);
    } else if (errand->call.error && strcmp(errand->call.error, "ConditionalCheckFailedException") == 0) {
        errand_wait(errand,
                    queue_now_ms(errand->queue) + QUEUE_LEASE_MS / 3); /* lost to somebody: look later */
    } else {
        errand_wait(errand, queue_now_ms(errand->queue) + QUEUE_WRITE_AGAIN_MS);
    }
}

static void errand_claim(struct errand *errand)
{
    int64_t now_ms = queue_now_ms(errand->queue);
    errand->request.len = 0;
    errand_put_claim(errand, now_ms, &errand->request);
    queue_errand_call(errand, "UpdateItem", after_claim);
}

static void after_load(struct errand *errand)
{
    struct queue *queue = errand->queue;
    int64_t now_ms = queue_now_ms(queue);
    bool is_missing = errand->call.error && strcmp(errand->call.error, "ResourceNotFoundException") == 0;
    if (errand->call.status != 200 && !is_missing) {
        errand_wait(errand, now_ms + QUEUE_WRITE_AGAIN_MS);
        return;
    }
    /* Not there: somebody has finished it, or the transaction that was to put it is not through. */
    if (is_missing || !errand_read(errand)) {
        errand_forget(errand);
        return;
    }
    queue_put_found(queue, (struct slice){errand->id, errand->id_len});
    bool is_ours = queue_is_mine(queue, errand->holder);
    if (errand->due_ms > now_ms)
        errand_wait(errand, errand->due_ms);
    else if (is_ours && errand->lease_ms - now_ms > QUEUE_LEASE_MS / 2)
        errand_run(errand);
    else if (errand->holder.len && !is_ours && errand->lease_ms > now_ms)
        errand_wait(errand, errand->lease_ms);
    else
        errand_claim(errand);
}

void errand_begin(struct errand *errand)
{
    errand->state = ERRAND_LOADING;
    errand->written_cause = SLICE_NONE;
    errand->rejected = false;
    errand->invocation = (struct invocation){0};
    errand->request.len = 0;
    errand_put_load(errand, &errand->request);
    queue_errand_call(errand, "BatchGetItem", after_load);
}

/* ---- keeping it while it runs, where others share ---- */

static void renewal_done(struct dynamo_call *call)
{
    struct errand *errand = ring_owner(call, struct errand, renewal);
    struct queue *queue = errand->queue;
    pthread_mutex_lock(&queue->lock);
    errand->next_renewed = queue->renewed;
    queue->renewed = errand;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

/* A renewal that fails changes nothing here: the fence decides when the call is settled. */
void errand_renew(struct errand *errand, int64_t now_us)
{
    struct queue *queue = errand->queue;
    if (errand->state != ERRAND_RUNS || errand->is_renewing || now_us < errand->renew_us) return;
    errand->renew_us = now_us + QUEUE_LEASE_MS * 1000ll / 3;
    errand->is_renewing = true;
    arena_reset(&errand->renewal_arena);
    errand->renewal_request.len = errand->renewal_reply.len = 0;
    errand_put_renewal(errand, queue_now_ms(queue), &errand->renewal_request);
    errand->renewal = (struct dynamo_call){.name = SLICE("UpdateItem"),
                                           .request = buf_view(&errand->renewal_request),
                                           .arena = &errand->renewal_arena,
                                           .reply = &errand->renewal_reply,
                                           .done = renewal_done};
    if (dynamo_begin(queue->func->options.dynamo, &errand->renewal, &queue->turn))
        errand->is_renewing = false;
}

void errand_renewed(struct errand *errand)
{
    void (*after)(struct errand *) = errand->after_renewal;
    dynamo_finish(&errand->renewal);
    errand->is_renewing = false;
    errand->after_renewal = NULL;
    if (after) after(errand);
}
