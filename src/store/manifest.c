/* The MANIFEST is a log in RocksDB's format: blocks of 32 KB, in them records of a masked CRC32C, a length, a type (the
 * whole of a record, or its first, a middle, its last part), and bytes. */
#include "store/manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "store/rocks.h"

#define BLOCK_BYTES   32768u
#define HEAD_BYTES    7u
#define MANIFEST_MOST (64u * 1024 * 1024)
#define TAIL_MOST     (4u * 1024 * 1024) /* behind the last whole record; more is no torn write */
#define MENDING_NAME  "mending"
#define OLDER_MOST                                                                                           \
    8 /* lists that are tried: the newest record may be torn, those before it may name a lost file */
#define WRITE_MOST 8 /* records that RocksDB writes before it syncs; it is two for a flush */

enum part { PART_NONE, PART_WHOLE, PART_FIRST, PART_MIDDLE, PART_LAST };

static uint32_t crc32c(const unsigned char *bytes, size_t len)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

static uint32_t little(const unsigned char *bytes, size_t count)
{
    uint32_t value = 0;
    while (count--) value = value << 8 | bytes[count];
    return value;
}

/* The part that begins there, and where it ends; PART_NONE: there is none that is whole. */
static enum part part_at(struct slice text, size_t at, size_t *end)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    size_t left = BLOCK_BYTES - at % BLOCK_BYTES;
    if (left > text.len - at) left = text.len - at;
    if (left < HEAD_BYTES) return PART_NONE;
    size_t len = little(bytes + 4, 2);
    unsigned type = bytes[6];
    if (type < PART_WHOLE || type > PART_LAST || len > left - HEAD_BYTES) return PART_NONE;
    uint32_t crc = crc32c(bytes + 6, len + 1), masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
    if (little(bytes, 4) != masked) return PART_NONE;
    *end = at + HEAD_BYTES + len;
    return (enum part)type;
}

/* Where the last records end that are whole, the newest first; at `stopped` the next one does not follow. */
struct records {
    size_t ends[OLDER_MOST];
    size_t count, stopped;
};

static void add_end(struct records *records, size_t end)
{
    memmove(records->ends + 1, records->ends, (OLDER_MOST - 1) * sizeof *records->ends);
    records->ends[0] = end;
    if (records->count < OLDER_MOST) records->count++;
}

static struct records read_records(struct slice text)
{
    struct records records = {0};
    size_t at = 0, end = 0;
    bool is_within = false;
    while (at < text.len) {
        if (BLOCK_BYTES - at % BLOCK_BYTES < HEAD_BYTES) {
            at += BLOCK_BYTES - at % BLOCK_BYTES;
            continue;
        }
        enum part part = part_at(text, at, &end);
        bool follows = is_within ? part == PART_MIDDLE || part == PART_LAST
                                 : part == PART_WHOLE || part == PART_FIRST;
        if (!follows) break;
        is_within = part == PART_FIRST || part == PART_MIDDLE;
        at = end;
        if (!is_within) add_end(&records, end);
    }
    records.stopped = at;
    return records;
}

/* What stands behind the place where the records end may be of one write that was not synced. Its sectors reach the
 * disk in any order, so a record of it may be whole though one before it is torn. */
static bool ends_there(struct slice text, const struct records *records)
{
    size_t end, behind = 0;
    if (!records->count || text.len - records->ends[0] > TAIL_MOST) return false;
    for (size_t at = records->stopped + 1; at < text.len; at++) {
        enum part part = part_at(text, at, &end);
        behind += (part == PART_WHOLE || part == PART_FIRST) && end > at + HEAD_BYTES;
    }
    return behind < WRITE_MOST;
}

/* ---- files ---- */

static void put_path(struct buf *out, const char *folder, const char *name)
{
    out->len = 0;
    buf_printf(out, "%s/%s", folder, name);
    buf_byte(out, '\0');
}

static bool read_file(const char *folder, const char *name, struct buf *out)
{
    struct buf path = {0};
    put_path(&path, folder, name);
    FILE *file = fopen(path.data, "re");
    buf_free(&path);
    if (!file) return false;
    for (size_t got = 1; got && out->len <= MANIFEST_MOST;) {
        buf_reserve(out, BLOCK_BYTES);
        got = fread(out->data + out->len, 1, BLOCK_BYTES, file);
        out->len += got;
    }
    bool fine = !ferror(file) && out->len <= MANIFEST_MOST;
    fclose(file);
    return fine;
}

static bool write_file(const char *folder, const char *name, struct slice bytes)
{
    struct buf path = {0};
    put_path(&path, folder, name);
    FILE *file = fopen(path.data, "wxe");
    buf_free(&path);
    if (!file) return false;
    bool fine = fwrite(bytes.data, 1, bytes.len, file) == bytes.len;
    return fclose(file) == 0 && fine;
}

/* Of a folder without folders in it. */
static void remove_folder(const char *folder)
{
    struct buf path = {0};
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        put_path(&path, folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path.data);
    }
    closedir(directory);
    rmdir(folder);
    buf_free(&path);
}

/* They may be on another file system. */
static bool link_tables(const char *given, const char *to)
{
    struct buf old = {0}, new = {0};
    char *from = realpath(given, NULL);
    DIR *directory = from ? opendir(from) : NULL;
    bool fine = directory != NULL;
    for (struct dirent *entry; fine && (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".sst") != 0) continue;
        put_path(&old, from, entry->d_name);
        put_path(&new, to, entry->d_name);
        fine = symlink(old.data, new.data) == 0;
    }
    if (directory) closedir(directory);
    free(from);
    buf_free(&old);
    buf_free(&new);
    return fine;
}

/* ---- older lists ---- */

/* A folder whose list of files is to be replaced by an older one. */
struct torn {
    const char *store_path;
    const char *trial; /* a folder that may be made and removed */
    struct buf current, text;
    char name[64]; /* of the list, which is `text` */
    size_t bytes;  /* of the older list */
};

static bool torn_read(struct torn *torn, const char *store_path)
{
    *torn = (struct torn){.store_path = store_path};
    if (!read_file(store_path, "CURRENT", &torn->current) || torn->current.len <= 9 ||
        torn->current.len >= sizeof torn->name || !slice_starts(buf_view(&torn->current), SLICE("MANIFEST-")))
        return false;
    snprintf(torn->name, sizeof torn->name, "%.*s", (int)torn->current.len - 1,
             torn->current.data); /* it ends in a newline */
    return !strchr(torn->name, '/') && read_file(store_path, torn->name, &torn->text);
}

static void torn_free(struct torn *torn)
{
    buf_free(&torn->current);
    buf_free(&torn->text);
}

/* What the folder would be with the older list, in a folder that is there and empty. */
static bool make_trial(const struct torn *torn)
{
    return link_tables(torn->store_path, torn->trial) &&
           write_file(torn->trial, torn->name, (struct slice){torn->text.data, torn->bytes}) &&
           write_file(torn->trial, "CURRENT", buf_view(&torn->current));
}

/* The number of its last batch. */
static bool try_older(const struct torn *torn, struct rocks_mark *mark)
{
    char error[512];
    struct rocks_options options = {
        .folder = torn->trial, .path = torn->trial, .read_only = true, .cache_bytes = 1024 * 1024};
    remove_folder(torn->trial);
    bool made = mkdir(torn->trial, 0700) == 0 && make_trial(torn);
    struct store *store = made ? rocks_open(&options, error, sizeof error) : NULL;
    bool read = store && rocks_mark_on_disk(store, mark);
    if (store) store_close(store);
    remove_folder(torn->trial);
    return read;
}

/* The newest list that is whole, has all its files, and goes up to a batch from which on the journal has the rest. */
static bool find_older(struct torn *torn, uint64_t first)
{
    struct slice text = buf_view(&torn->text);
    struct records records = read_records(text);
    struct rocks_mark mark;
    if (!ends_there(text, &records)) return false;
    for (size_t i = 0; i < records.count; i++) {
        torn->bytes = records.ends[i];
        if (torn->bytes == text.len) continue; /* that is the list that cannot be read */
        if (try_older(torn, &mark)) return mark.number + 1 >= first;
    }
    return false;
}

static bool cut(const struct torn *torn)
{
    struct buf path = {0};
    put_path(&path, torn->store_path, torn->name);
    int file = open(path.data, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && ftruncate(file, (off_t)torn->bytes) == 0 && fsync(file) == 0;
    if (file >= 0) close(file);
    buf_free(&path);
    return done;
}

bool manifest_mend(const char *folder, const char *store_path, uint64_t first)
{
    struct torn torn;
    struct buf trial = {0};
    put_path(&trial, folder, MENDING_NAME);
    bool mended = torn_read(&torn, store_path);
    torn.trial = trial.data;
    mended = mended && find_older(&torn, first) && cut(&torn);
    if (mended)
        log_line(
            "the data folder %s: the end of store/%s was torn, or named what is not there, and is cut off; the log "
            "has what it told of",
            folder, torn.name);
    torn_free(&torn);
    buf_free(&trial);
    return mended;
}

char *manifest_view(const char *store_path, uint64_t first)
{
    struct torn torn;
    struct buf view = {0};
    const char *temporary = getenv("TMPDIR");
    put_path(&view, temporary && *temporary ? temporary : "/tmp", "quipu-read-XXXXXX");
    bool is_made = torn_read(&torn, store_path) && mkdtemp(view.data);
    torn.trial = view.data;
    bool is_found = is_made && find_older(&torn, first) && mkdir(view.data, 0700) == 0 && make_trial(&torn);
    if (is_made && !is_found) remove_folder(view.data);
    torn_free(&torn);
    if (is_found) return view.data;
    buf_free(&view);
    return NULL;
}

void manifest_view_free(char *view)
{
    if (view) remove_folder(view);
    free(view);
}
