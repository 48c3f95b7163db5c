/* What a function answers, as a reply of HTTP.
 *
 * An object with statusCode is the reply itself: statusCode, headers, cookies, body, isBase64Encoded. Everything else
 * is the body of a 200, as JSON. */
#include <stdlib.h>

#include "base/json.h"
#include "base/raw.h"
#include "gateway/internal.h"

#define STATUS_MIN 200 /* what comes before is a matter between the server and its clients */
#define STATUS_MAX 599

enum { STATUS, HEADERS, MULTI_HEADERS, COOKIES, BODY, BASE64, MEMBERS };
static const char *const members[] = {"statusCode", "headers", "multiValueHeaders",
                                      "cookies",    "body",    "isBase64Encoded"};

/* ---- lines ---- */

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (!c || !strchr("!#$%&'*+-.^_`|~", c))) return false;
    }
    return text.len != 0;
}

static bool is_line(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 0x7f) return false;
    return true;
}

/* These are between the server and its client. */
static bool is_of_server(struct slice name)
{
    static const struct slice names[] = {SLICE("connection"), SLICE("content-length"), SLICE("transfer-encoding"),
                                         SLICE("date"),       SLICE("keep-alive"),     SLICE("upgrade"),
                                         SLICE("trailer"),    SLICE("x-amzn-requestid")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal_ignoring_case(name, names[i])) return true;
    return false;
}

/* A string, number or truth value. */
static struct slice scalar(struct arena *arena, struct slice value)
{
    enum json_kind kind = raw_kind(value);
    return kind == JSON_STRING                                             ? raw_string(arena, value)
           : kind == JSON_NUMBER || kind == JSON_TRUE || kind == JSON_FALSE ? value
                                                                            : SLICE_NONE;
}

static const char *header_add(struct http_answer *answer, struct buf *lines, struct arena *arena, struct slice name,
                              struct slice value)
{
    struct slice text = scalar(arena, value);
    if (raw_kind(value) == JSON_NULL || is_of_server(name)) return NULL;
    if (!text.data) return "the value of a header is no text";
    if (!is_token(name) || !is_line(text)) return "a header's name or value cannot stand in a reply";
    if (slice_equal_ignoring_case(name, SLICE("content-type")))
        answer->content_type = text;
    else
        buf_printf(lines, "%.*s: %.*s\r\n", SLICE_ARG(name), SLICE_ARG(text));
    return NULL;
}

static const char *headers_read(struct http_answer *answer, struct buf *lines, struct arena *arena,
                                struct slice headers)
{
    struct slice name, value;
    if (raw_kind(headers) != JSON_OBJECT) return headers.data ? "headers is no object" : NULL;
    raw_each_member(arena, headers, &name, &value)
    {
        const char *fault = header_add(answer, lines, arena, name, value);
        if (fault) return fault;
    }
    return NULL;
}

static const char *lists_read(struct http_answer *answer, struct buf *lines, struct arena *arena,
                              struct slice headers)
{
    struct slice name, list, value;
    if (raw_kind(headers) != JSON_OBJECT) return headers.data ? "multiValueHeaders is no object" : NULL;
    raw_each_member(arena, headers, &name, &list)
    {
        if (raw_kind(list) != JSON_ARRAY) return "a member of multiValueHeaders is no list";
        raw_each(arena, list, &value)
        {
            const char *fault = header_add(answer, lines, arena, name, value);
            if (fault) return fault;
        }
    }
    return NULL;
}

static const char *cookies_read(struct http_answer *answer, struct buf *lines, struct arena *arena,
                                struct slice cookies)
{
    struct slice value;
    if (raw_kind(cookies) != JSON_ARRAY) return cookies.data ? "cookies is no list" : NULL;
    raw_each(arena, cookies, &value)
    {
        const char *fault = header_add(answer, lines, arena, SLICE("Set-Cookie"), value);
        if (fault) return fault;
    }
    return NULL;
}

/* The lines grow in one place: a function may answer with hundreds of thousands. */
static const char *lines_gather(struct http_answer *answer, struct arena *arena, struct slice headers,
                                struct slice lists, struct slice cookies)
{
    struct buf lines = {0};
    const char *fault = headers_read(answer, &lines, arena, headers);
    if (!fault) fault = lists_read(answer, &lines, arena, lists);
    if (!fault) fault = cookies_read(answer, &lines, arena, cookies);
    answer->headers = arena_take(arena, &lines);
    return fault;
}

/* ---- the whole ---- */

static bool status_read(struct slice value, struct arena *arena, int *status)
{
    unsigned long long number;
    int64_t whole;
    struct slice text = raw_text(arena, value);
    if (raw_kind(value) == JSON_NUMBER) {
        if (!raw_int(value, &whole) || whole < 0) return false;
        number = (unsigned long long)whole;
    } else if (!text.data || !slice_to_u64(text, STATUS_MAX, &number)) {
        return false;
    }
    *status = (int)number;
    return number >= STATUS_MIN && number <= STATUS_MAX;
}

static const char *body_read(struct http_answer *answer, struct arena *arena, struct slice body, bool is_base64)
{
    if (!body.data) return NULL;
    answer->body = raw_kind(body) == JSON_STRING ? raw_string(arena, body) : body;
    if (!is_base64) return NULL;
    return base64_decode(arena, answer->body, &answer->body) == BASE64_OK
               ? NULL
               : "isBase64Encoded is true, but the body is not base64";
}

const char *http_answer_read_prelude(struct slice reply, struct arena *arena, struct http_answer *out)
{
    static const char zeros[8];
    const char *end = memmem(reply.data, reply.len, zeros, sizeof zeros);
    if (!end) return "its prelude has no end";
    struct slice prelude = {reply.data, (size_t)(end - reply.data)};
    const char *fault = raw_kind(prelude) == JSON_OBJECT && raw_is_json(arena, prelude)
                            ? http_answer_read(prelude, false, arena, out)
                            : "its prelude is no JSON object";
    struct slice status = fault ? SLICE_NONE : raw_member(arena, prelude, "statusCode");
    if (fault) return fault;
    if (!status.data) { /* what a function leaves out is as usual */
        *out = (struct http_answer){.status = 200, .headers = SLICE("")};
        fault = lines_gather(out, arena, raw_member(arena, prelude, "headers"), SLICE_NONE,
                             raw_member(arena, prelude, "cookies"));
    }
    out->body = slice_from(reply, prelude.len + sizeof zeros);
    return fault;
}

const char *http_answer_read(struct slice reply, bool is_strict, struct arena *arena, struct http_answer *out)
{
    struct slice raws[MEMBERS];
    const char *fault;
    *out = (struct http_answer){.status = 200, .headers = SLICE("")};
    if (raw_kind(reply) != JSON_OBJECT || !raw_members(arena, reply, members, raws, MEMBERS) || !raws[STATUS].data) {
        if (is_strict) return "it is no object with a statusCode, which the payload format 1.0 asks for";
        out->body = reply;
        out->content_type = SLICE("application/json");
        return NULL;
    }
    if (!status_read(raws[STATUS], arena, &out->status)) return "statusCode is no number from 200 to 599";
    if ((fault = lines_gather(out, arena, raws[HEADERS], raws[MULTI_HEADERS], raws[COOKIES]))) return fault;
    return body_read(out, arena, raws[BODY], raw_kind(raws[BASE64]) == JSON_TRUE);
}
