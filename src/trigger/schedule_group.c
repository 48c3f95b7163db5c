/* EventBridge Scheduler's API of groups, and of the tags that groups have. Their items stand under the hash
 * "*" of the schedules' table: `name`, `state`, `created`, `changed`, `tags`, a map of texts, and `token`, the
 * ClientToken that made it. The group "default" is always there and cannot be deleted. */
#include "base/attribute.h"
#include "trigger/schedule.h"

#define DELETED_AT_ONCE 25 /* schedules of a group that goes */

struct group {
    struct slice name, state, tags; /* tags: JSON, a map of DynamoDB's values */
    int64_t created_ms, changed_ms;
};

/* ---- items ---- */

static struct group group_from_item(struct slice item)
{
    struct arena *arena = task_arena();
    return (struct group){.name = item_text(arena, item, "name"),
                          .state = item_text(arena, item, "state"),
                          .tags = item_content(arena, item, "tags"),
                          .created_ms = item_int(arena, item, "created", SCHEDULE_NONE),
                          .changed_ms = item_int(arena, item, "changed", SCHEDULE_NONE)};
}

static enum dynamo_fault group_load(struct schedules *schedules, struct slice name, struct group *out)
{
    struct slice item;
    enum dynamo_fault fault = schedule_get(schedules, SLICE(SCHEDULE_GROUPS), name, &item);
    if (fault == DYNAMO_FINE) *out = group_from_item(item);
    if (fault != DYNAMO_MISSING || !slice_equal(name, SLICE(SCHEDULE_DEFAULT))) return fault;
    *out = (struct group){
        .name = name, .state = SLICE("ACTIVE"), .created_ms = SCHEDULE_NONE, .changed_ms = SCHEDULE_NONE};
    return DYNAMO_FINE; /* the default group of a table that is not yet there */
}

/* The end of a request about a group; false after an error. */
static bool group_is_fine(struct rest_call *call, enum dynamo_fault fault, struct slice name)
{
    if (fault == DYNAMO_CONDITION) fault = DYNAMO_MISSING;
    return schedule_is_fine(call, fault, "Schedule group", name);
}

static bool name_read(struct rest_call *call, struct slice name, const char *member)
{
    struct schedule_fault fault;
    if (schedule_name_check(name, member, &fault)) return true;
    schedule_fault_reply(call, &fault);
    return false;
}

bool schedule_group_exists(struct schedules *schedules, struct rest_call *call, struct slice group)
{
    struct group found;
    return name_read(call, group, "groupName") &&
           group_is_fine(call, group_load(schedules, group, &found), group);
}

static struct slice group_arn(struct arena *arena, const struct trigger *trigger, struct slice group)
{
    return arena_printf(arena, "arn:aws:scheduler:%.*s:%.*s:schedule-group/%.*s", SLICE_ARG(trigger->region),
                        SLICE_ARG(trigger->account), SLICE_ARG(group));
}

static void put_group(struct buf *out, struct arena *arena, const struct trigger *trigger,
                      const struct group *group)
{
    compose(out, "%,{'Arn':%s,'Name':%s,'State':%s", group_arn(arena, trigger, group->name), group->name,
            group->state);
    if (group->created_ms != SCHEDULE_NONE) {
        buf_text(out, ",\"CreationDate\":");
        schedule_put_time(out, group->created_ms);
        buf_text(out, ",\"LastModificationDate\":");
        schedule_put_time(out, group->changed_ms);
    }
    buf_byte(out, '}');
}

/* ---- requests ---- */

bool schedule_group_read(struct arena *arena, struct slice text, struct schedule_group_body *out,
                         struct schedule_fault *fault)
{
    static const char *const names[] = {"ClientToken", "Tags"}, *const parts[] = {"Key", "Value"};
    static const struct schedule_rule token_rule = {SCHEDULE_TOKEN_RULE},
                                      rules[] = {{.is_required = true, .min = 1, .max = 128},
                                                 {.is_required = true, .min = 1, .max = 256}};
    static const char *const broken = "SerializationException";
    struct slice raws[2], tag[2], element;
    struct raw_walk walk;
    out->tag_count = 0;
    if (!text.len) text = SLICE("{}");
    if (!raw_members(arena, text, names, raws, 2))
        return schedule_fail(fault, broken, "The body is no JSON object");
    out->token = raw_string(arena, raws[0]);
    if (raws[0].data && !out->token.data)
        return schedule_fail(fault, broken, "'ClientToken' is of the wrong type");
    if (!schedule_text_check(out->token, &token_rule, "clientToken", fault)) return false;
    out->has_tags = raws[1].data != NULL;
    if (!out->has_tags) return true;
    bool fine = raw_walk_begin(&walk, arena, raws[1]) == JSON_ARRAY;
    while (fine && raw_walk_next(&walk, NULL, &element)) {
        if (out->tag_count == SCHEDULE_TAGS_MAX)
            return schedule_constraint(fault, "tags", SLICE("[...]"),
                                       "Member must have length less than or equal to 200");
        fine = raw_members(arena, element, parts, tag, 2);
        for (size_t i = 0; fine && i < 2; i++) {
            struct slice part = raw_string(arena, tag[i]);
            fine = part.data || !tag[i].data;
            if (fine &&
                !schedule_text_check(part, &rules[i], i ? "tags.member.value" : "tags.member.key", fault))
                return false;
            (i ? out->values : out->keys)[out->tag_count] = part;
        }
        out->tag_count++;
    }
    return fine || schedule_fail(fault, broken, "'Tags' is of the wrong type");
}

/* ---- creating and getting ---- */

struct task_reply schedule_group_put(struct schedules *schedules, struct slice name, int64_t now_ms,
                                     struct slice tags, struct slice token)
{
    return schedules_call(schedules, "PutItem",
                          "'Item':{'group':%S,'name':%S,'state':{'S':'ACTIVE'},'created':%N,'changed':%N,"
                          "'tags':{'M':{%A}}%A},'ConditionExpression':'attribute_not_exists(#name)',%#,%O",
                          SLICE(SCHEDULE_GROUPS), name, now_ms, now_ms, tags,
                          token.len ? compose_in(task_arena(), ",'token':%S", token) : SLICE(""));
}

void schedule_group_create(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule_group_body *body = arena_new(task_arena(), struct schedule_group_body);
    struct schedule_fault wrong = {0};
    struct slice name = call->parameters[0];
    struct buf tags = {0};
    int64_t now_ms = task_host_now_ms(schedules->host);
    if (!name_read(call, name, "name")) return;
    if (!schedule_group_read(task_arena(), call->body, body, &wrong)) {
        schedule_fault_reply(call, &wrong);
        return;
    }
    for (size_t i = 0; i < body->tag_count; i++)
        compose(&tags, "%A%s:%S", i ? SLICE(",") : SLICE(""), body->keys[i], body->values[i]);
    struct slice all = arena_take(task_arena(), &tags);
    struct task_reply reply = {.fault = DYNAMO_MISSING};
    for (int i = 0; reply.fault == DYNAMO_MISSING && i < 2; i++)
        reply = schedule_table_make(schedules) ? schedule_group_put(schedules, name, now_ms, all, body->token)
                                               : (struct task_reply){.fault = DYNAMO_REFUSED};
    struct slice found = raw_member(task_arena(), reply.body, "Item");
    if (reply.fault == DYNAMO_CONDITION && /* by a request before this one, or by the door's first attempt */
        slice_equal(item_text(task_arena(), found, "token"), body->token) &&
        (body->token.len || item_int(task_arena(), found, "created", SCHEDULE_NONE) == now_ms))
        reply.fault = DYNAMO_FINE;
    if (reply.fault == DYNAMO_CONDITION) {
        schedule_error(call, "ConflictException", "Schedule group %.*s already exists.", SLICE_ARG(name));
    } else if (group_is_fine(call, reply.fault, name)) {
        compose(call->reply, "{'ScheduleGroupArn':%s}", group_arn(call->arena, trigger, name));
        schedule_done(call);
    }
}

void schedule_group_get(struct trigger *trigger, struct rest_call *call)
{
    struct group group;
    struct slice name = call->parameters[0];
    if (!name_read(call, name, "name") ||
        !group_is_fine(call, group_load(trigger->schedules, name, &group), name))
        return;
    put_group(call->reply, call->arena, trigger, &group);
    schedule_done(call);
}

/* ---- deleting ---- */

/* Marks the group, if it is the one that is meant. *created_ms: SCHEDULE_NONE: whichever there is; becomes its own. */
static enum dynamo_fault group_mark(struct schedules *schedules, struct slice name, int64_t *created_ms)
{
    bool is_first = *created_ms == SCHEDULE_NONE;
    struct task_reply reply = schedules_call(
        schedules, "UpdateItem",
        SCHEDULE_KEY ",'UpdateExpression':'SET #state = :deleting','ConditionExpression':'%r',%#,"
                     "'ReturnValues':'ALL_NEW','ExpressionAttributeValues':{':deleting':{'S':'DELETING'}%A}",
        SLICE(SCHEDULE_GROUPS), name,
        is_first ? SLICE("attribute_exists(#name)") : SLICE("#state = :deleting AND #created = :created"),
        is_first ? SLICE("") : compose_in(task_arena(), ",':created':%N", *created_ms));
    if (reply.fault == DYNAMO_FINE)
        *created_ms = item_int(task_arena(), raw_member(task_arena(), reply.body, "Attributes"), "created",
                               0);
    return reply.fault;
}

/* Deletes what is in the group, some at a time, until nothing is. Who was slow, while others have deleted the group and
 * made it anew, must not touch what is in that one: what was read, and after that the mark was still there, is of the
 * group that was marked, and is deleted as it was read. CONDITION: somebody else was quicker. */
static enum dynamo_fault schedules_delete(struct schedules *schedules, struct slice group, int64_t created_ms)
{
    struct arena *arena = task_arena();
    struct arena_mark mark = arena_mark(arena);
    for (;; arena_rewind(arena, mark)) {
        struct task_reply reply = schedules_call(schedules, "Query", SCHEDULE_OF_GROUP ",'Limit':%d", group,
                                                 (int64_t)DELETED_AT_ONCE);
        if (reply.fault != DYNAMO_FINE) return reply.fault;
        struct slice items = raw_member(arena, arena_copy(arena, reply.body), "Items"), item;
        if (!raw_count(arena, items)) return DYNAMO_FINE;
        enum dynamo_fault fault = group_mark(schedules, group, &created_ms);
        struct raw_look look;
        raw_look_begin(&look, arena, items);
        while (fault == DYNAMO_FINE && raw_look_next(&look, NULL, &item)) {
            struct slice name = item_text(arena, item, "name");
            fault = schedule_delete(schedules, group, name, item_int(arena, item, "revision", SCHEDULE_NONE));
            if (fault == DYNAMO_CONDITION)
                fault = DYNAMO_FINE; /* it is gone, or has changed: the next look tells */
            schedules_forget(schedules, group, name);
        }
        if (fault != DYNAMO_FINE) return fault;
    }
}

void schedule_group_delete(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct slice name = call->parameters[0], token = rest_query(call, "clientToken");
    int64_t created_ms = SCHEDULE_NONE;
    if (!name_read(call, name, "name")) return;
    if (slice_equal(name, SLICE(SCHEDULE_DEFAULT))) {
        schedule_error(call, "ValidationException", "The default schedule group cannot be deleted.");
        return;
    }
    enum dynamo_fault fault = group_mark(schedules, name, &created_ms);
    bool is_gone = fault == DYNAMO_CONDITION || fault == DYNAMO_MISSING;
    if (is_gone && schedules_has_deleted(schedules, token, name)) fault = DYNAMO_FINE;
    if (!group_is_fine(call, fault, name)) return;
    if (!is_gone) fault = schedules_delete(schedules, name, created_ms);
    if (!is_gone && fault == DYNAMO_FINE)
        fault = schedules_call(schedules, "DeleteItem",
                               SCHEDULE_KEY
                               ",'ConditionExpression':'#state = :deleting AND #created = :created',%#,"
                               "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'},':created':%N}",
                               SLICE(SCHEDULE_GROUPS), name, created_ms)
                    .fault;
    if (!group_is_fine(call, fault == DYNAMO_CONDITION ? DYNAMO_FINE : fault, name)) return;
    schedules_note_deletion(schedules, token, name);
    buf_text(call->reply, "{}");
    schedule_done(call);
}

/* ---- listing ---- */

void schedule_group_list(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule_page page;
    struct slice item;
    struct group group;
    if (!schedule_page_read(call, &page)) return;
    page.state = SLICE_NONE;
    buf_text(call->reply, "{\"ScheduleGroups\":[");
    struct schedule_walk walk = schedule_walk_from(schedules, SLICE(SCHEDULE_GROUPS), page.after_group,
                                                   page.after_name);
    while (!page.has_more && schedule_walk_next(&walk, &item)) {
        group = group_from_item(item);
        if (schedule_page_takes(&page, call, SLICE(SCHEDULE_GROUPS), group.name, group.state))
            put_group(call->reply, call->arena, trigger, &group);
    }
    if (walk.fault == DYNAMO_MISSING && group_load(schedules, SLICE(SCHEDULE_DEFAULT), &group) == DYNAMO_FINE)
        put_group(call->reply, call->arena, trigger, &group); /* there is no table yet, but always this one */
    schedule_page_end(&page, call, walk.fault);
}

/* ---- tags ---- */

/* The group that the path's ARN names; false after an error. */
static bool arn_read(struct rest_call *call, struct slice *group)
{
    struct schedule_fault fault;
    *group = schedule_group_of_arn(call->parameters[0]);
    if (group->data) return true;
    schedule_constraint(&fault, "resourceArn", call->parameters[0],
                        "Member must satisfy regular expression pattern: ^arn:aws(-[a-z]+)?:scheduler:"
                        "[a-z0-9\\-]+:\\d{12}:schedule-group\\/[0-9a-zA-Z-_.]+$");
    schedule_fault_reply(call, &fault);
    return false;
}

/* Changes the tags and ends the request: keys become #k0, #k1, ... and, where they are set, values :v0, ... */
static void tags_change(struct schedules *schedules, struct rest_call *call, struct slice group,
                        const struct schedule_group_body *body, bool sets)
{
    struct buf update = {0}, names = {0}, values = {0};
    for (size_t i = 0; i < body->tag_count; i++) {
        buf_printf(&update, sets ? "%stags.#k%zu = :v%zu" : "%stags.#k%zu", i ? ", " : "", i, i);
        buf_printf(&names, ",\"#k%zu\":", i);
        json_put_string(&names, body->keys[i]);
        if (!sets) continue;
        buf_printf(&values, "%s\":v%zu\":", i ? "," : "", i);
        compose(&values, "%S", body->values[i]);
    }
    struct slice changes = arena_take(task_arena(), &update), keys = arena_take(task_arena(), &names),
                 all = arena_take(task_arena(), &values);
    enum dynamo_fault fault = DYNAMO_FINE;
    if (body->tag_count)
        fault = schedules_call(
                    schedules, "UpdateItem",
                    SCHEDULE_KEY ",'UpdateExpression':'%A %A','ExpressionAttributeNames':{'#name':'name'%A},"
                                 "'ConditionExpression':'attribute_exists(#name)'%A",
                    SLICE(SCHEDULE_GROUPS), group, sets ? SLICE("SET") : SLICE("REMOVE"), changes, keys,
                    sets ? compose_in(task_arena(), ",'ExpressionAttributeValues':{%A}", all) : SLICE(""))
                    .fault;
    if (!group_is_fine(call, fault, group)) return;
    buf_text(call->reply, "{}");
    schedule_done(call);
}

void schedule_tag_add(struct trigger *trigger, struct rest_call *call)
{
    struct schedule_group_body *body = arena_new(task_arena(), struct schedule_group_body);
    struct schedule_fault fault;
    struct slice group;
    if (!arn_read(call, &group)) return;
    if (!schedule_group_read(task_arena(), call->body, body, &fault) ||
        (!body->has_tags && !schedule_constraint(&fault, "tags", SLICE_NONE, "Member must not be null")))
        schedule_fault_reply(call, &fault);
    else if (schedule_is_fine(call, schedule_table_make(trigger->schedules) ? DYNAMO_FINE : DYNAMO_REFUSED,
                              "", group))
        tags_change(trigger->schedules, call, group, body, true);
}

void schedule_tag_remove(struct trigger *trigger, struct rest_call *call)
{
    struct schedule_group_body *body = arena_new(task_arena(), struct schedule_group_body);
    struct schedule_fault fault;
    struct slice group, key;
    if (!arn_read(call, &group)) return;
    while (body->tag_count < SCHEDULE_TAGS_MAX &&
           (key = rest_query_nth(call, "TagKeys", (unsigned)body->tag_count)).data)
        body->keys[body->tag_count++] = key;
    if (body->tag_count) {
        tags_change(trigger->schedules, call, group, body, false);
        return;
    }
    schedule_constraint(&fault, "tagKeys", SLICE_NONE, "Member must not be null");
    schedule_fault_reply(call, &fault);
}

void schedule_tag_list(struct trigger *trigger, struct rest_call *call)
{
    struct slice name, key, value;
    struct group group;
    struct raw_look look;
    if (!arn_read(call, &name) || !group_is_fine(call, group_load(trigger->schedules, name, &group), name))
        return;
    buf_text(call->reply, "{\"Tags\":[");
    raw_look_begin(&look, task_arena(), group.tags);
    while (raw_look_next(&look, &key, &value))
        compose(call->reply, "%,{'Key':%s,'Value':%s}", key, attribute_text(task_arena(), value));
    buf_text(call->reply, "]}");
    schedule_done(call);
}
