/* Versions and aliases by Lambda's API. */
#include "func/registry.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ARN       "arn:aws:lambda:us-east-1:000000000000:function:"

static void create(struct lab *lab, const char *name, const char *more)
{
    struct arena arena = {0};
    LAB_EXPECT(lab, "POST", FUNCTIONS, lab_create_body(&arena, name, "#!/bin/sh\n", more), 201);
    arena_free(&arena);
}

static void check_published(struct lab *lab, const char *body, const char *version, int line)
{
    struct answer answer = lab_send(lab, "POST", FUNCTIONS "/v/versions", body, NULL);
    if (answer.status != 201 || !slice_equal(answer_text(&answer, "Version"), slice_of(version)))
        test_failed(__FILE__, line, "%d %.*s", answer.status, SLICE_ARG(buf_view(&answer.body)));
    answer_free(&answer);
}

TEST(lambda_versions_are_published_once)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "v", NULL);
    struct answer before = lab_send(&lab, "GET", FUNCTIONS "/v", NULL, NULL);
    check_published(&lab, "{\"Description\":\"the first\"}", "1", __LINE__);
    check_published(&lab, "{}", "1", __LINE__); /* nothing has changed */
    struct answer after = lab_send(&lab, "GET", FUNCTIONS "/v", NULL, NULL);
    CHECK(!slice_equal(answer_text(&before, "Configuration.RevisionId"),
                       answer_text(&after, "Configuration.RevisionId")));
    answer_free(&before);
    answer_free(&after);
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/v/configuration", "{\"Timeout\":5}", 200);
    check_published(&lab, "{}", "2", __LINE__);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/v?Qualifier=2", NULL, 204);
    check_published(&lab, "{}", "3", __LINE__); /* numbers are not used again */
    struct answer first = lab_send(&lab, "GET", FUNCTIONS "/v/configuration?Qualifier=1", NULL, NULL);
    CHECK_TEXT(answer_text(&first, "Description"), "the first");
    CHECK_TEXT(answer_member(&first, "Timeout"), "3");
    CHECK_TEXT(answer_text(&first, "FunctionArn"), ARN "v:1");
    answer_free(&first);
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/none/versions", "{}", 404, "ResourceNotFoundException",
                "Function not found: " ARN "none");
    LAB_REFUSED(
        &lab, "POST", FUNCTIONS "/v/versions", "{\"RevisionId\":\"x\"}", 412, "PreconditionFailedException",
        "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias API "
        "to retrieve the latest Revision Id");
    struct answer wrong = lab_send(&lab, "POST", FUNCTIONS "/v/versions", "{\"CodeSha256\":\"somesha\"}",
                                   NULL);
    CHECK_INT(wrong.status, 400);
    CHECK(slice_starts(answer_text(&wrong, "message"),
                       SLICE("CodeSHA256 (somesha) is different from current CodeSHA256 in $LATEST (")));
    answer_free(&wrong);
    lab_close(&lab);
}

/* A change of $LATEST must not end the processes of versions that never change. */
TEST(lambda_versions_have_revisions_above_all_others)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "r", "\"Publish\":true");
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/r/configuration", "{\"Timeout\":5}", 200);
    struct function *published = registry_function(lab.func, SLICE("r"), SLICE("1"), 0);
    struct function *latest = registry_function(lab.func, SLICE("r"), SLICE("$LATEST"), 0);
    CHECK(published->revision > latest->revision);
    function_release(published);
    function_release(latest);
    lab_close(&lab);
}

static struct slice listed(struct lab *lab, const char *target, const char *member, const char *name,
                           struct arena *arena)
{
    struct answer answer = lab_send(lab, "GET", target, NULL, NULL);
    struct json_reader reader;
    struct buf out = {0};
    struct slice list = answer_member(&answer, member);
    json_begin(&reader, list, &answer.arena);
    if (list.len)
        for (json_enter(&reader); json_element(&reader);) {
            const char *start = reader.at;
            struct document element;
            json_skip(&reader);
            CHECK(
                document_parse((struct slice){start, (size_t)(reader.at - start)}, &answer.arena, &element));
            buf_printf(&out, "%.*s ", SLICE_ARG(document_text(&element, name, &answer.arena)));
        }
    if (answer_text(&answer, "NextMarker").len)
        buf_printf(&out, "-> %.*s", SLICE_ARG(answer_text(&answer, "NextMarker")));
    struct slice copy = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    answer_free(&answer);
    return copy;
}

TEST(lambda_versions_are_listed_by_number)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "v", NULL);
    for (int i = 1; i <= 11; i++) {
        LAB_EXPECT(&lab, "PUT", FUNCTIONS "/v/configuration",
                   arena_printf(&arena, "{\"Timeout\":%d}", i).data, 200);
        LAB_EXPECT(&lab, "POST", FUNCTIONS "/v/versions", "{}", 201);
    }
    CHECK_TEXT(listed(&lab, FUNCTIONS "/v/versions", "Versions", "Version", &arena),
               "$LATEST 1 2 3 4 5 6 7 8 9 10 11 ");
    CHECK_TEXT(listed(&lab, FUNCTIONS "/v/versions?MaxItems=3", "Versions", "Version", &arena),
               "$LATEST 1 2 -> 2");
    CHECK_TEXT(listed(&lab, FUNCTIONS "/v/versions?Marker=9&MaxItems=9", "Versions", "Version", &arena),
               "10 11 ");
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- aliases ---- */

TEST(lambda_aliases_live)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "a", "\"Publish\":true");
    struct answer made = lab_send(&lab, "POST", FUNCTIONS "/a/aliases",
                                  "{\"Name\":\"live\",\"FunctionVersion\":\"1\",\"Description\":\"now\"}",
                                  NULL);
    CHECK_INT(made.status, 201);
    CHECK_TEXT(answer_text(&made, "AliasArn"), ARN "a:live");
    CHECK_TEXT(answer_text(&made, "FunctionVersion"), "1");
    struct answer got = lab_send(&lab, "GET", FUNCTIONS "/a/aliases/live", NULL, NULL);
    CHECK(slice_equal(buf_view(&made.body), buf_view(&got.body)));
    answer_free(&got);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/a/aliases", "{\"Name\":\"b\",\"FunctionVersion\":\"$LATEST\"}", 201);
    CHECK_TEXT(listed(&lab, FUNCTIONS "/a/aliases", "Aliases", "Name", &arena), "b live ");
    CHECK_TEXT(listed(&lab, FUNCTIONS "/a/aliases?FunctionVersion=1", "Aliases", "Name", &arena), "live ");
    CHECK_TEXT(listed(&lab, FUNCTIONS "/a/aliases?MaxItems=1", "Aliases", "Name", &arena), "b -> b");
    CHECK_TEXT(listed(&lab, FUNCTIONS "/a/aliases?MaxItems=1&Marker=b", "Aliases", "Name", &arena), "live ");
    struct answer function = lab_send(&lab, "GET", FUNCTIONS "/a:live", NULL, NULL);
    CHECK_TEXT(answer_text(&function, "Configuration.FunctionArn"), ARN "a:live");
    CHECK_TEXT(answer_text(&function, "Configuration.Version"), "1");
    answer_free(&function);
    struct answer updated = lab_send(&lab, "PUT", FUNCTIONS "/a/aliases/live",
                                     "{\"FunctionVersion\":\"$LATEST\"}", NULL);
    CHECK_TEXT(answer_text(&updated, "FunctionVersion"), "$LATEST");
    CHECK_TEXT(answer_text(&updated, "Description"), "now");
    CHECK(!slice_equal(answer_text(&made, "RevisionId"), answer_text(&updated, "RevisionId")));
    struct slice body = arena_printf(&arena, "{\"Description\":\"x\",\"RevisionId\":\"%.*s\"}",
                                     SLICE_ARG(answer_text(&made, "RevisionId")));
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/a/aliases/live", body.data, 412);
    answer_free(&made);
    answer_free(&updated);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/a/aliases/live", NULL, 204);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/a/aliases/live", NULL, 204);
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/a/aliases/live", NULL, 404, "ResourceNotFoundException",
                "Cannot find alias arn: " ARN "a:live");
    LAB_REFUSED(&lab, "PUT", FUNCTIONS "/a/aliases/live", "{}", 404, "ResourceNotFoundException",
                "Alias not found: " ARN "a:live");
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_aliases_that_cannot_be)
{
    static const struct {
        const char *body, *type, *message;
        int status;
    } cases[] = {
        {"{\"Name\":\"x\",\"FunctionVersion\":\"1\","
         "\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"2\":0.5,\"3\":0.1}}}",
         "InvalidParameterValueException",
         "Number of items in AdditionalVersionWeights cannot be greater than 1", 400},
        {"{\"Name\":\"x\",\"FunctionVersion\":\"1\",\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"2\":2.0}}}",
         "ValidationException",
         "1 validation error detected: Value '{2=2.0}' at 'routingConfig.additionalVersionWeights' failed to "
         "satisfy "
         "constraint: Map value must satisfy constraint: [Member must have value less than or equal to 1.0, "
         "Member "
         "must have value greater than or equal to 0.0, Member must not be null]",
         400},
        {"{\"Name\":\"x\",\"FunctionVersion\":\"1\","
         "\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"$LATEST\":0.5}}}",
         "ValidationException",
         "1 validation error detected: Value '{$LATEST=0.5}' at 'routingConfig.additionalVersionWeights' "
         "failed to "
         "satisfy constraint: Map keys must satisfy constraint: [Member must have length less than or equal "
         "to 1024, "
         "Member must have length greater than or equal to 1, Member must satisfy regular expression "
         "pattern: "
         "[0-9]+]",
         400},
        {"{\"Name\":\"x\",\"FunctionVersion\":\"1\",\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"1\":0.5}}}",
         "InvalidParameterValueException",
         "Invalid function version 1. Function version 1 is already included in routing configuration.", 400},
        {"{\"Name\":\"x\",\"FunctionVersion\":\"$LATEST\","
         "\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"1\":0.5}}}",
         "InvalidParameterValueException",
         "$LATEST is not supported for an alias pointing to more than 1 version", 400},
        {"{\"Name\":\"x\",\"FunctionVersion\":\"10\"}", "ResourceNotFoundException",
         "Function not found: " ARN "a:10", 404},
        {"{\"Name\":\"there\",\"FunctionVersion\":\"1\"}", "ResourceConflictException",
         "Alias already exists: " ARN "a:there", 409},
        {"{\"Name\":\"2024\",\"FunctionVersion\":\"1\"}", "ValidationException",
         "1 validation error detected: Value '2024' at 'name' failed to satisfy constraint: Member must "
         "satisfy "
         "regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)",
         400},
    };
    struct lab lab;
    lab_open(&lab);
    create(&lab, "a", "\"Publish\":true");
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/a/aliases", "{\"Name\":\"there\",\"FunctionVersion\":\"1\"}", 201);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        LAB_REFUSED(&lab, "POST", FUNCTIONS "/a/aliases", cases[i].body, cases[i].status, cases[i].type,
                    cases[i].message);
    LAB_REFUSED(&lab, "POST", FUNCTIONS "/none/aliases", "{\"Name\":\"x\",\"FunctionVersion\":\"1\"}", 404,
                "ResourceNotFoundException", "Function not found: " ARN "none:1");
    lab_close(&lab);
}

TEST(lambda_aliases_with_two_versions_go_back_to_one)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "a", "\"Publish\":true");
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/a/configuration", "{\"Timeout\":5}", 200);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/a/versions", "{}", 201);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/a/aliases",
               "{\"Name\":\"x\",\"FunctionVersion\":\"1\","
               "\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"2\":0.2}}}",
               201);
    struct answer both = lab_send(&lab, "GET", FUNCTIONS "/a/aliases/x", NULL, NULL);
    CHECK_TEXT(answer_member(&both, "RoutingConfig.AdditionalVersionWeights"), "{\"2\":0.2}");
    answer_free(&both);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/a:2", NULL, 409);
    struct answer one = lab_send(&lab, "PUT", FUNCTIONS "/a/aliases/x",
                                 "{\"RoutingConfig\":{\"AdditionalVersionWeights\":{}}}", NULL);
    CHECK_INT(one.status, 200);
    CHECK_INT(answer_member(&one, "RoutingConfig").len, 0);
    answer_free(&one);
    lab_close(&lab);
}
