/* Lambda's operations and our own by method and path. Those that are not offered stand here too, with a sentence: who
 * calls one learns why, and not only that there is nothing at the path. The mappings of event sources are the
 * triggers' own. */
#include "func/lambda.h"

/* ---- on a thread that may wait ---- */

#define X(name)                                                                                              \
    static void serve_##name(void *room, struct rest_call *call)                                             \
    {                                                                                                        \
        rest_workers_run(((struct func *)room)->workers, lambda_##name, room, call);                         \
    }
LAMBDA_OPERATIONS(X)
#undef X

/* ---- what is not offered ---- */

// clang-format off
/* X(name, sentence) */
#define REFUSALS(X) \
    X(layer_policies, "Permissions of layers are not offered: the layers here are of one account.") \
    X(signing, "Code signing is not offered.") \
    X(provisioning, "Provisioned concurrency is not offered: processes stay warm by themselves.") \
    X(capacity, "Capacity providers are not offered: all functions run on this machine.") \
    X(durable, "Durable executions are not offered.") \
    X(resource_policies, "Policies of resources are not offered: use AddPermission and GetPolicy.") \
    X(streaming, "Streamed replies are not offered: use Invoke.")
// clang-format on

#define X(name, sentence)                                                                                    \
    static void refuse_##name(void *room, struct rest_call *call)                                            \
    {                                                                                                        \
        (void)room;                                                                                          \
        lambda_error(call, 400, "UnsupportedOperationException", "%s", sentence);                            \
    }
REFUSALS(X)
#undef X

static void serve_no_signing(void *room, struct rest_call *call)
{
    (void)room;
    buf_text(call->reply, "{\"CodeSigningConfigs\":[]}");
    lambda_done(call, 200);
}

// clang-format off
#define FUNCTION  "/2015-03-31/functions/{FunctionName}"
#define URL       "/2021-10-31/functions/{FunctionName}/url"
#define SIGNING   "/2020-04-22/code-signing-configs"
#define LAYER     "/2018-10-31/layers/{LayerName}/versions"
#define CAPACITY  "/2025-11-30/capacity-providers"
#define DURABLE   "/2025-12-01/durable-executions/{DurableExecutionArn}"
#define CALLBACK  "/2025-12-01/durable-execution-callbacks/{CallbackId}"

const struct rest_route func_routes[] = {
    {"PUT", "/v1/functions/{name}/debug", func_serve_debug},
    {"DELETE", "/v1/functions/{name}/debug", func_serve_debug_end},
    {"GET", "/v1/functions/{name}/logs", func_serve_logs},
    {"GET", "/v1/functions/{name}/processes", func_serve_processes},
    {"POST", "/v1/queues/{name}/redrive", func_serve_redrive},

    {"POST", FUNCTION "/invocations", lambda_invoke},
    {"POST", "/2014-11-13/functions/{FunctionName}/invoke-async", lambda_invoke_async},

    {"POST", "/2015-03-31/functions", serve_create_function},
    {"GET", "/2015-03-31/functions", serve_list_functions},
    {"GET", FUNCTION, serve_get_function},
    {"DELETE", FUNCTION, serve_delete_function},
    {"GET", FUNCTION "/configuration", serve_get_function_configuration},
    {"PUT", FUNCTION "/configuration", serve_update_function_configuration},
    {"PUT", FUNCTION "/code", serve_update_function_code},
    {"GET", "/v1/functions/{FunctionName}/code", serve_get_function_code},

    {"POST", FUNCTION "/versions", serve_publish_version},
    {"GET", FUNCTION "/versions", serve_list_versions},
    {"POST", FUNCTION "/aliases", serve_create_alias},
    {"GET", FUNCTION "/aliases", serve_list_aliases},
    {"GET", FUNCTION "/aliases/{Name}", serve_get_alias},
    {"PUT", FUNCTION "/aliases/{Name}", serve_update_alias},
    {"DELETE", FUNCTION "/aliases/{Name}", serve_delete_alias},

    {"PUT", "/2017-10-31/functions/{FunctionName}/concurrency", serve_put_concurrency},
    {"GET", "/2019-09-30/functions/{FunctionName}/concurrency", serve_get_concurrency},
    {"DELETE", "/2017-10-31/functions/{FunctionName}/concurrency", serve_delete_concurrency},
    {"PUT", "/2019-09-25/functions/{FunctionName}/event-invoke-config", serve_put_event_invoke},
    {"POST", "/2019-09-25/functions/{FunctionName}/event-invoke-config", serve_update_event_invoke},
    {"GET", "/2019-09-25/functions/{FunctionName}/event-invoke-config", serve_get_event_invoke},
    {"DELETE", "/2019-09-25/functions/{FunctionName}/event-invoke-config", serve_delete_event_invoke},
    {"GET", "/2019-09-25/functions/{FunctionName}/event-invoke-config/list", serve_list_event_invokes},
    {"PUT", "/2024-08-31/functions/{FunctionName}/recursion-config", serve_put_recursion},
    {"GET", "/2024-08-31/functions/{FunctionName}/recursion-config", serve_get_recursion},
    {"PUT", "/2021-07-20/functions/{FunctionName}/runtime-management-config", serve_put_runtime_management},
    {"GET", "/2021-07-20/functions/{FunctionName}/runtime-management-config", serve_get_runtime_management},
    {"GET", "/2016-08-19/account-settings", serve_get_account_settings},

    {"POST", "/2017-03-31/tags/{Resource}", serve_tag_resource},
    {"DELETE", "/2017-03-31/tags/{Resource}", serve_untag_resource},
    {"GET", "/2017-03-31/tags/{Resource}", serve_list_tags},
    {"POST", FUNCTION "/policy", serve_add_permission},
    {"GET", FUNCTION "/policy", serve_get_policy},
    {"DELETE", FUNCTION "/policy/{StatementId}", serve_remove_permission},

    {"GET", "/2018-10-31/layers", serve_list_layers},
    {"POST", LAYER, serve_publish_layer},
    {"GET", LAYER, serve_list_layer_versions},
    {"GET", LAYER "/{VersionNumber}", serve_get_layer_version},
    {"DELETE", LAYER "/{VersionNumber}", serve_delete_layer_version},
    {"POST", LAYER "/{VersionNumber}/policy", refuse_layer_policies},
    {"GET", LAYER "/{VersionNumber}/policy", refuse_layer_policies},
    {"DELETE", LAYER "/{VersionNumber}/policy/{StatementId}", refuse_layer_policies},

    {"GET", "/2020-06-30/functions/{FunctionName}/code-signing-config", serve_get_code_signing},
    {"PUT", "/2020-06-30/functions/{FunctionName}/code-signing-config", refuse_signing},
    {"DELETE", "/2020-06-30/functions/{FunctionName}/code-signing-config", refuse_signing},
    {"GET", SIGNING, serve_no_signing},
    {"POST", SIGNING, refuse_signing},
    {"GET", SIGNING "/{CodeSigningConfigArn}", refuse_signing},
    {"PUT", SIGNING "/{CodeSigningConfigArn}", refuse_signing},
    {"DELETE", SIGNING "/{CodeSigningConfigArn}", refuse_signing},
    {"GET", SIGNING "/{CodeSigningConfigArn}/functions", refuse_signing},

    {"POST", URL, serve_create_url},
    {"GET", URL, serve_get_url},
    {"PUT", URL, serve_update_url},
    {"DELETE", URL, serve_delete_url},
    {"GET", "/2021-10-31/functions/{FunctionName}/urls", serve_list_urls},
    {"GET", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", serve_provisioned_concurrency},
    {"PUT", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", refuse_provisioning},
    {"DELETE", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", refuse_provisioning},

    {"POST", CAPACITY, refuse_capacity},
    {"GET", CAPACITY, refuse_capacity},
    {"GET", CAPACITY "/{CapacityProviderName}", refuse_capacity},
    {"PUT", CAPACITY "/{CapacityProviderName}", refuse_capacity},
    {"DELETE", CAPACITY "/{CapacityProviderName}", refuse_capacity},
    {"GET", CAPACITY "/{CapacityProviderName}/function-versions", refuse_capacity},
    {"GET", "/2025-11-30/functions/{FunctionName}/function-scaling-config", refuse_capacity},
    {"PUT", "/2025-11-30/functions/{FunctionName}/function-scaling-config", refuse_capacity},

    {"GET", DURABLE, refuse_durable},
    {"GET", DURABLE "/history", refuse_durable},
    {"GET", DURABLE "/state", refuse_durable},
    {"POST", DURABLE "/checkpoint", refuse_durable},
    {"POST", DURABLE "/stop", refuse_durable},
    {"GET", "/2025-12-01/functions/{FunctionName}/durable-executions", refuse_durable},
    {"POST", CALLBACK "/succeed", refuse_durable},
    {"POST", CALLBACK "/fail", refuse_durable},
    {"POST", CALLBACK "/heartbeat", refuse_durable},

    {"GET", "/2026-07-09/resource-policy/{ResourceArn}", refuse_resource_policies},
    {"PUT", "/2026-07-09/resource-policy/{ResourceArn}", refuse_resource_policies},
    {"DELETE", "/2026-07-09/resource-policy/{ResourceArn}", refuse_resource_policies},
    {"POST", "/2021-11-15/functions/{FunctionName}/response-streaming-invocations", refuse_streaming},
};
// clang-format on
const size_t func_route_count = sizeof func_routes / sizeof *func_routes;
