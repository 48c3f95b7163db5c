/* Changes of functions: parts first, then the head, which decides, then what the head names no more (G1, G5). Each of
 * these writes may be made twice, as the door does when it does not know the outcome. Tables are made when the first
 * one is written.
 *
 * With other servers a change stands in the item *changes, among those Under way, from before its first write until
 * it is through, and then the item's count grows: by that the others know that there is something to be read. For
 * a server that dies in between another one does it. */
#include <stdio.h>

#include "base/attribute.h"
#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "func/registry.h"

#define RECENT_BYTES    200           /* of marks in a head: of the last eight changes or so */
#define HOUSEKEEP_EVERY 250           /* deletions */
#define BATCH           25            /* DynamoDB's limit of a BatchWriteItem */
#define OLD_MS          (3600 * 1000) /* no request takes so long */
#define UNDER_WAY_MS    (60 * 1000)   /* a change that takes longer is taken for a dead one's, and told */

/* ---- calling the door ---- */

static bool make_tables(struct registry *registry)
{
    const struct dynamo_table functions = {
        .name = registry->functions_table, .hash = "name", .range = "part", .range_type = 'S'};
    const struct dynamo_table code = {
        .name = registry->code_table, .hash = "sha256", .range = "part", .range_type = 'N'};
    return table_make(registry->func, &functions) && table_make(registry->func, &code);
}

struct dynamo_reply registry_call(struct registry *registry, struct arena *arena, const char *operation,
                                  bool makes_tables, struct slice request)
{
    struct dynamo *dynamo = registry->func->options.dynamo;
    struct dynamo_reply reply = dynamo_ask(dynamo, arena, operation, request);
    if (!makes_tables || reply.fault != DYNAMO_MISSING || !make_tables(registry)) return reply;
    return dynamo_ask(dynamo, arena, operation, request);
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
    struct arena arena = {0};
    struct slice change = ends ? compose_in(&arena,
                                            "'UpdateExpression':'ADD #Changes :one DELETE #Under :what',%#,"
                                            "'ExpressionAttributeValues':{':what':{'SS':[%s]},':one':%N}",
                                            what, INT64_C(1))
                               : compose_in(&arena,
                                            "'UpdateExpression':'ADD #Under :what',%#,"
                                            "'ExpressionAttributeValues':{':what':{'SS':[%s]}}",
                                            what);
    struct dynamo_reply reply = registry_call(
        registry, &arena, "UpdateItem", true,
        compose_in(&arena, "{'TableName':%s,'Key':{'name':{'S':'*changes'},'part':{'S':'count'}},%A}",
                   registry->functions_table, change));
    if (reply.status != 200)
        log_line("the change of %.*s cannot be told: %.*s", SLICE_ARG(what), SLICE_ARG(reply.body));
    arena_free(&arena);
    return reply.status == 200;
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
    struct slice one;
    struct dynamo_reply reply = registry_call(
        registry, &arena, "GetItem", false,
        compose_in(
            &arena,
            "{'TableName':%s,'ConsistentRead':true,'Key':{'name':{'S':'*changes'},'part':{'S':'count'}}}",
            registry->functions_table));
    struct slice item = raw_member(&arena, reply.body, "Item");
    int64_t count = item_int(&arena, item, "Changes", 0);
    raw_each (&arena, item_content(&arena, item, "Under"), &one) {
        struct slice what = raw_string(&arena, one);
        if (is_older(registry, what, UNDER_WAY_MS)) tell_others(registry, what, true);
    }
    arena_free(&arena);
    /* no table yet: no changes */
    return reply.fault == DYNAMO_FINE || reply.fault == DYNAMO_MISSING ? count : -1;
}

/* ---- committing ---- */

static struct slice key_of(const struct change *change, struct slice part, struct slice mark)
{
    return mark.len ? arena_printf(change->arena, "%.*s@%.*s", SLICE_ARG(part), SLICE_ARG(mark)) : part;
}

/* An item of the change's name: its attributes, without the braces. */
static struct slice item_of(const struct change *change, struct slice key, const struct document *document)
{
    struct buf item = {0};
    compose(&item, "'name':%S,'part':%S", change->name, key);
    if (document->count) buf_byte(&item, ',');
    document_put_attributes(&item, document, change->arena);
    return arena_take(change->arena, &item);
}

static bool put_parts(const struct change *change)
{
    struct dynamo_reply reply = {.status = 200};
    for (uint32_t i = 0; i < change->count && reply.status == 200; i++) {
        if (change->parts[i].is_deleted) continue;
        struct slice key = key_of(change, change->parts[i].name, slice_of(change->mark));
        reply = registry_call(change->registry, change->arena, "PutItem", true,
                              compose_in(change->arena, "{'TableName':%s,'Item':{%A}}",
                                         change->registry->functions_table,
                                         item_of(change, key, &change->parts[i].document)));
    }
    if (reply.status != 200)
        log_line("the function %.*s cannot be changed: %.*s", SLICE_ARG(change->name), SLICE_ARG(reply.body));
    return reply.status == 200;
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
        compose(&parts, "%,%s:%s", part->name, part->mark);
    }
    for (uint32_t i = 0; i < change->count; i++) {
        if (!change->parts[i].is_deleted)
            compose(&parts, "%,%s:%s", change->parts[i].name, slice_of(change->mark));
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
    struct slice marks = item_text(change->arena, raw_member(change->arena, reply, "Item"), "Recent");
    return marks.len && slice_contains(marks, arena_printf(change->arena, "%s ", change->mark));
}

static enum change_end put_head(const struct change *change)
{
    struct document head = new_head(change);
    struct slice condition =
        change->seen->stamp || change->before
            ? compose_in(
                  change->arena,
                  "'ConditionExpression':'#Stamp = :stamp',%#,'ExpressionAttributeValues':{':stamp':%N}",
                  (int64_t)change->seen->stamp)
            : compose_in(change->arena, "'ConditionExpression':'attribute_not_exists(#name)',%#");
    struct dynamo_reply reply = registry_call(
        change->registry, change->arena, "PutItem", true,
        compose_in(change->arena, "{'TableName':%s,'Item':{%A},%O,%A}", change->registry->functions_table,
                   item_of(change, SLICE(PART_FUNCTION), &head), condition));
    if (reply.status == 200) return CHANGE_DONE;
    if (reply.fault == DYNAMO_CONDITION) return was_ours(change, reply.body) ? CHANGE_DONE : CHANGE_AGAIN;
    log_line("the function %.*s cannot be changed: %.*s: %.*s", SLICE_ARG(change->name),
             SLICE_ARG(reply.error), SLICE_ARG(reply.message));
    return CHANGE_FAILED;
}

/* Parts that a change has left behind. What cannot be removed now is a stray, for the next one. */
struct removal {
    const struct change *change;
    struct buf request;
    uint32_t count;
};

static void send_removals(struct removal *removal)
{
    if (!removal->count) return;
    buf_text(&removal->request, "]}}");
    registry_call(removal->change->registry, removal->change->arena, "BatchWriteItem", false,
                  buf_view(&removal->request));
    removal->request.len = removal->count = 0;
}

static void remove_key(struct removal *removal, struct slice key)
{
    if (removal->count == BATCH) send_removals(removal);
    if (!removal->count++)
        compose(&removal->request, "{'RequestItems':{%s:[", removal->change->registry->functions_table);
    compose(&removal->request, "%,{'DeleteRequest':{'Key':{'name':%S,'part':%S}}}", removal->change->name,
            key);
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
    if (end == CHANGE_DONE && change->removes && !is_shared) {
        /* Where no thread does it every hour: heads of deleted functions do not pile up until the next start. */
        pthread_mutex_lock(&registry->lock);
        bool is_time = ++registry->removals % HOUSEKEEP_EVERY == 0;
        pthread_mutex_unlock(&registry->lock);
        if (is_time) registry_housekeep(registry, false);
    }
    change->after = registry_read(registry, change->name, &failed);
    return failed ? CHANGE_FAILED : end;
}

/* ---- what the dead have left ---- */

/* A head that is Gone, and nothing else. */
static void remove_head(const struct change *change)
{
    registry_call(
        change->registry, change->arena, "DeleteItem", false,
        compose_in(change->arena,
                   "{'TableName':%s,'Key':{'name':%S,'part':%S},'ConditionExpression':'#Stamp = :stamp',"
                   "%#,'ExpressionAttributeValues':{':stamp':%N}}",
                   change->registry->functions_table, change->name, SLICE(PART_FUNCTION),
                   (int64_t)change->seen->stamp));
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
