/* UpdateFunctionCode and UpdateFunctionConfiguration: both make a new $LATEST of the old one. */
#include "func/lambda.h"

struct version_update {
    struct func *func;
    const struct node *nodes;
    const struct code *code;
    bool publishes, is_dry;
    struct slice version; /* that is shown */
    struct buf dry_reply;
};

/* The $LATEST there is; NULL: answered. */
static const struct part *latest_part(struct func *func, struct rest_call *call, const struct change *change)
{
    const struct part *part = change->before ? entry_part(change->before, SLICE(PART_LATEST)) : NULL;
    if (part && part->function) return part;
    lambda_not_found(func, call, change->name, SLICE_NONE);
    return NULL;
}

static void reply_update(struct func *func, struct rest_call *call, const struct target *target,
                         const struct version_update *update, struct change *change)
{
    const struct part *part = change->after ? entry_part(change->after, update->version) : NULL;
    struct slice qualifier = update->publishes ? update->version : SLICE_NONE;
    if (part) configuration_put(call->reply, func, change->after, part, qualifier, call->arena);
    bool shown = part != NULL;
    change_free(change);
    if (shown)
        lambda_done(call, 200);
    else
        lambda_not_found(func, call, target->name, SLICE_NONE); /* deleted by somebody else */
}

/* ---- UpdateFunctionCode ---- */

enum {
    CODE_NAME = CODE_MEMBERS, /* the members of FunctionCode come first */
    CODE_PUBLISH,
    CODE_DRY_RUN,
    CODE_REVISION,
    CODE_ARCHITECTURES,
    CODE_UPDATE_MEMBERS,
};

static const struct field code_fields[CODE_UPDATE_MEMBERS] = {
    CODE_FIELDS,
    [CODE_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [CODE_PUBLISH] = FIELD("Publish", lambda_shape_bool),
    [CODE_DRY_RUN] = FIELD("DryRun", lambda_shape_bool),
    [CODE_REVISION] = FIELD("RevisionId", lambda_shape_text),
    [CODE_ARCHITECTURES] = FIELD("Architectures", lambda_shape_architectures),
};

/* What the function would be, shown without a change. */
static enum step show_dry(struct change *change, struct version_update *update,
                          const struct document *document)
{
    struct part part = *entry_part(change->before, SLICE(PART_LATEST));
    part.document = *document;
    configuration_put(&update->dry_reply, update->func, change->before, &part, SLICE_NONE, change->arena);
    return STEP_NOTHING;
}

static enum step code_step(struct rest_call *call, struct change *change, void *context)
{
    struct version_update *update = context;
    struct node nothing[CONFIG_MEMBERS] = {{0}};
    const struct part *latest = latest_part(update->func, call, change);
    if (!latest || !lambda_revision_fits(call, &update->nodes[CODE_REVISION], &latest->document))
        return STEP_ANSWERED;
    struct document document = document_copy(&latest->document, call->arena);
    lambda_code_apply(update->code, &document, call->arena);
    if (update->nodes[CODE_ARCHITECTURES].present)
        document_set(&document, "Architectures", node_json(&update->nodes[CODE_ARCHITECTURES], call->arena),
                     call->arena);
    /* A URL that becomes an archive needs a runtime now. */
    if (!configuration_apply(update->func, call, nothing, &document)) return STEP_ANSWERED;
    configuration_mark(change->registry, &document, &latest->document, call->arena);
    if (update->is_dry) return show_dry(change, update, &document);
    change_put(change, SLICE(PART_LATEST), &document);
    update->version = SLICE(PART_LATEST);
    if (update->publishes) update->version = version_publish(call, change, &document, SLICE_NONE);
    return update->version.data ? STEP_COMMIT : STEP_ANSWERED;
}

/* The archive that $LATEST had before, when it has another one now. */
static void sweep_old_code(struct func *func, const struct change *change)
{
    struct arena arena = {0};
    const struct part *before = change->before ? entry_part(change->before, SLICE(PART_LATEST)) : NULL;
    if (before) code_sweep(func->registry, document_text(&before->document, "CodeSha256", &arena));
    arena_free(&arena);
}

void lambda_update_function_code(struct func *func, struct rest_call *call)
{
    struct node nodes[CODE_UPDATE_MEMBERS];
    struct version_update update = {.func = func, .nodes = nodes};
    struct target target;
    struct change change;
    struct code code;
    if (!lambda_decode(call, code_fields, FIELD_COUNT(code_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[CODE_NAME], &target) ||
        !lambda_code_read(func, call, nodes, &code) || !lambda_code_store(func, call, &code))
        return;
    update.code = &code;
    update.publishes = nodes[CODE_PUBLISH].truth;
    update.is_dry = nodes[CODE_DRY_RUN].truth;
    bool updated = lambda_change(func, call, &target, code_step, &update, &change);
    lambda_code_end(func, &code);
    if (updated && update.is_dry) {
        buf_slice(call->reply, buf_view(&update.dry_reply));
        change_free(&change);
        lambda_done(call, 200);
    } else if (updated) {
        sweep_old_code(func, &change);
        reply_update(func, call, &target, &update, &change);
    }
    buf_free(&update.dry_reply);
}

/* ---- UpdateFunctionConfiguration ---- */

enum {
    UPDATE_NAME,
    UPDATE_REVISION,
    UPDATE_CONFIG, /* from here on: enum configuration_member */
    UPDATE_MEMBERS = UPDATE_CONFIG + CONFIG_MEMBERS,
};

static const struct field update_fields[UPDATE_CONFIG] = {
    [UPDATE_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [UPDATE_REVISION] = FIELD("RevisionId", lambda_shape_text),
};

static enum step configuration_step(struct rest_call *call, struct change *change, void *context)
{
    struct version_update *update = context;
    const struct part *latest = latest_part(update->func, call, change);
    if (!latest || !lambda_revision_fits(call, &update->nodes[UPDATE_REVISION], &latest->document))
        return STEP_ANSWERED;
    struct document document = document_copy(&latest->document, call->arena);
    if (!configuration_apply(update->func, call, update->nodes + UPDATE_CONFIG, &document))
        return STEP_ANSWERED;
    configuration_defaults(change->name, &document, call->arena);
    configuration_mark(change->registry, &document, &latest->document, call->arena);
    change_put(change, SLICE(PART_LATEST), &document);
    update->version = SLICE(PART_LATEST);
    return STEP_COMMIT;
}

void lambda_update_function_configuration(struct func *func, struct rest_call *call)
{
    struct field fields[UPDATE_MEMBERS];
    struct node nodes[UPDATE_MEMBERS];
    struct version_update update = {.func = func, .nodes = nodes};
    struct target target;
    struct change change;
    memcpy(fields, update_fields, sizeof update_fields);
    memcpy(fields + UPDATE_CONFIG, configuration_fields, sizeof configuration_fields);
    if (!lambda_decode(call, fields, UPDATE_MEMBERS, nodes) ||
        !lambda_whole_target(func, call, &nodes[UPDATE_NAME], &target) ||
        !lambda_change(func, call, &target, configuration_step, &update, &change))
        return;
    reply_update(func, call, &target, &update, &change);
}
