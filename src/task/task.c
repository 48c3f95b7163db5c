/* Tasks and the host that runs them; see task.h. */
#include "task/internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/cond.h"
#include "base/fail.h"
#include "fiber/fiber.h"

#define SPARE_CALLS      64
#define SPARE_CALL_BYTES (2 * 1024 * 1024) /* a call whose buffers have grown larger is given back */
#define CLOCK_LOOK_US                                                                                        \
    100000 /* the clock may jump: it is looked at so often while somebody waits for its moment */

/* What other threads leave for the host. It outlives the host while something is still to be completed. */
struct task_inbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct task_completion *first, *last;
    struct task_note *first_note, *last_note;
    bool is_woken, is_closed;
    _Atomic uint32_t references; /* the host's, and one for each completion under way */
};

struct task_call {
    struct task_completion completion;
    struct task_host *host;
    struct task_call *next; /* where it is spare */
    struct dynamo_call call;
    struct arena arena;
    struct buf request, reply;
    bool is_over; /* as soon as it was begun */
};

struct task {
    struct ring all;
    struct task_host *host;
    struct fiber *fiber; /* NULL: not begun yet */
    void (*run)(void *argument);
    void *argument;
    struct arena arena;
    struct task_call *call; /* the last one; its reply may be read */
    struct task *next;      /* among those that are ready, or that wait for the same signal */
    struct task_signal *signal;
    struct task_completion *completion; /* that it waits for */
    struct heap_place by_us, by_ms;
    void (*outside)(void *argument); /* what the host shall do for it, on the thread's own stack */
    void *outside_argument;
    bool is_ready, was_told;
};

struct task_host {
    struct task_environment environment;
    struct task_inbox *inbox;
    struct ring all;
    size_t count, calls;
    struct task *ready_first, *ready_last;
    struct heap by_us, by_ms;
    struct random random;
    bool has_turn; /* calls were begun and not handed over */
    struct task_call *spare;
    unsigned spare_count;
    struct task_applied applied;
    bool has_no_transactions; /* a call has found it out */
    /* of task_host_open */
    struct dynamo *dynamo;
    const struct clock *clock;
    struct dynamo_turn turn;
};

static _Thread_local struct task *current;

/* ---- the inbox ---- */

static struct task_inbox *inbox_new(void)
{
    struct task_inbox *inbox = must_zero(1, sizeof *inbox);
    pthread_mutex_init(&inbox->lock, NULL);
    cond_init(&inbox->filled);
    atomic_init(&inbox->references, 1);
    return inbox;
}

static void inbox_release(struct task_inbox *inbox)
{
    if (atomic_fetch_sub_explicit(&inbox->references, 1, memory_order_acq_rel) != 1) return;
    pthread_cond_destroy(&inbox->filled);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox);
}

void task_host_wake(struct task_host *host)
{
    struct task_inbox *inbox = host->inbox;
    pthread_mutex_lock(&inbox->lock);
    inbox->is_woken = true;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

void task_host_post(struct task_host *host, struct task_note *note)
{
    struct task_inbox *inbox = host->inbox;
    note->next = NULL;
    pthread_mutex_lock(&inbox->lock);
    *(inbox->last_note ? &inbox->last_note->next : &inbox->first_note) = note;
    inbox->last_note = note;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

void task_host_sleep(struct task_host *host, int64_t us)
{
    struct task_inbox *inbox = host->inbox;
    int64_t until_us = us < 0 ? INT64_MAX : monotonic_us() + us;
    pthread_mutex_lock(&inbox->lock);
    while (!inbox->first && !inbox->first_note && !inbox->is_woken)
        if (!cond_wait_until(&inbox->filled, &inbox->lock, until_us)) break;
    pthread_mutex_unlock(&inbox->lock);
}

/* ---- the host ---- */

struct task_host *task_host_new(const struct task_environment *environment, uint64_t seed)
{
    struct task_host *host = must_zero(1, sizeof *host);
    host->environment = *environment;
    host->inbox = inbox_new();
    ring_init(&host->all);
    random_seed(&host->random, seed);
    return host;
}

static bool door_begin(void *self, struct dynamo_call *call)
{
    struct task_host *host = self;
    return dynamo_begin(host->dynamo, call, &host->turn);
}

static void door_turn_end(void *self)
{
    struct task_host *host = self;
    dynamo_turn_end(host->dynamo, &host->turn);
}

static void door_finish(void *self, struct dynamo_call *call)
{
    (void)self;
    dynamo_finish(call);
}

static bool door_has_transactions(void *self)
{
    return dynamo_kind_ask(((struct task_host *)self)->dynamo) != DYNAMO_KIND_ALTERNATOR;
}

static int64_t door_now_ms(void *self)
{
    return clock_now_ms(((struct task_host *)self)->clock);
}

static int64_t door_ticks_us(void *self)
{
    (void)self;
    return monotonic_us();
}

struct task_host *task_host_open(struct dynamo *dynamo, const struct clock *clock)
{
    static const struct task_environment environment = {.begin = door_begin,
                                                        .turn_end = door_turn_end,
                                                        .finish = door_finish,
                                                        .has_transactions = door_has_transactions,
                                                        .now_ms = door_now_ms,
                                                        .ticks_us = door_ticks_us};
    struct task_host *host = task_host_new(&environment, 0);
    host->environment.self = host;
    host->dynamo = dynamo;
    host->clock = clock ? clock : &clock_system;
    random_seed_from_system(&host->random);
    return host;
}

static void call_free(struct task_call *call)
{
    arena_free(&call->arena);
    buf_free(&call->request);
    buf_free(&call->reply);
    free(call);
}

static void task_drop(struct task *task);

static void completion_take(struct task_completion *completion);

/* What has come and was not taken belongs to tasks that are gone. */
static void inbox_close(struct task_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->is_closed = true;
    struct task_completion *completions = inbox->first;
    struct task_note *notes = inbox->first_note;
    inbox->first = inbox->last = NULL;
    inbox->first_note = inbox->last_note = NULL;
    pthread_mutex_unlock(&inbox->lock);
    while (completions) {
        struct task_completion *next = completions->next;
        completions->is_abandoned = true;
        completion_take(completions);
        completions = next;
    }
    while (notes) {
        struct task_note *next = notes->next;
        if (notes->drop) notes->drop(notes);
        notes = next;
    }
}

void task_host_free(struct task_host *host)
{
    ensure(!current);
    ring_each(struct task, task, all, &host->all) task_drop(task);
    inbox_close(host->inbox);
    ensure(!host->calls);
    inbox_release(host->inbox);
    while (host->spare) {
        struct task_call *call = host->spare;
        host->spare = call->next;
        call_free(call);
    }
    heap_free(&host->by_us);
    heap_free(&host->by_ms);
    free(host);
}

struct random *task_host_random(struct task_host *host)
{
    return &host->random;
}

int64_t task_host_now_ms(const struct task_host *host)
{
    return host->environment.now_ms(host->environment.self);
}

int64_t task_host_ticks_us(const struct task_host *host)
{
    return host->environment.ticks_us(host->environment.self);
}

size_t task_host_count(const struct task_host *host)
{
    return host->count;
}

size_t task_host_calls(const struct task_host *host)
{
    return host->calls;
}

/* ---- tasks that go on ---- */

static void task_is_ready(struct task *task)
{
    struct task_host *host = task->host;
    if (task->is_ready) return;
    task->is_ready = true;
    task->next = NULL;
    *(host->ready_last ? &host->ready_last->next : &host->ready_first) = task;
    host->ready_last = task;
}

/* Whatever it waited for, it waits no more. */
static void task_wake(struct task *task, bool was_told)
{
    struct task_host *host = task->host;
    if (task->signal) {
        struct task **link = &task->signal->first, *last = NULL;
        for (; *link != task; link = &(*link)->next) last = *link;
        *link = task->next;
        if (task->signal->last == task) task->signal->last = last;
        task->signal = NULL;
    }
    if (task->completion) task->completion->task = NULL;
    task->completion = NULL;
    heap_remove(&host->by_us, &task->by_us);
    heap_remove(&host->by_ms, &task->by_ms);
    task->was_told = was_told;
    task_is_ready(task);
}

void task_begin(struct task_host *host, void (*run)(void *argument), void *argument)
{
    struct task *task = must_zero(1, sizeof *task);
    task->host = host;
    task->run = run;
    task->argument = argument;
    ring_append(&host->all, &task->all);
    host->count++;
    task_is_ready(task);
}

static void call_retire(struct task_call *call);

static void task_free(struct task *task)
{
    struct task_host *host = task->host;
    ring_remove(&task->all);
    host->count--;
    if (task->call) call_retire(task->call);
    arena_free(&task->arena);
    free(task);
}

static void task_drop(struct task *task)
{
    if (task->completion) {
        task->completion->task = NULL;
        task->completion->is_abandoned = true;
        if (task->call && task->completion == &task->call->completion) task->call = NULL;
    }
    heap_remove(&task->host->by_us, &task->by_us);
    heap_remove(&task->host->by_ms, &task->by_ms);
    if (task->fiber) fiber_drop(task->fiber);
    task_free(task);
}

static void task_body(void *argument)
{
    struct task *task = argument;
    task->run(task->argument);
}

static void task_resume(struct task *task)
{
    bool goes_on;
    do {
        current = task;
        if (!task->fiber) {
            task->fiber = fiber_start(task_body, task);
            goes_on = task->fiber != NULL;
        } else {
            goes_on = fiber_resume(task->fiber);
        }
        current = NULL;
        void (*outside)(void *argument) = goes_on ? task->outside : NULL;
        if (!outside) break;
        task->outside = NULL;
        outside(task->outside_argument);
    } while (true);
    if (!goes_on) task_free(task);
}

void task_outside(void (*run)(void *argument), void *argument)
{
    current->outside = run;
    current->outside_argument = argument;
    fiber_wait();
}

/* Gives the thread back until somebody wakes the task. */
static bool task_wait_here(struct task *task, struct task_moment until)
{
    heap_set(&task->host->by_us, &task->by_us, until.ticks_us);
    heap_set(&task->host->by_ms, &task->by_ms, until.now_ms);
    fiber_wait();
    return task->was_told;
}

struct arena *task_arena(void)
{
    return &current->arena;
}

struct task_host *task_own_host(void)
{
    return current->host;
}

/* ---- signals and moments ---- */

struct task_moment task_after_us(const struct task_host *host, int64_t us)
{
    return (struct task_moment){task_host_ticks_us(host) + us, task_host_now_ms(host) + (us + 999) / 1000};
}

bool task_moment_is_over(const struct task_host *host, const struct task_moment *moment)
{
    return task_host_ticks_us(host) >= moment->ticks_us || task_host_now_ms(host) >= moment->now_ms;
}

bool task_await(struct task_signal *signal, struct task_moment until)
{
    struct task *task = current;
    task->next = NULL;
    task->signal = signal;
    if (signal->last)
        signal->last->next = task;
    else
        signal->first = task;
    signal->last = task;
    return task_wait_here(task, until);
}

void task_pause_us(int64_t us)
{
    struct task *task = current;
    task_wait_here(task, (struct task_moment){task_host_ticks_us(task->host) + us, HEAP_NEVER});
}

void task_signal_give(struct task_signal *signal)
{
    struct task *task = signal->first;
    signal->first = signal->last = NULL;
    while (task) {
        struct task *next = task->next;
        task->signal = NULL;
        task_wake(task, true);
        task = next;
    }
}

/* ---- completions ---- */

void task_completion_begin(struct task_completion *completion,
                           void (*release)(struct task_completion *completion))
{
    struct task_inbox *inbox = current->host->inbox;
    *completion = (struct task_completion){.release = release, .inbox = inbox};
    atomic_fetch_add_explicit(&inbox->references, 1, memory_order_relaxed);
}

void task_completion_done(struct task_completion *completion)
{
    struct task_inbox *inbox = completion->inbox;
    completion->next = NULL;
    pthread_mutex_lock(&inbox->lock);
    bool is_closed = inbox->is_closed;
    if (!is_closed) {
        *(inbox->last ? &inbox->last->next : &inbox->first) = completion;
        inbox->last = completion;
        pthread_cond_signal(&inbox->filled);
    }
    pthread_mutex_unlock(&inbox->lock);
    if (!is_closed) return;
    completion->release(completion);
    inbox_release(inbox);
}

/* On the host's thread. */
static void completion_take(struct task_completion *completion)
{
    inbox_release(completion->inbox);
    completion->is_done = true;
    if (completion->is_abandoned)
        completion->release(completion);
    else if (completion->task)
        task_wake(completion->task, true);
    else if (completion->signal)
        task_signal_give(completion->signal);
}

bool task_await_completion(struct task_completion *completion, struct task_moment until)
{
    if (completion->is_done) return true;
    completion->task = current;
    current->completion = completion;
    return task_wait_here(current, until);
}

void task_completion_abandon(struct task_completion *completion)
{
    completion->is_abandoned = true;
    if (completion->is_done) completion->release(completion);
}

/* ---- calls ---- */

/* Kept for the next one, with its memory. */
static void call_retire(struct task_call *call)
{
    struct task_host *host = call->host;
    if (host->spare_count == SPARE_CALLS || call->request.cap + call->reply.cap > SPARE_CALL_BYTES) {
        call_free(call);
        return;
    }
    arena_reset(&call->arena);
    call->request.len = call->reply.len = 0;
    call->next = host->spare;
    host->spare = call;
    host->spare_count++;
}

struct task_call *task_call_new(const char *operation)
{
    struct task *task = current;
    struct task_host *host = task->host;
    if (task->call) call_retire(task->call);
    struct task_call *call = host->spare;
    if (call) {
        host->spare = call->next;
        host->spare_count--;
    } else {
        call = must_zero(1, sizeof *call);
    }
    call->host = host;
    call->call = (struct dynamo_call){
        .name = slice_of(operation), .arena = &call->arena, .reply = &call->reply};
    task->call = call;
    return call;
}

struct buf *task_call_request(struct task_call *call)
{
    return &call->request;
}

struct dynamo_call *task_call_options(struct task_call *call)
{
    return &call->call;
}

static struct task_call *call_of(struct dynamo_call *call)
{
    return (struct task_call *)(void *)((char *)call - offsetof(struct task_call, call));
}

static struct task_call *call_of_completion(struct task_completion *completion)
{
    return (struct task_call *)(void *)((char *)completion - offsetof(struct task_call, completion));
}

static void call_done(struct dynamo_call *call)
{
    task_completion_done(&call_of(call)->completion);
}

/* Its task was dropped: the door is done with it now, too. */
static void call_release(struct task_completion *completion)
{
    struct task_call *call = call_of_completion(completion);
    call->host->calls--;
    call->host->environment.finish(call->host->environment.self, &call->call);
    call_free(call);
}

void task_call_drop(struct dynamo_call *dynamo_call)
{
    struct task_call *call = call_of(dynamo_call);
    struct task *task = call->completion.task;
    if (task) {
        task->completion = NULL;
        task->call = NULL;
    }
    call->host->calls--;
    inbox_release(call->completion.inbox);
    call_free(call);
}

/* A read is done here and now, by all that lies below. */
static void call_begin(void *argument)
{
    struct task_call *call = argument;
    struct task_host *host = call->host;
    call->is_over = host->environment.begin(host->environment.self, &call->call);
    host->has_turn |= !call->is_over;
}

static void call_finish(void *argument)
{
    struct task_call *call = argument;
    call->host->environment.finish(call->host->environment.self, &call->call);
}

struct task_reply task_send(struct task_call *call)
{
    struct task_host *host = call->host;
    call->call.request = buf_view(&call->request);
    call->call.done = call_done;
    task_completion_begin(&call->completion, call_release);
    host->calls++;
    task_outside(call_begin, call);
    if (call->is_over) {
        inbox_release(call->completion.inbox);
    } else {
        task_await_completion(&call->completion, TASK_NEVER);
        task_outside(call_finish, call);
    }
    host->calls--;
    struct slice error = slice_of(call->call.error ? call->call.error : "");
    return (struct task_reply){.status = call->call.status,
                               .fault = dynamo_fault(call->call.status, error),
                               .error = error,
                               .body = buf_view(&call->reply)};
}

struct task_reply task_request(const char *operation, struct slice request)
{
    struct task_call *call = task_call_new(operation);
    buf_slice(&call->request, request);
    return task_send(call);
}

struct question {
    struct task_host *host;
    bool has_transactions;
};

static void ask_for_transactions(void *argument)
{
    struct question *question = argument;
    struct task_host *host = question->host;
    question->has_transactions = host->environment.has_transactions(host->environment.self);
}

bool task_has_transactions(void)
{
    struct question question = {current->host, true};
    if (question.host->has_no_transactions) return false;
    if (question.host->environment.has_transactions) task_outside(ask_for_transactions, &question);
    return question.has_transactions;
}

void task_has_no_transactions(void)
{
    current->host->has_no_transactions = true;
}

struct task_applied *task_applied(void)
{
    return &current->host->applied;
}

struct slice task_reply_message(const struct task_reply *reply)
{
    struct slice name, message;
    dynamo_error(reply->body, &current->arena, &name, &message);
    return message;
}

/* ---- stepping ---- */

static void inbox_take(struct task_host *host)
{
    struct task_inbox *inbox = host->inbox;
    pthread_mutex_lock(&inbox->lock);
    struct task_completion *completion = inbox->first;
    struct task_note *note = inbox->first_note;
    inbox->first = inbox->last = NULL;
    inbox->first_note = inbox->last_note = NULL;
    inbox->is_woken = false;
    pthread_mutex_unlock(&inbox->lock);
    while (completion) {
        struct task_completion *next = completion->next;
        completion_take(completion);
        completion = next;
    }
    while (note) {
        struct task_note *next = note->next;
        note->run(note);
        note = next;
    }
}

static void wake_due(struct task_host *host)
{
    int64_t ticks_us = task_host_ticks_us(host), now_ms = task_host_now_ms(host);
    while (heap_due(&host->by_us) <= ticks_us)
        task_wake(ring_owner(heap_first(&host->by_us), struct task, by_us), false);
    while (heap_due(&host->by_ms) <= now_ms)
        task_wake(ring_owner(heap_first(&host->by_ms), struct task, by_ms), false);
}

static void run_ready(struct task_host *host)
{
    while (host->ready_first) {
        struct task *task = host->ready_first;
        host->ready_first = task->next;
        if (!host->ready_first) host->ready_last = NULL;
        task->next = NULL;
        task->is_ready = false;
        task_resume(task);
    }
}

static int64_t due_in_us(const struct task_host *host)
{
    int64_t due_us = -1;
    if (host->by_us.count) {
        due_us = heap_due(&host->by_us) - task_host_ticks_us(host);
        if (due_us < 0) due_us = 0;
    }
    if (host->by_ms.count) {
        int64_t left_us = (heap_due(&host->by_ms) - task_host_now_ms(host)) * 1000;
        if (left_us > CLOCK_LOOK_US) left_us = CLOCK_LOOK_US;
        if (left_us < 0) left_us = 0;
        if (due_us < 0 || left_us < due_us) due_us = left_us;
    }
    return due_us;
}

int64_t task_host_step(struct task_host *host)
{
    ensure(!current);
    inbox_take(host);
    wake_due(host);
    run_ready(host);
    if (host->has_turn) {
        host->has_turn = false;
        host->environment.turn_end(host->environment.self);
    }
    return due_in_us(host);
}

void task_host_run(struct task_host *host)
{
    for (;;) {
        int64_t due_us = task_host_step(host);
        if (!host->count) return;
        if (due_us) task_host_sleep(host, due_us);
    }
}
