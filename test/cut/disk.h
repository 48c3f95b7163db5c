/* A disk that may lose power: plays a trace (trace.h) and makes folders as a machine might find them after its power
 * was cut at any record of it. Rules, each weaker than what ext4 and XFS do:
 *
 *  1. What was synced is there: a file's bytes and size by fsync or fdatasync of it, a write's own pages by O_DSYNC or
 *     RWF_DSYNC, a folder's names by fsync of the folder. A sync of a file keeps no name, a sync of a folder no bytes.
 *     The record at which the power is cut was under way: it may have had any part of its effect, and a sync none.
 *  2. Pages of 4 KB are written one by one, in any order, at any time: of a page each content is possible that it had
 *     since its last sync. A page may be torn: its sectors of 512 bytes are then of different contents.
 *  3. A file has any size that it had since its last sync, whichever of its pages are there (so data=ordered is not
 *     assumed). A new page that was not written is zeros; or, in a file that was synced before, what a file that was
 *     removed had there.
 *  4. Names of one folder change in the order in which they were changed, a rename at once: both file systems keep a
 *     log of such changes. How far that log has come is up to chance, in each folder by itself.
 *  5. After a sync that has failed the system takes the file's pages for clean: a later sync does not write them. */
#ifndef CUT_DISK_H
#define CUT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cut/trace.h"

struct disk;

/* The content of `folder` is on it and synced; NULL: nothing is. */
struct disk *disk_open(const char *folder);
void disk_close(struct disk *disk);

/* The effects of the record begin, then they are complete. `text` and `data` as in trace.h. */
void disk_begin(struct disk *disk, const struct trace_record *record, const char *text, const char *data);
void disk_complete(struct disk *disk, const struct trace_record *record);

/* Of the file whose sync is under way: how many pages it has to write. 0: no sync is. */
size_t disk_syncing_pages(const struct disk *disk, const struct trace_record *record);

#define STATE_NOTHING 0 /* of what was not synced */
#define STATE_ALL     1 /* all of it is there */
#define STATE_RANDOM  2 /* this seed and larger ones */
#define OMIT_NONE     -1

/* Makes the folder, which is not there, with what the power cut has left. omit: the page of disk_syncing_pages that is
 * missing. */
void disk_make(struct disk *disk, const struct trace_record *record, uint64_t seed, int64_t omit,
               const char *folder);

#endif
