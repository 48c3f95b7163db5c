/* The events of one key, without a group. There is no index of keys, because it would cost every append a write: who
 * asks for a key looks at all events of its partition, and of those that this one has come from by splits and merges.
 * So a call looks at a bounded number of them, tells how many it was, and where the next call goes on. A log of many
 * partitions has few keys in each.
 *
 * The numbers of a key only grow (log_change.c), so one number tells where to begin, whatever partition it is in. */
#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/log.h"

#define EVENTS_MOST  1000
#define EVENTS_USUAL 100
#define LOOKED_MOST  10000   /* events of any key, for one call */
#define READ_BYTES   1000000 /* of the answer: more is for the next call */

/* ---- the partitions that a key was in ---- */

struct log_lineage {
    int64_t partition;
    struct log_lineage *next; /* the one that came behind it */
};

/* The one that the hash was in before. Of several that had it, as when a partition without events was merged, the
 * last one has the largest numbers. SLICE_NONE: none; else its head. */
static struct slice parent_find(struct flow *flow, const struct log_layout *layout, struct slice head,
                                uint64_t hash, int64_t *partition)
{
    struct slice parent, found = SLICE_NONE;
    int64_t last = -1;
    raw_each (flow->arena, item_content(flow->arena, head, "parents"), &parent) {
        struct slice map = raw_member(flow->arena, parent, "M");
        int64_t number = item_int(flow->arena, map, "partition", 0),
                end = item_int(flow->arena, map, "end", 0);
        if (end <= last) continue;
        struct slice its_head = log_head_get(flow, layout, number);
        struct log_range range = log_range_of(layout, hash);
        if (number >= layout->partitions && !log_range_read(flow, its_head, &range)) continue;
        if (number < layout->partitions ? range.partition != number : hash < range.from || hash > range.to)
            continue;
        last = end;
        *partition = number;
        found = its_head;
    }
    return found;
}

/* From the partition that holds the event behind `after` to the one that the hash belongs to now. */
static struct log_lineage *lineage_find(struct flow *flow, const struct log_layout *layout, uint64_t hash,
                                        int64_t after)
{
    struct log_lineage *first = arena_new(flow->arena, struct log_lineage);
    log_route_forget(flow, layout, hash);
    *first = (struct log_lineage){.partition = log_route(flow, layout, hash).partition};
    if (!layout->version) return first;
    struct slice head = log_head_get(flow, layout, first->partition);
    while (head.data && after < item_int(flow->arena, head, "base", 0)) {
        struct log_lineage *before = arena_new(flow->arena, struct log_lineage);
        head = parent_find(flow, layout, head, hash, &before->partition);
        if (!head.data) break;
        before->next = first;
        first = before;
    }
    return first;
}

bool log_key_read(struct flow *flow, struct log_key_reader *reader)
{
    if (!reader->event.layout) {
        reader->rest = lineage_find(flow, reader->layout, reader->hash, reader->from - 1);
        reader->event = (struct log_reader){.layout = reader->layout,
                                            .partition = reader->rest->partition,
                                            .from = reader->from,
                                            .rewinds = true};
    }
    while (reader->budget) {
        if (log_read_event(flow, &reader->event)) {
            reader->budget--;
            reader->from = reader->event.sequence + 1;
            if (slice_equal(reader->event.key, reader->key)) return true;
        } else if (reader->rest->next) {
            reader->rest = reader->rest->next;
            reader->event = (struct log_reader){.layout = reader->layout,
                                                .partition = reader->rest->partition,
                                                .from = reader->from,
                                                .rewinds = true};
        } else {
            return false;
        }
    }
    return false;
}

/* ---- looking at them ---- */

enum { KEY_KEY = LOG_NAME + 1, KEY_AFTER, KEY_LIMIT, KEY_WAIT };

const struct field log_key_fields[] = {
    FIELD_LOG,
    [KEY_KEY] = FIELD_IN_PATH("key", 1024, "the key"),
    [KEY_AFTER] = {"after", IN_QUERY, FIELD_INT, .max = LOG_NUMBER_MOST,
                   .help = "only behind this number (default: 0)"},
    [KEY_LIMIT] = FIELD_LIMIT(EVENTS_MOST),
    [KEY_WAIT] = FIELD_WAIT(IN_QUERY, "how long to wait for one (default: not at all)"),
};

void log_key_begin(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + flow_int_or(flow, KEY_WAIT, 0), after = flow_int_or(flow, KEY_AFTER, 0),
            most = flow_int_or(flow, KEY_LIMIT, EVENTS_USUAL), looked = 0;
    struct slice log = flow_text(flow, LOG_NAME), key = flow_text(flow, KEY_KEY);
    size_t start = flow->body->len;
    for (;;) {
        struct log_layout layout;
        int64_t count = 0;
        flow_look(flow);
        log_layout_get(flow, &layout);
        if (layout.change.data) {
            log_change_finish(flow, &layout);
            log_layout_get(flow, &layout);
        }
        struct log_key_reader reader = {
            .layout = &layout, .key = key, .hash = hash_bytes(key), .from = after + 1, .budget = LOOKED_MOST};
        flow_put(flow, flow->body, "{'key':%s,'events':[", key);
        while (count < most && flow->body->len - start < READ_BYTES && log_key_read(flow, &reader)) {
            const struct log_reader *event = &reader.event;
            flow_put(flow, flow->body, "%,{'partition':%s,'sequence':%d,'time':%s,'data':%P}",
                     log_partition_text(flow, event->partition), event->sequence,
                     moment_text(flow->arena, event->time_ms), event->data);
            count++;
        }
        bool has_more = count == most || !reader.budget || flow->body->len - start >= READ_BYTES;
        looked += LOOKED_MOST - reader.budget;
        after = reader.from - 1;
        if (count || has_more || flow->now_ms >= until_ms) {
            flow_put(flow, flow->body, "],'position':%d,'read':%d", after, looked);
            flow_put(flow, flow->body, has_more ? ",'next':%d}" : "}", after);
            flow_finish(flow, 200);
            return;
        }
        flow->body->len = start;
        task_watch(flow, log_topic(flow), flow_thing("log", log), until_ms);
    }
}
