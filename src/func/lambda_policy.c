/* AddPermission, RemovePermission, GetPolicy. Policies are kept and shown, one for each qualifier; nobody is
 * refused by them: whoever reaches this server may call its functions. */
#include "base/limits.h"
#include "func/lambda.h"

static bool is_statement_id(struct slice text)
{
    return text_consists_of(text, "-_");
}

static bool is_any_statement_id(struct slice text)
{
    return text_consists_of(text, "-_.");
}

static bool is_action(struct slice text)
{
    if (slice_equal(text, SLICE("*")) || slice_equal(text, SLICE("lambda:*"))) return true;
    return slice_starts(text, SLICE("lambda:")) && text_consists_of(slice_from(text, 7), "");
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

static const struct shape shape_statement_id = {TEXT_BETWEEN(1, 100), .matches = is_statement_id,
                                                .pattern = "([a-zA-Z0-9-_]+)"};
static const struct shape shape_any_statement_id = {TEXT_BETWEEN(1, 100), .matches = is_any_statement_id,
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
static const struct shape shape_account = {TEXT_UP_TO(12), .matches = text_is_account, .pattern = "\\d{12}"};
static const struct shape shape_token = {TEXT_UP_TO(256)};
static const struct shape shape_organization = {TEXT_BETWEEN(12, 34)};
CHOICE_SHAPE(shape_auth_type, "NONE", "AWS_IAM");

#define ADD(X)                                                                                               \
    X(ADD_NAME, NAME_FIELD)                                                                                  \
    X(ADD_QUALIFIER, QUALIFIER_FIELD)                                                                        \
    X(ADD_STATEMENT, REQUIRED("StatementId", shape_statement_id))                                            \
    X(ADD_ACTION, REQUIRED("Action", shape_action))                                                          \
    X(ADD_PRINCIPAL, REQUIRED("Principal", shape_principal))                                                 \
    X(ADD_SOURCE_ARN, FIELD("SourceArn", shape_source_arn))                                                  \
    X(ADD_SOURCE_ACCOUNT, FIELD("SourceAccount", shape_account))                                             \
    X(ADD_TOKEN, FIELD("EventSourceToken", shape_token))                                                     \
    X(ADD_REVISION, REVISION_FIELD)                                                                          \
    X(ADD_ORGANIZATION, FIELD("PrincipalOrgID", shape_organization))                                         \
    X(ADD_AUTH_TYPE, FIELD("FunctionUrlAuthType", shape_auth_type))
MEMBERS(ADD)

/* ---- statements ---- */

static struct slice principal_json(struct slice principal, struct arena *arena)
{
    if (slice_equal(principal, SLICE("*"))) return SLICE("\"*\"");
    if (text_is_account(principal))
        return compose_in(arena, "{'AWS':%s}",
                          arena_printf(arena, "arn:aws:iam::%.*s:root", SLICE_ARG(principal)));
    bool is_service = memchr(principal.data, '.', principal.len) && !slice_starts(principal, SLICE("arn:"));
    return compose_in(arena, is_service ? "{'Service':%s}" : "{'AWS':%s}", principal);
}

static void put_condition(struct buf *out, const struct shape_node *nodes)
{
    static const struct {
        int member;
        const char *key;
    } equals[] = {{ADD_SOURCE_ACCOUNT, "AWS:SourceAccount"},
                  {ADD_TOKEN, "lambda:EventSourceToken"},
                  {ADD_ORGANIZATION, "aws:PrincipalOrgID"},
                  {ADD_AUTH_TYPE, "lambda:FunctionUrlAuthType"}};
    struct buf members = {0};
    for (size_t i = 0; i < sizeof equals / sizeof *equals; i++)
        if (nodes[equals[i].member].present)
            compose(&members, "%,%s:%s", slice_of(equals[i].key), nodes[equals[i].member].text);
    if (members.len || nodes[ADD_SOURCE_ARN].present) compose(out, ",'Condition':{");
    if (nodes[ADD_SOURCE_ARN].present)
        compose(out, "'ArnLike':{'AWS:SourceArn':%s}", nodes[ADD_SOURCE_ARN].text);
    if (members.len) compose(out, "%,'StringEquals':{%A}", buf_view(&members));
    if (members.len || nodes[ADD_SOURCE_ARN].present) buf_byte(out, '}');
    buf_free(&members);
}

static struct slice statement_json(const struct request *request)
{
    const struct shape_node *nodes = request->nodes;
    struct buf json = {0};
    compose(&json, "{'Sid':%s,'Effect':'Allow','Principal':%A,'Action':%s,'Resource':%s",
            nodes[ADD_STATEMENT].text, principal_json(nodes[ADD_PRINCIPAL].text, request->arena),
            nodes[ADD_ACTION].text,
            lambda_arn(request->func, request->arena, request->name, request->qualifier));
    put_condition(&json, nodes);
    buf_byte(&json, '}');
    return arena_take(request->arena, &json);
}

/* ---- policies: a document whose member Statements has them by their ids ---- */

static void policy_write(const struct request *request, struct change *change,
                         const struct document *statements)
{
    struct document document = {0};
    document_set(&document, "Statements", document_json(statements, change->arena), change->arena);
    document_set_text(&document, "RevisionId", registry_uuid(change->registry, change->arena), change->arena);
    change_put(change, arena_printf(change->arena, PART_POLICY "%.*s", SLICE_ARG(lambda_qualifier(request))),
               &document);
}

static bool policy_revision_fits(struct rest_call *call, const struct shape_node *given, const struct part *part)
{
    if (!given->present) return true;
    if (part && slice_equal(given->text, document_text(&part->document, "RevisionId", call->arena)))
        return true;
    return lambda_error(
        call, 412, "PreconditionFailedException",
        "The Revision Id provided does not match the latest Revision Id. Call the GetPolicy API to "
        "retrieve the latest Revision Id");
}

/* ---- AddPermission ---- */

static bool target_is_there(const struct request *request, const struct change *change)
{
    struct slice qualifier = request->qualifier;
    unsigned long long number;
    if (change->before && entry_qualified(change->before, qualifier)) return true;
    bool is_alias = change->before && qualifier.len && !slice_to_u64(qualifier, UINT32_MAX, &number) &&
                    !memchr(qualifier.data, '$', qualifier.len);
    if (!is_alias) return lambda_missing(request, qualifier);
    return lambda_error(request->call, 404, "ResourceNotFoundException", "Cannot find alias arn: %.*s",
                        SLICE_ARG(lambda_arn(request->func, request->arena, request->name, qualifier)));
}

static enum step add_step(struct request *request, struct change *change, void *context)
{
    struct slice *statement = context;
    struct document statements = {0};
    if (!target_is_there(request, change)) return STEP_ANSWERED;
    const struct part *part = entry_part_of(change->before, PART_POLICY, lambda_qualifier(request));
    if (!policy_revision_fits(request->call, &request->nodes[ADD_REVISION], part)) return STEP_ANSWERED;
    if (part) statements = document_object(&part->document, "Statements", request->arena);
    const char *id = arena_copy(request->arena, request->nodes[ADD_STATEMENT].text).data;
    if (document_get(&statements, id).data)
        return lambda_error(
            request->call, 409, "ResourceConflictException",
            "The statement id (%s) provided already exists. Please provide a new statement id, or "
            "remove the existing statement.",
            id);
    *statement = statement_json(request);
    document_set(&statements, id, *statement, request->arena);
    if (document_json(&statements, request->arena).len > LIMIT_POLICY_BYTES)
        return lambda_error(request->call, 400, "PolicyLengthExceededException",
                            "The final policy size is bigger than the limit (%d).", LIMIT_POLICY_BYTES);
    policy_write(request, change, &statements);
    return STEP_COMMIT;
}

OPERATION(add_permission, TARGET_QUALIFIED, ADD)
{
    struct slice statement = SLICE_NONE; /* that was added, as JSON */
    struct change change;
    if (slice_equal(request->qualifier, SLICE(PART_LATEST))) {
        lambda_refuse(request->call, "We currently do not support adding policies for $LATEST.");
        return;
    }
    if (!lambda_change(request, add_step, &statement, &change)) return;
    change_free(&change);
    lambda_reply(request, 201, "{'Statement':%s}", statement);
}

/* ---- RemovePermission ---- */

#define REMOVE(X)                                                                                            \
    X(REMOVE_NAME, NAME_FIELD)                                                                               \
    X(REMOVE_STATEMENT, PATH_FIELD("StatementId", shape_any_statement_id, 1))                                \
    X(REMOVE_QUALIFIER, QUALIFIER_FIELD)                                                                     \
    X(REMOVE_REVISION, QUERY_FIELD("RevisionId", lambda_shape_text))
MEMBERS(REMOVE)

static enum step remove_step(struct request *request, struct change *change, void *context)
{
    struct rest_call *call = request->call;
    (void)context;
    if (!change->before)
        return lambda_error(call, 404, "ResourceNotFoundException", "No policy found for: %.*s",
                            SLICE_ARG(lambda_arn(request->func, call->arena, request->name, SLICE_NONE)));
    const struct part *part = entry_part_of(change->before, PART_POLICY, lambda_qualifier(request));
    if (!part)
        return lambda_error(call, 404, "ResourceNotFoundException",
                            "No policy is associated with the given resource.");
    if (!policy_revision_fits(call, &request->nodes[REMOVE_REVISION], part)) return STEP_ANSWERED;
    struct document statements = document_object(&part->document, "Statements", call->arena);
    const char *id = arena_copy(call->arena, request->nodes[REMOVE_STATEMENT].text).data;
    if (!document_get(&statements, id).data)
        return lambda_error(call, 404, "ResourceNotFoundException",
                            "Statement %s is not found in resource policy.", id);
    document_set(&statements, id, SLICE_NONE, call->arena);
    if (statements.count)
        policy_write(request, change, &statements);
    else
        change_delete(change, part->name);
    return STEP_COMMIT;
}

OPERATION(remove_permission, TARGET_QUALIFIED, REMOVE)
{
    lambda_change_quietly(request, remove_step, NULL);
}

/* ---- GetPolicy ---- */

#define GET(X)                                                                                               \
    X(GET_NAME, PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0))                              \
    X(GET_QUALIFIER, QUALIFIER_FIELD)

OPERATION(get_policy, TARGET_QUALIFIED | TARGET_ENTRY, GET)
{
    const struct part *part = entry_part_of(request->entry, PART_POLICY, lambda_qualifier(request));
    struct buf list = {0};
    if (!part) {
        lambda_no_resource(request->call);
        return;
    }
    struct document statements = document_object(&part->document, "Statements", request->arena);
    for (uint32_t i = 0; i < statements.count; i++) compose(&list, "%,%A", statements.members[i].value);
    struct slice policy = compose_in(
        request->arena, "{'Version':'2012-10-17','Id':'default','Statement':[%A]}", buf_view(&list));
    buf_free(&list);
    lambda_reply(request, 200, "{'Policy':%s,'RevisionId':%s}", policy,
                 document_text(&part->document, "RevisionId", request->arena));
}
