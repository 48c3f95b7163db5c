/* Archives of code: unpacked into folders that anybody may make again. */
#ifndef FUNC_ARCHIVE_H
#define FUNC_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum archive_end {
    ARCHIVE_UNPACKED,
    ARCHIVE_BAD,    /* no archive, a broken one, one whose names lead elsewhere, or with more files
                       or folders than LIMIT_CODE_ENTRIES and LIMIT_CODE_FOLDERS: the sender's fault */
    ARCHIVE_LARGE,  /* more than LIMIT_UNPACKED_BYTES when unpacked */
    ARCHIVE_FAILED, /* the disk, or no libzip: the world's fault */
};

/* Unpacks into `folder`, which is there only when all of it is: into a folder beside it first. When it is
 * there already nothing is done. */
enum archive_end archive_unpack(struct slice archive, const char *folder, char *error, size_t error_len);

/* Whether a symbolic link at `name` (relative to the folder) may point at `target`: inside, and so that no
 * link that it leads through can change that. */
bool archive_link_is_inside(struct slice name, struct slice target);
/* Whether an entry may have this name: relative, no "..", nothing empty, no NUL, not deeper than
 * LIMIT_CODE_DEPTH. */
bool archive_name_is_sound(struct slice name);

/* Removes a folder and all in it, as far as that can be done. */
void archive_remove(const char *folder);
/* Makes a folder and those above it; false when it is not there afterwards. */
bool archive_make_folder(const char *folder);

#endif
