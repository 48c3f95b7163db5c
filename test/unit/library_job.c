/* Jobs by their C functions. */
#include <unistd.h>

#include "unit/library_fixture.h"

#define TASKS   300
#define THREADS 4

static void check_numbers(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    struct quipu_done done;
    struct quipu_job_options options = {.total = 3, .first = 1, .keep_ms = 3600000, .then = "consolidate"};
    CHECK_INT(quipu_job_get(db, "pages", &job, &reply), QUIPU_MISSING);
    CHECK_TEXT(error_of(reply), "no-such-job");
    CHECK_INT(quipu_job_put(db, "pages", &options, &job, &reply), QUIPU_DONE);
    CHECK(job.state == QUIPU_JOB_OPEN && job.total == 3 && job.done == -1 && job.missing == -1 &&
          job.failed == 0);
    CHECK_INT(quipu_job_done(db, "pages", 1, &done, &reply), QUIPU_DONE);
    CHECK(done.counted == 1 && done.done == 1 && !done.complete && !done.last);
    CHECK_INT(quipu_job_done(db, "pages", 1, &done, &reply), QUIPU_DONE);
    CHECK_INT(done.counted, 0);
    CHECK_INT(quipu_job_done(db, "pages", 0, &done, &reply), QUIPU_FAILED);
    CHECK_TEXT(error_of(reply), "task-outside");
    CHECK_INT(count_pages(quipu_job_missing(db, "pages")), 2);
    CHECK_INT(quipu_job_wait(db, "pages", 20, &job, &reply), QUIPU_NONE);
    CHECK_INT(quipu_job_done_tasks(db, "pages",
                                   &(struct quipu_tasks){.numbers = (int64_t[]){2, 3}, .count = 2}, &done,
                                   &reply),
              QUIPU_DONE);
    CHECK(done.counted == 2 && done.complete && done.last && done.done == 3);
    CHECK_INT(quipu_job_done(db, "pages", 3, &done, &reply), QUIPU_DONE);
    CHECK(done.complete && !done.last);
    CHECK_INT(quipu_job_wait(db, "pages", -1, &job, &reply), QUIPU_FOUND);
    CHECK_INT(job.state, QUIPU_JOB_COMPLETE);
    CHECK_INT(quipu_job_wait(db, "pages", 0, NULL, NULL), QUIPU_FOUND);
    CHECK_INT(quipu_job_delete(db, "pages", &reply), QUIPU_DONE);
    CHECK_INT(quipu_job_delete(db, "pages", NULL), QUIPU_MISSING);
    CHECK_INT(quipu_job_done(db, "pages", 1, NULL, NULL), QUIPU_MISSING);
    quipu_reply_free(reply);
}

static void check_names(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    struct quipu_done done;
    const char *const names[] = {"\"intro\"", "body", "end"};
    struct quipu_job_options options = {.tasks = names, .task_count = 3, .tolerate = "1", .one_set = 0};
    struct quipu_tasks first = {.names = names, .count = 1, .result = "{\"words\":7}", .token = "t"};
    CHECK_INT(quipu_job_put(db, "book", &options, &job, &reply), QUIPU_DONE);
    CHECK_INT(job.total, 3);
    CHECK_INT(quipu_job_done_tasks(db, "book", &first, &done, &reply), QUIPU_DONE);
    CHECK_INT(done.counted, 1);
    CHECK_INT(quipu_job_failed_name(db, "book", "body", "no \"ink\"", &done, &reply), QUIPU_DONE);
    CHECK(done.counted == 1 && !done.last);
    CHECK_INT(quipu_job_progress(db, "book", &job, &reply), QUIPU_FOUND);
    CHECK(job.done == 1 && job.failed == 1 && job.missing == 1);
    CHECK_INT(count_pages(quipu_job_failures(db, "book")), 1);
    CHECK_INT(count_pages(quipu_job_results(db, "book")), 1);
    CHECK_INT(quipu_job_redrive(db, "book", &reply), QUIPU_DONE);
    CHECK_INT(count_pages(quipu_job_missing(db, "book")), 2);
    CHECK_INT(quipu_job_done_tasks(db, "book",
                                   &(struct quipu_tasks){.names = names + 1, .count = 2, .progress = 1},
                                   &done, &reply),
              QUIPU_DONE);
    CHECK(done.complete && done.last);
    first.result = "{";
    CHECK_INT(quipu_job_done_tasks(db, "book", &first, &done, &reply), QUIPU_FAILED);
    CHECK_TEXT(slice_of(reply->message), "What should be JSON is none.");
    quipu_reply_free(reply);
}

static void check_changes(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    struct quipu_done done;
    CHECK_INT(quipu_job_put(db, "late", &(struct quipu_job_options){.tolerate = "1"}, &job, &reply),
              QUIPU_DONE);
    CHECK_INT(job.total, -1);
    CHECK_INT(quipu_job_failed(db, "late", 0, NULL, &done, &reply), QUIPU_DONE);
    CHECK_INT(quipu_job_change(db, "late", &(struct quipu_job_options){.total = 2, .tolerate = "50%"}, &job,
                               &reply),
              QUIPU_DONE);
    CHECK_INT(job.total, 2);
    CHECK_INT(count_pages(quipu_job_list(db, "open", 0)), 1);
    CHECK_INT(count_pages(quipu_job_list(db, "open", 3600000)), 0);
    CHECK_INT(count_pages(quipu_job_list(db, "no such state", 0)), -1);
    CHECK_INT(count_pages(quipu_job_missing(db, "none")), -1);
    CHECK_INT(count_pages(quipu_job_missing(db, "")), -1);
    CHECK_INT(quipu_job_done(db, "late", 1, &done, &reply), QUIPU_DONE);
    CHECK(done.complete && done.last);
    quipu_reply_free(reply);
}

/* Whatever form a reaction has, it is stored as the route takes it. */
static void check_reactions(struct quipu *db)
{
    static const char *const forms[] = {"consolidate", "https://example.org/hook", "{\"function\":\"a\"}",
                                        "[{\"call\":\"POST /v1/counters/c\",\"on\":\"COMPLETE\"},\"tell\"]"};
    struct quipu_reply *reply = NULL;
    char id[20];
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "job-%d", i);
        CHECK_INT(
            quipu_job_put(db, id, &(struct quipu_job_options){.total = 1, .then = forms[i]}, NULL, &reply),
            QUIPU_DONE);
    }
    CHECK_INT(quipu_job_put(db, "bad", &(struct quipu_job_options){.total = 1, .then = "[1"}, NULL, &reply),
              QUIPU_FAILED);
    CHECK_INT(quipu_job_put(db, "bad", &(struct quipu_job_options){.total = 1, .then = "[1]"}, NULL, &reply),
              QUIPU_FAILED);
    quipu_reply_free(reply);
}

/* A server would call them; what it goes by is stored. */
static void check_each(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    int64_t stored = 0;
    struct quipu_job_options options = {.each = "page", .concurrency = 3, .attempts = 2, .backoff_ms = 5,
                                        .timeout_ms = 9000, .paused = 1, .items = "[{\"n\":1},2]"};
    CHECK_INT(quipu_job_put(db, "listed", &options, &job, &reply), QUIPU_DONE);
    CHECK_INT(job.total, 2);
    CHECK(slice_contains(slice_of(reply->json), SLICE("\"each\":\"page\",\"concurrency\":3,\"attempts\":2")));
    CHECK(slice_contains(slice_of(reply->json), SLICE("\"paused\":true")));
    CHECK_INT(quipu_job_change(db, "listed", &(struct quipu_job_options){.concurrency = 4, .paused = -1}, &job,
                               &reply),
              QUIPU_DONE);
    CHECK(slice_contains(slice_of(reply->json), SLICE("\"concurrency\":4")));
    CHECK(!slice_contains(slice_of(reply->json), SLICE("\"paused\":true")));
    options = (struct quipu_job_options){.each = "{\"function\":\"page\"}"};
    CHECK_INT(quipu_job_put(db, "lines", &options, &job, &reply), QUIPU_DONE);
    CHECK_INT(quipu_job_items(db, "lines", "1\n", 1, 0, &stored, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "items-missing");
    CHECK_INT(quipu_job_items(db, "lines", "1\n{\"a\":2}\n", 0, 0, &stored, &reply), QUIPU_DONE);
    CHECK_INT(stored, 2);
    CHECK_INT(quipu_job_items(db, "lines", "{\"a\":2}\n3", 1, 1, &stored, NULL), QUIPU_DONE);
    CHECK_INT(stored, 3);
    CHECK_INT(quipu_job_get(db, "lines", &job, &reply), QUIPU_FOUND);
    CHECK_INT(job.total, 3);
    CHECK_INT(quipu_job_items(db, "lines", "4", 3, 1, &stored, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "items-ended");
    options = (struct quipu_job_options){.each = "page", .from = "{"};
    CHECK_INT(quipu_job_put(db, "bad", &options, &job, &reply), QUIPU_FAILED);
    quipu_reply_free(reply);
}

TEST(jobs_by_functions)
{
    on_every_engine(check_numbers);
    on_every_engine(check_names);
    on_every_engine(check_changes);
    on_every_engine(check_reactions);
    on_every_engine(check_each);
}

/* ---- what is due ---- */

static void check_deadline(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_job job;
    CHECK_INT(quipu_sweep(db, &reply), QUIPU_DONE); /* there are no tables yet */
    CHECK_INT(
        quipu_job_put(db, "soon", &(struct quipu_job_options){.total = 2, .deadline_ms = 1}, NULL, &reply),
        QUIPU_DONE);
    for (job.state = QUIPU_JOB_OPEN; job.state == QUIPU_JOB_OPEN;) {
        usleep(2000);
        CHECK_INT(quipu_sweep(db, NULL), QUIPU_DONE);
        struct quipu_pages *open = quipu_job_list(db, "open", 0);
        if (count_pages(open) == 0) job.state = QUIPU_JOB_EXPIRED;
    }
    CHECK_INT(quipu_job_get(db, "soon", &job, &reply), QUIPU_FOUND);
    CHECK_INT(job.state, QUIPU_JOB_EXPIRED);
    quipu_reply_free(reply);
}

TEST(a_sweep_does_what_is_due)
{
    on_every_engine(check_deadline);
}

TEST(a_sweep_when_nobody_answers)
{
    struct quipu_options options = QUIPU_OPTIONS;
    char error[QUIPU_ERROR_BYTES];
    struct quipu_reply *reply = NULL;
    options.attempts = 1;
    struct quipu *db = quipu_open("http://127.0.0.1:1", &options, error, sizeof error);
    CHECK_INT(quipu_sweep(db, &reply), QUIPU_FAILED);
    CHECK_TEXT(error_of(reply), "no-reply");
    quipu_reply_free(reply);
    quipu_close(db);
}

/* With the option nobody needs to call anything. */
TEST(a_program_that_sweeps)
{
    struct quipu_options options = QUIPU_OPTIONS;
    char error[QUIPU_ERROR_BYTES];
    struct quipu_job job;
    options.sweeps = 1;
    struct quipu *db = quipu_open(":memory:", &options, error, sizeof error);
    CHECK_INT(
        quipu_job_put(db, "soon", &(struct quipu_job_options){.total = 2, .deadline_ms = 1}, NULL, NULL),
        QUIPU_DONE);
    CHECK_INT(quipu_job_wait(db, "soon", -1, &job, NULL), QUIPU_FOUND);
    CHECK_INT(job.state, QUIPU_JOB_EXPIRED);
    quipu_close(db);
}

/* ---- threads ---- */

struct helper {
    struct quipu *db;
    pthread_t thread;
    int from, lasts;
};

static void *do_tasks(void *argument)
{
    struct helper *helper = argument;
    struct quipu_done done;
    for (int task = helper->from; task < TASKS; task += THREADS) {
        CHECK_INT(quipu_job_done(helper->db, "herd", task, &done, NULL), QUIPU_DONE);
        helper->lasts += done.last;
    }
    return NULL;
}

static void check_herd(struct quipu *db)
{
    struct helper helpers[THREADS];
    int lasts = 0;
    CHECK_INT(quipu_job_put(db, "herd", &(struct quipu_job_options){.total = TASKS}, NULL, NULL), QUIPU_DONE);
    for (int i = 0; i < THREADS; i++) {
        helpers[i] = (struct helper){.db = db, .from = i};
        CHECK(pthread_create(&helpers[i].thread, NULL, do_tasks, &helpers[i]) == 0);
    }
    CHECK_INT(quipu_job_wait(db, "herd", -1, NULL, NULL), QUIPU_FOUND);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(helpers[i].thread, NULL);
        lasts += helpers[i].lasts;
    }
    CHECK_INT(lasts, 1);
}

TEST(one_thread_is_last)
{
    on_every_engine(check_herd);
}

static void *wait_for_ever(void *argument)
{
    struct quipu_reply *reply = NULL;
    CHECK_INT(quipu_job_wait(argument, "never", -1, NULL, &reply), QUIPU_FAILED);
    CHECK_TEXT(error_of(reply), "stopping");
    quipu_reply_free(reply);
    return NULL;
}

static void check_stop(struct quipu *db)
{
    pthread_t waiter;
    int64_t value;
    CHECK_INT(quipu_job_put(db, "never", &(struct quipu_job_options){.total = 2}, NULL, NULL), QUIPU_DONE);
    CHECK(pthread_create(&waiter, NULL, wait_for_ever, db) == 0);
    usleep(20000);
    quipu_stop(db);
    pthread_join(waiter, NULL);
    wait_for_ever(db); /* nor does anybody wait from now on */
    CHECK_INT(quipu_counter_add(db, "c", 1, &value, NULL), QUIPU_DONE);
}

TEST(whoever_waits_can_be_stopped)
{
    on_every_engine(check_stop);
}
