/* Settings of a function as a whole: reserved concurrency, recursion, tags; of its versions: the runtime
 * management; of the account. And the questions after settings that there are none of. */
#include "base/limits.h"
#include "func/lambda.h"

#define PROCESSES_DEFAULT 100 /* func_options.process_max, where it is 0 */

static const struct field name_fields[] = {PATH_FIELD("FunctionName", lambda_shape_function_name, 0)};

static enum step answer_not_found(struct func *func, struct rest_call *call, struct slice name,
                                  struct slice qualifier)
{
    lambda_not_found(func, call, name, qualifier);
    return STEP_ANSWERED;
}

/* Decodes a request that has only the function's name, and finds it; NULL: answered. */
static struct entry *entry_by_name(struct func *func, struct rest_call *call)
{
    struct node nodes[1];
    struct target target;
    if (!lambda_decode(call, name_fields, 1, nodes) || !lambda_whole_target(func, call, &nodes[0], &target))
        return NULL;
    return lambda_entry(func, call, &target);
}

static struct slice head_member(const struct entry *entry, const char *name)
{
    const struct part *head = entry_part(entry, SLICE(PART_FUNCTION));
    return head ? document_get(&head->document, name) : SLICE_NONE;
}

/* ---- a member of the function's own document ---- */

struct setting {
    struct func *func;
    const char *member;
    struct slice json; /* NULL data: take it away */
};

static enum step setting_step(struct rest_call *call, struct change *change, void *context)
{
    const struct setting *setting = context;
    if (!change->before) return answer_not_found(setting->func, call, change->name, SLICE(PART_LATEST));
    document_set(&change->head, setting->member, setting->json, call->arena);
    return STEP_COMMIT;
}

static bool setting_write(struct func *func, struct rest_call *call, const struct target *target,
                          const char *member, struct slice json)
{
    struct setting setting = {func, member, json};
    struct change change;
    if (!lambda_change(func, call, target, setting_step, &setting, &change)) return false;
    change_free(&change);
    return true;
}

/* ---- reserved concurrency ---- */

static const struct shape shape_reserved = {.kind = SHAPE_INTEGER, .has_min = true, .min = 0};
static const struct field reserved_fields[] = {
    PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    REQUIRED("ReservedConcurrentExecutions", shape_reserved),
};

void lambda_put_concurrency(struct func *func, struct rest_call *call)
{
    struct node nodes[2];
    struct target target;
    if (!lambda_decode(call, reserved_fields, FIELD_COUNT(reserved_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[0], &target) ||
        !setting_write(func, call, &target, "ReservedConcurrentExecutions",
                       node_json(&nodes[1], call->arena)))
        return;
    buf_printf(call->reply, "{\"ReservedConcurrentExecutions\":%lld}", (long long)nodes[1].integer);
    lambda_done(call, 200);
}

void lambda_get_concurrency(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    struct slice reserved = head_member(entry, "ReservedConcurrentExecutions");
    if (reserved.data)
        buf_printf(call->reply, "{\"ReservedConcurrentExecutions\":%.*s}", SLICE_ARG(reserved));
    else
        buf_text(call->reply, "{}");
    entry_release(entry);
    lambda_done(call, 200);
}

void lambda_delete_concurrency(struct func *func, struct rest_call *call)
{
    struct node nodes[1];
    struct target target;
    if (!lambda_decode(call, name_fields, 1, nodes) || !lambda_whole_target(func, call, &nodes[0], &target) ||
        !setting_write(func, call, &target, "ReservedConcurrentExecutions", SLICE_NONE))
        return;
    lambda_done(call, 204);
}

/* ---- recursion ---- */

static const char *const loops[] = {"Terminate", "Allow", NULL};
static const struct shape shape_loop = {.kind = SHAPE_STRING, .choices = loops};
static const struct field loop_fields[] = {
    PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    REQUIRED("RecursiveLoop", shape_loop),
};

void lambda_put_recursion(struct func *func, struct rest_call *call)
{
    struct node nodes[2];
    struct target target;
    if (!lambda_decode(call, loop_fields, FIELD_COUNT(loop_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[0], &target) ||
        !setting_write(func, call, &target, "RecursiveLoop", node_json(&nodes[1], call->arena)))
        return;
    buf_printf(call->reply, "{\"RecursiveLoop\":\"%.*s\"}", SLICE_ARG(nodes[1].text));
    lambda_done(call, 200);
}

void lambda_get_recursion(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    struct slice loop = head_member(entry, "RecursiveLoop");
    buf_printf(call->reply, "{\"RecursiveLoop\":%.*s}", SLICE_ARG(loop.data ? loop : SLICE("\"Terminate\"")));
    entry_release(entry);
    lambda_done(call, 200);
}

/* ---- tags ---- */

static bool is_resource(struct slice text)
{
    for (int i = 0; i < 5; i++) {
        struct slice field = lambda_take_field(&text);
        if (i == 0 && !slice_equal(field, SLICE("arn"))) return false;
        if (i == 2 && !slice_equal(field, SLICE("lambda"))) return false;
    }
    return slice_starts(text, SLICE("function:")) || slice_starts(text, SLICE("event-source-mapping:")) ||
           slice_starts(text, SLICE("code-signing-config:")) || slice_starts(text, SLICE("layer:"));
}

static const struct shape shape_resource = {
    .kind = SHAPE_STRING,
    .has_min = true,
    .min = 1,
    .has_max = true,
    .max = 256,
    .matches = is_resource,
    .pattern = "arn:(aws[a-zA-Z-]*):lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:\\d{12}:"
               "(function:[a-zA-Z0-9-_]+(:(\\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)|"
               "code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"
               "[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)",
};
static const struct shape shape_keys = {.kind = SHAPE_LIST, .of = &lambda_shape_text};
static const struct field resource_fields[] = {PATH_FIELD("Resource", shape_resource, 0)};
static const struct field tag_fields[] = {
    PATH_FIELD("Resource", shape_resource, 0),
    REQUIRED("Tags", lambda_shape_tags),
};
static const struct field untag_fields[] = {
    PATH_FIELD("Resource", shape_resource, 0),
    {.name = "TagKeys", .shape = &shape_keys, .required = true, .source = IN_QUERY, .wire = "tagKeys"},
};

static bool resource_target(struct func *func, struct rest_call *call, const struct node *resource,
                            struct target *target)
{
    struct slice rest = resource->text;
    for (int i = 0; i < 5; i++) lambda_take_field(&rest);
    if (!slice_starts(rest, SLICE("function:"))) {
        lambda_error(call, 404, "ResourceNotFoundException",
                     "The resource you requested does not exist: %.*s", SLICE_ARG(resource->text));
        return false;
    }
    if (!lambda_target(func, call, resource, NULL, target)) return false;
    if (!target->qualifier.len) return true;
    lambda_error(call, 400, "InvalidParameterValueException",
                 "Tags on function aliases and versions are not supported. Please specify a function ARN.");
    return false;
}

struct tagging {
    struct func *func;
    const struct node *tags; /* to be put; NULL: none */
    const struct node *keys; /* to be taken away; NULL: none */
};

static void tags_merge(struct document *tags, const struct tagging *tagging, struct arena *arena)
{
    for (uint32_t i = 0; tagging->tags && i < tagging->tags->count; i++) {
        const char *key = arena_printf(arena, "%.*s", SLICE_ARG(tagging->tags->keys[i])).data;
        document_set(tags, key, node_json(&tagging->tags->nodes[i], arena), arena);
    }
    for (uint32_t i = 0; tagging->keys && i < tagging->keys->count; i++) {
        const char *key = arena_printf(arena, "%.*s", SLICE_ARG(tagging->keys->nodes[i].text)).data;
        document_set(tags, key, SLICE_NONE, arena);
    }
}

static enum step tag_step(struct rest_call *call, struct change *change, void *context)
{
    const struct tagging *tagging = context;
    if (!change->before) return answer_not_found(tagging->func, call, change->name, SLICE_NONE);
    struct document tags = document_object(&change->head, "Tags", call->arena);
    tags_merge(&tags, tagging, call->arena);
    if (tags.count > LIMIT_TAGS) {
        lambda_error(call, 400, "InvalidParameterValueException",
                     "Number of tags exceeds resource tag limit.");
        return STEP_ANSWERED;
    }
    document_set(&change->head, "Tags", tags.count ? document_json(&tags, call->arena) : SLICE_NONE,
                 call->arena);
    return STEP_COMMIT;
}

static void tags_change(struct func *func, struct rest_call *call, const struct node *resource,
                        const struct node *tags, const struct node *keys)
{
    struct tagging tagging = {func, tags, keys};
    struct target target;
    struct change change;
    if (!resource_target(func, call, resource, &target) ||
        !lambda_change(func, call, &target, tag_step, &tagging, &change))
        return;
    change_free(&change);
    lambda_done(call, 204);
}

void lambda_tag_resource(struct func *func, struct rest_call *call)
{
    struct node nodes[2];
    if (!lambda_decode(call, tag_fields, FIELD_COUNT(tag_fields), nodes)) return;
    if (nodes[1].count)
        tags_change(func, call, &nodes[0], &nodes[1], NULL);
    else
        lambda_error(call, 400, "InvalidParameterValueException",
                     "An error occurred and the request cannot be processed.");
}

void lambda_untag_resource(struct func *func, struct rest_call *call)
{
    struct node nodes[2];
    if (lambda_decode(call, untag_fields, FIELD_COUNT(untag_fields), nodes))
        tags_change(func, call, &nodes[0], NULL, &nodes[1]);
}

void lambda_list_tags(struct func *func, struct rest_call *call)
{
    struct node nodes[1];
    struct target target;
    if (!lambda_decode(call, resource_fields, FIELD_COUNT(resource_fields), nodes) ||
        !resource_target(func, call, &nodes[0], &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    struct slice tags = head_member(entry, "Tags");
    buf_printf(call->reply, "{\"Tags\":%.*s}", SLICE_ARG(tags.data ? tags : SLICE("{}")));
    entry_release(entry);
    lambda_done(call, 200);
}

/* ---- runtime management: kept and shown; here the runtime is what the machine has ---- */

static const char *const update_times[] = {"Auto", "Manual", "FunctionUpdate", NULL};
static const struct shape shape_update_time = {.kind = SHAPE_STRING, .choices = update_times};

enum { RUNTIME_NAME, RUNTIME_QUALIFIER, RUNTIME_UPDATE, RUNTIME_ARN, RUNTIME_MEMBERS };

static const struct field runtime_fields[] = {
    [RUNTIME_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [RUNTIME_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
    [RUNTIME_UPDATE] = REQUIRED("UpdateRuntimeOn", shape_update_time),
    [RUNTIME_ARN] = FIELD("RuntimeVersionArn", lambda_shape_text),
};

struct managing {
    struct func *func;
    struct slice qualifier;
    const struct node *nodes;
};

static void put_runtime(struct rest_call *call, struct func *func, const struct target *target,
                        const struct document *document)
{
    buf_text(call->reply, "{\"FunctionArn\":");
    json_put_string(call->reply, lambda_arn(func, call->arena, target->name, target->qualifier));
    document_put_more(call->reply, document);
    buf_byte(call->reply, '}');
}

static struct document runtime_document(const struct node *nodes, struct arena *arena)
{
    struct document document = {0};
    document_set(&document, "UpdateRuntimeOn", node_json(&nodes[RUNTIME_UPDATE], arena), arena);
    if (nodes[RUNTIME_ARN].present)
        document_set(&document, "RuntimeVersionArn", node_json(&nodes[RUNTIME_ARN], arena), arena);
    return document;
}

static enum step runtime_step(struct rest_call *call, struct change *change, void *context)
{
    const struct managing *managing = context;
    const struct part *part = change->before ? entry_qualified(change->before, managing->qualifier) : NULL;
    if (!part) return answer_not_found(managing->func, call, change->name, managing->qualifier);
    struct document document = runtime_document(managing->nodes, call->arena);
    change_put(change, arena_printf(call->arena, PART_RUNTIME "%.*s", SLICE_ARG(managing->qualifier)),
               &document);
    return STEP_COMMIT;
}

void lambda_put_runtime_management(struct func *func, struct rest_call *call)
{
    struct node nodes[RUNTIME_MEMBERS];
    struct target target;
    struct change change;
    if (!lambda_decode(call, runtime_fields, FIELD_COUNT(runtime_fields), nodes) ||
        !lambda_target(func, call, &nodes[RUNTIME_NAME], &nodes[RUNTIME_QUALIFIER], &target))
        return;
    struct managing managing = {func, target.qualifier.len ? target.qualifier : SLICE(PART_LATEST), nodes};
    if (!lambda_change(func, call, &target, runtime_step, &managing, &change)) return;
    change_free(&change);
    struct document document = runtime_document(nodes, call->arena);
    put_runtime(call, func, &target, &document);
    lambda_done(call, 200);
}

void lambda_get_runtime_management(struct func *func, struct rest_call *call)
{
    struct node nodes[RUNTIME_MEMBERS];
    struct target target;
    struct document document = {0};
    if (!lambda_decode(call, runtime_fields, RUNTIME_UPDATE, nodes) ||
        !lambda_target(func, call, &nodes[RUNTIME_NAME], &nodes[RUNTIME_QUALIFIER], &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    const struct part *part = entry_part_of(entry, PART_RUNTIME,
                                            target.qualifier.len ? target.qualifier : SLICE(PART_LATEST));
    document_set(&document, "UpdateRuntimeOn", SLICE("\"Auto\""), call->arena);
    put_runtime(call, func, &target, part ? &part->document : &document);
    entry_release(entry);
    lambda_done(call, 200);
}

/* ---- the account ---- */

void lambda_get_account_settings(struct func *func, struct rest_call *call)
{
    uint32_t count;
    int64_t reserved = 0, code_bytes = 0;
    struct entry **list = registry_list(func->registry, FUNCTIONS_BEGIN, LIMIT_FUNCTIONS, call->arena, &count);
    int64_t all = func->options.process_max ? func->options.process_max : PROCESSES_DEFAULT;
    for (uint32_t i = 0; i < count; i++) {
        const struct part *head = entry_part(list[i], SLICE(PART_FUNCTION));
        if (head) reserved += document_integer(&head->document, "ReservedConcurrentExecutions", 0);
        for (uint32_t j = 0; j < list[i]->count; j++)
            if (part_is_version(&list[i]->parts[j]))
                code_bytes += document_integer(&list[i]->parts[j].document, "CodeSize", 0);
        entry_release(list[i]);
    }
    buf_printf(
        call->reply,
        "{\"AccountLimit\":{\"TotalCodeSize\":80530636800,\"CodeSizeUnzipped\":%d,\"CodeSizeZipped\":%d,"
        "\"ConcurrentExecutions\":%lld,\"UnreservedConcurrentExecutions\":%lld},"
        "\"AccountUsage\":{\"TotalCodeSize\":%lld,\"FunctionCount\":%u}}",
        LIMIT_UNPACKED_BYTES, LIMIT_CODE_BYTES, (long long)all,
        (long long)(reserved < all ? all - reserved : 0), (long long)code_bytes, count);
    lambda_done(call, 200);
}

/* ---- settings that there are none of: told so in the service's words, since clients ask by themselves ----
 */

void lambda_get_code_signing(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    buf_printf(call->reply, "{\"FunctionName\":\"%.*s\"}", SLICE_ARG(entry->name));
    entry_release(entry);
    lambda_done(call, 200);
}

void lambda_get_url_config(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    entry_release(entry);
    lambda_error(call, 404, "ResourceNotFoundException", "The resource you requested does not exist.");
}

void lambda_list_url_configs(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    entry_release(entry);
    buf_text(call->reply, "{\"FunctionUrlConfigs\":[]}");
    lambda_done(call, 200);
}

/* GetProvisionedConcurrencyConfig and, by the same path, ListProvisionedConcurrencyConfigs. */
void lambda_provisioned_concurrency(struct func *func, struct rest_call *call)
{
    struct entry *entry = entry_by_name(func, call);
    if (!entry) return;
    entry_release(entry);
    if (rest_query(call, "List").data) {
        buf_text(call->reply, "{\"ProvisionedConcurrencyConfigs\":[]}");
        lambda_done(call, 200);
        return;
    }
    lambda_error(call, 404, "ProvisionedConcurrencyConfigNotFoundException",
                 "No Provisioned Concurrency Config found for this function");
}
