/* The coordination patterns: counters, leases, documents, boards, work, and whatever else people rebuild on
 * DynamoDB by hand, each as one call.
 *
 * An operation is a *flow* (flow.h): a pure step function over DynamoDB's API, named by a method and a path,
 * as in "POST /v1/counters/orders". The same rows (method, path, fields, flow) serve all faces: HTTP in the
 * server, the command line and the library, so the words are the same everywhere, and so is /v1/openapi.json.
 * Nothing is kept beside the tables, which are ordinary ones, documented at the head of each pattern's file:
 * people may take part with a plain SDK.
 *
 * Invariants:
 *  P1. Whatever decides is one conditional write. A flow may be dropped between any two of its calls and
 *      repeated from the start, by anybody, as often as they like: test/unit/pattern_explore*.c tries all
 *      orders.
 *  P2. What an answer has told stays true: a number, a fence, a version is told once, a result never changes.
 *  P3. Input is checked before the first call; what is refused has changed nothing.
 *  P4. A flow that writes wakes the flows of this process that wait for it, by topics. What others write is told
 *      by the engine; a remote database tells nothing, so there one flow looks again in intervals for all that
 *      wait for the same (waits.h). */
#ifndef PATTERN_PATTERN_H
#define PATTERN_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/slice.h"
#include "dynamo/dynamo.h"
#include "pattern/operation.h"
#include "rest/rest.h"

struct pattern;
struct pattern_host;

/* A piece of a flow's work, for the thread that its request came in by. */
struct pattern_task {
    void (*run)(struct pattern_task *task);
};

/* What the owner of the sockets lends to flows, so that a reply need not pass through a thread of ours. */
struct pattern_host {
    /* Runs the task on the thread that the call came in by, soon. From any thread; one at a time per call. NULL, for
     * a call without `done`: it is answered. */
    void (*post)(const struct pattern_host *host, struct rest_call *call, struct pattern_task *task);
    /* The turn of that thread, which ends it; asked for on that thread only. */
    struct dynamo_turn *(*turn)(const struct pattern_host *host, struct rest_call *call);
};

/* Zeroed: the defaults. */
struct pattern_options {
    struct dynamo *dynamo;           /* kept, not owned */
    const struct clock *clock;       /* kept; NULL: the system's */
    const char *prefix;              /* of the tables' names; copied; NULL: "quipu-" */
    uint64_t seed;                   /* of ids and jitter; 0: from the system */
    const struct pattern_host *host; /* kept; NULL: none */
    /* How far the clocks of those who share the tables may differ: leases end that much later for others than
     * for their holders. 0: nothing when the engine is in this process, else half a second; below 0: nothing.
     */
    int64_t skew_ms;
    bool sweeps; /* do what is due by itself: deadlines and the like. For servers */
};

/* False: no table may be named so. */
bool pattern_prefix_is_fit(const char *prefix);
#define PATTERN_PREFIX_RULE "a prefix of tables is 1 to 128 letters, digits and _.-"

/* What is told where the database is ScyllaDB Alternator. */
#define PATTERN_ON_ALTERNATOR                                                                                 \
    "ScyllaDB Alternator has no transactions: patterns, functions, triggers and schedules work on it, but a " \
    "function can return one Put or Update there, not several writes."

struct pattern *pattern_open(const struct pattern_options *options);
/* From here on no call waits: those that do are answered as if their time were over. */
void pattern_stop(struct pattern *pattern);
/* Calls that wait for something are answered (503), those under way are waited for. */
void pattern_close(struct pattern *pattern);

/* Answers a request, at once or later (`done`), never waiting on this thread. False: no route is ours. */
bool pattern_serve(struct pattern *pattern, struct rest_call *call);
/* The same for a call that comes in by another's thread than those of the options' host. */
bool pattern_serve_on(struct pattern *pattern, struct rest_call *call, const struct pattern_host *host);
/* The same for those who may wait: returns when it is answered; `done` is not called. False as above. */
bool pattern_run(struct pattern *pattern, struct rest_call *call);
/* Does once what `sweeps` would do, and waits for it. 200, or the status of the sweep that failed, whose
 * refusal is then in *reply. */
int pattern_sweep(struct pattern *pattern, struct buf *reply);

/* For triggers: calls a pattern for each record of an event (target.c tells the form of `call` and `body`),
 * and waits. `cause` is the lineage of what it writes (func.h). An empty event: only looks whether the two
 * can be understood. False: the reply is a sentence that says why, and *is_final (may be NULL) whether
 * another try would be in vain. */
bool pattern_apply(struct pattern *pattern, struct slice call, struct slice body, struct slice event,
                   struct slice cause, struct arena *arena, struct buf *reply, bool *is_final);

/* For triggers, too: what the records of an event of a table's stream become in its history (history.c), as
 * {"quipu":{"transact":[...]}}, one put for each. The same record is always the same item. False: the reply
 * is a sentence that says why. */
bool pattern_history(struct pattern *pattern, struct slice table, struct slice event, struct arena *arena,
                     struct buf *reply);
/* Names every table whose changes are to be kept. Waits. False: nobody could tell. */
bool pattern_histories(struct pattern *pattern, void (*each)(void *context, struct slice table),
                       void *context);

/* What was done of a job by this process since this was last asked. */
struct pattern_job_meter {
    struct slice job;
    int64_t total; /* of its tasks; less than 0: it was not known yet */
    int64_t done, failed;
};
/* Each of which something was done, up to LIMIT_JOB_METERS. `take` calls nothing that locks. */
void pattern_each_job(struct pattern *pattern, void (*take)(void *context, const struct pattern_job_meter *meter),
                      void *context);

/* Lines for /metrics. */
void pattern_put_metrics(struct pattern *pattern, struct buf *out);

/* The description of all routes, OpenAPI 3.1, which is also served as /v1/openapi.json. */
void pattern_put_openapi(struct buf *out);

/* ---- what it costs ---- */

/* Prices of Amazon DynamoDB, on demand, standard tables, region us-east-1, since November 2024, in dollars
 * per million. Writes that end an item by its time to live cost nothing. */
#define PRICE_WRITES  0.625 /* write request units: 1 KB of an item or index entry, twice in a transaction */
#define PRICE_READS   0.125 /* read request units: 4 KB; half of one where the read need not be consistent */
#define PRICE_STREAMS 0.2   /* GetRecords of a stream; those of Lambda itself are free */

/* ---- what others react to ---- */

/* What a `then` names (then.c): a function, a URL or another pattern. */
struct pattern_target {
    struct slice function, url, call; /* one of these */
    struct slice secret;              /* of the URL; empty: none */
    struct slice body;                /* of the call, JSON; NULL data: none */
    struct slice on;                  /* states that it is for, JSON; NULL data: all */
};
#define PATTERN_TARGETS 10

/* Takes a `then`, as items have it, apart; there may be no target in it. NULL, or what is wrong with it: a
 * phrase behind "then". */
const char *pattern_then_read(struct slice then, struct arena *arena,
                              struct pattern_target targets[PATTERN_TARGETS], unsigned *count);
/* The same text without secrets: who may use patterns may not sign in their name. */
struct slice pattern_then_shown(struct slice then, struct arena *arena);
/* As functions are called (func_call.function). */
struct slice pattern_target_text(const struct pattern_target *target, struct arena *arena);
bool pattern_target_is_for(const struct pattern_target *target, struct slice state, struct arena *arena);

/* Patterns that were given a `then` leave it, as attribute "then", on the item whose change of state is the
 * event, in a table that has a stream. Whoever runs triggers maps each of these streams once, with the
 * filter, to the target that the item's "then" names: only changes that somebody waits for start anything. */
struct pattern_reaction {
    const char *table;  /* without the prefix */
    const char *filter; /* an event pattern (match.h) over a stream record */
    const char *source; /* "quipu.jobs" */
    const char *word;   /* "Job" */
    bool gathers;       /* its events may have items of their own: pattern_gather */
};
extern const struct pattern_reaction pattern_reactions[];
extern const size_t pattern_reaction_count;

/* A record that the filter has let through, taken apart: raw JSON, but for the texts. */
struct pattern_record {
    struct slice text, change, item; /* all of it, its "dynamodb", its new image */
    struct slice id, then, state;    /* texts */
    struct slice cause;              /* its lineage, where the record tells it (trigger.h); else empty */
    struct slice events;             /* gathered, a JSON array; NULL data: none were */
    struct slice results, failures;  /* of a job, likewise */
};
/* False when it is not of the form that the filter asks for. */
bool pattern_record_read(struct slice record, struct arena *arena, struct pattern_record *out);

/* Reads the events of a record that are not in its item, or the results of its tasks, where there are any and they
 * have no more bytes than `room`, into the record. Waits. False: nobody could tell now. */
bool pattern_gather(struct pattern *pattern, struct pattern_record *record, size_t room, struct arena *arena);

#define PATTERN_EVENT_BRIEF  1u /* without what may be large */
#define PATTERN_EVENT_RECORD 2u /* with the record's keys and image beside it, for the places of a call */
#define PATTERN_EVENT_ID     4u /* with its id as a record has it: the Idempotency-Key of a call */
/* What targets are told of it (reactions.c tells the form). `id` names the telling. */
void pattern_put_event(struct buf *out, const struct pattern_reaction *reaction,
                       const struct pattern_record *record, struct slice id, unsigned how,
                       struct arena *arena);

#endif
