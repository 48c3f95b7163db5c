/* AWS::Scheduler::Schedule and ScheduleGroup, and AWS::Events::Rule with a schedule: schedules of the server. */
#include <string.h>

#include "calendar/calendar.h"
#include "deploy/internal.h"

static const struct form_member members[] = {
    {"ScheduleExpression", 's', NULL},
    {"ScheduleExpressionTimezone", 's', "\"UTC\""},
    {"Description", 's', "\"\""},
    {"State", 's', "\"ENABLED\""},
    {"FlexibleTimeWindow", 'j', "{\"Mode\":\"OFF\"}"},
    {"ActionAfterCompletion", 's', "\"NONE\""},
    {"KmsKeyArn", 's', NULL},
};
#define MEMBERS (sizeof members / sizeof *members)

/* "GROUP/NAME", or the name alone in the group `default`. */
static const char *schedule_path(struct deploy *deploy, const struct resource *resource)
{
    return path_with(deploy, "/schedules/%s", arn_last(slice_of(resource->change.name), '/'), SLICE(""));
}

static struct slice group_of(const struct resource *resource)
{
    struct slice rest = slice_of(resource->change.name), first = slice_cut(&rest, '/');
    return rest.len ? first : SLICE("default");
}

static bool is_function(struct slice arn)
{
    return slice_contains(arn, SLICE(":lambda:")) || slice_starts(arn, SLICE("${")) ||
           !slice_starts(arn, SLICE("arn:"));
}

/* A moment of a template as the API has it: seconds since 1970. */
static void put_moment(struct buf *out, const struct node *given, const char *name)
{
    const struct node *value = node_member(given, name);
    int64_t ms;
    if (!value) return;
    put_name(out, name);
    if (value->kind == JSON_STRING && moment_parse(value->text, &ms))
        json_put_int(out, ms / 1000);
    else
        node_put(out, value);
}

/* Of a target, what the server knows: nobody assumes its role. */
static void put_target(struct buf *out, const struct node *target)
{
    buf_byte(out, '{');
    for (const struct node *one = target ? target->first : NULL; one; one = one->next) {
        if (!word_is_in("Arn Input RetryPolicy DeadLetterConfig", one->name)) continue;
        put_comma(out);
        json_put_string(out, one->name);
        buf_byte(out, ':');
        node_put(out, one);
    }
    buf_byte(out, '}');
}

static bool want_schedule(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *given = resource->properties, *target = node_member(given, "Target");
    struct slice group = node_text(given, "GroupName"), name = arn_last(slice_of(resource->change.name), '/');
    if (!is_function(node_text(target, "Arn"))) {
        resource->change.reason = "its target is no function, and others are not called here";
        return true;
    }
    if (group.len && !slice_equal(group, SLICE("default")))
        resource->change.name =
            arena_printf(&deploy->arena, "%.*s/%.*s", SLICE_ARG(group), SLICE_ARG(name)).data;
    form_put(out, given, members, MEMBERS);
    put_moment(out, given, "StartDate");
    put_moment(out, given, "EndDate");
    put_name(out, "Target");
    put_target(out, target);
    return true;
}

static bool have_schedule(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const char *query = path_with(deploy, "groupName=%s", group_of(resource), SLICE(""));
    if (!rest_get(deploy, resource, "scheduler", schedule_path(deploy, resource), query,
                  &resource->described))
        return false;
    if (!resource->described) return true;
    form_put(out, resource->described, members, MEMBERS);
    put_moment(out, resource->described, "StartDate");
    put_moment(out, resource->described, "EndDate");
    put_name(out, "Target");
    put_target(out, node_member(resource->described, "Target"));
    return true;
}

static bool send_schedule(struct deploy *deploy, struct resource *resource, const char *method)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    put_string_member(&body, "GroupName", group_of(resource));
    for (const struct node *one = resource->want->first; one; one = one->next)
        put_name(&body, deploy_text(deploy, one->name)), node_put(&body, one);
    buf_byte(&body, '}');
    return rest_send(deploy, resource, "scheduler", method, schedule_path(deploy, resource), &body, NULL);
}

static bool create_schedule(struct deploy *deploy, struct resource *resource)
{
    return send_schedule(deploy, resource, "POST");
}

static bool update_schedule(struct deploy *deploy, struct resource *resource)
{
    return send_schedule(deploy, resource, "PUT");
}

static bool remove_schedule(struct deploy *deploy, struct resource *resource)
{
    struct deploy_reply reply;
    struct deploy_request request = {
        .service = "scheduler",
        .method = "DELETE",
        .path = schedule_path(deploy, resource),
        .query = path_with(deploy, "groupName=%s", group_of(resource), SLICE(""))};
    if (!deploy_ask(deploy, &request, &reply)) return false;
    return !reply.error || reply.status == 404 ||
           deploy_fail(deploy, "%s: %s", resource->change.name, reply.message);
}

static struct slice schedule_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    struct slice own = arn_last(slice_of(resource->change.name), '/');
    if (!name.len) return own;
    if (!slice_equal(name, SLICE("Arn"))) return SLICE_NONE;
    return arena_printf(&deploy->arena, "arn:aws:scheduler:%.*s:%.*s:schedule/%.*s/%.*s",
                        SLICE_ARG(deploy->region), SLICE_ARG(deploy->account), SLICE_ARG(group_of(resource)),
                        SLICE_ARG(own));
}

const struct kind kind_schedule = {
    .type = "AWS::Scheduler::Schedule",
    .name_member = "Name",
    .name_bytes = 64,
    .known = "Name GroupName ScheduleExpression ScheduleExpressionTimezone Description "
             "State FlexibleTimeWindow ActionAfterCompletion KmsKeyArn StartDate "
             "EndDate Target",
    .loose = "Target FlexibleTimeWindow",
    .want = want_schedule,
    .have = have_schedule,
    .create = create_schedule,
    .update = update_schedule,
    .remove = remove_schedule,
    .attribute = schedule_attribute};

/* ---- groups ---- */

static const char *group_path(struct deploy *deploy, const struct resource *resource)
{
    return path_with(deploy, "/schedule-groups/%s", slice_of(resource->change.name), SLICE(""));
}

static bool want_group(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    (void)deploy;
    put_string_member(out, "Name", slice_of(resource->change.name));
    return true;
}

static bool have_group(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    if (!rest_get(deploy, resource, "scheduler", group_path(deploy, resource), NULL, &resource->described))
        return false;
    if (resource->described) put_string_member(out, "Name", node_text(resource->described, "Name"));
    return true;
}

static bool create_group(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    buf_text(&body, "{}");
    return rest_send(deploy, resource, "scheduler", "POST", group_path(deploy, resource), &body, NULL);
}

static bool remove_group(struct deploy *deploy, struct resource *resource)
{
    return rest_send(deploy, resource, "scheduler", "DELETE", group_path(deploy, resource), NULL, NULL);
}

static struct slice group_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    if (!name.len) return slice_of(resource->change.name);
    if (!slice_equal(name, SLICE("Arn"))) return SLICE_NONE;
    return arena_printf(&deploy->arena, "arn:aws:scheduler:%.*s:%.*s:schedule-group/%s",
                        SLICE_ARG(deploy->region), SLICE_ARG(deploy->account), resource->change.name);
}

const struct kind kind_schedule_group = {.type = "AWS::Scheduler::ScheduleGroup",
                                         .name_member = "Name",
                                         .name_bytes = 64,
                                         .known = "Name Tags",
                                         .want = want_group,
                                         .have = have_group,
                                         .create = create_group,
                                         .update = create_group,
                                         .remove = remove_group,
                                         .attribute = group_attribute};

/* ---- rules ---- */

/* Each target is a schedule: RULE, or RULE-ID where there are several. The form has them by name. */

static const char *target_name(struct deploy *deploy, const struct resource *resource,
                               const struct node *target, size_t count)
{
    struct slice id = node_text(target, "Id");
    if (count < 2) return resource->change.name;
    return arena_printf(&deploy->arena, "%.31s-%.*s", resource->change.name, id.len < 32 ? (int)id.len : 32,
                        id.data)
        .data;
}

/* What EventBridge sends, with the scheduler's words for what is known only then. */
static void put_event(struct deploy *deploy, struct buf *out, const struct resource *resource)
{
    struct buf event = {0};
    buf_printf(
        &event,
        "{\"version\":\"0\",\"id\":\"<aws.scheduler.execution-id>\",\"detail-type\":\"Scheduled Event\","
        "\"source\":\"aws.events\",\"account\":\"%.*s\",\"time\":\"<aws.scheduler.scheduled-time>\","
        "\"region\":\"%.*s\",\"resources\":[\"arn:aws:events:%.*s:%.*s:rule/%s\"],\"detail\":{}}",
        SLICE_ARG(deploy->account), SLICE_ARG(deploy->region), SLICE_ARG(deploy->region),
        SLICE_ARG(deploy->account), resource->change.name);
    json_put_string(out, buf_view(&event));
    buf_free(&event);
}

static void put_rule_schedule(struct deploy *deploy, struct buf *out, const struct resource *resource,
                              const struct node *target)
{
    struct slice input = node_text(target, "Input");
    const struct node *rule = resource->properties;
    buf_byte(out, '{');
    put_string_member(out, "ScheduleExpression", node_text(rule, "ScheduleExpression"));
    put_string_member(out, "State",
                      node_is(rule, "State", "DISABLED") ? SLICE("DISABLED") : SLICE("ENABLED"));
    put_string_member(out, "Description", node_text(rule, "Description"));
    buf_text(out, ",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},\"Target\":{");
    put_string_member(out, "Arn", node_text(target, "Arn"));
    put_name(out, "Input");
    if (input.len)
        json_put_string(out, input);
    else
        put_event(deploy, out, resource);
    buf_text(out, "}}");
}

static bool want_rule(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *targets = node_member(resource->properties, "Targets");
    size_t count = node_children(targets);
    struct buf names = {0};
    if (!node_text(resource->properties, "ScheduleExpression").len) {
        resource->change.reason = "it waits for events of a bus, and there is none here";
        return true;
    }
    put_name(out, "Schedules");
    buf_byte(out, '{');
    for (const struct node *one = targets ? targets->first : NULL; one; one = one->next) {
        if (!is_function(node_text(one, "Arn"))) {
            deploy_note(deploy, "%.*s: its target %.*s is no function, and is left out",
                        SLICE_ARG(resource->change.id), SLICE_ARG(node_text(one, "Arn")));
            continue;
        }
        const char *name = target_name(deploy, resource, one, count);
        buf_printf(&names, "%s%s", names.len ? " " : "", name);
        put_name(out, name);
        put_rule_schedule(deploy, out, resource, one);
    }
    buf_byte(out, '}');
    /* what an earlier deploy has made stays named until it is gone */
    const char *before = resource->data;
    struct slice rest = slice_of(before ? before : "");
    resource->data = arena_take(&deploy->arena, (buf_byte(&names, '\0'), &names)).data;
    while (rest.len) {
        struct slice old = slice_cut(&rest, ' ');
        if (!word_is_in(resource->data, old))
            resource->data = arena_printf(&deploy->arena, "%s %.*s", resource->data, SLICE_ARG(old)).data;
    }
    return true;
}

static bool have_rule(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice rest = slice_of(resource->data ? resource->data : "");
    struct buf found = {0};
    while (rest.len) {
        const struct node *schedule;
        struct slice name = slice_cut(&rest, ' ');
        if (!rest_get(deploy, resource, "scheduler", path_with(deploy, "/schedules/%s", name, SLICE("")),
                      NULL, &schedule))
            return buf_free(&found), false;
        if (!schedule) continue;
        put_comma(&found);
        json_put_string(&found, name);
        buf_text(&found, ":{");
        put_string_member(&found, "ScheduleExpression", node_text(schedule, "ScheduleExpression"));
        put_string_member(&found, "State", node_text(schedule, "State"));
        put_string_member(&found, "Description", node_text(schedule, "Description"));
        buf_text(&found, ",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},\"Target\":{");
        put_string_member(&found, "Arn", node_text(node_member(schedule, "Target"), "Arn"));
        put_string_member(&found, "Input", node_text(node_member(schedule, "Target"), "Input"));
        buf_text(&found, "}}");
    }
    if (found.len) {
        put_name(out, "Schedules");
        buf_byte(out, '{');
        buf_slice(out, buf_view(&found));
        buf_byte(out, '}');
    }
    buf_free(&found);
    return true;
}

static bool send_rule(struct deploy *deploy, struct resource *resource)
{
    const struct node *want = node_member(resource->want, "Schedules");
    const struct node *have = node_member(resource->have, "Schedules");
    for (const struct node *one = want->first; one; one = one->next) {
        const struct node *there = node_member(have, deploy_text(deploy, one->name));
        struct buf body = {0};
        if (form_equal(one, there, false)) continue;
        node_put(&body, one);
        if (!rest_send(deploy, resource, "scheduler", there ? "PUT" : "POST",
                       path_with(deploy, "/schedules/%s", one->name, SLICE("")), &body, NULL))
            return false;
    }
    for (const struct node *one = have ? have->first : NULL; one; one = one->next)
        if (!node_member(want, deploy_text(deploy, one->name)) &&
            !rest_send(deploy, resource, "scheduler", "DELETE",
                       path_with(deploy, "/schedules/%s", one->name, SLICE("")), NULL, NULL))
            return false;
    return true;
}

static bool remove_rule(struct deploy *deploy, struct resource *resource)
{
    struct slice rest = slice_of(resource->data ? resource->data : "");
    while (rest.len)
        if (!rest_send(deploy, resource, "scheduler", "DELETE",
                       path_with(deploy, "/schedules/%s", slice_cut(&rest, ' '), SLICE("")), NULL, NULL))
            return false;
    return true;
}

static struct slice rule_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    if (!name.len) return slice_of(resource->change.name);
    if (!slice_equal(name, SLICE("Arn"))) return SLICE_NONE;
    return arena_printf(&deploy->arena, "arn:aws:events:%.*s:%.*s:rule/%s", SLICE_ARG(deploy->region),
                        SLICE_ARG(deploy->account), resource->change.name);
}

const struct kind kind_rule = {.type = "AWS::Events::Rule",
                               .name_member = "Name",
                               .name_bytes = 64,
                               .known = "Name ScheduleExpression State Description Targets RoleArn",
                               .want = want_rule,
                               .have = have_rule,
                               .create = send_rule,
                               .update = send_rule,
                               .remove = remove_rule,
                               .attribute = rule_attribute};
