/* Slots of indexes: they become more where much is opened, and whatever is in them is found. */
#include "base/hash.h"
#include "pattern/slots.h"
#include "unit/pattern_fixture.h"

#define SAMPLED 256 /* as in slots.c: one in so many is counted */

/* The next number behind this one that makes an id which is counted: "NAME/KEY" of a group. */
static int next_counted(const char *before, int number)
{
    char id[40];
    do snprintf(id, sizeof id, "%s%d", before, ++number);
    while ((hash_bytes(slice_of(id)) >> 32) % SAMPLED);
    return number;
}

/* Opens jobs that are counted, so long after one another. The last number. */
static int open_jobs(struct patterns *patterns, int count, int number, int64_t pause_ms)
{
    char request[80];
    for (int i = 0; i < count; i++) {
        number = next_counted("j", number);
        snprintf(request, sizeof request, "PUT /v1/jobs/j%d", number);
        asks(patterns, request, "{\"total\":1,\"deadline\":\"10m\"}");
        CHECK_INT(patterns->call.status, 201);
        patterns->now_ms += pause_ms;
    }
    return number;
}

/* A number of an item of a table; -1: it is not there. */
static int64_t stored(struct patterns *patterns, const char *table, const char *key, const char *name)
{
    struct buf reply = {0};
    struct arena arena = {0};
    struct slice call = arena_printf(&arena, "{\"TableName\":\"%s%s\",\"Key\":%s}", patterns->prefix, table,
                                     key);
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("GetItem"), call, &reply), 200);
    int64_t number = item_int(&arena, raw_member(&arena, buf_view(&reply), "Item"), name, -1);
    buf_free(&reply);
    arena_free(&arena);
    return number;
}

static int64_t job_slots_stored(struct patterns *patterns)
{
    return stored(patterns, "job-parts", "{\"part\":{\"S\":\"slots\"},\"task\":{\"S\":\"-\"}}", "slots");
}

static struct pattern *another_process(struct patterns *patterns)
{
    return pattern_open(&(struct pattern_options){.dynamo = patterns->dynamo,
                                                  .clock = &patterns->clock,
                                                  .prefix = patterns->prefix,
                                                  .skew_ms = -1,
                                                  .seed = 2});
}

static size_t listed(struct patterns *patterns, const char *request, const char *name)
{
    struct slice reply = asks(patterns, request, NULL);
    return raw_count(&patterns->arena, raw_member(&patterns->arena, reply, name));
}

TEST(slots_of_jobs_become_more_when_many_are_opened)
{
    struct patterns patterns;
    struct buf reply = {0};
    patterns_open(&patterns);
    struct pattern *one = patterns.pattern, *other = another_process(&patterns);
    int last = open_jobs(&patterns, 15, 0, 1);
    CHECK_INT(job_slots_stored(&patterns), SLOTS_LEAST);
    last = open_jobs(&patterns, 1, last, 1);
    CHECK_INT(job_slots_stored(&patterns), 4 * SLOTS_LEAST);
    for (int i = 0; i < 4; i++) last = open_jobs(&patterns, 16, last, 1);
    CHECK_INT(job_slots_stored(&patterns), SLOTS_MOST);
    last = open_jobs(&patterns, 20, last, 1); /* no more than that */
    CHECK_INT(job_slots_stored(&patterns), SLOTS_MOST);
    CHECK_INT(listed(&patterns, "GET /v1/jobs", "jobs"), 100);
    struct slice gone = arena_printf(&patterns.arena,
                                     "{\"TableName\":\"%sjob-parts\",\"Key\":{\"part\":{\"S\":\"slots\"},"
                                     "\"task\":{\"S\":\"-\"}}}",
                                     patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("DeleteItem"), gone, &reply), 200);
    CHECK_INT(listed(&patterns, "GET /v1/jobs", "jobs"), 100); /* it remembers, and says so */
    CHECK_INT(job_slots_stored(&patterns), SLOTS_MOST);
    patterns.pattern = other; /* which knows of four */
    CHECK_INT(listed(&patterns, "GET /v1/jobs", "jobs"), 100);
    patterns.pattern = another_process(&patterns); /* and one that sweeps before it has learnt of more */
    patterns.now_ms += 3600 * 1000;
    CHECK_INT(pattern_sweep(patterns.pattern, &reply), 200);
    CHECK_INT(listed(&patterns, "GET /v1/jobs", "jobs"), 0);
    CHECK_INT(listed(&patterns, "GET /v1/jobs?state=expired&limit=1000", "jobs"), 100);
    pattern_close(other);
    pattern_close(patterns.pattern);
    patterns.pattern = one;
    buf_free(&reply);
    patterns_close(&patterns);
}

/* 4,096 jobs within five seconds are 819 a second. */
TEST(slots_of_jobs_stay_when_few_are_opened)
{
    struct patterns patterns;
    patterns_open(&patterns);
    open_jobs(&patterns, 40, 0, 5000 / 16 + 1);
    CHECK_INT(job_slots_stored(&patterns), SLOTS_LEAST);
    patterns_close(&patterns);
}

/* Each name has its own. Rules that are changed come to the groups of all slots. */
TEST(slots_of_groups_become_more_when_many_are_opened)
{
    struct patterns patterns;
    struct buf reply = {0};
    char request[80];
    int number = 0;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2},\"deadline\":\"1h\"}");
    asks(&patterns, "PUT /v1/groups/h", "{\"complete\":{\"size\":2}}");
    asks(&patterns, "POST /v1/groups/h/k", "{}");
    for (int i = 0; i < 40; i++) {
        number = next_counted("g/k", number);
        snprintf(request, sizeof request, "POST /v1/groups/g/k%d", number);
        asks(&patterns, request, "{}");
    }
    CHECK_INT(stored(&patterns, "group-events", "{\"part\":{\"S\":\"g\"},\"id\":{\"S\":\"-\"}}", "slots"),
              64);
    CHECK_INT(stored(&patterns, "group-events", "{\"part\":{\"S\":\"h\"},\"id\":{\"S\":\"-\"}}", "slots"),
              -1);
    struct pattern *one = patterns.pattern;
    patterns.pattern = another_process(&patterns);
    CHECK_INT(listed(&patterns, "GET /v1/groups/g?state=open", "groups"), 40);
    CHECK_INT(listed(&patterns, "GET /v1/groups/h?state=open", "groups"), 1);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":3},\"deadline\":\"1m\"}");
    patterns.now_ms += 2 * 60 * 1000;
    CHECK_INT(pattern_sweep(patterns.pattern, &reply), 200);
    CHECK_INT(listed(&patterns, "GET /v1/groups/g?state=open", "groups"), 0);
    CHECK_INT(listed(&patterns, "GET /v1/groups/h?state=open", "groups"), 1);
    pattern_close(patterns.pattern);
    patterns.pattern = one;
    buf_free(&reply);
    patterns_close(&patterns);
}
