/* The door of schedules, for tasks: calls, the table, items, and walking through them. */
#include <stdarg.h>

#include "base/log.h"
#include "trigger/schedule.h"

#define BUSY_ROUNDS   20 /* while other transactions are at the same item */
#define BUSY_PAUSE_US 10000

/* ---- calling ---- */

struct task_reply schedules_call(struct schedules *schedules, const char *operation, const char *format, ...)
{
    struct buf out = {0};
    struct composer composer = {.out = &out, .arena = task_arena()};
    va_list args;
    compose(&out, "{'TableName':%s,", schedules->table);
    va_start(args, format);
    compose_with(&composer, format, args);
    va_end(args);
    buf_byte(&out, '}');
    struct slice request = arena_take(task_arena(), &out);
    struct task_reply reply = task_request(operation, request);
    for (int i = 0; reply.fault == DYNAMO_CONFLICT && i < BUSY_ROUNDS; i++) {
        task_pause_us(BUSY_PAUSE_US);
        reply = task_request(operation, request);
    }
    if (reply.fault == DYNAMO_MISSING) schedules->table_is_there = false;
    if (reply.fault != DYNAMO_FINE && reply.fault != DYNAMO_MISSING && reply.fault != DYNAMO_CONDITION)
        log_line("schedules: %s on %.*s failed: %.*s: %.*s", operation, SLICE_ARG(schedules->table),
                 SLICE_ARG(reply.error), SLICE_ARG(task_reply_message(&reply)));
    return reply;
}

/* ---- the table ---- */

static void table_make(void *argument)
{
    struct schedules *schedules = argument;
    const struct dynamo_table table = {
        .name = schedules->table, .hash = "group", .range = "name", .range_type = 'S'};
    char error[256];
    schedules->table_is_there = dynamo_table_make(schedules->trigger->options.dynamo, &table, error,
                                                  sizeof error);
    if (!schedules->table_is_there) log_line("schedules: %s", error);
}

bool schedule_table_make(struct schedules *schedules)
{
    if (schedules->table_is_there) return true;
    task_outside(table_make, schedules);
    if (!schedules->table_is_there) return false;
    enum dynamo_fault fault = schedule_group_put(schedules, SLICE(SCHEDULE_DEFAULT),
                                                 task_host_now_ms(schedules->host), SLICE(""), SLICE(""))
                                  .fault;
    schedules->table_is_there = fault == DYNAMO_FINE || fault == DYNAMO_CONDITION;
    return schedules->table_is_there;
}

/* ---- items ---- */

enum dynamo_fault schedule_get(struct schedules *schedules, struct slice group, struct slice name,
                               struct slice *item)
{
    struct task_reply reply = schedules_call(schedules, "GetItem", SCHEDULE_KEY ",'ConsistentRead':true",
                                             group, name);
    if (reply.fault != DYNAMO_FINE) return reply.fault;
    *item = raw_member(task_arena(), arena_copy(task_arena(), reply.body), "Item");
    return item->data ? DYNAMO_FINE : DYNAMO_MISSING;
}

enum dynamo_fault schedule_load(struct schedules *schedules, struct slice group, struct slice name,
                                struct schedule *out)
{
    struct slice item;
    enum dynamo_fault fault = schedule_get(schedules, group, name, &item);
    if (fault == DYNAMO_FINE && (!schedule_from_item(task_arena(), item, out) || out->pending.data))
        fault = DYNAMO_MISSING;
    return fault;
}

enum dynamo_fault schedule_delete(struct schedules *schedules, struct slice group, struct slice name,
                                  int64_t revision)
{
    bool has_one = revision != SCHEDULE_NONE; /* what others have put there may have none */
    struct slice values = SLICE("");
    if (has_one) values = compose_in(task_arena(), ",'ExpressionAttributeValues':{':revision':%N}", revision);
    return schedules_call(
               schedules, "DeleteItem", SCHEDULE_KEY ",'ConditionExpression':'%r',%#%A", group, name,
               has_one ? SLICE("#revision = :revision") : SLICE("attribute_not_exists(#revision)"), values)
        .fault;
}

/* ---- walking ---- */

struct schedule_walk schedule_walk_from(struct schedules *schedules, struct slice group,
                                        struct slice after_group, struct slice after_name)
{
    struct schedule_walk walk = {.schedules = schedules, .group = group, .page = arena_mark(task_arena())};
    if (after_name.data)
        walk.after = compose_in(task_arena(), "{'group':%S,'name':%S}", after_group, after_name);
    return walk;
}

/* False: it cannot be read. */
static bool page_read(struct schedule_walk *walk)
{
    struct arena *arena = task_arena();
    struct buf start = {0};
    if (walk->after.len) compose(&start, ",'ExclusiveStartKey':%A", walk->after);
    arena_rewind(arena, walk->page);
    struct slice more = arena_take(arena, &start);
    struct task_reply reply = walk->group.data
                                  ? schedules_call(walk->schedules, "Query", SCHEDULE_OF_GROUP "%A",
                                                   walk->group, more)
                                  : schedules_call(walk->schedules, "Scan", "'ConsistentRead':true%A", more);
    walk->fault = reply.fault;
    if (reply.fault != DYNAMO_FINE) return false;
    struct slice page = arena_copy(arena, reply.body);
    walk->after = raw_member(arena, page, "LastEvaluatedKey");
    raw_look_begin(&walk->look, arena, raw_member(arena, page, "Items"));
    walk->has_page = true;
    return true;
}

bool schedule_walk_next(struct schedule_walk *walk, struct slice *item)
{
    while (!walk->has_page || !raw_look_next(&walk->look, NULL, item))
        if ((walk->has_page && !walk->after.len) || !page_read(walk)) return false;
    return true;
}
