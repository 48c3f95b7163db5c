#include "cut/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backup/backup.h"
#include "backup/local.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"

#define PATH_BYTES 4000

/* ---- shipping ---- */

struct copier {
    const struct shipping *shipping;
    struct store *store;
    struct backup_source *source;
    struct backup_target *target;
    struct backup_position position;
    struct random random;
    uint32_t begun;
    char error[600];
};

static void hold(void *store, uint64_t from)
{
    store_log_keep_from(store, from > 1 && from != UINT64_MAX ? from - 1 : from);
}

static void mark(const struct copier *copier, enum trace_mark kind, uint32_t number)
{
    copier->shipping->mark(copier->shipping->context, kind, number);
}

static bool open_all(struct copier *copier)
{
    const struct shipping *shipping = copier->shipping;
    uint64_t content;
    copier->store = open_store(shipping->data, false, copier->error, sizeof copier->error);
    if (!copier->store || !batches_read(copier->store, &copier->begun, &content)) return false;
    copier->source = local_source(copier->store, shipping->data, &clock_system, false, hold, copier->store);
    mark(copier, MARK_BEGUN, copier->begun);
    copier->target = backup_target_open(shipping->target, copier->error, sizeof copier->error);
    return copier->target &&
           backup_target_position(copier->target, &copier->position, copier->error, sizeof copier->error);
}

/* A base, a block, or the end of a piece. Each batch of the store has the number that it has in the log. */
static bool copy_some(struct copier *copier)
{
    struct backup_progress progress = {.is_fast = true};
    size_t error_len = sizeof copier->error;
    if (!copier->position.source || !random_below(&copier->random, 20)) {
        if (!backup_take_base(copier->target, copier->source, &progress, &copier->position, copier->error,
                              error_len))
            return false;
        copier->source->end(copier->source->self);
        mark(copier, MARK_DURABLE, (uint32_t)copier->position.base_number);
    }
    enum backup_log shipped = backup_ship(copier->target, copier->source, &copier->position, 0, copier->error,
                                          error_len);
    if (shipped == BACKUP_LOG_GONE) copier->position.source = 0;
    if (shipped != BACKUP_LOG_BLOCK) return shipped == BACKUP_LOG_GONE;
    mark(copier, MARK_DURABLE, (uint32_t)copier->position.next - 1);
    return random_below(&copier->random, 10) || backup_close_piece(copier->target, copier->error, error_len);
}

static bool write_and_copy(struct copier *copier)
{
    const struct shipping *shipping = copier->shipping;
    struct batches batches = {.seed = shipping->seed, .no_ranges = shipping->no_ranges};
    struct store_batch batch = {0};
    bool fine = true;
    for (uint32_t i = 0; fine && i < shipping->batches; i++) {
        store_batch_clear(&batch);
        batch_make(&batches, ++copier->begun, &batch);
        mark(copier, MARK_BEGUN, copier->begun);
        fine = store_write(copier->store, &batch, true) == STORE_OK;
        if (!fine) snprintf(copier->error, sizeof copier->error, "%s", copier->store->error);
        if (fine && !random_below(&copier->random, 3)) fine = copy_some(copier);
    }
    store_batch_free(&batch);
    return fine;
}

bool copies_ship(const struct shipping *shipping)
{
    struct copier copier = {.shipping = shipping};
    bool fine = open_all(&copier);
    random_seed(&copier.random, shipping->seed + copier.begun);
    fine = fine && write_and_copy(&copier);
    if (!fine) printf("not shipped: %s\n", copier.error);
    fflush(stdout);
    if (shipping->is_killed) _exit(fine ? 0 : 3);
    if (copier.target) backup_target_close(copier.target);
    if (copier.source) backup_source_close(copier.source);
    if (copier.store) store_close(copier.store);
    return fine;
}

/* ---- judging; in a child, that prints what is wrong ---- */

struct copies {
    const struct judgement *judgement;
    char restored[PATH_BYTES];
};

static bool is_sound(const char *target)
{
    struct backup_report report;
    struct buf faults = {0};
    char error[600];
    bool is_read = backup_verify(target, &report, &faults, error, sizeof error);
    if (!is_read) printf("cannot be verified: %s\n", error);
    if (faults.len) printf("%.*s", SLICE_ARG(buf_view(&faults)));
    return is_read && !report.faults;
}

static bool restores(const struct copies *copies, uint32_t *number)
{
    const struct judgement *judgement = copies->judgement;
    struct backup_restored restored;
    char words[2048];
    if (!backup_restore(judgement->folder, copies->restored, BACKUP_LATEST, &restored, words, sizeof words)) {
        printf("cannot be restored: %s\n", words);
        return false;
    }
    struct store *store = open_store(copies->restored, true, words, sizeof words);
    bool fine = store && batches_verify(judgement->batches, store, judgement->least, judgement->most, number,
                                        words, sizeof words);
    if (!fine) printf("%s\n", words);
    if (store) store_close(store);
    remove_folder(copies->restored);
    return fine;
}

static bool goes_on(const struct copies *copies)
{
    struct backup_position position;
    char error[600];
    struct backup_target *target = backup_target_open(copies->judgement->folder, error, sizeof error);
    bool fine = target && backup_target_position(target, &position, error, sizeof error);
    if (!fine) printf("cannot be gone on with: %s\n", error);
    if (fine && copies->judgement->least && position.next <= copies->judgement->least) {
        printf("LOST: goes on at batch %llu\n", (unsigned long long)position.next);
        fine = false;
    }
    if (target) backup_target_close(target);
    return fine;
}

static bool judge_copies(void *context)
{
    const struct copies *copies = context;
    uint32_t first = 0, again = 0;
    bool is_promised = copies->judgement->least > 0;
    /* Before the first base nothing is promised but that somebody can go on. */
    if (!is_promised) return goes_on(copies) && is_sound(copies->judgement->folder);
    return is_sound(copies->judgement->folder) && restores(copies, &first) && goes_on(copies) &&
           is_sound(copies->judgement->folder) && restores(copies, &again) && first == again;
}

bool copies_judge(const struct judgement *judgement, const char *scratch, char *words, size_t words_len)
{
    struct copies copies = {.judgement = judgement};
    snprintf(copies.restored, sizeof copies.restored, "%s/restored-%d", scratch, (int)getpid());
    bool right = judge_in_child(judge_copies, &copies, words, words_len);
    remove_folder(copies.restored);
    return right;
}
