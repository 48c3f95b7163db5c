/* EventBridge Scheduler's API of groups, and of the tags that groups have. Their items stand under the hash
 * "*" of the schedules' table: `name`, `state`, `created`, `changed`, `tags`, a map of texts, and `token`, the
 * ClientToken that made it. The group "default" is always there and cannot be deleted. */
#include "base/attribute.h"
#include "trigger/schedule.h"

#define DELETED_AT_ONCE 25  /* schedules of a group that goes */
#define TAGS_MAX        200 /* of one request */

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

bool schedule_group_exists(struct schedules *schedules, struct rest_call *call, struct slice group)
{
    struct group found;
    return group_is_fine(call, group_load(schedules, group, &found), group);
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
        seconds_put(out, group->created_ms);
        buf_text(out, ",\"LastModificationDate\":");
        seconds_put(out, group->changed_ms);
    }
    buf_byte(out, '}');
}

/* ---- requests ---- */

static const struct shape shape_tag_key = {TEXT_BETWEEN(1, 128)}, shape_tag_value = {TEXT_BETWEEN(1, 256)};
STRUCT_SHAPE(shape_tag, REQUIRED("Key", shape_tag_key), REQUIRED("Value", shape_tag_value));
static const struct shape shape_tags = {
    .kind = SHAPE_LIST, .of = &shape_tag, .has_max = true, .max = TAGS_MAX};
static const struct shape shape_keys = {.kind = SHAPE_LIST, .of = &shape_tag_key};
enum { TAG_KEY, TAG_VALUE };

#define NAME_FIELD PATH_FIELD("Name", schedule_shape_name, 0)
#define ARN_FIELD  PATH_FIELD("ResourceArn", schedule_shape_group_arn, 0)
static const struct shape_field create_fields[] = {NAME_FIELD, FIELD("ClientToken", schedule_shape_token),
                                                   FIELD("Tags", shape_tags)};
static const struct shape_field name_fields[] = {NAME_FIELD};
static const struct shape_field tag_fields[] = {ARN_FIELD, REQUIRED("Tags", shape_tags)};
static const struct shape_field untag_fields[] = {
    ARN_FIELD, {.name = "TagKeys", .shape = &shape_keys, .required = true, .source = FROM_QUERY}};
enum { GIVEN_NAME, GIVEN_TOKEN, GIVEN_TAGS, GIVEN_COUNT, TAGGED_ARN = GIVEN_NAME, TAGGED = GIVEN_TOKEN };

/* The group that an ARN names. */
static struct slice group_of_arn(struct slice arn)
{
    return slice_from(arn, (size_t)((const char *)memrchr(arn.data, '/', arn.len) + 1 - arn.data));
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
    struct shape_node nodes[GIVEN_COUNT];
    struct buf tags = {0};
    int64_t now_ms = task_host_now_ms(schedules->host);
    if (!schedule_decode(call, create_fields, GIVEN_COUNT, nodes)) return;
    struct slice name = nodes[GIVEN_NAME].text, token = nodes[GIVEN_TOKEN].text;
    for (uint32_t i = 0; i < nodes[GIVEN_TAGS].count; i++) {
        const struct shape_node *tag = nodes[GIVEN_TAGS].nodes[i].nodes;
        compose(&tags, "%,%s:%S", tag[TAG_KEY].text, tag[TAG_VALUE].text);
    }
    struct slice all = arena_take(task_arena(), &tags);
    struct task_reply reply = {.fault = DYNAMO_MISSING};
    for (int i = 0; reply.fault == DYNAMO_MISSING && i < 2; i++)
        reply = schedule_table_make(schedules) ? schedule_group_put(schedules, name, now_ms, all, token)
                                               : (struct task_reply){.fault = DYNAMO_REFUSED};
    struct slice found = raw_member(task_arena(), reply.body, "Item");
    if (reply.fault == DYNAMO_CONDITION && /* by a request before this one, or by the door's first attempt */
        slice_equal(item_text(task_arena(), found, "token"), token) &&
        (token.len || item_int(task_arena(), found, "created", SCHEDULE_NONE) == now_ms))
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
    struct shape_node name;
    if (!schedule_decode(call, name_fields, 1, &name) ||
        !group_is_fine(call, group_load(trigger->schedules, name.text, &group), name.text))
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
        raw_each (arena, items, &item) {
            if (fault != DYNAMO_FINE) break;
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
    struct shape_node node;
    int64_t created_ms = SCHEDULE_NONE;
    if (!schedule_decode(call, name_fields, 1, &node)) return;
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

/* Changes the tags and ends the request: keys become #k0, #k1, ... and, where they are set, values :v0, ... */
static void tags_change(struct schedules *schedules, struct rest_call *call, const struct shape_node *nodes,
                        bool sets)
{
    struct buf update = {0}, names = {0}, values = {0};
    struct slice group = group_of_arn(nodes[TAGGED_ARN].text);
    uint32_t count = nodes[TAGGED].count;
    for (uint32_t i = 0; i < count; i++) {
        const struct shape_node *tag = &nodes[TAGGED].nodes[i];
        buf_printf(&update, sets ? "%stags.#k%u = :v%u" : "%stags.#k%u", i ? ", " : "", i, i);
        buf_printf(&names, ",\"#k%u\":", i);
        json_put_string(&names, sets ? tag->nodes[TAG_KEY].text : tag->text);
        if (!sets) continue;
        buf_printf(&values, "%s\":v%u\":", i ? "," : "", i);
        compose(&values, "%S", tag->nodes[TAG_VALUE].text);
    }
    struct slice changes = arena_take(task_arena(), &update), keys = arena_take(task_arena(), &names),
                 all = arena_take(task_arena(), &values);
    enum dynamo_fault fault = DYNAMO_FINE;
    if (count)
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
    struct shape_node nodes[FIELD_COUNT(tag_fields)];
    if (schedule_decode(call, tag_fields, FIELD_COUNT(tag_fields), nodes) &&
        schedule_is_fine(call, schedule_table_make(trigger->schedules) ? DYNAMO_FINE : DYNAMO_REFUSED, "",
                         SLICE("")))
        tags_change(trigger->schedules, call, nodes, true);
}

void schedule_tag_remove(struct trigger *trigger, struct rest_call *call)
{
    struct shape_node nodes[FIELD_COUNT(untag_fields)];
    if (schedule_decode(call, untag_fields, FIELD_COUNT(untag_fields), nodes))
        tags_change(trigger->schedules, call, nodes, false);
}

void schedule_tag_list(struct trigger *trigger, struct rest_call *call)
{
    struct slice name, key, value;
    struct group group;
    struct shape_node arn;
    if (!schedule_decode(call, untag_fields, 1, &arn)) return;
    name = group_of_arn(arn.text);
    if (!group_is_fine(call, group_load(trigger->schedules, name, &group), name)) return;
    buf_text(call->reply, "{\"Tags\":[");
    raw_each_member (task_arena(), group.tags, &key, &value)
        compose(call->reply, "%,{'Key':%s,'Value':%s}", key, attribute_text(task_arena(), value));
    buf_text(call->reply, "]}");
    schedule_done(call);
}
