/* Requests that break a constraint, are no JSON, or come to a path that is not offered. */
#include "func/lambda.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define NAME_PATTERN                                                                                         \
    "(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:)?(\\d{12}:)?"   \
    "(function:)?([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?"

TEST(lambda_constraints_in_the_services_words)
{
    static const char *const cases[][2] = {
        {"{}", "3 validation errors"},
        {"{\"Code\":{}}",
         "1 validation error detected: Value null at 'functionName' failed to satisfy constraint: "
         "Member must not be null"},
        {"{\"FunctionName\":\"a b\",\"Code\":{}}", "1 validation error detected: Value 'a b' at "
                                                   "'functionName' failed to satisfy constraint: Member must "
                                                   "satisfy regular expression pattern: " NAME_PATTERN},
        {"{\"FunctionName\":\"\",\"Code\":{}}", "2 validation errors detected: Value '' at 'functionName' "
                                                "failed to satisfy constraint: Member must have "
                                                "length greater than or equal to 1; Value '' at "
                                                "'functionName' failed to satisfy constraint: Member must "
                                                "satisfy regular expression pattern: " NAME_PATTERN},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"Timeout\":901}",
         "1 validation error detected: Value '901' at 'timeout' failed to satisfy constraint: Member must "
         "have value "
         "less than or equal to 900"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"MemorySize\":127,\"Timeout\":0}",
         "2 validation errors detected: Value '0' at 'timeout' failed to satisfy constraint: Member must "
         "have value "
         "greater than or equal to 1; Value '127' at 'memorySize' failed to satisfy constraint: Member must "
         "have "
         "value greater than or equal to 128"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"Role\":\"r1\"}",
         "1 validation error detected: Value 'r1' at 'role' failed to satisfy constraint: Member must "
         "satisfy "
         "regular expression pattern: arn:(aws[a-zA-Z-]*)?:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"Architectures\":[\"x86_64\",\"arm64\"]}",
         "1 validation error detected: Value '[x86_64, arm64]' at 'architectures' failed to satisfy "
         "constraint: "
         "Member must have length less than or equal to 1"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"Architectures\":[\"X86_64\"]}",
         "1 validation error detected: Value '[X86_64]' at 'architectures' failed to satisfy constraint: "
         "Member must "
         "satisfy constraint: [Member must satisfy enum value set: [x86_64, arm64], Member must not be "
         "null]"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"SnapStart\":{\"ApplyOn\":\"invalidOption\"}}",
         "1 validation error detected: Value 'invalidOption' at 'snapStart.applyOn' failed to satisfy "
         "constraint: "
         "Member must satisfy enum value set: [PublishedVersions, None]"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"EphemeralStorage\":{}}",
         "1 validation error detected: Value null at 'ephemeralStorage.size' failed to satisfy constraint: "
         "Member "
         "must not be null"},
        {"{\"FunctionName\":\"f\",\"Code\":{},\"Environment\":{\"Variables\":{\"1\":\"x\"}}}",
         "1 validation error detected: Value '{1=x}' at 'environment.variables' failed to satisfy "
         "constraint: Map "
         "keys must satisfy constraint: [Member must satisfy regular expression pattern: "
         "[a-zA-Z]([a-zA-Z0-9_])+]"},
    };
    struct lab lab;
    lab_open(&lab);
    LAB_REFUSED(&lab, "POST", FUNCTIONS, cases[0][0], 400, "ValidationException",
                "2 validation errors detected: Value null at 'functionName' failed to satisfy constraint: "
                "Member must "
                "not be null; Value null at 'code' failed to satisfy constraint: Member must not be null");
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i++)
        LAB_REFUSED(&lab, "POST", FUNCTIONS, cases[i][0], 400, "ValidationException", cases[i][1]);
    LAB_REFUSED(
        &lab, "POST", FUNCTIONS,
        "{\"FunctionName\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"Code\":{}}",
        400, "InvalidParameterValueException",
        "1 validation error detected: Value "
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' at 'functionName' failed to "
        "satisfy constraint: Member must have length less than or equal to 64");
    lab_close(&lab);
}

TEST(lambda_bodies_that_are_no_requests)
{
    struct lab lab;
    lab_open(&lab);
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"FunctionName\":7}", 400, "SerializationException",
                "NUMBER_VALUE can not be converted to a String");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"Timeout\":\"7\"}", 400, "SerializationException",
                "STRING_VALUE can not be converted to an Integer");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"Timeout\":7.5}", 400, "SerializationException",
                "NUMBER_VALUE can not be converted to an Integer");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"Code\":[]}", 400, "SerializationException",
                "START_ARRAY can not be converted to an Object");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"Tags\":\"x\"}", 400, "SerializationException",
                "STRING_VALUE can not be converted to a Map");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "{\"Publish\":\"x\"}", 400, "SerializationException",
                "STRING_VALUE can not be converted to a Boolean");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, "[]", 400, "SerializationException",
                "START_ARRAY can not be converted to an Object");
    LAB_REFUSED(&lab, "GET", FUNCTIONS "?MaxItems=many", NULL, 400, "SerializationException",
                "STRING_VALUE can not be converted to an Integer: MaxItems");
    static const char *const broken[] = {
        "{", "{\"FunctionName\":\"f\"", "{\"FunctionName\":}", "{} {}", "x", "\x80"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct answer answer = lab_send(&lab, "POST", FUNCTIONS, broken[i], NULL);
        CHECK_INT(answer.status, 400);
        if (!slice_starts(answer_text(&answer, "message"), SLICE("Could not parse request body into json: ")))
            test_failed(__FILE__, __LINE__, "%s: %.*s", broken[i], SLICE_ARG(buf_view(&answer.body)));
        answer_free(&answer);
    }
    lab_close(&lab);
}

/* All operations of the service that are not offered say so. */
TEST(lambda_operations_that_are_not_offered)
{
    static const char *const refused[][2] = {
        {"POST", "/2018-10-31/layers/l/versions/1/policy"},
        {"DELETE", "/2018-10-31/layers/l/versions/1/policy/s"},
        {"POST", "/2020-04-22/code-signing-configs/"},
        {"GET", "/2020-04-22/code-signing-configs/arn/functions"},
        {"PUT", "/2020-06-30/functions/f/code-signing-config"},
        {"PUT", "/2019-09-30/functions/f/provisioned-concurrency"},
        {"POST", "/2025-11-30/capacity-providers"},
        {"PUT", "/2025-11-30/functions/f/function-scaling-config"},
        {"GET", "/2025-12-01/durable-executions/arn/history"},
        {"POST", "/2025-12-01/durable-execution-callbacks/c/succeed"},
        {"PUT", "/2026-07-09/resource-policy/arn"},
        {"POST", "/2021-11-15/functions/f/response-streaming-invocations"},
    };
    struct lab lab;
    lab_open(&lab);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct answer answer = lab_send(&lab, refused[i][0], refused[i][1], "{}", NULL);
        if (answer.status != 400 || !slice_contains(answer.headers, SLICE("UnsupportedOperationException")))
            test_failed(__FILE__, __LINE__, "%s: %d %.*s", refused[i][1], answer.status,
                        SLICE_ARG(buf_view(&answer.body)));
        answer_free(&answer);
    }
    LAB_EXPECT(&lab, "GET", "/2018-10-31/layers", NULL, 200);
    LAB_EXPECT(&lab, "GET", "/2020-04-22/code-signing-configs", NULL, 200);
    LAB_EXPECT(&lab, "GET", "/2015-03-31/event-source-mappings", NULL, 404); /* the triggers' */
    LAB_EXPECT(&lab, "PATCH", FUNCTIONS, NULL, 405);
    lab_close(&lab);
}

/* Values that nobody can read are cut, at a character's edge. */
TEST(lambda_long_values_are_cut_in_messages)
{
    struct lab lab;
    struct buf body = {0};
    lab_open(&lab);
    buf_text(&body, "{\"FunctionName\":\"");
    for (int i = 0; i < 100000; i++) buf_text(&body, "\xc3\xa4");
    buf_text(&body, "\",\"Code\":{}}");
    buf_byte(&body, 0);
    struct answer answer = lab_send(&lab, "POST", FUNCTIONS, body.data, NULL);
    CHECK_INT(answer.status, 400);
    CHECK(answer.body.len < 4096);
    CHECK(utf8_valid(buf_view(&answer.body)));
    answer_free(&answer);
    buf_free(&body);
    lab_close(&lab);
}
