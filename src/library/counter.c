/* Counters: numbers that are given once. */
#include "library/ask.h"

enum quipu_result quipu_counter_add(struct quipu *db, const char *name, int64_t by, int64_t *value,
                                    struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/counters/*", name);
    ask_int(&ask, "by", by);
    if (ask_run(&ask) > 0) told_int(&ask, "value", 0, value);
    return ask_end(&ask);
}

enum quipu_result quipu_counter_block(struct quipu *db, const char *name, int64_t count, int64_t *first,
                                      int64_t *last, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/counters/*", name);
    ask_int(&ask, "block", count);
    if (ask_run(&ask) > 0) {
        told_int(&ask, "first", 0, first);
        told_int(&ask, "last", 0, last);
    }
    return ask_end(&ask);
}

enum quipu_result quipu_counter_take(struct quipu *db, const char *name,
                                     const struct quipu_counter_options *options, int64_t *first,
                                     int64_t *last, struct quipu_reply **reply)
{
    static const struct quipu_counter_options defaults;
    struct ask ask;
    if (!options) options = &defaults;
    ask_begin(&ask, db, reply, "POST", "/v1/counters/*", name);
    ask_some(&ask, "by", options->by);
    ask_some(&ask, "block", options->block);
    ask_some(&ask, "start", options->start);
    if (options->max) ask_int(&ask, "max", *options->max);
    if (options->min) ask_int(&ask, "min", *options->min);
    ask_header(&ask, "Idempotency-Key", options->token);
    if (ask_run(&ask) > 0) {
        told_int(&ask, options->block ? "first" : "value", 0, first);
        told_int(&ask, options->block ? "last" : "value", 0, last);
    }
    return ask_end(&ask);
}

enum quipu_result quipu_counter_get(struct quipu *db, const char *name, int64_t *value,
                                    struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/counters/*", name);
    if (ask_run(&ask) > 0) told_int(&ask, "value", 0, value);
    return ask_end(&ask);
}

enum quipu_result quipu_counter_set(struct quipu *db, const char *name, int64_t value,
                                    struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/counters/*", name);
    ask_int(&ask, "value", value);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_counter_delete(struct quipu *db, const char *name, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/counters/*", name);
}
