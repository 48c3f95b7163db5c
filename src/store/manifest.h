/* RocksDB's list of its files, the MANIFEST, where its end cannot be used: a power cut has torn its last records, or a
 * sync of them failed and RocksDB has taken back what they tell, but not the records.
 *
 * RocksDB writes some records and syncs them before it counts on what they tell. So nothing counts on such an end:
 * no file that it would have made needless was deleted, and no batch was released from the journal. The list without
 * it is an older, whole one. RocksDB itself refuses such a folder. */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

/* Cuts that end off, if that is all that is wrong: no more stands behind what is torn than was written with it, all
 * files of the older list are there, and it goes up to a batch from which on the journal has everything (`first` is its
 * first). So nothing is lost, whatever was wrong. The folder FOLDER/mending, of links, is made for the trial, and
 * removed. False: nothing was changed. */
bool manifest_mend(const char *folder, const char *store_path, uint64_t first);

/* The same for a reader, who changes nothing there: a folder of links to the tables, with the list without its end, in
 * $TMPDIR or /tmp. NULL: there is no such list. It is needed as long as the tables are read. */
char *manifest_view(const char *store_path, uint64_t first);
/* Removes and frees it; it may be NULL. */
void manifest_view_free(char *view);

#endif
