/* Limits: so many in a time, over all that ask. */
#include <string.h>

#include "library/ask.h"

#define WAIT_MOST_MS 60000 /* of one call: what takes longer is refused at once */

static bool is_limited(const struct ask *ask)
{
    return ask->reply && ask->reply->error && strcmp(ask->reply->error, "limited") == 0;
}

enum quipu_result quipu_limit_take(struct quipu *db, const char *name, const struct quipu_limit *limit,
                                   int64_t count, int64_t wait_ms, int64_t *left, int64_t *retry_after_ms,
                                   struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/limits/*", name);
    ask_int(&ask, "rate", limit->rate);
    ask_some(&ask, "per", limit->per_ms);
    ask_some(&ask, "burst", limit->burst);
    ask_some(&ask, "count", count);
    ask_some(&ask, "wait", wait_ms < 0 || wait_ms > WAIT_MOST_MS ? WAIT_MOST_MS : wait_ms);
    ask_run(&ask);
    if (is_limited(&ask)) ask.result = QUIPU_NONE;
    if (ask.result >= QUIPU_NONE) {
        told_int(&ask, "left", 0, left);
        told_int(&ask, "retryAfter", 0, retry_after_ms);
    }
    return ask_end(&ask);
}

enum quipu_result quipu_limit_get(struct quipu *db, const char *name, int64_t *left,
                                  struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/limits/*", name);
    if (ask_run(&ask) > 0) told_int(&ask, "left", 0, left);
    return ask_end(&ask);
}

enum quipu_result quipu_limit_delete(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/limits/*", name);
}
