/* Threads that take jobs from one queue. */
#include "base/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/fail.h"

struct job {
    void (*run)(void *context, void *job);
    void *context, *job;
    struct job *next;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job *first, *last;
    bool ending;
    unsigned count;
    pthread_t *threads;
};

static struct job *job_take(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    while (!workers->first && !workers->ending) pthread_cond_wait(&workers->more, &workers->lock);
    struct job *job = workers->first;
    if (job) workers->first = job->next;
    if (!workers->first) workers->last = NULL;
    pthread_mutex_unlock(&workers->lock);
    return job;
}

static void *work(void *context)
{
    struct job *job;
    while ((job = job_take(context))) {
        job->run(job->context, job->job);
        free(job);
    }
    return NULL;
}

struct workers *workers_new(unsigned threads)
{
    struct workers *workers = must_zero(1, sizeof *workers);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->more, NULL);
    workers->threads = must_zero(threads, sizeof *workers->threads);
    workers->count = threads;
    sigset_t all, before; /* signals are for the thread that runs the server */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < threads; i++)
        ensure(pthread_create(&workers->threads[i], NULL, work, workers) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return workers;
}

void workers_run(struct workers *workers, void (*run)(void *context, void *job), void *context,
                 void *of_caller)
{
    struct job *job = must_zero(1, sizeof *job);
    *job = (struct job){.run = run, .context = context, .job = of_caller};
    pthread_mutex_lock(&workers->lock);
    if (workers->last)
        workers->last->next = job;
    else
        workers->first = job;
    workers->last = job;
    pthread_cond_signal(&workers->more);
    pthread_mutex_unlock(&workers->lock);
}

void workers_free(struct workers *workers)
{
    if (!workers) return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->more);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->count; i++) pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->lock);
    free(workers->threads);
    free(workers);
}
