/* Destinations: what texts name, what is put for them, and which of them can be used. */
#include "base/fail.h"
#include "base/limits.h"
#include "func/internal.h"
#include "unit/func_lab.h"
#include "unit/test.h"

#define SQS(name) "arn:aws:sqs:us-east-1:000000000000:" name

/* Puts into a destination and applies the members; answers their number. */
static unsigned put(struct lab *lab, const char *destination, struct slice document, const char *id)
{
    struct buf members = {0}, request = {0}, reply = {0};
    unsigned count = 0;
    bool put = destination_put(lab->func, slice_of(destination), document, slice_of(id), NULL, &members,
                               &count);
    CHECK_INT(put, count > 0);
    CHECK_INT(members.len > 0, put);
    buf_text(&request, "{\"TransactItems\":[");
    buf_slice(&request, buf_view(&members));
    buf_text(&request, "]}");
    if (put && dynamo_call(lab->dynamo, SLICE("TransactWriteItems"), buf_view(&request), &reply) != 200)
        test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&reply)));
    buf_free(&members);
    buf_free(&request);
    buf_free(&reply);
    return count;
}

static void expect_fault(struct lab *lab, const char *destination, const char *fault)
{
    const char *got = destination_fault(lab->func, slice_of(destination));
    if (!got != !fault || (got && strcmp(got, fault) != 0))
        test_failed(__FILE__, __LINE__, "%s: %s", destination, got ? got : "no fault");
}

static void expect_scan(struct lab *lab, const char *request, const char *items)
{
    struct arena arena = {0};
    struct slice reply = lab_dynamo(lab, "Scan", request, &arena);
    if (!slice_contains(reply, slice_of(items)))
        test_failed(__FILE__, __LINE__, "got %.*s\nexpected %s", SLICE_ARG(reply), items);
    arena_free(&arena);
}

TEST(destination_queues)
{
    static const char *const arns[] = {SQS("letters"), "arn:aws:sns:eu-west-1:123456789012:letters",
                                       "arn:aws-cn:s3:::letters"};
    struct lab lab;
    lab_open(&lab);
    for (int i = 0; i < 3; i++) {
        expect_fault(&lab, arns[i], NULL);
        CHECK_INT(put(&lab, arns[i], SLICE("{\"n\":1}"), "same"), 1);
        CHECK_INT(put(&lab, arns[i], SLICE("{\"n\":2}"), "same"), 1);
    }
    expect_scan(
        &lab, "{\"TableName\":\"quipu-queues\",\"ProjectionExpression\":\"queue, id, body\"}",
        "[{\"body\":{\"S\":\"{\\\"n\\\":2}\"},\"id\":{\"S\":\"same\"},\"queue\":{\"S\":\"letters\"}}]");
    lab_close(&lab);
}

static void make_table(struct lab *lab, const char *name, const char *keys, const char *types)
{
    struct arena arena = {0};
    lab_dynamo(lab, "CreateTable",
               arena_printf(&arena,
                            "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[%s],"
                            "\"AttributeDefinitions\":[%s]}",
                            name, keys, types)
                   .data,
               &arena);
    arena_free(&arena);
}

#define TABLE(name)      "arn:aws:dynamodb:us-east-1:000000000000:table/" name
#define KEY(name, kind)  "{\"AttributeName\":\"" name "\",\"KeyType\":\"" kind "\"}"
#define TYPE(name, type) "{\"AttributeName\":\"" name "\",\"AttributeType\":\"" type "\"}"

TEST(destination_tables)
{
    static const char wrong[] = "the table's key must be \"id\", or \"queue\" and \"id\", of strings";
    struct lab lab;
    lab_open(&lab);
    make_table(&lab, "alone", KEY("id", "HASH"), TYPE("id", "S"));
    make_table(&lab, "both", KEY("queue", "HASH") "," KEY("id", "RANGE"),
               TYPE("queue", "S") "," TYPE("id", "S"));
    make_table(&lab, "numbers", KEY("id", "HASH"), TYPE("id", "N"));
    make_table(&lab, "other", KEY("pk", "HASH"), TYPE("pk", "S"));
    make_table(&lab, "queues", KEY("queue", "HASH"), TYPE("queue", "S"));
    make_table(&lab, "reverse", KEY("id", "HASH") "," KEY("queue", "RANGE"),
               TYPE("queue", "S") "," TYPE("id", "S"));
    expect_fault(&lab, TABLE("alone"), NULL);
    expect_fault(&lab, TABLE("both"), NULL);
    expect_fault(&lab, TABLE("numbers"), wrong);
    expect_fault(&lab, TABLE("other"), wrong);
    expect_fault(&lab, TABLE("queues"), wrong);
    expect_fault(&lab, TABLE("reverse"), wrong);
    expect_fault(&lab, TABLE("missing"), "there is no such table");
    CHECK_INT(put(&lab, TABLE("alone"), SLICE("{}"), "i"), 1);
    CHECK_INT(put(&lab, TABLE("both"), SLICE("{}"), "i"), 1);
    expect_scan(&lab, "{\"TableName\":\"both\",\"ProjectionExpression\":\"queue, id, body\"}",
                "[{\"body\":{\"S\":\"{}\"},\"id\":{\"S\":\"i\"},\"queue\":{\"S\":\"both\"}}]");
    lab_close(&lab);
}

TEST(destination_functions_and_urls)
{
    struct lab lab;
    lab_open(&lab);
    expect_fault(&lab, "arn:aws:lambda:us-east-1:000000000000:function:absent", "there is no such function");
    LAB_EXPECT(&lab, "POST", "/2015-03-31/functions",
               "{\"FunctionName\":\"there\",\"Role\":\"arn:aws:iam::000000000000:role/r\","
               "\"Code\":{\"Queue\":\"letters\"}}",
               201);
    expect_fault(&lab, "arn:aws:lambda:us-east-1:000000000000:function:there", NULL);
    expect_fault(&lab, "https://example.com/hook", NULL);
    CHECK(put(&lab, "arn:aws:lambda:us-east-1:000000000000:function:there", SLICE("{\"n\":1}"), "id-1") > 0);
    CHECK(put(&lab, "https://example.com/hook", SLICE("{\"n\":2}"), "id-2") > 0);
    expect_scan(&lab, "{\"TableName\":\"quipu-invocations\"}", "https://example.com/hook");
    expect_scan(&lab, "{\"TableName\":\"quipu-invocations\"}", "function:there");
    lab_close(&lab);
}

TEST(destination_texts_that_name_none)
{
    static const char *const texts[] = {
        "",
        "letters",
        "arn:aws:sqs:us-east-1:000000000000",
        "arn:aws:sqs:us-east-1:000000000000:",
        "arn:aws:kafka:us-east-1:000000000000:cluster/c",
        "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/2026",
        "arn:aws:lambda:us-east-1:000000000000:layer:l",
        "ftp://example.com/",
        "http://",
    };
    struct lab lab;
    lab_open(&lab);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_fault(
            &lab, texts[i],
            "it is neither the ARN of a queue (SQS, SNS, S3), a function or a DynamoDB table, nor a URL");
        CHECK_INT(put(&lab, texts[i], SLICE("{}"), "i"), 0);
    }
    CHECK_INT(put(&lab, SQS("letters"), SLICE("{}"), ""), 0);
    struct buf large = {0};
    for (int i = 0; i < LIMIT_ITEM_BYTES; i++) buf_byte(&large, ' ');
    CHECK_INT(put(&lab, SQS("letters"), buf_view(&large), "i"), 0);
    buf_free(&large);
    lab_close(&lab);
}
