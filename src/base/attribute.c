/* Plain JSON and DynamoDB's JSON, both as text: attributes found, values turned from one form into the other.
 */
#include "base/attribute.h"

#include "base/fail.h"
#include "base/limits.h"

#define NAME_ROOM 32 /* of an attribute of the patterns' own items */

/* ---- numbers ---- */

static const char *number_fault(struct slice number)
{
    struct raw_digits digits;
    raw_digits_read(number, &digits);
    if (digits.too_many) return "a number has more than 38 significant digits";
    int64_t magnitude = digits.exponent + (int64_t)digits.count - 1;
    if (digits.count && magnitude > LIMIT_NUMBER_EXPONENT_MAX) return "a number is too large";
    if (digits.count && magnitude < LIMIT_NUMBER_EXPONENT_MIN) return "a number is too close to zero";
    return NULL;
}

/* As the service writes it; what would be longer than its digits can be, with an exponent. */
static void put_plain(struct buf *out, const struct raw_digits *digits)
{
    int64_t count = digits->count, exponent = digits->exponent, point = count + exponent;
    if (digits->negative) buf_byte(out, '-');
    if (point > LIMIT_NUMBER_DIGITS || exponent < -LIMIT_NUMBER_DIGITS) {
        buf_printf(out, "%.*se%lld", (int)count, digits->digits, (long long)exponent);
        return;
    }
    if (point <= 0) buf_text(out, "0.");
    for (int64_t i = point; i < 0; i++) buf_byte(out, '0');
    for (int64_t i = 0; i < count; i++) {
        if (i && i == point) buf_byte(out, '.');
        buf_byte(out, (unsigned char)digits->digits[i]);
    }
    for (int64_t i = 0; i < exponent; i++) buf_byte(out, '0');
}

bool number_plain(struct arena *arena, struct slice number, struct slice *out)
{
    struct raw_digits digits;
    struct buf text = {0};
    if (raw_kind(number) != JSON_NUMBER || !raw_is_json(arena, number) || number_fault(number)) return false;
    raw_digits_read(number, &digits);
    if (digits.count)
        put_plain(&text, &digits);
    else
        buf_byte(&text, '0');
    *out = arena_take(arena, &text);
    return true;
}

/* ---- items ---- */

struct slice item_attribute(struct arena *arena, struct slice item, const char *name)
{
    return raw_member(arena, item, name);
}

bool item_has(struct arena *arena, struct slice item, const char *name)
{
    return item_attribute(arena, item, name).data != NULL;
}

bool attribute_open(struct arena *arena, struct slice attribute, struct slice *type, struct slice *content)
{
    struct raw_look look;
    raw_look_begin(&look, arena, attribute);
    return look.is_object && raw_look_next(&look, type, content);
}

/* As every service writes it, {"S":"..."} or {"N":"..."} without a space or an escape: most are. */
static bool attribute_plain(struct slice attribute, struct slice *text)
{
    const char *data = attribute.data;
    if (attribute.len < sizeof "{\"S\":\"\"}" - 1 || memcmp(data, "{\"", 2) != 0 ||
        memcmp(data + 3, "\":\"", 3) != 0)
        return false;
    if (data[2] != 'S' && data[2] != 'N') return false;
    const char *at = data + 6, *end = data + attribute.len - 2;
    while (at < end && *at != '"' && *at != '\\') at++;
    if (at != end || end[0] != '"' || end[1] != '}') return false;
    *text = (struct slice){data + 6, (size_t)(end - data - 6)};
    return true;
}

struct slice attribute_text(struct arena *arena, struct slice attribute)
{
    struct slice type, content;
    if (attribute_plain(attribute, &content)) return content;
    if (!attribute_open(arena, attribute, &type, &content)) return SLICE_NONE;
    if (!slice_equal(type, SLICE("S")) && !slice_equal(type, SLICE("N"))) return SLICE_NONE;
    return raw_text(arena, content);
}

int64_t attribute_int(struct arena *arena, struct slice attribute, int64_t otherwise)
{
    int64_t value;
    return raw_int(attribute_text(arena, attribute), &value) ? value : otherwise;
}

struct slice item_text(struct arena *arena, struct slice item, const char *name)
{
    return attribute_text(arena, item_attribute(arena, item, name));
}

int64_t item_int(struct arena *arena, struct slice item, const char *name, int64_t otherwise)
{
    return attribute_int(arena, item_attribute(arena, item, name), otherwise);
}

bool item_says(struct arena *arena, struct slice item, const char *name, const char *text)
{
    return slice_equal(item_text(arena, item, name), slice_of(text));
}

struct slice item_content(struct arena *arena, struct slice item, const char *name)
{
    return attribute_content(arena, item_attribute(arena, item, name));
}

struct slice attribute_content(struct arena *arena, struct slice attribute)
{
    struct slice type, content;
    return attribute_open(arena, attribute, &type, &content) ? content : SLICE_NONE;
}

/* ---- from one form into the other ---- */

static void plain_put_list(struct buf *out, struct arena *arena, struct slice list)
{
    struct raw_look look;
    struct slice element;
    bool first = true;
    raw_look_begin(&look, arena, list);
    buf_byte(out, '[');
    while (raw_look_next(&look, NULL, &element)) {
        if (!first) buf_byte(out, ',');
        first = false;
        plain_put_attribute(out, arena, element);
    }
    buf_byte(out, ']');
}

/* ["1","2"] -> [1,2] */
static void plain_put_numbers(struct buf *out, struct arena *arena, struct slice set)
{
    struct raw_look look;
    struct slice element;
    bool first = true;
    raw_look_begin(&look, arena, set);
    buf_byte(out, '[');
    while (raw_look_next(&look, NULL, &element)) {
        if (!first) buf_byte(out, ',');
        first = false;
        buf_slice(out, raw_text(arena, element));
    }
    buf_byte(out, ']');
}

void plain_put_item(struct buf *out, struct arena *arena, struct slice item)
{
    struct raw_look look;
    struct slice name, value;
    bool first = true;
    raw_look_begin(&look, arena, item);
    buf_byte(out, '{');
    while (raw_look_next(&look, &name, &value)) {
        if (!first) buf_byte(out, ',');
        first = false;
        json_put_string(out, name);
        buf_byte(out, ':');
        plain_put_attribute(out, arena, value);
    }
    buf_byte(out, '}');
}

/* The next of several words; false behind the last. */
static bool next_name(const char **names, char *name, size_t room)
{
    size_t len = strcspn(*names, " ");
    ensure(len < room);
    memcpy(name, *names, len);
    name[len] = '\0';
    *names += len + ((*names)[len] == ' ');
    return len > 0;
}

void plain_put_members(struct buf *out, struct arena *arena, struct slice item, const char *names)
{
    char name[NAME_ROOM];
    while (next_name(&names, name, sizeof name)) {
        struct slice attribute = item_attribute(arena, item, name);
        if (!attribute.data) continue;
        buf_printf(out, ",\"%s\":", name);
        plain_put_attribute(out, arena, attribute);
    }
}

struct slice item_members(struct arena *arena, struct slice item, const char *names)
{
    char name[NAME_ROOM];
    struct buf out = {0};
    while (next_name(&names, name, sizeof name)) {
        struct slice value = item_attribute(arena, item, name);
        if (value.data) buf_printf(&out, "%s\"%s\":", out.len ? "," : "", name);
        buf_slice(&out, value);
    }
    return arena_take(arena, &out);
}

void plain_put_attribute(struct buf *out, struct arena *arena, struct slice attribute)
{
    struct slice type, content;
    if (!attribute_open(arena, attribute, &type, &content) || slice_equal(type, SLICE("NULL")))
        buf_text(out, "null");
    else if (slice_equal(type, SLICE("N")))
        buf_slice(out, raw_text(arena, content));
    else if (slice_equal(type, SLICE("L")))
        plain_put_list(out, arena, content);
    else if (slice_equal(type, SLICE("M")))
        plain_put_item(out, arena, content);
    else if (slice_equal(type, SLICE("NS")))
        plain_put_numbers(out, arena, content);
    else
        buf_slice(out, content); /* S, BOOL, B, SS, BS stand as they would in plain JSON */
}

/* ---- equality ---- */

#define SET_COMPARED 2000 /* elements, each with each; larger sets must be written in the same order */

static bool maps_equal(struct arena *arena, struct slice a, struct slice b)
{
    struct slice name, value;
    raw_each_member (arena, a, &name, &value) {
        struct slice other = raw_member(arena, b, arena_printf(arena, "%.*s", SLICE_ARG(name)).data);
        if (!other.data || !attribute_equal(arena, value, other)) return false;
    }
    return true;
}

static bool lists_equal(struct arena *arena, struct slice a, struct slice b)
{
    struct raw_look look, other_look;
    struct slice value, other;
    raw_look_begin(&look, arena, a);
    raw_look_begin(&other_look, arena, b);
    while (raw_look_next(&look, NULL, &value) && raw_look_next(&other_look, NULL, &other))
        if (!attribute_equal(arena, value, other)) return false;
    return true;
}

static bool sets_equal(struct arena *arena, struct slice a, struct slice b)
{
    struct raw_look other_look;
    struct slice value, other;
    raw_each (arena, a, &value) {
        bool found = false;
        raw_look_begin(&other_look, arena, b);
        while (!found && raw_look_next(&other_look, NULL, &other))
            found = slice_equal(raw_text(arena, value), raw_text(arena, other));
        if (!found) return false;
    }
    return true;
}

bool attribute_equal(struct arena *arena, struct slice a, struct slice b)
{
    struct slice type, other_type, content, other;
    if (slice_equal(a, b)) return true;
    if (!attribute_open(arena, a, &type, &content) || !attribute_open(arena, b, &other_type, &other) ||
        !slice_equal(type, other_type))
        return false;
    if (type.len == 1 && type.data[0] != 'M' && type.data[0] != 'L')
        return slice_equal(raw_text(arena, content), raw_text(arena, other));
    if (type.len > 2) return slice_equal(content, other);
    size_t count = raw_count(arena, content);
    if (raw_count(arena, other) != count) return false;
    if (type.len == 2) return count <= SET_COMPARED && sets_equal(arena, content, other);
    return type.data[0] == 'M' ? maps_equal(arena, content, other) : lists_equal(arena, content, other);
}

/* ---- from plain JSON ---- */

static const char *attribute_put_next(struct buf *out, struct json_reader *reader, unsigned depth);

/* A name without an escape is written as it came, quotes and all. */
static void put_name(struct buf *out, const struct json_reader *reader, struct slice name)
{
    if (name.data > reader->start && name.data < reader->end)
        buf_put(out, name.data - 1, name.len + 2);
    else
        json_put_string(out, name);
}

static const char *attribute_put_map(struct buf *out, struct json_reader *reader, unsigned depth)
{
    struct slice name;
    const char *fault = NULL;
    bool first = true;
    buf_text(out, "{\"M\":{");
    json_enter(reader);
    while (!fault && json_member(reader, &name)) {
        if (!first) buf_byte(out, ',');
        first = false;
        put_name(out, reader, name);
        buf_byte(out, ':');
        fault = attribute_put_next(out, reader, depth);
    }
    buf_text(out, "}}");
    return fault;
}

static const char *attribute_put_list(struct buf *out, struct json_reader *reader, unsigned depth)
{
    const char *fault = NULL;
    bool first = true;
    buf_text(out, "{\"L\":[");
    json_enter(reader);
    while (!fault && json_element(reader)) {
        if (!first) buf_byte(out, ',');
        first = false;
        fault = attribute_put_next(out, reader, depth);
    }
    buf_text(out, "]}");
    return fault;
}

static struct slice attribute_put_scalar(struct buf *out, const char *type, struct json_reader *reader,
                                         const char *end)
{
    struct slice text;
    raw_take(reader, &text);
    buf_slice(out, slice_of(type));
    buf_slice(out, text);
    buf_slice(out, slice_of(end));
    return text;
}

/* The value that the reader comes to, all of which is read once. depth: of the lists and maps around it, and 1; 0: it
 * has been checked. */
static const char *attribute_put_next(struct buf *out, struct json_reader *reader, unsigned depth)
{
    enum json_kind kind = json_peek(reader);
    unsigned below = depth ? depth + 1 : 0;
    struct slice number;
    if ((kind == JSON_OBJECT || kind == JSON_ARRAY) && depth >= LIMIT_NESTING)
        return "lists and objects are nested too deep";
    switch (kind) {
    case JSON_STRING: attribute_put_scalar(out, "{\"S\":", reader, "}"); return NULL;
    case JSON_NUMBER:
        number = attribute_put_scalar(out, "{\"N\":\"", reader, "\"}");
        return depth ? number_fault(number) : NULL;
    case JSON_TRUE:
    case JSON_FALSE: attribute_put_scalar(out, "{\"BOOL\":", reader, "}"); return NULL;
    case JSON_OBJECT: return attribute_put_map(out, reader, below);
    case JSON_ARRAY: return attribute_put_list(out, reader, below);
    default:
        json_skip(reader);
        buf_text(out, "{\"NULL\":true}");
        return NULL;
    }
}

void attribute_put_plain(struct buf *out, struct arena *arena, struct slice value)
{
    struct json_reader reader;
    json_begin(&reader, value.data ? value : SLICE(""), arena);
    attribute_put_next(out, &reader, 0);
}

const char *attribute_put_checked(struct buf *out, struct arena *arena, struct slice value, unsigned levels)
{
    struct json_reader reader;
    json_begin(&reader, value, arena);
    return attribute_put_next(out, &reader, levels + 1);
}

static const char *fault_next(struct json_reader *reader, unsigned depth)
{
    struct slice text;
    const char *fault = NULL;
    enum json_kind kind = json_peek(reader);
    if (kind == JSON_NUMBER) return json_number(reader, &text) ? number_fault(text) : NULL;
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
        json_skip(reader);
        return NULL;
    }
    if (depth >= LIMIT_NESTING) return "lists and objects are nested more than 31 deep";
    json_enter(reader);
    while (!fault && (kind == JSON_OBJECT ? json_member(reader, &text) : json_element(reader)))
        fault = fault_next(reader, depth + 1);
    return fault;
}

const char *plain_fault(struct arena *arena, struct slice value)
{
    struct json_reader reader;
    json_begin(&reader, value.data ? value : SLICE(""), arena);
    return fault_next(&reader, 1);
}

/* ---- sizes, by the service's rules: names and texts by their bytes, numbers by pairs of digits ---- */

static uint64_t number_bytes(struct slice number)
{
    struct raw_digits digits;
    raw_digits_read(number, &digits);
    if (!digits.count) return 1;
    int64_t low = digits.exponent, high = low + (int64_t)digits.count - 1;
    int64_t first = (low - (low % 2 != 0 && low < 0)) / 2, last = (high - (high % 2 != 0 && high < 0)) / 2;
    return 1 + (uint64_t)(last - first + 1) + digits.negative;
}

static uint64_t attribute_bytes(struct arena *arena, struct slice attribute);

static uint64_t elements_bytes(struct arena *arena, struct slice list)
{
    struct slice name = SLICE(""), element; /* elements of arrays have no name */
    uint64_t bytes = 3;
    raw_each_member (arena, list, &name, &element) bytes += 1 + attribute_bytes(arena, element) + name.len;
    return bytes;
}

static uint64_t set_bytes(struct arena *arena, struct slice set, char type)
{
    struct slice element;
    uint64_t bytes = 0;
    raw_each (arena, set, &element) {
        struct slice text = raw_text(arena, element);
        bytes += type == 'N' ? number_bytes(text) : type == 'B' ? text.len / 4 * 3 : text.len;
    }
    return bytes;
}

static uint64_t attribute_bytes(struct arena *arena, struct slice attribute)
{
    struct slice type, content;
    if (!attribute_open(arena, attribute, &type, &content)) return 0;
    if (type.len == 2) return set_bytes(arena, content, type.data[0]);
    switch (type.data[0]) {
    case 'S': return raw_text(arena, content).len;
    case 'N': return type.len == 1 ? number_bytes(raw_text(arena, content)) : 1;
    case 'B': return type.len == 1 ? raw_text(arena, content).len / 4 * 3 : 1;
    default: return elements_bytes(arena, content);
    }
}

uint64_t item_bytes(struct arena *arena, struct slice item)
{
    struct slice name, value;
    uint64_t bytes = 0;
    raw_each_member (arena, item, &name, &value) bytes += name.len + attribute_bytes(arena, value);
    return bytes;
}
