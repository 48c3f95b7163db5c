/* An intent of the plainest kind in every order: an account with a sum, and an entry for each change of it. At the end
 * the entries make up the sum, whoever died and whatever came late. */
#include "pattern/intent.h"
#include "pattern/rows.h"
#include "unit/pattern_explore.h"

static const struct flow_table accounts = {"accounts", "name", NULL};

static const struct flow_table entries = {"entries", "entry", NULL};

enum { NAME, BY };

static const struct field add_fields[] = {
    [NAME] = {"name", IN_PATH, FIELD_NAME, true},
    [BY] = {"by", IN_BODY, FIELD_INT, .min = -9, .max = 9},
};

static void put_entry(struct flow *flow, struct slice anchor)
{
    task_call(
        flow, "PutItem",
        "{'TableName':%T,'Item':{'entry':%A,'by':%A},'ConditionExpression':'attribute_not_exists(#entry)',%#}",
        &entries, item_attribute(flow->arena, anchor, "intent"), item_attribute(flow->arena, anchor, "redo"));
}

static struct intent account_of(struct flow *flow)
{
    return (struct intent){&accounts, flow_compose(flow, "{'name':%S}", flow_text(flow, NAME)), put_entry};
}

/* The sum is computed from what was read: only the intent tells whether it still is so. */
static void add(struct flow *flow)
{
    struct intent intent = account_of(flow);
    struct slice account = intent_read(flow, &intent);
    for (;;) {
        int64_t by = flow_int(flow, BY), sum = item_int(flow->arena, account, "sum", 0) + by;
        struct intent_change change = {.redo = flow_compose(flow, "%N", by),
                                       .update = SLICE(", #sum = :sum"),
                                       .values = flow_compose(flow, ",':sum':%N", sum)};
        if (intent_write(flow, &intent, &account, &change)) break;
        task_again(flow);
        account = intent_finish(flow, &intent, account);
    }
    flow_answer(flow, 200, "{'sum':%r}", item_text(flow->arena, account, "sum"));
}

/* What a reader is told is finished first. */
static void show(struct flow *flow)
{
    struct intent intent = account_of(flow);
    flow_answer(flow, 200, "{'sum':%d}", item_int(flow->arena, intent_read(flow, &intent), "sum", 0));
}

static const struct flow_row rows[] = {
    {.method = "POST", .path = "/{name}", .begin = add, .fields = add_fields, .field_count = 2},
    {.method = "GET", .path = "/{name}", .begin = show, .fields = add_fields, .field_count = 1},
};

static int64_t sum_of_entries(struct outcome *outcome)
{
    struct slice all = outcome_call(outcome, "Scan",
                                    "{\"TableName\":\"quipu-entries\",\"ConsistentRead\":true}"),
                 item;
    struct raw_look look;
    int64_t sum = 0;
    raw_look_begin(&look, outcome->arena, raw_member(outcome->arena, all, "Items"));
    while (raw_look_next(&look, NULL, &item)) sum += item_int(outcome->arena, item, "by", 0);
    return sum;
}

static void check_sum(struct outcome *outcome)
{
    int64_t entered = sum_of_entries(outcome), sum = 0;
    for (unsigned i = 0; i < outcome->count; i++)
        if (outcome->answers[i].status != 200) outcome_fault(outcome, "flow %u was not answered", i);
    struct slice answer = outcome_ask(outcome, "GET /x", NULL);
    struct slice account = outcome_call(
        outcome, "GetItem", "{\"TableName\":\"quipu-accounts\",\"Key\":{\"name\":{\"S\":\"x\"}}}");
    raw_int(raw_member(outcome->arena, answer, "sum"), &sum);
    if (item_has(outcome->arena, raw_member(outcome->arena, account, "Item"), "redo"))
        outcome_fault(outcome, "something is left to do");
    if (sum_of_entries(outcome) != sum)
        outcome_fault(outcome, "the sum is %lld, the entries make %lld", (long long)sum, (long long)entered);
}

#define OWN_ROWS .rows = rows, .row_count = 2

static const struct exploration two = {
    .name = "intent",
    OWN_ROWS,
    .flows = {REQUEST("POST /x", "{\"by\":1}"), REQUEST("POST /x", "{\"by\":2}")},
    .before = {REQUEST("POST /other", "{\"by\":0}")},
    .faults = 2,
    .check = check_sum};

/* The sum goes up and comes back: all but the id looks as it did. */
static const struct exploration back = {
    .name = "intent that comes back",
    OWN_ROWS,
    .flows = {REQUEST("POST /x", "{\"by\":1}"), REQUEST("POST /x", "{\"by\":-1}"), REQUEST("GET /x", NULL)},
    .before = {REQUEST("POST /x", "{\"by\":1}")},
    .faults = 1,
    .check = check_sum};

TEST(explore_intent)
{
    struct exploration calm = two, calm_back = back; /* what shows without faults is found sooner without */
    calm.faults = calm_back.faults = 0;
    explore(&two);
    explore_broken(&two, "\"#intent = :intent\"", "\"#intent = :intent or attribute_exists(#redo)\"");
    explore_broken(&calm, "attribute_not_exists(#intent)",
                   "(attribute_not_exists(#intent) or attribute_exists(#intent))");
    explore(&back);
    explore_broken(&calm_back, "#intent = :seen", "(#intent = :seen or attribute_exists(#intent))");
}
