/* Conditions of threads, by the clock that never goes back (monotonic_us). */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cond_init(pthread_cond_t *condition);
/* Waits for a signal, with the lock held; INT64_MAX: as long as it takes. False: the moment has come. As with any
 * condition, it may also return for nothing. */
bool cond_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_us);

#endif
