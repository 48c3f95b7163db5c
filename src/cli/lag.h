/* How far a trigger is behind its table. */
#ifndef CLI_LAG_H
#define CLI_LAG_H

#include <stdint.h>

#include "cli/place.h"

/* The age of the oldest change that the mapping has not handled; 0: it has handled all; -1: that cannot be
 * found out. */
int64_t lag_of_mapping(const struct place *place, struct arena *arena, struct slice id, struct slice stream);

#endif
