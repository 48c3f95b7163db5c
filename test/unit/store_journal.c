/* The commit log: what it gives back, where it ends, and what it calls damage. */
#include "store/journal_frame.h"
#include "unit/store_journal_disk.h"

#define SMALL (16 * JOURNAL_BLOCK)

static struct journal *open_on(struct disk *disk, char error[512])
{
    struct journal_options options = {
        .folder = "data/journal", .files = &disk->table, .segment_bytes = SMALL, .id = 7};
    error[0] = '\0';
    struct journal *journal = journal_open(&options, error, 512);
    if (!journal || journal_settle(journal)) return journal;
    snprintf(error, 512, "%s", journal_error(journal));
    journal_abandon(journal);
    return NULL;
}

static struct journal *must_open(struct disk *disk)
{
    char error[512];
    struct journal *journal = open_on(disk, error);
    CHECK_TEXT(slice_of(error), "");
    ensure(journal);
    return journal;
}

/* The payload of a number: its length differs, and its bytes follow from it. */
static void payload_put(struct buf *out, uint64_t number)
{
    size_t len = number % 7 == 3 ? 3 * JOURNAL_BLOCK : number % 5 == 0 ? 0 : number * 37 % 300;
    out->len = 0;
    for (size_t i = 0; i < len; i++) buf_byte(out, (unsigned char)(number * 31 + i * 7));
}

static enum journal_result append(struct journal *journal, bool durable)
{
    struct buf payload = {0};
    payload_put(&payload, journal_last(journal) + 1);
    enum journal_result result = journal_append(journal, buf_view(&payload), 1000, durable);
    buf_free(&payload);
    return result;
}

static void append_many(struct journal *journal, unsigned count)
{
    while (count--) CHECK_INT(append(journal, true), JOURNAL_OK);
}

struct visit {
    uint64_t next;
    bool wrong;
};

static bool visit_one(void *context, const struct journal_batch *batch)
{
    struct visit *visit = context;
    struct buf payload = {0};
    payload_put(&payload, batch->number);
    visit->wrong |= batch->number != visit->next || !slice_equal(batch->payload, buf_view(&payload));
    visit->next++;
    buf_free(&payload);
    return true;
}

/* True: all batches from the number on are as they were written. */
static bool replays(struct journal *journal, uint64_t from)
{
    struct visit visit = {.next = from};
    bool fine = journal_replay(journal, from, visit_one, &visit);
    CHECK(!visit.wrong);
    return fine && visit.next == journal_last(journal) + 1;
}

TEST(a_new_journal_is_empty_and_makes_no_file)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    CHECK_INT(journal_last(journal), 0);
    CHECK(journal_is_new(journal));
    journal_close(journal);
    for (int i = 0; i < DISK_FILES; i++) CHECK_INT(disk->names[i].file, -1);
    disk_free(disk);
}

TEST(batches_come_back_over_many_segments)
{
    struct disk *disk = disk_new();
    for (unsigned round = 0; round < 6; round++) {
        struct journal *journal = must_open(disk);
        CHECK_INT(journal_last(journal), round * 40);
        if (round) CHECK_INT(journal_id(journal), 7);
        CHECK(!round || replays(journal, 1));
        append_many(journal, 40);
        if (round % 2) disk->operations = 0, disk->fail_at = 1; /* it cannot tell that it was closed */
        journal_close(journal);
        disk->fail_at = 0;
    }
    struct journal *journal = must_open(disk);
    CHECK(replays(journal, 1) && replays(journal, 100) && replays(journal, 240) && replays(journal, 241));
    journal_close(journal);
    disk_free(disk);
}

TEST(batches_go_past_the_cache_where_there_is_such_a_way)
{
    for (int way = DIRECT_WORKS; way <= DIRECT_CANNOT_BE_WRITTEN; way++) {
        struct disk *disk = disk_new();
        disk->direct = way;
        struct journal *journal = must_open(disk);
        append_many(journal, 60);
        CHECK_INT(disk->direct_writes, way == DIRECT_WORKS ? 60 : 0);
        CHECK(replays(journal, 1));
        journal_close(journal);
        journal = must_open(disk);
        CHECK(replays(journal, 1));
        CHECK_INT(journal_last(journal), 60);
        journal_close(journal);
        disk_free(disk);
    }
}

TEST(a_batch_larger_than_a_segment_gets_one_of_its_own)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    char *large = must_zero(1, 2 * SMALL);
    append_many(journal, 2);
    journal_prepare(journal);
    CHECK_INT(journal_append(journal, (struct slice){large, 2 * SMALL}, 1, true), JOURNAL_OK);
    append_many(journal, 1);
    journal_close(journal);
    journal = must_open(disk);
    CHECK_INT(journal_last(journal), 4);
    CHECK(replays(journal, 4));
    journal_close(journal);
    free(large);
    disk_free(disk);
}

TEST(what_is_released_is_used_again_and_the_number_is_not_forgotten)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    uint64_t most = 0;
    for (unsigned i = 0; i < 100; i++) {
        append_many(journal, 10);
        if (i > 10) journal_release(journal, journal_last(journal));
        if (i > 10 && journal_bytes(journal) > most) most = journal_bytes(journal);
    }
    CHECK(most <= 12 * SMALL);
    CHECK(journal_first(journal) > 980);
    uint64_t first = journal_first(journal);
    journal_close(journal);
    journal = must_open(disk);
    CHECK_INT(journal_last(journal), 1000);
    CHECK_INT(journal_first(journal), first);
    CHECK(replays(journal, first));
    CHECK(!journal_replay(journal, first - 1, visit_one, &(struct visit){0}));
    char expected[100];
    snprintf(expected, sizeof expected, "data/journal: the batches %llu to %llu are missing",
             (unsigned long long)first - 1, (unsigned long long)first - 1);
    CHECK_TEXT(slice_of(journal_error(journal)), expected);
    journal_close(journal);
    disk_free(disk);
}

/* Else a power cut could leave no batch at all, as if they had been taken away. */
TEST(what_is_released_leaves_a_batch_that_is_synced)
{
    struct disk *disk = disk_new();
    struct random random;
    struct journal *journal = must_open(disk);
    random_seed(&random, 1);
    append_many(journal, 1);
    while (disk_find(disk, "0000000000000002.journal") == NULL) CHECK_INT(append(journal, false), JOURNAL_OK);
    journal_release(journal, journal_last(journal));
    CHECK_INT(journal_first(journal), 1);
    disk_cut(disk, &random);
    disk->fail_at = 1; /* the process has ended, too */
    journal_close(journal);
    disk->fail_at = 0;
    journal = must_open(disk);
    CHECK(!journal_has_lost_last(journal));
    CHECK(journal_last(journal) > 1);
    append_many(journal, 20);
    journal_release(journal, journal_last(journal));
    CHECK(journal_first(journal) > 1);
    journal_close(journal);
    disk_free(disk);
}

TEST(numbers_that_the_store_has_are_skipped)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    append_many(journal, 3);
    journal_skip_to(journal, 10);
    append_many(journal, 2);
    journal_close(journal);
    journal = must_open(disk);
    CHECK_INT(journal_last(journal), 11);
    CHECK(replays(journal, 10));
    struct visit visit = {.next = 1};
    CHECK(journal_replay(journal, 1, visit_one, &visit));
    CHECK(visit.wrong); /* 4 to 9 are not there, and 10 follows 3 */
    journal_close(journal);
    disk_free(disk);
}

TEST(a_full_disk_changes_nothing_and_goes_on_when_there_is_room)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    append_many(journal, 3);
    disk->room = 0;
    enum journal_result result;
    while ((result = append(journal, true)) == JOURNAL_OK)
        ;
    CHECK_INT(result, JOURNAL_FULL);
    CHECK_TEXT(slice_of(journal_error(journal)),
               "data/journal: there is no room for the next segment: No space left on device");
    CHECK_INT(append(journal, true), JOURNAL_FULL);
    uint64_t last = journal_last(journal);
    disk->room = UINT64_MAX;
    append_many(journal, 20);
    journal_close(journal);
    journal = must_open(disk);
    CHECK_INT(journal_last(journal), last + 20);
    CHECK(replays(journal, 1));
    journal_close(journal);
    disk_free(disk);
}

/* There is room for a segment of the usual size, and not for the batch: what is smaller can be written still. */
TEST(a_batch_that_is_too_large_for_the_disk_leaves_the_room_to_smaller_ones)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    char *large = must_zero(1, 4 * SMALL);
    append_many(journal, 3);
    CHECK(journal_prepare(journal));
    disk->room = 2 * SMALL;
    for (int i = 0; i < 5; i++) {
        CHECK_INT(journal_append(journal, (struct slice){large, 4 * SMALL}, 1, true), JOURNAL_FULL);
        journal_prepare(journal); /* as who looks for room does */
    }
    CHECK_INT(disk->room, 2 * SMALL);
    append_many(journal, 20);
    journal_close(journal);
    journal = must_open(disk);
    CHECK_INT(journal_last(journal), 23);
    CHECK(replays(journal, 1));
    journal_close(journal);
    free(large);
    disk_free(disk);
}

/* ---- reading beside the writer ---- */

/* A reader follows a writer that closes, goes on, releases and makes mistakes: it is given each batch once. */
TEST(a_reader_beside_the_writer_gets_every_synced_batch_once)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct disk *disk = disk_new();
        struct random random;
        struct journal *journal = must_open(disk);
        struct journal_cursor cursor = {.number = 1};
        struct visit visit = {.next = 1};
        char error[512];
        random_seed(&random, seed);
        journal_keep_from(journal, 1);
        for (int step = 0; step < 400; step++) {
            switch (random_below(&random, 12)) {
            case 0: journal_prepare(journal); break;
            case 1: journal_release(journal, journal_last(journal)); break;
            case 2:
                journal_keep_from(journal, cursor.number);
                CHECK_INT(journal_read(journal, &cursor, visit_one, &visit, error, sizeof error),
                          JOURNAL_READ);
                CHECK_INT(cursor.number, journal_synced(journal) + 1);
                CHECK_INT(visit.next, cursor.number);
                journal_keep_from(journal, cursor.number);
                break;
            case 3:
                if (random_below(&random, 4)) break;
                journal_close(journal);
                journal = must_open(disk);
                journal_keep_from(journal, cursor.number);
                break;
            default: append(journal, random_below(&random, 3)); break;
            }
        }
        CHECK(!visit.wrong);
        CHECK(visit.next > 100);
        journal_close(journal);
        disk_free(disk);
    }
}

TEST(a_reader_is_told_that_what_it_wants_is_gone)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    char error[512];
    append_many(journal, 60);
    journal_release(journal, 60);
    struct journal_cursor cursor = {.number = 1};
    struct visit visit = {.next = 1};
    CHECK_INT(journal_read(journal, &cursor, visit_one, &visit, error, sizeof error), JOURNAL_READ_GONE);
    cursor = (struct journal_cursor){.number = journal_first(journal)};
    visit.next = cursor.number;
    CHECK_INT(journal_read(journal, &cursor, visit_one, &visit, error, sizeof error), JOURNAL_READ);
    CHECK_INT(visit.next, 61);
    CHECK(!visit.wrong);
    journal_close(journal);
    disk_free(disk);
}

/* Nobody holds it: what is being read is not closed, or used again, under the reader's hands. */
struct releasing {
    struct visit visit; /* first: it is cast back */
    struct journal *journal;
};

static bool release_all(void *context, const struct journal_batch *batch)
{
    struct releasing *releasing = context;
    journal_release(releasing->journal, 60);
    CHECK(journal_first(releasing->journal) <= batch->number);
    return visit_one(&releasing->visit, batch);
}

TEST(a_segment_that_is_read_is_not_released)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    struct journal_cursor cursor = {.number = 1};
    struct releasing releasing = {.visit = {.next = 1}, .journal = journal};
    char error[512];
    append_many(journal, 60);
    CHECK_INT(journal_read(journal, &cursor, release_all, &releasing, error, sizeof error), JOURNAL_READ);
    CHECK_INT(releasing.visit.next, 61);
    CHECK(!releasing.visit.wrong);
    CHECK(journal_first(journal) > 1);
    uint64_t before = journal_first(journal);
    append_many(journal, 60);
    journal_release(journal, 120);
    CHECK(journal_first(journal) > before);
    journal_close(journal);
    disk_free(disk);
}

static bool stop_at_ten(void *context, const struct journal_batch *batch)
{
    return visit_one(context, batch) && batch->number % 10;
}

TEST(a_reader_may_stop_and_go_on)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    struct journal_cursor cursor = {.number = 5};
    struct visit visit = {.next = 5};
    char error[512];
    append_many(journal, 60);
    for (uint64_t next = 11; next <= 61; next += 10) {
        CHECK_INT(journal_read(journal, &cursor, stop_at_ten, &visit, error, sizeof error), JOURNAL_READ);
        CHECK_INT(cursor.number, next);
    }
    CHECK(!visit.wrong);
    journal_close(journal);
    disk_free(disk);
}

/* ---- cuts and faults ---- */

/* Writes until the disk is cut, or the process ends, and looks what is left; many times on the same disk. */
static void run_with_cuts(uint64_t seed)
{
    struct disk *disk = disk_new();
    struct random random;
    uint64_t acknowledged = 0, tried = 0, released = 0;
    random_seed(&random, seed);
    for (unsigned life = 0; life < 12; life++) {
        disk->operations = 0;
        disk->fail_at = 1 + random_below(&random, life % 3 ? 60 : 400);
        disk->fails_once = !random_below(&random, 4);
        char error[512];
        struct journal *journal = open_on(disk, error);
        while (journal && disk->operations < disk->fail_at) {
            bool durable = random_below(&random, 3);
            tried = journal_last(journal) + 1;
            enum journal_result result = append(journal, durable);
            if (result == JOURNAL_OK && durable) acknowledged = tried;
            if (result == JOURNAL_FAILED) break;
            if (!random_below(&random, 8)) journal_prepare(journal);
            if (!random_below(&random, 20)) {
                uint64_t number = random_below(&random, acknowledged + 1);
                if (number > released) released = number;
                journal_release(journal, number);
            }
            if (!random_below(&random, 30) && journal_sync(journal) == JOURNAL_OK)
                acknowledged = journal_last(journal);
            if (!random_below(&random, 30)) {
                journal_close(journal);
                journal = open_on(disk, error);
            }
        }
        if (journal) journal_close(journal);
        disk->fail_at = 0;
        if (random_below(&random, 3)) disk_cut(disk, &random); /* else only the process has ended */
        journal = open_on(disk, error);
        if (!journal) {
            test_failed(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, error);
            break;
        }
        if (journal_last(journal) < acknowledged || journal_last(journal) > tried)
            test_failed(__FILE__, __LINE__,
                        "seed %llu: ends at %llu, but %llu was acknowledged and %llu tried",
                        (unsigned long long)seed, (unsigned long long)journal_last(journal),
                        (unsigned long long)acknowledged, (unsigned long long)tried);
        if (journal_first(journal) > released + 1 && journal_first(journal) <= journal_last(journal))
            test_failed(__FILE__, __LINE__, "seed %llu: begins at %llu", (unsigned long long)seed,
                        (unsigned long long)journal_first(journal));
        if (!replays(journal, journal_first(journal)))
            test_failed(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed,
                        journal_error(journal));
        tried = acknowledged = journal_last(journal); /* what is there now stays */
        if (random_below(&random, 2)) disk->operations = 0, disk->fail_at = 1;
        journal_close(journal);
        disk->fail_at = 0;
    }
    disk_free(disk);
}

TEST(nothing_acknowledged_is_lost_by_a_cut)
{
    const char *many = getenv("JOURNAL_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : 100;
    for (uint64_t seed = 1; seed <= seeds; seed++) run_with_cuts(seed);
}

/* ---- damage ---- */

/* A journal of some segments, closed; the one with the largest name is open-ended. */
static struct disk *written_disk(unsigned count)
{
    struct disk *disk = disk_new();
    struct journal *journal = must_open(disk);
    append_many(journal, count);
    journal_close(journal);
    return disk;
}

/* What a program that reads all of it would be given: false and a sentence, or as many batches as were written. */
static bool is_refused(struct disk *disk, uint64_t written)
{
    char error[512];
    struct journal *journal = open_on(disk, error);
    if (!journal) return true;
    bool fine = replays(journal, 1);
    if (fine) CHECK_INT(journal_last(journal), written);
    journal_close(journal);
    return !fine;
}

TEST(a_flipped_bit_is_found_or_does_no_harm)
{
    struct disk *disk = written_disk(60);
    unsigned refused = 0, harmless = 0;
    for (int f = 0; f < DISK_FILES; f++) {
        struct disk_file *file = &disk->files[f];
        for (uint64_t block = 0; block < file->bytes; block += JOURNAL_BLOCK) {
            const unsigned places[] = {0, 5, 20, 30, 60, 63, 64, 200, 4095};
            for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                char *byte = &file->data[block + places[i]];
                *byte ^= 4;
                if (is_refused(disk, 60))
                    refused++;
                else
                    harmless++;
                *byte ^= 4;
            }
        }
    }
    CHECK(refused > 300);  /* in frames */
    CHECK(harmless > 100); /* in what fills a block, or follows the end */
    CHECK(!is_refused(disk, 60));
    disk_free(disk);
}

static void segment_put(struct disk *disk, const char *name, const struct buf *bytes)
{
    int file;
    uint64_t had;
    ensure(disk_open(disk, name, true, true, &file, &had) == 0);
    ensure(disk_write(disk, file, bytes->data, bytes->len, 0) == 0);
}

/* The torn frame that begins the newest segment has another number than the one that the segment before tells. */
TEST(a_torn_frame_does_not_hide_that_a_batch_is_missing)
{
    struct disk *disk = disk_new();
    struct buf first = {0}, second = {0};
    segment_head_put(&first, &(struct segment_head){7, 1, 3 * JOURNAL_BLOCK});
    frame_put(&first, &(struct frame_head){.kind = FRAME_BATCH, .id = 7, .serial = 1, .number = 1},
              SLICE("one"));
    frame_put(&first, &(struct frame_head){.kind = FRAME_END, .id = 7, .serial = 1, .number = 2, .synced = 1},
              SLICE_NONE);
    segment_head_put(&second, &(struct segment_head){7, 2, 2 * JOURNAL_BLOCK});
    frame_put(&second,
              &(struct frame_head){.kind = FRAME_BATCH, .id = 7, .serial = 2, .number = 3, .synced = 1},
              SLICE("three"));
    second.data[JOURNAL_BLOCK + FRAME_HEAD_BYTES] ^= 1;
    segment_put(disk, "0000000000000001.journal", &first);
    segment_put(disk, "0000000000000002.journal", &second);
    struct journal *journal = must_open(disk);
    CHECK(!journal_replay(journal, 1, visit_one, &(struct visit){.next = 1}));
    CHECK_TEXT(slice_of(journal_error(journal)), "data/journal: the batches 2 to 2 are missing");
    journal_close(journal);
    buf_free(&first);
    buf_free(&second);
    disk_free(disk);
}

TEST(a_file_that_is_missing_short_or_swapped_is_found)
{
    struct disk *disk = written_disk(60);
    struct disk_name saved[DISK_FILES];
    memcpy(saved, disk->names, sizeof saved);
    unsigned files = 0;
    for (int i = 0; i < DISK_FILES; i++) {
        if (saved[i].file < 0) continue;
        files++;
        disk->names[i].file = -1;
        CHECK(is_refused(disk, 60));
        disk->names[i].file = saved[i].file;
        disk->files[saved[i].file].bytes -= JOURNAL_BLOCK;
        CHECK(is_refused(disk, 60));
        disk->files[saved[i].file].bytes += JOURNAL_BLOCK;
        disk->names[i].file = saved[(i + 1) % DISK_FILES].file;
        if (disk->names[i].file >= 0) CHECK(is_refused(disk, 60));
        memcpy(disk->names, saved, sizeof saved);
    }
    CHECK(files > 3);
    disk_free(disk);
}
