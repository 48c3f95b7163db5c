/* Whose fault a cancelled transaction of ours is. */
#include <stdio.h>

#include "trigger/judge.h"

enum cancellation cancellation_of(struct slice reply, struct arena *arena, char *reason, size_t reason_len)
{
    struct dynamo_cancellation why = dynamo_cancellation(reply, arena);
    reason[0] = 0;
    if (why.first < 0) return CANCELLED_FOR_NOW;
    snprintf(reason, reason_len, "write %d: %.*s: %.*s", why.first, SLICE_ARG(why.code),
             SLICE_ARG(why.message));
    return why.first ? CANCELLED_BY_OTHERS : CANCELLED_BY_US;
}
