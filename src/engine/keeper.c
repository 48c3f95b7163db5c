/* The house-keeper: a thread that does what nobody asks for, in small commits like everybody else's. */
#include "base/cond.h"
#include "base/fail.h"
#include "engine/internal.h"

#define KEEPER_PAUSE_MS 250 /* between looks, when nobody pokes it */

bool engine_keep_house(struct engine *engine)
{
    pthread_mutex_lock(&engine->keeper_lock);
    bool more = false;
    if (!atomic_load(&engine->failed)) {
        more |= vectors_keep_house(engine);
        more |= backfill_keep_house(engine);
        more |= expiry_keep_house(engine);
        more |= stream_keep_house(engine);
        more |= token_keep_house(engine);
    }
    pthread_mutex_unlock(&engine->keeper_lock);
    return more;
}

void engine_wait_idle(struct engine *engine)
{
    while (engine_keep_house(engine)) {
    }
}

void engine_expire_now(struct engine *engine)
{
    pthread_mutex_lock(&engine->keeper_lock);
    engine->ttl_due_ms = 0;
    pthread_mutex_unlock(&engine->keeper_lock);
}

static void pause_for(struct engine *engine)
{
    int64_t until_us = monotonic_us() + KEEPER_PAUSE_MS * 1000;
    pthread_mutex_lock(&engine->poke_lock);
    while (!engine->poked && !atomic_load(&engine->closing))
        if (!cond_wait_until(&engine->keeper_wake, &engine->poke_lock, until_us)) break;
    engine->poked = false;
    pthread_mutex_unlock(&engine->poke_lock);
}

static void *keeper_main(void *argument)
{
    struct engine *engine = argument;
    pthread_setname_np(pthread_self(), "quipu-keeper");
    while (!atomic_load(&engine->closing))
        if (!engine_keep_house(engine)) pause_for(engine);
    return NULL;
}

void keeper_start(struct engine *engine)
{
    if (engine->inline_writer) return;
    ensure(pthread_create(&engine->keeper, NULL, keeper_main, engine) == 0);
    engine->keeper_runs = true;
}

void keeper_poke(struct engine *engine)
{
    pthread_mutex_lock(&engine->poke_lock);
    engine->poked = true;
    pthread_cond_signal(&engine->keeper_wake);
    pthread_mutex_unlock(&engine->poke_lock);
}

void keeper_stop(struct engine *engine)
{
    atomic_store(&engine->closing, true);
    if (!engine->keeper_runs) return;
    keeper_poke(engine);
    pthread_join(engine->keeper, NULL);
    engine->keeper_runs = false;
}
