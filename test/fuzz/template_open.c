/* Any text as a template: nothing crashes or runs on for ever, errors are told, what is opened can be resolved with
 * everything known and with nothing known, and a tree that was read is read again from its JSON. The text's own parts
 * serve as the files that it asks for. */
#include "base/fail.h"
#include "base/limits.h"
#include "template/template.h"

static enum template_answer answer(void *context, const struct template_resource *resource,
                                   struct slice attribute, struct slice *value)
{
    (void)attribute;
    *value = resource ? resource->id : SLICE("exported");
    return *(const bool *)context ? TEMPLATE_KNOWN : TEMPLATE_LATER;
}

/* Behind the first ^ in the text is what all files hold. */
static struct slice read_file(void *context, struct arena *arena, struct slice path)
{
    struct slice rest = *(const struct slice *)context;
    (void)arena, (void)path;
    return rest.data ? rest : SLICE_NONE;
}

static void check_template(struct template *template)
{
    char error[TEMPLATE_ERROR_BYTES];
    const struct node *made;
    for (int known = 0; known < 2; known++) {
        bool is_known = known;
        const struct template_ask ask = {answer, &is_known};
        for (size_t i = 0; i < template->resource_count; i++) {
            const struct template_resource *resource = &template->resources[i];
            for (size_t k = 0; k < resource->need_count; k++) ensure(resource->needs[k] < i);
            if (template_properties(template, resource, &ask, &made, error))
                ensure(made && made->kind == JSON_OBJECT && !(is_known && template_is_unknown(made)));
            else
                ensure(*error);
        }
        for (size_t i = 0; i < template->output_count; i++)
            if (!template_resolve(template, template->outputs[i].value, &ask, &made, error)) ensure(*error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct slice rest = {(const char *)data, size}, text = rest;
    struct template_notes notes = {0};
    char error[TEMPLATE_ERROR_BYTES];
    if (size && memchr(data, '^', size))
        text = slice_cut(&rest, '^');
    else
        rest = SLICE_NONE;
    const struct node *tree = template_read(&arena, text, "t", &notes, error);
    ensure(!tree == !!*error);
    if (tree && (tree->kind == JSON_OBJECT)) {
        struct buf json = {0}, again = {0};
        struct template_notes none = {0};
        node_put(&json, tree);
        const struct node *second = json.len <= LIMIT_TEMPLATE_BYTES
                                        ? template_read(&arena, buf_view(&json), "t", &none, error)
                                        : NULL;
        if (second) node_put(&again, second);
        ensure(!second || slice_equal(buf_view(&json), buf_view(&again)));
        buf_free(&json);
        buf_free(&again);
    }
    const struct template_given given[] = {{SLICE("Stage"), SLICE("dev")}};
    struct template_world world = {.name = "t",
                                   .given = given,
                                   .given_count = size % 2,
                                   .stack = SLICE("stack"),
                                   .region = SLICE("eu-central-1"),
                                   .account = SLICE("000000000000"),
                                   .read = read_file,
                                   .context = &rest};
    struct template *template = template_open(&arena, text, &world, error);
    ensure(!template == !!*error);
    if (template) check_template(template);
    arena_free(&arena);
    return 0;
}
