/* Histories: all changes of a table between two times, or the whole table as of a time, by pages.
 *
 * Each version stands in the index `changes` (history.h): hash key `day`, the table, the day and one of HISTORY_SHARDS,
 * so that days are read one by one, and no others; range key `change`, the version and a hash of the item's key. What
 * is read is never changed, so pages fit together: the cursor is the last `change`, or a day of which nothing was read.
 *
 * An item as of a time is the last of its versions up to then. So the walk is the same, and a change is told if it is
 * that: each item once, on the page of its last change, without knowing the others. */
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/history.h"
#include "pattern/listing.h"
#include "pattern/sweep.h"

#define DAY_MS     (24 * 3600000ll)
#define EARLY_MS   (2 * DAY_MS)   /* the stream still has changes that are older than the history */
#define AHEAD_MS   (10 * 60000ll) /* clocks may differ */
#define DAYS_MOST  30             /* of one page, empty or not */
#define BATCH      25             /* versions that are read at once: each may have 400 KB */
#define PAGE_BYTES (1024 * 1024)
#define DAY_CHARS  (sizeof "2026-11-15" - 1)

enum { CHANGES_FROM = HISTORY_TABLE + 1, CHANGES_TO, CHANGES_AT, CHANGES_LIMIT, CHANGES_AFTER };

const struct field history_changes_fields[] = {
    FIELD_HISTORY_TABLE,
    [CHANGES_FROM] = {"from", IN_QUERY, FIELD_NAME, .max = 40,
                      .help = "instead: all changes from this time on"},
    [CHANGES_TO] = {"to", IN_QUERY, FIELD_NAME, .max = 40, .help = "and up to this time (default: now)"},
    [CHANGES_AT] = {"at", IN_QUERY, FIELD_NAME, .max = 40,
                    .help = "instead: the whole table as of this time"},
    [CHANGES_LIMIT] = FIELD_LIMIT(1000),
    [CHANGES_AFTER] = FIELD_AFTER,
};

bool history_asks_changes(const struct flow *flow)
{
    return flow_given(flow, CHANGES_FROM) || flow_given(flow, CHANGES_TO) || flow_given(flow, CHANGES_AT);
}

struct walk {
    struct slice table;
    struct slice from, to; /* moments */
    bool is_at;            /* only what holds at `to` */
    struct slice after;    /* the cursor; empty: the begin */
    int64_t day_ms;        /* the one that is read */
    unsigned days;         /* that were read */
    int64_t count, most;   /* of versions that were told, or looked at */
    bool is_over;
};

static int64_t day_of(struct slice text)
{
    char moment[] = "2026-11-15T00:00:00.000Z";
    int64_t day_ms = -1;
    if (text.len < DAY_CHARS) return -1;
    memcpy(moment, text.data, DAY_CHARS);
    return moment_parse(slice_of(moment), &day_ms) ? day_ms : -1;
}

static struct walk walk_begin(struct flow *flow, struct slice settings)
{
    struct walk walk = {.table = rest_encoded(flow->arena, flow_text(flow, HISTORY_TABLE)),
                        .from = history_bound(flow, CHANGES_FROM),
                        .to = history_bound(flow, flow_given(flow, CHANGES_AT) ? CHANGES_AT : CHANGES_TO),
                        .is_at = flow_given(flow, CHANGES_AT),
                        .after = flow_text(flow, CHANGES_AFTER),
                        .most = flow_int_or(flow, CHANGES_LIMIT, LIST_USUAL)};
    struct slice now = moment_text(flow->arena, flow->now_ms);
    int64_t since_ms = flow->now_ms;
    if (walk.is_at && (walk.from.data || flow_given(flow, CHANGES_TO)))
        task_refuse(flow, 400, "bad-request",
                    "at tells the table as of one time: from and to are of changes.");
    if (walk.from.data && walk.to.data && slice_compare(walk.from, walk.to) > 0)
        task_refuse(flow, 400, "bad-request", "from is behind to.");
    moment_parse(item_text(flow->arena, settings, "since"), &since_ms);
    struct slice first = moment_text(flow->arena, since_ms > EARLY_MS ? since_ms - EARLY_MS : 0);
    if (!walk.from.data || slice_compare(walk.from, first) < 0) walk.from = first;
    /* nothing is newer than now, but for clocks that differ */
    if (!walk.to.data || slice_compare(walk.to, now) > 0)
        walk.to = moment_text(flow->arena, flow->now_ms + AHEAD_MS);
    walk.day_ms = day_of(walk.after.len ? walk.after : walk.from);
    if (walk.day_ms < 0) task_refuse(flow, 400, "bad-request", "after must be the \"next\" of a page.");
    return walk;
}

/* The next changes of the day, in order, from all its shards. */
static struct listing *day_read(struct flow *flow, const struct walk *walk)
{
    struct slice day = moment_text(flow->arena, walk->day_ms), begin = history_second(flow, walk->from);
    struct listing *listing = listing_new(flow, walk->most - walk->count, false);
    if (walk->after.len && slice_compare(walk->after, begin) > 0) begin = walk->after;
    for (int64_t shard = 0; shard < HISTORY_SHARDS; shard++) {
        task_query(
            flow, "#day = :day and #change between :begin and :end", ",'IndexName':'changes','Limit':%d",
            "':day':{'S':'%r/%r/%d'},':begin':%S,':end':{'S':'%r~'}", &history_table, listing->most + 2,
            walk->table, (struct slice){day.data, DAY_CHARS}, shard, begin, walk->to);
        listing_take(flow, listing, "change", walk->after);
    }
    return listing;
}

/* Whether the change is told, and the image of what it left. */
static bool is_told(struct flow *flow, const struct walk *walk, struct slice version)
{
    struct slice time = item_text(flow->arena, version, "time");
    if (slice_compare(time, walk->to) > 0 || slice_compare(time, walk->from) < 0) return false;
    if (!walk->is_at) return true;
    if (item_says(flow->arena, version, "event", "REMOVE")) return false;
    struct slice last = history_at(flow, item_text(flow->arena, version, "item"), walk->to);
    return slice_equal(item_text(flow->arena, last, "version"), item_text(flow->arena, version, "version"));
}

/* The versions that some entries of the index stand for; SLICE_NONE: it has been pruned. */
static void versions_read(struct flow *flow, const struct listing_entry *entries, int64_t count,
                          struct slice *versions)
{
    struct slice keys = SLICE(""), item;
    for (int64_t i = 0; i < count; i++)
        keys = flow_compose(flow, "%A%,{%A}", keys,
                            item_members(flow->arena, entries[i].item, "item version"));
    struct item_batch batch = get_items_begin(flow, &history_table, keys, READ_FRESH);
    while (get_items_next(flow, &batch, &item))
        for (int64_t i = 0; i < count; i++)
            if (slice_equal(item_text(flow->arena, item, "change"), entries[i].order)) versions[i] = item;
}

/* Tells the changes of a day, until the page is full. */
static void day_tell(struct flow *flow, struct walk *walk, const struct listing *listing)
{
    struct slice versions[BATCH];
    for (int64_t first = 0; first < listing->count && !walk->is_over; first += BATCH) {
        int64_t count = listing->count - first < BATCH ? listing->count - first : BATCH;
        memset(versions, 0, sizeof versions);
        versions_read(flow, &listing->entries[first], count, versions);
        for (int64_t i = 0; i < count && !walk->is_over; i++) {
            if (versions[i].data && is_told(flow, walk, versions[i])) {
                struct slice version = versions[i];
                flow_put(flow, flow->body, "%,{'keys':%P", item_attribute(flow->arena, version, "keys"));
                plain_put_members(flow->body, flow->arena, version,
                                  "version event time cause transaction by lost");
                history_put_image(flow, "item", history_image(flow, version));
                buf_byte(flow->body, '}');
            }
            walk->after = listing->entries[first + i].order;
            walk->count++;
            walk->is_over = flow->body->len > PAGE_BYTES;
        }
    }
    walk->is_over |= walk->count == walk->most;
}

void history_changes(struct flow *flow, struct slice settings)
{
    struct walk walk = walk_begin(flow, settings);
    int64_t last_day_ms = day_of(walk.to);
    buf_text(flow->body, "{\"changes\":[");
    while (walk.day_ms <= last_day_ms && !walk.is_over) {
        day_tell(flow, &walk, day_read(flow, &walk));
        if (walk.is_over) break;
        walk.day_ms += DAY_MS;
        walk.after = moment_text(flow->arena, walk.day_ms);
        walk.after.len = DAY_CHARS;
        walk.is_over = ++walk.days == DAYS_MOST && walk.day_ms <= last_day_ms;
    }
    page_finish(flow, walk.is_over ? walk.after : SLICE_NONE);
}
