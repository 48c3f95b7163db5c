/* Requests of the typed functions, see ask.h. */
#include "library/ask.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "calendar/calendar.h"
#include "rest/rest.h"

#define ROUND_MS 50000 /* the routes wait for a minute at most */

/* ---- the request ---- */

static void ask_free(struct ask *ask)
{
    buf_free(&ask->path);
    buf_free(&ask->headers);
    buf_free(&ask->body);
}

static void fault(struct ask *ask, const char *sentence)
{
    if (!ask->fault) ask->fault = sentence;
}

/* The first byte is always escaped, so that no name is taken for a word of the path ("claim"). */
static void put_segment(struct ask *ask, const char *name)
{
    struct slice text = slice_of(name ? name : "");
    char first[4];
    if (!text.len) fault(ask, "A name is empty.");
    if (!utf8_valid(text)) fault(ask, "A name is no UTF-8.");
    if (ask->fault) return;
    snprintf(first, sizeof first, "%%%02X", (unsigned char)text.data[0]);
    buf_slice(&ask->path, slice_of(first));
    rest_encode(&ask->path, slice_from(text, 1));
}

static void put_path(struct ask *ask, const char *path, va_list names)
{
    for (; *path; path++) {
        if (*path == '*')
            put_segment(ask, va_arg(names, const char *));
        else
            buf_byte(&ask->path, (unsigned char)*path);
    }
}

void ask_begin(struct ask *ask, struct quipu *db, struct quipu_reply **slot, const char *method,
               const char *path, ...)
{
    va_list names;
    *ask = (struct ask){.db = db, .slot = slot, .method = method};
    va_start(names, path);
    put_path(ask, path, names);
    va_end(names);
}

enum quipu_result ask_plain(struct quipu *db, struct quipu_reply **slot, const char *method, const char *path,
                            ...)
{
    va_list names;
    struct ask ask = {.db = db, .slot = slot, .method = method};
    va_start(names, path);
    put_path(&ask, path, names);
    va_end(names);
    ask_run(&ask);
    return ask_end(&ask);
}

struct buf *ask_member(struct ask *ask, const char *name)
{
    buf_byte(&ask->body, ask->has_members ? ',' : '{');
    ask->has_members = true;
    json_put_string(&ask->body, slice_of(name));
    buf_byte(&ask->body, ':');
    return &ask->body;
}

void ask_text(struct ask *ask, const char *name, const char *text)
{
    if (!text) return;
    if (!utf8_valid(slice_of(text))) fault(ask, "A text is no UTF-8.");
    json_put_string(ask_member(ask, name), slice_of(text));
}

void ask_texts(struct ask *ask, const char *name, const char *const *texts, size_t count)
{
    if (!texts) return;
    struct buf *body = ask_member(ask, name);
    for (size_t i = 0; i < count; i++) {
        if (!utf8_valid(slice_of(texts[i]))) fault(ask, "A text is no UTF-8.");
        buf_byte(body, i ? ',' : '[');
        json_put_string(body, slice_of(texts[i]));
    }
    if (!count) buf_byte(body, '[');
    buf_byte(body, ']');
}

static bool is_json(const char *text)
{
    struct arena arena = {0};
    bool is = raw_is_json(&arena, slice_of(text));
    arena_free(&arena);
    return is;
}

void ask_json(struct ask *ask, const char *name, const char *json)
{
    if (!json) return;
    if (!is_json(json)) fault(ask, "What should be JSON is none.");
    buf_slice(ask_member(ask, name), slice_of(json));
}

void ask_int(struct ask *ask, const char *name, int64_t value)
{
    json_put_int(ask_member(ask, name), value);
}

void ask_some(struct ask *ask, const char *name, int64_t value)
{
    if (value) ask_int(ask, name, value);
}

void ask_true(struct ask *ask, const char *name, bool value)
{
    if (value) buf_text(ask_member(ask, name), "true");
}

void ask_moment(struct ask *ask, const char *name, int64_t time_ms)
{
    struct arena arena = {0};
    json_put_string(ask_member(ask, name), moment_text(&arena, time_ms));
    arena_free(&arena);
}

void ask_element(struct ask *ask, struct ask *object)
{
    if (object->fault) fault(ask, object->fault);
    if (!object->has_members) buf_byte(&ask->body, '{');
    buf_slice(&ask->body, buf_view(&object->body));
    buf_byte(&ask->body, '}');
    ask_free(object);
}

void ask_object(struct ask *ask, const char *name, struct ask *object)
{
    if (!object->has_members) return;
    ask_member(ask, name);
    ask_element(ask, object);
}

void ask_each(struct ask *ask, const char *name, const void *all, size_t count,
              void (*put)(struct ask *element, const void *all, size_t number))
{
    struct buf *body = ask_member(ask, name);
    buf_byte(body, '[');
    for (size_t i = 0; i < count; i++) {
        struct ask element = {0};
        put(&element, all, i);
        if (i) buf_byte(body, ',');
        ask_element(ask, &element);
    }
    buf_byte(body, ']');
}

void ask_target(struct ask *ask, const char *name, const char *target)
{
    if (target && (target[0] == '{' || target[0] == '['))
        ask_json(ask, name, target);
    else
        ask_text(ask, name, target);
}

void ask_then(struct ask *ask, const char *then)
{
    ask_target(ask, "then", then);
}

void ask_whole(struct ask *ask, const char *json)
{
    buf_slice(&ask->body, slice_of(json ? json : ""));
}

void ask_query(struct ask *ask, const char *name, const char *text)
{
    if (!text) return;
    if (!utf8_valid(slice_of(text))) fault(ask, "A text is no UTF-8.");
    buf_byte(&ask->path, ask->has_query ? '&' : '?');
    buf_slice(&ask->path, slice_of(name));
    buf_byte(&ask->path, '=');
    rest_encode(&ask->path, slice_of(text));
    ask->has_query = true;
}

static void query_int(struct ask *ask, const char *name, int64_t value, const char *unit)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRId64 "%s", value, unit);
    if (value) ask_query(ask, name, text);
}

void ask_query_some(struct ask *ask, const char *name, int64_t value)
{
    query_int(ask, name, value, "");
}

void ask_query_ms(struct ask *ask, const char *name, int64_t ms)
{
    query_int(ask, name, ms, "ms");
}

void ask_query_moment(struct ask *ask, const char *name, int64_t time_ms)
{
    struct arena arena = {0};
    ask_query(ask, name, moment_text(&arena, time_ms).data);
    arena_free(&arena);
}

void ask_header(struct ask *ask, const char *name, const char *text)
{
    if (!text) return;
    if (!text[0] || text[strcspn(text, "\r\n")]) fault(ask, "A token is empty, or more than a line.");
    buf_slice(&ask->headers, slice_of(name));
    buf_text(&ask->headers, ": ");
    buf_slice(&ask->headers, slice_of(text));
    buf_byte(&ask->headers, '\n');
}

/* ---- running it ---- */

static enum quipu_result result_of(int status)
{
    switch (status) {
    case 204:
    case 304: return QUIPU_NONE;
    case 404: return QUIPU_MISSING;
    case 409:
    case 412: return QUIPU_CONFLICT;
    default: return status >= 200 && status < 300 ? QUIPU_DONE : QUIPU_FAILED;
    }
}

enum quipu_result ask_run(struct ask *ask)
{
    quipu_reply_free(ask->reply);
    if (ask->has_members) buf_byte(&ask->body, '}');
    ask->reply = ask->fault ? library_refusal(400, "bad-request", ask->fault)
                            : library_pattern(ask->db, slice_of(ask->method), buf_view(&ask->path),
                                              buf_view(&ask->headers), buf_view(&ask->body));
    ask->result = result_of(ask->reply->status);
    return ask->result;
}

/* One of several runs that wait: the request is as before behind it. */
static void run_round(struct ask *ask, bool in_query, int64_t wait_ms)
{
    struct ask before = *ask;
    if (in_query)
        ask_query_ms(ask, "wait", wait_ms);
    else
        ask_some(ask, "wait", wait_ms);
    ask_run(ask);
    ask->path.len = before.path.len;
    ask->body.len = before.body.len;
    ask->has_query = before.has_query;
    ask->has_members = before.has_members;
}

enum quipu_result ask_run_waiting(struct ask *ask, int64_t wait_ms, bool in_query,
                                  bool (*is_over)(struct ask *ask))
{
    int64_t start_us = monotonic_us(), left_ms = wait_ms;
    do {
        bool is_long = wait_ms < 0 || left_ms > ROUND_MS;
        run_round(ask, in_query, is_long ? ROUND_MS : left_ms);
        left_ms = wait_ms - (monotonic_us() - start_us) / 1000;
    } while ((wait_ms < 0 || left_ms > 0) && !is_over(ask) && !atomic_load(&ask->db->is_stopped));
    return ask->result;
}

enum quipu_result ask_end(struct ask *ask)
{
    struct quipu_reply *gone = ask->slot ? *ask->slot : ask->reply;
    if (ask->slot) *ask->slot = ask->reply;
    quipu_reply_free(gone);
    ask_free(ask);
    return ask->result;
}

struct quipu_pages *ask_pages(struct ask *ask)
{
    struct quipu_pages *pages = library_pages(ask->db, buf_view(&ask->path), ask->fault);
    ask_free(ask);
    return pages;
}

struct quipu_pages *ask_list(struct quipu *db, const char *path, ...)
{
    va_list names;
    struct ask ask = {.db = db};
    va_start(names, path);
    put_path(&ask, path, names);
    va_end(names);
    return ask_pages(&ask);
}

/* ---- the reply ---- */

struct arena *ask_arena(struct ask *ask)
{
    return &((struct owned_reply *)ask->reply)->arena;
}

struct slice told(struct ask *ask, const char *name)
{
    struct slice raw;
    raw_members(ask_arena(ask), library_json(ask->reply), &name, &raw, 1);
    return raw;
}

void told_int(struct ask *ask, const char *name, int64_t otherwise, int64_t *out)
{
    if (out) *out = part_number(told(ask, name), otherwise);
}

bool told_true(struct ask *ask, const char *name)
{
    return slice_equal(told(ask, name), SLICE("true"));
}

int64_t told_moment(struct ask *ask, const char *name)
{
    return part_moment(ask, told(ask, name));
}

int told_word(struct ask *ask, const char *name, const char *const *words)
{
    struct slice text = raw_string(ask_arena(ask), told(ask, name));
    for (int i = 0; words[i]; i++)
        if (slice_equal(text, slice_of(words[i]))) return i;
    return 0;
}

const char *told_text(struct ask *ask, const char *name)
{
    return part_text(ask, told(ask, name));
}

const char *told_json(struct ask *ask, const char *name)
{
    return part_json(ask, told(ask, name));
}

int64_t part_number(struct slice raw, int64_t otherwise)
{
    bool is_negative = raw.len && raw.data[0] == '-';
    unsigned long long number;
    if (is_negative) raw = slice_from(raw, 1);
    if (!raw.len || !slice_to_u64(raw, INT64_MAX, &number)) return otherwise;
    return is_negative ? -(int64_t)number : (int64_t)number;
}

const char *part_json(struct ask *ask, struct slice raw)
{
    return ask->slot && raw.len ? arena_copy(ask_arena(ask), raw).data : NULL;
}

const char *part_text(struct ask *ask, struct slice raw)
{
    return ask->slot && raw.len ? arena_copy(ask_arena(ask), raw_string(ask_arena(ask), raw)).data : NULL;
}

int64_t part_moment(struct ask *ask, struct slice raw)
{
    int64_t time_ms;
    return moment_parse(raw_string(ask_arena(ask), raw), &time_ms) ? time_ms : 0;
}
