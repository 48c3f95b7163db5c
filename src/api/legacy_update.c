/* AttributeUpdates as an update. */
#include "api/items.h"

enum { UPDATE_ACTION_WORD, UPDATE_ACTION_VALUE };
static const char *const action_words[] = {"ADD", "PUT", "DELETE", NULL};
static const struct shape shape_action = ENUM_SHAPE(action_words);
static const struct shape_member update_members[] = {
    [UPDATE_ACTION_WORD] = MEMBER("Action", shape_action),
    [UPDATE_ACTION_VALUE] = MEMBER("Value", shape_attribute_value),
};
static const struct shape shape_attribute_update = STRUCT_SHAPE("AttributeValueUpdate", update_members);
const struct shape shape_attribute_updates = MAP_SHAPE(shape_attribute_update);

static bool is_set(enum value_type type)
{
    return type == VALUE_SS || type == VALUE_NS || type == VALUE_BS;
}

static bool check_update(struct api_call *call, const struct node *word, const struct node *value)
{
    if (value->present && value->fault.len) return invalid_text(call, value->fault);
    if (!value->present)
        return node_says(word, "DELETE") ||
               invalid(call, "One or more parameter values were invalid: Only DELETE action is allowed when "
                             "no attribute value is specified");
    enum value_type type = value->value.type;
    if (node_says(word, "DELETE") && !is_set(type))
        return invalid(call,
                       "One or more parameter values were invalid: DELETE action with value is not supported "
                       "for the type %.*s",
                       SLICE_ARG(value_type_name(type)));
    if (node_says(word, "ADD") && !is_set(type) && type != VALUE_N && type != VALUE_L)
        return invalid(call,
                       "One or more parameter values were invalid: ADD action is not supported for the type "
                       "%.*s",
                       SLICE_ARG(value_type_name(type)));
    return true;
}

static struct update_operand *new_operand(struct arena *arena, enum update_operand_kind kind)
{
    struct update_operand *operand = arena_new(arena, struct update_operand);
    operand->kind = kind;
    return operand;
}

/* ADD of a list appends it: list_append(if_not_exists(a, []), value). */
static void make_append(struct arena *arena, struct update_action *action, const struct value *value)
{
    static const struct value empty_list = {.type = VALUE_L};
    struct update_operand *append = new_operand(arena, UPDATE_OPERAND_LIST_APPEND);
    struct update_operand *old = new_operand(arena, UPDATE_OPERAND_IF_NOT_EXISTS);
    old->path = action->path;
    old->right = new_operand(arena, UPDATE_OPERAND_VALUE);
    old->right->value = &empty_list;
    append->left = old;
    append->right = new_operand(arena, UPDATE_OPERAND_VALUE);
    append->right->value = value;
    action->verb = UPDATE_SET;
    action->left = append;
}

static void make_action(struct arena *arena, struct update_action *action, struct slice name,
                        const struct node *word, const struct node *value)
{
    action->path = (struct path){arena_new(arena, struct path_part), 1};
    action->path.parts[0].name = name;
    action->value = &value->value;
    if (node_says(word, "ADD") && value->value.type == VALUE_L) {
        make_append(arena, action, &value->value);
    } else if (node_says(word, "ADD")) {
        action->verb = UPDATE_ADD;
    } else if (node_says(word, "DELETE")) {
        action->verb = value->present ? UPDATE_DELETE : UPDATE_REMOVE;
    } else {
        action->verb = UPDATE_SET;
        action->left = new_operand(arena, UPDATE_OPERAND_VALUE);
        action->left->value = &value->value;
    }
}

bool attribute_updates_to_update(struct api_call *call, const struct node *updates, struct update **out)
{
    if (!updates->present) return true;
    struct update *update = arena_new(call->arena, struct update);
    update->count = updates->count;
    update->actions = arena_zero(call->arena, updates->count * sizeof *update->actions);
    for (uint32_t i = 0; i < updates->count; i++) {
        const struct node_entry *entry = &updates->entries[i];
        const struct node *word = node_field(&entry->node, UPDATE_ACTION_WORD);
        const struct node *value = node_field(&entry->node, UPDATE_ACTION_VALUE);
        if (!check_attribute_name(call, entry->key) || !check_update(call, word, value)) return false;
        make_action(call->arena, &update->actions[i], entry->key, word, value);
    }
    *out = update;
    return true;
}

struct slice legacy_update_fault(struct slice fault)
{
    if (slice_equal(fault, SLICE("An operand in the update expression has an incorrect data type")))
        return SLICE("Type mismatch for attribute to update");
    return fault;
}
