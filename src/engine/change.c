/* Whoever waits for items of some tables to change is told after the commit, and only of what it waits for.
 *
 * A change is noted while it is applied, as numbers of the watcher's own choice (its topics), and told when
 * the batch is durable and can be read. Those who write and tell others themselves mark their commits quiet. */
#include "engine/internal.h"

#define KEY_VALUES_AT 9 /* behind kind, table and hash, see key.c */

void engine_watch_changes(struct engine *engine, struct engine_change_watcher *watcher)
{
    pthread_mutex_lock(&engine->watchers_lock);
    watcher->next = engine->change_watchers;
    engine->change_watchers = watcher;
    atomic_fetch_add(&engine->change_watcher_count, 1);
    pthread_mutex_unlock(&engine->watchers_lock);
}

void engine_unwatch_changes(struct engine *engine, struct engine_change_watcher *watcher)
{
    pthread_mutex_lock(&engine->watchers_lock);
    struct engine_change_watcher **place = &engine->change_watchers;
    while (*place && *place != watcher) place = &(*place)->next;
    if (*place) {
        *place = watcher->next;
        atomic_fetch_sub(&engine->change_watcher_count, 1);
    }
    pthread_mutex_unlock(&engine->watchers_lock);
}

/* A key value that is a string, off the front of a stored key; SLICE_NONE for any other. */
static struct slice key_text(struct arena *arena, struct slice *key, enum value_type type)
{
    struct value value;
    if (!key_decode(arena, key, type, &value) || type != VALUE_S) return SLICE_NONE;
    return value.bytes;
}

static void note(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                 struct slice range)
{
    uint64_t topics[ENGINE_TOPICS];
    if (!slice_starts(table, watcher->prefix)) return;
    unsigned count = hash.data ? watcher->topics(watcher, table, hash, range, topics) : 0;
    /* An item that everybody writes is noted once in a row. */
    if (count && watcher->pending_count >= count &&
        memcmp(watcher->pending + watcher->pending_count - count, topics, count * sizeof *topics) == 0)
        return;
    if (!hash.data || watcher->pending_count + count > ENGINE_PENDING) {
        watcher->all_pending = true;
        return;
    }
    for (unsigned i = 0; i < count; i++) watcher->pending[watcher->pending_count++] = topics[i];
}

/* Most writes are to tables that nobody watches: their keys are not even looked into. */
void change_note(struct batch *batch, const struct table *table, struct slice key)
{
    struct engine *engine = batch->engine;
    const struct key_schema *keys = &table->keys;
    struct slice name = table->definition.name, values = slice_from(key, KEY_VALUES_AT), hash,
                 range = SLICE_NONE;
    bool is_decoded = false;
    if (batch->is_quiet || !atomic_load_explicit(&engine->change_watcher_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&engine->watchers_lock);
    for (struct engine_change_watcher *at = engine->change_watchers; at; at = at->next) {
        if (!slice_starts(name, at->prefix)) continue;
        if (!is_decoded) {
            hash = key_text(&batch->scratch, &values, keys->hash_type);
            if (keys->range.len) range = key_text(&batch->scratch, &values, keys->range_type);
            is_decoded = true;
        }
        note(at, name, hash, range);
    }
    pthread_mutex_unlock(&engine->watchers_lock);
}

void change_note_table(struct batch *batch, struct slice name)
{
    struct engine *engine = batch->engine;
    if (!atomic_load_explicit(&engine->change_watcher_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&engine->watchers_lock);
    for (struct engine_change_watcher *at = engine->change_watchers; at; at = at->next)
        note(at, name, SLICE_NONE, SLICE_NONE);
    pthread_mutex_unlock(&engine->watchers_lock);
}

void change_tell(struct engine *engine, bool everything)
{
    if (!atomic_load_explicit(&engine->change_watcher_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&engine->watchers_lock);
    for (struct engine_change_watcher *at = engine->change_watchers; at; at = at->next) {
        if (everything || at->all_pending) at->changed(at, NULL, 0);
        if (everything) continue; /* what a batch has noted meanwhile is told with that batch */
        if (!at->all_pending && at->pending_count) at->changed(at, at->pending, at->pending_count);
        at->pending_count = 0;
        at->all_pending = false;
    }
    pthread_mutex_unlock(&engine->watchers_lock);
}
