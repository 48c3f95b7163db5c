/* Jobs that the server calls, in every order: an open job has its drive, with its own settings; items are there once,
 * in their order, whoever sends or reads them how often. */
#include "unit/pattern_explore.h"

#define TABLES                                                                                               \
    REQUEST("PUT /v1/jobs/x", "{\"items\":[1],\"each\":\"f\"}"),                                             \
        REQUEST("POST /v1/jobs/x/done", "{\"task\":0}"), REQUEST("DELETE /v1/jobs/x", NULL)

static bool has(struct slice text, const char *part)
{
    return slice_contains(text, slice_of(part));
}

/* ---- the drive ---- */

static void check_drive(struct outcome *outcome)
{
    struct slice job = outcome_ask(outcome, "GET /v1/jobs/j", NULL),
                 drives = outcome_ask(outcome, "GET /v1/drives", NULL);
    bool is_open = has(job, "\"state\":\"OPEN\"");
    if (is_open && !has(drives, "\"id\":\"job:j\""))
        outcome_fault(outcome, "nobody drives %.*s", SLICE_ARG(job));
    for (int i = 1; is_open && i <= 3; i++) {
        char text[40];
        snprintf(text, sizeof text, "\"concurrency\":%d,", i);
        if (has(job, text) && !has(drives, text))
            outcome_fault(outcome, "%.*s is driven as %.*s", SLICE_ARG(job), SLICE_ARG(drives));
    }
}

/* One of them opens the job; the other is refused, and leaves no settings of its own. */
static const struct exploration opened = {
    .name = "job each opened by two",
    .flows = {REQUEST("PUT /v1/jobs/j", "{\"total\":1,\"each\":\"f\",\"concurrency\":1}"),
              REQUEST("PUT /v1/jobs/j", "{\"total\":1,\"each\":\"f\",\"concurrency\":2}")},
    .before = {TABLES},
    .faults = 1,
    .never_late = true, /* a drive that comes late is made good by the sweep */
    .check = check_drive};

/* What the drive of the job gets in every run, chance being as fixed as the clock. */
#define VERSION "1794716005340995"
#define FAILED_JOB                                                                                           \
    REQUEST("PUT /v1/jobs/j", "{\"total\":1,\"each\":\"f\",\"concurrency\":1}"),                            \
        REQUEST("POST /v1/jobs/j/failed", "{\"task\":0}")

static void check_removed(struct outcome *outcome)
{
    struct slice drives = outcome_ask(outcome, "GET /v1/drives", NULL);
    if (has(drives, "\"id\":\"job:j\"")) outcome_fault(outcome, "it is still there: %.*s", SLICE_ARG(drives));
}

static const struct exploration removed = {
    .name = "job each whose drive is removed",
    .flows = {REQUEST("DELETE /v1/drives/job:j?version=" VERSION, NULL)},
    .before = {TABLES, FAILED_JOB},
    .check = check_removed};

/* Who drives has seen that the job has FAILED, and removes its drive: not the one of a job that is open again. */
static const struct exploration redriven = {
    .name = "job each opened again while its drive is removed",
    .flows = {REQUEST("POST /v1/jobs/j/redrive", "{}"),
              REQUEST("DELETE /v1/drives/job:j?version=" VERSION, NULL)},
    .before = {TABLES, FAILED_JOB},
    .faults = 2,
    .check = check_drive};

static const struct exploration changed = {
    .name = "job each changed by two",
    .flows = {REQUEST("PATCH /v1/jobs/j", "{\"concurrency\":2}"),
              REQUEST("PATCH /v1/jobs/j", "{\"paused\":true}")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{\"total\":1,\"each\":\"f\",\"concurrency\":1}")},
    .check = check_drive};

TEST(explore_job_each)
{
    explore(&opened);
    explore(&removed);
    explore(&redriven);
    explore_broken(&redriven, "#version = :version", "(#version = :version or :version = :version)");
    explore(&changed);
}

/* ---- items ---- */

static void check_items(struct outcome *outcome, const char *expected)
{
    struct slice tasks = outcome_ask(outcome, "GET /v1/jobs/j/tasks", NULL);
    struct slice job = outcome_ask(outcome, "GET /v1/jobs/j", NULL);
    if (!has(tasks, expected)) outcome_fault(outcome, "%.*s", SLICE_ARG(tasks));
    if (!has(job, "\"total\":3,")) outcome_fault(outcome, "%.*s", SLICE_ARG(job));
}

static void check_lines(struct outcome *outcome)
{
    check_items(outcome,
                "\"tasks\":[{\"task\":0,\"item\":10},{\"task\":1,\"item\":11},{\"task\":2,\"item\":12}]");
}

/* Two send the same, in pieces of different size. */
static const struct exploration lines = {
    .name = "job items in lines by two",
    .flows = {REQUEST("POST /v1/jobs/j/items?end=1", "10\n11\n12\n"),
              REQUEST("POST /v1/jobs/j/items?from=0", "10\n11"),
              REQUEST("POST /v1/jobs/j/items?from=1", "11\n12\n")},
    .before = {TABLES, REQUEST("PUT /v1/jobs/j", "{}"), REQUEST("POST /v1/jobs/j/items", "10")},
    .faults = 1,
    .check = check_lines};

static const struct exploration list = {.name = "job items in a list by two",
                                        .flows = {REQUEST("PUT /v1/jobs/j", "{\"items\":[10,11,12]}"),
                                                  REQUEST("PUT /v1/jobs/j", "{\"items\":[10,11,12]}")},
                                        .before = {TABLES},
                                        .faults = 2,
                                        .check = check_lines};

/* A table, which both read to its end. */
static void check_table(struct outcome *outcome)
{
    for (int i = 0; i < 6; i++) outcome_ask(outcome, "POST /v1/jobs/j/read", "");
    struct slice tasks = outcome_ask(outcome, "GET /v1/jobs/j/tasks", NULL),
                 job = outcome_ask(outcome, "GET /v1/jobs/j", NULL);
    static const char *const names[] = {"\"c1\"", "\"c2\""};
    for (int i = 0; i < 2; i++)
        if (!has(tasks, names[i])) outcome_fault(outcome, "%s is missing: %.*s", names[i], SLICE_ARG(tasks));
    if (!has(job, "\"total\":2,")) outcome_fault(outcome, "%.*s", SLICE_ARG(job));
}

#define FROM "\"from\":{\"table\":\"quipu-counters\",\"scan\":{}}"
static const struct exploration table = {
    .name = "job items of a table by two",
    .flows = {REQUEST("POST /v1/jobs/j/read", ""), REQUEST("POST /v1/jobs/j/read", "")},
    .before = {TABLES, REQUEST("POST /v1/counters/c1", NULL), REQUEST("POST /v1/counters/c2", NULL),
               REQUEST("PUT /v1/jobs/j", "{\"each\":\"f\"," FROM "}")},
    .faults = 2,
    .check = check_table};

TEST(explore_job_items)
{
    explore(&lines);
    explore_broken(&lines, "attribute_not_exists(#first)",
                   "(attribute_not_exists(#first) or attribute_exists(#first))");
    explore(&list);
    explore(&table);
}
