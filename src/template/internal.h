/* What the files of this room share. */
#ifndef TEMPLATE_INTERNAL_H
#define TEMPLATE_INTERNAL_H

#include <stdarg.h>

#include "template/template.h"

/* ---- read.c ---- */

/* One text that is read. */
struct reading {
    struct arena *arena;
    struct slice text;
    const char *name; /* of the file */
    struct template_notes *notes;
    char *error; /* TEMPLATE_ERROR_BYTES; empty while all is well */
};

/* Writes the error unless there is one already; always false. */
bool reading_fail(struct reading *reading, size_t line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same where there is nothing but a name and room for the error. */
bool error_put(char *error, const char *name, size_t line, size_t column, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));

void note_put(struct arena *arena, struct template_notes *notes, const struct node *where, const char *format,
              ...) __attribute__((format(printf, 4, 5)));
void note_put_args(struct arena *arena, struct template_notes *notes, const struct node *where, const char *format,
                   va_list args) __attribute__((format(printf, 4, 0)));

/* False after reading_fail: it is too long. */
bool name_check(struct reading *reading, struct slice name, size_t line, size_t column);
/* Removes all but the last member of each name, with a note for each where that is told. */
void members_settle(struct reading *reading, struct node *object, bool is_told);

/* ---- yaml.c ---- */

const struct node *yaml_read(struct reading *reading);

/* ---- make.c: nodes that no text has ---- */

/* A node that stands where another one does; NULL: nowhere. */
struct node *make_node(struct arena *arena, enum json_kind kind, const struct node *where);
struct node *make_text(struct arena *arena, const struct node *where, struct slice text);
/* The same value under another name, and in no list. */
struct node *make_copy(struct arena *arena, const struct node *value, struct slice name);
/* Puts a node of no list behind the children. */
void make_append(struct node *parent, struct node *child);
/* The same under a name, in place of the member that has it. */
void make_set(struct arena *arena, struct node *object, struct slice name, const struct node *value);
/* A tree by a format: JSON with ' for ", in which %s is a struct slice as a string, %n a const struct node * and %d an
 * int. A member whose %n is NULL, or whose %s has no data, is left out. */
struct node *make_tree(struct arena *arena, const struct node *where, const char *format, ...);

/* Objects are merged member by member, lists are joined, of everything else the upper one counts. */
const struct node *make_merged(struct arena *arena, const struct node *lower, const struct node *upper);

/* Whether the value is {"Name": ...}; its argument is *argument. */
bool node_is_call(const struct node *value, const char *name, const struct node **argument);
/* Whether a text has any function in it, that is, is known only when it is resolved. */
bool node_is_plain(const struct node *value);

/* ---- open.c ---- */

struct parameter {
    struct slice name;
    const struct node *value;
};

struct condition {
    struct slice name;
    const struct node *rule;
    enum { CONDITION_UNTRIED, CONDITION_UNDER_WAY, CONDITION_HOLDS, CONDITION_FAILS } state;
};

/* Writes the error unless there is one already; always false. */
bool template_fail(struct template *template, const struct node *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- parameters.c ---- */

bool parameters_read(struct template *template);

/* ---- sam.c ---- */

bool template_is_sam(const struct node *root);
/* The template in plain CloudFormation. */
const struct node *sam_translate(struct template *template, const struct node *root);

/* ---- variables.c, serverless.c ---- */

/* The tree of a serverless.yml without its variables; NULL after template_fail. */
const struct node *variables_fill(struct template *template, const struct node *root);
bool template_is_serverless(const struct node *root);
/* The same in plain CloudFormation; NULL after template_fail. */
const struct node *serverless_translate(struct template *template, const struct node *root);

/* ---- resolve.c ---- */

/* A condition by its name. */
bool condition_is_met(struct template *template, const struct node *where, struct slice name, bool *holds);

#endif
