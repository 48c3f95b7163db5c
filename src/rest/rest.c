/* Routes, queries and percent-encoding. */
#include "rest/rest.h"

#include <stdarg.h>

#include "base/fail.h"
#include "base/json.h"

/* ---- percent-encoding ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool rest_decode(struct arena *arena, struct slice text, struct slice *out)
{
    *out = text;
    if (!text.len || !memchr(text.data, '%', text.len)) return utf8_valid(text);
    char *to = arena_alloc(arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '%') {
            to[len++] = text.data[i];
            continue;
        }
        if (text.len - i < 3) return false;
        int high = hex_digit(text.data[i + 1]), low = hex_digit(text.data[i + 2]);
        if (high < 0 || low < 0) return false;
        to[len++] = (char)(high * 16 + low);
        i += 2;
    }
    *out = (struct slice){to, len};
    return utf8_valid(*out);
}

void rest_encode(struct buf *out, struct slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (is_letter || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~') {
            buf_byte(out, c);
            continue;
        }
        buf_byte(out, '%');
        buf_byte(out, (unsigned char)digits[c >> 4]);
        buf_byte(out, (unsigned char)digits[c & 15]);
    }
}

struct slice rest_encoded(struct arena *arena, struct slice text)
{
    struct buf out = {0};
    rest_encode(&out, text);
    return arena_take(arena, &out);
}

/* ---- routes ---- */

static struct slice path_trim(struct slice path)
{
    if (path.len && path.data[0] == '/') path = slice_from(path, 1);
    if (path.len && path.data[path.len - 1] == '/') path.len--;
    return path;
}

static bool is_name(struct slice segment)
{
    return segment.len > 2 && segment.data[0] == '{' && segment.data[segment.len - 1] == '}';
}

static bool takes_all(struct slice segment)
{
    return is_name(segment) && segment.data[segment.len - 2] == '+';
}

/* Whether the path begins as the pattern does before its first {name}: this tells all but a few rows apart. */
static bool begins_alike(const char *pattern, struct slice path)
{
    for (size_t at = 0; pattern[at] && pattern[at] != '{'; at++) {
        if (at == path.len) return true; /* it may lack no more than the last slash */
        if (pattern[at] != path.data[at]) return false;
    }
    return true;
}

static bool path_matches(struct slice pattern, struct slice path, struct arena *arena,
                         struct slice parameters[REST_PARAMETERS])
{
    unsigned count = 0;
    pattern = path_trim(pattern);
    path = path_trim(path);
    while (pattern.len && path.len) {
        struct slice wanted = slice_cut(&pattern, '/');
        if (takes_all(wanted)) return count < REST_PARAMETERS && rest_decode(arena, path, &parameters[count]);
        struct slice found = slice_cut(&path, '/');
        if (!is_name(wanted)) {
            if (!slice_equal(wanted, found)) return false;
        } else if (!found.len || count == REST_PARAMETERS ||
                   !rest_decode(arena, found, &parameters[count++])) {
            return false;
        }
    }
    return !pattern.len && !path.len;
}

static enum rest_found find_among(const struct rest_route *routes, size_t count, struct rest_call *call,
                                  const struct rest_route **found)
{
    enum rest_found answer = REST_NOWHERE;
    bool is_rooted = call->path.len && call->path.data[0] == '/';
    for (size_t i = 0; i < count; i++) {
        struct slice parameters[REST_PARAMETERS] = {0};
        if (is_rooted && !begins_alike(routes[i].path, call->path)) continue;
        if (!path_matches(slice_of(routes[i].path), call->path, call->arena, parameters)) continue;
        answer = REST_OTHER_METHOD;
        if (!slice_equal(slice_of(routes[i].method), call->method)) continue;
        memcpy(call->parameters, parameters, sizeof parameters);
        *found = &routes[i];
        return REST_FOUND;
    }
    return answer;
}

enum rest_found rest_route(const struct rest_route *routes, size_t count, struct rest_call *call,
                           const struct rest_route **found)
{
    return find_among(routes, count, call, found);
}

/* ---- many rows ---- */

/* "/v1/jobs" of "/v1/jobs/{id}/done"; empty where there is no second segment. */
static struct slice path_head(struct slice path)
{
    const char *end = path.data + path.len, *second, *third;
    if (!path.len || path.data[0] != '/') return SLICE("");
    second = memchr(path.data + 1, '/', path.len - 1);
    if (!second || end - second < 2) return SLICE("");
    third = memchr(second + 1, '/', (size_t)(end - second - 1));
    return (struct slice){path.data, (size_t)((third ? third : end) - path.data)};
}

/* Its last characters and its length tell most heads apart; where they do not, the second one has no place. */
static size_t head_place(struct slice head)
{
    const unsigned char *end = (const unsigned char *)head.data + head.len;
    return (end[-1] + 7u * end[-2] + 3u * end[-3] + 2u * head.len) % REST_INDEX_PLACES;
}

void rest_index_make(struct rest_index *index, const struct rest_route *routes, size_t count)
{
    *index = (struct rest_index){0};
    for (size_t from = 0, to; from < count; from = to) {
        struct slice head = path_head(slice_of(routes[from].path));
        bool is_split = false;
        for (to = from + 1; to < count && slice_equal(path_head(slice_of(routes[to].path)), head);) to++;
        for (size_t i = to; i < count; i++) is_split |= slice_equal(path_head(slice_of(routes[i].path)), head);
        ensure(!is_split && !slice_contains(head, SLICE("{"))); /* else rows stand elsewhere, too */
        size_t place = head.len ? head_place(head) : 0;
        if (!head.len || index->places[place].head.len) continue;
        index->places[place].head = head;
        index->places[place].from = (uint16_t)from;
        index->places[place].to = (uint16_t)to;
    }
}

enum rest_found rest_route_indexed(const struct rest_route *routes, const struct rest_index *index, size_t count,
                                   struct rest_call *call, const struct rest_route **found)
{
    struct slice head = path_head(call->path);
    size_t place = head.len ? head_place(head) : 0;
    if (!head.len || !slice_equal(head, index->places[place].head)) return find_among(routes, count, call, found);
    size_t from = index->places[place].from;
    return find_among(routes + from, index->places[place].to - from, call, found);
}

/* ---- queries ---- */

/* Takes the next pair off the rest of a query; false: there is none. A name that cannot be decoded is told as
 * it stands. */
static bool query_next(const struct rest_call *call, struct slice *rest, struct slice *key,
                       struct slice *value)
{
    if (!rest->len) return false;
    const char *end = memchr(rest->data, '&', rest->len);
    struct slice pair = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, end ? pair.len + 1 : pair.len);
    const char *sign = pair.len ? memchr(pair.data, '=', pair.len) : NULL;
    struct slice name = {pair.data, sign ? (size_t)(sign - pair.data) : pair.len};
    *value = sign ? slice_from(pair, name.len + 1) : SLICE("");
    if (!rest_decode(call->arena, name, key)) *key = name;
    return true;
}

struct slice rest_query_nth(const struct rest_call *call, const char *name, unsigned nth)
{
    struct slice rest = call->query, key, value;
    while (query_next(call, &rest, &key, &value)) {
        if (!slice_equal(key, slice_of(name)) || nth-- > 0) continue;
        return rest_decode(call->arena, value, &value) ? value : SLICE_NONE;
    }
    return SLICE_NONE;
}

struct slice rest_query_unknown(const struct rest_call *call,
                                bool (*knows)(const void *context, struct slice name), const void *context)
{
    struct slice rest = call->query, key, value;
    while (query_next(call, &rest, &key, &value))
        if (key.len && !knows(context, key)) return key;
    return SLICE_NONE;
}

struct slice rest_query(const struct rest_call *call, const char *name)
{
    return rest_query_nth(call, name, 0);
}

void rest_add_header(struct rest_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice line = arena_vprintf(call->arena, format, args);
    va_end(args);
    call->headers = arena_printf(call->arena, "%.*s%.*s\r\n", SLICE_ARG(call->headers), SLICE_ARG(line));
}

struct slice rest_head_find(const struct rest_head *head, struct slice name)
{
    return http_field_find(head->headers, head->header_count, name);
}
