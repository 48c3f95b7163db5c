/* Commands out of the patterns' rows: words, flags, requests. */
#include "cli/operation.h"
#include "unit/test.h"

static const struct flow_row *row_named(const char *command)
{
    for (size_t i = 0; row_at(i); i++)
        if (row_at(i)->command && strncmp(row_at(i)->command, command, strlen(command)) == 0)
            return row_at(i);
    return NULL;
}

static bool is(struct slice text, const char *wanted)
{
    return slice_equal(text, slice_of(wanted));
}

TEST(rows_say_what_their_words_are)
{
    struct phrase_of_row phrase;
    row_phrase(row_named("job done"), &phrase);
    CHECK(is(phrase.parent, "job") && is(phrase.name, "done") && is(phrase.answer, ""));
    CHECK(phrase.count == 2 && phrase.needed == 2);
    CHECK_TEXT(slice_of(phrase.fields[0]->name), "id");
    CHECK_TEXT(slice_of(phrase.fields[1]->name), "task");
    CHECK_TEXT(slice_of(phrase.list->name), "tasks");
    row_phrase(row_named("counter add"), &phrase);
    CHECK(phrase.count == 2 && phrase.needed == 1 && !phrase.list && is(phrase.answer, "value"));
    row_phrase(row_named("log merge"), &phrase);
    CHECK(phrase.list == phrase.fields[1]);
    row_phrase(row_named("doc get"), &phrase);
    CHECK(phrase.count == 2 && is(phrase.answer, "*"));
}

TEST(words_that_must_be_there_are_no_flags)
{
    struct phrase_of_row phrase;
    const struct flow_row *row = row_named("lease release");
    row_phrase(row, &phrase);
    unsigned owners = 0;
    for (uint32_t i = 0; i < row->field_count; i++) {
        if (strcmp(row->fields[i].name, "owner") != 0) continue;
        owners++;
        CHECK(phrase_needs(&phrase, &row->fields[i]));
    }
    CHECK(owners == 2); /* in the body, or else in the query */
    row = row_named("counter add");
    row_phrase(row, &phrase);
    CHECK(!phrase_needs(&phrase, row_field(row, SLICE("by"))));
    CHECK_TEXT(slice_of(row_field(row, SLICE("idempotency-key"))->name), "Idempotency-Key");
}

static const struct command parent = {.name = "counter",
                                      .examples = "  quipu counter add x\n  quipu counter get x"};

static const struct command *child_named(const char *name)
{
    size_t count;
    const struct command *children = operation_commands(&parent, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(children[i].name, name) == 0) return &children[i];
    return NULL;
}

TEST(rows_become_commands)
{
    const struct command *add = child_named("add");
    CHECK(add && add == child_named("add")); /* they are made once */
    CHECK_TEXT(slice_of(add->usage), "NAME [BY] [flags]");
    CHECK_TEXT(slice_of(add->summary), "the next number of a counter, or a block of them");
    CHECK_TEXT(slice_of(add->examples), "  quipu counter add x");
    CHECK(add->words_min == 1 && add->words_max == 2 && add->works_on_data && add->run);
    CHECK_TEXT(slice_of(add->flags[0].name), "by");
    CHECK_TEXT(slice_of(add->flags[add->flag_count - 3].name), "json");
    CHECK(child_named("set")->words_min == 2);
}

/* The request that the arguments ask for, or NULL. */
static bool asks(struct inquiry *inquiry, const char *command, const char *const *words)
{
    struct arguments arguments = {.command = child_named(command), .parent = &parent};
    char *argv[16];
    int argc = 0, status;
    for (; words[argc]; argc++) argv[argc] = (char *)(uintptr_t)words[argc];
    *inquiry = (struct inquiry){0};
    bool fine = arguments_read(&arguments, argc, argv) &&
                inquiry_read(inquiry, arguments.command->operation, &arguments, &status);
    arguments_free(&arguments);
    return fine;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(arguments_become_requests)
{
    struct inquiry inquiry;
    CHECK(asks(&inquiry, "add", WORDS("a b/c", "5", "--max", "9", "--idempotency-key", "k", "--cost")));
    CHECK_TEXT(slice_of(inquiry.method), "POST");
    CHECK(is(buf_view(&inquiry.path), "/v1/counters/a%20b%2Fc?cost=true"));
    CHECK(is(buf_view(&inquiry.headers), "Idempotency-Key: k\n"));
    CHECK(is(buf_view(&inquiry.body), "{\"by\":5,\"max\":9}"));
    inquiry_free(&inquiry);
    CHECK(asks(&inquiry, "add", WORDS("x", "--by", "many")));
    CHECK(is(buf_view(&inquiry.body), "{\"by\":\"many\"}")); /* the flow says what is wrong with it */
    inquiry_free(&inquiry);
    CHECK(asks(&inquiry, "get", WORDS("x")) && inquiry.body.len == 0 && inquiry.headers.len == 0);
    inquiry_free(&inquiry);
}

TEST(arguments_that_are_no_request)
{
    struct inquiry inquiry;
    CHECK(!asks(&inquiry, "add", WORDS("")));
    inquiry_free(&inquiry);
    CHECK(!asks(&inquiry, "add", WORDS("x", "1", "--by", "2")));
    inquiry_free(&inquiry);
    CHECK(!asks(&inquiry, "add", WORDS("x", "--idempotency-key", "a\nb")));
    inquiry_free(&inquiry);
    CHECK(!asks(&inquiry, "add", WORDS("x", "--task", "b")));
    inquiry_free(&inquiry);
}

TEST(what_people_type_is_json_or_a_text)
{
    static const struct {
        const char *typed, *json;
    } cases[] = {{"17", "17"},
                 {"-2.50", "-2.50"},
                 {"true", "true"},
                 {"null", "null"},
                 {"a text", "\"a text\""},
                 {"\"17\"", "\"17\""},
                 {"{\"a\":[1]}", "{\"a\":[1]}"},
                 {"5%", "\"5%\""},
                 {"", "\"\""},
                 {"{\"a\":", NULL},
                 {"[1", NULL},
                 {"\"a", NULL}};
    struct arguments arguments = {.command = child_named("add"), .parent = &parent};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        bool fine = typed_json(&arguments, "data", cases[i].typed, &out);
        if (fine != (cases[i].json != NULL) || (fine && !is(buf_view(&out), cases[i].json)))
            test_failed(__FILE__, __LINE__, "%s is taken as %.*s", cases[i].typed, SLICE_ARG(buf_view(&out)));
        buf_free(&out);
    }
}

TEST(statuses_of_answers)
{
    static const struct {
        int http;
        const char *error;
        int status;
    } cases[] = {{200, NULL, EXIT_FINE},
                 {201, NULL, EXIT_FINE},
                 {204, NULL, EXIT_LATER},
                 {304, NULL, EXIT_LATER},
                 {400, "bad-request", EXIT_USAGE},
                 {400, "refused", EXIT_FAULT},
                 {404, "no-such-job", EXIT_FAULT},
                 {409, "held", EXIT_LATER},
                 {409, "stale-fence", EXIT_LOST},
                 {409, "expired", EXIT_LOST},
                 {409, "job-closed", EXIT_FAULT},
                 {412, "version-mismatch", EXIT_LOST},
                 {503, "busy", EXIT_LATER},
                 {503, "no-reply", EXIT_FAULT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(heard_status(&(struct heard){.status = cases[i].http, .error = cases[i].error}) ==
              cases[i].status);
}
