/* Reactions with all that they need, in one process: patterns that call patterns, so that no function is
 * needed. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/raw.h"
#include "react/react.h"
#include "unit/test.h"

#define JOBS       40
#define CALLERS    4
#define REOPENINGS 12

struct house {
    char folder[64];
    struct dynamo *dynamo;
    struct pattern *pattern;
    struct func *func;
    struct trigger *trigger;
    struct react *react;
};

static bool apply(void *pattern, struct slice call, struct slice body, struct slice event, struct slice cause,
                  struct arena *arena, struct buf *reply, bool *is_final)
{
    return pattern_apply(pattern, call, body, event, cause, arena, reply, is_final);
}

static void open_rooms(struct house *house)
{
    char error[300];
    house->pattern = pattern_open(&(struct pattern_options){.dynamo = house->dynamo});
    house->func = func_open(&(struct func_options){.dynamo = house->dynamo,
                                                   .clock = &clock_system,
                                                   .folder = house->folder,
                                                   .region = "us-east-1",
                                                   .account = "000000000000"},
                            error, sizeof error);
    ensure(house->func);
    func_set_pattern(house->func, apply, house->pattern);
    house->trigger = trigger_open(&(struct trigger_options){.dynamo = house->dynamo,
                                                            .func = house->func,
                                                            .clock = &clock_system,
                                                            .region = "us-east-1",
                                                            .account = "000000000000"},
                                  error, sizeof error);
    ensure(house->trigger);
    house->react = react_open(&(struct react_options){.pattern = house->pattern,
                                                      .trigger = house->trigger,
                                                      .func = house->func,
                                                      .region = "us-east-1",
                                                      .account = "000000000000"});
    func_start(house->func, NULL, NULL, NULL);
    trigger_start(house->trigger);
}

static void close_rooms(struct house *house)
{
    react_stop(house->react);
    trigger_close(house->trigger);
    react_close(house->react);
    func_close(house->func);
    pattern_close(house->pattern);
}

static void house_open(struct house *house)
{
    char error[300];
    *house = (struct house){.folder = "/tmp/quipu-react-XXXXXX"};
    ensure(mkdtemp(house->folder) != NULL);
    house->dynamo = dynamo_open(":memory:", &(struct dynamo_options){.region = "us-east-1"}, error,
                                sizeof error);
    ensure(house->dynamo);
    open_rooms(house);
}

static void house_close(struct house *house)
{
    char command[100];
    close_rooms(house);
    dynamo_close(house->dynamo);
    snprintf(command, sizeof command, "rm -rf %s", house->folder);
    ensure(system(command) == 0);
}

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call;
    (void)name;
    return SLICE_NONE;
}

/* "PUT /v1/jobs/x"; the status, and the reply in the arena. */
static int ask(struct house *house, const char *request, const char *body, struct arena *arena,
               struct slice *out)
{
    const char *blank = strchr(request, ' ');
    struct buf reply = {0};
    struct rest_call call = {.method = {request, (size_t)(blank - request)},
                             .path = slice_of(blank + 1),
                             .body = slice_of(body),
                             .header = no_header,
                             .arena = arena,
                             .reply = &reply};
    ensure(pattern_run(house->pattern, &call));
    if (out) *out = arena_copy(arena, buf_view(&reply));
    buf_free(&reply);
    return call.status;
}

static void wait_until_idle(struct house *house)
{
    unsigned quiet = 0;
    for (int i = 0; i < 6000 && quiet < 2; i++, usleep(5000))
        quiet = trigger_is_idle(house->trigger) && func_is_idle(house->func) ? quiet + 1 : 0;
    CHECK_INT(quiet, 2);
}

static void make_job(struct house *house, int number, const char *then)
{
    struct arena arena = {0};
    struct slice path = arena_printf(&arena, "PUT /v1/jobs/j%d", number);
    int status = ask(house, path.data, arena_printf(&arena, "{\"total\":3,\"then\":%s}", then).data, &arena,
                     NULL);
    CHECK_INT(status / 100, 2);
    arena_free(&arena);
}

static void check_counter(struct house *house, const char *name, const char *expected)
{
    struct arena arena = {0};
    struct slice reply;
    ask(house, arena_printf(&arena, "GET /v1/counters/%s", name).data, "", &arena, &reply);
    CHECK_TEXT(reply, expected);
    arena_free(&arena);
}

static bool was_put_aside(struct house *house, const char *text)
{
    struct buf reply = {0};
    int status = dynamo_call(house->dynamo, SLICE("Scan"), SLICE("{\"TableName\":\"quipu-queues\"}"), &reply);
    bool found = status == 200 && slice_contains(buf_view(&reply), slice_of(text));
    buf_free(&reply);
    return found;
}

/* Each does every task of every job, so all but the first are duplicates. */
static void *do_all_tasks(void *argument)
{
    struct house *house = argument;
    struct arena arena = {0};
    for (int i = 0; i < JOBS * 3; i++) {
        struct slice path = arena_printf(&arena, "POST /v1/jobs/j%d/done", i / 3);
        CHECK_INT(ask(house, path.data, arena_printf(&arena, "{\"task\":%d}", i % 3).data, &arena, NULL),
                  200);
    }
    arena_free(&arena);
    return NULL;
}

TEST(each_job_is_told_of_once_while_many_finish_it)
{
    struct house house;
    pthread_t callers[CALLERS];
    house_open(&house);
    for (int i = 0; i < JOBS; i++)
        make_job(&house, i,
                 "[{\"call\":\"POST /v1/counters/ends\"},{\"call\":\"POST /v1/counters/tasks\","
                 "\"body\":{\"by\":\"{detail.total}\"}}]");
    for (int i = 0; i < CALLERS; i++) ensure(pthread_create(&callers[i], NULL, do_all_tasks, &house) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    wait_until_idle(&house);
    check_counter(&house, "ends", "{\"value\":40}");
    check_counter(&house, "tasks", "{\"value\":120}");
    struct buf metrics = {0};
    react_put_metrics(house.react, &metrics);
    CHECK(slice_contains(buf_view(&metrics), SLICE("quipu_reactions_total{what=\"called\"} 80\n")));
    buf_free(&metrics);
    house_close(&house);
}

TEST(what_ended_while_nobody_listened_is_told_of_later)
{
    struct house house;
    house_open(&house);
    for (int i = 0; i < JOBS; i++) make_job(&house, i, "{\"call\":\"POST /v1/counters/ends\"}");
    do_all_tasks(&house);
    for (int i = 0; i < REOPENINGS; i++) { /* wherever it is, it goes on from there */
        usleep((useconds_t)i * 300);
        close_rooms(&house);
        open_rooms(&house);
    }
    wait_until_idle(&house);
    check_counter(&house, "ends", "{\"value\":40}");
    house_close(&house);
}

TEST(what_cannot_be_carried_out_is_put_aside_and_holds_up_nobody)
{
    static const char *const states[] = {"OPEN", "COMPLETE"};
    struct house house;
    struct buf reply = {0};
    house_open(&house);
    make_job(&house, 0, "\"nobody\"");
    make_job(&house, 1, "{\"call\":\"POST /v1/counters/x\",\"body\":{\"by\":\"{detail.id}\"}}");
    for (int i = 2; i < JOBS; i++) make_job(&house, i, "{\"call\":\"POST /v1/counters/ends\"}");
    for (int i = 0; i < 2; i++) { /* by another hand */
        char request[300];
        snprintf(request, sizeof request,
                 "{\"TableName\":\"quipu-jobs\",\"Item\":{\"id\":{\"S\":\"odd\"},\"state\":{\"S\":\"%s\"},"
                 "\"then\":{\"S\":\"two words with http://a?k3y\"}}}",
                 states[i]);
        CHECK_INT(dynamo_call(house.dynamo, SLICE("PutItem"), slice_of(request), &reply), 200);
    }
    do_all_tasks(&house);
    wait_until_idle(&house);
    check_counter(&house, "ends", "{\"value\":38}");
    CHECK(was_put_aside(&house, "FunctionNotFound"));
    CHECK(was_put_aside(&house, "answered with status 400"));
    CHECK(was_put_aside(&house, "BadReaction"));
    CHECK(was_put_aside(&house, "it may hold a secret"));
    CHECK(!was_put_aside(&house, "k3y"));
    reply.len = 0;
    react_put_metrics(house.react, &reply); /* once, though the first try only has the queue made */
    CHECK(slice_contains(buf_view(&reply), SLICE("quipu_reactions_total{what=\"refused\"} 1\n")));
    CHECK(slice_contains(buf_view(&reply), SLICE("quipu_reactions_total{what=\"called\"} 40\n")));
    buf_free(&reply);
    house_close(&house);
}

TEST(a_chain_that_comes_back_to_itself_is_cut)
{
    struct house house;
    struct arena arena = {0};
    struct slice group;
    house_open(&house);
    ask(&house, "PUT /v1/groups/g",
        "{\"complete\":{\"size\":1},\"late\":\"new\",\"then\":{\"call\":\"POST /v1/groups/g/k\","
        "\"body\":{\"id\":\"{eventID}\",\"data\":1}}}",
        &arena, NULL);
    ask(&house, "POST /v1/groups/g/k", "{\"id\":\"first\",\"data\":1}", &arena, NULL);
    wait_until_idle(&house);
    ask(&house, "GET /v1/groups/g/k", "", &arena, &group);
    CHECK(slice_contains(group, SLICE("\"generation\":17,")));
    CHECK(was_put_aside(&house, "by its own doing too often"));
    arena_free(&arena);
    house_close(&house);
}

/* Whoever dies between a call and its end has it made again: by its key the pattern knows it. */
TEST(a_call_carries_the_id_of_its_event)
{
    struct house house;
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice told;
    house_open(&house);
    ask(&house, "PUT /v1/jobs/j",
        "{\"total\":1,\"then\":[{\"call\":\"POST /v1/counters/ends\"},{\"call\":\"PUT "
        "/v1/documents/told/j\",\"body\":{\"id\":\"{eventID}\"}}]}",
        &arena, NULL);
    ask(&house, "POST /v1/jobs/j/done", "{\"task\":0}", &arena, NULL);
    wait_until_idle(&house);
    CHECK_INT(ask(&house, "GET /v1/documents/told/j", "", &arena, &told), 200);
    CHECK(raw_text(&arena, raw_member(&arena, told, "id")).len > 0);
    CHECK_INT(dynamo_call(house.dynamo, SLICE("GetItem"),
                          SLICE("{\"TableName\":\"quipu-counters\",\"Key\":{\"name\":{\"S\":\"ends\"}}}"),
                          &reply),
              200);
    CHECK(slice_contains(buf_view(&reply), SLICE("\"given\""))); /* which calls with a key leave */
    buf_free(&reply);
    arena_free(&arena);
    house_close(&house);
}

/* Those behind the first few have items of their own; what came late is none of the call's. */
TEST(a_call_has_all_events_of_its_group)
{
    struct house house;
    struct arena arena = {0};
    struct slice told, data;
    house_open(&house);
    ask(&house, "PUT /v1/groups/g",
        "{\"complete\":{\"size\":30},\"late\":\"append\","
        "\"then\":{\"call\":\"PUT /v1/documents/told/{detail.key}\","
        "\"body\":{\"of\":\"{detail.count}\",\"events\":\"{detail.events}\"}}}",
        &arena, NULL);
    for (int i = 0; i < 33; i++) /* ids against the order in which they come */
        CHECK_INT(ask(&house, "POST /v1/groups/g/ann%2Fb%20c",
                      arena_printf(&arena, "{\"id\":\"e%d\",\"data\":{\"page\":\"/shoes/%060d\"}}", 99 - i, i)
                          .data,
                      &arena, NULL),
                  201);
    wait_until_idle(&house);
    CHECK_INT(ask(&house, "GET /v1/documents/told/ann%2Fb%20c", "", &arena, &told), 200);
    CHECK(slice_contains(told, SLICE("\"of\":30")));
    CHECK_INT((int)raw_count(&arena, raw_member(&arena, told, "events")), 30);
    for (int i = 0; i < 33; i++) {
        data = arena_printf(&arena, "{\"page\":\"/shoes/%060d\"}", i);
        CHECK_INT(slice_contains(told, data), i < 30);
    }
    arena_free(&arena);
    house_close(&house);
}

/* The callback of a job needs no second call: results in the order of the tasks, and why others failed. What is too
 * much for a call is left out, and said to be. */
TEST(a_call_has_the_results_of_its_job)
{
    struct house house;
    struct arena arena = {0};
    struct slice told;
    house_open(&house);
    ask(&house, "PUT /v1/jobs/a%2Fb",
        "{\"total\":300,\"tolerate\":1,\"then\":{\"call\":\"PUT /v1/documents/told/all\","
        "\"body\":{\"results\":\"{detail.results}\",\"failures\":\"{detail.failures}\"}}}",
        &arena, NULL);
    ask(&house, "POST /v1/jobs/a%2Fb/failed", "{\"task\":7,\"reason\":\"no ink\"}", &arena, NULL);
    for (int i = 299; i >= 0; i--)
        if (i != 7)
            ask(&house, "POST /v1/jobs/a%2Fb/done",
                arena_printf(&arena, "{\"task\":%d,\"result\":{\"n\":%d}}", i, i * 2).data, &arena, NULL);
    wait_until_idle(&house);
    CHECK_INT(ask(&house, "GET /v1/documents/told/all", "", &arena, &told), 200);
    CHECK_TEXT(raw_member(&arena, told, "failures"), "[{\"reason\":\"no ink\",\"task\":7}]");
    struct slice results = raw_member(&arena, told, "results"), result;
    struct raw_look look;
    raw_look_begin(&look, &arena, results);
    for (int i = 0; i < 300; i++)
        if (i != 7) {
            CHECK(raw_look_next(&look, NULL, &result));
            CHECK_TEXT(result, arena_printf(&arena, "{\"result\":{\"n\":%d},\"task\":%d}", i * 2, i).data);
        }
    CHECK(!raw_look_next(&look, NULL, &result));
    ask(&house, "PUT /v1/jobs/much",
        "{\"total\":4,\"then\":{\"call\":\"PUT /v1/documents/told/{detail.id}\","
        "\"body\":{\"truncated\":\"{detail.truncated}\",\"path\":\"{detail.path}\"}}}",
        &arena, NULL);
    char *large = arena_alloc(&arena, 320000);
    for (int i = 0; i < 4; i++) {
        memset(large, 'x', 319999);
        large[319999] = 0;
        ask(&house, "POST /v1/jobs/much/done",
            arena_printf(&arena, "{\"task\":%d,\"result\":\"%s\"}", i, large).data, &arena, NULL);
    }
    wait_until_idle(&house);
    CHECK_INT(ask(&house, "GET /v1/documents/told/much", "", &arena, &told), 200);
    CHECK_TEXT(told, "{\"path\":\"/v1/jobs/much\",\"truncated\":true}");
    arena_free(&arena);
    house_close(&house);
}
