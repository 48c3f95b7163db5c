/* Logs by their words. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

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
    if (patterns->call.status >= 300) test_failed(__FILE__, __LINE__, "%s: %.*s", request, SLICE_ARG(reply));
}

#define READ "POST /v1/logs/l/consumers/g/read"
#define ACK  "POST /v1/logs/l/consumers/g/ack"

/* A name that is cut for a sentence is cut between characters. */
TEST(log_unknown_members_are_told_as_text)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    buf_text(&body, "{\"events\":[{\"key\":\"k\",\"x");
    for (int i = 0; i < 60; i++) buf_text(&body, "\u00e9");
    buf_text(&body, "\":1}]}");
    buf_byte(&body, 0);
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", body.data, 400, "bad-request");
    CHECK(utf8_valid(buf_view(&patterns.reply)));
    buf_free(&body);
    patterns_close(&patterns);
}

TEST(log_appends_without_gap)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"key\":\"k\",\"data\":1}", 404, "no-such-log");
    CHECK_REFUSES(&patterns, "GET /v1/logs/l", NULL, 404, "no-such-log");
    CHECK_REFUSES(&patterns, READ, "{\"owner\":\"o\"}", 404, "no-such-log");
    CHECK_ASKS(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}", 201, "{\"log\":\"l\",\"partitions\":1}");
    CHECK_ASKS(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}", 200, "{\"log\":\"l\",\"partitions\":1}");
    CHECK_ASKS(&patterns, "PUT /v1/logs/l", NULL, 200, "{\"log\":\"l\",\"partitions\":1}");
    CHECK_REFUSES(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}", 409, "exists");
    CHECK_ASKS(&patterns, "PUT /v1/logs/k", "{\"keep\":\"2h\"}", 201,
               "{\"log\":\"k\",\"partitions\":4,\"keep\":\"2h\"}");
    CHECK_ASKS(&patterns, "PUT /v1/logs/k", NULL, 200, "{\"log\":\"k\",\"partitions\":4,\"keep\":\"2h\"}");
    CHECK_ASKS(&patterns, "PUT /v1/logs/k", "{\"keep\":\"3h\"}", 200,
               "{\"log\":\"k\",\"partitions\":4,\"keep\":\"3h\"}");
    CHECK_REFUSES(&patterns, "PUT /v1/logs/l", "{\"partitions\":0}", 400, "bad-request");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"key\":\"k\",\"data\":{\"a\":[1,\"#x\"]}}", 201,
               "{\"partition\":\"0\",\"sequence\":1}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"b\"}]}", 201,
               "{\"events\":[{\"partition\":\"0\",\"sequence\":2},{\"partition\":\"0\",\"sequence\":3}]}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/partitions/0", NULL, 200,
               "{\"partition\":\"0\",\"state\":\"OPEN\",\"sequence\":3,"
               "\"events\":[{\"sequence\":1,\"key\":\"k\",\"time\":\"2054-11-15T04:13:25.340Z\","
               "\"data\":{\"a\":[1,\"#x\"]}},"
               "{\"sequence\":2,\"key\":\"a\",\"time\":\"2054-11-15T04:13:25.340Z\",\"data\":1},"
               "{\"sequence\":3,\"key\":\"b\",\"time\":\"2054-11-15T04:13:25.340Z\",\"data\":null}]}");
    CHECK_ASKS(
        &patterns, "GET /v1/logs/l", NULL, 200,
        "{\"log\":\"l\",\"partitions\":1,\"created\":\"2054-11-15T04:13:25.340Z\",\"version\":0,\"consumers\":[],"
        "\"open\":["
        "{\"partition\":\"0\",\"from\":\"0000000000000000\",\"to\":\"ffffffffffffffff\",\"sequence\":3}]}");
    CHECK_REFUSES(&patterns, "GET /v1/logs/l/partitions/1", NULL, 404, "no-such-partition");
    CHECK_REFUSES(&patterns, "GET /v1/logs/l/partitions/x", NULL, 400, "bad-request");
    patterns_close(&patterns);
}

TEST(log_refuses_bad_events)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"key\":\"\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[1]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[{\"data\":1}]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":1}]}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\",\"kind\":1}]}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\",\"data\":1e200}]}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"key\":\"a\",\"events\":[{\"key\":\"a\"}]}", 400,
                  "bad-request");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"key\":\"a\",\"data\":{\"b\":[1e200]}}", 400,
               "{\"error\":\"bad-request\",\"message\":\"data cannot be stored: a number is too large.\"}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\"},{\"key\":\"a\",\"data\":[1e200]}]}", 400,
               "{\"error\":\"bad-request\",\"message\":\"event 1: data cannot be stored: a number is too large.\"}");
    struct buf large = {0};
    buf_text(&large, "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\",\"data\":\"");
    for (int i = 0; i < 400 * 1024; i++) buf_byte(&large, 'x');
    buf_text(&large, "\"}]}");
    buf_byte(&large, '\0');
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", large.data, 413, "too-large");
    buf_free(&large);
    CHECK_INT(number(&patterns, asks(&patterns, "GET /v1/logs/l/partitions/0", NULL), "sequence"), 0);
    for (int depth = 29; depth <= 30; depth++) { /* a page has two levels above it */
        char nested[200];
        snprintf(nested, sizeof nested, "{\"key\":\"a\",\"data\":%.*s%.*s}", depth,
                 "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", depth, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
        if (depth == 29)
            makes(&patterns, "POST /v1/logs/l", nested);
        else
            CHECK_REFUSES(&patterns, "POST /v1/logs/l", nested, 400, "bad-request");
    }
    CHECK_INT(number(&patterns, asks(&patterns, "GET /v1/logs/l/partitions/0", NULL), "sequence"), 1);
    patterns_close(&patterns);
}

TEST(log_takes_a_token_once)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"key\":\"k\",\"data\":1,\"token\":\"t\"}", 201,
               "{\"partition\":\"0\",\"sequence\":1}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l", "{\"key\":\"k\",\"data\":1,\"token\":\"t\"}", 201,
               "{\"partition\":\"0\",\"sequence\":1,\"repeated\":true}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"key\":\"k\",\"data\":2,\"token\":\"t\"}", 422,
                  "token-reused");
    /* one of three is new, and one comes twice */
    CHECK_ASKS(
        &patterns, "POST /v1/logs/l",
        "{\"events\":[{\"key\":\"k\",\"data\":1,\"token\":\"t\"},{\"key\":\"k\",\"data\":3,\"token\":\"u\"},"
        "{\"key\":\"k\",\"data\":3,\"token\":\"u\"}]}",
        201,
        "{\"events\":[{\"partition\":\"0\",\"sequence\":1,\"repeated\":true},"
        "{\"partition\":\"0\",\"sequence\":2},{\"partition\":\"0\",\"sequence\":2,\"repeated\":true}]}");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "call-7");
        CHECK_ASKS(
            &patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\"}]}", 201,
            i ? "{\"events\":[{\"partition\":\"0\",\"sequence\":3,\"repeated\":true},"
                "{\"partition\":\"0\",\"sequence\":4,\"repeated\":true}]}"
              : "{\"events\":[{\"partition\":\"0\",\"sequence\":3},{\"partition\":\"0\",\"sequence\":4}]}");
    }
    CHECK_INT(number(&patterns, asks(&patterns, "GET /v1/logs/l/partitions/0", NULL), "sequence"), 4);
    patterns_close(&patterns);
}

TEST(log_appends_more_than_a_transaction_holds)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    buf_text(&body, "{\"events\":[");
    for (int i = 0; i < 250; i++) buf_printf(&body, "%s{\"key\":\"k%d\",\"data\":%d}", i ? "," : "", i, i);
    buf_text(&body, "]}");
    buf_byte(&body, '\0');
    makes(&patterns, "POST /v1/logs/l", body.data);
    buf_free(&body);
    struct slice page = asks(&patterns, "GET /v1/logs/l/partitions/0?limit=1000", NULL), event;
    struct raw_walk walk;
    int64_t count = 0;
    raw_walk_begin(&walk, &patterns.arena, raw_member(&patterns.arena, page, "events"));
    while (raw_walk_next(&walk, NULL, &event)) {
        CHECK_INT(number(&patterns, event, "data"), count);
        CHECK_INT(number(&patterns, event, "sequence"), ++count);
    }
    CHECK_INT(count, 250);
    patterns_close(&patterns);
}

TEST(log_is_read_acked_and_left)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    makes(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\"},{\"key\":\"c\"}]}");
    for (int i = 0; i < 2; i++) /* the same owner gets the same by the same fence */
        CHECK_ASKS(
            &patterns, READ, "{\"owner\":\"o\",\"max\":2}", 200,
            "{\"partition\":\"0\",\"fence\":1,\"until\":\"2054-11-15T04:13:55.340Z\",\"position\":0,"
            "\"more\":true,\"events\":[{\"sequence\":1,\"key\":\"a\",\"time\":\"2054-11-15T04:13:25.340Z\","
            "\"data\":null},"
            "{\"sequence\":2,\"key\":\"b\",\"time\":\"2054-11-15T04:13:25.340Z\",\"data\":null}]}");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"p\"}", 204, "");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL, 200,
               "{\"partitions\":[{\"partition\":\"0\",\"lag\":3,\"position\":0,\"sequence\":3,"
               "\"owner\":\"o\",\"until\":\"2054-11-15T04:13:55.340Z\"}],\"lag\":3,\"parked\":0}");
    CHECK_REFUSES(&patterns, ACK, "{\"partition\":\"0\",\"fence\":2,\"sequence\":1}", 409, "stale-fence");
    CHECK_REFUSES(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":3}", 409, "not-given");
    CHECK_REFUSES(&patterns, ACK, "{\"partition\":\"1\",\"fence\":1,\"sequence\":3}", 409, "not-read");
    patterns.now_ms += 1000;
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(
            &patterns, ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":1}", 200,
            "{\"partition\":\"0\",\"position\":1,\"held\":true,\"until\":\"2054-11-15T04:13:56.340Z\"}");
    patterns.now_ms += 1000;
    CHECK_ASKS(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1}", 200,
               "{\"partition\":\"0\",\"position\":1,\"held\":true,\"until\":\"2054-11-15T04:13:57.340Z\"}");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}", 200,
                   "{\"partition\":\"0\",\"position\":2,\"held\":false}");
    CHECK_REFUSES(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1}", 409, "not-held");
    struct slice reply = asks(&patterns, READ, "{\"owner\":\"p\",\"for\":\"5s\"}");
    CHECK_INT(number(&patterns, reply, "fence"), 2);
    CHECK_INT(number(&patterns, reply, "position"), 2);
    patterns.now_ms += 5001; /* its lease is over */
    reply = asks(&patterns, READ, "{\"owner\":\"o\"}");
    CHECK_INT(number(&patterns, reply, "fence"), 3);
    CHECK_REFUSES(&patterns, ACK, "{\"partition\":\"0\",\"fence\":2,\"sequence\":3}", 409, "stale-fence");
    makes(&patterns, ACK, "{\"partition\":\"0\",\"fence\":3,\"sequence\":3}");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL, 200,
               "{\"partitions\":[],\"lag\":0,\"parked\":0}");
    CHECK_REFUSES(&patterns, "GET /v1/logs/l/consumers/h/lag", NULL, 404, "no-such-consumer");
    CHECK_ASKS(&patterns, "DELETE /v1/logs/l/consumers/g", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/logs/l/consumers/g", NULL, 404, "no-such-consumer");
    CHECK_INT(number(&patterns, asks(&patterns, READ, "{\"owner\":\"o\"}"), "position"), 0);
    patterns_close(&patterns);
}

TEST(log_parks_and_replays)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    makes(&patterns, "POST /v1/logs/l",
          "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"b\",\"data\":2}]}");
    makes(&patterns, READ, "{\"owner\":\"o\"}");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/park",
                  "{\"partition\":\"0\",\"fence\":9,\"sequence\":1,\"reason\":\"bad\"}", 409, "stale-fence");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(
            &patterns, "POST /v1/logs/l/consumers/g/park",
            "{\"partition\":\"0\",\"fence\":1,\"sequence\":1,\"reason\":\"bad\"}", 200,
            "{\"partition\":\"0\",\"position\":1,\"held\":true,\"until\":\"2054-11-15T04:13:55.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l/consumers/g/park",
               "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}", 200,
               "{\"partition\":\"0\",\"position\":2,\"held\":false}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/parked", NULL, 200,
               "{\"parked\":[{\"partition\":\"0\",\"sequence\":1,\"key\":\"a\",\"reason\":\"bad\","
               "\"parked\":\"2054-11-15T04:13:25.340Z\",\"data\":1},"
               "{\"partition\":\"0\",\"sequence\":2,\"key\":\"b\",\"reason\":\"no reason given\","
               "\"parked\":\"2054-11-15T04:13:25.340Z\",\"data\":2}]}");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    CHECK_ASKS(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"parked\":true}", 200, "{\"replayed\":2}");
    CHECK_ASKS(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"parked\":true}", 200, "{\"replayed\":0}");
    struct slice replayed = asks(&patterns, READ,
                                 "{\"owner\":\"o\"}"); /* the order within `origin` is the engine's */
    CHECK_INT(patterns.call.status, 200);
    CHECK(slice_starts(replayed, SLICE("{\"partition\":\"parked\",\"fence\":1,"
                                       "\"until\":\"2054-11-15T04:13:55.340Z\",\"position\":0,\"more\":false,"
                                       "\"events\":[{\"sequence\":1,\"key\":\"a\","
                                       "\"time\":\"2054-11-15T04:13:25.340Z\",\"origin\":{")));
    CHECK(slice_contains(replayed, SLICE("},\"reason\":\"bad\",\"data\":1},{\"sequence\":2,\"key\":\"b\",")));
    CHECK(slice_contains(replayed, SLICE("},\"reason\":\"no reason given\",\"data\":2}]}")));
    /* parked again it is where it was first */
    makes(&patterns, "POST /v1/logs/l/consumers/g/park",
          "{\"partition\":\"parked\",\"fence\":1,\"sequence\":1,\"reason\":\"still\"}");
    makes(&patterns, ACK, "{\"partition\":\"parked\",\"fence\":1,\"sequence\":2}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/parked", NULL, 200,
               "{\"parked\":[{\"partition\":\"0\",\"sequence\":1,\"key\":\"a\",\"reason\":\"still\","
               "\"parked\":\"2054-11-15T04:13:25.340Z\",\"data\":1}]}");
    for (int i = 0; i < 2; i++) CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    patterns_close(&patterns);
}

/* Writes into a table what one who died has left there. */
static void leaves(struct patterns *patterns, const char *table, const char *request)
{
    struct buf reply = {0};
    struct slice text = arena_printf(&patterns->arena, "{\"TableName\":\"%s%s\",%s}", patterns->prefix, table,
                                     request);
    if (dynamo_call(patterns->dynamo, SLICE("UpdateItem"), text, &reply) != 200)
        test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&reply)));
    buf_free(&reply);
}

/* Whoever looks for something to read finds what was begun, though all is read, and minutes later. */
TEST(log_parks_for_one_who_died)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    makes(&patterns, "POST /v1/logs/l",
          "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"b\",\"data\":2}]}");
    makes(&patterns, READ, "{\"owner\":\"o\"}");
    leaves(
        &patterns, "log-positions",
        "\"Key\":{\"group\":{\"S\":\"l/g\"},\"partition\":{\"S\":\"0\"}},\"UpdateExpression\":\"SET #position = :two, "
        "intent = :intent, redo = :redo REMOVE #owner\",\"ExpressionAttributeNames\":{\"#position\":\"position\","
        "\"#owner\":\"owner\"},\"ExpressionAttributeValues\":{\":two\":{\"N\":\"2\"},\":intent\":{\"S\":\"dead\"},"
        "\":redo\":{\"M\":{\"sequence\":{\"N\":\"2\"},\"reason\":{\"S\":\"bad\"},\"parked\":{\"S\":\"2054\"}}}}");
    patterns.now_ms += 300000;
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    CHECK_ASKS(
        &patterns, "GET /v1/logs/l/consumers/g/parked", NULL, 200,
        "{\"parked\":[{\"partition\":\"0\",\"sequence\":2,\"key\":\"b\",\"reason\":\"bad\",\"parked\":\"2054\","
        "\"data\":2}]}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL, 200,
               "{\"partitions\":[],\"lag\":0,\"parked\":1}");
    patterns_close(&patterns);
}

TEST(log_replays_for_one_who_died)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    makes(&patterns, "POST /v1/logs/l",
          "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"b\",\"data\":2}]}");
    makes(&patterns, READ, "{\"owner\":\"o\"}");
    makes(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}");
    patterns.now_ms += 300000;
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, ""); /* writes down that all is read */
    leaves(
        &patterns, "logs",
        "\"Key\":{\"log\":{\"S\":\"l\"},\"part\":{\"S\":\"group/g\"}},\"UpdateExpression\":\"SET turn = turn + :one, "
        "mark0 = :zero, intent = :intent, redo = :redo\",\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"},"
        "\":zero\":{\"N\":\"0\"},\":intent\":{\"S\":\"dead\"},"
        "\":redo\":{\"M\":{\"partition\":{\"N\":\"0\"},\"position\":{\"N\":\"1\"}}}}");
    struct slice page = asks(&patterns, READ, "{\"owner\":\"p\"}");
    CHECK_INT(number(&patterns, page, "position"), 1);
    CHECK_INT(number(&patterns, page, "fence"), 3);
    makes(&patterns, ACK, "{\"partition\":\"0\",\"fence\":3,\"sequence\":2}");
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, "");
    patterns_close(&patterns);
}

TEST(log_replays_from_a_number_or_a_time)
{
    struct patterns patterns;
    char body[100];
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    for (int i = 0; i < 20; i++) {
        patterns.now_ms += 60000; /* 04:14:25.340, 04:15:25.340 ... */
        makes(&patterns, "POST /v1/logs/l", "{\"key\":\"a\"}");
    }
    makes(&patterns, READ, "{\"owner\":\"o\"}");
    makes(&patterns, ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":20}");
    patterns.now_ms += 60000;
    CHECK_ASKS(&patterns, READ, "{\"owner\":\"o\"}", 204, ""); /* the mark is raised */
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"sequence\":1}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"time\":\"noon\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"time\":\"2064-11-15T04:00:00Z\"}", 400,
                  "bad-request"); /* the group would be deaf until then */
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"0\",\"sequence\":22}",
                  409, "no-such-event");
    CHECK_REFUSES(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"1\",\"sequence\":1}",
                  404, "no-such-partition");
    CHECK_ASKS(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"0\",\"sequence\":19}", 200,
               "{\"partition\":\"0\",\"position\":18}");
    CHECK_INT(number(&patterns, asks(&patterns, READ, "{\"owner\":\"o\"}"), "position"), 18);
    static const struct {
        const char *time;
        int position;
    } cases[] = {{"2054-11-15T04:14:25.340Z", 0},
                 {"2054-11-15T04:14:25.341Z", 1},
                 {"2054-11-15T04:20:00Z", 6},
                 {"2054-11-15T04:33:25.340Z", 19},
                 {"start", 0},
                 {"2054-11-15T04:33:25.341Z", -1},
                 {"now", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, "{\"time\":\"%s\"}", cases[i].time);
        makes(&patterns, "POST /v1/logs/l/consumers/g/replay", body);
        struct slice lag = asks(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL);
        CHECK_INT(number(&patterns, lag, "lag"), cases[i].position < 0 ? 0 : 20 - cases[i].position);
        struct slice reply = asks(&patterns, READ, "{\"owner\":\"o\",\"max\":3}");
        CHECK_INT(patterns.call.status, cases[i].position < 0 ? 204 : 200);
        if (cases[i].position >= 0) CHECK_INT(number(&patterns, reply, "position"), cases[i].position);
    }
    makes(&patterns, "POST /v1/logs/l", "{\"key\":\"a\"}");
    CHECK_INT(number(&patterns, asks(&patterns, READ, "{\"owner\":\"o\"}"), "position"), 20);
    patterns_close(&patterns);
}

TEST(log_forgets_old_events)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1,\"keep\":\"1h\"}");
    makes(&patterns, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\"}]}");
    patterns.now_ms += 1800000;
    makes(&patterns, "POST /v1/logs/l", "{\"key\":\"c\"}");
    patterns.now_ms += 1800001;
    /* a group that stands before them: only the third is left to be read */
    makes(&patterns, "POST /v1/logs/l/consumers/g/replay", "{\"time\":\"start\"}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/consumers/g/lag", NULL, 200,
               "{\"partitions\":[{\"partition\":\"0\",\"lag\":1,\"position\":0,\"sequence\":3}],"
               "\"lag\":1,\"parked\":0}");
    struct slice page = asks(&patterns, READ, "{\"owner\":\"o\",\"max\":2}");
    CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, page, "events")), 1);
    CHECK(slice_contains(page, SLICE("\"events\":[{\"sequence\":3,")));
    patterns_close(&patterns);
}

/* Where all events have ended, and the service has deleted them, no number is given once more. */
TEST(log_goes_on_behind_what_has_ended)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1,\"keep\":\"1h\"}");
    int64_t last = 0;
    for (int round = 0; round < 3; round++) {
        struct slice reply = asks(&patterns, "POST /v1/logs/l", "{\"key\":\"a\"}");
        CHECK(number(&patterns, reply, "sequence") > last);
        last = number(&patterns, reply, "sequence");
        CHECK_INT(number(&patterns, asks(&patterns, "POST /v1/logs/l", "{\"key\":\"a\"}"), "sequence"),
                  ++last);
        /* as the service deletes them, some day */
        struct buf reply_text = {0};
        struct slice scan = arena_printf(&patterns.arena, "{\"TableName\":\"%slog-events\"}",
                                         patterns.prefix),
                     item;
        CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), scan, &reply_text), 200);
        struct slice items = raw_member(&patterns.arena, arena_copy(&patterns.arena, buf_view(&reply_text)),
                                        "Items");
        struct raw_walk walk;
        CHECK_INT((int64_t)raw_count(&patterns.arena, items), 2);
        raw_walk_begin(&walk, &patterns.arena, items);
        while (raw_walk_next(&walk, NULL, &item)) {
            struct slice chain = item_attribute(&patterns.arena, item, "chain");
            struct slice first = item_attribute(&patterns.arena, item, "first");
            struct slice request = arena_printf(
                &patterns.arena, "{\"TableName\":\"%slog-events\",\"Key\":{\"chain\":%.*s,\"first\":%.*s}}",
                patterns.prefix, SLICE_ARG(chain), SLICE_ARG(first));
            CHECK(item_int(&patterns.arena, item, "expires", 0) > patterns.now_ms / 1000 + 3600);
            reply_text.len = 0;
            CHECK_INT(dynamo_call(patterns.dynamo, SLICE("DeleteItem"), request, &reply_text), 200);
        }
        buf_free(&reply_text);
        patterns.now_ms += 3 * 3600000;
    }
    patterns_close(&patterns);
}

TEST(log_is_deleted)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int round = 0; round < 2; round++) {
        makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":3}");
        struct slice log = asks(&patterns, "GET /v1/logs/l", NULL);
        CHECK(!slice_contains(log, SLICE("\"sequence\":1")));
        CHECK(slice_contains(log, SLICE("\"consumers\":[]")));
        for (int i = 0; i < 30; i++) {
            char body[60];
            snprintf(body, sizeof body, "{\"key\":\"k%d\"}", i);
            makes(&patterns, "POST /v1/logs/l", body);
        }
        makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"1\"}");
        makes(&patterns, READ, "{\"owner\":\"o\"}");
        makes(&patterns, "POST /v1/logs/l/consumers/h/read", "{\"owner\":\"o\"}");
        CHECK_ASKS(&patterns, "DELETE /v1/logs/l", NULL, 200, "{\"deleted\":true}");
        CHECK_REFUSES(&patterns, "DELETE /v1/logs/l", NULL, 404, "no-such-log");
        CHECK_REFUSES(&patterns, "POST /v1/logs/l", "{\"key\":\"k\"}", 404, "no-such-log");
    }
    static const char *const tables[] = {"logs", "log-heads", "log-events", "log-positions", "log-parked"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct buf reply = {0};
        /* of each partition a seal is left, for an hour */
        struct slice request = arena_printf(
            &patterns.arena,
            "{\"TableName\":\"%s%s\",\"FilterExpression\":\"attribute_not_exists(expires) or n <> :zero\","
            "\"ExpressionAttributeValues\":{\":zero\":{\"N\":\"0\"}}}",
            patterns.prefix, tables[i]);
        CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), request, &reply), 200);
        if (!slice_contains(buf_view(&reply), SLICE("\"Count\":0")))
            test_failed(__FILE__, __LINE__, "%s: %.*s", tables[i], SLICE_ARG(buf_view(&reply)));
        buf_free(&reply);
    }
    patterns_close(&patterns);
}
