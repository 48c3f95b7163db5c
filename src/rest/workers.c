/* Threads for handlers that wait. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/workers.h"
#include "rest/rest.h"

struct rest_workers {
    struct workers *threads;
};

struct rest_job {
    void (*serve)(void *room, struct rest_call *call);
    struct rest_call *call;
};

struct rest_workers *rest_workers_new(unsigned threads)
{
    struct rest_workers *workers = must_zero(1, sizeof *workers);
    workers->threads = workers_new(threads);
    return workers;
}

static void run(void *room, void *job)
{
    struct rest_job own = *(struct rest_job *)job;
    free(job);
    own.serve(room, own.call);
}

void rest_workers_run(struct rest_workers *workers, void (*serve)(void *room, struct rest_call *call),
                      void *room, struct rest_call *call)
{
    struct rest_job *job = must_zero(1, sizeof *job);
    *job = (struct rest_job){serve, call};
    workers_run(workers->threads, run, room, job);
}

void rest_workers_free(struct rest_workers *workers)
{
    if (!workers) return;
    workers_free(workers->threads);
    free(workers);
}
