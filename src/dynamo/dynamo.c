/* What both doors have in common: the way into their table of functions, calls that wait, and errors read
 * back out of their JSON. */
#include "dynamo/dynamo.h"

#include <semaphore.h>

#include "base/fail.h"
#include "base/json.h"
#include "dynamo/internal.h"

void dynamo_close(struct dynamo *dynamo)
{
    dynamo->methods->close(dynamo);
}

struct engine *dynamo_engine(struct dynamo *dynamo)
{
    return dynamo->engine;
}

void dynamo_hurry(struct dynamo *dynamo)
{
    if (dynamo->methods->hurry) dynamo->methods->hurry(dynamo);
}

enum dynamo_kind dynamo_kind(struct dynamo *dynamo)
{
    return dynamo->methods->kind ? dynamo->methods->kind(dynamo) : DYNAMO_KIND_USUAL;
}

enum dynamo_kind dynamo_kind_ask(struct dynamo *dynamo)
{
    return dynamo->methods->kind_ask ? dynamo->methods->kind_ask(dynamo) : DYNAMO_KIND_USUAL;
}

bool dynamo_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    call->dynamo = dynamo;
    return dynamo->methods->begin(dynamo, call, turn);
}

void dynamo_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    dynamo->methods->turn_end(dynamo, turn);
}

void dynamo_finish(struct dynamo_call *call)
{
    call->dynamo->methods->finish(call);
}

bool refuse_unknown_operation(struct dynamo_call *call)
{
    call->error = "UnknownOperationException";
    call->status = api_put_error(call->reply, call->error, SLICE(""));
    return true;
}

bool refuse_without_transactions(struct dynamo_call *call)
{
    call->error = DYNAMO_NO_TRANSACTIONS;
    call->status = 400;
    buf_text(call->reply,
             "{\"__type\":\"" DYNAMO_NO_TRANSACTIONS "\",\"message\":"
             "\"The database is ScyllaDB Alternator, which has no transactions, and this needs one.\"}");
    return true;
}

/* ---- waiting ---- */

struct waited_call {
    struct dynamo_call call;
    sem_t answered;
};

static void wake_caller(struct dynamo_call *call)
{
    sem_post(&((struct waited_call *)call)->answered);
}

static void wait_for(struct waited_call *waited)
{
    while (sem_wait(&waited->answered) != 0) {
        /* a signal's handler ran */
    }
}

int dynamo_call(struct dynamo *dynamo, struct slice operation, struct slice request, struct buf *reply)
{
    return dynamo_call_caused(dynamo, SLICE_NONE, operation, request, reply);
}

struct dynamo_reply dynamo_ask(struct dynamo *dynamo, struct arena *arena, const char *operation,
                               struct slice request)
{
    struct buf body = {0};
    struct dynamo_reply reply = {.status = dynamo_call(dynamo, slice_of(operation), request, &body)};
    reply.body = arena_take(arena, &body);
    if (reply.status != 200) dynamo_error(reply.body, arena, &reply.error, &reply.message);
    reply.fault = dynamo_fault(reply.status, reply.error);
    return reply;
}

int dynamo_call_caused(struct dynamo *dynamo, struct slice cause, struct slice operation,
                       struct slice request, struct buf *reply)
{
    return dynamo_call_wait(
        dynamo, &(struct dynamo_call){.name = operation, .request = request, .cause = cause, .reply = reply});
}

int dynamo_call_wait(struct dynamo *dynamo, const struct dynamo_call *call)
{
    struct arena arena = {0};
    struct dynamo_turn turn = {0};
    struct waited_call waited = {.call = *call};
    waited.call.arena = &arena;
    waited.call.done = wake_caller;
    ensure(sem_init(&waited.answered, 0, 0) == 0);
    if (!dynamo_begin(dynamo, &waited.call, &turn)) {
        dynamo_turn_end(dynamo, &turn);
        wait_for(&waited);
        dynamo_finish(&waited.call);
    }
    sem_destroy(&waited.answered);
    arena_free(&arena);
    return waited.call.status;
}

/* ---- errors ---- */

/* "com.amazonaws.dynamodb.v20120810#ResourceInUseException" and "X:http://..." -> the name alone. */
static struct slice short_name(struct slice type)
{
    const char *hash = type.len ? memrchr(type.data, '#', type.len) : NULL;
    if (hash) type = slice_from(type, (size_t)(hash - type.data) + 1);
    const char *colon = type.len ? memchr(type.data, ':', type.len) : NULL;
    if (colon) type.len = (size_t)(colon - type.data);
    return type;
}

void dynamo_error(struct slice reply, struct arena *arena, struct slice *name, struct slice *message)
{
    struct json_reader reader;
    struct slice member;
    *name = *message = SLICE("");
    json_begin(&reader, reply, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return;
    while (json_member(&reader, &member)) {
        bool is_type = slice_equal(member, SLICE("__type"));
        bool is_text = json_peek(&reader) == JSON_STRING;
        if (is_text && (is_type || slice_equal_ignoring_case(member, SLICE("message"))))
            json_string(&reader, is_type ? name : message);
        else
            json_skip(&reader);
    }
    *name = short_name(*name);
}
