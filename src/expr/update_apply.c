/* What an update makes of an item.
 *
 * First every action becomes a change (a path and its new value, or none), computed from the old item alone.
 * Then the changes, sorted by path, are worked into a copy that shares what did not change. As all indexes
 * mean the old lists, elements are replaced and removed in one pass, and what lies behind a list's end is
 * appended in the order of indexes. */
#include "expr/parse.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"

struct change {
    struct path path;          /* first, so that path_order sorts changes */
    const struct value *value; /* NULL: remove */
};

struct work {
    struct arena *arena;
    const struct map *old;
    bool is_new; /* old is nothing but the key of an item that does not exist yet */
    struct slice *fault;
};

static bool refuse(struct work *work, struct slice sentence)
{
    *work->fault = sentence;
    return false;
}

static bool refuse_type(struct work *work)
{
    return refuse(work, SLICE("An operand in the update expression has an incorrect data type"));
}

static bool refuse_path(struct work *work)
{
    return refuse(work, SLICE("The document path provided in the update expression is invalid for update"));
}

/* ---- operands ---- */

static struct value *value_new(struct work *work)
{
    return arena_new(work->arena, struct value);
}

/* The service has one sentence for a result that is too large and for one that needs too many digits. */
static bool refuse_number(struct work *work, enum number_fault fault)
{
    if (fault == NUMBER_UNDERFLOW) {
        return refuse(
            work,
            SLICE("Number underflow. Attempting to store a number with magnitude smaller than supported "
                  "range"));
    }
    return refuse(
        work,
        SLICE("Number overflow. Attempting to store a number with magnitude larger than supported range"));
}

static bool sum(struct work *work, enum update_value_kind kind, const struct value *left,
                const struct value *right, const struct value **out)
{
    struct number a, b, result;
    if (left->type != VALUE_N || right->type != VALUE_N) return refuse_type(work);
    ensure(number_parse(left->bytes, &a) == NUMBER_OK && number_parse(right->bytes, &b) == NUMBER_OK);
    enum number_fault fault = kind == UPDATE_MINUS ? number_subtract(&a, &b, &result)
                                                   : number_add(&a, &b, &result);
    if (fault != NUMBER_OK) return refuse_number(work, fault);
    struct value *value = value_new(work);
    *value = (struct value){.type = VALUE_N, .bytes = number_text(work->arena, &result)};
    *out = value;
    return true;
}

static bool append_lists(struct work *work, const struct value *left, const struct value *right,
                         const struct value **out)
{
    if (left->type != VALUE_L || right->type != VALUE_L) return refuse_type(work);
    struct value *list = value_new(work);
    list->type = VALUE_L;
    list->count = left->count + right->count;
    list->elements = arena_array(work->arena, struct value, list->count);
    if (left->count) memcpy(list->elements, left->elements, left->count * sizeof *list->elements);
    if (right->count)
        memcpy(list->elements + left->count, right->elements, right->count * sizeof *list->elements);
    *out = list;
    return true;
}

static bool evaluate(struct work *work, const struct update_operand *operand, const struct value **out);

/* Left to right: the left operand's type is looked at before the right one is. */
static bool evaluate_pair(struct work *work, const struct update_operand *left,
                          const struct update_operand *right, enum value_type type,
                          const struct value *out[2])
{
    if (!evaluate(work, left, &out[0])) return false;
    if (out[0]->type != type) return refuse_type(work);
    return evaluate(work, right, &out[1]) && (out[1]->type == type || refuse_type(work));
}

static bool evaluate(struct work *work, const struct update_operand *operand, const struct value **out)
{
    const struct value *pair[2];
    switch (operand->kind) {
    case UPDATE_OPERAND_VALUE: *out = operand->value; return true;
    case UPDATE_OPERAND_PATH:
        *out = path_find(&operand->path, work->old);
        if (*out) return true;
        return refuse(
            work, SLICE("The provided expression refers to an attribute that does not exist in the item"));
    case UPDATE_OPERAND_IF_NOT_EXISTS:
        if (!evaluate(work, operand->right, &pair[0])) return false;
        *out = path_find(&operand->path, work->old);
        if (!*out) *out = pair[0];
        return true;
    case UPDATE_OPERAND_LIST_APPEND:
        return evaluate_pair(work, operand->left, operand->right, VALUE_L, pair) &&
               append_lists(work, pair[0], pair[1], out);
    case UPDATE_OPERAND_PLUS:
    case UPDATE_OPERAND_MINUS:
        return evaluate_pair(work, operand->left, operand->right, VALUE_N, pair) &&
               sum(work, operand->kind == UPDATE_OPERAND_PLUS ? UPDATE_PLUS : UPDATE_MINUS, pair[0], pair[1],
                   out);
    }
    return false;
}

/* ---- actions ---- */

static bool is_set(const struct value *value)
{
    return value->type == VALUE_SS || value->type == VALUE_NS || value->type == VALUE_BS;
}

static bool compute_set(struct work *work, const struct update_action *action, const struct value **out)
{
    const struct value *pair[2];
    if (action->value_kind == UPDATE_PLAIN) return evaluate(work, action->left, out);
    return evaluate_pair(work, action->left, action->right, VALUE_N, pair) &&
           sum(work, action->value_kind, pair[0], pair[1], out);
}

static bool compute_add(struct work *work, const struct update_action *action, const struct value *old,
                        const struct value **out)
{
    *out = action->value;
    if (!old) return true;
    if (old->type != action->value->type) return refuse_type(work);
    if (old->type == VALUE_N) return sum(work, UPDATE_PLUS, old, action->value, out);
    struct value *united = value_new(work);
    *united = set_union(work->arena, old, action->value);
    *out = united;
    return true;
}

/* A set that loses its last member is gone. */
static bool compute_delete(struct work *work, const struct update_action *action, const struct value *old,
                           const struct value **out)
{
    *out = NULL;
    if (!old) return true;
    if (old->type != action->value->type || !is_set(old)) return refuse_type(work);
    struct value *rest = value_new(work);
    *rest = set_difference(work->arena, old, action->value);
    if (rest->count > 0) *out = rest;
    return true;
}

/* All but the last part of the path must lead to something that can hold the last. */
static bool has_parent(struct work *work, const struct path *path)
{
    if (path->count == 1) return true;
    struct path parent_path = {path->parts, path->count - 1};
    const struct value *parent = path_find(&parent_path, work->old);
    return parent && parent->type == (path->parts[path->count - 1].is_index ? VALUE_L : VALUE_M);
}

/* Into an item that does not exist yet, a path may lead nowhere if it is only to be removed; it then does not
 * apply. */
static bool compute_change(struct work *work, const struct update_action *action, struct change *change,
                           bool *applies)
{
    *applies = true;
    change->path = action->path;
    change->value = NULL;
    if (!has_parent(work, &action->path)) {
        *applies = false;
        return (work->is_new && action->verb == UPDATE_REMOVE) || refuse_path(work);
    }
    const struct value *old = path_find(&action->path, work->old);
    bool done = true;
    switch (action->verb) {
    case UPDATE_SET: done = compute_set(work, action, &change->value); break;
    case UPDATE_REMOVE: break;
    case UPDATE_ADD: done = compute_add(work, action, old, &change->value); break;
    case UPDATE_DELETE: done = compute_delete(work, action, old, &change->value); break;
    }
    if (!done) return false;
    /* The item itself is a level. */
    if (change->value && action->path.count + value_depth(change->value) > LIMIT_NESTING)
        return refuse(work, SLICE("Nesting Levels have exceeded supported limits"));
    return true;
}

/* ---- the new item ---- */

/* Changes that agree in their first `depth` parts. */
struct batch {
    struct arena *arena;
    const struct change *changes;
    uint32_t count, depth;
};

static struct value rebuild_value(const struct batch *batch, const struct value *old);

/* The changes from `start` on that share their next part. */
static struct batch batch_group(const struct batch *batch, uint32_t start)
{
    struct path prefix = {batch->changes[start].path.parts, batch->depth + 1};
    uint32_t end = start + 1;
    for (; end < batch->count; end++) {
        struct path other = {batch->changes[end].path.parts, batch->depth + 1};
        if (path_compare(&prefix, &other) != 0) break;
    }
    return (struct batch){batch->arena, batch->changes + start, end - start, batch->depth + 1};
}

/* What the group makes of the old value at its place. False: nothing is there any more, or still. */
static bool change_value(const struct batch *group, const struct value *old, struct value *out)
{
    const struct change *first = &group->changes[0];
    if (first->path.count == group->depth) {
        if (first->value) *out = *first->value;
        return first->value != NULL;
    }
    *out = rebuild_value(group, old);
    return true;
}

/* Merges the sorted attributes with the sorted changes. */
static struct map rebuild_map(const struct batch *batch, const struct map *old)
{
    struct map out = {arena_array(batch->arena, struct attribute, old->count + batch->count), 0};
    uint32_t from = 0;
    for (uint32_t i = 0; i < batch->count;) {
        struct batch group = batch_group(batch, i);
        struct slice name = batch->changes[i].path.parts[batch->depth].name;
        while (from < old->count && slice_compare(old->attributes[from].name, name) < 0)
            out.attributes[out.count++] = old->attributes[from++];
        bool exists = from < old->count && slice_equal(old->attributes[from].name, name);
        const struct value *before = exists ? &old->attributes[from].value : NULL;
        if (change_value(&group, before, &out.attributes[out.count].value))
            out.attributes[out.count++].name = name;
        from += exists;
        i += group.count;
    }
    while (from < old->count) out.attributes[out.count++] = old->attributes[from++];
    return out;
}

static struct value rebuild_list(const struct batch *batch, const struct value *old)
{
    struct value out = {.type = VALUE_L};
    out.elements = arena_array(batch->arena, struct value, old->count + batch->count);
    uint32_t from = 0;
    for (uint32_t i = 0; i < batch->count;) {
        struct batch group = batch_group(batch, i);
        uint32_t index = batch->changes[i].path.parts[batch->depth].index;
        while (from < old->count && from < index) out.elements[out.count++] = old->elements[from++];
        bool exists = from < old->count;
        if (change_value(&group, exists ? &old->elements[from] : NULL, &out.elements[out.count])) out.count++;
        from += exists;
        i += group.count;
    }
    while (from < old->count) out.elements[out.count++] = old->elements[from++];
    return out;
}

static struct value rebuild_value(const struct batch *batch, const struct value *old)
{
    ensure(old && (old->type == VALUE_M || old->type == VALUE_L));
    if (old->type == VALUE_L) return rebuild_list(batch, old);
    return (struct value){.type = VALUE_M, .map = rebuild_map(batch, &old->map)};
}

static bool apply(struct work *work, const struct update *update, struct map *out)
{
    struct change *changes = arena_array(work->arena, struct change, update->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < update->count; i++) {
        bool applies;
        if (!compute_change(work, &update->actions[i], &changes[count], &applies)) return false;
        count += applies;
    }
    if (count > 1) qsort(changes, count, sizeof *changes, path_order);
    struct batch batch = {work->arena, changes, count, 0};
    *out = rebuild_map(&batch, work->old);
    return true;
}

bool update_apply(struct arena *arena, const struct update *update, const struct map *old, struct map *out,
                  struct slice *fault)
{
    struct work work = {arena, old, false, fault};
    return apply(&work, update, out);
}

bool update_create(struct arena *arena, const struct update *update, const struct map *key, struct map *out,
                   struct slice *fault)
{
    struct work work = {arena, key, true, fault};
    return apply(&work, update, out);
}

struct map update_touched(struct arena *arena, const struct update *update, const struct map *image)
{
    struct path *paths = arena_array(arena, struct path, update->count);
    for (uint32_t i = 0; i < update->count; i++) paths[i] = update->actions[i].path;
    return project(arena, paths, update->count, image);
}
