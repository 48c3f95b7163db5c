/* A web site that counts its visits, with the database inside the program.
 *
 *     cc -o embed embed.c $(pkg-config --cflags --libs quipu)
 *     ./embed ./visits                    # a folder: run it twice, and the counts go on
 *     ./embed :memory:
 *     ./embed http://127.0.0.1:8000       # the same code against a server, or against Amazon DynamoDB
 *
 * Shows the whole library: opening, calls and their errors, walking through pages, and following a stream. */
#include <quipu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each item counts the visits of one page of one site. The stream tells about every change. */
static const char table[] = "{"
                            "\"TableName\": \"Visits\","
                            "\"AttributeDefinitions\": ["
                            "  {\"AttributeName\": \"site\", \"AttributeType\": \"S\"},"
                            "  {\"AttributeName\": \"page\", \"AttributeType\": \"S\"}],"
                            "\"KeySchema\": ["
                            "  {\"AttributeName\": \"site\", \"KeyType\": \"HASH\"},"
                            "  {\"AttributeName\": \"page\", \"KeyType\": \"RANGE\"}],"
                            "\"BillingMode\": \"PAY_PER_REQUEST\","
                            "\"StreamSpecification\": {\"StreamEnabled\": true, \"StreamViewType\": \"NEW_IMAGE\"}}";

static void die(const char *doing, const char *why)
{
    fprintf(stderr, "%s: %s\n", doing, why);
    exit(1);
}

/* Makes the table unless it is there, which is an error that is no fault. */
static void create_table(struct quipu *db)
{
    struct quipu_reply *reply = quipu_call(db, "CreateTable", table);
    if (reply->error && strcmp(reply->error, "ResourceInUseException") != 0) die("CreateTable", reply->message);
    quipu_reply_free(reply);
}

/* ADD is atomic: visits of many threads and processes are all counted. */
static void count_visit(struct quipu *db, const char *page)
{
    char request[500];
    snprintf(request, sizeof request,
             "{\"TableName\": \"Visits\","
             " \"Key\": {\"site\": {\"S\": \"example.org\"}, \"page\": {\"S\": \"%s\"}},"
             " \"UpdateExpression\": \"ADD visits :one\","
             " \"ExpressionAttributeValues\": {\":one\": {\"N\": \"1\"}},"
             " \"ReturnValues\": \"UPDATED_NEW\"}",
             page);
    struct quipu_reply *reply = quipu_call(db, "UpdateItem", request);
    if (reply->error) die("UpdateItem", reply->message);
    printf("%s: %s\n", page, reply->json);
    quipu_reply_free(reply);
}

/* All pages of the site, in order, however many there are. */
static void print_visits(struct quipu *db)
{
    struct quipu_pages *pages =
        quipu_pages_open(db, "Query",
                         "{\"TableName\": \"Visits\", \"KeyConditionExpression\": \"site = :site\","
                         " \"ExpressionAttributeValues\": {\":site\": {\"S\": \"example.org\"}}}");
    enum quipu_result result;
    const char *item;
    while ((result = quipu_pages_next(pages, &item, NULL)) == QUIPU_FOUND) printf("item: %s\n", item);
    if (result == QUIPU_FAILED) die("Query", quipu_pages_reply(pages)->message);
    quipu_pages_close(pages);
}

/* Prints so many changes; gives up when none comes for five seconds. */
static void print_changes(struct quipu_stream *stream, int count)
{
    struct quipu_record record;
    for (int i = 0; i < count; i++) {
        enum quipu_result result = quipu_stream_next(stream, 5000, &record);
        if (result == QUIPU_FAILED) die("stream", quipu_stream_reply(stream)->message);
        if (result != QUIPU_FOUND) die("stream", "a change is missing");
        printf("change: %s %s\n", record.event, record.json);
    }
}

int main(int argc, char **argv)
{
    char error[QUIPU_ERROR_BYTES];
    const char *where = argc > 1 ? argv[1] : ":memory:";
    struct quipu *db = quipu_open(where, NULL, error, sizeof error);
    if (!db) die(where, error);
    create_table(db);
    struct quipu_stream *stream = quipu_stream_open(db, "Visits", QUIPU_LATEST, error, sizeof error);
    if (!stream) die("stream", error);
    count_visit(db, "/");
    count_visit(db, "/about");
    count_visit(db, "/");
    print_visits(db);
    print_changes(stream, 3);
    quipu_stream_close(stream);
    quipu_close(db);
    return 0;
}
