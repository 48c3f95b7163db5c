/* Sketches: what a large set keeps of each vector so that a search need not read all vectors, one bit for each
 * dimension and 16 bytes. A sketch tells between which bounds the distance to a query is; vectors that may be among
 * the nearest by their bounds are then compared (search.c).
 *
 * How: vectors are taken relative to a centre and turned in space, all in the same random way; the signs of their
 * numbers are kept. The product of a query with the signs, times a factor of the vector, is the product with the
 * vector itself but for an error. Because of the random turn the error does not depend on what the vectors are like:
 * it is spread as the bell curve, and its width follows from the vector and its signs alone (Gao and Long, RaBitQ,
 * 2024). The bounds are MARGIN widths away. So a vector is missed by chance only, and seldom; nothing is built that
 * must be mended when vectors come and go, and a filter is asked before a vector counts.
 *
 * A query's numbers are rounded to 16 steps; then the product is one of integers, by counting bits. The error of the
 * rounding is known, and is part of the bounds.
 *
 * Sketches come with the writes: each that is put into a large set makes its own, and those of some older vectors
 * until all have one. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "vector/internal.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MARGIN         3.5 /* of both errors; together they are about 4.2 deviations: one in 70 000 is beyond */
#define ROUNDING       1e-5 /* of sums of floats, relative */
#define TURNS          4    /* halves of the space that are mixed, one after the other */
#define TURN_SEED      2024 /* the same turn on every machine */
#define CENTRE_VECTORS 1024 /* that the centre is the mean of */
#define OLDER_VECTORS  8    /* that get their sketch with each one that is put */

typedef float wide4 __attribute__((vector_size(16)));
typedef int32_t wide4_bits __attribute__((vector_size(16)));

/* ---- the turn ---- */

static uint32_t turn_width(uint32_t bits)
{
    uint32_t width = 1;
    while (width * 2 <= bits) width *= 2;
    return width;
}

/* A power of two of numbers is mixed at once: from the first on, or up to the last. */
static uint32_t turn_start(uint32_t bits, unsigned turn)
{
    return turn % 2 ? bits - turn_width(bits) : 0;
}

static void signs_init(struct sketch *sketch)
{
    struct random random;
    uint32_t width = turn_width(sketch->bits);
    float scale = (float)(1 / sqrt((double)width));
    random_seed(&random, TURN_SEED);
    sketch->signs = vector_memory((size_t)TURNS * sketch->bits);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint32_t start = turn_start(sketch->bits, turn);
        for (uint32_t i = 0; i < sketch->bits; i++) {
            float size = i >= start && i < start + width ? scale : 1;
            sketch->signs[turn * sketch->bits + i] = random_below(&random, 2) ? size : -size;
        }
    }
}

/* Sums and differences of all, by Hadamard's matrix; it does not change lengths but for the scale above. */
static void mix(float *numbers, uint32_t width)
{
    for (float *four = numbers; four < numbers + width; four += 4) {
        float a = four[0] + four[1], b = four[0] - four[1], c = four[2] + four[3], d = four[2] - four[3];
        *(wide4 *)four = (wide4){a + c, b + d, a - c, b - d};
    }
    for (uint32_t half = 4; half < width; half *= 2)
        for (uint32_t i = 0; i < width; i += 2 * half)
            for (uint32_t j = i; j < i + half; j += 4) {
                wide4 *left = (wide4 *)&numbers[j], *right = (wide4 *)&numbers[j + half], a = *left,
                      b = *right;
                *left = a + b;
                *right = a - b;
            }
}

static void turn_vector(const struct sketch *sketch, float *numbers)
{
    for (unsigned turn = 0; turn < TURNS; turn++) {
        const float *signs = sketch->signs + (size_t)turn * sketch->bits;
        for (uint32_t i = 0; i < sketch->bits; i += 4) *(wide4 *)&numbers[i] *= *(const wide4 *)&signs[i];
        mix(numbers + turn_start(sketch->bits, turn), turn_width(sketch->bits));
    }
}

/* ---- a set's sketches ---- */

struct sketch *sketch_new(const struct vector_set *set)
{
    struct sketch *sketch = must_zero(1, sizeof *sketch);
    uint32_t count = 0, step = set->count / CENTRE_VECTORS + 1;
    sketch->metric = set->metric;
    sketch->dimensions = set->dimensions;
    sketch->stride = set->stride;
    sketch->bits = (set->stride + 63) / 64 * 64;
    if (sketch->bits < SKETCH_BITS_MIN) sketch->bits = SKETCH_BITS_MIN;
    sketch->words = sketch->bits / 64;
    signs_init(sketch);
    sketch->centre = vector_memory(sketch->bits);
    sketch->numbers = vector_memory(sketch->bits);
    double *sums = must_zero(set->dimensions, sizeof *sums);
    for (uint32_t slot = 0; slot < set->count; slot += step) {
        const float *vector = vector_at(set, slot);
        for (uint32_t i = 0; i < set->dimensions; i++) sums[i] += (double)vector[i];
        count++;
    }
    for (uint32_t i = 0; count && i < set->dimensions; i++) {
        sketch->centre[i] = (float)(sums[i] / count);
        sketch->centre_length += (double)sketch->centre[i] * (double)sketch->centre[i];
    }
    sketch->centre_length = sqrt(sketch->centre_length);
    free(sums);
    return sketch;
}

void sketch_free(struct sketch *sketch)
{
    if (!sketch) return;
    for (uint32_t i = 0; i < sketch->block_count; i++) free(sketch->blocks[i]);
    free(sketch->blocks);
    free(sketch->centre);
    free(sketch->signs);
    free(sketch->numbers);
    free(sketch);
}

size_t sketch_group_bytes(const struct sketch *sketch)
{
    return sizeof(struct sketch_group) + sketch->words * sizeof(uint64_t[SKETCH_GROUP]);
}

const struct sketch_group *sketch_group_at(const struct vector_set *set, uint32_t slot)
{
    const char *block = (const char *)set->sketch->blocks[slot / set->block_slots];
    size_t place = slot % set->block_slots / SKETCH_GROUP;
    return (const struct sketch_group *)(block + place * sketch_group_bytes(set->sketch));
}

/* Where the sign of a number stands: four numbers are looked at together, and each of them has 16 bits of a word. */
static unsigned bit_of(uint32_t number)
{
    return number % 4 * 16 + number % 64 / 4;
}

/* The signs of 64 numbers. Adds up their sizes. */
static uint64_t take_signs(const float *numbers, double *sum)
{
    wide4 sizes = {0};
    wide4_bits signs = {0}, bit = {1, 1, 1, 1};
    const wide4_bits size = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    for (int i = 0; i < 16; i++, bit += bit) {
        wide4 four = *(const wide4 *)&numbers[i * 4];
        signs |= (four > 0) & bit;
        sizes += (wide4)((wide4_bits)four & size);
    }
    *sum += (double)(sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    uint64_t low = (uint32_t)signs[0] | (uint32_t)signs[1] << 16;
    return low | ((uint64_t)(uint32_t)signs[2] | (uint64_t)(uint32_t)signs[3] << 16) << 32;
}

static void sketch_vector(struct sketch *sketch, const float *vector, struct sketch_group *group,
                          unsigned lane)
{
    float *numbers = sketch->numbers;
    double squares[4] = {0}, sum = 0;
    uint32_t ones = 0;
    for (uint32_t i = 0; i < sketch->stride; i += 4)
        for (unsigned j = 0; j < 4; j++) {
            numbers[i + j] = vector[i + j] - sketch->centre[i + j];
            squares[j] += (double)numbers[i + j] * (double)numbers[i + j];
        }
    double square = squares[0] + squares[1] + squares[2] + squares[3];
    for (uint32_t i = sketch->stride; i < sketch->bits; i++) numbers[i] = 0;
    turn_vector(sketch, numbers);
    for (uint32_t w = 0; w < sketch->words; w++) {
        group->code[w][lane] = take_signs(numbers + (size_t)w * 64, &sum);
        ones += (uint32_t)__builtin_popcountll(group->code[w][lane]);
    }
    /* The signs have the length sqrt(bits), and the angle's cosine with the vector is sum / sqrt(square * bits). */
    double factor = sum > 0 ? square / sum : 0, rest = factor * factor * sketch->bits - square;
    group->factor[lane] = (float)factor;
    group->ones[lane] = (float)ones;
    group->square[lane] = (float)square;
    group->error[lane] = (float)(sqrt(rest > 0 ? rest / (sketch->bits - 1) : 0) + ROUNDING * sqrt(square));
}

static size_t sketch_bytes(const struct sketch *sketch)
{
    return sizeof *sketch + (TURNS + 2) * sketch->bits * sizeof(float);
}

static size_t block_bytes(const struct vector_set *set)
{
    return set->block_slots / SKETCH_GROUP * sketch_group_bytes(set->sketch);
}

static void sketch_slot(struct vector_set *set, uint32_t slot)
{
    struct sketch *sketch = set->sketch;
    ensure(set->block_slots % SKETCH_GROUP == 0);
    while (slot / set->block_slots >= sketch->block_count) {
        sketch->blocks = must_realloc(sketch->blocks, (sketch->block_count + 1) * sizeof *sketch->blocks);
        sketch->blocks[sketch->block_count++] = (struct sketch_group *)vector_memory(block_bytes(set) /
                                                                                     sizeof(float));
        set->bytes += block_bytes(set);
    }
    sketch_vector(sketch, vector_at(set, slot), (struct sketch_group *)sketch_group_at(set, slot),
                  slot % SKETCH_GROUP);
}

void sketch_follow(struct vector_set *set, uint32_t slot)
{
    if (!set->sketch) {
        set->sketch = sketch_new(set);
        set->bytes += sketch_bytes(set->sketch);
    }
    if (slot < set->sketch->slots) sketch_slot(set, slot);
    for (unsigned i = 0; i < OLDER_VECTORS && set->sketch->slots < set->count; i++)
        sketch_slot(set, set->sketch->slots++);
}

void sketch_shrink(struct vector_set *set, uint32_t slot)
{
    struct sketch *sketch = set->sketch;
    if (!sketch) return;
    if (set->count <= set->exact_max / 2) {
        set->bytes -= sketch_bytes(sketch) + sketch->block_count * block_bytes(set);
        sketch_free(sketch);
        set->sketch = NULL;
        return;
    }
    if (sketch->slots > set->count) sketch->slots = set->count;
    if (slot < sketch->slots) sketch_slot(set, slot);
    for (; sketch->block_count > set->block_count; set->bytes -= block_bytes(set))
        free(sketch->blocks[--sketch->block_count]);
}

/* ---- a query ---- */

static void round_numbers(struct sketch_query *query, const float *numbers, uint32_t bits, double *rest)
{
    float greatest = 0;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < bits; i++)
        if (fabsf(numbers[i]) > greatest) greatest = fabsf(numbers[i]);
    query->step = 2 * greatest / 15;
    for (uint32_t i = 0; i < bits; i++) {
        float steps = greatest > 0 ? numbers[i] / query->step + 8.0f : 8; /* 7.5, and half a step to round */
        uint32_t number = steps >= 15 ? 15 : steps > 0 ? (uint32_t)steps : 0;
        double missing = (double)numbers[i] - (double)query->step * (number - 7.5);
        *rest += missing * missing;
        sum += number;
        for (unsigned p = 0; p < SKETCH_PLANES; p++)
            query->planes[p][i / 64] |= (uint64_t)(number >> p & 1) << bit_of(i);
    }
    query->offset = (float)(7.5 * bits - sum);
}

void sketch_query_init(struct sketch_query *query, const struct sketch *sketch, const float *vector)
{
    float *numbers = vector_memory(sketch->bits);
    bool is_euclidean = sketch->metric == VECTOR_EUCLIDEAN, is_cosine = sketch->metric == VECTOR_COSINE;
    double square = 0, with_centre = 0, rest = 0;
    memset(query, 0, sizeof *query);
    query->words = sketch->words;
    for (uint32_t i = 0; i < sketch->dimensions; i++) {
        numbers[i] = is_euclidean ? vector[i] - sketch->centre[i] : vector[i];
        square += (double)numbers[i] * (double)numbers[i];
        with_centre += (double)vector[i] * (double)sketch->centre[i];
    }
    turn_vector(sketch, numbers);
    round_numbers(query, numbers, sketch->bits, &rest);
    free(numbers);
    double weight = is_euclidean ? 2 : 1;
    query->step = (float)(query->step * weight);
    query->margin = (float)(MARGIN * weight * sqrt(square));
    query->step_margin = (float)(MARGIN * weight * sqrt(rest));
    query->square_weight = is_euclidean ? 1 : 0;
    query->square_margin = is_euclidean ? (float)ROUNDING : 0;
    query->base = (float)(is_euclidean ? square : is_cosine - with_centre);
    double size = is_euclidean ? square : sqrt(square) * sketch->centre_length + is_cosine;
    query->slack = (float)(ROUNDING * size + (double)FLT_MIN);
}
