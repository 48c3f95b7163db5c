/* Periods in every order: each event in exactly one bucket, each bucket DONE once, its content never changes.
 */
#include "unit/pattern_explore.h"

#define HOUR_MS 3600000
#define ADD(id) REQUEST("POST /v1/periods/p", "{\"id\":\"" id "\",\"data\":1}")
#define CLOSE   REQUEST("POST /v1/periods/p/close", NULL)

/* An earlier bucket has been closed, so that the tables are there. */
/* clang-format off */
#define BEFORE                                                                                               \
    {REQUEST("PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}"),                                        \
     REQUEST("POST /v1/periods/p", "{\"id\":\"old\",\"time\":\"2026-11-15T02:00:00Z\"}"), CLOSE, ADD("first")}
/* clang-format on */

static struct slice bucket_of(struct outcome *outcome, const char *bucket)
{
    char request[80];
    snprintf(request, sizeof request, "GET /v1/periods/p/%s", bucket);
    return outcome_ask(outcome, request, NULL);
}

static unsigned count_of(struct slice text, const char *id)
{
    char part[40];
    unsigned count = 0;
    snprintf(part, sizeof part, "\"id\":\"%s\"", id);
    for (const char *at = text.data; at; count += at != NULL) {
        at = memmem(at, text.len - (size_t)(at - text.data), part, strlen(part));
        if (at) at++;
        if (!at) break;
    }
    return count;
}

/* Who was told that a bucket has its event finds it there, and only there. */
static void check_added(struct outcome *outcome)
{
    static const char *const buckets[] = {"2026-11-15T04:00:00Z", "2026-11-15T05:00:00Z",
                                          "2026-11-15T06:00:00Z"};
    static const char *const ids[] = {"a"};
    for (unsigned i = 0; i < 1; i++) {
        unsigned count = 0;
        if (outcome->answers[i].status != 200 && outcome->answers[i].status != 201) {
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
            return;
        }
        struct slice told = outcome_text(outcome, i, "bucket");
        for (unsigned k = 0; k < 3; k++) {
            unsigned here = count_of(bucket_of(outcome, buckets[k]), ids[i]);
            count += here;
            if (here && memcmp(told.data, buckets[k], 19) != 0)
                outcome_fault(outcome, "%s is told to be in %.*s", ids[i], SLICE_ARG(told));
        }
        if (count != 1) outcome_fault(outcome, "%s is there %u times", ids[i], count);
    }
    struct slice first = bucket_of(outcome, buckets[0]);
    if (outcome_int(outcome, 1, "closed") == 1 && !slice_contains(first, SLICE("\"DONE\"")))
        outcome_fault(outcome, "not DONE: %.*s", SLICE_ARG(first));
}

static const struct exploration adds = {.name = "period closed while others add",
                                        .flows = {ADD("a"), CLOSE},
                                        .before = BEFORE,
                                        .jumps = {HOUR_MS},
                                        .check = check_added};

TEST(explore_period_adds)
{
    explore(&adds);
    explore_broken(&adds, "attribute_not_exists(#state) or #state = :open",
                   "attribute_not_exists(#state) or attribute_exists(#state) or #state = :open");
}

/* ---- with crashes, retries and late copies ---- */

#define LATE(id)                                                                                             \
    REQUEST("POST /v1/periods/p", "{\"id\":\"" id "\",\"data\":1,\"time\":\"2026-11-15T03:59:00Z\"}")

static const char *const hours[] = {"2026-11-15T03:00:00Z", "2026-11-15T04:00:00Z", "2026-11-15T05:00:00Z"};
#define HOURS (sizeof hours / sizeof *hours)

/* In the end all is handed over, once, and what was handed over before is as it was. */
static void check_crashed(struct outcome *outcome)
{
    struct slice before[HOURS];
    unsigned count = 0;
    for (unsigned i = 0; i < HOURS; i++) before[i] = bucket_of(outcome, hours[i]);
    for (int i = 0; i < 2; i++) { /* who died has its lease for a minute */
        outcome_jump(outcome, HOUR_MS);
        outcome_ask(outcome, "POST /v1/periods/p/close", NULL);
    }
    for (unsigned i = 0; i < HOURS; i++) {
        struct slice content = bucket_of(outcome, hours[i]);
        count += count_of(content, "a");
        if (slice_contains(before[i], SLICE("\"DONE\"")) && !slice_equal(before[i], content))
            outcome_fault(outcome, "changed from %.*s to %.*s", SLICE_ARG(before[i]), SLICE_ARG(content));
        if (slice_contains(content, SLICE("\"id\"")) && !slice_contains(content, SLICE("\"DONE\"")))
            outcome_fault(outcome, "not DONE: %.*s", SLICE_ARG(content));
    }
    if (count != 1) outcome_fault(outcome, "it is there %u times", count);
}

/* Another period was closed before, so that the tables are there. */
/* clang-format off */
#define BEFORE_Q                                                                                             \
    REQUEST("PUT /v1/periods/q", "{\"every\":\"1h\",\"shards\":1}"),                                         \
    REQUEST("POST /v1/periods/q", "{\"id\":\"q\",\"time\":\"2026-11-15T02:00:00Z\"}"),                         \
    REQUEST("POST /v1/periods/q/close", NULL),                                                               \
    REQUEST("PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}")
/* clang-format on */

/* The hour before this one has an event already, so whoever closes finds that it is over. */
static const struct exploration crashes = {
    .name = "period whose closer or adder crashes",
    .flows = {LATE("a"), CLOSE},
    .before = {BEFORE_Q,
               REQUEST("POST /v1/periods/p", "{\"id\":\"first\",\"time\":\"2026-11-15T03:30:00Z\"}")},
    .faults = 1,
    .check = check_crashed};

TEST(explore_period_crashes)
{
    explore(&crashes);
    explore_broken(&crashes, "attribute_not_exists(#token)",
                   "(attribute_not_exists(#token) or attribute_exists(#token))");
    explore_broken(&crashes, "attribute_not_exists(#state) or #state = :open",
                   "attribute_not_exists(#state) or attribute_exists(#state) or #state = :open");
}

/* ---- a bucket that is over when its first event comes ---- */

/* It need not wait for the end of the next one. */
static void check_healed(struct outcome *outcome)
{
    struct slice told = outcome_text(outcome, 0, "bucket");
    outcome_ask(outcome, "SWEEP periods", NULL);
    struct slice content = bucket_of(outcome, "2026-11-15T03:00:00Z");
    if (slice_starts(told, SLICE("2026-11-15T03")) && !slice_contains(content, SLICE("\"DONE\"")))
        outcome_fault(outcome, "not DONE: %.*s", SLICE_ARG(content));
    if (slice_starts(told, SLICE("2026-11-15T03")) && count_of(content, "a") != 1)
        outcome_fault(outcome, "not there: %.*s", SLICE_ARG(content));
}

static const struct exploration heals = {.name = "period that looked empty",
                                         .flows = {LATE("a"), REQUEST("SWEEP periods", NULL)},
                                         .before = {BEFORE_Q},
                                         .check = check_healed};

TEST(explore_period_heals)
{
    explore(&heals);
    explore_broken(&heals, "attribute_exists(#name)", "attribute_exists(#name) and #due < :one");
    explore_broken(&heals, "#version = :version and #closed", "#version >= :version and #closed");
}

/* ---- closers among themselves ---- */

/* Two close at once, perhaps with a lease that ends between: one of them says DONE. */
static void check_closed(struct outcome *outcome)
{
    int64_t closed = 0;
    for (unsigned i = 0; i < 2; i++) closed += outcome_int(outcome, i, "closed");
    struct slice content = bucket_of(outcome, "2026-11-15T02:00:00Z");
    if (closed > 1) outcome_fault(outcome, "DONE %lld times", (long long)closed);
    if (closed == 1 && !slice_contains(content, SLICE("\"state\":\"DONE\",\"count\":1,")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(content));
}

static const struct exploration closers = {
    .name = "period closed by two",
    .flows = {CLOSE, CLOSE},
    .before = {REQUEST("PUT /v1/periods/q", "{\"every\":\"1h\",\"shards\":1}"),
               REQUEST("POST /v1/periods/q", "{\"time\":\"2026-11-15T02:00:00Z\"}"),
               REQUEST("POST /v1/periods/q/close", NULL),
               REQUEST("PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}"),
               REQUEST("POST /v1/periods/p", "{\"time\":\"2026-11-15T02:00:00Z\"}")},
    .jumps = {60001},
    .check = check_closed};

TEST(explore_period_closers)
{
    explore(&closers);
    explore_broken(&closers, "#state = :closing and #fence = :fence",
                   "(#state = :closing or #state = :done) and #fence >= :fence");
}
