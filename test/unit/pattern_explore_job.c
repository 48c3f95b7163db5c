/* Jobs in every order: one caller is last, tasks are counted once, a job that grows or tries again what
 * failed does not end too early, what was counted is in the result. */
#include "unit/pattern_explore.h"

#define DEADLINE_MS 10000

/* The job as it is in the end. */
struct end {
    struct slice job;
    int64_t total, done, missing, failed;
    unsigned last; /* flows that were told so */
};

static int64_t end_int(struct outcome *outcome, struct slice job, const char *name)
{
    int64_t value;
    struct slice text = raw_text(outcome->arena, raw_member(outcome->arena, job, name));
    return text.data && raw_int(text, &value) ? value : -1;
}

static struct end end_of(struct outcome *outcome)
{
    struct end end = {.job = outcome_ask(outcome, "GET /v1/jobs/j?progress=1", NULL)};
    end.total = end_int(outcome, end.job, "total");
    end.done = end_int(outcome, end.job, "done");
    end.missing = end_int(outcome, end.job, "missing");
    end.failed = end_int(outcome, end.job, "failed");
    for (unsigned i = 0; i < outcome->count; i++)
        end.last += slice_contains(outcome->answers[i].body, SLICE("\"last\":true"));
    if (end.last > 1) outcome_fault(outcome, "%u are last", end.last);
    if (end.total >= 0 && end.done + end.missing + end.failed != end.total)
        outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    return end;
}

static bool is_state(const struct end *end, const char *state)
{
    char text[40];
    snprintf(text, sizeof text, "\"state\":\"%s\"", state);
    return slice_contains(end->job, slice_of(text));
}

static void check_state(struct outcome *outcome, const struct end *end, const char *state)
{
    if (!is_state(end, state)) outcome_fault(outcome, "not %s: %.*s", state, SLICE_ARG(end->job));
}

/* ---- done ---- */

static void check_done(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "COMPLETE");
    if (end.last != 1) outcome_fault(outcome, "nobody is last: %.*s", SLICE_ARG(end.job));
    if (end.done != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration two_done = {
    .name = "job done by two",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":0}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "b")},
    .before = {REQUEST("PUT /v1/jobs/x", "{\"total\":1}"), REQUEST("POST /v1/jobs/x/done", "{\"task\":0}"),
               REQUEST("PUT /v1/jobs/j", "{\"total\":2}")},
    .faults = 1,
    .check = check_done};

/* The same task twice, and the other one: the duplicate is not counted, and one of the three is last. */
static const struct exploration twice_done = {
    .name = "job with a task done twice",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "b")},
    .before = {REQUEST("PUT /v1/jobs/j", "{\"total\":2}"), REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
    .faults = 1,
    .check = check_done};

TEST(explore_job_done)
{
    explore(&two_done);
    explore(&twice_done);
    explore_broken(&twice_done,
                   "#state = :open and #run = :run and #total = :total and #failures = :failures and "
                   "attribute_not_exists(#full)",
                   "#run = :run and #total = :total and #failures = :failures and :open <> :run");
}
