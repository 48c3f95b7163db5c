/* Items to standard output: a readable table on a terminal, JSON lines otherwise (C1). */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "cli/place.h"

enum form { FORM_TABLE, FORM_PLAIN, FORM_DYNAMO };

/* What --json, --table and --dynamodb-json ask for, else what suits standard output. */
enum form form_chosen(const struct arguments *arguments);
#define FORM_FLAGS                                                                                           \
    {"json", NULL, "print JSON lines, also on a terminal"},                                                  \
        {"table", NULL, "print a readable table, also into a file"},                                         \
    {                                                                                                        \
        "dynamodb-json", NULL, "print DynamoDB's own JSON: {\"Year\":{\"N\":\"1965\"}}"                      \
    }

/* Rows are gathered in blocks, so that a table's columns have one width without all of it being in memory. */
struct printer {
    enum form form;
    const struct schema *schema; /* keys come first */
    struct arena arena;          /* of the block */
    const struct node **rows;
    size_t row_count;
    unsigned long long count; /* of all items */
    size_t columns_left_out;
    struct buf head; /* the columns of the block before */
};

void printer_begin(struct printer *printer, enum form form, const struct schema *schema);
/* An item in DynamoDB's JSON. False after complaining. */
bool printer_item(struct printer *printer, struct slice json);
/* Prints what is gathered and, on a terminal, how much it was. False when standard output is gone. */
bool printer_end(struct printer *printer);

/* One item, below each other on a terminal. False after complaining. */
bool print_item(enum form form, const struct schema *schema, struct slice json);

/* True when standard output or standard error is a terminal; its width. */
bool output_is_terminal(void);
bool errors_are_terminal(void);
size_t terminal_width(void);
bool colour_is_wanted(void);

#endif
