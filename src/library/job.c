/* Jobs: many tasks, and one caller who is told that all are done. */
#include "library/ask.h"

static const char *const job_states[] = {"OPEN", "COMPLETE", "FAILED", "EXPIRED", NULL};

static void job_told(struct ask *ask, struct quipu_job *job)
{
    if (!job) return;
    job->state = (enum quipu_job_state)told_word(ask, "state", job_states);
    told_int(ask, "total", -1, &job->total);
    told_int(ask, "done", -1, &job->done);
    told_int(ask, "missing", -1, &job->missing);
    told_int(ask, "failed", -1, &job->failed);
}

static void done_told(struct ask *ask, struct quipu_done *done)
{
    if (!done) return;
    told_int(ask, "counted", 0, &done->counted);
    told_int(ask, "done", -1, &done->done);
    done->complete = told_true(ask, "complete");
    done->last = told_true(ask, "last");
}

/* "3" is a number, "5%" a text. */
static void ask_tolerate(struct ask *ask, const char *tolerate)
{
    bool is_number = tolerate && tolerate[0] && !tolerate[strspn(tolerate, "0123456789")];
    if (is_number)
        ask_json(ask, "tolerate", tolerate);
    else
        ask_text(ask, "tolerate", tolerate);
}

static enum quipu_result job_send(struct ask *ask, const struct quipu_job_options *options,
                                  struct quipu_job *job)
{
    ask_some(ask, "total", options->total);
    ask_texts(ask, "tasks", options->tasks, options->task_count);
    ask_some(ask, "deadline", options->deadline_ms);
    ask_tolerate(ask, options->tolerate);
    ask_target(ask, "each", options->each);
    ask_some(ask, "concurrency", options->concurrency);
    ask_some(ask, "attempts", options->attempts);
    ask_some(ask, "backoff", options->backoff_ms);
    ask_some(ask, "timeout", options->timeout_ms);
    if (options->paused) ask_json(ask, "paused", options->paused > 0 ? "true" : "false");
    if (ask_run(ask) > 0) job_told(ask, job);
    return ask_end(ask);
}

static const struct quipu_job_options job_defaults;

enum quipu_result quipu_job_put(struct quipu *db, const char *id, const struct quipu_job_options *options,
                                struct quipu_job *job, struct quipu_reply **reply)
{
    struct ask ask;
    if (!options) options = &job_defaults;
    ask_begin(&ask, db, reply, "PUT", "/v1/jobs/*", id);
    ask_some(&ask, "first", options->first);
    ask_some(&ask, "keep", options->keep_ms);
    ask_text(&ask, "layout", options->one_set ? "set" : NULL);
    ask_then(&ask, options->then);
    ask_json(&ask, "items", options->items);
    ask_json(&ask, "from", options->from);
    return job_send(&ask, options, job);
}

enum quipu_result quipu_job_items(struct quipu *db, const char *id, const char *lines, int64_t from, int is_end,
                                  int64_t *stored, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/jobs/*/items", id);
    ask_query_some(&ask, "from", from);
    ask_query(&ask, "end", is_end ? "true" : NULL);
    ask_whole(&ask, lines);
    if (ask_run(&ask) > 0) told_int(&ask, "stored", 0, stored);
    return ask_end(&ask);
}

enum quipu_result quipu_job_change(struct quipu *db, const char *id, const struct quipu_job_options *options,
                                   struct quipu_job *job, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PATCH", "/v1/jobs/*", id);
    return job_send(&ask, options ? options : &job_defaults, job);
}

enum quipu_result quipu_job_done(struct quipu *db, const char *id, int64_t task, struct quipu_done *done,
                                 struct quipu_reply **reply)
{
    return quipu_job_done_tasks(db, id, &(struct quipu_tasks){.numbers = &task, .count = 1}, done, reply);
}

/* One is sent by itself, since only that may have a result. */
static void ask_tasks(struct ask *ask, const struct quipu_tasks *tasks)
{
    if (tasks->count == 1) {
        if (tasks->names)
            ask_text(ask, "task", tasks->names[0]);
        else
            ask_int(ask, "task", tasks->numbers[0]);
    } else if (tasks->names) {
        ask_texts(ask, "tasks", tasks->names, tasks->count);
    } else {
        struct buf *body = ask_member(ask, "tasks");
        buf_byte(body, '[');
        for (size_t i = 0; i < tasks->count; i++) {
            if (i) buf_byte(body, ',');
            json_put_int(body, tasks->numbers[i]);
        }
        buf_byte(body, ']');
    }
}

enum quipu_result quipu_job_done_tasks(struct quipu *db, const char *id, const struct quipu_tasks *tasks,
                                       struct quipu_done *done, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/jobs/*/done", id);
    ask_tasks(&ask, tasks);
    ask_json(&ask, "result", tasks->result);
    ask_query(&ask, "progress", tasks->progress ? "1" : NULL);
    ask_header(&ask, "Idempotency-Key", tasks->token);
    if (ask_run(&ask) > 0) done_told(&ask, done);
    return ask_end(&ask);
}

static enum quipu_result fail_task(struct ask *ask, const char *reason, struct quipu_done *done)
{
    ask_text(ask, "reason", reason);
    if (ask_run(ask) > 0) done_told(ask, done);
    return ask_end(ask);
}

enum quipu_result quipu_job_failed(struct quipu *db, const char *id, int64_t task, const char *reason,
                                   struct quipu_done *done, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/jobs/*/failed", id);
    ask_int(&ask, "task", task);
    return fail_task(&ask, reason, done);
}

enum quipu_result quipu_job_failed_name(struct quipu *db, const char *id, const char *task,
                                        const char *reason, struct quipu_done *done,
                                        struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/jobs/*/failed", id);
    ask_text(&ask, "task", task);
    return fail_task(&ask, reason, done);
}

static bool job_is_over(struct ask *ask)
{
    return ask->result < 0 || told_word(ask, "state", job_states) != QUIPU_JOB_OPEN;
}

static enum quipu_result job_look(struct quipu *db, const char *id, const char *progress, int64_t wait_ms,
                                  struct quipu_job *job, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/jobs/*", id);
    ask_query(&ask, "progress", progress);
    if (ask_run_waiting(&ask, wait_ms, true, job_is_over) > 0) job_told(&ask, job);
    return ask_end(&ask);
}

enum quipu_result quipu_job_get(struct quipu *db, const char *id, struct quipu_job *job,
                                struct quipu_reply **reply)
{
    return job_look(db, id, NULL, 0, job, reply);
}

enum quipu_result quipu_job_progress(struct quipu *db, const char *id, struct quipu_job *job,
                                     struct quipu_reply **reply)
{
    return job_look(db, id, "1", 0, job, reply);
}

enum quipu_result quipu_job_wait(struct quipu *db, const char *id, int64_t wait_ms, struct quipu_job *job,
                                 struct quipu_reply **reply)
{
    struct quipu_job own;
    if (!job) job = &own;
    enum quipu_result result = job_look(db, id, NULL, wait_ms, job, reply);
    return result > 0 && job->state == QUIPU_JOB_OPEN ? QUIPU_NONE : result;
}

enum quipu_result quipu_job_redrive(struct quipu *db, const char *id, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "POST", "/v1/jobs/*/redrive", id);
}

enum quipu_result quipu_job_delete(struct quipu *db, const char *id, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/jobs/*", id);
}

struct quipu_pages *quipu_job_list(struct quipu *db, const char *state, int64_t older_ms)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/jobs");
    ask_query(&ask, "state", state);
    ask_query_ms(&ask, "older", older_ms);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_job_missing(struct quipu *db, const char *id)
{
    return ask_list(db, "/v1/jobs/*/missing", id);
}

struct quipu_pages *quipu_job_failures(struct quipu *db, const char *id)
{
    return ask_list(db, "/v1/jobs/*/failures", id);
}

struct quipu_pages *quipu_job_results(struct quipu *db, const char *id)
{
    return ask_list(db, "/v1/jobs/*/results", id);
}
