/* The list of kinds, and what Ref and GetAtt answer for what is not made here. */
#include <string.h>

#include "base/hash.h"
#include "deploy/internal.h"

static const struct kind *const kinds[] = {
    &kind_table,      &kind_global_table,   &kind_function,   &kind_layer,
    &kind_version,    &kind_alias,          &kind_mapping,    &kind_event_invoke,
    &kind_url,        &kind_schedule,       &kind_rule,       &kind_http_api,
    &kind_rest_api,   &kind_schedule_group, &kind_route,      &kind_method,
    &kind_http_stage, &kind_rest_stage,     &kind_deployment,
};

const struct kind *kind_find(struct slice type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(type, slice_of(kinds[i]->type))) return kinds[i];
    return NULL;
}

/* Nothing here checks permissions, keeps logs by other names, or draws a network. */
bool type_is_nothing(struct slice type)
{
    static const char *const starts[] = {
        "AWS::IAM::", "AWS::Logs::", "AWS::CDK::",        "AWS::EC2::",
        "AWS::EFS::", "AWS::KMS::",  "AWS::CloudWatch::", "AWS::ApplicationAutoScaling::"};
    static const char names[] =
        "AWS::Lambda::Permission AWS::Lambda::LayerVersionPermission "
        "AWS::ApiGateway::Account AWS::ApiGateway::Model AWS::ApiGateway::Resource AWS::ApiGateway::Deployment "
        "AWS::ApiGatewayV2::Integration AWS::ApiGatewayV2::Deployment "
        "AWS::CloudFormation::WaitConditionHandle "
        "AWS::SQS::QueuePolicy AWS::SNS::TopicPolicy AWS::S3::BucketPolicy "
        "AWS::CodeDeploy::Application AWS::CodeDeploy::DeploymentGroup";
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (slice_starts(type, slice_of(starts[i]))) return true;
    return word_is_in(names, type);
}

/* As the services build them, so that what is written into a variable looks as it does there. */
struct slice stranger_attribute(struct deploy *deploy, const struct resource *resource, struct slice name)
{
    struct slice type = resource->change.type, region = deploy->region, account = deploy->account;
    const char *own = resource->change.name;
    struct arena *arena = &deploy->arena;
    bool is_arn = slice_equal(name, SLICE("Arn")) ||
                  (!name.len && slice_equal(type, SLICE("AWS::SNS::Topic"))) ||
                  slice_equal(name, SLICE("TopicArn"));
    if (slice_equal(type, SLICE("AWS::EFS::AccessPoint")) && !name.len)
        return arena_printf(arena, "fsap-%016llx", (unsigned long long)hash_bytes(slice_of(own)));
    if (slice_equal(type, SLICE("AWS::EFS::AccessPoint")) && is_arn)
        return arena_printf(arena, "arn:aws:elasticfilesystem:%.*s:%.*s:access-point/fsap-%016llx",
                            SLICE_ARG(region), SLICE_ARG(account),
                            (unsigned long long)hash_bytes(slice_of(own)));
    if (!name.len && slice_starts(type, SLICE("AWS::ApiGateway"))) return gateway_part(deploy, resource);
    if (slice_equal(type, SLICE("AWS::SQS::Queue")) && (!name.len || slice_equal(name, SLICE("QueueUrl"))))
        return arena_printf(arena, "https://sqs.%.*s.amazonaws.com/%.*s/%s", SLICE_ARG(region),
                            SLICE_ARG(account), own);
    if (!name.len || slice_equal(name, SLICE("QueueName")) || slice_equal(name, SLICE("Name")))
        return slice_of(own);
    if (!is_arn) return SLICE_NONE;
    if (slice_starts(type, SLICE("AWS::IAM::")))
        return arena_printf(arena, "arn:aws:iam::%.*s:%s/%s", SLICE_ARG(account),
                            slice_equal(type, SLICE("AWS::IAM::User")) ? "user" : "role", own);
    if (slice_starts(type, SLICE("AWS::S3::"))) return arena_printf(arena, "arn:aws:s3:::%s", own);
    if (slice_starts(type, SLICE("AWS::Logs::")))
        return arena_printf(arena, "arn:aws:logs:%.*s:%.*s:log-group:%s:*", SLICE_ARG(region),
                            SLICE_ARG(account), own);
    char service[32] = "other";
    struct slice rest = type;
    slice_cut(&rest, ':'), slice_cut(&rest, ':');
    struct slice word = slice_cut(&rest, ':');
    for (size_t i = 0; i < word.len && i < sizeof service - 1; i++)
        service[i] = (char)(word.data[i] | 32), service[i + 1] = '\0';
    return arena_printf(arena, "arn:aws:%s:%.*s:%.*s:%s", service, SLICE_ARG(region), SLICE_ARG(account),
                        own);
}
