/* A table without its items, as JSON that can make it again: the request of CreateTable, with the tags, and
 * with "TimeToLiveSpecification" as UpdateTimeToLive has it. So a dump begins, and so a table is copied. */
#ifndef CLI_DEFINITION_H
#define CLI_DEFINITION_H

#include "cli/sink.h"
#include "cli/tables.h"

/* A whole dump is announced by its first line and ended by its last, each an object with one member: no item and
 * no definition looks so. Who reads it can tell one that was cut off; lines without them are as good, but nobody
 * knows whether they are all. */
#define DUMP_BEGIN   "DumpBegin" /* {"DumpBegin":{"Version":1}} */
#define DUMP_END     "DumpEnd"   /* {"DumpEnd":{"Tables":1,"Items":3}} */
#define DUMP_VERSION 1

/* Appends the definition of a table, by what DescribeTable says of it; ttl and tags (JSON) may be empty.
 * Pure. */
void definition_put(struct buf *out, const struct node *table, struct slice ttl, struct slice tags);
/* The same, asking for them. False after complaining. */
bool definition_load(struct buf *out, const struct place *place, struct arena *arena,
                     const struct schema *schema);

/* The keys of a definition, whose texts must stay. False when it is none. */
bool definition_keys(const struct node *definition, struct sink_table *out);

/* Makes the table under this name and waits until it can be used. One that is there already is brought up to
 * it: missing global indexes, the stream, TTL and tags are added, nothing is taken away. False after
 * complaining, also when its keys are others. */
bool definition_apply(const struct place *place, const struct node *definition, const char *name);

#endif
