/* Going back to an earlier state of a database in memory, for tests: the store does it in constant time, and
 * what the engine keeps beside it is read anew. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

struct engine_snapshot {
    struct store_snapshot *store;
};

struct engine_snapshot *engine_snapshot_take(struct engine *engine)
{
    if (!store_is_memory(engine->store)) return NULL;
    struct engine_snapshot *snapshot = must_zero(1, sizeof *snapshot);
    pthread_mutex_lock(&engine->batch_lock);
    snapshot->store = store_snapshot_take(engine->store);
    pthread_mutex_unlock(&engine->batch_lock);
    return snapshot;
}

static void forget_streams(struct engine *engine)
{
    pthread_rwlock_wrlock(&engine->streams_lock);
    for (uint32_t i = 0; i < engine->streams_count; i++) engine_stream_release(engine->streams[i]);
    engine->streams_count = 0;
    pthread_rwlock_unlock(&engine->streams_lock);
}

/* Between two batches nobody but readers is about, and those hold what they use. A commit that was checked
 * against the state that is gone finds its table dropped. */
void engine_snapshot_restore(struct engine *engine, const struct engine_snapshot *snapshot)
{
    char error[300];
    pthread_mutex_lock(&engine->keeper_lock);
    pthread_mutex_lock(&engine->batch_lock);
    registry_clear(&engine->registry);
    forget_streams(engine);
    vectors_clear(engine);
    store_snapshot_restore(engine->store, snapshot->store);
    cache_clear(engine->cache);
    engine->marked_minute = 0;
    engine->ttl_due_ms = engine->trim_due_ms = 0;
    ensure(engine_load(engine, error, sizeof error));
    pthread_mutex_unlock(&engine->batch_lock);
    pthread_mutex_unlock(&engine->keeper_lock);
    change_tell(engine, true);
    keeper_poke(engine);
}

void engine_snapshot_free(struct engine_snapshot *snapshot)
{
    store_snapshot_free(snapshot->store);
    free(snapshot);
}
