/* Tags of mappings. Lambda has one resource for the tags of everything, /2017-03-31/tags/ARN; functions are
 * the business of another room, so that only paths with a mapping's ARN are taken here. */
#include "base/compose.h"
#include "base/limits.h"
#include "base/raw.h"
#include "trigger/mapping.h"

/* ---- one object of texts made of another ---- */

static bool is_among(struct rest_call *call, struct slice name)
{
    struct slice wanted;
    for (unsigned i = 0; (wanted = rest_query_nth(call, "tagKeys", i)).data; i++)
        if (slice_equal(wanted, name)) return true;
    return false;
}

/* Appends the members of an object, as they stand; but not those that `without` has, or that the query names. */
static unsigned put_members(struct buf *out, struct slice object, struct slice without,
                            struct rest_call *call)
{
    struct raw_look look, others;
    struct slice name, other, value, ignored;
    unsigned count = 0;
    raw_look_begin(&look, call->arena, object);
    while (raw_look_next(&look, &name, &value)) {
        bool is_left_out = is_among(call, name);
        raw_look_begin(&others, call->arena, without);
        while (!is_left_out && raw_look_next(&others, &other, &ignored))
            is_left_out = slice_equal(other, name);
        if (is_left_out) continue;
        compose(out, "%,%s:%A", name, value);
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
    return slice_behind(call->parameters[0], SLICE(":event-source-mapping:"));
}

static void serve_tags(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct settings settings;
    struct mapping_view view;
    if (!mapping_view_of(trigger->mappings, id_of_path(call), call->arena, &settings, &view)) {
        lambda_no_resource(call);
        return;
    }
    compose(call->reply, "{'Tags':%A}", settings.tags.len ? settings.tags : SLICE("{}"));
    lambda_done(call, 200);
}

static void work_change(void *room, struct rest_call *call)
{
    static const struct shape_field fields[] = {REQUIRED("Tags", lambda_shape_tags)};
    struct trigger *trigger = room;
    struct mapping_change change = {.mappings = trigger->mappings, .call = call, .make = make_tags};
    struct shape_node tags;
    if (slice_equal(call->method, SLICE("POST"))) {
        if (!lambda_decode(call, fields, 1, &tags)) return;
        change.tags = node_json(&tags, call->arena);
    }
    if (mapping_change_run(&change, id_of_path(call))) lambda_done(call, 204);
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
