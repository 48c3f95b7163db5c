/* Settings of what the server calls, in every order: what a queue or a consumer tells is what is driven, and a change
 * of one setting never undoes that of another. And reads of one partition beside reads of any. */
#include "unit/pattern_explore.h"

#define EACH  REQUEST("PUT /v1/work/q", "{\"each\":\"f\",\"concurrency\":1}")
#define PUSH  REQUEST("PUT /v1/logs/l/consumers/c", "{\"function\":\"f\",\"batch\":1}")
#define PATH  "/v1/logs/l/consumers/c"
#define MAKES REQUEST("PUT /v1/logs/l", "{\"partitions\":1}")

static bool has(struct slice text, const char *part)
{
    return slice_contains(text, slice_of(part));
}

static bool is_told(struct outcome *outcome, unsigned flow)
{
    return outcome->answers[flow].status == 200;
}

/* ---- settings ---- */

/* The first flow sets the concurrency, the second pauses: neither is lost. */
static void check_settings(struct outcome *outcome)
{
    struct slice queue = outcome_ask(outcome, "GET /v1/work/q", NULL),
                 drives = outcome_ask(outcome, "GET /v1/drives", NULL);
    if (is_told(outcome, 0) && (!has(queue, "\"concurrency\":7") || !has(drives, "\"concurrency\":7")))
        outcome_fault(outcome, "the concurrency is lost: %.*s %.*s", SLICE_ARG(queue), SLICE_ARG(drives));
    if (is_told(outcome, 1) && (!has(queue, "\"paused\":true") || !has(drives, "\"paused\":true")))
        outcome_fault(outcome, "the pause is lost: %.*s %.*s", SLICE_ARG(queue), SLICE_ARG(drives));
}

static const struct exploration settings = {.name = "drive: two settings",
                                            .flows = {REQUEST("PUT /v1/work/q", "{\"concurrency\":7}"),
                                                      REQUEST("PUT /v1/work/q", "{\"paused\":true}")},
                                            .before = {EACH},
                                            .faults = 1,
                                            .check = check_settings};

/* One ends it while another changes it: what is not driven is not listed, and has no settings. */
static void check_end(struct outcome *outcome)
{
    struct slice queue = outcome_ask(outcome, "GET /v1/work/q", NULL),
                 drives = outcome_ask(outcome, "GET /v1/drives", NULL);
    if (has(queue, "\"each\"") != has(drives, "work:q"))
        outcome_fault(outcome, "%.*s but %.*s", SLICE_ARG(queue), SLICE_ARG(drives));
    if (is_told(outcome, 1) && has(queue, "\"concurrency\":7") && !has(queue, "\"each\":\"f\""))
        outcome_fault(outcome, "settings without a target: %.*s", SLICE_ARG(queue));
    if (is_told(outcome, 0) && has(drives, "work:q"))
        outcome_fault(outcome, "it was ended and is driven: %.*s", SLICE_ARG(drives));
}

static const struct exploration end = {
    .name = "drive: ended and changed",
    .flows = {REQUEST("PUT /v1/work/q", "{\"each\":[]}"), REQUEST("PUT /v1/work/q", "{\"concurrency\":7}")},
    .before = {EACH},
    .faults = 1,
    .check = check_end};

TEST(explore_drive_settings)
{
    explore(&settings);
    explore(&end);
    explore_broken(&end, "attribute_exists(#id)", "(attribute_exists(#id) or attribute_not_exists(#id))");
}

/* ---- a consumer of a log ---- */

/* Whoever removes a consumer removes what is called for it. */
static void check_removed(struct outcome *outcome)
{
    struct slice drives = outcome_ask(outcome, "GET /v1/drives", NULL);
    if (is_told(outcome, 0) && has(drives, "log:l:c"))
        outcome_fault(outcome, "it is removed and driven: %.*s", SLICE_ARG(drives));
}

static const struct exploration removed = {
    .name = "drive: a consumer is removed",
    .flows = {REQUEST("DELETE " PATH, NULL), REQUEST("PUT " PATH, "{\"paused\":true}")},
    .before = {MAKES, REQUEST("POST /v1/logs/l", "{\"key\":\"k\"}"),
               REQUEST("POST " PATH "/read", "{\"owner\":\"o\"}"), PUSH},
    .faults = 1,
    .check = check_removed};

/* Two readers, one of them of this partition only: one has it, with all events. */
static void check_one_reader(struct outcome *outcome)
{
    unsigned readers = 0;
    for (unsigned i = 0; i < outcome->count; i++) {
        readers += is_told(outcome, i);
        if (is_told(outcome, i) && !has(outcome->answers[i].body, "\"sequence\":2"))
            outcome_fault(outcome, "events are left out: %.*s", SLICE_ARG(outcome->answers[i].body));
    }
    if (readers > 1) outcome_fault(outcome, "%u have the partition", readers);
}

static const struct exploration readers = {
    .name = "drive: a read of one partition",
    .flows = {REQUEST("POST " PATH "/read", "{\"owner\":\"a\",\"partition\":\"0\"}"),
              REQUEST("POST " PATH "/read", "{\"owner\":\"b\"}")},
    .before = {MAKES, REQUEST("POST /v1/logs/l", "{\"events\":[{\"key\":\"k\"},{\"key\":\"k\"}]}")},
    .never_away = true,
    .check = check_one_reader};

TEST(explore_drive_consumers)
{
    explore(&removed);
    explore(&readers);
}
