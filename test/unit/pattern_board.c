/* Boards by their words, and the originals' own routes. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

/* The id of the message that was posted last. */
static char last_id[100];

static void post(struct patterns *patterns, const char *body)
{
    struct slice reply = asks(patterns, "POST /v1/boards/b", body);
    CHECK_INT(patterns->call.status, 201);
    struct slice id = raw_text(&patterns->arena, raw_member(&patterns->arena, reply, "id"));
    snprintf(last_id, sizeof last_id, "%.*s", SLICE_ARG(id));
}

/* The texts of a reply, one after the other. */
static const char *texts(struct patterns *patterns, const char *request)
{
    static char all[200];
    struct raw_walk walk;
    struct slice message, reply = asks(patterns, request, NULL);
    size_t len = 0;
    raw_walk_begin(&walk, &patterns->arena, raw_member(&patterns->arena, reply, "messages"));
    while (raw_walk_next(&walk, NULL, &message)) {
        struct slice text = raw_text(&patterns->arena, raw_member(&patterns->arena, message, "text"));
        len += (size_t)snprintf(all + len, sizeof all - len, "%.*s ", SLICE_ARG(text));
    }
    all[len] = '\0';
    return all;
}

#define CHECK_TEXTS(patterns, request, expected) CHECK_TEXT(slice_of(texts(patterns, request)), expected)

TEST(board_keeps_messages_in_order)
{
    struct patterns patterns;
    char request[200];
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "GET /v1/boards/b", NULL, 200, "{\"messages\":[]}");
    post(&patterns, "{\"text\":\"one\",\"author\":\"me\"}");
    CHECK(
        slice_contains(asks(&patterns, "GET /v1/boards/b", NULL),
                       SLICE("\"time\":\"2054-11-15T04:13:25.340Z\",\"text\":\"one\",\"author\":\"me\"}]}")));
    post(&patterns, "{\"text\":\"two\"}");
    snprintf(request, sizeof request, "GET /v1/boards/b?after=%s", last_id);
    patterns.now_ms++;
    post(&patterns, "{\"text\":\"three\"}");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b", "one two three ");
    CHECK_TEXTS(&patterns, request, "three ");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b?before=now&limit=2", "three two ");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b?limit=2", "one two ");
    CHECK_TEXTS(&patterns, "GET /v1/boards/other", "");
    snprintf(request, sizeof request, "DELETE /v1/boards/b/%s", last_id);
    CHECK_ASKS(&patterns, request, NULL, 200, "{\"deleted\":1}");
    CHECK_REFUSES(&patterns, request, NULL, 404, "no-such-message");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b", "one two ");
    CHECK_ASKS(&patterns, "DELETE /v1/boards/b", NULL, 200, "{\"deleted\":2}");
    CHECK_ASKS(&patterns, "DELETE /v1/boards/b", NULL, 200, "{\"deleted\":0}");
    patterns_close(&patterns);
}

TEST(board_posts_once_for_a_key)
{
    struct patterns patterns;
    char first[100];
    patterns_open(&patterns);
    with_header(&patterns, "Idempotency-Key", "k");
    post(&patterns, "{\"text\":\"once\"}");
    strcpy(first, last_id);
    patterns.now_ms += 1000;
    with_header(&patterns, "Idempotency-Key", "k");
    post(&patterns, "{\"text\":\"once\"}");
    CHECK_TEXT(slice_of(last_id), first);
    with_header(&patterns, "Idempotency-Key", "k");
    CHECK_REFUSES(&patterns, "POST /v1/boards/b", "{\"text\":\"another\"}", 422, "key-reused");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b", "once ");
    CHECK_REFUSES(&patterns, "POST /v1/boards/b", "{\"author\":\"me\"}", 400, "bad-request");
    patterns_close(&patterns);
}

/* Neither a repeat nor a reader sees the message again. */
TEST(board_does_not_post_again_what_was_deleted)
{
    struct patterns patterns;
    char request[200];
    patterns_open(&patterns);
    for (int i = 0; i < 3; i++) {
        char key[2] = {(char)('a' + i), '\0'};
        with_header(&patterns, "Idempotency-Key", key);
        post(&patterns, "{\"text\":\"once\"}");
        patterns.now_ms++;
    }
    post(&patterns, "{\"text\":\"last\"}");
    with_header(&patterns, "Idempotency-Key", "a");
    post(&patterns, "{\"text\":\"once\"}");
    snprintf(request, sizeof request, "DELETE /v1/boards/b/%s", last_id);
    CHECK_ASKS(&patterns, request, NULL, 200, "{\"deleted\":1}");
    CHECK_REFUSES(&patterns, request, NULL, 404, "no-such-message");
    with_header(&patterns, "Idempotency-Key", "a");
    post(&patterns, "{\"text\":\"once\"}");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b", "once once last ");
    CHECK_TEXTS(&patterns, "GET /v1/boards/b?limit=1", "once "); /* not the deleted one, and not nothing */
    CHECK_ASKS(&patterns, "DELETE /v1/boards/b", NULL, 200, "{\"deleted\":3}");
    with_header(&patterns, "Idempotency-Key", "b");
    post(&patterns, "{\"text\":\"once\"}");
    CHECK_ASKS(&patterns, "GET /v1/boards/b", NULL, 200, "{\"messages\":[]}");
    CHECK_ASKS(&patterns, "DELETE /v1/boards/b", NULL, 200, "{\"deleted\":0}");
    CHECK_ASKS(&patterns, "GET /wall", NULL, 200, "No message yet.");
    patterns_close(&patterns);
}

TEST(board_tells_its_cost)
{
    struct patterns patterns;
    patterns_open(&patterns);
    with_header(&patterns, "Idempotency-Key", "a");
    post(&patterns, "{\"text\":\"first\"}");
    with_header(&patterns, "Idempotency-Key", "b");
    struct slice reply = asks(&patterns, "POST /v1/boards/b?cost=1", "{\"text\":\"second\"}");
    CHECK(slice_contains(reply, SLICE("\"cost\":{\"writeUnits\":2,\"readUnits\":0,\"calls\":2,")));
    patterns_close(&patterns);
}

TEST(board_deletes_more_than_a_page)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    buf_text(&body, "{\"text\":\"");
    for (int i = 0; i < 50000; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}");
    buf_byte(&body, '\0');
    for (int i = 0; i < 60; i++) { /* three megabytes: three pages, and batches that do not fill */
        patterns.now_ms++;
        post(&patterns, body.data);
    }
    CHECK_ASKS(&patterns, "DELETE /v1/boards/b", NULL, 200, "{\"deleted\":60}");
    CHECK_ASKS(&patterns, "GET /v1/boards/b", NULL, 200, "{\"messages\":[]}");
    buf_free(&body);
    patterns_close(&patterns);
}

TEST(the_original_wall)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "GET /wall", NULL, 200, "No message yet.");
    CHECK_TEXT(patterns.call.content_type, "text/plain; charset=utf-8");
    CHECK_ASKS(&patterns, "POST /wall", "Hello \"you\"", 200, "Hello \"you\"\n");
    CHECK_ASKS(&patterns, "POST /wall", "{\"any\":1}", 200, "Hello \"you\"\n{\"any\":1}\n");
    CHECK_ASKS(&patterns, "GET /wall", NULL, 200, "Hello \"you\"\n{\"any\":1}\n");
    CHECK_TEXTS(&patterns, "GET /v1/boards/wall", "Hello \"you\" {\"any\":1} ");
    CHECK_ASKS(&patterns, "PUT /wall", "x", 200, "Method unsupported.");
    CHECK_ASKS(&patterns, "DELETE /wall", NULL, 200, "Messages deleted.");
    CHECK_ASKS(&patterns, "GET /wall", NULL, 200, "No message yet.");
    CHECK_ASKS(&patterns, "DELETE /wall", NULL, 200, "Messages deleted.");
    CHECK_ASKS(&patterns, "POST /wall", NULL, 200, "\n");
    CHECK_REFUSES(&patterns, "POST /wall", "\xff", 400, "bad-request");
    patterns_close(&patterns);
}

TEST(the_original_counter)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "GET /counter?systemKey=system-aa", NULL, 200, "1");
    CHECK_ASKS(&patterns, "GET /counter?systemKey=system-aa", NULL, 200, "2");
    CHECK_ASKS(&patterns, "GET /counter?systemKey=system-bb", NULL, 200, "1");
    CHECK_ASKS(&patterns, "POST /v1/counters/system-aa", NULL, 200, "{\"value\":3}");
    CHECK_REFUSES(&patterns, "GET /counter", NULL, 400, "bad-request");
    patterns_close(&patterns);
}
