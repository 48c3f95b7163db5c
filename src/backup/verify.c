/* Reads a whole target: every file of every base against its checksum, every block of every piece. */
#include <stdio.h>
#include <stdlib.h>

#include "backup/target.h"
#include "base/fail.h"

struct verifying {
    struct target_paths paths;
    struct backup_report *report;
    struct buf *faults;
    struct backup_file *seen; /* files that were read already, as pairs of name and mark */
    size_t seen_count;
    char error[500]; /* of what has just been read */
};

static void fault(struct verifying *verifying, const char *sentence)
{
    verifying->report->faults++;
    buf_printf(verifying->faults, "%s\n", sentence);
}

static void verify_file(struct verifying *verifying, const struct backup_file *file)
{
    char path[DISK_PATH], sentence[DISK_PATH + 100];
    uint64_t bytes, hash;
    if (!target_file_path(&verifying->paths, file, path, verifying->error, sizeof verifying->error) ||
        !disk_file_hash(path, &bytes, &hash, verifying->error, sizeof verifying->error)) {
        fault(verifying, verifying->error);
        return;
    }
    verifying->report->files++;
    verifying->report->file_bytes += bytes;
    if (bytes == file->bytes && hash == file->checksum) return;
    snprintf(sentence, sizeof sentence, "%s is damaged: %s", path,
             bytes == file->bytes ? "it has not the checksum that it was written with"
                                  : "it has another size");
    fault(verifying, sentence);
}

/* Files that bases share are read once. */
static void verify_bases(struct verifying *verifying, const struct target_list *bases)
{
    for (size_t i = 0; i < bases->count; i++) {
        struct backup_base base;
        if (!target_base_read(&verifying->paths, &bases->all[i], &base, verifying->error,
                              sizeof verifying->error)) {
            fault(verifying, verifying->error);
            continue;
        }
        verifying->report->bases++;
        size_t known = verifying->seen_count;
        verifying->seen = must_realloc(verifying->seen, (known + base.count + 1) * sizeof *verifying->seen);
        for (size_t k = 0; k < base.count; k++) {
            if (known &&
                bsearch(&base.files[k], verifying->seen, known, sizeof *verifying->seen, backup_file_order))
                continue;
            verify_file(verifying, &base.files[k]);
            verifying->seen[verifying->seen_count++] = base.files[k];
        }
        if (verifying->seen_count)
            qsort(verifying->seen, verifying->seen_count, sizeof *verifying->seen, backup_file_order);
        backup_base_free(&base);
    }
}

static bool count_block(void *context, const struct block_head *head, struct slice stored)
{
    struct backup_report *report = context;
    (void)stored;
    report->batches += head->count;
    return true;
}

static bool verify_pieces(struct verifying *verifying, char *error, size_t error_len)
{
    struct target_list pieces;
    if (!target_pieces(&verifying->paths, &pieces, error, error_len)) return false;
    for (size_t i = 0; i < pieces.count; i++) {
        char path[DISK_PATH], sentence[DISK_PATH + 100];
        struct piece_end end;
        if (!disk_path(path, verifying->paths.log, pieces.all[i].name, error, error_len)) continue;
        if (!piece_walk(path, piece_all, count_block, verifying->report, &end, verifying->error,
                        sizeof verifying->error)) {
            fault(verifying, verifying->error);
            continue;
        }
        verifying->report->pieces++;
        if (end.is_whole || pieces.all[i].is_open)
            continue; /* an open one ends where its last whole block does */
        snprintf(sentence, sizeof sentence, "%s is damaged at byte %llu", path,
                 (unsigned long long)end.bytes);
        fault(verifying, sentence);
    }
    target_list_free(&pieces);
    return true;
}

/* From each base that the log behind an earlier one does not reach. */
static bool find_moments(struct verifying *verifying, const struct target_list *bases, char *error,
                         size_t error_len)
{
    struct backup_report *report = verifying->report;
    struct chain chain;
    for (size_t i = 0; i < bases->count; i++) {
        const struct target_entry *base = &bases->all[i];
        if (i && base->time_ms <= report->until_ms) continue;
        if (!chain_find(&verifying->paths, base, &chain, error, error_len)) return false;
        report->gaps += i > 0;
        report->until_ms = chain.end.until_ms;
        chain_free(&chain);
    }
    if (bases->count) report->from_ms = bases->all[0].time_ms;
    return true;
}

bool backup_verify(const char *path, struct backup_report *report, struct buf *faults, char *error,
                   size_t error_len)
{
    struct verifying verifying = {.report = report, .faults = faults};
    struct target_list bases;
    *report = (struct backup_report){0};
    if (!target_check(path, &verifying.paths, error, error_len) ||
        !target_bases(&verifying.paths, &bases, error, error_len))
        return false;
    verify_bases(&verifying, &bases);
    bool fine = verify_pieces(&verifying, error, error_len);
    fine = fine && find_moments(&verifying, &bases, error, error_len);
    free(verifying.seen);
    target_list_free(&bases);
    return fine;
}
