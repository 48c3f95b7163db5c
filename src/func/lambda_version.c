/* What makes versions: UpdateFunctionCode and UpdateFunctionConfiguration, which make a new $LATEST of the old one, and
 * PublishVersion. A published version is a copy of $LATEST that never changes. And ListVersionsByFunction. */
#include "base/limits.h"
#include "func/lambda.h"

/* Revisions of published versions are above all of $LATEST's: they never change, so no change of the function
 * may retire their processes. */
#define PUBLISHED_REVISION (INT64_C(1) << 62)

/* ---- publishing ---- */

/* Members that say nothing of what the version does. */
static bool is_incidental(struct slice name)
{
    static const char *const names[] = {"Revision", "RevisionId", "LastModified", "Description"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(slice_of(names[i]), name)) return true;
    return false;
}

static bool has_members_of(const struct document *document, const struct document *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        if (is_incidental(other->members[i].name)) continue;
        bool found = false;
        for (uint32_t j = 0; j < document->count && !found; j++)
            found = slice_equal(document->members[j].name, other->members[i].name) &&
                    slice_equal(document->members[j].value, other->members[i].value);
        if (!found) return false;
    }
    return true;
}

struct slice version_publish(struct request *request, struct change *change, const struct document *latest,
                             struct slice description)
{
    int64_t last = document_integer(&change->head, "LastVersion", 0);
    const struct part *previous = NULL;
    if (change->before)
        previous = entry_part(change->before, arena_printf(request->arena, "%lld", (long long)last));
    if (previous && has_members_of(&previous->document, latest) &&
        has_members_of(latest, &previous->document))
        return previous->name;
    if (change->before && change->before->count >= LIMIT_FUNCTION_PARTS) {
        lambda_refuse(request->call,
                      "This function has as many versions and aliases as it may have (%d). Delete some.",
                      LIMIT_FUNCTION_PARTS);
        return SLICE_NONE;
    }
    struct slice number = arena_printf(request->arena, "%lld", (long long)last + 1);
    struct registry *registry = change->registry;
    struct document document = document_copy(latest, change->arena);
    if (description.data) document_set_text(&document, "Description", description, change->arena);
    document_set_text(&document, "RevisionId", registry_uuid(registry, change->arena), change->arena);
    document_set_integer(&document, "Revision",
                         PUBLISHED_REVISION + clock_now_ms(registry->func->options.clock), change->arena);
    document_set_integer(&change->head, "LastVersion", last + 1, request->arena);
    change_put(change, number, &document);
    return number;
}

/* The $LATEST there is, whose revision is the one that was given; NULL: answered. */
static const struct part *latest_part(const struct request *request, const struct change *change,
                                      const struct shape_node *revision)
{
    const struct part *part = change->before ? entry_part(change->before, SLICE(PART_LATEST)) : NULL;
    if (!part || !part->function) {
        lambda_missing(request, SLICE_NONE);
        return NULL;
    }
    return lambda_revision_fits(request->call, revision, &part->document) ? part : NULL;
}

/* With the version in the ARN, where it is a published one. */
static void put_version(struct buf *out, const struct request *request, const struct entry *entry,
                        const struct part *part)
{
    struct slice qualifier = slice_equal(part->name, SLICE(PART_LATEST)) ? SLICE_NONE : part->name;
    configuration_put(out, request->func, entry, part, qualifier, request->arena);
}

static void reply_version(struct request *request, struct change *change, int status)
{
    struct slice missing = status == 201 ? request->part : SLICE_NONE;
    if (!lambda_show(request, change, put_version, status))
        lambda_missing(request, missing); /* deleted by somebody else */
}

/* ---- UpdateFunctionCode ---- */

#define UPDATE_CODE(X)                                                                                       \
    CODE_MEMBERS(X)                                                                                          \
    X(CODE_NAME, NAME_FIELD)                                                                                 \
    X(CODE_PUBLISH, FIELD("Publish", lambda_shape_bool))                                                     \
    X(CODE_DRY_RUN, FIELD("DryRun", lambda_shape_bool))                                                      \
    X(CODE_REVISION, REVISION_FIELD)                                                                         \
    X(CODE_ARCHITECTURES, FIELD("Architectures", lambda_shape_architectures))
enum { CODE_NAME = CODE_MEMBER_COUNT, CODE_PUBLISH, CODE_DRY_RUN, CODE_REVISION, CODE_ARCHITECTURES };

static enum step code_step(struct request *request, struct change *change, void *context)
{
    const struct shape_node *nodes = request->nodes;
    struct shape_node nothing[CONFIG_MEMBERS] = {{0}};
    const struct part *latest = latest_part(request, change, &nodes[CODE_REVISION]);
    if (!latest) return STEP_ANSWERED;
    struct document document = document_copy(&latest->document, request->arena);
    lambda_code_apply(context, &document, request->arena);
    node_set(&document, "Architectures", &nodes[CODE_ARCHITECTURES], request->arena);
    /* A URL that becomes an archive needs a runtime now. */
    if (!configuration_apply(request, nothing, &document)) return STEP_ANSWERED;
    configuration_mark(change->registry, &document, &latest->document, request->arena);
    if (nodes[CODE_DRY_RUN].truth) { /* what the function would be, shown without a change */
        struct part part = *latest;
        part.document = document;
        put_version(request->call->reply, request, change->before, &part);
        return STEP_NOTHING;
    }
    request->part = SLICE(PART_LATEST);
    change_put(change, request->part, &document);
    if (nodes[CODE_PUBLISH].truth) request->part = version_publish(request, change, &document, SLICE_NONE);
    return request->part.data ? STEP_COMMIT : STEP_ANSWERED;
}

OPERATION(update_function_code, TARGET_WHOLE, UPDATE_CODE)
{
    struct change change;
    struct code code;
    if (!lambda_code_read(request, request->nodes, &code) ||
        !lambda_code_store(request->func, request->call, &code))
        return;
    bool updated = lambda_change(request, code_step, &code, &change);
    lambda_code_end(request->func, &code);
    if (updated && request->nodes[CODE_DRY_RUN].truth) {
        change_free(&change);
        lambda_done(request->call, 200);
    } else if (updated) {
        /* The archive that $LATEST had before, when it has another one now. */
        struct arena arena = {0};
        const struct part *before = change.before ? entry_part(change.before, SLICE(PART_LATEST)) : NULL;
        if (before)
            code_sweep(request->func->registry, document_text(&before->document, "CodeSha256", &arena));
        arena_free(&arena);
        reply_version(request, &change, 200);
    }
}

/* ---- UpdateFunctionConfiguration ---- */

#define UPDATE(X) X(UPDATE_NAME, NAME_FIELD) X(UPDATE_REVISION, REVISION_FIELD)
enum { UPDATE(FIELD_INDEX) UPDATE_CONFIG /* from here on: enum configuration_member */ };

static enum step configuration_step(struct request *request, struct change *change, void *context)
{
    const struct part *latest = latest_part(request, change, &request->nodes[UPDATE_REVISION]);
    (void)context;
    if (!latest) return STEP_ANSWERED;
    struct document document = document_copy(&latest->document, request->arena);
    if (!configuration_apply(request, request->nodes + UPDATE_CONFIG, &document)) return STEP_ANSWERED;
    configuration_defaults(change->name, &document, request->arena);
    configuration_mark(change->registry, &document, &latest->document, request->arena);
    request->part = SLICE(PART_LATEST);
    change_put(change, request->part, &document);
    return STEP_COMMIT;
}

static void update_configuration(struct request *request)
{
    struct change change;
    if (lambda_change(request, configuration_step, NULL, &change)) reply_version(request, &change, 200);
}

void lambda_update_function_configuration(void *func, struct rest_call *call)
{
    struct shape_field fields[UPDATE_CONFIG + CONFIG_MEMBERS] = {UPDATE(FIELD_ROW)};
    memcpy(fields + UPDATE_CONFIG, configuration_fields, sizeof configuration_fields);
    lambda_run(func, call, fields, FIELD_COUNT(fields), TARGET_WHOLE, update_configuration);
}

/* ---- PublishVersion ---- */

#define PUBLISH(X)                                                                                           \
    X(PUBLISH_NAME, NAME_FIELD)                                                                              \
    X(PUBLISH_SHA256, FIELD("CodeSha256", lambda_shape_text))                                                \
    X(PUBLISH_DESCRIPTION, FIELD("Description", lambda_shape_description))                                   \
    X(PUBLISH_REVISION, REVISION_FIELD)
MEMBERS(PUBLISH)

/* Says that the archive gets another user, so that no other server takes it for unused. */
static bool touch_code(const struct request *request, const struct part *latest)
{
    const struct function *function = latest->function;
    struct slice sha256 = document_text(&latest->document, "CodeSha256", request->arena);
    return !request->func->options.shared || function->kind != FUNCTION_PROCESS || function->in_place ||
           code_store(request->func->registry, sha256, SLICE_NONE) || lambda_unavailable(request->call);
}

static enum step publish_step(struct request *request, struct change *change, void *context)
{
    const struct shape_node *nodes = request->nodes, *wanted = &nodes[PUBLISH_SHA256];
    const struct part *latest = latest_part(request, change, &nodes[PUBLISH_REVISION]);
    (void)context;
    if (!latest) return STEP_ANSWERED;
    struct slice sha256 = document_text(&latest->document, "CodeSha256", request->arena);
    if (wanted->present && !slice_equal(wanted->text, sha256))
        return lambda_refuse(
            request->call,
            "CodeSHA256 (%.*s) is different from current CodeSHA256 in $LATEST (%.*s). Please try "
            "again with the CodeSHA256 in $LATEST.",
            SLICE_ARG(wanted->text), SLICE_ARG(sha256));
    const struct shape_node *description = &nodes[PUBLISH_DESCRIPTION];
    request->part = version_publish(request, change, &latest->document,
                                    description->present ? description->text : SLICE_NONE);
    if (!request->part.data) return STEP_ANSWERED;
    if (!change->count) return STEP_NOTHING; /* nothing has changed since the last version */
    if (!touch_code(request, latest)) return STEP_ANSWERED;
    struct document again = document_copy(&latest->document, request->arena);
    document_set_text(&again, "RevisionId", registry_uuid(change->registry, request->arena), request->arena);
    change_put(change, SLICE(PART_LATEST), &again);
    return STEP_COMMIT;
}

OPERATION(publish_version, TARGET_WHOLE, PUBLISH)
{
    struct change change;
    if (lambda_change(request, publish_step, NULL, &change)) reply_version(request, &change, 201);
}

/* ---- ListVersionsByFunction ---- */

#define LIST(X)                                                                                              \
    X(LIST_NAME, PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0))                             \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items))
MEMBERS(LIST)

OPERATION(list_versions, TARGET_QUALIFIED | TARGET_ENTRY, LIST)
{
    const struct shape_node *marker = &request->nodes[LIST_MARKER];
    uint32_t count, at = 0, shown = 0, max = lambda_list_max(&request->nodes[LIST_MAX]);
    const struct part **versions = entry_versions(request->entry, request->arena, &count);
    if (marker->present)
        while (at < count && !slice_equal(versions[at++]->name, marker->text)) continue;
    compose(request->call->reply, "{'Versions':[");
    for (; at < count && shown < max; at++, shown++)
        configuration_put(request->call->reply, request->func, request->entry, versions[at],
                          versions[at]->name, request->arena);
    lambda_list_end(request, at < count ? versions[at - 1]->name : SLICE_NONE);
}
