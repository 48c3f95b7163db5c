/* What a durable commit costs: RocksDB with its own log beside the store's commit log (src/store/journal.h), in one
 * folder, batch after batch in turns, so that a disturbance of the disk hits both.
 *
 * The same bytes go to each. "journal" is the append with its sync alone; "journal and memory" adds what the store does
 * next, which is inside of RocksDB's figure too: the entries go into RocksDB's memory table, without its log. Segments
 * are made and used again between two batches, where the server has a thread for it.
 *
 * bench/run calls it and reads the one line of JSON it prints. */
#include <errno.h>
#include <getopt.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/random.h"
#include "store/journal.h"

#define MEMTABLE_BYTES  ((size_t)16 * 1024 * 1024)
#define KEPT_BATCHES    1000 /* the log of older ones is used again */
#define VALUE_BYTES_MAX (400 * 1024)
#define WARM_UP         20

enum side { ROCKSDB, JOURNAL, JOURNAL_AND_MEMORY, SIDES };
static const char *const side_names[SIDES] = {"rocksdb", "journal", "journal_and_memory"};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void must(char *error, const char *what)
{
    if (!error) return;
    fprintf(stderr, "commits: %s: %s\n", what, error);
    exit(1);
}

static rocksdb_t *database_open(const char *folder, const char *name)
{
    char path[4096], *error = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, MEMTABLE_BYTES);
    rocksdb_t *database = rocksdb_open(options, path, &error);
    must(error, path);
    rocksdb_options_destroy(options);
    return database;
}

static struct journal *journal_make(const char *folder, char *path, size_t path_len)
{
    char error[512];
    snprintf(path, path_len, "%s/journal", folder);
    if (mkdir(path, 0777) != 0) must(strerror(errno), path);
    struct journal_options options = {.folder = path, .id = 1};
    struct journal *journal = journal_open(&options, error, sizeof error);
    if (!journal || !journal_settle(journal)) must(error, path);
    return journal;
}

/* Scattered keys, as items have them. */
static void batch_fill(rocksdb_writebatch_t *batch, unsigned values, size_t bytes, struct random *random)
{
    static char value[VALUE_BYTES_MAX];
    rocksdb_writebatch_clear(batch);
    for (unsigned i = 0; i < values; i++) {
        uint64_t key[3] = {random_next(random), random_next(random), random_next(random)};
        memcpy(value, key, sizeof key);
        rocksdb_writebatch_put(batch, (const char *)key, sizeof key, value, bytes);
    }
}

static int by_time(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void print_side(const char *name, int64_t *times, unsigned count)
{
    qsort(times, count, sizeof *times, by_time);
    printf("\"%s\":{\"p50_us\":%.1f,\"p99_us\":%.1f}", name, (double)times[count / 2] / 1e3,
           (double)times[count * 99ull / 100] / 1e3);
}

static void measure(const char *folder, unsigned batches, unsigned values, size_t bytes)
{
    char path[4096], *error = NULL;
    rocksdb_t *logged = database_open(folder, "rocksdb"), *unlogged = database_open(folder, "memory");
    struct journal *journal = journal_make(folder, path, sizeof path);
    rocksdb_writeoptions_t *sync = rocksdb_writeoptions_create(),
                           *without_log = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(sync, 1);
    rocksdb_writeoptions_disable_WAL(without_log, 1);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    struct random random = {0};
    random_seed(&random, 1);
    int64_t *times[SIDES];
    for (int side = 0; side < SIDES; side++) times[side] = must_alloc(batches * sizeof **times);
    for (unsigned i = 0; i < batches + WARM_UP; i++) {
        unsigned at = i < WARM_UP ? 0 : i - WARM_UP;
        size_t len;
        batch_fill(batch, values, bytes, &random);
        const char *data = rocksdb_writebatch_data(batch, &len);
        journal_prepare(journal);
        for (unsigned turn = 0; turn < 2; turn++) { /* who is first changes */
            int64_t begun = now_ns();
            if ((turn + i) % 2) {
                rocksdb_write(logged, sync, batch, &error);
                times[ROCKSDB][at] = now_ns() - begun;
                must(error, "rocksdb");
                continue;
            }
            if (journal_append(journal, (struct slice){data, len}, 0, true) != JOURNAL_OK)
                must((char *)(uintptr_t)journal_error(journal), path);
            times[JOURNAL][at] = now_ns() - begun;
            rocksdb_write(unlogged, without_log, batch, &error);
            times[JOURNAL_AND_MEMORY][at] = now_ns() - begun;
            must(error, "memory");
        }
        if (i > KEPT_BATCHES) journal_release(journal, journal_last(journal) - KEPT_BATCHES);
    }
    printf("{\"batches\":%u,\"values\":%u,\"bytes\":%zu", batches, values, bytes);
    for (int side = 0; side < SIDES; side++) {
        printf(",");
        print_side(side_names[side], times[side], batches);
        free(times[side]);
    }
    printf("}\n");
    journal_close(journal);
    rocksdb_close(logged);
    rocksdb_close(unlogged);
    rocksdb_writebatch_destroy(batch);
    rocksdb_writeoptions_destroy(sync);
    rocksdb_writeoptions_destroy(without_log);
}

static unsigned long number_of(const char *text, unsigned long least, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || end == text || value < least || value > most) {
        fprintf(stderr, "commits: '%s' is no number from %lu to %lu\n", text, least, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"folder", required_argument, NULL, 'f'}, {"batches", required_argument, NULL, 'n'},
        {"values", required_argument, NULL, 'v'}, {"bytes", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},         {0}};
    const char *folder = NULL;
    unsigned long batches = 2000, values = 64, bytes = 300;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'f': folder = optarg; break;
        case 'n': batches = number_of(optarg, 100, 10000000); break;
        case 'v': values = number_of(optarg, 1, 100000); break;
        case 'b': bytes = number_of(optarg, 24, VALUE_BYTES_MAX); break;
        default:
            printf(
                "usage: commits --folder DIR [--batches N] [--values N] [--bytes N]\n\n"
                "Writes batches durably, in turns with RocksDB's own log and with the store's commit log, in an\n"
                "empty folder, and prints p50 and p99 of each as one line of JSON.\n\n"
                "  --batches N  how many (2000)\n  --values N   in each (64)\n  --bytes N    of each value (300)\n");
            return option == 'h' ? 0 : 2;
        }
    }
    if (!folder || optind < argc) {
        fprintf(stderr, "commits: --folder DIR is missing; see --help\n");
        return 2;
    }
    measure(folder, (unsigned)batches, (unsigned)values, bytes);
    return 0;
}
