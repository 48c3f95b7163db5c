/* What the files of func share: functions, the registry that finds them, the pool that runs them, logs. */
#ifndef FUNC_INTERNAL_H
#define FUNC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "func/func.h"
#include "task/task.h"

struct registry;
struct pool;
struct queue;
struct logs;

struct func {
    struct func_options options;
    struct slice prefix, region, account;
    struct registry *registry;
    struct pool *pool;
    struct queue *queue;
    struct logs *logs;
    struct workers *workers;         /* for requests that wait for the door */
    _Atomic(struct client *) client; /* our own, once it was needed; NULL: not yet, or the options have one */
    struct net_server *server;       /* NULL before func_start */
    func_pattern *pattern;           /* NULL: nobody calls patterns here */
    void *pattern_context;
    struct workers *callers; /* of patterns, which wait for their answers */
    func_forward *forward;
    void *forward_context;
    _Atomic uint64_t invocation_count; /* what aliases with two versions choose by */
    _Atomic bool queues_are_made;      /* the table PREFIXqueues is there */
};

/* ---- functions ---- */

enum function_kind {
    FUNCTION_PROCESS,
    FUNCTION_HTTP,    /* POST to url */
    FUNCTION_TABLE,   /* images are put into a table, removed ones deleted there */
    FUNCTION_PATTERN, /* each record is a call of a pattern of ours */
    FUNCTION_QUEUE,   /* records are put into the queue table under the queue's name */
};

struct function_variable {
    struct slice name, value;
};

/* Which lines of the system a JSON log has: those of this level and above. */
enum system_level { SYSTEM_DEBUG, SYSTEM_INFO, SYSTEM_WARN };

struct function {
    struct slice name;
    struct slice version; /* "$LATEST" or "7" */
    struct slice arn;     /* without qualifier */
    uint64_t revision;    /* grows with each change of code or configuration */
    enum function_kind kind;

    /* PROCESS */
    struct slice runtime; /* "nodejs20.x", "python3.11", "provided.al2023", ... */
    struct slice handler;
    struct slice folder; /* absolute: LAMBDA_TASK_ROOT */
    struct slice layers; /* the folder of its layers, merged: /opt; empty: it has none */
    struct slice files, files_at; /* a folder, and where it lies: /mnt/NAME; empty: it has none */
    bool in_place;       /* somebody's own folder: reload when it changes */
    uint32_t timeout_ms;
    uint32_t memory_mb;
    uint32_t storage_mb;  /* for temporary files */
    uint32_t concurrency; /* invocations at a time in one process: 1, or more where its runtime can */
    struct function_variable *variables;
    uint32_t variable_count;
    bool logs_json;         /* LoggingConfig: the system's lines, and those of our bootstraps, are JSON */
    struct slice log_level; /* ApplicationLogLevel; empty: none is set */
    enum system_level system_level;
    struct slice log_group;

    /* the others */
    struct slice url, secret, table, queue, pattern, body;

    /* private */
    struct arena arena;
    _Atomic uint32_t references;
};

void function_release(struct function *function);
struct function *function_keep(struct function *function);
/* A variable of the user's; NULL data: there is none. In pool_environment.c. */
struct slice function_variable(const struct function *function, struct slice name);

/* ---- func.c: tables of our own ---- */

/* Makes the table when it is not there, and waits until it is of use; blocks. False, and a line in the log, when it
 * cannot be made. */
bool table_make(struct func *func, const struct dynamo_table *table);
/* Whether the database has transactions; else what ends leaves a tombstone (task.h). May wait for the first answer. */
bool func_has_transactions(const struct func *func);

/* ---- pool_storage.c ---- */

/* The folder that a file system's ARN names: one of the server's own for an access point, else the path itself. In the
 * arena. */
struct slice files_folder(const struct func *func, struct slice arn, struct arena *arena);

/* ---- registry.c: all functions, in memory, as the tables have them ---- */

/* Splits a name, name:qualifier, partial or full ARN; false when it is none of them. */
bool function_name_parse(struct slice text, struct slice *name, struct slice *qualifier);
/* Counted, or NULL. An alias with two versions chooses by its weights with the random bits. */
struct function *registry_function(struct func *func, struct slice name, struct slice qualifier,
                                   uint64_t random_bits);
/* How many processes the function may have at once; UINT32_MAX: as many as the server has. */
uint32_t registry_reserved(struct func *func, struct slice name);
/* How asynchronous calls of it are retried and where they end up. */
struct async_settings {
    uint32_t retries;                    /* 0..2 */
    int64_t age_max_ms;                  /* 60 s .. 6 h */
    struct slice on_success, on_failure; /* destinations; empty: none. In the arena */
};
void registry_async_settings(struct func *func, struct slice name, struct slice qualifier,
                             struct arena *arena, struct async_settings *out);
struct registry *registry_open(struct func *func, char *error, size_t error_len);
void registry_close(struct registry *registry);

/* ---- lambda_*.c: Lambda's API over the registry ---- */

/* And our own. */
extern const struct rest_route func_routes[];
extern const size_t func_route_count;
/* ---- routes.c, redrive.c ---- */
void func_serve_logs(void *func, struct rest_call *call);
void func_serve_processes(void *func, struct rest_call *call);
void func_serve_debug(void *func, struct rest_call *call);
void func_serve_debug_end(void *func, struct rest_call *call);
void func_serve_redrive(void *func, struct rest_call *call);

/* ---- pool.c: processes and invocations ---- */

struct pool *pool_open(struct func *func);
void pool_start(struct pool *pool);
void pool_close(struct pool *pool);
/* Keeps the function until the invocation is done. */
void pool_invoke(struct pool *pool, struct function *function, struct invocation *invocation);
/* Processes of older revisions of the name end as soon as they are idle; all of them when it was deleted. */
void pool_retire(struct pool *pool, struct slice name, uint64_t below_revision);
bool pool_is_idle(struct pool *pool);
void pool_put_metrics(struct pool *pool, struct buf *out);

/* ---- target.c: functions without a process ---- */

/* Who calls URLs; NULL when there is no libcurl. */
struct client *func_client(struct func *func);
/* Of this call: the function's, or less where the caller wants it so. */
uint32_t invocation_timeout_ms(const struct function *function, const struct invocation *invocation);
void target_invoke(struct func *func, struct function *function, struct invocation *invocation);
/* URLs that destinations name are called like functions, without being any. */
bool target_is_url(struct slice text);
/* A function that stands for one; counted. */
struct function *target_of_url(struct slice url);
/* The same for a URL, or for a target as JSON, {"url":...,"secret":...} or {"call":...,"body":...}. NULL: it
 * is neither, so it is a function's name. */
struct function *target_of_text(struct slice text);
/* What may be shown of it: without the secret, and of a URL without user:password and query. */
struct slice target_shown(struct slice text, struct arena *arena);
/* Whether target_shown leaves out something that might be secret. */
bool target_has_secret(struct slice text, struct arena *arena);

/* ---- queue.c: asynchronous calls ---- */

struct queue *queue_open(struct func *func, char *error, size_t error_len);
void queue_start(struct queue *queue);
void queue_close(struct queue *queue);
/* Accepts a call: `accepted` is called once it is durable (or not: status is then that of the failed write). It stays
 * until then. */
struct queued {
    struct slice function; /* name or name:qualifier */
    struct slice payload, cause;
    void (*accepted)(struct queued *queued);
    void *context;
    int status;
    char id[UUID_BYTES]; /* of the call */
    /* private */
    struct queue *queue;
    struct task_note note;
    struct buf members;
    size_t first; /* where the call itself begins, behind its further parts */
};
void queue_accept(struct queue *queue, struct queued *queued);
/* Nothing is under way; what is due may wait. */
bool queue_is_at_rest(struct queue *queue);
bool queue_is_idle(struct queue *queue);
void queue_put_metrics(struct queue *queue, struct buf *out);
/* Calls that wait or run, as far as this server knows of them. */
uint64_t queue_count(const struct queue *queue);

/* ---- logs.c: what functions print, by name, in bounded files ---- */

struct logs *logs_open(const char *folder);
void logs_close(struct logs *logs);
/* "2026-11-15T03:42:06.123Z" */
void time_put(struct buf *out, int64_t time_ms);
void logs_append(struct logs *logs, struct slice function, struct slice bytes);
/* Bytes from a position on (UINT64_MAX: the last `max` of them); *next is where to go on. Positions only
 * grow; what has been cut off is skipped. */
void logs_read(struct logs *logs, struct slice function, uint64_t from, size_t max, struct buf *out,
               uint64_t *next);
/* From which position on it was written when. */
struct log_time {
    uint64_t position;
    int64_t time_ms;
};
/* In the arena, in order; none when nothing was printed. */
struct log_time *logs_times(struct logs *logs, struct slice function, struct arena *arena, uint32_t *count);
/* When the function first printed what is still there; 0: it has not. */
int64_t logs_begun_ms(struct logs *logs, struct slice function);
/* Calls back once, on the thread of the logs: when there is more than `from`, when it is due, or when the
 * logs are drained (is_last: waiting again is in vain, and the call may come at once). */
struct logs_waiter {
    void (*ready)(struct logs_waiter *waiter);
    uint64_t from;
    struct slice function;
    int64_t due_us; /* monotonic; 0: never */
    bool is_last;
    /* private */
    struct logs_waiter *next;
};
void logs_wait(struct logs *logs, struct logs_waiter *waiter);

/* ---- logs_api.c: CloudWatch Logs' API ---- */
void logs_api_serve(void *func, struct rest_call *call);

/* ---- bootstrap.c: our runtimes for interpreters, written into the folder ---- */

/* The command that runs the function: arguments ended by NULL, in the arena; NULL and a sentence when there
 * is no interpreter, no bootstrap, or the runtime is unknown. */
const char *const *bootstrap_command(struct func *func, const struct function *function, struct arena *arena,
                                     char *error, size_t error_len);
bool bootstrap_install(const char *folder, char *error, size_t error_len);
/* The function's variable that names a program which is put in front of the command. */
#define WRAPPER_VARIABLE "AWS_LAMBDA_EXEC_WRAPPER"
/* Runtimes that CreateFunction accepts here. */
bool runtime_is_known(struct slice runtime);
bool runtime_is_named(struct slice runtime); /* Lambda has such a one, whether it can run here or not */
bool runtime_is_concurrent(struct slice runtime); /* one process can handle several invocations at a time */

#endif
