/* Replies that a runtime posts piece by piece, on their way to whoever takes them so (invocation->piece).
 *
 * The post's exchange belongs to the loop of the process's connection, the invocation to its caller, the run to the
 * pool; each may end before the others. The stream stands between them, counted:
 *  - `exchange` is touched on that loop's thread only, and NULL once the post has ended.
 *  - `invocation` is NULL once the run is answered; pieces are handed over under the lock, so none comes later.
 * Nothing is kept here: while the caller has no room the post is not read on, and the process waits. */
#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "func/pool.h"
#include "func/runtime.h"

struct func_stream {
    struct net_task task; /* first: resumes the post, on its loop */
    _Atomic uint32_t references;
    _Atomic bool is_resuming;
    pthread_mutex_t lock;
    struct invocation *invocation;
    struct http_exchange *exchange;
    struct net_loop *loop;
    uint64_t bytes;
    bool is_too_large;
    char id[RUN_ID_BYTES];
};

static void stream_release(struct func_stream *stream)
{
    if (atomic_fetch_sub(&stream->references, 1) != 1) return;
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* The id in /2018-06-01/runtime/invocation/ID/response. */
static struct slice posted_id(const struct http_exchange *exchange)
{
    static const struct slice before = SLICE("/2018-06-01/runtime/invocation/");
    if (exchange->method != HTTP_POST || !slice_starts(exchange->path, before)) return SLICE_NONE;
    struct slice rest = slice_from(exchange->path, before.len), id = slice_cut(&rest, '/');
    return slice_equal(rest, SLICE("response")) ? id : SLICE_NONE;
}

bool runtime_streams(void *context, struct http_exchange *exchange)
{
    struct instance *instance = context;
    struct slice id = posted_id(exchange), type = http_header_find(exchange, SLICE("Content-Type"));
    struct slice mode = http_header_find(exchange, SLICE("Lambda-Runtime-Function-Response-Mode"));
    if (!id.len || !slice_equal_ignoring_case(mode, SLICE("streaming"))) return false;
    pool_lock(instance->pool);
    struct run *run = instance_run(instance, id);
    bool streams = run && run->invocation->piece && !run->stream;
    if (streams) {
        struct func_stream *stream = must_zero(1, sizeof *stream);
        atomic_init(&stream->references, 2); /* the run's and the exchange's */
        pthread_mutex_init(&stream->lock, NULL);
        stream->invocation = run->invocation;
        stream->exchange = exchange;
        stream->loop = exchange->loop;
        memcpy(stream->id, run->id, sizeof stream->id);
        run->stream = exchange->user = stream;
        run->invocation->stream = stream;
        run->invocation->has_prelude = slice_equal_ignoring_case(type, SLICE(RUNTIME_PRELUDE_TYPE));
        run->invocation->content_type = arena_copy(run->invocation->arena, type);
    }
    pool_unlock(instance->pool);
    return streams;
}

bool runtime_stream_piece(void *context, struct http_exchange *exchange, struct slice bytes)
{
    struct func_stream *stream = exchange->user;
    if (stream->is_too_large) return true;
    stream->bytes += bytes.len;
    if (stream->bytes > LIMIT_STREAM_REPLY_BYTES) {
        stream->is_too_large = true;
        runtime_stream_cut(context, slice_of(stream->id));
        return true;
    }
    pthread_mutex_lock(&stream->lock);
    bool has_room = !stream->invocation || stream->invocation->piece(stream->invocation, bytes);
    pthread_mutex_unlock(&stream->lock);
    return has_room;
}

/* Its run goes on: the process may have ended, which is told then, or it may still post an error. */
void runtime_stream_torn(void *context, struct http_exchange *exchange)
{
    (void)context;
    runtime_stream_end(exchange);
}

bool runtime_stream_end(struct http_exchange *exchange)
{
    struct func_stream *stream = exchange->user;
    bool is_too_large = stream->is_too_large;
    stream->exchange = exchange->user = NULL;
    stream_release(stream);
    return !is_too_large;
}

struct func_stream *run_stream_leave(struct run *run)
{
    struct func_stream *stream = run->stream;
    if (!stream) return NULL;
    run->stream = NULL;
    pthread_mutex_lock(&stream->lock);
    stream->invocation = NULL;
    pthread_mutex_unlock(&stream->lock);
    return stream;
}

void run_stream_release(struct func_stream *stream)
{
    if (stream) stream_release(stream);
}

static void resume_on_loop(struct net_task *task)
{
    struct func_stream *stream = (struct func_stream *)task;
    atomic_store(&stream->is_resuming, false);
    if (stream->exchange) http_body_resume(stream->exchange);
    stream_release(stream);
}

void func_stream_resume(struct func_stream *stream)
{
    if (atomic_exchange(&stream->is_resuming, true)) return;
    atomic_fetch_add(&stream->references, 1);
    stream->task.run = resume_on_loop;
    net_post(stream->loop, &stream->task);
}
