/* Histories in every order: a record is there once, whoever brings it; a restore loses nobody's change. */
#include "unit/pattern_explore.h"

#define TABLE "/v1/history/quipu-counters"
/* The counter was 1, then 2. */
#define RECORD(sequence, value)                                                                              \
    "{\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":179471600" sequence             \
    ",\"Keys\":{\"name\":{"                                                                                  \
    "\"S\":\"x\"}},\"NewImage\":{\"name\":{\"S\":\"x\"},\"value\":{\"N\":\"" value                           \
    "\"}},\"SequenceNumber\":\"" sequence "\"}}"

static const char one[] = "{\"Records\":[" RECORD("1", "1") "]}";
static const char both[] = "{\"Records\":[" RECORD("1", "1") "," RECORD("2", "2") "]}";

static const char zeroth[] = "{\"Records\":[" RECORD("0", "0") "]}";
static const char third[] = "{\"Records\":[" RECORD("3", "3") "]}";

/* The history is the stream: each record once, in order. */
static void check_fed(struct outcome *outcome)
{
    static const char *const values[] = {"1", "2"};
    struct slice all = outcome_ask(outcome, "GET " TABLE "/x", NULL), version;
    struct raw_walk walk;
    size_t count = 0;
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, all, "versions"));
    for (; raw_walk_next(&walk, NULL, &version); count++) {
        struct slice item = raw_member(outcome->arena, version, "item");
        struct slice value = raw_member(outcome->arena, item, "value");
        if (count < 2 && !slice_equal(value, slice_of(values[count])))
            outcome_fault(outcome, "%.*s", SLICE_ARG(version));
    }
    if (count != 2) outcome_fault(outcome, "%zu versions", count);
    for (unsigned i = 0; i < 2; i++)
        if (outcome->answers[i].status != 200)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
}

/* clang-format off */
#define BEFORE                                                                                               \
    {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL), REQUEST("POST " TABLE, one)}
#define BEFORE_RESTORE                                                                                       \
    {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL), REQUEST("POST " TABLE, both)}
#define BEFORE_PRUNE                                                                                         \
    {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, "{\"versions\":2}"),                \
     REQUEST("POST " TABLE, both), REQUEST("POST " TABLE, zeroth)}
/* clang-format on */

static const struct exploration feeds = {
    .name = "history fed by two",
    .flows = {REQUEST("POST " TABLE, both), REQUEST("POST " TABLE, both)},
    .before = BEFORE,
    .faults = 2,
    .check = check_fed};

TEST(explore_history_feeds)
{
    explore(&feeds);
    explore_broken(&feeds, "000000000000001",
                   "000000000000003"); /* the first is another, each time it comes */
}

/* More than a batch holds: whoever dies between two batches brings all of them again. */
static void check_batches(struct outcome *outcome)
{
    struct slice all = outcome_ask(outcome, "GET " TABLE "/x", NULL);
    size_t count = raw_count(outcome->arena, raw_member(outcome->arena, all, "versions"));
    if (count != 27) outcome_fault(outcome, "%zu versions", count);
}

TEST(explore_history_feeds_in_batches)
{
    char records[8000] = "{\"Records\":[";
    for (int i = 0; i < 27; i++)
        snprintf(records + strlen(records), sizeof records - strlen(records),
                 "%s{\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":1794716001,"
                 "\"Keys\":{\"name\":{\"S\":\"x\"}},\"NewImage\":{\"name\":{\"S\":\"x\"}},"
                 "\"SequenceNumber\":\"%d\"}}",
                 i ? "," : "", 100 + i);
    snprintf(records + strlen(records), sizeof records - strlen(records), "]}");
    struct exploration batches = {
        .name = "history fed in batches by two",
        .flows = {REQUEST("POST " TABLE, records), REQUEST("POST " TABLE, records)},
        .before = {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL)},
        .faults = 1,
        .check = check_batches};
    explore(&batches);
    explore_broken(&batches, "0000126", "0000124"); /* one of the second batch is in the place of another */
}

/* The counter goes back to 1 while somebody counts: what was replaced is what was there. */
static void check_restored(struct outcome *outcome)
{
    struct slice counter = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    struct slice replaced = raw_member(outcome->arena, outcome->answers[0].body, "replaced");
    int64_t told = outcome_int(outcome, 1, "value"), value = 0, before = 0;
    raw_int(raw_text(outcome->arena, raw_member(outcome->arena, counter, "value")), &value);
    raw_int(raw_text(outcome->arena, raw_member(outcome->arena, replaced, "value")), &before);
    if (outcome->answers[0].status != 200)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    else if (!(before == 2 && told == 2 && value == 2) && !(before == 3 && told == 3 && value == 1))
        outcome_fault(outcome, "replaced %lld, told %lld, is %lld", (long long)before, (long long)told,
                      (long long)value);
}

static const struct exploration restores = {
    .name = "history restored while somebody writes",
    .flows = {REQUEST("POST " TABLE "/x/restore", "{\"at\":\"2026-11-15T04:13:21Z\"}"),
              REQUEST("POST /v1/counters/x", NULL)},
    .before = BEFORE_RESTORE,
    .check = check_restored};

TEST(explore_history_restores)
{
    explore(&restores);
    explore_broken(&restores, "#a0 = :a0 and #a1 = :a1", "#a0 = :a0 and (#a1 = :a1 or #a1 <> :a1)");
}

/* Versions go while one comes, or while another walks, too: the last two are there. */
static void check_pruned(struct outcome *outcome)
{
    bool grows = outcome->answers[1].body.len > 0; /* else it is a sweep, too */
    struct slice all = outcome_ask(outcome, "GET " TABLE "/x", NULL);
    if (!slice_contains(all, SLICE("\"value\":2")) ||
        !slice_contains(all, grows ? SLICE("\"value\":3") : SLICE("\"value\":1")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(all));
}

static const struct exploration grows = {
    .name = "history pruned while it grows",
    .flows = {REQUEST("SWEEP histories", NULL), REQUEST("POST " TABLE, third)},
    .before = BEFORE_PRUNE,
    .faults = 1,
    .check = check_pruned};

static const struct exploration prunes = {
    .name = "history pruned by two",
    .flows = {REQUEST("SWEEP histories", NULL), REQUEST("SWEEP histories", NULL)},
    .before = BEFORE_PRUNE,
    .check = check_pruned};

TEST(explore_history_prunes)
{
    explore(&grows);
    explore_broken(&grows, "#version < :bound", "#version <= :bound");
    explore(&prunes);
}

/* ---- a baseline ---- */

#define WRITE(value) REQUEST("PUT /v1/counters/x", "{\"value\":" value "}")

/* The counter was 2 before the history, and is set to 3 while the baseline is taken, whose record comes at any time
 * behind it: whatever is told as the last is what is there. */
static void check_baseline(struct outcome *outcome)
{
    struct slice settings = outcome_ask(outcome, "GET " TABLE, NULL);
    if (!slice_contains(settings, SLICE("\"baseline\":{\"state\":\"DONE\",\"items\":1}")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(settings));
    struct slice all = outcome_ask(outcome, "GET " TABLE "/x", NULL), version;
    struct raw_walk walk;
    size_t baselines = 0;
    bool has_change = false;
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, all, "versions"));
    while (raw_walk_next(&walk, NULL, &version)) {
        baselines += slice_contains(version, SLICE("BASELINE"));
        has_change = slice_contains(version, SLICE("\"value\":3"));
    }
    if (!has_change) outcome_fault(outcome, "the last is another: %.*s", SLICE_ARG(all));
    if (baselines > 2) outcome_fault(outcome, "%.*s", SLICE_ARG(all));
    struct slice now = outcome_ask(outcome, "GET " TABLE "?at=2026-11-15T05:00:00Z", NULL);
    if (!slice_contains(now, SLICE("\"value\":3"))) outcome_fault(outcome, "as of now: %.*s", SLICE_ARG(now));
}

static const char change[] = "{\"Records\":[{\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":"
                             "1794716005,\"Keys\":{\"name\":{\"S\":\"x\"}},\"NewImage\":{\"name\":{\"S\":\"x\"},"
                             "\"value\":{\"N\":\"3\"}},\"SequenceNumber\":\"7\"}}]}";

static const struct exploration baseline = {
    .name = "history with a baseline",
    .flows = {REQUEST("SWEEP baselines", NULL), REQUEST("SWEEP baselines", NULL), WRITE("3"),
              REQUEST("POST " TABLE, change)},
    .before = {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL)},
    .jumps = {1},
    .faults = 1,
    .never_late = true,
    .never_away = true,
    .check = check_baseline};

TEST(explore_history_baseline)
{
    explore(&baseline);
}
