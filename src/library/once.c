/* Once: the first caller of a key does the thing, all others get its result. */
#include "library/ask.h"

static const char *const once_states[] = {"LOST", "BEGUN", "RUNNING", "FAILED", "DONE", NULL};

static void once_told(struct ask *ask, struct quipu_once *once)
{
    if (!once) return;
    *once = (struct quipu_once){.state = (enum quipu_once_state)told_word(ask, "state", once_states),
                                .until_ms = told_moment(ask, "until"),
                                .result = told_json(ask, "result"),
                                .error = told_text(ask, "error")};
    told_int(ask, "fence", 0, &once->fence);
}

static bool once_is_over(struct ask *ask)
{
    return ask->result != QUIPU_CONFLICT;
}

enum quipu_result quipu_once_begin(struct quipu *db, const char *name, const char *key,
                                   const struct quipu_once_options *options, int64_t wait_ms,
                                   struct quipu_once *once, struct quipu_reply **reply)
{
    static const struct quipu_once_options defaults;
    struct ask ask;
    if (!options) options = &defaults;
    ask_begin(&ask, db, reply, "POST", "/v1/once/*/*", name, key);
    ask_text(&ask, "owner", options->owner);
    ask_some(&ask, "for", options->for_ms);
    ask_some(&ask, "keep", options->keep_ms);
    ask_json(&ask, "input", options->input);
    if (ask_run_waiting(&ask, wait_ms, false, once_is_over) > 0) once_told(&ask, once);
    return ask_end(&ask);
}

enum quipu_result quipu_once_renew(struct quipu *db, const char *name, const char *key, int64_t fence,
                                   int64_t for_ms, int64_t *until_ms, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/once/*/*", name, key);
    ask_int(&ask, "fence", fence);
    ask_some(&ask, "for", for_ms);
    if (ask_run(&ask) > 0 && until_ms) *until_ms = told_moment(&ask, "until");
    return ask_end(&ask);
}

enum quipu_result quipu_once_finish(struct quipu *db, const char *name, const char *key, int64_t fence,
                                    const char *result, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/once/*/*/finish", name, key);
    ask_int(&ask, "fence", fence);
    ask_json(&ask, "result", result);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_once_fail(struct quipu *db, const char *name, const char *key, int64_t fence,
                                  const char *error, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/once/*/*/fail", name, key);
    ask_int(&ask, "fence", fence);
    ask_text(&ask, "error", error);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_once_get(struct quipu *db, const char *name, const char *key, struct quipu_once *once,
                                 struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/once/*/*", name, key);
    if (ask_run(&ask) > 0) once_told(&ask, once);
    return ask_end(&ask);
}

enum quipu_result quipu_once_forget(struct quipu *db, const char *name, const char *key,
                                    struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/once/*/*", name, key);
}
