/* Pieces of the log: a file of blocks, appended and synced one by one, and renamed when it is closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/target.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"

#define OPEN     ".open"
#define QUIET_MS 10000 /* how often a log that does not grow is said to be known up to now */

/* ---- reading ---- */

/* A piece that was open when it was listed may have been closed since. */
static int open_to_read(const char *path)
{
    char closed[DISK_PATH];
    size_t len = strlen(path), end = strlen(OPEN);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 || errno != ENOENT || len <= end || strcmp(path + len - end, OPEN) != 0) return file;
    snprintf(closed, sizeof closed, "%.*s", (int)(len - end), path);
    return open(closed, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static bool read_at(int file, uint64_t from, size_t len, struct buf *out)
{
    out->len = 0;
    buf_reserve(out, len);
    while (out->len < len) {
        ssize_t got = pread(file, out->data + out->len, len - out->len, (off_t)(from + out->len));
        if (got == 0) errno = EIO; /* somebody has cut it */
        if (got <= 0) return false;
        out->len += (size_t)got;
    }
    return true;
}

bool piece_all(void *context, const struct block_head *head)
{
    (void)context;
    (void)head;
    return true;
}

bool piece_walk(const char *path, piece_reads *reads, piece_visitor *visitor, void *context,
                struct piece_end *end, char *error, size_t error_len)
{
    struct buf bytes = {0};
    struct block_head head;
    struct stat status;
    int file = open_to_read(path);
    bool fine = file >= 0 && fstat(file, &status) == 0;
    uint64_t size = fine ? (uint64_t)status.st_size : 0, last = 0, source = 0, mark = 0;
    *end = (struct piece_end){0};
    for (bool goes_on = true; fine && goes_on && size - end->bytes >= BLOCK_HEAD;) {
        fine = read_at(file, end->bytes, BLOCK_HEAD, &bytes);
        if (!fine || !block_head_read(buf_view(&bytes), &head)) break;
        if (head.stored_bytes > size - end->bytes - BLOCK_HEAD) break;
        if (end->bytes && (head.first != last || head.source != source || head.before != mark)) break;
        bytes.len = 0;
        bool is_read = reads && reads(context, &head);
        if (is_read) fine = read_at(file, end->bytes + BLOCK_HEAD, head.stored_bytes, &bytes);
        if (!fine || (is_read && !block_visit(&head, buf_view(&bytes), NULL, NULL))) break;
        last = head.first + head.count;
        source = head.source;
        mark = head.last;
        end->bytes += BLOCK_HEAD + head.stored_bytes;
        goes_on = visitor(context, &head, buf_view(&bytes));
        if (!goes_on) end->is_whole = true; /* as far as anybody wanted to know */
    }
    end->is_whole = end->is_whole || end->bytes == size;
    if (!fine) disk_refuse("read", path, error, error_len);
    if (file >= 0) close(file);
    buf_free(&bytes);
    return fine;
}

/* ---- writing ---- */

bool backup_close_piece(struct backup_target *target, char *error, size_t error_len)
{
    char path[DISK_PATH], open_path[DISK_PATH], open_name[BACKUP_NAME_BYTES + 8];
    if (target->piece < 0) return true;
    snprintf(open_name, sizeof open_name, "%s" OPEN, target->piece_name);
    close(target->piece); /* each block was synced */
    target->piece = -1;
    if (!disk_path(path, target->paths.log, target->piece_name, error, error_len) ||
        !disk_path(open_path, target->paths.log, open_name, error, error_len))
        return false;
    if (rename(open_path, path) != 0) return disk_refuse("rename", open_path, error, error_len);
    return disk_sync_folder(target->paths.log, error, error_len);
}

static bool count_block(void *context, const struct block_head *head, struct slice stored)
{
    (void)stored;
    *(uint64_t *)context += head->count;
    return true;
}

/* Whether a piece of this name is there, open or closed, that holds batches, or something that is no block. */
static bool is_taken(const struct backup_target *target, const char *name)
{
    char path[DISK_PATH], open_path[DISK_PATH], error[300];
    struct piece_end end;
    struct stat status;
    uint64_t batches = 0;
    if (!disk_path(path, target->paths.log, name, error, sizeof error)) return true;
    int len = snprintf(open_path, sizeof open_path, "%s" OPEN, path);
    if (len < 0 || (size_t)len >= sizeof open_path || lstat(open_path, &status) == 0) return true;
    if (lstat(path, &status) != 0) return errno != ENOENT;
    return !piece_walk(path, NULL, count_block, &batches, &end, error, sizeof error) || batches ||
           !end.is_whole;
}

/* One of the same name that tells of moments only gives way to it in the end. */
static bool open_piece(struct backup_target *target, const struct block_head *head, char *error,
                       size_t error_len)
{
    char path[DISK_PATH], name[BACKUP_NAME_BYTES + 8];
    size_t len = (size_t)snprintf(target->piece_name, sizeof target->piece_name, "%016llx-%020llu",
                                  (unsigned long long)head->source, (unsigned long long)head->first);
    if (is_taken(target, target->piece_name)) {
        struct random random;
        random_seed_from_system(&random);
        target->piece_name[len] = '-';
        hex_put(target->piece_name + len + 1, random_next(&random));
    }
    snprintf(name, sizeof name, "%s" OPEN, target->piece_name);
    if (!disk_path(path, target->paths.log, name, error, error_len)) return false;
    target->piece = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    target->piece_bytes = 0;
    if (target->piece < 0) return disk_refuse("write", path, error, error_len);
    return disk_sync_folder(target->paths.log, error, error_len);
}

/* What could not be written whole is cut off before the piece gets its name. Where even that fails it stays open: its
 * last whole block is its end then, and whoever opens the target next cuts it. Always false. */
static bool give_up_piece(struct backup_target *target, char *error, size_t error_len)
{
    char none[300], path[DISK_PATH];
    disk_refuse("write the log in", target->path, error, error_len);
    bool is_cut = ftruncate(target->piece, (off_t)target->piece_bytes) == 0 && fsync(target->piece) == 0;
    if (is_cut && target->piece_bytes) {
        backup_close_piece(target, none, sizeof none);
    } else {
        close(target->piece);
        target->piece = -1;
        int len = snprintf(path, sizeof path, "%s/%s" OPEN, target->paths.log, target->piece_name);
        if (!target->piece_bytes && len > 0 && (size_t)len < sizeof path) unlink(path);
    }
    return false;
}

/* Whether it belongs behind what the target has. Where either mark is not known nobody can tell. */
static enum backup_log fits(const struct backup_target *target, const struct backup_position *position,
                            const struct block_head *head, char *error, size_t error_len)
{
    if (!head->before || !position->mark) {
        snprintf(error, error_len, "the log has not got the batch %llu",
                 (unsigned long long)position->next - 1);
        return head->count ? BACKUP_LOG_GONE : BACKUP_LOG_BLOCK;
    }
    if (head->before == position->mark) return BACKUP_LOG_BLOCK;
    target_refuse_history(target, position->next, error, error_len);
    return BACKUP_LOG_FAILED;
}

enum backup_log backup_ship(struct backup_target *target, struct backup_source *source,
                            struct backup_position *position, int64_t wait_ms, char *error, size_t error_len)
{
    struct buf block = {0};
    struct block_head head;
    enum backup_log result = source->log(source->self, position->source, position->next, wait_ms, &block,
                                         error, error_len);
    bool fine = result == BACKUP_LOG_BLOCK;
    if (fine) {
        fine = block_head_read(buf_view(&block), &head) && head.source == position->source &&
               head.first == position->next &&
               block_visit(&head, slice_from(buf_view(&block), BLOCK_HEAD), NULL, NULL);
        if (!fine) {
            snprintf(error, error_len, "the source sent a block of the log that is not whole");
            result = BACKUP_LOG_AWAY;
        }
    }
    if (fine) {
        result = fits(target, position, &head, error, error_len);
        fine = result == BACKUP_LOG_BLOCK;
    }
    bool is_known = fine && head.before && position->mark;
    bool says_nothing = fine && !head.count &&
                        (!is_known ||
                         (target->piece >= 0 && head.until_ms < target->piece_until_ms + QUIET_MS));
    if (says_nothing) {
        buf_free(&block);
        return result;
    }
    if (fine && target->piece < 0) fine = open_piece(target, &head, error, error_len);
    if (fine) {
        fine = (disk_write_all(target->piece, buf_view(&block)) && fdatasync(target->piece) == 0) ||
               give_up_piece(target, error, error_len);
    }
    if (fine) {
        target->piece_bytes += block.len;
        target->piece_until_ms = head.until_ms;
        position->next = head.first + head.count;
        position->mark = head.last;
        if (head.until_ms > position->until_ms) position->until_ms = head.until_ms;
        if (target->piece_bytes >= LIMIT_BACKUP_PIECE_BYTES)
            fine = backup_close_piece(target, error, error_len);
    }
    buf_free(&block);
    return fine ? result : result == BACKUP_LOG_BLOCK ? BACKUP_LOG_FAILED : result;
}

/* What is whole of it may not be on the disk: its writer may have ended before the sync. */
static bool cut_piece(const char *path, uint64_t bytes)
{
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_cut = file >= 0 && ftruncate(file, (off_t)bytes) == 0 && fsync(file) == 0;
    if (file >= 0) close(file);
    return is_cut;
}

bool pieces_finish(const struct target_paths *paths, char *error, size_t error_len)
{
    struct target_list list;
    if (!target_pieces(paths, &list, error, error_len)) return false;
    bool fine = true;
    for (size_t i = 0; fine && i < list.count; i++) {
        char path[DISK_PATH], closed[DISK_PATH];
        struct piece_end end;
        uint64_t batches = 0;
        if (!list.all[i].is_open) continue;
        fine = disk_path(path, paths->log, list.all[i].name, error, error_len) &&
               piece_walk(path, piece_all, count_block, &batches, &end, error, error_len);
        if (!fine) break;
        if (!end.bytes) {
            unlink(path);
            continue;
        }
        snprintf(closed, sizeof closed, "%.*s", (int)(strlen(path) - strlen(OPEN)), path);
        if (!cut_piece(path, end.bytes) || rename(path, closed) != 0)
            fine = disk_refuse("write", path, error, error_len);
    }
    target_list_free(&list);
    return fine && disk_sync_folder(paths->log, error, error_len);
}

/* ---- how far it goes ---- */

struct following {
    struct backup_position *end;
    bool is_used; /* something of the piece stands behind what was known before */
};

/* Whether the last batch that is known lies within it, so that only its bytes tell that batch's mark. */
static bool straddles(void *context, const struct block_head *head)
{
    uint64_t next = ((struct following *)context)->end->next;
    return head->first < next && head->first + head->count > next;
}

struct batch_sought {
    uint64_t number, mark;
};

static bool seek_batch(void *context, const struct block_batch *batch)
{
    struct batch_sought *sought = context;
    if (batch->number != sought->number) return true;
    sought->mark = batch_mark(batch->time_ms, batch->bytes);
    return false;
}

static bool follow_block(void *context, const struct block_head *head, struct slice stored)
{
    struct following *following = context;
    struct backup_position *end = following->end;
    uint64_t behind = head->first + head->count;
    if (head->first > end->next) return false;
    if (behind < end->next) return true;
    struct batch_sought sought = {end->next - 1, behind == end->next ? head->last : head->before};
    if (straddles(following, head)) block_visit(head, stored, seek_batch, &sought);
    if (!end->mark || sought.mark != end->mark) return false; /* it was written behind another batch */
    following->is_used = true;
    end->next = behind;
    end->mark = head->last;
    if (head->until_ms > end->until_ms) end->until_ms = head->until_ms;
    return true;
}

bool chain_find(const struct target_paths *paths, const struct target_entry *base, struct chain *chain,
                char *error, size_t error_len)
{
    *chain = (struct chain){
        .end = {
            .source = base->source, .next = base->number + 1, .mark = base->mark, .until_ms = base->time_ms}};
    if (!target_pieces(paths, &chain->pieces, error, error_len)) return false;
    size_t used = 0;
    for (size_t i = 0; i < chain->pieces.count; i++) {
        struct target_entry piece = chain->pieces.all[i];
        struct following following = {.end = &chain->end};
        char path[DISK_PATH];
        struct piece_end end;
        if (piece.source != base->source || piece.number > chain->end.next) continue;
        if (!disk_path(path, paths->log, piece.name, error, error_len) ||
            !piece_walk(path, straddles, follow_block, &following, &end, error, error_len)) {
            chain_free(chain);
            return false;
        }
        if (following.is_used) chain->pieces.all[used++] = piece;
    }
    chain->pieces.count = used;
    return true;
}

void chain_free(struct chain *chain)
{
    target_list_free(&chain->pieces);
}
