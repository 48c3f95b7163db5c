/* What belongs to functions: layers, versions, aliases, settings of asynchronous calls, URLs. */
#include <stdio.h>
#include <string.h>

#include "deploy/internal.h"

#define FUNCTIONS "/2015-03-31/functions"
#define LAYERS    "/2018-10-31/layers"

/* "FUNCTION:QUALIFIER" as the physical name; the function may be an ARN that has a qualifier of its own. */
static void name_after_function(struct deploy *deploy, struct resource *resource, const char *member,
                                struct slice qualifier)
{
    struct slice name, own;
    function_split(node_text(resource->properties, member), &name, &own);
    if (!qualifier.len) qualifier = own;
    resource->change.name = arena_printf(&deploy->arena, "%.*s%s%.*s", SLICE_ARG(name),
                                         qualifier.len ? ":" : "", SLICE_ARG(qualifier))
                                .data;
}

static struct slice name_of(const struct resource *resource)
{
    struct slice rest = slice_of(resource->change.name);
    return slice_cut(&rest, ':');
}

static struct slice qualifier_of(const struct resource *resource)
{
    struct slice rest = slice_of(resource->change.name);
    slice_cut(&rest, ':');
    return rest;
}

static struct slice function_arn(struct deploy *deploy, const char *name)
{
    return arena_printf(&deploy->arena, "arn:aws:lambda:%.*s:%.*s:function:%s", SLICE_ARG(deploy->region),
                        SLICE_ARG(deploy->account), name);
}

/* The query of a qualifier; NULL: none. */
static const char *query_of(struct deploy *deploy, struct slice qualifier)
{
    return qualifier.len ? path_with(deploy, "Qualifier=%s", qualifier, SLICE("")) : NULL;
}

/* As rest_send, for the resource's qualifier. */
static bool send_qualified(struct deploy *deploy, struct resource *resource, const char *method,
                           const char *path, struct buf *body)
{
    struct deploy_request request = {.service = "lambda",
                                     .method = method,
                                     .path = path,
                                     .query = query_of(deploy, qualifier_of(resource))};
    struct deploy_reply reply;
    if (body) request.body = arena_take(&deploy->arena, body);
    if (strcmp(method, "DELETE") != 0) {
        if (!deploy_call(deploy, resource, &request, &reply)) return false;
        resource->described = reply.json;
        return true;
    }
    if (!deploy_ask(deploy, &request, &reply)) return false;
    return !reply.error || reply.status == 404 ||
           deploy_fail(deploy, "%.*s: %s", SLICE_ARG(resource->change.id), reply.message);
}

/* ---- layers ---- */

static const struct form_member layer_members[] = {
    {"Description", 's', "\"\""}, {"CompatibleRuntimes", 'l', NULL}, {"LicenseInfo", 's', NULL}};

static bool want_layer(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!resource->code.len && !code_find(deploy, resource, node_member(resource->properties, "Content")))
        return false;
    if (resource->change.reason) return true;
    put_name(out, "CodeSha256");
    code_put_hash(out, resource->code);
    form_put(out, resource->properties, layer_members, 3);
    return true;
}

static bool have_layer(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice name = slice_of(resource->change.name);
    const struct node *list, *version;
    resource->described = NULL;
    if (!rest_get(deploy, resource, "lambda", path_with(deploy, LAYERS "/%s/versions", name, SLICE("")), NULL,
                  &list))
        return false;
    const struct node *versions = node_member(list, "LayerVersions");
    if (!versions || !versions->first) return true;
    const char *path = path_with(deploy, LAYERS "/%s/versions/%s", name,
                                 node_text(versions->first, "Version"));
    if (!rest_get(deploy, resource, "lambda", path, NULL, &version)) return false;
    if (!version) return true;
    resource->described = version;
    put_string_member(out, "CodeSha256", node_text(node_member(version, "Content"), "CodeSha256"));
    form_put(out, version, layer_members, 3);
    return true;
}

/* A changed layer is a new version; functions that have an older one keep it until they are changed. */
static bool publish_layer(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    buf_text(&body, "{\"Content\":{\"ZipFile\":");
    json_put_base64(&body, resource->code);
    buf_byte(&body, '}');
    form_put(&body, resource->want, layer_members, 3);
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "lambda", "POST",
                     path_with(deploy, LAYERS "/%s/versions", slice_of(resource->change.name), SLICE("")),
                     &body, &resource->described);
}

static bool remove_layer(struct deploy *deploy, struct resource *resource)
{
    struct slice name = slice_of(resource->change.name);
    const char *path = path_with(deploy, LAYERS "/%s/versions", name, SLICE(""));
    const struct node *list;
    do {
        if (!rest_get(deploy, resource, "lambda", path, NULL, &list)) return false;
        const struct node *versions = node_member(list, "LayerVersions");
        list = versions ? versions->first : NULL;
        for (const struct node *one = list; one; one = one->next)
            if (!rest_send(deploy, resource, "lambda", "DELETE",
                           path_with(deploy, LAYERS "/%s/versions/%s", name, node_text(one, "Version")), NULL,
                           NULL))
                return false;
    } while (list);
    return true;
}

static struct slice layer_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    (void)deploy;
    bool is_known = resource->is_settled || resource->change.action == DEPLOY_SAME;
    bool is_arn = !name.len || slice_equal(name, SLICE("LayerVersionArn")) || slice_equal(name, SLICE("Arn"));
    return is_known && is_arn ? node_text(resource->described, "LayerVersionArn") : SLICE_NONE;
}

const struct kind kind_layer = {.type = "AWS::Lambda::LayerVersion",
                                .name_member = "LayerName",
                                .name_bytes = 140,
                                .known = "LayerName Content Description CompatibleRuntimes LicenseInfo "
                                         "CompatibleArchitectures",
                                .want = want_layer,
                                .have = have_layer,
                                .create = publish_layer,
                                .update = publish_layer,
                                .remove = remove_layer,
                                .attribute = layer_attribute};

/* ---- versions ---- */

#define OF_A_VERSION "CodeSha256 Handler Runtime MemorySize Timeout Environment Layers"

/* What a version must have: what its function has, where that is of this stack. */
static bool want_version(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice name, qualifier;
    function_split(node_text(resource->properties, "FunctionName"), &name, &qualifier);
    const struct resource *function = resource_named(deploy, "AWS::Lambda::Function", name);
    if (!slice_equal(name_of(resource), name)) resource->change.name = deploy_text(deploy, name);
    put_string_member(out, "FunctionName", name);
    for (const struct node *one = function && function->want ? function->want->first : NULL; one;
         one = one->next)
        if (word_is_in(OF_A_VERSION, one->name))
            put_name(out, deploy_text(deploy, one->name)), node_put(out, one);
    return true;
}

static bool have_version(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice name = name_of(resource), number = qualifier_of(resource);
    const struct node *function, *config = NULL;
    struct resource seen = {.change = resource->change};
    struct buf form = {0};
    const char *fault;
    if (!number.len) return true;
    if (!rest_get(deploy, resource, "lambda", path_with(deploy, FUNCTIONS "/%s", name, SLICE("")),
                  query_of(deploy, number), &function))
        return false;
    config = node_member(function, "Configuration");
    resource->described = config;
    if (!config) return true;
    put_string_member(out, "FunctionName", name);
    if (!resource_named(deploy, "AWS::Lambda::Function", name)) return true;
    seen.change.name = arena_printf(&deploy->arena, "%.*s:%.*s", SLICE_ARG(name), SLICE_ARG(number)).data;
    buf_byte(&form, '{');
    bool fine = kind_function.have(deploy, &seen, &form);
    buf_byte(&form, '}');
    const struct node *all = node_parse(&deploy->arena, arena_take(&deploy->arena, &form), &fault);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next)
        if (word_is_in(OF_A_VERSION, one->name))
            put_name(out, deploy_text(deploy, one->name)), node_put(out, one);
    return fine;
}

static bool publish_version(struct deploy *deploy, struct resource *resource)
{
    struct slice name = name_of(resource);
    struct buf body = {0};
    buf_byte(&body, '{');
    struct slice description = node_text(resource->properties, "Description");
    if (description.len) put_string_member(&body, "Description", description);
    buf_byte(&body, '}');
    if (!rest_send(deploy, resource, "lambda", "POST",
                   path_with(deploy, FUNCTIONS "/%s/versions", name, SLICE("")), &body, &resource->described))
        return false;
    resource->change.name = arena_printf(&deploy->arena, "%.*s:%.*s", SLICE_ARG(name),
                                         SLICE_ARG(node_text(resource->described, "Version")))
                                .data;
    return true;
}

static bool remove_version(struct deploy *deploy, struct resource *resource)
{
    if (!qualifier_of(resource).len) return true;
    return send_qualified(deploy, resource, "DELETE",
                          path_with(deploy, FUNCTIONS "/%s", name_of(resource), SLICE("")), NULL);
}

static struct slice version_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    if (!resource->is_settled && resource->change.action != DEPLOY_SAME) return SLICE_NONE;
    if (slice_equal(name, SLICE("Version"))) return qualifier_of(resource);
    return !name.len || slice_equal(name, SLICE("FunctionArn")) ? function_arn(deploy, resource->change.name)
                                                                : SLICE_NONE;
}

const struct kind kind_version = {.type = "AWS::Lambda::Version",
                                  .is_numbered = true,
                                  .known = "FunctionName Description CodeSha256",
                                  .want = want_version,
                                  .have = have_version,
                                  .create = publish_version,
                                  .update = publish_version,
                                  .remove = remove_version,
                                  .attribute = version_attribute};

/* ---- aliases ---- */

static const struct form_member alias_members[] = {
    {"FunctionVersion", 's', NULL}, {"Description", 's', "\"\""}, {"RoutingConfig", 'j', "{}"}};

/* CloudFormation's weights are a list, Lambda's an object. */
static void put_weights(struct buf *out, const struct node *routing)
{
    const struct node *weights = node_member(routing, "AdditionalVersionWeights");
    put_name(out, "RoutingConfig");
    buf_text(out, "{\"AdditionalVersionWeights\":{");
    for (const struct node *one = weights ? weights->first : NULL; one; one = one->next) {
        const struct node *weight = node_member(one, "FunctionWeight");
        put_comma(out);
        json_put_string(out, weights->kind == JSON_OBJECT ? one->name : node_text(one, "FunctionVersion"));
        buf_byte(out, ':');
        form_put_value(out, weight ? weight : one, 'n');
    }
    buf_text(out, "}}");
}

static bool want_alias(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    name_after_function(deploy, resource, "FunctionName", node_text(resource->properties, "Name"));
    form_put(out, resource->properties, alias_members, 2);
    put_weights(out, node_member(resource->properties, "RoutingConfig"));
    return true;
}

static const char *alias_path(struct deploy *deploy, const struct resource *resource)
{
    return path_with(deploy, FUNCTIONS "/%s/aliases/%s", name_of(resource), qualifier_of(resource));
}

static bool have_alias(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!rest_get(deploy, resource, "lambda", alias_path(deploy, resource), NULL, &resource->described))
        return false;
    if (!resource->described) return true;
    form_put(out, resource->described, alias_members, 2);
    put_weights(out, node_member(resource->described, "RoutingConfig"));
    return true;
}

static bool send_alias(struct deploy *deploy, struct resource *resource, bool is_new)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    if (is_new) put_string_member(&body, "Name", qualifier_of(resource));
    form_put(&body, resource->want, alias_members, 3);
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "lambda", is_new ? "POST" : "PUT",
                     is_new ? path_with(deploy, FUNCTIONS "/%s/aliases", name_of(resource), SLICE(""))
                            : alias_path(deploy, resource),
                     &body, &resource->described);
}

static bool create_alias(struct deploy *deploy, struct resource *resource)
{
    return send_alias(deploy, resource, true);
}

static bool update_alias(struct deploy *deploy, struct resource *resource)
{
    return send_alias(deploy, resource, false);
}

static bool remove_alias(struct deploy *deploy, struct resource *resource)
{
    return rest_send(deploy, resource, "lambda", "DELETE", alias_path(deploy, resource), NULL, NULL);
}

static struct slice arn_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    return !name.len || slice_equal(name, SLICE("AliasArn")) ? function_arn(deploy, resource->change.name)
                                                             : SLICE_NONE;
}

const struct kind kind_alias = {.type = "AWS::Lambda::Alias",
                                .known = "FunctionName FunctionVersion Name Description RoutingConfig",
                                .want = want_alias,
                                .have = have_alias,
                                .create = create_alias,
                                .update = update_alias,
                                .remove = remove_alias,
                                .attribute = arn_attribute};

/* ---- asynchronous calls ---- */

static const struct form_member event_invoke_members[] = {{"MaximumEventAgeInSeconds", 'n', NULL},
                                                          {"MaximumRetryAttempts", 'n', NULL},
                                                          {"DestinationConfig", 'j', "{}"}};

static const char *event_invoke_path(struct deploy *deploy, const struct resource *resource)
{
    return path_with(deploy, "/2019-09-25/functions/%s/event-invoke-config", name_of(resource), SLICE(""));
}

static bool want_event_invoke(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice qualifier = node_text(resource->properties, "Qualifier");
    if (slice_equal(qualifier, SLICE("$LATEST"))) qualifier = SLICE("");
    name_after_function(deploy, resource, "FunctionName", qualifier);
    form_put(out, resource->properties, event_invoke_members, 3);
    return true;
}

static bool have_event_invoke(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!rest_get(deploy, resource, "lambda", event_invoke_path(deploy, resource),
                  query_of(deploy, qualifier_of(resource)), &resource->described))
        return false;
    if (resource->described) form_put(out, resource->described, event_invoke_members, 3);
    return true;
}

static bool put_event_invoke(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    form_put(&body, resource->want, event_invoke_members, 3);
    buf_byte(&body, '}');
    return send_qualified(deploy, resource, "PUT", event_invoke_path(deploy, resource), &body);
}

static bool remove_event_invoke(struct deploy *deploy, struct resource *resource)
{
    return send_qualified(deploy, resource, "DELETE", event_invoke_path(deploy, resource), NULL);
}

static struct slice name_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    (void)deploy;
    return name.len ? SLICE_NONE : slice_of(resource->change.name);
}

const struct kind kind_event_invoke = {
    .type = "AWS::Lambda::EventInvokeConfig",
    .known = "FunctionName Qualifier MaximumEventAgeInSeconds MaximumRetryAttempts "
             "DestinationConfig",
    .want = want_event_invoke,
    .have = have_event_invoke,
    .create = put_event_invoke,
    .update = put_event_invoke,
    .remove = remove_event_invoke,
    .attribute = name_attribute};

/* ---- URLs ---- */

static const struct form_member url_members[] = {
    {"AuthType", 's', "\"NONE\""}, {"Cors", 'j', "{}"}, {"InvokeMode", 's', "\"BUFFERED\""}};

static const char *url_path(struct deploy *deploy, const struct resource *resource)
{
    return path_with(deploy, "/2021-10-31/functions/%s/url", name_of(resource), SLICE(""));
}

static bool want_url(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    name_after_function(deploy, resource, "TargetFunctionArn", node_text(resource->properties, "Qualifier"));
    form_put(out, resource->properties, url_members, 3);
    return true;
}

static bool have_url(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!rest_get(deploy, resource, "lambda", url_path(deploy, resource),
                  query_of(deploy, qualifier_of(resource)), &resource->described))
        return false;
    if (resource->described) form_put(out, resource->described, url_members, 3);
    return true;
}

static bool send_url(struct deploy *deploy, struct resource *resource, const char *method)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    form_put(&body, resource->want, url_members, 3);
    buf_byte(&body, '}');
    return send_qualified(deploy, resource, method, url_path(deploy, resource), &body);
}

static bool create_url(struct deploy *deploy, struct resource *resource)
{
    return send_url(deploy, resource, "POST");
}

static bool update_url(struct deploy *deploy, struct resource *resource)
{
    return send_url(deploy, resource, "PUT");
}

static bool remove_url(struct deploy *deploy, struct resource *resource)
{
    return send_qualified(deploy, resource, "DELETE", url_path(deploy, resource), NULL);
}

static struct slice url_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    struct slice url = node_text(resource->described, "FunctionUrl");
    if (slice_equal(name, SLICE("FunctionUrl"))) return url.len ? url : SLICE_NONE;
    return !name.len || slice_equal(name, SLICE("FunctionArn")) ? function_arn(deploy, resource->change.name)
                                                                : SLICE_NONE;
}

const struct kind kind_url = {.type = "AWS::Lambda::Url",
                              .known = "TargetFunctionArn Qualifier AuthType Cors InvokeMode",
                              .want = want_url,
                              .have = have_url,
                              .create = create_url,
                              .update = update_url,
                              .remove = remove_url,
                              .attribute = url_attribute};
