/* Changes of an item; see edit.h. */
#include "pattern/edit.h"

#include "base/compose.h"

static void values_put(struct flow *flow, struct buf *out, const char *format, va_list args)
{
    struct composer composer; /* its names need not be cleared */
    composer.out = out;
    composer.arena = flow->arena;
    composer.put_other = NULL;
    if (format) compose_with(&composer, format, args);
}

static bool write_item(struct flow *flow, const struct flow_table *table, struct slice key,
                       struct slice update, struct slice condition, struct buf *values, const char *returns)
{
    struct slice text = arena_take(flow->arena, values); /* the task may end while it waits */
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':%A,'UpdateExpression':'%r'%[,'ConditionExpression':'%r',%O%],"
              "%#,'ExpressionAttributeValues':{%A},'ReturnValues':%s}",
              table, key, update, condition, text, slice_of(returns));
    return !flow_failed(flow);
}

bool edit_item(struct flow *flow, const struct flow_table *table, struct slice key, struct slice update,
               struct slice condition, const char *values, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, values);
    values_put(flow, &text, values, args);
    va_end(args);
    return write_item(flow, table, key, update, condition, &text, "ALL_NEW");
}

void edit_set(struct flow *flow, struct edit *edit, const char *name, const char *format, ...)
{
    struct buf *set = &edit->parts[EDIT_SET];
    va_list args;
    if (set->len) buf_text(set, ", ");
    flow_put(flow, set, "#%r = :%r", slice_of(name), slice_of(name));
    if (edit->values.len) buf_byte(&edit->values, ',');
    flow_put(flow, &edit->values, "':%r':", slice_of(name));
    va_start(args, format);
    values_put(flow, &edit->values, format, args);
    va_end(args);
}

void edit_put(struct flow *flow, struct edit *edit, enum edit_clause clause, const char *text,
              const char *values, ...)
{
    struct buf *out = &edit->parts[clause];
    va_list args;
    if (out->len) buf_slice(out, clause == EDIT_IF ? SLICE(" and ") : SLICE(", "));
    buf_slice(out, slice_of(text));
    if (values && edit->values.len) buf_byte(&edit->values, ',');
    va_start(args, values);
    values_put(flow, &edit->values, values, args);
    va_end(args);
}

bool edit_write(struct flow *flow, struct edit *edit, const struct flow_table *table, struct slice key)
{
    static const struct slice words[] = {
#define X(clause) SLICE(#clause " "),
        EDIT_CLAUSES(X)
#undef X
    };
    struct buf update = {0};
    struct slice condition = arena_take(flow->arena, &edit->parts[EDIT_IF]);
    for (size_t i = 0; i < EDIT_IF; i++) {
        struct buf *clause = &edit->parts[i];
        if (clause->len && update.len) buf_byte(&update, ' ');
        if (clause->len) buf_slice(&update, words[i]);
        buf_slice(&update, buf_view(clause));
        buf_free(clause);
    }
    return write_item(flow, table, key, arena_take(flow->arena, &update),
                      condition.len ? condition : SLICE_NONE, &edit->values,
                      edit->returns_old    ? "ALL_OLD"
                      : edit->returns_none ? "NONE"
                                           : "ALL_NEW");
}
