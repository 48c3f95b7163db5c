/* Images above the store. */
#include <stdio.h>

#include "base/hash.h"
#include "engine/internal.h"
#include "unit/engine_fixture.h"

#define CAPACITY ((uint64_t)64 * 512) /* of all shards; some values each */

/* Offers images of other keys, all of the same shard, until `key` is out. */
static void crowd_out(struct cache *cache, struct slice key, uint64_t shard_of_hash)
{
    for (int i = 0; i < 100; i++) {
        char text[32];
        struct slice other = {text, (size_t)snprintf(text, sizeof text, "other %d", i)};
        struct cache_value *found;
        uint64_t version;
        if (cache_find(cache, shard_of_hash, other, &found, &version) != CACHE_UNKNOWN) continue;
        struct cache_value *value = cache_value_new(shard_of_hash, other, SLICE("something that takes its room"));
        cache_offer(cache, value, version);
        cache_value_release(value);
    }
    struct cache_value *found;
    uint64_t version;
    CHECK_INT(cache_find(cache, shard_of_hash, key, &found, &version), CACHE_UNKNOWN);
}

/* It reads the old image while the new one is under way, and is late with it: the new one is published, and out of the
 * cache again. */
TEST(cache_takes_no_image_of_before_a_write)
{
    struct cache *cache = cache_new(CAPACITY);
    struct slice key = SLICE("key");
    uint64_t hash = hash_bytes(key), version;
    struct cache_value *found;
    struct cache_value *written = cache_value_new(hash, key, SLICE("new"));
    cache_announce(cache, written);
    CHECK_INT(cache_find(cache, hash, key, &found, &version), CACHE_UNKNOWN);
    struct cache_value *late = cache_value_new(hash, key, SLICE("old"));
    cache_publish(cache, written);
    crowd_out(cache, key, hash);
    cache_offer(cache, late, version);
    cache_value_release(late);
    CHECK_INT(cache_find(cache, hash, key, &found, &version), CACHE_UNKNOWN);
    cache_free(cache);
}
