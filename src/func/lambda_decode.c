/* Requests into nodes: path, query, headers and body against a table of fields. A type that does not fit is
 * refused at once; what breaks a constraint is collected and told together. */
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "calendar/calendar.h"
#include "func/lambda.h"

#define SECONDS_MAX     253402300800.0 /* the year 10000 */
#define MAP_MEMBERS_MAX 4096 /* more than any map may hold; each new key is compared with all others */

struct decoder {
    struct json_reader reader;
    struct arena *arena;
    const char *wanted, *found; /* types, when they do not fit */
};

static bool decode_value(struct decoder *decoder, const struct shape *shape, struct shape_node *node);

static const char *kind_text(enum json_kind kind)
{
    switch (kind) {
    case JSON_STRING: return "STRING_VALUE";
    case JSON_NUMBER: return "NUMBER_VALUE";
    case JSON_TRUE: return "TRUE_VALUE";
    case JSON_FALSE: return "FALSE_VALUE";
    case JSON_OBJECT: return "START_OBJECT";
    case JSON_ARRAY: return "START_ARRAY";
    default: return "NULL_VALUE";
    }
}

/* Both answer false. */
static bool unfit(struct decoder *decoder, const char *wanted, enum json_kind found)
{
    decoder->wanted = wanted;
    decoder->found = kind_text(found);
    return false;
}

static bool mismatch(struct decoder *decoder, const char *wanted)
{
    enum json_kind kind = json_peek(&decoder->reader);
    if (kind == JSON_FAULT || kind == JSON_END) return json_fail(&decoder->reader, "unexpected end");
    return unfit(decoder, wanted, kind);
}

static bool text_to_integer(struct slice text, int64_t *out)
{
    unsigned long long value;
    bool negative = text.len && text.data[0] == '-';
    if (negative) text = slice_from(text, 1);
    if (!slice_to_u64(text, INT32_MAX, &value)) return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* ---- what holds others ---- */

static bool decode_list(struct decoder *decoder, const struct shape *shape, struct shape_node *node)
{
    uint32_t room = 0;
    if (json_peek(&decoder->reader) != JSON_ARRAY) return mismatch(decoder, "a List");
    json_enter(&decoder->reader);
    while (json_element(&decoder->reader)) {
        node->nodes = arena_grow(decoder->arena, node->nodes, node->count, &room, sizeof *node->nodes);
        if (!decode_value(decoder, shape->of, &node->nodes[node->count++])) return false;
    }
    return true;
}

static bool decode_map(struct decoder *decoder, const struct shape *shape, struct shape_node *node)
{
    struct slice key;
    uint32_t room = 0, key_room = 0;
    if (json_peek(&decoder->reader) != JSON_OBJECT) return mismatch(decoder, "a Map");
    json_enter(&decoder->reader);
    while (json_member(&decoder->reader, &key)) {
        uint32_t at = 0;
        while (at < node->count && !slice_equal(node->keys[at], key)) at++;
        if (at == MAP_MEMBERS_MAX) return json_fail(&decoder->reader, "too many members");
        if (at == node->count) {
            node->nodes = arena_grow(decoder->arena, node->nodes, node->count, &room, sizeof *node->nodes);
            node->keys = arena_grow(decoder->arena, node->keys, node->count, &key_room, sizeof *node->keys);
            node->keys[node->count++] = key;
        }
        if (!decode_value(decoder, shape->of, &node->nodes[at])) return false;
    }
    return true;
}

static bool decode_fields(struct decoder *decoder, const struct shape_field *fields, uint32_t count,
                          struct shape_node *nodes)
{
    struct slice name;
    json_enter(&decoder->reader);
    while (json_member(&decoder->reader, &name)) {
        uint32_t at = 0;
        while (at < count &&
               (fields[at].source != FROM_BODY || !slice_equal(slice_of(fields[at].name), name)))
            at++;
        bool fits = at < count ? decode_value(decoder, fields[at].shape, &nodes[at])
                               : json_skip(&decoder->reader);
        if (!fits) return false;
    }
    return true;
}

static bool decode_time(struct decoder *decoder, struct shape_node *node, enum json_kind kind)
{
    struct slice text;
    bool fits = false;
    if (kind == JSON_STRING) {
        if (!json_string(&decoder->reader, &text)) return false;
        fits = moment_parse(text, &node->integer) && node->integer >= 0;
    } else if (kind == JSON_NUMBER) {
        if (!json_number(&decoder->reader, &text)) return false;
        double seconds = strtod(arena_copy(decoder->arena, text).data, NULL);
        fits = seconds >= 0 && seconds < SECONDS_MAX;
        if (fits) node->integer = llround(seconds * 1000);
    }
    return fits || unfit(decoder, "a Timestamp", kind);
}

static bool decode_value(struct decoder *decoder, const struct shape *shape, struct shape_node *node)
{
    struct json_reader *reader = &decoder->reader;
    enum json_kind kind = json_peek(reader);
    struct slice text;
    *node = (struct shape_node){.shape = shape, .present = kind != JSON_NULL};
    if (!node->present) return json_skip(reader);
    switch (shape->kind) {
    case SHAPE_STRING:
    case SHAPE_BLOB:
        return kind == JSON_STRING ? json_string(reader, &node->text) : mismatch(decoder, "a String");
    case SHAPE_INTEGER:
        if (kind != JSON_NUMBER) return mismatch(decoder, "an Integer");
        if (!json_number(reader, &text)) return false;
        return text_to_integer(text, &node->integer) || unfit(decoder, "an Integer", kind);
    case SHAPE_DOUBLE:
        if (kind != JSON_NUMBER) return mismatch(decoder, "a Double");
        if (!json_number(reader, &text)) return false;
        node->real = strtod(arena_copy(decoder->arena, text).data, NULL);
        return true;
    case SHAPE_BOOL:
        node->truth = kind == JSON_TRUE;
        return node->truth || kind == JSON_FALSE ? json_skip(reader) : mismatch(decoder, "a Boolean");
    case SHAPE_TIME: return decode_time(decoder, node, kind);
    case SHAPE_STRUCT:
        if (kind != JSON_OBJECT) return mismatch(decoder, "an Object");
        node->nodes = arena_zero(decoder->arena, shape->field_count * sizeof *node->nodes);
        for (uint32_t i = 0; i < shape->field_count; i++) node->nodes[i].shape = shape->fields[i].shape;
        return decode_fields(decoder, shape->fields, shape->field_count, node->nodes);
    case SHAPE_LIST: return decode_list(decoder, shape, node);
    case SHAPE_MAP: return decode_map(decoder, shape, node);
    }
    return false;
}

/* ---- path, query, headers ---- */

static const char *take_outside(struct rest_call *call, const struct shape_field *field,
                                struct shape_node *node)
{
    const char *wire = field->wire ? field->wire : field->name;
    struct slice text;
    if (field->shape->kind == SHAPE_LIST) { /* it stands in the query as a name that is repeated */
        uint32_t room = 0;
        while (node->count < LIMIT_TAGS * 2 && (text = rest_query_nth(call, wire, node->count)).data) {
            node->nodes = arena_grow(call->arena, node->nodes, node->count, &room, sizeof *node->nodes);
            node->nodes[node->count++] = (struct shape_node){
                .shape = field->shape->of, .present = true, .text = text};
        }
        node->present = node->count != 0;
        return NULL;
    }
    text = field->source == FROM_PATH    ? call->parameters[field->index]
           : field->source == FROM_QUERY ? rest_query(call, wire)
                                         : call->header(call, slice_of(wire));
    if (!text.data || (field->source != FROM_PATH && !text.len)) return NULL;
    node->present = true;
    node->text = text;
    if (field->shape->kind == SHAPE_INTEGER && !text_to_integer(text, &node->integer)) return field->name;
    return NULL;
}

/* ---- the whole ---- */

static bool has_body(const struct shape_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fields[i].source == FROM_BODY) return true;
    return false;
}

static const char *decode_body(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                               struct shape_node *nodes, struct slice *message)
{
    struct decoder decoder = {.arena = call->arena};
    if (!call->body.len || !has_body(fields, count)) return NULL;
    json_begin(&decoder.reader, call->body, call->arena);
    bool fits = json_peek(&decoder.reader) == JSON_OBJECT ? decode_fields(&decoder, fields, count, nodes)
                                                          : mismatch(&decoder, "an Object");
    if (!fits && decoder.wanted) {
        *message = arena_printf(call->arena, "%s can not be converted to %s", decoder.found, decoder.wanted);
        return "SerializationException";
    }
    if (fits && json_done(&decoder.reader)) return NULL;
    *message = arena_printf(call->arena, "Could not parse request body into json: %s at byte %zu",
                            decoder.reader.fault ? decoder.reader.fault : "more than one value",
                            json_offset(&decoder.reader));
    return "InvalidRequestContentException";
}

const char *shape_read(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                       struct shape_node *nodes, struct slice *message)
{
    struct buf violations = {0};
    unsigned violation_count = 0;
    memset(nodes, 0, count * sizeof *nodes);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i].shape = fields[i].shape;
        const char *bad = fields[i].source == FROM_BODY ? NULL : take_outside(call, &fields[i], &nodes[i]);
        if (!bad) continue;
        *message = arena_printf(call->arena, "STRING_VALUE can not be converted to an Integer: %s", bad);
        return "SerializationException";
    }
    const char *fault = decode_body(call, fields, count, nodes, message);
    if (fault) return fault;
    lambda_check(&violations, &violation_count, fields, count, nodes);
    struct slice text = arena_take(call->arena, &violations);
    if (!violation_count) return NULL;
    *message = arena_printf(call->arena, "%u validation error%s detected: %.*s", violation_count,
                            violation_count == 1 ? "" : "s", SLICE_ARG(text));
    return "ValidationException";
}

bool lambda_decode(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                   struct shape_node *nodes)
{
    struct slice message = SLICE_NONE;
    const char *fault = shape_read(call, fields, count, nodes, &message);
    return !fault || lambda_error(call, 400, fault, "%.*s", SLICE_ARG(message));
}

/* ---- nodes as JSON ---- */

static void node_put_json(struct buf *out, const struct shape_node *node)
{
    if (!node->present) {
        buf_text(out, "null");
        return;
    }
    switch (node->shape->kind) {
    case SHAPE_STRING:
    case SHAPE_BLOB: json_put_string(out, node->text); return;
    case SHAPE_INTEGER: json_put_int(out, node->integer); return;
    case SHAPE_TIME: seconds_put(out, node->integer); return;
    case SHAPE_DOUBLE: json_put_double(out, node->real); return;
    case SHAPE_BOOL: compose(out, "%b", node->truth); return;
    case SHAPE_LIST:
    case SHAPE_STRUCT:
    case SHAPE_MAP: break;
    }
    buf_byte(out, node->shape->kind == SHAPE_LIST ? '[' : '{');
    /* Of a list, a map, or the members of a struct that are there. */
    const struct shape *shape = node->shape;
    uint32_t count = shape->kind == SHAPE_STRUCT ? shape->field_count : node->count;
    for (uint32_t i = 0; i < count; i++) {
        if (shape->kind == SHAPE_STRUCT && !node->nodes[i].present) continue;
        compose(out, "%,");
        if (shape->kind == SHAPE_STRUCT) compose(out, "%s:", slice_of(shape->fields[i].name));
        if (shape->kind == SHAPE_MAP) compose(out, "%s:", node->keys[i]);
        node_put_json(out, &node->nodes[i]);
    }
    buf_byte(out, node->shape->kind == SHAPE_LIST ? ']' : '}');
}

struct slice node_json(const struct shape_node *node, struct arena *arena)
{
    struct buf json = {0};
    if (!node->present) return SLICE_NONE;
    node_put_json(&json, node);
    return arena_take(arena, &json);
}

void node_set(struct document *document, const char *name, const struct shape_node *node, struct arena *arena)
{
    if (node->present) document_set(document, name, node_json(node, arena), arena);
}
