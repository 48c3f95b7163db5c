/* The pool's own thread: starts and closes processes, and does what is due by time.
 *
 * It looks through all instances each time. Their number is small (process_max) and it sleeps until the first
 * thing is due, so a queue ordered by time would cost more than it saves. Whoever makes something due earlier
 * wakes it. */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "func/pool.h"

#define SLEEP_MAX_US    60000000
#define CLOSING_LOOK_US 2000 /* while the last answers are under way */

void pool_wake_by(struct pool *pool, int64_t due_us)
{
    if (due_us >= atomic_load(&pool->wake_us)) return;
    uint64_t one = 1;
    ssize_t written = write(pool->wake_fd, &one, sizeof one);
    (void)written; /* a full counter is a pending wake-up as well */
}

static void sooner(int64_t *due_us, int64_t other_us)
{
    if (other_us && other_us < *due_us) *due_us = other_us;
}

/* ---- time-outs ---- */

static void run_time_out(struct run *run, struct after *after)
{
    struct instance *instance = run->instance;
    run_fail(run, "Sandbox.Timedout", "Task timed out after %.2f seconds", run->timeout_ms / 1000.0);
    run->is_decided = true;
    run->status = "timeout";
    stats_add(&instance->pool->stats.timeouts, 1);
    if (instance->running_count == 1) {
        instance_stop(instance, 0); /* answered when it has ended (I4) */
        return;
    }
    if (instance->process) sandbox_drain(instance->process);
    voice_end(instance, run);
    run_leave(run, after);
    instance->state = INSTANCE_RETIRING;
    instance->end_due_us = 0;
    instance_settle(instance);
}

static void instance_tick(struct instance *instance, int64_t now_us, int64_t *due_us, struct after *after)
{
    if (instance->state == INSTANCE_ENDED) return;
    /* Those of a process that is retiring because a neighbour timed out are the last: it ends with them. */
    ring_each(struct run, run, link, &instance->running)
    {
        if (run->is_decided) continue;
        if (now_us >= run->deadline_us)
            run_time_out(run, after);
        else
            sooner(due_us, run->deadline_us);
    }
    /* Too late to start, to ask again after an answer, or to exit after a failed start. */
    if (!instance->is_stopping && instance->end_due_us) {
        if (now_us < instance->end_due_us) {
            sooner(due_us, instance->end_due_us);
        } else {
            instance->is_late = true;
            instance_stop(instance, 0);
        }
    }
    if (!instance_is_idle(instance) || instance->debug_port) return;
    int64_t idle_end_us = instance->used_us + instance->pool->idle_us;
    if (now_us >= idle_end_us)
        instance_stop(instance, POOL_GRACE_MS);
    else
        sooner(due_us, idle_end_us);
}

/* ---- the rest that is due ---- */

/* Answers when the next thing is due. */
static int64_t pool_tick(struct pool *pool, struct after *after)
{
    /* Who gets idle wakes nobody: its end must not be found much later than it is due. */
    int64_t now_us = monotonic_us();
    int64_t due_us = now_us + (pool->idle_us < SLEEP_MAX_US ? pool->idle_us : SLEEP_MAX_US);
    ring_each(struct instance, instance, all, &pool->instances)
        instance_tick(instance, now_us, &due_us, after);
    pool_debug_tick(pool, now_us, &due_us);
    if (pool->is_closing)
        pool_refuse_all(pool, after); /* whoever came to wait since: nobody starts for them */
    pool_serve_hungry(pool, after);
    if (!ring_empty(&pool->hungry)) sooner(&due_us, now_us + POOL_RETURN_MS * 1000);
    for (unsigned i = 0; i < POOL_BUCKETS; i++) {
        ring_each(struct group, group, all, &pool->buckets[i])
        {
            if (!ring_empty(&group->instances) || group->waiting_count) continue;
            int64_t end_us = group->used_us + (int64_t)POOL_GROUP_IDLE_MS * 1000;
            if (now_us >= end_us)
                group_free(group);
            else
                sooner(&due_us, end_us);
        }
    }
    if (pool->is_closing) sooner(&due_us, now_us + CLOSING_LOOK_US);
    return due_us;
}

/* ---- the thread ---- */

static void pool_sleep(struct pool *pool, int64_t due_us)
{
    int64_t left_us = due_us - monotonic_us();
    struct pollfd fds[2] = {{.fd = pool->wake_fd, .events = POLLIN},
                            {.fd = watcher_descriptor(pool->watcher), .events = POLLIN}};
    poll(fds, 2, left_us > 0 ? (int)((left_us + 999) / 1000) : 0);
    atomic_store(&pool->wake_us, INT64_MAX); /* from here on everybody who has something due wakes us again */
    eventfd_t ignored;
    eventfd_read(pool->wake_fd, &ignored);
    if (fds[1].revents & POLLIN) watcher_read(pool->watcher, pool);
}

/* Starts and closes what was decided; true when there was anything. */
static bool pool_do_chores(struct pool *pool)
{
    pool_lock(pool);
    struct instance *to_start = pool->to_start, *to_close = pool->to_close;
    pool->to_start = pool->to_close = NULL;
    pool->to_start_end = &pool->to_start;
    pool_unlock(pool);
    bool any = to_start || to_close;
    while (to_start) {
        struct instance *instance = to_start;
        to_start = instance->next_chore;
        instance->next_chore = NULL;
        instance_start(instance);
    }
    while (to_close) {
        struct instance *instance = to_close;
        to_close = instance->next_chore;
        instance_close(instance);
    }
    return any;
}

void *pool_run_thread(void *context)
{
    struct pool *pool = context;
    for (;;) {
        struct after after = {0};
        while (pool_do_chores(pool)) {
        }
        pool_lock(pool);
        int64_t due_us = pool_tick(pool, &after);
        bool over = pool->is_closing && ring_empty(&pool->instances) && !pool->to_start && !after.answered &&
                    atomic_load(&pool->under_way) == 0;
        atomic_store(&pool->wake_us, due_us);
        pool_unlock(pool);
        after_do(pool, &after);
        if (over) return NULL;
        pool_sleep(pool, due_us);
    }
}
