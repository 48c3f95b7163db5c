/* DynamoDB's JSON protocol over the engine: requests are decoded, validated in the service's order with the
 * service's words, executed, and answered.
 *
 * A call walks through three steps, so that a server can do each on the right thread:
 * - api_begin: decode, validate, and execute what only reads. Afterwards the call is either finished, or it is
 *   a write, or slow;
 * - the writer: a write's `commit` goes to engine_submit; the engine applies it with all others that wait;
 *   or any thread but an event loop's: `work` does what takes long;
 * - api_finish, after the commit or the work is done: the reply's JSON.
 *
 * Everything of a call lives in its arena, but for the reply, which goes into the caller's buf. */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "engine/engine.h"

struct api;
struct operation;

struct api_options {
    struct engine *engine; /* kept, not owned */
    const char *region;    /* in ARNs */
    const char *account;   /* in ARNs: twelve digits */
    const char *endpoint;  /* host:port for DescribeEndpoints */
    int64_t creating_ms;   /* how long a new table is CREATING; 0: it is of use at once */
    bool throttles;        /* throughput acts, see throttle.h; api_throttle may say so later */
    bool is_lenient;       /* take what other local DynamoDBs take, see lenient.c */
    bool read_only;        /* the engine's store must not be written: operations that would are refused */
};

struct api *api_new(const struct api_options *options);
void api_free(struct api *api);

/* Operations by name ("PutItem"); NULL when there is none. The name and number serve metrics. */
const struct operation *api_operation_find(struct slice name);
/* The same by its number, below api_operation_count, for tables of the caller's own. */
bool api_operation_search(struct slice name, unsigned *number);
struct slice api_operation_name(const struct operation *operation);
/* True for those that the service offers as DynamoDBStreams_20120810. */
bool api_operation_is_of_streams(const struct operation *operation);
/* True for those of Application Auto Scaling, AnyScaleFrontendService. */
bool api_operation_is_of_scaling(const struct operation *operation);
/* The number of one of them by the name that it has there. TagResource and UntagResource are DynamoDB's, too, so that
 * their own names are TagScalableTarget and UntagScalableTarget. */
bool api_operation_search_scaling(struct slice name, unsigned *number);
/* True for those whose reply, {}, the service leaves out: its body is empty. */
bool api_operation_is_silent(const struct operation *operation);
unsigned api_operation_count(void);
const struct operation *api_operation_at(unsigned number);

struct api_call {
    /* the caller's part */
    struct api *api;
    struct arena *arena;
    struct buf *reply; /* the JSON body is appended */
    const struct operation *operation;
    struct slice body;
    bool in_order;     /* TransactWriteItems: takes its turn among those that wait, as single writes do; no
                          conflict */
    bool shows_causes; /* GetRecords: tell what led to the changes, in members "cause" and "transaction", and
                        * when they were made, in "time" (ms) */
    bool is_transfer;  /* PutItem of an import or a bulk operation: not throttled; also into a table that is being
                        * imported. DeleteTable of one that was being deleted when the process died */
    /* the answer */
    int status;        /* HTTP: 200, 400, 500 */
    const char *error; /* the exception's short name, NULL when all is well */
    /* between begin and finish */
    struct commit commit;
    bool is_write;           /* after api_begin: submit the commit, then api_finish */
    bool only_reads;         /* of such a commit: it takes its turn among the writes and changes nothing */
    /* After api_begin, unless NULL: to be called on a thread that may take long, then api_finish. */
    void (*work)(struct api_call *call);
    void *state;             /* of the operation */
    struct held_table *held; /* tables counted for this call, released when it ends */
    size_t reply_start;      /* of this call's part of the reply: an error takes back what stands behind */
};

/* Whether throughput acts, and how: of all tables, or of one. */
struct api_throttle {
    struct slice table; /* empty: of all, and what was said of single ones is forgotten */
    bool has_enforce, enforce;
    bool has_burst;
    int64_t burst_seconds; /* how long unused units are kept; of all tables */
    bool drain;            /* nothing is left as of now */
};
/* False: there is no such table, or too much was said of others. Tells how often anything was refused so far. */
bool api_throttle(struct api *api, const struct api_throttle *order, uint64_t *refused);
/* Writes one of the exceptions of throttling, by its short name, as a request for items of these tables gets it, and
 * answers its status; 0 for any other exception. */
int api_put_throttled(struct buf *out, const struct api *api, const char *error, bool is_write,
                      const struct slice *tables, uint32_t count);

void api_begin(struct api_call *call);
void api_finish(struct api_call *call);
/* All steps at once, waiting for the writer. */
void api_run(struct api_call *call);

/* ---- backups: what the api asks of whoever has the database's files ----
 *
 * All may take long and wait for the writer, but for kept_from. A sentence in error tells why something cannot be. */

struct api_backups {
    void *self;
    /* Copies the whole database as it is now, to be found under this id, and answers the table as it is there, counted.
     * NULL without a sentence: the copy has no such table, and was dropped. */
    struct table *(*take)(void *self, struct slice id, struct slice table, char *error, size_t error_len);
    void (*drop)(void *self, struct slice id);
    bool (*has)(void *self, struct slice id);
    /* Every moment from now on can be gone back to, for so many days at least; and for as many as tables and restores
     * ask for. 0: only those. */
    bool (*keep)(void *self, int64_t days, char *error, size_t error_len);
    int64_t (*kept_from)(void *self); /* the first moment; INT64_MAX: none. Never waits */
};
/* Before the first call. Kept. */
void api_set_backups(struct api *api, const struct api_backups *backups);
bool api_backup_exists(struct engine *engine, struct arena *arena, struct slice id);
/* Those that expire and have done so go, and those whose copies are not here: a database that was restored elsewhere
 * has only the notes of them. For threads that may wait. */
void api_backups_expire(struct api *api);
/* Drops of tables that a crash has interrupted are done. The same. */
void api_deletions_finish(struct api *api);
/* For how many days tables want to be brought back to any moment, the longest of them; 0: none does. */
int64_t api_recovery_days(struct engine *engine);

/* ---- jobs: exports, imports, bulk writes and restores ----
 *
 * A call that begins one only notes it (engine.h, notes) and answers; whoever watches the notes does it and tells in
 * them how far it is (transfer/transfer.h). So what was begun survives whatever happens to the process. */

enum api_job_kind { API_EXPORT, API_IMPORT, API_BULK, API_RESTORE };
#define API_JOB_KINDS 4

/* X(member): of the note, and of the struct. What a kind of job does not have stays empty. */
#define API_JOB_TEXTS(X)                                                                                     \
    X(status)  /* as the service names them: IN_PROGRESS, ... */                                             \
    X(table)                                                                                                 \
    X(table_id)                                                                                              \
    X(token)                                                                                                 \
    X(request) /* JSON: the members of the request that say what to do */                                    \
    X(failure_code)                                                                                          \
    X(failure_message)                                                                                       \
    X(manifest)                                                                                              \
    X(usage)     /* JSON: BulkOperationUsage's element */                                                    \
    X(source)    /* of a restore: the table, */                                                              \
    X(source_id) /* ... its id, */                                                                           \
    X(backup)    /* ... and the backup's id; empty: the moment restore_ms */
#define API_JOB_NUMBERS(X)                                                                                   \
    X(start_ms)                                                                                              \
    X(end_ms)                                                                                                \
    X(export_ms)                                                                                             \
    X(from_ms) /* these two: of an incremental export */                                                     \
    X(to_ms)                                                                                                 \
    X(restore_ms)                                                                                            \
    X(items)   /* read, or exported */                                                                       \
    X(written)                                                                                               \
    X(errors)                                                                                                \
    X(bytes)   /* read, or written */                                                                        \
    X(total_bytes)                                                                                           \
    X(billed_bytes)

struct api_job {
    enum api_job_kind kind;
    struct slice id; /* "01763123456789-0a1b2c3d": the last part of its ARN; later ones are greater */
#define X(member) struct slice member;
    API_JOB_TEXTS(X)
#undef X
#define X(member) int64_t member;
    API_JOB_NUMBERS(X)
#undef X
    struct slice definition; /* of the table that an import or a restore makes, encoded */
};

/* ...:table/NAME/export/ID */
void api_put_job_arn(struct buf *out, const struct api *api, const struct api_job *job);
void api_put_table_arn(struct buf *out, const struct api *api, struct slice name);
/* IN_PROGRESS or CANCELLING. */
bool api_job_is_running(const struct api_job *job);
/* From within apply. False when it cannot be noted. */
bool api_job_put(struct batch *batch, struct arena *arena, const struct api_job *job);
bool api_job_find(struct engine *engine, struct arena *arena, enum api_job_kind kind, struct slice id,
                  struct api_job *out);
bool api_job_in_batch(struct batch *batch, struct arena *arena, enum api_job_kind kind, struct slice id,
                      struct api_job *out);
/* Those that are running, at most LIMIT_TRANSFER_JOBS of each kind or a few more; false when they cannot be read. */
bool api_jobs_running(struct engine *engine, struct arena *arena, struct api_job **jobs, uint32_t *count);
/* From within apply: removes the notes of jobs that have ended long ago, and of old tokens, a few hundred at most. */
void api_jobs_forget(struct batch *batch, struct engine *engine, struct arena *arena, int64_t now_ms);
/* A table that an import fills is not of use to anybody else; from within apply it becomes so. The name of the setting
 * is for definitions that are made for an import. */
#define API_IMPORTING "importing"
void api_import_done(struct batch *batch, struct arena *arena, struct slice table, struct slice id);
/* The same for the table of a restore, and its backup is free again. One that cannot be filled is dropped. */
void api_restore_done(struct batch *batch, struct arena *arena, const struct api_job *job, bool is_filled);

/* Which items an export takes, and what of them: its FilterSpecification. Zeros take everything. */
struct api_filter {
    bool is_empty;         /* no key can be so */
    struct slice from, to; /* stored keys; `to` empty: all of them */
    const struct condition *condition;
    const struct projection *projection;
};
/* Of the JSON of a request that was accepted, for this table; keeps it and the arena. False: it fits the table no
 * more. */
bool api_filter_read(struct api *api, struct arena *arena, struct slice request, const struct table *table,
                     struct api_filter *out);
/* Whether the key condition takes this stored key; the condition is for the item. */
bool api_filter_takes(const struct api_filter *filter, struct slice key);

/* An item in DynamoDB JSON: {"a":{"S":"x"},...}. Also straight from its encoded form, without decoding it. */
void api_put_item_json(struct buf *out, const struct map *item);
bool api_put_encoded_item_json(struct buf *out, struct slice encoded);

/* Errors outside any operation in the service's form, {"__type":"...","message":"..."}. Answers the status.
 */
int api_put_error(struct buf *out, const char *short_name, struct slice message);
/* The exception's short name as the table of errors spells it; NULL when there is none. */
const char *api_error_find(struct slice short_name);
/* The same with further members of the body: text of the form "Name":value,... */
int api_put_error_with(struct buf *out, const char *short_name, struct slice message, struct slice members);

#endif
