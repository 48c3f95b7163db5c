/* Two trees (tree.h) lie over the base. `changes` has the keys that were put or deleted, each value with a byte in
 * front that says which. `ranges` has the deleted ranges, from the first key to the one behind the last. A range hides
 * keys of the base alone: what it hides of earlier changes is cut out of their tree at once.
 *
 *  S10. Ranges neither overlap nor touch, and none is empty.
 *  S11. A key is what `changes` says; else it is missing if a range holds it; else it is what the base says.
 *
 * The base is never read to delete a range, and a scan skips what a range hides: it scans the base piece by piece,
 * between the ranges, and puts the changes in where they belong. Writing copies what readers hold, so they need only
 * a short lock, as in memory.c. */
#include "store/overlay.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "store/batch.h"
#include "store/failure.h"
#include "store/tree.h"

enum { CHANGE_PUT, CHANGE_DELETE };

struct view {
    struct tree_node *changes, *ranges;
};

struct overlay {
    struct store store; /* first: a store is cast back to its overlay */
    struct store *base;
    bool owns_base;
    pthread_mutex_t lock; /* over published */
    struct view published;
    struct random random; /* of priorities; the writer's */
    struct failure failure;
};

static const struct store_methods overlay_methods;

static struct overlay *overlay_of(struct store *store)
{
    ensure(store->methods == &overlay_methods);
    return (struct overlay *)store;
}

static struct view view_hold(struct overlay *overlay)
{
    pthread_mutex_lock(&overlay->lock);
    struct view view = {tree_hold(overlay->published.changes), tree_hold(overlay->published.ranges)};
    pthread_mutex_unlock(&overlay->lock);
    return view;
}

static void view_release(struct view view)
{
    tree_release(view.changes);
    tree_release(view.ranges);
}

/* The words are those of the base, which has no writer: the first failed read's, and they stay. */
static enum store_result base_failed(struct overlay *overlay)
{
    return failure_of_read(&overlay->failure, &overlay->store, overlay->base->error);
}

/* ---- looking into a tree ---- */

struct entry {
    struct slice key, value;
};

static bool entry_take(void *context, struct slice key, struct slice value)
{
    *(struct entry *)context = (struct entry){key, value};
    return false;
}

/* The first entry of from <= key < to, or the last one; an empty `to` means the end. */
static bool entry_first(const struct tree_node *tree, struct slice from, struct slice to, bool backwards,
                        struct entry *out)
{
    return backwards ? !tree_scan_backwards(tree, from, to, entry_take, out)
                     : !tree_scan(tree, from, to, entry_take, out);
}

/* The range that begins last before the key. */
static bool range_before(const struct tree_node *ranges, struct slice key, struct entry *range)
{
    return key.len && entry_first(ranges, SLICE_NONE, key, true, range);
}

/* The range that holds the key. */
static bool range_around(const struct tree_node *ranges, struct slice key, struct entry *range)
{
    range->key = key;
    if (tree_find(ranges, key, &range->value)) return true;
    return range_before(ranges, key, range) && slice_compare(key, range->value) < 0;
}

/* ---- reading one key ---- */

static enum store_result overlay_get(struct store *store, struct slice key, struct buf *value)
{
    struct overlay *overlay = overlay_of(store);
    struct view view = view_hold(overlay);
    struct slice change;
    struct entry range;
    enum store_result result = STORE_MISSING;
    if (tree_find(view.changes, key, &change)) {
        if (change.data[0] == CHANGE_PUT) {
            buf_slice(value, slice_from(change, 1));
            result = STORE_OK;
        }
    } else if (!range_around(view.ranges, key, &range)) {
        result = store_get(overlay->base, key, value);
        if (result == STORE_FAILED) base_failed(overlay);
    }
    view_release(view);
    return result;
}

/* ---- scanning ---- */

struct merge {
    struct view view;
    struct slice from, to; /* of the changes behind `next` */
    bool backwards;
    store_visitor visitor;
    void *context;
    bool any;            /* there is a next change */
    struct entry next;   /* in the scan's direction */
    struct buf from_key; /* where `from` points after the first change */
    bool stopped;        /* by the visitor */
};

static void merge_advance(struct merge *merge)
{
    if (!merge->backwards && merge->any) { /* the key that follows directly has a zero more */
        merge->from_key.len = 0;
        buf_slice(&merge->from_key, merge->next.key);
        buf_byte(&merge->from_key, '\0');
        merge->from = buf_view(&merge->from_key);
    }
    if (merge->backwards && merge->any) {
        merge->to = merge->next.key;
        merge->any = merge->to.len > 0; /* an empty key is the first of all */
        if (!merge->any) return;
    }
    merge->any = entry_first(merge->view.changes, merge->from, merge->to, merge->backwards, &merge->next);
}

/* Visits the next change, unless it is a deletion, and goes on to the one behind it. */
static void merge_change(struct merge *merge)
{
    struct slice value = merge->next.value;
    if (value.data[0] == CHANGE_PUT)
        merge->stopped = !merge->visitor(merge->context, merge->next.key, slice_from(value, 1));
    merge_advance(merge);
}

/* A key of the base: the changes before it come first, and one of the same key replaces it. */
static bool merge_base(void *context, struct slice key, struct slice value)
{
    struct merge *merge = context;
    while (merge->any) {
        int order = slice_compare(merge->next.key, key);
        if (merge->backwards ? order < 0 : order > 0) break;
        merge_change(merge);
        if (merge->stopped || order == 0) return !merge->stopped;
    }
    merge->stopped = !merge->visitor(merge->context, key, value);
    return !merge->stopped;
}

struct span {
    struct slice from, to; /* an empty `to` means the end of the store */
};

#define SPAN_EMPTY ((struct span){SLICE("-"), SLICE("-")})

static bool span_is_empty(const struct span *span)
{
    return span->to.len && slice_compare(span->from, span->to) >= 0;
}

/* Cuts the first piece that no range hides off the front of *rest; false when there is none. */
static bool piece_first(const struct tree_node *ranges, struct span *rest, struct span *piece)
{
    struct entry range;
    if (range_around(ranges, rest->from, &range)) rest->from = range.value;
    if (span_is_empty(rest)) return false;
    *piece = *rest;
    if (!entry_first(ranges, rest->from, rest->to, false, &range)) {
        *rest = SPAN_EMPTY;
        return true;
    }
    piece->to = range.key; /* not empty: it is behind `from` */
    rest->from = range.value;
    return true;
}

/* The same at the end of *rest. */
static bool piece_last(const struct tree_node *ranges, struct span *rest, struct span *piece)
{
    struct entry range;
    while (!span_is_empty(rest)) {
        *piece = *rest;
        if (!entry_first(ranges, SLICE_NONE, rest->to, true, &range) ||
            slice_compare(range.value, rest->from) <= 0) {
            *rest = SPAN_EMPTY;
            return true;
        }
        piece->from = range.value;
        rest->to = range.key;
        if (!range.key.len) *rest = SPAN_EMPTY; /* an empty `to` would mean the end */
        if (!span_is_empty(piece)) return true;
    }
    return false;
}

static enum store_result overlay_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                      store_visitor visitor, void *context)
{
    struct overlay *overlay = overlay_of(store);
    struct span rest = {from, to}, piece;
    if (span_is_empty(&rest)) return STORE_OK;
    struct merge merge = {.view = view_hold(overlay),
                          .from = from,
                          .to = to,
                          .backwards = backwards,
                          .visitor = visitor,
                          .context = context};
    merge_advance(&merge);
    enum store_result result = STORE_OK;
    while (result == STORE_OK && !merge.stopped &&
           (backwards ? piece_last : piece_first)(merge.view.ranges, &rest, &piece)) {
        result = store_scan(overlay->base, piece.from, piece.to, backwards, merge_base, &merge);
    }
    while (result == STORE_OK && !merge.stopped && merge.any) merge_change(&merge);
    if (result == STORE_FAILED) base_failed(overlay);
    buf_free(&merge.from_key);
    view_release(merge.view);
    return result;
}

/* ---- writing ---- */

static void change_put(struct overlay *overlay, struct view *view, const struct batch_entry *entry)
{
    struct buf value = {0};
    buf_byte(&value, entry->kind == BATCH_PUT ? CHANGE_PUT : CHANGE_DELETE);
    buf_slice(&value, entry->value);
    view->changes = tree_put(view->changes, entry->key, buf_view(&value), &overlay->random);
    buf_free(&value);
}

/* The ranges that it overlaps or touches become one with it. */
static void range_put(struct overlay *overlay, struct view *view, struct slice from, struct slice to)
{
    struct buf first = {0}, behind = {0};
    struct entry range;
    if (range_before(view->ranges, from, &range) && slice_compare(from, range.value) <= 0) from = range.key;
    buf_slice(&first, from); /* copies: the node that it points into is cut out below */
    range.key = to;
    if (tree_find(view->ranges, to, &range.value) ||
        (range_before(view->ranges, to, &range) && slice_compare(to, range.value) < 0))
        to = range.value;
    buf_slice(&behind, to);
    view->ranges = tree_delete_range(view->ranges, buf_view(&first), buf_view(&behind));
    view->ranges = tree_put(view->ranges, buf_view(&first), buf_view(&behind), &overlay->random);
    buf_free(&first);
    buf_free(&behind);
}

/* Never fails: nothing but memory is written. */
static enum store_result overlay_write(struct store *store, const struct store_batch *batch, bool durable)
{
    struct overlay *overlay = overlay_of(store);
    struct view view = view_hold(overlay), before;
    struct batch_reader reader = batch_read(batch);
    (void)durable;
    for (struct batch_entry entry; batch_next(&reader, &entry);) {
        if (entry.kind != BATCH_DELETE_RANGE) {
            change_put(overlay, &view, &entry);
        } else if (slice_compare(entry.key, entry.value) < 0) {
            view.changes = tree_delete_range(view.changes, entry.key, entry.value);
            range_put(overlay, &view, entry.key, entry.value);
        }
    }
    pthread_mutex_lock(&overlay->lock);
    before = overlay->published;
    overlay->published = view;
    pthread_mutex_unlock(&overlay->lock);
    view_release(before);
    return STORE_OK;
}

static enum store_result overlay_sync(struct store *store)
{
    (void)store;
    return STORE_OK;
}

/* ---- the rest ---- */

struct tally {
    uint64_t puts, deletes;
};

static bool tally_change(void *context, struct slice key, struct slice value)
{
    struct tally *tally = context;
    (void)key;
    if (value.data[0] == CHANGE_PUT)
        tally->puts++;
    else
        tally->deletes++;
    return true;
}

/* Of the keys, an estimate: which of the changes are about keys of the base only the base could tell. */
static void overlay_stats(struct store *store, struct store_stats *stats)
{
    struct overlay *overlay = overlay_of(store);
    struct view view = view_hold(overlay);
    struct tally tally = {0};
    store_stats(overlay->base, stats);
    tree_scan(view.changes, SLICE_NONE, SLICE_NONE, tally_change, &tally);
    stats->memory_bytes += tree_bytes(view.changes) + tree_bytes(view.ranges);
    stats->keys_estimate += tally.puts;
    stats->keys_estimate -= tally.deletes < stats->keys_estimate ? tally.deletes : stats->keys_estimate;
    view_release(view);
}

static void overlay_close(struct store *store)
{
    struct overlay *overlay = overlay_of(store);
    if (overlay->owns_base) store_close(overlay->base);
    view_release(overlay->published);
    failure_free(&overlay->failure);
    pthread_mutex_destroy(&overlay->lock);
    free(overlay);
}

static const struct store_methods overlay_methods = {
    overlay_get, overlay_scan, overlay_write, overlay_sync, overlay_stats, overlay_close,
};

struct store *store_open_overlay(struct store *base)
{
    struct store *store = store_open_overlay_on(base);
    overlay_of(store)->owns_base = true;
    return store;
}

struct store *store_open_overlay_on(struct store *base)
{
    struct overlay *overlay = must_zero(1, sizeof *overlay);
    overlay->store.methods = &overlay_methods;
    overlay->base = base;
    ensure(pthread_mutex_init(&overlay->lock, NULL) == 0);
    failure_init(&overlay->failure);
    random_seed_from_system(&overlay->random);
    return &overlay->store;
}
