/* A request's body into nodes, walked once against the operation's shape.
 *
 * Speed matters: every request passes here. Strings stay where they are in the body, a structure's members
 * are one array, lists and maps grow in the arena. Unknown members are skipped, null means absent. The
 * service's deserializer is Java's, and its error texts show it; which text belongs to which mistake depends
 * on whether the value stands in a structure (a field) or in a list or map (an element). */
#include "api/decode.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"

#define COMPARE_EACH_MAX 16 /* names up to here are compared each with each */

/* What the Java runtime says when it finds a scalar where an element must be a list or a map. */
#define CAST_FAULT                                                                                           \
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "            \
    "java.lang.Class "                                                                                       \
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module "       \
    "java.base of "                                                                                          \
    "loader 'bootstrap')"

struct decoder {
    struct api_call *call;
    struct json_reader reader;
};

static bool decode_node(struct decoder *decoder, const struct shape *shape, bool is_element,
                        struct node *out);

/* The body is not JSON: the service says no more than that. */
static bool refuse_malformed(struct api_call *call)
{
    return refuse_text(call, "SerializationException", SLICE_NONE);
}

/* The service parses the whole body before it converts anything, so a malformed rest goes first. */
bool decode_refuse(struct api_call *call, const char *format, ...)
{
    struct json_reader reader;
    json_begin(&reader, call->body, call->arena);
    if (!json_skip(&reader) || !json_done(&reader)) return refuse_malformed(call);
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return refuse_text(call, "SerializationException", message);
}

/* ---- faults of type ---- */

static const char *scalar_class(enum shape_kind kind)
{
    switch (kind) {
    case SHAPE_STRING: return "String";
    case SHAPE_BOOL: return "Boolean";
    case SHAPE_INT: return "Integer";
    case SHAPE_LONG: return "Long";
    case SHAPE_DOUBLE: return "Double";
    default: return NULL;
    }
}

static void put_java_type(struct buf *out, const struct shape *shape)
{
    switch (shape->kind) {
    case SHAPE_LIST:
        buf_text(out, "java.util.List<");
        put_java_type(out, shape->of);
        buf_byte(out, '>');
        break;
    case SHAPE_MAP:
        buf_text(out, "java.util.Map<java.lang.String, ");
        put_java_type(out, shape->of);
        buf_byte(out, '>');
        break;
    case SHAPE_STRUCT:
    case SHAPE_VALUE: buf_printf(out, "com.amazonaws.dynamodb.v20120810.%s", shape->type_name); break;
    default: buf_printf(out, "java.lang.%s", scalar_class(shape->kind)); break;
    }
}

static bool refuse_array(struct api_call *call, const struct shape *shape)
{
    struct buf type = {0};
    put_java_type(&type, shape);
    decode_refuse(call, "Unrecognized collection type %s%.*s", shape->kind == SHAPE_MAP ? "" : "class ",
                  SLICE_ARG(buf_view(&type)));
    buf_free(&type);
    return false;
}

static bool is_decimal(struct json_reader *reader)
{
    struct slice text;
    if (!json_number(reader, &text)) return false;
    return memchr(text.data, '.', text.len) || memchr(text.data, 'e', text.len) ||
           memchr(text.data, 'E', text.len);
}

/* A scalar of one kind where one of another is wanted. */
static bool refuse_scalar(struct api_call *call, struct json_reader *reader, enum json_kind found,
                          const char *wanted)
{
    const char *name = "NUMBER_VALUE";
    if (found == JSON_TRUE)
        name = "TRUE_VALUE";
    else if (found == JSON_FALSE)
        name = "FALSE_VALUE";
    else if (found == JSON_STRING)
        name = "STRING_VALUE";
    else if (is_decimal(reader))
        name = "DECIMAL_VALUE";
    return decode_refuse(call, "%s cannot be converted to %s", name, wanted);
}

/* What stands here does not fit the shape; the caller has seen that it is neither null nor of the right kind.
 */
static bool refuse_kind(struct decoder *decoder, const struct shape *shape, bool is_element,
                        enum json_kind found)
{
    struct api_call *call = decoder->call;
    bool is_container = shape->kind == SHAPE_LIST || shape->kind == SHAPE_MAP;
    if (found == JSON_FAULT || found == JSON_END) return refuse_malformed(call);
    if (found == JSON_ARRAY) return refuse_array(call, shape);
    if (found == JSON_OBJECT)
        return decode_refuse(call, "Start of structure or map found where not expected");
    if (is_container && is_element) return decode_refuse(call, CAST_FAULT);
    if (is_container || (shape->kind == SHAPE_STRUCT && !is_element))
        return decode_refuse(call, "Unexpected field type");
    if (shape->kind == SHAPE_STRUCT) return decode_refuse(call, "Unexpected value type in payload");
    return refuse_scalar(call, &decoder->reader, found, scalar_class(shape->kind));
}

/* ---- scalars ---- */

bool decode_bool(struct api_call *call, struct json_reader *reader, bool *out)
{
    static const char *const yes[] = {"true", "1", "yes"}, *const no[] = {"false", "0", "no"};
    struct slice text;
    enum json_kind found = json_peek(reader);
    switch (found) {
    case JSON_TRUE:
    case JSON_FALSE: *out = found == JSON_TRUE; return json_skip(reader) || refuse_malformed(call);
    case JSON_STRING:
        if (!json_string(reader, &text)) return refuse_malformed(call);
        for (int i = 0; i < 3; i++) {
            *out = slice_equal_ignoring_case(text, slice_of(yes[i]));
            if (*out || slice_equal_ignoring_case(text, slice_of(no[i]))) return true;
        }
        return decode_refuse(call, "Unexpected token received from parser");
    case JSON_NUMBER: return refuse_scalar(call, reader, found, "Boolean");
    case JSON_ARRAY: return decode_refuse(call, "Unrecognized collection type class java.lang.Boolean");
    case JSON_OBJECT: return decode_refuse(call, "Start of structure or map found where not expected");
    default: return refuse_malformed(call);
    }
}

bool decode_string(struct api_call *call, struct json_reader *reader, struct slice *out)
{
    enum json_kind found = json_peek(reader);
    switch (found) {
    case JSON_STRING: return json_string(reader, out) || refuse_malformed(call);
    case JSON_ARRAY: return decode_refuse(call, "Unrecognized collection type class java.lang.String");
    case JSON_OBJECT: return decode_refuse(call, "Start of structure or map found where not expected");
    case JSON_FAULT:
    case JSON_END: return refuse_malformed(call);
    case JSON_NUMBER:
        if (call->api->is_lenient) return json_number(reader, out) || refuse_malformed(call);
        return refuse_scalar(call, reader, found, "String");
    default: return refuse_scalar(call, reader, found, "String");
    }
}

/* A number that was sent as text: "5" on a lenient server. */
static bool read_number_text(struct decoder *decoder, const struct shape *shape, struct slice *out)
{
    struct json_reader number;
    if (!json_string(&decoder->reader, out)) return false;
    json_begin(&number, *out, decoder->call->arena);
    if (json_peek(&number) == JSON_NUMBER && json_number(&number, out) && json_done(&number)) return true;
    return decode_refuse(decoder->call, "STRING_VALUE cannot be converted to %s", scalar_class(shape->kind));
}

/* Whole numbers saturate at their type's bounds and lose their fraction, as the service's do. */
static bool decode_number(struct decoder *decoder, const struct shape *shape, bool is_text, struct node *out)
{
    struct slice text;
    if (!(is_text ? read_number_text(decoder, shape, &text) : json_number(&decoder->reader, &text)))
        return decoder->call->error ? false : refuse_malformed(decoder->call);
    int64_t most = shape->kind == SHAPE_INT ? INT32_MAX : INT64_MAX;
    unsigned long long whole;
    if (shape->kind != SHAPE_DOUBLE && slice_to_u64(text, (unsigned long long)most, &whole)) {
        out->integer = (int64_t)whole;
        return true;
    }
    double real = strtod(arena_printf(decoder->call->arena, "%.*s", SLICE_ARG(text)).data, NULL);
    if (shape->kind == SHAPE_DOUBLE)
        out->real = isfinite(real) ? real : 0;
    else if (real >= (double)most)
        out->integer = most;
    else if (real <= -(double)most)
        out->integer = -most - 1;
    else
        out->integer = (int64_t)floor(real);
    return true;
}

/* ---- containers ---- */

static bool decode_list(struct decoder *decoder, const struct shape *shape, struct node *out)
{
    uint32_t capacity = 0;
    out->elements = NULL;
    json_enter(&decoder->reader);
    while (json_element(&decoder->reader)) {
        out->elements = arena_grow(decoder->call->arena, out->elements, out->count, &capacity,
                                   sizeof *out->elements);
        if (!decode_node(decoder, shape->of, true, &out->elements[out->count])) return false;
        out->count++;
    }
    return true;
}

struct named_place {
    struct slice name;
    uint32_t place;
};

static int by_name_and_place(const void *left, const void *right)
{
    const struct named_place *a = left, *b = right;
    int order = slice_compare(a->name, b->name);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

/* Marks those that another of the same name follows. */
static void mark_repeated(struct arena *arena, const char *array, uint32_t count, size_t size, bool *repeated)
{
    struct named_place *places = arena_array(arena, struct named_place, count);
    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct named_place){*(const struct slice *)(array + i * size), i};
    qsort(places, count, sizeof *places, by_name_and_place);
    for (uint32_t i = 0; i + 1 < count; i++)
        repeated[places[i].place] = slice_equal(places[i].name, places[i + 1].name);
}

/* Few names are compared each with each, which is quicker than sorting and needs no memory. */
static bool has_repeated(const char *array, uint32_t count, size_t size)
{
    for (uint32_t i = 1; i < count; i++) {
        struct slice name = *(const struct slice *)(array + i * size);
        for (uint32_t j = 0; j < i; j++) {
            struct slice other = *(const struct slice *)(array + j * size);
            if (name.len != other.len || (name.len && name.data[0] != other.data[0])) continue;
            if (slice_equal(name, other)) return true;
        }
    }
    return false;
}

uint32_t decode_drop_repeated(struct arena *arena, void *array, uint32_t count, size_t size)
{
    char *bytes = array;
    uint32_t kept = 0;
    if (count < 2 || (count <= COMPARE_EACH_MAX && !has_repeated(bytes, count, size))) return count;
    bool *repeated = arena_zero(arena, count);
    mark_repeated(arena, bytes, count, size, repeated);
    for (uint32_t i = 0; i < count; i++) {
        if (repeated[i]) continue;
        if (kept != i) memcpy(bytes + kept * size, bytes + i * size, size);
        kept++;
    }
    return kept;
}

static bool decode_map(struct decoder *decoder, const struct shape *shape, struct node *out)
{
    struct arena *arena = decoder->call->arena;
    uint32_t capacity = 0;
    struct slice key;
    out->entries = NULL;
    json_enter(&decoder->reader);
    while (json_member(&decoder->reader, &key)) {
        out->entries = arena_grow(arena, out->entries, out->count, &capacity, sizeof *out->entries);
        struct node_entry *entry = &out->entries[out->count++];
        entry->key = key;
        if (!decode_node(decoder, shape->of, true, &entry->node)) return false;
    }
    out->count = decode_drop_repeated(arena, out->entries, out->count, sizeof *out->entries);
    return true;
}

static const struct shape_member *find_member(const struct shape *shape, struct slice name)
{
    for (uint32_t i = 0; i < shape->member_count; i++) {
        const struct shape_member *member = &shape->members[i];
        if (member->name.len == name.len && memcmp(member->name.data, name.data, name.len) == 0)
            return member;
    }
    return NULL;
}

static bool decode_struct(struct decoder *decoder, const struct shape *shape, struct node *out)
{
    struct slice name;
    out->members = NULL;
    if (shape->member_count)
        out->members = arena_zero(decoder->call->arena, shape->member_count * sizeof *out->members);
    json_enter(&decoder->reader);
    while (json_member(&decoder->reader, &name)) {
        const struct shape_member *member = find_member(shape, name);
        if (!member)
            json_skip(&decoder->reader);
        else if (!decode_node(decoder, member->shape, false, &out->members[member - shape->members]))
            return false;
    }
    return true;
}

/* A null AttributeValue in a list or map is there, but empty. */
static bool decode_null(struct decoder *decoder, const struct shape *shape, bool is_element, struct node *out)
{
    json_skip(&decoder->reader);
    if (shape->kind == SHAPE_VALUE && is_element) {
        out->present = true;
        out->fault = value_empty_fault;
    }
    return true;
}

static bool fits(const struct shape *shape, enum json_kind found, bool is_lenient)
{
    switch (shape->kind) {
    case SHAPE_STRUCT:
    case SHAPE_MAP: return found == JSON_OBJECT;
    case SHAPE_LIST: return found == JSON_ARRAY;
    case SHAPE_INT:
    case SHAPE_LONG:
    case SHAPE_DOUBLE: return found == JSON_NUMBER || (is_lenient && found == JSON_STRING);
    default: return true; /* the others know for themselves what they take */
    }
}

static bool decode_node(struct decoder *decoder, const struct shape *shape, bool is_element, struct node *out)
{
    enum json_kind found = json_peek(&decoder->reader);
    *out = (struct node){.shape = shape};
    if (found == JSON_NULL) return decode_null(decoder, shape, is_element, out);
    if (!fits(shape, found, decoder->call->api->is_lenient))
        return refuse_kind(decoder, shape, is_element, found);
    out->present = true;
    switch (shape->kind) {
    case SHAPE_STRUCT: return decode_struct(decoder, shape, out);
    case SHAPE_LIST: return decode_list(decoder, shape, out);
    case SHAPE_MAP: return decode_map(decoder, shape, out);
    case SHAPE_STRING: return decode_string(decoder->call, &decoder->reader, &out->text);
    case SHAPE_BOOL: return decode_bool(decoder->call, &decoder->reader, &out->truth);
    case SHAPE_VALUE: return value_decode(decoder->call, &decoder->reader, is_element, out);
    default: return decode_number(decoder, shape, found == JSON_STRING, out);
    }
}

bool request_decode(struct api_call *call, const struct shape *shape, struct node *root)
{
    struct decoder decoder = {.call = call};
    json_begin(&decoder.reader, call->body, call->arena);
    if (json_peek(&decoder.reader) == JSON_NULL) return refuse_malformed(call);
    if (!decode_node(&decoder, shape, true, root)) return false;
    if (json_failed(&decoder.reader) || !json_done(&decoder.reader)) return refuse_malformed(call);
    return true;
}
