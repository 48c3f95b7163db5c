/* Split and merge of logs: nothing is lost, each key keeps its order, children come after their parents. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define READ "POST /v1/logs/l/consumers/g/read"

static struct slice member(struct patterns *patterns, struct slice reply, const char *name)
{
    return raw_text(&patterns->arena, raw_member(&patterns->arena, reply, name));
}

static int64_t number(struct patterns *patterns, struct slice reply, const char *name)
{
    int64_t value = -1;
    raw_int(member(patterns, reply, name), &value);
    return value;
}

static void makes(struct patterns *patterns, const char *request, const char *body)
{
    struct slice reply = asks(patterns, request, body);
    if (patterns->call.status >= 300)
        test_failed(__FILE__, __LINE__, "%s %s: %.*s", request, body, SLICE_ARG(reply));
}

#define KEYS 16

/* What each key's next number is, appended and read. */
struct order {
    int appended[KEYS], read[KEYS];
};

static void append_to_all(struct patterns *patterns, struct order *order)
{
    char body[100];
    for (int i = 0; i < KEYS; i++) {
        snprintf(body, sizeof body, "{\"key\":\"k%d\",\"data\":%d}", i, order->appended[i]++);
        makes(patterns, "POST /v1/logs/l", body);
    }
}

/* Reads a page and checks the order of each key; false when there is none. */
static bool read_page(struct patterns *patterns, struct order *order, const char *body)
{
    char ack[100];
    struct raw_walk walk;
    struct slice event, reply = asks(patterns, READ, body);
    int64_t last = 0;
    if (patterns->call.status == 204) return false;
    CHECK_INT(patterns->call.status, 200);
    raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, reply, "events"));
    while (raw_walk_next(&walk, NULL, &event)) {
        struct slice key = member(patterns, event, "key");
        int which = atoi(key.data + 1);
        last = number(patterns, event, "sequence");
        CHECK_INT(number(patterns, event, "data"), order->read[which]++);
    }
    struct slice partition = member(patterns, reply, "partition");
    snprintf(ack, sizeof ack, "{\"partition\":\"%.*s\",\"fence\":%d,\"sequence\":%d}", SLICE_ARG(partition),
             (int)number(patterns, reply, "fence"), (int)last);
    makes(patterns, "POST /v1/logs/l/consumers/g/ack", ack);
    return true;
}

static void read_all(struct patterns *patterns, struct order *order)
{
    while (read_page(patterns, order, "{\"owner\":\"o\",\"max\":3}")) {
        /* the next page */
    }
    for (int i = 0; i < KEYS; i++) CHECK_INT(order->read[i], order->appended[i]);
}

TEST(log_keeps_order_across_splits_and_merges)
{
    struct patterns patterns;
    struct order order = {0};
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    append_to_all(&patterns, &order);
    CHECK_ASKS(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}", 200,
               "{\"partition\":\"0\",\"children\":[\"2\",\"3\"]}");
    append_to_all(&patterns, &order);
    CHECK_ASKS(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"3\"}", 200,
               "{\"partition\":\"3\",\"children\":[\"4\",\"5\"]}");
    append_to_all(&patterns, &order);
    CHECK_ASKS(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"1\",\"5\"]}", 200,
               "{\"partitions\":[\"1\",\"5\"],\"child\":\"6\"}");
    append_to_all(&patterns, &order);
    read_all(&patterns, &order);
    append_to_all(&patterns, &order);
    read_all(&patterns, &order);
    makes(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"time\":\"start\"}");
    memset(order.read, 0, sizeof order.read);
    read_all(&patterns, &order);
    CHECK_ASKS(
        &patterns, "GET /v1/logs/l?limit=2", NULL, 200,
        "{\"log\":\"l\",\"partitions\":2,\"created\":\"2054-11-15T04:13:25.340Z\",\"version\":3,"
        "\"consumers\":[\"g\"],\"open\":[{\"partition\":\"2\",\"from\":\"0000000000000000\","
        "\"to\":\"3fffffffffffffff\",\"sequence\":8},{\"partition\":\"4\",\"from\":\"4000000000000000\","
        "\"to\":\"5fffffffffffffff\","
        "\"sequence\":10}],\"next\":\"5fffffffffffffff\"}");
    struct slice rest = asks(&patterns, "GET /v1/logs/l?after=5fffffffffffffff", NULL);
    CHECK(slice_contains(rest, SLICE("\"open\":[{\"partition\":\"6\",\"from\":\"6000000000000000\","
                                     "\"to\":\"ffffffffffffffff\"")));
    patterns_close(&patterns);
}

TEST(log_children_wait_for_their_parents)
{
    struct patterns patterns;
    struct order order = {0};
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    append_to_all(&patterns, &order);
    makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}"); /* 1, 2 */
    makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"1\"}"); /* 3, 4: of one without events */
    append_to_all(&patterns, &order);
    struct slice reply = asks(&patterns, READ, "{\"owner\":\"o\",\"max\":4}");
    CHECK_TEXT(member(&patterns, reply, "partition"), "0");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"p\"}", 204, ""); /* not while the parent is being read */
    makes(&patterns, "POST /v1/logs/l/consumers/g/ack", "{\"partition\":\"0\",\"fence\":1,\"sequence\":4}");
    CHECK_TEXT(member(&patterns, asks(&patterns, READ, "{\"owner\":\"p\",\"max\":100}"), "partition"), "0");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"q\"}", 204, "");
    makes(&patterns, "POST /v1/logs/l/consumers/g/ack", "{\"partition\":\"0\",\"fence\":2,\"sequence\":16}");
    reply = asks(&patterns, READ, "{\"owner\":\"q\"}");
    CHECK_INT(patterns.call.status, 200);
    CHECK(!slice_equal(member(&patterns, reply, "partition"), SLICE("0")));
    patterns_close(&patterns);
}

TEST(log_numbers_of_a_key_only_grow)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    for (int i = 0; i < 3; i++) makes(&patterns, "POST /v1/logs/l", "{\"key\":\"k3\"}"); /* of partition 0 */
    makes(&patterns, "POST /v1/logs/l", "{\"key\":\"k0\"}");
    makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}");
    CHECK_ASKS(
        &patterns, "GET /v1/logs/l/partitions/3", NULL, 200,
        "{\"partition\":\"3\",\"state\":\"OPEN\",\"sequence\":3,\"parents\":[{\"partition\":\"0\",\"end\":3}],"
        "\"events\":[]}");
    makes(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"3\",\"1\"]}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"key\":\"k0\"}", 201, "{\"partition\":\"4\",\"sequence\":4}");
    makes(&patterns, READ, "{\"owner\":\"o\"}");
    struct slice lag = asks(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL);
    CHECK_INT(number(&patterns, lag, "lag"), 5);
    patterns_close(&patterns);
}

/* A parent whose events have ended by their age, or lie before the time that a group begins at, holds up nobody. */
TEST(log_children_do_not_wait_for_what_is_gone)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1,\"keep\":\"1h\"}");
    makes(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"k\"},{\"key\":\"k\"}]}");
    CHECK_INT(number(&patterns, asks(&patterns, READ, "{\"owner\":\"o\",\"max\":1}"), "fence"), 1);
    makes(&patterns, "POST /v1/logs/l/consumers/g/ack", "{\"partition\":\"0\",\"fence\":1,\"sequence\":1}");
    makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}");
    patterns.now_ms += 3601 * 1000;
    makes(&patterns, "POST /v1/logs/l", "{\"key\":\"k\"}");
    CHECK_INT(number(&patterns, asks(&patterns, READ, "{\"owner\":\"o\"}"), "position"), 2);
    CHECK_INT(patterns.call.status, 200);

    makes(&patterns, "PUT /v1/logs/m", "{\"partitions\":1}");
    makes(&patterns, "POST /v1/logs/m", "{\"key\":\"k\"}");
    makes(&patterns, "POST /v1/logs/m/consumers/g/read", "{\"owner\":\"o\"}");
    patterns.now_ms += 100 * 1000;
    makes(&patterns, "POST /v1/logs/m/consumers/g/replay", "{\"time\":\"now\"}");
    patterns.now_ms += 100 * 1000;
    makes(&patterns, "POST /v1/logs/m/split", "{\"partition\":\"0\"}");
    makes(&patterns, "POST /v1/logs/m", "{\"key\":\"k\"}");
    asks(&patterns, "POST /v1/logs/m/consumers/g/read", "{\"owner\":\"o\"}");
    CHECK_INT(patterns.call.status, 200);
    patterns_close(&patterns);
}

TEST(log_refuses_splits_and_merges)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}", 404, "no-such-log");
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":3}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"3\"}", 404, "no-such-partition");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"x\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\",\"at\":\"ffffffffffffffff\"}",
                  409, "outside");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\",\"at\":\"1\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"0\"]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"0\",\"0\"]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"0\",\"2\"]}", 409, "no-neighbours");
    for (int i = 0; i < 2; i++) /* repeated, it answers what there is */
        CHECK_ASKS(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"1\",\"at\":\"6000000000000000\"}",
                   200, "{\"partition\":\"1\",\"children\":[\"3\",\"4\"]}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"0\",\"1\"]}", 409, "sealed");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"3\",\"0\"]}", 200,
                   "{\"partitions\":[\"3\",\"0\"],\"child\":\"5\"}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}", 409, "sealed");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/partitions/3", NULL, 200,
               "{\"partition\":\"3\",\"state\":\"SEALED\",\"sequence\":0,\"parents\":[],\"children\":[\"5\"],"
               "\"events\":[]}");
    patterns_close(&patterns);
}
