/* Tags of mappings. Lambda has one resource for the tags of everything, /2017-03-31/tags/ARN; functions are
 * the business of another room, so that only paths with a mapping's ARN are taken here. */
#include "base/limits.h"
#include "trigger/mapping.h"

/* ---- one object of texts made of another ---- */

static bool is_among(struct rest_call *call, struct slice name)
{
    struct slice wanted;
    for (unsigned i = 0; (wanted = rest_query_nth(call, "tagKeys", i)).data; i++)
        if (slice_equal(wanted, name)) return true;
    return false;
}

static bool has_member(struct slice object, struct slice wanted, struct arena *arena)
{
    struct json_reader reader;
    struct slice name;
    if (!object.len) return false;
    json_begin(&reader, object, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, wanted)) return true;
        json_skip(&reader);
    }
    return false;
}

/* Appends the members of an object; but not those that `without` has, or that the query names. */
static unsigned put_members(struct buf *out, struct slice object, struct slice without,
                            struct rest_call *call)
{
    struct json_reader reader;
    struct slice name, value;
    unsigned count = 0;
    if (!object.len) return 0;
    json_begin(&reader, object, call->arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return 0;
    while (json_member(&reader, &name) && json_string(&reader, &value)) {
        if (has_member(without, name, call->arena) || is_among(call, name)) continue;
        if (out->data[out->len - 1] != '{') buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        json_put_string(out, value);
        count++;
    }
    return count;
}

static bool make_tags(struct mapping_change *change, struct settings *settings, struct refusal *refusal)
{
    struct rest_call *call = change->call;
    struct mapping_view view;
    struct settings told;
    struct buf text = {0};
    buf_byte(&text, '{');
    unsigned count = put_members(&text, settings->tags, change->tags, call);
    count += put_members(&text, change->tags, SLICE_NONE, call);
    buf_byte(&text, '}');
    settings->tags = count ? arena_copy(call->arena, buf_view(&text)) : SLICE_NONE;
    buf_free(&text);
    /* Tags change nothing that is at work. */
    if (mapping_view_of(change->mappings, settings->id, call->arena, &told, &view))
        change->state = view.state;
    if (count <= LIMIT_TAGS) return true;
    return REFUSE_VALUE(refusal, call->arena, "Number of tags exceeds resource tag limit.");
}

/* ---- operations ---- */

static struct slice id_of_path(const struct rest_call *call)
{
    const struct slice arn = call->parameters[0];
    const char *mark = arn.len ? memmem(arn.data, arn.len, ":event-source-mapping:", 22) : NULL;
    return mark ? slice_from(arn, (size_t)(mark + 22 - arn.data)) : SLICE_NONE;
}

static void serve_tags(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct settings settings;
    struct mapping_view view;
    if (!mapping_view_of(trigger->mappings, id_of_path(call), call->arena, &settings, &view)) {
        mapping_refuse_missing(call);
        return;
    }
    buf_text(call->reply, "{\"Tags\":");
    buf_slice(call->reply, settings.tags.len ? settings.tags : SLICE("{}"));
    buf_byte(call->reply, '}');
    mapping_answer(call, 200);
}

static bool read_body(struct rest_call *call, struct slice *tags, struct refusal *refusal)
{
    struct json_reader reader;
    struct slice name;
    json_begin(&reader, call->body, call->arena);
    if (json_peek(&reader) == JSON_OBJECT && json_enter(&reader))
        while (json_member(&reader, &name)) {
            if (!slice_equal(name, SLICE("Tags")))
                json_skip(&reader);
            else if (!mapping_tags_read(&reader, call->arena, tags, refusal))
                return false;
        }
    if (json_done(&reader) && tags->len) return true;
    return decline(refusal, call->arena, 400, "InvalidRequestContentException",
                   "Could not parse request body into json: an object with Tags was expected");
}

static void work_change(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct mapping_change change = {.mappings = trigger->mappings, .call = call, .make = make_tags};
    struct refusal refusal;
    if (slice_equal(call->method, SLICE("POST")) && !read_body(call, &change.tags, &refusal)) {
        mapping_refuse(call, &refusal);
        return;
    }
    if (mapping_change_run(&change, id_of_path(call))) mapping_answer(call, 204);
}

static void serve_change(void *room, struct rest_call *call)
{
    rest_workers_run(((struct trigger *)room)->workers, work_change, room, call);
}

static const struct rest_route routes[] = {
    {"GET", "/2017-03-31/tags/{arn+}", serve_tags},
    {"POST", "/2017-03-31/tags/{arn+}", serve_change},
    {"DELETE", "/2017-03-31/tags/{arn+}", serve_change},
};

bool mapping_tags_serve(struct trigger *trigger, struct rest_call *call)
{
    const struct rest_route *found;
    if (rest_route(routes, sizeof routes / sizeof *routes, call, &found) != REST_FOUND) return false;
    if (!id_of_path(call).len) return false;
    found->serve(trigger, call);
    return true;
}
