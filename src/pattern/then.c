/* Reactions: what a `then` says.
 *
 *   "resize"                                       a function: its name, name:qualifier or ARN
 *   "https://example.org/hook"                     a URL, which gets a POST
 *   {"function": "resize"}                         the same ...
 *   {"url": "https://...", "secret": "..."}        ... and signed, as other calls of URLs are (target_http.c)
 *   {"call": "POST /v1/counters/x", "body": {...}} another pattern, with {places} (target.c)
 *   [ ... ]                                        up to PATTERN_TARGETS of these, or none
 *
 * An object may name the states that it is for, {"on": "COMPLETE"} or a list of them; without that it is for
 * all.
 *
 * A `then` is checked when it is given and read again when it is carried out, by then perhaps out of an item
 * that somebody wrote by another hand: so nothing is taken for granted here. */
#include <stdio.h>

#include "base/compose.h"
#include "base/limits.h"
#include "pattern/flow.h"
#include "pattern/internal.h"
#include "pattern/pattern.h"
#include "pattern/rows.h"

#define FUNCTION_BYTES 170 /* Lambda: of a name or an ARN */
#define URL_BYTES      2048
#define SECRET_BYTES   256

static const struct slice states[] = {SLICE("COMPLETE"), SLICE("FAILED"), SLICE("EXPIRED"), SLICE("DEAD"),
                                      SLICE("DONE")};

/* ---- the parts ---- */

static bool is_url(struct slice text)
{
    return slice_starts(text, SLICE("http://")) || slice_starts(text, SLICE("https://"));
}

static bool is_function_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           memchr("-_:$.", byte, 5) != NULL;
}

static const char *function_fault(struct slice text)
{
    if (!text.len || text.len > FUNCTION_BYTES) return "must name a function by 1 to 170 characters";
    for (size_t i = 0; i < text.len; i++)
        if (!is_function_byte(text.data[i]))
            return "must name a function by its name or its ARN, or be a URL";
    return NULL;
}

static const char *url_fault(struct slice text)
{
    size_t scheme = slice_starts(text, SLICE("https://")) ? 8 : 7;
    if (!is_url(text)) return "has a url that does not begin with http:// or https://";
    if (text.len == scheme || text.len > URL_BYTES) return "has a url that is too short or too long";
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 0x7f) return "has a url with blanks in it";
    return NULL;
}

/* A segment with a place in it may become anything. */
static bool path_fits(struct slice asked, struct slice known)
{
    if (!slice_starts(asked, SLICE("/v1/"))) return false;
    asked = slice_from(asked, 1);
    known = slice_from(known, 1);
    while (asked.len && known.len) {
        struct slice mine = slice_cut(&asked, '/'), row = slice_cut(&known, '/');
        bool is_open = row.len && row.data[0] == '{';
        bool is_place = mine.len && memchr(mine.data, '{', mine.len);
        if (!mine.len || (!is_open && !is_place && !slice_equal(mine, row))) return false;
    }
    return !asked.len && !known.len;
}

const char *then_call_fault(struct slice call)
{
    struct slice path = call, method = slice_cut(&path, ' ');
    if (slice_equal(method, SLICE("GET"))) return "must not call a pattern by GET, which would do nothing";
    for (size_t i = 0; row_at(i); i++)
        if (slice_equal(slice_of(row_at(i)->method), method) && path_fits(path, slice_of(row_at(i)->path)))
            return NULL;
    return "calls no pattern that there is: a method and a path are needed, like \"POST "
           "/v1/counters/orders\"";
}

static bool is_state(struct slice text)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (slice_equal(states[i], text)) return true;
    return false;
}

static const char *on_fault(struct slice on, struct arena *arena)
{
    static const char fault[] = "may be on COMPLETE, FAILED, EXPIRED, DEAD or DONE only";
    struct slice state;
    if (raw_kind(on) == JSON_STRING) return is_state(raw_text(arena, on)) ? NULL : fault;
    if (raw_kind(on) != JSON_ARRAY) return fault;
    raw_each (arena, on, &state)
        if (raw_kind(state) != JSON_STRING || !is_state(raw_text(arena, state))) return fault;
    return NULL;
}

/* ---- one target ---- */

static const char *take_member(struct pattern_target *target, struct slice name, struct slice value,
                               struct arena *arena)
{
    const struct {
        const char *name;
        struct slice *text;
    } texts[] = {{"function", &target->function},
                 {"url", &target->url},
                 {"secret", &target->secret},
                 {"call", &target->call}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!slice_equal(name, slice_of(texts[i].name))) continue;
        if (raw_kind(value) != JSON_STRING) return "has a function, url, secret or call that is no text";
        *texts[i].text = raw_text(arena, value);
        return texts[i].text->len ? NULL : "has a function, url, secret or call that is empty";
    }
    if (slice_equal(name, SLICE("body"))) target->body = value;
    if (slice_equal(name, SLICE("on"))) target->on = value;
    return target->body.data == value.data || target->on.data == value.data
               ? NULL
               : "has a member other than function, url, secret, call, body and on";
}

static const char *target_fault(const struct pattern_target *target, struct arena *arena)
{
    const char *fault = target->on.data ? on_fault(target->on, arena) : NULL;
    if (fault) return fault;
    if (!!target->function.len + !!target->url.len + !!target->call.len != 1)
        return "must have one of function, url and call in each of its objects";
    if (target->secret.len && !target->url.len) return "has a secret, but no url that is signed with it";
    if (target->secret.len > SECRET_BYTES) return "has a secret of more than 256 bytes";
    if (target->body.data && !target->call.len) return "has a body, but no call that it is for";
    return target->function.len ? function_fault(target->function)
           : target->url.len    ? url_fault(target->url)
                                : then_call_fault(target->call);
}

static const char *read_text(struct slice text, struct pattern_target *target)
{
    *target = (struct pattern_target){0};
    if (is_url(text)) {
        target->url = text;
        return url_fault(text);
    }
    target->function = text;
    return function_fault(text);
}

static const char *read_target(struct slice value, struct arena *arena, struct pattern_target *target)
{
    struct slice name, member;
    const char *fault = NULL;
    if (raw_kind(value) == JSON_STRING) return read_text(raw_text(arena, value), target);
    if (raw_kind(value) != JSON_OBJECT) return "must be a text, an object, or a list of these";
    *target = (struct pattern_target){0};
    raw_each_member (arena, value, &name, &member)
        if (!fault) fault = take_member(target, name, member, arena);
    return fault ? fault : target_fault(target, arena);
}

/* ---- all of it ---- */

const char *pattern_then_read(struct slice then, struct arena *arena,
                              struct pattern_target targets[PATTERN_TARGETS], unsigned *count)
{
    struct slice value;
    const char *fault = NULL;
    *count = 0;
    if (then.len > LIMIT_THEN_BYTES) return "has more than 16 KB";
    if (!then.len || (then.data[0] != '{' && then.data[0] != '[')) {
        *count = 1;
        return read_text(then, targets);
    }
    if (!raw_is_json(arena, then)) return "is not JSON";
    if (then.data[0] == '{') {
        *count = 1;
        return read_target(then, arena, targets);
    }
    raw_each (arena, then, &value) {
        if (fault) break;
        if (*count == PATTERN_TARGETS) return "has more than 10 targets";
        fault = read_target(value, arena, &targets[(*count)++]);
    }
    return fault;
}

/* Calls of patterns may have a `then` in their bodies, and those again. */
static void put_without_secrets(struct buf *out, struct arena *arena, struct slice value, unsigned depth)
{
    struct slice name, member;
    bool is_object = raw_kind(value) == JSON_OBJECT;
    if ((!is_object && raw_kind(value) != JSON_ARRAY) || depth > LIMIT_NESTING) {
        buf_slice(out, depth > LIMIT_NESTING ? SLICE("null") : value);
        return;
    }
    buf_byte(out, is_object ? '{' : '[');
    struct raw_look look;
    raw_look_begin(&look, arena, value);
    while (raw_look_next(&look, &name, &member)) {
        if (is_object && slice_equal(name, SLICE("secret"))) continue;
        compose(out, "%,");
        if (is_object) compose(out, "%s:", name);
        put_without_secrets(out, arena, member, depth + 1);
    }
    buf_byte(out, is_object ? '}' : ']');
}

struct slice pattern_then_shown(struct slice then, struct arena *arena)
{
    struct buf out = {0};
    if (!then.len || (then.data[0] != '{' && then.data[0] != '[')) return then;
    put_without_secrets(&out, arena, then, 0);
    return arena_take(arena, &out);
}

struct slice pattern_target_text(const struct pattern_target *target, struct arena *arena)
{
    bool is_url = target->url.len;
    if (target->function.len) return target->function;
    if (is_url && !target->secret.len) return target->url;
    return compose_in(arena, "{%s:%s%[,'secret':%s%]%[,'body':%A%]}", is_url ? SLICE("url") : SLICE("call"),
                      is_url ? target->url : target->call, target->secret, target->body);
}

bool pattern_target_is_for(const struct pattern_target *target, struct slice state, struct arena *arena)
{
    struct slice one;
    if (!target->on.data) return true;
    if (raw_kind(target->on) == JSON_STRING) return slice_equal(raw_text(arena, target->on), state);
    raw_each (arena, target->on, &one)
        if (slice_equal(raw_text(arena, one), state)) return true;
    return false;
}
