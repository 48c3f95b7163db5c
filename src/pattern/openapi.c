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
    if (type_names[field->type]) {
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
        if (row->fields[i].place != IN_BODY) continue;
        if (!first) buf_byte(out, ',');
        first = false;
        put_string(out, row->fields[i].name);
        buf_byte(out, ':');
        put_schema(out, &row->fields[i]);
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

static void put_replies(struct buf *out, const struct flow_row *row)
{
    buf_text(out, ",\"responses\":{\"2XX\":{\"description\":\"200 done, 201 made, 204 nothing to be had\"");
    if (row->reply) {
        bool is_json = strchr("{[0123456789", row->reply[0]) != NULL;
        bool is_stream = strncmp(row->reply, "event:", 6) == 0;
        buf_text(out, ",\"content\":{");
        put_string(out, is_json ? "application/json" : is_stream ? "text/event-stream" : "text/plain");
        buf_text(out, ":{\"example\":");
        if (is_json)
            put_quoted(out, row->reply);
        else
            put_string(out, row->reply);
        buf_text(out, "}}");
    }
    buf_text(out, "},\"default\":{\"$ref\":\"#/components/responses/refused\"}}");
}

/* ---- paths ---- */

static void put_operation(struct buf *out, const struct flow_row *row)
{
    buf_byte(out, '"');
    for (const char *at = row->method; *at; at++) buf_byte(out, (unsigned char)(*at | 32));
    buf_text(out, "\":{\"summary\":");
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
    put_quoted(out, "{'openapi':'3.1.0','info':{'title':'Quipu','version':'1','description':"
                    "'Coordination patterns over DynamoDB, one call each.'},'paths':{");
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
