/* EventBridge Scheduler's API of groups, and of the tags that groups have. Their items stand under the hash
 * "*" of the schedules' table; the group "default" is always there and cannot be deleted. */
#include "trigger/schedule.h"

#define ROOM_OF(room) ((struct trigger *)(room))
#define KEYS_MAX      200 /* of one UntagResource */

struct group {
    struct slice name, state, tags; /* tags: JSON, a map of DynamoDB's values */
    int64_t created_ms, changed_ms;
};

/* ---- items ---- */

/* {"S":"..."} or {"N":"..."}: the text in it. */
static struct slice plain_value(struct json_reader *reader)
{
    struct slice type, text = SLICE_NONE;
    for (json_enter(reader); json_member(reader, &type);) {
        if (json_peek(reader) == JSON_STRING)
            json_string(reader, &text);
        else
            json_skip(reader);
    }
    return text;
}

static bool group_from_item(struct json_reader *reader, struct group *out)
{
    struct slice name;
    unsigned long long number;
    *out = (struct group){.created_ms = SCHEDULE_NONE, .changed_ms = SCHEDULE_NONE};
    if (json_peek(reader) != JSON_OBJECT) return false;
    for (json_enter(reader); json_member(reader, &name);) {
        if (json_peek(reader) != JSON_OBJECT) return false;
        if (slice_equal(name, SLICE("tags"))) {
            const char *from = reader->at;
            json_skip(reader);
            out->tags = (struct slice){from, (size_t)(reader->at - from)};
            continue;
        }
        struct slice text = plain_value(reader);
        if (slice_equal(name, SLICE("name"))) out->name = text;
        if (slice_equal(name, SLICE("state"))) out->state = text;
        if (slice_equal(name, SLICE("created")) && slice_to_u64(text, INT64_MAX, &number))
            out->created_ms = (int64_t)number;
        if (slice_equal(name, SLICE("changed")) && slice_to_u64(text, INT64_MAX, &number))
            out->changed_ms = (int64_t)number;
    }
    return !json_failed(reader) && out->name.data;
}

static enum schedule_end group_load(struct schedules *schedules, struct arena *arena, struct slice name,
                                    struct group *out)
{
    struct buf request = {0}, reply = {0};
    struct json_reader reader;
    struct slice member;
    bool is_found = false;
    schedule_put_key(&request, schedules, SLICE(SCHEDULE_GROUPS), name);
    buf_text(&request, ",\"ConsistentRead\":true}");
    enum schedule_end end = schedule_ask(schedules, "GetItem", &request, &reply);
    json_begin(&reader, arena_copy(arena, buf_view(&reply)), arena);
    for (json_enter(&reader); end == SCHEDULE_FINE && json_member(&reader, &member);) {
        if (slice_equal(member, SLICE("Item")))
            is_found = group_from_item(&reader, out);
        else
            json_skip(&reader);
    }
    buf_free(&request);
    buf_free(&reply);
    if (end == SCHEDULE_FINE && !is_found) end = SCHEDULE_MISSING;
    if (end != SCHEDULE_MISSING || !slice_equal(name, SLICE(SCHEDULE_DEFAULT))) return end;
    *out = (struct group){
        .name = name, .state = SLICE("ACTIVE"), .created_ms = SCHEDULE_NONE, .changed_ms = SCHEDULE_NONE};
    return SCHEDULE_FINE; /* the default group of a table that is not yet there */
}

static void no_such_group(struct rest_call *call, struct slice name)
{
    schedule_error(call, "ResourceNotFoundException", "Schedule group %.*s does not exist.", SLICE_ARG(name));
}

/* The group, or an error and false. */
static bool group_find(struct schedules *schedules, struct rest_call *call, struct slice name,
                       struct group *out)
{
    enum schedule_end end = group_load(schedules, call->arena, name, out);
    if (end == SCHEDULE_FINE) return true;
    if (end == SCHEDULE_MISSING)
        no_such_group(call, name);
    else
        schedule_door_error(call);
    return false;
}

bool schedule_group_exists(struct schedules *schedules, struct rest_call *call, struct slice group)
{
    struct group found;
    struct schedule_fault fault;
    if (schedule_name_check(group, "groupName", &fault)) return group_find(schedules, call, group, &found);
    schedule_fault_reply(call, &fault);
    return false;
}

static void put_group(struct buf *out, struct arena *arena, const struct trigger *trigger,
                      const struct group *group)
{
    buf_text(out, "{\"Arn\":");
    json_put_string(out, schedule_group_arn(arena, trigger, group->name));
    buf_text(out, ",\"Name\":");
    json_put_string(out, group->name);
    buf_text(out, ",\"State\":");
    json_put_string(out, group->state);
    schedule_put_time(out, "CreationDate", group->created_ms);
    schedule_put_time(out, "LastModificationDate", group->changed_ms);
    buf_byte(out, '}');
}

/* The name of the path; false after an error. */
static bool name_read(struct rest_call *call)
{
    struct schedule_fault fault;
    if (schedule_name_check(call->parameters[0], "name", &fault)) return true;
    schedule_fault_reply(call, &fault);
    return false;
}

/* ---- creating and getting ---- */

static enum schedule_end group_insert(struct schedules *schedules, struct slice name,
                                      const struct schedule_group_request *asked)
{
    struct buf request = {0}, reply = {0};
    long long now_ms = clock_now_ms(schedules->trigger->options.clock);
    buf_printf(&request,
               "{\"TableName\":\"%.*s\",\"Item\":{\"group\":{\"S\":\"" SCHEDULE_GROUPS "\"},\"name\":{\"S\":",
               SLICE_ARG(schedules->table));
    json_put_string(&request, name);
    buf_printf(&request,
               "},\"state\":{\"S\":\"ACTIVE\"},\"created\":{\"N\":\"%lld\"},\"changed\":{\"N\":\"%lld\"},"
               "\"tags\":{\"M\":{",
               now_ms, now_ms);
    for (size_t i = 0; i < asked->tag_count; i++) {
        if (i) buf_byte(&request, ',');
        json_put_string(&request, asked->tags[i].key);
        buf_text(&request, ":{\"S\":");
        json_put_string(&request, asked->tags[i].value);
        buf_byte(&request, '}');
    }
    buf_text(&request, "}}");
    if (asked->token.data) {
        buf_text(&request, ",\"token\":{\"S\":");
        json_put_string(&request, asked->token);
        buf_byte(&request, '}');
    }
    buf_text(&request, "},\"ConditionExpression\":\"attribute_not_exists(#name)");
    if (asked->token.data) buf_text(&request, " OR #token = :token");
    buf_text(&request, "\",\"ExpressionAttributeNames\":{\"#name\":\"name\"");
    if (asked->token.data) {
        buf_text(&request, ",\"#token\":\"token\"},\"ExpressionAttributeValues\":{\":token\":{\"S\":");
        json_put_string(&request, asked->token);
        buf_byte(&request, '}');
    }
    buf_text(&request, "}}");
    enum schedule_end end = schedule_ask(schedules, "PutItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

void schedule_group_create(void *room, struct rest_call *call)
{
    struct trigger *trigger = ROOM_OF(room);
    struct schedule_group_request asked;
    struct schedule_fault fault;
    struct slice name = call->parameters[0];
    if (!name_read(call)) return;
    if (!schedule_group_read(call->arena, call->body, &asked, &fault)) {
        schedule_fault_reply(call, &fault);
        return;
    }
    enum schedule_end end = SCHEDULE_FAILED;
    if (schedule_table_make(trigger->schedules)) end = group_insert(trigger->schedules, name, &asked);
    if (end == SCHEDULE_MOVED) {
        schedule_error(call, "ConflictException", "Schedule group %.*s already exists.", SLICE_ARG(name));
    } else if (end != SCHEDULE_FINE) {
        schedule_door_error(call);
    } else {
        buf_text(call->reply, "{\"ScheduleGroupArn\":");
        json_put_string(call->reply, schedule_group_arn(call->arena, trigger, name));
        buf_byte(call->reply, '}');
        schedule_done(call);
    }
}

void schedule_group_get(void *room, struct rest_call *call)
{
    struct group group;
    if (!name_read(call) || !group_find(ROOM_OF(room)->schedules, call, call->parameters[0], &group)) return;
    put_group(call->reply, call->arena, room, &group);
    schedule_done(call);
}

/* ---- deleting ---- */

/* The first schedule of a group that is left. */
static bool first_visit(void *context, struct json_reader *reader)
{
    struct schedule *first = context, schedule;
    if (!schedule_from_item(reader, &schedule)) return false;
    memcpy((char *)(uintptr_t)first->name.data, schedule.name.data, schedule.name.len);
    first->name.len = schedule.name.len;
    return false;
}

static enum schedule_end item_delete(struct schedules *schedules, struct slice group, struct slice name)
{
    struct buf request = {0}, reply = {0};
    schedule_put_key(&request, schedules, group, name);
    buf_byte(&request, '}');
    enum schedule_end end = schedule_ask(schedules, "DeleteItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

static enum schedule_end schedules_delete(struct schedules *schedules, struct slice group)
{
    char name[SCHEDULE_NAME_MAX];
    for (;;) {
        struct schedule first = {.name = {name, 0}};
        enum schedule_end end = schedule_each(schedules, group, SLICE_NONE, SLICE_NONE, first_visit, &first);
        if (end != SCHEDULE_FINE || !first.name.len) return end;
        end = item_delete(schedules, group, first.name);
        if (end != SCHEDULE_FINE) return end;
        schedules_forget(schedules, group, first.name);
    }
}

/* From here on nobody can put a schedule into it; who asks again goes on where this was broken off. */
static enum schedule_end group_mark(struct schedules *schedules, struct slice name)
{
    struct buf request = {0}, reply = {0};
    schedule_put_key(&request, schedules, SLICE(SCHEDULE_GROUPS), name);
    buf_text(&request, ",\"UpdateExpression\":\"SET #state = :deleting\","
                       "\"ConditionExpression\":\"attribute_exists(#name)\","
                       "\"ExpressionAttributeNames\":{\"#state\":\"state\",\"#name\":\"name\"},"
                       "\"ExpressionAttributeValues\":{\":deleting\":{\"S\":\"DELETING\"}}}");
    enum schedule_end end = schedule_ask(schedules, "UpdateItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

void schedule_group_delete(void *room, struct rest_call *call)
{
    struct schedules *schedules = ROOM_OF(room)->schedules;
    struct slice name = call->parameters[0], token = rest_query(call, "clientToken");
    if (!name_read(call)) return;
    if (slice_equal(name, SLICE(SCHEDULE_DEFAULT))) {
        schedule_error(call, "ValidationException", "The default schedule group cannot be deleted.");
        return;
    }
    enum schedule_end end = group_mark(schedules, name);
    if (end == SCHEDULE_FINE) end = schedules_delete(schedules, name);
    if (end == SCHEDULE_FINE) end = item_delete(schedules, SLICE(SCHEDULE_GROUPS), name);
    if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
    } else if (end == SCHEDULE_FINE || schedules_has_deleted(schedules, token, name)) {
        schedules_note_deletion(schedules, token, name);
        buf_text(call->reply, "{}");
        schedule_done(call);
    } else {
        no_such_group(call, name);
    }
}

/* ---- listing ---- */

struct group_listing {
    struct trigger *trigger;
    struct rest_call *call;
    struct schedule_page page;
    size_t count;
    struct slice last;
    bool has_more;
};

static bool group_visit(void *context, struct json_reader *reader)
{
    struct group_listing *listing = context;
    struct group group;
    if (!group_from_item(reader, &group)) return !json_failed(reader);
    if (listing->page.prefix.data && !slice_starts(group.name, listing->page.prefix)) return true;
    if (listing->count == listing->page.max) {
        listing->has_more = true;
        return false;
    }
    if (listing->count++) buf_byte(listing->call->reply, ',');
    put_group(listing->call->reply, listing->call->arena, listing->trigger, &group);
    listing->last = arena_copy(listing->call->arena, group.name);
    return true;
}

void schedule_group_list(void *room, struct rest_call *call)
{
    struct group_listing listing = {.trigger = ROOM_OF(room), .call = call};
    struct schedules *schedules = listing.trigger->schedules;
    if (!schedule_page_read(call, &listing.page)) return;
    buf_text(call->reply, "{\"ScheduleGroups\":[");
    enum schedule_end end = schedule_each(schedules, SLICE(SCHEDULE_GROUPS), listing.page.after_group,
                                          listing.page.after_name, group_visit, &listing);
    if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
        return;
    }
    if (end == SCHEDULE_MISSING) { /* no table yet, but there is always the default group */
        struct group group;
        group_load(schedules, call->arena, SLICE(SCHEDULE_DEFAULT), &group);
        put_group(call->reply, call->arena, room, &group);
    }
    buf_byte(call->reply, ']');
    if (listing.has_more) {
        buf_text(call->reply, ",\"NextToken\":");
        schedule_put_token(call->reply, SLICE(SCHEDULE_GROUPS), listing.last);
    }
    buf_byte(call->reply, '}');
    schedule_done(call);
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

/* Changes the tags: keys become #k0, #k1, ... and, where they are set, values :v0, ... */
static enum schedule_end tags_change(struct schedules *schedules, struct slice group,
                                     const struct schedule_tag *tags, size_t count, bool sets)
{
    struct buf request = {0}, names = {0}, values = {0}, reply = {0};
    schedule_put_key(&request, schedules, SLICE(SCHEDULE_GROUPS), group);
    buf_printf(&request, ",\"UpdateExpression\":\"%s ", sets ? "SET" : "REMOVE");
    for (size_t i = 0; i < count; i++) {
        buf_printf(&request, sets ? "%stags.#k%zu = :v%zu" : "%stags.#k%zu", i ? ", " : "", i, i);
        buf_printf(&names, ",\"#k%zu\":", i);
        json_put_string(&names, tags[i].key);
        if (!sets) continue;
        buf_printf(&values, "%s\":v%zu\":{\"S\":", i ? "," : "", i);
        json_put_string(&values, tags[i].value);
        buf_byte(&values, '}');
    }
    buf_text(&request, "\",\"ConditionExpression\":\"attribute_exists(#name)\","
                       "\"ExpressionAttributeNames\":{\"#name\":\"name\"");
    buf_slice(&request, buf_view(&names));
    buf_byte(&request, '}');
    if (sets) buf_printf(&request, ",\"ExpressionAttributeValues\":{%.*s}", SLICE_ARG(buf_view(&values)));
    buf_byte(&request, '}');
    enum schedule_end end = schedule_ask(schedules, "UpdateItem", &request, &reply);
    buf_free(&request);
    buf_free(&names);
    buf_free(&values);
    buf_free(&reply);
    return end;
}

static void tags_reply(struct rest_call *call, enum schedule_end end, struct slice group)
{
    if (end == SCHEDULE_FINE) {
        buf_text(call->reply, "{}");
        schedule_done(call);
    } else if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
    } else {
        no_such_group(call, group);
    }
}

void schedule_tag_add(void *room, struct rest_call *call)
{
    struct schedules *schedules = ROOM_OF(room)->schedules;
    struct schedule_group_request asked;
    struct schedule_fault fault;
    struct slice group;
    if (!arn_read(call, &group)) return;
    bool fine = schedule_group_read(call->arena, call->body, &asked, &fault) &&
                (asked.has_tags ||
                 schedule_constraint(&fault, "tags", SLICE_NONE, "Member must not be null"));
    if (!fine) {
        schedule_fault_reply(call, &fault);
        return;
    }
    enum schedule_end end = SCHEDULE_FAILED;
    if (schedule_table_make(schedules))
        end = asked.tag_count ? tags_change(schedules, group, asked.tags, asked.tag_count, true)
                              : SCHEDULE_FINE;
    tags_reply(call, end, group);
}

void schedule_tag_remove(void *room, struct rest_call *call)
{
    struct schedules *schedules = ROOM_OF(room)->schedules;
    struct schedule_tag *keys = arena_array(call->arena, struct schedule_tag, KEYS_MAX);
    struct schedule_fault fault;
    struct slice group;
    size_t count = 0;
    if (!arn_read(call, &group)) return;
    while (count < KEYS_MAX && (keys[count].key = rest_query_nth(call, "TagKeys", (unsigned)count)).data)
        count++;
    if (!count) {
        schedule_constraint(&fault, "tagKeys", SLICE_NONE, "Member must not be null");
        schedule_fault_reply(call, &fault);
        return;
    }
    tags_reply(call, tags_change(schedules, group, keys, count, false), group);
}

/* {"M":{"key":{"S":"value"}}} becomes {"Key":"key","Value":"value"}, ... */
static void put_tags(struct buf *out, struct arena *arena, struct slice tags)
{
    struct json_reader reader;
    struct slice type, key;
    bool is_first = true;
    json_begin(&reader, tags, arena);
    if (!tags.len || json_peek(&reader) != JSON_OBJECT) return;
    for (json_enter(&reader); json_member(&reader, &type);) {
        for (json_enter(&reader); json_member(&reader, &key); is_first = false) {
            buf_printf(out, "%s{\"Key\":", is_first ? "" : ",");
            json_put_string(out, key);
            buf_text(out, ",\"Value\":");
            json_put_string(out, plain_value(&reader));
            buf_byte(out, '}');
        }
    }
}

void schedule_tag_list(void *room, struct rest_call *call)
{
    struct slice name;
    struct group group;
    if (!arn_read(call, &name) || !group_find(ROOM_OF(room)->schedules, call, name, &group)) return;
    buf_text(call->reply, "{\"Tags\":[");
    put_tags(call->reply, call->arena, group.tags);
    buf_text(call->reply, "]}");
    schedule_done(call);
}
