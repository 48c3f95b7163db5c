/* Vector indexes agree with the durable items: after random operations, while they are filled, after a start, a
 * failed commit and a return to a snapshot, and under searches from other threads. */
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "unit/engine_searcher.h"

#define ITEMS   60
#define TENANTS 3
#define KINDS   2

static struct key_attribute attributes[] = {
    {SLICE("kind"), VALUE_N}, {SLICE("pk"), VALUE_S}, {SLICE("sk"), VALUE_N}, {SLICE("tenant"), VALUE_S}};
static struct vector_definition vectors[] = {
    {.index = {.name = SLICE("whole"), .projection = PROJECT_ALL},
     .attribute = SLICE("v"),
     .dimensions = 3,
     .metric = VECTOR_EUCLIDEAN},
    {.index = {.name = SLICE("split"), .projection = PROJECT_ALL, .hash = {SLICE("tenant")}, .hash_count = 1},
     .attribute = SLICE("v"),
     .dimensions = 3,
     .metric = VECTOR_DOT,
     .filters = {SLICE("kind")},
     .filter_count = 1},
};

static struct table_definition vectors_definition(uint32_t count)
{
    struct table_definition definition = things_definition();
    definition.attributes = attributes;
    definition.attribute_count = 4;
    definition.vectors = vectors;
    definition.vector_count = count;
    return definition;
}

static bool change_table(struct fixture *fixture, const struct table_definition *definition,
                         enum table_change_result (*change)(struct batch *, const struct table_definition *))
{
    struct table_commit commit = {
        .commit = {.apply = apply_table}, .definition = definition, .change = change};
    engine_commit(fixture->engine, &commit.commit);
    if (fixture->table) engine_table_release(fixture->table);
    fixture->table = engine_table_find(fixture->engine, SLICE("things"));
    return !commit.commit.failed;
}

static void open_vectors(struct fixture *fixture, bool inline_writer)
{
    struct table_definition definition = vectors_definition(2);
    *fixture = (struct fixture){0};
    ensure(fixture_open_store(fixture, store_open_memory(&fixture->faults), inline_writer));
    ensure(change_table(fixture, &definition, engine_table_create));
}

/* ---- items ---- */

struct thing {
    unsigned number;
    int tenant, kind; /* -1: none */
    int dimensions;   /* 0: no vector */
    int values[4];
};

static struct value integer_value(struct arena *arena, int value)
{
    return (struct value){.type = VALUE_N, .bytes = arena_printf(arena, "%d", value)};
}

static struct map thing_item(struct arena *arena, const struct thing *thing)
{
    struct attribute *list = arena_array(arena, struct attribute, 5);
    uint32_t count = 0;
    if (thing->kind >= 0)
        list[count++] = (struct attribute){SLICE("kind"), integer_value(arena, thing->kind)};
    list[count++] = (struct attribute){SLICE("pk"), text_value("p")};
    list[count++] = (struct attribute){SLICE("sk"), integer_value(arena, (int)thing->number)};
    struct value tenant = {.type = VALUE_S, .bytes = arena_printf(arena, "t%d", thing->tenant)};
    if (thing->tenant >= 0) list[count++] = (struct attribute){SLICE("tenant"), tenant};
    struct value vector = {.type = VALUE_L, .count = (uint32_t)thing->dimensions};
    vector.elements = arena_array(arena, struct value, 4);
    for (int i = 0; i < thing->dimensions; i++) vector.elements[i] = integer_value(arena, thing->values[i]);
    if (thing->dimensions) list[count++] = (struct attribute){SLICE("v"), vector};
    return (struct map){list, count};
}

static struct write_commit thing_write(struct fixture *fixture, struct arena *arena, enum write_kind kind,
                                       const struct thing *thing)
{
    struct value hash = text_value("p"), range = integer_value(arena, (int)thing->number);
    struct buf key = {0};
    engine_item_key(&key, fixture->table, &hash, &range);
    struct write_commit write = {.commit = {.apply = apply_write},
                                 .write = {.kind = kind,
                                           .table = fixture->table,
                                           .key = arena_copy(arena, buf_view(&key)),
                                           .item = thing_item(arena, thing),
                                           .arena = arena}};
    buf_free(&key);
    return write;
}

static bool write_thing(struct fixture *fixture, enum write_kind kind, const struct thing *thing)
{
    struct arena arena = {0};
    struct write_commit write = thing_write(fixture, &arena, kind, thing);
    engine_commit(fixture->engine, &write.commit);
    arena_free(&arena);
    return !write.commit.failed;
}

static struct thing some_thing(struct random *random)
{
    struct thing thing = {.number = (unsigned)random_below(random, ITEMS),
                          .tenant = (int)random_below(random, TENANTS + 1) - 1,
                          .kind = (int)random_below(random, KINDS + 1) - 1,
                          .dimensions = 3};
    if (random_below(random, 8) == 0) thing.dimensions = (int)random_below(random, 5);
    for (int i = 0; i < thing.dimensions; i++) thing.values[i] = (int)random_below(random, 9) - 4;
    return thing;
}

static bool write_something(struct fixture *fixture, struct random *random)
{
    struct thing thing = some_thing(random);
    return write_thing(fixture, random_below(random, 4) == 0 ? WRITE_DELETE : WRITE_PUT, &thing);
}

static void delete_all(struct fixture *fixture)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        struct thing thing = {.number = i, .tenant = -1, .kind = -1};
        CHECK(write_thing(fixture, WRITE_DELETE, &thing));
    }
}

/* ---- the items as they are, sorted by what a search should find ---- */

struct expected {
    struct map item;
    struct slice key;
    float score;
};

struct survey {
    struct fixture *fixture;
    struct arena arena;
    struct expected items[ITEMS];
    uint32_t count;
};

static void survey_item(void *context, struct slice encoded, const struct map *item)
{
    struct survey *survey = context;
    (void)item;
    struct expected *own = &survey->items[survey->count++];
    ensure(item_decode(&survey->arena, arena_copy(&survey->arena, encoded), &own->item));
    struct buf key = {0};
    engine_item_key(&key, survey->fixture->table, map_find(&own->item, SLICE("pk")),
                    map_find(&own->item, SLICE("sk")));
    own->key = arena_copy(&survey->arena, buf_view(&key));
    buf_free(&key);
}

static void survey_table(struct survey *survey, struct fixture *fixture)
{
    struct buf from = {0}, to = {0};
    *survey = (struct survey){.fixture = fixture};
    engine_scan_range(fixture->table, 0, 1, &from, &to);
    struct page page = {.from = buf_view(&from),
                        .to = buf_view(&to),
                        .scratch = &survey->arena,
                        .emit = survey_item,
                        .context = survey};
    ensure(engine_page(fixture->engine, &page) == ENGINE_OK && !page.more);
    buf_free(&from);
    buf_free(&to);
}

static bool sorts_greatest;

static int by_score(const void *a, const void *b)
{
    const struct expected *left = *(const struct expected *const *)a,
                          *right = *(const struct expected *const *)b;
    if (left->score != right->score) return (left->score < right->score) == sorts_greatest ? 1 : -1;
    return slice_compare(left->key, right->key);
}

static bool has_value(const struct map *item, const char *name, const struct value *wanted)
{
    const struct value *value = map_find(item, slice_of(name));
    return !wanted || (value && value_equal(value, wanted));
}

static void check_search(struct survey *survey, uint32_t place, const struct value *tenant,
                         const struct value *kind, const float query[3], uint32_t top)
{
    struct fixture *fixture = survey->fixture;
    struct arena arena = {0};
    struct expected *order[ITEMS];
    uint32_t count = 0;
    float vector[3];
    for (uint32_t i = 0; i < survey->count; i++) {
        struct expected *own = &survey->items[i];
        if (!vector_of_item(&vectors[place], &own->item, vector)) continue;
        if (!has_value(&own->item, "tenant", tenant) || !has_value(&own->item, "kind", kind)) continue;
        own->score = vector_score(vectors[place].metric, query, vector, 3);
        order[count++] = own;
    }
    sorts_greatest = vectors[place].metric == VECTOR_DOT;
    if (count) qsort(order, count, sizeof *order, by_score);
    struct vector_request request = {.table = fixture->table,
                                     .place = place,
                                     .vector = query,
                                     .top = top,
                                     .hash = {tenant},
                                     .filters = {kind},
                                     .arena = &arena};
    CHECK_INT(engine_search_vectors(fixture->engine, &request), ENGINE_OK);
    CHECK_INT(request.status, VECTORS_READY);
    CHECK_INT(request.count, count < top ? count : top);
    for (uint32_t i = 0; i < request.count && i < count; i++) {
        CHECK(request.results[i].score == order[i]->score);
        CHECK(map_equal(&request.results[i].item, &order[i]->item));
    }
    arena_free(&arena);
}

static void check_agreement(struct fixture *fixture, struct random *random, uint32_t indexes)
{
    struct survey survey;
    survey_table(&survey, fixture);
    float query[3];
    for (int i = 0; i < 3; i++) query[i] = (float)((int)random_below(random, 9) - 4);
    check_search(&survey, 0, NULL, NULL, query, ITEMS);
    check_search(&survey, 0, NULL, NULL, query, 3);
    for (int tenant = 0; indexes > 1 && tenant < TENANTS; tenant++) {
        struct value name = {.type = VALUE_S, .bytes = arena_printf(&survey.arena, "t%d", tenant)};
        struct value kind = integer_value(&survey.arena, (int)random_below(random, KINDS));
        check_search(&survey, 1, &name, NULL, query, 5);
        check_search(&survey, 1, &name, &kind, query, ITEMS);
    }
    arena_free(&survey.arena);
}

/* ---- tests ---- */

TEST(engine_vectors_agree_with_the_items)
{
    struct fixture fixture;
    struct random random;
    random_seed(&random, 11);
    open_vectors(&fixture, true);
    for (unsigned i = 0; i < 1500; i++) {
        CHECK(write_something(&fixture, &random));
        if (i % 25 == 0) check_agreement(&fixture, &random, 2);
    }
    delete_all(&fixture);
    CHECK_INT(engine_vector_bytes(fixture.engine), 0);
    fixture_close(&fixture);
}

/* The vector stays, and what is filtered by takes more room. */
TEST(engine_vectors_count_what_their_filters_take)
{
    struct fixture fixture;
    struct thing thing = {.number = 1, .tenant = 0, .kind = -1, .dimensions = 3};
    int64_t items, before, after;
    open_vectors(&fixture, true);
    CHECK(write_thing(&fixture, WRITE_PUT, &thing));
    vector_index_counts(fixture.table, 1, &items, &before);
    thing.kind = 1;
    CHECK(write_thing(&fixture, WRITE_PUT, &thing));
    vector_index_counts(fixture.table, 1, &items, &after);
    CHECK(after > before);
    CHECK(write_thing(&fixture, WRITE_DELETE, &thing));
    CHECK_INT(engine_vector_bytes(fixture.engine), 0);
    fixture_close(&fixture);
}

/* The second index goes, and comes again. */
static void renew_split(struct fixture *fixture)
{
    struct vector_definition both[2] = {vectors[0], vectors[1]};
    both[0].index.number = fixture->table->definition.vectors[0].index.number;
    struct table_definition less = vectors_definition(1), more = vectors_definition(2);
    less.vectors = more.vectors = both;
    CHECK(change_table(fixture, &less, engine_table_replace));
    CHECK(change_table(fixture, &more, engine_table_replace));
}

TEST(engine_vectors_of_a_filled_table_are_filled)
{
    struct fixture fixture;
    struct random random;
    random_seed(&random, 12);
    open_vectors(&fixture, true);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 100; i++) CHECK(write_something(&fixture, &random));
        renew_split(&fixture);
        CHECK_INT(vector_index_status(fixture.table, 0), VECTORS_READY);
        CHECK_INT(vector_index_status(fixture.table, 1), VECTORS_BACKFILLING);
        for (unsigned i = 0; i < 20; i++) CHECK(write_something(&fixture, &random));
        engine_wait_idle(fixture.engine);
        CHECK_INT(vector_index_status(fixture.table, 1), VECTORS_READY);
        check_agreement(&fixture, &random, 2);
    }
    fixture_close(&fixture);
}

TEST(engine_vectors_are_filled_while_the_table_is_written)
{
    struct fixture fixture;
    struct random random;
    random_seed(&random, 19);
    open_vectors(&fixture, false);
    for (unsigned i = 0; i < 200; i++) CHECK(write_something(&fixture, &random));
    for (unsigned round = 0; round < 8; round++) {
        renew_split(&fixture);
        while (vector_index_status(fixture.table, 1) != VECTORS_READY)
            CHECK(write_something(&fixture, &random));
        check_agreement(&fixture, &random, 2);
    }
    fixture_close(&fixture);
}

TEST(engine_vectors_are_back_after_a_start)
{
    struct fixture fixture, again;
    struct random random;
    random_seed(&random, 13);
    open_vectors(&fixture, true);
    for (unsigned i = 0; i < 300; i++) CHECK(write_something(&fixture, &random));
    struct store_snapshot *content = store_snapshot_take(fixture.store);
    struct store *store = store_open_memory(NULL);
    store_snapshot_restore(store, content);
    again = (struct fixture){0};
    ensure(fixture_open_store(&again, store, true));
    again.table = engine_table_find(again.engine, SLICE("things"));
    CHECK_INT(vector_index_status(again.table, 0), VECTORS_LOADING);
    for (unsigned i = 0; i < 20; i++) CHECK(write_something(&again, &random));
    check_agreement(&again, &random, 2);
    CHECK_INT(vector_index_status(again.table, 0), VECTORS_READY);
    store_snapshot_free(content);
    fixture_close(&again);
    fixture_close(&fixture);
}

/* What a failed commit would have changed cannot be found. */
TEST(engine_vectors_know_nothing_of_a_failed_commit)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        struct fixture fixture;
        struct random random;
        random_seed(&random, 14);
        open_vectors(&fixture, true);
        for (unsigned i = 0; i < 100; i++) CHECK(write_something(&fixture, &random));
        struct store_snapshot *content = store_snapshot_take(fixture.store);
        struct thing nearest = {.number = 1, .tenant = 0, .kind = 0, .dimensions = 3, .values = {9, 9, 9}};
        fixture.faults.fail_at = fixture.faults.calls + 1;
        struct table_definition less = vectors_definition(0);
        if (kind == 0) {
            while (write_thing(&fixture, WRITE_PUT, &nearest))
                fixture.faults.fail_at = fixture.faults.calls + 1;
        } else if (kind == 1) {
            CHECK(!change_table(&fixture, &less, engine_table_replace));
        } else {
            CHECK(!fixture_drop(&fixture));
        }
        fixture.faults.fail_at = 0;
        if (kind > 0) store_snapshot_restore(fixture.store, content);
        check_agreement(&fixture, &random, 2);
        store_snapshot_free(content);
        fixture_close(&fixture);
    }
}

TEST(engine_vectors_go_back_with_a_snapshot)
{
    struct fixture fixture;
    struct random random;
    random_seed(&random, 15);
    open_vectors(&fixture, true);
    for (unsigned i = 0; i < 100; i++) CHECK(write_something(&fixture, &random));
    struct engine_snapshot *snapshot = engine_snapshot_take(fixture.engine);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 100; i++) CHECK(write_something(&fixture, &random));
        if (round == 1) CHECK(fixture_drop(&fixture));
        engine_snapshot_restore(fixture.engine, snapshot);
        engine_table_release(fixture.table);
        fixture.table = engine_table_find(fixture.engine, SLICE("things"));
        ensure(fixture.table);
        check_agreement(&fixture, &random, 2);
    }
    engine_snapshot_free(snapshot);
    fixture_close(&fixture);
}

TEST(engine_vectors_of_a_dropped_table_give_their_memory_back)
{
    struct fixture fixture;
    struct random random;
    int64_t items, bytes;
    random_seed(&random, 16);
    open_vectors(&fixture, true);
    for (unsigned i = 0; i < 200; i++) CHECK(write_something(&fixture, &random));
    vector_index_counts(fixture.table, 1, &items, &bytes);
    CHECK(items > 0 && bytes > 0);
    CHECK(engine_vector_bytes(fixture.engine) > (uint64_t)bytes);
    CHECK(fixture_drop(&fixture));
    CHECK_INT(engine_vector_bytes(fixture.engine), 0);
    vector_index_counts(fixture.table, 1, &items, &bytes);
    CHECK_INT(items, 0);
    CHECK_INT(bytes, 0);
    fixture_close(&fixture);
}

/* An index that does not fit after a start says so. */
TEST(engine_vectors_that_do_not_fit_are_not_searched)
{
    struct fixture fixture;
    struct random random;
    char error[300];
    float query[3] = {0};
    random_seed(&random, 17);
    open_vectors(&fixture, true);
    for (unsigned i = 0; i < 200; i++) CHECK(write_something(&fixture, &random));
    struct store_snapshot *content = store_snapshot_take(fixture.store);
    struct store *store = store_open_memory(NULL);
    store_snapshot_restore(store, content);
    struct engine_options options = {.store = store,
                                     .durable = true,
                                     .inline_writer = true,
                                     .cache_bytes = 1 << 20,
                                     .clock = &clock_system,
                                     .seed = 1,
                                     .vector_limit_bytes = 1000};
    struct fixture again = {.engine = engine_open(&options, error, sizeof error)};
    again.table = engine_table_find(again.engine, SLICE("things"));
    struct vector_request request = {
        .table = again.table, .place = 0, .vector = query, .top = 3, .arena = &again.arena};
    CHECK_INT(engine_search_vectors(again.engine, &request), ENGINE_OK);
    CHECK_INT(request.status, VECTORS_FULL);
    CHECK(write_something(&again, &random));
    store_snapshot_free(content);
    fixture_close(&again);
    fixture_close(&fixture);
}

/* ---- threads ---- */

static void small_query(struct random *random, float *out)
{
    for (int i = 0; i < 3; i++) out[i] = (float)((int)random_below(random, 9) - 4);
}

TEST(engine_vectors_are_searched_while_they_change)
{
    struct fixture fixture;
    struct random random;
    random_seed(&random, 18);
    open_vectors(&fixture, false);
    struct searcher searchers[2];
    for (unsigned i = 0; i < 2; i++) searcher_start(&searchers[i], &fixture, small_query, ITEMS, i);
    for (unsigned i = 0; i < 2000; i++) CHECK(write_something(&fixture, &random));
    check_agreement(&fixture, &random, 2);
    delete_all(&fixture); /* what is searched when its last vector goes must go, too */
    for (unsigned i = 0; i < 2; i++) CHECK_INT(searcher_stop(&searchers[i]), 0);
    CHECK_INT(engine_vector_bytes(fixture.engine), 0);
    fixture_close(&fixture);
}
