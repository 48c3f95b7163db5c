/* Schedules as requests, as items and as replies, the last two by the list of their members (schedule.h), so nothing is
 * kept that is not shown.
 *
 * The table PREFIXschedules: hash `group`, range `name`. The groups themselves are items too, see schedule_group.c.
 * RoleArn is optional here, there being nobody to assume a role; MissedRuns and NextDueTime are ours. Pure: no clock,
 * no door. */
#include <stddef.h>

#include "base/attribute.h"
#include "base/hash.h"
#include "trigger/schedule.h"

#define FUNCTION_MAX 140 /* Lambda: a name with its qualifier */
#define RETRIES_MAX  185
#define AGE_MAX_S    86400

enum kind { TEXT, NUMBER, TIME };

static const struct member {
    enum kind kind;
    const char *attribute, *path;
    unsigned where;
    size_t offset;
} members[] = {
#define MEMBER(kind, field, attribute, path, where)                                                          \
    {kind, attribute, path, where, offsetof(struct schedule, field)},
    SCHEDULE_MEMBERS(MEMBER)};

#define MEMBERS (sizeof members / sizeof *members)

static struct slice *text_of(const struct schedule *schedule, const struct member *member)
{
    return (struct slice *)(void *)((char *)(uintptr_t)schedule + member->offset);
}

static int64_t *number_of(const struct schedule *schedule, const struct member *member)
{
    return (int64_t *)(void *)((char *)(uintptr_t)schedule + member->offset);
}

static bool is_set(const struct schedule *schedule, const struct member *member)
{
    return member->kind == TEXT ? text_of(schedule, member)->data != NULL
                                : *number_of(schedule, member) != SCHEDULE_NONE;
}

static void schedule_clear(struct schedule *out)
{
    *out = (struct schedule){0};
    for (size_t i = 0; i < MEMBERS; i++)
        if (members[i].kind != TEXT) *number_of(out, &members[i]) = SCHEDULE_NONE;
}

/* ---- shapes of requests, as the service's model has them ---- */

static bool is_name(struct slice text)
{
    return text_consists_of(text, "-_.");
}

static bool is_token(struct slice text)
{
    return text_consists_of(text, "-_");
}

/* With a resource that begins so, and goes on with letters, digits and these others. */
static bool is_arn_of(struct slice text, struct slice service, struct slice resource, const char *others)
{
    struct arn arn;
    return arn_parse(text, &arn) && slice_equal(arn.service, service) && text_is_account(arn.account) &&
           slice_starts(arn.resource, resource) &&
           text_consists_of(slice_from(arn.resource, resource.len), others);
}

static bool is_key(struct slice text)
{
    return is_arn_of(text, SLICE("kms"), SLICE(""), "-_/+=,.@");
}

static bool is_role(struct slice text)
{
    return is_arn_of(text, SLICE("iam"), SLICE("role/"), "-_/+=,.@");
}

static bool is_queue(struct slice text)
{
    return is_arn_of(text, SLICE("sqs"), SLICE(""), "-_/+=,.@");
}

static bool is_group_arn(struct slice text)
{
    return is_arn_of(text, SLICE("scheduler"), SLICE("schedule-group/"), "-_.");
}

struct slice schedule_function(struct slice target)
{
    static const struct slice kind = SLICE("function:");
    struct slice name = target;
    struct arn arn;
    if (arn_parse(target, &arn)) {
        if (!slice_equal(arn.service, SLICE("lambda")) || !slice_starts(arn.resource, kind))
            return SLICE_NONE;
        name = slice_from(arn.resource, kind.len);
    }
    if (name.len > FUNCTION_MAX || slice_starts(name, SLICE("arn:"))) return SLICE_NONE;
    return text_consists_of(name, "-_:$") ? name : SLICE_NONE;
}

#define ARN_START "^arn:aws(-[a-z]+)?:"
#define ARN_NAME  ":[a-z0-9\\-]+:\\d{12}:"

const struct shape schedule_shape_name = {TEXT_BETWEEN(1, 64), .matches = is_name,
                                          .pattern = "^[0-9a-zA-Z-_.]+$"};
const struct shape schedule_shape_token = {TEXT_BETWEEN(1, 64), .matches = is_token,
                                           .pattern = "^[a-zA-Z0-9-_]+$"};
const struct shape schedule_shape_group_arn = {TEXT_BETWEEN(1, 1011), .matches = is_group_arn,
                                               .pattern = ARN_START "scheduler" ARN_NAME
                                                                    "schedule-group\\/[0-9a-zA-Z-_.]+$"};
static const char *const states[] = {"ENABLED", "DISABLED", NULL};
const struct shape schedule_shape_state = {.kind = SHAPE_STRING, .choices = states};

CHOICE_SHAPE(shape_after, "NONE", "DELETE");
CHOICE_SHAPE(shape_missed, "ALL", "LATEST", "SKIP");
CHOICE_SHAPE(shape_mode, "OFF", "FLEXIBLE");
static const struct shape shape_time = {.kind = SHAPE_TIME}, shape_foreign = {.kind = SHAPE_STRUCT};
static const struct shape shape_expression = {TEXT_BETWEEN(1, 256)}, shape_description = {TEXT_UP_TO(512)};
static const struct shape shape_zone = {TEXT_BETWEEN(1, LIMIT_ZONE_NAME)},
                          shape_target_arn = {TEXT_BETWEEN(1, 1600)};
static const struct shape shape_input = {TEXT_BETWEEN(1, LIMIT_SCHEDULE_INPUT_BYTES)};
static const struct shape shape_key = {TEXT_BETWEEN(1, 2048), .matches = is_key,
                                       .pattern = ARN_START "kms" ARN_NAME "(key|alias)\\/[0-9a-zA-Z-_]*$"};
static const struct shape shape_role = {TEXT_BETWEEN(1, 1600), .matches = is_role,
                                        .pattern = ARN_START "iam::\\d{12}:role\\/[\\w+=,.@\\/-]+$"};
static const struct shape shape_queue = {TEXT_BETWEEN(1, 1600), .matches = is_queue,
                                         .pattern = ARN_START "sqs" ARN_NAME "[a-zA-Z0-9\\-_]+$"};
static const struct shape shape_minutes = INTEGER_BETWEEN(1, SCHEDULE_WINDOW_MAX_MIN);
static const struct shape shape_age = INTEGER_BETWEEN(60, AGE_MAX_S);
static const struct shape shape_retries = INTEGER_BETWEEN(0, RETRIES_MAX);
STRUCT_SHAPE(shape_window, REQUIRED("Mode", shape_mode), FIELD("MaximumWindowInMinutes", shape_minutes));
STRUCT_SHAPE(shape_dead_letter, FIELD("Arn", shape_queue));
STRUCT_SHAPE(shape_retry, FIELD("MaximumEventAgeInSeconds", shape_age),
             FIELD("MaximumRetryAttempts", shape_retries));
/* The first five fit other kinds of targets than functions. */
#define TARGET_FOREIGN 5
STRUCT_SHAPE(shape_target, FIELD("EcsParameters", shape_foreign),
             FIELD("EventBridgeParameters", shape_foreign), FIELD("KinesisParameters", shape_foreign),
             FIELD("SageMakerPipelineParameters", shape_foreign), FIELD("SqsParameters", shape_foreign),
             REQUIRED("Arn", shape_target_arn), FIELD("RoleArn", shape_role), FIELD("Input", shape_input),
             FIELD("DeadLetterConfig", shape_dead_letter), FIELD("RetryPolicy", shape_retry));
static const struct shape_field schedule_fields[] = {
    PATH_FIELD("Name", schedule_shape_name, 0),
    REQUIRED("FlexibleTimeWindow", shape_window),
    FIELD("GroupName", schedule_shape_name),
    FIELD("State", schedule_shape_state),
    REQUIRED("ScheduleExpression", shape_expression),
    FIELD("ScheduleExpressionTimezone", shape_zone),
    FIELD("Description", shape_description),
    FIELD("ActionAfterCompletion", shape_after),
    FIELD("MissedRuns", shape_missed),
    FIELD("KmsKeyArn", shape_key),
    FIELD("StartDate", shape_time),
    FIELD("EndDate", shape_time),
    FIELD("ClientToken", schedule_shape_token),
    REQUIRED("Target", shape_target),
};
static const struct shape shape_schedule = STRUCT_OF(schedule_fields);

/* ---- requests ---- */

/* What stands at "Target.RetryPolicy.MaximumRetryAttempts"; NULL: it was not given. */
static const struct shape_node *node_at(const struct shape_node *node, struct slice path)
{
    while (path.len && node->present) {
        const struct shape *shape = node->shape;
        struct slice name = slice_cut(&path, '.');
        uint32_t i = 0;
        while (i < shape->field_count && !slice_equal(slice_of(shape->fields[i].name), name)) i++;
        node = &node->nodes[i];
    }
    return node->present ? node : NULL;
}

static const char *foreign_to_functions(const struct shape_node *target)
{
    for (uint32_t i = 0; i < TARGET_FOREIGN; i++)
        if (target->nodes[i].present) return shape_target.fields[i].name;
    return NULL;
}

static bool schedule_check(struct rest_call *call, const struct schedule *schedule, const char *foreign)
{
    static const char *const invalid = "ValidationException";
    struct slice why;
    if (!schedule_function(schedule->target).data)
        return schedule_error(
            call, invalid,
            "Provided Arn is not in correct format. '%.*s' is no function: schedules of this "
            "server invoke functions.",
            SLICE_ARG(schedule->target));
    if (foreign)
        return schedule_error(call, invalid, "%s does not fit a target that is a function.", foreign);
    if (slice_equal(schedule->mode, SLICE("FLEXIBLE")) && schedule->window_min == SCHEDULE_NONE)
        return schedule_error(call, invalid,
                              "MaximumWindowInMinutes must be given for a flexible time window.");
    if (schedule->start_ms != SCHEDULE_NONE && schedule->end_ms != SCHEDULE_NONE &&
        schedule->end_ms <= schedule->start_ms)
        return schedule_error(call, invalid, "The EndDate must be later than the StartDate.");
    if (schedule->input.data && !schedule_input_is_json(call->arena, schedule->input))
        return schedule_error(
            call, invalid, "Invalid RequestJson provided. The Input of a function must be well-formed JSON.");
    return schedule_timetable(call->arena, schedule, &why) ||
           schedule_error(call, invalid, "%.*s", SLICE_ARG(why));
}

static void put_attributes(struct buf *out, const struct schedule *schedule, unsigned where);

/* A number that two equal requests have in common. */
static int64_t schedule_sum(const struct schedule *schedule)
{
    struct schedule asked = *schedule;
    struct buf text = {0};
    asked.token = asked.name = SLICE_NONE;
    put_attributes(&text, &asked, ASKED);
    int64_t sum = (int64_t)(hash_bytes(buf_view(&text)) >> 1);
    buf_free(&text);
    return sum;
}

bool schedule_read(struct rest_call *call, struct schedule *out)
{
    struct shape_node nodes[FIELD_COUNT(schedule_fields)];
    struct shape_node request = {.shape = &shape_schedule, .present = true, .nodes = nodes};
    if (!schedule_decode(call, schedule_fields, FIELD_COUNT(schedule_fields), nodes)) return false;
    schedule_clear(out);
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct shape_node *node = members[i].where & ASKED
                                            ? node_at(&request, slice_of(members[i].path))
                                            : NULL;
        if (node && members[i].kind == TEXT) *text_of(out, &members[i]) = node->text;
        if (node && members[i].kind != TEXT) *number_of(out, &members[i]) = node->integer;
    }
    if (!out->group.data) out->group = SLICE(SCHEDULE_DEFAULT);
    if (!out->state.data) out->state = SLICE("ENABLED");
    if (!out->zone.data) out->zone = SLICE("UTC");
    if (!out->after.data) out->after = SLICE("NONE");
    if (!out->missed.data) out->missed = SLICE("LATEST");
    if (out->age_max_s == SCHEDULE_NONE) out->age_max_s = AGE_MAX_S;
    if (out->retries_max == SCHEDULE_NONE) out->retries_max = RETRIES_MAX;
    if (!schedule_check(call, out, foreign_to_functions(node_at(&request, SLICE("Target"))))) return false;
    if (!slice_equal(out->mode, SLICE("FLEXIBLE"))) out->window_min = SCHEDULE_NONE;
    out->token_sum = schedule_sum(out);
    return true;
}

struct timetable *schedule_timetable(struct arena *arena, const struct schedule *schedule, struct slice *why)
{
    char reason[512];
    struct zone *zone = zone_load(arena, schedule->zone, reason, sizeof reason);
    if (!zone) {
        *why = arena_printf(arena, "Invalid Schedule Expression Timezone %.*s. %s.",
                            SLICE_ARG(schedule->zone), reason);
        return NULL;
    }
    int64_t anchor_ms = schedule->anchor_ms == SCHEDULE_NONE ? 0 : schedule->anchor_ms;
    struct timetable *timetable = timetable_parse(arena, schedule->expression, zone, anchor_ms, reason,
                                                  sizeof reason);
    if (!timetable) *why = arena_printf(arena, "%s", reason);
    return timetable;
}

/* ---- items ---- */

static void put_attributes(struct buf *out, const struct schedule *schedule, unsigned where)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if (!member->attribute || !is_set(schedule, member) || (where && !(member->where & where))) continue;
        if (member->kind == TEXT)
            compose(out, "%,%s:%S", slice_of(member->attribute), *text_of(schedule, member));
        else
            compose(out, "%,%s:%N", slice_of(member->attribute), *number_of(schedule, member));
    }
}

struct slice schedule_item(struct arena *arena, const struct schedule *schedule)
{
    struct buf item = {0};
    buf_byte(&item, '{');
    put_attributes(&item, schedule, 0);
    buf_byte(&item, '}');
    return arena_take(arena, &item);
}

/* Whoever writes into the table by hand may write anything. */
bool schedule_from_item(struct arena *arena, struct slice item, struct schedule *out)
{
    struct slice name, value;
    schedule_clear(out);
    raw_each_member (arena, item, &name, &value)
        for (size_t i = 0; i < MEMBERS; i++) {
            if (!members[i].attribute || !slice_equal(name, slice_of(members[i].attribute))) continue;
            if (members[i].kind == TEXT)
                *text_of(out, &members[i]) = raw_string(arena, raw_member(arena, value, "S"));
            else if (raw_member(arena, value, "N").data) /* no condition on a number holds for a text */
                *number_of(out, &members[i]) = attribute_int(arena, value, SCHEDULE_NONE);
        }
    if (out->window_min < 1 || out->window_min > SCHEDULE_WINDOW_MAX_MIN) out->window_min = SCHEDULE_NONE;
    return out->group.data && out->name.data;
}

/* ---- replies ---- */

struct slice schedule_arn(struct arena *arena, const struct trigger *trigger, struct slice group,
                          struct slice name)
{
    return arena_printf(arena, "arn:aws:scheduler:%.*s:%.*s:schedule/%.*s/%.*s", SLICE_ARG(trigger->region),
                        SLICE_ARG(trigger->account), SLICE_ARG(group), SLICE_ARG(name));
}

/* Closes the objects that `path` is not in, opens those that it is in. Answers its last name. */
static struct slice objects_enter(struct buf *out, struct slice *object, struct slice path)
{
    while (object->len && !(slice_starts(path, *object) && path.data[object->len] == '.')) {
        while (object->len && object->data[object->len - 1] != '.') object->len--;
        if (object->len) object->len--;
        buf_byte(out, '}');
    }
    struct slice rest = object->len ? slice_from(path, object->len + 1) : path;
    for (const char *dot; (dot = memchr(rest.data, '.', rest.len));) {
        struct slice name = {rest.data, (size_t)(dot - rest.data)};
        compose(out, "%,%s:{", name);
        rest = slice_from(rest, name.len + 1);
        *object = (struct slice){path.data, (size_t)(dot - path.data)};
    }
    return rest;
}

void schedule_put_reply(struct buf *out, struct arena *arena, const struct trigger *trigger,
                        const struct schedule *schedule, enum schedule_where where)
{
    struct schedule shown = *schedule;
    struct slice object = SLICE("");
    shown.arn = schedule_arn(arena, trigger, schedule->group, schedule->name);
    shown.mode = schedule->window_min == SCHEDULE_NONE ? SLICE("OFF") : SLICE("FLEXIBLE");
    if (!slice_starts(schedule->target, SLICE("arn:"))) /* it was given by its name */
        shown.target = arena_printf(arena, "arn:aws:lambda:%.*s:%.*s:function:%.*s",
                                    SLICE_ARG(trigger->region), SLICE_ARG(trigger->account),
                                    SLICE_ARG(schedule->target));
    buf_byte(out, '{');
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if (!(member->where & where) || !is_set(&shown, member)) continue;
        struct slice name = objects_enter(out, &object, slice_of(member->path));
        compose(out, "%,%s:", name);
        if (member->kind == TEXT)
            json_put_string(out, *text_of(&shown, member));
        else if (member->kind == TIME)
            seconds_put(out, *number_of(&shown, member));
        else
            json_put_int(out, *number_of(&shown, member));
    }
    objects_enter(out, &object, SLICE("-"));
    buf_byte(out, '}');
}
