/* Handlers on threads that may wait. */
#include <stdlib.h>

#include "base/fail.h"
#include "rest/rest.h"

struct rest_job {
    void (*serve)(void *room, struct rest_call *call);
    struct rest_call *call;
};

static void run(void *room, void *job)
{
    struct rest_job own = *(struct rest_job *)job;
    free(job);
    own.serve(room, own.call);
}

void rest_workers_run(struct workers *workers, void (*serve)(void *room, struct rest_call *call), void *room,
                      struct rest_call *call)
{
    struct rest_job *job = must_zero(1, sizeof *job);
    *job = (struct rest_job){serve, call};
    workers_run(workers, run, room, job);
}
