/* The room's struct, opened and closed; the routes under /v1/backup, and the thread that wakes requests that wait for a
 * batch, and tidies.
 *
 * A reader of the log waits without a thread: its call stands in a list until there is a batch or its time is over.
 * What reads files runs on threads of this room's own, so that no loop waits for a disk. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backup/room.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "rest/rest.h"

#define WORKERS 2
#define POLL_MS 5    /* while somebody waits for a batch */
#define REST_MS 1000 /* while nobody does */
#define TIDY_US 10000000

/* ---- answers ---- */

static void answer_error(struct rest_call *call, int status, const char *error, const char *message)
{
    call->reply->len = 0;
    call->content_type = SLICE_NONE;
    call->status = status;
    buf_printf(call->reply, "{\"error\":\"%s\",\"message\":", error);
    json_put_string(call->reply, slice_of(message));
    buf_byte(call->reply, '}');
    call->done(call);
}

static void answer_bytes(struct rest_call *call)
{
    call->status = 200;
    call->content_type = SLICE("application/octet-stream");
    call->done(call);
}

static bool knows(const void *context, struct slice name)
{
    for (const char *const *known = context; *known; known++)
        if (slice_equal(slice_of(*known), name)) return true;
    return false;
}

/* Only these names stand in the query; else it is answered. */
static bool check_query(struct rest_call *call, const char *const *names)
{
    struct slice odd = rest_query_unknown(call, knows, names);
    if (!odd.data) return true;
    answer_error(call, 400, "validation",
                 arena_printf(call->arena, "there is no parameter '%.*s'", SLICE_ARG(odd)).data);
    return false;
}

#define NAME_RULE "follower and target must be names of up to 120 letters, digits and .-_"

/* Or nothing. */
static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '.' && c != '_' && c != '-') return false;
    }
    return text.len <= LIMIT_BACKUP_FOLLOWER_BYTES;
}

/* ---- checkpoints ---- */

static void make_checkpoint(void *room, struct rest_call *call)
{
    static const char *const names[] = {"target", NULL};
    struct backup *backup = room;
    struct slice target = rest_query(call, "target");
    char error[600];
    if (!check_query(call, names)) return;
    if (!is_name(target)) {
        answer_error(call, 400, "validation", NAME_RULE);
        return;
    }
    call->status = 200;
    if (checkpoint_add(&backup->followers, arena_printf(call->arena, "%.*s", SLICE_ARG(target)).data,
                       backup->options.folder, call->reply, error, sizeof error))
        call->done(call);
    else
        answer_error(call, 503, "unavailable", error);
}

static void read_file(void *room, struct rest_call *call)
{
    static const char *const names[] = {"from", NULL};
    struct backup *backup = room;
    struct slice from = rest_query(call, "from");
    unsigned long long at = 0;
    char path[DISK_PATH], error[600];
    if (!check_query(call, names)) return;
    if (from.data && !slice_to_u64(from, INT64_MAX, &at)) {
        answer_error(call, 400, "validation", "from must be a number of bytes");
        return;
    }
    if (!checkpoint_find(&backup->followers, call->parameters[0], call->parameters[1], path, error,
                         sizeof error)) {
        answer_error(call, 404, "not-found", error);
        return;
    }
    buf_u64(call->reply, 0); /* the checksum of what follows */
    buf_u64(call->reply, store_log_synced(backup->options.store));
    if (!disk_file_read(path, at, LIMIT_BACKUP_READ_BYTES, call->reply, error, sizeof error)) {
        answer_error(call, 500, "internal", error);
        return;
    }
    struct buf checksum = {0};
    buf_u64(&checksum, hash_bytes(slice_from(buf_view(call->reply), 8)));
    memcpy(call->reply->data, checksum.data, 8);
    buf_free(&checksum);
    answer_bytes(call);
}

static void end_checkpoint(void *room, struct rest_call *call)
{
    struct backup *backup = room;
    checkpoint_end(&backup->followers, call->parameters[0]); /* one that is gone has ended, too */
    call->status = 200;
    buf_text(call->reply, "{}");
    call->done(call);
}

/* ---- the log ---- */

struct log_request {
    char follower[LIMIT_BACKUP_FOLLOWER_BYTES + 1];
    uint64_t source;
    unsigned long long from, wait_ms;
};

static const char *log_request_read(struct rest_call *call, struct log_request *request)
{
    struct slice follower = rest_query(call, "follower"), wait = rest_query(call, "wait");
    if (!hex_read(rest_query(call, "source"), &request->source))
        return "source must be the id of a log, 16 digits";
    if (!slice_to_u64(rest_query(call, "from"), INT64_MAX, &request->from) || !request->from)
        return "from must be the number of a batch";
    if (wait.data && !slice_to_u64(wait, LIMIT_BACKUP_WAIT_MS, &request->wait_ms))
        return "wait must be up to 20000, in milliseconds";
    if (!is_name(follower)) return NAME_RULE;
    if (slice_equal(follower, SLICE(KEEP_NAME)))
        return "follower must not be '" KEEP_NAME "', which is the server's own";
    snprintf(request->follower, sizeof request->follower, "%.*s", SLICE_ARG(follower));
    return NULL;
}

static void serve_log(void *room, struct rest_call *call)
{
    struct backup *backup = room;
    struct log_request *request = call->context;
    struct followers *followers = &backup->followers;
    struct log_place place = follower_place(followers, request->follower, request->from);
    struct block_head head;
    char error[600];
    enum backup_log result = log_block(followers->store, &place, followers_newest(followers), request->source,
                                       followers->clock, call->reply, error, sizeof error);
    if (result == BACKUP_LOG_GONE) {
        follower_forget(followers, request->follower);
        answer_error(call, 410, "gone", error);
    } else if (result != BACKUP_LOG_BLOCK) {
        answer_error(call, 500, "internal", error);
    } else {
        ensure(block_head_read(buf_view(call->reply), &head));
        follower_sent(followers, request->follower, &place, head.until_ms);
        answer_bytes(call);
    }
}

/* Those that there is a batch for, and those whose time is over. */
static void wake(struct backup *backup)
{
    uint64_t synced = store_log_synced(backup->options.store);
    int64_t now_us = monotonic_us();
    for (struct waiting **at = &backup->waiting; *at;) {
        struct waiting *waiting = *at;
        if (waiting->from > synced && waiting->until_us > now_us && !atomic_load(&backup->stops)) {
            at = &waiting->next;
            continue;
        }
        *at = waiting->next;
        rest_workers_run(backup->workers, serve_log, backup, waiting->call);
    }
}

static void read_log(void *room, struct rest_call *call)
{
    static const char *const names[] = {"follower", "from", "source", "wait", NULL};
    struct backup *backup = room;
    struct log_request *request = arena_new(call->arena, struct log_request);
    if (!check_query(call, names)) return;
    const char *fault = log_request_read(call, request);
    if (fault) {
        answer_error(call, 400, "validation", fault);
        return;
    }
    call->context = request;
    bool is_ours = request->source == store_log_id(backup->options.store);
    if (is_ours && request->follower[0] &&
        !follower_has(&backup->followers, request->follower, request->from)) {
        answer_error(call, 400, "validation", "there are too many followers");
        return;
    }
    uint64_t synced = store_log_synced(backup->options.store);
    bool is_far = request->from > synced + 1 && request->from > followers_newest(&backup->followers) + 1;
    if (!is_ours || !request->wait_ms || synced >= request->from ||
        is_far) { /* what is far is not waited for */
        rest_workers_run(backup->workers, serve_log, backup, call);
        return;
    }
    struct waiting *waiting = arena_new(call->arena, struct waiting);
    *waiting = (struct waiting){
        .call = call, .from = request->from, .until_us = monotonic_us() + (int64_t)request->wait_ms * 1000};
    pthread_mutex_lock(&backup->lock);
    waiting->next = backup->waiting;
    backup->waiting = waiting;
    if (atomic_load(&backup->stops)) wake(backup); /* the thread that does it may have ended */
    pthread_cond_signal(&backup->more);
    pthread_mutex_unlock(&backup->lock);
}

/* ---- in the background ---- */

static void *poll_run(void *context)
{
    struct backup *backup = context;
    int64_t tidied_us = monotonic_us();
    pthread_mutex_lock(&backup->lock);
    while (!atomic_load(&backup->stops)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (backup->waiting ? POLL_MS : REST_MS) % 1000 * 1000000L;
        until.tv_sec += (backup->waiting ? 0 : REST_MS / 1000) + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&backup->more, &backup->lock, &until);
        wake(backup);
        if (monotonic_us() - tidied_us < TIDY_US) continue;
        pthread_mutex_unlock(&backup->lock);
        followers_tidy(&backup->followers);
        tidied_us = monotonic_us();
        pthread_mutex_lock(&backup->lock);
    }
    wake(backup);
    pthread_mutex_unlock(&backup->lock);
    return NULL;
}

/* ---- the room ---- */

struct backup *backup_open(const struct backup_options *options)
{
    struct backup *backup = must_zero(1, sizeof *backup);
    char error[600];
    backup->options = *options;
    backup->is_on_disk = options->store && options->folder;
    backup->has_routes = backup->is_on_disk && options->is_served && !options->refusal;
    pthread_mutex_init(&backup->lock, NULL);
    pthread_cond_init(&backup->more, NULL);
    if (!backup->is_on_disk) return backup;
    checkpoints_clear(options->folder);
    views_clear(options->folder);
    followers_init(&backup->followers, options->store, options->clock, options->folder);
    kept_init(&backup->kept, &backup->followers, options->folder, !options->keep_ms);
    if (backup->has_routes) {
        backup->workers = workers_new(WORKERS);
        ensure(pthread_create(&backup->poller, NULL, poll_run, backup) == 0);
    }
    if (options->keep_ms && !kept_keep(&backup->kept, options->keep_ms, error, sizeof error))
        log_line("the log cannot be kept: %s", error);
    return backup;
}

void backup_stop(struct backup *backup)
{
    if (!backup || atomic_exchange(&backup->stops, true)) return;
    if (backup->has_routes) {
        pthread_mutex_lock(&backup->lock);
        pthread_cond_signal(&backup->more);
        pthread_mutex_unlock(&backup->lock);
        pthread_join(backup->poller, NULL);
    }
    if (backup->is_on_disk) kept_stop(&backup->kept);
}

void backup_close(struct backup *backup)
{
    if (!backup) return;
    backup_stop(backup);
    if (backup->has_routes) workers_free(backup->workers);
    if (backup->is_on_disk) {
        kept_stop(&backup->kept); /* a table may have asked for it while everything was about to end */
        kept_free(&backup->kept);
        followers_free(&backup->followers);
        checkpoints_clear(backup->options.folder);
        views_clear(backup->options.folder);
    }
    snapshots_free(backup);
    pthread_cond_destroy(&backup->more);
    pthread_mutex_destroy(&backup->lock);
    free(backup);
}

#define ON_WORKER(name, work)                                                                                \
    static void name(void *room, struct rest_call *call)                                                     \
    {                                                                                                        \
        rest_workers_run(((struct backup *)room)->workers, work, room, call);                                \
    }
ON_WORKER(post_checkpoint, make_checkpoint)
ON_WORKER(get_file, read_file)
ON_WORKER(delete_checkpoint, end_checkpoint)

static const struct rest_route routes[] = {
    {"POST", "/v1/backup/checkpoints", post_checkpoint},
    {"DELETE", "/v1/backup/checkpoints/{id}", delete_checkpoint},
    {"GET", "/v1/backup/checkpoints/{id}/files/{name}", get_file},
    {"GET", "/v1/backup/log", read_log},
};

bool backup_serve(struct backup *backup, struct rest_call *call)
{
    const struct rest_route *route;
    enum rest_found found = rest_route(routes, sizeof routes / sizeof *routes, call, &route);
    if (found == REST_NOWHERE) return false;
    if (found == REST_OTHER_METHOD)
        answer_error(call, 405, "method-not-allowed", "this path is not for that method");
    else if (!backup->has_routes)
        answer_error(call, 400, "not-offered", backup->options.refusal);
    else if (atomic_load(&backup->stops))
        answer_error(call, 503, "unavailable", "the server is about to end");
    else
        route->serve(backup, call);
    return true;
}

void backup_put_metrics(struct backup *backup, struct buf *out)
{
    if (backup->has_routes) followers_put_metrics(&backup->followers, out);
}
