/* Sketches of large sets: the same bounds in all forms that the machine has, bounds that hold, and the results of a
 * search beside those of a set that is compared whole, after many changes, with filters, and for numbers at the
 * edges. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "unit/test.h"
#include "vector/internal.h"

#define DIMENSIONS_MAX 200

enum data {
    DATA_UNIFORM,   /* all about equally far from each other */
    DATA_CLUSTERED, /* around some centres, none of them near zero */
    DATA_SPARSE,    /* few numbers that are not zero */
    DATA_WHOLE,     /* few different numbers: many distances are equal */
    DATA_KINDS,
};

static float some_float(struct random *random)
{
    return (float)((double)random_below(random, 2000001) / 1000000 - 1);
}

static void some_vector(struct random *random, enum data data, uint32_t dimensions, float *out)
{
    struct random centre;
    random_seed(&centre, 100 + random_below(random, 20));
    for (uint32_t i = 0; i < dimensions; i++) {
        out[i] = 0;
        if (data == DATA_UNIFORM) out[i] = some_float(random);
        if (data == DATA_CLUSTERED) out[i] = 1 + some_float(&centre) + some_float(random) / 4;
        if (data == DATA_WHOLE) out[i] = (float)((int)random_below(random, 3) - 1);
    }
    for (unsigned i = 0; data == DATA_SPARSE && i < 3; i++)
        out[random_below(random, dimensions)] = some_float(random);
}

static struct slice key_of(char text[32], uint32_t number)
{
    return (struct slice){text, (size_t)snprintf(text, 32, "key %u", number)};
}

/* ---- bounds ---- */

static struct vector_set *filled_set(struct random *random, enum vector_metric metric, enum data data,
                                     uint32_t dimensions, uint32_t count)
{
    struct vector_set *set = vector_set_new(metric, dimensions, 16);
    float vector[DIMENSIONS_MAX];
    char text[32];
    for (uint32_t i = 0; i < count; i++) {
        some_vector(random, data, dimensions, vector);
        vector_set_put(set, key_of(text, i), vector, SLICE_NONE, i);
    }
    CHECK_INT(set->sketch->slots, count);
    return set;
}

static double distance(enum vector_metric metric, const float *a, const float *b, uint32_t dimensions)
{
    double squares = 0, product = 0;
    for (uint32_t i = 0; i < dimensions; i++) {
        double left = (double)a[i], right = (double)b[i];
        squares += (left - right) * (left - right);
        product += left * right;
    }
    return metric == VECTOR_EUCLIDEAN ? squares : metric == VECTOR_COSINE ? 1 - product : -product;
}

TEST(vector_bounds_hold_and_are_the_same_bits_in_all_forms)
{
    enum { COUNT = 400, QUERIES = 10 };
    static const uint32_t dimensions[] = {64, 100, 200};
    struct random random;
    unsigned forms, met = 0, missed = 0;
    const struct vector_kernel *kernels = vector_kernels(&forms);
    random_seed(&random, 31);
    for (unsigned kind = 0; kind < DATA_KINDS * 3 * 3; kind++) {
        enum data data = kind % DATA_KINDS;
        enum vector_metric metric = kind / DATA_KINDS % 3;
        uint32_t size = dimensions[kind / DATA_KINDS / 3];
        struct vector_set *set = filled_set(&random, metric, data, size, COUNT);
        float *query = vector_memory(set->stride), raw[DIMENSIONS_MAX];
        for (unsigned q = 0; q < QUERIES; q++) {
            struct sketch_query sums;
            float low[COUNT], high[COUNT], same_low[COUNT], same_high[COUNT];
            some_vector(&random, data, size, raw);
            vector_place(metric, size, raw, query);
            sketch_query_init(&sums, set->sketch, query);
            kernels[0].bounds(&sums, sketch_group_at(set, 0), COUNT / SKETCH_GROUP, low, high);
            for (unsigned form = 1; form < forms; form++) {
                kernels[form].bounds(&sums, sketch_group_at(set, 0), COUNT / SKETCH_GROUP, same_low,
                                     same_high);
                CHECK(memcmp(low, same_low, sizeof low) == 0 && memcmp(high, same_high, sizeof high) == 0);
            }
            for (uint32_t i = 0; i < COUNT; i++) {
                double exact = distance(metric, query, vector_at(set, i), size);
                missed += exact < (double)low[i] || exact > (double)high[i];
                met++;
            }
        }
        free(query);
        vector_set_free(set);
    }
    CHECK_INT(met, DATA_KINDS * 9 * QUERIES * COUNT);
    if (missed > met / 5000) test_failed(__FILE__, __LINE__, "%u of %u are beyond their bounds", missed, met);
}

/* ---- searches, beside those of a set that is compared whole ---- */

struct pair {
    struct vector_set *large, *whole;
    unsigned wanted, found, sketched; /* sketched: searches that did not compare all */
};

static void put_both(struct pair *pair, struct slice key, const float *vector, struct slice note,
                     uint64_t stamp)
{
    vector_set_put(pair->large, key, vector, note, stamp);
    vector_set_put(pair->whole, key, vector, note, stamp);
}

static bool accepts(void *context, struct slice note)
{
    return note.len == 1 && note.data[0] == *(char *)context;
}

static struct vector_search search_set(struct vector_set *set, const float *query, uint32_t top, char *wanted)
{
    struct vector_search search;
    vector_search_begin(&search, set, query, top);
    if (wanted) {
        search.accepts = accepts;
        search.context = wanted;
    }
    while (vector_search_step(&search, set)) {
    }
    vector_search_end(&search, set);
    return search;
}

/* What both find has the same score; each is found once. */
static void search_both(struct pair *pair, const float *query, uint32_t top, char *wanted)
{
    struct vector_search own = search_set(pair->large, query, top, wanted);
    struct vector_search exact = search_set(pair->whole, query, top, wanted);
    CHECK(!exact.sketch);
    CHECK_INT(own.count, exact.count);
    pair->sketched += own.sketch != NULL;
    pair->wanted += exact.count;
    for (uint32_t i = 0, at = 0; i < own.count; i++) {
        while (at < exact.count && !slice_equal(buf_view(&own.hits[i].key), buf_view(&exact.hits[at].key)))
            at++;
        if (at == exact.count) break;
        CHECK(own.hits[i].score == exact.hits[at].score);
        CHECK_INT(own.hits[i].stamp, exact.hits[at].stamp);
        pair->found++;
    }
    vector_search_free(&own);
    vector_search_free(&exact);
}

static void try_data(enum vector_metric metric, enum data data, uint32_t dimensions, struct pair *sum)
{
    enum { KEYS = 3000, CHANGES = 9000, EXACT = 500 };
    struct pair pair = {vector_set_new(metric, dimensions, EXACT),
                        vector_set_new(metric, dimensions, UINT32_MAX), 0, 0, 0};
    struct random random;
    float vector[DIMENSIONS_MAX];
    char text[32], note, wanted = 'b';
    random_seed(&random, 40 + data);
    for (uint32_t i = 0; i < CHANGES; i++) {
        struct slice key = key_of(text, (uint32_t)random_below(&random, KEYS));
        if (random_below(&random, 3) == 0) {
            CHECK_INT(vector_set_remove(pair.large, key), vector_set_remove(pair.whole, key));
        } else {
            note = (char)('a' + random_below(&random, 10));
            some_vector(&random, data, dimensions, vector);
            put_both(&pair, key, vector, (struct slice){&note, 1}, i);
        }
        if (i % 250) continue;
        some_vector(&random, data, dimensions, vector);
        search_both(&pair, vector, 10, NULL);
        search_both(&pair, vector, 100, NULL);
        search_both(&pair, vector, 10, &wanted);
    }
    CHECK(vector_set_bytes(pair.large) > vector_set_bytes(pair.whole) + KEYS / 2 * dimensions / 8);
    sum->wanted += pair.wanted;
    sum->found += pair.found;
    if (data == DATA_CLUSTERED) sum->sketched += pair.sketched;
    vector_set_free(pair.large);
    vector_set_free(pair.whole);
}

TEST(vector_sketches_find_what_a_comparison_of_all_finds)
{
    struct pair sum = {0};
    for (enum vector_metric metric = VECTOR_COSINE; metric <= VECTOR_DOT; metric++)
        for (enum data data = 0; data < DATA_KINDS; data++) try_data(metric, data, data % 2 ? 80 : 130, &sum);
    CHECK(sum.wanted > 30000);
    CHECK(sum.sketched > 100);
    if (sum.found < sum.wanted - sum.wanted / 1000) /* ten times better than 0.99 */
        test_failed(__FILE__, __LINE__, "%u of %u are found", sum.found, sum.wanted);
}

/* ---- numbers at the edges ---- */

TEST(vector_sketches_bear_numbers_at_the_edges)
{
    enum { COUNT = 1500, DIMENSIONS = 70 };
    static const float sizes[] = {0, FLT_MAX, FLT_MIN, 1e-44f, 1e30f, 1e-30f, 1, 1e-19f, 1e19f};
    struct random random;
    float vector[DIMENSIONS];
    char text[32];
    random_seed(&random, 50);
    for (unsigned round = 0; round < 12; round++) {
        enum vector_metric metric = round % 3;
        struct pair pair = {vector_set_new(metric, DIMENSIONS, 100),
                            vector_set_new(metric, DIMENSIONS, UINT32_MAX), 0, 0, 0};
        for (uint32_t i = 0; i < COUNT + 20; i++) {
            float size = sizes[round < 3   ? 0
                               : round < 6 ? 1
                                           : random_below(&random, sizeof sizes / sizeof *sizes)];
            for (uint32_t d = 0; d < DIMENSIONS; d++) vector[d] = size * some_float(&random);
            if (i < COUNT)
                put_both(&pair, key_of(text, i), vector, SLICE_NONE, i);
            else
                search_both(&pair, vector, 20, NULL);
        }
        CHECK_INT(pair.wanted, 400);
        CHECK(pair.found >= 396);
        vector_set_free(pair.large);
        vector_set_free(pair.whole);
    }
}

/* ---- the memory of a search ---- */

/* All are equally far, so sketches leave all: the search compares all instead of noting them. */
TEST(vector_candidates_are_bounded)
{
    enum { COUNT = 6000, DIMENSIONS = 64 };
    struct vector_set *set = vector_set_new(VECTOR_EUCLIDEAN, DIMENSIONS, 100);
    float vector[DIMENSIONS] = {0}, query[DIMENSIONS] = {0};
    char text[32];
    for (uint32_t i = 0; i < COUNT; i++) {
        vector[i / 2 % DIMENSIONS] = i % 2 ? 1 : -1;
        vector_set_put(set, key_of(text, i), vector, SLICE_NONE, i);
        vector[i / 2 % DIMENSIONS] = 0;
    }
    struct vector_search search;
    uint32_t most = 0;
    vector_search_begin(&search, set, query, 100);
    CHECK(search.sketch != NULL);
    do
        if (search.candidate_capacity > most) most = search.candidate_capacity;
    while (vector_search_step(&search, set));
    vector_search_end(&search, set);
    CHECK(most <= COUNT / 2);
    CHECK(!search.sketch);
    CHECK_INT(search.count, 100);
    for (uint32_t i = 0; i < search.count; i++) CHECK(search.hits[i].score == 1);
    vector_search_free(&search);
    vector_set_free(set);
}

/* ---- a set that changes between two steps ---- */

TEST(vector_sketches_meet_each_vector_once_while_others_come_and_go)
{
    enum { COUNT = 40000, DIMENSIONS = 64, NEAR = 10, SKETCHED = 39000 };
    struct random random;
    struct vector_set *set = vector_set_new(VECTOR_EUCLIDEAN, DIMENSIONS, SKETCHED);
    float vector[DIMENSIONS], query[DIMENSIONS] = {0};
    char text[32];
    unsigned seen = 0, steps = 0;
    random_seed(&random, 6);
    for (uint32_t i = 0; i < 2 * COUNT; i++) { /* all twice, so that all get their sketch */
        for (uint32_t d = 0; d < DIMENSIONS; d++) vector[d] = 3 + some_float(&random);
        for (uint32_t d = 0; i % COUNT % (COUNT / NEAR) == COUNT / NEAR - 1 && d < DIMENSIONS; d++)
            vector[d] = 0;
        vector_set_put(set, key_of(text, i % COUNT), vector, SLICE_NONE, i % COUNT);
    }
    CHECK_INT(set->sketch->slots, COUNT);
    for (uint32_t d = 0; d < DIMENSIONS; d++) vector[d] = 4;
    struct vector_search search;
    vector_search_begin(&search, set, query, 100);
    CHECK(search.sketch != NULL);
    while (vector_search_step(&search, set)) { /* what goes, what takes its slot, what comes behind all */
        CHECK(vector_set_remove(set, key_of(text, 10 + steps)));
        for (uint32_t i = 0; i < 20; i++)
            vector_set_put(set, key_of(text, COUNT + 20 * steps + i), vector, SLICE_NONE, COUNT);
        steps++;
    }
    vector_search_end(&search, set);
    CHECK(steps >= 2);
    CHECK_INT(search.count, 100);
    for (uint32_t i = 0; i < NEAR; i++) {
        CHECK(search.hits[i].score == 0);
        seen |= 1u << search.hits[i].stamp / (COUNT / NEAR);
    }
    CHECK_INT(seen, (1u << NEAR) - 1);
    CHECK(search.hits[NEAR].score > 0);
    vector_search_free(&search);
    vector_search_begin(&search, set, query, 100);
    CHECK(vector_search_step(&search, set));
    vector_set_clear(set);
    CHECK(!vector_search_step(&search, set));
    vector_search_end(&search, set);
    vector_search_free(&search);
    vector_set_free(set);
}
