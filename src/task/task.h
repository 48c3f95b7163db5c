/* Tasks: work in the background that reads from top to bottom.
 *
 * A task is an ordinary function on a fiber. It makes calls of the door (task_send), waits for what others complete
 * (task_await_completion), for a signal or a moment (task_await), and goes on where it stood. All tasks of a *host*
 * share one thread, so between two waits nobody else changes what they share, and no lock is needed. What other
 * threads want of a task comes as a note (task_host_post).
 *
 * Everything outside, the door and the clocks, is behind struct task_environment. So a test runs a host step by step,
 * without a thread, and lets anything fail, come late or never.
 *
 *  O1. A task runs on its host's thread only, and only within task_host_step.
 *  O2. A signal that is given while nobody waits for it is not kept: who waits looks at the state first, and the
 *      state does not change before it waits, since nobody else runs.
 *  O3. A call or completion that was begun ends once. When its task has ended or was dropped meanwhile, the host
 *      frees it.
 *  O4. A host that is freed drops its tasks where they stand (W2): what they own beyond their arena and their calls
 *      belongs to somebody else. */
#ifndef TASK_TASK_H
#define TASK_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "base/ring.h"
#include "base/slice.h"
#include "dynamo/dynamo.h"

struct task_host;
struct task;

/* ---- what lies outside ---- */

struct task_environment {
    void *self;
    /* as dynamo_begin, dynamo_turn_end, dynamo_finish */
    bool (*begin)(void *self, struct dynamo_call *call);
    void (*turn_end)(void *self);
    void (*finish)(void *self, struct dynamo_call *call);
    int64_t (*now_ms)(void *self);   /* since 1970; may jump */
    int64_t (*ticks_us)(void *self); /* never goes back */
    /* Whether the database has transactions; may wait, and is not called on a task's stack. NULL: it has. */
    bool (*has_transactions)(void *self);
};

/* ---- the host ---- */

struct task_host *task_host_new(const struct task_environment *environment, uint64_t seed);
/* On the door and the clock, which are kept. NULL: the system's clock. */
struct task_host *task_host_open(struct dynamo *dynamo, const struct clock *clock);
/* No call of the door may be under way; what else is completed later is freed then. */
void task_host_free(struct task_host *host);

/* Does what can be done now. Answers after how many microseconds something is due; less than 0: never. */
int64_t task_host_step(struct task_host *host);
/* Sleeps until something comes, at most so long; less than 0: as long as it takes. */
void task_host_sleep(struct task_host *host, int64_t us);
/* Steps and sleeps until the last task has ended. */
void task_host_run(struct task_host *host);
/* From any thread: the next sleep ends at once. */
void task_host_wake(struct task_host *host);

/* A word from another thread; its owner's. */
struct task_note {
    void (*run)(struct task_note *note);  /* on the host's thread, not in a task: it may begin one and give signals */
    void (*drop)(struct task_note *note); /* instead, when the host is freed first; NULL: there is nothing to free */
    struct task_note *next;
};
void task_host_post(struct task_host *host, struct task_note *note);

struct random *task_host_random(struct task_host *host);
int64_t task_host_now_ms(const struct task_host *host);
int64_t task_host_ticks_us(const struct task_host *host);
/* Tasks that have not ended; calls of the door under way. */
size_t task_host_count(const struct task_host *host);
size_t task_host_calls(const struct task_host *host);

/* ---- tasks ---- */

/* Begins one, on the host's thread (or before it has any); it runs within the next step, or this one. */
void task_begin(struct task_host *host, void (*run)(void *argument), void *argument);

/* All that follows is for the task that runs. */

/* The task's own arena, freed with it. A task that goes on for long rewinds it (arena_mark). */
struct arena *task_arena(void);
struct task_host *task_own_host(void);
/* Runs it on the thread's own stack, which is large, and comes back: for what goes deep (calls of the door do so). */
void task_outside(void (*run)(void *argument), void *argument);

/* A moment by either clock, whichever comes first; HEAP_NEVER: not by this one. */
struct task_moment {
    int64_t ticks_us, now_ms;
};
#define TASK_NEVER ((struct task_moment){HEAP_NEVER, HEAP_NEVER})
/* So long from now, by both clocks: a clock that jumps ahead ends it early. */
struct task_moment task_after_us(const struct task_host *host, int64_t us);
bool task_moment_is_over(const struct task_host *host, const struct task_moment *moment);

/* What tasks wait for. Zeroed: nobody waits. */
struct task_signal {
    struct task *first, *last;
};
/* True: the signal was given; false: the moment has come. */
bool task_await(struct task_signal *signal, struct task_moment until);
void task_pause_us(int64_t us);
/* All who wait for it go on, soon. Of tasks, notes and whoever owns the host while no step runs. */
void task_signal_give(struct task_signal *signal);

/* ---- calls of the door ---- */

struct task_reply {
    int status;
    enum dynamo_fault fault;
    struct slice error, body; /* until the task's next call, or its end */
};

/* A call to be written: its request, and of `call` what the operation takes (cause, in_order, ...). The task's until
 * its next one. */
struct task_completion;
struct task_call;
struct task_call *task_call_new(const char *operation);
struct buf *task_call_request(struct task_call *call);
struct dynamo_call *task_call_options(struct task_call *call);
/* Makes the call and waits for its reply. */
struct task_reply task_send(struct task_call *call);
/* The same for a request that is there already. */
struct task_reply task_request(const char *operation, struct slice request);
/* The service's words for an error. */
struct slice task_reply_message(const struct task_reply *reply);

/* Whether the database has transactions, as far as anybody can tell. */
bool task_has_transactions(void);

/* For tests whose environment drops a call that it has begun: with its host. */
void task_call_drop(struct dynamo_call *call);

/* ---- commits: one decision with its consequences (commit.c) ---- */

/* Actions are texts as TransactWriteItems takes them, {"Put":{...}}, {"Update":{...}} or {"Delete":{...}} as we write
 * them, without white space around; lists of them are joined by commas, and may be empty.
 *
 * Where the database has transactions a commit is one transaction, or a plain write of the anchor where there is
 * nothing else. Where it has none, effects, children, the anchor and removals are written in this order, one by one.
 *
 *  O5. The anchor decides: it has a condition that holds once. What is not decided is repeated with the same texts,
 *      by whoever comes next, and ends as if nothing had been in between.
 *  O6. Children are repeatable: each has a key that follows from the cause, and made twice it is there once. One whose
 *      condition fails is there already. A child without its anchor is harmless.
 *  O7. Effects go to tables of others, and happen once: without a transaction the item itself keeps the names of the
 *      last effects on it. There can only be one then, a Put or an Update.
 *  O8. An anchor that ends something leaves a tombstone with an expiry where there are no transactions: a late repeat
 *      of the write that began it must find that.
 *  O9. Removals follow from the anchor and may be made late: whoever meets a tombstone makes what is left of them. */
struct task_commit {
    struct slice anchor;
    struct slice tombstone; /* instead of the anchor where there are no transactions; empty: the same */
    struct slice children, removals;
    struct slice effects; /* members as a function wrote them */
    /* Of effects: who makes them (a lane, a call), and a name for this decision among those of that source. A later
     * decision of the source may make it forget this one. */
    struct slice source, marker;
    struct slice cause; /* these two as in dynamo_call */
    bool in_order;
    /* Without a transaction nothing is written from this moment on, by the host's ticks: a lease ends. 0: whenever. */
    int64_t until_us;
};

enum task_commit_end {
    COMMIT_DONE,
    COMMIT_CONDITION, /* the anchor's condition did not hold: somebody else has decided, or this commit before */
    COMMIT_REFUSED,   /* it cannot be done, and could not the next time */
    COMMIT_MAY_PASS,  /* it is not known, or not decided yet: the same commit again, after a pause */
};
enum task_commit_part { COMMIT_ANCHOR, COMMIT_EFFECT, COMMIT_CHILD, COMMIT_REMOVAL };

/* Texts are in the task's arena. */
struct task_commit_reply {
    enum task_commit_end end;
    struct slice item; /* CONDITION: the item, where the anchor asks for ALL_OLD; SLICE_NONE: there is none */
    /* REFUSED: whose fault it is, which of these (from 1; 0: not known), and why. Without transactions an effect
     * has happened where a child or the anchor is refused. */
    enum task_commit_part part;
    unsigned number;
    enum dynamo_fault fault;
    struct slice error, message;
    bool is_busy; /* MAY_PASS: somebody else was at an item; nothing happened */
};

struct task_commit_reply task_commit(const struct task_commit *commit);
/* The same from outside of any task, on a host that has no others: waits. Texts are in the arena. */
struct task_commit_reply task_commit_wait(struct task_host *host, const struct task_commit *commit,
                                          struct arena *arena);
/* An action by itself. */
struct task_reply task_action(struct slice action);

/* The attribute by which items tell which effects were applied to them: a list of strings. */
#define TASK_APPLIED "quipu:applied"

/* ---- what others complete ---- */

struct task_inbox;

/* Something that is begun by the task and completed on any thread. A member of what is completed, which must live until
 * then; `release` frees that when no task waits for it any more. */
struct task_completion {
    void (*release)(struct task_completion *completion);
    struct task_signal *signal; /* given when it is done, for a task that waits for more than that; or NULL */
    /* private */
    struct task_completion *next;
    struct task_inbox *inbox;
    struct task *task;
    bool is_abandoned;
    /* for those who wait for its signal */
    bool is_done;
};
void task_completion_begin(struct task_completion *completion, void (*release)(struct task_completion *completion));
/* From any thread, once. */
void task_completion_done(struct task_completion *completion);
/* Waits for it. False: the moment has come first. */
bool task_await_completion(struct task_completion *completion, struct task_moment until);
/* Nobody waits for it any more: it is released now or when it is done. */
void task_completion_abandon(struct task_completion *completion);

#endif
