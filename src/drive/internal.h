/* What the files of the room share. Everything here belongs to the host's thread, but for the counts. */
#ifndef DRIVE_INTERNAL_H
#define DRIVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/attribute.h"
#include "base/limits.h"
#include "base/ring.h"
#include "drive/drive.h"
#include "task/task.h"

#define DRIVE_LEASE_MS 30000 /* of a share: so long after a server was killed, others take its place ... */
#define DRIVE_RENEW_MS 10000 /* ... and so often it is renewed, and looked for by those who do not have it */
#define DRIVE_AGAIN_MS 500   /* after a pattern's call that could not be made */

struct driven;
struct share;

/* A kind of thing. */
struct driver {
    const char *name;
    void (*run)(struct driven *driven); /* a task for each thing, until driven_is_over; NULL: it has shares */
    void (*share)(struct share *share); /* a task for each share that is held, until share_is_over */
};
extern const struct driver drive_work, drive_log, drive_job;

#define DRIVE_COUNTS(X)                                                                                      \
    X(calls_total, "calls_total", "counter", "Calls of targets that drivers have begun.")                    \
    X(failures_total, "failures_total", "counter", "Those of them that failed.")                             \
    X(running, "running", "gauge", "Those that are under way.")

/* What lies outside, which tests replace. */
struct drive_outside {
    void *self;
    void (*serve)(void *self, struct rest_call *call); /* as pattern_serve; on the thread's own stack */
    void (*invoke)(void *self, struct invocation *invocation); /* as func_invoke_target */
};

struct drive {
    struct drive_options options;
    struct drive_outside outside;
    struct task_host *host;
    struct dynamo_turn turn; /* of patterns' calls; ended with each step */
    pthread_t thread;
    bool has_thread;
    struct task_note stopping;
    char owner[37]; /* of leases and claims */
    struct ring things, asks, calls, owned;
    bool is_stopping; /* begins nothing more */
    bool is_ending;   /* asks for nothing more, either */
    struct task_signal stopped;
    _Atomic bool ends;   /* for the thread */
    _Atomic size_t busy; /* tasks, for those who wait for the end */
    pthread_mutex_t running_lock; /* of the following */
    struct ring running_tasks;
#define X(member, name, type, help) _Atomic uint64_t member;
    DRIVE_COUNTS(X)
#undef X
};

/* What tasks have in hand besides their arenas begins with this: they are dropped where they stand when it ends. */
struct drive_owned {
    struct ring all;
    struct arena arena;
};

/* A task of a job whose target is called, for other threads to see; its texts live as long as it is in the list. */
struct running_task {
    struct ring link;
    struct slice job, task; /* a name; JSON */
};

/* A part of a thing's concurrency, see share.c. */
struct share {
    struct driven *driven;
    unsigned number;
    bool is_held, has_keeper, runs;
    int64_t until_us;           /* by the host's ticks: no call is begun from then on */
    unsigned busy;              /* seats in use, by the kind */
    struct task_signal changed; /* the lease, the settings, or a seat: for the kind's task ... */
    struct task_signal kept;    /* ... and for the one that keeps the lease */
};

/* A thing that is driven. */
struct driven {
    struct ring all;
    struct drive *drive;
    const struct driver *driver;
    struct arena arena;
    struct slice id, name, part;
    /* the settings, as they are now: who has waited reads them anew */
    struct arena text_arena;
    struct slice text, target; /* the entry's JSON; the target as func_invoke_target takes it */
    int64_t version, concurrency, timeout_ms;
    bool is_paused;
    bool is_gone, is_seen;
    unsigned tasks;
    void *own; /* the kind's */
    struct task_signal changed;
    struct share shares[LIMIT_DRIVE_SHARES];
};

/* ---- drive.c ---- */

/* For tests: a drive without a thread, on a host of their own. */
struct drive *drive_new(const struct drive_options *options, const struct drive_outside *outside,
                        struct task_host *host);
void drive_begin(struct drive *drive);
void drive_begin_stop(struct drive *drive); /* on the host's thread */
void drive_free(struct drive *drive);
void *drive_own(struct drive *drive, size_t bytes);
void drive_disown(struct drive_owned *owned);
void drive_note_running(struct drive *drive, struct running_task *task);
void drive_forget_running(struct drive *drive, struct running_task *task);
/* A task of a thing, which must end with driven_task_ended. */
void driven_begin(struct driven *driven, void (*run)(void *argument), void *argument);
void driven_task_ended(struct driven *driven);
/* Gone, or its server stops. */
bool driven_is_over(const struct driven *driven);
/* The same, or it is paused. */
bool driven_rests(const struct driven *driven);
/* Settings of the entry that are the kind's own. */
int64_t driven_int(const struct driven *driven, const char *name, int64_t otherwise);
int64_t driven_ms(const struct driven *driven, const char *name, int64_t otherwise);
bool driven_bool(const struct driven *driven, const char *name);

/* ---- entries.c ---- */

/* The task that follows GET /v1/drives. */
void drive_follow(void *drive);
/* Something about it has changed: all who wait look again. */
void driven_has_changed(struct driven *driven);

/* ---- ask.c: calls of patterns ---- */

struct drive_reply {
    int status;        /* 0: it was not made, since the drive ends */
    struct slice body; /* in the task's arena */
};
/* Calls a pattern and waits for its answer. `driven`: a long-poll ends when that has changed; NULL: when the drive
 * stops only. */
struct drive_reply drive_ask(struct drive *drive, struct driven *driven, const char *method,
                             struct slice path, struct slice body);
extern const struct pattern_host drive_pattern_host;
/* Ends long-polls for the thing, or with NULL all. */
void drive_leave(struct drive *drive, const struct driven *driven);
/* A path of names, each percent-encoded: "/v1/work/%n/claim". */
struct slice drive_path(struct arena *arena, const char *format, ...);

/* ---- call.c: calls of targets ---- */

struct drive_call;
enum drive_end {
    DRIVE_ANSWERED, /* text is what it returned, JSON */
    DRIVE_FAILED,   /* text tells why */
    DRIVE_NOT_RUN,  /* there was no process to be had, or it cannot run now: no attempt; text tells why */
};
struct drive_outcome {
    enum drive_end end;
    struct slice text; /* in the task's arena */
    bool is_final;     /* it would fail again */
    bool is_unknown;   /* FAILED: there is no such function */
};
/* Begins to call the thing's target. The payload is copied. */
struct drive_call *drive_call_begin(struct driven *driven, struct slice payload);
/* False: it is not over at that moment. True: it is, and the call is gone. */
bool drive_call_await(struct drive_call *call, struct task_moment until, struct drive_outcome *outcome);
/* Whose drive ends. */
void drive_calls_abandon(struct drive *drive);
/* The pause before a target that was not run is called again, after so many tries in vain. */
int64_t drive_pause_us(struct drive *drive, unsigned tries);

/* ---- share.c ---- */

/* Begins to keep those shares that the thing's concurrency makes. */
void shares_follow(struct driven *driven);
/* How many seats it has in which calls may be begun now; 0: none, for whatever reason. */
unsigned share_seats(const struct share *share);
/* For the kind's task: it is lost or its thing is over, and it is time to end. */
bool share_is_over(const struct share *share);

#endif
