/* Running a command while something is held: a lease, a unit of work, a thing that is done once.
 *
 * A thread renews what is held; the caller's thread waits for the command, hands signals on to it, and ends
 * it when the holding is lost: asked to (SIGTERM) when a renewal is overdue, killed when the time is over.
 * So the command does not run when others may, as far as a process can know. */
#ifndef CLI_HOLD_H
#define CLI_HOLD_H

#include <pthread.h>
#include <stdio.h>

#include "cli/operation.h"

struct hold {
    const struct place *place;
    struct inquiry renewal; /* how it is kept; the hold's own */
    int64_t for_ms;         /* how long each renewal lasts */
    int64_t from_us;        /* when the first one was asked for, monotonic */
};

struct ran {
    int wait_status; /* of waitpid */
    int failure;     /* errno: it could not be started; 0: it ran */
    bool was_lost;   /* it was ended because the holding was lost */
    int signal;      /* that this process was sent meanwhile; 0: none */
};

/* Signals wait until they are asked for, in all threads that are started from here on: called before a place
 * is opened. */
void signals_keep(void);
/* In this thread they end the process again, as long as there is nothing to be given back. */
void signals_let(void);
/* The signal that asks this process to end, if one has come; 0: none. */
int signals_pending(void);

struct program_run {
    char *const *words;          /* the command, NULL behind the last */
    const char *const *settings; /* "NAME=value" for its environment, NULL behind the last */
    int input, output;           /* its standard input and output; -1: ours */
};

/* Runs it to its end. When the holding is lost because nobody answers any more, the whole process ends with
 * EXIT_LOST. */
struct ran hold_run(const struct hold *hold, const struct program_run *program);
/* As a shell would tell it: the exit status, 128 and the signal, 127 or 126 when it could not be started. */
int ran_status(const struct ran *ran);
/* Why it counts as failed; NULL: it does not. */
const char *ran_reason(struct arena *arena, const struct ran *ran);
/* The member "result": what it printed. JSON as it stands, else a text without the line's end; nothing where it printed
 * nothing. */
void ran_put_result(FILE *output, struct buf *body);

/* A name for this process that no other has. */
const char *owner_make(struct arena *arena);
/* --for and --wait of these commands. False after complaining. */
bool argument_duration(const struct arguments *arguments, const char *flag, int64_t max_ms, int64_t *out_ms);

#endif
