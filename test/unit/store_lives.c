/* Many lives of one folder under load, each ended by kill -9: in the midst of writing, flushing, compacting
 * or giving the space of a range back. Every batch is a pure function of its number, so after each death the
 * test knows what the store must hold, byte for byte, from the number of the last batch alone. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"
#include "unit/store_fixture.h"

enum { LIFE_KEYS = 20000, LIVES = 9, LIVES_MOST = 200, LARGE_BYTES = 60000, SMALL_BYTES = 800 };

/* The tag of each key's value; 0: absent. */
static uint64_t expected[LIFE_KEYS];

static struct slice life_key(char text[16], uint64_t number)
{
    return (struct slice){text, (size_t)snprintf(text, 16, "k%05u", (unsigned)number)};
}

struct step {
    enum { STEP_PUT, STEP_DELETE, STEP_RANGE } kind;
    uint64_t key, end; /* end: of a range */
    uint64_t tag;
    size_t len;
};

static struct step step_make(struct random *random, uint64_t tag)
{
    uint64_t kind = random_below(random, 100);
    struct step step = {.key = random_below(random, LIFE_KEYS), .tag = tag};
    uint64_t large = random_below(random, 10);
    step.len = sizeof tag + random_below(random, large == 0 ? LARGE_BYTES : SMALL_BYTES);
    step.kind = kind < 80 ? STEP_PUT : kind < 97 ? STEP_DELETE : STEP_RANGE;
    step.end = step.key + random_below(random, random_below(random, 20) == 0 ? LIFE_KEYS : 200);
    return step;
}

static void step_add(struct store_batch *batch, const struct step *step)
{
    static char value[LARGE_BYTES + sizeof step->tag];
    char key[16], end[16];
    switch (step->kind) {
    case STEP_PUT:
        memcpy(value, &step->tag, sizeof step->tag);
        store_batch_put(batch, life_key(key, step->key), (struct slice){value, step->len});
        break;
    case STEP_DELETE: store_batch_delete(batch, life_key(key, step->key)); break;
    case STEP_RANGE:
        store_batch_delete_range(batch, life_key(key, step->key), life_key(end, step->end));
        break;
    }
}

static void step_expect(const struct step *step)
{
    uint64_t end = step->kind == STEP_RANGE ? step->end : step->key + 1;
    for (uint64_t key = step->key; key < end && key < LIFE_KEYS; key++) {
        expected[key] = step->kind == STEP_PUT ? step->tag : 0;
    }
}

/* Adds the steps of this batch to `batch`, or, where that is NULL, to what is expected. */
static void batch_make(uint32_t number, struct store_batch *batch)
{
    struct random random;
    random_seed(&random, number);
    uint64_t steps = 1 + random_below(&random, 40);
    for (uint64_t i = 0; i < steps; i++) {
        struct step step = step_make(&random, (uint64_t)number * 100 + i + 1);
        if (batch) {
            step_add(batch, &step);
        } else {
            step_expect(&step);
        }
    }
    if (batch) store_batch_put(batch, SLICE("a number"), (struct slice){(char *)&number, sizeof number});
}

static uint32_t last_batch(struct store *store)
{
    struct buf value = {0};
    uint32_t number = 0;
    if (store_get(store, SLICE("a number"), &value) == STORE_OK) memcpy(&number, value.data, sizeof number);
    buf_free(&value);
    return number;
}

TEST(child_lives)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    const char *durable = getenv(CHILD_DURABLE);
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    ensure(store);
    for (uint32_t number = last_batch(store) + 1;; number++) {
        bool sync = strcmp(durable, "sometimes") == 0 ? number % 16 == 0 : strcmp(durable, "yes") == 0;
        store_batch_clear(&batch);
        batch_make(number, &batch);
        ensure(store_write(store, &batch, sync) == STORE_OK);
        child_report(number);
    }
}

struct comparison {
    uint64_t seen, wrong;
};

static bool compare(void *context, struct slice key, struct slice value)
{
    struct comparison *comparison = context;
    uint64_t tag;
    char digits[16];
    snprintf(digits, sizeof digits, "%.*s", (int)key.len - 1, key.data + 1);
    memcpy(&tag, value.data, sizeof tag);
    comparison->wrong += expected[strtoul(digits, NULL, 10)] != tag;
    comparison->seen++;
    return true;
}

static void check_content(struct store *store, bool backwards)
{
    struct comparison comparison = {0};
    uint64_t present = 0;
    for (int i = 0; i < LIFE_KEYS; i++) present += expected[i] != 0;
    CHECK(store_scan(store, SLICE("k"), SLICE("l"), backwards, compare, &comparison) == STORE_OK);
    CHECK_INT(comparison.wrong, 0);
    CHECK_INT(comparison.seen, present);
}

TEST(every_life_continues_where_the_last_one_was_killed)
{
    static const char *const durable[] = {"no", "yes", "sometimes"};
    char *folder = folder_make();
    uint32_t known = 0;
    /* On a busy machine some come to nothing: then there are more, and longer ones. */
    for (unsigned life = 0; life < LIVES || (known <= LIVES && life < LIVES_MOST); life++) {
        struct child child = child_start("child_lives", folder, durable[life % 3]);
        usleep(50000 + life * 37000);
        kill(child.pid, SIGKILL);
        uint32_t reported = child_end(child, NULL);
        struct store *store = disk_open(folder);
        if (!store) break;
        uint32_t last = last_batch(store);
        if (reported < known) reported = known; /* it did not come so far as to write */
        CHECK(last == reported || last == reported + 1);
        while (known < last) batch_make(++known, NULL);
        check_content(store, life % 2);
        store_close(store);
    }
    CHECK(known > LIVES);
    folder_remove(folder);
}
