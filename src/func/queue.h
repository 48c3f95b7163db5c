/* What the files of the queue share. The story and the invariants stand in queue.c, the table in
 * queue_item.c. */
#ifndef FUNC_QUEUE_H
#define FUNC_QUEUE_H

#include "base/heap.h"
#include "base/ring.h"
#include "func/internal.h"
#include "task/task.h"

#define QUEUE_RETRY_MS        60000  /* Lambda: before the first retry; twice that before the second */
#define QUEUE_THROTTLE_MS     1000   /* Lambda: after the first time that there was no process; doubles ... */
#define QUEUE_THROTTLE_MAX_MS 300000 /* ... up to here */
#define QUEUE_CLOCK_MS        1000   /* as far back the clock goes without being set */
#define QUEUE_WRITE_AGAIN_MS  500    /* after a write that the door could not make */
#define QUEUE_CONFLICT_MS     10     /* after one that met another transaction */
#define QUEUE_UNKNOWN_MS      60000 /* how long a call of nobody is kept, where others may make the function */
#define QUEUE_URL_AGE_MS      (6 * 3600 * 1000) /* Lambda's own for functions that say nothing */
#define QUEUE_LEASE_MS        30000  /* how long a call is ours without a sign of life, where others share */
#define QUEUE_SCAN_MS         5000   /* how often we look for calls of others, where others share */
#define QUEUE_PUT_MS          120000 /* how long a call that was put by others' transactions is looked for */
#define QUEUE_PUTS            1000   /* of these; above, the whole table is looked through */
#define QUEUE_TOMBSTONE_MS    (7 * 86400000ll) /* who repeats a call's put later has been away for longer */
#define QUEUE_PARTS_MS        (14 * 86400000ll) /* parts of a call: longer than any call is tried */
#define QUEUE_PARTS           (LIMIT_ASYNC_EVENT_BYTES / LIMIT_QUEUE_PART_BYTES)
#define QUEUE_BUCKETS         1024
#define QUEUE_TARGETS         1024 /* those whose names have the same hash count as one */
#define QUEUE_ID_BYTES        512

/* Whom calls go to: how many of its calls run, and which are due and wait until one of those has ended (Q5). */
struct queue_target {
    unsigned running;
    struct ring held;
};

/* A call as this server knows it: a name and a time. The rest is read when it is due. The host's. */
struct pending {
    struct ring by_id;
    struct ring held;              /* in its target's, when it waits there */
    struct queue_target *released; /* where it has waited, until it was looked at again; NULL: nowhere */
    struct heap_place due;         /* in no heap: a task has it in hand, or it is held */
    struct queue *queue;
    unsigned throttles; /* in a row */
    size_t id_len;
    char id[];
};

/* A call in hand: as it was read, and its run. Lives as long as its task. */
struct async_call {
    struct queue *queue;
    struct pending *pending;
    struct queue_target *target; /* that counts it as running; NULL: none */
    struct slice id;
    struct arena *arena;
    struct slice function, cause, payload, owner, failure;
    uint64_t fence;
    uint32_t attempts, parts;
    int64_t accepted_ms, due_ms, until_ms;
    struct async_settings settings;
    struct task_completion completion;
    struct invocation invocation;
    struct slice effects, told; /* the outcome that was read */
    struct slice payloads[QUEUE_PARTS + 1]; /* of its items, as far as they were read */
    bool has_first;                         /* the first of them was */
    bool has_outcome, has_ended; /* it has one; it is a tombstone */
    bool rejected; /* it was answered, but what it returned was not taken */
};

/* A call that was put by somebody's own transaction: looked for when that is through. */
struct put {
    struct put *next;
    int64_t made_us;
    size_t id_len;
    char id[];
};

#define QUEUE_STATS(X) X(accepted) X(succeeded) X(failed) X(retried) X(throttled) X(redriven)
struct queue_stats {
#define X(what) _Atomic uint64_t what;
    QUEUE_STATS(X)
#undef X
};

struct queue {
    struct func *func;
    struct slice table;
    struct arena texts; /* has its bytes */
    char me[37];
    struct task_host *host;
    struct task_note stopping, closing, waking;
    pthread_t thread;
    bool has_thread;
    /* under the lock */
    pthread_mutex_t lock;
    struct put *puts;
    unsigned put_count;
    bool has_lost_puts, is_woken;
    struct random random;
    pthread_mutex_t gate; /* held while a run is begun; never taken under the lock */
    bool is_shut;         /* under the gate */
    pthread_mutex_t table_lock;
    _Atomic bool table_is_made;
    _Atomic uint32_t active;     /* all that is not waiting for its time */
    _Atomic int64_t next_due_ms; /* of those that wait */
    /* the host's */
    struct ring by_id[QUEUE_BUCKETS];
    struct queue_target targets[QUEUE_TARGETS];
    struct heap due;
    size_t held_count;
    int64_t seen_ms;              /* the clock, when it was last looked at */
    _Atomic size_t pending_count; /* others read it */
    bool is_overflowed; /* the table may hold more than we know */
    bool is_stopping, is_closing;
    bool scans_now;            /* a scan is due before its time */
    struct task_signal changed; /* something came, or is to end */
    struct queue_stats stats;
};

/* ---- queue.c ---- */
/* Begins nothing more; what is under way goes on to its end. When it returns, no further function or target
 * is run: they may be taken down. */
void queue_stop(struct queue *queue);
/* Remembers a call; one that is known already stays as it is, but is looked at by then. */
void queue_remember(struct queue *queue, struct slice id, int64_t due_ms);
int64_t queue_now_ms(const struct queue *queue);
/* Counts the call as a running one of its target. False: there are so many that it has to wait for one of them. */
bool queue_target_enter(struct async_call *call);
/* A call of somebody's transaction is there: it need not be looked for any more. */
void queue_put_found(struct queue *queue, struct slice id);

/* ---- queue_item.c ---- */
/* Makes the table when it is not there; blocks. */
bool queue_table_make(struct queue *queue);
/* How much of a payload goes into one item: the cut leaves no character in two. */
size_t queue_part_len(struct slice rest);
/* Members that put a call; 0 when the payload is too long or no UTF-8. *first: where the last one of them begins, which
 * is part 0. */
unsigned queue_put_members(struct queue *queue, const struct func_call *call, struct buf *members,
                           size_t *first);
/* Requests, in the call's arena: */
struct slice call_load(const struct async_call *call);
struct slice call_load_rest(const struct async_call *call, struct slice unprocessed);
struct slice call_claim(const struct async_call *call, int64_t now_ms);
struct slice call_renewal(const struct async_call *call, int64_t now_ms);
struct slice call_retry(const struct async_call *call, uint32_t attempts, int64_t due_ms);
/* Keeps what is about to be written, on the condition of its fence. */
struct slice call_outcome(const struct async_call *call, struct slice effects, struct slice told);
/* Actions that end it, on the condition of its fence: it is removed, or becomes a tombstone. */
struct slice call_removal(const struct async_call *call);
struct slice call_tombstone(const struct async_call *call, const char *condition, bool is_listed);
/* Those that remove its further parts. */
struct slice call_part_removals(const struct async_call *call);
/* Takes what is in a reply, which must be in the call's arena. Answers what the database has left out, as it is to be
 * asked for; SLICE_NONE: nothing. */
struct slice call_take(struct async_call *call, struct slice reply);
/* False when what was taken is no call (any more). */
bool call_read(struct async_call *call);
void queue_put_scan(const struct queue *queue, struct slice start_key, struct buf *out);
/* Whose a call is at a moment; of one that a server before this one held on the same data: this one's. */
enum dynamo_hold_state queue_hold_state(const struct queue *queue, struct slice owner, int64_t until_ms,
                                        int64_t now_ms);
/* Remembers what a page of the table shows, and answers where the next one begins; SLICE_NONE: this was the last. */
struct slice queue_read_page(struct queue *queue, struct slice reply, struct arena *arena);

/* ---- queue_run.c ---- */
/* Takes a call that is due through its stations. Answers when to look at it again; QUEUE_OVER: it is done with. */
#define QUEUE_OVER INT64_MIN
#define QUEUE_HELD (INT64_MIN + 1) /* when another call of its target has ended */
int64_t call_work(struct async_call *call);

#endif
