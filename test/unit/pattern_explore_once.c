/* Things that are done once, in every order, with clocks that jump: one result, which everybody gets. */
#include "unit/pattern_explore.h"

#define BEGIN_MS 1794716005340
#define HOLD_MS  10000
#define BEGUN    REQUEST("POST /v1/once/n/k", "{\"owner\":\"a\",\"for\":\"10s\"}")

static bool is_state(struct outcome *outcome, unsigned flow, const char *state)
{
    return slice_equal(outcome_text(outcome, flow, "state"), slice_of(state));
}

/* a (flow 0) finishes with 1; b and c may take it over when its time has passed, and get fences of their own. */
static void check_one_result(struct outcome *outcome)
{
    bool is_finished = outcome->answers[0].status == 200;
    struct slice end = outcome_ask(outcome, "GET /v1/once/n/k", NULL);
    for (unsigned i = 1; i < outcome->count; i++) {
        bool is_begun = is_state(outcome, i, "BEGUN");
        int64_t fence = outcome_int(outcome, i, "fence");
        if (is_begun && outcome->answers[i].now_ms <= BEGIN_MS + HOLD_MS)
            outcome_fault(outcome, "begun while a is at it");
        if (is_begun && fence < 2) outcome_fault(outcome, "fence %lld again", (long long)fence);
        if (is_begun && is_finished && outcome->answers[0].event < outcome->answers[i].called)
            outcome_fault(outcome, "begun after it was done");
        if (is_state(outcome, i, "DONE") && outcome_int(outcome, i, "result") != 1)
            outcome_fault(outcome, "another result");
        for (unsigned j = 1; j < i; j++)
            if (is_begun && is_state(outcome, j, "BEGUN") && outcome_int(outcome, j, "fence") == fence)
                outcome_fault(outcome, "fence %lld twice", (long long)fence);
    }
    if (is_finished && !slice_contains(end, SLICE("\"result\":1")))
        outcome_fault(outcome, "the result is lost");
}

static const struct exploration take_over = {
    .name = "once taken over",
    .flows = {REQUEST("POST /v1/once/n/k/finish", "{\"fence\":1,\"result\":1}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"b\",\"for\":\"10s\"}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"c\",\"for\":\"10s\"}")},
    .before = {BEGUN},
    .jumps = {HOLD_MS + 1, HOLD_MS + 1},
    .faults = 1,
    .check = check_one_result};

TEST(explore_once_taken_over)
{
    explore(&take_over);
    explore_broken(&take_over, "#fence = :fence and", "#fence >= :fence and");
    explore_broken(&take_over, "#state <> :done", "#state in (:state, :done)");
    explore_broken(&take_over, "(attribute_not_exists(#owner) or #until < :now)", "(:now > :zero)");
}

/* a gives it up while b and c wait for it: one of them begins, and the other is told of it. */
static void check_handed_over(struct outcome *outcome)
{
    unsigned begun = 0;
    for (unsigned i = 1; i < outcome->count; i++) {
        begun += is_state(outcome, i, "BEGUN");
        if (!is_state(outcome, i, "BEGUN") && !is_state(outcome, i, "RUNNING"))
            outcome_fault(outcome, "flow %u is told neither", i);
    }
    if (begun != 1) outcome_fault(outcome, "%u began it", begun);
}

static const struct exploration hand_over = {
    .name = "once handed over",
    .flows = {REQUEST("POST /v1/once/n/k/fail", "{\"fence\":1}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"b\",\"for\":\"1m\",\"wait\":\"5s\"}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"c\",\"for\":\"1m\",\"wait\":\"5s\"}")},
    .before = {BEGUN},
    .faults = 1,
    .never_away = true,
    .check = check_handed_over};

TEST(explore_once_handed_over)
{
    explore(&hand_over);
    explore_broken(&hand_over, "(attribute_not_exists(#owner) or #until < :now)", "(:now > :zero)");
}

/* All who wait get the result when it is there. */
static void check_told(struct outcome *outcome)
{
    for (unsigned i = 1; i < outcome->count; i++)
        if (!is_state(outcome, i, "DONE") || outcome_int(outcome, i, "result") != 7)
            outcome_fault(outcome, "flow %u was not told the result", i);
}

static const struct exploration waiting = {
    .name = "once waited for",
    .flows = {REQUEST("POST /v1/once/n/k/finish", "{\"fence\":1,\"result\":7}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"b\",\"for\":\"1m\",\"wait\":\"5s\"}"),
              REQUEST("POST /v1/once/n/k", "{\"owner\":\"c\",\"for\":\"1m\",\"wait\":\"5s\"}")},
    .before = {BEGUN},
    .faults = 1,
    .never_away = true,
    .check = check_told};

TEST(explore_once_waited_for)
{
    explore(&waiting);
}
