/* Threads that take jobs from one queue, for what takes long or waits. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

struct workers;

struct workers *workers_new(unsigned threads);
/* Some thread will call run(context, job). */
void workers_run(struct workers *workers, void (*run)(void *context, void *job), void *context, void *job);
/* Waits until all jobs are done. NULL is fine. */
void workers_free(struct workers *workers);

#endif
