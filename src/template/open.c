/* A template from its text to resources in the order in which they can be made.
 *
 * All resources and outputs are resolved once here, with nothing known of any resource. That finds what each refers to,
 * by which they are ordered, and every fault of the template before anything is changed by it. */
#include <stdlib.h>

#include "base/limits.h"
#include "template/resolve.h"

static bool check_sections(struct template *template);
static bool read_conditions(struct template *template);
static bool read_resources(struct template *template);
static bool read_outputs(struct template *template);
static bool order_resources(struct template *template);

struct template *template_open(struct arena *arena, struct slice text, const struct template_world *world,
                               char error[TEMPLATE_ERROR_BYTES])
{
    struct template *template = arena_new(arena, struct template);
    template->arena = arena;
    template->world = world;
    template->error = error;
    template->root = template_read(arena, text, world->name, &template->notes, error);
    if (!template->root) return NULL;
    if (template_is_serverless(template->root)) {
        template->kind = TEMPLATE_SERVERLESS;
        template->root = variables_fill(template, template->root);
        if (template->root) template->root = serverless_translate(template, template->root);
    } else if (template_is_sam(template->root)) {
        template->kind = TEMPLATE_SAM;
        template->root = sam_translate(template, template->root);
    }
    if (!template->root || *error) return NULL;
    template->work = 0;
    bool fine = check_sections(template) && parameters_read(template) && read_conditions(template) &&
                read_resources(template) && read_outputs(template) && order_resources(template);
    return fine ? template : NULL;
}

bool template_fail(struct template *template, const struct node *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_put(template->error, template->world->name, where->line, where->column, format, args);
    va_end(args);
    return false;
}

const struct template_resource *template_find(const struct template *template, struct slice id)
{
    for (size_t i = 0; i < template->resource_count; i++)
        if (slice_equal(template->resources[i].id, id)) return &template->resources[i];
    return NULL;
}

/* ---- sections ---- */

static void note_transform(struct template *template, const struct node *transform)
{
    static const char *const known[] = {"AWS::Serverless-2016-10-31", "AWS::LanguageExtensions"};
    for (const struct node *one = transform->kind == JSON_ARRAY ? transform->first : transform; one;
         one = transform->kind == JSON_ARRAY ? one->next : NULL) {
        struct slice name = one->kind == JSON_OBJECT ? node_text(one, "Name") : one->text;
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known |= slice_equal(name, slice_of(known[i]));
        if (!is_known)
            note_put(template->arena, &template->notes, one, "the transform '%.*s' is not known",
                     SLICE_ARG(name));
    }
}

static bool check_sections(struct template *template)
{
    static const char *const known[] = {"AWSTemplateFormatVersion",
                                        "Description",
                                        "Metadata",
                                        "Parameters",
                                        "Rules",
                                        "Mappings",
                                        "Conditions",
                                        "Transform",
                                        "Resources",
                                        "Outputs",
                                        "Globals",
                                        "Hooks"};
    const struct node *root = template->root;
    if (root->kind != JSON_OBJECT || !node_member(root, "Resources"))
        return template_fail(
            template, root,
            "this is no template: it has no 'Resources' as CloudFormation and SAM have, and no "
            "'service' and 'provider' as serverless.yml");
    for (const struct node *section = root->first; section; section = section->next) {
        size_t i = 0, count = sizeof known / sizeof *known;
        while (i < count && !slice_equal(section->name, slice_of(known[i]))) i++;
        if (i == count)
            note_put(template->arena, &template->notes, section, "'%.*s' is no section of a template",
                     SLICE_ARG(section->name));
    }
    if (node_member(root, "Transform")) note_transform(template, node_member(root, "Transform"));
    return true;
}

/* The members of a section; NULL: it has none, or is not there. */
static bool section_of(struct template *template, const char *name, const struct node **first)
{
    const struct node *section = node_member(template->root, name);
    *first = NULL;
    if (!section || section->kind == JSON_NULL) return true;
    if (section->kind != JSON_OBJECT) return template_fail(template, section, "'%s' must be an object", name);
    *first = section->first;
    return true;
}

static bool read_conditions(struct template *template)
{
    const struct node *rule;
    if (!section_of(template, "Conditions", &rule)) return false;
    size_t count = node_children(node_member(template->root, "Conditions"));
    if (count > LIMIT_TEMPLATE_RESOURCES)
        return template_fail(template, rule, "there are more than %d conditions", LIMIT_TEMPLATE_RESOURCES);
    template->conditions = arena_array(template->arena, struct condition, count);
    for (; rule; rule = rule->next)
        template->conditions[template->condition_count++] = (struct condition){rule->name, rule,
                                                                               CONDITION_UNTRIED};
    return true;
}

/* Whether a resource or an output is there at all. */
static bool is_wanted(struct template *template, const struct node *thing, bool *is_there)
{
    const struct node *name = node_member(thing, "Condition");
    *is_there = true;
    if (!name || name->kind == JSON_NULL) return true;
    if (!name->text.len) return template_fail(template, name, "'Condition' must name a condition");
    return condition_is_met(template, name, name->text, is_there);
}

static bool read_resources(struct template *template)
{
    const struct node *source;
    if (!section_of(template, "Resources", &source)) return false;
    size_t count = node_children(node_member(template->root, "Resources"));
    if (count > LIMIT_TEMPLATE_RESOURCES)
        return template_fail(template, source, "there are %zu resources, and %d may be", count,
                             LIMIT_TEMPLATE_RESOURCES);
    template->resources = arena_array(template->arena, struct template_resource, count);
    for (; source; source = source->next) {
        const struct node *type = node_member(source, "Type"),
                          *properties = node_member(source, "Properties");
        bool is_there;
        if (slice_starts(source->name, SLICE("Fn::ForEach::"))) {
            note_put(template->arena, &template->notes, source,
                     "'%.*s' is not known, and its resources are left out", SLICE_ARG(source->name));
            continue;
        }
        if (!type || type->kind != JSON_STRING)
            return template_fail(template, source, "the resource '%.*s' has no Type",
                                 SLICE_ARG(source->name));
        if (properties && properties->kind == JSON_NULL) properties = NULL;
        if (properties && properties->kind != JSON_OBJECT)
            return template_fail(template, properties, "the Properties of '%.*s' must be an object",
                                 SLICE_ARG(source->name));
        if (!is_wanted(template, source, &is_there)) return false;
        if (!is_there) continue;
        template->resources[template->resource_count++] = (struct template_resource){
            .id = source->name,
            .type = type->text,
            .source = source,
            .properties = properties,
            .is_retained = node_is(source, "DeletionPolicy", "Retain")};
    }
    return true;
}

static bool read_outputs(struct template *template)
{
    const struct node *source;
    if (!section_of(template, "Outputs", &source)) return false;
    size_t count = node_children(node_member(template->root, "Outputs"));
    template->outputs = arena_array(template->arena, struct template_output, count);
    for (; source; source = source->next) {
        const struct node *value = node_member(source, "Value");
        bool is_there;
        if (!value)
            return template_fail(template, source, "the output '%.*s' has no Value", SLICE_ARG(source->name));
        if (!is_wanted(template, source, &is_there)) return false;
        if (!is_there) continue;
        template->outputs[template->output_count++] = (struct template_output){
            source->name, value, node_member(source, "Description"),
            node_member(node_member(source, "Export"), "Name")};
    }
    return true;
}

/* ---- order ---- */

/* What one resource refers to, while all are looked through. */
struct gathering {
    struct template *template;
    bool *is_needed; /* by place in the list */
};

static enum template_answer gather(void *context, const struct template_resource *resource,
                                   struct slice attribute, struct slice *value)
{
    struct gathering *gathering = context;
    (void)attribute, (void)value;
    if (resource) gathering->is_needed[resource - gathering->template->resources] = true;
    return TEMPLATE_LATER;
}

static bool gather_depends_on(struct gathering *gathering, const struct template_resource *resource)
{
    struct template *template = gathering->template;
    const struct node *names = node_member(resource->source, "DependsOn"), *all;
    if (!names || names->kind == JSON_NULL) return true;
    for (const struct node *name = names->kind == JSON_ARRAY ? names->first : names; name;
         name = names->kind == JSON_ARRAY ? name->next : NULL) {
        const struct template_resource *needed = template_find(template, name->text);
        if (needed) {
            gathering->is_needed[needed - template->resources] = true;
            continue;
        }
        for (all = node_member(template->root, "Resources")->first;
             all && !slice_equal(all->name, name->text);)
            all = all->next;
        if (!all)
            return template_fail(template, name, "'%.*s' depends on '%.*s', which is no resource",
                                 SLICE_ARG(resource->id), SLICE_ARG(name->text));
    }
    return true;
}

static bool gather_all(struct template *template, bool *is_needed)
{
    struct gathering gathering = {template, is_needed};
    struct template_ask ask = {gather, &gathering};
    struct resolver resolver = {
        .template = template, .arena = template->arena, .ask = &ask, .notes = &template->notes};
    const struct node *made;
    for (size_t i = 0; i < template->resource_count; i++) {
        struct template_resource *resource = &template->resources[i];
        memset(is_needed, 0, template->resource_count * sizeof *is_needed);
        /* Nobody reads policies, and what SAM would make of its other kinds is not known: neither makes a circle. */
        bool is_left_out = slice_starts(resource->type, SLICE("AWS::Serverless::")) ||
                           slice_starts(resource->type, SLICE("AWS::IAM::"));
        if (resource->properties && !is_left_out && !resolve(&resolver, resource->properties, &made))
            return false;
        if (!gather_depends_on(&gathering, resource)) return false;
        size_t count = 0;
        for (size_t k = 0; k < template->resource_count; k++) count += is_needed[k];
        size_t *needs = arena_array(template->arena, size_t, count);
        for (size_t k = 0; k < template->resource_count; k++)
            if (is_needed[k]) needs[resource->need_count++] = k;
        resource->needs = needs;
    }
    for (size_t i = 0; i < template->output_count; i++)
        if (!resolve(&resolver, template->outputs[i].value, &made)) return false;
    return true;
}

struct ordering {
    struct template *template;
    size_t *order, *place; /* the sorted list, and where each one of the old list is in it */
    size_t count;
    unsigned char *state; /* 0 not seen, 1 under way, 2 done */
    size_t *path;         /* of those under way */
    size_t path_length;
};

static bool fail_of_cycle(struct ordering *ordering, size_t index)
{
    struct template *template = ordering->template;
    struct buf names = {0};
    size_t start = 0;
    while (ordering->path[start] != index) start++;
    for (size_t i = start; i < ordering->path_length; i++)
        buf_printf(&names, "%.*s -> ", SLICE_ARG(template->resources[ordering->path[i]].id));
    buf_slice(&names, template->resources[index].id);
    template_fail(template, template->resources[index].source, "resources need each other in a circle: %.*s",
                  SLICE_ARG(buf_view(&names)));
    buf_free(&names);
    return false;
}

static bool visit(struct ordering *ordering, size_t index)
{
    const struct template_resource *resource = &ordering->template->resources[index];
    if (ordering->state[index] == 2) return true;
    if (ordering->state[index] == 1) return fail_of_cycle(ordering, index);
    ordering->state[index] = 1;
    ordering->path[ordering->path_length++] = index;
    for (size_t i = 0; i < resource->need_count; i++)
        if (!visit(ordering, resource->needs[i])) return false;
    ordering->path_length--;
    ordering->state[index] = 2;
    ordering->place[index] = ordering->count;
    ordering->order[ordering->count++] = index;
    return true;
}

static bool order_resources(struct template *template)
{
    size_t count = template->resource_count;
    struct arena *arena = template->arena;
    if (!gather_all(template, arena_array(arena, bool, count))) return false;
    struct ordering ordering = {.template = template,
                                .order = arena_array(arena, size_t, count),
                                .place = arena_array(arena, size_t, count),
                                .path = arena_array(arena, size_t, count),
                                .state = arena_zero(arena, count)};
    for (size_t i = 0; i < count; i++)
        if (!visit(&ordering, i)) return false;
    struct template_resource *sorted = arena_array(arena, struct template_resource, count);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = template->resources[ordering.order[i]];
        size_t *needs = (size_t *)sorted[i].needs;
        for (size_t k = 0; k < sorted[i].need_count; k++) needs[k] = ordering.place[needs[k]];
    }
    template->resources = sorted;
    return true;
}
