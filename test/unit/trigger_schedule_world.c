/* The world of schedules' tests. */
#include "unit/trigger_schedule.h"

#include <pthread.h>
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

static int world_call(void *self, struct slice operation, struct slice request, struct buf *reply)
{
    struct world *world = self;
    void (*before)(struct world *) = world->before_write;
    if (before && slice_equal(operation, SLICE("TransactWriteItems"))) {
        world->before_write = NULL;
        before(world);
    }
    bool fails = world->failing != FAIL_NOT && ++world->calls == world->fail_at;
    if (fails && world->failing == FAIL_BEFORE) {
        buf_text(reply, "{\"__type\":\"NoReplyException\",\"message\":\"let fail\"}");
        return 0;
    }
    int status = dynamo_call(world->dynamo, operation, request, reply);
    if (!fails) return status;
    reply->len = 0;
    buf_text(reply, "{\"__type\":\"NoReplyException\",\"message\":\"let fail\"}");
    return 0;
}

static bool world_resolve(void *self, struct slice function, struct arena *arena)
{
    (void)arena;
    return ((struct world *)self)->has_function && slice_starts(function, SLICE("f"));
}

/* Counts how often each id is put. */
static void put_count(struct buf *members, const char *table, struct slice id, struct slice payload)
{
    buf_printf(members, "{\"Update\":{\"TableName\":\"%s\",\"Key\":{\"id\":{\"S\":", table);
    json_put_string(members, id);
    buf_text(members, "}},\"UpdateExpression\":\"ADD times :one SET payload = :payload\","
                      "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"},\":payload\":{\"S\":");
    json_put_string(members, payload);
    buf_text(members, "}}}}");
}

static unsigned world_queue_put(void *self, struct slice function, struct slice payload, struct slice id,
                                struct buf *members)
{
    (void)self;
    (void)function;
    put_count(members, "calls", id, payload);
    return 1;
}

static bool world_dead_letter(void *self, struct slice destination, struct slice document, struct slice id,
                              const struct func_call *call, struct buf *members, unsigned *count)
{
    (void)self;
    (void)destination;
    CHECK(call->function.len && slice_contains(document, call->payload));
    put_count(members, "letters", id, document);
    *count = 1;
    return true;
}

static void world_wake(void *self)
{
    ((struct world *)self)->wakes++;
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
    *world = (struct world){.has_function = true};
    world->now_ms = moment("2025-06-01T00:00:00Z");
    world->clock = (struct clock){world_now, world};
    world->dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    make_table(world, "calls");
    make_table(world, "letters");
    for (unsigned i = 0; i < SERVERS; i++)
        world->servers[i] = (struct trigger){.options = {.dynamo = world->dynamo, .clock = &world->clock},
                                             .prefix = SLICE("quipu-"),
                                             .region = SLICE("us-east-1"),
                                             .account = SLICE("000000000000")};
}

void world_close(struct world *world)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (world->servers[i].schedules) server_close(world, i);
    dynamo_close(world->dynamo);
}

void server_open(struct world *world, unsigned nth)
{
    const struct schedule_doors doors = {world,           world_call,        world_resolve,
                                         world_queue_put, world_dead_letter, world_wake};
    char error[256] = "";
    struct trigger *server = &world->servers[nth];
    while (!server->schedules) server->schedules = schedules_open_with(server, &doors, error, sizeof error);
    server->workers = rest_workers_new(1);
}

void server_close(struct world *world, unsigned nth)
{
    rest_workers_free(world->servers[nth].workers);
    schedules_close(world->servers[nth].schedules);
    world->servers[nth].schedules = NULL;
}

/* ---- requests ---- */

struct waiting {
    struct rest_call call;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool is_done;
};

static void answered(struct rest_call *call)
{
    struct waiting *waiting = (struct waiting *)(void *)call;
    pthread_mutex_lock(&waiting->lock);
    waiting->is_done = true;
    pthread_cond_signal(&waiting->news);
    pthread_mutex_unlock(&waiting->lock);
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
    pthread_mutex_init(&waiting.lock, NULL);
    pthread_cond_init(&waiting.news, NULL);
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
        route->serve(&world->servers[nth], &waiting.call);
        pthread_mutex_lock(&waiting.lock);
        while (!waiting.is_done) pthread_cond_wait(&waiting.news, &waiting.lock);
        pthread_mutex_unlock(&waiting.lock);
    }
    out->status = waiting.call.status;
    out->headers = waiting.call.headers;
    pthread_mutex_destroy(&waiting.lock);
    pthread_cond_destroy(&waiting.news);
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
    struct buf body = {0}, path = {0};
    buf_printf(&path, "/schedules/%s%c", name, 0);
    buf_printf(&body,
               "{\"ScheduleExpression\":\"%s\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
               "\"Target\":{\"Arn\":\"f\",\"Input\":\"{\\\"at\\\":\\\"<aws.scheduler.scheduled-time>\\\"}\","
               "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:000000000000:dead\"}}%s}%c",
               expression, more, 0);
    expect(world, "POST", path.data, body.data, 200, "ScheduleArn");
    buf_free(&body);
    buf_free(&path);
}

/* ---- running ---- */

void server_turn(struct world *world, unsigned nth)
{
    while (schedules_turn(world->servers[nth].schedules))
        ;
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

bool calls_have(struct world *world, const char *part)
{
    struct buf reply = {0};
    table_read(world, "calls", &reply);
    bool found = slice_contains(buf_view(&reply), slice_of(part));
    buf_free(&reply);
    return found;
}
