/* The originals' own routes, word for word: the atomic counter (GET /counter?systemKey=K answers a bare
 * number) and the message wall (GET, POST, DELETE /wall in plain text). They are the counter of that key and
 * the board "wall".
 *
 * The counter's original answers the number before it adds one and needs its keys made beforehand, beginning
 * at 1; here a new key simply begins, and its first number is 1 as well. */
#include "base/limits.h"
#include "pattern/board.h"
#include "pattern/counter.h"
#include "pattern/rows.h"

#define TEXT_BYTES (300 * 1024) /* of a message: it must fit an item */

static const struct slice plain_text = SLICE("text/plain; charset=utf-8");

/* ---- the counter ---- */

static const struct field counter_fields[] = {
    {"systemKey", IN_QUERY, FIELD_NAME, true, .help = "the counter"},
};

static void counter_next(struct flow *flow)
{
    flow_answer(flow, 200, "%r", counter_add_one(flow, flow_text(flow, 0)));
}

/* ---- the wall ---- */

static const struct slice wall = SLICE("wall");

static const struct field wall_fields[] = {
    {"message", WHOLE_BODY, FIELD_RAW, .max = TEXT_BYTES, .help = "the message"},
};

static void put_wall_page(struct flow *flow)
{
    struct slice item;
    raw_each (flow->arena, flow_items(flow), &item) {
        buf_slice(flow->body, item_text(flow->arena, item, "text"));
        buf_byte(flow->body, '\n');
    }
    if (flow->body->len - flow->body_start <= LIMIT_BODY_BYTES) return;
    task_refuse(flow, 413, "too-large",
                "The wall has too many messages to show at once: GET /v1/boards/wall has pages.");
}

static void wall_show(struct flow *flow)
{
    struct slice last = SLICE_NONE;
    do {
        board_list(flow, wall, SLICE(""), last);
        put_wall_page(flow);
        last = flow_last_key(flow);
    } while (last.data);
    if (flow->body->len == flow->body_start) buf_text(flow->body, "No message yet.");
    flow->content_type = plain_text;
    flow_finish(flow, 200);
}

static void wall_post(struct flow *flow)
{
    board_put(flow, wall, flow_text(flow, 0));
    board_wake(flow, wall);
    wall_show(flow);
}

static void wall_delete(struct flow *flow)
{
    board_delete(flow, wall);
    flow->content_type = plain_text;
    flow_answer(flow, 200, "Messages deleted.");
}

static void wall_other(struct flow *flow)
{
    flow->content_type = plain_text;
    flow_answer(flow, 200, "Method unsupported.");
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row original_rows[] = {
    {"GET", "/counter", counter_next, "The next number of a counter, bare.", FIELDS(counter_fields), "42", NULL},
    {"GET", "/wall", wall_show, "All messages of the wall.", FIELDS(wall_fields), "hello\n", NULL},
    {"POST", "/wall", wall_post, "Writes the body on the wall; answers all messages.", FIELDS(wall_fields),
     "hello\n", NULL},
    {"DELETE", "/wall", wall_delete, "Clears the wall.", FIELDS(wall_fields), "Messages deleted.", NULL},
    {"PUT", "/wall", wall_other, "Not known to the original either.", FIELDS(wall_fields),
     "Method unsupported.", NULL},
    {"PATCH", "/wall", wall_other, "Not known to the original either.", FIELDS(wall_fields),
     "Method unsupported.", NULL},
};
/* clang-format on */
ROW_COUNT(original);
