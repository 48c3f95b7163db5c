/* What the load generator can do: one table, each row a request with holes and what its reply must hold.
 *
 * All operations share one table, "bench": partitions "customer#..." of ten items "order#00" to "order#09",
 * and one counter. Only load.c includes this. */
#ifndef BENCH_OPERATIONS_H
#define BENCH_OPERATIONS_H

#include <stdbool.h>

#define BATCH_ITEMS     25  /* DynamoDB's limit of BatchWriteItem */
#define PARTITION_ITEMS 10  /* what one Query returns */
#define LEAF_TASKS      256 /* of a job */

/* ---- templates: bytes 1 to 6 are holes, one digit each ---- */
#define HOLE_PARTITION '\1' /* item / PARTITION_ITEMS */
#define HOLE_ORDER     '\2' /* item % PARTITION_ITEMS; the next hole belongs to the next item */
#define HOLE_RANDOM    '\3' /* new digits in every request, so that no write leaves its item as it was */
#define HOLE_TICKET    '\4' /* the request's number */
#define HOLE_LEAF      '\5' /* its number / LEAF_TASKS, */
#define HOLE_TASK      '\6' /* and % LEAF_TASKS */
#define REPEAT_FROM    '\7' /* what follows, up to REPEAT_TO, comes BATCH_ITEMS times, commas between */
#define REPEAT_TO      '\b'
#define PARTITION      "\1\1\1\1\1\1\1\1\1\1"
#define ORDER          "\2\2"
#define RANDOM_8       "\3\3\3\3\3\3\3\3"
#define TICKET_7       "\4\4\4\4\4\4\4"
#define TICKET_10      "\4\4\4" TICKET_7
#define REPEATED(text) "\7" text "\b"
#define LEAF_7         "\5\5\5\5\5\5\5"
#define TASK_3         "\6\6\6"

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

/* What happened, about 150 bytes; the same for a log and for a stream of Redis. */
#define EVENT                                                                                                \
    "{\"order\":\"" RANDOM_8 "\",\"status\":\"PAID\",\"total\":1" RANDOM_8 ",\"email\":\"customer" RANDOM_8  \
    "@example.com\",\"note\":\"leave it with the neighbours; parcel " RANDOM_8 "\"}"
#define LOG_EVENT "{\"key\":\"customer#" RANDOM_8 "\",\"data\":" EVENT "}"

/* What patterns write, for whoever makes their calls without them. The keys are none of theirs. */
#define RAW_ENTRY                                                                                            \
    "{\"L\":[{\"S\":\"customer#" RANDOM_8 "\"},{\"M\":{\"order\":{\"S\":\"" RANDOM_8 "\"},\"status\":{"      \
    "\"S\":\"PAID\"},\"total\":{\"N\":\"1" RANDOM_8 "\"},\"email\":{\"S\":\"customer" RANDOM_8               \
    "@example.com\"},\"note\":{\"S\":\"leave it with the neighbours; parcel " RANDOM_8 "\"}}}]}"
#define RAW_PAGE(count, entries)                                                                             \
    "{\"TableName\":\"quipu-log-events\",\"Item\":{\"chain\":{\"S\":\"raw\"},\"first\":{\"N\":\"1" RANDOM_8  \
    RANDOM_8 "\"},\"n\":{\"N\":\"" count "\"},\"t\":{\"N\":\"1794739230123\"},\"i\":{\"N\":\"1" RANDOM_8     \
    "\"},\"e\":{\"L\":[" entries "]}},\"ConditionExpression\":\"attribute_not_exists(#first)\","             \
    "\"ExpressionAttributeNames\":{\"#first\":\"first\"},"                                                   \
    "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}"

#define RAW_LEAF                                                                                             \
    "{\"TableName\":\"quipu-job-parts\",\"Key\":{\"part\":{\"S\":\"raw/"                                     \
    "1795039223617-0009fe/0/" LEAF_7                                                       \
    "\"},\"task\":{\"S\":\"-\"}},\"UpdateExpression\":\"ADD #done :tasks DELETE #failed :tasks\","             \
    "\"ConditionExpression\":\"attribute_not_exists(#closed)\",\"ExpressionAttributeNames\":{"             \
    "\"#done\":\"done\",\"#failed\":\"failed\",\"#closed\":\"closed\"},\"ExpressionAttributeValues\":{"      \
    "\":tasks\":{\"NS\":[\"" TASK_3 "\"]}},\"ReturnValues\":\"ALL_OLD\","                                  \
    "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}"
#define RAW_LEASE                                                                                            \
    "{\"TableName\":\"quipu-leases\",\"Key\":{\"name\":{\"S\":\"raw-" TICKET_10 "\"}},\"UpdateExpression\":" \
    "\"SET #owner = :owner, #fence = if_not_exists(#fence, :zero) + :one, #until = :until REMOVE #data\","   \
    "\"ConditionExpression\":\"(attribute_not_exists(#owner) or #until < :now) and "                         \
    "(attribute_not_exists(#waiting) or size(#waiting) = :zero)\",\"ExpressionAttributeNames\":{"            \
    "\"#owner\":\"owner\",\"#fence\":\"fence\",\"#until\":\"until\",\"#data\":\"data\",\"#waiting\":"        \
    "\"waiting\"},"                                                                                          \
    "\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"worker\"},\":zero\":{\"N\":\"0\"},\":one\":{\"N\":"  \
    "\"1\"},"                                                                                                \
    "\":until\":{\"N\":\"1794739830123\"},\":now\":{\"N\":\"1794739230123\"}},\"ReturnValues\":\"ALL_NEW\"," \
    "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}"

enum protocol { DYNAMO, ROUTE, PLAIN, RESP };

struct operation {
    const char *name;
    enum protocol protocol;
    const char *target; /* DYNAMO: the operation; ROUTE: method and path */
    const char *body;   /* RESP: words, a | between them */
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
    {"load", DYNAMO, "BatchWriteItem",
     "{\"RequestItems\":{\"bench\":[" REPEATED("{\"PutRequest\":{\"Item\":{" KEY "," REST "}}}") "]}}",
     "\"UnprocessedItems\":{}", false, "write items 0 .. --items - 1, once"},
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
     "{\"TransactItems\":[{\"Put\":{" TABLE ",\"Item\":{" FRESH "," REST "}}},{\"Put\":{" TABLE
     ",\"Item\":{" FRESH "," REST "}}}]}",
     "{}", false, "TransactWriteItems of two new items"},
    {"create-indexed", DYNAMO, "CreateTable",
     "{" INDEXED ",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":["
     "{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"},{\"AttributeName\":\"sk\",\"AttributeType\":\"S\"},"
     "{\"AttributeName\":\"email\",\"AttributeType\":\"S\"},{\"AttributeName\":\"status\",\"AttributeType\":"
     "\"S\"},"
     "{\"AttributeName\":\"total\",\"AttributeType\":\"N\"}],"
     "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"sk\",\"KeyType\":"
     "\"RANGE\"}],\"GlobalSecondaryIndexes\":["
     "{\"IndexName\":\"by-email\",\"Projection\":{\"ProjectionType\":\"ALL\"},\"KeySchema\":["
     "{\"AttributeName\":\"email\",\"KeyType\":\"HASH\"}]},"
     "{\"IndexName\":\"by-total\",\"Projection\":{\"ProjectionType\":\"ALL\"},\"KeySchema\":["
     "{\"AttributeName\":\"status\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"total\",\"KeyType\":\"RANGE\"}"
     "]}]}",
     "\"TableDescription\"", false, "create the table with two global indexes, once"},
    {"put-indexed", DYNAMO, "PutItem", "{" INDEXED ",\"Item\":{" KEY "," REST "}}", "{}", false,
     "PutItem over a random item of the table with two global indexes"},
    {"http-get", PLAIN, NULL, "", "", false, "GET / (nginx)"},
    {"redis-load", RESP, NULL, "SET|customer#" PARTITION "#" ORDER "|{" REST "}", "+OK", false,
     "SET of items 0 .. --items - 1, once"},
    {"redis-get", RESP, NULL, "GET|customer#" PARTITION "#" ORDER, "\"note\"", false, "GET of a random item"},
    {"redis-set", RESP, NULL, "SET|customer#" PARTITION "#" ORDER "|{" REST "}", "+OK", false,
     "SET of a random item"},
    {"redis-incr", RESP, NULL, "INCR|counter", ":", false, "INCR of one counter"},
    {"redis-xadd", RESP, NULL, "XADD|log|*|data|" EVENT, "$", false, "XADD of one event to one stream"},
    {"counter-next", ROUTE, "POST /v1/counters/bench", "", "{\"value\":", false,
     "the next number of a counter"},
    {"counter-raw-make", ROUTE, "PUT /v1/counters/raw", "{\"value\":0}", "\"value\":0", false,
     "make the counter that counter-raw raises, once"},
    {"counter-raw", DYNAMO, "UpdateItem",
     "{\"TableName\":\"quipu-counters\",\"Key\":{\"name\":{\"S\":\"raw\"}},\"UpdateExpression\":\"ADD #value "
     ":one\",\"ConditionExpression\":\"#value < :most\","
     "\"ExpressionAttributeNames\":{\"#value\":\"value\"},\"ExpressionAttributeValues\":{\":one\":{\"N\":"
     "\"1\"},\":most\":{\"N\":\"9007199254740991\"}},"
     "\"ReturnValues\":\"UPDATED_NEW\",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
     "\"value\":{\"N\":\"", false, "the UpdateItem that counter-next makes"},
    {"job-make", ROUTE, "PUT /v1/jobs/bench", "{\"total\":9000000,\"first\":1000000}", "\"bench\"", false,
     "make the job, once"},
    {"job-done", ROUTE, "POST /v1/jobs/bench/done", "{\"task\":" TICKET_7 "}", "\"counted\":1", false,
     "a task of the job is done; --first from 1000000 on"},
    {"job-raw-leaf", DYNAMO, "UpdateItem", RAW_LEAF, "{", false, "the UpdateItem that job-done makes"},
    {"invoke", ROUTE, "POST /2015-03-31/functions/nothing/invocations",
     "{\"job\":\"bench\",\"task\":" TICKET_7 ",\"attempt\":1}", "null", false,
     "call the function \"nothing\" as a job with each does; --first from 1000000 on"},
    {"log-make", ROUTE, "PUT /v1/logs/bench", "{\"partitions\":1}", "\"bench\"", false,
     "make a log of one partition, once"},
    {"log-make-4", ROUTE, "PUT /v1/logs/bench4", "{\"partitions\":4}", "\"bench4\"", false,
     "make a log of four partitions, once"},
    {"log-append", ROUTE, "POST /v1/logs/bench", LOG_EVENT, "\"sequence\":", false, "append an event"},
    {"log-append-4", ROUTE, "POST /v1/logs/bench4", LOG_EVENT, "\"sequence\":", false,
     "append an event, to one of four partitions"},
    {"log-append-25", ROUTE, "POST /v1/logs/bench", "{\"events\":[" REPEATED(LOG_EVENT) "]}",
     "\"sequence\":", false, "append 25 events at once"},
    {"log-append-25-4", ROUTE, "POST /v1/logs/bench4",
     "{\"events\":[" REPEATED("{\"key\":\"producer#" TICKET_7 "\",\"data\":" EVENT "}") "]}",
     "\"sequence\":", false, "append 25 events of one key at once, to one of four partitions"},
    {"log-raw", DYNAMO, "PutItem", RAW_PAGE("1", RAW_ENTRY), "{}", false,
     "the PutItem that log-append makes for one event"},
    {"log-raw-25", DYNAMO, "PutItem", RAW_PAGE("25", REPEATED(RAW_ENTRY)), "{}", false, "the same of 25 events"},
    {"lease-grant", ROUTE, "POST /v1/leases/bench-" TICKET_10, "{\"owner\":\"worker\",\"for\":\"10m\"}",
     "\"fence\":1,", false, "take a lease that nobody had before"},
    {"lease-release", ROUTE, "DELETE /v1/leases/bench-" TICKET_10 "?owner=worker&fence=1", "",
     "\"released\":true", false, "give it back"},
    {"lease-raw", DYNAMO, "UpdateItem", RAW_LEASE, "\"Attributes\"", false,
     "the UpdateItem that lease-grant makes"},
    {"lease-raw-release", DYNAMO, "UpdateItem",
     "{\"TableName\":\"quipu-leases\",\"Key\":{\"name\":{\"S\":\"raw-" TICKET_10 "\"}},\"UpdateExpression\":"
     "\"SET #until = :now REMOVE #owner, #data\",\"ConditionExpression\":\"#owner = :owner and #fence = "
     ":fence\","
     "\"ExpressionAttributeNames\":{\"#until\":\"until\",\"#owner\":\"owner\",\"#data\":\"data\",\"#fence\":"
     "\"fence\"},\"ExpressionAttributeValues\":{\":owner\":{\"S\":\"worker\"},\":fence\":{\"N\":\"1\"},"
     "\":now\":{\"N\":\"1794739230123\"}},\"ReturnValues\":\"ALL_NEW\","
     "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}",
     "\"Attributes\"", false, "the UpdateItem that lease-release makes"},
};
#define OPERATION_COUNT (sizeof operations / sizeof *operations)

#endif
