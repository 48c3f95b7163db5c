/* AWS::Lambda::Function. Code is compared by its hash, settings by their values. */
#include <string.h>

#include "deploy/internal.h"

#define FUNCTIONS "/2015-03-31/functions"
#define ROLE      "arn:aws:iam::000000000000:role/quipu" /* Lambda wants one; nobody assumes it */

static const struct form_member members[] = {
    {"Description", 's', "\"\""},
    {"Handler", 's', NULL},
    {"Runtime", 's', NULL},
    {"MemorySize", 'n', "128"},
    {"Timeout", 'n', "3"},
    {"Architectures", 'l', "[\"x86_64\"]"},
    {"EphemeralStorage", 'j', "{\"Size\":512}"},
    {"DeadLetterConfig", 'j', "{}"},
    {"TracingConfig", 'j', "{\"Mode\":\"PassThrough\"}"},
    {"LoggingConfig", 'j', "{\"LogFormat\":\"Text\"}"},
    {"VpcConfig", 'j', NULL},
    {"FileSystemConfigs", 'j', "[]"},
};
#define MEMBERS (sizeof members / sizeof *members)

/* ---- forms ---- */

static bool runtime_runs(struct slice runtime)
{
    return slice_starts(runtime, SLICE("nodejs")) || slice_starts(runtime, SLICE("python3")) ||
           slice_starts(runtime, SLICE("provided"));
}

static bool want_function(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties, *layers = node_member(given, "Layers");
    const struct node *variables = node_member(node_member(given, "Environment"), "Variables");
    struct slice runtime = node_text(given, "Runtime");
    const struct node *code = node_member(given, "Code");
    if (!resource->code.len && !resource->directory && !code_find(deploy, resource, code)) return false;
    if (resource->change.reason) return true;
    if (!runtime_runs(runtime)) {
        resource->change.reason = arena_printf(
                                      &deploy->arena,
                                      "the runtime %.*s does not run here: nodejs, python3 and provided do",
                                      SLICE_ARG(runtime.len ? runtime : SLICE("that is not named")))
                                      .data;
        return true;
    }
    if (resource->directory) {
        put_string_member(out, "Directory", slice_of(resource->directory));
    } else {
        put_name(out, "CodeSha256");
        code_put_hash(out, resource->code);
    }
    form_put(out, given, members, MEMBERS);
    put_name(out, "Environment");
    if (variables)
        form_put_value(out, variables, 'm');
    else
        buf_text(out, "{}");
    put_name(out, "Layers");
    if (layers)
        form_put_value(out, layers, 'l');
    else
        buf_text(out, "[]");
    form_put_tags(out, "Tags", node_member(given, "Tags"));
    put_name(out, "ReservedConcurrentExecutions");
    if (node_member(given, "ReservedConcurrentExecutions"))
        form_put_value(out, node_member(given, "ReservedConcurrentExecutions"), 'n');
    else
        buf_text(out, "null");
    return true;
}

static bool have_function(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *reply;
    const char *path = path_with(deploy, FUNCTIONS "/%s", slice_of(resource->change.name), SLICE(""));
    if (!rest_get(deploy, resource, "lambda", path, NULL, &reply)) return false;
    const struct node *config = node_member(reply, "Configuration");
    resource->described = config;
    if (!config) return true;
    const struct node *directory = node_member(node_member(config, "Quipu"), "Directory");
    const struct node *layers = node_member(config, "Layers");
    if (directory)
        put_string_member(out, "Directory", directory->text);
    else
        put_string_member(out, "CodeSha256", node_text(config, "CodeSha256"));
    form_put(out, config, members, MEMBERS);
    const struct node *variables = node_member(node_member(config, "Environment"), "Variables");
    if (variables) put_name(out, "Environment"), node_put(out, variables);
    put_name(out, "Layers");
    buf_byte(out, '[');
    for (const struct node *one = layers ? layers->first : NULL; one; one = one->next)
        put_comma(out), json_put_string(out, node_text(one, "Arn"));
    buf_byte(out, ']');
    form_put_tags(out, "Tags", node_member(reply, "Tags"));
    const struct node *reserved = node_member(node_member(reply, "Concurrency"),
                                              "ReservedConcurrentExecutions");
    if (reserved) put_name(out, "ReservedConcurrentExecutions"), node_put(out, reserved);
    return true;
}

/* ---- making and changing ---- */

static void put_code(struct buf *out, const struct resource *resource)
{
    if (resource->directory) {
        put_string_member(out, "Directory", slice_of(resource->directory));
    } else {
        put_name(out, "ZipFile");
        json_put_base64(out, resource->code);
    }
}

/* Settings of the form; `only_differing` for an update. */
static void put_settings(struct buf *out, const struct resource *resource, bool only_differing)
{
    const struct node *want = resource->want;
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct node *value = node_member(want, members[i].name);
        if (!value || (only_differing && !resource_differs(resource, members[i].name))) continue;
        put_name(out, members[i].name), node_put(out, value);
    }
    if (!only_differing || resource_differs(resource, "Environment")) {
        put_name(out, "Environment");
        buf_text(out, "{\"Variables\":");
        node_put(out, node_member(want, "Environment"));
        buf_byte(out, '}');
    }
    if (!only_differing || resource_differs(resource, "Layers"))
        put_name(out, "Layers"), node_put(out, node_member(want, "Layers"));
}

static bool set_concurrency(struct deploy *deploy, struct resource *resource)
{
    const char *path = path_with(deploy, "/2017-10-31/functions/%s/concurrency",
                                 slice_of(resource->change.name), SLICE(""));
    struct slice number = node_text(resource->want, "ReservedConcurrentExecutions");
    struct buf body = {0};
    if (!number.len) return rest_send(deploy, resource, "lambda", "DELETE", path, NULL, NULL);
    buf_printf(&body, "{\"ReservedConcurrentExecutions\":%.*s}", SLICE_ARG(number));
    return rest_send(deploy, resource, "lambda", "PUT", path, &body, NULL);
}

static bool create_function(struct deploy *deploy, struct resource *resource)
{
    struct slice role = node_text(resource->properties, "Role");
    struct buf body = {0};
    const struct node *reply;
    buf_byte(&body, '{');
    put_string_member(&body, "FunctionName", slice_of(resource->change.name));
    put_string_member(&body, "Role", slice_starts(role, SLICE("arn:")) ? role : SLICE(ROLE));
    put_settings(&body, resource, false);
    if (node_children(node_member(resource->want, "Tags")))
        put_name(&body, "Tags"), node_put(&body, node_member(resource->want, "Tags"));
    put_name(&body, "Code");
    buf_byte(&body, '{');
    put_code(&body, resource);
    buf_text(&body, "}}");
    if (!rest_send(deploy, resource, "lambda", "POST", FUNCTIONS, &body, &reply)) return false;
    resource->described = reply;
    return !node_text(resource->want, "ReservedConcurrentExecutions").len ||
           set_concurrency(deploy, resource);
}

static bool update_tags(struct deploy *deploy, struct resource *resource)
{
    const struct node *want = node_member(resource->want, "Tags"),
                      *have = node_member(resource->have, "Tags");
    const char *path = path_with(deploy, "/2017-03-31/tags/%s", node_text(resource->described, "FunctionArn"),
                                 SLICE(""));
    struct buf query = {0}, body = {0};
    for (const struct node *tag = have ? have->first : NULL; tag; tag = tag->next)
        if (!node_member(want, deploy_text(deploy, tag->name)))
            buf_printf(&query, "%s%s", query.len ? "&" : "",
                       path_with(deploy, "tagKeys=%s", tag->name, SLICE("")));
    if (query.len) {
        struct deploy_reply reply;
        buf_byte(&query, '\0');
        struct deploy_request request = {.service = "lambda",
                                         .method = "DELETE",
                                         .path = path,
                                         .query = arena_take(&deploy->arena, &query).data};
        if (!deploy_call(deploy, resource, &request, &reply)) return false;
    }
    if (!node_children(want)) return true;
    buf_text(&body, "{\"Tags\":");
    node_put(&body, want);
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "lambda", "POST", path, &body, NULL);
}

/* The code first: a runtime that fits only the new code must not meet the old. */
static bool update_function(struct deploy *deploy, struct resource *resource)
{
    struct slice name = slice_of(resource->change.name);
    struct buf body = {0};
    bool fine = true;
    if (resource_differs_in(resource, "CodeSha256 Directory")) {
        buf_byte(&body, '{');
        put_code(&body, resource);
        buf_byte(&body, '}');
        fine = rest_send(deploy, resource, "lambda", "PUT",
                         path_with(deploy, FUNCTIONS "/%s/code", name, SLICE("")), &body, NULL);
    }
    body = (struct buf){0};
    buf_byte(&body, '{');
    put_settings(&body, resource, true);
    buf_byte(&body, '}');
    if (fine && body.len > 2)
        fine = rest_send(deploy, resource, "lambda", "PUT",
                         path_with(deploy, FUNCTIONS "/%s/configuration", name, SLICE("")), &body, NULL);
    buf_free(&body);
    if (fine && resource_differs(resource, "Tags")) fine = update_tags(deploy, resource);
    if (fine && resource_differs(resource, "ReservedConcurrentExecutions"))
        fine = set_concurrency(deploy, resource);
    return fine;
}

static bool remove_function(struct deploy *deploy, struct resource *resource)
{
    return rest_send(deploy, resource, "lambda", "DELETE",
                     path_with(deploy, FUNCTIONS "/%s", slice_of(resource->change.name), SLICE("")), NULL,
                     NULL);
}

static struct slice function_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    if (!name.len) return slice_of(resource->change.name);
    if (slice_equal(name, SLICE("Arn")))
        return arena_printf(&deploy->arena, "arn:aws:lambda:%.*s:%.*s:function:%s", SLICE_ARG(deploy->region),
                            SLICE_ARG(deploy->account), resource->change.name);
    return SLICE_NONE;
}

const struct kind kind_function = {
    .type = "AWS::Lambda::Function",
    .name_member = "FunctionName",
    .name_bytes = 64,
    .known =
        "FunctionName Code Description Handler Runtime MemorySize Timeout Architectures EphemeralStorage "
        "DeadLetterConfig TracingConfig LoggingConfig VpcConfig FileSystemConfigs Environment Layers Tags "
        "ReservedConcurrentExecutions Role PackageType",
    .loose = "LoggingConfig VpcConfig TracingConfig EphemeralStorage",
    .want = want_function,
    .have = have_function,
    .create = create_function,
    .update = update_function,
    .remove = remove_function,
    .attribute = function_attribute,
};
