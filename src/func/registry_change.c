/* Changes of functions: parts first, then the head, which decides, then what the head names no more (G1, G5). Each of
 * these writes may be made twice, as the door does when it does not know the outcome. Tables are made when the first
 * one is written.
 *
 * With other servers a change stands in the item *changes, among those Under way, from before its first write until
 * it is through, and then the item's count grows: by that the others know that there is something to be read. For
 * a server that dies in between another one does it. */
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "func/registry.h"

#define RECENT_BYTES 200           /* of marks in a head: of the last eight changes or so */
#define BATCH        25            /* DynamoDB's limit of a BatchWriteItem */
#define OLD_MS       (3600 * 1000) /* no request takes so long */
#define UNDER_WAY_MS (60 * 1000)   /* a change that takes longer is taken for a dead one's, and told */

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

static bool make_tables(struct registry *registry)
{
    return table_make(registry->func, registry->functions_table, "name", "part", 'S') &&
           table_make(registry->func, registry->code_table, "sha256", "part", 'N');
}

int registry_call(struct registry *registry, const char *operation, struct slice request, struct buf *reply,
                  bool makes_tables)
{
    struct arena arena = {0};
    struct slice error, message;
    size_t start = reply->len;
    int status = dynamo_call(registry->func->options.dynamo, slice_of(operation), request, reply);
    if (status == 200 || !makes_tables) return status;
    dynamo_error(slice_from(buf_view(reply), start), &arena, &error, &message);
    bool is_missing = dynamo_fault(status, error) == DYNAMO_MISSING;
    arena_free(&arena);
    if (!is_missing || !make_tables(registry)) return status;
    reply->len = start;
    return dynamo_call(registry->func->options.dynamo, slice_of(operation), request, reply);
}

/* ---- beginning ---- */

bool change_begin(struct change *change, struct registry *registry, struct slice name, struct arena *arena)
{
    *change = (struct change){.registry = registry, .name = name, .arena = arena};
    change->seen = registry_read_anyway(registry, name);
    if (!change->seen) return false;
    if (change->seen->count) change->before = change->seen;
    const struct part *head = change->before ? entry_part(change->before, SLICE(PART_FUNCTION)) : NULL;
    if (head) change->head = document_copy(&head->document, arena);
    uint64_t now = (uint64_t)clock_now_ms(registry->func->options.clock);
    change->stamp = now > change->seen->stamp ? now : change->seen->stamp + 1; /* G4 */
    pthread_mutex_lock(&registry->lock);
    unsigned chance = (unsigned)random_next(&registry->random);
    pthread_mutex_unlock(&registry->lock);
    snprintf(change->mark, sizeof change->mark, "%llx-%08x", (unsigned long long)change->stamp, chance);
    return true;
}

void change_put(struct change *change, struct slice part, const struct document *document)
{
    ensure(change->count < CHANGE_PARTS_MAX);
    change->parts[change->count].name = part;
    change->parts[change->count++].document = *document;
}

void change_delete(struct change *change, struct slice part)
{
    ensure(change->count < CHANGE_PARTS_MAX);
    change->parts[change->count].name = part;
    change->parts[change->count++].is_deleted = true;
}

void change_free(struct change *change)
{
    entry_release(change->seen);
    entry_release(change->after);
    *change = (struct change){0};
}

/* ---- for servers that share ---- */

/* Says that a change begins or ends; `what` is its name and mark. */
static bool tell_others(struct registry *registry, struct slice what, bool ends)
{
    struct buf request = {0}, reply = {0};
    registry_put_table(&request, registry->functions_table);
    buf_text(&request, "\"Key\":{");
    registry_put_key(&request, SLICE("*changes"), SLICE("count"));
    buf_printf(&request, "},\"UpdateExpression\":\"%s\",\"ExpressionAttributeNames\":{\"#u\":\"Under\"%s},",
               ends ? "ADD #c :one DELETE #u :u" : "ADD #u :u", ends ? ",\"#c\":\"Changes\"" : "");
    buf_text(&request, "\"ExpressionAttributeValues\":{\":u\":{\"SS\":[");
    json_put_string(&request, what);
    buf_printf(&request, "]}%s}}", ends ? ",\":one\":{\"N\":\"1\"}" : "");
    int status = registry_call(registry, "UpdateItem", buf_view(&request), &reply, true);
    if (status != 200)
        log_line("the change of %.*s cannot be told: %.*s", SLICE_ARG(what), SLICE_ARG(buf_view(&reply)));
    buf_free(&request);
    buf_free(&reply);
    return status == 200;
}

/* When the change with this mark began, by the clock of its server; 0: no mark. */
static int64_t mark_ms(struct slice mark)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < mark.len && mark.data[i] != '-'; i++) {
        const char *digits = "0123456789abcdef", *digit = memchr(digits, mark.data[i], 16);
        if (!digit || i == 15) return 0;
        ms = ms << 4 | (uint64_t)(digit - digits);
    }
    return (int64_t)ms;
}

static struct slice mark_of_key(struct slice key)
{
    const char *at = key.len ? memchr(key.data, '@', key.len) : NULL;
    return at ? slice_from(key, (size_t)(at - key.data) + 1) : SLICE("");
}

static bool is_older(struct registry *registry, struct slice key, int64_t ms)
{
    return clock_now_ms(registry->func->options.clock) - mark_ms(mark_of_key(key)) > ms;
}

int64_t registry_changes(struct registry *registry)
{
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    struct slice error = SLICE_NONE, message, one;
    struct raw_look look;
    unsigned long long count = 0;
    registry_put_table(&request, registry->functions_table);
    buf_text(&request, "\"ConsistentRead\":true,\"Key\":{");
    registry_put_key(&request, SLICE("*changes"), SLICE("count"));
    buf_text(&request, "}}");
    int status = registry_call(registry, "GetItem", buf_view(&request), &reply, false);
    if (status == 200) {
        struct slice item = raw_member(&arena, buf_view(&reply), "Item");
        struct slice number = raw_member(&arena, raw_member(&arena, item, "Changes"), "N");
        slice_to_u64(raw_string(&arena, number), INT64_MAX, &count);
        raw_look_begin(&look, &arena, raw_member(&arena, raw_member(&arena, item, "Under"), "SS"));
        while (raw_look_next(&look, NULL, &one)) {
            struct slice what = raw_string(&arena, one);
            if (is_older(registry, what, UNDER_WAY_MS)) tell_others(registry, what, true);
        }
    } else {
        dynamo_error(buf_view(&reply), &arena, &error, &message);
    }
    bool is_known = status == 200 ||
                    dynamo_fault(status, error) == DYNAMO_MISSING; /* no table yet: no changes */
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return is_known ? (int64_t)count : -1;
}

/* ---- committing ---- */

static struct slice key_of(const struct change *change, struct slice part, struct slice mark)
{
    return mark.len ? arena_printf(change->arena, "%.*s@%.*s", SLICE_ARG(part), SLICE_ARG(mark)) : part;
}

/* Begins a PutItem; what follows are attributes, each with a comma before it, and two braces. */
static void begin_put(const struct change *change, struct buf *out, struct slice key)
{
    registry_put_table(out, change->registry->functions_table);
    buf_text(out, "\"Item\":{");
    registry_put_key(out, change->name, key);
}

static bool put_parts(const struct change *change)
{
    struct buf request = {0}, reply = {0};
    int status = 200;
    for (uint32_t i = 0; i < change->count && status == 200; i++) {
        if (change->parts[i].is_deleted) continue;
        request.len = reply.len = 0;
        begin_put(change, &request, key_of(change, change->parts[i].name, slice_of(change->mark)));
        if (change->parts[i].document.count) buf_byte(&request, ',');
        document_put_attributes(&request, &change->parts[i].document, change->arena);
        buf_text(&request, "}}");
        status = registry_call(change->registry, "PutItem", buf_view(&request), &reply, true);
    }
    if (status != 200)
        log_line("the function %.*s cannot be changed: %.*s", SLICE_ARG(change->name),
                 SLICE_ARG(buf_view(&reply)));
    buf_free(&request);
    buf_free(&reply);
    return status == 200;
}

/* What the change does with a part; NULL: nothing. */
static const bool *is_deleted(const struct change *change, struct slice part)
{
    for (uint32_t i = 0; i < change->count; i++)
        if (slice_equal(change->parts[i].name, part)) return &change->parts[i].is_deleted;
    return NULL;
}

static bool is_head(const struct part *part)
{
    return slice_equal(part->name, SLICE(PART_FUNCTION));
}

/* The head as it will be: of a function that goes, a Stamp that stays for a while. */
static struct document new_head(const struct change *change)
{
    struct document head = {0};
    struct buf parts = {0};
    buf_byte(&parts, '{');
    for (uint32_t i = 0; i < change->seen->count; i++) {
        const struct part *part = &change->seen->parts[i];
        if (is_head(part) || is_deleted(change, part->name)) continue;
        if (parts.len > 1) buf_byte(&parts, ',');
        json_put_string(&parts, part->name);
        buf_printf(&parts, ":\"%.*s\"", SLICE_ARG(part->mark));
    }
    for (uint32_t i = 0; i < change->count; i++) {
        if (change->parts[i].is_deleted) continue;
        if (parts.len > 1) buf_byte(&parts, ',');
        json_put_string(&parts, change->parts[i].name);
        buf_printf(&parts, ":\"%s\"", change->mark);
    }
    buf_byte(&parts, '}');
    if (change->removes) {
        document_set(&head, "Gone", SLICE("true"), change->arena);
    } else {
        head = document_copy(&change->head, change->arena);
        document_set(&head, "Parts", arena_copy(change->arena, buf_view(&parts)), change->arena);
    }
    buf_free(&parts);
    struct slice recent = arena_printf(change->arena, "%s %.*s", change->mark,
                                       SLICE_ARG(change->seen->recent));
    if (recent.len > RECENT_BYTES) recent.len = RECENT_BYTES; /* the end of a mark is none */
    document_set_text(&head, "Recent", recent, change->arena);
    document_set_integer(&head, "Stamp", (int64_t)change->stamp, change->arena);
    return head;
}

/* After a condition that did not hold: it may be our own earlier attempt that has changed the head. */
static bool was_ours(const struct change *change, struct slice reply)
{
    struct slice recent = raw_member(change->arena, raw_member(change->arena, reply, "Item"), "Recent");
    struct slice marks = raw_string(change->arena, raw_member(change->arena, recent, "S"));
    return marks.len && slice_contains(marks, arena_printf(change->arena, "%s ", change->mark));
}

static enum change_end put_head(const struct change *change)
{
    struct buf request = {0}, reply = {0};
    struct slice error, message;
    struct document head = new_head(change);
    enum change_end end = CHANGE_DONE;
    begin_put(change, &request, SLICE(PART_FUNCTION));
    buf_byte(&request, ',');
    document_put_attributes(&request, &head, change->arena);
    buf_text(&request, "},\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\",");
    if (change->seen->stamp || change->before)
        buf_printf(&request,
                   "\"ConditionExpression\":\"#s = :s\",\"ExpressionAttributeNames\":{\"#s\":\"Stamp\"},"
                   "\"ExpressionAttributeValues\":{\":s\":{\"N\":\"%llu\"}}}",
                   (unsigned long long)change->seen->stamp);
    else
        buf_text(&request, "\"ConditionExpression\":\"attribute_not_exists(#n)\","
                           "\"ExpressionAttributeNames\":{\"#n\":\"name\"}}");
    int status = registry_call(change->registry, "PutItem", buf_view(&request), &reply, true);
    if (status != 200) {
        dynamo_error(buf_view(&reply), change->arena, &error, &message);
        bool has_lost = dynamo_fault(status, error) == DYNAMO_CONDITION;
        if (has_lost && !was_ours(change, buf_view(&reply)))
            end = CHANGE_AGAIN;
        else if (!has_lost)
            end = CHANGE_FAILED;
        if (end == CHANGE_FAILED)
            log_line("the function %.*s cannot be changed: %.*s: %.*s", SLICE_ARG(change->name),
                     SLICE_ARG(error), SLICE_ARG(message));
    }
    buf_free(&request);
    buf_free(&reply);
    return end;
}

/* Parts that a change has left behind. What cannot be removed now is a stray, for the next one. */
struct removal {
    const struct change *change;
    struct buf request;
    uint32_t count;
};

static void send_removals(struct removal *removal)
{
    struct buf reply = {0};
    if (!removal->count) return;
    buf_text(&removal->request, "]}}");
    registry_call(removal->change->registry, "BatchWriteItem", buf_view(&removal->request), &reply, false);
    buf_free(&reply);
    removal->request.len = removal->count = 0;
}

static void remove_key(struct removal *removal, struct slice key)
{
    struct buf *out = &removal->request;
    if (removal->count == BATCH) send_removals(removal);
    if (removal->count++) {
        buf_byte(out, ',');
    } else {
        buf_text(out, "{\"RequestItems\":{");
        json_put_string(out, removal->change->registry->functions_table);
        buf_text(out, ":[");
    }
    buf_text(out, "{\"DeleteRequest\":{\"Key\":{");
    registry_put_key(out, removal->change->name, key);
    buf_text(out, "}}}");
}

static void remove_old_parts(const struct change *change)
{
    struct removal removal = {.change = change};
    for (uint32_t i = 0; i < change->seen->stray_count; i++) remove_key(&removal, change->seen->strays[i]);
    for (uint32_t i = 0; i < change->seen->count; i++) {
        const struct part *part = &change->seen->parts[i];
        if (!is_head(part) && (change->removes || is_deleted(change, part->name)))
            remove_key(&removal, key_of(change, part->name, part->mark));
    }
    send_removals(&removal);
    buf_free(&removal.request);
}

enum change_end change_commit(struct change *change)
{
    struct registry *registry = change->registry;
    bool is_shared = registry->func->options.shared, failed;
    struct slice what = key_of(change, change->name, slice_of(change->mark));
    if (is_shared && !tell_others(registry, what, false)) return CHANGE_FAILED;
    enum change_end end = put_parts(change) ? put_head(change) : CHANGE_FAILED;
    if (end == CHANGE_DONE) remove_old_parts(change);
    /* Where no reply came, the change may be made yet: who looks for dead ones tells it then. */
    if (is_shared && end != CHANGE_FAILED) tell_others(registry, what, true);
    if (end == CHANGE_AGAIN) return end;
    change->after = registry_read(registry, change->name, &failed);
    return failed ? CHANGE_FAILED : end;
}

/* ---- what the dead have left ---- */

/* A head that is Gone, and nothing else. */
static void remove_head(const struct change *change)
{
    struct buf request = {0}, reply = {0};
    registry_put_table(&request, change->registry->functions_table);
    buf_text(&request, "\"Key\":{");
    registry_put_key(&request, change->name, SLICE(PART_FUNCTION));
    buf_printf(&request,
               "},\"ConditionExpression\":\"#s = :s\",\"ExpressionAttributeNames\":{\"#s\":\"Stamp\"},"
               "\"ExpressionAttributeValues\":{\":s\":{\"N\":\"%llu\"}}}",
               (unsigned long long)change->seen->stamp);
    registry_call(change->registry, "DeleteItem", buf_view(&request), &reply, false);
    buf_free(&request);
    buf_free(&reply);
}

static void tidy(struct registry *registry, struct slice name, int64_t old_ms, struct arena *arena)
{
    struct change change;
    if (change_begin(&change, registry, name, arena)) {
        const struct entry *seen = change.seen;
        bool is_due = seen->stray_count != 0;
        for (uint32_t i = 0; i < seen->stray_count; i++)
            is_due = is_due && is_older(registry, seen->strays[i], old_ms);
        change.removes = !change.before;
        if (is_due)
            change_commit(&change); /* of nothing: the Stamp moves, and then the strays may go (G5) */
        else if (!seen->stray_count && !change.before && seen->stamp &&
                 clock_now_ms(registry->func->options.clock) - (int64_t)seen->stamp > old_ms)
            remove_head(&change);
    }
    change_free(&change);
}

void registry_tidy(struct registry *registry, struct slice untidy, bool is_alone)
{
    while (untidy.len) {
        struct arena arena = {0};
        struct slice name = {untidy.data, strlen(untidy.data)};
        tidy(registry, name, is_alone ? INT64_MIN : OLD_MS, &arena);
        untidy = slice_from(untidy, name.len + 1);
        arena_free(&arena);
    }
}
