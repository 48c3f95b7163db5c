/* The constraints that EventBridge Scheduler's model puts on texts and numbers, and the sentences in which
 * the service refuses what breaks one. Pure. */
#include <stdarg.h>
#include <stdio.h>

#include "trigger/schedule.h"

#define FUNCTION_MAX 140 /* Lambda: a name with its qualifier */
#define VALUE_SHOWN  200 /* of a value in a sentence */

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
    const char *quote = value.data ? "'" : "";
    if (!value.data) value = SLICE("null");
    if (value.len > VALUE_SHOWN) value.len = VALUE_SHOWN;
    return schedule_fail(
        fault, "ValidationException",
        "1 validation error detected: Value %s%.*s%s at '%s' failed to satisfy constraint: %s", quote,
        SLICE_ARG(value), quote, member, rule);
}

/* ---- texts and numbers ---- */

static bool all_of(struct slice text, const char *more)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c && strchr(more, c))))
            return false;
    }
    return true;
}

static bool is_among(struct slice text, const char *choices)
{
    for (const char *at = choices; *at; at += strspn(at, ", ")) {
        size_t len = strcspn(at, ", ");
        if (slice_equal(text, (struct slice){at, len})) return true;
        at += len;
    }
    return false;
}

static bool arn_has_form(struct slice text, const struct schedule_rule *rule);

bool schedule_text_check(struct slice text, const struct schedule_rule *rule, const char *member,
                         struct schedule_fault *fault)
{
    char broken[256] = "";
    int64_t count = 0;
    if (!text.data)
        return !rule->is_required || schedule_constraint(fault, member, text, "Member must not be null");
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    if (rule->choices && !is_among(text, rule->choices))
        snprintf(broken, sizeof broken, "Member must satisfy enum value set: [%s]", rule->choices);
    else if (rule->max && (count < rule->min || count > rule->max))
        snprintf(broken, sizeof broken, "Member must have length %s than or equal to %lld",
                 count < rule->min ? "greater" : "less",
                 (long long)(count < rule->min ? rule->min : rule->max));
    else if ((rule->characters && !all_of(text, rule->characters)) ||
             (rule->service && !arn_has_form(text, rule)))
        snprintf(broken, sizeof broken, "Member must satisfy regular expression pattern: %s", rule->pattern);
    return !broken[0] || schedule_constraint(fault, member, text, broken);
}

bool schedule_number_check(int64_t value, const struct schedule_rule *rule, const char *member,
                           struct schedule_fault *fault)
{
    char broken[96], text[32];
    if (value == SCHEDULE_NONE || !rule->max || (value >= rule->min && value <= rule->max)) return true;
    snprintf(broken, sizeof broken, "Member must have value %s than or equal to %lld",
             value < rule->min ? "greater" : "less", (long long)(value < rule->min ? rule->min : rule->max));
    snprintf(text, sizeof text, "%lld", (long long)value);
    return schedule_constraint(fault, member, slice_of(text), broken);
}

bool schedule_name_check(struct slice name, const char *member, struct schedule_fault *fault)
{
    return schedule_text_check(name, &(struct schedule_rule){SCHEDULE_NAME_RULE}, member, fault);
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

static bool arn_has_form(struct slice text, const struct schedule_rule *rule)
{
    struct slice parts[6], resource = slice_of(rule->resource);
    return arn_split(text, parts) && slice_equal(parts[2], slice_of(rule->service)) && is_account(parts[4]) &&
           slice_starts(parts[5], resource) && parts[5].len > resource.len && all_of(parts[5], "-_/+=,.@");
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
    struct schedule_fault fault;
    if (!arn_split(arn, parts) || !slice_equal(parts[2], SLICE("scheduler")) || !is_account(parts[4]) ||
        !slice_starts(parts[5], kind))
        return SLICE_NONE;
    struct slice name = slice_from(parts[5], kind.len);
    return schedule_name_check(name, "name", &fault) ? name : SLICE_NONE;
}
