/* An export while it is made: what its files share. */
#ifndef TRANSFER_EXPORT_H
#define TRANSFER_EXPORT_H

#include <zlib.h>

#include "base/random.h"
#include "transfer/jobs.h"

struct export
{
    struct transfer_run *run;
    const struct table *table;
    struct slice bucket, prefix;
    struct slice folder, data_folder; /* of the manifests, and of the data */
    bool is_ion;
    struct api_filter filter;
    struct buf lines;  /* not packed yet */
    struct buf packed; /* the data file that is being made */
    z_stream zlib;
    int64_t file_items;
    struct buf files; /* manifest-files.json */
    struct arena arena;
    struct random random; /* of the data files' names: those of one export are the same whenever it is made */
    struct transfer_failure failure;
    bool is_damaged; /* what was read is no item */
};

/* ---- export_file.c ---- */

void export_file_open(struct export *export);
void export_file_close(struct export *export);
/* An object beside the manifests. */
bool export_put_object(struct export *export, const char *name, struct slice bytes);
/* Ends the data file, and puts it into the bucket. */
bool export_file_end(struct export *export);

/* The line of an item; a visitor of stores. False: it must go no further, for a reason that is in the struct, or
 * because somebody has stopped it. */
bool export_item(void *context, struct slice key, struct slice encoded);

/* What became of an item: its images before and after, encoded, empty where there was none. */
struct export_change {
    struct slice before, after;
    int64_t time_us;
    bool has_before; /* the line is to tell it, if there was one */
};
bool export_change(struct export *export, const struct export_change *change);

/* ---- increment.c ---- */

/* The changes of a table between two moments. False and a sentence: they are not known. */
bool export_increment(struct export *export, char *error, size_t error_len);

#endif
