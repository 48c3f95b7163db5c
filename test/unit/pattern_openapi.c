/* The description of the routes is JSON and complete. */
#include "base/attribute.h"
#include "pattern/rows.h"
#include "unit/pattern_fixture.h"

TEST(openapi_describes_every_route)
{
    struct patterns patterns;
    patterns_open(&patterns);
    struct slice text = asks(&patterns, "GET /v1/openapi.json", NULL);
    struct json_reader reader;
    json_begin(&reader, text, &patterns.arena);
    CHECK(json_skip(&reader) && json_done(&reader));
    struct slice paths = raw_member(&patterns.arena, text, "paths");
    for (size_t i = 0; row_at(i); i++) {
        const struct flow_row *row = row_at(i);
        char method[16];
        size_t len = 0;
        for (; row->method[len]; len++) method[len] = (char)(row->method[len] | 32);
        method[len] = '\0';
        struct slice operation = raw_member(&patterns.arena, raw_member(&patterns.arena, paths, row->path),
                                            method);
        if (!raw_member(&patterns.arena, operation, "responses").data)
            test_failed(__FILE__, __LINE__, "%s %s is not described", row->method, row->path);
        CHECK(row->summary && row->summary[strlen(row->summary) - 1] == '.');
        for (uint32_t j = 0; j < row->field_count; j++) CHECK(row->fields[j].help != NULL);
    }
    patterns_close(&patterns);
}

static struct slice media_of(struct patterns *patterns, struct slice paths, const char *path)
{
    struct slice get = raw_member(&patterns->arena, raw_member(&patterns->arena, paths, path), "get");
    struct slice done = raw_member(&patterns->arena, raw_member(&patterns->arena, get, "responses"), "2XX");
    return raw_member(&patterns->arena, done, "content");
}

TEST(openapi_tells_what_comes)
{
    struct patterns patterns;
    patterns_open(&patterns);
    struct slice paths = raw_member(&patterns.arena, asks(&patterns, "GET /v1/openapi.json", NULL), "paths");
    CHECK_TEXT(media_of(&patterns, paths, "/v1/jobs/{id}/events"),
               "{\"text/event-stream\":{\"schema\":{\"type\":\"string\"},\"example\":\"event: progress\"}}");
    CHECK_TEXT(media_of(&patterns, paths, "/counter"),
               "{\"application/json\":{\"schema\":{\"type\":\"integer\"},\"example\":42}}");
    CHECK_TEXT(media_of(&patterns, paths, "/wall"),
               "{\"text/plain\":{\"schema\":{\"type\":\"string\"},\"example\":\"hello\\n\"}}");
    struct slice results = media_of(&patterns, paths, "/v1/jobs/{id}/results");
    CHECK(
        slice_contains(results, SLICE("\"schema\":{\"type\":\"object\","
                                      "\"properties\":{\"results\":{\"type\":\"array\","
                                      "\"items\":{\"type\":\"object\",\"properties\":{\"task\":{},"
                                      "\"result\":{}}}},\"next\":{\"type\":\"string\"}}}")));
    CHECK(slice_contains(media_of(&patterns, paths, "/v1/leases/{name}"),
                         SLICE("\"until\":{\"type\":\"string\",\"format\":\"date-time\"}")));
    struct slice claim = raw_member(&patterns.arena, paths, "/v1/work/{queue}/claim");
    CHECK(slice_contains(claim, SLICE("{\"name\":\"wait\",\"in\":\"query\",\"required\":false")));
    CHECK(slice_contains(claim, SLICE("\"type\":[\"string\",\"integer\"]")));
    patterns_close(&patterns);
}

static bool has_body_field(const struct flow_row *row, struct slice name)
{
    for (uint32_t i = 0; i < row->field_count; i++)
        if (row->fields[i].place >= IN_BODY && slice_equal(slice_of(row->fields[i].name), name)) return true;
    return false;
}

static void words_name_fields(const struct flow_row *row)
{
    unsigned nth = 0;
    for (const char *at = row->command; *at && *at != '-'; nth++) {
        size_t whole = strcspn(at, " "), len = strcspn(at, " ?|.");
        struct slice word = {at, len};
        if (nth > 1 && !has_body_field(row, word))
            test_failed(__FILE__, __LINE__, "'%s' names no field: %s", row->command, at);
        at += whole + strspn(at + whole, " ");
    }
    CHECK(nth >= 2);
}

static bool is_same_command(const char *a, const char *b)
{
    size_t first = strcspn(a, " "), len = first + 1 + strcspn(a + first + 1, " ");
    return strncmp(a, b, len) == 0 && (b[len] == ' ' || b[len] == '\0');
}

TEST(operations_have_commands_of_their_own)
{
    for (size_t i = 0; row_at(i); i++) {
        const struct flow_row *row = row_at(i);
        /* Lines that 'group add' and 'work submit' read become one request of many. */
        bool is_many = strcmp(row->method, "POST") == 0 &&
                       (strcmp(row->path, "/v1/groups/{name}") == 0 || strcmp(row->path, "/v1/work/{queue}") == 0);
        bool is_ours = strncmp(row->path, "/v1/", 4) == 0 && strcmp(row->path, "/v1/openapi.json") != 0 && !is_many;
        if (is_ours != (row->command != NULL))
            test_failed(__FILE__, __LINE__, "%s %s: its command", row->method, row->path);
        if (!row->command) continue;
        words_name_fields(row);
        for (size_t j = 0; j < i; j++)
            if (row_at(j)->command && is_same_command(row_at(j)->command, row->command))
                test_failed(__FILE__, __LINE__, "'%s' is two operations", row->command);
    }
}
