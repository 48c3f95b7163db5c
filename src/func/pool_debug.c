/* Functions under a debugger.
 *
 * While a session lasts, a function has one process at a time, which is told a port for its debugger
 * (QUIPU_DEBUG_PORT: our bootstraps wait there until somebody attaches, before they load the code), and no limit
 * of time: not for its start, not for a call, not for being idle. Calls that find it busy wait for their turn.
 *
 * A session is kept by whoever asked for it, who asks again before it is over; so one that was killed leaves
 * nothing behind. At its end the process goes: at once where it is idle or still waits for a debugger, after its
 * call where it runs one, for which the function's own limit counts from then on. */
#include <stdlib.h>

#include "base/fail.h"
#include "func/pool.h"

struct debug {
    struct ring all; /* in the pool's */
    struct slice name;
    uint16_t port;
    int64_t until_us;
    struct function
        *to_prepare; /* counted: a process of it is started as soon as the old ones are gone; else NULL */
    char text[];
};

static struct debug *debug_of(const struct pool *pool, struct slice name)
{
    ring_each(struct debug, debug, all, &pool->debugs)
    {
        if (slice_equal(debug->name, name)) return debug;
    }
    return NULL;
}

uint16_t pool_debug_port(const struct pool *pool, struct slice name)
{
    const struct debug *debug = debug_of(pool, name);
    return debug ? debug->port : 0;
}

static struct debug *debug_new(struct pool *pool, struct slice name, uint16_t port)
{
    struct debug *debug = must_zero(1, sizeof *debug + name.len);
    memcpy(debug->text, name.data, name.len);
    debug->name = (struct slice){debug->text, name.len};
    debug->port = port;
    ring_append(&pool->debugs, &debug->all);
    return debug;
}

/* Those of before the session go when they are idle, those of it as its end wants it. */
static void retire_all(struct pool *pool, struct slice name)
{
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (instance->state == INSTANCE_ENDED || !slice_equal(instance->function->name, name)) continue;
        if (instance->debug_port && !instance->has_asked)
            instance_stop(instance, 0);
        else
            instance_retire(instance);
    }
}

enum debug_begun pool_debug_begin(struct pool *pool, struct function *function, uint16_t port, int64_t for_ms)
{
    enum debug_begun begun = DEBUG_BEGUN;
    pool_lock(pool);
    struct debug *debug = debug_of(pool, function->name);
    if (pool->is_closing || !pool->has_thread) {
        begun = DEBUG_REFUSED;
    } else if (!debug) {
        ring_each(struct debug, other, all, &pool->debugs)
        {
            if (other->port == port) begun = DEBUG_PORT_TAKEN;
        }
        if (begun == DEBUG_BEGUN) {
            debug = debug_new(pool, function->name, port);
            debug->to_prepare = function_keep(function);
            retire_all(pool, function->name);
        }
    } else if (debug->port != port) {
        begun = DEBUG_ELSEWHERE;
    } else {
        begun = DEBUG_GOES_ON;
    }
    if (debug) debug->until_us = monotonic_us() + for_ms * 1000;
    pool_unlock(pool);
    pool_wake_by(pool, 0);
    return begun;
}

static void debug_free(struct debug *debug)
{
    ring_remove(&debug->all);
    if (debug->to_prepare) function_release(debug->to_prepare);
    free(debug);
}

static void debug_end(struct pool *pool, struct debug *debug)
{
    int64_t now_us = monotonic_us();
    struct slice name = debug->name;
    ring_remove(&debug->all);
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (!instance->debug_port || !slice_equal(instance->function->name, name)) continue;
        ring_each(struct run, run, link, &instance->running)
            run->deadline_us = now_us + run->timeout_ms * 1000ll;
    }
    retire_all(pool, name);
    debug_free(debug);
}

bool pool_debug_end(struct pool *pool, struct slice name)
{
    pool_lock(pool);
    struct debug *debug = debug_of(pool, name);
    if (debug) debug_end(pool, debug);
    pool_unlock(pool);
    pool_wake_by(pool, 0);
    return debug != NULL;
}

void pool_debug_tick(struct pool *pool, int64_t now_us, int64_t *due_us)
{
    ring_each(struct debug, debug, all, &pool->debugs)
    {
        if (now_us >= debug->until_us) {
            debug_end(pool, debug);
            continue;
        }
        if (debug->until_us < *due_us) *due_us = debug->until_us;
        if (!debug->to_prepare || !pool_prepare(pool, debug->to_prepare)) continue;
        function_release(debug->to_prepare);
        debug->to_prepare = NULL;
    }
}

void pool_debug_free(struct pool *pool)
{
    ring_each(struct debug, debug, all, &pool->debugs)
    {
        debug_free(debug);
    }
}

const char *const *debug_environment(const char *const *environment, uint16_t port, struct arena *arena)
{
    size_t count = 0;
    while (environment[count]) count++;
    const char **more = arena_array(arena, const char *, count + 2);
    memcpy(more, environment, count * sizeof *more);
    more[count] = arena_printf(arena, "QUIPU_DEBUG_PORT=%u", port).data;
    more[count + 1] = NULL;
    return more;
}
