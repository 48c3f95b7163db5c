/* Rules that are changed while events come, in every order: whoever is dropped when, in the end a group has the
 * rules that were put last, and no event is in a group that was complete before. */
#include "unit/pattern_explore.h"

#define ADD(id)   REQUEST("POST /v1/groups/g/k", "{\"id\":\"" id "\"}")
#define PUT(size) REQUEST("PUT /v1/groups/g", "{\"complete\":{\"size\":" size "}}")

static int64_t number(struct outcome *outcome, struct slice item, const char *name)
{
    return item_int(outcome->arena, raw_member(outcome->arena, item, "Item"), name, -1);
}

static struct slice rules_get(struct outcome *outcome)
{
    return outcome_call(outcome, "GetItem",
                        "{\"TableName\":\"quipu-group-rules\",\"Key\":{\"name\":{\"S\":\"g\"}}}");
}

static struct slice head_get(struct outcome *outcome)
{
    return outcome_call(outcome, "GetItem",
                        "{\"TableName\":\"quipu-groups\",\"Key\":{\"group\":{\"S\":\"g/k\"},"
                        "\"generation\":{\"N\":\"1\"}}}");
}

/* An OPEN group has the rules that are there, and does not have what they ask for; a complete one has as many
 * events as some rules asked for. */
static void check_rules(struct outcome *outcome)
{
    struct slice rules = rules_get(outcome), head = head_get(outcome);
    bool is_open = slice_contains(head, SLICE("\"OPEN\""));
    int64_t count = number(outcome, head, "count"), size = number(outcome, head, "size");
    if (number(outcome, rules, "applied") != number(outcome, rules, "version"))
        outcome_fault(outcome, "not applied: %.*s", SLICE_ARG(rules));
    if (is_open && (number(outcome, head, "rules") != number(outcome, rules, "version") ||
                    size != number(outcome, rules, "size")))
        outcome_fault(outcome, "old rules: %.*s", SLICE_ARG(head));
    if (is_open == (count >= size)) outcome_fault(outcome, "%.*s", SLICE_ARG(head));
    for (unsigned i = 0; i < outcome->count; i++)
        if (outcome->answers[i].status > 201 && outcome->answers[i].status != 409)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
}

/* Completed by an event, it has exactly what its rules ask for. */
static void check_smaller(struct outcome *outcome)
{
    struct slice head = head_get(outcome);
    check_rules(outcome);
    bool is_by_event = slice_contains(head, SLICE("\"why\":{\"S\":\"rule\"}"));
    if (is_by_event && number(outcome, head, "count") != number(outcome, head, "size"))
        outcome_fault(outcome, "too many: %.*s", SLICE_ARG(head));
}

static const struct exploration smaller = {.name = "group whose size is lowered while events come",
                                           .flows = {ADD("e0"), PUT("2")},
                                           .before = {PUT("4"), ADD("e8")},
                                           .check = check_smaller};

static const struct exploration larger = {.name = "group whose size is raised while its last event comes",
                                          .flows = {ADD("e0"), PUT("3")},
                                          .before = {PUT("2"), ADD("e8")},
                                          .faults = 1,
                                          .check = check_rules};

TEST(explore_group_change_while_events_come)
{
    explore(&smaller);
    explore(&larger);
    explore_broken(&larger, "#rules = :rules", "(#rules <= :rules or #rules > :rules)");
}

/* Both put rules: whoever was last, all of it. */
static const struct exploration both = {.name = "group whose rules are changed by two",
                                        .flows = {PUT("2"), PUT("5")},
                                        .before = {PUT("4"), ADD("e8")},
                                        .check = check_rules};

TEST(explore_group_change_by_two)
{
    explore(&both);
    explore_broken(&both, "#rules < :r_rules", "(#rules < :r_rules or #rules >= :r_rules)");
}

static const struct exploration opened = {.name = "group that is opened while its rules are changed",
                                          .flows = {ADD("e0"), PUT("1")},
                                          .before = {PUT("4"), REQUEST("POST /v1/groups/g/other", "{}")},
                                          .check = check_rules};

static const struct exploration reopened = {.name = "group that is opened while its rules grow",
                                            .flows = {ADD("e0"), PUT("3")},
                                            .before = {PUT("2"), REQUEST("POST /v1/groups/g/other", "{}")},
                                            .check = check_rules};

/* Whoever opened it may have been dropped before it had read the rules once more: then the sweep gives them. */
static void check_swept(struct outcome *outcome)
{
    outcome_jump(outcome, 61000);
    outcome_ask(outcome, "SWEEP groups", NULL);
    check_rules(outcome);
}

static const struct exploration dropped = {.name = "group that is opened by one who is dropped",
                                           .flows = {ADD("e0"), PUT("3")},
                                           .before = {PUT("2"), REQUEST("POST /v1/groups/g/other", "{}")},
                                           .faults = 1,
                                           .check = check_swept};

TEST(explore_group_change_while_it_is_opened)
{
    explore(&dropped);
    explore_broken(&dropped, "\"#again\":\"again\"", "\"#again\":\"never\"");
    explore(&opened);
    explore(&reopened);
}
