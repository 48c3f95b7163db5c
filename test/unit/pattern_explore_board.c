/* Boards in every order: DELETE removes what was there, and nothing that comes meanwhile. */
#include "unit/pattern_explore.h"

#define TABLES REQUEST_WITH("POST /v1/boards/other", "{\"text\":\"x\"}", "Idempotency-Key", "x")

static bool shows(struct slice board, const char *text)
{
    return slice_contains(board, slice_of(text));
}

/* Flow 0 deletes; the others post "new1", "new2". */
static void check_deleted(struct outcome *outcome)
{
    static const char *const texts[] = {"", "new1", "new2"};
    struct slice end = outcome_ask(outcome, "GET /v1/boards/b", NULL);
    if (shows(end, "old")) outcome_fault(outcome, "what was there is still there: %.*s", SLICE_ARG(end));
    for (unsigned i = 1; i < outcome->count; i++)
        if (outcome->answers[i].event > outcome->answers[0].called && !shows(end, texts[i]))
            outcome_fault(outcome, "%s came meanwhile and is gone", texts[i]);
}

static const struct exploration deletion = {.name = "board cleared while others post",
                                            .flows = {REQUEST("DELETE /v1/boards/b", NULL),
                                                      REQUEST("POST /v1/boards/b", "{\"text\":\"new1\"}"),
                                                      REQUEST("POST /v1/boards/b", "{\"text\":\"new2\"}")},
                                            .before = {REQUEST("POST /v1/boards/b", "{\"text\":\"old\"}")},
                                            .faults = 2,
                                            .check = check_deleted};

TEST(explore_board_cleared)
{
    explore(&deletion);
    explore_broken(&deletion, "DeleteRequest\":{\"Key\":{\"board\":{\"S\":\"b",
                   "DeleteRequest\":{\"Key\":{\"board\":{\"S\":\"c");
}

static void check_once(struct outcome *outcome)
{
    struct slice end = outcome_ask(outcome, "GET /v1/boards/b", NULL);
    const char *first = memmem(end.data, end.len, "once", 4);
    if (!first || memmem(first + 1, (size_t)(end.data + end.len - first - 1), "once", 4))
        outcome_fault(outcome, "not once: %.*s", SLICE_ARG(end));
    if (!slice_equal(outcome_text(outcome, 0, "id"), outcome_text(outcome, 1, "id")))
        outcome_fault(outcome, "two ids for one key");
}

static const struct exploration repeat = {
    .name = "board with a repeated post",
    .flows = {REQUEST_WITH("POST /v1/boards/b", "{\"text\":\"once\"}", "Idempotency-Key", "k"),
              REQUEST_WITH("POST /v1/boards/b", "{\"text\":\"once\"}", "Idempotency-Key", "k"),
              REQUEST_WITH("POST /v1/boards/b", "{\"text\":\"another\"}", "Idempotency-Key", "l")},
    .before = {TABLES},
    .faults = 2,
    .check = check_once};

TEST(explore_board_repeated)
{
    explore(&repeat);
    explore_broken(&repeat, "attribute_not_exists(#token)",
                   "(attribute_not_exists(#token) or attribute_exists(#token))");
}

/* The same post twice, and the board is cleared: what was there by then is gone for good. */
static void check_gone(struct outcome *outcome)
{
    const struct explored_answer *answers = outcome->answers;
    struct slice end = outcome_ask(outcome, "GET /v1/boards/b", NULL);
    bool was_there = answers[0].event < answers[2].called || answers[1].event < answers[2].called;
    if (was_there && shows(end, "\"id\"")) outcome_fault(outcome, "it came back: %.*s", SLICE_ARG(end));
    if (!shows(end, "once") && outcome_int(outcome, 2, "deleted") == 0 && answers[2].attempts == 1)
        outcome_fault(outcome, "neither there nor deleted");
    if (!slice_equal(outcome_text(outcome, 0, "id"), outcome_text(outcome, 1, "id")))
        outcome_fault(outcome, "two ids for one key");
}

static const struct exploration cleared = {
    .name = "board cleared and a repeated post",
    .flows = {REQUEST_WITH("POST /v1/boards/b", "{\"text\":\"once\"}", "Idempotency-Key", "k"),
              REQUEST_WITH("POST /v1/boards/b", "{\"text\":\"once\"}", "Idempotency-Key", "k"),
              REQUEST("DELETE /v1/boards/b", NULL)},
    .before = {TABLES},
    .faults = 1,
    .check = check_gone};

TEST(explore_board_cleared_and_repeated)
{
    struct exploration calm = cleared; /* what shows without faults is found sooner without */
    calm.faults = 0;
    explore(&cleared);
    explore_broken(&calm, "attribute_not_exists(id)", "attribute_not_exists(id) or attribute_exists(id)");
    explore_broken(&calm, "\"deleted\":{\"BOOL\":true},", "");
}
