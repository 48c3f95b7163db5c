/* Hashing of bytes: XXH3, stable across machines and versions, so that stored keys may hold it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

uint64_t hash_bytes(struct slice bytes);

/* The same of bytes that come one piece after the other. */
struct hash_stream;
struct hash_stream *hash_stream_begin(void);
void hash_stream_add(struct hash_stream *stream, struct slice bytes);
uint64_t hash_stream_end(struct hash_stream *stream); /* frees it */

#endif
