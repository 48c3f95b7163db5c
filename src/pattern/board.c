/* Boards: messages in the order of their time, and the wall of the original.
 *
 * Table PREFIXboards: hash key `board` (S), range key `id` (S): the time of the message and a little more, so
 * that ids sort by time and never meet; `time` (S, ISO 8601), `text` (S), `author` (S, if given), `key` (S): the
 * Idempotency-Key it was posted with. A message with a key that was deleted stays for a day as {deleted: true,
 * expires}; `expires` (N, seconds) is the time to live. Table PREFIXtokens (tokens.h), kind "board": `id`, `time` of
 * the message that the call with this Idempotency-Key posts, `sent`: a digest of it.
 *
 * With a key the token comes first and says which message it is. Then that is put, if it is absent: by this call, or
 * by its repeat. What is left of a deleted one keeps both, however late they are, from posting it again.
 *
 * Messages are items of their own and no chain of pages (chain.h): each can be deleted, its id is a time, and a
 * post need not know where the board ends.
 *
 * DELETE lists what is there and deletes that: a message that comes meanwhile stays. Where a board has
 * several pages, the further ones are listed up to the time at which DELETE began. */
#include "pattern/board.h"
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/names.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"
#include "pattern/tokens.h"

#define TEXT_BYTES (300 * 1024) /* of a message: it must fit an item */

static const struct flow_table boards = {"boards", "board id", "expires"};

enum { NAME };
#define FIELD_BOARD FIELD_IN_PATH("name", 0, "the board")

static uint64_t topic_of(struct slice board)
{
    return flow_topic("board", board, SLICE(""));
}

/* ---- putting ---- */

void board_put(struct flow *flow, struct slice board, struct slice text)
{
    names_note(flow, SLICE("board"), board);
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
    [POST_KEY] = FIELD_REPEATS("a repeated call posts nothing again"),
};

static void post_message(struct flow *flow)
{
    struct slice board = flow_text(flow, NAME), text = flow_text(flow, POST_TEXT),
                 key = flow_text(flow, POST_KEY);
    struct slice id = flow_new_id(flow), time = moment_text(flow->arena, flow->now_ms);
    struct slice author = flow_compose(flow, "%[,'author':%S%]", flow_text(flow, POST_AUTHOR));
    names_note(flow, SLICE("board"), board);
    if (key.data) {
        struct slice sent = token_digest(flow, flow_compose(flow, "%s%r", text, author));
        struct slice before = token_keep(flow, "board", board, key,
                                         flow_compose(flow, ",'id':%S,'time':%S,'sent':%S", id, time, sent));
        if (before.data && !slice_equal(item_text(flow->arena, before, "sent"), sent)) token_refuse(flow);
        if (before.data) {
            id = item_text(flow->arena, before, "id");
            time = item_text(flow->arena, before, "time");
        }
    }
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'board':%S,'id':%S,'time':%S,'text':%S%A%[,'key':%S%]}"
              "%[%?,'ConditionExpression':'attribute_not_exists(id)'%]}",
              &boards, board, id, time, text, author, key, (int)(key.data != NULL));
    board_wake(flow, board);
    flow_answer(flow, 201, "{'id':%s,'time':%s}", id, time);
}

/* ---- reading ---- */

void board_list(struct flow *flow, struct slice board, struct slice more, struct slice from)
{
    task_query(flow, "#board = :board",
               ",'FilterExpression':'attribute_not_exists(#deleted)'" READ_FRESH "%A" READ_FROM,
               "':board':%S", &boards, more, from, board);
}

enum { LIST_LIMIT = NAME + 1, LIST_AFTER, LIST_BEFORE, LIST_WAIT };

static const struct field list_fields[] = {
    FIELD_BOARD,
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "only messages behind this id"},
    [LIST_BEFORE] = {"before", IN_QUERY, FIELD_NAME,
                     .help = "the last ones before this id, the latest first; "
                             "\"now\": the latest of all"},
    [LIST_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long for a message"),
};

/* A page with at least one message, where there is one: what is left of deleted messages may fill others. */
static void list_page(struct flow *flow)
{
    bool back = flow_given(flow, LIST_BEFORE);
    struct slice board = flow_text(flow, NAME), edge = flow_text(flow, back ? LIST_BEFORE : LIST_AFTER),
                 start = SLICE_NONE;
    struct slice more = flow_compose(flow, ",'Limit':%d,'ScanIndexForward':%b",
                                     flow_int_or(flow, LIST_LIMIT, LIST_USUAL), (int)!back);
    if (edge.len && !(back && slice_equal(edge, SLICE("now"))))
        start = flow_compose(flow, "{'board':%S,'id':%S}", board, edge);
    do {
        board_list(flow, board, more, start);
        start = flow_last_key(flow);
    } while (!raw_first(flow->arena, flow_items(flow)).data && start.data);
}

static void list_messages(struct flow *flow)
{
    struct slice board = flow_text(flow, NAME), item;
    int64_t until_ms = flow->now_ms + flow_int_or(flow, LIST_WAIT, 0);
    for (;;) {
        flow_look(flow);
        list_page(flow);
        if (raw_first(flow->arena, flow_items(flow)).data || flow->now_ms >= until_ms) break;
        task_watch(flow, topic_of(board), flow_item_thing(&boards, board, SLICE("")), until_ms);
    }
    buf_text(flow->body, "{\"messages\":[");
    raw_each (flow->arena, flow_items(flow), &item) {
        flow_put(flow, flow->body, "%,{'id':%s", item_text(flow->arena, item, "id"));
        plain_put_members(flow->body, flow->arena, item, "time text author");
        buf_byte(flow->body, '}');
    }
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "id"));
}

/* ---- deleting ---- */

/* Of a message with a key something stays. False: it was deleted before. */
static bool bury(struct flow *flow, struct slice board, struct slice id)
{
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'board':%S,'id':%S,'deleted':{'BOOL':true},'expires':%N},"
              "'ConditionExpression':'attribute_exists(#key)',%#}",
              &boards, board, id, flow->now_ms / 1000 + TOKEN_KEPT_S);
    return !flow_failed(flow);
}

/* Deletes the messages of the page that was read, in batches. */
static int64_t delete_page(struct flow *flow, struct slice board)
{
    struct slice items = flow_items(flow), item, keys[SWEEP_REMOVED];
    size_t count = 0;
    int64_t deleted = 0;
    raw_each (flow->arena, items, &item) {
        struct slice id = item_text(flow->arena, item, "id");
        deleted++;
        if (item_has(flow->arena, item, "key"))
            bury(flow, board, id);
        else
            keys[count++] = flow_compose(flow, "{'board':%S,'id':%S}", board, id);
        if (count < SWEEP_REMOVED) continue;
        delete_items(flow, &boards, keys, count);
        count = 0;
    }
    if (count) delete_items(flow, &boards, keys, count);
    return deleted;
}

int64_t board_delete(struct flow *flow, struct slice board)
{
    struct slice bound = arena_printf(flow->arena, "%.*s~",
                                      SLICE_ARG(moment_text(flow->arena, flow->now_ms)));
    struct slice last_key = SLICE_NONE;
    int64_t deleted = 0;
    do {
        bool is_further = last_key.data;
        task_query(flow, "#board = :board%[%? and #id <= :bound%]",
                   ",'FilterExpression':'attribute_not_exists(#deleted)'"
                   ",'ProjectionExpression':'#id,#key'" READ_FRESH READ_FROM,
                   "':board':%S%[%?,':bound':%S%]", &boards, (int)is_further, last_key, board,
                   (int)is_further, bound);
        last_key = flow_last_key(flow);
        deleted += delete_page(flow, board);
    } while (last_key.data);
    return deleted;
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
    struct slice board = flow_text(flow, NAME), id = flow_text(flow, REMOVE_ID);
    task_call(
        flow, "DeleteItem",
        "{'TableName':%T,'Key':{'board':%S,'id':%S},'ConditionExpression':"
        "'attribute_not_exists(#key) and attribute_not_exists(#deleted)',%#,'ReturnValues':'ALL_OLD',%O}",
        &boards, board, id);
    if (flow_failed(flow) ? item_has(flow->arena, flow_item(flow), "key") && bury(flow, board, id)
                          : flow_item(flow).data != NULL)
        flow_answer(flow, 200, "{'deleted':1}");
    else
        flow_refuse(flow, 404, "no-such-message", "There is no message of this id on this board.");
}

/* ---- all boards ---- */

static struct slice told_in_list(struct flow *flow, struct slice last)
{
    return flow_compose(flow, "%[,'last':%s%]", item_text(flow->arena, last, "time"));
}

NAMES_LIST(list_boards, SLICE("board"), "boards", "name", "board", .children = &boards, .tell = told_in_list)

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
    {"GET", "/v1/boards", list_boards, "The boards that have messages, by name, and when the last one came.",
     FIELDS(names_fields), "{'boards':[{'name':'wall','last':'2026-11-15T03:42:06.250Z'}]}", "board list -> boards"},
};
/* clang-format on */
ROW_COUNT(board);
