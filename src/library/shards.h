/* The shards of a stream that is being read: which there are, in which order, and how far each was read.
 *
 * A shard waits until the one that it continues was read to its end, so that changes of one item come in
 * their order. */
#ifndef LIBRARY_SHARDS_H
#define LIBRARY_SHARDS_H

#include "library/internal.h"

enum shard_state { SHARD_WAITS, SHARD_IS_READ, SHARD_IS_DONE };

struct shard {
    struct shard *next; /* in the order in which they were found */
    enum shard_state state;
    bool from_latest;         /* what was there when the stream was opened is not read */
    bool is_closed;           /* nothing more will be written to it */
    unsigned seen_at;         /* in which look it was there last */
    struct buf id, parent;    /* end in NUL */
    struct buf iterator;      /* empty: to be asked for */
    struct buf last_sequence; /* of the last record handed out; empty: none yet */
    int64_t oldest_s;         /* older records are left out: a lost iterator was replaced; 0: none are */
    int64_t ask_at_us;        /* not before */
    int64_t pause_us;         /* the last one; 0: there was a record */
    uint64_t asked_at_news;   /* what `news` was at the last empty answer */
};

struct shards {
    struct quipu *db;
    struct buf stream; /* its ARN, in quotes */
    enum quipu_stream_start start;
    int64_t opened_s;
    struct shard *first;
    unsigned looks; /* how often shards were looked for */
    bool is_disabled;
    struct quipu_reply *failure; /* why a function below has failed */
};

/* Looks for shards that are not known yet, and forgets those that were read and are gone. */
enum quipu_result shards_refresh(struct shards *shards);
/* Lets those be read whose parents have been. */
void shards_release(struct shards *shards);
/* True when there is a shard that was read to its end and that no other one continues, so that one is to be
 * expected. */
bool shards_miss_children(const struct shards *shards);
bool shards_are_done(const struct shards *shards);
/* Makes sure that the shard has an iterator. QUIPU_NONE when the shard is gone: it is done then. */
enum quipu_result shard_prepare(struct shards *shards, struct shard *shard);
/* The iterator has expired: the next shard_prepare gets one for the same place. */
void shard_forget_iterator(struct shard *shard, int64_t opened_s);
void shards_free(struct shards *shards);
/* Keeps the reply that tells of a failure. Always QUIPU_FAILED. */
enum quipu_result shards_fail(struct shards *shards, struct quipu_reply *reply);

#endif
