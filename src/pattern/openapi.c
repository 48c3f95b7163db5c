/* /v1/openapi.json: the description of all routes, made of the rows that serve them. */
#include "pattern/pattern.h"

#include "base/fail.h"
#include "pattern/rows.h"

static void put_string(struct buf *out, const char *text)
{
    json_put_string(out, slice_of(text));
}

/* JSON of ours, with ' for ". */
static void put_quoted(struct buf *out, const char *json)
{
    for (; *json; json++) buf_byte(out, *json == '\'' ? '"' : (unsigned char)*json);
}

static void put_words(struct buf *out, const char *words)
{
    struct slice rest = slice_of(words);
    buf_text(out, ",\"enum\":[");
    while (rest.len) {
        const char *bar = memchr(rest.data, '|', rest.len);
        struct slice word = {rest.data, bar ? (size_t)(bar - rest.data) : rest.len};
        json_put_string(out, word);
        if (bar) buf_byte(out, ',');
        rest = slice_from(rest, word.len + (bar != NULL));
    }
    buf_byte(out, ']');
}

/* clang-format off */
static const char *const type_names[] = {
    [FIELD_NAME] = "string", [FIELD_TEXT] = "string", [FIELD_INT] = "integer", [FIELD_DURATION] = NULL,
    [FIELD_BOOL] = "boolean", [FIELD_JSON] = NULL, [FIELD_CHOICE] = "string", [FIELD_LIST] = "array",
    [FIELD_RAW] = "string", [FIELD_THEN] = NULL,
};
/* clang-format on */

static void put_schema(struct buf *out, const struct field *field)
{
    buf_text(out, "{\"description\":");
    put_string(out, field->help ? field->help : field->name);
    if (field->takes_number) {
        buf_text(out, ",\"type\":[\"string\",\"number\"]");
    } else if (type_names[field->type]) {
        buf_text(out, ",\"type\":");
        put_string(out, type_names[field->type]);
    }
    if (field->type == FIELD_DURATION)
        buf_text(out, ",\"type\":[\"string\",\"integer\"],\"examples\":[\"30s\",30000]");
    if (field->type == FIELD_CHOICE) put_words(out, field->words);
    if (field->type == FIELD_INT && field->max) {
        buf_text(out, ",\"minimum\":");
        json_put_int(out, field->min);
        buf_text(out, ",\"maximum\":");
        json_put_int(out, field->max);
    }
    buf_byte(out, '}');
}

/* ---- parameters ---- */

static void put_parameter(struct buf *out, const struct field *field)
{
    static const char *const places[] = {
        [IN_PATH] = "path", [IN_QUERY] = "query", [IN_HEADER] = "header", [IN_BODY] = "query"};
    buf_text(out, "{\"name\":");
    put_string(out, field->name);
    buf_text(out, ",\"in\":");
    put_string(out, places[field->place]);
    buf_text(out, ",\"required\":");
    buf_slice(out, field->required ? SLICE("true") : SLICE("false"));
    buf_text(out, ",\"schema\":");
    put_schema(out, field);
    buf_byte(out, '}');
}

static void put_parameters(struct buf *out, const struct flow_row *row)
{
    static const struct field cost = {"cost", IN_QUERY, FIELD_BOOL,
                                      .help = "tell what the call costs on AWS"};
    buf_text(out, ",\"parameters\":[");
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (row->fields[i].place >= IN_BODY && !field_is_in_query(&row->fields[i])) continue;
        put_parameter(out, &row->fields[i]);
        buf_byte(out, ',');
    }
    put_parameter(out, &cost);
    buf_byte(out, ']');
}

/* ---- bodies ---- */

static void put_members(struct buf *out, const struct flow_row *row)
{
    bool first = true;
    buf_text(out, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (row->fields[i].place != IN_BODY && row->fields[i].place != IN_REPLY) continue;
        if (!first) buf_byte(out, ',');
        first = false;
        put_string(out, row->fields[i].name);
        buf_byte(out, ':');
        put_schema(out, &row->fields[i]);
        if (row->fields[i].place != IN_REPLY) continue;
        out->len--; /* the schema's brace */
        buf_text(out, ",\"readOnly\":true}");
    }
    buf_text(out, "},\"required\":[");
    first = true;
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (row->fields[i].place != IN_BODY || !row->fields[i].required) continue;
        if (!first) buf_byte(out, ',');
        first = false;
        put_string(out, row->fields[i].name);
    }
    buf_text(out, "]}");
}

static void put_request(struct buf *out, const struct flow_row *row)
{
    const struct field *whole = NULL;
    bool has_members = false;
    for (uint32_t i = 0; i < row->field_count; i++) {
        has_members |= row->fields[i].place == IN_BODY;
        if (row->fields[i].place == WHOLE_BODY) whole = &row->fields[i];
    }
    if (!whole && !has_members) return;
    buf_text(out, ",\"requestBody\":{\"content\":{");
    put_string(out, whole && whole->type == FIELD_RAW ? "text/plain" : "application/json");
    buf_text(out, ":{\"schema\":");
    if (whole)
        put_schema(out, whole);
    else
        put_members(out, row);
    buf_text(out, "}}}");
}

/* ---- replies ---- */

/* Members that hold what users have put there, or a task, which is a number or a name. */
static bool holds_anything(struct slice name)
{
    static const char *const names[] = {"data", "result", "item", "replaced", "progress", "task"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(name, slice_of(names[i]))) return true;
    return false;
}

static bool is_time(struct slice text)
{
    return text.len == sizeof "2026-11-15T03:42:06.250Z" - 1 && text.data[10] == 'T' &&
           text.data[text.len - 1] == 'Z';
}

static void put_shape(struct buf *out, struct arena *arena, struct slice example, bool is_in_list);

static void put_properties(struct buf *out, struct arena *arena, struct slice example)
{
    struct slice name, value;
    bool first = true;
    buf_text(out, "\"type\":\"object\",\"properties\":{");
    raw_each_member (arena, example, &name, &value) {
        if (!first) buf_byte(out, ',');
        first = false;
        json_put_string(out, name);
        buf_byte(out, ':');
        if (holds_anything(name))
            buf_text(out, "{}");
        else
            put_shape(out, arena, value, false);
    }
    buf_byte(out, '}');
}

static void put_items(struct buf *out, struct arena *arena, struct slice example)
{
    struct raw_look look;
    struct slice element;
    buf_text(out, "\"type\":\"array\"");
    raw_look_begin(&look, arena, example);
    if (!raw_look_next(&look, NULL, &element)) return;
    buf_text(out, ",\"items\":");
    put_shape(out, arena, element, true);
}

/* The schema of values like this one. A number in a list is a task, and might be a name. */
static void put_shape(struct buf *out, struct arena *arena, struct slice example, bool is_in_list)
{
    buf_byte(out, '{');
    switch (raw_kind(example)) {
    case JSON_OBJECT:
        if (!raw_member(arena, example, "any").data) put_properties(out, arena, example);
        break;
    case JSON_ARRAY: put_items(out, arena, example); break;
    case JSON_STRING:
        buf_text(out, "\"type\":\"string\"");
        if (is_time(raw_string(arena, example))) buf_text(out, ",\"format\":\"date-time\"");
        break;
    case JSON_NUMBER: put_quoted(out, is_in_list ? "'type':['integer','string']" : "'type':'integer'"); break;
    case JSON_TRUE:
    case JSON_FALSE: buf_text(out, "\"type\":\"boolean\""); break;
    default: break;
    }
    buf_byte(out, '}');
}

static void put_json_reply(struct buf *out, const char *reply)
{
    struct arena arena = {0};
    struct buf example = {0};
    put_quoted(&example, reply);
    buf_text(out, "\"application/json\":{\"schema\":");
    put_shape(out, &arena, buf_view(&example), false);
    buf_text(out, ",\"example\":");
    buf_slice(out, buf_view(&example));
    buf_byte(out, '}');
    buf_free(&example);
    arena_free(&arena);
}

static void put_text_reply(struct buf *out, const char *reply)
{
    put_string(out, strncmp(reply, "event:", 6) == 0 ? "text/event-stream" : "text/plain");
    buf_text(out, ":{\"schema\":{\"type\":\"string\"},\"example\":");
    put_string(out, reply);
    buf_byte(out, '}');
}

static void put_replies(struct buf *out, const struct flow_row *row)
{
    buf_text(out, ",\"responses\":{\"2XX\":{\"description\":\"200 done, 201 made, 204 nothing to be had\"");
    if (row->reply) {
        buf_text(out, ",\"content\":{");
        if (strchr("{[0123456789", row->reply[0]))
            put_json_reply(out, row->reply);
        else
            put_text_reply(out, row->reply);
        buf_byte(out, '}');
    }
    buf_text(out, "},\"default\":{\"$ref\":\"#/components/responses/refused\"}}");
}

/* ---- paths ---- */

/* "jobDone", "getWall": of the command's first two words, or of the method and the path. */
static void put_operation_id(struct buf *out, const struct flow_row *row)
{
    const char *text = row->command ? row->command : row->path;
    bool raises = !row->command;
    size_t words = 1;
    buf_text(out, "\"operationId\":\"");
    if (!row->command)
        for (const char *at = row->method; *at; at++) buf_byte(out, (unsigned char)(*at | 32));
    for (; *text && (!row->command || words <= 2); text++) {
        bool is_letter = (*text | 32) >= 'a' && (*text | 32) <= 'z';
        if (is_letter) buf_byte(out, (unsigned char)(raises ? *text & ~32 : *text));
        if (*text == ' ') words++;
        raises = !is_letter;
    }
    buf_byte(out, '"');
}

/* What the routes of a pattern stand under: "jobs" of "/v1/jobs/{id}". */
static void put_tag(struct buf *out, const struct flow_row *row)
{
    struct slice path = slice_of(row->path), version = SLICE("/v1");
    if (slice_starts(path, version)) path = slice_from(path, version.len);
    path = slice_from(path, 1);
    const char *end = memchr(path.data, '/', path.len);
    if (end) path.len = (size_t)(end - path.data);
    buf_text(out, ",\"tags\":[");
    json_put_string(out, path);
    buf_byte(out, ']');
}

static void put_operation(struct buf *out, const struct flow_row *row)
{
    buf_byte(out, '"');
    for (const char *at = row->method; *at; at++) buf_byte(out, (unsigned char)(*at | 32));
    buf_text(out, "\":{");
    put_operation_id(out, row);
    put_tag(out, row);
    buf_text(out, ",\"summary\":");
    put_string(out, row->summary);
    if (row->command) {
        buf_text(out, ",\"x-command\":");
        put_string(out, row->command);
    }
    put_parameters(out, row);
    put_request(out, row);
    put_replies(out, row);
    buf_byte(out, '}');
}

static bool is_new_path(size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(row_at(i)->path, row_at(number)->path) == 0) return false;
    return true;
}

static void put_path(struct buf *out, size_t number)
{
    const struct flow_row *first = row_at(number), *row;
    put_string(out, first->path);
    buf_text(out, ":{");
    put_operation(out, first);
    while ((row = row_at(++number))) {
        if (strcmp(row->path, first->path) != 0) continue;
        buf_byte(out, ',');
        put_operation(out, row);
    }
    buf_byte(out, '}');
}

void pattern_put_openapi(struct buf *out)
{
    put_quoted(out, "{'openapi':'3.1.0','info':{'title':'Quipu','version':'1',"
                    "'description':'Coordination patterns over DynamoDB, one call each.'},'paths':{");
    for (size_t i = 0; row_at(i); i++) {
        if (!is_new_path(i)) continue;
        if (i) buf_byte(out, ',');
        put_path(out, i);
    }
    put_quoted(
        out,
        "},'components':{'responses':{'refused':{'description':'refused, and nothing has changed: 400 not "
        "understood, 404 an unknown name, 405 another method, 409 what the present state does not "
        "allow, 412 another version, 413 too large, 422 an Idempotency-Key or token that was used for "
        "something else, 429 too many wait, 503 to be tried again',"
        "'content':{'application/json':{'schema':{'type':'object','required':['error','message'],"
        "'properties':{'error':{'type':'string'},'message':{'type':'string'}}}}}}}}}");
}

static void openapi_begin(struct flow *flow)
{
    pattern_put_openapi(flow->body);
    flow_finish(flow, 200);
}

const struct flow_row openapi_rows[] = {
    {"GET", "/v1/openapi.json", openapi_begin, "This description.", NULL, 0, NULL, NULL}};
ROW_COUNT(openapi);
