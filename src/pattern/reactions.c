/* Which changes of which tables others may react to, and what they are told of one; see pattern.h.
 *
 * A target gets a document of the form that EventBridge's have:
 *
 *   {"version":"0", "id":..., "source":"quipu.jobs", "detail-type":"Job COMPLETE", "time":...,
 * "detail":{...}}
 *
 * `detail` is what GET of the resource answers, as far as the item at hand has it, and its `path`. What has
 * no room there (many or large events) is left out; "truncated":true says so, and the path tells where it is.
 * Events with items of their own, and the results of a job's tasks, are read for it (gather.c). */
#include "base/attribute.h"
#include "base/compose.h"
#include "calendar/calendar.h"
#include "pattern/pattern.h"
#include "rest/rest.h"

/* A change of state into one of these from one that is none of them, or from nothing, of an item that has a `then`. */
#define BECOMES(states)                                                                                      \
    "{\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[" states "]},\"then\":{\"S\":[{\"exists\":true}]}},"     \
    "\"OldImage\":{\"state\":{\"S\":[{\"anything-but\":[" states "]},{\"exists\":false}]}}}}"

/* A unit of work that is given up, a job that has ended one way or other, a group that is complete, a bucket
 * of a period that is. */
const struct pattern_reaction pattern_reactions[] = {
    {"work", BECOMES("\"DEAD\""), "quipu.work", "Work", false},
    {"jobs", BECOMES("\"COMPLETE\",\"FAILED\",\"EXPIRED\""), "quipu.jobs", "Job", true},
    {"groups", BECOMES("\"COMPLETE\""), "quipu.groups", "Group", true},
    {"period-buckets", BECOMES("\"DONE\""), "quipu.periods", "Period", true},
};
const size_t pattern_reaction_count = sizeof pattern_reactions / sizeof *pattern_reactions;

/* ---- what is told of an item ---- */

/* In the order of pattern_reactions; attributes by their names, which spaces divide. */
static const struct telling {
    const char *members; /* as they are */
    const char *moments; /* milliseconds since 1970, told in words */
    const char *bulk;    /* they may be large: left out where there is no room */
    const char *time;    /* the one that says when */
    const char *path;    /* with {attributes} */
} tellings[] = {
    {"queue id state attempts error submitted finished", "", "data progress", "finished",
     "/v1/work/{queue}/{id}"},
    {"id state total opened closed", "", "", "closed", "/v1/jobs/{id}"},
    {"name key generation state count kinds sum fold why completed", "opened touched", "events", "completed",
     "/v1/groups/{name}/{key}?generation={generation}"},
    {"period bucket end state count parts", "", "events", "done", "/v1/periods/{period}/{bucket}"},
};

static struct slice path_of(const char *path, struct slice item, struct arena *arena)
{
    struct buf text = {0};
    while (*path) {
        size_t plain = strcspn(path, "{");
        buf_put(&text, path, plain);
        path += plain;
        if (!*path) break;
        size_t len = strcspn(++path, "}");
        rest_encode(&text, item_text(arena, item, arena_printf(arena, "%.*s", (int)len, path).data));
        path += len + 1;
    }
    return arena_take(arena, &text);
}

/* False when it was left out. Some events may have items of their own: those that the item has itself are not all. */
static bool put_bulk(struct buf *out, const char *name, const struct pattern_record *record, bool is_brief,
                     struct arena *arena)
{
    struct slice item = record->item, value = item_attribute(arena, item, name);
    bool has_others = item_has(arena, item, "spilled") || item_int(arena, item, "parts", 1) > 1;
    bool is_beside = has_others && strcmp(name, "events") == 0;
    if (is_beside && !record->events.data) return false;
    if (!is_beside && !value.data) return true;
    if (is_brief) return false;
    compose(out, ",%s:", slice_of(name));
    if (is_beside)
        buf_slice(out, record->events);
    else
        plain_put_attribute(out, arena, value);
    return true;
}

/* A job that is COMPLETE says nothing of what is done, since that is clear. False when results were left out. */
static bool put_job(struct buf *out, const struct pattern_record *record, bool is_brief, struct arena *arena)
{
    struct slice item = record->item;
    int64_t failed = item_int(arena, item, "failures", 0), done = item_int(arena, item, "counted", -1);
    if (item_says(arena, item, "state", "COMPLETE")) done = item_int(arena, item, "total", -1) - failed;
    compose(out, "%[%?,'done':%d%]%[%?,'failed':%d%]", done >= 0, done, item_has(arena, item, "failures"),
            failed);
    if (is_brief || !record->results.data) return false;
    compose(out, ",'results':%A,'failures':%A", record->results, record->failures);
    return true;
}

static void put_detail(struct buf *out, size_t number, const struct pattern_record *record, bool is_brief,
                       struct arena *arena)
{
    const struct telling *telling = &tellings[number];
    struct slice item = record->item, moments = slice_of(telling->moments), bulk = slice_of(telling->bulk);
    bool is_whole = true;
    compose(out, "{'path':%s", path_of(telling->path, item, arena));
    plain_put_members(out, arena, item, telling->members);
    while (moments.len) {
        const char *name = arena_copy(arena, slice_cut(&moments, ' ')).data;
        int64_t ms = item_int(arena, item, name, 0);
        compose(out, "%[%?,%s:%s%]", ms != 0, slice_of(name), moment_text(arena, ms));
    }
    while (bulk.len)
        is_whole &= put_bulk(out, arena_copy(arena, slice_cut(&bulk, ' ')).data, record, is_brief, arena);
    if (strcmp(telling->path, "/v1/jobs/{id}") == 0) is_whole = put_job(out, record, is_brief, arena);
    compose(out, "%[%?,'truncated':true%]}", !is_whole);
}

/* ---- the document ---- */

static struct slice time_of(size_t number, struct slice item, struct slice change, struct arena *arena)
{
    struct slice told = item_text(arena, item, tellings[number].time), created;
    int64_t seconds = 0;
    if (told.len) return told;
    created = raw_member(arena, change, "ApproximateCreationDateTime");
    struct slice whole = {created.data, 0};
    while (whole.len < created.len && created.data[whole.len] >= '0' && created.data[whole.len] <= '9')
        whole.len++;
    raw_int(whole, &seconds);
    return moment_text(arena, seconds * 1000);
}

bool pattern_record_read(struct slice record, struct arena *arena, struct pattern_record *out)
{
    struct slice change = raw_member(arena, record, "dynamodb");
    *out = (struct pattern_record){.text = record, .change = change};
    out->item = raw_member(arena, change, "NewImage");
    out->id = raw_text(arena, raw_member(arena, record, "eventID"));
    out->then = item_text(arena, out->item, "then");
    out->state = item_text(arena, out->item, "state");
    out->cause = raw_text(arena, raw_member(arena, record, "cause"));
    return out->id.len && out->then.data && out->state.len;
}

void pattern_put_event(struct buf *out, const struct pattern_reaction *reaction,
                       const struct pattern_record *record, struct slice id, unsigned how,
                       struct arena *arena)
{
    size_t number = (size_t)(reaction - pattern_reactions);
    struct slice keys = raw_member(arena, record->change, "Keys");
    compose(out, "{'version':'0','id':%s,'source':%s,'detail-type':%s,'time':%s,'detail':", id,
            slice_of(reaction->source),
            arena_printf(arena, "%s %.*s", reaction->word, SLICE_ARG(record->state)),
            time_of(number, record->item, record->change, arena));
    put_detail(out, number, record, how & PATTERN_EVENT_BRIEF, arena);
    compose(out, "%[%?,'eventID':%s%]%[%?,'eventName':'MODIFY','dynamodb':{'NewImage':%A,'Keys':%A}%]}",
            (how & (PATTERN_EVENT_ID | PATTERN_EVENT_RECORD)) != 0, id, (how & PATTERN_EVENT_RECORD) != 0,
            record->item, keys.data ? keys : SLICE("{}"));
}
