/* The table of a call that found it missing: it is made, waited for and given its time to live; then the call is
 * repeated. Several flows may do it at the same time: whoever comes second finds it done. */
#include "dynamo/dynamo.h"
#include "pattern/flow.h"

#define LOOK_AGAIN_MS 200 /* a table on AWS takes some seconds to become active */
#define LOOKS_MOST    300

/* Appends one or two keys, "slot due:N", to a schema, and their types to those of the table, each once. */
static void put_keys(struct flow *flow, struct slice *words, struct buf *schema, struct buf *types)
{
    static const struct slice kinds[] = {SLICE("HASH"), SLICE("RANGE")};
    for (size_t i = 0; i < 2 && words->len; i++) {
        struct slice type = slice_cut(words, ' '), name = slice_cut(&type, ':');
        struct slice typed = flow_compose(flow, "{'AttributeName':%s,'AttributeType':%s}", name,
                                          type.len ? type : SLICE("S"));
        flow_put(flow, schema, "%,{'AttributeName':%s,'KeyType':%s}", name, kinds[i]);
        if (!slice_contains(buf_view(types), typed)) flow_put(flow, types, "%,%A", typed);
    }
}

static void put_index(struct flow *flow, struct slice words, struct buf *indexes, struct buf *types)
{
    struct slice name = slice_cut(&words, ' '), more = SLICE("");
    struct buf schema = {0};
    put_keys(flow, &words, &schema, types);
    bool has_all = slice_equal(words, SLICE("*")), has_more = words.len && !has_all;
    while (has_more && words.len) more = flow_compose(flow, "%A%,%s", more, slice_cut(&words, ' '));
    flow_put(flow, indexes,
             "%,{'IndexName':%s,'KeySchema':[%A],'Projection':{'ProjectionType':%s"
             "%[%?,'NonKeyAttributes':[%A]%]}}",
             name, buf_view(&schema),
             has_all    ? SLICE("ALL")
             : has_more ? SLICE("INCLUDE")
                        : SLICE("KEYS_ONLY"),
             has_more, more);
    buf_free(&schema);
}

/* As members of CreateTable's request, the stream at the end. */
static struct slice definition_of(struct flow *flow, const struct flow_table *table)
{
    struct slice rest = slice_of(table->definition), part = slice_cut(&rest, ';');
    struct buf schema = {0}, types = {0}, indexes = {0};
    bool has_stream = false;
    put_keys(flow, &part, &schema, &types);
    while (rest.len) {
        part = slice_trim(slice_cut(&rest, ';'));
        has_stream = slice_equal(part, SLICE("stream"));
        if (!has_stream) put_index(flow, part, &indexes, &types);
    }
    bool has_indexes = indexes.len;
    return flow_compose(flow,
                        "'KeySchema':[%A],'AttributeDefinitions':[%A]%[%?,'GlobalSecondaryIndexes':[%A]%]"
                        "%[%?," FLOW_STREAM "%]",
                        arena_take(flow->arena, &schema), arena_take(flow->arena, &types), has_indexes,
                        arena_take(flow->arena, &indexes), has_stream);
}

/* Asks about the table, and takes whatever is answered. */
static void ask(struct flow *flow, const struct flow_table *table, const char *operation,
                struct slice members)
{
    task_try(flow, operation, "{'TableName':'%r%r'%r}", flow->world->prefix, slice_of(table->name), members);
}

static _Noreturn void fail(struct flow *flow, const struct flow_table *table)
{
    struct slice name, message;
    dynamo_error(flow->reply.body, flow->arena, &name, &message);
    task_refuse(flow, 502, "no-table", "The table %.*s%s could not be made: the database answered %.*s: %.*s",
                SLICE_ARG(flow->world->prefix), table->name, SLICE_ARG(name), SLICE_ARG(message));
}

static void create_as(struct flow *flow, const struct flow_table *table, struct slice definition)
{
    task_try(flow, "CreateTable", "{'TableName':'%r%r','BillingMode':'PAY_PER_REQUEST',%r}",
             flow->world->prefix, slice_of(table->name), definition);
}

/* Not every ScyllaDB Alternator offers streams: without one, all but reactions works. */
static void create(struct flow *flow, const struct flow_table *table)
{
    struct slice definition = definition_of(flow, table), stream = flow_compose(flow, "," FLOW_STREAM);
    create_as(flow, table, definition);
    if (slice_equal(flow->reply.error, SLICE("ValidationException")) && slice_contains(definition, stream))
        create_as(flow, table, (struct slice){definition.data, definition.len - stream.len});
    bool is_there = slice_equal(flow->reply.error, SLICE("ResourceInUseException"));
    if (flow->reply.status != 200 && !is_there) fail(flow, table);
}

static bool is_active(struct flow *flow, const struct flow_table *table)
{
    ask(flow, table, "DescribeTable", SLICE(""));
    struct slice described = raw_member(flow->arena, flow->reply.body, "Table");
    struct slice status = raw_text(flow->arena, raw_member(flow->arena, described, "TableStatus"));
    return slice_equal(status, SLICE("ACTIVE")) || slice_equal(status, SLICE("UPDATING"));
}

/* Until it is there, with its time to live. Where that could not be set (it is on already, or the engine has none)
 * things merely stay longer: every flow looks at the time itself. */
static void await_ready(struct flow *flow, const struct flow_table *table)
{
    for (unsigned looks = 0; !is_active(flow, table); looks++) {
        if (looks == LOOKS_MOST) fail(flow, table);
        task_sleep(flow, LOOK_AGAIN_MS);
    }
    if (table->expiry)
        ask(flow, table, "UpdateTimeToLive",
            flow_compose(flow, ",'TimeToLiveSpecification':{'Enabled':true,'AttributeName':%s}",
                         slice_of(table->expiry)));
}

void flow_make_table(struct flow *flow)
{
    const struct flow_table *table = flow->table;
    create(flow, table);
    await_ready(flow, table);
    flow->table = table;
}
