/* Tags of scalable targets: TagResource, UntagResource and ListTagsForResource of Application Auto Scaling. Two of them
 * have the names of DynamoDB's own, and other members; api.c tells them apart by the service that is asked.
 *
 * A target's map has them as "tags". */
#include "api/auto_scaling.h"

#define NAMES_AT_ONCE 100

static const struct shape shape_arn = STRING_SHAPE_SIZED(1, 1011), shape_tag_key = STRING_SHAPE_SIZED(1, 128),
                          shape_tag_value = STRING_SHAPE_SIZED(0, 256);
const struct shape shape_scaling_tags = {.kind = SHAPE_MAP, .of = &shape_tag_value, .key = &shape_tag_key};
static const struct shape shape_tag_keys = LIST_SHAPE_SIZED(shape_tag_key, 0, 200);

enum { TAG_ARN, TAG_OWN };
static const struct shape_member tag_members[] = {
    [TAG_ARN] = REQUIRED("ResourceARN", shape_arn),
    [TAG_OWN] = REQUIRED("Tags", shape_scaling_tags),
};
static const struct shape tag_shape = STRUCT_SHAPE("TagResourceRequest", tag_members);
static const struct shape_member untag_members[] = {
    [TAG_ARN] = REQUIRED("ResourceARN", shape_arn),
    [TAG_OWN] = REQUIRED("TagKeys", shape_tag_keys),
};
static const struct shape untag_shape = STRUCT_SHAPE("UntagResourceRequest", untag_members);
static const struct shape_member list_members[] = {[TAG_ARN] = REQUIRED("ResourceARN", shape_arn)};
static const struct shape list_shape = STRUCT_SHAPE("ListTagsForResourceRequest", list_members);

bool scaling_tags_add(struct verdict *verdict, const struct node *tags, struct map *target)
{
    struct map kept = map_map(target, SLICE("tags"));
    for (uint32_t i = 0; i < tags->count; i++) {
        const struct node_entry *tag = &tags->entries[i];
        if (slice_starts(tag->key, SLICE("aws:")))
            return reject(verdict, "Tag keys cannot begin with aws:, key: %.*s", SLICE_ARG(tag->key));
        map_put(verdict->arena, &kept, tag->key, text_value(tag->node.present ? tag->node.text : SLICE("")));
    }
    if (kept.count > LIMIT_TAGS)
        return reject_as(verdict, "TooManyTagsException", "A scalable target has at most %d tags", LIMIT_TAGS);
    map_put(verdict->arena, target, SLICE("tags"), map_value(kept));
    return true;
}

/* ---- which target ---- */

/* The name of the target that has this ARN; empty: this table has none. */
static struct slice find_target(const struct api *api, const struct table_definition *definition,
                                struct slice arn)
{
    struct map targets = setting_map(definition, SCALABLE_TARGETS);
    struct slice found = SLICE_NONE;
    struct buf text = {0};
    for (uint32_t i = 0; i < targets.count && !found.len; i++) {
        struct map target = map_map(&targets, targets.attributes[i].name);
        text.len = 0;
        put_scalable_target_arn(&text, api, &target);
        if (slice_equal(buf_view(&text), arn)) found = targets.attributes[i].name;
    }
    buf_free(&text);
    return found;
}

/* The table with that target, held; NULL: there is none, which is said. */
static struct table *find_tagged(struct api_call *call, struct slice arn)
{
    struct slice names[NAMES_AT_ONCE], after = SLICE_NONE;
    bool more = true;
    while (more) {
        uint32_t count = engine_table_names(call->api->engine, call->arena, after, NAMES_AT_ONCE, names, &more);
        for (uint32_t i = 0; i < count; i++) {
            struct table *table = engine_table_find(call->api->engine, names[i]);
            if (table && find_target(call->api, &table->definition, arn).len) return table;
            if (table) engine_table_release(table);
        }
        if (!count) break;
        after = names[count - 1];
    }
    refuse(call, "ResourceNotFoundException", "No scalable target found for the resource ARN: %.*s",
           SLICE_ARG(arn));
    return NULL;
}

static void target_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "ResourceNotFoundException",
              "No scalable target found for the resource ARN: %.*s",
              SLICE_ARG(node_member(&change->input, TAG_ARN)->text));
}

/* ---- TagResource and UntagResource ---- */

static bool remove_tags(struct verdict *verdict, const struct node *keys, struct map *target)
{
    struct map kept = map_map(target, SLICE("tags"));
    for (uint32_t i = 0; i < keys->count; i++)
        if (keys->elements[i].present) kept = map_without(verdict->arena, &kept, keys->elements[i].text);
    map_put(verdict->arena, target, SLICE("tags"), map_value(kept));
    return true;
}

static bool change_tags(struct table_change *change,
                        bool (*edit)(struct verdict *verdict, const struct node *given, struct map *target))
{
    struct arena *arena = change->verdict.arena;
    struct slice name = find_target(change->api, change->definition,
                                    node_member(&change->input, TAG_ARN)->text);
    if (!name.len) return target_is_missing(change), false;
    struct map targets = setting_map(change->definition, SCALABLE_TARGETS), target = map_map(&targets, name);
    if (!edit(&change->verdict, node_member(&change->input, TAG_OWN), &target)) return false;
    map_put(arena, &targets, name, map_value(target));
    setting_put(arena, change->definition, SCALABLE_TARGETS, map_value(targets));
    return true;
}

static bool apply_tag(struct table_change *change)
{
    return change_tags(change, scaling_tags_add);
}

static bool apply_untag(struct table_change *change)
{
    return change_tags(change, remove_tags);
}

static void submit(struct api_call *call, const struct node *input, bool (*apply)(struct table_change *))
{
    struct table *table = find_tagged(call, node_member(input, TAG_ARN)->text);
    if (!table) return;
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->table_name = arena_copy(call->arena, table->definition.name);
    change->apply = apply;
    change->missing = target_is_missing;
    engine_table_release(table);
    table_change_submit(call, input, change);
}

static void tag_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_tag);
}

static void untag_begin(struct api_call *call, const struct node *input)
{
    submit(call, input, apply_untag);
}

static void finish(struct api_call *call)
{
    if (table_change_finish(call)) buf_text(call->reply, "{}");
}

/* ---- ListTagsForResource ---- */

static void list_begin(struct api_call *call, const struct node *input)
{
    struct slice arn = node_member(input, TAG_ARN)->text;
    struct table *table = find_tagged(call, arn);
    if (!table) return;
    struct map targets = setting_map(&table->definition, SCALABLE_TARGETS),
               target = map_map(&targets, find_target(call->api, &table->definition, arn)),
               tags = map_map(&target, SLICE("tags"));
    buf_text(call->reply, "{\"Tags\":{");
    for (uint32_t i = 0; i < tags.count; i++) {
        if (i) buf_byte(call->reply, ',');
        json_put_string(call->reply, tags.attributes[i].name);
        buf_byte(call->reply, ':');
        json_put_string(call->reply, tags.attributes[i].value.bytes);
    }
    buf_text(call->reply, "}}");
    engine_table_release(table);
}

const struct operation operation_TagScalableTarget = {SLICE("TagScalableTarget"), &tag_shape, tag_begin, finish};
const struct operation operation_UntagScalableTarget = {SLICE("UntagScalableTarget"), &untag_shape, untag_begin,
                                                        finish};
const struct operation operation_ListTagsForResource = {SLICE("ListTagsForResource"), &list_shape, list_begin,
                                                        NULL};
