/* A few meters in a row: where all are taken, a job that is done more of than nothing keeps its own. */
#include "pattern/job_meter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/limits.h"

struct job_meter {
    char name[LIMIT_JOB_METER_NAME_BYTES];
    size_t len; /* 0: it is free */
    int64_t total, done, failed;
};

struct job_meters {
    pthread_mutex_t lock;
    struct job_meter meters[LIMIT_JOB_METERS];
};

struct job_meters *job_meters_new(void)
{
    struct job_meters *meters = must_zero(1, sizeof *meters);
    ensure(pthread_mutex_init(&meters->lock, NULL) == 0);
    return meters;
}

void job_meters_free(struct job_meters *meters)
{
    pthread_mutex_destroy(&meters->lock);
    free(meters);
}

/* Of this job, else a free one; NULL: all are in use. */
static struct job_meter *find(struct job_meters *meters, struct slice job)
{
    struct job_meter *unused = NULL;
    for (size_t i = 0; i < LIMIT_JOB_METERS; i++) {
        struct job_meter *meter = &meters->meters[i];
        if (slice_equal((struct slice){meter->name, meter->len}, job)) return meter;
        if (!meter->len && !unused) unused = meter;
    }
    return unused;
}

void job_meters_count(struct job_meters *meters, struct slice job, int64_t total, int64_t done, int64_t failed)
{
    if (!meters || !job.len || job.len > LIMIT_JOB_METER_NAME_BYTES || done + failed <= 0) return;
    pthread_mutex_lock(&meters->lock);
    struct job_meter *meter = find(meters, job);
    if (meter) {
        memcpy(meter->name, job.data, job.len);
        meter->len = job.len;
        meter->total = total;
        meter->done += done;
        meter->failed += failed;
    }
    pthread_mutex_unlock(&meters->lock);
}

void job_meters_take(struct job_meters *meters, void (*take)(void *context, const struct pattern_job_meter *meter),
                     void *context)
{
    pthread_mutex_lock(&meters->lock);
    for (size_t i = 0; i < LIMIT_JOB_METERS; i++) {
        struct job_meter *meter = &meters->meters[i];
        if (!meter->len) continue;
        take(context, &(struct pattern_job_meter){.job = {meter->name, meter->len},
                                                  .total = meter->total,
                                                  .done = meter->done,
                                                  .failed = meter->failed});
        *meter = (struct job_meter){0};
    }
    pthread_mutex_unlock(&meters->lock);
}
