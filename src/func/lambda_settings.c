/* Settings of a function as a whole: reserved concurrency, recursion, tags; of its versions: the runtime
 * management; of the account. And the questions after settings that there are none of. */
#include "base/limits.h"
#include "func/lambda.h"

#define PROCESSES_DEFAULT 100 /* func_options.process_max, where it is 0 */

#define NAME_ONLY(X) X(NAME, NAME_FIELD)

/* A member of the function's own document. */
static struct slice head_member(const struct entry *entry, const char *name)
{
    const struct part *head = entry_part(entry, SLICE(PART_FUNCTION));
    return head ? document_get(&head->document, name) : SLICE_NONE;
}

struct setting {
    const char *member;
    struct slice json; /* NULL data: take it away */
};

static enum step setting_step(struct request *request, struct change *change, void *context)
{
    const struct setting *setting = context;
    if (!change->before) return lambda_missing(request, SLICE(PART_LATEST));
    document_set(&change->head, setting->member, setting->json, request->arena);
    return STEP_COMMIT;
}

/* Writes the member and answers with it. */
static void setting_put(struct request *request, const char *member, const struct shape_node *node)
{
    struct setting setting = {member, node_json(node, request->arena)};
    struct change change;
    if (!lambda_change(request, setting_step, &setting, &change)) return;
    change_free(&change);
    lambda_reply(request, 200, "{%s:%A}", slice_of(member), setting.json);
}

/* ---- reserved concurrency ---- */

static const struct shape shape_reserved = {.kind = SHAPE_INTEGER, .has_min = true, .min = 0};

#define RESERVED(X)                                                                                          \
    X(RESERVED_NAME, NAME_FIELD) X(RESERVED_COUNT, REQUIRED("ReservedConcurrentExecutions", shape_reserved))
MEMBERS(RESERVED)

OPERATION(put_concurrency, TARGET_WHOLE, RESERVED)
{
    setting_put(request, "ReservedConcurrentExecutions", &request->nodes[RESERVED_COUNT]);
}

OPERATION(get_concurrency, TARGET_WHOLE | TARGET_ENTRY, NAME_ONLY)
{
    struct slice reserved = head_member(request->entry, "ReservedConcurrentExecutions");
    lambda_reply(request, 200, reserved.data ? "{'ReservedConcurrentExecutions':%A}" : "{}", reserved);
}

OPERATION(delete_concurrency, TARGET_WHOLE, NAME_ONLY)
{
    struct setting setting = {"ReservedConcurrentExecutions", SLICE_NONE};
    lambda_change_quietly(request, setting_step, &setting);
}

/* ---- recursion ---- */

CHOICE_SHAPE(shape_loop, "Terminate", "Allow");

#define RECURSION(X) X(RECURSION_NAME, NAME_FIELD) X(RECURSION_LOOP, REQUIRED("RecursiveLoop", shape_loop))
MEMBERS(RECURSION)

OPERATION(put_recursion, TARGET_WHOLE, RECURSION)
{
    setting_put(request, "RecursiveLoop", &request->nodes[RECURSION_LOOP]);
}

OPERATION(get_recursion, TARGET_WHOLE | TARGET_ENTRY, NAME_ONLY)
{
    struct slice loop = head_member(request->entry, "RecursiveLoop");
    lambda_reply(request, 200, "{'RecursiveLoop':%A}", loop.data ? loop : SLICE("\"Terminate\""));
}

/* ---- tags ---- */

static bool is_resource(struct slice text)
{
    static const struct slice kinds[] = {SLICE("function:"), SLICE("event-source-mapping:"),
                                         SLICE("code-signing-config:"), SLICE("layer:")};
    struct arn arn;
    bool is_known = false;
    if (!arn_parse(text, &arn) || !slice_equal(arn.service, SLICE("lambda"))) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        is_known |= slice_starts(arn.resource, kinds[i]);
    return is_known;
}

static const struct shape shape_resource = {
    TEXT_BETWEEN(1, 256),
    .matches = is_resource,
    .pattern = "arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:\\d{12}:"
               "(function:[a-zA-Z0-9-_]+(:(\\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)|"
               "code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"
               "[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)",
};
static const struct shape shape_keys = {.kind = SHAPE_LIST, .of = &lambda_shape_text};

#define RESOURCE(X) X(RESOURCE_ARN, PATH_FIELD("Resource", shape_resource, 0))
#define TAG(X)      RESOURCE(X) X(RESOURCE_TAGS, REQUIRED("Tags", lambda_shape_tags))
#define UNTAG(X)                                                                                             \
    RESOURCE(X)                                                                                              \
    X(RESOURCE_KEYS,                                                                                         \
      {.name = "TagKeys", .shape = &shape_keys, .required = true, .source = FROM_QUERY, .wire = "tagKeys"})
enum { RESOURCE_ARN, RESOURCE_TAGS, RESOURCE_KEYS = RESOURCE_TAGS };

/* The function that the resource is; false: answered. */
static bool resource_target(struct request *request)
{
    const struct shape_node *resource = &request->nodes[RESOURCE_ARN];
    struct arn arn;
    struct target target;
    if (!arn_parse(resource->text, &arn) || !slice_starts(arn.resource, SLICE("function:")))
        return lambda_error(request->call, 404, "ResourceNotFoundException",
                            "The resource you requested does not exist: %.*s", SLICE_ARG(resource->text));
    if (!lambda_target(request->func, request->call, resource, NULL, &target)) return false;
    request->name = target.name;
    if (!target.qualifier.len) return true;
    return lambda_refuse(
        request->call,
        "Tags on function aliases and versions are not supported. Please specify a function ARN.");
}

struct tagging {
    const struct shape_node *tags; /* to be put; NULL: none */
    const struct shape_node *keys; /* to be taken away; NULL: none */
};

static enum step tag_step(struct request *request, struct change *change, void *context)
{
    const struct tagging *tagging = context;
    struct arena *arena = request->arena;
    if (!change->before) return lambda_missing(request, SLICE_NONE);
    struct document tags = document_object(&change->head, "Tags", arena);
    for (uint32_t i = 0; tagging->tags && i < tagging->tags->count; i++)
        document_set(&tags, arena_copy(arena, tagging->tags->keys[i]).data,
                     node_json(&tagging->tags->nodes[i], arena), arena);
    for (uint32_t i = 0; tagging->keys && i < tagging->keys->count; i++)
        document_set(&tags, arena_copy(arena, tagging->keys->nodes[i].text).data, SLICE_NONE, arena);
    if (tags.count > LIMIT_TAGS)
        return lambda_refuse(request->call, "Number of tags exceeds resource tag limit.");
    document_set(&change->head, "Tags", tags.count ? document_json(&tags, arena) : SLICE_NONE, arena);
    return STEP_COMMIT;
}

OPERATION(tag_resource, TARGET_NONE, TAG)
{
    struct tagging tagging = {&request->nodes[RESOURCE_TAGS], NULL};
    if (!request->nodes[RESOURCE_TAGS].count)
        lambda_refuse(request->call, "An error occurred and the request cannot be processed.");
    else if (resource_target(request))
        lambda_change_quietly(request, tag_step, &tagging);
}

OPERATION(untag_resource, TARGET_NONE, UNTAG)
{
    struct tagging tagging = {NULL, &request->nodes[RESOURCE_KEYS]};
    if (resource_target(request)) lambda_change_quietly(request, tag_step, &tagging);
}

OPERATION(list_tags, TARGET_NONE, RESOURCE)
{
    if (!resource_target(request) || !lambda_find(request)) return;
    struct slice tags = head_member(request->entry, "Tags");
    lambda_reply(request, 200, "{'Tags':%A}", tags.data ? tags : SLICE("{}"));
}

/* ---- runtime management: kept and shown; here the runtime is what the machine has ---- */

CHOICE_SHAPE(shape_update_time, "Auto", "Manual", "FunctionUpdate");

#define RUNTIME_GET(X) X(RUNTIME_NAME, NAME_FIELD) X(RUNTIME_QUALIFIER, QUALIFIER_FIELD)
#define RUNTIME_PUT(X)                                                                                       \
    RUNTIME_GET(X)                                                                                           \
    X(RUNTIME_UPDATE, REQUIRED("UpdateRuntimeOn", shape_update_time))                                        \
    X(RUNTIME_ARN, FIELD("RuntimeVersionArn", lambda_shape_text))
MEMBERS(RUNTIME_PUT)

static void reply_runtime(struct request *request, const struct document *document)
{
    compose(request->call->reply, "{'FunctionArn':%s",
            lambda_arn(request->func, request->arena, request->name, request->qualifier));
    document_put_more(request->call->reply, document);
    lambda_reply(request, 200, "}");
}

static enum step runtime_step(struct request *request, struct change *change, void *context)
{
    struct slice qualifier = lambda_qualifier(request);
    if (!change->before || !entry_qualified(change->before, qualifier))
        return lambda_missing(request, qualifier);
    change_put(change, arena_printf(request->arena, PART_RUNTIME "%.*s", SLICE_ARG(qualifier)), context);
    return STEP_COMMIT;
}

OPERATION(put_runtime_management, TARGET_QUALIFIED, RUNTIME_PUT)
{
    const struct shape_node *nodes = request->nodes;
    struct document document = {0};
    struct change change;
    document_set(&document, "UpdateRuntimeOn", node_json(&nodes[RUNTIME_UPDATE], request->arena),
                 request->arena);
    node_set(&document, "RuntimeVersionArn", &nodes[RUNTIME_ARN], request->arena);
    if (!lambda_change(request, runtime_step, &document, &change)) return;
    change_free(&change);
    reply_runtime(request, &document);
}

OPERATION(get_runtime_management, TARGET_QUALIFIED | TARGET_ENTRY, RUNTIME_GET)
{
    struct document document = {0};
    const struct part *part = entry_part_of(request->entry, PART_RUNTIME, lambda_qualifier(request));
    document_set(&document, "UpdateRuntimeOn", SLICE("\"Auto\""), request->arena);
    reply_runtime(request, part ? &part->document : &document);
}

/* ---- the account ---- */

void lambda_get_account_settings(void *room, struct rest_call *call)
{
    struct func *func = room;
    uint32_t count;
    int64_t reserved = 0, code_bytes = 0;
    struct entry **list = registry_list(func->registry, FUNCTIONS_BEGIN, LIMIT_FUNCTIONS, call->arena,
                                        &count);
    int64_t all = func->options.process_max ? func->options.process_max : PROCESSES_DEFAULT;
    for (uint32_t i = 0; i < count; i++) {
        const struct part *head = entry_part(list[i], SLICE(PART_FUNCTION));
        if (head) reserved += document_integer(&head->document, "ReservedConcurrentExecutions", 0);
        for (uint32_t j = 0; j < list[i]->count; j++)
            if (part_is_version(&list[i]->parts[j]))
                code_bytes += document_integer(&list[i]->parts[j].document, "CodeSize", 0);
        entry_release(list[i]);
    }
    compose(call->reply,
            "{'AccountLimit':{'TotalCodeSize':80530636800,'CodeSizeUnzipped':%d,'CodeSizeZipped':%d,"
            "'ConcurrentExecutions':%d,'UnreservedConcurrentExecutions':%d},"
            "'AccountUsage':{'TotalCodeSize':%d,'FunctionCount':%d}}",
            (int64_t)LIMIT_UNPACKED_BYTES, (int64_t)LIMIT_CODE_BYTES, all,
            reserved < all ? all - reserved : (int64_t)0, code_bytes, (int64_t)count);
    lambda_done(call, 200);
}

/* ---- settings that there are none of: told so in the service's words, since clients ask by themselves ---- */

OPERATION(get_code_signing, TARGET_WHOLE | TARGET_ENTRY, NAME_ONLY)
{
    lambda_reply(request, 200, "{'FunctionName':%s}", request->name);
}

/* GetProvisionedConcurrencyConfig and, by the same path, ListProvisionedConcurrencyConfigs. */
OPERATION(provisioned_concurrency, TARGET_WHOLE | TARGET_ENTRY, NAME_ONLY)
{
    if (rest_query(request->call, "List").data)
        lambda_reply(request, 200, "{'ProvisionedConcurrencyConfigs':[]}");
    else
        lambda_error(request->call, 404, "ProvisionedConcurrencyConfigNotFoundException",
                     "No Provisioned Concurrency Config found for this function");
}
