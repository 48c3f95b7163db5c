/* Groups whose rules are changed while they are open: the new ones hold from then on, and what they make
 * complete is complete. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define FIXED "2054-11-15T04:13:55.340Z" /* half a minute from now */

static void check_member(struct patterns *patterns, const char *request, const char *body, const char *name,
                         const char *expected)
{
    struct slice reply = asks(patterns, request, body), value = raw_member(&patterns->arena, reply, name);
    if (patterns->call.status >= 300 || !slice_equal(value, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s %s: %s is not %s: %d %.*s", request, body ? body : "", name,
                    expected, patterns->call.status, SLICE_ARG(reply));
}

static void put(struct patterns *patterns, const char *rules)
{
    asks(patterns, "PUT /v1/groups/g", rules);
    CHECK_INT(patterns->call.status, 200);
}

static void sweep(struct patterns *patterns)
{
    struct buf reply = {0};
    CHECK_INT(pattern_sweep(patterns->pattern, &reply), 200);
    buf_free(&reply);
}

TEST(group_change_reaches_open_groups)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":10}}");
    asks(&patterns, "POST /v1/groups/g/one", "{\"id\":\"a\"}");
    for (int i = 0; i < 3; i++) asks(&patterns, "POST /v1/groups/g/three", i == 2 ? "{\"id\":\"c\"}" : "{}");
    put(&patterns, "{\"complete\":{\"size\":3}}"); /* one has it already, the other gets there */
    check_member(&patterns, "GET /v1/groups/g/three", NULL, "why", "\"rules\"");
    check_member(&patterns, "POST /v1/groups/g/three", "{\"id\":\"c\"}", "completed",
                 "false"); /* not its doing */
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/three", "{}", 409, "closed-group");
    check_member(&patterns, "POST /v1/groups/g/one", "{\"id\":\"b\"}", "completed", "false");
    check_member(&patterns, "POST /v1/groups/g/one", "{\"id\":\"c\"}", "completed", "true");
    /* a larger size, other kinds of rules, and none of those that were there */
    asks(&patterns, "POST /v1/groups/g/x", "{\"kind\":\"a\",\"amount\":3}");
    asks(&patterns, "POST /v1/groups/g/x", "{\"kind\":\"a\",\"amount\":3}");
    put(&patterns, "{\"complete\":{\"kinds\":[\"a\",\"b\"]}}");
    asks(&patterns, "POST /v1/groups/g/x", "{\"kind\":\"a\",\"amount\":3}");
    check_member(&patterns, "POST /v1/groups/g/x", "{\"kind\":\"a\"}", "state", "\"OPEN\"");
    put(&patterns, "{\"complete\":{\"when\":\"sum > 10\"}}");
    check_member(&patterns, "POST /v1/groups/g/x", "{\"kind\":\"b\",\"amount\":1}", "state", "\"OPEN\"");
    put(&patterns, "{\"complete\":{\"when\":\"sum > 9\"},\"late\":\"append\"}");
    check_member(&patterns, "GET /v1/groups/g/x", NULL, "why", "\"rules\"");
    check_member(&patterns, "POST /v1/groups/g/x", "{}", "accepted",
                 "true");                          /* late, as the new rules have it */
    put(&patterns, "{\"complete\":{\"size\":2}}"); /* what is complete stays */
    check_member(&patterns, "POST /v1/groups/g/x", "{}", "accepted", "true");
    patterns_close(&patterns);
}

TEST(group_change_of_times)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"deadline\":\"1h\"}");
    asks(&patterns, "POST /v1/groups/g/k", "{}");
    asks(&patterns, "POST /v1/groups/g/own", "{\"deadline\":\"" FIXED "\"}");
    patterns.now_ms += 10000;
    put(&patterns, "{\"deadline\":\"20s\"}");
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    patterns.now_ms += 10000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"deadline\"");
    check_member(&patterns, "GET /v1/groups/g/own", NULL, "state", "\"OPEN\""); /* it keeps its own */
    patterns.now_ms += 10000;
    check_member(&patterns, "GET /v1/groups/g/own", NULL, "why", "\"deadline\"");
    /* over at once; longer than before; none any more */
    asks(&patterns, "POST /v1/groups/g/soon", "{}");
    patterns.now_ms += 10000;
    put(&patterns, "{\"quiet\":\"5s\"}");
    check_member(&patterns, "GET /v1/groups/g/soon", NULL, "completed", "\"2054-11-15T04:14:05.340Z\"");
    check_member(&patterns, "GET /v1/groups/g/soon", NULL, "why", "\"quiet\"");
    asks(&patterns, "POST /v1/groups/g/long", "{}");
    put(&patterns, "{\"quiet\":\"1m\"}");
    patterns.now_ms += 10000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/long", NULL, "state", "\"OPEN\"");
    put(&patterns, "{\"complete\":{\"size\":2}}");
    patterns.now_ms += 100000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/long", NULL, "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/groups/g/long", "{}", "completed", "true");
    patterns_close(&patterns);
}

/* More than a page of each slot; groups of another name are none of them. */
TEST(group_change_of_many)
{
    struct patterns patterns;
    char request[60];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/h", "{\"complete\":{\"size\":3}}");
    put(&patterns, "{\"complete\":{\"size\":3}}");
    asks(&patterns, "POST /v1/groups/h/k", "{}");
    for (int i = 0; i < 250; i++) {
        snprintf(request, sizeof request, "POST /v1/groups/g/k%d", i);
        asks(&patterns, request, "{}");
    }
    put(&patterns, "{\"complete\":{\"size\":1},\"keep\":\"1h\"}");
    CHECK_ASKS(&patterns, "GET /v1/groups/g?state=open", NULL, 200, "{\"groups\":[]}");
    check_member(&patterns, "GET /v1/groups/g/k249", NULL, "why", "\"rules\"");
    check_member(&patterns, "GET /v1/groups/h/k", NULL, "state", "\"OPEN\"");
    patterns.now_ms += 3600000; /* they are kept as the new rules say */
    for (int i = 0; i < 5; i++) sweep(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k0", NULL, 404, "no-such-group");
    patterns_close(&patterns);
}

static void call(struct patterns *patterns, const char *operation, const char *format)
{
    struct buf reply = {0}, request = {0};
    for (const char *c = format; *c; c++)
        if (*c == '~')
            buf_slice(&request, slice_of(patterns->prefix));
        else
            buf_byte(&request, (unsigned char)(*c == '\'' ? '"' : *c));
    CHECK_INT(dynamo_call(patterns->dynamo, slice_of(operation), buf_view(&request), &reply), 200);
    buf_free(&reply);
    buf_free(&request);
}

/* The rules with size 1, by somebody who did not get to any group. */
static void rules_write(struct patterns *patterns)
{
    call(patterns, "UpdateItem",
         "{'TableName':'~group-rules','Key':{'name':{'S':'g'}},'UpdateExpression':'SET #s = :one ADD #v :one',"
         "'ExpressionAttributeNames':{'#v':'version','#s':'size'},"
         "'ExpressionAttributeValues':{':one':{'N':'1'}}}");
}

/* Who died in the middle has left `applied` behind, and groups with old rules. */
TEST(group_change_is_finished_by_its_repeat)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":2}}");
    asks(&patterns, "POST /v1/groups/g/k", "{}");
    asks(&patterns, "POST /v1/groups/g/l", "{}");
    CHECK(slice_contains(asks(&patterns, "PUT /v1/groups/g?cost", "{\"complete\":{\"size\":2}}"),
                         SLICE("\"writeUnits\":0,"))); /* they are there: nothing is written */
    struct slice reply = asks(&patterns, "PUT /v1/groups/g?cost", "{\"complete\":{\"size\":3}}");
    if (!getenv("PATTERNS_ON")) /* the rules twice, and each group once; others count otherwise what they do not find */
        CHECK(slice_contains(reply, SLICE("\"writeUnits\":4,\"readUnits\":5.5,")));
    rules_write(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    put(&patterns, "{\"complete\":{\"size\":1}}");
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"rules\"");
    patterns_close(&patterns);
}

/* Without a repeat: the sweep, a minute after the group was opened. */
TEST(group_change_is_finished_by_the_sweep)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":2}}");
    asks(&patterns, "POST /v1/groups/g/k", "{}");
    rules_write(&patterns);
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    patterns.now_ms += 61000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"rules\"");
    patterns_close(&patterns);
}

/* A head with rules from before, by somebody who wrote it when all others had got the new ones, and died. */
TEST(group_change_is_given_to_all_once_more)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":2}}");
    asks(&patterns, "POST /v1/groups/g/k", "{}");
    put(&patterns, "{\"complete\":{\"size\":9},\"quiet\":\"3s\"}");
    call(&patterns, "UpdateItem",
         "{'TableName':'~groups','Key':{'group':{'S':'g/k'},'generation':{'N':'1'}},"
         "'UpdateExpression':'SET #r = :r REMOVE quiet, slot, due','ExpressionAttributeNames':{'#r':'rules'},"
         "'ExpressionAttributeValues':{':r':{'N':'7'}}}");
    patterns.now_ms += 10000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    patterns.now_ms += 50000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"quiet\"");
    patterns_close(&patterns);
}

static int64_t rules_count(struct patterns *patterns)
{
    struct buf reply = {0};
    int64_t count = -1;
    struct slice scan = arena_printf(&patterns->arena, "{\"TableName\":\"%sgroup-rules\"}", patterns->prefix);
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("Scan"), scan, &reply), 200);
    CHECK(raw_int(raw_member(&patterns->arena, buf_view(&reply), "Count"), &count));
    buf_free(&reply);
    return count;
}

/* Groups of a name without rules are completed by those that they have; then nothing is left of the name. */
TEST(group_sweep_knows_names_that_are_forgotten)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":9},\"quiet\":\"3s\",\"keep\":\"1h\"}");
    asks(&patterns, "POST /v1/groups/g/k", "{}");
    sweep(&patterns);
    CHECK_ASKS(&patterns, "DELETE /v1/groups/g", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/groups/g", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/other", "{}", 404, "no-such-group");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/other", NULL, 404, "no-such-group");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "count", "2");
    patterns.now_ms += 3000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "completed", "\"2054-11-15T04:13:28.340Z\"");
    patterns.now_ms += 24 * 3600 * 1000ll;
    CHECK_INT(rules_count(&patterns), 1);
    sweep(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 404, "no-such-group");
    CHECK_INT(rules_count(&patterns), 0);
    put(&patterns, "{\"complete\":{\"size\":1}}");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "completed", "true");
    patterns_close(&patterns);
}

/* More than a page of them, with more groups than a page of a slot, and deadlines that come before all others. */
TEST(group_sweep_of_many_names)
{
    struct patterns patterns;
    char request[60];
    patterns_open(&patterns);
    for (int i = 0; i < 30; i++) {
        snprintf(request, sizeof request, "PUT /v1/groups/g%d", i);
        asks(&patterns, request, "{\"quiet\":\"1h\"}");
    }
    sweep(&patterns);
    for (int i = 0; i < 150; i++) {
        snprintf(request, sizeof request, "POST /v1/groups/g%d/k%d", i < 120 ? 7 : i - 120, i);
        asks(&patterns, request, "{}");
    }
    asks(&patterns, "POST /v1/groups/g29/own", "{\"deadline\":\"2054-11-15T04:13:27.340Z\"}");
    patterns.now_ms += 2000;
    sweep(&patterns);
    check_member(&patterns, "GET /v1/groups/g29/own", NULL, "why", "\"deadline\"");
    patterns.now_ms += 3600000;
    sweep(&patterns);
    for (int i = 0; i < 30; i++) {
        snprintf(request, sizeof request, "GET /v1/groups/g%d?state=open", i);
        CHECK_ASKS(&patterns, request, NULL, 200, "{\"groups\":[]}");
    }
    patterns_close(&patterns);
}
