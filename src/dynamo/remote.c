/* The door to another DynamoDB endpoint. Its client's thread moves all its calls; here is judged how their
 * attempts end, and those that may be repeated are begun again after a pause. */
#include "dynamo/remote.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"

#define ATTEMPTS    10
#define HURRIED     3 /* attempts, of calls that nobody should wait for */
#define CONNECT_MS  5000
#define ATTEMPT_MS  60000
#define NODES_EVERY_MS 60000
#define QUIET_BYTES 700 /* for a sentence that nobody reads */

/* ---- the ends of attempts, on the client's thread ---- */

/* Something was wrong that can be put right at once: the keys have expired, or the clock is off. */
static bool has_remedy(struct remote *remote, struct remote_call *call, const struct attempt *attempt,
                       struct slice message)
{
    if (attempt->end != ATTEMPT_ANSWERED || attempt->status == 200) return false;
    if (!call->keys_renewed && retry_wants_new_keys(attempt->error)) {
        call->keys_renewed = true;
        return remote_keys_renew(remote);
    }
    int64_t offset = retry_clock_offset_s(attempt->error, message, slice_of(call->date),
                                          clock_now_ms(remote->clock) / 1000);
    if (call->clock_corrected || !offset) return false;
    call->clock_corrected = true;
    remote->clock_offset_s = offset;
    return true;
}

static void answer(struct remote_call *call, const struct attempt *attempt)
{
    bool is_strange = attempt->error.len && attempt->status >= 200 && attempt->status < 400;
    call->call->status = is_strange ? 502 : attempt->status; /* an error never looks like success */
    call->call->error = attempt->error.len ? arena_copy(call->call->arena, attempt->error).data : NULL;
    call->call->done(call->call);
}

void remote_attempt_end(struct client_call *http)
{
    struct remote_call *call = http->context;
    struct remote *remote = call->remote;
    struct attempt attempt;
    struct slice message;
    attempt_judge(call, &attempt, &message);
    nodes_ask_again(remote);
    bool is_node_gone = nodes_note(call, attempt.end == ATTEMPT_ANSWERED) && attempt.end == ATTEMPT_UNCONNECTED;
    uint32_t most = remote->options.attempts;
    if (atomic_load(&remote->is_hurried) && most > HURRIED) most = HURRIED;
    bool at_once = has_remedy(remote, call, &attempt, message) || (is_node_gone && call->attempts < most);
    if (!at_once && !retry_is_due(&attempt, most)) {
        answer(call, &attempt);
        return;
    }
    http->pause_us = at_once ? 0 : retry_pause_us(call->attempts, random_next(&remote->jitter));
    client_begin(remote->client, http);
}

/* ---- calls, on the callers' threads ---- */

static bool is_of_streams(struct slice operation)
{
    static const char *const names[] = {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(operation, slice_of(names[i]))) return true;
    return false;
}

static struct slice with_token(struct remote *remote, struct dynamo_call *call, struct slice operation)
{
    pthread_mutex_lock(&remote->lock);
    uint64_t bits[2] = {random_next(&remote->tokens), random_next(&remote->tokens)};
    pthread_mutex_unlock(&remote->lock);
    return request_with_token(operation, call->request, call->arena, bits);
}

/* Of letters only; with anything else it would not be the header that we mean. */
static bool is_name(struct slice operation)
{
    for (size_t i = 0; i < operation.len; i++)
        if ((operation.data[i] | 32) < 'a' || (operation.data[i] | 32) > 'z') return false;
    return operation.len > 0;
}

/* Fills in the call itself. */
static void call_prepare(struct remote_call *begun)
{
    struct dynamo_call *call = begun->call;
    bool is_alternator = remote_kind(&begun->remote->door) == DYNAMO_KIND_ALTERNATOR;
    if (is_alternator) call->request = table_isolated(begun, call->request);
    attempt_init(begun, with_token(begun->remote, call, begun->operation));
    begun->http.done = remote_attempt_end;
}

static void remote_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn);

void remote_call_go(struct remote_call *call)
{
    if (call->call->needs_transactions && remote_kind(&call->remote->door) == DYNAMO_KIND_ALTERNATOR) {
        refuse_without_transactions(call->call);
        call->call->done(call->call);
        return;
    }
    struct dynamo_turn turn = {0};
    if (table_ask_first(call, &turn))
        remote_turn_end(&call->remote->door, &turn);
    else
        remote_call_send(call);
}

void remote_call_send(struct remote_call *call)
{
    call->attempts = 0; /* to ask was none */
    call_prepare(call);
    client_begin(call->remote->client, &call->http);
}

static bool remote_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct remote *remote = (struct remote *)dynamo;
    struct slice operation = call->operation ? api_operation_name(call->operation) : call->name;
    enum dynamo_kind kind = remote_kind(dynamo);
    if (!is_name(operation)) return refuse_unknown_operation(call);
    if (call->needs_transactions && kind == DYNAMO_KIND_ALTERNATOR) return refuse_without_transactions(call);
    struct remote_call *begun = arena_new(call->arena, struct remote_call);
    begun->call = call;
    begun->remote = remote;
    begun->operation = operation;
    begun->to_streams = is_of_streams(operation);
    begun->reply_start = call->reply->len;
    call->remote = begun;
    if (table_ask_first(begun, turn)) return false;
    if (kind == DYNAMO_KIND_UNKNOWN && (call->needs_transactions ||
                                        table_is_ours(remote, operation, call->request, call->arena)))
        kind_ask_first(begun);
    else
        call_prepare(begun);
    *(turn->last ? &turn->last->next : &turn->first) = begun;
    turn->last = begun;
    return false;
}

static void remote_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    struct remote *remote = (struct remote *)dynamo;
    struct remote_call *call = turn->first;
    turn->first = turn->last = NULL;
    while (call) {
        struct remote_call *next = call->next; /* once begun, it may be done and gone */
        client_begin(remote->client, &call->http);
        call = next;
    }
}

/* The thread has put everything where it belongs before `done`. */
static void remote_finish(struct dynamo_call *call)
{
    ensure(call->remote);
}

/* ---- opening and closing ---- */

static const char *copied(struct arena *arena, const char *text)
{
    return text ? arena_copy(arena, slice_of(text)).data : NULL;
}

static void take_options(struct remote *remote, const struct dynamo_options *options)
{
    struct dynamo_options *own = &remote->options;
    *own = *options;
    own->region = copied(&remote->arena, options->region);
    own->access_key = copied(&remote->arena, options->access_key);
    own->secret_key = copied(&remote->arena, options->secret_key);
    own->session_token = copied(&remote->arena, options->session_token);
    own->profile = copied(&remote->arena, options->profile);
    own->ca_file = copied(&remote->arena, options->ca_file);
    own->prefix = copied(&remote->arena, options->prefix ? options->prefix : "quipu-");
    if (!own->nodes_every_ms) own->nodes_every_ms = NODES_EVERY_MS;
    if (!own->attempts) own->attempts = ATTEMPTS;
    if (!own->connect_ms) own->connect_ms = CONNECT_MS;
    if (!own->attempt_ms) own->attempt_ms = ATTEMPT_MS;
    remote->clock = options->clock ? options->clock : &clock_system;
}

/* Keys by the rules of credentials.c; an endpoint that is not Amazon's also takes one that means nothing. */
static bool find_keys(struct remote *remote, struct arena *arena, struct credentials *out, char *error,
                      size_t error_len)
{
    const struct dynamo_options *options = &remote->options;
    const struct credentials_wanted wanted = {options->region, options->access_key, options->secret_key,
                                              options->session_token, options->profile};
    if (!credentials_find(&wanted, getenv, arena, out, error, error_len)) return false;
    if (out->access_key.len) return true;
    if (remote->endpoint.is_amazon) {
        snprintf(error, error_len,
                 "no keys for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                 remote->endpoint.url);
        return false;
    }
    out->access_key = out->secret_key = SLICE("local");
    return true;
}

bool remote_keys_renew(struct remote *remote)
{
    struct arena arena = {0};
    struct credentials keys;
    char error[QUIET_BYTES];
    bool is_new = find_keys(remote, &arena, &keys, error, sizeof error) &&
                  !(slice_equal(keys.access_key, remote->keys.access_key) &&
                    slice_equal(keys.secret_key, remote->keys.secret_key) &&
                    slice_equal(keys.session_token, remote->keys.session_token));
    if (!is_new) {
        arena_free(&arena);
        return false;
    }
    arena_free(&remote->keys_arena);
    remote->keys_arena = arena;
    remote->keys = keys;
    return true;
}

/* The signature's region: the one that was asked for, else the endpoint's, else the environment's. */
static bool choose_region(struct remote *remote, char *error, size_t error_len)
{
    struct slice region = remote->options.region        ? slice_of(remote->options.region)
                          : remote->endpoint.region.len ? remote->endpoint.region
                          : remote->keys.region.len     ? remote->keys.region
                                                        : SLICE("us-east-1");
    if (region.len > LIMIT_REGION_BYTES) {
        snprintf(error, error_len, "a region's name has at most %d bytes", LIMIT_REGION_BYTES);
        return false;
    }
    remote->region = arena_copy(&remote->arena, region);
    return true;
}

static void remote_close(struct dynamo *dynamo)
{
    struct remote *remote = (struct remote *)dynamo;
    client_close(remote->client);
    nodes_free(remote);
    arena_free(&remote->tables_arena);
    pthread_mutex_destroy(&remote->lock);
    arena_free(&remote->keys_arena);
    arena_free(&remote->arena);
    free(remote);
}

static void remote_hurry(struct dynamo *dynamo)
{
    struct remote *remote = (struct remote *)dynamo;
    atomic_store(&remote->is_hurried, true);
    client_hurry(remote->client);
}

static const struct dynamo_methods remote_methods = {.begin = remote_begin,
                                                     .hurry = remote_hurry,
                                                     .turn_end = remote_turn_end,
                                                     .finish = remote_finish,
                                                     .close = remote_close,
                                                     .kind = remote_kind,
                                                     .kind_ask = remote_kind_ask};

struct dynamo *remote_open(const char *url, const struct dynamo_options *options, char *error,
                           size_t error_len)
{
    struct remote *remote = must_zero(1, sizeof *remote);
    remote->door.methods = &remote_methods;
    pthread_mutex_init(&remote->lock, NULL);
    take_options(remote, options);
    random_seed_from_system(&remote->tokens);
    random_seed_from_system(&remote->jitter);
    bool fine = endpoint_parse(url, &remote->arena, &remote->endpoint, error, error_len) &&
                find_keys(remote, &remote->keys_arena, &remote->keys, error, error_len) &&
                choose_region(remote, error, error_len);
    if (fine && remote->endpoint.is_amazon) atomic_store(&remote->kind, DYNAMO_KIND_USUAL);
    if (fine)
        remote->client = client_open(&(struct client_options){.ca_file = remote->options.ca_file,
                                                              .in_flight = remote->options.in_flight},
                                     error, error_len);
    if (remote->client) return &remote->door;
    remote_close(&remote->door);
    return NULL;
}
