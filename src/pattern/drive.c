/* Drives: what the server is told to do by itself. The server takes unit after unit of a thing (a queue of work, a
 * consumer of a log, a job), calls a target for each, and writes down what became of it; src/drive does that, by the
 * same calls that anybody can make. Here is only what it is told: the settings are part of the thing for whoever asks,
 * and items of one table, so that a server finds all of them without a scan.
 *
 * Table PREFIXdrives: hash key `slot` (S): "#0" to "#3", by a hash of the id; range key `id` (S): the kind and the
 *   name, or the kind, the name (percent-encoded) and the part, with colons between; `kind`, `name`, `part` (S: of a
 *   log, the consumer); the target (`each` or `function`, S) and the other settings of the kind; `version` (N): grows
 *   with each change; `stamp` (S): of a job, its run and epoch; `changed` (S): when that was.
 *
 * A drive without its thing is harmless: there is nothing to do, or the server finds that out and removes it. */
#include "pattern/drive.h"

#include <string.h>

#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/edit.h"
#include "pattern/pattern.h"
#include "pattern/rows.h"

#define SLOTS          4
#define VERSIONS_OF_MS 1000 /* a version stays below 2^53 */

static const struct flow_table drives = {"drives", "slot id", NULL};

static const struct drive_kind *const kinds[] = {
#define X(name) &name##_drive_kind,
    DRIVE_KINDS(X)
#undef X
};

/* ---- one drive ---- */

static struct slice id_of(struct flow *flow, const struct drive_thing *thing)
{
    if (!thing->part.len)
        return arena_printf(flow->arena, "%s:%.*s", thing->kind->name, SLICE_ARG(thing->name));
    return arena_printf(flow->arena, "%s:%.*s:%.*s", thing->kind->name,
                        SLICE_ARG(rest_encoded(flow->arena, thing->name)), SLICE_ARG(thing->part));
}

/* It begins with a character that no name does, so that all slots are one thing for whoever waits (flow_thing). */
static struct slice slot_name(struct flow *flow, uint64_t number)
{
    return arena_printf(flow->arena, "#%u", (unsigned)(number % SLOTS));
}

static struct slice key_of(struct flow *flow, const struct drive_thing *thing)
{
    struct slice id = id_of(flow, thing);
    return flow_compose(flow, "{'slot':%S,'id':%S}", slot_name(flow, hash_bytes(id)), id);
}

static uint64_t topic_of_all(void)
{
    return flow_topic("drives", SLICE(""), SLICE(""));
}

/* Of what a call has answered that need not find a table: most people drive nothing. */
static bool is_missing(struct flow *flow)
{
    if (flow->reply.status == 200) return false;
    if (slice_equal(flow->reply.error, SLICE("ResourceNotFoundException"))) return true;
    flow_refuse_call(flow);
    task_end(flow);
}

struct slice drive_read(struct flow *flow, const struct drive_thing *thing)
{
    task_try(flow, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}", &drives,
             key_of(flow, thing));
    return is_missing(flow) ? SLICE_NONE : flow_item(flow);
}

void drive_remove(struct flow *flow, const struct drive_thing *thing)
{
    task_try(flow, "DeleteItem", "{'TableName':%T,'Key':%A}", &drives, key_of(flow, thing));
    if (!is_missing(flow)) flow_wake(flow, topic_of_all());
}

/* The number of the request's field; -1: it was not given. */
static int given_field(const struct flow *flow, const char *name)
{
    for (uint32_t i = 0; i < flow->row->field_count; i++)
        if (flow->row->fields[i].place == IN_BODY && !strcmp(flow->row->fields[i].name, name))
            return flow_given(flow, i) ? (int)i : -1;
    return -1;
}

/* A drive has one target, for all states; an empty list ends it. */
struct slice drive_target(struct flow *flow, const char *name, unsigned field)
{
    struct pattern_target targets[PATTERN_TARGETS];
    struct slice text = flow_then(flow, field);
    unsigned count;
    const char *fault = pattern_then_read(text, flow->arena, targets, &count);
    if (fault) task_refuse(flow, 400, "bad-request", "%s %s.", name, fault);
    if (count > 1) task_refuse(flow, 400, "bad-request", "%s must name one function, URL or call.", name);
    if (count && targets[0].on.data)
        task_refuse(flow, 400, "bad-request", "%s is called for every unit: it takes no \"on\".", name);
    return count ? text : SLICE_NONE;
}

struct slice drive_number(struct flow *flow, const struct drive_setting *setting, int64_t number)
{
    return setting->type == FIELD_BOOL ? flow_compose(flow, "{'BOOL':%b}", (int)(number != 0))
                                       : flow_compose(flow, "%N", number);
}

static void setting_put(struct flow *flow, struct edit *edit, const struct drive_setting *setting, int field)
{
    struct slice name = slice_of(setting->name);
    if (field >= 0)
        edit_set(flow, edit, setting->name, "%A",
                 drive_number(flow, setting, flow_int(flow, (unsigned)field)));
    else if (setting->otherwise != DRIVE_NONE)
        edit_put(flow, edit, EDIT_SET,
                 flow_compose(flow, "#%A = if_not_exists(#%A, :%A)", name, name, name).data, "':%A':%A", name,
                 drive_number(flow, setting, setting->otherwise));
}

static bool is_any_given(const struct flow *flow, const struct drive_kind *kind)
{
    for (size_t i = 0; i < kind->count; i++)
        if (given_field(flow, kind->settings[i].name) >= 0) return true;
    return false;
}

static _Noreturn void refuse_undriven(struct flow *flow, const struct drive_thing *thing)
{
    task_refuse(flow, 400, "not-driven", "%s is needed: nothing is called for '%.*s' so far.",
                thing->kind->settings[0].name, SLICE_ARG(thing->name));
}

void drive_check(struct flow *flow, const struct drive_thing *thing)
{
    const char *name = thing->kind->settings[0].name;
    int field = given_field(flow, name);
    if (field >= 0)
        drive_target(flow, name, (unsigned)field);
    else if (is_any_given(flow, thing->kind) && !drive_read(flow, thing).data)
        refuse_undriven(flow, thing);
}

struct slice drive_put(struct flow *flow, const struct drive_thing *thing)
{
    const struct drive_setting *settings = thing->kind->settings;
    int field = given_field(flow, settings[0].name);
    struct edit edit = {0};
    if (!is_any_given(flow, thing->kind)) return drive_read(flow, thing);
    if (field >= 0) {
        struct slice target = drive_target(flow, settings[0].name, (unsigned)field);
        if (!target.data) {
            drive_remove(flow, thing);
            return SLICE_NONE;
        }
        edit_set(flow, &edit, settings[0].name, "%S", target);
        edit_set(flow, &edit, "kind", "%S", slice_of(thing->kind->name));
        edit_set(flow, &edit, "name", "%S", thing->name);
        if (thing->part.len) edit_set(flow, &edit, "part", "%S", thing->part);
        edit_if(flow, &edit, "(attribute_not_exists(#kind) or #kind = :kind)", NULL);
    } else {
        edit_if(flow, &edit, "attribute_exists(#id)", NULL);
    }
    for (size_t i = 1; i < thing->kind->count; i++)
        setting_put(flow, &edit, &settings[i], given_field(flow, settings[i].name));
    edit_set(flow, &edit, "changed", "%S", moment_text(flow->arena, flow->now_ms));
    edit_put(flow, &edit, EDIT_ADD, "#version :one", "':one':{'N':'1'}");
    if (!edit_write(flow, &edit, &drives, key_of(flow, thing))) refuse_undriven(flow, thing);
    flow_wake(flow, topic_of_all());
    return flow_item(flow);
}

void drive_copy(struct flow *flow, const struct drive_thing *thing, struct slice settings, struct slice stamp,
                bool anew)
{
    struct edit edit = {0};
    struct slice differs = SLICE("");
    for (size_t i = 0; i < thing->kind->count; i++) {
        struct slice name = slice_of(thing->kind->settings[i].name),
                     value = item_attribute(flow->arena, settings, thing->kind->settings[i].name);
        if (value.data)
            edit_set(flow, &edit, name.data, "%A", value);
        else
            edit_put(flow, &edit, EDIT_REMOVE, flow_compose(flow, "#%r", name).data, NULL);
        differs = value.data ? flow_compose(flow, "%r or #%r <> :%r", differs, name, name)
                             : flow_compose(flow, "%r or attribute_exists(#%r)", differs, name);
    }
    edit_set(flow, &edit, "kind", "%S", slice_of(thing->kind->name));
    edit_set(flow, &edit, "name", "%S", thing->name);
    edit_set(flow, &edit, "changed", "%S", moment_text(flow->arena, flow->now_ms));
    /* One that was removed and comes again has another version than before, also within the same millisecond: else a
     * removal that comes late would take it for the one that it has seen. */
    edit_put(flow, &edit, EDIT_SET, "#version = if_not_exists(#version, :begin) + :one",
             "':begin':%N,':one':{'N':'1'}",
             flow->now_ms * VERSIONS_OF_MS + (int64_t)flow_random_below(flow, VERSIONS_OF_MS));
    edit_set(flow, &edit, "stamp", "%S", stamp.len ? stamp : SLICE("0"));
    if (anew) differs = SLICE(" or attribute_exists(#id)");
    if (!stamp.len) differs = SLICE("");
    edit_if(flow, &edit, flow_compose(flow, "(attribute_not_exists(#id)%r)", differs).data, NULL);
    edit_if(flow, &edit, "(attribute_not_exists(#stamp) or #stamp <= :stamp)", NULL);
    if (edit_write(flow, &edit, &drives, key_of(flow, thing))) flow_wake(flow, topic_of_all());
}

struct slice drive_members(struct flow *flow, const struct drive_thing *thing, struct slice item)
{
    struct buf out = {0};
    for (size_t i = 0; item.data && i < thing->kind->count; i++) {
        const struct drive_setting *setting = &thing->kind->settings[i];
        struct slice text = item_text(flow->arena, item, setting->name);
        if (setting->type == FIELD_THEN) text = flow_then_shown(flow, text);
        if (!item_has(flow->arena, item, setting->name)) continue;
        flow_put(flow, &out, ",%s:", slice_of(setting->name));
        if (setting->type == FIELD_THEN && text.len && text.data[0] != '{')
            flow_put(flow, &out, "%s", text);
        else if (setting->type == FIELD_DURATION)
            flow_put(flow, &out, "%s",
                     duration_text(flow->arena, item_int(flow->arena, item, setting->name, 0)));
        else if (setting->type == FIELD_BOOL)
            plain_put_attribute(&out, flow->arena, item_attribute(flow->arena, item, setting->name));
        else
            buf_slice(&out, text);
    }
    return arena_take(flow->arena, &out);
}

/* ---- all of them ---- */

enum { LIST_MARK, LIST_WAIT };

static const struct field list_fields[] = {
    [LIST_MARK] = {"mark", IN_QUERY, FIELD_NAME, .help = "of an earlier answer: wait until there is another"},
    [LIST_WAIT] = FIELD_WAIT(IN_QUERY, "for so long"),
};

static const struct drive_kind *kind_of(struct flow *flow, struct slice item)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (item_says(flow->arena, item, "kind", kinds[i]->name)) return kinds[i];
    return NULL;
}

/* Appends those of a slot; what tells them from others is added to the mark. */
static void put_slot(struct flow *flow, uint64_t slot, uint64_t *mark)
{
    struct slice item, from = SLICE("");
    do {
        task_try(flow, "Query",
                 "{'TableName':%T,'KeyConditionExpression':'#slot = :slot',%#,'ExpressionAttributeValues':"
                 "{':slot':%S},'ConsistentRead':true%r}",
                 &drives, slot_name(flow, slot), from);
        if (is_missing(flow)) return;
        raw_each (flow->arena, flow_items(flow), &item) {
            const struct drive_kind *kind = kind_of(flow, item);
            if (!kind) continue; /* a newer server's */
            struct drive_thing thing = {.kind = kind, .name = item_text(flow->arena, item, "name")};
            flow_put(flow, flow->body, "%,{'id':%s,'kind':%s,'name':%s", item_text(flow->arena, item, "id"),
                     slice_of(kind->name), thing.name);
            plain_put_members(flow->body, flow->arena, item, "part");
            buf_slice(flow->body, drive_members(flow, &thing, item));
            plain_put_members(flow->body, flow->arena, item, "version changed");
            buf_byte(flow->body, '}');
            *mark += hash_bytes(item);
        }
        from = flow_last_key(flow);
        if (from.data) from = flow_compose(flow, ",'ExclusiveStartKey':%r", from);
    } while (from.data);
}

static void list_drives(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + flow_int_or(flow, LIST_WAIT, 0);
    struct slice mark;
    for (;;) {
        uint64_t sum = 0;
        flow_look(flow);
        flow->body->len = flow->body_start;
        buf_text(flow->body, "{\"drives\":[");
        for (uint64_t slot = 0; slot < SLOTS; slot++) put_slot(flow, slot, &sum);
        mark = arena_printf(flow->arena, "%016llx", (unsigned long long)sum);
        if (!flow_given(flow, LIST_MARK) || !slice_equal(mark, flow_text(flow, LIST_MARK))) break;
        if (flow->now_ms >= until_ms) break;
        task_watch(flow, topic_of_all(), flow_thing("drive", SLICE("")), until_ms);
    }
    flow_put(flow, flow->body, "],'mark':%s}", mark);
    flow_finish(flow, 200);
}

enum { REMOVE_ID, REMOVE_VERSION };

static const struct field remove_fields[] = {
    [REMOVE_ID] = FIELD_IN_PATH("id", 0, "the drive"),
    [REMOVE_VERSION] = {"version", IN_QUERY, FIELD_INT, true, .max = INT64_MAX,
                        .help = "only if it has this one"},
};

/* One whose thing has ended, as who asked it has seen: not one that was written since. */
static void remove_drive(struct flow *flow)
{
    struct slice id = flow_text(flow, REMOVE_ID);
    task_try(flow, "DeleteItem",
             "{'TableName':%T,'Key':{'slot':%S,'id':%S},'ConditionExpression':'#version = :version',%#,"
             "'ExpressionAttributeValues':{':version':%N}}",
             &drives, slot_name(flow, hash_bytes(id)), id, flow_int(flow, REMOVE_VERSION));
    bool is_other = flow_failed(flow);
    if (!is_other && !is_missing(flow)) flow_wake(flow, topic_of_all());
    flow_answer(flow, 200, "{'deleted':%b}", (int)!is_other);
}

/* clang-format off */
const struct flow_row drive_rows[] = {
    {"DELETE", "/v1/drives/{id}", remove_drive, "Removes a drive whose thing has ended.", FIELDS(remove_fields),
     "{'deleted':true}", "drive rm"},
    {"GET", "/v1/drives", list_drives, "What the server drives by itself.", FIELDS(list_fields),
     "{'drives':[{'id':'work:mails','kind':'work','name':'mails','each':'send-mail','concurrency':10,'paused':false,"
     "'version':1,'changed':'2026-11-15T03:42:06.250Z'}],'mark':'5f3c9d0a5f3c9d0a'}", "drive ls -> drives"},
};
/* clang-format on */
ROW_COUNT(drive);
