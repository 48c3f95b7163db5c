/* What the mapping_*.c files share: settings as Lambda's API words them, requests, items, replies.
 *
 * Settings are kept three times: as an item of the table (which lasts), as `struct settings` (in the API's
 * units, for replies and changes) and as `struct mapping` (what the consumer works with). Each is made of the
 * one before, so that none can say what the others do not. */
#ifndef TRIGGER_MAPPING_H
#define TRIGGER_MAPPING_H

#include <stdio.h>

#include "base/json.h"
#include "trigger/internal.h"

/* ---- settings ---- */

/* Whole numbers: the API's name, the item's attribute, the range, what it is when nobody says. */
#define MAPPING_NUMBERS(X)                                                                                   \
    X(BATCH_SIZE, "BatchSize", "batchSize", 1, 10000, 100)                                                   \
    X(BATCH_WINDOW, "MaximumBatchingWindowInSeconds", "batchingWindowSeconds", 0, 300, 0)                    \
    X(PARALLEL, "ParallelizationFactor", "parallelizationFactor", 1, 10, 1)                                  \
    X(RETRIES, "MaximumRetryAttempts", "retryAttempts", -1, 10000, -1)                                       \
    X(RECORD_AGE, "MaximumRecordAgeInSeconds", "recordAgeSeconds", -1, 604800, -1)                           \
    X(TUMBLING, "TumblingWindowInSeconds", "tumblingWindowSeconds", 0, 900, 0)                               \
    X(RECURSION, "MaximumRecursionDepth", "recursionDepth", 0, 1000, 0)

enum setting_number {
#define X(name, member, attribute, min, max, otherwise) SETTING_##name,
    MAPPING_NUMBERS(X)
#undef X
        SETTING_NUMBERS
};

struct number_rule {
    const char *member, *attribute;
    int64_t min, max, otherwise;
};
extern const struct number_rule number_rules[SETTING_NUMBERS];

/* All else that is one attribute of the item: texts, flags, whole numbers from 0 on. */
#define MAPPING_ATTRIBUTES(TEXT, FLAG, WHOLE)                                                                \
    TEXT(id, "id")                                                                                           \
    TEXT(stream_arn, "stream")                                                                               \
    TEXT(function, "function")                                                                               \
    TEXT(function_arn, "functionArn")                                                                        \
    TEXT(on_failure, "onFailure")                                                                            \
    TEXT(kms_key, "kmsKey")                                                                                  \
    TEXT(tags, "tags") /* a JSON object of texts; empty: none */                                             \
    TEXT(move_to, "moveTo") /* as in struct mapping_move, as are the next and the last two */                \
    TEXT(move_shard, "moveShard")                                                                            \
    TEXT(move_token, "moveToken") /* of who asked for it; empty: none */                                     \
    FLAG(enabled, "enabled")                                                                                 \
    FLAG(bisects, "bisect")                                                                                  \
    FLAG(reports_failures, "reportsFailures")                                                                \
    FLAG(counts_events, "countsEvents")                                                                      \
    FLAG(has_followed, "followed") /* the stream is a later one than it was made for, read from its start */ \
    FLAG(is_deleting, "deleting")                                                                            \
    WHOLE(created_ms, "created")                                                                             \
    WHOLE(modified_ms, "modified")                                                                           \
    WHOLE(revision, "revision")                                                                              \
    WHOLE(move_number, "moved")                                                                              \
    WHOLE(move_since_ms, "moveSince")

struct settings {
#define TEXT(name, attribute)  struct slice name;
#define FLAG(name, attribute)  bool name;
#define WHOLE(name, attribute) int64_t name;
    MAPPING_ATTRIBUTES(TEXT, FLAG, WHOLE)
#undef TEXT
#undef FLAG
#undef WHOLE
    enum start_position start;
    int64_t numbers[SETTING_NUMBERS];
    struct slice *filters;
    uint32_t filter_count;
};

struct slice start_name(enum start_position start);
void settings_defaults(struct settings *settings);
/* With all that the slices point at. */
void settings_copy(struct settings *to, const struct settings *from, struct arena *arena);
/* With one reference, and settings of its own. NULL and a sentence when a filter cannot be compiled. */
struct mapping *mapping_new(const struct settings *settings, char *error, size_t error_len);

/* ---- refusals ---- */

struct refusal {
    int status;
    const char *type; /* the exception */
    struct slice message;
};

/* Always false, so that it can be returned. */
bool decline(struct refusal *refusal, struct arena *arena, int status, const char *type, const char *format,
             ...) __attribute__((format(printf, 5, 6)));
#define REFUSE_VALUE(refusal, arena, ...)                                                                    \
    decline((refusal), (arena), 400, "InvalidParameterValueException", __VA_ARGS__)

/* ---- mapping_request.c: the body of a create or update ---- */

/* The members of a request: the numbers, and those behind them. X(NAME, field); `function` is FIELD or REQUIRED. */
#define MAPPING_MEMBERS(X, function)                                                                         \
    X(GIVEN_SOURCE, FIELD("EventSourceArn", lambda_shape_text))                                              \
    X(GIVEN_FUNCTION, function("FunctionName", lambda_shape_function_name))                                  \
    X(GIVEN_START, FIELD("StartingPosition", shape_start))                                                   \
    X(GIVEN_TIMESTAMP, FIELD("StartingPositionTimestamp", shape_timestamp))                                  \
    X(GIVEN_ENABLED, FIELD("Enabled", lambda_shape_bool))                                                    \
    X(GIVEN_BISECTS, FIELD("BisectBatchOnFunctionError", lambda_shape_bool))                                 \
    X(GIVEN_RESPONSE_TYPES, FIELD("FunctionResponseTypes", shape_response_types))                            \
    X(GIVEN_METRICS, FIELD("MetricsConfig", shape_metrics_config))                                           \
    X(GIVEN_FILTERS, FIELD("FilterCriteria", shape_criteria))                                                \
    X(GIVEN_DESTINATIONS, FIELD("DestinationConfig", lambda_shape_destinations))                             \
    X(GIVEN_KMS_KEY, FIELD("KMSKeyArn", lambda_shape_text))                                                  \
    X(GIVEN_TAGS, FIELD("Tags", lambda_shape_tags))
enum mapping_given { GIVEN_NUMBERS = SETTING_NUMBERS - 1, MAPPING_MEMBERS(FIELD_INDEX, FIELD) GIVEN_MEMBERS };

struct mapping_request {
    struct shape_node nodes[GIVEN_MEMBERS];
};

/* Pure: types, ranges, patterns, and which settings go together. The call's body and arena are used. */
bool mapping_request_parse(struct rest_call *call, bool is_create, struct mapping_request *out,
                           struct refusal *refusal);
/* What the request says, over what was there; texts are not copied. Tags are no setting of an update. */
void mapping_request_apply(const struct mapping_request *request, struct arena *arena, struct settings *settings);
/* Whether a destination for failures was given, be it an empty one. */
bool mapping_request_has_destination(const struct mapping_request *request);

/* ---- mapping_item.c ---- */

void put_mapping_item(struct buf *out, const struct settings *settings);
/* False when it is not one of ours. */
bool mapping_item_parse(struct slice item, struct arena *arena, struct settings *out);

/* ---- mapping_reply.c ---- */

extern const char *const mapping_state_names[];
struct mapping_view {
    const struct settings *settings;
    enum mapping_state state;
    const char *result;
};
void put_mapping(struct buf *out, const struct trigger *trigger, const struct mapping_view *view);
void mapping_refuse(struct rest_call *call, const struct refusal *refusal);

/* ---- mapping_store.c: the table ---- */

/* False and a refusal (ServiceException) when the door does not do it. CONFLICT: somebody else was faster. */
enum stored { STORED, STORED_CONFLICT, STORED_NOT };
/* Calls back for each item; stops and answers false when the door fails. */
bool mapping_table_scan(struct trigger *trigger,
                        void (*found)(void *context, const struct settings *settings), void *context,
                        char *error, size_t error_len);
/* Conditional on the revision before (settings->revision - 1; 0: not there yet). */
enum stored mapping_table_put(struct trigger *trigger, const struct settings *settings, struct arena *arena,
                              struct refusal *refusal);
bool mapping_table_get(struct trigger *trigger, struct slice id, struct arena *arena, struct settings *out,
                       bool *is_there, struct refusal *refusal);
bool mapping_table_delete(struct trigger *trigger, struct slice id);
/* The newest stream of a table; empty: there is no such table, or it has none. False: nobody can tell. */
bool mapping_newest_stream(struct trigger *trigger, struct slice table, struct arena *arena,
                           struct slice *arn);
/* The stream of the same table that came after this one; empty: none. False: nobody can tell. */
bool mapping_next_stream(struct trigger *trigger, struct slice stream_arn, struct arena *arena,
                         struct slice *arn);
/* Whether the stream has what a move names: its shard, and the sequence number in it. Finds the shard where the stream
 * has only one. */
bool mapping_move_check(struct trigger *trigger, struct slice stream_arn, struct mapping_move *move,
                        struct arena *arena, struct refusal *refusal);
/* The stream that a source names: its ARN, or the newest one of a table. */
bool mapping_source_find(struct trigger *trigger, struct slice source, struct arena *arena, struct slice *arn,
                         struct refusal *refusal);

/* ---- mapping.c: all mappings, in memory ---- */

/* What lies outside, so that a test needs no functions and no consumer. */
struct mapping_world {
    bool (*resolve)(struct func *func, struct slice function, struct arena *arena, struct slice *arn,
                    struct slice *name);
    const char *(*destination_fault)(struct func *func, struct slice destination);
    void (*command)(struct consumer *consumer, struct mapping *mapping, struct slice id);
};

struct mappings *mappings_new(struct trigger *trigger, const struct mapping_world *world, char *error,
                              size_t error_len);

struct mapping_entry {
    struct mapping_entry *next; /* by id */
    struct mapping *mapping;
    enum mapping_state state;
    char result[160];
    bool is_seen; /* by the scan under way */
    bool is_gone; /* the consumer has let go of it: the item may go */
    bool is_over; /* nothing will come from its stream any more */
};

struct mappings {
    struct trigger *trigger;
    struct mapping_world world;
    struct random random;
    pthread_mutex_t changing; /* held by whoever changes mappings, over calls of the door; taken first */
    pthread_mutex_t lock;     /* of the list, briefly */
    struct mapping_entry *entries;
    uint32_t count;
    bool is_started;
    pthread_t keeper;
    pthread_cond_t woken;
    bool is_keeping, is_closing, has_gone;
    int64_t look_us;   /* when the table is to be read again */
    int64_t follow_us; /* when streams are to be looked for, for mappings whose own is over */
};

/* With the lock held. */
struct mapping_entry *mappings_find(struct mappings *mappings, struct slice id);
/* With `changing` held: takes the new settings over and tells the consumer. False: a filter is broken. */
bool mappings_take(struct mappings *mappings, const struct settings *settings, enum mapping_state state);

/* mapping_follow.c: whether some stream is over; with the lock held. */
bool mappings_have_over(struct mappings *mappings);
/* Another mapping of the same function and stream; empty: none. */
struct slice mappings_twin(struct mappings *mappings, const struct settings *settings, struct arena *arena);

/* ---- mapping_serve.c ---- */

/* A change of one mapping: what was there becomes what is wanted. `make` is called again with fresh settings
 * where another server was faster. */
struct mapping_change {
    struct mappings *mappings;
    struct rest_call *call;
    bool (*make)(struct mapping_change *change, struct settings *settings, struct refusal *refusal);
    const struct mapping_request *request;
    struct slice tags;        /* to be added, as in settings */
    struct mapping_move move; /* without its number */
    struct slice move_token;
    enum mapping_state state; /* after it */
    struct settings settings; /* after it */
};

/* On a worker. False when the call was answered already, with what is wrong. */
bool mapping_change_run(struct mapping_change *change, struct slice id);
/* Copies what is told of a mapping into the arena; false when there is none. */
bool mapping_view_of(struct mappings *mappings, struct slice id, struct arena *arena,
                     struct settings *settings, struct mapping_view *view);

#endif
