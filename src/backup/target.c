/* A target's names: the marker that makes a folder one, the lists of bases and of pieces, and the text of a base, which
 * ends in a checksum of itself. */
#include "backup/target.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"

#define MARKER        "quipu-backup"
#define MARKER_NEW    MARKER ".new" /* is left where somebody is killed over it */
#define MARKER_WORDS  "quipu backup, format "
#define TARGET_FORMAT 2

/* ---- whose folder it is ---- */

static bool set_paths(const char *path, struct target_paths *paths, char *error, size_t error_len)
{
    return disk_path(paths->files, path, "files", error, error_len) &&
           disk_path(paths->bases, path, "bases", error, error_len) &&
           disk_path(paths->log, path, "log", error, error_len);
}

bool target_check(const char *path, struct target_paths *paths, char *error, size_t error_len)
{
    char marker[DISK_PATH];
    struct buf text = {0};
    struct stat status;
    int format = 0;
    if (!disk_path(marker, path, MARKER, error, error_len) || !set_paths(path, paths, error, error_len))
        return false;
    if (stat(path, &status) != 0) return disk_refuse("open the backups", path, error, error_len);
    if (stat(marker, &status) != 0) {
        snprintf(error, error_len, "the folder %s holds no backups of quipu: it has no file " MARKER, path);
        return false;
    }
    bool fine = disk_file_read(marker, 0, 64, &text, error, error_len);
    buf_byte(&text, '\0');
    if (fine && (sscanf(text.data, MARKER_WORDS "%d", &format) != 1 || format < 1)) {
        snprintf(error, error_len,
                 "the folder %s holds no backups of quipu: its file " MARKER " says otherwise", path);
        fine = false;
    }
    if (fine && format < TARGET_FORMAT) {
        snprintf(
            error, error_len,
            "the backups in %s have format %d, which only older versions of quipu read; make new ones in another "
            "folder",
            path, format);
        fine = false;
    }
    if (fine && format > TARGET_FORMAT) {
        snprintf(error, error_len,
                 "the backups in %s have format %d, written by a newer quipu; this one reads up to %d", path,
                 format, TARGET_FORMAT);
        fine = false;
    }
    buf_free(&text);
    return fine;
}

static bool lies_in(const char *path, const char *kind, const char *folder, char *error, size_t error_len)
{
    snprintf(error, error_len, "%s lies in the %s %s; choose a folder outside of it", path, kind, folder);
    return false;
}

bool backup_lies_apart(const char *path, char *error, size_t error_len)
{
    char rest[DISK_PATH], full[PATH_MAX], marker[DISK_PATH];
    bool is_there = true;
    snprintf(rest, sizeof rest, "%s", path);
    while (!realpath(rest, full)) { /* of what is not there yet, the folder that it will be in */
        char *slash = strrchr(rest, '/');
        if (errno != ENOENT) return disk_refuse("reach", path, error, error_len);
        is_there = false;
        if (!slash)
            strcpy(rest, ".");
        else
            slash[slash == rest] = '\0';
    }
    for (bool is_itself = is_there; full[1]; is_itself = false) {
        if (store_is_data_folder(full) && is_itself) {
            snprintf(error, error_len, "%s is a data folder already; choose another folder", path);
            return false;
        }
        if (store_is_data_folder(full)) return lies_in(path, "data folder", full, error, error_len);
        if (!is_itself && disk_path(marker, full, MARKER, error, error_len) && access(marker, F_OK) == 0)
            return lies_in(path, "backups", full, error, error_len);
        char *slash = strrchr(full, '/');
        slash[slash == full] = '\0';
    }
    return true;
}

/* The marker comes last: a folder that lacks it and is not empty is somebody else's. */
static bool target_make(const char *path, char *error, size_t error_len)
{
    struct target_paths paths;
    struct buf text = {0};
    buf_printf(&text, MARKER_WORDS "%d\n", TARGET_FORMAT);
    bool fine = set_paths(path, &paths, error, error_len) && disk_make_folder(path, error, error_len) &&
                disk_file_put(path, MARKER, buf_view(&text), error, error_len);
    buf_free(&text);
    return fine;
}

struct backup_target *backup_target_open(const char *path, char *error, size_t error_len)
{
    struct backup_target *target = must_zero(1, sizeof *target);
    target->piece = -1;
    snprintf(target->path, sizeof target->path, "%s", path);
    target->lock = disk_lock_folder(path, "another process writes to the backups in", error, error_len);
    bool fine = target->lock >= 0;
    if (fine && disk_is_empty(path, MARKER_NEW)) fine = target_make(path, error, error_len);
    fine = fine && target_check(path, &target->paths, error, error_len);
    fine = fine && disk_make_folder(target->paths.files, error, error_len) &&
           disk_make_folder(target->paths.bases, error, error_len) &&
           disk_make_folder(target->paths.log, error, error_len) &&
           pieces_finish(&target->paths, error, error_len);
    if (fine) return target;
    backup_target_close(target);
    return NULL;
}

/* ---- one database, one history ---- */

bool target_refuse_history(const struct backup_target *target, uint64_t next, char *error, size_t error_len)
{
    snprintf(
        error, error_len,
        "the backups in %s have another history: batch %llu is not what the database has now, as when its folder "
        "was copied or set back; move them away, or make new ones in "
             "another folder",
        target->path, (unsigned long long)next - 1);
    return false;
}

static bool is_of_source(const struct backup_target *target, const struct target_list *list, uint64_t source,
                         char *error, size_t error_len)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].source == source) continue;
        snprintf(
            error, error_len,
            "the backups in %s are of another database; each needs a folder of its own, also one that was "
            "restored",
            target->path);
        return false;
    }
    return true;
}

bool target_is_of(const struct backup_target *target, uint64_t source, char *error, size_t error_len)
{
    struct target_list bases, pieces;
    if (!target_bases(&target->paths, &bases, error, error_len)) return false;
    bool fine = is_of_source(target, &bases, source, error, error_len);
    target_list_free(&bases);
    if (!fine || !target_pieces(&target->paths, &pieces, error, error_len)) return false;
    fine = is_of_source(target, &pieces, source, error, error_len);
    target_list_free(&pieces);
    return fine;
}

void backup_target_close(struct backup_target *target)
{
    char error[300];
    if (target->piece >= 0) backup_close_piece(target, error, sizeof error); /* else the next one does it */
    if (target->lock >= 0) close(target->lock);
    free(target);
}

/* ---- lists ---- */

/* TIME-SOURCE-NUMBER-MARK: 13 digits, 16 hexadecimal ones, 20, 16 hexadecimal ones. */
static bool base_name_read(const char *name, struct target_entry *entry)
{
    struct slice rest = slice_of(name);
    unsigned long long time, number;
    struct slice moment = slice_cut(&rest, '-'), source = slice_cut(&rest, '-');
    struct slice digits = slice_cut(&rest, '-');
    if (moment.len != 13 || digits.len != 20 || !slice_to_u64(moment, INT64_MAX, &time) ||
        !hex_read(source, &entry->source) || !slice_to_u64(digits, UINT64_MAX, &number) ||
        !hex_read(rest, &entry->mark))
        return false;
    entry->time_ms = (int64_t)time;
    entry->number = number;
    return true;
}

/* SOURCE-NUMBER, perhaps 16 more digits where that name was taken, and perhaps .open */
static bool piece_name_read(const char *name, struct target_entry *entry)
{
    struct slice rest = slice_of(name), whole = slice_cut(&rest, '.'), source = slice_cut(&whole, '-');
    struct slice digits = slice_cut(&whole, '-');
    unsigned long long number;
    uint64_t more;
    if ((whole.len && !hex_read(whole, &more)) || digits.len != 20 || !hex_read(source, &entry->source) ||
        !slice_to_u64(digits, UINT64_MAX, &number))
        return false;
    entry->number = number;
    entry->is_open = slice_equal(rest, SLICE("open"));
    return entry->is_open || !rest.len;
}

static int in_order(const void *a, const void *b)
{
    const struct target_entry *one = a, *other = b;
    if (one->time_ms != other->time_ms) return one->time_ms < other->time_ms ? -1 : 1;
    if (one->source != other->source) return one->source < other->source ? -1 : 1;
    return (one->number > other->number) - (one->number < other->number);
}

static bool list_names(const char *path, bool (*reads)(const char *name, struct target_entry *entry),
                       struct target_list *list, char *error, size_t error_len)
{
    size_t room = 0;
    *list = (struct target_list){0};
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT || disk_refuse("read the folder", path, error, error_len);
    for (struct dirent *found; (found = readdir(folder));) {
        struct target_entry entry = {0};
        if (strlen(found->d_name) >= sizeof entry.name || !reads(found->d_name, &entry)) continue;
        strcpy(entry.name, found->d_name);
        if (list->count == room) {
            room = room ? room * 2 : 16;
            list->all = must_realloc(list->all, room * sizeof *list->all);
        }
        list->all[list->count++] = entry;
    }
    closedir(folder);
    if (list->count) qsort(list->all, list->count, sizeof *list->all, in_order);
    return true;
}

bool target_bases(const struct target_paths *paths, struct target_list *list, char *error, size_t error_len)
{
    return list_names(paths->bases, base_name_read, list, error, error_len);
}

bool target_pieces(const struct target_paths *paths, struct target_list *list, char *error, size_t error_len)
{
    return list_names(paths->log, piece_name_read, list, error, error_len);
}

bool target_newest(const struct target_paths *paths, struct target_entry *base, char *error, size_t error_len)
{
    struct target_list bases;
    *base = (struct target_entry){0};
    if (!target_bases(paths, &bases, error, error_len)) return false;
    if (bases.count) *base = bases.all[bases.count - 1];
    target_list_free(&bases);
    return true;
}

void target_list_free(struct target_list *list)
{
    free(list->all);
    *list = (struct target_list){0};
}

/* ---- bases ---- */

bool target_file_path(const struct target_paths *paths, const struct backup_file *file, char path[DISK_PATH],
                      char *error, size_t error_len)
{
    char name[BACKUP_NAME_BYTES + 20];
    snprintf(name, sizeof name, "%s-%016llx", file->name, (unsigned long long)file->mark);
    return disk_path(path, paths->files, name, error, error_len);
}

/* Behind the text stands its checksum, in a line of its own. */
bool target_base_write(const struct target_paths *paths, const struct backup_base *base, char *error,
                       size_t error_len)
{
    struct buf text = {0};
    char name[BACKUP_NAME_BYTES];
    ensure(base->time_ms >= 0 && base->time_ms <= 9999999999999);
    snprintf(name, sizeof name, "%013lld-%016llx-%020llu-%016llx", (long long)base->time_ms,
             (unsigned long long)base->source, (unsigned long long)base->number,
             (unsigned long long)base->mark);
    base_put(&text, base, NULL);
    buf_printf(&text, "%016llx\n", (unsigned long long)hash_bytes(buf_view(&text)));
    bool fine = disk_file_put(paths->bases, name, buf_view(&text), error, error_len);
    buf_free(&text);
    return fine;
}

bool target_base_read(const struct target_paths *paths, const struct target_entry *entry,
                      struct backup_base *base, char *error, size_t error_len)
{
    enum { LAST_LINE = 17 };
    char path[DISK_PATH];
    struct buf text = {0};
    uint64_t checksum;
    bool fine = disk_path(path, paths->bases, entry->name, error, error_len) &&
                disk_file_read(path, 0, LIMIT_BACKUP_BASE_BYTES, &text, error, error_len);
    if (!fine) {
        buf_free(&text);
        return false;
    }
    size_t len = text.len < LAST_LINE ? 0 : text.len - LAST_LINE;
    fine = len && hex_read((struct slice){text.data + len, LAST_LINE - 1}, &checksum) &&
           checksum == hash_bytes((struct slice){text.data, len}) &&
           base_parse((struct slice){text.data, len}, base, NULL);
    if (!fine) snprintf(error, error_len, "%s is damaged: it is not as it was written", path);
    buf_free(&text);
    return fine;
}
