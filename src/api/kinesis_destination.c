/* Kinesis destinations: Enable, Disable, Update and Describe. They are kept and shown; nothing is sent.
 *
 * The setting "kinesis" is a list, newest first, of {arn, active, precision}; precision is absent until it is
 * set. One destination at a time is active, those before it stay in the list. */
#include "api/settings.h"

#define DESTINATIONS_MAX 16 /* those switched off longest ago are forgotten */
#define NOT_VALID        "Table is not in a valid state to enable Kinesis Streaming Destination: "

enum { DESTINATION_TABLE, DESTINATION_STREAM, DESTINATION_CONFIGURATION };
enum { CONFIGURATION_PRECISION };

static const char *const precisions[] = {"MILLISECOND", "MICROSECOND", NULL};
static const struct shape shape_precision = ENUM_SHAPE(precisions);
static const struct shape shape_kinesis_arn = STRING_SHAPE_SIZED(37, 1024);
static const struct shape_member configuration_members[] = {
    [CONFIGURATION_PRECISION] = MEMBER("ApproximateCreationDateTimePrecision", shape_precision),
};
static const struct shape shape_enable = STRUCT_SHAPE("EnableKinesisStreamingConfiguration",
                                                      configuration_members);
static const struct shape shape_update = STRUCT_SHAPE("UpdateKinesisStreamingConfiguration",
                                                      configuration_members);

static const struct shape_member switch_members[] = {
    [DESTINATION_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [DESTINATION_STREAM] = REQUIRED("StreamArn", shape_kinesis_arn),
    [DESTINATION_CONFIGURATION] = MEMBER("EnableKinesisStreamingConfiguration", shape_enable),
};
static const struct shape switch_shape = STRUCT_SHAPE("KinesisStreamingDestinationInput", switch_members);

static const struct shape_member update_members[] = {
    [DESTINATION_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [DESTINATION_STREAM] = REQUIRED("StreamArn", shape_kinesis_arn),
    [DESTINATION_CONFIGURATION] = MEMBER("UpdateKinesisStreamingConfiguration", shape_update),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateKinesisStreamingDestinationInput",
                                                      update_members);

/* ---- the list ---- */

static struct slice arn_of(const struct table_change *change)
{
    return node_member(&change->input, DESTINATION_STREAM)->text;
}

static struct map *find_destination(const struct value *list, struct slice arn)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->elements[i].type == VALUE_M && slice_equal(map_text(&list->elements[i].map, "arn"), arn))
            return &list->elements[i].map;
    return NULL;
}

/* The same list without the destination, and with a new first one. */
static void keep_first(struct table_change *change, const struct value *list, struct map first)
{
    struct arena *arena = change->verdict.arena;
    struct slice arn = map_text(&first, "arn");
    struct value *elements = arena_array(arena, struct value, list->count + 1);
    struct value kept = {.type = VALUE_L, .count = 1, .elements = elements};
    elements[0] = map_value(first);
    for (uint32_t i = 0; i < list->count && kept.count < DESTINATIONS_MAX; i++)
        if (!slice_equal(map_text(&list->elements[i].map, "arn"), arn))
            elements[kept.count++] = list->elements[i];
    setting_put(arena, change->definition, "kinesis", kept);
}

static struct map destination(struct arena *arena, struct slice arn, bool active,
                              const struct node *precision)
{
    struct map map = {0};
    map_put(arena, &map, SLICE("arn"), text_value(arn));
    map_put(arena, &map, SLICE("active"), truth_value(active));
    if (precision && precision->present)
        map_put(arena, &map, SLICE("precision"), text_value(precision->text));
    return map;
}

static const struct node *precision_of(const struct node *input)
{
    const struct node *configuration = node_member(input, DESTINATION_CONFIGURATION);
    return configuration->present ? node_member(configuration, CONFIGURATION_PRECISION) : NULL;
}

/* ---- changing it ---- */

static bool apply_enable(struct table_change *change)
{
    struct value list = setting_list(change->definition, "kinesis");
    for (uint32_t i = 0; i < list.count; i++)
        if (map_truth(&list.elements[i].map, "active"))
            return reject(&change->verdict,
                          NOT_VALID "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to "
                                    "perform ENABLE operation.");
    keep_first(change, &list,
               destination(change->verdict.arena, arn_of(change), true, precision_of(&change->input)));
    return true;
}

static bool apply_disable(struct table_change *change)
{
    struct value list = setting_list(change->definition, "kinesis");
    const struct map *known = find_destination(&list, arn_of(change));
    if (!known || !map_truth(known, "active"))
        return reject(&change->verdict,
                      NOT_VALID "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.");
    keep_first(change, &list, destination(change->verdict.arena, arn_of(change), false, NULL));
    return true;
}

static bool apply_update(struct table_change *change)
{
    struct value list = setting_list(change->definition, "kinesis");
    const struct map *known = find_destination(&list, arn_of(change));
    const struct node *precision = precision_of(&change->input);
    if (!known || !map_truth(known, "active"))
        return reject(&change->verdict,
                      NOT_VALID
                      "Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE "
                      "state. TableName: %.*s, kdsArn: %.*s",
                      SLICE_ARG(change->table_name), SLICE_ARG(arn_of(change)));
    struct slice current = map_text(known, "precision");
    if (!current.len) current = SLICE("MILLISECOND");
    if (slice_equal(current, precision->text))
        return reject(&change->verdict,
                      "Invalid Request: Precision is already set to the desired value of %.*s for tableId: "
                      "%.*s, kdsArn: %.*s",
                      SLICE_ARG(current), SLICE_ARG(change->definition->id), SLICE_ARG(arn_of(change)));
    keep_first(change, &list, destination(change->verdict.arena, arn_of(change), true, precision));
    return true;
}

static void submit(struct api_call *call, const struct node *input, bool (*apply)(struct table_change *))
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply;
    table_change_submit_named(call, input, node_member(input, DESTINATION_TABLE), change);
}

static void put_answer(struct api_call *call, const char *status, const char *configuration)
{
    const struct table_change *change = table_change_finish(call);
    if (!change) return;
    const struct node *precision = precision_of(&change->input);
    buf_text(call->reply, "{\"TableName\":");
    json_put_string(call->reply, change->definition->name);
    put_text(call->reply, "StreamArn", arn_of(change));
    put_text(call->reply, "DestinationStatus", slice_of(status));
    buf_printf(call->reply, ",\"%s\":{", configuration);
    if (precision && precision->present) {
        buf_text(call->reply, "\"ApproximateCreationDateTimePrecision\":");
        json_put_string(call->reply, precision->text);
    }
    buf_text(call->reply, "}}");
}

/* ---- the operations ---- */

static void enable_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_enable);
}

static void enable_finish(struct api_call *call)
{
    put_answer(call, "ENABLING", "EnableKinesisStreamingConfiguration");
}

const struct operation operation_EnableKinesisStreamingDestination = {
    .name = TEXT("EnableKinesisStreamingDestination"),
    .input = &switch_shape,
    .begin = enable_begin,
    .finish = enable_finish,
};

static void disable_begin(struct api_call *call, const struct node *input)
{
    if (node_member(input, DESTINATION_CONFIGURATION)->present)
        invalid(call, "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters");
    else
        submit(call, input, apply_disable);
}

static void disable_finish(struct api_call *call)
{
    put_answer(call, "DISABLING", "EnableKinesisStreamingConfiguration");
}

const struct operation operation_DisableKinesisStreamingDestination = {
    .name = TEXT("DisableKinesisStreamingDestination"),
    .input = &switch_shape,
    .begin = disable_begin,
    .finish = disable_finish,
};

static void update_begin(struct api_call *call, const struct node *input)
{
    const struct node *precision = precision_of(input);
    if (!precision || !precision->present)
        invalid(call, "Streaming destination cannot be updated with given parameters: "
                      "UpdateKinesisStreamingConfiguration cannot be null or contain only null values");
    else
        submit(call, input, apply_update);
}

static void update_finish(struct api_call *call)
{
    put_answer(call, "UPDATING", "UpdateKinesisStreamingConfiguration");
}

const struct operation operation_UpdateKinesisStreamingDestination = {
    .name = TEXT("UpdateKinesisStreamingDestination"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};

static const struct shape_member describe_members[] = {REQUIRED("TableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeKinesisStreamingDestinationInput",
                                                        describe_members);

static void put_destination(struct buf *out, const struct map *map)
{
    struct slice precision = map_text(map, "precision");
    buf_text(out, "{\"StreamArn\":");
    json_put_string(out, map_text(map, "arn"));
    put_text(out, "DestinationStatus", slice_of(map_truth(map, "active") ? "ACTIVE" : "DISABLED"));
    if (precision.len) put_text(out, "ApproximateCreationDateTimePrecision", precision);
    buf_byte(out, '}');
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    const struct table *table = find_table_to_manage(call, name);
    if (!table) return;
    struct value list = setting_list(&table->definition, "kinesis");
    buf_text(call->reply, "{\"TableName\":");
    json_put_string(call->reply, name);
    buf_text(call->reply, ",\"KinesisDataStreamDestinations\":[");
    for (uint32_t i = 0; i < list.count; i++) {
        if (i) buf_byte(call->reply, ',');
        put_destination(call->reply, &list.elements[i].map);
    }
    buf_text(call->reply, "]}");
}

const struct operation operation_DescribeKinesisStreamingDestination = {
    .name = TEXT("DescribeKinesisStreamingDestination"),
    .input = &describe_shape,
    .begin = describe_begin,
};
