/* What vectors.c, vector_build.c and vector_search.c share: a vector index in memory. */
#ifndef ENGINE_VECTORS_H
#define ENGINE_VECTORS_H

#include "engine/internal.h"

/* The vectors of one value of the HASH attributes, or of the whole index where it has none. */
struct vector_partition {
    struct vector_set *set; /* while it is searched, the partition stays */
    uint64_t hash;
    struct vector_partition *next_in_bucket;
    uint32_t name_len;
    char name[];
};

struct vector_index {
    struct engine *engine;
    uint32_t dimensions;
    enum vector_metric metric;
    _Atomic enum vector_status status;
    _Atomic bool dropped;
    pthread_mutex_t search_lock; /* among searches that begin and end, who have the lock's reading half */
    pthread_rwlock_t lock;       /* of all below; writers go first, so searches cannot keep them out */
    struct vector_partition **buckets;
    uint32_t bucket_count, partition_count;
    int64_t items;
    uint64_t bytes;
    /* the walk that fills it: vector_build.c */
    struct buf cursor; /* the stored key to go on from; empty: from the table's first */
    bool is_gathering; /* what is removed now may be among what was gathered ... */
    uint64_t *removed; /* ... so the hashes of its keys are noted */
    uint32_t removed_count, removed_capacity;
};

/* ---- vector_entry.c ---- */

/* The bytes that name the partition; false when the item has not all HASH attributes. */
bool vector_partition_of_item(struct buf *out, const struct table *table,
                              const struct vector_definition *definition, const struct map *item);
void vector_partition(struct buf *out, const struct vector_definition *definition,
                      const struct value *const *values);
/* The item's values of the INLINE_FILTER attributes, and those that a search wants (NULL: any). */
void vector_note_of_item(struct buf *out, const struct vector_definition *definition, const struct map *item);
void vector_note_wanted(struct buf *out, const struct vector_definition *definition,
                        const struct value *const *values);
bool vector_note_matches(struct slice note, struct slice wanted, uint32_t count);

/* ---- vectors.c, under the lock ---- */

struct vector_partition *vector_partition_find(const struct vector_index *index, struct slice name);
void vector_index_put(struct vector_index *index, struct slice partition, struct slice key,
                      const float *vector, struct slice note, uint64_t stamp);
void vector_index_renote(struct vector_index *index, struct slice partition, struct slice key,
                         struct slice note, uint64_t stamp);
void vector_index_remove(struct vector_index *index, struct slice partition, struct slice key);
/* A partition that nobody is in any more goes, unless somebody searches it: the last search is then its end. */
void vector_index_release(struct vector_index *index, struct slice partition);
void vector_index_clear(struct vector_index *index);
/* Tells those who wait for it. */
void vector_index_set_status(struct vector_index *index, enum vector_status status);
bool vector_memory_is_full(const struct engine *engine);

/* ---- vector_build.c ---- */

bool vector_build_step(struct engine *engine, const struct table *table, uint32_t place);

#endif
