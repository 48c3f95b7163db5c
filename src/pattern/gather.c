/* Reactions: the events that a complete group, or a bucket that is over, has beside its item.
 *
 * Small ones stand in the item whose change of state is told of. Larger ones have items of their own, which
 * are read here, by the routes that everybody has, when the call of the `then` is made. Nothing is added to a
 * complete group but what came late, and that is left out: so whoever reads it, and how often, gets the same.
 * What is larger than the call, or was removed meanwhile, is not gathered. Called by react/reactions.c. */
#include <stdlib.h>

#include "pattern/internal.h"

#define PAGE "1000" /* what GET of a group answers at most */

struct gathering {
    struct pattern *pattern;
    struct arena *arena;
    bool keeps_late; /* what came late belongs to it */
    size_t bytes, room;
    struct gathered_event *events;
    size_t count, capacity;
};

struct gathered_event {
    struct slice text, time;
    size_t number;
};

enum page_result { PAGE_TAKEN, PAGE_MISSING, PAGE_TOO_LARGE, PAGE_UNKNOWN };

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call;
    (void)name;
    return SLICE_NONE;
}

static void event_add(struct gathering *all, struct slice text)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? all->capacity * 2 : 64;
        struct gathered_event *larger = arena_alloc(all->arena, capacity * sizeof *larger);
        if (all->count) memcpy(larger, all->events, all->count * sizeof *larger);
        all->events = larger;
        all->capacity = capacity;
    }
    struct slice time = raw_text(all->arena, raw_member(all->arena, text, "time"));
    all->events[all->count] = (struct gathered_event){text, time, all->count};
    all->count++;
    all->bytes += text.len + 1;
}

/* *next: where the next page begins; empty behind the last. */
static enum page_result page_take(struct gathering *all, struct slice path, struct slice query, struct slice *next)
{
    struct arena *arena = all->arena;
    struct raw_look look;
    struct slice event;
    struct buf reply = {0};
    struct rest_call call = {.method = SLICE("GET"),
                             .path = path,
                             .query = query,
                             .header = no_header,
                             .arena = arena,
                             .reply = &reply};
    pattern_run(all->pattern, &call);
    struct slice page = arena_take(arena, &reply);
    if (call.status != 200) return call.status == 404 || call.status == 410 ? PAGE_MISSING : PAGE_UNKNOWN;
    struct slice events = raw_member(arena, page, "events");
    if (raw_kind(events) != JSON_ARRAY) return PAGE_MISSING;
    raw_look_begin(&look, arena, events);
    while (raw_look_next(&look, NULL, &event))
        if (all->keeps_late || !raw_member(arena, event, "late").data) event_add(all, event);
    *next = raw_text(arena, raw_member(arena, page, "next"));
    return all->bytes > all->room ? PAGE_TOO_LARGE : PAGE_TAKEN;
}

static int by_time(const void *a, const void *b)
{
    const struct gathered_event *one = a, *other = b;
    int order = slice_compare(one->time, other->time);
    return order ? order : (one->number > other->number) - (one->number < other->number);
}

static enum page_result gather_group(struct gathering *all, struct slice item)
{
    struct arena *arena = all->arena;
    struct slice path = arena_printf(arena, "/v1/groups/%.*s/%.*s",
                                     SLICE_ARG(rest_encoded(arena, item_text(arena, item, "name"))),
                                     SLICE_ARG(rest_encoded(arena, item_text(arena, item, "key"))));
    struct slice query = arena_printf(arena, "generation=%.*s&limit=" PAGE,
                                      SLICE_ARG(item_text(arena, item, "generation")));
    struct slice next = SLICE("");
    enum page_result page;
    do {
        struct slice asked = query;
        if (next.len)
            asked = arena_printf(arena, "%.*s&after=%.*s", SLICE_ARG(query), SLICE_ARG(rest_encoded(arena, next)));
        page = page_take(all, path, asked, &next);
    } while (page == PAGE_TAKEN && next.len);
    if (page == PAGE_TAKEN) qsort(all->events, all->count, sizeof *all->events, by_time);
    return page;
}

static enum page_result gather_bucket(struct gathering *all, struct slice item)
{
    struct arena *arena = all->arena;
    int64_t parts = item_int(arena, item, "parts", 0);
    struct slice path = arena_printf(arena, "/v1/periods/%.*s/%.*s",
                                     SLICE_ARG(rest_encoded(arena, item_text(arena, item, "period"))),
                                     SLICE_ARG(rest_encoded(arena, item_text(arena, item, "bucket")))),
                 next;
    enum page_result page = PAGE_TAKEN;
    all->keeps_late = true; /* for another bucket, that is */
    for (int64_t part = 1; part <= parts && page == PAGE_TAKEN; part++)
        page = page_take(all, path, arena_printf(arena, "part=%lld", (long long)part), &next);
    return page;
}

bool pattern_gather(struct pattern *pattern, struct pattern_record *record, size_t room, struct arena *arena)
{
    struct gathering all = {.pattern = pattern, .arena = arena, .room = room};
    bool is_group = item_has(arena, record->item, "spilled");
    if (!is_group && item_int(arena, record->item, "parts", 1) < 2) return true;
    enum page_result page = is_group ? gather_group(&all, record->item) : gather_bucket(&all, record->item);
    if (page != PAGE_TAKEN) return page != PAGE_UNKNOWN;
    struct buf text = {0};
    buf_byte(&text, '[');
    for (size_t i = 0; i < all.count; i++) {
        if (i) buf_byte(&text, ',');
        buf_slice(&text, all.events[i].text);
    }
    buf_byte(&text, ']');
    record->events = arena_take(arena, &text);
    return true;
}
