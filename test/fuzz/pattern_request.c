/* Any bytes as requests to the patterns over a real database: every one is answered in the form that was
 * promised, and whatever stands in it, the calls that it becomes are well-formed.
 *
 * Requests are separated by a zero byte: a line "POST /v1/counters/x?cost=1", a line "Header: value" or none,
 * an empty line, the body. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/attribute.h"
#include "pattern/pattern.h"

static int64_t now_ms;
static struct engine *engine;
static struct pattern *pattern;
static struct engine_snapshot *fresh;

/* Each look at the clock finds it later; so much that nobody waits, where the thread that ends waits looks. */
static _Thread_local int64_t step_ms = 100000;

static int64_t later(void *self)
{
    (void)self;
    return __atomic_add_fetch(&now_ms, step_ms, __ATOMIC_SEQ_CST);
}

static struct slice header_line;

static struct slice header_of(const struct rest_call *call, struct slice name)
{
    (void)call;
    const char *colon = header_line.len ? memchr(header_line.data, ':', header_line.len) : NULL;
    if (!colon || !slice_equal_ignoring_case(
                      (struct slice){header_line.data, (size_t)(colon - header_line.data)}, name))
        return SLICE_NONE;
    struct slice value = slice_from(header_line, (size_t)(colon - header_line.data) + 1);
    while (value.len && value.data[0] == ' ') value = slice_from(value, 1);
    return value;
}

static struct slice take_line(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    struct slice line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

static void check_answer(const struct rest_call *call, struct arena *arena)
{
    struct slice body = buf_view(call->reply);
    struct json_reader reader;
    ensure(call->status == 204 || call->status == 304 || (call->status >= 200 && call->status < 500));
    if (call->content_type.len || !body.len) return;
    json_begin(&reader, body, arena);
    ensure(json_skip(&reader) && json_done(&reader));
    if (call->status < 400) return;
    struct slice code = raw_text(arena, raw_member(arena, body, "error"));
    ensure(code.len && raw_text(arena, raw_member(arena, body, "message")).len);
    ensure(!slice_equal(code, SLICE("refused")));
}

static void ask(struct slice text)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice line = take_line(&text);
    step_ms = 10000;
    const char *space = line.len ? memchr(line.data, ' ', line.len) : NULL;
    header_line = take_line(&text);
    if (header_line.len) take_line(&text);
    if (space) {
        struct slice path = slice_from(line, (size_t)(space - line.data) + 1);
        const char *mark = path.len ? memchr(path.data, '?', path.len) : NULL;
        struct rest_call call = {.method = {line.data, (size_t)(space - line.data)},
                                 .path = path,
                                 .body = text,
                                 .header = header_of,
                                 .arena = &arena,
                                 .reply = &reply};
        if (mark) {
            call.query = slice_from(path, (size_t)(mark - path.data) + 1);
            call.path.len = (size_t)(mark - path.data);
        }
        if (pattern_run(pattern, &call)) check_answer(&call, &arena);
    }
    arena_free(&arena);
    buf_free(&reply);
}

static void open_world(void)
{
    static struct store_faults faults;
    static struct clock clock = {later, NULL};
    char error[300];
    struct engine_options options = {.store = store_open_memory(&faults),
                                     .inline_writer = true,
                                     .cache_bytes = 1 << 20,
                                     .clock = &clock,
                                     .seed = 1};
    engine = engine_open(&options, error, sizeof error);
    ensure(engine);
    struct api *api = api_new(&(struct api_options){
        .engine = engine, .region = "us-east-1", .account = "000000000000", .endpoint = "localhost:8000"});
    pattern = pattern_open(
        &(struct pattern_options){.dynamo = dynamo_open_local(engine, api), .clock = &clock, .seed = 1});
    now_ms = 1794716005340;
    ask(SLICE("POST /v1/counters/x\nIdempotency-Key: a\n\n"));
    ask(SLICE("PUT /v1/documents/c/a\n\n{\"a\":1}"));
    ask(SLICE("POST /v1/leases/x\n\n{\"owner\":\"a\"}"));
    ask(SLICE("POST /v1/boards/b\n\n{\"text\":\"a\"}"));
    ask(SLICE("POST /v1/work/q/a\n\n{\"data\":1}"));
    ask(SLICE("POST /v1/work/q/claim\n\n{}"));
    fresh = engine_snapshot_take(engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size};
    if (!pattern) open_world();
    engine_snapshot_restore(engine, fresh);
    now_ms = 1794716005340;
    while (rest.len) {
        const char *end = memchr(rest.data, '\0', rest.len);
        struct slice text = {rest.data, end ? (size_t)(end - rest.data) : rest.len};
        rest = slice_from(rest, end ? text.len + 1 : text.len);
        ask(text);
    }
    return 0;
}
