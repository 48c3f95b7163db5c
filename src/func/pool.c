/* Processes of functions, and which invocation goes to which.
 *
 * A *group* is one revision of a function: its *instances* (processes, each with a port of its own) and the
 * *runs* (invocations) that wait for one. A run goes to the instance that was used last, for it is the
 * warmest and the others may grow old and end. Where none asks for an event, the run waits in its group, and
 * a process is started unless one is expected to ask any moment: after an answer the process needs some
 * microseconds before it asks again, and a second process for that gap would double their number under a
 * steady load.
 *
 * Who waits is covered by what is expected: processes that start, and answers just given. Who is not covered
 * waits POOL_WAIT_MS where the server's own limit is the reason (an idle process of another function is ended
 * at once to make room, so that this happens only when all are busy), and is throttled at once where the
 * function's reserved concurrency is.
 *
 * A start may take POOL_INIT_MS and the function's time-out. (Lambda ends it after 10 s, starts over and
 * counts that into the invocation: the sum is the same, and starting over gains nothing here.) After a failed
 * start the next one is put off, longer each time, one at a time; from the second failure on it takes all
 * with it who wait, who would only see it fail again.
 *
 * Invariants:
 *  I1. A run is in one place: in its group's waiting, in its instance's running, or on the way to its answer.
 *      It leaves each under the lock, so it is answered once.
 *  I2. An event goes to a request for `next` that is open. When its client turns out to have left, the run
 *      goes to another request of the same process, else back to the head of the waiting. When a process asks
 *      for `next` without having answered, it is given the same event again, as Lambda does; so an event
 *      whose delivery was cut off is not lost: it is delivered again, or the run times out.
 *  I3. An instance counts as a process from instance_new until the sandbox says that nothing of it is left.
 *      It is freed when its port is closed, after which no request of its comes any more, and no event is on
 *      its way.
 *  I4. A run that timed out alone in its process is answered when the process has ended, so nothing of it
 *      runs on when its caller hears of it. Where others run in the same process, it is answered at once and
 *      the process gets nothing new and ends after them.
 *  I5. Every state has an end by time: starting, running, answered without asking again, idle, told to stop.
 *
 * Locks, in this order: the registry's; pool->lock; a program's output in the sandbox; voice.lock of an
 * instance; and as leaves those inside logs, meters and sandbox.
 * `done` of invocations, `forward`, bootstrap_command and all of net (a task that is posted
 * may be run at once, when the loops have ended) are called without any: what is to be done then is noted in
 * a struct after. Threads: requests of processes come on net's loops, ends and output on the sandbox's, all
 * that happens by time, starts included, on the pool's own (pool_thread.c). */
#include "func/pool.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"

struct pool *pool_open(struct func *func)
{
    struct pool *pool = must_zero(1, sizeof *pool);
    pool->func = func;
    pool->process_max = func->options.process_max ? func->options.process_max : POOL_PROCESSES;
    pool->idle_us = (func->options.idle_ms ? func->options.idle_ms : POOL_IDLE_MS) * 1000;
    pool->init_ms = POOL_INIT_MS;
    pool->wait_ms = POOL_WAIT_MS;
    pthread_mutex_init(&pool->lock, NULL);
    random_seed_from_system(&pool->random);
    for (unsigned i = 0; i < POOL_BUCKETS; i++) ring_init(&pool->buckets[i]);
    ring_init(&pool->instances);
    ring_init(&pool->hungry);
    ring_init(&pool->debugs);
    pool->to_start_end = &pool->to_start;
    atomic_store(&pool->wake_us, INT64_MAX);
    pool->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ensure(pool->wake_fd >= 0);
    pool->watcher = watcher_new();
    pool->meters = meters_new();
    return pool;
}

void pool_start(struct pool *pool)
{
    ensure(!pool->has_thread);
    ensure(pthread_create(&pool->thread, NULL, pool_run_thread, pool) == 0);
    pool->has_thread = true;
}

/* Tells all to end. */
void pool_refuse_all(struct pool *pool, struct after *after)
{
    ring_each(struct group, group, hungry, &pool->hungry)
        group_start_failed(group, NULL, UINT32_MAX, INVOCATION_REFUSED, SLICE("ServiceException"),
                           SLICE("The server is stopping"), SLICE_NONE, after);
    ring_each(struct instance, instance, all, &pool->instances) instance_stop(instance, 0);
}

void pool_stop(struct pool *pool)
{
    struct after after = {0};
    pool_lock(pool);
    pool->is_closing = true;
    pool_refuse_all(pool, &after);
    pool_unlock(pool);
    pool_wake_by(pool, 0);
    after_do(pool, &after);
    if (pool->has_thread) pthread_join(pool->thread, NULL); /* it ends with the last instance and answer */
    pool->has_thread = false;
}

void pool_close(struct pool *pool)
{
    if (!pool) return;
    pool_stop(pool);
    for (unsigned i = 0; i < POOL_BUCKETS; i++)
        ring_each(struct group, group, all, &pool->buckets[i]) group_free(group);
    pool_debug_free(pool);
    watcher_free(pool->watcher);
    meters_free(pool->meters);
    close(pool->wake_fd);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static struct ring *bucket_of(struct pool *pool, struct slice name)
{
    return &pool->buckets[hash_bytes(name) % POOL_BUCKETS];
}

/* Why nothing can run here; NULL when it can. */
static const char *pool_refusal(const struct pool *pool)
{
    if (pool->is_closing) return "The server is stopping";
    if (!pool->func->options.sandbox) return "This server runs no processes";
    if (!pool->has_thread) return "The server has not started yet";
    return NULL;
}

static struct group *group_of(struct pool *pool, struct function *function);

void pool_invoke(struct pool *pool, struct function *function, struct invocation *invocation)
{
    uint32_t reserved = registry_reserved(pool->func, function->name);
    struct run *run = run_new(pool, function, invocation);
    struct after after = {0};
    pool_lock(pool);
    const char *refusal = pool_refusal(pool);
    if (refusal) {
        run_fail(run, "ServiceException", "%s", refusal);
        run->end = INVOCATION_REFUSED;
        run_leave(run, &after);
    } else if (reserved == 0) {
        run->end = INVOCATION_THROTTLED;
        run_leave(run, &after);
    } else {
        struct group *group = group_of(pool, function);
        group->reserved = reserved;
        run->group = group;
        ring_append(&group->waiting, &run->link);
        group->waiting_count++;
        group_serve(group, &after);
    }
    pool_unlock(pool);
    after_do(pool, &after);
}

/* Published versions do not change: they go only with the whole function. */
static bool group_is_older(const struct group *group, struct slice name, uint64_t below_revision)
{
    const struct function *function = group->function;
    if (!slice_equal(function->name, name)) return false;
    return below_revision == UINT64_MAX ||
           (function->revision < below_revision && slice_equal(function->version, SLICE("$LATEST")));
}

/* Called under the registry's lock: who waits is seen to by the pool's thread, so that nobody is answered
 * here. */
void pool_retire(struct pool *pool, struct slice name, uint64_t below_revision)
{
    pool_lock(pool);
    ring_each(struct group, group, all, bucket_of(pool, name))
    {
        if (!group_is_older(group, name, below_revision)) continue;
        group->is_retired = true;
        ring_each(struct instance, instance, of_group, &group->instances) instance_retire(instance);
    }
    pool_unlock(pool);
    pool_wake_by(pool, 0);
    if (below_revision == UINT64_MAX) meters_forget(pool->meters, name);
}

bool pool_is_idle(struct pool *pool)
{
    return atomic_load(&pool->under_way) == 0;
}

/* ---- groups ---- */

static struct group *group_new(struct pool *pool, struct function *function, struct ring *bucket)
{
    struct group *group = must_zero(1, sizeof *group);
    group->pool = pool;
    group->function = function_keep(function);
    group->reserved = UINT32_MAX;
    ring_init(&group->hungry);
    ring_init(&group->instances);
    ring_init(&group->ready);
    ring_init(&group->waiting);
    ring_prepend(bucket, &group->all);
    return group;
}

/* By the function itself, which is immutable: a name that was deleted and made again may have the same
 * revision. */
static struct group *group_of(struct pool *pool, struct function *function)
{
    struct ring *bucket = bucket_of(pool, function->name);
    struct group *found = NULL;
    ring_each(struct group, group, all, bucket)
    {
        if (group->function != function) continue;
        found = group;
        break;
    }
    if (!found) found = group_new(pool, function, bucket);
    found->used_us = monotonic_us();
    return found;
}

void group_free(struct group *group)
{
    ensure(ring_empty(&group->instances) && ring_empty(&group->waiting));
    if (group->folder) watcher_remove(group->pool->watcher, group);
    ring_remove(&group->all);
    ring_remove(&group->hungry);
    function_release(group->function);
    free(group);
}

/* How many of those who wait will be served without a further process, when one that was answered asks again
 * so soon. */
static unsigned group_expected(const struct group *group, int64_t now_us, int64_t return_ms)
{
    unsigned expected = 0;
    ring_each(struct instance, instance, of_group, &group->instances)
    {
        bool fails = instance->is_late && !instance->has_asked; /* they will be told when it has ended */
        if (instance->state == INSTANCE_RETIRING && !fails) continue;
        bool soon = !instance->has_asked || now_us < instance->returning_us + return_ms * 1000;
        if (soon) expected += instance->returning;
    }
    return expected;
}

/* SOON: only time stands in the way. LATER: the server is full. NEVER: the function is. */
enum start { START_NOW, START_SOON, START_LATER, START_NEVER };

/* Whether those that run now will have served all who wait before a further process could. The more there
 * are, the longer it may seem otherwise: it is then the machine that is slow, and a further process would
 * make it slower. */
static bool group_keeps_up(const struct group *group, int64_t now_us)
{
    if (!group->duration_us || !group->init_us) return false; /* nothing is known yet */
    uint64_t running = 0;
    int64_t patience_us = 0, step_us = POOL_PATIENCE_MS * 1000;
    ring_each(struct instance, instance, of_group, &group->instances)
    {
        if (instance->state == INSTANCE_RETIRING) continue;
        running += instance->running_count + instance->returning;
        patience_us += group->init_us > step_us ? group->init_us : step_us;
    }
    if (patience_us > POOL_PATIENCE_MAX_MS * 1000) patience_us = POOL_PATIENCE_MAX_MS * 1000;
    if (now_us - group->hungry_us >= patience_us) return false;
    return group->waiting_count <= running * (uint64_t)group->init_us / (uint64_t)group->duration_us;
}

static unsigned group_starting(const struct group *group)
{
    unsigned starting = 0;
    ring_each(struct instance, instance, of_group, &group->instances) starting += !instance->has_asked;
    return starting;
}

/* The function's own limit: START_NEVER when it is reached by busy processes. An idle one of another revision
 * or version makes room. */
static enum start start_within_reserved(struct group *group)
{
    struct pool *pool = group->pool;
    uint32_t count = 0;
    bool ending = false, is_debugged = pool_debug_port(pool, group->function->name) != 0;
    struct instance *idle = NULL;
    if (group->reserved == UINT32_MAX && !is_debugged) return START_NOW;
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (instance->state == INSTANCE_ENDED ||
            !slice_equal(instance->function->name, group->function->name))
            continue;
        count++;
        ending |= instance->is_stopping;
        if (instance_is_idle(instance) && instance->group != group) idle = instance;
    }
    if (count < group->reserved && !(is_debugged && count)) return START_NOW;
    if (idle && !ending) {
        instance_stop(idle, 0);
        ending = true;
    }
    if (is_debugged) return START_SOON; /* one at a time, and people take their time */
    return ending ? START_LATER : START_NEVER;
}

/* The server's limit: ends the idle process that was not used for longest, one for each that is wanted. */
static enum start start_within_server(struct pool *pool)
{
    struct instance *oldest = NULL;
    if (pool->live_count < pool->process_max) return START_NOW;
    if (pool->live_count - pool->ending_count < pool->process_max) return START_LATER;
    ring_each(struct instance, instance, all,
              &pool->instances) if (instance_is_idle(instance) && !instance->debug_port &&
                                    (!oldest || instance->used_us < oldest->used_us)) oldest = instance;
    if (oldest) {
        stats_add(&pool->stats.evictions, 1);
        instance_stop(oldest, 0);
    }
    return START_LATER;
}

static enum start group_may_start(struct group *group, int64_t now_us)
{
    if (now_us < group->retry_us) {
        pool_wake_by(group->pool, group->retry_us);
        return START_SOON;
    }
    enum start start = start_within_reserved(group);
    if (start != START_NOW) return start;
    if (group_starting(group) >= (group->failures ? 1 : POOL_STARTS)) return START_SOON;
    return group_keeps_up(group, now_us) ? START_SOON : start_within_server(group->pool);
}

bool pool_prepare(struct pool *pool, struct function *function)
{
    struct group *group = group_of(pool, function);
    bool starts = group_may_start(group, monotonic_us()) == START_NOW;
    if (starts) instance_new(group);
    return starts;
}

/* Throttles those who are not covered and have waited so long. */
static void group_turn_away(struct group *group, int64_t now_us, int64_t age_us, struct after *after)
{
    unsigned covered = group_expected(group, now_us, group->pool->wait_ms);
    ring_each(struct run, run, link, &group->waiting)
    {
        if (covered) {
            covered--;
        } else if (now_us - run->asked_us >= age_us) {
            run->end = INVOCATION_THROTTLED;
            run_leave(run, after);
        }
    }
}

/* A limit that was lowered below what is there: idle processes do not count as room. */
static bool group_is_full(const struct group *group)
{
    uint32_t busy = 0;
    if (group->reserved == UINT32_MAX) return false;
    ring_each(struct instance, instance, all, &group->pool->instances)
        busy += instance->running_count > 0 && slice_equal(instance->function->name, group->function->name);
    return busy >= group->reserved;
}

static void group_give(struct group *group, struct after *after)
{
    while (!ring_empty(&group->waiting) && !ring_empty(&group->ready)) {
        struct instance *instance = ring_owner(group->ready.next, struct instance, ready);
        if (!instance->running_count && group_is_full(group)) return;
        struct run *run = ring_owner(group->waiting.next, struct run, link);
        ring_remove(&run->link);
        group->waiting_count--;
        instance_give(instance, run, after);
    }
}

/* How long who is not covered waits, by what keeps a process from starting. */
static int64_t wait_us(const struct pool *pool, enum start start)
{
    switch (start) {
    case START_NEVER: return 0;
    case START_LATER: return pool->wait_ms * 1000;
    default: return INT64_MAX;
    }
}

void group_serve(struct group *group, struct after *after)
{
    struct pool *pool = group->pool;
    group_give(group, after);
    if (group->waiting_count) {
        int64_t now_us = monotonic_us();
        if (ring_empty(&group->hungry)) group->hungry_us = now_us;
        /* one asks, and yet somebody waits: the reserved limit was lowered below what runs */
        enum start start = ring_empty(&group->ready) ? START_NOW : START_NEVER;
        while (start == START_NOW && group->waiting_count > group_expected(group, now_us, POOL_RETURN_MS)) {
            start = group_may_start(group, now_us);
            if (start != START_NOW) break;
            instance_new(group);
            group->hungry_us = now_us;
        }
        group_turn_away(group, now_us, wait_us(pool, start), after);
        if (group->waiting_count) pool_wake_by(pool, now_us + POOL_RETURN_MS * 1000);
    }
    ring_remove(&group->hungry);
    if (group->waiting_count) ring_append(&pool->hungry, &group->hungry);
}

void pool_serve_hungry(struct pool *pool, struct after *after)
{
    struct ring now = pool->hungry; /* who is still hungry afterwards is put behind again */
    if (ring_empty(&pool->hungry)) return;
    now.next->prev = now.prev->next = &now;
    ring_init(&pool->hungry);
    while (!ring_empty(&now)) group_serve(ring_owner(now.next, struct group, hungry), after);
}

void group_start_failed(struct group *group, struct instance *instance, unsigned slots,
                        enum invocation_end end, struct slice type, struct slice reason, struct slice posted,
                        struct after *after)
{
    ring_each(struct run, run, link, &group->waiting)
    {
        if (!slots--) break;
        if (posted.len)
            buf_slice(&run->reply, posted);
        else
            run_fail(run, type.data, "%.*s", SLICE_ARG(reason));
        run->end = end;
        run->status = slice_equal(type, SLICE("Sandbox.Timedout")) ? "timeout" : "error";
        if (instance) voice_fail(instance, run);
        run_leave(run, after);
    }
}

/* ---- instances ---- */

bool instance_is_idle(const struct instance *instance)
{
    return instance->state == INSTANCE_IDLE && !instance->is_stopping;
}

void instance_settle(struct instance *instance)
{
    if (instance->state == INSTANCE_ENDED) return;
    bool rests = !instance->running_count && instance->asking_count;
    if (instance->state == INSTANCE_RETIRING || instance->is_stopping) {
        instance->state = INSTANCE_RETIRING;
        ring_remove(&instance->ready);
        if (rests) instance_stop(instance, POOL_GRACE_MS);
        return;
    }
    if (instance->has_asked) instance->state = rests ? INSTANCE_IDLE : INSTANCE_BUSY;
    bool is_ready = !ring_empty(&instance->ready);
    if (instance->asking_count && !is_ready) ring_prepend(&instance->group->ready, &instance->ready);
    if (!instance->asking_count && is_ready) ring_remove(&instance->ready);
}

/* One that starts may serve who waits for it first: a function that changes its own folder while it starts
 * would otherwise never get to run. */
void instance_retire(struct instance *instance)
{
    if (instance->state == INSTANCE_ENDED) return;
    if (!instance->has_asked) {
        instance->is_stale = true;
        return;
    }
    instance->state = INSTANCE_RETIRING;
    instance_settle(instance);
}

void instance_stop(struct instance *instance, int64_t grace_ms)
{
    if (instance->state == INSTANCE_ENDED) return;
    if (instance->is_stopping && grace_ms >= instance->stop_grace_ms) return;
    if (!instance->is_stopping) instance->pool->ending_count++;
    instance->is_stopping = true;
    instance->stop_grace_ms = grace_ms;
    instance->state = INSTANCE_RETIRING;
    ring_remove(&instance->ready);
    if (instance->process) sandbox_stop(instance->process, grace_ms);
}
