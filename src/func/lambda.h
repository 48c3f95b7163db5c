/* What the files of Lambda's API share: shapes of requests, answers, targets, changes.
 *
 * An operation has one list of its members, X(NAME, field), from which come the enum of their indexes (MEMBERS) and the
 * table of fields: where each stands (path, query, header or body), and its shape. lambda_run reads them all and
 * refuses what breaks a constraint, in the service's words, all violations in one message; finds the function; and
 * calls the operation's own code, on a thread that may wait:
 *
 *     #define GET_ALIAS(X) \
 *         X(ALIAS_FUNCTION, PATH_FIELD("FunctionName", lambda_shape_function_name, 0)) \
 *         X(ALIAS_NAME, PATH_FIELD("Name", lambda_shape_alias, 1))
 *     MEMBERS(GET_ALIAS)
 *     OPERATION(get_alias, TARGET_WHOLE, GET_ALIAS)
 *     {
 *         ... request->nodes[ALIAS_NAME].text ...
 *     } */
#ifndef FUNC_LAMBDA_H
#define FUNC_LAMBDA_H

#include "base/compose.h"
#include "func/registry.h"

/* The node as a member of the document, where it was given. */
void node_set(struct document *document, const char *name, const struct shape_node *node, struct arena *arena);

/* lambda_check.c: appends the violations of a node and of all below it, joined by "; ". */
void lambda_check(struct buf *out, unsigned *count, const struct shape_field *fields, uint32_t field_count,
                  const struct shape_node *nodes);

/* ---- operations ---- */

struct request {
    struct func *func;
    struct rest_call *call;
    struct arena *arena; /* the call's */
    const struct shape_node *nodes;
    struct slice name, qualifier; /* of the function; empty: none was given */
    struct entry *entry;          /* TARGET_ENTRY: released behind the operation */
    struct slice part;            /* that a change has made, for lambda_show */
};

/* What an operation is about. */
#define TARGET_NONE      0
#define TARGET_QUALIFIED 1 /* a function, by FunctionName and, where there is such a member, Qualifier */
#define TARGET_WHOLE     2 /* a function, whose name may have no qualifier */
#define TARGET_ENTRY     4 /* its entry is looked up; "not found" is answered */

void lambda_run(struct func *func, struct rest_call *call, const struct shape_field *fields, uint32_t count,
                int target, void (*serve)(struct request *request));

/* What the request's qualifier names: $LATEST where none was given. */
struct slice lambda_qualifier(const struct request *request);
/* Whether there is such a function, in request->entry; false: answered with "not found" or a fault. */
bool lambda_find(struct request *request);

/* Members that many operations have. */
#define NAME_FIELD      PATH_FIELD("FunctionName", lambda_shape_function_name, 0)
#define QUALIFIER_FIELD QUERY_FIELD("Qualifier", lambda_shape_qualifier)
#define REVISION_FIELD  FIELD("RevisionId", lambda_shape_text)
#define MARKER_FIELD    QUERY_FIELD("Marker", lambda_shape_text)

#define MEMBERS(list)          enum { list(FIELD_INDEX) };
#define OPERATION(name, target, list)                                                                        \
    static void name(struct request *request);                                                               \
    void lambda_##name(void *func, struct rest_call *call)                                                   \
    {                                                                                                        \
        static const struct shape_field fields[] = {list(FIELD_ROW)};                                              \
        lambda_run(func, call, fields, FIELD_COUNT(fields), target, name);                                   \
    }                                                                                                        \
    static void name(struct request *request)

/* ---- answers (lambda_answer.c) ---- */

/* Ends the request with JSON (base/compose.h). */
void lambda_reply(const struct request *request, int status, const char *format, ...);
/* "Function not found: arn..."; both answer false. */
bool lambda_not_found(struct func *func, struct rest_call *call, struct slice name, struct slice qualifier);
bool lambda_missing(const struct request *request, struct slice qualifier);
bool lambda_unavailable(
    struct rest_call *call); /* ServiceException: the tables cannot be used now; answers false */
/* arn:aws:lambda:...:function:NAME[:QUALIFIER] */
struct slice lambda_arn(struct func *func, struct arena *arena, struct slice name, struct slice qualifier);
/* Ends the call when the RevisionId was given and is another one; true: go on. */
bool lambda_revision_fits(struct rest_call *call, const struct shape_node *given, const struct document *document);

/* ---- targets: which function a request is about ---- */

struct target {
    struct slice name, qualifier; /* empty: none was given */
};

/* From the member FunctionName and, where the operation has one, Qualifier. False: answered. */
bool lambda_target(struct func *func, struct rest_call *call, const struct shape_node *name,
                   const struct shape_node *qualifier, struct target *out);
/* ---- changes ---- */

enum step { STEP_ANSWERED, STEP_COMMIT, STEP_NOTHING };

/* Looks at change->before and says what is to be written; called again when somebody else was faster. The
 * function must be there unless the step is one that makes it. */
typedef enum step lambda_step(struct request *request, struct change *change, void *context);

/* Runs the step until its change is through. True: `change` is committed (or there was nothing to do, then
 * `after` is `before`), to be freed by the caller; false: answered. */
bool lambda_change(struct request *request, lambda_step *step, void *context, struct change *change);
/* The same for who needs nothing of it: answers 204. */
void lambda_change_quietly(struct request *request, lambda_step *step, void *context);
/* Puts one part as JSON, behind a comma where it needs one. */
typedef void lambda_put(struct buf *out, const struct request *request, const struct entry *entry,
                        const struct part *part);
/* Ends a change with request->part, as it is now. False: somebody else has deleted it, which is not answered yet. */
bool lambda_show(struct request *request, struct change *change, lambda_put *put, int status);

/* A kind of parts that are set, shown and deleted, each by its qualifier or name. */
struct part_kind {
    const char *prefix; /* "alias:" */
    lambda_put *put;
    bool (*missing)(const struct request *request); /* answers that there is none; false */
};
/* Each ends the request: with the part, with that of a change, with 204. */
void lambda_get_part(struct request *request, const struct part_kind *kind, struct slice suffix);
void lambda_change_part(struct request *request, const struct part_kind *kind, lambda_step *step,
                        void *context, int status);
void lambda_delete_part(struct request *request, const struct part_kind *kind);

/* ---- lists ---- */

#define LIST_MOST 50 /* Lambda answers at most so many at once, whatever was asked for */
uint32_t lambda_list_max(const struct shape_node *max);
/* Ends a list, whose bracket is open; marker: of the next page, NULL data: there is none. */
void lambda_list_end(const struct request *request, struct slice marker);
/* The parts of the entry that have the prefix and are wanted (NULL: all), from the marker on. */
void lambda_list_parts(const struct request *request, const char *member, const char *prefix,
                       const struct shape_node *marker, const struct shape_node *max,
                       bool (*is_wanted)(const struct request *request, const struct part *part),
                       lambda_put *put);

/* ---- code (lambda_code.c) ---- */

struct code {
    struct slice zip; /* bytes; NULL data: the code is no archive */
    struct slice sha256;
    int64_t size;
    struct slice ours;  /* JSON of Directory, Url, ...; NULL data: none */
    bool needs_runtime; /* it is run by a process */
    bool is_archive;
    struct code_claim claim;
};

/* The members of FunctionCode. */
#define CODE_MEMBERS(X)                                                                                      \
    X(CODE_ZIP_FILE, FIELD("ZipFile", lambda_shape_blob))                                                    \
    X(CODE_S3_BUCKET, FIELD("S3Bucket", lambda_shape_text))                                                  \
    X(CODE_S3_KEY, FIELD("S3Key", lambda_shape_text))                                                        \
    X(CODE_S3_VERSION, FIELD("S3ObjectVersion", lambda_shape_text))                                          \
    X(CODE_IMAGE_URI, FIELD("ImageUri", lambda_shape_text))                                                  \
    CODE_OURS(X)
/* Those that only we have; kept under the configuration's member Quipu. */
#define CODE_OURS(X)                                                                                         \
    X(CODE_DIRECTORY, FIELD("Directory", lambda_shape_text))                                                 \
    X(CODE_URL, FIELD("Url", lambda_shape_text))                                                             \
    X(CODE_SECRET, FIELD("Secret", lambda_shape_text))                                                       \
    X(CODE_TABLE, FIELD("Table", lambda_shape_text))                                                         \
    X(CODE_QUEUE, FIELD("Queue", lambda_shape_text))                                                         \
    X(CODE_PATTERN, FIELD("Pattern", lambda_shape_text))                                                     \
    X(CODE_BODY, FIELD("Body", lambda_shape_text))
enum code_member { CODE_MEMBERS(FIELD_INDEX) CODE_MEMBER_COUNT };

/* Looks at the code, and unpacks an archive. False: answered. */
bool lambda_code_read(struct request *request, const struct shape_node *nodes, struct code *out);
/* Stores the archive, claimed until lambda_code_end. False: answered. */
bool lambda_code_store(struct func *func, struct rest_call *call, struct code *code);
void lambda_code_end(struct func *func, struct code *code);
/* Writes what the code says into a version's document. */
void lambda_code_apply(const struct code *code, struct document *document, struct arena *arena);

/* ---- configurations (lambda_configuration.c) ---- */

#define CONFIG_LIST(X)                                                                                       \
    X(CONFIG_RUNTIME, FIELD("Runtime", lambda_shape_text))                                                   \
    X(CONFIG_ROLE, FIELD("Role", shape_role))                                                                \
    X(CONFIG_HANDLER, FIELD("Handler", shape_handler))                                                       \
    X(CONFIG_DESCRIPTION, FIELD("Description", lambda_shape_description))                                    \
    X(CONFIG_TIMEOUT, FIELD("Timeout", shape_timeout))                                                       \
    X(CONFIG_MEMORY, FIELD("MemorySize", shape_memory))                                                      \
    X(CONFIG_VPC, FIELD("VpcConfig", shape_vpc))                                                             \
    X(CONFIG_DEAD_LETTERS, FIELD("DeadLetterConfig", shape_dead_letters))                                    \
    X(CONFIG_ENVIRONMENT, FIELD("Environment", shape_environment))                                           \
    X(CONFIG_KMS_KEY, FIELD("KMSKeyArn", shape_some_arn))                                                    \
    X(CONFIG_TRACING, FIELD("TracingConfig", shape_tracing))                                                 \
    X(CONFIG_LAYERS, FIELD("Layers", shape_texts))                                                           \
    X(CONFIG_FILE_SYSTEMS, FIELD("FileSystemConfigs", shape_file_systems))                                   \
    X(CONFIG_IMAGE, FIELD("ImageConfig", shape_image))                                                       \
    X(CONFIG_STORAGE, FIELD("EphemeralStorage", shape_storage))                                              \
    X(CONFIG_SNAP_START, FIELD("SnapStart", shape_snap))                                                     \
    X(CONFIG_LOGGING, FIELD("LoggingConfig", shape_logging))                                                 \
    X(CONFIG_CAPACITY, FIELD("CapacityProviderConfig", shape_capacity))                                      \
    X(CONFIG_DURABLE, FIELD("DurableConfig", shape_empty))                                                   \
    X(CONFIG_TENANCY, FIELD("TenancyConfig", shape_empty))                                                   \
    X(CONFIG_QUIPU, FIELD("Quipu", shape_quipu))
enum configuration_member { CONFIG_LIST(FIELD_INDEX) CONFIG_MEMBERS };
extern const struct shape_field configuration_fields[CONFIG_MEMBERS];

/* Checks what the constraints cannot say and puts the given members into the version's document. The
 * document has the code already. False: answered. */
bool configuration_apply(struct request *request, const struct shape_node *nodes, struct document *document);
/* What a new function has where nothing was given. */
void configuration_defaults(struct slice name, struct document *document, struct arena *arena);
/* The version is another one than before: when, which. */
void configuration_mark(struct registry *registry, struct document *document, const struct document *before,
                        struct arena *arena);
/* The members of FunctionConfiguration in braces, behind a comma where one is needed. The ARN has the
 * qualifier where one is given. */
void configuration_put(struct buf *out, struct func *func, const struct entry *entry, const struct part *part,
                       struct slice qualifier, struct arena *arena);

/* Whether a layer may be for these runtimes. False: answered. */
bool lambda_check_runtimes(struct rest_call *call, const struct shape_node *list);
/* lambda_layer.c: puts the layers into the version's document, and checks the size of all its code. The
 * document has the code already. False: answered. */
bool layers_apply(struct request *request, const struct shape_node *layers, struct document *document);

/* Publishes the version: changes head and documents. Answers its number's text; the same as the last one's
 * when nothing has changed since. NULL data: answered. */
struct slice version_publish(struct request *request, struct change *change, const struct document *latest,
                             struct slice description);

/* ---- operations: (func, call), on a thread that may wait ---- */

// clang-format off
/* X(name): serves the operation of that name. */
#define LAMBDA_OPERATIONS(X) \
    X(create_function) X(get_function) X(get_function_configuration) X(list_functions) X(delete_function) \
    X(update_function_code) X(update_function_configuration) X(get_function_code) \
    X(publish_version) X(list_versions) \
    X(create_alias) X(get_alias) X(update_alias) X(delete_alias) X(list_aliases) \
    X(put_concurrency) X(get_concurrency) X(delete_concurrency) X(get_account_settings) \
    X(put_event_invoke) X(update_event_invoke) X(get_event_invoke) X(delete_event_invoke) X(list_event_invokes) \
    X(tag_resource) X(untag_resource) X(list_tags) \
    X(add_permission) X(remove_permission) X(get_policy) \
    X(put_recursion) X(get_recursion) X(put_runtime_management) X(get_runtime_management) \
    X(publish_layer) X(list_layers) X(list_layer_versions) X(get_layer_version) X(delete_layer_version) \
    X(create_url) X(update_url) X(get_url) X(delete_url) X(list_urls) \
    X(get_code_signing) X(provisioned_concurrency)
// clang-format on

#define X(name) void lambda_##name(void *func, struct rest_call *call);
LAMBDA_OPERATIONS(X)
#undef X

/* These do not wait. */
void lambda_invoke(void *func, struct rest_call *call);
void lambda_invoke_async(void *func, struct rest_call *call);

#endif
