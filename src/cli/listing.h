/* Lists of things that are no items: a table on a terminal, JSON lines otherwise (C1). */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli/layout.h"
#include "cli/print.h"

/* What --json and --table ask for, else what suits standard output. */
enum form form_listed(const struct arguments *arguments);
// clang-format off
#define LIST_FLAGS                                                                                           \
    {"json", NULL, "print JSON lines, also on a terminal"},                                                  \
    {"table", NULL, "print a readable table, also into a file"}
// clang-format on

struct listing {
    struct arena arena;
    struct slice *cells;
    size_t columns, rows, room;
    bool is_table;
};

/* `head` names the columns. */
void listing_begin(struct listing *listing, enum form form, const char *const *head, size_t columns);
/* The next row's cells, to be filled; NULL when JSON is wanted, which is then printed from `json`. */
struct slice *listing_row(struct listing *listing, struct slice json);
/* Prints the table; `what` names the things when there are none. */
void listing_end(struct listing *listing, const char *what);

/* One thing, each line a name and a text: those that are empty are left out. */
struct pair {
    const char *name;
    struct slice text;
};
void pairs_print(const struct pair *pairs, size_t count);
void json_print(struct slice json);

/* Times as people read them: "2026-11-15 03:42:06" here, or "-". In the arena. */
struct slice time_shown(struct arena *arena, double seconds);
/* A member that is a number, with a fraction; -1 when there is none. */
double node_number(const struct node *object, const char *name);
/* What follows the last of a byte: the name in an ARN. */
struct slice after_last(struct slice text, char byte);

#endif
