/* What both implementations do about failures: remember the words, and after a failed write refuse all others
 * (S3). */
#ifndef STORE_FAILURE_H
#define STORE_FAILURE_H

#include <pthread.h>

#include "store/store.h"

struct failure {
    pthread_mutex_t lock; /* over store->error and any_read */
    bool any_read;        /* a failed read has left its words */
    bool writes_refused;  /* writer's thread only */
};

void failure_init(struct failure *failure);
void failure_free(struct failure *failure);

/* Both answer STORE_FAILED. The first failed read keeps its words until a write fails; the first failed write
 * keeps them for good. So the text changes at most twice and never under the writer that reads it. */
enum store_result failure_of_read(struct failure *failure, struct store *store, const char *words);
enum store_result failure_of_write(struct failure *failure, struct store *store, const char *words);

#endif
