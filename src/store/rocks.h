/* RocksDB as ordered bytes, without a log of its own: what was written last is lost with the process unless somebody
 * has it in a journal. Each batch takes a mark into the store, so that the store itself tells up to where it is. */
#ifndef STORE_ROCKS_H
#define STORE_ROCKS_H

#include "store/store.h"

/* Which batch of which journal the store has got last. */
struct rocks_mark {
    uint64_t journal, number; /* 0: none */
};

struct rocks_options {
    const char *folder; /* as the user named it, for sentences */
    const char *path;   /* of RocksDB's files */
    bool read_only;
    bool has_own_log; /* of an older format, which is read at opening */
    uint64_t cache_bytes;
    uint32_t open_files;
};

/* Can be read as any store; it is written by rocks_write only. NULL and a sentence. */
struct store *rocks_open(const struct rocks_options *options, char *error, size_t error_len);

/* What follows is the writer's where nothing else is said. */

enum rocks_result {
    ROCKS_OK,
    ROCKS_NO_ROOM, /* the disk is full; RocksDB goes on by itself when there is room. Sentence in store->refusal */
    ROCKS_FAILED, /* for good. Sentence in store->refusal */
};
/* The batch and its mark, together. Nothing is on disk. */
enum rocks_result rocks_write(struct store *store, const struct store_batch *batch, struct rocks_mark mark);
/* Whether it has deleted large ranges, whose space rocks_reclaim then gives back, in the background. What was written
 * must be on disk, in the journal, before that. Not beside rocks_write. */
bool rocks_has_cleared(struct store *store);
void rocks_reclaim(struct store *store);
/* Whether it can still be written: flushes and compactions fail behind our back. Not beside rocks_write. */
enum rocks_result rocks_state(struct store *store);
/* Nothing has failed since rocks_state was asked last; beside rocks_write, too. */
bool rocks_is_well(struct store *store);
/* And a small batch would not have to wait for flushes or compactions. */
bool rocks_is_calm(struct store *store);

/* Any thread's. False: it cannot be read. */
bool rocks_mark_all(struct store *store, struct rocks_mark *mark);
bool rocks_mark_on_disk(struct store *store, struct rocks_mark *mark);
/* Everything that was written is on disk when it answers; a failure shows in rocks_state. */
void rocks_flush(struct store *store);
/* The next failed read leaves its words in store->error, as the first has. While nobody else reads. */
void rocks_forget_failure(struct store *store);
uint64_t rocks_unflushed_bytes(struct store *store);
/* Brings everything to files and links them into a new folder. False: sentence in error. */
bool rocks_checkpoint(struct store *store, const char *path, char *error, size_t error_len);

#endif
