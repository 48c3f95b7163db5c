/* A database in memory behind the API, with a clock that stands where the test puts it. */
#ifndef TEST_UNIT_API_FIXTURE_H
#define TEST_UNIT_API_FIXTURE_H

#include "api/api.h"
#include "base/fail.h"
#include "base/json.h"
#include "unit/test.h"

struct world {
    int64_t now_ms;
    struct clock clock;
    struct store_faults faults;
    struct store *store; /* the engine's */
    struct engine *engine;
    struct api *api;
    struct arena arena;
    struct arena scratch; /* of the test's own texts, until the world is closed */
    struct buf reply;
    int status;
    const char *error;
};

static inline int64_t world_now(void *self)
{
    return ((struct world *)self)->now_ms;
}

/* With these options, as far as they are given: a store in memory unless there is one. */
static inline void world_open_options(struct world *world, struct engine_options options)
{
    char error[300];
    *world = (struct world){.now_ms = 1794716005340};
    world->clock = (struct clock){world_now, world};
    if (!options.store) options.store = store_open_memory(&world->faults);
    options.durable = options.inline_writer = true;
    options.cache_bytes = 1 << 20;
    options.clock = &world->clock;
    options.seed = 1;
    world->store = options.store;
    world->engine = engine_open(&options, error, sizeof error);
    ensure(world->engine);
    world->api = api_new(&(struct api_options){.engine = world->engine,
                                               .region = "us-east-1",
                                               .account = "000000000000",
                                               .endpoint = "localhost:8000"});
}

/* Streams begin with so many shards and keep records so long; 0: as usual. */
static inline void world_open_with(struct world *world, uint32_t stream_shards, int64_t stream_retention_ms)
{
    world_open_options(world, (struct engine_options){.stream_shards = stream_shards,
                                                      .stream_retention_ms = stream_retention_ms});
}

static inline void world_open(struct world *world)
{
    world_open_with(world, 0, 0);
}

static inline void world_close(struct world *world)
{
    api_free(world->api);
    engine_close(world->engine);
    arena_free(&world->arena);
    arena_free(&world->scratch);
    buf_free(&world->reply);
}

/* One call; the reply stays until the next. */
static inline struct slice ask(struct world *world, const char *operation, const char *body)
{
    arena_reset(&world->arena);
    world->reply.len = 0;
    struct api_call call = {.api = world->api,
                            .arena = &world->arena,
                            .reply = &world->reply,
                            .operation = api_operation_find(slice_of(operation)),
                            .body = slice_of(body)};
    ensure(call.operation);
    api_run(&call);
    world->status = call.status;
    world->error = call.error;
    return buf_view(&world->reply);
}

/* The text of a member of the reply's object; SLICE_NONE when it has none. */
static inline struct slice member_text(struct world *world, struct slice json, const char *wanted)
{
    struct json_reader reader;
    struct slice name, text = SLICE_NONE;
    json_begin(&reader, json, &world->arena);
    json_enter(&reader);
    while (json_member(&reader, &name)) {
        if (slice_equal(name, slice_of(wanted)) && json_peek(&reader) == JSON_STRING)
            json_string(&reader, &text);
        else
            json_skip(&reader);
    }
    return json_done(&reader) ? text : SLICE_NONE;
}

#define CHECK_ASK(world, operation, body, expected) CHECK_TEXT(ask(world, operation, body), expected)

#define CHECK_FINE(world, operation, body)                                                                   \
    do {                                                                                                     \
        struct slice check_reply = ask(world, operation, body);                                              \
        if ((world)->status != 200) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(check_reply));         \
    } while (0)

#define CHECK_REFUSED(world, operation, body, short_name, message)                                           \
    do {                                                                                                     \
        struct slice check_reply = ask(world, operation, body);                                              \
        CHECK_TEXT(slice_of((world)->error ? (world)->error : "no error"), short_name);                      \
        struct slice check_message = member_text(world, check_reply, "message");                             \
        if (!check_message.len) check_message = member_text(world, check_reply, "Message");                  \
        CHECK_TEXT(check_message, message);                                                                  \
    } while (0)

#define CHECK_INVALID(world, operation, body, message)                                                       \
    CHECK_REFUSED(world, operation, body, "ValidationException", message)

#define CHECK_CONTAINS(text, part)                                                                           \
    do {                                                                                                     \
        struct slice check_text = (text);                                                                    \
        if (!slice_contains(check_text, slice_of(part)))                                                     \
            test_failed(__FILE__, __LINE__, "\n  %s\n  is not in: %.*s", part, SLICE_ARG(check_text));       \
    } while (0)

#endif
