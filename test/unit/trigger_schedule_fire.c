/* Each due time is fired once: across restarts, failures at any call, two servers, jumps of the clock and
 * days of 23 and 25 hours. */
#include "unit/trigger_schedule.h"

#include <unistd.h>

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

TEST(a_rate_is_fired_at_once_and_then_by_its_period)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "rate(5 minutes)", "");
    CHECK(!schedules_are_idle(schedules_of(&world, 0)));
    server_turn(&world, 0);
    CHECK(schedules_are_idle(schedules_of(&world, 0)));
    CHECK_INT(calls_count(&world), 1);
    CHECK(calls_have(&world, "2025-06-01T00:00:00Z"));
    server_run(&world, 0, world.now_ms + 4 * MINUTE + 59000, 1000);
    CHECK_INT(calls_count(&world), 1);
    server_run(&world, 0, world.now_ms + 1000, 1000);
    CHECK_INT(calls_count(&world), 2);
    CHECK(calls_have(&world, "2025-06-01T00:05:00Z"));
    server_run(&world, 0, world.now_ms + HOUR, 7000);
    CHECK_INT(calls_count(&world), 14);
    CHECK_INT(world.wakes, 14);
    world_close(&world);
}

TEST(nothing_is_fired_before_its_time_or_when_it_is_off)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "off", "rate(1 minute)", ",\"State\":\"DISABLED\"");
    schedule_make(&world, "later", "cron(0 12 * * ? *)", "");
    schedule_make(&world, "past", "at(2025-05-31T00:00:00)", "");
    server_run(&world, 0, world.now_ms + 12 * HOUR - MINUTE, MINUTE);
    CHECK_INT(calls_count(&world), 0);
    server_run(&world, 0, world.now_ms + 12 * HOUR, MINUTE);
    CHECK_INT(calls_count(&world), 1);
    CHECK(calls_have(&world, "2025-06-01T12:00:00Z"));
    world_close(&world);
}

TEST(a_single_time_and_what_comes_after)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "keep", "at(2025-06-01T02:00:00)", "");
    schedule_make(&world, "go", "at(2025-06-01T02:00:00)", ",\"ActionAfterCompletion\":\"DELETE\"");
    schedule_make(&world, "east", "at(2025-06-01T12:30:00)",
                  ",\"ScheduleExpressionTimezone\":\"Asia/Kolkata\"");
    server_run(&world, 0, world.now_ms + DAY, 10 * MINUTE);
    CHECK_INT(calls_count(&world), 3);
    CHECK(calls_have(&world, "2025-06-01T07:00:00Z"));
    expect(&world, "GET", "/schedules/keep", "", 200, "\"State\":\"ENABLED\"");
    expect(&world, "GET", "/schedules/go", "", 404, "Schedule go does not exist.");
    CHECK_INT(schedules_of(&world, 0)->count, 0);
    world_close(&world);
}

TEST(start_and_end)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    /* From 01:00:30 to 02:00:00, both in seconds since 1970. */
    schedule_make(&world, "rate", "rate(30 minutes)", ",\"StartDate\":1748739630,\"EndDate\":1748743200");
    schedule_make(&world, "cron", "cron(0/15 * * * ? *)",
                  ",\"StartDate\":1748739630.5,\"EndDate\":1748743200,\"ActionAfterCompletion\":\"DELETE\"");
    server_run(&world, 0, world.now_ms + DAY, MINUTE);
    CHECK_INT(calls_count(&world), 2 + 4);
    CHECK(calls_have(&world, "01:00:30Z") && calls_have(&world, "01:30:30Z"));
    CHECK(calls_have(&world, "01:15:00Z") && calls_have(&world, "02:00:00Z"));
    expect(&world, "GET", "/schedules/rate", "", 200, NULL);
    expect(&world, "GET", "/schedules/cron", "", 404, NULL);
    world_close(&world);
}

/* ---- missed runs ---- */

static size_t calls_after_a_gap(const char *more, int64_t gap_ms)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0 * * * ? *)", more);
    server_close(&world, 0);
    world.now_ms += gap_ms;
    server_open(&world, 0);
    server_turn(&world, 0);
    size_t count = calls_count(&world);
    world.now_ms += HOUR - world.now_ms % HOUR;
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), count + 1); /* it goes on as if nothing had been */
    world_close(&world);
    return count;
}

TEST(missed_runs_by_choice)
{
    CHECK_INT(calls_after_a_gap("", 5 * HOUR + 30000), 1);
    CHECK_INT(calls_after_a_gap(",\"MissedRuns\":\"LATEST\"", 5 * HOUR + 30 * MINUTE), 1);
    CHECK_INT(calls_after_a_gap(",\"MissedRuns\":\"ALL\"", 5 * HOUR + 30 * MINUTE), 6);
    CHECK_INT(calls_after_a_gap(",\"MissedRuns\":\"SKIP\"", 5 * HOUR + 30 * MINUTE), 0);
    CHECK_INT(calls_after_a_gap(",\"MissedRuns\":\"SKIP\"", 5 * HOUR + 30000), 1); /* within the minute */
}

TEST(the_latest_of_the_missed_runs_is_told)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0 * * * ? *)", "");
    world.now_ms += 40 * DAY + HOUR / 2;
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    CHECK(calls_have(&world, "2025-07-11T00:00:00Z"));
    world_close(&world);
}

TEST(a_single_time_that_was_missed)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "late", "at(2025-06-01T02:00:00)", ",\"ActionAfterCompletion\":\"DELETE\"");
    schedule_make(&world, "never", "at(2025-06-01T02:00:00)",
                  ",\"ActionAfterCompletion\":\"DELETE\",\"MissedRuns\":\"SKIP\"");
    world.now_ms += DAY;
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    expect(&world, "GET", "/schedules/late", "", 404, NULL);
    expect(&world, "GET", "/schedules/never", "", 404, NULL);
    world_close(&world);
}

static unsigned writes_before;

static void writes_count(struct world *world)
{
    if (++writes_before == 3) CHECK(calls_have(world, "2025-06-01T23:00:00Z"));
    world->before_write = writes_count;
}

/* Catching up with all of them keeps nobody else waiting. */
TEST(who_catches_up_does_not_block_others)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "busy", "cron(* * * * ? *)", ",\"MissedRuns\":\"ALL\"");
    schedule_make(&world, "other", "at(2025-06-01T23:00:00)", "");
    world.now_ms += DAY;
    writes_before = 0;
    world.before_write = writes_count;
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 24 * 60 + 2);
    CHECK_INT(writes_before, 24 * 60 + 2);
    world_close(&world);
}

TEST(a_clock_that_is_set_back)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0 * * * ? *)", "");
    server_turn(&world, 0);
    server_run(&world, 0, world.now_ms + 10 * HOUR, HOUR);
    CHECK_INT(calls_count(&world), 11);
    world.now_ms -= 5 * HOUR;
    server_run(&world, 0, world.now_ms + 5 * HOUR, HOUR);
    CHECK_INT(calls_count(&world), 11);
    server_run(&world, 0, world.now_ms + 2 * HOUR, HOUR);
    CHECK_INT(calls_count(&world), 13);
    world_close(&world);
}

/* ---- daylight saving ---- */

static size_t calls_of_a_day(const char *expression, const char *from)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    world.now_ms = moment(from);
    schedule_make(&world, "s", expression, ",\"ScheduleExpressionTimezone\":\"Europe/Berlin\"");
    server_run(&world, 0, world.now_ms + DAY, MINUTE);
    size_t count = calls_count(&world);
    world_close(&world);
    return count;
}

TEST(days_of_23_and_25_hours)
{
    CHECK_INT(calls_of_a_day("cron(30 2 * * ? *)", "2025-03-29T12:00:00Z"), 0);
    CHECK_INT(calls_of_a_day("30 2 * * *", "2025-03-29T12:00:00Z"), 1);
    CHECK_INT(calls_of_a_day("cron(30 2 * * ? *)", "2025-10-25T12:00:00Z"), 1);
    CHECK_INT(calls_of_a_day("cron(0 * * * ? *)", "2025-10-25T12:00:30Z"), 23);
    CHECK_INT(calls_of_a_day("cron(0 * * * ? *)", "2025-03-29T12:00:30Z"), 24);
    CHECK_INT(calls_of_a_day("rate(1 hour)", "2025-03-29T12:00:30Z"), 25);
}

/* ---- flexible windows ---- */

TEST(a_flexible_window)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"cron(0 * * * ? *)\",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\","
           "\"MaximumWindowInMinutes\":30},\"Target\":{\"Arn\":\"f\"}}",
           200, NULL);
    int64_t first = moment("2025-06-01T00:00:00Z"), at = 0;
    bool differs = false;
    for (int hour = 0; hour < 24; hour++) {
        while (calls_count(&world) <= (size_t)hour) server_run(&world, 0, world.now_ms + MINUTE, MINUTE);
        int64_t after = world.now_ms - first - (int64_t)hour * HOUR;
        CHECK(after >= 0 && after <= 30 * MINUTE);
        differs |= hour && after / MINUTE != at / MINUTE;
        at = after;
        if (hour % 5 == 0) {
            server_close(&world, 0);
            server_open(&world, 0);
        }
    }
    CHECK(differs);
    world_close(&world);
}

TEST(a_window_that_is_longer_than_the_period)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"rate(1 minute)\",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\","
           "\"MaximumWindowInMinutes\":1440},\"Target\":{\"Arn\":\"f\"},\"MissedRuns\":\"ALL\"}",
           200, NULL);
    server_run(&world, 0, world.now_ms + HOUR, 1000);
    size_t count = calls_count(&world);
    CHECK(count == 60 || count == 61);
    world_close(&world);
}

/* ---- restarts and failures ---- */

/* Three hours of a schedule with runs every ten minutes and one single time; the nth call of the door fails,
 * and the server is started again right after. False when there was no nth call. */
static bool run_with_failure(enum failing failing, unsigned nth, const char *missed)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0/10 * * * ? *)", missed);
    schedule_make(&world, "once", "at(2025-06-01T01:05:00)", ",\"ActionAfterCompletion\":\"DELETE\"");
    world.failing = failing;
    world.fail_at = nth;
    int64_t until = world.now_ms + 3 * HOUR;
    while (world.now_ms < until) {
        bool had = world.calls >= nth;
        server_run(&world, 0, world.now_ms + 5 * MINUTE, 5 * MINUTE);
        if (!had && world.calls >= nth) {
            server_close(&world, 0);
            server_open(&world, 0);
        }
    }
    server_run(&world, 0, world.now_ms + 2 * MINUTE, MINUTE);
    bool failed = world.calls >= nth;
    world.failing = FAIL_NOT;
    CHECK_INT(calls_count(&world), 18 + 1 + 1);
    CHECK_INT(letters_count(&world), 0);
    expect(&world, "GET", "/schedules/once", "", 404, NULL);
    world_close(&world);
    return failed;
}

TEST(a_restart_after_any_failed_call)
{
    unsigned nth = 1;
    while (run_with_failure(FAIL_BEFORE, nth, ",\"MissedRuns\":\"ALL\"")) nth++;
    CHECK(nth > 40);
    for (nth = 1; run_with_failure(FAIL_AFTER, nth, ",\"MissedRuns\":\"ALL\"");) nth++;
    CHECK(nth > 40);
}

/* Without a restart the pause after a failure passes, and everything is made up for. */
TEST(a_failed_call_is_tried_again)
{
    for (unsigned nth = 1; nth < 6; nth++) {
        struct world world;
        world_open(&world);
        server_open(&world, 0);
        schedule_make(&world, "s", "at(2025-06-01T00:01:00)", "");
        world.failing = nth % 2 ? FAIL_BEFORE : FAIL_AFTER;
        world.fail_at = nth;
        server_run(&world, 0, world.now_ms + 5 * MINUTE, 1000);
        CHECK_INT(calls_count(&world), 1);
        world_close(&world);
    }
}

/* Whoever writes into the table by hand may write anything. */
TEST(items_that_are_no_good_schedules_harm_nobody)
{
    static const char *const items[] = {
        ",\"window\":{\"N\":\"0\"},\"revision\":{\"N\":\"1\"}",
        ",\"window\":{\"N\":\"-5\"},\"revision\":{\"N\":\"1\"}",
        ",\"window\":{\"N\":\"9000000000000000000\"},\"revision\":{\"N\":\"1\"}",
        "",
        ",\"revision\":{\"S\":\"x\"}",
    };
    struct world world;
    struct buf request = {0}, reply = {0};
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "good", "at(2025-06-01T00:01:00)", "");
    for (unsigned i = 0; i < sizeof items / sizeof *items; i++) {
        request.len = reply.len = 0;
        buf_printf(
            &request,
            "{\"TableName\":\"quipu-schedules\",\"Item\":{\"group\":{\"S\":\"default\"},"
            "\"name\":{\"S\":\"bad%u\"},\"expression\":{\"S\":\"rate(1 hour)\"},\"zone\":{\"S\":\"UTC\"},"
            "\"target\":{\"S\":\"f\"},\"retries\":{\"N\":\"2\"},\"next\":{\"N\":\"%lld\"}%s}}",
            i, (long long)world.now_ms, items[i]);
        CHECK_INT(dynamo_call(world.dynamo, SLICE("PutItem"), buf_view(&request), &reply), 200);
    }
    server_close(&world, 0);
    server_open(&world, 0);
    unsigned before = world.calls;
    server_run(&world, 0, world.now_ms + 2 * MINUTE, 1000);
    CHECK_INT(calls_count(&world), 4); /* the good one, and those without a window */
    CHECK(world.calls - before < 100);
    buf_free(&request);
    buf_free(&reply);
    world_close(&world);
}

TEST(calls_whose_table_was_deleted_are_put_into_another)
{
    for (int has_transactions = 0; has_transactions < 2; has_transactions++) {
        struct world world;
        struct buf reply = {0};
        world_open(&world);
        world.has_transactions = has_transactions;
        server_open(&world, 0);
        schedule_make(&world, "s", "at(2025-06-01T00:01:00)", "");
        CHECK_INT(dynamo_call(world.dynamo, SLICE("DeleteTable"), SLICE("{\"TableName\":\"calls\"}"), &reply),
                  200);
        server_run(&world, 0, world.now_ms + 2 * MINUTE, 1000);
        CHECK_INT(calls_count(&world), 1);
        buf_free(&reply);
        world_close(&world);
    }
}

static void all_fail(struct world *world)
{
    world->failing = FAIL_BEFORE;
    world->fail_at = world->calls + 1; /* the transaction itself */
    world->before_write = all_fail;
}

/* Attempts are bounded: then it is a dead letter. */
TEST(retries_end_in_the_dead_letters)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"at(2025-06-01T00:01:00)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
           "\"Target\":{\"Arn\":\"f\",\"RetryPolicy\":{\"MaximumRetryAttempts\":2},"
           "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:000000000000:dead\"}}}",
           200, NULL);
    world.before_write = all_fail;
    server_run(&world, 0, world.now_ms + 61000, 1000);
    CHECK_INT(calls_count(&world) + letters_count(&world), 0);
    server_run(&world, 0, world.now_ms + MINUTE, 1000);
    world.before_write = NULL;
    world.failing = FAIL_NOT;
    server_run(&world, 0, world.now_ms + 5 * MINUTE, 1000);
    CHECK_INT(calls_count(&world), 0);
    CHECK_INT(letters_count(&world), 1);
    world_close(&world);
}

static bool anchor_fails(struct world *world, struct dynamo_call *call)
{
    bool is_anchor = slice_equal(call->name, SLICE("UpdateItem")) &&
                     slice_contains(call->request, SLICE("quipu-schedules"));
    world->failing = is_anchor ? FAIL_BEFORE : FAIL_NOT;
    world->fail_at = world->calls + 1;
    return false;
}

/* Without transactions the call comes first: what was put is delivered, however long the schedule itself cannot be
 * moved on. */
TEST(what_was_put_is_no_dead_letter)
{
    struct world world;
    world_open(&world);
    world.has_transactions = false;
    server_open(&world, 0);
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"at(2025-06-01T00:01:00)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
           "\"Target\":{\"Arn\":\"f\",\"RetryPolicy\":{\"MaximumRetryAttempts\":2},"
           "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:000000000000:dead\"}}}",
           200, NULL);
    world.hold = anchor_fails;
    server_run(&world, 0, world.now_ms + 3 * MINUTE, 1000);
    CHECK_INT(calls_count(&world), 1);
    world.hold = NULL;
    world.failing = FAIL_NOT;
    server_run(&world, 0, world.now_ms + 5 * MINUTE, 1000);
    CHECK_INT(calls_count(&world), 1);
    CHECK_INT(letters_count(&world), 0);
    expect(&world, "GET", "/schedules/s", "", 200, NULL);
    CHECK_INT(schedules_of(&world, 0)->count, 0);
    world_close(&world);
}

/* One that is made again under its name is another one, also where it has the same due times. */
TEST(made_again_it_is_another_one)
{
    for (int has_transactions = 0; has_transactions < 2; has_transactions++) {
        struct world world;
        world_open(&world);
        world.has_transactions = has_transactions;
        server_open(&world, 0);
        schedule_make(&world, "s", "at(2025-06-01T00:01:00)", "");
        world.now_ms += MINUTE;
        server_turn(&world, 0);
        expect(&world, "DELETE", "/schedules/s", "", 200, NULL);
        world.now_ms -= MINUTE / 2; /* a clock that is set back */
        schedule_make(&world, "s", "at(2025-06-01T00:01:00)", "");
        world.now_ms += MINUTE;
        server_turn(&world, 0);
        CHECK_INT(calls_count(&world), 2);
        world_close(&world);
    }
}

static struct dynamo_call *kept_call;

static bool keep_firing(struct world *world, struct dynamo_call *call)
{
    if (!slice_equal(call->name, SLICE("TransactWriteItems"))) return false;
    world->hold = NULL;
    kept_call = call;
    return true;
}

/* The firing is through, and its reply on the way, while somebody gives the schedule an earlier time than the one it
 * has now. */
TEST(a_change_while_it_is_in_hand)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0 * * * ? *)", "");
    schedules_begin(schedules_of(&world, 0));
    world.hold = keep_firing;
    kept_call = NULL;
    while (!kept_call) task_host_step(world.servers[0].host);
    world_answer(&world, kept_call);
    CHECK_INT(calls_count(&world), 1);
    expect(&world, "PUT", "/schedules/s",
           "{\"ScheduleExpression\":\"cron(30 * * * ? *)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
           "\"Target\":{\"Arn\":\"f\"}}",
           200, NULL);
    kept_call->done(kept_call);
    while (!schedules_are_idle(schedules_of(&world, 0))) task_host_step(world.servers[0].host);
    world.now_ms += HOUR / 2;
    while (!schedules_are_idle(schedules_of(&world, 0))) task_host_step(world.servers[0].host);
    CHECK_INT(calls_count(&world), 2);
    world_close(&world);
}

TEST(a_function_that_is_not_there)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "s", "cron(0 * * * ? *)", "");
    world.has_function = false;
    server_run(&world, 0, world.now_ms + 3 * HOUR, 30 * MINUTE);
    CHECK_INT(calls_count(&world), 0);
    CHECK_INT(letters_count(&world), 4);
    world.has_function = true;
    server_run(&world, 0, world.now_ms + HOUR, 30 * MINUTE);
    CHECK_INT(calls_count(&world), 1);
    world_close(&world);
}

/* Another server may have made it a moment ago: it is waited for. */
TEST(a_function_that_is_not_there_yet)
{
    for (int comes = 0; comes < 2; comes++) {
        struct world world;
        world_open(&world);
        world.servers[0].trigger.options.shared = true;
        server_open(&world, 0);
        schedule_make(&world, "s", "cron(0 * * * ? *)", "");
        world.has_function = false;
        server_run(&world, 0, world.now_ms + 5000, 1000);
        CHECK_INT(calls_count(&world) + letters_count(&world), 0);
        world.has_function = comes;
        server_run(&world, 0, world.now_ms + 2 * MINUTE, 1000);
        CHECK_INT(calls_count(&world), comes ? 1 : 0);
        CHECK_INT(letters_count(&world), comes ? 0 : 1);
        world_close(&world);
    }
}

/* ---- two servers ---- */

TEST(two_servers_share_the_work)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "a", "cron(* * * * ? *)", ",\"MissedRuns\":\"ALL\"");
    server_open(&world, 1);
    for (int i = 0; i < 120; i++) {
        world.now_ms += MINUTE / 2;
        server_turn(&world, (unsigned)i % 2);
        if (i % 7 == 0) server_turn(&world, ((unsigned)i + 1) % 2);
    }
    CHECK_INT(calls_count(&world), 61);
    world_close(&world);
}

static void other_is_faster(struct world *world)
{
    server_turn(world, 1);
}

/* Both have read the schedule; the second is done before the first writes. */
TEST(two_servers_at_the_same_moment)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    schedule_make(&world, "a", "cron(0 * * * ? *)", "");
    schedule_make(&world, "b", "at(2025-06-01T03:00:00)", ",\"ActionAfterCompletion\":\"DELETE\"");
    server_open(&world, 1);
    for (int i = 0; i < 10; i++) {
        world.before_write = other_is_faster;
        server_run(&world, 0, world.now_ms + HOUR, HOUR);
    }
    CHECK_INT(calls_count(&world), 11);
    world_close(&world);
}

/* What one server makes, changes and deletes, the other learns by reading the table again. */
TEST(another_servers_changes)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    server_open(&world, 1);
    schedule_make(&world, "a", "cron(0 * * * ? *)", "");
    schedule_make(&world, "b", "cron(0 * * * ? *)", "");
    world.now_ms += HOUR;
    server_turn(&world, 1);
    CHECK_INT(calls_count(&world), 0);
    CHECK(server_read(&world, 1));
    server_turn(&world, 1);
    CHECK_INT(calls_count(&world), 2);
    expect(&world, "DELETE", "/schedules/a", "", 200, NULL);
    CHECK(server_read(&world, 1));
    CHECK_INT(schedules_of(&world, 1)->count, 1);
    world.now_ms += HOUR;
    server_turn(&world, 1);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 3);
    world_close(&world);
}

/* The real threads, on the real table. */
TEST(threads_of_two_servers)
{
    struct world world;
    world_open(&world);
    server_open(&world, 0);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        schedule_make(&world, name, "cron(* * * * ? *)", ",\"MissedRuns\":\"ALL\"");
    }
    server_open(&world, 1);
    schedules_start(schedules_of(&world, 0));
    schedules_start(schedules_of(&world, 1));
    world.now_ms += 5 * MINUTE;
    while (calls_count(&world) < 20 * 6) usleep(1000);
    while (!schedules_are_idle(schedules_of(&world, 0)) || !schedules_are_idle(schedules_of(&world, 1)))
        usleep(1000);
    CHECK_INT(calls_count(&world), 20 * 6);
    world_close(&world);
}
