/* The registry: what it finds, that it survives, that nobody overwrites what he has not seen, and that
 * archives go when nobody names them. */
#include "func/registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "func/archive.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"

static void create(struct lab *lab, const char *name, const char *bootstrap, const char *more)
{
    struct arena arena = {0};
    LAB_EXPECT(lab, "POST", FUNCTIONS, lab_create_body(&arena, name, bootstrap, more), 201);
    arena_free(&arena);
}

static void update_code(struct lab *lab, const char *name, const char *bootstrap)
{
    struct arena arena = {0};
    struct buf zip = {0}, body = {0};
    lab_zip(&zip, &(struct lab_file){"bootstrap", bootstrap, 0100755}, 1);
    buf_text(&body, "{\"ZipFile\":");
    json_put_base64(&body, buf_view(&zip));
    buf_byte(&body, '}');
    buf_byte(&body, 0);
    LAB_EXPECT(lab, "PUT", arena_printf(&arena, FUNCTIONS "/%s/code", name).data, body.data, 200);
    buf_free(&zip);
    buf_free(&body);
    arena_free(&arena);
}

/* ---- names ---- */

static bool name_is(const char *text, const char *name, const char *qualifier)
{
    struct slice got_name, got_qualifier;
    return function_name_parse(slice_of(text), &got_name, &got_qualifier) &&
           slice_equal(got_name, slice_of(name)) && slice_equal(got_qualifier, slice_of(qualifier));
}

TEST(registry_names_in_all_forms)
{
    static const char *const bad[] = {"",
                                      ":",
                                      "a:",
                                      ":a",
                                      "a b",
                                      "a:b:c",
                                      "a:$OTHER",
                                      "arn:aws:lambda:us-east-1:123456789012:function:",
                                      "arn:aws:lambda:us-east-1:12345678901:function:a",
                                      "arn:aws:sqs:us-east-1:123456789012:a",
                                      "arn:",
                                      "a/b",
                                      "123456789012345678901234567890123456789012345678901234567890123456"};
    struct slice name, qualifier;
    CHECK(name_is("resize", "resize", ""));
    CHECK(name_is("resize:live", "resize", "live"));
    CHECK(name_is("resize:$LATEST", "resize", "$LATEST"));
    CHECK(name_is("resize:7", "resize", "7"));
    CHECK(name_is("function:resize", "resize", ""));
    CHECK(name_is("function", "function", ""));
    CHECK(name_is("123456789012:function:resize", "resize", ""));
    CHECK(name_is("123456789012:function:resize:live", "resize", "live"));
    CHECK(name_is("arn:aws:lambda:us-east-1:123456789012:function:resize", "resize", ""));
    CHECK(name_is("arn:aws-cn:lambda:cn-north-1:123456789012:function:resize:3", "resize", "3"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (function_name_parse(slice_of(bad[i]), &name, &qualifier))
            test_failed(__FILE__, __LINE__, "taken for a name: %s", bad[i]);
}

/* ---- what is stored ---- */

TEST(registry_functions_survive_a_restart)
{
    struct lab lab;
    lab_open(&lab);
    create(
        &lab, "keeps", "#!/bin/sh\nexit 3\n",
        "\"Timeout\":9,\"MemorySize\":512,\"Environment\":{\"Variables\":{\"MODE\":\"fast\",\"NAME\":\"\"}}");
    lab_reopen(&lab);
    struct function *function = registry_function(lab.func, SLICE("keeps"), SLICE(""), 0);
    CHECK(function != NULL);
    CHECK_TEXT(function->version, "$LATEST");
    CHECK_TEXT(function->arn, "arn:aws:lambda:us-east-1:000000000000:function:keeps");
    CHECK_TEXT(function->runtime, "provided.al2023");
    CHECK_INT(function->timeout_ms, 9000);
    CHECK_INT(function->memory_mb, 512);
    CHECK_INT(function->concurrency, 1);
    CHECK_INT(function->variable_count, 2);
    CHECK_TEXT(function->variables[0].name, "MODE");
    CHECK_TEXT(function->variables[0].value, "fast");
    CHECK_TEXT(function->variables[1].value, "");
    CHECK_INT(function->kind, FUNCTION_PROCESS);
    CHECK(!function->in_place && function->folder.data[0] == '/');
    struct arena arena = {0};
    CHECK(access(arena_printf(&arena, "%.*s/bootstrap", SLICE_ARG(function->folder)).data, X_OK) == 0);
    function_release(function);
    arena_free(&arena);
    lab_close(&lab);
}

/* The folder holds only what can be made again. */
TEST(registry_archives_are_unpacked_again_and_old_folders_go)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "unpacked", "#!/bin/sh\nexit 4\n", NULL);
    const char *stray = arena_printf(&arena, "%s/code/stray", lab.folder).data;
    archive_remove(arena_printf(&arena, "%s/code", lab.folder).data);
    CHECK(archive_make_folder(stray));
    lab_reopen(&lab);
    struct function *function = registry_function(lab.func, SLICE("unpacked"), SLICE(""), 0);
    CHECK(function &&
          access(arena_printf(&arena, "%.*s/bootstrap", SLICE_ARG(function->folder)).data, X_OK) == 0);
    CHECK(access(stray, F_OK) != 0);
    function_release(function);
    arena_free(&arena);
    lab_close(&lab);
}

/* How many archives the tables hold, and how many parts of them. */
static void count_code(struct lab *lab, int *archives, int *parts)
{
    struct arena arena = {0};
    struct answer heads = {0}, bytes = {0};
    struct slice reply = lab_dynamo(lab, "Query",
                                    "{\"TableName\":\"quipu-functions\",\"Select\":\"COUNT\","
                                    "\"KeyConditionExpression\":\"#n = :n\","
                                    "\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
                                    "\"ExpressionAttributeValues\":{\":n\":{\"S\":\"*code\"}}}",
                                    &arena);
    buf_slice(&heads.body, reply);
    buf_slice(&bytes.body,
              lab_dynamo(lab, "Scan", "{\"TableName\":\"quipu-code\",\"Select\":\"COUNT\"}", &arena));
    *archives = atoi(arena_printf(&arena, "%.*s", SLICE_ARG(answer_member(&heads, "Count"))).data);
    *parts = atoi(arena_printf(&arena, "%.*s", SLICE_ARG(answer_member(&bytes, "Count"))).data);
    answer_free(&heads);
    answer_free(&bytes);
    arena_free(&arena);
}

static void check_code(struct lab *lab, int archives, int parts, int line)
{
    int got_archives, got_parts;
    count_code(lab, &got_archives, &got_parts);
    if (got_archives != archives || got_parts != parts)
        test_failed(__FILE__, line, "%d archives in %d parts, expected %d in %d", got_archives, got_parts,
                    archives, parts);
}

TEST(registry_archives_go_with_their_last_version)
{
    struct lab lab;
    struct arena arena = {0};
    char *large = malloc(900 * 1024); /* three parts */
    memset(large, 'x', 900 * 1024 - 1);
    large[900 * 1024 - 1] = 0;
    lab_open(&lab);
    create(&lab, "one", large, NULL);
    check_code(&lab, 1, 3, __LINE__);
    create(&lab, "two", large, NULL);
    check_code(&lab, 1, 3, __LINE__);
    update_code(&lab, "one", "small");
    check_code(&lab, 2, 4, __LINE__);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/two/versions", "{}", 201);
    update_code(&lab, "two", "small");
    check_code(&lab, 2, 4, __LINE__); /* the published version still names it */
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/two?Qualifier=1", NULL, 204);
    check_code(&lab, 1, 1, __LINE__);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/one", NULL, 204);
    check_code(&lab, 1, 1, __LINE__);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/two", NULL, 204);
    check_code(&lab, 0, 0, __LINE__);
    create(&lab, "again", large, NULL);
    check_code(&lab, 1, 3, __LINE__);
    /* A request that fails leaves no archive behind. */
    LAB_EXPECT(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "again", "another", NULL), 409);
    int archives = 0, parts = 0; /* it goes right after the answer */
    for (int i = 0; i < 2000 && (archives != 1 || parts != 3); i++) {
        usleep(1000);
        count_code(&lab, &archives, &parts);
    }
    check_code(&lab, 1, 3, __LINE__);
    lab_close(&lab);
    free(large);
    arena_free(&arena);
}

TEST(registry_archives_come_back_as_they_were)
{
    struct lab lab;
    struct arena arena = {0};
    struct buf zip = {0};
    lab_open(&lab);
    create(&lab, "code", "#!/bin/sh\necho code\n", NULL);
    lab_zip(&zip, &(struct lab_file){"bootstrap", "#!/bin/sh\necho code\n", 0100755}, 1);
    struct answer got = lab_send(&lab, "GET", "/v1/functions/code/code", NULL, NULL);
    CHECK_INT(got.status, 200);
    CHECK(slice_equal(buf_view(&got.body), buf_view(&zip)));
    answer_free(&got);
    struct answer described = lab_send(&lab, "GET", FUNCTIONS "/code", NULL, NULL);
    CHECK_TEXT(answer_text(&described, "Code.Location"),
               "http://localhost:9140/v1/functions/code/code?Qualifier=%24LATEST");
    CHECK(slice_equal(answer_text(&described, "Configuration.CodeSha256"),
                      code_sha256(buf_view(&zip), &arena)));
    answer_free(&described);
    buf_free(&zip);
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- aliases and settings ---- */

TEST(registry_aliases_choose_by_weight)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "weighed", "one", "\"Publish\":true");
    update_code(&lab, "weighed", "two");
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/weighed/versions", "{}", 201);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/weighed/aliases",
               "{\"Name\":\"live\",\"FunctionVersion\":\"1\","
               "\"RoutingConfig\":{\"AdditionalVersionWeights\":{\"2\":0.25}}}",
               201);
    int second = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct function *function = registry_function(lab.func, SLICE("weighed"), SLICE("live"),
                                                      (2 * i + 1) * (UINT64_MAX / 2000));
        CHECK(function != NULL);
        second += slice_equal(function->version, SLICE("2"));
        function_release(function);
    }
    CHECK_INT(second, 250);
    CHECK(!registry_function(lab.func, SLICE("weighed"), SLICE("3"), 0));
    CHECK(!registry_function(lab.func, SLICE("weighed"), SLICE("function"), 0));
    CHECK(!registry_function(lab.func, SLICE("nobody"), SLICE(""), 0));
    lab_close(&lab);
}

TEST(registry_async_settings_and_reserved)
{
    struct lab lab;
    struct arena arena = {0};
    struct async_settings settings;
    lab_open(&lab);
    create(&lab, "queued", "x",
           "\"DeadLetterConfig\":{\"TargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\"}");
    registry_async_settings(lab.func, SLICE("queued"), SLICE(""), &arena, &settings);
    CHECK_INT(settings.retries, 2);
    CHECK_INT(settings.age_max_ms, 6 * 3600 * 1000);
    CHECK_TEXT(settings.on_failure, "arn:aws:sqs:us-east-1:000000000000:dead");
    CHECK_INT(settings.on_success.len, 0);
    CHECK_INT(registry_reserved(lab.func, SLICE("queued")), UINT32_MAX);
    LAB_EXPECT(
        &lab, "PUT", "/2019-09-25/functions/queued/event-invoke-config",
        "{\"MaximumRetryAttempts\":0,\"MaximumEventAgeInSeconds\":60,"
        "\"DestinationConfig\":{\"OnSuccess\":{\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:good\"},"
        "\"OnFailure\":{\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:bad\"}}}",
        200);
    LAB_EXPECT(&lab, "PUT", "/2017-10-31/functions/queued/concurrency",
               "{\"ReservedConcurrentExecutions\":3}", 200);
    lab_reopen(&lab);
    registry_async_settings(lab.func, SLICE("queued"), SLICE("$LATEST"), &arena, &settings);
    CHECK_INT(settings.retries, 0);
    CHECK_INT(settings.age_max_ms, 60000);
    CHECK_TEXT(settings.on_success, "arn:aws:sqs:us-east-1:000000000000:good");
    CHECK_TEXT(settings.on_failure, "arn:aws:sqs:us-east-1:000000000000:bad");
    CHECK_INT(registry_reserved(lab.func, SLICE("queued")), 3);
    LAB_EXPECT(&lab, "DELETE", "/2017-10-31/functions/queued/concurrency", NULL, 204);
    CHECK_INT(registry_reserved(lab.func, SLICE("queued")), UINT32_MAX);
    arena_free(&arena);
    lab_close(&lab);
}

/* F1: a change makes a new function with a higher revision; who has the old one keeps it. */
TEST(registry_functions_do_not_change)
{
    struct lab lab;
    lab_open(&lab);
    create(&lab, "fixed", "x", NULL);
    struct function *old = registry_function(lab.func, SLICE("fixed"), SLICE(""), 0);
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/fixed/configuration", "{\"Timeout\":77}", 200);
    struct function *changed = registry_function(lab.func, SLICE("fixed"), SLICE(""), 0);
    CHECK_INT(old->timeout_ms, 3000);
    CHECK_INT(changed->timeout_ms, 77000);
    CHECK(changed->revision > old->revision);
    LAB_EXPECT(&lab, "PUT", "/2017-10-31/functions/fixed/concurrency", "{\"ReservedConcurrentExecutions\":3}",
               200);
    struct function *same = registry_function(lab.func, SLICE("fixed"), SLICE(""), 0);
    CHECK(same == changed); /* what does not concern the code leaves it alone */
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/fixed", NULL, 204);
    create(&lab, "fixed", "x", NULL);
    struct function *next = registry_function(lab.func, SLICE("fixed"), SLICE(""), 0);
    CHECK(next->revision > changed->revision); /* also across a deletion */
    function_release(old);
    function_release(changed);
    function_release(same);
    function_release(next);
    lab_close(&lab);
}

TEST(registry_deletes_more_parts_than_a_batch_takes)
{
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "many", "x", NULL);
    for (int i = 1; i <= 40; i++) {
        const char *body = arena_printf(&arena, "{\"Timeout\":%d}", i).data;
        LAB_EXPECT(&lab, "PUT", FUNCTIONS "/many/configuration", body, 200);
        LAB_EXPECT(&lab, "POST", FUNCTIONS "/many/versions", "{}", 201);
        const char *alias = arena_printf(&arena, "{\"Name\":\"a%d\",\"FunctionVersion\":\"%d\"}", i, i).data;
        LAB_EXPECT(&lab, "POST", FUNCTIONS "/many/aliases", alias, 201);
    }
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/many", NULL, 204);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/many", NULL, 404);
    struct slice left = lab_dynamo(&lab, "Scan", "{\"TableName\":\"quipu-functions\"}", &arena);
    CHECK(slice_contains(left, SLICE("\"Count\":1")) && slice_contains(left, SLICE("\"Gone\"")));
    lab_reopen(&lab); /* nobody can be creating it any more */
    left = lab_dynamo(&lab, "Scan", "{\"TableName\":\"quipu-functions\"}", &arena);
    CHECK(slice_contains(left, SLICE("\"Count\":0")));
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- with others ---- */

struct tagger {
    struct lab *lab;
    pthread_t thread;
    int number;
};

#define TAGGERS         4
#define TAGS_OF_TAGGERS 10

static void *tag_many(void *context)
{
    struct tagger *tagger = context;
    struct arena arena = {0};
    for (int i = 0; i < TAGS_OF_TAGGERS; i++) {
        const char *body = arena_printf(&arena, "{\"Tags\":{\"t%d-%d\":\"x\"}}", tagger->number, i).data;
        LAB_EXPECT(tagger->lab, "POST",
                   "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Ashared", body,
                   204);
    }
    arena_free(&arena);
    return NULL;
}

/* G1, on two servers: each adds to what the others have written, and nothing is lost. */
TEST(registry_nobody_overwrites_anybody)
{
    struct lab labs[2];
    struct tagger taggers[TAGGERS];
    lab_open_shared(&labs[0]);
    create(&labs[0], "shared", "x", NULL);
    lab_open_beside(&labs[1], &labs[0]);
    for (int i = 0; i < TAGGERS; i++) {
        taggers[i] = (struct tagger){.lab = &labs[i % 2], .number = i};
        CHECK(pthread_create(&taggers[i].thread, NULL, tag_many, &taggers[i]) == 0);
    }
    for (int i = 0; i < TAGGERS; i++) pthread_join(taggers[i].thread, NULL);
    struct answer tags = lab_send(
        &labs[0], "GET", "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Ashared",
        NULL, NULL);
    struct document all;
    CHECK(document_parse(answer_member(&tags, "Tags"), &tags.arena, &all));
    CHECK_INT(all.count, TAGGERS * TAGS_OF_TAGGERS);
    answer_free(&tags);
    lab_close(&labs[1]);
    lab_close(&labs[0]);
}

TEST(registry_servers_see_each_others_functions)
{
    struct lab first, second;
    lab_open_shared(&first);
    lab_open_beside(&second, &first);
    create(&first, "made-elsewhere", "#!/bin/sh\n", NULL);
    LAB_EXPECT(&second, "GET", FUNCTIONS "/made-elsewhere", NULL, 200);
    struct function *function = registry_function(second.func, SLICE("made-elsewhere"), SLICE(""), 0);
    struct arena arena = {0};
    CHECK(function &&
          access(arena_printf(&arena, "%.*s/bootstrap", SLICE_ARG(function->folder)).data, X_OK) == 0);
    function_release(function);
    create(&first, "asked-for", "#!/bin/sh\n", NULL);
    struct answer answer = lab_send(&second, "POST", FUNCTIONS "/asked-for/invocations", "{}",
                                    "X-Amz-Invocation-Type: DryRun");
    CHECK_INT(answer.status, 204);
    answer_free(&answer);
    LAB_EXPECT(&second, "DELETE", FUNCTIONS "/made-elsewhere", NULL, 204);
    LAB_EXPECT(&first, "GET", FUNCTIONS "/made-elsewhere", NULL, 404);
    arena_free(&arena);
    lab_close(&second);
    lab_close(&first);
}

/* Without being asked: the thread that looks at the tables finds it. */
TEST(registry_refreshes_by_itself)
{
    struct lab first, second;
    lab_open_shared(&first);
    lab_open_beside(&second, &first);
    create(&first, "appears", "#!/bin/sh\n", NULL);
    struct function *function = NULL;
    for (int i = 0; i < 2000 && !function; i++) {
        function = registry_function(second.func, SLICE("appears"), SLICE(""), 0);
        if (!function) usleep(10000);
    }
    CHECK(function != NULL);
    function_release(function);
    lab_close(&second);
    lab_close(&first);
}

/* G3: with other servers an archive that somebody may be about to name stays for an hour. */
TEST(registry_shared_archives_wait_before_they_go)
{
    struct lab lab;
    lab_open_shared(&lab);
    create(&lab, "brief", "x", NULL);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/brief", NULL, 204);
    lab_reopen(&lab);
    check_code(&lab, 1, 1, __LINE__);
    lab.now_ms += 3601 * 1000;
    lab_reopen(&lab);
    check_code(&lab, 0, 0, __LINE__);
    lab_close(&lab);
}

/* ---- what others leave in the tables ---- */

/* A server that died while it stored an archive: the next one who stores it finishes, or it is swept. */
TEST(registry_archives_half_stored)
{
    struct lab lab;
    struct arena arena = {0};
    struct buf zip = {0};
    lab_open(&lab);
    create(&lab, "first", "something else", NULL);
    lab_zip(&zip, &(struct lab_file){"bootstrap", "half", 0100755}, 1);
    struct slice sha256 = code_sha256(buf_view(&zip), &arena);
    const char *head = arena_printf(&arena,
                                    "{\"TableName\":\"quipu-functions\",\"Item\":{\"name\":{\"S\":\"*code\"},"
                                    "\"part\":{\"S\":\"%.*s\"},"
                                    "\"Upload\":{\"S\":\"dead\"},\"Parts\":{\"N\":\"1\"},"
                                    "\"Size\":{\"N\":\"%zu\"},\"Used\":{\"N\":\"1\"}}}",
                                    SLICE_ARG(sha256), zip.len)
                           .data;
    lab_dynamo(&lab, "PutItem", head, &arena);
    create(&lab, "half", "half", NULL);
    check_code(&lab, 2, 2, __LINE__);
    struct answer got = lab_send(&lab, "GET", "/v1/functions/half/code", NULL, NULL);
    CHECK(slice_equal(buf_view(&got.body), buf_view(&zip)));
    answer_free(&got);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/half", NULL, 204);
    lab_dynamo(&lab, "PutItem", head, &arena);
    check_code(&lab, 2, 1, __LINE__);
    lab_reopen(&lab);
    check_code(&lab, 1, 1, __LINE__);
    buf_free(&zip);
    arena_free(&arena);
    lab_close(&lab);
}

/* Whatever somebody writes into the table by hand is left out, or shown; it breaks nothing. */
TEST(registry_bears_strange_items)
{
    static const char *const items[] = {
        "\"name\":{\"S\":\"bare\"},\"part\":{\"S\":\"$LATEST\"}",
        "\"name\":{\"S\":\"headless\"},\"part\":{\"S\":\"alias:x\"}",
        "\"name\":{\"S\":\"head\"},\"part\":{\"S\":\"function\"},\"Stamp\":{\"S\":\"x\"},\"Tags\":{\"N\":\"1\"}",
        "\"name\":{\"S\":\"no name at all!\"},\"part\":{\"S\":\"what:ever\"}",
        "\"name\":{\"S\":\"odd\"},\"part\":{\"S\":\"function\"},\"Stamp\":{\"N\":\"3\"}",
        "\"name\":{\"S\":\"bad parts\"},\"part\":{\"S\":\"function\"},\"Parts\":{\"S\":\"x\"},\"Gone\":{\"N\":\"0\"}",
        "\"name\":{\"S\":\"bad-marks\"},\"part\":{\"S\":\"function\"},"
        "\"Parts\":{\"M\":{\"1\":{\"N\":\"5\"},\"2\":{\"S\":\"\"}}},"
        "\"Recent\":{\"N\":\"0\"}",
        "\"name\":{\"S\":\"bad-marks\"},\"part\":{\"S\":\"1@5\"}",
        "\"name\":{\"S\":\"bad-marks\"},\"part\":{\"S\":\"@\"}",
        "\"name\":{\"S\":\"odd\"},\"part\":{\"S\":\"7\"},\"Timeout\":{\"S\":\"x\"},"
        "\"Environment\":{\"L\":[]},\"Quipu\":{\"M\":{\"Url\":{\"N\":\"3\"},\"Concurrency\":{\"N\":\"-1\"}}},"
        "\"CodeSha256\":{\"S\":\"???\"},\"Bytes\":{\"B\":\"AAAA\"}",
        "\"name\":{\"S\":\"odd\"},\"part\":{\"S\":\"policy:$LATEST\"},\"Statements\":{\"S\":\"x\"}",
        "\"name\":{\"S\":\"odd\"},\"part\":{\"S\":\"async:$LATEST\"},\"MaximumRetryAttempts\":{\"BOOL\":true}",
        "\"name\":{\"S\":\"odd\"},\"part\":{\"S\":\"alias:live\"},"
        "\"RoutingConfig\":{\"M\":{\"AdditionalVersionWeights\":{\"M\":{\"9\":{\"S\":\"x\"}}}}}",
    };
    static const char *const targets[] = {FUNCTIONS,
                                          FUNCTIONS "?FunctionVersion=ALL",
                                          FUNCTIONS "/bare",
                                          FUNCTIONS "/bad-marks",
                                          FUNCTIONS "/odd:7",
                                          FUNCTIONS "/odd/policy",
                                          FUNCTIONS "/odd/aliases",
                                          FUNCTIONS "/odd:live",
                                          FUNCTIONS "/odd/versions",
                                          "/2019-09-25/functions/odd/event-invoke-config",
                                          FUNCTIONS "/head",
                                          "/2016-08-19/account-settings"};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    create(&lab, "sound", "x", NULL);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        lab_dynamo(&lab, "PutItem",
                   arena_printf(&arena, "{\"TableName\":\"quipu-functions\",\"Item\":{%s}}", items[i]).data,
                   &arena);
    lab_reopen(&lab);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct answer answer = lab_send(&lab, "GET", targets[i], NULL, NULL);
        struct document document;
        if (!document_parse(buf_view(&answer.body), &answer.arena, &document))
            test_failed(__FILE__, __LINE__, "%s: %.*s", targets[i], SLICE_ARG(buf_view(&answer.body)));
        answer_free(&answer);
    }
    struct function *function = registry_function(lab.func, SLICE("odd"), SLICE("7"), 0);
    CHECK(function && function->concurrency == 1);
    function_release(function);
    CHECK(!registry_function(lab.func, SLICE("odd"), SLICE("live"), 0));
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/sound/configuration", "{\"Timeout\":4}", 200);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/bare", NULL, 404);    /* no head names it */
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/head", NULL, 409); /* its Stamp is nobody's */
    arena_free(&arena);
    lab_close(&lab);
}
