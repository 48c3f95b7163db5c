/* Fibers: ordinary functions that may wait.
 *
 * A fiber is a function on a small stack of its own. Whoever starts it runs it on his own thread until it waits
 * (fiber_wait) or ends, and goes on with it when what it waits for has come. So code that waits for a reply of
 * the network reads from top to bottom, its variables stay where they are, and no thread is held meanwhile.
 * A fiber knows nothing of what it waits for: that is said between it and whoever runs it.
 *
 *  W1. A fiber runs on the thread that goes on with it, and on one at a time. It may be another one each time, so
 *      what is kept across a wait must not be of a thread (errno, a lock, a variable with _Thread_local).
 *  W2. Nothing of a fiber runs after it has ended or was dropped: one that is dropped is not told. So what it owns
 *      beyond its stack belongs to somebody else, such as an arena.
 *  W3. A stack that is used up ends the process at once: below it lies a page that nobody may touch. So recursion
 *      in a fiber is bounded, and large arrays are not on its stack. */
#ifndef FIBER_FIBER_H
#define FIBER_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fiber;

/* Runs `body` until it waits. NULL: it has ended already. */
struct fiber *fiber_start(void (*body)(void *argument), void *argument);
/* Goes on with one that waits. False: it has ended, and is gone. */
bool fiber_resume(struct fiber *fiber);
/* Ends one that waits, where it stands. */
void fiber_drop(struct fiber *fiber);

/* Of the fiber that runs: gives the thread back to whoever started it or went on with it. */
void fiber_wait(void);
/* Of the fiber that runs: ends it here, whoever has called. */
_Noreturn void fiber_end(void);
/* The fiber that runs on this thread; NULL: none does. */
struct fiber *fiber_current(void);

struct fiber_counts {
    uint64_t begun;            /* since the process began */
    uint64_t waiting, running; /* running: on a thread at this moment */
    uint64_t kept;             /* stacks for later ones */
    size_t stack_bytes;        /* what each has */
    size_t stack_used_bytes;   /* the most that one has used which is over, in whole pages */
};
struct fiber_counts fiber_count(void);
/* Gives back the stacks that are kept for later. */
void fiber_trim(void);

#endif
