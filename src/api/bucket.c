/* Token buckets, see bucket.h. */
#include "api/bucket.h"

#include <stdlib.h>

#include "base/fail.h"

#define WAYS 4 /* places that a number may have */

void bucket_fill(struct bucket *bucket, double rate, double most, int64_t now_ms)
{
    int64_t passed_ms = now_ms - bucket->at_ms;
    bucket->at_ms = now_ms;
    if (passed_ms > 0) bucket->tokens += rate * (double)passed_ms / 1000;
    if (bucket->tokens > most) bucket->tokens = most; /* also when the rate was lowered */
}

void bucket_cache_init(struct bucket_cache *cache, uint32_t count)
{
    ensure(count >= WAYS && (count & (count - 1)) == 0);
    cache->slots = must_zero(count, sizeof *cache->slots);
    cache->count = count;
}

void bucket_cache_free(struct bucket_cache *cache)
{
    free(cache->slots);
    *cache = (struct bucket_cache){0};
}

struct bucket *bucket_cache_find(struct bucket_cache *cache, uint64_t key, uint32_t owner, double tokens,
                                 int64_t now_ms)
{
    ensure(key != 0 && cache->count);
    struct bucket_slot *places = &cache->slots[key % (cache->count / WAYS) * WAYS], *chosen = places;
    for (unsigned i = 0; i < WAYS; i++) {
        struct bucket_slot *slot = &places[i];
        if (slot->key == key) return &slot->bucket;
        bool is_better = !slot->key || (chosen->key && slot->bucket.at_ms < chosen->bucket.at_ms);
        if (chosen->key && is_better) chosen = slot;
    }
    *chosen = (struct bucket_slot){.key = key, .owner = owner, .bucket = {.tokens = tokens, .at_ms = now_ms}};
    return &chosen->bucket;
}

void bucket_cache_drain(struct bucket_cache *cache, uint32_t owner, int64_t now_ms)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        struct bucket_slot *slot = &cache->slots[i];
        if (owner && slot->owner != owner) continue;
        if (slot->bucket.tokens > 0) slot->bucket.tokens = 0;
        slot->bucket.at_ms = now_ms;
    }
}
