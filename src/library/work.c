/* Work: units that somebody claims, works at and finishes. */
#include "library/ask.h"

static const char *const work_states[] = {"READY", "CLAIMED", "DONE", "DEAD", NULL};

static void work_told(struct ask *ask, struct quipu_work *work)
{
    if (!work) return;
    *work = (struct quipu_work){.state = (enum quipu_work_state)told_word(ask, "state", work_states),
                                .until_ms = told_moment(ask, "until"),
                                .id = told_text(ask, "id"),
                                .data = told_json(ask, "data"),
                                .progress = told_json(ask, "progress"),
                                .result = told_json(ask, "result"),
                                .error = told_text(ask, "error")};
    told_int(ask, "attempts", 0, &work->attempts);
    told_int(ask, "fence", 0, &work->fence);
    told_int(ask, "step", 0, &work->step);
}

enum quipu_result quipu_work_put(struct quipu *db, const char *queue,
                                 const struct quipu_work_options *options, struct quipu_reply **reply)
{
    static const struct quipu_work_options defaults;
    struct ask ask;
    if (!options) options = &defaults;
    ask_begin(&ask, db, reply, "PUT", "/v1/work/*", queue);
    ask_some(&ask, "lease", options->lease_ms);
    ask_some(&ask, "attempts", options->attempts);
    ask_some(&ask, "backoff", options->backoff_ms);
    ask_some(&ask, "keep", options->keep_ms);
    ask_then(&ask, options->then);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_work_submit(struct quipu *db, const char *queue, const char *id, const char *data,
                                    int64_t delay_ms, struct quipu_work *work, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*/*", queue, id);
    ask_json(&ask, "data", data);
    ask_some(&ask, "delay", delay_ms);
    if (ask_run(&ask) > 0) work_told(&ask, work);
    return ask_end(&ask);
}

static void put_unit(struct ask *element, const void *all, size_t number)
{
    const struct quipu_work_unit *unit = (const struct quipu_work_unit *)all + number;
    ask_text(element, "id", unit->id);
    ask_json(element, "data", unit->data);
    ask_some(element, "delay", unit->delay_ms);
}

enum quipu_result quipu_work_submit_many(struct quipu *db, const char *queue, const struct quipu_work_unit *units,
                                         size_t count, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*", queue);
    ask_each(&ask, "units", units, count, put_unit);
    ask_run(&ask);
    return ask_end(&ask);
}

static bool claim_is_over(struct ask *ask)
{
    return ask->result != QUIPU_NONE;
}

enum quipu_result quipu_work_claim(struct quipu *db, const char *queue, const char *owner, int64_t for_ms,
                                   int64_t wait_ms, struct quipu_work *work, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*/claim", queue);
    ask_text(&ask, "owner", owner);
    ask_some(&ask, "for", for_ms);
    if (ask_run_waiting(&ask, wait_ms, false, claim_is_over) > 0) work_told(&ask, work);
    return ask_end(&ask);
}

enum quipu_result quipu_work_beat(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                  const struct quipu_beat *beat, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*/*/beat", queue, id);
    ask_int(&ask, "fence", fence);
    if (beat) {
        ask_some(&ask, "for", beat->for_ms);
        ask_json(&ask, "progress", beat->progress);
        ask_some(&ask, "step", beat->step);
    }
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_work_finish(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                    const char *result, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*/*/finish", queue, id);
    ask_int(&ask, "fence", fence);
    ask_json(&ask, "result", result);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_work_fail(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                  const struct quipu_failure *failure, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/work/*/*/fail", queue, id);
    ask_int(&ask, "fence", fence);
    if (failure) {
        ask_text(&ask, "reason", failure->reason);
        ask_json(&ask, "retry", failure->give_up ? "false" : NULL);
        ask_some(&ask, "after", failure->after_ms);
    }
    ask_run(&ask);
    return ask_end(&ask);
}

static bool work_is_over(struct ask *ask)
{
    int state = told_word(ask, "state", work_states);
    return ask->result < 0 || state == QUIPU_WORK_DONE || state == QUIPU_WORK_DEAD;
}

static enum quipu_result work_look(struct quipu *db, const char *queue, const char *id, int64_t wait_ms,
                                   struct quipu_work *work, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/work/*/*", queue, id);
    if (ask_run_waiting(&ask, wait_ms, true, work_is_over) > 0) work_told(&ask, work);
    return ask_end(&ask);
}

enum quipu_result quipu_work_get(struct quipu *db, const char *queue, const char *id, struct quipu_work *work,
                                 struct quipu_reply **reply)
{
    return work_look(db, queue, id, 0, work, reply);
}

enum quipu_result quipu_work_wait(struct quipu *db, const char *queue, const char *id, int64_t wait_ms,
                                  struct quipu_work *work, struct quipu_reply **reply)
{
    struct quipu_work own;
    if (!work) work = &own;
    enum quipu_result result = work_look(db, queue, id, wait_ms, work, reply);
    if (result <= 0) return result;
    return work->state == QUIPU_WORK_DONE || work->state == QUIPU_WORK_DEAD ? QUIPU_FOUND : QUIPU_NONE;
}

enum quipu_result quipu_work_retry(struct quipu *db, const char *queue, const char *id,
                                   struct quipu_reply **reply)
{
    return ask_plain(db, reply, "POST", "/v1/work/*/*/retry", queue, id);
}

enum quipu_result quipu_work_delete(struct quipu *db, const char *queue, const char *id,
                                    struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/work/*/*", queue, id);
}

struct quipu_pages *quipu_work_list(struct quipu *db, const char *queue, const char *state)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/work/*", queue);
    ask_query(&ask, "state", state);
    return ask_pages(&ask);
}
