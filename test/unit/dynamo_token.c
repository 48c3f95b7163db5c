/* Requests that get a token so that a repeat is harmless, and those that are left as they are. */
#include "dynamo/internal.h"
#include "unit/test.h"

static const uint64_t bits[2] = {0x0123456789abcdefull, 0xfedcba9876543210ull};

static void check_token(const char *operation, const char *request, const char *expected)
{
    struct arena arena = {0};
    CHECK_TEXT(request_with_token(slice_of(operation), slice_of(request), &arena, bits), expected);
    arena_free(&arena);
}

TEST(transactions_get_a_token)
{
    check_token("TransactWriteItems", "{\"TransactItems\":[]}",
                "{\"ClientRequestToken\":\"0123456789abcdeffedcba9876543210\",\"TransactItems\":[]}");
    check_token("ExecuteTransaction", " { }",
                " {\"ClientRequestToken\":\"0123456789abcdeffedcba9876543210\" }");
    check_token("ImportTable", "{\"a\":{\"ClientToken\":1}}",
                "{\"ClientToken\":\"0123456789abcdeffedcba9876543210\",\"a\":{\"ClientToken\":1}}");
}

TEST(a_token_of_the_callers_stays)
{
    check_token("TransactWriteItems", "{\"a\":1,\"ClientRequestToken\":\"mine\"}",
                "{\"a\":1,\"ClientRequestToken\":\"mine\"}");
}

TEST(other_requests_stay_as_they_are)
{
    check_token("PutItem", "{\"a\":1}", "{\"a\":1}");
    check_token("TransactGetItems", "{}", "{}");
    check_token("TransactWriteItems", "", "");
    check_token("TransactWriteItems", "[1]", "[1]");
    check_token("TransactWriteItems", "{\"a\":1", "{\"a\":1");
    check_token("TransactWriteItems", "{\"a\":1} x", "{\"a\":1} x");
}
