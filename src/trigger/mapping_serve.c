/* Lambda's operations on event source mappings. Reads are answered from memory, changes go
 * to the workers, since they wait for the door. */
#include "base/limits.h"
#include "trigger/mapping.h"

#define PAGE 100 /* mappings in one reply, at most: the service's */

/* ---- errors ---- */

void mapping_refuse_missing(struct rest_call *call)
{
    struct refusal refusal = {404, "ResourceNotFoundException",
                              SLICE("The resource you requested does not exist.")};
    mapping_refuse(call, &refusal);
}

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
        settings_copy(settings, &entry->settings, arena);
        view->settings = settings;
        view->state = entry->state;
        view->result = arena_printf(arena, "%s", entry->result).data;
    }
    pthread_mutex_unlock(&mappings->lock);
    return entry != NULL;
}

static void answer_view(struct trigger *trigger, struct rest_call *call, struct slice id, int status)
{
    struct settings settings;
    struct mapping_view view;
    if (!mapping_view_of(trigger->mappings, id, call->arena, &settings, &view)) {
        mapping_refuse_missing(call);
        return;
    }
    put_mapping(call->reply, trigger, &view);
    mapping_answer(call, status);
}

/* ---- functions ---- */

/* What func_invoke takes, of the ARN: name or name:qualifier. */
static struct slice function_of_arn(struct slice arn)
{
    const char *mark = arn.len ? memmem(arn.data, arn.len, ":function:", 10) : NULL;
    return mark ? slice_from(arn, (size_t)(mark + 10 - arn.data)) : arn;
}

static bool settle_function(struct mappings *mappings, struct slice function, struct arena *arena,
                            struct settings *settings, struct refusal *refusal)
{
    if (!function.data) return true;
    if (!mappings->world.resolve(mappings->trigger, function, arena, &settings->function_arn))
        return REFUSE_VALUE(refusal, arena, "Function does not exist");
    settings->function = function_of_arn(settings->function_arn);
    return true;
}

static bool check_destination(struct mappings *mappings, const struct settings *settings, struct arena *arena,
                              struct refusal *refusal)
{
    if (!settings->on_failure.len) return true;
    const char *fault = mappings->world.destination_fault(mappings->trigger, settings->on_failure);
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

static struct slice new_id(struct mappings *mappings, struct arena *arena)
{
    uint64_t high = random_next(&mappings->random), low = random_next(&mappings->random);
    char *text = arena_alloc(arena, UUID_BYTES);
    uuid_put(text, high, low);
    return slice_of(text);
}

static bool create(struct mappings *mappings, const struct mapping_request *request, struct arena *arena,
                   struct settings *settings, struct refusal *refusal)
{
    struct trigger *trigger = mappings->trigger;
    settings_defaults(settings);
    mapping_request_apply(request, settings);
    settings->tags = request->wanted.tags;
    settings->id = new_id(mappings, arena);
    settings->revision = 1;
    settings->created_ms = settings->modified_ms = clock_now_ms(trigger->options.clock);
    if (!settle_function(mappings, request->function, arena, settings, refusal) ||
        !mapping_source_find(trigger, request->source, arena, &settings->stream_arn, refusal) ||
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
    bool good = mapping_request_parse(call->body, true, call->arena, &request, &refusal);
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
    mapping_answer(call, 202);
}

/* ---- changes ---- */

/* True when it is in memory, as it was when the table was last looked at. */
static bool settings_known(struct mapping_change *change, struct slice id, struct settings *out)
{
    struct mapping_view view;
    return mapping_view_of(change->mappings, id, change->call->arena, out, &view);
}

static bool change_store(struct mapping_change *change, struct slice id, struct refusal *refusal,
                         bool *is_missing)
{
    struct mappings *mappings = change->mappings;
    struct arena *arena = change->call->arena;
    struct settings *settings = &change->settings;
    *is_missing = !settings_known(change, id, settings);
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
        mapping_refuse_missing(change->call);
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
    mapping_answer(change->call, 202);
}

/* ---- update ---- */

static bool make_update(struct mapping_change *change, struct settings *settings, struct refusal *refusal)
{
    struct arena *arena = change->call->arena;
    bool was_enabled = settings->enabled;
    if (settings->is_deleting) return refuse_busy(refusal, arena, "update");
    mapping_request_apply(change->request, settings);
    if (!settle_function(change->mappings, change->request->function, arena, settings, refusal)) return false;
    if (change->request->given[GIVEN_ON_FAILURE] && !check_destination(change->mappings, settings, arena, refusal))
        return false;
    if (change->request->function.data && is_taken(change->mappings, settings, arena, refusal)) return false;
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
    if (!mapping_request_parse(call->body, false, call->arena, &request, &refusal)) {
        mapping_refuse(call, &refusal);
        return;
    }
    /* Where a mapping begins to read is settled once. */
    request.given[GIVEN_START] = false;
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

/* ---- list ---- */

struct list_query {
    struct slice source, function, marker;
    unsigned long long limit;
};

static bool read_list_query(struct rest_call *call, struct list_query *out, struct refusal *refusal)
{
    struct slice limit = rest_query(call, "MaxItems");
    out->source = rest_query(call, "EventSourceArn");
    out->function = rest_query(call, "FunctionName");
    out->marker = rest_query(call, "Marker");
    out->limit = PAGE;
    if (!limit.data) return true;
    if (!slice_to_u64(limit, 10000, &out->limit) || out->limit == 0)
        return decline(
            refusal, call->arena, 400, "ValidationException",
            "1 validation error detected: Value '%.*s' at 'maxItems' failed to satisfy constraint: "
            "Member must have value between 1 and 10000",
            SLICE_ARG(limit));
    if (out->limit > PAGE) out->limit = PAGE;
    return true;
}

/* A name, a name with qualifier, or any form of ARN. */
static struct slice function_of_text(struct slice text)
{
    const char *mark = text.len ? memmem(text.data, text.len, "function:", 9) : NULL;
    return mark ? slice_from(text, (size_t)(mark + 9 - text.data)) : text;
}

static bool is_listed(const struct settings *settings, const struct list_query *query)
{
    if (query->source.len && !slice_equal(settings->stream_arn, query->source)) return false;
    return !query->function.len || slice_equal(settings->function, function_of_text(query->function));
}

static void put_list(struct buf *out, struct trigger *trigger, const struct list_query *query)
{
    unsigned long long count = 0;
    struct slice last = SLICE_NONE;
    struct mapping_entry *entry = trigger->mappings->entries;
    buf_text(out, "{\"EventSourceMappings\":[");
    for (; entry; entry = entry->next) {
        if (query->marker.len && slice_compare(entry->settings.id, query->marker) <= 0) continue;
        if (!is_listed(&entry->settings, query)) continue;
        if (count == query->limit) break;
        if (count++) buf_byte(out, ',');
        struct mapping_view view = {&entry->settings, entry->state, entry->result};
        put_mapping(out, trigger, &view);
        last = entry->settings.id;
    }
    buf_byte(out, ']');
    if (entry) buf_printf(out, ",\"NextMarker\":\"%.*s\"", SLICE_ARG(last));
    buf_byte(out, '}');
}

static void serve_list(void *room, struct rest_call *call)
{
    struct trigger *trigger = room;
    struct list_query query;
    struct refusal refusal;
    if (!read_list_query(call, &query, &refusal)) {
        mapping_refuse(call, &refusal);
        return;
    }
    pthread_mutex_lock(&trigger->mappings->lock);
    put_list(call->reply, trigger, &query);
    pthread_mutex_unlock(&trigger->mappings->lock);
    mapping_answer(call, 200);
}

static void serve_get(void *room, struct rest_call *call)
{
    answer_view(room, call, call->parameters[0], 200);
}

/* ---- to the workers ---- */

static void serve_create(void *room, struct rest_call *call)
{
    rest_workers_run(((struct trigger *)room)->workers, work_create, room, call);
}

static void serve_update(void *room, struct rest_call *call)
{
    rest_workers_run(((struct trigger *)room)->workers, work_update, room, call);
}

static void serve_delete(void *room, struct rest_call *call)
{
    rest_workers_run(((struct trigger *)room)->workers, work_delete, room, call);
}

const struct rest_route mapping_routes[] = {
    {"POST", "/2015-03-31/event-source-mappings", serve_create},
    {"GET", "/2015-03-31/event-source-mappings", serve_list},
    {"GET", "/2015-03-31/event-source-mappings/{id}", serve_get},
    {"PUT", "/2015-03-31/event-source-mappings/{id}", serve_update},
    {"DELETE", "/2015-03-31/event-source-mappings/{id}", serve_delete},
};
const size_t mapping_route_count = sizeof mapping_routes / sizeof *mapping_routes;
