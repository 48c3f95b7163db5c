/* DescribeLimits and DescribeEndpoints: what the service says about itself. */
#include "api/shapes.h"

static const struct shape describe_limits_shape = {.kind = SHAPE_STRUCT, .type_name = "DescribeLimitsInput"};
static const struct shape describe_endpoints_shape = {.kind = SHAPE_STRUCT,
                                                      .type_name = "DescribeEndpointsRequest"};

/* The service's quotas for a new account; nothing here enforces them. */
static void describe_limits(struct api_call *call, const struct node *input)
{
    (void)input;
    buf_text(call->reply, "{\"AccountMaxReadCapacityUnits\":80000,\"AccountMaxWriteCapacityUnits\":80000,"
                          "\"TableMaxReadCapacityUnits\":40000,\"TableMaxWriteCapacityUnits\":40000}");
}

const struct operation operation_DescribeLimits = {
    .name = TEXT("DescribeLimits"),
    .input = &describe_limits_shape,
    .begin = describe_limits,
};

static void describe_endpoints(struct api_call *call, const struct node *input)
{
    (void)input;
    buf_text(call->reply, "{\"Endpoints\":[{\"Address\":");
    json_put_string(call->reply, call->api->endpoint);
    buf_text(call->reply, ",\"CachePeriodInMinutes\":1440}]}");
}

const struct operation operation_DescribeEndpoints = {
    .name = TEXT("DescribeEndpoints"),
    .input = &describe_endpoints_shape,
    .begin = describe_endpoints,
};
