/* Stacks, and the switch from one to another.
 *
 * A new stack is entered once by makecontext; from then on it is switched to and from by _setjmp and _longjmp, which
 * save a few registers and call no kernel. Its first function, stack_run, never ends: it takes one body after the
 * other. So a stack that is used again costs nothing to prepare. A fiber that is dropped is gone on with once more, and
 * jumps back into stack_run.
 *
 * Both sanitizers must be told of every switch, or they take it for a stack that overflows (address) or for two
 * threads at one time (thread). */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an attack */
#include "fiber/fiber.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (4 * LIMIT_FIBER_STACK_BYTES) /* their frames are larger */
#else
#define STACK_BYTES LIMIT_FIBER_STACK_BYTES
#endif

/* A place to jump to, on some stack. */
struct place {
    jmp_buf registers;
    const void *stack;
    size_t stack_bytes;
    void *address_shadow; /* AddressSanitizer's */
    void *thread_shadow;  /* ThreadSanitizer's */
};

/* Stands at the upper end of its own stack. */
struct fiber {
    _Alignas(64) void (*body)(void *argument);
    void *argument;
    struct place here;   /* where it waits */
    struct place *there; /* who runs it, while it does */
    struct fiber *outer; /* that ran on the thread when this one was gone on with */
    jmp_buf beginning;   /* in stack_run, for one that is dropped */
    bool is_over, is_dropped;
    _Atomic bool is_running;
    struct fiber *next, *before; /* among those in use, or (next only) among those kept for later */
};

/* script/gdb.py reads it. */
static struct {
    pthread_mutex_t lock;
    struct fiber *kept, *in_use;
    uint64_t kept_count, in_use_count, begun;
    size_t used_most; /* of those that were given back to the system */
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct fiber *current;

/* The address of a variable of a thread must not be kept across a switch, after which the thread may be another. */
#define OF_THIS_THREAD __attribute__((noinline))

static OF_THIS_THREAD void current_set(struct fiber *fiber)
{
    current = fiber;
}

OF_THIS_THREAD struct fiber *fiber_current(void)
{
    return current;
}

/* ---- the switch ---- */

static void place_leave(struct place *from, const struct place *to)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->address_shadow, to->stack, to->stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to->thread_shadow, 0);
#endif
    (void)from, (void)to;
}

/* `from`: who has switched, where his stack is not known yet. */
static void place_arrive(const struct place *at, struct place *from)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(at->address_shadow, from ? &from->stack : NULL,
                                    from ? &from->stack_bytes : NULL);
#endif
    (void)at, (void)from;
}

static void place_switch(struct place *from, struct place *to)
{
    if (_setjmp(from->registers) == 0) {
        place_leave(from, to);
        _longjmp(to->registers, 1);
    }
    place_arrive(from, NULL);
}

/* ---- on a stack of its own ---- */

static void fiber_leave(struct fiber *fiber)
{
    if (_setjmp(fiber->here.registers) == 0) {
        place_leave(&fiber->here, fiber->there);
        _longjmp(fiber->there->registers, 1);
    }
    place_arrive(&fiber->here, fiber->there);
}

static struct fiber *entered; /* by makecontext, which passes numbers only; under stacks.lock */

static void stack_run(void)
{
    struct fiber *fiber = entered;
    place_arrive(&fiber->here, fiber->there);
    for (;;) {
        fiber_leave(fiber);
        if (_setjmp(fiber->beginning) == 0) fiber->body(fiber->argument);
        fiber->is_over = true;
    }
}

_Noreturn void fiber_end(void)
{
    struct fiber *fiber = fiber_current();
    ensure(fiber);
    _longjmp(fiber->beginning, 1);
}

void fiber_wait(void)
{
    struct fiber *fiber = fiber_current();
    ensure(fiber);
    fiber_leave(fiber);
    if (fiber->is_dropped) fiber_end();
}

/* ---- stacks ---- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static char *stack_of(const struct fiber *fiber)
{
    return (char *)fiber + sizeof *fiber - STACK_BYTES;
}

/* Enters the stack for the first time, and comes back when it waits for its first body. */
static void stack_enter(struct fiber *fiber)
{
    struct place here = {0};
    ucontext_t context;
    ensure(getcontext(&context) == 0);
    context.uc_stack.ss_sp = stack_of(fiber);
    context.uc_stack.ss_size = fiber->here.stack_bytes;
    context.uc_link = NULL;
    makecontext(&context, stack_run, 0);
#ifdef __SANITIZE_THREAD__
    here.thread_shadow = __tsan_get_current_fiber();
#endif
    fiber->there = &here;
    entered = fiber;
    if (_setjmp(here.registers) == 0) {
        place_leave(&here, &fiber->here);
        setcontext(&context); /* AddressSanitizer warns of swapcontext, wherever it is called */
    }
    place_arrive(&here, NULL);
}

static struct fiber *stack_new(void)
{
    size_t guard = page_bytes();
    char *memory = mmap(NULL, guard + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    ensure(memory != MAP_FAILED && mprotect(memory, guard, PROT_NONE) == 0);
    struct fiber *fiber = (struct fiber *)(void *)(memory + guard + STACK_BYTES - sizeof *fiber);
    fiber->here.stack = memory + guard;
    fiber->here.stack_bytes = STACK_BYTES - sizeof *fiber;
#ifdef __SANITIZE_THREAD__
    fiber->here.thread_shadow = __tsan_create_fiber(0);
#endif
    return fiber;
}

static void stack_free(struct fiber *fiber)
{
    size_t guard = page_bytes();
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(fiber->here.thread_shadow);
#endif
    munmap(stack_of(fiber) - guard, guard + STACK_BYTES);
}

/* Pages are touched from the upper end down, and those that were stay in memory. Under the lock, of a stack that
 * nobody uses. */
static void note_used(const struct fiber *fiber)
{
    unsigned char pages[STACK_BYTES / 4096];
    size_t page = page_bytes(), count = STACK_BYTES / page, first = 0;
    if (mincore(stack_of(fiber), STACK_BYTES, pages) != 0) return;
    while (first < count && !(pages[first] & 1)) first++;
    if ((count - first) * page > stacks.used_most) stacks.used_most = (count - first) * page;
}

static struct fiber *stack_take(void)
{
    pthread_mutex_lock(&stacks.lock);
    struct fiber *fiber = stacks.kept;
    if (fiber) {
        stacks.kept = fiber->next;
        stacks.kept_count--;
    } else {
        fiber = stack_new();
        stack_enter(fiber);
    }
    fiber->before = NULL;
    fiber->next = stacks.in_use;
    if (fiber->next) fiber->next->before = fiber;
    stacks.in_use = fiber;
    stacks.in_use_count++;
    stacks.begun++;
    pthread_mutex_unlock(&stacks.lock);
    return fiber;
}

static void stack_give(struct fiber *fiber)
{
    pthread_mutex_lock(&stacks.lock);
    bool fits = stacks.kept_count < LIMIT_FIBER_STACKS_KEPT;
    *(fiber->before ? &fiber->before->next : &stacks.in_use) = fiber->next;
    if (fiber->next) fiber->next->before = fiber->before;
    stacks.in_use_count--;
    if (!fits) note_used(fiber);
    if (fits) {
        fiber->next = stacks.kept;
        stacks.kept = fiber;
        stacks.kept_count++;
    }
    pthread_mutex_unlock(&stacks.lock);
    if (!fits) stack_free(fiber);
}

/* ---- for those who run fibers ---- */

bool fiber_resume(struct fiber *fiber)
{
    struct place here = {0};
    ensure(fiber != fiber_current());
#ifdef __SANITIZE_THREAD__
    here.thread_shadow = __tsan_get_current_fiber();
#endif
    fiber->there = &here;
    fiber->outer = fiber_current();
    current_set(fiber);
    atomic_store_explicit(&fiber->is_running, true, memory_order_relaxed);
    place_switch(&here, &fiber->here);
    atomic_store_explicit(&fiber->is_running, false, memory_order_relaxed);
    current_set(fiber->outer);
    if (!fiber->is_over) return true;
    stack_give(fiber);
    return false;
}

struct fiber *fiber_start(void (*body)(void *argument), void *argument)
{
    struct fiber *fiber = stack_take();
    fiber->body = body;
    fiber->argument = argument;
    fiber->is_over = fiber->is_dropped = false;
    return fiber_resume(fiber) ? fiber : NULL;
}

void fiber_drop(struct fiber *fiber)
{
    fiber->is_dropped = true;
    ensure(!fiber_resume(fiber));
}

/* ---- numbers ---- */

struct fiber_counts fiber_count(void)
{
    pthread_mutex_lock(&stacks.lock);
    for (const struct fiber *fiber = stacks.kept; fiber; fiber = fiber->next) note_used(fiber);
    struct fiber_counts counts = {.begun = stacks.begun,
                                  .kept = stacks.kept_count,
                                  .stack_bytes = STACK_BYTES,
                                  .stack_used_bytes = stacks.used_most};
    for (struct fiber *fiber = stacks.in_use; fiber; fiber = fiber->next)
        counts.running += atomic_load_explicit(&fiber->is_running, memory_order_relaxed);
    counts.waiting = stacks.in_use_count - counts.running;
    pthread_mutex_unlock(&stacks.lock);
    return counts;
}

void fiber_trim(void)
{
    pthread_mutex_lock(&stacks.lock);
    struct fiber *fiber = stacks.kept;
    for (const struct fiber *each = fiber; each; each = each->next) note_used(each);
    stacks.kept = NULL;
    stacks.kept_count = 0;
    pthread_mutex_unlock(&stacks.lock);
    while (fiber) {
        struct fiber *next = fiber->next;
        stack_free(fiber);
        fiber = next;
    }
}
