/* PartiQL on the command line. */
#ifndef CLI_SQL_H
#define CLI_SQL_H

#include "cli/place.h"
#include "cli/print.h"

struct sql {
    const struct arguments *arguments;
    struct place place;
    enum form form;
    bool explains; /* instead of running */
    bool is_consistent;
    unsigned long long limit; /* of items; 0: none */
    size_t first_parameter;   /* among the words */
};

/* Runs a statement, without a semicolon, and prints what it answers. Exit status. */
int sql_run(struct sql *sql, struct slice statement);
/* Tells how it would be read or written, and what that costs, without doing it. Exit status. */
int sql_explain(struct sql *sql, struct slice statement);
/* Statements from standard input: a person's, or a file's. Exit status of the last one, or the first that failed. */
int sql_shell(struct sql *sql);
int sql_stream(struct sql *sql);

/* The value of the nth parameter: JSON, or else a text, in DynamoDB's JSON. False after complaining. */
bool sql_parameter(const struct sql *sql, size_t nth, struct buf *out);
size_t sql_parameter_count(const struct sql *sql);
/* The statement as this program reads it. NULL and the sentence of its fault: another place may still take it. */
struct statement;
const struct statement *sql_parse(const struct sql *sql, struct arena *arena, struct slice text,
                                  struct slice *fault);
/* The first statement of the text, up to a semicolon that is in no quotes; *rest is what follows it. False: there is
 * no semicolon. */
bool sql_cut(struct slice text, struct slice *statement, struct slice *rest);
struct slice sql_trim(struct slice text);

#endif
