/* Jobs whose tasks a server calls: settings and their drive, what is to be called next, items. */
#include "unit/pattern_fixture.h"

#define OPENED "\"opened\":\"2054-11-15T04:13:25.340Z\""
#define EACH   "\"each\":\"f\",\"concurrency\":10,\"attempts\":3,\"backoff\":\"1s\",\"paused\":false"

/* The version of the only drive; it begins with the time and chance. */
static long long drive_version(struct patterns *patterns)
{
    static const struct slice name = SLICE("\"version\":");
    struct slice drives = asks(patterns, "GET /v1/drives", NULL);
    const char *at = memmem(drives.data, drives.len, name.data, name.len);
    CHECK(at);
    return at ? strtoll(at + name.len, NULL, 10) : 0;
}

static void remove_drive(struct patterns *patterns, long long version, const char *answer)
{
    char request[80];
    snprintf(request, sizeof request, "DELETE /v1/drives/job:a?version=%lld", version);
    CHECK_ASKS(patterns, request, NULL, 200, answer);
}

TEST(job_each_has_settings_and_a_drive)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"each\":\"f\"}", 201,
               "{\"id\":\"a\",\"state\":\"OPEN\",\"total\":3,\"failed\":0,\"layout\":\"tree\"," EACH
               "," OPENED "}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/drives", NULL),
                         SLICE("{\"drives\":[{\"id\":\"job:a\",\"kind\":\"job\",\"name\":\"a\"," EACH
                               ",\"version\":")));
    long long version = drive_version(&patterns);
    CHECK_INT((asks(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"each\":\"f\",\"concurrency\":10}"),
               patterns.call.status),
              200);
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"each\":\"g\"}", 409, "other-settings");
    CHECK(slice_contains(
        asks(&patterns, "PATCH /v1/jobs/a", "{\"concurrency\":2,\"paused\":true,\"timeout\":\"5m\"}"),
        SLICE("\"concurrency\":2,\"attempts\":3,\"backoff\":\"1s\",\"timeout\":\"5m\",\"paused\":true")));
    CHECK(slice_contains(asks(&patterns, "GET /v1/drives", NULL), SLICE("\"paused\":true,\"version\":")));
    CHECK_INT(drive_version(&patterns), version + 1);
    remove_drive(&patterns, version, "{\"deleted\":false}");
    remove_drive(&patterns, version + 1, "{\"deleted\":true}");
    asks(&patterns, "POST /v1/jobs/a/redrive",
         "{}"); /* whoever opens or changes a job makes good that its drive is gone */
    CHECK(slice_contains(asks(&patterns, "GET /v1/drives", NULL), SLICE("\"id\":\"job:a\"")));
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"total\":3,\"concurrency\":3}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"total\":3,\"each\":[\"f\",\"g\"]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"total\":3,\"each\":\"f\",\"layout\":\"set\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"total\":3,\"each\":\"f\",\"attempts\":0}", 400,
                  "bad-request");
    patterns_close(&patterns);
}

TEST(job_tells_what_is_to_be_done_next)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":515,\"first\":1}");
    struct buf body = {0};
    for (int i = 1; i <= 515; i++)
        if (i != 3 && i != 257 && i != 514) buf_printf(&body, "%s%d", body.len ? "," : "{\"tasks\":[", i);
    buf_put(&body, "]}", 3);
    asks(&patterns, "POST /v1/jobs/a/done", body.data);
    asks(&patterns, "POST /v1/jobs/a/failed", "{\"task\":514}");
    buf_free(&body);
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks", NULL, 200,
               "{\"state\":\"FAILED\"," OPENED ",\"tasks\":[],\"next\":0}");
    asks(&patterns, "POST /v1/jobs/a/redrive", "{}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED ",\"tasks\":[{\"task\":3}],\"next\":256}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks?from=3", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED ",\"tasks\":[{\"task\":257}],\"next\":512}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks?from=512", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED ",\"tasks\":[{\"task\":514}],\"next\":768,\"end\":true}");
    asks(&patterns, "PUT /v1/jobs/n", "{\"tasks\":[\"x\"]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/n/tasks", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED ",\"tasks\":[{\"task\":\"x\"}],\"next\":256,\"end\":true}");
    patterns_close(&patterns);
}

TEST(job_with_items)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK(slice_contains(asks(&patterns, "PUT /v1/jobs/a", "{\"items\":[{\"n\":1},\"two\",null]}"),
                         SLICE("\"state\":\"OPEN\",\"total\":3,")));
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED
               ",\"tasks\":[{\"task\":0,\"item\":{\"n\":1}},{\"task\":1,\"item\":\"two\"},"
               "{\"task\":2,\"item\":null}],\"next\":256,\"end\":true}");
    CHECK_INT(
        (asks(&patterns, "PUT /v1/jobs/a", "{\"items\":[{\"n\":1},\"two\",null]}"), patterns.call.status),
        200);
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"items\":[{\"n\":1},\"two\",3]}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"total\":4}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"total\":1,\"items\":[1]}", 400, "bad-request");
    CHECK(slice_contains(asks(&patterns, "PUT /v1/jobs/none", "{\"items\":[]}"),
                         SLICE("\"state\":\"COMPLETE\"")));
    asks(&patterns, "DELETE /v1/jobs/a", NULL);
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a/tasks", NULL, 404, "no-such-job");
    patterns_close(&patterns);
}

TEST(job_with_items_in_lines)
{
    struct patterns patterns;
    struct buf lines = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{}");
    for (int i = 0; i < 300; i++) buf_printf(&lines, "{\"n\":%d}\n", i);
    buf_byte(&lines, 0);
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/items", lines.data, 200, "{\"stored\":300,\"state\":\"OPEN\"}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/items?from=299", "\n\"again\"\n301\r\n", 200,
               "{\"stored\":301,\"state\":\"OPEN\"}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/items?from=302", "1", 409, "items-missing");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/items?from=301", "1\n{", 400, "bad-request");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks?from=298", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED
               ",\"tasks\":[{\"task\":298,\"item\":{\"n\":298}},{\"task\":299,\"item\":"
               "{\"n\":299}},{\"task\":300,\"item\":301}],\"next\":301,\"end\":true}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks?from=301", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED ",\"tasks\":[],\"next\":301,\"end\":true}");
    asks(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[{\"task\":0,\"result\":1},1]}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/items?from=301&end=true", "", 200,
               "{\"stored\":301,\"state\":\"OPEN\"}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/items?from=301&end=true", "", 200,
               "{\"stored\":301,\"state\":\"OPEN\"}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/items?from=301", "1", 409, "items-ended");
    CHECK(slice_contains(asks(&patterns, "GET /v1/jobs/a", NULL), SLICE("\"total\":301,\"done\":2")));
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/tasks?from=300", NULL, 200,
               "{\"state\":\"OPEN\"," OPENED
               ",\"tasks\":[{\"task\":300,\"item\":301}],\"next\":512,\"end\":true}");
    asks(&patterns, "PUT /v1/jobs/t", "{\"total\":3}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/t/items", "1", 409, "other-tasks");
    buf_free(&lines);
    patterns_close(&patterns);
}

/* What a table has, page by page, whoever reads it. */
TEST(job_with_items_of_a_table)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/documents/shelf/x", "{\"n\":0}"); /* any table will do */
    for (int i = 0; i < 20; i++) {
        char path[60], body[200];
        snprintf(path, sizeof path, "PUT /v1/documents/shelf/d%02d", i);
        snprintf(body, sizeof body, "{\"n\":%d}", i);
        asks(&patterns, path, body);
    }
    char put[400];
    snprintf(put, sizeof put,
             "{\"each\":\"f\",\"paused\":true,\"from\":{\"table\":\"%sdocuments\",\"scan\":{}}}",
             patterns.prefix);
    CHECK_INT((asks(&patterns, "PUT /v1/jobs/a", put), patterns.call.status), 201);
    CHECK(slice_contains(asks(&patterns, "PUT /v1/jobs/a", put), SLICE("\"from\":{\"table\":")));
    struct slice reply = asks(&patterns, "POST /v1/jobs/a/read", "");
    CHECK_TEXT(reply, "{\"stored\":21,\"ended\":true,\"state\":\"OPEN\"}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/jobs/a", NULL), SLICE("\"total\":21")));
    reply = asks(&patterns, "GET /v1/jobs/a/tasks", NULL);
    CHECK(slice_contains(reply, SLICE("{\"task\":20,\"item\":{")));
    CHECK_TEXT(asks(&patterns, "POST /v1/jobs/a/read", ""),
               "{\"stored\":21,\"ended\":true,\"state\":\"OPEN\"}");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b", "{\"each\":\"f\",\"from\":{\"table\":\"x\"}}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/b",
                  "{\"each\":\"f\",\"from\":{\"table\":\"x\",\"scan\":{\"Limit\":1}}}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/none/read", "", 404, "no-such-job");
    patterns_close(&patterns);
}

TEST(job_that_is_a_task_of_another)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(
        &patterns, "PUT /v1/jobs/in",
        "{\"total\":1,\"then\":\"f\",\"parent\":{\"job\":\"outer\",\"task\":3}}", 201,
        "{\"id\":\"in\",\"state\":\"OPEN\",\"total\":1,\"failed\":0,\"layout\":\"tree\",\"then\":\"f\","
        "\"parent\":{\"job\":\"outer\",\"task\":3}," OPENED "}");
    CHECK_INT(
        (asks(&patterns, "PUT /v1/jobs/in", "{\"parent\":{\"task\":3,\"job\":\"outer\"},\"then\":\"f\"}"),
         patterns.call.status),
        200);
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/in", "{\"parent\":{\"job\":\"outer\",\"task\":4}}", 409,
                  "other-settings");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/x", "{\"parent\":{\"job\":\"outer\"}}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/x", "{\"parent\":{\"job\":\"outer\",\"task\":\"{a}\"}}", 400,
                  "bad-request");
    patterns_close(&patterns);
}
