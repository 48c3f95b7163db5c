/* A database through the library, in memory or behind a served Quipu, and short ways to fill it. */
#ifndef TEST_UNIT_LIBRARY_FIXTURE_H
#define TEST_UNIT_LIBRARY_FIXTURE_H

#include <quipu.h>
#include <stdlib.h>

#include "unit/served.h"
#include "unit/test.h"

static inline struct quipu *open_or_fail(const char *where)
{
    char error[QUIPU_ERROR_BYTES] = "";
    struct quipu *db = quipu_open(where, NULL, error, sizeof error);
    if (!db) test_failed(__FILE__, __LINE__, "%s", error);
    return db;
}

/* The same on whatever may be behind the library: memory, a folder, a server. */
void on_every_engine(void (*check)(struct quipu *db));

/* The error of a reply, for CHECK_TEXT. */
static inline struct slice error_of(const struct quipu_reply *reply)
{
    return slice_of(reply->error ? reply->error : "");
}

/* How many entries the pages have; -1 when they fail. */
static inline int count_pages(struct quipu_pages *pages)
{
    const char *json;
    enum quipu_result result;
    int count = 0;
    while ((result = quipu_pages_next(pages, &json, NULL)) == QUIPU_FOUND) count++;
    quipu_pages_close(pages);
    return result == QUIPU_NONE ? count : -1;
}

/* A call that must go well. */
static inline void call(struct quipu *db, const char *operation, const char *request)
{
    struct quipu_reply *reply = quipu_call(db, operation, request);
    if (reply->error) test_failed(__FILE__, __LINE__, "%s: %s: %s", operation, reply->error, reply->message);
    quipu_reply_free(reply);
}

/* The table Tab with the keys k and n; with a stream of new and old images, or without. */
static inline void create_table(struct quipu *db, bool with_stream)
{
    char request[700];
    snprintf(
        request, sizeof request,
        "{\"TableName\":\"Tab\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"n\",\"KeyType\":\"RANGE\"}],"
        "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"n\",\"AttributeType\":\"N\"}],\"BillingMode\":\"PAY_PER_REQUEST\"%s}",
        with_stream
            ? ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}"
            : "");
    call(db, "CreateTable", request);
}

/* The item k, n with the attribute v. */
static inline void put(struct quipu *db, const char *k, int n, int v)
{
    char request[300];
    snprintf(
        request, sizeof request,
        "{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"%s\"},\"n\":{\"N\":\"%d\"},\"v\":{\"N\":\"%d\"}}}",
        k, n, v);
    call(db, "PutItem", request);
}

/* The number in {"N":"..."} of a member of a JSON text; -1 when there is none. */
static inline int number_of(const char *json, const char *member)
{
    char wanted[50];
    snprintf(wanted, sizeof wanted, "\"%s\":{\"N\":\"", member);
    const char *at = strstr(json, wanted);
    return at ? atoi(at + strlen(wanted)) : -1;
}

#endif
