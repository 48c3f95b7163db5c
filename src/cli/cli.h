/* The command line: commands that work on data through the C library (quipu.h), and what all commands share.
 *
 * A command is a row: its name, its words for people, its flags, and the function that runs it. Reading the
 * arguments, the help text and the shells' completion are derived from the row, so they cannot differ from
 * each other. The rooms above add rows of their own (the server's). Commands on data see it only through
 * the library (quipu.h), so they work alike on a folder, in memory, and on any DynamoDB endpoint. Commands on
 * functions, triggers, schedules and queues call a running server over HTTP (service.h). `quipu cost` goes
 * past the library: what it measures depends on the clock, so it brings its own.
 *
 * Invariants:
 *  C1. Standard output carries what was asked for and nothing else; everything said to the person goes to
 *      standard error. Readable tables only on a terminal, JSON lines otherwise.
 *  C2. The exit status is 0 when it was done, 1 when not (with one sentence that says why), 2 when the
 *      arguments make no sense; patterns have 3 and 4.
 *  C3. Nothing is written before all arguments were understood. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses: the first three as other tools use them. Patterns have two more for what scripts go on from:
 * it is not the time yet (another holds the lease, there is nothing to claim, the wait is over), and somebody
 * else has changed it since (the version, the fence). */
enum { EXIT_FINE = 0, EXIT_FAULT = 1, EXIT_USAGE = 2, EXIT_LATER = 3, EXIT_LOST = 4 };

/* ---- what a command is ---- */

struct arguments;
struct buf;
struct flow_row;

struct flag {
    const char *name;  /* "data" is --data; NULL: `about` is a heading in the help */
    const char *takes; /* what follows it: "DIR"; NULL: nothing, it is a switch; "[=...]": only behind an = */
    const char *about; /* lines separated by \n; NULL: the help and the completion do not name it */
};

/* A flag as another program spells it, dash included ("-dbPath"), and ours; NULL: taken, and nothing follows. */
struct flag_alias {
    const char *spelling, *name;
};

struct command {
    const char *name;
    const char *summary; /* behind the name in the list of commands */
    const char *usage;   /* what may follow the name: "TABLE [KEY...] [flags]" */
    const char *about;   /* paragraphs of the help */
    const struct flag *flags;
    size_t flag_count;
    const struct flag_alias *aliases; /* ended by one without a spelling; NULL: none */
    const char *examples;             /* lines; NULL: none */
    const struct command *children;   /* "table" has "ls", "create", ...; then there is no run */
    size_t child_count;
    /* Instead of children: makes them when they are first asked for. */
    const struct command *(*grow)(const struct command *parent, size_t *count);
    const struct flow_row *operation; /* of a pattern, from which the row is made; NULL: none */
    bool works_on_data;               /* takes --on and its companions */
    bool works_on_server;          /* the same, where it must be a server: functions and what starts them; with
                                      both: a server, or its data folder */
    bool has_environment;          /* each flag may stand in QUIPU_NAME */
    unsigned words_min, words_max; /* arguments that are no flags */
    int (*run)(const struct arguments *arguments);
};

/* In a row: its flags, which are an array. */
#define FLAGS(list) .flags = list, .flag_count = sizeof list / sizeof *list

#define WORDS_MANY 1000000u /* for words_max: as many as one likes */

struct program {
    const char *title;       /* the first line of the help */
    const char *first_steps; /* its last lines */
    const struct command *const *commands;
    size_t count;
};

/* Runs the command that argv[1] names; knows help, --help, version and --version. Answers the exit status. */
int program_run(const struct program *program, int argc, char **argv);

/* All commands with their help texts, as members of a JSON array: {"name":"table ls","summary":...,"help":...}. Not
 * from two threads at a time. */
void program_put_help(const struct program *program, struct buf *out);

/* The rows of this room, to be put among the program's. */
extern const struct command command_table, command_get, command_put, command_update, command_delete,
    command_query, command_scan, command_sql, command_tail, command_top, command_dump, command_load, command_copy,
    command_completion, command_function, command_route, command_layer, command_trigger, command_schedule,
    command_queue, command_counter, command_job, command_group, command_period, command_work, command_doc,
    command_lease, command_once, command_limit, command_history, command_log, command_board, command_drive,
    command_cost, command_deploy, command_backup, command_restore;

/* ---- arguments ---- */

/* The text of a flag, the last one's when it was given twice; NULL when it was not given. A switch has "yes".
 */
const char *argument_text(const struct arguments *arguments, const char *flag);
/* Whether the command has such a flag at all. */
bool argument_offered(const struct arguments *arguments, const char *flag);
bool argument_given(const struct arguments *arguments, const char *flag);
/* Not only in the environment. */
bool argument_typed(const struct arguments *arguments, const char *flag);
/* The texts of a flag that may be given many times, one by one: from 0 until NULL. */
const char *argument_nth(const struct arguments *arguments, const char *flag, size_t nth);
/* A whole number within the bounds; false after complaining. *out is left as it was when the flag was not
 * given. */
bool argument_number(const struct arguments *arguments, const char *flag, unsigned long long min,
                     unsigned long long max, unsigned long long *out);
/* A moment like 2026-11-15T03:42:06Z, or seconds since 1970; the other where none is given. False after complaining. */
bool argument_moment(const struct arguments *arguments, const char *flag, int64_t otherwise_ms, int64_t *out_ms);
size_t argument_words(const struct arguments *arguments);
const char *argument_word(const struct arguments *arguments, size_t nth);

/* "quipu: " and a sentence on standard error; answers EXIT_FAULT. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and where to find help; answers EXIT_USAGE. */
int complain_of_usage(const struct arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
