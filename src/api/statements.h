/* What ExecuteStatement, BatchExecuteStatement and ExecuteTransaction share: a statement of PartiQL (see
 * src/partiql) on its way to the same reads and writes that the other operations make.
 *
 * Faults come in two steps, because a batch tells each member's own: statement_understand finds those that
 * need no table, statement_fit those against a table's schema. Neither refuses the call. */
#ifndef API_STATEMENTS_H
#define API_STATEMENTS_H

#include "api/items.h"
#include "partiql/partiql.h"

/* How the operation words what is wrong with a key: ExecuteTransaction leaves that to the writer, in the words
 * of TransactWriteItems. */
enum statement_words { WORDS_OF_STATEMENTS, WORDS_OF_TRANSACTIONS };

/* An INSERT, UPDATE, DELETE or EXISTS as a write; or a SELECT of one item by its key. */
struct statement_run {
    const struct statement *statement;
    struct table *table;
    struct item_write change; /* of a SELECT: only its key */
    struct slice fault;       /* empty when sound */
    bool is_missing_table;    /* the fault is that there is no such table, */
    bool is_about_key;        /* or that a SELECT's key is none of the table's */
};

extern const struct shape shape_statement, shape_parameters;

/* What is wrong with the values of Parameters, or nothing: that comes before their statement is read. */
struct slice parameters_fault(const struct node *parameters);
/* Parses; sets run->statement or run->fault. */
void statement_understand(struct api_call *call, const struct node *text, const struct node *parameters,
                          bool in_transaction, struct statement_run *run);
/* Finds the table; sets run->table or run->fault. */
void statement_find_table(struct api_call *call, struct statement_run *run);
/* A write of a statement whose table was found: its key, condition and update; sets run->fault. */
void statement_fit_write(struct api_call *call, enum statement_words words, struct statement_run *run);
/* A SELECT that must name one item by its key and nothing else. `operation` is named in the fault. */
void statement_fit_get(struct api_call *call, const char *operation, struct statement_run *run);

#endif
