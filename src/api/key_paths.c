/* Key attributes are scalars: no expression may look into one. Finds paths that do, in conditions, updates
 * and projections, and refuses them in the service's words. */
#include "api/items.h"

/* The expressions of one request that are looked through. */
struct path_places {
    const struct condition *condition;
    const struct update *update;
    const struct projection *projection;
};

static bool looks_into(const struct path *path, struct slice name)
{
    return path->count > 1 && slice_equal(path->parts[0].name, name);
}

static bool condition_looks_into(const struct condition *condition, struct slice name)
{
    if (!condition) return false;
    for (uint32_t i = 0; i < condition->operand_count; i++)
        if (looks_into(&condition->operands[i].path, name)) return true;
    return condition_looks_into(condition->left, name) || condition_looks_into(condition->right, name);
}

static bool operand_looks_into(const struct update_operand *operand, struct slice name)
{
    if (!operand) return false;
    return looks_into(&operand->path, name) || operand_looks_into(operand->left, name) ||
           operand_looks_into(operand->right, name);
}

static bool update_looks_into(const struct update *update, struct slice name)
{
    for (uint32_t i = 0; i < update->count; i++) {
        const struct update_action *action = &update->actions[i];
        if (looks_into(&action->path, name) || operand_looks_into(action->left, name) ||
            operand_looks_into(action->right, name))
            return true;
    }
    return false;
}

static bool projection_looks_into(const struct projection *projection, struct slice name)
{
    for (uint32_t i = 0; i < projection->count; i++)
        if (looks_into(&projection->paths[i], name)) return true;
    return false;
}

static bool any_looks_into(const struct path_places *places, struct slice name)
{
    return condition_looks_into(places->condition, name) ||
           (places->update && update_looks_into(places->update, name)) ||
           (places->projection && projection_looks_into(places->projection, name));
}

static struct slice path_fault(struct arena *arena, const char *kind, struct slice name)
{
    return arena_printf(arena,
                        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
                        "allowed: %s: %.*s",
                        kind, SLICE_ARG(name));
}

/* Keeps the index key that is looked into. */
struct index_search {
    const struct path_places *places;
    struct slice found;
};

static bool visit_index_key(void *context, const struct index_key *key)
{
    struct index_search *search = context;
    if (!any_looks_into(search->places, key->name)) return true;
    search->found = key->name;
    return false;
}

struct slice key_path_fault(struct arena *arena, const struct table *table, const struct condition *condition,
                            const struct update *update, const struct projection *projection)
{
    struct path_places places = {condition, update, projection};
    if (!condition && !update && !projection) return SLICE_NONE;
    if (any_looks_into(&places, table->keys.hash)) return path_fault(arena, "Key", table->keys.hash);
    if (table->keys.range.len && any_looks_into(&places, table->keys.range))
        return path_fault(arena, "Key", table->keys.range);
    struct index_search search = {&places, SLICE_NONE};
    if (visit_index_keys(table, visit_index_key, &search)) return SLICE_NONE;
    return path_fault(arena, "IndexKey", search.found);
}

bool check_key_paths(struct api_call *call, const struct table *table, const struct condition *condition,
                     const struct update *update, const struct projection *projection)
{
    return invalid_unless_sound(call, key_path_fault(call->arena, table, condition, update, projection));
}
