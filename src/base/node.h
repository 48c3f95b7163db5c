/* JSON as a tree in an arena, for replies and for what people type: here a tree is worth more than speed. */
#ifndef BASE_NODE_H
#define BASE_NODE_H

#include "base/json.h"

struct node {
    enum json_kind kind;
    bool unknown;             /* STRING: stands for a text that is not known yet, and tells which */
    struct slice name;        /* of a member */
    struct slice text;        /* STRING: decoded. NUMBER: as it stands */
    struct slice source;      /* the whole value as it stands in the text; empty when it was no JSON */
    uint32_t line, column;    /* where it stands, from 1 on; 0: nobody has looked */
    const struct node *first; /* member or element */
    const struct node *next;  /* behind this one */
};

/* The tree of a text that holds one value. NULL and a short phrase when it is not JSON. Slices point into the
 * text. */
const struct node *node_parse(struct arena *arena, struct slice text, const char **fault);
/* The same for the value that the reader stands before. */
const struct node *node_read(struct json_reader *reader);

/* A member by its name; NULL when there is none, when it is no object, or when there is no object. */
const struct node *node_member(const struct node *object, const char *name);
/* A member that is a string or a number, as text; empty when there is none. */
struct slice node_text(const struct node *object, const char *name);
/* A member that is a whole number; 0 when there is none. */
unsigned long long node_count(const struct node *object, const char *name);
bool node_is(const struct node *object, const char *name, const char *text);
bool node_is_true(const struct node *object, const char *name);
size_t node_children(const struct node *node);
/* The value as JSON. */
void node_put(struct buf *out, const struct node *node);

/* "Name": in front of a value, with a comma before it unless an object or array just opened. */
void put_name(struct buf *out, const char *name);
void put_string_member(struct buf *out, const char *name, struct slice text);
void put_int_member(struct buf *out, const char *name, int64_t number);
void put_raw_member(struct buf *out, const char *name, struct slice json);
/* A comma, unless an object or array just opened. */
void put_comma(struct buf *out);

#endif
