/* Actions of a transaction one by one: where nothing else belongs to it, a plain write costs half. */
#include "base/fail.h"
#include "dynamo/internal.h"

struct slice dynamo_action_request(struct slice action, const char **operation)
{
    static const struct {
        const char *begin, *operation;
    } kinds[] = {{"{\"Put\":", "PutItem"}, {"{\"Update\":", "UpdateItem"}, {"{\"Delete\":", "DeleteItem"}};
    size_t i = 0;
    while (i < sizeof kinds / sizeof *kinds && !slice_starts(action, slice_of(kinds[i].begin))) i++;
    ensure(i < sizeof kinds / sizeof *kinds);
    size_t begin = strlen(kinds[i].begin);
    *operation = kinds[i].operation;
    return (struct slice){action.data + begin, action.len - begin - 1};
}
