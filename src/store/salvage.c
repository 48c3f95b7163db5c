/* What a damaged folder still holds.
 *
 * RocksDB opens its files as they are, for reading only, if it can open each of them. A block that does not fit its
 * checksum then costs the keys that it holds: a scan goes on behind them. Nothing of other files shows in their place,
 * because that would be older.
 *
 * If RocksDB cannot open them, because one is missing or its index is damaged, or because the list of files is, they
 * are linked into another folder and RocksDB makes a new list there of those that it can read from end to end. It
 * takes their order from the entries themselves. What a file held that was left out may then show as it was before.
 *
 * The log is laid over that, in memory. Batches are absolute, so it does not matter that the files have most of them
 * already, as long as the batches that can be read go as far as the files do (S12).
 *
 *  S12. The log is applied whole up to its last readable batch, or not at all: batches from its first to that one
 *       follow each other, the first one is not behind the first that the files lack, and the last one is not before
 *       the last that they have. */
#include "store/salvage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/batch.h"
#include "store/folder.h"
#include "store/overlay.h"
#include "store/rocks.h"
#include "store/rocks_options.h"

#define CACHE_BYTES (8 << 20)
#define PLACE_BYTES 48 /* of a key: so exactly the end of a gap is found */

/* A store whose scans go on behind what cannot be read. */
struct salvaged {
    struct store store; /* first: a store is cast back to it */
    struct store *rocks;
    struct store_salvage *out;
    int lock;
};

__attribute__((format(printf, 2, 3))) static void tell(struct store_salvage *out, const char *format, ...)
{
    char sentence[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    buf_slice(&out->sentences, slice_of(sentence));
    buf_byte(&out->sentences, '\n');
}

static char *path_join(const char *folder, const char *name)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s", folder, name);
    buf_byte(&path, '\0');
    return path.data;
}

void store_salvage_free(struct store_salvage *salvage)
{
    buf_free(&salvage->sentences);
    store_batch_free(&salvage->gaps);
}

/* ---- behind a gap ---- */

/* A key as a number of PLACE_BYTES bytes. */
struct place {
    unsigned char bytes[PLACE_BYTES];
};

static struct place place_of(struct slice key)
{
    struct place place = {0};
    if (key.len) memcpy(place.bytes, key.data, key.len < PLACE_BYTES ? key.len : PLACE_BYTES);
    return place;
}

/* Adds 2^bit; false when that is beyond all keys. */
static bool place_add(struct place *place, unsigned bit)
{
    unsigned carry = 1u << bit % 8;
    for (int i = PLACE_BYTES - 1 - (int)(bit / 8); i >= 0 && carry; i--) {
        carry += place->bytes[i];
        place->bytes[i] = (unsigned char)carry;
        carry >>= 8;
    }
    return carry == 0;
}

static struct slice place_key(const struct place *place)
{
    return (struct slice){(const char *)place->bytes, PLACE_BYTES};
}

static bool stop_at_first(void *context, struct slice key, struct slice value)
{
    (void)context, (void)key, (void)value;
    return false;
}

static bool can_read_from(struct salvaged *salvaged, const struct place *place, struct slice to)
{
    return store_scan(salvaged->rocks, place_key(place), to, false, stop_at_first, NULL) == STORE_OK;
}

/* Where the keys can be read again: twice as far each time, then halving what lies between. False: nowhere. */
static bool gap_end(struct salvaged *salvaged, struct slice from, struct slice to, struct place *end)
{
    struct place bad = place_of(from), good = bad;
    unsigned bit = 0;
    for (;; bit++) {
        if (bit == 8 * PLACE_BYTES) return false;
        good = place_of(from);
        if (!place_add(&good, bit) || (to.len && slice_compare(place_key(&good), to) >= 0)) return false;
        if (can_read_from(salvaged, &good, to)) break;
        bad = good;
    }
    while (bit-- > 0) {
        struct place middle = bad;
        place_add(&middle, bit);
        if (slice_compare(place_key(&middle), place_key(&good)) >= 0) continue;
        if (can_read_from(salvaged, &middle, to))
            good = middle;
        else
            bad = middle;
    }
    *end = good;
    return true;
}

/* ---- the store ---- */

static struct salvaged *salvaged_of(struct store *store)
{
    return (struct salvaged *)store;
}

static enum store_result salvaged_get(struct store *store, struct slice key, struct buf *value)
{
    struct salvaged *salvaged = salvaged_of(store);
    enum store_result result = store_get(salvaged->rocks, key, value);
    if (result != STORE_FAILED) return result;
    tell(salvaged->out, "%s", salvaged->rocks->error);
    rocks_forget_failure(salvaged->rocks);
    return STORE_MISSING;
}

struct follow {
    store_visitor visitor;
    void *context;
    struct buf next; /* the key that follows directly on the last one */
    bool stopped;
};

static bool follow_visit(void *context, struct slice key, struct slice value)
{
    struct follow *follow = context;
    follow->next.len = 0;
    buf_slice(&follow->next, key);
    buf_byte(&follow->next, '\0');
    follow->stopped = !follow->visitor(follow->context, key, value);
    return !follow->stopped;
}

static enum store_result salvaged_scan(struct store *store, struct slice from, struct slice to,
                                       bool backwards, store_visitor visitor, void *context)
{
    struct salvaged *salvaged = salvaged_of(store);
    struct follow follow = {.visitor = visitor, .context = context};
    struct place end;
    ensure(!backwards);
    buf_slice(&follow.next, from);
    while (store_scan(salvaged->rocks, buf_view(&follow.next), to, false, follow_visit, &follow) ==
           STORE_FAILED) {
        char words[sizeof salvaged->rocks->error];
        snprintf(words, sizeof words, "%s", salvaged->rocks->error);
        rocks_forget_failure(salvaged->rocks);
        tell(salvaged->out, "%s", words);
        bool goes_on = !follow.stopped && gap_end(salvaged, buf_view(&follow.next), to, &end);
        rocks_forget_failure(salvaged->rocks);
        struct slice behind = goes_on ? place_key(&end) : to.len ? to : SLICE("\xff\xff\xff\xff");
        store_batch_delete_range(&salvaged->out->gaps, buf_view(&follow.next), behind);
        if (!goes_on) break;
        follow.next.len = 0;
        buf_slice(&follow.next, place_key(&end));
    }
    buf_free(&follow.next);
    return STORE_OK;
}

static void salvaged_stats(struct store *store, struct store_stats *stats)
{
    store_stats(salvaged_of(store)->rocks, stats);
}

static void salvaged_close(struct store *store)
{
    struct salvaged *salvaged = salvaged_of(store);
    if (salvaged->rocks) store_close(salvaged->rocks);
    if (salvaged->lock >= 0) close(salvaged->lock);
    free(salvaged);
}

static const struct store_methods salvaged_methods = {
    .get = salvaged_get, .scan = salvaged_scan, .stats = salvaged_stats, .close = salvaged_close};

/* ---- files in a new order ---- */

static bool has_ending(const char *name, const char *ending)
{
    size_t len = strlen(name), end = strlen(ending);
    return len > end && strcmp(name + len - end, ending) == 0;
}

static bool file_copy(const char *from, const char *to)
{
    char piece[64 * 1024];
    int source = open(from, O_RDONLY | O_CLOEXEC),
        target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t len = -1;
    while (source >= 0 && target >= 0 && (len = read(source, piece, sizeof piece)) > 0)
        if (write(target, piece, (size_t)len) != len) len = -1;
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    return len == 0;
}

/* Files of tables never change, so a link is as good as a copy. A file that cannot be read is told and left out. */
static bool files_gather(struct store_salvage *out, const char *store_path, const char *work, char *error,
                         size_t error_len)
{
    DIR *directory = opendir(store_path);
    if (!directory) snprintf(error, error_len, "%s: %s", store_path, strerror(errno));
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        bool is_table = has_ending(name, ".sst");
        if (!is_table && !has_ending(name, ".log") && strncmp(name, "MANIFEST", 8) != 0 &&
            strcmp(name, "CURRENT") != 0)
            continue;
        char *from = path_join(store_path, name), *to = path_join(work, name);
        if ((!is_table || link(from, to) != 0) && !file_copy(from, to)) {
            tell(out, "%s cannot be read, and is left out: %s", from, strerror(errno));
            unlink(to);
        }
        free(from);
        free(to);
    }
    if (directory) closedir(directory);
    return directory != NULL;
}

/* RocksDB has moved what it could not read into the folder `lost`. */
static void files_tell_lost(struct store_salvage *out, const char *store_path, const char *work)
{
    char *path = path_join(work, "lost");
    DIR *directory = opendir(path);
    free(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat status;
        if (!has_ending(entry->d_name, ".sst") || fstatat(dirfd(directory), entry->d_name, &status, 0) != 0)
            continue;
        tell(
            out,
            "%s/%s, %llu bytes, cannot be read to its end, and is left out: keys that it held are missing or as they "
            "were before",
            store_path, entry->d_name, (unsigned long long)status.st_size);
    }
    if (directory) closedir(directory);
}

static struct store *open_repaired(struct store_salvage *out, const char *folder, const char *store_path,
                                   const char *work, char *error, size_t error_len)
{
    struct rocks_options options = {
        .folder = folder, .path = work, .read_only = true, .cache_bytes = CACHE_BYTES};
    struct rocks_setup setup;
    char *words = NULL;
    if (!files_gather(out, store_path, work, error, error_len)) return NULL;
    rocks_setup_init(&setup, &options);
    rocksdb_repair_db(setup.rocksdb, work, &words);
    rocks_setup_free(&setup);
    if (words) snprintf(error, error_len, "the data folder %s: %s", folder, words);
    if (words) return rocksdb_free(words), NULL;
    files_tell_lost(out, store_path, work);
    return rocks_open(&options, error, error_len);
}

static struct store *open_tables(struct store_salvage *out, const char *folder, const char *work, char *error,
                                 size_t error_len)
{
    char words[600], *store_path = path_join(folder, "store"), *current = path_join(store_path, "CURRENT");
    struct rocks_options options = {
        .folder = folder, .path = store_path, .read_only = true, .cache_bytes = CACHE_BYTES};
    struct stat status;
    struct store *rocks = NULL;
    bool is_there = stat(store_path, &status) == 0;
    if (!is_there)
        snprintf(error, error_len, "the folder %s holds no data of quipu that could be read: %s: %s", folder,
                 store_path, strerror(errno));
    if (is_there && stat(current, &status) == 0) {
        rocks = rocks_open(&options, words, sizeof words);
        if (!rocks) tell(out, "%s", words);
    } else if (is_there) {
        tell(out, "%s is missing", current);
    }
    if (is_there && !rocks) rocks = open_repaired(out, folder, store_path, work, error, error_len);
    free(store_path);
    free(current);
    return rocks;
}

/* ---- the log ---- */

static bool apply_one(void *context, const struct journal_batch *found)
{
    struct store_batch batch;
    return store_batch_from_bytes(found->payload, &batch) && store_write(context, &batch, false) == STORE_OK;
}

/* What the tables and the log are known to have had, and now have not. */
static void tell_lost_batches(struct store_salvage *out, const struct salvage_log *log, uint64_t noted,
                              uint64_t last)
{
    uint64_t known = log->known > noted ? log->known : noted;
    if (known > last)
        tell(out, "the writes of the batches %llu to %llu, if not more, are lost",
             (unsigned long long)last + 1, (unsigned long long)known);
}

/* Whether the log can be laid over the tables (S12). */
static bool log_fits(struct salvaged *salvaged, const char *path, struct salvage_log *log)
{
    struct store_salvage *out = salvaged->out;
    struct rocks_mark mark = {0};
    struct stat status;
    struct folder_log noted = folder_read_log(salvaged->lock);
    bool knows_mark = rocks_mark_on_disk(salvaged->rocks, &mark);
    rocks_forget_failure(salvaged->rocks);
    *log = (struct salvage_log){0};
    if (stat(path, &status) != 0) {
        if (mark.number || noted.id)
            tell(out, "%s is missing: what came behind batch %llu is lost", path,
                 (unsigned long long)mark.number);
        tell_lost_batches(out, log, noted.last, mark.number);
        return false;
    }
    salvage_log_read(path, log, NULL, NULL);
    if (!log->is_whole)
        tell(out, "the log is damaged: %s; it can be read up to batch %llu, and %llu bytes are left out",
             log->words, (unsigned long long)log->last, (unsigned long long)log->left_bytes);
    uint64_t id = mark.journal ? mark.journal : noted.id;
    if (id && log->id && log->id != id) {
        tell(out, "%s belongs to another data folder: it is left out", path);
        *log = (struct salvage_log){0};
    }
    bool fits = knows_mark ? salvage_log_fits(log, mark.number) : log->last && log->is_whole;
    tell_lost_batches(out, log, noted.last, fits ? log->last : mark.number);
    if (fits || !log->last || (noted.is_unsynced && log->is_whole)) return fits;
    tell(out, "the log has batches %llu to %llu, and the tables have everything up to %llu: it is left out",
         (unsigned long long)log->first, (unsigned long long)log->last, (unsigned long long)mark.number);
    return false;
}

/* Takes the store. */
static struct store *lay_log(struct salvaged *salvaged, const char *folder)
{
    struct store *store = &salvaged->store;
    struct salvage_log log;
    char *path = path_join(folder, "journal");
    if (log_fits(salvaged, path, &log)) {
        store = store_open_overlay(store);
        salvage_log_read(path, &log, apply_one, store);
    }
    free(path);
    return store;
}

static bool folder_is_there(const char *folder, char *error, size_t error_len)
{
    struct stat status;
    bool is_there = stat(folder, &status) == 0;
    if (is_there && S_ISDIR(status.st_mode)) return true;
    if (is_there)
        snprintf(error, error_len, "the data folder %s is not a folder", folder);
    else if (errno == ENOENT)
        snprintf(error, error_len, "the data folder %s does not exist", folder);
    else
        snprintf(error, error_len, "the data folder %s cannot be reached: %s", folder, strerror(errno));
    return false;
}

/* Nobody may write to it meanwhile. A folder without its marker is nobody's. */
static bool folder_hold(const char *folder, int *lock, char *error, size_t error_len)
{
    char *path = path_join(folder, "quipu");
    *lock = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (*lock < 0 || flock(*lock, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    snprintf(error, error_len, "the data folder %s is in use by another process", folder);
    close(*lock);
    return false;
}

struct store *store_open_salvage(const char *folder, const char *work, struct store_salvage *out, char *error,
                                 size_t error_len)
{
    int lock;
    *out = (struct store_salvage){0};
    if (!folder_is_there(folder, error, error_len) || !folder_hold(folder, &lock, error, error_len))
        return NULL;
    struct salvaged *salvaged = must_zero(1, sizeof *salvaged);
    salvaged->store.methods = &salvaged_methods;
    salvaged->lock = lock;
    salvaged->out = out;
    salvaged->rocks = open_tables(out, folder, work, error, error_len);
    if (salvaged->rocks) return lay_log(salvaged, folder);
    salvaged_close(&salvaged->store);
    return NULL;
}
