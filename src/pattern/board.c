/* Boards: messages in the order of their time, and the wall of the original.
 *
 * Table PREFIXboards: hash key `board` (S), range key `id` (S): the time of the message and a little more, so
 * that ids sort by time and never meet; `time` (S, ISO 8601), `text` (S), `author` (S, if given). Table
 * PREFIXtokens (tokens.h), kind "board": `id`, `time` of the message that the call with this Idempotency-Key
 * put, `sent`: a digest of it.
 *
 * DELETE lists what is there and deletes that: a message that comes meanwhile stays. Where a board has
 * several pages, the further ones are listed up to the time at which DELETE began. */
#include "pattern/board.h"
#include "calendar/calendar.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"
#include "pattern/tokens.h"

#define WAIT_MOST_MS 60000
#define LIST_MOST    1000
#define LIST_USUAL   100
#define TEXT_BYTES   (300 * 1024) /* of a message: it must fit an item */

static const struct flow_table boards = {
    "boards",
    "'KeySchema':[{'AttributeName':'board','KeyType':'HASH'},{'AttributeName':'id','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'board','AttributeType':'S'},"
    "{'AttributeName':'id','AttributeType':'S'}]",
    NULL};

enum { NAME };
#define FIELD_BOARD                                                                                          \
    {                                                                                                        \
        "name", IN_PATH, FIELD_NAME, true, .help = "the board"                                               \
    }

static uint64_t topic_of(struct slice board)
{
    return flow_topic("board", board, SLICE(""));
}

/* ---- putting ---- */

void board_put(struct flow *flow, struct slice board, struct slice text)
{
    task_call(flow, "PutItem", "{'TableName':%T,'Item':{'board':%S,'id':%S,'time':%S,'text':%S}}", &boards,
              board, flow_new_id(flow), moment_text(flow->arena, flow->now_ms), text);
}

void board_wake(struct flow *flow, struct slice board)
{
    flow_wake(flow, topic_of(board));
}

enum { POST_TEXT = NAME + 1, POST_AUTHOR, POST_KEY };

static const struct field post_fields[] = {
    FIELD_BOARD,
    [POST_TEXT] = {"text", IN_BODY, FIELD_TEXT, true, .max = TEXT_BYTES, .help = "the message"},
    [POST_AUTHOR] = {"author", IN_BODY, FIELD_NAME, .help = "who says so"},
    [POST_KEY] = {"Idempotency-Key", IN_HEADER, FIELD_NAME, .help = "a repeated call posts nothing again"},
};

struct post {
    struct slice id, time;
    struct slice put;  /* the request */
    struct slice sent; /* a digest of the message */
};

static struct post post_of(struct flow *flow)
{
    struct post post = {.id = flow_new_id(flow), .time = moment_text(flow->arena, flow->now_ms)};
    struct slice text = flow_text(flow, POST_TEXT), author = SLICE("");
    if (flow_given(flow, POST_AUTHOR))
        author = flow_compose(flow, ",'author':%S", flow_text(flow, POST_AUTHOR));
    post.put = flow_compose(flow, "{'TableName':%T,'Item':{'board':%S,'id':%S,'time':%S,'text':%S%r}}",
                            &boards, flow_text(flow, NAME), post.id, post.time, text, author);
    post.sent = token_digest(flow, flow_compose(flow, "%s%r", text, author));
    return post;
}

/* With a key: one that was posted before is told again. */
static void post_once(struct flow *flow, struct post *post)
{
    struct slice token = token_put(
        flow, "board", flow_text(flow, NAME), flow_text(flow, POST_KEY),
        flow_compose(flow, ",'id':%S,'time':%S,'sent':%S", post->id, post->time, post->sent));
    flow_needs_transactions(flow);
    task_call(flow, "TransactWriteItems", "{'TransactItems':[{'Put':%r},%r]}", post->put, token);
    if (!flow_failed(flow) || !flow_reason(flow, 1, &token)) return;
    if (!slice_equal(item_text(flow->arena, token, "sent"), post->sent)) {
        token_refuse(flow);
        task_end(flow);
    }
    post->id = item_text(flow->arena, token, "id");
    post->time = item_text(flow->arena, token, "time");
}

static void post_message(struct flow *flow)
{
    struct post post = post_of(flow);
    if (flow_given(flow, POST_KEY))
        post_once(flow, &post);
    else
        task_call(flow, "PutItem", "%r", post.put);
    board_wake(flow, flow_text(flow, NAME));
    flow_answer(flow, 201, "{'id':%s,'time':%s}", post.id, post.time);
}

/* ---- reading ---- */

void board_list(struct flow *flow, struct slice board, struct slice more)
{
    task_call(flow, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#board = "
              ":board',%#,'ExpressionAttributeValues':{':board':%S},"
              "'ConsistentRead':true%r}",
              &boards, board, more);
}

enum { LIST_LIMIT = NAME + 1, LIST_AFTER, LIST_BEFORE, LIST_WAIT };

static const struct field list_fields[] = {
    FIELD_BOARD,
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "only messages behind this id"},
    [LIST_BEFORE] = {"before", IN_QUERY, FIELD_NAME,
                     .help = "the last ones before this id, the latest first; "
                             "\"now\": the latest of all"},
    [LIST_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = WAIT_MOST_MS,
                   .help = "wait so long for a message"},
};

static void put_messages(struct flow *flow, struct slice items)
{
    struct raw_look look;
    struct slice item;
    bool first = true;
    raw_look_begin(&look, flow->arena, items);
    while (raw_look_next(&look, NULL, &item)) {
        struct slice author = item_text(flow->arena, item, "author");
        buf_slice(flow->body,
                  flow_compose(flow, "%r{'id':%s,'time':%s,'text':%s%r}", first ? SLICE("") : SLICE(","),
                               item_text(flow->arena, item, "id"), item_text(flow->arena, item, "time"),
                               item_text(flow->arena, item, "text"),
                               author.data ? flow_compose(flow, ",'author':%s", author) : SLICE("")));
        first = false;
    }
}

static void list_page(struct flow *flow)
{
    bool back = flow_given(flow, LIST_BEFORE);
    struct slice board = flow_text(flow, NAME), edge = flow_text(flow, back ? LIST_BEFORE : LIST_AFTER);
    bool from_end = back && slice_equal(edge, SLICE("now"));
    struct slice more = flow_compose(flow, ",'Limit':%d,'ScanIndexForward':%b",
                                     flow_int_or(flow, LIST_LIMIT, LIST_USUAL), (int)!back);
    if ((back || flow_given(flow, LIST_AFTER)) && !from_end)
        more = flow_compose(flow, "%r,'ExclusiveStartKey':{'board':%S,'id':%S}", more, board, edge);
    board_list(flow, board, more);
}

static void list_messages(struct flow *flow)
{
    struct slice board = flow_text(flow, NAME);
    int64_t until_ms = flow->now_ms + flow_int_or(flow, LIST_WAIT, 0);
    for (;;) {
        flow_look(flow);
        list_page(flow);
        if (raw_count(flow->arena, flow_items(flow)) || flow->now_ms >= until_ms) break;
        task_watch(flow, topic_of(board), flow_item_thing(&boards, board, SLICE("")), until_ms);
    }
    struct slice last = flow_last_key(flow);
    buf_text(flow->body, "{\"messages\":[");
    put_messages(flow, flow_items(flow));
    buf_slice(flow->body, last.data ? flow_compose(flow, "],'next':%s}", item_text(flow->arena, last, "id"))
                                    : SLICE("]}"));
    flow_finish(flow, 200);
}

/* ---- deleting ---- */

/* Deletes the messages of the page that was read, in batches. */
static int64_t delete_page(struct flow *flow, struct slice board)
{
    struct slice items = flow_items(flow), item, keys[SWEEP_REMOVED];
    struct raw_look look;
    size_t count = 0;
    int64_t deleted = 0;
    bool more = true;
    raw_look_begin(&look, flow->arena, items);
    while (more) {
        more = raw_look_next(&look, NULL, &item);
        if (more)
            keys[count++] = flow_compose(flow, "{'board':%S,'id':%A}", board,
                                         item_attribute(flow->arena, item, "id"));
        if (!count || (more && count < SWEEP_REMOVED)) continue;
        delete_items(flow, &boards, keys, count);
        deleted += (int64_t)count;
        count = 0;
    }
    return deleted;
}

int64_t board_delete(struct flow *flow, struct slice board)
{
    struct slice last_key,
        bound = arena_printf(flow->arena, "%.*s~", SLICE_ARG(moment_text(flow->arena, flow->now_ms)));
    int64_t deleted = 0;
    board_list(flow, board, SLICE(",\"ProjectionExpression\":\"id\""));
    while ((last_key = flow_last_key(flow)).data) {
        deleted += delete_page(flow, board);
        task_call(flow, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#board = :board and #id <= :bound',%#,"
                  "'ExpressionAttributeValues':{':board':%S,':bound':%S},'ProjectionExpression':'id',"
                  "'ConsistentRead':true,'ExclusiveStartKey':%r}",
                  &boards, board, bound, last_key);
    }
    return deleted + delete_page(flow, board);
}

static const struct field board_fields[] = {FIELD_BOARD};

static void delete_messages(struct flow *flow)
{
    flow_answer(flow, 200, "{'deleted':%d}", board_delete(flow, flow_text(flow, NAME)));
}

/* ---- one message ---- */

enum { REMOVE_ID = NAME + 1 };

static const struct field remove_fields[] = {
    FIELD_BOARD,
    [REMOVE_ID] = {"id", IN_PATH, FIELD_NAME, true, .help = "the message"},
};

static void remove_message(struct flow *flow)
{
    task_call(flow, "DeleteItem", "{'TableName':%T,'Key':{'board':%S,'id':%S},'ReturnValues':'ALL_OLD'}",
              &boards, flow_text(flow, NAME), flow_text(flow, REMOVE_ID));
    if (flow_item(flow).data)
        flow_answer(flow, 200, "{'deleted':1}");
    else
        flow_refuse(flow, 404, "no-such-message", "There is no message of this id on this board.");
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row board_rows[] = {
    {"GET", "/v1/boards/{name}", list_messages, "The messages of a board, oldest first.", FIELDS(list_fields),
     "{'messages':[{'id':'2026-11-15T03:42:06.250Z-000001-5f3c9d','time':'2026-11-15T03:42:06.250Z','text':'hello'}]}",
     "board ls -> messages"},
    {"POST", "/v1/boards/{name}", post_message, "Posts a message.", FIELDS(post_fields),
     "{'id':'2026-11-15T03:42:06.250Z-000001-5f3c9d','time':'2026-11-15T03:42:06.250Z'}", "board post text -> id"},
    {"DELETE", "/v1/boards/{name}", delete_messages, "Deletes the messages that are there now.", FIELDS(board_fields),
     "{'deleted':3}", "board clear"},
    {"DELETE", "/v1/boards/{name}/{id}", remove_message, "Deletes one message.", FIELDS(remove_fields), "{'deleted':1}",
     "board rm"},
};
/* clang-format on */
ROW_COUNT(board);
