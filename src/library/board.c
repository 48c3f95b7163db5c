/* Boards: messages in the order of their time. */
#include "library/ask.h"

enum quipu_result quipu_board_post(struct quipu *db, const char *board, const char *text, const char *author,
                                   const char **id, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/boards/*", board);
    ask_text(&ask, "text", text);
    ask_text(&ask, "author", author);
    if (ask_run(&ask) > 0 && id) *id = told_text(&ask, "id");
    return ask_end(&ask);
}

static bool board_has_news(struct ask *ask)
{
    return !slice_equal(told(ask, "messages"), SLICE("[]"));
}

enum quipu_result quipu_board_wait(struct quipu *db, const char *board, const char *after, int64_t wait_ms,
                                   struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/boards/*", board);
    ask_query(&ask, "after", after);
    if (ask_run_waiting(&ask, wait_ms, true, board_has_news) > 0 && !board_has_news(&ask))
        ask.result = QUIPU_NONE;
    return ask_end(&ask);
}

enum quipu_result quipu_board_clear(struct quipu *db, const char *board, int64_t *deleted,
                                    struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "DELETE", "/v1/boards/*", board);
    if (ask_run(&ask) > 0) told_int(&ask, "deleted", 0, deleted);
    return ask_end(&ask);
}

enum quipu_result quipu_board_delete(struct quipu *db, const char *board, const char *id,
                                     struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/boards/*/*", board, id);
}

struct quipu_pages *quipu_board_list(struct quipu *db, const char *board, const char *after)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/boards/*", board);
    ask_query(&ask, "after", after);
    return ask_pages(&ask);
}
