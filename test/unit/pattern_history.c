/* Histories by their words, fed with what the streams of tables really hold. */
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/flow.h"
#include "base/attribute.h"
#include "pattern/rows.h"
#include "unit/pattern_fixture.h"

#define TABLE "orders"

static struct slice call(struct patterns *patterns, const char *operation, const char *format, ...)
{
    static struct buf reply;
    va_list args;
    va_start(args, format);
    struct slice request = arena_vprintf(&patterns->arena, format, args);
    va_end(args);
    buf_free(&reply);
    if (dynamo_call(patterns->dynamo, slice_of(operation), request, &reply) != 200)
        test_failed(__FILE__, __LINE__, "%s: %.*s", operation, SLICE_ARG(buf_view(&reply)));
    struct slice copy = arena_copy(&patterns->arena, buf_view(&reply));
    buf_free(&reply);
    return copy;
}

/* "S", "N" or "B" of the hash key `id` and, where it is there, of the range key `at`. */
static void make_table(struct patterns *patterns, const char *name, const char *types)
{
    bool has_range = types[1];
    struct slice range = arena_printf(
        &patterns->arena, ",{\"AttributeName\":\"at\",\"AttributeType\":\"%c\"}", has_range ? types[1] : 'S');
    call(
        patterns, "CreateTable",
        "{\"TableName\":\"%s%s\",\"BillingMode\":\"PAY_PER_REQUEST\","
        "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}%s],"
        "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"%c\"}%.*s]}",
        patterns->prefix, name, has_range ? ",{\"AttributeName\":\"at\",\"KeyType\":\"RANGE\"}" : "",
        types[0], has_range ? (int)range.len : 0, range.data);
}

static void put(struct patterns *patterns, const char *item)
{
    call(patterns, "PutItem", "{\"TableName\":\"%s" TABLE "\",\"Item\":%s}", patterns->prefix, item);
}

static struct slice text_of(struct patterns *patterns, struct slice object, const char *name)
{
    return raw_text(&patterns->arena, raw_member(&patterns->arena, object, name));
}

static void feed(struct patterns *patterns, const char *table, struct slice records)
{
    struct slice body = arena_printf(&patterns->arena, "{\"Records\":%.*s}", SLICE_ARG(records));
    struct arena kept = patterns->arena; /* asks empties the arena, and the request is in it */
    char *copy = strndup(body.data, body.len), request[300];
    patterns->arena = (struct arena){0};
    snprintf(request, sizeof request, "POST /v1/history/%s%s", patterns->prefix, table);
    struct slice reply = asks(patterns, request, copy);
    if (patterns->call.status != 200) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(reply));
    free(copy);
    arena_free(&patterns->arena);
    patterns->arena = kept;
}

/* What the stream holds goes into the history, from its begin: what is there already stays as it is. */
static void pump(struct patterns *patterns, const char *table)
{
    struct raw_walk walk;
    struct slice shard;
    struct slice described = call(patterns, "DescribeTable", "{\"TableName\":\"%s%s\"}", patterns->prefix,
                                  table);
    struct slice arn = text_of(patterns, raw_member(&patterns->arena, described, "Table"), "LatestStreamArn");
    struct slice stream = call(patterns, "DescribeStream", "{\"StreamArn\":\"%.*s\"}", SLICE_ARG(arn));
    raw_walk_begin(
        &walk, &patterns->arena,
        raw_member(&patterns->arena, raw_member(&patterns->arena, stream, "StreamDescription"), "Shards"));
    while (raw_walk_next(&walk, NULL, &shard)) {
        struct slice id = text_of(patterns, shard, "ShardId");
        struct slice iterator = call(
            patterns, "GetShardIterator",
            "{\"StreamArn\":\"%.*s\",\"ShardId\":\"%.*s\",\"ShardIteratorType\":\"TRIM_HORIZON\"}",
            SLICE_ARG(arn), SLICE_ARG(id));
        struct slice records = call(patterns, "GetRecords", "{\"ShardIterator\":\"%.*s\",\"Limit\":100}",
                                    SLICE_ARG(text_of(patterns, iterator, "ShardIterator")));
        records = raw_member(&patterns->arena, records, "Records");
        if (raw_count(&patterns->arena, records)) feed(patterns, table, records);
    }
}

static const char *path(struct patterns *patterns, const char *method, const char *rest)
{
    static char request[600];
    int len = snprintf(request, sizeof request, "%s /v1/history/%s" TABLE "%s", method, patterns->prefix,
                       rest);
    CHECK(len < (int)sizeof request);
    return request;
}

static struct slice get(struct patterns *patterns, const char *rest)
{
    return asks(patterns, path(patterns, "GET", rest), NULL);
}

/* Three versions a minute apart, 04:13, 04:14, 04:15, then removed at 04:16. */
static void make_history(struct patterns *patterns)
{
    make_table(patterns, TABLE, "S");
    asks(patterns, path(patterns, "PUT", ""), "{\"keep\":\"30d\"}");
    CHECK_INT(patterns->call.status, 200);
    put(patterns, "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"1\"},\"s\":{\"SS\":[\"x\"]}}");
    patterns->now_ms += 60000;
    put(patterns, "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"2\"},\"s\":{\"SS\":[\"x\"]}}");
    put(patterns, "{\"id\":{\"S\":\"other\"}}");
    patterns->now_ms += 60000;
    put(patterns, "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"2\"},\"t\":{\"BOOL\":true}}");
    patterns->now_ms += 60000;
    call(patterns, "DeleteItem", "{\"TableName\":\"%s" TABLE "\",\"Key\":{\"id\":{\"S\":\"a b\"}}}",
         patterns->prefix);
    for (int i = 0; i < 2; i++) pump(patterns, TABLE);
}

TEST(history_needs_a_table)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, path(&patterns, "PUT", ""), NULL, 404, "no-such-table");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", ""), NULL, 404, "no-such-history");
    CHECK_ASKS(&patterns, "GET /v1/history", NULL, 200, "{\"histories\":[]}");
    make_table(&patterns, TABLE, "SN");
    struct slice reply = asks(&patterns, path(&patterns, "PUT", ""), "{\"keep\":\"30d\",\"versions\":5}");
    CHECK_INT(patterns.call.status, 200);
    CHECK(slice_contains(reply,
                         SLICE("\"hash\":\"id\",\"range\":\"at\",\"since\":\"2054-11-15T04:13:25.340Z\"")));
    CHECK(slice_contains(reply, SLICE("\"keep\":\"30d\",\"versions\":5")));
    CHECK(slice_contains(get(&patterns, ""), SLICE("\"versions\":5")));
    CHECK(slice_contains(asks(&patterns, "GET /v1/history", NULL), SLICE("\"versions\":5,")));
    asks(&patterns, path(&patterns, "PUT", ""), NULL); /* what is not said is not so */
    CHECK(!slice_contains(get(&patterns, ""), SLICE("\"versions\":5")));
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a"), NULL, 400, "bad-request"); /* the range key */
    CHECK_ASKS(&patterns, path(&patterns, "GET", "/a?range=7"), NULL, 200, "{\"versions\":[]}");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a?range=x"), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a?range=7&at=noon"), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a?range=7&at=2054-11-15T04:13:25Z&version=x"), NULL,
                  400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a?range=7&against=x"), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns,
                  path(&patterns, "GET", "/a?range=7&from=2054-11-15T04:13:25Z&to=2054-11-15T04:13:24Z"),
                  NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "POST", ""), "{\"Records\":[{}]}", 400, "bad-request");
    CHECK_ASKS(&patterns, path(&patterns, "DELETE", ""), NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, path(&patterns, "DELETE", ""), NULL, 404, "no-such-history");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a?range=7"), NULL, 404, "no-such-history");
    CHECK_ASKS(&patterns, "GET /v1/history", NULL, 200, "{\"histories\":[]}");
    patterns_close(&patterns);
}

TEST(history_refuses_tables_that_recording_changes)
{
    struct patterns patterns;
    char request[200];
    patterns_open(&patterns);
    static const char *const names[] = {"history", "histories", "positions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(request, sizeof request, "PUT /v1/history/%s%s", patterns.prefix, names[i]);
        CHECK_REFUSES(&patterns, request, NULL, 409, "endless");
    }
    call(&patterns, "CreateTable",
         "{\"TableName\":\"%s" TABLE "\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{"
         "\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],"
         "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}],"
         "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"KEYS_ONLY\"}}",
         patterns.prefix);
    CHECK_REFUSES(&patterns, path(&patterns, "PUT", ""), NULL, 409, "no-images");
    patterns_close(&patterns);
}

/* However a number is written it is the same key; binary keys are base64; any character may be in a key. */
TEST(history_knows_keys_of_all_types)
{
    struct patterns patterns;
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "NB");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    put(&patterns, "{\"id\":{\"N\":\"100\"},\"at\":{\"B\":\"/+8=\"}}");
    put(&patterns, "{\"id\":{\"N\":\"-0.5\"},\"at\":{\"B\":\"/+8=\"}}");
    pump(&patterns, TABLE);
    static const char *const keys[] = {"/100?range=%2F%2B8%3D", "/1e2?range=/%2B8=", "/100.0?range=/%2B8=",
                                       "/-0.5?range=/%2B8=", "/-5E-1?range=/%2B8="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK(slice_contains(get(&patterns, keys[i]), SLICE("\"event\":\"INSERT\"")));
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/x?range=/%2B8="), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/1e999?range=/%2B8="), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/1?range=8"), NULL, 400, "bad-request");
    patterns_close(&patterns);
}

/* A key that fills all that a key may have, of characters that are escaped; and an image that is nested as
 * deep as it may be. */
TEST(history_keeps_what_is_at_the_limits)
{
    struct patterns patterns;
    static char item[9000], rest[7000];
    char *at = item;
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    at += sprintf(at, "{\"id\":{\"S\":\"");
    for (int i = 0; i < 2048; i++) *at++ = '/';
    at += sprintf(at, "\"},\"deep\":");
    for (int i = 0; i < 31; i++) at += sprintf(at, "{\"L\":[");
    at += sprintf(at, "{\"S\":\"\\\"}\"}");
    for (int i = 0; i < 31; i++) at += sprintf(at, "]}");
    sprintf(at, "}");
    put(&patterns, item);
    pump(&patterns, TABLE);
    at = rest;
    *at++ = '/';
    for (int i = 0; i < 2048; i++) at += sprintf(at, "%%2F");
    static char request[7100];
    snprintf(request, sizeof request, "GET /v1/history/%s" TABLE "%s", patterns.prefix, rest);
    struct slice reply = asks(&patterns, request, NULL);
    CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, reply, "versions")), 1);
    CHECK(slice_contains(reply, SLICE("[\"\\\"}\"]")));
    patterns_close(&patterns);
}

/* The versions of "a b". */
static int versions_of(struct patterns *patterns, char versions[][100], int most)
{
    struct slice all = get(patterns, "/a%20b"), version;
    struct raw_walk walk;
    int count = 0;
    raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, all, "versions"));
    while (count < most && raw_walk_next(&walk, NULL, &version))
        snprintf(versions[count++], 100, "%.*s", SLICE_ARG(text_of(patterns, version, "version")));
    return count;
}

/* "a;b": the changes that a version tells, in any order. */
static void check_changes(struct patterns *patterns, struct slice version, const char *wanted)
{
    struct slice changes = raw_member(&patterns->arena, version, "changes");
    size_t count = 1;
    for (const char *at = wanted, *end; at; at = end ? end + 1 : NULL, count += at != NULL) {
        end = strchr(at, ';');
        struct slice change = {at, end ? (size_t)(end - at) : strlen(at)};
        if (!slice_contains(changes, change))
            test_failed(__FILE__, __LINE__, "%.*s is not in %.*s", SLICE_ARG(change), SLICE_ARG(version));
    }
    CHECK_INT((int64_t)raw_count(&patterns->arena, changes), (int64_t)count);
}

#define ALL_BEFORE                                                                                           \
    "{\"name\":\"id\",\"before\":\"a b\"};{\"name\":\"n\",\"before\":2};{\"name\":\"t\",\"before\":true}"
#define ALL_AFTER                                                                                            \
    "{\"name\":\"id\",\"after\":\"a b\"};{\"name\":\"n\",\"after\":1};{\"name\":\"s\",\"after\":[\"x\"]}"
#define N_CHANGED "{\"name\":\"n\",\"before\":1,\"after\":2}"
#define T_FOR_S   "{\"name\":\"t\",\"after\":true};{\"name\":\"s\",\"before\":[\"x\"]}"

TEST(history_tells_versions_and_what_changed)
{
    static const char *const events[] = {"INSERT", "MODIFY", "MODIFY", "REMOVE"};
    static const char *const changes[] = {ALL_AFTER, N_CHANGED, T_FOR_S, ALL_BEFORE};
    struct patterns patterns;
    struct raw_walk walk;
    struct slice version;
    unsigned count = 0;
    patterns_open(&patterns);
    make_history(&patterns);
    struct slice all = get(&patterns, "/a%20b?diff");
    raw_walk_begin(&walk, &patterns.arena, raw_member(&patterns.arena, all, "versions"));
    for (; count < 4 && raw_walk_next(&walk, NULL, &version); count++) {
        CHECK_TEXT(text_of(&patterns, version, "event"), events[count]);
        check_changes(&patterns, version, changes[count]);
    }
    CHECK(count == 4 && !raw_walk_next(&walk, NULL, &version));
    patterns_close(&patterns);
}

/* The item is older than its history, or the version before was pruned: the change itself says what it
 * replaced. */
TEST(history_tells_what_the_first_version_changed)
{
    struct patterns patterns;
    char versions[2][100], rest[300];
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    put(&patterns,
        "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"1\"},\"s\":{\"SS\":[\"x\"]},\"u\":{\"S\":\"same\"}}");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    put(&patterns,
        "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"2\"},\"t\":{\"BOOL\":true},\"u\":{\"S\":\"same\"}}");
    call(&patterns, "DeleteItem", "{\"TableName\":\"%s" TABLE "\",\"Key\":{\"id\":{\"S\":\"a b\"}}}",
         patterns.prefix);
    pump(&patterns, TABLE);
    CHECK_INT(versions_of(&patterns, versions, 2), 2);
    snprintf(rest, sizeof rest, "/a%%20b?diff&version=%s", versions[0]);
    check_changes(&patterns, get(&patterns, rest), N_CHANGED ";" T_FOR_S);
    call(&patterns, "DeleteItem",
         "{\"TableName\":\"%shistory\",\"Key\":{\"item\":{\"S\":\"%s" TABLE
         "/id=a%%20b\"},\"version\":{\"S\":\"%s\"}}}",
         patterns.prefix, patterns.prefix, versions[0]);
    snprintf(rest, sizeof rest, "/a%%20b?diff&version=%s", versions[1]);
    check_changes(&patterns, get(&patterns, rest), ALL_BEFORE ";{\"name\":\"u\",\"before\":\"same\"}");
    patterns_close(&patterns);
}

TEST(history_compares_versions)
{
    struct patterns patterns;
    struct raw_walk walk;
    struct slice version;
    char versions[4][100], rest[300];
    patterns_open(&patterns);
    make_history(&patterns);
    CHECK_INT(versions_of(&patterns, versions, 4), 4);
    /* the first of a page, with the last of the page before */
    snprintf(rest, sizeof rest, "/a%%20b?diff&limit=1&after=%s", versions[0]);
    struct slice page = get(&patterns, rest);
    raw_walk_begin(&walk, &patterns.arena, raw_member(&patterns.arena, page, "versions"));
    CHECK(raw_walk_next(&walk, NULL, &version));
    check_changes(&patterns, version, N_CHANGED);
    snprintf(rest, sizeof rest, "/a%%20b?diff&version=%s", versions[3]);
    check_changes(&patterns, get(&patterns, rest), ALL_BEFORE);
    snprintf(rest, sizeof rest, "/a%%20b?version=%s&against=%s", versions[2], versions[0]);
    check_changes(&patterns, get(&patterns, rest), N_CHANGED ";" T_FOR_S);
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a%20b?version=2054"), NULL, 404, "no-version");
    patterns_close(&patterns);
}

TEST(history_knows_what_held_at_a_time)
{
    static const struct {
        const char *at, *item;
    } cases[] = {{"2054-11-15T04:13:25Z", "{\"id\":\"a b\",\"n\":1,\"s\":[\"x\"]}"},
                 {"2054-11-15T04:14:24Z", "{\"id\":\"a b\",\"n\":1,\"s\":[\"x\"]}"},
                 {"2054-11-15T04:14:25Z", "{\"id\":\"a b\",\"n\":2,\"s\":[\"x\"]}"},
                 {"2054-11-15T04:16:00Z", "{\"id\":\"a b\",\"n\":2,\"t\":true}"},
                 {"2054-11-15T04:17:00Z", "null"}};
    struct patterns patterns;
    char rest[100];
    patterns_open(&patterns);
    if (getenv("PATTERNS_ON")) { /* there the clock of the changes is another's */
        patterns_close(&patterns);
        return;
    }
    make_history(&patterns);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(rest, sizeof rest, "/a%%20b?at=%s", cases[i].at);
        struct slice reply = get(&patterns, rest);
        CHECK_TEXT(raw_member(&patterns.arena, reply, "item"), cases[i].item);
    }
    check_changes(&patterns, get(&patterns, "/a%20b?at=2054-11-15T04:16:00Z&against=2054-11-15T04:14:00Z"),
                  N_CHANGED ";" T_FOR_S);
    struct slice page = get(&patterns, "/a%20b?from=2054-11-15T04:14:00Z&to=2054-11-15T04:15:30Z");
    CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, page, "versions")), 2);
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a%20b?at=2054-11-15T04:13:24Z"), NULL, 404,
                  "no-version");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/x?at=2054-11-15T04:13:30Z"), NULL, 404, "no-version");
    patterns_close(&patterns);
}

/* The stream's time is a second; a server that has the data in it knows more, and tells how much it knows. */
/* The item's n, wherever the engine puts it among its attributes. */
static bool says_n(struct slice reply, int n)
{
    char last[30], inner[30];
    snprintf(last, sizeof last, "\"n\":%d}", n);
    snprintf(inner, sizeof inner, "\"n\":%d,", n);
    return slice_contains(reply, slice_of(last)) || slice_contains(reply, slice_of(inner));
}

TEST(history_tells_how_exact_a_time_is)
{
    struct patterns patterns;
    struct buf records = {0};
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    for (int i = 0; i <= 60; i++) /* more than one page of them in one second, 10 ms apart */
        buf_printf(
            &records,
            "%c{\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":2678328805,"
            "\"Keys\":{\"id\":{\"S\":\"a b\"}},\"NewImage\":{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"%d\"}},"
            "\"SequenceNumber\":\"%d\"}%s%d}",
            i ? ',' : '[', i, i + 100, ",\"time\":2678328805", 100 + i * 10);
    buf_byte(&records, ']');
    feed(&patterns, TABLE, buf_view(&records));
    struct slice reply = get(&patterns, "/a%20b?at=2054-11-15T04:13:25.105Z");
    CHECK(slice_contains(reply, SLICE("\"time\":\"2054-11-15T04:13:25.100Z\",\"precision\":\"1ms\"")));
    CHECK(says_n(reply, 0));
    CHECK(says_n(get(&patterns, "/a%20b?at=2054-11-15T04:13:25.500Z"), 40));
    CHECK(says_n(get(&patterns, "/a%20b?at=2054-11-15T04:13:26Z"), 60));
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "/a%20b?at=2054-11-15T04:13:25.099Z"), NULL, 404,
                  "no-version");
    struct slice page = get(&patterns, "/a%20b?from=2054-11-15T04:13:25.305Z&to=2054-11-15T04:13:25.330Z");
    CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, page, "versions")), 3);
    CHECK(says_n(
        asks(&patterns, path(&patterns, "POST", "/a%20b/restore"), "{\"at\":\"2054-11-15T04:13:25.119Z\"}"),
        1));
    put(&patterns, "{\"id\":{\"S\":\"other\"}}");
    pump(&patterns, TABLE); /* as anybody reads the stream */
    CHECK(slice_contains(get(&patterns, "/other?at=2064-11-15T04:13:25Z"), SLICE("\"precision\":\"1s\"")));
    CHECK(!slice_contains(get(&patterns, "/other"), SLICE("precision")));
    buf_free(&records);
    patterns_close(&patterns);
}

static struct slice current(struct patterns *patterns)
{
    return call(patterns, "GetItem", "{\"TableName\":\"%s" TABLE "\",\"Key\":{\"id\":{\"S\":\"a b\"}}}",
                patterns->prefix);
}

TEST(history_restores)
{
    struct patterns patterns;
    char body[300], versions[8][100];
    patterns_open(&patterns);
    make_history(&patterns);
    CHECK_INT(versions_of(&patterns, versions, 8), 4);
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a%20b/restore"), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a%20b/restore"), "{\"version\":\"x\"}", 404,
                  "no-version");
    snprintf(body, sizeof body, "{\"version\":\"%s\"}", versions[1]);
    struct slice reply = asks(&patterns, path(&patterns, "POST", "/a%20b/restore"), body);
    CHECK_INT(patterns.call.status, 200);
    struct slice item = raw_member(&patterns.arena, reply, "item");
    CHECK(slice_contains(item, SLICE("\"n\":2")) && slice_contains(item, SLICE("\"s\":[\"x\"]")));
    CHECK_TEXT(raw_member(&patterns.arena, reply, "replaced"), "null");
    CHECK(slice_contains(current(&patterns), SLICE("{\"N\":\"2\"}")));
    snprintf(body, sizeof body, "{\"version\":\"%s\"}", versions[0]);
    reply = asks(&patterns, path(&patterns, "POST", "/a%20b/restore"), body);
    CHECK_INT(patterns.call.status, 200);
    CHECK(slice_contains(raw_member(&patterns.arena, reply, "replaced"), SLICE("\"n\":2")));
    CHECK(slice_contains(current(&patterns), SLICE("{\"N\":\"1\"}")));
    snprintf(body, sizeof body, "{\"version\":\"%s\"}", versions[3]); /* it was not there */
    asks(&patterns, path(&patterns, "POST", "/a%20b/restore"), body);
    CHECK_INT(patterns.call.status, 200);
    CHECK(!slice_contains(current(&patterns), SLICE("Item")));
    pump(&patterns, TABLE);
    CHECK_INT(versions_of(&patterns, versions, 8), 7); /* each is a version itself */
    patterns_close(&patterns);
}

TEST(history_restores_by_a_number_for_a_range_key)
{
    struct patterns patterns;
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "SN");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    put(&patterns, "{\"id\":{\"S\":\"a\"},\"at\":{\"N\":\"1\"},\"n\":{\"N\":\"1\"}}");
    put(&patterns, "{\"id\":{\"S\":\"a\"},\"at\":{\"N\":\"1\"},\"n\":{\"N\":\"2\"}}");
    pump(&patterns, TABLE);
    static const char *const ranges[] = {"1", "\"1\"", "1.0"};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"at\":\"2064-11-15T04:13:25Z\",\"range\":%s}", ranges[i]);
        struct slice reply = asks(&patterns, path(&patterns, "POST", "/a/restore"), body);
        CHECK_INT(patterns.call.status, 200);
        CHECK(slice_contains(raw_member(&patterns.arena, reply, "item"), SLICE("\"n\":2")));
    }
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a/restore"),
                  "{\"at\":\"2064-11-15T04:13:25Z\",\"range\":true}", 400, "bad-request");
    patterns_close(&patterns);
}

TEST(history_restores_what_is_expected)
{
    struct patterns patterns;
    char body[300], versions[8][100];
    patterns_open(&patterns);
    make_history(&patterns);
    versions_of(&patterns, versions, 8);
    snprintf(body, sizeof body, "{\"version\":\"%s\",\"expect\":\"%s\"}", versions[0], versions[2]);
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a%20b/restore"), body, 412, "changed-since");
    CHECK(!slice_contains(current(&patterns), SLICE("Item")));
    snprintf(body, sizeof body, "{\"version\":\"%s\",\"expect\":\"%s\"}", versions[0], versions[3]);
    asks(&patterns, path(&patterns, "POST", "/a%20b/restore"), body);
    CHECK_INT(patterns.call.status, 200);
    /* the history has not heard of that yet, but the item tells */
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a%20b/restore"), body, 412, "changed-since");
    CHECK(slice_contains(current(&patterns), SLICE("{\"N\":\"1\"}")));
    patterns_close(&patterns);
}

/* An item that fills all that an item may have leaves no room for the rest of a version. */
TEST(history_tells_what_was_lost)
{
    struct patterns patterns;
    static char item[LIMIT_ITEM_BYTES + 100];
    char rest[200];
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    int head = sprintf(item, "{\"id\":{\"S\":\"a b\"},\"text\":{\"S\":\"");
    memset(item + head, 'x', LIMIT_ITEM_BYTES - 100);
    strcpy(item + head + LIMIT_ITEM_BYTES - 100, "\"}}");
    put(&patterns, item);
    put(&patterns, "{\"id\":{\"S\":\"a b\"},\"n\":{\"N\":\"2\"}}");
    pump(&patterns, TABLE);
    struct slice all = get(&patterns, "/a%20b?diff");
    CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, all, "versions")), 2);
    CHECK(slice_contains(all, SLICE("\"lost\":\"large\",\"item\":null")) &&
          !slice_contains(all, SLICE("changes")));
    snprintf(rest, sizeof rest, "{\"version\":\"%.*s\"}",
             SLICE_ARG(text_of(&patterns, get(&patterns, "/a%20b?limit=1"), "next")));
    CHECK_REFUSES(&patterns, path(&patterns, "POST", "/a%20b/restore"), rest, 409, "image-lost");
    patterns_close(&patterns);
}

static void sweep_by(struct patterns *patterns, const struct flow_sweep *sweep)
{
    struct flow flow;
    struct buf body = {0};
    struct arena arena = {0};
    struct flow_world world = {.prefix = slice_of(patterns->prefix), .poll_ms = 1000};
    struct flow_start start = {
        .world = &world, .arena = &arena, .body = &body, .seed = 1, .now_ms = patterns->now_ms};
    flow_begin_sweep(&flow, &start, sweep);
    while (flow.want != FLOW_DONE) {
        struct buf reply = {0};
        if (flow.want == FLOW_PAUSE) { /* the test's time does not pass */
            flow_next(&flow, patterns->now_ms, NULL);
            continue;
        }
        int status = dynamo_call(patterns->dynamo, flow.operation, flow.call, &reply);
        struct flow_reply taken = {.status = status, .body = arena_copy(&arena, buf_view(&reply))};
        buf_free(&reply);
        flow_next(&flow, patterns->now_ms, &taken);
    }
    CHECK_TEXT(buf_view(&body), "");
    arena_free(&arena);
    buf_free(&body);
}

static void sweep(struct patterns *patterns)
{
    sweep_by(patterns, &history_sweep);
}

static int64_t version_count(struct patterns *patterns, const char *rest)
{
    struct slice reply = get(patterns, rest);
    return (int64_t)raw_count(&patterns->arena, raw_member(&patterns->arena, reply, "versions"));
}

TEST(history_keeps_so_many_versions)
{
    struct patterns patterns;
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    asks(&patterns, path(&patterns, "PUT", ""), "{\"versions\":3}");
    for (int i = 0; i < 40; i++) {
        char item[80];
        snprintf(item, sizeof item, "{\"id\":{\"S\":\"%s\"},\"n\":{\"N\":\"%d\"}}", i % 4 ? "busy" : "calm",
                 i);
        put(&patterns, item);
        if (i == 8) pump(&patterns, TABLE);
    }
    put(&patterns, "{\"id\":{\"S\":\"new\"}}");
    pump(&patterns, TABLE);
    sweep(&patterns);
    CHECK_INT(version_count(&patterns, "/busy"), 3);
    CHECK_INT(version_count(&patterns, "/calm"), 3);
    CHECK_INT(version_count(&patterns, "/new"), 1);
    struct slice busy = get(&patterns, "/busy");
    CHECK(slice_contains(busy, SLICE("\"n\":39")) && slice_contains(busy, SLICE("\"n\":37")));
    patterns_close(&patterns);
}

/* Changes of "a b" at 04:13, 04:14, 04:15 and 04:16, when it is removed; "other" of 04:14 stays as it is. */
TEST(history_keeps_what_held_within_its_time)
{
    static const struct {
        int64_t minutes; /* since 04:13 */
        int64_t count, others;
    } cases[] = {{60, 4, 1}, {61, 4, 1}, {62, 3, 1}, {63, 2, 1}, {64, 0, 1}};
    struct patterns patterns;
    patterns_open(&patterns);
    if (getenv("PATTERNS_ON")) { /* there the clock of the changes is another's */
        patterns_close(&patterns);
        return;
    }
    int64_t begin_ms = patterns.now_ms;
    make_history(&patterns);
    asks(&patterns, path(&patterns, "PUT", ""), "{\"keep\":\"1h\"}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        patterns.now_ms = begin_ms + cases[i].minutes * 60000 - 1000;
        call(&patterns, "DeleteItem", "{\"TableName\":\"%shistories\",\"Key\":{\"table\":{\"S\":\"*\"}}}",
             patterns.prefix); /* it rests no longer */
        sweep(&patterns);
        CHECK_INT(version_count(&patterns, "/a%20b"), cases[i].count);
        CHECK_INT(version_count(&patterns, "/other"), cases[i].others);
    }
    patterns_close(&patterns);
}

/* The names of the events of a page, with the keys, "INSERT a b,": pages of so many are put together. */
static void collect(struct patterns *patterns, const char *query, int limit, char *out, size_t out_len)
{
    char rest[300], next[120] = "";
    out[0] = '\0';
    for (int pages = 0; pages < 50; pages++) {
        struct raw_walk walk;
        struct slice version;
        snprintf(rest, sizeof rest, "?%s&limit=%d%s%s", query, limit, *next ? "&after=" : "", next);
        struct slice reply = get(patterns, rest);
        CHECK_INT(patterns->call.status, 200);
        raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, reply, "changes"));
        while (raw_walk_next(&walk, NULL, &version)) {
            struct slice keys = raw_member(&patterns->arena, version, "keys");
            size_t len = strlen(out);
            snprintf(out + len, out_len - len, "%.*s %.*s,", SLICE_ARG(text_of(patterns, version, "event")),
                     SLICE_ARG(text_of(patterns, keys, "id")));
        }
        snprintf(next, sizeof next, "%.*s", SLICE_ARG(text_of(patterns, reply, "next")));
        if (!*next) return;
    }
    test_failed(__FILE__, __LINE__, "there is no end");
}

TEST(history_tells_the_changes_of_a_table)
{
    static const struct {
        const char *query, *expected;
    } cases[] = {
        {"from=2054-11-15T04:13:00Z", "INSERT a b,MODIFY a b,INSERT other,MODIFY a b,REMOVE a b,"},
        {"from=2054-11-15T04:14:25Z&to=2054-11-15T04:15:25Z", "MODIFY a b,INSERT other,MODIFY a b,"},
        {"from=2054-11-15T04:14:26.340Z&to=2054-11-15T04:15:00Z", ""},
        {"to=2054-11-15T04:14:00Z", "INSERT a b,"},
        {"from=1970-01-01T00:00:00Z&to=2054-11-15T04:14:00Z", "INSERT a b,"}, /* there is nothing before the history */
        {"at=2054-11-15T04:13:00Z", ""},
        {"at=2054-11-15T04:14:00Z", "INSERT a b,"},
        {"at=2054-11-15T04:15:00Z", "MODIFY a b,INSERT other,"},
        {"at=2054-11-15T04:16:00Z", "INSERT other,MODIFY a b,"},
        {"at=2054-11-15T04:17:00Z", "INSERT other,"},
        {"at=2054-12-15T04:17:00Z", "INSERT other,"}, /* to come: as it is now */
    };
    struct patterns patterns;
    char told[400];
    patterns_open(&patterns);
    if (getenv("PATTERNS_ON")) { /* there the clock of the changes is another's */
        patterns_close(&patterns);
        return;
    }
    make_history(&patterns);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int limit = 1; limit <= 6; limit += 1 + (limit > 2)) {
            collect(&patterns, cases[i].query, limit, told, sizeof told);
            if (strcmp(told, cases[i].expected) != 0)
                test_failed(__FILE__, __LINE__, "%s, %d: %s", cases[i].query, limit, told);
        }
    patterns.now_ms += 70 * 24 * 3600000ll; /* more days than a page has */
    collect(&patterns, cases[0].query, 100, told, sizeof told);
    CHECK(strcmp(told, cases[0].expected) == 0);
    struct slice page = get(&patterns, "?at=2054-11-15T04:15:00Z");
    CHECK(slice_contains(page, SLICE("\"item\":{\"id\":\"a b\",\"n\":2,\"s\":[\"x\"]}")));
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "?at=2054-11-15T04:15:00Z&from=2054-11-15T04:15:00Z"), NULL, 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "?from=2054-11-15T04:15:00Z&to=2054-11-15T04:14:00Z"), NULL, 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "?from=soon"), NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, path(&patterns, "GET", "?from=2054-11-15T04:15:00Z&after=x"), NULL, 400, "bad-request");
    patterns_close(&patterns);
}

/* Items that were there before have a version, those that changed since keep theirs, and it is taken once. */
TEST(history_takes_a_baseline)
{
    struct patterns patterns;
    char told[4000], item[9000];
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    for (int i = 0; i < 150; i++) { /* more than a megabyte, which is a page */
        snprintf(item, sizeof item,
                 "{\"id\":{\"S\":\"i%03d\"},\"n\":{\"N\":\"1\"},\"pad\":{\"S\":\"%08000d\"}}", i, i);
        put(&patterns, item);
    }
    CHECK(slice_contains(asks(&patterns, path(&patterns, "PUT", ""), NULL),
                         SLICE("\"baseline\":{\"state\":\"RUNNING\",\"items\":0}")));
    put(&patterns, "{\"id\":{\"S\":\"i007\"},\"n\":{\"N\":\"2\"}}");
    pump(&patterns, TABLE);
    sweep_by(&patterns, &baseline_sweep);
    CHECK(slice_contains(get(&patterns, ""), SLICE("\"baseline\":{\"state\":\"DONE\",\"items\":150}")));
    CHECK_INT(version_count(&patterns, "/i007"), 1);
    CHECK_INT(version_count(&patterns, "/i008"), 1);
    CHECK(slice_contains(get(&patterns, "/i008"), SLICE("\"event\":\"BASELINE\"")));
    CHECK(slice_contains(get(&patterns, "/i008?diff=1"), SLICE("\"n\":1")));
    put(&patterns, "{\"id\":{\"S\":\"i008\"},\"n\":{\"N\":\"3\"}}");
    put(&patterns, "{\"id\":{\"S\":\"new\"},\"n\":{\"N\":\"3\"}}");
    pump(&patterns, TABLE);
    asks(&patterns, path(&patterns, "PUT", ""), "{\"versions\":9}");
    sweep_by(&patterns, &baseline_sweep);
    CHECK_INT(version_count(&patterns, "/new"), 1);
    CHECK_INT(version_count(&patterns, "/i008"), 2);
    if (!getenv("PATTERNS_ON")) { /* there the clock of the changes is another's */
        patterns.now_ms += 60000;
        collect(&patterns, "at=2054-11-15T04:14:25Z", 40, told, sizeof told);
        size_t count = 0;
        for (const char *at = told; (at = strchr(at, ',')); at++) count++;
        CHECK_INT((int)count, 151);
        CHECK(strstr(told, "MODIFY i007,") && strstr(told, "MODIFY i008,") && strstr(told, "BASELINE i009,"));
    }
    patterns_close(&patterns);
}

TEST(history_without_a_baseline)
{
    struct patterns patterns;
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "S");
    put(&patterns, "{\"id\":{\"S\":\"a\"}}");
    CHECK(slice_contains(asks(&patterns, path(&patterns, "PUT", ""), "{\"baseline\":false}"),
                         SLICE("\"baseline\":{\"state\":\"NONE\",\"items\":0}")));
    sweep_by(&patterns, &baseline_sweep);
    CHECK_INT(version_count(&patterns, "/a"), 0);
    patterns_close(&patterns);
}

/* A walk reads everything: the longer it takes, the longer is the rest behind it. */
TEST(history_walks_rest_by_their_length)
{
    static const struct {
        int64_t took_s, rests_s;
    } cases[] = {{0, 900}, {10, 900}, {100, 5000}, {100000, 86400}};
    struct patterns patterns;
    patterns_open(&patterns);
    make_history(&patterns);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        call(&patterns, "PutItem",
             "{\"TableName\":\"%shistories\",\"Item\":{\"table\":{\"S\":\"*\"},\"began\":{\"S\":\"%.*s\"}}}",
             patterns.prefix,
             SLICE_ARG(moment_text(&patterns.arena, patterns.now_ms - cases[i].took_s * 1000)));
        sweep(&patterns);
        struct slice walk = call(&patterns, "GetItem",
                                 "{\"TableName\":\"%shistories\",\"Key\":{\"table\":{\"S\":\"*\"}}}",
                                 patterns.prefix);
        struct slice rests = item_text(&patterns.arena, raw_member(&patterns.arena, walk, "Item"), "rests");
        struct slice wanted = moment_text(&patterns.arena, patterns.now_ms + cases[i].rests_s * 1000);
        CHECK(slice_equal(rests, wanted));
    }
    patterns_close(&patterns);
}

TEST(history_that_is_deleted_is_forgotten)
{
    struct patterns patterns;
    patterns_open(&patterns);
    make_history(&patterns);
    asks(&patterns, path(&patterns, "DELETE", ""), NULL);
    patterns.now_ms += 1000;
    sweep(&patterns);
    struct slice left = call(&patterns, "Scan", "{\"TableName\":\"%shistory\"}", patterns.prefix);
    CHECK(slice_contains(left, SLICE("\"Count\":0")));
    left = call(&patterns, "Scan", "{\"TableName\":\"%shistories\"}", patterns.prefix);
    CHECK(slice_contains(left, SLICE("\"Count\":1"))); /* where the walk stands */
    patterns_close(&patterns);
}

/* More than one batch of them, and some twice: each is there once. */
TEST(history_takes_many_records_and_some_twice)
{
    struct patterns patterns;
    struct buf records = {0};
    patterns_open(&patterns);
    make_table(&patterns, TABLE, "SN");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    for (int i = 0; i < 60; i++)
        buf_printf(&records,
                   "%s{\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":2678328805,"
                   "\"Keys\":{\"id\":{\"S\":\"a\"},\"at\":{\"N\":\"1\"}},\"NewImage\":{\"id\":{\"S\":\"a\"},"
                   "\"at\":{\"N\":\"1\"},\"n\":{\"N\":\"%d\"}},\"SequenceNumber\":\"%d\"}}",
                   i ? "," : "[", i % 40, 100 + i % 40);
    buf_byte(&records, ']');
    feed(&patterns, TABLE, buf_view(&records));
    feed(&patterns, TABLE, buf_view(&records));
    struct slice versions = raw_member(&patterns.arena, get(&patterns, "/a?range=1"), "versions");
    CHECK_INT((int64_t)raw_count(&patterns.arena, versions), 40);
    buf_free(&records);
    patterns_close(&patterns);
}

TEST(history_of_records_is_pure)
{
    struct patterns patterns;
    struct arena arena = {0};
    struct buf first = {0}, second = {0}, wrong = {0};
    struct slice event = SLICE("{\"Records\":[{\"eventName\":\"MODIFY\",\"cause\":\"f\","
                               "\"dynamodb\":{\"ApproximateCreationDateTime\":2678328805,"
                               "\"Keys\":{\"b\":{\"N\":\"7\"},\"a\":{\"S\":\"x/y\"}},"
                               "\"NewImage\":{\"a\":{\"S\":\"x/y\"},\"b\":{\"N\":\"7\"}},"
                               "\"SequenceNumber\":\"42\"}}]}");
    patterns_open(&patterns);
    if (getenv("PATTERNS_ON")) { /* there tables have other names */
        patterns_close(&patterns);
        return;
    }
    CHECK(pattern_history(patterns.pattern, SLICE("t"), event, &arena, &first));
    CHECK(pattern_history(patterns.pattern, SLICE("t"), event, &arena, &second));
    CHECK(slice_equal(buf_view(&first), buf_view(&second)));
    CHECK_TEXT(
        buf_view(&first),
        "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"quipu-history\","
        "\"Item\":{\"item\":{\"S\":\"t/a=x%2Fy&b=7\"},"
        "\"version\":{\"S\":\"2054-11-15T04:13:25.000Z-0000000000000000000000000000000000000042\"},"
        "\"table\":{\"S\":\"t\"},\"event\":{\"S\":\"MODIFY\"},\"time\":{\"S\":\"2054-11-15T04:13:25.000Z\"},"
        "\"day\":{\"S\":\"t/2054-11-15/0\"},\"change\":{\"S\":\"2054-11-15T04:13:25.000Z-"
        "0000000000000000000000000000000000000042-b2022c390b4c5440\"},"
        "\"sequence\":{\"S\":\"42\"},\"cause\":{\"S\":\"f\"},"
        "\"keys\":{\"M\":{\"b\":{\"N\":\"7\"},\"a\":{\"S\":\"x/y\"}}},"
        "\"image\":{\"M\":{\"a\":{\"S\":\"x/y\"},\"b\":{\"N\":\"7\"}}}}}}]}}");
    CHECK(!pattern_history(patterns.pattern, SLICE("t"), SLICE("{\"Records\":[{\"eventName\":\"MODIFY\"}]}"),
                           &arena, &wrong));
    CHECK(!pattern_history(patterns.pattern, SLICE("t"), SLICE("{}"), &arena, &wrong));
    buf_free(&first);
    buf_free(&second);
    buf_free(&wrong);
    arena_free(&arena);
    patterns_close(&patterns);
}

static void name_add(void *context, struct slice table)
{
    buf_slice(context, table);
    buf_byte(context, ' ');
}

TEST(histories_are_named)
{
    struct patterns patterns;
    struct buf names = {0}, expected = {0};
    patterns_open(&patterns);
    CHECK(pattern_histories(patterns.pattern, name_add, &names));
    CHECK_TEXT(buf_view(&names), "");
    make_table(&patterns, TABLE, "S");
    asks(&patterns, path(&patterns, "PUT", ""), NULL);
    CHECK(pattern_histories(patterns.pattern, name_add, &names));
    buf_printf(&expected, "%s" TABLE " ", patterns.prefix);
    CHECK(slice_equal(buf_view(&names), buf_view(&expected)));
    asks(&patterns, path(&patterns, "DELETE", ""), NULL);
    names.len = 0;
    CHECK(pattern_histories(patterns.pattern, name_add, &names));
    CHECK_TEXT(buf_view(&names), "");
    buf_free(&names);
    buf_free(&expected);
    patterns_close(&patterns);
}
