/* Changes of functions: each is one transaction on the condition that the function's Stamp is still the one
 * that was read (G1). Tables are made when the first one is written. */
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "func/registry.h"

/* ---- calling the door ---- */

void registry_put_table(struct buf *out, struct slice table)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, table);
    buf_byte(out, ',');
}

void registry_put_key(struct buf *out, struct slice name, struct slice part)
{
    buf_text(out, "\"name\":{\"S\":");
    json_put_string(out, name);
    buf_text(out, "},\"part\":{\"S\":");
    json_put_string(out, part);
    buf_byte(out, '}');
}

static bool is_missing_table(struct slice reply)
{
    struct arena arena = {0};
    struct slice name, message;
    dynamo_error(reply, &arena, &name, &message);
    bool missing = slice_equal(name, SLICE("ResourceNotFoundException"));
    arena_free(&arena);
    return missing;
}

int registry_call(struct registry *registry, const char *operation, struct slice request, struct buf *reply,
                  bool makes_tables)
{
    size_t start = reply->len;
    struct dynamo *dynamo = registry->func->options.dynamo;
    int status = dynamo_call(dynamo, slice_of(operation), request, reply);
    if (status == 200 || !makes_tables) return status;
    if (!is_missing_table(slice_from(buf_view(reply), start))) return status;
    if (!table_make(registry->func, registry->functions_table, "name", "part", 'S') ||
        !table_make(registry->func, registry->code_table, "sha256", "part", 'N'))
        return status;
    reply->len = start;
    return dynamo_call(dynamo, slice_of(operation), request, reply);
}

/* ---- changes ---- */

bool change_begin(struct change *change, struct registry *registry, struct slice name, struct arena *arena)
{
    bool failed;
    *change = (struct change){.registry = registry, .name = name, .arena = arena};
    change->before = registry_read(registry, name, &failed);
    const struct part *head = change->before ? entry_part(change->before, SLICE(PART_FUNCTION)) : NULL;
    if (head) change->head = document_copy(&head->document, arena);
    return !failed;
}

static void put_comma(struct change *change)
{
    if (change->members.len) buf_byte(&change->members, ',');
}

void change_put(struct change *change, struct slice part, const struct document *document)
{
    struct buf *out = &change->members;
    ensure(change->count++ < CHANGE_PARTS_MAX);
    put_comma(change);
    buf_text(out, "{\"Put\":");
    registry_put_table(out, change->registry->functions_table);
    buf_text(out, "\"Item\":{");
    registry_put_key(out, change->name, part);
    if (document->count) buf_byte(out, ',');
    document_put_attributes(out, document, change->arena);
    buf_text(out, "}}}");
}

void change_delete(struct change *change, struct slice part)
{
    struct buf *out = &change->members;
    ensure(change->count++ < CHANGE_PARTS_MAX);
    put_comma(change);
    buf_text(out, "{\"Delete\":");
    registry_put_table(out, change->registry->functions_table);
    buf_text(out, "\"Key\":{");
    registry_put_key(out, change->name, part);
    buf_text(out, "}}}");
}

/* The condition under which a change is made: nobody else has made one since it was read. */
static void put_condition(struct change *change)
{
    struct buf *out = &change->members;
    if (change->before)
        buf_printf(out,
                   ",\"ConditionExpression\":\"#s = :s\",\"ExpressionAttributeNames\":{\"#s\":\"Stamp\"},"
                   "\"ExpressionAttributeValues\":{\":s\":{\"N\":\"%llu\"}}",
                   (unsigned long long)change->before->stamp);
    else
        buf_text(out, ",\"ConditionExpression\":\"attribute_not_exists(#s)\","
                      "\"ExpressionAttributeNames\":{\"#s\":\"name\"}");
}

/* Grows with every change, also when a function was deleted and another gets its name. */
static int64_t next_stamp(const struct change *change)
{
    int64_t now = clock_now_ms(change->registry->func->options.clock);
    int64_t before = change->before ? (int64_t)change->before->stamp : 0;
    return now > before ? now : before + 1;
}

static void put_head(struct change *change)
{
    struct buf *out = &change->members;
    put_comma(change);
    buf_slice(out, change->removes ? SLICE("{\"Delete\":") : SLICE("{\"Put\":"));
    registry_put_table(out, change->registry->functions_table);
    buf_slice(out, change->removes ? SLICE("\"Key\":{") : SLICE("\"Item\":{"));
    registry_put_key(out, change->name, SLICE(PART_FUNCTION));
    if (!change->removes) {
        document_set_integer(&change->head, "Stamp", next_stamp(change), change->arena);
        buf_byte(out, ',');
        document_put_attributes(out, &change->head, change->arena);
    }
    buf_byte(out, '}');
    put_condition(change);
    buf_text(out, "}}");
}

/* Other servers see by one item whether anything has changed at all. */
static void put_change_count(struct change *change)
{
    struct buf *out = &change->members;
    buf_text(out, ",{\"Update\":");
    registry_put_table(out, change->registry->functions_table);
    buf_text(out, "\"Key\":{");
    registry_put_key(out, SLICE("*changes"), SLICE("count"));
    buf_text(out, "},\"UpdateExpression\":\"ADD #c :one\",\"ExpressionAttributeNames\":{\"#c\":\"Changes\"},"
                  "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}}");
}

static enum change_end judge(struct change *change, int status, struct slice reply)
{
    struct slice name, message;
    if (status == 200) return CHANGE_DONE;
    dynamo_error(reply, change->arena, &name, &message);
    if (slice_equal(name, SLICE("TransactionCanceledException")) ||
        slice_equal(name, SLICE("TransactionInProgressException")))
        return CHANGE_AGAIN;
    log_line("the function %.*s cannot be changed: %.*s: %.*s", SLICE_ARG(change->name), SLICE_ARG(name),
             SLICE_ARG(message));
    return CHANGE_FAILED;
}

enum change_end change_commit(struct change *change)
{
    struct buf request = {0}, reply = {0};
    bool failed;
    put_head(change);
    if (change->registry->func->options.shared) put_change_count(change);
    buf_text(&request, "{\"TransactItems\":[");
    buf_slice(&request, buf_view(&change->members));
    buf_text(&request, "]}");
    int status = registry_call(change->registry, "TransactWriteItems", buf_view(&request), &reply, true);
    enum change_end end = judge(change, status, buf_view(&reply));
    buf_free(&request);
    buf_free(&reply);
    if (end == CHANGE_AGAIN) return end;
    /* Also after a failure: where no reply came, the change may have been made. */
    change->after = registry_read(change->registry, change->name, &failed);
    return failed ? CHANGE_FAILED : end;
}

void change_free(struct change *change)
{
    buf_free(&change->members);
    entry_release(change->before);
    entry_release(change->after);
    *change = (struct change){0};
}
