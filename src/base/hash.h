/* Hashing of bytes: XXH3, stable across machines and versions, so that stored keys may hold it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

uint64_t hash_bytes(struct slice bytes);

#endif
