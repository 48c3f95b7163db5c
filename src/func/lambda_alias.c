/* Aliases: names for versions, also for two at once by weight. */
#include "base/limits.h"
#include "func/lambda.h"

static const struct shape shape_number = {TEXT_BETWEEN(1, 1024), .matches = text_is_number,
                                          .pattern = "[0-9]+"};
static const struct shape shape_weight = {
    .kind = SHAPE_DOUBLE, .has_min = true, .min = 0, .has_max = true, .max = 1};
static const struct shape shape_weights = {.kind = SHAPE_MAP, .key = &shape_number, .of = &shape_weight};
STRUCT_SHAPE(shape_routing, FIELD("AdditionalVersionWeights", shape_weights));

#define ALIAS_REST(X)                                                                                        \
    X(ALIAS_DESCRIPTION, FIELD("Description", lambda_shape_description))                                     \
    X(ALIAS_ROUTING, FIELD("RoutingConfig", shape_routing))                                                  \
    X(ALIAS_REVISION, REVISION_FIELD)
#define ALIAS_CREATE(X)                                                                                      \
    X(ALIAS_FUNCTION, NAME_FIELD)                                                                            \
    X(ALIAS_NAME, REQUIRED("Name", lambda_shape_alias))                                                      \
    X(ALIAS_VERSION, REQUIRED("FunctionVersion", lambda_shape_version))                                      \
    ALIAS_REST(X)
#define ALIAS_GET(X)                                                                                         \
    X(ALIAS_FUNCTION, NAME_FIELD)                                                                            \
    X(ALIAS_NAME, PATH_FIELD("Name", lambda_shape_alias, 1))
#define ALIAS_UPDATE(X)                                                                                      \
    ALIAS_GET(X) X(ALIAS_VERSION, FIELD("FunctionVersion", lambda_shape_version)) ALIAS_REST(X)
MEMBERS(ALIAS_CREATE)

static void put_alias(struct buf *out, const struct request *request, const struct entry *entry,
                      const struct part *part)
{
    struct slice name = part_suffix(part, PART_ALIAS);
    compose(out, "%,{'AliasArn':%s,'Name':%s", lambda_arn(request->func, request->arena, entry->name, name),
            name);
    document_put_more(out, &part->document);
    buf_byte(out, '}');
}

/* "Alias not found: arn...", with the given beginning. */
static bool answer_alias(const struct request *request, int status, const char *type, const char *sentence)
{
    struct slice arn = lambda_arn(request->func, request->arena, request->name,
                                  request->nodes[ALIAS_NAME].text);
    return lambda_error(request->call, status, type, "%s: %.*s", sentence, SLICE_ARG(arn));
}

/* ---- what an alias must satisfy ---- */

static bool version_is_there(const struct request *request, const struct entry *entry, struct slice version)
{
    const struct part *part = entry_part(entry, version);
    return (part && part_is_version(part)) || lambda_missing(request, version);
}

static bool check_routing(const struct request *request, const struct entry *entry, struct slice version)
{
    const struct shape_node *routing = &request->nodes[ALIAS_ROUTING];
    if (!routing->present || !routing->nodes[0].count) return true;
    const struct shape_node *weights = &routing->nodes[0];
    if (weights->count > 1)
        return lambda_refuse(request->call,
                             "Number of items in AdditionalVersionWeights cannot be greater than 1");
    if (slice_equal(weights->keys[0], version))
        return lambda_refuse(
            request->call,
            "Invalid function version %.*s. Function version %.*s is already included in routing "
            "configuration.",
            SLICE_ARG(version), SLICE_ARG(version));
    if (slice_equal(version, SLICE(PART_LATEST)))
        return lambda_refuse(request->call,
                             "$LATEST is not supported for an alias pointing to more than 1 version");
    return version_is_there(request, entry, weights->keys[0]);
}

/* Sets what was given. */
static enum step alias_apply(struct request *request, struct change *change, struct document *alias)
{
    const struct shape_node *nodes = request->nodes;
    struct arena *arena = request->arena;
    node_set(alias, "FunctionVersion", &nodes[ALIAS_VERSION], arena);
    struct slice version = document_text(alias, "FunctionVersion", arena);
    if (!check_routing(request, change->before, version)) return STEP_ANSWERED;
    if (nodes[ALIAS_VERSION].present && !version_is_there(request, change->before, version))
        return STEP_ANSWERED;
    node_set(alias, "Description", &nodes[ALIAS_DESCRIPTION], arena);
    if (nodes[ALIAS_ROUTING].present) {
        bool is_empty = !nodes[ALIAS_ROUTING].nodes[0].count; /* which takes the second version away */
        document_set(alias, "RoutingConfig", is_empty ? SLICE_NONE : node_json(&nodes[ALIAS_ROUTING], arena),
                     arena);
    }
    document_set_text(alias, "RevisionId", registry_uuid(change->registry, arena), arena);
    request->part = arena_printf(arena, PART_ALIAS "%.*s", SLICE_ARG(nodes[ALIAS_NAME].text));
    change_put(change, request->part, alias);
    return STEP_COMMIT;
}

/* ---- CreateAlias, UpdateAlias ---- */

static enum step create_step(struct request *request, struct change *change, void *context)
{
    struct document alias = {0};
    (void)context;
    if (!change->before) return lambda_missing(request, request->nodes[ALIAS_VERSION].text);
    if (entry_part_of(change->before, PART_ALIAS, request->nodes[ALIAS_NAME].text))
        return answer_alias(request, 409, "ResourceConflictException", "Alias already exists");
    if (change->before->count >= LIMIT_FUNCTION_PARTS)
        return lambda_refuse(request->call,
                             "This function has as many versions and aliases as it may have. Delete some.");
    document_set_text(&alias, "Description", SLICE(""), request->arena);
    return alias_apply(request, change, &alias);
}

static enum step update_step(struct request *request, struct change *change, void *context)
{
    const struct part *part = NULL;
    (void)context;
    if (change->before) part = entry_part_of(change->before, PART_ALIAS, request->nodes[ALIAS_NAME].text);
    if (!part) return answer_alias(request, 404, "ResourceNotFoundException", "Alias not found");
    if (!lambda_revision_fits(request->call, &request->nodes[ALIAS_REVISION], &part->document))
        return STEP_ANSWERED;
    struct document alias = document_copy(&part->document, request->arena);
    return alias_apply(request, change, &alias);
}

static bool answer_none(const struct request *request)
{
    return answer_alias(request, 404, "ResourceNotFoundException", "Cannot find alias arn");
}

static const struct part_kind kind = {PART_ALIAS, put_alias, answer_none};

OPERATION(create_alias, TARGET_WHOLE, ALIAS_CREATE)
{
    lambda_change_part(request, &kind, create_step, NULL, 201);
}

OPERATION(update_alias, TARGET_WHOLE, ALIAS_UPDATE)
{
    lambda_change_part(request, &kind, update_step, NULL, 200);
}

/* ---- GetAlias, DeleteAlias ---- */

OPERATION(get_alias, TARGET_WHOLE, ALIAS_GET)
{
    lambda_get_part(request, &kind, request->nodes[ALIAS_NAME].text);
}

static enum step delete_step(struct request *request, struct change *change, void *context)
{
    static const char *const prefixes[] = {PART_ALIAS, PART_ASYNC, PART_POLICY, PART_RUNTIME, PART_URL};
    (void)context;
    if (!change->before) return lambda_missing(request, SLICE_NONE);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const struct part *part = entry_part_of(change->before, prefixes[i], request->nodes[ALIAS_NAME].text);
        if (part) change_delete(change, part->name);
    }
    return change->count ? STEP_COMMIT : STEP_NOTHING;
}

OPERATION(delete_alias, TARGET_WHOLE, ALIAS_GET)
{
    lambda_change_quietly(request, delete_step, NULL);
}

/* ---- ListAliases ---- */

#define ALIAS_LIST(X)                                                                                        \
    X(LIST_FUNCTION, NAME_FIELD)                                                                             \
    X(LIST_VERSION, QUERY_FIELD("FunctionVersion", lambda_shape_version))                                    \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items))
MEMBERS(ALIAS_LIST)

static bool has_version(const struct request *request, const struct part *part)
{
    const struct shape_node *version = &request->nodes[LIST_VERSION];
    return !version->present ||
           slice_equal(document_text(&part->document, "FunctionVersion", request->arena), version->text);
}

OPERATION(list_aliases, TARGET_WHOLE | TARGET_ENTRY, ALIAS_LIST)
{
    lambda_list_parts(request, "Aliases", PART_ALIAS, &request->nodes[LIST_MARKER], &request->nodes[LIST_MAX],
                      has_version, put_alias);
}
