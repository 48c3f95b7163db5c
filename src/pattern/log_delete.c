/* Deleting a log, or a group of consumers: page after page of all that belongs to it, its own item last, so
 * that a repeat goes on where a crash ended it.
 *
 * The log is marked before, and nothing is read any more. Of each partition that was ever written to a seal stays for a
 * while: a process that still goes by what it remembers of the log meets it, instead of appending to what is gone. */
#include <stdlib.h>

#include "pattern/drive.h"
#include "pattern/log.h"
#include "pattern/sweep.h"

#define SEAL_KEPT_S 3600 /* much longer than anything is remembered */

/* Deletes all that a query finds. Its members are behind the table's name. */
static void clear(struct flow *flow, const struct flow_table *table, struct slice query)
{
    do {
        task_call(flow, "Query", "{'TableName':%T,%A,'Limit':%d,'ConsistentRead':true}", table, query,
                  (int64_t)SWEEP_REMOVED);
    } while (delete_listed(flow, table));
}

/* Everything of a group; answers whether there was one. `id`: of the log; the keys are percent-encoded. */
static bool group_remove(struct flow *flow, struct slice id, struct slice name)
{
    static const char query[] =
        "'KeyConditionExpression':'#group = :key','ProjectionExpression':'#group, %r',%#,"
        "'ExpressionAttributeValues':{':key':%S}";
    struct slice code = rest_encoded(flow->arena, name),
                 log = rest_encoded(flow->arena, flow_text(flow, LOG_NAME));
    struct drive_thing thing = log_drive_thing(flow, name);
    drive_remove(flow, &thing); /* first: who is called would make it anew */
    struct slice key = arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(log), SLICE_ARG(code));
    clear(flow, &log_positions, flow_compose(flow, query, SLICE("#partition"), key));
    clear(flow, &log_parked, flow_compose(flow, query, SLICE("#event"), key));
    struct chain parked = {.table = &log_events,
                           .key = arena_printf(flow->arena, "%.*s/%.*s/parked/%.*s", SLICE_ARG(log),
                                               SLICE_ARG(id), SLICE_ARG(code))};
    chain_remove(flow, &parked);
    task_call(flow, "DeleteItem",
              "{'TableName':%T,'Key':{'log':%S,'part':{'S':%s}},'ReturnValues':'ALL_OLD'}", &log_table,
              flow_text(flow, LOG_NAME), arena_printf(flow->arena, "group/%.*s", SLICE_ARG(name)));
    return flow_item(flow).data != NULL;
}

void log_leave_begin(struct flow *flow)
{
    struct log_layout layout;
    log_layout_get(flow, &layout);
    if (!group_remove(flow, slice_of(layout.id), flow_text(flow, LOG_GROUP))) log_refuse_group(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- the log ---- */

static bool find_group(struct flow *flow, struct slice *name)
{
    task_query(flow, "#log = :log and begins_with(#part, :group)", ",'Limit':1" READ_FRESH,
               "':log':%S,':group':{'S':'group/'}", &log_table, flow_text(flow, LOG_NAME));
    struct slice part = item_text(flow->arena, raw_first(flow->arena, flow_items(flow)), "part");
    if (part.data) *name = slice_from(part, 6);
    return part.data != NULL;
}

/* Its pages and its head, but for the seal. */
static void partition_remove(struct flow *flow, struct slice key)
{
    struct chain chain = {.table = &log_events, .key = key, .token_kind = "log"};
    struct chain_end end;
    chain_read_end(flow, &chain, &end);
    end.tokens = SLICE_NONE; /* nobody asks for them any more */
    if (end.is_sealed)
        chain_expire(flow, &chain, &end, SEAL_KEPT_S);
    else
        chain_seal(flow, &chain, &end, SLICE("{\"S\":\"deleted\"}"), SEAL_KEPT_S);
    chain_trim(flow, &chain, INT64_MAX);
    task_call(flow, "DeleteItem", "{'TableName':%T,'Key':{'partition':%S}}", &log_heads, key);
}

static int by_text(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

void log_delete_begin(struct flow *flow)
{
    struct slice name = flow_text(flow, LOG_NAME), group, item;
    if (!edit_item(flow, &log_table, LOG_KEY(flow), SLICE("SET #deleted = :yes"),
                   SLICE("attribute_exists(#partitions)"), "':yes':{'BOOL':true}"))
        task_refuse(flow, 404, "no-such-log", "There is no log '%.*s'.", SLICE_ARG(name));
    log_layout_forget(flow);
    struct slice id = item_text(flow->arena, flow_item(flow), "id");
    struct log_scale scale = log_scale_of(flow, flow_item(flow));
    int64_t slots = item_int(flow->arena, flow_item(flow), "slots", 1);
    if (scale.above) log_scale_enter(flow, &(struct log_layout){0});
    struct arena_mark mark = arena_mark(flow->arena);
    for (; find_group(flow, &group); flow_rewind(flow, mark)) group_remove(flow, id, group);
    for (int64_t slot = 0; slot < slots;) {
        flow_rewind(flow, mark);
        task_query(flow, "#slot = :slot", ",'IndexName':'news','Limit':%d", "':slot':%S", &log_heads,
                   (int64_t)LOG_PAGE,
                   arena_printf(flow->arena, "%.*s/%.*s/%lld", SLICE_ARG(rest_encoded(flow->arena, name)),
                                SLICE_ARG(id), (long long)slot));
        struct slice keys[LOG_PAGE];
        size_t count = 0;
        raw_each (flow->arena, flow_items(flow), &item)
            if (count < LOG_PAGE) keys[count++] = item_text(flow->arena, item, "partition");
        qsort(keys, count, sizeof *keys,
              by_text); /* those that were touched in the same second have no order */
        for (size_t i = 0; i < count; i++) partition_remove(flow, keys[i]);
        if (!count) slot++;
    }
    clear(flow, &log_table,
          flow_compose(flow,
                       "'KeyConditionExpression':'#log = :log and begins_with(#part, :from)',"
                       "'ProjectionExpression':'#log, #part',%#,"
                       "'ExpressionAttributeValues':{':log':%S,':from':{'S':'from/'}}",
                       name));
    task_call(
        flow, "DeleteItem",
        "{'TableName':%T,'Key':{'log':%S,'part':{'S':'log'}},'ConditionExpression':'attribute_exists(#deleted)',%#}",
        &log_table, name);
    flow_answer(flow, 200, "{'deleted':true}");
}
