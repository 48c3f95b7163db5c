/* Who holds an item (dynamo.h); and leases of a server that had the data itself and runs no more: they have no end by
 * time (DYNAMO_OWNER_HERE), so the server that has the data now frees them where it does not take them over. */
#include "base/compose.h"
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

void dynamo_leases_free(struct dynamo *dynamo, const char *prefix, const struct dynamo_leased *items)
{
    struct arena arena = {0};
    struct slice table = arena_printf(&arena, "%s%s", prefix ? prefix : "quipu-", items->table),
                 start = SLICE_NONE, key;
    do {
        struct dynamo_reply page = dynamo_ask(
            dynamo, &arena, "Scan",
            compose_in(
                &arena,
                "{'TableName':%s,'ProjectionExpression':'%r','FilterExpression':'begins_with(#owner, :here)',"
                "%#,'ExpressionAttributeValues':{':here':%S}%[,'ExclusiveStartKey':%A%]}",
                table, arena_printf(&arena, "#%s, #%s", items->hash, items->range), SLICE(DYNAMO_OWNER_HERE),
                start));
        if (page.status != 200) break; /* there is no such table */
        raw_each (&arena, raw_member(&arena, page.body, "Items"), &key) {
            struct dynamo_reply freed = dynamo_ask(
                dynamo, &arena, "UpdateItem",
                compose_in(&arena,
                           "{'TableName':%s,'Key':%A,'UpdateExpression':'REMOVE #owner, #until',"
                           "'ConditionExpression':'begins_with(#owner, :here)',%#,"
                           "'ExpressionAttributeValues':{':here':%S}}",
                           table, key, SLICE(DYNAMO_OWNER_HERE)));
            if (freed.status >= 500)
                log_line("a lease in the table %.*s could not be freed: %.*s", SLICE_ARG(table),
                         SLICE_ARG(freed.body));
        }
        start = raw_member(&arena, page.body, "LastEvaluatedKey");
    } while (start.data);
    arena_free(&arena);
}
