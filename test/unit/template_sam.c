/* SAM as CloudFormation: which resources are made of functions, tables, layers and APIs, and under which names. */
#include "unit/template_fixture.h"

#include "unit/test.h"

#define HEAD "Transform: AWS::Serverless-2016-10-31\n"

TEST(sam_function_with_globals)
{
    CHECK_TEXT(
        fixture_open(HEAD
                     "Globals:\n"
                     "  Function: {Runtime: nodejs20.x, Timeout: 5, Environment: {Variables: {A: 1, B: 2}},\n"
                     "             Layers: [g], Tags: {t: x}}\n"
                     "Resources:\n"
                     "  F:\n"
                     "    Type: AWS::Serverless::Function\n"
                     "    Properties: {CodeUri: src/, Handler: a.b, Timeout: 9, Layers: [!Ref L],\n"
                     "      Environment: {Variables: {B: 3, C: !Ref T}}, Policies: [x], Tracing: Active}\n"
                     "  G: {Type: AWS::Serverless::Function, IgnoreGlobals: '*',\n"
                     "      Properties: {InlineCode: x, Nonsense: 1, Role: r}}\n"
                     "  L: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: s3://b/k/l.zip}}\n"
                     "  T: {Type: AWS::Serverless::SimpleTable}\n"),
        "");
    CHECK_TEXT(fixture_order(), "FRole L T F(FRole,L,T) G");
    CHECK_TEXT(
        fixture_properties("F"),
        "{\"Handler\":\"a.b\",\"Runtime\":\"nodejs20.x\",\"Timeout\":9,\"Environment\":{\"Variables\":{\"A\":1,"
        "\"B\":3,\"C\":\"<T>\"}},\"Layers\":[\"g\",\"<L>\"],\"Code\":\"src/\",\"Role\":\"<FRole.Arn>\","
        "\"Tags\":[{\"Key\":\"t\",\"Value\":\"x\"}],\"TracingConfig\":{\"Mode\":\"Active\"}}");
    CHECK_TEXT(fixture_source("G"), "AWS::Lambda::Function{\"Code\":{\"ZipFile\":\"x\"},\"Role\":\"r\"}");
    CHECK_TEXT(fixture_source("L"),
               "AWS::Lambda::LayerVersion{\"LayerName\":\"L\",\"Content\":{\"S3Bucket\":\"b\","
               "\"S3Key\":\"k/l.zip\"}}");
    CHECK_TEXT(fixture_source("T"),
               "AWS::DynamoDB::Table{\"AttributeDefinitions\":[{\"AttributeName\":\"id\","
               "\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":"
               "\"HASH\"}],\"BillingMode\":\"PAY_PER_REQUEST\"}");
    CHECK_TEXT(fixture_notes(), "11: 'Nonsense' of the function 'G' is not known");
    fixture_end();
}

TEST(sam_events)
{
    CHECK_TEXT(
        fixture_open(
            HEAD
            "Resources:\n"
            "  T: {Type: AWS::DynamoDB::Table}\n"
            "  F:\n"
            "    Type: AWS::Serverless::Function\n"
            "    Properties:\n"
            "      Role: r\n"
            "      Events:\n"
            "        S: {Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn,\n"
            "            StartingPosition: LATEST, BatchSize: 7,\n"
            "            DestinationConfig: {OnFailure: {Type: SQS, Destination: q}}}}\n"
            "        C: {Type: Schedule, Properties: {Schedule: rate(1 day), Enabled: false, Input: '{}'}}\n"
            "        V: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 hour), RoleArn: r}}\n"
            "        X: {Type: S3}\n"),
        "");
    CHECK_TEXT(fixture_order(), "T F FS(T,F) FC(F) FV(F)");
    CHECK_TEXT(fixture_properties("FS"),
               "{\"StartingPosition\":\"LATEST\",\"BatchSize\":7,\"FunctionName\":\"<F>\",\"EventSourceArn\":"
               "\"<T.StreamArn>\",\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"q\"}}}");
    CHECK_TEXT(
        fixture_properties("FC"),
        "{\"ScheduleExpression\":\"rate(1 day)\",\"State\":\"DISABLED\",\"Targets\":[{\"Arn\":\"<F.Arn>\","
        "\"Id\":\"FCLambdaTarget\",\"Input\":\"{}\"}]}");
    CHECK_TEXT(
        fixture_properties("FV"),
        "{\"ScheduleExpression\":\"rate(1 hour)\",\"Name\":\"FV\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
        "\"Target\":{\"Arn\":\"<F.Arn>\",\"RoleArn\":\"r\"}}");
    CHECK_TEXT(fixture_notes(),
               "14: the event 'X' of the function 'F' is of the type 'S3', which is not known");
    fixture_end();
}

TEST(sam_alias_url_and_invoke_config)
{
    CHECK_TEXT(
        fixture_open(
            HEAD
            "Conditions: {C: !Equals [a, a]}\n"
            "Resources:\n"
            "  F:\n"
            "    Type: AWS::Serverless::Function\n"
            "    Condition: C\n"
            "    Properties:\n"
            "      Role: r\n"
            "      AutoPublishAlias: live-1\n"
            "      FunctionUrlConfig: {AuthType: NONE}\n"
            "      EventInvokeConfig: {MaximumRetryAttempts: 1,\n"
            "        DestinationConfig: {OnSuccess: {Type: Lambda, Destination: d}, OnFailure: {Type: SQS}}}\n"
            "Outputs: {U: {Value: !GetAtt FUrl.FunctionUrl}, A: {Value: !Ref F.Alias},\n"
            "          V: {Value: !Ref F.Version}}\n"),
        "");
    CHECK_TEXT(fixture_order(),
               "F FVersion(F) FAliasliveD1(F,FVersion) FEventInvokeConfig(F) FUrl(FAliasliveD1)");
    CHECK_TEXT(fixture_outputs(), "U=\"<FUrl.FunctionUrl>\" A=\"<FAliasliveD1>\" V=\"<FVersion>\"");
    CHECK_TEXT(fixture_properties("FAliasliveD1"),
               "{\"FunctionName\":\"<F>\",\"FunctionVersion\":\"<FVersion.Version>\",\"Name\":\"live-1\"}");
    CHECK_TEXT(
        fixture_properties("FEventInvokeConfig"),
        "{\"FunctionName\":\"<F>\",\"Qualifier\":\"live-1\",\"MaximumRetryAttempts\":1,\"DestinationConfig\":"
        "{\"OnSuccess\":{\"Destination\":\"d\"}}}");
    CHECK_TEXT(fixture_properties("FUrl"),
               "{\"TargetFunctionArn\":\"<FAliasliveD1>\",\"AuthType\":\"NONE\"}");
    CHECK_TEXT(fixture_notes(), "12: OnFailure has no Destination, and none is made here");
    fixture_end();
}

TEST(sam_apis)
{
    CHECK_TEXT(
        fixture_open(
            HEAD
            "Globals: {HttpApi: {CorsConfiguration: true}}\n"
            "Resources:\n"
            "  Mine: {Type: AWS::Serverless::Api, Properties: {StageName: dev}}\n"
            "  F:\n"
            "    Type: AWS::Serverless::Function\n"
            "    Properties:\n"
            "      Role: r\n"
            "      Events:\n"
            "        A: {Type: Api, Properties: {Path: /a, Method: get}}\n"
            "        B: {Type: HttpApi, Properties: {Path: '/b/{id}', Method: post}}\n"
            "        C: {Type: HttpApi}\n"
            "        D: {Type: Api, Properties: {Path: '/{proxy+}', Method: any, RestApiId: !Ref Mine}}\n"
            "Outputs: {O: {Value: !Sub 'https://${ServerlessRestApi}.x/${ServerlessRestApiProdStage}'}}\n"),
        "");
    CHECK_TEXT(fixture_outputs(), "O=\"https://<ServerlessRestApi>.x/<ServerlessRestApiProdStage>\"");
    CHECK_TEXT(
        fixture_properties("FARoute"),
        "{\"ApiId\":\"<ServerlessRestApi>\",\"RouteKey\":\"GET /a\",\"Target\":\"integrations/<FAIntegration>\"}");
    CHECK_TEXT(
        fixture_properties("FAIntegration"),
        "{\"ApiId\":\"<ServerlessRestApi>\",\"IntegrationType\":\"AWS_PROXY\",\"IntegrationUri\":\"<F.Arn>\","
        "\"PayloadFormatVersion\":\"1.0\"}");
    CHECK_TEXT(fixture_properties("FBRoute"),
               "{\"ApiId\":\"<ServerlessHttpApi>\",\"RouteKey\":\"POST /b/{id}\","
               "\"Target\":\"integrations/<FBIntegration>\"}");
    CHECK_TEXT(fixture_properties("FCRoute"),
               "{\"ApiId\":\"<ServerlessHttpApi>\",\"RouteKey\":\"$default\",\"Target\":"
               "\"integrations/<FCIntegration>\"}");
    CHECK_TEXT(
        fixture_properties("FDRoute"),
        "{\"ApiId\":\"<Mine>\",\"RouteKey\":\"ANY /{proxy+}\",\"Target\":\"integrations/<FDIntegration>\"}");
    CHECK_TEXT(fixture_properties("MinedevStage"),
               "{\"RestApiId\":\"<Mine>\",\"DeploymentId\":\"<MineDeployment>\",\"StageName\":\"dev\"}");
    CHECK_TEXT(
        fixture_properties("ServerlessHttpApi"),
        "{\"Name\":\"app\",\"ProtocolType\":\"HTTP\",\"CorsConfiguration\":{\"AllowOrigins\":[\"*\"]}}");
    fixture_end();
}
