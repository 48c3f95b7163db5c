/* The fields of a request, checked against its row before the first step: what a step reads is well-formed
 * and within its limits. Each fault has its sentence. */
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/flow.h"
#include "pattern/pattern.h"

#define NAME_BYTES  255
#define SHOWN_BYTES 80                     /* of what is not known, in a sentence */
#define JSON_BYTES  (6 * LIMIT_ITEM_BYTES) /* of a value: an item's worth of characters, all of them escaped */

/* Refuses the request; false. */
#define REFUSED(flow, ...) (flow_refuse(flow, __VA_ARGS__), false)

static bool fault(struct flow *flow, const struct field *field, const char *what)
{
    return REFUSED(flow, 400, "bad-request", "%s %s.", field->name, what);
}

static bool too_large(struct flow *flow, const struct field *field)
{
    return REFUSED(flow, 413, "too-large", "%s does not fit: an item of DynamoDB holds at most 400 KB.",
                   field->name);
}

static bool has_controls(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f) return true;
    return false;
}

static bool take_text(struct flow *flow, const struct field *field, struct slice text,
                      struct field_value *out)
{
    bool is_name = field->type == FIELD_NAME;
    int64_t most = field->max ? field->max : is_name ? NAME_BYTES : LIMIT_ITEM_BYTES;
    int64_t least = is_name && !field->min ? 1 : field->min;
    out->text = text;
    if ((int64_t)text.len < least) return fault(flow, field, "must not be empty");
    if ((int64_t)text.len > most)
        return REFUSED(flow, 400, "bad-request", "%s has %zu bytes, at most %lld are possible.", field->name,
                       text.len, (long long)most);
    if (is_name && has_controls(text)) return fault(flow, field, "must not hold control characters");
    return true;
}

static bool take_number(struct flow *flow, const struct field *field, int64_t number, struct field_value *out)
{
    out->number = number;
    if ((!field->min && !field->max) || (number >= field->min && number <= field->max)) return true;
    return REFUSED(flow, 400, "bad-request", "%s must be between %lld and %lld.", field->name,
                   (long long)field->min, (long long)field->max);
}

/* Digits with a sign at most, as people type them. */
static bool bare_int(struct slice text, int64_t *out)
{
    size_t start = text.len && text.data[0] == '-';
    for (size_t i = start; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    return text.len > start && raw_int(text, out);
}

static bool take_duration(struct flow *flow, const struct field *field, struct slice text,
                          struct field_value *out)
{
    struct arena *arena = flow->arena;
    int64_t ms;
    out->is_time = field->takes_time && moment_parse(text, &out->number);
    if (out->is_time) return true;
    if (!duration_parse(text, INT64_MAX, &ms) && !bare_int(text, &ms))
        return fault(
            flow, field,
            field->takes_time
                ? "must be a duration like \"30s\", \"5m\" or \"7d\", or a time like 2026-11-15T03:42:06Z"
                : "must be a duration like \"250ms\", \"30s\", \"5m\", \"1h\" or \"7d\"");
    out->number = ms;
    if (ms >= field->min && ms <= field->max) return true;
    struct slice least = duration_text(arena, field->min), most = duration_text(arena, field->max);
    return REFUSED(flow, 400, "bad-request", "%s must be between %.*s and %.*s.", field->name,
                   SLICE_ARG(least), SLICE_ARG(most));
}

static bool take_choice(struct flow *flow, const struct field *field, struct slice text,
                        struct field_value *out)
{
    struct slice rest = slice_of(field->words);
    out->text = text;
    for (out->number = 0; rest.len; out->number++)
        if (slice_equal(slice_cut(&rest, '|'), text)) return true;
    return REFUSED(flow, 400, "bad-request", "%s must be one of %s.", field->name, field->words);
}

/* A value that came as bare text: of the path, the query or a header. */
static bool take_bare(struct flow *flow, const struct field *field, struct slice text,
                      struct field_value *out)
{
    int64_t number;
    out->given = true;
    if (!utf8_valid(text)) return fault(flow, field, "must be text in UTF-8"); /* headers may be anything */
    switch (field->type) {
    case FIELD_INT:
        if (!bare_int(text, &number)) return fault(flow, field, "must be a whole number");
        return take_number(flow, field, number, out);
    case FIELD_DURATION: return take_duration(flow, field, text, out);
    case FIELD_CHOICE: return take_choice(flow, field, text, out);
    case FIELD_BOOL:
        out->number = !slice_equal(text, SLICE("false")) && !slice_equal(text, SLICE("0"));
        return true;
    default: return take_text(flow, field, text, out);
    }
}

/* The pattern that "POST /v1/counters/x" calls. */
static struct slice called_pattern(struct slice call)
{
    struct slice start = SLICE("/v1/");
    slice_cut(&call, ' ');
    if (!slice_starts(call, start)) return SLICE_NONE;
    call = slice_from(call, start.len);
    return slice_cut(&call, '/');
}

/* Whether the body has a member by which some pattern is told what else to start: then, each, function. */
static bool names_reaction(struct flow *flow, struct slice body)
{
    for (size_t i = 0; row_at(i); i++)
        for (uint32_t k = 0; k < row_at(i)->field_count; k++) {
            const struct field *field = &row_at(i)->fields[k];
            if (field->type == FIELD_THEN && raw_member(flow->arena, body, field->name).data) return true;
        }
    return false;
}

/* What a key of the role data may have done: a call of a pattern whose body names nothing further. The server makes
 * the call later, as itself, so it must not be able to become more: a history can restore items of any table. */
static bool is_for_data(struct flow *flow, const struct pattern_target *target)
{
    struct slice pattern = called_pattern(target->call);
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.data[i] == '{' || pattern.data[i] == '%') return false;
    if (!pattern.len || slice_equal(pattern, SLICE("history"))) return false;
    return !target->body.data ||
           (raw_kind(target->body) == JSON_OBJECT && !names_reaction(flow, target->body));
}

/* Whether what it names is there is not asked: it may come later. */
static bool take_then(struct flow *flow, const struct field *field, const struct field_value *value)
{
    struct pattern_target targets[PATTERN_TARGETS];
    unsigned count;
    enum json_kind kind = raw_kind(value->text);
    if (kind != JSON_STRING && kind != JSON_OBJECT && kind != JSON_ARRAY)
        return fault(flow, field, "must be a text, an object, or a list of these");
    struct slice then = kind == JSON_STRING ? raw_text(flow->arena, value->text) : value->text;
    const char *wrong = pattern_then_read(then, flow->arena, targets, &count);
    if (wrong) return fault(flow, field, wrong);
    for (unsigned i = 0; i < count; i++) {
        if (flow->request->role == ROLE_ADMIN || is_for_data(flow, &targets[i])) continue;
        return REFUSED(
            flow, 403, "access-denied",
            "This key has the role %s: its %s may name calls of patterns, but no functions, no URLs, "
            "no history and no calls that name others in their bodies.",
            rest_role_name(flow->request->role), field->name);
    }
    return true;
}

/* A value that came as JSON. */
static bool take_json(struct flow *flow, const struct field *field, struct slice value,
                      struct field_value *out)
{
    enum json_kind kind = raw_kind(value);
    int64_t number;
    const char *wrong;
    if (kind == JSON_NULL && field->type != FIELD_JSON) return true; /* as good as not given */
    out->given = true;
    out->text = value;
    switch (field->type) {
    case FIELD_INT:
        if (kind != JSON_NUMBER || !raw_int(value, &number))
            return fault(flow, field, "must be a whole number");
        return take_number(flow, field, number, out);
    case FIELD_DURATION: return take_duration(flow, field, raw_text(flow->arena, value), out);
    case FIELD_BOOL:
        out->number = kind == JSON_TRUE;
        return kind == JSON_TRUE || kind == JSON_FALSE || fault(flow, field, "must be true or false");
    case FIELD_THEN: return take_then(flow, field, out);
    case FIELD_LIST: return kind == JSON_ARRAY || fault(flow, field, "must be an array");
    case FIELD_JSON:
        if (value.len > JSON_BYTES) return too_large(flow, field);
        wrong = field->is_unchecked ? NULL : plain_fault(flow->arena, value);
        if (wrong) flow_refuse(flow, 400, "bad-request", "%s cannot be stored: %s.", field->name, wrong);
        return !wrong;
    default:
        if (kind != JSON_STRING && !(field->takes_number && kind == JSON_NUMBER))
            return fault(flow, field, "must be a string");
        value = raw_text(flow->arena, value);
        return field->type == FIELD_CHOICE ? take_choice(flow, field, value, out)
                                           : take_text(flow, field, value, out);
    }
}

/* ---- the body ---- */

static bool is_json(struct flow *flow, struct slice body)
{
    struct json_reader reader;
    json_begin(&reader, body, flow->arena);
    if (json_skip(&reader) && json_done(&reader)) return true;
    return REFUSED(flow, 400, "bad-json", "The body is not JSON: %s at byte %zu.",
                   reader.fault ? reader.fault : "something behind its end", json_offset(&reader));
}

static bool take_whole(struct flow *flow, const struct field *field, struct field_value *out)
{
    struct slice body = flow->request->body;
    if (field->type == FIELD_RAW) {
        out->given = true;
        out->text = body;
        if (field->max && (int64_t)body.len > field->max) return too_large(flow, field);
        return utf8_valid(body) || fault(flow, field, "must be text in UTF-8");
    }
    if (!body.len) return !field->required || fault(flow, field, "is missing: the body is empty");
    return is_json(flow, body) && take_json(flow, field, body, out);
}

static int field_of_member(const struct flow_row *row, struct slice name)
{
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].place == IN_BODY && slice_equal(slice_of(row->fields[i].name), name))
            return (int)i;
    return -1;
}

/* What GET answers can be sent back as it is: it names the thing, as the path does, and shows its state. */
static bool repeats_reply(const struct flow *flow, struct slice name, struct slice value)
{
    const struct flow_row *row = flow->row;
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (!slice_equal(slice_of(row->fields[i].name), name)) continue;
        if (row->fields[i].place == IN_REPLY) return true;
        if (row->fields[i].place == IN_PATH)
            return slice_equal(raw_text(flow->arena, value), flow->fields[i].text);
    }
    return false;
}

/* Walks over the body once and leaves each member's text in its field; false: it is no JSON. */
static bool members_find(struct flow *flow, struct slice *unknown)
{
    struct json_reader reader;
    struct slice name, value;
    json_begin(&reader, flow->request->body, flow->arena);
    json_enter(&reader);
    while (json_member(&reader, &name)) {
        raw_take(&reader, &value);
        int field = field_of_member(flow->row, name);
        if (field >= 0)
            flow->fields[field].text = value;
        else if (!unknown->data && !repeats_reply(flow, name, value))
            *unknown = name;
    }
    return json_done(&reader) || is_json(flow, flow->request->body);
}

struct slice flow_shown(struct slice name)
{
    if (!utf8_valid(name)) return SLICE("(no UTF-8)");
    if (name.len <= SHOWN_BYTES) return name;
    name.len = SHOWN_BYTES;
    while ((name.data[name.len] & 0xc0) == 0x80) name.len--; /* not within a character */
    return name;
}

static bool read_body(struct flow *flow)
{
    const struct flow_row *row = flow->row;
    struct slice body = flow->request->body, unknown = SLICE_NONE;
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].place == WHOLE_BODY) return true; /* it has been taken */
    if (!body.len) return true;
    if (raw_kind(body) != JSON_OBJECT)
        return is_json(flow, body) && REFUSED(flow, 400, "bad-json", "The body must be a JSON object.");
    if (!members_find(flow, &unknown)) return false;
    if (unknown.data)
        return REFUSED(flow, 400, "bad-request", "The body has a member that is not known here: %.*s.",
                       SLICE_ARG(flow_shown(unknown)));
    for (uint32_t i = 0; i < row->field_count; i++) {
        struct slice value = flow->fields[i].text;
        if (row->fields[i].place != IN_BODY || !value.data) continue;
        flow->fields[i].text = SLICE_NONE;
        if (!take_json(flow, &row->fields[i], value, &flow->fields[i])) return false;
    }
    return true;
}

/* ---- all of them ---- */

/* The server's own tables are not for every key. */
static bool table_is_allowed(struct flow *flow, const struct field *field, struct slice text)
{
    if (flow->request->role == ROLE_ADMIN || strcmp(field->name, "table") != 0 ||
        !rest_role_owns_table(text, flow->world->prefix))
        return true;
    return REFUSED(
        flow, 403, "access-denied",
        "This key has the role %s, which may not use the tables that begin with '%.*s': they are the "
        "server's own.",
        rest_role_name(flow->request->role), SLICE_ARG(flow->world->prefix));
}

static bool read_bare(struct flow *flow)
{
    const struct flow_row *row = flow->row;
    unsigned in_path = 0;
    for (uint32_t i = 0; i < row->field_count; i++) {
        const struct field *field = &row->fields[i];
        struct slice text = SLICE_NONE;
        if (field->place == IN_PATH) text = flow->request->parameters[in_path++];
        if (field_is_in_query(field)) text = rest_query(flow->request, field->name);
        if (field->place == IN_HEADER && flow->request->header)
            text = flow->request->header(flow->request, slice_of(field->name));
        if (text.data && !table_is_allowed(flow, field, text)) return false;
        if (text.data && !take_bare(flow, field, text, &flow->fields[i])) return false;
        if (field->place == WHOLE_BODY && !take_whole(flow, field, &flow->fields[i])) return false;
    }
    return true;
}

bool field_is_in_query(const struct field *field)
{
    return field->place == IN_QUERY || (field->place == IN_BODY && strcmp(field->name, "wait") == 0);
}

static bool knows_name(const void *context, struct slice name)
{
    const struct flow_row *row = context;
    for (uint32_t i = 0; i < row->field_count; i++)
        if (field_is_in_query(&row->fields[i]) && slice_equal(slice_of(row->fields[i].name), name))
            return true;
    return slice_equal(name, SLICE("cost"));
}

/* A wish in a word that is not known would be passed over in silence. What is not ours by its path is as
 * generous as its original. */
static bool knows_query(struct flow *flow)
{
    const struct flow_row *row = flow->row;
    if (!flow->request->query.len || strncmp(row->path, "/v1/", 4) != 0) return true;
    struct slice name = rest_query_unknown(flow->request, knows_name, row);
    if (!name.data) return true;
    return REFUSED(flow, 400, "bad-request", "The query has a parameter that is not known here: %.*s%s.",
                   SLICE_ARG(flow_shown(name)),
                   field_of_member(row, name) >= 0 ? "; it belongs in the body" : "");
}

bool fields_read(struct flow *flow)
{
    const struct flow_row *row = flow->row;
    struct slice cost = rest_query(flow->request, "cost");
    flow->tells_cost = cost.data && !slice_equal(cost, SLICE("0")) && !slice_equal(cost, SLICE("false"));
    flow->fields = flow->own_fields = arena_zero(flow->arena, row->field_count * sizeof *flow->fields);
    if (!knows_query(flow) || !read_bare(flow) || !read_body(flow)) return false;
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].required && !flow->fields[i].given)
            return fault(flow, &row->fields[i], "is missing");
    return true;
}

/* ---- lists of the same ---- */

void flow_with(struct flow *flow, struct field_value *fields)
{
    flow->fields = fields ? fields : flow->own_fields;
    flow->races = 0; /* each may lose as many */
}

static bool element_read(struct flow *flow, const struct field *fields, uint32_t field_count,
                         struct slice element, struct field_value *values)
{
    struct slice name, member;
    if (raw_kind(element) != JSON_OBJECT) return REFUSED(flow, 400, "bad-request", "It must be an object.");
    raw_each_member (flow->arena, element, &name, &member) {
        uint32_t at = 1;
        while (at < field_count && (fields[at].place == IN_HEADER || fields[at].type == FIELD_LIST ||
                                    !slice_equal(name, slice_of(fields[at].name))))
            at++;
        if (at == field_count)
            return REFUSED(flow, 400, "bad-request", "It has a member that is not known here: %.*s.",
                           SLICE_ARG(flow_shown(name)));
        if (!take_json(flow, &fields[at], member, &values[at])) return false;
    }
    for (uint32_t i = 1; i < field_count; i++)
        if (fields[i].required && !values[i].given) return fault(flow, &fields[i], "is missing");
    return true;
}

struct field_value **flow_elements(struct flow *flow, unsigned list, size_t most, const struct field *fields,
                                   uint32_t field_count, size_t *count)
{
    const struct field *field = &flow->row->fields[list];
    size_t room = raw_count(flow->arena, flow_text(flow, list));
    if (!room || room > most)
        task_refuse(flow, 400, "bad-request", "%s must be 1 to %zu.", field->name, most);
    struct field_value **elements = arena_array(flow->arena, struct field_value *, room);
    struct slice element;
    *count = 0;
    raw_each (flow->arena, flow_text(flow, list), &element) {
        struct field_value *values = arena_zero(flow->arena, field_count * sizeof *values);
        values[0] = flow->fields[0]; /* what all have in common */
        if (!element_read(flow, fields, field_count, element, values)) {
            /* What was said of a field, again, with the element that it belongs to. */
            size_t number = *count;
            struct slice body = arena_copy(flow->arena, slice_from(buf_view(flow->body), flow->body_start));
            struct slice code = raw_text(flow->arena, raw_member(flow->arena, body, "error"));
            struct slice message = raw_text(flow->arena, raw_member(flow->arena, body, "message"));
            task_refuse(flow, flow->status, arena_printf(flow->arena, "%.*s", SLICE_ARG(code)).data,
                        "%s[%zu]: %.*s", field->name, number, SLICE_ARG(message));
        }
        elements[(*count)++] = values;
    }
    return elements;
}
