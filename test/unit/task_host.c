/* Tasks: calls, pauses, signals, completions and notes, step by step and on a thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "task/task.h"
#include "unit/test.h"

#define CALLS 8

/* A door that answers when the test says so, and clocks that the test moves. */
struct stage {
    struct task_host *host;
    int64_t now_ms, ticks_us;
    struct dynamo_call *calls[CALLS];
    unsigned call_count, turns, finished;
    bool answers_at_once;
    char story[400];
};

static void answer(struct dynamo_call *call, int status, const char *error, const char *body)
{
    call->status = status;
    call->error = error;
    buf_slice(call->reply, slice_of(body));
}

static bool stage_begin(void *self, struct dynamo_call *call)
{
    struct stage *stage = self;
    if (stage->answers_at_once) {
        answer(call, 200, NULL, "{}");
        return true;
    }
    ensure(stage->call_count < CALLS);
    stage->calls[stage->call_count++] = call;
    return false;
}

static void stage_turn_end(void *self)
{
    ((struct stage *)self)->turns++;
}

static void stage_finish(void *self, struct dynamo_call *call)
{
    (void)call;
    ((struct stage *)self)->finished++;
}

static int64_t stage_now_ms(void *self)
{
    return ((struct stage *)self)->now_ms;
}

static int64_t stage_ticks_us(void *self)
{
    return ((struct stage *)self)->ticks_us;
}

static void stage_open(struct stage *stage)
{
    *stage = (struct stage){.now_ms = 1000000};
    stage->host = task_host_new(&(struct task_environment){.self = stage,
                                                           .begin = stage_begin,
                                                           .turn_end = stage_turn_end,
                                                           .finish = stage_finish,
                                                           .now_ms = stage_now_ms,
                                                           .ticks_us = stage_ticks_us},
                                7);
}

static void stage_pass(struct stage *stage, int64_t us)
{
    stage->ticks_us += us;
    stage->now_ms += us / 1000;
}

static void tell(struct stage *stage, const char *word)
{
    strcat(stage->story, word);
}

static void stage_answer(struct stage *stage, unsigned number, int status, const char *error,
                         const char *body)
{
    answer(stage->calls[number], status, error, body);
    stage->calls[number]->done(stage->calls[number]);
}

/* ---- calls ---- */

static void put_and_get(void *argument)
{
    struct stage *stage = argument;
    struct task_reply reply = task_request("PutItem", SLICE("{\"put\":1}"));
    tell(stage, reply.fault == DYNAMO_FINE ? "put " : "failed ");
    struct task_call *call = task_call_new("GetItem");
    buf_text(task_call_request(call), "{\"get\":1}");
    reply = task_send(call);
    tell(stage, reply.fault == DYNAMO_MISSING ? "missing " : "got ");
    CHECK_TEXT(reply.body, "{\"message\":\"no table\"}");
    CHECK_TEXT(task_reply_message(&reply), "no table");
}

TEST(a_task_makes_calls_one_after_the_other)
{
    struct stage stage;
    stage_open(&stage);
    task_begin(stage.host, put_and_get, &stage);
    CHECK_INT(task_host_step(stage.host), -1);
    CHECK_INT(stage.call_count, 1);
    CHECK_TEXT(stage.calls[0]->request, "{\"put\":1}");
    CHECK_INT(stage.turns, 1);
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "");
    stage_answer(&stage, 0, 200, NULL, "{}");
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "put ");
    CHECK_TEXT(stage.calls[1]->name, "GetItem");
    stage_answer(&stage, 1, 400, "ResourceNotFoundException", "{\"message\":\"no table\"}");
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "put missing ");
    CHECK(!task_host_count(stage.host) && !task_host_calls(stage.host) && stage.finished == 2);
    task_host_free(stage.host);
}

static void many_calls(void *argument)
{
    for (int i = 0; i < 1000; i++) CHECK_INT(task_request("GetItem", SLICE("{}")).status, 200);
    tell(argument, "done");
}

TEST(a_call_that_is_answered_at_once_does_not_wait)
{
    struct stage stage;
    stage_open(&stage);
    stage.answers_at_once = true;
    task_begin(stage.host, many_calls, &stage);
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "done");
    CHECK_INT(stage.turns, 0);
    task_host_free(stage.host);
}

/* ---- moments and signals ---- */

static struct task_signal bell;

static void wait_for_bell(void *argument)
{
    struct stage *stage = argument;
    tell(stage, task_await(&bell, task_after_us(stage->host, 5000)) ? "rung " : "late ");
}

static void pause_twice(void *argument)
{
    task_pause_us(2000);
    tell(argument, "two ");
    task_pause_us(2000);
    tell(argument, "four ");
}

TEST(tasks_wait_for_moments_and_signals)
{
    struct stage stage;
    stage_open(&stage);
    task_begin(stage.host, wait_for_bell, &stage);
    task_begin(stage.host, pause_twice, &stage);
    CHECK_INT(task_host_step(stage.host), 2000);
    stage_pass(&stage, 2000);
    CHECK_INT(task_host_step(stage.host), 2000);
    stage_pass(&stage, 2000);
    CHECK_INT(task_host_step(stage.host), 1000);
    CHECK_TEXT(slice_of(stage.story), "two four ");
    task_begin(stage.host, wait_for_bell, &stage);
    task_host_step(stage.host);
    stage_pass(&stage, 1000);
    task_host_step(stage.host); /* the first gives up in the midst of those who wait */
    CHECK_TEXT(slice_of(stage.story), "two four late ");
    task_begin(stage.host, wait_for_bell, &stage);
    task_host_step(stage.host);
    task_signal_give(&bell);
    CHECK(!bell.first && !bell.last);
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "two four late rung rung ");
    task_host_free(stage.host);
}

TEST(a_clock_that_jumps_ends_a_wait)
{
    struct stage stage;
    stage_open(&stage);
    task_begin(stage.host, wait_for_bell, &stage);
    task_host_step(stage.host);
    stage.now_ms -= 60000;
    CHECK_INT(task_host_step(stage.host), 5000);
    stage.now_ms += 60005;
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "late ");
    task_host_free(stage.host);
}

/* ---- completions ---- */

struct parcel {
    struct task_completion completion;
    bool *released;
};

static void parcel_release(struct task_completion *completion)
{
    struct parcel *parcel = (struct parcel *)completion;
    *parcel->released = true;
    free(parcel);
}

static struct parcel *sent;
static bool released;

static void wait_for_parcel(void *argument)
{
    struct stage *stage = argument;
    struct parcel *parcel = must_zero(1, sizeof *parcel);
    parcel->released = &released;
    task_completion_begin(&parcel->completion, parcel_release);
    sent = parcel;
    while (!task_await_completion(&parcel->completion, task_after_us(stage->host, 1000)))
        tell(stage, "not yet ");
    tell(stage, "there ");
    task_completion_abandon(&parcel->completion);
}

static void *complete(void *argument)
{
    task_completion_done(argument);
    return NULL;
}

TEST(what_others_complete_is_waited_for)
{
    struct stage stage;
    pthread_t thread;
    stage_open(&stage);
    released = false;
    task_begin(stage.host, wait_for_parcel, &stage);
    task_host_step(stage.host);
    stage_pass(&stage, 1000);
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "not yet ");
    ensure(pthread_create(&thread, NULL, complete, &sent->completion) == 0);
    task_host_sleep(stage.host, -1);
    pthread_join(thread, NULL);
    task_host_step(stage.host);
    CHECK_TEXT(slice_of(stage.story), "not yet there ");
    CHECK(released && !task_host_count(stage.host));
    task_host_free(stage.host);
}

TEST(what_is_completed_after_the_host_is_released)
{
    struct stage stage;
    stage_open(&stage);
    released = false;
    task_begin(stage.host, wait_for_parcel, &stage);
    task_host_step(stage.host);
    task_host_free(stage.host);
    CHECK(!released);
    task_completion_done(&sent->completion);
    CHECK(released);
}

TEST(a_dropped_task_leaves_nothing)
{
    struct stage stage;
    stage_open(&stage);
    task_begin(stage.host, put_and_get, &stage);
    task_begin(stage.host, pause_twice, &stage);
    task_begin(stage.host, wait_for_bell, &stage);
    task_host_step(stage.host);
    task_call_drop(stage.calls[0]);
    task_host_free(stage.host);
    bell = (struct task_signal){0};
}

/* ---- on a thread, with the real door ---- */

struct counter {
    struct task_note note;
    struct task_host *host;
    unsigned written;
    bool is_over;
    struct task_signal over;
};

static void write_items(void *argument)
{
    struct counter *counter = argument;
    while (!counter->is_over) {
        struct task_call *call = task_call_new("PutItem");
        buf_printf(task_call_request(call), "{\"TableName\":\"numbers\",\"Item\":{\"pk\":{\"S\":\"%u\"}}}",
                   counter->written % 10);
        CHECK_INT(task_send(call).status, 200);
        counter->written++;
    }
    task_signal_give(&counter->over);
}

static void stop_writing(struct task_note *note)
{
    ((struct counter *)note)->is_over = true;
}

static void see_the_end(void *argument)
{
    struct counter *counter = argument;
    task_await(&counter->over, TASK_NEVER);
}

static void *run_host(void *argument)
{
    task_host_run(argument);
    return NULL;
}

TEST(tasks_run_on_a_thread)
{
    struct counter counter = {.note = {.run = stop_writing}};
    struct buf reply = {0};
    char error[200];
    pthread_t thread;
    struct dynamo *dynamo = dynamo_open(":memory:", &(struct dynamo_options){0}, error, sizeof error);
    ensure(dynamo);
    CHECK_INT(
        dynamo_call(dynamo, SLICE("CreateTable"),
                    SLICE("{\"TableName\":\"numbers\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
                          "\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}],\"AttributeDefinitions\":[{"
                          "\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}]}"),
                    &reply),
        200);
    counter.host = task_host_open(dynamo, NULL);
    task_begin(counter.host, see_the_end, &counter);
    task_begin(counter.host, write_items, &counter);
    task_begin(counter.host, write_items, &counter);
    ensure(pthread_create(&thread, NULL, run_host, counter.host) == 0);
    reply.len = 0;
    while (!slice_contains(buf_view(&reply), SLICE("\"9\""))) { /* the tenth item is there */
        reply.len = 0;
        dynamo_call(dynamo, SLICE("GetItem"),
                    SLICE("{\"TableName\":\"numbers\",\"Key\":{\"pk\":{\"S\":\"9\"}}}"), &reply);
    }
    task_host_post(counter.host, &counter.note);
    pthread_join(thread, NULL);
    CHECK(counter.written >= 10);
    task_host_free(counter.host);
    dynamo_close(dynamo);
    buf_free(&reply);
}
