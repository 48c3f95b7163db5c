/* Vector indexes with more vectors than a search compares: results beside those of all items, after random operations,
 * a start, under searches from other threads, and where memory ends. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "unit/engine_searcher.h"

#define ITEMS      600
#define EXACT_MAX  150
#define DIMENSIONS 64
#define KINDS      3
#define TOP        10

static struct key_attribute attributes[] = {
    {SLICE("kind"), VALUE_N}, {SLICE("pk"), VALUE_S}, {SLICE("sk"), VALUE_N}};
static struct vector_definition vectors[] = {{.index = {.name = SLICE("near"), .projection = PROJECT_ALL},
                                              .attribute = SLICE("v"),
                                              .dimensions = DIMENSIONS,
                                              .metric = VECTOR_COSINE,
                                              .filters = {SLICE("kind")},
                                              .filter_count = 1}};

/* The items as they should be. */
struct thing {
    bool exists;
    int kind;
    float vector[DIMENSIONS];
    float score;
};
struct model {
    struct thing things[ITEMS];
    unsigned wanted, found;
};

static struct engine_options large_options(struct store *store, bool inline_writer)
{
    return (struct engine_options){.store = store,
                                   .durable = true,
                                   .inline_writer = inline_writer,
                                   .cache_bytes = 1 << 20,
                                   .clock = &clock_system,
                                   .seed = 1,
                                   .vector_exact_max = EXACT_MAX};
}

static void open_large(struct fixture *fixture, bool inline_writer, uint64_t limit_bytes)
{
    char error[300];
    struct table_definition definition = things_definition();
    definition.attributes = attributes;
    definition.attribute_count = 3;
    definition.vectors = vectors;
    definition.vector_count = 1;
    *fixture = (struct fixture){.store = store_open_memory(NULL)};
    struct engine_options options = large_options(fixture->store, inline_writer);
    options.vector_limit_bytes = limit_bytes;
    fixture->engine = engine_open(&options, error, sizeof error);
    ensure(fixture->engine);
    struct table_commit create = {
        .commit = {.apply = apply_table}, .definition = &definition, .change = engine_table_create};
    engine_commit(fixture->engine, &create.commit);
    fixture->table = engine_table_find(fixture->engine, SLICE("things"));
    ensure(fixture->table);
}

/* ---- items ---- */

/* Around some centres, in thousandths. */
static void some_vector(struct random *random, float *out)
{
    struct random centre;
    random_seed(&centre, random_below(random, 12));
    for (int i = 0; i < DIMENSIONS; i++)
        out[i] = (float)((int)random_below(&centre, 2000) + (int)random_below(random, 800) - 1000) / 1000;
}

static struct map thing_item(struct arena *arena, unsigned number, const struct thing *thing)
{
    struct attribute *list = arena_array(arena, struct attribute, 4);
    struct value vector = {.type = VALUE_L, .count = DIMENSIONS};
    vector.elements = arena_array(arena, struct value, DIMENSIONS);
    for (int i = 0; i < DIMENSIONS; i++)
        vector.elements[i] = (struct value){.type = VALUE_N,
                                            .bytes = arena_printf(arena, "%.9g", (double)thing->vector[i])};
    list[0] = (struct attribute){SLICE("kind"),
                                 {.type = VALUE_N, .bytes = arena_printf(arena, "%d", thing->kind)}};
    list[1] = (struct attribute){SLICE("pk"), text_value("p")};
    list[2] = (struct attribute){SLICE("sk"), {.type = VALUE_N, .bytes = arena_printf(arena, "%u", number)}};
    list[3] = (struct attribute){SLICE("v"), vector};
    return (struct map){list, 4};
}

static enum write_outcome write_thing(struct fixture *fixture, struct model *model, unsigned number,
                                      const struct thing *thing)
{
    struct arena arena = {0};
    char sk[16];
    snprintf(sk, sizeof sk, "%u", number);
    struct write_commit write = {.commit = {.apply = apply_write},
                                 .write = {.kind = thing->exists ? WRITE_PUT : WRITE_DELETE,
                                           .table = fixture->table,
                                           .key = fixture_key(fixture, "p", sk),
                                           .item = thing_item(&arena, number, thing),
                                           .arena = &arena}};
    engine_commit(fixture->engine, &write.commit);
    CHECK(!write.commit.failed);
    if (write.write.outcome == WRITE_APPLIED) model->things[number] = *thing;
    arena_free(&arena);
    return write.write.outcome;
}

static void write_something(struct fixture *fixture, struct model *model, struct random *random)
{
    struct thing thing = {.exists = random_below(random, 4) > 0, .kind = (int)random_below(random, KINDS)};
    unsigned number = (unsigned)random_below(random, ITEMS);
    some_vector(random, thing.vector);
    if (random_below(random, 8) == 0) /* only the kind changes */
        memcpy(thing.vector, model->things[number].vector, sizeof thing.vector);
    CHECK_INT(write_thing(fixture, model, number, &thing), WRITE_APPLIED);
}

/* ---- searches ---- */

static int by_score(const void *a, const void *b)
{
    float left = (*(const struct thing *const *)a)->score, right = (*(const struct thing *const *)b)->score;
    return left < right ? -1 : left > right;
}

/* Counts results that are as near as the one that belongs to their place. */
static void check_search(struct fixture *fixture, struct model *model, struct random *random, int kind)
{
    struct thing *order[ITEMS];
    struct arena arena = {0};
    uint32_t count = 0;
    float query[DIMENSIONS];
    some_vector(random, query);
    for (unsigned i = 0; i < ITEMS; i++) {
        struct thing *thing = &model->things[i];
        if (!thing->exists || (kind >= 0 && thing->kind != kind)) continue;
        thing->score = vector_score(VECTOR_COSINE, query, thing->vector, DIMENSIONS);
        order[count++] = thing;
    }
    if (count) qsort(order, count, sizeof *order, by_score);
    struct value wanted = {.type = VALUE_N, .bytes = arena_printf(&arena, "%d", kind)};
    struct vector_request request = {.table = fixture->table,
                                     .place = 0,
                                     .vector = query,
                                     .top = TOP,
                                     .filters = {kind >= 0 ? &wanted : NULL},
                                     .arena = &arena};
    CHECK_INT(engine_search_vectors(fixture->engine, &request), ENGINE_OK);
    CHECK_INT(request.status, VECTORS_READY);
    CHECK_INT(request.count, count < TOP ? count : TOP);
    for (uint32_t i = 0; i < request.count; i++) {
        unsigned number = (unsigned)atoi(map_find(&request.results[i].item, SLICE("sk"))->bytes.data);
        const struct thing *thing = &model->things[number];
        CHECK(thing->exists && (kind < 0 || thing->kind == kind) && thing->score == request.results[i].score);
        model->wanted++;
        model->found += request.results[i].score == order[i]->score;
    }
    arena_free(&arena);
}

static void check_searches(struct fixture *fixture, struct model *model, struct random *random)
{
    for (int i = 0; i < 5; i++) check_search(fixture, model, random, -1);
    check_search(fixture, model, random, (int)random_below(random, KINDS));
}

static void check_recall(const struct model *model)
{
    CHECK(model->wanted >= 50);
    if (model->found * 100 < model->wanted * 99)
        test_failed(__FILE__, __LINE__, "%u of %u are found", model->found, model->wanted);
}

TEST(engine_large_vectors_find_what_the_items_say)
{
    struct fixture fixture, again = {0};
    static struct model model;
    struct random random;
    char error[300];
    random_seed(&random, 61);
    open_large(&fixture, true, 0);
    for (unsigned i = 0; i < 4000; i++) {
        write_something(&fixture, &model, &random);
        if (i % 200 == 0) check_searches(&fixture, &model, &random);
    }
    check_recall(&model);
    struct store_snapshot *content = store_snapshot_take(fixture.store);
    struct engine_options options = large_options(store_open_memory(NULL), true);
    store_snapshot_restore(options.store, content);
    again.engine = engine_open(&options, error, sizeof error);
    again.table = engine_table_find(again.engine, SLICE("things"));
    model.wanted = model.found = 0;
    for (unsigned i = 0; i < 10; i++) check_searches(&again, &model, &random);
    check_recall(&model);
    store_snapshot_free(content);
    fixture_close(&again);
    CHECK(fixture_drop(&fixture));
    CHECK_INT(engine_vector_bytes(fixture.engine), 0);
    fixture_close(&fixture);
}

/* ---- threads ---- */

TEST(engine_large_vectors_are_searched_while_they_change)
{
    struct fixture fixture;
    static struct model model;
    struct random random;
    struct searcher searcher;
    memset(&model, 0, sizeof model);
    random_seed(&random, 63);
    open_large(&fixture, false, 0);
    searcher_start(&searcher, &fixture, some_vector, ITEMS, 62);
    for (unsigned i = 0; i < 2500; i++) write_something(&fixture, &model, &random);
    CHECK_INT(searcher_stop(&searcher), 0);
    for (unsigned i = 0; i < 10; i++) check_searches(&fixture, &model, &random);
    check_recall(&model);
    fixture_close(&fixture);
}

/* Memory ends while sketches are made: no more vectors come, and those that are there are found. Whoever deletes
 * some has room for others. */
TEST(engine_large_vectors_keep_to_their_memory)
{
    struct fixture fixture;
    static struct model model;
    struct random random;
    unsigned refused = 0, count = 0;
    enum { LIMIT = 200000 };
    memset(&model, 0, sizeof model);
    random_seed(&random, 64);
    open_large(&fixture, true, LIMIT);
    for (unsigned i = 0; i < ITEMS; i++) {
        struct thing thing = {.exists = true, .kind = 0};
        some_vector(&random, thing.vector);
        enum write_outcome outcome = write_thing(&fixture, &model, i, &thing);
        CHECK(outcome == WRITE_APPLIED || outcome == WRITE_VECTORS_FULL);
        refused += outcome == WRITE_VECTORS_FULL;
        count += model.things[i].exists;
    }
    CHECK(refused > 0 && count > EXACT_MAX);
    CHECK_INT(count + refused, ITEMS);
    CHECK(engine_vector_bytes(fixture.engine) >= LIMIT);
    for (unsigned i = 0; i < 10; i++) check_searches(&fixture, &model, &random);
    check_recall(&model);
    for (unsigned i = 0; i < ITEMS; i++) {
        struct thing thing = {.exists = i < 10, .kind = 1};
        some_vector(&random, thing.vector);
        if (!thing.exists) CHECK_INT(write_thing(&fixture, &model, i, &thing), WRITE_APPLIED);
    }
    CHECK(engine_vector_bytes(fixture.engine) < LIMIT / 4);
    for (unsigned i = 10; i < EXACT_MAX; i++) {
        struct thing thing = {.exists = true, .kind = 1};
        some_vector(&random, thing.vector);
        CHECK_INT(write_thing(&fixture, &model, i, &thing), WRITE_APPLIED);
    }
    check_searches(&fixture, &model, &random);
    check_recall(&model);
    fixture_close(&fixture);
}
