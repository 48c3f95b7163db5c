/* The shapes of the requests about tables, and verdicts. Members stand in the order in which the service
 * checks them. */
#include "api/tables.h"
#include "base/fail.h"

/* ---- attributes and keys ---- */

static const char *const attribute_types[] = {"B", "N", "S", NULL};
static const char *const key_types[] = {"HASH", "RANGE", NULL};

static const struct shape shape_key_name = STRING_SHAPE_SIZED(1, LIMIT_KEY_NAME_BYTES);
static const struct shape shape_attribute_type = ENUM_SHAPE(attribute_types);
static const struct shape shape_key_type = ENUM_SHAPE(key_types);

static const struct shape_member attribute_members[] = {
    [ATTRIBUTE_TYPE] = REQUIRED("AttributeType", shape_attribute_type),
    [ATTRIBUTE_NAME] = REQUIRED("AttributeName", shape_key_name),
};
static const struct shape shape_attribute = STRUCT_SHAPE("AttributeDefinition", attribute_members);
const struct shape shape_attribute_definitions = LIST_SHAPE(shape_attribute);

static const struct shape_member key_members[] = {
    [KEY_NAME] = REQUIRED("AttributeName", shape_key_name),
    [KEY_TYPE] = REQUIRED("KeyType", shape_key_type),
};
static const struct shape shape_key_element = STRUCT_SHAPE("KeySchemaElement", key_members);
const struct shape shape_key_schema = LIST_SHAPE_SIZED(shape_key_element, 1, 2);
static const struct shape shape_global_keys = LIST_SHAPE_SIZED(shape_key_element, 1, 2 * INDEX_KEY_PARTS);

/* ---- throughput ---- */

static const struct shape shape_unit = {.kind = SHAPE_LONG, .has_min = true, .min = 1};
static const struct shape_member units_members[] = {
    [UNITS_WRITE] = REQUIRED("WriteCapacityUnits", shape_unit),
    [UNITS_READ] = REQUIRED("ReadCapacityUnits", shape_unit),
};
const struct shape shape_units = STRUCT_SHAPE("ProvisionedThroughput", units_members);

static const struct shape_member on_demand_members[] = {
    [ON_DEMAND_READ] = MEMBER("MaxReadRequestUnits", shape_long),
    [ON_DEMAND_WRITE] = MEMBER("MaxWriteRequestUnits", shape_long),
};
const struct shape shape_on_demand = STRUCT_SHAPE("OnDemandThroughput", on_demand_members);

static const struct shape_member warm_members[] = {
    [WARM_READ] = MEMBER("ReadUnitsPerSecond", shape_long),
    [WARM_WRITE] = MEMBER("WriteUnitsPerSecond", shape_long),
};
const struct shape shape_warm = STRUCT_SHAPE("WarmThroughput", warm_members);

static const char *const billing_modes[] = {"PROVISIONED", "PAY_PER_REQUEST", NULL};
const struct shape shape_billing_mode = ENUM_SHAPE(billing_modes);

/* ---- indexes ---- */

static const char *const projection_types[] = {"ALL", "INCLUDE", "KEYS_ONLY", NULL};
static const struct shape shape_projection_type = ENUM_SHAPE(projection_types);
static const struct shape shape_non_key = LIST_SHAPE_SIZED(shape_key_name, 1, LIMIT_INDEX_NON_KEY);
static const struct shape_member projection_members[] = {
    [PROJECTION_TYPE] = MEMBER("ProjectionType", shape_projection_type),
    [PROJECTION_NON_KEY] = MEMBER("NonKeyAttributes", shape_non_key),
};
const struct shape shape_projection = STRUCT_SHAPE("Projection", projection_members);

static const struct shape_member local_members[] = {
    [LOCAL_NAME] = REQUIRED("IndexName", shape_index_name),
    [LOCAL_KEYS] = REQUIRED("KeySchema", shape_key_schema),
    [LOCAL_PROJECTION] = REQUIRED("Projection", shape_projection),
};
static const struct shape shape_local_index = STRUCT_SHAPE("LocalSecondaryIndex", local_members);
const struct shape shape_local_indexes = LIST_SHAPE(shape_local_index);

static const struct shape_member global_members[] = {
    [GLOBAL_NAME] = REQUIRED("IndexName", shape_index_name),
    [GLOBAL_PROJECTION] = REQUIRED("Projection", shape_projection),
    [GLOBAL_UNITS] = MEMBER("ProvisionedThroughput", shape_units),
    [GLOBAL_KEYS] = REQUIRED("KeySchema", shape_global_keys),
    [GLOBAL_ON_DEMAND] = MEMBER("OnDemandThroughput", shape_on_demand),
    [GLOBAL_WARM] = MEMBER("WarmThroughput", shape_warm),
};
static const struct shape shape_global_index = STRUCT_SHAPE("GlobalSecondaryIndex", global_members);
const struct shape shape_global_indexes = LIST_SHAPE(shape_global_index);
const struct shape shape_global_index_create = STRUCT_SHAPE("CreateGlobalSecondaryIndexAction",
                                                            global_members);

/* ---- the rest of a table ---- */

static const char *const stream_views[] = {"OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE", NULL};
static const struct shape shape_stream_view = ENUM_SHAPE(stream_views);
static const struct shape_member stream_members[] = {
    [STREAM_ENABLED] = REQUIRED("StreamEnabled", shape_bool),
    [STREAM_VIEW] = MEMBER("StreamViewType", shape_stream_view),
};
const struct shape shape_stream = STRUCT_SHAPE("StreamSpecification", stream_members);

static const char *const sse_types[] = {"AES256", "KMS", NULL};
static const struct shape shape_sse_type = ENUM_SHAPE(sse_types);
static const struct shape shape_kms_key = {.kind = SHAPE_STRING, .has_min = true, .min = 1};
static const struct shape_member sse_members[] = {
    [SSE_ENABLED] = MEMBER("Enabled", shape_bool),
    [SSE_TYPE] = MEMBER("SSEType", shape_sse_type),
    [SSE_KEY] = MEMBER("KMSMasterKeyId", shape_kms_key),
};
const struct shape shape_sse = STRUCT_SHAPE("SSESpecification", sse_members);

static const struct shape_member tag_members[] = {
    [TAG_KEY] = MEMBER("Key", shape_string),
    [TAG_VALUE] = MEMBER("Value", shape_string),
};
static const struct shape shape_tag = STRUCT_SHAPE("Tag", tag_members);
const struct shape shape_tags = LIST_SHAPE(shape_tag);

const struct shape shape_unsupported_struct = {.kind = SHAPE_STRUCT, .type_name = "Unsupported"};
const struct shape shape_unsupported_list = LIST_SHAPE(shape_unsupported_struct);

/* ---- verdicts ---- */

static bool settle(struct verdict *verdict, const char *short_name, const char *format, va_list args)
{
    ensure(!verdict->error);
    verdict->error = short_name;
    verdict->message = arena_vprintf(verdict->arena, format, args);
    return false;
}

bool reject(struct verdict *verdict, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    settle(verdict, "ValidationException", format, args);
    va_end(args);
    return false;
}

bool reject_as(struct verdict *verdict, const char *short_name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    settle(verdict, short_name, format, args);
    va_end(args);
    return false;
}

bool verdict_tell(struct api_call *call, const struct verdict *verdict)
{
    return !verdict->error || refuse_text(call, verdict->error, verdict->message);
}
