/* Shapes that several operations share, with the service's patterns and, beside each, a function that decides
 * it. */
#include "base/limits.h"
#include "func/lambda.h"

/* ---- characters ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool text_consists_of(struct slice text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_letter(text.data[i]) && !is_digit(text.data[i]) &&
            (!text.data[i] || !strchr(others, text.data[i])))
            return false;
    return text.len != 0;
}

bool text_is_number(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.data[i])) return false;
    return text.len != 0;
}

/* ---- names of functions ---- */

/* us-east-1, us-gov-west-1, eusc-de-east-1: lower-case words and a digit, joined by dashes. */
static bool is_region(struct slice text)
{
    unsigned dashes = 0;
    if (text.len < 6 || !is_digit(text.data[text.len - 1])) return false;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.data[i] == '-')
            dashes++;
        else if (text.data[i] < 'a' || text.data[i] > 'z')
            return false;
    }
    return dashes >= 2 && text.data[text.len - 2] == '-';
}

bool arn_parse(struct slice text, struct arn *out)
{
    bool is_arn = slice_equal(slice_cut(&text, ':'), SLICE("arn"));
    out->partition = slice_cut(&text, ':');
    out->service = slice_cut(&text, ':');
    out->region = slice_cut(&text, ':');
    out->account = slice_cut(&text, ':');
    out->resource = text;
    return is_arn && slice_starts(out->partition, SLICE("aws")) && text.len;
}

void seconds_put(struct buf *out, int64_t time_ms)
{
    buf_printf(out, "%lld.%03d", (long long)(time_ms / 1000), (int)(time_ms % 1000));
}

/* Takes a field off the front when it is followed by another and fits; for the optional parts of an ARN. */
static bool take_if(struct slice *rest, bool (*fits)(struct slice))
{
    struct slice ahead = *rest, field = slice_cut(&ahead, ':');
    if (!ahead.len || !fits(field)) return false;
    *rest = ahead;
    return true;
}

bool text_is_account(struct slice text)
{
    return text.len == 12 && text_is_number(text);
}

static bool is_word_function(struct slice text)
{
    return slice_equal(text, SLICE("function"));
}

static bool is_word_arn(struct slice text)
{
    return slice_equal(text, SLICE("arn"));
}

static bool is_function_text(struct slice text, const char *others)
{
    struct slice rest = text;
    if (take_if(&rest, is_word_arn)) {
        struct slice partition = slice_cut(&rest, ':'), service = slice_cut(&rest, ':');
        if (partition.len && !slice_starts(partition, SLICE("aws"))) return false;
        if (!slice_equal(service, SLICE("lambda"))) return false;
    }
    take_if(&rest, is_region);
    take_if(&rest, text_is_account);
    take_if(&rest, is_word_function);
    bool is_qualified = rest.len && memchr(rest.data, ':', rest.len);
    struct slice name = slice_cut(&rest, ':');
    if (!text_consists_of(name, others)) return false;
    return !is_qualified || slice_equal(rest, SLICE("$LATEST")) || text_consists_of(rest, "-_");
}

static bool is_function_name(struct slice text)
{
    return is_function_text(text, "-_");
}

static bool is_function_name_long(struct slice text)
{
    return is_function_text(text, "-_.");
}

static bool is_qualifier(struct slice text)
{
    return text_consists_of(text, "-_$");
}

static bool is_version(struct slice text)
{
    return slice_equal(text, SLICE("$LATEST")) || text_is_number(text);
}

static bool is_alias(struct slice text)
{
    return text_consists_of(text, "-_") && !text_is_number(text);
}

/* The service has the letters of all scripts and a few signs; here everything but controls will do. */
static bool has_no_controls(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f) return false;
    return true;
}

/* ---- destinations ---- */

/* An ARN of any service; or, what only we have, a URL to post to. */
static bool is_destination(struct slice text)
{
    struct arn arn;
    if (!text.len || slice_starts(text, SLICE("http://")) || slice_starts(text, SLICE("https://")))
        return true;
    return arn_parse(text, &arn) && text_consists_of(arn.service, "-") &&
           (!arn.region.len || is_region(arn.region)) && (!arn.account.len || text_is_account(arn.account));
}

#define REGION_PATTERN   "(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}"
#define FUNCTION_PATTERN "(arn:(aws[a-zA-Z-]*)?:lambda:)?(" REGION_PATTERN ":)?(\\d{12}:)?(function:)?"
#define ARN_PATTERN      "arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\\-])+:(" REGION_PATTERN ")?:(\\d{12})?:(.*)"

CHOICE_SHAPE(shape_architecture, "x86_64", "arm64");
static const struct shape shape_tag_key = {
    TEXT_BETWEEN(1, LIMIT_TAG_NAME),
    .matches = has_no_controls,
    .pattern = "[\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*",
};
static const struct shape shape_tag_value = {TEXT_UP_TO(LIMIT_TAG_VALUE)};
static const struct shape shape_destination = {
    TEXT_UP_TO(LIMIT_DESTINATION_CHARACTERS),
    .matches = is_destination,
    .pattern = "$|kafka://([^.]([a-zA-Z0-9\\-_.]{0,248}))|" ARN_PATTERN,
};
STRUCT_SHAPE(shape_on_end, FIELD("Destination", shape_destination));
static const struct shape_field destinations_fields[] = {
    FIELD("OnSuccess", shape_on_end),
    FIELD("OnFailure", shape_on_end),
};

const struct shape lambda_shape_text = {.kind = SHAPE_STRING};
const struct shape lambda_shape_bool = {.kind = SHAPE_BOOL};
const struct shape lambda_shape_blob = {.kind = SHAPE_BLOB};
const struct shape lambda_shape_function_name = {
    TEXT_BETWEEN(1, LIMIT_FUNCTION_NAME),
    .matches = is_function_name,
    .pattern = FUNCTION_PATTERN "([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?",
};
const struct shape lambda_shape_function_name_long = {
    TEXT_BETWEEN(1, 170),
    .matches = is_function_name_long,
    .pattern = FUNCTION_PATTERN "([a-zA-Z0-9-_\\.]+)(:(\\$LATEST(\\.PUBLISHED)?|[a-zA-Z0-9-_]+))?",
};
const struct shape lambda_shape_qualifier = {
    TEXT_BETWEEN(1, 128),
    .matches = is_qualifier,
    .pattern = "\\$(LATEST(\\.PUBLISHED)?)|[a-zA-Z0-9-_$]+",
};
const struct shape lambda_shape_version = {
    TEXT_BETWEEN(1, 1024),
    .matches = is_version,
    .pattern = "(\\$LATEST|[0-9]+)",
};
const struct shape lambda_shape_alias = {
    TEXT_BETWEEN(1, 128),
    .matches = is_alias,
    .pattern = "(?!^[0-9]+$)([a-zA-Z0-9-_]+)",
};
const struct shape lambda_shape_description = {TEXT_UP_TO(256)};
const struct shape lambda_shape_max_items = INTEGER_BETWEEN(1, 10000);
const struct shape lambda_shape_max_items_50 = INTEGER_BETWEEN(1, 50);
const struct shape lambda_shape_tags = {.kind = SHAPE_MAP, .key = &shape_tag_key, .of = &shape_tag_value};
const struct shape lambda_shape_destinations = STRUCT_OF(destinations_fields);
const struct shape lambda_shape_architectures = {
    .kind = SHAPE_LIST, .of = &shape_architecture, .has_min = true, .min = 1, .has_max = true, .max = 1};
