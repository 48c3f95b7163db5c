/* Sums over vectors. One order of additions for all forms: float i of a vector goes to lane i % 32 (the
 * last 16, where the length is an odd multiple of 16, to the lower ones), and at the end lane i and lane i + n
 * are added for n = 16, 8, 4, 2, 1. The lanes do not depend on each other, so two registers of AVX-512 do what
 * four of AVX2 or a loop over 32 floats do, bit for bit. Fused multiplication and addition would round
 * differently and would gain nothing: a search waits for the memory, not for the arithmetic.
 *
 * gcc fuses nothing with -std=c17, clang must be told. */
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#include "base/fail.h"
#include "vector/internal.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define LANES 32

static float fold(float lanes[LANES])
{
    for (unsigned half = LANES / 2; half; half /= 2)
        for (unsigned i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

/* ---- for every machine ---- */

#define PORTABLE(name, TERM)                                                                                 \
    static void name(const float *query, const float *vectors, uint32_t stride, uint32_t count, float *out)  \
    {                                                                                                        \
        for (uint32_t v = 0; v < count; v++) {                                                               \
            const float *vector = vectors + (size_t)v * stride;                                              \
            float lanes[LANES] = {0};                                                                        \
            for (uint32_t at = 0; at < stride; at += LANES) {                                                \
                uint32_t width = stride - at < LANES ? stride - at : LANES;                                  \
                for (uint32_t i = 0; i < width; i++) {                                                       \
                    float a = query[at + i], b = vector[at + i];                                             \
                    lanes[i] += TERM;                                                                        \
                }                                                                                            \
            }                                                                                                \
            out[v] = fold(lanes);                                                                            \
        }                                                                                                    \
    }

PORTABLE(portable_dot, a *b)
PORTABLE(portable_squares, (a - b) * (a - b))

/* ---- bounds by sketches: sums of integers, then the same few operations on floats ---- */

static const struct sketch_group *next_group(const struct sketch_query *query,
                                             const struct sketch_group *group)
{
    return (const struct sketch_group *)&group->code[query->words];
}

__attribute__((always_inline)) static inline void bounds_of(const struct sketch_query *query,
                                                            const struct sketch_group *group,
                                                            const int32_t sums[SKETCH_GROUP],
                                                            float *restrict low, float *restrict high)
{
    for (unsigned i = 0; i < SKETCH_GROUP; i++) {
        float product = query->step * ((float)(2 * sums[i]) - 15 * group->ones[i] + query->offset);
        float distance = query->base + query->square_weight * group->square[i] - product * group->factor[i];
        float margin = group->error[i] * query->margin + group->factor[i] * query->step_margin +
                       group->square[i] * query->square_margin + query->slack;
        low[i] = distance - margin;
        high[i] = distance + margin;
    }
}

#define COUNTED(name, ATTRIBUTES)                                                                            \
    ATTRIBUTES static void name(const struct sketch_query *query, const struct sketch_group *group,          \
                                uint32_t count, float *low, float *high)                                     \
    {                                                                                                        \
        for (; count;                                                                                        \
             count--, low += SKETCH_GROUP, high += SKETCH_GROUP, group = next_group(query, group)) {         \
            int32_t sums[SKETCH_GROUP] = {0};                                                                \
            for (uint32_t w = 0; w < query->words; w++)                                                      \
                for (unsigned p = 0; p < SKETCH_PLANES; p++)                                                 \
                    for (unsigned i = 0; i < SKETCH_GROUP; i++)                                              \
                        sums[i] += __builtin_popcountll(group->code[w][i] & query->planes[p][w]) << p;       \
            bounds_of(query, group, sums, low, high);                                                        \
        }                                                                                                    \
    }

COUNTED(portable_bounds, )

/* ---- for those with wide registers ---- */

#if defined __x86_64__

typedef float wide8 __attribute__((vector_size(32)));
typedef float wide16 __attribute__((vector_size(64)));

/* The body stands in a macro, not in a function that is inlined: gcc cuts vectors into the registers of the
 * function in which they are written. */
#define WIDE(name, isa, wide, width, TERM)                                                                   \
    __attribute__((target(isa))) static void name(const float *query, const float *vectors, uint32_t stride, \
                                                  uint32_t count, float *out)                                \
    {                                                                                                        \
        enum { PARTS = LANES / (width) };                                                                    \
        for (uint32_t v = 0; v < count; v++) {                                                               \
            const float *vector = vectors + (size_t)v * stride, *next = vector + (count > 1 ? stride : 0);   \
            wide sums[PARTS] = {{0}};                                                                        \
            uint32_t at = 0;                                                                                 \
            for (; at + LANES <= stride; at += LANES) {                                                      \
                __builtin_prefetch(next + at);                                                               \
                __builtin_prefetch(next + at + VECTOR_PAD);                                                  \
                for (unsigned p = 0; p < PARTS; p++) {                                                       \
                    wide a = *(const wide *)(query + at + p * (width));                                      \
                    wide b = *(const wide *)(vector + at + p * (width));                                     \
                    sums[p] += TERM;                                                                         \
                }                                                                                            \
            }                                                                                                \
            for (unsigned p = 0; at < stride; at += (width), p++) {                                          \
                wide a = *(const wide *)(query + at), b = *(const wide *)(vector + at);                      \
                sums[p] += TERM;                                                                             \
            }                                                                                                \
            float lanes[LANES];                                                                              \
            memcpy(lanes, sums, sizeof lanes);                                                               \
            out[v] = fold(lanes);                                                                            \
        }                                                                                                    \
    }

WIDE(avx2_dot, "avx2", wide8, 8, a *b)
WIDE(avx2_squares, "avx2", wide8, 8, (a - b) * (a - b))
WIDE(avx512_dot, "avx512f", wide16, 16, a *b)
WIDE(avx512_squares, "avx512f", wide16, 16, (a - b) * (a - b))
COUNTED(avx2_bounds, __attribute__((target("avx2,popcnt"))))

__attribute__((target("avx512f,avx512vpopcntdq"))) static void avx512_bounds(const struct sketch_query *query,
                                                                             const struct sketch_group *group,
                                                                             uint32_t count, float *low,
                                                                             float *high)
{
    for (; count; count--, low += SKETCH_GROUP, high += SKETCH_GROUP, group = next_group(query, group)) {
        __m512i planes[SKETCH_PLANES] = {0};
        for (uint32_t w = 0; w < query->words; w++) {
            __m512i code = _mm512_load_si512(group->code[w]);
            for (unsigned p = 0; p < SKETCH_PLANES; p++) {
                __m512i plane = _mm512_set1_epi64((long long)query->planes[p][w]);
                planes[p] = _mm512_add_epi64(planes[p], _mm512_popcnt_epi64(_mm512_and_si512(code, plane)));
            }
        }
        for (unsigned p = SKETCH_PLANES - 1; p; p--)
            planes[p - 1] = _mm512_add_epi64(planes[p - 1], _mm512_slli_epi64(planes[p], 1));
        int32_t sums[SKETCH_GROUP];
        _mm256_storeu_si256((__m256i *)sums, _mm512_cvtepi64_epi32(planes[0]));
        bounds_of(query, group, sums, low, high);
    }
}

#endif

static const struct vector_kernel kernels[] = {
    {"portable", portable_dot, portable_squares, portable_bounds},
#if defined __x86_64__
    {"avx2", avx2_dot, avx2_squares, avx2_bounds},
    {"avx512f", avx512_dot, avx512_squares, avx2_bounds},
    {"avx512vpopcntdq", avx512_dot, avx512_squares, avx512_bounds},
#endif
};

const struct vector_kernel *vector_kernels(unsigned *count)
{
    *count = 1;
#if defined __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) *count = 2;
    if (*count == 2 && __builtin_cpu_supports("avx512f")) *count = 3;
    if (*count == 3 && __builtin_cpu_supports("avx512vpopcntdq")) *count = 4;
#endif
    return kernels;
}

const struct vector_kernel *vector_kernel(void)
{
    unsigned count;
    const struct vector_kernel *all = vector_kernels(&count);
    return &all[count - 1];
}

float *vector_memory(size_t floats)
{
    size_t bytes = (floats * sizeof(float) + 63) & ~(size_t)63; /* kernels read whole lines */
    return memset(must_align(64, bytes), 0, bytes);
}
