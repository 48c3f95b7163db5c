/* serverless.yml: its variables, and which resources are made of it. */
#include "unit/template_fixture.h"

#include "unit/test.h"

/* What a value of `custom` becomes, shown as an environment variable's object. */
static struct slice variable_of(const char *value)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "service: s\nprovider: {name: aws}\nparams: {default: {p: 1}, dev: {q: 2}}\n"
             "custom: {a: {b: [x, y]}, dev: in-dev, c: '${self:custom.a}', word: on}\n"
             "resources: {Resources: {R: {Type: T, Properties: {v: %s}}}}\n",
             value);
    struct slice error = fixture_open(text);
    return error.len ? error : fixture_properties("R");
}

TEST(variables_are_filled_in)
{
    CHECK_TEXT(variable_of("'${self:custom.a.b.1}-${self:service}'"), "{\"v\":\"y-s\"}");
    CHECK_TEXT(variable_of("'${self:custom.c}'"), "{\"v\":{\"b\":[\"x\",\"y\"]}}");
    CHECK_TEXT(variable_of("'${self:custom.c.b.0}'"), "{\"v\":\"x\"}");
    CHECK_TEXT(variable_of("'${self:custom.${sls:stage}}'"), "{\"v\":\"in-dev\"}");
    CHECK_TEXT(variable_of("'${opt:x, self:custom.none, ''d,e''}'"), "{\"v\":\"d,e\"}");
    CHECK_TEXT(variable_of("['${opt:x, 5}', '${opt:x, true}', '${opt:x, null}', '${opt:x, \"\"}']"),
               "{\"v\":[5,true,null,\"\"]}");
    CHECK_TEXT(variable_of("'${env:HOME}/${env:NONE, ''n''}'"), "{\"v\":\"/home/n\"}");
    CHECK_TEXT(variable_of("'${param:p}${param:q}'"), "{\"v\":\"12\"}");
    CHECK_TEXT(variable_of("'${file(./more.yml):a.b}'"), "{\"v\":7}");
    CHECK_TEXT(variable_of("'${file(./more.yml):env}'"), "{\"v\":{\"X\":\"s\"}}");
    CHECK_TEXT(variable_of("'${file(text.txt)}'"), "{\"v\":\"words\"}");
    CHECK_TEXT(variable_of("'${aws:region}-${aws:accountId}'"), "{\"v\":\"eu-central-1-000000000000\"}");
    CHECK_TEXT(variable_of("!Sub '${AWS::Region}-${R}'"),
               "t.yaml:5:28: resources need each other in a circle: R -> R");
    CHECK_TEXT(variable_of("'${self:custom.word}'"), "{\"v\":\"on\"}");
    CHECK_TEXT(variable_of("'${strToBool(${opt:x, ''true''})}'"), "{\"v\":true}");
    fixture_end();
}

TEST(variables_that_stand_for_nothing)
{
    CHECK_TEXT(variable_of("'${self:custom.none}'"),
               "t.yaml:5:54: '${self:custom.none}' stands for nothing: there is no such value");
    CHECK_TEXT(variable_of("'a${opt:x}'"),
               "t.yaml:5:54: '${opt:x}' stands for nothing: there is no such value");
    CHECK_TEXT(variable_of("'x${self:custom.a}'"),
               "t.yaml:5:54: '${self:custom.a}' is no text, and stands within one");
    CHECK_TEXT(variable_of("'${file(bad.yml):x}'"),
               "bad.yml:2:1: this is no YAML: did not find expected node content");
    CHECK_TEXT(variable_of("'${ssm:/a/b}'"), "{\"v\":\"${ssm:/a/b}\"}");
    CHECK_TEXT(fixture_notes(), "5: '${ssm:/a/b}' is not known here, and stays as it is");
    CHECK_TEXT(variable_of("'${ssm:/a/b, ''c''}'"), "{\"v\":\"c\"}");
    fixture_end();
}

TEST(variables_have_an_end)
{
    CHECK_TEXT(
        fixture_open(
            "service: s\nprovider: {name: aws}\ncustom: {a: '${self:custom.b}', b: '${self:custom.a}'}\n"),
        "t.yaml:3:36: variables stand for each other, without an end");
    CHECK_TEXT(fixture_open("service: '${self:}'\nprovider: {name: aws}\n"),
               "t.yaml:1:10: variables stand for each other, without an end");
    struct buf text = {0};
    buf_text(&text, "service: s\nprovider: {name: aws}\ncustom:\n  a0: [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        buf_printf(&text, "  a%d: [", i);
        for (int k = 0; k < 10; k++) buf_printf(&text, "%s'${self:custom.a%d}'", k ? ", " : "", i - 1);
        buf_text(&text, "]\n");
    }
    buf_byte(&text, 0);
    CHECK(slice_contains(fixture_open(text.data), SLICE("the variables stand for too much text")));
    /* Little of a long list, again and again. */
    text.len = 0;
    buf_text(&text, "service: s\nprovider: {name: aws}\ncustom:\n  l: [0");
    for (int i = 1; i < 100000; i++) buf_text(&text, ",0");
    buf_text(&text, "]\n  x: [0");
    for (int i = 0; i < 2000; i++) buf_text(&text, ",'${self:custom.l.99999}'");
    buf_text(&text, "]\n");
    buf_byte(&text, 0);
    CHECK(slice_contains(fixture_open(text.data), SLICE("the variables stand for too much text")));
    buf_free(&text);
    fixture_end();
}

TEST(serverless_functions)
{
    fixture_give("stage", "test");
    CHECK_TEXT(
        fixture_open(
            "service: shop\n"
            "provider: {name: aws, runtime: python3.11, timeout: 30, stage: prod, environment: {A: '1'}}\n"
            "plugins: [serverless-offline, serverless-webpack]\n"
            "layers: {libs: {path: layer}}\n"
            "functions:\n"
            "  - get-it:\n"
            "      handler: app.get\n"
            "      environment: {T: !Ref Table}\n"
            "      layers: [!Ref LibsLambdaLayer]\n"
            "      url: true\n"
            "      destinations: {onFailure: other}\n"
            "      maximumRetryAttempts: 0\n"
            "  - other: {handler: x.y, name: mine, memorySize: 128, package: {artifact: o.zip}}\n"
            "resources:\n"
            "  - Resources: {Table: {Type: AWS::DynamoDB::Table}}\n"
            "  - Resources: {OtherLambdaFunction: {Properties: {Description: d}}}\n"
            "    Outputs: {U: {Value: !GetAtt GetDashitLambdaFunctionUrl.FunctionUrl}}\n"
            "constructs: {}\n"),
        "");
    CHECK_TEXT(
        fixture_properties("GetDashitLambdaFunction"),
        "{\"FunctionName\":\"shop-test-get-it\",\"Handler\":\"app.get\",\"Runtime\":\"python3.11\",\"Code\":\".\","
        "\"MemorySize\":1024,\"Timeout\":30,\"Role\":\"<IamRoleLambdaExecution.Arn>\",\"Environment\":"
        "{\"Variables\":{\"A\":\"1\",\"T\":\"<Table>\"}},\"Layers\":[\"<LibsLambdaLayer>\"]}");
    CHECK_TEXT(fixture_properties("OtherLambdaFunction"),
               "{\"FunctionName\":\"mine\",\"Handler\":\"x.y\",\"Runtime\":\"python3.11\",\"Code\":\"o.zip\","
               "\"MemorySize\":128,\"Timeout\":30,\"Role\":\"<IamRoleLambdaExecution.Arn>\",\"Environment\":"
               "{\"Variables\":{\"A\":\"1\"}},\"Description\":\"d\"}");
    CHECK_TEXT(
        fixture_properties("GetDashitLambdaEvConf"),
        "{\"FunctionName\":\"<GetDashitLambdaFunction>\",\"Qualifier\":\"$LATEST\",\"MaximumRetryAttempts\":0,"
        "\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"<OtherLambdaFunction.Arn>\"}}}");
    CHECK_TEXT(fixture_properties("LibsLambdaLayer"), "{\"LayerName\":\"libs\",\"Content\":\"layer\"}");
    CHECK_TEXT(fixture_outputs(), "U=\"<GetDashitLambdaFunctionUrl.FunctionUrl>\"");
    CHECK_TEXT(fixture_notes(),
               "18: 'constructs' is not known; 3: the plugin 'serverless-webpack' is not run");
    CHECK_TEXT(fixture_open("service: s\nprovider: {name: azure}\n"),
               "t.yaml:2:18: this is for the provider 'azure', and only 'aws' is known");
    fixture_end();
}

TEST(serverless_events)
{
    CHECK_TEXT(
        fixture_open("service: s\n"
                     "provider: {name: aws, httpApi: {cors: true}}\n"
                     "functions:\n"
                     "  f:\n"
                     "    handler: a.b\n"
                     "    events:\n"
                     "      - http: GET items/{id}\n"
                     "      - httpApi: {path: /x, method: post}\n"
                     "      - httpApi: '*'\n"
                     "      - stream: {type: dynamodb, arn: !GetAtt T.StreamArn, batchSize: 5,\n"
                     "          filterPatterns: [{eventName: [INSERT]}]}\n"
                     "      - stream: arn:aws:dynamodb:x\n"
                     "      - schedule: rate(1 hour)\n"
                     "      - schedule: {rate: [cron(1), cron(2)], enabled: false, input: {a: 1}}\n"
                     "      - schedule: {rate: rate(2 days), method: scheduler, timezone: Europe/Berlin}\n"
                     "      - s3: bucket\n"
                     "resources: {Resources: {T: {Type: AWS::DynamoDB::Table}}}\n"),
        "");
    CHECK_TEXT(fixture_properties("FHttpRoute1"),
               "{\"ApiId\":\"<ApiGatewayRestApi>\",\"RouteKey\":\"GET /items/{id}\","
               "\"Target\":\"integrations/<FHttpIntegration1>\"}");
    CHECK_TEXT(fixture_properties("FHttpApiRoute2"), "{\"ApiId\":\"<HttpApi>\",\"RouteKey\":\"POST /x\","
                                                     "\"Target\":\"integrations/<FHttpApiIntegration2>\"}");
    CHECK_TEXT(fixture_properties("FHttpApiRoute3"), "{\"ApiId\":\"<HttpApi>\",\"RouteKey\":\"$default\","
                                                     "\"Target\":\"integrations/<FHttpApiIntegration3>\"}");
    CHECK_TEXT(
        fixture_properties("FEventSourceMappingDynamodb4"),
        "{\"EventSourceArn\":\"<T.StreamArn>\",\"FunctionName\":\"<FLambdaFunction.Arn>\",\"StartingPosition\":"
        "\"TRIM_HORIZON\",\"BatchSize\":5,\"Enabled\":true,\"FilterCriteria\":{\"Filters\":[{\"Pattern\":"
        "\"{\\\"eventName\\\":[\\\"INSERT\\\"]}\"}]}}");
    CHECK_TEXT(fixture_properties("FEventSourceMappingDynamodb5"),
               "{\"EventSourceArn\":\"arn:aws:dynamodb:x\",\"FunctionName\":\"<FLambdaFunction.Arn>\","
               "\"StartingPosition\":\"TRIM_HORIZON\",\"BatchSize\":10,\"Enabled\":true}");
    CHECK_TEXT(fixture_properties("FEventsRuleSchedule6"),
               "{\"ScheduleExpression\":\"rate(1 hour)\",\"State\":\"ENABLED\",\"Targets\":[{\"Arn\":"
               "\"<FLambdaFunction.Arn>\",\"Id\":\"FEventsRuleSchedule6\"}]}");
    CHECK_TEXT(fixture_properties("FEventsRuleSchedule8"),
               "{\"ScheduleExpression\":\"cron(2)\",\"State\":\"DISABLED\",\"Targets\":[{\"Arn\":"
               "\"<FLambdaFunction.Arn>\",\"Id\":\"FEventsRuleSchedule8\",\"Input\":\"{\\\"a\\\":1}\"}]}");
    CHECK_TEXT(
        fixture_properties("FEventsSchedule9"),
        "{\"ScheduleExpression\":\"rate(2 days)\",\"ScheduleExpressionTimezone\":\"Europe/Berlin\",\"State\":"
        "\"ENABLED\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},\"Target\":{\"Arn\":\"<FLambdaFunction.Arn>\","
        "\"RoleArn\":\"<IamRoleLambdaExecution.Arn>\"}}");
    CHECK_TEXT(fixture_outputs(),
               "ServiceEndpoint=\"https://<ApiGatewayRestApi>.execute-api.eu-central-1.amazonaws.com/dev\" "
               "HttpApiUrl=\"https://<HttpApi>.execute-api.eu-central-1.amazonaws.com\"");
    CHECK_TEXT(fixture_notes(), "16: the event 's3' of the function 'f' is not known");
    fixture_end();
}
