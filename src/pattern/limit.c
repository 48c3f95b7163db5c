/* Limits: so many in a time, over all processes that ask.
 *
 * Table PREFIXlimits: hash key `name` (S); `at` (N, nanoseconds since 1970): when all that was taken is paid for;
 * `mark` (S): of the write that set it; `rate`, `per` (ms), `burst` (N): as they were given last, for people; `expires`
 * (N, seconds since 1970; time to live).
 *
 * Each piece that is taken moves `at` on by its share of time, per / rate rounded up to a nanosecond, from `at` or
 * from now, whichever is later.
 * What would move it further than burst shares ahead of now is refused, or waited for: then its share is taken now,
 * and its caller is told when its time has come, so those who wait go in turns and nobody asks again and again. One
 * conditional write on `at` as it was seen decides; a call that finds by its memory that it must be refused writes
 * nothing, since `at` only grows. Calls of one process go together into one write.
 *
 * So in any span of time t no more than burst + rate * t / per pieces are given, as far as the clocks of the callers
 * agree. */
#include "calendar/calendar.h"
#include "pattern/edit.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define COUNT_MOST   1000000000
#define PER_USUAL_MS 1000
#define PER_MOST_MS  (31 * 24 * 3600 * 1000ll)
#define KEPT_S       (24 * 3600)
#define SHARE_BYTES  100 /* of what a round may have: so many that one write serves thousands of calls */

static const struct flow_table limits = {"limits", "name", "expires"};

enum { TAKE_NAME, TAKE_RATE, TAKE_PER, TAKE_BURST, TAKE_COUNT, TAKE_WAIT };

static const struct field take_fields[] = {
    [TAKE_NAME] = {"name", IN_PATH, FIELD_NAME, true, .help = "the limit"},
    [TAKE_RATE] = {"rate", IN_BODY, FIELD_INT, true, .min = 1, .max = COUNT_MOST,
                   .help = "how many are given in the time that per says"},
    [TAKE_PER] = {"per", IN_BODY, FIELD_DURATION, .min = 1, .max = PER_MOST_MS,
                  .help = "in which time (default: 1s)"},
    [TAKE_BURST] = {"burst", IN_BODY, FIELD_INT, .min = 1, .max = COUNT_MOST,
                    .help = "how many may be taken at once after a rest (default: rate)"},
    [TAKE_COUNT] = {"count", IN_BODY, FIELD_INT, .min = 1, .max = COUNT_MOST,
                    .help = "how many to take (default: 1)"},
    [TAKE_WAIT] = FIELD_WAIT(IN_BODY, "how long to wait for them (default: not at all)"),
};

/* What a call wants, and what it got. */
struct take {
    int64_t count, burst, share_ns, wait_ms;
    bool is_settled, is_given;
    int64_t delay_ms; /* given: when its time comes; else after how long it is worth to ask again */
    int64_t left;
};

#define MS_NS 1000000

static int64_t share_of(int64_t rate, int64_t per_ms)
{
    return (int64_t)(((__int128)per_ms * MS_NS + rate - 1) / rate);
}

/* Moves *at_ns on where it is given. */
static void take_settle(struct take *take, int64_t *at_ns, int64_t now_ns)
{
    __int128 next = (*at_ns > now_ns ? *at_ns : now_ns) + (__int128)take->count * take->share_ns;
    __int128 room = (__int128)take->burst * take->share_ns;
    __int128 delay_ms = (next - room - now_ns + MS_NS - 1) / MS_NS;
    take->is_settled = true;
    take->is_given = delay_ms <= take->wait_ms && next < INT64_MAX;
    take->delay_ms = delay_ms <= 0 ? 0 : delay_ms < INT64_MAX ? (int64_t)delay_ms : INT64_MAX;
    if (take->is_given) *at_ns = (int64_t)next;
    int64_t ahead = *at_ns > now_ns ? *at_ns - now_ns : 0;
    take->left = ahead < room ? (int64_t)((room - ahead) / take->share_ns) : 0;
}

static uint64_t memory_of(struct flow *flow)
{
    return flow_topic("limit", flow_text(flow, TAKE_NAME), SLICE(""));
}

/* One write for all of a round. The first one of all finds that there is no such limit, and enters its name. */
static bool limit_write(struct flow *flow, int64_t seen_ns, int64_t at_ns, struct slice mark, bool may_make)
{
    int64_t now_ns = flow->now_ms * MS_NS;
    bool is_rested = seen_ns <= now_ns;
    edit_item(
        flow, &limits, flow_compose(flow, "{'name':%S}", flow_text(flow, TAKE_NAME)),
        SLICE(
            "SET #at = :at, #mark = :mark, #rate = :rate, #per = :per, #burst = :burst, #expires = :expires"),
        !is_rested ? SLICE("#at = :seen")
        : may_make ? SLICE("attribute_not_exists(#at) or #at <= :seen")
                   : SLICE("#at <= :seen"),
        "':at':%N,':mark':%S,':rate':%N,':per':%N,':burst':%N,':expires':%N,':seen':%N", at_ns, mark,
        flow_int(flow, TAKE_RATE), flow_int_or(flow, TAKE_PER, PER_USUAL_MS),
        flow_int_or(flow, TAKE_BURST, flow_int(flow, TAKE_RATE)), at_ns / MS_NS / 1000 + KEPT_S,
        is_rested ? now_ns : seen_ns);
    /* A write whose reply was lost has been repeated, and finds its own mark. */
    return !flow_failed(flow) || slice_equal(item_text(flow->arena, flow_item(flow), "mark"), mark);
}

/* Settles what all of the round want. */
static void round_lead(struct flow *flow, struct take *own)
{
    struct slice known = flow_recall(flow, memory_of(flow));
    int64_t seen_ns = known.data ? item_int(flow->arena, known, "at", 0) : 0;
    bool may_make = false;
    for (;;) {
        int64_t at_ns = seen_ns, now_ns = flow->now_ms * MS_NS;
        struct slice mark = flow_new_id(flow);
        for (size_t i = 0; i <= flow->follower_count; i++)
            take_settle(i ? flow->followers[i - 1]->share.what : own, &at_ns, now_ns);
        if (at_ns == seen_ns || limit_write(flow, seen_ns, at_ns, mark, may_make)) {
            flow_remember(flow, memory_of(flow), flow_compose(flow, "{'at':%N}", at_ns));
            break;
        }
        seen_ns = item_int(flow->arena, flow_item(flow), "at", 0);
        flow_remember(flow, memory_of(flow), flow_compose(flow, "{'at':%N}", seen_ns));
        if (flow_item(flow).data || may_make) {
            task_again(flow);
            continue;
        }
        names_enter(flow, SLICE("limit"), flow_text(flow, TAKE_NAME));
        may_make = true;
    }
    flow_disband(flow);
}

static void take_some(struct flow *flow)
{
    struct take *take = arena_new(flow->arena, struct take);
    int64_t rate = flow_int(flow, TAKE_RATE);
    *take = (struct take){.count = flow_int_or(flow, TAKE_COUNT, 1),
                          .burst = flow_int_or(flow, TAKE_BURST, rate),
                          .share_ns = share_of(rate, flow_int_or(flow, TAKE_PER, PER_USUAL_MS)),
                          .wait_ms = flow_int_or(flow, TAKE_WAIT, 0)};
    if (take->count > take->burst)
        task_refuse(flow, 400, "bad-request",
                    "count must not be larger than burst: it would never be given.");
    struct flow_share share = {.what = take, .bytes = SHARE_BYTES};
    if (task_join(flow, flow_topic("limit round", flow_text(flow, TAKE_NAME), flow->world->prefix), share))
        round_lead(flow, take);
    else if (!take->is_settled) {
        flow->retry_after_ms = 1000;
        task_refuse(flow, 503, "busy", "The database did not get to it. Try again later.");
    }
    if (take->is_given) {
        if (take->delay_ms) task_sleep(flow, take->delay_ms);
        flow_answer(flow, 200, "{'given':%d,'left':%d,'waited':%d}", take->count, take->left, take->delay_ms);
        return;
    }
    flow->retry_after_ms = take->delay_ms;
    flow_refuse_with(flow, flow_compose(flow, "'left':%d,'retryAfter':%d", take->left, flow->retry_after_ms),
                     429, "limited", "The limit is reached; ask again in %lld ms.",
                     (long long)flow->retry_after_ms);
}

/* ---- GET, DELETE ---- */

static const struct field name_fields[] = {{"name", IN_PATH, FIELD_NAME, true, .help = "the limit"}};

static _Noreturn void refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-limit", "There is no limit '%.*s'; the first call makes it.",
                SLICE_ARG(flow_text(flow, TAKE_NAME)));
}

/* By the settings of whoever took last. */
static void show_limit(struct flow *flow)
{
    struct slice item = task_get(flow, &limits, "{'name':%S}", flow_text(flow, TAKE_NAME));
    int64_t rate = item_int(flow->arena, item, "rate", 1), per_ms = item_int(flow->arena, item, "per", 1);
    int64_t burst = item_int(flow->arena, item, "burst", 1), at_ns = item_int(flow->arena, item, "at", 0);
    int64_t now_ns = flow->now_ms * MS_NS, ahead_ns = at_ns > now_ns ? at_ns - now_ns : 0;
    struct take none = {.burst = burst, .share_ns = share_of(rate > 0 ? rate : 1, per_ms > 0 ? per_ms : 1)};
    take_settle(&none, &at_ns, now_ns);
    if (!item.data) refuse_unknown(flow);
    flow_answer(flow, 200, "{'name':%s,'rate':%d,'per':%s,'burst':%d,'left':%d,'full':%s}",
                flow_text(flow, TAKE_NAME), rate, duration_text(flow->arena, per_ms), burst, none.left,
                moment_text(flow->arena, (now_ns + ahead_ns + MS_NS - 1) / MS_NS));
}

static void delete_limit(struct flow *flow)
{
    task_call(flow, "DeleteItem", "{'TableName':%T,'Key':{'name':%S},'ReturnValues':'ALL_OLD'}", &limits,
              flow_text(flow, TAKE_NAME));
    flow_forget(flow, memory_of(flow));
    if (!flow_item(flow).data) refuse_unknown(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- all of them ---- */

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    if (item_int(flow->arena, item, "expires", INT64_MAX) <= flow->now_ms / 1000) return SLICE_NONE;
    return flow_compose(flow, ",'rate':%d,'per':%s,'burst':%d", item_int(flow->arena, item, "rate", 1),
                        duration_text(flow->arena, item_int(flow->arena, item, "per", 1)),
                        item_int(flow->arena, item, "burst", 1));
}

NAMES_LIST(list_limits, SLICE("limit"), "limits", "name", "name", .table = &limits, .tell = told_in_list)

/* ---- rows ---- */

/* clang-format off */
const struct flow_row limit_rows[] = {
    {"POST", "/v1/limits/{name}", take_some, "Takes one, or some, of what a limit gives in a time.",
     FIELDS(take_fields), "{'given':1,'left':199,'waited':0}", "limit take"},
    {"GET", "/v1/limits/{name}", show_limit, "How much is left of a limit.", FIELDS(name_fields),
     "{'name':'mails','rate':100,'per':'1s','burst':200,'left':199,'full':'2026-11-15T03:42:06.260Z'}", "limit get"},
    {"DELETE", "/v1/limits/{name}", delete_limit, "Forgets a limit: all of it can be taken again.",
     FIELDS(name_fields), "{'deleted':true}", "limit rm"},
    {"GET", "/v1/limits", list_limits, "The limits of which somebody took within a day, by name.", FIELDS(names_fields),
     "{'limits':[{'name':'mails','rate':100,'per':'1s','burst':200}]}", "limit list -> limits"},
};
/* clang-format on */
ROW_COUNT(limit);
