/* Reactions: the events that a complete group, or a bucket that is over, has beside its item; and what came of the
 * tasks of a job.
 *
 * Small ones stand in the item whose change of state is told of. Larger ones have items of their own, which
 * are read here, by the routes that everybody has, when the call of the `then` is made. Nothing is added to a
 * complete group but what came late, and that is left out: so whoever reads it, and how often, gets the same.
 * The same holds for a job that is COMPLETE. What is larger than the call, or was removed meanwhile, is not gathered.
 * Called by react/reactions.c. */
#include <stdlib.h>

#include "base/compose.h"
#include "pattern/internal.h"

#define PAGE      "1000"                               /* what GET of a group answers at most */
#define JOB_LEAST (sizeof "{\"task\":0,\"result\":0}") /* bytes of a result: of more tasks they never fit */

struct gathering {
    struct pattern *pattern;
    struct arena *arena;
    const char *list; /* the member of a page; NULL: "events" */
    bool keeps_late;  /* what came late belongs to it */
    size_t bytes, room;
    struct gathered_event *events;
    size_t count, capacity;
};

struct gathered_event {
    struct slice text, time;
    size_t number;
};

enum page_result { PAGE_TAKEN, PAGE_MISSING, PAGE_TOO_LARGE, PAGE_UNKNOWN };

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

static int get(const struct gathering *all, struct slice path, struct slice query, struct slice *body)
{
    struct buf reply = {0};
    struct rest_call call = {
        .method = SLICE("GET"), .path = path, .query = query, .arena = all->arena, .reply = &reply};
    pattern_run(all->pattern, &call);
    *body = arena_take(all->arena, &reply);
    return call.status;
}

/* *next: where the next page begins; empty behind the last. */
static enum page_result page_take(struct gathering *all, struct slice path, struct slice query,
                                  struct slice *next)
{
    struct arena *arena = all->arena;
    struct slice event, page;
    int status = get(all, path, query, &page);
    if (status != 200) return status == 404 || status == 410 ? PAGE_MISSING : PAGE_UNKNOWN;
    struct slice events = raw_member(arena, page, all->list ? all->list : "events");
    if (raw_kind(events) != JSON_ARRAY) return PAGE_MISSING;
    raw_each (arena, events, &event)
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

static enum page_result pages_take(struct gathering *all, struct slice path, struct slice query)
{
    struct arena *arena = all->arena;
    struct slice next = SLICE("");
    enum page_result page;
    do {
        struct slice asked = query;
        if (next.len) asked = compose_in(arena, "%A&after=%A", query, rest_encoded(arena, next));
        page = page_take(all, path, asked, &next);
    } while (page == PAGE_TAKEN && next.len);
    return page;
}

static enum page_result gather_group(struct gathering *all, struct slice item)
{
    struct arena *arena = all->arena;
    struct slice path = compose_in(arena, "/v1/groups/%A/%A",
                                   rest_encoded(arena, item_text(arena, item, "name")),
                                   rest_encoded(arena, item_text(arena, item, "key")));
    enum page_result page = pages_take(
        all, path, compose_in(arena, "generation=%A&limit=" PAGE, item_text(arena, item, "generation")));
    if (page == PAGE_TAKEN) qsort(all->events, all->count, sizeof *all->events, by_time);
    return page;
}

static enum page_result gather_bucket(struct gathering *all, struct slice item)
{
    struct arena *arena = all->arena;
    int64_t parts = item_int(arena, item, "parts", 0);
    struct slice next,
        path = compose_in(arena, "/v1/periods/%A/%A", rest_encoded(arena, item_text(arena, item, "period")),
                          rest_encoded(arena, item_text(arena, item, "bucket")));
    enum page_result page = PAGE_TAKEN;
    all->keeps_late = true; /* for another bucket, that is */
    for (int64_t part = 1; part <= parts && page == PAGE_TAKEN; part++)
        page = page_take(all, path, arena_printf(arena, "part=%lld", (long long)part), &next);
    return page;
}

static struct slice gathered_list(const struct gathering *all)
{
    struct buf text = {0};
    buf_byte(&text, '[');
    for (size_t i = 0; i < all->count; i++) compose(&text, "%,%A", all->events[i].text);
    buf_byte(&text, ']');
    return arena_take(all->arena, &text);
}

/* What came of its tasks, in their order, and why others failed. Another job that has its id by now has begun at
 * another time. */
static enum page_result gather_job(struct gathering *all, struct pattern_record *record)
{
    struct arena *arena = all->arena;
    struct gathering failures = {.pattern = all->pattern, .arena = arena, .list = "failures"};
    struct slice job;
    struct slice path = compose_in(arena, "/v1/jobs/%A",
                                   rest_encoded(arena, item_text(arena, record->item, "id")));
    int64_t total = item_int(arena, record->item, "total", INT64_MAX);
    if (total > (int64_t)(all->room / JOB_LEAST)) return PAGE_TOO_LARGE;
    all->list = "results";
    enum page_result page = pages_take(all, compose_in(arena, "%A/results", path), SLICE("limit=" PAGE));
    failures.room = all->room - all->bytes;
    if (page == PAGE_TAKEN)
        page = pages_take(&failures, compose_in(arena, "%A/failures", path), SLICE("limit=" PAGE));
    if (page != PAGE_TAKEN) return page;
    int status = get(all, path, SLICE(""), &job);
    struct slice opened = raw_text(arena, raw_member(arena, job, "opened"));
    if (status != 200) return status == 404 ? PAGE_MISSING : PAGE_UNKNOWN;
    if (!slice_equal(opened, item_text(arena, record->item, "opened"))) return PAGE_MISSING;
    record->results = gathered_list(all);
    record->failures = gathered_list(&failures);
    return page;
}

bool pattern_gather(struct pattern *pattern, struct pattern_record *record, size_t room, struct arena *arena)
{
    struct gathering all = {.pattern = pattern, .arena = arena, .room = room};
    bool is_group = item_has(arena, record->item, "spilled");
    if (item_has(arena, record->item, "run")) return gather_job(&all, record) != PAGE_UNKNOWN;
    if (!is_group && item_int(arena, record->item, "parts", 1) < 2) return true;
    enum page_result page = is_group ? gather_group(&all, record->item) : gather_bucket(&all, record->item);
    if (page != PAGE_TAKEN) return page != PAGE_UNKNOWN;
    record->events = gathered_list(&all);
    return true;
}
