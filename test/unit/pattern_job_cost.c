/* What jobs cost: the tree stays at about one write unit a task at any size, the single set grows. */
#include <stdlib.h>

#include "base/attribute.h"
#include "unit/pattern_fixture.h"

/* The write units of the last reply, of a call with ?cost=1. */
static double units(struct patterns *patterns, struct slice reply, const char *which)
{
    struct slice cost = raw_member(&patterns->arena, reply, "cost");
    struct slice text = raw_text(&patterns->arena, raw_member(&patterns->arena, cost, which));
    char number[32];
    CHECK(text.len && text.len < sizeof number);
    snprintf(number, sizeof number, "%.*s", SLICE_ARG(text));
    return strtod(number, NULL);
}

struct spent {
    double writes, reads, largest;
    unsigned last;
};

static void spend(struct patterns *patterns, const char *request, const char *body, struct spent *spent)
{
    struct slice reply = asks(patterns, request, body);
    double writes = units(patterns, reply, "writeUnits");
    CHECK(patterns->call.status < 300);
    spent->writes += writes;
    spent->reads += units(patterns, reply, "readUnits");
    if (writes > spent->largest) spent->largest = writes;
    spent->last += slice_contains(reply, SLICE("\"last\":true"));
}

/* Opens a job and does all its tasks, one by one, in an order in which all leaves fill side by side. */
static struct spent job_spend(struct patterns *patterns, const char *layout, int64_t total)
{
    struct spent spent = {0};
    char body[80];
    snprintf(body, sizeof body, "{\"total\":%lld,\"layout\":\"%s\"}", (long long)total, layout);
    spend(patterns, "PUT /v1/jobs/j?cost=1", body, &spent);
    for (int64_t i = 0; i < total; i++) {
        snprintf(body, sizeof body, "{\"task\":%lld}", (long long)(i * 7919 % total));
        spend(patterns, "POST /v1/jobs/j/done?cost=1", body, &spent);
    }
    asks(patterns, "DELETE /v1/jobs/j", NULL);
    return spent;
}

TEST(job_cost_of_the_tree_stays_flat)
{
    static const int64_t totals[] = {1000, 2000, 10000, 100000};
    struct patterns patterns;
    size_t count = getenv("PATTERNS_ON") ? 2 : 4; /* elsewhere a call takes its time */
    patterns_open(&patterns);
    printf("job, layout tree:   tasks  write units a task  read units a task\n");
    for (size_t i = 0; i < count; i++) {
        struct spent spent = job_spend(&patterns, "tree", totals[i]);
        double writes = spent.writes / (double)totals[i], reads = spent.reads / (double)totals[i];
        printf("                  %7lld  %18.4f  %17.4f\n", (long long)totals[i], writes, reads);
        CHECK(writes >= 1 && writes <= 1.1);
        CHECK(reads <= 0.6);
        CHECK_INT(spent.last, 1);
    }
    patterns_close(&patterns);
}

/* The seed's own figures: 3 write units for the thousandth page, 6 for the two thousandth. */
TEST(job_cost_of_the_set_grows)
{
    struct patterns patterns;
    struct spent spent = {0};
    char body[80];
    patterns_open(&patterns);
    spend(&patterns, "PUT /v1/jobs/doc3?cost=1", "{\"total\":2500,\"layout\":\"set\"}", &spent);
    printf("job, layout set:     task  write units of its call\n");
    for (int64_t i = 0; i < 2000; i++) {
        struct spent one = {0};
        snprintf(body, sizeof body, "{\"task\":%lld}", (long long)i);
        spend(&patterns, "POST /v1/jobs/doc3/done?cost=1", body, &one);
        if (i == 999 || i == 1999) printf("                  %7lld  %23.1f\n", (long long)i + 1, one.writes);
        if (i == 999) CHECK(one.writes == 3);
        if (i == 1999) CHECK(one.writes == 6);
    }
    CHECK_TEXT(asks(&patterns, "GET /v1/jobs/doc3/missing?limit=1", NULL).len > 2000 ? SLICE("many")
                                                                                     : SLICE("few"),
               "many");
    patterns_close(&patterns);
}

/* A large job with failures in one leaf: its branches tell which, so the other leaves are not read. */
TEST(job_cost_of_failures_is_that_of_their_leaves)
{
    struct patterns patterns;
    struct spent none = {0}, some = {0}, again = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/j", "{\"total\":1000000,\"tolerate\":10}");
    spend(&patterns, "GET /v1/jobs/j/failures?cost=1", NULL, &none);
    CHECK(none.reads <= 1);
    asks(&patterns, "POST /v1/jobs/j/failed", "{\"task\":500000,\"reason\":\"no ink\"}");
    asks(&patterns, "POST /v1/jobs/j/failed", "{\"task\":500001}");
    spend(&patterns, "GET /v1/jobs/j/failures?cost=1", NULL, &some);
    CHECK_ASKS(&patterns, "GET /v1/jobs/j/failures", NULL, 200,
               "{\"failures\":[{\"task\":500000,\"reason\":\"no ink\"},{\"task\":500001,\"reason\":\"no reason "
               "given\"}]}");
    printf("job of 3907 leaves: failures of one are listed by %.1f read units\n", some.reads);
    CHECK(some.reads <= 25); /* the head, 16 branches, the leaf and its reasons */
    some = (struct spent){0};
    spend(&patterns, "POST /v1/jobs/j/redrive?cost=1", NULL, &some);
    CHECK(some.reads <= 50);
    CHECK_ASKS(&patterns, "GET /v1/jobs/j/failures", NULL, 200, "{\"failures\":[]}");
    asks(&patterns, "POST /v1/jobs/j/failed", "{\"task\":7}");
    spend(&patterns, "GET /v1/jobs/j/failures?cost=1", NULL, &again);
    CHECK(again.reads <= 25);
    patterns_close(&patterns);
}

static int64_t told(struct patterns *patterns, const char *request, const char *name)
{
    int64_t number = -1;
    struct slice reply = asks(patterns, request, NULL);
    CHECK_INT(patterns->call.status, 200);
    raw_int(raw_text(&patterns->arena, raw_member(&patterns->arena, reply, name)), &number);
    return number;
}

/* How far a large job is: a read for 64 leaves, which are a quarter of their tasks behind at most. */
TEST(job_cost_of_progress_is_that_of_a_summary)
{
    static const int64_t total = 10000, leaves = 40;
    struct patterns patterns;
    struct spent before = {0}, half = {0}, exact = {0}, end = {0}, done = {0};
    char body[40];
    if (getenv("PATTERNS_ON")) return; /* elsewhere ten thousand calls take their time */
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/j", "{\"total\":10000,\"tolerate\":10}");
    spend(&patterns, "GET /v1/jobs/j?progress=1&cost=1", NULL, &before);
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?progress=1", "done"), 0);
    asks(&patterns, "POST /v1/jobs/j/failed", "{\"task\":2081}");
    for (int64_t i = 0; i < total / 2; i++) { /* all leaves side by side */
        snprintf(body, sizeof body, "{\"task\":%lld}", (long long)(i * 7919 % total));
        asks(&patterns, "POST /v1/jobs/j/done", body);
    }
    spend(&patterns, "GET /v1/jobs/j?progress=1&cost=1", NULL, &half);
    spend(&patterns, "GET /v1/jobs/j?exact=1&cost=1", NULL, &exact);
    spend(&patterns, "POST /v1/jobs/j/done?progress=1&cost=1", "{\"task\":0}", &done);
    int64_t least = told(&patterns, "GET /v1/jobs/j?progress=1", "done");
    printf("job of 40 leaves, half done: progress by %.1f read units, %.1f exactly; at least %lld of 5000 are done\n",
           half.reads, exact.reads, (long long)least);
    CHECK(before.reads <= 4 && half.reads <= 4 && done.reads <= 4); /* the head twice, the branch, the tally */
    CHECK(exact.reads >= (double)leaves);
    CHECK(least <= total / 2 && least > total / 2 - leaves * 64);
    CHECK(slice_contains(asks(&patterns, "GET /v1/jobs/j?progress=1", NULL), SLICE("\"exact\":false")));
    CHECK(!slice_contains(asks(&patterns, "GET /v1/jobs/j?exact=1", NULL), SLICE("\"exact\"")));
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?exact=1", "done"), total / 2);
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?exact=1", "missing"), total / 2 - 1);
    for (int64_t i = total / 2; i < total - 3; i++) { /* few leaves are left: they are counted */
        snprintf(body, sizeof body, "{\"task\":%lld}", (long long)(i * 7919 % total));
        asks(&patterns, "POST /v1/jobs/j/done", body);
    }
    spend(&patterns, "GET /v1/jobs/j?progress=1&cost=1", NULL, &end);
    CHECK(end.reads <= 7);
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?progress=1", "done"), total - 3);
    CHECK_ASKS(&patterns, "DELETE /v1/jobs/j", NULL, 200, "{\"deleted\":true}"); /* and nothing is left of it */
    struct buf reply = {0};
    struct slice scan = arena_printf(&patterns.arena, "{\"TableName\":\"%sjob-parts\"}", patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), scan, &reply), 200);
    CHECK(slice_contains(buf_view(&reply), SLICE("\"Count\":0")));
    buf_free(&reply);
    patterns_close(&patterns);
}

/* Where the tasks are that are done: by ranges of whole leaves, which costs what the progress does. */
TEST(job_progress_by_ranges)
{
    struct patterns patterns;
    struct buf body = {0};
    struct spent progress = {0}, ranges = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/j", "{\"total\":10000,\"first\":1,\"tolerate\":10}");
    for (int from = 1; from <= 6000; from += 1000) {
        body.len = 0;
        buf_text(&body, "{\"tasks\":[");
        for (int i = 0; i < 1000; i++) buf_printf(&body, "%s%d", i ? "," : "", from + i);
        buf_put(&body, "]}", 3);
        asks(&patterns, "POST /v1/jobs/j/done", body.data);
        CHECK_INT(patterns.call.status, 200);
    }
    asks(&patterns, "POST /v1/jobs/j/failed", "{\"task\":10000,\"reason\":\"no ink\"}");
    spend(&patterns, "GET /v1/jobs/j?progress=1&cost=1", NULL, &progress);
    spend(&patterns, "GET /v1/jobs/j?ranges=4&cost=1", NULL, &ranges);
    CHECK(ranges.reads <= progress.reads);
    struct slice reply = asks(&patterns, "GET /v1/jobs/j?ranges=4", NULL);
    CHECK(slice_contains(reply, SLICE("\"exact\":false"))); /* more than 16 leaves are not full */
    CHECK(slice_contains(reply, SLICE("\"ranges\":{\"tasks\":2560,\"done\":[2560,2560,")));
    CHECK(slice_contains(reply, SLICE(",0],\"failed\":[0,0,0,1]}")));
    reply = asks(&patterns, "GET /v1/jobs/j?ranges=4&exact=1", NULL);
    CHECK(slice_contains(reply,
                         SLICE("\"ranges\":{\"tasks\":2560,\"done\":[2560,2560,880,0],\"failed\":[0,0,0,1]}")));
    for (int from = 6001; from <= 10000; from += 1000) {
        body.len = 0;
        buf_text(&body, "{\"tasks\":[");
        for (int i = 0; i < 1000 - (from == 9001); i++) buf_printf(&body, "%s%d", i ? "," : "", from + i);
        buf_put(&body, "]}", 3);
        asks(&patterns, "POST /v1/jobs/j/done", body.data);
    }
    reply = asks(&patterns, "GET /v1/jobs/j?ranges=1", NULL); /* a job that has ended tells them, too */
    CHECK(slice_contains(reply, SLICE("\"state\":\"COMPLETE\"")));
    CHECK(slice_contains(reply, SLICE("\"ranges\":{\"tasks\":10240,\"done\":[9999],\"failed\":[1]}")));
    asks(&patterns, "PUT /v1/jobs/named", "{\"tasks\":[\"a\",\"b\"]}");
    CHECK(!slice_contains(asks(&patterns, "GET /v1/jobs/named?ranges=1", NULL), SLICE("ranges")));
    asks(&patterns, "GET /v1/jobs/j?ranges=10001", NULL);
    CHECK_INT(patterns.call.status, 400);
    buf_free(&body);
    patterns_close(&patterns);
}

/* The total is not known yet: what the first leaves have reported is there when there are many. */
TEST(job_progress_without_a_total)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/j", "{}");
    for (int from = 0; from < 8000; from += 1000) {
        body.len = 0;
        buf_text(&body, "{\"tasks\":[");
        for (int i = 0; i < 1000; i++) buf_printf(&body, "%s%d", i ? "," : "", from + i);
        buf_put(&body, "]}", 3);
        asks(&patterns, "POST /v1/jobs/j/done", body.data);
        CHECK_INT(patterns.call.status, 200);
    }
    int64_t least = told(&patterns, "GET /v1/jobs/j?progress=1", "done");
    CHECK(least <= 8000 && least > 8000 - 64);
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?exact=1", "done"), 8000);
    buf_free(&body);
    patterns_close(&patterns);
}

/* Names: their leaves are of different sizes, and what is full is told by the tally. */
TEST(job_progress_of_many_names)
{
    struct patterns patterns;
    struct buf body = {0};
    struct spent spent = {0};
    patterns_open(&patterns);
    buf_text(&body, "{\"tasks\":[");
    for (int i = 0; i < 6000; i++) buf_printf(&body, "%s\"n%d\"", i ? "," : "", i);
    buf_put(&body, "]}", 3);
    asks(&patterns, "PUT /v1/jobs/j", body.data);
    CHECK(patterns.call.status < 300);
    for (int from = 0; from < 4000; from += 1000) {
        body.len = 0;
        buf_text(&body, "{\"tasks\":[");
        for (int i = 0; i < 1000; i++) buf_printf(&body, "%s\"n%d\"", i ? "," : "", from + i);
        buf_put(&body, "]}", 3);
        asks(&patterns, "POST /v1/jobs/j/done", body.data);
        CHECK_INT(patterns.call.status, 200);
    }
    spend(&patterns, "GET /v1/jobs/j?progress=1&cost=1", NULL, &spent);
    int64_t least = told(&patterns, "GET /v1/jobs/j?progress=1", "done");
    CHECK(spent.reads <= 5 && least <= 4000 && least >= 2400);
    CHECK_INT(told(&patterns, "GET /v1/jobs/j?exact=1", "done"), 4000);
    buf_free(&body);
    patterns_close(&patterns);
}
