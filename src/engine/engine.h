/* The database: tables, one writer, readers on any thread.
 *
 * Invariants:
 *  E1. Apply many, sync once, then reply. Commits queue; the writer takes all that wait, applies them in
 *      order to one batch, writes it to the store (durable, unless the engine was opened with durability
 *      `os`), and only then calls `done`.
 *  E2. Readers see durable state only. Images that a batch has made are in its own overlay until the store
 *      has them. So whatever a reply has shown survives a power cut.
 *  E3. A cached image equals the stored one. New images are announced to the cache before they go to the
 *      store and published afterwards; in between, readers ask the store. A reader that fills the cache from
 *      the store while the writer announced something gives its copy up (the shard's version moved, or the image
 *      was in between already).
 *  E4. A failed store write or read in the writer stops it for good: that batch and every later commit fail,
 *      nothing is acknowledged that may be lost.
 *  E5. A table's number is never used again, so its stale cache entries and stored keys can never be taken
 *      for another's.
 *  E6. Stored counts equal the items: they are written in the same batch.
 *
 * Who owns what: the engine owns tables, cache and writer thread. A `struct table` is immutable and counted:
 * find, use, release. A commit belongs to its submitter, who must keep it (and its arena) until `done`. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/stats.h"
#include "expr/expr.h"
#include "store/store.h"
#include "value/value.h"
#include "vector/vector.h"

/* ---- what a table is ---- */

#define INDEX_KEY_PARTS LIMIT_KEY_PARTS
#define TABLE_INDEXES   (LIMIT_LSI_COUNT + LIMIT_GSI_COUNT)

struct throughput {
    int64_t read_units, write_units; /* provisioned; 0 when on demand */
    int64_t max_read, max_write;     /* on-demand limits; -1: none given */
    int64_t warm_read, warm_write;   /* warm throughput; -1: none given */
};

struct key_attribute {
    struct slice name;
    enum value_type type; /* S, N or B */
};

enum projection_type { PROJECT_ALL, PROJECT_KEYS_ONLY, PROJECT_INCLUDE };
enum index_status {
    INDEX_ACTIVE,
    INDEX_CREATING
}; /* CREATING: entries of older items are still being made */

struct index_definition {
    struct slice name;
    uint32_t number; /* in stored keys, unique within the table for ever; 0: new, the engine gives one */
    enum index_status status;
    bool global;
    uint32_t hash_count, range_count;
    struct slice hash[INDEX_KEY_PARTS], range[INDEX_KEY_PARTS];
    enum projection_type projection;
    struct slice *non_key; /* INCLUDE */
    uint32_t non_key_count;
    struct throughput throughput; /* global only */
};

/* A vector index: the items that have a vector of its length, and its HASH attributes. It is in memory only, and
 * made of the items when the engine opens. */
struct vector_definition {
    struct index_definition index; /* name, number, projection, and as hash the HASH attributes of its schema */
    struct slice attribute;        /* a list of numbers */
    uint32_t dimensions;
    enum vector_metric metric;
    struct slice filters[LIMIT_VECTOR_FILTERS]; /* the INLINE_FILTER attributes */
    uint32_t filter_count;
};

enum stream_view {
    STREAM_OFF,
    STREAM_KEYS_ONLY,
    STREAM_NEW_IMAGE,
    STREAM_OLD_IMAGE,
    STREAM_NEW_AND_OLD_IMAGES
};

struct tag {
    struct slice key, value;
};

struct table_definition {
    struct slice name;
    struct slice id; /* UUID, for DescribeTable */
    int64_t created_ms;
    struct key_attribute *attributes; /* AttributeDefinitions in their order */
    uint32_t attribute_count;
    struct slice hash, range; /* range.len 0: none */
    bool on_demand;
    int64_t on_demand_since_ms; /* BillingModeSummary; 0: the table was always provisioned */
    int64_t throughput_raised_ms, throughput_lowered_ms; /* 0: never */
    int64_t decreases_today;
    struct throughput throughput;
    struct index_definition *indexes;
    uint32_t index_count;
    struct vector_definition *vectors;
    uint32_t vector_count;
    uint32_t next_index_number; /* the engine's */
    enum stream_view stream;
    int64_t stream_since_ms; /* names the stream's label; kept when the stream is switched off; 0: never had
                                one */
    uint32_t stream_number;  /* the engine's: which stream the records go to, or went to last; 0: none ever */
    struct slice ttl_attribute; /* empty: off */
    bool ttl_ready;             /* the engine's: every item stands in the expiry index */
    bool deletion_protected;
    struct slice table_class; /* "STANDARD", "STANDARD_INFREQUENT_ACCESS", or empty: never given */
    int64_t table_class_changed_ms;
    bool encrypted;       /* SSESpecification.Enabled */
    struct slice kms_key; /* KMSMasterKeyId, or empty */
    struct slice resource_policy;
    struct tag *tags;
    uint32_t tag_count;
    struct map settings; /* what the engine only keeps, by name */
};

/* Type of an attribute by its definition; false when it is not defined. */
bool table_attribute_type(const struct table_definition *definition, struct slice name,
                          enum value_type *type);
/* A deep copy in the arena. */
struct table_definition *table_definition_copy(struct arena *arena,
                                               const struct table_definition *definition);
void table_definition_encode(struct buf *out, const struct table_definition *definition);
bool table_definition_decode(struct arena *arena, struct slice bytes, struct table_definition *out);

/* What changes while a table lives; shared by all versions of its definition. */
struct table_counts {
    _Atomic int64_t items, bytes;
    _Atomic uint64_t reads, writes;   /* since the start: items and pages read, items written */
    uint64_t told_reads, told_writes; /* of them, what engine_busy_tables has told */
    _Atomic bool dropped;
};

struct table {
    struct table_definition definition;
    struct key_schema keys;
    uint32_t number; /* in stored keys */
    struct table_counts *counts;
    struct table_counts *index_counts[TABLE_INDEXES]; /* in the order of definition.indexes */
    struct vector_index *vectors[LIMIT_VECTOR_INDEXES]; /* in the order of definition.vectors */
    /* private */
    struct arena arena;
    _Atomic uint32_t references;
};

/* ---- the engine ---- */

struct engine;

struct engine_options {
    struct store *store; /* taken over: closed with the engine */
    bool durable;        /* sync before reply */
    bool read_only;      /* the store must not be written: no house is kept, and nobody submits a write */
    bool inline_writer;  /* no writer thread: engine_submit commits before it returns (tests, embedding) */
    uint64_t cache_bytes;
    const struct clock *clock;
    uint64_t seed;                   /* of ids; 0: from the system */
    int64_t ttl_interval_ms;         /* how often expired items are looked for; 0: every second */
    int64_t stream_retention_ms;     /* how long stream records are kept; 0: a day */
    uint32_t stream_shards;          /* a new stream begins with so many; 0: 4 */
    bool records_no_change;          /* a write that changes nothing leaves a stream record, too */
    uint64_t vector_limit_bytes;     /* of memory for vector indexes; 0: a part of the machine's (limits.h) */
    uint32_t vector_exact_max;       /* of one partition; 0: the usual number (limits.h) */
    uint64_t collection_limit_bytes; /* of an item collection of a table with local indexes; 0: the service's
                                        limit */
    void (*on_failure)(void *context); /* called once when E4 strikes, on the writer's thread; may be NULL */
    void *failure_context;
};

/* NULL and a sentence when the store holds something else or is damaged. */
struct engine *engine_open(const struct engine_options *options, char *error, size_t error_len);
/* Finishes what was submitted, syncs, closes the store. */
void engine_close(struct engine *engine);
int64_t engine_now_ms(struct engine *engine);
/* True after E4 struck; the sentence says what happened. */
bool engine_has_failed(struct engine *engine, char *error, size_t error_len);

/* A table by name, counted, or NULL. */
struct table *engine_table_find(struct engine *engine, struct slice name);
void engine_table_release(struct table *table);
/* Names in order, behind `after` (may be empty), at most limit; *more tells whether there are others. */
uint32_t engine_table_names(struct engine *engine, struct arena *arena, struct slice after, uint32_t limit,
                            struct slice *names, bool *more);

/* What the busiest tables did since the last call, busiest first, at most `top`; names in the arena. For one caller. */
struct table_rate {
    struct slice name;
    uint64_t reads, writes;
};
uint32_t engine_busy_tables(struct engine *engine, struct arena *arena, uint32_t top, struct table_rate *out);

/* ---- reading ---- */

/* An image that the reader holds: encoded bytes that stay until image_release. */
struct image {
    struct slice bytes;
    struct cache_value *held; /* private */
};

/* The stored key of an item: hash and range are the key attributes' values (range NULL where the table has
 * none). */
void engine_item_key(struct buf *out, const struct table *table, const struct value *hash,
                     const struct value *range);

enum engine_result { ENGINE_OK, ENGINE_MISSING, ENGINE_FAILED };
enum engine_result engine_get(struct engine *engine, const struct table *table, struct slice key,
                              struct image *out);
void image_release(struct image *image);

/* A new on-demand table has so many partitions, each with a like share of all hashes. */
#define SCAN_PARTITIONS  4
#define ITEM_KEY_HASH_AT 5 /* in an item's stored key, behind its kind and the table's number */

/* A page of a Query or Scan. */
struct page {
    struct slice from, to; /* stored keys: from <= key < to */
    bool backwards;
    uint64_t limit; /* items evaluated; 0: no limit */
    const struct condition *filter;
    struct arena *scratch; /* for decoding; reset by the caller afterwards */
    /* Called for each item that passes the filter; item is decoded only when a filter was given or wanted. */
    void (*emit)(void *context, struct slice encoded, const struct map *item);
    void *context;
    bool decode; /* hand a decoded item to emit in any case */
    uint64_t beside_bytes; /* of what emit has read elsewhere: they fill the page, too */
    size_t part_at; /* where a stored key has its hash, whose first bits tell the partition; 0: nobody asks */
    /* answers */
    uint64_t scanned, matched, bytes; /* bytes: billed size of all evaluated */
    uint64_t part_bytes[SCAN_PARTITIONS]; /* the same for each partition */
    uint32_t last_part;                   /* of the last evaluated item */
    bool more;                        /* stopped by limit or size: last holds where */
    struct map last;                  /* the last evaluated item, decoded in scratch */
};

enum engine_result engine_page(struct engine *engine, struct page *page);
/* Stored-key range of a whole table, or of one segment of it. */
void engine_scan_range(const struct table *table, uint32_t segment, uint32_t segments, struct buf *from,
                       struct buf *to);
/* Stored-key range of a key condition. False when it can hold nothing (between 5 and 3). */
bool engine_query_range(const struct table *table, const struct key_condition *condition, struct buf *from,
                        struct buf *to);

/* All items of a table as they were at one moment, whatever is written meanwhile. */
struct items_view {
    const struct table *table;
    void (*held)(void *context); /* the moment is fixed: what is written from now on is not in it. May be NULL */
    /* In the order of the store; false to stop. */
    bool (*visit)(void *context, struct slice key, struct slice encoded);
    void *context;
    struct slice from, to; /* stored keys; `to` empty: all */
};
enum engine_result engine_items_view(struct engine *engine, const struct items_view *view);

/* A table as it was at a moment: in a store that holds what the database held then, as backup.h and transfer's moments
 * make them. Counted, with its definition and counts; NULL when there was none. */
struct table *engine_past_table(struct store *past, struct slice name);
/* Its items, by stored key and encoded; the visitor answers false to stop. Two moments of one table (the same id) have
 * the same keys in the same order. */
enum engine_result engine_past_items(struct store *past, const struct table *table, store_visitor visitor,
                                     void *context);

/* ---- secondary indexes ---- */

const struct index_definition *table_index_find(const struct table *table, struct slice name);
/* True when the item has all keys of the index, of the right types, and so an entry in it. */
bool index_holds(const struct table *table, const struct index_definition *index, const struct map *item);
/* What an entry of the index holds of the item. */
struct map index_project(struct arena *arena, const struct table *table, const struct index_definition *index,
                         const struct map *item);
bool index_projects(const struct table *table, const struct index_definition *index, struct slice name);
/* How large the item collection of a hash key is, in a table with local indexes: its items and their entries
 * in those. */
enum engine_result engine_collection_bytes(struct engine *engine, const struct table *table,
                                           const struct value *hash, uint64_t *bytes);

/* The same ranges over an index's entries; a page over them emits entries as they are projected. */
void engine_index_scan_range(const struct table *table, const struct index_definition *index,
                             uint32_t segment, uint32_t segments, struct buf *from, struct buf *to);
bool engine_index_query_range(const struct table *table, const struct index_definition *index,
                              const struct key_condition *condition, struct buf *from, struct buf *to);
/* The stored key of the entry of an item, of which all keys (the index's and the table's) must be there. */
void engine_index_key(struct buf *out, const struct table *table, const struct index_definition *index,
                      const struct map *item);

/* ---- vector indexes ---- */

enum vector_status {
    VECTORS_READY,
    VECTORS_LOADING,     /* after a start: searches wait */
    VECTORS_BACKFILLING, /* the index is new on a table with items: searches are refused */
    VECTORS_FULL,        /* there was not enough memory for all items: searches are refused */
};
enum vector_status vector_index_status(const struct table *table, uint32_t place);
void vector_index_counts(const struct table *table, uint32_t place, int64_t *items, int64_t *bytes);
const struct vector_definition *table_vectors_find(const struct table *table, struct slice name, uint32_t *place);
/* What the index answers with of the item: the vector itself only where the projection names it. */
bool vector_projects(const struct table *table, const struct vector_definition *definition, struct slice name);
/* The item's vector as the index holds it, `dimensions` floats. False when it has none of this length. */
bool vector_of_item(const struct vector_definition *definition, const struct map *item, float *out);
/* A number as a 32-bit float; false when it is too large for one. */
bool vector_number(const struct value *value, float *out);
/* True when the item is in the index. */
bool vector_holds(const struct table *table, const struct vector_definition *definition, const struct map *item);

struct vector_result {
    float score;
    struct map item; /* whole */
};

struct vector_request {
    const struct table *table;
    uint32_t place;       /* of the index in the definition */
    const float *vector;  /* as many as the index has dimensions */
    uint32_t top;         /* results, at most LIMIT_VECTOR_TOP */
    const struct value *hash[INDEX_KEY_PARTS];
    const struct value *filters[LIMIT_VECTOR_FILTERS]; /* NULL: any */
    struct arena *arena;
    /* the answer, nearest first, where scores are equal by stored key */
    enum vector_status status; /* not READY: nothing was searched */
    struct vector_result *results;
    uint32_t count;
};

/* Waits while the index is being loaded, and takes as long as it takes: not for an event loop. Each result is a
 * durable item and the score of the vector that this very item has. */
enum engine_result engine_search_vectors(struct engine *engine, struct vector_request *request);

/* ---- writing ---- */

struct batch; /* the writer's view while it applies commits */

struct commit {
    void (*apply)(struct commit *commit,
                  struct batch *batch);  /* on the writer's thread, in order of submission */
    void (*done)(struct commit *commit); /* there too, once durable or failed */
    bool failed;                         /* set before done: nothing of it was kept */
    /* What led to it, and the token of its transaction, for the stream records of its writes; may be empty.
     */
    struct slice cause, token;
    bool is_quiet; /* its submitter tells those who wait for it: change watchers are not called */
    struct commit *next;
};

struct commit_list {
    struct commit *first, *last;
};

void commit_list_add(struct commit_list *list, struct commit *commit);
/* Hands all of them to the writer and empties the list. */
void engine_submit(struct engine *engine, struct commit_list *list);
/* Submits one and waits until it is done. For callers without a loop; `done` is not called. */
void engine_commit(struct engine *engine, struct commit *commit);

enum write_kind { WRITE_PUT, WRITE_UPDATE, WRITE_DELETE, WRITE_CHECK };
enum write_outcome {
    WRITE_APPLIED,
    WRITE_CONDITION_FAILED,
    WRITE_INVALID,         /* fault holds the service's sentence */
    WRITE_NO_TABLE,        /* the table went away between validation and commit */
    WRITE_CONFLICT,        /* a transaction of the same batch has the item */
    WRITE_VECTORS_FULL,    /* there is no memory for another vector */
    WRITE_COLLECTION_FULL, /* the item's collection would become larger than it may be */
};

/* One write of one item. The caller fills the first part; engine_write the second. */
struct write {
    enum write_kind kind;
    struct table *table;
    struct slice key; /* stored key */
    struct map item;  /* PUT: the item; UPDATE: the key attributes, from which a missing item is begun */
    const struct condition *condition; /* or NULL */
    const struct update *update;       /* UPDATE; NULL means none: the item comes to exist */
    struct arena *arena;               /* for images and faults */
    bool in_transaction; /* of the service's kind: conflicts with others that wait for the same batch */
    bool by_expiry;      /* the service deletes an expired item: says so in the stream */
    bool
        plain_size_check; /* transactions measure an update's item plainly; UpdateItem adds for its actions */
    /* UPDATE: what the service checks on the new item (types of index keys); NULL for nothing. False with
     * *fault. */
    bool (*check_new)(const struct write *write, const struct map *item, struct slice *fault);

    enum write_outcome outcome;
    struct slice fault;
    bool existed;
    struct slice old_image,
        new_image;               /* encoded, in arena: old when existed, new for PUT and UPDATE applied */
    uint64_t old_size, new_size; /* billed sizes; 0 when there is none */
};

/* Encodes a PUT's image on the caller's thread, so that the writer need not. */
void engine_write_prepare(struct write *write);
/* Only from within apply. engine_write_check finds the outcome and makes the new image; engine_write_keep
 * adds what was checked to the batch. A transaction checks all of its writes before it keeps any;
 * engine_write does both at once. */
void engine_write_check(struct batch *batch, struct write *write);
void engine_write_keep(struct batch *batch, struct write *write);
void engine_write(struct batch *batch, struct write *write);
/* An item as the batch sees it, for transactional reads: the encoded image in the arena, or false. */
bool engine_read_in_batch(struct batch *batch, struct arena *arena, struct slice key, struct slice *image);

/* ---- idempotency tokens: what a transaction was, for ten minutes ---- */

/* RUNNING: its transaction waits for this very batch and is not durable yet. */
enum token_result { TOKEN_NEW, TOKEN_SAME, TOKEN_RUNNING, TOKEN_DIFFERENT };
/* Looks the token up. SAME: *note is what engine_token_keep was given. */
enum token_result engine_token_check(struct batch *batch, struct arena *arena, struct slice token,
                                     uint64_t payload_hash, struct slice *note);
void engine_token_keep(struct batch *batch, struct slice token, uint64_t payload_hash, struct slice note);

/* ---- streams ---- */

/* One shard: takes the keys whose hash is in low .. high. */
struct shard_description {
    uint32_t number, parent; /* parent 0: none */
    uint64_t first, last;    /* sequence numbers; last 0: open */
    uint32_t low, high;
    int64_t created_ms;
};

/* A stream: immutable and counted, like a table. */
struct stream {
    uint32_t number;
    struct slice table_name;
    enum stream_view view;
    int64_t since_ms, disabled_ms;    /* disabled_ms 0: its table writes to it */
    struct slice hash, range;         /* of the table, for DescribeStream; range.len 0: none */
    struct shard_description *shards; /* oldest first */
    uint32_t shard_count;
    /* private */
    struct arena arena;
    _Atomic uint32_t references;
};

struct stream *engine_stream_find(struct engine *engine, uint32_t number); /* counted, or NULL */
void engine_stream_release(struct stream *stream);
/* All streams, ascending by number, counted; the array is in the arena. */
struct stream **engine_streams(struct engine *engine, struct arena *arena, uint32_t *count);
/* The number that the next record will get: all below are durable and can be read. */
uint64_t engine_stream_next(struct engine *engine);
/* Records below this number may be cut off already, for their age. */
uint64_t engine_stream_horizon(struct engine *engine);

/* Records of one shard from a sequence number on. The record is an item: "event" (0 INSERT, 1 MODIFY, 2
 * REMOVE), "keys", "new", "old", "time" (ms), "size", "expired", "cause", "token". The visitor answers false
 * to stop.
 */
typedef bool (*engine_record_visitor)(void *context, uint64_t sequence, struct slice record);
enum engine_result engine_stream_read(struct engine *engine, uint32_t stream, uint32_t shard, uint64_t from,
                                      engine_record_visitor visitor, void *context);
/* From within apply: closes an open shard; its successors (one, or two with half of its keys each) begin. */
bool engine_shard_roll(struct batch *batch, uint32_t stream, uint32_t shard, bool split);
/* The same for all open shards when shard is 0; answers how many were split, or ENGINE_SHARDS_FULL and has split
 * none when the stream would have more than LIMIT_STREAM_SHARDS. */
#define ENGINE_SHARDS_FULL UINT32_MAX
unsigned engine_shard_split(struct batch *batch, uint32_t stream, uint32_t shard);

/* Called after each commit that wrote stream records, on the writer's thread; must be quick. */
struct engine_watcher {
    void (*notify)(struct engine_watcher *watcher, uint64_t next_sequence);
    struct engine_watcher *next;
};
void engine_watch(struct engine *engine, struct engine_watcher *watcher); /* keeps it until engine_unwatch */
void engine_unwatch(struct engine *engine, struct engine_watcher *watcher);

/* For those who wait for items of some tables to change, whether these have streams or not. Both functions
 * are called on the writer's thread and must be quick. */
#define ENGINE_TOPICS  3  /* of one change */
#define ENGINE_PENDING 96 /* of one batch; behind more, everything counts as changed */
struct engine_change_watcher {
    struct slice prefix; /* of the names of these tables; kept */
    /* What the change of an item concerns, as numbers of the watcher's choice; answers how many. Key values
     * that are not strings are SLICE_NONE. */
    unsigned (*topics)(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                       struct slice range, uint64_t topics[ENGINE_TOPICS]);
    /* The changes can be read. topics NULL: anything may have changed (a table was dropped, a snapshot came
     * back). */
    void (*changed)(struct engine_change_watcher *watcher, const uint64_t *topics, size_t count);
    /* private */
    uint64_t pending[ENGINE_PENDING];
    size_t pending_count;
    bool all_pending;
    struct engine_change_watcher *next;
};
/* Keeps it until engine_unwatch_changes. */
void engine_watch_changes(struct engine *engine, struct engine_change_watcher *watcher);
void engine_unwatch_changes(struct engine *engine, struct engine_change_watcher *watcher);

/* For who wants to see each change of one table, with a stream or without: the encoded items before and after it, empty
 * where there was none or is none. Called on the writer's thread when it is durable, in order; must be quick. */
struct engine_observer {
    struct slice table; /* its name; kept */
    void (*changed)(struct engine_observer *observer, struct slice old, struct slice new);
    struct engine_observer *next; /* private */
};
/* Keeps it until engine_unobserve has returned. */
void engine_observe(struct engine *engine, struct engine_observer *observer);
void engine_unobserve(struct engine *engine, struct engine_observer *observer);

/* ---- what goes on by itself: index entries of older items, expired items, old stream records, old tokens
 * ---- */

/* Does what is due and answers whether more is to be done at once. The engine's own thread calls it; with
 * inline_writer the caller does. */
bool engine_keep_house(struct engine *engine);
/* Waits until nothing is due. */
void engine_wait_idle(struct engine *engine);
/* The next look for expired items is due now. */
void engine_expire_now(struct engine *engine);

enum table_change_result { TABLE_CHANGED, TABLE_EXISTS, TABLE_MISSING, TABLE_PROTECTED, TABLE_TOO_MANY };

/* From within apply. The definition is copied. */
enum table_change_result engine_table_create(struct batch *batch, const struct table_definition *definition);
enum table_change_result engine_table_replace(struct batch *batch, const struct table_definition *definition);
enum table_change_result engine_table_drop(struct batch *batch, struct slice name);
/* The table as this batch sees it, or NULL; not counted, valid until apply returns. */
struct table *engine_table_in_batch(struct batch *batch, struct slice name);

/* From within apply: what was committed before this batch is in the log on disk, also where replies do not wait for
 * it. */
bool engine_sync_in_batch(struct batch *batch);

/* A new random UUID in text, for table ids and the like. */
struct slice engine_new_id(struct engine *engine, struct arena *arena);

/* ---- notes: what the database keeps about itself beside its tables (notes.c) ---- */

#define ENGINE_NOTES "$notes" /* the table that they are items of; clients cannot name it, or see it listed */
/* From within apply. False when the table of notes cannot be made. */
bool engine_note_put(struct batch *batch, struct arena *arena, struct slice kind, struct slice id,
                     const struct map *fields);
void engine_note_delete(struct batch *batch, struct arena *arena, struct slice kind, struct slice id);
bool engine_note_in_batch(struct batch *batch, struct arena *arena, struct slice kind, struct slice id,
                          struct map *out);
/* From any thread, of what is durable. In the arena. */
bool engine_note_find(struct engine *engine, struct arena *arena, struct slice kind, struct slice id,
                      struct map *out);
/* Those of a kind, the last id first; `before` empty: all. The visitor answers false to stop. */
typedef bool (*engine_note_visitor)(void *context, struct slice id, const struct map *fields);
enum engine_result engine_notes(struct engine *engine, struct arena *arena, struct slice kind, struct slice before,
                                engine_note_visitor visitor, void *context);
/* The same, the first id behind `after` first. */
enum engine_result engine_notes_after(struct engine *engine, struct arena *arena, struct slice kind,
                                      struct slice after, engine_note_visitor visitor, void *context);

/* ---- capacity, in half units where halves occur ---- */

double capacity_read(uint64_t bytes, bool consistent);
double capacity_write(uint64_t old_bytes, uint64_t new_bytes);

/* ---- the whole database as it is now, and back to it: in memory only, in constant time ---- */

struct engine_snapshot;
/* NULL when the store is not in memory. */
struct engine_snapshot *engine_snapshot_take(struct engine *engine);
/* Everything committed since is gone, as if it had never been. The snapshot can be used again. */
void engine_snapshot_restore(struct engine *engine, const struct engine_snapshot *snapshot);
void engine_snapshot_free(struct engine_snapshot *snapshot);

/* ---- looking after it ---- */

struct engine_stats {
    _Atomic uint64_t commits, batches, cache_hits, cache_misses;
    struct histogram batch_sizes; /* commits per batch */
    struct histogram commit_us;   /* store_write, sync included */
};

const struct engine_stats *engine_stats(struct engine *engine);
void engine_store_stats(struct engine *engine, struct store_stats *stats);
uint64_t engine_cache_bytes(struct engine *engine);
/* The memory that all vector indexes take. */
uint64_t engine_vector_bytes(struct engine *engine);

/* Verifies a whole store: definitions and items decode, items stand under their own keys, indexes and
 * expiries hold what the items ask for and nothing else, counts add up, and streams end in what the items are
 * now. Writes a line per fault to out and answers their number; -1 when the store cannot be read. */
struct check_report {
    uint64_t tables, items, records, faults;
};
bool engine_check(struct store *store, struct check_report *report, struct buf *out);

/* Brings everything that a damaged store still has (store_open_salvage) into an empty one. Definitions, items and
 * streams are copied; entries of indexes, counts and all else that follows from items is made anew, so the new store is
 * sound whatever is missing. Records of streams are copied only where nothing is missing. Appends a line to *out for
 * each table that is touched and each thing that is left out. False when the new store cannot be written. */
struct salvage_report {
    uint64_t tables, items, records;
};
bool engine_salvage(struct store *from, const struct store_salvage *found, struct store *to,
                    struct salvage_report *report, struct buf *out);

/* Walks all entries of a store and tells what each means: its key in words, its value as stored. The visitor
 * answers false to stop. False when the store cannot be read. */
enum stored_kind {
    STORED_TEXT, /* the value was put into words */
    STORED_ITEM, /* the value is an encoded item: an item, a definition, an index entry, a stream, a record */
    STORED_UNKNOWN,
};
typedef bool (*engine_entry_visitor)(void *context, enum stored_kind kind, struct slice meaning,
                                     struct slice value);
bool engine_show(struct store *store, engine_entry_visitor visitor, void *context);
/* The same for the log, from a batch on (0: its first): each batch, and behind it its entries. Of an entry that is
 * deleted the value is empty; of a range too, and its meaning is that of both ends. */
struct engine_log_visitor {
    void (*batch)(void *context, uint64_t number, int64_t time_ms, uint32_t entries, size_t bytes);
    void (*entry)(void *context, const char *verb, enum stored_kind kind, struct slice meaning, struct slice value);
    void *context;
};
/* False and a sentence when it cannot be read. */
bool engine_show_log(struct store *store, uint64_t from, const struct engine_log_visitor *visitor, char *error,
                     size_t error_len);

#endif
