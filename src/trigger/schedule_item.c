/* Schedules as items and as replies.
 *
 * The table PREFIXschedules: hash `group`, range `name`. A schedule's item has the attributes of the list
 * below; times are milliseconds since 1970, `next` is the due time to come (A1). The groups themselves are
 * items too, with `group` = "*" and their name as `name`: `created`, `changed`, `state`, and `tags`, a map of
 * texts. */
#include <stddef.h>

#include "base/hash.h"
#include "trigger/schedule.h"

struct column {
    const char *name;
    bool is_text;
    size_t offset;
};

// clang-format off
#define TEXT(name, field)   {name, true, offsetof(struct schedule, field)}
#define NUMBER(name, field) {name, false, offsetof(struct schedule, field)}

/* The first ones are what a request asks for; the rest is ours. */
#define REQUEST_ATTRIBUTES 18
static const struct column attributes[] = {
    TEXT("group", group), TEXT("name", name), TEXT("description", description),
    TEXT("expression", expression), TEXT("zone", zone), TEXT("state", state),
    TEXT("missed", missed), TEXT("after", after),
    NUMBER("start", start_ms), NUMBER("end", end_ms), NUMBER("window", window_min),
    TEXT("target", target), TEXT("role", role), TEXT("input", input),
    TEXT("dead_letter", dead_letter), TEXT("kms_key", kms_key),
    NUMBER("retries", retries_max), NUMBER("age", age_max_s),

    NUMBER("created", created_ms), NUMBER("changed", changed_ms), NUMBER("anchor", anchor_ms),
    NUMBER("next", next_ms), NUMBER("revision", revision),
    TEXT("token", token), NUMBER("token_sum", token_sum),
};
// clang-format on

#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

static struct slice text_of(const struct schedule *schedule, const struct column *attribute)
{
    struct slice text;
    memcpy(&text, (const char *)schedule + attribute->offset, sizeof text);
    return text;
}

static int64_t number_of(const struct schedule *schedule, const struct column *attribute)
{
    int64_t number;
    memcpy(&number, (const char *)schedule + attribute->offset, sizeof number);
    return number;
}

/* ---- items ---- */

static void put_attributes(struct buf *out, const struct schedule *schedule, size_t count)
{
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        const struct column *attribute = &attributes[i];
        bool is_text = attribute->is_text;
        bool is_set = is_text ? text_of(schedule, attribute).data != NULL
                              : number_of(schedule, attribute) != SCHEDULE_NONE;
        if (!is_set) continue;
        buf_printf(out, "%s\"%s\":{\"%s\":", is_first ? "" : ",", attribute->name, is_text ? "S" : "N");
        is_first = false;
        if (is_text)
            json_put_string(out, text_of(schedule, attribute));
        else
            buf_printf(out, "\"%lld\"", (long long)number_of(schedule, attribute));
        buf_byte(out, '}');
    }
}

void schedule_put_item(struct buf *out, const struct schedule *schedule)
{
    buf_byte(out, '{');
    put_attributes(out, schedule, ATTRIBUTES);
    buf_byte(out, '}');
}

int64_t schedule_sum(const struct schedule *schedule)
{
    struct buf text = {0};
    put_attributes(&text, schedule, REQUEST_ATTRIBUTES);
    int64_t sum = (int64_t)(hash_bytes(buf_view(&text)) >> 1);
    buf_free(&text);
    return sum;
}

static void attribute_keep(struct schedule *out, struct slice name, struct slice type, struct slice text)
{
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        unsigned long long value;
        char *field = (char *)out + attributes[i].offset;
        if (!slice_equal(name, slice_of(attributes[i].name))) continue;
        if (attributes[i].is_text && slice_equal(type, SLICE("S"))) memcpy(field, &text, sizeof text);
        if (!attributes[i].is_text && slice_equal(type, SLICE("N")) && slice_to_u64(text, INT64_MAX, &value))
            memcpy(field, &(int64_t){(int64_t)value}, sizeof(int64_t));
    }
}

static void schedule_clear(struct schedule *out)
{
    *out = (struct schedule){0};
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (!attributes[i].is_text)
            memcpy((char *)out + attributes[i].offset, &(int64_t){SCHEDULE_NONE}, sizeof(int64_t));
}

bool schedule_from_item(struct json_reader *reader, struct schedule *out)
{
    struct slice name, type, text;
    schedule_clear(out);
    if (json_peek(reader) != JSON_OBJECT) return false;
    for (json_enter(reader); json_member(reader, &name);) {
        if (json_peek(reader) != JSON_OBJECT) return false;
        for (json_enter(reader); json_member(reader, &type);) {
            if (json_peek(reader) != JSON_STRING)
                json_skip(reader);
            else if (json_string(reader, &text))
                attribute_keep(out, name, type, text);
        }
    }
    return !json_failed(reader) && out->group.data && out->name.data;
}

/* ---- replies ---- */

struct slice schedule_arn(struct arena *arena, const struct trigger *trigger, struct slice group,
                          struct slice name)
{
    return arena_printf(arena, "arn:aws:scheduler:%.*s:%.*s:schedule/%.*s/%.*s", SLICE_ARG(trigger->region),
                        SLICE_ARG(trigger->account), SLICE_ARG(group), SLICE_ARG(name));
}

struct slice schedule_group_arn(struct arena *arena, const struct trigger *trigger, struct slice group)
{
    return arena_printf(arena, "arn:aws:scheduler:%.*s:%.*s:schedule-group/%.*s", SLICE_ARG(trigger->region),
                        SLICE_ARG(trigger->account), SLICE_ARG(group));
}

void schedule_put_time(struct buf *out, const char *name, int64_t time_ms)
{
    if (time_ms == SCHEDULE_NONE) return;
    buf_printf(out, ",\"%s\":%lld.%03d", name, (long long)(time_ms / 1000), (int)(time_ms % 1000));
}

static void put_text(struct buf *out, const char *name, struct slice text)
{
    if (!text.data) return;
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text);
}

/* A function that was given by its name is shown with its ARN. */
static void put_target_arn(struct buf *out, struct arena *arena, const struct trigger *trigger,
                           const struct schedule *schedule)
{
    struct slice arn = schedule->target;
    if (!slice_starts(arn, SLICE("arn:")))
        arn = arena_printf(arena, "arn:aws:lambda:%.*s:%.*s:function:%.*s", SLICE_ARG(trigger->region),
                           SLICE_ARG(trigger->account), SLICE_ARG(arn));
    buf_text(out, ",\"Target\":{\"Arn\":");
    json_put_string(out, arn);
}

static void put_target(struct buf *out, struct arena *arena, const struct trigger *trigger,
                       const struct schedule *schedule)
{
    put_target_arn(out, arena, trigger, schedule);
    put_text(out, "RoleArn", schedule->role);
    put_text(out, "Input", schedule->input);
    if (schedule->dead_letter.data) {
        buf_text(out, ",\"DeadLetterConfig\":{\"Arn\":");
        json_put_string(out, schedule->dead_letter);
        buf_byte(out, '}');
    }
    buf_printf(out, ",\"RetryPolicy\":{\"MaximumEventAgeInSeconds\":%lld,\"MaximumRetryAttempts\":%lld}}",
               (long long)schedule->age_max_s, (long long)schedule->retries_max);
}

/* What both replies have before the target. NextDueTime is ours. */
static void put_common(struct buf *out, struct arena *arena, const struct trigger *trigger,
                       const struct schedule *schedule)
{
    buf_text(out, "{\"Arn\":");
    json_put_string(out, schedule_arn(arena, trigger, schedule->group, schedule->name));
    put_text(out, "GroupName", schedule->group);
    put_text(out, "Name", schedule->name);
    put_text(out, "State", schedule->state);
    put_text(out, "ScheduleExpression", schedule->expression);
    put_text(out, "ScheduleExpressionTimezone", schedule->zone);
    schedule_put_time(out, "CreationDate", schedule->created_ms);
    schedule_put_time(out, "LastModificationDate", schedule->changed_ms);
    schedule_put_time(out, "NextDueTime", schedule->next_ms);
}

void schedule_put_reply(struct buf *out, struct arena *arena, const struct trigger *trigger,
                        const struct schedule *schedule)
{
    put_common(out, arena, trigger, schedule);
    put_text(out, "Description", schedule->description);
    put_text(out, "ActionAfterCompletion", schedule->after);
    put_text(out, "MissedRuns", schedule->missed);
    put_text(out, "KmsKeyArn", schedule->kms_key);
    schedule_put_time(out, "StartDate", schedule->start_ms);
    schedule_put_time(out, "EndDate", schedule->end_ms);
    if (schedule->window_min == SCHEDULE_NONE)
        buf_text(out, ",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"}");
    else
        buf_printf(out, ",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\",\"MaximumWindowInMinutes\":%lld}",
                   (long long)schedule->window_min);
    put_target(out, arena, trigger, schedule);
    buf_byte(out, '}');
}

void schedule_put_summary(struct buf *out, struct arena *arena, const struct trigger *trigger,
                          const struct schedule *schedule)
{
    put_common(out, arena, trigger, schedule);
    put_target_arn(out, arena, trigger, schedule);
    buf_text(out, "}}");
}
