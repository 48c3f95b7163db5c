/* The keys of a table and of its indexes share one list of attributes with their types, which the request
 * wants first. */
#include "cli/table_spec.h"

#include "base/node.h"

#define KEY_PARTS_MAX  8 /* of an index, all together */
#define ATTRIBUTES_MAX (2 + 2 * KEY_PARTS_MAX * SPEC_INDEXES_MAX)

struct attribute {
    struct slice name;
    char type;
};

struct spec_state {
    struct arena *arena;
    struct attribute attributes[ATTRIBUTES_MAX];
    size_t count;
    const char *fault;
};

static bool refuse(struct spec_state *state, struct slice text, const char *wanted)
{
    state->fault = arena_printf(state->arena, "'%.*s' should be %s", SLICE_ARG(text), wanted).data;
    return false;
}

/* Splits at the first or last such byte; false when there is none. */
static bool split(struct slice text, char at, bool at_last, struct slice *left, struct slice *right)
{
    const char *found = !text.len ? NULL
                        : at_last ? memrchr(text.data, at, text.len)
                                  : memchr(text.data, at, text.len);
    if (!found) return false;
    *left = (struct slice){text.data, (size_t)(found - text.data)};
    *right = slice_from(text, left->len + 1);
    return true;
}

static bool add_attribute(struct spec_state *state, struct slice name, char type)
{
    for (size_t i = 0; i < state->count; i++) {
        if (!slice_equal(state->attributes[i].name, name)) continue;
        if (state->attributes[i].type == type) return true;
        return refuse(state, name, "of one type wherever it is a key");
    }
    state->attributes[state->count++] = (struct attribute){name, type};
    return true;
}

/* "Artist:S" as a key: into the list of attributes, and into the schema. */
static bool put_key(struct buf *out, struct spec_state *state, struct slice text, const char *kind)
{
    struct slice name, type;
    if (!split(text, ':', true, &name, &type) || !name.len || type.len != 1 ||
        !strchr("SNBsnb", type.data[0]))
        return refuse(state, text, "a key and its type, S, N or B: Artist:S");
    if (!add_attribute(state, name, (char)(type.data[0] & ~0x20))) return false;
    put_comma(out);
    buf_byte(out, '{');
    put_string_member(out, "AttributeName", name);
    put_string_member(out, "KeyType", slice_of(kind));
    buf_byte(out, '}');
    return true;
}

/* "Land:S+Town:S": the attributes of one part of an index's key. */
static bool put_key_parts(struct buf *out, struct spec_state *state, struct slice text, const char *kind)
{
    struct slice first, rest = text;
    for (unsigned count = 1; split(rest, '+', false, &first, &rest); count++) {
        if (count == KEY_PARTS_MAX / 2) return refuse(state, text, "at most four attributes");
        if (!put_key(out, state, first, kind)) return false;
    }
    return put_key(out, state, rest, kind);
}

static void put_projection(struct buf *out, struct slice text)
{
    struct slice name;
    put_name(out, "Projection");
    if (!text.len || slice_equal_ignoring_case(text, SLICE("all"))) {
        buf_text(out, "{\"ProjectionType\":\"ALL\"}");
        return;
    }
    if (slice_equal_ignoring_case(text, SLICE("keys"))) {
        buf_text(out, "{\"ProjectionType\":\"KEYS_ONLY\"}");
        return;
    }
    buf_text(out, "{\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":[");
    while (split(text, ',', false, &name, &text)) {
        put_comma(out);
        json_put_string(out, name);
    }
    put_comma(out);
    json_put_string(out, text);
    buf_text(out, "]}");
}

/* An index's keys: those of a local one begin with the table's hash key. */
static bool put_index(struct buf *out, struct spec_state *state, struct slice text, const char *table_hash)
{
    struct slice name, keys, first, second = SLICE_NONE, projection = SLICE_NONE;
    struct slice whole = text;
    split(text, '=', false, &text, &projection);
    if (!split(text, ':', false, &name, &keys) || !name.len)
        return refuse(state, whole,
                      table_hash ? "NAME:RANGE:TYPE" : "NAME:HASH:TYPE or NAME:HASH:TYPE,RANGE:TYPE");
    first = keys;
    split(keys, ',', false, &first, &second);
    if (table_hash && second.len)
        return refuse(state, whole, "NAME:RANGE:TYPE: a local index has the table's hash key");
    put_comma(out);
    buf_byte(out, '{');
    put_string_member(out, "IndexName", name);
    buf_text(out, ",\"KeySchema\":[");
    if (table_hash && !put_key(out, state, slice_of(table_hash), "HASH")) return false;
    if (!put_key_parts(out, state, first, table_hash ? "RANGE" : "HASH")) return false;
    if (second.len && !put_key_parts(out, state, second, "RANGE")) return false;
    buf_byte(out, ']');
    put_projection(out, projection);
    buf_byte(out, '}');
    return true;
}

static bool put_indexes(struct buf *out, struct spec_state *state, const char *member,
                        const char *const *texts, const char *table_hash)
{
    if (!texts[0]) return true;
    put_name(out, member);
    buf_byte(out, '[');
    for (size_t i = 0; texts[i]; i++)
        if (!put_index(out, state, slice_of(texts[i]), table_hash)) return false;
    buf_byte(out, ']');
    return true;
}

const char *stream_view(const char *text)
{
    static const char *const views[][2] = {{"NEW_AND_OLD_IMAGES", "new-and-old"},
                                           {"NEW_IMAGE", "new"},
                                           {"OLD_IMAGE", "old"},
                                           {"KEYS_ONLY", "keys"}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        for (size_t spelling = 0; spelling < 2; spelling++)
            if (slice_equal_ignoring_case(slice_of(text), slice_of(views[i][spelling]))) return views[i][0];
    return NULL;
}

static bool put_stream(struct buf *out, struct spec_state *state, const char *text)
{
    if (!text) return true;
    const char *view = stream_view(text);
    if (!view) return refuse(state, slice_of(text), "new-and-old, new, old or keys");
    put_name(out, "StreamSpecification");
    buf_printf(out, "{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}", view);
    return true;
}

static void put_attributes(struct buf *out, const struct spec_state *state)
{
    put_name(out, "AttributeDefinitions");
    buf_byte(out, '[');
    for (size_t i = 0; i < state->count; i++) {
        put_comma(out);
        buf_byte(out, '{');
        put_string_member(out, "AttributeName", state->attributes[i].name);
        buf_printf(out, ",\"AttributeType\":\"%c\"}", state->attributes[i].type);
    }
    buf_byte(out, ']');
}

static bool put_all(struct buf *out, struct spec_state *state, const struct table_spec *spec)
{
    put_string_member(out, "TableName", slice_of(spec->name));
    buf_text(out, ",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[");
    if (!put_key(out, state, slice_of(spec->hash), "HASH")) return false;
    if (spec->range && !put_key(out, state, slice_of(spec->range), "RANGE")) return false;
    buf_byte(out, ']');
    if (!put_indexes(out, state, "GlobalSecondaryIndexes", spec->global_indexes, NULL) ||
        !put_indexes(out, state, "LocalSecondaryIndexes", spec->local_indexes, spec->hash) ||
        !put_stream(out, state, spec->stream))
        return false;
    put_attributes(out, state);
    return true;
}

bool table_spec_put(struct buf *out, struct arena *arena, const struct table_spec *spec, const char **fault)
{
    struct spec_state state = {.arena = arena};
    buf_byte(out, '{');
    bool fine = put_all(out, &state, spec);
    buf_byte(out, '}');
    *fault = state.fault;
    return fine;
}
