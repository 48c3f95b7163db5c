/* Requests of EventBridge Scheduler: bodies become schedules, or faults in the service's words.
 *
 * A body is read by a table of its members (ranges and patterns are those of the service's model), so nothing
 * is recognised that is not checked. RoleArn is optional here, there being nobody to assume a role;
 * MissedRuns is ours. Pure: no clock, no door. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "trigger/schedule.h"

#define DESCRIPTION_MAX 512
#define EXPRESSION_MAX  256
#define ARN_MAX         1600
#define KMS_ARN_MAX     2048
#define WINDOW_MAX      1440
#define RETRIES_MAX     185
#define AGE_MIN_S       60
#define AGE_MAX_S       86400
#define SECONDS_MAX     253402300800.0 /* the year 10000 */

/* ---- the members of a body ---- */

enum kind { TEXT, NUMBER, TIME, OBJECT, FOREIGN };

struct member {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct body: a slice, an int64_t, or for an object a bool */
    const struct member *members;
    size_t count;
};

/* What came, before it was judged. */
struct body {
    struct slice token, description, group, kms_key, expression, zone, state, after, missed;
    int64_t start_ms, end_ms;
    bool has_window, has_target, has_dead_letter, has_retry;
    struct slice mode, target, role, input, dead_letter;
    int64_t window_min, retries, age_s;
    struct slice foreign; /* the name of a parameter for some other kind of target */
};

// clang-format off
#define AT(field)                offsetof(struct body, field)
#define LIST(list)               list, sizeof list / sizeof *list
#define PLAIN(name, kind, field) {name, kind, AT(field), NULL, 0}

static const struct member window_members[] = {
    PLAIN("Mode", TEXT, mode),
    PLAIN("MaximumWindowInMinutes", NUMBER, window_min),
};
static const struct member retry_members[] = {
    PLAIN("MaximumEventAgeInSeconds", NUMBER, age_s),
    PLAIN("MaximumRetryAttempts", NUMBER, retries),
};
static const struct member dead_letter_members[] = {
    PLAIN("Arn", TEXT, dead_letter),
};
static const struct member target_members[] = {
    PLAIN("Arn", TEXT, target),
    PLAIN("RoleArn", TEXT, role),
    PLAIN("Input", TEXT, input),
    {"DeadLetterConfig", OBJECT, AT(has_dead_letter), LIST(dead_letter_members)},
    {"RetryPolicy", OBJECT, AT(has_retry), LIST(retry_members)},
    PLAIN("EcsParameters", FOREIGN, foreign),
    PLAIN("EventBridgeParameters", FOREIGN, foreign),
    PLAIN("KinesisParameters", FOREIGN, foreign),
    PLAIN("SageMakerPipelineParameters", FOREIGN, foreign),
    PLAIN("SqsParameters", FOREIGN, foreign),
};
static const struct member body_members[] = {
    PLAIN("ClientToken", TEXT, token),
    PLAIN("Description", TEXT, description),
    PLAIN("GroupName", TEXT, group),
    PLAIN("KmsKeyArn", TEXT, kms_key),
    PLAIN("ScheduleExpression", TEXT, expression),
    PLAIN("ScheduleExpressionTimezone", TEXT, zone),
    PLAIN("State", TEXT, state),
    PLAIN("ActionAfterCompletion", TEXT, after),
    PLAIN("MissedRuns", TEXT, missed),
    PLAIN("StartDate", TIME, start_ms),
    PLAIN("EndDate", TIME, end_ms),
    {"FlexibleTimeWindow", OBJECT, AT(has_window), LIST(window_members)},
    {"Target", OBJECT, AT(has_target), LIST(target_members)},
};
// clang-format on

static bool wrong_type(struct schedule_fault *fault, const char *name)
{
    return schedule_fail(fault, "SerializationException", "'%s' is of the wrong type", name);
}

static bool number_read(struct json_reader *reader, double scale, int64_t *out)
{
    struct slice text;
    char digits[64];
    if (json_peek(reader) != JSON_NUMBER || !json_number(reader, &text) || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.data, text.len);
    digits[text.len] = 0;
    double value = strtod(digits, NULL);
    if (!(value >= -1e9 && value < SECONDS_MAX) || (scale == 1 && value != floor(value))) return false;
    *out = (int64_t)llround(value * scale);
    return true;
}

/* Seconds since 1970, as the SDKs send them, or a text. */
static bool time_read(struct json_reader *reader, int64_t *out_ms)
{
    struct slice text;
    if (json_peek(reader) == JSON_STRING)
        return json_string(reader, &text) && moment_parse(text, out_ms) && *out_ms >= 0;
    return number_read(reader, 1000, out_ms) && *out_ms >= 0;
}

static bool text_read(struct json_reader *reader, struct slice *out)
{
    return json_peek(reader) == JSON_STRING && json_string(reader, out);
}

static bool members_read(struct json_reader *reader, const struct member *members, size_t count,
                         struct body *out, struct schedule_fault *fault);

static bool member_read(struct json_reader *reader, const struct member *member, struct body *out,
                        struct schedule_fault *fault)
{
    void *field = (char *)out + member->offset;
    bool fine = true;
    if (json_peek(reader) == JSON_NULL) return json_skip(reader);
    switch (member->kind) {
    case TEXT: fine = text_read(reader, field); break;
    case NUMBER: fine = number_read(reader, 1, field); break;
    case TIME: fine = time_read(reader, field); break;
    case FOREIGN:
        *(struct slice *)field = slice_of(member->name);
        json_skip(reader);
        break;
    case OBJECT:
        if (json_peek(reader) != JSON_OBJECT) return wrong_type(fault, member->name);
        *(bool *)field = true;
        return members_read(reader, member->members, member->count, out, fault);
    }
    return fine || json_failed(reader) || wrong_type(fault, member->name);
}

/* An object; members of no row are skipped, as the service does. False after a fault; a broken text is found
 * by the caller. */
static bool members_read(struct json_reader *reader, const struct member *members, size_t count,
                         struct body *out, struct schedule_fault *fault)
{
    struct slice name;
    for (json_enter(reader); json_member(reader, &name);) {
        const struct member *found = NULL;
        for (size_t i = 0; i < count && !found; i++)
            if (slice_equal(name, slice_of(members[i].name))) found = &members[i];
        if (!found)
            json_skip(reader);
        else if (!member_read(reader, found, out, fault))
            return false;
    }
    return true;
}

static bool body_read(struct arena *arena, struct slice text, struct body *out, struct schedule_fault *fault)
{
    static const char *const broken = "The body is no JSON object";
    struct json_reader reader;
    *out = (struct body){.start_ms = SCHEDULE_NONE,
                         .end_ms = SCHEDULE_NONE,
                         .window_min = SCHEDULE_UNSET,
                         .retries = SCHEDULE_UNSET,
                         .age_s = SCHEDULE_UNSET};
    fault->type = NULL;
    json_begin(&reader, text, arena);
    if (json_peek(&reader) != JSON_OBJECT)
        return schedule_fail(fault, "SerializationException", "%s", broken);
    if (!members_read(&reader, LIST(body_members), out, fault) && fault->type) return false;
    return json_done(&reader) || schedule_fail(fault, "SerializationException", "%s", broken);
}

/* ---- judging ---- */

static bool required(struct schedule_fault *fault, const char *member)
{
    return schedule_constraint(fault, member, SLICE_NONE, "Member must not be null");
}

static bool target_check(const struct body *body, struct schedule_fault *fault)
{
    if (!body->target.data) return required(fault, "target.arn");
    if (!schedule_length_check(body->target, 1, ARN_MAX, "target.arn", fault)) return false;
    if (!schedule_arn_check(body->role, "iam", "role/", ARN_MAX, "target.roleArn",
                            "^arn:aws(-[a-z]+)?:iam::\\d{12}:role\\/[\\w+=,.@\\/-]+$", fault) ||
        !schedule_arn_check(body->dead_letter, "sqs", "", ARN_MAX, "target.deadLetterConfig.arn",
                            "^arn:aws(-[a-z]+)?:sqs:[a-z0-9\\-]+:\\d{12}:[a-zA-Z0-9\\-_]+$", fault))
        return false;
    if (!schedule_function(body->target).data)
        return schedule_fail(
            fault, "ValidationException",
            "Provided Arn is not in correct format. '%.*s' is no function: schedules of this "
            "server invoke functions.",
            SLICE_ARG(body->target));
    if (body->foreign.data)
        return schedule_fail(fault, "ValidationException", "%.*s does not fit a target that is a function.",
                             SLICE_ARG(body->foreign));
    return true;
}

static bool texts_check(const struct body *body, struct schedule_fault *fault)
{
    return schedule_token_check(body->token, fault) && schedule_name_check(body->group, "groupName", fault) &&
           schedule_length_check(body->description, 0, DESCRIPTION_MAX, "description", fault) &&
           schedule_length_check(body->expression, 1, EXPRESSION_MAX, "scheduleExpression", fault) &&
           schedule_length_check(body->zone, 1, LIMIT_ZONE_NAME, "scheduleExpressionTimezone", fault) &&
           schedule_choice_check(body->state, "ENABLED, DISABLED", "state", fault) &&
           schedule_choice_check(body->after, "NONE, DELETE", "actionAfterCompletion", fault) &&
           schedule_choice_check(body->missed, "ALL, LATEST, SKIP", "missedRuns", fault) &&
           schedule_choice_check(body->mode, "OFF, FLEXIBLE", "flexibleTimeWindow.mode", fault) &&
           schedule_length_check(body->input, 1, LIMIT_SCHEDULE_INPUT_BYTES, "target.input", fault) &&
           schedule_arn_check(body->kms_key, "kms", "", KMS_ARN_MAX, "kmsKeyArn",
                              "^arn:aws(-[a-z]+)?:kms:[a-z0-9\\-]+:\\d{12}:(key|alias)\\/[0-9a-zA-Z-_]*$",
                              fault);
}

static bool numbers_check(const struct body *body, struct schedule_fault *fault)
{
    static const char *const window = "flexibleTimeWindow.maximumWindowInMinutes";
    static const char *const retries = "target.retryPolicy.maximumRetryAttempts";
    static const char *const age = "target.retryPolicy.maximumEventAgeInSeconds";
    if (!schedule_range_check(body->window_min, 1, WINDOW_MAX, window, fault) ||
        !schedule_range_check(body->retries, 0, RETRIES_MAX, retries, fault) ||
        !schedule_range_check(body->age_s, AGE_MIN_S, AGE_MAX_S, age, fault))
        return false;
    if (slice_equal(body->mode, SLICE("FLEXIBLE")) && body->window_min == SCHEDULE_UNSET)
        return schedule_fail(fault, "ValidationException",
                             "MaximumWindowInMinutes must be given for a flexible time window.");
    if (body->start_ms != SCHEDULE_NONE && body->end_ms != SCHEDULE_NONE && body->end_ms <= body->start_ms)
        return schedule_fail(fault, "ValidationException", "The EndDate must be later than the StartDate.");
    return true;
}

static bool body_check(struct arena *arena, const struct body *body, struct schedule_fault *fault)
{
    if (!body->has_window) return required(fault, "flexibleTimeWindow");
    if (!body->expression.data) return required(fault, "scheduleExpression");
    if (!body->has_target) return required(fault, "target");
    if (!body->mode.data) return required(fault, "flexibleTimeWindow.mode");
    if (!texts_check(body, fault) || !target_check(body, fault) || !numbers_check(body, fault)) return false;
    if (body->input.data && !schedule_input_is_json(arena, body->input))
        return schedule_fail(
            fault, "ValidationException",
            "Invalid RequestJson provided. The Input of a function must be well-formed JSON.");
    return true;
}

/* ---- the schedule ---- */

static struct slice otherwise(struct slice text, const char *default_text)
{
    return text.data ? text : slice_of(default_text);
}

bool schedule_read(struct arena *arena, struct slice body_text, struct slice name, struct schedule *out,
                   struct schedule_fault *fault)
{
    struct body body;
    if (!body_read(arena, body_text, &body, fault) || !schedule_name_check(name, "name", fault) ||
        !body_check(arena, &body, fault))
        return false;
    *out = (struct schedule){
        .group = otherwise(body.group, SCHEDULE_DEFAULT),
        .name = name,
        .description = body.description,
        .expression = body.expression,
        .zone = otherwise(body.zone, "UTC"),
        .state = otherwise(body.state, "ENABLED"),
        .missed = otherwise(body.missed, "LATEST"),
        .after = otherwise(body.after, "NONE"),
        .start_ms = body.start_ms,
        .end_ms = body.end_ms,
        .window_min = slice_equal(body.mode, SLICE("FLEXIBLE")) ? body.window_min : SCHEDULE_NONE,
        .target = body.target,
        .role = body.role,
        .input = body.input,
        .dead_letter = body.dead_letter,
        .kms_key = body.kms_key,
        .retries_max = body.retries == SCHEDULE_UNSET ? RETRIES_MAX : body.retries,
        .age_max_s = body.age_s == SCHEDULE_UNSET ? AGE_MAX_S : body.age_s,
        .created_ms = SCHEDULE_NONE,
        .changed_ms = SCHEDULE_NONE,
        .anchor_ms = SCHEDULE_NONE,
        .next_ms = SCHEDULE_NONE,
        .revision = SCHEDULE_NONE,
        .token = body.token,
    };
    out->token_sum = schedule_sum(out);
    return schedule_timetable(arena, out, fault) != NULL;
}

struct timetable *schedule_timetable(struct arena *arena, const struct schedule *schedule,
                                     struct schedule_fault *fault)
{
    char reason[512];
    struct zone *zone = zone_load(arena, schedule->zone, reason, sizeof reason);
    if (!zone) {
        schedule_fail(fault, "ValidationException", "Invalid Schedule Expression Timezone %.*s. %s.",
                      SLICE_ARG(schedule->zone), reason);
        return NULL;
    }
    int64_t anchor_ms = schedule->anchor_ms == SCHEDULE_NONE ? 0 : schedule->anchor_ms;
    struct timetable *timetable = timetable_parse(arena, schedule->expression, zone, anchor_ms, reason,
                                                  sizeof reason);
    if (!timetable) schedule_fail(fault, "ValidationException", "%s", reason);
    return timetable;
}
