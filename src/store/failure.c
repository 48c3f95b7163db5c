/* Readers on any thread and the one writer share store->error; see failure.h for the order in which it may
 * change. */
#include "store/failure.h"

#include <stdio.h>

#include "base/fail.h"

void failure_init(struct failure *failure)
{
    ensure(pthread_mutex_init(&failure->lock, NULL) == 0);
    failure->any_read = failure->writes_refused = false;
}

void failure_free(struct failure *failure)
{
    pthread_mutex_destroy(&failure->lock);
}

enum store_result failure_of_read(struct failure *failure, struct store *store, const char *words)
{
    pthread_mutex_lock(&failure->lock);
    if (!failure->any_read) snprintf(store->error, sizeof store->error, "%s", words);
    failure->any_read = true;
    pthread_mutex_unlock(&failure->lock);
    return STORE_FAILED;
}

enum store_result failure_of_write(struct failure *failure, struct store *store, const char *words)
{
    ensure(!failure->writes_refused);
    pthread_mutex_lock(&failure->lock);
    snprintf(store->error, sizeof store->error, "%s", words);
    failure->any_read = failure->writes_refused = true;
    pthread_mutex_unlock(&failure->lock);
    return STORE_FAILED;
}
