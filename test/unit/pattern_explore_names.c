/* Lists of names in every order: whatever is there at the end is listed, however the list was cleaned meanwhile. */
#include "unit/pattern_explore.h"

#define LONG_MS (61 * 60000)

static bool has(struct outcome *outcome, const char *request, const char *text)
{
    return slice_contains(outcome_ask(outcome, request, NULL), slice_of(text));
}

static void check_counter(struct outcome *outcome)
{
    bool is_there = !has(outcome, "GET /v1/counters/x", "no-such-counter");
    bool is_listed = has(outcome, "GET /v1/counters", "\"x\"");
    if (is_there != is_listed) outcome_fault(outcome, "it is %s listed", is_listed ? "not there but" : "there and not");
    outcome_jump(outcome, LONG_MS);
    if (is_there != has(outcome, "GET /v1/counters", "\"x\"")) outcome_fault(outcome, "it is not listed later");
}

/* It was made long ago, so its name is old: who removes it, lists, and makes it again meet at any point. */
static const struct exploration counter = {
    .name = "names of a counter",
    .flows = {REQUEST("POST /v1/counters/x", NULL), REQUEST("DELETE /v1/counters/x", NULL),
              REQUEST("GET /v1/counters", NULL)},
    .before = {REQUEST("POST /v1/counters/x", NULL)},
    .later_ms = LONG_MS,
    .faults = 1,
    .check = check_counter};

static const struct exploration keyed = {
    .name = "names of a counter with a key",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "k"),
              REQUEST("DELETE /v1/counters/x", NULL), REQUEST("GET /v1/counters", NULL)},
    .before = {REQUEST("POST /v1/counters/x", NULL)},
    .later_ms = LONG_MS,
    .faults = 1,
    .check = check_counter};

TEST(explore_names_of_counters)
{
    explore(&counter);
    explore(&keyed);
    explore_broken(&counter, "#entered = :entered", "#entered >= :entered");
}

static void check_board(struct outcome *outcome)
{
    bool is_there = has(outcome, "GET /v1/boards/b", "\"text\"");
    if (is_there != has(outcome, "GET /v1/boards", "\"b\"")) outcome_fault(outcome, "a board is not told as it is");
}

static const struct exploration board = {
    .name = "names of a board",
    .flows = {REQUEST("POST /v1/boards/b", "{\"text\":\"x\"}"), REQUEST("DELETE /v1/boards/b", NULL),
              REQUEST("GET /v1/boards", NULL)},
    .before = {REQUEST("POST /v1/boards/b", "{\"text\":\"x\"}")},
    .later_ms = LONG_MS,
    .faults = 1,
    .check = check_board};

TEST(explore_names_of_boards)
{
    explore(&board);
}

static void check_lease(struct outcome *outcome)
{
    bool is_there = !has(outcome, "GET /v1/leases/l", "no-such-lease");
    if (is_there != has(outcome, "GET /v1/leases", "\"l\"")) outcome_fault(outcome, "a lease is not told as it is");
}

static const struct exploration lease = {
    .name = "names of a lease",
    .flows = {REQUEST("POST /v1/leases/l", "{\"owner\":\"a\"}"), REQUEST("POST /v1/leases/l", "{\"owner\":\"b\"}"),
              REQUEST("GET /v1/leases", NULL)},
    .before = {REQUEST("POST /v1/leases/other", "{\"owner\":\"a\"}")},
    .faults = 1,
    .check = check_lease};

TEST(explore_names_of_leases)
{
    explore(&lease);
}
