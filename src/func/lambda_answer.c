/* How Lambda's API answers, and which function a request is about. */
#include <stdarg.h>

#include "base/fail.h"
#include "base/limits.h"
#include "func/lambda.h"

/* The exceptions whose message has a capital letter in the service's replies; the others' has none. */
static const char *const with_capital[] = {"ResourceNotFoundException", "ServiceException",
                                           "InvalidRuntimeException",   "AccessDeniedException",
                                           "ResourceInUseException",    NULL};

void lambda_done(struct rest_call *call, int status)
{
    call->status = status;
    call->done(call);
}

static const char *message_member(const char *type)
{
    for (const char *const *name = with_capital; *name; name++)
        if (slice_equal(slice_of(*name), slice_of(type))) return "Message";
    return "message";
}

/* Violations of constraints are told by the service's front, which knows no Type. */
static bool has_type(const char *type)
{
    return !slice_equal(slice_of(type), SLICE("ValidationException")) &&
           !slice_equal(slice_of(type), SLICE("SerializationException"));
}

void lambda_reply(const struct request *request, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    compose_list(request->call->reply, format, args);
    va_end(args);
    lambda_done(request->call, status);
}

static bool answer_error(struct rest_call *call, int status, const char *type, const char *format,
                         va_list args)
{
    struct slice message = arena_vprintf(call->arena, format, args);
    call->reply->len = 0;
    buf_byte(call->reply, '{');
    if (has_type(type)) compose(call->reply, "'Type':%s", status < 500 ? SLICE("User") : SLICE("Service"));
    compose(call->reply, "%,%s:%s}", slice_of(message_member(type)), message);
    rest_add_header(call, "X-Amzn-ErrorType: %s", type);
    lambda_done(call, status);
    return false;
}

bool lambda_error(struct rest_call *call, int status, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_error(call, status, type, format, args);
    va_end(args);
    return false;
}

bool lambda_refuse(struct rest_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    answer_error(call, 400, "InvalidParameterValueException", format, args);
    va_end(args);
    return false;
}

bool lambda_no_resource(struct rest_call *call)
{
    return lambda_error(call, 404, "ResourceNotFoundException", "The resource you requested does not exist.");
}

bool lambda_unavailable(struct rest_call *call)
{
    return lambda_error(call, 500, "ServiceException",
                        "The tables of functions cannot be used now; see the server's log");
}

struct slice lambda_arn(struct func *func, struct arena *arena, struct slice name, struct slice qualifier)
{
    struct slice arn = arena_printf(arena, "arn:aws:lambda:%.*s:%.*s:function:%.*s", SLICE_ARG(func->region),
                                    SLICE_ARG(func->account), SLICE_ARG(name));
    if (!qualifier.len) return arn;
    return arena_printf(arena, "%.*s:%.*s", SLICE_ARG(arn), SLICE_ARG(qualifier));
}

bool lambda_not_found(struct func *func, struct rest_call *call, struct slice name, struct slice qualifier)
{
    return lambda_error(call, 404, "ResourceNotFoundException", "Function not found: %.*s",
                        SLICE_ARG(lambda_arn(func, call->arena, name, qualifier)));
}

bool lambda_missing(const struct request *request, struct slice qualifier)
{
    return lambda_not_found(request->func, request->call, request->name, qualifier);
}

bool lambda_revision_fits(struct rest_call *call, const struct shape_node *given,
                          const struct document *document)
{
    if (!given->present || slice_equal(given->text, document_text(document, "RevisionId", call->arena)))
        return true;
    return lambda_error(call, 412, "PreconditionFailedException",
                        "The Revision Id provided does not match the latest Revision Id. Call the "
                        "GetFunction/GetAlias API to retrieve the latest Revision Id");
}

/* ---- targets ---- */

/* A full ARN must be of this region and this account. */
static bool is_reachable(struct func *func, struct rest_call *call, struct slice text)
{
    if (!slice_starts(text, SLICE("arn:"))) return true;
    for (int i = 0; i < 3; i++) slice_cut(&text, ':');
    struct slice region = slice_cut(&text, ':'), account = slice_cut(&text, ':');
    if (!slice_equal(region, func->region))
        return lambda_error(call, 404, "ResourceNotFoundException",
                            "Functions from '%.*s' are not reachable in this region ('%.*s')",
                            SLICE_ARG(region), SLICE_ARG(func->region));
    if (slice_equal(account, func->account)) return true;
    return lambda_error(call, 403, "AccessDeniedException",
                        "The functions of this server are of the account %.*s, not of %.*s",
                        SLICE_ARG(func->account), SLICE_ARG(account));
}

bool lambda_target(struct func *func, struct rest_call *call, const struct shape_node *name,
                   const struct shape_node *qualifier, struct target *out)
{
    if (!is_reachable(func, call, name->text)) return false;
    if (!function_name_parse(name->text, &out->name, &out->qualifier))
        return lambda_refuse(call,
                             "1 validation error detected: Value '%.*s' at 'functionName' failed to satisfy "
                             "constraint: Member must have length less than or equal to 64",
                             SLICE_ARG(out->name.len ? out->name : name->text));
    if (!qualifier || !qualifier->present) return true;
    if (out->qualifier.len && !slice_equal(out->qualifier, qualifier->text))
        return lambda_refuse(
            call, "The derived qualifier from the function name does not match the specified qualifier.");
    out->qualifier = qualifier->text;
    return true;
}

static const struct shape_node *node_named(const struct shape_field *fields, uint32_t count,
                                           const struct shape_node *nodes, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0) return &nodes[i];
    return NULL;
}

struct slice lambda_qualifier(const struct request *request)
{
    return request->qualifier.len ? request->qualifier : SLICE(PART_LATEST);
}

bool lambda_find(struct request *request)
{
    bool failed;
    request->entry = registry_look(request->func->registry, request->name, &failed);
    if (request->entry) return true;
    return failed ? lambda_unavailable(request->call) : lambda_missing(request, request->qualifier);
}

#define MEMBERS_MAX 40 /* more than any request has */

void lambda_run(struct func *func, struct rest_call *call, const struct shape_field *fields, uint32_t count,
                int target, void (*serve)(struct request *request))
{
    struct shape_node nodes[MEMBERS_MAX]; /* not in the arena, which is gone when the call was answered */
    struct target found = {0};
    ensure(count <= MEMBERS_MAX);
    if (!lambda_decode(call, fields, count, nodes)) return;
    if (target && !lambda_target(func, call, node_named(fields, count, nodes, "FunctionName"),
                                 node_named(fields, count, nodes, "Qualifier"), &found))
        return;
    if (target & TARGET_WHOLE && found.qualifier.len) {
        lambda_refuse(
            call, "This operation is permitted on Lambda functions only. Aliases and versions do not support "
                  "this operation. Please specify either a function name or an unqualified function ARN.");
        return;
    }
    struct request request = {func, call, call->arena, nodes, found.name, found.qualifier, NULL, SLICE_NONE};
    if (target & TARGET_ENTRY && !lambda_find(&request)) return;
    serve(&request);
    entry_release(request.entry);
}

/* ---- changes ---- */

/* One turn of a change. AGAIN: somebody else was faster. */
static enum change_end change_once(struct request *request, lambda_step *step, void *context,
                                   struct change *change, bool *answered)
{
    if (!change_begin(change, request->func->registry, request->name, request->arena)) return CHANGE_FAILED;
    switch (step(request, change, context)) {
    case STEP_ANSWERED: *answered = true; return CHANGE_FAILED;
    case STEP_NOTHING: change->after = change->before ? entry_keep(change->seen) : NULL; return CHANGE_DONE;
    case STEP_COMMIT: break;
    }
    return change_commit(change);
}

bool lambda_change(struct request *request, lambda_step *step, void *context, struct change *change)
{
    enum change_end end = CHANGE_AGAIN;
    bool answered = false;
    for (int i = 0; i < LIMIT_CHANGE_ATTEMPTS && end == CHANGE_AGAIN; i++) {
        if (i) change_free(change);
        end = change_once(request, step, context, change, &answered);
    }
    if (end == CHANGE_DONE) return true;
    change_free(change);
    if (answered) return false;
    if (end != CHANGE_AGAIN) return lambda_unavailable(request->call);
    return lambda_error(
        request->call, 409, "ResourceConflictException",
        "The operation cannot be performed at this time. An update is in progress for resource: %.*s",
        SLICE_ARG(lambda_arn(request->func, request->arena, request->name, SLICE_NONE)));
}

void lambda_change_quietly(struct request *request, lambda_step *step, void *context)
{
    struct change change;
    if (!lambda_change(request, step, context, &change)) return;
    change_free(&change);
    lambda_done(request->call, 204);
}

bool lambda_show(struct request *request, struct change *change, lambda_put *put, int status)
{
    const struct part *part = change->after ? entry_part(change->after, request->part) : NULL;
    bool is_there = part != NULL;
    if (part) put(request->call->reply, request, change->after, part);
    change_free(change);
    if (is_there) lambda_done(request->call, status);
    return is_there;
}

void lambda_get_part(struct request *request, const struct part_kind *kind, struct slice suffix)
{
    bool failed;
    request->entry = registry_look(request->func->registry, request->name, &failed);
    const struct part *part = request->entry ? entry_part_of(request->entry, kind->prefix, suffix) : NULL;
    if (part) {
        kind->put(request->call->reply, request, request->entry, part);
        lambda_done(request->call, 200);
    } else if (failed) {
        lambda_unavailable(request->call);
    } else {
        kind->missing(request);
    }
}

void lambda_change_part(struct request *request, const struct part_kind *kind, lambda_step *step,
                        void *context, int status)
{
    struct change change;
    if (lambda_change(request, step, context, &change) && !lambda_show(request, &change, kind->put, status))
        kind->missing(request); /* deleted by somebody else */
}

static enum step delete_step(struct request *request, struct change *change, void *context)
{
    const struct part_kind *kind = context;
    const struct part *part = NULL;
    if (change->before) part = entry_part_of(change->before, kind->prefix, lambda_qualifier(request));
    if (!part) return kind->missing(request);
    change_delete(change, part->name);
    return STEP_COMMIT;
}

void lambda_delete_part(struct request *request, const struct part_kind *kind)
{
    struct part_kind own = *kind;
    lambda_change_quietly(request, delete_step, &own);
}

/* ---- lists ---- */

uint32_t lambda_list_max(const struct shape_node *max)
{
    return max->present && max->integer < LIST_MOST ? (uint32_t)max->integer : LIST_MOST;
}

void lambda_list_end(const struct request *request, struct slice marker)
{
    if (marker.data)
        lambda_reply(request, 200, "],'NextMarker':%s}", marker);
    else
        lambda_reply(request, 200, "]}");
}

void lambda_list_parts(const struct request *request, const char *member, const char *prefix,
                       const struct shape_node *marker, const struct shape_node *max,
                       bool (*is_wanted)(const struct request *request, const struct part *part),
                       lambda_put *put)
{
    const struct entry *entry = request->entry;
    struct slice last = SLICE_NONE;
    bool has_more = false;
    compose(request->call->reply, "{%s:[", slice_of(member));
    for (uint32_t i = 0, shown = 0; i < entry->count && !has_more; i++) {
        const struct part *part = &entry->parts[i];
        struct slice name = part_suffix(part, prefix);
        if (!name.data || (marker->present && slice_compare(name, marker->text) <= 0)) continue;
        if (is_wanted && !is_wanted(request, part)) continue;
        has_more = shown++ == lambda_list_max(max);
        if (has_more) break;
        put(request->call->reply, request, entry, part);
        last = name;
    }
    lambda_list_end(request, has_more ? last : SLICE_NONE);
}
