/* Deleting a log, or a group of consumers: page after page of all that belongs to it, its own item last, so
 * that a repeat goes on where a crash ended it. The log is marked before, and nothing is appended or read any
 * more; an append that was on its way may leave an event behind. */
#include "pattern/log.h"
#include "pattern/sweep.h"

/* What is being emptied: items found by a query, page by page, until it finds none. */
struct clearing {
    const struct flow_table *table;
    const char *keys[2]; /* names of the key's attributes; the second may be NULL */
    struct slice query;  /* members of the request behind the table's name */
    struct slice *items; /* keys */
    size_t count, done;
    flow_step *then;
};

struct deletion {
    struct clearing clearing;
    struct slice group_name, group_key, parked_key; /* of the group that is being removed */
    flow_step *behind_group;
    int64_t slots, slot;
    struct slice heads[LOG_PAGE];
    unsigned head_count, head;
};

/* ---- emptying ---- */

static flow_step clear_ask, clear_listed, clear_next;

static void clear_begin(struct flow *flow, const struct flow_table *table, const char *first,
                        const char *second, struct slice query, flow_step *then)
{
    struct deletion *deletion = flow->state;
    deletion->clearing = (struct clearing){
        .table = table, .keys = {first, second}, .query = query, .then = then};
    clear_ask(flow);
}

static void clear_ask(struct flow *flow)
{
    const struct clearing *clearing = &((struct deletion *)flow->state)->clearing;
    flow_call(flow, clear_listed, "Query", "{'TableName':%T,%A}", clearing->table, clearing->query);
}

static struct slice key_of(struct flow *flow, const struct clearing *clearing, struct slice item)
{
    struct slice first = item_attribute(flow->arena, item, clearing->keys[0]);
    if (!clearing->keys[1]) return flow_compose(flow, "{%s:%A}", slice_of(clearing->keys[0]), first);
    return flow_compose(flow, "{%s:%A,%s:%A}", slice_of(clearing->keys[0]), first,
                        slice_of(clearing->keys[1]), item_attribute(flow->arena, item, clearing->keys[1]));
}

static void clear_listed(struct flow *flow)
{
    struct clearing *clearing = &((struct deletion *)flow->state)->clearing;
    struct slice items = flow_items(flow), item;
    struct raw_look look;
    clearing->items = arena_array(flow->arena, struct slice, raw_count(flow->arena, items));
    clearing->count = clearing->done = 0;
    raw_look_begin(&look, flow->arena, items);
    while (raw_look_next(&look, NULL, &item))
        clearing->items[clearing->count++] = key_of(flow, clearing, item);
    if (clearing->count)
        clear_next(flow);
    else if (flow_last_key(flow).data) /* a page of nothing but what a filter has left out */
        flow_again(flow, clear_ask);
    else
        clearing->then(flow);
}

static void clear_next(struct flow *flow)
{
    struct clearing *clearing = &((struct deletion *)flow->state)->clearing;
    const struct slice *keys = clearing->items + clearing->done;
    size_t count = clearing->count - clearing->done;
    if (!count) {
        clear_ask(flow);
        return;
    }
    if (count > SWEEP_REMOVED) count = SWEEP_REMOVED;
    clearing->done += count;
    sweep_remove(flow, clearing->table, keys, count, clear_next);
}

/* A query for all items of one hash key; names as in expressions: "#group", "#event". */
static struct slice query_of(struct flow *flow, const char *hash, const char *range, struct slice key)
{
    return flow_compose(flow,
                        "'KeyConditionExpression':'%r = :key','ProjectionExpression':'%r, %r',%#,"
                        "'ExpressionAttributeValues':{':key':%S},'ConsistentRead':true",
                        slice_of(hash), slice_of(hash), slice_of(range), key);
}

/* ---- a group ---- */

static flow_step group_parked, group_events, group_head, group_item;

/* Everything of a group but its item, which goes last. */
static void group_remove(struct flow *flow, flow_step *then)
{
    struct deletion *deletion = flow->state;
    deletion->behind_group = then;
    clear_begin(flow, &log_positions, "group", "partition",
                query_of(flow, "#group", "#partition", deletion->group_key), group_parked);
}

static void group_parked(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    clear_begin(flow, &log_parked, "group", "event", query_of(flow, "#group", "#event", deletion->group_key),
                group_events);
}

static void group_events(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    clear_begin(flow, &log_events, "partition", "sequence",
                query_of(flow, "#partition", "#sequence", deletion->parked_key), group_head);
}

static void group_head(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    flow_call(flow, group_item, "DeleteItem", "{'TableName':%T,'Key':{'partition':%S}}", &log_heads,
              deletion->parked_key);
}

static void group_item(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    flow_call(flow, deletion->behind_group, "DeleteItem",
              "{'TableName':%T,'Key':{'log':%S,'part':{'S':%s}},'ReturnValues':'ALL_OLD'}", &log_table,
              flow_text(flow, LOG_NAME),
              arena_printf(flow->arena, "group/%.*s", SLICE_ARG(deletion->group_name)));
}

static void leave_done(struct flow *flow)
{
    if (flow_item(flow).data)
        flow_answer(flow, 200, "{'deleted':true}");
    else
        log_refuse_group(flow);
}

void log_leave_begin(struct flow *flow)
{
    struct deletion *deletion = flow->state = arena_new(flow->arena, struct deletion);
    deletion->group_name = flow_text(flow, LOG_GROUP);
    deletion->group_key = log_group_key(flow);
    deletion->parked_key = log_key(flow, LOG_PARKED);
    group_remove(flow, leave_done);
}

/* ---- the log ---- */

static flow_step delete_marked, delete_groups, delete_group, delete_slot, delete_heads, delete_events,
    delete_head, delete_next_head, delete_routes, delete_item, delete_done;

void log_delete_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct deletion);
    flow_call(flow, delete_marked, "UpdateItem",
              "{'TableName':%T,'Key':{'log':%S,'part':{'S':'log'}},'UpdateExpression':'SET #deleted = :yes',"
              "'ConditionExpression':'attribute_exists(#partitions)',%#,"
              "'ExpressionAttributeValues':{':yes':{'BOOL':true}},'ReturnValues':'ALL_NEW'}",
              &log_table, flow_text(flow, LOG_NAME));
}

static void delete_marked(struct flow *flow)
{
    struct deletion *deletion = flow->state;
    if (flow_failed(flow)) {
        flow_refuse(flow, 404, "no-such-log", "There is no log '%.*s'.", SLICE_ARG(flow_text(flow, LOG_NAME)));
        return;
    }
    deletion->slots = item_int(flow->arena, flow_item(flow), "slots", 1);
    delete_groups(flow);
}

static void delete_groups(struct flow *flow)
{
    flow_call(
        flow, delete_group, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#log = :log and begins_with(#part, :group)',%#,"
        "'ExpressionAttributeValues':{':log':%S,':group':{'S':'group/'}},'Limit':1,'ConsistentRead':true}",
        &log_table, flow_text(flow, LOG_NAME));
}

static void delete_group(struct flow *flow)
{
    struct deletion *deletion = flow->state;
    struct raw_look look;
    struct slice item, code = log_code(flow);
    struct buf name = {0};
    raw_look_begin(&look, flow->arena, flow_items(flow));
    if (!raw_look_next(&look, NULL, &item)) {
        delete_slot(flow);
        return;
    }
    deletion->group_name = slice_from(item_text(flow->arena, item, "part"), 6);
    rest_encode(&name, deletion->group_name);
    deletion->group_key = arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(code), SLICE_ARG(buf_view(&name)));
    deletion->parked_key = arena_printf(flow->arena, "%.*s/parked/%.*s", SLICE_ARG(code),
                                        SLICE_ARG(buf_view(&name)));
    buf_free(&name);
    group_remove(flow, delete_groups);
}

static void delete_slot(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    if (deletion->slot == deletion->slots)
        delete_routes(flow);
    else
        flow_call(flow, delete_heads, "Query",
                  "{'TableName':%T,'IndexName':'news','KeyConditionExpression':'#slot = :slot',%#,"
                  "'ExpressionAttributeValues':{':slot':%S},'Limit':%d}",
                  &log_heads, log_slot(flow, deletion->slot), (int64_t)LOG_PAGE);
}

static void delete_heads(struct flow *flow)
{
    struct deletion *deletion = flow->state;
    struct raw_look look;
    struct slice item;
    deletion->head = deletion->head_count = 0;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (deletion->head_count < LOG_PAGE && raw_look_next(&look, NULL, &item))
        deletion->heads[deletion->head_count++] = item_text(flow->arena, item, "partition");
    if (!deletion->head_count) deletion->slot++;
    delete_events(flow);
}

static void delete_events(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    if (deletion->head == deletion->head_count)
        delete_slot(flow);
    else
        clear_begin(flow, &log_events, "partition", "sequence",
                    query_of(flow, "#partition", "#sequence", deletion->heads[deletion->head]), delete_head);
}

static void delete_head(struct flow *flow)
{
    const struct deletion *deletion = flow->state;
    flow_call(flow, delete_next_head, "DeleteItem", "{'TableName':%T,'Key':{'partition':%S}}", &log_heads,
              deletion->heads[deletion->head]);
}

static void delete_next_head(struct flow *flow)
{
    struct deletion *deletion = flow->state;
    deletion->head++;
    delete_events(flow);
}

static void delete_routes(struct flow *flow)
{
    struct slice query = flow_compose(
        flow,
        "'KeyConditionExpression':'#log = :log and begins_with(#part, :from)',%#,"
        "'ExpressionAttributeValues':{':log':%S,':from':{'S':'from/'}},'ConsistentRead':true",
        flow_text(flow, LOG_NAME));
    clear_begin(flow, &log_table, "log", "part", query, delete_item);
}

static void delete_item(struct flow *flow)
{
    flow_call(flow, delete_done, "DeleteItem", "{'TableName':%T,'Key':{'log':%S,'part':{'S':'log'}}}",
              &log_table, flow_text(flow, LOG_NAME));
}

static void delete_done(struct flow *flow)
{
    flow_answer(flow, 200, "{'deleted':true}");
}
