/* Listings over slots; see listing.h. */
#include "pattern/listing.h"

#include <string.h>

struct listing *listing_new(struct flow *flow, int64_t most)
{
    struct listing *listing = arena_new(flow->arena, struct listing);
    listing->most = most;
    listing->entries = arena_array(flow->arena, struct listing_entry, (size_t)most + 1);
    return listing;
}

/* Keeps the list in order and within its bound. */
static void listing_insert(struct listing *listing, struct listing_entry entry)
{
    int64_t at = listing->count;
    while (at > 0 && slice_compare(listing->entries[at - 1].order, entry.order) > 0) at--;
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
    struct raw_look look;
    struct slice item;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (raw_look_next(&look, NULL, &item)) {
        struct listing_entry entry = {item_text(flow->arena, item, attribute), item};
        if (!slice_equal(entry.order, after)) listing_insert(listing, entry);
    }
}

void listing_finish(struct flow *flow, const struct listing *listing)
{
    buf_text(flow->body, "]");
    if (listing->more)
        buf_slice(flow->body, flow_compose(flow, ",'next':%s", listing->entries[listing->count - 1].order));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}
