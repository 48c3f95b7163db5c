/* What is told of jobs to people who look on. */
#include "pattern/job_meter.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/limits.h"
#include "unit/test.h"

static void put_meter(void *context, const struct pattern_job_meter *meter)
{
    buf_printf(context, "%.*s %lld %lld %lld;", SLICE_ARG(meter->job), (long long)meter->done,
               (long long)meter->failed, (long long)meter->total);
}

static bool tells(struct job_meters *meters, const char *wanted)
{
    struct buf out = {0};
    job_meters_take(meters, put_meter, &out);
    bool is = slice_equal(buf_view(&out), slice_of(wanted));
    buf_free(&out);
    return is;
}

TEST(job_meters_tell_what_was_done_since_they_were_asked)
{
    struct job_meters *meters = job_meters_new();
    job_meters_count(meters, SLICE("a"), 10, 3, 0);
    job_meters_count(meters, SLICE("b"), -1, 0, 1);
    job_meters_count(meters, SLICE("a"), 12, 4, 2);
    job_meters_count(meters, SLICE("c"), 5, 0, 0); /* a repeat: nothing was done */
    job_meters_count(NULL, SLICE("a"), 10, 3, 0);
    CHECK(tells(meters, "a 7 2 12;b 0 1 -1;"));
    CHECK(tells(meters, ""));
    job_meters_count(meters, SLICE("b"), 2, 2, 0);
    CHECK(tells(meters, "b 2 0 2;"));
    job_meters_free(meters);
}

TEST(job_meters_count_so_many_jobs_and_no_more)
{
    struct job_meters *meters = job_meters_new();
    struct buf wanted = {0};
    char name[LIMIT_JOB_METER_NAME_BYTES + 1];
    memset(name, 'x', sizeof name);
    job_meters_count(meters, (struct slice){name, sizeof name}, 1, 1, 0);
    for (int i = 0; i < LIMIT_JOB_METERS + 10; i++) {
        int len = snprintf(name, sizeof name, "job %d", i);
        job_meters_count(meters, (struct slice){name, (size_t)len}, 100, i + 1, 0);
        if (i < LIMIT_JOB_METERS) buf_printf(&wanted, "%s %d 0 100;", name, i + 1);
    }
    buf_byte(&wanted, 0);
    CHECK(tells(meters, wanted.data));
    CHECK(tells(meters, "")); /* there is room again */
    job_meters_count(meters, SLICE("late"), 1, 1, 0);
    CHECK(tells(meters, "late 1 0 1;"));
    buf_free(&wanted);
    job_meters_free(meters);
}
