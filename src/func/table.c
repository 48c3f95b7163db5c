/* Our own tables, each made when it is needed for the first time: of functions and their code, of
 * asynchronous calls, of queues. They all have a hash key of strings and a range key. */
#include <unistd.h>

#include "base/log.h"
#include "base/raw.h"
#include "func/internal.h"

#define WAIT_US       (100 * 1000) /* between two looks at a table that is being made */
#define WAIT_ATTEMPTS 600          /* a new table is of use at once here, on the service after seconds */

static bool is_active(struct func *func, struct slice table)
{
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    struct slice status = SLICE_NONE;
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    buf_byte(&request, '}');
    if (dynamo_call(func->options.dynamo, SLICE("DescribeTable"), buf_view(&request), &reply) == 200)
        status = raw_member(&arena, raw_member(&arena, buf_view(&reply), "Table"), "TableStatus");
    bool active = slice_equal(raw_string(&arena, status), SLICE("ACTIVE"));
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return active;
}

/* Also when somebody else has begun to. */
static bool create(struct func *func, struct slice table, const char *hash, const char *range,
                   char range_type)
{
    struct buf request = {0}, reply = {0};
    struct arena arena = {0};
    struct slice name = SLICE_NONE, message = SLICE_NONE;
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    buf_printf(&request,
               ",\"BillingMode\":\"PAY_PER_REQUEST\","
               "\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"},"
               "{\"AttributeName\":\"%s\",\"KeyType\":\"RANGE\"}],"
               "\"AttributeDefinitions\":[{\"AttributeName\":\"%s\",\"AttributeType\":\"S\"},"
               "{\"AttributeName\":\"%s\",\"AttributeType\":\"%c\"}]}",
               hash, range, hash, range, range_type);
    int status = dynamo_call(func->options.dynamo, SLICE("CreateTable"), buf_view(&request), &reply);
    if (status != 200) dynamo_error(buf_view(&reply), &arena, &name, &message);
    bool made = status == 200 || slice_equal(name, SLICE("ResourceInUseException"));
    if (!made) log_line("the table %.*s cannot be made: %.*s", SLICE_ARG(table), SLICE_ARG(message));
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return made;
}

bool table_make(struct func *func, struct slice table, const char *hash, const char *range, char range_type)
{
    bool active = is_active(func, table);
    if (!active && !create(func, table, hash, range, range_type)) return false;
    for (int i = 0; i < WAIT_ATTEMPTS && !active; i++) {
        if (i) usleep(WAIT_US);
        active = is_active(func, table);
    }
    return active;
}
