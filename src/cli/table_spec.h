/* A table in a few words, and as the request that creates it.
 *
 *     Artist:S Song:S                  its keys: hash, then range; S text, N number, B binary
 *     by-year:Year:N,Song:S            a global index: name, hash and range key
 *     by-place:Land:S+Town:S,Day:N     with several attributes in a part of the key
 *     by-year:Year:N=keys              with the keys only; "=Label,Length" with these attributes too
 *     by-length:Length:N               a local index: name and range key
 */
#ifndef CLI_TABLE_SPEC_H
#define CLI_TABLE_SPEC_H

#include "base/arena.h"
#include "base/buf.h"

#define SPEC_INDEXES_MAX 25 /* 20 global and 5 local ones: the service's limits */

struct table_spec {
    const char *name;
    const char *hash, *range;                         /* range: NULL when there is none */
    const char *global_indexes[SPEC_INDEXES_MAX + 1]; /* until NULL */
    const char *local_indexes[SPEC_INDEXES_MAX + 1];
    const char *stream; /* a view type in any spelling; NULL: no stream */
};

/* Appends the request of CreateTable. False and a sentence, in the arena, when something cannot be read. */
bool table_spec_put(struct buf *out, struct arena *arena, const struct table_spec *spec, const char **fault);

/* "new-and-old", "NEW_AND_OLD_IMAGES", "keys", ... -> the service's name; NULL when it is none. */
const char *stream_view(const char *text);

#endif
