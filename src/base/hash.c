/* The one file that knows the hash library. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(struct slice bytes)
{
    return XXH3_64bits(bytes.data, bytes.len);
}
