/* Groups: events collected until they are complete. */
#include "library/ask.h"

/* {"size":..., "kinds":[...], "when":{"expression":..., "values":...}} */
static void ask_complete(struct ask *ask, const struct quipu_group_options *options)
{
    struct ask complete = {0}, when = {0};
    ask_text(&when, "expression", options->when);
    ask_json(&when, "values", options->when ? options->values : NULL);
    ask_some(&complete, "size", options->size);
    ask_texts(&complete, "kinds", options->kinds, options->kind_count);
    ask_object(&complete, "when", &when);
    ask_object(ask, "complete", &complete);
}

enum quipu_result quipu_group_put(struct quipu *db, const char *name,
                                  const struct quipu_group_options *options, struct quipu_reply **reply)
{
    static const struct quipu_group_options defaults;
    struct ask ask;
    if (!options) options = &defaults;
    ask_begin(&ask, db, reply, "PUT", "/v1/groups/*", name);
    ask_complete(&ask, options);
    ask_json(&ask, "fold", options->fold);
    ask_some(&ask, "quiet", options->quiet_ms);
    ask_some(&ask, "deadline", options->deadline_ms);
    ask_text(&ask, "late", options->late);
    ask_some(&ask, "keep", options->keep_ms);
    ask_then(&ask, options->then);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_group_show(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "GET", "/v1/groups/*", name);
}

enum quipu_result quipu_group_forget(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/groups/*", name);
}

static bool group_is_complete(struct ask *ask)
{
    return slice_equal(told(ask, "state"), SLICE("\"COMPLETE\""));
}

static void group_told(struct ask *ask, struct quipu_group *group)
{
    if (!group) return;
    told_int(ask, "generation", 0, &group->generation);
    told_int(ask, "count", 0, &group->count);
    group->complete = group_is_complete(ask);
    group->accepted = told_true(ask, "accepted");
    group->completed = told_true(ask, "completed");
}

static void ask_event(struct ask *ask, const struct quipu_group_event *event)
{
    ask_text(ask, "id", event->id);
    ask_text(ask, "kind", event->kind);
    ask_json(ask, "data", event->data);
    ask_json(ask, "amount", event->amount);
    ask_text(ask, "deadline", event->deadline);
}

enum quipu_result quipu_group_add(struct quipu *db, const char *name, const char *key,
                                  const struct quipu_group_event *event, struct quipu_group *group,
                                  struct quipu_reply **reply)
{
    static const struct quipu_group_event nothing;
    struct ask ask;
    if (!event) event = &nothing;
    ask_begin(&ask, db, reply, "POST", "/v1/groups/*/*", name, key);
    ask_event(&ask, event);
    if (ask_run(&ask) > 0) group_told(&ask, group);
    return ask_end(&ask);
}

static void put_event(struct ask *element, const void *all, size_t number)
{
    const struct quipu_group_event *event = (const struct quipu_group_event *)all + number;
    ask_text(element, "key", event->key);
    ask_event(element, event);
}

enum quipu_result quipu_group_add_many(struct quipu *db, const char *name, const struct quipu_group_event *events,
                                       size_t count, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/groups/*", name);
    ask_each(&ask, "events", events, count, put_event);
    ask_run(&ask);
    return ask_end(&ask);
}

static bool group_is_over(struct ask *ask)
{
    return ask->result == QUIPU_FAILED || group_is_complete(ask);
}

static enum quipu_result group_look(struct quipu *db, const char *name, const char *key, int64_t wait_ms,
                                    struct quipu_group *group, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/groups/*/*", name, key);
    if (ask_run_waiting(&ask, wait_ms, true, group_is_over) > 0) group_told(&ask, group);
    return ask_end(&ask);
}

enum quipu_result quipu_group_get(struct quipu *db, const char *name, const char *key,
                                  struct quipu_group *group, struct quipu_reply **reply)
{
    return group_look(db, name, key, 0, group, reply);
}

enum quipu_result quipu_group_wait(struct quipu *db, const char *name, const char *key, int64_t wait_ms,
                                   struct quipu_group *group, struct quipu_reply **reply)
{
    struct quipu_group own;
    if (!group) group = &own;
    enum quipu_result result = group_look(db, name, key, wait_ms, group, reply);
    return result > 0 && !group->complete ? QUIPU_NONE : result;
}

enum quipu_result quipu_group_complete(struct quipu *db, const char *name, const char *key, int64_t generation,
                                       const char *token, struct quipu_group *group, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/groups/*/*/complete", name, key);
    ask_some(&ask, "generation", generation);
    ask_header(&ask, "Idempotency-Key", token);
    if (ask_run(&ask) > 0) group_told(&ask, group);
    return ask_end(&ask);
}

enum quipu_result quipu_group_delete(struct quipu *db, const char *name, const char *key,
                                     struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/groups/*/*", name, key);
}

struct quipu_pages *quipu_group_list(struct quipu *db, const char *name, int64_t older_ms)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/groups/*", name);
    ask_query(&ask, "state", "open");
    ask_query_ms(&ask, "older", older_ms);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_group_events(struct quipu *db, const char *name, const char *key,
                                       int64_t generation)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/groups/*/*", name, key);
    ask_query_some(&ask, "generation", generation);
    return ask_pages(&ask);
}
