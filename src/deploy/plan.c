/* From a template to changes, and from changes to a server that has them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/fail.h"
#include "deploy/internal.h"

#define PLANS_MAX                                                                                            \
    3 /* of one run: another deploy that came in between is taken into account, a third one is not */
#define NAME_HASH_CHARS 8

/* ---- opening ---- */

/* The server's own region and account, out of an ARN of its own. */
static bool learn_place(struct deploy *deploy)
{
    const struct node *group;
    struct resource nobody = {.change.id = SLICE("the server")};
    if (!rest_get(deploy, &nobody, "scheduler", "/schedule-groups/default", NULL, &group)) return false;
    struct slice rest = node_text(group, "Arn");
    for (int i = 0; i < 3; i++) slice_cut(&rest, ':');
    deploy->region = slice_cut(&rest, ':');
    deploy->account = slice_cut(&rest, ':');
    return deploy->account.len ||
           deploy_fail(deploy, "the server runs no functions: deploy to a 'quipu serve' that does");
}

struct deploy *deploy_open(const struct deploy_door *door, const struct deploy_options *options)
{
    struct deploy *deploy = calloc(1, sizeof *deploy);
    ensure(deploy);
    deploy->door = door;
    deploy->options = options;
    deploy->resources_end = &deploy->resources;
    deploy->notes_end = &deploy->notes;
    learn_place(deploy);
    return deploy;
}

void deploy_close(struct deploy *deploy)
{
    arena_free(&deploy->arena);
    free(deploy);
}

/* ---- names ---- */

struct resource *resource_find(struct deploy *deploy, struct slice id)
{
    for (struct resource *one = deploy->resources; one; one = one->next)
        if (one->source && slice_equal(one->change.id, id)) return one;
    return NULL;
}

struct resource *resource_named(struct deploy *deploy, const char *type, struct slice name)
{
    for (struct resource *one = deploy->resources; one; one = one->next)
        if (one->source && slice_equal(one->change.type, slice_of(type)) &&
            slice_equal(slice_of(one->change.name), name))
            return one;
    return NULL;
}

/* STACK-Id, cut and with a hash where that is too long. */
static const char *name_make(struct deploy *deploy, struct slice id, size_t most)
{
    const char *name = arena_printf(&deploy->arena, "%s-%.*s", deploy->options->stack, SLICE_ARG(id)).data;
    struct buf hash = {0};
    if (!most || strlen(name) <= most) return name;
    digest_put_sha256(&hash, slice_of(name));
    name = arena_printf(&deploy->arena, "%.*s-%.*s", (int)(most - NAME_HASH_CHARS - 1), name, NAME_HASH_CHARS,
                        hash.data)
               .data;
    buf_free(&hash);
    return name;
}

/* What a kind that is not made here would be called by: QueueName of AWS::SQS::Queue. */
static const char *name_member_of(struct deploy *deploy, const struct resource *resource)
{
    if (resource->kind) return resource->kind->name_member;
    return arena_printf(&deploy->arena, "%.*sName", SLICE_ARG(arn_last(resource->change.type, ':'))).data;
}

/* ---- references ---- */

static bool is_left_out(const struct resource *resource)
{
    return resource->kind && resource->change.action == DEPLOY_UNKNOWN;
}

static enum template_answer answer(void *context, const struct template_resource *source,
                                   struct slice attribute, struct slice *value)
{
    struct deploy *deploy = context;
    struct resource *resource = source ? resource_find(deploy, source->id) : NULL;
    if (!resource) return TEMPLATE_LATER; /* what another stack exports */
    if (is_left_out(resource) && deploy->asking && deploy->asking->kind &&
        deploy->asking->kind != &kind_function)
        deploy->asking->change.reason =
            arena_printf(&deploy->arena, "it needs %.*s, which is left out", SLICE_ARG(source->id)).data;
    bool is_made = resource->kind && !is_left_out(resource);
    *value = is_made ? resource->kind->attribute(deploy, resource, attribute)
                     : stranger_attribute(deploy, resource, attribute);
    return value->data ? TEMPLATE_KNOWN : TEMPLATE_LATER;
}

static bool resolve_properties(struct deploy *deploy, struct resource *resource)
{
    char error[TEMPLATE_ERROR_BYTES];
    const struct template_ask ask = {answer, deploy};
    deploy->asking = resource;
    bool fine = template_properties(deploy->template, resource->source, &ask, &resource->properties, error);
    deploy->asking = NULL;
    return fine || deploy_fail(deploy, "%s", error);
}

/* ---- planning ---- */

static const struct node *record_entries(const struct deploy *deploy)
{
    const struct node *list = node_member(deploy->record, "resources");
    return list ? list->first : NULL;
}

static bool is_entry_of(const struct node *entry, const struct resource *resource)
{
    return slice_equal(node_text(entry, "id"), resource->change.id) &&
           slice_equal(node_text(entry, "type"), resource->change.type);
}

static struct resource *resource_add(struct deploy *deploy, struct slice id, struct slice type)
{
    struct resource *resource = arena_new(&deploy->arena, struct resource);
    resource->change.id = id;
    resource->change.type = type;
    resource->kind = kind_find(type);
    *deploy->resources_end = resource;
    deploy->resources_end = &resource->next;
    return resource;
}

static const struct node *form_make(struct deploy *deploy, struct resource *resource,
                                    bool (*put)(struct deploy *, struct resource *, struct buf *))
{
    const char *fault;
    struct buf text = {0};
    buf_byte(&text, '{');
    bool fine = put(deploy, resource, &text);
    bool is_there = text.len > 1;
    buf_byte(&text, '}');
    struct slice form = arena_take(&deploy->arena, &text);
    return fine && is_there ? node_parse(&deploy->arena, form, &fault) : NULL;
}

static void note_properties(struct deploy *deploy, const struct resource *resource)
{
    for (const struct node *one = resource->properties->first; one; one = one->next)
        if (!word_is_in(resource->kind->known, one->name))
            deploy_note(deploy, "%.*s: the property %.*s is not known here, and is left out",
                        SLICE_ARG(resource->change.id), SLICE_ARG(one->name));
}

static bool table_has_items(struct deploy *deploy, struct resource *resource, bool *has_items)
{
    struct buf body = {0};
    struct deploy_reply reply;
    *has_items = false;
    if (!resource->kind->keeps_data || !resource->described) return true;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_text(&body, ",\"Limit\":1,\"Select\":\"COUNT\"}");
    if (!table_call(deploy, resource, "Scan", &body, &reply)) return false;
    *has_items = node_count(reply.json, "ScannedCount") > 0;
    return true;
}

/* What must be done so that it is as wanted. */
static bool judge(struct deploy *deploy, struct resource *resource)
{
    struct deploy_change *change = &resource->change;
    change->action = change->reason ? DEPLOY_UNKNOWN : resource->old_name ? DEPLOY_REPLACE : DEPLOY_CREATE;
    if (change->reason || !resource->have) return true;
    if (!resource->is_recorded && !deploy->options->adopt)
        return deploy_fail(
            deploy,
            "%.*s: there is already %s, which the stack %s has not made (--adopt takes it into the stack)",
            SLICE_ARG(change->id), change->name, deploy->options->stack);
    change->differences = form_compare(deploy, resource->kind, resource->want, resource->have);
    change->action = resource->old_name ? DEPLOY_REPLACE : change->differences ? DEPLOY_CHANGE : DEPLOY_SAME;
    for (const struct deploy_difference *one = change->differences; one; one = one->next)
        if (one->replaces) change->action = DEPLOY_REPLACE;
    return change->action != DEPLOY_REPLACE || table_has_items(deploy, resource, &change->holds_data);
}

/* Takes over what the record knows of it. */
static void recall(struct deploy *deploy, struct resource *resource)
{
    const struct kind *kind = resource->kind;
    for (const struct node *entry = record_entries(deploy); entry; entry = entry->next) {
        const char *name = deploy_text(deploy, node_text(entry, "name")), *wanted = resource->change.name;
        bool is_same = slice_equal(arn_last(slice_of(name), '/'), slice_of(wanted));
        if (!is_entry_of(entry, resource) || (kind->keeps_data && !is_same)) continue;
        resource->recorded_name = name;
        if (kind->is_numbered || is_same) resource->change.name = name;
        if (node_text(entry, "old").len) resource->old_name = deploy_text(deploy, node_text(entry, "old"));
        if (node_text(entry, "data").len) resource->data = deploy_text(deploy, node_text(entry, "data"));
    }
}

/* Under another name it is another thing: the old one goes when the new one is there. */
static void compare_names(struct resource *resource)
{
    const char *recorded = resource->recorded_name;
    if (recorded && !resource->kind->is_numbered && strcmp(recorded, resource->change.name) != 0)
        resource->old_name = recorded;
    if (resource->old_name && strcmp(resource->old_name, resource->change.name) == 0)
        resource->old_name = NULL;
    resource->is_recorded = recorded &&
                            (resource->kind->is_numbered || strcmp(recorded, resource->change.name) == 0);
}

static bool plan_resource(struct deploy *deploy, const struct template_resource *source)
{
    struct resource *resource = resource_add(deploy, source->id, source->type);
    struct deploy_change *change = &resource->change;
    resource->source = source;
    resource->is_retained = source->is_retained;
    if (resource->kind == &kind_deployment && deployment_is_nothing(deploy, source)) resource->kind = NULL;
    change->name = name_make(deploy, source->id, resource->kind ? resource->kind->name_bytes : 0);
    if (!resolve_properties(deploy, resource)) {
        if (resource->kind) return false;
        deploy->fault = NULL; /* nobody needs them */
    }
    const char *member = name_member_of(deploy, resource);
    struct slice given = member ? node_text(resource->properties, member) : SLICE("");
    if (given.len) change->name = deploy_text(deploy, given);
    if (!resource->kind) {
        change->action = type_is_nothing(source->type) ? DEPLOY_NOTHING : DEPLOY_UNKNOWN;
        if (slice_equal(source->type, SLICE("AWS::SQS::Queue")))
            change->reason =
                arena_printf(&deploy->arena,
                             "there is no SQS here; failed calls that are sent to it wait in the queue %s "
                             "('quipu queue read')",
                             change->name)
                    .data;
        return true;
    }
    recall(deploy, resource);
    note_properties(deploy, resource);
    if (!change->reason) resource->want = form_make(deploy, resource, resource->kind->want);
    compare_names(resource);
    if (!deploy->fault && !change->reason) resource->have = form_make(deploy, resource, resource->kind->have);
    return !deploy->fault && judge(deploy, resource);
}

/* What the record has and the template has no more. */
static bool plan_orphan(struct deploy *deploy, const struct node *entry, bool is_all)
{
    struct resource *resource = resource_add(deploy, node_text(entry, "id"), node_text(entry, "type"));
    struct deploy_change *change = &resource->change;
    change->name = deploy_text(deploy, node_text(entry, "name"));
    if (node_text(entry, "data").len) resource->data = deploy_text(deploy, node_text(entry, "data"));
    resource->is_recorded = true;
    resource->is_retained = node_is_true(entry, "retain");
    if (!resource->kind)
        return deploy_fail(deploy, "the record of %s has a %.*s, which this release does not know",
                           deploy->options->stack, SLICE_ARG(change->type));
    change->action = resource->is_retained || !(is_all || deploy->options->prune) ? DEPLOY_LEAVE
                                                                                  : DEPLOY_DELETE;
    if (resource->is_retained)
        change->reason = "its DeletionPolicy is Retain";
    else if (change->action == DEPLOY_LEAVE)
        change->reason = "the template has it no more; --prune deletes it";
    if (change->action != DEPLOY_DELETE || !resource->kind->keeps_data) return true;
    form_make(deploy, resource, resource->kind->have);
    return !deploy->fault && table_has_items(deploy, resource, &change->holds_data);
}

static bool is_in_template(const struct deploy *deploy, const struct node *entry)
{
    for (const struct resource *one = deploy->resources; one; one = one->next) {
        bool is_made = one->source && one->kind && one->change.action != DEPLOY_UNKNOWN;
        if (is_made && is_entry_of(entry, one) &&
            (!one->kind->keeps_data || node_is(entry, "name", one->change.name)))
            return true;
    }
    return false;
}

/* The last made first; what is deleted stands behind all else. */
static bool plan_orphans(struct deploy *deploy, const struct node *entry, bool is_all)
{
    if (!entry) return true;
    return plan_orphans(deploy, entry->next, is_all) &&
           (is_in_template(deploy, entry) || plan_orphan(deploy, entry, is_all));
}

/* Outputs as far as they are known. */
static bool resolve_outputs(struct deploy *deploy)
{
    struct buf out = {0};
    const struct template_ask ask = {answer, deploy};
    char error[TEMPLATE_ERROR_BYTES];
    struct template *template = deploy->template;
    bool fine = true;
    buf_byte(&out, '{');
    for (size_t i = 0; template && fine && i < template->output_count; i++) {
        const struct node *value = NULL;
        fine = template_resolve(template, template->outputs[i].value, &ask, &value, error) ||
               deploy_fail(deploy, "%s", error);
        if (!fine || !value) continue;
        put_name(&out, deploy_text(deploy, template->outputs[i].name));
        if (value->kind == JSON_STRING)
            json_put_string(&out, gateway_local_url(deploy, value->text));
        else
            form_put_value(&out, value, 's');
    }
    buf_byte(&out, '}');
    deploy->outputs = arena_take(&deploy->arena, &out);
    return fine;
}

/* A file beside the template, and a variable of the environment: serverless.yml asks for them. */
static struct slice read_beside(void *context, struct arena *arena, struct slice path)
{
    struct deploy *deploy = context;
    struct buf text = {0};
    bool is_absolute = path.len && path.data[0] == '/';
    const char *name = arena_printf(arena, "%s%s%.*s", is_absolute ? "" : deploy->options->folder,
                                    is_absolute ? "" : "/", SLICE_ARG(path))
                           .data;
    struct stat status;
    if (stat(name, &status) != 0 || !S_ISREG(status.st_mode)) return SLICE_NONE;
    if (!deploy->door->read(deploy->door->context, name, &text)) return SLICE_NONE;
    return arena_take(arena, &text);
}

static struct slice read_variable(void *context, struct arena *arena, struct slice name)
{
    (void)context;
    const char *value = getenv(arena_printf(arena, "%.*s", SLICE_ARG(name)).data);
    return value ? slice_of(value) : SLICE_NONE;
}

static bool plan_template(struct deploy *deploy)
{
    char error[TEMPLATE_ERROR_BYTES];
    struct template_world *world = arena_new(&deploy->arena, struct template_world);
    *world = (struct template_world){.name = deploy->options->file,
                                     .given = deploy->given,
                                     .given_count = deploy->given_count,
                                     .stack = slice_of(deploy->options->stack),
                                     .region = deploy->region,
                                     .account = deploy->account,
                                     .read = read_beside,
                                     .variable = read_variable,
                                     .context = deploy};
    deploy->template = template_open(&deploy->arena, deploy->text, world, error);
    if (!deploy->template) return deploy_fail(deploy, "%s", error);
    for (size_t i = 0; i < deploy->template->resource_count; i++)
        if (!plan_resource(deploy, &deploy->template->resources[i])) return false;
    for (const struct template_note *note = deploy->template->notes.first; note; note = note->next)
        deploy_note(deploy, "line %u: %.*s", note->line, SLICE_ARG(note->text));
    return true;
}

static bool plan(struct deploy *deploy)
{
    deploy->resources = NULL;
    deploy->resources_end = &deploy->resources;
    deploy->notes = NULL;
    deploy->notes_end = &deploy->notes;
    deploy->template = NULL;
    if (!record_read(deploy) || (deploy->text.len && !plan_template(deploy)) ||
        !plan_orphans(deploy, record_entries(deploy), !deploy->text.len) || !resolve_outputs(deploy))
        return false;
    for (struct resource *one = deploy->resources; one; one = one->next)
        one->change.next = one->next ? &one->next->change : NULL;
    return true;
}

bool deploy_plan(struct deploy *deploy, struct slice text, const struct template_given *given,
                 size_t given_count)
{
    if (deploy->fault) return false;
    deploy->text = text;
    deploy->given = given;
    deploy->given_count = given_count;
    return plan(deploy);
}

static bool is_to_do(enum deploy_action action)
{
    return action == DEPLOY_CREATE || action == DEPLOY_CHANGE || action == DEPLOY_REPLACE ||
           action == DEPLOY_DELETE;
}

bool deploy_is_needed(const struct deploy *deploy)
{
    for (const struct resource *one = deploy->resources; one; one = one->next)
        if (is_to_do(one->change.action)) return true;
    return false;
}

/* ---- doing ---- */

/* Before anything is done: what must be asked for in so many words. */
static bool check_consent(struct deploy *deploy)
{
    const struct deploy_options *options = deploy->options;
    for (const struct resource *one = deploy->resources; one; one = one->next) {
        const struct deploy_change *change = &one->change;
        bool replaces_data = change->action == DEPLOY_REPLACE && one->kind->keeps_data;
        if (replaces_data && !options->replace)
            return deploy_fail(
                deploy,
                "%.*s: a table's keys and local indexes cannot be changed; --replace deletes %s and "
                "makes it anew",
                SLICE_ARG(change->id), change->name);
        if (change->holds_data && !options->delete_data)
            return deploy_fail(deploy, "%.*s: the table %s holds items; --delete-data deletes them with it",
                               SLICE_ARG(change->id), change->name);
    }
    return true;
}

/* By now, what it refers to is known. */
static bool renew(struct deploy *deploy, struct resource *resource)
{
    if (!resource->source || !template_is_unknown(resource->properties)) return true;
    if (!resolve_properties(deploy, resource)) return false;
    resource->want = form_make(deploy, resource, resource->kind->want);
    if (deploy->fault || !resource->want) return false;
    if (resource->change.action == DEPLOY_CHANGE)
        resource->change.differences = form_compare(deploy, resource->kind, resource->want, resource->have);
    return true;
}

static bool replace(struct deploy *deploy, struct resource *resource)
{
    const struct kind *kind = resource->kind;
    const char *name = resource->change.name;
    const struct node *described = resource->described;
    bool is_renamed = resource->old_name != NULL;
    if (is_renamed) resource->change.name = resource->old_name;
    if (!kind->remove(deploy, resource)) return false;
    resource->change.name = name;
    resource->described = is_renamed ? described : NULL;
    if (!is_renamed) resource->have = NULL;
    if (!resource->have) return kind->create(deploy, resource);
    return !resource->change.differences || kind->update(deploy, resource);
}

static bool make(struct deploy *deploy, struct resource *resource)
{
    const struct kind *kind = resource->kind;
    if (!renew(deploy, resource)) return false;
    switch (resource->change.action) {
    case DEPLOY_CREATE: return kind->create(deploy, resource);
    case DEPLOY_CHANGE: return !resource->change.differences || kind->update(deploy, resource);
    case DEPLOY_REPLACE: return replace(deploy, resource);
    case DEPLOY_DELETE: return kind->remove(deploy, resource);
    default: return true;
    }
}

static bool run(struct deploy *deploy)
{
    const struct deploy_door *door = deploy->door;
    if (!record_write(deploy, deploy->text.len ? "DEPLOYING" : "DELETING")) return false;
    for (struct resource *one = deploy->resources; one; one = one->next) {
        if (!is_to_do(one->change.action)) continue;
        if (!lease_keep(deploy, 0)) return false;
        door->progress(door->context, &one->change, false);
        if (!make(deploy, one)) return false;
        one->is_settled = true;
        door->progress(door->context, &one->change, true);
    }
    if (!resolve_outputs(deploy)) return false;
    return deploy->text.len ? record_write(deploy, "DEPLOYED") : record_remove(deploy);
}

bool deploy_run(struct deploy *deploy)
{
    if (!check_consent(deploy)) return false;
    bool is_recorded = deploy->text.len ? record_is_up_to_date(deploy) : !deploy->etag.len;
    if (!deploy_is_needed(deploy) && is_recorded) return true;
    if (!lease_take(deploy)) return false;
    bool fine = false, is_same = false;
    for (int i = 0; i < PLANS_MAX && !is_same; i++) {
        struct slice planned = deploy->etag;
        if (!record_read(deploy)) break;
        is_same = slice_equal(planned, deploy->etag);
        if (!is_same && (!plan(deploy) || !check_consent(deploy))) break;
    }
    if (is_same)
        fine = run(deploy);
    else
        deploy_fail(deploy, "the stack %s is being changed by others: try again", deploy->options->stack);
    lease_release(deploy);
    return fine;
}

/* ---- asking ---- */

const struct deploy_change *deploy_changes(const struct deploy *deploy)
{
    return deploy->resources ? &deploy->resources->change : NULL;
}

const struct deploy_note *deploy_notes(const struct deploy *deploy)
{
    return deploy->notes;
}

const char *deploy_fault(const struct deploy *deploy)
{
    return deploy->was_silent ? NULL : deploy->fault;
}

bool deploy_is_busy(const struct deploy *deploy)
{
    return deploy->is_busy;
}

struct slice deploy_outputs(const struct deploy *deploy)
{
    return deploy->outputs;
}

const struct node *deploy_list(struct deploy *deploy)
{
    const struct node *list;
    struct resource nobody = {.change.id = SLICE("the stacks")};
    if (deploy->fault ||
        !rest_get(deploy, &nobody, "quipu", "/v1/documents/" DEPLOY_COLLECTION, "limit=1000", &list))
        return NULL;
    return list;
}
