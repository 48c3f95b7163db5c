/* Which changes of which tables others may react to; see pattern.h. */
#include "pattern/pattern.h"

/* A change of state into one of these from one that is none of them, of an item that has a `then`. */
#define BECOMES(states)                                                                                      \
    "{\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[" states "]},\"then\":{\"S\":[{\"exists\":true}]}},"     \
    "\"OldImage\":{\"state\":{\"S\":[{\"anything-but\":[" states "]}]}}}}"

/* A unit of work that is given up, a job that has ended one way or other, a group that is complete, a bucket of a
 * period that is. */
const struct pattern_reaction pattern_reactions[] = {
    {"work", BECOMES("\"DEAD\"")},
    {"jobs", BECOMES("\"COMPLETE\",\"FAILED\",\"EXPIRED\"")},
    {"groups", BECOMES("\"COMPLETE\"")},
    {"period-buckets", BECOMES("\"DONE\"")},
};
const size_t pattern_reaction_count = sizeof pattern_reactions / sizeof *pattern_reactions;
