/* Jobs by their answers: counted once, one is last, failures, deadlines, growth, lists. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

static struct slice member(struct patterns *patterns, struct slice reply, const char *name)
{
    return raw_member(&patterns->arena, reply, name);
}

static void check_member(struct patterns *patterns, const char *request, const char *body, const char *name,
                         const char *expected)
{
    struct slice reply = asks(patterns, request, body), value = member(patterns, reply, name);
    if (patterns->call.status >= 300 || !slice_equal(value, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s %s: %s is not %s: %d %.*s", request, body ? body : "", name,
                    expected, patterns->call.status, SLICE_ARG(reply));
}

static struct slice does(struct patterns *patterns, const char *job, int64_t task)
{
    char request[80], body[80];
    snprintf(request, sizeof request, "POST /v1/jobs/%s/done", job);
    snprintf(body, sizeof body, "{\"task\":%lld}", (long long)task);
    return asks(patterns, request, body);
}

TEST(job_of_a_few_tasks)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/jobs/a", "{\"total\":3}", 201,
               "{\"id\":\"a\",\"state\":\"OPEN\",\"total\":3,\"failed\":0,\"layout\":\"tree\","
               "\"opened\":\"2054-11-15T04:13:25.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", 200,
               "{\"counted\":1,\"complete\":false,\"last\":false,\"done\":1}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", 200,
               "{\"counted\":0,\"complete\":false,\"last\":false,\"done\":1}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[1,2]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a", NULL, 200,
               "{\"id\":\"a\",\"state\":\"OPEN\",\"total\":3,\"done\":1,\"missing\":2,\"failed\":0,"
               "\"layout\":\"tree\",\"opened\":\"2054-11-15T04:13:25.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[2,1,1,2]}", 200,
               "{\"counted\":2,\"complete\":true,\"last\":true,\"done\":3}");
    for (int64_t task = 0; task < 3; task++)
        CHECK_TEXT(does(&patterns, "a", task), "{\"counted\":0,\"complete\":true,\"last\":false,\"done\":3}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a", NULL, 200,
               "{\"id\":\"a\",\"state\":\"COMPLETE\",\"total\":3,\"done\":3,\"missing\":0,\"failed\":0,"
               "\"layout\":\"tree\",\"opened\":\"2054-11-15T04:13:25.340Z\","
               "\"closed\":\"2054-11-15T04:13:25.340Z\"}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[]}");
    patterns_close(&patterns);
}

TEST(job_refuses_what_is_not_its)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", 404, "no-such-job");
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a", NULL, 404, "no-such-job");
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a/missing", NULL, 404, "no-such-job");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/failed", "{\"task\":0}", 404, "no-such-job");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/redrive", NULL, 404, "no-such-job");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"total\":7}", 404, "no-such-job");
    CHECK_REFUSES(&patterns, "DELETE /v1/jobs/a", NULL, 404, "no-such-job");
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a/events", NULL, 404, "no-such-job");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":-1}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":2.5}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"tasks\":[\"x\"]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\",\"x\"]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\",7]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":100001,\"layout\":\"set\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"layout\":\"heap\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"tolerate\":\"101%\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"tolerate\":-1}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"deadline\":\"soon\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a", NULL, 404, "no-such-job"); /* nothing came of all that */
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"first\":1}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":4}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"x\"}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[1,2,4]}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/failed", "{\"task\":4}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":1.5}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":1,\"tasks\":[2]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[1],\"result\":2}", 400, "bad-request");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[1,2,3]}");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":2}", 409, "wrong-total");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"layout\":\"set\"}", 409, "other-layout");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\"]}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":3,\"first\":0}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"x\"]}", 409, "other-tasks");
    patterns_close(&patterns);
}

TEST(job_of_many_leaves)
{
    enum { TASKS = 600 };
    struct patterns patterns;
    unsigned last = 0;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":600}");
    for (int64_t i = 0; i < TASKS; i++) {
        struct slice reply = does(&patterns, "a", i * 7 % TASKS);
        CHECK_TEXT(member(&patterns, reply, "counted"), "1");
        CHECK_TEXT(member(&patterns, reply, "complete"), i + 1 < TASKS ? "false" : "true");
        last += slice_equal(member(&patterns, reply, "last"), SLICE("true"));
        if (i == 300) {
            check_member(&patterns, "GET /v1/jobs/a", NULL, "done", "301");
            check_member(&patterns, "POST /v1/jobs/a/done?progress=1", "{\"task\":0}", "done", "301");
        }
    }
    CHECK_INT(last, 1);
    check_member(&patterns, "GET /v1/jobs/a", NULL, "state", "\"COMPLETE\"");
    patterns_close(&patterns);
}

TEST(job_with_named_tasks)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"red\",\"green\",\"#1 blue\"]}", 201,
               "{\"id\":\"a\",\"state\":\"OPEN\",\"total\":3,\"failed\":0,\"layout\":\"tree\","
               "\"opened\":\"2054-11-15T04:13:25.340Z\"}");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"green\",\"red\",\"#1 blue\"]}", "total", "3");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"red\"]}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"black\"}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":1}", 400, "task-outside");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/failed", "{\"task\":\"black\"}", 400, "task-outside");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[\"red\",\"black\",\"red\"]}", 200,
               "{\"counted\":1,\"complete\":false,\"last\":false,\"done\":1,\"unknown\":[\"black\"]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[\"#1 blue\",\"green\"]}");
    check_member(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"red\",\"black\"]}", "total", "4");
    check_member(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"red\",\"black\"]}", "total", "4");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[\"#1 blue\",\"green\",\"red\"]}", "complete",
                 "false");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"black\"}", "last", "true");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"white\"]}", 409, "job-closed");
    buf_text(&body, "{\"tasks\":[");
    for (int i = 0; i < 2000; i++) buf_printf(&body, "%s\"task number %d\"", i ? "," : "", i);
    buf_put(&body, "]}", 3);
    check_member(&patterns, "PUT /v1/jobs/b", body.data, "total", "2000");
    for (int i = 0; i < 2000; i += 500) {
        body.len = 0;
        buf_text(&body, "{\"tasks\":[");
        for (int j = 0; j < 500; j++) buf_printf(&body, "%s\"task number %d\"", j ? "," : "", i + j);
        buf_put(&body, "]}", 3);
        check_member(&patterns, "POST /v1/jobs/b/done", body.data, "last", i == 1500 ? "true" : "false");
    }
    buf_free(&body);
    patterns_close(&patterns);
}

TEST(job_that_grows)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":2}");
    does(&patterns, "a", 0);
    check_member(&patterns, "PUT /v1/jobs/a", "{\"total\":4}", "total", "4");
    does(&patterns, "a", 1);
    CHECK_TEXT(does(&patterns, "a", 2), "{\"counted\":1,\"complete\":false,\"last\":false,\"done\":3}");
    check_member(&patterns, "PATCH /v1/jobs/a", "{\"total\":600}", "total", "600");
    for (int64_t i = 3; i < 599; i++)
        CHECK_TEXT(member(&patterns, does(&patterns, "a", i), "complete"), "false");
    CHECK_TEXT(member(&patterns, does(&patterns, "a", 599), "last"), "true");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"total\":601}", 409, "job-closed");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"total\":601}", 409, "job-closed");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"total\":600}", "state", "\"COMPLETE\"");
    patterns_close(&patterns);
}

TEST(job_whose_total_comes_later)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{}");
    for (int64_t i = 0; i < 300; i++)
        CHECK_TEXT(member(&patterns, does(&patterns, "a", i), "complete"), "false");
    check_member(&patterns, "GET /v1/jobs/a", NULL, "done", "300");
    CHECK_REFUSES(&patterns, "GET /v1/jobs/a/missing", NULL, 409, "total-unknown");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"total\":301}", "state", "\"OPEN\"");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[300]}");
    CHECK_TEXT(member(&patterns, does(&patterns, "a", 300), "last"), "true");
    asks(&patterns, "PUT /v1/jobs/b", "{}");
    for (int64_t i = 0; i < 10; i++) does(&patterns, "b", i);
    check_member(&patterns, "PATCH /v1/jobs/b", "{\"total\":8}", "state", "\"COMPLETE\"");
    CHECK_TEXT(member(&patterns, does(&patterns, "b", 1), "last"), "true"); /* nobody was told before */
    CHECK_TEXT(member(&patterns, does(&patterns, "b", 2), "last"), "false");
    patterns_close(&patterns);
}

/* Nothing has to be done: it is complete at once, and stays so. */
TEST(job_without_any_task)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/jobs/none", "{\"total\":0,\"then\":\"finish\"}", 201,
               "{\"id\":\"none\",\"state\":\"COMPLETE\",\"total\":0,\"done\":0,\"missing\":0,\"failed\":0,"
               "\"layout\":\"tree\","
               "\"then\":\"finish\",\"opened\":\"2054-11-15T04:13:25.340Z\",\"closed\":\"2054-11-15T04:13:25.340Z\"}");
    CHECK(slice_contains(asks(&patterns, "PUT /v1/jobs/none", "{\"tasks\":[]}"), SLICE("COMPLETE")));
    CHECK_INT(patterns.call.status, 200);
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/none", "{\"total\":1}", 409, "job-closed");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/none/done", "{\"task\":0}", 400, "task-outside");
    CHECK_ASKS(&patterns, "GET /v1/jobs/none/missing", NULL, 200, "{\"missing\":[]}");
    CHECK(slice_contains(asks(&patterns, "PUT /v1/jobs/names", "{\"tasks\":[]}"), SLICE("\"state\":\"COMPLETE\"")));
    /* What is known later to be nothing, whatever was sent before. */
    asks(&patterns, "PUT /v1/jobs/late", "{}");
    CHECK(slice_contains(asks(&patterns, "PATCH /v1/jobs/late", "{\"total\":0}"), SLICE("\"state\":\"COMPLETE\"")));
    asks(&patterns, "PUT /v1/jobs/later", "{}");
    CHECK(slice_contains(asks(&patterns, "PATCH /v1/jobs/later", "{\"tasks\":[]}"), SLICE("\"state\":\"COMPLETE\"")));
    asks(&patterns, "PUT /v1/jobs/few", "{\"total\":2}");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/few", "{\"total\":0}", 409, "wrong-total");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/few", "{\"tasks\":[]}", 409, "other-tasks");
    asks(&patterns, "PUT /v1/jobs/named", "{\"tasks\":[\"a\"]}");
    CHECK(slice_contains(asks(&patterns, "PATCH /v1/jobs/named", "{\"tasks\":[]}"), SLICE("\"total\":1")));
    patterns_close(&patterns);
}

TEST(job_with_failures)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":4,\"tolerate\":1}");
    for (int i = 0; i < 2; i++)
        check_member(&patterns, "POST /v1/jobs/a/failed", "{\"task\":1,\"reason\":\"no ink\"}", "failed",
                     "1");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/failures", NULL, 200,
               "{\"failures\":[{\"task\":1,\"reason\":\"no ink\"}]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[0,2,3]}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/failed", "{\"task\":2}", 200,
               "{\"counted\":1,\"state\":\"FAILED\",\"failed\":2,\"complete\":false,\"last\":false}");
    CHECK_ASKS(&patterns, "GET /v1/jobs?state=failed", NULL, 200,
               "{\"jobs\":[{\"id\":\"a\",\"state\":\"FAILED\",\"opened\":\"2054-11-15T04:13:25.340Z\"}]}");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[0,3]}", "counted",
                 "2"); /* goes on counting */
    check_member(&patterns, "GET /v1/jobs/a", NULL, "missing", "0");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/redrive", NULL, 200, "{\"redriven\":[1,2],\"state\":\"OPEN\"}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/redrive", NULL, 200, "{\"redriven\":[],\"state\":\"OPEN\"}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[1,2]}");
    check_member(&patterns, "POST /v1/jobs/a/failed", "{\"task\":1,\"reason\":\"again\"}", "state",
                 "\"OPEN\"");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":2}", "last",
                 "true"); /* one failure is tolerated */
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/failures", NULL, 200,
               "{\"failures\":[{\"task\":1,\"reason\":\"again\"}]}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/redrive", NULL, 409, "job-closed");
    asks(&patterns, "PUT /v1/jobs/b", "{\"total\":3}");
    check_member(&patterns, "POST /v1/jobs/b/failed", "{\"task\":0}", "state", "\"FAILED\"");
    check_member(&patterns, "POST /v1/jobs/b/done", "{\"tasks\":[0,1,2]}", "counted",
                 "3"); /* done after all */
    check_member(&patterns, "GET /v1/jobs/b", NULL, "failed", "0");
    CHECK_ASKS(&patterns, "POST /v1/jobs/b/redrive", NULL, 200, "{\"redriven\":[],\"state\":\"COMPLETE\"}");
    patterns_close(&patterns);
}

TEST(job_with_a_share_of_failures)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"a\",\"b\",\"c\",\"d\"],\"tolerate\":\"50%\"}");
    check_member(&patterns, "POST /v1/jobs/a/failed", "{\"task\":\"a\"}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/jobs/a/failed", "{\"task\":\"b\"}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"c\"}", "complete", "false");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/redrive", NULL, 200,
               "{\"redriven\":[\"a\",\"b\"],\"state\":\"OPEN\"}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/missing", NULL, 200, "{\"missing\":[\"a\",\"b\",\"d\"]}");
    for (char c = 'a'; c < 'c'; c++) {
        char body[] = "{\"task\":\"?\"}";
        body[9] = c;
        check_member(&patterns, "POST /v1/jobs/a/failed", body, "state", "\"OPEN\"");
    }
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/failed", "{\"task\":\"d\"}", 200,
               "{\"counted\":1,\"state\":\"FAILED\",\"failed\":3,\"complete\":false,\"last\":false}");
    patterns_close(&patterns);
}

TEST(job_that_expires)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":300,\"deadline\":\"1m\"}");
    asks(&patterns, "PUT /v1/jobs/b", "{\"total\":2,\"deadline\":\"1m\"}");
    does(&patterns, "a", 7);
    patterns.now_ms += 59999;
    does(&patterns, "a", 299);
    check_member(&patterns, "PATCH /v1/jobs/b", "{\"deadline\":\"1m\"}", "deadline",
                 "\"2054-11-15T04:15:25.339Z\"");
    patterns.now_ms += 1;
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":8}", 409, "deadline-over");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/failed", "{\"task\":8}", 409, "deadline-over");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"total\":301}", 409, "deadline-over");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a", NULL, 200,
               "{\"id\":\"a\",\"state\":\"EXPIRED\",\"total\":300,\"done\":2,\"missing\":298,\"failed\":0,"
               "\"layout\":\"tree\",\"deadline\":\"2054-11-15T04:14:25.340Z\","
               "\"opened\":\"2054-11-15T04:13:25.340Z\",\"closed\":\"2054-11-15T04:14:25.340Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":8}", 409, "deadline-over");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/redrive", NULL, 409, "deadline-over");
    CHECK_INT(raw_count(&patterns.arena,
                        member(&patterns, asks(&patterns, "GET /v1/jobs/a/missing", NULL), "missing")),
              298);
    check_member(&patterns, "POST /v1/jobs/b/done", "{\"tasks\":[0,1]}", "last", "true");
    patterns_close(&patterns);
}

/* What was counted stays counted; what had failed and was done since is not taken off twice. */
TEST(job_that_expired_is_opened_again)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":600,\"deadline\":\"1m\",\"tolerate\":5}");
    asks(&patterns, "POST /v1/jobs/a/failed", "{\"task\":3}");
    asks(&patterns, "POST /v1/jobs/a/failed", "{\"task\":4}");
    does(&patterns, "a", 3);
    does(&patterns, "a", 599);
    for (int round = 0; round < 3; round++) {
        patterns.now_ms += 60000;
        check_member(&patterns, "GET /v1/jobs/a?progress=1", NULL, "state", "\"EXPIRED\"");
        CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":8}", 409, "deadline-over");
        CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"tolerate\":6}", 409, "deadline-over");
        CHECK_REFUSES(&patterns, "POST /v1/jobs/a/redrive", NULL, 409, "deadline-over");
        check_member(&patterns, "PATCH /v1/jobs/a", "{\"deadline\":\"1m\"}", "state", "\"OPEN\"");
        CHECK_TEXT(member(&patterns, does(&patterns, "a", 100 + round), "counted"), "1");
        struct slice job = asks(&patterns, "GET /v1/jobs/a?progress=1", NULL);
        CHECK_TEXT(member(&patterns, job, "failed"), "1");
        CHECK_INT(strtol(member(&patterns, job, "done").data, NULL, 10), 3 + round);
        CHECK_INT(strtol(member(&patterns, job, "missing").data, NULL, 10), 600 - 1 - 3 - round);
        CHECK(!member(&patterns, job, "closed").data);
    }
    CHECK_ASKS(&patterns, "GET /v1/jobs?state=expired", NULL, 200, "{\"jobs\":[]}");
    patterns.now_ms += 60000;
    asks(&patterns, "GET /v1/jobs/a", NULL);
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/redrive", "{\"deadline\":\"1h\"}", 200,
               "{\"redriven\":[4],\"state\":\"OPEN\"}");
    for (int64_t task = 0; task < 599; task++) does(&patterns, "a", task);
    check_member(&patterns, "GET /v1/jobs/a", NULL, "state", "\"COMPLETE\"");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":598}", "last", "true");
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"deadline\":\"1h\"}", 409, "job-closed");
    patterns_close(&patterns);
}

/* A PUT with other settings is no repeat: it is refused, and says what differs. */
TEST(job_put_again_with_other_settings)
{
    static const char then[] = "{\"url\":\"http://x/y\",\"on\":\"COMPLETE\"}";
    struct patterns patterns;
    patterns_open(&patterns);
    char body[200];
    snprintf(body, sizeof body,
             "{\"total\":3,\"deadline\":\"1h\",\"tolerate\":\"5%%\",\"keep\":\"1d\",\"then\":%s}", then);
    check_member(&patterns, "PUT /v1/jobs/a", body, "then", then);
    patterns.now_ms += 1000;
    check_member(&patterns, "PUT /v1/jobs/a", body, "state", "\"OPEN\"");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"then\":{ \"on\": \"COMPLETE\", \"url\": \"http://x/y\"}}", "keep",
                 "\"1d\"");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"total\":4}", "total", "4");
    static const char *const others[][2] = {{"{\"deadline\":\"2h\"}", "\"deadline\""},
                                            {"{\"tolerate\":5}", "\"tolerate\""},
                                            {"{\"keep\":\"2d\"}", "\"keep\""},
                                            {"{\"then\":\"other\"}", "\"then\""}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", others[i][0], 409, "other-settings");
        struct slice differs = member(&patterns, asks(&patterns, "PUT /v1/jobs/a", others[i][0]), "differs");
        CHECK_TEXT(differs, others[i][1]);
    }
    check_member(&patterns, "GET /v1/jobs/a", NULL, "tolerate", "\"5%\"");
    patterns_close(&patterns);
}

/* Its tasks get their names later, by PUT or by PATCH, unless a number came first. */
TEST(job_opened_without_tasks_takes_names)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int i = 0; i < 2; i++) {
        asks(&patterns, "PUT /v1/jobs/a", "{}");
        CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"x\"}", 400, "task-outside");
        check_member(&patterns, i ? "PUT /v1/jobs/a" : "PATCH /v1/jobs/a", "{\"tasks\":[\"x\",\"y\"]}", "total",
                     "2");
        check_member(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"z\"]}", "total", "3");
        CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":1}", 400, "task-outside");
        check_member(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[\"x\",\"y\",\"z\"]}", "last", "true");
        asks(&patterns, "DELETE /v1/jobs/a", NULL);
    }
    asks(&patterns, "PUT /v1/jobs/a", "{}");
    does(&patterns, "a", 1);
    CHECK_REFUSES(&patterns, "PATCH /v1/jobs/a", "{\"tasks\":[\"x\"]}", 409, "other-tasks");
    CHECK_REFUSES(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\"]}", 409, "other-tasks");
    check_member(&patterns, "PATCH /v1/jobs/a", "{\"total\":2}", "total", "2");
    patterns_close(&patterns);
}

TEST(job_with_results)
{
    struct patterns patterns;
    char body[80];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":260}");
    for (int i = 259; i >= 0; i -= 37) {
        snprintf(body, sizeof body, "{\"task\":%d,\"result\":{\"square\":%d}}", i, i * i);
        check_member(&patterns, "POST /v1/jobs/a/done", body, "counted", "1");
    }
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":0,\"result\":9}", "counted",
                 "0"); /* the first stays */
    CHECK_ASKS(
        &patterns, "GET /v1/jobs/a/results?limit=3", NULL, 200,
        "{\"results\":[{\"task\":0,\"result\":{\"square\":0}},{\"task\":37,\"result\":{\"square\":1369}},"
        "{\"task\":74,\"result\":{\"square\":5476}},{\"task\":111,\"result\":{\"square\":12321}},"
        "{\"task\":148,\"result\":{\"square\":21904}},{\"task\":185,\"result\":{\"square\":34225}},"
        "{\"task\":222,\"result\":{\"square\":49284}}],\"next\":1}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/results?after=1", NULL, 200,
               "{\"results\":[{\"task\":259,\"result\":{\"square\":67081}}]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/results?after=2", NULL, 200, "{\"results\":[]}");
    asks(&patterns, "PUT /v1/jobs/b", "{\"tasks\":[\"x\",\"y\"]}");
    check_member(&patterns, "POST /v1/jobs/b/done", "{\"task\":\"y\",\"result\":[1]}", "counted", "1");
    CHECK_ASKS(&patterns, "GET /v1/jobs/b/results", NULL, 200,
               "{\"results\":[{\"task\":\"y\",\"result\":[1]}]}");
    patterns_close(&patterns);
}

/* Many results by one call: the first of each task stays, by whichever call it came. */
TEST(job_with_results_in_a_list)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":300}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done",
               "{\"tasks\":[{\"task\":2,\"result\":\"two\"},257,{\"task\":256,\"result\":null},{\"task\":1}]}", 200,
               "{\"counted\":4,\"complete\":false,\"last\":false}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"task\":3,\"result\":3}", 200,
               "{\"counted\":1,\"complete\":false,\"last\":false}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done",
               "{\"tasks\":[{\"task\":3,\"result\":\"late\"},{\"task\":2,\"result\":\"late\"},"
               "{\"task\":0,\"result\":[]}]}",
               200, "{\"counted\":1,\"complete\":false,\"last\":false}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"task\":0,\"result\":\"late\"}", 200,
               "{\"counted\":0,\"complete\":false,\"last\":false}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/results", NULL, 200,
               "{\"results\":[{\"task\":0,\"result\":[]},{\"task\":2,\"result\":\"two\"},{\"task\":3,\"result\":3},"
               "{\"task\":256,\"result\":null}]}");
    asks(&patterns, "PUT /v1/jobs/n", "{\"tasks\":[\"x\",\"y\"]}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/n/done",
               "{\"tasks\":[{\"task\":\"y\",\"result\":1},{\"task\":\"z\",\"result\":2}]}", 200,
               "{\"counted\":1,\"complete\":false,\"last\":false,\"done\":1,\"unknown\":[\"z\"]}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/n/results", NULL, 200, "{\"results\":[{\"task\":\"y\",\"result\":1}]}");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[{\"result\":1}]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[{\"task\":1,\"resul\":1}]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"tasks\":[{\"task\":9,\"result\":1e999}]}", 400,
                  "bad-request");
    /* The last task of a job comes again with its result. */
    asks(&patterns, "PUT /v1/jobs/b", "{\"total\":1}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/b/done", "{\"tasks\":[{\"task\":0,\"result\":1}]}", 200,
               "{\"counted\":1,\"complete\":true,\"last\":true,\"done\":1}");
    CHECK_ASKS(&patterns, "POST /v1/jobs/b/done", "{\"tasks\":[{\"task\":0,\"result\":1}]}", 200,
               "{\"counted\":0,\"complete\":true,\"last\":true,\"done\":1}");
    patterns_close(&patterns);
}

/* More than one write takes: all of them are there, in order. */
TEST(job_with_many_results_in_a_list)
{
    struct patterns patterns;
    struct buf body = {0}, expected = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":300}");
    for (int i = 0; i < 300; i++) {
        buf_printf(&body, "%s{\"task\":%d,\"result\":%d}", i ? "," : "{\"tasks\":[", 299 - i, (299 - i) * 7);
        buf_printf(&expected, "%s{\"task\":%d,\"result\":%d}", i ? "," : "{\"results\":[", i, i * 7);
    }
    buf_put(&body, "]}", 3);
    buf_put(&expected, "]}", 3);
    CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", body.data, 200,
               "{\"counted\":300,\"complete\":true,\"last\":true,\"done\":300}");
    CHECK_ASKS(&patterns, "GET /v1/jobs/a/results", NULL, 200, expected.data);
    buf_free(&body);
    buf_free(&expected);
    patterns_close(&patterns);
}

TEST(job_is_deleted_and_made_again)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int i = 0; i < 2; i++) {
        check_member(&patterns, "PUT /v1/jobs/a", "{\"total\":300}", "total", "300");
        CHECK_ASKS(&patterns, "POST /v1/jobs/a/done", "{\"task\":299,\"result\":1}", 200,
                   "{\"counted\":1,\"complete\":false,\"last\":false}");
        CHECK_ASKS(&patterns, "DELETE /v1/jobs/a", NULL, 200, "{\"deleted\":true}");
        CHECK_REFUSES(&patterns, "DELETE /v1/jobs/a", NULL, 404, "no-such-job");
    }
    struct buf reply = {0};
    struct slice scan = arena_printf(&patterns.arena, "{\"TableName\":\"%sjob-parts\"}", patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), scan, &reply), 200);
    CHECK(slice_contains(buf_view(&reply), SLICE("\"Count\":0")));
    buf_free(&reply);
    patterns_close(&patterns);
}

TEST(job_lists_what_is_open)
{
    struct patterns patterns;
    char request[80];
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "GET /v1/jobs?state=open", NULL, 200, "{\"jobs\":[]}");
    for (int i = 0; i < 10; i++) {
        snprintf(request, sizeof request, "PUT /v1/jobs/j%d", i);
        asks(&patterns, request, "{\"total\":1}");
        patterns.now_ms += 1000;
    }
    does(&patterns, "j3", 0);
    struct slice reply = asks(&patterns, "GET /v1/jobs?state=open&limit=4", NULL);
    CHECK(slice_starts(
        reply, SLICE("{\"jobs\":[{\"id\":\"j0\",\"state\":\"OPEN\",\"opened\":\"2054-11-15T04:13:25.340Z\"},"
                     "{\"id\":\"j1\"")));
    CHECK(slice_contains(reply, SLICE("\"j4\"")) && !slice_contains(reply, SLICE("\"j3\"")));
    snprintf(request, sizeof request, "GET /v1/jobs?limit=9&after=%.*s",
             SLICE_ARG(raw_text(&patterns.arena, member(&patterns, reply, "next"))));
    reply = asks(&patterns, request, NULL);
    CHECK_INT(raw_count(&patterns.arena, member(&patterns, reply, "jobs")), 5);
    CHECK(!member(&patterns, reply, "next").data);
    reply = asks(&patterns, "GET /v1/jobs?older=7s", NULL); /* j0 is 10 seconds old */
    CHECK_INT(raw_count(&patterns.arena, member(&patterns, reply, "jobs")), 3);
    patterns_close(&patterns);
}

TEST(job_tells_its_last_caller_again_by_its_key)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":1}");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "k1");
        check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", "last", "true");
    }
    with_header(&patterns, "Idempotency-Key", "k2");
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}", "last", "false");
    patterns_close(&patterns);
}

/* Without keys, whoever does the same tasks is the same caller. */
TEST(job_tells_its_last_task_again)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":4,\"tolerate\":4}");
    asks(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}");
    for (int i = 0; i < 2; i++)
        check_member(&patterns, "POST /v1/jobs/a/done", i ? "{\"tasks\":[3,1,2]}" : "{\"tasks\":[1,2,3]}", "last",
                     "true");
    for (int64_t task = 0; task < 4; task++)
        CHECK_TEXT(member(&patterns, does(&patterns, "a", task), "last"), "false");
    asks(&patterns, "PUT /v1/jobs/b", "{\"tasks\":[\"x\",\"y \\\"z\\\"\"],\"tolerate\":2}");
    asks(&patterns, "POST /v1/jobs/b/done", "{\"task\":\"x\"}");
    for (int i = 0; i < 2; i++)
        check_member(&patterns, "POST /v1/jobs/b/failed", "{\"task\":\"y \\\"z\\\"\"}", "last", "true");
    check_member(&patterns, "POST /v1/jobs/b/done", "{\"task\":\"x\"}", "last", "false");
    patterns_close(&patterns);
}

/* A call of the database with the prefix of the tables in its place. */
__attribute__((format(printf, 3, 0))) static void calls(struct patterns *patterns, const char *operation,
                                                        const char *format, struct slice more)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice request = arena_printf(&arena, format, patterns->prefix, SLICE_ARG(more));
    CHECK_INT(dynamo_call(patterns->dynamo, slice_of(operation), request, &reply), 200);
    buf_free(&reply);
    arena_free(&arena);
}

/* A PUT of names that was interrupted: the same one again goes on, and else the job ends by its deadline. */
TEST(job_whose_names_were_not_all_written)
{
    static const char unprepared[] =
        "{\"TableName\":\"%sjobs\",\"Key\":{\"id\":{\"S\":\"a\"}},"
        "\"UpdateExpression\":\"REMOVE prepared\"%.*s}";
    struct patterns patterns;
    struct arena arena = {0};
    struct buf reply = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\",\"y\"],\"deadline\":\"10s\"}");
    struct slice scan = arena_printf(
        &arena, "{\"TableName\":\"%sjob-parts\",\"ProjectionExpression\":\"part,task\"}", patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), scan, &reply), 200);
    struct slice leaf = raw_member(&arena, buf_view(&reply), "Items");
    CHECK_INT(raw_count(&arena, leaf), 1);
    calls(&patterns, "DeleteItem", "{\"TableName\":\"%sjob-parts\",\"Key\":%.*s}",
          (struct slice){leaf.data + 1, leaf.len - 2});
    calls(&patterns, "UpdateItem", unprepared, SLICE(""));
    CHECK_REFUSES(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"x\"}", 409, "not-prepared");
    check_member(&patterns, "GET /v1/jobs/a", NULL, "preparing", "true");
    check_member(&patterns, "PUT /v1/jobs/a", "{\"tasks\":[\"x\",\"y\"]}", "total", "2");
    CHECK(!slice_contains(asks(&patterns, "GET /v1/jobs/a", NULL), SLICE("preparing")));
    check_member(&patterns, "POST /v1/jobs/a/done", "{\"task\":\"x\"}", "counted", "1");
    calls(&patterns, "UpdateItem", unprepared, SLICE(""));
    patterns.now_ms += 10000;
    check_member(&patterns, "GET /v1/jobs/a", NULL, "state", "\"EXPIRED\"");
    check_member(&patterns, "GET /v1/jobs/a", NULL, "done", "1");
    buf_free(&reply);
    arena_free(&arena);
    patterns_close(&patterns);
}

/* The tables of the tasks are not there yet, and nobody but the sweep comes: it makes what it needs, but
 * nothing where nobody has used a pattern. */
TEST(job_expires_by_the_sweep_before_any_task)
{
    struct patterns patterns;
    struct buf reply = {0};
    patterns_open(&patterns);
    CHECK_INT(pattern_sweep(patterns.pattern, &reply), 200);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 200);
    CHECK(!slice_contains(buf_view(&reply), slice_of(patterns.prefix)));
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":2,\"deadline\":\"10s\"}");
    patterns.now_ms += 10000;
    reply.len = 0;
    CHECK_INT(pattern_sweep(patterns.pattern, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "");
    check_member(&patterns, "GET /v1/jobs?state=expired", NULL, "jobs",
                 "[{\"id\":\"a\",\"state\":\"EXPIRED\",\"opened\":\"2054-11-15T04:13:25.340Z\"}]");
    buf_free(&reply);
    patterns_close(&patterns);
}
