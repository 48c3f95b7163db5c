#include "unit/trigger_stage.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/fail.h"

#define START_MS 1794716005340

/* ---- the database ---- */

static int64_t stage_now(void *self)
{
    return ((struct stage *)self)->now_ms;
}

void stage_open(struct stage *stage, uint32_t shards)
{
    stage_open_keeping(stage, shards, 0);
}

void stage_open_keeping(struct stage *stage, uint32_t shards, int64_t retention_ms)
{
    char error[300];
    *stage = (struct stage){.now_ms = START_MS, .ticks_us = 1000000};
    stage->clock = (struct clock){stage_now, stage};
    stage->engine = engine_open(&(struct engine_options){.store = store_open_memory(&stage->faults),
                                                         .durable = true,
                                                         .inline_writer = true,
                                                         .cache_bytes = 1 << 20,
                                                         .clock = &stage->clock,
                                                         .stream_shards = shards,
                                                         .stream_retention_ms = retention_ms,
                                                         .seed = 1},
                                error, sizeof error);
    ensure(stage->engine);
    stage->api = api_new(&(struct api_options){.engine = stage->engine,
                                               .region = "us-east-1",
                                               .account = "000000000000",
                                               .endpoint = "localhost:8000"});
    stage->door = dynamo_open_local(stage->engine, stage->api);
    random_seed(&stage->random, 1);
}

void stage_close(struct stage *stage)
{
    for (unsigned i = 0; i < STAGE_ACTORS; i++)
        if (stage->actors[i].consumer) stage_crash(stage, &stage->actors[i]);
    dynamo_close(stage->door);
    engine_close(stage->engine);
    api_free(stage->api);
    arena_free(&stage->arena);
    buf_free(&stage->reply);
    buf_free(&stage->payloads);
    buf_free(&stage->log);
    buf_free(&stage->operations);
}

static void ignore_done(struct dynamo_call *call)
{
    (void)call;
}

/* The engine commits before dynamo_turn_end returns. */
static void run_call(struct stage *stage, struct dynamo_call *call)
{
    struct dynamo_turn turn = {0};
    call->done = ignore_done;
    if (dynamo_begin(stage->door, call, &turn)) return;
    dynamo_turn_end(stage->door, &turn);
    dynamo_finish(call);
}

int stage_run(struct stage *stage, struct dynamo_call *call)
{
    stage->reply.len = 0;
    call->arena = &stage->arena;
    call->reply = &stage->reply;
    run_call(stage, call);
    stage->error = call->error;
    return call->status;
}

int stage_call(struct stage *stage, const char *operation, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice request = arena_vprintf(&stage->arena, format, args);
    va_end(args);
    struct dynamo_call call = {.name = slice_of(operation), .request = request};
    return stage_run(stage, &call);
}

void stage_make_table(struct stage *stage, const char *name, const char *key)
{
    ensure(stage_call(stage, "CreateTable",
                      "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\","
                      "\"AttributeDefinitions\":[{\"AttributeName\":\"%s\",\"AttributeType\":\"S\"}],"
                      "\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"}]}",
                      name, key, key) == 200);
}

static void accept_all(struct stage *stage, struct invocation *invocation)
{
    (void)stage;
    stage_answer(invocation, "null");
}

void stage_open_things(struct stage *stage, uint32_t shards)
{
    stage_open(stage, shards);
    stage_make_things(stage);
    stage->function = accept_all;
}

void stage_make_things(struct stage *stage)
{
    static const char *const outer[] = {"TableDescription"}, *const inner[] = {"LatestStreamArn"};
    struct slice description, arn;
    int status = stage_call(stage, "CreateTable",
                            "{\"TableName\":\"things\",\"BillingMode\":\"PAY_PER_REQUEST\","
                            "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},"
                            "{\"AttributeName\":\"sk\",\"AttributeType\":\"N\"}],"
                            "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},"
                            "{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"}],"
                            "\"StreamSpecification\":{\"StreamEnabled\":true,"
                            "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}");
    ensure(status == 200);
    raw_members(&stage->arena, buf_view(&stage->reply), outer, &description, 1);
    raw_members(&stage->arena, description, inner, &arn, 1);
    snprintf(stage->stream_arn, sizeof stage->stream_arn, "%.*s", SLICE_ARG(raw_string(&stage->arena, arn)));
}

void stage_put(struct stage *stage, const char *pk, int sk, const char *text)
{
    int status = stage_call(stage, "PutItem",
                            "{\"TableName\":\"things\",\"Item\":{\"pk\":{\"S\":\"%s\"},"
                            "\"sk\":{\"N\":\"%d\"},\"text\":{\"S\":\"%s\"}}}",
                            pk, sk, text);
    ensure(status == 200);
}

struct split_commit {
    struct commit commit;
    unsigned count;
};

static void apply_split(struct commit *commit, struct batch *batch)
{
    struct table *table = engine_table_in_batch(batch, SLICE("things"));
    ((struct split_commit *)commit)->count = engine_shard_split(batch, table->definition.stream_number, 0);
}

void stage_split(struct stage *stage)
{
    struct split_commit split = {.commit = {.apply = apply_split}};
    engine_commit(stage->engine, &split.commit);
    ensure(split.count > 0);
}

/* ---- the outside, as a consumer sees it ---- */

static struct act *add_act(struct actor *actor)
{
    struct stage *stage = actor->stage;
    ensure(stage->act_count < STAGE_ACTS);
    struct act *act = &stage->acts[stage->act_count++];
    *act = (struct act){.actor = actor, .ready_us = stage->ticks_us};
    return act;
}

static bool begin(void *self, struct dynamo_call *call)
{
    struct actor *actor = self;
    if (actor->stage->on_call) actor->stage->on_call(actor);
    add_act(actor)->call = call;
    return false;
}

static void turn_end(void *self)
{
    (void)self;
}

static void finish(void *self, struct dynamo_call *call)
{
    (void)self;
    (void)call;
}

static void invoke(struct func *self, struct invocation *invocation)
{
    struct act *act = add_act((struct actor *)self);
    act->invocation = invocation;
    act->ready_us += act->actor->stage->function_us;
}

static bool destination(struct func *self, struct slice where, struct slice document, struct slice id,
                        const struct func_call *call, struct buf *members, unsigned *count)
{
    (void)self;
    CHECK(!call || (call->function.len && slice_starts(call->payload, SLICE("{\"Records\":[{"))));
    if (slice_equal(where, SLICE("nowhere"))) return false;
    if (members->len) buf_byte(members, ',');
    buf_text(members, "{\"Put\":{\"TableName\":");
    json_put_string(members, where);
    buf_text(members, ",\"Item\":{\"id\":{\"S\":");
    json_put_string(members, id);
    buf_text(members, "},\"body\":{\"S\":");
    json_put_string(members, document);
    buf_text(members, "}}}}");
    ++*count;
    return true;
}

static void make_mended_table(void *argument)
{
    struct stage *stage = argument;
    stage->mends = stage->mended &&
                   stage_call(stage, "DescribeTable", "{\"TableName\":\"%s\"}", stage->mended) != 200;
    if (stage->mends) stage_make_table(stage, stage->mended, "id");
}

static bool mend_tables(struct func *self)
{
    struct stage *stage = ((struct actor *)self)->stage;
    task_outside(make_mended_table, stage);
    return stage->mends;
}

static void wake_queue(struct func *self)
{
    ((struct actor *)self)->stage->queue_wakes++;
}

static int64_t now_ms(void *self)
{
    return ((struct actor *)self)->stage->now_ms;
}

static int64_t ticks_us(void *self)
{
    return ((struct actor *)self)->stage->ticks_us;
}

static uint64_t news(struct engine *self)
{
    return engine_stream_next(((struct actor *)self)->stage->engine);
}

static void note_result(struct mappings *self, struct slice id, const char *result)
{
    struct actor *actor = (struct actor *)self;
    (void)id;
    snprintf(actor->result, sizeof actor->result, "%s", result);
}

static void reached(struct mappings *self, struct slice id, enum mapping_state state)
{
    struct actor *actor = (struct actor *)self;
    (void)id;
    actor->state = state;
    actor->states_told++;
}

static void stream_over(struct mappings *self, struct slice id, struct slice arn, bool is_over)
{
    struct actor *actor = (struct actor *)self;
    (void)id;
    (void)arn;
    actor->is_over = is_over;
}

/* ---- mappings ---- */

static struct slice keep_text(struct mapping *mapping, const char *text)
{
    return arena_copy(&mapping->arena, slice_of(text));
}

struct mapping *stage_mapping(const struct stage *stage)
{
    struct mapping *mapping = must_zero(1, sizeof *mapping);
    mapping->id = keep_text(mapping, STAGE_ID);
    mapping->stream_arn = keep_text(mapping, stage->stream_arn);
    mapping->function = keep_text(mapping, "worker");
    mapping->function_arn = keep_text(mapping, "arn:aws:lambda:us-east-1:000000000000:function:worker");
    mapping->start = START_TRIM_HORIZON;
    mapping->enabled = true;
    mapping->batch_size = 100;
    mapping->lanes = 1;
    mapping->retries_max = mapping->age_max_ms = -1;
    mapping->revision = 1;
    atomic_init(&mapping->references, 1);
    return mapping;
}

void stage_add_filter(struct mapping *mapping, const char *pattern)
{
    char error[200];
    if (!mapping->patterns) mapping->patterns = arena_array(&mapping->arena, struct event_pattern *, 5);
    mapping->patterns[mapping->filter_count] = pattern_compile(&mapping->arena, slice_of(pattern), error,
                                                               sizeof error);
    ensure(mapping->patterns[mapping->filter_count]);
    mapping->filter_count++;
}

/* ---- consumers ---- */

static bool allows_loops(struct func *self, struct slice function)
{
    const struct actor *actor = (struct actor *)self;
    return actor->stage->allows_loops && slice_equal(function, SLICE("worker"));
}

static void log_to(struct func *self, struct slice function, struct slice line)
{
    const struct actor *actor = (struct actor *)self;
    CHECK_TEXT(function, "worker");
    buf_slice(&actor->stage->log, line);
}

static bool has_transactions(void *self)
{
    return !((struct actor *)self)->stage->without_transactions;
}

struct actor *stage_start(struct stage *stage, unsigned number)
{
    struct actor *actor = &stage->actors[number];
    struct task_environment outside = {.self = actor,
                                       .begin = begin,
                                       .turn_end = turn_end,
                                       .finish = finish,
                                       .now_ms = now_ms,
                                       .ticks_us = ticks_us,
                                       .has_transactions = has_transactions};
    struct environment world = {.func = (struct func *)actor,
                                .engine = (struct engine *)actor,
                                .mappings = (struct mappings *)actor,
                                .invoke = invoke,
                                .destination = destination,
                                .mend_tables = mend_tables,
                                .wake_queue = wake_queue,
                                .allows_loops = allows_loops,
                                .log_to = log_to,
                                .news = stage->without_news ? NULL : news,
                                .note_result = note_result,
                                .reached = reached,
                                .stream_over = stream_over};
    struct consumer_settings settings = {
        .prefix = "quipu-", .shared = stage->shared, .lease_ms = 10000, .poll_ms = 250};
    ensure(!actor->consumer);
    *actor = (struct actor){.stage = stage};
    snprintf(settings.owner, sizeof settings.owner, "owner-%u", stage->owners++);
    actor->consumer = consumer_new(task_host_new(&outside, random_next(&stage->random)), &world, &settings);
    return actor;
}

void stage_set(struct actor *actor, struct mapping *mapping)
{
    consumer_command(actor->consumer, mapping, mapping->id);
    mapping_release(mapping);
}

static void forget_act(struct stage *stage, unsigned index)
{
    stage->acts[index] = stage->acts[--stage->act_count];
}

void stage_crash(struct stage *stage, struct actor *actor)
{
    for (unsigned i = stage->act_count; i-- > 0;) {
        struct act *act = &stage->acts[i];
        if (act->actor != actor) continue;
        if (act->call && random_below(&stage->random, 2)) run_call(stage, act->call);
        if (act->call)
            task_call_drop(act->call);
        else
            act->invocation->done(act->invocation);
        forget_act(stage, i);
    }
    consumer_free(actor->consumer);
    actor->consumer = NULL;
}

void stage_stop(struct stage *stage, struct actor *actor)
{
    consumer_stop(actor->consumer);
    for (int i = 0; i < 1000 && !consumer_has_stopped(actor->consumer); i++) {
        stage_settle(stage);
        stage->ticks_us += 10000;
        stage->now_ms += 10;
    }
    CHECK(consumer_has_stopped(actor->consumer));
    CHECK(task_host_calls(actor->consumer->host) == 0 && actor->consumer->invocations == 0);
    stage_crash(stage, actor);
}

/* ---- what happens ---- */

static void finish_call(struct dynamo_call *call, int status, const char *error, const char *body)
{
    call->status = status;
    call->error = error;
    call->reply->len = 0;
    buf_slice(call->reply, slice_of(body));
}

static void be_late(struct stage *stage, const struct dynamo_call *call)
{
    if (stage->late_count == STAGE_LATE) return;
    stage->late[stage->late_count++] = (struct dynamo_call){
        .name = call->name, /* a literal */
        .request = arena_copy(&stage->arena, call->request),
        .cause = arena_copy(&stage->arena, call->cause)};
}

void stage_arrive(struct stage *stage)
{
    if (!stage->late_count) return;
    struct dynamo_call call = stage->late[--stage->late_count];
    stage->reply.len = 0;
    call.arena = &stage->arena;
    call.reply = &stage->reply;
    run_call(stage, &call);
}

static void perform_call(struct stage *stage, struct dynamo_call *call, enum mishap mishap)
{
    void (*done)(struct dynamo_call *) = call->done;
    CHECK(!slice_equal(call->name,
                       SLICE("GetItem"))); /* which may miss a conditional write that is under way */
    buf_slice(&stage->operations, call->name);
    buf_byte(&stage->operations, ' ');
    stage->calls++;
    bool is_transaction = slice_equal(call->name, SLICE("TransactWriteItems"));
    CHECK(!is_transaction || !stage->without_transactions);
    if (mishap == MISHAP_NONE || mishap == MISHAP_LOST_REPLY ||
        (mishap == MISHAP_CONFLICT && !is_transaction))
        run_call(stage, call);
    if (mishap == MISHAP_LATE) be_late(stage, call);
    if (mishap == MISHAP_LOST_REPLY || mishap == MISHAP_NEVER_SENT || mishap == MISHAP_LATE)
        finish_call(call, 0, "NoReplyException", "{\"__type\":\"NoReplyException\",\"message\":\"\"}");
    else if (mishap == MISHAP_THROTTLED)
        finish_call(call, 400, "ThrottlingException",
                    "{\"__type\":\"ThrottlingException\",\"message\":\"\"}");
    else if (mishap == MISHAP_CONFLICT && is_transaction)
        finish_call(call, 400, "TransactionCanceledException",
                    "{\"__type\":\"TransactionCanceledException\",\"Message\":\"\","
                    "\"CancellationReasons\":[{\"Code\":\"TransactionConflict\"},{\"Code\":\"None\"}]}");
    call->done = done;
    done(call);
}

static void perform_invocation(struct stage *stage, struct invocation *invocation)
{
    buf_slice(&stage->payloads, invocation->payload);
    buf_byte(&stage->payloads, '\n');
    stage->invocations++;
    snprintf(invocation->request_id, sizeof invocation->request_id, "request-%u", stage->invocations);
    snprintf(invocation->version, sizeof invocation->version, "$LATEST");
    invocation->end = INVOCATION_ANSWERED;
    if (stage->function) stage->function(stage, invocation);
    invocation->done(invocation);
}

void stage_perform_with(struct stage *stage, unsigned index, enum mishap mishap)
{
    struct act act = stage->acts[index];
    forget_act(stage, index);
    if (act.call)
        perform_call(stage, act.call, mishap);
    else
        perform_invocation(stage, act.invocation);
}

void stage_perform(struct stage *stage, unsigned index)
{
    stage_perform_with(stage, index, MISHAP_NONE);
}

/* All consumers take a turn; how long until one wants another, or less than 0. */
static int64_t step_all(struct stage *stage)
{
    int64_t least_us = -1;
    for (unsigned i = 0; i < STAGE_ACTORS; i++) {
        if (!stage->actors[i].consumer) continue;
        int64_t wait_us = consumer_step(stage->actors[i].consumer);
        if (wait_us >= 0 && (least_us < 0 || wait_us < least_us)) least_us = wait_us;
    }
    return least_us;
}

static bool perform_ready(struct stage *stage)
{
    for (unsigned i = 0; i < stage->act_count; i++) {
        if (stage->acts[i].ready_us > stage->ticks_us) continue;
        stage_perform(stage, i);
        return true;
    }
    return false;
}

void stage_settle(struct stage *stage)
{
    for (int i = 0; i < 100000; i++) {
        int64_t wait_us = step_all(stage);
        if (!perform_ready(stage) && wait_us != 0) return;
    }
    test_failed(__FILE__, __LINE__, "the consumers do not come to rest");
}

static int64_t next_act_us(const struct stage *stage)
{
    int64_t next_us = INT64_MAX;
    for (unsigned i = 0; i < stage->act_count; i++)
        if (stage->acts[i].ready_us < next_us) next_us = stage->acts[i].ready_us;
    return next_us;
}

void stage_pass(struct stage *stage, int64_t ms)
{
    int64_t end_us = stage->ticks_us + ms * 1000;
    stage_settle(stage);
    while (stage->ticks_us < end_us) {
        int64_t wait_us = step_all(stage), until_us = end_us;
        if (wait_us >= 0 && stage->ticks_us + wait_us < until_us) until_us = stage->ticks_us + wait_us;
        if (next_act_us(stage) < until_us) until_us = next_act_us(stage);
        if (until_us <= stage->ticks_us) until_us = stage->ticks_us + 1;
        int64_t before_ms = stage->ticks_us / 1000;
        stage->ticks_us = until_us;
        stage->now_ms += stage->ticks_us / 1000 - before_ms;
        stage_settle(stage);
    }
}

/* ---- functions ---- */

void stage_answer(struct invocation *invocation, const char *format, ...)
{
    struct arena arena = {0};
    va_list args;
    va_start(args, format);
    buf_slice(&invocation->reply, arena_vprintf(&arena, format, args));
    va_end(args);
    arena_free(&arena);
}

void stage_fail(struct invocation *invocation, const char *message)
{
    invocation->end = INVOCATION_FAILED;
    invocation->error_kind = "Unhandled";
    stage_answer(invocation, "{\"errorType\":\"Error\",\"errorMessage\":\"%s\"}", message);
}

unsigned count_text(struct slice text, const char *part)
{
    unsigned count = 0;
    size_t len = strlen(part);
    while (text.len >= len) {
        const char *at = memmem(text.data, text.len, part, len);
        if (!at) break;
        count++;
        text = slice_from(text, (size_t)(at - text.data) + len);
    }
    return count;
}
