/* Counters in every order: no number twice, and with a key no gaps and the same number again. */
#include "unit/pattern_explore.h"

#define TABLES REQUEST_WITH("POST /v1/counters/other", NULL, "Idempotency-Key", "other")

static void check_unique(struct outcome *outcome)
{
    for (unsigned i = 0; i < outcome->count; i++) {
        int64_t value = outcome_int(outcome, i, "value");
        if (value < 1) outcome_fault(outcome, "flow %u got no number", i);
        for (unsigned j = 0; j < i; j++)
            if (outcome_int(outcome, j, "value") == value)
                outcome_fault(outcome, "the number %lld twice", (long long)value);
    }
}

/* Who began after another's end got more. With a key that does not hold of one who comes again: it was given its
 * number before. */
static void check_order(struct outcome *outcome)
{
    check_unique(outcome);
    for (unsigned i = 0; i < outcome->count; i++)
        for (unsigned j = 0; j < outcome->count; j++)
            if (outcome->answers[i].began >= outcome->answers[j].event &&
                outcome_int(outcome, i, "value") < outcome_int(outcome, j, "value"))
                outcome_fault(outcome, "the numbers went back");
}

static const struct exploration plain = {.name = "counter",
                                         .flows = {REQUEST("POST /v1/counters/x", NULL),
                                                   REQUEST("POST /v1/counters/x", "{\"by\":2}"),
                                                   REQUEST("POST /v1/counters/x", NULL)},
                                         .before = {TABLES},
                                         .faults = 2,
                                         .check = check_order};

TEST(explore_counter)
{
    explore(&plain);
    explore_broken(&plain, "ADD #value :one", "SET #value = :one");
}

/* 0 and 1 are the same call, twice; 2 and 3 are others. */
static void check_keys(struct outcome *outcome)
{
    int64_t first = outcome_int(outcome, 0, "value"), again = outcome_int(outcome, 1, "value");
    int64_t other = outcome_int(outcome, 2, "value");
    struct slice end = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    if (first != again)
        outcome_fault(outcome, "one key got %lld and %lld", (long long)first, (long long)again);
    if (first == other) outcome_fault(outcome, "two keys got %lld", (long long)first);
    if (first < 1 || other < 1 || first + other != 3)
        outcome_fault(outcome, "a gap: %lld and %lld", (long long)first, (long long)other);
    if (!slice_equal(end, SLICE("{\"value\":2}"))) outcome_fault(outcome, "at the end %.*s", SLICE_ARG(end));
}

static const struct exploration keys = {
    .name = "counter with keys",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "b")},
    .before = {TABLES},
    .faults = 1,
    .check = check_keys};

static void check_three_keys(struct outcome *outcome)
{
    struct slice end = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    check_unique(outcome);
    if (!slice_equal(end, SLICE("{\"value\":4}"))) outcome_fault(outcome, "at the end %.*s", SLICE_ARG(end));
}

static const struct exploration more_keys = {
    .name = "counter with more keys",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "b"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "c")},
    .before = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "z")},
    .faults = 1,
    .check = check_three_keys};

/* Without a key a crash leaves a gap, so there is none here. */
static const struct exploration some_keys = {
    .name = "counter with some keys",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST("POST /v1/counters/x", NULL)},
    .before = {TABLES},
    .check = check_keys};

/* The same call twice, and no third that would only delay what shows. */
static void check_one_key(struct outcome *outcome)
{
    struct slice end = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    if (outcome_int(outcome, 0, "value") != 1 || outcome_int(outcome, 1, "value") != 1 ||
        !slice_equal(end, SLICE("{\"value\":1}")))
        outcome_fault(outcome, "at the end %.*s", SLICE_ARG(end));
}

static const struct exploration one_key = {
    .name = "counter with one key",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a")},
    .before = {TABLES},
    .faults = 1,
    .check = check_one_key};

TEST(explore_counter_with_keys)
{
    struct exploration calm = one_key; /* what shows without faults is found sooner without */
    calm.faults = 0;
    explore(&one_key);
    explore_broken(&calm, "attribute_not_exists(#intent)",
                   "(attribute_not_exists(#intent) or attribute_exists(#intent))");
    explore(&keys);
    explore_broken(&calm, "Key\":{\"token\":{\"S\":\"counter/x", "Key\":{\"token\":{\"S\":\"counter/y");
    explore(&more_keys);
    explore(&some_keys);
    explore_broken(&some_keys, "#value = if_not_exists(#value, :start) + :by\"", "#value = :by\"");
}

/* The counter stands at 1 and goes; who asks with a key gets 2 of the old one or the first of a new one, and
 * what is told stays true: the key gets the same number of the counter that there is. */
static void check_removed(struct outcome *outcome)
{
    int64_t value = outcome_int(outcome, 0, "value"), last = 0;
    struct slice end = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    bool is_there = raw_int(raw_member(outcome->arena, end, "value"), &last);
    if (value != 1 && value != 2) outcome_fault(outcome, "it got %lld", (long long)value);
    if (is_there && last != value)
        outcome_fault(outcome, "it got %lld of a counter at %lld", (long long)value, (long long)last);
    if (outcome->answers[0].began >= outcome->answers[1].event && value != 1)
        outcome_fault(outcome, "a number of the counter that was removed before");
}

static const struct exploration removed = {
    .name = "counter removed",
    .flows = {REQUEST_WITH("POST /v1/counters/x", NULL, "Idempotency-Key", "a"),
              REQUEST("DELETE /v1/counters/x", NULL)},
    .before = {REQUEST("POST /v1/counters/x", NULL), TABLES},
    .faults = 1,
    .never_late = true,
    .check = check_removed};

TEST(explore_counter_removed)
{
    explore(&removed);
}

/* A limit of 2: exactly two of the three get a number. */
static void check_limit(struct outcome *outcome)
{
    unsigned given = 0;
    for (unsigned i = 0; i < outcome->count; i++) given += outcome->answers[i].status == 200;
    struct slice end = outcome_ask(outcome, "GET /v1/counters/x", NULL);
    if (!slice_equal(end, SLICE("{\"value\":2}"))) outcome_fault(outcome, "at the end %.*s", SLICE_ARG(end));
    if (given != 2) outcome_fault(outcome, "%u got a number", given);
}

static const struct exploration limit = {.name = "counter with a limit",
                                         .flows = {REQUEST("POST /v1/counters/x", "{\"max\":2}"),
                                                   REQUEST("POST /v1/counters/x", "{\"max\":2}"),
                                                   REQUEST("POST /v1/counters/x", "{\"max\":2}")},
                                         .before = {TABLES},
                                         .check = check_limit};

TEST(explore_counter_with_a_limit)
{
    explore(&limit);
    explore_broken(&limit, "#value <= :bound", "#value <> :bound");
}
