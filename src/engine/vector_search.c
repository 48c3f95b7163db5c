/* The nearest items of a vector index.
 *
 * The index is searched in steps, under its lock for each; then the items are read. An item may have changed in
 * between: its image tells, by the stamp that the index has of it. Such an item gets the score of the vector that
 * it has now, or is left out where it is not in the index any more, and then the search is repeated. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/vectors.h"

#define ATTEMPTS 3 /* behind the last one there may be fewer results than there are items */

struct note_filter {
    struct slice wanted;
    uint32_t count;
};

static bool accepts(void *context, struct slice note)
{
    const struct note_filter *filter = context;
    return vector_note_matches(note, filter->wanted, filter->count);
}

/* Answers what the index is at last. Where no house is kept, the first search loads it. */
static enum vector_status wait_until_loaded(struct engine *engine, const struct table *table, uint32_t place)
{
    struct vector_index *index = table->vectors[place];
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_VECTOR_WAIT_MS / 1000;
    while ((engine->inline_writer || engine->read_only) && atomic_load(&index->status) == VECTORS_LOADING) {
        pthread_mutex_lock(&engine->keeper_lock);
        bool worked = vector_build_step(engine, table, place);
        pthread_mutex_unlock(&engine->keeper_lock);
        if (!worked) return atomic_load(&index->status);
    }
    pthread_mutex_lock(&engine->vectors_lock);
    while (atomic_load(&index->status) == VECTORS_LOADING && !atomic_load(&engine->closing))
        if (pthread_cond_timedwait(&engine->vectors_loaded, &engine->vectors_lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&engine->vectors_lock);
    return atomic_load(&index->status);
}

/* Between two steps the writer may have the lock. False: there is no such partition. */
static bool search_partition(struct vector_index *index, struct slice name,
                             const struct vector_request *request, struct note_filter *filter,
                             struct vector_search *search)
{
    pthread_rwlock_rdlock(&index->lock);
    struct vector_partition *partition = vector_partition_find(index, name);
    if (!partition) {
        pthread_rwlock_unlock(&index->lock);
        return false;
    }
    pthread_mutex_lock(&index->search_lock);
    vector_search_begin(search, partition->set, request->vector, request->top);
    pthread_mutex_unlock(&index->search_lock);
    if (filter->count) {
        search->accepts = accepts;
        search->context = filter;
    }
    while (vector_search_step(search, partition->set)) {
        pthread_rwlock_unlock(&index->lock);
        pthread_rwlock_rdlock(&index->lock);
    }
    pthread_mutex_lock(&index->search_lock);
    vector_search_end(search, partition->set);
    pthread_mutex_unlock(&index->search_lock);
    bool is_empty = !vector_set_count(partition->set);
    pthread_rwlock_unlock(&index->lock);
    if (!is_empty) return true;
    pthread_rwlock_wrlock(&index->lock);
    vector_index_release(index, name);
    pthread_rwlock_unlock(&index->lock);
    return true;
}

/* ---- the items ---- */

struct result_order {
    struct vector_result result;
    struct slice key;
};

static bool is_nearer(enum vector_metric metric, const struct result_order *a, const struct result_order *b)
{
    float left = a->result.score, right = b->result.score;
    if (left != right) return metric == VECTOR_DOT ? left > right : left < right;
    return slice_compare(a->key, b->key) < 0;
}

/* The item as it is now, and its score. False: it is not in the index any more. */
static bool judge_changed(const struct vector_request *request, const struct map *item,
                          struct slice partition, const struct note_filter *filter, float *score)
{
    const struct vector_definition *definition = &request->table->definition.vectors[request->place];
    float *vector = arena_array(request->arena, float, definition->dimensions);
    struct buf own = {0};
    bool is = vector_of_item(definition, item, vector) &&
              vector_partition_of_item(&own, request->table, definition, item) &&
              slice_equal(buf_view(&own), partition);
    if (is) {
        vector_note_of_item(&own, definition, item);
        is = vector_note_matches(buf_view(&own), filter->wanted, filter->count);
    }
    if (is) *score = vector_score(definition->metric, request->vector, vector, definition->dimensions);
    buf_free(&own);
    return is;
}

/* Adds the result in its place: hits come in order, so it is nearly always the last. */
static void add_result(struct vector_request *request, struct result_order *order, struct result_order result)
{
    enum vector_metric metric = request->table->definition.vectors[request->place].metric;
    uint32_t at = request->count++;
    for (; at && is_nearer(metric, &result, &order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = result;
}

static enum engine_result read_items(struct engine *engine, struct vector_request *request,
                                     const struct vector_search *search, struct slice partition,
                                     const struct note_filter *filter, bool *has_lost)
{
    struct result_order order[LIMIT_VECTOR_TOP];
    request->count = 0;
    *has_lost = false;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct vector_hit *hit = &search->hits[i];
        struct result_order result = {.result.score = hit->score, .key = buf_view(&hit->key)};
        struct image image;
        enum engine_result read = engine_get(engine, request->table, result.key, &image);
        if (read == ENGINE_FAILED) return read;
        if (read == ENGINE_MISSING) {
            *has_lost = true;
            continue;
        }
        struct slice bytes = arena_copy(request->arena, image.bytes);
        image_release(&image);
        if (!item_decode(request->arena, bytes, &result.result.item)) return ENGINE_FAILED;
        if (hash_bytes(bytes) == hit->stamp ||
            judge_changed(request, &result.result.item, partition, filter, &result.result.score))
            add_result(request, order, result);
        else
            *has_lost = true;
    }
    request->results = arena_array(request->arena, struct vector_result, request->count);
    for (uint32_t i = 0; i < request->count; i++) request->results[i] = order[i].result;
    return ENGINE_OK;
}

enum engine_result engine_search_vectors(struct engine *engine, struct vector_request *request)
{
    const struct vector_definition *definition = &request->table->definition.vectors[request->place];
    struct vector_index *index = request->table->vectors[request->place];
    struct buf partition = {0}, wanted = {0};
    enum engine_result result = ENGINE_OK;
    bool has_lost = true;
    ensure(request->top > 0 && request->top <= LIMIT_VECTOR_TOP);
    request->count = 0;
    request->status = wait_until_loaded(engine, request->table, request->place);
    if (request->status != VECTORS_READY) return ENGINE_OK;
    vector_partition(&partition, definition, request->hash);
    vector_note_wanted(&wanted, definition, request->filters);
    struct note_filter filter = {buf_view(&wanted), definition->filter_count};
    for (unsigned i = 0; i < ATTEMPTS && has_lost && result == ENGINE_OK; i++) {
        struct vector_search search;
        request->count = 0;
        if (!search_partition(index, buf_view(&partition), request, &filter, &search)) break;
        result = read_items(engine, request, &search, buf_view(&partition), &filter, &has_lost);
        vector_search_free(&search);
    }
    buf_free(&partition);
    buf_free(&wanted);
    return result;
}
