/* Patterns by the method and path of their HTTP routes, on the thread that calls (pattern_run). */
#include "base/fail.h"
#include "library/internal.h"

struct library_request {
    struct rest_call call; /* first */
    struct slice headers;
};

static bool take_piece(struct rest_call *call, struct slice bytes)
{
    buf_slice(call->reply, bytes);
    return true;
}

/* ---- headers ---- */

/* The next line without its end, and what is behind it. */
static struct slice take_line(struct slice *rest)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    struct slice line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, line.len + (end != NULL));
    if (line.len && line.data[line.len - 1] == '\r') line.len--;
    return line;
}

static struct slice find_header(struct slice headers, struct slice name)
{
    while (headers.len) {
        struct slice line = take_line(&headers);
        if (line.len <= name.len || line.data[name.len] != ':') continue;
        if (!slice_equal_ignoring_case((struct slice){line.data, name.len}, name)) continue;
        line = slice_from(line, name.len + 1);
        while (line.len && line.data[0] == ' ') line = slice_from(line, 1);
        while (line.len && line.data[line.len - 1] == ' ') line.len--;
        return line;
    }
    return SLICE_NONE;
}

static struct slice header_of(const struct rest_call *call, struct slice name)
{
    return find_header(((const struct library_request *)call)->headers, name);
}

/* ---- calls ---- */

static const char *text_copy(struct arena *arena, struct slice text)
{
    return arena_copy(arena, text).data;
}

static void tell_error(struct owned_reply *owned)
{
    static const char *const names[] = {"error", "message"};
    struct slice raws[2] = {SLICE(""), SLICE("")};
    raw_members(&owned->arena, buf_view(&owned->json), names, raws, 2);
    owned->reply.error = text_copy(&owned->arena, raw_string(&owned->arena, raws[0]));
    owned->reply.message = text_copy(&owned->arena, raw_string(&owned->arena, raws[1]));
}

static void tell_headers(struct owned_reply *owned, struct slice headers)
{
    struct slice etag = find_header(headers, SLICE("ETag"));
    struct buf lines = {0};
    if (etag.len > 2) /* in quotes */
        owned->reply.etag = text_copy(&owned->arena, (struct slice){etag.data + 1, etag.len - 2});
    while (headers.len) {
        buf_slice(&lines, take_line(&headers));
        buf_byte(&lines, '\n');
    }
    owned->reply.headers = text_copy(&owned->arena, buf_view(&lines));
    buf_free(&lines);
}

static struct quipu_reply *reply_end(struct owned_reply *owned, int status, struct slice headers)
{
    owned->reply.status = status;
    owned->reply.message = "";
    if (status >= 400) tell_error(owned);
    tell_headers(owned, headers);
    library_show_json(owned);
    return &owned->reply;
}

struct quipu_reply *library_refusal(int status, const char *code, const char *sentence)
{
    struct owned_reply *owned = must_zero(1, sizeof *owned);
    buf_text(&owned->json, "{\"error\":");
    json_put_string(&owned->json, slice_of(code));
    buf_text(&owned->json, ",\"message\":");
    json_put_string(&owned->json, slice_of(sentence));
    buf_byte(&owned->json, '}');
    return reply_end(owned, status, SLICE(""));
}

struct quipu_reply *library_pattern(struct quipu *db, struct slice method, struct slice path,
                                    struct slice headers, struct slice body)
{
    struct owned_reply *owned = must_zero(1, sizeof *owned);
    struct arena arena = {0};
    const char *mark = path.len ? memchr(path.data, '?', path.len) : NULL;
    size_t path_len = mark ? (size_t)(mark - path.data) : path.len;
    struct library_request request = {.call = {.method = method,
                                               .path = {path.data, path_len},
                                               .query = slice_from(path, mark ? path_len + 1 : path_len),
                                               .body = body,
                                               .header = header_of,
                                               .arena = &arena,
                                               .piece = take_piece,
                                               .reply = &owned->json},
                                      .headers = headers};
    bool is_ours = pattern_run(db->pattern, &request.call);
    struct quipu_reply *reply = is_ours ? reply_end(owned, request.call.status, request.call.headers)
                                        : library_refusal(404, "no-such-route", "No pattern has this path.");
    if (!is_ours) quipu_reply_free(&owned->reply);
    arena_free(&arena);
    return reply;
}

struct quipu_reply *quipu_pattern(struct quipu *db, const char *method, const char *path, const char *headers,
                                  const char *body)
{
    return library_pattern(db, slice_of(method), slice_of(path), slice_of(headers ? headers : ""),
                           slice_of(body ? body : ""));
}

void quipu_stop(struct quipu *db)
{
    atomic_store(&db->is_stopped, true);
    pattern_stop(db->pattern);
}

enum quipu_result quipu_sweep(struct quipu *db, struct quipu_reply **reply)
{
    struct owned_reply *owned = must_zero(1, sizeof *owned);
    int status = pattern_sweep(db->pattern, &owned->json);
    if (status == 200) buf_text(&owned->json, "{}");
    reply_end(owned, status, SLICE(""));
    if (reply) quipu_reply_free(*reply);
    if (reply)
        *reply = &owned->reply;
    else
        quipu_reply_free(&owned->reply);
    return status == 200 ? QUIPU_DONE : QUIPU_FAILED;
}
