/* The store in memory: the twin that tests and simulations run on, and what `--memory` serves from.
 *
 * One published tree (tree.c); a reader takes a reference under a short lock and then reads undisturbed. The
 * writer works on a reference of its own and publishes the result at once, so a batch is visible whole or not
 * at all (S1) and readers never wait for it. Nothing outlives the process, therefore durable and not durable
 * are the same.
 *
 * Faults are counted over all calls: the one with the chosen number fails, as a disk would, before it has any
 * effect. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "store/batch.h"
#include "store/failure.h"
#include "store/tree.h"

struct past_tree {
    int64_t time_ms;
    uint64_t bytes; /* that were written to make it of the one before */
    struct tree_node *tree;
    struct buf entries; /* what was written, as batches have it */
    bool is_jump;       /* it is not made by them: somebody went back to an earlier state */
};

struct memory {
    struct store store;   /* first: a store is cast back to its memory */
    pthread_mutex_t lock; /* over published, and over what is past */
    struct tree_node *published;
    const struct clock *clock; /* NULL: nothing past is kept */
    struct past_tree *past;    /* in the order of time; the first ones are gone */
    size_t past_first, past_count, past_room;
    uint64_t past_bytes;
    struct random random; /* of priorities; the writer's */
    struct store_faults *faults;
    struct failure failure;
};

struct store_snapshot {
    struct tree_node *tree;
};

#define HISTORY_ENTRY_BYTES 1024 /* of nodes that are copied for an entry, about */

static const struct store_methods memory_methods;

static struct memory *memory_of(struct store *store)
{
    ensure(store->methods == &memory_methods);
    return (struct memory *)store;
}

static struct tree_node *published_hold(struct memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    struct tree_node *tree = tree_hold(memory->published);
    pthread_mutex_unlock(&memory->lock);
    return tree;
}

static void past_free(struct past_tree *past)
{
    tree_release(past->tree);
    buf_free(&past->entries);
}

/* With the lock. Two states of one millisecond are one moment. */
static void remember(struct memory *memory, struct tree_node *tree, const struct store_batch *batch)
{
    uint64_t bytes = batch ? batch->entries.len + batch->count * HISTORY_ENTRY_BYTES : 0;
    int64_t now_ms = clock_now_ms(memory->clock);
    struct past_tree *last = memory->past_count > memory->past_first ? &memory->past[memory->past_count - 1] : NULL;
    if (last && now_ms <= last->time_ms) {
        tree_release(last->tree);
        last->tree = tree_hold(tree);
        last->bytes += bytes;
        if (batch) buf_slice(&last->entries, buf_view(&batch->entries));
        last->is_jump |= !batch;
    } else {
        if (memory->past_count == memory->past_room) {
            size_t kept = memory->past_count - memory->past_first;
            if (memory->past_first)
                memmove(memory->past, memory->past + memory->past_first, kept * sizeof *memory->past);
            memory->past_first = 0;
            memory->past_count = kept;
            memory->past_room = kept * 2 + 64;
            memory->past = must_realloc(memory->past, memory->past_room * sizeof *memory->past);
        }
        last = &memory->past[memory->past_count++];
        *last = (struct past_tree){
            .time_ms = now_ms, .bytes = bytes, .tree = tree_hold(tree), .is_jump = !batch};
        if (batch) buf_slice(&last->entries, buf_view(&batch->entries));
    }
    memory->past_bytes += bytes;
    while (memory->past_bytes > LIMIT_MEMORY_HISTORY_BYTES && memory->past_first + 1 < memory->past_count) {
        struct past_tree *oldest = &memory->past[memory->past_first++];
        memory->past_bytes -= oldest->bytes;
        past_free(oldest);
    }
}

/* Takes the caller's reference. `batch`: what was written; NULL: the state is another's. */
static void publish(struct memory *memory, struct tree_node *tree, const struct store_batch *batch)
{
    pthread_mutex_lock(&memory->lock);
    struct tree_node *before = memory->published;
    memory->published = tree;
    if (memory->clock) remember(memory, tree, batch);
    pthread_mutex_unlock(&memory->lock);
    tree_release(before);
}

/* Counts a call and tells whether it is the one to fail, with the words for it. */
static bool fault_strikes(struct memory *memory, const char *what, char words[64])
{
    struct store_faults *faults = memory->faults;
    if (!faults) return false;
    uint64_t call = __atomic_add_fetch(&faults->calls, 1, __ATOMIC_RELAXED);
    if (call != __atomic_load_n(&faults->fail_at, __ATOMIC_RELAXED)) return false;
    snprintf(words, 64, "call %llu, a %s, fails on purpose", (unsigned long long)call, what);
    return true;
}

static enum store_result memory_get(struct store *store, struct slice key, struct buf *value)
{
    struct memory *memory = memory_of(store);
    char words[64];
    if (fault_strikes(memory, "get", words)) return failure_of_read(&memory->failure, store, words);
    struct tree_node *tree = published_hold(memory);
    struct slice found;
    bool exists = tree_find(tree, key, &found);
    if (exists) buf_slice(value, found);
    tree_release(tree);
    return exists ? STORE_OK : STORE_MISSING;
}

static enum store_result memory_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                     store_visitor visitor, void *context)
{
    struct memory *memory = memory_of(store);
    char words[64];
    if (fault_strikes(memory, "scan", words)) return failure_of_read(&memory->failure, store, words);
    struct tree_node *tree = published_hold(memory);
    if (backwards) {
        tree_scan_backwards(tree, from, to, visitor, context);
    } else {
        tree_scan(tree, from, to, visitor, context);
    }
    tree_release(tree);
    return STORE_OK;
}

static struct tree_node *tree_apply(struct tree_node *tree, const struct batch_entry *entry,
                                    struct random *random)
{
    switch (entry->kind) {
    case BATCH_PUT: return tree_put(tree, entry->key, entry->value, random);
    case BATCH_DELETE: return tree_delete(tree, entry->key);
    case BATCH_DELETE_RANGE: return tree_delete_range(tree, entry->key, entry->value);
    }
    return tree;
}

static bool finds_no_room(struct memory *memory)
{
    if (!memory->faults || !__atomic_load_n(&memory->faults->is_full, __ATOMIC_RELAXED)) return false;
    snprintf(memory->store.refusal, sizeof memory->store.refusal, "there is no room on purpose");
    return true;
}

static enum store_result memory_write(struct store *store, const struct store_batch *batch, bool durable)
{
    struct memory *memory = memory_of(store);
    char words[64];
    (void)durable;
    if (memory->failure.writes_refused) return STORE_FAILED;
    if (fault_strikes(memory, "write", words)) return failure_of_write(&memory->failure, store, words);
    if (finds_no_room(memory)) return STORE_FULL;
    struct tree_node *tree = published_hold(memory);
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);)
        tree = tree_apply(tree, &entry, &memory->random);
    publish(memory, tree, batch);
    return STORE_OK;
}

static enum store_result memory_sync(struct store *store)
{
    struct memory *memory = memory_of(store);
    char words[64];
    if (memory->failure.writes_refused) return STORE_FAILED;
    if (fault_strikes(memory, "sync", words)) return failure_of_write(&memory->failure, store, words);
    return STORE_OK;
}

static void memory_stats(struct store *store, struct store_stats *stats)
{
    struct tree_node *tree = published_hold(memory_of(store));
    *stats = (struct store_stats){.memory_bytes = tree_bytes(tree), .keys_estimate = tree_count(tree)};
    tree_release(tree);
}

static void memory_close(struct store *store)
{
    struct memory *memory = memory_of(store);
    store_history_end(store);
    tree_release(memory->published);
    failure_free(&memory->failure);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static const struct store_methods memory_methods = {
    memory_get, memory_scan, memory_write, memory_sync, memory_stats, memory_close,
};

struct store *store_open_memory(struct store_faults *faults)
{
    struct memory *memory = must_zero(1, sizeof *memory);
    memory->store.methods = &memory_methods;
    ensure(pthread_mutex_init(&memory->lock, NULL) == 0);
    failure_init(&memory->failure);
    random_seed_from_system(&memory->random);
    memory->faults = faults;
    return &memory->store;
}

bool store_is_memory(const struct store *store)
{
    return store->methods == &memory_methods;
}

struct store_snapshot *store_snapshot_take(struct store *memory_store)
{
    struct store_snapshot *snapshot = must_alloc(sizeof *snapshot);
    snapshot->tree = published_hold(memory_of(memory_store));
    return snapshot;
}

/* Also forgets a failure: the content is known again, which is what S3 was about. */
void store_snapshot_restore(struct store *memory_store, const struct store_snapshot *snapshot)
{
    struct memory *memory = memory_of(memory_store);
    publish(memory, tree_hold(snapshot->tree), NULL);
    memory->failure.writes_refused = memory->failure.any_read = false;
    memory_store->error[0] = '\0';
}

void store_snapshot_free(struct store_snapshot *snapshot)
{
    if (!snapshot) return;
    tree_release(snapshot->tree);
    free(snapshot);
}

/* ---- what was there before ---- */

void store_history_begin(struct store *memory_store, const struct clock *clock)
{
    struct memory *memory = memory_of(memory_store);
    pthread_mutex_lock(&memory->lock);
    bool begins = !memory->clock;
    memory->clock = clock;
    if (begins) remember(memory, memory->published, NULL);
    pthread_mutex_unlock(&memory->lock);
}

void store_history_end(struct store *memory_store)
{
    struct memory *memory = memory_of(memory_store);
    pthread_mutex_lock(&memory->lock);
    for (size_t i = memory->past_first; i < memory->past_count; i++) past_free(&memory->past[i]);
    free(memory->past);
    memory->past = NULL;
    memory->past_first = memory->past_count = memory->past_room = 0;
    memory->past_bytes = 0;
    memory->clock = NULL;
    pthread_mutex_unlock(&memory->lock);
}

int64_t store_history_from(struct store *memory_store)
{
    struct memory *memory = memory_of(memory_store);
    pthread_mutex_lock(&memory->lock);
    int64_t from_ms = memory->clock ? memory->past[memory->past_first].time_ms : INT64_MAX;
    pthread_mutex_unlock(&memory->lock);
    return from_ms;
}

/* Behind the last moment that is not later. With the lock. */
static size_t past_behind(const struct memory *memory, int64_t at_ms)
{
    size_t low = memory->past_first, high = memory->past_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory->past[middle].time_ms <= at_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct store_snapshot *store_history_at(struct store *memory_store, int64_t at_ms)
{
    struct memory *memory = memory_of(memory_store);
    struct store_snapshot *snapshot = NULL;
    pthread_mutex_lock(&memory->lock);
    size_t behind = past_behind(memory, at_ms);
    if (behind > memory->past_first) {
        snapshot = must_alloc(sizeof *snapshot);
        snapshot->tree = tree_hold(memory->past[behind - 1].tree);
    }
    pthread_mutex_unlock(&memory->lock);
    return snapshot;
}

/* Moment by moment, so that the writer never waits for a visitor; what is forgotten meanwhile is missing. */
enum store_result store_history_read(struct store *memory_store, int64_t from_ms, int64_t to_ms,
                                     store_log_visitor visitor, void *context)
{
    struct memory *memory = memory_of(memory_store);
    struct buf entries = {0};
    enum store_result result = STORE_OK;
    for (bool goes_on = true; goes_on && result == STORE_OK;) {
        struct store_log_batch batch = {0};
        entries.len = 0;
        pthread_mutex_lock(&memory->lock);
        size_t next = past_behind(memory, from_ms - 1);
        if (!memory->clock || next == memory->past_first) result = STORE_MISSING;
        goes_on = result == STORE_OK && next < memory->past_count && memory->past[next].time_ms < to_ms;
        if (goes_on) {
            batch.time_ms = memory->past[next].time_ms;
            buf_slice(&entries, buf_view(&memory->past[next].entries));
            if (memory->past[next].is_jump) result = STORE_MISSING;
        }
        pthread_mutex_unlock(&memory->lock);
        if (!goes_on || result != STORE_OK) break;
        batch.bytes = buf_view(&entries);
        goes_on = visitor(context, &batch);
        from_ms = batch.time_ms + 1;
    }
    buf_free(&entries);
    return result;
}
