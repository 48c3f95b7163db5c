/* Builds and prints the values of the tests. */
#include "unit/expr_world.h"

#include <stdlib.h>

#include "base/json.h"

#define MOST_MEMBERS 300

static const char usual_names[] = "{\"#a\":\"a\",\"#b\":\"b\",\"#dotted\":\"x.y\",\"#s\":\"s\"}";
static const char usual_values[] =
    "{\":s\":{\"S\":\"abc\"},\":n\":{\"N\":\"5\"},\":b\":{\"B\":\"YWJj\"},\":t\":{\"BOOL\":true},"
    "\":z\":{\"NULL\":true},\":l\":{\"L\":[{\"N\":\"1\"}]},\":m\":{\"M\":{\"x\":{\"N\":\"1\"}}},"
    "\":ss\":{\"SS\":[\"a\",\"b\"]},\":ns\":{\"NS\":[\"1\",\"2\"]},\":bs\":{\"BS\":[\"YQ==\"]}}";
static const char usual_item[] =
    "{\"s\":{\"S\":\"abc\"},\"wide\":{\"S\":\"\xc3\xa9\xf0\x9f\x98\x80z\"},\"e\":{\"S\":\"\"},\"n\":{"
    "\"N\":\"5\"},"
    "\"b\":{\"B\":\"YWJj\"},\"t\":{\"BOOL\":true},\"z\":{\"NULL\":true},"
    "\"l\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"},{\"L\":[{\"N\":\"2\"}]},{\"SS\":[\"p\",\"q\"]}]},"
    "\"m\":{\"M\":{\"x\":{\"N\":\"1\"},\"y\":{\"M\":{\"z\":{\"S\":\"deep\"}}}}},"
    "\"ss\":{\"SS\":[\"a\",\"b\",\"c\"]},\"ns\":{\"NS\":[\"1\",\"2\",\"10\"]},\"bs\":{\"BS\":[\"YQ==\",\"YWI="
    "\"]}}";

static void must(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "the test itself is wrong: %s\n", what);
    abort();
}

static struct slice read_text(struct json_reader *reader)
{
    struct slice text = SLICE_NONE;
    must(json_peek(reader) == JSON_STRING && json_string(reader, &text), "a string was expected");
    return text;
}

static struct slice read_scalar(struct json_reader *reader, enum value_type type)
{
    struct slice text = read_text(reader), out = text;
    if (type == VALUE_N) must(number_canonical(reader->arena, text, &out) == NUMBER_OK, "a number");
    if (type == VALUE_B) must(base64_decode(reader->arena, text, &out) == BASE64_OK, "base64");
    return out;
}

static struct map read_map(struct json_reader *reader);

static struct value read_value(struct json_reader *reader);

static void read_list(struct json_reader *reader, struct value *value)
{
    value->elements = arena_array(reader->arena, struct value, MOST_MEMBERS);
    must(json_peek(reader) == JSON_ARRAY && json_enter(reader), "a list");
    while (json_element(reader)) value->elements[value->count++] = read_value(reader);
}

static void read_set(struct json_reader *reader, struct value *value)
{
    static const enum value_type member_types[] = {
        [VALUE_SS] = VALUE_S, [VALUE_NS] = VALUE_N, [VALUE_BS] = VALUE_B};
    value->members = arena_array(reader->arena, struct slice, MOST_MEMBERS);
    must(json_peek(reader) == JSON_ARRAY && json_enter(reader), "a set");
    while (json_element(reader))
        value->members[value->count++] = read_scalar(reader, member_types[value->type]);
    must(set_sort(value->type, value->members, value->count), "distinct members");
}

static struct value read_value(struct json_reader *reader)
{
    struct value value = {0};
    struct slice type = SLICE_NONE;
    must(json_peek(reader) == JSON_OBJECT && json_enter(reader) && json_member(reader, &type), "a value");
    must(value_type_from_name(type, &value.type), "a type");
    switch (value.type) {
    case VALUE_S:
    case VALUE_N:
    case VALUE_B: value.bytes = read_scalar(reader, value.type); break;
    case VALUE_BOOL: value.truth = json_peek(reader) == JSON_TRUE; /* fall through */
    case VALUE_NULL: must(json_skip(reader), "a truth value"); break;
    case VALUE_L: read_list(reader, &value); break;
    case VALUE_M: value.map = read_map(reader); break;
    default: read_set(reader, &value); break;
    }
    must(!json_member(reader, &type) && !json_failed(reader), "one type only");
    return value;
}

static struct map read_map(struct json_reader *reader)
{
    struct map map = {arena_array(reader->arena, struct attribute, MOST_MEMBERS), 0};
    struct slice name, twice;
    must(json_peek(reader) == JSON_OBJECT && json_enter(reader), "a map");
    while (json_member(reader, &name)) {
        struct value value = read_value(reader);
        map.attributes[map.count++] = (struct attribute){name, value};
    }
    must(map_sort(&map, &twice), "distinct names");
    return map;
}

static void read_names(struct world *world, const char *text)
{
    struct json_reader reader;
    struct slice placeholder;
    json_begin(&reader, slice_of(text), &world->arena);
    world->params.names = arena_array(&world->arena, struct expr_name, MOST_MEMBERS);
    must(json_peek(&reader) == JSON_OBJECT && json_enter(&reader), "names");
    while (json_member(&reader, &placeholder))
        world->params.names[world->params.name_count++] = (struct expr_name){placeholder, read_text(&reader),
                                                                             false};
    world->params.has_names = true;
}

static void read_values(struct world *world, const char *text)
{
    struct json_reader reader;
    struct slice placeholder;
    json_begin(&reader, slice_of(text), &world->arena);
    world->params.values = arena_array(&world->arena, struct expr_value, MOST_MEMBERS);
    must(json_peek(&reader) == JSON_OBJECT && json_enter(&reader), "values");
    while (json_member(&reader, &placeholder))
        world->params.values[world->params.value_count++] = (struct expr_value){placeholder,
                                                                                read_value(&reader), false};
    world->params.has_values = true;
}

void world_open(struct world *world, const char *names, const char *values, const char *item)
{
    *world = (struct world){0};
    if (names) read_names(world, names);
    if (values) read_values(world, values);
    if (!item) return;
    struct json_reader reader;
    json_begin(&reader, slice_of(item), &world->arena);
    world->item = read_map(&reader);
}

void world_open_usual(struct world *world)
{
    world_open(world, usual_names, usual_values, usual_item);
}

void world_close(struct world *world)
{
    arena_free(&world->arena);
}

/* ---- from text to result ---- */

struct slice fault_of(struct world *world, enum expr_kind kind, const char *text)
{
    struct projection projection;
    bool done;
    world->fault = SLICE_NONE;
    if (kind == EXPR_PROJECTION)
        done = projection_parse(&world->arena, slice_of(text), &world->params, &projection, &world->fault);
    else if (kind == EXPR_UPDATE)
        done = update_parse(&world->arena, slice_of(text), &world->params, &world->fault) != NULL;
    else
        done = condition_parse(&world->arena, kind, slice_of(text), &world->params, &world->fault) != NULL;
    must(done == (world->fault.len == 0), "a fault comes with a refusal, and only with one");
    return world->fault;
}

const char *truth_of(struct world *world, const char *text)
{
    struct condition *condition = condition_parse(&world->arena, EXPR_FILTER, slice_of(text), &world->params,
                                                  &world->fault);
    if (condition) return condition_holds(condition, &world->item) ? "true" : "false";
    return arena_printf(&world->arena, "%.*s%c", SLICE_ARG(world->fault), '\0').data;
}

struct slice projection_of(struct world *world, const char *text)
{
    struct projection projection;
    if (!projection_parse(&world->arena, slice_of(text), &world->params, &projection, &world->fault))
        return world->fault;
    struct map map = projection_apply(&world->arena, &projection, &world->item);
    return item_text(world, &map);
}

struct slice update_of(struct world *world, const char *text)
{
    struct map updated, changed = {0};
    struct update *update = update_parse(&world->arena, slice_of(text), &world->params, &world->fault);
    if (!update || !update_apply(&world->arena, update, &world->item, &updated, &world->fault))
        return world->fault;
    changed.attributes = arena_array(&world->arena, struct attribute, updated.count);
    for (uint32_t i = 0; i < updated.count; i++) {
        const struct value *old = map_find(&world->item, updated.attributes[i].name);
        if (!old || old->type != updated.attributes[i].value.type ||
            !value_equal(old, &updated.attributes[i].value))
            changed.attributes[changed.count++] = updated.attributes[i];
    }
    return item_text(world, &changed);
}

/* ---- printing: short, for tests compare it as text ---- */

static void put_map(struct buf *out, const struct map *map);

static void put_members(struct buf *out, const struct value *value)
{
    buf_byte(out, '<');
    for (uint32_t i = 0; i < value->count; i++) {
        if (i) buf_byte(out, ' ');
        buf_slice(out, value->members[i]);
    }
    buf_byte(out, '>');
}

static void put_value(struct buf *out, const struct value *value)
{
    switch (value->type) {
    case VALUE_S: json_put_string(out, value->bytes); break;
    case VALUE_N: buf_slice(out, value->bytes); break;
    case VALUE_B: buf_printf(out, "b'%.*s'", SLICE_ARG(value->bytes)); break;
    case VALUE_BOOL: buf_printf(out, "%s", value->truth ? "true" : "false"); break;
    case VALUE_NULL: buf_text(out, "null"); break;
    case VALUE_L:
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_byte(out, ' ');
            put_value(out, &value->elements[i]);
        }
        buf_byte(out, ']');
        break;
    case VALUE_M: put_map(out, &value->map); break;
    default: put_members(out, value); break;
    }
}

static void put_map(struct buf *out, const struct map *map)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < map->count; i++) {
        if (i) buf_byte(out, ' ');
        buf_slice(out, map->attributes[i].name);
        buf_byte(out, ':');
        put_value(out, &map->attributes[i].value);
    }
    buf_byte(out, '}');
}

struct slice item_text(struct world *world, const struct map *item)
{
    struct buf out = {0};
    put_map(&out, item);
    struct slice copy = arena_copy(&world->arena, buf_view(&out));
    buf_free(&out);
    return copy;
}
