/* What every store does: memory, disk, or memory over another store. The last test compares each with a model that
 * cannot be wrong: an array. */
#include <stdlib.h>

#include "base/random.h"
#include "unit/store_fixture.h"

EACH(missing_and_found)
{
    CHECK_TEXT(value_of(store, "a"), "(missing)");
    put(store, "a", "1");
    CHECK_TEXT(value_of(store, "a"), "1");
    put(store, "a", "2");
    CHECK_TEXT(value_of(store, "a"), "2");
    CHECK_TEXT(value_of(store, "ab"), "(missing)");
    CHECK_TEXT(value_of(store, ""), "(missing)");
}

EACH(get_appends)
{
    struct buf value = {0};
    put(store, "a", "1");
    put(store, "b", "");
    buf_text(&value, "x");
    CHECK(store_get(store, SLICE("a"), &value) == STORE_OK);
    CHECK(store_get(store, SLICE("b"), &value) == STORE_OK);
    CHECK(store_get(store, SLICE("c"), &value) == STORE_MISSING);
    CHECK_TEXT(buf_view(&value), "x1");
    buf_free(&value);
}

EACH(later_entries_win)
{
    struct store_batch batch = {0};
    put(store, "b", "old");
    store_batch_put(&batch, SLICE("a"), SLICE("1"));
    store_batch_delete(&batch, SLICE("a"));
    store_batch_delete(&batch, SLICE("b"));
    store_batch_put(&batch, SLICE("b"), SLICE("new"));
    store_batch_put(&batch, SLICE("c"), SLICE("1"));
    store_batch_put(&batch, SLICE("c"), SLICE("2"));
    CHECK_INT(batch.count, 6);
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "b=new c=2 ");
    store_batch_free(&batch);
}

EACH(ranges_follow_the_order_of_the_batch)
{
    struct store_batch batch = {0};
    put(store, "b1", "old");
    put(store, "c", "old");
    store_batch_put(&batch, SLICE("b2"), SLICE("before"));
    store_batch_delete_range(&batch, SLICE("b"), SLICE("c"));
    store_batch_put(&batch, SLICE("b3"), SLICE("after"));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "b3=after c=old ");
    store_batch_free(&batch);
}

EACH(an_empty_range_deletes_nothing)
{
    struct store_batch batch = {0};
    put(store, "a", "1");
    store_batch_delete_range(&batch, SLICE("a"), SLICE("a"));
    store_batch_delete_range(&batch, SLICE("b"), SLICE("a"));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "a=1 ");
    store_batch_free(&batch);
}

EACH(an_empty_batch_is_fine)
{
    struct store_batch batch = {0};
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK(store_sync(store) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "");
    store_batch_clear(&batch);
    store_batch_free(&batch);
}

EACH(scans_are_bounded_and_ordered)
{
    for (const char *key = "dbcae"; *key; key++) put(store, (char[]){*key, '\0'}, "");
    CHECK_TEXT(content(store, "", "", false), "a= b= c= d= e= ");
    CHECK_TEXT(content(store, "", "", true), "e= d= c= b= a= ");
    CHECK_TEXT(content(store, "b", "d", false), "b= c= ");
    CHECK_TEXT(content(store, "b", "d", true), "c= b= ");
    CHECK_TEXT(content(store, "bb", "", false), "c= d= e= ");
    CHECK_TEXT(content(store, "bb", "", true), "e= d= c= ");
    CHECK_TEXT(content(store, "", "bb", true), "b= a= ");
    CHECK_TEXT(content(store, "f", "", false), "");
    CHECK_TEXT(content(store, "d", "b", false), "");
    CHECK_TEXT(content(store, "d", "b", true), "");
    CHECK_TEXT(content(store, "c", "c", true), "");
}

EACH(keys_are_bytes)
{
    struct store_batch batch = {0};
    const struct slice keys[] = {SLICE("\0"),   SLICE("\0\0"), SLICE("\0\xff"),
                                 SLICE("\x7f"), SLICE("\x80"), SLICE("\xff\xff")};
    size_t count = sizeof keys / sizeof keys[0];
    for (size_t i = count; i-- > 0;) store_batch_put(&batch, keys[i], keys[i]);
    CHECK(store_write(store, &batch, false) == STORE_OK);
    for (size_t i = 0; i < count; i++) {
        struct buf value = {0};
        CHECK(store_get(store, keys[i], &value) == STORE_OK && slice_equal(buf_view(&value), keys[i]));
        buf_free(&value);
    }
    store_batch_clear(&batch);
    store_batch_delete_range(&batch, keys[1], keys[4]);
    CHECK(store_write(store, &batch, false) == STORE_OK);
    struct buf value = {0};
    CHECK(store_get(store, keys[3], &value) == STORE_MISSING);
    CHECK(store_get(store, keys[0], &value) == STORE_OK);
    CHECK(store_get(store, keys[4], &value) == STORE_OK);
    CHECK_INT(value.len, 2);
    buf_free(&value);
    store_batch_free(&batch);
}

static bool stop_at_three(void *context, struct slice key, struct slice value)
{
    int *visited = context;
    (void)key, (void)value;
    return ++*visited < 3;
}

EACH(a_visitor_may_stop)
{
    for (const char *key = "abcdefgh"; *key; key++) put(store, (char[]){*key, '\0'}, "");
    for (int backwards = 0; backwards < 2; backwards++) {
        int visited = 0;
        CHECK(store_scan(store, SLICE(""), SLICE(""), backwards, stop_at_three, &visited) == STORE_OK);
        CHECK_INT(visited, 3);
    }
}

static bool put_another(void *context, struct slice key, struct slice value)
{
    struct store *store = context;
    char name[8] = "z";
    (void)value;
    snprintf(name + 1, sizeof name - 1, "%.*s", SLICE_ARG(key));
    put(store, name, "");
    CHECK_TEXT(value_of(store, name), "");
    return true;
}

EACH(a_scan_sees_one_moment)
{
    put(store, "a", "");
    put(store, "b", "");
    CHECK(store_scan(store, SLICE(""), SLICE(""), false, put_another, store) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "a= b= za= zb= ");
}

EACH(large_values_come_back)
{
    struct store_batch batch = {0};
    struct buf large = {0}, found = {0};
    for (uint32_t i = 0; i < 400 * 1024 / 4; i++) buf_u32(&large, i * 2654435761u);
    for (char key = 'a'; key < 'f'; key++) store_batch_put(&batch, (struct slice){&key, 1}, buf_view(&large));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK(store_get(store, SLICE("e"), &found) == STORE_OK);
    CHECK(slice_equal(buf_view(&large), buf_view(&found)));
    buf_free(&large);
    buf_free(&found);
    store_batch_free(&batch);
}

EACH(stats_follow_the_content)
{
    struct store_stats before, after;
    struct store_batch batch = {0};
    store_stats(store, &before);
    CHECK_INT(before.keys_estimate, 0);
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%04d", i);
        store_batch_put(&batch, slice_of(key), SLICE("a value of some length, to be counted"));
    }
    CHECK(store_write(store, &batch, false) == STORE_OK);
    store_stats(store, &after);
    CHECK(after.keys_estimate == 500 || after.keys_estimate == 501); /* the disk's has a mark of its own */
    CHECK(after.memory_bytes >= before.memory_bytes + 500 * 40);
    store_batch_free(&batch);
}

/* ---- against a model ---- */

enum { MODEL_KEYS = 300, MODEL_BATCHES = 1500 };

struct model {
    uint32_t values[MODEL_KEYS]; /* 0: absent */
    uint32_t last_value;
};

static struct slice model_key(char text[8], uint64_t number)
{
    return (struct slice){text, (size_t)snprintf(text, 8, "k%03u", (unsigned)number)};
}

static void model_step(struct model *model, struct store_batch *batch, struct random *random)
{
    char name[8], other[8];
    uint64_t key = random_below(random, MODEL_KEYS);
    uint64_t kind = random_below(random, 20);
    if (kind < 12) {
        model->values[key] = ++model->last_value;
        store_batch_put(batch, model_key(name, key), (struct slice){(char *)&model->values[key], 4});
    } else if (kind < 19) {
        model->values[key] = 0;
        store_batch_delete(batch, model_key(name, key));
    } else {
        uint64_t end = key + random_below(random, 40);
        store_batch_delete_range(batch, model_key(name, key), model_key(other, end));
        for (uint64_t i = key; i < end && i < MODEL_KEYS; i++) model->values[i] = 0;
    }
}

struct model_scan {
    const struct model *model;
    uint64_t next, end; /* the keys still to come: next <= key < end */
    bool backwards, wrong;
};

/* The key that the model holds next in the scan's direction; false when there is none. */
static bool model_next(struct model_scan *scan, uint64_t *key)
{
    while (scan->next < scan->end) {
        *key = scan->backwards ? --scan->end : scan->next++;
        if (scan->model->values[*key]) return true;
    }
    return false;
}

static bool model_visit(void *context, struct slice key, struct slice value)
{
    struct model_scan *scan = context;
    char name[8];
    uint64_t expected;
    scan->wrong = !model_next(scan, &expected) || !slice_equal(key, model_key(name, expected)) ||
                  value.len != 4 || memcmp(value.data, &scan->model->values[expected], 4) != 0;
    return !scan->wrong;
}

static bool model_agrees(const struct model *model, struct store *store, uint64_t from, uint64_t to,
                         bool backwards)
{
    char name[8], other[8];
    uint64_t left;
    struct model_scan scan = {model, from, to, backwards, false};
    if (store_scan(store, model_key(name, from), model_key(other, to), backwards, model_visit, &scan) !=
        STORE_OK)
        return false;
    return !scan.wrong && !model_next(&scan, &left);
}

static bool model_agrees_on_one(const struct model *model, struct store *store, uint64_t key)
{
    char name[8];
    struct buf value = {0};
    enum store_result result = store_get(store, model_key(name, key), &value);
    bool agrees = model->values[key]
                      ? result == STORE_OK && value.len == 4 && !memcmp(value.data, &model->values[key], 4)
                      : result == STORE_MISSING;
    buf_free(&value);
    return agrees;
}

EACH(any_sequence_agrees_with_the_model)
{
    struct model model = {0};
    struct random random;
    struct store_batch batch = {0};
    random_seed(&random, 20260806);
    for (int i = 0; i < MODEL_BATCHES; i++) {
        store_batch_clear(&batch);
        for (uint64_t steps = random_below(&random, 12); steps-- > 0;) model_step(&model, &batch, &random);
        CHECK(store_write(store, &batch, false) == STORE_OK);
        uint64_t from = random_below(&random, MODEL_KEYS),
                 to = from + random_below(&random, MODEL_KEYS - from + 1);
        CHECK(model_agrees(&model, store, from, to, i % 2));
        CHECK(model_agrees_on_one(&model, store, random_below(&random, MODEL_KEYS)));
    }
    CHECK(model_agrees(&model, store, 0, MODEL_KEYS, false));
    CHECK(model_agrees(&model, store, 0, MODEL_KEYS, true));
    store_batch_free(&batch);
}
