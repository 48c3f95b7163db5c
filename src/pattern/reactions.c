/* Which changes of which tables others may react to; see pattern.h. */
#include "pattern/pattern.h"

const struct pattern_reaction pattern_reactions[] = {{NULL, NULL}};
const size_t pattern_reaction_count = 0;
