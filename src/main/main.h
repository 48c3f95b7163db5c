/* The program: flags in, one of its commands run, an exit status out. */
#ifndef MAIN_MAIN_H
#define MAIN_MAIN_H

#include <stdbool.h>
#include <stddef.h>

#define QUIPU_VERSION "0.1.0"

/* Exit statuses, as other tools use them. */
enum { EXIT_FINE = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

/* ---- flags.c: "--name value", "--name=value", or QUIPU_NAME in the environment ---- */

struct flag {
    const char *name;   /* "data" is --data and QUIPU_DATA */
    const char **value; /* where its text goes; for a switch, "yes" when given */
    bool is_switch;
};

/* Fills the flags from the environment, then from the arguments, which win. False after saying what is wrong on standard
 * error. *help is set when --help or -h was among them. */
bool flags_read(const struct flag *flags, size_t count, const char *command, int argc, char **argv, bool *help);

/* "quipu: " and a sentence on standard error; answers EXIT_FAULT. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the commands: arguments behind the command's name; they answer the exit status ---- */

int command_serve(int argc, char **argv);
int command_check(int argc, char **argv);
int command_show(int argc, char **argv);

#endif
