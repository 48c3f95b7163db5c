/* Patterns by the method and path of their HTTP routes, on the thread that calls.
 *
 * The flows run as in a server, only that the thread which they borrow is not a loop's but the caller's own:
 * it takes each step of its flow and sleeps in between. So the calls of a program's threads wake each other
 * (who waits for a lease gets it when it is released) and share their work (appends to a log), as those of a
 * server's clients do, and none of them needs a thread of ours. */
#include <pthread.h>

#include "base/fail.h"
#include "library/internal.h"

/* A call, and the thread that waits for it. */
struct errand {
    struct rest_call rest; /* first: the host is given this */
    struct slice headers;
    struct dynamo_turn turn;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    struct pattern_task *task; /* a step to take; NULL: none */
    bool is_done;
};

static struct errand *errand_of(struct rest_call *call)
{
    return (struct errand *)call;
}

/* ---- what flows borrow ---- */

static void errand_post(struct rest_call *call, struct pattern_task *task)
{
    struct errand *errand = errand_of(call);
    pthread_mutex_lock(&errand->lock);
    errand->task = task;
    pthread_cond_signal(&errand->changed);
    pthread_mutex_unlock(&errand->lock);
}

static struct dynamo_turn *errand_turn(struct rest_call *call)
{
    return &errand_of(call)->turn;
}

const struct pattern_host library_host = {.post = errand_post, .turn = errand_turn};

static void errand_done(struct rest_call *call)
{
    struct errand *errand = errand_of(call);
    pthread_mutex_lock(&errand->lock);
    errand->is_done = true;
    pthread_cond_signal(&errand->changed);
    pthread_mutex_unlock(&errand->lock);
}

static bool errand_piece(struct rest_call *call, struct slice bytes)
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

static struct slice errand_header(const struct rest_call *call, struct slice name)
{
    return find_header(((const struct errand *)call)->headers, name);
}

/* ---- calls ---- */

/* Takes the steps of the flow as they become due, until it has ended. */
static void errand_see_through(struct quipu *db, struct errand *errand)
{
    struct pattern_task *task;
    do {
        dynamo_turn_end(db->dynamo, &errand->turn);
        pthread_mutex_lock(&errand->lock);
        while (!errand->task && !errand->is_done) pthread_cond_wait(&errand->changed, &errand->lock);
        task = errand->task;
        errand->task = NULL;
        pthread_mutex_unlock(&errand->lock);
        if (task) task->run(task);
    } while (task);
}

static void refuse_path(struct errand *errand)
{
    errand->rest.status = 404;
    buf_text(errand->rest.reply, "{\"error\":\"no-such-path\",\"message\":\"No pattern has this path.\"}");
}

static void errand_run(struct quipu *db, struct errand *errand)
{
    ensure(pthread_mutex_init(&errand->lock, NULL) == 0);
    ensure(pthread_cond_init(&errand->changed, NULL) == 0);
    if (pattern_serve(db->pattern, &errand->rest))
        errand_see_through(db, errand);
    else
        refuse_path(errand);
    pthread_cond_destroy(&errand->changed);
    pthread_mutex_destroy(&errand->lock);
}

static const char *text_copy(struct arena *arena, struct slice text)
{
    return arena_copy(arena, text).data;
}

static void tell_error(struct owned_reply *owned)
{
    static const char *const names[] = {"error", "message"};
    struct slice raws[2] = {SLICE(""), SLICE("")};
    members_find(buf_view(&owned->json), names, raws, 2, &owned->arena);
    owned->reply.error = text_copy(&owned->arena, member_text(raws[0], &owned->arena));
    owned->reply.message = text_copy(&owned->arena, member_text(raws[1], &owned->arena));
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

struct quipu_reply *quipu_pattern(struct quipu *db, const char *method, const char *path, const char *headers,
                                  const char *body)
{
    struct owned_reply *owned = must_zero(1, sizeof *owned);
    struct arena arena = {0};
    size_t path_len = strcspn(path, "?");
    struct errand errand = {.rest = {.method = slice_of(method),
                                     .path = {path, path_len},
                                     .query = slice_of(path + path_len + (path[path_len] == '?')),
                                     .body = slice_of(body ? body : ""),
                                     .header = errand_header,
                                     .arena = &arena,
                                     .done = errand_done,
                                     .piece = errand_piece,
                                     .reply = &owned->json},
                            .headers = slice_of(headers ? headers : "")};
    errand_run(db, &errand);
    owned->reply.status = errand.rest.status;
    owned->reply.message = "";
    if (owned->reply.status >= 400) tell_error(owned);
    tell_headers(owned, errand.rest.headers);
    library_show_json(owned);
    arena_free(&arena);
    return &owned->reply;
}
