/* The one file that knows the hash library. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"

uint64_t hash_bytes(struct slice bytes)
{
    return XXH3_64bits(bytes.data, bytes.len);
}

struct hash_stream *hash_stream_begin(void)
{
    XXH3_state_t *state = XXH3_createState();
    ensure(state && XXH3_64bits_reset(state) == XXH_OK);
    return (struct hash_stream *)state;
}

void hash_stream_add(struct hash_stream *stream, struct slice bytes)
{
    ensure(XXH3_64bits_update((XXH3_state_t *)stream, bytes.data, bytes.len) == XXH_OK);
}

uint64_t hash_stream_end(struct hash_stream *stream)
{
    uint64_t hash = XXH3_64bits_digest((XXH3_state_t *)stream);
    XXH3_freeState((XXH3_state_t *)stream);
    return hash;
}
