/* What the arguments of a command turned out to be; private to the files that read, explain and complete
 * them. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

struct given {
    const struct flag *flag;
    const char *text;
};

struct arguments {
    const struct program *program;
    const struct command *command, *parent; /* parent: "table" of "table ls", or NULL */
    struct given *given;                    /* environment first, so that arguments win */
    size_t given_count, environment_count;
    const char **words;
    size_t word_count;
    bool wants_help;
    struct arena hidden; /* values that were taken out of argv */
};

/* Flags that a command takes besides its own: where the data or the server is. */
const struct flag *common_flags(const struct command *command, size_t *count);

/* The commands of a command, if it has any. */
const struct command *command_children(const struct command *command, size_t *count);

/* Fills *out, whose program, command and parent are set. False after saying what is wrong. */
bool arguments_read(struct arguments *out, int argc, char **argv);
void arguments_free(struct arguments *arguments);

/* The command's help text. */
void help_put(struct buf *out, const struct command *command, const struct command *parent);
/* The program's. */
void help_put_program(struct buf *out, const struct program *program);

#endif
