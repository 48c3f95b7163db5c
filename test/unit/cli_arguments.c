/* Arguments, and the help that is laid out from the same rows. */
#include "cli/arguments.h"

#include <stdlib.h>

#include "unit/test.h"

static const struct flag flags[] = {
    {NULL, NULL, "Shape:"},
    {"size", "NUMBER", "how large"},
    {"a-very-long-name-indeed", "TEXT", "on a line\nof its own"},
    {"round", NULL, "no corners"},
};
static const struct command example = {.name = "draw",
                                       .usage = "WHAT... [flags]",
                                       .about = "Draws.",
                                       .flags = flags,
                                       .flag_count = sizeof flags / sizeof *flags,
                                       .examples = "  quipu draw a circle",
                                       .words_min = 1,
                                       .words_max = 2};

static struct arguments arguments;

static bool reads(const struct command *command, char **argv)
{
    int argc = 0;
    while (argv[argc]) argc++;
    arguments_free(&arguments);
    arguments = (struct arguments){.command = command};
    return arguments_read(&arguments, argc, argv);
}

#define READS(command, ...) reads(command, (char *[]){__VA_ARGS__, NULL})

TEST(arguments_are_flags_and_words_in_any_order)
{
    CHECK(READS(&example, "--size", "3", "circle", "--round", "--size=4", "--", "--round"));
    CHECK_INT(argument_words(&arguments), 2);
    CHECK_TEXT(slice_of(argument_word(&arguments, 0)), "circle");
    CHECK_TEXT(slice_of(argument_word(&arguments, 1)), "--round");
    CHECK(!argument_word(&arguments, 2));
    CHECK_TEXT(slice_of(argument_text(&arguments, "size")), "4");
    CHECK_TEXT(slice_of(argument_nth(&arguments, "size", 0)), "3");
    CHECK_TEXT(slice_of(argument_nth(&arguments, "size", 1)), "4");
    CHECK(!argument_nth(&arguments, "size", 2));
    CHECK(argument_given(&arguments, "round") && !argument_given(&arguments, "a-very-long-name-indeed"));
    arguments_free(&arguments);
    arguments = (struct arguments){0};
}

TEST(arguments_that_ask_for_help_need_nothing_else)
{
    CHECK(READS(&example, "--help") && arguments.wants_help);
    CHECK(READS(&example, "a", "b", "-h", "--nonsense") && arguments.wants_help);
    CHECK(READS(&example, "a", "--", "-h") && !arguments.wants_help);
    arguments_free(&arguments);
    arguments = (struct arguments){0};
}

TEST(arguments_on_data_are_utf8)
{
    struct command on_data = example;
    on_data.works_on_data = true;
    CHECK(READS(&on_data, "\xc3\xa4") && !READS(&on_data, "\xff") && READS(&example, "\xff"));
    arguments_free(&arguments);
    arguments = (struct arguments){0};
}

TEST(numbers_among_the_arguments)
{
    unsigned long long size = 7;
    CHECK(READS(&example, "a") && argument_number(&arguments, "size", 1, 10, &size));
    CHECK_INT(size, 7);
    CHECK(READS(&example, "a", "--size", "10") && argument_number(&arguments, "size", 1, 10, &size));
    CHECK_INT(size, 10);
    arguments_free(&arguments);
    arguments = (struct arguments){0};
}

TEST(the_environment_stands_behind_the_arguments)
{
    struct command with_environment = example;
    with_environment.has_environment = true;
    setenv("QUIPU_SIZE", "5", 1);
    setenv("QUIPU_ROUND", "no", 1);
    CHECK(READS(&with_environment, "a"));
    CHECK_TEXT(slice_of(argument_text(&arguments, "size")), "5");
    CHECK(!argument_given(&arguments, "round"));
    setenv("QUIPU_ROUND", "1", 1);
    CHECK(READS(&with_environment, "a", "--size", "6"));
    CHECK_TEXT(slice_of(argument_text(&arguments, "size")), "6");
    CHECK(argument_given(&arguments, "round"));
    CHECK(READS(&example, "a") && !argument_given(&arguments, "size"));
    unsetenv("QUIPU_SIZE");
    unsetenv("QUIPU_ROUND");
    arguments_free(&arguments);
    arguments = (struct arguments){0};
}

TEST(help_is_laid_out)
{
    struct buf out = {0};
    help_put(&out, &example, NULL);
    CHECK_TEXT(buf_view(&out), "Usage: quipu draw WHAT... [flags]\n"
                               "\n"
                               "Draws.\n"
                               "\n"
                               "Shape:\n"
                               "  --size NUMBER         how large\n"
                               "  --a-very-long-name-indeed TEXT\n"
                               "                        on a line\n"
                               "                        of its own\n"
                               "  --round               no corners\n"
                               "\n"
                               "Examples:\n"
                               "  quipu draw a circle\n");
    buf_free(&out);
}
