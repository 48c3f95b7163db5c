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

static size_t version_count(struct outcome *outcome)
{
    struct slice all = outcome_ask(outcome, "GET " TABLE "/x", NULL);
    return raw_count(outcome->arena, raw_member(outcome->arena, all, "versions"));
}

static void check_fed(struct outcome *outcome)
{
    if (version_count(outcome) != 2) outcome_fault(outcome, "%zu versions", version_count(outcome));
    for (unsigned i = 0; i < 2; i++)
        if (outcome->answers[i].status != 200)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
}

/* clang-format off */
#define BEFORE                                                                                               \
    {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL), REQUEST("POST " TABLE, one)}
#define BEFORE_RESTORE                                                                                       \
    {REQUEST("POST /v1/counters/x", "{\"by\":2}"), REQUEST("PUT " TABLE, NULL), REQUEST("POST " TABLE, both)}
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
}

/* The counter goes back to 1 while somebody counts: who was told 3 before the restore would have had it lost.
 */
static void check_restored(struct outcome *outcome)
{
    struct slice counter = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    int64_t told = outcome_int(outcome, 1, "value"), value = 0;
    raw_int(raw_text(outcome->arena, raw_member(outcome->arena, counter, "value")), &value);
    if (outcome->answers[0].status == 200 && told != 2)
        outcome_fault(outcome, "restored over the %lld that somebody was told", (long long)told);
    if (outcome->answers[0].status == 409 && (told != 3 || value != 3))
        outcome_fault(outcome, "refused, told %lld, is %lld", (long long)told, (long long)value);
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
