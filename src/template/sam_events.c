/* What starts a function, in SAM's words: each event becomes a mapping, a rule, a schedule or an API's route. */
#include "template/sam.h"

#define MAPPING_SAME                                                                                              \
    "StartingPosition StartingPositionTimestamp BatchSize MaximumBatchingWindowInSeconds MaximumRetryAttempts "   \
    "BisectBatchOnFunctionError MaximumRecordAgeInSeconds ParallelizationFactor TumblingWindowInSeconds "         \
    "FunctionResponseTypes FilterCriteria Enabled ScalingConfig MetricsConfig KmsKeyArn ProvisionedPollerConfig " \
    "Topics Queues SourceAccessConfigurations"

static struct slice event_id(struct sam *sam, const struct sam_function *function, const struct node *event)
{
    return arena_printf(sam->arena, "%.*s%.*s", SLICE_ARG(function->source->name), SLICE_ARG(event->name));
}

static void put_mapping(struct sam *sam, const struct sam_function *function, const struct node *event,
                        const struct node *properties, const char *source_member)
{
    struct node *made = sam_pick(sam, properties, MAPPING_SAME);
    const struct node *failure = node_member(node_member(properties, "DestinationConfig"), "OnFailure");
    make_set(sam->arena, made, SLICE("FunctionName"),
             function->alias.len ? function->target
                                 : make_tree(sam->arena, event, "{'Ref':%s}", function->source->name));
    if (node_member(properties, source_member))
        make_set(sam->arena, made, SLICE("EventSourceArn"), node_member(properties, source_member));
    else
        sam_note(sam, event, "the event '%.*s' has no %s", SLICE_ARG(event->name), source_member);
    if (failure)
        make_set(sam->arena, made, SLICE("DestinationConfig"),
                 make_tree(sam->arena, failure, "{'OnFailure':%n}", sam_pick(sam, failure, "Destination")));
    sam_put(sam, function->source, event_id(sam, function, event), "AWS::Lambda::EventSourceMapping", made);
}

/* State, or Enabled, which may be a function of the template: then it is told that it counts as true. */
static const struct node *state_of(struct sam *sam, const struct node *properties)
{
    const struct node *state = node_member(properties, "State"),
                      *enabled = node_member(properties, "Enabled");
    if (state || !enabled) return state;
    if (enabled->kind == JSON_OBJECT)
        sam_note(sam, enabled, "'Enabled' is no plain value, and counts as true");
    bool is_off = enabled->kind == JSON_FALSE || slice_equal(enabled->text, SLICE("false"));
    return make_text(sam->arena, enabled, is_off ? SLICE("DISABLED") : SLICE("ENABLED"));
}

static const struct node *dead_letters_of(struct sam *sam, const struct node *properties)
{
    const struct node *config = node_member(properties, "DeadLetterConfig");
    return node_member(config, "Arn") ? sam_pick(sam, config, "Arn") : NULL;
}

static void put_rule(struct sam *sam, const struct sam_function *function, const struct node *event,
                     const struct node *properties, bool is_schedule)
{
    const struct node *name = node_member(properties, "Name");
    if (!name) name = node_member(properties, "RuleName");
    struct slice id = event_id(sam, function, event);
    struct node *target = make_tree(
        sam->arena, event,
        "{'Arn':%n,'Id':%s,'Input':%n,'InputPath':%n,'RetryPolicy':%n,'DeadLetterConfig':%n}",
        function->target, sam_id(sam, id, "LambdaTarget"), node_member(properties, "Input"),
        node_member(properties, "InputPath"), node_member(properties, "RetryPolicy"),
        dead_letters_of(sam, properties));
    sam_put(
        sam, function->source, id, "AWS::Events::Rule",
        make_tree(sam->arena, event,
                  "{'Name':%n,'Description':%n,'ScheduleExpression':%n,'EventPattern':%n,'EventBusName':%n,"
                  "'State':%n,'Targets':[%n]}",
                  name, node_member(properties, "Description"),
                  is_schedule ? node_member(properties, "Schedule") : NULL,
                  is_schedule ? NULL : node_member(properties, "Pattern"),
                  node_member(properties, "EventBusName"), state_of(sam, properties), target));
}

static void put_schedule(struct sam *sam, const struct sam_function *function, const struct node *event,
                         const struct node *properties)
{
    struct slice id = event_id(sam, function, event);
    struct node *made = sam_pick(
        sam, properties,
        "Name Description GroupName ScheduleExpression ScheduleExpressionTimezone StartDate "
        "EndDate FlexibleTimeWindow KmsKeyArn");
    const struct node *role = node_member(properties, "RoleArn");
    if (!role) {
        struct slice role_id = sam_id(sam, id, "Role");
        sam_put(sam, function->source, role_id, "AWS::IAM::Role", NULL);
        role = make_tree(sam->arena, event, "{'Fn::GetAtt':[%s,'Arn']}", role_id);
    }
    if (!node_member(made, "Name"))
        make_set(sam->arena, made, SLICE("Name"), make_text(sam->arena, event, id));
    if (!node_member(made, "FlexibleTimeWindow"))
        make_set(sam->arena, made, SLICE("FlexibleTimeWindow"),
                 make_tree(sam->arena, event, "{'Mode':'OFF'}"));
    if (state_of(sam, properties)) make_set(sam->arena, made, SLICE("State"), state_of(sam, properties));
    make_set(sam->arena, made, SLICE("Target"),
             make_tree(sam->arena, event,
                       "{'Arn':%n,'RoleArn':%n,'Input':%n,'RetryPolicy':%n,'DeadLetterConfig':%n}",
                       function->target, role, node_member(properties, "Input"),
                       node_member(properties, "RetryPolicy"), dead_letters_of(sam, properties)));
    sam_put(sam, function->source, id, "AWS::Scheduler::Schedule", made);
}

void sam_events(struct sam *sam, const struct sam_function *function)
{
    const struct node *events = node_member(function->properties, "Events");
    if (!events || events->kind != JSON_OBJECT) return;
    for (const struct node *event = events->first; event; event = event->next) {
        const struct node *properties = node_member(event, "Properties");
        struct slice type = node_text(event, "Type");
        if (!properties) properties = make_node(sam->arena, JSON_OBJECT, event);
        if (slice_equal(type, SLICE("DynamoDB")) || slice_equal(type, SLICE("Kinesis")) ||
            slice_equal(type, SLICE("MSK")))
            put_mapping(sam, function, event, properties, "Stream");
        else if (slice_equal(type, SLICE("SQS")))
            put_mapping(sam, function, event, properties, "Queue");
        else if (slice_equal(type, SLICE("Schedule")))
            put_rule(sam, function, event, properties, true);
        else if (slice_equal(type, SLICE("EventBridgeRule")) || slice_equal(type, SLICE("CloudWatchEvent")))
            put_rule(sam, function, event, properties, false);
        else if (slice_equal(type, SLICE("ScheduleV2")))
            put_schedule(sam, function, event, properties);
        else if (slice_equal(type, SLICE("Api")) || slice_equal(type, SLICE("HttpApi")))
            sam_route(sam, function, event, slice_equal(type, SLICE("Api")));
        else
            sam_note(sam, event,
                     "the event '%.*s' of the function '%.*s' is of the type '%.*s', which is not known",
                     SLICE_ARG(event->name), SLICE_ARG(function->source->name), SLICE_ARG(type));
    }
}
