/* What the files of the queue share. The story and the invariants stand in queue.c, the table in
 * queue_item.c. */
#ifndef FUNC_QUEUE_H
#define FUNC_QUEUE_H

#include "func/internal.h"
#include "base/ring.h"

#define QUEUE_RETRY_MS        60000  /* Lambda: before the first retry; twice that before the second */
#define QUEUE_THROTTLE_MS     1000   /* Lambda: after the first time that there was no process; doubles ... */
#define QUEUE_THROTTLE_MAX_MS 300000 /* ... up to here */
#define QUEUE_WRITE_AGAIN_MS  500    /* after a write that the door could not make */
#define QUEUE_CONFLICT_MS     10     /* after one that met another transaction */
#define QUEUE_UNKNOWN_MS      60000 /* how long a call of nobody is kept, where others may make the function */
#define QUEUE_URL_AGE_MS      (6 * 3600 * 1000) /* Lambda's own for functions that say nothing */
#define QUEUE_LEASE_MS        30000  /* how long a call is ours without a sign of life, where others share */
#define QUEUE_LOOK_MS         5000   /* how often we look for calls of others, where others share */
#define QUEUE_PUT_MS          120000 /* how long a call that was put by others' transactions is looked for */
#define QUEUE_PUTS            1000   /* of these; above, the whole table is looked through */
#define QUEUE_PARTS           (LIMIT_ASYNC_EVENT_BYTES / LIMIT_QUEUE_PART_BYTES)
#define QUEUE_BUCKETS         1024
#define QUEUE_ID_BYTES        512

enum errand_state {
    ERRAND_WAITS,   /* in the heap until it is due */
    ERRAND_LOADING, /* its item is being read, or claimed */
    ERRAND_RUNS,    /* its function has it */
    ERRAND_SETTLES, /* what follows is being written */
};

/* An asynchronous call as this server knows it. Waiting, it is a name and a time; the rest is read when it is
 * due and forgotten when it waits again. All of it belongs to the queue's thread, but between a call and its
 * done. */
struct errand {
    struct ring by_id;
    struct errand *next_done, *next_renewed;
    struct queue *queue;
    size_t heap_at;
    int64_t due_ms;
    enum errand_state state;
    unsigned throttles;                    /* in a row */
    void (*then)(struct errand *errand);   /* what follows when it is done ... */
    void (*resume)(struct errand *errand); /* ... or when it is due again, other than beginning anew */
    bool is_calling;                       /* what is done is a call of the door */
    /* of this attempt */
    struct arena arena;
    struct slice function, cause, payload, holder, failure;
    uint64_t fence;
    uint32_t attempts, parts;
    int64_t accepted_ms, lease_ms;
    struct invocation invocation;
    struct async_settings settings;
    struct slice written_cause; /* of what is being written */
    bool rejected;              /* it was answered, but what it returned was not taken */
    bool has_effects, has_told; /* what stands in the transaction that ends it */
    int64_t retry_ms;
    struct dynamo_call call;
    struct buf request, reply;
    /* where others share */
    struct dynamo_call renewal;
    struct arena renewal_arena;
    struct buf renewal_request, renewal_reply;
    bool is_renewing;
    int64_t renew_us;
    void (*after_renewal)(struct errand *errand);
    size_t id_len;
    char id[];
};

/* A call that was put by somebody's own transaction: looked for when that is through. */
struct put {
    struct put *next;
    int64_t made_us;
    size_t id_len;
    char id[];
};

struct acceptance;

struct queue_stats {
    _Atomic uint64_t accepted, succeeded, failed, retried, throttled, redriven;
};

struct queue {
    struct func *func;
    struct slice table;
    struct arena texts; /* has its bytes */
    char me[37];
    pthread_t thread;
    bool has_thread;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool is_woken, is_stopping, is_closing, look_done;
    struct errand *done, *renewed;
    struct acceptance *accepted;
    struct put *puts;
    unsigned put_count;
    bool has_lost_puts;
    struct random random;
    pthread_mutex_t gate; /* held while a run is begun; never taken under the lock */
    bool is_shut;         /* under the gate */
    pthread_mutex_t table_lock;
    _Atomic bool table_is_made;
    _Atomic uint32_t active;     /* all that is not waiting for its time */
    _Atomic int64_t next_due_ms; /* of those that wait */
    /* the thread's */
    struct ring by_id[QUEUE_BUCKETS];
    struct errand **heap;
    size_t heap_len, heap_room, errand_count;
    bool is_overflowed; /* the table may hold more than we know */
    struct dynamo_turn turn;
    struct look *look; /* under way, or NULL */
    int64_t look_us;   /* when the next one is due; INT64_MAX: none */
    struct queue_stats stats;
};

/* ---- queue.c ---- */
/* Begins nothing more; what is under way goes on to its end. When it returns, no further function or target
 * is run: they may be taken down. */
void queue_stop(struct queue *queue);
/* Remembers a call; one that is known already stays as it is. */
void errand_add(struct queue *queue, struct slice id, int64_t due_ms);
/* Back to waiting, or away. */
void errand_wait(struct errand *errand, int64_t due_ms);
/* Goes on after a while from where it is. */
void errand_pause(struct errand *errand, int64_t pause_ms, void (*resume)(struct errand *errand));
void errand_forget(struct errand *errand);
/* Calls the door with errand->request; `then` follows on the queue's thread. */
void queue_errand_call(struct errand *errand, const char *operation, void (*then)(struct errand *errand));
int64_t queue_now_ms(const struct queue *queue);
void queue_name(struct queue *queue, char id[37]); /* a new UUID */
/* A call of somebody's transaction is there: it need not be looked for any more. */
void queue_put_found(struct queue *queue, struct slice id);

/* ---- queue_accept.c ---- */
void acceptances_finish(struct queue *queue, struct acceptance *acceptances);
/* Looks through the table when that is due; goes on with a look that is under way. */
void queue_look(struct queue *queue);

/* ---- queue_item.c ---- */
/* Makes the table when it is not there; blocks. */
bool queue_table_make(struct queue *queue);
/* How much of a payload goes into one item: the cut leaves no character in two. */
size_t queue_part_len(struct slice rest);
unsigned queue_part_count(struct slice payload);
/* Members that put a call; 0 when the payload is too long or no UTF-8. */
unsigned queue_put_members(struct queue *queue, const struct func_call *call, struct buf *members);
void errand_put_load(const struct errand *errand, struct buf *out);
/* False when the reply has no such call (any more). */
bool errand_read(struct errand *errand);
void errand_put_claim(const struct errand *errand, int64_t now_ms, struct buf *out);
void errand_put_renewal(const struct errand *errand, int64_t now_ms, struct buf *out);
void errand_put_retry(const struct errand *errand, uint32_t attempts, int64_t due_ms, struct buf *out);
/* Members that remove it, on the condition of its fence, which stands first. */
unsigned errand_put_removal(const struct errand *errand, struct buf *members);
void queue_put_look(const struct queue *queue, struct slice start_key, struct buf *out);
/* Adds what a page of the table shows; *start_key is where the next one begins, empty at the end. */
/* A call that this server holds, or one before it that had the same data. */
bool queue_is_mine(const struct queue *queue, struct slice holder);
bool queue_read_look(struct queue *queue, struct slice reply, struct arena *arena, struct slice *start_key);

/* ---- queue_run.c: from due to answered ---- */
void errand_begin(struct errand *errand);
void errand_renew(struct errand *errand, int64_t now_us);
void errand_renewed(struct errand *errand);

/* ---- queue_settle.c: what follows from an answer ---- */
void errand_settle(struct errand *errand);
/* Its age is over before it could run. */
void errand_expire(struct errand *errand);

#endif
