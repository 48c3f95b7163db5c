/* Time, state and luck for tests. Every hook is a small JSON object in, a small one out. */
#include "web/hooks.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/random.h"
#include "base/raw.h"

#define SNAPSHOTS_MAX 100
#define RULES_MAX     100
#define BURST_SECONDS_MAX 86400

/* Lets requests fail: those of one operation, of one table, so many of them, or a part of them. */
struct rule {
    unsigned number;
    struct slice operation, table; /* empty: any */
    const char *error;
    uint64_t left; /* UINT64_MAX: for ever */
    double probability;
    bool leaves_unprocessed; /* batches, instead of refusing them */
};

struct hooks {
    struct engine *engine;
    struct api *api;
    struct web_clock *clock;
    pthread_mutex_t lock; /* of everything below */
    struct engine_snapshot *snapshots[SNAPSHOTS_MAX];
    unsigned snapshot_count;
    struct rule rules[RULES_MAX];
    unsigned rule_count, next_rule;
    _Atomic unsigned armed; /* rules there are: nothing to look at while it is 0 */
    struct arena arena;     /* names of rules */
    struct random random;
};

struct hooks *hooks_new(struct engine *engine, struct api *api, struct web_clock *clock)
{
    struct hooks *hooks = must_zero(1, sizeof *hooks);
    hooks->engine = engine;
    hooks->api = api;
    hooks->clock = clock;
    pthread_mutex_init(&hooks->lock, NULL);
    random_seed_from_system(&hooks->random);
    return hooks;
}

void hooks_free(struct hooks *hooks)
{
    for (unsigned i = 0; i < hooks->snapshot_count; i++) engine_snapshot_free(hooks->snapshots[i]);
    pthread_mutex_destroy(&hooks->lock);
    arena_free(&hooks->arena);
    free(hooks);
}

/* ---- what a hook is asked ---- */

/* All members that any hook knows; what is absent stays zero. */
struct ask {
    bool has_now, has_advance, reset, freeze, split;
    bool has_enforce, enforce, has_burst, drain, unprocessed;
    int64_t now_ms, advance_ms;
    uint64_t burst_seconds;
    uint64_t snapshot, count, shard;
    double probability;
    struct slice error, operation, table;
};

static bool take_number(struct json_reader *reader, double *out)
{
    struct slice text;
    char copy[64];
    if (!json_number(reader, &text) || text.len >= sizeof copy) return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    *out = strtod(copy, NULL);
    return true;
}

/* What no clock can be moved by stays so far away that it is refused. */
static int64_t whole_ms(double ms)
{
    double far = 10.0 * LIMIT_CLOCK_MS;
    return (int64_t)(ms > far ? far : ms < -far ? -far : ms);
}

static bool take_truth(struct json_reader *reader, bool *out)
{
    *out = json_peek(reader) == JSON_TRUE;
    return json_skip(reader);
}

static bool take_count(struct json_reader *reader, uint64_t *out)
{
    double number;
    if (!take_number(reader, &number) || number < 0 || number > 1e15) return false;
    *out = (uint64_t)number;
    return true;
}

static bool take_member(struct json_reader *reader, struct slice name, struct ask *ask)
{
    double number;
    if (slice_equal(name, SLICE("now"))) {
        ask->has_now = take_number(reader, &number);
        if (ask->has_now) ask->now_ms = whole_ms(number);
        return ask->has_now;
    }
    if (slice_equal(name, SLICE("advance_ms")) || slice_equal(name, SLICE("advance_seconds"))) {
        if (!take_number(reader, &number)) return false;
        ask->has_advance = true;
        ask->advance_ms = whole_ms(slice_equal(name, SLICE("advance_ms")) ? number : number * 1000);
        return true;
    }
    if (slice_equal(name, SLICE("reset"))) return take_truth(reader, &ask->reset);
    if (slice_equal(name, SLICE("freeze"))) return take_truth(reader, &ask->freeze);
    if (slice_equal(name, SLICE("enforce"))) {
        ask->has_enforce = true;
        return take_truth(reader, &ask->enforce);
    }
    if (slice_equal(name, SLICE("burst_seconds"))) {
        ask->has_burst = take_count(reader, &ask->burst_seconds);
        return ask->has_burst;
    }
    if (slice_equal(name, SLICE("drain"))) return take_truth(reader, &ask->drain);
    if (slice_equal(name, SLICE("unprocessed"))) return take_truth(reader, &ask->unprocessed);
    if (slice_equal(name, SLICE("snapshot"))) return take_count(reader, &ask->snapshot);
    if (slice_equal(name, SLICE("count"))) return take_count(reader, &ask->count);
    if (slice_equal(name, SLICE("shard"))) return take_count(reader, &ask->shard);
    if (slice_equal(name, SLICE("probability"))) return take_number(reader, &ask->probability);
    if (slice_equal(name, SLICE("error"))) return json_string(reader, &ask->error);
    if (slice_equal(name, SLICE("operation"))) return json_string(reader, &ask->operation);
    if (slice_equal(name, SLICE("table"))) return json_string(reader, &ask->table);
    return json_fail(reader, "unknown member");
}

/* An empty body is an empty object. */
static bool read_ask(struct http_exchange *exchange, struct ask *ask)
{
    struct json_reader reader;
    struct slice name;
    *ask = (struct ask){.probability = 1};
    if (!exchange->body.len) return true;
    json_begin(&reader, exchange->body, &exchange->arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name))
        if (!take_member(&reader, name, ask)) return false;
    return json_done(&reader);
}

static int answer_fault(struct http_exchange *exchange, int status, const char *sentence)
{
    buf_text(&exchange->reply, "{\"error\":");
    json_put_string(&exchange->reply, slice_of(sentence));
    buf_text(&exchange->reply, "}\n");
    return status;
}

static int answer_number(struct http_exchange *exchange, const char *name, int64_t number)
{
    buf_printf(&exchange->reply, "{\"%s\":%lld}\n", name, (long long)number);
    return 200;
}

/* ---- the hooks ---- */

static int serve_clock(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    struct web_clock *clock = hooks->clock;
    int64_t now = ask->reset ? clock_now_ms(&clock_system) : web_clock_now(clock);
    if (ask->has_now) now = ask->now_ms;
    if (ask->has_advance) now += ask->advance_ms;
    if (now < 1 || now > LIMIT_CLOCK_MS)
        return answer_fault(exchange, 400, "the clock can be set to times from 1970 to the end of 2099");
    if (ask->reset) {
        atomic_store(&clock->offset_ms, 0);
        atomic_store(&clock->frozen_ms, 0);
    }
    if (ask->has_now || ask->has_advance) atomic_store(&clock->offset_ms, now - clock_now_ms(&clock_system));
    if (ask->freeze || (atomic_load(&clock->frozen_ms) && !ask->reset)) atomic_store(&clock->frozen_ms, now);
    return answer_number(exchange, "now", web_clock_now(clock));
}

static int serve_idle(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    (void)ask;
    engine_expire_now(hooks->engine);
    engine_wait_idle(hooks->engine);
    return answer_number(exchange, "now", web_clock_now(hooks->clock));
}

static int serve_snapshot(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    (void)ask;
    if (hooks->snapshot_count == SNAPSHOTS_MAX)
        return answer_fault(exchange, 409, "there are 100 snapshots already");
    struct engine_snapshot *snapshot = engine_snapshot_take(hooks->engine);
    if (!snapshot) return answer_fault(exchange, 409, "snapshots need a server started with --memory");
    hooks->snapshots[hooks->snapshot_count++] = snapshot;
    return answer_number(exchange, "snapshot", hooks->snapshot_count);
}

static int serve_rollback(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    if (ask->snapshot < 1 || ask->snapshot > hooks->snapshot_count)
        return answer_fault(exchange, 404, "there is no such snapshot; POST /_quipu/snapshot makes one");
    engine_snapshot_restore(hooks->engine, hooks->snapshots[ask->snapshot - 1]);
    return answer_number(exchange, "snapshot", (int64_t)ask->snapshot);
}

static int serve_rules(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    if (exchange->method == HTTP_DELETE) {
        hooks->rule_count = 0;
        atomic_store(&hooks->armed, 0);
        arena_reset(&hooks->arena);
        return answer_number(exchange, "rules", 0);
    }
    const char *error = api_error_find(ask->error);
    if (!error)
        return answer_fault(exchange, 400,
                            "\"error\" must be one of DynamoDB's exceptions, by its short name");
    if (hooks->rule_count == RULES_MAX) return answer_fault(exchange, 409, "there are 100 rules already");
    hooks->rules[hooks->rule_count++] = (struct rule){.number = ++hooks->next_rule,
                                                      .operation = arena_copy(&hooks->arena, ask->operation),
                                                      .table = arena_copy(&hooks->arena, ask->table),
                                                      .error = error,
                                                      .left = ask->count ? ask->count : UINT64_MAX,
                                                      .probability = ask->probability,
                                                      .leaves_unprocessed = ask->unprocessed};
    atomic_store(&hooks->armed, hooks->rule_count);
    return answer_number(exchange, "rule", hooks->next_rule);
}

struct split_commit {
    struct commit commit;
    struct slice table;
    uint32_t shard;
    unsigned rolled;
};

static void apply_split(struct commit *commit, struct batch *batch)
{
    struct split_commit *split = (struct split_commit *)commit;
    struct table *table = engine_table_in_batch(batch, split->table);
    if (!table || table->definition.stream == STREAM_OFF) return;
    uint32_t stream = table->definition.stream_number;
    split->rolled = engine_shard_split(batch, stream, split->shard);
}

static int serve_split(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    struct split_commit split = {
        .commit = {.apply = apply_split}, .table = ask->table, .shard = (uint32_t)ask->shard};
    if (!ask->table.len) return answer_fault(exchange, 400, "\"table\" says whose stream to split");
    engine_commit(hooks->engine, &split.commit);
    if (split.rolled == ENGINE_SHARDS_FULL)
        return answer_fault(exchange, 409, "the stream would have more than 1024 shards");
    if (!split.rolled) return answer_fault(exchange, 404, "the table has no stream with such an open shard");
    return answer_number(exchange, "split", split.rolled);
}

/* An empty object only asks how often anything was refused. */
static int serve_throttle(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask)
{
    struct api_throttle order = {.table = ask->table,
                                 .has_enforce = ask->has_enforce,
                                 .enforce = ask->enforce,
                                 .has_burst = ask->has_burst,
                                 .burst_seconds = (int64_t)ask->burst_seconds,
                                 .drain = ask->drain};
    uint64_t refused;
    if (ask->burst_seconds > BURST_SECONDS_MAX)
        return answer_fault(exchange, 400, "\"burst_seconds\" is at most 86400");
    if (!api_throttle(hooks->api, &order, &refused))
        return answer_fault(exchange, 404, "there is no such table, or something was said of 100 others");
    return answer_number(exchange, "throttled", (int64_t)refused);
}

/* ---- finding them ---- */

struct hook {
    const char *path;
    bool also_delete;
    int (*serve)(struct hooks *hooks, struct http_exchange *exchange, const struct ask *ask);
};

static const struct hook all_hooks[] = {
    {"/_quipu/clock", false, serve_clock},        {"/_quipu/expire", false, serve_idle},
    {"/_quipu/idle", false, serve_idle},          {"/_quipu/snapshot", false, serve_snapshot},
    {"/_quipu/rollback", false, serve_rollback},  {"/_quipu/rules", true, serve_rules},
    {"/_quipu/shards/split", false, serve_split}, {"/_quipu/throttle", false, serve_throttle},
};

static const struct hook *find_hook(const struct http_exchange *exchange)
{
    for (size_t i = 0; i < sizeof all_hooks / sizeof *all_hooks; i++) {
        const struct hook *hook = &all_hooks[i];
        if (!slice_equal(exchange->path, slice_of(hook->path))) continue;
        return exchange->method == HTTP_POST || (hook->also_delete && exchange->method == HTTP_DELETE) ? hook
                                                                                                       : NULL;
    }
    return NULL;
}

int hooks_serve(struct hooks *hooks, struct http_exchange *exchange)
{
    struct ask ask;
    const struct hook *hook = find_hook(exchange);
    if (!hook)
        return answer_fault(
            exchange, 404,
            "there is no such hook; POST clock, expire, idle, snapshot, rollback, rules, shards/split, "
            "throttle, or DELETE rules");
    if (!read_ask(exchange, &ask))
        return answer_fault(exchange, 400, "the body is not an object that hooks understand");
    pthread_mutex_lock(&hooks->lock);
    int status = hook->serve(hooks, exchange, &ask);
    pthread_mutex_unlock(&hooks->lock);
    return status;
}

/* ---- rules ---- */

/* What a rule must know of a request: tables that it names at its top, or a batch by its members. */
struct struck {
    struct slice tables[LIMIT_BATCH_GET_KEYS];
    uint32_t table_count;
    struct slice batch; /* RequestItems */
};

static struct struck struck_of(struct http_exchange *exchange)
{
    struct struck struck = {0};
    struct arena *arena = &exchange->arena;
    struct slice name, value;
    if (!raw_is_json(arena, exchange->body) || raw_kind(exchange->body) != JSON_OBJECT) return struck;
    struct slice table = raw_string(arena, raw_member(arena, exchange->body, "TableName"));
    if (table.len) struck.tables[struck.table_count++] = table;
    struck.batch = raw_member(arena, exchange->body, "RequestItems");
    if (raw_kind(struck.batch) != JSON_OBJECT) struck.batch = SLICE_NONE;
    if (struck.batch.len)
        raw_each_member (arena, struck.batch, &name, &value)
            if (struck.table_count < LIMIT_BATCH_GET_KEYS) struck.tables[struck.table_count++] = name;
    return struck;
}

static bool names_table(const struct struck *struck, struct slice table)
{
    for (uint32_t i = 0; i < struck->table_count; i++)
        if (slice_equal(struck->tables[i], table)) return true;
    return false;
}

static bool rule_strikes(struct hooks *hooks, struct rule *rule, struct slice operation,
                         const struct struck *struck)
{
    if (!rule->left || (rule->operation.len && !slice_equal(rule->operation, operation))) return false;
    if (rule->table.len && !names_table(struck, rule->table)) return false;
    if (rule->probability < 1 && (double)random_below(&hooks->random, 1000000) >= rule->probability * 1e6)
        return false;
    if (rule->left != UINT64_MAX) rule->left--;
    return true;
}

static struct slice usual_message(const char *error)
{
    if (strcmp(error, "ThrottlingException") == 0) return SLICE("Rate exceeded");
    if (strcmp(error, "InternalServerError") == 0) return SLICE("Internal server error");
    if (strcmp(error, "ServiceUnavailable") == 0) return SLICE("Service is unavailable");
    if (strcmp(error, "TransactionConflictException") == 0)
        return SLICE("Transaction is ongoing for the item");
    if (strcmp(error, "TransactionInProgressException") == 0)
        return SLICE("Transaction is in progress, please retry again later.");
    if (strcmp(error, "TransactionCanceledException") == 0)
        return SLICE("Transaction cancelled, please refer cancellation reasons for specific reasons "
                     "[TransactionConflict]");
    return SLICE("A rule of the test hooks asks for this exception");
}

/* Operations on items of tables, whose throttling has reasons. */
static bool is_about_items(struct slice operation, bool *is_write)
{
    static const char *const reads[] = {"GetItem", "BatchGetItem", "Query", "Scan"},
                      *const writes[] = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        *is_write = slice_equal(operation, slice_of(writes[i]));
        if (*is_write || slice_equal(operation, slice_of(reads[i]))) return true;
    }
    return false;
}

/* The whole batch comes back, to be sent again. */
static int put_unprocessed(struct buf *out, const struct struck *struck, bool is_write)
{
    buf_printf(out, is_write ? "{\"UnprocessedItems\":%.*s}" : "{\"Responses\":{},\"UnprocessedKeys\":%.*s}",
               SLICE_ARG(struck->batch));
    return 200;
}

int hooks_fault(struct hooks *hooks, struct slice operation, struct http_exchange *exchange,
                const char **error)
{
    bool unprocessed = false, is_write;
    *error = NULL;
    if (!atomic_load(&hooks->armed)) return 0;
    struct struck struck = struck_of(exchange);
    const char *struck_by = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (unsigned i = 0; i < hooks->rule_count && !struck_by; i++) {
        if (!rule_strikes(hooks, &hooks->rules[i], operation, &struck)) continue;
        struck_by = hooks->rules[i].error;
        unprocessed = hooks->rules[i].leaves_unprocessed && struck.batch.len;
    }
    pthread_mutex_unlock(&hooks->lock);
    if (!struck_by) return 0;
    bool has_items = is_about_items(operation, &is_write);
    if (has_items && unprocessed) return put_unprocessed(&exchange->reply, &struck, is_write);
    *error = struck_by;
    int status = has_items ? api_put_throttled(&exchange->reply, hooks->api, struck_by, is_write,
                                               struck.tables, struck.table_count)
                           : 0;
    if (status) return status;
    struct slice members = SLICE_NONE;
    if (strcmp(struck_by, "TransactionCanceledException") == 0)
        members = SLICE(
            "\"CancellationReasons\":[{\"Code\":\"TransactionConflict\",\"Message\":\"Transaction is ongoing "
            "for the item\"}]");
    return api_put_error_with(&exchange->reply, struck_by, usual_message(struck_by), members);
}
