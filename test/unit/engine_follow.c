/* What follows from a write: index entries, stream records, expiries; and that they always agree with the
 * items. */
#include "base/random.h"
#include "unit/engine_fixture.h"

enum { NOW_MS = 1700000000 };
#define START_MS (NOW_MS * 1000ll)

static struct index_definition indexes[] = {
    {.name = SLICE("by-data"),
     .global = true,
     .hash_count = 1,
     .hash = {SLICE("data")},
     .projection = PROJECT_ALL},
    {.name = SLICE("by-rank"),
     .global = true,
     .hash_count = 1,
     .hash = {SLICE("pk")},
     .range_count = 1,
     .range = {SLICE("rank")},
     .projection = PROJECT_KEYS_ONLY},
    {.name = SLICE("local"),
     .hash_count = 1,
     .hash = {SLICE("pk")},
     .range_count = 1,
     .range = {SLICE("rank")},
     .projection = PROJECT_ALL},
};
static struct key_attribute attributes[] = {
    {SLICE("pk"), VALUE_S}, {SLICE("sk"), VALUE_N}, {SLICE("data"), VALUE_S}, {SLICE("rank"), VALUE_N}};

static struct table_definition full_definition(void)
{
    struct table_definition definition = things_definition();
    definition.attributes = attributes;
    definition.attribute_count = 4;
    definition.indexes = indexes;
    definition.index_count = 3;
    definition.stream = STREAM_NEW_AND_OLD_IMAGES;
    definition.stream_since_ms = START_MS;
    definition.ttl_attribute = SLICE("ends");
    return definition;
}

static void change_table(struct fixture *fixture, const struct table_definition *definition,
                         enum table_change_result (*change)(struct batch *, const struct table_definition *))
{
    struct table_commit commit = {
        .commit = {.apply = apply_table}, .definition = definition, .change = change};
    engine_commit(fixture->engine, &commit.commit);
    CHECK(!commit.commit.failed);
    CHECK_INT(commit.result, TABLE_CHANGED);
    if (fixture->table) engine_table_release(fixture->table);
    fixture->table = engine_table_find(fixture->engine, definition->name);
}

static void open_full(struct fixture *fixture)
{
    struct table_definition definition = full_definition();
    *fixture = (struct fixture){.now_ms = START_MS};
    ensure(fixture_open_store(fixture, store_open_memory(&fixture->faults), true));
    change_table(fixture, &definition, engine_table_create);
}

static void check_clean(struct fixture *fixture)
{
    struct check_report report;
    struct buf out = {0};
    CHECK(engine_check(fixture->store, &report, &out));
    if (report.faults) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&out)));
    buf_free(&out);
}

/* The item with data, rank and ends; NULL leaves one out. */
static bool put_full(struct fixture *fixture, const char *pk, const char *sk, const char *data,
                     const char *rank, const char *ends)
{
    struct write_commit put = fixture_write(fixture, WRITE_PUT, pk, sk, data);
    struct value rank_value = number_value(rank ? rank : "0"), ends_value = number_value(ends ? ends : "0");
    if (rank) put.write.item = map_with(&fixture->arena, &put.write.item, SLICE("rank"), &rank_value);
    if (ends) put.write.item = map_with(&fixture->arena, &put.write.item, SLICE("ends"), &ends_value);
    engine_commit(fixture->engine, &put.commit);
    return !put.commit.failed && put.write.outcome == WRITE_APPLIED;
}

/* ---- indexes ---- */

static void note_key(void *context, struct slice encoded, const struct map *item)
{
    struct buf *seen = context;
    (void)encoded;
    buf_slice(seen, map_find(item, SLICE("pk"))->bytes);
    buf_slice(seen, map_find(item, SLICE("sk"))->bytes);
    buf_byte(seen, ' ');
}

static const char *query_index(struct fixture *fixture, const char *index_name, const struct value *hash,
                               enum key_compare compare, const struct value *range)
{
    const struct index_definition *index = table_index_find(fixture->table, slice_of(index_name));
    struct key_condition condition = {
        .hash = {hash}, .hash_count = 1, .compare = compare, .range = {range, NULL}};
    struct buf from = {0}, to = {0}, seen = {0};
    CHECK(engine_index_query_range(fixture->table, index, &condition, &from, &to));
    struct page page = {.from = buf_view(&from),
                        .to = buf_view(&to),
                        .scratch = &fixture->arena,
                        .emit = note_key,
                        .context = &seen,
                        .decode = true};
    CHECK_INT(engine_page(fixture->engine, &page), ENGINE_OK);
    struct slice text = arena_copy(&fixture->arena, buf_view(&seen));
    buf_free(&from);
    buf_free(&to);
    buf_free(&seen);
    return text.data;
}

TEST(engine_index_entries_follow_their_items)
{
    struct fixture fixture;
    struct value red = text_value("red"), blue = text_value("blue"), a = text_value("a"),
                 two = number_value("2");
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "red", "3", NULL));
    CHECK(put_full(&fixture, "a", "2", "red", "2", NULL));
    CHECK(put_full(&fixture, "a", "3", "blue", "1", NULL));
    CHECK(put_full(&fixture, "b", "4", NULL, NULL, NULL));
    CHECK_TEXT(slice_of(query_index(&fixture, "by-data", &red, KEY_NONE, NULL)), "a1 a2 ");
    CHECK_TEXT(slice_of(query_index(&fixture, "by-rank", &a, KEY_NONE, NULL)), "a3 a2 a1 ");
    CHECK_TEXT(slice_of(query_index(&fixture, "by-rank", &a, KEY_GE, &two)), "a2 a1 ");
    CHECK(put_full(&fixture, "a", "1", "blue", NULL, NULL));
    CHECK_TEXT(slice_of(query_index(&fixture, "by-data", &red, KEY_NONE, NULL)), "a2 ");
    CHECK_TEXT(slice_of(query_index(&fixture, "by-data", &blue, KEY_NONE, NULL)), "a1 a3 ");
    CHECK_TEXT(slice_of(query_index(&fixture, "by-rank", &a, KEY_NONE, NULL)), "a3 a2 ");
    CHECK(fixture_delete(&fixture, "a", "3"));
    CHECK_TEXT(slice_of(query_index(&fixture, "by-data", &blue, KEY_NONE, NULL)), "a1 ");
    CHECK_INT(fixture.table->index_counts[0]->items, 2);
    CHECK_INT(fixture.table->index_counts[1]->items, 1);
    check_clean(&fixture);
    fixture_close(&fixture);
}

TEST(engine_index_of_a_filled_table_is_filled_while_it_is_written)
{
    struct fixture fixture = {.now_ms = START_MS};
    ensure(fixture_open_store(&fixture, store_open_memory(&fixture.faults), true));
    ensure(fixture_create(&fixture));
    for (int i = 0; i < 1000; i++) {
        char sk[16];
        snprintf(sk, sizeof sk, "%d", i);
        CHECK(put_full(&fixture, "a", sk, i % 2 ? "odd" : "even", NULL, NULL));
    }
    struct table_definition definition = full_definition();
    definition.index_count = 2; /* local indexes are made with their table only */
    change_table(&fixture, &definition, engine_table_replace);
    CHECK_INT(fixture.table->definition.indexes[0].status, INDEX_CREATING);
    check_clean(&fixture);
    /* before the backfill: a change, a deletion, a new item */
    CHECK(put_full(&fixture, "a", "10", "odd", "1", NULL));
    CHECK(fixture_delete(&fixture, "a", "20"));
    CHECK(put_full(&fixture, "b", "1", "even", "5", NULL));
    check_clean(&fixture);
    engine_wait_idle(fixture.engine);
    engine_table_release(fixture.table);
    fixture.table = engine_table_find(fixture.engine, SLICE("things"));
    CHECK_INT(fixture.table->definition.indexes[0].status, INDEX_ACTIVE);
    CHECK_INT(fixture.table->index_counts[0]->items, 1000);
    CHECK_INT(fixture.table->index_counts[1]->items, 2);
    check_clean(&fixture);
    /* and without it again */
    definition.index_count = 1;
    definition.indexes = fixture.table->definition.indexes;
    change_table(&fixture, &definition, engine_table_replace);
    check_clean(&fixture);
    fixture_close(&fixture);
}

TEST(engine_index_of_an_empty_table_is_there_at_once)
{
    struct fixture fixture = {.now_ms = START_MS};
    ensure(fixture_open_store(&fixture, store_open_memory(&fixture.faults), true));
    ensure(fixture_create(&fixture));
    CHECK(put_full(&fixture, "a", "1", "red", NULL, NULL));
    CHECK(fixture_delete(&fixture, "a", "1"));
    struct table_definition definition = full_definition();
    definition.index_count = 2;
    change_table(&fixture, &definition, engine_table_replace);
    CHECK_INT(fixture.table->definition.indexes[0].status, INDEX_ACTIVE);
    CHECK(put_full(&fixture, "a", "1", "red", NULL, NULL));
    check_clean(&fixture);
    fixture_close(&fixture);
}

/* An index by data and rank, ordered by two more attributes. */
TEST(engine_index_keys_of_several_attributes)
{
    static struct index_definition compound = {.name = SLICE("compound"),
                                               .global = true,
                                               .hash_count = 2,
                                               .hash = {SLICE("data"), SLICE("rank")},
                                               .range_count = 2,
                                               .range = {SLICE("pk"), SLICE("sk")},
                                               .projection = PROJECT_ALL};
    struct fixture fixture;
    struct table_definition definition = full_definition();
    struct value red = text_value("red"), two = number_value("2"), a = text_value("a"),
                 ten = number_value("10");
    struct buf from = {0}, to = {0}, seen = {0};
    fixture = (struct fixture){.now_ms = START_MS};
    ensure(fixture_open_store(&fixture, store_open_memory(&fixture.faults), true));
    definition.indexes = &compound;
    definition.index_count = 1;
    change_table(&fixture, &definition, engine_table_create);
    CHECK(put_full(&fixture, "b", "1", "red", "2", NULL));
    CHECK(put_full(&fixture, "a", "20", "red", "2", NULL));
    CHECK(put_full(&fixture, "a", "3", "red", "2", NULL));
    CHECK(put_full(&fixture, "a", "4", "red", "3", NULL));
    CHECK(put_full(&fixture, "a", "5", "red", NULL, NULL));
    struct key_condition condition = {.hash = {&red, &two},
                                      .hash_count = 2,
                                      .equal = {&a},
                                      .equal_count = 1,
                                      .compare = KEY_LT,
                                      .range = {&ten, NULL}};
    for (int narrow = 0; narrow < 2; narrow++) {
        if (!narrow)
            condition.equal_count = 0, condition.compare = KEY_NONE;
        else
            condition.equal_count = 1, condition.compare = KEY_LT;
        from.len = to.len = seen.len = 0;
        CHECK(engine_index_query_range(fixture.table, &fixture.table->definition.indexes[0], &condition,
                                       &from, &to));
        struct page page = {.from = buf_view(&from),
                            .to = buf_view(&to),
                            .scratch = &fixture.arena,
                            .emit = note_key,
                            .context = &seen,
                            .decode = true};
        CHECK_INT(engine_page(fixture.engine, &page), ENGINE_OK);
        CHECK_TEXT(buf_view(&seen), narrow ? "a3 " : "a3 a20 b1 ");
    }
    CHECK_INT(fixture.table->index_counts[0]->items, 4);
    check_clean(&fixture);
    buf_free(&from);
    buf_free(&to);
    buf_free(&seen);
    fixture_close(&fixture);
}

static uint64_t collection_bytes(struct fixture *fixture, const char *hash)
{
    struct value value = text_value(hash);
    uint64_t bytes;
    CHECK(engine_collection_bytes(fixture->engine, fixture->table, &value, &bytes) != ENGINE_FAILED);
    return bytes;
}

/* pk and sk weigh 3 + 4 bytes, data 4 and what it says, rank 4 + 2; an item with a rank counts twice. */
TEST(engine_item_collections_are_accounted_for)
{
    struct fixture fixture;
    open_full(&fixture);
    CHECK_INT(collection_bytes(&fixture, "a"), 0);
    CHECK(put_full(&fixture, "a", "1", "red", NULL, NULL));
    CHECK_INT(collection_bytes(&fixture, "a"), 14);
    CHECK(put_full(&fixture, "a", "2", "red", "1", NULL));
    CHECK_INT(collection_bytes(&fixture, "a"), 14 + 2 * 20);
    CHECK(put_full(&fixture, "b", "2", "red", "1", NULL));
    CHECK(put_full(&fixture, "a", "2", "redder", "1", NULL));
    CHECK_INT(collection_bytes(&fixture, "a"), 14 + 2 * 23);
    CHECK(put_full(&fixture, "a", "2", "redder", NULL, NULL));
    CHECK_INT(collection_bytes(&fixture, "a"), 14 + 17);
    CHECK(fixture_delete(&fixture, "a", "1"));
    CHECK(fixture_delete(&fixture, "a", "2"));
    CHECK_INT(collection_bytes(&fixture, "a"), 0);
    CHECK_INT(collection_bytes(&fixture, "b"), 40);
    check_clean(&fixture);
    fixture_close(&fixture);
}

/* ---- streams ---- */

struct replay {
    struct fixture *fixture;
    struct arena arena;
    struct map state; /* the table rebuilt: "pk/sk" -> the item */
    uint64_t records, last;
    bool in_order;
};

static bool apply_record(void *context, uint64_t sequence, struct slice bytes)
{
    struct replay *replay = context;
    struct map record;
    CHECK(item_decode(&replay->arena, arena_copy(&replay->arena, bytes), &record));
    const struct value *keys = map_find(&record, SLICE("keys")), *new = map_find(&record, SLICE("new"));
    struct slice name = arena_printf(&replay->arena, "%.*s/%.*s",
                                     SLICE_ARG(map_find(&keys->map, SLICE("pk"))->bytes),
                                     SLICE_ARG(map_find(&keys->map, SLICE("sk"))->bytes));
    const struct value *before = map_find(&replay->state, name), *old = map_find(&record, SLICE("old"));
    CHECK((before != NULL) == (old != NULL));
    if (before && old) CHECK(map_equal(&before->map, &old->map));
    replay->state = new ? map_with(&replay->arena, &replay->state, name, new)
                        : map_without(&replay->arena, &replay->state, name);
    if (sequence <= replay->last) replay->in_order = false;
    replay->last = sequence;
    replay->records++;
    return true;
}

/* Reads all shards, parents before children as their numbers are. */
static struct replay replay_all(struct fixture *fixture)
{
    struct replay replay = {.fixture = fixture, .in_order = true};
    struct stream *stream = engine_stream_find(fixture->engine, fixture->table->definition.stream_number);
    CHECK(stream != NULL);
    for (uint32_t i = 0; stream && i < stream->shard_count; i++) {
        replay.last = 0;
        CHECK_INT(engine_stream_read(fixture->engine, stream->number, stream->shards[i].number, 0,
                                     apply_record, &replay),
                  ENGINE_OK);
    }
    CHECK(replay.in_order);
    if (stream) engine_stream_release(stream);
    return replay;
}

static void compare_with_table(void *context, struct slice encoded, const struct map *item)
{
    struct replay *replay = context;
    (void)encoded;
    struct slice name = arena_printf(&replay->arena, "%.*s/%.*s",
                                     SLICE_ARG(map_find(item, SLICE("pk"))->bytes),
                                     SLICE_ARG(map_find(item, SLICE("sk"))->bytes));
    const struct value *rebuilt = map_find(&replay->state, name);
    CHECK(rebuilt && map_equal(&rebuilt->map, item));
}

static void check_stream_gives_table(struct fixture *fixture)
{
    struct replay replay = replay_all(fixture);
    struct buf from = {0}, to = {0};
    engine_scan_range(fixture->table, 0, 1, &from, &to);
    struct page page = {.from = buf_view(&from),
                        .to = buf_view(&to),
                        .scratch = &fixture->arena,
                        .emit = compare_with_table,
                        .context = &replay,
                        .decode = true};
    CHECK_INT(engine_page(fixture->engine, &page), ENGINE_OK);
    CHECK_INT(page.scanned, replay.state.count);
    buf_free(&from);
    buf_free(&to);
    arena_free(&replay.arena);
}

struct roll {
    struct commit commit;
    uint32_t stream, shard;
    bool split, rolled;
};

static void apply_roll(struct commit *commit, struct batch *batch)
{
    struct roll *roll = (struct roll *)commit;
    roll->rolled = engine_shard_roll(batch, roll->stream, roll->shard, roll->split);
}

TEST(engine_stream_has_each_change_once)
{
    struct fixture fixture;
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "x", NULL, NULL));
    CHECK(put_full(&fixture, "a", "1", "x", NULL, NULL)); /* changes nothing: no record */
    CHECK(put_full(&fixture, "a", "1", "y", NULL, NULL));
    CHECK(fixture_delete(&fixture, "a", "1"));
    CHECK(fixture_delete(&fixture, "a", "1"));
    struct replay replay = replay_all(&fixture);
    CHECK_INT(replay.records, 3);
    CHECK_INT(replay.state.count, 0);
    CHECK_INT(engine_stream_next(fixture.engine), 4);
    arena_free(&replay.arena);
    check_clean(&fixture);
    fixture_close(&fixture);
}

TEST(engine_stream_shards_split_and_keep_order)
{
    struct fixture fixture;
    open_full(&fixture);
    for (int i = 0; i < 400; i++) {
        char pk[16], data[16];
        snprintf(pk, sizeof pk, "p%d", i % 20);
        snprintf(data, sizeof data, "d%d", i);
        CHECK(put_full(&fixture, pk, "1", data, NULL, NULL));
        if (i % 100 == 50) {
            struct roll roll = {.commit = {.apply = apply_roll},
                                .stream = fixture.table->definition.stream_number,
                                .shard = 1 + (uint32_t)i / 100,
                                .split = i > 100};
            engine_commit(fixture.engine, &roll.commit);
            CHECK(roll.rolled);
        }
    }
    struct stream *stream = engine_stream_find(fixture.engine, fixture.table->definition.stream_number);
    CHECK_INT(stream->shard_count, 4 + 1 + 3 * 2);
    engine_stream_release(stream);
    check_stream_gives_table(&fixture);
    check_clean(&fixture);
    fixture_close(&fixture);
}

TEST(engine_stream_records_are_trimmed_after_a_day)
{
    struct fixture fixture;
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "x", NULL, NULL));
    fixture.now_ms += 13 * 3600 * 1000;
    CHECK(put_full(&fixture, "a", "2", "x", NULL, NULL));
    engine_wait_idle(fixture.engine);
    struct replay replay = replay_all(&fixture);
    CHECK_INT(replay.records, 2);
    arena_free(&replay.arena);
    fixture.now_ms += 13 * 3600 * 1000;
    CHECK(put_full(&fixture, "a", "3", "x", NULL, NULL));
    engine_wait_idle(fixture.engine);
    replay = replay_all(&fixture);
    CHECK_INT(replay.records, 2);
    arena_free(&replay.arena);
    check_clean(&fixture);
    fixture_close(&fixture);
}

/* ---- expiry ---- */

TEST(engine_expired_items_go_and_the_stream_says_why)
{
    struct fixture fixture;
    char soon[24], later[24], ancient[24];
    snprintf(soon, sizeof soon, "%d", NOW_MS + 10);
    snprintf(later, sizeof later, "%d", NOW_MS + 1000);
    snprintf(ancient, sizeof ancient, "%d", NOW_MS - 6 * 365 * 86400);
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "x", NULL, soon));
    CHECK(put_full(&fixture, "a", "2", "x", NULL, later));
    CHECK(put_full(&fixture, "a", "3", "x", NULL, ancient));
    CHECK(put_full(&fixture, "a", "4", "x", NULL, soon));
    CHECK(put_full(&fixture, "a", "4", "x", NULL, later)); /* saved in time */
    engine_wait_idle(fixture.engine);
    CHECK_INT(fixture.table->counts->items, 4);
    fixture.now_ms += 11 * 1000;
    engine_wait_idle(fixture.engine);
    CHECK_INT(fixture.table->counts->items, 3);
    CHECK(fixture_get(&fixture, "a", "1") == NULL);
    CHECK(fixture_get(&fixture, "a", "4") != NULL);
    check_clean(&fixture);
    check_stream_gives_table(&fixture);
    fixture.now_ms += 1000 * 1000;
    engine_wait_idle(fixture.engine);
    CHECK_INT(fixture.table->counts->items, 1); /* what ended years ago stays */
    check_clean(&fixture);
    fixture_close(&fixture);
}

/* ---- tokens ---- */

struct token_commit {
    struct commit commit;
    struct arena arena;
    const char *token;
    uint64_t payload;
    enum token_result result;
    struct slice note;
};

static void apply_token(struct commit *commit, struct batch *batch)
{
    struct token_commit *own = (struct token_commit *)commit;
    own->result = engine_token_check(batch, &own->arena, slice_of(own->token), own->payload, &own->note);
    if (own->result == TOKEN_NEW) engine_token_keep(batch, slice_of(own->token), own->payload, SLICE("note"));
}

static enum token_result use_token(struct fixture *fixture, const char *token, uint64_t payload)
{
    struct token_commit use = {.commit = {.apply = apply_token}, .token = token, .payload = payload};
    engine_commit(fixture->engine, &use.commit);
    if (use.result == TOKEN_SAME) CHECK_TEXT(use.note, "note");
    arena_free(&use.arena);
    return use.result;
}

static bool count_entry(void *context, enum stored_kind kind, struct slice meaning, struct slice value)
{
    (void)kind;
    (void)value;
    if (slice_contains(meaning, SLICE("token"))) ++*(int *)context;
    return true;
}

TEST(engine_tokens_are_known_for_ten_minutes)
{
    struct fixture fixture;
    int entries = 0;
    open_full(&fixture);
    CHECK_INT(use_token(&fixture, "one", 1), TOKEN_NEW);
    CHECK_INT(use_token(&fixture, "one", 1), TOKEN_SAME);
    CHECK_INT(use_token(&fixture, "one", 2), TOKEN_DIFFERENT);
    CHECK_INT(use_token(&fixture, "two", 2), TOKEN_NEW);
    fixture.now_ms += 9 * 60 * 1000;
    engine_wait_idle(fixture.engine);
    CHECK_INT(use_token(&fixture, "one", 1), TOKEN_SAME);
    fixture.now_ms += 61 * 1000;
    CHECK_INT(use_token(&fixture, "one", 3), TOKEN_NEW);
    engine_wait_idle(fixture.engine);
    CHECK(engine_show(fixture.store, count_entry, &entries));
    CHECK_INT(entries, 2); /* of "one", used again; "two" is forgotten */
    fixture_close(&fixture);
}

/* ---- snapshots ---- */

TEST(engine_goes_back_to_a_snapshot)
{
    struct fixture fixture;
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "before", "1", NULL));
    struct engine_snapshot *snapshot = engine_snapshot_take(fixture.engine);
    for (int round = 0; round < 3; round++) {
        CHECK(put_full(&fixture, "a", "1", "after", "2", NULL));
        CHECK(put_full(&fixture, "a", "2", "after", "2", NULL));
        struct table *old = fixture.table;
        CHECK(fixture_drop(&fixture));
        engine_snapshot_restore(fixture.engine, snapshot);
        fixture.table = engine_table_find(fixture.engine, SLICE("things"));
        engine_table_release(old);
        CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "before");
        CHECK(fixture_get(&fixture, "a", "2") == NULL);
        CHECK_INT(fixture.table->counts->items, 1);
        CHECK_INT(engine_stream_next(fixture.engine), 2);
        check_clean(&fixture);
        check_stream_gives_table(&fixture);
    }
    engine_snapshot_free(snapshot);
    fixture_close(&fixture);
}

/* ---- everything together ---- */

static void random_step(struct fixture *fixture, struct random *random)
{
    char pk[16], sk[16], rank[16], data[16], ends[24];
    snprintf(pk, sizeof pk, "p%d", (int)random_below(random, 5));
    snprintf(sk, sizeof sk, "%d", (int)random_below(random, 6));
    snprintf(rank, sizeof rank, "%d", (int)random_below(random, 4));
    snprintf(data, sizeof data, "d%d", (int)random_below(random, 4));
    snprintf(ends, sizeof ends, "%lld", (long long)(fixture->now_ms / 1000 + (int)random_below(random, 20)));
    bool with_rank = random_below(random, 2), with_ends = random_below(random, 3) == 0;
    switch (random_below(random, 8)) {
    case 0: fixture_delete(fixture, pk, sk); break;
    case 1: fixture->now_ms += (int64_t)random_below(random, 5000); break;
    case 2: engine_keep_house(fixture->engine); break;
    default: put_full(fixture, pk, sk, data, with_rank ? rank : NULL, with_ends ? ends : NULL); break;
    }
}

TEST(engine_random_operations_leave_all_in_agreement)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture fixture;
        struct random random;
        open_full(&fixture);
        random_seed(&random, seed);
        for (int i = 0; i < 300; i++) {
            random_step(&fixture, &random);
            if (i % 50 == 0) check_clean(&fixture);
        }
        check_clean(&fixture);
        check_stream_gives_table(&fixture);
        fixture_close(&fixture);
    }
}

/* The same with a store that fails at every call in turn: what is left checks clean after a restart. */
TEST(engine_random_operations_survive_a_failure_of_any_store_call)
{
    bool finished = false;
    for (uint64_t n = 1; !finished; n += 1 + n / 40) {
        struct fixture fixture = {.now_ms = START_MS};
        struct table_definition definition = full_definition();
        struct random random;
        char error[700];
        ensure(n < 10000);
        ensure(fixture_open_store(&fixture, store_open_memory(&fixture.faults), true));
        change_table(&fixture, &definition, engine_table_create);
        fixture.faults.fail_at = fixture.faults.calls + n;
        random_seed(&random, 7);
        for (int i = 0; i < 200 && !engine_has_failed(fixture.engine, error, sizeof error); i++)
            random_step(&fixture, &random);
        finished = !engine_has_failed(fixture.engine, error, sizeof error);
        fixture.faults.fail_at = 0;
        struct store_snapshot *left = store_snapshot_take(fixture.store);
        fixture_close(&fixture);
        fixture = (struct fixture){.now_ms = START_MS + 86400};
        struct store *store = store_open_memory(NULL);
        store_snapshot_restore(store, left);
        store_snapshot_free(left);
        CHECK(fixture_open_store(&fixture, store, true));
        fixture.table = engine_table_find(fixture.engine, SLICE("things"));
        engine_wait_idle(fixture.engine);
        check_clean(&fixture);
        check_stream_gives_table(&fixture);
        fixture_close(&fixture);
    }
}

/* ---- no room ---- */

/* A store that has no room now and then: what was refused has left no trace, also not of a table that was dropped or
 * made, and the rest goes on. */
TEST(engine_random_operations_go_on_when_there_is_room_again)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture fixture;
        struct random random;
        char error[700];
        open_full(&fixture);
        random_seed(&random, seed);
        for (int i = 0; i < 300; i++) {
            if (random_below(&random, 5) == 0) fixture.faults.is_full = !fixture.faults.is_full;
            random_step(&fixture, &random);
            if (i % 50 == 0) check_clean(&fixture);
        }
        fixture.faults.is_full = false;
        CHECK(put_full(&fixture, "a", "1", "last", "1", NULL));
        CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "last");
        CHECK(!engine_has_failed(fixture.engine, error, sizeof error));
        engine_wait_idle(fixture.engine);
        check_clean(&fixture);
        check_stream_gives_table(&fixture);
        fixture_close(&fixture);
    }
}

TEST(engine_without_room_changes_no_table)
{
    struct fixture fixture;
    open_full(&fixture);
    CHECK(put_full(&fixture, "a", "1", "before", "1", NULL));
    uint64_t next = engine_stream_next(fixture.engine);
    fixture.faults.is_full = true;
    CHECK(!put_full(&fixture, "a", "1", "after", "2", NULL));
    CHECK_TEXT(slice_of(fixture_get(&fixture, "a", "1")), "before");
    CHECK(!fixture_drop(&fixture));
    struct table_definition fewer = things_definition();
    struct table_commit replace = {
        .commit = {.apply = apply_table}, .definition = &fewer, .change = engine_table_replace};
    engine_commit(fixture.engine, &replace.commit);
    CHECK(replace.commit.failed);
    fixture.faults.is_full = false;
    CHECK_INT(engine_stream_next(fixture.engine), next);
    CHECK(put_full(&fixture, "a", "2", "later", "2", NULL));
    CHECK_INT(fixture.table->counts->items, 2);
    check_clean(&fixture);
    check_stream_gives_table(&fixture);
    fixture_close(&fixture);
}
