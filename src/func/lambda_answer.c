/* How Lambda's API answers, and which function a request is about. */
#include <stdarg.h>

#include "base/limits.h"
#include "func/lambda.h"

/* The exceptions whose message has a capital letter in the service's replies; the others' has none. */
static const char *const with_capital[] = {"ResourceNotFoundException", "ServiceException",
                                           "InvalidRuntimeException", "AccessDeniedException", NULL};

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

void lambda_error(struct rest_call *call, int status, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    call->reply->len = 0;
    buf_byte(call->reply, '{');
    if (has_type(type)) buf_printf(call->reply, "\"Type\":\"%s\",", status < 500 ? "User" : "Service");
    buf_printf(call->reply, "\"%s\":", message_member(type));
    json_put_string(call->reply, message);
    buf_byte(call->reply, '}');
    rest_add_header(call, "X-Amzn-ErrorType: %s", type);
    lambda_done(call, status);
}

void lambda_unavailable(struct rest_call *call)
{
    lambda_error(call, 500, "ServiceException",
                 "The tables of functions cannot be used now; see the server's log");
}

struct slice lambda_arn(struct func *func, struct arena *arena, struct slice name, struct slice qualifier)
{
    struct slice arn = arena_printf(arena, "arn:aws:lambda:%.*s:%.*s:function:%.*s", SLICE_ARG(func->region),
                                    SLICE_ARG(func->account), SLICE_ARG(name));
    if (!qualifier.len) return arn;
    return arena_printf(arena, "%.*s:%.*s", SLICE_ARG(arn), SLICE_ARG(qualifier));
}

void lambda_not_found(struct func *func, struct rest_call *call, struct slice name, struct slice qualifier)
{
    lambda_error(call, 404, "ResourceNotFoundException", "Function not found: %.*s",
                 SLICE_ARG(lambda_arn(func, call->arena, name, qualifier)));
}

bool lambda_revision_fits(struct rest_call *call, const struct node *given, const struct document *document)
{
    if (!given->present || slice_equal(given->text, document_text(document, "RevisionId", call->arena)))
        return true;
    lambda_error(call, 412, "PreconditionFailedException",
                 "The Revision Id provided does not match the latest Revision Id. Call the "
                 "GetFunction/GetAlias API to retrieve the latest Revision Id");
    return false;
}

/* ---- targets ---- */

/* A full ARN must be of this region and this account. */
static bool is_reachable(struct func *func, struct rest_call *call, struct slice text)
{
    if (!slice_starts(text, SLICE("arn:"))) return true;
    for (int i = 0; i < 3; i++) lambda_take_field(&text);
    struct slice region = lambda_take_field(&text), account = lambda_take_field(&text);
    if (!slice_equal(region, func->region)) {
        lambda_error(call, 404, "ResourceNotFoundException",
                     "Functions from '%.*s' are not reachable in this region ('%.*s')", SLICE_ARG(region),
                     SLICE_ARG(func->region));
        return false;
    }
    if (slice_equal(account, func->account)) return true;
    lambda_error(call, 403, "AccessDeniedException",
                 "The functions of this server are of the account %.*s, not of %.*s",
                 SLICE_ARG(func->account), SLICE_ARG(account));
    return false;
}

bool lambda_target(struct func *func, struct rest_call *call, const struct node *name,
                   const struct node *qualifier, struct target *out)
{
    if (!is_reachable(func, call, name->text)) return false;
    if (!function_name_parse(name->text, &out->name, &out->qualifier)) {
        struct slice shown = out->name.len ? out->name : name->text;
        lambda_error(call, 400, "InvalidParameterValueException",
                     "1 validation error detected: Value '%.*s' at 'functionName' failed to satisfy "
                     "constraint: Member must have length less than or equal to 64",
                     SLICE_ARG(shown));
        return false;
    }
    if (!qualifier || !qualifier->present) return true;
    if (out->qualifier.len && !slice_equal(out->qualifier, qualifier->text)) {
        lambda_error(call, 400, "InvalidParameterValueException",
                     "The derived qualifier from the function name does not match the specified qualifier.");
        return false;
    }
    out->qualifier = qualifier->text;
    return true;
}

bool lambda_whole_target(struct func *func, struct rest_call *call, const struct node *name,
                         struct target *out)
{
    if (!lambda_target(func, call, name, NULL, out)) return false;
    if (!out->qualifier.len) return true;
    lambda_error(call, 400, "InvalidParameterValueException",
                 "This operation is permitted on Lambda functions only. Aliases and versions do not support "
                 "this operation. Please specify either a function name or an unqualified function ARN.");
    return false;
}

struct entry *lambda_entry(struct func *func, struct rest_call *call, const struct target *target)
{
    bool failed;
    struct entry *entry = registry_look(func->registry, target->name, &failed);
    if (entry) return entry;
    if (failed)
        lambda_unavailable(call);
    else
        lambda_not_found(func, call, target->name, target->qualifier);
    return NULL;
}

/* ---- changes ---- */

/* One turn of a change. AGAIN: somebody else was faster. */
static enum change_end change_once(struct func *func, struct rest_call *call, const struct target *target,
                                   lambda_step *step, void *context, struct change *change, bool *answered)
{
    *answered = false;
    if (!change_begin(change, func->registry, target->name, call->arena)) return CHANGE_FAILED;
    switch (step(call, change, context)) {
    case STEP_ANSWERED: *answered = true; return CHANGE_FAILED;
    case STEP_NOTHING: change->after = change->before ? entry_keep(change->seen) : NULL; return CHANGE_DONE;
    case STEP_COMMIT: break;
    }
    return change_commit(change);
}

bool lambda_change(struct func *func, struct rest_call *call, const struct target *target, lambda_step *step,
                   void *context, struct change *change)
{
    enum change_end end = CHANGE_AGAIN;
    bool answered = false;
    for (int i = 0; i < LIMIT_CHANGE_ATTEMPTS && end == CHANGE_AGAIN; i++) {
        if (i) change_free(change);
        end = change_once(func, call, target, step, context, change, &answered);
    }
    if (end == CHANGE_DONE) return true;
    change_free(change);
    if (answered) return false;
    if (end == CHANGE_AGAIN)
        lambda_error(call, 409, "ResourceConflictException",
                     "The operation cannot be performed at this time. An update is in progress for "
                     "resource: %.*s",
                     SLICE_ARG(lambda_arn(func, call->arena, target->name, SLICE_NONE)));
    else
        lambda_unavailable(call);
    return false;
}
