/* What the load generator can do: one table, each row a request with holes and what its reply must hold.
 *
 * All operations share one table, "bench": partitions "customer#..." of ten items "order#00" to "order#09",
 * and one counter. Only load.c includes this. */
#ifndef BENCH_OPERATIONS_H
#define BENCH_OPERATIONS_H

#include <stdbool.h>

#define BATCH_ITEMS     25 /* DynamoDB's limit of BatchWriteItem */
#define PARTITION_ITEMS 10 /* what one Query returns */

/* ---- templates: bytes 1 to 3 are holes, one digit each ---- */
#define HOLE_PARTITION '\1' /* item / PARTITION_ITEMS */
#define HOLE_ORDER     '\2' /* item % PARTITION_ITEMS; the next hole belongs to the next item */
#define HOLE_RANDOM    '\3' /* new digits in every request, so that no write leaves its item as it was */
#define PARTITION      "\1\1\1\1\1\1\1\1\1\1"
#define ORDER          "\2\2"
#define RANDOM_8       "\3\3\3\3\3\3\3\3"

#define TABLE   "\"TableName\":\"bench\""
#define INDEXED "\"TableName\":\"bench-indexed\""
#define PK      "{\"S\":\"customer#" PARTITION "\"}"
#define KEY     "\"pk\":" PK ",\"sk\":{\"S\":\"order#" ORDER "\"}"
#define FRESH   "\"pk\":{\"S\":\"visitor#" RANDOM_8 RANDOM_8 "\"},\"sk\":{\"S\":\"order#00\"}"
#define COUNTER "\"pk\":{\"S\":\"counter\"},\"sk\":{\"S\":\"hits\"}"
/* With its keys about 220 bytes as DynamoDB counts them. */
#define REST                                                                                                 \
    "\"status\":{\"S\":\"PAID\"},\"total\":{\"N\":\"1" RANDOM_8 ".25\"},\"quantity\":{\"N\":\"12\"},"        \
    "\"email\":{\"S\":\"customer" RANDOM_8 "@example.com\"},\"express\":{\"BOOL\":true},"                    \
    "\"tags\":{\"L\":[{\"S\":\"gift\"},{\"S\":\"fragile\"}]},\"created\":{\"S\":\"2026-11-15T10:20:30Z\"},"  \
    "\"note\":{\"S\":\"leave it with the neighbours; parcel " RANDOM_8 "-" RANDOM_8 "-" RANDOM_8 "\"}"

enum protocol { DYNAMO, PLAIN, RESP };

struct operation {
    const char *name;
    enum protocol protocol;
    const char *target; /* DynamoDB's operation */
    const char *body;   /* RESP: words, a blank between them */
    const char *expect; /* must occur in the reply */
    bool echo_key;      /* the reply must name the partition that was asked for */
    const char *help;
};

static const struct operation operations[] = {
    {"create", DYNAMO, "CreateTable",
     "{" TABLE ",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":["
     "{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"}],"
     "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"sk\",\"KeyType\":"
     "\"RANGE\"}]}",
     "\"TableDescription\"", false, "create the table, once"},
    {"load", DYNAMO, "BatchWriteItem", NULL, "\"UnprocessedItems\":{}", false,
     "write items 0 .. --items - 1, once"},
    {"get-item", DYNAMO, "GetItem", "{" TABLE ",\"Key\":{" KEY "}}", "\"Item\":{", true,
     "GetItem of a random item"},
    {"query", DYNAMO, "Query",
     "{" TABLE ",\"KeyConditionExpression\":\"pk = :p\",\"ExpressionAttributeValues\":{\":p\":" PK "}}",
     "\"Count\":10", true, "Query of the 10 items of a random partition"},
    {"put-item", DYNAMO, "PutItem", "{" TABLE ",\"Item\":{" KEY "," REST "}}", "{}", false,
     "PutItem over a random item"},
    {"put-new", DYNAMO, "PutItem",
     "{" TABLE ",\"ConditionExpression\":\"attribute_not_exists(pk)\",\"Item\":{" FRESH "," REST "}}", "{}",
     false, "PutItem of a new item if its key does not exist"},
    {"update-item", DYNAMO, "UpdateItem",
     "{" TABLE ",\"Key\":{" KEY
     "},\"UpdateExpression\":\"SET quantity = :q\",\"ExpressionAttributeValues\":{\":q\":"
     "{\"N\":\"1" RANDOM_8 "\"}}}",
     "{}", false, "UpdateItem, SET of one attribute of a random item"},
    {"counter", DYNAMO, "UpdateItem",
     "{" TABLE ",\"Key\":{" COUNTER "},\"UpdateExpression\":\"SET hits = if_not_exists(hits, :zero) + :one\","
     "\"ExpressionAttributeValues\":{\":zero\":{\"N\":\"0\"},\":one\":{\"N\":\"1\"}},\"ReturnValues\":"
     "\"UPDATED_NEW\"}",
     "\"hits\":{\"N\":\"", false, "UpdateItem, one counter that everybody raises"},
    {"transact", DYNAMO, "TransactWriteItems",
     "{\"TransactItems\":[{\"Put\":{" TABLE ",\"Item\":{" FRESH "," REST "}}},{\"Put\":{" TABLE ",\"Item\":{" FRESH
     "," REST "}}}]}",
     "{}", false, "TransactWriteItems of two new items"},
    {"create-indexed", DYNAMO, "CreateTable",
     "{" INDEXED ",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":["
     "{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"},"
     "{\"AttributeName\":\"email\",\"AttributeType\":\"S\"},{\"AttributeName\":\"status\",\"AttributeType\":\"S\"},"
     "{\"AttributeName\":\"total\",\"AttributeType\":\"N\"}],"
     "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"sk\",\"KeyType\":"
     "\"RANGE\"}],\"GlobalSecondaryIndexes\":["
     "{\"IndexName\":\"by-email\",\"Projection\":{\"ProjectionType\":\"ALL\"},\"KeySchema\":["
     "{\"AttributeName\":\"email\",\"KeyType\":\"HASH\"}]},"
     "{\"IndexName\":\"by-total\",\"Projection\":{\"ProjectionType\":\"ALL\"},\"KeySchema\":["
     "{\"AttributeName\":\"status\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"total\",\"KeyType\":\"RANGE\"}]}]}",
     "\"TableDescription\"", false, "create the table with two global indexes, once"},
    {"put-indexed", DYNAMO, "PutItem", "{" INDEXED ",\"Item\":{" KEY "," REST "}}", "{}", false,
     "PutItem over a random item of the table with two global indexes"},
    {"http-get", PLAIN, NULL, "", "", false, "GET / (nginx)"},
    {"redis-load", RESP, NULL, "SET customer#" PARTITION "#" ORDER " {" REST "}", "+OK", false,
     "SET of items 0 .. --items - 1, once"},
    {"redis-get", RESP, NULL, "GET customer#" PARTITION "#" ORDER, "\"note\"", false, "GET of a random item"},
    {"redis-set", RESP, NULL, "SET customer#" PARTITION "#" ORDER " {" REST "}", "+OK", false,
     "SET of a random item"},
    {"redis-incr", RESP, NULL, "INCR counter", ":", false, "INCR of one counter"},
};
#define OPERATION_COUNT (sizeof operations / sizeof *operations)

#endif
