/* Requests of Lambda's API, each operation on a database in memory: whatever comes, it is answered once, in
 * JSON, and what was changed can be read back.
 *
 * An input is a byte that chooses the operation, and lines: two parameters of the path, the query, the value
 * of every header; what is left is the body. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "func/archive.h"
#include "func/lambda.h"

#define FUNCTIONS_MAX 20 /* then all is begun anew */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t fuzz_now(void *self)
{
    return ++*(int64_t *)self;
}
static int64_t now_ms = 1700000000000;
static const struct clock fuzz_clock = {fuzz_now, &now_ms};
static struct dynamo *dynamo;
static struct func *func;

static char folder[] = "/tmp/quipu-fuzz-XXXXXX";

static void clean_up(void)
{
    archive_remove(folder);
}

static void begin_anew(void)
{
    static bool has_folder;
    char error[256] = "";
    struct dynamo_options dynamo_options = {.clock = &clock_system};
    func_close(func);
    if (dynamo) dynamo_close(dynamo);
    if (!has_folder) {
        has_folder = mkdtemp(folder) != NULL;
        atexit(clean_up);
    }
    dynamo = dynamo_open(":memory:", &dynamo_options, error, sizeof error);
    ensure(dynamo);
    struct func_options options = {.dynamo = dynamo,
                                   .clock = &fuzz_clock,
                                   .folder = folder,
                                   .region = "us-east-1",
                                   .account = "000000000000"};
    func = func_open(&options, error, sizeof error);
    ensure(func);
}

/* ---- one call ---- */

static _Atomic unsigned answers;
static struct slice header_value;

static void answered(struct rest_call *call)
{
    (void)call;
    atomic_fetch_add(&answers, 1);
}

static struct slice header(const struct rest_call *call, struct slice name)
{
    (void)call, (void)name;
    return header_value;
}

static struct slice take_line(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    struct slice line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, line.len + (end != NULL));
    return line;
}

typedef void operation(void *room, struct rest_call *call);
static operation *const operations[] = {
#define X(name) lambda_##name,
    LAMBDA_OPERATIONS(X)
#undef X
};

static void check_reply(const struct rest_call *call, struct arena *arena)
{
    struct document document;
    ensure(call->status >= 200 && call->status < 600);
    if (call->status == 204 || call->content_type.len) return;
    ensure(document_parse(buf_view(call->reply), arena, &document));
    ensure(utf8_valid(buf_view(call->reply)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice rest = {(const char *)data + 1, size ? size - 1 : 0};
    if (!size) return 0;
    if (!func || registry_size(func->registry) > FUNCTIONS_MAX) begin_anew();
    struct rest_call call = {.method = SLICE("POST"),
                             .header = header,
                             .arena = &arena,
                             .done = answered,
                             .headers = SLICE(""),
                             .reply = &reply};
    call.parameters[0] = take_line(&rest);
    call.parameters[1] = take_line(&rest);
    call.query = take_line(&rest);
    header_value = take_line(&rest);
    call.body = rest;
    /* The router hands out well-formed texts only. */
    if (utf8_valid(call.parameters[0]) && utf8_valid(call.parameters[1])) {
        atomic_store(&answers, 0);
        operations[data[0] % (sizeof operations / sizeof *operations)](func, &call);
        ensure(atomic_load(&answers) == 1);
        check_reply(&call, &arena);
    }
    buf_free(&reply);
    arena_free(&arena);
    return 0;
}
