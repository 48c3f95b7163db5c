/* APIs of SAM. The API itself has the name and the type that SAM gives it, so that references work; its routes become
 * AWS::ApiGatewayV2::Route and ::Integration for both kinds of API, because a method of a REST API says no more.
 * PayloadFormatVersion tells whether the function gets the event of a REST API. */
#include "template/sam.h"

/* A stage's part of its own id; empty unless its name is plain letters and digits. */
static struct slice letters_of(const struct node *stage)
{
    if (!stage || stage->kind != JSON_STRING) return SLICE("");
    for (size_t i = 0; i < stage->text.len; i++) {
        char c = stage->text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) return SLICE("");
    }
    return stage->text;
}

/* "GET /path"; any method is ANY, and a route without a path is $default. */
static const struct node *route_key(struct sam *sam, const struct node *event, const struct node *properties)
{
    struct slice method = node_text(properties, "Method"), path = node_text(properties, "Path");
    struct buf key = {0};
    if (!path.len || slice_equal(path, SLICE("$default")))
        return make_text(sam->arena, event, SLICE("$default"));
    if (!method.len || slice_equal_ignoring_case(method, SLICE("x-amazon-apigateway-any-method")) ||
        slice_equal(method, SLICE("*")))
        method = SLICE("ANY");
    for (size_t i = 0; i < method.len; i++) {
        char c = method.data[i];
        buf_byte(&key, (unsigned char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c));
    }
    buf_printf(&key, " %s%.*s", path.data[0] == '/' ? "" : "/", SLICE_ARG(path));
    return make_text(sam->arena, event, arena_take(sam->arena, &key));
}

void sam_route(struct sam *sam, const struct sam_function *function, const struct node *event, bool is_rest)
{
    const struct node *properties = node_member(event, "Properties");
    const struct node *api = node_member(properties, is_rest ? "RestApiId" : "ApiId"), *argument;
    if (!api) {
        *(is_rest ? &sam->has_rest : &sam->has_http) = true;
        api = make_tree(sam->arena, event, "{'Ref':%s}",
                        is_rest ? SLICE("ServerlessRestApi") : SLICE("ServerlessHttpApi"));
    } else if (api->kind == JSON_STRING)
        api = make_tree(sam->arena, api, "{'Ref':%s}", api->text);
    else if (!node_is_call(api, "Ref", &argument)) {
        sam_note(sam, api, "the API of the event '%.*s' is none of this template", SLICE_ARG(event->name));
        return;
    }
    struct slice id = arena_printf(sam->arena, "%.*s%.*s", SLICE_ARG(function->source->name),
                                   SLICE_ARG(event->name));
    const struct node *version = node_member(properties, "PayloadFormatVersion");
    if (!version) version = make_text(sam->arena, event, is_rest ? SLICE("1.0") : SLICE("2.0"));
    static const char *const unchecked[] = {"Auth", "RequestModel", "RequestParameters"};
    for (size_t i = 0; i < sizeof unchecked / sizeof *unchecked; i++)
        if (node_member(properties, unchecked[i]))
            sam_note(sam, node_member(properties, unchecked[i]), "nobody checks '%s' of the event '%.*s'",
                     unchecked[i], SLICE_ARG(event->name));
    sam_put(
        sam, function->source, sam_id(sam, id, "Integration"), "AWS::ApiGatewayV2::Integration",
        make_tree(sam->arena, event,
                  "{'ApiId':%n,'IntegrationType':'AWS_PROXY','IntegrationUri':%n,'PayloadFormatVersion':%n,"
                  "'TimeoutInMillis':%n}",
                  api, function->target, version, node_member(properties, "TimeoutInMillis")));
    sam_put(sam, function->source, sam_id(sam, id, "Route"), "AWS::ApiGatewayV2::Route",
            make_tree(sam->arena, event,
                      "{'ApiId':%n,'RouteKey':%n,'Target':{'Fn::Join':['/',['integrations',{'Ref':%s}]]}}",
                      api, route_key(sam, event, properties), sam_id(sam, id, "Integration")));
}

static void put_api(struct sam *sam, const struct node *where, struct slice id, const struct node *properties,
                    bool is_rest)
{
    const struct node *name = node_member(properties, "Name"), *stage = node_member(properties, "StageName");
    struct slice plain = letters_of(stage);
    if (!name) name = make_tree(sam->arena, where, "{'Ref':'AWS::StackName'}");
    const struct node *cors = node_member(properties, is_rest ? "Cors" : "CorsConfiguration");
    if (node_member(properties, "DefinitionUri"))
        sam_note(sam, node_member(properties, "DefinitionUri"), "routes are not read from a file");
    if (node_member(properties, "Auth"))
        sam_note(sam, node_member(properties, "Auth"), "nobody checks 'Auth' of the API '%.*s'",
                 SLICE_ARG(id));
    if (!is_rest && stage && slice_equal(stage->text, SLICE("$default"))) stage = NULL;
    if (cors && (cors->kind == JSON_TRUE || cors->kind == JSON_STRING) && !is_rest)
        cors = make_tree(sam->arena, cors, "{'AllowOrigins':['*']}");
    if (is_rest) {
        sam_put(sam, where, id, "AWS::ApiGateway::RestApi",
                make_tree(sam->arena, where, "{'Name':%n,'Description':%n,'Body':%n,'Cors':%n}", name,
                          node_member(properties, "Description"), node_member(properties, "DefinitionBody"),
                          cors));
        struct slice deployment = sam_id(sam, id, "Deployment");
        sam_put(sam, where, deployment, "AWS::ApiGateway::Deployment",
                make_tree(sam->arena, where, "{'RestApiId':{'Ref':%s}}", id));
        if (!stage) stage = make_text(sam->arena, where, plain = SLICE("Prod"));
        sam_put(sam, where, arena_printf(sam->arena, "%.*s%.*sStage", SLICE_ARG(id), SLICE_ARG(plain)),
                "AWS::ApiGateway::Stage",
                make_tree(sam->arena, where,
                          "{'RestApiId':{'Ref':%s},'DeploymentId':{'Ref':%s},'StageName':%n}", id, deployment,
                          stage));
        return;
    }
    sam_put(sam, where, id, "AWS::ApiGatewayV2::Api",
            make_tree(sam->arena, where,
                      "{'Name':%n,'Description':%n,'ProtocolType':'HTTP','Body':%n,'CorsConfiguration':%n}",
                      name, node_member(properties, "Description"), node_member(properties, "DefinitionBody"),
                      cors));
    sam_put(sam, where,
            stage ? arena_printf(sam->arena, "%.*s%.*sStage", SLICE_ARG(id), SLICE_ARG(plain))
                  : sam_id(sam, id, "ApiGatewayDefaultStage"),
            "AWS::ApiGatewayV2::Stage",
            make_tree(sam->arena, where, "{'ApiId':{'Ref':%s},'StageName':%n,'AutoDeploy':true}", id,
                      stage ? stage : make_text(sam->arena, where, SLICE("$default"))));
}

void sam_api(struct sam *sam, const struct node *source, const struct node *properties, bool is_rest)
{
    put_api(sam, source, source->name, properties, is_rest);
}

void sam_implicit_apis(struct sam *sam)
{
    if (sam->has_rest)
        put_api(sam, sam->source, SLICE("ServerlessRestApi"), node_member(sam->globals, "Api"), true);
    if (sam->has_http)
        put_api(sam, sam->source, SLICE("ServerlessHttpApi"), node_member(sam->globals, "HttpApi"), false);
}
