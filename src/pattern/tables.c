/* The tables of a call that found one missing: all are made, so that they become ready at the same time; each
 * is waited for and given its time to live; then the call is repeated. Several flows may do it at the same
 * time: whoever comes second finds it done. */
#include "base/fail.h"
#include "pattern/flow.h"

#define LOOK_AGAIN_MS 200 /* a table on AWS takes some seconds to become active */
#define LOOKS_MOST    300

static flow_step step_created, step_described, step_expiring, step_look_again;

static const struct flow_table *present(const struct flow *flow)
{
    return flow->kept.tables[flow->kept.at];
}

/* A call about the table itself. */
static void ask(struct flow *flow, flow_step *then, const char *operation, struct slice members)
{
    struct slice name = slice_of(present(flow)->name);
    flow_call(flow, then, operation, "{'TableName':'%r%r'%r}", flow->world->prefix, name, members);
    flow->sees_error = true;
}

/* ScyllaDB Alternator may be told to write without a look at what is there; a table of ours is only right where
 * every write looks. Its streams may not be offered, and nobody reads ours: nothing carries out reactions there. */
static void create(struct flow *flow)
{
    struct slice name = slice_of(present(flow)->name);
    struct slice definition = flow_compose(flow, present(flow)->definition);
    struct slice stream = flow_compose(flow, "," FLOW_STREAM), plain = definition;
    ask(flow, step_created, "CreateTable",
        flow_compose(flow, ",'BillingMode':'PAY_PER_REQUEST',%r", definition));
    if (slice_contains(plain, stream)) plain.len -= stream.len;
    flow->call_on_alternator = flow_compose(flow,
                                            "{'TableName':'%r%r','BillingMode':'PAY_PER_REQUEST',%r,"
                                            "'Tags':[{'Key':'system:write_isolation','Value':'always'}]}",
                                            flow->world->prefix, name, plain);
}

void tables_make(struct flow *flow)
{
    flow->kept.operation = flow->operation;
    flow->kept.call = flow->call;
    flow->kept.then = flow->then;
    flow->kept.table_count = flow->table_count;
    flow->kept.at = 0;
    memcpy(flow->kept.tables, flow->tables, sizeof flow->tables);
    flow->makes_tables = false;
    create(flow);
}

static void fail(struct flow *flow)
{
    flow_refuse(flow, 502, "no-table", "The table %.*s%s could not be made: %.*s",
                SLICE_ARG(flow->world->prefix), present(flow)->name, SLICE_ARG(flow->reply.body));
}

static void repeat_call(struct flow *flow)
{
    flow->makes_tables = true;
    flow->want = FLOW_CALL;
    flow->operation = flow->kept.operation;
    flow->call = flow->kept.call;
    flow->then = flow->kept.then;
    flow->table_count = flow->kept.table_count;
    memcpy(flow->tables, flow->kept.tables, sizeof flow->tables);
}

static void step_look_again(struct flow *flow)
{
    ask(flow, step_described, "DescribeTable", SLICE(""));
}

static void step_created(struct flow *flow)
{
    bool is_there = slice_equal(flow->reply.error, SLICE("ResourceInUseException"));
    if (flow->reply.status != 200 && !is_there) {
        fail(flow);
    } else if (++flow->kept.at < flow->kept.table_count) {
        create(flow);
    } else {
        flow->kept.at = 0;
        flow->races = 0;
        step_look_again(flow);
    }
}

static void next_table(struct flow *flow)
{
    flow->races = 0;
    if (++flow->kept.at < flow->kept.table_count)
        step_look_again(flow);
    else
        repeat_call(flow);
}

static void step_described(struct flow *flow)
{
    struct slice table = raw_member(flow->arena, flow->reply.body, "Table");
    struct slice status = raw_text(flow->arena, raw_member(flow->arena, table, "TableStatus"));
    bool is_active = slice_equal(status, SLICE("ACTIVE")) || slice_equal(status, SLICE("UPDATING"));
    if (!is_active && flow->races++ == LOOKS_MOST) {
        fail(flow);
    } else if (!is_active) {
        flow_pause(flow, LOOK_AGAIN_MS, step_look_again);
    } else if (present(flow)->expiry) {
        ask(flow, step_expiring, "UpdateTimeToLive",
            flow_compose(flow, ",'TimeToLiveSpecification':{'Enabled':true,'AttributeName':%s}",
                         slice_of(present(flow)->expiry)));
    } else {
        next_table(flow);
    }
}

/* Where it could not be set (it is on already, or the engine has none) things merely stay longer: every flow
 * looks at the time itself. */
static void step_expiring(struct flow *flow)
{
    next_table(flow);
}
