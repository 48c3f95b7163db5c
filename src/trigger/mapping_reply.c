/* What Lambda's API answers: a mapping's configuration, and errors in its form. */
#include "trigger/mapping.h"

const char *const mapping_state_names[] = {
    [MAPPING_CREATING] = "Creating",   [MAPPING_ENABLING] = "Enabling", [MAPPING_ENABLED] = "Enabled",
    [MAPPING_DISABLING] = "Disabling", [MAPPING_DISABLED] = "Disabled", [MAPPING_UPDATING] = "Updating",
    [MAPPING_DELETING] = "Deleting",
};

static void put_text(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text);
}

static void put_flag(struct buf *out, const char *name, bool flag)
{
    buf_printf(out, ",\"%s\":%s", name, flag ? "true" : "false");
}

static void put_filters(struct buf *out, const struct settings *settings)
{
    if (!settings->filter_count) return;
    buf_text(out, ",\"FilterCriteria\":{\"Filters\":[");
    for (uint32_t i = 0; i < settings->filter_count; i++) {
        buf_slice(out, i ? SLICE(",{\"Pattern\":") : SLICE("{\"Pattern\":"));
        json_put_string(out, settings->filters[i]);
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
}

static void put_destination(struct buf *out, struct slice destination)
{
    buf_text(out, ",\"DestinationConfig\":{\"OnFailure\":{");
    if (destination.len) {
        buf_text(out, "\"Destination\":");
        json_put_string(out, destination);
    }
    buf_text(out, "}}");
}

/* Ours is told only where it is used, so that the rest is Lambda's own shape. */
static void put_numbers(struct buf *out, const struct settings *settings)
{
    for (int i = 0; i < SETTING_NUMBERS; i++)
        if (i != SETTING_RECURSION || settings->numbers[i])
            buf_printf(out, ",\"%s\":%lld", number_rules[i].member, (long long)settings->numbers[i]);
}

void put_mapping(struct buf *out, const struct trigger *trigger, const struct mapping_view *view)
{
    const struct settings *settings = view->settings;
    buf_text(out, "{\"UUID\":");
    json_put_string(out, settings->id);
    put_text(out, "StartingPosition",
             settings->start == START_LATEST ? SLICE("LATEST") : SLICE("TRIM_HORIZON"));
    put_numbers(out, settings);
    put_text(out, "EventSourceArn", settings->stream_arn);
    put_filters(out, settings);
    put_text(out, "FunctionArn", settings->function_arn);
    buf_printf(out, ",\"LastModified\":%lld.%03lld", (long long)(settings->modified_ms / 1000),
               (long long)(settings->modified_ms % 1000));
    put_text(out, "LastProcessingResult", slice_of(view->result));
    put_text(out, "State", slice_of(mapping_state_names[view->state]));
    /* What the service says for streams; USER_INITIATED is its word for queues. */
    put_text(out, "StateTransitionReason", SLICE("User action"));
    put_destination(out, settings->on_failure);
    put_flag(out, "BisectBatchOnFunctionError", settings->bisects);
    buf_slice(out, settings->reports_failures
                       ? SLICE(",\"FunctionResponseTypes\":[\"ReportBatchItemFailures\"]")
                       : SLICE(",\"FunctionResponseTypes\":[]"));
    if (settings->counts_events) buf_text(out, ",\"MetricsConfig\":{\"Metrics\":[\"EventCount\"]}");
    if (settings->kms_key.len) put_text(out, "KMSKeyArn", settings->kms_key);
    buf_printf(out, ",\"EventSourceMappingArn\":\"arn:aws:lambda:%.*s:%.*s:event-source-mapping:%.*s\"}",
               SLICE_ARG(trigger->region), SLICE_ARG(trigger->account), SLICE_ARG(settings->id));
}

void mapping_answer(struct rest_call *call, int status)
{
    call->status = status;
    call->done(call);
}

/* The model spells the member with a small letter in some exceptions, and clients that are made of the model
 * look for just that. */
static bool has_small_message(struct slice type)
{
    return slice_equal(type, SLICE("InvalidParameterValueException")) ||
           slice_equal(type, SLICE("ResourceConflictException")) ||
           slice_equal(type, SLICE("InvalidRequestContentException")) ||
           slice_equal(type, SLICE("ValidationException")) ||
           slice_equal(type, SLICE("SerializationException"));
}

void mapping_refuse(struct rest_call *call, const struct refusal *refusal)
{
    struct buf *out = call->reply;
    out->len = 0;
    buf_printf(out, "{\"Type\":\"%s\",\"%s\":", refusal->status < 500 ? "User" : "Service",
               has_small_message(slice_of(refusal->type)) ? "message" : "Message");
    json_put_string(out, refusal->message);
    buf_byte(out, '}');
    rest_add_header(call, "X-Amzn-ErrorType: %s", refusal->type);
    mapping_answer(call, refusal->status);
}
