/* Commits: one decision with its consequences, in one transaction where the database has them, else in an order in
 * which any participant may die between any two writes. The invariants stand in task.h.
 *
 * Effects without transactions: the user's action gets a condition and an attribute more. The attribute, TASK_APPLIED,
 * is a list of marks, SOURCE#MARKER, of the effects that this item got last. It is written on the condition that it is
 * as it was seen: a repeat finds its mark and changes nothing, and a copy of the write that happens late, after a
 * time-out, finds another list and changes nothing either, also when its mark is gone from it. Marks go that nobody
 * will look for: others of the same source, and those whose decision this process has seen made. So the list stays
 * short however often an item is written; only when there are LIMIT_APPLIED_MOST marks that may still be looked for,
 * the oldest goes. An item that has a list costs one refused write more. */
#include <stdio.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/raw.h"
#include "task/internal.h"

#define EFFECT_TRIES 10 /* against others who write the same item, before the caller pauses */

/* ---- replies ---- */

/* Of a write that was not fine, and was not cancelled. */
static struct task_commit_reply commit_reply(const struct task_reply *reply, enum task_commit_part part,
                                             unsigned number)
{
    struct arena *arena = task_arena();
    struct task_commit_reply out = {.part = part, .number = number, .fault = reply->fault};
    bool is_condition = reply->fault == DYNAMO_CONDITION && part == COMMIT_ANCHOR;
    bool may_pass = dynamo_fault_may_pass(reply->fault) || reply->fault == DYNAMO_IN_USE;
    out.end = is_condition ? COMMIT_CONDITION : may_pass ? COMMIT_MAY_PASS : COMMIT_REFUSED;
    out.is_busy = may_pass && reply->fault != DYNAMO_UNKNOWN;
    if (is_condition) {
        struct slice item = raw_member(arena, reply->body, "Item");
        out.item = item.data ? arena_copy(arena, item) : SLICE_NONE;
    }
    out.error = arena_copy(arena, reply->error);
    out.message = arena_copy(arena, task_reply_message(reply));
    return out;
}

static struct task_commit_reply refused(enum task_commit_part part, unsigned number, struct slice error,
                                        struct slice message)
{
    return (struct task_commit_reply){.end = COMMIT_REFUSED,
                                      .part = part,
                                      .number = number,
                                      .fault = DYNAMO_REFUSED,
                                      .error = error,
                                      .message = message};
}

/* The members one by one, in the arena. */
static struct slice *members_split(struct slice members, unsigned *count)
{
    struct arena *arena = task_arena();
    struct slice list = arena_printf(arena, "[%.*s]", SLICE_ARG(members)), member;
    struct slice *all = arena_array(arena, struct slice, raw_count(arena, list) + 1);
    struct raw_walk walk;
    *count = 0;
    raw_walk_begin(&walk, arena, list);
    while (raw_walk_next(&walk, NULL, &member)) all[(*count)++] = member;
    return all;
}

/* ---- with transactions ---- */

static void put_members(struct buf *out, struct slice members)
{
    if (members.len) buf_byte(out, ',');
    buf_slice(out, members);
}

/* The members without one of them. */
static struct slice members_without(struct slice members, unsigned number)
{
    struct buf out = {0};
    unsigned count;
    struct slice *all = members_split(members, &count);
    for (unsigned i = 0; i < count; i++) {
        if (i == number) continue;
        if (out.len) buf_byte(&out, ',');
        buf_slice(&out, all[i]);
    }
    struct slice left = arena_copy(task_arena(), buf_view(&out));
    buf_free(&out);
    return left;
}

static struct task_commit_reply write_in_order(const struct task_commit *commit);

/* Anchor, effects, children, removals. */
static struct task_commit_reply write_together(const struct task_commit *commit)
{
    struct arena *arena = task_arena();
    struct slice children = commit->children;
    for (;;) {
        struct task_call *call = task_call_new("TransactWriteItems");
        struct buf *request = task_call_request(call);
        buf_text(request, "{\"TransactItems\":[");
        buf_slice(request, commit->anchor);
        put_members(request, commit->effects);
        put_members(request, children);
        put_members(request, commit->removals);
        buf_text(request, "]}");
        task_call_options(call)->needs_transactions = true;
        task_call_options(call)->cause = commit->cause;
        task_call_options(call)->in_order = commit->in_order;
        struct task_reply reply = task_send(call);
        if (reply.fault == DYNAMO_FINE) return (struct task_commit_reply){.end = COMMIT_DONE};
        if (slice_equal(reply.error, SLICE(DYNAMO_NO_TRANSACTIONS))) {
            task_has_no_transactions();
            return write_in_order(commit);
        }
        if (reply.fault != DYNAMO_CANCELLED) {
            enum task_commit_part part = commit->effects.len ? COMMIT_EFFECT
                                         : children.len      ? COMMIT_CHILD
                                                             : COMMIT_ANCHOR;
            return commit_reply(&reply, part, 0);
        }
        struct dynamo_cancellation why = dynamo_cancellation(reply.body, arena);
        if (why.first < 0) return (struct task_commit_reply){.end = COMMIT_MAY_PASS, .is_busy = true};
        bool has_failed = slice_equal(why.code, SLICE("ConditionalCheckFailed"));
        struct slice error = arena_copy(arena, why.code), message = arena_copy(arena, why.message), reason;
        if (why.first == 0 && has_failed) {
            struct raw_walk walk;
            struct task_commit_reply out = {
                .end = COMMIT_CONDITION, .fault = DYNAMO_CONDITION, .item = SLICE_NONE};
            raw_walk_begin(&walk, arena, raw_member(arena, reply.body, "CancellationReasons"));
            if (raw_walk_next(&walk, NULL, &reason)) out.item = raw_member(arena, reason, "Item");
            if (out.item.data) out.item = arena_copy(arena, out.item);
            return out;
        }
        if (why.first == 0) return refused(COMMIT_ANCHOR, 1, error, message);
        unsigned number = (unsigned)why.first - 1, effects, count;
        members_split(commit->effects, &effects);
        if (number < effects) return refused(COMMIT_EFFECT, number + 1, error, message);
        number -= effects;
        members_split(children, &count);
        if (number >= count) return refused(COMMIT_REMOVAL, number - count + 1, error, message);
        if (!has_failed) return refused(COMMIT_CHILD, number + 1, error, message);
        children = members_without(children, number); /* it is there already */
    }
}

/* ---- an effect without transactions ---- */

/* Members of a Put or an Update, as they stand; SLICE_NONE: not there. */
#define EFFECT_MEMBERS(X)                                                                                    \
    X(table, "TableName")                                                                                    \
    X(key, "Key")                                                                                            \
    X(item, "Item")                                                                                          \
    X(update, "UpdateExpression")                                                                            \
    X(condition, "ConditionExpression")                                                                      \
    X(names, "ExpressionAttributeNames")                                                                     \
    X(values, "ExpressionAttributeValues")

struct effect {
    bool is_update;
#define X(member, name) struct slice member;
    EFFECT_MEMBERS(X)
#undef X
    struct slice own; /* a name that the action does not have: #own, :own, ... */
    struct slice mark, source;
};

static bool effect_read(struct slice body, struct effect *effect)
{
#define X(member, name) name,
    static const char *const names[] = {EFFECT_MEMBERS(X)};
#undef X
    struct slice raws[sizeof names / sizeof *names];
    unsigned i = 0;
    if (!raw_members(task_arena(), body, names, raws, sizeof names / sizeof *names)) return false;
#define X(member, name) effect->member = raws[i++];
    EFFECT_MEMBERS(X)
#undef X
    return true;
}

/* One that the text does not have. */
static struct slice free_name(struct slice action)
{
    struct slice name = SLICE("quipu_applied");
    for (unsigned i = 1; slice_contains(action, name); i++)
        name = arena_printf(task_arena(), "quipu_applied%u", i);
    return name;
}

static void put_string(struct buf *out, struct slice text)
{
    buf_text(out, "{\"S\":");
    json_put_string(out, text);
    buf_byte(out, '}');
}

static bool is_decided(struct slice mark)
{
    const struct task_applied *applied = task_applied();
    uint64_t hash = hash_bytes(mark);
    for (size_t i = 0; i < sizeof applied->decided / sizeof *applied->decided; i++)
        if (applied->decided[i] == hash) return true;
    return false;
}

static void note_decided(struct slice mark)
{
    struct task_applied *applied = task_applied();
    applied->decided[applied->next++ % (sizeof applied->decided / sizeof *applied->decided)] = hash_bytes(
        mark);
}

static struct slice mark_text(struct slice element)
{
    return raw_string(task_arena(), raw_member(task_arena(), element, "S"));
}

static bool has_mark(struct slice applied, struct slice mark)
{
    struct raw_walk walk;
    struct slice element;
    raw_walk_begin(&walk, task_arena(), raw_member(task_arena(), applied, "L"));
    while (raw_walk_next(&walk, NULL, &element))
        if (slice_equal(mark_text(element), mark)) return true;
    return false;
}

/* The list as it becomes, {"L":[...]}: of those that were seen the ones that somebody may still look for, and ours. */
static void put_marks(struct buf *out, const struct effect *effect, struct slice seen)
{
    struct arena *arena = task_arena();
    struct raw_walk walk;
    struct slice element, list = raw_member(arena, seen, "L"),
                          source = arena_printf(arena, "%.*s#", SLICE_ARG(effect->source));
    struct slice *kept = arena_array(arena, struct slice, raw_count(arena, list) + 1);
    size_t count = 0;
    raw_walk_begin(&walk, arena, list);
    while (raw_walk_next(&walk, NULL, &element)) {
        struct slice mark = mark_text(element);
        if (mark.data && !slice_starts(mark, source) && !is_decided(mark)) kept[count++] = element;
    }
    buf_text(out, "{\"L\":[");
    for (size_t i = count >= LIMIT_APPLIED_MOST ? count - LIMIT_APPLIED_MOST + 1 : 0; i < count; i++) {
        buf_slice(out, kept[i]);
        buf_byte(out, ',');
    }
    put_string(out, effect->mark);
    buf_text(out, "]}");
}

/* The item with the list among its attributes. */
static void put_marked_item(struct buf *out, const struct effect *effect, struct slice seen)
{
    struct raw_walk walk;
    struct slice name, value;
    buf_text(out, ",\"Item\":{\"" TASK_APPLIED "\":");
    put_marks(out, effect, seen);
    raw_walk_begin(&walk, task_arena(), effect->item);
    while (raw_walk_next(&walk, &name, &value)) {
        if (slice_equal(name, SLICE(TASK_APPLIED))) continue; /* it was read with it */
        buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        buf_slice(out, value);
    }
    buf_byte(out, '}');
}

static bool is_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '#' || c == ':' || c == '.';
}

/* Behind the word SET, which no attribute's name can be where it stands bare; 0: there is none. */
static size_t behind_set(struct slice update)
{
    for (size_t at = 0; at < update.len;) {
        size_t end = at;
        while (end < update.len && is_of_word(update.data[end])) end++;
        if (slice_equal_ignoring_case((struct slice){update.data + at, end - at}, SLICE("SET"))) return end;
        at = end + 1;
    }
    return 0;
}

/* The user's update and ours. */
static void put_marked_update(struct buf *out, const struct effect *effect)
{
    struct arena *arena = task_arena();
    struct slice update = raw_string(arena, effect->update), own = effect->own;
    struct slice set = arena_printf(arena, " #%.*s = :%.*s_all", SLICE_ARG(own), SLICE_ARG(own));
    size_t at = behind_set(update);
    buf_text(out, ",\"UpdateExpression\":");
    json_put_string(out, at ? arena_printf(arena, "%.*s%.*s,%.*s", (int)at, update.data, SLICE_ARG(set),
                                           SLICE_ARG(slice_from(update, at)))
                            : arena_printf(arena, "%.*s SET%.*s", SLICE_ARG(update), SLICE_ARG(set)));
}

/* Ours holds where the list is as it was seen. A copy of the write that happens late finds another one, whatever has
 * become of its mark. */
static void put_marked_condition(struct buf *out, const struct effect *effect, bool is_seen)
{
    struct arena *arena = task_arena();
    struct slice user = raw_string(arena, effect->condition), own = effect->own, condition;
    if (is_seen)
        condition = arena_printf(arena, "#%.*s = :%.*s_seen", SLICE_ARG(own), SLICE_ARG(own));
    else
        condition = arena_printf(arena, "attribute_not_exists(#%.*s)", SLICE_ARG(own));
    buf_text(out, ",\"ConditionExpression\":");
    json_put_string(out, effect->condition.data
                             ? arena_printf(arena, "(%.*s) AND %.*s", SLICE_ARG(user), SLICE_ARG(condition))
                             : condition);
}

/* An object with further members, given with a comma before each but the first. */
static void put_more(struct buf *out, const char *name, struct slice object, struct slice more)
{
    buf_printf(out, ",\"%s\":{", name);
    buf_slice(out, more);
    if (object.len > 2 && raw_count(task_arena(), object)) {
        if (more.len) buf_byte(out, ',');
        buf_slice(out, (struct slice){object.data + 1, object.len - 2});
    }
    buf_byte(out, '}');
}

/* seen: the list as it was, {"L":[...]}; SLICE_NONE: there was none, as far as anybody has looked. */
static void put_effect(struct buf *out, const struct effect *effect, struct slice seen)
{
    bool is_seen = seen.data != NULL;
    struct slice own = effect->own;
    struct buf values = {0};
    if (is_seen) buf_printf(&values, "\":%.*s_seen\":%.*s", SLICE_ARG(own), SLICE_ARG(seen));
    if (effect->is_update) {
        if (is_seen) buf_byte(&values, ',');
        buf_printf(&values, "\":%.*s_all\":", SLICE_ARG(own));
        put_marks(&values, effect, seen);
    }
    buf_printf(out, "{\"TableName\":%.*s", SLICE_ARG(effect->table));
    if (effect->is_update) {
        buf_printf(out, ",\"Key\":%.*s", SLICE_ARG(effect->key));
        put_marked_update(out, effect);
    } else {
        put_marked_item(out, effect, seen);
    }
    put_marked_condition(out, effect, is_seen);
    put_more(out, "ExpressionAttributeNames", effect->names,
             arena_printf(task_arena(), "\"#%.*s\":\"" TASK_APPLIED "\"", SLICE_ARG(own)));
    if (values.len || effect->values.len)
        put_more(out, "ExpressionAttributeValues", effect->values, buf_view(&values));
    buf_text(out, ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
    buf_free(&values);
}

/* The only effect of a commit; false: *reply tells what is wrong with it. */
static bool effect_of(const struct task_commit *commit, struct effect *effect,
                      struct task_commit_reply *reply)
{
    struct arena *arena = task_arena();
    struct slice error = SLICE(DYNAMO_NO_TRANSACTIONS), name, body;
    struct raw_walk walk;
    unsigned count;
    struct slice *all = members_split(commit->effects, &count);
    *effect = (struct effect){.source = commit->source};
    if (count != 1) {
        *reply = refused(
            COMMIT_EFFECT, 0, error,
            arena_printf(arena,
                         "The database is ScyllaDB Alternator, which has no transactions: a function "
                         "can return one Put or Update there, not %u writes.",
                         count));
        return false;
    }
    ensure(raw_walk_begin(&walk, arena, all[0]) == JSON_OBJECT && raw_walk_next(&walk, &name, &body));
    effect->is_update = slice_equal(name, SLICE("Update"));
    if (!effect->is_update && !slice_equal(name, SLICE("Put"))) {
        *reply = refused(
            COMMIT_EFFECT, 1, error,
            arena_printf(arena,
                         "The database is ScyllaDB Alternator, which has no transactions: a function "
                         "can return one Put or Update there, and no %.*s.",
                         SLICE_ARG(name)));
        return false;
    }
    if (!effect_read(body, effect) || !effect->table.data ||
        raw_kind(effect->is_update ? effect->key : effect->item) != JSON_OBJECT ||
        (effect->is_update && !raw_string(arena, effect->update).len)) {
        *reply = refused(COMMIT_EFFECT, 1, SLICE("ValidationException"),
                         effect->is_update ? SLICE("An Update must have TableName, Key and UpdateExpression.")
                                           : SLICE("A Put must have TableName and Item."));
        return false;
    }
    effect->own = free_name(all[0]);
    effect->mark = arena_printf(arena, "%.*s#%.*s", SLICE_ARG(commit->source), SLICE_ARG(commit->marker));
    return true;
}

/* DONE: it has happened, now or before. */
static struct task_commit_reply write_effect(const struct task_commit *commit, struct slice *mark)
{
    struct arena *arena = task_arena();
    struct effect effect;
    struct task_commit_reply out;
    struct slice seen = SLICE_NONE;
    if (!effect_of(commit, &effect, &out)) return out;
    *mark = effect.mark;
    for (unsigned i = 0; i < EFFECT_TRIES; i++) {
        struct task_call *call = task_call_new(effect.is_update ? "UpdateItem" : "PutItem");
        put_effect(task_call_request(call), &effect, seen);
        task_call_options(call)->cause = commit->cause;
        struct task_reply reply = task_send(call);
        if (reply.fault == DYNAMO_FINE) return (struct task_commit_reply){.end = COMMIT_DONE};
        if (reply.fault != DYNAMO_CONDITION) return commit_reply(&reply, COMMIT_EFFECT, 1);
        struct slice item = raw_member(arena, reply.body, "Item"),
                     applied = raw_member(arena, item, TASK_APPLIED);
        if (has_mark(applied, effect.mark)) return (struct task_commit_reply){.end = COMMIT_DONE};
        bool is_ours = seen.data ? !slice_equal(applied, seen) : applied.data != NULL;
        if (!is_ours) return commit_reply(&reply, COMMIT_EFFECT, 1); /* the user's condition */
        seen = applied.data ? arena_copy(arena, applied) : SLICE_NONE;
    }
    return (struct task_commit_reply){.end = COMMIT_MAY_PASS, .is_busy = true};
}

/* ---- without transactions ---- */

struct task_reply task_action(struct slice action)
{
    const char *operation;
    struct slice request = dynamo_action_request(action, &operation);
    return task_request(operation, request);
}

static struct task_commit_reply write_anchor(struct slice anchor, const struct task_commit *commit)
{
    const char *operation;
    struct slice request = dynamo_action_request(anchor, &operation);
    struct task_call *call = task_call_new(operation);
    buf_slice(task_call_request(call), request);
    task_call_options(call)->cause = commit->cause;
    struct task_reply reply = task_send(call);
    if (reply.fault == DYNAMO_FINE) return (struct task_commit_reply){.end = COMMIT_DONE};
    return commit_reply(&reply, COMMIT_ANCHOR, 1);
}

static bool is_too_late(const struct task_commit *commit)
{
    return commit->until_us && task_host_ticks_us(task_own_host()) >= commit->until_us;
}

static struct task_commit_reply write_in_order(const struct task_commit *commit)
{
    struct slice mark = SLICE_NONE, *all;
    struct task_commit_reply out = {.end = COMMIT_MAY_PASS};
    unsigned count;
    if (is_too_late(commit)) return out;
    if (commit->effects.len) {
        out = write_effect(commit, &mark);
        if (out.end != COMMIT_DONE) return out;
    }
    all = members_split(commit->children, &count);
    for (unsigned i = 0; i < count; i++) {
        if (is_too_late(commit)) return (struct task_commit_reply){.end = COMMIT_MAY_PASS};
        struct task_reply reply = task_action(all[i]);
        if (reply.fault != DYNAMO_FINE && reply.fault != DYNAMO_CONDITION)
            return commit_reply(&reply, COMMIT_CHILD, i + 1);
    }
    out = write_anchor(commit->tombstone.len ? commit->tombstone : commit->anchor, commit);
    if (out.end != COMMIT_DONE) return out;
    if (mark.data) note_decided(mark);
    all = members_split(commit->removals, &count);
    for (unsigned i = 0; i < count; i++)
        if (task_action(all[i]).fault != DYNAMO_FINE) break;
    return out;
}

struct task_commit_reply task_commit(const struct task_commit *commit)
{
    bool is_alone = !commit->effects.len && !commit->children.len && !commit->removals.len;
    ensure(commit->anchor.len);
    if (is_alone && !commit->tombstone.len) return write_anchor(commit->anchor, commit);
    if (!task_has_transactions()) return write_in_order(commit);
    return is_alone ? write_anchor(commit->anchor, commit) : write_together(commit);
}

struct waited {
    const struct task_commit *commit;
    struct task_commit_reply reply;
    struct arena *arena;
};

static void commit_task(void *argument)
{
    struct waited *waited = argument;
    struct task_commit_reply *reply = &waited->reply;
    *reply = task_commit(waited->commit);
    if (reply->item.data) reply->item = arena_copy(waited->arena, reply->item);
    reply->error = arena_copy(waited->arena, reply->error);
    reply->message = arena_copy(waited->arena, reply->message);
}

struct task_commit_reply task_commit_wait(struct task_host *host, const struct task_commit *commit,
                                          struct arena *arena)
{
    struct waited waited = {.commit = commit, .arena = arena};
    task_begin(host, commit_task, &waited);
    task_host_run(host);
    return waited.reply;
}
