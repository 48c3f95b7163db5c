/* Jobs in every order: one caller is last, tasks are counted once, a job that grows or tries again what
 * failed does not end too early, what was counted is in the result. */
#include "unit/pattern_explore.h"

#define DEADLINE_MS 10000
#define LONG_MS     20000 /* a change that takes longer was left */

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

#define TABLES REQUEST("PUT /v1/jobs/x", "{\"total\":1}"), REQUEST("POST /v1/jobs/x/done", "{\"task\":0}")

static const struct exploration two_done = {
    .name = "job done by two",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":0}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "b")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}")},
    .faults = 2,
    .check = check_done};

/* The same task twice, where it is the last one: both may end the job, one is told so. */
static const struct exploration twice_done = {
    .name = "job with a task done twice",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "b")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
    .faults = 1,
    .check = check_done};

/* Somebody looks at it meanwhile, which may end it: nobody else is robbed of being last. */
static const struct exploration healed = {
    .name = "job looked at while it ends",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "b"),
              REQUEST("GET /v1/jobs/j", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
    .check = check_done};

/* Without keys they are one caller: whoever does the last task is told so, however often. */
static void check_repeated(struct outcome *outcome)
{
    struct slice job = outcome_ask(outcome, "GET /v1/jobs/j", NULL);
    bool told[3];
    for (unsigned i = 0; i < 3; i++)
        told[i] = slice_contains(outcome->answers[i].body, SLICE("\"last\":true"));
    if (!slice_contains(job, SLICE("\"state\":\"COMPLETE\""))) outcome_fault(outcome, "%.*s", SLICE_ARG(job));
    struct slice again = outcome_ask(outcome, "POST /v1/jobs/j/done",
                                     told[2] ? "{\"task\":0}" : "{\"task\":1}");
    if (!slice_contains(again, SLICE("\"last\":true")) || told[0] + told[1] + told[2] == 0)
        outcome_fault(outcome, "the last one is not told again: %.*s", SLICE_ARG(again));
    if (told[2] && (told[0] || told[1])) outcome_fault(outcome, "two tasks are the last one");
}

static const struct exploration repeated = {.name = "job whose last task is repeated",
                                            .flows = {REQUEST("POST /v1/jobs/j/done", "{\"task\":1}"),
                                                      REQUEST("POST /v1/jobs/j/done", "{\"task\":1}"),
                                                      REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
                                            .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}")},
                                            .check = check_repeated};

TEST(explore_job_done)
{
    explore(&two_done);
    explore(&twice_done);
    explore_broken(&twice_done, "#state = :was", "(#state = :was or :was = :was)");
    explore(&repeated);
    explore_broken(&repeated, "\"S\":\"done ", "\"S\":\"gone ");
    explore(&healed);
    explore_broken(&healed, "#state = :complete and attribute_not_exists(#last_caller)",
                   "#state = :complete");
}

/* ---- nothing to do ---- */

/* Whoever opens it, or says later that there are no tasks, however often: it is complete, with nothing in it. */
static void check_empty(struct outcome *outcome)
{
    struct slice head = outcome_call(outcome, "GetItem",
                                     "{\"TableName\":\"quipu-jobs\",\"Key\":{\"id\":{\"S\":\"j\"}}}");
    if (!slice_contains(head, SLICE("\"COMPLETE\""))) outcome_fault(outcome, "%.*s", SLICE_ARG(head));
    struct end end = end_of(outcome);
    check_state(outcome, &end, "COMPLETE");
    if (end.total || end.done || end.failed) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration empty = {.name = "job without tasks",
                                         .flows = {REQUEST("PUT /v1/jobs/j", "{\"total\":0}"),
                                                   REQUEST("PUT /v1/jobs/j", "{\"tasks\":[]}"),
                                                   REQUEST("GET /v1/jobs/j", NULL)},
                                         .before = {TABLES},
                                         .faults = 2,
                                         .check = check_empty};

static const struct exploration empty_later = {.name = "job whose total comes to be none",
                                               .flows = {REQUEST("PATCH /v1/jobs/j", "{\"total\":0}"),
                                                         REQUEST("POST /v1/jobs/j/done", "{\"task\":3}"),
                                                         REQUEST("PATCH /v1/jobs/j", "{\"total\":0}")},
                                               .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{}")},
                                               .faults = 1,
                                               .check = check_empty};

TEST(explore_job_without_tasks)
{
    explore(&empty);
    explore(&empty_later);
}

/* ---- results ---- */

/* Two that have done the same task come with lists, a third with it alone: what is told stays, and is the result of one
 * of those that did it. */
static void check_results(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "COMPLETE");
    struct slice one = outcome_ask(outcome, "GET /v1/jobs/j/results", NULL);
    static const char *const mays[] = {"\"a\"", "\"b\"", "\"c\""};
    unsigned found = 0;
    for (unsigned i = 0; i < 3; i++) {
        char text[60];
        snprintf(text, sizeof text, "[{\"task\":0,\"result\":%s},", mays[i]);
        found += slice_contains(one, slice_of(text));
    }
    if (found != 1 || !slice_contains(one, SLICE("{\"task\":1,\"result\":1}")) ||
        !slice_contains(one, SLICE("{\"task\":2,\"result\":2}")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(one));
    outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"tasks\":[{\"task\":0,\"result\":\"late\"}]}");
    outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"task\":0,\"result\":\"late\"}");
    struct slice again = outcome_ask(outcome, "GET /v1/jobs/j/results", NULL);
    if (!slice_equal(one, again)) outcome_fault(outcome, "%.*s, then %.*s", SLICE_ARG(one), SLICE_ARG(again));
    /* Whoever asked while the others wrote was told the same, or nothing yet. */
    if (outcome->count < 4) return;
    struct slice seen = outcome->answers[3].body;
    for (unsigned i = 0; i < 3; i++) {
        char text[60];
        snprintf(text, sizeof text, "{\"task\":0,\"result\":%s}", mays[i]);
        if (slice_contains(seen, slice_of(text)) && !slice_contains(one, slice_of(text)))
            outcome_fault(outcome, "%.*s, then %.*s", SLICE_ARG(seen), SLICE_ARG(one));
    }
}

static const struct exploration results = {
    .name = "job with results of one task by several",
    .flows = {REQUEST("POST /v1/jobs/j/done", "{\"tasks\":[{\"task\":0,\"result\":\"a\"},{\"task\":1,\"result\":1}]}"),
              REQUEST("POST /v1/jobs/j/done", "{\"tasks\":[{\"task\":0,\"result\":\"b\"},{\"task\":2,\"result\":2}]}"),
              REQUEST("POST /v1/jobs/j/done", "{\"task\":0,\"result\":\"c\"}"),
              REQUEST("GET /v1/jobs/j/results", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":3}")},
    .faults = 2,
    .check = check_results};

TEST(explore_job_results)
{
    explore(&results);
    explore_broken(&results, "not contains(#done, :r0)", "(not contains(#done, :r0) or :r0 = :r0)");
}

/* ---- several leaves ---- */

static char all_but_two[2000];

/* 257 tasks in two leaves: all of the first but one are done, and the one of the second is not. */
static void check_leaves(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "COMPLETE");
    if (end.last != 1) outcome_fault(outcome, "nobody is last: %.*s", SLICE_ARG(end.job));
    if (end.done != 257) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration leaves = {
    .name = "job of two leaves",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":255}", "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":256}", "Idempotency-Key", "b")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":257}"),
               REQUEST("POST /v1/jobs/j/done", all_but_two)},
    .faults = 1,
    .check = check_leaves};

TEST(explore_job_of_two_leaves)
{
    size_t len = (size_t)snprintf(all_but_two, sizeof all_but_two, "{\"tasks\":[0");
    for (int i = 1; i < 255; i++)
        len += (size_t)snprintf(all_but_two + len, sizeof all_but_two - len, ",%d", i);
    snprintf(all_but_two + len, sizeof all_but_two - len, "]}");
    explore(&leaves);
    explore_broken(&leaves, "\"#full\":\"full\"", "\"#full\":\"foul\"");
    explore_broken(&leaves, "\"#b0\":\"b0\"", "\"#b0\":\"c0\"");
}

/* ---- growth ---- */

/* Either it has grown and waits for the third task, or it had ended before. */
static void check_grown(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    bool grown = outcome->answers[1].status == 200;
    check_state(outcome, &end, grown ? "OPEN" : "COMPLETE");
    if (end.done != 2 || end.total != (grown ? 3 : 2)) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    if (end.last != !grown) outcome_fault(outcome, "%u are last: %.*s", end.last, SLICE_ARG(end.job));
    if (!grown) return;
    bool named = slice_contains(outcome_ask(outcome, "GET /v1/jobs/j/missing", NULL), SLICE("\"2\""));
    struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done",
                                     named ? "{\"task\":\"2\"}" : "{\"task\":2}");
    if (!slice_contains(reply, SLICE("\"last\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration growth = {
    .name = "job that grows while it ends",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "a"),
              REQUEST("PATCH /v1/jobs/j", "{\"total\":3}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
    .faults = 1,
    .check = check_grown};

static const struct exploration names_growth = {
    .name = "job that gets more names while it ends",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":\"a\"}", "Idempotency-Key", "a"),
              REQUEST("PATCH /v1/jobs/j", "{\"tasks\":[\"2\"]}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"tasks\":[\"a\",\"b\"]}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":\"b\"}")},
    .faults = 1,
    .check = check_grown};

TEST(explore_job_that_grows)
{
    explore(&growth);
    explore(&names_growth);
    explore_broken(&growth, "#epoch = :epoch and", "(#epoch = :epoch or :epoch = :epoch) and");
    explore_broken(&names_growth, "#epoch = :epoch and", "(#epoch = :epoch or :epoch = :epoch) and");
}

/* ---- names that are written leaf by leaf ---- */

#define LETTERS_50  "01234567890123456789012345678901234567890123456789"
#define LETTERS_199 LETTERS_50 LETTERS_50 LETTERS_50 "0123456789012345678901234567890123456789012345678"
#define LONG_NAMES  "{\"tasks\":[\"a" LETTERS_199 "\",\"d" LETTERS_199 "\",\"e" LETTERS_199 "\"]}"
#define DO(letter)  REQUEST("POST /v1/jobs/j/done", "{\"task\":\"" letter LETTERS_199 "\"}")

/* Three names in two leaves. Whoever has put the job has put all of it; a task that was counted stays so; the job is
 * complete with the last task, and not before. */
static void check_prepared(struct outcome *outcome)
{
    static const char *const others[] = {"a" LETTERS_199, "e" LETTERS_199, "d" LETTERS_199};
    struct end end = end_of(outcome);
    int64_t left = 3 - end.done;
    check_state(outcome, &end, "OPEN");
    if (slice_contains(end.job, SLICE("preparing")) || end.total != 3 || left < 2 ||
        (left == 3 && outcome->answers[0].status == 200))
        outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    for (int64_t i = 0; i < left; i++) {
        char body[300];
        snprintf(body, sizeof body, "{\"task\":\"%s\"}", others[i]);
        struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done", body);
        if (slice_contains(reply, SLICE("\"last\":true")) != (i == left - 1) ||
            !slice_contains(reply, SLICE("\"counted\":1")))
            outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
    }
}

static const struct exploration names_put = {
    .name = "job whose names are put by two",
    .flows = {DO("d"), REQUEST("PUT /v1/jobs/j", LONG_NAMES), REQUEST("PUT /v1/jobs/j", LONG_NAMES)},
    .before = {TABLES},
    .check = check_prepared};

/* Whoever puts it dies anywhere, and comes again. */
static const struct exploration names_again = {.name = "job whose names are put again",
                                               .flows = {DO("d"), REQUEST("PUT /v1/jobs/j", LONG_NAMES)},
                                               .before = {TABLES},
                                               .faults = 1,
                                               .check = check_prepared};

/* The last of its tasks is done while its names are still being written. */
static void check_prepared_late(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, end.done == 2 ? "COMPLETE" : "OPEN");
    if (end.total != 2 || (end.done != 2 && outcome->answers[1].status == 200))
        outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration names_late = {
    .name = "job whose tasks are done while it is made",
    .flows = {REQUEST("PUT /v1/jobs/j", "{\"tasks\":[\"a\",\"b\"]}"),
              REQUEST("POST /v1/jobs/j/done", "{\"tasks\":[\"a\",\"b\"]}")},
    .before = {TABLES},
    .faults = 1,
    .check = check_prepared_late};

TEST(explore_job_with_names)
{
    explore(&names_put);
    explore(&names_again);
    explore_broken(&names_again, "attribute_not_exists(#wanted)",
                   "(attribute_not_exists(#wanted) or attribute_exists(#wanted))");
    explore(&names_late);
}

/* ---- changes that are left ---- */

/* A change that takes long counts as left: whoever comes by takes it over, and it begins again. */
static void check_taken_over(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "OPEN");
    if (outcome->answers[0].status != 200 || end.total != 3 || end.done != 1 || end.missing != 2)
        outcome_fault(outcome, "%.*s: %.*s", SLICE_ARG(outcome->answers[0].body), SLICE_ARG(end.job));
    struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"tasks\":[\"a\",\"2\"]}");
    if (!slice_contains(reply, SLICE("\"last\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration names_taken_over = {
    .name = "job that gets more names slowly",
    .flows = {REQUEST("PATCH /v1/jobs/j", "{\"tasks\":[\"2\"]}"), REQUEST("GET /v1/jobs/j", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"tasks\":[\"a\",\"b\"]}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":\"b\"}")},
    .jumps = {LONG_MS},
    .check = check_taken_over};

/* What was tried again is missing, however often the change was taken over. */
static void check_redrive_taken_over(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "OPEN");
    if (outcome->answers[0].status != 200 || end.failed || end.missing != 2)
        outcome_fault(outcome, "%.*s: %.*s", SLICE_ARG(outcome->answers[0].body), SLICE_ARG(end.job));
    struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"tasks\":[0,1]}");
    if (!slice_contains(reply, SLICE("\"last\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration redrive_taken_over = {
    .name = "job whose failures are tried again slowly",
    .flows = {REQUEST("POST /v1/jobs/j/redrive", NULL), REQUEST("GET /v1/jobs/j", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2}"),
               REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")},
    .jumps = {LONG_MS},
    .check = check_redrive_taken_over};

TEST(explore_job_change_taken_over)
{
    explore(&names_taken_over);
    explore(&redrive_taken_over);
}

/* ---- failures ---- */

/* The same task fails by one word and is done by another: it is one of both, and is counted so everywhere. */
static void check_failed(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    struct slice head = outcome_call(outcome, "GetItem",
                                     "{\"TableName\":\"quipu-jobs\",\"Key\":{\"id\":{\"S\":\"j\"}}}");
    check_state(outcome, &end, "COMPLETE");
    if (end.last != 1) outcome_fault(outcome, "%u are last: %.*s", end.last, SLICE_ARG(end.job));
    if (end.done + end.failed != 2 || end.failed > 1) outcome_fault(outcome, "%.*s", SLICE_ARG(head));
    struct slice list = raw_member(outcome->arena, outcome_ask(outcome, "GET /v1/jobs/j/failures", NULL),
                                   "failures");
    if ((int64_t)raw_count(outcome->arena, list) != end.failed)
        outcome_fault(outcome, "%.*s but %.*s", SLICE_ARG(end.job), SLICE_ARG(list));
}

static const struct exploration failures = {
    .name = "job with a task that fails and is done",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/failed", "{\"task\":0}", "Idempotency-Key", "b"),
              REQUEST_WITH("POST /v1/jobs/j/done", "{\"tasks\":[0,1]}", "Idempotency-Key", "a")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"tolerate\":1}")},
    .faults = 1,
    .check = check_failed};

/* Two fail where one is tolerated: FAILED by one of them, and the head knows both. */
static void check_too_many(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "FAILED");
    if (end.failed != 2 || end.last) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration too_many = {
    .name = "job with too many failures",
    .flows = {REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}"),
              REQUEST("POST /v1/jobs/j/failed", "{\"task\":1}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":3,\"tolerate\":1}")},
    .faults = 1,
    .check = check_too_many};

/* The same failure, told twice, is one. */
static void check_one_failure(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    check_state(outcome, &end, "OPEN");
    if (end.failed != 1 || end.missing != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    if (outcome_int(outcome, 0, "counted") + outcome_int(outcome, 1, "counted") > 1)
        outcome_fault(outcome, "it is counted twice");
}

static const struct exploration same_failure = {
    .name = "job with a failure told twice",
    .flows = {REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}"),
              REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":3,\"tolerate\":3}")},
    .faults = 1,
    .check = check_one_failure};

TEST(explore_job_with_failures)
{
    explore(&failures);
    explore_broken(&failures, "not contains(#done, :task)", "(not contains(#done, :task) or :task = :task)");
    explore_broken(&failures, "#l0 < :entry", "#l0 <> :entry");
    explore(&too_many);
    explore(&same_failure);
    explore_broken(&same_failure, "not contains(#failed, :task)",
                   "(not contains(#failed, :task) or :task = :task)");
}

/* One failed, which is tolerated; the other is done while the failed one is to be tried again. */
static void check_redriven(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    bool redriven = slice_contains(outcome->answers[1].body, SLICE("\"redriven\":[")) &&
                    outcome->answers[1].status == 200;
    check_state(outcome, &end, redriven ? "OPEN" : "COMPLETE");
    if (end.done != 1 || end.failed != !redriven) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    if (end.last != !redriven) outcome_fault(outcome, "%u are last: %.*s", end.last, SLICE_ARG(end.job));
    if (!redriven) return;
    struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"task\":0}");
    if (!slice_contains(reply, SLICE("\"last\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration redrive = {
    .name = "job whose failures are tried again while it ends",
    .flows = {REQUEST_WITH("POST /v1/jobs/j/done", "{\"task\":1}", "Idempotency-Key", "a"),
              REQUEST("POST /v1/jobs/j/redrive", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"tolerate\":1}"),
               REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")},
    .faults = 1,
    .check = check_redriven};

/* It fails once more: a copy of the call that made it missing, which comes late, does not do so again. */
static void check_failed_again(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    bool is_counted = outcome_int(outcome, 1, "counted") == 1 && outcome->answers[0].attempts == 1;
    if (is_counted && end.failed != 1) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
}

static const struct exploration failed_again = {
    .name = "job whose task is tried again and fails again",
    .flows = {REQUEST("POST /v1/jobs/j/redrive", NULL), REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"tolerate\":1}"),
               REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")},
    .faults = 1,
    .check = check_failed_again};

TEST(explore_job_redriven)
{
    explore(&redrive);
    explore_broken(&redrive, "#epoch = :epoch and", "(#epoch = :epoch or :epoch = :epoch) and");
    explore(&failed_again);
    explore_broken(&failed_again, "#epoch < :epoch) and", "#epoch <= :epoch) and");
}

/* ---- the deadline ---- */

/* What was told to be counted is in the result, whenever the deadline came. */
static void check_expired(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    unsigned done = 0;
    for (unsigned i = 0; i < 2; i++) done += slice_contains(outcome->answers[i].body, SLICE("\"counted\":"));
    if (is_state(&end, "CLOSING")) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    if (end.done < (int64_t)done) outcome_fault(outcome, "%u were counted: %.*s", done, SLICE_ARG(end.job));
    if ((end.done == 2) != is_state(&end, "COMPLETE")) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    struct slice missing = raw_member(outcome->arena, outcome_ask(outcome, "GET /v1/jobs/j/missing", NULL),
                                      "missing");
    if ((int64_t)raw_count(outcome->arena, missing) != end.missing)
        outcome_fault(outcome, "%.*s but %.*s", SLICE_ARG(end.job), SLICE_ARG(missing));
}

static const struct exploration expiry = {
    .name = "job whose deadline comes while it ends",
    .flows = {REQUEST("POST /v1/jobs/j/done", "{\"task\":0}"),
              REQUEST("POST /v1/jobs/j/done", "{\"task\":1}"), REQUEST("GET /v1/jobs/j", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"deadline\":\"10s\"}")},
    .jumps = {DEADLINE_MS},
    .check = check_expired};

/* The sweep, and its copy. */
static const struct exploration swept = {
    .name = "job whose deadline comes by the sweep",
    .flows = {REQUEST("POST /v1/jobs/j/done", "{\"task\":0}"), REQUEST("SWEEP jobs", NULL)},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"deadline\":\"10s\"}")},
    .jumps = {DEADLINE_MS},
    .faults = 1,
    .check = check_expired};

TEST(explore_job_that_expires)
{
    explore(&expiry);
    explore_broken(&expiry, "attribute_not_exists(#closed)",
                   "(attribute_not_exists(#closed) or attribute_exists(#closed))");
    explore(&swept);
}

/* ---- opened again ---- */

/* Whatever ended it how often: what was counted is, and with another deadline it can be finished. */
static void check_revived(struct outcome *outcome)
{
    struct end end = end_of(outcome);
    if (end.done != 1) outcome_fault(outcome, "one was counted: %.*s", SLICE_ARG(end.job));
    if (is_state(&end, "CLOSING")) outcome_fault(outcome, "%.*s", SLICE_ARG(end.job));
    outcome_ask(outcome, "PATCH /v1/jobs/j", "{\"deadline\":\"1h\"}");
    struct slice last = outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"task\":1}");
    if (!slice_contains(last, SLICE("\"last\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(last));
}

#define EXPIRING TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"deadline\":\"10s\"}")
static const struct exploration revived = {
    .name = "job that is opened again",
    .flows = {REQUEST("GET /v1/jobs/j", NULL), REQUEST("PATCH /v1/jobs/j", "{\"deadline\":\"10s\"}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":2,\"deadline\":\"10s\"}"),
               REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
    .jumps = {DEADLINE_MS},
    .check = check_revived};

/* Names for a job that was opened without, while a number is done. */
static void check_named_later(struct outcome *outcome)
{
    bool is_numbered = outcome->answers[0].status == 200, is_named = outcome->answers[1].status == 200;
    if (is_numbered == is_named) outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    struct slice reply = is_named ? outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"tasks\":[\"x\",\"y\"]}")
                                  : outcome_ask(outcome, "PATCH /v1/jobs/j", "{\"total\":1}");
    if (!slice_contains(reply, SLICE("COMPLETE")) && !slice_contains(reply, SLICE("\"last\":true")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration named_later = {
    .name = "job that gets names later",
    .flows = {REQUEST("POST /v1/jobs/j/done", "{\"task\":0}"),
              REQUEST("PATCH /v1/jobs/j", "{\"tasks\":[\"x\",\"y\"]}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{}")},
    .faults = 1,
    .check = check_named_later};

TEST(explore_job_opened_again)
{
    explore(&revived);
    explore_broken(&revived, "#revived = :was", "#revived = :state");
    explore(&named_later);
    explore_broken(&named_later, "attribute_not_exists(#total) and attribute_not_exists(#reach)",
                   "attribute_not_exists(#total) and (attribute_not_exists(#reach) or attribute_exists(#reach))");
}

/* ---- deletion ---- */

/* Whatever is there in the end is a whole job: its one task can be done, and ends it. */
static void check_deleted(struct outcome *outcome)
{
    struct slice job = outcome_ask(outcome, "GET /v1/jobs/j", NULL);
    if (outcome->answers[0].status != 200 && outcome->answers[0].attempts == 1)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    if (slice_contains(job, SLICE("no-such-job"))) return;
    int64_t missing = end_int(outcome, job, "missing");
    struct slice reply = outcome_ask(outcome, "POST /v1/jobs/j/done", "{\"task\":0}");
    if (end_int(outcome, reply, "counted") != missing || !slice_contains(reply, SLICE("\"complete\":true")))
        outcome_fault(outcome, "%.*s then %.*s", SLICE_ARG(job), SLICE_ARG(reply));
}

static const struct exploration deletion = {.name = "job deleted and made again",
                                            .flows = {REQUEST("DELETE /v1/jobs/j", NULL),
                                                      REQUEST("PUT /v1/jobs/j", "{\"total\":1}"),
                                                      REQUEST("POST /v1/jobs/j/done", "{\"task\":0}")},
                                            .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":1}")},
                                            .never_late = true,
                                            .check = check_deleted};

TEST(explore_job_deleted)
{
    explore(&deletion);
}
