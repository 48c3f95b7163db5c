/* Histories: of items with more versions than are to be kept, the oldest go.
 *
 * A sweep walks through the table of versions, a page at a time, slowly: where it stands, and how many
 * versions of the item there it has seen, is the item "*" of the settings. Several servers may walk at the
 * same time; what one has deleted the other does not find. So an item has a few versions more than needed,
 * for as long as a walk takes. */
#include "base/limits.h"
#include "pattern/history.h"
#include "pattern/rows.h"

#define SWEEP_MS 5000
#define PAGE     500 /* versions: their keys only */
#define TABLES   1000

struct rule {
    struct slice table; /* percent-encoded, with the slash behind */
    int64_t versions;
};

struct prune {
    struct rule *rules;
    size_t rule_count;
    struct slice cursor, next; /* keys; SLICE_NONE: the begin */
    struct slice item;         /* that the walk is at */
    int64_t seen;              /* versions of it */
    struct slice *over;        /* items that have too many */
    int64_t *limits;
    size_t over_count, at;
    struct slice left;
};

static flow_step prune_settings, prune_listed, prune_next, prune_found, prune_delete, prune_deleted,
    prune_resend, prune_end;

static void prune_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct prune);
    flow_call(flow, prune_settings, "Scan", "{'TableName':%T,'Limit':%d}", &history_settings_table,
              (int64_t)TABLES);
}

static void settings_take(struct flow *flow, struct prune *prune, struct slice item)
{
    int64_t versions = item_int(flow->arena, item, "versions", 0);
    struct buf table = {0};
    if (item_says(flow->arena, item, "table", "*")) {
        prune->cursor = item_content(flow->arena, item, "cursor");
        prune->item = item_text(flow->arena, item, "item");
        prune->seen = item_int(flow->arena, item, "seen", 0);
    } else if (versions > 0) {
        rest_encode(&table, item_text(flow->arena, item, "table"));
        buf_byte(&table, '/');
        prune->rules[prune->rule_count++] = (struct rule){arena_copy(flow->arena, buf_view(&table)),
                                                          versions};
        buf_free(&table);
    }
}

static void prune_settings(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct slice items = flow_items(flow), item;
    struct raw_walk walk;
    prune->rules = arena_array(flow->arena, struct rule, raw_count(flow->arena, items));
    raw_walk_begin(&walk, flow->arena, items);
    while (raw_walk_next(&walk, NULL, &item)) settings_take(flow, prune, item);
    if (!prune->rule_count)
        flow_finish(flow, 200);
    else
        flow_call(flow, prune_listed, "Scan",
                  "{'TableName':%T,'ProjectionExpression':'#item, #version',%#,'Limit':%d%A}", &history_table,
                  (int64_t)PAGE,
                  prune->cursor.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", prune->cursor)
                                     : SLICE(""));
}

static int64_t limit_of(const struct prune *prune, struct slice item)
{
    for (size_t i = 0; i < prune->rule_count; i++)
        if (slice_starts(item, prune->rules[i].table)) return prune->rules[i].versions;
    return INT64_MAX;
}

/* Versions of one item come one after the other. */
static void prune_listed(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct slice items = flow_items(flow), version;
    size_t count = raw_count(flow->arena, items);
    struct raw_walk walk;
    prune->over = arena_array(flow->arena, struct slice, count);
    prune->limits = arena_array(flow->arena, int64_t, count);
    prune->next = flow_last_key(flow);
    raw_walk_begin(&walk, flow->arena, items);
    while (raw_walk_next(&walk, NULL, &version)) {
        struct slice item = item_text(flow->arena, version, "item");
        if (!slice_equal(item, prune->item)) prune->seen = 0;
        prune->item = item;
        int64_t limit = limit_of(prune, item);
        bool is_noted = prune->over_count && slice_equal(prune->over[prune->over_count - 1], item);
        if (++prune->seen <= limit || is_noted) continue;
        prune->limits[prune->over_count] = limit;
        prune->over[prune->over_count++] = item;
    }
    prune_next(flow);
}

/* ---- one item ---- */

static void prune_next(struct flow *flow)
{
    const struct prune *prune = flow->state;
    if (prune->at == prune->over_count) {
        prune_end(flow);
        return;
    }
    flow_call(flow, prune_found, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item','ProjectionExpression':'#item, "
              "#version',%#,"
              "'ExpressionAttributeValues':{':item':%S},'ScanIndexForward':false,'Limit':%d}",
              &history_table, prune->over[prune->at], prune->limits[prune->at]);
}

/* The oldest that stays is the last of the page; where that is not all of them, it goes on with the next
 * walk. */
static void prune_found(struct flow *flow)
{
    const struct prune *prune = flow->state;
    struct raw_walk walk;
    struct slice version, oldest = SLICE_NONE;
    int64_t count = 0;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    for (; raw_walk_next(&walk, NULL, &version); count++)
        oldest = item_attribute(flow->arena, version, "version");
    if (count < prune->limits[prune->at]) {
        ((struct prune *)flow->state)->at++;
        prune_next(flow);
        return;
    }
    flow_call(flow, prune_delete, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :oldest',%#,"
              "'ExpressionAttributeValues':{':item':%S,':oldest':%A},'ProjectionExpression':'#item, "
              "#version','Limit':%d}",
              &history_table, prune->over[prune->at], oldest, (int64_t)LIMIT_BATCH_WRITE_REQUESTS);
}

static void prune_delete(struct flow *flow)
{
    struct prune *prune = flow->state;
    struct raw_walk walk;
    struct slice key;
    struct buf requests = {0};
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    while (raw_walk_next(&walk, NULL, &key))
        buf_slice(&requests, flow_compose(flow, "%A{'DeleteRequest':{'Key':%A}}",
                                          requests.len ? SLICE(",") : SLICE(""), key));
    if (!requests.len) {
        prune->at++;
        prune_next(flow);
    } else {
        flow_call(flow, prune_deleted, "BatchWriteItem", "{'RequestItems':{%T:[%A]}}", &history_table,
                  buf_view(&requests));
    }
    buf_free(&requests);
}

static void prune_resend(struct flow *flow)
{
    const struct prune *prune = flow->state;
    flow_call(flow, prune_deleted, "BatchWriteItem", "{'RequestItems':%A}", prune->left);
}

static void prune_deleted(struct flow *flow)
{
    struct prune *prune = flow->state;
    prune->left = raw_member(flow->arena, flow->reply.body, "UnprocessedItems");
    if (raw_count(flow->arena, prune->left))
        flow_again(flow, prune_resend);
    else
        prune_next(flow); /* the same item again, until nothing is left to delete */
}

/* ---- where it stands ---- */

static void prune_noted(struct flow *flow)
{
    flow_finish(flow, 200);
}

static void prune_end(struct flow *flow)
{
    const struct prune *prune = flow->state;
    flow_call(flow, prune_noted, "PutItem", "{'TableName':%T,'Item':{'table':{'S':'*'}%A}}",
              &history_settings_table,
              prune->next.data ? flow_compose(flow, ",'cursor':{'M':%A},'item':%S,'seen':%N", prune->next,
                                              prune->item, prune->seen)
                               : SLICE(""));
}

const struct flow_sweep history_sweep = {"histories", SWEEP_MS, prune_begin};
