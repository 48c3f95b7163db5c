/* A thread that searches the first vector index of a table while a test changes it: each result is one item with its
 * own score, in order, and no item is there twice. */
#ifndef TEST_UNIT_ENGINE_SEARCHER_H
#define TEST_UNIT_ENGINE_SEARCHER_H

#include <pthread.h>
#include <stdlib.h>

#include "base/random.h"
#include "unit/engine_fixture.h"

#define SEARCHER_TOP      50
#define SEARCHER_SEARCHES 20 /* at least, however fast the test is */

struct searcher {
    struct fixture *fixture;
    void (*query)(struct random *random, float *out);
    struct random random;
    uint32_t items; /* their numbers are below */
    pthread_t thread;
    _Atomic bool ends;
    unsigned searches, faults;
};

static inline void searcher_search(struct searcher *own)
{
    const struct vector_definition *definition = &own->fixture->table->definition.vectors[0];
    struct arena arena = {0};
    float *query = arena_array(&arena, float, definition->dimensions);
    float *vector = arena_array(&arena, float, definition->dimensions);
    bool *seen = arena_array(&arena, bool, own->items);
    memset(seen, 0, own->items * sizeof *seen);
    own->query(&own->random, query);
    struct vector_request request = {
        .table = own->fixture->table, .place = 0, .vector = query, .top = SEARCHER_TOP, .arena = &arena};
    if (engine_search_vectors(own->fixture->engine, &request) != ENGINE_OK) own->faults++;
    for (uint32_t i = 0; i < request.count; i++) {
        const struct map *item = &request.results[i].item;
        unsigned number = (unsigned)atoi(map_find(item, SLICE("sk"))->bytes.data);
        own->faults += number >= own->items || seen[number];
        seen[number % own->items] = true;
        own->faults += !vector_of_item(definition, item, vector) ||
                       vector_score(definition->metric, query, vector, definition->dimensions) !=
                           request.results[i].score;
        own->faults += i && request.results[i].score < request.results[i - 1].score;
    }
    arena_free(&arena);
}

static inline void *searcher_main(void *argument)
{
    struct searcher *own = argument;
    for (; !atomic_load(&own->ends) || own->searches < SEARCHER_SEARCHES; own->searches++)
        searcher_search(own);
    return NULL;
}

static inline void searcher_start(struct searcher *own, struct fixture *fixture,
                                  void (*query)(struct random *, float *), uint32_t items, uint64_t seed)
{
    *own = (struct searcher){.fixture = fixture, .query = query, .items = items};
    random_seed(&own->random, seed);
    ensure(pthread_create(&own->thread, NULL, searcher_main, own) == 0);
}

/* Answers the faults. */
static inline unsigned searcher_stop(struct searcher *own)
{
    atomic_store(&own->ends, true);
    pthread_join(own->thread, NULL);
    return own->faults;
}

#endif
