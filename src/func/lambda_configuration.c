/* Configurations of versions: which members there are, what they must satisfy beyond their constraints, what
 * is the default, and how they are shown. The stored document has the members under Lambda's own names, so
 * showing it is copying it. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "func/lambda.h"

/* ---- shapes ---- */

static bool has_no_space(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr(" \t\n\v\f\r", text.data[i])) return false; /* also NUL */
    return text.len != 0;
}

static bool is_role(struct slice text)
{
    struct slice arn = slice_cut(&text, ':'), partition = slice_cut(&text, ':');
    struct slice service = slice_cut(&text, ':'), region = slice_cut(&text, ':');
    return slice_equal(arn, SLICE("arn")) && (!partition.len || slice_starts(partition, SLICE("aws"))) &&
           slice_equal(service, SLICE("iam")) && !region.len && text_is_account(slice_cut(&text, ':')) &&
           slice_starts(text, SLICE("role")) && text_consists_of(slice_from(text, 4), "_+=,.@-/");
}

static bool is_arn_or_empty(struct slice text)
{
    return !text.len || slice_starts(text, SLICE("arn:"));
}

static bool is_variable_name(struct slice text)
{
    char first = text.len >= 2 ? text.data[0] : 0;
    return ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) && text_consists_of(text, "_");
}

static const struct shape shape_role = {
    .kind = SHAPE_STRING,
    .matches = is_role,
    .pattern = "arn:(aws[a-zA-Z-]*)?:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+",
};
static const struct shape shape_handler = {TEXT_UP_TO(128), .matches = has_no_space, .pattern = "[^\\s]+"};
static const struct shape shape_timeout = INTEGER_BETWEEN(1, 900);
static const struct shape shape_memory = INTEGER_BETWEEN(128, 10240);
static const struct shape shape_storage_size = INTEGER_BETWEEN(512, 10240);
static const struct shape shape_concurrency = INTEGER_BETWEEN(1, LIMIT_FUNCTION_CONCURRENCY);
static const struct shape shape_some_arn = {
    .kind = SHAPE_STRING,
    .matches = is_arn_or_empty,
    .pattern = "(arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()",
};
static const struct shape shape_texts = {.kind = SHAPE_LIST, .of = &lambda_shape_text};
static const struct shape shape_subnets = {
    .kind = SHAPE_LIST, .of = &lambda_shape_text, .has_max = true, .max = 16};
static const struct shape shape_groups = {
    .kind = SHAPE_LIST, .of = &lambda_shape_text, .has_max = true, .max = 5};
static const struct shape shape_variable_name = {
    .kind = SHAPE_STRING, .matches = is_variable_name, .pattern = "[a-zA-Z]([a-zA-Z0-9_])+"};
static const struct shape shape_variables = {
    .kind = SHAPE_MAP, .key = &shape_variable_name, .of = &lambda_shape_text};
CHOICE_SHAPE(shape_tracing_mode, "Active", "PassThrough");
CHOICE_SHAPE(shape_apply_on, "PublishedVersions", "None");
CHOICE_SHAPE(shape_log_format, "JSON", "Text");
CHOICE_SHAPE(shape_log_level, "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL");
CHOICE_SHAPE(shape_system_level, "DEBUG", "INFO", "WARN");
static const struct shape shape_log_group = {TEXT_BETWEEN(1, 512)};

STRUCT_SHAPE(shape_vpc, FIELD("SubnetIds", shape_subnets), FIELD("SecurityGroupIds", shape_groups),
             FIELD("Ipv6AllowedForDualStack", lambda_shape_bool));
STRUCT_SHAPE(shape_dead_letters, FIELD("TargetArn", shape_some_arn));
STRUCT_SHAPE(shape_environment, FIELD("Variables", shape_variables));
STRUCT_SHAPE(shape_tracing, FIELD("Mode", shape_tracing_mode));
static bool is_mount_path(struct slice text)
{
    struct slice start = SLICE("/mnt/"),
                 name = slice_starts(text, start) ? slice_from(text, start.len) : SLICE_NONE;
    return text_consists_of(name, "-_.") && !slice_equal(name, SLICE(".")) && !slice_equal(name, SLICE(".."));
}
static const struct shape shape_mount_path = {
    TEXT_UP_TO(160),
    .matches = is_mount_path,
    .pattern = "/mnt/[a-zA-Z0-9-_.]+",
};
static const struct shape shape_file_arn = {TEXT_UP_TO(200)};
STRUCT_SHAPE(shape_file_system, REQUIRED("Arn", shape_file_arn),
             REQUIRED("LocalMountPath", shape_mount_path));
STRUCT_SHAPE(shape_image, FIELD("EntryPoint", shape_texts), FIELD("Command", shape_texts),
             FIELD("WorkingDirectory", lambda_shape_text));
STRUCT_SHAPE(shape_storage, REQUIRED("Size", shape_storage_size));
STRUCT_SHAPE(shape_snap, FIELD("ApplyOn", shape_apply_on));
STRUCT_SHAPE(shape_logging, FIELD("LogFormat", shape_log_format),
             FIELD("ApplicationLogLevel", shape_log_level), FIELD("SystemLogLevel", shape_system_level),
             FIELD("LogGroup", shape_log_group));
STRUCT_SHAPE(shape_instances, REQUIRED("CapacityProviderArn", lambda_shape_text),
             FIELD("PerExecutionEnvironmentMaxConcurrency", shape_concurrency));
STRUCT_SHAPE(shape_capacity, REQUIRED("LambdaManagedInstancesCapacityProviderConfig", shape_instances));
STRUCT_SHAPE(shape_quipu, FIELD("Concurrency", shape_concurrency));
static const struct shape shape_empty = {.kind = SHAPE_STRUCT};

static const struct shape shape_file_systems = {
    .kind = SHAPE_LIST, .of = &shape_file_system, .has_max = true, .max = 1};

const struct shape_field configuration_fields[CONFIG_MEMBERS] = {CONFIG_LIST(FIELD_ROW)};

/* ---- what is not offered ---- */

/* An access point of EFS, whose files are in a folder of the server's own; or a folder of this machine. */
static bool check_files(struct request *request, const struct shape_node *list)
{
    struct rest_call *call = request->call;
    struct sandbox *sandbox = request->func->options.sandbox;
    struct stat about;
    if (!list->present || !list->count) return true;
    struct slice arn = list->nodes[0].nodes[0].text;
    const char *path = arena_copy(call->arena, arn).data;
    struct slice rest = arn, first = slice_cut(&rest, ':'), partition = slice_cut(&rest, ':');
    const char *name = strstr(path, ":access-point/fsap-");
    bool is_point = slice_equal(first, SLICE("arn")) && partition.len &&
                    slice_starts(rest, SLICE("elasticfilesystem:")) && name &&
                    text_consists_of(slice_of(name + 19), "");
    if (!is_point && path[0] != '/')
        return lambda_refuse(
            call,
            "The Arn of a file system should be that of an EFS access point, or a folder of this "
            "machine: %s",
            path);
    if (!is_point && (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)))
        return lambda_refuse(call, "There is no folder %s on this machine.", path);
    if (sandbox && (!sandbox_has_own_tmp(sandbox) || access("/mnt", F_OK) != 0))
        return lambda_refuse(
            call, "File systems cannot be mounted here: this machine has no mount namespaces, or no "
                  "folder /mnt.");
    return true;
}

static bool check_offered(struct request *request, const struct shape_node *nodes)
{
    struct rest_call *call = request->call;
    if (!check_files(request, &nodes[CONFIG_FILE_SYSTEMS])) return false;
    if (nodes[CONFIG_IMAGE].present)
        return lambda_refuse(call,
                             "ImageConfig is not offered: there are no functions from container images.");
    if (nodes[CONFIG_DURABLE].present) return lambda_refuse(call, "Durable functions are not offered.");
    if (nodes[CONFIG_TENANCY].present) return lambda_refuse(call, "Tenant isolation is not offered.");
    return true;
}

/* ---- runtime and handler ---- */

/* Lambda's runtimes; those that can run here are shown when another one was asked for. */
static const char *const runtimes[] = {
    "nodejs16.x",      "nodejs18.x", "nodejs20.x", "nodejs22.x", "nodejs24.x", "python3.8", "python3.9",
    "python3.10",      "python3.11", "python3.12", "python3.13", "python3.14", "provided",  "provided.al2",
    "provided.al2023", "java8.al2",  "java11",     "java17",     "java21",     "java25",    "dotnet6",
    "dotnet8",         "dotnet10",   "ruby3.2",    "ruby3.3",    "ruby3.4",    "go1.x",     NULL};

static struct slice runtimes_text(struct arena *arena, bool (*is_listed)(struct slice runtime))
{
    struct buf text = {0};
    for (const char *const *name = runtimes; *name; name++)
        if (is_listed(slice_of(*name))) buf_printf(&text, "%s%s", text.len ? ", " : "", *name);
    return arena_take(arena, &text);
}

bool lambda_check_runtimes(struct rest_call *call, const struct shape_node *list)
{
    uint32_t i = 0;
    while (i < list->count && runtime_is_named(list->nodes[i].text)) i++;
    if (!list->present || i == list->count) return true;
    return lambda_refuse(
        call,
        "Value %.*s at 'compatibleRuntimes' failed to satisfy constraint: Member must satisfy enum "
        "value set: [%.*s]",
        SLICE_ARG(list->nodes[i].text), SLICE_ARG(runtimes_text(call->arena, runtime_is_named)));
}

/* True when a process runs the version; what has no process needs neither runtime nor handler. */
static bool has_process(const struct document *document, struct arena *arena)
{
    struct document ours = document_object(document, "Quipu", arena);
    return !document_get(&ours, "Url").data && !document_get(&ours, "Table").data &&
           !document_get(&ours, "Queue").data && !document_get(&ours, "Pattern").data;
}

static bool check_runtime(struct rest_call *call, const struct document *document)
{
    if (!has_process(document, call->arena)) return true;
    struct slice runtime = document_text(document, "Runtime", call->arena);
    struct slice handler = document_text(document, "Handler", call->arena);
    bool needs_handler = !slice_starts(runtime, SLICE("provided"));
    if (!runtime.len || (needs_handler && !handler.len))
        return lambda_refuse(call, "Runtime and Handler are mandatory parameters for functions created with "
                                   "deployment packages.");
    return runtime_is_known(runtime) ||
           lambda_refuse(
               call,
               "Value %.*s at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: "
               "[%.*s] or be a valid ARN",
               SLICE_ARG(runtime), SLICE_ARG(runtimes_text(call->arena, runtime_is_known)));
}

/* ---- environment ---- */

/* Lambda's, but for the three of a key: Lambda gives a function those of its role. There are no roles here, so
 * a function that speaks to Amazon brings keys of its own. */
static const char *const reserved_variables[] = {
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_ACCESS_KEY",
    "AWS_LAMBDA_RUNTIME_API",
    "LAMBDA_TASK_ROOT",
    "LAMBDA_RUNTIME_DIR",
    NULL,
};

static bool is_reserved(struct slice name)
{
    for (const char *const *reserved = reserved_variables; *reserved; reserved++)
        if (slice_equal(slice_of(*reserved), name)) return true;
    return false;
}

static bool check_environment(struct rest_call *call, const struct shape_node *node)
{
    struct buf text = {0};
    if (!node->present || !node->nodes[0].present) return true;
    const struct shape_node *variables = &node->nodes[0];
    for (uint32_t i = 0; i < variables->count; i++)
        if (is_reserved(variables->keys[i]))
            buf_printf(&text, "%s%.*s", text.len ? ", " : "", SLICE_ARG(variables->keys[i]));
    struct slice used = arena_take(call->arena, &text), measured = node_json(variables, call->arena);
    if (used.len)
        return lambda_refuse(
            call,
            "Lambda was unable to configure your environment variables because the environment "
            "variables you have provided contains reserved keys that are currently not supported "
            "for modification. Reserved keys used in this request: %.*s",
            SLICE_ARG(used));
    if (measured.len <= LIMIT_VARIABLES_BYTES) return true;
    return lambda_refuse(
        call,
        "Lambda was unable to configure your environment variables because the environment variables "
        "you have provided exceeded the 4KB limit. String measured: %.*s",
        measured.len > 8192 ? 8192 : (int)measured.len, measured.data);
}

/* ---- concurrency of one process ---- */

static bool apply_concurrency(struct rest_call *call, const struct shape_node *nodes,
                              struct document *document)
{
    struct document ours = document_object(document, "Quipu", call->arena);
    struct slice given = SLICE_NONE;
    if (nodes[CONFIG_QUIPU].present)
        given = node_json(&nodes[CONFIG_QUIPU].nodes[0], call->arena);
    else if (nodes[CONFIG_CAPACITY].present)
        given = node_json(&nodes[CONFIG_CAPACITY].nodes[0].nodes[1], call->arena);
    struct slice runtime = document_text(document, "Runtime", call->arena);
    if (given.data) document_set(&ours, "Concurrency", given, call->arena);
    if (document_integer(&ours, "Concurrency", 1) > 1 && has_process(document, call->arena) &&
        !runtime_is_concurrent(runtime))
        return lambda_refuse(
            call, "The runtime %.*s handles one invocation at a time in a process: Concurrency must be 1.",
            SLICE_ARG(runtime));
    if (!given.data) return true;
    document_set(document, "Quipu", document_json(&ours, call->arena), call->arena);
    return true;
}

/* ---- the whole ---- */

static bool check_dead_letters(struct func *func, struct rest_call *call, const struct shape_node *node)
{
    if (!node->present || !node->nodes[0].present || !node->nodes[0].text.len) return true;
    const char *fault = destination_fault(func, node->nodes[0].text);
    return !fault || lambda_refuse(call, "The dead-letter target %.*s cannot be used: %s",
                                   SLICE_ARG(node->nodes[0].text), fault);
}

/* An empty ARN takes a setting back. */
static bool is_taken_back(enum configuration_member member, const struct shape_node *node)
{
    if (member == CONFIG_KMS_KEY) return !node->text.len;
    if (member == CONFIG_FILE_SYSTEMS) return !node->count;
    return member == CONFIG_DEAD_LETTERS && !(node->nodes[0].present && node->nodes[0].text.len);
}

static void set_members(struct rest_call *call, const struct shape_node *nodes, struct document *document)
{
    for (int i = 0; i < CONFIG_MEMBERS; i++) {
        if (!nodes[i].present || i == CONFIG_QUIPU || i == CONFIG_LAYERS || i == CONFIG_LOGGING) continue;
        struct slice json = node_json(&nodes[i], call->arena);
        if (is_taken_back((enum configuration_member)i, &nodes[i])) json = SLICE_NONE;
        document_set(document, configuration_fields[i].name, json, call->arena);
    }
    if (!nodes[CONFIG_SNAP_START].present) return;
    const struct shape_node *apply_on = &nodes[CONFIG_SNAP_START].nodes[0];
    document_set(document, "SnapStart",
                 compose_in(call->arena, "{'ApplyOn':%s,'OptimizationStatus':'Off'}",
                            apply_on->present ? apply_on->text : SLICE("None")),
                 call->arena);
}

/* A LoggingConfig that says only half keeps the other half. Levels belong to the format JSON: they go with it. */
static bool apply_logging(struct rest_call *call, const struct shape_node *node, struct document *document)
{
    struct arena *arena = call->arena;
    struct document given, logging = document_object(document, "LoggingConfig", arena);
    if (!node->present || !document_parse(node_json(node, arena), arena, &given)) return true;
    struct slice format = document_get(&given, "LogFormat");
    if (!format.data) format = document_get(&logging, "LogFormat");
    bool is_json = slice_equal(format, SLICE("\"JSON\""));
    bool has_level = document_get(&given, "ApplicationLogLevel").data ||
                     document_get(&given, "SystemLogLevel").data;
    if (!is_json && has_level)
        return lambda_refuse(
            call, "ApplicationLogLevel and SystemLogLevel can only be set where LogFormat is JSON");
    for (uint32_t i = 0; i < given.count; i++)
        document_set(&logging, arena_copy(arena, given.members[i].name).data, given.members[i].value, arena);
    static const char *const levels[] = {"ApplicationLogLevel", "SystemLogLevel"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!is_json || !document_get(&logging, levels[i]).data)
            document_set(&logging, levels[i], is_json ? SLICE("\"INFO\"") : SLICE_NONE, arena);
    document_set(document, "LoggingConfig", document_json(&logging, arena), arena);
    return true;
}

bool configuration_apply(struct request *request, const struct shape_node *nodes, struct document *document)
{
    struct rest_call *call = request->call;
    if (!check_offered(request, nodes) || !check_environment(call, &nodes[CONFIG_ENVIRONMENT]) ||
        !check_dead_letters(request->func, call, &nodes[CONFIG_DEAD_LETTERS]) ||
        !apply_logging(call, &nodes[CONFIG_LOGGING], document) ||
        !layers_apply(request, &nodes[CONFIG_LAYERS], document))
        return false;
    set_members(call, nodes, document);
    return check_runtime(call, document) && apply_concurrency(call, nodes, document);
}

void configuration_defaults(struct slice name, struct document *document, struct arena *arena)
{
    static const char *const defaults[][2] = {
        {"Description", "\"\""},
        {"Timeout", "3"},
        {"MemorySize", "128"},
        {"TracingConfig", "{\"Mode\":\"PassThrough\"}"},
        {"PackageType", "\"Zip\""},
        {"Architectures", "[\"x86_64\"]"},
        {"EphemeralStorage", "{\"Size\":512}"},
        {"SnapStart", "{\"ApplyOn\":\"None\",\"OptimizationStatus\":\"Off\"}"},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!document_get(document, defaults[i][0]).data)
            document_set(document, defaults[i][0], slice_of(defaults[i][1]), arena);
    struct document logging = document_object(document, "LoggingConfig", arena);
    if (!document_get(&logging, "LogFormat").data)
        document_set(&logging, "LogFormat", SLICE("\"Text\""), arena);
    if (!document_get(&logging, "LogGroup").data)
        document_set_text(&logging, "LogGroup", arena_printf(arena, "/aws/lambda/%.*s", SLICE_ARG(name)),
                          arena);
    document_set(document, "LoggingConfig", document_json(&logging, arena), arena);
}

void configuration_mark(struct registry *registry, struct document *document, const struct document *before,
                        struct arena *arena)
{
    int64_t now = clock_now_ms(registry->func->options.clock);
    int64_t last = before ? document_integer(before, "Revision", 0) : 0;
    document_set_integer(document, "Revision", now > last ? now : last + 1, arena);
    document_set_text(document, "RevisionId", registry_uuid(registry, arena), arena);
    document_set_text(document, "LastModified", registry_time_text(now, arena), arena);
}

/* ---- showing ---- */

void configuration_put(struct buf *out, struct func *func, const struct entry *entry, const struct part *part,
                       struct slice qualifier, struct arena *arena)
{
    struct document shown = document_copy(&part->document, arena),
                    ours = document_object(&shown, "Quipu", arena);
    bool has_ours = document_get(&shown, "Quipu").data != NULL;
    document_set(&shown, "Revision", SLICE_NONE, arena);
    document_set(&shown, "Quipu", SLICE_NONE, arena);
    document_set(&shown, LAYER_HASHES, SLICE_NONE, arena);
    document_set(&ours, "Secret", SLICE_NONE, arena); /* who calls may know that there is one, not which */
    if (entry_part_of(entry, PART_URL, qualifier.len ? qualifier : part->name)) {
        has_ours = true;
        document_set_text(&ours, "UrlPath",
                          arena_printf(arena, "/_url/%.*s%s%.*s/", SLICE_ARG(entry->name),
                                       qualifier.len ? ":" : "", SLICE_ARG(qualifier)),
                          arena);
    }
    compose(
        out,
        "%,{'FunctionName':%s,'FunctionArn':%s,'Version':%s,'State':'Active','LastUpdateStatus':'Successful'",
        entry->name, lambda_arn(func, arena, entry->name, qualifier), part->name);
    document_put_more(out, &shown);
    if (has_ours) compose(out, ",'Quipu':%A", document_json(&ours, arena));
    buf_byte(out, '}');
}
