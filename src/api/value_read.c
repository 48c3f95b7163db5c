/* AttributeValues out of requests, straight into struct value: {"S":"x"} becomes a string without any step
 * between.
 *
 * Whatever the service finds wrong with a value's content is noted, first fault first, and said later by the
 * operation, since other checks of a request come before it. A value with a fault is still well-formed
 * memory, but nobody may use it. */
#include "api/decode.h"
#include "base/fail.h"

#define INVALID_VALUES "One or more parameter values were invalid: "

const struct slice value_empty_fault = {
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    sizeof "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes" - 1};

struct value_reader {
    struct api_call *call;
    struct json_reader *json;
    struct slice fault; /* the first one */
};

static bool read_value(struct value_reader *reader, unsigned depth, struct value *out);

static void note(struct value_reader *reader, struct slice fault)
{
    if (!reader->fault.len) reader->fault = fault;
}

/* ---- scalars ---- */

static void note_number(struct value_reader *reader, enum number_fault fault, struct slice text)
{
    switch (fault) {
    case NUMBER_OK: return;
    case NUMBER_MALFORMED:
        if (!text.len)
            note(reader, SLICE("The parameter cannot be converted to a numeric value"));
        else
            note(reader,
                 arena_printf(reader->call->arena,
                              "The parameter cannot be converted to a numeric value: %.*s", SLICE_ARG(text)));
        return;
    case NUMBER_OVERFLOW:
        note(reader,
             SLICE(
                 "Number overflow. Attempting to store a number with magnitude larger than supported range"));
        return;
    case NUMBER_UNDERFLOW:
        note(reader, SLICE("Number underflow. Attempting to store a number with magnitude smaller than "
                           "supported range"));
        return;
    case NUMBER_PRECISION:
        note(reader, SLICE("Attempting to store more than 38 significant digits in a Number"));
        return;
    }
}

/* A number's text in its canonical form; "0" where it is none. */
static struct slice canonical(struct value_reader *reader, struct slice text)
{
    struct slice number = SLICE("0");
    enum number_fault fault = number_canonical(reader->call->arena, text, &number);
    if (fault == NUMBER_OK) return number;
    note_number(reader, fault, text);
    return SLICE("0");
}

static bool read_number(struct value_reader *reader, struct slice *out)
{
    struct slice text;
    if (!decode_string(reader->call, reader->json, &text)) return false;
    *out = canonical(reader, text);
    return true;
}

static bool read_base64(struct value_reader *reader, struct slice *text, struct slice *out)
{
    switch (json_peek(reader->json)) {
    case JSON_STRING: break;
    case JSON_ARRAY:
        return decode_refuse(reader->call, "Unrecognized collection type class java.nio.ByteBuffer");
    case JSON_OBJECT:
        return decode_refuse(reader->call, "Start of structure or map found where not expected");
    default: return decode_refuse(reader->call, "only base-64-encoded strings are convertible to bytes");
    }
    if (!decode_string(reader->call, reader->json, text)) return false;
    switch (base64_decode(reader->call->arena, *text, out)) {
    case BASE64_OK: return true;
    case BASE64_LENGTH:
        return decode_refuse(reader->call,
                             "Base64 encoded length is expected a multiple of 4 bytes but found: %zu",
                             text->len);
    default: return decode_refuse(reader->call, "Invalid last non-pad Base64 character dectected");
    }
}

static bool read_bool(struct value_reader *reader, struct value *out)
{
    if (!decode_bool(reader->call, reader->json, &out->truth)) return false;
    if (out->type == VALUE_NULL && !out->truth)
        note(reader, SLICE(INVALID_VALUES "Null attribute value types must have the value of true"));
    return true;
}

/* ---- sets ---- */

/* Lists and sets must be arrays, maps objects. */
static bool enter(struct value_reader *reader, enum json_kind wanted)
{
    enum json_kind found = json_peek(reader->json);
    if (found == wanted) {
        json_enter(reader->json);
        return true;
    }
    if (found == JSON_OBJECT)
        return decode_refuse(reader->call, "Start of structure or map found where not expected");
    if (found == JSON_ARRAY)
        return decode_refuse(reader->call, "Unrecognized collection type java.util.Map<java.lang.String, "
                                           "com.amazonaws.dynamodb.v20120810.AttributeValue>");
    return decode_refuse(reader->call, "Unexpected field type");
}

static void note_null_member(struct value_reader *reader, enum value_type type)
{
    if (type == VALUE_SS)
        note(reader, SLICE(INVALID_VALUES "An string set may not have a null string as a member"));
    else if (type == VALUE_NS)
        note(reader, SLICE("The parameter cannot be converted to a numeric value"));
    else
        note(reader, SLICE(INVALID_VALUES "An binary set may not have a null binary as a member"));
}

/* One member as it stands in the request and as it is kept. */
static bool read_member(struct value_reader *reader, enum value_type type, struct slice *text,
                        struct slice *member)
{
    *text = *member = SLICE_NONE;
    if (json_peek(reader->json) == JSON_NULL) {
        note_null_member(reader, type);
        json_skip(reader->json);
        return true;
    }
    if (type == VALUE_BS) return read_base64(reader, text, member);
    if (!decode_string(reader->call, reader->json, text)) return false;
    *member = type == VALUE_NS ? canonical(reader, *text) : *text;
    return true;
}

static void note_repeated(struct value_reader *reader, enum value_type type, const struct slice *texts,
                          uint32_t count)
{
    struct buf list = {0};
    if (reader->fault.len) return;
    if (type == VALUE_NS) {
        note(reader, SLICE("Input collection contains duplicates"));
        return;
    }
    buf_text(&list, INVALID_VALUES "Input collection [");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_text(&list, ", ");
        buf_slice(&list, texts[i]);
    }
    if (type == VALUE_SS)
        buf_text(&list, "] contains duplicates.");
    else
        buf_text(&list, "]of type BS contains duplicates.");
    note(reader, arena_copy(reader->call->arena, buf_view(&list)));
    buf_free(&list);
}

static void note_empty_set(struct value_reader *reader, enum value_type type)
{
    if (type == VALUE_SS)
        note(reader, SLICE(INVALID_VALUES "An string set  may not be empty"));
    else if (type == VALUE_NS)
        note(reader, SLICE(INVALID_VALUES "An number set  may not be empty"));
    else
        note(reader, SLICE(INVALID_VALUES "Binary sets should not be empty"));
}

static bool read_set(struct value_reader *reader, struct value *out)
{
    struct arena *arena = reader->call->arena;
    struct slice *texts = NULL;
    uint32_t text_capacity = 0, capacity = 0;
    out->count = 0;
    out->members = NULL;
    if (!enter(reader, JSON_ARRAY)) return false;
    while (json_element(reader->json)) {
        out->members = arena_grow(arena, out->members, out->count, &capacity, sizeof *out->members);
        texts = arena_grow(arena, texts, out->count, &text_capacity, sizeof *texts);
        if (!read_member(reader, out->type, &texts[out->count], &out->members[out->count])) return false;
        out->count++;
    }
    if (!out->count)
        note_empty_set(reader, out->type);
    else if (!reader->fault.len && !set_sort(out->type, out->members, out->count))
        note_repeated(reader, out->type, texts, out->count);
    return true;
}

/* ---- lists and maps ---- */

static bool read_list(struct value_reader *reader, unsigned depth, struct value *out)
{
    uint32_t capacity = 0;
    out->count = 0;
    out->elements = NULL;
    if (!enter(reader, JSON_ARRAY)) return false;
    while (json_element(reader->json)) {
        out->elements = arena_grow(reader->call->arena, out->elements, out->count, &capacity,
                                   sizeof *out->elements);
        if (!read_value(reader, depth + 1, &out->elements[out->count])) return false;
        out->count++;
    }
    return true;
}

static bool read_map(struct value_reader *reader, unsigned depth, struct map *out)
{
    struct arena *arena = reader->call->arena;
    uint32_t capacity = 0;
    struct slice name;
    *out = (struct map){0};
    if (!enter(reader, JSON_OBJECT)) return false;
    while (json_member(reader->json, &name)) {
        out->attributes = arena_grow(arena, out->attributes, out->count, &capacity, sizeof *out->attributes);
        out->attributes[out->count].name = name;
        if (!read_value(reader, depth + 1, &out->attributes[out->count].value)) return false;
        out->count++;
    }
    out->count = decode_drop_repeated(arena, out->attributes, out->count, sizeof *out->attributes);
    ensure(map_sort(out, &name));
    return true;
}

/* ---- one value ---- */

static bool read_content(struct value_reader *reader, unsigned depth, struct value *out)
{
    struct slice text;
    switch (out->type) {
    case VALUE_S: return decode_string(reader->call, reader->json, &out->bytes);
    case VALUE_N: return read_number(reader, &out->bytes);
    case VALUE_B: return read_base64(reader, &text, &out->bytes);
    case VALUE_BOOL:
    case VALUE_NULL: return read_bool(reader, out);
    case VALUE_L: return read_list(reader, depth, out);
    case VALUE_M: return read_map(reader, depth, &out->map);
    default: return read_set(reader, out);
    }
}

/* The object's members: exactly one should name a type; those that name none are skipped. Strings and numbers, as most
 * values are, are read at once. */
static bool read_types(struct value_reader *reader, unsigned depth, struct value *out)
{
    struct slice name, text;
    enum value_type type;
    unsigned seen = 0;
    char tag;
    if (json_tagged_string(reader->json, "SN", &tag, &text)) {
        *out = (struct value){.type = tag == 'S' ? VALUE_S : VALUE_N};
        out->bytes = tag == 'S' ? text : canonical(reader, text);
        return true;
    }
    json_enter(reader->json);
    while (json_member(reader->json, &name)) {
        if (!value_type_from_name(name, &type) || json_peek(reader->json) == JSON_NULL) {
            json_skip(reader->json);
            continue;
        }
        *out = (struct value){.type = type};
        seen |= 1u << type;
        if (!read_content(reader, depth, out)) return false;
    }
    if (!seen)
        note(reader, value_empty_fault);
    else if (seen & (seen - 1))
        note(reader,
             SLICE("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
                   "supported datatypes"));
    return true;
}

static bool refuse_value(struct value_reader *reader, bool is_element, enum json_kind found)
{
    if (found == JSON_ARRAY)
        return decode_refuse(
            reader->call,
            "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue");
    return decode_refuse(reader->call, "%s",
                         is_element ? "Unexpected value type in payload" : "Unexpected field type");
}

/* A value inside a list or map. */
static bool read_value(struct value_reader *reader, unsigned depth, struct value *out)
{
    enum json_kind found = json_peek(reader->json);
    *out = (struct value){.type = VALUE_NULL, .truth = true};
    if (depth >= LIMIT_NESTING) {
        note(reader,
             SLICE("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
                   "beyond supported limit"));
        json_skip(reader->json);
        return true;
    }
    if (found == JSON_NULL) {
        note(reader, value_empty_fault);
        json_skip(reader->json);
        return true;
    }
    if (found != JSON_OBJECT) return refuse_value(reader, true, found);
    return read_types(reader, depth, out);
}

bool value_decode(struct api_call *call, struct json_reader *json, bool is_element, struct node *out)
{
    struct value_reader reader = {.call = call, .json = json};
    enum json_kind found = json_peek(json);
    if (found != JSON_OBJECT) return refuse_value(&reader, is_element, found);
    out->value = (struct value){.type = VALUE_NULL, .truth = true};
    if (!read_types(&reader, 0, &out->value)) return false;
    out->fault = reader.fault;
    return true;
}
