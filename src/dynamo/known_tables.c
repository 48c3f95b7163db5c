/* What the door must know of a table on ScyllaDB Alternator before it writes an item there: the attribute of its hash
 * key, by which a node is chosen (nodes.c), and of tables of ours that every write to them is isolated.
 *
 * Alternator has a setting for each table, its tag system:write_isolation. Only with "always" a plain write beside a
 * conditional one of the same item is safe, and all that Quipu does rests on that; so a table of ours without it is
 * refused. Both are asked once for each table, by the first call that names it. */
#include "base/hash.h"
#include "base/json.h"
#include "base/raw.h"
#include "dynamo/remote.h"

/* A call before which its table is asked for; lives in its arena. */
struct table_question {
    struct dynamo_call call;
    struct buf reply;
    struct remote_call *waiting;
    struct slice table, hash;
};

static bool is_of_items(struct slice operation)
{
    return slice_equal(operation, SLICE("PutItem")) || slice_equal(operation, SLICE("UpdateItem")) ||
           slice_equal(operation, SLICE("DeleteItem")) || slice_equal(operation, SLICE("GetItem"));
}

bool table_is_ours(struct remote *remote, struct slice operation, struct slice request, struct arena *arena)
{
    if (!is_of_items(operation) && !slice_equal(operation, SLICE("CreateTable"))) return false;
    struct slice table = raw_string(arena, raw_member(arena, request, "TableName"));
    return slice_starts(table, slice_of(remote->options.prefix));
}

struct slice table_isolated(struct remote_call *call, struct slice request)
{
    struct arena *arena = call->call->arena;
    if (!slice_equal(call->operation, SLICE("CreateTable")) || !raw_is_json(arena, request) ||
        !table_is_ours(call->remote, call->operation, request, arena) ||
        raw_member(arena, request, "Tags").data)
        return request;
    const char *brace = memchr(request.data, '{', request.len);
    struct slice members = slice_from(request, (size_t)(brace - request.data) + 1);
    return arena_printf(arena, "{\"Tags\":[{\"Key\":\"system:write_isolation\",\"Value\":\"always\"}],%.*s",
                        SLICE_ARG(members));
}

/* ---- what is known ---- */

static bool find(struct remote *remote, struct slice table, struct slice *hash)
{
    bool is_known = false;
    pthread_mutex_lock(&remote->lock);
    for (size_t i = 0; i < remote->table_count && !is_known; i++) {
        is_known = slice_equal(remote->tables[i].name, table);
        if (is_known) *hash = remote->tables[i].hash;
    }
    pthread_mutex_unlock(&remote->lock);
    return is_known;
}

/* Texts stay as long as the door. */
static void remember(struct remote *remote, struct slice table, struct slice hash)
{
    struct slice known;
    if (find(remote, table, &known)) return;
    pthread_mutex_lock(&remote->lock);
    if (remote->table_count < LIMIT_KNOWN_TABLES)
        remote->tables[remote->table_count++] = (struct known_table){arena_copy(&remote->tables_arena, table),
                                                                     arena_copy(&remote->tables_arena, hash)};
    pthread_mutex_unlock(&remote->lock);
}

/* By the text of its value, which is as the caller writes it: the same caller writes it the same way. */
static void set_key(struct remote_call *call, struct slice table, struct slice hash)
{
    struct arena *arena = call->call->arena;
    struct slice key = raw_member(arena, call->call->request, "Key");
    if (!key.data) key = raw_member(arena, call->call->request, "Item");
    struct slice value = raw_member(arena, key, arena_copy(arena, hash).data);
    call->has_key = value.data != NULL;
    call->key = hash_bytes(value) ^ hash_bytes(table);
}

/* ---- the questions ---- */

static void go_on(struct table_question *question)
{
    buf_free(&question->reply);
    remote_call_send(question->waiting);
}

static void ask(struct table_question *question, struct slice operation, const char *member,
                struct slice value, void (*done)(struct dynamo_call *), struct dynamo_turn *turn)
{
    struct remote_call *waiting = question->waiting;
    struct buf request = {0};
    buf_printf(&request, "{\"%s\":", member);
    json_put_string(&request, value);
    buf_byte(&request, '}');
    question->reply.len = 0;
    question->call = (struct dynamo_call){.name = operation,
                                          .request = arena_copy(waiting->call->arena, buf_view(&request)),
                                          .arena = waiting->call->arena,
                                          .reply = &question->reply,
                                          .done = done};
    buf_free(&request);
    dynamo_begin(&waiting->remote->door, &question->call, turn);
}

static bool is_isolated(struct slice reply, struct arena *arena)
{
    struct raw_look look;
    struct slice none, tag;
    raw_look_begin(&look, arena, raw_member(arena, reply, "Tags"));
    while (raw_look_next(&look, &none, &tag)) {
        struct slice value = raw_string(arena, raw_member(arena, tag, "Value"));
        if (slice_equal(raw_string(arena, raw_member(arena, tag, "Key")), SLICE("system:write_isolation")))
            return slice_equal(value, SLICE("always")) || slice_equal(value, SLICE("always_use_lwt")) ||
                   slice_equal(value, SLICE("a"));
    }
    return false;
}

static void refuse(struct table_question *question)
{
    struct dynamo_call *call = question->waiting->call;
    call->error = DYNAMO_NOT_ISOLATED;
    call->status = 400;
    buf_text(call->reply, "{\"__type\":\"" DYNAMO_NOT_ISOLATED "\",\"message\":");
    json_put_string(
        call->reply,
        arena_printf(call->arena,
                     "The table %.*s on this ScyllaDB Alternator has not the tag system:write_isolation "
                     "= always, without which writes of one item are not safe beside each other. Give it "
                     "the tag (TagResource), or delete the table if it is not in use.",
                     SLICE_ARG(question->table)));
    buf_byte(call->reply, '}');
    buf_free(&question->reply);
    call->done(call);
}

/* What cannot be asked now is asked by the next call. */
static void tags_done(struct dynamo_call *call)
{
    struct table_question *question = (struct table_question *)call;
    bool is_known = call->status == 200;
    if (is_known && !is_isolated(buf_view(&question->reply), call->arena)) {
        refuse(question);
        return;
    }
    if (is_known) remember(question->waiting->remote, question->table, question->hash);
    go_on(question);
}

static void description_done(struct dynamo_call *call)
{
    struct table_question *question = (struct table_question *)call;
    struct remote *remote = question->waiting->remote;
    struct arena *arena = call->arena;
    struct slice table = raw_member(arena, buf_view(&question->reply), "Table"), none, element;
    struct dynamo_turn turn = {0};
    struct raw_look look;
    raw_look_begin(&look, arena, raw_member(arena, table, "KeySchema"));
    while (raw_look_next(&look, &none, &element))
        if (slice_equal(raw_string(arena, raw_member(arena, element, "KeyType")), SLICE("HASH")))
            question->hash = arena_copy(arena,
                                        raw_string(arena, raw_member(arena, element, "AttributeName")));
    if (call->status != 200 || !question->hash.len) {
        go_on(question);
        return;
    }
    set_key(question->waiting, question->table, question->hash);
    if (!slice_starts(question->table, slice_of(remote->options.prefix))) {
        remember(remote, question->table, question->hash);
        go_on(question);
        return;
    }
    struct slice arn = arena_copy(arena, raw_string(arena, raw_member(arena, table, "TableArn")));
    ask(question, SLICE("ListTagsOfResource"), "ResourceArn", arn, tags_done, &turn);
    dynamo_turn_end(&remote->door, &turn);
}

bool table_ask_first(struct remote_call *call, struct dynamo_turn *turn)
{
    struct remote *remote = call->remote;
    struct arena *arena = call->call->arena;
    struct slice hash;
    if (remote_kind(&remote->door) != DYNAMO_KIND_ALTERNATOR || !is_of_items(call->operation)) return false;
    struct slice table = raw_string(arena, raw_member(arena, call->call->request, "TableName"));
    if (!table.len) return false;
    if (find(remote, table, &hash)) {
        set_key(call, table, hash);
        return false;
    }
    struct table_question *question = arena_new(arena, struct table_question);
    question->waiting = call;
    question->table = table;
    ask(question, SLICE("DescribeTable"), "TableName", table, description_done, turn);
    return true;
}
