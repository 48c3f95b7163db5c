/* Application Auto Scaling, as far as it is about tables: scalable targets and scaling policies are checked, kept with
 * their table and described back, so that templates and tools which set them up work. Nothing scales.
 *
 * In the table's definition stand two settings: "scalableTargets", by "RESOURCE DIMENSION", and "scalingPolicies", by
 * "RESOURCE DIMENSION NAME". They go with the table. What the service says when something is wrong is not recorded,
 * but for its exceptions. */
#include <math.h>

#include "api/auto_scaling.h"
#include "base/hash.h"

#define TARGETS          SCALABLE_TARGETS
#define POLICIES         "scalingPolicies"
#define RESULTS_DEFAULT  50
#define NAMES_AT_ONCE    100
#define UTILIZATION_MIN  20 /* in percent, as the service documents for tables */
#define UTILIZATION_MAX  90
#define SERVICE_ROLE     "role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
#define SERVICE_ROLE_OWN "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"

/* ---- shapes ---- */

/* Every request about one target begins with these. */
enum { SCALE_SERVICE, SCALE_RESOURCE, SCALE_DIMENSION, SCALE_OWN };

static const char *const services[] = {"dynamodb", NULL};
static const char *const dimensions[] = {
    "dynamodb:table:ReadCapacityUnits", "dynamodb:table:WriteCapacityUnits",
    "dynamodb:index:ReadCapacityUnits", "dynamodb:index:WriteCapacityUnits", NULL};
static const struct shape shape_service = ENUM_SHAPE(services), shape_dimension = ENUM_SHAPE(dimensions);
static const struct shape shape_resource = STRING_SHAPE_SIZED(1, 1600);
static const struct shape shape_capacity = {.kind = SHAPE_INT};
static const struct shape shape_number = {.kind = SHAPE_DOUBLE};
static const struct shape shape_policy_name = STRING_SHAPE_SIZED(1, 256);
static const struct shape shape_resources = {
    .kind = SHAPE_LIST, .of = &shape_resource, .has_max = true, .max = 50};

#define TARGET_MEMBERS                                                                                       \
    [SCALE_SERVICE] = REQUIRED("ServiceNamespace", shape_service),                                           \
    [SCALE_RESOURCE] = REQUIRED("ResourceId", shape_resource),                                               \
    [SCALE_DIMENSION] = REQUIRED("ScalableDimension", shape_dimension)

enum { SUSPENDED_IN, SUSPENDED_OUT, SUSPENDED_SCHEDULED, SUSPENDED_COUNT };
static const struct shape_member suspended_members[] = {
    [SUSPENDED_IN] = MEMBER("DynamicScalingInSuspended", shape_bool),
    [SUSPENDED_OUT] = MEMBER("DynamicScalingOutSuspended", shape_bool),
    [SUSPENDED_SCHEDULED] = MEMBER("ScheduledScalingSuspended", shape_bool),
};
static const struct shape shape_suspended = STRUCT_SHAPE("SuspendedState", suspended_members);

enum { REGISTER_MIN = SCALE_OWN, REGISTER_MAX, REGISTER_ROLE, REGISTER_SUSPENDED, REGISTER_TAGS };
static const struct shape_member register_members[] = {
    TARGET_MEMBERS,
    [REGISTER_MIN] = MEMBER("MinCapacity", shape_capacity),
    [REGISTER_MAX] = MEMBER("MaxCapacity", shape_capacity),
    [REGISTER_ROLE] = MEMBER("RoleARN", shape_resource),
    [REGISTER_SUSPENDED] = MEMBER("SuspendedState", shape_suspended),
    [REGISTER_TAGS] = MEMBER("Tags", shape_scaling_tags),
};
static const struct shape register_shape = STRUCT_SHAPE("RegisterScalableTargetRequest", register_members);

static const struct shape_member deregister_members[] = {TARGET_MEMBERS};
static const struct shape deregister_shape = STRUCT_SHAPE("DeregisterScalableTargetRequest",
                                                          deregister_members);

static const char *const metrics[] = {"DynamoDBReadCapacityUtilization", "DynamoDBWriteCapacityUtilization",
                                      NULL};
static const char *const statistics[] = {"Average", "Minimum", "Maximum", "SampleCount", "Sum", NULL};
static const struct shape shape_metric = ENUM_SHAPE(metrics), shape_statistic = ENUM_SHAPE(statistics);
static const struct shape_member predefined_members[] = {
    REQUIRED("PredefinedMetricType", shape_metric),
    MEMBER("ResourceLabel", shape_string),
};
static const struct shape shape_predefined = STRUCT_SHAPE("PredefinedMetricSpecification",
                                                          predefined_members);
static const struct shape_member metric_dimension_members[] = {
    REQUIRED("Name", shape_string),
    REQUIRED("Value", shape_string),
};
static const struct shape shape_metric_dimension = STRUCT_SHAPE("MetricDimension", metric_dimension_members);
static const struct shape shape_metric_dimensions = LIST_SHAPE(shape_metric_dimension);
static const struct shape_member customized_members[] = {
    REQUIRED("MetricName", shape_string),
    REQUIRED("Namespace", shape_string),
    MEMBER("Dimensions", shape_metric_dimensions),
    REQUIRED("Statistic", shape_statistic),
    MEMBER("Unit", shape_string),
};
static const struct shape shape_customized = STRUCT_SHAPE("CustomizedMetricSpecification",
                                                          customized_members);

enum { TRACKING_TARGET, TRACKING_PREDEFINED, TRACKING_CUSTOMIZED };
static const struct shape_member tracking_members[] = {
    [TRACKING_TARGET] = REQUIRED("TargetValue", shape_number),
    [TRACKING_PREDEFINED] = MEMBER("PredefinedMetricSpecification", shape_predefined),
    [TRACKING_CUSTOMIZED] = MEMBER("CustomizedMetricSpecification", shape_customized),
    MEMBER("ScaleOutCooldown", shape_capacity),
    MEMBER("ScaleInCooldown", shape_capacity),
    MEMBER("DisableScaleIn", shape_bool),
};
static const struct shape shape_tracking = STRUCT_SHAPE("TargetTrackingScalingPolicyConfiguration",
                                                        tracking_members);

static const char *const policy_types[] = {"StepScaling", "TargetTrackingScaling", NULL};
static const struct shape shape_policy_type = ENUM_SHAPE(policy_types);
enum { POLICY_NAME = SCALE_OWN, POLICY_TYPE, POLICY_TRACKING };
static const struct shape_member put_members[] = {
    TARGET_MEMBERS,
    [POLICY_NAME] = REQUIRED("PolicyName", shape_policy_name),
    [POLICY_TYPE] = MEMBER("PolicyType", shape_policy_type),
    [POLICY_TRACKING] = MEMBER("TargetTrackingScalingPolicyConfiguration", shape_tracking),
};
static const struct shape put_shape = STRUCT_SHAPE("PutScalingPolicyRequest", put_members);

static const struct shape_member delete_members[] = {
    TARGET_MEMBERS,
    [POLICY_NAME] = REQUIRED("PolicyName", shape_policy_name),
};
static const struct shape delete_shape = STRUCT_SHAPE("DeleteScalingPolicyRequest", delete_members);

enum { LIST_SERVICE, LIST_RESOURCES, LIST_DIMENSION, LIST_MOST, LIST_TOKEN, LIST_NAMES };
static const struct shape_member targets_members[] = {
    [LIST_SERVICE] = REQUIRED("ServiceNamespace", shape_service),
    [LIST_RESOURCES] = MEMBER("ResourceIds", shape_resources),
    [LIST_DIMENSION] = MEMBER("ScalableDimension", shape_dimension),
    [LIST_MOST] = MEMBER("MaxResults", shape_limit),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
};
static const struct shape targets_shape = STRUCT_SHAPE("DescribeScalableTargetsRequest", targets_members);

static const struct shape_member policies_members[] = {
    [LIST_SERVICE] = REQUIRED("ServiceNamespace", shape_service),
    [LIST_RESOURCES] = MEMBER("ResourceId", shape_resource),
    [LIST_DIMENSION] = MEMBER("ScalableDimension", shape_dimension),
    [LIST_MOST] = MEMBER("MaxResults", shape_limit),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
    [LIST_NAMES] = MEMBER("PolicyNames", shape_resources),
};
static const struct shape policies_shape = STRUCT_SHAPE("DescribeScalingPoliciesRequest", policies_members);

/* ---- which target ---- */

/* table/NAME, table/NAME/index/INDEX */
static bool parse_resource(struct slice resource, struct slice *table, struct slice *index)
{
    struct slice mark = SLICE("/index/");
    if (!slice_starts(resource, SLICE("table/"))) return false;
    *table = slice_from(resource, strlen("table/"));
    *index = SLICE_NONE;
    const char *at = table->len ? memchr(table->data, '/', table->len) : NULL;
    if (!at) return table->len > 0;
    struct slice rest = slice_from(*table, (size_t)(at - table->data));
    table->len = (size_t)(at - table->data);
    if (!slice_starts(rest, mark)) return false;
    *index = slice_from(rest, mark.len);
    return table->len && index->len;
}

static struct slice target_key(struct arena *arena, const struct node *input)
{
    return arena_printf(arena, "%.*s %.*s", SLICE_ARG(node_member(input, SCALE_RESOURCE)->text),
                        SLICE_ARG(node_member(input, SCALE_DIMENSION)->text));
}

static struct slice policy_key(struct arena *arena, const struct node *input)
{
    return arena_printf(arena, "%.*s %.*s", SLICE_ARG(target_key(arena, input)),
                        SLICE_ARG(node_member(input, POLICY_NAME)->text));
}

static void submit(struct api_call *call, const struct node *input, bool (*apply)(struct table_change *),
                   void (*missing)(struct table_change *))
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    struct slice index;
    bool is_resource = parse_resource(node_member(input, SCALE_RESOURCE)->text, &change->table_name, &index);
    struct slice kind = is_resource && index.len ? SLICE("dynamodb:index:") : SLICE("dynamodb:table:");
    if (!is_resource || !slice_starts(node_member(input, SCALE_DIMENSION)->text, kind)) {
        invalid(call, "Unsupported service namespace, resource type or scalable dimension");
        return;
    }
    change->apply = apply;
    change->missing = missing;
    table_change_submit(call, input, change);
}

static bool reject_missing(struct table_change *change, const char *what)
{
    return reject_as(&change->verdict, "ObjectNotFoundException",
                     "No %s for service namespace: dynamodb, resource ID: %.*s, scalable dimension: %.*s",
                     what, SLICE_ARG(node_member(&change->input, SCALE_RESOURCE)->text),
                     SLICE_ARG(node_member(&change->input, SCALE_DIMENSION)->text));
}

static void target_is_missing(struct table_change *change)
{
    reject_missing(change, "scalable target found");
}

static void policy_is_missing(struct table_change *change)
{
    reject_missing(change, "scaling policy found");
}

static void table_is_missing(struct table_change *change)
{
    reject(&change->verdict, "DynamoDB table does not exist: %.*s",
           SLICE_ARG(node_member(&change->input, SCALE_RESOURCE)->text));
}

/* Of a thing that was made then, for its ARN. */
static struct slice make_id(struct arena *arena, struct slice key, int64_t now_ms)
{
    uint64_t first = hash_bytes(key);
    struct slice again = arena_printf(arena, "%lld %.*s", (long long)now_ms, SLICE_ARG(key));
    return arena_printf(arena, "%016llx%016llx", (unsigned long long)first,
                        (unsigned long long)hash_bytes(again));
}

/* ---- RegisterScalableTarget and DeregisterScalableTarget ---- */

static bool set_capacity(struct table_change *change, unsigned member, const char *name, bool is_new,
                         struct map *target)
{
    const struct node *given = node_member(&change->input, member);
    if (!given->present)
        return !is_new ||
               reject(&change->verdict, "MinCapacity and MaxCapacity must be given for a new target");
    if (given->integer < 1)
        return reject(&change->verdict, "Capacities of DynamoDB tables and indexes are at least 1");
    map_put(change->verdict.arena, target, slice_of(name),
            integer_value(change->verdict.arena, given->integer));
    return true;
}

static bool apply_register(struct table_change *change)
{
    struct arena *arena = change->verdict.arena;
    struct table_definition *definition = change->definition;
    struct slice table, index, key = target_key(arena, &change->input);
    struct map targets = setting_map(definition, TARGETS), target = map_map(&targets, key);
    const struct node *role = node_member(&change->input, REGISTER_ROLE),
                      *suspended = node_member(&change->input, REGISTER_SUSPENDED);
    bool is_new = target.count == 0;
    parse_resource(node_member(&change->input, SCALE_RESOURCE)->text, &table, &index);
    const struct index_definition *known = index.len ? definition_index(definition, index) : NULL;
    if (index.len && (!known || !known->global))
        return reject(&change->verdict, "DynamoDB index does not exist: %.*s",
                      SLICE_ARG(node_member(&change->input, SCALE_RESOURCE)->text));
    if (!set_capacity(change, REGISTER_MIN, "min", is_new, &target) ||
        !set_capacity(change, REGISTER_MAX, "max", is_new, &target))
        return false;
    if (map_integer(&target, "min") > map_integer(&target, "max"))
        return reject(&change->verdict, "MinCapacity cannot be greater than MaxCapacity");
    if (is_new) { /* one that is there is tagged by TagResource only */
        if (!scaling_tags_add(&change->verdict, node_member(&change->input, REGISTER_TAGS), &target))
            return false;
        map_put(arena, &target, SLICE("created"), integer_value(arena, change->now_ms));
        map_put(arena, &target, SLICE("id"), text_value(make_id(arena, key, change->now_ms)));
    }
    if (role->present) map_put(arena, &target, SLICE("role"), text_value(role->text));
    for (unsigned i = 0; suspended->present && i < SUSPENDED_COUNT; i++)
        if (node_member(suspended, i)->present)
            map_put(arena, &target, suspended_members[i].name, truth_value(node_member(suspended, i)->truth));
    map_put(arena, &targets, key, map_value(target));
    setting_put(arena, definition, TARGETS, map_value(targets));
    return true;
}

static void register_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_register, table_is_missing);
}

void put_scalable_target_arn(struct buf *out, const struct api *api, const struct map *target)
{
    buf_printf(out, "arn:aws:application-autoscaling:%.*s:%.*s:scalable-target/%.*s", SLICE_ARG(api->region),
               SLICE_ARG(api->account), SLICE_ARG(map_text(target, "id")));
}

static void put_target_arn(struct buf *out, const struct api *api, const struct map *target)
{
    buf_text(out, "\"ScalableTargetARN\":\"");
    put_scalable_target_arn(out, api, target);
    buf_byte(out, '"');
}

static void register_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (!change) return;
    struct map targets = setting_map(change->definition, TARGETS);
    struct map target = map_map(&targets, target_key(call->arena, &change->input));
    buf_byte(call->reply, '{');
    put_target_arn(call->reply, call->api, &target);
    buf_byte(call->reply, '}');
}

/* The policies of a target go with it. */
static bool apply_deregister(struct table_change *change)
{
    struct arena *arena = change->verdict.arena;
    struct slice key = target_key(arena, &change->input),
                 begin = arena_printf(arena, "%.*s ", SLICE_ARG(key));
    struct map targets = setting_map(change->definition, TARGETS);
    struct map policies = setting_map(change->definition, POLICIES), kept = policies;
    if (!map_find(&targets, key)) return reject_missing(change, "scalable target found");
    for (uint32_t i = 0; i < policies.count; i++)
        if (slice_starts(policies.attributes[i].name, begin))
            kept = map_without(arena, &kept, policies.attributes[i].name);
    setting_put(arena, change->definition, TARGETS, map_value(map_without(arena, &targets, key)));
    setting_put(arena, change->definition, POLICIES, map_value(kept));
    return true;
}

static void deregister_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_deregister, target_is_missing);
}

static void finish_empty(struct api_call *call)
{
    if (table_change_finish(call)) buf_text(call->reply, "{}");
}

/* ---- PutScalingPolicy and DeleteScalingPolicy ---- */

/* What was decoded, as JSON again; numbers that may have a fraction always have a point. */
static void put_node(struct buf *out, const struct node *node)
{
    bool any = false;
    switch (node->shape->kind) {
    case SHAPE_STRUCT:
        buf_byte(out, '{');
        for (uint32_t i = 0; i < node->shape->member_count; i++) {
            if (!node->members[i].present) continue;
            if (any) buf_byte(out, ',');
            any = true;
            json_put_string(out, node->shape->members[i].name);
            buf_byte(out, ':');
            put_node(out, &node->members[i]);
        }
        buf_byte(out, '}');
        return;
    case SHAPE_LIST:
        buf_byte(out, '[');
        for (uint32_t i = 0; i < node->count; i++) {
            if (i) buf_byte(out, ',');
            put_node(out, &node->elements[i]);
        }
        buf_byte(out, ']');
        return;
    case SHAPE_STRING: json_put_string(out, node->text); return;
    case SHAPE_BOOL: buf_slice(out, node->truth ? SLICE("true") : SLICE("false")); return;
    case SHAPE_DOUBLE:
        json_put_double(out, node->real);
        if (node->real == floor(node->real) && fabs(node->real) < 1e15) buf_text(out, ".0");
        return;
    case SHAPE_INT:
    case SHAPE_LONG: json_put_int(out, node->integer); return;
    case SHAPE_MAP:
    case SHAPE_VALUE: break;
    }
    buf_text(out, "null"); /* no request of these has such a member */
}

static struct slice node_text(struct arena *arena, const struct node *node)
{
    struct buf text = {0};
    put_node(&text, node);
    struct slice copy = arena_copy(arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

static bool has_null(const struct node *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!list->elements[i].present) return true;
    return false;
}

static bool check_policy(struct verdict *verdict, const struct node *input, bool is_new)
{
    const struct node *tracking = node_member(input, POLICY_TRACKING),
                      *type = node_member(input, POLICY_TYPE);
    if (type->present ? !node_says(type, "TargetTrackingScaling") : is_new)
        return reject(verdict, "Tables and indexes of DynamoDB are scaled by policies of the PolicyType "
                               "TargetTrackingScaling only");
    if (!tracking->present)
        return !is_new || reject(verdict, "A new policy needs a TargetTrackingScalingPolicyConfiguration");
    const struct node *customized = node_member(tracking, TRACKING_CUSTOMIZED);
    if (customized->present == node_member(tracking, TRACKING_PREDEFINED)->present)
        return reject(verdict,
                      "Either a PredefinedMetricSpecification or a CustomizedMetricSpecification must be "
                      "given");
    double percent = node_member(tracking, TRACKING_TARGET)->real;
    if (!customized->present && !(percent >= UTILIZATION_MIN && percent <= UTILIZATION_MAX))
        return reject(verdict, "The TargetValue of a utilization is between %d and %d", UTILIZATION_MIN,
                      UTILIZATION_MAX);
    if (customized->present && has_null(node_member(customized, 2)))
        return reject(verdict, "Dimensions cannot be null");
    return true;
}

static uint32_t count_policies(const struct map *policies, struct slice begin)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < policies->count; i++) count += slice_starts(policies->attributes[i].name, begin);
    return count;
}

static bool apply_put(struct table_change *change)
{
    struct arena *arena = change->verdict.arena;
    struct slice target = target_key(arena, &change->input), key = policy_key(arena, &change->input);
    struct map targets = setting_map(change->definition, TARGETS);
    struct map policies = setting_map(change->definition, POLICIES), policy = map_map(&policies, key);
    const struct node *tracking = node_member(&change->input, POLICY_TRACKING);
    bool is_new = policy.count == 0;
    if (!map_find(&targets, target)) return reject_missing(change, "scalable target registered");
    if (!check_policy(&change->verdict, &change->input, is_new)) return false;
    if (is_new &&
        count_policies(&policies, arena_printf(arena, "%.*s ", SLICE_ARG(target))) >= LIMIT_SCALING_POLICIES)
        return reject_as(&change->verdict, "LimitExceededException",
                         "A scalable target has at most %d scaling policies", LIMIT_SCALING_POLICIES);
    if (is_new) {
        map_put(arena, &policy, SLICE("created"), integer_value(arena, change->now_ms));
        map_put(arena, &policy, SLICE("id"), text_value(make_id(arena, key, change->now_ms)));
    }
    if (tracking->present) map_put(arena, &policy, SLICE("tracking"), text_value(node_text(arena, tracking)));
    map_put(arena, &policies, key, map_value(policy));
    setting_put(arena, change->definition, POLICIES, map_value(policies));
    return true;
}

static void put_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_put, target_is_missing);
}

static void put_policy_arn(struct buf *out, const struct api *api, struct slice resource, struct slice name,
                           const struct map *policy)
{
    struct slice id = map_text(policy, "id");
    if (id.len < 32) id = SLICE("00000000000000000000000000000000"); /* damaged */
    buf_text(out, "\"PolicyARN\":");
    struct buf arn = {0};
    buf_printf(&arn,
               "arn:aws:autoscaling:%.*s:%.*s:scalingPolicy:%.8s-%.4s-%.4s-%.4s-%.12s:resource/dynamodb/",
               SLICE_ARG(api->region), SLICE_ARG(api->account), id.data, id.data + 8, id.data + 12,
               id.data + 16, id.data + 20);
    buf_slice(&arn, resource);
    buf_text(&arn, ":policyName/");
    buf_slice(&arn, name);
    json_put_string(out, buf_view(&arn));
    buf_free(&arn);
}

/* There are no alarms here. */
static void put_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (!change) return;
    struct map policies = setting_map(change->definition, POLICIES);
    struct map policy = map_map(&policies, policy_key(call->arena, &change->input));
    buf_byte(call->reply, '{');
    put_policy_arn(call->reply, call->api, node_member(&change->input, SCALE_RESOURCE)->text,
                   node_member(&change->input, POLICY_NAME)->text, &policy);
    buf_text(call->reply, ",\"Alarms\":[]}");
}

static bool apply_delete(struct table_change *change)
{
    struct arena *arena = change->verdict.arena;
    struct slice key = policy_key(arena, &change->input);
    struct map policies = setting_map(change->definition, POLICIES);
    if (!map_find(&policies, key)) return reject_missing(change, "scaling policy found");
    setting_put(arena, change->definition, POLICIES, map_value(map_without(arena, &policies, key)));
    return true;
}

static void delete_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_delete, policy_is_missing);
}

/* ---- descriptions ---- */

/* A key of one of the settings, taken apart. */
struct scaled {
    struct slice resource, dimension, name; /* name: of a policy */
};

static struct slice take_word(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->data, ' ', rest->len) : NULL;
    struct slice word = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, end ? word.len + 1 : word.len);
    return word;
}

static struct scaled scaled_of(struct slice key)
{
    struct scaled scaled = {.resource = take_word(&key)};
    scaled.dimension = take_word(&key);
    scaled.name = key;
    return scaled;
}

static void put_target(struct api_call *call, const struct scaled *scaled, const struct map *target)
{
    struct buf *out = call->reply;
    struct slice role = map_text(target, "role");
    buf_byte(out, '{');
    put_target_arn(out, call->api, target);
    put_text(out, "ServiceNamespace", SLICE("dynamodb"));
    put_text(out, "ResourceId", scaled->resource);
    put_text(out, "ScalableDimension", scaled->dimension);
    put_int(out, "MinCapacity", map_integer(target, "min"));
    put_int(out, "MaxCapacity", map_integer(target, "max"));
    if (!role.len)
        role = arena_printf(call->arena, "arn:aws:iam::%.*s:" SERVICE_ROLE SERVICE_ROLE_OWN,
                            SLICE_ARG(call->api->account));
    put_text(out, "RoleARN", role);
    put_time(out, "CreationTime", map_integer(target, "created"));
    buf_text(out, ",\"SuspendedState\":{");
    for (unsigned i = 0; i < SUSPENDED_COUNT; i++)
        buf_printf(out, "%s\"%.*s\":%s", i ? "," : "", SLICE_ARG(suspended_members[i].name),
                   map_truth(target, suspended_members[i].name.data) ? "true" : "false");
    buf_text(out, "}}");
}

static void put_policy(struct api_call *call, const struct scaled *scaled, const struct map *policy)
{
    struct buf *out = call->reply;
    buf_byte(out, '{');
    put_policy_arn(out, call->api, scaled->resource, scaled->name, policy);
    put_text(out, "PolicyName", scaled->name);
    put_text(out, "ServiceNamespace", SLICE("dynamodb"));
    put_text(out, "ResourceId", scaled->resource);
    put_text(out, "ScalableDimension", scaled->dimension);
    put_text(out, "PolicyType", SLICE("TargetTrackingScaling"));
    buf_text(out, ",\"TargetTrackingScalingPolicyConfiguration\":");
    buf_slice(out, map_text(policy, "tracking"));
    buf_text(out, ",\"Alarms\":[]");
    put_time(out, "CreationTime", map_integer(policy, "created"));
    buf_byte(out, '}');
}

/* A list while it is written. */
struct listing {
    struct api_call *call;
    const struct node *input;
    const char *setting;
    bool is_of_policies;
    struct slice start_table, start_key; /* where the page before ended */
    uint32_t left;
    struct slice last; /* the last one shown, when there may be more */
    bool any;
};

static bool is_among(const struct node *list, struct slice text)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->elements[i].present && slice_equal(list->elements[i].text, text)) return true;
    return false;
}

static bool is_wanted(const struct listing *listing, const struct scaled *scaled)
{
    const struct node *resources = node_member(listing->input, LIST_RESOURCES),
                      *dimension = node_member(listing->input, LIST_DIMENSION);
    if (dimension->present && !slice_equal(dimension->text, scaled->dimension)) return false;
    if (!listing->is_of_policies)
        return !resources->present || !resources->count || is_among(resources, scaled->resource);
    const struct node *names = node_member(listing->input, LIST_NAMES);
    if (resources->present && !slice_equal(resources->text, scaled->resource)) return false;
    return !names->present || !names->count || is_among(names, scaled->name);
}

/* False: the page is full, and there is more. */
static bool list_table(struct listing *listing, const struct table_definition *definition)
{
    struct map all = setting_map(definition, listing->setting);
    bool is_start = slice_equal(definition->name, listing->start_table);
    for (uint32_t i = 0; i < all.count; i++) {
        struct slice key = all.attributes[i].name;
        struct scaled scaled = scaled_of(key);
        if (is_start && slice_compare(key, listing->start_key) <= 0) continue;
        if (!is_wanted(listing, &scaled)) continue;
        if (!listing->left) return false;
        if (listing->any) buf_byte(listing->call->reply, ',');
        listing->any = true;
        listing->left--;
        listing->last = arena_copy(listing->call->arena, key);
        struct map value = map_map(&all, key);
        if (listing->is_of_policies)
            put_policy(listing->call, &scaled, &value);
        else
            put_target(listing->call, &scaled, &value);
    }
    return true;
}

/* True when not all was listed. */
static bool list_tables(struct listing *listing)
{
    struct api_call *call = listing->call;
    struct slice names[NAMES_AT_ONCE], after = SLICE_NONE;
    bool more = true;
    struct table *table = listing->start_table.len
                              ? engine_table_find(call->api->engine, listing->start_table)
                              : NULL;
    bool goes_on = !table || list_table(listing, &table->definition);
    if (table) engine_table_release(table);
    after = listing->start_table;
    while (goes_on && more) {
        uint32_t count = engine_table_names(call->api->engine, call->arena, after, NAMES_AT_ONCE, names,
                                            &more);
        for (uint32_t i = 0; goes_on && i < count; i++) {
            table = engine_table_find(call->api->engine, names[i]);
            if (!table) continue; /* deleted since */
            goes_on = list_table(listing, &table->definition);
            engine_table_release(table);
        }
        if (count) after = names[count - 1];
        more &= count > 0;
    }
    return !goes_on;
}

/* The token is the key of the last one shown. */
static bool take_token(struct listing *listing)
{
    const struct node *token = node_member(listing->input, LIST_TOKEN);
    struct slice index;
    if (!token->present) return true;
    if (base64_decode(listing->call->arena, token->text, &listing->start_key) == BASE64_OK &&
        parse_resource(scaled_of(listing->start_key).resource, &listing->start_table, &index))
        return true;
    return refuse(listing->call, "InvalidNextTokenException", "The next token supplied was invalid");
}

static void list_begin(struct api_call *call, const struct node *input, bool is_of_policies)
{
    const struct node *most = node_member(input, LIST_MOST);
    struct listing listing = {.call = call,
                              .input = input,
                              .setting = is_of_policies ? POLICIES : TARGETS,
                              .is_of_policies = is_of_policies,
                              .left = RESULTS_DEFAULT};
    if (most->present && most->integer < RESULTS_DEFAULT) listing.left = (uint32_t)most->integer;
    if (!take_token(&listing)) return;
    buf_slice(call->reply,
              is_of_policies ? SLICE("{\"ScalingPolicies\":[") : SLICE("{\"ScalableTargets\":["));
    bool is_cut = list_tables(&listing);
    buf_byte(call->reply, ']');
    if (is_cut) {
        buf_text(call->reply, ",\"NextToken\":");
        json_put_base64(call->reply, listing.last);
    }
    buf_byte(call->reply, '}');
}

static void targets_begin(struct api_call *call, const struct node *input)
{
    list_begin(call, input, false);
}

static void policies_begin(struct api_call *call, const struct node *input)
{
    list_begin(call, input, true);
}

const struct operation operation_RegisterScalableTarget = {SLICE("RegisterScalableTarget"), &register_shape,
                                                           register_begin, register_finish};
const struct operation operation_DeregisterScalableTarget = {
    SLICE("DeregisterScalableTarget"), &deregister_shape, deregister_begin, finish_empty};
const struct operation operation_DescribeScalableTargets = {SLICE("DescribeScalableTargets"), &targets_shape,
                                                            targets_begin, NULL};
const struct operation operation_PutScalingPolicy = {SLICE("PutScalingPolicy"), &put_shape, put_begin,
                                                     put_finish};
const struct operation operation_DeleteScalingPolicy = {SLICE("DeleteScalingPolicy"), &delete_shape,
                                                        delete_begin, finish_empty};
const struct operation operation_DescribeScalingPolicies = {SLICE("DescribeScalingPolicies"), &policies_shape,
                                                            policies_begin, NULL};
