/* What the files of the engine share: the layout of stored keys, the cache, the batch, and the engine itself. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <pthread.h>

#include "engine/engine.h"

/* ---- stored keys: the first byte says what an entry is (describe.c prints them all) ----
 *   'm' name                                        settings of the whole store (the next table number)
 *   't' table number                                a table's definition
 *   'c' table number                                its counts: items, bytes
 *   'i' table number, hash of the hash key, hash key, range key      an item
 * Numbers are 32 bits, big-endian. The hash in front of the hash key spreads a scan's segments evenly. */
#define KEY_META   'm'
#define KEY_TABLE  't'
#define KEY_COUNTS 'c'
#define KEY_ITEM   'i'

#define ITEM_KEY_HEAD 9 /* kind, table number, hash */

void key_of_kind(struct buf *out, char kind, uint32_t number);
extern const struct slice key_next_table; /* 'm' entry: the number that the next table gets */

void counts_encode(struct buf *out, int64_t items, int64_t bytes);
bool counts_decode(struct slice bytes, int64_t *items, int64_t *out_bytes);

/* ---- cache: images by stored key, shared by readers and the writer ---- */

/* One image. Counted: the cache holds one reference, each reader one. In a batch's overlay it is the writer's alone. */
struct cache_value {
    _Atomic uint32_t references;
    uint32_t key_len, value_len;
    uint64_t hash;
    struct cache_value *next_in_bucket;
    struct cache_value *older, *newer; /* order of eviction */
    bool used;                         /* since the clock's hand passed last */
    bool deleted;                      /* overlay only: the item is gone */
    uint32_t table_number;             /* overlay only, with the next: whose counts it changes */
    struct table_counts *counts;
    char data[];                       /* key, then value */
};

struct slice cache_value_key(const struct cache_value *value);
struct slice cache_value_bytes(const struct cache_value *value);
/* A new value with one reference. */
struct cache_value *cache_value_new(uint64_t hash, struct slice key, struct slice bytes);
void cache_value_release(struct cache_value *value);

struct cache;
struct cache *cache_new(uint64_t capacity_bytes);
void cache_free(struct cache *cache);
/* The value with a reference for the caller, or NULL; *version is then what cache_offer needs. */
struct cache_value *cache_find(struct cache *cache, uint64_t hash, struct slice key, uint64_t *version);
/* A reader offers what it read from the store; refused when the writer published to the shard meanwhile. */
void cache_offer(struct cache *cache, struct cache_value *value, uint64_t version);
/* The writer publishes a new image, or a deletion; takes over its reference. */
void cache_publish(struct cache *cache, struct cache_value *value);
uint64_t cache_bytes(struct cache *cache);

/* ---- the tables by name ---- */

struct registry {
    pthread_rwlock_t lock;
    struct table **tables; /* sorted by name */
    uint32_t count, capacity;
};

struct table *table_new(const struct table_definition *definition, uint32_t number, struct table_counts *counts);
void registry_init(struct registry *registry);
void registry_free(struct registry *registry);
/* Puts the table in the place of its name's former one, or adds it; takes over the reference. */
void registry_put(struct registry *registry, struct table *table);
void registry_remove(struct registry *registry, struct slice name);
struct table *registry_find(struct registry *registry, struct slice name); /* counted */
uint32_t registry_count(struct registry *registry);

/* ---- a batch ---- */

/* A table that the batch created, replaced (table set) or dropped (NULL). */
struct table_change {
    struct slice name;
    struct table *table;
};

struct count_change {
    struct table_counts *counts;
    uint32_t number;
    int64_t items, bytes;
};

struct batch {
    struct engine *engine;
    struct store_batch writes;
    struct cache_value **overlay; /* hash table, open addressing; NULL: free */
    uint32_t overlay_slots, overlay_count;
    struct count_change *counts;
    uint32_t counts_count, counts_capacity;
    struct table_change *changes;
    uint32_t changes_count, changes_capacity;
    struct arena scratch; /* while one commit is applied */
    uint64_t bytes;       /* of images, to end a batch in time */
    bool failed;          /* the store could not be read */
};

void batch_begin(struct batch *batch, struct engine *engine);
void batch_free(struct batch *batch);
/* The bytes of an image as the batch sees it, copied into the arena. False when there is none. */
bool batch_find(struct batch *batch, struct arena *arena, uint64_t hash, struct slice key, struct slice *out);
/* Sets (or, with no image, deletes) the item and moves the counts by the billed sizes. */
void batch_set(struct batch *batch, const struct table *table, uint64_t hash, struct slice key, const struct slice *image,
               uint64_t old_size, uint64_t new_size, bool existed);
/* Writes all to the store and publishes it. False when the store failed: nothing was published. */
bool batch_commit(struct batch *batch);

/* ---- the engine ---- */

struct engine {
    struct store *store;
    struct cache *cache;
    struct registry registry;
    const struct clock *clock;
    bool durable, inline_writer;
    uint32_t next_table_number; /* the writer's */
    struct engine_stats stats;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled, commit_done;
    struct commit_list queue;
    bool stopping, writer_runs;
    pthread_t writer;
    pthread_mutex_t batch_lock; /* held while a batch is made: only contended without a writer thread */
    struct batch batch;

    pthread_mutex_t random_lock;
    struct random random;

    _Atomic bool failed;
    char failure[600]; /* set once, before failed */
    void (*on_failure)(void *context);
    void *failure_context;

    struct table_counts **all_counts; /* freed with the engine: old versions of tables may point here */
    uint32_t all_counts_count, all_counts_capacity;
};

struct table_counts *engine_counts_new(struct engine *engine);
void engine_fail(struct engine *engine, const char *doing);

/* ---- the tables of a store that no engine has opened: for check and show ---- */

struct catalog {
    struct table **tables; /* by number */
    uint32_t count, capacity;
};

/* Reads all definitions; damaged ones are told to `fault` (may be NULL) and left out. False when the store cannot be read. */
bool catalog_load(struct catalog *catalog, struct store *store, void (*fault)(void *context, const char *sentence),
                  void *context);
void catalog_free(struct catalog *catalog);
uint32_t catalog_place(const struct catalog *catalog, uint32_t number); /* UINT32_MAX: no such table */

/* writer.c */
void writer_start(struct engine *engine);
void writer_stop(struct engine *engine);

#endif
