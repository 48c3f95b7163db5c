/* What starts a function, in the words of serverless.yml: each event is an object with one member, its kind, or just
 * that kind's short form. */
#include "template/serverless.h"

static struct slice event_id(struct serverless *serverless, const struct serverless_function *function,
                             const char *kind, unsigned number)
{
    return arena_printf(serverless->arena, "%.*s%s%u", SLICE_ARG(function->prefix), kind, number);
}

static const struct node *function_arn(struct serverless *serverless,
                                       const struct serverless_function *function, const struct node *where)
{
    return make_tree(serverless->arena, where, "{'Fn::GetAtt':[%s,'Arn']}", function->id);
}

/* ---- routes ---- */

/* 'GET /path', 'GET path', '*', or {method, path}. */
static struct slice route_key(struct serverless *serverless, const struct node *event, bool is_rest)
{
    struct slice path = event->kind == JSON_OBJECT ? node_text(event, "path") : event->text,
                 method = SLICE("ANY");
    if (event->kind == JSON_OBJECT)
        method = node_text(event, "method");
    else if (memchr(path.data ? path.data : "", ' ', path.len))
        method = slice_cut(&path, ' ');
    if (!is_rest && (slice_equal(path, SLICE("*")) || !path.len)) return SLICE("$default");
    if (!method.len || slice_equal(method, SLICE("*"))) method = SLICE("ANY");
    struct buf key = {0};
    for (size_t i = 0; i < method.len; i++) {
        char c = method.data[i];
        buf_byte(&key, (unsigned char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c));
    }
    buf_printf(&key, " %s%.*s", path.len && path.data[0] == '/' ? "" : "/", SLICE_ARG(path));
    return arena_take(serverless->arena, &key);
}

static void put_route(struct serverless *serverless, const struct serverless_function *function,
                      const struct node *event, unsigned number, bool is_rest)
{
    const struct node *version = is_rest ? NULL
                                         : node_member(node_member(function->source, "httpApi"), "payload"),
                      *integration = node_member(event, "integration"),
                      *authorizer = node_member(event, "authorizer");
    if (!version && !is_rest) version = node_member(node_member(serverless->provider, "httpApi"), "payload");
    if (!version) version = make_text(serverless->arena, event, is_rest ? SLICE("1.0") : SLICE("2.0"));
    if (integration && !slice_equal_ignoring_case(integration->text, SLICE("lambda-proxy")) &&
        !slice_equal_ignoring_case(integration->text, SLICE("aws_proxy")))
        serverless_note(serverless, integration,
                        "the integration '%.*s' is not known: the function gets the whole request",
                        SLICE_ARG(integration->text));
    if (authorizer) serverless_note(serverless, authorizer, "nobody checks 'authorizer' of this event");
    struct slice api = is_rest ? SLICE("ApiGatewayRestApi") : SLICE("HttpApi");
    struct slice id = event_id(serverless, function, is_rest ? "HttpIntegration" : "HttpApiIntegration",
                               number);
    *(is_rest ? &serverless->has_rest : &serverless->has_http) = true;
    serverless_put(serverless, event, id, "AWS::ApiGatewayV2::Integration",
                   make_tree(serverless->arena, event,
                             "{'ApiId':{'Ref':%s},'IntegrationType':'AWS_PROXY','IntegrationUri':%n,"
                             "'PayloadFormatVersion':%n}",
                             api, function_arn(serverless, function, event), version));
    serverless_put(
        serverless, event, event_id(serverless, function, is_rest ? "HttpRoute" : "HttpApiRoute", number),
        "AWS::ApiGatewayV2::Route",
        make_tree(
            serverless->arena, event,
            "{'ApiId':{'Ref':%s},'RouteKey':%s,'Target':{'Fn::Join':['/',['integrations',{'Ref':%s}]]}}", api,
            route_key(serverless, event, is_rest), id));
}

void serverless_apis(struct serverless *serverless)
{
    struct arena *arena = serverless->arena;
    const struct node *where = serverless->root,
                      *cors = node_member(node_member(serverless->provider, "httpApi"), "cors"), *made = NULL;
    struct slice rest_name = arena_printf(arena, "%.*s-%.*s", SLICE_ARG(serverless->stage),
                                          SLICE_ARG(serverless->service));
    if (serverless->has_rest) {
        serverless_put(serverless, where, SLICE("ApiGatewayRestApi"), "AWS::ApiGateway::RestApi",
                       make_tree(arena, where, "{'Name':%s}", rest_name));
        serverless_put(serverless, where, SLICE("ApiGatewayDeployment"), "AWS::ApiGateway::Deployment",
                       make_tree(arena, where, "{'RestApiId':{'Ref':'ApiGatewayRestApi'}}"));
        serverless_put(serverless, where, SLICE("ApiGatewayStage"), "AWS::ApiGateway::Stage",
                       make_tree(arena, where,
                                 "{'RestApiId':{'Ref':'ApiGatewayRestApi'},'DeploymentId':{'Ref':"
                                 "'ApiGatewayDeployment'},'StageName':%s}",
                                 serverless->stage));
    }
    if (!serverless->has_http) return;
    if (cors && cors->kind == JSON_TRUE)
        made = make_tree(
            arena, cors,
            "{'AllowOrigins':['*'],'AllowMethods':['*'],'AllowHeaders':['Content-Type','X-Amz-Date',"
            "'Authorization','X-Api-Key','X-Amz-Security-Token','X-Amz-User-Agent']}");
    else if (cors && cors->kind == JSON_OBJECT)
        made = make_tree(arena, cors,
                         "{'AllowOrigins':%n,'AllowHeaders':%n,'AllowMethods':%n,'AllowCredentials':%n,"
                         "'ExposeHeaders':%n,'MaxAge':%n}",
                         node_member(cors, "allowedOrigins"), node_member(cors, "allowedHeaders"),
                         node_member(cors, "allowedMethods"), node_member(cors, "allowCredentials"),
                         node_member(cors, "exposedResponseHeaders"), node_member(cors, "maxAge"));
    serverless_put(
        serverless, where, SLICE("HttpApi"), "AWS::ApiGatewayV2::Api",
        make_tree(arena, where, "{'Name':%s,'ProtocolType':'HTTP','CorsConfiguration':%n}", rest_name, made));
    serverless_put(
        serverless, where, SLICE("HttpApiStage"), "AWS::ApiGatewayV2::Stage",
        make_tree(arena, where, "{'ApiId':{'Ref':'HttpApi'},'StageName':'$default','AutoDeploy':true}"));
}

/* ---- streams ---- */

static void put_stream(struct serverless *serverless, const struct serverless_function *function,
                       const struct node *event, unsigned number, const char *kind)
{
    struct arena *arena = serverless->arena;
    bool is_object = event->kind == JSON_OBJECT && node_member(event, "arn");
    const struct node *options = is_object ? event : NULL, *patterns = node_member(options, "filterPatterns"),
                      *failure = node_member(node_member(options, "destinations"), "onFailure"),
                      *filters = NULL, *position = node_member(options, "startingPosition"),
                      *types = node_member(options, "functionResponseType"),
                      *enabled = node_member(options, "enabled");
    if (patterns && patterns->kind == JSON_ARRAY) {
        struct node *list = make_node(arena, JSON_ARRAY, patterns);
        for (const struct node *pattern = patterns->first; pattern; pattern = pattern->next) {
            struct buf text = {0};
            node_put(&text, pattern);
            make_append(list, make_tree(arena, pattern, "{'Pattern':%s}", arena_take(arena, &text)));
        }
        filters = make_tree(arena, patterns, "{'Filters':%n}", list);
    }
    if (failure && node_member(failure, "arn")) failure = node_member(failure, "arn");
    bool is_queue = strcmp(kind, "SQS") == 0;
    serverless_put(
        serverless, event,
        event_id(serverless, function, is_queue ? "EventSourceMappingSQS" : "EventSourceMappingDynamodb",
                 number),
        "AWS::Lambda::EventSourceMapping",
        make_tree(
            arena, event,
            "{'EventSourceArn':%n,'FunctionName':%n,'StartingPosition':%n,'BatchSize':%n,'Enabled':%n,"
            "'MaximumBatchingWindowInSeconds':%n,'MaximumRetryAttempts':%n,'BisectBatchOnFunctionError':%n,"
            "'MaximumRecordAgeInSeconds':%n,'ParallelizationFactor':%n,'TumblingWindowInSeconds':%n,"
            "'FunctionResponseTypes':%n,'FilterCriteria':%n,'DestinationConfig':%n}",
            is_object ? node_member(event, "arn") : event, function_arn(serverless, function, event),
            position   ? position
            : is_queue ? NULL
                       : make_text(arena, event, SLICE("TRIM_HORIZON")),
            node_member(options, "batchSize") ? node_member(options, "batchSize")
                                              : make_tree(arena, event, "%d", 10),
            enabled ? enabled : make_tree(arena, event, "true"), node_member(options, "batchWindow"),
            node_member(options, "maximumRetryAttempts"), node_member(options, "bisectBatchOnFunctionError"),
            node_member(options, "maximumRecordAgeInSeconds"), node_member(options, "parallelizationFactor"),
            node_member(options, "tumblingWindowInSeconds"),
            types ? make_tree(arena, types, "[%n]", types) : NULL, filters,
            failure ? make_tree(arena, failure, "{'OnFailure':{'Destination':%n}}", failure) : NULL));
}

/* ---- schedules ---- */

/* An object is sent as JSON. */
static const struct node *input_of(struct serverless *serverless, const struct node *input)
{
    if (!input || input->kind == JSON_STRING) return input;
    return make_tree(serverless->arena, input, "{'Fn::ToJsonString':%n}", input);
}

static void put_schedule(struct serverless *serverless, const struct serverless_function *function,
                         const struct node *event, const struct node *rate, unsigned number)
{
    struct arena *arena = serverless->arena;
    const struct node *options = event->kind == JSON_OBJECT ? event : NULL,
                      *enabled = node_member(options, "enabled"),
                      *arn = function_arn(serverless, function, event),
                      *input = input_of(serverless, node_member(options, "input"));
    bool is_off = enabled && (enabled->kind == JSON_FALSE || slice_equal(enabled->text, SLICE("false")));
    struct slice state = is_off ? SLICE("DISABLED") : SLICE("ENABLED");
    if (node_is(options, "method", "scheduler")) {
        const struct node *zone = node_member(options, "timezone");
        serverless_put(
            serverless, event, event_id(serverless, function, "EventsSchedule", number),
            "AWS::Scheduler::Schedule",
            make_tree(arena, event,
                      "{'Name':%n,'Description':%n,'ScheduleExpression':%n,'ScheduleExpressionTimezone':%n,"
                      "'State':%s,'FlexibleTimeWindow':{'Mode':'OFF'},'Target':{'Arn':%n,"
                      "'RoleArn':{'Fn::GetAtt':['IamRoleLambdaExecution','Arn']},'Input':%n}}",
                      node_member(options, "name"), node_member(options, "description"), rate, zone, state,
                      arn, input));
        return;
    }
    struct slice id = event_id(serverless, function, "EventsRuleSchedule", number);
    serverless_put(serverless, event, id, "AWS::Events::Rule",
                   make_tree(arena, event,
                             "{'Name':%n,'Description':%n,'ScheduleExpression':%n,'State':%s,"
                             "'Targets':[{'Arn':%n,'Id':%s,'Input':%n,'InputPath':%n}]}",
                             node_member(options, "name"), node_member(options, "description"), rate, state,
                             arn, id, input, node_member(options, "inputPath")));
}

/* ---- which event ---- */

void serverless_events(struct serverless *serverless, const struct serverless_function *function)
{
    const struct node *events = node_member(function->source, "events");
    unsigned number = 0;
    if (!events || events->kind != JSON_ARRAY) return;
    for (const struct node *one = events->first; one; one = one->next) {
        const struct node *event = one->kind == JSON_OBJECT && one->first ? one->first : one;
        struct slice kind = event == one ? one->text : event->name;
        number++;
        if (slice_equal(kind, SLICE("http")) || slice_equal(kind, SLICE("httpApi"))) {
            put_route(serverless, function, event, number, slice_equal(kind, SLICE("http")));
        } else if (slice_equal(kind, SLICE("stream")))
            put_stream(serverless, function, event, number, "Dynamodb");
        else if (slice_equal(kind, SLICE("sqs")))
            put_stream(serverless, function, event, number, "SQS");
        else if (slice_equal(kind, SLICE("schedule"))) {
            const struct node *rate = event->kind == JSON_OBJECT ? node_member(event, "rate") : event;
            if (rate && rate->kind == JSON_ARRAY)
                for (const struct node *each = rate->first; each; each = each->next, number += each != NULL)
                    put_schedule(serverless, function, event, each, number);
            else if (rate)
                put_schedule(serverless, function, event, rate, number);
            else
                serverless_note(serverless, event, "this schedule has no rate");
        } else
            serverless_note(serverless, event, "the event '%.*s' of the function '%.*s' is not known",
                            SLICE_ARG(kind), SLICE_ARG(function->source->name));
    }
}
