/* The body of CreateEventSourceMapping and UpdateEventSourceMapping: read, checked, refused in Lambda's
 * words.
 *
 * Pure: nothing outside the text decides. The order is the service's: JSON and types, then all constraints of
 * the model in one message, then what does not go together. Members that Lambda has for other kinds of
 * sources are refused by name; members that it does not have at all are ignored, as it does. */
#include <ctype.h>

#include "base/compose.h"
#include "base/limits.h"
#include "trigger/mapping.h"

struct parse {
    struct json_reader reader;
    struct arena *arena;
    struct mapping_request *out;
    struct refusal *refusal;
    struct buf violations; /* of the model's constraints, joined by "; " */
    unsigned violation_count;
};

/* ---- constraints ---- */

/* "BatchSize" is 'batchSize' in the service's messages. */
static void put_path(struct buf *out, const char *name)
{
    buf_byte(out, (unsigned char)tolower((unsigned char)name[0]));
    buf_slice(out, slice_of(name + 1));
}

static void violate(struct parse *parse, const char *path, struct slice value, const char *rule)
{
    struct buf *out = &parse->violations;
    if (parse->violation_count++) buf_text(out, "; ");
    if (value.data)
        buf_printf(out, "Value '%.*s' at '", SLICE_ARG(value));
    else
        buf_text(out, "Value null at '");
    put_path(out, path);
    buf_printf(out, "' failed to satisfy constraint: %s", rule);
}

static bool has_no_violations(struct parse *parse)
{
    if (!parse->violation_count) return true;
    return decline(parse->refusal, parse->arena, 400, "ValidationException",
                   "%u validation error%s detected: %.*s", parse->violation_count,
                   parse->violation_count == 1 ? "" : "s", SLICE_ARG(buf_view(&parse->violations)));
}

/* ---- values ---- */

static bool refuse_type(struct parse *parse, const char *wanted)
{
    static const char *const names[] = {[JSON_FAULT] = "END",           [JSON_END] = "END",
                                        [JSON_NULL] = "NULL_VALUE",     [JSON_TRUE] = "TRUE_VALUE",
                                        [JSON_FALSE] = "FALSE_VALUE",   [JSON_NUMBER] = "NUMBER_VALUE",
                                        [JSON_STRING] = "STRING_VALUE", [JSON_OBJECT] = "START_OBJECT",
                                        [JSON_ARRAY] = "START_ARRAY"};
    return decline(parse->refusal, parse->arena, 400, "SerializationException",
                   "%s can not be converted to %s", names[json_peek(&parse->reader)], wanted);
}

static bool read_text(struct parse *parse, struct slice *out)
{
    if (json_peek(&parse->reader) != JSON_STRING) return refuse_type(parse, "a String");
    return json_string(&parse->reader, out);
}

static bool read_flag(struct parse *parse, bool *out)
{
    enum json_kind kind = json_peek(&parse->reader);
    if (kind != JSON_TRUE && kind != JSON_FALSE) return refuse_type(parse, "a Boolean");
    *out = kind == JSON_TRUE;
    return json_skip(&parse->reader);
}

static bool read_number(struct parse *parse, enum setting_number which)
{
    const struct number_rule *rule = &number_rules[which];
    struct slice text, digits;
    unsigned long long value;
    if (json_peek(&parse->reader) != JSON_NUMBER) return refuse_type(parse, "an Integer");
    if (!json_number(&parse->reader, &text)) return false;
    bool negative = text.data[0] == '-';
    digits = slice_from(text, negative ? 1 : 0);
    if (!slice_to_u64(digits, INT32_MAX, &value))
        return decline(parse->refusal, parse->arena, 400, "SerializationException",
                       "NUMBER_VALUE '%.*s' can not be converted to an Integer", SLICE_ARG(text));
    int64_t number = negative ? -(int64_t)value : (int64_t)value;
    parse->out->given[which] = true;
    parse->out->wanted.numbers[which] = number;
    char words[80];
    if (number < rule->min)
        snprintf(words, sizeof words, "Member must have value greater than or equal to %lld",
                 (long long)rule->min);
    else if (number > rule->max)
        snprintf(words, sizeof words, "Member must have value less than or equal to %lld",
                 (long long)rule->max);
    else
        return true;
    violate(parse, rule->member, text, words);
    return true;
}

/* Reads the members of an object: `each` is called with the reader before a value that is not null. */
static bool read_members(struct parse *parse, bool (*each)(struct parse *parse, struct slice name))
{
    struct slice name;
    if (json_peek(&parse->reader) != JSON_OBJECT) return refuse_type(parse, "an object");
    json_enter(&parse->reader);
    while (json_member(&parse->reader, &name)) {
        bool is_null = json_peek(&parse->reader) == JSON_NULL;
        if (is_null ? !json_skip(&parse->reader) : !each(parse, name)) return false;
    }
    return !json_failed(&parse->reader);
}

/* ---- filters ---- */

static size_t characters_of(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool read_pattern(struct parse *parse, struct slice name)
{
    struct settings *out = &parse->out->wanted;
    struct slice pattern;
    char path[64];
    if (!slice_equal(name, SLICE("Pattern"))) return json_skip(&parse->reader);
    if (!read_text(parse, &pattern)) return false;
    snprintf(path, sizeof path, "filterCriteria.filters.%u.member.pattern", out->filter_count);
    if (characters_of(pattern) > LIMIT_FILTER_CHARACTERS)
        violate(parse, path, pattern, "Member must have length less than or equal to 4096");
    out->filters[out->filter_count - 1] = pattern;
    return true;
}

static bool read_filter_list(struct parse *parse, struct slice name)
{
    struct settings *out = &parse->out->wanted;
    if (!slice_equal(name, SLICE("Filters"))) return json_skip(&parse->reader);
    if (json_peek(&parse->reader) != JSON_ARRAY) return refuse_type(parse, "a list");
    out->filters = arena_array(parse->arena, struct slice, LIMIT_FILTERS);
    out->filter_count = 0;
    json_enter(&parse->reader);
    while (json_element(&parse->reader)) {
        if (out->filter_count == LIMIT_FILTERS)
            return REFUSE_VALUE(parse->refusal, parse->arena,
                                "Exceeded the maximum number of filters for an event source mapping: %d.",
                                LIMIT_FILTERS);
        out->filters[out->filter_count++] = SLICE_NONE;
        if (!read_members(parse, read_pattern)) return false;
    }
    return !json_failed(&parse->reader);
}

/* Each filter must compile; one without a pattern would match nothing that anybody can mean. */
static bool check_filters(struct parse *parse)
{
    char error[256];
    for (uint32_t i = 0; i < parse->out->wanted.filter_count; i++) {
        struct arena arena = {0};
        struct slice pattern = parse->out->wanted.filters[i];
        bool good = pattern.len && pattern_compile(&arena, pattern, error, sizeof error);
        arena_free(&arena);
        if (!pattern.len)
            return REFUSE_VALUE(parse->refusal, parse->arena, "Invalid filter pattern definition.");
        if (!good)
            return REFUSE_VALUE(parse->refusal, parse->arena, "Invalid filter pattern definition. %s", error);
    }
    return true;
}

/* ---- destinations ---- */

static bool read_destination(struct parse *parse, struct slice name)
{
    struct slice *out = &parse->out->wanted.on_failure;
    if (!slice_equal(name, SLICE("Destination"))) return json_skip(&parse->reader);
    if (!read_text(parse, out)) return false;
    if (characters_of(*out) > LIMIT_DESTINATION_CHARACTERS)
        violate(parse, "destinationConfig.onFailure.destination", *out,
                "Member must have length less than or equal to 350");
    return true;
}

static bool read_destinations(struct parse *parse, struct slice name)
{
    if (slice_equal(name, SLICE("OnSuccess"))) {
        parse->out->given[GIVEN_ON_SUCCESS] = true;
        return json_skip(&parse->reader);
    }
    if (!slice_equal(name, SLICE("OnFailure"))) return json_skip(&parse->reader);
    parse->out->given[GIVEN_ON_FAILURE] = true;
    return read_members(parse, read_destination);
}

/* ---- lists of words of which only one is of use ---- */

/* True in *found when the list has the word; others are violations. */
static bool read_words(struct parse *parse, const char *path, const char *word, const char *rule, bool *found)
{
    struct slice text;
    unsigned count = 0;
    *found = false;
    if (json_peek(&parse->reader) != JSON_ARRAY) return refuse_type(parse, "a list");
    json_enter(&parse->reader);
    while (json_element(&parse->reader)) {
        if (!read_text(parse, &text)) return false;
        if (slice_equal(text, slice_of(word)))
            *found = true;
        else
            violate(parse, path, text, rule);
        count++;
    }
    if (count > 1) violate(parse, path, text, "Member must have length less than or equal to 1");
    return !json_failed(&parse->reader);
}

static bool read_response_types(struct parse *parse)
{
    return read_words(parse, "functionResponseTypes", "ReportBatchItemFailures",
                      "Member must satisfy constraint: [Member must satisfy enum value set: "
                      "[ReportBatchItemFailures]]",
                      &parse->out->wanted.reports_failures);
}

static bool read_metrics_list(struct parse *parse, struct slice name)
{
    if (!slice_equal(name, SLICE("Metrics"))) return json_skip(&parse->reader);
    return read_words(parse, "metricsConfig.metrics", "EventCount",
                      "Member must satisfy constraint: [Member must satisfy enum value set: [EventCount]]",
                      &parse->out->wanted.counts_events);
}

/* ---- tags ---- */

bool mapping_tags_read(struct json_reader *reader, struct arena *arena, struct slice *out,
                       struct refusal *refusal)
{
    struct slice name, value;
    struct buf text = {0};
    unsigned count = 0;
    bool good = json_peek(reader) == JSON_OBJECT && json_enter(reader);
    buf_byte(&text, '{');
    while (good && json_member(reader, &name)) {
        good = json_peek(reader) == JSON_STRING && json_string(reader, &value) && name.len > 0 &&
               characters_of(name) <= LIMIT_TAG_NAME && characters_of(value) <= LIMIT_TAG_VALUE &&
               ++count <= LIMIT_TAGS;
        if (!good) break;
        compose(&text, "%,%s:%s", name, value);
    }
    buf_byte(&text, '}');
    good = good && !json_failed(reader);
    *out = count && good ? arena_copy(arena, buf_view(&text)) : SLICE_NONE;
    buf_free(&text);
    if (good) return true;
    return REFUSE_VALUE(refusal, arena,
                        "Tags must be at most %d names with texts, names of 1 to %d and texts of up to %d "
                        "characters.",
                        LIMIT_TAGS, LIMIT_TAG_NAME, LIMIT_TAG_VALUE);
}

/* ---- members ---- */

static bool read_starting_position(struct parse *parse)
{
    struct slice *out = &parse->out->starting_position;
    if (!read_text(parse, out)) return false;
    if (!slice_equal(*out, SLICE("TRIM_HORIZON")) && !slice_equal(*out, SLICE("LATEST")) &&
        !slice_equal(*out, SLICE("AT_TIMESTAMP")))
        violate(parse, "startingPosition", *out,
                "Member must satisfy enum value set: [LATEST, AT_TIMESTAMP, TRIM_HORIZON]");
    parse->out->wanted.start = slice_equal(*out, SLICE("LATEST")) ? START_LATEST : START_TRIM_HORIZON;
    return true;
}

static bool read_function_name(struct parse *parse)
{
    struct slice *out = &parse->out->function;
    if (!read_text(parse, out)) return false;
    bool good = true;
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char)out->data[i];
        good = good && (isalnum(c) || c == '-' || c == '_' || c == ':' || c == '$');
    }
    if (out->len == 0)
        violate(parse, "functionName", *out, "Member must have length greater than or equal to 1");
    if (characters_of(*out) > LIMIT_FUNCTION_NAME)
        violate(parse, "functionName", *out, "Member must have length less than or equal to 140");
    if (!good)
        violate(parse, "functionName", *out,
                "Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:lambda:)?"
                "([a-z]{2}(-gov)?-[a-z]+-\\d{1}:)?(\\d{12}:)?(function:)?([a-zA-Z0-9-_]+)"
                "(:(\\$LATEST|[a-zA-Z0-9-_]+))?");
    return true;
}

/* Each member of a request that is no number: what it gives, and how it is read. */
#define MAPPING_MEMBERS(X)                                                                                   \
    X("EventSourceArn", NOTHING, read_text(parse, &out->source))                                             \
    X("FunctionName", NOTHING, read_function_name(parse))                                                    \
    X("StartingPosition", START, read_starting_position(parse))                                              \
    X("StartingPositionTimestamp", TIMESTAMP, json_skip(&parse->reader))                                     \
    X("Enabled", ENABLED, read_flag(parse, &out->wanted.enabled))                                            \
    X("BisectBatchOnFunctionError", BISECTS, read_flag(parse, &out->wanted.bisects))                         \
    X("FunctionResponseTypes", RESPONSE_TYPES, read_response_types(parse))                                   \
    X("FilterCriteria", FILTERS, read_members(parse, read_filter_list))                                      \
    X("DestinationConfig", NOTHING, read_members(parse, read_destinations))                                  \
    X("MetricsConfig", METRICS, read_members(parse, read_metrics_list))                                      \
    X("KMSKeyArn", KMS_KEY, read_text(parse, &out->wanted.kms_key))                                          \
    X("Tags", NOTHING, mapping_tags_read(&parse->reader, parse->arena, &out->wanted.tags, parse->refusal))

/* Settings of queues, brokers and other databases. */
static const char *const foreign[] = {
    "Topics",
    "Queues",
    "SourceAccessConfigurations",
    "SelfManagedEventSource",
    "AmazonManagedKafkaEventSourceConfig",
    "SelfManagedKafkaEventSourceConfig",
    "ScalingConfig",
    "DocumentDBEventSourceConfig",
    "ProvisionedPollerConfig",
};

static bool read_member(struct parse *parse, struct slice name)
{
    struct mapping_request *out = parse->out;
    for (int i = 0; i < SETTING_NUMBERS; i++)
        if (slice_equal(name, slice_of(number_rules[i].member)))
            return read_number(parse, (enum setting_number)i);
#define X(member, what, reading)                                                                             \
    if (slice_equal(name, SLICE(member))) {                                                                  \
        out->given[GIVEN_##what] = true;                                                                     \
        return reading;                                                                                      \
    }
    MAPPING_MEMBERS(X)
#undef X
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (slice_equal(name, slice_of(foreign[i]))) out->foreign = foreign[i];
    return json_skip(&parse->reader);
}

/* ---- what goes together ---- */

static bool check_start(struct parse *parse)
{
    struct mapping_request *out = parse->out;
    if (!out->starting_position.data)
        return REFUSE_VALUE(parse->refusal, parse->arena,
                            "1 validation error detected: Value null at 'startingPosition' failed to satisfy "
                            "constraint: Member must not be null.");
    if (slice_equal(out->starting_position, SLICE("AT_TIMESTAMP")))
        return REFUSE_VALUE(parse->refusal, parse->arena, "Unsupported starting position for arn type: %.*s",
                            SLICE_ARG(out->source));
    if (out->given[GIVEN_TIMESTAMP])
        return REFUSE_VALUE(parse->refusal, parse->arena,
                            "Timestamp only valid with StartingPosition AT_TIMESTAMP");
    return true;
}

static bool check_together(struct parse *parse, bool is_create)
{
    struct mapping_request *out = parse->out;
    int64_t age = out->wanted.numbers[SETTING_RECORD_AGE];
    if (out->foreign)
        return REFUSE_VALUE(parse->refusal, parse->arena,
                            "Unsupported %s parameter for given event source mapping type.", out->foreign);
    if (out->given[GIVEN_ON_SUCCESS])
        return REFUSE_VALUE(parse->refusal, parse->arena,
                            "Unsupported DestinationConfig parameter for given event source mapping type.");
    if (is_create && !out->source.len)
        return REFUSE_VALUE(parse->refusal, parse->arena, "Unrecognized event source.");
    if (is_create && !check_start(parse)) return false;
    if (out->given[SETTING_RECORD_AGE] && age >= 0 && age < 60)
        return REFUSE_VALUE(
            parse->refusal, parse->arena,
            "Invalid request provided: MaximumRecordAgeInSeconds must be -1 or between 60 and "
            "604800.");
    return check_filters(parse);
}

static bool parse_body(struct parse *parse, bool is_create)
{
    bool good = read_members(parse, read_member) && json_done(&parse->reader);
    if (json_failed(&parse->reader))
        return decline(parse->refusal, parse->arena, 400, "InvalidRequestContentException",
                       "Could not parse request body into json: %s at character %zu", parse->reader.fault,
                       json_offset(&parse->reader) + 1);
    if (!good) return false;
    if (is_create && !parse->out->function.data)
        violate(parse, "functionName", SLICE_NONE, "Member must not be null");
    return has_no_violations(parse) && check_together(parse, is_create);
}

bool mapping_request_parse(struct slice body, bool is_create, struct arena *arena,
                           struct mapping_request *out, struct refusal *refusal)
{
    struct parse parse = {.arena = arena, .out = out, .refusal = refusal};
    *out = (struct mapping_request){0};
    json_begin(&parse.reader, body, arena);
    bool good = parse_body(&parse, is_create);
    buf_free(&parse.violations);
    return good;
}

void mapping_request_apply(const struct mapping_request *request, struct settings *settings)
{
    const struct settings *wanted = &request->wanted;
    for (int i = 0; i < SETTING_NUMBERS; i++)
        if (request->given[i]) settings->numbers[i] = wanted->numbers[i];
    if (request->given[GIVEN_START]) settings->start = wanted->start;
    if (request->given[GIVEN_ENABLED]) settings->enabled = wanted->enabled;
    if (request->given[GIVEN_BISECTS]) settings->bisects = wanted->bisects;
    if (request->given[GIVEN_RESPONSE_TYPES]) settings->reports_failures = wanted->reports_failures;
    if (request->given[GIVEN_METRICS]) settings->counts_events = wanted->counts_events;
    if (request->given[GIVEN_ON_FAILURE]) settings->on_failure = wanted->on_failure;
    if (request->given[GIVEN_KMS_KEY]) settings->kms_key = wanted->kms_key;
    if (!request->given[GIVEN_FILTERS]) return;
    settings->filters = wanted->filters;
    settings->filter_count = wanted->filter_count;
}
