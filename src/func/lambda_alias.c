/* Aliases: names for versions, also for two at once by weight. */
#include "base/limits.h"
#include "func/lambda.h"

static bool is_number(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    return text.len != 0;
}

static const struct shape shape_number = {.kind = SHAPE_STRING,
                                          .has_min = true,
                                          .min = 1,
                                          .has_max = true,
                                          .max = 1024,
                                          .matches = is_number,
                                          .pattern = "[0-9]+"};
static const struct shape shape_weight = {
    .kind = SHAPE_DOUBLE, .has_min = true, .min = 0, .has_max = true, .max = 1};
static const struct shape shape_weights = {.kind = SHAPE_MAP, .key = &shape_number, .of = &shape_weight};
static const struct field routing_fields[] = {FIELD("AdditionalVersionWeights", shape_weights)};
static const struct shape shape_routing = STRUCT_OF(routing_fields);

enum {
    ALIAS_FUNCTION,
    ALIAS_NAME,
    ALIAS_VERSION,
    ALIAS_DESCRIPTION,
    ALIAS_ROUTING,
    ALIAS_REVISION,
    ALIAS_MEMBERS
};

static const struct field create_fields[ALIAS_MEMBERS] = {
    [ALIAS_FUNCTION] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [ALIAS_NAME] = REQUIRED("Name", lambda_shape_alias),
    [ALIAS_VERSION] = REQUIRED("FunctionVersion", lambda_shape_version),
    [ALIAS_DESCRIPTION] = FIELD("Description", lambda_shape_description),
    [ALIAS_ROUTING] = FIELD("RoutingConfig", shape_routing),
    [ALIAS_REVISION] = FIELD("RevisionId", lambda_shape_text),
};

static const struct field update_fields[ALIAS_MEMBERS] = {
    [ALIAS_FUNCTION] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [ALIAS_NAME] = PATH_FIELD("Name", lambda_shape_alias, 1),
    [ALIAS_VERSION] = FIELD("FunctionVersion", lambda_shape_version),
    [ALIAS_DESCRIPTION] = FIELD("Description", lambda_shape_description),
    [ALIAS_ROUTING] = FIELD("RoutingConfig", shape_routing),
    [ALIAS_REVISION] = FIELD("RevisionId", lambda_shape_text),
};

static const struct field name_fields[] = {
    [ALIAS_FUNCTION] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [ALIAS_NAME] = PATH_FIELD("Name", lambda_shape_alias, 1),
};

struct aliasing {
    struct func *func;
    const struct node *nodes;
};

static bool refuse(struct rest_call *call, const char *message)
{
    lambda_error(call, 400, "InvalidParameterValueException", "%s", message);
    return false;
}

static void alias_put(struct buf *out, struct func *func, struct slice function, const struct part *part,
                      struct arena *arena)
{
    struct slice name = part_suffix(part, PART_ALIAS);
    buf_text(out, "{\"AliasArn\":");
    json_put_string(out, lambda_arn(func, arena, function, name));
    buf_text(out, ",\"Name\":");
    json_put_string(out, name);
    document_put_more(out, &part->document);
    buf_byte(out, '}');
}

/* ---- what an alias must satisfy ---- */

static bool version_is_there(struct func *func, struct rest_call *call, const struct entry *entry,
                             struct slice version)
{
    const struct part *part = entry_part(entry, version);
    if (part && part_is_version(part)) return true;
    lambda_not_found(func, call, entry->name, version);
    return false;
}

static bool check_routing(struct func *func, struct rest_call *call, const struct entry *entry,
                          const struct node *routing, struct slice version)
{
    if (!routing->present || !routing->nodes[0].count) return true;
    const struct node *weights = &routing->nodes[0];
    if (weights->count > 1)
        return refuse(call, "Number of items in AdditionalVersionWeights cannot be greater than 1");
    if (slice_equal(weights->keys[0], version)) {
        lambda_error(call, 400, "InvalidParameterValueException",
                     "Invalid function version %.*s. Function version %.*s is already included in routing "
                     "configuration.",
                     SLICE_ARG(version), SLICE_ARG(version));
        return false;
    }
    if (slice_equal(version, SLICE(PART_LATEST)))
        return refuse(call, "$LATEST is not supported for an alias pointing to more than 1 version");
    return version_is_there(func, call, entry, weights->keys[0]);
}

/* Sets what was given; false: answered. */
static bool alias_apply(struct func *func, struct rest_call *call, const struct entry *entry,
                        const struct node *nodes, struct document *alias)
{
    if (nodes[ALIAS_VERSION].present)
        document_set_text(alias, "FunctionVersion", nodes[ALIAS_VERSION].text, call->arena);
    struct slice version = document_text(alias, "FunctionVersion", call->arena);
    if (!check_routing(func, call, entry, &nodes[ALIAS_ROUTING], version)) return false;
    if (nodes[ALIAS_VERSION].present && !version_is_there(func, call, entry, version)) return false;
    if (nodes[ALIAS_DESCRIPTION].present)
        document_set_text(alias, "Description", nodes[ALIAS_DESCRIPTION].text, call->arena);
    if (nodes[ALIAS_ROUTING].present) {
        bool is_empty = !nodes[ALIAS_ROUTING].nodes[0].count; /* which takes the second version away */
        document_set(alias, "RoutingConfig",
                     is_empty ? SLICE_NONE : node_json(&nodes[ALIAS_ROUTING], call->arena), call->arena);
    }
    document_set_text(alias, "RevisionId", registry_uuid(func->registry, call->arena), call->arena);
    return true;
}

/* ---- CreateAlias, UpdateAlias ---- */

static struct slice part_of_alias(struct rest_call *call, struct slice name)
{
    return arena_printf(call->arena, PART_ALIAS "%.*s", SLICE_ARG(name));
}

static enum step create_step(struct rest_call *call, struct change *change, void *context)
{
    const struct aliasing *aliasing = context;
    const struct node *nodes = aliasing->nodes;
    struct slice name = nodes[ALIAS_NAME].text;
    struct document alias = {0};
    if (!change->before) {
        lambda_not_found(aliasing->func, call, change->name, nodes[ALIAS_VERSION].text);
        return STEP_ANSWERED;
    }
    if (entry_part_of(change->before, PART_ALIAS, name)) {
        lambda_error(call, 409, "ResourceConflictException", "Alias already exists: %.*s",
                     SLICE_ARG(lambda_arn(aliasing->func, call->arena, change->name, name)));
        return STEP_ANSWERED;
    }
    if (change->before->count >= LIMIT_FUNCTION_PARTS) {
        refuse(call, "This function has as many versions and aliases as it may have. Delete some.");
        return STEP_ANSWERED;
    }
    document_set_text(&alias, "Description", SLICE(""), call->arena);
    if (!alias_apply(aliasing->func, call, change->before, nodes, &alias)) return STEP_ANSWERED;
    change_put(change, part_of_alias(call, name), &alias);
    return STEP_COMMIT;
}

static enum step update_step(struct rest_call *call, struct change *change, void *context)
{
    const struct aliasing *aliasing = context;
    struct slice name = aliasing->nodes[ALIAS_NAME].text;
    const struct part *part = change->before ? entry_part_of(change->before, PART_ALIAS, name) : NULL;
    if (!part) {
        lambda_error(call, 404, "ResourceNotFoundException", "Alias not found: %.*s",
                     SLICE_ARG(lambda_arn(aliasing->func, call->arena, change->name, name)));
        return STEP_ANSWERED;
    }
    if (!lambda_revision_fits(call, &aliasing->nodes[ALIAS_REVISION], &part->document)) return STEP_ANSWERED;
    struct document alias = document_copy(&part->document, call->arena);
    if (!alias_apply(aliasing->func, call, change->before, aliasing->nodes, &alias)) return STEP_ANSWERED;
    change_put(change, part->name, &alias);
    return STEP_COMMIT;
}

static void alias_change(struct func *func, struct rest_call *call, const struct field *fields,
                         lambda_step *step, int status)
{
    struct node nodes[ALIAS_MEMBERS];
    struct aliasing aliasing = {func, nodes};
    struct target target;
    struct change change;
    if (!lambda_decode(call, fields, ALIAS_MEMBERS, nodes) ||
        !lambda_whole_target(func, call, &nodes[ALIAS_FUNCTION], &target) ||
        !lambda_change(func, call, &target, step, &aliasing, &change))
        return;
    const struct part *part = change.after ? entry_part_of(change.after, PART_ALIAS, nodes[ALIAS_NAME].text)
                                           : NULL;
    if (part) alias_put(call->reply, func, target.name, part, call->arena);
    bool shown = part != NULL;
    change_free(&change);
    if (shown)
        lambda_done(call, status);
    else
        lambda_not_found(func, call, target.name, nodes[ALIAS_NAME].text); /* deleted by somebody else */
}

void lambda_create_alias(struct func *func, struct rest_call *call)
{
    alias_change(func, call, create_fields, create_step, 201);
}

void lambda_update_alias(struct func *func, struct rest_call *call)
{
    alias_change(func, call, update_fields, update_step, 200);
}

/* ---- GetAlias, DeleteAlias ---- */

void lambda_get_alias(struct func *func, struct rest_call *call)
{
    struct node nodes[ALIAS_NAME + 1];
    struct target target;
    bool failed;
    if (!lambda_decode(call, name_fields, FIELD_COUNT(name_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[ALIAS_FUNCTION], &target))
        return;
    struct slice name = nodes[ALIAS_NAME].text;
    struct entry *entry = registry_look(func->registry, target.name, &failed);
    const struct part *part = entry ? entry_part_of(entry, PART_ALIAS, name) : NULL;
    if (part) alias_put(call->reply, func, target.name, part, call->arena);
    bool shown = part != NULL;
    entry_release(entry);
    if (shown)
        lambda_done(call, 200);
    else if (failed)
        lambda_unavailable(call);
    else
        lambda_error(call, 404, "ResourceNotFoundException", "Cannot find alias arn: %.*s",
                     SLICE_ARG(lambda_arn(func, call->arena, target.name, name)));
}

static enum step delete_step(struct rest_call *call, struct change *change, void *context)
{
    const struct aliasing *aliasing = context;
    struct slice name = aliasing->nodes[ALIAS_NAME].text;
    if (!change->before) {
        lambda_not_found(aliasing->func, call, change->name, SLICE_NONE);
        return STEP_ANSWERED;
    }
    static const char *const prefixes[] = {PART_ALIAS, PART_ASYNC, PART_POLICY, PART_RUNTIME};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const struct part *part = entry_part_of(change->before, prefixes[i], name);
        if (part) change_delete(change, part->name);
    }
    return change->count ? STEP_COMMIT : STEP_NOTHING;
}

void lambda_delete_alias(struct func *func, struct rest_call *call)
{
    struct node nodes[ALIAS_NAME + 1];
    struct aliasing aliasing = {func, nodes};
    struct target target;
    struct change change;
    if (!lambda_decode(call, name_fields, FIELD_COUNT(name_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[ALIAS_FUNCTION], &target) ||
        !lambda_change(func, call, &target, delete_step, &aliasing, &change))
        return;
    change_free(&change);
    lambda_done(call, 204);
}

/* ---- ListAliases ---- */

enum { LIST_FUNCTION, LIST_VERSION, LIST_MARKER, LIST_MAX, LIST_MEMBERS };

static const struct field list_fields[] = {
    [LIST_FUNCTION] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [LIST_VERSION] = QUERY_FIELD("FunctionVersion", lambda_shape_version),
    [LIST_MARKER] = QUERY_FIELD("Marker", lambda_shape_text),
    [LIST_MAX] = QUERY_FIELD("MaxItems", lambda_shape_max_items),
};

/* Whether the list shows the part: an alias, behind the marker, of the version that was asked for. */
static bool is_listed(const struct part *part, const struct node *nodes, struct arena *arena)
{
    struct slice name = part_suffix(part, PART_ALIAS);
    if (!name.data) return false;
    if (nodes[LIST_MARKER].present && slice_compare(name, nodes[LIST_MARKER].text) <= 0) return false;
    return !nodes[LIST_VERSION].present ||
           slice_equal(document_text(&part->document, "FunctionVersion", arena), nodes[LIST_VERSION].text);
}

void lambda_list_aliases(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    struct target target;
    struct slice last = SLICE_NONE;
    uint32_t shown = 0;
    bool has_more = false;
    if (!lambda_decode(call, list_fields, FIELD_COUNT(list_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[LIST_FUNCTION], &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    int64_t max = nodes[LIST_MAX].present && nodes[LIST_MAX].integer < 50 ? nodes[LIST_MAX].integer : 50;
    buf_text(call->reply, "{\"Aliases\":[");
    for (uint32_t i = 0; i < entry->count && !has_more; i++) {
        if (!is_listed(&entry->parts[i], nodes, call->arena)) continue;
        has_more = shown == max;
        if (has_more) break;
        if (shown++) buf_byte(call->reply, ',');
        alias_put(call->reply, func, target.name, &entry->parts[i], call->arena);
        last = part_suffix(&entry->parts[i], PART_ALIAS);
    }
    buf_byte(call->reply, ']');
    if (has_more) {
        buf_text(call->reply, ",\"NextMarker\":");
        json_put_string(call->reply, last);
    }
    buf_byte(call->reply, '}');
    entry_release(entry);
    lambda_done(call, 200);
}
