/* Listings over slots; see listing.h. */
#include "pattern/listing.h"

#include <string.h>

void page_finish(struct flow *flow, struct slice next)
{
    buf_byte(flow->body, ']');
    if (next.data) flow_put(flow, flow->body, ",'next':%s", next);
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}

struct listing *listing_new(struct flow *flow, int64_t most, bool newest_first)
{
    struct listing *listing = arena_new(flow->arena, struct listing);
    listing->most = most;
    listing->newest_first = newest_first;
    listing->entries = arena_array(flow->arena, struct listing_entry, (size_t)most + 1);
    return listing;
}

struct slice listing_range(struct flow *flow, const struct listing *listing, struct slice after,
                           struct slice before)
{
    struct slice from = after.len ? after : SLICE("0");
    if (listing->newest_first) from = SLICE("0");
    return flow_compose(flow, "':from':%S,':to':%S", from,
                        listing->newest_first && after.len ? after : before);
}

struct slice listing_members(struct flow *flow, const struct listing *listing)
{
    return flow_compose(flow, "'ScanIndexForward':%b,'Limit':%d", (int)!listing->newest_first,
                        listing->most + 2);
}

static bool is_behind(const struct listing *listing, struct slice one, struct slice other)
{
    int order = slice_compare(one, other);
    return listing->newest_first ? order < 0 : order > 0;
}

/* Keeps the list in order and within its bound. */
static void listing_insert(struct listing *listing, struct listing_entry entry)
{
    int64_t at = listing->count;
    while (at > 0 && is_behind(listing, listing->entries[at - 1].order, entry.order)) at--;
    if (at >= listing->most) {
        listing->more = true;
        return;
    }
    if (listing->count == listing->most) {
        listing->more = true;
        listing->count--;
    }
    memmove(&listing->entries[at + 1], &listing->entries[at],
            (size_t)(listing->count - at) * sizeof *listing->entries);
    listing->entries[at] = entry;
    listing->count++;
}

void listing_take(struct flow *flow, struct listing *listing, const char *attribute, struct slice after)
{
    struct slice item;
    raw_each (flow->arena, flow_items(flow), &item) {
        struct listing_entry entry = {item_text(flow->arena, item, attribute), item};
        if (!slice_equal(entry.order, after)) listing_insert(listing, entry);
    }
}

void listing_finish(struct flow *flow, const struct listing *listing)
{
    page_finish(flow, listing->more ? listing->entries[listing->count - 1].order : SLICE_NONE);
}
