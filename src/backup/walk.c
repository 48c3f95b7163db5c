/* What was written between two moments: the batches of a target's log, from the newest base on that is older than the
 * first of them. */
#include <stdio.h>

#include "backup/target.h"

struct walking {
    int64_t from_ms, to_ms;
    uint64_t next; /* batch to be visited */
    store_log_visitor visitor;
    void *context;
    bool is_done;
};

static bool walk_batch(void *context, const struct block_batch *found)
{
    struct walking *walking = context;
    if (found->number < walking->next) return true;
    walking->is_done = found->time_ms >= walking->to_ms;
    if (walking->is_done) return false;
    walking->next = found->number + 1;
    if (found->time_ms < walking->from_ms) return true;
    walking->is_done = !walking->visitor(
        walking->context, &(struct store_log_batch){found->number, found->time_ms, found->bytes});
    return !walking->is_done;
}

static bool walk_block(void *context, const struct block_head *head, struct slice stored)
{
    struct walking *walking = context;
    uint64_t behind = head->first + head->count;
    if (head->first > walking->next) return false; /* a gap */
    if (behind <= walking->next) return true;
    if (head->until_ms < walking->from_ms)
        walking->next = behind;
    else
        block_visit(head, stored, walk_batch, walking);
    return !walking->is_done;
}

static bool walk_pieces(struct walking *walking, const struct target_paths *paths, const struct chain *chain,
                        char *error, size_t error_len)
{
    const struct target_list *pieces = &chain->pieces;
    for (size_t i = 0; i < pieces->count && !walking->is_done; i++) {
        const struct target_entry *piece = &pieces->all[i], *behind = piece + 1;
        char path[DISK_PATH];
        struct piece_end end;
        bool is_older = i + 1 < pieces->count && behind->number <= walking->next;
        if (is_older) continue;
        if (!disk_path(path, paths->log, piece->name, error, error_len) ||
            !piece_walk(path, piece_all, walk_block, walking, &end, error, error_len))
            return false;
    }
    if (walking->is_done || walking->next >= chain->end.next) return true;
    snprintf(error, error_len, "the log that is kept lacks the batch %llu",
             (unsigned long long)walking->next);
    return false;
}

bool log_walk(const char *path, int64_t from_ms, int64_t to_ms, store_log_visitor visitor, void *context,
              char *error, size_t error_len)
{
    struct target_paths paths;
    struct target_list bases;
    struct chain chain;
    if (!target_check(path, &paths, error, error_len) || !target_bases(&paths, &bases, error, error_len))
        return false;
    size_t behind = bases.count;
    while (behind && bases.all[behind - 1].time_ms >= from_ms) behind--;
    bool fine = behind > 0;
    if (!fine) snprintf(error, error_len, "what was written then is not kept");
    if (fine && (fine = chain_find(&paths, &bases.all[behind - 1], &chain, error, error_len))) {
        struct walking walking = {.from_ms = from_ms,
                                  .to_ms = to_ms,
                                  .next = bases.all[behind - 1].number + 1,
                                  .visitor = visitor,
                                  .context = context};
        fine = walk_pieces(&walking, &paths, &chain, error, error_len);
        chain_free(&chain);
    }
    target_list_free(&bases);
    return fine;
}
