/* Values of templates: JSON's, in a tree that can be changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/raw.h"
#include "velocity/internal.h"

const struct value vtl_none = {.kind = VALUE_NONE};

struct value *vtl_new(struct arena *arena, enum value_kind kind)
{
    struct value *value = arena_new(arena, struct value);
    value->kind = kind;
    return value;
}

struct value *vtl_text(struct arena *arena, struct slice text)
{
    struct value *value = vtl_new(arena, VALUE_TEXT);
    value->text = text.data ? text : SLICE("");
    return value;
}

struct value *vtl_truth(struct arena *arena, bool truth)
{
    struct value *value = vtl_new(arena, VALUE_TRUTH);
    value->truth = truth;
    return value;
}

struct value *vtl_number(struct arena *arena, double number)
{
    struct value *value = vtl_new(arena, VALUE_NUMBER);
    value->number = number;
    value->text = number == floor(number) && fabs(number) < 1e15 ? arena_printf(arena, "%lld", (long long)number)
                                                                  : SLICE("");
    if (!value->text.len) {
        struct buf text = {0};
        json_put_double(&text, isfinite(number) ? number : 0);
        value->text = arena_take(arena, &text);
    }
    return value;
}

void vtl_add(struct arena *arena, struct value *list, struct value *value)
{
    struct member *member = arena_new(arena, struct member);
    member->value = value;
    if (list->last)
        list->last->next = member;
    else
        list->first = member;
    list->last = member;
    list->count++;
}

void vtl_put(struct arena *arena, struct value *map, struct slice name, struct value *value)
{
    for (struct member *member = map->first; member; member = member->next)
        if (slice_equal(member->name, name)) {
            member->value = value;
            return;
        }
    vtl_add(arena, map, value);
    map->last->name = name;
}

struct value *vtl_member(const struct value *map, struct slice name)
{
    if (map->kind != VALUE_MAP) return NULL;
    for (struct member *member = map->first; member; member = member->next)
        if (slice_equal(member->name, name)) return member->value;
    return NULL;
}

struct value *vtl_element(const struct value *list, int64_t number)
{
    if (list->kind != VALUE_LIST) return NULL;
    for (struct member *member = list->first; member; member = member->next)
        if (number-- == 0) return member->value;
    return NULL;
}

bool vtl_may_go_on(const struct arena *arena, const struct allowance *left)
{
    return left->bytes >= 0 && left->nodes >= 0 && left->work >= 0 && arena->total_bytes <= left->arena_bytes;
}

struct value *vtl_copy(struct arena *arena, const struct value *value, struct allowance *left, unsigned depth)
{
    if (--left->nodes < 0 || depth > LIMIT_VELOCITY_DEPTH) return NULL;
    struct value *copy = arena_new(arena, struct value);
    *copy = *value;
    copy->first = copy->last = NULL;
    copy->count = 0;
    for (const struct member *member = value->first; member; member = member->next) {
        struct value *one = vtl_copy(arena, member->value, left, depth + 1);
        if (!one) return NULL;
        vtl_add(arena, copy, one);
        copy->last->name = member->name;
    }
    return copy;
}

/* ---- JSON ---- */

/* The depth is bounded by the reader's own. */
static struct value *vtl_read(struct json_reader *reader)
{
    struct arena *arena = reader->arena;
    struct value *value;
    struct slice text;
    char number[64];
    switch (json_peek(reader)) {
    case JSON_NULL: json_skip(reader); return vtl_new(arena, VALUE_NONE);
    case JSON_TRUE: json_skip(reader); return vtl_truth(arena, true);
    case JSON_FALSE: json_skip(reader); return vtl_truth(arena, false);
    case JSON_STRING: return json_string(reader, &text) ? vtl_text(arena, text) : NULL;
    case JSON_NUMBER:
        if (!json_number(reader, &text)) return NULL;
        value = vtl_new(arena, VALUE_NUMBER);
        value->text = text;
        snprintf(number, sizeof number, "%.*s", (int)(text.len < 60 ? text.len : 60), text.data);
        value->number = strtod(number, NULL);
        return value;
    case JSON_ARRAY:
        value = vtl_new(arena, VALUE_LIST);
        json_enter(reader);
        while (json_element(reader)) {
            struct value *one = vtl_read(reader);
            if (!one) return NULL;
            vtl_add(arena, value, one);
        }
        return json_failed(reader) ? NULL : value;
    case JSON_OBJECT:
        value = vtl_new(arena, VALUE_MAP);
        json_enter(reader);
        while (json_member(reader, &text)) {
            struct value *one = vtl_read(reader);
            if (!one) return NULL;
            vtl_add(arena, value, one); /* of two with one name the first is found */
            value->last->name = text;
        }
        return json_failed(reader) ? NULL : value;
    default: return NULL;
    }
}

struct value *vtl_of_json(struct arena *arena, struct slice json)
{
    struct json_reader reader;
    json_begin(&reader, json, arena);
    struct value *value = vtl_read(&reader);
    return value && json_done(&reader) ? value : NULL;
}

/* ---- as text ---- */

void vtl_print_json(struct buf *out, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NONE: buf_text(out, "null"); return;
    case VALUE_TRUTH: buf_slice(out, value->truth ? SLICE("true") : SLICE("false")); return;
    case VALUE_NUMBER: buf_slice(out, value->text); return;
    case VALUE_TEXT: json_put_string(out, value->text); return;
    case VALUE_LIST:
    case VALUE_MAP: break;
    }
    bool is_map = value->kind == VALUE_MAP;
    buf_byte(out, is_map ? '{' : '[');
    const struct member *member = value->first;
    for (; member && out->len <= LIMIT_VELOCITY_BYTES; member = member->next) {
        if (member != value->first) buf_byte(out, ',');
        if (is_map) {
            json_put_string(out, member->name);
            buf_byte(out, ':');
        }
        vtl_print_json(out, member->value);
    }
    buf_byte(out, is_map ? '}' : ']');
}

void vtl_print(struct buf *out, const struct value *value)
{
    if (value->kind == VALUE_TEXT)
        buf_slice(out, value->text);
    else if (value->kind != VALUE_NONE)
        vtl_print_json(out, value);
}

struct slice vtl_as_text(struct arena *arena, const struct value *value)
{
    if (value->kind == VALUE_TEXT || value->kind == VALUE_NUMBER) return value->text;
    struct buf out = {0};
    vtl_print(&out, value);
    return arena_take(arena, &out);
}

bool vtl_is_true(const struct value *value)
{
    return value->kind == VALUE_TRUTH ? value->truth : value->kind != VALUE_NONE;
}

bool vtl_equal(const struct value *a, const struct value *b, struct allowance *left)
{
    if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER) return !(a->number < b->number) && !(a->number > b->number);
    if (a->kind == VALUE_TRUTH && b->kind == VALUE_TRUTH) return a->truth == b->truth;
    if (a->kind == VALUE_NONE || b->kind == VALUE_NONE) return a->kind == b->kind;
    struct arena arena = {0};
    struct slice first = vtl_as_text(&arena, a), second = vtl_as_text(&arena, b);
    bool equal = slice_equal(first, second);
    left->work -= (int64_t)(first.len + second.len);
    arena_free(&arena);
    return equal;
}

/* ---- paths ---- */

static struct value *step(struct arena *arena, struct value *from, struct slice name, bool is_index, bool is_all,
                          struct allowance *left)
{
    unsigned long long number;
    struct value *list;
    if (!from) return NULL;
    left->work -= from->count;
    if (is_all) {
        list = vtl_new(arena, VALUE_LIST);
        for (struct member *member = from->first; member; member = member->next) vtl_add(arena, list, member->value);
        return list;
    }
    if (is_index) return slice_to_u64(name, 1000000, &number) ? vtl_element(from, (int64_t)number) : NULL;
    return vtl_member(from, name);
}

/* Behind [*] a step is taken by each. */
static struct value *step_all(struct arena *arena, struct value *from, struct slice name, bool is_index, bool is_all,
                              bool is_many, struct allowance *left)
{
    if (!is_many) return step(arena, from, name, is_index, is_all, left);
    struct value *list = vtl_new(arena, VALUE_LIST);
    for (struct member *member = from ? from->first : NULL; member; member = member->next) {
        struct value *found = step(arena, member->value, name, is_index, is_all, left);
        left->work--;
        if (found) vtl_add(arena, list, found);
    }
    return list;
}

bool vtl_path(struct arena *arena, struct value *from, struct slice path, struct allowance *left, struct value **out)
{
    size_t at = 0;
    bool is_many = false;
    if (!path.len || path.data[0] != '$') return false;
    for (at = 1; at < path.len && vtl_may_go_on(arena, left);) {
        bool is_index = false, is_all = false;
        size_t start, end;
        if (path.data[at] == '.') {
            for (start = end = at + 1; end < path.len && path.data[end] != '.' && path.data[end] != '[';) end++;
            at = end;
            is_all = end == start + 1 && path.data[start] == '*';
        } else if (path.data[at] == '[' && at + 2 < path.len && strchr("'\"", path.data[at + 1])) {
            char quote = path.data[at + 1];
            for (start = end = at + 2; end < path.len && path.data[end] != quote;) end++;
            if (end + 1 >= path.len || path.data[end + 1] != ']') return false;
            at = end + 2;
        } else if (path.data[at] == '[') {
            for (start = end = at + 1; end < path.len && path.data[end] != ']';) end++;
            if (end >= path.len) return false;
            at = end + 1;
            is_all = end == start + 1 && path.data[start] == '*';
            is_index = true;
        } else {
            return false;
        }
        if (end == start) return false;
        from = step_all(arena, from, (struct slice){path.data + start, end - start}, is_index, is_all, is_many,
                        left);
        is_many = is_many || is_all;
    }
    *out = from;
    return true;
}
