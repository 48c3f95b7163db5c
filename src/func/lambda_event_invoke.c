/* How asynchronous calls are retried and where they end up: FunctionEventInvokeConfig, one for each
 * qualifier.
 */
#include "func/lambda.h"

static const struct shape shape_retries = INTEGER_BETWEEN(0, 2);
static const struct shape shape_age = INTEGER_BETWEEN(60, 21600);

#define EVENT_GET(X)                                                                                         \
    X(EVENT_NAME, NAME_FIELD)                                                                                \
    X(EVENT_QUALIFIER, QUALIFIER_FIELD)
#define EVENT_PUT(X)                                                                                         \
    EVENT_GET(X)                                                                                             \
    X(EVENT_RETRIES, FIELD("MaximumRetryAttempts", shape_retries))                                           \
    X(EVENT_AGE, FIELD("MaximumEventAgeInSeconds", shape_age))                                               \
    X(EVENT_DESTINATIONS, FIELD("DestinationConfig", lambda_shape_destinations))
MEMBERS(EVENT_PUT)

enum { ON_SUCCESS, ON_FAILURE };

static bool answer_none(const struct request *request)
{
    return lambda_error(
        request->call, 404, "ResourceNotFoundException",
        "The function %.*s doesn't have an EventInvokeConfig",
        SLICE_ARG(lambda_arn(request->func, request->arena, request->name, lambda_qualifier(request))));
}

/* ---- what is stored, and shown ---- */

static void put_config(struct buf *out, const struct request *request, const struct entry *entry,
                       const struct part *part)
{
    struct slice arn = lambda_arn(request->func, request->arena, entry->name, part_suffix(part, PART_ASYNC));
    compose(out, "%,{'FunctionArn':%s", arn);
    document_put_more(out, &part->document);
    if (!document_get(&part->document, "DestinationConfig").data)
        compose(out, ",'DestinationConfig':{'OnSuccess':{},'OnFailure':{}}");
    buf_byte(out, '}');
}

static const struct part_kind kind = {PART_ASYNC, put_config, answer_none};

static const struct shape_node *destination_node(const struct shape_node *config, int when)
{
    const struct shape_node *end = config->present ? &config->nodes[when] : NULL;
    return end && end->present && end->nodes[0].present && end->nodes[0].text.len ? &end->nodes[0] : NULL;
}

static bool check_destination(const struct request *request, int when)
{
    const struct shape_node *node = destination_node(&request->nodes[EVENT_DESTINATIONS], when);
    struct slice own, qualifier;
    if (!node) return true;
    if (slice_starts(node->text, SLICE("arn:aws:lambda:")) &&
        function_name_parse(node->text, &own, &qualifier) && slice_equal(own, request->name))
        return lambda_refuse(request->call, "You can't specify the function as a destination for itself.");
    const char *fault = destination_fault(request->func, node->text);
    return !fault || lambda_refuse(request->call, "The destination ARN %.*s is invalid. %s",
                                   SLICE_ARG(node->text), fault);
}

/* An end as it is shown: without a destination it is an empty object. */
static struct slice destination_json(const struct request *request, int when)
{
    const struct shape_node *node = destination_node(&request->nodes[EVENT_DESTINATIONS], when);
    return node ? compose_in(request->arena, "{'Destination':%s}", node->text) : SLICE("{}");
}

/* ---- PutFunctionEventInvokeConfig, UpdateFunctionEventInvokeConfig ---- */

static enum step put_step(struct request *request, struct change *change, void *context)
{
    const bool *is_update = context; /* what is not given stays */
    const struct shape_node *nodes = request->nodes;
    struct arena *arena = request->arena;
    struct slice qualifier = lambda_qualifier(request);
    struct document document = {0};
    if (!change->before || !entry_qualified(change->before, qualifier))
        return lambda_error(request->call, 404, "ResourceNotFoundException", "The function doesn't exist.");
    const struct part *old = entry_part_of(change->before, PART_ASYNC, qualifier);
    if (*is_update && !old) return answer_none(request);
    if (*is_update) document = document_copy(&old->document, arena);
    struct buf now = {0};
    seconds_put(&now, clock_now_ms(request->func->options.clock));
    document_set(&document, "LastModified", arena_take(arena, &now), arena);
    node_set(&document, "MaximumRetryAttempts", &nodes[EVENT_RETRIES], arena);
    node_set(&document, "MaximumEventAgeInSeconds", &nodes[EVENT_AGE], arena);
    if (nodes[EVENT_DESTINATIONS].present)
        document_set(&document, "DestinationConfig",
                     compose_in(arena, "{'OnSuccess':%A,'OnFailure':%A}",
                                destination_json(request, ON_SUCCESS), destination_json(request, ON_FAILURE)),
                     arena);
    request->part = arena_printf(arena, PART_ASYNC "%.*s", SLICE_ARG(qualifier));
    change_put(change, request->part, &document);
    return STEP_COMMIT;
}

static void change_config(struct request *request, bool is_update)
{
    const struct shape_node *nodes = request->nodes;
    if (!nodes[EVENT_RETRIES].present && !nodes[EVENT_AGE].present && !nodes[EVENT_DESTINATIONS].present)
        lambda_refuse(request->call,
                      "You must specify at least one of error handling or destination setting.");
    else if (check_destination(request, ON_SUCCESS) && check_destination(request, ON_FAILURE))
        lambda_change_part(request, &kind, put_step, &is_update, 200);
}

OPERATION(put_event_invoke, TARGET_QUALIFIED, EVENT_PUT)
{
    change_config(request, false);
}

OPERATION(update_event_invoke, TARGET_QUALIFIED, EVENT_PUT)
{
    change_config(request, true);
}

/* ---- GetFunctionEventInvokeConfig, DeleteFunctionEventInvokeConfig ---- */

OPERATION(get_event_invoke, TARGET_QUALIFIED, EVENT_GET)
{
    lambda_get_part(request, &kind, lambda_qualifier(request));
}

OPERATION(delete_event_invoke, TARGET_QUALIFIED, EVENT_GET)
{
    lambda_delete_part(request, &kind);
}

/* ---- ListFunctionEventInvokeConfigs ---- */

#define EVENT_LIST(X)                                                                                        \
    X(LIST_NAME, NAME_FIELD)                                                                                 \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items_50))
MEMBERS(EVENT_LIST)

OPERATION(list_event_invokes, TARGET_WHOLE | TARGET_ENTRY, EVENT_LIST)
{
    lambda_list_parts(request, "FunctionEventInvokeConfigs", PART_ASYNC, &request->nodes[LIST_MARKER],
                      &request->nodes[LIST_MAX], NULL, put_config);
}
