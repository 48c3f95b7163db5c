/* Pages, ranges of keys, segments, the cache's bound, and the printer of stored entries. */
#include "unit/engine_fixture.h"

static void note_item(void *context, struct slice encoded, const struct map *item)
{
    struct buf *seen = context;
    (void)encoded;
    buf_slice(seen, map_find(item, SLICE("sk"))->bytes);
    buf_byte(seen, ' ');
}

static struct page page_of(struct fixture *fixture, struct buf *from, struct buf *to, struct buf *seen)
{
    return (struct page){.from = buf_view(from),
                         .to = buf_view(to),
                         .scratch = &fixture->arena,
                         .emit = note_item,
                         .context = seen,
                         .decode = true};
}

static const char *query(struct fixture *fixture, enum key_compare compare, const char *first,
                         const char *second, bool backwards)
{
    struct value hash = text_value("a"), one = number_value(first), two = number_value(second);
    struct key_condition condition = {
        .hash = {&hash}, .hash_count = 1, .compare = compare, .range = {&one, &two}};
    struct buf from = {0}, to = {0}, seen = {0};
    if (engine_query_range(fixture->table, &condition, &from, &to)) {
        struct page page = page_of(fixture, &from, &to, &seen);
        page.backwards = backwards;
        CHECK_INT(engine_page(fixture->engine, &page), ENGINE_OK);
    }
    struct slice text = arena_copy(&fixture->arena, buf_view(&seen));
    buf_free(&from);
    buf_free(&to);
    buf_free(&seen);
    return text.data;
}

TEST(engine_query_ranges)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    const char *numbers[] = {"-10", "-1.5", "0", "1", "2", "10", "100"};
    for (size_t i = 0; i < 7; i++) {
        CHECK(fixture_put(&fixture, "a", numbers[i], "x"));
        CHECK(fixture_put(&fixture, "b", numbers[i], "x"));
    }
    CHECK_TEXT(slice_of(query(&fixture, KEY_NONE, "0", "0", false)), "-10 -1.5 0 1 2 10 100 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_NONE, "0", "0", true)), "100 10 2 1 0 -1.5 -10 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_EQ, "2", "0", false)), "2 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_EQ, "3", "0", false)), "");
    CHECK_TEXT(slice_of(query(&fixture, KEY_LT, "0", "0", false)), "-10 -1.5 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_LE, "0", "0", false)), "-10 -1.5 0 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_GT, "2", "0", false)), "10 100 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_GE, "2", "0", false)), "2 10 100 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_BETWEEN, "-1.5", "2", false)), "-1.5 0 1 2 ");
    CHECK_TEXT(slice_of(query(&fixture, KEY_BETWEEN, "5", "3", false)), "");
    fixture_close(&fixture);
}

TEST(engine_page_ends_at_its_limit_and_goes_on)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    for (int i = 0; i < 10; i++) {
        char sk[16];
        snprintf(sk, sizeof sk, "%d", i);
        CHECK(fixture_put(&fixture, "a", sk, "x"));
    }
    struct buf from = {0}, to = {0}, seen = {0};
    engine_scan_range(fixture.table, 0, 1, &from, &to);
    struct page page = page_of(&fixture, &from, &to, &seen);
    page.limit = 4;
    CHECK_INT(engine_page(fixture.engine, &page), ENGINE_OK);
    CHECK(page.more);
    CHECK_INT(page.scanned, 4);
    CHECK_TEXT(buf_view(&seen), "0 1 2 3 ");
    CHECK_TEXT(map_find(&page.last, SLICE("sk"))->bytes, "3");
    page.limit = 11;
    CHECK_INT(engine_page(fixture.engine, &page), ENGINE_OK);
    CHECK(!page.more);
    CHECK_INT(page.scanned, 10);
    buf_free(&from);
    buf_free(&to);
    buf_free(&seen);
    fixture_close(&fixture);
}

TEST(engine_segments_share_a_table_without_overlap)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    for (int i = 0; i < 200; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "p%d", i);
        CHECK(fixture_put(&fixture, pk, "1", "x"));
    }
    for (uint32_t segments = 1; segments <= 7; segments += 3) {
        uint64_t total = 0;
        for (uint32_t segment = 0; segment < segments; segment++) {
            struct buf from = {0}, to = {0}, seen = {0};
            engine_scan_range(fixture.table, segment, segments, &from, &to);
            struct page page = page_of(&fixture, &from, &to, &seen);
            CHECK_INT(engine_page(fixture.engine, &page), ENGINE_OK);
            CHECK(page.scanned > 200 / segments / 3);
            total += page.scanned;
            buf_free(&from);
            buf_free(&to);
            buf_free(&seen);
        }
        CHECK_INT(total, 200);
    }
    fixture_close(&fixture);
}

TEST(engine_cache_stays_within_its_bound)
{
    struct fixture fixture;
    fixture_open(&fixture, true);
    char data[1001];
    memset(data, 'x', 1000);
    data[1000] = 0;
    for (int i = 0; i < 2000; i++) {
        char pk[16];
        snprintf(pk, sizeof pk, "p%d", i);
        CHECK(fixture_put(&fixture, pk, "1", data));
        arena_reset(&fixture.arena);
    }
    CHECK(engine_cache_bytes(fixture.engine) <= 1 << 20);
    CHECK(engine_cache_bytes(fixture.engine) > 1 << 19);
    CHECK_TEXT(slice_of(fixture_get(&fixture, "p0", "1")), data);
    CHECK_INT(fixture.table->counts->items, 2000);
    fixture_close(&fixture);
}

TEST(engine_capacity_rounds_as_the_service_does)
{
    CHECK(capacity_read(0, true) == 1);
    CHECK(capacity_read(0, false) == 0.5);
    CHECK(capacity_read(4096, true) == 1);
    CHECK(capacity_read(4097, true) == 2);
    CHECK(capacity_read(4097, false) == 1);
    CHECK(capacity_write(0, 0) == 1);
    CHECK(capacity_write(1024, 1) == 1);
    CHECK(capacity_write(1025, 1) == 2);
}

static bool note_entry(void *context, enum stored_kind kind, struct slice meaning, struct slice value)
{
    struct buf *out = context;
    (void)value;
    (void)kind;
    buf_slice(out, meaning);
    buf_byte(out, '\n');
    return true;
}

TEST(engine_show_names_every_entry)
{
    struct fixture fixture = {0};
    struct store *store = store_open_memory(NULL);
    struct buf out = {0};
    ensure(fixture_open_store(&fixture, store, true));
    ensure(fixture_create(&fixture));
    CHECK(fixture_put(&fixture, "a\"b", "-1.5", "x"));
    CHECK(engine_show(store, note_entry, &out));
    CHECK_TEXT(buf_view(&out), "counts of table 1 (things)\nitem of things: pk=\"a\\\"b\" sk=-1.5\n"
                               "setting next-table\ndefinition of table 1 (things)\n");
    buf_free(&out);
    fixture_close(&fixture);
}

TEST(engine_check_finds_what_is_wrong)
{
    struct fixture fixture = {0};
    struct store *store = store_open_memory(NULL);
    struct store_batch batch = {0};
    struct check_report report;
    struct buf out = {0};
    ensure(fixture_open_store(&fixture, store, true));
    ensure(fixture_create(&fixture));
    CHECK(fixture_put(&fixture, "a", "1", "x"));
    CHECK(engine_check(store, &report, &out));
    CHECK_INT(report.faults, 0);
    CHECK_INT(report.items, 1);
    struct buf bytes = {0};
    struct map item = fixture_item(&fixture, "b", "2", "y");
    item_encode(&bytes, &item);
    store_batch_put(&batch, fixture_key(&fixture, "c", "3"), buf_view(&bytes));
    store_batch_put(&batch, fixture_key(&fixture, "d", "4"), SLICE("\x7frubbish"));
    CHECK_INT(store_write(store, &batch, true), STORE_OK);
    CHECK(engine_check(store, &report, &out));
    CHECK_INT(report.faults, 3); /* another's key, damaged, counts */
    buf_free(&bytes);
    buf_free(&out);
    store_batch_free(&batch);
    fixture_close(&fixture);
}
