/* What this process has done of each job lately, for people who look on: numbers in memory, which nothing depends on.
 * Safe from several threads. */
#ifndef PATTERN_JOB_METER_H
#define PATTERN_JOB_METER_H

#include <stdint.h>

#include "base/slice.h"
#include "pattern/pattern.h"

struct job_meters;

struct job_meters *job_meters_new(void);
void job_meters_free(struct job_meters *meters);
/* NULL meters: nobody looks on. */
void job_meters_count(struct job_meters *meters, struct slice job, int64_t total, int64_t done, int64_t failed);
/* See pattern_each_job. */
void job_meters_take(struct job_meters *meters, void (*take)(void *context, const struct pattern_job_meter *meter),
                     void *context);

#endif
