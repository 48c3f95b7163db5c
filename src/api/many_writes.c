/* What BatchWriteItem and TransactWriteItems have in common: writes to several tables in one request, and the
 * parts of the reply that tell, table by table, what they cost and which item collections they touched. */
#include "api/items.h"

bool find_tables(struct api_call *call, struct named_table *tables, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tables[i].table = find_table_or_arn(call, tables[i].name);
        if (!tables[i].table) return false;
    }
    return true;
}

bool any_table_is_gone(struct batch *batch, const struct named_table *tables, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct table *now = engine_table_in_batch(batch, tables[i].table->definition.name);
        if (!now || now->number != tables[i].table->number) return true;
    }
    return false;
}

/* A comma unless the reply's object has just begun. */
static void begin_member(struct buf *out)
{
    if (out->data[out->len - 1] != '{') buf_byte(out, ',');
}

/* ---- ConsumedCapacity ---- */

static double read_units(const struct write *write)
{
    return capacity_read(write->old_size > write->new_size ? write->old_size : write->new_size, true);
}

static struct capacity table_capacity(struct api_call *call, const struct many_writes *many, uint32_t place,
                                      enum capacity_axis axis)
{
    struct capacity capacity = {.axis = axis};
    for (uint32_t i = 0; i < many->count; i++) {
        const struct placed_write *placed = &many->writes[i];
        if (placed->place != place || placed->throttled) continue;
        if (axis == AXIS_READ)
            capacity.table += read_units(&placed->write);
        else
            capacity_add_write(call, &capacity, &placed->write);
    }
    if (axis != AXIS_NONE) capacity.table *= TRANSACTION_FACTOR;
    return capacity;
}

void put_many_capacities(struct api_call *call, const struct many_writes *many, enum capacity_axis axis)
{
    if (!capacity_wanted(many->return_capacity)) return;
    begin_member(call->reply);
    buf_text(call->reply, "\"ConsumedCapacity\":[");
    for (uint32_t i = 0; i < many->table_count; i++) {
        struct capacity capacity = table_capacity(call, many, i, axis);
        if (i) buf_byte(call->reply, ',');
        capacity_put(call->reply, many->return_capacity, many->tables[i].name, many->tables[i].table,
                     &capacity);
    }
    buf_byte(call->reply, ']');
}

/* ---- ItemCollectionMetrics ---- */

/* One entry for each item collection of the table that was written to. */
static void put_table_metrics(struct api_call *call, const struct many_writes *many, uint32_t place)
{
    struct buf *out = call->reply;
    bool any = false;
    json_put_string(out, many->tables[place].name);
    buf_text(out, ":[");
    for (uint32_t i = 0; i < many->count; i++) {
        const struct placed_write *placed = &many->writes[i];
        bool seen = placed->place != place || placed->throttled;
        for (uint32_t j = 0; !seen && j < i; j++)
            seen = many->writes[j].place == place && value_equal(many->writes[j].key.hash, placed->key.hash);
        if (seen) continue;
        if (any) buf_byte(out, ',');
        any = true;
        metrics_put(call, many->tables[place].table, placed->key.hash);
    }
    buf_byte(out, ']');
}

void put_many_metrics(struct api_call *call, const struct many_writes *many)
{
    struct buf *out = call->reply;
    bool any = false;
    for (uint32_t i = 0; i < many->table_count; i++) {
        if (!metrics_wanted(many->return_metrics, many->tables[i].table)) continue;
        if (any) {
            buf_byte(out, ',');
        } else {
            begin_member(out);
            buf_text(out, "\"ItemCollectionMetrics\":{");
        }
        any = true;
        put_table_metrics(call, many, i);
    }
    if (any) buf_byte(out, '}');
}
