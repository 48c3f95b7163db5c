/* A database in memory for tests: one table "things" (pk S, sk N), items written and read in few words. */
#ifndef TEST_UNIT_ENGINE_FIXTURE_H
#define TEST_UNIT_ENGINE_FIXTURE_H

#include "base/clock.h"
#include "base/fail.h"
#include "engine/engine.h"
#include "unit/test.h"

struct fixture {
    struct store_faults faults;
    struct store *store;
    struct engine *engine;
    struct arena arena;
    struct table *table;
    int64_t now_ms; /* not 0: the engine's clock stands here */
};

static inline int64_t fixture_now(void *self)
{
    return ((struct fixture *)self)->now_ms;
}

static inline struct value text_value(const char *text)
{
    return (struct value){.type = VALUE_S, .bytes = slice_of(text)};
}

static inline struct value number_value(const char *text)
{
    return (struct value){.type = VALUE_N, .bytes = slice_of(text)};
}

struct table_commit {
    struct commit commit;
    const struct table_definition *definition;
    struct slice name;
    enum table_change_result (*change)(struct batch *batch, const struct table_definition *definition);
    enum table_change_result result;
};

static inline void apply_table(struct commit *commit, struct batch *batch)
{
    struct table_commit *own = (struct table_commit *)commit;
    own->result = own->definition ? own->change(batch, own->definition) : engine_table_drop(batch, own->name);
}

static inline struct table_definition things_definition(void)
{
    static struct key_attribute attributes[] = {{SLICE("pk"), VALUE_S}, {SLICE("sk"), VALUE_N}};
    return (struct table_definition){.name = SLICE("things"),
                                     .id = SLICE("id"),
                                     .created_ms = 1,
                                     .attributes = attributes,
                                     .attribute_count = 2,
                                     .hash = SLICE("pk"),
                                     .range = SLICE("sk"),
                                     .on_demand = true};
}

/* True when the commit was kept. */
static inline bool fixture_create(struct fixture *fixture)
{
    struct table_definition definition = things_definition();
    struct table_commit create = {
        .commit = {.apply = apply_table}, .definition = &definition, .change = engine_table_create};
    engine_commit(fixture->engine, &create.commit);
    fixture->table = engine_table_find(fixture->engine, SLICE("things"));
    return !create.commit.failed;
}

static inline bool fixture_drop(struct fixture *fixture)
{
    struct table_commit drop = {.commit = {.apply = apply_table}, .name = SLICE("things")};
    engine_commit(fixture->engine, &drop.commit);
    return !drop.commit.failed && drop.result == TABLE_CHANGED;
}

static inline bool fixture_open_store(struct fixture *fixture, struct store *store, bool inline_writer)
{
    char error[300];
    static struct clock clock;
    clock = (struct clock){fixture_now, fixture};
    struct engine_options options = {.store = store,
                                     .durable = true,
                                     .inline_writer = inline_writer,
                                     .cache_bytes = 1 << 20,
                                     .clock = fixture->now_ms ? &clock : &clock_system,
                                     .seed = 1};
    fixture->store = store;
    fixture->engine = engine_open(&options, error, sizeof error);
    return fixture->engine != NULL;
}

static inline void fixture_open(struct fixture *fixture, bool inline_writer)
{
    *fixture = (struct fixture){0};
    ensure(fixture_open_store(fixture, store_open_memory(&fixture->faults), inline_writer));
    ensure(fixture_create(fixture));
}

static inline void fixture_close(struct fixture *fixture)
{
    if (fixture->table) engine_table_release(fixture->table);
    engine_close(fixture->engine);
    arena_free(&fixture->arena);
}

struct write_commit {
    struct commit commit;
    struct write write;
};

static inline void apply_write(struct commit *commit, struct batch *batch)
{
    engine_write(batch, &((struct write_commit *)commit)->write);
}

static inline struct slice fixture_key(struct fixture *fixture, const char *pk, const char *sk)
{
    struct value hash = text_value(pk), range = number_value(sk);
    struct buf key = {0};
    engine_item_key(&key, fixture->table, &hash, &range);
    struct slice copy = arena_copy(&fixture->arena, buf_view(&key));
    buf_free(&key);
    return copy;
}

/* The item {pk, sk, data}; data NULL leaves it out. */
static inline struct map fixture_item(struct fixture *fixture, const char *pk, const char *sk,
                                      const char *data)
{
    struct attribute *attributes = arena_array(&fixture->arena, struct attribute, 3);
    uint32_t count = 0;
    if (data) attributes[count++] = (struct attribute){SLICE("data"), text_value(data)};
    attributes[count++] = (struct attribute){SLICE("pk"), text_value(pk)};
    attributes[count++] = (struct attribute){SLICE("sk"), number_value(sk)};
    return (struct map){attributes, count};
}

static inline struct write_commit fixture_write(struct fixture *fixture, enum write_kind kind, const char *pk,
                                                const char *sk, const char *data)
{
    return (struct write_commit){.commit = {.apply = apply_write},
                                 .write = {.kind = kind,
                                           .table = fixture->table,
                                           .key = fixture_key(fixture, pk, sk),
                                           .item = fixture_item(fixture, pk, sk, data),
                                           .arena = &fixture->arena}};
}

/* True when it was kept. */
static inline bool fixture_put(struct fixture *fixture, const char *pk, const char *sk, const char *data)
{
    struct write_commit put = fixture_write(fixture, WRITE_PUT, pk, sk, data);
    engine_commit(fixture->engine, &put.commit);
    return !put.commit.failed && put.write.outcome == WRITE_APPLIED;
}

static inline bool fixture_delete(struct fixture *fixture, const char *pk, const char *sk)
{
    struct write_commit delete = fixture_write(fixture, WRITE_DELETE, pk, sk, NULL);
    engine_commit(fixture->engine, &delete.commit);
    return !delete.commit.failed;
}

/* The item's data, or NULL when there is no such item (or it cannot be read: *failed). */
static inline const char *fixture_get(struct fixture *fixture, const char *pk, const char *sk)
{
    struct image image;
    struct map item;
    if (engine_get(fixture->engine, fixture->table, fixture_key(fixture, pk, sk), &image) != ENGINE_OK)
        return NULL;
    struct slice bytes = arena_copy(&fixture->arena, image.bytes);
    image_release(&image);
    ensure(item_decode(&fixture->arena, bytes, &item));
    const struct value *data = map_find(&item, SLICE("data"));
    return data ? arena_copy(&fixture->arena, data->bytes).data : "";
}

#endif
