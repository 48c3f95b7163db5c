/* Which changes of which tables others may react to; see pattern.h. */
#include "pattern/pattern.h"

/* A unit of work that has become DEAD. */
#define DEAD_WORK                                                                                            \
    "{\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[\"DEAD\"]},\"then\":{\"S\":[{\"exists\":true}]}},"       \
    "\"OldImage\":{\"state\":{\"S\":[{\"anything-but\":[\"DEAD\"]}]}}}}"

const struct pattern_reaction pattern_reactions[] = {{"work", DEAD_WORK}};
const size_t pattern_reaction_count = sizeof pattern_reactions / sizeof *pattern_reactions;
