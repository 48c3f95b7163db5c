/* Periods in every order: each event in exactly one bucket, each bucket DONE once, its content never changes. */
#include "unit/pattern_explore.h"

#define HOUR_MS 3600000
#define ADD(id) REQUEST("POST /v1/periods/p", "{\"id\":\"" id "\",\"data\":1}")
#define LATE(id)                                                                                             \
    REQUEST("POST /v1/periods/p", "{\"id\":\"" id "\",\"data\":1,\"time\":\"2026-11-15T03:59:00Z\"}")
#define CLOSE         REQUEST("POST /v1/periods/p/close", NULL)
#define ANY_PAGE      "(attribute_not_exists(#first) or attribute_exists(#first))"
#define ANY_TOKEN     "(attribute_not_exists(#token) or attribute_exists(#token))"
#define BUCKETS_FOUND 10

/* Another period was closed before, so that the tables are there. */
/* clang-format off */
#define BEFORE                                                                                               \
    REQUEST("PUT /v1/periods/q", "{\"every\":\"1h\",\"shards\":1}"),                                         \
    REQUEST("POST /v1/periods/q", "{\"id\":\"q\",\"time\":\"2026-11-15T02:00:00Z\"}"),                       \
    REQUEST("POST /v1/periods/q/close", NULL),                                                               \
    REQUEST("PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}")
/* clang-format on */

/* ---- what all checks ask ---- */

static struct slice bucket_of(struct outcome *outcome, struct slice bucket)
{
    char request[80];
    snprintf(request, sizeof request, "GET /v1/periods/p/%.*s", SLICE_ARG(bucket));
    return outcome_ask(outcome, request, NULL);
}

static unsigned count_of(struct slice text, const char *id)
{
    char part[40];
    unsigned count = 0;
    snprintf(part, sizeof part, "\"id\":\"%s\"", id);
    for (size_t at = 0; at + strlen(part) <= text.len; at++)
        count += memcmp(text.data + at, part, strlen(part)) == 0;
    return count;
}

/* All buckets that can be read, whatever their state: how many. */
static unsigned buckets_list(struct outcome *outcome, struct slice *buckets)
{
    static const char *const lists[] = {"GET /v1/periods/p/buckets", "GET /v1/periods/p/buckets?state=open"};
    unsigned count = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct raw_look look;
        struct slice entry;
        raw_look_begin(&look, outcome->arena,
                       raw_member(outcome->arena, outcome_ask(outcome, lists[i], NULL), "buckets"));
        while (count < BUCKETS_FOUND && raw_look_next(&look, NULL, &entry))
            buckets[count++] = raw_text(outcome->arena, raw_member(outcome->arena, entry, "bucket"));
    }
    return count;
}

/* The event is in one bucket, and that is what those were told who have an answer. */
static void check_once(struct outcome *outcome, const char *id, unsigned adders)
{
    struct slice buckets[BUCKETS_FOUND], found = SLICE("");
    unsigned count = 0, listed = buckets_list(outcome, buckets);
    for (unsigned i = 0; i < listed; i++) {
        unsigned here = count_of(bucket_of(outcome, buckets[i]), id);
        count += here;
        if (here) found = buckets[i];
    }
    if (count != 1) outcome_fault(outcome, "%s is there %u times", id, count);
    for (unsigned i = 0; i < adders; i++) {
        struct slice told = outcome_text(outcome, i, "bucket");
        if (outcome->answers[i].status != 200 && outcome->answers[i].status != 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
        else if (!slice_equal(told, found))
            outcome_fault(outcome, "%s is in %.*s, not in %.*s", id, SLICE_ARG(found), SLICE_ARG(told));
    }
}

/* In the end all is handed over, and what was handed over before is as it was. */
static void check_handed_over(struct outcome *outcome)
{
    struct slice buckets[BUCKETS_FOUND], before[BUCKETS_FOUND];
    unsigned count = buckets_list(outcome, buckets);
    for (unsigned i = 0; i < count; i++) before[i] = bucket_of(outcome, buckets[i]);
    outcome_jump(outcome, 2 * HOUR_MS);
    outcome_ask(outcome, "SWEEP periods", NULL);
    for (unsigned i = 0; i < count; i++) {
        struct slice content = bucket_of(outcome, buckets[i]);
        if (slice_contains(before[i], SLICE("\"DONE\"")) && !slice_equal(before[i], content))
            outcome_fault(outcome, "changed from %.*s to %.*s", SLICE_ARG(before[i]), SLICE_ARG(content));
        if (slice_contains(content, SLICE("\"id\"")) && !slice_contains(content, SLICE("\"DONE\"")))
            outcome_fault(outcome, "not DONE: %.*s", SLICE_ARG(content));
    }
}

/* ---- adding while others close ---- */

static void check_added(struct outcome *outcome)
{
    check_once(outcome, "a", 1);
    check_handed_over(outcome);
    check_once(outcome, "a", 1);
}

static const struct exploration adds = {.name = "period closed while others add",
                                        .flows = {ADD("a"), CLOSE},
                                        .before = {BEFORE, ADD("first")},
                                        .jumps = {HOUR_MS},
                                        .check = check_added};

TEST(explore_period_adds)
{
    explore(&adds);
    explore_broken(&adds, "attribute_not_exists(#first)", ANY_PAGE);
}

/* The hour before this one has an event already, so whoever closes finds that it is over. */
static const struct exploration crashes = {
    .name = "period whose closer or adder crashes",
    .flows = {LATE("a"), CLOSE},
    .before = {BEFORE, REQUEST("POST /v1/periods/p", "{\"id\":\"first\",\"time\":\"2026-11-15T03:30:00Z\"}")},
    .faults = 1,
    .check = check_added};

TEST(explore_period_crashes)
{
    explore(&crashes);
    explore_broken(&crashes, "attribute_not_exists(#token)", ANY_TOKEN);
    explore_broken(&crashes, "attribute_not_exists(#first)", ANY_PAGE);
}

/* ---- a bucket that gets its first event when it is over ---- */

/* It need not wait for the end of the next one. */
static void check_healed(struct outcome *outcome)
{
    check_once(outcome, "a", 1);
    outcome_ask(outcome, "SWEEP periods", NULL);
    struct slice told = outcome_text(outcome, 0, "bucket"), content = bucket_of(outcome, told);
    if (slice_starts(told, SLICE("2026-11-15T03")) && !slice_contains(content, SLICE("\"DONE\"")))
        outcome_fault(outcome, "not DONE: %.*s", SLICE_ARG(content));
    check_once(outcome, "a", 1);
}

static const struct exploration heals = {.name = "period that looked empty",
                                         .flows = {LATE("a"), REQUEST("SWEEP periods", NULL)},
                                         .before = {BEFORE},
                                         .faults = 1,
                                         .check = check_healed};

TEST(explore_period_heals)
{
    explore(&heals);
    explore_broken(&heals, "attribute_not_exists(#first)", ANY_PAGE);
}

/* ---- the same id again, in another hour ---- */

static void check_repeated(struct outcome *outcome)
{
    check_once(outcome, "a", 2);
    check_handed_over(outcome);
    check_once(outcome, "a", 2);
}

static const struct exploration repeats = {.name = "period with an id that comes again",
                                           .flows = {ADD("a"), ADD("a"), CLOSE},
                                           .before = {BEFORE, ADD("first")},
                                           .jumps = {HOUR_MS},
                                           .faults = 1,
                                           .check = check_repeated};

TEST(explore_period_repeats)
{
    explore(&repeats);
    explore_broken(&repeats, "attribute_not_exists(#token)", ANY_TOKEN);
    explore_broken(&repeats, "#bucket = :sealed", "(#bucket = :sealed or #bucket <> :sealed)");
}

/* ---- changed settings ---- */

static const struct exploration changes = {
    .name = "period whose length changes",
    .flows = {ADD("a"), REQUEST("PUT /v1/periods/p", "{\"every\":\"1m\"}"), CLOSE},
    .before = {BEFORE, ADD("first")},
    .jumps = {90000},
    .check = check_added};

TEST(explore_period_changes)
{
    explore(&changes);
}

/* ---- closers among themselves ---- */

static int64_t closed_by_two(struct outcome *outcome)
{
    int64_t closed = 0;
    for (unsigned i = 0; i < 2; i++) closed += outcome_int(outcome, i, "closed");
    return closed;
}

/* Two close at once: one of them says DONE. */
static void check_closed(struct outcome *outcome)
{
    struct slice content = bucket_of(outcome, SLICE("2026-11-15T02:00:00Z"));
    if (closed_by_two(outcome) > 1)
        outcome_fault(outcome, "DONE %lld times", (long long)closed_by_two(outcome));
    if (!slice_contains(content, SLICE("\"state\":\"DONE\",\"count\":1,")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(content));
}

static const struct exploration closers = {
    .name = "period closed by two",
    .flows = {CLOSE, CLOSE},
    .before = {BEFORE, REQUEST("POST /v1/periods/p", "{\"time\":\"2026-11-15T02:00:00Z\"}")},
    .faults = 1,
    .check = check_closed};

TEST(explore_period_closers)
{
    explore(&closers);
    explore_broken(&closers, "\"ConditionExpression\":\"#state = :open\"",
                   "\"ConditionExpression\":\"(#state = :open or #state <> :open)\"");
}

/* A bucket of two parts: whoever goes on behind a crash notes the same ones. */
static void check_parts(struct outcome *outcome)
{
    if (closed_by_two(outcome) > 1)
        outcome_fault(outcome, "DONE %lld times", (long long)closed_by_two(outcome));
    for (unsigned part = 1; part <= 2; part++) {
        char request[80];
        snprintf(request, sizeof request, "GET /v1/periods/p/2026-11-15T02:00:00Z?part=%u", part);
        struct slice content = outcome_ask(outcome, request, NULL);
        if (!slice_contains(content, SLICE("\"count\":2,\"parts\":2,")) ||
            count_of(content, part == 1 ? "x" : "y") != 1)
            outcome_fault(outcome, "part %u: %.*s", part, (int)(content.len < 200 ? content.len : 200),
                          content.data);
    }
}

TEST(explore_period_parts)
{
    static char bodies[2][200100];
    static const char event[] = "{\"id\":\"%c\",\"time\":\"2026-11-15T02:00:00Z\",\"data\":\"";
    struct exploration parts = {.name = "large bucket closed by two",
                                .flows = {CLOSE, CLOSE},
                                .before = {BEFORE, REQUEST("POST /v1/periods/p", bodies[0]),
                                           REQUEST("POST /v1/periods/p", bodies[1])},
                                .faults = 1,
                                .check = check_parts};
    for (int i = 0; i < 2; i++) {
        int len = snprintf(bodies[i], sizeof bodies[i], event, "xy"[i]);
        memset(bodies[i] + len, '-', 200000);
        memcpy(bodies[i] + len + 200000, "\"}", 3);
    }
    explore(&parts);
}

/* ---- many at once ---- */

/* Two calls share an event, and the bucket may be closed meanwhile: all three are in one bucket each. */
static void check_batches(struct outcome *outcome)
{
    for (unsigned i = 0; i < 2; i++)
        if (outcome->answers[i].status > 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
    check_once(outcome, "a", 0);
    check_once(outcome, "b", 0);
    check_once(outcome, "c", 0);
    check_handed_over(outcome);
    check_once(outcome, "b", 0);
}

static const struct exploration batches = {
    .name = "period with two batches",
    .flows = {REQUEST("POST /v1/periods/p", "{\"events\":[{\"id\":\"a\",\"data\":1},{\"id\":\"b\",\"data\":1}]}"),
              REQUEST("POST /v1/periods/p", "{\"events\":[{\"id\":\"b\",\"data\":1},{\"id\":\"c\",\"data\":1}]}")},
    .before = {BEFORE, ADD("first")},
    .faults = 1,
    .check = check_batches};

static const struct exploration batch_closed = {
    .name = "period closed while a batch comes",
    .flows = {REQUEST("POST /v1/periods/p",
                      "{\"events\":[{\"id\":\"a\",\"data\":1},{\"id\":\"b\",\"data\":1},{\"id\":\"c\",\"data\":1}]}"),
              CLOSE},
    .before = {BEFORE, ADD("first")},
    .jumps = {HOUR_MS},
    .check = check_batches};

TEST(explore_period_batches)
{
    explore(&batches);
    explore_broken(&batches, "attribute_not_exists(#token)", ANY_TOKEN);
    explore(&batch_closed);
}
