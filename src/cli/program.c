/* Which command, and the help texts, laid out from the commands' rows. */
#include <stdio.h>
#include <string.h>

#include <quipu.h>

#include "base/compose.h"
#include "cli/arguments.h"
#include "cli/nearest.h"

#define FLAG_COLUMN 24 /* where the flags' explanations begin */

/* ---- help ---- */

static void put_text(struct buf *out, const char *text)
{
    buf_slice(out, slice_of(text));
}

static void put_spaces(struct buf *out, size_t count)
{
    while (count--) buf_byte(out, ' ');
}

/* Explanations of several lines stand below each other. */
static void put_flag(struct buf *out, const struct flag *flag)
{
    if (!flag->name) {
        buf_printf(out, "\n%s\n", flag->about);
        return;
    }
    size_t start = out->len;
    bool is_apart = flag->takes && flag->takes[0] != '[';
    buf_printf(out, "  --%s%s%s", flag->name, is_apart ? " " : "", flag->takes ? flag->takes : "");
    size_t width = out->len - start;
    if (width >= FLAG_COLUMN) {
        buf_byte(out, '\n');
        width = 0;
    }
    put_spaces(out, FLAG_COLUMN - width);
    for (const char *at = flag->about; *at; at++) {
        buf_byte(out, (unsigned char)*at);
        if (*at == '\n') put_spaces(out, FLAG_COLUMN);
    }
    buf_byte(out, '\n');
}

static void put_flags(struct buf *out, const struct flag *flags, size_t count)
{
    if (count && flags[0].name) put_text(out, "\nFlags:\n");
    for (size_t i = 0; i < count; i++)
        if (flags[i].about) put_flag(out, &flags[i]);
}

static void put_children(struct buf *out, const struct command *command)
{
    size_t count;
    const struct command *children = command_children(command, &count);
    if (count) buf_text(out, "\nCommands:\n");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "  %s %-10s %s\n", command->name, children[i].name, children[i].summary);
}

void help_put(struct buf *out, const struct command *command, const struct command *parent)
{
    buf_printf(out, "Usage: quipu %s%s%s %s\n\n%s\n", parent ? parent->name : "", parent ? " " : "",
               command->name, command->usage, command->about);
    put_children(out, command);
    put_flags(out, command->flags, command->flag_count);
    size_t count;
    const struct flag *common = common_flags(command, &count);
    put_flags(out, common, count);
    if (command->has_environment)
        buf_text(out,
                 "\nEach flag can stand in the environment too, as QUIPU_ and its name: QUIPU_DATA=...\n");
    if (command->examples) buf_printf(out, "\nExamples:\n%s\n", command->examples);
}

void help_put_program(struct buf *out, const struct program *program)
{
    buf_printf(out, "%s\n\nUsage: quipu COMMAND [flags]\n\nCommands:\n", program->title);
    for (size_t i = 0; i < program->count; i++)
        buf_printf(out, "  %-11s%s\n", program->commands[i]->name, program->commands[i]->summary);
    buf_text(out, "  help       this text, or 'quipu help COMMAND'\n"
                  "  version    print the version\n");
    buf_printf(out, "\n%s\n'quipu COMMAND --help' tells more. The manual is quipu(1).\n",
               program->first_steps);
}

static void put_command(struct buf *out, const struct command *command, const struct command *parent)
{
    struct arena arena = {0};
    struct buf help = {0};
    struct slice name = arena_printf(&arena, "%s%s%s", parent ? parent->name : "", parent ? " " : "", command->name);
    help_put(&help, command, parent);
    compose(out, "%,{'name':%s,'summary':%s,'help':%s}", name, slice_of(command->summary), buf_view(&help));
    buf_free(&help);
    arena_free(&arena);
}

void program_put_help(const struct program *program, struct buf *out)
{
    for (size_t i = 0; i < program->count; i++) {
        size_t count;
        const struct command *command = program->commands[i], *children = command_children(command, &count);
        if (!count) put_command(out, command, NULL);
        for (size_t k = 0; k < count; k++) put_command(out, &children[k], command);
    }
}

static int print_help(const struct program *program, const struct command *command,
                      const struct command *parent)
{
    struct buf out = {0};
    if (command)
        help_put(&out, command, parent);
    else
        help_put_program(&out, program);
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    return EXIT_FINE;
}

/* ---- running ---- */

const struct command *command_children(const struct command *command, size_t *count)
{
    if (command->grow) return command->grow(command, count);
    *count = command->child_count;
    return command->children;
}

static const struct command *find_command(const struct program *program, const char *name)
{
    for (size_t i = 0; i < program->count; i++)
        if (strcmp(program->commands[i]->name, name) == 0) return program->commands[i];
    return NULL;
}

static const struct command *find_child(const struct command *command, const char *name)
{
    size_t count;
    const struct command *children = command_children(command, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(children[i].name, name) == 0) return &children[i];
    return NULL;
}

static bool is_any_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static int unknown_command(const struct program *program, const char *name)
{
    struct nearest nearest = {0};
    for (size_t i = 0; i < program->count; i++)
        nearest_try(&nearest, slice_of(name), program->commands[i]->name);
    if (name[0] == '-')
        complain("the command comes first, its flags behind it: quipu COMMAND %s ...", name);
    else if (nearest.name)
        complain("there is no command '%s'; did you mean '%s'?", name, nearest.name);
    else
        complain("there is no command '%s'", name);
    fputs("Try 'quipu --help'.\n", stderr);
    return EXIT_USAGE;
}

static void complain_of_child(const struct command *command, const char *name)
{
    size_t count;
    const struct command *children = command_children(command, &count);
    struct nearest nearest = {0};
    for (size_t i = 0; i < count; i++) nearest_try(&nearest, slice_of(name), children[i].name);
    if (nearest.name)
        complain("there is no command '%s %s'; did you mean '%s %s'?", command->name, name, command->name,
                 nearest.name);
    else
        complain("there is no command '%s %s'", command->name, name);
}

static int run_command(const struct program *program, const struct command *command,
                       const struct command *parent, int argc, char **argv)
{
    struct arguments arguments = {.program = program, .command = command, .parent = parent};
    int status = EXIT_USAGE;
    if (arguments_read(&arguments, argc, argv))
        status = arguments.wants_help ? print_help(program, command, parent) : command->run(&arguments);
    arguments_free(&arguments);
    return status;
}

static int run_child(const struct program *program, const struct command *command, int argc, char **argv)
{
    if (argc > 0 && is_any_of(argv[0], "--help", "-h", "help")) return print_help(program, command, NULL);
    const struct command *child = argc > 0 ? find_child(command, argv[0]) : NULL;
    if (child) return run_command(program, child, command, argc - 1, argv + 1);
    if (argc > 0)
        complain_of_child(command, argv[0]);
    else
        complain("say what to do: quipu %s %s", command->name, command->usage);
    fprintf(stderr, "Try 'quipu %s --help'.\n", command->name);
    return EXIT_USAGE;
}

static int help(const struct program *program, int argc, char **argv)
{
    if (argc < 1) return print_help(program, NULL, NULL);
    const struct command *command = find_command(program, argv[0]);
    if (!command) return unknown_command(program, argv[0]);
    const struct command *child = argc > 1 ? find_child(command, argv[1]) : NULL;
    return child ? print_help(program, child, command) : print_help(program, command, NULL);
}

int program_run(const struct program *program, int argc, char **argv)
{
    if (argc < 2) {
        struct buf out = {0};
        help_put_program(&out, program);
        fwrite(out.data, 1, out.len, stderr);
        buf_free(&out);
        return EXIT_USAGE;
    }
    if (is_any_of(argv[1], "help", "--help", "-h")) return help(program, argc - 2, argv + 2);
    if (is_any_of(argv[1], "version", "--version", "-V")) {
        puts("quipu " QUIPU_VERSION);
        return EXIT_FINE;
    }
    const struct command *command = find_command(program, argv[1]);
    if (!command) return unknown_command(program, argv[1]);
    return command->run ? run_command(program, command, NULL, argc - 2, argv + 2)
                        : run_child(program, command, argc - 2, argv + 2);
}
