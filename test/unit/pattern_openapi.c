/* The description of the routes is JSON and complete. */
#include "pattern/item.h"
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
