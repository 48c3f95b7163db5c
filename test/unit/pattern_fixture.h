/* The patterns over a database in memory, asked in few words. With PATTERNS_ON=URL in the environment they
 * are over that DynamoDB endpoint instead, where each test has tables of its own. */
#ifndef TEST_UNIT_PATTERN_FIXTURE_H
#define TEST_UNIT_PATTERN_FIXTURE_H

#include <stdlib.h>

#include "base/fail.h"
#include "base/random.h"
#include "base/ring.h"
#include "pattern/pattern.h"
#include "unit/test.h"

#define ASKED_HEADERS 4

struct asked_header {
    const char *name, *value;
};

struct patterns {
    int64_t now_ms;
    struct clock clock;
    char prefix[40];
    struct dynamo *dynamo;
    struct pattern *pattern;
    struct arena arena;
    struct buf reply;
    struct rest_call call;                          /* the last one, with its status and headers */
    struct asked_header headers[ASKED_HEADERS + 1]; /* of the next call; emptied by it */
};

static inline int64_t patterns_now(void *self)
{
    return __atomic_load_n(&((struct patterns *)self)->now_ms, __ATOMIC_SEQ_CST);
}

static inline struct slice asked_header(const struct rest_call *call, struct slice name)
{
    const struct patterns *patterns = ring_owner(call, const struct patterns, call);
    for (size_t i = 0; patterns->headers[i].name; i++)
        if (slice_equal_ignoring_case(slice_of(patterns->headers[i].name), name))
            return slice_of(patterns->headers[i].value);
    return SLICE_NONE;
}

static inline void patterns_open(struct patterns *patterns)
{
    char error[300];
    const char *where = getenv("PATTERNS_ON");
    struct random random;
    /* Far from now: other engines go by the real time, and would remove what has expired by it. */
    *patterns = (struct patterns){.now_ms = 2678328805340, .prefix = "quipu-"};
    random_seed_from_system(&random);
    if (where)
        snprintf(patterns->prefix, sizeof patterns->prefix, "test-%08x-", (unsigned)random_next(&random));
    patterns->clock = (struct clock){patterns_now, patterns};
    struct dynamo_options options = {.clock = &patterns->clock, .access_key = "local", .secret_key = "local"};
    patterns->dynamo = dynamo_open(where ? where : ":memory:", &options, error, sizeof error);
    ensure(patterns->dynamo);
    patterns->pattern = pattern_open(&(struct pattern_options){.dynamo = patterns->dynamo,
                                                               .clock = &patterns->clock,
                                                               .prefix = patterns->prefix,
                                                               .skew_ms = -1,
                                                               .seed = 1});
}

static inline void patterns_close(struct patterns *patterns)
{
    pattern_close(patterns->pattern);
    dynamo_close(patterns->dynamo);
    arena_free(&patterns->arena);
    buf_free(&patterns->reply);
}

/* One call, by "POST /v1/counters/x?cost=1"; the reply stays until the next. */
static inline struct slice asks(struct patterns *patterns, const char *request, const char *body)
{
    const char *space = strchr(request, ' '), *query = strchr(request, '?');
    size_t path_len = query ? (size_t)(query - space - 1) : strlen(space + 1);
    arena_reset(&patterns->arena);
    patterns->reply.len = 0;
    patterns->call = (struct rest_call){.method = {request, (size_t)(space - request)},
                                        .path = {space + 1, path_len},
                                        .query = query ? slice_of(query + 1) : SLICE(""),
                                        .body = body ? slice_of(body) : SLICE_NONE,
                                        .header = asked_header,
                                        .arena = &patterns->arena,
                                        .reply = &patterns->reply};
    ensure(pattern_run(patterns->pattern, &patterns->call));
    memset(patterns->headers, 0, sizeof patterns->headers);
    return buf_view(&patterns->reply);
}

static inline void with_header(struct patterns *patterns, const char *name, const char *value)
{
    size_t i = 0;
    while (patterns->headers[i].name) i++;
    ensure(i < ASKED_HEADERS);
    patterns->headers[i] = (struct asked_header){name, value};
}

#define CHECK_ASKS(patterns, request, body, expected_status, expected)                                       \
    do {                                                                                                     \
        CHECK_TEXT(asks(patterns, request, body), expected);                                                 \
        CHECK_INT((patterns)->call.status, expected_status);                                                 \
    } while (0)

/* A refusal: its status and code; the sentence is for people. */
#define CHECK_REFUSES(patterns, request, body, expected_status, code)                                        \
    do {                                                                                                     \
        struct slice check_reply = asks(patterns, request, body);                                            \
        if ((patterns)->call.status != (expected_status) ||                                                  \
            !slice_starts(check_reply, SLICE("{\"error\":\"" code "\",\"message\":\"")))                     \
            test_failed(__FILE__, __LINE__, "%d %.*s", (patterns)->call.status, SLICE_ARG(check_reply));     \
    } while (0)

#endif
