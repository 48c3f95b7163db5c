/* What the files of this room share: the model of requests (shapes), decoded requests (nodes), errors and
 * operations.
 *
 * A request is checked in the order of the service:
 *  1. it must be JSON and fit the shapes, else SerializationException;
 *  2. the constraints of the shapes, all violations (at most ten) in one ValidationException;
 *  3. the operation's own checks of parameters, values and expressions;
 *  4. the table must exist;
 *  5. checks against its schema. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include <stddef.h>

#include "api/api.h"
#include "base/json.h"
#include "base/limits.h"

/* ---- shapes: what a request may look like ---- */

enum shape_kind {
    SHAPE_STRUCT,
    SHAPE_LIST,
    SHAPE_MAP,
    SHAPE_STRING,
    SHAPE_BOOL,
    SHAPE_INT,
    SHAPE_LONG,
    SHAPE_DOUBLE,
    SHAPE_VALUE, /* an AttributeValue, decoded straight into a struct value */
};

/* Names of tables; an ARN may stand for each. Operations on items list a missing name with the other
 * violations, and of an empty one they say that it needs one character. */
#define TABLE_NAME_LEAST 3
enum table_name_rule { TABLE_NAME_NONE, TABLE_NAME_OF_ITEMS, TABLE_NAME_STRICT };

struct shape;

struct shape_member {
    struct slice name;
    const struct shape *shape;
    bool required;
};

struct shape {
    enum shape_kind kind;
    const char *type_name; /* STRUCT: as the service's messages name it, e.g. "KeySchemaElement" */
    const struct shape_member *members; /* STRUCT, in the order in which the service checks them */
    uint32_t member_count;
    const struct shape *of;  /* LIST, MAP: of the elements */
    const struct shape *key; /* MAP: a STRING shape whose constraints the keys must satisfy, or NULL */
    bool has_min, has_max;
    int64_t min, max;                /* STRING: length; LIST, MAP: count; numbers: value */
    const char *pattern;             /* STRING: as printed in the message; checked by matches */
    bool (*matches)(struct slice);   /* STRING with a pattern */
    const char *const *choices;      /* STRING: enum in the service's printing order, ended by NULL */
    enum table_name_rule table_name; /* STRING: a table's name, checked alone and before everything else */
    bool terse;         /* violations in the newer wording: path as in the request, value left out */
    bool length_first;  /* a violated length is said before a violated pattern */
    bool shown_as_sent; /* MAP, a member of the request: violations show it as JSON */
    bool takes_arn;     /* STRING: an ARN may stand for it, and is judged later */
    bool (*check_body)(struct api_call *); /* of a whole request, before its members' constraints; or NULL */
};

/* A decoded value of a shape. `present` is false for what was absent or null. */
struct node_entry;
struct node {
    const struct shape *shape;
    bool present;
    uint32_t count;     /* LIST, MAP */
    struct slice fault; /* VALUE: the service's sentence about its content; empty when sound */
    union {
        struct slice text;
        bool truth;
        int64_t integer;
        double real;
        struct value value;         /* VALUE */
        struct node *members;       /* STRUCT: indexed like shape->members */
        struct node *elements;      /* LIST */
        struct node_entry *entries; /* MAP, in the request's order */
    };
};
struct node_entry {
    struct slice key;
    struct node node;
};

/* ---- errors ---- */

/* X(short name, HTTP status, __type prefix, member that holds the message: the service is not of one mind) */
#define CORAL_PREFIX  "com.amazon.coral.service#"
#define DYNAMO_PREFIX "com.amazonaws.dynamodb.v20120810#"
#define API_ERRORS(X)                                                                                        \
    X(ValidationException, 400, "com.amazon.coral.validate#", "message")                                     \
    X(SerializationException, 400, CORAL_PREFIX, "Message")                                                  \
    X(UnknownOperationException, 400, CORAL_PREFIX, "message")                                               \
    X(AccessDeniedException, 400, CORAL_PREFIX, "Message")                                                   \
    X(MissingAuthenticationTokenException, 400, CORAL_PREFIX, "message")                                     \
    X(IncompleteSignatureException, 400, CORAL_PREFIX, "message")                                            \
    X(InvalidSignatureException, 400, CORAL_PREFIX, "message")                                               \
    X(UnrecognizedClientException, 400, CORAL_PREFIX, "message")                                             \
    X(RequestEntityTooLargeException, 413, CORAL_PREFIX, "message")                                          \
    X(ThrottlingException, 400, "com.amazon.coral.availability#", "message")                                 \
    X(InternalServerError, 500, DYNAMO_PREFIX, "message")                                                    \
    X(ServiceUnavailable, 503, "com.amazon.coral.availability#", "message")                                  \
    X(ConditionalCheckFailedException, 400, DYNAMO_PREFIX, "message")                                        \
    X(ResourceNotFoundException, 400, DYNAMO_PREFIX, "message")                                              \
    X(ResourceInUseException, 400, DYNAMO_PREFIX, "message")                                                 \
    X(LimitExceededException, 400, DYNAMO_PREFIX, "message")                                                 \
    X(TableNotFoundException, 400, DYNAMO_PREFIX, "message")                                                 \
    X(ItemCollectionSizeLimitExceededException, 400, DYNAMO_PREFIX, "message")                               \
    X(ProvisionedThroughputExceededException, 400, DYNAMO_PREFIX, "message")                                 \
    X(RequestLimitExceeded, 400, DYNAMO_PREFIX, "message")                                                   \
    X(TransactionCanceledException, 400, DYNAMO_PREFIX, "Message")                                           \
    X(TransactionConflictException, 400, DYNAMO_PREFIX, "message")                                           \
    X(TransactionInProgressException, 400, DYNAMO_PREFIX, "Message")                                         \
    X(IdempotentParameterMismatchException, 400, DYNAMO_PREFIX, "Message")                                   \
    X(ExpiredIteratorException, 400, DYNAMO_PREFIX, "message")                                               \
    X(TrimmedDataAccessException, 400, DYNAMO_PREFIX, "message")                                             \
    X(PolicyNotFoundException, 400, DYNAMO_PREFIX, "message")                                                \
    X(GlobalTableAlreadyExistsException, 400, DYNAMO_PREFIX, "message")                                      \
    X(GlobalTableNotFoundException, 400, DYNAMO_PREFIX, "message")                                           \
    X(ReplicaAlreadyExistsException, 400, DYNAMO_PREFIX, "message")                                          \
    X(ReplicaNotFoundException, 400, DYNAMO_PREFIX, "message")                                               \
    X(DuplicateItemException, 400, DYNAMO_PREFIX, "message")                                                 \
    X(IndexNotFoundException, 400, DYNAMO_PREFIX, "message")                                                 \
    X(PointInTimeRecoveryUnavailableException, 400, DYNAMO_PREFIX, "message")                                \
    X(BackupNotFoundException, 400, DYNAMO_PREFIX, "message")                                                \
    X(BackupInUseException, 400, DYNAMO_PREFIX, "message")                                                   \
    X(ContinuousBackupsUnavailableException, 400, DYNAMO_PREFIX, "message")                                  \
    X(InvalidRestoreTimeException, 400, DYNAMO_PREFIX, "message")                                            \
    X(TableAlreadyExistsException, 400, DYNAMO_PREFIX, "message")                                            \
    X(TableInUseException, 400, DYNAMO_PREFIX, "message")                                                    \
    X(InvalidExportTimeException, 400, DYNAMO_PREFIX, "message")                                             \
    X(ExportConflictException, 400, DYNAMO_PREFIX, "message")                                                \
    X(ExportNotFoundException, 400, DYNAMO_PREFIX, "message")                                                \
    X(ImportConflictException, 400, DYNAMO_PREFIX, "message")                                                \
    X(ImportNotFoundException, 400, DYNAMO_PREFIX, "message")                                                \
    X(ObjectNotFoundException, 400, "", "Message")                                                           \
    X(InvalidNextTokenException, 400, "", "Message")                                                         \
    X(TooManyTagsException, 400, "", "Message")                                                              \
    X(UnsupportedOperationException, 400, CORAL_PREFIX, "message")

/* Ends the call with this exception; the reply is written. Always answers false, so that a check can `return
 * refuse(...)`. */
bool refuse(struct api_call *call, const char *short_name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool refuse_text(struct api_call *call, const char *short_name, struct slice message);
/* The same with further members in the error's JSON, such as "Item":{...}, without commas around them. */
bool refuse_with(struct api_call *call, const char *short_name, struct slice message, struct slice members);
/* ValidationException with this text, by far the most common. */
bool invalid(struct api_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool invalid_text(struct api_call *call, struct slice message);

/* ---- decoding ---- */

/* Step 1: the body into nodes; *root becomes a STRUCT node. Refuses and answers false when it cannot. */
bool request_decode(struct api_call *call, const struct shape *shape, struct node *root);
/* Between them, on a lenient server: what other local DynamoDBs take becomes what the service takes. */
void request_relax(const struct operation *operation, const struct node *input);
/* Step 2: the shapes' constraints. */
bool request_check(struct api_call *call, const struct node *root);

static inline const struct node *node_member(const struct node *node, unsigned index)
{
    return &node->members[index];
}

/* Words and truths of a request; false where there is none. */
static inline bool node_says(const struct node *node, const char *word)
{
    return node->present && node->text.len == strlen(word) &&
           memcmp(node->text.data, word, node->text.len) == 0;
}

static inline bool node_is_true(const struct node *node)
{
    return node->present && node->truth;
}

/* ---- tables ---- */

/* The table's name in a request: as it stands, or out of its ARN. Refuses and answers false when an ARN is
 * malformed or of another region or account. */
bool table_name_resolve(struct api_call *call, const struct node *name, struct slice *out);
/* True while a server that delays this says so of a new table; nobody reads or writes it before. */
bool table_is_creating(const struct api *api, const struct table *table);
/* The table, counted; it is released when the call ends, not by the caller. Refuses (and answers NULL) when
 * there is none: in the words for items, or in those of table operations. */
struct table *find_table(struct api_call *call, struct slice name);
/* The setting of a table that is being dropped: it is of no use to anybody. */
#define API_DELETING "deleting"
/* find_table without a refusal: just NULL. */
struct table *look_up_table(struct api_call *call, struct slice name);
struct table *find_table_to_manage(struct api_call *call, struct slice name);
/* find_table where the name, or an ARN in its place, stands deeper in a request. */
struct table *find_table_or_arn(struct api_call *call, struct slice name);
/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME */
void put_table_arn(struct buf *out, const struct api *api, struct slice name);

/* ---- operations ---- */

/* What an operation is. `begin` gets the decoded and constraint-checked request; it either answers (ok or
 * refuse) or sets call->is_write, call->commit.apply and call->state, and `finish` writes the reply after the
 * commit; or it sets call->work, and `finish` writes the reply after that. */
struct operation {
    struct slice name;
    const struct shape *input;
    void (*begin)(struct api_call *call, const struct node *input);
    void (*finish)(struct api_call *call); /* NULL for those that never write */
};

/* The call whose commit this is, for `apply`. */
static inline struct api_call *call_of_commit(struct commit *commit)
{
    return (struct api_call *)(void *)((char *)commit - offsetof(struct api_call, commit));
}

struct api {
    struct engine *engine;
    struct slice region, account, endpoint;
    int64_t creating_ms;
    bool is_lenient, read_only;
    struct throttle *throttle;
    const struct api_backups *backups; /* NULL: there are none */
};

/* X(name): one for each operation served, sorted by name; each has its operation_<name>. */
#define API_OPERATIONS(X)                                                                                    \
    X(BatchExecuteStatement)                                                                                 \
    X(BatchGetItem)                                                                                          \
    X(BatchWriteItem)                                                                                        \
    X(CancelBulkOperation)                                                                                   \
    X(CreateBackup)                                                                                          \
    X(CreateGlobalTable)                                                                                     \
    X(CreateTable)                                                                                           \
    X(DeleteBackup)                                                                                          \
    X(DeleteItem)                                                                                            \
    X(DeleteResourcePolicy)                                                                                  \
    X(DeleteScalingPolicy)                                                                                   \
    X(DeleteTable)                                                                                           \
    X(DeregisterScalableTarget)                                                                              \
    X(DescribeBackup)                                                                                        \
    X(DescribeBulkOperation)                                                                                 \
    X(DescribeContinuousBackups)                                                                             \
    X(DescribeContributorInsights)                                                                           \
    X(DescribeEndpoints)                                                                                     \
    X(DescribeExport)                                                                                        \
    X(DescribeGlobalTable)                                                                                   \
    X(DescribeGlobalTableSettings)                                                                           \
    X(DescribeImport)                                                                                        \
    X(DescribeKinesisStreamingDestination)                                                                   \
    X(DescribeLimits)                                                                                        \
    X(DescribeScalableTargets)                                                                               \
    X(DescribeScalingPolicies)                                                                               \
    X(DescribeStream)                                                                                        \
    X(DescribeTable)                                                                                         \
    X(DescribeTableReplicaAutoScaling)                                                                       \
    X(DescribeTimeToLive)                                                                                    \
    X(DisableKinesisStreamingDestination)                                                                    \
    X(EnableKinesisStreamingDestination)                                                                     \
    X(ExecuteStatement)                                                                                      \
    X(ExecuteTransaction)                                                                                    \
    X(ExportTableToPointInTime)                                                                              \
    X(GetItem)                                                                                               \
    X(GetRecords)                                                                                            \
    X(GetResourcePolicy)                                                                                     \
    X(GetShardIterator)                                                                                      \
    X(ImportTable)                                                                                           \
    X(ListBackups)                                                                                           \
    X(ListBulkOperations)                                                                                    \
    X(ListContributorInsights)                                                                               \
    X(ListExports)                                                                                           \
    X(ListGlobalTables)                                                                                      \
    X(ListImports)                                                                                           \
    X(ListStreams)                                                                                           \
    X(ListTables)                                                                                            \
    X(ListTagsForResource)                                                                                   \
    X(ListTagsOfResource)                                                                                    \
    X(PutItem)                                                                                               \
    X(PutResourcePolicy)                                                                                     \
    X(PutScalingPolicy)                                                                                      \
    X(Query)                                                                                                 \
    X(RegisterScalableTarget)                                                                                \
    X(RestoreTableFromBackup)                                                                                \
    X(RestoreTableToPointInTime)                                                                             \
    X(Scan)                                                                                                  \
    X(SearchVectors)                                                                                         \
    X(StartBulkPutItems)                                                                                     \
    X(TagResource)                                                                                           \
    X(TagScalableTarget)                                                                                     \
    X(TransactGetItems)                                                                                      \
    X(TransactWriteItems)                                                                                    \
    X(UntagResource)                                                                                         \
    X(UntagScalableTarget)                                                                                   \
    X(UpdateContinuousBackups)                                                                               \
    X(UpdateContributorInsights)                                                                             \
    X(UpdateGlobalTable)                                                                                     \
    X(UpdateGlobalTableSettings)                                                                             \
    X(UpdateItem)                                                                                            \
    X(UpdateKinesisStreamingDestination)                                                                     \
    X(UpdateTable)                                                                                           \
    X(UpdateTableReplicaAutoScaling)                                                                         \
    X(UpdateTimeToLive)

#define X(op) extern const struct operation operation_##op;
API_OPERATIONS(X)
#undef X

/* ---- values in JSON ---- */

void value_put_json(struct buf *out, const struct value *value);

#endif
