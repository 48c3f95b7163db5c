/* Images above the store: a point read from RocksDB costs several microseconds, one from here a fraction of
 * one.
 *
 * Shards, each with its own lock, hash table and clock (second-chance) order of eviction. Readers hold values
 * by reference count, so nothing is copied and an evicted value lives as long as somebody looks at it. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define CACHE_SHARDS      64
#define CACHE_MIN_BUCKETS 64
#define NEVER_OFFERED     UINT64_MAX /* no shard's version: what is read now may be stale before it is offered */

struct shard {
    pthread_mutex_t lock;
    uint64_t version; /* raised by each announcement: E3 */
    struct cache_value **buckets;
    uint32_t bucket_count, count;
    struct cache_value *oldest, *newest;
    uint64_t bytes;
} __attribute__((aligned(64)));

struct cache {
    uint64_t shard_bytes; /* capacity of each */
    struct shard shards[CACHE_SHARDS];
};

struct slice cache_value_key(const struct cache_value *value)
{
    return (struct slice){value->data, value->key_len};
}

struct slice cache_value_bytes(const struct cache_value *value)
{
    return (struct slice){value->data + value->key_len, value->value_len};
}

struct cache_value *cache_value_new(uint64_t hash, struct slice key, struct slice bytes)
{
    struct cache_value *value = must_alloc(sizeof *value + key.len + bytes.len);
    *value = (struct cache_value){
        .hash = hash, .key_len = (uint32_t)key.len, .value_len = (uint32_t)bytes.len};
    atomic_init(&value->references, 1);
    memcpy(value->data, key.data, key.len);
    if (bytes.len) memcpy(value->data + key.len, bytes.data, bytes.len);
    return value;
}

void cache_value_release(struct cache_value *value)
{
    if (atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) == 1) free(value);
}

static uint64_t value_footprint(const struct cache_value *value)
{
    return sizeof *value + value->key_len + value->value_len + 16; /* 16: what malloc keeps for itself */
}

struct cache *cache_new(uint64_t capacity_bytes)
{
    struct cache *cache = must_align(64, sizeof *cache);
    memset(cache, 0, sizeof *cache);
    cache->shard_bytes = capacity_bytes / CACHE_SHARDS;
    for (int i = 0; i < CACHE_SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_init(&shard->lock, NULL);
        shard->bucket_count = CACHE_MIN_BUCKETS;
        shard->buckets = must_zero(shard->bucket_count, sizeof *shard->buckets);
    }
    return cache;
}

void cache_free(struct cache *cache)
{
    for (int i = 0; i < CACHE_SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        for (struct cache_value *value = shard->oldest; value;) {
            struct cache_value *newer = value->newer;
            cache_value_release(value);
            value = newer;
        }
        free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
    free(cache);
}

/* The top bits choose the shard, the low ones the bucket: independent of each other. */
static struct shard *shard_of(struct cache *cache, uint64_t hash)
{
    return &cache->shards[hash >> 58];
}

static struct cache_value **bucket_of(struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash & (shard->bucket_count - 1)];
}

static struct cache_value **find_place(struct shard *shard, uint64_t hash, struct slice key)
{
    struct cache_value **place = bucket_of(shard, hash);
    while (*place && !((*place)->hash == hash && slice_equal(cache_value_key(*place), key)))
        place = &(*place)->next_in_bucket;
    return place;
}

static void unlink_order(struct shard *shard, struct cache_value *value)
{
    *(value->older ? &value->older->newer : &shard->oldest) = value->newer;
    *(value->newer ? &value->newer->older : &shard->newest) = value->older;
}

static void link_newest(struct shard *shard, struct cache_value *value)
{
    value->older = shard->newest;
    value->newer = NULL;
    *(shard->newest ? &shard->newest->newer : &shard->oldest) = value;
    shard->newest = value;
}

static void remove_at(struct shard *shard, struct cache_value **place)
{
    struct cache_value *value = *place;
    *place = value->next_in_bucket;
    unlink_order(shard, value);
    shard->bytes -= value_footprint(value);
    shard->count--;
    cache_value_release(value);
}

static void grow_buckets(struct shard *shard)
{
    uint32_t count = shard->bucket_count * 2;
    struct cache_value **buckets = must_zero(count, sizeof *buckets);
    for (struct cache_value *value = shard->oldest; value; value = value->newer) {
        struct cache_value **bucket = &buckets[value->hash & (count - 1)];
        value->next_in_bucket = *bucket;
        *bucket = value;
    }
    free(shard->buckets);
    shard->buckets = buckets;
    shard->bucket_count = count;
}

/* A value in flux stays: it keeps readers from filling in what is about to be stale. There are at most a
 * batch of them, so the clock's hand need not look at more than that and one round of the used ones. */
static void evict(struct shard *shard, uint64_t capacity)
{
    uint32_t looks = shard->count * 2;
    while (shard->bytes > capacity && shard->oldest && looks--) {
        struct cache_value *value = shard->oldest;
        if (value->used || atomic_load_explicit(&value->in_flux, memory_order_relaxed)) {
            value->used = false;
            unlink_order(shard, value);
            link_newest(shard, value);
        } else {
            remove_at(shard, find_place(shard, value->hash, cache_value_key(value)));
        }
    }
}

static void insert(struct cache *cache, struct shard *shard, struct cache_value *value)
{
    if (shard->count >= shard->bucket_count) grow_buckets(shard);
    struct cache_value **bucket = bucket_of(shard, value->hash);
    value->next_in_bucket = *bucket;
    *bucket = value;
    link_newest(shard, value);
    shard->count++;
    shard->bytes += value_footprint(value);
    evict(shard, cache->shard_bytes);
}

enum cache_result cache_find(struct cache *cache, uint64_t hash, struct slice key, struct cache_value **out,
                             uint64_t *version)
{
    struct shard *shard = shard_of(cache, hash);
    enum cache_result result = CACHE_UNKNOWN;
    pthread_mutex_lock(&shard->lock);
    struct cache_value *value = *find_place(shard, hash, key);
    bool in_flux = value && atomic_load_explicit(&value->in_flux, memory_order_acquire);
    if (value && !in_flux) {
        value->used = true;
        result = value->deleted ? CACHE_MISSING : CACHE_FOUND;
    }
    if (result == CACHE_FOUND) {
        atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
        *out = value;
    }
    *version = in_flux ? NEVER_OFFERED : shard->version;
    pthread_mutex_unlock(&shard->lock);
    return result;
}

void cache_offer(struct cache *cache, struct cache_value *value, uint64_t version)
{
    struct shard *shard = shard_of(cache, value->hash);
    pthread_mutex_lock(&shard->lock);
    if (shard->version == version && !*find_place(shard, value->hash, cache_value_key(value))) {
        atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
        insert(cache, shard, value);
    }
    pthread_mutex_unlock(&shard->lock);
}

void cache_announce(struct cache *cache, struct cache_value *value)
{
    struct shard *shard = shard_of(cache, value->hash);
    atomic_store_explicit(&value->in_flux, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
    pthread_mutex_lock(&shard->lock);
    shard->version++;
    struct cache_value **place = find_place(shard, value->hash, cache_value_key(value));
    if (*place) remove_at(shard, place);
    insert(cache, shard, value);
    pthread_mutex_unlock(&shard->lock);
}

void cache_publish(struct cache *cache, struct cache_value *value)
{
    (void)cache;
    atomic_store_explicit(&value->in_flux, false, memory_order_release);
    cache_value_release(value);
}

void cache_clear(struct cache *cache)
{
    for (int i = 0; i < CACHE_SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        shard->version++;
        while (shard->oldest)
            remove_at(shard, find_place(shard, shard->oldest->hash, cache_value_key(shard->oldest)));
        pthread_mutex_unlock(&shard->lock);
    }
}

uint64_t cache_bytes(struct cache *cache)
{
    uint64_t total = 0;
    for (int i = 0; i < CACHE_SHARDS; i++) {
        pthread_mutex_lock(&cache->shards[i].lock);
        total += cache->shards[i].bytes;
        pthread_mutex_unlock(&cache->shards[i].lock);
    }
    return total;
}
