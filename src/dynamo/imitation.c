/* An imitation of ScyllaDB Alternator, for tests: a door before a database in memory that lacks and delays what
 * Alternator lacks and delays. Made by its documentation and sources, never compared with a real node; doc/engines.md
 * tells users what it does.
 *
 * Two databases stand behind it. The first has the truth. The second one follows it item by item, each change after a
 * delay of its own, and answers what is asked of indexes: so an index may still show what is gone, may not yet show
 * what is there, and changes of two items may appear in either order.
 *
 * One thread carries out what is deferred: those copies, and writes whose client was told of a time-out. */
#include "dynamo/imitation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/raw.h"

#define SHARDS          16 /* of a new stream, unless told otherwise: there are many */
#define TTL_INTERVAL_MS (24 * 3600 * 1000)
#define STREAM_DELAY_MS 10000
#define INDEX_DELAY_MS  30
#define LATE_MS         1000
#define DELAY_MAX_MS    600000 /* of each delay: iterators live for 15 minutes */

/* A write, owned by the list that it stands in. */
struct deferred {
    struct deferred *before, *next;
    int64_t due_us;
    bool is_late; /* it has not happened yet; else it has, and indexes follow */
    struct slice operation, request;
};

struct imitation {
    struct dynamo door;
    struct dynamo *truth, *indexes;
    struct imitation_options options;
    pthread_t thread;
    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t changed; /* by the monotonic clock */
    struct random random;
    struct deferred *first, *last; /* by due_us */
    bool stops;
};

/* A call to one of the databases in the place of the caller's; lives in its arena. */
struct imitated_call {
    struct dynamo_call inner;
    struct dynamo_call *outer;
    struct slice operation;
    size_t reply_start;
};

/* ---- options ---- */

static bool read_delay(struct slice value, int64_t *out)
{
    unsigned long long number;
    if (!slice_to_u64(value, DELAY_MAX_MS, &number)) return false;
    *out = (int64_t)number;
    return true;
}

static bool read_option(struct imitation_options *out, struct slice name, struct slice value)
{
    unsigned long long number;
    if (slice_equal(name, SLICE("stream-delay"))) return read_delay(value, &out->stream_delay_ms);
    if (slice_equal(name, SLICE("index-delay"))) return read_delay(value, &out->index_delay_ms);
    if (slice_equal(name, SLICE("late"))) return read_delay(value, &out->late_ms);
    if (slice_equal(name, SLICE("timeouts")) && slice_to_u64(value, 100, &number)) {
        out->timeout_percent = (unsigned)number;
        return true;
    }
    if (slice_equal(name, SLICE("seed")) && slice_to_u64(value, UINT64_MAX, &number)) {
        out->seed = number;
        return true;
    }
    bool is_nodes = slice_equal(name, SLICE("nodes")) && value.len && value.len < sizeof out->nodes;
    if (is_nodes) snprintf(out->nodes, sizeof out->nodes, "%.*s", SLICE_ARG(value));
    return is_nodes;
}

static struct slice take_until(struct slice *text, char mark)
{
    const char *at = text->len ? memchr(text->data, mark, text->len) : NULL;
    struct slice taken = {text->data, at ? (size_t)(at - text->data) : text->len};
    *text = slice_from(*text, taken.len + (at != NULL));
    return taken;
}

bool imitation_options_read(const char *text, struct imitation_options *out, char *error, size_t error_len)
{
    struct slice rest = slice_of(text), engine = take_until(&rest, ',');
    *out = (struct imitation_options){
        .stream_delay_ms = STREAM_DELAY_MS, .index_delay_ms = INDEX_DELAY_MS, .late_ms = LATE_MS, .seed = 1};
    if (!slice_equal(engine, SLICE("alternator"))) {
        snprintf(error, error_len, "--imitate takes 'alternator', not '%.*s'", SLICE_ARG(engine));
        return false;
    }
    while (rest.len) {
        struct slice value = take_until(&rest, ','), whole = value, name = take_until(&value, '=');
        if (read_option(out, name, value)) continue;
        snprintf(
            error, error_len,
            "--imitate: '%.*s' is none of stream-delay=MS, index-delay=MS, late=MS (up to %d), timeouts=PERCENT, "
            "seed=NUMBER, nodes=ADDRESS+ADDRESS",
            SLICE_ARG(whole), DELAY_MAX_MS);
        return false;
    }
    return true;
}

/* ---- what is deferred ---- */

/* Up to delay_ms from now, by the seed. */
static void defer(struct imitation *imitation, struct slice operation, struct slice request, bool is_late,
                  int64_t delay_ms)
{
    struct deferred *one = must_zero(1, sizeof *one + operation.len + request.len);
    char *texts = (char *)(one + 1);
    memcpy(texts, operation.data, operation.len);
    memcpy(texts + operation.len, request.data, request.len);
    one->operation = (struct slice){texts, operation.len};
    one->request = (struct slice){texts + operation.len, request.len};
    one->is_late = is_late;
    pthread_mutex_lock(&imitation->lock);
    one->due_us = monotonic_us() + (int64_t)random_below(&imitation->random, (uint64_t)delay_ms * 1000 + 1);
    struct deferred *before = imitation->last; /* most are due behind all others */
    while (before && before->due_us > one->due_us) before = before->before;
    one->before = before;
    one->next = before ? before->next : imitation->first;
    *(before ? &before->next : &imitation->first) = one;
    *(one->next ? &one->next->before : &imitation->last) = one;
    if (imitation->first == one) pthread_cond_signal(&imitation->changed);
    pthread_mutex_unlock(&imitation->lock);
}

/* The KeySchema, or nothing. */
static struct slice describe(void *context, struct slice table, struct arena *arena)
{
    struct imitation *imitation = context;
    struct buf request = {0}, reply = {0};
    struct slice schema = SLICE_NONE;
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    buf_byte(&request, '}');
    if (dynamo_call(imitation->truth, SLICE("DescribeTable"), buf_view(&request), &reply) == 200) {
        struct slice copy = arena_copy(arena, buf_view(&reply));
        schema = raw_member(arena, raw_member(arena, copy, "Table"), "KeySchema");
    }
    buf_free(&request);
    buf_free(&reply);
    return schema;
}

/* Brings one item of the second database to what it is in the first one now. */
static void follow(void *context, struct slice table, struct slice key)
{
    struct imitation *imitation = context;
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    size_t named = request.len;
    buf_printf(&request, ",\"ConsistentRead\":true,\"Key\":%.*s}", SLICE_ARG(key));
    int status = dynamo_call(imitation->truth, SLICE("GetItem"), buf_view(&request), &reply);
    struct slice item = status == 200 ? raw_member(&arena, buf_view(&reply), "Item") : SLICE_NONE;
    request.len = named;
    buf_printf(&request, ",\"%s\":%.*s}", item.data ? "Item" : "Key", SLICE_ARG(item.data ? item : key));
    struct slice operation = item.data ? SLICE("PutItem") : SLICE("DeleteItem");
    struct buf ignored = {0}; /* where the table is gone by now */
    if (status == 200) dynamo_call(imitation->indexes, operation, buf_view(&request), &ignored);
    buf_free(&ignored);
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
}

static void carry_out(struct imitation *imitation, const struct deferred *one)
{
    struct arena arena = {0};
    struct buf reply = {0};
    if (!one->is_late)
        imitation_keys(one->operation, one->request, &arena, describe, follow, imitation);
    else if (dynamo_call(imitation->truth, one->operation, one->request, &reply) == 200)
        defer(imitation, one->operation, one->request, false, imitation->options.index_delay_ms);
    buf_free(&reply);
    arena_free(&arena);
}

static struct deferred *take_first(struct imitation *imitation)
{
    struct deferred *one = imitation->first;
    imitation->first = one->next;
    *(one->next ? &one->next->before : &imitation->last) = NULL;
    return one;
}

static void *run(void *context)
{
    struct imitation *imitation = context;
    pthread_mutex_lock(&imitation->lock);
    while (!imitation->stops) {
        struct deferred *one = imitation->first;
        if (!one || one->due_us > monotonic_us()) {
            cond_wait_until(&imitation->changed, &imitation->lock, one ? one->due_us : INT64_MAX);
        } else {
            take_first(imitation);
            pthread_mutex_unlock(&imitation->lock);
            carry_out(imitation, one);
            free(one);
            pthread_mutex_lock(&imitation->lock);
        }
    }
    pthread_mutex_unlock(&imitation->lock);
    return NULL;
}

/* ---- calls ---- */

static bool end_with(struct dynamo_call *call, const char *error, struct slice message)
{
    call->error = error;
    call->status = api_put_error(call->reply, error, message);
    return true;
}

/* Definitions hold for both databases from the moment that their caller hears of them. */
static void define_for_indexes(struct imitation *imitation, struct slice operation, struct slice request)
{
    static const char *const names[] = {"CreateTable", "DeleteTable", "UpdateTable", "UpdateTimeToLive"};
    struct buf reply = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(operation, slice_of(names[i])))
            dynamo_call(imitation->indexes, operation, request, &reply);
    buf_free(&reply);
}

/* The first database has answered: indexes will follow, and the reply gets Alternator's words. */
static void settle(struct imitation *imitation, struct imitated_call *call)
{
    struct dynamo_call *outer = call->outer;
    outer->status = call->inner.status;
    outer->error = call->inner.error;
    if (outer->status != 200) return;
    define_for_indexes(imitation, call->operation, call->inner.request);
    if (imitation_writes(call->operation))
        defer(imitation, call->operation, call->inner.request, false, imitation->options.index_delay_ms);
    struct slice reply = slice_from(buf_view(outer->reply), call->reply_start);
    struct slice worded = imitation_reply(call->operation, arena_copy(outer->arena, reply),
                                          imitation->options.seed, outer->arena);
    outer->reply->len = call->reply_start;
    buf_slice(outer->reply, worded);
}

/* Records become visible when they are old enough: the page is read again without the younger ones. Where all are
 * too young, its iterator is as good as a new one. */
static bool get_records(struct imitation *imitation, struct imitated_call *call, struct dynamo_turn *turn)
{
    struct dynamo_call *outer = call->outer;
    struct arena *arena = outer->arena;
    struct slice iterator = raw_member(arena, outer->request, "ShardIterator"), reply;
    call->inner.shows_causes = true;
    ensure(dynamo_begin(imitation->truth, &call->inner, turn));
    reply = slice_from(buf_view(outer->reply), call->reply_start);
    if (call->inner.status == 200) {
        int64_t until_ms = clock_now_ms(&clock_system) - imitation->options.stream_delay_ms;
        size_t all = raw_count(arena, raw_member(arena, reply, "Records"));
        size_t old = imitation_old_enough(reply, until_ms, arena);
        if (old < all) outer->reply->len = call->reply_start;
        if (old < all && !old)
            buf_printf(outer->reply, "{\"Records\":[],\"NextShardIterator\":%.*s}", SLICE_ARG(iterator));
        if (old < all && old) {
            call->inner.request = arena_printf(arena, "{\"ShardIterator\":%.*s,\"Limit\":%zu}",
                                               SLICE_ARG(iterator), old);
            ensure(dynamo_begin(imitation->truth, &call->inner, turn));
        }
    }
    settle(imitation, call);
    return true;
}

/* More writes than the database below takes at once: one part after the other. What the last one tells is the reply,
 * and the first one that fails ends it. */
static bool write_parts(struct imitation *imitation, struct imitated_call *call, const struct slice *parts,
                        size_t count)
{
    struct dynamo_call *outer = call->outer;
    for (size_t i = 0; i < count; i++) {
        outer->reply->len = call->reply_start;
        outer->status = dynamo_call(imitation->truth, call->operation, parts[i], outer->reply);
        if (outer->status == 200) {
            defer(imitation, call->operation, parts[i], false, imitation->options.index_delay_ms);
            continue;
        }
        struct slice name, message;
        dynamo_error(slice_from(buf_view(outer->reply), call->reply_start), outer->arena, &name, &message);
        outer->error = arena_printf(outer->arena, "%.*s", SLICE_ARG(name)).data;
        return true;
    }
    outer->reply->len = call->reply_start;
    buf_text(outer->reply, "{\"UnprocessedItems\":{}}");
    return true;
}

static void inner_done(struct dynamo_call *inner)
{
    struct dynamo_call *outer = ((struct imitated_call *)inner)->outer;
    outer->done(outer);
}

static bool is_timed_out(struct imitation *imitation)
{
    if (!imitation->options.timeout_percent) return false;
    pthread_mutex_lock(&imitation->lock);
    bool is_due = random_below(&imitation->random, 100) < imitation->options.timeout_percent;
    pthread_mutex_unlock(&imitation->lock);
    return is_due;
}

static bool imitation_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct imitation *imitation = (struct imitation *)dynamo;
    struct slice operation = call->operation ? api_operation_name(call->operation) : call->name,
                 *parts = NULL;
    struct imitation_fault fault;
    if (!imitation_has(operation))
        return end_with(call, "UnknownOperationException",
                        arena_printf(call->arena, "Unsupported operation %.*s", SLICE_ARG(operation)));
    struct slice request = imitation_request(operation, call->request, call->arena, &fault);
    if (fault.error) return end_with(call, fault.error, fault.message);
    bool writes = imitation_writes(operation);
    if (writes && is_timed_out(imitation)) {
        defer(imitation, operation, request, true, imitation->options.late_ms);
        return end_with(call, "InternalServerError",
                        SLICE("Operation timed out - received only 1 responses from 2 CL=LOCAL_SERIAL."));
    }
    struct imitated_call *own = arena_new(call->arena, struct imitated_call);
    own->inner = (struct dynamo_call){.name = operation,
                                      .request = request,
                                      .arena = call->arena,
                                      .reply = call->reply,
                                      .done = inner_done};
    own->outer = call;
    own->operation = operation;
    own->reply_start = call->reply->len;
    call->imitated = own;
    if (slice_equal(operation, SLICE("GetRecords")) && raw_is_json(call->arena, request))
        return get_records(imitation, own, turn);
    size_t count = slice_equal(operation, SLICE("BatchWriteItem"))
                       ? imitation_split(request, call->arena, &parts)
                       : 1;
    if (!count) return end_with(call, "ValidationException", SLICE("Too many items in BatchWriteItem"));
    if (count > 1) return write_parts(imitation, own, parts, count);
    bool by_index = imitation->options.index_delay_ms && imitation_reads_index(operation, request, call->arena);
    if (!dynamo_begin(by_index ? imitation->indexes : imitation->truth, &own->inner, turn)) return false;
    settle(imitation, own);
    return true;
}

/* Only the first database is written to in a turn. */
static void imitation_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    dynamo_turn_end(((struct imitation *)dynamo)->truth, turn);
}

static void imitation_finish(struct dynamo_call *call)
{
    dynamo_finish(&call->imitated->inner);
    settle((struct imitation *)call->dynamo, call->imitated);
}

static enum dynamo_kind imitation_kind(struct dynamo *dynamo)
{
    (void)dynamo;
    return DYNAMO_KIND_ALTERNATOR;
}

/* ---- opening and closing ---- */

static void imitation_close(struct dynamo *dynamo)
{
    struct imitation *imitation = (struct imitation *)dynamo;
    pthread_mutex_lock(&imitation->lock);
    imitation->stops = true;
    pthread_cond_signal(&imitation->changed);
    pthread_mutex_unlock(&imitation->lock);
    pthread_join(imitation->thread, NULL);
    while (imitation->first) free(take_first(imitation));
    dynamo_close(imitation->truth);
    dynamo_close(imitation->indexes);
    pthread_cond_destroy(&imitation->changed);
    pthread_mutex_destroy(&imitation->lock);
    free(imitation);
}

static const struct dynamo_methods imitation_methods = {.begin = imitation_begin,
                                                        .turn_end = imitation_turn_end,
                                                        .finish = imitation_finish,
                                                        .close = imitation_close,
                                                        .kind = imitation_kind,
                                                        .kind_ask = imitation_kind};

struct dynamo *dynamo_open_imitation(const struct imitation_options *imitated,
                                     const struct dynamo_options *options, char *error, size_t error_len)
{
    struct dynamo_options own = *options;
    if (!own.stream_shards) own.stream_shards = SHARDS;
    if (!own.ttl_interval_ms) own.ttl_interval_ms = TTL_INTERVAL_MS;
    own.records_no_change = true;
    struct dynamo *truth = dynamo_open(":memory:", &own, error, error_len);
    if (!truth) return NULL;
    struct dynamo *indexes = dynamo_open(":memory:", &own, error, error_len);
    if (!indexes) {
        dynamo_close(truth);
        return NULL;
    }
    struct imitation *imitation = must_zero(1, sizeof *imitation);
    imitation->door.methods = &imitation_methods;
    imitation->truth = truth;
    imitation->indexes = indexes;
    imitation->options = *imitated;
    random_seed(&imitation->random, imitated->seed);
    cond_init(&imitation->changed);
    pthread_mutex_init(&imitation->lock, NULL);
    ensure(pthread_create(&imitation->thread, NULL, run, imitation) == 0);
    return &imitation->door;
}
