/* Which tables have a history, for whoever records their changes. */
#include "pattern/history.h"
#include "pattern/internal.h"

/* Names those of a page. */
static void page_tell(struct arena *arena, struct slice reply,
                      void (*each)(void *context, struct slice table), void *context)
{
    struct slice item;
    raw_each (arena, raw_member(arena, reply, "Items"), &item)
        if (item_has(arena, item, "hash")) each(context, item_text(arena, item, "table"));
}

static void put_request(struct pattern *pattern, struct slice start, struct buf *out)
{
    buf_printf(out, "{\"TableName\":\"%s%s\",\"ConsistentRead\":true", pattern->prefix,
               history_settings_table.name);
    if (start.data) buf_printf(out, ",\"ExclusiveStartKey\":%.*s", SLICE_ARG(start));
    buf_byte(out, '}');
}

/* A table of settings that is not there is the same as one without items. */
bool pattern_histories(struct pattern *pattern, void (*each)(void *context, struct slice table),
                       void *context)
{
    struct arena arena = {0};
    struct slice start = SLICE_NONE, name, message;
    int status;
    do {
        struct buf request = {0}, reply = {0};
        put_request(pattern, start, &request);
        status = dynamo_call(pattern->dynamo, SLICE("Scan"), buf_view(&request), &reply);
        struct slice page = arena_copy(&arena, buf_view(&reply));
        buf_free(&request);
        buf_free(&reply);
        start = SLICE_NONE;
        if (status == 200) {
            page_tell(&arena, page, each, context);
            start = raw_member(&arena, page, "LastEvaluatedKey");
        } else {
            dynamo_error(page, &arena, &name, &message);
            if (slice_equal(name, SLICE("ResourceNotFoundException"))) status = 200;
        }
    } while (start.data);
    arena_free(&arena);
    return status == 200;
}
