/* Whole tables in and out: exports to a bucket, imports from one, and bulk writes.
 *
 * Three parts, each of which knows only those before it:
 *  - formats (ion.c, csv.c, unpack.c, records.c): bytes into records, records into items in DynamoDB's JSON, which is
 *    the form in which all of them are checked and written, by PutItem;
 *  - buckets (bucket.c, folder.c, s3.c): objects by their keys, in folders below one folder, or in any S3;
 *  - jobs (jobs.c, export.c, import.c): what the api has noted (engine/engine.h, notes) is done in the background, and
 *    the note tells how far it is.
 *
 * What always holds:
 *  - Memory does not depend on the size of an object or of a table: a record has at most LIMIT_TRANSFER_RECORD_BYTES,
 *    an object that is written about LIMIT_TRANSFER_FILE_BYTES.
 *  - No name of a bucket or key leads out of the folder of buckets: see folder.c.
 *  - A job that was under way when the process died is done again from its beginning where that comes to the same
 *    (imports, exports of the past), and is FAILED where it does not (exports of the present, whose moment is over, and
 *    bulk writes, behind which others may have written).
 *  - A manifest is written when everything that it names is there. */
#ifndef TRANSFER_TRANSFER_H
#define TRANSFER_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/slice.h"
#include "value/value.h"

/* ---- reading records ---- */

/* Bytes of an object, in order. */
struct transfer_source {
    /* Up to `most` bytes; 0 at the end, -1 at a fault, of which `fault` is the sentence. */
    ssize_t (*read)(struct transfer_source *source, char *out, size_t most);
    void (*close)(struct transfer_source *source);
    const char *fault;
};
/* A file of this machine, opened by the caller; closed with the source. */
struct transfer_source *transfer_source_of_file(int fd);

enum transfer_compression { TRANSFER_NONE, TRANSFER_GZIP, TRANSFER_ZSTD };
enum transfer_format { TRANSFER_JSON, TRANSFER_ION, TRANSFER_CSV };

/* A column of CSV that is no string: N or B (base64). */
struct transfer_column {
    struct slice name;
    enum value_type type;
};

struct transfer_records_options {
    enum transfer_format format;
    enum transfer_compression compression;
    char delimiter;            /* of CSV; 0: a comma */
    const struct slice *names; /* of CSV's columns; NULL: the first row has them. These two are kept */
    uint32_t name_count;
    const struct transfer_column *types;
    uint32_t type_count;
};

enum transfer_result {
    TRANSFER_FOUND,
    TRANSFER_BAD,  /* this record is no item, but the next may be */
    TRANSFER_STOP, /* no further record of this object can be read: damaged, or cut off */
    TRANSFER_END,
};

struct transfer_records;
/* Keeps the source; closes it with itself. */
struct transfer_records *transfer_records_open(struct transfer_source *source,
                                               const struct transfer_records_options *options);
void transfer_records_close(struct transfer_records *records);
/* The next item in DynamoDB's JSON, which stays until the next call. BAD and STOP: a sentence instead. */
enum transfer_result transfer_records_next(struct transfer_records *records, struct slice *item,
                                           const char **fault);
/* How many records were begun: the number of the last one, from 1. */
uint64_t transfer_records_count(const struct transfer_records *records);
/* The text of the last record as it stood, for reports; nothing where it was too long. */
struct slice transfer_records_text(const struct transfer_records *records);

/* ---- jobs ---- */

struct transfer;
struct backup;
struct transfer_options {
    struct engine *engine; /* these three are kept, and outlive it */
    struct api *api;
    struct backup *backup; /* of the engine's store */
    const char *folder;   /* of buckets; NULL: there is none */
    const char *endpoint; /* of an S3 that has the buckets instead: http(s)://host[:port]; NULL: none */
    const char *region;   /* for its signatures; NULL: by AWS's variables and files */
};
/* Watches for jobs, and goes on with those that an earlier process has left. NULL and a sentence when the S3 cannot be
 * called. */
struct transfer *transfer_open(const struct transfer_options *options, char *error, size_t error_len);
/* Stops what is under way, to be gone on with by the next one, and waits for that. */
void transfer_close(struct transfer *transfer);

#endif
