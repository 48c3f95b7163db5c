/* A store in memory that lies over another one: what is written stays in memory, what is read is the merge of both.
 * So a folder that must not be written can be shown as it will be when its log is replayed. */
#ifndef STORE_OVERLAY_H
#define STORE_OVERLAY_H

#include "store/store.h"

/* Takes the base, which is only read, and closed by store_close of the overlay. Nobody may write to it meanwhile. */
struct store *store_open_overlay(struct store *base);
/* The same over one that stays as it is when the overlay is closed. It may be written to what the overlay has. */
struct store *store_open_overlay_on(struct store *base);

#endif
