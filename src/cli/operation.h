/* Commands made of the patterns' operations (pattern/operation.h): their words, flags and help are those of
 * HTTP, because they are read from the same rows.
 *
 * The fields of the path and some of the body are words behind the command. All others are flags, as are
 * words that may be left out, named as on HTTP in lower-case letters: Idempotency-Key is --idempotency-key.
 * The flow runs in this process, on whatever
 * --on names. */
#ifndef CLI_OPERATION_H
#define CLI_OPERATION_H

#include "cli/arguments.h"
#include "cli/place.h"
#include "pattern/pattern.h"

/* ---- operation.c: from a row to a command ---- */

#define OPERATION_WORDS 8 /* of one command */

/* What a row's `command` says. */
struct phrase_of_row {
    struct slice parent, name;                   /* "job", "done" */
    const struct field *fields[OPERATION_WORDS]; /* what the words are */
    const struct field *list;                    /* several words for the last of them; NULL: there is one */
    size_t count, needed;
    struct slice answer; /* the member that people want; "*": all of it; empty: none is better than others */
};
void row_phrase(const struct flow_row *row, struct phrase_of_row *out);
/* The field is, or one of its name in another place is, a word that must be there; all others are flags. */
bool phrase_needs(const struct phrase_of_row *phrase, const struct field *field);

/* The field of a row by the name of its flag; NULL: there is none. */
const struct field *row_field(const struct flow_row *row, struct slice name);
/* How a field's flag is called, in the buffer. */
#define FLAG_NAME_BYTES 40
const char *field_flag(const struct field *field, char name[FLAG_NAME_BYTES]);

/* All rows of a pattern as commands, and its special ones, made once. */
const struct command *operation_commands(const struct command *parent, size_t *count);
/* A special command: what a row of its name does not have. */
struct special {
    const char *parent, *name;
    const char *summary, *usage, *about; /* NULL: the row's */
    const struct flag *flags;
    size_t flag_count;
    unsigned words_min, words_max;
    int (*run)(const struct arguments *arguments);
};
extern const struct special special_commands[];
extern const size_t special_count;

/* ---- operation_request.c: from arguments to a request ---- */

struct inquiry {
    const char *method;
    struct buf path;    /* with its query */
    struct buf headers; /* lines */
    struct buf body;
    const struct field *wait; /* how long the call may wait, put in when it is made; NULL: it does not */
    int64_t wait_ms;
};

/* What the arguments of a row's command ask for. False after complaining, with *status. */
bool inquiry_read(struct inquiry *inquiry, const struct flow_row *row, const struct arguments *arguments,
                  int *status);
void inquiry_free(struct inquiry *inquiry);
/* Adds a parameter to the path's query. */
void inquiry_query(struct inquiry *inquiry, const char *name, struct slice value);
/* A path with names in it, escaped: "/v1/work/%s/claim". */
void inquiry_path(struct inquiry *inquiry, const char *format, const char *first, const char *second);
/* A value as a person types it: JSON, @FILE, - for standard input, or else a text. False after complaining.
 */
bool typed_json(const struct arguments *arguments, const char *what, const char *text, struct buf *out);
/* All of a text file up to what an event may hold; NULL: standard input. False after complaining. */
bool text_read_all(const char *name, struct buf *out);

/* ---- operation_reply.c: calling, and what is said of it ---- */

struct heard {
    int status;              /* of HTTP */
    const char *error;       /* the pattern's code; NULL: all went well */
    const char *message;     /* of the error */
    struct slice body;       /* as it came */
    const struct node *json; /* NULL: it is none */
    const char *etag;        /* NULL: none */
    struct slice cost;       /* where it is not in the body */
};

/* Calls and waits, as long as one call can (60s). All of the answer is in the arena. */
struct heard inquiry_run(const struct place *place, struct arena *arena, const struct inquiry *inquiry);
/* The exit status of an answer. */
int heard_status(const struct heard *heard);
/* The sentence of one that went wrong; answers its exit status. */
int heard_complain(const struct arguments *arguments, const struct place *place, const struct heard *heard);
/* Prints an answer as C1 says: the member that people want, or with --json all of it. */
void heard_print(const struct arguments *arguments, const struct heard *heard, struct slice answer);

/* Does what the row of a command says. */
int operation_run(const struct arguments *arguments);

/* The flags that all of these commands have. */
#define OPERATION_FLAGS 3
extern const struct flag operation_flags[OPERATION_FLAGS];

#endif
