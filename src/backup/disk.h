/* Files and folders as this room uses them. Functions answer false with a sentence in error; names are paths. */
#ifndef BACKUP_DISK_H
#define BACKUP_DISK_H

#include "backup/backup.h"

/* Always false: "cannot WHAT PATH: reason of errno". */
bool disk_refuse(const char *what, const char *path, char *error, size_t error_len);
/* Letters, digits and ._- , no dot first, and short: safe as a part of a path. */
bool disk_name_is_plain(struct slice name);
bool disk_is_table(const char *name); /* RocksDB's immutable files: *.sst */
/* "folder/name", with a bound: false when it is too long. */
#define DISK_PATH 4096
bool disk_path(char path[DISK_PATH], const char *folder, const char *name, char *error, size_t error_len);

bool disk_make_folder(const char *path, char *error, size_t error_len); /* there already: fine */
/* Makes the folder where it is missing, and holds it until the file that is answered is closed: -1 and a sentence, that
 * ends in `busy` when another process holds it. */
int disk_lock_folder(const char *path, const char *busy, char *error, size_t error_len);
bool disk_sync_folder(const char *path, char *error, size_t error_len);
/* With all that is in it; what is not there is fine. */
void disk_remove(const char *path);
/* Nothing but lost+found and an entry of this name (NULL: none), or not there. */
bool disk_is_empty(const char *path, const char *but);

/* What tells a file from others of its name, without reading all of it. RocksDB writes who made a table file, and
 * when, near its end, so a checksum of the end will do; of other files it is that of the whole. */
bool disk_file_mark(const char *path, const char *name, uint64_t *bytes, uint64_t *mark, char *error,
                    size_t error_len);
bool disk_file_hash(const char *path, uint64_t *bytes, uint64_t *hash, char *error, size_t error_len);
/* Appends up to this many bytes from a place on. */
bool disk_file_read(const char *path, uint64_t from, size_t most, struct buf *out, char *error,
                    size_t error_len);
/* Opens a file that nobody else has, to be written: what has this name, which may be a link to a file of somebody's, is
 * let go, not written to. -1 and errno. */
int disk_file_new(const char *path);
/* Copies, syncs, and tells the checksum of what was copied. A file that is there already is left as it is: false. */
bool disk_file_copy(const char *from, const char *to, uint64_t *hash, char *error, size_t error_len);
/* Writes it under another name, syncs it, renames it, syncs the folder. */
bool disk_file_put(const char *folder, const char *name, struct slice bytes, char *error, size_t error_len);
bool disk_write_all(int file, struct slice bytes);

#endif
