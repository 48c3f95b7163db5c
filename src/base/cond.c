/* Conditions of threads: POSIX' own wait by the wall clock, which may jump, unless they are told otherwise. */
#include "base/cond.h"

#include <errno.h>
#include <time.h>

#include "base/fail.h"

void cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    ensure(pthread_condattr_init(&monotonic) == 0 &&
           pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    ensure(pthread_cond_init(condition, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

bool cond_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    if (until_us != INT64_MAX) return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
    pthread_cond_wait(condition, lock);
    return true;
}
