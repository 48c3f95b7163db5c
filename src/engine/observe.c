/* Changes of one table, as they happen, for who looks at it: whether it has a stream or not, and nothing is kept.
 *
 * The images are copied while a write is applied and told when its batch is durable (E2). Where nobody observes, a
 * write pays for one load. */
#include "engine/internal.h"

/* Before the table's name and the images in batch->observed. An encoded item is never empty: 0 says that there is
 * none. */
struct observed {
    uint32_t name_len, old_len, new_len;
};

void engine_observe(struct engine *engine, struct engine_observer *observer)
{
    pthread_mutex_lock(&engine->watchers_lock);
    observer->next = engine->observers;
    engine->observers = observer;
    atomic_fetch_add(&engine->observer_count, 1);
    pthread_mutex_unlock(&engine->watchers_lock);
}

void engine_unobserve(struct engine *engine, struct engine_observer *observer)
{
    pthread_mutex_lock(&engine->watchers_lock);
    struct engine_observer **place = &engine->observers;
    while (*place && *place != observer) place = &(*place)->next;
    if (*place) {
        *place = observer->next;
        atomic_fetch_sub(&engine->observer_count, 1);
    }
    pthread_mutex_unlock(&engine->watchers_lock);
}

static bool is_observed(struct engine *engine, struct slice table)
{
    pthread_mutex_lock(&engine->watchers_lock);
    const struct engine_observer *at = engine->observers;
    while (at && !slice_equal(at->table, table)) at = at->next;
    pthread_mutex_unlock(&engine->watchers_lock);
    return at != NULL;
}

void observe_note(struct batch *batch, const struct write *write)
{
    struct engine *engine = batch->engine;
    if (!atomic_load_explicit(&engine->observer_count, memory_order_relaxed)) return;
    struct slice name = write->table->definition.name, old = write->existed ? write->old_image : SLICE_NONE,
                 new = write->kind == WRITE_DELETE ? SLICE_NONE : write->new_image;
    if (slice_equal(old, new) || !is_observed(engine, name)) return;
    struct observed head = {(uint32_t)name.len, (uint32_t)old.len, (uint32_t)new.len};
    buf_put(&batch->observed, &head, sizeof head);
    buf_slice(&batch->observed, name);
    buf_slice(&batch->observed, old);
    buf_slice(&batch->observed, new);
}

static struct slice take(const char **at, size_t len)
{
    struct slice taken = {*at, len};
    *at += len;
    return taken;
}

void observe_tell(struct batch *batch)
{
    struct engine *engine = batch->engine;
    const char *at = batch->observed.data, *end = at + batch->observed.len;
    if (at == end) return;
    pthread_mutex_lock(&engine->watchers_lock);
    while (at < end) {
        struct observed head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        struct slice name = take(&at, head.name_len), old = take(&at, head.old_len), new = take(&at, head.new_len);
        for (struct engine_observer *observer = engine->observers; observer; observer = observer->next)
            if (slice_equal(observer->table, name)) observer->changed(observer, old, new);
    }
    pthread_mutex_unlock(&engine->watchers_lock);
}
