/* CreateFunction, GetFunction, GetFunctionConfiguration, ListFunctions, DeleteFunction; and, ours, the
 * archive of a function to download, which GetFunction names as its location. */
#include "base/limits.h"
#include "func/lambda.h"

CHOICE_SHAPE(shape_package_type, "Zip", "Image");
CHOICE_SHAPE(shape_all, "ALL");
static const struct shape_field code_fields[] = {CODE_MEMBERS(FIELD_ROW)};
static const struct shape shape_code = STRUCT_OF(code_fields);

/* ---- CreateFunction ---- */

#define CREATE(X)                                                                                            \
    X(CREATE_NAME, REQUIRED("FunctionName", lambda_shape_function_name))                                     \
    X(CREATE_CODE, REQUIRED("Code", shape_code))                                                             \
    X(CREATE_PUBLISH, FIELD("Publish", lambda_shape_bool))                                                   \
    X(CREATE_PACKAGE_TYPE, FIELD("PackageType", shape_package_type))                                         \
    X(CREATE_TAGS, FIELD("Tags", lambda_shape_tags))                                                         \
    X(CREATE_SIGNING, FIELD("CodeSigningConfigArn", lambda_shape_text))                                      \
    X(CREATE_ARCHITECTURES, FIELD("Architectures", lambda_shape_architectures))
enum { CREATE(FIELD_INDEX) CREATE_CONFIG /* from here on: enum configuration_member */ };

static bool check_creation(const struct request *request)
{
    const struct shape_node *nodes = request->nodes, *type = &nodes[CREATE_PACKAGE_TYPE];
    const struct shape_node *code = nodes[CREATE_CODE].nodes;
    bool is_ours = code[CODE_DIRECTORY].present || code[CODE_URL].present || code[CODE_TABLE].present ||
                   code[CODE_QUEUE].present;
    if (type->present && slice_equal(type->text, SLICE("Image")))
        return lambda_refuse(request->call,
                             "Functions from container images (PackageType Image) are not offered.");
    if (nodes[CREATE_SIGNING].present) return lambda_refuse(request->call, "Code signing is not offered.");
    if (nodes[CREATE_TAGS].count > LIMIT_TAGS)
        return lambda_refuse(request->call, "Number of tags exceeds resource tag limit.");
    if (nodes[CREATE_CONFIG + CONFIG_ROLE].present || is_ours) return true;
    return lambda_error(
        request->call, 400, "ValidationException",
        "1 validation error detected: Value null at 'role' failed to satisfy constraint: Member must "
        "not be null");
}

static enum step create_step(struct request *request, struct change *change, void *context)
{
    const struct shape_node *nodes = request->nodes;
    struct arena *arena = request->arena;
    struct document document = {0};
    if (change->before)
        return lambda_error(request->call, 409, "ResourceConflictException", "Function already exist: %.*s",
                            SLICE_ARG(change->name));
    if (registry_size(change->registry) >= LIMIT_FUNCTIONS)
        return lambda_refuse(request->call, "There are as many functions as this server can hold.");
    document_set_text(&document, "Role",
                      arena_printf(arena, "arn:aws:iam::%.*s:role/quipu", SLICE_ARG(request->func->account)),
                      arena);
    node_set(&document, "Architectures", &nodes[CREATE_ARCHITECTURES], arena);
    lambda_code_apply(context, &document, arena);
    if (!configuration_apply(request, nodes + CREATE_CONFIG, &document)) return STEP_ANSWERED;
    configuration_defaults(change->name, &document, arena);
    configuration_mark(change->registry, &document, NULL, arena);
    document_set_integer(&change->head, "LastVersion", 0, arena);
    node_set(&change->head, "Tags", &nodes[CREATE_TAGS], arena);
    request->part = SLICE(PART_LATEST);
    change_put(change, request->part, &document);
    if (nodes[CREATE_PUBLISH].truth) request->part = version_publish(request, change, &document, SLICE_NONE);
    return request->part.data ? STEP_COMMIT : STEP_ANSWERED;
}

/* Without a qualifier in the ARN. */
static void put_plain(struct buf *out, const struct request *request, const struct entry *entry,
                      const struct part *part)
{
    configuration_put(out, request->func, entry, part, SLICE_NONE, request->arena);
}

static void create_function(struct request *request)
{
    struct change change;
    struct code code;
    if (!check_creation(request) || !lambda_code_read(request, request->nodes[CREATE_CODE].nodes, &code) ||
        !lambda_code_store(request->func, request->call, &code))
        return;
    bool created = lambda_change(request, create_step, &code, &change);
    lambda_code_end(request->func, &code);
    if (created && !lambda_show(request, &change, put_plain, 201))
        lambda_missing(request, SLICE_NONE); /* deleted again by somebody else */
}

void lambda_create_function(void *func, struct rest_call *call)
{
    struct shape_field fields[CREATE_CONFIG + CONFIG_MEMBERS] = {CREATE(FIELD_ROW)};
    memcpy(fields + CREATE_CONFIG, configuration_fields, sizeof configuration_fields);
    lambda_run(func, call, fields, FIELD_COUNT(fields), TARGET_WHOLE, create_function);
}

/* ---- GetFunction, GetFunctionConfiguration ---- */

#define GET(X)                                                                                               \
    X(GET_NAME, PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0))                              \
    X(GET_QUALIFIER, QUALIFIER_FIELD)

/* The version that the qualifier means, also by way of an alias; NULL: answered. */
static const struct part *version_part(const struct request *request)
{
    const struct part *part = entry_qualified(request->entry, request->qualifier);
    if (part && !part_is_version(part))
        part = entry_part(request->entry, document_text(&part->document, "FunctionVersion", request->arena));
    if (!part) lambda_missing(request, request->qualifier);
    return part;
}

/* Where the archive can be had: from this server, by the name that the client calls it. */
static void put_location(const struct request *request, const struct part *part)
{
    struct slice host = request->call->header(request->call, SLICE("Host"));
    struct document ours = document_object(&part->document, "Quipu", request->arena);
    if (part->function->kind != FUNCTION_PROCESS || document_get(&ours, "Directory").data) {
        compose(request->call->reply, "{'RepositoryType':'Quipu'}");
        return;
    }
    struct slice qualifier = slice_equal(part->name, SLICE(PART_LATEST)) ? SLICE("%24LATEST") : part->name;
    compose(request->call->reply, "{'RepositoryType':'S3','Location':%s}",
            arena_printf(request->arena, "http://%.*s/v1/functions/%.*s/code?Qualifier=%.*s",
                         SLICE_ARG(host.len ? host : SLICE("localhost")), SLICE_ARG(request->entry->name),
                         SLICE_ARG(qualifier)));
}

OPERATION(get_function, TARGET_QUALIFIED | TARGET_ENTRY, GET)
{
    struct buf *out = request->call->reply;
    const struct part *head = entry_part(request->entry, SLICE(PART_FUNCTION)), *part = version_part(request);
    if (!part) return;
    compose(out, "{'Configuration':");
    configuration_put(out, request->func, request->entry, part, request->qualifier, request->arena);
    compose(out, ",'Code':");
    put_location(request, part);
    struct slice tags = head ? document_get(&head->document, "Tags") : SLICE_NONE;
    struct slice reserved = head ? document_get(&head->document, "ReservedConcurrentExecutions") : SLICE_NONE;
    if (tags.data) compose(out, ",'Tags':%A", tags);
    if (reserved.data) compose(out, ",'Concurrency':{'ReservedConcurrentExecutions':%A}", reserved);
    lambda_reply(request, 200, "}");
}

OPERATION(get_function_configuration, TARGET_QUALIFIED | TARGET_ENTRY, GET)
{
    const struct part *part = version_part(request);
    if (!part) return;
    configuration_put(request->call->reply, request->func, request->entry, part, request->qualifier,
                      request->arena);
    lambda_done(request->call, 200);
}

OPERATION(get_function_code, TARGET_QUALIFIED | TARGET_ENTRY, GET)
{
    const struct part *part = version_part(request);
    if (!part) return;
    struct slice sha256 = document_text(&part->document, "CodeSha256", request->arena);
    if (part->function->kind != FUNCTION_PROCESS || part->function->in_place) {
        lambda_error(request->call, 404, "ResourceNotFoundException", "This function has no archive.");
    } else if (!code_load(request->func->registry, sha256, request->call->reply)) {
        lambda_unavailable(request->call);
    } else {
        request->call->content_type = SLICE("application/zip");
        lambda_done(request->call, 200);
    }
}

/* ---- ListFunctions ---- */

#define LIST(X)                                                                                              \
    X(LIST_MASTER_REGION, QUERY_FIELD("MasterRegion", lambda_shape_text))                                    \
    X(LIST_VERSIONS, QUERY_FIELD("FunctionVersion", shape_all))                                              \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items))
MEMBERS(LIST)

/* All versions of an entry, each one an item of the list; or the latest one. How many. */
static uint32_t put_listed(const struct request *request, const struct entry *entry)
{
    struct buf *out = request->call->reply;
    uint32_t count;
    if (request->nodes[LIST_VERSIONS].present) {
        const struct part **versions = entry_versions(entry, request->arena, &count);
        for (uint32_t i = 0; i < count; i++)
            configuration_put(out, request->func, entry, versions[i], versions[i]->name, request->arena);
        return count;
    }
    const struct part *part = entry_part(entry, SLICE(PART_LATEST));
    if (!part || !part->function) return 0;
    put_plain(out, request, entry, part);
    return 1;
}

OPERATION(list_functions, TARGET_NONE, LIST)
{
    const struct shape_node *marker = &request->nodes[LIST_MARKER];
    struct slice after = marker->present ? marker->text : FUNCTIONS_BEGIN, next = SLICE_NONE;
    uint32_t count, shown = 0, used = 0, max = lambda_list_max(&request->nodes[LIST_MAX]);
    if (!registry_refresh(request->func->registry)) {
        lambda_unavailable(request->call);
        return;
    }
    if (slice_compare(after, FUNCTIONS_BEGIN) < 0) after = FUNCTIONS_BEGIN;
    /* One more than asked for, to know whether there is a next page. */
    struct entry **list = registry_list(request->func->registry, after, max + 1, request->arena, &count);
    compose(request->call->reply, "{'Functions':[");
    /* A page ends between two functions: all versions of one stand on the same. */
    for (; used < count && shown < max; used++) shown += put_listed(request, list[used]);
    if (used < count) next = arena_copy(request->arena, list[used - 1]->name);
    for (uint32_t i = 0; i < count; i++) entry_release(list[i]);
    lambda_list_end(request, next);
}

/* ---- DeleteFunction ---- */

#define DELETE(X) X(DELETE_NAME, NAME_FIELD) X(DELETE_QUALIFIER, QUALIFIER_FIELD)

/* True when an alias leads to the version. */
static bool is_aliased(const struct entry *entry, struct slice version, struct arena *arena)
{
    for (uint32_t i = 0; i < entry->count; i++) {
        const struct document *alias = &entry->parts[i].document;
        if (!part_suffix(&entry->parts[i], PART_ALIAS).data) continue;
        if (slice_equal(document_text(alias, "FunctionVersion", arena), version)) return true;
        struct document routing = document_object(alias, "RoutingConfig", arena);
        struct document weights = document_object(&routing, "AdditionalVersionWeights", arena);
        for (uint32_t j = 0; j < weights.count; j++)
            if (slice_equal(weights.members[j].name, version)) return true;
    }
    return false;
}

static enum step delete_version_step(struct request *request, struct change *change, void *context)
{
    static const char *const prefixes[] = {"", PART_ASYNC, PART_POLICY, PART_RUNTIME};
    (void)context;
    if (!change->before) return lambda_missing(request, SLICE_NONE);
    const struct part *part = entry_part(change->before, request->qualifier);
    if (!part || !part_is_version(part)) return STEP_NOTHING;
    if (is_aliased(change->before, request->qualifier, request->arena))
        return lambda_error(request->call, 409, "ResourceConflictException",
                            "Version %.*s cannot be deleted: an alias points to it.",
                            SLICE_ARG(request->qualifier));
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        part = entry_part_of(change->before, prefixes[i], request->qualifier);
        if (part) change_delete(change, part->name);
    }
    return STEP_COMMIT;
}

static enum step delete_all_step(struct request *request, struct change *change, void *context)
{
    (void)context;
    if (!change->before) return lambda_missing(request, SLICE_NONE);
    change->removes = true;
    return STEP_COMMIT;
}

/* Archives that the function named before and does not name any more. */
static void sweep_dropped(struct func *func, const struct entry *before)
{
    struct arena arena = {0};
    for (uint32_t i = 0; i < before->count; i++) {
        const struct function *function = before->parts[i].function;
        if (!function || function->kind != FUNCTION_PROCESS || function->in_place) continue;
        code_sweep(func->registry, document_text(&before->parts[i].document, "CodeSha256", &arena));
    }
    arena_free(&arena);
}

OPERATION(delete_function, TARGET_QUALIFIED, DELETE)
{
    struct slice qualifier = request->qualifier;
    lambda_step *step = qualifier.len ? delete_version_step : delete_all_step;
    unsigned long long number;
    struct change change;
    if (slice_equal(qualifier, SLICE(PART_LATEST))) {
        lambda_refuse(request->call, "$LATEST version cannot be deleted without deleting the function.");
        return;
    }
    if (qualifier.len && !slice_to_u64(qualifier, UINT32_MAX, &number)) {
        lambda_refuse(request->call, "Deletion of aliases is not currently supported.");
        return;
    }
    if (!lambda_change(request, step, NULL, &change)) return;
    if (change.before) sweep_dropped(request->func, change.before);
    change_free(&change);
    lambda_done(request->call, 204);
}
