/* The whole room with its threads, an engine with its writer, and a real function without a process: what the
 * simulation cannot see is whether the threads get along. */
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "trigger/consume.h"
#include "trigger/trigger.h"
#include "unit/test.h"
#include "unit/trigger_stage.h"

#define WRITERS 3
#define RECORDS 400 /* of each */

struct house {
    char folder[64];
    struct dynamo *dynamo;
    struct func *func;
    struct trigger *trigger;
    struct buf reply;
    char stream_arn[200];
};

/* ---- REST without a socket ---- */

struct waiting_call {
    struct rest_call call;
    sem_t answered;
};

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call;
    (void)name;
    return SLICE_NONE;
}

static void wake(struct rest_call *call)
{
    sem_post(&((struct waiting_call *)call)->answered);
}

static int ask(struct house *house, const char *method, const char *path, const char *body)
{
    struct arena arena = {0};
    struct waiting_call waiting = {.call = {.method = slice_of(method),
                                            .path = slice_of(path),
                                            .query = SLICE(""),
                                            .body = slice_of(body),
                                            .header = no_header,
                                            .arena = &arena,
                                            .done = wake,
                                            .reply = &house->reply}};
    house->reply.len = 0;
    sem_init(&waiting.answered, 0, 0);
    bool is_served = trigger_serve(house->trigger, &waiting.call) || func_serve(house->func, &waiting.call);
    ensure(is_served);
    sem_wait(&waiting.answered);
    sem_destroy(&waiting.answered);
    arena_free(&arena);
    return waiting.call.status;
}

static int tell(struct house *house, const char *operation, const char *request)
{
    house->reply.len = 0;
    return dynamo_call(house->dynamo, slice_of(operation), slice_of(request), &house->reply);
}

/* ---- the house ---- */

static void make_tables(struct house *house)
{
    static const char *const outer[] = {"TableDescription"}, *const inner[] = {"LatestStreamArn"};
    static const char form[] = "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\","
                               "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],"
                               "\"AttributeDefinitions\":[{\"AttributeName\":\"pk\","
                               "\"AttributeType\":\"S\"}],\"StreamSpecification\":{\"StreamEnabled\":true,"
                               "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}";
    struct arena arena = {0};
    struct slice description, arn;
    CHECK_INT(tell(house, "CreateTable", arena_printf(&arena, form, "copies").data), 200);
    CHECK_INT(tell(house, "CreateTable", arena_printf(&arena, form, "things").data), 200);
    raw_members(&arena, buf_view(&house->reply), outer, &description, 1);
    raw_members(&arena, description, inner, &arn, 1);
    snprintf(house->stream_arn, sizeof house->stream_arn, "%.*s", SLICE_ARG(raw_string(&arena, arn)));
    arena_free(&arena);
}

static void open_trigger(struct house *house)
{
    char error[300];
    house->func = func_open(&(struct func_options){.dynamo = house->dynamo,
                                                   .clock = &clock_system,
                                                   .folder = house->folder,
                                                   .region = "us-east-1",
                                                   .account = "000000000000"},
                            error, sizeof error);
    ensure(house->func);
    house->trigger = trigger_open(&(struct trigger_options){.dynamo = house->dynamo,
                                                            .func = house->func,
                                                            .clock = &clock_system,
                                                            .region = "us-east-1",
                                                            .account = "000000000000"},
                                  error, sizeof error);
    ensure(house->trigger);
    trigger_start(house->trigger);
}

static void close_trigger(struct house *house)
{
    trigger_close(house->trigger);
    func_close(house->func);
}

static void house_open(struct house *house)
{
    char error[300];
    *house = (struct house){.folder = "/tmp/quipu-trigger-XXXXXX"};
    ensure(mkdtemp(house->folder) != NULL);
    house->dynamo = dynamo_open(":memory:", &(struct dynamo_options){.region = "us-east-1"}, error,
                                sizeof error);
    ensure(house->dynamo);
    make_tables(house);
    open_trigger(house);
}

static void house_close(struct house *house)
{
    char command[100];
    close_trigger(house);
    dynamo_close(house->dynamo);
    buf_free(&house->reply);
    snprintf(command, sizeof command, "rm -rf %s", house->folder);
    ensure(system(command) == 0);
}

/* ---- writers ---- */

struct writer {
    struct house *house;
    pthread_t thread;
    int number;
};

static void *write_things(void *argument)
{
    struct writer *writer = argument;
    struct buf reply = {0};
    for (int i = 0; i < RECORDS; i++) {
        char request[200];
        snprintf(request, sizeof request,
                 "{\"TableName\":\"things\",\"Item\":{\"pk\":{\"S\":\"%d-%d\"},\"n\":{\"N\":\"%d\"}}}",
                 writer->number, i % 100, i);
        reply.len = 0;
        CHECK_INT(dynamo_call(writer->house->dynamo, SLICE("PutItem"), slice_of(request), &reply), 200);
    }
    buf_free(&reply);
    return NULL;
}

static void write_from_many(struct house *house)
{
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.house = house, .number = i};
        ensure(pthread_create(&writers[i].thread, NULL, write_things, &writers[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(writers[i].thread, NULL);
}

static void wait_until_idle(struct house *house)
{
    for (int i = 0; i < 6000 && !trigger_is_idle(house->trigger); i++) usleep(10000);
    CHECK(trigger_is_idle(house->trigger));
}

static void check_copies(struct house *house)
{
    tell(house, "Scan", "{\"TableName\":\"copies\"}");
    CHECK_INT(count_text(buf_view(&house->reply), "\"pk\""), 100 * WRITERS);
    for (int i = RECORDS - 100; i < RECORDS; i++) { /* each is as it was written last */
        char text[40];
        snprintf(text, sizeof text, "\"n\":{\"N\":\"%d\"}", i);
        CHECK_INT(count_text(buf_view(&house->reply), text), WRITERS);
    }
}

static void make_copier(struct house *house)
{
    char request[500];
    CHECK_INT(ask(house, "POST", "/2015-03-31/functions",
                  "{\"FunctionName\":\"copier\",\"Role\":\"arn:aws:iam::000000000000:role/any\","
                  "\"Code\":{\"Table\":\"copies\"}}"),
              201);
    snprintf(request, sizeof request,
             "{\"EventSourceArn\":\"%s\",\"FunctionName\":\"copier\",\"StartingPosition\":\"TRIM_HORIZON\","
             "\"ParallelizationFactor\":3}",
             house->stream_arn);
    CHECK_INT(ask(house, "POST", "/2015-03-31/event-source-mappings", request), 202);
}

TEST(a_table_follows_another_while_many_write)
{
    struct house house;
    house_open(&house);
    make_copier(&house);
    write_from_many(&house);
    wait_until_idle(&house);
    check_copies(&house);
    struct buf metrics = {0};
    trigger_put_metrics(house.trigger, &metrics);
    CHECK_INT(count_text(buf_view(&metrics), "\nquipu_trigger_records_done_total 1200\n"), 1);
    CHECK_INT(count_text(buf_view(&metrics), "\nquipu_trigger_mappings 1\n"), 1);
    buf_free(&metrics);
    house_close(&house);
}

TEST(a_room_that_is_closed_while_it_works_goes_on_where_it_was)
{
    struct house house;
    house_open(&house);
    make_copier(&house);
    for (int i = 0; i < 3; i++) {
        write_from_many(&house);
        close_trigger(&house);
        open_trigger(&house);
    }
    wait_until_idle(&house);
    check_copies(&house);
    house_close(&house);
}

/* ---- an invocation that comes back when nobody waits any more ---- */

TEST(an_answer_that_comes_after_the_end_is_let_go)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage.function_us = 1000000;
    stage_put(&stage, "a", 1, "x");
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, stage_mapping(&stage));
    stage_settle(&stage);
    CHECK_INT(stage.act_count, 1);
    struct invocation *invocation = stage.acts[0].invocation;
    CHECK(invocation != NULL);
    stage.act_count = 0;
    consumer_free(actor->consumer);
    actor->consumer = NULL;
    invocation->end = INVOCATION_ANSWERED;
    invocation->done(invocation);
    stage_close(&stage);
}
