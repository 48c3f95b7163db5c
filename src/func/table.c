/* Our own tables: of functions and their code, of asynchronous calls, of queues. */
#include "base/log.h"
#include "func/internal.h"

bool table_make(struct func *func, struct slice table, const char *hash, const char *range, char range_type)
{
    char error[256];
    bool made = dynamo_table_make(
        func->options.dynamo, &(struct dynamo_table){table, hash, range, range_type}, error, sizeof error);
    if (!made) log_line("functions: %s", error);
    return made;
}
