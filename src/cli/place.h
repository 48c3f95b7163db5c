/* Where the data is: an open database, calls whose replies are trees, and the sentences for what went wrong.
 */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <quipu.h>

#include "base/node.h"
#include "cli/cli.h"

struct place {
    struct quipu *db;
    const char *where;
    const char *prefix; /* of our own tables' names */
    bool is_url;
    bool is_default; /* nobody said where */
};

struct answer {
    const struct node *json; /* NULL when the reply was no JSON */
    const char *error;       /* the exception's name; NULL: all went well */
    const char *message;     /* of the error */
};

/* What the names of our own tables begin with: --prefix, $QUIPU_PREFIX, "quipu-". */
const char *place_prefix(const struct arguments *arguments);
/* What a command does with the data; for a folder, how it is opened. */
enum place_use {
    PLACE_READ,  /* for reading only: nothing in it changes, and others may read it too */
    PLACE_LOOK,  /* for writing, because patterns do what they find due; where that cannot be, for reading only */
    PLACE_WRITE, /* for writing; it must be there */
    PLACE_MAKE,  /* for writing; a missing one is made */
};

/* Opens what --on names. False after complaining. */
bool place_open(struct place *out, const struct arguments *arguments, enum place_use use);
/* The same for a place that was named otherwise. */
bool place_open_at(struct place *out, const char *where, const struct arguments *arguments, enum place_use use);
void place_close(struct place *place);

/* Calls and waits. Everything in the answer is in the arena. */
struct answer place_ask(const struct place *place, struct arena *arena, const char *operation,
                        const struct buf *request);
/* The same for who needs no more than a reply: NULL after complaining. */
const struct node *place_call(const struct place *place, struct arena *arena, const char *operation,
                              const struct buf *request);
/* The sentence about a failed call; answers EXIT_FAULT. `table` may be NULL. */
int place_complain(const struct place *place, const char *table, const char *error, const char *message);

/* An error that goes away by itself: throttling, a server's fault, nobody there for a moment. */
bool error_may_pass(const char *error);
/* Sleeps for the nth time (from 0) in a row: longer each time, up to some seconds. */
void pause_before_retry(unsigned nth);

/* ---- tables ---- */

struct key_part {
    struct slice name; /* empty: there is none */
    char type;         /* S, N or B */
};

#define KEY_PARTS_MAX 8 /* an index's key may have four attributes for its hash and four for its range */

/* The key of a table or an index: the parts of its hash, then those of its range. */
struct key {
    struct key_part parts[KEY_PARTS_MAX];
    size_t hash_count, count;
};

struct schema {
    const char *table;
    const struct node *description; /* "Table" of DescribeTable */
    struct key_part hash, range;
    const char *index;   /* NULL: the table itself */
    struct key searched; /* of the index, else of the table */
    const struct node *index_description;
    bool is_global; /* the index */
};

/* Asks for a table's keys and, unless index is NULL, for those of its index. False after complaining. */
bool schema_load(const struct place *place, struct arena *arena, const char *table, const char *index,
                 struct schema *out);
/* A key out of a description: the types of its attributes are in the table's. */
void schema_key(const struct node *table, const struct node *key_schema, struct key *out);
/* The same for a table's own key, which has at most two parts. */
void schema_keys(const struct node *table, struct key_part *hash, struct key_part *range);

/* {"TableName":"..." */
void request_begin(struct buf *out, const char *table);

/* For a program that we become: its files are as its user wants them, not private like a data folder's. */
void place_reset_umask(void);

#endif
