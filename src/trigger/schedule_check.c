/* The constraints that EventBridge Scheduler's model puts on texts and numbers, and the sentences in which
 * the service refuses what breaks one; the small requests of groups and tags, which are little else. Pure. */
#include <stdarg.h>
#include <stdio.h>

#include "trigger/schedule.h"

#define TOKEN_MAX     64
#define FUNCTION_MAX  140 /* Lambda: a name with its qualifier */
#define VALUE_SHOWN   200 /* of a value in a sentence */
#define TAGS_MAX      200
#define TAG_KEY_MAX   128
#define TAG_VALUE_MAX 256

/* ---- sentences ---- */

bool schedule_fail(struct schedule_fault *fault, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fault->type = type;
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return false;
}

bool schedule_constraint(struct schedule_fault *fault, const char *member, struct slice value,
                         const char *rule)
{
    if (!value.data)
        return schedule_fail(
            fault, "ValidationException",
            "1 validation error detected: Value null at '%s' failed to satisfy constraint: %s", member, rule);
    if (value.len > VALUE_SHOWN) value.len = VALUE_SHOWN;
    return schedule_fail(fault, "ValidationException",
                         "1 validation error detected: Value '%.*s' at '%s' failed to satisfy constraint: %s",
                         SLICE_ARG(value), member, rule);
}

/* ---- texts and numbers ---- */

static bool is_of(char c, const char *more)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr(more, c));
}

static bool all_of(struct slice text, const char *more)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_of(text.data[i], more)) return false;
    return true;
}

static size_t characters(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

bool schedule_length_check(struct slice text, size_t min, size_t max, const char *member,
                           struct schedule_fault *fault)
{
    char rule[96];
    size_t count = characters(text);
    if (!text.data || (count >= min && count <= max)) return true;
    snprintf(rule, sizeof rule, "Member must have length %s than or equal to %zu",
             count < min ? "greater" : "less", count < min ? min : max);
    return schedule_constraint(fault, member, text, rule);
}

bool schedule_choice_check(struct slice text, const char *choices, const char *member,
                           struct schedule_fault *fault)
{
    char rule[128];
    const char *at = choices;
    if (!text.data) return true;
    while (*at) {
        size_t len = strcspn(at, ", ");
        if (slice_equal(text, (struct slice){at, len})) return true;
        at += len;
        at += strspn(at, ", ");
    }
    snprintf(rule, sizeof rule, "Member must satisfy enum value set: [%s]", choices);
    return schedule_constraint(fault, member, text, rule);
}

bool schedule_range_check(int64_t value, int64_t min, int64_t max, const char *member,
                          struct schedule_fault *fault)
{
    char rule[96], text[32];
    if (value == SCHEDULE_UNSET || (value >= min && value <= max)) return true;
    snprintf(rule, sizeof rule, "Member must have value %s than or equal to %lld",
             value < min ? "greater" : "less", (long long)(value < min ? min : max));
    snprintf(text, sizeof text, "%lld", (long long)value);
    return schedule_constraint(fault, member, slice_of(text), rule);
}

bool schedule_name_check(struct slice name, const char *member, struct schedule_fault *fault)
{
    if (!schedule_length_check(name, 1, SCHEDULE_NAME_MAX, member, fault)) return false;
    return all_of(name, "-_.") ||
           schedule_constraint(fault, member, name,
                               "Member must satisfy regular expression pattern: ^[0-9a-zA-Z-_.]+$");
}

bool schedule_token_check(struct slice token, struct schedule_fault *fault)
{
    if (!schedule_length_check(token, 1, TOKEN_MAX, "clientToken", fault)) return false;
    return all_of(token, "-_") ||
           schedule_constraint(fault, "clientToken", token,
                               "Member must satisfy regular expression pattern: ^[a-zA-Z0-9-_]+$");
}

/* ---- ARNs ---- */

/* arn:aws[-...]:service:region:account:rest; false when it has no such form. */
static bool arn_split(struct slice text, struct slice parts[6])
{
    for (size_t i = 0; i < 5; i++) {
        const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;
        if (!colon) return false;
        parts[i] = (struct slice){text.data, (size_t)(colon - text.data)};
        text = slice_from(text, parts[i].len + 1);
    }
    parts[5] = text;
    return slice_equal(parts[0], SLICE("arn")) && slice_starts(parts[1], SLICE("aws"));
}

static bool is_account(struct slice text)
{
    unsigned long long number;
    return text.len == 12 && slice_to_u64(text, 999999999999, &number);
}

bool schedule_arn_check(struct slice text, const char *service, const char *resource, size_t max,
                        const char *member, const char *pattern, struct schedule_fault *fault)
{
    struct slice parts[6];
    char rule[256];
    if (!text.data) return true;
    if (!schedule_length_check(text, 1, max, member, fault)) return false;
    if (arn_split(text, parts) && slice_equal(parts[2], slice_of(service)) && is_account(parts[4]) &&
        slice_starts(parts[5], slice_of(resource)) && parts[5].len > strlen(resource) &&
        all_of(parts[5], "-_/+=,.@"))
        return true;
    snprintf(rule, sizeof rule, "Member must satisfy regular expression pattern: %s", pattern);
    return schedule_constraint(fault, member, text, rule);
}

struct slice schedule_function(struct slice target)
{
    static const struct slice kind = SLICE("function:");
    struct slice parts[6], name = target;
    if (arn_split(target, parts)) {
        if (!slice_equal(parts[2], SLICE("lambda")) || !slice_starts(parts[5], kind)) return SLICE_NONE;
        name = slice_from(parts[5], kind.len);
    }
    if (!name.len || name.len > FUNCTION_MAX || slice_starts(name, SLICE("arn:"))) return SLICE_NONE;
    return all_of(name, "-_:$") ? name : SLICE_NONE;
}

struct slice schedule_group_of_arn(struct slice arn)
{
    static const struct slice kind = SLICE("schedule-group/");
    struct slice parts[6];
    if (!arn_split(arn, parts) || !slice_equal(parts[2], SLICE("scheduler")) || !is_account(parts[4]) ||
        !slice_starts(parts[5], kind))
        return SLICE_NONE;
    struct slice name = slice_from(parts[5], kind.len);
    return name.len && name.len <= SCHEDULE_NAME_MAX && all_of(name, "-_.") ? name : SLICE_NONE;
}

/* ---- groups and tags ---- */

static bool wrong_type(struct schedule_fault *fault, const char *name)
{
    return schedule_fail(fault, "SerializationException", "'%s' is of the wrong type", name);
}

static bool tag_check(const struct schedule_tag *tag, struct schedule_fault *fault)
{
    static const char *const missing = "Member must not be null";
    if (!tag->key.data) return schedule_constraint(fault, "tags.member.key", SLICE_NONE, missing);
    if (!tag->value.data) return schedule_constraint(fault, "tags.member.value", SLICE_NONE, missing);
    return schedule_length_check(tag->key, 1, TAG_KEY_MAX, "tags.member.key", fault) &&
           schedule_length_check(tag->value, 1, TAG_VALUE_MAX, "tags.member.value", fault);
}

static bool tag_read(struct json_reader *reader, struct schedule_tag *out, struct schedule_fault *fault)
{
    struct slice name;
    *out = (struct schedule_tag){SLICE_NONE, SLICE_NONE};
    if (json_peek(reader) != JSON_OBJECT) return wrong_type(fault, "Tags");
    for (json_enter(reader); json_member(reader, &name);) {
        bool is_key = slice_equal(name, SLICE("Key"));
        if (!is_key && !slice_equal(name, SLICE("Value")))
            json_skip(reader);
        else if (json_peek(reader) != JSON_STRING || !json_string(reader, is_key ? &out->key : &out->value))
            return wrong_type(fault, "Tags");
    }
    return json_failed(reader) || tag_check(out, fault);
}

static bool tags_read(struct json_reader *reader, struct schedule_group_request *out,
                      struct schedule_fault *fault)
{
    out->tags = arena_array(reader->arena, struct schedule_tag, TAGS_MAX);
    out->tag_count = 0;
    out->has_tags = true;
    if (json_peek(reader) != JSON_ARRAY) return wrong_type(fault, "Tags");
    for (json_enter(reader); json_element(reader);) {
        if (out->tag_count == TAGS_MAX)
            return schedule_constraint(fault, "tags", SLICE("[...]"),
                                       "Member must have length less than or equal to 200");
        if (!tag_read(reader, &out->tags[out->tag_count++], fault)) return false;
    }
    return true;
}

static bool group_member_read(struct json_reader *reader, struct slice name,
                              struct schedule_group_request *out, struct schedule_fault *fault)
{
    bool is_tags = slice_equal(name, SLICE("Tags")), is_token = slice_equal(name, SLICE("ClientToken"));
    if (json_peek(reader) == JSON_NULL || (!is_tags && !is_token)) {
        json_skip(reader);
        return true;
    }
    if (is_tags) return tags_read(reader, out, fault);
    if (json_peek(reader) != JSON_STRING) return wrong_type(fault, "ClientToken");
    json_string(reader, &out->token);
    return true;
}

bool schedule_group_read(struct arena *arena, struct slice body, struct schedule_group_request *out,
                         struct schedule_fault *fault)
{
    struct json_reader reader;
    struct slice name;
    *out = (struct schedule_group_request){0};
    if (!body.len) return true;
    json_begin(&reader, body, arena);
    if (json_peek(&reader) != JSON_OBJECT)
        return schedule_fail(fault, "SerializationException", "The body is no JSON object");
    for (json_enter(&reader); json_member(&reader, &name);)
        if (!group_member_read(&reader, name, out, fault)) return false;
    if (!json_done(&reader))
        return schedule_fail(fault, "SerializationException", "The body is no JSON object");
    return schedule_token_check(out->token, fault);
}
