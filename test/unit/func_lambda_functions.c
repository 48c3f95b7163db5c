/* Functions by Lambda's API: made, described, listed, changed, deleted. */
#include "base/limits.h"
#include "func/registry.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ARN       "arn:aws:lambda:us-east-1:000000000000:function:"
#define ROLE      "\"Role\":\"arn:aws:iam::000000000000:role/r\""

static void create(struct lab *lab, const char *name, const char *more)
{
    struct arena arena = {0};
    LAB_EXPECT(lab, "POST", FUNCTIONS, lab_create_body(&arena, name, "#!/bin/sh\n", more), 201);
    arena_free(&arena);
}

TEST(lambda_create_function_answers_its_configuration)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    struct answer made = lab_send(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "plain", "x", NULL), NULL);
    CHECK_INT(made.status, 201);
    CHECK_TEXT(answer_text(&made, "FunctionName"), "plain");
    CHECK_TEXT(answer_text(&made, "FunctionArn"), ARN "plain");
    CHECK_TEXT(answer_text(&made, "Version"), "$LATEST");
    CHECK_TEXT(answer_text(&made, "State"), "Active");
    CHECK_TEXT(answer_text(&made, "LastUpdateStatus"), "Successful");
    CHECK_TEXT(answer_member(&made, "Timeout"), "3");
    CHECK_TEXT(answer_member(&made, "MemorySize"), "128");
    CHECK_TEXT(answer_member(&made, "EphemeralStorage.Size"), "512");
    CHECK_TEXT(answer_member(&made, "Architectures"), "[\"x86_64\"]");
    CHECK_TEXT(answer_text(&made, "PackageType"), "Zip");
    CHECK_TEXT(answer_text(&made, "TracingConfig.Mode"), "PassThrough");
    CHECK_TEXT(answer_text(&made, "SnapStart.OptimizationStatus"), "Off");
    CHECK_TEXT(answer_text(&made, "LoggingConfig.LogGroup"), "/aws/lambda/plain");
    CHECK_TEXT(answer_text(&made, "Description"), "");
    CHECK_INT(answer_text(&made, "RevisionId").len, 36);
    CHECK_INT(answer_text(&made, "LastModified").len, 28);
    CHECK_INT(answer_text(&made, "CodeSha256").len, 44);
    CHECK_INT(answer_member(&made, "Revision").len, 0); /* ours */
    CHECK_INT(answer_member(&made, "Quipu").len, 0);
    answer_free(&made);
    LAB_REFUSED(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "plain", "y", NULL), 409,
                "ResourceConflictException", "Function already exist: plain");
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_settings_are_described_back)
{
    struct lab lab;
    lab_open(&lab);
    create(
        &lab, "settings",
        "\"Description\":\"d\\u00e9crit\",\"Timeout\":900,\"MemorySize\":10240,"
        "\"VpcConfig\":{\"SubnetIds\":[\"subnet-1\"],\"SecurityGroupIds\":[\"sg-1\"]},"
        "\"Environment\":{\"Variables\":{\"A1\":\"x\",\"B2\":\"\\u00fc\"}},"
        "\"KMSKeyArn\":\"arn:aws:kms:us-east-1:000000000000:key/k\",\"TracingConfig\":{\"Mode\":\"Active\"},"
        "\"Layers\":[],\"Architectures\":[\"arm64\"],\"EphemeralStorage\":{\"Size\":1024},"
        "\"SnapStart\":{\"ApplyOn\":\"PublishedVersions\"},\"LoggingConfig\":{\"LogFormat\":\"JSON\"},"
        "\"Tags\":{\"team\":\"a b\"},\"FutureMember\":{\"x\":[1]}");
    struct answer got = lab_send(&lab, "GET", FUNCTIONS "/settings", NULL, NULL);
    CHECK_TEXT(answer_text(&got, "Configuration.Description"), "d\xc3\xa9"
                                                               "crit");
    CHECK_TEXT(answer_member(&got, "Configuration.Timeout"), "900");
    CHECK_TEXT(answer_member(&got, "Configuration.VpcConfig.SubnetIds"), "[\"subnet-1\"]");
    CHECK_TEXT(answer_text(&got, "Configuration.Environment.Variables.B2"), "\xc3\xbc");
    CHECK_TEXT(answer_text(&got, "Configuration.KMSKeyArn"), "arn:aws:kms:us-east-1:000000000000:key/k");
    CHECK_TEXT(answer_text(&got, "Configuration.TracingConfig.Mode"), "Active");
    CHECK_TEXT(answer_member(&got, "Configuration.Architectures"), "[\"arm64\"]");
    CHECK_TEXT(answer_member(&got, "Configuration.EphemeralStorage.Size"), "1024");
    CHECK_TEXT(answer_text(&got, "Configuration.SnapStart.ApplyOn"), "PublishedVersions");
    CHECK_TEXT(answer_text(&got, "Configuration.LoggingConfig.LogFormat"), "JSON");
    CHECK_TEXT(answer_text(&got, "Configuration.LoggingConfig.LogGroup"), "/aws/lambda/settings");
    CHECK_TEXT(answer_text(&got, "Tags.team"), "a b");
    CHECK_INT(answer_member(&got, "Configuration.FutureMember").len, 0);
    CHECK_INT(answer_member(&got, "Configuration.Layers").len, 0);
    answer_free(&got);
    lab_close(&lab);
}

TEST(lambda_update_configuration_changes_what_is_given)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "changes",
           "\"Timeout\":10,\"Environment\":{\"Variables\":{\"AA\":\"1\"}},\"KMSKeyArn\":\"arn:aws:k:\"");
    struct answer before = lab_send(&lab, "GET", FUNCTIONS "/changes/configuration", NULL, NULL);
    struct answer after = lab_send(
        &lab, "PUT", FUNCTIONS "/changes/configuration",
        "{\"MemorySize\":256,\"Environment\":{\"Variables\":{}},\"KMSKeyArn\":\"\"}", NULL);
    CHECK_INT(after.status, 200);
    CHECK_TEXT(answer_member(&after, "Timeout"), "10");
    CHECK_TEXT(answer_member(&after, "MemorySize"), "256");
    CHECK_TEXT(answer_member(&after, "Environment.Variables"), "{}");
    CHECK_INT(answer_member(&after, "KMSKeyArn").len, 0);
    CHECK(!slice_equal(answer_text(&before, "RevisionId"), answer_text(&after, "RevisionId")));
    struct slice body = arena_printf(&after.arena, "{\"Timeout\":20,\"RevisionId\":\"%.*s\"}",
                                     SLICE_ARG(answer_text(&before, "RevisionId")));
    LAB_REFUSED(
        &lab, "PUT", FUNCTIONS "/changes/configuration", body.data, 412, "PreconditionFailedException",
        "The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias API "
        "to retrieve the latest Revision Id");
    body = arena_printf(&after.arena, "{\"Timeout\":20,\"RevisionId\":\"%.*s\"}",
                        SLICE_ARG(answer_text(&after, "RevisionId")));
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/changes/configuration", body.data, 200);
    answer_free(&before);
    answer_free(&after);
    lab_close(&lab);
}

TEST(lambda_code_is_changed_published_and_tried)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "code", NULL);
    struct answer first = lab_send(&lab, "GET", FUNCTIONS "/code/configuration", NULL, NULL);
    struct answer dry = lab_send(&lab, "PUT", FUNCTIONS "/code/code",
                                 "{\"Directory\":\"/tmp\",\"DryRun\":true}", NULL);
    CHECK_INT(dry.status, 200);
    CHECK_TEXT(answer_text(&dry, "Quipu.Directory"), "/tmp");
    struct answer same = lab_send(&lab, "GET", FUNCTIONS "/code/configuration", NULL, NULL);
    CHECK(slice_equal(buf_view(&first.body), buf_view(&same.body)));
    struct answer changed = lab_send(&lab, "PUT", FUNCTIONS "/code/code",
                                     "{\"Directory\":\"/tmp\",\"Publish\":true}", NULL);
    CHECK_TEXT(answer_text(&changed, "Version"), "1");
    CHECK_TEXT(answer_text(&changed, "FunctionArn"), ARN "code:1");
    struct function *function = registry_function(lab.func, SLICE("code"), SLICE("1"), 0);
    CHECK(function && function->in_place);
    CHECK_TEXT(function->folder, "/tmp");
    function_release(function);
    answer_free(&first);
    answer_free(&dry);
    answer_free(&same);
    answer_free(&changed);
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_targets_without_a_process)
{
    struct lab lab;
    lab_open(&lab);
    struct answer url = lab_send(&lab, "POST", FUNCTIONS,
                                 "{\"FunctionName\":\"hook\",\"Code\":{\"Url\":\"http://127.0.0.1:9/x\","
                                 "\"Secret\":\"hush\"},\"Timeout\":7}",
                                 NULL);
    CHECK_INT(url.status, 201);
    CHECK_TEXT(answer_text(&url, "Quipu.Url"), "http://127.0.0.1:9/x");
    CHECK(!slice_contains(buf_view(&url.body), SLICE("hush")));
    answer_free(&url);
    LAB_EXPECT(&lab, "POST", FUNCTIONS, "{\"FunctionName\":\"copy\",\"Code\":{\"Table\":\"mirror\"}}", 201);
    LAB_EXPECT(&lab, "POST", FUNCTIONS, "{\"FunctionName\":\"dead\",\"Code\":{\"Queue\":\"letters\"}}", 201);
    lab_reopen(&lab);
    struct function *function = registry_function(lab.func, SLICE("hook"), SLICE(""), 0);
    CHECK_INT(function->kind, FUNCTION_HTTP);
    CHECK_TEXT(function->secret, "hush");
    CHECK_INT(function->timeout_ms, 7000);
    function_release(function);
    function = registry_function(lab.func, SLICE("copy"), SLICE(""), 0);
    CHECK_INT(function->kind, FUNCTION_TABLE);
    CHECK_TEXT(function->table, "mirror");
    function_release(function);
    function = registry_function(lab.func, SLICE("dead"), SLICE(""), 0);
    CHECK_INT(function->kind, FUNCTION_QUEUE);
    CHECK_TEXT(function->queue, "letters");
    function_release(function);
    LAB_REFUSED(
        &lab, "PUT", FUNCTIONS "/copy/code", "{\"Directory\":\"/tmp\"}", 400,
        "InvalidParameterValueException",
        "Runtime and Handler are mandatory parameters for functions created with deployment packages.");
    LAB_REFUSED(&lab, "GET", "/v1/functions/copy/code", NULL, 404, "ResourceNotFoundException",
                "This function has no archive.");
    lab_close(&lab);
}

TEST(lambda_code_that_cannot_be_used)
{
    static const char *const cases[][3] = {
        {"{\"S3Bucket\":\"b\",\"S3Key\":\"k\"}", "InvalidParameterValueException",
         "Code cannot be fetched from S3 here. Send the archive itself (Code.ZipFile, `aws lambda ... "
         "--zip-file "
         "fileb://...`), or name a folder of this machine (Code.Directory)."},
        {"{\"ImageUri\":\"x\"}", "InvalidParameterValueException",
         "Functions from container images (Code.ImageUri) are not offered: code is an archive (Code.ZipFile) "
         "or a "
         "folder (Code.Directory)."},
        {"{}", "InvalidParameterValueException", "Please provide a source for function code."},
        {"{\"ZipFile\":\"aGVsbG8=\"}", "InvalidParameterValueException",
         "Could not unzip uploaded file. Please check your file, then try to upload again. Not a zip archive: "
         "it could not be opened"},
        {"{\"ZipFile\":\"?\"}", "SerializationException", "ZipFile is not valid base64"},
        {"{\"ZipFile\":\"\"}", "InvalidParameterValueException", "Uploaded file must be a non-empty zip"},
        {"{\"Directory\":\"relative\"}", "InvalidParameterValueException",
         "Code.Directory must be the absolute path of a folder on the server's machine: relative"},
        {"{\"Directory\":\"/nowhere/at/all\"}", "InvalidParameterValueException",
         "Code.Directory must be the absolute path of a folder on the server's machine: /nowhere/at/all"},
        {"{\"Directory\":\"/tmp\\u0000\"}", "InvalidParameterValueException",
         "Code.Directory must be the absolute path of a folder on the server's machine: /tmp"},
        {"{\"Url\":\"ftp://x\"}", "InvalidParameterValueException",
         "Code.Url must begin with http:// or https:// and have no spaces."},
        {"{\"Directory\":\"/tmp\",\"Secret\":\"s\"}", "InvalidParameterValueException",
         "Code.Secret goes with Code.Url."},
        {"{\"Table\":\"a\"}", "InvalidParameterValueException",
         "Code.Table must be a table's name: 3 to 255 letters, digits, '-', '_' or '.'."},
        {"{\"Table\":\"abc\",\"Queue\":\"q\"}", "InvalidParameterValueException",
         "Please provide one source for function code: ZipFile, Directory, Url, Table, Queue or Pattern."},
    };
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice body = arena_printf(&arena,
                                         "{\"FunctionName\":\"f\"," ROLE
                                         ",\"Runtime\":\"provided.al2023\",\"Handler\":\"h\",\"Code\":%s}",
                                         cases[i][0]);
        LAB_REFUSED(&lab, "POST", FUNCTIONS, body.data, 400, cases[i][1], cases[i][2]);
    }
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f", NULL, 404);
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_settings_that_cannot_be_used)
{
    static const char *const cases[][2] = {
        {"\"Layers\":[\"arn:aws:lambda:us-east-1:123456789012:layer:l:1\"]",
         "Layer version arn:aws:lambda:us-east-1:123456789012:layer:l:1 does not exist."},
        {"\"PackageType\":\"Image\"", "Functions from container images (PackageType Image) are not offered."},
        {"\"ImageConfig\":{}", "ImageConfig is not offered: there are no functions from container images."},
        {"\"Runtime\":\"cobol74\"",
         "Value cobol74 at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: ["},
        {"\"Environment\":{\"Variables\":{\"AWS_REGION\":\"x\",\"OK\":\"y\",\"_HANDLER\":\"z\"}}", NULL},
        {"\"Environment\":{\"Variables\":{\"AWS_REGION\":\"x\",\"LAMBDA_TASK_ROOT\":\"z\"}}",
         "Lambda was unable to configure your environment variables because the environment variables you "
         "have "
         "provided contains reserved keys that are currently not supported for modification. Reserved keys "
         "used in "
         "this request: AWS_REGION, LAMBDA_TASK_ROOT"},
        {"\"DeadLetterConfig\":{\"TargetArn\":\"arn:aws:ec2:us-east-1:000000000000:x\"}",
         "The dead-letter target arn:aws:ec2:us-east-1:000000000000:x cannot be used: "},
        {"\"CodeSigningConfigArn\":\"x\"", "Code signing is not offered."},
    };
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer = lab_send(&lab, "POST", FUNCTIONS,
                                        lab_create_body(&arena, "f", "x", cases[i][0]), NULL);
        struct slice message = answer_text(&answer, "message");
        CHECK_INT(answer.status, 400);
        if (cases[i][1] && !slice_starts(message, slice_of(cases[i][1])))
            test_failed(__FILE__, __LINE__, "%s: %.*s", cases[i][0], SLICE_ARG(buf_view(&answer.body)));
        answer_free(&answer);
    }
    char large[LIMIT_VARIABLES_BYTES + 64];
    snprintf(large, sizeof large, "\"Environment\":{\"Variables\":{\"BIG\":\"%0*d\"}}",
             LIMIT_VARIABLES_BYTES - 9, 0);
    LAB_EXPECT(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "x", large), 400);
    snprintf(large, sizeof large, "\"Environment\":{\"Variables\":{\"BIG\":\"%0*d\"}}",
             LIMIT_VARIABLES_BYTES - 10, 0);
    LAB_EXPECT(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "x", large), 201);
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_concurrency_of_a_process)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "many", "\"Runtime\":\"nodejs20.x\",\"Quipu\":{\"Concurrency\":8}");
    struct function *function = registry_function(lab.func, SLICE("many"), SLICE(""), 0);
    CHECK_INT(function->concurrency, 8);
    function_release(function);
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/many/configuration",
               "{\"CapacityProviderConfig\":{\"LambdaManagedInstancesCapacityProviderConfig\":"
               "{\"CapacityProviderArn\":\"arn:aws:lambda:us-east-1:000000000000:capacity-provider:c\","
               "\"PerExecutionEnvironmentMaxConcurrency\":4}}}",
               200);
    function = registry_function(lab.func, SLICE("many"), SLICE(""), 0);
    CHECK_INT(function->concurrency, 4);
    function_release(function);
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/many/configuration", "{\"Quipu\":{\"Concurrency\":0}}", 400);
    LAB_REFUSED(
        &lab, "PUT", FUNCTIONS "/many/configuration", "{\"Runtime\":\"provided.al2023\"}", 400,
        "InvalidParameterValueException",
        "The runtime provided.al2023 handles one invocation at a time in a process: Concurrency must be 1.");
    /* New code leaves it as it is. */
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/many/code", "{\"Directory\":\"/tmp\"}", 200);
    function = registry_function(lab.func, SLICE("many"), SLICE(""), 0);
    CHECK_INT(function->concurrency, 4);
    CHECK(function->in_place);
    function_release(function);
    lab_close(&lab);
}

/* ---- listing ---- */

static unsigned count_listed(struct lab *lab, const char *query, struct slice *names, struct arena *arena)
{
    char target[512];
    struct buf all = {0};
    unsigned pages = 0;
    struct slice marker = SLICE("");
    do {
        snprintf(target, sizeof target, FUNCTIONS "/?%s%s%.*s", query, marker.len ? "&Marker=" : "",
                 SLICE_ARG(marker));
        struct answer page = lab_send(lab, "GET", target, NULL, NULL);
        struct json_reader reader;
        json_begin(&reader, answer_member(&page, "Functions"), &page.arena);
        for (json_enter(&reader); json_element(&reader);) {
            const char *start = reader.at;
            struct document function;
            json_skip(&reader);
            CHECK(document_parse((struct slice){start, (size_t)(reader.at - start)}, &page.arena, &function));
            buf_printf(&all, "%.*s ", SLICE_ARG(document_text(&function, "FunctionName", &page.arena)));
        }
        marker = arena_copy(arena, answer_text(&page, "NextMarker"));
        answer_free(&page);
        pages++;
    } while (marker.len && pages < 100);
    *names = arena_copy(arena, buf_view(&all));
    buf_free(&all);
    return pages;
}

TEST(lambda_list_functions_in_pages)
{
    struct lab lab;
    struct arena arena = {0};
    struct slice names;
    char name[16];
    lab_open(&lab);
    CHECK_INT(count_listed(&lab, "", &names, &arena), 1);
    CHECK_TEXT(names, "");
    for (int i = 5; i > 0; i--) {
        snprintf(name, sizeof name, "f%d", i);
        create(&lab, name, "\"Publish\":true");
    }
    CHECK_INT(count_listed(&lab, "MaxItems=2", &names, &arena), 3);
    CHECK_TEXT(names, "f1 f2 f3 f4 f5 ");
    CHECK_INT(count_listed(&lab, "MaxItems=5", &names, &arena), 1);
    CHECK_INT(count_listed(&lab, "FunctionVersion=ALL&MaxItems=4", &names, &arena), 3);
    CHECK_TEXT(names, "f1 f1 f2 f2 f3 f3 f4 f4 f5 f5 ");
    LAB_REFUSED(
        &lab, "GET", FUNCTIONS "?FunctionVersion=SOME", NULL, 400, "ValidationException",
        "1 validation error detected: Value 'SOME' at 'functionVersion' failed to satisfy constraint: Member "
        "must satisfy enum value set: [ALL]");
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- whom a request means ---- */

TEST(lambda_functions_by_any_name)
{
    static const char *const names[] = {"named",
                                        "000000000000:function:named",
                                        "arn:aws:lambda:us-east-1:000000000000:function:named",
                                        "arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Anamed",
                                        "named:$LATEST",
                                        "named%3A%24LATEST"};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "named", NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        LAB_EXPECT(&lab, "GET", arena_printf(&arena, FUNCTIONS "/%s", names[i]).data, NULL, 200);
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/nobody", NULL, 404, "ResourceNotFoundException",
                "Function not found: " ARN "nobody");
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/named?Qualifier=9", NULL, 404, "ResourceNotFoundException",
                "Function not found: " ARN "named:9");
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/named:1?Qualifier=2", NULL, 400, "InvalidParameterValueException",
                "The derived qualifier from the function name does not match the specified qualifier.");
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/arn:aws:lambda:eu-west-1:000000000000:function:named", NULL, 404,
                "ResourceNotFoundException",
                "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')");
    LAB_REFUSED(&lab, "GET", FUNCTIONS "/arn:aws:lambda:us-east-1:123456789012:function:named", NULL, 403,
                "AccessDeniedException",
                "The functions of this server are of the account 000000000000, not of "
                "123456789012");
    LAB_REFUSED(
        &lab, "PUT", "/2017-10-31/functions/named:1/concurrency", "{\"ReservedConcurrentExecutions\":1}", 400,
        "InvalidParameterValueException",
        "This operation is permitted on Lambda functions only. Aliases and versions do not support this "
        "operation. Please specify either a function name or an unqualified function ARN.");
    arena_free(&arena);
    lab_close(&lab);
}

TEST(lambda_delete_function)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "gone", "\"Publish\":true");
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/gone?Qualifier=$LATEST", NULL, 400,
                "InvalidParameterValueException",
                "$LATEST version cannot be deleted without deleting the function.");
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/gone:live", NULL, 400, "InvalidParameterValueException",
                "Deletion of aliases is not currently supported.");
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/gone/aliases", "{\"Name\":\"live\",\"FunctionVersion\":\"1\"}", 201);
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/gone:1", NULL, 409, "ResourceConflictException",
                "Version 1 cannot be deleted: an alias points to it.");
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/gone/aliases/live", NULL, 204);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/gone:1", NULL, 204);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/gone:1", NULL, 404);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/gone:7", NULL, 204); /* there is none: that was wanted */
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/gone", NULL, 204);
    LAB_REFUSED(&lab, "DELETE", FUNCTIONS "/gone", NULL, 404, "ResourceNotFoundException",
                "Function not found: " ARN "gone");
    lab_close(&lab);
}
