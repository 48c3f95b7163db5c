/* Vector indexes: in memory, and in step with what is durable.
 *
 * A change of an item leaves changes of vectors in its batch; they are applied when the batch is durable, in the
 * order of the commits, and forgotten when it fails. The store knows nothing of them: an index that is not filled
 * yet, after a start or because it is new, is filled by a walk over the items (vector_build.c).
 *
 * Changes do not depend on what the index holds: a vector that is put twice is there once, one that is removed
 * need not be there. So walk and changes may meet the same item in any order. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/vectors.h"

#define MIN_BUCKETS 16

enum vector_change_kind {
    VECTOR_PUT,
    VECTOR_RENOTE, /* the vector is as before, other attributes are not */
    VECTOR_REMOVE,
    VECTOR_DROP, /* the whole index */
};

struct vector_change {
    struct vector_change *next;
    struct vector_index *index;
    enum vector_change_kind kind;
    uint64_t stamp;
    struct slice partition, key, note;
    float *vector; /* PUT */
};

/* ---- partitions, under the index's lock ---- */

static struct vector_partition **partition_place(const struct vector_index *index, uint64_t hash,
                                                 struct slice name)
{
    struct vector_partition **place = &index->buckets[hash & (index->bucket_count - 1)];
    while (*place &&
           !((*place)->hash == hash && slice_equal((struct slice){(*place)->name, (*place)->name_len}, name)))
        place = &(*place)->next_in_bucket;
    return place;
}

struct vector_partition *vector_partition_find(const struct vector_index *index, struct slice name)
{
    return *partition_place(index, hash_bytes(name), name);
}

static void resize_buckets(struct vector_index *index, uint32_t count)
{
    struct vector_partition **buckets = must_zero(count, sizeof *buckets);
    for (uint32_t i = 0; i < index->bucket_count; i++)
        for (struct vector_partition *at = index->buckets[i], *next; at; at = next) {
            next = at->next_in_bucket;
            at->next_in_bucket = buckets[at->hash & (count - 1)];
            buckets[at->hash & (count - 1)] = at;
        }
    free(index->buckets);
    index->buckets = buckets;
    index->bucket_count = count;
}

static struct vector_partition *partition_make(struct vector_index *index, struct slice name)
{
    uint64_t hash = hash_bytes(name);
    struct vector_partition **place = partition_place(index, hash, name);
    if (*place) return *place;
    if (index->partition_count >= index->bucket_count) {
        resize_buckets(index, index->bucket_count * 2);
        place = partition_place(index, hash, name);
    }
    struct vector_partition *partition = must_zero(1, sizeof *partition + name.len);
    partition->hash = hash;
    partition->name_len = (uint32_t)name.len;
    if (name.len) memcpy(partition->name, name.data, name.len);
    partition->set = vector_set_new(index->metric, index->dimensions, index->engine->vectors_exact_max);
    index->partition_count++;
    return *place = partition;
}

static void partition_free(struct vector_partition *partition)
{
    vector_set_free(partition->set);
    free(partition);
}

static uint64_t partition_bytes(const struct vector_partition *partition)
{
    return partition ? sizeof *partition + partition->name_len + vector_set_bytes(partition->set) : 0;
}

static void count_bytes(struct vector_index *index, uint64_t before, uint64_t after)
{
    index->bytes += after - before;
    atomic_fetch_add(&index->engine->vectors_bytes, after - before);
}

void vector_index_put(struct vector_index *index, struct slice partition, struct slice key,
                      const float *vector, struct slice note, uint64_t stamp)
{
    uint64_t before = partition_bytes(vector_partition_find(index, partition));
    struct vector_partition *own = partition_make(index, partition);
    index->items -= vector_set_count(own->set);
    vector_set_put(own->set, key, vector, note, stamp);
    index->items += vector_set_count(own->set);
    count_bytes(index, before, partition_bytes(own));
}

static void note_removal(struct vector_index *index, struct slice key)
{
    if (index->removed_count == index->removed_capacity) {
        index->removed_capacity = index->removed_capacity ? index->removed_capacity * 2 : 64;
        index->removed = must_realloc(index->removed, index->removed_capacity * sizeof *index->removed);
    }
    index->removed[index->removed_count++] = hash_bytes(key);
}

void vector_index_renote(struct vector_index *index, struct slice partition, struct slice key,
                         struct slice note, uint64_t stamp)
{
    struct vector_partition *own = vector_partition_find(index, partition);
    uint64_t before = partition_bytes(own);
    if (own) vector_set_renote(own->set, key, note, stamp);
    count_bytes(index, before, partition_bytes(own));
}

void vector_index_remove(struct vector_index *index, struct slice partition, struct slice key)
{
    struct vector_partition *own = vector_partition_find(index, partition);
    if (index->is_gathering) note_removal(index, key);
    uint64_t before = partition_bytes(own);
    if (!own || !vector_set_remove(own->set, key)) return;
    index->items--;
    count_bytes(index, before, partition_bytes(own));
    vector_index_release(index, partition);
}

void vector_index_release(struct vector_index *index, struct slice partition)
{
    struct vector_partition **place = partition_place(index, hash_bytes(partition), partition), *own = *place;
    if (!own || vector_set_count(own->set) || vector_set_is_searched(own->set)) return;
    *place = own->next_in_bucket;
    index->partition_count--;
    count_bytes(index, partition_bytes(own), 0);
    partition_free(own);
    if (index->bucket_count > MIN_BUCKETS && index->partition_count <= index->bucket_count / 4)
        resize_buckets(index, index->bucket_count / 2);
}

/* Those that are searched keep an empty set. */
void vector_index_clear(struct vector_index *index)
{
    uint64_t before = index->bytes, after = 0;
    for (uint32_t i = 0; i < index->bucket_count; i++) {
        struct vector_partition **place = &index->buckets[i];
        while (*place) {
            struct vector_partition *own = *place;
            if (vector_set_is_searched(own->set)) {
                vector_set_clear(own->set);
                after += partition_bytes(own);
                place = &own->next_in_bucket;
                continue;
            }
            *place = own->next_in_bucket;
            index->partition_count--;
            partition_free(own);
        }
    }
    index->items = 0;
    count_bytes(index, before, after);
    resize_buckets(index, MIN_BUCKETS);
}

/* ---- indexes ---- */

static struct vector_index *index_new(struct engine *engine, const struct vector_definition *definition,
                                      enum vector_status status)
{
    pthread_rwlockattr_t writers_first;
    struct vector_index *index = must_zero(1, sizeof *index);
    index->engine = engine;
    index->dimensions = definition->dimensions;
    index->metric = definition->metric;
    index->bucket_count = MIN_BUCKETS;
    index->buckets = must_zero(MIN_BUCKETS, sizeof *index->buckets);
    atomic_init(&index->status, status);
    pthread_mutex_init(&index->search_lock, NULL);
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&index->lock, &writers_first);
    pthread_rwlockattr_destroy(&writers_first);
    if (engine->vectors_count == engine->vectors_capacity) {
        engine->vectors_capacity = engine->vectors_capacity ? engine->vectors_capacity * 2 : 8;
        engine->vectors = must_realloc(engine->vectors, engine->vectors_capacity * sizeof *engine->vectors);
    }
    return engine->vectors[engine->vectors_count++] = index;
}

void vectors_init(struct engine *engine, const struct engine_options *options)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_init(&engine->vectors_lock, NULL);
    pthread_cond_init(&engine->vectors_loaded, NULL);
    engine->vectors_limit_bytes = options->vector_limit_bytes ? options->vector_limit_bytes
                                                              : memory / LIMIT_VECTOR_MEMORY;
    engine->vectors_exact_max = options->vector_exact_max ? options->vector_exact_max : LIMIT_VECTOR_EXACT;
}

void vectors_clear(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->vectors_count; i++) {
        struct vector_index *index = engine->vectors[i];
        pthread_rwlock_wrlock(&index->lock);
        atomic_store(&index->dropped, true);
        vector_index_clear(index);
        pthread_rwlock_unlock(&index->lock);
        vector_index_set_status(index, VECTORS_READY);
    }
}

void vectors_free(struct engine *engine)
{
    vectors_clear(engine);
    for (uint32_t i = 0; i < engine->vectors_count; i++) {
        struct vector_index *index = engine->vectors[i];
        pthread_mutex_destroy(&index->search_lock);
        pthread_rwlock_destroy(&index->lock);
        buf_free(&index->cursor);
        free(index->removed);
        free(index->buckets);
        free(index);
    }
    free(engine->vectors);
    pthread_mutex_destroy(&engine->vectors_lock);
    pthread_cond_destroy(&engine->vectors_loaded);
}

void vector_index_set_status(struct vector_index *index, enum vector_status status)
{
    struct engine *engine = index->engine;
    pthread_mutex_lock(&engine->vectors_lock);
    atomic_store(&index->status, status);
    pthread_cond_broadcast(&engine->vectors_loaded);
    pthread_mutex_unlock(&engine->vectors_lock);
}

enum vector_status vector_index_status(const struct table *table, uint32_t place)
{
    return atomic_load(&table->vectors[place]->status);
}

void vector_index_counts(const struct table *table, uint32_t place, int64_t *items, int64_t *bytes)
{
    struct vector_index *index = table->vectors[place];
    pthread_rwlock_rdlock(&index->lock);
    *items = index->items;
    *bytes = (int64_t)index->bytes;
    pthread_rwlock_unlock(&index->lock);
}

uint64_t engine_vector_bytes(struct engine *engine)
{
    return atomic_load(&engine->vectors_bytes);
}

bool vector_memory_is_full(const struct engine *engine)
{
    return atomic_load(&engine->vectors_bytes) >= engine->vectors_limit_bytes;
}

/* ---- changes of a batch ---- */

static struct vector_change *add_change(struct batch *batch, struct vector_index *index,
                                        enum vector_change_kind kind)
{
    struct vector_change *change = must_zero(1, sizeof *change);
    change->index = index;
    change->kind = kind;
    *(batch->last_vector ? &batch->last_vector->next : &batch->first_vector) = change;
    return batch->last_vector = change;
}

static struct slice copy_bytes(struct slice bytes)
{
    if (!bytes.len) return SLICE("");
    char *copy = must_alloc(bytes.len);
    memcpy(copy, bytes.data, bytes.len);
    return (struct slice){copy, bytes.len};
}

static void free_bytes(struct slice bytes)
{
    if (bytes.len) free((char *)bytes.data);
}

static void free_changes(struct batch *batch)
{
    while (batch->first_vector) {
        struct vector_change *change = batch->first_vector;
        batch->first_vector = change->next;
        free_bytes(change->partition);
        free_bytes(change->key);
        free_bytes(change->note);
        free(change->vector);
        free(change);
    }
    batch->last_vector = NULL;
}

static bool same_value(const struct map *old, const struct map *new, struct slice name)
{
    const struct value *before = map_find(old, name), *after = map_find(new, name);
    return before && after && value_equal(before, after);
}

static void follow_one(struct batch *batch, const struct change *change, uint32_t place)
{
    const struct table *table = change->table;
    const struct vector_definition *definition = &table->definition.vectors[place];
    struct vector_index *index = table->vectors[place];
    float *vector = arena_array(&batch->scratch, float, definition->dimensions);
    bool was = change->old && map_find(change->old, definition->attribute) &&
               vector_partition_of_item(&batch->old_key, table, definition, change->old);
    bool is = change->new &&vector_of_item(definition, change->new, vector) &&
              vector_partition_of_item(&batch->key, table, definition, change->new);
    bool stays = was && is && slice_equal(buf_view(&batch->old_key), buf_view(&batch->key));
    if (was && !stays) {
        struct vector_change *removal = add_change(batch, index, VECTOR_REMOVE);
        removal->partition = copy_bytes(buf_view(&batch->old_key));
        removal->key = copy_bytes(change->key);
    }
    if (!is) return;
    bool same = stays && same_value(change->old, change->new, definition->attribute) &&
                atomic_load(&index->status) == VECTORS_READY;
    struct vector_change *put = add_change(batch, index, same ? VECTOR_RENOTE : VECTOR_PUT);
    put->partition = copy_bytes(buf_view(&batch->key));
    put->key = copy_bytes(change->key);
    put->stamp = hash_bytes(change->new_image);
    vector_note_of_item(&batch->value, definition, change->new);
    put->note = copy_bytes(buf_view(&batch->value));
    if (same) return;
    put->vector = must_alloc(definition->dimensions * sizeof *vector);
    memcpy(put->vector, vector, definition->dimensions * sizeof *vector);
}

void vectors_follow(struct batch *batch, const struct change *change)
{
    for (uint32_t i = 0; i < change->table->definition.vector_count; i++) follow_one(batch, change, i);
}

static void apply_change(const struct vector_change *change)
{
    struct vector_index *index = change->index;
    pthread_rwlock_wrlock(&index->lock);
    if (change->kind == VECTOR_DROP) {
        atomic_store(&index->dropped, true);
        vector_index_clear(index);
    } else if (!atomic_load(&index->dropped) && atomic_load(&index->status) != VECTORS_FULL) {
        if (change->kind == VECTOR_PUT)
            vector_index_put(index, change->partition, change->key, change->vector, change->note,
                             change->stamp);
        if (change->kind == VECTOR_REMOVE) vector_index_remove(index, change->partition, change->key);
        if (change->kind == VECTOR_RENOTE)
            vector_index_renote(index, change->partition, change->key, change->note, change->stamp);
    }
    pthread_rwlock_unlock(&index->lock);
    if (change->kind == VECTOR_DROP) vector_index_set_status(index, VECTORS_READY);
}

void vectors_publish(struct batch *batch)
{
    for (const struct vector_change *change = batch->first_vector; change; change = change->next)
        apply_change(change);
    free_changes(batch);
}

void vectors_forget(struct batch *batch)
{
    free_changes(batch);
}

/* ---- tables ---- */

static uint32_t place_of(const struct table *table, uint32_t number)
{
    for (uint32_t i = 0; table && i < table->definition.vector_count; i++)
        if (table->definition.vectors[i].index.number == number) return i;
    return UINT32_MAX;
}

void vectors_attach(struct engine *engine, struct batch *batch, struct table *table, const struct table *old,
                    enum vector_status status)
{
    for (uint32_t i = 0; i < table->definition.vector_count; i++) {
        const struct vector_definition *definition = &table->definition.vectors[i];
        uint32_t place = place_of(old, definition->index.number);
        table->vectors[i] = place == UINT32_MAX ? index_new(engine, definition, status) : old->vectors[place];
    }
    for (uint32_t i = 0; old && i < old->definition.vector_count; i++)
        if (place_of(table, old->definition.vectors[i].index.number) == UINT32_MAX)
            add_change(batch, old->vectors[i], VECTOR_DROP);
}

void vectors_drop(struct batch *batch, const struct table *table)
{
    for (uint32_t i = 0; i < table->definition.vector_count; i++)
        add_change(batch, table->vectors[i], VECTOR_DROP);
}

/* Only where memory is full anything is looked at. An item that has its vector already may change it. */
void vectors_check(struct batch *batch, struct write *write)
{
    const struct table *table = write->table;
    struct map old, new;
    if (!table->definition.vector_count || !vector_memory_is_full(batch->engine)) return;
    if (write->kind != WRITE_PUT && write->kind != WRITE_UPDATE) return;
    bool existed = write->existed && item_decode(&batch->scratch, write->old_image, &old);
    if (!item_decode(&batch->scratch, write->new_image, &new)) return;
    for (uint32_t i = 0; i < table->definition.vector_count; i++) {
        const struct vector_definition *definition = &table->definition.vectors[i];
        if (!vector_holds(table, definition, &new) || (existed && vector_holds(table, definition, &old)))
            continue;
        write->outcome = WRITE_VECTORS_FULL;
    }
}
