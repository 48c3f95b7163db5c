/* Work in every order: one owner per fence, nothing is done twice or lost, a result never changes, progress
 * never goes back. */
#include "unit/pattern_explore.h"

#define LEASE_MS 30000
#define READY                                                                                                \
    REQUEST("POST /v1/work/q/a", "{\"data\":1}"), REQUEST("POST /v1/work/r/x", "{}"),                        \
        REQUEST("POST /v1/work/r/claim", NULL)

static int64_t state_count(struct slice unit, const char *state)
{
    char text[40];
    snprintf(text, sizeof text, "\"state\":\"%s\"", state);
    return slice_contains(unit, slice_of(text));
}

/* Two claim what there is one of; the lease may end between. */
static void check_claims(struct outcome *outcome)
{
    if (outcome->answers[0].status != 200 || outcome->answers[1].status != 200) return;
    if (outcome_int(outcome, 0, "fence") == outcome_int(outcome, 1, "fence"))
        outcome_fault(outcome, "one fence for two");
}

static const struct exploration claims = {.name = "work claimed by two",
                                          .flows = {REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}"),
                                                    REQUEST("POST /v1/work/q/claim", "{\"owner\":\"two\"}")},
                                          .before = {READY},
                                          .jumps = {LEASE_MS + 1},
                                          .check = check_claims};

/* Nobody can claim what is claimed: without a jump only one of them gets it. */
static void check_one_claim(struct outcome *outcome)
{
    unsigned got = 0;
    for (unsigned i = 0; i < outcome->count; i++) got += outcome->answers[i].status == 200;
    if (got > 1) outcome_fault(outcome, "%u have it", got);
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/a", NULL);
    if (!state_count(unit, "CLAIMED")) outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
}

static const struct exploration one_claim = {
    .name = "work claimed by two at once",
    .flows = {REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}"),
              REQUEST("POST /v1/work/q/claim", "{\"owner\":\"two\"}")},
    .before = {READY},
    .faults = 1,
    .never_late = true,
    .never_away = true,
    .check = check_one_claim};

TEST(explore_work_claimed)
{
    explore(&claims);
    explore_broken(&claims, "#fence = if_not_exists(#fence, :zero) + :one", "#fence = :one + :zero");
    explore(&one_claim);
    explore_broken(&one_claim, "(attribute_not_exists(#owner) or #until < :now) and #due <= :now and",
                   ":now <> :one and");
}

/* The holder of fence 1 finishes with "one" while another claims after the lease; both results cannot be. */
static void check_finished(struct outcome *outcome)
{
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/a", NULL);
    bool first = outcome->answers[0].status == 200, second = outcome->answers[2].status == 200;
    if (first && second) outcome_fault(outcome, "finished by two fences");
    if (first && !slice_contains(unit, SLICE("\"result\":\"one\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
    if (second && !slice_contains(unit, SLICE("\"result\":\"two\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
    if (first && outcome->answers[1].status == 200 && outcome->answers[1].called > outcome->answers[0].event)
        outcome_fault(outcome, "claimed after its end");
}

static const struct exploration finishes = {
    .name = "work finished by an old and a new owner",
    .flows = {REQUEST("POST /v1/work/q/a/finish", "{\"fence\":1,\"result\":\"one\"}"),
              REQUEST("POST /v1/work/q/claim", "{\"owner\":\"two\"}"),
              REQUEST("POST /v1/work/q/a/finish", "{\"fence\":2,\"result\":\"two\"}")},
    .before = {REQUEST("POST /v1/work/q/a", "{\"data\":1}"),
               REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}")},
    .jumps = {LEASE_MS + 1},
    .faults = 1,
    .check = check_finished};

TEST(explore_work_finished)
{
    explore(&finishes);
    explore_broken(&finishes, "#fence = :fence and", "#fence >= :fence and");
    explore_broken(&finishes, "#fence = :fence and attribute_exists(#owner)", "#fence <= :fence");
}

/* Beats out of order, and a finish: what was saved last is the furthest. */
static void check_progress(struct outcome *outcome)
{
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/a", NULL);
    int64_t furthest = 0, saved = 0;
    for (unsigned i = 0; i < 2; i++)
        if (outcome->answers[i].status == 200 && furthest < 5 * (int64_t)(i + 1))
            furthest = 5 * (int64_t)(i + 1);
    raw_int(raw_text(outcome->arena, raw_member(outcome->arena, unit, "progress")), &saved);
    if (saved < furthest)
        outcome_fault(outcome, "progress %lld after %lld", (long long)saved, (long long)furthest);
    if (outcome->answers[2].status != 200 || !state_count(unit, "DONE"))
        outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
}

static const struct exploration beats = {
    .name = "work with beats out of order",
    .flows = {REQUEST("POST /v1/work/q/a/beat", "{\"fence\":1,\"progress\":5}"),
              REQUEST("POST /v1/work/q/a/beat", "{\"fence\":1,\"progress\":10}"),
              REQUEST("POST /v1/work/q/a/finish", "{\"fence\":1}")},
    .before = {REQUEST("POST /v1/work/q/a", "{\"data\":1}"),
               REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}")},
    .faults = 2,
    .check = check_progress};

TEST(explore_work_with_beats)
{
    explore(&beats);
    explore_broken(&beats, "#step <= :step", "#step <> :fence");
}

/* The last attempt fails by its owner's word, or its lease ends and a claimer buries it: DEAD once, never
 * lost. */
static void check_buried(struct outcome *outcome)
{
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/a", NULL);
    bool finished = outcome->answers[2].status == 200;
    if (outcome->answers[1].status == 200) outcome_fault(outcome, "claimed more often than it may");
    if (finished && !state_count(unit, "DONE")) outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
    if (!finished && !state_count(unit, "DEAD")) outcome_fault(outcome, "%.*s", SLICE_ARG(unit));
}

static const struct exploration burials = {
    .name = "work that dies",
    .flows = {REQUEST("POST /v1/work/q/a/fail", "{\"fence\":1,\"reason\":\"x\"}"),
              REQUEST("POST /v1/work/q/claim", "{\"owner\":\"two\"}"),
              REQUEST("POST /v1/work/q/a/finish", "{\"fence\":1}")},
    .before = {REQUEST("PUT /v1/work/q", "{\"attempts\":1}"), REQUEST("POST /v1/work/q/a", "{\"data\":1}"),
               REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}")},
    .jumps = {LEASE_MS + 1},
    .faults = 1,
    .never_late = true,
    .check = check_buried};

TEST(explore_work_that_dies)
{
    explore(&burials);
    explore_broken(&burials, " and #attempts < :limit", " and :limit <> :now");
    explore_broken(&burials, "#fence = :fence and #due <= :now", "#fence = :fence and :now <> :fence");
    explore_broken(&burials, "#fence = :fence and attribute_exists(#owner)", "#fence = :fence");
}

/* Submitted twice: one unit. */
static void check_submitted(struct outcome *outcome)
{
    unsigned made = 0;
    for (unsigned i = 0; i < 2; i++) made += outcome->answers[i].status == 201;
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/new", NULL);
    if (made > 1) outcome_fault(outcome, "made twice");
    if (outcome->answers[2].status == 200 && !state_count(unit, "CLAIMED"))
        outcome_fault(outcome, "taken from its owner: %.*s", SLICE_ARG(unit));
}

static const struct exploration submissions = {
    .name = "work submitted twice",
    .flows = {REQUEST("POST /v1/work/q/new", "{\"data\":1}"), REQUEST("POST /v1/work/q/new", "{\"data\":1}"),
              REQUEST("POST /v1/work/q/claim", NULL)},
    .before = {REQUEST("POST /v1/work/r/x", "{}"), REQUEST("POST /v1/work/r/claim", NULL)},
    .faults = 1,
    .check = check_submitted};

TEST(explore_work_submitted)
{
    explore(&submissions);
    explore_broken(&submissions, "attribute_not_exists(#id)",
                   "attribute_not_exists(#id) or attribute_exists(#id)");
}

/* The holder of fence 1 comes back when its unit was deleted and submitted again, and another works at it. */
static void check_resubmitted(struct outcome *outcome)
{
    const struct explored_answer *finish = &outcome->answers[0], *delete = &outcome->answers[1];
    struct slice unit = outcome_ask(outcome, "GET /v1/work/q/a", NULL);
    bool is_new = outcome->answers[2].status == 201;
    if (finish->status == 200 && delete->status == 200 && finish->called > delete->event)
        outcome_fault(outcome, "finished what was deleted");
    if (is_new && slice_contains(unit, SLICE("\"result\"")))
        outcome_fault(outcome, "the old holder finished the new unit: %.*s", SLICE_ARG(unit));
    if (outcome->answers[3].status == 200 && outcome_int(outcome, 3, "fence") < 2)
        outcome_fault(outcome, "fence 1 twice");
}

static const struct exploration resubmissions = {
    .name = "work deleted and submitted again",
    .flows = {REQUEST("POST /v1/work/q/a/finish", "{\"fence\":1,\"result\":\"old\"}"),
              REQUEST("DELETE /v1/work/q/a", NULL), REQUEST("POST /v1/work/q/a", "{\"data\":2}"),
              REQUEST("POST /v1/work/q/claim", "{\"owner\":\"two\"}")},
    .before = {REQUEST("POST /v1/work/q/a", "{\"data\":1}"),
               REQUEST("POST /v1/work/q/claim", "{\"owner\":\"one\"}")},
    .jumps = {LEASE_MS + 1},
    .check = check_resubmitted};

TEST(explore_work_submitted_again)
{
    explore(&resubmissions);
    explore_broken(&resubmissions, "and #fence = :fence)", "and #fence >= :fence)");
}
