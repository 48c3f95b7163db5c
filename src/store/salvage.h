/* The log of a damaged folder, as far as it can be read. A part of salvage.c. */
#ifndef STORE_SALVAGE_H
#define STORE_SALVAGE_H

#include "store/journal.h"
#include "store/store.h"

/* The batches that can be read one behind the other, from the oldest segment on. */
struct salvage_log {
    uint64_t id;          /* of the journal; 0: no segment tells it */
    uint64_t first, last; /* none where both are 0 */
    uint64_t known;       /* the last batch that any frame of it tells of */
    bool is_whole;        /* the log ends there */
    char words[512];      /* else: what is wrong */
    uint64_t left_bytes;  /* and how much of it stands behind that */
};

/* Finds out how far the log of the journal's folder can be read; the visitor gets the batches, unless it is NULL. */
void salvage_log_read(const char *folder, struct salvage_log *out, journal_visitor *visitor, void *context);
/* Whether what can be read goes on where the tables end, which have everything up to that batch. */
bool salvage_log_fits(const struct salvage_log *log, uint64_t tables);

#endif
