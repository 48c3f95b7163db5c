/* AWS::Lambda::EventSourceMapping, of the streams of tables. The form has the table in place of the stream:
 * a mapping follows its table to its next stream by itself. */
#include <string.h>

#include "deploy/internal.h"

#define MAPPINGS  "/2015-03-31/event-source-mappings"
#define POLLS_MAX 2000

static const struct form_member members[] = {
    {"BatchSize", 'n', "100"},
    {"MaximumBatchingWindowInSeconds", 'n', "0"},
    {"ParallelizationFactor", 'n', "1"},
    {"MaximumRetryAttempts", 'n', "-1"},
    {"MaximumRecordAgeInSeconds", 'n', "-1"},
    {"BisectBatchOnFunctionError", 'b', "false"},
    {"TumblingWindowInSeconds", 'n', "0"},
    {"FunctionResponseTypes", 'l', "[]"},
    {"FilterCriteria", 'j', "{}"},
    {"DestinationConfig", 'j', "{}"},
    {"MaximumRecursionDepth", 'n', "0"},
};
#define MEMBERS (sizeof members / sizeof *members)

/* Of a stream's ARN, a table's, or of a reference to a table that is not made yet: ${Orders.StreamArn}. */
static struct slice table_of(struct deploy *deploy, struct slice source)
{
    if (slice_starts(source, SLICE("${"))) {
        struct slice rest = slice_from(source, 2);
        const struct resource *table = resource_find(deploy, slice_cut(&rest, '.'));
        return table ? slice_of(table->change.name) : source;
    }
    const char *at = memmem(source.data, source.len, ":table/", 7);
    if (!at) return source;
    struct slice rest = slice_from(source, (size_t)(at + 7 - source.data));
    return slice_cut(&rest, '/');
}

static void put_form(struct buf *out, const struct node *mapping, struct slice table, struct slice function,
                     bool is_enabled)
{
    put_string_member(out, "Table", table);
    put_string_member(out, "Function", function);
    put_raw_member(out, "Enabled", is_enabled ? SLICE("true") : SLICE("false"));
    form_put(out, mapping, members, MEMBERS);
}

static struct slice function_of(struct deploy *deploy, struct slice text)
{
    struct slice name, qualifier;
    function_split(text, &name, &qualifier);
    return arena_printf(&deploy->arena, "%.*s%s%.*s", SLICE_ARG(name), qualifier.len ? ":" : "",
                        SLICE_ARG(qualifier));
}

static bool is_of_table(struct slice source)
{
    bool is_foreign = slice_starts(source, SLICE("arn:")) && !slice_contains(source, SLICE(":dynamodb:"));
    return source.len && !is_foreign;
}

static bool want_mapping(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties;
    struct slice source = node_text(given, "EventSourceArn");
    const struct resource *referred = NULL;
    if (slice_starts(source, SLICE("${"))) {
        struct slice rest = slice_from(source, 2);
        referred = resource_find(deploy, slice_cut(&rest, '.'));
    }
    bool is_foreign = referred && referred->kind != &kind_table && referred->kind != &kind_global_table;
    if (is_foreign || !is_of_table(source)) {
        resource->change.reason = "its source is no stream of a table, and others are not read here";
        return true;
    }
    struct slice table = table_of(deploy, source),
                 function = function_of(deploy, node_text(given, "FunctionName"));
    resource->data = arena_printf(&deploy->arena, "%.*s %.*s", SLICE_ARG(function), SLICE_ARG(table)).data;
    put_form(out, given, table, function,
             !(node_is(given, "Enabled", "false") ||
               (node_member(given, "Enabled") && node_member(given, "Enabled")->kind == JSON_FALSE)));
    return true;
}

/* By its id, else by what it reads and calls: there is one for each pair. */
static bool find_mapping(struct deploy *deploy, struct resource *resource, const struct node **found)
{
    const struct node *list;
    struct slice table = slice_of(resource->data ? resource->data : ""), function = slice_cut(&table, ' '),
                 name;
    *found = NULL;
    if (strlen(resource->change.name) == 36 && resource->is_recorded) {
        if (!rest_get(deploy, resource, "lambda",
                      path_with(deploy, MAPPINGS "/%s", slice_of(resource->change.name), SLICE("")), NULL,
                      found))
            return false;
        if (*found && !node_is(*found, "State", "Deleting")) return true;
        *found = NULL;
    }
    if (!function.len) return true;
    struct slice rest = function;
    name = slice_cut(&rest, ':');
    if (!rest_get(deploy, resource, "lambda", MAPPINGS "/",
                  path_with(deploy, "FunctionName=%s", name, SLICE("")), &list))
        return false;
    const struct node *all = node_member(list, "EventSourceMappings");
    for (const struct node *one = all ? all->first : NULL; one; one = one->next) {
        bool is_it = slice_equal(table_of(deploy, node_text(one, "EventSourceArn")), table) &&
                     slice_equal(function_of(deploy, node_text(one, "FunctionArn")), function);
        if (is_it && !node_is(one, "State", "Deleting")) *found = one;
    }
    return true;
}

static bool have_mapping(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *found;
    if (!find_mapping(deploy, resource, &found)) return false;
    resource->described = found;
    if (!found) return true;
    struct slice state = node_text(found, "State");
    bool is_off = slice_equal(state, SLICE("Disabled")) || slice_equal(state, SLICE("Disabling"));
    resource->change.name = deploy_text(deploy, node_text(found, "UUID"));
    put_form(out, found, table_of(deploy, node_text(found, "EventSourceArn")),
             function_of(deploy, node_text(found, "FunctionArn")), !is_off);
    return true;
}

/* Until it is as it should be: then changes start the function. Gone: NULL. */
static bool wait_for_state(struct deploy *deploy, struct resource *resource, const char *state)
{
    const char *path = path_with(deploy, MAPPINGS "/%s", slice_of(resource->change.name), SLICE(""));
    for (unsigned nth = 0; nth < POLLS_MAX; nth++) {
        const struct node *found;
        if (!rest_get(deploy, resource, "lambda", path, NULL, &found)) return false;
        if (state ? node_is(found, "State", state) : !found) return true;
        if (!lease_keep(deploy, 0)) return false;
        deploy->door->pause(deploy->door->context, nth);
    }
    return deploy_fail(deploy, "%.*s: the mapping %s is still not %s", SLICE_ARG(resource->change.id),
                       resource->change.name, state ? state : "gone");
}

static const char *wanted_state(const struct resource *resource)
{
    return node_is_true(resource->want, "Enabled") ? "Enabled" : "Disabled";
}

static bool create_mapping(struct deploy *deploy, struct resource *resource)
{
    struct slice position = node_text(resource->properties, "StartingPosition");
    struct buf body = {0};
    buf_byte(&body, '{');
    put_string_member(&body, "EventSourceArn", node_text(resource->want, "Table"));
    put_string_member(&body, "FunctionName", node_text(resource->want, "Function"));
    put_string_member(&body, "StartingPosition", position.len ? position : SLICE("LATEST"));
    put_name(&body, "Enabled");
    node_put(&body, node_member(resource->want, "Enabled"));
    form_put(&body, resource->want, members, MEMBERS);
    buf_byte(&body, '}');
    if (!rest_send(deploy, resource, "lambda", "POST", MAPPINGS "/", &body, &resource->described))
        return false;
    resource->change.name = deploy_text(deploy, node_text(resource->described, "UUID"));
    return wait_for_state(deploy, resource, wanted_state(resource));
}

static bool update_mapping(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct node *value = node_member(resource->want, members[i].name);
        if (value && resource_differs(resource, members[i].name))
            put_name(&body, members[i].name), node_put(&body, value);
    }
    if (resource_differs(resource, "Function"))
        put_string_member(&body, "FunctionName", node_text(resource->want, "Function"));
    if (resource_differs(resource, "Enabled"))
        put_name(&body, "Enabled"), node_put(&body, node_member(resource->want, "Enabled"));
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "lambda", "PUT",
                     path_with(deploy, MAPPINGS "/%s", slice_of(resource->change.name), SLICE("")), &body,
                     NULL) &&
           wait_for_state(deploy, resource, wanted_state(resource));
}

static bool remove_mapping(struct deploy *deploy, struct resource *resource)
{
    const struct node *found;
    if (!find_mapping(deploy, resource, &found)) return false;
    if (!found) return true;
    resource->change.name = deploy_text(deploy, node_text(found, "UUID"));
    return rest_send(deploy, resource, "lambda", "DELETE",
                     path_with(deploy, MAPPINGS "/%s", slice_of(resource->change.name), SLICE("")), NULL,
                     NULL) &&
           wait_for_state(deploy, resource, NULL);
}

static struct slice mapping_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    (void)deploy;
    bool is_known = resource->described && (!name.len || slice_equal(name, SLICE("Id")));
    return is_known ? slice_of(resource->change.name) : SLICE_NONE;
}

const struct kind kind_mapping = {
    .type = "AWS::Lambda::EventSourceMapping",
    .known =
        "EventSourceArn FunctionName StartingPosition Enabled BatchSize MaximumBatchingWindowInSeconds "
        "ParallelizationFactor MaximumRetryAttempts MaximumRecordAgeInSeconds BisectBatchOnFunctionError "
        "TumblingWindowInSeconds FunctionResponseTypes FilterCriteria DestinationConfig MaximumRecursionDepth",
    .is_numbered = true,
    .replacing = "Table",
    .want = want_mapping,
    .have = have_mapping,
    .create = create_mapping,
    .update = update_mapping,
    .remove = remove_mapping,
    .attribute = mapping_attribute,
};
