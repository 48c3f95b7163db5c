/* The nodes of a cluster of ScyllaDB Alternator, and which of them gets a call.
 *
 * A conditional write there is a round of Paxos on its hash key, and rounds that begin at two nodes at the same time
 * disturb each other. So calls with the same hash key go to the same node, the one with the highest score for the key
 * (rendezvous hashing): when a node is gone its keys go to the next one of their own order, and all others stay.
 *
 * The list comes with the answer to what the endpoint is (kind.c) and is asked for again now and then. A node that does
 * not answer is left out for a while, longer each time; when none is left, calls go to the endpoint itself, as do those
 * without a hash key. Over HTTPS all do: a certificate seldom names the address of a node. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "dynamo/remote.h"

#define DEAD_FIRST_US   (2 * 1000000ll)
#define DEAD_LONGEST_US (300 * 1000000ll)

/* ---- the list ---- */

static void free_list(struct node_list *list)
{
    arena_free(&list->arena);
    *list = (struct node_list){0};
}

/* "http://HOST:PORT/PATH" of the endpoint, with a node's address in the place of HOST. */
static struct node node_of(const struct endpoint *endpoint, struct slice address, struct arena *arena)
{
    const char *colon = strrchr(endpoint->host, ':');
    if (colon && strchr(colon, ']')) colon = NULL;
    bool is_bare6 = memchr(address.data, ':', address.len) && address.data[0] != '[';
    const char *host =
        arena_printf(arena, is_bare6 ? "[%.*s]%s" : "%.*s%s", SLICE_ARG(address), colon ? colon : "").data;
    return (struct node){.host = host, .url = arena_printf(arena, "http://%s%s", host, endpoint->path).data};
}

/* What was known of a node stays known. */
static void keep_marks(struct node *node, const struct node_list *old)
{
    for (size_t i = 0; i < old->count; i++)
        if (strcmp(old->nodes[i].host, node->host) == 0) {
            node->dead_until_us = old->nodes[i].dead_until_us;
            node->failures = old->nodes[i].failures;
        }
}

void nodes_take(struct remote *remote, struct slice body)
{
    struct node_list new = {0};
    struct json_reader reader;
    struct slice address;
    if (strncmp(remote->endpoint.url, "http://", 7) != 0) return;
    new.nodes = arena_array(&new.arena, struct node, LIMIT_NODES);
    json_begin(&reader, body, &new.arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) new.count = 0;
    while (json_element(&reader) && json_string(&reader, &address) && new.count < LIMIT_NODES)
        if (address.len) new.nodes[new.count++] = node_of(&remote->endpoint, address, &new.arena);
    pthread_mutex_lock(&remote->lock);
    remote->nodes_asked_us = monotonic_us();
    if (new.count) {
        struct node_list old = remote->nodes;
        for (size_t i = 0; i < new.count; i++) keep_marks(&new.nodes[i], &old);
        remote->nodes = new;
        new = old;
    }
    pthread_mutex_unlock(&remote->lock);
    free_list(&new);
}

void nodes_free(struct remote *remote)
{
    free_list(&remote->nodes);
    if (remote->nodes_question) {
        buf_free(&remote->nodes_question->reply);
        arena_free(&remote->nodes_question->arena);
        free(remote->nodes_question);
    }
}

/* ---- the choice ---- */

static uint64_t score(const struct node *node, uint64_t key)
{
    uint64_t words[2] = {hash_bytes(slice_of(node->host)), key};
    return hash_bytes((struct slice){(const char *)words, sizeof words});
}

/* With the lock. NULL: none is alive, or there is no choice. */
static struct node *best_of(struct node_list *list, uint64_t key, int64_t now_us)
{
    struct node *best = NULL;
    uint64_t best_score = 0;
    if (list->count < 2) return NULL;
    for (size_t i = 0; i < list->count; i++) {
        struct node *node = &list->nodes[i];
        uint64_t own = score(node, key);
        if (node->dead_until_us > now_us || (best && own <= best_score)) continue;
        best = node;
        best_score = own;
    }
    return best;
}

void nodes_choose(struct remote_call *call)
{
    struct remote *remote = call->remote;
    call->node_host = call->node_url = NULL;
    if (!call->has_key) return;
    pthread_mutex_lock(&remote->lock);
    const struct node *best = best_of(&remote->nodes, call->key, monotonic_us());
    if (best) { /* copied: the list may change while the call is under way */
        call->node_host = arena_copy(call->call->arena, slice_of(best->host)).data;
        call->node_url = arena_copy(call->call->arena, slice_of(best->url)).data;
    }
    pthread_mutex_unlock(&remote->lock);
}

bool nodes_note(struct remote_call *call, bool has_answered)
{
    struct remote *remote = call->remote;
    if (!call->node_host) return false;
    int64_t now_us = monotonic_us();
    pthread_mutex_lock(&remote->lock);
    for (size_t i = 0; i < remote->nodes.count; i++) {
        struct node *node = &remote->nodes.nodes[i];
        if (strcmp(node->host, call->node_host) != 0) continue;
        int64_t pause_us = DEAD_FIRST_US;
        for (unsigned n = 0; n < node->failures && pause_us < DEAD_LONGEST_US; n++) pause_us *= 2;
        node->failures = has_answered ? 0 : node->failures + 1;
        node->dead_until_us = has_answered ? 0 : now_us + pause_us;
    }
    pthread_mutex_unlock(&remote->lock);
    return !has_answered;
}

/* ---- asked again ---- */

static void question_done(struct client_call *http)
{
    struct remote *remote = http->context;
    if (http->end == CLIENT_ANSWERED && http->status == 200) nodes_take(remote, buf_view(http->reply));
    remote->nodes_question->is_under_way = false;
}

/* Of the endpoint, or of any node that is alive where the endpoint did not answer last time. */
void nodes_ask_again(struct remote *remote)
{
    int64_t now_us = monotonic_us();
    struct nodes_question *question = remote->nodes_question;
    if (remote_kind(&remote->door) != DYNAMO_KIND_ALTERNATOR || (question && question->is_under_way)) return;
    pthread_mutex_lock(&remote->lock);
    bool is_due = remote->nodes.count > 1 &&
                  now_us - remote->nodes_asked_us > remote->options.nodes_every_ms * 1000;
    if (is_due) remote->nodes_asked_us = now_us;
    if (is_due && !question) question = remote->nodes_question = must_zero(1, sizeof *question);
    const struct node *node = is_due ? best_of(&remote->nodes, random_next(&remote->jitter), now_us) : NULL;
    if (is_due) {
        arena_reset(&question->arena);
        question->reply.len = 0;
        const char *url = question->times++ % 2 && node ? node->url : remote->endpoint.url;
        question->http = kind_question(slice_of(url), &question->arena, &question->reply);
        question->http.done = question_done;
        question->http.context = remote;
        question->is_under_way = true;
    }
    pthread_mutex_unlock(&remote->lock);
    if (is_due) client_begin(remote->client, &question->http);
}
