/* Backups and power cuts: a process that ships a store to a target, which is recorded, and a judge of what is left of
 * it. */
#ifndef CUT_COPIES_H
#define CUT_COPIES_H

#include "cut/judge.h"
#include "cut/trace.h"

struct shipping {
    const char *target, *data; /* the store's folder, which nobody records */
    uint64_t seed;
    uint32_t batches;
    bool no_ranges, is_killed;
    void (*mark)(void *context, enum trace_mark kind, uint32_t number);
    void *context;
};

/* Writes batches and ships them, with bases in between; marks what is begun, and what the target said to have. False:
 * something failed, and was printed. Does not come back from where it is killed. */
bool copies_ship(const struct shipping *shipping);

/* judgement->folder is a target. Everything in it is as it was written, what is restored is one of the batches that it
 * may be, and whoever goes on with the target finds as much. What is made lies in `scratch`. */
bool copies_judge(const struct judgement *judgement, const char *scratch, char *words, size_t words_len);

#endif
