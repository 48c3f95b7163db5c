/* Who holds an item (dynamo.h); and leases of a server that had the data itself and runs no more: they have no end by
 * time (DYNAMO_OWNER_HERE), so the server that has the data now frees them where it does not take them over. */
#include "base/log.h"
#include "base/raw.h"
#include "dynamo/dynamo.h"

struct dynamo_hold dynamo_hold_read(struct arena *arena, struct slice item)
{
    static const char *const names[] = {"owner", "until", "fence"};
    struct slice found[3];
    struct dynamo_hold hold = {0};
    raw_pick(arena, item, names, found, 3);
    hold.owner = raw_string(arena, raw_member(arena, found[0], "S"));
    raw_int(raw_text(arena, raw_member(arena, found[1], "N")), &hold.until_ms);
    raw_int(raw_text(arena, raw_member(arena, found[2], "N")), &hold.fence);
    return hold;
}

enum dynamo_hold_state dynamo_hold_state(const struct dynamo_hold *hold, struct slice me, int64_t now_ms)
{
    if (!hold->owner.data || hold->until_ms < now_ms) return HOLD_IS_FREE;
    return slice_equal(hold->owner, me) ? HOLD_IS_MINE : HOLD_IS_ANOTHERS;
}

/* The members that remove the lease of an item, and the condition on it. */
static void put_removal(struct buf *out, const struct dynamo_lease *lease, struct slice key)
{
    buf_printf(out, "{\"TableName\":\"%s\",\"Key\":%.*s", lease->table, SLICE_ARG(key));
    buf_printf(out,
               ",\"UpdateExpression\":\"REMOVE #o, #u\",\"ConditionExpression\":\"begins_with(#o, :h)\","
               "\"ExpressionAttributeNames\":{\"#o\":\"%s\",\"#u\":\"%s\"},"
               "\"ExpressionAttributeValues\":{\":h\":{\"S\":\"" DYNAMO_OWNER_HERE "\"}}}",
               lease->owner, lease->until);
}

static void free_page(struct dynamo *dynamo, const struct dynamo_lease *lease, struct slice items,
                      struct arena *arena)
{
    struct buf request = {0}, reply = {0};
    struct raw_look look;
    struct slice key;
    raw_look_begin(&look, arena, items);
    while (raw_look_next(&look, NULL, &key)) {
        request.len = reply.len = 0;
        put_removal(&request, lease, key);
        int status = dynamo_call(dynamo, SLICE("UpdateItem"), buf_view(&request), &reply);
        if (status >= 500)
            log_line("a lease in the table %s could not be freed: %.*s", lease->table,
                     SLICE_ARG(buf_view(&reply)));
    }
    buf_free(&request);
    buf_free(&reply);
}

void dynamo_leases_free(struct dynamo *dynamo, const struct dynamo_lease *lease)
{
    struct arena arena = {0};
    struct slice start = SLICE_NONE;
    do {
        struct buf request = {0}, reply = {0};
        buf_printf(&request,
                   "{\"TableName\":\"%s\",\"ProjectionExpression\":\"#k, #r\","
                   "\"FilterExpression\":\"begins_with(#o, :h)\","
                   "\"ExpressionAttributeNames\":{\"#k\":\"%s\",\"#r\":\"%s\","
                   "\"#o\":\"%s\"},\"ExpressionAttributeValues\":{\":h\":{\"S\":\"" DYNAMO_OWNER_HERE "\"}}",
                   lease->table, lease->hash, lease->range, lease->owner);
        if (start.data) buf_printf(&request, ",\"ExclusiveStartKey\":%.*s", SLICE_ARG(start));
        buf_byte(&request, '}');
        int status = dynamo_call(dynamo, SLICE("Scan"), buf_view(&request), &reply);
        struct slice page = arena_copy(&arena, buf_view(&reply));
        start = SLICE_NONE;
        if (status == 200) { /* else there is no such table */
            free_page(dynamo, lease, raw_member(&arena, page, "Items"), &arena);
            start = raw_member(&arena, page, "LastEvaluatedKey");
        }
        buf_free(&request);
        buf_free(&reply);
    } while (start.data);
    arena_free(&arena);
}
