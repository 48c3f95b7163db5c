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

#include "base/fail.h"
#include "store/batch.h"
#include "store/failure.h"
#include "store/tree.h"

struct memory {
    struct store store;   /* first: a store is cast back to its memory */
    pthread_mutex_t lock; /* over published */
    struct tree_node *published;
    struct random random; /* of priorities; the writer's */
    struct store_faults *faults;
    struct failure failure;
};

struct store_snapshot {
    struct tree_node *tree;
};

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

/* Takes the caller's reference. */
static void publish(struct memory *memory, struct tree_node *tree)
{
    pthread_mutex_lock(&memory->lock);
    struct tree_node *before = memory->published;
    memory->published = tree;
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

static enum store_result memory_write(struct store *store, const struct store_batch *batch, bool durable)
{
    struct memory *memory = memory_of(store);
    char words[64];
    (void)durable;
    if (memory->failure.writes_refused) return STORE_FAILED;
    if (fault_strikes(memory, "write", words)) return failure_of_write(&memory->failure, store, words);
    struct tree_node *tree = published_hold(memory);
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);)
        tree = tree_apply(tree, &entry, &memory->random);
    publish(memory, tree);
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
    publish(memory, tree_hold(snapshot->tree));
    memory->failure.writes_refused = memory->failure.any_read = false;
    memory_store->error[0] = '\0';
}

void store_snapshot_free(struct store_snapshot *snapshot)
{
    if (!snapshot) return;
    tree_release(snapshot->tree);
    free(snapshot);
}
