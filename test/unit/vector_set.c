/* Sets of vectors: the same sums in all forms that the machine has, the nearest against all of them sorted,
 * keys that come and go, and what a set takes of memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "unit/test.h"
#include "vector/internal.h"

static float some_float(struct random *random)
{
    return (float)((double)random_below(random, 2000001) / 1000000 - 1);
}

static void fill(struct random *random, float *vector, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) vector[i] = some_float(random);
}

static struct slice key_of(char text[32], uint32_t number)
{
    return (struct slice){text, (size_t)snprintf(text, 32, "key %u", number)};
}

TEST(vector_sums_are_the_same_bits_in_all_forms)
{
    struct random random;
    unsigned forms;
    const struct vector_kernel *kernels = vector_kernels(&forms);
    random_seed(&random, 7);
    for (uint32_t stride = VECTOR_PAD; stride <= 21 * VECTOR_PAD; stride += VECTOR_PAD) {
        enum { COUNT = 5 };
        float *query = vector_memory(stride), *vectors = vector_memory(COUNT * stride);
        float dot[COUNT], squares[COUNT], same[COUNT];
        fill(&random, query, stride);
        fill(&random, vectors, COUNT * stride);
        kernels[0].dot(query, vectors, stride, COUNT, dot);
        kernels[0].squares(query, vectors, stride, COUNT, squares);
        for (unsigned form = 1; form < forms; form++) {
            kernels[form].dot(query, vectors, stride, COUNT, same);
            CHECK(memcmp(dot, same, sizeof dot) == 0);
            kernels[form].squares(query, vectors, stride, COUNT, same);
            CHECK(memcmp(squares, same, sizeof squares) == 0);
        }
        for (unsigned v = 0; v < COUNT; v++) {
            double exact_dot = 0, exact_squares = 0;
            for (uint32_t i = 0; i < stride; i++) {
                double a = (double)query[i], b = (double)vectors[v * stride + i];
                exact_dot += a * b;
                exact_squares += (a - b) * (a - b);
            }
            CHECK(fabs((double)dot[v] - exact_dot) < 1e-4);
            CHECK(fabs((double)squares[v] - exact_squares) < 1e-3);
        }
        free(query);
        free(vectors);
    }
}

TEST(vector_scores_are_what_their_names_say)
{
    float a[3] = {1, 0, 0}, b[3] = {0, 2, 0}, c[3] = {-3, 0, 0}, none[3] = {0, 0, 0};
    CHECK(vector_score(VECTOR_COSINE, a, a, 3) == 0);
    CHECK(vector_score(VECTOR_COSINE, a, b, 3) == 1);
    CHECK(vector_score(VECTOR_COSINE, a, c, 3) == 2);
    CHECK(vector_score(VECTOR_COSINE, a, none, 3) == 1);
    CHECK(vector_score(VECTOR_EUCLIDEAN, a, c, 3) == 4);
    CHECK(vector_score(VECTOR_DOT, a, c, 3) == -3);
    float huge[2] = {3e38f, 3e38f}, other[2] = {3e38f, -3e38f};
    CHECK(fabsf(vector_score(VECTOR_COSINE, huge, other, 2) - 1) < 1e-6f);
    CHECK(vector_score(VECTOR_COSINE, huge, huge, 2) < 1e-6f);
    CHECK(isinf(vector_score(VECTOR_DOT, huge, huge, 2)));
}

/* ---- the nearest, against all of them sorted ---- */

#define MODEL 400

struct model {
    bool there;
    char text[32];
    struct slice key;
    float vector[40];
    unsigned char note;
    float score;
};

static enum vector_metric model_metric;

static int by_score(const void *a, const void *b)
{
    const struct model *left = *(const struct model *const *)a, *right = *(const struct model *const *)b;
    if (left->score != right->score) {
        bool nearer = model_metric == VECTOR_DOT ? left->score > right->score : left->score < right->score;
        return nearer ? -1 : 1;
    }
    return slice_compare(left->key, right->key);
}

static bool accepts(void *context, struct slice note)
{
    return note.len == 1 && note.data[0] == *(char *)context;
}

static void check_search(struct vector_set *set, struct model *models, uint32_t dimensions,
                         const float *query, uint32_t top, char *wanted)
{
    struct model *order[MODEL];
    uint32_t count = 0;
    for (uint32_t i = 0; i < MODEL; i++) {
        if (!models[i].there || (wanted && models[i].note != (unsigned char)*wanted)) continue;
        models[i].score = vector_score(model_metric, query, models[i].vector, dimensions);
        order[count++] = &models[i];
    }
    if (count) qsort(order, count, sizeof *order, by_score);
    struct vector_search search;
    vector_search_begin(&search, set, query, top);
    if (wanted) {
        search.accepts = accepts;
        search.context = wanted;
    }
    while (vector_search_step(&search, set)) {
    }
    vector_search_end(&search, set);
    CHECK_INT(search.count, count < top ? count : top);
    for (uint32_t i = 0; i < search.count && i < count; i++) {
        CHECK(search.hits[i].score == order[i]->score);
        CHECK(slice_equal(buf_view(&search.hits[i].key), order[i]->key));
        CHECK_INT(search.hits[i].stamp, order[i] - models);
    }
    vector_search_free(&search);
}

/* Vectors of few different values, so that many scores are equal. */
static void try_metric(enum vector_metric metric, uint32_t dimensions, uint64_t seed)
{
    static struct model models[MODEL];
    struct random random;
    struct vector_set *set = vector_set_new(metric, dimensions, LIMIT_VECTOR_EXACT);
    float query[40];
    model_metric = metric;
    random_seed(&random, seed);
    memset(models, 0, sizeof models);
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t at = (uint32_t)random_below(&random, MODEL);
        struct model *model = &models[at];
        model->key = key_of(model->text, at);
        if (random_below(&random, 3) == 0) {
            CHECK_INT(vector_set_remove(set, model->key), model->there);
            model->there = false;
        } else {
            for (uint32_t i = 0; i < dimensions; i++)
                model->vector[i] = (float)((int)random_below(&random, 5) - 2);
            model->note = (unsigned char)('a' + random_below(&random, 3));
            vector_set_put(set, model->key, model->vector, (struct slice){(char *)&model->note, 1}, at);
            model->there = true;
        }
        CHECK_INT(vector_set_has(set, model->key), model->there);
        if (round % 100) continue;
        for (uint32_t i = 0; i < dimensions; i++) query[i] = (float)((int)random_below(&random, 5) - 2);
        char wanted = 'b';
        check_search(set, models, dimensions, query, 1, NULL);
        check_search(set, models, dimensions, query, 100, NULL);
        check_search(set, models, dimensions, query, 7, &wanted);
    }
    vector_set_free(set);
}

TEST(vector_nearest_are_those_of_all_sorted)
{
    try_metric(VECTOR_COSINE, 3, 1);
    try_metric(VECTOR_EUCLIDEAN, 5, 2);
    try_metric(VECTOR_DOT, 40, 3);
    try_metric(VECTOR_EUCLIDEAN, 1, 4);
}

/* More than a block, more than a step, and a set that changes between two steps. */
TEST(vector_search_meets_each_vector_once_while_others_come_and_go)
{
    enum { COUNT = 6000, DIMENSIONS = 300 };
    struct random random;
    struct vector_set *set = vector_set_new(VECTOR_EUCLIDEAN, DIMENSIONS, LIMIT_VECTOR_EXACT);
    float vector[DIMENSIONS], query[DIMENSIONS] = {0};
    char text[32];
    random_seed(&random, 5);
    for (uint32_t i = 0; i < COUNT; i++) {
        fill(&random, vector, DIMENSIONS);
        if (i % 600 == 599) memset(vector, 0, sizeof vector); /* ten that are nearest, the last among them */
        vector_set_put(set, key_of(text, i), vector, SLICE_NONE, i);
    }
    struct vector_search search;
    vector_search_begin(&search, set, query, 12);
    uint32_t steps = 0;
    while (vector_search_step(&search, set)) {
        uint32_t other = steps++;
        CHECK(vector_set_is_searched(set));
        CHECK(vector_set_remove(set, key_of(text, other))); /* the last vector moves behind the search */
        fill(&random, vector, DIMENSIONS);
        vector_set_put(set, key_of(text, COUNT + other), vector, SLICE_NONE, 0);
        memset(vector, 0, sizeof vector);
        CHECK(vector_set_remove(set, key_of(text, 599))); /* one that was met comes again */
        vector_set_put(set, key_of(text, 599), vector, SLICE_NONE, 599);
    }
    vector_search_end(&search, set);
    CHECK(!vector_set_is_searched(set));
    CHECK(steps >= 6);
    CHECK_INT(search.count, 12);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(search.hits[i].score == 0);
        CHECK_INT(search.hits[i].stamp % 600, 599);
        seen |= 1ull << search.hits[i].stamp / 600;
    }
    CHECK_INT(seen, 1023);
    CHECK(search.hits[10].score > 0);
    vector_search_free(&search);
    vector_set_free(set);
}

TEST(vector_memory_is_counted_and_given_back)
{
    enum { COUNT = 3000, DIMENSIONS = 100 };
    struct vector_set *set = vector_set_new(VECTOR_DOT, DIMENSIONS, LIMIT_VECTOR_EXACT);
    float vector[DIMENSIONS] = {1};
    char text[32];
    uint64_t empty = vector_set_bytes(set), full = 0;
    CHECK(empty < 1000);
    vector_set_put(set, key_of(text, 0), vector, SLICE_NONE, 0);
    CHECK(vector_set_bytes(set) < 4096); /* a tenant with one vector is cheap */
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < COUNT; i++) vector_set_put(set, key_of(text, i), vector, SLICE("note"), i);
        CHECK_INT(vector_set_count(set), COUNT);
        if (!round) full = vector_set_bytes(set);
        CHECK(full >= COUNT * DIMENSIONS * sizeof(float));
        CHECK(full < COUNT * (DIMENSIONS * sizeof(float) * 2 + 200));
        CHECK_INT(vector_set_bytes(set), full);
        for (uint32_t i = 0; i < COUNT; i++) CHECK(vector_set_remove(set, key_of(text, i)));
        CHECK_INT(vector_set_count(set), 0);
        CHECK(vector_set_bytes(set) < empty + 4096);
    }
    vector_set_clear(set);
    CHECK_INT(vector_set_bytes(set), empty);
    vector_set_free(set);
}

/* Vectors come and go as those of items with a time to live: the memory is that of those that are there. Blocks are
 * small in number and have sketches, so all that is taken is given back, too. */
TEST(vector_memory_stays_bounded_while_vectors_come_and_go)
{
    enum { DIMENSIONS = 1024, MOST = 3000, FEW = 100, ROUNDS = 4 };
    struct vector_set *set = vector_set_new(VECTOR_DOT, DIMENSIONS, 500);
    float vector[DIMENSIONS] = {1};
    char text[32];
    uint32_t first = 0, next = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t vector_bytes = DIMENSIONS * sizeof(float) + DIMENSIONS / 8 + 200;
        while (next - first < MOST) vector_set_put(set, key_of(text, next++), vector, SLICE_NONE, 0);
        CHECK(set->sketch && set->sketch->slots > MOST / 2 && set->block_count >= 3);
        CHECK(vector_set_bytes(set) < 2 * MOST * vector_bytes);
        for (uint32_t i = 0; i < MOST / 2; i++) {
            CHECK(vector_set_remove(set, key_of(text, first++)));
            vector_set_put(set, key_of(text, next++), vector, SLICE_NONE, 0);
        }
        CHECK(vector_set_bytes(set) < 2 * MOST * vector_bytes);
        while (next - first > FEW) CHECK(vector_set_remove(set, key_of(text, first++)));
        CHECK(vector_set_bytes(set) < 5 * FEW * vector_bytes);
        CHECK_INT(vector_set_count(set), FEW);
    }
    while (first < next) CHECK(vector_set_remove(set, key_of(text, first++)));
    vector_set_free(set);
}
