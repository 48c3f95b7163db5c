/* Walking through pages. */
#include "unit/library_fixture.h"

#define ITEMS 25

static void fill(struct quipu *db)
{
    create_table(db, false);
    for (int i = 0; i < ITEMS; i++) put(db, "a", i, i * i);
}

#define QUERY                                                                                                \
    "{\"TableName\":\"Tab\",\"KeyConditionExpression\":\"k = "                                               \
    ":k\",\"ExpressionAttributeValues\":{\":k\":{\"S\":\"a\"}}"

static void check_walk(struct quipu *db, const char *request, int first, int last)
{
    struct quipu_pages *pages = quipu_pages_open(db, "Query", request);
    const char *json = NULL;
    size_t len = 0;
    int n = first;
    enum quipu_result result;
    while ((result = quipu_pages_next(pages, &json, &len)) == QUIPU_FOUND) {
        CHECK_INT(number_of(json, "n"), n);
        CHECK_INT(number_of(json, "v"), n * n);
        CHECK_INT(len, strlen(json));
        n++;
    }
    CHECK_INT(result, QUIPU_NONE);
    CHECK_INT(n, last + 1);
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_NONE); /* and stays so */
    CHECK(!quipu_pages_position(pages));
    quipu_pages_close(pages);
}

TEST(items_come_one_by_one_over_all_pages)
{
    struct quipu *db = open_or_fail(":memory:");
    fill(db);
    check_walk(db, QUERY "}", 0, ITEMS - 1);
    check_walk(db, QUERY ",\"Limit\":4}", 0, ITEMS - 1);
    check_walk(db, QUERY ",\"Limit\":1}", 0, ITEMS - 1);
    check_walk(db, QUERY ",\"Limit\":25}", 0, ITEMS - 1); /* a last page without items */
    check_walk(db, QUERY ",\"ExclusiveStartKey\":{\"k\":{\"S\":\"a\"},\"n\":{\"N\":\"9\"}},\"Limit\":3}", 10,
               ITEMS - 1);
    quipu_close(db);
}

TEST(items_come_from_a_url_too)
{
    struct served served;
    served_start(&served, NULL);
    struct quipu *db = open_or_fail(served.url);
    fill(db);
    check_walk(db, QUERY ",\"Limit\":4}", 0, ITEMS - 1);
    quipu_close(db);
    served_stop(&served);
}

TEST(a_filter_may_leave_pages_empty)
{
    struct quipu *db = open_or_fail(":memory:");
    const char *json;
    fill(db);
    struct quipu_pages *pages = quipu_pages_open(
        db, "Scan",
        "{\"TableName\":\"Tab\",\"Limit\":2,\"FilterExpression\":\"v > "
        ":v\",\"ExpressionAttributeValues\":{\":v\":{\"N\":\"575\"}}}");
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FOUND);
    CHECK_INT(number_of(json, "n"), 24);
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_NONE);
    quipu_pages_close(pages);
    quipu_close(db);
}

TEST(pages_can_be_counted)
{
    struct quipu *db = open_or_fail(":memory:");
    int count = 0, turns = 0;
    fill(db);
    struct quipu_pages *pages = quipu_pages_open(db, "Scan",
                                                 "{\"TableName\":\"Tab\",\"Limit\":10,\"Select\":\"COUNT\"}");
    CHECK(!quipu_pages_reply(pages));
    while (quipu_pages_turn(pages) == QUIPU_FOUND) {
        const char *at = strstr(quipu_pages_reply(pages)->json, "\"Count\":");
        count += at ? atoi(at + 8) : 0;
        turns++;
    }
    CHECK_INT(count, ITEMS);
    CHECK_INT(turns, 3);
    quipu_pages_close(pages);
    quipu_close(db);
}

TEST(a_walk_goes_on_from_a_position)
{
    struct quipu *db = open_or_fail(":memory:");
    char request[500];
    fill(db);
    struct quipu_pages *pages = quipu_pages_open(db, "Query", QUERY ",\"Limit\":7}");
    CHECK(!quipu_pages_position(pages));
    CHECK_INT(quipu_pages_turn(pages), QUIPU_FOUND);
    CHECK_INT(quipu_pages_turn(pages), QUIPU_FOUND);
    snprintf(request, sizeof request, QUERY ",\"ExclusiveStartKey\":%s}", quipu_pages_position(pages));
    quipu_pages_close(pages);
    check_walk(db, request, 14, ITEMS - 1);
    quipu_close(db);
}

TEST(names_of_tables)
{
    struct quipu *db = open_or_fail(":memory:");
    char request[300], expected[20];
    const char *json;
    for (int i = 0; i < 5; i++) {
        snprintf(request, sizeof request,
                 "{\"TableName\":\"Table%d\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
                 "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"}],"
                 "\"BillingMode\":\"PAY_PER_REQUEST\"}",
                 i);
        call(db, "CreateTable", request);
    }
    struct quipu_pages *pages = quipu_pages_open(db, "ListTables", "{\"Limit\":2}");
    for (int i = 0; i < 5; i++) {
        snprintf(expected, sizeof expected, "\"Table%d\"", i);
        CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FOUND);
        CHECK_TEXT(slice_of(json), expected);
    }
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_NONE);
    quipu_pages_close(pages);
    quipu_close(db);
}

TEST(a_failed_page_can_be_asked_for_again)
{
    struct quipu *db = open_or_fail(":memory:");
    const char *json;
    struct quipu_pages *pages = quipu_pages_open(db, "Query", QUERY ",\"Limit\":4}");
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FAILED);
    CHECK_TEXT(slice_of(quipu_pages_reply(pages)->error), "ResourceNotFoundException");
    fill(db);
    for (int i = 0; i < ITEMS; i++) {
        CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FOUND);
        CHECK_INT(number_of(json, "n"), i);
        if (i == 11) call(db, "DeleteTable", "{\"TableName\":\"Tab\"}");
        if (i == 11) CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FAILED);
        if (i == 11) fill(db);
    }
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_NONE);
    quipu_pages_close(pages);
    quipu_close(db);
}

TEST(requests_that_are_no_walks)
{
    struct quipu *db = open_or_fail(":memory:");
    const char *json;
    CHECK(!quipu_pages_open(db, "PutItem", "{}"));
    struct quipu_pages *pages = quipu_pages_open(db, "Scan", "nonsense");
    CHECK_INT(quipu_pages_next(pages, &json, NULL), QUIPU_FAILED);
    CHECK_TEXT(slice_of(quipu_pages_reply(pages)->error), "SerializationException");
    quipu_pages_close(pages);
    quipu_close(db);
}
