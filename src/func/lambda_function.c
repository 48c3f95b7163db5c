/* CreateFunction, GetFunction, GetFunctionConfiguration, ListFunctions, DeleteFunction; and, ours, the
 * archive of a function to download, which GetFunction names as its location. */
#include "base/limits.h"
#include "func/lambda.h"

#define LIST_DEFAULT 50 /* Lambda answers at most so many at once */

static const char *const package_types[] = {"Zip", "Image", NULL};
static const char *const all_versions[] = {"ALL", NULL};
static const struct shape shape_package_type = {.kind = SHAPE_STRING, .choices = package_types};
static const struct shape shape_all = {.kind = SHAPE_STRING, .choices = all_versions};
static const struct field code_fields[] = {CODE_FIELDS};
static const struct shape shape_code = STRUCT_OF(code_fields);

/* ---- CreateFunction ---- */

enum {
    CREATE_NAME,
    CREATE_CODE,
    CREATE_PUBLISH,
    CREATE_PACKAGE_TYPE,
    CREATE_TAGS,
    CREATE_SIGNING,
    CREATE_ARCHITECTURES,
    CREATE_CONFIG, /* from here on: enum configuration_member */
    CREATE_MEMBERS = CREATE_CONFIG + CONFIG_MEMBERS,
};

static const struct field create_fields[CREATE_CONFIG] = {
    [CREATE_NAME] = REQUIRED("FunctionName", lambda_shape_function_name),
    [CREATE_CODE] = REQUIRED("Code", shape_code),
    [CREATE_PUBLISH] = FIELD("Publish", lambda_shape_bool),
    [CREATE_PACKAGE_TYPE] = FIELD("PackageType", shape_package_type),
    [CREATE_TAGS] = FIELD("Tags", lambda_shape_tags),
    [CREATE_SIGNING] = FIELD("CodeSigningConfigArn", lambda_shape_text),
    [CREATE_ARCHITECTURES] = FIELD("Architectures", lambda_shape_architectures),
};

struct creation {
    struct func *func;
    const struct node *nodes;
    const struct code *code;
};

static bool refuse(struct rest_call *call, const char *message)
{
    lambda_error(call, 400, "InvalidParameterValueException", "%s", message);
    return false;
}

static bool check_creation(struct rest_call *call, const struct node *nodes)
{
    const struct node *type = &nodes[CREATE_PACKAGE_TYPE];
    const struct node *code = nodes[CREATE_CODE].nodes;
    bool is_ours = code[CODE_DIRECTORY].present || code[CODE_URL].present || code[CODE_TABLE].present ||
                   code[CODE_QUEUE].present;
    if (type->present && slice_equal(type->text, SLICE("Image")))
        return refuse(call, "Functions from container images (PackageType Image) are not offered.");
    if (nodes[CREATE_SIGNING].present) return refuse(call, "Code signing is not offered.");
    if (nodes[CREATE_TAGS].count > LIMIT_TAGS)
        return refuse(call, "Number of tags exceeds resource tag limit.");
    if (nodes[CREATE_CONFIG + CONFIG_ROLE].present || is_ours) return true;
    lambda_error(
        call, 400, "ValidationException",
        "1 validation error detected: Value null at 'role' failed to satisfy constraint: Member must "
        "not be null");
    return false;
}

static bool make_document(struct rest_call *call, const struct creation *creation, struct slice name,
                          struct document *out)
{
    struct func *func = creation->func;
    *out = (struct document){0};
    document_set_text(out, "Role",
                      arena_printf(call->arena, "arn:aws:iam::%.*s:role/quipu", SLICE_ARG(func->account)),
                      call->arena);
    if (creation->nodes[CREATE_ARCHITECTURES].present)
        document_set(out, "Architectures", node_json(&creation->nodes[CREATE_ARCHITECTURES], call->arena),
                     call->arena);
    lambda_code_apply(creation->code, out, call->arena);
    if (!configuration_apply(func, call, creation->nodes + CREATE_CONFIG, out)) return false;
    configuration_defaults(name, out, call->arena);
    configuration_mark(func->registry, out, NULL, call->arena);
    return true;
}

static enum step create_step(struct rest_call *call, struct change *change, void *context)
{
    const struct creation *creation = context;
    struct document document;
    if (change->before) {
        lambda_error(call, 409, "ResourceConflictException", "Function already exist: %.*s",
                     SLICE_ARG(change->name));
        return STEP_ANSWERED;
    }
    if (registry_size(change->registry) >= LIMIT_FUNCTIONS) {
        refuse(call, "There are as many functions as this server can hold.");
        return STEP_ANSWERED;
    }
    if (!make_document(call, creation, change->name, &document)) return STEP_ANSWERED;
    document_set_integer(&change->head, "LastVersion", 0, call->arena);
    if (creation->nodes[CREATE_TAGS].present)
        document_set(&change->head, "Tags", node_json(&creation->nodes[CREATE_TAGS], call->arena),
                     call->arena);
    change_put(change, SLICE(PART_LATEST), &document);
    if (creation->nodes[CREATE_PUBLISH].truth && !version_publish(call, change, &document, SLICE_NONE).data)
        return STEP_ANSWERED;
    return STEP_COMMIT;
}

static void create_with_code(struct func *func, struct rest_call *call, const struct target *target,
                             struct creation *creation, struct code *code)
{
    struct change change;
    if (!lambda_code_store(func, call, code)) return;
    creation->code = code;
    bool created = lambda_change(func, call, target, create_step, creation, &change);
    lambda_code_end(func, code);
    if (!created) return;
    const struct part *part = NULL;
    if (change.after)
        part = entry_part(change.after,
                          creation->nodes[CREATE_PUBLISH].truth ? SLICE("1") : SLICE(PART_LATEST));
    if (part) configuration_put(call->reply, func, change.after, part, SLICE_NONE, call->arena);
    bool shown = part != NULL;
    change_free(&change);
    if (shown)
        lambda_done(call, 201);
    else
        lambda_not_found(func, call, target->name, SLICE_NONE); /* deleted again by somebody else */
}

void lambda_create_function(struct func *func, struct rest_call *call)
{
    struct field fields[CREATE_MEMBERS];
    struct node nodes[CREATE_MEMBERS];
    struct creation creation = {func, nodes, NULL};
    struct target target;
    struct code code;
    memcpy(fields, create_fields, sizeof create_fields);
    memcpy(fields + CREATE_CONFIG, configuration_fields, sizeof configuration_fields);
    if (!lambda_decode(call, fields, CREATE_MEMBERS, nodes) ||
        !lambda_whole_target(func, call, &nodes[CREATE_NAME], &target) || !check_creation(call, nodes) ||
        !lambda_code_read(func, call, nodes[CREATE_CODE].nodes, &code))
        return;
    create_with_code(func, call, &target, &creation, &code);
}

/* ---- GetFunction, GetFunctionConfiguration ---- */

enum { GET_NAME, GET_QUALIFIER, GET_MEMBERS };

static const struct field get_fields[] = {
    [GET_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0),
    [GET_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
};

/* The version that the qualifier means, also by way of an alias. */
static const struct part *version_part(const struct entry *entry, struct slice qualifier, struct arena *arena)
{
    const struct part *part = entry_qualified(entry, qualifier);
    if (!part || part_is_version(part)) return part;
    return entry_part(entry, document_text(&part->document, "FunctionVersion", arena));
}

/* Decodes and finds; NULL: answered. The entry is counted. */
static struct entry *get_part(struct func *func, struct rest_call *call, struct target *target,
                              const struct part **part)
{
    struct node nodes[GET_MEMBERS];
    if (!lambda_decode(call, get_fields, FIELD_COUNT(get_fields), nodes) ||
        !lambda_target(func, call, &nodes[GET_NAME], &nodes[GET_QUALIFIER], target))
        return NULL;
    struct entry *entry = lambda_entry(func, call, target);
    if (!entry) return NULL;
    *part = version_part(entry, target->qualifier, call->arena);
    if (*part) return entry;
    entry_release(entry);
    lambda_not_found(func, call, target->name, target->qualifier);
    return NULL;
}

/* Where the archive can be had: from this server, by the name that the client calls it. */
static void put_location(struct rest_call *call, struct slice name, const struct part *part)
{
    struct slice host = call->header(call, SLICE("Host"));
    struct document ours = document_object(&part->document, "Quipu", call->arena);
    buf_text(call->reply, "{\"RepositoryType\":");
    if (part->function->kind != FUNCTION_PROCESS || document_get(&ours, "Directory").data) {
        buf_text(call->reply, "\"Quipu\"}");
        return;
    }
    buf_text(call->reply, "\"S3\",\"Location\":");
    struct slice qualifier = slice_equal(part->name, SLICE(PART_LATEST)) ? SLICE("%24LATEST") : part->name;
    json_put_string(call->reply,
                    arena_printf(call->arena, "http://%.*s/v1/functions/%.*s/code?Qualifier=%.*s",
                                 SLICE_ARG(host.len ? host : SLICE("localhost")), SLICE_ARG(name),
                                 SLICE_ARG(qualifier)));
    buf_byte(call->reply, '}');
}

void lambda_get_function(struct func *func, struct rest_call *call)
{
    struct target target;
    const struct part *part;
    struct entry *entry = get_part(func, call, &target, &part);
    if (!entry) return;
    const struct part *head = entry_part(entry, SLICE(PART_FUNCTION));
    buf_text(call->reply, "{\"Configuration\":");
    configuration_put(call->reply, func, entry, part, target.qualifier, call->arena);
    buf_text(call->reply, ",\"Code\":");
    put_location(call, entry->name, part);
    struct slice tags = head ? document_get(&head->document, "Tags") : SLICE_NONE;
    struct slice reserved = head ? document_get(&head->document, "ReservedConcurrentExecutions") : SLICE_NONE;
    if (tags.data) buf_printf(call->reply, ",\"Tags\":%.*s", SLICE_ARG(tags));
    if (reserved.data)
        buf_printf(call->reply, ",\"Concurrency\":{\"ReservedConcurrentExecutions\":%.*s}",
                   SLICE_ARG(reserved));
    buf_byte(call->reply, '}');
    entry_release(entry);
    lambda_done(call, 200);
}

void lambda_get_function_configuration(struct func *func, struct rest_call *call)
{
    struct target target;
    const struct part *part;
    struct entry *entry = get_part(func, call, &target, &part);
    if (!entry) return;
    configuration_put(call->reply, func, entry, part, target.qualifier, call->arena);
    entry_release(entry);
    lambda_done(call, 200);
}

void lambda_get_function_code(struct func *func, struct rest_call *call)
{
    struct target target;
    const struct part *part;
    struct entry *entry = get_part(func, call, &target, &part);
    if (!entry) return;
    struct slice sha256 = document_text(&part->document, "CodeSha256", call->arena);
    bool is_archive = part->function->kind == FUNCTION_PROCESS && !part->function->in_place;
    bool loaded = is_archive && code_load(func->registry, arena_copy(call->arena, sha256), call->reply);
    entry_release(entry);
    if (!is_archive) {
        lambda_error(call, 404, "ResourceNotFoundException", "This function has no archive.");
        return;
    }
    if (!loaded) {
        lambda_unavailable(call);
        return;
    }
    call->content_type = SLICE("application/zip");
    lambda_done(call, 200);
}

/* ---- ListFunctions ---- */

enum { LIST_MASTER_REGION, LIST_VERSIONS, LIST_MARKER, LIST_MAX, LIST_MEMBERS };

static const struct field list_fields[] = {
    [LIST_MASTER_REGION] = QUERY_FIELD("MasterRegion", lambda_shape_text),
    [LIST_VERSIONS] = QUERY_FIELD("FunctionVersion", shape_all),
    [LIST_MARKER] = QUERY_FIELD("Marker", lambda_shape_text),
    [LIST_MAX] = QUERY_FIELD("MaxItems", lambda_shape_max_items),
};

static void put_marker(struct buf *out, struct slice name)
{
    buf_text(out, "],\"NextMarker\":");
    json_put_string(out, name);
    buf_byte(out, '}');
}

/* All versions of an entry, each one an item of the list. */
static uint32_t put_versions(struct rest_call *call, struct func *func, const struct entry *entry, bool first)
{
    uint32_t count;
    const struct part **versions = entry_versions(entry, call->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (i || !first) buf_byte(call->reply, ',');
        configuration_put(call->reply, func, entry, versions[i], versions[i]->name, call->arena);
    }
    return count;
}

static uint32_t put_latest(struct rest_call *call, struct func *func, const struct entry *entry, bool first)
{
    const struct part *part = entry_part(entry, SLICE(PART_LATEST));
    if (!part || !part->function) return 0;
    if (!first) buf_byte(call->reply, ',');
    configuration_put(call->reply, func, entry, part, SLICE_NONE, call->arena);
    return 1;
}

void lambda_list_functions(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    uint32_t count, shown = 0, used = 0;
    if (!lambda_decode(call, list_fields, FIELD_COUNT(list_fields), nodes)) return;
    if (!registry_refresh(func->registry)) {
        lambda_unavailable(call);
        return;
    }
    uint32_t max = nodes[LIST_MAX].present && nodes[LIST_MAX].integer < LIST_DEFAULT
                       ? (uint32_t)nodes[LIST_MAX].integer
                       : LIST_DEFAULT;
    struct slice after = nodes[LIST_MARKER].present ? nodes[LIST_MARKER].text : FUNCTIONS_BEGIN;
    if (slice_compare(after, FUNCTIONS_BEGIN) < 0) after = FUNCTIONS_BEGIN;
    /* One more than asked for, to know whether there is a next page. */
    struct entry **list = registry_list(func->registry, after, max + 1, call->arena, &count);
    buf_text(call->reply, "{\"Functions\":[");
    /* A page ends between two functions: all versions of one stand on the same. */
    for (; used < count && shown < max; used++)
        shown += nodes[LIST_VERSIONS].present ? put_versions(call, func, list[used], shown == 0)
                                              : put_latest(call, func, list[used], shown == 0);
    if (used < count)
        put_marker(call->reply, list[used - 1]->name);
    else
        buf_text(call->reply, "]}");
    for (uint32_t i = 0; i < count; i++) entry_release(list[i]);
    lambda_done(call, 200);
}

/* ---- DeleteFunction ---- */

static const struct field delete_fields[] = {
    [GET_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [GET_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
};

struct deletion {
    struct func *func;
    struct slice qualifier;
};

static enum step answer_not_found(struct func *func, struct rest_call *call, const struct change *change)
{
    lambda_not_found(func, call, change->name, SLICE_NONE);
    return STEP_ANSWERED;
}

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

static void delete_with_prefix(struct change *change, const char *prefix, struct slice qualifier)
{
    const struct part *part = entry_part_of(change->before, prefix, qualifier);
    if (part) change_delete(change, part->name);
}

static enum step delete_version_step(struct rest_call *call, struct change *change, void *context)
{
    const struct deletion *deletion = context;
    if (!change->before) return answer_not_found(deletion->func, call, change);
    const struct part *part = entry_part(change->before, deletion->qualifier);
    if (!part || !part_is_version(part)) return STEP_NOTHING;
    if (is_aliased(change->before, deletion->qualifier, call->arena)) {
        lambda_error(call, 409, "ResourceConflictException",
                     "Version %.*s cannot be deleted: an alias points to it.",
                     SLICE_ARG(deletion->qualifier));
        return STEP_ANSWERED;
    }
    change_delete(change, part->name);
    delete_with_prefix(change, PART_ASYNC, deletion->qualifier);
    delete_with_prefix(change, PART_POLICY, deletion->qualifier);
    delete_with_prefix(change, PART_RUNTIME, deletion->qualifier);
    return STEP_COMMIT;
}

static enum step delete_all_step(struct rest_call *call, struct change *change, void *context)
{
    const struct deletion *deletion = context;
    if (!change->before) return answer_not_found(deletion->func, call, change);
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

static bool check_deleted_qualifier(struct rest_call *call, struct slice qualifier)
{
    unsigned long long number;
    if (slice_equal(qualifier, SLICE(PART_LATEST)))
        return refuse(call, "$LATEST version cannot be deleted without deleting the function.");
    if (qualifier.len && !slice_to_u64(qualifier, UINT32_MAX, &number))
        return refuse(call, "Deletion of aliases is not currently supported.");
    return true;
}

void lambda_delete_function(struct func *func, struct rest_call *call)
{
    struct node nodes[GET_MEMBERS];
    struct target target;
    struct change change;
    if (!lambda_decode(call, delete_fields, FIELD_COUNT(delete_fields), nodes) ||
        !lambda_target(func, call, &nodes[GET_NAME], &nodes[GET_QUALIFIER], &target) ||
        !check_deleted_qualifier(call, target.qualifier))
        return;
    struct deletion deletion = {func, target.qualifier};
    lambda_step *step = target.qualifier.len ? delete_version_step : delete_all_step;
    if (!lambda_change(func, call, &target, step, &deletion, &change)) return;
    if (change.before) sweep_dropped(func, change.before);
    change_free(&change);
    lambda_done(call, 204);
}
