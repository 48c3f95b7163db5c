/* Concurrency, asynchronous calls, recursion, runtime management, tags, policies, the account. */
#include "func/lambda.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ARN       "arn:aws:lambda:us-east-1:000000000000:function:"
#define TAGS      "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3A"
#define EVENTS    "/2019-09-25/functions/f/event-invoke-config"

static void open_with_function(struct lab *lab)
{
    struct arena arena = {0};
    lab_open(lab);
    LAB_EXPECT(lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "#!/bin/sh\n", "\"Publish\":true"), 201);
    arena_free(&arena);
}

static void check_body(struct lab *lab, const char *method, const char *target, const char *body,
                       const char *expected, int line)
{
    struct answer answer = lab_send(lab, method, target, body, NULL);
    if (answer.status / 100 != 2 || !slice_equal(buf_view(&answer.body), slice_of(expected)))
        test_failed(__FILE__, line, "%d %.*s, expected %s", answer.status, SLICE_ARG(buf_view(&answer.body)),
                    expected);
    answer_free(&answer);
}

TEST(lambda_reserved_concurrency)
{
    struct lab lab;
    open_with_function(&lab);
    check_body(&lab, "GET", "/2019-09-30/functions/f/concurrency", NULL, "{}", __LINE__);
    check_body(&lab, "PUT", "/2017-10-31/functions/f/concurrency", "{\"ReservedConcurrentExecutions\":0}",
               "{\"ReservedConcurrentExecutions\":0}", __LINE__);
    check_body(&lab, "GET", "/2019-09-30/functions/f/concurrency", NULL,
               "{\"ReservedConcurrentExecutions\":0}", __LINE__);
    struct answer function = lab_send(&lab, "GET", FUNCTIONS "/f", NULL, NULL);
    CHECK_TEXT(answer_member(&function, "Concurrency.ReservedConcurrentExecutions"), "0");
    answer_free(&function);
    check_body(&lab, "DELETE", "/2017-10-31/functions/f/concurrency", NULL, "", __LINE__);
    check_body(&lab, "GET", "/2019-09-30/functions/f/concurrency", NULL, "{}", __LINE__);
    LAB_REFUSED(&lab, "PUT", "/2017-10-31/functions/none/concurrency", "{\"ReservedConcurrentExecutions\":1}",
                404, "ResourceNotFoundException", "Function not found: " ARN "none:$LATEST");
    LAB_REFUSED(&lab, "PUT", "/2017-10-31/functions/f/concurrency", "{\"ReservedConcurrentExecutions\":-1}",
                400, "ValidationException",
                "1 validation error detected: Value '-1' at 'reservedConcurrentExecutions' failed to satisfy "
                "constraint: Member must have value greater than or equal to 0");
    lab_close(&lab);
}

TEST(lambda_account_settings)
{
    struct lab lab;
    open_with_function(&lab);
    LAB_EXPECT(&lab, "PUT", "/2017-10-31/functions/f/concurrency", "{\"ReservedConcurrentExecutions\":30}",
               200);
    struct answer answer = lab_send(&lab, "GET", "/2016-08-19/account-settings/", NULL, NULL);
    CHECK_INT(answer.status, 200);
    CHECK_TEXT(answer_member(&answer, "AccountLimit.ConcurrentExecutions"), "100");
    CHECK_TEXT(answer_member(&answer, "AccountLimit.UnreservedConcurrentExecutions"), "70");
    CHECK_TEXT(answer_member(&answer, "AccountLimit.CodeSizeUnzipped"), "262144000");
    CHECK_TEXT(answer_member(&answer, "AccountUsage.FunctionCount"), "1");
    answer_free(&answer);
    lab_close(&lab);
}

TEST(lambda_event_invoke_configs)
{
    struct lab lab;
    open_with_function(&lab);
    LAB_REFUSED(&lab, "GET", EVENTS, NULL, 404, "ResourceNotFoundException",
                "The function " ARN "f:$LATEST doesn't have an EventInvokeConfig");
    LAB_REFUSED(&lab, "POST", EVENTS, "{\"MaximumRetryAttempts\":0}", 404, "ResourceNotFoundException",
                "The function " ARN "f:$LATEST doesn't have an EventInvokeConfig");
    LAB_REFUSED(&lab, "PUT", EVENTS, "{}", 400, "InvalidParameterValueException",
                "You must specify at least one of error handling or destination setting.");
    LAB_REFUSED(
        &lab, "PUT", EVENTS, "{\"MaximumRetryAttempts\":3,\"MaximumEventAgeInSeconds\":59}", 400,
        "ValidationException",
        "2 validation errors detected: Value '3' at 'maximumRetryAttempts' failed to satisfy constraint: "
        "Member must have value less than or equal to 2; Value '59' at 'maximumEventAgeInSeconds' failed to "
        "satisfy constraint: Member must have value greater than or equal to 60");
    LAB_REFUSED(&lab, "PUT", EVENTS, "{\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"" ARN "f\"}}}",
                400, "InvalidParameterValueException",
                "You can't specify the function as a destination for itself.");
    LAB_REFUSED(&lab, "PUT", "/2019-09-25/functions/none/event-invoke-config", "{\"MaximumRetryAttempts\":0}",
                404, "ResourceNotFoundException", "The function doesn't exist.");
    struct answer put = lab_send(&lab, "PUT", EVENTS, "{\"MaximumEventAgeInSeconds\":60}", NULL);
    CHECK_INT(put.status, 200);
    CHECK_TEXT(answer_text(&put, "FunctionArn"), ARN "f:$LATEST");
    CHECK_TEXT(answer_member(&put, "MaximumEventAgeInSeconds"), "60");
    CHECK_TEXT(answer_member(&put, "DestinationConfig"), "{\"OnSuccess\":{},\"OnFailure\":{}}");
    CHECK_INT(answer_member(&put, "MaximumRetryAttempts").len, 0);
    answer_free(&put);
    struct answer updated = lab_send(&lab, "POST", EVENTS, "{\"MaximumRetryAttempts\":1}", NULL);
    CHECK_TEXT(answer_member(&updated, "MaximumEventAgeInSeconds"), "60");
    CHECK_TEXT(answer_member(&updated, "MaximumRetryAttempts"), "1");
    answer_free(&updated);
    LAB_EXPECT(&lab, "PUT", EVENTS "?Qualifier=1", "{\"MaximumRetryAttempts\":2}", 200);
    struct answer list = lab_send(&lab, "GET", EVENTS "/list?MaxItems=1", NULL, NULL);
    CHECK_TEXT(answer_text(&list, "NextMarker"), "$LATEST");
    answer_free(&list);
    struct answer rest = lab_send(&lab, "GET", EVENTS "/list?Marker=%24LATEST", NULL, NULL);
    CHECK(slice_contains(buf_view(&rest.body), SLICE(ARN "f:1")) && !answer_text(&rest, "NextMarker").len);
    answer_free(&rest);
    LAB_EXPECT(&lab, "DELETE", EVENTS, NULL, 204);
    LAB_EXPECT(&lab, "DELETE", EVENTS, NULL, 404);
    LAB_EXPECT(&lab, "GET", EVENTS "?Qualifier=1", NULL, 200);
    lab_close(&lab);
}

TEST(lambda_recursion_and_runtime_management)
{
    struct lab lab;
    open_with_function(&lab);
    check_body(&lab, "GET", "/2024-08-31/functions/f/recursion-config", NULL,
               "{\"RecursiveLoop\":\"Terminate\"}", __LINE__);
    check_body(&lab, "PUT", "/2024-08-31/functions/f/recursion-config", "{\"RecursiveLoop\":\"Allow\"}",
               "{\"RecursiveLoop\":\"Allow\"}", __LINE__);
    check_body(&lab, "GET", "/2024-08-31/functions/f/recursion-config", NULL, "{\"RecursiveLoop\":\"Allow\"}",
               __LINE__);
    LAB_REFUSED(
        &lab, "PUT", "/2024-08-31/functions/f/recursion-config", "{\"RecursiveLoop\":\"InvalidValue\"}", 400,
        "ValidationException",
        "1 validation error detected: Value 'InvalidValue' at 'recursiveLoop' failed to satisfy constraint: "
        "Member must satisfy enum value set: [Terminate, Allow]");
    check_body(&lab, "GET", "/2021-07-20/functions/f/runtime-management-config", NULL,
               "{\"FunctionArn\":\"" ARN "f\",\"UpdateRuntimeOn\":\"Auto\"}", __LINE__);
    check_body(&lab, "PUT", "/2021-07-20/functions/f/runtime-management-config?Qualifier=1",
               "{\"UpdateRuntimeOn\":\"FunctionUpdate\"}",
               "{\"FunctionArn\":\"" ARN "f:1\",\"UpdateRuntimeOn\":\"FunctionUpdate\"}", __LINE__);
    check_body(&lab, "GET", "/2021-07-20/functions/f/runtime-management-config?Qualifier=1", NULL,
               "{\"FunctionArn\":\"" ARN "f:1\",\"UpdateRuntimeOn\":\"FunctionUpdate\"}", __LINE__);
    lab_close(&lab);
}

TEST(lambda_tags)
{
    struct lab lab;
    struct buf many = {0};
    open_with_function(&lab);
    check_body(&lab, "GET", TAGS "f", NULL, "{\"Tags\":{}}", __LINE__);
    check_body(&lab, "POST", TAGS "f", "{\"Tags\":{\"a\":\"1\",\"b c\":\"2\"}}", "", __LINE__);
    check_body(&lab, "POST", TAGS "f", "{\"Tags\":{\"a\":\"3\"}}", "", __LINE__);
    check_body(&lab, "GET", TAGS "f", NULL, "{\"Tags\":{\"a\":\"3\",\"b c\":\"2\"}}", __LINE__);
    check_body(&lab, "DELETE", TAGS "f?tagKeys=b%20c&tagKeys=unknown", NULL, "", __LINE__);
    check_body(&lab, "GET", TAGS "f", NULL, "{\"Tags\":{\"a\":\"3\"}}", __LINE__);
    LAB_REFUSED(
        &lab, "DELETE", TAGS "f", NULL, 400, "ValidationException",
        "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: Member must not "
        "be null");
    LAB_REFUSED(&lab, "POST", TAGS "f", "{\"Tags\":{}}", 400, "InvalidParameterValueException",
                "An error occurred and the request cannot be processed.");
    LAB_REFUSED(&lab, "POST", TAGS "none", "{\"Tags\":{\"a\":\"1\"}}", 404, "ResourceNotFoundException",
                "Function not found: " ARN "none");
    LAB_REFUSED(&lab, "GET", TAGS "f%3A1", NULL, 400, "InvalidParameterValueException",
                "Tags on function aliases and versions are not supported. Please specify a function ARN.");
    LAB_EXPECT(&lab, "GET", "/2017-03-31/tags/something", NULL, 400);
    buf_text(&many, "{\"Tags\":{");
    for (int i = 0; i < 50; i++) buf_printf(&many, "%s\"t%d\":\"\"", i ? "," : "", i);
    buf_text(&many, "}}");
    buf_byte(&many, 0);
    LAB_REFUSED(&lab, "POST", TAGS "f", many.data, 400, "InvalidParameterValueException",
                "Number of tags exceeds resource tag limit.");
    buf_free(&many);
    lab_close(&lab);
}

TEST(lambda_policies)
{
    struct lab lab;
    open_with_function(&lab);
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/f/policy", NULL, 404, "ResourceNotFoundException",
                "The resource you requested does not exist.");
    struct answer added = lab_send(
        &lab, "POST", FUNCTIONS "/f/policy",
        "{\"StatementId\":\"s3\",\"Action\":\"lambda:InvokeFunction\","
        "\"Principal\":\"s3.amazonaws.com\",\"SourceArn\":\"arn:aws:s3:::b\","
        "\"SourceAccount\":\"123456789012\"}",
        NULL);
    CHECK_INT(added.status, 201);
    CHECK_TEXT(
        answer_text(&added, "Statement"),
        "{\"Sid\":\"s3\",\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"s3.amazonaws.com\"},\"Action\":"
        "\"lambda:InvokeFunction\",\"Resource\":\"" ARN "f\",\"Condition\":{\"ArnLike\":{"
        "\"AWS:SourceArn\":\"arn:aws:s3:::b\"},\"StringEquals\":{\"AWS:SourceAccount\":\"123456789012\"}}}");
    answer_free(&added);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/f/policy",
               "{\"StatementId\":\"a\",\"Action\":\"lambda:*\",\"Principal\":\"123456789012\"}", 201);
    LAB_REFUSED(
        &lab, "POST", FUNCTIONS "/f/policy",
        "{\"StatementId\":\"s3\",\"Action\":\"lambda:InvokeFunction\",\"Principal\":\"*\"}", 409,
        "ResourceConflictException",
        "The statement id (s3) provided already exists. Please provide a new statement id, or remove the "
        "existing statement.");
    struct answer got = lab_send(&lab, "GET", FUNCTIONS "/f/policy", NULL, NULL);
    struct slice policy = answer_text(&got, "Policy");
    CHECK(slice_starts(policy, SLICE("{\"Version\":\"2012-10-17\",\"Id\":\"default\",\"Statement\":[{")));
    CHECK(slice_contains(policy, SLICE("\"Principal\":{\"AWS\":\"arn:aws:iam::123456789012:root\"}")));
    CHECK_INT(answer_text(&got, "RevisionId").len, 36);
    answer_free(&got);
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/f/policy?Qualifier=$LATEST",
                "{\"StatementId\":\"x\",\"Action\":\"*\",\"Principal\":\"*\"}", 400,
                "InvalidParameterValueException", "We currently do not support adding policies for $LATEST.");
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/f/policy?Qualifier=nobody",
                "{\"StatementId\":\"x\",\"Action\":\"*\",\"Principal\":\"*\"}", 404,
                "ResourceNotFoundException", "Cannot find alias arn: " ARN "f:nobody");
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/f/policy?Qualifier=42",
                "{\"StatementId\":\"x\",\"Action\":\"*\",\"Principal\":\"*\"}", 404,
                "ResourceNotFoundException", "Function not found: " ARN "f:42");
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/f/policy/nobody", NULL, 404, "ResourceNotFoundException",
                "Statement nobody is not found in resource policy.");
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/f/policy/s3?RevisionId=x", NULL, 412);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/f/policy/s3", NULL, 204);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/f/policy/a", NULL, 204);
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/f/policy/a", NULL, 404, "ResourceNotFoundException",
                "No policy is associated with the given resource.");
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/none/policy/a", NULL, 404, "ResourceNotFoundException",
                "No policy found for: " ARN "none");
    lab_close(&lab);
}

TEST(lambda_settings_that_there_are_none_of)
{
    struct lab lab;
    open_with_function(&lab);
    check_body(&lab, "GET", "/2020-06-30/functions/f/code-signing-config", NULL, "{\"FunctionName\":\"f\"}",
               __LINE__);
    check_body(&lab, "GET", "/2021-10-31/functions/f/urls", NULL, "{\"FunctionUrlConfigs\":[]}", __LINE__);
    check_body(&lab, "GET", "/2019-09-30/functions/f/provisioned-concurrency?List=ALL", NULL,
               "{\"ProvisionedConcurrencyConfigs\":[]}", __LINE__);
    LAB_REFUSED(&lab, "GET", "/2021-10-31/functions/f/url", NULL, 404, "ResourceNotFoundException",
                "The resource you requested does not exist.");
    LAB_REFUSED(&lab, "GET", "/2019-09-30/functions/f/provisioned-concurrency?Qualifier=1", NULL, 404,
                "ProvisionedConcurrencyConfigNotFoundException",
                "No Provisioned Concurrency Config found for this function");
    lab_close(&lab);
}
