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
#include "calendar/calendar.h"
#include "base/attribute.h"
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

enum telling {
    AS_IT_IS,
    AS_MOMENT, /* milliseconds since 1970, told in words */
    AS_BULK,   /* it may be large: left out where there is no room */
};

struct member {
    const char *name, *attribute;
    enum telling telling;
};

static const struct member work_members[] = {
    {"queue", "queue", AS_IT_IS},       {"id", "id", AS_IT_IS},
    {"state", "state", AS_IT_IS},       {"attempts", "attempts", AS_IT_IS},
    {"error", "error", AS_IT_IS},       {"submitted", "submitted", AS_IT_IS},
    {"finished", "finished", AS_IT_IS}, {"data", "data", AS_BULK},
    {"progress", "progress", AS_BULK},  {NULL, NULL, AS_IT_IS},
};
static const struct member job_members[] = {
    {"id", "id", AS_IT_IS},         {"state", "state", AS_IT_IS},     {"total", "total", AS_IT_IS},
    {"done", "counted", AS_IT_IS},  {"failed", "failures", AS_IT_IS}, {"opened", "opened", AS_IT_IS},
    {"closed", "closed", AS_IT_IS}, {NULL, NULL, AS_IT_IS},
};
static const struct member group_members[] = {
    {"name", "name", AS_IT_IS},
    {"key", "key", AS_IT_IS},
    {"generation", "generation", AS_IT_IS},
    {"state", "state", AS_IT_IS},
    {"count", "count", AS_IT_IS},
    {"kinds", "kinds", AS_IT_IS},
    {"sum", "sum", AS_IT_IS},
    {"fold", "fold", AS_IT_IS},
    {"why", "why", AS_IT_IS},
    {"opened", "opened", AS_MOMENT},
    {"touched", "touched", AS_MOMENT},
    {"completed", "completed", AS_IT_IS},
    {"events", "events", AS_BULK},
    {NULL, NULL, AS_IT_IS},
};
static const struct member period_members[] = {
    {"period", "period", AS_IT_IS}, {"bucket", "bucket", AS_IT_IS}, {"end", "end", AS_IT_IS},
    {"state", "state", AS_IT_IS},   {"count", "count", AS_IT_IS},   {"parts", "parts", AS_IT_IS},
    {"events", "events", AS_BULK},  {NULL, NULL, AS_IT_IS},
};

/* In the order of pattern_reactions. */
static const struct {
    const struct member *members;
    const char *time; /* the attribute that says when */
    const char *path; /* with {attributes} */
} tellings[] = {
    {work_members, "finished", "/v1/work/{queue}/{id}"},
    {job_members, "closed", "/v1/jobs/{id}"},
    {group_members, "completed", "/v1/groups/{name}/{key}?generation={generation}"},
    {period_members, "done", "/v1/periods/{period}/{bucket}"},
};

static void put_path(struct buf *out, const char *path, struct slice item, struct arena *arena)
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
    json_put_string(out, buf_view(&text));
    buf_free(&text);
}

/* Some of its events have items of their own: those that it has itself are not all. */
static bool has_others(struct slice item, struct arena *arena)
{
    return item_has(arena, item, "spilled") || item_int(arena, item, "parts", 1) > 1;
}

/* False when it was left out. */
static bool put_member(struct buf *out, const struct member *member, const struct pattern_record *record,
                       bool is_brief, struct arena *arena)
{
    struct slice item = record->item, value = item_attribute(arena, item, member->attribute);
    bool is_bulk = member->telling == AS_BULK;
    bool is_beside = is_bulk && strcmp(member->name, "events") == 0 && has_others(item, arena);
    if (is_beside && !record->events.data) return false;
    if (!is_beside && !value.data) return true;
    if (is_bulk && is_brief) return false;
    json_put_string(out, slice_of(member->name));
    buf_byte(out, ':');
    if (is_beside)
        buf_slice(out, record->events);
    else if (member->telling == AS_MOMENT)
        json_put_string(out, moment_text(arena, item_int(arena, item, member->attribute, 0)));
    else
        plain_put_attribute(out, arena, value);
    buf_byte(out, ',');
    return true;
}

/* A job that is COMPLETE says nothing of what is done, since that is clear. */
static void put_done(struct buf *out, struct slice item, struct arena *arena)
{
    if (!item_says(arena, item, "state", "COMPLETE") || !item_has(arena, item, "total")) return;
    int64_t done = item_int(arena, item, "total", 0) - item_int(arena, item, "failures", 0);
    buf_printf(out, "\"done\":%lld,", (long long)done);
}

/* False when they were left out. */
static bool put_results(struct buf *out, const struct pattern_record *record, bool is_brief)
{
    if (is_brief || !record->results.data) return false;
    buf_text(out, "\"results\":");
    buf_slice(out, record->results);
    buf_text(out, ",\"failures\":");
    buf_slice(out, record->failures);
    buf_byte(out, ',');
    return true;
}

static void put_detail(struct buf *out, size_t number, const struct pattern_record *record, bool is_brief,
                       struct arena *arena)
{
    struct slice item = record->item;
    bool is_whole = true;
    buf_byte(out, '{');
    for (const struct member *member = tellings[number].members; member->name; member++)
        is_whole &= put_member(out, member, record, is_brief, arena);
    if (tellings[number].members == job_members) {
        put_done(out, item, arena);
        is_whole = put_results(out, record, is_brief);
    }
    if (!is_whole) buf_text(out, "\"truncated\":true,");
    buf_text(out, "\"path\":");
    put_path(out, tellings[number].path, item, arena);
    buf_byte(out, '}');
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
    buf_text(out, "{\"version\":\"0\",\"id\":");
    json_put_string(out, id);
    buf_printf(out, ",\"source\":\"%s\",\"detail-type\":", reaction->source);
    json_put_string(out, arena_printf(arena, "%s %.*s", reaction->word, SLICE_ARG(record->state)));
    buf_text(out, ",\"time\":");
    json_put_string(out, time_of(number, record->item, record->change, arena));
    buf_text(out, ",\"detail\":");
    put_detail(out, number, record, how & PATTERN_EVENT_BRIEF, arena);
    if (how & (PATTERN_EVENT_ID | PATTERN_EVENT_RECORD)) {
        buf_text(out, ",\"eventID\":");
        json_put_string(out, id);
    }
    if (how & PATTERN_EVENT_RECORD) {
        struct slice keys = raw_member(arena, record->change, "Keys");
        buf_text(out, ",\"eventName\":\"MODIFY\",\"dynamodb\":{\"NewImage\":");
        buf_slice(out, record->item);
        buf_text(out, ",\"Keys\":");
        buf_slice(out, keys.data ? keys : SLICE("{}"));
        buf_byte(out, '}');
    }
    buf_byte(out, '}');
}
