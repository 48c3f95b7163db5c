/* Tables that Quipu makes for itself when they are needed for the first time. */
#include <stdio.h>
#include <unistd.h>

#include "base/raw.h"
#include "dynamo/dynamo.h"

#define WAIT_US       (100 * 1000) /* between two looks at a table that is being made */
#define WAIT_ATTEMPTS 600          /* a new table is of use at once here, on the service after seconds */

struct making {
    dynamo_caller *call;
    void *self;
    const struct dynamo_table *table;
};

static bool is_active(const struct making *making)
{
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    struct slice status = SLICE_NONE;
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, making->table->name);
    buf_byte(&request, '}');
    if (making->call(making->self, SLICE("DescribeTable"), buf_view(&request), &reply) == 200)
        status = raw_member(&arena, raw_member(&arena, buf_view(&reply), "Table"), "TableStatus");
    bool active = slice_equal(raw_string(&arena, status), SLICE("ACTIVE"));
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return active;
}

static void put_definition(struct buf *out, const struct dynamo_table *table)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, table->name);
    buf_printf(out,
               ",\"BillingMode\":\"PAY_PER_REQUEST\","
               "\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"}",
               table->hash);
    if (table->range) buf_printf(out, ",{\"AttributeName\":\"%s\",\"KeyType\":\"RANGE\"}", table->range);
    buf_printf(out, "],\"AttributeDefinitions\":[{\"AttributeName\":\"%s\",\"AttributeType\":\"S\"}",
               table->hash);
    if (table->range)
        buf_printf(out, ",{\"AttributeName\":\"%s\",\"AttributeType\":\"%c\"}", table->range,
                   table->range_type);
    if (table->index)
        buf_printf(out,
                   ",{\"AttributeName\":\"%s\",\"AttributeType\":\"S\"}],\"GlobalSecondaryIndexes\":["
                   "{\"IndexName\":\"%s\",\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"}],"
                   "\"Projection\":{\"ProjectionType\":\"ALL\"}}",
                   table->index, table->index, table->index);
    buf_text(out, "]}");
}

/* Where it cannot be set (it is on already, or the engine has none), items merely stay longer. */
static void set_expiry(const struct making *making)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, making->table->name);
    buf_printf(&request, ",\"TimeToLiveSpecification\":{\"Enabled\":true,\"AttributeName\":\"%s\"}}",
               making->table->expiry);
    making->call(making->self, SLICE("UpdateTimeToLive"), buf_view(&request), &reply);
    buf_free(&request);
    buf_free(&reply);
}

/* Also when somebody else has begun to. */
static bool create(const struct making *making, char *error, size_t error_len)
{
    struct buf request = {0}, reply = {0};
    struct arena arena = {0};
    struct slice name = SLICE_NONE, message = SLICE_NONE;
    put_definition(&request, making->table);
    int status = making->call(making->self, SLICE("CreateTable"), buf_view(&request), &reply);
    if (status != 200) dynamo_error(buf_view(&reply), &arena, &name, &message);
    bool made = status == 200 || slice_equal(name, SLICE("ResourceInUseException"));
    if (!made)
        snprintf(error, error_len, "the table %.*s cannot be made: %.*s", SLICE_ARG(making->table->name),
                 SLICE_ARG(message));
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return made;
}

bool dynamo_table_make_by(dynamo_caller *call, void *self, const struct dynamo_table *table, char *error,
                          size_t error_len)
{
    const struct making making = {call, self, table};
    bool active = is_active(&making);
    if (!active && !create(&making, error, error_len)) return false;
    for (int i = 0; i < WAIT_ATTEMPTS && !active; i++) {
        if (i) usleep(WAIT_US);
        active = is_active(&making);
    }
    if (!active)
        snprintf(error, error_len, "the table %.*s was made and is not ACTIVE", SLICE_ARG(table->name));
    else if (table->expiry)
        set_expiry(&making);
    return active;
}

static int call_door(void *self, struct slice operation, struct slice request, struct buf *reply)
{
    return dynamo_call(self, operation, request, reply);
}

bool dynamo_table_make(struct dynamo *dynamo, const struct dynamo_table *table, char *error, size_t error_len)
{
    return dynamo_table_make_by(call_door, dynamo, table, error, error_len);
}
