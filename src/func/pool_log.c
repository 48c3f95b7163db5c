/* What a process prints, on its way into its function's log: whole lines, between START and END of what it
 * runs.
 *
 * Output comes by a pipe and answers by a socket, each on a thread of its own. So whoever takes an answer first
 * drains the pipe (instance_drain): what was printed before the answer is in the log before END and REPORT, and
 * before the process can be given its next event.
 *
 * A process that runs several invocations at a time has one output for all of them. A line that names the
 * request that it belongs to, as those of console.log and logging do, is kept from the others' logs; one that
 * names none goes to all. */
#include <stdio.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/limits.h"
#include "func/pool.h"

void voice_init(struct voice *voice)
{
    pthread_mutex_init(&voice->lock, NULL);
    ring_init(&voice->runs);
}

void voice_free(struct voice *voice)
{
    ensure(ring_empty(&voice->runs));
    pthread_mutex_destroy(&voice->lock);
    buf_free(&voice->partial);
    buf_free(&voice->prologue);
}

void instance_drain(struct instance *instance)
{
    pool_lock(instance->pool);
    struct sandboxed *process = instance->process;
    pool_unlock(instance->pool);
    if (process) sandbox_drain(process);
}

/* Keeps the last bytes only. */
static void tail_put(struct buf *tail, struct slice bytes)
{
    if (bytes.len > LIMIT_LOG_TAIL_BYTES) bytes = slice_from(bytes, bytes.len - LIMIT_LOG_TAIL_BYTES);
    size_t kept = LIMIT_LOG_TAIL_BYTES - bytes.len;
    if (tail->len > kept) {
        memmove(tail->data, tail->data + tail->len - kept, kept);
        tail->len = kept;
    }
    buf_slice(tail, bytes);
}

/* Whether a line names another invocation of the same process, and not this one. */
static bool is_of_another(const struct voice *voice, const struct run *run, struct slice line)
{
    if (slice_contains(line, slice_of(run->id))) return false;
    ring_each(struct run, other, voice, &voice->runs)
    {
        if (other != run && slice_contains(line, slice_of(other->id))) return true;
    }
    return false;
}

static void run_hear(const struct voice *voice, struct run *run, struct slice lines)
{
    if (voice->runs.next->next == &voice->runs) { /* it is alone */
        tail_put(&run->tail, lines);
        return;
    }
    while (lines.len) {
        const char *end = memchr(lines.data, '\n', lines.len);
        size_t len = end ? (size_t)(end - lines.data) + 1 : lines.len;
        struct slice line = {lines.data, len};
        if (!is_of_another(voice, run, line)) tail_put(&run->tail, line);
        lines = slice_from(lines, len);
    }
}

static void log_put(struct instance *instance, struct slice lines)
{
    logs_append(instance->pool->func->logs, instance->function->name, lines);
    meters_log(instance->pool->meters, instance->function->name, lines.len);
}

static void voice_put(struct instance *instance, struct slice lines)
{
    struct voice *voice = &instance->voice;
    log_put(instance, lines);
    if (!voice->has_begun) tail_put(&voice->prologue, lines);
    ring_each(struct run, run, voice, &voice->runs)
    {
        if (run->wants_log) run_hear(voice, run, lines);
    }
}

static void put_partial(struct instance *instance)
{
    struct buf *partial = &instance->voice.partial;
    if (!partial->len) return;
    buf_byte(partial, '\n');
    voice_put(instance, buf_view(partial));
    partial->len = 0;
}

/* ---- the system's lines ---- */

/* The beginning of a line in a JSON log, up to the members of its record. */
static void put_event(struct buf *out, struct instance *instance, const char *type, const struct run *run)
{
    buf_text(out, "{\"time\":\"");
    time_put(out, clock_now_ms(instance->pool->func->options.clock));
    buf_printf(out, "\",\"type\":\"platform.%s\",\"record\":{\"requestId\":\"%s\"", type, run->id);
}

static void put_start(struct buf *out, struct instance *instance, const struct run *run)
{
    const struct function *function = run->function;
    if (!function->logs_json) {
        buf_printf(out, "START RequestId: %s Version: %.*s\n", run->id, SLICE_ARG(function->version));
    } else if (function->system_level <= SYSTEM_INFO) {
        put_event(out, instance, "start", run);
        buf_printf(out, ",\"version\":\"%.*s\"}}\n", SLICE_ARG(function->version));
    }
}

void voice_start(struct instance *instance, struct run *run)
{
    struct voice *voice = &instance->voice;
    struct buf line = {0};
    put_start(&line, instance, run);
    pthread_mutex_lock(&voice->lock);
    if (ring_empty(&voice->runs)) put_partial(instance);
    voice->has_begun = true;
    log_put(instance, buf_view(&line));
    if (run->wants_log) tail_put(&run->tail, buf_view(&line));
    ring_append(&voice->runs, &run->voice);
    pthread_mutex_unlock(&voice->lock);
    buf_free(&line);
}

void voice_output(void *context, struct slice bytes)
{
    struct instance *instance = context;
    struct buf *partial = &instance->voice.partial;
    pthread_mutex_lock(&instance->voice.lock);
    const char *end = bytes.len ? memrchr(bytes.data, '\n', bytes.len) : NULL;
    size_t whole = end ? (size_t)(end - bytes.data) + 1 : 0;
    if (whole && partial->len) {
        buf_put(partial, bytes.data, whole);
        voice_put(instance, buf_view(partial));
        partial->len = 0;
    } else if (whole) {
        voice_put(instance, (struct slice){bytes.data, whole});
    }
    buf_slice(partial, slice_from(bytes, whole));
    if (partial->len >= LIMIT_LOG_LINE_BYTES) put_partial(instance);
    pthread_mutex_unlock(&instance->voice.lock);
}

/* Why it failed, where the function could not say so itself; in Lambda's words. */
static void put_reason(struct buf *out, struct instance *instance, const struct run *run)
{
    if (!run->error_type) return;
    if (strcmp(run->error_type, "Sandbox.Timedout") == 0) {
        time_put(out, clock_now_ms(instance->pool->func->options.clock));
        buf_printf(out, " %s %.*s\n\n", run->id, SLICE_ARG(run->error));
    } else {
        buf_printf(out, "RequestId: %s Error: %.*s\n%s\n", run->id, SLICE_ARG(run->error), run->error_type);
    }
}

static void put_text_report(struct buf *out, struct instance *instance, const struct run *run,
                            int64_t duration_us, uint64_t memory_mb)
{
    put_reason(out, instance, run);
    buf_printf(out, "END RequestId: %s\nREPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %lld ms\t",
               run->id, run->id, (double)duration_us / 1000, (long long)(duration_us + 999) / 1000);
    buf_printf(out, "Memory Size: %u MB\tMax Memory Used: %llu MB\t", run->function->memory_mb,
               (unsigned long long)memory_mb);
    if (!instance->init_reported && instance->init_us)
        buf_printf(out, "Init Duration: %.2f ms\t", (double)instance->init_us / 1000);
    if (run->status) buf_printf(out, "Status: %s\t", run->status);
    if (run->error_type && run->status && strcmp(run->status, "error") == 0)
        buf_printf(out, "Error Type: %s\t", run->error_type);
    buf_byte(out, '\n');
}

/* The reason of a failure is a line of the application's level ERROR, which no system's level leaves out. */
static void put_json_reason(struct buf *out, struct instance *instance, const struct run *run)
{
    if (!run->error_type) return;
    buf_text(out, "{\"timestamp\":\"");
    time_put(out, clock_now_ms(instance->pool->func->options.clock));
    buf_printf(out, "\",\"level\":\"ERROR\",\"requestId\":\"%s\",\"errorType\":\"%s\",\"message\":", run->id,
               run->error_type);
    json_put_string(out, run->error);
    buf_text(out, "}\n");
}

static void put_json_end(struct buf *out, const struct run *run)
{
    buf_printf(out, ",\"status\":\"%s\"", run->status ? run->status : "success");
    if (run->error_type && run->status && strcmp(run->status, "error") == 0)
        buf_printf(out, ",\"errorType\":\"%s\"", run->error_type);
    buf_text(out, "}}\n");
}

static void put_json_report(struct buf *out, struct instance *instance, const struct run *run,
                            int64_t duration_us, uint64_t memory_mb)
{
    enum system_level level = run->function->system_level;
    double duration_ms = (double)duration_us / 1000;
    put_json_reason(out, instance, run);
    if (run->status || level <= SYSTEM_DEBUG) {
        put_event(out, instance, "runtimeDone", run);
        buf_printf(out, ",\"metrics\":{\"durationMs\":%.3f,\"producedBytes\":%zu}", duration_ms, run->reply.len);
        put_json_end(out, run);
    }
    if (run->status || level <= SYSTEM_INFO) {
        put_event(out, instance, "report", run);
        buf_printf(out,
                   ",\"metrics\":{\"durationMs\":%.3f,\"billedDurationMs\":%lld,\"memorySizeMB\":%u,"
                   "\"maxMemoryUsedMB\":%llu",
                   duration_ms, (long long)(duration_us + 999) / 1000, run->function->memory_mb,
                   (unsigned long long)memory_mb);
        if (!instance->init_reported && instance->init_us)
            buf_printf(out, ",\"initDurationMs\":%.3f", (double)instance->init_us / 1000);
        buf_byte(out, '}');
        put_json_end(out, run);
    }
}

/* How it ended and what it took. */
static void put_report(struct buf *out, struct instance *instance, const struct run *run,
                       uint64_t memory_bytes)
{
    int64_t duration_us = run->given_us ? monotonic_us() - run->given_us : 0;
    uint64_t memory_mb = (memory_bytes + (1 << 20) - 1) >> 20;
    if (run->function->logs_json)
        put_json_report(out, instance, run, duration_us, memory_mb);
    else
        put_text_report(out, instance, run, duration_us, memory_mb);
    instance->init_reported = true;
}

void voice_end(struct instance *instance, struct run *run)
{
    struct voice *voice = &instance->voice;
    struct buf lines = {0};
    pthread_mutex_lock(&voice->lock);
    if (run->memory_bytes > instance->memory_peak_bytes) instance->memory_peak_bytes = run->memory_bytes;
    put_partial(instance);
    put_report(&lines, instance, run, instance->memory_peak_bytes);
    log_put(instance, buf_view(&lines));
    if (run->wants_log) tail_put(&run->tail, buf_view(&lines));
    ring_remove(&run->voice);
    pthread_mutex_unlock(&voice->lock);
    buf_free(&lines);
}

void voice_fail(struct instance *instance, struct run *run)
{
    struct voice *voice = &instance->voice;
    struct buf lines = {0};
    pthread_mutex_lock(&voice->lock);
    put_partial(instance);
    put_start(&lines, instance, run);
    put_report(&lines, instance, run, run->memory_bytes);
    log_put(instance, buf_view(&lines));
    if (run->wants_log) {
        tail_put(&run->tail, buf_view(&voice->prologue));
        tail_put(&run->tail, buf_view(&lines));
    }
    pthread_mutex_unlock(&voice->lock);
    buf_free(&lines);
}

void voice_flush(struct instance *instance)
{
    pthread_mutex_lock(&instance->voice.lock);
    put_partial(instance);
    pthread_mutex_unlock(&instance->voice.lock);
}

void voice_leave(struct instance *instance, struct run *run)
{
    pthread_mutex_lock(&instance->voice.lock);
    ring_remove(&run->voice);
    run->tail.len = 0;
    pthread_mutex_unlock(&instance->voice.lock);
}
