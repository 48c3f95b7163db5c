/* The body of CreateEventSourceMapping and UpdateEventSourceMapping: read, checked, refused in Lambda's
 * words.
 *
 * Pure: nothing outside the text decides. The order is the service's: JSON and types, then all constraints of
 * the model in one message, then what does not go together. Members that Lambda has for other kinds of
 * sources are refused by name; members that it does not have at all are ignored, as it does. */
#include "base/limits.h"
#include "base/raw.h"
#include "trigger/mapping.h"

#define LIST_OF(shape) .kind = SHAPE_LIST, .of = &(shape)

CHOICE_SHAPE(shape_start, "LATEST", "AT_TIMESTAMP", "TRIM_HORIZON");
CHOICE_SHAPE(shape_response_type, "ReportBatchItemFailures");
CHOICE_SHAPE(shape_metric, "EventCount");
static const struct shape shape_timestamp = {.kind = SHAPE_DOUBLE};
static const struct shape shape_response_types = {LIST_OF(shape_response_type), .has_max = true, .max = 1};
static const struct shape shape_metrics = {LIST_OF(shape_metric), .has_max = true, .max = 1};
STRUCT_SHAPE(shape_metrics_config, FIELD("Metrics", shape_metrics));
static const struct shape shape_pattern = {TEXT_UP_TO(LIMIT_FILTER_CHARACTERS)};
STRUCT_SHAPE(shape_filter, FIELD("Pattern", shape_pattern));
static const struct shape shape_filters = {LIST_OF(shape_filter)};
STRUCT_SHAPE(shape_criteria, FIELD("Filters", shape_filters));

static const struct shape number_shapes[SETTING_NUMBERS] = {
#define X(name, member, attribute, min, max, otherwise) INTEGER_BETWEEN(min, max),
    MAPPING_NUMBERS(X)
#undef X
};

#define NUMBER_FIELD(name, member, ...) FIELD(member, number_shapes[SETTING_##name]),
static const struct shape_field create_fields[] = {MAPPING_NUMBERS(NUMBER_FIELD)
                                                       MAPPING_MEMBERS(FIELD_ROW, REQUIRED)};
static const struct shape_field update_fields[] = {MAPPING_NUMBERS(NUMBER_FIELD)
                                                       MAPPING_MEMBERS(FIELD_ROW, FIELD)};

/* Settings of queues, brokers and other databases. */
static const char *const foreign[] = {
    "Topics",
    "Queues",
    "SourceAccessConfigurations",
    "SelfManagedEventSource",
    "AmazonManagedKafkaEventSourceConfig",
    "SelfManagedKafkaEventSourceConfig",
    "ScalingConfig",
    "DocumentDBEventSourceConfig",
    "ProvisionedPollerConfig",
};
#define FOREIGN (sizeof foreign / sizeof *foreign)

/* DestinationConfig's members, as the shape has them. */
enum { ON_SUCCESS, ON_FAILURE };

/* A member of an object that was given; NULL: none was. */
static const struct shape_node *member_of(const struct shape_node *object, int member)
{
    return object->present && object->nodes[member].present ? &object->nodes[member] : NULL;
}

bool mapping_request_has_destination(const struct mapping_request *request)
{
    return member_of(&request->nodes[GIVEN_DESTINATIONS], ON_FAILURE) != NULL;
}

/* ---- what goes together ---- */

static bool check_start(const struct shape_node *nodes, struct arena *arena, struct refusal *refusal)
{
    if (!nodes[GIVEN_START].present)
        return REFUSE_VALUE(refusal, arena,
                            "1 validation error detected: Value null at 'startingPosition' failed to satisfy "
                            "constraint: Member must not be null.");
    if (slice_equal(nodes[GIVEN_START].text, SLICE("AT_TIMESTAMP")))
        return REFUSE_VALUE(refusal, arena, "Unsupported starting position for arn type: %.*s",
                            SLICE_ARG(nodes[GIVEN_SOURCE].text));
    if (nodes[GIVEN_TIMESTAMP].present)
        return REFUSE_VALUE(refusal, arena, "Timestamp only valid with StartingPosition AT_TIMESTAMP");
    return true;
}

/* Each filter must compile; one without a pattern would match nothing that anybody can mean. */
static bool check_filters(const struct shape_node *criteria, struct arena *arena, struct refusal *refusal)
{
    const struct shape_node *filters = member_of(criteria, 0);
    char error[256];
    if (filters && filters->count > LIMIT_FILTERS)
        return REFUSE_VALUE(refusal, arena,
                            "Exceeded the maximum number of filters for an event source mapping: %d.",
                            LIMIT_FILTERS);
    for (uint32_t i = 0; filters && i < filters->count; i++) {
        struct arena scratch = {0};
        struct slice pattern = filters->nodes[i].nodes[0].text;
        bool good = pattern.len && pattern_compile(&scratch, pattern, error, sizeof error);
        arena_free(&scratch);
        if (!pattern.len) return REFUSE_VALUE(refusal, arena, "Invalid filter pattern definition.");
        if (!good) return REFUSE_VALUE(refusal, arena, "Invalid filter pattern definition. %s", error);
    }
    return true;
}

bool mapping_request_parse(struct rest_call *call, bool is_create, struct mapping_request *out,
                           struct refusal *refusal)
{
    struct shape_node *nodes = out->nodes;
    struct arena *arena = call->arena;
    struct slice raws[FOREIGN] = {{0}};
    refusal->status = 400;
    refusal->type = shape_read(call, is_create ? create_fields : update_fields, GIVEN_MEMBERS, nodes,
                               &refusal->message);
    if (refusal->type) return false;
    raw_members(arena, call->body, foreign, raws, FOREIGN);
    for (size_t i = 0; i < FOREIGN; i++)
        if (raws[i].data && raw_kind(raws[i]) != JSON_NULL)
            return REFUSE_VALUE(refusal, arena,
                                "Unsupported %s parameter for given event source mapping type.", foreign[i]);
    if (member_of(&nodes[GIVEN_DESTINATIONS], ON_SUCCESS))
        return REFUSE_VALUE(refusal, arena,
                            "Unsupported DestinationConfig parameter for given event source mapping type.");
    if (is_create && !nodes[GIVEN_SOURCE].text.len)
        return REFUSE_VALUE(refusal, arena, "Unrecognized event source.");
    if (is_create && !check_start(nodes, arena, refusal)) return false;
    int64_t age = nodes[SETTING_RECORD_AGE].integer;
    if (nodes[SETTING_RECORD_AGE].present && age >= 0 && age < 60)
        return REFUSE_VALUE(
            refusal, arena,
            "Invalid request provided: MaximumRecordAgeInSeconds must be -1 or between 60 and "
            "604800.");
    if (nodes[GIVEN_TAGS].count > LIMIT_TAGS)
        return REFUSE_VALUE(refusal, arena, "Number of tags exceeds resource tag limit.");
    return check_filters(&nodes[GIVEN_FILTERS], arena, refusal);
}

void mapping_request_apply(const struct mapping_request *request, struct arena *arena,
                           struct settings *settings)
{
    const struct shape_node *nodes = request->nodes, *destination;
    for (int i = 0; i < SETTING_NUMBERS; i++)
        if (nodes[i].present) settings->numbers[i] = nodes[i].integer;
    if (nodes[GIVEN_START].present)
        settings->start = slice_equal(nodes[GIVEN_START].text, SLICE("LATEST")) ? START_LATEST
                                                                                : START_TRIM_HORIZON;
    if (nodes[GIVEN_ENABLED].present) settings->enabled = nodes[GIVEN_ENABLED].truth;
    if (nodes[GIVEN_BISECTS].present) settings->bisects = nodes[GIVEN_BISECTS].truth;
    if (nodes[GIVEN_RESPONSE_TYPES].present)
        settings->reports_failures = nodes[GIVEN_RESPONSE_TYPES].count > 0;
    if (nodes[GIVEN_METRICS].present) settings->counts_events = nodes[GIVEN_METRICS].nodes[0].count > 0;
    if (nodes[GIVEN_KMS_KEY].present) settings->kms_key = nodes[GIVEN_KMS_KEY].text;
    if ((destination = member_of(&nodes[GIVEN_DESTINATIONS], ON_FAILURE)))
        settings->on_failure = destination->nodes[0].text;
    if (!nodes[GIVEN_FILTERS].present) return;
    const struct shape_node *filters = &nodes[GIVEN_FILTERS].nodes[0];
    settings->filters = arena_array(arena, struct slice, filters->count);
    settings->filter_count = filters->count;
    for (uint32_t i = 0; i < filters->count; i++) settings->filters[i] = filters->nodes[i].nodes[0].text;
}
