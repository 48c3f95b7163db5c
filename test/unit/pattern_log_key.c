/* One key of a log: what an append expects of it, and its events without a group. */
#include "unit/pattern_explore.h"
#include "unit/pattern_fixture.h"

#define L "POST /v1/logs/l"

static void makes(struct patterns *patterns, const char *request, const char *body)
{
    struct slice reply = asks(patterns, request, body);
    if (patterns->call.status >= 300)
        test_failed(__FILE__, __LINE__, "%s %s: %.*s", request, body, SLICE_ARG(reply));
}

static void is_refused_by(struct patterns *patterns, const char *body, const char *code, const char *member)
{
    struct slice reply = asks(patterns, L, body);
    CHECK_INT(patterns->call.status, 409);
    if (!slice_contains(reply, slice_of(code)) || !slice_contains(reply, slice_of(member)))
        test_failed(__FILE__, __LINE__, "%s: %.*s", body, SLICE_ARG(reply));
}

TEST(log_append_expects_what_is_there)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, L, "{\"key\":\"a\",\"expected\":0}", 201, "{\"partition\":\"0\",\"sequence\":1}");
    is_refused_by(&patterns, "{\"key\":\"a\",\"expected\":0}", "\"unexpected\"", "\"sequence\":1");
    CHECK_ASKS(&patterns, L, "{\"key\":\"b\",\"expected\":0}", 201, "{\"partition\":\"0\",\"sequence\":2}");
    CHECK_ASKS(&patterns, L, "{\"key\":\"a\",\"expected\":1}", 201, "{\"partition\":\"0\",\"sequence\":3}");
    is_refused_by(&patterns, "{\"key\":\"a\",\"expected\":1}", "\"unexpected\"", "\"sequence\":3");
    is_refused_by(&patterns, "{\"key\":\"a\",\"expected\":2}", "\"unexpected\"", "\"sequence\":3");
    is_refused_by(&patterns, "{\"key\":\"a\",\"expected\":9}", "\"unexpected\"", "\"end\":3");
    /* any number up to which the key has been read will do */
    CHECK_ASKS(&patterns, L, "{\"key\":\"b\",\"expected\":3}", 201, "{\"partition\":\"0\",\"sequence\":4}");
    CHECK_REFUSES(&patterns, L, "{\"key\":\"a\",\"expected\":-1}", 400, "bad-request");
    patterns_close(&patterns);
}

TEST(log_append_expects_for_all_events)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, L, "{\"events\":[{\"key\":\"a\"},{\"key\":\"a\"}],\"expected\":0}", 201,
               "{\"events\":[{\"partition\":\"0\",\"sequence\":1},{\"partition\":\"0\",\"sequence\":2}]}");
    is_refused_by(&patterns, "{\"events\":[{\"key\":\"a\"},{\"key\":\"a\"}],\"expected\":1}",
                  "\"unexpected\"", "\"sequence\":2");
    CHECK_REFUSES(&patterns, L, "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\"}],\"expected\":0}", 400,
                  "bad-request");
    struct buf large = {0};
    buf_text(&large, "{\"expected\":2,\"events\":[");
    for (int i = 0; i < 3; i++) {
        if (i) buf_byte(&large, ',');
        buf_text(&large, "{\"key\":\"a\",\"data\":\"");
        for (int k = 0; k < 100000; k++) buf_byte(&large, 'x');
        buf_text(&large, "\"}");
    }
    buf_text(&large, "]}");
    buf_byte(&large, '\0');
    CHECK_REFUSES(&patterns, L, large.data, 413, "too-large");
    buf_free(&large);
    patterns_close(&patterns);
}

TEST(log_append_repeats_what_was_expected)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, L, "{\"key\":\"a\",\"expected\":0,\"token\":\"t\"}", 201,
               "{\"partition\":\"0\",\"sequence\":1}");
    makes(&patterns, L, "{\"key\":\"a\"}");
    CHECK_ASKS(&patterns, L, "{\"key\":\"a\",\"expected\":0,\"token\":\"t\"}", 201,
               "{\"partition\":\"0\",\"sequence\":1,\"repeated\":true}");
    is_refused_by(&patterns, "{\"key\":\"a\",\"expected\":0,\"token\":\"u\"}", "\"unexpected\"",
                  "\"sequence\":2");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "call");
        asks(&patterns, L, "{\"events\":[{\"key\":\"a\"},{\"key\":\"a\"}],\"expected\":2}");
        CHECK_INT(patterns.call.status, 201);
    }
    CHECK_ASKS(&patterns, L, "{\"key\":\"a\",\"expected\":4}", 201, "{\"partition\":\"0\",\"sequence\":5}");
    patterns_close(&patterns);
}

/* What stands in a partition that was split, or merged, counts. */
TEST(log_append_expects_across_splits_and_merges)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    for (int i = 0; i < 2; i++) makes(&patterns, L, "{\"key\":\"k3\"}"); /* of partition 0 */
    for (int i = 0; i < 3; i++) makes(&patterns, L, "{\"key\":\"k0\"}"); /* of partition 1 */
    makes(&patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}");
    is_refused_by(&patterns, "{\"key\":\"k3\",\"expected\":1}", "\"unexpected\"", "\"sequence\":2");
    is_refused_by(&patterns, "{\"key\":\"k3\",\"expected\":0}", "\"unexpected\"", "\"sequence\":2");
    makes(&patterns, L, "{\"key\":\"k3\",\"expected\":2}"); /* 3 */
    makes(&patterns, "POST /v1/logs/l/merge", "{\"partitions\":[\"3\",\"1\"]}");
    is_refused_by(&patterns, "{\"key\":\"k0\",\"expected\":2}", "\"unexpected\"", "\"sequence\":3");
    makes(&patterns, L, "{\"key\":\"k0\",\"expected\":3}");
    makes(&patterns, L, "{\"key\":\"k3\",\"expected\":3}");
    patterns_close(&patterns);
}

/* ---- in every order ---- */

/* No event of the key stands between what an append expected and itself, and whoever was refused was beaten. */
static void check_expected(struct outcome *outcome)
{
    int64_t numbers[40], data[40];
    unsigned count = 0, appended = 0;
    struct raw_walk walk;
    struct slice event, page = outcome_ask(outcome, "GET /v1/logs/l/keys/a", NULL);
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, page, "events"));
    while (count < 40 && raw_walk_next(&walk, NULL, &event)) {
        raw_int(raw_text(outcome->arena, raw_member(outcome->arena, event, "sequence")), &numbers[count]);
        raw_int(raw_text(outcome->arena, raw_member(outcome->arena, event, "data")), &data[count]);
        if (count && numbers[count] <= numbers[count - 1])
            outcome_fault(outcome, "out of order: %.*s", SLICE_ARG(page));
        count++;
    }
    for (unsigned i = 0; i < 2; i++) { /* the first two expect the number 1 */
        int status = outcome->answers[i].status;
        int64_t number = outcome_int(outcome, i, "sequence");
        if (status != 201 && status != 409)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
        for (unsigned k = 0; k < count; k++) {
            if (data[k] == i) appended++;
            if (status == 201 && numbers[k] > 1 && numbers[k] < number)
                outcome_fault(outcome, "%lld is before %lld", (long long)numbers[k], (long long)number);
            if (data[k] == i && status == 201 && numbers[k] != number)
                outcome_fault(outcome, "it is elsewhere");
        }
    }
    if (appended > 1) outcome_fault(outcome, "both were appended: %.*s", SLICE_ARG(page));
    if (count < 2) outcome_fault(outcome, "nobody was: %.*s", SLICE_ARG(page));
}

static const struct exploration expected = {
    .name = "log appended to by two who expect the same, and one who does not",
    .flows = {REQUEST(L, "{\"key\":\"a\",\"data\":0,\"expected\":1,\"token\":\"t\"}"),
              REQUEST(L, "{\"key\":\"a\",\"data\":1,\"expected\":1,\"token\":\"u\"}"),
              REQUEST(L, "{\"key\":\"b\",\"data\":2}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST(L, "{\"key\":\"a\",\"data\":9,\"token\":\"x\"}")},
    .faults = 1,
    .check = check_expected};

static const struct exploration expected_others = {
    .name = "log appended to by one who expects nothing of the same key",
    .flows = {REQUEST(L, "{\"key\":\"a\",\"data\":0,\"expected\":1}"),
              REQUEST(L, "{\"key\":\"a\",\"data\":1,\"expected\":1}"),
              REQUEST(L, "{\"key\":\"a\",\"data\":2}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"), REQUEST(L, "{\"key\":\"a\",\"data\":9}")},
    .check = check_expected};

static const struct exploration expected_splits = {
    .name = "log split while two expect the same",
    .flows = {REQUEST(L, "{\"key\":\"a\",\"data\":0,\"expected\":1,\"token\":\"t\"}"),
              REQUEST(L, "{\"key\":\"a\",\"data\":1,\"expected\":1,\"token\":\"u\"}"),
              REQUEST("POST /v1/logs/l/split", "{\"partition\":\"0\"}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST(L, "{\"key\":\"a\",\"data\":9,\"token\":\"x\"}")},
    .faults = 1,
    .check = check_expected};

TEST(explore_log_expected)
{
    explore(&expected);
    explore(&expected_others);
    explore(&expected_splits);
    explore_broken(&expected, "attribute_not_exists(#first)",
                   "(attribute_not_exists(#first) or attribute_exists(#first))");
}

/* ---- the events of a key ---- */

TEST(log_key_is_read_in_order)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/keys/a", NULL, 200,
               "{\"key\":\"a\",\"events\":[],\"position\":0,\"read\":0}");
    for (int i = 0; i < 3; i++) {
        makes(&patterns, L, "{\"key\":\"a\",\"data\":1}");
        makes(&patterns, L, "{\"key\":\"b/c\",\"data\":2}");
    }
#define EVENT_AT(number, data)                                                                               \
    "{\"partition\":\"0\",\"sequence\":" number ",\"time\":\"2054-11-15T04:13:25.340Z\",\"data\":" data "}"
    CHECK_ASKS(&patterns, "GET /v1/logs/l/keys/b%2Fc", NULL, 200,
               "{\"key\":\"b/c\",\"events\":[" EVENT_AT("2", "2") "," EVENT_AT("4", "2") "," EVENT_AT(
                   "6", "2") "],\"position\":6,\"read\":6}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/keys/a?after=1&limit=1", NULL, 200,
               "{\"key\":\"a\",\"events\":[" EVENT_AT("3", "1") "],\"position\":3,\"read\":2,\"next\":3}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/keys/a?after=5", NULL, 200,
               "{\"key\":\"a\",\"events\":[],\"position\":6,\"read\":1}");
    CHECK_ASKS(&patterns, "GET /v1/logs/l/keys/none", NULL, 200,
               "{\"key\":\"none\",\"events\":[],\"position\":6,\"read\":6}");
    CHECK_REFUSES(&patterns, "GET /v1/logs/m/keys/a", NULL, 404, "no-such-log");
    CHECK_REFUSES(&patterns, "GET /v1/logs/l/keys/a?after=x", NULL, 400, "bad-request");
    patterns_close(&patterns);
}

/* The numbers that a key's events have in `data`, page by page. */
static int read_key(struct patterns *patterns, const char *key, int limit)
{
    char request[100];
    int64_t after = 0, number;
    for (int next = 0;;) {
        struct raw_walk walk;
        struct slice event;
        snprintf(request, sizeof request, "GET /v1/logs/l/keys/%s?limit=%d&after=%lld", key, limit,
                 (long long)after);
        struct slice reply = asks(patterns, request, NULL);
        raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, reply, "events"));
        while (raw_walk_next(&walk, NULL, &event)) {
            raw_int(raw_text(&patterns->arena, raw_member(&patterns->arena, event, "data")), &number);
            CHECK_INT(number, next++);
        }
        if (!raw_int(raw_text(&patterns->arena, raw_member(&patterns->arena, reply, "next")), &after))
            return next;
    }
}

TEST(log_key_is_read_across_splits_and_merges)
{
    static const char *const changes[][2] = {{"split", "{\"partition\":\"0\"}"},          /* 2, 3 */
                                             {"split", "{\"partition\":\"3\"}"},          /* 4, 5 */
                                             {"merge", "{\"partitions\":[\"5\",\"1\"]}"}, /* 6 */
                                             {"merge", "{\"partitions\":[\"4\",\"6\"]}"}, /* 7 */
                                             {"split", "{\"partition\":\"7\"}"}};
    struct patterns patterns;
    char request[60], body[60];
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 8; i++) {
            if (round % 2 && i % 2) continue; /* some partitions get nothing for a while */
            snprintf(body, sizeof body, "{\"key\":\"k%d\",\"data\":%d}", i, i % 2 ? round / 2 : round);
            makes(&patterns, L, body);
        }
        snprintf(request, sizeof request, "POST /v1/logs/l/%s", round < 5 ? changes[round][0] : "");
        if (round < 5) makes(&patterns, request, changes[round][1]);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(body, sizeof body, "k%d", i);
        CHECK_INT(read_key(&patterns, body, 1 + i), i % 2 ? 3 : 6);
    }
    patterns_close(&patterns);
}
