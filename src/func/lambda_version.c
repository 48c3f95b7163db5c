/* PublishVersion and ListVersionsByFunction. A published version is a copy of $LATEST that never changes. */
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

static bool is_same_version(const struct document *a, const struct document *b)
{
    return has_members_of(a, b) && has_members_of(b, a);
}

static struct document published_document(struct change *change, const struct document *latest,
                                          struct slice description)
{
    struct registry *registry = change->registry;
    struct document document = document_copy(latest, change->arena);
    if (description.data) document_set_text(&document, "Description", description, change->arena);
    document_set_text(&document, "RevisionId", registry_uuid(registry, change->arena), change->arena);
    document_set_integer(&document, "Revision",
                         PUBLISHED_REVISION + clock_now_ms(registry->func->options.clock), change->arena);
    return document;
}

struct slice version_publish(struct rest_call *call, struct change *change, const struct document *latest,
                             struct slice description)
{
    int64_t last = document_integer(&change->head, "LastVersion", 0);
    const struct part *previous = NULL;
    if (change->before)
        previous = entry_part(change->before, arena_printf(call->arena, "%lld", (long long)last));
    if (previous && is_same_version(&previous->document, latest)) return previous->name;
    if (change->before && change->before->count >= LIMIT_FUNCTION_PARTS) {
        lambda_error(call, 400, "InvalidParameterValueException",
                     "This function has as many versions and aliases as it may have (%d). Delete some.",
                     LIMIT_FUNCTION_PARTS);
        return SLICE_NONE;
    }
    struct slice number = arena_printf(call->arena, "%lld", (long long)last + 1);
    struct document document = published_document(change, latest, description);
    document_set_integer(&change->head, "LastVersion", last + 1, call->arena);
    change_put(change, number, &document);
    return number;
}

/* ---- PublishVersion ---- */

enum { PUBLISH_NAME, PUBLISH_SHA256, PUBLISH_DESCRIPTION, PUBLISH_REVISION, PUBLISH_MEMBERS };

static const struct field publish_fields[] = {
    [PUBLISH_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name, 0),
    [PUBLISH_SHA256] = FIELD("CodeSha256", lambda_shape_text),
    [PUBLISH_DESCRIPTION] = FIELD("Description", lambda_shape_description),
    [PUBLISH_REVISION] = FIELD("RevisionId", lambda_shape_text),
};

struct publication {
    struct func *func;
    const struct node *nodes;
    struct slice version;
};

static bool check_publication(struct rest_call *call, const struct node *nodes, const struct document *latest)
{
    struct slice sha256 = document_text(latest, "CodeSha256", call->arena);
    if (!lambda_revision_fits(call, &nodes[PUBLISH_REVISION], latest)) return false;
    if (!nodes[PUBLISH_SHA256].present || slice_equal(nodes[PUBLISH_SHA256].text, sha256)) return true;
    lambda_error(call, 400, "InvalidParameterValueException",
                 "CodeSHA256 (%.*s) is different from current CodeSHA256 in $LATEST (%.*s). Please try again "
                 "with the CodeSHA256 in $LATEST.",
                 SLICE_ARG(nodes[PUBLISH_SHA256].text), SLICE_ARG(sha256));
    return false;
}

/* Says that the archive gets another user, so that no other server takes it for unused. */
static bool touch_code(struct rest_call *call, struct func *func, const struct part *latest)
{
    const struct function *function = latest->function;
    if (!func->options.shared || function->kind != FUNCTION_PROCESS || function->in_place) return true;
    if (code_store(func->registry, document_text(&latest->document, "CodeSha256", call->arena), SLICE_NONE))
        return true;
    lambda_unavailable(call);
    return false;
}

static enum step publish_step(struct rest_call *call, struct change *change, void *context)
{
    struct publication *publication = context;
    const struct part *latest = change->before ? entry_part(change->before, SLICE(PART_LATEST)) : NULL;
    if (!latest || !latest->function) {
        lambda_not_found(publication->func, call, change->name, SLICE_NONE);
        return STEP_ANSWERED;
    }
    if (!check_publication(call, publication->nodes, &latest->document)) return STEP_ANSWERED;
    const struct node *description = &publication->nodes[PUBLISH_DESCRIPTION];
    publication->version = version_publish(call, change, &latest->document,
                                           description->present ? description->text : SLICE_NONE);
    if (!publication->version.data) return STEP_ANSWERED;
    if (!change->count) return STEP_NOTHING; /* nothing has changed since the last version */
    if (!touch_code(call, publication->func, latest)) return STEP_ANSWERED;
    struct document again = document_copy(&latest->document, call->arena);
    document_set_text(&again, "RevisionId", registry_uuid(change->registry, call->arena), call->arena);
    change_put(change, SLICE(PART_LATEST), &again);
    return STEP_COMMIT;
}

void lambda_publish_version(struct func *func, struct rest_call *call)
{
    struct node nodes[PUBLISH_MEMBERS];
    struct publication publication = {.func = func, .nodes = nodes};
    struct target target;
    struct change change;
    if (!lambda_decode(call, publish_fields, FIELD_COUNT(publish_fields), nodes) ||
        !lambda_whole_target(func, call, &nodes[PUBLISH_NAME], &target) ||
        !lambda_change(func, call, &target, publish_step, &publication, &change))
        return;
    const struct part *part = change.after ? entry_part(change.after, publication.version) : NULL;
    if (part) configuration_put(call->reply, func, change.after, part, part->name, call->arena);
    bool shown = part != NULL;
    change_free(&change);
    if (shown)
        lambda_done(call, 201);
    else
        lambda_not_found(func, call, target.name, publication.version); /* deleted by somebody else */
}

/* ---- ListVersionsByFunction ---- */

enum { LIST_NAME, LIST_MARKER, LIST_MAX, LIST_MEMBERS };

static const struct field list_fields[] = {
    [LIST_NAME] = PATH_FIELD("FunctionName", lambda_shape_function_name_long, 0),
    [LIST_MARKER] = QUERY_FIELD("Marker", lambda_shape_text),
    [LIST_MAX] = QUERY_FIELD("MaxItems", lambda_shape_max_items),
};

void lambda_list_versions(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    struct target target;
    uint32_t count, at = 0, shown = 0;
    if (!lambda_decode(call, list_fields, FIELD_COUNT(list_fields), nodes) ||
        !lambda_target(func, call, &nodes[LIST_NAME], NULL, &target))
        return;
    struct entry *entry = lambda_entry(func, call, &target);
    if (!entry) return;
    const struct part **versions = entry_versions(entry, call->arena, &count);
    uint32_t max = nodes[LIST_MAX].present && nodes[LIST_MAX].integer < 50 ? (uint32_t)nodes[LIST_MAX].integer
                                                                           : 50;
    if (nodes[LIST_MARKER].present)
        while (at < count && !slice_equal(versions[at++]->name, nodes[LIST_MARKER].text)) continue;
    buf_text(call->reply, "{\"Versions\":[");
    for (; at < count && shown < max; at++, shown++) {
        if (shown) buf_byte(call->reply, ',');
        configuration_put(call->reply, func, entry, versions[at], versions[at]->name, call->arena);
    }
    buf_byte(call->reply, ']');
    if (at < count) {
        buf_text(call->reply, ",\"NextMarker\":");
        json_put_string(call->reply, versions[at - 1]->name);
    }
    buf_byte(call->reply, '}');
    entry_release(entry);
    lambda_done(call, 200);
}
