/* Dead letters: what is kept of a call and where, and what is read of it again. */
#include "base/limits.h"
#include "base/raw.h"
#include "func/letter.h"
#include "func/queue.h"
#include "func/target.h"
#include "unit/func_lab.h"
#include "unit/test.h"

TEST(target_shown_has_no_secrets)
{
    static const struct {
        const char *text, *shown;
        bool is_secret;
    } cases[] = {
        {"resize", "resize", false},
        {"resize:7", "resize:7", false},
        {"https://example.com/hook", "https://example.com/hook", false},
        {"HTTP://example.com:80", "HTTP://example.com:80", false},
        {"https://ada:word@example.com/hook", "https://example.com/hook", true},
        {"https://a@b@example.com/", "https://example.com/", true},
        {"https://example.com/@home", "https://example.com/@home", false},
        {"https://example.com?key=1", "https://example.com", true},
        {"https://example.com/hook?to=a@b/c", "https://example.com/hook", true},
        {"https://example.com/hook#key", "https://example.com/hook", true},
        {"{\"url\":\"https://example.com/a\"}", "https://example.com/a", false},
        {"{\"url\":\"https://u:p@example.com/a?b\"}", "https://example.com/a", true},
        {"{\"url\":\"https://example.com/a\",\"secret\":\"s\"}", "https://example.com/a", true},
        {"{\"call\":\"POST /v1/counters/c/add\",\"body\":{\"by\":1}}", "POST /v1/counters/c/add", false},
        {"{\"neither\":1}", "{\"neither\":1}", false},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_TEXT(target_shown(slice_of(cases[i].text), &arena), cases[i].shown);
        CHECK_INT(target_has_secret(slice_of(cases[i].text), &arena), cases[i].is_secret);
    }
    arena_free(&arena);
}

/* ---- letters on a database ---- */

/* Puts a letter "i" into the queue "q"; answers the number of items. */
static unsigned put(struct lab *lab, struct slice document, const struct func_call *call)
{
    struct buf members = {0}, request = {0}, reply = {0};
    CHECK(queues_make(lab->func));
    unsigned count = letter_put(lab->func, SLICE("q"), SLICE("i"), document, call, 1000, &members);
    CHECK_INT(members.len > 0, count > 0);
    buf_text(&request, "{\"TransactItems\":[");
    buf_slice(&request, buf_view(&members));
    buf_text(&request, "]}");
    if (count && dynamo_call(lab->dynamo, SLICE("TransactWriteItems"), buf_view(&request), &reply) != 200)
        test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&reply)));
    buf_free(&members);
    buf_free(&request);
    buf_free(&reply);
    return count;
}

/* Its item, as the door has it. */
static struct slice item_of(struct lab *lab, struct arena *arena)
{
    return raw_member(
        arena,
        lab_dynamo(lab, "GetItem",
                   "{\"TableName\":\"quipu-queues\",\"Key\":{\"queue\":{\"S\":\"q\"},\"id\":{\"S\":\"i\"}}}",
                   arena),
        "Item");
}

/* Reads it again and compares; NULL: all is the same. Else the sentence that it cannot be redriven for. */
static const char *read_again(struct lab *lab, const struct func_call *call, struct arena *arena)
{
    struct letter letter;
    bool unreadable;
    const char *fault = letter_read(lab->func, item_of(lab, arena), arena, &letter, &unreadable);
    CHECK(!unreadable);
    CHECK(slice_equal(letter.queue, SLICE("q")) && slice_equal(letter.id, SLICE("i")));
    if (fault) return fault;
    CHECK(slice_equal(letter.call.function, call->function));
    CHECK(slice_equal(letter.call.payload, call->payload));
    CHECK(slice_equal(letter.call.cause, call->cause));
    CHECK(slice_equal(letter.call.on_failure, call->on_failure));
    return NULL;
}

static struct slice filled(struct arena *arena, const char *piece, size_t len)
{
    struct buf out = {0};
    buf_byte(&out, '"');
    while (out.len < len) buf_slice(&out, slice_of(piece));
    buf_byte(&out, '"');
    struct slice text = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return text;
}

TEST(letter_keeps_its_call)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    struct func_call call = {.function = SLICE("resize"),
                             .payload = SLICE("{\"n\": 1}"),
                             .cause = SLICE("a:1"),
                             .on_failure = SLICE("arn:aws:sqs:::q")};
    CHECK_INT(put(&lab, SLICE("{\"requestPayload\":{\"n\": 1}}"), &call), 1);
    CHECK(!slice_contains(item_of(&lab, &arena), SLICE("\"payload\""))); /* the document has it */
    CHECK(!read_again(&lab, &call, &arena));
    CHECK_INT(put(&lab, SLICE("{\"requestPayload\":{\"n\":1}}"), &call), 1);
    CHECK(slice_contains(item_of(&lab, &arena), SLICE("\"payload\"")));
    CHECK(!read_again(&lab, &call, &arena));
    call = (struct func_call){.function = SLICE("resize"), .payload = SLICE("\"no JSON")};
    CHECK_INT(put(&lab, SLICE("{}"), &call), 1);
    CHECK(!read_again(&lab, &call, &arena));
    arena_free(&arena);
    lab_close(&lab);
}

TEST(letter_holds_what_does_not_fit)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    struct func_call call = {.function = SLICE("resize"),
                             .payload = filled(&arena, "\xc3\xa4", LIMIT_ASYNC_EVENT_BYTES - 3),
                             .cause = SLICE("a:1")};
    CHECK(put(&lab, SLICE("{}"), &call) > 3);
    CHECK(!read_again(&lab, &call, &arena));
    call.payload = filled(&arena, "x", LIMIT_ITEM_BYTES - 200);
    CHECK_INT(put(&lab, SLICE("{}"), &call), 1);
    CHECK(!read_again(&lab, &call, &arena));
    call.payload = filled(&arena, "x", LIMIT_ITEM_BYTES);
    CHECK_INT(put(&lab, SLICE("{}"), &call), 3);
    CHECK(!read_again(&lab, &call, &arena));
    /* What no asynchronous call can carry is not kept; a document without room is no letter. */
    call.payload = filled(&arena, "x", LIMIT_ASYNC_EVENT_BYTES + 1);
    CHECK_INT(put(&lab, SLICE("{}"), &call), 1);
    CHECK_TEXT(slice_of(read_again(&lab, &call, &arena)), "it holds no failed call");
    CHECK_INT(put(&lab, filled(&arena, "x", LIMIT_ITEM_BYTES), &call), 0);
    arena_free(&arena);
    lab_close(&lab);
}

TEST(letter_holds_secrets_elsewhere)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    struct func_call call = {.function = SLICE("{\"url\":\"https://example.com/\",\"secret\":\"s3cret\"}"),
                             .payload = SLICE("{}")};
    CHECK_INT(put(&lab, SLICE("{\"requestPayload\":{}}"), &call), 2);
    CHECK(!slice_contains(item_of(&lab, &arena), SLICE("s3cret")));
    CHECK(!read_again(&lab, &call, &arena));
    lab_dynamo(&lab, "DeleteItem",
               "{\"TableName\":\"quipu-invocations\",\"Key\":{\"id\":{\"S\":\"letter/q/i\"},"
               "\"part\":{\"N\":\"1\"}}}",
               &arena);
    CHECK_TEXT(slice_of(read_again(&lab, &call, &arena)), "the call that it held is gone");
    arena_free(&arena);
    lab_close(&lab);
}

TEST(letter_says_why_it_has_no_call)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        {"{\"n\":1}", "it holds no failed call"},
        {"no JSON", "it holds no failed call"},
        {"{\"requestContext\":{\"condition\":\"Success\"}}", "its call did not fail"},
        {"{\"requestContext\":{\"condition\":\"BadReaction\"}}", "its then cannot be carried out"},
        {"{\"DDBStreamBatchInfo\":{}}", "it names records of a stream"},
    };
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(put(&lab, slice_of(cases[i].body), NULL), 1);
        const char *why = read_again(&lab, NULL, &arena);
        CHECK(why && slice_starts(slice_of(why), slice_of(cases[i].why)));
    }
    arena_free(&arena);
    lab_close(&lab);
}
