/* Leases: one holder at a time, or several. */
#include "library/ask.h"

static void lease_told(struct ask *ask, struct quipu_lease *lease)
{
    if (!lease) return;
    told_int(ask, "fence", 0, &lease->fence);
    lease->until_ms = told_moment(ask, "until");
}

static bool lease_is_over(struct ask *ask)
{
    return ask->result != QUIPU_CONFLICT;
}

/* holders NULL: the owner wants to be alone. */
static enum quipu_result lease_ask(struct quipu *db, const char *name, const char *owner, const int64_t *holders,
                                   int64_t for_ms, int64_t wait_ms, struct quipu_lease *lease,
                                   struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/leases/*", name);
    ask_text(&ask, "owner", owner);
    if (holders) ask_int(&ask, "holders", *holders);
    ask_some(&ask, "for", for_ms);
    if (ask_run_waiting(&ask, wait_ms, false, lease_is_over) > 0) lease_told(&ask, lease);
    return ask_end(&ask);
}

enum quipu_result quipu_lease_take(struct quipu *db, const char *name, const char *owner, int64_t for_ms,
                                   int64_t wait_ms, struct quipu_lease *lease, struct quipu_reply **reply)
{
    return lease_ask(db, name, owner, NULL, for_ms, wait_ms, lease, reply);
}

enum quipu_result quipu_lease_share(struct quipu *db, const char *name, const char *owner, int64_t holders,
                                    int64_t for_ms, int64_t wait_ms, struct quipu_lease *lease,
                                    struct quipu_reply **reply)
{
    return lease_ask(db, name, owner, &holders, for_ms, wait_ms, lease, reply);
}

enum quipu_result quipu_lease_renew(struct quipu *db, const char *name, const char *owner, int64_t for_ms,
                                    struct quipu_lease *lease, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/leases/*", name);
    ask_text(&ask, "owner", owner);
    ask_int(&ask, "fence", lease->fence);
    ask_some(&ask, "for", for_ms);
    if (ask_run(&ask) > 0) lease_told(&ask, lease);
    return ask_end(&ask);
}

enum quipu_result quipu_lease_release(struct quipu *db, const char *name, const char *owner,
                                      const struct quipu_lease *lease, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "DELETE", "/v1/leases/*", name);
    ask_text(&ask, "owner", owner);
    ask_int(&ask, "fence", lease->fence);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_lease_get(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "GET", "/v1/leases/*", name);
}
