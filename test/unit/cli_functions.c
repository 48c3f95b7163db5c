/* What the commands of functions and triggers make of flags, folders and names. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/function_guess.h"
#include "cli/listing.h"
#include "cli/service.h"
#include "cli/trigger_settings.h"
#include "unit/test.h"

#define COUNT(list) (sizeof list / sizeof *list)

/* ---- settings of triggers ---- */

static const struct flag setting_flags[] = {TRIGGER_SETTING_FLAGS};
static const struct command example = {.name = "add",
                                       .usage = "TABLE FUNCTION",
                                       .about = "",
                                       .flags = setting_flags,
                                       .flag_count = COUNT(setting_flags),
                                       .works_on_server = true};

/* The settings' JSON of these arguments; empty when they make no sense, which is said on standard error. */
static struct slice settings_of(struct arena *arena, char **argv)
{
    struct arguments arguments = {.command = &example};
    struct buf out = {0};
    int argc = 0;
    while (argv[argc]) argc++;
    buf_byte(&out, '{');
    bool fine = arguments_read(&arguments, argc, argv) && trigger_put_settings(&out, &arguments, arena);
    buf_byte(&out, '}');
    struct slice json = fine ? arena_copy(arena, buf_view(&out)) : SLICE("");
    buf_free(&out);
    arguments_free(&arguments);
    return json;
}

#define SETTINGS(...) settings_of(&arena, (char *[]){__VA_ARGS__, NULL})

TEST(settings_of_triggers)
{
    struct arena arena = {0};
    CHECK_TEXT(settings_of(&arena, (char *[]){NULL}), "{}");
    CHECK_TEXT(SETTINGS("--batch", "50", "--window", "10s"),
               "{\"BatchSize\":50,\"MaximumBatchingWindowInSeconds\":10}");
    CHECK_TEXT(SETTINGS("--retries", "-1", "--max-age", "1h30m"),
               "{\"MaximumRetryAttempts\":-1,\"MaximumRecordAgeInSeconds\":5400}");
    CHECK_TEXT(
        SETTINGS("--filter", "{\"a\":[1]}", "--filter", "{\"b\":[\"x\"]}"),
        "{\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{\\\"a\\\":[1]}\"},"
        "{\"Pattern\":\"{\\\"b\\\":[\\\"x\\\"]}\"}]}}");
    CHECK_TEXT(
        SETTINGS("--bisect", "--partial", "--lanes", "4", "--tumbling", "1m", "--depth", "3"),
        "{\"ParallelizationFactor\":4,\"TumblingWindowInSeconds\":60,\"MaximumRecursionDepth\":3,"
        "\"BisectBatchOnFunctionError\":true,\"FunctionResponseTypes\":[\"ReportBatchItemFailures\"]}");
    CHECK_TEXT(SETTINGS("--on-failure", "lost"), "{\"DestinationConfig\":{\"OnFailure\":{"
                                                 "\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:lost\"}}}");
    CHECK_TEXT(SETTINGS("--on-failure", "https://a/b"),
               "{\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"https://a/b\"}}}");
    arena_free(&arena);
}

TEST(settings_that_make_no_sense)
{
    struct arena arena = {0};
    CHECK_TEXT(SETTINGS("--batch", "many"), "");
    CHECK_TEXT(SETTINGS("--batch", "--5"), "");
    CHECK_TEXT(SETTINGS("--batch", ""), "");
    CHECK_TEXT(SETTINGS("--batch", "99999999"), "");
    CHECK_TEXT(SETTINGS("--window", "10"), "");
    CHECK_TEXT(SETTINGS("--window", "500ms"), "");
    CHECK_TEXT(SETTINGS("--max-age", "soon"), "");
    CHECK_TEXT(SETTINGS("--filter", "{\"a\":"), "");
    arena_free(&arena);
}

/* ---- letters ---- */

TEST(a_letter_for_a_flag)
{
    static const struct flag flags[] = {{"follow", NULL, "go on"}};
    static const struct command logs = {.name = "logs",
                                        .usage = "NAME",
                                        .about = "",
                                        .flags = flags,
                                        .flag_count = 1,
                                        .words_min = 1,
                                        .words_max = 2};
    struct arguments arguments = {.command = &logs};
    CHECK(arguments_read(&arguments, 2, (char *[]){"-f", "name"}));
    CHECK(argument_given(&arguments, "follow"));
    CHECK_INT(argument_words(&arguments), 1);
    arguments_free(&arguments);
    arguments = (struct arguments){.command = &logs};
    CHECK(arguments_read(&arguments, 2, (char *[]){"-x", "-"})); /* no letters of ours: words */
    CHECK(!argument_given(&arguments, "follow"));
    CHECK_INT(argument_words(&arguments), 2);
    arguments_free(&arguments);
}

/* ---- folders ---- */

static char folder[] = "/tmp/quipu-guess-XXXXXX";

static void put_file(const char *name, const char *text, mode_t mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0);
}

static void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(unlink(path) == 0);
}

static void check_guess(const char *runtime, const char *handler)
{
    struct arena arena = {0};
    struct function_guess guess;
    function_guess(folder, &arena, &guess);
    CHECK((guess.runtime != NULL) == (runtime != NULL) && (guess.fault != NULL) == (runtime == NULL));
    if (guess.runtime && runtime) {
        CHECK(strncmp(guess.runtime, runtime, strlen(runtime)) == 0);
        CHECK_TEXT(slice_of(guess.handler), handler);
    }
    arena_free(&arena);
}

TEST(what_a_folder_says)
{
    CHECK(mkdtemp(folder) != NULL);
    check_guess(NULL, NULL);
    put_file("bootstrap", "#!/bin/sh\n", 0644);
    if (getuid() != 0) check_guess(NULL, NULL); /* not executable */
    put_file("bootstrap", "#!/bin/sh\n", 0755);
    check_guess("provided", "bootstrap");
    put_file("lambda_function.py", "", 0644);
    check_guess(NULL, NULL);
    remove_file("bootstrap");
    check_guess("python3", "lambda_function.lambda_handler");
    remove_file("lambda_function.py");
    put_file("package.json", "{\"name\":\"x\"}", 0644);
    check_guess(NULL, NULL);
    put_file("package.json", "{\"main\":\"./lib/app.cjs\"}", 0644);
    check_guess("nodejs", "lib/app.handler");
    put_file("package.json", "{\"main\":\"lib.d/app\"}", 0644);
    check_guess(NULL, NULL);
    put_file("package.json", "{broken", 0644);
    check_guess(NULL, NULL);
    put_file("index.mjs", "", 0644);
    check_guess("nodejs", "index.handler");
    remove_file("index.mjs");
    remove_file("package.json");
    CHECK(rmdir(folder) == 0);
}

/* ---- paths and texts ---- */

TEST(paths_with_names)
{
    struct arena arena = {0};
    CHECK_TEXT(slice_of(path_of(&arena, "/f/%s", "a", NULL)), "/f/a");
    CHECK_TEXT(slice_of(path_of(&arena, "/f/%s/aliases/%s", "a:b/c", "d e")), "/f/a%3Ab%2Fc/aliases/d%20e");
    CHECK_TEXT(slice_of(path_of(&arena, "/f/%s?x=%s", "%s", "\xc3\xa4")), "/f/%25s?x=%C3%A4");
    arena_free(&arena);
}

TEST(names_in_arns)
{
    CHECK_TEXT(after_last(SLICE("arn:aws:lambda:r:0:function:name"), ':'), "name");
    CHECK_TEXT(after_last(SLICE("name"), ':'), "name");
    CHECK_TEXT(after_last(SLICE(""), ':'), "");
    CHECK_TEXT(after_last(SLICE("a:"), ':'), "");
}
