/* The bodies of create and update: what is refused and in which words, what settings come out, and that items
 * give back what went into them. */
#include "base/limits.h"
#include "trigger/mapping.h"
#include "unit/test.h"

#define GOOD "\"EventSourceArn\":\"t\",\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\""

struct refused {
    const char *body, *type, *message;
};

static bool parse(struct slice body, bool is_create, struct arena *arena, struct mapping_request *request,
                  struct refusal *refusal)
{
    struct rest_call call = {.body = body, .arena = arena};
    return mapping_request_parse(&call, is_create, request, refusal);
}

static void check_refused(const struct refused *rows, size_t count, bool is_create)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = {0};
        struct mapping_request request;
        struct refusal refusal = {0};
        if (parse(slice_of(rows[i].body), is_create, &arena, &request, &refusal)) {
            test_failed(__FILE__, __LINE__, "%s was accepted", rows[i].body);
        } else {
            if (strcmp(refusal.type, rows[i].type) != 0)
                test_failed(__FILE__, __LINE__, "%s is %s, expected %s", rows[i].body, refusal.type,
                            rows[i].type);
            CHECK_TEXT(refusal.message, rows[i].message);
            CHECK_INT(refusal.status, 400);
        }
        arena_free(&arena);
    }
}

TEST(a_body_must_be_json_of_the_right_types)
{
    static const struct refused rows[] = {
        {"", "ValidationException",
         "1 validation error detected: Value null at 'functionName' failed to satisfy constraint: Member must not be "
         "null"},
        {"[]", "SerializationException", "START_ARRAY can not be converted to an Object"},
        {"{", "InvalidRequestContentException",
         "Could not parse request body into json: unexpected end at byte 1"},
        {"{\"BatchSize\":1,}", "InvalidRequestContentException",
         "Could not parse request body into json: a string was expected at byte 15"},
        {"{} x", "InvalidRequestContentException",
         "Could not parse request body into json: text behind the value at byte 3"},
        {"{\"BatchSize\":\"1\"}", "SerializationException",
         "STRING_VALUE can not be converted to an Integer"},
        {"{\"BatchSize\":1.5}", "SerializationException",
         "NUMBER_VALUE can not be converted to an Integer"},
        {"{\"BatchSize\":99999999999}", "SerializationException",
         "NUMBER_VALUE can not be converted to an Integer"},
        {"{\"Enabled\":\"true\"}", "SerializationException",
         "STRING_VALUE can not be converted to a Boolean"},
        {"{\"Enabled\":1}", "SerializationException", "NUMBER_VALUE can not be converted to a Boolean"},
        {"{\"FunctionName\":[]}", "SerializationException", "START_ARRAY can not be converted to a String"},
        {"{\"FilterCriteria\":[]}", "SerializationException",
         "START_ARRAY can not be converted to an Object"},
        {"{\"FilterCriteria\":{\"Filters\":{}}}", "SerializationException",
         "START_OBJECT can not be converted to a List"},
        {"{\"FilterCriteria\":{\"Filters\":[{\"Pattern\":{}}]}}", "SerializationException",
         "START_OBJECT can not be converted to a String"},
        {"{\"DestinationConfig\":1}", "SerializationException",
         "NUMBER_VALUE can not be converted to an Object"},
        {"{\"FunctionResponseTypes\":true}", "SerializationException",
         "TRUE_VALUE can not be converted to a List"},
    };
    check_refused(rows, sizeof rows / sizeof *rows, true);
}

TEST(constraints_are_told_all_at_once)
{
    static const struct refused rows[] = {
        {"{}", "ValidationException",
         "1 validation error detected: Value null at 'functionName' failed to satisfy constraint: Member "
         "must "
         "not be null"},
        {"{" GOOD ",\"BatchSize\":0}", "ValidationException",
         "1 validation error detected: Value '0' at 'batchSize' failed to satisfy constraint: Member must "
         "have "
         "value greater than or equal to 1"},
        {"{" GOOD ",\"BatchSize\":10001,\"ParallelizationFactor\":11}", "ValidationException",
         "2 validation errors detected: Value '10001' at 'batchSize' failed to satisfy constraint: Member "
         "must "
         "have value less than or equal to 10000; Value '11' at 'parallelizationFactor' failed to satisfy "
         "constraint: Member must have value less than or equal to 10"},
        {"{" GOOD ",\"MaximumBatchingWindowInSeconds\":301}", "ValidationException",
         "1 validation error detected: Value '301' at 'maximumBatchingWindowInSeconds' failed to satisfy "
         "constraint: Member must have value less than or equal to 300"},
        {"{" GOOD ",\"ParallelizationFactor\":0}", "ValidationException",
         "1 validation error detected: Value '0' at 'parallelizationFactor' failed to satisfy constraint: "
         "Member must have value greater than or equal to 1"},
        {"{" GOOD ",\"MaximumRetryAttempts\":-2}", "ValidationException",
         "1 validation error detected: Value '-2' at 'maximumRetryAttempts' failed to satisfy constraint: "
         "Member must have value greater than or equal to -1"},
        {"{" GOOD ",\"MaximumRetryAttempts\":10001}", "ValidationException",
         "1 validation error detected: Value '10001' at 'maximumRetryAttempts' failed to satisfy constraint: "
         "Member must have value less than or equal to 10000"},
        {"{" GOOD ",\"MaximumRecordAgeInSeconds\":604801}", "ValidationException",
         "1 validation error detected: Value '604801' at 'maximumRecordAgeInSeconds' failed to satisfy "
         "constraint: Member must have value less than or equal to 604800"},
        {"{" GOOD ",\"TumblingWindowInSeconds\":901}", "ValidationException",
         "1 validation error detected: Value '901' at 'tumblingWindowInSeconds' failed to satisfy "
         "constraint: "
         "Member must have value less than or equal to 900"},
        {"{" GOOD ",\"MaximumRecursionDepth\":1001}", "ValidationException",
         "1 validation error detected: Value '1001' at 'maximumRecursionDepth' failed to satisfy constraint: "
         "Member must have value less than or equal to 1000"},
        {"{\"EventSourceArn\":\"t\",\"FunctionName\":\"f\",\"StartingPosition\":\"0\"}",
         "ValidationException",
         "1 validation error detected: Value '0' at 'startingPosition' failed to satisfy constraint: Member "
         "must satisfy enum value set: [LATEST, AT_TIMESTAMP, TRIM_HORIZON]"},
        {"{" GOOD ",\"FunctionResponseTypes\":[\"X\"]}", "ValidationException",
         "1 validation error detected: Value '[X]' at 'functionResponseTypes' failed to satisfy constraint: "
         "Member must satisfy constraint: [Member must satisfy enum value set: [ReportBatchItemFailures], "
         "Member must not be null]"},
        {"{" GOOD ",\"FunctionName\":\"a b\"}", "ValidationException",
         "1 validation error detected: Value 'a b' at 'functionName' failed to satisfy constraint: Member "
         "must "
         "satisfy regular expression pattern: "
         "(arn:(aws[a-zA-Z-]*)?:lambda:)?((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}:)?"
         "(\\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?"},
        {"{" GOOD ",\"KMSKeyArn\":null,\"BatchSize\":0,\"Tags\":{\"\":\"x\"}}", "ValidationException",
         "2 validation errors detected: Value '0' at 'batchSize' failed to satisfy constraint: Member must have "
         "value greater than or equal to 1; Value '{=x}' at 'tags' failed to satisfy constraint: Map keys must "
         "satisfy constraint: [Member must have length less than or equal to 128, Member must have length greater "
         "than or equal to 1, Member must satisfy regular expression pattern: [\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*]"},
        {"{" GOOD ",\"MetricsConfig\":{\"Metrics\":[\"ErrorCount\"]}}", "ValidationException",
         "1 validation error detected: Value '[ErrorCount]' at 'metricsConfig.metrics' failed to satisfy "
         "constraint: Member must satisfy constraint: [Member must satisfy enum value set: [EventCount], "
         "Member must not be null]"},
    };
    check_refused(rows, sizeof rows / sizeof *rows, true);
}

TEST(what_does_not_go_together_is_refused)
{
    static const struct refused rows[] = {
        {"{\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\"}", "InvalidParameterValueException",
         "Unrecognized event source."},
        {"{\"EventSourceArn\":\"t\",\"FunctionName\":\"f\"}", "InvalidParameterValueException",
         "1 validation error detected: Value null at 'startingPosition' failed to satisfy constraint: Member "
         "must not be null."},
        {"{\"EventSourceArn\":\"arn:x\",\"FunctionName\":\"f\",\"StartingPosition\":\"AT_TIMESTAMP\","
         "\"StartingPositionTimestamp\":5}",
         "InvalidParameterValueException", "Unsupported starting position for arn type: arn:x"},
        {"{" GOOD ",\"StartingPositionTimestamp\":5}", "InvalidParameterValueException",
         "Timestamp only valid with StartingPosition AT_TIMESTAMP"},
        {"{" GOOD ",\"MaximumRecordAgeInSeconds\":59}", "InvalidParameterValueException",
         "Invalid request provided: MaximumRecordAgeInSeconds must be -1 or between 60 and 604800."},
        {"{" GOOD ",\"MaximumRecordAgeInSeconds\":0}", "InvalidParameterValueException",
         "Invalid request provided: MaximumRecordAgeInSeconds must be -1 or between 60 and 604800."},
        {"{" GOOD ",\"DestinationConfig\":{\"OnSuccess\":{}}}", "InvalidParameterValueException",
         "Unsupported DestinationConfig parameter for given event source mapping type."},
        {"{" GOOD ",\"Topics\":[\"t\"]}", "InvalidParameterValueException",
         "Unsupported Topics parameter for given event source mapping type."},
        {"{" GOOD ",\"Queues\":[\"t\"]}", "InvalidParameterValueException",
         "Unsupported Queues parameter for given event source mapping type."},
        {"{" GOOD ",\"ScalingConfig\":{\"MaximumConcurrency\":5}}", "InvalidParameterValueException",
         "Unsupported ScalingConfig parameter for given event source mapping type."},
        {"{" GOOD ",\"SourceAccessConfigurations\":[]}", "InvalidParameterValueException",
         "Unsupported SourceAccessConfigurations parameter for given event source mapping type."},
        {"{\"FunctionName\":\"f\",\"SelfManagedEventSource\":{\"Endpoints\":{}}}",
         "InvalidParameterValueException",
         "Unsupported SelfManagedEventSource parameter for given event source mapping type."},
        {"{" GOOD ",\"FilterCriteria\":{\"Filters\":[{}]}}", "InvalidParameterValueException",
         "Invalid filter pattern definition."},
        {"{" GOOD ",\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"single-string\"}]}}",
         "InvalidParameterValueException",
         "Invalid filter pattern definition. The pattern is not JSON: unexpected character, at character 1"},
        {"{" GOOD ",\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{\\\"a\\\":[1]}\"},{"
         "\"Pattern\":\"{\\\"a\\\":1}\"}]}}",
         "InvalidParameterValueException",
         "Invalid filter pattern definition. \"a\" must be an object or an array, at character 6"},
        {"{" GOOD ",\"Tags\":[]}", "SerializationException", "START_ARRAY can not be converted to a Map"},
        {"{" GOOD ",\"Tags\":{\"a\":1}}", "SerializationException",
         "NUMBER_VALUE can not be converted to a String"},
    };
    check_refused(rows, sizeof rows / sizeof *rows, true);
}

TEST(an_update_needs_nothing_and_is_checked_alike)
{
    static const struct refused rows[] = {
        {"{\"BatchSize\":0}", "ValidationException",
         "1 validation error detected: Value '0' at 'batchSize' failed to satisfy constraint: Member must "
         "have "
         "value greater than or equal to 1"},
        {"{\"MaximumRecordAgeInSeconds\":5}", "InvalidParameterValueException",
         "Invalid request provided: MaximumRecordAgeInSeconds must be -1 or between 60 and 604800."},
        {"{\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{}\"}]}}", "InvalidParameterValueException",
         "Invalid filter pattern definition. Empty objects are not allowed, at character 3"},
        {"{\"ScalingConfig\":{}}", "InvalidParameterValueException",
         "Unsupported ScalingConfig parameter for given event source mapping type."},
    };
    check_refused(rows, sizeof rows / sizeof *rows, false);
    struct arena arena = {0};
    struct mapping_request request;
    struct refusal refusal;
    CHECK(parse(SLICE("{}"), false, &arena, &request, &refusal));
    arena_free(&arena);
}

TEST(filters_are_bounded)
{
    struct arena arena = {0};
    struct buf body = {0};
    struct mapping_request request;
    struct refusal refusal;
    for (int count = LIMIT_FILTERS; count <= LIMIT_FILTERS + 1; count++) {
        body.len = 0;
        buf_text(&body, "{\"FilterCriteria\":{\"Filters\":[");
        for (int i = 0; i < count; i++)
            buf_printf(&body, "%s{\"Pattern\":\"{\\\"a\\\":[%d]}\"}", i ? "," : "", i);
        buf_text(&body, "]}}");
        CHECK_INT(parse(buf_view(&body), false, &arena, &request, &refusal),
                  count == LIMIT_FILTERS);
    }
    CHECK_TEXT(refusal.message, "Exceeded the maximum number of filters for an event source mapping: 10.");
    body.len = 0;
    buf_text(&body, "{\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"");
    for (int i = 0; i <= LIMIT_FILTER_CHARACTERS; i++) buf_byte(&body, ' ');
    buf_text(&body, "\"}]}}");
    CHECK(!parse(buf_view(&body), false, &arena, &request, &refusal));
    CHECK(slice_contains(refusal.message,
                         SLICE("at 'filterCriteria.filters.1.member.pattern' failed to satisfy "
                               "constraint: Member must have length less than or equal to 4096")));
    buf_free(&body);
    arena_free(&arena);
}

static void check_settings(const char *body, struct settings *settings, struct arena *arena)
{
    struct mapping_request request;
    struct refusal refusal = {0};
    if (!parse(slice_of(body), true, arena, &request, &refusal))
        test_failed(__FILE__, __LINE__, "%s was refused: %.*s", body, SLICE_ARG(refusal.message));
    settings_defaults(settings);
    mapping_request_apply(&request, arena, settings);
}

TEST(defaults_are_lambdas)
{
    struct arena arena = {0};
    struct settings settings;
    char error[64];
    check_settings("{" GOOD "}", &settings, &arena);
    struct mapping *mapping = mapping_new(&settings, error, sizeof error);
    CHECK_INT(mapping->batch_size, 100);
    CHECK_INT(mapping->window_ms, 0);
    CHECK_INT(mapping->lanes, 1);
    CHECK_INT(mapping->retries_max, -1);
    CHECK_INT(mapping->age_max_ms, -1);
    CHECK_INT(mapping->tumbling_ms, 0);
    CHECK_INT(mapping->depth_max, 0);
    CHECK_INT(mapping->filter_count, 0);
    CHECK(mapping->enabled && !mapping->bisect && !mapping->reports_failures &&
          !mapping->settings->counts_events);
    CHECK(mapping->start == START_LATEST && mapping->on_failure.len == 0);
    mapping_release(mapping);
    arena_free(&arena);
}

static const char everything[] =
    "{\"EventSourceArn\":\"t\",\"FunctionName\":\"f\",\"StartingPosition\":\"TRIM_HORIZON\",\"BatchSize\":7,"
    "\"MaximumBatchingWindowInSeconds\":300,\"ParallelizationFactor\":10,\"MaximumRetryAttempts\":0,"
    "\"MaximumRecordAgeInSeconds\":60,\"BisectBatchOnFunctionError\":true,\"TumblingWindowInSeconds\":900,"
    "\"FunctionResponseTypes\":[\"ReportBatchItemFailures\"],\"Enabled\":false,\"MaximumRecursionDepth\":3,"
    "\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{\\\"a\\\":[\\\"\\u00e9\\\"]}\"},{\"Pattern\":\"{"
    "\\\"b\\\":[2]}\"}]},"
    "\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:q\"}},"
    "\"MetricsConfig\":{\"Metrics\":[\"EventCount\"]},"
    "\"KMSKeyArn\":\"arn:aws:kms:us-east-1:000000000000:key/1\","
    "\"Tags\":{\"team\":\"a \\\"b\\\"\"},\"Unknown\":{\"x\":[1]},\"Queues\":null}";

TEST(every_setting_reaches_the_mapping)
{
    struct arena arena = {0}, scratch = {0};
    struct settings settings;
    char error[64];
    check_settings(everything, &settings, &arena);
    struct mapping *mapping = mapping_new(&settings, error, sizeof error);
    CHECK_INT(mapping->batch_size, 7);
    CHECK_INT(mapping->window_ms, 300000);
    CHECK_INT(mapping->lanes, 10);
    CHECK_INT(mapping->retries_max, 0);
    CHECK_INT(mapping->age_max_ms, 60000);
    CHECK_INT(mapping->tumbling_ms, 900000);
    CHECK_INT(mapping->depth_max, 3);
    CHECK_INT(mapping->filter_count, 2);
    CHECK(!mapping->enabled && mapping->bisect && mapping->reports_failures &&
          mapping->settings->counts_events);
    CHECK(mapping->start == START_TRIM_HORIZON);
    CHECK_TEXT(mapping->on_failure, "arn:aws:sqs:us-east-1:000000000000:q");
    CHECK(pattern_matches(mapping->patterns[0], SLICE("{\"a\":\"\xc3\xa9\"}"), &scratch));
    CHECK(pattern_matches(mapping->patterns[1], SLICE("{\"b\":2}"), &scratch));
    mapping_release(mapping);
    arena_free(&arena);
    arena_free(&scratch);
}

TEST(what_is_given_again_as_nothing_is_nothing)
{
    struct arena arena = {0};
    struct settings settings;
    struct mapping_request request;
    struct refusal refusal;
    check_settings(everything, &settings, &arena);
    CHECK(parse(SLICE("{\"FilterCriteria\":{},\"DestinationConfig\":{\"OnFailure\":{}},"
                                      "\"FunctionResponseTypes\":[],\"MetricsConfig\":{\"Metrics\":[]},"
                                      "\"KMSKeyArn\":\"\"}"),
                                false, &arena, &request, &refusal));
    mapping_request_apply(&request, &arena, &settings);
    CHECK_INT(settings.filter_count, 0);
    CHECK_INT(settings.on_failure.len + settings.kms_key.len, 0);
    CHECK(!settings.reports_failures && !settings.counts_events);
    CHECK_INT(settings.numbers[SETTING_BATCH_SIZE], 7);
    arena_free(&arena);
}

static bool parse_item(struct slice text, struct settings *out, struct arena *arena)
{
    return mapping_item_parse(text, arena, out);
}

TEST(items_give_back_what_went_in)
{
    struct arena arena = {0};
    struct buf first = {0}, second = {0};
    struct settings settings, again;
    check_settings(everything, &settings, &arena);
    settings.id = SLICE("14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11");
    settings.stream_arn = SLICE("arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/x");
    settings.function = SLICE("f");
    settings.function_arn = SLICE("arn:aws:lambda:us-east-1:000000000000:function:f");
    settings.tags = SLICE("{\"team\":\"a \\\"b\\\"\"}");
    settings.revision = 42;
    settings.created_ms = 1700000000123;
    settings.modified_ms = 1700000000456;
    settings.is_deleting = true;
    put_mapping_item(&first, &settings);
    CHECK(parse_item(buf_view(&first), &again, &arena));
    put_mapping_item(&second, &again);
    CHECK(slice_equal(buf_view(&first), buf_view(&second)));
    CHECK(again.is_deleting && again.revision == 42 && again.created_ms == 1700000000123);
    CHECK_TEXT(again.filters[0], "{\"a\":[\"\xc3\xa9\"]}");
    buf_free(&first);
    buf_free(&second);
    arena_free(&arena);
}

TEST(items_of_strangers_are_no_mappings)
{
    static const char *const items[] = {
        "{}",
        "[]",
        "{\"id\":{\"S\":\"x\"}}",
        "{\"id\":{\"S\":\"14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11\"}}",
        "{\"id\":{\"S\":\"14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11\"},\"stream\":{\"S\":\"s\"},"
        "\"function\":{\"S\":\"f\"},\"functionArn\":{\"S\":\"f\"},\"revision\":{\"N\":\"1\"},"
        "\"batchSize\":{\"N\":\"0\"}}",
        "{\"id\":{\"S\":\"14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11\"},\"stream\":{\"S\":\"s\"},"
        "\"function\":{\"S\":\"f\"},\"functionArn\":{\"S\":\"f\"},\"revision\":{\"N\":\"1\"},"
        "\"filters\":{\"S\":\"x\"}}",
        "{\"id\":{\"S\":\"14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11\"},\"stream\":{\"S\":\"s\"},"
        "\"function\":{\"S\":\"f\"},\"functionArn\":{\"S\":\"f\"},\"revision\":{\"N\":\"-1\"}}",
    };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        struct arena arena = {0};
        struct settings settings;
        if (parse_item(slice_of(items[i]), &settings, &arena))
            test_failed(__FILE__, __LINE__, "%s was taken for a mapping", items[i]);
        arena_free(&arena);
    }
}
