/* What the files of the pool share. The story and the invariants stand in pool.c. */
#ifndef FUNC_POOL_H
#define FUNC_POOL_H

#include "base/stats.h"
#include "func/internal.h"
#include "base/ring.h"

#define POOL_PROCESSES       100              /* of all functions, unless the options say otherwise */
#define POOL_IDLE_MS         (10 * 60 * 1000) /* after which an unused process ends, likewise */
#define POOL_INIT_MS         10000 /* Lambda: until the first `next`; the function's time-out is added */
#define POOL_WAIT_MS         2000  /* for a process, where the server's limit is the reason */
#define POOL_RETURN_MS       50 /* from an answer to the `next` that belongs to it: less than a start takes */
#define POOL_PATIENCE_MS     100   /* with processes that should keep up, for each of them ... */
#define POOL_PATIENCE_MAX_MS 1000  /* ... up to here */
#define POOL_STARTS          4     /* of one function at the same time */
#define POOL_GRACE_MS        300   /* for an idle process between SIGTERM and its end */
#define POOL_EXIT_MS         2000  /* for a process that has told of its failed start to exit */
#define POOL_BACKOFF_MS      50    /* after a failed start; doubles ... */
#define POOL_BACKOFF_MAX_MS  1000  /* ... up to here */
#define POOL_GROUP_IDLE_MS   60000 /* a function without processes is forgotten after so long */
#define POOL_BUCKETS         256
#define METER_BUCKETS        64
#define POOL_EXTENSIONS      10 /* Lambda: of one process; each may wait for an event */

#define INSTANCE_ID_LETTERS     20
#define INSTANCE_SECRET_LETTERS 40 /* both as AWS has them */
#define INSTANCE_TOKEN_LETTERS  52 /* 260 bits */

#define RUN_ID_BYTES   37 /* a UUID and the zero */
#define RUN_ROOT_BYTES 36 /* 1-8 hex-24 hex and the zero */

/* An invocation on its way through the pool. Counted: by the list that it is in, and by whoever sends its
 * event. */
struct run {
    struct ring link;  /* in its group's waiting, or its instance's running */
    struct ring voice; /* in its instance's voice, while it runs there */
    struct run *next_done;
    struct invocation *invocation;
    struct group *group;       /* NULL once it is answered */
    struct function *function; /* counted */
    struct instance *instance; /* whose running it is in, else NULL */
    _Atomic uint32_t references;
    struct arena arena;
    struct slice cause;                 /* of what it writes: the caller's and its own name */
    struct slice arn;                   /* as it was called */
    struct slice client_context, event; /* copies: the caller's are gone once it is answered */
    char id[RUN_ID_BYTES], root[RUN_ROOT_BYTES];
    int64_t asked_us, given_us, deadline_us; /* given: 0 until its event is handed over; all monotonic */
    int64_t deadline_ms;                     /* wall clock */
    uint32_t timeout_ms;                     /* the function's, or less where the caller wants it so */
    /* the answer */
    enum invocation_end end;
    struct buf reply;
    bool wants_log;
    bool has_prelude;
    struct func_stream *stream; /* counted; NULL: its reply has not come piece by piece */
    uint64_t memory_bytes;  /* of its process, when it was answered */
    bool is_decided;        /* the answer stands; only the end of its process is waited for */
    const char *status;     /* of the REPORT line, or NULL */
    const char *error_type; /* of an error that is not the function's own: the log tells it */
    struct slice error;     /* its sentence */
    struct buf tail;        /* of its output, when the log is wanted */
};

/* What one process printed, on its way into the log. */
struct voice {
    pthread_mutex_t lock;
    struct buf partial;  /* a line without its end */
    struct ring runs;    /* that it may belong to */
    struct buf prologue; /* the end of what was printed before the first event */
    bool has_begun;      /* an event was handed over */
};

/* STARTING: has not asked for an event yet. IDLE: has asked, nothing runs. BUSY: something runs, or it was
 * answered and has not asked again. RETIRING: is given nothing more; it ends when nothing runs. ENDED: no
 * process is left. */
enum instance_state { INSTANCE_STARTING, INSTANCE_IDLE, INSTANCE_BUSY, INSTANCE_RETIRING, INSTANCE_ENDED };

/* What a process shows that a request is its own; made for it alone. */
struct instance_keys {
    char id[INSTANCE_ID_LETTERS + 1], secret[INSTANCE_SECRET_LETTERS + 1];
    char token[INSTANCE_TOKEN_LETTERS + 1];
};

/* A process. */
struct instance {
    struct ring all;      /* in the pool's instances */
    struct ring of_group; /* in the group's; alone once it is ended */
    struct ring ready;    /* in the group's ready, when it could be given an event now */
    struct instance *next_chore;
    struct pool *pool;
    struct group *group;
    struct function *function; /* counted */
    uint64_t number;           /* for people */
    unsigned holds;            /* who still needs it: its port, and events on their way to a loop */
    uint64_t stream;           /* part of the name of its log stream */
    enum instance_state state;
    struct net_port *port;
    struct instance_keys keys;
    struct keyring *keyring;   /* what a request that came by the port may be signed with */
    struct sandboxed *process; /* NULL until it was started */
    struct arrival *arrivals;  /* who has connected before that */
    bool has_asked;            /* for an event, ever */
    bool is_stale;             /* its code changed while it started: it serves one event at most */
    bool is_late;              /* it did not start in time */
    bool is_stopping;          /* it was told to end */
    int64_t stop_grace_ms;     /* with this grace */
    struct ring asking;        /* requests for `next` that wait, the newest first */
    unsigned asking_count;
    struct ring extensions; /* requests of extensions that wait */
    unsigned extension_count;
    struct ring running;
    unsigned running_count;
    unsigned returning;   /* requests for `next` that are expected any moment */
    int64_t returning_us; /* since when; INT64_MAX while it starts: no need to hurry */
    int64_t born_us, init_us, used_us, end_due_us; /* end_due: when it is stopped whatever it does; 0: not */
    bool init_reported;
    uint16_t debug_port; /* it is under a debugger: no limit of time counts. 0: it is not */
    uint64_t invocation_count;
    uint64_t memory_peak_bytes;
    struct arena cause_arena; /* of last_cause */
    struct slice last_cause;  /* of the last event that it was given */
    struct voice voice;
};

/* The instances of one revision of a function, and who waits for one. */
struct group {
    struct ring all;    /* in the pool's bucket */
    struct ring hungry; /* in the pool's hungry, when somebody waits */
    struct pool *pool;
    struct function *function; /* counted */
    struct ring instances, ready, waiting;
    unsigned waiting_count;
    uint32_t reserved;            /* as it was at the last call */
    bool is_retired;              /* the function has changed: who still waits here is served, and no more */
    unsigned failures;            /* starts that failed in a row */
    int64_t duration_us, init_us; /* of an answer, of a start: what they took lately; 0: not known */
    int64_t retry_us;             /* not started again before */
    int64_t hungry_us;            /* since when somebody waits, or the last process was started */
    int64_t used_us;
    struct watched_folder *folder; /* NULL: not watched */
};

/* Member of struct pool_stats, which names the metric, too; help. */
#define POOL_COUNTERS(X)                                                                                     \
    X(timeouts, "Invocations that took too long.")                                                           \
    X(starts, "Processes that were started.")                                                                \
    X(failed_starts, "Processes that never asked for an event.")                                             \
    X(evictions, "Idle processes that made room for others.")                                                \
    X(reloads, "Changes of folders that are run in place.")                                                  \
    X(refused_connections, "Connections to a process's port that were not its own.")

struct pool_stats {
    _Atomic uint64_t ends[INVOCATION_REFUSED + 1];
#define COUNTER(member, help) _Atomic uint64_t member;
    POOL_COUNTERS(COUNTER)
#undef COUNTER
    struct histogram duration_us, init_us, handover_us;
};

struct pool {
    struct func *func;
    pthread_mutex_t lock;
    pthread_t thread;
    bool has_thread;
    bool is_closing;
    uint32_t process_max;
    int64_t idle_us;
    int64_t init_ms, wait_ms; /* POOL_INIT_MS and POOL_WAIT_MS, but in tests */
    struct random random;
    struct ring buckets[POOL_BUCKETS]; /* of groups */
    struct ring instances, hungry;
    struct ring debugs; /* functions under a debugger */
    uint32_t live_count, ending_count; /* processes not yet ended; of these, told to end */
    uint64_t next_number;
    struct instance *to_start, **to_start_end, *to_close;
    _Atomic uint32_t under_way; /* invocations not yet answered */
    _Atomic int64_t wake_us;    /* when the thread looks next; INT64_MAX while it looks */
    int wake_fd;
    struct watcher *watcher;
    struct pool_stats stats;
    struct meters *meters; /* the same for each function */
    bool has_said_own_tmp, has_said_folder, has_said_opt, has_said_layers;
    uint64_t refusals_unsaid; /* refused connections since the last line about them */
    int64_t refusal_line_us;  /* when the next such line may be written */
};

static inline void pool_lock(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
}

static inline void pool_unlock(struct pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

/* What is left to do when the lock is released. Zeroed: nothing. */
struct after {
    struct run *answered;   /* the last one first */
    struct next_request *posted; /* to be sent to their loops; likewise */
};

/* ---- pool.c ---- */
/* Ends everything; what comes afterwards is refused. pool_close frees. */
void pool_stop(struct pool *pool);
/* Gives waiting runs to whoever asks, starts processes, turns away whom none is left for. Under the lock. */
void group_serve(struct group *group, struct after *after);
void pool_serve_hungry(struct pool *pool, struct after *after);
/* Fails those who wait for a process that could not start: this one, where there is one. */
void group_start_failed(struct group *group, struct instance *instance, unsigned slots,
                        enum invocation_end end, struct slice type, struct slice reason, struct slice posted,
                        struct after *after);
void group_free(struct group *group);
/* Starts a process of the function before anybody calls it; false: not now. Under the lock. */
bool pool_prepare(struct pool *pool, struct function *function);
void instance_retire(struct instance *instance);
bool instance_is_idle(const struct instance *instance);
/* Sets the state by what it does, and whether it is ready. */
void instance_settle(struct instance *instance);
void instance_stop(struct instance *instance, int64_t grace_ms);

/* ---- pool_run.c: invocations from their arrival to their answer ---- */
struct run *run_new(struct pool *pool, struct function *function, struct invocation *invocation);
void run_keep(struct run *run);
void run_release(struct run *run);
/* Decides the answer {"errorType":..,"errorMessage":..}; the message begins with the request's id. */
void run_fail(struct run *run, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes it out of its list; it is to be answered. Under the lock. */
void run_leave(struct run *run, struct after *after);
/* Without any lock. */
void after_do(struct pool *pool, struct after *after);
/* Moves an average towards what was seen: an eighth of the way. */
void average_move(int64_t *average_us, int64_t seen_us);
/* The run with this id; NULL when there is none, or it is decided. Under the lock. */
struct run *instance_run(struct instance *instance, struct slice id);
/* A running one is answered: writes its last lines and calls back. It was taken out of running; without lock.
 */
void run_answered(struct run *run, struct instance *instance);

/* ---- runtime_stream.c ---- */
/* No piece is handed over from here on. Answers what the run had of it; NULL: nothing. */
struct func_stream *run_stream_leave(struct run *run);
void run_stream_release(struct func_stream *stream);

/* ---- pool_process.c, pool_environment.c ---- */
struct instance *instance_new(struct group *group);
void pool_refuse_all(struct pool *pool, struct after *after); /* who waits; and every process ends. Under the lock */
void instance_start(struct instance *instance); /* on the pool's thread */
void instance_close(struct instance *instance); /* on the pool's thread, when it is ended */
void instance_drop(struct instance *instance);  /* one hold less; frees it with the last. Under the lock */
const char *const *environment_make(struct func *func, const struct function *function, uint16_t port,
                                    const struct instance_keys *keys, uint64_t stream,
                                    const struct sandbox_program *program, struct arena *arena);

/* ---- pool_storage.c: temporary files, and layers at /opt ---- */
/* Fills the program's has_own_tmp, temporary, storage_bytes and opt. */
void instance_choose_storage(struct instance *instance, struct sandbox_program *program, struct arena *arena);
/* Removes what servers that are gone have left. */
void storage_sweep(const struct func *func);

/* ---- pool_port.c: who may come in by a process's port ---- */
void instance_keys_make(struct instance_keys *keys);
struct keyring *instance_keyring(const struct instance_keys *keys, const struct function *function);
/* Whether a request that is not of the Runtime API shows that it is the process's; else it is answered. */
bool instance_admits(struct instance *instance, struct http_exchange *exchange);
/* Refuses requests of web pages, and by names that are not the loopback's: a net_admit. */
int instance_admits_head(void *instance, const struct http_exchange *exchange, char *reason,
                         size_t reason_len);
/* The port's guard. */
void instance_guard(void *instance, struct net_guest *guest);
/* The process is there: those who came before it can be asked about. Under the lock. */
void instance_ask_arrivals(struct instance *instance);

/* ---- pool_process.c: processes that have ended, or never begun ---- */
void instance_ended(void *context, const struct sandbox_result *result);
/* Fails those who wait for it (with the error that it posted, where there is one) and puts the next start
 * off. Under the lock, as is the other. */
void instance_failed_to_start(struct instance *instance, enum invocation_end end, const char *type,
                              const char *reason, struct slice posted, struct after *after);
/* No process of it is left: it counts no more, and its port is to be closed. */
void instance_forget(struct instance *instance, struct after *after);

/* ---- pool_log.c ---- */
void voice_init(struct voice *voice);
void voice_free(struct voice *voice);
void voice_start(struct instance *instance, struct run *run);
void voice_output(void *instance, struct slice bytes);
/* Takes what the process has printed so far: before an answer counts, and before the next event. Not under
 * the pool's lock. */
void instance_drain(struct instance *instance);
/* END and REPORT; the run's log is complete. */
void voice_end(struct instance *instance, struct run *run);
/* All lines of a run that waited for a process that could not start. */
void voice_fail(struct instance *instance, struct run *run);
/* Puts a line without its end into the log, too: there is no more. */
void voice_flush(struct instance *instance);
/* The run was not given after all: another process will run it. */
void voice_leave(struct instance *instance, struct run *run);

/* ---- pool_thread.c: what happens by time ---- */
void *pool_run_thread(void *pool);
/* Lets the thread look again at that time, or earlier. */
void pool_wake_by(struct pool *pool, int64_t due_us);

/* ---- pool_watch.c: folders that are run in place ---- */
struct watcher *watcher_new(void);
void watcher_free(struct watcher *watcher);
int watcher_descriptor(const struct watcher *watcher); /* -1: there is none */
/* Watches the group's folder, unless it does already. Both on the pool's thread. */
void watcher_add(struct watcher *watcher, struct group *group);
void watcher_read(struct watcher *watcher, struct pool *pool);
void watcher_remove(struct watcher *watcher, struct group *group); /* under the pool's lock */

/* ---- pool_debug.c: functions under a debugger ---- */
enum debug_begun {
    DEBUG_BEGUN,
    DEBUG_GOES_ON,    /* it was under way, and lasts longer now */
    DEBUG_ELSEWHERE,  /* it is under way at another port */
    DEBUG_PORT_TAKEN, /* another function has the port */
    DEBUG_REFUSED,    /* nothing runs here */
};
enum debug_begun pool_debug_begin(struct pool *pool, struct function *function, uint16_t port,
                                  int64_t for_ms);
bool pool_debug_end(struct pool *pool, struct slice name); /* false: there was none */
/* The port of the function's debugger; 0: it has none. Under the lock, as is the next. */
uint16_t pool_debug_port(const struct pool *pool, struct slice name);
void pool_debug_tick(struct pool *pool, int64_t now_us, int64_t *due_us);
void pool_debug_free(struct pool *pool);
const char *const *debug_environment(const char *const *environment, uint16_t port, struct arena *arena);

/* ---- pool_show.c: what each function has done, and what runs ---- */
struct meters *meters_new(void);
void meters_free(struct meters *meters);
/* A call has ended, so long after its event was handed over; 0: it never was. */
void meters_call(struct meters *meters, const struct run *run, int64_t call_us);
void meters_log(struct meters *meters, struct slice name, size_t bytes);
void meters_forget(struct meters *meters, struct slice name);
void pool_put_meters(struct pool *pool, struct buf *out);
/* {"Processes":[...]} of a function. */
void pool_put_processes(struct pool *pool, struct slice name, struct buf *out);

/* ---- runtime_api.c ---- */
void runtime_api_serve(void *instance, struct http_exchange *exchange);
/* Hands the run's event to a request that waits, which must be there. Under the lock. */
void instance_give(struct instance *instance, struct run *run, struct after *after);
/* Answers all requests that wait, on their loops: their process has ended. Under the lock. */
void instance_abandon(struct instance *instance, struct after *after);
void requests_post(struct next_request *posted);

#endif
