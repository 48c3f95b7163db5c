/* What others react to: of all that jobs and groups write, exactly the changes that somebody waits for. */
#include "match/match.h"
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

static struct slice call(struct patterns *patterns, const char *operation, struct slice request,
                         struct buf *reply)
{
    reply->len = 0;
    CHECK_INT(dynamo_call(patterns->dynamo, slice_of(operation), request, reply), 200);
    return buf_view(reply);
}

static struct slice text_of(struct arena *arena, struct slice object, const char *name)
{
    return raw_text(arena, raw_member(arena, object, name));
}

/* The records of a shard, from its beginning. */
static struct slice records_of(struct patterns *patterns, struct arena *arena, struct slice stream,
                               struct slice shard, struct buf *reply)
{
    struct slice request = arena_printf(
        arena, "{\"StreamArn\":\"%.*s\",\"ShardId\":\"%.*s\",\"ShardIteratorType\":\"TRIM_HORIZON\"}",
        SLICE_ARG(stream), SLICE_ARG(shard));
    struct slice iterator = text_of(arena, call(patterns, "GetShardIterator", request, reply),
                                    "ShardIterator");
    request = arena_printf(arena, "{\"ShardIterator\":\"%.*s\"}", SLICE_ARG(iterator));
    return arena_copy(arena, raw_member(arena, call(patterns, "GetRecords", request, reply), "Records"));
}

/* The table's stream, and its shards as a list. */
static struct slice shards_of(struct patterns *patterns, struct arena *arena, const char *table,
                              struct slice *stream, struct buf *reply)
{
    struct slice request = arena_printf(arena, "{\"TableName\":\"%s%s\"}", patterns->prefix, table);
    struct slice described = raw_member(arena, call(patterns, "DescribeTable", request, reply), "Table");
    *stream = arena_copy(arena, text_of(arena, described, "LatestStreamArn"));
    request = arena_printf(arena, "{\"StreamArn\":\"%.*s\"}", SLICE_ARG(*stream));
    described = raw_member(arena, call(patterns, "DescribeStream", request, reply), "StreamDescription");
    return arena_copy(arena, raw_member(arena, described, "Shards"));
}

/* How many records of the table's stream the filter lets through. */
static unsigned reactions(struct patterns *patterns, const char *table, unsigned *records)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct raw_walk shards, walk;
    struct slice stream, shard, record;
    char error[200];
    unsigned count = 0;
    size_t i = 0;
    while (strcmp(pattern_reactions[i].table, table) != 0) i++;
    struct event_pattern *filter = pattern_compile(&arena, slice_of(pattern_reactions[i].filter), error,
                                                   sizeof error);
    CHECK(filter);
    *records = 0;
    raw_walk_begin(&shards, &arena, shards_of(patterns, &arena, table, &stream, &reply));
    while (raw_walk_next(&shards, NULL, &shard)) {
        raw_walk_begin(&walk, &arena,
                       records_of(patterns, &arena, stream, text_of(&arena, shard, "ShardId"), &reply));
        for (; raw_walk_next(&walk, NULL, &record); ++*records)
            count += pattern_matches(filter, record, &arena);
    }
    arena_free(&arena);
    buf_free(&reply);
    return count;
}

TEST(reactions_to_jobs)
{
    struct patterns patterns;
    unsigned records;
    char body[40];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/jobs/a", "{\"total\":500,\"then\":\"consolidate\"}");
    for (int i = 0; i < 500; i++) {
        snprintf(body, sizeof body, "{\"task\":%d}", i);
        asks(&patterns, "POST /v1/jobs/a/done", body);
    }
    CHECK_INT(reactions(&patterns, "jobs", &records), 1);
    CHECK_INT(records, 2); /* opened, complete: its tasks are counted elsewhere */
    asks(&patterns, "PUT /v1/jobs/nobody", "{\"total\":1}");
    asks(&patterns, "POST /v1/jobs/nobody/done", "{\"task\":0}");
    asks(&patterns, "POST /v1/jobs/a/done", "{\"task\":0}");
    CHECK_INT(reactions(&patterns, "jobs", &records), 1);
    asks(&patterns, "PUT /v1/jobs/b",
         "{\"total\":2,\"then\":{\"url\":\"http://localhost/b\"},\"deadline\":\"10s\"}");
    asks(&patterns, "POST /v1/jobs/b/failed", "{\"task\":0}"); /* FAILED */
    asks(&patterns, "POST /v1/jobs/b/failed", "{\"task\":1}");
    CHECK_INT(reactions(&patterns, "jobs", &records), 2);
    asks(&patterns, "POST /v1/jobs/b/redrive", NULL);
    patterns.now_ms += 10000;
    asks(&patterns, "GET /v1/jobs/b", NULL); /* EXPIRED */
    CHECK_INT(reactions(&patterns, "jobs", &records), 3);
    patterns_close(&patterns);
}

TEST(reactions_to_groups)
{
    struct patterns patterns;
    unsigned records;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2},\"late\":\"append\",\"then\":\"mail\"}");
    for (int i = 0; i < 5; i++) asks(&patterns, "POST /v1/groups/g/k", "{\"data\":1}");
    CHECK_INT(reactions(&patterns, "groups", &records), 1); /* at two, not at three, four, five */
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2},\"late\":\"new\",\"then\":\"mail\"}");
    for (int i = 0; i < 5; i++) asks(&patterns, "POST /v1/groups/g/l", "{\"data\":1}");
    CHECK_INT(reactions(&patterns, "groups", &records), 3);
    asks(&patterns, "DELETE /v1/groups/g/l", NULL);
    CHECK_INT(reactions(&patterns, "groups", &records), 3);
    patterns_close(&patterns);
}
