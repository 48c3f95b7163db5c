/* Methods of texts, lists and maps, as far as templates use them, and $util's. */
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "velocity/internal.h"

/* ---- $util ---- */

static struct slice escape_java_script(struct arena *arena, struct slice text)
{
    struct buf out = {0};
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        const char *plain = "\b\f\n\r\t", *letters = "bfnrt", *found = c ? strchr(plain, c) : NULL;
        if (found) {
            buf_byte(&out, '\\');
            buf_byte(&out, (unsigned char)letters[found - plain]);
        } else if (c == '"' || c == '\'' || c == '\\' || c == '/') {
            buf_byte(&out, '\\');
            buf_byte(&out, c);
        } else if (c < ' ') {
            buf_printf(&out, "\\u%04X", c);
        } else {
            buf_byte(&out, c); /* what is no ASCII may stand in JSON as it is */
        }
    }
    return arena_take(arena, &out);
}

static struct slice url_encode(struct arena *arena, struct slice text)
{
    struct buf out = {0};
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        (c && strchr("-_.*", c));
        if (is_plain)
            buf_byte(&out, c);
        else if (c == ' ')
            buf_byte(&out, '+');
        else
            buf_printf(&out, "%%%02X", c);
    }
    return arena_take(arena, &out);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static struct slice url_decode(struct arena *arena, struct slice text)
{
    char *out = arena_alloc(arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool is_escape = text.data[i] == '%' && i + 2 < text.len && hex(text.data[i + 1]) >= 0 &&
                         hex(text.data[i + 2]) >= 0;
        out[len++] = is_escape              ? (char)(hex(text.data[i + 1]) * 16 + hex(text.data[i + 2]))
                     : text.data[i] == '+' ? ' '
                                           : text.data[i];
        if (is_escape) i += 2;
    }
    struct slice decoded = {out, len};
    return utf8_valid(decoded) ? decoded : text;
}

bool vtl_util_call(struct arena *arena, struct slice name, struct value **arguments, uint32_t count,
                   struct allowance *left, struct value **out)
{
    if (count != 1) return false;
    struct slice text = vtl_as_text(arena, arguments[0]), result;
    struct buf buf = {0};
    left->work -= (int64_t)text.len;
    if (slice_equal(name, SLICE("parseJson"))) {
        *out = vtl_of_json(arena, text);
        return true;
    }
    if (slice_equal(name, SLICE("escapeJavaScript")))
        result = escape_java_script(arena, text);
    else if (slice_equal(name, SLICE("urlEncode")))
        result = url_encode(arena, text);
    else if (slice_equal(name, SLICE("urlDecode")))
        result = url_decode(arena, text);
    else if (slice_equal(name, SLICE("base64Encode"))) {
        base64_put(&buf, text);
        result = arena_take(arena, &buf);
    } else if (slice_equal(name, SLICE("base64Decode"))) {
        if (base64_decode(arena, text, &result) != BASE64_OK || !utf8_valid(result)) result = SLICE("");
    } else
        return false;
    *out = vtl_text(arena, result);
    return true;
}

/* ---- texts ---- */

static int64_t index_of(struct slice text, struct slice part)
{
    const char *found = part.len ? memmem(text.data, text.len, part.data, part.len) : text.data;
    return found ? found - text.data : -1;
}

static struct slice with_case(struct arena *arena, struct slice text, char from, char to)
{
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] >= from && text.data[i] <= from + 25 ? (char)(text.data[i] - from + to) : text.data[i];
    return (struct slice){copy, text.len};
}

static struct value *split(struct arena *arena, struct slice text, struct slice by, struct allowance *left)
{
    struct value *list = vtl_new(arena, VALUE_LIST);
    while (by.len && --left->nodes >= 0) {
        int64_t at = index_of(text, by);
        if (at < 0) break;
        vtl_add(arena, list, vtl_text(arena, (struct slice){text.data, (size_t)at}));
        text = slice_from(text, (size_t)at + by.len);
    }
    vtl_add(arena, list, vtl_text(arena, text));
    return list;
}

static struct slice replaced(struct arena *arena, struct slice text, struct slice from, struct slice to)
{
    struct buf out = {0};
    while (from.len && out.len <= LIMIT_VELOCITY_BYTES) {
        int64_t at = index_of(text, from);
        if (at < 0) break;
        buf_put(&out, text.data, (size_t)at);
        buf_slice(&out, to);
        text = slice_from(text, (size_t)at + from.len);
    }
    buf_slice(&out, text);
    return arena_take(arena, &out);
}

static struct slice substring(struct slice text, double first, double end)
{
    size_t from = first > 0 ? (size_t)(first < (double)text.len ? first : (double)text.len) : 0;
    size_t to = end > 0 ? (size_t)(end < (double)text.len ? end : (double)text.len) : 0;
    while (from < text.len && (text.data[from] & 0xc0) == 0x80) from++; /* no half characters */
    while (to < text.len && to > from && (text.data[to] & 0xc0) == 0x80) to++;
    return to > from ? (struct slice){text.data + from, to - from} : SLICE("");
}

static bool text_call(struct arena *arena, struct slice text, struct slice name, struct value **arguments,
                      uint32_t count, struct allowance *left, struct value **out)
{
    struct slice first = count ? vtl_as_text(arena, arguments[0]) : SLICE("");
    left->work -= (int64_t)(text.len + first.len);
    double from = count ? arguments[0]->number : 0;
    if (slice_equal(name, SLICE("length")) && count == 0) *out = vtl_number(arena, (double)text.len);
    else if (slice_equal(name, SLICE("isEmpty")) && count == 0) *out = vtl_truth(arena, !text.len);
    else if (slice_equal(name, SLICE("toLowerCase")) && count == 0)
        *out = vtl_text(arena, with_case(arena, text, 'A', 'a'));
    else if (slice_equal(name, SLICE("toUpperCase")) && count == 0)
        *out = vtl_text(arena, with_case(arena, text, 'a', 'A'));
    else if (slice_equal(name, SLICE("trim")) && count == 0) {
        while (text.len && (unsigned char)text.data[0] <= ' ') text = slice_from(text, 1);
        while (text.len && (unsigned char)text.data[text.len - 1] <= ' ') text.len--;
        *out = vtl_text(arena, text);
    } else if (slice_equal(name, SLICE("contains")) && count == 1)
        *out = vtl_truth(arena, index_of(text, first) >= 0);
    else if (slice_equal(name, SLICE("startsWith")) && count == 1) *out = vtl_truth(arena, slice_starts(text, first));
    else if (slice_equal(name, SLICE("endsWith")) && count == 1)
        *out = vtl_truth(arena, text.len >= first.len && slice_equal(slice_from(text, text.len - first.len), first));
    else if (slice_equal(name, SLICE("indexOf")) && count == 1)
        *out = vtl_number(arena, (double)index_of(text, first));
    else if (slice_equal(name, SLICE("split")) && count == 1) *out = split(arena, text, first, left);
    else if ((slice_equal(name, SLICE("replace")) || slice_equal(name, SLICE("replaceAll"))) && count == 2)
        *out = vtl_text(arena, replaced(arena, text, first, vtl_as_text(arena, arguments[1])));
    else if (slice_equal(name, SLICE("substring")) && (count == 1 || count == 2))
        *out = vtl_text(arena, substring(text, from, count == 2 ? arguments[1]->number : (double)text.len));
    else return false;
    return true;
}

/* ---- lists and maps ---- */

static struct value *keys_of(struct arena *arena, const struct value *map, bool with_values, struct allowance *left)
{
    struct value *list = vtl_new(arena, VALUE_LIST);
    for (struct member *member = map->first; member && --left->nodes >= 0; member = member->next) {
        struct value *key = vtl_text(arena, member->name), *entry = vtl_new(arena, VALUE_MAP);
        if (with_values) {
            vtl_put(arena, entry, SLICE("key"), key);
            vtl_put(arena, entry, SLICE("value"), member->value);
        }
        vtl_add(arena, list, with_values ? entry : key);
    }
    return list;
}

static bool map_call(struct arena *arena, struct value *map, struct slice name, struct value **arguments,
                     uint32_t count, bool active, struct allowance *left, struct value **out)
{
    struct slice key = count ? vtl_as_text(arena, arguments[0]) : SLICE("");
    left->work -= map->count + (int64_t)key.len;
    if (slice_equal(name, SLICE("get")) && count == 1) *out = vtl_member(map, key);
    else if (slice_equal(name, SLICE("containsKey")) && count == 1)
        *out = vtl_truth(arena, vtl_member(map, key) != NULL);
    else if (slice_equal(name, SLICE("keySet")) && count == 0) *out = keys_of(arena, map, false, left);
    else if (slice_equal(name, SLICE("entrySet")) && count == 0) *out = keys_of(arena, map, true, left);
    else if (slice_equal(name, SLICE("put")) && count == 2) {
        *out = vtl_member(map, key);
        struct value *copy = active ? vtl_copy(arena, arguments[1], left, 0) : NULL;
        if (copy) vtl_put(arena, map, key, copy);
        else if (active) left->nodes = -1;
    } else return false;
    return true;
}

static bool list_call(struct arena *arena, struct value *list, struct slice name, struct value **arguments,
                      uint32_t count, bool active, struct allowance *left, struct value **out)
{
    left->work -= list->count;
    if (slice_equal(name, SLICE("get")) && count == 1 && arguments[0]->kind == VALUE_NUMBER)
        *out = arguments[0]->number >= 0 && arguments[0]->number < 1e9
                   ? vtl_element(list, (int64_t)arguments[0]->number)
                   : NULL;
    else if (slice_equal(name, SLICE("contains")) && count == 1) {
        bool found = false;
        for (struct member *member = list->first; member && !found && left->work >= 0; member = member->next)
            found = vtl_equal(member->value, arguments[0], left);
        *out = vtl_truth(arena, found);
    } else if (slice_equal(name, SLICE("add")) && count == 1) {
        struct value *copy = active ? vtl_copy(arena, arguments[0], left, 0) : NULL;
        if (copy) vtl_add(arena, list, copy);
        else if (active) left->nodes = -1;
        *out = vtl_truth(arena, true);
    } else return false;
    return true;
}

bool vtl_call(struct arena *arena, struct value *self, struct slice name, struct value **arguments, uint32_t count,
                bool active, struct allowance *left, struct value **out)
{
    bool holds = self->kind == VALUE_LIST || self->kind == VALUE_MAP;
    *out = NULL;
    if (slice_equal(name, SLICE("equals")) && count == 1) *out = vtl_truth(arena, vtl_equal(self, arguments[0], left));
    else if (slice_equal(name, SLICE("toString")) && count == 0)
        *out = vtl_text(arena, vtl_as_text(arena, self));
    else if (holds && slice_equal(name, SLICE("size")) && count == 0) *out = vtl_number(arena, self->count);
    else if (holds && slice_equal(name, SLICE("isEmpty")) && count == 0) *out = vtl_truth(arena, !self->count);
    else if (self->kind == VALUE_MAP) return map_call(arena, self, name, arguments, count, active, left, out);
    else if (self->kind == VALUE_LIST) return list_call(arena, self, name, arguments, count, active, left, out);
    else if (self->kind == VALUE_TEXT) return text_call(arena, self->text, name, arguments, count, left, out);
    else return false;
    return true;
}
