/* What the files of the engine share: the layout of stored keys, the cache, the batch, and the engine itself. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <pthread.h>

#include "engine/engine.h"

/* ---- stored keys: the first byte says what an entry is (show.c prints them all) ----
 *   'm' name                                               settings of the whole store: next table number, next
 *                                                          sequence
 *   't' table                                              a table's definition
 *   'c' table [index]                                      counts of a table, or of an index: items, bytes
 *   'i' table, hash of the hash key, hash key, range key   an item
 *   'x' table, index, hash of the index's hash key, index hash key, index range key, hash key, range key
 *                                                          an index's entry: the projected item
 *   'p' table, hash of the hash key, hash key              how many bytes an item collection has, where the
 *                                                          table has local indexes
 *   'e' table, second, hash of the hash key, hash key, range key
 *                                                          when an item expires
 *   'h' stream                                             a stream and its shards
 *   's' stream, shard, sequence                            a stream record
 *   'k' minute                                             the first sequence of that minute, for trimming
 *   'o' hash of a token                                    an idempotency token: time, payload, note
 *   'O' millisecond, hash of a token                       when a token was made
 *
 * Tables, indexes, streams, shards and hashes are 32 bits; seconds, minutes, milliseconds and sequences 64;
 * all big-endian. The hash in front of a hash key spreads a scan's segments, and a stream's shards, evenly. */
#define KEY_META       'm'
#define KEY_TABLE      't'
#define KEY_COUNTS     'c'
#define KEY_ITEM       'i'
#define KEY_INDEX      'x'
#define KEY_COLLECTION 'p'
#define KEY_EXPIRY     'e'
#define KEY_STREAM     'h'
#define KEY_RECORD     's'
#define KEY_MINUTE     'k'
#define KEY_TOKEN      'o'
#define KEY_TOKEN_TIME 'O'

#define ITEM_KEY_HEAD   9  /* kind, table, hash */
#define ITEM_HASH_AT    5  /* where the hash stands in an item's key */
#define INDEX_KEY_HEAD  13 /* kind, table, index, hash */
#define EXPIRY_KEY_HEAD 13 /* kind, table, second; the item's key follows from its hash on */
#define RECORD_KEY      17 /* kind, stream, shard, sequence */

void key_of_kind(struct buf *out, char kind, uint32_t number);
/* What the keys of all items with one hash key begin with. */
void engine_partition_key(struct buf *out, const struct table *table, const struct value *hash);
extern const struct slice key_next_table;    /* 'm' entry: the number that the next table or stream gets */
extern const struct slice key_next_sequence; /* 'm' entry: the sequence that the next record gets */

void counts_encode(struct buf *out, int64_t items, int64_t bytes);
bool counts_decode(struct slice bytes, int64_t *items, int64_t *out_bytes);

/* ---- building and reading small items: definitions, streams, records (definition.c) ---- */

struct builder {
    struct arena *arena;
    struct attribute *attributes;
    uint32_t count, capacity;
};

void builder_add(struct builder *builder, const char *name, struct value value);
void builder_text(struct builder *builder, const char *name, struct slice text); /* nothing when empty */
void builder_integer(struct builder *builder, const char *name, int64_t integer);
void builder_truth(struct builder *builder, const char *name, bool truth);
struct map builder_finish(struct builder *builder);
/* What is absent or of another type reads as empty, zero or false. */
struct slice stored_text(const struct map *map, const char *name);
int64_t stored_integer(const struct map *map, const char *name);
bool stored_truth(const struct map *map, const char *name);

/* ---- cache: images by stored key, shared by readers and the writer ---- */

/* One image. Counted: the cache holds one reference, each reader one. In a batch's overlay it is the writer's
 * alone. */
struct cache_value {
    _Atomic uint32_t references;
    uint32_t key_len, value_len;
    uint64_t hash;
    struct cache_value *next_in_bucket;
    struct cache_value *older, *newer; /* order of eviction */
    bool used;                         /* since the clock's hand passed last */
    bool deleted;                      /* there is no such item */
    _Atomic bool in_flux;              /* announced, not yet published */
    bool uncached;          /* overlay only: index entries and the like, which nobody reads by key */
    bool by_transaction;    /* overlay only: a transaction of this batch wrote it ... */
    uint64_t commit_number; /* ... and which */
    char data[];            /* key, then value */
};

struct slice cache_value_key(const struct cache_value *value);
struct slice cache_value_bytes(const struct cache_value *value);
/* A new value with one reference. */
struct cache_value *cache_value_new(uint64_t hash, struct slice key, struct slice bytes);
void cache_value_release(struct cache_value *value);

struct cache;
struct cache *cache_new(uint64_t capacity_bytes);
void cache_free(struct cache *cache);
/* What the cache knows of a key. FOUND: *out has a reference for the caller. UNKNOWN: the store must be
 * asked, and what it answered may be offered with *version. */
enum cache_result { CACHE_FOUND, CACHE_MISSING, CACHE_UNKNOWN };
enum cache_result cache_find(struct cache *cache, uint64_t hash, struct slice key, struct cache_value **out,
                             uint64_t *version);
/* A reader offers what it read from the store; refused when the writer announced something in the shard
 * meanwhile. */
void cache_offer(struct cache *cache, struct cache_value *value, uint64_t version);
/* The writer announces a new image (or deletion) before it goes to the store: until it is published, readers
 * ask the store, which alone knows whether it is there already. So no reader can meet the new state in the
 * store and then the old one here. */
void cache_announce(struct cache *cache, struct cache_value *value);
/* It is in the store: readers may have it from here. Takes over the writer's reference. */
void cache_publish(struct cache *cache, struct cache_value *value);
uint64_t cache_bytes(struct cache *cache);
/* Forgets everything, and what readers are about to offer. */
void cache_clear(struct cache *cache);

/* ---- the tables by name ---- */

struct registry {
    pthread_rwlock_t lock;
    struct table **tables; /* sorted by name */
    uint32_t count, capacity;
};

/* The counts of its indexes are filled in by the caller. */
struct table *table_new(const struct table_definition *definition, uint32_t number,
                        struct table_counts *counts);
void registry_init(struct registry *registry);
void registry_free(struct registry *registry);
/* Puts the table in the place of its name's former one, or adds it; takes over the reference. */
void registry_put(struct registry *registry, struct table *table);
void registry_remove(struct registry *registry, struct slice name);
struct table *registry_find(struct registry *registry, struct slice name); /* counted */
/* Takes all tables away; writes that were checked against them are refused. */
void registry_clear(struct registry *registry);
uint32_t registry_count(struct registry *registry);
struct table **registry_all(struct registry *registry, uint32_t *count); /* all, counted; free the array */

/* ---- a batch ---- */

/* A table that the batch created, replaced (table set) or dropped (NULL). */
struct table_change {
    struct buf name;
    struct table *table;
};

struct count_change {
    struct table_counts *counts, *table_counts; /* whose, and of which table: dropped with it */
    uint32_t table, index;                      /* numbers; index 0: of the table itself */
    int64_t items, bytes;
};

struct stream_change {
    uint32_t number;
    struct stream *stream; /* NULL: forgotten */
};

struct overlay_entry {
    struct cache_value *value;
    uint32_t slot; /* of the hash table */
};

struct batch {
    struct engine *engine;
    struct store_batch writes;
    uint32_t *overlay; /* hash table, open addressing: places in `entries`, counted from 1; 0: free */
    uint32_t overlay_slots;
    struct overlay_entry *entries; /* what the batch has set; room for half as many as there are slots */
    uint32_t entry_count;
    struct count_change *counts;
    uint32_t counts_count, counts_capacity;
    struct table_change *changes;
    uint32_t changes_count, changes_capacity;
    struct stream_change *streams;
    uint32_t streams_count, streams_capacity;
    struct table_counts **dropped; /* of what the batch has dropped */
    uint32_t dropped_count, dropped_capacity;
    uint64_t first_sequence, first_minute, first_trimmed; /* of the engine when this batch began */
    uint32_t first_table_number;
    struct vector_change *first_vector, *last_vector;
    struct buf observed;                       /* changes for observers, see observe.c */
    struct arena scratch;                      /* while one commit is applied */
    struct buf key, value, old_key, old_value; /* for building entries */
    uint64_t bytes;                            /* of images, to end a batch in time */
    uint64_t commit_number;                    /* which commit is being applied */
    struct slice cause, token;                 /* of that commit */
    bool is_quiet;                             /* that commit */
    bool failed;                               /* the store could not be read */
};

void batch_begin(struct batch *batch, struct engine *engine);
void batch_free(struct batch *batch);
/* The bytes of an entry as the batch sees it, copied into the arena. False when there is none. */
bool batch_find(struct batch *batch, struct arena *arena, uint64_t hash, struct slice key, struct slice *out);
/* Sets an entry, or deletes it (bytes NULL). */
struct cache_value *batch_set(struct batch *batch, uint64_t hash, struct slice key,
                              const struct slice *bytes);
/* The same for entries that are never read by their key but by ranges: kept out of the cache. */
void batch_set_uncached(struct batch *batch, struct slice key, const struct slice *bytes);
/* Deletes all entries of a range, those that the batch itself has set included. */
void batch_clear(struct batch *batch, struct slice from, struct slice to);
/* What the batch itself has set under the key, or NULL. */
const struct cache_value *batch_own(struct batch *batch, uint64_t hash, struct slice key);
void batch_count(struct batch *batch, const struct table *table, uint32_t index_place, int64_t items,
                 int64_t bytes);
#define COUNT_OF_TABLE UINT32_MAX /* index_place */
/* How many items the table has as the batch sees it. */
int64_t batch_items(const struct batch *batch, const struct table *table);
/* Marks the counts of a table or an index that the batch drops. */
void batch_drop_counts(struct batch *batch, struct table_counts *counts);
/* Writes all to the store and publishes it. False when the store failed or has no room: nothing was published. */
bool batch_commit(struct batch *batch);

/* ---- change.c: telling those who wait for changes ---- */

void change_note(struct batch *batch, const struct table *table, struct slice key);
void change_note_table(struct batch *batch, struct slice name); /* it is gone, with all its items */
/* Once they can be read. `everything`: whatever was noted, all may be different. */
void change_tell(struct engine *engine, bool everything);

/* ---- observe.c ---- */
void observe_note(struct batch *batch, const struct write *write);
void observe_tell(struct batch *batch); /* once it is durable */

/* ---- what follows from the change of an item ---- */

/* A change; maps are NULL where there is no item. Images are their encoded forms. */
struct change {
    const struct table *table;
    struct slice key; /* the item's */
    const struct map *old, *new;
    struct slice old_image, new_image;
    bool by_expiry;
};

/* index.c: entries of all indexes, and of one for an item that was there before the index. */
void index_follow(struct batch *batch, const struct change *change);
void index_fill(struct batch *batch, const struct table *table, uint32_t place, struct slice key,
                const struct map *item, struct slice image);
/* Everything of one index, or of all of a table's. */
void index_clear(struct batch *batch, const struct table *table, const struct index_definition *index);
/* collection.c: the account of item collections. */
bool table_has_collections(const struct table *table);
/* The key of the account that an item's key belongs to. */
struct slice collection_of_key(struct arena *scratch, const struct table *table, struct slice key);
void collection_grow(struct batch *batch, const struct table *table, struct slice key, int64_t growth);
/* Refuses a write that would make its item, with its entries in local indexes, or its collection too large.
 */
void collection_check(struct batch *batch, struct write *write);
/* vectors.c */
void vectors_follow(struct batch *batch, const struct change *change);
/* Refuses a write that would need more memory for vectors than there may be. */
void vectors_check(struct batch *batch, struct write *write);
/* A table's vector indexes: those of the old one go on, new ones are made, and those that are gone end with the
 * batch. Without an old one (and a batch): they are loaded if the store may have items. */
void vectors_attach(struct engine *engine, struct batch *batch, struct table *table, const struct table *old,
                    enum vector_status status);
void vectors_drop(struct batch *batch, const struct table *table);
/* The batch is durable; or it never will be. */
void vectors_publish(struct batch *batch);
void vectors_forget(struct batch *batch);
bool vectors_keep_house(struct engine *engine);
void vectors_init(struct engine *engine, const struct engine_options *options);
/* Ends all vector indexes, as their tables end. */
void vectors_clear(struct engine *engine);
void vectors_free(struct engine *engine);
/* expiry.c */
bool expiry_of(const struct table *table, const struct map *item, uint64_t *second);
void expiry_follow(struct batch *batch, const struct change *change);
void expiry_fill(struct batch *batch, const struct table *table, struct slice key, const struct map *item);
bool expiry_keep_house(struct engine *engine);
/* stream.c */
void stream_follow(struct batch *batch, const struct change *change);
struct stream *stream_in_batch(struct batch *batch, uint32_t number);
/* A new stream for the table, whose stream_since_ms moves on until none of its older streams has it; answers
 * its number. And the end of one. */
uint32_t stream_begin(struct batch *batch, struct table_definition *definition);
void stream_end(struct batch *batch, uint32_t number);
void stream_forget(struct batch *batch, uint32_t number);
void stream_drop_shards(struct batch *batch, uint32_t number, uint64_t before);
struct stream *stream_decode(struct slice bytes); /* NULL when damaged */
bool stream_load_all(struct engine *engine);
bool stream_keep_house(struct engine *engine);
/* token.c */
bool token_keep_house(struct engine *engine);
/* backfill.c */
bool backfill_keep_house(struct engine *engine);

/* ---- the engine ---- */

struct engine {
    struct store *store;
    struct cache *cache;
    struct registry registry;
    const struct clock *clock;
    bool durable, read_only, inline_writer;
    uint32_t next_table_number; /* the writer's, with the next three */
    uint64_t next_sequence;
    uint64_t marked_minute;
    bool has_no_room; /* the last batch was refused for it; the writer's too */
    _Atomic uint64_t published_sequence, trimmed_sequence;
    struct stream **streams; /* ascending by number; under streams_lock, changed by the writer only */
    uint32_t streams_count, streams_capacity;
    pthread_rwlock_t streams_lock;
    pthread_mutex_t watchers_lock;
    struct engine_watcher *watchers;
    struct engine_change_watcher *change_watchers;
    _Atomic unsigned change_watcher_count;
    struct engine_observer *observers;
    _Atomic unsigned observer_count;
    int64_t ttl_interval_ms, stream_retention_ms;
    uint32_t stream_shards;
    bool records_no_change; /* as in engine_options */
    uint64_t collection_limit_bytes;

    pthread_t keeper;
    pthread_mutex_t keeper_lock; /* one round of house-keeping at a time */
    pthread_mutex_t poke_lock;
    pthread_cond_t keeper_wake;
    bool poked;
    bool keeper_runs;
    int64_t ttl_due_ms, trim_due_ms;
    struct engine_stats stats;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled, commit_done;
    struct commit_list queue;
    bool stopping, writer_runs;
    _Atomic bool closing; /* house-keeping ends */
    pthread_t writer;
    pthread_mutex_t batch_lock; /* held while a batch is made */
    struct batch batch;

    pthread_mutex_t vectors_lock;
    pthread_cond_t vectors_loaded;
    struct vector_index **vectors; /* freed with the engine: old versions of tables may point here */
    uint32_t vectors_count, vectors_capacity;
    _Atomic uint64_t vectors_bytes;
    uint64_t vectors_limit_bytes;
    uint32_t vectors_exact_max;

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
/* Reads tables, streams and settings from the store into an engine that has none. */
bool engine_load(struct engine *engine, char *error, size_t error_len);
void engine_fail(struct engine *engine, const char *doing);

/* ---- the tables of a store that no engine has opened: for check and show ---- */

struct catalog {
    struct table **tables; /* by number */
    uint32_t count, capacity;
};

/* Reads all definitions; damaged ones are told to `fault` (may be NULL) and left out. False when the store
 * cannot be read. */
bool catalog_load(struct catalog *catalog, struct store *store,
                  void (*fault)(void *context, const char *sentence), void *context);
void catalog_free(struct catalog *catalog);
uint32_t catalog_place(const struct catalog *catalog, uint32_t number); /* UINT32_MAX: no such table */

/* check.c: whether the item's own key attributes lead to the key under which it stands. */
bool item_stands_under_own_key(const struct table *table, const struct map *item, struct slice key);

/* check_stream.c: all streams of a store; each fault is told as a sentence. False when the store cannot be
 * read. */
bool check_streams(struct store *store, const struct catalog *catalog, uint64_t *records,
                   void (*fault)(void *context, const char *sentence), void *context);

/* keeper.c */
void keeper_start(struct engine *engine);
void keeper_stop(struct engine *engine);
void keeper_poke(struct engine *engine);

/* writer.c */
void writer_start(struct engine *engine);
void writer_stop(struct engine *engine);

#endif
