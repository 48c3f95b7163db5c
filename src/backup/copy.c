/* From a source to a target: bases, of which only files that are not there yet are copied; where the log goes on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/target.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"

#define REST_SHARE   3       /* of the time that a piece took */
#define REST_MOST_US 1000000 /* a disk that stood still says nothing about writers */

struct copying {
    struct backup_target *target;
    struct backup_source *source;
    struct backup_progress *progress;
    struct backup_file *known; /* files of earlier bases, in the order of backup_file_order */
    size_t known_count;
    uint64_t newest; /* batch of the source, as of the piece before */
    char *error;
    size_t error_len;
};

/* ---- what is there ---- */

/* A base that cannot be read is as good as none: its files are read again. */
static bool know_files(struct copying *copying)
{
    struct target_list bases;
    struct backup_base base;
    char error[300];
    if (!target_bases(&copying->target->paths, &bases, copying->error, copying->error_len)) return false;
    for (size_t i = 0; i < bases.count; i++) {
        if (!target_base_read(&copying->target->paths, &bases.all[i], &base, error, sizeof error)) continue;
        size_t all = copying->known_count + base.count;
        copying->known = must_realloc(copying->known, (all + 1) * sizeof *copying->known);
        memcpy(copying->known + copying->known_count, base.files, base.count * sizeof *base.files);
        copying->known_count = all;
        backup_base_free(&base);
    }
    target_list_free(&bases);
    if (copying->known_count)
        qsort(copying->known, copying->known_count, sizeof *copying->known, backup_file_order);
    return true;
}

static bool has_file(const struct copying *copying, const struct backup_file *file)
{
    char path[DISK_PATH];
    struct stat status;
    return target_file_path(&copying->target->paths, file, path, copying->error, copying->error_len) &&
           stat(path, &status) == 0 && (uint64_t)status.st_size == file->bytes;
}

/* As an earlier base tells it; NULL: none does. */
static const struct backup_file *known_find(const struct copying *copying, const struct backup_file *file)
{
    if (!copying->known_count) return NULL;
    return bsearch(file, copying->known, copying->known_count, sizeof *file, backup_file_order);
}

/* Whether it is as it was written, by its own bytes. */
static bool is_sound(const struct copying *copying, const struct backup_file *file, const char *path)
{
    const struct backup_file *found = known_find(copying, file);
    uint64_t bytes, hash;
    char error[300];
    return found && disk_file_hash(path, &bytes, &hash, error, sizeof error) && bytes == found->bytes &&
           hash == found->checksum;
}

/* Of a file that the target has; it is read only where no base tells it. */
static bool checksum_known(const struct copying *copying, struct backup_file *file, const char *path)
{
    const struct backup_file *found = known_find(copying, file);
    uint64_t bytes;
    if (found && found->bytes == file->bytes) {
        file->checksum = found->checksum;
        return true;
    }
    return disk_file_hash(path, &bytes, &file->checksum, copying->error, copying->error_len);
}

/* ---- copying ---- */

static bool goes_on(const struct copying *copying)
{
    struct backup_progress *progress = copying->progress;
    if (progress->tell) progress->tell(progress->context, progress);
    if (!progress->goes_on || progress->goes_on(progress->context)) return true;
    snprintf(copying->error, copying->error_len,
             "interrupted; what was copied so far is used by the next backup");
    return false;
}

/* Where somebody has written since the piece before, the copy makes way: writers need the same disk and the same
 * processor. A piece goes to the disk at once, since a flood of them would hold up every sync of the source's log. */
static void make_way(struct copying *copying, int out, uint64_t at, size_t len, int64_t begun_us)
{
    bool is_written = copying->source->newest != copying->newest;
    copying->newest = copying->source->newest;
    if (!is_written || copying->progress->is_fast) return;
    sync_file_range(out, (off_t)at, (off_t)len,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    int64_t rest_us = (monotonic_us() - begun_us) * REST_SHARE;
    usleep((useconds_t)(rest_us < REST_MOST_US ? rest_us : REST_MOST_US));
}

static bool copy_bytes(struct copying *copying, struct backup_file *file, int out, const char *path)
{
    struct hash_stream *hash = hash_stream_begin();
    struct buf piece = {0};
    bool fine = true;
    for (uint64_t at = 0; fine && at < file->bytes; at += piece.len) {
        int64_t begun_us = monotonic_us();
        piece.len = 0;
        fine = goes_on(copying) && copying->source->read(copying->source->self, file, at, &piece,
                                                         copying->error, copying->error_len);
        if (fine && (!piece.len || piece.len > file->bytes - at)) {
            snprintf(copying->error, copying->error_len, "the source's file %s is not of %llu bytes any more",
                     file->name, (unsigned long long)file->bytes);
            fine = false;
        }
        if (!fine) break;
        hash_stream_add(hash, buf_view(&piece));
        fine = disk_write_all(out, buf_view(&piece)) ||
               disk_refuse("write", path, copying->error, copying->error_len);
        copying->progress->bytes_done += piece.len;
        make_way(copying, out, at, piece.len, begun_us);
    }
    file->checksum = hash_stream_end(hash);
    buf_free(&piece);
    return fine;
}

static bool copy_file(struct copying *copying, struct backup_file *file, const char *path)
{
    char fresh[DISK_PATH];
    uint64_t bytes, mark;
    int len = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (len < 0 || (size_t)len >= sizeof fresh)
        return disk_path(fresh, path, "new", copying->error, copying->error_len);
    int out = disk_file_new(fresh);
    if (out < 0) return disk_refuse("write", fresh, copying->error, copying->error_len);
    bool fine = copy_bytes(copying, file, out, fresh);
    if (fine && fsync(out) != 0) fine = disk_refuse("write", fresh, copying->error, copying->error_len);
    close(out);
    fine = fine && disk_file_mark(fresh, file->name, &bytes, &mark, copying->error, copying->error_len);
    if (fine && (bytes != file->bytes || mark != file->mark)) {
        snprintf(copying->error, copying->error_len, "the file %s arrived otherwise than it was sent",
                 file->name);
        fine = false;
    }
    if (fine && rename(fresh, path) != 0)
        fine = disk_refuse("write", path, copying->error, copying->error_len);
    if (!fine) unlink(fresh);
    return fine;
}

static bool bring_file(struct copying *copying, struct backup_file *file)
{
    struct backup_source *source = copying->source;
    char path[DISK_PATH];
    uint64_t bytes;
    if (!target_file_path(&copying->target->paths, file, path, copying->error, copying->error_len))
        return false;
    if (has_file(copying, file) && (!copying->progress->mends || is_sound(copying, file, path)))
        return checksum_known(copying, file, path);
    copying->progress->files_copied++;
    copying->progress->bytes_copied += file->bytes;
    if (source->link && disk_is_table(file->name) && source->link(source->self, file, path))
        return disk_file_hash(path, &bytes, &file->checksum, copying->error, copying->error_len);
    return copy_file(copying, file, path);
}

static bool copy_base(struct copying *copying, struct backup_base *base)
{
    struct backup_progress *progress = copying->progress;
    bool fine = know_files(copying);
    progress->files_all = base->count;
    for (size_t i = 0; fine && i < base->count; i++)
        if (!has_file(copying, &base->files[i])) progress->bytes_all += base->files[i].bytes;
    for (size_t i = 0; fine && i < base->count; i++)
        fine = goes_on(copying) && bring_file(copying, &base->files[i]);
    free(copying->known);
    return fine && disk_sync_folder(copying->target->paths.files, copying->error, copying->error_len) &&
           target_base_write(&copying->target->paths, base, copying->error, copying->error_len);
}

/* Whether the last batch that the target has is the same in the source's log. Where the log has not got it any more
 * nobody can tell. */
enum agreement { SAME, OTHER, UNKNOWN };

static enum agreement compare(const struct copying *copying, const struct backup_position *end)
{
    struct buf block = {0};
    struct block_head head = {0};
    char error[300];
    enum backup_log result = copying->source->log(copying->source->self, end->source, end->next, 0, &block,
                                                  error, sizeof error);
    bool is_known = result == BACKUP_LOG_BLOCK && block_head_read(buf_view(&block), &head) &&
                    head.first == end->next && head.before && end->mark;
    buf_free(&block);
    return !is_known ? UNKNOWN : head.before == end->mark ? SAME : OTHER;
}

/* A target belongs to one database, and to one history of it. Nothing of the target is used together with what comes
 * behind a gap, so that a base behind one may be of any. A folder that is only read has tables that may be older than
 * the target, and the log up to it. */
static bool belongs(const struct copying *copying, const struct backup_base *base)
{
    struct backup_position end;
    uint64_t next = base->number + 1;
    if (!target_is_of(copying->target, base->source, copying->error, copying->error_len) ||
        !backup_target_position(copying->target, &end, copying->error, copying->error_len))
        return false;
    if (!end.source) return true;
    bool fits;
    if (next == end.next)
        fits = !base->mark || !end.mark || base->mark == end.mark;
    else if (next > end.next)
        fits = compare(copying, &end) != OTHER;
    else
        fits = compare(copying, &end) == SAME;
    return fits || target_refuse_history(copying->target, end.next, copying->error, copying->error_len);
}

bool backup_take_base(struct backup_target *target, struct backup_source *source,
                      struct backup_progress *progress, struct backup_position *position, char *error,
                      size_t error_len)
{
    struct copying copying = {
        .target = target, .source = source, .progress = progress, .error = error, .error_len = error_len};
    struct backup_base base = {0};
    if (!source->begin(source->self, &base, error, error_len)) return false;
    progress->is_refused = !belongs(&copying, &base);
    bool fine = !progress->is_refused && copy_base(&copying, &base);
    if (fine && position->source != base.source) {
        fine = backup_close_piece(target, error, error_len);
        *position = (struct backup_position){
            .source = base.source, .next = base.number + 1, .mark = base.mark, .until_ms = base.time_ms};
    }
    if (fine) {
        position->base_number = base.number;
        position->base_ms = base.time_ms;
    } else {
        source->end(source->self);
    }
    backup_base_free(&base);
    return fine;
}

bool backup_wants_base(const struct backup_position *position)
{
    bool is_old = position->until_ms - position->base_ms >= LIMIT_BACKUP_BASE_MS;
    return !position->source || (is_old && position->next > position->base_number + 1);
}

bool backup_target_position(struct backup_target *target, struct backup_position *position, char *error,
                            size_t error_len)
{
    struct target_entry base;
    struct chain chain;
    *position = (struct backup_position){0};
    if (!target_newest(&target->paths, &base, error, error_len)) return false;
    if (!base.name[0]) return true;
    if (!chain_find(&target->paths, &base, &chain, error, error_len)) return false;
    *position = chain.end;
    position->base_number = base.number;
    position->base_ms = base.time_ms;
    chain_free(&chain);
    return true;
}

/* ---- forgetting ---- */

struct keeping {
    struct backup_file *files; /* of bases that stay */
    size_t count;
};

static void keep_files(struct keeping *keeping, const struct backup_base *base)
{
    keeping->files = must_realloc(keeping->files,
                                  (keeping->count + base->count + 1) * sizeof *keeping->files);
    memcpy(keeping->files + keeping->count, base->files, base->count * sizeof *base->files);
    keeping->count += base->count;
}

/* "000012.sst-0123456789abcdef" */
static bool is_kept(const struct keeping *keeping, const char *name)
{
    struct backup_file file = {0};
    size_t len = strlen(name);
    if (len < 18 || len - 17 >= sizeof file.name ||
        !hex_read((struct slice){name + len - 16, 16}, &file.mark))
        return false;
    memcpy(file.name, name, len - 17);
    return keeping->count && bsearch(&file, keeping->files, keeping->count, sizeof file, backup_file_order);
}

static bool remove_files(const struct backup_target *target, const struct keeping *keeping, char *error,
                         size_t error_len)
{
    DIR *folder = opendir(target->paths.files);
    if (!folder) return disk_refuse("read the folder", target->paths.files, error, error_len);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && !is_kept(keeping, entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    return true;
}

/* A piece goes when another one of its source begins before the first batch that the oldest base needs. */
static bool remove_pieces(const struct backup_target *target, const struct target_list *bases, size_t oldest,
                          char *error, size_t error_len)
{
    struct target_list pieces;
    if (!target_pieces(&target->paths, &pieces, error, error_len)) return false;
    for (size_t i = 0; i < pieces.count; i++) {
        const struct target_entry *piece = &pieces.all[i], *next = i + 1 < pieces.count ? piece + 1 : NULL;
        bool is_needed = piece->is_open;
        for (size_t k = oldest; k < bases->count && !is_needed; k++)
            is_needed = bases->all[k].source == piece->source &&
                        !(next && next->source == piece->source && next->number <= bases->all[k].number + 1);
        char path[DISK_PATH];
        if (!is_needed && disk_path(path, target->paths.log, piece->name, error, error_len)) unlink(path);
    }
    target_list_free(&pieces);
    return true;
}

bool backup_forget(struct backup_target *target, int64_t before_ms, char *error, size_t error_len)
{
    struct target_list bases;
    struct keeping keeping = {0};
    bool fine = true;
    if (!target_bases(&target->paths, &bases, error, error_len)) return false;
    size_t oldest = 0; /* the newest one that is not younger than that moment */
    while (oldest + 1 < bases.count && bases.all[oldest + 1].time_ms <= before_ms) oldest++;
    for (size_t i = oldest; fine && i < bases.count; i++) {
        struct backup_base base;
        fine = target_base_read(&target->paths, &bases.all[i], &base, error, error_len);
        if (!fine) break;
        keep_files(&keeping, &base);
        backup_base_free(&base);
    }
    if (keeping.count) qsort(keeping.files, keeping.count, sizeof *keeping.files, backup_file_order);
    for (size_t i = 0; fine && i < oldest; i++) {
        char path[DISK_PATH];
        fine = disk_path(path, target->paths.bases, bases.all[i].name, error, error_len);
        if (fine) unlink(path);
    }
    fine = fine && disk_sync_folder(target->paths.bases, error, error_len) &&
           remove_files(target, &keeping, error, error_len) &&
           remove_pieces(target, &bases, oldest, error, error_len);
    free(keeping.files);
    target_list_free(&bases);
    return fine;
}
