/* AddPermission, RemovePermission, GetPolicy. Policies are kept and shown, one for each qualifier; nobody is
 * refused by them: whoever reaches this server may call its functions. */
#include "base/limits.h"
#include "func/lambda.h"

static bool consists_of(struct slice text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (!c || !strchr(others, c))) return false;
    }
    return text.len != 0;
}

static bool is_statement_id(struct slice text)
{
    return consists_of(text, "-_");
}

static bool is_any_statement_id(struct slice text)
{
    return consists_of(text, "-_.");
}

static bool is_action(struct slice text)
{
    if (slice_equal(text, SLICE("*")) || slice_equal(text, SLICE("lambda:*"))) return true;
    return slice_starts(text, SLICE("lambda:")) && consists_of(slice_from(text, 7), "");
}

static bool is_principal(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ') return false;
    return text.len != 0;
}

static bool is_arn(struct slice text)
{
    return slice_starts(text, SLICE("arn:aws"));
}

static bool is_account(struct slice text)
{
    unsigned long long number;
    return text.len == 12 && slice_to_u64(text, 999999999999, &number);
}

static const char *const auth_types[] = {"NONE", "AWS_IAM", NULL};
static const struct shape shape_statement_id = {.kind = SHAPE_STRING,
                                                .has_min = true,
                                                .min = 1,
                                                .has_max = true,
                                                .max = 100,
                                                .matches = is_statement_id,
                                                .pattern = "([a-zA-Z0-9-_]+)"};
static const struct shape shape_any_statement_id = {.kind = SHAPE_STRING,
                                                    .has_min = true,
                                                    .min = 1,
                                                    .has_max = true,
                                                    .max = 100,
                                                    .matches = is_any_statement_id,
                                                    .pattern = "([a-zA-Z0-9-_.]+)"};
static const struct shape shape_action = {
    .kind = SHAPE_STRING, .matches = is_action, .pattern = "(lambda:[*]|lambda:[a-zA-Z]+|[*])"};
static const struct shape shape_principal = {
    .kind = SHAPE_STRING, .matches = is_principal, .pattern = "[^\\s]+"};
static const struct shape shape_source_arn = {
    .kind = SHAPE_STRING,
    .matches = is_arn,
    .pattern =
        "arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1})?"
        ":(\\d{12})?:(.*)"};
static const struct shape shape_account = {
    .kind = SHAPE_STRING, .has_max = true, .max = 12, .matches = is_account, .pattern = "\\d{12}"};
static const struct shape shape_token = {.kind = SHAPE_STRING, .has_max = true, .max = 256};
static const struct shape shape_organization = {
    .kind = SHAPE_STRING, .has_min = true, .min = 12, .has_max = true, .max = 34};
static const struct shape shape_auth_type = {.kind = SHAPE_STRING, .choices = auth_types};

enum {
    ADD_NAME,
    ADD_QUALIFIER,
    ADD_STATEMENT,
    ADD_ACTION,
    ADD_PRINCIPAL,
    ADD_SOURCE_ARN,
    ADD_SOURCE_ACCOUNT,
    ADD_TOKEN,
    ADD_REVISION,
    ADD_ORGANIZATION,
    ADD_AUTH_TYPE,
    ADD_MEMBERS,
};

static const struct field add_fields[] = {
    [ADD_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [ADD_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
    [ADD_STATEMENT] = REQUIRED("StatementId", shape_statement_id),
    [ADD_ACTION] = REQUIRED("Action", shape_action),
    [ADD_PRINCIPAL] = REQUIRED("Principal", shape_principal),
    [ADD_SOURCE_ARN] = FIELD("SourceArn", shape_source_arn),
    [ADD_SOURCE_ACCOUNT] = FIELD("SourceAccount", shape_account),
    [ADD_TOKEN] = FIELD("EventSourceToken", shape_token),
    [ADD_REVISION] = FIELD("RevisionId", lambda_shape_text),
    [ADD_ORGANIZATION] = FIELD("PrincipalOrgID", shape_organization),
    [ADD_AUTH_TYPE] = FIELD("FunctionUrlAuthType", shape_auth_type),
};

struct policing {
    struct func *func;
    struct target target;
    const struct node *nodes;
    struct slice statement; /* that was added, as JSON */
};

/* ---- statements ---- */

static void put_principal(struct buf *out, struct slice principal)
{
    unsigned long long number;
    if (slice_equal(principal, SLICE("*"))) {
        buf_text(out, "\"*\"");
        return;
    }
    bool is_number = principal.len == 12 && slice_to_u64(principal, 999999999999, &number);
    bool is_service = memchr(principal.data, '.', principal.len) && !slice_starts(principal, SLICE("arn:"));
    buf_slice(out, is_service ? SLICE("{\"Service\":") : SLICE("{\"AWS\":"));
    if (is_number)
        buf_printf(out, "\"arn:aws:iam::%.*s:root\"", SLICE_ARG(principal));
    else
        json_put_string(out, principal);
    buf_byte(out, '}');
}

/* Begins "StringEquals":{ or goes on in it. */
static void put_equals(struct buf *out, bool *open, const char *key, struct slice value)
{
    if (!*open) buf_printf(out, "%s\"StringEquals\":{", out->data[out->len - 1] == '{' ? "" : ",");
    buf_printf(out, "%s\"%s\":", *open ? "," : "", key);
    json_put_string(out, value);
    *open = true;
}

static void put_condition(struct buf *out, const struct node *nodes)
{
    static const struct {
        int member;
        const char *key;
    } equals[] = {{ADD_SOURCE_ACCOUNT, "AWS:SourceAccount"},
                  {ADD_TOKEN, "lambda:EventSourceToken"},
                  {ADD_ORGANIZATION, "aws:PrincipalOrgID"},
                  {ADD_AUTH_TYPE, "lambda:FunctionUrlAuthType"}};
    size_t start = out->len;
    bool open = false;
    buf_text(out, ",\"Condition\":{");
    size_t empty = out->len;
    if (nodes[ADD_SOURCE_ARN].present) {
        buf_text(out, "\"ArnLike\":{\"AWS:SourceArn\":");
        json_put_string(out, nodes[ADD_SOURCE_ARN].text);
        buf_byte(out, '}');
    }
    for (size_t i = 0; i < sizeof equals / sizeof *equals; i++)
        if (nodes[equals[i].member].present)
            put_equals(out, &open, equals[i].key, nodes[equals[i].member].text);
    if (open) buf_byte(out, '}');
    if (out->len == empty)
        out->len = start;
    else
        buf_byte(out, '}');
}

static struct slice statement_json(const struct policing *policing, struct arena *arena)
{
    const struct node *nodes = policing->nodes;
    struct buf json = {0};
    buf_text(&json, "{\"Sid\":");
    json_put_string(&json, nodes[ADD_STATEMENT].text);
    buf_text(&json, ",\"Effect\":\"Allow\",\"Principal\":");
    put_principal(&json, nodes[ADD_PRINCIPAL].text);
    buf_text(&json, ",\"Action\":");
    json_put_string(&json, nodes[ADD_ACTION].text);
    buf_text(&json, ",\"Resource\":");
    json_put_string(&json,
                    lambda_arn(policing->func, arena, policing->target.name, policing->target.qualifier));
    put_condition(&json, nodes);
    buf_byte(&json, '}');
    struct slice copy = arena_copy(arena, buf_view(&json));
    buf_free(&json);
    return copy;
}

/* ---- policies: a document whose member Statements has them by their ids ---- */

static struct slice policy_qualifier(struct slice qualifier)
{
    return qualifier.len ? qualifier : SLICE(PART_LATEST);
}

static const struct part *policy_part(const struct entry *entry, struct slice qualifier)
{
    return entry ? entry_part_of(entry, PART_POLICY, policy_qualifier(qualifier)) : NULL;
}

static void policy_write(struct change *change, const struct policing *policing,
                         const struct document *statements)
{
    struct document document = {0};
    struct slice qualifier = policy_qualifier(policing->target.qualifier);
    document_set(&document, "Statements", document_json(statements, change->arena), change->arena);
    document_set_text(&document, "RevisionId", registry_uuid(change->registry, change->arena), change->arena);
    change_put(change, arena_printf(change->arena, PART_POLICY "%.*s", SLICE_ARG(qualifier)), &document);
}

static bool policy_revision_fits(struct rest_call *call, const struct node *given, const struct part *part)
{
    if (!given->present) return true;
    if (part && slice_equal(given->text, document_text(&part->document, "RevisionId", call->arena)))
        return true;
    lambda_error(call, 412, "PreconditionFailedException",
                 "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to "
                 "retrieve the latest Revision Id");
    return false;
}

/* ---- AddPermission ---- */

static bool target_is_there(struct func *func, struct rest_call *call, const struct change *change,
                            const struct target *target)
{
    struct slice qualifier = target->qualifier;
    unsigned long long number;
    if (change->before && entry_qualified(change->before, qualifier)) return true;
    bool is_alias = change->before && qualifier.len && !slice_to_u64(qualifier, UINT32_MAX, &number) &&
                    !memchr(qualifier.data, '$', qualifier.len);
    if (is_alias)
        lambda_error(call, 404, "ResourceNotFoundException", "Cannot find alias arn: %.*s",
                     SLICE_ARG(lambda_arn(func, call->arena, change->name, qualifier)));
    else
        lambda_not_found(func, call, change->name, qualifier);
    return false;
}

static enum step add_step(struct rest_call *call, struct change *change, void *context)
{
    struct policing *policing = context;
    const struct node *nodes = policing->nodes;
    struct document statements = {0};
    if (!target_is_there(policing->func, call, change, &policing->target)) return STEP_ANSWERED;
    const struct part *part = policy_part(change->before, policing->target.qualifier);
    if (!policy_revision_fits(call, &nodes[ADD_REVISION], part)) return STEP_ANSWERED;
    if (part) statements = document_object(&part->document, "Statements", call->arena);
    const char *id = arena_printf(call->arena, "%.*s", SLICE_ARG(nodes[ADD_STATEMENT].text)).data;
    if (document_get(&statements, id).data) {
        lambda_error(call, 409, "ResourceConflictException",
                     "The statement id (%s) provided already exists. Please provide a new statement id, or "
                     "remove the existing statement.",
                     id);
        return STEP_ANSWERED;
    }
    policing->statement = statement_json(policing, call->arena);
    document_set(&statements, id, policing->statement, call->arena);
    if (document_json(&statements, call->arena).len > LIMIT_POLICY_BYTES) {
        lambda_error(call, 400, "PolicyLengthExceededException",
                     "The final policy size is bigger than the limit (%d).", LIMIT_POLICY_BYTES);
        return STEP_ANSWERED;
    }
    policy_write(change, policing, &statements);
    return STEP_COMMIT;
}

void lambda_add_permission(struct func *func, struct rest_call *call)
{
    struct node nodes[ADD_MEMBERS];
    struct policing policing = {.func = func, .nodes = nodes};
    struct change change;
    if (!lambda_decode(call, add_fields, FIELD_COUNT(add_fields), nodes) ||
        !lambda_target(func, call, &nodes[ADD_NAME], &nodes[ADD_QUALIFIER], &policing.target))
        return;
    if (slice_equal(policing.target.qualifier, SLICE(PART_LATEST))) {
        lambda_error(call, 400, "InvalidParameterValueException",
                     "We currently do not support adding policies for $LATEST.");
        return;
    }
    if (!lambda_change(func, call, &policing.target, add_step, &policing, &change)) return;
    change_free(&change);
    buf_text(call->reply, "{\"Statement\":");
    json_put_string(call->reply, policing.statement);
    buf_byte(call->reply, '}');
    lambda_done(call, 201);
}

/* ---- RemovePermission ---- */

enum { REMOVE_NAME, REMOVE_STATEMENT, REMOVE_QUALIFIER, REMOVE_REVISION, REMOVE_MEMBERS };

static const struct field remove_fields[] = {
    [REMOVE_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [REMOVE_STATEMENT] = PATH_FIELD("StatementId", shape_any_statement_id, 1),
    [REMOVE_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
    [REMOVE_REVISION] = QUERY_FIELD("RevisionId", lambda_shape_text),
};

static enum step remove_step(struct rest_call *call, struct change *change, void *context)
{
    struct policing *policing = context;
    const struct node *nodes = policing->nodes;
    const struct part *part = policy_part(change->before, policing->target.qualifier);
    if (!change->before) {
        lambda_error(call, 404, "ResourceNotFoundException", "No policy found for: %.*s",
                     SLICE_ARG(lambda_arn(policing->func, call->arena, change->name, SLICE_NONE)));
        return STEP_ANSWERED;
    }
    if (!part) {
        lambda_error(call, 404, "ResourceNotFoundException",
                     "No policy is associated with the given resource.");
        return STEP_ANSWERED;
    }
    if (!policy_revision_fits(call, &nodes[REMOVE_REVISION], part)) return STEP_ANSWERED;
    struct document statements = document_object(&part->document, "Statements", call->arena);
    const char *id = arena_printf(call->arena, "%.*s", SLICE_ARG(nodes[REMOVE_STATEMENT].text)).data;
    if (!document_get(&statements, id).data) {
        lambda_error(call, 404, "ResourceNotFoundException", "Statement %s is not found in resource policy.",
                     id);
        return STEP_ANSWERED;
    }
    document_set(&statements, id, SLICE_NONE, call->arena);
    if (statements.count)
        policy_write(change, policing, &statements);
    else
        change_delete(change, part->name);
    return STEP_COMMIT;
}

void lambda_remove_permission(struct func *func, struct rest_call *call)
{
    struct node nodes[REMOVE_MEMBERS];
    struct policing policing = {.func = func, .nodes = nodes};
    struct change change;
    if (!lambda_decode(call, remove_fields, FIELD_COUNT(remove_fields), nodes) ||
        !lambda_target(func, call, &nodes[REMOVE_NAME], &nodes[REMOVE_QUALIFIER], &policing.target) ||
        !lambda_change(func, call, &policing.target, remove_step, &policing, &change))
        return;
    change_free(&change);
    lambda_done(call, 204);
}

/* ---- GetPolicy ---- */

static const struct field get_fields[] = {
    PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0),
    QUERY_FIELD("Qualifier", lambda_shape_qualifier),
};

static void put_policy(struct rest_call *call, const struct part *part)
{
    struct document statements = document_object(&part->document, "Statements", call->arena);
    struct buf policy = {0};
    buf_text(&policy, "{\"Version\":\"2012-10-17\",\"Id\":\"default\",\"Statement\":[");
    for (uint32_t i = 0; i < statements.count; i++) {
        if (i) buf_byte(&policy, ',');
        buf_slice(&policy, statements.members[i].value);
    }
    buf_text(&policy, "]}");
    buf_text(call->reply, "{\"Policy\":");
    json_put_string(call->reply, buf_view(&policy));
    buf_text(call->reply, ",\"RevisionId\":");
    json_put_string(call->reply, document_text(&part->document, "RevisionId", call->arena));
    buf_byte(call->reply, '}');
    buf_free(&policy);
}

void lambda_get_policy(struct func *func, struct rest_call *call)
{
    struct node nodes[2];
    struct target target;
    if (!lambda_decode(call, get_fields, FIELD_COUNT(get_fields), nodes) ||
        !lambda_target(func, call, &nodes[0], &nodes[1], &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    const struct part *part = policy_part(entry, target.qualifier);
    if (part) put_policy(call, part);
    bool shown = part != NULL;
    entry_release(entry);
    if (shown)
        lambda_done(call, 200);
    else
        lambda_error(call, 404, "ResourceNotFoundException", "The resource you requested does not exist.");
}
