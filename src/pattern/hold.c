/* Holds of flows; see hold.h. */
#include "pattern/hold.h"

#include "calendar/calendar.h"

void hold_take(struct flow *flow, struct edit *edit, struct slice owner, int64_t for_ms, const char *free)
{
    edit_put(flow, edit, EDIT_SET, HOLD_TAKE,
             "':owner':%S,':until':%N,':now':%N,':zero':{'N':'0'},':one':{'N':'1'}", owner,
             hold_until_ms(flow, for_ms), flow->now_ms);
    edit_if(flow, edit, free, NULL);
}

struct dynamo_hold hold_of(struct flow *flow, struct slice item)
{
    return dynamo_hold_read(flow->arena, item);
}

enum dynamo_hold_state hold_state(struct flow *flow, struct slice item, struct slice me)
{
    struct dynamo_hold hold = hold_of(flow, item);
    return dynamo_hold_state(&hold, me, flow->now_ms);
}

bool hold_is_on(struct flow *flow, struct slice item)
{
    return hold_state(flow, item, SLICE("")) != HOLD_IS_FREE;
}

int64_t hold_until_ms(const struct flow *flow, int64_t for_ms)
{
    return dynamo_hold_until(flow->now_ms, for_ms, flow->world->skew_ms);
}

int64_t hold_renewed_ms(struct flow *flow, unsigned for_field, unsigned until_field)
{
    int64_t until_ms = 0;
    if (!flow_given(flow, until_field))
        return hold_until_ms(flow, flow_int_or(flow, for_field, HOLD_USUAL_MS));
    if (!flow_given(flow, for_field) && moment_parse(flow_text(flow, until_field), &until_ms) &&
        until_ms > flow->now_ms && until_ms <= flow->now_ms + HOLD_MOST_MS)
        return until_ms + flow->world->skew_ms;
    task_refuse(flow, 400, "bad-request", "until must be a time to come, within 7 days, and instead of for.");
}

struct slice hold_until_text(struct flow *flow, struct slice item)
{
    return moment_text(flow->arena, hold_of(flow, item).until_ms - flow->world->skew_ms);
}

void hold_refuse_fence(struct flow *flow, struct slice item, int64_t fence, struct slice members,
                       const char *thing, const char *taken)
{
    int64_t current = hold_of(flow, item).fence;
    if (fence < current)
        task_refuse_with(flow, members, 409, "stale-fence", "The %s was %s again since: its fence is %lld.",
                         thing, taken, (long long)current);
    if (fence > current)
        task_refuse_with(flow, members, 409, "stale-fence",
                         "The %s was never %s with fence %lld: its last one is %lld.", thing, taken,
                         (long long)fence, (long long)current);
}
