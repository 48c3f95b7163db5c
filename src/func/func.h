/* Functions: code in any language that runs when it is called, in local processes, by AWS Lambda's contracts.
 *
 * Two doors lead in: Lambda's REST API (func_serve), which `aws lambda` and every SDK speak, and func_invoke,
 * by which triggers and schedules call. A function is a folder or an archive with a handler, run by a pool of
 * processes that speak Lambda's Runtime API, each on a port of its own; or it is a target without a process:
 * an HTTP POST, another table, a queue.
 *
 * All that must last is items in ordinary tables: quipu-functions (configurations, versions, aliases),
 * quipu-code (archives in parts), quipu-invocations (asynchronous calls that were accepted and not yet
 * finished). The folder holds only what can be made again (unpacked archives, the runtimes' bootstraps) and
 * the logs.
 *
 * Invariants:
 *  F1. A `struct function` is immutable and counted; a change of code or configuration makes a new one with a
 *      higher revision, and processes of the old one are retired when they are idle.
 *  F2. A process handles at most as many invocations at a time as its function's concurrency says (one,
 *      unless the runtime can do more); a function has at most as many processes as its reserved concurrency
 *      allows, all functions together as the server's; who comes when there is none is told THROTTLED.
 *  F3. Every invocation ends: answered, failed, timed out (its process is ended with all it began), or
 *      throttled.
 *  F4. An asynchronous call that was accepted is run at least once, also across a restart; the writes that it
 *      returns are applied in the commit that ends it (task.h), once.
 *  F5. Requests that a function makes to the endpoint that it was given carry its cause: who called it, how
 *      deep. */
#ifndef FUNC_FUNC_H
#define FUNC_FUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/slice.h"
#include "base/stats.h"
#include "client/client.h"
#include "dynamo/dynamo.h"
#include "net/net.h"
#include "rest/rest.h"
#include "sandbox/sandbox.h"
#include "func/shape.h"

struct func;

struct func_options {
    struct dynamo *dynamo;   /* all of these are kept, not owned */
    struct sandbox *sandbox; /* NULL: this server runs no processes; functions that need one are refused */
    struct client *client;   /* for HTTP targets; NULL: one of our own is opened when it is first needed */
    const struct clock *clock;
    const char *folder;           /* made when it is not there */
    const char *region, *account; /* of ARNs */
    const char *node_modules;     /* packages that Node functions find besides their own, as Lambda has AWS's SDK;
                                     NULL: quipu/node_modules in the user's data folder */
    const char *prefix;           /* of our tables' names; NULL: "quipu-" */
    bool shared;                  /* other servers work on the same tables: look at them again, take leases */
    uint32_t process_max;         /* of all functions; 0: 100 */
    int64_t idle_ms;              /* a process that was not used for so long is ended; 0: 10 minutes */
};

/* As trigger_free_leases: asynchronous calls that an earlier server held. */
void func_free_leases(struct dynamo *dynamo, const char *prefix);
/* Reads what the tables hold. NULL and a sentence. */
struct func *func_open(const struct func_options *options, char *error, size_t error_len);
/* From here on processes can run: `server` gives them their ports; what they send there besides the Runtime
 * API is handed to `forward`, together with the cause. Accepted asynchronous calls go on. */
typedef void func_forward(void *context, struct http_exchange *exchange, struct slice cause);
void func_start(struct func *func, struct net_server *server, func_forward *forward, void *context);
/* The server is about to stop: requests that wait for more output of a function are answered. */
void func_drain(struct func *func);
/* Who calls patterns for targets that are one: before func_start. See pattern_apply, whose shape it has. */
typedef bool func_pattern(void *context, struct slice call, struct slice body, struct slice event,
                          struct slice cause, struct arena *arena, struct buf *reply, bool *is_final);
void func_set_pattern(struct func *func, func_pattern *pattern, void *context);
/* No asynchronous call is begun from here on; waits so long for those under way. While the server's loops
 * still run: functions speak to us through them. (Whoever waits for a call of its own has a connection, and
 * the server waits for that.) */
void func_stop(struct func *func, int64_t wait_ms);
/* Ends all processes; invocations under way fail. After the server's loops have ended or before. */
void func_close(struct func *func);

/* Lambda's REST API of functions, and our own under /v1/functions. False when no route is ours. */
bool func_serve(struct func *func, struct rest_call *call);
/* Requests to "/" that belong to func_serve: CloudWatch Logs', by their X-Amz-Target. */
bool func_serves_target(struct slice target);
/* Lines for /metrics. */
void func_put_metrics(struct func *func, struct buf *out);
/* What all functions have done. */
struct func_counts {
    uint64_t calls, errors;              /* calls of processes that ended; of these, not with an answer */
    const struct histogram *duration_us; /* from an event's hand-over to its answer */
    uint64_t queued;                     /* asynchronous calls that wait or run */
};
void func_count(struct func *func, struct func_counts *out);
struct func_meter {
    struct slice name; /* until the visitor returns */
    uint64_t calls, errors;
    unsigned running;
};
typedef void func_meter_visitor(void *context, const struct func_meter *meter);
/* What each function has done since the last call. For one caller. */
void func_each_meter(struct func *func, func_meter_visitor *visit, void *context);
/* True when no invocation is under way and no asynchronous call waits that is due. */
bool func_is_idle(struct func *func);

/* ---- causes ---- */

/* The lineage of a write: which functions led to it and how often each, "resize:1,index:2"; at most
 * LIMIT_CAUSE_FUNCTIONS names, the oldest are forgotten. */
unsigned cause_count(struct slice cause, struct slice function);
struct slice cause_add(struct arena *arena, struct slice cause, struct slice function);
/* The lineage of both, where one invocation comes of many writes: the higher count of each. */
struct slice cause_join(struct arena *arena, struct slice a, struct slice b);
/* Calls of patterns that nobody made a function of stand in it by this name, which no function can have. */
#define CAUSE_REACTION "quipu.call"

/* Whether PutFunctionRecursionConfig has allowed the function to call itself without end. */
bool func_allows_loops(struct func *func, struct slice name);
/* Appends a line to the function's own log; nothing when there is no such function. */
void func_log(struct func *func, struct slice name, struct slice line);

/* ---- invoking ---- */

enum invocation_end {
    INVOCATION_ANSWERED,  /* reply is the function's answer */
    INVOCATION_FAILED,    /* the function failed; reply is {"errorType":..., "errorMessage":...} */
    INVOCATION_THROTTLED, /* there was no process to be had; nothing was run */
    INVOCATION_UNKNOWN,   /* no such function, version or alias */
    INVOCATION_REFUSED,   /* it cannot run here or now: reply tells why, as an error */
};

struct func_stream;
struct invocation {
    struct slice function;  /* a name, name:qualifier, or any form of ARN */
    struct slice qualifier; /* empty: of `function`, else $LATEST */
    struct slice payload;
    struct slice client_context; /* decoded JSON; empty: none */
    struct slice cause;          /* of what led to it; the function's own name is added for its writes */
    bool wants_log;              /* the last 4 KB of its output */
    uint32_t timeout_ms;         /* where that is less than the function's own; 0: that */
    /* Of an asynchronous call; the same for all its attempts. Empty: it is none. */
    struct slice call_id;
    int64_t accepted_ms;
    struct arena *arena;
    void (*done)(struct invocation *invocation); /* on some thread; must be quick */
    /* Takes a reply that the function makes piece by piece, each as it comes; NULL: all at once, at the end. False:
     * there is no room for more before func_stream_resume(stream). On some thread; must be quick. What follows an end
     * that is not ANSWERED is missing. */
    bool (*piece)(struct invocation *invocation, struct slice bytes);
    void *context;
    /* for `piece` */
    struct func_stream *stream; /* until `done` has returned */
    struct slice content_type;  /* of the reply, in the arena; empty: not told */
    /* answers */
    enum invocation_end end;
    struct buf reply;       /* the caller frees it */
    struct buf log;         /* the caller frees it */
    bool is_final;          /* FAILED: it would fail again; who retries need not */
    bool is_too_much;       /* FAILED: what it writes for so many records does not fit one transaction */
    const char *error_kind; /* FAILED: "Handled" or "Unhandled", Lambda's X-Amz-Function-Error */
    bool is_repeatable; /* ANSWERED: what it returns are no effects but children of a commit (task.h): a table's or a
                           queue's writes, which may be made again */
    /* ANSWERED, and for `piece`: before the reply itself stand its status and headers, as JSON, and 8 zeros */
    bool has_prelude;
    char request_id[37];
    char version[16];   /* that was executed: "$LATEST", "3" */
    int64_t started_us; /* monotonic: when the process was given the event; 0: never */
    /* private */
    void *run;
    struct invocation *next;
};

/* The invocation belongs to the caller and stays until `done`. From any thread; never blocks. */
void func_invoke(struct func *func, struct invocation *invocation);
/* There is room for further pieces. From any thread. */
void func_stream_resume(struct func_stream *stream);
/* The same of whatever can be called: `function` as struct func_call has it. */
void func_invoke_target(struct func *func, struct invocation *invocation);

/* Whether the function can be found, and its unqualified ARN with the qualifier where one was given. */
bool func_resolve(struct func *func, struct slice function, struct arena *arena, struct slice *arn,
                  struct slice *name);

/* ---- URLs of functions (lambda_url.c); gateway serves them ---- */

struct func_url {
    struct slice function, qualifier; /* empty: $LATEST */
    struct slice id;
    bool is_signed; /* AuthType AWS_IAM: whoever asks must sign */
    bool streams;   /* InvokeMode RESPONSE_STREAM */
    struct slice cors; /* its settings in JSON; empty: none */
};
/* By its id, or by the function's name[:alias]; texts are in the arena. False: there is none that this server knows
 * of. */
bool func_url_find(struct func *func, struct slice text, bool is_id, struct arena *arena, struct func_url *out);
/* Looks what other servers have changed, and waits for it. False: nobody else works on the same tables, or they cannot
 * be read. */
bool func_refresh(struct func *func);

/* ---- asynchronous calls, as children of the caller's own commit ---- */

struct func_call {
    struct slice function; /* as func_invoke takes it, or a URL, or what is no function, as JSON:
                              {"url":...,"secret":...} or {"call":"POST /v1/...","body":...}, which calls a pattern */
    struct slice payload, cause, id;
    struct slice
        on_failure; /* a destination, for where the function names none or is not there; empty: none */
};
/* Appends members of TransactWriteItems ({"Update":{...}}, joined by commas) that put a call into the queue, and
 * answers their number. They are children of a commit (task.h), in the order in which they are to be written. When that
 * is through, func_queue_wake lets it run. `id` follows from what led to the call and makes it the same one when it is
 * put twice: also, where the database has no transactions, when it has ended meanwhile, for a week. Where it has
 * transactions the caller's anchor sees to that. */
unsigned func_queue_put(struct func *func, const struct func_call *call, struct buf *members);
void func_queue_wake(struct func *func);

/* ---- effects: writes that a function returns ---- */

/* Looks for {"quipu":{"transact":[...]}} in a reply. NONE: there is no such member. Else *members is what
 * stands between the brackets, *count their number. BAD: a sentence in error; the reply counts as a
 * function's error. */
enum effects { EFFECTS_NONE, EFFECTS_FOUND, EFFECTS_BAD };
enum effects func_effects(struct slice reply, uint32_t count_max, struct arena *arena, struct slice *members,
                          uint32_t *count, char *error, size_t error_len);

/* ---- destinations: where failed batches and finished asynchronous calls are told of ---- */

/* Appends members of a transaction that hand a document to a destination: a queue (arn:aws:sqs:...:NAME or
 * arn:aws:sns:...:NAME, arn:aws:s3:::NAME), a table's ARN, a function's ARN, or a URL; the last two go
 * through the queue of asynchronous calls. The comma in front of them is the caller's. `id` makes it the same
 * when it is put twice. False, and nothing appended, when the destination cannot be used, or when the
 * document is too large for it (an item of a queue holds LIMIT_ITEM_BYTES).
 * `call` is the one whose failure the document tells of, without an id, and NULL where there is none: a queue
 * keeps it with the document, so that it can be redriven. */
bool destination_put(struct func *func, struct slice destination, struct slice document, struct slice id,
                     const struct func_call *call, struct buf *members, unsigned *count);
/* For whoever's commit was refused because a table is not there (DYNAMO_MISSING): those of asynchronous calls and of
 * queues that somebody has deleted under the server are made anew. True: one was, and the commit may be tried again.
 * Asks the door. */
bool func_tables_mend(struct func *func);
/* The same in a task. */
bool func_tables_mend_in_task(struct func *func);
/* NULL when the text names a destination that can be used here; else a sentence why not. Asks the door, and
 * makes the table of queues when one is named for the first time. */
const char *destination_fault(struct func *func, struct slice destination);

#endif
