/* JSON Merge Patch (RFC 7396) on texts. */
#ifndef PATTERN_MERGE_H
#define PATTERN_MERGE_H

#include "base/arena.h"
#include "base/slice.h"

/* The target with the patch applied, in the arena. Both are well-formed. */
struct slice merge_patch(struct arena *arena, struct slice target, struct slice patch);

#endif
