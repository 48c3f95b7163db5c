/* CreateTable. The request is turned into a definition here; whether the name is free is decided by the
 * writer. The answer says CREATING, as the service's does; the table can be used at once. */
#include "api/policy_document.h"
#include "api/tables.h"
#include "api/tags.h"

enum {
    CREATE_ATTRIBUTES,
    CREATE_NAME,
    CREATE_BILLING_MODE,
    CREATE_UNITS,
    CREATE_KEYS,
    CREATE_GLOBAL,
    CREATE_LOCAL,
    CREATE_STREAM,
    CREATE_SSE,
    CREATE_TAGS,
    CREATE_CLASS,
    CREATE_PROTECTED,
    CREATE_ON_DEMAND,
    CREATE_WARM,
    CREATE_POLICY,
    CREATE_VECTORS,
    CREATE_GLOBAL_SOURCE,
    CREATE_GLOBAL_MODE,
};

static const struct shape_member create_members[] = {
    [CREATE_ATTRIBUTES] = REQUIRED("AttributeDefinitions", shape_attribute_definitions),
    [CREATE_NAME] = REQUIRED("TableName", shape_table_name_strict),
    [CREATE_BILLING_MODE] = MEMBER("BillingMode", shape_billing_mode),
    [CREATE_UNITS] = MEMBER("ProvisionedThroughput", shape_units),
    [CREATE_KEYS] = REQUIRED("KeySchema", shape_key_schema),
    [CREATE_GLOBAL] = MEMBER("GlobalSecondaryIndexes", shape_global_indexes),
    [CREATE_LOCAL] = MEMBER("LocalSecondaryIndexes", shape_local_indexes),
    [CREATE_STREAM] = MEMBER("StreamSpecification", shape_stream),
    [CREATE_SSE] = MEMBER("SSESpecification", shape_sse),
    [CREATE_TAGS] = MEMBER("Tags", shape_tags),
    [CREATE_CLASS] = MEMBER("TableClass", shape_string),
    [CREATE_PROTECTED] = MEMBER("DeletionProtectionEnabled", shape_bool),
    [CREATE_ON_DEMAND] = MEMBER("OnDemandThroughput", shape_on_demand),
    [CREATE_WARM] = MEMBER("WarmThroughput", shape_warm),
    [CREATE_POLICY] = MEMBER("ResourcePolicy", shape_string),
    [CREATE_VECTORS] = MEMBER("VectorIndexes", shape_vector_indexes),
    [CREATE_GLOBAL_SOURCE] = MEMBER("GlobalTableSourceArn", shape_string),
    [CREATE_GLOBAL_MODE] = MEMBER("GlobalTableSettingsReplicationMode", shape_string),
};
static const struct shape create_shape = STRUCT_SHAPE("CreateTableInput", create_members);

struct table_creation {
    struct table_definition definition;
    enum table_change_result result;
};

/* ---- the parts of the definition ---- */

static bool define_billing(struct verdict *verdict, const struct node *input, struct table_definition *out)
{
    const struct node *units = node_member(input, CREATE_UNITS);
    out->throughput = throughput_none;
    out->on_demand = node_says(node_member(input, CREATE_BILLING_MODE), "PAY_PER_REQUEST");
    if (out->on_demand && units->present)
        return reject(verdict,
                      INVALID_VALUES "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                                     "BillingMode is PAY_PER_REQUEST");
    if (!out->on_demand && !units->present)
        return reject(verdict,
                      INVALID_VALUES "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
                                     "BillingMode is PROVISIONED");
    if (out->on_demand) out->on_demand_since_ms = out->created_ms;
    take_units(units, &out->throughput);
    return check_units(verdict, units);
}

static bool define_schema(struct verdict *verdict, const struct node *input, struct table_definition *out)
{
    struct attributes attributes;
    if (!define_attributes(verdict, node_member(input, CREATE_ATTRIBUTES), &attributes)) return false;
    if (!define_keys(verdict, node_member(input, CREATE_KEYS), &attributes, out)) return false;
    out->attributes = attributes.list;
    out->attribute_count = attributes.count;
    return define_indexes(verdict, node_member(input, CREATE_LOCAL), node_member(input, CREATE_GLOBAL),
                          node_member(input, CREATE_VECTORS), out);
}

static bool define_limits(struct verdict *verdict, const struct node *input, struct table_definition *out)
{
    struct throughput_rules rules = {.on_demand = out->on_demand};
    return define_on_demand(verdict, node_member(input, CREATE_ON_DEMAND), &rules, &out->throughput) &&
           define_warm(verdict, node_member(input, CREATE_WARM), &rules, &out->throughput);
}

static bool define_stream(struct verdict *verdict, const struct node *node, struct table_definition *out)
{
    if (!node->present) return true;
    const struct node *view = node_member(node, STREAM_VIEW);
    if (!node_is_true(node_member(node, STREAM_ENABLED))) {
        if (!view->present) return true;
        return reject(verdict, INVALID_VALUES
                      "Table is being created with a stream disabled, UpdateViewType should not "
                      "be specified");
    }
    if (!view->present)
        return reject(verdict, INVALID_VALUES
                      "Table is being created with a stream enabled, UpdateViewType is required");
    out->stream = stream_view_from_node(view);
    out->stream_since_ms = out->created_ms;
    return true;
}

static bool check_supported(struct verdict *verdict, const struct node *input)
{
    for (unsigned member = CREATE_GLOBAL_SOURCE; member <= CREATE_GLOBAL_MODE; member++)
        if (node_member(input, member)->present)
            return reject(verdict, INVALID_VALUES "%.*s is not supported",
                          SLICE_ARG(create_members[member].name));
    return true;
}

static bool define_policy(struct verdict *verdict, const struct node *policy, struct table_definition *out)
{
    return !policy->present || policy_canonical(verdict, policy->text, &out->resource_policy);
}

static bool define_table(struct verdict *verdict, const struct node *input, struct table_definition *out)
{
    const struct node *class = node_member(input, CREATE_CLASS), *tags = node_member(input, CREATE_TAGS);
    if (!check_table_class(verdict, class) || !define_billing(verdict, input, out) ||
        !define_schema(verdict, input, out) || !define_limits(verdict, input, out) ||
        !define_stream(verdict, node_member(input, CREATE_STREAM), out) ||
        !define_encryption(verdict, node_member(input, CREATE_SSE), out) ||
        !check_tags(verdict, tags) || !merge_tags(verdict, tags, out) ||
        !define_policy(verdict, node_member(input, CREATE_POLICY), out) || !check_supported(verdict, input))
        return false;
    out->deletion_protected = node_is_true(node_member(input, CREATE_PROTECTED));
    out->table_class = class->text;
    return true;
}

/* ---- the operation ---- */

static void create_apply(struct commit *commit, struct batch *batch)
{
    struct table_creation *creation = call_of_commit(commit)->state;
    struct table_definition *definition = &creation->definition;
    creation->result = engine_table_create(batch, definition);
    if (creation->result != TABLE_CHANGED) return;
    definition->stream_since_ms = engine_table_in_batch(batch, definition->name)->definition.stream_since_ms;
}

const struct shape shape_table_creation = STRUCT_SHAPE("TableCreationParameters", create_members);

bool table_creation_define(struct api_call *call, const struct node *node, struct table_definition *out)
{
    static const unsigned foreign[] = {CREATE_LOCAL,     CREATE_STREAM, CREATE_TAGS,  CREATE_CLASS,
                                       CREATE_PROTECTED, CREATE_WARM,   CREATE_POLICY};
    struct verdict verdict = {.arena = call->arena};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) node->members[foreign[i]].present = false;
    if (!table_name_resolve(call, node_member(node, CREATE_NAME), &out->name)) return false;
    out->created_ms = engine_now_ms(call->api->engine);
    define_table(&verdict, node, out);
    if (!verdict_tell(call, &verdict)) return false;
    out->id = engine_new_id(call->api->engine, call->arena);
    return true;
}

static void create_begin(struct api_call *call, const struct node *input)
{
    struct verdict verdict = {.arena = call->arena};
    struct table_creation *creation = arena_new(call->arena, struct table_creation);
    struct table_definition *definition = &creation->definition;
    if (!table_name_resolve(call, node_member(input, CREATE_NAME), &definition->name)) return;
    definition->created_ms = engine_now_ms(call->api->engine);
    define_table(&verdict, input, definition);
    if (!verdict_tell(call, &verdict)) return;
    definition->id = engine_new_id(call->api->engine, call->arena);
    call->state = creation;
    call->commit.apply = create_apply;
    call->is_write = true;
}

static void create_finish(struct api_call *call)
{
    const struct table_creation *creation = call->state;
    const struct table_definition *definition = &creation->definition;
    if (creation->result == TABLE_EXISTS) {
        refuse(call, "ResourceInUseException", "Table already exists: %.*s", SLICE_ARG(definition->name));
    } else if (creation->result == TABLE_TOO_MANY) {
        refuse(call, "LimitExceededException",
               "Subscriber limit exceeded: There is a limit of %d tables per subscriber", LIMIT_TABLES);
    } else {
        buf_text(call->reply, "{\"TableDescription\":");
        table_describe(call->reply, &(struct description){.api = call->api,
                                                          .definition = definition,
                                                          .status = "CREATING",
                                                          .now_ms = definition->created_ms});
        buf_byte(call->reply, '}');
    }
}

const struct operation operation_CreateTable = {
    .name = TEXT("CreateTable"),
    .input = &create_shape,
    .begin = create_begin,
    .finish = create_finish,
};
