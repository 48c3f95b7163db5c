/* Sets of vectors that lie together in memory, and the nearest of a set: exactly, and in large sets with a chance of
 * less than one in thousands that one of them is missed (sketch.c).
 *
 * Pure: no lock, no clock, no store. Whoever shares a set between threads brings the locks: one that keeps changes
 * away from steps, and one among searches that begin and end at the same time. A search goes in steps of a fraction
 * of a millisecond, between which the first may be given up.
 *
 * What callers rely on:
 *  - A search that the set changes under finds each vector that is there from its begin to its end, once: vectors
 *    lie without gaps, so the last one moves where one is removed, and the searches under way are told.
 *  - Memory follows the number of vectors, down as well as up: a set has room for four times as many at most, and a
 *    large one for a block and a half more.
 *  - Scores are 32-bit floats, and the same bits on every machine: sums run over 32 lanes that are added up
 *    in one fixed order, multiplications and additions are never fused (kernel.c).
 *  - Hits are ordered by score, nearest first, and where scores are equal by the bytes of their keys; so
 *    the order does not depend on what was put when.
 *
 * Who owns what: a set owns copies of all it was given. A search owns copies of its hits' keys. */
#ifndef VECTOR_VECTOR_H
#define VECTOR_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/slice.h"

enum vector_metric {
    VECTOR_COSINE,    /* 1 - cosine of the angle: 0 .. 2, smaller is nearer; 1 where a vector has no length */
    VECTOR_EUCLIDEAN, /* smaller is nearer */
    VECTOR_DOT,       /* the dot product: greater is nearer */
};

struct vector_set;

/* With more than exact_max vectors a search compares only those that may be among the nearest by their sketches. */
struct vector_set *vector_set_new(enum vector_metric metric, uint32_t dimensions, uint32_t exact_max);
void vector_set_free(struct vector_set *set);

/* Puts a vector under its key, in the place of one that has it. The note and the stamp are the caller's: they
 * come back with hits. */
void vector_set_put(struct vector_set *set, struct slice key, const float *vector, struct slice note,
                    uint64_t stamp);
/* Another note and stamp for a vector that stays. False when there is none. */
bool vector_set_renote(struct vector_set *set, struct slice key, struct slice note, uint64_t stamp);
/* False when there is none. */
bool vector_set_remove(struct vector_set *set, struct slice key);
/* Removes all. A search that is under way finds no more. */
void vector_set_clear(struct vector_set *set);
bool vector_set_has(const struct vector_set *set, struct slice key);
uint32_t vector_set_count(const struct vector_set *set);
/* Whether a search has begun and not ended. */
bool vector_set_is_searched(const struct vector_set *set);
/* The memory that it takes. */
uint64_t vector_set_bytes(const struct vector_set *set);

/* ---- the nearest ---- */

struct vector_hit {
    float score;
    struct buf key;
    uint64_t stamp;
    /* private */
    float distance; /* smaller is nearer, whatever the metric */
    uint64_t hash;  /* of the key */
};

struct vector_search {
    /* Whether a vector counts, by its note; NULL: all do. */
    bool (*accepts)(void *context, struct slice note);
    void *context;
    /* the answer, after vector_search_end */
    struct vector_hit *hits;
    uint32_t count;
    /* private */
    float *vector; /* as the set has them: padded, and of length 1 where the angle counts */
    enum vector_metric metric;
    uint32_t top, next_slot;
    struct sketch_query *sketch; /* NULL: all vectors are compared */
    struct vector_candidate *candidates;
    uint32_t candidate_count, candidate_capacity, next_candidate;
    struct vector_nearest *nearest;
    uint32_t nearest_count;
    bool has_candidates; /* all of them */
    bool has_removals;   /* so a vector may have been put again, and be met twice */
    uint32_t *moved; /* slots behind the search that were filled from before it: they are compared at last */
    uint32_t moved_count, moved_capacity, next_moved;
    struct vector_search *next_search; /* of the set */
};

/* For the `top` nearest vectors. accepts and context are set afterwards. The set keeps the search until its end. */
void vector_search_begin(struct vector_search *search, struct vector_set *set, const float *vector,
                         uint32_t top);
/* Compares the next vectors; false when there are no more. */
bool vector_search_step(struct vector_search *search, const struct vector_set *set);
/* Orders the hits. */
void vector_search_end(struct vector_search *search, struct vector_set *set);
void vector_search_free(struct vector_search *search);

/* The score of two vectors, as a search would tell it. */
float vector_score(enum vector_metric metric, const float *a, const float *b, uint32_t dimensions);

#endif
