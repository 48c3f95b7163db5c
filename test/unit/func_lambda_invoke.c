/* Invoke, as far as it goes without a process: what is refused, what a target answers, what is accepted. */
#include <stdlib.h>

#include "base/limits.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ARN       "arn:aws:lambda:us-east-1:000000000000:function:"
#define INVOKE    FUNCTIONS "/q/invocations"

static void open_with_queue(struct lab *lab)
{
    lab_open(lab);
    lab_start(lab);
    LAB_EXPECT(lab, "POST", FUNCTIONS, "{\"FunctionName\":\"q\",\"Code\":{\"Queue\":\"letters\"}}", 201);
}

TEST(lambda_invoke_answers_what_the_target_answers)
{
    struct lab lab;
    open_with_queue(&lab);
    struct answer answer = lab_send(&lab, "POST", INVOKE, "{\"x\":1}", NULL);
    CHECK_INT(answer.status, 200);
    CHECK(slice_contains(answer.headers, SLICE("X-Amz-Executed-Version: $LATEST\r\n")));
    CHECK(!slice_contains(answer.headers, SLICE("X-Amz-Function-Error")));
    CHECK(answer_member(&answer, "quipu.transact").len > 0);
    answer_free(&answer);
    lab_close(&lab);
}

TEST(lambda_invoke_refuses_what_is_no_call)
{
    struct lab lab;
    open_with_queue(&lab);
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/nobody/invocations", "{}", 404, "ResourceNotFoundException",
                "Function not found: " ARN "nobody");
    LAB_REFUSED(&lab, "POST", INVOKE "?Qualifier=7", "{}", 404, "ResourceNotFoundException",
                "Function not found: " ARN "q:7");
    struct answer broken = lab_send(&lab, "POST", INVOKE, "{not json", NULL);
    CHECK_INT(broken.status, 400);
    CHECK(slice_starts(answer_text(&broken, "message"),
                       SLICE("Could not parse request body into json: Could not parse payload into json: ")));
    answer_free(&broken);
    struct answer type = lab_send(&lab, "POST", INVOKE, "{}", "X-Amz-Invocation-Type: Sometimes");
    CHECK_TEXT(
        answer_text(&type, "message"),
        "1 validation error detected: Value 'Sometimes' at 'invocationType' failed to satisfy constraint: "
        "Member must satisfy enum value set: [Event, RequestResponse, DryRun]");
    answer_free(&type);
    struct answer context = lab_send(&lab, "POST", INVOKE, "{}", "X-Amz-Client-Context: bm8ganNvbg==");
    CHECK_TEXT(answer_text(&context, "message"),
               "Client context must be a valid Base64-encoded JSON object.");
    answer_free(&context);
    lab_close(&lab);
}

TEST(lambda_invoke_payloads_have_limits)
{
    struct lab lab;
    char *payload = malloc(LIMIT_EVENT_BYTES + 2);
    open_with_queue(&lab);
    memset(payload, '1', LIMIT_EVENT_BYTES + 1);
    payload[LIMIT_EVENT_BYTES + 1] = 0;
    LAB_REFUSED(&lab, "POST", INVOKE, payload, 413, "RequestTooLargeException",
                "Request must be smaller than 6291456 bytes for the InvokeFunction operation");
    payload[LIMIT_ASYNC_EVENT_BYTES + 1] = 0;
    struct answer answer = lab_send(&lab, "POST", INVOKE, payload, "X-Amz-Invocation-Type: Event");
    CHECK_INT(answer.status, 413);
    CHECK_TEXT(answer_text(&answer, "message"),
               "Request must be smaller than 1048576 bytes for the InvokeFunction operation");
    answer_free(&answer);
    free(payload);
    lab_close(&lab);
}

TEST(lambda_invoke_accepts_events_and_tries)
{
    struct lab lab;
    open_with_queue(&lab);
    struct answer dry = lab_send(&lab, "POST", INVOKE, "{}", "X-Amz-Invocation-Type: DryRun");
    CHECK_INT(dry.status, 204);
    CHECK_INT(dry.body.len, 0);
    answer_free(&dry);
    struct answer event = lab_send(&lab, "POST", INVOKE, "", "X-Amz-Invocation-Type: Event");
    CHECK_INT(event.status, 202);
    CHECK_INT(event.body.len, 0);
    answer_free(&event);
    struct answer old = lab_send(&lab, "POST", "/2014-11-13/functions/q/invoke-async/", "{}", NULL);
    CHECK_INT(old.status, 202);
    answer_free(&old);
    lab_close(&lab);
}

/* Without a sandbox a function that needs a process is told so; its description works all the same. */
TEST(lambda_invoke_without_processes_is_refused)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    lab_start(&lab);
    LAB_EXPECT(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "p", "#!/bin/sh\n", NULL), 201);
    struct answer answer = lab_send(&lab, "POST", FUNCTIONS "/p/invocations", "{}", NULL);
    CHECK_INT(answer.status, 502);
    CHECK(slice_contains(answer.headers, SLICE("InvalidRuntimeException")));
    CHECK(answer_text(&answer, "Message").len > 0);
    answer_free(&answer);
    arena_free(&arena);
    lab_close(&lab);
}
