/* What the tests of templates share. */
#include "unit/template_fixture.h"

#include "unit/test.h"

static struct arena arena;
static struct buf out;
static struct template *template;
static struct template_given given[8];
static struct slice read_file(void *context, struct arena *keeper, struct slice path)
{
    (void)context, (void)keeper;
    if (slice_equal(path, SLICE("./more.yml"))) return SLICE("a: {b: 7}\nenv: {X: '${self:service}'}\n");
    if (slice_equal(path, SLICE("bad.yml"))) return SLICE("a: [");
    return slice_equal(path, SLICE("text.txt")) ? SLICE("words") : SLICE_NONE;
}

static struct slice variable(void *context, struct arena *keeper, struct slice name)
{
    (void)context, (void)keeper;
    return slice_equal(name, SLICE("HOME")) ? SLICE("/home") : SLICE_NONE;
}

static struct template_world world = {.name = "t.yaml",
                                      .given = given,
                                      .stack = {"app", 3},
                                      .region = {"eu-central-1", 12},
                                      .account = {"000000000000", 12},
                                      .read = read_file,
                                      .variable = variable};

void fixture_end(void)
{
    buf_free(&out);
    arena_free(&arena);
    template = NULL;
    world.given_count = 0;
}

void fixture_give(const char *name, const char *value)
{
    given[world.given_count++] = (struct template_given){slice_of(name), slice_of(value)};
}

struct slice fixture_open(const char *text)
{
    static char error[TEMPLATE_ERROR_BYTES];
    *error = 0;
    template = template_open(&arena, slice_of(text), &world, error);
    CHECK(!template == !!*error);
    return slice_of(error);
}

static enum template_answer answer(void *context, const struct template_resource *resource,
                                   struct slice attribute, struct slice *value)
{
    (void)context;
    if (resource && slice_equal(resource->id, SLICE("Later"))) return TEMPLATE_LATER;
    if (resource && slice_equal(resource->id, SLICE("Never"))) return TEMPLATE_NONE;
    *value = resource ? arena_printf(&arena, "<%.*s%s%.*s>", SLICE_ARG(resource->id),
                                     attribute.len ? "." : "", SLICE_ARG(attribute))
                      : arena_printf(&arena, "<%.*s>", SLICE_ARG(attribute));
    return TEMPLATE_KNOWN;
}

static const struct template_ask ask = {answer, NULL};

struct slice fixture_properties(const char *id)
{
    const struct template_resource *resource = template ? template_find(template, slice_of(id)) : NULL;
    char error[TEMPLATE_ERROR_BYTES];
    const struct node *made;
    if (!resource) return SLICE("there is no such resource");
    out.len = 0;
    if (!template_properties(template, resource, &ask, &made, error))
        return arena_copy(&arena, slice_of(error));
    node_put(&out, made);
    if (template_is_unknown(made)) buf_text(&out, " unknown");
    return buf_view(&out);
}

struct slice fixture_order(void)
{
    out.len = 0;
    for (size_t i = 0; template && i < template->resource_count; i++) {
        const struct template_resource *resource = &template->resources[i];
        buf_printf(&out, "%s%.*s", i ? " " : "", SLICE_ARG(resource->id));
        for (size_t k = 0; k < resource->need_count; k++) {
            CHECK(resource->needs[k] < i);
            buf_printf(&out, "%s%.*s", k ? "," : "(", SLICE_ARG(template->resources[resource->needs[k]].id));
        }
        if (resource->need_count) buf_byte(&out, ')');
    }
    return buf_view(&out);
}

struct slice fixture_source(const char *id)
{
    const struct template_resource *resource = template ? template_find(template, slice_of(id)) : NULL;
    if (!resource) return SLICE("there is no such resource");
    out.len = 0;
    buf_slice(&out, resource->type);
    if (resource->properties) node_put(&out, resource->properties);
    return buf_view(&out);
}

struct slice fixture_outputs(void)
{
    char error[TEMPLATE_ERROR_BYTES];
    out.len = 0;
    for (size_t i = 0; template && i < template->output_count; i++) {
        const struct node *made = NULL;
        CHECK(template_resolve(template, template->outputs[i].value, &ask, &made, error));
        buf_printf(&out, "%s%.*s=", i ? " " : "", SLICE_ARG(template->outputs[i].name));
        if (made) node_put(&out, made);
    }
    return buf_view(&out);
}

struct slice fixture_notes(void)
{
    out.len = 0;
    for (const struct template_note *note = template ? template->notes.first : NULL; note; note = note->next)
        buf_printf(&out, "%s%u: %.*s", out.len ? "; " : "", note->line, SLICE_ARG(note->text));
    return buf_view(&out);
}
