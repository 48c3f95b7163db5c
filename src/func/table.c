/* Our own tables: of functions and their code, of asynchronous calls, of queues. */
#include "base/log.h"
#include "func/internal.h"

bool table_make(struct func *func, struct slice table, const char *hash, const char *range, char range_type)
{
    return table_make_as(
        func, &(struct dynamo_table){.name = table, .hash = hash, .range = range, .range_type = range_type});
}

bool table_make_as(struct func *func, const struct dynamo_table *table)
{
    char error[256];
    bool made = dynamo_table_make(func->options.dynamo, table, error, sizeof error);
    if (!made) log_line("functions: %s", error);
    return made;
}

bool func_has_transactions(const struct func *func)
{
    return dynamo_kind_ask(func->options.dynamo) != DYNAMO_KIND_ALTERNATOR;
}
