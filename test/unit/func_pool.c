/* Processes of functions: what they are given, how they end, how many there are. */
#include "func/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "unit/func_stage.h"

static const struct stage_options plain;

static bool contains(const struct buf *text, const char *part)
{
    return slice_contains(buf_view(text), slice_of(part));
}

TEST(pool_answers_and_reuses_the_process)
{
    struct stage stage;
    struct outcome first = {0}, second = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "echo", "", "");
    STAGE_EXPECT(&stage, "echo", "{\"a\":1}", INVOCATION_ANSWERED, "{\"a\":1}");
    stage_rest_process(&stage, "echo");
    outcome_call(&first, &stage, "echo", "\"pid\"");
    stage_rest_process(&stage, "echo");
    outcome_call(&second, &stage, "echo", "\"pid\"");
    CHECK(first.invocation.reply.len > 0);
    CHECK(slice_equal(buf_view(&first.invocation.reply), buf_view(&second.invocation.reply)));
    CHECK(first.invocation.started_us > 0);
    CHECK_TEXT(slice_of(first.invocation.version), "$LATEST");
    CHECK_INT(strlen(first.invocation.request_id), 36);
    CHECK(strcmp(first.invocation.request_id, second.invocation.request_id) != 0);
    CHECK_INT(stage_processes(&stage, "echo", NULL), 1);
    outcome_free(&first);
    outcome_free(&second);
    stage_close(&stage);
}

TEST(pool_is_closed_before_its_server)
{
    struct stage stage;
    struct outcome running = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "echo", "", "\"Timeout\":900");
    STAGE_EXPECT(&stage, "echo", "1", INVOCATION_ANSWERED, "1");
    outcome_begin(&running, &stage, "echo", "\"hang\"");
    stage_close_func_first(&stage);
    outcome_wait(&running);
    CHECK_INT(running.invocation.end, INVOCATION_REFUSED);
    CHECK(contains(&running.invocation.reply, "The server is stopping"));
    outcome_free(&running);
}

TEST(pool_is_closed_after_its_server)
{
    struct stage stage;
    struct outcome running = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "echo", "", "\"Timeout\":900");
    STAGE_EXPECT(&stage, "echo", "1", INVOCATION_ANSWERED, "1");
    outcome_begin(&running, &stage, "echo", "\"hang\"");
    stage_close(&stage);
    outcome_wait(&running);
    CHECK_INT(running.invocation.end, INVOCATION_REFUSED);
    outcome_free(&running);
}

TEST(pool_gives_lambdas_environment)
{
    static const char *const wanted[] = {"AWS_LAMBDA_RUNTIME_API=127.0.0.1:",
                                         "\n_HANDLER=h.m\n",
                                         "\nLAMBDA_TASK_ROOT=/",
                                         "\nLAMBDA_RUNTIME_DIR=/",
                                         "\nAWS_LAMBDA_FUNCTION_NAME=env\n",
                                         "\nAWS_LAMBDA_FUNCTION_VERSION=$LATEST\n",
                                         "\nAWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024\n",
                                         "\nAWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/env\n",
                                         "\nAWS_LAMBDA_LOG_STREAM_NAME=20",
                                         "\nAWS_LAMBDA_INITIALIZATION_TYPE=on-demand\n",
                                         "\nAWS_REGION=us-east-1\n",
                                         "\nAWS_DEFAULT_REGION=us-east-1\n",
                                         "\nAWS_ENDPOINT_URL=http://127.0.0.1:",
                                         "\nAWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:",
                                         "\nAWS_ENDPOINT_URL_DYNAMODB_STREAMS=http://127.0.0.1:",
                                         "\nAWS_ENDPOINT_URL_LAMBDA=http://127.0.0.1:",
                                         "\nAWS_ENDPOINT_URL_SCHEDULER=http://127.0.0.1:",
                                         "\nAWS_ACCESS_KEY_ID=QUIPU",
                                         "\nAWS_SECRET_ACCESS_KEY=",
                                         "\nAWS_SESSION_TOKEN=",
                                         "\nQUIPU_TOKEN=",
                                         "\nTZ=:UTC\n",
                                         "\nPATH=/",
                                         "\nMINE=yes\n"};
    static const char *const unwanted[] = {"AWS_EXECUTION_ENV", "AWS_LAMBDA_MAX_CONCURRENCY", "\nHOME="};
    struct stage stage;
    struct outcome outcome = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "env", "", "");
    outcome_call(&outcome, &stage, "env", "\"environment\"");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!contains(&outcome.invocation.reply, wanted[i]))
            test_failed(__FILE__, __LINE__, "no %s", wanted[i]);
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        if (contains(&outcome.invocation.reply, unwanted[i]))
            test_failed(__FILE__, __LINE__, "has %s", unwanted[i]);
    outcome_free(&outcome);
    stage_close(&stage);
}

/* What the API would refuse, but a table may hold. */
TEST(pool_keeps_its_own_variables)
{
    struct stage stage;
    struct arena arena = {0};
    struct function_variable variables[] = {{SLICE("_HIDDEN"), SLICE("x")},
                                            {SLICE("_HANDLER"), SLICE("x")},
                                            {SLICE("_X_AMZN_TRACE_ID"), SLICE("t")},
                                            {SLICE("AWS_LAMBDA_RUNTIME_API"), SLICE("x")},
                                            {SLICE("PATH"), SLICE("/mine")},
                                            {SLICE("AWS_ENDPOINT_URL"), SLICE("http://elsewhere")},
                                            {SLICE("AWS_ACCESS_KEY_ID"), SLICE("theirs")}};
    struct function function = {.name = SLICE("f"),
                                .version = SLICE("7"),
                                .runtime = SLICE("nodejs20.x"),
                                .handler = SLICE("own"),
                                .folder = SLICE("/code"),
                                .concurrency = 4,
                                .variables = variables,
                                .variable_count = sizeof variables / sizeof *variables};
    stage_open(&stage, &plain);
    struct buf all = {0};
    struct instance_keys keys;
    instance_keys_make(&keys);
    struct sandbox_program program = {.temporary = "/own"};
    const char *const *environment = environment_make(stage.func, &function, 1234, &keys, 5, &program,
                                                      &arena);
    for (; *environment; environment++) buf_printf(&all, "\n%s\n", *environment);
    CHECK(!contains(&all, "_HIDDEN") && !contains(&all, "=x\n"));
    CHECK(contains(&all, "\n_HANDLER=own\n") && contains(&all, "\n_X_AMZN_TRACE_ID=t\n"));
    CHECK(contains(&all, "\nAWS_LAMBDA_RUNTIME_API=127.0.0.1:1234\n"));
    CHECK(contains(&all, "\nPATH=/mine\n") && contains(&all, "\nAWS_ENDPOINT_URL=http://elsewhere\n"));
    CHECK(contains(&all, "\nAWS_ENDPOINT_URL_LAMBDA=http://127.0.0.1:1234\n"));
    CHECK(contains(&all, "\nAWS_EXECUTION_ENV=AWS_Lambda_nodejs20.x\n"));
    CHECK(contains(&all, "\nAWS_LAMBDA_MAX_CONCURRENCY=4\n"));
    CHECK(contains(&all, "\nAWS_ACCESS_KEY_ID=theirs\n") && !contains(&all, "AWS_SECRET_ACCESS_KEY"));
    CHECK(!contains(&all, "AWS_SESSION_TOKEN") && contains(&all, "\nTMPDIR=/own\n"));
    buf_free(&all);
    arena_free(&arena);
    stage_close(&stage);
}

static void put_layers_environment(struct stage *stage, const struct sandbox_program *program,
                                   struct buf *all)
{
    struct arena arena = {0};
    struct instance_keys keys;
    struct function function = {.name = SLICE("f"),
                                .runtime = SLICE("python3.11"),
                                .folder = SLICE("/code"),
                                .layers = SLICE("/data/merged")};
    instance_keys_make(&keys);
    const char *const *environment = environment_make(stage->func, &function, 1, &keys, 5, program, &arena);
    for (all->len = 0; *environment; environment++) buf_printf(all, "\n%s\n", *environment);
    arena_free(&arena);
}

/* Where the process cannot see them at /opt, the variables name their real place. */
TEST(pool_names_the_folder_of_layers)
{
    struct stage stage;
    struct buf all = {0};
    stage_open(&stage, &plain);
    put_layers_environment(&stage, &(struct sandbox_program){.opt = "/data/merged"}, &all);
    CHECK(contains(&all, "\nQUIPU_LAYERS=/opt\n") && contains(&all, ":/opt/bin\n"));
    CHECK(contains(&all, "\nPYTHONPATH=/opt/python:/opt/python/lib/python3.11/site-packages\n"));
    CHECK(contains(&all, "\nLD_LIBRARY_PATH=/code:/code/lib:/opt/lib\n") && !contains(&all, "/data/merged"));
    put_layers_environment(&stage, &(struct sandbox_program){0}, &all);
    CHECK(contains(&all, "\nQUIPU_LAYERS=/data/merged\n") && contains(&all, ":/data/merged/bin\n"));
    CHECK(contains(&all, "\nLD_LIBRARY_PATH=/code:/code/lib:/data/merged/lib\n"));
    buf_free(&all);
    stage_close(&stage);
}

/* The server's own keys, and whatever else it was started with, stay with it. */
TEST(pool_hands_on_nothing_of_the_servers_environment)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",       "AWS_SECURITY_TOKEN",    "QUIPU_CREDENTIALS",
                                        "MY_SECRET"};
    struct stage stage;
    struct outcome outcome = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) setenv(names[i], "the-servers-own", 1);
    stage_open(&stage, &plain);
    stage_function(&stage, "env", "", "");
    outcome_call(&outcome, &stage, "env", "\"environment\"");
    CHECK(contains(&outcome.invocation.reply, "\nAWS_ACCESS_KEY_ID=QUIPU"));
    CHECK(!contains(&outcome.invocation.reply, "the-servers-own"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    outcome_free(&outcome);
    stage_close(&stage);
}

TEST(pool_hears_a_request_only_with_the_keys_of_its_process)
{
    struct stage stage;
    struct outcome outcome = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "echo", "", "");
    outcome_call(&outcome, &stage, "echo", "\"unsigned\"");
    CHECK(contains(&outcome.invocation.reply, "403 {"));
    CHECK(contains(&outcome.invocation.reply, "MissingAuthenticationTokenException"));
    CHECK(contains(&outcome.invocation.reply, "QUIPU_TOKEN"));
    CHECK_INT(stage.forwarded_path[0], 0);
    outcome_free(&outcome);
    outcome = (struct outcome){0};
    outcome_call(&outcome, &stage, "echo", "\"server\"");
    CHECK_INT(outcome.invocation.end, INVOCATION_ANSWERED);
    CHECK(strcmp(stage.forwarded_path, "/elsewhere") == 0);
    outcome_free(&outcome);
    stage_close(&stage);
}

TEST(pool_sends_the_headers_of_an_event)
{
    struct stage stage;
    struct outcome outcome = {.invocation = {.client_context = SLICE("{\"custom\":\r\n1}")}};
    long long deadline_ms;
    char arn[200], trace[200], context[100];
    stage_open(&stage, &plain);
    stage_function(&stage, "echo", "", "\"Timeout\":77");
    outcome_call(&outcome, &stage, "echo:$LATEST", "\"headers\"");
    buf_byte(&outcome.invocation.reply, 0);
    int64_t now_ms = clock_now_ms(&stage.clock);
    CHECK_INT(sscanf(outcome.invocation.reply.data, "%lld\n%199[^\n]\n%199[^\n]\n%99[^\n]\n", &deadline_ms,
                     arn, trace, context),
              4);
    CHECK(deadline_ms <= now_ms + 77000 && deadline_ms > now_ms - LIMIT_IDLE_WAIT_MS);
    CHECK_TEXT(slice_of(arn), "arn:aws:lambda:us-east-1:000000000000:function:echo:$LATEST");
    CHECK(strncmp(trace, "Root=1-", 7) == 0 && strstr(trace, ";Parent=") && strstr(trace, ";Sampled=0"));
    CHECK_TEXT(slice_of(context), "{\"custom\":  1}");
    outcome_free(&outcome);
    stage_close(&stage);
}

TEST(pool_tells_what_failed)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "\"error\"", INVOCATION_FAILED,
                 "{\"errorType\":\"Mine\",\"errorMessage\":\"said so\"}");
    stage_rest_process(&stage, "f");
    STAGE_EXPECT(&stage, "f", "\"error text\"", INVOCATION_FAILED,
                 "{\"errorType\":\"Function.Odd\",\"errorMessage\":\"plain\"}");
    stage_rest_process(&stage, "f");
    STAGE_EXPECT(&stage, "f", "\"broken stream\"", INVOCATION_FAILED, "{\"errorType\":\"Broken\"}");
    CHECK_INT(stage_processes(&stage, "f", NULL), 1); /* none of these ends it */
    stage_close(&stage);
}

/* Calls and compares the reply but for the request's id. */
static void expect_failure(struct stage *stage, const char *name, const char *payload, const char *type,
                           const char *message)
{
    struct outcome outcome = {0};
    outcome_call(&outcome, stage, name, payload);
    struct slice wanted = arena_printf(&outcome.arena,
                                       "{\"errorType\":\"%s\",\"errorMessage\":\"RequestId: %s Error: %s\"}",
                                       type, outcome.invocation.request_id, message);
    CHECK_INT(outcome.invocation.end, INVOCATION_FAILED);
    CHECK_TEXT(buf_view(&outcome.invocation.reply), wanted.data);
    CHECK(outcome.invocation.error_kind && strcmp(outcome.invocation.error_kind, "Unhandled") == 0);
    outcome_free(&outcome);
}

TEST(pool_tells_how_a_process_ended)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    stage_function(&stage, "slow", "", "\"Timeout\":1");
    expect_failure(&stage, "f", "\"exit 1\"", "Runtime.ExitError",
                   "Runtime exited with error: exit status 1");
    expect_failure(&stage, "f", "\"exit 0\"", "Runtime.ExitError",
                   "Runtime exited without providing a reason");
    expect_failure(&stage, "f", "\"abort\"", "Runtime.ExitError",
                   "Runtime exited with error: signal: killed");
    expect_failure(&stage, "slow", "\"hang\"", "Sandbox.Timedout", "Task timed out after 1.00 seconds");
    expect_failure(&stage, "f", "\"mode\"", "Runtime.InvalidResponseModeHeader",
                   "Invalid function response mode");
    STAGE_EXPECT(&stage, "f", "5", INVOCATION_ANSWERED, "5");
    stage_close(&stage);
}

TEST(pool_ends_what_eats_too_much)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":600"); /* on a busy machine it eats slowly */
    expect_failure(&stage, "f", "\"eat\"", "Runtime.OutOfMemory",
                   "Runtime exited with error: signal: killed");
    stage_close(&stage);
}

static bool is_gone(void *pid)
{
    return kill(*(pid_t *)pid, 0) != 0 && errno == ESRCH;
}

/* I4: when the caller hears of the time-out, nothing of the process is left. */
TEST(pool_answers_a_timeout_when_the_process_is_gone)
{
    struct stage stage;
    struct outcome outcome = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":3");
    outcome_call(&outcome, &stage, "f", "\"pid\"");
    buf_byte(&outcome.invocation.reply, 0);
    pid_t pid = (pid_t)atoi(outcome.invocation.reply.data);
    CHECK(pid > 0 && !is_gone(&pid));
    stage_rest_process(&stage, "f"); /* else the next call may start another one */
    expect_failure(&stage, "f", "\"hang\"", "Sandbox.Timedout", "Task timed out after 3.00 seconds");
    CHECK(is_gone(&pid));
    CHECK_INT(stage_processes(&stage, "f", NULL), 0);
    outcome_free(&outcome);
    stage_close(&stage);
}

TEST(pool_answers_what_fails_to_start)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "exits", "exit", "");
    stage_function(&stage, "quiet", "exit quietly", "");
    stage_function(&stage, "says", "say init error", "");
    stage_script(&stage, "plain", "no program", "");
    expect_failure(&stage, "exits", "1", "Runtime.ExitError", "Runtime exited with error: exit status 7");
    expect_failure(&stage, "quiet", "1", "Runtime.ExitError", "Runtime exited without providing a reason");
    STAGE_EXPECT(&stage, "says", "1", INVOCATION_FAILED,
                 "{\"errorType\":\"Init.Bad\",\"errorMessage\":\"no\"}");
    struct outcome outcome = {0};
    outcome_call(&outcome, &stage, "plain", "1");
    CHECK(outcome.invocation.end == INVOCATION_FAILED || outcome.invocation.end == INVOCATION_REFUSED);
    CHECK(contains(&outcome.invocation.reply, "\"errorMessage\":\"RequestId: "));
    outcome_free(&outcome);
    stage_close(&stage);
}

TEST(pool_ends_what_never_asks)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage.func->pool->init_ms = 100;
    stage_function(&stage, "f", "never ask", "\"Timeout\":1");
    expect_failure(&stage, "f", "1", "Sandbox.Timedout", "Task timed out after 1.00 seconds");
    CHECK_INT(stage_processes(&stage, "f", NULL), 0);
    struct outcome outcome = {.invocation = {.wants_log = true}};
    outcome_call(&outcome, &stage, "f", "1");
    CHECK(contains(&outcome.invocation.log, "\tStatus: timeout\t\n"));
    outcome_free(&outcome);
    stage_close(&stage);
}

/* One that dies at once is not started again and again: many calls, few starts. */
TEST(pool_does_not_spin_with_what_dies_at_once)
{
    enum { CALLS = 200 };
    struct stage stage;
    struct outcome outcomes[CALLS] = {0};
    struct buf metrics = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "exits", "exit", "");
    expect_failure(&stage, "exits", "1", "Runtime.ExitError", "Runtime exited with error: exit status 7");
    expect_failure(&stage, "exits", "1", "Runtime.ExitError", "Runtime exited with error: exit status 7");
    for (int i = 0; i < CALLS; i++) outcome_begin(&outcomes[i], &stage, "exits", "1");
    for (int i = 0; i < CALLS; i++) {
        outcome_wait(&outcomes[i]);
        CHECK_INT(outcomes[i].invocation.end, INVOCATION_FAILED);
        outcome_free(&outcomes[i]);
    }
    CHECK(stats_read(&stage.func->pool->stats.starts) < 10);
    func_put_metrics(stage.func, &metrics);
    CHECK(contains(&metrics, "quipu_function_invocations_total{end=\"failed\"} 202"));
    buf_free(&metrics);
    stage_close(&stage);
}

/* A pool that is nothing but its meters: no registry is asked, and no process runs. */
TEST(few_functions_have_numbers_of_their_own)
{
    struct func func = {0};
    struct pool pool = {.func = &func, .meters = meters_new()};
    struct function function = {0};
    struct run run = {.function = &function, .end = INVOCATION_FAILED};
    struct buf metrics = {0};
    char name[32];
    pthread_mutex_init(&pool.lock, NULL);
    ring_init(&pool.instances);
    for (unsigned i = 0; i < LIMIT_LABELLED_FUNCTIONS + 5; i++) {
        snprintf(name, sizeof name, "f\\%u\"\n", i);
        function.name = slice_of(name);
        meters_call(pool.meters, &run, 1500000);
        meters_log(pool.meters, function.name, 7);
    }
    pool_put_meters(&pool, &metrics);
    CHECK(contains(&metrics, "\nquipu_function_calls_total{function=\"f\\\\199\\\"\\n\",end=\"failed\"} 1\n"));
    CHECK(contains(&metrics, "\nquipu_function_calls_total{function=\"f\\\\0\\\"\\n\",end=\"answered\"} 0\n"));
    CHECK(!contains(&metrics, "f\\\\200"));
    CHECK(contains(&metrics, "\nquipu_function_calls_total{function=\"(others)\",end=\"failed\"} 5\n"));
    CHECK(contains(&metrics, "\nquipu_function_call_seconds_total{function=\"(others)\"} 7.500000\n"));
    CHECK(contains(&metrics, "\nquipu_function_log_bytes_total{function=\"(others)\"} 35\n"));
    meters_forget(pool.meters, SLICE("f\\0\"\n"));
    meters_log(pool.meters, SLICE("next"), 7);
    metrics.len = 0;
    pool_put_meters(&pool, &metrics);
    CHECK(!contains(&metrics, "f\\\\0\\") && contains(&metrics, "{function=\"next\"} 7\n"));
    buf_free(&metrics);
    meters_free(pool.meters);
    pthread_mutex_destroy(&pool.lock);
}

struct wanted_count {
    struct stage *stage;
    const char *name, *state;
    unsigned count;
};

static bool has_count(void *context)
{
    struct wanted_count *wanted = context;
    return stage_processes(wanted->stage, wanted->name, wanted->state) == wanted->count;
}

TEST(pool_starts_more_when_all_are_busy_and_no_more_than_allowed)
{
    enum { CALLS = 4 };
    struct stage stage;
    struct arena arena = {0};
    struct outcome outcomes[CALLS] = {0};
    stage_open(&stage, &(struct stage_options){.process_max = 3});
    stage.func->pool->wait_ms = INT32_MAX;
    stage_function(&stage, "f", "", "");
    stage_function(&stage, "g", "", "");
    for (int i = 0; i < CALLS; i++) outcome_begin(&outcomes[i], &stage, "f", stage_gated(&stage, &arena));
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", "Busy", 3}));
    stage_open_gate(&stage);
    for (int i = 0; i < CALLS; i++) {
        outcome_wait(&outcomes[i]); /* the fourth waits for a process of the other three */
        CHECK_INT(outcomes[i].invocation.end, INVOCATION_ANSWERED);
        outcome_free(&outcomes[i]);
    }
    CHECK_INT(stage_processes(&stage, "f", NULL), 3);
    CHECK(stage.func->pool->live_count <= 3);
    STAGE_EXPECT(&stage, "g", "1", INVOCATION_ANSWERED,
                 "1"); /* an idle one of the other function made room */
    CHECK_INT(stats_read(&stage.func->pool->stats.evictions), 1);
    CHECK_INT(stage_processes(&stage, "f", NULL), 2);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(pool_throttles_when_the_server_is_full_for_long)
{
    struct stage stage;
    struct arena arena = {0};
    struct outcome busy = {0};
    stage_open(&stage, &(struct stage_options){.process_max = 1});
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    outcome_begin(&busy, &stage, "f", stage_gated(&stage, &arena));
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", "Busy", 1}));
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_THROTTLED, "");
    stage_open_gate(&stage);
    outcome_wait(&busy);
    CHECK_INT(busy.invocation.end, INVOCATION_ANSWERED);
    outcome_free(&busy);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(pool_throttles_at_once_at_the_reserved_limit)
{
    struct stage stage;
    struct outcome busy = {0};
    struct arena arena = {0};
    struct slice reply;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    CHECK_INT(stage_rest(&stage, "PUT", "/2017-10-31/functions/f/concurrency",
                         "{\"ReservedConcurrentExecutions\":1}", &arena, &reply),
              200);
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    stage_rest_process(&stage, "f");
    outcome_begin(&busy, &stage, "f", stage_gated(&stage, &arena));
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_THROTTLED, "");
    stage_open_gate(&stage);
    outcome_wait(&busy);
    stage_rest_process(&stage, "f");
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    CHECK_INT(stage_rest(&stage, "PUT", "/2017-10-31/functions/f/concurrency",
                         "{\"ReservedConcurrentExecutions\":0}", &arena, &reply),
              200);
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_THROTTLED, "");
    outcome_free(&busy);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(pool_ends_what_is_idle_for_long)
{
    struct stage stage;
    stage_open(&stage, &(struct stage_options){.idle_ms = 50});
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", NULL, 0}));
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    stage_close(&stage);
}

TEST(pool_retires_old_revisions_when_they_are_idle)
{
    struct stage stage;
    struct outcome busy = {0}, environment = {0};
    struct arena arena = {0};
    struct slice reply;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    outcome_begin(&busy, &stage, "f", stage_gated(&stage, &arena));
    CHECK_INT(stage_rest(&stage, "PUT", "/2015-03-31/functions/f/configuration",
                         "{\"Environment\":{\"Variables\":{\"GUEST\":\"\",\"COLOUR\":\"blue\"}}}", &arena,
                         &reply),
              200);
    outcome_call(&environment, &stage, "f", "\"environment\"");
    CHECK(contains(&environment.invocation.reply, "\nCOLOUR=blue\n"));
    stage_open_gate(&stage);
    outcome_wait(&busy);
    CHECK_INT(busy.invocation.end, INVOCATION_ANSWERED); /* what ran was left alone */
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", NULL, 1}));
    CHECK_INT(stage_rest(&stage, "DELETE", "/2015-03-31/functions/f", "", &arena, &reply), 204);
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", NULL, 0}));
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_UNKNOWN, "");
    outcome_free(&busy);
    outcome_free(&environment);
    arena_free(&arena);
    stage_close(&stage);
}

/* ---- folders that are run in place ---- */

/* Of a number of changes that are made at the same time some may be seen later than the others. */
struct wanted_reload {
    struct stage *stage;
    uint64_t before;
};

static bool was_reloaded(void *context)
{
    const struct wanted_reload *wanted = context;
    return stats_read(&wanted->stage->func->pool->stats.reloads) > wanted->before;
}

TEST(pool_reloads_a_folder_that_changed)
{
    struct stage stage;
    struct outcome first = {0}, second = {0}, third = {0};
    char folder[128], path[400];
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    stage_folder(&stage, "f", folder, sizeof folder);
    outcome_call(&first, &stage, "f", "\"pid\"");
    snprintf(path, sizeof path, "mkdir -p %s/sub/deep %s/node_modules", folder, folder);
    CHECK_INT(system(path), 0);
    CHECK(stage_until(was_reloaded, &(struct wanted_reload){&stage, 0}));
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", NULL, 0}));
    outcome_call(&second, &stage, "f", "\"pid\"");
    CHECK(!slice_equal(buf_view(&first.invocation.reply), buf_view(&second.invocation.reply)));
    snprintf(path, sizeof path, "%s/node_modules/x", folder);
    stage_write_file(path, "passed over", 0644);
    uint64_t before = stats_read(&stage.func->pool->stats.reloads);
    snprintf(path, sizeof path, "%s/sub/deep/y", folder);
    stage_write_file(path, "seen", 0644);
    CHECK(stage_until(was_reloaded, &(struct wanted_reload){&stage, before}));
    CHECK(stage_until(has_count, &(struct wanted_count){&stage, "f", NULL, 0}));
    outcome_call(&third, &stage, "f", "\"pid\"");
    CHECK(!slice_equal(buf_view(&second.invocation.reply), buf_view(&third.invocation.reply)));
    outcome_free(&first);
    outcome_free(&second);
    outcome_free(&third);
    stage_close(&stage);
}

/* A function that writes into its own folder gets a new process each time, but it runs. */
TEST(pool_runs_what_changes_its_own_folder)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_script(&stage, "f",
                 "#!/bin/sh\ntouch \"$LAMBDA_TASK_ROOT/touched\"\nexec \"$LAMBDA_TASK_ROOT/guest\"\n", "");
    char folder[128], guest[160];
    stage_folder(&stage, "f", folder, sizeof folder);
    snprintf(guest, sizeof guest, "%s/guest", folder);
    stage_put_guest(guest);
    for (int i = 0; i < 3; i++) STAGE_EXPECT(&stage, "f", "7", INVOCATION_ANSWERED, "7");
    stage_close(&stage);
}
