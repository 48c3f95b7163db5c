/* Partitions that a server splits and merges by itself: when, and when not; each key stays in order. */
#include "unit/pattern_explore.h"
#include "unit/pattern_fixture.h"

#define STEP_MS 10000 /* between two looks */
#define KEYS    40

static void makes(struct patterns *patterns, const char *request, const char *body)
{
    struct slice reply = asks(patterns, request, body);
    if (patterns->call.status >= 300)
        test_failed(__FILE__, __LINE__, "%s %s: %.*s", request, body, SLICE_ARG(reply));
}

static int64_t number(struct patterns *patterns, struct slice reply, const char *name)
{
    int64_t value = -1;
    raw_int(raw_text(&patterns->arena, raw_member(&patterns->arena, reply, name)), &value);
    return value;
}

TEST(log_scale_is_a_setting)
{
    struct patterns patterns;
    patterns_open(&patterns);
    static const char *const wrong[] = {"{\"scale\":{}}",
                                        "{\"scale\":7}",
                                        "{\"scale\":{\"split_above\":\"500\"}}",
                                        "{\"scale\":{\"split_above\":\"0/s\"}}",
                                        "{\"scale\":{\"split_above\":\"9/s\",\"merge_below\":\"5/s\"}}",
                                        "{\"scale\":{\"split_above\":\"9/s\",\"partitions\":1}}",
                                        "{\"scale\":{\"split_above\":\"9/s\",\"partitions\":257}}",
                                        "{\"scale\":{\"split_above\":\"9/s\",\"other\":1}}",
                                        "{\"partitions\":300,\"scale\":{\"split_above\":\"9/s\"}}"};
    CHECK_REFUSES(&patterns, "PUT /v1/logs/x", wrong[8], 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/logs/x", NULL, 404, "no-such-log"); /* nothing was made */
    CHECK_ASKS(&patterns, "PUT /v1/logs/y", "{\"scale\":{\"split_above\":\"9/s\",\"partitions\":3}}", 201,
               "{\"log\":\"y\",\"partitions\":3,\"scale\":{\"split_above\":\"9/s\",\"partitions\":3}}");
    makes(&patterns, "DELETE /v1/logs/y", NULL);
    makes(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    for (size_t i = 0; i < 8; i++) CHECK_REFUSES(&patterns, "PUT /v1/logs/l", wrong[i], 400, "bad-request");
#define SETTINGS "\"scale\":{\"split_above\":\"90/m\",\"merge_below\":\"45/m\",\"partitions\":8}"
    CHECK_ASKS(&patterns, "PUT /v1/logs/l", "{" SETTINGS "}", 200,
               "{\"log\":\"l\",\"partitions\":2," SETTINGS "}");
    struct slice shown = asks(&patterns, "GET /v1/logs/l", NULL);
    CHECK(slice_contains(shown, SLICE(SETTINGS)));
    struct slice copy = arena_copy(&patterns.arena, shown);
    char body[1000];
    snprintf(body, sizeof body, "%.*s", SLICE_ARG(copy));
    makes(&patterns, "PUT /v1/logs/l", body); /* what GET answers can be put back */
    CHECK_ASKS(&patterns, "PUT /v1/logs/l", "{\"scale\":null}", 200, "{\"log\":\"l\",\"partitions\":2}");
    patterns_close(&patterns);
}

/* ---- a simulation ---- */

struct simulation {
    struct patterns patterns;
    struct random random;
    int appended[KEYS], read[KEYS];
    int64_t version; /* of the log: grows with each change */
    size_t open;
};

/* Ten seconds: so many events, of the first keys most, then a look. */
static void step(struct simulation *simulation, int events, int keys)
{
    struct buf body = {0};
    buf_text(&body, "{\"events\":[");
    for (int i = 0; i < events; i++) {
        uint64_t one = random_next(&simulation->random) % (uint64_t)keys,
                 other = random_next(&simulation->random) % (uint64_t)keys;
        unsigned key = (unsigned)(one < other ? one : other);
        buf_printf(&body, "%s{\"key\":\"k%u\",\"data\":%d}", i ? "," : "", key, simulation->appended[key]++);
    }
    buf_text(&body, "]}");
    buf_byte(&body, '\0');
    if (events) makes(&simulation->patterns, "POST /v1/logs/l", body.data);
    body.len = 0;
    simulation->patterns.now_ms += STEP_MS;
    CHECK_INT(pattern_sweep(simulation->patterns.pattern, &body), 200);
    buf_free(&body);
}

/* How many changes the server has made since it was asked last. */
static int changes(struct simulation *simulation)
{
    struct patterns *patterns = &simulation->patterns;
    struct slice shown = asks(patterns, "GET /v1/logs/l", NULL);
    int64_t version = number(patterns, shown, "version"), before = simulation->version;
    simulation->version = version;
    simulation->open = raw_count(&patterns->arena, raw_member(&patterns->arena, shown, "open"));
    return (int)(version - before);
}

/* Everything is read, and each key in order. */
static void read_all(struct simulation *simulation)
{
    struct patterns *patterns = &simulation->patterns;
    for (;;) {
        struct raw_walk walk;
        struct slice event,
            reply = asks(patterns, "POST /v1/logs/l/consumers/g/read", "{\"owner\":\"o\",\"max\":1000}");
        char ack[200];
        int64_t last = 0;
        if (patterns->call.status == 204) break;
        raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, reply, "events"));
        while (raw_walk_next(&walk, NULL, &event)) {
            struct slice key = raw_text(&patterns->arena, raw_member(&patterns->arena, event, "key"));
            CHECK_INT(number(patterns, event, "data"), simulation->read[atoi(key.data + 1)]++);
            last = number(patterns, event, "sequence");
        }
        struct slice partition = raw_text(&patterns->arena, raw_member(&patterns->arena, reply, "partition"));
        snprintf(ack, sizeof ack, "{\"partition\":\"%.*s\",\"fence\":%lld,\"sequence\":%lld}",
                 SLICE_ARG(partition), (long long)number(patterns, reply, "fence"), (long long)last);
        makes(patterns, "POST /v1/logs/l/consumers/g/ack", ack);
    }
    for (int i = 0; i < KEYS; i++) CHECK_INT(simulation->read[i], simulation->appended[i]);
}

/* 300 events a minute and partition are too many, 120 of two neighbours few. */
static void simulate(uint64_t seed)
{
    struct simulation simulation = {0};
    random_seed(&simulation.random, seed);
    patterns_open(&simulation.patterns);
    makes(
        &simulation.patterns, "PUT /v1/logs/l",
        "{\"partitions\":2,\"scale\":{\"split_above\":\"300/m\",\"merge_below\":\"120/m\",\"partitions\":16}}");
    for (int i = 0; i < 12; i++) step(&simulation, 30, KEYS);
    CHECK_INT(changes(&simulation), 0); /* neither much nor fewer than it began with */
    for (int i = 0; i < 2; i++) step(&simulation, 300, KEYS);
    for (int i = 0; i < 12; i++) step(&simulation, 30, KEYS);
    CHECK_INT(changes(&simulation), 0); /* a burst */
    for (int i = 0; i < 40; i++) step(&simulation, 150, 1);
    CHECK_INT(changes(&simulation), 0); /* one key: no split helps */
    for (int i = 0; i < 60; i++) step(&simulation, 150, KEYS);
    CHECK(changes(&simulation) >= 2);
    CHECK(simulation.open >= 4 && simulation.open <= 10);
    size_t grown = simulation.open;
    for (int i = 0; i < 90; i++) step(&simulation, 150, KEYS);
    CHECK(changes(&simulation) <= 1); /* it is found: a partition at the limit may be left */
    CHECK(simulation.open >= grown);
    struct slice shown = asks(&simulation.patterns, "GET /v1/logs/l", NULL);
    CHECK(slice_contains(shown, SLICE("\"rate\":\"")) && slice_contains(shown, SLICE("\"changes\":[{")));
    read_all(&simulation);
    int steps = 0;
    while (simulation.open > 2 && steps++ < 1000) {
        step(&simulation, 2, KEYS);
        if (steps % 20 == 0) changes(&simulation);
    }
    CHECK_INT(simulation.open, 2); /* as many as it began with, */
    changes(&simulation);
    for (int i = 0; i < 100; i++) step(&simulation, 2, KEYS);
    CHECK_INT(changes(&simulation), 0); /* and no fewer */
    read_all(&simulation);
    patterns_close(&simulation.patterns);
}

/* Only on the database in memory: it goes by hours. */
TEST(scale_of_logs_is_found_and_stays)
{
    for (uint64_t seed = 1; seed <= 3; seed++) simulate(seed);
}

/* ---- in every order ---- */

/* One of two servers has split it, once, and every event is where its key says, in order. */
static void check_scaled(struct outcome *outcome)
{
    struct slice log = outcome_ask(outcome, "GET /v1/logs/l", NULL), event;
    struct raw_walk walk;
    unsigned found = 0;
    size_t open = raw_count(outcome->arena, raw_member(outcome->arena, log, "open"));
    if (open > 2) outcome_fault(outcome, "%.*s", SLICE_ARG(log));
    if (outcome->answers[2].status != 201)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[2].body));
    struct slice page = outcome_ask(outcome, "GET /v1/logs/l/keys/a", NULL);
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, page, "events"));
    while (raw_walk_next(&walk, NULL, &event)) {
        int64_t data = -1;
        raw_int(raw_text(outcome->arena, raw_member(outcome->arena, event, "data")), &data);
        if (data != found++) outcome_fault(outcome, "%.*s", SLICE_ARG(page));
    }
    if (found != 3) outcome_fault(outcome, "%u events: %.*s", found, SLICE_ARG(page));
}

static const struct exploration scaled = {
    .name = "log split by two servers while somebody appends",
    .flows = {REQUEST("SWEEP logs", NULL), REQUEST("SWEEP logs", NULL),
              REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":2,\"token\":\"t\"}")},
    .before = {REQUEST("PUT /v1/logs/l",
                       "{\"partitions\":1,\"scale\":{\"split_above\":\"1/m\",\"partitions\":2}}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":0,\"token\":\"x\"}"),
               REQUEST("SWEEP logs", NULL),
               REQUEST("POST /v1/logs/l",
                       "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"b\",\"data\":1},"
                       "{\"key\":\"c\",\"data\":1},{\"key\":\"d\",\"data\":1}]}")},
    .jumps = {40000},
    .faults = 1,
    .check = check_scaled};

static void check_was_scaled(struct outcome *outcome)
{
    outcome_ask(outcome, "GET /v1/logs/l", NULL);
    struct slice log = outcome_ask(outcome, "GET /v1/logs/l", NULL);
    if (raw_count(outcome->arena, raw_member(outcome->arena, log, "open")) != 1)
        outcome_fault(outcome, "it was split");
}

TEST(explore_log_scale)
{
    struct exploration splits = scaled;
    explore(&scaled);
    splits.check = check_was_scaled; /* the schedules do split it */
    explore_broken(&splits, "\"#at = :seen\"", "\"#at = :seen\"");
}
