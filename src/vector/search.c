/* The nearest of a set, in steps. A small set is compared whole. In a large one the first steps read the sketches of
 * all vectors, and leave candidates: those that may be among the nearest as far as their bounds tell. Then the
 * candidates are compared: first those that are nearest even in the worst case, so that most others need not be.
 *
 * The set may change between two steps. Where a vector is removed the last one moves into its slot; a search that has
 * passed that slot compares it once more at its end, so it misses no vector that stays, and counts a key that is met
 * twice once. A vector that is changed or put meanwhile is met as it was or as it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "vector/internal.h"

#define STEP_BYTES     (1024u * 1024) /* that one step of a search looks at: a tenth of a millisecond */
#define SCORES_AT_ONCE 64
#define GROUPS_AT_ONCE 16
#define CANDIDATES_MIN 1024
#define WORTH          8 /* of so many vectors one may be a candidate; with more, all in a row are compared faster */

struct vector_candidate {
    uint32_t slot;
    float low; /* its distance is not below */
};

/* The candidates with the least upper bounds, in order: as many as there may be hits. */
struct vector_nearest {
    float high;
    uint32_t slot;
};

/* From what the kernel summed up. What is not a number (infinities of both signs met) is farthest. */
static float distance_of(enum vector_metric metric, float sum)
{
    float distance = metric == VECTOR_COSINE ? 1 - sum : metric == VECTOR_DOT ? -sum : sum;
    if (metric == VECTOR_COSINE && distance < 0) distance = 0;
    if (metric == VECTOR_COSINE && distance > 2) distance = 2;
    return isnan(distance) ? INFINITY : distance;
}

static float score_of(enum vector_metric metric, float distance)
{
    return metric == VECTOR_EUCLIDEAN ? sqrtf(distance) : metric == VECTOR_DOT ? 0 - distance : distance;
}

static int hit_compare(const struct vector_hit *a, float distance, struct slice key)
{
    if (a->distance != distance) return a->distance < distance ? -1 : 1;
    return slice_compare(buf_view(&a->key), key);
}

void vector_search_begin(struct vector_search *search, struct vector_set *set, const float *vector,
                         uint32_t top)
{
    *search = (struct vector_search){.metric = set->metric, .top = top};
    search->vector = vector_memory(set->stride);
    vector_place(set->metric, set->dimensions, vector, search->vector);
    search->hits = must_zero(top, sizeof *search->hits);
    search->next_search = set->searches;
    set->searches = search;
    if (set->count <= set->exact_max || !set->sketch || set->sketch->slots < set->count) return;
    search->sketch = must_alloc(sizeof *search->sketch);
    search->nearest = must_zero(top, sizeof *search->nearest);
    sketch_query_init(search->sketch, set->sketch, search->vector);
}

void vector_search_removed(struct vector_search *search, uint32_t slot)
{
    search->has_removals = true;
    if (slot >= search->next_slot && !search->has_candidates) return; /* it is still to come */
    if (search->moved_count == search->moved_capacity) {
        search->moved_capacity = search->moved_capacity ? search->moved_capacity * 2 : 64;
        search->moved = must_realloc(search->moved, search->moved_capacity * sizeof *search->moved);
    }
    search->moved[search->moved_count++] = slot;
}

/* The hits are a heap, the farthest on top. */
static void sift_down(struct vector_search *search, uint32_t at)
{
    struct vector_hit *hits = search->hits, moved = hits[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= search->count) break;
        if (child + 1 < search->count &&
            hit_compare(&hits[child + 1], hits[child].distance, buf_view(&hits[child].key)) > 0)
            child++;
        if (hit_compare(&hits[child], moved.distance, buf_view(&moved.key)) <= 0) break;
        hits[at] = hits[child];
        at = child;
    }
    hits[at] = moved;
}

static void sift_up(struct vector_search *search, uint32_t at)
{
    struct vector_hit *hits = search->hits, moved = hits[at];
    while (at) {
        uint32_t parent = (at - 1) / 2;
        if (hit_compare(&hits[parent], moved.distance, buf_view(&moved.key)) >= 0) break;
        hits[at] = hits[parent];
        at = parent;
    }
    hits[at] = moved;
}

static bool is_accepted(const struct vector_search *search, const struct vector_entry *entry)
{
    return !search->accepts ||
           search->accepts(search->context, (struct slice){entry->data + entry->key_len, entry->note_len});
}

static bool is_hit(const struct vector_search *search, const struct vector_entry *entry)
{
    for (uint32_t i = 0; i < search->count; i++)
        if (search->hits[i].hash == entry->hash &&
            slice_equal(buf_view(&search->hits[i].key), vector_entry_key(entry)))
            return true;
    return false;
}

static void consider(struct vector_search *search, const struct vector_entry *entry, float distance)
{
    struct slice key = vector_entry_key(entry);
    bool full = search->count == search->top;
    if (full && hit_compare(&search->hits[0], distance, key) <= 0) return;
    if (!is_accepted(search, entry) || (search->has_removals && is_hit(search, entry))) return;
    struct vector_hit *hit = &search->hits[full ? 0 : search->count++];
    hit->distance = distance;
    hit->score = score_of(search->metric, distance);
    hit->stamp = entry->stamp;
    hit->hash = entry->hash;
    hit->key.len = 0;
    buf_slice(&hit->key, key);
    if (full)
        sift_down(search, 0);
    else
        sift_up(search, search->count - 1);
}

/* ---- all vectors ---- */

static uint32_t step_vectors(const struct vector_set *set)
{
    return STEP_BYTES / (set->stride * (uint32_t)sizeof(float)) + 1;
}

static uint32_t step_end(const struct vector_search *search, const struct vector_set *set, uint32_t step)
{
    uint32_t left = set->count > search->next_slot ? set->count - search->next_slot : 0;
    return search->next_slot + (left < step ? left : step);
}

static bool compare_step(struct vector_search *search, const struct vector_set *set)
{
    vector_sums sums = set->metric == VECTOR_EUCLIDEAN ? set->kernel->squares : set->kernel->dot;
    uint32_t end = step_end(search, set, step_vectors(set));
    float scores[SCORES_AT_ONCE];
    while (search->next_slot < end) {
        uint32_t from = search->next_slot, left = set->block_slots - from % set->block_slots;
        uint32_t count = end - from < SCORES_AT_ONCE ? end - from : SCORES_AT_ONCE;
        if (count > left) count = left;
        sums(search->vector, vector_at(set, from), set->stride, count, scores);
        for (uint32_t i = 0; i < count; i++) {
            float distance = distance_of(set->metric, scores[i]);
            if (search->count == search->top && distance > search->hits[0].distance) continue;
            consider(search, set->entries[from + i], distance);
        }
        search->next_slot += count;
    }
    return search->next_slot < set->count;
}

static void compare_slot(struct vector_search *search, const struct vector_set *set, uint32_t slot)
{
    vector_sums sums = set->metric == VECTOR_EUCLIDEAN ? set->kernel->squares : set->kernel->dot;
    float sum;
    if (slot >= set->count) return; /* it is empty now */
    sums(search->vector, vector_at(set, slot), set->stride, 1, &sum);
    float distance = distance_of(set->metric, sum);
    if (search->count == search->top && distance > search->hits[0].distance) return;
    consider(search, set->entries[slot], distance);
}

static bool moved_step(struct vector_search *search, const struct vector_set *set)
{
    for (uint32_t left = step_vectors(set); search->next_moved < search->moved_count && left; left--)
        compare_slot(search, set, search->moved[search->next_moved++]);
    return search->next_moved < search->moved_count;
}

/* ---- those that sketches leave ---- */

/* No candidate may be farther in the best case than this. */
static float farthest(const struct vector_search *search)
{
    return search->nearest_count == search->top ? search->nearest[search->top - 1].high : INFINITY;
}

static void add_nearest(struct vector_search *search, float high, uint32_t slot)
{
    uint32_t at = search->nearest_count < search->top ? search->nearest_count++ : search->top - 1;
    for (; at && search->nearest[at - 1].high > high; at--) search->nearest[at] = search->nearest[at - 1];
    search->nearest[at] = (struct vector_nearest){high, slot};
}

/* Leaves those that are not farther in the best case. */
static void keep_within(struct vector_search *search, float limit)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < search->candidate_count; i++)
        if (search->candidates[i].low <= limit) search->candidates[left++] = search->candidates[i];
    search->candidate_count = left;
}

/* Room for one more. False: there would be so many that all vectors in a row are compared faster. Many of those that
 * came first may be too far by now. */
static bool make_room(struct vector_search *search, const struct vector_set *set)
{
    uint32_t most = set->count / 2 < LIMIT_VECTOR_CANDIDATES ? set->count / 2 : LIMIT_VECTOR_CANDIDATES;
    if (most < CANDIDATES_MIN) most = CANDIDATES_MIN;
    if (search->candidate_count < search->candidate_capacity) return true;
    if (search->candidate_capacity >= most) {
        keep_within(search, farthest(search));
        return search->candidate_count <= most / 2;
    }
    uint32_t capacity = search->candidate_capacity ? search->candidate_capacity * 2 : CANDIDATES_MIN;
    search->candidate_capacity = capacity < most ? capacity : most;
    search->candidates = must_realloc(search->candidates,
                                      search->candidate_capacity * sizeof *search->candidates);
    return true;
}

static void compare_all(struct vector_search *search)
{
    free(search->sketch);
    free(search->candidates);
    search->sketch = NULL;
    search->candidates = NULL;
    search->candidate_count = search->candidate_capacity = 0;
    search->next_slot = search->count = search->moved_count = search->next_moved = 0;
    search->has_candidates = false;
}

/* Bounds that are no numbers, because something was too large for a float, exclude nothing. */
static void sketch_step(struct vector_search *search, const struct vector_set *set)
{
    uint32_t step = STEP_BYTES / (uint32_t)sketch_group_bytes(set->sketch) * SKETCH_GROUP + SKETCH_GROUP;
    uint32_t end = step_end(search, set, step);
    float low[GROUPS_AT_ONCE * SKETCH_GROUP], high[GROUPS_AT_ONCE * SKETCH_GROUP];
    while (search->next_slot < end) {
        uint32_t from = search->next_slot, left = set->block_slots - from % set->block_slots;
        uint32_t count = end - from < GROUPS_AT_ONCE * SKETCH_GROUP ? end - from
                                                                    : GROUPS_AT_ONCE * SKETCH_GROUP;
        if (count > left) count = left;
        uint32_t groups = (count + SKETCH_GROUP - 1) / SKETCH_GROUP;
        set->kernel->bounds(search->sketch, sketch_group_at(set, from), groups, low, high);
        for (uint32_t i = 0; i < count; i++) {
            if (low[i] > farthest(search) || !is_accepted(search, set->entries[from + i])) continue;
            if (!make_room(search, set)) {
                compare_all(search);
                return;
            }
            struct vector_candidate candidate = {from + i, isnan(low[i]) ? -INFINITY : low[i]};
            search->candidates[search->candidate_count++] = candidate;
            if (high[i] < farthest(search)) add_nearest(search, high[i], from + i);
        }
        search->next_slot += count;
    }
}

static int by_slot(const void *a, const void *b)
{
    uint32_t left = ((const struct vector_candidate *)a)->slot;
    uint32_t right = ((const struct vector_candidate *)b)->slot;
    return left < right ? -1 : left > right;
}

/* The nearest go first: the farthest of them is a limit to all others. Where vectors are about equally far from each
 * other, as random ones are, too many are left. */
static void compare_nearest(struct vector_search *search, const struct vector_set *set)
{
    for (uint32_t i = 0; i < search->nearest_count; i++) {
        struct vector_candidate key = {.slot = search->nearest[i].slot};
        compare_slot(search, set, key.slot);
        struct vector_candidate *own = bsearch(&key, search->candidates, search->candidate_count,
                                               sizeof *search->candidates, by_slot);
        ensure(own);
        own->low = NAN; /* done */
    }
    keep_within(search, search->count == search->top ? search->hits[0].distance : INFINITY);
    search->has_candidates = true;
    if (search->candidate_count > set->count / WORTH) compare_all(search);
}

static bool candidate_step(struct vector_search *search, const struct vector_set *set)
{
    uint32_t left = step_vectors(set);
    for (; search->next_candidate < search->candidate_count && left; search->next_candidate++) {
        const struct vector_candidate *candidate = &search->candidates[search->next_candidate];
        if (search->count == search->top && candidate->low > search->hits[0].distance) continue;
        compare_slot(search, set, candidate->slot);
        left--;
    }
    return search->next_candidate < search->candidate_count;
}

/* All but what has moved: false at its end. */
static bool walk_step(struct vector_search *search, const struct vector_set *set)
{
    if (search->sketch && !set->sketch) compare_all(search); /* the set has become small */
    if (!search->sketch) return search->next_slot < set->count && compare_step(search, set);
    if (search->has_candidates) return candidate_step(search, set);
    sketch_step(search, set);
    if (search->sketch && search->next_slot >= set->count) compare_nearest(search, set);
    return true;
}

bool vector_search_step(struct vector_search *search, const struct vector_set *set)
{
    return walk_step(search, set) || moved_step(search, set);
}

static int by_nearness(const void *a, const void *b)
{
    const struct vector_hit *right = b;
    return hit_compare(a, right->distance, buf_view(&right->key));
}

void vector_search_end(struct vector_search *search, struct vector_set *set)
{
    struct vector_search **place = &set->searches;
    while (*place != search) place = &(*place)->next_search;
    *place = search->next_search;
    if (search->count) qsort(search->hits, search->count, sizeof *search->hits, by_nearness);
}

void vector_search_free(struct vector_search *search)
{
    for (uint32_t i = 0; i < search->top; i++) buf_free(&search->hits[i].key);
    free(search->hits);
    free(search->vector);
    free(search->sketch);
    free(search->candidates);
    free(search->nearest);
    free(search->moved);
}

float vector_score(enum vector_metric metric, const float *a, const float *b, uint32_t dimensions)
{
    uint32_t stride = (dimensions + VECTOR_PAD - 1) / VECTOR_PAD * VECTOR_PAD;
    float *padded = vector_memory(2 * (size_t)stride), sum;
    vector_place(metric, dimensions, a, padded);
    vector_place(metric, dimensions, b, padded + stride);
    (metric == VECTOR_EUCLIDEAN ? vector_kernel()->squares : vector_kernel()->dot)(padded, padded + stride,
                                                                                   stride, 1, &sum);
    free(padded);
    return score_of(metric, distance_of(metric, sum));
}
