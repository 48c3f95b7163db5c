/* Periods: what came within an hour, handed over when it is over. */
#include "library/ask.h"

static const char *const bucket_states[] = {"OPEN", "CLOSING", "DONE", NULL};

enum quipu_result quipu_period_put(struct quipu *db, const char *name,
                                   const struct quipu_period_options *options, struct quipu_reply **reply)
{
    static const struct quipu_period_options defaults;
    struct ask ask;
    if (!options) options = &defaults;
    ask_begin(&ask, db, reply, "PUT", "/v1/periods/*", name);
    ask_some(&ask, "every", options->every_ms);
    ask_text(&ask, "cron", options->cron);
    ask_text(&ask, "zone", options->zone);
    ask_some(&ask, "grace", options->grace_ms);
    ask_some(&ask, "shards", options->shards);
    ask_some(&ask, "keep", options->keep_ms);
    ask_then(&ask, options->then);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_period_show(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "GET", "/v1/periods/*", name);
}

enum quipu_result quipu_period_delete(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/periods/*", name);
}

enum quipu_result quipu_period_add(struct quipu *db, const char *name, const char *id, const char *data,
                                   int64_t time_ms, const char **bucket, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/periods/*", name);
    ask_text(&ask, "id", id);
    ask_json(&ask, "data", data);
    if (time_ms) ask_moment(&ask, "time", time_ms);
    if (ask_run(&ask) > 0 && bucket) *bucket = told_text(&ask, "bucket");
    return ask_end(&ask);
}

static void put_event(struct ask *element, const void *all, size_t number)
{
    const struct quipu_period_event *event = (const struct quipu_period_event *)all + number;
    ask_text(element, "id", event->id);
    ask_json(element, "data", event->data);
    if (event->time_ms) ask_moment(element, "time", event->time_ms);
}

enum quipu_result quipu_period_add_many(struct quipu *db, const char *name, const struct quipu_period_event *events,
                                        size_t count, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/periods/*", name);
    ask_each(&ask, "events", events, count, put_event);
    ask_run(&ask);
    return ask_end(&ask);
}

static void bucket_told(struct ask *ask, struct quipu_bucket *bucket)
{
    if (!bucket) return;
    bucket->state = (enum quipu_bucket_state)told_word(ask, "state", bucket_states);
    bucket->bucket = told_text(ask, "bucket");
    told_int(ask, "count", -1, &bucket->count);
    told_int(ask, "parts", -1, &bucket->parts);
}

enum quipu_result quipu_period_get(struct quipu *db, const char *name, const char *bucket, int64_t part,
                                   struct quipu_bucket *found, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/periods/*/*", name, bucket);
    ask_query_some(&ask, "part", part);
    if (ask_run(&ask) > 0) bucket_told(&ask, found);
    return ask_end(&ask);
}

static bool bucket_is_done(struct ask *ask)
{
    return ask->result < 0 || told_word(ask, "state", bucket_states) == QUIPU_BUCKET_DONE;
}

enum quipu_result quipu_period_wait(struct quipu *db, const char *name, const char *bucket, int64_t wait_ms,
                                    struct quipu_bucket *found, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/periods/*/*", name, bucket);
    if (ask_run_waiting(&ask, wait_ms, true, bucket_is_done) > 0) bucket_told(&ask, found);
    if (!bucket_is_done(&ask)) ask.result = QUIPU_NONE;
    return ask_end(&ask);
}

enum quipu_result quipu_period_close(struct quipu *db, const char *name, int64_t *closed,
                                     struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/periods/*/close", name);
    if (ask_run(&ask) > 0) told_int(&ask, "closed", 0, closed);
    return ask_end(&ask);
}

struct quipu_pages *quipu_period_list(struct quipu *db)
{
    return ask_list(db, "/v1/periods");
}

struct quipu_pages *quipu_period_buckets(struct quipu *db, const char *name, const char *state)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/periods/*/buckets", name);
    ask_query(&ask, "state", state);
    return ask_pages(&ask);
}
