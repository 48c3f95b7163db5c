/* A folder as a zip archive, to be sent. */
#ifndef CLI_PACK_H
#define CLI_PACK_H

#include "base/buf.h"

/* Appends an archive of all that lies below the folder: files, which may be run or not, links and folders.
 * The same files give the same bytes. False after complaining: what cannot be read, or be in an archive;
 * nothing in it; more than a server takes. */
bool pack_folder(const char *folder, struct buf *out);

struct node;

/* The same of those files that a list of patterns takes, as `package.patterns` of serverless.yml does: *, **, ?, {a,b};
 * "!" before one leaves out; the last that fits counts; what none fits is taken. NULL: all files. */
bool pack_chosen(const char *folder, const struct node *patterns, struct buf *out);

/* Whether the whole name fits the pattern. *is_endless: the pattern can be read in too many ways to say. */
bool pack_fits(struct slice pattern, struct slice name, bool *is_endless);

/* The same of one file with this name and text. */
void pack_text(const char *name, struct slice text, struct buf *out);

/* Whether an entry of the archive begins with one of these names ("python/"), ended by NULL. True also when the
 * archive's list cannot be read: that is for the server to say. */
bool pack_has_any(struct slice archive, const char *const *starts);

#endif
