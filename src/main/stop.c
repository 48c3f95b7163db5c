/* The end by signals; see stop.h.
 *
 * A handler may do next to nothing, and an orderly end waits for functions while the loops still serve them:
 * so the handler only posts, and a thread that waits for that does the rest. Whoever signals twice is in a
 * hurry. Nothing that was acknowledged is lost by that: it has been on disk before. */
#include "main/stop.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/fail.h"

#define BY_SIGNAL 128 /* what shells add to a signal's number */

static struct {
    void (*orderly)(void *context);
    void *context;
    sem_t wanted;
    pthread_t thread;
    _Atomic bool is_over; /* nothing is left to be stopped */
    _Atomic unsigned signals;
} stop;

static void note_signal(int number)
{
    if (atomic_fetch_add(&stop.signals, 1)) _exit(BY_SIGNAL + number);
    sem_post(&stop.wanted);
}

static void *run(void *unused)
{
    (void)unused;
    while (sem_wait(&stop.wanted) != 0) {
        /* a debugger's doing */
    }
    if (!atomic_load(&stop.is_over)) stop.orderly(stop.context);
    return NULL;
}

static void start_thread(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ensure(pthread_create(&stop.thread, NULL, run, NULL) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stop_expect(void (*orderly)(void *context), void *context)
{
    struct sigaction noted = {.sa_handler = note_signal};
    stop.orderly = orderly;
    stop.context = context;
    ensure(sem_init(&stop.wanted, 0, 0) == 0);
    start_thread();
    sigaction(SIGTERM, &noted, NULL);
    sigaction(SIGINT, &noted, NULL);
}

void stop_settle(void)
{
    atomic_store(&stop.is_over, true);
    sem_post(&stop.wanted);
    pthread_join(stop.thread, NULL);
}
