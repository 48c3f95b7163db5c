/* Lists of names; see names.h. */
#include "pattern/names.h"

#include "base/hash.h"
#include "base/limits.h"
#include "pattern/listing.h"
#include "pattern/sweep.h"

#define OLD_MS       (2 * NAMES_FRESH_MS)
#define THINGS_BATCH LIMIT_BATCH_GET_KEYS

const struct flow_table names_table = {"names", "list name", NULL};

const struct field names_fields[] = {FIELDS_NAMES};

/* ---- entering ---- */

static struct slots slots_of(struct flow *flow, struct slice list)
{
    return (struct slots){&names_table, flow_compose(flow, "{'list':{'S':'slots'},'name':%S}", list)};
}

static struct slice entry_key(struct flow *flow, const struct slots *slots, struct slice list,
                              struct slice name)
{
    return flow_compose(flow, "'list':{'S':'%r/%d'},'name':%S", list, slots_place(flow, slots, name), name);
}

void names_enter(struct flow *flow, struct slice list, struct slice name)
{
    struct slots slots = slots_of(flow, list);
    slots_count(flow, &slots, name);
    task_call(flow, "PutItem", "{'TableName':%T,'Item':{%A,'entered':%N}}", &names_table,
              entry_key(flow, &slots, list, name), flow->now_ms);
}

void names_note(struct flow *flow, struct slice list, struct slice name)
{
    struct slots slots = slots_of(flow, list);
    uint64_t topic = flow_topic("name", list, name);
    int64_t entered_ms = 0;
    if (raw_int(flow_recall(flow, topic), &entered_ms) && flow->now_ms - entered_ms < NAMES_FRESH_MS) return;
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{%A}}", &names_table,
              entry_key(flow, &slots, list, name));
    entered_ms = item_int(flow->arena, flow_item(flow), "entered", 0);
    if (flow->now_ms - entered_ms >= NAMES_FRESH_MS) {
        entered_ms = flow->now_ms;
        names_enter(flow, list, name);
    }
    flow_remember(flow, topic, flow_compose(flow, "%d", entered_ms));
}

/* ---- listing ---- */

/* The entries of the page, from all slots. */
static struct listing *entries_read(struct flow *flow, const struct names *names, unsigned fields)
{
    struct slots slots = slots_of(flow, names->list);
    struct slice after = flow_text(flow, fields + NAMES_AFTER),
                 prefix = flow_text(flow, fields + NAMES_PREFIX);
    struct listing *listing = listing_new(flow, flow_int_or(flow, fields + NAMES_LIMIT, LIST_USUAL), false);
    if (after.data && prefix.data && !slice_starts(after, prefix))
        task_refuse(flow, 400, "bad-request",
                    "after does not begin with prefix: it must be the \"next\" of a page.");
    int64_t slot_count = slots_read(flow, &slots);
    for (int64_t slot = 0; slot < slot_count; slot++) {
        struct slice list = arena_printf(flow->arena, "%.*s/%d", SLICE_ARG(names->list), (int)slot);

        task_query(flow, "#list = :list%[%? and begins_with(#name, :prefix)%]",
                   ",'Limit':%d" READ_FRESH "%[,'ExclusiveStartKey':{'list':%S,'name':%S}%]",
                   "':list':%S%[,':prefix':%S%]", &names_table, prefix.data != NULL, listing->most + 1, list,
                   after, list, prefix);
        listing_take(flow, listing, "name", SLICE(""));
    }
    return listing;
}

/* The items of some things, THINGS_BATCH at the most. */
static void things_get(struct flow *flow, const struct names *names, const struct listing *page,
                       int64_t first, struct slice *things)
{
    struct slice keys = SLICE(""), item;
    for (int64_t i = first; i < page->count && i < first + THINGS_BATCH; i++)
        if (i == first || !slice_equal(page->entries[i].order, page->entries[i - 1].order))
            keys = flow_compose(flow, "%A%,{%s:%S%A}", keys, slice_of(names->key),
                                arena_printf(flow->arena, "%.*s%.*s", SLICE_ARG(names->begin),
                                             SLICE_ARG(page->entries[i].order)),
                                names->part ? flow_compose(flow, names->part) : SLICE(""));
    struct item_batch batch = get_items_begin(flow, names->table, keys, READ_FRESH);
    while (get_items_next(flow, &batch, &item)) {
        struct slice name = slice_from(item_text(flow->arena, item, names->key), names->begin.len);
        for (int64_t i = 0; i < page->count; i++)
            if (slice_equal(name, page->entries[i].order)) things[i] = item;
    }
}

/* NA2. */
static void entry_remove(struct flow *flow, struct slice entry)
{
    int64_t entered_ms = item_int(flow->arena, entry, "entered", 0);
    if (flow->now_ms - entered_ms <= OLD_MS) return;
    task_delete(flow, "#entered = :entered", "':entered':%N", &names_table,
                flow_compose(flow, "{%A}", item_members(flow->arena, entry, "list name")), entered_ms);
}

void names_list(struct flow *flow, struct names names, unsigned fields)
{
    struct listing *page = entries_read(flow, &names, fields);
    struct slice *things = arena_zero(flow->arena, (size_t)(page->count + 1) * sizeof *things);
    struct slice *told = arena_zero(flow->arena, (size_t)(page->count + 1) * sizeof *told);
    for (int64_t i = 0; names.table && i < page->count; i += THINGS_BATCH)
        things_get(flow, &names, page, i, things);
    /* The last child of each thing that has no item. */
    for (int64_t i = 0; names.children && i < page->count; i++) {
        if (things[i].data) continue;
        task_query(flow, "%r = :name", QUERY_LAST, "':name':%S", names.children,
                   arena_printf(flow->arena, "#%s", names.key), page->entries[i].order);
        things[i] = raw_first(flow->arena, flow_items(flow));
    }
    for (int64_t i = 0; i < page->count; i++) {
        if (things[i].data) told[i] = names.tell ? names.tell(flow, things[i]) : SLICE("");
        if (!told[i].data) entry_remove(flow, page->entries[i].item);
    }
    flow_put(flow, flow->body, "{%s:[", slice_of(names.member));
    for (int64_t i = 0; i < page->count; i++) {
        /* where the slots became more, a name that was entered again stands in two */
        bool is_twice = i && slice_equal(page->entries[i].order, page->entries[i - 1].order);
        if (told[i].data && !is_twice)
            flow_put(flow, flow->body, "%,{%s:%s%A}", slice_of(names.word), page->entries[i].order, told[i]);
    }
    listing_finish(flow, page);
}
