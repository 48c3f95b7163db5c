#include "unit/func_lab.h"

#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/json.h"
#include "func/archive.h"
#include "func/document.h"

/* ---- the room ---- */

static int64_t lab_now(void *self)
{
    return atomic_fetch_add(&((struct lab *)self)->now_ms, 1); /* time always moves */
}

static void open_func(struct lab *lab)
{
    char error[256] = "";
    struct func_options options = {.dynamo = lab->dynamo,
                                   .clock = &lab->clock,
                                   .folder = lab->folder,
                                   .region = "us-east-1",
                                   .account = "000000000000",
                                   .shared = lab->shared};
    lab->func = func_open(&options, error, sizeof error);
    if (!lab->func) test_failed(__FILE__, __LINE__, "the room does not open: %s", error);
}

static void open_lab(struct lab *lab, struct dynamo *dynamo, bool shared)
{
    *lab = (struct lab){.dynamo = dynamo, .now_ms = 1700000000000, .shared = shared, .owns_dynamo = true};
    lab->clock = (struct clock){lab_now, lab};
    snprintf(lab->folder, sizeof lab->folder, "/tmp/quipu-func-XXXXXX");
    CHECK(mkdtemp(lab->folder) != NULL);
    open_func(lab);
}

static struct dynamo *open_memory(void)
{
    char error[256] = "";
    struct dynamo_options options = {0};
    struct dynamo *dynamo = dynamo_open(":memory:", &options, error, sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "no database: %s", error);
    return dynamo;
}

void lab_open(struct lab *lab)
{
    open_lab(lab, open_memory(), false);
}

void lab_open_shared(struct lab *lab)
{
    open_lab(lab, open_memory(), true);
}

void lab_open_on(struct lab *lab, struct dynamo *dynamo, bool shared)
{
    open_lab(lab, dynamo, shared);
    lab->owns_dynamo = false;
}

void lab_open_beside(struct lab *lab, const struct lab *first)
{
    lab_open_on(lab, first->dynamo, true);
}

void lab_reopen(struct lab *lab)
{
    func_close(lab->func);
    open_func(lab);
}

static void answer_nothing(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_reply(exchange, 404, SLICE("text/plain"), SLICE(""));
}

static struct slice refuse_nothing(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context, (void)status, (void)reason, (void)body;
    return SLICE("text/plain");
}

static void forward_nothing(void *context, struct http_exchange *exchange, struct slice cause)
{
    (void)cause;
    answer_nothing(context, exchange);
}

void lab_start(struct lab *lab)
{
    char error[256] = "";
    struct net_options options = {.host = "127.0.0.1",
                                  .threads = 1,
                                  .limits = net_limits_default,
                                  .handler = {.request = answer_nothing, .refusal = refuse_nothing}};
    lab->server = net_server_new(&options, error, sizeof error);
    if (!lab->server) test_failed(__FILE__, __LINE__, "no server: %s", error);
    func_start(lab->func, lab->server, forward_nothing, NULL);
}

void lab_close(struct lab *lab)
{
    func_close(lab->func);
    if (lab->server) net_server_free(lab->server);
    if (lab->owns_dynamo) dynamo_close(lab->dynamo);
    archive_remove(lab->folder);
}

struct slice lab_dynamo(struct lab *lab, const char *operation, const char *request, struct arena *arena)
{
    struct buf reply = {0};
    dynamo_call(lab->dynamo, slice_of(operation), slice_of(request), &reply);
    struct slice copy = arena_copy(arena, buf_view(&reply));
    buf_free(&reply);
    return copy;
}

/* ---- requests ---- */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    const char *header;
};

struct lab_call {
    struct rest_call call; /* first: the call is us */
    struct waiting waiting;
};

static void call_done(struct rest_call *call)
{
    struct waiting *waiting = &((struct lab_call *)call)->waiting;
    pthread_mutex_lock(&waiting->lock);
    waiting->is_done = true;
    pthread_cond_signal(&waiting->done);
    pthread_mutex_unlock(&waiting->lock);
}

static struct slice call_header(const struct rest_call *call, struct slice name)
{
    const char *header = ((const struct lab_call *)call)->waiting.header;
    struct slice line = header ? slice_of(header) : SLICE("");
    if (slice_equal_ignoring_case(name, SLICE("Host"))) return SLICE("localhost:9140");
    if (line.len < name.len + 2 || !slice_equal_ignoring_case((struct slice){line.data, name.len}, name))
        return SLICE_NONE;
    return slice_from(line, name.len + 2);
}

struct answer lab_send(struct lab *lab, const char *method, const char *target, const char *body,
                       const char *header)
{
    struct answer answer = {0};
    struct lab_call sent = {.waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, header}};
    const char *query = strchr(target, '?');
    sent.call = (struct rest_call){
        .method = slice_of(method),
        .path = {target, query ? (size_t)(query - target) : strlen(target)},
        .query = query ? slice_of(query + 1) : SLICE(""),
        .body = slice_of(body ? body : ""),
        .header = call_header,
        .arena = &answer.arena,
        .done = call_done,
        .reply = &answer.body,
        .headers = SLICE(""),
    };
    if (!func_serve(lab->func, &sent.call)) {
        answer.status = 404;
        return answer;
    }
    pthread_mutex_lock(&sent.waiting.lock);
    while (!sent.waiting.is_done) pthread_cond_wait(&sent.waiting.done, &sent.waiting.lock);
    pthread_mutex_unlock(&sent.waiting.lock);
    answer.status = sent.call.status;
    answer.headers = sent.call.headers;
    return answer;
}

void answer_free(struct answer *answer)
{
    buf_free(&answer->body);
    arena_free(&answer->arena);
}

struct slice answer_member(struct answer *answer, const char *path)
{
    struct slice json = buf_view(&answer->body);
    struct document document;
    while (*path) {
        size_t len = strcspn(path, ".");
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        if (!document_parse(json, &answer->arena, &document)) return SLICE("");
        json = document_get(&document, name);
        if (!json.data) return SLICE("");
        path += len + (path[len] == '.');
    }
    return json;
}

struct slice answer_text(struct answer *answer, const char *path)
{
    struct slice json = answer_member(answer, path), text = SLICE("");
    struct json_reader reader;
    json_begin(&reader, json, &answer->arena);
    if (json.len && json_peek(&reader) == JSON_STRING) json_string(&reader, &text);
    return text;
}

void lab_expect(struct lab *lab, const char *method, const char *target, const char *body, int status,
                const char *file, int line)
{
    struct answer answer = lab_send(lab, method, target, body, NULL);
    if (answer.status != status)
        test_failed(file, line, "%s %s: status %d, expected %d: %.*s", method, target, answer.status, status,
                    SLICE_ARG(buf_view(&answer.body)));
    answer_free(&answer);
}

void lab_refused(struct lab *lab, const char *method, const char *target, const char *body, int status,
                 const char *type, const char *message, const char *file, int line)
{
    struct answer answer = lab_send(lab, method, target, body, NULL);
    struct slice told = answer_text(&answer, "message");
    if (!told.len) told = answer_text(&answer, "Message");
    struct slice header = arena_printf(&answer.arena, "X-Amzn-ErrorType: %s\r\n", type);
    if (answer.status != status || !slice_contains(answer.headers, header) ||
        !slice_equal(told, slice_of(message)))
        test_failed(file, line, "%s %s\n  got:      %d %.*s %.*s\n  expected: %d %s %s", method, target,
                    answer.status, SLICE_ARG(answer.headers), SLICE_ARG(buf_view(&answer.body)), status, type,
                    message);
    answer_free(&answer);
}

/* ---- archives ---- */

static void put_le(struct buf *out, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) buf_byte(out, (unsigned char)(value >> (8 * i)));
}

/* What the head of an entry and its line in the directory have in common. */
static void put_common(struct buf *out, const struct lab_file *file)
{
    uint32_t len = (uint32_t)strlen(file->content);
    uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)file->content, len);
    put_le(out, 20, 2);
    put_le(out, 0, 2); /* flags */
    put_le(out, 0, 2); /* stored */
    put_le(out, 0x21, 4);
    put_le(out, crc, 4);
    put_le(out, len, 4);
    put_le(out, len, 4);
    put_le(out, (uint32_t)strlen(file->name), 2);
    put_le(out, 0, 2);
}

void lab_zip(struct buf *out, const struct lab_file *files, size_t count)
{
    struct buf directory = {0};
    size_t start = out->len;
    for (size_t i = 0; i < count; i++) {
        uint32_t offset = (uint32_t)(out->len - start);
        put_le(out, 0x04034b50, 4);
        put_common(out, &files[i]);
        buf_slice(out, slice_of(files[i].name));
        buf_slice(out, slice_of(files[i].content));
        put_le(&directory, 0x02014b50, 4);
        put_le(&directory, files[i].mode ? 3 << 8 | 20 : 20, 2); /* made on Unix, or on DOS */
        put_common(&directory, &files[i]);
        put_le(&directory, 0, 4);
        put_le(&directory, 0, 2);
        put_le(&directory, files[i].mode << 16, 4);
        put_le(&directory, offset, 4);
        buf_slice(&directory, slice_of(files[i].name));
    }
    uint32_t at = (uint32_t)(out->len - start);
    buf_slice(out, buf_view(&directory));
    put_le(out, 0x06054b50, 4);
    put_le(out, 0, 4);
    put_le(out, (uint32_t)count, 2);
    put_le(out, (uint32_t)count, 2);
    put_le(out, (uint32_t)directory.len, 4);
    put_le(out, at, 4);
    put_le(out, 0, 2);
    buf_free(&directory);
}

const char *lab_create_body(struct arena *arena, const char *name, const char *bootstrap, const char *more)
{
    struct buf zip = {0}, text = {0};
    lab_zip(&zip, &(struct lab_file){"bootstrap", bootstrap, 0100755}, 1);
    base64_put(&text, buf_view(&zip));
    struct slice body = arena_printf(
        arena,
        "{\"FunctionName\":\"%s\",\"Runtime\":\"provided.al2023\",\"Handler\":\"h\","
        "\"Role\":\"arn:aws:iam::000000000000:role/r\",\"Code\":{\"ZipFile\":\"%.*s\"}%s%s}",
        name, SLICE_ARG(buf_view(&text)), more && *more ? "," : "", more ? more : "");
    buf_free(&zip);
    buf_free(&text);
    return body.data;
}
