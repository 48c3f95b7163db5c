/* What an endpoint is. ScyllaDB Alternator has no transactions, and of all that speak DynamoDB's API it alone
 * answers GET /localnodes with a list of its nodes; so it is asked for that before anything is begun that it
 * could not finish.
 *
 * The answer is kept as long as the door is open. Where nobody answers nothing is known, and the next call
 * that must know asks again; an endpoint that is there and does not answer this question is asked only a few
 * times. */
#include "base/json.h"
#include "base/limits.h"
#include "dynamo/remote.h"

#define CONNECT_MS 3000
#define TOTAL_MS   8000
#define TIMES_MOST 3 /* without an answer: it has none to this question */

/* ---- the answer ---- */

bool kind_is_alternator(int status, struct slice body, struct arena *arena)
{
    struct json_reader reader;
    struct slice node;
    size_t nodes = 0;
    if (status != 200) return false;
    json_begin(&reader, body, arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return false;
    for (; json_element(&reader); nodes++)
        if (json_peek(&reader) != JSON_STRING || !json_string(&reader, &node) || !node.len) return false;
    return nodes > 0 && json_done(&reader);
}

/* The first one who knows tells. */
static void settle(struct remote *remote, enum dynamo_kind kind)
{
    int unknown = DYNAMO_KIND_UNKNOWN;
    bool is_news = atomic_compare_exchange_strong(&remote->kind, &unknown, kind);
    if (is_news && kind == DYNAMO_KIND_ALTERNATOR && remote->options.on_alternator)
        remote->options.on_alternator();
}

/* It cannot tell now; 501 is an answer. */
static bool is_busy(int status)
{
    return status == 429 || (status >= 500 && status != 501);
}

static void take_answer(struct remote *remote, const struct client_call *http)
{
    bool is_answer = http->end == CLIENT_ANSWERED && !is_busy(http->status);
    bool is_alternator = is_answer && kind_is_alternator(http->status, buf_view(http->reply), http->arena);
    if (is_alternator) {
        nodes_take(remote, buf_view(http->reply)); /* before anybody knows what it is */
        remote->has_answered = true;
    }
    if (is_answer)
        settle(remote, is_alternator ? DYNAMO_KIND_ALTERNATOR : DYNAMO_KIND_USUAL);
    else if (http->end != CLIENT_UNCONNECTED && atomic_fetch_add(&remote->asked_in_vain, 1) + 1 >= TIMES_MOST)
        settle(remote, DYNAMO_KIND_USUAL);
}

/* ---- the question ---- */

/* Nobody signs it: Alternator answers everybody, and who does not know it refuses it in any case. */
struct client_call kind_question(struct slice url, struct arena *arena, struct buf *reply)
{
    if (url.data[url.len - 1] == '/') url.len--;
    return (struct client_call){.method = "GET",
                                .url = arena_printf(arena, "%.*s/localnodes", SLICE_ARG(url)).data,
                                .connect_ms = CONNECT_MS,
                                .total_ms = TOTAL_MS,
                                .reply_max_bytes = LIMIT_NODES_BYTES,
                                .arena = arena,
                                .reply = reply};
}

enum dynamo_kind remote_kind(struct dynamo *dynamo)
{
    return (enum dynamo_kind)atomic_load(&((struct remote *)dynamo)->kind);
}

enum dynamo_kind remote_kind_ask(struct dynamo *dynamo)
{
    struct remote *remote = (struct remote *)dynamo;
    struct arena arena = {0};
    struct buf reply = {0};
    if (remote_kind(dynamo) == DYNAMO_KIND_UNKNOWN) {
        struct client_call http = kind_question(slice_of(remote->endpoint.url), &arena, &reply);
        client_call(remote->client, &http);
        take_answer(remote, &http);
    }
    buf_free(&reply);
    arena_free(&arena);
    return remote_kind(dynamo);
}

/* ---- a call that must know ---- */

/* On the client's thread. Where nobody was there, that was an attempt of the call. */
static void question_done(struct client_call *http)
{
    struct remote_call *call = http->context;
    struct remote *remote = call->remote;
    take_answer(remote, http);
    buf_free(&call->nodes);
    if (http->end == CLIENT_UNCONNECTED && remote_kind(&remote->door) == DYNAMO_KIND_UNKNOWN)
        remote_attempt_end(http);
    else
        remote_call_go(call);
}

static void question_prepare(struct client_call *http)
{
    struct remote_call *call = http->context;
    call->nodes.len = 0;
    call->attempts++;
}

void kind_ask_first(struct remote_call *call)
{
    call->http = kind_question(slice_of(call->remote->endpoint.url), call->call->arena, &call->nodes);
    call->http.prepare = question_prepare;
    call->http.done = question_done;
    call->http.context = call;
}
