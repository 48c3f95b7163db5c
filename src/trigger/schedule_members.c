/* Schedules as bodies of requests, as items and as replies, all by the list of their members (schedule.h), so nothing
 * is recognised that is not checked, and nothing kept that is not shown.
 *
 * The table PREFIXschedules: hash `group`, range `name`. The groups themselves are items too, see schedule_group.c.
 * RoleArn is optional here, there being nobody to assume a role; MissedRuns and NextDueTime are ours. Pure: no clock,
 * no door. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/attribute.h"
#include "base/hash.h"
#include "trigger/schedule.h"

#define SECONDS_MAX 253402300800.0 /* the year 10000 */

enum kind { TEXT, NUMBER, TIME, OBJECT };

static const struct member {
    enum kind kind;
    const char *attribute, *path;
    unsigned where;
    size_t offset;
    struct schedule_rule rule;
} members[] = {
#define MEMBER(kind, field, attribute, path, where, ...)                                                     \
    {kind, attribute, path, where, offsetof(struct schedule, field), {__VA_ARGS__}},
    SCHEDULE_MEMBERS(MEMBER)};

#define MEMBERS (sizeof members / sizeof *members)

static bool is_text(const struct member *member)
{
    return member->kind == TEXT || member->kind == OBJECT;
}

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
    return is_text(member) ? text_of(schedule, member)->data != NULL
                           : *number_of(schedule, member) != SCHEDULE_NONE;
}

static void schedule_clear(struct schedule *out)
{
    *out = (struct schedule){0};
    for (size_t i = 0; i < MEMBERS; i++)
        if (!is_text(&members[i])) *number_of(out, &members[i]) = SCHEDULE_NONE;
}

/* ---- bodies ---- */

/* A number, or a moment as seconds since 1970, as the SDKs send them, or as a text. */
static bool number_read(struct json_reader *reader, bool is_time, int64_t *out)
{
    struct slice text;
    char digits[64];
    if (is_time && json_peek(reader) == JSON_STRING)
        return json_string(reader, &text) && moment_parse(text, out) && *out >= 0;
    if (json_peek(reader) != JSON_NUMBER || !json_number(reader, &text) || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.data, text.len);
    digits[text.len] = 0;
    double value = strtod(digits, NULL);
    if (!(value >= -1e9 && value < SECONDS_MAX) || (is_time ? value < 0 : value != floor(value)))
        return false;
    *out = (int64_t)llround(is_time ? value * 1000 : value);
    return true;
}

/* An object; members of no row are skipped, as the service does, but for those of other kinds of targets, whose name is
 * kept. False after a fault; a broken text is found by the caller. */
static bool object_read(struct json_reader *reader, struct slice object, struct schedule *out,
                        struct slice *foreign, struct schedule_fault *fault)
{
    static const struct slice parameters = SLICE("Parameters");
    struct slice name;
    for (json_enter(reader); json_member(reader, &name);) {
        struct slice path = object.len
                                ? arena_printf(reader->arena, "%.*s.%.*s", SLICE_ARG(object), SLICE_ARG(name))
                                : name;
        const struct member *member = NULL;
        for (size_t i = 0; i < MEMBERS && !member; i++)
            if ((members[i].where & ASKED) && slice_equal(path, slice_of(members[i].path)))
                member = &members[i];
        bool is_null = json_peek(reader) == JSON_NULL, fine = true;
        if (!member && !is_null && slice_equal(object, SLICE("Target")) && name.len > parameters.len &&
            slice_equal(slice_from(name, name.len - parameters.len), parameters))
            *foreign = name;
        if (!member || is_null) {
            json_skip(reader);
        } else if (member->kind == TEXT) {
            fine = json_peek(reader) == JSON_STRING && json_string(reader, text_of(out, member));
        } else if (member->kind != OBJECT) {
            fine = number_read(reader, member->kind == TIME, number_of(out, member));
        } else if ((fine = json_peek(reader) == JSON_OBJECT)) {
            *text_of(out, member) = name;
            if (!object_read(reader, path, out, foreign, fault)) return false;
        }
        if (!fine && !json_failed(reader))
            return schedule_fail(fault, "SerializationException", "'%.*s' is of the wrong type",
                                 SLICE_ARG(name));
    }
    return true;
}

/* "Target.RoleArn" is target.roleArn in the service's sentences. */
static const char *shown_path(struct arena *arena, const char *path)
{
    char *shown = arena_alloc(arena, strlen(path) + 1);
    memcpy(shown, path, strlen(path) + 1);
    for (char *at = shown; *at; at++)
        if ((at == shown || at[-1] == '.') && *at >= 'A' && *at <= 'Z') *at += 'a' - 'A';
    return shown;
}

static bool members_check(struct arena *arena, const struct schedule *schedule, struct schedule_fault *fault)
{
    static const struct schedule_rule required = {.is_required = true};
    for (size_t i = 0; i < MEMBERS; i++)
        if (members[i].rule.is_required && !schedule_text_check(*text_of(schedule, &members[i]), &required,
                                                                shown_path(arena, members[i].path), fault))
            return false;
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if (!(member->where & ASKED)) continue;
        const char *path = shown_path(arena, member->path);
        if (is_text(member)
                ? !schedule_text_check(*text_of(schedule, member), &member->rule, path, fault)
                : !schedule_number_check(*number_of(schedule, member), &member->rule, path, fault))
            return false;
    }
    return true;
}

static bool schedule_check(struct arena *arena, const struct schedule *schedule, struct slice foreign,
                           struct schedule_fault *fault)
{
    static const char *const invalid = "ValidationException";
    if (!members_check(arena, schedule, fault)) return false;
    if (!schedule_function(schedule->target).data)
        return schedule_fail(
            fault, invalid,
            "Provided Arn is not in correct format. '%.*s' is no function: schedules of this "
            "server invoke functions.",
            SLICE_ARG(schedule->target));
    if (foreign.data)
        return schedule_fail(fault, invalid, "%.*s does not fit a target that is a function.",
                             SLICE_ARG(foreign));
    if (slice_equal(schedule->mode, SLICE("FLEXIBLE")) && schedule->window_min == SCHEDULE_NONE)
        return schedule_fail(fault, invalid,
                             "MaximumWindowInMinutes must be given for a flexible time window.");
    if (schedule->start_ms != SCHEDULE_NONE && schedule->end_ms != SCHEDULE_NONE &&
        schedule->end_ms <= schedule->start_ms)
        return schedule_fail(fault, invalid, "The EndDate must be later than the StartDate.");
    if (schedule->input.data && !schedule_input_is_json(arena, schedule->input))
        return schedule_fail(
            fault, invalid,
            "Invalid RequestJson provided. The Input of a function must be well-formed JSON.");
    return true;
}

bool schedule_read(struct arena *arena, struct slice body, struct slice name, struct schedule *out,
                   struct schedule_fault *fault)
{
    struct json_reader reader;
    struct slice foreign = SLICE_NONE;
    schedule_clear(out);
    json_begin(&reader, body, arena);
    bool is_object = json_peek(&reader) == JSON_OBJECT;
    if (is_object && !object_read(&reader, SLICE(""), out, &foreign, fault)) return false;
    if (!is_object || !json_done(&reader))
        return schedule_fail(fault, "SerializationException", "The body is no JSON object");
    out->name = name;
    if (!schedule_name_check(name, "name", fault) || !schedule_check(arena, out, foreign, fault))
        return false;
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct schedule_rule *rule = &members[i].rule;
        if (is_set(out, &members[i])) continue;
        if (rule->text) *text_of(out, &members[i]) = slice_of(rule->text);
        if (rule->number) *number_of(out, &members[i]) = rule->number;
    }
    if (!slice_equal(out->mode, SLICE("FLEXIBLE"))) out->window_min = SCHEDULE_NONE;
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

/* ---- items ---- */

static void put_attributes(struct buf *out, const struct schedule *schedule, unsigned where)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if (!member->attribute || !is_set(schedule, member) || (where && !(member->where & where))) continue;
        if (is_text(member))
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

int64_t schedule_sum(const struct schedule *schedule)
{
    struct schedule asked = *schedule;
    struct buf text = {0};
    asked.token = SLICE_NONE;
    put_attributes(&text, &asked, ASKED);
    int64_t sum = (int64_t)(hash_bytes(buf_view(&text)) >> 1);
    buf_free(&text);
    return sum;
}

bool schedule_from_item(struct arena *arena, struct slice item, struct schedule *out)
{
    struct raw_look look;
    struct slice name, value, type, content;
    schedule_clear(out);
    raw_look_begin(&look, arena, item);
    while (raw_look_next(&look, &name, &value)) {
        size_t i = 0;
        while (i < MEMBERS && !(members[i].attribute && slice_equal(name, slice_of(members[i].attribute))))
            i++;
        if (i == MEMBERS || !attribute_open(arena, value, &type, &content)) continue;
        struct slice text = raw_string(arena, content);
        unsigned long long number;
        if (is_text(&members[i]) && slice_equal(type, SLICE("S")))
            *text_of(out, &members[i]) = text;
        else if (!is_text(&members[i]) && slice_equal(type, SLICE("N")) &&
                 slice_to_u64(text, INT64_MAX, &number))
            *number_of(out, &members[i]) = (int64_t)number;
    }
    return out->group.data && out->name.data;
}

/* ---- replies ---- */

struct slice schedule_arn(struct arena *arena, const struct trigger *trigger, struct slice group,
                          struct slice name)
{
    return arena_printf(arena, "arn:aws:scheduler:%.*s:%.*s:schedule/%.*s/%.*s", SLICE_ARG(trigger->region),
                        SLICE_ARG(trigger->account), SLICE_ARG(group), SLICE_ARG(name));
}

void schedule_put_time(struct buf *out, int64_t time_ms)
{
    buf_printf(out, "%lld.%03d", (long long)(time_ms / 1000), (int)(time_ms % 1000));
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
            schedule_put_time(out, *number_of(&shown, member));
        else
            json_put_int(out, *number_of(&shown, member));
    }
    objects_enter(out, &object, SLICE("-"));
    buf_byte(out, '}');
}
