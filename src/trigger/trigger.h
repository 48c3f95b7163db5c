/* What starts functions: changes of tables (event source mappings) and time (schedules).
 *
 * A mapping reads a stream through the door (so it does not matter whether the stream is of the engine in
 * this process, of another Quipu or of AWS), passes each record by its filter, gathers batches, invokes its
 * function and moves its position. Records of one key are handled in order; everything else at the same time
 * as far as the settings allow.
 *
 * All that must last is items: quipu-mappings (settings), quipu-positions (per mapping and shard: how far
 * each lane has come, who holds the lease, the fence), quipu-schedules.
 *
 * Invariants:
 *  T1. A position moves only by a conditional write on its fence and its former value. Writes that a function
 *      returned are members of the same commit (task_commit), so they are applied once or not at all, whatever
 *      dies when. Without transactions the position names them before they are made, and whoever has the lease
 *      brings them to their end before anything else. A user's move (struct mapping_move) is one write of the
 *      mapping's item; each position makes it once, by a write that raises the fence.
 *  T2. A record is handed to the function until it succeeds, its retries or its age are exhausted (it then
 *      goes to the mapping's destination in the commit that moves the position), or it is filtered out.
 *  T3. A shard is read after its parent was read to its end; records of one key never overtake each other.
 *  T4. One holder per shard: leases expire, fences only grow, and a stale fence moves nothing.
 *  T5. A record that a function's own write caused is kept from that function, unless its mapping allows it
 *      and up to the depth it allows.
 *  T6. A due time of a schedule is fired once: the schedule's next time and the call go into one transaction; where
 *      there are none, the call, whose id follows from schedule and due time, is put before the schedule moves on. */
#ifndef TRIGGER_TRIGGER_H
#define TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "dynamo/dynamo.h"
#include "func/func.h"
#include "rest/rest.h"

struct trigger;

struct trigger_options {
    struct dynamo *dynamo; /* kept, not owned, as is func */
    struct func *func;
    const struct clock *clock;
    const char *region, *account;
    const char *prefix; /* of our tables' names; NULL: "quipu-" */
    bool shared;        /* other servers work on the same tables */
    int64_t lease_ms;   /* how long a shard is held without a sign of life; 0: 10 s */
    int64_t poll_ms;    /* how often a shard is asked where no commit wakes us; 0: 250 */
};

/* For a server that has the data itself and runs no triggers: what an earlier one held becomes free for servers
 * that read from elsewhere. `prefix` as in the options. */
void trigger_free_leases(struct dynamo *dynamo, const char *prefix);
/* Reads what the tables hold. NULL and a sentence. */
struct trigger *trigger_open(const struct trigger_options *options, char *error, size_t error_len);
void trigger_start(struct trigger *trigger);
/* Nothing new is begun from here on; waits for what is under way as long as it may take a moment, and gives
 * the leases back. While functions can still be run: before func_stop. */
void trigger_stop(struct trigger *trigger);
/* Stops, if that was not done before, and ends. Before func_close. */
void trigger_close(struct trigger *trigger);

/* Lambda's event source mappings, EventBridge Scheduler's API, and our own under /v1. False: no route is
 * ours. */
bool trigger_serve(struct trigger *trigger, struct rest_call *call);
void trigger_put_metrics(struct trigger *trigger, struct buf *out);
/* The age of the oldest change that was read and is not handled, as it was when this was last asked; 0: there is none.
 */
int64_t trigger_lag_ms(struct trigger *trigger);
/* How old the oldest change is that a mapping has read and not handled. */
struct trigger_lag {
    char mapping[40], table[256], function[200]; /* its id; names */
    int64_t ms;
};
/* Of the mappings that lag, those that lag most, as it was when trigger_lag_ms was last asked. Answers how many. */
unsigned trigger_lags(struct trigger *trigger, struct trigger_lag out[LIMIT_CONSOLE_TOP]);
/* True when every enabled mapping has handled all records that are in its stream now, and no schedule is due.
 */
bool trigger_is_idle(struct trigger *trigger);

/* ---- mappings of our own ---- */

/* Changes of a table that something in this process answers, where a mapping would have a function.
 * Positions, leases, retries and effects are those of any mapping; it is in no list, and nobody can change
 * it. */
struct trigger_watch {
    const char *name;    /* "then/jobs": what its positions are kept by. Copied, as are the next two */
    const char *table;   /* it need not exist, or have a stream, yet; it is read from its beginning */
    const char *filter;  /* an event pattern over a record; NULL: all */
    uint32_t batch_size; /* 0: 100 */
    /* The answer to an event, {"Records":[...]} (where the engine is in this process, with `cause` and
     * `transaction`, the token, of each that has one), as a function would give it:
     * {"quipu":{"transact":[...]}} is applied with the move of the position, once. `cause` is the lineage of
     * the records. On the consumer's thread, where it must be quick and must not wait for the door; or, where
     * it `waits`, on a thread that may. False: the reply is an error
     * ({"errorType":...,"errorMessage":...}), and the batch comes again after a pause. */
    bool (*answer)(void *context, struct slice event, struct slice cause, struct arena *arena,
                   struct buf *reply);
    void *context;
    bool waits;
    /* What it answers are plain puts, in which the same record is always the same item. They are made before the
     * position moves, without a transaction: again after a crash, which changes nothing. */
    bool puts_first;
};

/* From any thread, before or after trigger_start; a name that is watched already changes nothing. */
void trigger_watch(struct trigger *trigger, const struct trigger_watch *watch);
/* Its positions are removed, too. */
void trigger_unwatch(struct trigger *trigger, const char *name);

#endif
