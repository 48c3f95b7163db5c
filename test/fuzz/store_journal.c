/* Any bytes as the newest segment of a journal whose older one is whole, and frames in any order whose checksums are
 * right. Nothing is read beyond the end; a batch that anybody is given stands in a segment with its checksum; and what
 * is appended to a journal that opens is there when it is opened again. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/journal_frame.h"
#include "store/salvage.h"
#include "unit/store_journal_disk.h"

#define ID           7
#define OLDER        3 /* batches of the older segment */
#define BLOCKS_MOST  64
#define PIECE_BYTES  96 /* of the input that begin a block */
#define FRAME_RECIPE 8  /* bytes of the input that make a frame */

enum { SHAPE_FILE, SHAPE_BLOCKS, SHAPE_FRAMES, SHAPES };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* ---- segments ---- */

static struct buf older_segment(void)
{
    struct buf out = {0};
    struct frame_head head = {.kind = FRAME_BATCH, .id = ID, .serial = 1};
    uint64_t bytes = (OLDER + 2) * JOURNAL_BLOCK;
    segment_head_put(&out, &(struct segment_head){ID, 1, bytes});
    for (head.number = 1; head.number <= OLDER; head.number++) {
        head.synced = head.number - 1;
        frame_put(&out, &head, SLICE("older"));
    }
    head.kind = FRAME_END;
    head.synced = OLDER;
    frame_put(&out, &head, SLICE_NONE);
    ensure(out.len == bytes);
    return out;
}

/* A frame that is wrong in one thing, or in none: which one, its kind, number, synced number, two bytes of length, and
 * two for what is wrong. */
static void put_recipe(struct buf *out, const unsigned char *recipe)
{
    static const char filler[UINT16_MAX];
    size_t start = out->len, len = (size_t)(recipe[4] << 8 | recipe[5]) % (3 * JOURNAL_BLOCK);
    struct frame_head head = {.kind = (enum frame_kind)(recipe[1] % 3 + 1),
                              .id = ID,
                              .serial = 2,
                              .number = (uint64_t)(OLDER + 1 + (int8_t)recipe[2]),
                              .synced = (uint64_t)(OLDER + (int8_t)recipe[3])};
    if (recipe[0] % 8 == 1) head.id++;
    if (recipe[0] % 8 == 2) head.serial = recipe[6] % 4;
    if (recipe[0] % 8 == 3) head.number = UINT64_MAX - recipe[6];
    if (recipe[0] % 8 == 4) head.synced = UINT64_MAX - recipe[6];
    frame_put(out, &head, (struct slice){filler, head.kind == FRAME_BATCH ? len : 0});
    size_t at = start + (size_t)(recipe[6] << 8 | recipe[7]) % (out->len - start);
    if (recipe[0] % 8 == 5) out->data[at] ^= 1;
    if (recipe[0] % 8 == 6) out->len = at / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

static void fill_block(struct buf *out)
{
    while (out->len % JOURNAL_BLOCK) buf_byte(out, 0);
}

static struct buf newest_segment(unsigned shape, struct slice input)
{
    struct buf out = {0};
    if (shape == SHAPE_FILE) {
        buf_slice(&out, input);
        return out;
    }
    segment_head_put(&out, &(struct segment_head){ID, 2, 0});
    size_t step = shape == SHAPE_FRAMES ? FRAME_RECIPE : PIECE_BYTES;
    for (size_t at = 0; at < input.len && out.len < BLOCKS_MOST * JOURNAL_BLOCK; at += step) {
        unsigned char recipe[PIECE_BYTES] = {0};
        size_t len = input.len - at < step ? input.len - at : step;
        memcpy(recipe, input.data + at, len);
        if (shape == SHAPE_FRAMES) {
            put_recipe(&out, recipe);
        } else {
            buf_put(&out, (const char *)recipe, len);
            fill_block(&out);
        }
    }
    for (unsigned i = 0; i < 3 * JOURNAL_BLOCK; i++) buf_byte(&out, 0);
    struct buf head = {0};
    segment_head_put(&head, &(struct segment_head){ID, 2, out.len});
    memcpy(out.data, head.data, head.len);
    buf_free(&head);
    return out;
}

static void disk_put(struct disk *disk, const char *name, const struct buf *content)
{
    int file;
    uint64_t bytes;
    ensure(disk->table.open(disk, name, true, true, &file, &bytes) == 0);
    if (content->len) ensure(disk->table.write(disk, file, content->data, content->len, 0) == 0);
    ensure(disk->table.sync(disk, file) == 0);
}

/* ---- what comes out of them ---- */

struct served {
    const struct buf *segments[2];
    uint64_t last, count;
};

/* Whether the batch stands at this block, by its own bytes. */
static bool stands_at(const struct buf *segment, size_t at, uint64_t serial,
                      const struct journal_batch *batch)
{
    struct frame_head head;
    return frame_read(segment->data + at, ID, serial, &head) && head.kind == FRAME_BATCH &&
           head.number == batch->number && head.length == batch->payload.len &&
           head.checksum == hash_bytes(batch->payload) &&
           head.length <= segment->len - at - FRAME_HEAD_BYTES &&
           !memcmp(segment->data + at + FRAME_HEAD_BYTES, batch->payload.data, batch->payload.len);
}

static bool serve(void *context, const struct journal_batch *batch)
{
    struct served *served = context;
    bool stands = false;
    ensure(!served->count || batch->number > served->last);
    for (uint64_t serial = 1; serial <= 2; serial++) {
        const struct buf *segment = served->segments[serial - 1];
        for (size_t at = 0; !stands && at + JOURNAL_BLOCK <= segment->len; at += JOURNAL_BLOCK)
            stands = stands_at(segment, at, serial, batch);
    }
    ensure(stands);
    served->last = batch->number;
    served->count++;
    return true;
}

static struct journal *open_on(struct disk *disk, bool read_only)
{
    char error[512] = "";
    struct journal_options options = {.folder = "journal",
                                      .files = &disk->table,
                                      .read_only = read_only,
                                      .segment_bytes = BLOCKS_MOST * JOURNAL_BLOCK};
    struct journal *journal = journal_open(&options, error, sizeof error);
    ensure(journal || *error);
    return journal;
}

static void read_all(struct journal *journal, struct served served)
{
    char error[512];
    struct journal_cursor cursor = {.number = journal_first(journal)};
    if (journal_replay(journal, journal_first(journal), serve, &served) && served.count)
        ensure(served.last == journal_last(journal));
    served.count = 0;
    while (journal_read(journal, &cursor, serve, &served, error, sizeof error) == JOURNAL_READ &&
           cursor.number <= journal_synced(journal))
        ;
}

/* What a writer adds behind such a segment is found. */
static void go_on(struct disk *disk)
{
    struct journal *journal = open_on(disk, false);
    if (!journal) return;
    uint64_t last = journal_last(journal);
    bool fits = last < UINT64_MAX - 1000;
    ensure(journal_settle(journal));
    if (fits) ensure(journal_append(journal, SLICE("more"), 1, true) == JOURNAL_OK);
    journal_close(journal);
    if (!fits) return;
    journal = open_on(disk, true);
    ensure(journal && journal_last(journal) == last + 1);
    journal_close(journal);
}

static void put_file(const char *folder, const char *name, const struct buf *content)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ensure(file >= 0 && write(file, content->data, content->len) == (ssize_t)content->len);
    close(file);
}

static char folder[] = "/tmp/quipu-fuzz-journal-XXXXXX";

static void remove_folder(void)
{
    char path[300];
    for (int serial = 1; serial <= 2; serial++) {
        snprintf(path, sizeof path, "%s/%016x.journal", folder, (unsigned)serial);
        unlink(path);
    }
    rmdir(folder);
}

/* Of a damaged log it reads what can be read. */
static void salvage(const struct served *served)
{
    static bool is_made;
    struct salvage_log log;
    struct served own = *served;
    if (!is_made) ensure(mkdtemp(folder) && atexit(remove_folder) == 0);
    is_made = true;
    put_file(folder, "0000000000000001.journal", served->segments[0]);
    put_file(folder, "0000000000000002.journal", served->segments[1]);
    salvage_log_read(folder, &log, serve, &own);
    ensure(log.first == 1 && log.last >= OLDER && own.last == log.last && log.known >= log.last);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (!size) return 0;
    struct slice input = {(const char *)data + 1, size - 1};
    struct disk *disk = disk_new();
    struct buf older = older_segment(), newest = newest_segment(data[0] % 4 % SHAPES, input);
    struct served served = {.segments = {&older, &newest}};
    disk_put(disk, "0000000000000001.journal", &older);
    disk_put(disk, "0000000000000002.journal", &newest);
    disk->table.sync_folder(disk);
    struct journal *journal = open_on(disk, true);
    if (journal) {
        read_all(journal, served);
        journal_close(journal);
    }
    if (data[0] & 0x80) salvage(&served);
    go_on(disk);
    disk_free(disk);
    buf_free(&older);
    buf_free(&newest);
    return 0;
}
