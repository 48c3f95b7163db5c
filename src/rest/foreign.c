/* Requests to services of AWS's that are not here. Functions have AWS_ENDPOINT_URL set to this server, and so do
 * people's shells, so that a client of S3 or SQS ends up here: it is told which services there are, in the form in
 * which its SDK finds the message. The service is that of the signature, or that of X-Amz-Target. */
#include "base/json.h"
#include "rest/rest.h"

#define HERE                                                                                                 \
    "DynamoDB, DynamoDB Streams, Application Auto Scaling, Lambda, EventBridge Scheduler and CloudWatch "    \
    "Logs (reading)"

struct service {
    struct slice scope;   /* in signatures */
    struct slice target;  /* how X-Amz-Target begins; empty: it has none */
    const char *name;     /* for people */
    const char *variable; /* AWS_ENDPOINT_URL_... */
};

static const struct service services[] = {
    {SLICE("s3"), SLICE(""), "S3", "S3"},
    {SLICE("sqs"), SLICE("AmazonSQS."), "SQS", "SQS"},
    {SLICE("sns"), SLICE(""), "SNS", "SNS"},
    {SLICE("sts"), SLICE(""), "STS", "STS"},
    {SLICE("iam"), SLICE(""), "IAM", "IAM"},
    {SLICE("events"), SLICE("AWSEvents."), "EventBridge", "EVENTBRIDGE"},
    {SLICE("states"), SLICE("AWSStepFunctions."), "Step Functions", "SFN"},
    {SLICE("kinesis"), SLICE("Kinesis_20131202."), "Kinesis", "KINESIS"},
    {SLICE("secretsmanager"), SLICE("secretsmanager."), "Secrets Manager", "SECRETS_MANAGER"},
    {SLICE("ssm"), SLICE("AmazonSSM."), "Systems Manager", "SSM"},
    {SLICE("kms"), SLICE("TrentService."), "KMS", "KMS"},
    {SLICE("monitoring"), SLICE("GraniteServiceVersion20100801."), "CloudWatch", "CLOUDWATCH"},
    {SLICE("cloudformation"), SLICE(""), "CloudFormation", "CLOUDFORMATION"},
    {SLICE("cognito-idp"), SLICE("AWSCognitoIdentityProviderService."), "Cognito",
     "COGNITO_IDENTITY_PROVIDER"},
    {SLICE("ses"), SLICE(""), "SES", "SES"},
    {SLICE("apigateway"), SLICE(""), "API Gateway", "API_GATEWAY"},
    {SLICE("firehose"), SLICE("Firehose_20150804."), "Firehose", "FIREHOSE"},
};
#define SERVICES (sizeof services / sizeof *services)

/* The fourth part of Credential=KEY/DATE/REGION/SERVICE/aws4_request; empty: there is none. */
static struct slice scope_of(const struct rest_head *head)
{
    struct slice text = rest_head_find(head, SLICE("Authorization")), word = SLICE("Credential=");
    const char *at = text.len ? memmem(text.data, text.len, word.data, word.len) : NULL;
    if (!at) return SLICE_NONE;
    text = slice_from(text, (size_t)(at - text.data) + word.len);
    for (int i = 0; i < 3; i++) {
        const char *slash = text.len ? memchr(text.data, '/', text.len) : NULL;
        if (!slash) return SLICE_NONE;
        text = slice_from(text, (size_t)(slash + 1 - text.data));
    }
    const char *end = memchr(text.data, '/', text.len);
    return end ? (struct slice){text.data, (size_t)(end - text.data)} : SLICE_NONE;
}

static const struct service *service_of(struct slice scope, struct slice target)
{
    if (!scope.len && !target.len) return NULL;
    for (size_t i = 0; i < SERVICES; i++) {
        if (scope.len && slice_equal(scope, services[i].scope)) return &services[i];
        if (services[i].target.len && slice_starts(target, services[i].target)) return &services[i];
    }
    return NULL;
}

static void put_xml(struct buf *out, bool is_s3, struct slice message)
{
    buf_printf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n%s<Code>NotImplemented</Code><Message>%.*s</Message>%s\n",
        is_s3 ? "<Error>" : "<ErrorResponse><Error><Type>Sender</Type>", SLICE_ARG(message),
        is_s3 ? "</Error>" : "</Error></ErrorResponse>");
}

bool rest_foreign_put(const struct rest_head *head, struct arena *arena, struct buf *reply,
                      struct slice *type, struct slice *headers)
{
    struct slice target = rest_head_find(head, SLICE("X-Amz-Target"));
    const struct service *service = service_of(scope_of(head), target);
    if (!service) return false;
    struct slice sent = rest_head_find(head, SLICE("Content-Type"));
    struct slice message = arena_printf(
        arena, "There is no %s here: this server has " HERE ". Set AWS_ENDPOINT_URL_%s to where it is.",
        service->name, service->variable);
    bool is_s3 = slice_equal(service->scope, SLICE("s3"));
    bool is_xml = is_s3 || (!target.len && slice_starts(sent, SLICE("application/x-www-form-urlencoded")));
    reply->len = 0;
    *headers = is_xml ? SLICE("") : SLICE("X-Amzn-ErrorType: NotImplemented\r\n");
    if (is_xml) {
        put_xml(reply, is_s3, message);
        *type = SLICE("text/xml");
        return true;
    }
    buf_text(reply, "{\"__type\":\"NotImplemented\",\"message\":");
    json_put_string(reply, message);
    buf_byte(reply, '}');
    *type = slice_starts(sent, SLICE("application/x-amz-json")) ? sent : SLICE("application/json");
    return true;
}
