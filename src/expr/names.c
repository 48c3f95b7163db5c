/* Lists of attribute names: what a condition or a projection is about, as messages of the service list them. */
#include "base/buf.h"
#include "expr/parse.h"

#define FIRST_NAMES 8

void name_list_add(struct arena *arena, struct name_list *list, struct slice name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (slice_equal(list->names[i], name)) return;
    if (list->count == list->capacity) {
        uint32_t wider = list->capacity ? list->capacity * 2 : FIRST_NAMES;
        struct slice *names = arena_array(arena, struct slice, wider);
        if (list->count) memcpy(names, list->names, list->count * sizeof *names);
        list->names = names;
        list->capacity = wider;
    }
    list->names[list->count++] = name;
}

static void add_path(struct arena *arena, struct name_list *list, const struct path *path)
{
    if (path->count) name_list_add(arena, list, path->parts[0].name);
}

void name_list_add_condition(struct arena *arena, struct name_list *list, const struct condition *condition)
{
    if (!condition) return;
    for (uint32_t i = 0; i < condition->operand_count; i++)
        add_path(arena, list, &condition->operands[i].path);
    name_list_add_condition(arena, list, condition->left);
    name_list_add_condition(arena, list, condition->right);
}

void name_list_add_projection(struct arena *arena, struct name_list *list,
                              const struct projection *projection)
{
    for (uint32_t i = 0; projection && i < projection->count; i++)
        add_path(arena, list, &projection->paths[i]);
}

void name_list_hash_order(struct name_list *list)
{
    uint32_t capacity = java_capacity(list->count);
    for (uint32_t i = 1; i < list->count; i++) {
        struct slice name = list->names[i];
        uint32_t bucket = java_bucket(java_hash(name), capacity), at = i;
        for (; at && java_bucket(java_hash(list->names[at - 1]), capacity) > bucket; at--)
            list->names[at] = list->names[at - 1];
        list->names[at] = name;
    }
}

struct slice name_list_text(struct arena *arena, const struct name_list *list)
{
    struct buf text = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        if (i) buf_text(&text, ", ");
        buf_slice(&text, list->names[i]);
    }
    struct slice copy = arena_copy(arena, buf_view(&text));
    buf_free(&text);
    return copy;
}
