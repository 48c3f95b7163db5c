/* Histories: every change of a table. */
#include "library/ask.h"

enum quipu_result quipu_history_put(struct quipu *db, const char *table, int64_t keep_ms, int64_t versions,
                                    struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/history/*", table);
    ask_some(&ask, "keep", keep_ms);
    ask_some(&ask, "versions", versions);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_history_show(struct quipu *db, const char *table, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "GET", "/v1/history/*", table);
}

enum quipu_result quipu_history_delete(struct quipu *db, const char *table, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/history/*", table);
}

enum quipu_result quipu_history_feed(struct quipu *db, const char *table, const struct quipu_record *record,
                                     struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/history/*", table);
    struct buf *body = ask_member(&ask, "Records");
    buf_byte(body, '[');
    buf_put(body, record->json, record->json_len);
    buf_byte(body, ']');
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_history_at(struct quipu *db, const char *table, const char *key, const char *range,
                                   int64_t time_ms, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/history/*/*", table, key);
    ask_query(&ask, "range", range);
    ask_query_moment(&ask, "at", time_ms);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_history_restore(struct quipu *db, const char *table, const char *key,
                                        const char *range, const struct quipu_restore *restore,
                                        struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/history/*/*/restore", table, key);
    ask_text(&ask, "range", range);
    ask_text(&ask, "version", restore->version);
    ask_text(&ask, "expect", restore->expect);
    if (!restore->version) ask_moment(&ask, "at", restore->time_ms);
    ask_run(&ask);
    return ask_end(&ask);
}

struct quipu_pages *quipu_history_versions(struct quipu *db, const char *table, const char *key,
                                           const char *range, int64_t from_ms, int64_t to_ms)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/history/*/*", table, key);
    ask_query(&ask, "range", range);
    if (from_ms) ask_query_moment(&ask, "from", from_ms);
    if (to_ms) ask_query_moment(&ask, "to", to_ms);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_history_changes(struct quipu *db, const char *table, int64_t from_ms, int64_t to_ms)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/history/*", table);
    ask_query_moment(&ask, "from", from_ms);
    if (to_ms) ask_query_moment(&ask, "to", to_ms);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_history_table(struct quipu *db, const char *table, int64_t time_ms)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/history/*", table);
    ask_query_moment(&ask, "at", time_ms);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_history_list(struct quipu *db)
{
    return ask_list(db, "/v1/history");
}
