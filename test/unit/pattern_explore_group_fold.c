/* Folded values in every order: whoever comes between, is dropped or comes twice, a head has the values of the events
 * that it counts, and a group is complete when, and only when, they say so. */
#include "unit/pattern_explore.h"

#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LARGE X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

#define ADD(id, value, more)                                                                                 \
    REQUEST("POST /v1/groups/g/k", "{\"id\":\"" id "\",\"data\":{\"v\":" value ",\"x\":\"" more "\"}}")
#define FOLD "\"fold\":{\"all\":{\"sum\":\"v\"},\"low\":{\"min\":\"v\"},\"which\":{\"distinct\":\"v\"}}"
#define BEFORE(rules)                                                                                        \
    REQUEST("PUT /v1/groups/x", "{\"complete\":{\"size\":2}}"),                                              \
        REQUEST("POST /v1/groups/x/k", "{\"id\":\"a\",\"data\":\"" LARGE "\"}"),                             \
        REQUEST("PUT /v1/groups/g", rules)

static int64_t number(struct outcome *outcome, struct slice object, const char *name)
{
    int64_t value;
    return raw_int(raw_member(outcome->arena, object, name), &value) ? value : -1;
}

/* `least`: of the sum, with which it is complete. */
static void check_values(struct outcome *outcome, int64_t least)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL), event;
    struct slice fold = raw_member(outcome->arena, group, "fold");
    int64_t sum = 0, low = INT64_MAX, count = 0;
    raw_each (outcome->arena, raw_member(outcome->arena, group, "events"), &event) {
        int64_t value = number(outcome, raw_member(outcome->arena, event, "data"), "v");
        sum += value;
        if (value < low) low = value;
        count++;
    }
    bool is_complete = slice_contains(group, SLICE("\"state\":\"COMPLETE\""));
    if (number(outcome, fold, "all") != sum || number(outcome, fold, "low") != low ||
        (int64_t)raw_count(outcome->arena, raw_member(outcome->arena, fold, "which")) != count ||
        number(outcome, group, "count") != count || is_complete != (sum >= least))
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    for (unsigned i = 0; i < outcome->count; i++)
        if (outcome->answers[i].status > 201 && outcome->answers[i].status != 409)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
}

static void check_ten(struct outcome *outcome)
{
    check_values(outcome, 10);
}

static const struct exploration small = {
    .name = "group with folded values",
    .flows = {ADD("e0", "3", ""), ADD("e1", "5", "")},
    .before = {BEFORE("{\"complete\":{\"when\":\"all >= 10\"}," FOLD "}"), ADD("e8", "4", "")},
    .faults = 1,
    .check = check_ten};

static const struct exploration large = {
    .name = "group with folded values of large events",
    .flows = {ADD("e0", "3", LARGE), ADD("e1", "5", LARGE)},
    .before = {BEFORE("{\"complete\":{\"when\":\"all >= 10\"}," FOLD "}"), ADD("e8", "4", "")},
    .faults = 1,
    .check = check_ten};

static const struct exploration first = {
    .name = "group that is opened with folded values",
    .flows = {ADD("e0", "3", ""), ADD("e1", "7", "")},
    .before = {BEFORE("{\"complete\":{\"when\":\"all >= 10\"}," FOLD "}")},
    .faults = 1,
    .check = check_ten};

TEST(explore_group_fold)
{
    explore(&small);
    explore_broken(&small, "#count = :seen", "(#count = :seen or #count <> :seen)");
    explore(&large);
    explore(&first);
}

/* Rules that fold come while events do: all events are in the values, and whoever was dropped has left nothing half
 * done that the sweep would not finish. */
static void check_changed(struct outcome *outcome)
{
    outcome_jump(outcome, 61000);
    outcome_ask(outcome, "SWEEP groups", NULL);
    check_values(outcome, 9);
}

static const struct exploration changed = {
    .name = "group whose rules fold from now on",
    .flows = {ADD("e0", "3", ""),
              REQUEST("PUT /v1/groups/g", "{\"complete\":{\"when\":\"all >= 9\"}," FOLD "}")},
    .before = {BEFORE("{\"complete\":{\"size\":9}}"), ADD("e8", "4", ""), ADD("e9", "2", LARGE)},
    .faults = 1,
    .check = check_changed};

TEST(explore_group_fold_of_changed_rules)
{
    explore(&changed);
    explore_broken(&changed, "#count = :seen", "(#count = :seen or #count <> :seen)");
}

/* Another group of the key, which has as many events: what was remembered of the first is not put into it. */
static void check_again(struct outcome *outcome)
{
    if (!slice_contains(outcome_ask(outcome, "GET /v1/groups/g/k", NULL), SLICE("no-such-group")))
        check_values(outcome, 100);
}

static const struct exploration again = {
    .name = "group with folded values that is deleted",
    .flows = {ADD("e0", "3", ""), REQUEST("DELETE /v1/groups/g/k", NULL), ADD("e1", "5", "")},
    .before = {BEFORE("{\"complete\":{\"when\":\"all >= 100\"}," FOLD "}"), ADD("e8", "4", "")},
    .check = check_again};

TEST(explore_group_fold_of_another_group)
{
    explore(&again);
    explore_broken(&again, "#since = :same", "(#since = :same or #since <> :same)");
}

/* ---- many at once ---- */

/* Two calls share an event; the group is complete with three. */
static void check_batches(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    unsigned completions = 0;
    for (unsigned i = 0; i < outcome->count; i++) {
        if (outcome->answers[i].status > 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
        completions += slice_contains(outcome->answers[i].body, SLICE("\"completed\":true"));
    }
    bool has_shared = slice_contains(group, SLICE("{\"id\":\"e1\""));
    if (number(outcome, group, "count") != 3 || completions < 1 || (completions > 1 && !has_shared) ||
        !slice_contains(group, SLICE("\"state\":\"COMPLETE\"")))
        outcome_fault(outcome, "%u: %.*s", completions, SLICE_ARG(group));
    if (slice_contains(group, SLICE("\"fold\""))) check_values(outcome, 0);
}

#define EVENT(id, value) "{\"key\":\"k\",\"id\":\"" id "\",\"data\":{\"v\":" value "}}"
#define BATCH(events)    REQUEST("POST /v1/groups/g", "{\"events\":[" events "]}")

static const struct exploration batches = {
    .name = "group with two batches",
    .flows = {BATCH(EVENT("e0", "3") "," EVENT("e1", "5")), BATCH(EVENT("e1", "5") "," EVENT("e2", "7"))},
    .before = {BEFORE("{\"complete\":{\"size\":3}}"), ADD("e8", "4", "")},
    .faults = 1,
    .check = check_batches};

static const struct exploration folded_batches = {
    .name = "group with folded values and two batches",
    .flows = {BATCH(EVENT("e0", "3") "," EVENT("e1", "5")), BATCH(EVENT("e1", "5") "," EVENT("e2", "7"))},
    .before = {BEFORE("{\"complete\":{\"size\":3}," FOLD "}")},
    .faults = 1,
    .check = check_batches};

/* Neither completes it: all four are there, once. */
static void check_four(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    if (number(outcome, group, "count") != 4 ||
        raw_count(outcome->arena, raw_member(outcome->arena, group, "events")) != 4)
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration open_batches = {
    .name = "open group with two batches",
    .flows = {BATCH(EVENT("e0", "3") "," EVENT("e1", "5")), BATCH(EVENT("e2", "7") "," EVENT("e1", "5"))},
    .before = {BEFORE("{\"complete\":{\"size\":9}}"), ADD("e8", "4", "")},
    .faults = 1,
    .check = check_four};

TEST(explore_group_batches)
{
    explore(&batches);
    explore(&folded_batches);
    explore(&open_batches);
    explore_broken(&open_batches, "#count = :seen", "(#count = :seen or #count <> :seen)");
}
