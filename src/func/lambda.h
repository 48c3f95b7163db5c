/* What the files of Lambda's API share: shapes of requests, answers, targets, changes.
 *
 * An operation lists its members in an enum and in a table of fields (where each stands: path, query, header
 * or body; its shape). lambda_decode reads them all and refuses what breaks a constraint, in the service's
 * words, all violations in one message. Then the operation's own code runs, on a thread that may wait. */
#ifndef FUNC_LAMBDA_H
#define FUNC_LAMBDA_H

#include "func/registry.h"

/* ---- shapes ---- */

enum shape_kind {
    SHAPE_STRING,
    SHAPE_INTEGER,
    SHAPE_DOUBLE,
    SHAPE_BOOL,
    SHAPE_BLOB,
    SHAPE_STRUCT,
    SHAPE_LIST,
    SHAPE_MAP,
};

struct field;

struct shape {
    enum shape_kind kind;
    bool has_min, has_max; /* of a length, of a value */
    int64_t min, max;
    const char *pattern; /* as the service shows it */
    bool (*matches)(struct slice text);
    const char *const *choices; /* ended by NULL */
    const struct shape *of;     /* elements, values */
    const struct shape *key;    /* of a map */
    const struct field *fields;
    uint32_t field_count;
};

enum source { IN_BODY, IN_PATH, IN_QUERY, IN_HEADER };

struct field {
    const char *name; /* as the model has it; in a message its first letter is small */
    const struct shape *shape;
    bool required;
    enum source source;
    const char *wire; /* its name in the query or the header; NULL: `name` */
    uint32_t index;   /* of the path's parameter */
};

struct node {
    const struct shape *shape;
    bool present, truth;
    struct slice text; /* strings; of a blob: still base64 */
    int64_t integer;
    double real;
    struct node *nodes; /* of a struct: one for each field; of a list or map: `count` */
    struct slice *keys; /* of a map */
    uint32_t count;
};

/* Reads and checks a request. False: it was refused, and answered. */
bool lambda_decode(struct rest_call *call, const struct field *fields, uint32_t count, struct node *nodes);
/* The same without an answer: the exception, and its text in *message. NULL: all is well. */
const char *lambda_decode_request(struct rest_call *call, const struct field *fields, uint32_t count,
                                  struct node *nodes, struct slice *message);
/* The node as JSON, as it came but without what is unknown. */
void node_put_json(struct buf *out, const struct node *node);
struct slice node_json(const struct node *node, struct arena *arena);

/* lambda_check.c: appends the violations of a node and of all below it, joined by "; ". */
void lambda_check(struct buf *out, unsigned *count, const struct field *fields, uint32_t field_count,
                  const struct node *nodes);

#define FIELD(field_name, field_shape)                                                                       \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape)                                                        \
    }
#define REQUIRED(field_name, field_shape)                                                                    \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .required = true                                      \
    }
#define PATH_FIELD(field_name, field_shape, number)                                                          \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .required = true, .source = IN_PATH,                  \
        .index = (number)                                                                                    \
    }
#define QUERY_FIELD(field_name, field_shape)                                                                 \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .source = IN_QUERY                                    \
    }
#define HEADER_FIELD(field_name, field_shape, header_name)                                                   \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .source = IN_HEADER, .wire = (header_name)            \
    }
#define STRUCT_OF(list)                                                                                      \
    {                                                                                                        \
        .kind = SHAPE_STRUCT, .fields = (list), .field_count = sizeof(list) / sizeof *(list)                 \
    }
#define INTEGER_BETWEEN(least, most)                                                                         \
    {                                                                                                        \
        .kind = SHAPE_INTEGER, .has_min = true, .min = (least), .has_max = true, .max = (most)               \
    }
#define FIELD_COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

/* ---- shapes that several operations share (lambda_shapes.c) ---- */

extern const struct shape lambda_shape_text, lambda_shape_bool, lambda_shape_blob;
extern const struct shape lambda_shape_function_name,
    lambda_shape_function_name_long; /* long: with dots, up to 170 */
extern const struct shape lambda_shape_qualifier, lambda_shape_version, lambda_shape_alias,
    lambda_shape_description;
extern const struct shape lambda_shape_max_items, lambda_shape_max_items_50, lambda_shape_tags,
    lambda_shape_destinations;
extern const struct shape lambda_shape_architectures;
/* Takes what stands before the next colon off the front. */
struct slice lambda_take_field(struct slice *rest);

/* ---- answers (lambda_answer.c) ---- */

/* Ends the call with what is in its reply. */
void lambda_done(struct rest_call *call, int status);
/* "Function not found: arn..." */
void lambda_not_found(struct func *func, struct rest_call *call, struct slice name, struct slice qualifier);
void lambda_unavailable(struct rest_call *call); /* ServiceException: the tables cannot be used now */
/* arn:aws:lambda:...:function:NAME[:QUALIFIER] */
struct slice lambda_arn(struct func *func, struct arena *arena, struct slice name, struct slice qualifier);
/* Ends the call when the RevisionId was given and is another one; true: go on. */
bool lambda_revision_fits(struct rest_call *call, const struct node *given, const struct document *document);

/* ---- targets: which function a request is about ---- */

struct target {
    struct slice name, qualifier; /* empty: none was given */
};

/* From the member FunctionName and, where the operation has one, Qualifier. False: answered. */
bool lambda_target(struct func *func, struct rest_call *call, const struct node *name,
                   const struct node *qualifier, struct target *out);
/* The same for operations on the function as a whole: no qualifier is allowed. */
bool lambda_whole_target(struct func *func, struct rest_call *call, const struct node *name,
                         struct target *out);
/* The entry as it is known, counted; NULL: answered with "not found" or a fault. */
struct entry *lambda_entry(struct func *func, struct rest_call *call, const struct target *target);

/* ---- changes ---- */

enum step { STEP_COMMIT, STEP_NOTHING, STEP_ANSWERED };

/* Looks at change->before and says what is to be written; called again when somebody else was faster. The
 * function must be there unless the step is one that makes it. */
typedef enum step lambda_step(struct rest_call *call, struct change *change, void *context);

/* Runs the step until its change is through. True: `change` is committed (or there was nothing to do, then
 * `after` is `before`), to be freed by the caller; false: answered. */
bool lambda_change(struct func *func, struct rest_call *call, const struct target *target, lambda_step *step,
                   void *context, struct change *change);

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

/* The members of FunctionCode, in the order of enum code_member. */
#define CODE_FIELDS                                                                                          \
    [CODE_ZIP_FILE] = FIELD("ZipFile", lambda_shape_blob),                                                   \
    [CODE_S3_BUCKET] = FIELD("S3Bucket", lambda_shape_text),                                                 \
    [CODE_S3_KEY] = FIELD("S3Key", lambda_shape_text),                                                       \
    [CODE_S3_VERSION] = FIELD("S3ObjectVersion", lambda_shape_text),                                         \
    [CODE_IMAGE_URI] = FIELD("ImageUri", lambda_shape_text),                                                 \
    [CODE_DIRECTORY] = FIELD("Directory", lambda_shape_text), [CODE_URL] = FIELD("Url", lambda_shape_text),  \
    [CODE_SECRET] = FIELD("Secret", lambda_shape_text), [CODE_TABLE] = FIELD("Table", lambda_shape_text),    \
    [CODE_QUEUE] = FIELD("Queue", lambda_shape_text), [CODE_PATTERN] = FIELD("Pattern", lambda_shape_text),  \
    [CODE_BODY] = FIELD("Body", lambda_shape_text)

enum code_member {
    CODE_ZIP_FILE,
    CODE_S3_BUCKET,
    CODE_S3_KEY,
    CODE_S3_VERSION,
    CODE_IMAGE_URI,
    CODE_DIRECTORY,
    CODE_URL,
    CODE_SECRET,
    CODE_TABLE,
    CODE_QUEUE,
    CODE_PATTERN,
    CODE_BODY,
    CODE_MEMBERS,
};

/* Looks at the code, and unpacks an archive. False: answered. */
bool lambda_code_read(struct func *func, struct rest_call *call, const struct node *nodes, struct code *out);
/* Stores the archive, claimed until lambda_code_end. False: answered. */
bool lambda_code_store(struct func *func, struct rest_call *call, struct code *code);
void lambda_code_end(struct func *func, struct code *code);
/* Writes what the code says into a version's document. */
void lambda_code_apply(const struct code *code, struct document *document, struct arena *arena);

/* ---- configurations (lambda_configuration.c) ---- */

enum configuration_member {
    CONFIG_RUNTIME,
    CONFIG_ROLE,
    CONFIG_HANDLER,
    CONFIG_DESCRIPTION,
    CONFIG_TIMEOUT,
    CONFIG_MEMORY,
    CONFIG_VPC,
    CONFIG_DEAD_LETTERS,
    CONFIG_ENVIRONMENT,
    CONFIG_KMS_KEY,
    CONFIG_TRACING,
    CONFIG_LAYERS,
    CONFIG_FILE_SYSTEMS,
    CONFIG_IMAGE,
    CONFIG_STORAGE,
    CONFIG_SNAP_START,
    CONFIG_LOGGING,
    CONFIG_CAPACITY,
    CONFIG_DURABLE,
    CONFIG_TENANCY,
    CONFIG_QUIPU,
    CONFIG_MEMBERS,
};

extern const struct field configuration_fields[CONFIG_MEMBERS];

/* Checks what the constraints cannot say and puts the given members into the version's document. The
 * document has the code already. False: answered. */
bool configuration_apply(struct func *func, struct rest_call *call, const struct node *nodes,
                         struct document *document);
/* What a new function has where nothing was given. */
void configuration_defaults(struct slice name, struct document *document, struct arena *arena);
/* The version is another one than before: when, which. */
void configuration_mark(struct registry *registry, struct document *document, const struct document *before,
                        struct arena *arena);
/* The members of FunctionConfiguration in braces. The ARN has the qualifier where one is given. */
void configuration_put(struct buf *out, struct func *func, const struct entry *entry, const struct part *part,
                       struct slice qualifier, struct arena *arena);

/* Whether a layer may be for these runtimes. False: answered. */
bool lambda_check_runtimes(struct rest_call *call, const struct node *list);
/* lambda_layer.c: puts the layers into the version's document, and checks the size of all its code. The
 * document has the code already. False: answered. */
bool layers_apply(struct func *func, struct rest_call *call, const struct node *layers,
                  struct document *document);

/* Publishes the version: changes head and documents. Answers its number's text; the same as the last one's
 * when nothing has changed since. NULL data: answered. */
struct slice version_publish(struct rest_call *call, struct change *change, const struct document *latest,
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
    X(get_code_signing) X(get_url_config) X(list_url_configs) X(provisioned_concurrency)
// clang-format on

#define X(name) void lambda_##name(struct func *func, struct rest_call *call);
LAMBDA_OPERATIONS(X)
#undef X

/* These do not wait. */
void lambda_invoke(void *func, struct rest_call *call);
void lambda_invoke_async(void *func, struct rest_call *call);

#endif
