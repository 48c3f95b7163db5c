/* /v1/openapi.json: the description of all routes, made of the rows that serve them. */
#include "pattern/pattern.h"

#include "base/compose.h"
#include "pattern/rows.h"

/* JSON of ours, with ' for ". */
static void put_quoted(struct buf *out, const char *json)
{
    for (; *json; json++) buf_byte(out, *json == '\'' ? '"' : (unsigned char)*json);
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
    struct slice words = slice_of(field->type == FIELD_CHOICE ? field->words : "");
    compose(out, "{'description':%s", slice_of(field->help ? field->help : field->name));
    if (field->takes_number)
        compose(out, ",'type':['string','number']");
    else if (type_names[field->type])
        compose(out, ",'type':%s", slice_of(type_names[field->type]));
    if (field->type == FIELD_DURATION) compose(out, ",'type':['string','integer'],'examples':['30s',30000]");
    if (words.len) compose(out, ",'enum':[");
    while (words.len) {
        struct slice word = slice_cut(&words, '|');
        compose(out, "%,%s%A", word, words.len ? SLICE("") : SLICE("]"));
    }
    if (field->type == FIELD_INT && field->max)
        compose(out, ",'minimum':%d,'maximum':%d", field->min, field->max);
    buf_byte(out, '}');
}

/* ---- parameters ---- */

static void put_parameter(struct buf *out, const struct field *field)
{
    static const char *const places[] = {
        [IN_PATH] = "path", [IN_QUERY] = "query", [IN_HEADER] = "header", [IN_BODY] = "query"};
    compose(out, "%,{'name':%s,'in':%s,'required':%b,'schema':", slice_of(field->name),
            slice_of(places[field->place]), (int)field->required);
    put_schema(out, field);
    buf_byte(out, '}');
}

static void put_parameters(struct buf *out, const struct flow_row *row)
{
    static const struct field cost = {"cost", IN_QUERY, FIELD_BOOL,
                                      .help = "tell what the call costs on AWS"};
    compose(out, ",'parameters':[");
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].place < IN_BODY || field_is_in_query(&row->fields[i]))
            put_parameter(out, &row->fields[i]);
    put_parameter(out, &cost);
    buf_byte(out, ']');
}

/* ---- bodies ---- */

static void put_members(struct buf *out, const struct flow_row *row)
{
    compose(out, "{'type':'object','additionalProperties':false,'properties':{");
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (row->fields[i].place != IN_BODY && row->fields[i].place != IN_REPLY) continue;
        compose(out, "%,%s:", slice_of(row->fields[i].name));
        put_schema(out, &row->fields[i]);
        if (row->fields[i].place != IN_REPLY) continue;
        out->len--; /* the schema's brace */
        compose(out, ",'readOnly':true}");
    }
    compose(out, "},'required':[");
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].place == IN_BODY && row->fields[i].required)
            compose(out, "%,%s", slice_of(row->fields[i].name));
    compose(out, "]}");
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
    compose(out, ",'requestBody':{'content':{%s:{'schema':",
            whole && whole->type == FIELD_RAW ? SLICE("text/plain") : SLICE("application/json"));
    if (whole)
        put_schema(out, whole);
    else
        put_members(out, row);
    compose(out, "}}}");
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
    compose(out, "'type':'object','properties':{");
    raw_each_member (arena, example, &name, &value) {
        compose(out, "%,%s:", name);
        if (holds_anything(name))
            compose(out, "{}");
        else
            put_shape(out, arena, value, false);
    }
    buf_byte(out, '}');
}

static void put_items(struct buf *out, struct arena *arena, struct slice example)
{
    struct slice element = raw_first(arena, example);
    compose(out, "'type':'array'");
    if (!element.data) return;
    compose(out, ",'items':");
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
        compose(out, "'type':'string'");
        if (is_time(raw_string(arena, example))) compose(out, ",'format':'date-time'");
        break;
    case JSON_NUMBER: put_quoted(out, is_in_list ? "'type':['integer','string']" : "'type':'integer'"); break;
    case JSON_TRUE:
    case JSON_FALSE: compose(out, "'type':'boolean'"); break;
    default: break;
    }
    buf_byte(out, '}');
}

static void put_replies(struct buf *out, const struct flow_row *row)
{
    compose(out, ",'responses':{'2XX':{'description':'200 done, 201 made, 204 nothing to be had'");
    if (row->reply) compose(out, ",'content':{");
    if (row->reply && strchr("{[0123456789", row->reply[0])) {
        struct arena arena = {0};
        struct buf quoted = {0};
        put_quoted(&quoted, row->reply);
        struct slice example = arena_take(&arena, &quoted);
        compose(out, "'application/json':{'schema':");
        put_shape(out, &arena, example, false);
        compose(out, ",'example':%A}", example);
        arena_free(&arena);
    } else if (row->reply)
        compose(out, "%s:{'schema':{'type':'string'},'example':%s}",
                strncmp(row->reply, "event:", 6) == 0 ? SLICE("text/event-stream") : SLICE("text/plain"),
                slice_of(row->reply));
    compose(out, "%r},'default':{'$ref':'%r/components/responses/refused'}}",
            row->reply ? SLICE("}") : SLICE(""), SLICE("#"));
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
    compose(out, ",'tags':[%s]", slice_cut(&path, '/'));
}

static void put_operation(struct buf *out, const struct flow_row *row)
{
    compose(out, "%,'");
    for (const char *at = row->method; *at; at++) buf_byte(out, (unsigned char)(*at | 32));
    compose(out, "':{");
    put_operation_id(out, row);
    put_tag(out, row);
    compose(out, ",'summary':%s", slice_of(row->summary));
    if (row->command) compose(out, ",'x-command':%s", slice_of(row->command));
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
    compose(out, "%,%s:{", slice_of(first->path));
    for (; (row = row_at(number)); number++)
        if (strcmp(row->path, first->path) == 0) put_operation(out, row);
    buf_byte(out, '}');
}

void pattern_put_openapi(struct buf *out)
{
    put_quoted(out, "{'openapi':'3.1.0','info':{'title':'Quipu','version':'1',"
                    "'description':'Coordination patterns over DynamoDB, one call each.'},'paths':{");
    for (size_t i = 0; row_at(i); i++)
        if (is_new_path(i)) put_path(out, i);
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
