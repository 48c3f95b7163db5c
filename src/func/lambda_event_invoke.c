/* How asynchronous calls are retried and where they end up: FunctionEventInvokeConfig, one for each
 * qualifier.
 */
#include "func/lambda.h"

static const struct shape shape_retries = INTEGER_BETWEEN(0, 2);
static const struct shape shape_age = INTEGER_BETWEEN(60, 21600);

enum { EVENT_NAME, EVENT_QUALIFIER, EVENT_RETRIES, EVENT_AGE, EVENT_DESTINATIONS, EVENT_MEMBERS };

static const struct field event_fields[] = {
    [EVENT_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [EVENT_QUALIFIER] = QUERY_FIELD("Qualifier", lambda_shape_qualifier),
    [EVENT_RETRIES] = FIELD("MaximumRetryAttempts", shape_retries),
    [EVENT_AGE] = FIELD("MaximumEventAgeInSeconds", shape_age),
    [EVENT_DESTINATIONS] = FIELD("DestinationConfig", lambda_shape_destinations),
};

enum { ON_SUCCESS, ON_FAILURE };

struct eventing {
    struct func *func;
    struct slice qualifier;
    const struct node *nodes;
    bool is_update; /* what is not given stays */
};

static bool refuse(struct rest_call *call, const char *message)
{
    lambda_error(call, 400, "InvalidParameterValueException", "%s", message);
    return false;
}

static struct slice or_latest(struct slice qualifier)
{
    return qualifier.len ? qualifier : SLICE(PART_LATEST);
}

static void answer_none(struct func *func, struct rest_call *call, struct slice name, struct slice qualifier)
{
    lambda_error(call, 404, "ResourceNotFoundException",
                 "The function %.*s doesn't have an EventInvokeConfig",
                 SLICE_ARG(lambda_arn(func, call->arena, name, qualifier)));
}

/* ---- what is stored, and shown ---- */

static void put_config(struct buf *out, struct func *func, struct slice name, const struct part *part,
                       struct arena *arena)
{
    struct document shown = document_copy(&part->document, arena);
    if (!document_get(&shown, "DestinationConfig").data)
        document_set(&shown, "DestinationConfig", SLICE("{\"OnSuccess\":{},\"OnFailure\":{}}"), arena);
    buf_text(out, "{\"FunctionArn\":");
    json_put_string(out, lambda_arn(func, arena, name, part_suffix(part, PART_ASYNC)));
    document_put_more(out, &shown);
    buf_byte(out, '}');
}

static const struct node *destination_node(const struct node *config, int when)
{
    const struct node *end = config->present ? &config->nodes[when] : NULL;
    return end && end->present && end->nodes[0].present && end->nodes[0].text.len ? &end->nodes[0] : NULL;
}

static bool check_destination(struct func *func, struct rest_call *call, struct slice name,
                              const struct node *node)
{
    struct slice own, qualifier;
    if (!node) return true;
    if (slice_starts(node->text, SLICE("arn:aws:lambda:")) &&
        function_name_parse(node->text, &own, &qualifier) && slice_equal(own, name))
        return refuse(call, "You can't specify the function as a destination for itself.");
    const char *fault = destination_fault(func, node->text);
    if (!fault) return true;
    lambda_error(call, 400, "InvalidParameterValueException", "The destination ARN %.*s is invalid. %s",
                 SLICE_ARG(node->text), fault);
    return false;
}

/* Both ends, as they are shown: an end without a destination is an empty object. */
static struct slice destinations_json(const struct node *config, struct arena *arena)
{
    struct buf json = {0};
    for (int when = ON_SUCCESS; when <= ON_FAILURE; when++) {
        const struct node *node = destination_node(config, when);
        buf_slice(&json, when == ON_SUCCESS ? SLICE("{\"OnSuccess\":{") : SLICE(",\"OnFailure\":{"));
        if (node) {
            buf_text(&json, "\"Destination\":");
            json_put_string(&json, node->text);
        }
        buf_byte(&json, '}');
    }
    buf_byte(&json, '}');
    struct slice copy = arena_copy(arena, buf_view(&json));
    buf_free(&json);
    return copy;
}

static struct document make_config(struct rest_call *call, const struct eventing *eventing,
                                   const struct part *old)
{
    const struct node *nodes = eventing->nodes;
    struct document document = {0};
    if (old && eventing->is_update) document = document_copy(&old->document, call->arena);
    int64_t now = clock_now_ms(eventing->func->options.clock);
    document_set(&document, "LastModified",
                 arena_printf(call->arena, "%lld.%03d", (long long)(now / 1000), (int)(now % 1000)),
                 call->arena);
    for (int i = EVENT_RETRIES; i <= EVENT_AGE; i++)
        if (nodes[i].present)
            document_set(&document, event_fields[i].name, node_json(&nodes[i], call->arena), call->arena);
    if (nodes[EVENT_DESTINATIONS].present)
        document_set(&document, "DestinationConfig",
                     destinations_json(&nodes[EVENT_DESTINATIONS], call->arena), call->arena);
    return document;
}

/* ---- PutFunctionEventInvokeConfig, UpdateFunctionEventInvokeConfig ---- */

static enum step put_step(struct rest_call *call, struct change *change, void *context)
{
    const struct eventing *eventing = context;
    if (!change->before || !entry_qualified(change->before, eventing->qualifier)) {
        lambda_error(call, 404, "ResourceNotFoundException", "The function doesn't exist.");
        return STEP_ANSWERED;
    }
    const struct part *old = entry_part_of(change->before, PART_ASYNC, eventing->qualifier);
    if (eventing->is_update && !old) {
        answer_none(eventing->func, call, change->name, eventing->qualifier);
        return STEP_ANSWERED;
    }
    struct document document = make_config(call, eventing, old);
    change_put(change, arena_printf(call->arena, PART_ASYNC "%.*s", SLICE_ARG(eventing->qualifier)),
               &document);
    return STEP_COMMIT;
}

static bool check_settings(struct func *func, struct rest_call *call, struct slice name,
                           const struct node *nodes)
{
    const struct node *config = &nodes[EVENT_DESTINATIONS];
    if (!nodes[EVENT_RETRIES].present && !nodes[EVENT_AGE].present && !config->present)
        return refuse(call, "You must specify at least one of error handling or destination setting.");
    return check_destination(func, call, name, destination_node(config, ON_SUCCESS)) &&
           check_destination(func, call, name, destination_node(config, ON_FAILURE));
}

static void event_change(struct func *func, struct rest_call *call, bool is_update)
{
    struct node nodes[EVENT_MEMBERS];
    struct target target;
    struct change change;
    if (!lambda_decode(call, event_fields, FIELD_COUNT(event_fields), nodes) ||
        !lambda_target(func, call, &nodes[EVENT_NAME], &nodes[EVENT_QUALIFIER], &target) ||
        !check_settings(func, call, target.name, nodes))
        return;
    struct eventing eventing = {func, or_latest(target.qualifier), nodes, is_update};
    if (!lambda_change(func, call, &target, put_step, &eventing, &change)) return;
    const struct part *part = change.after ? entry_part_of(change.after, PART_ASYNC, eventing.qualifier)
                                           : NULL;
    if (part) put_config(call->reply, func, target.name, part, call->arena);
    bool shown = part != NULL;
    change_free(&change);
    if (shown)
        lambda_done(call, 200);
    else
        answer_none(func, call, target.name, eventing.qualifier); /* deleted by somebody else */
}

void lambda_put_event_invoke(struct func *func, struct rest_call *call)
{
    event_change(func, call, false);
}

void lambda_update_event_invoke(struct func *func, struct rest_call *call)
{
    event_change(func, call, true);
}

/* ---- GetFunctionEventInvokeConfig, DeleteFunctionEventInvokeConfig ---- */

void lambda_get_event_invoke(struct func *func, struct rest_call *call)
{
    struct node nodes[EVENT_MEMBERS];
    struct target target;
    bool failed;
    if (!lambda_decode(call, event_fields, EVENT_RETRIES, nodes) ||
        !lambda_target(func, call, &nodes[EVENT_NAME], &nodes[EVENT_QUALIFIER], &target))
        return;
    struct slice qualifier = or_latest(target.qualifier);
    struct entry *entry = registry_look(func->registry, target.name, &failed);
    const struct part *part = entry ? entry_part_of(entry, PART_ASYNC, qualifier) : NULL;
    if (part) put_config(call->reply, func, target.name, part, call->arena);
    bool shown = part != NULL;
    entry_release(entry);
    if (shown)
        lambda_done(call, 200);
    else if (failed)
        lambda_unavailable(call);
    else
        answer_none(func, call, target.name, qualifier);
}

static enum step delete_step(struct rest_call *call, struct change *change, void *context)
{
    const struct eventing *eventing = context;
    const struct part *part = change->before ? entry_part_of(change->before, PART_ASYNC, eventing->qualifier)
                                             : NULL;
    if (part) {
        change_delete(change, part->name);
        return STEP_COMMIT;
    }
    answer_none(eventing->func, call, change->name, eventing->qualifier);
    return STEP_ANSWERED;
}

void lambda_delete_event_invoke(struct func *func, struct rest_call *call)
{
    struct node nodes[EVENT_MEMBERS];
    struct target target;
    struct change change;
    if (!lambda_decode(call, event_fields, EVENT_RETRIES, nodes) ||
        !lambda_target(func, call, &nodes[EVENT_NAME], &nodes[EVENT_QUALIFIER], &target))
        return;
    struct eventing eventing = {.func = func, .qualifier = or_latest(target.qualifier)};
    if (!lambda_change(func, call, &target, delete_step, &eventing, &change)) return;
    change_free(&change);
    lambda_done(call, 204);
}

/* ---- ListFunctionEventInvokeConfigs ---- */

enum { LIST_NAME, LIST_MARKER, LIST_MAX, LIST_MEMBERS };

static const struct field list_fields[] = {
    [LIST_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [LIST_MARKER] = QUERY_FIELD("Marker", lambda_shape_text),
    [LIST_MAX] = QUERY_FIELD("MaxItems", lambda_shape_max_items_50),
};

void lambda_list_event_invokes(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    struct target target;
    struct slice last = SLICE_NONE;
    int64_t shown = 0;
    bool has_more = false;
    if (!lambda_decode(call, list_fields, FIELD_COUNT(list_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[LIST_NAME], &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    int64_t max = nodes[LIST_MAX].present ? nodes[LIST_MAX].integer : 50;
    buf_text(call->reply, "{\"FunctionEventInvokeConfigs\":[");
    for (uint32_t i = 0; i < entry->count && !has_more; i++) {
        struct slice qualifier = part_suffix(&entry->parts[i], PART_ASYNC);
        if (!qualifier.data) continue;
        if (nodes[LIST_MARKER].present && slice_compare(qualifier, nodes[LIST_MARKER].text) <= 0) continue;
        has_more = shown == max;
        if (has_more) break;
        if (shown++) buf_byte(call->reply, ',');
        put_config(call->reply, func, target.name, &entry->parts[i], call->arena);
        last = qualifier;
    }
    buf_byte(call->reply, ']');
    if (has_more) {
        buf_text(call->reply, ",\"NextMarker\":");
        json_put_string(call->reply, last);
    }
    buf_byte(call->reply, '}');
    entry_release(entry);
    lambda_done(call, 200);
}
