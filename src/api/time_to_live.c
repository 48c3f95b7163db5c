/* UpdateTimeToLive and DescribeTimeToLive. The engine does the rest: it indexes the items by their time of
 * expiry and deletes those that are over. The service takes one change an hour; here there may be any number.
 */
#include "api/settings.h"

enum { UPDATE_NAME, UPDATE_SPECIFICATION };
enum { SPECIFICATION_ENABLED, SPECIFICATION_ATTRIBUTE };

static const struct shape shape_attribute = STRING_SHAPE_SIZED(1, LIMIT_KEY_NAME_BYTES);
static const struct shape_member specification_members[] = {
    [SPECIFICATION_ENABLED] = REQUIRED("Enabled", shape_bool),
    [SPECIFICATION_ATTRIBUTE] = REQUIRED("AttributeName", shape_attribute),
};
static const struct shape shape_specification = STRUCT_SHAPE("TimeToLiveSpecification",
                                                             specification_members);
static const struct shape_member update_members[] = {
    [UPDATE_NAME] = REQUIRED("TableName", shape_table_name_strict),
    [UPDATE_SPECIFICATION] = REQUIRED("TimeToLiveSpecification", shape_specification),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateTimeToLiveInput", update_members);

static const struct shape_member describe_members[] = {REQUIRED("TableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeTimeToLiveInput", describe_members);

static bool apply(struct table_change *change)
{
    const struct node *specification = node_member(&change->input, UPDATE_SPECIFICATION);
    struct slice attribute = node_member(specification, SPECIFICATION_ATTRIBUTE)->text;
    bool enable = node_member(specification, SPECIFICATION_ENABLED)->truth;
    struct slice *current = &change->definition->ttl_attribute;
    if (!current->len && !enable) return reject(&change->verdict, "TimeToLive is already disabled");
    if (current->len && !slice_equal(*current, attribute))
        return reject(&change->verdict,
                      "TimeToLive is active on a different AttributeName: current AttributeName is %.*s",
                      SLICE_ARG(*current));
    if (current->len && enable) return reject(&change->verdict, "TimeToLive is already enabled");
    *current = enable ? attribute : SLICE_NONE;
    return true;
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply;
    table_change_submit_named(call, input, node_member(input, UPDATE_NAME), change);
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (!change) return;
    const struct node *specification = node_member(&change->input, UPDATE_SPECIFICATION);
    buf_printf(call->reply, "{\"TimeToLiveSpecification\":{\"Enabled\":%s",
               node_member(specification, SPECIFICATION_ENABLED)->truth ? "true" : "false");
    put_text(call->reply, "AttributeName", node_member(specification, SPECIFICATION_ATTRIBUTE)->text);
    buf_text(call->reply, "}}");
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    const struct table *table = find_table_to_manage(call, name);
    if (!table) return;
    struct slice attribute = table->definition.ttl_attribute;
    buf_printf(call->reply, "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"%s\"",
               attribute.len ? "ENABLED" : "DISABLED");
    if (attribute.len) put_text(call->reply, "AttributeName", attribute);
    buf_text(call->reply, "}}");
}

const struct operation operation_UpdateTimeToLive = {
    .name = TEXT("UpdateTimeToLive"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};

const struct operation operation_DescribeTimeToLive = {
    .name = TEXT("DescribeTimeToLive"),
    .input = &describe_shape,
    .begin = describe_begin,
};
