/* EventBridge Scheduler's API: what is made, shown, changed, listed and deleted, and what is refused how. */
#include "unit/trigger_schedule.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define TARGET      "\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},\"Target\":{\"Arn\":\"f\"}"

static struct world world;

static void begin(void)
{
    world_open(&world);
    server_open(&world, 0);
}

TEST(a_schedule_is_shown_as_it_was_made)
{
    begin();
    expect(&world, "POST", "/schedules/nightly",
           "{\"ScheduleExpression\":\"cron(0 3 * * ? *)\",\"ScheduleExpressionTimezone\":\"Europe/Berlin\","
           "\"Description\":\"caf\\u00e9\",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\","
           "\"MaximumWindowInMinutes\":15},\"StartDate\":1748800000,\"EndDate\":1780000000.5,"
           "\"KmsKeyArn\":\"arn:aws:kms:us-east-1:123456789012:key/abc\",\"State\":\"ENABLED\","
           "\"ActionAfterCompletion\":\"DELETE\",\"MissedRuns\":\"ALL\",\"ClientToken\":\"t-1\","
           "\"Target\":{\"Arn\":\"arn:aws:lambda:us-east-1:000000000000:function:f:live\","
           "\"RoleArn\":\"arn:aws:iam::123456789012:role/service-role/x\",\"Input\":\"{\\\"a\\\":1}\","
           "\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":60,\"MaximumRetryAttempts\":0},"
           "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:123456789012:dead\"}}}",
           200, "{\"ScheduleArn\":\"arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly\"}");
    expect(&world, "GET", "/schedules/nightly", "", 200,
           "{\"Arn\":\"arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly\","
           "\"GroupName\":\"default\",\"Name\":\"nightly\",\"State\":\"ENABLED\","
           "\"ScheduleExpression\":\"cron(0 3 * * ? *)\",\"ScheduleExpressionTimezone\":\"Europe/Berlin\","
           "\"CreationDate\":1748736000.000,\"LastModificationDate\":1748736000.000,"
           "\"NextDueTime\":1748826000.000,\"Description\":\"caf\xc3\xa9\","
           "\"ActionAfterCompletion\":\"DELETE\",\"MissedRuns\":\"ALL\","
           "\"KmsKeyArn\":\"arn:aws:kms:us-east-1:123456789012:key/abc\",\"StartDate\":1748800000.000,"
           "\"EndDate\":1780000000.500,\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\","
           "\"MaximumWindowInMinutes\":15},\"Target\":{"
           "\"Arn\":\"arn:aws:lambda:us-east-1:000000000000:function:f:live\","
           "\"RoleArn\":\"arn:aws:iam::123456789012:role/service-role/x\",\"Input\":\"{\\\"a\\\":1}\","
           "\"DeadLetterConfig\":{\"Arn\":\"arn:aws:sqs:us-east-1:123456789012:dead\"},"
           "\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":60,\"MaximumRetryAttempts\":0}}}");
    world_close(&world);
}

TEST(defaults)
{
    begin();
    expect(&world, "POST", "/schedules/s", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}", 200, NULL);
    expect(&world, "GET", "/schedules/s?groupName=default", "", 200,
           "\"ActionAfterCompletion\":\"NONE\",\"MissedRuns\":\"LATEST\","
           "\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
           "\"Target\":{\"Arn\":\"arn:aws:lambda:us-east-1:000000000000:function:f\","
           "\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":86400,\"MaximumRetryAttempts\":185}}}");
    expect(&world, "GET", "/schedules/s", "", 200, "\"ScheduleExpressionTimezone\":\"UTC\"");
    world_close(&world);
}

/* ---- what is refused ---- */

static void refused(const char *body, const char *message)
{
    struct asked asked;
    ask(&world, 0, "POST", "/schedules/s", body, &asked);
    CHECK_INT(asked.status, 400);
    struct buf expected = {0};
    buf_text(&expected, "{\"Message\":");
    json_put_string(&expected, slice_of(message));
    buf_text(&expected, "}");
    if (!slice_equal(buf_view(&asked.reply), buf_view(&expected)))
        test_failed(__FILE__, __LINE__, "%s\n  got:      %.*s\n  expected: %.*s", body,
                    SLICE_ARG(buf_view(&asked.reply)), SLICE_ARG(buf_view(&expected)));
    CHECK(slice_contains(asked.headers, SLICE("x-amzn-ErrorType: ")));
    buf_free(&expected);
    buf_free(&asked.reply);
    arena_free(&asked.arena);
}

#define VALUE(value, member, rule)                                                                           \
    "1 validation error detected: Value " value " at '" member                                               \
    "' failed to satisfy constraint: Member must " rule

#define NULLS                                                                                                \
    "Value null at 'flexibleTimeWindow' failed to satisfy constraint: Member must not be null; "             \
    "Value null at 'scheduleExpression' failed to satisfy constraint: Member must not be null; "             \
    "Value null at 'target' failed to satisfy constraint: Member must not be null"

// clang-format off
static const char *const bad_bodies[][2] = {
    {"", "3 validation errors detected: " NULLS},
    {"[]", "START_ARRAY can not be converted to an Object"},
    {"{\"ScheduleExpression\":\"rate(1 day)\"," TARGET,
     "Could not parse request body into json: unexpected end at byte 92"},
    {"{\"ScheduleExpression\":5," TARGET "}", "NUMBER_VALUE can not be converted to a String"},
    {"{\"Target\":\"f\"}", "STRING_VALUE can not be converted to an Object"},
    {"{\"StartDate\":true}", "TRUE_VALUE can not be converted to a Timestamp"},
    {"{\"StartDate\":-5}", "NUMBER_VALUE can not be converted to a Timestamp"},
    {"{\"StartDate\":1e300}", "NUMBER_VALUE can not be converted to a Timestamp"},
    {"{\"StartDate\":\"soon\"}", "STRING_VALUE can not be converted to a Timestamp"},
    {"{}", "3 validation errors detected: " NULLS},
    {"{" TARGET "}", VALUE("null", "scheduleExpression", "not be null")},
    {"{\"ScheduleExpression\":\"x\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"}}",
     VALUE("null", "target", "not be null")},
    {"{\"ScheduleExpression\":\"x\",\"FlexibleTimeWindow\":{},\"Target\":{\"Arn\":\"f\"}}",
     VALUE("null", "flexibleTimeWindow.mode", "not be null")},
    {"{\"ScheduleExpression\":\"x\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},\"Target\":{}}",
     VALUE("null", "target.arn", "not be null")},
    {"{\"ScheduleExpression\":\"\"," TARGET "}",
     VALUE("''", "scheduleExpression", "have length greater than or equal to 1")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"State\":\"on\"," TARGET "}",
     VALUE("'on'", "state", "satisfy enum value set: [ENABLED, DISABLED]")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"MissedRuns\":\"some\"," TARGET "}",
     VALUE("'some'", "missedRuns", "satisfy enum value set: [ALL, LATEST, SKIP]")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"ActionAfterCompletion\":\"\"," TARGET "}",
     VALUE("''", "actionAfterCompletion", "satisfy enum value set: [NONE, DELETE]")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"a b\"," TARGET "}",
     VALUE("'a b'", "groupName", "satisfy regular expression pattern: ^[0-9a-zA-Z-_.]+$")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"ClientToken\":\"a b\"," TARGET "}",
     VALUE("'a b'", "clientToken", "satisfy regular expression pattern: ^[a-zA-Z0-9-_]+$")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\"},"
     "\"Target\":{\"Arn\":\"f\"}}", "MaximumWindowInMinutes must be given for a flexible time window."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\","
     "\"MaximumWindowInMinutes\":1441},\"Target\":{\"Arn\":\"f\"}}",
     VALUE("'1441'", "flexibleTimeWindow.maximumWindowInMinutes", "have value less than or equal to 1440")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"RetryPolicy\":{\"MaximumRetryAttempts\":-1}}}",
     VALUE("'-1'", "target.retryPolicy.maximumRetryAttempts", "have value greater than or equal to 0")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":59}}}",
     VALUE("'59'", "target.retryPolicy.maximumEventAgeInSeconds", "have value greater than or equal to 60")},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":60.5}}}",
     "NUMBER_VALUE can not be converted to an Integer"},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"arn:aws:sqs:us-east-1:123456789012:queue\"}}",
     "Provided Arn is not in correct format. 'arn:aws:sqs:us-east-1:123456789012:queue' is no function: "
     "schedules of this server invoke functions."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"SqsParameters\":{\"MessageGroupId\":\"x\"}}}",
     "SqsParameters does not fit a target that is a function."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"Input\":\"{broken\"}}",
     "Invalid RequestJson provided. The Input of a function must be well-formed JSON."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
     "\"Target\":{\"Arn\":\"f\",\"RoleArn\":\"me\"}}",
     VALUE("'me'", "target.roleArn",
           "satisfy regular expression pattern: ^arn:aws(-[a-z]+)?:iam::\\d{12}:role\\/[\\w+=,.@\\/-]+$")},
    {"{\"ScheduleExpression\":\"cron(0 1 * * * *)\"," TARGET "}",
     "Invalid Schedule Expression cron(0 1 * * * *). Exactly one of the day of the month and the day of the "
     "week should be ?."},
    {"{\"ScheduleExpression\":\"rate(10 years)\"," TARGET "}",
     "Invalid Schedule Expression rate(10 years). A rate's unit should be minute, minutes, hour, hours, day or "
     "days."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"ScheduleExpressionTimezone\":\"Mars/Base\"," TARGET "}",
     "Invalid Schedule Expression Timezone Mars/Base. 'Mars/Base' is no time zone: /usr/share/zoneinfo has no "
     "such file."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"StartDate\":1700000000," TARGET "}",
     "The StartDate you specify cannot be earlier than 5 minutes ago."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"EndDate\":1700000000," TARGET "}",
     "The EndDate you specify cannot be in the past."},
    {"{\"ScheduleExpression\":\"rate(1 day)\",\"StartDate\":1800000000,\"EndDate\":1800000000," TARGET "}",
     "The EndDate must be later than the StartDate."},
};
// clang-format on

TEST(bodies_that_are_refused)
{
    begin();
    for (size_t i = 0; i < COUNT(bad_bodies); i++) refused(bad_bodies[i][0], bad_bodies[i][1]);
    expect(&world, "GET", "/schedules", "", 200, "{\"Schedules\":[]}");
    world_close(&world);
}

TEST(names_that_are_refused)
{
    begin();
    expect(&world, "POST", "/schedules/a%20b", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}", 400,
           VALUE("'a b'", "name", "satisfy regular expression pattern: ^[0-9a-zA-Z-_.]+$"));
    expect(&world, "GET", "/schedules/a%20b", "", 400, "at 'name'");
    expect(&world, "GET", "/schedules/s?groupName=a%20b", "", 400, "at 'groupName'");
    expect(&world, "GET", "/schedule-groups/a%20b", "", 400, "at 'name'");
    expect(&world, "GET", "/schedules/absent", "", 404, "{\"Message\":\"Schedule absent does not exist.\"}");
    expect(&world, "DELETE", "/schedules/absent", "", 404, "Schedule absent does not exist.");
    expect(&world, "PUT", "/schedules/absent", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}", 404,
           "Schedule absent does not exist.");
    expect(&world, "GET", "/schedule-groups/absent", "", 404, "Schedule group absent does not exist.");
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"absent\"," TARGET "}", 404,
           "Schedule group absent does not exist.");
    world_close(&world);
}

/* ---- tokens ---- */

TEST(the_same_request_twice)
{
    static const char *const body = "{\"ScheduleExpression\":\"rate(1 day)\",\"ClientToken\":\"one\"," TARGET
                                    "}";
    static const char *const other =
        "{\"ScheduleExpression\":\"rate(2 days)\",\"ClientToken\":\"one\"," TARGET "}";
    begin();
    expect(&world, "POST", "/schedules/s", body, 200, NULL);
    expect(&world, "POST", "/schedules/s", body, 200, "schedule/default/s");
    expect(&world, "POST", "/schedules/s", other, 409, "{\"Message\":\"Schedule s already exists.\"}");
    expect(&world, "POST", "/schedules/s", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}", 409, NULL);
    expect(&world, "DELETE", "/schedules/s?clientToken=gone", "", 200, "{}");
    expect(&world, "DELETE", "/schedules/s?clientToken=gone", "", 200, "{}");
    expect(&world, "DELETE", "/schedules/s?clientToken=other", "", 404, NULL);
    expect(&world, "POST", "/schedule-groups/g", "{\"ClientToken\":\"a\"}", 200, "schedule-group/g");
    expect(&world, "POST", "/schedule-groups/g", "{\"ClientToken\":\"a\"}", 200, "schedule-group/g");
    expect(&world, "POST", "/schedule-groups/g", "{\"ClientToken\":\"b\"}", 409,
           "Schedule group g already exists.");
    world_close(&world);
}

/* A write that was made, but whose reply was lost, is repeated by the door: its own deed is no conflict. */
TEST(a_door_that_repeats_itself)
{
    begin();
    world.repeats = true;
    expect(&world, "POST", "/schedule-groups/work", "{}", 200, NULL);
    expect(&world, "POST", "/schedules/s", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}", 200, NULL);
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"work\"," TARGET "}", 200, NULL);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 2);
    world.now_ms++;
    expect(&world, "PUT", "/schedules/s", "{\"ScheduleExpression\":\"rate(2 days)\"," TARGET "}", 200, NULL);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 3);
    expect(&world, "DELETE", "/schedules/s", "", 200, "{}");
    expect(&world, "DELETE", "/schedules/s", "", 404, NULL);
    expect(&world, "DELETE", "/schedule-groups/work", "", 200, "{}");
    expect(&world, "DELETE", "/schedule-groups/work", "", 404, NULL);
    world_close(&world);
}

/* ---- updates ---- */

TEST(an_update_replaces_everything)
{
    begin();
    schedule_make(&world, "s", "cron(0 3 * * ? *)", ",\"Description\":\"old\",\"MissedRuns\":\"ALL\"");
    world.now_ms += 60000;
    expect(&world, "PUT", "/schedules/s", "{\"ScheduleExpression\":\"cron(0 4 * * ? *)\"," TARGET "}", 200,
           NULL);
    expect(&world, "GET", "/schedules/s", "", 200,
           "\"CreationDate\":1748736000.000,\"LastModificationDate\":1748736060.000,"
           "\"NextDueTime\":1748750400.000,\"ActionAfterCompletion\":\"NONE\",\"MissedRuns\":\"LATEST\"");
    world_close(&world);
}

/* The next of them, in the zone, up to the end. */
TEST(due_times_to_come)
{
    begin();
    schedule_make(&world, "s", "cron(0 3 * * ? *)", "");
    expect(&world, "GET", "/schedules/s?next=3", "", 200,
           "\"NextDueTimes\":[1748746800.000,1748833200.000,1748919600.000]}");
    schedule_make(&world, "r", "rate(1 hour)", ",\"EndDate\":1748744000");
    expect(&world, "GET", "/schedules/r?next=100", "", 200,
           "\"NextDueTimes\":[1748736000.000,1748739600.000,1748743200.000]}");
    schedule_make(&world, "once", "at(2025-07-01T00:00:00)", "");
    expect(&world, "GET", "/schedules/once?next=10", "", 200, "\"NextDueTimes\":[1751328000.000]}");
    schedule_make(&world, "off", "rate(1 hour)", ",\"State\":\"DISABLED\"");
    expect(&world, "GET", "/schedules/off?next=10", "", 200, "\"NextDueTimes\":[]}");
    expect(&world, "GET", "/schedules/s?next=0", "", 400, "at 'next'");
    expect(&world, "GET", "/schedules/s?next=101", "", 400, "at 'next'");
    expect(&world, "GET", "/schedules/s?next=x", "", 400, NULL);
    world_close(&world);
}

/* What does not touch the timing leaves the due time that is to come; a rate does not begin anew. */
TEST(an_update_keeps_the_next_due_time)
{
    begin();
    schedule_make(&world, "s", "rate(1 hour)", "");
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    world.now_ms += 10 * 60000;
    expect(&world, "PUT", "/schedules/s", "{\"ScheduleExpression\":\"rate(1 hour)\"," TARGET "}", 200, NULL);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    expect(&world, "GET", "/schedules/s", "", 200, "\"NextDueTime\":1748739600.000");
    expect(&world, "PUT", "/schedules/s", "{\"ScheduleExpression\":\"rate(2 hours)\"," TARGET "}", 200, NULL);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 2);
    world_close(&world);
}

/* What passes while it is off is not missed. */
TEST(off_and_on_again)
{
    static const char *const off =
        "{\"ScheduleExpression\":\"rate(1 hour)\",\"State\":\"DISABLED\",\"MissedRuns\":\"ALL\"," TARGET "}";
    static const char *const on = "{\"ScheduleExpression\":\"rate(1 hour)\",\"MissedRuns\":\"ALL\"," TARGET
                                  "}";
    begin();
    schedule_make(&world, "s", "rate(1 hour)", ",\"MissedRuns\":\"ALL\"");
    server_turn(&world, 0);
    expect(&world, "PUT", "/schedules/s", off, 200, NULL);
    CHECK_INT(schedules_of(&world, 0)->count, 0);
    world.now_ms += INT64_C(5) * 3600000 + 1;
    server_turn(&world, 0);
    expect(&world, "PUT", "/schedules/s", on, 200, NULL);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    expect(&world, "GET", "/schedules/s", "", 200, "\"NextDueTime\":1748757600.000");
    world.now_ms += INT64_C(3600000);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 2);
    world_close(&world);
}

static void fires_meanwhile(struct world *in)
{
    server_turn(in, 1);
}

/* An update that read the schedule before a firing and writes after it must not bring the due time back. */
TEST(an_update_beside_a_firing)
{
    begin();
    schedule_make(&world, "s", "cron(0 * * * ? *)", "");
    server_open(&world, 1);
    world.before_write = fires_meanwhile;
    expect(&world, "PUT", "/schedules/s", "{\"ScheduleExpression\":\"cron(0 * * * ? *)\"," TARGET "}", 200,
           NULL);
    CHECK_INT(calls_count(&world), 1);
    server_turn(&world, 0);
    CHECK_INT(calls_count(&world), 1);
    world_close(&world);
}

/* ---- lists ---- */

static void make_in(const char *group, const char *name, const char *state)
{
    char path[64], body[256];
    snprintf(path, sizeof path, "/schedules/%s", name);
    snprintf(body, sizeof body,
             "{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"%s\",\"State\":\"%s\"," TARGET "}",
             group, state);
    expect(&world, "POST", path, body, 200, NULL);
}

/* Follows the pages; answers how many members there were. */
static size_t list_all(const char *query, size_t max, const char *member)
{
    char path[512];
    size_t count = 0;
    struct slice token = SLICE_NONE;
    struct arena kept = {0};
    do {
        struct asked asked;
        struct slice name;
        struct buf encoded = {0};
        rest_encode(&encoded, token);
        snprintf(path, sizeof path, "%s&MaxResults=%zu%s%.*s", query, max, token.data ? "&NextToken=" : "",
                 SLICE_ARG(buf_view(&encoded)));
        ask(&world, 0, "GET", path, "", &asked);
        CHECK_INT(asked.status, 200);
        struct json_reader reader;
        json_begin(&reader, buf_view(&asked.reply), &asked.arena);
        token = SLICE_NONE;
        size_t on_page = 0;
        for (json_enter(&reader); json_member(&reader, &name);) {
            if (slice_equal(name, slice_of(member))) {
                for (json_enter(&reader); json_element(&reader); json_skip(&reader)) on_page++;
            } else {
                json_string(&reader, &token);
                token = arena_copy(&kept, token);
            }
        }
        CHECK(!json_failed(&reader) && on_page <= max && (on_page == max || !token.data));
        count += on_page;
        buf_free(&encoded);
        buf_free(&asked.reply);
        arena_free(&asked.arena);
    } while (token.data);
    arena_free(&kept);
    return count;
}

TEST(lists)
{
    begin();
    expect(&world, "GET", "/schedules", "", 200, "{\"Schedules\":[]}");
    expect(&world, "GET", "/schedule-groups", "", 200, "\"Name\":\"default\",\"State\":\"ACTIVE\"");
    expect(&world, "POST", "/schedule-groups/work", "{}", 200, NULL);
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", i % 3 ? "job" : "task", i);
        make_in(i % 2 ? "work" : "default", name, i % 4 ? "ENABLED" : "DISABLED");
    }
    for (size_t max = 1; max < 14; max++) {
        CHECK_INT(list_all("/schedules?a=b", max, "Schedules"), 12);
        CHECK_INT(list_all("/schedules?ScheduleGroup=work", max, "Schedules"), 6);
        CHECK_INT(list_all("/schedules?NamePrefix=task", max, "Schedules"), 4);
        CHECK_INT(list_all("/schedules?State=DISABLED", max, "Schedules"), 3);
        CHECK_INT(list_all("/schedules?State=ENABLED&NamePrefix=job&ScheduleGroup=work", max, "Schedules"),
                  4);
        CHECK_INT(list_all("/schedule-groups?a=b", max, "ScheduleGroups"), 2);
        CHECK_INT(list_all("/schedule-groups?NamePrefix=wo", max, "ScheduleGroups"), 1);
    }
    expect(&world, "GET", "/schedules?ScheduleGroup=absent", "", 404,
           "Schedule group absent does not exist.");
    expect(&world, "GET", "/schedules?MaxResults=0", "", 400, "at 'maxResults'");
    expect(&world, "GET", "/schedules?MaxResults=101", "", 400, "at 'maxResults'");
    expect(&world, "GET", "/schedules?NextToken=%21", "", 400, "Invalid NextToken.");
    expect(&world, "GET", "/schedules?State=on", "", 400, "at 'state'");
    world_close(&world);
}

/* ---- groups and tags ---- */

TEST(a_group_goes_with_its_schedules)
{
    begin();
    expect(&world, "POST", "/schedule-groups/work", "{}", 200,
           "{\"ScheduleGroupArn\":\"arn:aws:scheduler:us-east-1:000000000000:schedule-group/work\"}");
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        make_in("work", name, "ENABLED");
    }
    make_in("default", "s0", "ENABLED");
    CHECK_INT(schedules_of(&world, 0)->count, 6);
    expect(&world, "DELETE", "/schedule-groups/work", "", 200, "{}");
    CHECK_INT(schedules_of(&world, 0)->count, 1);
    expect(&world, "GET", "/schedule-groups/work", "", 404, NULL);
    expect(&world, "DELETE", "/schedule-groups/work", "", 404, NULL);
    expect(&world, "GET", "/schedules/s0?groupName=work", "", 404, NULL);
    expect(&world, "GET", "/schedules/s0", "", 200, NULL);
    expect(&world, "DELETE", "/schedule-groups/default", "", 400, "cannot be deleted");
    world_close(&world);
}

static unsigned writes_left;

/* Another server deletes the group to its end, and it is made again, with a schedule of the same name. */
static void deleted_and_made_again(struct world *in)
{
    struct asked asked;
    static const char *const rows[][3] = {
        {"DELETE", "/schedule-groups/work", ""},
        {"POST", "/schedule-groups/work", "{}"},
        {"POST", "/schedules/s",
         "{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"work\"," TARGET "}"}};
    if (--writes_left) {
        in->before_write = deleted_and_made_again;
        return;
    }
    in->now_ms++;
    for (size_t i = 0; i < COUNT(rows); i++) {
        ask(in, 1, rows[i][0], rows[i][1], rows[i][2], &asked);
        CHECK_INT(asked.status, 200);
        buf_free(&asked.reply);
        arena_free(&asked.arena);
    }
}

/* Who deletes a group and is slow leaves the next one of that name alone, wherever it stood. */
TEST(a_group_that_is_made_again_while_somebody_still_deletes_it)
{
    for (unsigned nth = 2;; nth++) {
        begin();
        server_open(&world, 1);
        expect(&world, "POST", "/schedule-groups/work", "{}", 200, NULL);
        make_in("work", "s", "ENABLED");
        writes_left = nth;
        world.before_write = deleted_and_made_again;
        expect(&world, "DELETE", "/schedule-groups/work", "", 200, "{}");
        world.before_write = NULL;
        if (!writes_left) {
            expect(&world, "GET", "/schedule-groups/work", "", 200, "ACTIVE");
            expect(&world, "GET", "/schedules/s?groupName=work", "", 200, NULL);
        }
        bool is_over = writes_left > 0;
        world_close(&world);
        if (!is_over) continue;
        CHECK_INT(nth, 5); /* a mark, a look at it, the schedule, the group */
        break;
    }
}

/* One that was never finished is not there for anybody, and in nobody's way. */
TEST(a_schedule_that_was_never_finished)
{
    begin();
    expect(&world, "POST", "/schedule-groups/work", "{}", 200, NULL);
    for (unsigned nth = 2; nth <= 3; nth++) {
        world.failing = FAIL_BEFORE;
        world.fail_at = world.calls + nth;
        expect(&world, "POST", "/schedules/s",
               "{\"ScheduleExpression\":\"rate(1 day)\",\"GroupName\":\"work\"," TARGET "}", 500, NULL);
        world.failing = FAIL_NOT;
        expect(&world, "GET", "/schedules/s?groupName=work", "", 404, "Schedule s does not exist.");
        expect(&world, "DELETE", "/schedules/s?groupName=work", "", 404, NULL);
        expect(&world, "GET", "/schedules?ScheduleGroup=work", "", 200, "{\"Schedules\":[]}");
        CHECK(server_read(&world, 0));
        server_turn(&world, 0);
        CHECK_INT(calls_count(&world), 0);
    }
    make_in("work", "s", "ENABLED");
    expect(&world, "GET", "/schedules/s?groupName=work", "", 200, NULL);
    expect(&world, "DELETE", "/schedule-groups/work", "", 200, "{}");
    world_close(&world);
}

/* The same request again changes nothing: not the tags, and not that the group is being deleted. */
TEST(a_group_is_made_twice)
{
    begin();
    expect(&world, "POST", "/schedule-groups/work", "{\"ClientToken\":\"t\",\"Tags\":[]}", 200, NULL);
    expect(&world, "POST", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group%2Fwork",
           "{\"Tags\":[{\"Key\":\"a\",\"Value\":\"1\"}]}", 200, NULL);
    expect(&world, "POST", "/schedule-groups/work", "{\"ClientToken\":\"t\",\"Tags\":[]}", 200, NULL);
    expect(&world, "GET", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group%2Fwork", "", 200,
           "{\"Key\":\"a\",\"Value\":\"1\"}");
    world_close(&world);
}

TEST(tags_of_groups)
{
    static const char *const arn = "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group%2Fwork";
    char path[200];
    begin();
    expect(&world, "POST", "/schedule-groups/work", "{\"Tags\":[{\"Key\":\"a\",\"Value\":\"1\"}]}", 200,
           NULL);
    expect(&world, "GET", arn, "", 200, "{\"Tags\":[{\"Key\":\"a\",\"Value\":\"1\"}]}");
    expect(&world, "POST", arn,
           "{\"Tags\":[{\"Key\":\"b c\",\"Value\":\"2\"},{\"Key\":\"a\",\"Value\":\"3\"}]}", 200, "{}");
    expect(&world, "GET", arn, "", 200, "{\"Key\":\"a\",\"Value\":\"3\"}");
    expect(&world, "GET", arn, "", 200, "{\"Key\":\"b c\",\"Value\":\"2\"}");
    snprintf(path, sizeof path, "%s?TagKeys=a&TagKeys=absent", arn);
    expect(&world, "DELETE", path, "", 200, "{}");
    expect(&world, "GET", arn, "", 200, "{\"Tags\":[{\"Key\":\"b c\",\"Value\":\"2\"}]}");
    expect(&world, "DELETE", arn, "", 400, "at 'tagKeys'");
    expect(&world, "POST", arn, "{}", 400, "at 'tags'");
    expect(&world, "POST", arn, "{\"Tags\":[{\"Key\":\"a\"}]}", 400, "at 'tags.1.member.value'");
    expect(&world, "GET", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group/work", "", 200,
           "b c");
    expect(&world, "GET", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule/work/s", "", 400,
           "at 'resourceArn'");
    expect(&world, "GET", "/tags/arn:aws:scheduler:us-east-1:000000000000:schedule-group/absent", "", 404,
           NULL);
    world_close(&world);
}

/* ---- the event ---- */

TEST(context_attributes)
{
    begin();
    expect(&world, "POST", "/schedules/s",
           "{\"ScheduleExpression\":\"at(2025-06-01T00:00:00)\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
           "\"Target\":{\"Arn\":\"f\",\"Input\":\"{\\\"t\\\":\\\"<aws.scheduler.scheduled-time>\\\","
           "\\\"a\\\":\\\"<aws.scheduler.schedule-arn>\\\",\\\"n\\\":<aws.scheduler.attempt-number>,"
           "\\\"x\\\":\\\"<b>\\\"}\"}}",
           200, NULL);
    server_turn(&world, 0);
    CHECK(calls_have(&world, "{\\\"t\\\":\\\"2025-06-01T00:00:00Z\\\","
                             "\\\"a\\\":\\\"arn:aws:scheduler:us-east-1:000000000000:schedule/default/s\\\","
                             "\\\"n\\\":1,\\\"x\\\":\\\"<b>\\\"}"));
    world_close(&world);
}

TEST(the_default_event)
{
    begin();
    expect(&world, "POST", "/schedules/s", "{\"ScheduleExpression\":\"at(2025-06-01T00:00:00)\"," TARGET "}",
           200, NULL);
    server_turn(&world, 0);
    CHECK(calls_have(&world,
                     "\\\"detail-type\\\":\\\"Scheduled Event\\\",\\\"source\\\":\\\"aws.scheduler\\\""));
    CHECK(calls_have(&world, "\\\"time\\\":\\\"2025-06-01T00:00:00Z\\\",\\\"region\\\":\\\"us-east-1\\\""));
    world_close(&world);
}

/* Somebody deletes the table below the server: it is made again when it is needed. */
TEST(a_table_that_is_deleted)
{
    static const char *const requests[][2] = {
        {"/schedules/s", "{\"ScheduleExpression\":\"rate(1 day)\"," TARGET "}"},
        {"/schedule-groups/work", "{}"}};
    begin();
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct buf reply = {0};
        schedule_make(&world, "before", "rate(1 day)", "");
        CHECK_INT(dynamo_call(world.dynamo, SLICE("DeleteTable"),
                              SLICE("{\"TableName\":\"quipu-schedules\"}"), &reply),
                  200);
        buf_free(&reply);
        expect(&world, "POST", requests[i][0], requests[i][1], 200, NULL);
        expect(&world, "GET", "/schedules/before", "", 404, NULL);
    }
    world_close(&world);
}

/* A door that fails answers 500 and changes nothing that was not asked for. */
TEST(a_door_that_fails)
{
    begin();
    schedule_make(&world, "s", "rate(1 day)", "");
    world.failing = FAIL_BEFORE;
    static const char *const requests[][2] = {{"GET", "/schedules/s"},
                                              {"GET", "/schedules"},
                                              {"DELETE", "/schedules/s"},
                                              {"GET", "/schedule-groups"},
                                              {"GET", "/schedule-groups/default"}};
    for (size_t i = 0; i < COUNT(requests); i++) {
        world.fail_at = world.calls + 1;
        expect(&world, requests[i][0], requests[i][1], "", 500, "cannot be reached");
    }
    world.failing = FAIL_NOT;
    expect(&world, "GET", "/schedules/s", "", 200, NULL);
    world_close(&world);
}
