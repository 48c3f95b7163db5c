/* Turns bits in copies of a data folder, or takes segments of its log away: what was written must be there, or somebody
 * must say that it is not. */
#ifndef CUT_FLIPS_H
#define CUT_FLIPS_H

#include "cut/judge.h"

/* So many flips, from a seed; one of three in each kind of file: the journal, RocksDB's tables, all else. Copies are
 * made in `scratch`. What is wrong is printed. */
void flips_judge(const struct judgement *judgement, const char *scratch, uint64_t seed, uint64_t flips,
                 uint64_t *passed, uint64_t *failed);
/* So many times some of the log's segments are missing, or all of them. */
void lost_judge(const struct judgement *judgement, const char *scratch, uint64_t seed, uint64_t times,
                uint64_t *passed, uint64_t *failed);

#endif
