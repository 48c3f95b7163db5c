/* Redriving: the calls that dead letters keep (letter.c) are sent again.
 *
 * POST /v1/queues/NAME/redrive walks the queue in the order of its ids. Each letter becomes one commit, which puts
 * its call under an id that follows from the letter's, with all its attempts, and removes the letter (Z2). A call that
 * fails again comes back: to its function's destination, or to the queue it was in.
 *
 * One request looks at LIMIT_REDRIVE_MESSAGES and moves LIMIT_REDRIVE_BYTES at the most; `next` of its answer
 * is where another one goes on. It begins with the time of the first request, and what came into the queue
 * after that is left alone, so that a function that fails at once does not keep a redrive going for ever.
 *
 * {"redriven":2,"refused":1,"later":0,"left":5,"reasons":[{"reason":"...","count":1,"ids":["..."]}],"next":"..."} */
#include <stdio.h>
#include <unistd.h>

#include "base/attribute.h"
#include "base/compose.h"
#include "base/limits.h"
#include "base/stats.h"
#include "calendar/calendar.h"
#include "func/letter.h"
#include "func/queue.h"
#include "func/target.h"

#define REASONS     8     /* there are fewer */
#define REASON_IDS  10    /* that are named in an answer */
#define TRIES       10    /* of a commit that met another one ... */
#define TRY_WAIT_US 5000u /* ... with a pause that doubles */

struct reason {
    const char *text;
    unsigned count;
    struct slice ids[REASON_IDS];
};

struct redrive {
    struct func *func;
    struct task_host *host; /* of its commits */
    struct rest_call *call;
    struct slice queue, id; /* id: of the only letter that is meant; empty: all */
    struct slice started;   /* a time: what was sent later is left alone */
    struct slice after;     /* the id of the last message that was looked at; empty: none yet */
    int64_t max;            /* to be redriven by this request */
    int64_t seen, redriven, refused, later, left;
    size_t bytes;
    bool was_sent;       /* a commit */
    bool is_over;        /* the end of the queue was reached */
    const char *trouble; /* what the door said; NULL: nothing went wrong */
    struct reason reasons[REASONS];
};

/* ---- the request ---- */

/* Cuts the answer's `next`: TIME/ID. */
static bool take_next(struct redrive *redrive, struct slice next)
{
    if (next.len <= QUEUES_TIME_BYTES + 1 || next.data[QUEUES_TIME_BYTES] != '/') return false;
    redrive->started = (struct slice){next.data, QUEUES_TIME_BYTES};
    redrive->after = slice_from(next, QUEUES_TIME_BYTES + 1);
    return redrive->after.len <= LIMIT_RANGE_KEY_BYTES;
}

/* False after an answer. */
static bool read_request(struct redrive *redrive)
{
    struct rest_call *call = redrive->call;
    struct raw_walk walk;
    struct slice name, value;
    if (!redrive->queue.len || redrive->queue.len > LIMIT_QUEUE_NAME_BYTES)
        return lambda_refuse(call, "a queue's name has 1 to 256 bytes");
    if (!call->body.len) return true;
    if (!raw_is_json(call->arena, call->body) ||
        raw_walk_begin(&walk, call->arena, call->body) != JSON_OBJECT)
        return lambda_refuse(call,
                             "the body must be a JSON object, {\"max\":100,\"id\":\"...\",\"next\":\"...\"}");
    while (raw_walk_next(&walk, &name, &value)) {
        if (slice_equal(name, SLICE("max"))) {
            if (raw_kind(value) != JSON_NUMBER || !raw_int(value, &redrive->max) || redrive->max < 1)
                return lambda_refuse(call, "max must be a whole number from 1");
        } else if (slice_equal(name, SLICE("id"))) {
            redrive->id = raw_string(call->arena, value);
            if (!redrive->id.len || redrive->id.len > LIMIT_RANGE_KEY_BYTES)
                return lambda_refuse(call, "id must be the id of a message");
        } else if (slice_equal(name, SLICE("next"))) {
            if (!take_next(redrive, raw_string(call->arena, value)))
                return lambda_refuse(call, "next must be what an answer before had as its next");
        } else {
            return lambda_refuse(call, "%.*s is unknown: there are max, id and next", SLICE_ARG(name));
        }
    }
    if (redrive->id.len && redrive->after.len) return lambda_refuse(call, "id and next do not go together");
    return true;
}

/* ---- one letter ---- */

static void note_refused(struct redrive *redrive, const char *text, struct slice id)
{
    struct reason *reason = redrive->reasons;
    while (reason->text && strcmp(reason->text, text) != 0 && reason < redrive->reasons + REASONS - 1)
        reason++;
    reason->text = text;
    if (reason->count < REASON_IDS) reason->ids[reason->count] = arena_copy(redrive->call->arena, id);
    reason->count++;
    redrive->refused++;
}

static void note_trouble(struct redrive *redrive, struct slice error, struct slice message)
{
    redrive->trouble = arena_printf(redrive->call->arena, "%.*s%s%.*s", SLICE_ARG(error),
                                    message.len ? ": " : "", SLICE_ARG(message))
                           .data;
}

/* Puts the call and removes the letter. One that is gone meanwhile was redriven or removed by somebody else: it is
 * nobody's trouble. False: its call cannot be put into the queue. */
static bool write_letter(struct redrive *redrive, const struct letter *letter, struct arena *arena)
{
    struct func *func = redrive->func;
    struct func_call call = letter->call;
    struct task_commit commit = {0};
    struct task_commit_reply reply = {.end = COMMIT_MAY_PASS};
    struct buf children = {0};
    bool is_unsure = false;
    char id[UUID_BYTES];
    letter_call_id(letter, id);
    call.id = slice_of(id);
    call.cause = cause_join(arena, letter->call.cause, redrive->call->cause);
    /* So that it is not dropped where the function is gone or has no destination any more. */
    if (!call.on_failure.len)
        call.on_failure = arena_printf(arena, "arn:aws:sqs:%.*s:%.*s:%.*s", SLICE_ARG(func->region),
                                       SLICE_ARG(func->account), SLICE_ARG(letter->queue));
    if (!func_queue_put(func, &call, &children)) return false;
    commit.children = arena_take(arena, &children);
    commit.anchor = letter_removal(func, letter, arena, &commit.removals);
    redrive->was_sent = true;
    bool is_mended = false; /* the table of calls, which somebody had deleted */
    for (unsigned nth = 0; nth < TRIES && reply.end == COMMIT_MAY_PASS; nth++) {
        if (nth) usleep(TRY_WAIT_US << nth);
        reply = task_commit_wait(redrive->host, &commit, arena);
        if (reply.end == COMMIT_REFUSED && reply.fault == DYNAMO_MISSING && !is_mended) {
            is_mended = func_tables_mend(func);
            if (is_mended) reply = (struct task_commit_reply){.end = COMMIT_MAY_PASS, .is_busy = true};
        }
        is_unsure |= reply.end == COMMIT_MAY_PASS && !reply.is_busy;
    }
    if (reply.end == COMMIT_DONE || (reply.end == COMMIT_CONDITION && is_unsure)) {
        redrive->redriven++;
        stats_add(&func->queue->stats.redriven, 1);
    } else if (reply.end != COMMIT_CONDITION) {
        note_trouble(redrive, reply.error, reply.message);
    }
    return true;
}

/* Records of then would undo, in the table that their images are put into, what came after them. */
static bool is_outdated(struct func *func, const struct letter *letter)
{
    struct slice name, qualifier;
    if (!letter->is_batch || !function_name_parse(letter->call.function, &name, &qualifier)) return false;
    struct function *function = registry_function(func, name, qualifier, 0);
    bool is_table = function && function->kind == FUNCTION_TABLE;
    function_release(function);
    return is_table;
}

static void take_message(struct redrive *redrive, struct slice item)
{
    struct arena arena = {0};
    struct letter letter;
    bool unreadable;
    const char *fault = letter_read(redrive->func, item, &arena, &letter, &unreadable);
    if (unreadable)
        redrive->trouble = fault;
    else if (!redrive->id.len && slice_compare(letter.sent, redrive->started) > 0)
        redrive->later++;
    else if (fault)
        note_refused(redrive, fault, letter.id);
    else if (is_outdated(redrive->func, &letter))
        note_refused(redrive, "its records would overwrite what their target table has got since", letter.id);
    else if (!write_letter(redrive, &letter, &arena))
        note_refused(redrive, "its call cannot be put into the queue of asynchronous calls", letter.id);
    if (!redrive->trouble) {
        redrive->seen++;
        redrive->bytes += item.len + letter.call.payload.len;
        redrive->after = arena_copy(redrive->call->arena, letter.id);
    }
    arena_free(&arena);
}

/* ---- the queue ---- */

/* Asks the door. An empty body when there is nothing to be had: no table, which is to have no messages, or trouble. */
static struct slice ask(struct redrive *redrive, struct arena *arena, const char *operation,
                        struct slice request)
{
    struct dynamo_reply reply = dynamo_ask(redrive->func->options.dynamo, arena, operation, request);
    if (reply.status == 200) return reply.body;
    redrive->is_over = slice_equal(reply.error, SLICE("ResourceNotFoundException"));
    if (!redrive->is_over) note_trouble(redrive, reply.error, reply.message);
    return SLICE("");
}

/* A page of the queue, from `after` on. */
static struct slice ask_page(struct redrive *redrive, struct arena *arena, struct slice more)
{
    struct slice after = SLICE("");
    if (redrive->after.len) after = compose_in(arena, ",':after':%S", redrive->after);
    return ask(
        redrive, arena, "Query",
        compose_in(arena,
                   "{'TableName':%s,'ConsistentRead':true,%A,'KeyConditionExpression':'#queue = :queue%r',%#,"
                   "'ExpressionAttributeValues':{':queue':%S%A}}",
                   queues_table(redrive->func, arena), more,
                   after.len ? SLICE(" AND #id > :after") : SLICE_NONE, redrive->queue, after));
}

/* Where a page ended, as the last id that was seen; at the end of the queue nothing changes. */
static bool page_goes_on(struct redrive *redrive, struct slice page)
{
    struct arena *arena = redrive->call->arena;
    struct slice key = raw_member(arena, page, "LastEvaluatedKey");
    if (!key.data) return false;
    redrive->after = arena_copy(arena, item_text(arena, key, "id"));
    return true;
}

static bool has_room(const struct redrive *redrive)
{
    return !redrive->trouble && redrive->redriven < redrive->max && redrive->seen < LIMIT_REDRIVE_MESSAGES &&
           redrive->bytes < LIMIT_REDRIVE_BYTES;
}

/* One page of the queue. */
static void take_page(struct redrive *redrive)
{
    struct arena arena = {0};
    struct slice item,
        page = ask_page(redrive, &arena,
                        compose_in(&arena, "'Limit':%d", LIMIT_REDRIVE_MESSAGES - redrive->seen));
    bool is_whole = page.len > 0;
    raw_each (&arena, raw_member(&arena, page, "Items"), &item) {
        is_whole = has_room(redrive);
        if (!is_whole) break;
        take_message(redrive, item);
    }
    if (is_whole && !redrive->trouble) redrive->is_over = !page_goes_on(redrive, page);
    arena_free(&arena);
}

/* The only one that is meant. False when it is not there. */
static bool take_one(struct redrive *redrive)
{
    struct arena arena = {0};
    struct slice reply = ask(redrive, &arena, "GetItem",
                             compose_in(&arena,
                                        "{'TableName':%s,'ConsistentRead':true,'Key':{'queue':%S,'id':%S}}",
                                        queues_table(redrive->func, &arena), redrive->queue, redrive->id));
    struct slice item = raw_member(&arena, reply, "Item");
    bool found = item.data != NULL;
    if (found) take_message(redrive, item);
    arena_free(&arena);
    return found || redrive->trouble;
}

/* How many messages there are behind `after`; of a long queue, only as far as LIMIT_REDRIVE_COUNT_PAGES go. */
static void count_left(struct redrive *redrive)
{
    struct slice after = redrive->after;
    bool goes_on = !redrive->is_over;
    for (unsigned page = 0; goes_on && page < LIMIT_REDRIVE_COUNT_PAGES; page++) {
        struct slice reply = ask_page(redrive, redrive->call->arena, SLICE("\"Select\":\"COUNT\""));
        int64_t count = 0;
        raw_int(raw_member(redrive->call->arena, reply, "Count"), &count);
        redrive->left += count;
        goes_on = page_goes_on(redrive, reply);
    }
    redrive->after = after;
    if (!redrive->left && !goes_on && !redrive->trouble) redrive->is_over = true;
}

/* ---- the answer ---- */

static void answer(struct redrive *redrive)
{
    struct rest_call *call = redrive->call;
    struct buf *out = call->reply;
    compose(out, "{'redriven':%d,'refused':%d,'later':%d,'left':%d,'reasons':[", redrive->redriven,
            redrive->refused, redrive->later, redrive->left);
    for (const struct reason *reason = redrive->reasons; reason < redrive->reasons + REASONS && reason->text;
         reason++) {
        compose(out, "%,{'reason':%s,'count':%d,'ids':[", slice_of(reason->text), (int64_t)reason->count);
        for (unsigned i = 0; i < reason->count && i < REASON_IDS; i++) compose(out, "%,%s", reason->ids[i]);
        buf_text(out, "]}");
    }
    buf_byte(out, ']');
    if (!redrive->is_over && !redrive->id.len)
        compose(
            out, ",'next':%s",
            arena_printf(call->arena, "%.*s/%.*s", SLICE_ARG(redrive->started), SLICE_ARG(redrive->after)));
    buf_text(out, "}\n");
    lambda_done(call, 200);
}

/* What was done before the trouble is told, and whoever goes on meets it again. */
static void run(void *room, struct rest_call *call)
{
    struct func *func = room;
    struct redrive redrive = {
        .func = func, .call = call, .queue = call->parameters[0], .max = LIMIT_REDRIVE_MESSAGES};
    redrive.started = moment_text(call->arena, clock_now_ms(func->options.clock));
    redrive.host = task_host_open(func->options.dynamo, func->options.clock);
    if (read_request(&redrive)) {
        bool found = true;
        if (redrive.id.len)
            found = take_one(&redrive);
        else
            while (!redrive.is_over && has_room(&redrive)) take_page(&redrive);
        if (redrive.was_sent) func_queue_wake(func); /* also where it is not known what became of it */
        if (redrive.id.len) redrive.after = SLICE_NONE;
        const char *trouble = redrive.trouble;
        if (found && (!trouble || redrive.redriven)) count_left(&redrive);
        if (!found)
            lambda_error(call, 404, "ResourceNotFoundException", "There is no message %.*s in the queue %.*s",
                         SLICE_ARG(redrive.id), SLICE_ARG(redrive.queue));
        else if (trouble && !redrive.redriven)
            lambda_error(call, 503, "ServiceException", "Nothing was redriven: %s", trouble);
        else
            answer(&redrive);
    }
    task_host_free(redrive.host);
}

void func_serve_redrive(void *room, struct rest_call *call)
{
    struct func *func = room;
    rest_workers_run(func->workers, run, func, call);
}
