/* The tree of auto scaling settings: judged, kept, shown. */
#include "api/scaling.h"

enum { SCALING_MIN, SCALING_MAX, SCALING_DISABLED, SCALING_ROLE, SCALING_POLICY };
enum { POLICY_NAME, POLICY_TRACKING };
enum { TRACKING_NO_SCALE_IN, TRACKING_IN, TRACKING_OUT, TRACKING_TARGET };

static const struct shape shape_int = {.kind = SHAPE_INT}, shape_double = {.kind = SHAPE_DOUBLE};
static const struct shape shape_units_least_1 = {.kind = SHAPE_LONG, .has_min = true, .min = 1};
static const struct shape shape_role = STRING_SHAPE_SIZED(1, 1600);
static const struct shape shape_policy_name = STRING_SHAPE_SIZED(1, 256);
static const struct shape_member tracking_members[] = {
    [TRACKING_NO_SCALE_IN] = MEMBER("DisableScaleIn", shape_bool),
    [TRACKING_IN] = MEMBER("ScaleInCooldown", shape_int),
    [TRACKING_OUT] = MEMBER("ScaleOutCooldown", shape_int),
    [TRACKING_TARGET] = REQUIRED("TargetValue", shape_double),
};
static const struct shape shape_tracking = STRUCT_SHAPE(
    "AutoScalingTargetTrackingScalingPolicyConfigurationUpdate", tracking_members);
static const struct shape_member policy_members[] = {
    [POLICY_NAME] = MEMBER("PolicyName", shape_policy_name),
    [POLICY_TRACKING] = REQUIRED("TargetTrackingScalingPolicyConfiguration", shape_tracking),
};
static const struct shape shape_policy = STRUCT_SHAPE("AutoScalingPolicyUpdate", policy_members);
static const struct shape_member scaling_members[] = {
    [SCALING_MIN] = MEMBER("MinimumUnits", shape_units_least_1),
    [SCALING_MAX] = MEMBER("MaximumUnits", shape_units_least_1),
    [SCALING_DISABLED] = MEMBER("AutoScalingDisabled", shape_bool),
    [SCALING_ROLE] = MEMBER("AutoScalingRoleArn", shape_role),
    [SCALING_POLICY] = MEMBER("ScalingPolicyUpdate", shape_policy),
};
const struct shape shape_scaling = STRUCT_SHAPE("AutoScalingSettingsUpdate", scaling_members);

/* ---- places ---- */

struct scaling_path scaling_of_table(void)
{
    return (struct scaling_path){0};
}

struct scaling_path scaling_of_index(struct slice index)
{
    return (struct scaling_path){{SLICE("indexes"), index}, 2};
}

struct scaling_path scaling_of_replica(struct slice region)
{
    return (struct scaling_path){{SLICE("replicas"), region}, 2};
}

struct scaling_path scaling_of_replica_index(struct slice region, struct slice index)
{
    return (struct scaling_path){{SLICE("replicas"), region, SLICE("indexes"), index}, 4};
}

static struct map map_at(struct map tree, const struct scaling_path *path)
{
    for (unsigned i = 0; i < path->count; i++) tree = map_map(&tree, path->names[i]);
    return tree;
}

/* Puts the map in its place; the maps on the way are made anew around it. */
static void put_map_at(struct arena *arena, struct map *tree, const struct scaling_path *path, struct map map)
{
    struct map maps[SCALING_PATH_MAX + 1] = {*tree};
    for (unsigned i = 0; i < path->count; i++) maps[i + 1] = map_map(&maps[i], path->names[i]);
    maps[path->count] = map;
    for (unsigned i = path->count; i-- > 0;) map_put(arena, &maps[i], path->names[i], map_value(maps[i + 1]));
    *tree = maps[0];
}

void scaling_put(struct table_change *change, const struct scaling_path *path, const char *name,
                 struct value value)
{
    struct arena *arena = change->verdict.arena;
    struct map tree = setting_map(change->definition, "scaling"), place = map_at(tree, path);
    map_put(arena, &place, slice_of(name), value);
    put_map_at(arena, &tree, path, place);
    setting_put(arena, change->definition, "scaling", map_value(tree));
}

static void scaling_remove(struct table_change *change, const struct scaling_path *path, const char *name)
{
    struct arena *arena = change->verdict.arena;
    struct map tree = setting_map(change->definition, "scaling"), place = map_at(tree, path);
    if (!map_find(&place, slice_of(name))) return;
    put_map_at(arena, &tree, path, map_without(arena, &place, slice_of(name)));
    setting_put(arena, change->definition, "scaling", map_value(tree));
}

/* ---- judging ---- */

#define FAILED_SETTINGS "Failed to update settings for global table with name"

/* The members that are there, or those that are not, as the service lists them. */
static struct slice list_members(struct arena *arena, const struct node *update, bool present)
{
    static const unsigned order[] = {SCALING_MAX, SCALING_POLICY, SCALING_MIN};
    struct buf list = {0};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (node_member(update, order[i])->present != present) continue;
        buf_printf(&list, "%s'%.*s'", list.len ? ", " : "", SLICE_ARG(scaling_members[order[i]].name));
    }
    struct slice text = arena_copy(arena, buf_view(&list));
    buf_free(&list);
    return text;
}

static bool check_scaling(struct table_change *change, const struct node *update)
{
    bool disable = node_is_true(node_member(update, SCALING_DISABLED));
    struct slice wrong = list_members(change->verdict.arena, update, disable);
    if (!wrong.len) return true;
    if (disable)
        return reject(&change->verdict,
                      FAILED_SETTINGS
                      " \xe2\x80\x98%.*s\xe2\x80\x99: Parameters %.*s must be left blank when "
                      "disabling auto scaling.",
                      SLICE_ARG(change->table_name), SLICE_ARG(wrong));
    return reject(&change->verdict,
                  FAILED_SETTINGS ": \xe2\x80\x98%.*s\xe2\x80\x99: Parameters %.*s are required unless auto "
                                  "scaling is being disabled.",
                  SLICE_ARG(change->table_name), SLICE_ARG(wrong));
}

/* ---- keeping ---- */

/* The name that the service gives: DynamoDBReadCapacityUtilization:table/NAME[/index/NAME] */
static struct slice policy_name(struct table_change *change, const struct scaling_path *path, bool is_write)
{
    struct slice index = SLICE_NONE;
    for (unsigned i = 0; i + 1 < path->count; i++)
        if (slice_equal(path->names[i], SLICE("indexes"))) index = path->names[i + 1];
    return arena_printf(change->verdict.arena, "DynamoDB%sCapacityUtilization:table/%.*s%s%.*s",
                        is_write ? "Write" : "Read", SLICE_ARG(change->table_name),
                        index.len ? "/index/" : "", SLICE_ARG(index));
}

static struct value double_value(struct arena *arena, double real)
{
    struct buf text = {0};
    json_put_double(&text, real);
    struct value value = text_value(arena_copy(arena, buf_view(&text)));
    buf_free(&text);
    return value;
}

static struct map scaling_map(struct table_change *change, const struct node *update, struct slice name)
{
    struct arena *arena = change->verdict.arena;
    const struct node *policy = node_member(update, SCALING_POLICY),
                      *role = node_member(update, SCALING_ROLE),
                      *tracking = node_member(policy, POLICY_TRACKING),
                      *own_name = node_member(policy, POLICY_NAME);
    static const struct {
        unsigned member;
        const char *name;
    } cooldowns[] = {{TRACKING_IN, "in"}, {TRACKING_OUT, "out"}};
    struct map map = {0};
    map_put(arena, &map, SLICE("min"), integer_value(arena, node_member(update, SCALING_MIN)->integer));
    map_put(arena, &map, SLICE("max"), integer_value(arena, node_member(update, SCALING_MAX)->integer));
    map_put(arena, &map, SLICE("policy"), text_value(own_name->present ? own_name->text : name));
    map_put(arena, &map, SLICE("target"), double_value(arena, node_member(tracking, TRACKING_TARGET)->real));
    if (role->present) map_put(arena, &map, SLICE("role"), text_value(role->text));
    if (node_member(tracking, TRACKING_NO_SCALE_IN)->present)
        map_put(arena, &map, SLICE("no_scale_in"),
                truth_value(node_member(tracking, TRACKING_NO_SCALE_IN)->truth));
    for (size_t i = 0; i < 2; i++) {
        const struct node *cooldown = node_member(tracking, cooldowns[i].member);
        if (cooldown->present)
            map_put(arena, &map, slice_of(cooldowns[i].name), integer_value(arena, cooldown->integer));
    }
    return map;
}

bool scaling_take(struct table_change *change, const struct node *update, const struct scaling_path *path,
                  bool is_write)
{
    const char *place = is_write ? "write" : "read";
    if (!update->present) return true;
    if (!check_scaling(change, update)) return false;
    if (node_is_true(node_member(update, SCALING_DISABLED)))
        scaling_remove(change, path, place);
    else
        scaling_put(change, path, place,
                    map_value(scaling_map(change, update, policy_name(change, path, is_write))));
    return true;
}

/* ---- showing ---- */

static void put_tracking(struct buf *out, const struct map *map)
{
    const struct value *no_scale_in = map_find(map, SLICE("no_scale_in")), *in = map_find(map, SLICE("in")),
                       *after = map_find(map, SLICE("out"));
    buf_text(out, "{\"TargetValue\":");
    buf_slice(out, map_text(map, "target"));
    if (no_scale_in) buf_printf(out, ",\"DisableScaleIn\":%s", no_scale_in->truth ? "true" : "false");
    if (in) buf_printf(out, ",\"ScaleInCooldown\":%.*s", SLICE_ARG(in->bytes));
    if (after) buf_printf(out, ",\"ScaleOutCooldown\":%.*s", SLICE_ARG(after->bytes));
    buf_byte(out, '}');
}

/* Without a role of one's own the service takes the one that it made for this. */
static void put_role(struct buf *out, const struct api *api, struct slice role)
{
    buf_text(out, ",\"AutoScalingRoleArn\":");
    if (role.len) {
        json_put_string(out, role);
        return;
    }
    buf_printf(out,
               "\"arn:aws:iam::%.*s:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
               "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable\"",
               SLICE_ARG(api->account));
}

static void put_scaling(struct buf *out, const struct api *api, const char *member, const struct map *place,
                        const char *name)
{
    struct map map = map_map(place, slice_of(name));
    buf_printf(out, ",\"%s\":{", member);
    if (!map.count) {
        buf_text(out, "\"AutoScalingDisabled\":true,\"ScalingPolicies\":[]}");
        return;
    }
    buf_printf(out, "\"MinimumUnits\":%lld,\"MaximumUnits\":%lld", (long long)map_integer(&map, "min"),
               (long long)map_integer(&map, "max"));
    put_role(out, api, map_text(&map, "role"));
    buf_text(out, ",\"ScalingPolicies\":[{\"PolicyName\":");
    json_put_string(out, map_text(&map, "policy"));
    buf_text(out, ",\"TargetTrackingScalingPolicyConfiguration\":");
    put_tracking(out, &map);
    buf_text(out, "}]}");
}

static int64_t units_of(const struct map *place, const char *name, int64_t otherwise)
{
    return map_find(place, slice_of(name)) ? map_integer(place, name) : otherwise;
}

bool has_global_index(const struct table_definition *definition, struct slice name)
{
    const struct index_definition *index = definition_index(definition, name);
    return index && index->global;
}

static void put_index(struct buf *out, const struct api *api, const struct table_definition *definition,
                      const struct index_definition *index, struct slice region, bool with_units)
{
    struct map tree = setting_map(definition, "scaling");
    struct scaling_path write_path = scaling_of_index(index->name),
                        read_path = scaling_of_replica_index(region, index->name);
    struct map write = map_at(tree, &write_path), read = map_at(tree, &read_path);
    buf_text(out, "{\"IndexName\":");
    json_put_string(out, index->name);
    put_text(out, "IndexStatus", slice_of(index->status == INDEX_CREATING ? "CREATING" : "ACTIVE"));
    if (with_units) {
        put_int(out, "ProvisionedReadCapacityUnits",
                units_of(&read, "read_units", index->throughput.read_units));
        put_int(out, "ProvisionedWriteCapacityUnits",
                units_of(&write, "write_units", index->throughput.write_units));
    }
    put_scaling(out, api, "ProvisionedReadCapacityAutoScalingSettings", &read, "read");
    put_scaling(out, api, "ProvisionedWriteCapacityAutoScalingSettings", &write, "write");
    buf_byte(out, '}');
}

static void put_indexes(struct buf *out, const struct api *api, const struct table_definition *definition,
                        struct slice region, bool with_units)
{
    bool is_first = true;
    buf_printf(out, ",\"%s\":[",
               with_units ? "ReplicaGlobalSecondaryIndexSettings" : "GlobalSecondaryIndexes");
    for (uint32_t i = 0; i < definition->index_count; i++) {
        if (!definition->indexes[i].global) continue;
        if (!is_first) buf_byte(out, ',');
        is_first = false;
        put_index(out, api, definition, &definition->indexes[i], region, with_units);
    }
    buf_byte(out, ']');
}

static void put_units(struct buf *out, const struct table_definition *definition, const struct map *tree,
                      const struct map *replica)
{
    struct slice billing = map_text(tree, "billing");
    if (!billing.len) billing = slice_of(definition->on_demand ? "PAY_PER_REQUEST" : "PROVISIONED");
    buf_text(out, ",\"ReplicaBillingModeSummary\":{\"BillingMode\":");
    json_put_string(out, billing);
    buf_byte(out, '}');
    put_int(out, "ReplicaProvisionedReadCapacityUnits",
            units_of(replica, "read_units", definition->throughput.read_units));
    put_int(out, "ReplicaProvisionedWriteCapacityUnits",
            units_of(tree, "write_units", definition->throughput.write_units));
}

void put_replica_scaling(struct buf *out, const struct api *api, const struct table_definition *definition,
                         struct slice region, bool with_units)
{
    struct map tree = setting_map(definition, "scaling");
    struct scaling_path path = scaling_of_replica(region);
    struct map replica = map_at(tree, &path);
    buf_text(out, "{\"RegionName\":");
    json_put_string(out, region);
    put_text(out, "ReplicaStatus", SLICE("ACTIVE"));
    if (with_units) put_units(out, definition, &tree, &replica);
    put_scaling(out, api, "ReplicaProvisionedReadCapacityAutoScalingSettings", &replica, "read");
    put_scaling(out, api, "ReplicaProvisionedWriteCapacityAutoScalingSettings", &tree, "write");
    put_indexes(out, api, definition, region, with_units);
    buf_byte(out, '}');
}
