/* Invoke and InvokeAsync. They run on the thread that read the request and never wait: the answer is written
 * when the function has answered, on whichever thread that is.
 *
 * The one thing that may take long is a name that this server does not know while others work on the same
 * tables: then a worker looks, and the call goes on there. */
#include "base/limits.h"
#include "base/raw.h"
#include "func/lambda.h"

CHOICE_SHAPE(shape_type, "Event", "RequestResponse", "DryRun");
CHOICE_SHAPE(shape_log, "None", "Tail");

#define INVOKE(X)                                                                                            \
    X(INVOKE_NAME, PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0))                           \
    X(INVOKE_QUALIFIER, QUALIFIER_FIELD)                                                                     \
    X(INVOKE_TYPE, HEADER_FIELD("InvocationType", shape_type, "X-Amz-Invocation-Type"))                      \
    X(INVOKE_LOG, HEADER_FIELD("LogType", shape_log, "X-Amz-Log-Type"))                                      \
    X(INVOKE_CONTEXT, HEADER_FIELD("ClientContext", lambda_shape_text, "X-Amz-Client-Context"))
enum { INVOKE(FIELD_INDEX) INVOKE_MEMBERS };
static const struct shape_field invoke_fields[] = {INVOKE(FIELD_ROW)};

enum kind { KIND_REQUEST, KIND_EVENT, KIND_DRY_RUN };

/* A call from its decoding to its answer; in the call's arena. */
struct invoking {
    struct func *func;
    struct rest_call *call;
    struct target target;
    enum kind kind;
    bool is_async_api; /* InvokeAsync, which answers with a body */
    bool has_looked;   /* into the tables, for a name that was not known */
    struct invocation invocation;
    struct queued queued;
};

static void begin(struct invoking *invoking);

/* ---- what is asked ---- */

static bool payload_is_json(struct rest_call *call, struct slice payload)
{
    struct json_reader reader;
    json_begin(&reader, payload, call->arena);
    if (json_skip(&reader) && json_done(&reader)) return true;
    return lambda_error(
        call, 400, "InvalidRequestContentException",
        "Could not parse request body into json: Could not parse payload into json: %s at byte %zu",
        reader.fault ? reader.fault : "more than one value", json_offset(&reader));
}

static bool payload_read(struct invoking *invoking, struct slice *payload)
{
    struct rest_call *call = invoking->call;
    size_t max = invoking->kind == KIND_EVENT ? LIMIT_ASYNC_EVENT_BYTES : LIMIT_EVENT_BYTES;
    if (call->body.len > max)
        return lambda_error(call, 413, "RequestTooLargeException",
                            "Request must be smaller than %zu bytes for the InvokeFunction operation", max);
    *payload = call->body.len ? call->body : SLICE("{}");
    return payload_is_json(call, *payload);
}

static bool context_read(struct rest_call *call, const struct shape_node *node, struct slice *context)
{
    struct document document;
    if (!node->present) return true;
    if (base64_decode(call->arena, node->text, context) == BASE64_OK &&
        document_parse(*context, call->arena, &document))
        return true;
    return lambda_error(call, 400, "InvalidRequestContentException",
                        "Client context must be a valid Base64-encoded JSON object.");
}

static enum kind kind_of(const struct shape_node *type)
{
    if (!type->present) return KIND_REQUEST;
    return slice_equal(type->text, SLICE("Event"))    ? KIND_EVENT
           : slice_equal(type->text, SLICE("DryRun")) ? KIND_DRY_RUN
                                                      : KIND_REQUEST;
}

/* ---- answers ---- */

static void answer_throttled(struct invoking *invoking)
{
    struct rest_call *call = invoking->call;
    bool is_reserved = registry_reserved(invoking->func, invoking->target.name) != UINT32_MAX;
    buf_printf(call->reply, "{\"Type\":\"User\",\"Reason\":\"%s\",\"message\":\"Rate Exceeded.\"}",
               is_reserved ? "ReservedFunctionConcurrentInvocationLimitExceeded"
                           : "ConcurrentInvocationLimitExceeded");
    rest_add_header(call, "X-Amzn-ErrorType: TooManyRequestsException");
    lambda_done(call, 429);
}

/* It cannot run here: the reply is an error that says why. */
static void answer_refused(struct invoking *invoking)
{
    struct rest_call *call = invoking->call;
    struct slice reply = arena_take(call->arena, &invoking->invocation.reply);
    struct slice message = raw_string(call->arena, raw_member(call->arena, reply, "errorMessage"));
    if (!message.len) message = SLICE("The function cannot run now.");
    lambda_error(call, 502, "InvalidRuntimeException", "%.*s", SLICE_ARG(message));
}

static void answer_result(struct invoking *invoking)
{
    struct rest_call *call = invoking->call;
    struct invocation *invocation = &invoking->invocation;
    call->request_id = arena_copy(call->arena, slice_of(invocation->request_id));
    rest_add_header(call, "X-Amz-Executed-Version: %s", invocation->version);
    if (invocation->end == INVOCATION_FAILED)
        rest_add_header(call, "X-Amz-Function-Error: %s",
                        invocation->error_kind ? invocation->error_kind : "Unhandled");
    if (invocation->wants_log) {
        struct buf log = {0};
        base64_put(&log, buf_view(&invocation->log));
        rest_add_header(call, "X-Amz-Log-Result: %.*s", SLICE_ARG(buf_view(&log)));
        buf_free(&log);
    }
    buf_slice(call->reply, buf_view(&invocation->reply));
    buf_free(&invocation->reply);
    lambda_done(call, 200);
}

static void invoked(struct invocation *invocation)
{
    struct invoking *invoking = invocation->context;
    struct func *func = invoking->func;
    switch (invocation->end) {
    case INVOCATION_ANSWERED:
    case INVOCATION_FAILED: answer_result(invoking); break;
    case INVOCATION_THROTTLED: answer_throttled(invoking); break;
    case INVOCATION_REFUSED: answer_refused(invoking); break;
    case INVOCATION_UNKNOWN:
        lambda_not_found(func, invoking->call, invoking->target.name, invoking->target.qualifier);
        break;
    }
}

static void accepted(struct queued *queued)
{
    struct invoking *invoking = queued->context;
    struct rest_call *call = invoking->call;
    if (queued->status != 200) {
        lambda_unavailable(call);
        return;
    }
    call->request_id = arena_copy(call->arena, slice_of(queued->id));
    if (invoking->is_async_api) buf_text(call->reply, "{\"Status\":202}");
    lambda_done(call, 202);
}

/* ---- beginning ---- */

static void begin_queued(struct invoking *invoking)
{
    struct rest_call *call = invoking->call;
    struct target *target = &invoking->target;
    invoking->queued = (struct queued){
        .function = target->qualifier.len ? arena_printf(call->arena, "%.*s:%.*s", SLICE_ARG(target->name),
                                                         SLICE_ARG(target->qualifier))
                                          : target->name,
        .payload = invoking->invocation.payload,
        .cause = call->cause,
        .accepted = accepted,
        .context = invoking,
    };
    queue_accept(invoking->func->queue, &invoking->queued);
}

/* On a worker: the name may be in the tables, put there by another server. */
static void look(void *room, struct rest_call *call)
{
    struct invoking *invoking = call->context;
    struct func *func = room;
    bool failed;
    entry_release(registry_read(func->registry, invoking->target.name, &failed));
    invoking->has_looked = true;
    if (failed)
        lambda_unavailable(call);
    else
        begin(invoking);
}

static void begin(struct invoking *invoking)
{
    struct func *func = invoking->func;
    struct rest_call *call = invoking->call;
    struct target *target = &invoking->target;
    struct function *function = registry_function(func, target->name, target->qualifier, 0);
    bool is_known = function != NULL;
    function_release(function);
    if (!is_known && func->options.shared && !invoking->has_looked)
        rest_workers_run(func->workers, look, func, call);
    else if (!is_known)
        lambda_not_found(func, call, target->name, target->qualifier);
    else if (invoking->kind == KIND_DRY_RUN)
        lambda_done(call, 204);
    else if (invoking->kind == KIND_EVENT)
        begin_queued(invoking);
    else
        func_invoke(func, &invoking->invocation);
}

/* InvokeAsync knows only the name. */
static void invoke(struct func *func, struct rest_call *call, bool is_async_api)
{
    struct shape_node nodes[INVOKE_MEMBERS] = {{0}};
    struct invoking *invoking = arena_new(call->arena, struct invoking);
    struct slice payload, context = SLICE_NONE;
    *invoking = (struct invoking){.func = func, .call = call, .is_async_api = is_async_api};
    if (!lambda_decode(call, invoke_fields, is_async_api ? 1 : INVOKE_MEMBERS, nodes) ||
        !lambda_target(func, call, &nodes[INVOKE_NAME], &nodes[INVOKE_QUALIFIER], &invoking->target))
        return;
    invoking->kind = is_async_api ? KIND_EVENT : kind_of(&nodes[INVOKE_TYPE]);
    if (!payload_read(invoking, &payload) || !context_read(call, &nodes[INVOKE_CONTEXT], &context)) return;
    invoking->invocation = (struct invocation){
        .function = invoking->target.name,
        .qualifier = invoking->target.qualifier,
        .payload = payload,
        .client_context = context,
        .cause = call->cause,
        .wants_log = nodes[INVOKE_LOG].present && slice_equal(nodes[INVOKE_LOG].text, SLICE("Tail")),
        .arena = call->arena,
        .done = invoked,
        .context = invoking,
    };
    call->context = invoking;
    begin(invoking);
}

void lambda_invoke(void *func, struct rest_call *call)
{
    invoke(func, call, false);
}

void lambda_invoke_async(void *func, struct rest_call *call)
{
    invoke(func, call, true);
}
