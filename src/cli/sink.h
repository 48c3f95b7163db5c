/* Many writes on their way into a place: taken one by one, written in batches on several threads.
 *
 * A write is a whole item or a deletion. Writes on the same key go down the same lane in the order in which
 * they came, so the last one wins; lanes know nothing of each other. What the service does not take at once
 * (throttling, unprocessed items, a moment without a connection) is offered again until it does; what it
 * refuses for good stops the whole sink after one sentence. Who gives faster than the place takes is made to
 * wait. */
#ifndef CLI_SINK_H
#define CLI_SINK_H

#include "cli/place.h"

#define SINK_LANES 8

struct sink;

struct sink_table {
    const char *name;
    struct key_part hash, range; /* range.name.len 0: none */
};

/* Where a write comes from, for complaints about it: a file, which must outlive the sink, and a line of it. */
struct sink_origin {
    const char *file; /* NULL: not from a file */
    unsigned long long line;
};

struct sink *sink_new(const struct place *place, unsigned lanes);
/* An item in DynamoDB's JSON, copied; the table must outlive the sink. False when the sink has failed, or
 * after complaining when the item has no proper key. Any thread. */
bool sink_put(struct sink *sink, const struct sink_table *table, struct slice item);
bool sink_put_from(struct sink *sink, const struct sink_table *table, struct slice item,
                   struct sink_origin origin);
/* The key {"Artist":{...},...} likewise. */
bool sink_delete(struct sink *sink, const struct sink_table *table, struct slice key);
/* Waits until all that was given is written; false when the sink has failed. */
bool sink_drain(struct sink *sink);
/* Writes that the place has taken; one that a later write on its key replaced on the way counts. */
unsigned long long sink_written(const struct sink *sink);
/* Ends the threads; what is not drained is dropped. */
void sink_free(struct sink *sink);

/* The bytes that tell one key from another, for tables and tests: equal exactly when the keys are. False when
 * the object lacks one. */
bool sink_key_bytes(struct buf *out, const struct sink_table *table, const struct node *item);
/* The key of an item as JSON. False when it lacks one. */
bool sink_key_json(struct buf *out, const struct sink_table *table, const struct node *item);

#endif
