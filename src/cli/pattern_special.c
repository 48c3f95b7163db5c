/* The rows of commands that are more than one call of a pattern. */
#include "cli/operation.h"
#include "cli/special.h"

// clang-format off
static const struct flag lease_flags[] = {
    {"for", "TIME", "how long the lease lasts without a renewal; 30s"},
    {"wait", "TIME", "how long to wait for it; for ever"},
    {"holders", "N", "how many may hold it at a time; 1"},
    {"owner", "TEXT", "who holds it; a name of this process"},
};
static const struct flag once_flags[] = {
    {"for", "TIME", "how long it is begun without a renewal; 30s"},
    {"keep", "TIME", "how long its result is kept; 1d"},
    {"wait", "TIME", "how long to wait where another is at it; for ever"},
    {"owner", "TEXT", "who does it; a name of this process"},
};
static const struct flag work_flags[] = {
    {"for", "TIME", "how long a claim lasts without a beat; the queue's lease"},
    {"drain", NULL, "end when nothing can be claimed"},
    {"units", "N", "end after so many units"},
    {"owner", "TEXT", "who works; a name of this process"},
};
static const struct flag start_flags[] = {
    {"each", "TARGET", "what the server calls for each task: a function, a URL or a call"},
    {"items", "FILE", "what each task is given: JSON lines; -: standard input"},
    {"total", "N", "how many tasks, where they have no items"},
    {"from", "JSON", "or a table whose items they are: {\"table\", \"query\" or \"scan\"}"},
    {"concurrency", "N", "how many calls run at a time; 10"},
    {"attempts", "N", "so often a task is called before it has failed; 3"},
    {"backoff", "TIME", "the pause before the second attempt, doubled with each further one; 1s"},
    {"timeout", "TIME", "of a call, where it is shorter than the function's own"},
    {"paused", "BOOL", "true: nothing is called yet"},
    {"tolerate", "N", "so many tasks may fail, or a share like 5%; 0"},
    {"deadline", "TIME", "when it EXPIRES with what is done then"},
    {"keep", "TIME", "how long it is kept after its end; for ever"},
    {"then", "TARGET", "what runs when it ends"},
    {"parent", "JSON", "the task of another job that this one is: {\"job\", \"task\"}"},
};
static const struct flag read_flags[] = {
    {"follow", NULL, "go on with what comes, until a signal; also -f"},
};
// clang-format on

const struct special special_commands[] = {
    {.parent = "lease",
     .name = "run",
     .summary = "run a command while a lease is held",
     .usage = "NAME [flags] -- COMMAND [ARGUMENT...]",
     .about =
         "Waits for a lease, runs a command while it holds it, and releases it. The command finds\n"
         "QUIPU_FENCE, QUIPU_LEASE and QUIPU_OWNER in its environment. When the lease cannot be kept, the\n"
         "command is asked to end (SIGTERM) and killed before others may have the lease; it is killed,\n"
         "too, when this process is.\n"
         "\n"
         "The exit status is the command's; 3: another holds the lease and the wait is over; 4: it was\n"
         "lost; 126 and 127: the command could not be started.",
     FLAGS(lease_flags),
     .words_min = 2,
     .words_max = WORDS_MANY,
     .run = lease_run},
    {.parent = "once",
     .name = "run",
     .summary = "run a command once for a key; later calls print what it printed",
     .usage = "NAME KEY [flags] -- COMMAND [ARGUMENT...]",
     .about =
         "Runs a command unless somebody has run it for this key, and prints what it prints; where somebody\n"
         "has, prints what it printed then; where somebody is at it, waits. Exit status 0 ends it, and its\n"
         "output (JSON, or else a text; up to 400 KB) is what all others get. Any other exit status gives it\n"
         "up, and the next one tries. QUIPU_FENCE and QUIPU_KEY are in the command's environment. When it\n"
         "cannot be renewed, the command is ended before another may begin.\n"
         "\n"
         "The exit status is the command's; 0 where it was run before; 3: another is at it and the wait is\n"
         "over; 4: it was lost; 126 and 127: the command could not be started.",
     FLAGS(once_flags),
     .words_min = 3,
     .words_max = WORDS_MANY,
     .run = once_run},
    {.parent = "work",
     .name = "run",
     .summary = "claim units one after the other and run a command for each",
     .usage = "QUEUE [flags] -- COMMAND [ARGUMENT...]",
     .about = "Claims units of work and runs a command for each: its data on standard input (a text without\n"
              "quotes), QUIPU_QUEUE, QUIPU_ID, QUIPU_FENCE, QUIPU_ATTEMPT and QUIPU_PROGRESS in the\n"
              "environment. Exit status 0 finishes the unit, with what was printed as its result (JSON, or\n"
              "else a text); any other fails it, to be tried again as the queue says. Beats keep the unit\n"
              "meanwhile; when it is lost to another, the command is ended.\n"
              "\n"
              "Prints a line of JSON for each unit. A signal is handed on to the command, and ends the loop\n"
              "behind the unit.",
     FLAGS(work_flags),
     .words_min = 2,
     .words_max = WORDS_MANY,
     .run = work_run},
    {.parent = "job",
     .name = "start",
     .summary = "open a job whose tasks the server calls, with items from a file",
     .usage = "ID --each TARGET [--items FILE] [flags]",
     .about =
         "Opens a job; a 'quipu serve' on the same tables calls --each for each task, at most\n"
         "--concurrency at a time, and counts what comes of it. --items sends a file of JSON lines, one\n"
         "task each, in bounded memory: it may have millions. After an interruption the same command goes\n"
         "on where the last one ended. 'quipu job watch' shows how far the job is.",
     .flags = start_flags,
     .flag_count = sizeof start_flags / sizeof *start_flags,
     .words_min = 1,
     .words_max = 1,
     .run = job_start},
    {.parent = "job",
     .name = "watch",
     .summary = "show how far a job is until its end",
     .about =
         "Shows how far a job is until its end: a bar on a terminal, otherwise a line of JSON for each\n"
         "change. The exit status is 0 when it is COMPLETE, 1 when it FAILED or EXPIRED, 3 when --for was\n"
         "over before.",
     .words_min = 1,
     .words_max = 1,
     .run = job_watch},
    {.parent = "doc",
     .name = "edit",
     .summary = "edit a document in $EDITOR",
     .usage = "COLLECTION KEY [flags]",
     .about =
         "Opens a document in $VISUAL, $EDITOR or vi, and writes it if nobody has changed it meanwhile\n"
         "(If-Match). If somebody has, the editor is opened again with what it is now, and what you wrote\n"
         "stays in a file. A document that is not there yet is made. Prints its new version.",
     .words_min = 2,
     .words_max = 2,
     .run = doc_edit},
    {.parent = "group",
     .name = "add",
     .usage = "NAME [KEY [DATA]] [flags]",
     .about =
         "Adds an event to a group; one of them completes it. Without KEY, events are read from standard\n"
         "input, one on each line: {\"key\":...,\"id\":...,\"kind\":...,\"data\":...,\"amount\":...}. Lines are\n"
         "sent in batches of 99, and each has its answer on a line; exit status 1: one of them was refused.\n"
         "\n"
         "On HTTP: POST /v1/groups/{name}/{key}\n"
         "of lines: POST /v1/groups/{name}",
     .words_min = 1,
     .words_max = 3,
     .run = group_add_lines},
    {.parent = "period",
     .name = "add",
     .usage = "NAME [DATA] [flags]",
     .about =
         "Adds to the bucket of the present period. Where nothing is given, events are read from standard\n"
         "input, one on each line: {\"id\":...,\"data\":...,\"time\":...}. Lines are sent in batches of 99, and\n"
         "each has its answer on a line; exit status 1: one of them was refused.\n"
         "\n"
         "On HTTP: POST /v1/periods/{name}",
     .words_min = 1,
     .words_max = 2,
     .run = period_add_lines},
    {.parent = "work",
     .name = "submit",
     .usage = "QUEUE [ID [DATA]] [flags]",
     .about =
         "Submits a unit; again, it answers what became of it. Without ID, units are read from standard\n"
         "input, one on each line: {\"id\":...,\"data\":...,\"delay\":...}. Lines are sent in batches of 99,\n"
         "and each has its answer on a line.\n"
         "\n"
         "On HTTP: POST /v1/work/{queue}/{id}\n"
         "of lines: POST /v1/work/{queue}",
     .words_min = 1,
     .words_max = 3,
     .run = work_submit_lines},
    {.parent = "log",
     .name = "append",
     .usage = "LOG [KEY [DATA]] [flags]",
     .about =
         "Appends an event and prints where it is. Without DATA, events are read from standard input, one\n"
         "on each line: with KEY its data (JSON, or else a text), without it {\"key\":...,\"data\":...} and\n"
         "perhaps \"token\". Lines are appended in batches of 99, each as a whole.\n"
         "\n"
         "On HTTP: POST /v1/logs/{log}",
     .words_min = 1,
     .words_max = 3,
     .run = log_append},
    {.parent = "log",
     .name = "read",
     .summary = "print unread events and ack them",
     .usage = "LOG NAME [OWNER] [flags]",
     .about =
         "Reads what a group of consumers (NAME) has not read yet, prints each event on a line and acks "
         "what\n"
         "was printed, until there is no more (or for ever with --follow). Whoever is killed in between\n"
         "leaves them to the next, who prints them again. With --json it is one reply, as HTTP has it, and\n"
         "nothing is acked. Exit status 3: there was nothing.\n"
         "\n"
         "On HTTP: POST /v1/logs/{log}/consumers/{name}/read",
     FLAGS(read_flags),
     .words_min = 2,
     .words_max = 3,
     .run = log_read},
};
const size_t special_count = sizeof special_commands / sizeof *special_commands;
