/* Routes find their rows, queries and escapes are decoded, workers serve what they were given. */
#include <stdatomic.h>

#include "rest/rest.h"
#include "unit/test.h"

static void nobody(void *room, struct rest_call *call)
{
    (void)room;
    (void)call;
}

static const struct rest_route routes[] = {
    {"GET", "/2015-03-31/functions/", nobody},
    {"POST", "/2015-03-31/functions/{name}/invocations", nobody},
    {"GET", "/2015-03-31/functions/{name}", nobody},
    {"DELETE", "/2015-03-31/functions/{name}", nobody},
    {"GET", "/tags/{arn+}", nobody},
    {"GET", "/v1/groups/{name}/{key}", nobody},
};

static int row_of(struct arena *arena, const char *method, const char *path, struct rest_call *call)
{
    *call = (struct rest_call){.method = slice_of(method), .path = slice_of(path), .arena = arena};
    const struct rest_route *found = NULL;
    enum rest_found answer = rest_route(routes, sizeof routes / sizeof *routes, call, &found);
    if (answer == REST_NOWHERE) return -1;
    return answer == REST_OTHER_METHOD ? -2 : (int)(found - routes);
}

TEST(a_path_finds_its_row_and_its_parameters)
{
    struct arena arena = {0};
    struct rest_call call;
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions", &call), 0);
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions/", &call), 0);
    CHECK_INT(row_of(&arena, "POST", "/2015-03-31/functions/a%20b/invocations", &call), 1);
    CHECK_TEXT(call.parameters[0], "a b");
    CHECK_INT(row_of(&arena, "DELETE", "/2015-03-31/functions/x", &call), 3);
    CHECK_INT(row_of(&arena, "PUT", "/2015-03-31/functions/x", &call), -2);
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions/x/y", &call), -1);
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions//invocations", &call), -1);
    CHECK_INT(row_of(&arena, "GET", "/tags/arn%3Aaws%3Ax/y", &call), 4);
    CHECK_TEXT(call.parameters[0], "arn:aws:x/y");
    CHECK_INT(row_of(&arena, "GET", "/v1/groups/a/b%2Fc", &call), 5);
    CHECK_TEXT(call.parameters[1], "b/c");
    arena_free(&arena);
}

/* By the index the same rows are found. */
TEST(indexed_rows_are_found_alike)
{
    static const struct rest_route many[] = {
        {"GET", "/v1/counters/{name}", nobody},
        {"POST", "/v1/counters/{name}", nobody},
        {"GET", "/v1/counters", nobody},
        {"GET", "/v1/logs/{name}", nobody},
        {"GET", "/v1/logs/{name}/end", nobody},
        {"GET", "/v1/logs/", nobody},
        {"PUT", "/v1/logs/{name}/{more+}", nobody},
        {"GET", "/v1/leases/{name}", nobody},
        {"GET", "/v1/leases", nobody},
        {"GET", "/v1/log", nobody},
        {"GET", "/wall", nobody},
        {"GET", "/", nobody},
    };
    static const char *const methods[] = {"GET", "POST", "PUT"};
    static const char *const paths[] = {"/v1/counters/a",
                                        "/v1/counters",
                                        "/v1/counters/",
                                        "/v1/logs",
                                        "/v1/logs/",
                                        "/v1/logs/x",
                                        "/v1/logs/x/end",
                                        "/v1/logs/x/y/z",
                                        "/v1/leases",
                                        "/v1/leases/x",
                                        "/v1/log",
                                        "/v1/lo",
                                        "/v1/logss/x",
                                        "/wall",
                                        "/wal",
                                        "/",
                                        "",
                                        "v1/logs",
                                        "/v1",
                                        "/v1/",
                                        "/v2/logs/x"};
    enum { MANY = sizeof many / sizeof *many };
    struct arena arena = {0};
    struct rest_index index;
    rest_index_make(&index, many, MANY);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
            struct rest_call call = {
                .method = slice_of(methods[k]), .path = slice_of(paths[i]), .arena = &arena};
            const struct rest_route *plain = NULL, *quick = NULL;
            CHECK(rest_route(many, MANY, &call, &plain) ==
                  rest_route_indexed(many, &index, MANY, &call, &quick));
            if (plain != quick)
                test_failed(__FILE__, __LINE__, "%s %s is found elsewhere", methods[k], paths[i]);
        }
    arena_free(&arena);
}

TEST(broken_escapes_match_nothing)
{
    struct arena arena = {0};
    struct rest_call call;
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions/%", &call), -1);
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions/%zz", &call), -1);
    CHECK_INT(row_of(&arena, "GET", "/2015-03-31/functions/%ff", &call), -1);
    arena_free(&arena);
}

TEST(queries_are_found_by_name_and_number)
{
    struct arena arena = {0};
    struct rest_call call = {.query = SLICE("a=1&b=x%3Dy&a=2&empty=&alone"), .arena = &arena};
    CHECK_TEXT(rest_query(&call, "a"), "1");
    CHECK_TEXT(rest_query_nth(&call, "a", 1), "2");
    CHECK(rest_query_nth(&call, "a", 2).data == NULL);
    CHECK_TEXT(rest_query(&call, "b"), "x=y");
    CHECK(rest_query(&call, "empty").data && rest_query(&call, "empty").len == 0);
    CHECK(rest_query(&call, "alone").data && rest_query(&call, "alone").len == 0);
    CHECK(rest_query(&call, "none").data == NULL);
    arena_free(&arena);
}

TEST(encoding_is_undone_by_decoding)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct slice back, text = SLICE("a/b c%\xc3\xa4~._-");
    rest_encode(&out, text);
    CHECK_TEXT(buf_view(&out), "a%2Fb%20c%25%C3%A4~._-");
    CHECK(rest_decode(&arena, buf_view(&out), &back) && slice_equal(back, text));
    buf_free(&out);
    arena_free(&arena);
}

TEST(headers_gather)
{
    struct arena arena = {0};
    struct rest_call call = {.arena = &arena};
    rest_add_header(&call, "A: %d", 1);
    rest_add_header(&call, "B: %s", "two");
    CHECK_TEXT(call.headers, "A: 1\r\nB: two\r\n");
    arena_free(&arena);
}

static void count(void *room, struct rest_call *call)
{
    (void)call;
    atomic_fetch_add((_Atomic int *)room, 1);
}

TEST(workers_serve_everything_before_they_end)
{
    _Atomic int served = 0;
    struct rest_call call = {0};
    struct workers *workers = workers_new(3);
    for (int i = 0; i < 1000; i++) rest_workers_run(workers, count, (void *)&served, &call);
    workers_free(workers);
    CHECK_INT(served, 1000);
}
