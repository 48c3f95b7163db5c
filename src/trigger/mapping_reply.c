/* What Lambda's API answers: a mapping's configuration, and errors in its form. */
#include "base/compose.h"
#include "trigger/mapping.h"

const char *const mapping_state_names[] = {
    [MAPPING_CREATING] = "Creating",   [MAPPING_ENABLING] = "Enabling", [MAPPING_ENABLED] = "Enabled",
    [MAPPING_DISABLING] = "Disabling", [MAPPING_DISABLED] = "Disabled", [MAPPING_UPDATING] = "Updating",
    [MAPPING_DELETING] = "Deleting",
};

void put_mapping(struct buf *out, const struct trigger *trigger, const struct mapping_view *view)
{
    const struct settings *settings = view->settings;
    compose(out, "{'UUID':%s,'StartingPosition':%s", settings->id, start_name(settings->start));
    for (int i = 0; i < SETTING_NUMBERS;
         i++) /* ours is told only where it is used: the rest is Lambda's own shape */
        if (i != SETTING_RECURSION || settings->numbers[i])
            compose(out, ",%s:%d", slice_of(number_rules[i].member), settings->numbers[i]);
    compose(out, ",'EventSourceArn':%s", settings->stream_arn);
    if (settings->filter_count) {
        compose(out, ",'FilterCriteria':{'Filters':[");
        for (uint32_t i = 0; i < settings->filter_count; i++)
            compose(out, "%,{'Pattern':%s}", settings->filters[i]);
        buf_text(out, "]}");
    }
    compose(out, ",'FunctionArn':%s", settings->function_arn);
    buf_text(out, ",\"LastModified\":");
    seconds_put(out, settings->modified_ms);
    /* StateTransitionReason is what the service says for streams; USER_INITIATED is its word for queues. */
    compose(out,
            ",'LastProcessingResult':%s,'State':%s,'StateTransitionReason':'User action',"
            "'DestinationConfig':{'OnFailure':{",
            slice_of(view->result), slice_of(mapping_state_names[view->state]));
    if (settings->on_failure.len) compose(out, "'Destination':%s", settings->on_failure);
    compose(out, "}},'BisectBatchOnFunctionError':%b,'FunctionResponseTypes':[%A]", settings->bisects,
            settings->reports_failures ? SLICE("\"ReportBatchItemFailures\"") : SLICE(""));
    if (settings->counts_events) compose(out, ",'MetricsConfig':{'Metrics':['EventCount']}");
    if (settings->kms_key.len) compose(out, ",'KMSKeyArn':%s", settings->kms_key);
    buf_printf(out, ",\"EventSourceMappingArn\":\"arn:aws:lambda:%.*s:%.*s:event-source-mapping:%.*s\"}",
               SLICE_ARG(trigger->region), SLICE_ARG(trigger->account), SLICE_ARG(settings->id));
}

void mapping_refuse(struct rest_call *call, const struct refusal *refusal)
{
    lambda_error(call, refusal->status, refusal->type, "%.*s", SLICE_ARG(refusal->message));
}
