/* The parts of the imitation of ScyllaDB Alternator: the door and its thread (imitation.c), and what becomes of
 * requests and replies (imitation_text.c). */
#ifndef DYNAMO_IMITATION_H
#define DYNAMO_IMITATION_H

#include "dynamo/internal.h"

/* Why Alternator refuses a request. */
struct imitation_fault {
    const char *error; /* the exception's short name; NULL: none */
    struct slice message;
};

/* One of the 24 operations that it has. */
bool imitation_has(struct slice operation);
/* PutItem, UpdateItem, DeleteItem, BatchWriteItem. */
bool imitation_writes(struct slice operation);
/* A Query or Scan of an index that does not ask for ConsistentRead. */
bool imitation_reads_index(struct slice operation, struct slice request, struct arena *arena);

/* The request as the database below understands it, in the arena; or what is wrong with it. A text that is no JSON
 * stays as it is: the database below refuses it. */
struct slice imitation_request(struct slice operation, struct slice request, struct arena *arena,
                               struct imitation_fault *fault);
/* A BatchWriteItem as requests of at most LIMIT_BATCH_WRITE_REQUESTS writes each, in the arena; how many. 0: it
 * has too many for Alternator, too. 1: it may stay as it is. */
size_t imitation_split(struct slice request, struct arena *arena, struct slice **parts);

/* The reply of GetRecords: how many of its records are old enough. They are in the order of their times. */
size_t imitation_old_enough(struct slice reply, int64_t until_ms, struct arena *arena);
/* The reply as Alternator words it, in the arena. */
struct slice imitation_reply(struct slice operation, struct slice reply, uint64_t seed, struct arena *arena);

/* Calls `each` with the table and the key of every item that a write names. `describe` answers a KeySchema. */
typedef void imitation_key(void *context, struct slice table, struct slice key);
void imitation_keys(struct slice operation, struct slice request, struct arena *arena,
                    struct slice (*describe)(void *context, struct slice table, struct arena *arena),
                    imitation_key *each, void *context);

#endif
