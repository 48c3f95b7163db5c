/* A token bucket: the heart of throttling, without a clock, a lock or a table.
 *
 * It fills at a rate up to a size. Who finds anything in it may take whatever is needed, also more than there is:
 * what a read costs is known only when it was done. The debt is then waited for by those who come next. */
#ifndef API_BUCKET_H
#define API_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    double tokens; /* below 0: a debt */
    int64_t at_ms; /* when it held them */
};

/* Adds what has come in since; `rate` a second, up to `most`. A clock that was turned back adds nothing. */
void bucket_fill(struct bucket *bucket, double rate, double most, int64_t now_ms);

static inline bool bucket_admits(const struct bucket *bucket)
{
    return bucket->tokens > 0;
}

static inline void bucket_take(struct bucket *bucket, double units)
{
    bucket->tokens -= units;
}

/* ---- very many of them, in bounded memory ---- */

/* Buckets by a number that is not 0. Of the few places that a number may have, the one that was used longest ago is
 * given to a newcomer, so that what is in use stays: a bucket that nobody took from for long is full anyway. */
struct bucket_slot {
    uint64_t key;
    uint32_t owner; /* whoever may want to empty all of his */
    struct bucket bucket;
};

struct bucket_cache {
    struct bucket_slot *slots;
    uint32_t count; /* a power of 2 */
};

void bucket_cache_init(struct bucket_cache *cache, uint32_t count);
void bucket_cache_free(struct bucket_cache *cache);
/* The bucket of this number; a new one has these tokens. */
struct bucket *bucket_cache_find(struct bucket_cache *cache, uint64_t key, uint32_t owner, double tokens,
                                 int64_t now_ms);
/* Nothing is in them any more: in those of one owner, or (0) in all. */
void bucket_cache_drain(struct bucket_cache *cache, uint32_t owner, int64_t now_ms);

#endif
