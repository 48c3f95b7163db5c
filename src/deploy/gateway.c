/* APIs of API Gateway, of both kinds: each is an API of the server (/v1/routes), and its routes, methods and stages are
 * parts of that.
 *
 * Integrations and resources are nothing by themselves. What Ref answers for them says what whoever refers to them must
 * know: FUNCTION@PAYLOAD for an integration, the path for a resource. */
#include <string.h>

#include "deploy/internal.h"

#define ROUTES         "/v1/routes"
#define API_NAME_BYTES 60

/* ---- APIs ---- */

/* What a host's name may have: small letters, digits and hyphens. */
static const char *api_name(struct deploy *deploy, const struct resource *resource)
{
    char *name = (char *)arena_printf(&deploy->arena, "%.30s-%.*s", deploy->options->stack,
                                      SLICE_ARG(resource->change.id))
                     .data;
    if (strlen(name) > API_NAME_BYTES) name[API_NAME_BYTES] = '\0';
    for (char *at = name; *at; at++) {
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at | 32);
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= '0' && *at <= '9')) *at = '-';
    }
    return name;
}

static const char *api_path(struct deploy *deploy, struct slice api)
{
    return path_with(deploy, ROUTES "/%s", api, SLICE(""));
}

/* SAM has the words of headers, in quotes of their own: "'GET,POST'". */
static void put_words(struct buf *out, const char *name, struct slice text)
{
    if (text.len > 1 && text.data[0] == '\'') text = (struct slice){text.data + 1, text.len - 2};
    if (!text.len) return;
    put_name(out, name);
    buf_byte(out, '[');
    while (text.len) {
        struct slice word = slice_cut(&text, ',');
        while (word.len && word.data[0] == ' ') word = slice_from(word, 1);
        put_comma(out);
        json_put_string(out, word);
    }
    buf_byte(out, ']');
}

static void put_sam_cors(struct buf *out, const struct node *cors)
{
    put_words(out, "AllowOrigins", cors->kind == JSON_STRING ? cors->text : node_text(cors, "AllowOrigin"));
    put_words(out, "AllowMethods", node_text(cors, "AllowMethods"));
    put_words(out, "AllowHeaders", node_text(cors, "AllowHeaders"));
}

static bool want_api(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    static const struct form_member members[] = {{"AllowCredentials", 'b', NULL}, {"AllowHeaders", 'l', NULL},
                                                 {"AllowMethods", 'l', NULL},     {"AllowOrigins", 'l', NULL},
                                                 {"ExposeHeaders", 'l', NULL},    {"MaxAge", 'n', NULL}};
    const struct node *given = resource->properties, *cors = node_member(given, "CorsConfiguration");
    struct slice protocol = node_text(given, "ProtocolType");
    resource->change.name = api_name(deploy, resource);
    if (protocol.len && !slice_equal(protocol, SLICE("HTTP"))) {
        resource->change.reason = "it speaks WebSocket, which is not served here";
        return true;
    }
    if (node_member(given, "Body"))
        deploy_note(deploy,
                    "%.*s: routes that stand in a Body (OpenAPI) are not read: use events, routes or methods",
                    SLICE_ARG(resource->change.id));
    put_string_member(out, "Api", slice_of(resource->change.name));
    put_name(out, "cors");
    buf_byte(out, '{');
    form_put(out, cors, members, 6);
    if (node_member(given, "Cors")) put_sam_cors(out, node_member(given, "Cors"));
    buf_byte(out, '}');
    return true;
}

static bool have_api(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!rest_get(deploy, resource, "quipu", api_path(deploy, slice_of(resource->change.name)), NULL,
                  &resource->described))
        return false;
    if (!resource->described) return true;
    const struct node *cors = node_member(resource->described, "cors");
    put_string_member(out, "Api", slice_of(resource->change.name));
    if (cors) put_name(out, "cors"), node_put(out, cors);
    return true;
}

/* The definition as it is, with another value for one member. */
static bool change_api(struct deploy *deploy, struct resource *resource, struct slice api, const char *member,
                       struct slice value)
{
    const struct node *now;
    struct buf body = {0};
    if (!rest_get(deploy, resource, "quipu", api_path(deploy, api), NULL, &now)) return false;
    buf_byte(&body, '{');
    for (const struct node *one = now ? now->first : NULL; one; one = one->next)
        if (!word_is_in("api url", one->name) && !slice_equal(one->name, slice_of(member)))
            put_name(&body, deploy_text(deploy, one->name)), node_put(&body, one);
    if (!node_member(now, "routes") && strcmp(member, "routes") != 0)
        put_raw_member(&body, "routes", SLICE("{}"));
    if (value.len) put_raw_member(&body, member, value);
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "quipu", "PUT", api_path(deploy, api), &body, NULL);
}

static bool put_api(struct deploy *deploy, struct resource *resource)
{
    const struct node *cors = node_member(resource->want, "cors");
    struct buf text = {0};
    if (node_children(cors)) node_put(&text, cors);
    struct slice api = slice_of(resource->change.name);
    return change_api(deploy, resource, api, "cors", arena_take(&deploy->arena, &text)) &&
           rest_get(deploy, resource, "quipu", api_path(deploy, api), NULL, &resource->described);
}

static bool remove_api(struct deploy *deploy, struct resource *resource)
{
    return rest_send(deploy, resource, "quipu", "DELETE", api_path(deploy, slice_of(resource->change.name)),
                     NULL, NULL);
}

static struct slice api_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    struct slice url = node_text(resource->described, "url");
    (void)deploy;
    if (!name.len || word_is_in("ApiId RestApiId", name)) return slice_of(resource->change.name);
    if (slice_equal(name, SLICE("RootResourceId"))) return SLICE("/");
    if (!slice_equal(name, SLICE("ApiEndpoint")) || !url.len) return SLICE_NONE;
    return url.data[url.len - 1] == '/' ? (struct slice){url.data, url.len - 1} : url;
}

/* https://API.execute-api.REGION.amazonaws.com is http://HOST/_api/API here. */
struct slice gateway_local_url(struct deploy *deploy, struct slice text)
{
    for (struct resource *one = deploy->resources; one; one = one->next) {
        if (one->kind != &kind_http_api && one->kind != &kind_rest_api) continue;
        struct slice there = arena_printf(&deploy->arena, "https://%s.execute-api.%.*s.amazonaws.com",
                                          one->change.name, SLICE_ARG(deploy->region));
        struct slice here = api_attribute(deploy, one, SLICE("ApiEndpoint"));
        if (here.data && slice_starts(text, there))
            return arena_printf(&deploy->arena, "%.*s%.*s", SLICE_ARG(here),
                                SLICE_ARG(slice_from(text, there.len)));
    }
    return text;
}

const struct kind kind_http_api = {.type = "AWS::ApiGatewayV2::Api",
                                   .known = "Name Description ProtocolType Body CorsConfiguration Tags",
                                   .want = want_api,
                                   .have = have_api,
                                   .create = put_api,
                                   .update = put_api,
                                   .remove = remove_api,
                                   .attribute = api_attribute};
const struct kind kind_rest_api = {
    .type = "AWS::ApiGateway::RestApi",
    .known = "Name Description Body EndpointConfiguration Tags Parameters Cors",
    .want = want_api,
    .have = have_api,
    .create = put_api,
    .update = put_api,
    .remove = remove_api,
    .attribute = api_attribute};

/* ---- what Ref of a part says ---- */

struct slice gateway_part(struct deploy *deploy, const struct resource *resource)
{
    const struct node *given = resource->properties;
    struct slice name, qualifier, payload = node_text(given, "PayloadFormatVersion");
    if (slice_equal(resource->change.type, SLICE("AWS::ApiGateway::Resource"))) {
        struct slice parent = node_text(given, "ParentId");
        if (slice_equal(parent, SLICE("/"))) parent = SLICE("");
        return arena_printf(&deploy->arena, "%.*s/%.*s", SLICE_ARG(parent),
                            SLICE_ARG(node_text(given, "PathPart")));
    }
    if (!slice_equal(resource->change.type, SLICE("AWS::ApiGatewayV2::Integration"))) return SLICE_NONE;
    struct slice uri = node_text(given, "IntegrationUri");
    const char *at = memmem(uri.data, uri.len, "/functions/", 11);
    if (at) uri = slice_from(uri, (size_t)(at + 11 - uri.data)), uri = slice_cut(&uri, '/');
    function_split(uri, &name, &qualifier);
    return arena_printf(&deploy->arena, "%.*s%s%.*s@%.*s", SLICE_ARG(name), qualifier.len ? ":" : "",
                        SLICE_ARG(qualifier), SLICE_ARG(payload.len ? payload : SLICE("2.0")));
}

/* ---- routes and methods ---- */

/* The physical name is "API KEY". */
static const char *route_path(struct deploy *deploy, const struct resource *resource)
{
    struct slice key = slice_of(resource->change.name), api = slice_cut(&key, ' ');
    return path_with(deploy, ROUTES "/%s/%s", api, key);
}

static void put_route(struct deploy *deploy, struct resource *resource, struct buf *out, struct slice api,
                      struct slice key, struct slice function, struct slice payload)
{
    struct slice auth = node_text(resource->properties, "AuthorizationType");
    bool is_signed = slice_equal(auth, SLICE("AWS_IAM"));
    if (auth.len && !is_signed && !slice_equal(auth, SLICE("NONE")))
        deploy_note(deploy, "%.*s: nobody checks its authorization by %.*s", SLICE_ARG(resource->change.id),
                    SLICE_ARG(auth));
    resource->change.name = arena_printf(&deploy->arena, "%.*s %.*s", SLICE_ARG(api), SLICE_ARG(key)).data;
    if (function.len) put_string_member(out, "function", function);
    if (function.len) put_string_member(out, "payload", payload);
    put_string_member(out, "auth", is_signed ? SLICE("AWS_IAM") : SLICE("NONE"));
}

static bool want_route(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties;
    struct slice target = arn_last(node_text(given, "Target"), '/'), function = slice_cut(&target, '@');
    if (!function.len) {
        resource->change.reason = "its integration is no function";
        return true;
    }
    put_route(deploy, resource, out, node_text(given, "ApiId"), node_text(given, "RouteKey"), function,
              target.len ? target : SLICE("2.0"));
    return true;
}

/* The one template that there is, or that for JSON. */
static struct slice template_of(const struct node *templates)
{
    struct slice json = node_text(templates, "application/json");
    return json.len || !templates || !templates->first ? json : templates->first->text;
}

/* arn:aws:apigateway:REGION:dynamodb:action/UpdateItem, with mapping templates for the request and the replies. */
static void put_call(struct buf *out, const struct node *integration, struct slice operation)
{
    const struct node *replies = node_member(integration, "IntegrationResponses");
    const struct node *requests = node_member(integration, "RequestTemplates");
    struct buf others = {0};
    put_string_member(out, "dynamodb", operation);
    if (template_of(requests).len) put_string_member(out, "request", template_of(requests));
    for (const struct node *one = replies ? replies->first : NULL; one; one = one->next) {
        struct slice pattern = node_text(one, "SelectionPattern"), status = node_text(one, "StatusCode");
        struct slice text = template_of(node_member(one, "ResponseTemplates"));
        struct buf *to = pattern.len ? &others : out;
        if (pattern.len) {
            if (to->len) buf_byte(to, ',');
            buf_byte(to, '{');
            put_string_member(to, "pattern", pattern);
        }
        if (text.len) put_string_member(to, "response", text);
        if (status.len) put_raw_member(to, "status", status);
        if (pattern.len) buf_byte(to, '}');
    }
    if (others.len) buf_printf(out, ",\"responses\":[%.*s]", SLICE_ARG(buf_view(&others)));
    buf_free(&others);
}

/* The function of arn:aws:apigateway:REGION:lambda:path/2015-03-31/functions/ARN/invocations; empty: none. */
static struct slice function_of_uri(struct deploy *deploy, struct slice uri)
{
    struct slice name, qualifier;
    const char *at = uri.len ? memmem(uri.data, uri.len, "/functions/", 11) : NULL;
    if (!at) return SLICE("");
    uri = slice_from(uri, (size_t)(at + 11 - uri.data));
    function_split(slice_cut(&uri, '/'), &name, &qualifier);
    return arena_printf(&deploy->arena, "%.*s%s%.*s", SLICE_ARG(name), qualifier.len ? ":" : "",
                        SLICE_ARG(qualifier));
}

static bool want_method(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties, *integration = node_member(given, "Integration");
    struct slice uri = node_text(integration, "Uri"), path = node_text(given, "ResourceId");
    struct slice function = function_of_uri(deploy, uri), key;
    bool calls = node_is(integration, "Type", "AWS") && slice_contains(uri, SLICE(":dynamodb:action/"));
    if (!calls && !(node_is(integration, "Type", "AWS_PROXY") && function.len)) {
        resource->change.reason =
            arena_printf(&deploy->arena,
                         "its integration is %.*s: functions by AWS_PROXY and DynamoDB by AWS are "
                         "served here",
                         SLICE_ARG(node_text(integration, "Type")))
                .data;
        return true;
    }
    key = arena_printf(&deploy->arena, "%.*s %.*s", SLICE_ARG(node_text(given, "HttpMethod")),
                       SLICE_ARG(path.len ? path : SLICE("/")));
    put_route(deploy, resource, out, node_text(given, "RestApiId"), key, calls ? SLICE("") : function,
              SLICE("1.0"));
    if (calls) put_call(out, integration, arn_last(uri, '/'));
    return true;
}

static bool have_route(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    static const struct form_member members[] = {
        {"auth", 's', "\"NONE\""}, {"function", 's', NULL}, {"dynamodb", 's', NULL}, {"request", 's', NULL},
        {"response", 's', NULL},   {"status", 'n', NULL},   {"responses", 'j', NULL}};
    if (!rest_get(deploy, resource, "quipu", route_path(deploy, resource), NULL, &resource->described))
        return false;
    const struct node *route = resource->described;
    struct slice payload = node_text(route, "payload");
    if (!route) return true;
    form_put(out, route, members, sizeof members / sizeof *members);
    if (node_member(route, "function"))
        put_string_member(out, "payload", payload.len ? payload : SLICE("2.0"));
    return true;
}

static bool send_route(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    node_put(&body, resource->want);
    return rest_send(deploy, resource, "quipu", "PUT", route_path(deploy, resource), &body, NULL);
}

static bool remove_route(struct deploy *deploy, struct resource *resource)
{
    return rest_send(deploy, resource, "quipu", "DELETE", route_path(deploy, resource), NULL, NULL);
}

static struct slice part_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    (void)deploy;
    return name.len ? SLICE_NONE : slice_of(resource->change.name);
}

const struct kind kind_route = {.type = "AWS::ApiGatewayV2::Route",
                                .known = "ApiId RouteKey Target AuthorizationType OperationName",
                                .want = want_route,
                                .have = have_route,
                                .create = send_route,
                                .update = send_route,
                                .remove = remove_route,
                                .attribute = part_attribute};
const struct kind kind_method = {.type = "AWS::ApiGateway::Method",
                                 .known = "RestApiId ResourceId HttpMethod Integration AuthorizationType "
                                          "MethodResponses OperationName ApiKeyRequired",
                                 .want = want_method,
                                 .have = have_route,
                                 .create = send_route,
                                 .update = send_route,
                                 .remove = remove_route,
                                 .attribute = part_attribute};

/* ---- stages ---- */

/* An API has one stage here, which its paths begin with. The physical name is "API STAGE". */
static bool want_stage(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties;
    struct slice api = node_text(given, "ApiId"), stage = node_text(given, "StageName");
    if (!api.len) api = node_text(given, "RestApiId");
    resource->change.name = arena_printf(&deploy->arena, "%.*s %.*s", SLICE_ARG(api), SLICE_ARG(stage)).data;
    put_string_member(out, "stage", stage.len ? stage : SLICE("$default"));
    return true;
}

static bool have_stage(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice rest = slice_of(resource->change.name), api = slice_cut(&rest, ' '), stage;
    if (!rest_get(deploy, resource, "quipu", api_path(deploy, api), NULL, &resource->described)) return false;
    stage = node_text(resource->described, "stage");
    if (resource->described && resource->is_recorded)
        put_string_member(out, "stage", stage.len ? stage : SLICE("$default"));
    return true;
}

static bool send_stage(struct deploy *deploy, struct resource *resource)
{
    struct slice rest = slice_of(resource->change.name), api = slice_cut(&rest, ' ');
    struct buf text = {0};
    json_put_string(&text, node_text(resource->want, "stage"));
    return change_api(deploy, resource, api, "stage", arena_take(&deploy->arena, &text));
}

/* It goes with its API; one that stays has the default again. */
static bool remove_stage(struct deploy *deploy, struct resource *resource)
{
    struct slice rest = slice_of(resource->change.name), api = slice_cut(&rest, ' ');
    const struct node *now;
    if (!rest_get(deploy, resource, "quipu", api_path(deploy, api), NULL, &now)) return false;
    return !now || change_api(deploy, resource, api, "stage", SLICE(""));
}

static struct slice stage_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    struct slice rest = slice_of(resource->change.name);
    (void)deploy;
    slice_cut(&rest, ' ');
    return name.len ? SLICE_NONE : rest;
}

#define STAGE_FUNCTIONS                                                                                      \
    .want = want_stage, .have = have_stage, .create = send_stage, .update = send_stage, .remove = remove_stage,  \
    .attribute = stage_attribute
const struct kind kind_http_stage = {.type = "AWS::ApiGatewayV2::Stage",
                                     .known = "ApiId StageName AutoDeploy Description DeploymentId Tags",
                                     STAGE_FUNCTIONS};
const struct kind kind_rest_stage = {.type = "AWS::ApiGateway::Stage",
                                     .known = "RestApiId StageName DeploymentId Description Tags",
                                     STAGE_FUNCTIONS};
/* A deployment that names a stage makes it, where the template has no stage of its own. */
const struct kind kind_deployment = {.type = "AWS::ApiGateway::Deployment",
                                     .known = "RestApiId StageName StageDescription Description",
                                     STAGE_FUNCTIONS};

bool deployment_is_nothing(const struct deploy *deploy, const struct template_resource *source)
{
    if (!node_member(source->properties, "StageName")) return true;
    for (size_t i = 0; i < deploy->template->resource_count; i++)
        if (slice_equal(deploy->template->resources[i].type, slice_of(kind_rest_stage.type))) return true;
    return false;
}
