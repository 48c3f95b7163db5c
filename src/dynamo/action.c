/* Actions of a transaction one by one: where nothing else belongs to it, a plain write costs half. */
#include "base/fail.h"
#include "dynamo/internal.h"

struct slice dynamo_action_request(struct slice action, const char **operation)
{
    static const struct {
        const char *begin, *operation;
    } kinds[] = {{"{\"Put\":", "PutItem"}, {"{\"Update\":", "UpdateItem"}, {"{\"Delete\":", "DeleteItem"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct slice begin = slice_of(kinds[i].begin);
        if (!slice_starts(action, begin)) continue;
        *operation = kinds[i].operation;
        return (struct slice){action.data + begin.len, action.len - begin.len - 1};
    }
    ensure(!"an action that is a write");
    return SLICE_NONE;
}
