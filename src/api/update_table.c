/* UpdateTable. What concerns the request alone is checked at once; all else on the writer's thread, against
 * the table as it is then. The answer shows the table UPDATING; the next DescribeTable finds the change made.
 */
#include "api/update_table.h"

#include "api/global_tables.h"

enum {
    UPDATE_ATTRIBUTES,
    UPDATE_NAME,
    UPDATE_BILLING_MODE,
    UPDATE_UNITS,
    UPDATE_INDEXES,
    UPDATE_STREAM,
    UPDATE_SSE,
    UPDATE_CLASS,
    UPDATE_PROTECTED,
    UPDATE_ON_DEMAND,
    UPDATE_WARM,
    UPDATE_REPLICAS,
    UPDATE_CONSISTENCY,
    UPDATE_WITNESSES,
    UPDATE_GLOBAL_MODE,
    UPDATE_VECTORS,
};

static const struct shape_member update_members[] = {
    [UPDATE_ATTRIBUTES] = MEMBER("AttributeDefinitions", shape_attribute_definitions),
    [UPDATE_NAME] = REQUIRED("TableName", shape_table_name_strict),
    [UPDATE_BILLING_MODE] = MEMBER("BillingMode", shape_billing_mode),
    [UPDATE_UNITS] = MEMBER("ProvisionedThroughput", shape_units),
    [UPDATE_INDEXES] = MEMBER("GlobalSecondaryIndexUpdates", shape_index_updates),
    [UPDATE_STREAM] = MEMBER("StreamSpecification", shape_stream),
    [UPDATE_SSE] = MEMBER("SSESpecification", shape_sse),
    [UPDATE_CLASS] = MEMBER("TableClass", shape_string),
    [UPDATE_PROTECTED] = MEMBER("DeletionProtectionEnabled", shape_bool),
    [UPDATE_ON_DEMAND] = MEMBER("OnDemandThroughput", shape_on_demand),
    [UPDATE_WARM] = MEMBER("WarmThroughput", shape_warm),
    [UPDATE_REPLICAS] = MEMBER("ReplicaUpdates", shape_replica_updates),
    [UPDATE_CONSISTENCY] = MEMBER("MultiRegionConsistency", shape_string),
    [UPDATE_WITNESSES] = MEMBER("GlobalTableWitnessUpdates", shape_unsupported_list),
    [UPDATE_GLOBAL_MODE] = MEMBER("GlobalTableSettingsReplicationMode", shape_string),
    [UPDATE_VECTORS] = MEMBER("VectorIndexUpdates", shape_vector_updates),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateTableInput", update_members);

/* ---- checks of the request alone ---- */

/* Structures without members and empty lists count as not given. */
static bool is_given(const struct node *input, unsigned member)
{
    const struct node *node = node_member(input, member);
    if (member == UPDATE_INDEXES) return node->count > 0;
    if (member == UPDATE_ON_DEMAND || member == UPDATE_WARM) return has_members(node);
    return node->present;
}

static unsigned count_given(const struct node *input)
{
    unsigned count = 0;
    for (unsigned member = UPDATE_BILLING_MODE; member <= UPDATE_VECTORS; member++)
        count += is_given(input, member);
    return count;
}

static bool reject_empty(struct verdict *verdict)
{
    return reject(verdict,
                  "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                  "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, "
                  "ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
                  "OnDemandThroughput, WarmThroughput or TableClass is required");
}

/* An update makes one change at a time: these members stand alone. */
static bool check_alone(struct verdict *verdict, const struct node *input)
{
    static const struct {
        unsigned member;
        const char *words;
    } alone[] = {{UPDATE_SSE, "Server-Side Encryption modification"},
                 {UPDATE_CLASS, "TableClass modification"},
                 {UPDATE_PROTECTED, "DeletionProtection modification"},
                 {UPDATE_WARM, "WarmThroughput"}};
    if (count_given(input) < 2) return true;
    if (is_given(input, UPDATE_REPLICAS))
        return reject(verdict, INVALID_VALUES "Requests that modify replicas or witnesses must not also "
                                              "modify other fields");
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (is_given(input, alone[i].member))
            return reject(verdict, INVALID_VALUES "%s must be the only operation in the request",
                          alone[i].words);
    if (is_given(input, UPDATE_ON_DEMAND) &&
        (count_given(input) > 2 || !is_given(input, UPDATE_BILLING_MODE)))
        return reject(verdict, INVALID_VALUES
                      "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request");
    return true;
}

/* Which of the other changes can go together. */
static bool check_together(struct verdict *verdict, const struct node *input)
{
    bool to_provisioned = node_says(node_member(input, UPDATE_BILLING_MODE), "PROVISIONED");
    bool units = is_given(input, UPDATE_UNITS), stream = is_given(input, UPDATE_STREAM);
    bool builds = builds_indexes(node_member(input, UPDATE_INDEXES)) || is_given(input, UPDATE_VECTORS);
    if (stream && (units || to_provisioned))
        return reject(verdict, INVALID_VALUES "You cannot modify stream status while updating table IOPS");
    if (builds && units)
        return reject(verdict, INVALID_VALUES "You cannot create or delete index while updating table IOPS");
    if (builds && stream)
        return reject(verdict,
                      INVALID_VALUES "You cannot create or delete index while changing stream status");
    return true;
}

static bool reject_units(struct verdict *verdict)
{
    return reject(verdict,
                  INVALID_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                                 "BillingMode is PAY_PER_REQUEST");
}

static bool check_billing(struct verdict *verdict, const struct node *input)
{
    const struct node *mode = node_member(input, UPDATE_BILLING_MODE),
                      *units = node_member(input, UPDATE_UNITS);
    if (node_says(mode, "PAY_PER_REQUEST") && units->present) return reject_units(verdict);
    if (node_says(mode, "PROVISIONED") && !units->present)
        return reject(verdict, INVALID_VALUES
                      "ProvisionedThroughput must be specified when BillingMode is PROVISIONED");
    return check_units(verdict, units);
}

static bool check_supported(struct verdict *verdict, const struct node *input)
{
    for (unsigned member = UPDATE_CONSISTENCY; member <= UPDATE_GLOBAL_MODE; member++)
        if (node_member(input, member)->present)
            return reject(verdict, INVALID_VALUES "%.*s is not supported",
                          SLICE_ARG(update_members[member].name));
    return true;
}

static bool check_request(struct verdict *verdict, const struct node *input)
{
    const struct node *indexes = node_member(input, UPDATE_INDEXES);
    if (!count_given(input)) return reject_empty(verdict);
    if (indexes->present && !indexes->count)
        return reject(verdict, INVALID_VALUES "List of GlobalSecondaryIndexUpdates is empty");
    return check_table_class(verdict, node_member(input, UPDATE_CLASS)) && check_supported(verdict, input) &&
           check_index_updates(verdict, indexes) &&
           check_vector_updates(verdict, node_member(input, UPDATE_VECTORS)) && check_alone(verdict, input) &&
           check_billing(verdict, input) && check_together(verdict, input);
}

/* ---- throughput, against the table ---- */

static void go_on_demand(struct table_update *update)
{
    struct table_definition *after = update->after;
    after->on_demand = true;
    after->on_demand_since_ms = update->now_ms;
    after->throughput.read_units = after->throughput.write_units = 0;
    after->throughput_lowered_ms = update->now_ms;
    for (uint32_t i = 0; i < after->index_count; i++)
        after->indexes[i].throughput.read_units = after->indexes[i].throughput.write_units = 0;
}

static void leave_on_demand(struct table_definition *after)
{
    after->on_demand = false;
    after->throughput.max_read = after->throughput.max_write = -1;
    for (uint32_t i = 0; i < after->index_count; i++)
        after->indexes[i].throughput.max_read = after->indexes[i].throughput.max_write = -1;
}

/* The dates of the last increase and decrease, and the decreases of the day. */
static void note_change_of_units(struct table_update *update)
{
    const struct throughput *old = &update->before->throughput, *new = &update->after->throughput;
    struct table_definition *after = update->after;
    if (new->read_units > old->read_units || new->write_units > old->write_units)
        after->throughput_raised_ms = update->now_ms;
    if (new->read_units < old->read_units || new->write_units < old->write_units) {
        bool same_day = after->throughput_lowered_ms / DAY_MS == update->now_ms / DAY_MS;
        after->decreases_today = (same_day ? after->decreases_today : 0) + 1;
        after->throughput_lowered_ms = update->now_ms;
    }
}

static bool change_units(struct table_update *update)
{
    const struct node *units = node_member(&update->input, UPDATE_UNITS);
    const struct throughput *old = &update->before->throughput;
    struct throughput *new = &update->after->throughput;
    if (!units->present) return true;
    if (update->after->on_demand) return reject_units(&update->verdict);
    take_units(units, new);
    if (!update->before->on_demand &&
        new->read_units == old->read_units &&new->write_units == old->write_units)
        return reject(
            &update->verdict,
            "The provisioned throughput for the table will not change. The requested value equals the "
            "current "
            "value. Current ReadCapacityUnits provisioned for the table: %lld. Requested ReadCapacityUnits: "
            "%lld. Current WriteCapacityUnits provisioned for the table: %lld. Requested WriteCapacityUnits: "
            "%lld. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher "
            "limits.",
            (long long)old->read_units, (long long)new->read_units, (long long)old->write_units,
            (long long)new->write_units);
    if (!update->before->on_demand) note_change_of_units(update);
    return true;
}

static bool change_limits(struct table_update *update)
{
    struct throughput_rules rules = {.on_demand = update->after->on_demand, .is_update = true};
    struct throughput *throughput = &update->after->throughput;
    return define_on_demand(&update->verdict, node_member(&update->input, UPDATE_ON_DEMAND), &rules,
                            throughput) &&
           define_warm(&update->verdict, node_member(&update->input, UPDATE_WARM), &rules, throughput);
}

static bool change_throughput(struct table_update *update)
{
    const struct node *mode = node_member(&update->input, UPDATE_BILLING_MODE);
    if (node_says(mode, "PAY_PER_REQUEST") && !update->before->on_demand) go_on_demand(update);
    if (node_says(mode, "PROVISIONED") && update->before->on_demand) leave_on_demand(update->after);
    return change_limits(update) && change_units(update);
}

/* ---- the other settings, against the table ---- */

static bool enable_stream(struct table_update *update, const struct node *view)
{
    struct table_definition *after = update->after;
    if (!view->present)
        return reject(&update->verdict,
                      INVALID_VALUES "If stream is being enabled then UpdateViewType is required");
    if (after->stream != STREAM_OFF)
        return reject(&update->verdict, "Table already has an enabled stream: TableName: %.*s",
                      SLICE_ARG(after->name));
    after->stream = stream_view_from_node(view);
    after->stream_since_ms = update->now_ms;
    return true;
}

static bool disable_stream(struct table_update *update, const struct node *view)
{
    struct table_definition *after = update->after;
    if (view->present)
        return reject(&update->verdict, INVALID_VALUES
                      "If stream is being disabled, then UpdateViewType must not be specified");
    if (after->stream == STREAM_OFF)
        return reject(&update->verdict, "Table has no stream to disable: TableName: %.*s",
                      SLICE_ARG(after->name));
    if (setting_map(after, "replicas").count)
        return reject(&update->verdict,
                      INVALID_VALUES "Disabling Stream is not allowed for a Global Table replica.");
    after->stream = STREAM_OFF;
    return true;
}

static bool change_stream(struct table_update *update)
{
    const struct node *node = node_member(&update->input, UPDATE_STREAM);
    if (!node->present) return true;
    const struct node *view = node_member(node, STREAM_VIEW);
    return node_member(node, STREAM_ENABLED)->truth ? enable_stream(update, view)
                                                    : disable_stream(update, view);
}

static bool change_encryption(struct table_update *update)
{
    const struct node *node = node_member(&update->input, UPDATE_SSE);
    const struct table_definition *before = update->before, *after = update->after;
    if (!node->present) return true;
    if (!define_encryption(&update->verdict, node, update->after)) return false;
    if (!before->encrypted && !after->encrypted)
        return reject(&update->verdict, INVALID_VALUES "Table is already encrypted by default");
    if (after->kms_key.len && slice_equal(before->kms_key, after->kms_key))
        return reject(&update->verdict,
                      INVALID_VALUES "Table is already encrypted with given KMSMasterKeyId. Use "
                                     "KMSMasterKeyId parameter if you want to change Master Key");
    return true;
}

/* A table without a class is standard, and is not given one by saying so. */
static void change_class(struct table_update *update)
{
    const struct node *class = node_member(&update->input, UPDATE_CLASS);
    struct table_definition *after = update->after;
    struct slice now = after->table_class.len ? after->table_class : SLICE("STANDARD");
    if (!class->present || slice_equal(class->text, now)) return;
    after->table_class = class->text;
    after->table_class_changed_ms = update->now_ms;
}

/* AttributeDefinitions are a delta: new ones are added, known ones keep their type, and those that are no key
 * any more go. */
static void change_attributes(struct table_update *update, const struct attributes *given)
{
    struct table_definition *after = update->after;
    uint32_t count = after->attribute_count;
    struct attributes merged = {.count = 0};
    enum value_type known;
    merged.list = arena_array(update->verdict.arena, struct key_attribute, count + given->count);
    for (uint32_t i = 0; i < count; i++)
        if (definition_uses(after, after->attributes[i].name))
            merged.list[merged.count++] = after->attributes[i];
    for (uint32_t i = 0; i < given->count; i++) {
        struct slice name = given->list[i].name;
        if (definition_uses(after, name) && !table_attribute_type(after, name, &known))
            merged.list[merged.count++] = given->list[i];
    }
    sort_attributes(&merged);
    after->attributes = merged.list;
    after->attribute_count = merged.count;
}

/* The service replicates through a stream, and begins one where there is none. */
static bool change_replicas(struct table_update *update)
{
    struct table_definition *after = update->after;
    if (!apply_replica_updates(&update->verdict, update->api, node_member(&update->input, UPDATE_REPLICAS),
                               after))
        return false;
    if (after->stream != STREAM_OFF || !setting_map(after, "replicas").count) return true;
    after->stream = STREAM_NEW_AND_OLD_IMAGES;
    after->stream_since_ms = update->now_ms;
    return true;
}

/* ---- the operation ---- */

static bool change_table(struct table_update *update)
{
    const struct node *indexes = node_member(&update->input, UPDATE_INDEXES);
    const struct node *protected = node_member(&update->input, UPDATE_PROTECTED);
    const struct node *vectors = node_member(&update->input, UPDATE_VECTORS);
    struct attributes given = {0};
    if (builds_indexes(indexes) && vectors->count) return reject_online_index(&update->verdict);
    if ((builds_indexes(indexes) || vectors->count) &&
        !define_attributes(&update->verdict, node_member(&update->input, UPDATE_ATTRIBUTES), &given))
        return false;
    if (!change_throughput(update) || !apply_index_updates(update, indexes, &given) ||
        !apply_vector_updates(update, vectors, &given) ||
        !check_vector_billing(&update->verdict, update->after))
        return false;
    if (update->before->on_demand && !update->after->on_demand && !check_index_units(update)) return false;
    if (!check_projected(&update->verdict, update->after) || !change_stream(update) ||
        !change_encryption(update) || !change_replicas(update))
        return false;
    change_class(update);
    if (protected->present) update->after->deletion_protected = protected->truth;
    change_attributes(update, &given);
    return true;
}

static void update_table_apply(struct commit *commit, struct batch *batch)
{
    struct table_update *update = call_of_commit(commit)->state;
    struct table *table = engine_table_in_batch(batch, update->name);
    if (!table) {
        reject_as(&update->verdict, "ResourceNotFoundException",
                  "Requested resource not found: Table: %.*s not found", SLICE_ARG(update->name));
        return;
    }
    update->table = table;
    update->before = table_definition_copy(update->verdict.arena, &table->definition);
    update->after = table_definition_copy(update->verdict.arena, &table->definition);
    update->items = atomic_load(&table->counts->items);
    update->bytes = atomic_load(&table->counts->bytes);
    if (!change_table(update)) return;
    engine_table_replace(batch, update->after);
    update->after->stream_since_ms = engine_table_in_batch(batch, update->name)->definition.stream_since_ms;
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct table_update *update = arena_new(call->arena, struct table_update);
    update->input = *input;
    update->verdict.arena = call->arena;
    update->api = call->api;
    update->now_ms = engine_now_ms(call->api->engine);
    if (!table_name_resolve(call, node_member(input, UPDATE_NAME), &update->name)) return;
    check_request(&update->verdict, input);
    if (!verdict_tell(call, &update->verdict)) return;
    call->state = update;
    call->commit.apply = update_table_apply;
    call->is_write = true;
}

/* The changes that the service makes at once, or under a status of their own, leave the table ACTIVE. */
static bool keeps_active(const struct node *input)
{
    const struct node *indexes = node_member(input, UPDATE_INDEXES);
    for (unsigned member = UPDATE_BILLING_MODE; member <= UPDATE_REPLICAS; member++) {
        bool quiet = member == UPDATE_SSE || member == UPDATE_PROTECTED || member == UPDATE_ON_DEMAND ||
                     member == UPDATE_WARM || (member == UPDATE_INDEXES && !builds_indexes(indexes));
        if (!quiet && node_member(input, member)->present) return false;
    }
    return !is_given(input, UPDATE_VECTORS);
}

static void update_finish(struct api_call *call)
{
    const struct table_update *update = call->state;
    if (!verdict_tell(call, &update->verdict)) return;
    buf_text(call->reply, "{\"TableDescription\":");
    table_describe(call->reply,
                   &(struct description){.api = call->api,
                                         .definition = update->after,
                                         .before = update->before,
                                         .status = keeps_active(&update->input) ? "ACTIVE" : "UPDATING",
                                         .changes_warm = is_given(&update->input, UPDATE_WARM),
                                         .changes_encryption = is_given(&update->input, UPDATE_SSE),
                                         .items = update->items,
                                         .bytes = update->bytes,
                                         .now_ms = update->now_ms});
    buf_byte(call->reply, '}');
}

const struct operation operation_UpdateTable = {
    .name = TEXT("UpdateTable"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};
