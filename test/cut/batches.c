/* Keys: `n` counts; b/NUMBER tells that a batch was there, until a later one deletes it; k/NUMBER are overwritten and
 * deleted one by one; r/GROUP/NUMBER come in hundreds and go by ranges, long enough to be deleted by a tombstone. */
#include "cut/batches.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/random.h"

#define KEYS        200
#define GROUPS      4
#define GROUP_KEYS  1100 /* above what the store deletes key by key */
#define LIVES       40   /* after so many batches the key that tells a number goes */
#define VALUE_MOST  16384
#define SHARE_BIG   8 /* of 100 batches */
#define SHARE_GROUP 4
#define SHARE_CLEAR 6

static void put_value(struct store_batch *batch, const char *key, uint32_t number, size_t len,
                      struct random *random)
{
    char value[VALUE_MOST];
    int used = snprintf(value, sizeof value, "%u:", number);
    for (size_t i = (size_t)used; i < len; i += 8) {
        uint64_t bits = random_next(random);
        memcpy(value + i, &bits, len - i < 8 ? len - i : 8);
    }
    store_batch_put(batch, slice_of(key), (struct slice){value, len > (size_t)used ? len : (size_t)used});
}

static void clear(struct store_batch *batch, struct random *random)
{
    char from[32], to[32];
    if (random_below(random, 2)) {
        uint64_t group = random_below(random, GROUPS);
        snprintf(from, sizeof from, "r/%02u/", (unsigned)group);
        snprintf(to, sizeof to, "r/%02u0", (unsigned)group);
    } else {
        uint64_t key = random_below(random, KEYS);
        snprintf(from, sizeof from, "k/%06u", (unsigned)key);
        snprintf(to, sizeof to, "k/%06u", (unsigned)(key + random_below(random, 40)));
    }
    if (strcmp(from, to) < 0) store_batch_delete_range(batch, slice_of(from), slice_of(to));
}

struct batch_manner batch_make(const struct batches *batches, uint32_t number, struct store_batch *batch)
{
    struct random random;
    char key[32];
    random_seed(&random, batches->seed * 1000003 + number);
    struct batch_manner manner = {.durable = random_below(&random, 100) < 60,
                                  .sync = random_below(&random, 100) < 5};
    uint64_t kind = random_below(&random, batches->no_ranges ? 100 - SHARE_GROUP - SHARE_CLEAR : 100);
    if (kind < SHARE_BIG) {
        for (uint64_t i = random_below(&random, 6) + 1; i--;) {
            snprintf(key, sizeof key, "k/%06u", (unsigned)random_below(&random, KEYS));
            put_value(batch, key, number, 2048 + random_below(&random, VALUE_MOST - 2048), &random);
        }
    } else if (kind >= 100 - SHARE_GROUP) {
        uint64_t group = random_below(&random, GROUPS);
        for (unsigned i = 0; i < GROUP_KEYS; i++) {
            snprintf(key, sizeof key, "r/%02u/%05u", (unsigned)group, i);
            put_value(batch, key, number, 12, &random);
        }
    } else if (kind >= 100 - SHARE_GROUP - SHARE_CLEAR) {
        clear(batch, &random);
    }
    for (uint64_t i = random_below(&random, 4); i--;) {
        snprintf(key, sizeof key, "k/%06u", (unsigned)random_below(&random, KEYS));
        if (random_below(&random, 4)) {
            put_value(batch, key, number, 16 + random_below(&random, 400), &random);
        } else {
            store_batch_delete(batch, slice_of(key));
        }
    }
    snprintf(key, sizeof key, "b/%06u", number);
    put_value(batch, key, number, 20, &random);
    snprintf(key, sizeof key, "b/%06u", number > LIVES ? number - LIVES : 0);
    store_batch_delete(batch, slice_of(key));
    put_value(batch, "n", number, 0, &random);
    return manner;
}

static bool hash_one(void *context, struct slice key, struct slice value)
{
    uint64_t *hash = context, parts[] = {*hash, hash_bytes(key), hash_bytes(value)};
    *hash = hash_bytes((struct slice){(const char *)parts, sizeof parts});
    return true;
}

bool batches_read(struct store *store, uint32_t *number, uint64_t *content)
{
    struct buf value = {0};
    *number = 0;
    *content = 0;
    enum store_result found = store_get(store, SLICE("n"), &value);
    buf_byte(&value, '\0');
    if (found == STORE_OK) *number = (uint32_t)strtoul(value.data, NULL, 10);
    buf_free(&value);
    return found != STORE_FAILED &&
           store_scan(store, SLICE_NONE, SLICE_NONE, false, hash_one, content) == STORE_OK;
}

void batches_init(struct batches *batches, uint64_t seed, uint32_t count, bool no_ranges)
{
    *batches = (struct batches){seed, count, no_ranges, must_zero(count + 1, sizeof(uint64_t))};
    struct store *model = store_open_memory(NULL);
    struct store_batch batch = {0};
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t number;
        store_batch_clear(&batch);
        batch_make(batches, i, &batch);
        ensure(store_write(model, &batch, true) == STORE_OK);
        ensure(batches_read(model, &number, &batches->content[i]) && number == i);
    }
    store_batch_free(&batch);
    store_close(model);
}

void batches_free(struct batches *batches)
{
    free(batches->content);
}

bool batches_verify(const struct batches *batches, struct store *store, uint32_t least, uint32_t most,
                    uint32_t *number, char *words, size_t words_len)
{
    uint64_t content;
    words[0] = '\0';
    if (!batches_read(store, number, &content)) {
        snprintf(words, words_len, "cannot be read: %s", store->error);
    } else if (*number < least) {
        snprintf(words, words_len, "LOST: batch %u is the last one, %u was acknowledged", *number, least);
    } else if (*number > most || *number > batches->count) {
        snprintf(words, words_len, "batch %u is there, %u was the last one begun", *number, most);
    } else if (content != batches->content[*number]) {
        snprintf(words, words_len, "TORN: the content is not that behind batch %u", *number);
    }
    return !words[0];
}
