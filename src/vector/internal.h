/* What the files of this room share: a set, the sums over vectors in all forms that the machine may have, and the
 * sketches of a large set. */
#ifndef VECTOR_INTERNAL_H
#define VECTOR_INTERNAL_H

#include "vector/vector.h"

/* Vectors are padded with zeros to a multiple of this many floats, and begin at multiples of 64 bytes. */
#define VECTOR_PAD 16

/* ---- sketches (sketch.c) ---- */

#define SKETCH_GROUP     8   /* vectors whose sketches lie together: one register's worth */
#define SKETCH_BITS_MIN  256 /* fewer tell too little */
#define SKETCH_WORDS_MAX (LIMIT_VECTOR_DIMENSIONS / 64)
#define SKETCH_PLANES    4 /* bits of one number of a query */

/* The sketches of eight vectors. Of each: x is the vector less the centre, turned; s has +1 or -1 by the signs of x. */
struct sketch_group {
    float factor[SKETCH_GROUP];    /* such that factor * <q, s> is <q, x> on average */
    float ones[SKETCH_GROUP];      /* bits that are set */
    float square[SKETCH_GROUP];    /* <x, x> */
    float error[SKETCH_GROUP];     /* the standard deviation of the above, for a q of length 1 */
    uint64_t code[][SKETCH_GROUP]; /* the signs: 64 of each vector, then the next 64 */
};

/* What a query gives to the sums over sketches: between which bounds is the distance of each vector? */
struct sketch_query {
    uint32_t words;
    uint64_t planes[SKETCH_PLANES][SKETCH_WORDS_MAX]; /* its numbers as integers of 0 .. 15, bit by bit */
    float step, offset;                               /* <q, s> = step * (2 * sum - 15 * ones + offset) */
    float base, square_weight;  /* the distance = base + square_weight * square - <q, x> ... */
    float margin, step_margin;  /* ... give or take error * margin + factor * step_margin ... */
    float square_margin, slack; /* ... + square * square_margin + slack */
};

struct sketch {
    uint32_t dimensions, stride;
    uint32_t bits, words; /* of a code; bits beyond the stride are of zeros */
    enum vector_metric metric;
    float *centre, *signs; /* signs: of each turn, for all bits */
    float *numbers;        /* the vector that a sketch is made of now */
    double centre_length;
    struct sketch_group **blocks; /* as the set's blocks, one for one */
    uint32_t block_count;
    uint32_t slots; /* below this one all have sketches */
};

struct vector_set;

/* The centre is that of the vectors in the set. */
struct sketch *sketch_new(const struct vector_set *set);
void sketch_free(struct sketch *sketch);
/* Makes the sketch of one vector, and of some older ones that have none yet. */
void sketch_follow(struct vector_set *set, uint32_t slot);
/* The last vector is gone from its slot, and is in this one now; or this was its slot. A set that has become small
 * has no sketch any more. */
void sketch_shrink(struct vector_set *set, uint32_t slot);
void sketch_query_init(struct sketch_query *query, const struct sketch *sketch, const float *vector);
size_t sketch_group_bytes(const struct sketch *sketch);
const struct sketch_group *sketch_group_at(const struct vector_set *set, uint32_t slot);

/* ---- sums (kernel.c) ---- */

/* For `count` vectors of `stride` floats each: their sums with the query, into out. */
typedef void (*vector_sums)(const float *query, const float *vectors, uint32_t stride, uint32_t count,
                            float *out);
/* For `count` groups of sketches: the least and the greatest distance of each vector. */
typedef void (*sketch_bounds)(const struct sketch_query *query, const struct sketch_group *groups,
                              uint32_t count, float *low, float *high);

struct vector_kernel {
    const char *name;
    vector_sums dot;     /* of products */
    vector_sums squares; /* of squared differences */
    sketch_bounds bounds;
};

/* All that this machine can run, the portable one first and the fastest last. */
const struct vector_kernel *vector_kernels(unsigned *count);
/* The fastest. */
const struct vector_kernel *vector_kernel(void);

/* Memory for floats that begins at a multiple of 64 bytes, zeroed. Freed by free(). */
float *vector_memory(size_t floats);

/* ---- sets (set.c) ---- */

/* What belongs to a vector. */
struct vector_entry {
    uint64_t hash, stamp;
    uint32_t key_len, note_len;
    char data[]; /* key, then note */
};

struct vector_set {
    enum vector_metric metric;
    uint32_t dimensions, stride;
    const struct vector_kernel *kernel;
    uint32_t block_slots; /* of a whole block; a power of two */
    float **blocks;
    uint32_t block_count, first_slots; /* first_slots: of the first block, while it grows */
    struct vector_entry **entries;     /* by slot */
    uint32_t count, entries_capacity;  /* the slots below count have vectors, those behind them have none */
    uint32_t *table;                   /* slot + 1 by the key's hash, open addressing; 0: free */
    uint32_t table_slots;
    uint64_t bytes;
    uint32_t exact_max;             /* more vectors have sketches */
    struct sketch *sketch;          /* NULL: none */
    struct vector_search *searches; /* under way */
};

static inline struct slice vector_entry_key(const struct vector_entry *entry)
{
    return (struct slice){entry->data, entry->key_len};
}

static inline float *vector_at(const struct vector_set *set, uint32_t slot)
{
    return set->blocks[slot / set->block_slots] + (size_t)(slot % set->block_slots) * set->stride;
}

/* A vector was removed; its slot has another one now, if there is one. */
void vector_search_removed(struct vector_search *search, uint32_t slot);

/* The vector as a set keeps it: of length 1 where the angle counts. */
void vector_place(enum vector_metric metric, uint32_t dimensions, const float *vector, float *out);

#endif
