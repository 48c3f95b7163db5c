/* A store in memory over another one answers as one store would that got everything. What it does as any store does
 * is in store_behaviour.c. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/random.h"
#include "unit/store_fixture.h"

static void delete_one(struct store *store, const char *key)
{
    struct store_batch batch = {0};
    store_batch_delete(&batch, slice_of(key));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    store_batch_free(&batch);
}

static void delete_range(struct store *store, const char *from, const char *to)
{
    struct store_batch batch = {0};
    store_batch_delete_range(&batch, slice_of(from), slice_of(to));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    store_batch_free(&batch);
}

/* A base with a letter's value under each letter. */
static struct store *letters(const char *keys)
{
    struct store *base = store_open_memory(NULL);
    for (; *keys; keys++) put(base, (char[]){*keys, '\0'}, "base");
    return base;
}

TEST(the_base_shows_through)
{
    struct store *store = store_open_overlay(letters("bdf"));
    put(store, "a", "1");
    put(store, "d", "2");
    put(store, "g", "3");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=base d=2 f=base g=3 ");
    CHECK_TEXT(content(store, "", "", true), "g=3 f=base d=2 b=base a=1 ");
    CHECK_TEXT(content(store, "b", "f", false), "b=base d=2 ");
    CHECK_TEXT(content(store, "c", "e", true), "d=2 ");
    CHECK_TEXT(value_of(store, "b"), "base");
    CHECK_TEXT(value_of(store, "d"), "2");
    CHECK_TEXT(value_of(store, "e"), "(missing)");
    delete_one(store, "b");
    delete_one(store, "d");
    delete_one(store, "x");
    CHECK_TEXT(value_of(store, "b"), "(missing)");
    CHECK_TEXT(content(store, "", "", false), "a=1 f=base g=3 ");
    CHECK_TEXT(content(store, "", "", true), "g=3 f=base a=1 ");
    put(store, "b", "again");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=again f=base g=3 ");
    store_close(store);
}

TEST(a_range_hides_the_base_and_earlier_puts_but_no_later_ones)
{
    struct store *store = store_open_overlay(letters("abcdefg"));
    put(store, "cc", "early");
    delete_range(store, "b", "e");
    put(store, "d", "late");
    CHECK_TEXT(content(store, "", "", false), "a=base d=late e=base f=base g=base ");
    CHECK_TEXT(content(store, "", "", true), "g=base f=base e=base d=late a=base ");
    CHECK_TEXT(content(store, "c", "f", false), "d=late e=base ");
    CHECK_TEXT(content(store, "b", "e", true), "d=late ");
    CHECK_TEXT(value_of(store, "b"), "(missing)");
    CHECK_TEXT(value_of(store, "cc"), "(missing)");
    CHECK_TEXT(value_of(store, "d"), "late");
    CHECK_TEXT(value_of(store, "e"), "base");
    delete_range(store, "e", "f"); /* touches it */
    delete_range(store, "a", "c"); /* overlaps it */
    CHECK_TEXT(content(store, "", "", false), "d=late f=base g=base ");
    delete_range(store, "", "z"); /* from the first key on */
    CHECK_TEXT(content(store, "", "", false), "");
    CHECK_TEXT(content(store, "", "", true), "");
    put(store, "e", "after all");
    CHECK_TEXT(content(store, "", "", true), "e=after all ");
    store_close(store);
}

/* An empty key is below all others, and an empty bound means none: they must not be taken for each other. */
TEST(an_empty_key_is_the_first)
{
    struct store *base = store_open_memory(NULL);
    put(base, "", "base");
    put(base, "b", "base");
    struct store *store = store_open_overlay(base);
    CHECK_TEXT(value_of(store, ""), "base");
    put(store, "", "1");
    put(store, "a", "1");
    CHECK_TEXT(content(store, "", "", false), "=1 a=1 b=base ");
    CHECK_TEXT(content(store, "", "", true), "b=base a=1 =1 ");
    delete_range(store, "", "a");
    CHECK_TEXT(value_of(store, ""), "(missing)");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=base ");
    CHECK_TEXT(content(store, "", "", true), "b=base a=1 ");
    store_close(store);
}

/* ---- what it asks of the base ---- */

TEST(nothing_of_the_base_is_read_where_a_range_hides_it)
{
    struct store_faults faults = {0};
    struct store *base = store_open_memory(&faults);
    for (const char *key = "abcdef"; *key; key++) put(base, (char[]){*key, '\0'}, "");
    faults.calls = 0;
    struct store *store = store_open_overlay(base);
    delete_range(store, "b", "d");
    delete_range(store, "d", "f");
    put(store, "c", "1");
    CHECK_INT(faults.calls, 0); /* to delete a range is to remember it */
    CHECK_TEXT(value_of(store, "e"), "(missing)");
    CHECK_TEXT(value_of(store, "c"), "1");
    CHECK_TEXT(content(store, "b", "f", false), "c=1 ");
    CHECK_TEXT(content(store, "c", "e", true), "c=1 ");
    CHECK_INT(faults.calls, 0);
    CHECK_TEXT(content(store, "", "", false), "a= c=1 f= ");
    CHECK_INT(faults.calls, 2); /* two ranges that touch are one: there is one piece before and one behind */
    store_close(store);
}

TEST(a_failure_of_the_base_is_passed_on)
{
    struct store_faults faults = {0};
    struct store *base = store_open_memory(&faults);
    put(base, "b", "");
    put(base, "d", "");
    struct store *store = store_open_overlay(base);
    put(store, "a", "1");
    faults.fail_at = faults.calls + 1;
    CHECK_TEXT(value_of(store, "a"), "1");
    CHECK_TEXT(value_of(store, "b"), "(failed)");
    CHECK_TEXT(slice_of(store->error), "call 3, a get, fails on purpose");
    CHECK_TEXT(value_of(store, "b"), "");
    put(store, "c", "2"); /* is not the base's matter */
    CHECK(store_sync(store) == STORE_OK);
    for (int backwards = 0; backwards < 2; backwards++) {
        faults.fail_at = faults.calls + 1;
        CHECK_TEXT(content(store, "", "", backwards), "(failed)");
    }
    delete_range(store, "c", "d");
    faults.fail_at = faults.calls + 2; /* the piece behind the range */
    CHECK_TEXT(content(store, "", "", false), "(failed)");
    CHECK_TEXT(content(store, "", "", false), "a=1 b= d= ");
    store_close(store);
}

TEST(stats_count_both)
{
    struct store *store = store_open_overlay(letters("abcdef"));
    struct store_stats before, after;
    store_stats(store, &before);
    CHECK_INT(before.keys_estimate, 6);
    put(store, "g", "0123456789");
    delete_one(store, "a");
    delete_one(store, "b");
    store_stats(store, &after);
    CHECK_INT(after.keys_estimate, 5);
    CHECK(after.memory_bytes >= before.memory_bytes + 13);
    for (char key = 'h'; key < 'z'; key++) delete_one(store, (char[]){key, '\0'});
    store_stats(store, &after);
    CHECK_INT(after.keys_estimate, 0); /* at the least */
    store_close(store);
}

/* ---- against one store that got everything ---- */

enum { BATCHES = 60, LOOKS = 25 };

static struct slice random_key(struct random *random, char text[4])
{
    size_t len = (size_t)random_below(random, 4);
    for (size_t i = 0; i < len; i++) text[i] = "\0ab\xff"[random_below(random, 4)];
    return (struct slice){text, len};
}

static void random_batch(struct random *random, struct store_batch *batch)
{
    char key[4], other[4], value[8];
    store_batch_clear(batch);
    for (uint64_t entries = random_below(random, 8); entries > 0; entries--) {
        struct slice first = random_key(random, key), second = random_key(random, other);
        uint64_t kind = random_below(random, 10);
        if (kind < 5) {
            int len = snprintf(value, sizeof value, "%u", (unsigned)random_below(random, 10000));
            store_batch_put(batch, first, (struct slice){value, (size_t)len});
        } else if (kind < 8) {
            store_batch_delete(batch, first);
        } else if (second.len) {
            store_batch_delete_range(batch, first, second);
        }
    }
}

struct listing {
    struct buf text;
    uint64_t most; /* the visitor stops behind so many */
};

static bool list(void *context, struct slice key, struct slice value)
{
    struct listing *listing = context;
    buf_varint(&listing->text, key.len);
    buf_slice(&listing->text, key);
    buf_varint(&listing->text, value.len);
    buf_slice(&listing->text, value);
    return --listing->most > 0;
}

static bool same_scan(struct random *random, struct store *store, struct store *whole)
{
    char key[4], other[4];
    struct slice from = random_key(random, key), to = random_key(random, other);
    bool backwards = random_below(random, 2);
    uint64_t most = random_below(random, 3) ? UINT64_MAX : 1 + random_below(random, 5);
    struct listing one = {.most = most}, two = {.most = most};
    bool same = store_scan(store, from, to, backwards, list, &one) == STORE_OK &&
                store_scan(whole, from, to, backwards, list, &two) == STORE_OK &&
                slice_equal(buf_view(&one.text), buf_view(&two.text));
    buf_free(&one.text);
    buf_free(&two.text);
    return same;
}

static bool same_get(struct random *random, struct store *store, struct store *whole)
{
    char text[4];
    struct slice key = random_key(random, text);
    struct buf one = {0}, two = {0};
    bool same = store_get(store, key, &one) == store_get(whole, key, &two) &&
                slice_equal(buf_view(&one), buf_view(&two));
    buf_free(&one);
    buf_free(&two);
    return same;
}

static void compare_from_seed(uint64_t seed)
{
    struct random random;
    struct store_batch batch = {0};
    struct store *base = store_open_memory(NULL), *whole = store_open_memory(NULL);
    random_seed(&random, seed);
    for (int i = 0; i < BATCHES; i++) {
        random_batch(&random, &batch);
        ensure(store_write(base, &batch, false) == STORE_OK && store_write(whole, &batch, false) == STORE_OK);
    }
    struct store *store = store_open_overlay(base);
    bool same = true;
    for (int i = 0; i < BATCHES && same; i++) {
        random_batch(&random, &batch);
        ensure(store_write(store, &batch, true) == STORE_OK && store_write(whole, &batch, true) == STORE_OK);
        for (int look = 0; look < LOOKS && same; look++) {
            same = same_scan(&random, store, whole) && same_get(&random, store, whole);
            if (!same)
                test_failed(__FILE__, __LINE__, "seed %llu: differs behind batch %d",
                            (unsigned long long)seed, i);
        }
    }
    store_batch_free(&batch);
    store_close(store);
    store_close(whole);
}

TEST(it_answers_as_one_store_that_got_everything)
{
    const char *many = getenv("OVERLAY_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : 100;
    for (uint64_t seed = 1; seed <= seeds; seed++) compare_from_seed(seed);
}
