/* Groups in every order: one completion per generation, exactly what the rule asks for, every accepted event
 * in the group that completes and in no other, ids once. */
#include "calendar/calendar.h"
#include "unit/pattern_explore.h"

#define QUIET_MS    10000
#define GENERATIONS 4

/* 700 bytes: it does not fit the head. */
#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LARGE X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

static struct slice generation_get(struct outcome *outcome, int64_t generation)
{
    char request[80];
    snprintf(request, sizeof request, "GET /v1/groups/g/k?generation=%lld", (long long)generation);
    return outcome_ask(outcome, request, NULL);
}

static int64_t member_int(struct outcome *outcome, struct slice object, const char *name)
{
    int64_t value;
    struct slice text = raw_text(outcome->arena, raw_member(outcome->arena, object, name));
    return text.data && raw_int(text, &value) ? value : -1;
}

/* Each event that a flow was told to be in a generation is in that one, once, and in no other; the heads
 * count what is there; nobody is told of a second completion. The flows' events have the ids e0, e1, ... */
static void check_generations(struct outcome *outcome)
{
    unsigned completions[GENERATIONS + 1] = {0};
    for (unsigned i = 0; i < outcome->count; i++) {
        int64_t generation = outcome_int(outcome, i, "generation");
        if (outcome->answers[i].status > 201 || generation < 1) continue;
        if (slice_contains(outcome->answers[i].body, SLICE("\"completed\":true")) &&
            ++completions[generation] > 1)
            outcome_fault(outcome, "generation %lld was completed twice", (long long)generation);
    }
    for (int64_t generation = 1; generation <= GENERATIONS; generation++) {
        struct slice group = generation_get(outcome, generation);
        if (slice_contains(group, SLICE("no-such-group"))) continue;
        int64_t events = (int64_t)raw_count(outcome->arena, raw_member(outcome->arena, group, "events"));
        if (events != member_int(outcome, group, "count")) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
        for (unsigned i = 0; i < outcome->count; i++) {
            char id[20];
            snprintf(id, sizeof id, "{\"id\":\"e%u\"", i);
            bool is_in = slice_contains(group, slice_of(id));
            bool told = outcome->answers[i].status <= 201 &&
                        outcome_int(outcome, i, "generation") == generation;
            if (slice_contains(outcome->answers[i].body, SLICE("\"accepted\":")) && is_in != told)
                outcome_fault(outcome, "event %u: %.*s but %.*s", i, SLICE_ARG(outcome->answers[i].body),
                              SLICE_ARG(group));
        }
    }
}

#define ADD(id, data)                                                                                        \
    REQUEST("POST /v1/groups/g/k", "{\"id\":\"" id "\",\"kind\":\"" id "\",\"data\":\"" data "\"}")
#define BEFORE(rules)                                                                                        \
    REQUEST("PUT /v1/groups/x", "{\"complete\":{\"size\":1},\"late\":\"new\"}"),                             \
        REQUEST("POST /v1/groups/x/k", "{\"id\":\"a\",\"data\":\"" LARGE "\"}"),                             \
        REQUEST("PUT /v1/groups/g", rules)

/* ---- by size ---- */

/* All flows but one are accepted: together with the event that was there they are what the rule asks for. */
static void check_rest(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    unsigned accepted = 0;
    check_generations(outcome);
    for (unsigned i = 0; i < outcome->count; i++) accepted += outcome->answers[i].status <= 201;
    if (member_int(outcome, group, "count") != 2 || accepted != 1)
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    if (!slice_contains(group, SLICE("\"state\":\"COMPLETE\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration second = {.name = "group of two that has one",
                                          .flows = {ADD("e0", "x"), ADD("e1", "x")},
                                          .before = {BEFORE("{\"complete\":{\"size\":2}}"), ADD("e8", "x")},
                                          .faults = 1,
                                          .check = check_rest};

/* Each of them sees room for two more. */
static void check_three(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    unsigned accepted = 0, completions = 0;
    check_generations(outcome);
    for (unsigned i = 0; i < outcome->count; i++) {
        accepted += outcome->answers[i].status <= 201;
        completions += slice_contains(outcome->answers[i].body, SLICE("\"completed\":true"));
    }
    if (member_int(outcome, group, "count") != 3 || accepted != 2 || completions != 1 ||
        !slice_contains(group, SLICE("\"state\":\"COMPLETE\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration third = {.name = "group of three that has one",
                                         .flows = {ADD("e0", "x"), ADD("e1", "x"), ADD("e2", "x")},
                                         .before = {BEFORE("{\"complete\":{\"size\":3}}"), ADD("e8", "x")},
                                         .check = check_three};

/* The event that makes the group complete comes twice, and one that comes too late may write that it is
 * complete: all callers of that event are told so, nobody else is. */
static void check_completions(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    bool is_first = slice_contains(group, SLICE("\"id\":\"e0\""));
    for (unsigned i = 0; i < outcome->count; i++) {
        bool told = slice_contains(outcome->answers[i].body, SLICE("\"completed\":true"));
        if (told != (is_first == (i < 2)))
            outcome_fault(outcome, "%u: %.*s", i, SLICE_ARG(outcome->answers[i].body));
    }
    if (member_int(outcome, group, "count") != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    if (!slice_contains(group, SLICE("\"state\":\"COMPLETE\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration completions = {
    .name = "group whose last event comes twice",
    .flows = {ADD("e0", "x"), ADD("e0", "x"), ADD("e1", "x")},
    .before = {BEFORE("{\"complete\":{\"size\":2}}"), ADD("e8", "x")},
    .check = check_completions};

/* It is complete once: when, is told to somebody who looks meanwhile, and stays. */
static void check_moment(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    struct slice told = outcome_text(outcome, 2, "completed");
    struct slice stays = raw_text(outcome->arena, raw_member(outcome->arena, group, "completed"));
    if (told.data && !slice_equal(told, stays)) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration moment = {
    .name = "group that is complete once",
    .flows = {ADD("e0", "x"), ADD("e0", "x"), REQUEST("GET /v1/groups/g/k", NULL)},
    .before = {BEFORE("{\"complete\":{\"when\":\"count >= 2\"}}"), ADD("e8", "x")},
    .jumps = {1000},
    .check = check_moment};

static void check_two(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    check_generations(outcome);
    if (member_int(outcome, group, "count") != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    if (!slice_contains(group, SLICE("\"state\":\"COMPLETE\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration two = {.name = "group of two",
                                       .flows = {ADD("e0", "x"), ADD("e1", "x")},
                                       .before = {BEFORE("{\"complete\":{\"size\":2}}")},
                                       .faults = 1,
                                       .check = check_two};

/* Large events have items of their own. One is there. */
static void check_large(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    check_generations(outcome);
    if (member_int(outcome, group, "count") != 3) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration large = {.name = "group of two large events",
                                         .flows = {ADD("e0", LARGE), ADD("e1", LARGE)},
                                         .before = {BEFORE("{\"complete\":{\"size\":2}}")},
                                         .faults = 1,
                                         .check = check_two};

static const struct exploration larger = {.name = "group with large events that has one",
                                          .flows = {ADD("e0", LARGE), ADD("e1", LARGE)},
                                          .before = {BEFORE("{\"complete\":{\"size\":5}}"), ADD("e8", LARGE)},
                                          .faults = 1,
                                          .check = check_large};

TEST(explore_group_of_two)
{
    explore(&second);
    explore_broken(&second, "#state = :state and not contains(#ids, :id)",
                   "(#state = :state or #state <> :state) and not contains(#ids, :id)");
    explore(&third);
    explore_broken(&third, " and not (#count >= :size)", " and (#count >= :size or #count < :size)");
    explore(&completions);
    explore_broken(&completions, "#by = :last", "#by = if_not_exists(#by, :why)");
    explore(&moment);
    explore_broken(&moment, "#state = :open and (#count >= :w_v1)",
                   "(#state = :open or #state <> :open) and (#count >= :w_v1)");
    explore(&two);
}

/* The first ones that the head has no room for, beside one that it has room for. */
static const struct exploration first_large = {
    .name = "group with its first large events",
    .flows = {ADD("e0", LARGE), ADD("e1", LARGE)},
    .before = {BEFORE("{\"complete\":{\"size\":5}}"), ADD("e8", "x")},
    .faults = 1,
    .check = check_large};

static const struct exploration mixed = {.name = "group with a small and a large event",
                                         .flows = {ADD("e0", LARGE), ADD("e1", "x")},
                                         .before = {BEFORE("{\"complete\":{\"size\":3}}"), ADD("e8", "x")},
                                         .faults = 1,
                                         .check = check_large};

TEST(explore_group_of_large_events)
{
    explore(&mixed);
    explore(&first_large);
    explore_broken(&first_large, "attribute_not_exists(#spilled)",
                   "(attribute_not_exists(#spilled) or attribute_exists(#spilled))");
    explore(&large);
    explore(&larger);
    explore_broken(&larger, "#count = :seen", "(#count = :seen or #count <> :seen)");
    explore_broken(&larger, "attribute_not_exists(#part)", "attribute_exists(#part)");
}

/* Large events that come late stand beside the others, once. */
static void check_late(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    check_generations(outcome);
    if (member_int(outcome, group, "count") != 4) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration late = {
    .name = "group with large events that come late",
    .flows = {ADD("e0", LARGE), ADD("e1", LARGE)},
    .before = {BEFORE("{\"complete\":{\"size\":2},\"late\":\"append\"}"), ADD("e8", LARGE), ADD("e9", LARGE)},
    .faults = 1,
    .check = check_late};

/* Whoever was at it while the group was deleted, and a new one begun, leaves nothing there. */
static void check_counts(struct outcome *outcome)
{
    for (int64_t generation = 1; generation <= GENERATIONS; generation++) {
        struct slice group = generation_get(outcome, generation);
        int64_t events = (int64_t)raw_count(outcome->arena, raw_member(outcome->arena, group, "events"));
        if (!slice_contains(group, SLICE("no-such-group")) && events != member_int(outcome, group, "count"))
            outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    }
    struct slice group = outcome_ask(outcome, "POST /v1/groups/g/k",
                                     "{\"id\":\"e0\",\"data\":\"" LARGE "\"}");
    if (!slice_contains(group, SLICE("\"generation\":1"))) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration deleted = {
    .name = "group with large events that is deleted",
    .flows = {ADD("e0", LARGE), REQUEST("DELETE /v1/groups/g/k", NULL), ADD("e1", LARGE)},
    .before = {BEFORE("{\"complete\":{\"size\":5}}"), ADD("e8", LARGE)},
    .check = check_counts};

TEST(explore_group_with_late_and_deleted_events)
{
    explore(&late);
    explore_broken(&late, "#count = :seen", "(#count = :seen or #count <> :seen)");
    explore(&deleted);
}

/* The same event by two callers is one, beside the one that was there. */
static void check_same(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    if (member_int(outcome, group, "count") != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    if (raw_count(outcome->arena, raw_member(outcome->arena, group, "events")) != 2)
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration same = {.name = "group with an event twice",
                                        .flows = {ADD("e0", "x"), ADD("e0", "x")},
                                        .before = {BEFORE("{\"complete\":{\"size\":4}}"), ADD("e8", "x")},
                                        .faults = 1,
                                        .check = check_same};

static const struct exploration same_large = {
    .name = "group with a large event twice",
    .flows = {ADD("e0", LARGE), ADD("e0", LARGE)},
    .before = {BEFORE("{\"complete\":{\"size\":4}}"), ADD("e8", LARGE)},
    .faults = 1,
    .check = check_same};

TEST(explore_group_with_an_event_twice)
{
    explore(&same);
    explore_broken(&same, "not contains(#ids, :id)", "(not contains(#ids, :id) or :id = :id)");
    explore(&same_large);
    explore_broken(&same_large, "#count = :seen", "(#count = :seen or #count <> :seen)");
}

/* ---- by kinds and condition ---- */

static const struct exploration kinds = {
    .name = "group of two kinds that has one",
    .flows = {ADD("e0", "x"), ADD("e1", "x")},
    .before = {BEFORE(
                   "{\"complete\":{\"when\":{\"expression\":\"size(#kinds) >= :n\",\"values\":{\":n\":2}}}}"),
               ADD("e8", "x")},
    .faults = 1,
    .check = check_rest};

TEST(explore_group_by_a_condition)
{
    explore(&kinds);
    explore_broken(&kinds, " and not (size(#kinds) >= :w_n)", " and (size(#kinds) >= :w_n or :w_n = :w_n)");
}

/* ---- generations ---- */

static void check_each_its_own(struct outcome *outcome)
{
    check_generations(outcome);
    for (unsigned i = 0; i < outcome->count; i++)
        if (outcome->answers[i].status > 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
    for (int64_t generation = 1; generation <= outcome->count; generation++) {
        struct slice group = generation_get(outcome, generation);
        if (member_int(outcome, group, "count") != 1) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
    }
}

static const struct exploration generations = {
    .name = "group with generations",
    .flows = {ADD("e0", "x"), ADD("e1", "x")},
    .before = {BEFORE("{\"complete\":{\"size\":1},\"late\":\"new\"}")},
    .faults = 1,
    .check = check_each_its_own};

/* The same event by two callers, while others complete the group: it is in one generation, and both are told so. */
static void check_one_generation(struct outcome *outcome)
{
    unsigned found = 0;
    for (int64_t generation = 1; generation <= GENERATIONS; generation++) {
        struct slice group = generation_get(outcome, generation);
        int64_t events = (int64_t)raw_count(outcome->arena, raw_member(outcome->arena, group, "events"));
        if (slice_contains(group, SLICE("no-such-group"))) continue;
        if (events != member_int(outcome, group, "count")) outcome_fault(outcome, "%.*s", SLICE_ARG(group));
        if (!slice_contains(group, SLICE("{\"id\":\"e0\""))) continue;
        found++;
        for (unsigned i = 0; i < 2; i++)
            if (outcome_int(outcome, i, "generation") != generation)
                outcome_fault(outcome, "%u: %.*s but %.*s", i, SLICE_ARG(outcome->answers[i].body),
                              SLICE_ARG(group));
    }
    if (found != 1) outcome_fault(outcome, "it is in %u generations", found);
}

static const struct exploration one_generation = {
    .name = "group with generations and an event twice",
    .flows = {ADD("e0", "x"), ADD("e0", "x"), ADD("e2", "x")},
    .before = {BEFORE("{\"complete\":{\"size\":2},\"late\":\"new\"}"), ADD("e8", "x")},
    .check = check_one_generation};

static const struct exploration large_generations = {
    .name = "group with generations of large events",
    .flows = {ADD("e0", LARGE), ADD("e1", LARGE)},
    .before = {BEFORE("{\"complete\":{\"size\":1},\"late\":\"new\"}")},
    .faults = 1,
    .check = check_each_its_own};

TEST(explore_group_with_generations)
{
    explore(&one_generation);
    explore(&large_generations);
    explore(&generations);
    explore_broken(&generations, "attribute_not_exists(#token)",
                   "(attribute_not_exists(#token) or attribute_exists(#token))");
}

/* ---- quiet ---- */

/* The second event comes while nothing has come for long: it is in the group that is completed, which then
 * was not quiet, or in the next. */
static void check_quiet(struct outcome *outcome)
{
    struct slice group = generation_get(outcome, 1);
    int64_t touched_ms = 0, completed_ms = 0;
    check_generations(outcome);
    if (outcome->answers[0].status > 201) outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    moment_parse(raw_text(outcome->arena, raw_member(outcome->arena, group, "touched")), &touched_ms);
    if (!moment_parse(raw_text(outcome->arena, raw_member(outcome->arena, group, "completed")),
                      &completed_ms))
        return;
    if (completed_ms - touched_ms < QUIET_MS)
        outcome_fault(outcome, "it was not quiet: %.*s", SLICE_ARG(group));
}

static const struct exploration quiet = {
    .name = "group that is quiet",
    .flows = {ADD("e0", "x"), REQUEST("GET /v1/groups/g/k", NULL)},
    .before = {BEFORE("{\"quiet\":\"10s\",\"late\":\"new\"}"), ADD("e8", "x")},
    .jumps = {QUIET_MS / 2, QUIET_MS / 2 + 1},
    .faults = 1,
    .check = check_quiet};

static const struct exploration swept = {
    .name = "group that is quiet, by the sweep",
    .flows = {ADD("e0", "x"), REQUEST("SWEEP groups", NULL)},
    .before = {BEFORE("{\"quiet\":\"10s\",\"late\":\"new\"}"), ADD("e8", "x")},
    .jumps = {QUIET_MS / 2, QUIET_MS / 2 + 1},
    .check = check_quiet};

TEST(explore_group_that_is_quiet)
{
    explore(&quiet);
    explore_broken(&quiet, "#touched = :touched", "#touched >= :touched");
    explore_broken(&quiet, "#state = :state and not contains(#ids, :id)",
                   "(#state = :state or #state <> :state) and not contains(#ids, :id)");
    explore(&swept);
}

/* ---- by a call ---- */

/* Complete, whoever was first; of both callers at most one is told; an event is in it or is told that it is late. */
static void check_called(struct outcome *outcome)
{
    struct slice group = outcome_ask(outcome, "GET /v1/groups/g/k", NULL);
    unsigned told = 0;
    for (unsigned i = 0; i < outcome->count; i++) {
        told += slice_contains(outcome->answers[i].body, SLICE("\"completed\":true"));
        if (outcome->answers[i].status > 201 && outcome->answers[i].status != 409)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
    }
    bool is_in = slice_contains(group, SLICE("{\"id\":\"e0\""));
    if (told > 1 || !slice_contains(group, SLICE("\"state\":\"COMPLETE\"")) ||
        is_in != (outcome->answers[0].status <= 201) || member_int(outcome, group, "count") != 1 + is_in)
        outcome_fault(outcome, "%.*s", SLICE_ARG(group));
}

static const struct exploration called = {
    .name = "group that is completed by two calls",
    .flows = {ADD("e0", "x"), REQUEST("POST /v1/groups/g/k/complete", NULL),
              REQUEST("POST /v1/groups/g/k/complete", NULL)},
    .before = {BEFORE("{\"complete\":{\"size\":2}}"), ADD("e8", "x")},
    .faults = 1,
    .check = check_called};

/* The same call again after the next generation was opened: that one stays open. */
static void check_once(struct outcome *outcome)
{
    struct slice next = generation_get(outcome, 2);
    if (!slice_contains(generation_get(outcome, 1), SLICE("\"why\":\"call\"")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(generation_get(outcome, 1)));
    if (slice_contains(next, SLICE("COMPLETE"))) outcome_fault(outcome, "%.*s", SLICE_ARG(next));
}

static const struct exploration once_called = {
    .name = "group that is completed by a call that comes twice",
    .flows = {ADD("e0", "x"), REQUEST_WITH("POST /v1/groups/g/k/complete", NULL, "Idempotency-Key", "t"),
              REQUEST_WITH("POST /v1/groups/g/k/complete", NULL, "Idempotency-Key", "t")},
    .before = {BEFORE("{\"complete\":{\"size\":5},\"late\":\"new\"}"), ADD("e8", "x")},
    .faults = 1,
    .check = check_once};

TEST(explore_group_completed_by_a_call)
{
    explore(&called);
    explore_broken(&called, "#state = :open and #rules = :rules",
                   "(#state = :open or #state <> :open) and #rules = :rules");
    explore(&once_called);
}
