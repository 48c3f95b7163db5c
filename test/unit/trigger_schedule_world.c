/* The world of schedules' tests. */
#include "unit/trigger_schedule.h"

#include <stdlib.h>

int64_t moment(const char *text)
{
    int64_t ms = -1;
    CHECK(moment_parse(slice_of(text), &ms));
    return ms;
}

/* ---- what lies outside ---- */

static int64_t world_now(void *self)
{
    return ((struct world *)self)->now_ms;
}

static bool is_write(struct slice operation)
{
    return !slice_equal(operation, SLICE("GetItem")) && !slice_equal(operation, SLICE("Query")) &&
           !slice_equal(operation, SLICE("Scan"));
}

static void no_reply(struct dynamo_call *call)
{
    call->reply->len = 0;
    buf_text(call->reply, "{\"__type\":\"NoReplyException\",\"message\":\"let fail\"}");
    call->status = 0;
    call->error = "NoReplyException";
}

void world_answer(struct world *world, struct dynamo_call *call)
{
    struct slice name, message;
    void (*before)(struct world *) = world->before_write;
    if (before && is_write(call->name)) {
        world->before_write = NULL;
        before(world);
    }
    bool fails = world->failing != FAIL_NOT && ++world->calls == world->fail_at;
    if (fails && world->failing == FAIL_BEFORE) {
        no_reply(call);
        return;
    }
    CHECK(world->has_transactions || !slice_starts(call->name, SLICE("Transact")));
    if (world->repeats && is_write(call->name)) {
        dynamo_call(world->dynamo, call->name, call->request, call->reply);
        call->reply->len = 0;
    }
    call->status = dynamo_call(world->dynamo, call->name, call->request, call->reply);
    dynamo_error(call->status == 200 ? SLICE("{}") : buf_view(call->reply), call->arena, &name, &message);
    call->error = call->status == 200 ? NULL : arena_printf(call->arena, "%.*s", SLICE_ARG(name)).data;
    if (fails) no_reply(call);
}

static bool world_begin(void *self, struct dynamo_call *call)
{
    struct world *world = ((struct world_server *)self)->world;
    if (world->hold && world->hold(world, call)) return false;
    world_answer(world, call);
    return true;
}

static void world_turn_end(void *self)
{
    (void)self;
}

static void world_finish(void *self, struct dynamo_call *call)
{
    (void)self, (void)call;
}

static int64_t world_now_ms(void *self)
{
    return ((struct world_server *)self)->world->now_ms;
}

static int64_t world_ticks_us(void *self)
{
    return ((struct world_server *)self)->world->ticks_us;
}

static bool world_has_transactions(void *self)
{
    return ((struct world_server *)self)->world->has_transactions;
}

static bool world_resolve(struct func *self, struct slice function, struct arena *arena, struct slice *arn,
                          struct slice *name)
{
    (void)arena, (void)arn, (void)name;
    return ((struct world *)self)->has_function && slice_starts(function, SLICE("f"));
}

/* Counts how often each id is put. Without transactions a child may be put again, and stays as it is. */
static void put_count(struct world *world, struct buf *members, const char *table, struct slice id,
                      struct slice payload)
{
    compose(members,
            "{'Update':{'TableName':%s,'Key':{'id':%S},'UpdateExpression':'%A',"
            "'ExpressionAttributeValues':{':one':{'N':'1'},':payload':%S}}}",
            slice_of(table), id,
            world->has_transactions ? SLICE("ADD times :one SET payload = :payload")
                                    : SLICE("SET times = :one, payload = if_not_exists(payload, :payload)"),
            payload);
}

static unsigned world_queue_put(struct func *self, const struct func_call *call, struct buf *members)
{
    put_count((struct world *)self, members, "calls", call->id, call->payload);
    return 1;
}

static bool world_dead_letter(struct func *self, struct slice destination, struct slice document,
                              struct slice id, const struct func_call *call, struct buf *members,
                              unsigned *count)
{
    (void)destination;
    CHECK(call->function.len && slice_contains(document, call->payload));
    put_count((struct world *)self, members, "letters", id, document);
    *count = 1;
    return true;
}

static const char *world_destination_fault(struct func *self, struct slice destination)
{
    (void)self, (void)destination;
    return NULL;
}

static void world_wake(struct func *self)
{
    ((struct world *)self)->wakes++;
}

static void make_table(struct world *world, const char *name);

static void make_missing_table(void *argument)
{
    struct world *world = argument;
    struct buf reply = {0};
    bool is_there = dynamo_call(world->dynamo, SLICE("DescribeTable"), SLICE("{\"TableName\":\"calls\"}"),
                                &reply) == 200;
    buf_free(&reply);
    if (!is_there) make_table(world, "calls");
}

static bool world_mend_tables(struct func *self)
{
    task_outside(make_missing_table, self);
    return true;
}

/* ---- opening ---- */

static void make_table(struct world *world, const char *name)
{
    struct buf request = {0}, reply = {0};
    buf_printf(&request,
               "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\","
               "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}],"
               "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}]}",
               name);
    CHECK_INT(dynamo_call(world->dynamo, SLICE("CreateTable"), buf_view(&request), &reply), 200);
    buf_free(&request);
    buf_free(&reply);
}

void world_open(struct world *world)
{
    char error[512] = "";
    *world = (struct world){.has_function = true, .has_transactions = true};
    world->now_ms = moment("2025-06-01T00:00:00Z");
    world->clock = (struct clock){world_now, world};
    world->dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    make_table(world, "calls");
    make_table(world, "letters");
    for (unsigned i = 0; i < SERVERS; i++) {
        world->servers[i].world = world;
        world->servers[i].trigger = (struct trigger){
            .options = {.dynamo = world->dynamo, .clock = &world->clock},
            .prefix = SLICE("quipu-"),
            .region = SLICE("us-east-1"),
            .account = SLICE("000000000000")};
    }
}

void world_close(struct world *world)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (world->servers[i].trigger.schedules) server_close(world, i);
    dynamo_close(world->dynamo);
}

struct schedules *schedules_of(struct world *world, unsigned nth)
{
    return world->servers[nth].trigger.schedules;
}

void server_open(struct world *world, unsigned nth)
{
    const struct schedule_doors doors = {world_resolve,     world_queue_put, world_destination_fault,
                                         world_dead_letter, world_wake,      world_mend_tables};
    struct world_server *server = &world->servers[nth];
    server->trigger.options.func = (struct func *)world;
    const struct task_environment environment = {.self = server,
                                                 .begin = world_begin,
                                                 .turn_end = world_turn_end,
                                                 .finish = world_finish,
                                                 .now_ms = world_now_ms,
                                                 .ticks_us = world_ticks_us,
                                                 .has_transactions = world_has_transactions};
    while (!server->trigger.schedules) {
        server->host = task_host_new(&environment, nth + 1);
        server->trigger.schedules = schedules_open_with(&server->trigger, &doors, server->host);
    }
}

void server_close(struct world *world, unsigned nth)
{
    schedules_close(world->servers[nth].trigger.schedules);
    world->servers[nth].trigger.schedules = NULL;
}

/* ---- requests ---- */

struct waiting {
    struct rest_call call;
    bool is_done;
};

static void answered(struct rest_call *call)
{
    ((struct waiting *)(void *)call)->is_done = true;
}

/* Steps, and lets time pass where somebody waits for it. */
static void server_step(struct world *world, unsigned nth)
{
    int64_t us = task_host_step(world->servers[nth].host);
    if (us > 0) world->ticks_us += us;
}

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call;
    (void)name;
    return SLICE_NONE;
}

void ask(struct world *world, unsigned nth, const char *method, const char *path, const char *body,
         struct asked *out)
{
    struct waiting waiting = {.is_done = false};
    const struct rest_route *route = NULL;
    const char *mark = strchr(path, '?');
    *out = (struct asked){0};
    waiting.call = (struct rest_call){.method = slice_of(method),
                                      .path = {path, mark ? (size_t)(mark - path) : strlen(path)},
                                      .query = slice_of(mark ? mark + 1 : ""),
                                      .body = slice_of(body),
                                      .header = no_header,
                                      .arena = &out->arena,
                                      .done = answered,
                                      .reply = &out->reply};
    CHECK_INT(rest_route(schedule_routes, schedule_route_count, &waiting.call, &route), REST_FOUND);
    if (route) {
        route->serve(&world->servers[nth].trigger, &waiting.call);
        while (!waiting.is_done) server_step(world, nth);
    }
    out->status = waiting.call.status;
    out->headers = waiting.call.headers;
}

void expect(struct world *world, const char *method, const char *path, const char *body, int status,
            const char *part)
{
    struct asked asked;
    ask(world, 0, method, path, body, &asked);
    if (asked.status != status || (part && !slice_contains(buf_view(&asked.reply), slice_of(part))))
        test_failed(__FILE__, __LINE__, "%s %s %s\n  got:      %d %.*s\n  expected: %d %s", method, path,
                    body, asked.status, SLICE_ARG(buf_view(&asked.reply)), status, part ? part : "");
    buf_free(&asked.reply);
    arena_free(&asked.arena);
}

void schedule_make(struct world *world, const char *name, const char *expression, const char *more)
{
    schedule_make_with(world, name, expression, "{\\\"at\\\":\\\"<aws.scheduler.scheduled-time>\\\"}", more);
}

void schedule_make_with(struct world *world, const char *name, const char *expression, const char *input,
                        const char *more)
{
    struct buf body = {0}, path = {0};
    buf_printf(&path, "/schedules/%s%c", name, 0);
    buf_printf(&body,
               "{\"ScheduleExpression\":\"%s\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
               "\"Target\":{\"Arn\":\"f\",\"Input\":\"%s\","
               "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:000000000000:dead\"}}%s}%c",
               expression, input, more, 0);
    expect(world, "POST", path.data, body.data, 200, "ScheduleArn");
    buf_free(&body);
    buf_free(&path);
}

/* ---- running ---- */

/* What fires ends with the turn: requests between turns are served by themselves. */
void server_turn(struct world *world, unsigned nth)
{
    struct schedules *schedules = schedules_of(world, nth);
    schedules_begin(schedules);
    do server_step(world, nth);
    while (!schedules_are_idle(schedules));
    schedules->is_stopping = schedules->is_closing = true;
    task_signal_give(&schedules->changed);
    while (task_host_count(world->servers[nth].host)) server_step(world, nth);
    schedules->is_stopping = schedules->is_closing = false;
}

struct reading {
    struct schedules *schedules;
    bool is_over, is_fine;
};

static void reading_task(void *argument)
{
    struct reading *reading = argument;
    reading->is_fine = schedules_read(reading->schedules);
    reading->is_over = true;
}

bool server_read(struct world *world, unsigned nth)
{
    struct reading reading = {schedules_of(world, nth), false, false};
    task_begin(world->servers[nth].host, reading_task, &reading);
    while (!reading.is_over) server_step(world, nth);
    return reading.is_fine;
}

void server_run(struct world *world, unsigned nth, int64_t until_ms, int64_t step_ms)
{
    while (world->now_ms < until_ms) {
        world->now_ms += step_ms;
        server_turn(world, nth);
    }
}

/* ---- what came of it ---- */

static void table_read(struct world *world, const char *table, struct buf *out)
{
    struct buf request = {0};
    buf_printf(&request, "{\"TableName\":\"%s\"}", table);
    CHECK_INT(dynamo_call(world->dynamo, SLICE("Scan"), buf_view(&request), out), 200);
    buf_free(&request);
}

static size_t occurrences(struct slice text, const char *part)
{
    size_t count = 0, len = strlen(part);
    for (const char *at; (at = memmem(text.data, text.len, part, len)); count++)
        text = slice_from(text, (size_t)(at - text.data) + len);
    return count;
}

static size_t count_once(struct world *world, const char *table)
{
    struct buf reply = {0};
    table_read(world, table, &reply);
    size_t count = occurrences(buf_view(&reply), "\"times\":{\"N\":");
    CHECK_INT(occurrences(buf_view(&reply), "\"times\":{\"N\":\"1\"}"), count);
    buf_free(&reply);
    return count;
}

size_t calls_count(struct world *world)
{
    return count_once(world, "calls");
}

size_t letters_count(struct world *world)
{
    return count_once(world, "letters");
}

size_t calls_with(struct world *world, const char *part)
{
    struct buf reply = {0};
    table_read(world, "calls", &reply);
    size_t count = occurrences(buf_view(&reply), part);
    buf_free(&reply);
    return count;
}

bool calls_have(struct world *world, const char *part)
{
    return calls_with(world, part) > 0;
}
