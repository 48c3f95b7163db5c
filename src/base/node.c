/* The tree is built by the strict reader of base, so it holds only what is JSON; its depth is bounded there.
 */
#include "base/node.h"

static struct node *new_node(struct json_reader *reader, enum json_kind kind)
{
    struct node *node = arena_new(reader->arena, struct node);
    node->kind = kind;
    return node;
}

static bool read_children(struct json_reader *reader, struct node *parent)
{
    const struct node **end = &parent->first;
    struct slice name = SLICE_NONE;
    if (!json_enter(reader)) return false;
    while (parent->kind == JSON_OBJECT ? json_member(reader, &name) : json_element(reader)) {
        struct node *child = (struct node *)node_read(reader);
        if (!child) return false;
        child->name = name;
        *end = child;
        end = &child->next;
    }
    return !json_failed(reader);
}

const struct node *node_read(struct json_reader *reader)
{
    enum json_kind kind = json_peek(reader);
    struct node *node = new_node(reader, kind);
    const char *start = reader->at;
    bool fine;
    switch (kind) {
    case JSON_OBJECT:
    case JSON_ARRAY: fine = read_children(reader, node); break;
    case JSON_STRING: fine = json_string(reader, &node->text); break;
    case JSON_NUMBER: fine = json_number(reader, &node->text); break;
    case JSON_END: fine = json_fail(reader, "something is missing at the end"); break;
    default: fine = json_skip(reader); break;
    }
    node->source = (struct slice){start, (size_t)(reader->at - start)};
    return fine ? node : NULL;
}

const struct node *node_parse(struct arena *arena, struct slice text, const char **fault)
{
    struct json_reader reader;
    json_begin(&reader, text, arena);
    const struct node *node = node_read(&reader);
    if (node && json_done(&reader)) return node;
    *fault = reader.fault ? reader.fault : "something stands behind the end";
    return NULL;
}

const struct node *node_member(const struct node *object, const char *name)
{
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (const struct node *member = object->first; member; member = member->next)
        if (slice_equal(member->name, slice_of(name))) return member;
    return NULL;
}

struct slice node_text(const struct node *object, const char *name)
{
    const struct node *member = node_member(object, name);
    bool has_text = member && (member->kind == JSON_STRING || member->kind == JSON_NUMBER);
    return has_text ? member->text : SLICE("");
}

unsigned long long node_count(const struct node *object, const char *name)
{
    unsigned long long count;
    return slice_to_u64(node_text(object, name), ~0ull, &count) ? count : 0;
}

bool node_is(const struct node *object, const char *name, const char *text)
{
    return slice_equal(node_text(object, name), slice_of(text));
}

bool node_is_true(const struct node *object, const char *name)
{
    const struct node *member = node_member(object, name);
    return member && member->kind == JSON_TRUE;
}

size_t node_children(const struct node *node)
{
    size_t count = 0;
    for (const struct node *child = node ? node->first : NULL; child; child = child->next) count++;
    return count;
}

/* ---- writing ---- */

void node_put(struct buf *out, const struct node *node)
{
    bool is_object = node->kind == JSON_OBJECT;
    switch (node->kind) {
    case JSON_TRUE: buf_text(out, "true"); return;
    case JSON_FALSE: buf_text(out, "false"); return;
    case JSON_NUMBER: buf_slice(out, node->text); return;
    case JSON_STRING: json_put_string(out, node->text); return;
    case JSON_OBJECT:
    case JSON_ARRAY: break;
    default: buf_text(out, "null"); return;
    }
    buf_byte(out, is_object ? '{' : '[');
    for (const struct node *child = node->first; child; child = child->next) {
        if (child != node->first) buf_byte(out, ',');
        if (is_object) {
            json_put_string(out, child->name);
            buf_byte(out, ':');
        }
        node_put(out, child);
    }
    buf_byte(out, is_object ? '}' : ']');
}

void put_comma(struct buf *out)
{
    if (out->len && out->data[out->len - 1] != '{' && out->data[out->len - 1] != '[') buf_byte(out, ',');
}

void put_name(struct buf *out, const char *name)
{
    put_comma(out);
    json_put_string(out, slice_of(name));
    buf_byte(out, ':');
}

void put_string_member(struct buf *out, const char *name, struct slice text)
{
    put_name(out, name);
    json_put_string(out, text);
}

void put_int_member(struct buf *out, const char *name, int64_t number)
{
    put_name(out, name);
    json_put_int(out, number);
}

void put_raw_member(struct buf *out, const char *name, struct slice json)
{
    put_name(out, name);
    buf_slice(out, json);
}
