/* A mapping as an item of the table PREFIXmappings, and back.
 *
 * The table: hash key `id` (S, the UUID). Attributes, all of them words of the API:
 *   stream, function, functionArn, startingPosition (S); batchSize, batchingWindowSeconds,
 *   parallelizationFactor, retryAttempts, recordAgeSeconds, tumblingWindowSeconds, recursionDepth (N);
 *   enabled, bisect, reportsFailures, countsEvents (BOOL); filters (L of S: patterns); onFailure, kmsKey (S,
 *   where there is one); tags (S: a JSON object, where there are some); created, modified (N: milliseconds
 *   since 1970); revision (N: grows with each change, and is what writes are conditional on); followed (BOOL:
 *   the stream is not the one that the mapping was made for, but a later one of the same table; all of it is
 *   read); deleting (BOOL: the mapping is to be removed, by whichever server gets to it).
 *
 * Whoever writes into the table by hand may write anything: what is not of this form is not a mapping. */
#include "base/limits.h"
#include "trigger/mapping.h"

/* ---- writing ---- */

static void put_name(struct buf *out, const char *name, const char *type)
{
    if (out->data[out->len - 1] != '{') buf_byte(out, ',');
    buf_printf(out, "\"%s\":{\"%s\":", name, type);
}

static void put_text(struct buf *out, const char *name, struct slice text)
{
    put_name(out, name, "S");
    json_put_string(out, text);
    buf_byte(out, '}');
}

static void put_number(struct buf *out, const char *name, int64_t number)
{
    put_name(out, name, "N");
    buf_printf(out, "\"%lld\"}", (long long)number);
}

static void put_flag(struct buf *out, const char *name, bool flag)
{
    put_name(out, name, "BOOL");
    buf_printf(out, "%s}", flag ? "true" : "false");
}

static void put_filters(struct buf *out, const struct settings *settings)
{
    put_name(out, "filters", "L");
    buf_byte(out, '[');
    for (uint32_t i = 0; i < settings->filter_count; i++) {
        buf_slice(out, i ? SLICE(",{\"S\":") : SLICE("{\"S\":"));
        json_put_string(out, settings->filters[i]);
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
}

void put_mapping_item(struct buf *out, const struct settings *settings)
{
    buf_byte(out, '{');
    put_text(out, "id", settings->id);
    put_text(out, "stream", settings->stream_arn);
    put_text(out, "function", settings->function);
    put_text(out, "functionArn", settings->function_arn);
    put_text(out, "startingPosition",
             settings->start == START_LATEST ? SLICE("LATEST") : SLICE("TRIM_HORIZON"));
    for (int i = 0; i < SETTING_NUMBERS; i++)
        put_number(out, number_rules[i].attribute, settings->numbers[i]);
    put_flag(out, "enabled", settings->enabled);
    put_flag(out, "bisect", settings->bisects);
    put_flag(out, "reportsFailures", settings->reports_failures);
    put_flag(out, "countsEvents", settings->counts_events);
    put_filters(out, settings);
    if (settings->on_failure.len) put_text(out, "onFailure", settings->on_failure);
    if (settings->kms_key.len) put_text(out, "kmsKey", settings->kms_key);
    if (settings->tags.len) put_text(out, "tags", settings->tags);
    put_number(out, "created", settings->created_ms);
    put_number(out, "modified", settings->modified_ms);
    put_number(out, "revision", (int64_t)settings->revision);
    if (settings->has_followed) put_flag(out, "followed", true);
    if (settings->is_deleting) put_flag(out, "deleting", true);
    buf_byte(out, '}');
}

/* ---- reading ---- */

struct attribute_text {
    bool is_number, is_flag, flag;
    struct slice text; /* NULL data: of another type */
};

/* The value {"S": "..."}, {"N": "..."} or {"BOOL": ...}; others are passed. */
static bool read_value(struct json_reader *reader, struct attribute_text *out)
{
    struct slice type;
    *out = (struct attribute_text){0};
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return json_fail(reader, "not an item");
    while (json_member(reader, &type)) {
        enum json_kind kind = json_peek(reader);
        out->is_number = slice_equal(type, SLICE("N"));
        out->is_flag = kind == JSON_TRUE || kind == JSON_FALSE;
        out->flag = kind == JSON_TRUE;
        if (kind == JSON_STRING ? !json_string(reader, &out->text) : !json_skip(reader)) return false;
    }
    return !json_failed(reader);
}

static bool to_integer(const struct attribute_text *value, int64_t min, int64_t max, int64_t *out)
{
    struct slice text = value->text;
    unsigned long long digits;
    if (!value->is_number || !text.len) return false;
    bool negative = text.data[0] == '-';
    if (!slice_to_u64(slice_from(text, negative ? 1 : 0), INT64_MAX, &digits)) return false;
    *out = negative ? -(int64_t)digits : (int64_t)digits;
    return *out >= min && *out <= max;
}

static bool read_filters(struct json_reader *reader, struct arena *arena, struct settings *out)
{
    struct slice type;
    struct attribute_text value;
    out->filter_count = 0;
    out->filters = arena_array(arena, struct slice, LIMIT_FILTERS);
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    if (!json_member(reader, &type) || json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return false;
    while (json_element(reader)) {
        if (out->filter_count == LIMIT_FILTERS || !read_value(reader, &value) || !value.text.data)
            return false;
        out->filters[out->filter_count++] = value.text;
    }
    return !json_member(reader, &type) && !json_failed(reader);
}

static bool take_number(struct settings *out, struct slice name, const struct attribute_text *value)
{
    int64_t number = 0;
    for (int i = 0; i < SETTING_NUMBERS; i++)
        if (slice_equal(name, slice_of(number_rules[i].attribute)))
            return to_integer(value, number_rules[i].min, number_rules[i].max, &out->numbers[i]);
    if (slice_equal(name, SLICE("created"))) return to_integer(value, 0, INT64_MAX, &out->created_ms);
    if (slice_equal(name, SLICE("modified"))) return to_integer(value, 0, INT64_MAX, &out->modified_ms);
    if (!slice_equal(name, SLICE("revision"))) return true;
    if (!to_integer(value, 0, INT64_MAX, &number)) return false;
    out->revision = (uint64_t)number;
    return true;
}

static void take_text(struct settings *out, struct slice name, struct slice text)
{
    const struct {
        const char *name;
        struct slice *to;
    } texts[] = {
        {"id", &out->id},          {"stream", &out->stream_arn},        {"function", &out->function},
        {"tags", &out->tags},      {"functionArn", &out->function_arn}, {"onFailure", &out->on_failure},
        {"kmsKey", &out->kms_key},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (slice_equal(name, slice_of(texts[i].name))) *texts[i].to = text;
    if (slice_equal(name, SLICE("startingPosition")))
        out->start = slice_equal(text, SLICE("LATEST")) ? START_LATEST : START_TRIM_HORIZON;
}

static void take_flag(struct settings *out, struct slice name, bool flag)
{
    const struct {
        const char *name;
        bool *to;
    } flags[] = {
        {"enabled", &out->enabled},
        {"bisect", &out->bisects},
        {"reportsFailures", &out->reports_failures},
        {"countsEvents", &out->counts_events},
        {"followed", &out->has_followed},
        {"deleting", &out->is_deleting},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (slice_equal(name, slice_of(flags[i].name))) *flags[i].to = flag;
}

static bool read_attribute(struct json_reader *reader, struct arena *arena, struct slice name,
                           struct settings *out)
{
    struct attribute_text value;
    if (slice_equal(name, SLICE("filters"))) return read_filters(reader, arena, out);
    if (!read_value(reader, &value)) return false;
    if (value.is_flag)
        take_flag(out, name, value.flag);
    else if (value.text.data && !value.is_number)
        take_text(out, name, value.text);
    return value.is_number ? take_number(out, name, &value) : true;
}

bool mapping_item_parse(struct json_reader *reader, struct arena *arena, struct settings *out)
{
    struct slice name;
    bool good = true;
    settings_defaults(out);
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (good && json_member(reader, &name)) good = read_attribute(reader, arena, name, out);
    return good && !json_failed(reader) && out->id.len == 36 && out->stream_arn.len && out->function.len &&
           out->function_arn.len && out->revision > 0;
}
