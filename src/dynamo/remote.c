/* The door to another DynamoDB endpoint. One thread moves all its calls: it starts attempts as long as there
 * are free transfers, lets libcurl move them, judges how they end, and repeats those that may be repeated
 * after a pause. Connections stay open between calls and are used again. */
#include "dynamo/remote.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"

#define ATTEMPTS    10
#define IN_FLIGHT   64
#define CONNECT_MS  5000
#define ATTEMPT_MS  60000
#define IDLE_MS     60000 /* of the thread, when there is nothing to wait for */
#define QUIET_BYTES 700   /* for a sentence that nobody reads */

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

static bool remote_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct remote *remote = (struct remote *)dynamo;
    struct slice operation = call->operation ? api_operation_name(call->operation) : call->name;
    if (!is_name(operation)) return refuse_unknown_operation(call);
    struct remote_call *begun = arena_new(call->arena, struct remote_call);
    begun->call = call;
    begun->operation = operation;
    begun->to_streams = is_of_streams(operation);
    begun->request = with_token(remote, call, operation);
    begun->reply_start = call->reply->len;
    call->remote = begun;
    struct remote_queue queue = {turn->first, turn->last};
    queue_add(&queue, begun);
    turn->first = queue.first;
    turn->last = queue.last;
    return false;
}

static void remote_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    struct remote *remote = (struct remote *)dynamo;
    if (!turn->first) return;
    pthread_mutex_lock(&remote->lock);
    ensure(!remote->stopping);
    bool was_empty = !remote->incoming.first;
    *(remote->incoming.last ? &remote->incoming.last->next : &remote->incoming.first) = turn->first;
    remote->incoming.last = turn->last;
    pthread_mutex_unlock(&remote->lock);
    turn->first = turn->last = NULL;
    if (was_empty) remote->curl->multi_wakeup(remote->multi);
}

/* The thread has put everything where it belongs before `done`. */
static void remote_finish(struct dynamo_call *call)
{
    ensure(call->remote);
}

/* ---- the thread ---- */

static void wait_until_due(struct remote *remote, struct remote_call *call, int64_t due_us)
{
    struct remote_call **at = &remote->waiting;
    while (*at && (*at)->due_us <= due_us) at = &(*at)->next;
    call->due_us = due_us;
    call->next = *at;
    *at = call;
}

static void take_due(struct remote *remote)
{
    int64_t now = remote->waiting ? monotonic_us() : 0;
    while (remote->waiting && remote->waiting->due_us <= now) {
        struct remote_call *call = remote->waiting;
        remote->waiting = call->next;
        queue_add(&remote->ready, call);
    }
}

/* True as long as the door is open. */
static bool take_incoming(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    struct remote_queue incoming = remote->incoming;
    remote->incoming = (struct remote_queue){0};
    bool stopping = remote->stopping;
    pthread_mutex_unlock(&remote->lock);
    for (struct remote_call *call; (call = queue_take(&incoming));) queue_add(&remote->ready, call);
    return !stopping;
}

static void start_ready(struct remote *remote)
{
    while (remote->free && remote->ready.first) {
        struct transfer *transfer = remote->free;
        remote->free = transfer->next_free;
        transfer_start(transfer, queue_take(&remote->ready));
    }
}

/* Something was wrong that can be put right at once: the keys have expired, or the clock is off. */
static bool has_remedy(struct remote *remote, struct remote_call *call, const struct attempt *attempt,
                       struct slice message, const char *date)
{
    if (attempt->end != ATTEMPT_ANSWERED || attempt->status == 200) return false;
    if (!call->keys_renewed && retry_wants_new_keys(attempt->error)) {
        call->keys_renewed = true;
        return remote_keys_renew(remote);
    }
    int64_t offset = retry_clock_offset_s(attempt->error, message, slice_of(date),
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

static void end_attempt(struct remote *remote, struct transfer *transfer, CURLcode code)
{
    struct remote_call *call = transfer->call;
    struct attempt attempt;
    struct slice message;
    char date[REMOTE_DATE_BYTES];
    transfer_judge(transfer, code, &attempt, &message);
    memcpy(date, transfer->date, sizeof date);
    transfer_end(transfer);
    if (has_remedy(remote, call, &attempt, message, date))
        queue_add(&remote->ready, call);
    else if (retry_is_due(&attempt, remote->options.attempts))
        wait_until_due(remote, call,
                       monotonic_us() + retry_pause_us(call->attempts, random_next(&remote->jitter)));
    else
        answer(call, &attempt);
}

static void end_attempts(struct remote *remote)
{
    int left;
    for (CURLMsg *message; (message = remote->curl->multi_info_read(remote->multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        struct transfer *transfer;
        CURLcode code = message->data.result; /* the message is gone with the transfer */
        remote->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        end_attempt(remote, transfer, code);
    }
}

static int pause_ms(const struct remote *remote)
{
    if (remote->ready.first && remote->free) return 0;
    if (!remote->waiting) return IDLE_MS;
    int64_t pause = (remote->waiting->due_us - monotonic_us() + 999) / 1000;
    return pause < 0 ? 0 : pause > IDLE_MS ? IDLE_MS : (int)pause;
}

static void *remote_main(void *argument)
{
    struct remote *remote = argument;
    int running;
    pthread_setname_np(pthread_self(), "quipu-remote");
    while (take_incoming(remote)) {
        take_due(remote);
        start_ready(remote);
        remote->curl->multi_perform(remote->multi, &running);
        end_attempts(remote);
        remote->curl->multi_poll(remote->multi, NULL, 0, pause_ms(remote), NULL);
    }
    return NULL;
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
    if (!own->attempts) own->attempts = ATTEMPTS;
    if (!own->in_flight) own->in_flight = IN_FLIGHT;
    if (own->in_flight > LIMIT_REMOTE_CALLS) own->in_flight = LIMIT_REMOTE_CALLS;
    if (!own->connect_ms) own->connect_ms = CONNECT_MS;
    if (!own->attempt_ms) own->attempt_ms = ATTEMPT_MS;
    remote->clock = options->clock ? options->clock : &clock_system;
}

/* Keys by the rules of credentials.c; an endpoint that is not Amazon's also takes one that means nothing. */
static bool find_keys(struct remote *remote, struct arena *arena, struct credentials *out, char *error,
                      size_t error_len)
{
    if (!credentials_find(&remote->options, getenv, arena, out, error, error_len)) return false;
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

static void remote_free(struct remote *remote)
{
    for (uint32_t i = 0; remote->transfers && i < remote->options.in_flight; i++)
        transfer_free(&remote->transfers[i]);
    free(remote->transfers);
    if (remote->multi) remote->curl->multi_cleanup(remote->multi);
    pthread_mutex_destroy(&remote->lock);
    arena_free(&remote->keys_arena);
    arena_free(&remote->arena);
    free(remote);
}

static void remote_close(struct dynamo *dynamo)
{
    struct remote *remote = (struct remote *)dynamo;
    pthread_mutex_lock(&remote->lock);
    ensure(!remote->incoming.first);
    remote->stopping = true;
    pthread_mutex_unlock(&remote->lock);
    remote->curl->multi_wakeup(remote->multi);
    pthread_join(remote->thread, NULL);
    ensure(!remote->ready.first && !remote->waiting);
    remote_free(remote);
}

static const struct dynamo_methods remote_methods = {
    .begin = remote_begin, .turn_end = remote_turn_end, .finish = remote_finish, .close = remote_close};

static void make_transfers(struct remote *remote)
{
    uint32_t count = remote->options.in_flight;
    remote->multi = remote->curl->multi_init();
    ensure(remote->multi);
    remote->curl->multi_setopt(remote->multi, CURLMOPT_MAXCONNECTS, (long)count);
    remote->transfers = must_zero(count, sizeof *remote->transfers);
    for (uint32_t i = count; i-- > 0;) {
        transfer_init(&remote->transfers[i], remote);
        remote->transfers[i].next_free = remote->free;
        remote->free = &remote->transfers[i];
    }
}

/* Signals are the program's business: none of its handlers runs on our thread, and a lost connection kills
 * nobody. */
static void start_thread(struct remote *remote)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ensure(pthread_create(&remote->thread, NULL, remote_main, remote) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct dynamo *remote_open(const char *url, const struct dynamo_options *options, char *error,
                           size_t error_len)
{
    struct remote *remote = must_zero(1, sizeof *remote);
    remote->door.methods = &remote_methods;
    pthread_mutex_init(&remote->lock, NULL);
    take_options(remote, options);
    random_seed_from_system(&remote->tokens);
    random_seed_from_system(&remote->jitter);
    remote->curl = curl_load(error, error_len);
    if (!remote->curl || !endpoint_parse(url, &remote->arena, &remote->endpoint, error, error_len) ||
        !find_keys(remote, &remote->keys_arena, &remote->keys, error, error_len) ||
        !choose_region(remote, error, error_len)) {
        remote_free(remote);
        return NULL;
    }
    make_transfers(remote);
    start_thread(remote);
    return &remote->door;
}
