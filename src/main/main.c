/* quipu: which command, and what it is all about. */
#include <stdio.h>
#include <string.h>

#include "main/main.h"

static const char help_text[] =
    "Quipu " QUIPU_VERSION ": a durable DynamoDB-compatible database in one binary.\n"
    "\n"
    "Usage: quipu COMMAND [flags]\n"
    "\n"
    "Commands:\n"
    "  serve    run the server: every AWS SDK and the aws command are its clients\n"
    "  check    verify a data folder: items, keys, sizes and counts\n"
    "  show     print what a data folder holds, entry by entry\n"
    "  help     this text, or 'quipu help COMMAND'\n"
    "  version  print the version\n"
    "\n"
    "First steps:\n"
    "  quipu serve                     # http://127.0.0.1:8000, data in ./quipu-data\n"
    "  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000\n"
    "\n"
    "'quipu COMMAND --help' tells more. The manual is quipu(1).\n";

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    {"serve", command_serve},
    {"check", command_check},
    {"show", command_show},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static bool is_any_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static int unknown_command(const char *name)
{
    fprintf(stderr, "quipu: there is no command '%s'\nTry 'quipu --help'.\n", name);
    return EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    if (argc < 1) {
        fputs(help_text, stdout);
        return EXIT_FINE;
    }
    const struct command *command = find_command(argv[0]);
    char help_flag[] = "--help", *arguments[] = {help_flag};
    return command ? command->run(1, arguments) : unknown_command(argv[0]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help_text, stderr);
        return EXIT_USAGE;
    }
    if (is_any_of(argv[1], "help", "--help", "-h")) return help(argc - 2, argv + 2);
    if (is_any_of(argv[1], "version", "--version", "-V")) {
        puts("quipu " QUIPU_VERSION);
        return EXIT_FINE;
    }
    const struct command *command = find_command(argv[1]);
    return command ? command->run(argc - 2, argv + 2) : unknown_command(argv[1]);
}
