/* The formats of exports and imports: bytes of an object into records, a record into an item in DynamoDB's JSON, and
 * items into lines. Nothing here knows of buckets, jobs or tables. */
#ifndef TRANSFER_FORMATS_H
#define TRANSFER_FORMATS_H

#include "transfer/transfer.h"

/* ---- unpack.c ---- */

struct unpack;
/* Keeps the source, does not own it. */
struct unpack *unpack_open(struct transfer_source *source, enum transfer_compression compression);
void unpack_close(struct unpack *unpack);
/* Appends up to `most` bytes. False at a fault, of which the sentence is static or the source's. */
bool unpack_read(struct unpack *unpack, struct buf *out, size_t most, bool *is_end, const char **fault);

/* ---- ion.c ---- */

/* One top-level value of Ion text, a struct with a field Item, as DynamoDB's JSON: the item alone. STOP and a sentence
 * (static) when it is no Ion; BAD when it is, and no item or of types that DynamoDB has not; END when there are only
 * comments and white space. */
enum transfer_result ion_item_read(struct slice text, struct buf *json, const char **fault);
/* $ion_1_0 {Item:{...}} and a line end. */
void ion_item_put(struct buf *out, const struct map *item);
/* {...} alone. */
void ion_struct_put(struct buf *out, const struct map *map);

/* Finds where a top-level value ends, byte by byte. */
struct ion_scan {
    unsigned char state;
    unsigned char seen; /* bytes of a mark: quotes, braces, slashes */
    unsigned depth;
};
/* Goes over text[*at..]; true when a list, struct or expression at the top ended, and *at is behind it. */
bool ion_scan(struct ion_scan *scan, struct slice text, size_t *at);

/* ---- csv.c ---- */

/* The fields of one row, which has no line end: in the arena, or slices of it. False when its quotes are broken, or
 * there are more than LIMIT_TRANSFER_COLUMNS. */
bool csv_split(struct arena *arena, struct slice row, char delimiter, struct slice **fields, uint32_t *count,
               const char **fault);
/* The item of a row. Columns are strings, but for those that the types name. */
bool csv_item_put(struct buf *json, const struct slice *names, uint32_t name_count,
                  const struct slice *fields, uint32_t field_count, const struct transfer_column *types,
                  uint32_t type_count, const char **fault);

#endif
