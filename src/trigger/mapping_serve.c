/* Lambda's operations on event source mappings. Reads are answered from memory, changes go
 * to the workers, since they wait for the door. */
#include "base/limits.h"
#include "calendar/calendar.h"
#include "trigger/judge.h"
#include "trigger/mapping.h"

#define PAGE 100 /* mappings in one reply, at most: the service's */

/* ---- errors ---- */

static bool refuse_busy(struct refusal *refusal, struct arena *arena, const char *what)
{
    return decline(refusal, arena, 400, "ResourceInUseException",
                   "Cannot %s the event source mapping because it is in use.", what);
}

/* ---- views ---- */

bool mapping_view_of(struct mappings *mappings, struct slice id, struct arena *arena,
                     struct settings *settings, struct mapping_view *view)
{
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = mappings_find(mappings, id);
    if (entry) {
        settings_copy(settings, entry->mapping->settings, arena);
        view->settings = settings;
        view->state = entry->state;
        view->result = arena_printf(arena, "%s", entry->result).data;
    }
    pthread_mutex_unlock(&mappings->lock);
    return entry != NULL;
}

/* ---- functions ---- */

/* What func_invoke takes, name or name:qualifier: of any form of ARN, or the text itself. */
static struct slice function_of(struct slice text)
{
    struct slice name = slice_behind(text, SLICE("function:"));
    return name.data ? name : text;
}

static bool settle_function(struct mappings *mappings, struct slice function, struct arena *arena,
                            struct settings *settings, struct refusal *refusal)
{
    struct slice name;
    if (!function.data) return true;
    if (!mappings->world.resolve(mappings->trigger->options.func, function, arena, &settings->function_arn,
                                 &name))
        return REFUSE_VALUE(refusal, arena, "Function does not exist");
    settings->function = function_of(settings->function_arn);
    return true;
}

static bool check_destination(struct mappings *mappings, const struct settings *settings, struct arena *arena,
                              struct refusal *refusal)
{
    if (!settings->on_failure.len) return true;
    const char *fault = mappings->world.destination_fault(mappings->trigger->options.func,
                                                          settings->on_failure);
    if (!fault) return true;
    return REFUSE_VALUE(refusal, arena, "Invalid request provided: the destination %.*s cannot be used: %s",
                        SLICE_ARG(settings->on_failure), fault);
}

static bool is_taken(struct mappings *mappings, const struct settings *settings, struct arena *arena,
                     struct refusal *refusal)
{
    struct slice other = mappings_twin(mappings, settings, arena);
    if (!other.data) return false;
    decline(
        refusal, arena, 409, "ResourceConflictException",
        "The event source arn (\" %.*s \") and function (\" %.*s \") provided mapping already exists. Please "
        "update or delete the existing mapping with UUID %.*s",
        SLICE_ARG(settings->stream_arn), SLICE_ARG(settings->function), SLICE_ARG(other));
    return true;
}

/* ---- create ---- */

static bool create(struct mappings *mappings, const struct mapping_request *request, struct arena *arena,
                   struct settings *settings, struct refusal *refusal)
{
    struct trigger *trigger = mappings->trigger;
    settings_defaults(settings);
    mapping_request_apply(request, arena, settings);
    if (request->nodes[GIVEN_TAGS].count) settings->tags = node_json(&request->nodes[GIVEN_TAGS], arena);
    uint64_t high = random_next(&mappings->random), low = random_next(&mappings->random);
    char *text = arena_alloc(arena, UUID_BYTES);
    uuid_put(text, high, low);
    settings->id = slice_of(text);
    settings->revision = 1;
    settings->created_ms = settings->modified_ms = clock_now_ms(trigger->options.clock);
    if (!settle_function(mappings, request->nodes[GIVEN_FUNCTION].text, arena, settings, refusal) ||
        !mapping_source_find(trigger, request->nodes[GIVEN_SOURCE].text, arena, &settings->stream_arn,
                             refusal) ||
        !check_destination(mappings, settings, arena, refusal) ||
        is_taken(mappings, settings, arena, refusal))
        return false;
    if (mappings->count >= LIMIT_MAPPINGS)
        return REFUSE_VALUE(refusal, arena, "There are %d event source mappings, and no more are allowed.",
                            LIMIT_MAPPINGS);
    switch (mapping_table_put(trigger, settings, arena, refusal)) {
    case STORED: return mappings_take(mappings, settings, MAPPING_CREATING);
    case STORED_CONFLICT: return refuse_busy(refusal, arena, "create");
    case STORED_NOT: break;
    }
    return false;
}

static void work_create(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct mapping_request request;
    struct settings settings;
    struct refusal refusal;
    bool good = mapping_request_parse(call, true, &request, &refusal);
    if (good) {
        pthread_mutex_lock(&trigger->mappings->changing);
        good = create(trigger->mappings, &request, call->arena, &settings, &refusal);
        pthread_mutex_unlock(&trigger->mappings->changing);
    }
    if (!good) {
        mapping_refuse(call, &refusal);
        return;
    }
    /* As it was created, whatever the consumer has reached since. */
    struct mapping_view view = {&settings, MAPPING_CREATING, "No records processed"};
    put_mapping(call->reply, trigger, &view);
    lambda_done(call, 202);
}

/* ---- changes ---- */

static bool change_store(struct mapping_change *change, struct slice id, struct refusal *refusal,
                         bool *is_missing)
{
    struct mappings *mappings = change->mappings;
    struct arena *arena = change->call->arena;
    struct settings *settings = &change->settings; /* as it was when the table was last looked at */
    struct mapping_view view;
    *is_missing = !mapping_view_of(mappings, id, arena, settings, &view);
    for (int attempt = 0; !*is_missing && attempt < 5; attempt++) {
        if (!change->make(change, settings, refusal)) return false;
        settings->revision++;
        settings->modified_ms = clock_now_ms(mappings->trigger->options.clock);
        enum stored stored = mapping_table_put(mappings->trigger, settings, arena, refusal);
        if (stored == STORED) return mappings_take(mappings, settings, change->state);
        if (stored == STORED_NOT) return false;
        bool is_there;
        if (!mapping_table_get(mappings->trigger, id, arena, settings, &is_there, refusal)) return false;
        *is_missing = !is_there;
    }
    return *is_missing ? false : refuse_busy(refusal, arena, "update");
}

bool mapping_change_run(struct mapping_change *change, struct slice id)
{
    struct refusal refusal;
    bool is_missing;
    pthread_mutex_lock(&change->mappings->changing);
    bool good = change_store(change, id, &refusal, &is_missing);
    pthread_mutex_unlock(&change->mappings->changing);
    if (good) return true;
    if (is_missing)
        lambda_no_resource(change->call);
    else
        mapping_refuse(change->call, &refusal);
    return false;
}

static void change_answer(struct mapping_change *change)
{
    struct settings ignored;
    struct mapping_view view;
    struct trigger *trigger = change->mappings->trigger;
    const char *result = "No records processed";
    if (mapping_view_of(change->mappings, change->settings.id, change->call->arena, &ignored, &view))
        result = view.result;
    view = (struct mapping_view){&change->settings, change->state, result};
    put_mapping(change->call->reply, trigger, &view);
    lambda_done(change->call, 202);
}

/* ---- update ---- */

static bool make_update(struct mapping_change *change, struct settings *settings, struct refusal *refusal)
{
    struct arena *arena = change->call->arena;
    bool was_enabled = settings->enabled;
    if (settings->is_deleting) return refuse_busy(refusal, arena, "update");
    const struct shape_node *function = &change->request->nodes[GIVEN_FUNCTION];
    mapping_request_apply(change->request, arena, settings);
    if (!settle_function(change->mappings, function->text, arena, settings, refusal)) return false;
    if (mapping_request_has_destination(change->request) &&
        !check_destination(change->mappings, settings, arena, refusal))
        return false;
    if (function->present && is_taken(change->mappings, settings, arena, refusal)) return false;
    change->state = was_enabled == settings->enabled ? MAPPING_UPDATING
                    : settings->enabled              ? MAPPING_ENABLING
                                                     : MAPPING_DISABLING;
    return true;
}

static void work_update(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct mapping_request request;
    struct refusal refusal;
    struct mapping_change change = {
        .mappings = trigger->mappings, .call = call, .make = make_update, .request = &request};
    if (!mapping_request_parse(call, false, &request, &refusal)) {
        mapping_refuse(call, &refusal);
        return;
    }
    /* Where a mapping begins to read is settled once. */
    request.nodes[GIVEN_START].present = false;
    if (mapping_change_run(&change, call->parameters[0])) change_answer(&change);
}

/* ---- delete ---- */

static bool make_delete(struct mapping_change *change, struct settings *settings, struct refusal *refusal)
{
    if (settings->is_deleting) return refuse_busy(refusal, change->call->arena, "delete");
    settings->is_deleting = true;
    change->state = MAPPING_DELETING;
    return true;
}

static void work_delete(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct mapping_change change = {.mappings = trigger->mappings, .call = call, .make = make_delete};
    if (mapping_change_run(&change, call->parameters[0])) change_answer(&change);
}

/* ---- move (ours) ---- */

static const struct shape shape_move_to = {TEXT_BETWEEN(1, POINT_BYTES)};
static const struct shape shape_shard = {TEXT_BETWEEN(1, LIMIT_SHARD_ID_BYTES)};
static const struct shape shape_token = {TEXT_BETWEEN(1, LIMIT_TOKEN_CHARACTERS)};
#define MOVE_MEMBERS(X)                                                                                      \
    X(MOVE_TO, REQUIRED("To", shape_move_to))                                                                \
    X(MOVE_SHARD, FIELD("ShardId", shape_shard))                                                             \
    X(MOVE_TOKEN, FIELD("ClientToken", shape_token))
enum { MOVE_MEMBERS(FIELD_INDEX) MOVE_COUNT };

/* start, end, a time, or the last sequence number that is done. */
static bool move_read(struct slice to, struct mapping_move *out, struct arena *arena, struct refusal *refusal)
{
    size_t digits = 0;
    while (digits < to.len && to.data[digits] >= '0' && to.data[digits] <= '9') digits++;
    if (digits == to.len)
        out->to = to;
    else if (slice_equal(to, SLICE("start")))
        out->to = start_name(START_TRIM_HORIZON);
    else if (slice_equal(to, SLICE("end")) || (moment_parse(to, &out->since_ms) && out->since_ms > 0))
        out->to = start_name(START_LATEST);
    else
        return REFUSE_VALUE(
            refusal, arena,
            "To should be start, end, a time like 2026-11-15T03:42:06Z or a sequence number, not %.*s",
            SLICE_ARG(to));
    return true;
}

/* A request that comes again with its token changes nothing. */
static bool make_move(struct mapping_change *change, struct settings *settings, struct refusal *refusal)
{
    struct arena *arena = change->call->arena;
    if (settings->is_deleting) return refuse_busy(refusal, arena, "move");
    change->state = MAPPING_UPDATING;
    if (change->move_token.len && slice_equal(change->move_token, settings->move_token)) return true;
    if (!mapping_move_check(change->mappings->trigger, settings->stream_arn, &change->move, arena, refusal))
        return false;
    settings->move_number = settings->revision + 1;
    settings->move_to = change->move.to;
    settings->move_shard = change->move.shard;
    settings->move_since_ms = change->move.since_ms;
    settings->move_token = change->move_token;
    return true;
}

static void work_move(void *room, struct rest_call *call)
{
    static const struct shape_field fields[] = {MOVE_MEMBERS(FIELD_ROW)};
    struct trigger *trigger = room;
    struct shape_node nodes[MOVE_COUNT];
    struct refusal refusal;
    struct mapping_change change = {.mappings = trigger->mappings, .call = call, .make = make_move};
    if (!lambda_decode(call, fields, MOVE_COUNT, nodes)) return;
    if (!move_read(nodes[MOVE_TO].text, &change.move, call->arena, &refusal)) {
        mapping_refuse(call, &refusal);
        return;
    }
    change.move.shard = nodes[MOVE_SHARD].text;
    change.move_token = nodes[MOVE_TOKEN].text;
    if (mapping_change_run(&change, call->parameters[0])) change_answer(&change);
}

/* ---- list ---- */

#define LIST_MEMBERS(X)                                                                                      \
    X(LIST_SOURCE, QUERY_FIELD("EventSourceArn", lambda_shape_text))                                         \
    X(LIST_FUNCTION, QUERY_FIELD("FunctionName", lambda_shape_text))                                         \
    X(LIST_MARKER, QUERY_FIELD("Marker", lambda_shape_text))                                                 \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items))
enum { LIST_MEMBERS(FIELD_INDEX) LIST_COUNT };

static void put_list(struct buf *out, struct trigger *trigger, const struct shape_node *query)
{
    struct slice source = query[LIST_SOURCE].text, function = function_of(query[LIST_FUNCTION].text);
    struct slice marker = query[LIST_MARKER].text, last = SLICE_NONE;
    int64_t count = 0, most = PAGE;
    if (query[LIST_MAX].present && query[LIST_MAX].integer < PAGE) most = query[LIST_MAX].integer;
    struct mapping_entry *entry = trigger->mappings->entries;
    buf_text(out, "{\"EventSourceMappings\":[");
    for (; entry; entry = entry->next) {
        const struct settings *settings = entry->mapping->settings;
        if (marker.len && slice_compare(settings->id, marker) <= 0) continue;
        if (source.len && !slice_equal(settings->stream_arn, source)) continue;
        if (function.len && !slice_equal(settings->function, function)) continue;
        if (count == most) break;
        if (count++) buf_byte(out, ',');
        struct mapping_view view = {settings, entry->state, entry->result};
        put_mapping(out, trigger, &view);
        last = settings->id;
    }
    buf_byte(out, ']');
    if (entry) buf_printf(out, ",\"NextMarker\":\"%.*s\"", SLICE_ARG(last));
    buf_byte(out, '}');
}

static void serve_list(void *room, struct rest_call *call)
{
    static const struct shape_field fields[] = {LIST_MEMBERS(FIELD_ROW)};
    struct trigger *trigger = room;
    struct shape_node query[LIST_COUNT];
    if (!lambda_decode(call, fields, LIST_COUNT, query)) return;
    pthread_mutex_lock(&trigger->mappings->lock);
    put_list(call->reply, trigger, query);
    pthread_mutex_unlock(&trigger->mappings->lock);
    lambda_done(call, 200);
}

static void serve_get(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct settings settings;
    struct mapping_view view;
    if (!mapping_view_of(trigger->mappings, call->parameters[0], call->arena, &settings, &view)) {
        lambda_no_resource(call);
        return;
    }
    put_mapping(call->reply, trigger, &view);
    lambda_done(call, 200);
}

/* ---- to the workers ---- */

/* These wait for the door. */
#define SERVE(name)                                                                                          \
    static void serve_##name(void *room, struct rest_call *call)                                             \
    {                                                                                                        \
        rest_workers_run(((struct trigger *)room)->workers, work_##name, room, call);                        \
    }
SERVE(create)
SERVE(update)
SERVE(delete)
SERVE(move)

const struct rest_route mapping_routes[] = {
    {"POST", "/2015-03-31/event-source-mappings", serve_create},
    {"GET", "/2015-03-31/event-source-mappings", serve_list},
    {"GET", "/2015-03-31/event-source-mappings/{id}", serve_get},
    {"PUT", "/2015-03-31/event-source-mappings/{id}", serve_update},
    {"DELETE", "/2015-03-31/event-source-mappings/{id}", serve_delete},
    {"POST", "/2015-03-31/event-source-mappings/{id}/move", serve_move},
};
const size_t mapping_route_count = sizeof mapping_routes / sizeof *mapping_routes;
