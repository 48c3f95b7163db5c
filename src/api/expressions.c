/* The expression parameters of a request, checked and parsed in the service's order: which parameters may
 * stand together, the placeholders, then each text, at last the placeholders that nobody used. */
#include "api/items.h"

#define EXPRESSION_PARAMETERS 6

/* In the order in which the service prints them. */
struct expression_parameter {
    const char *name;
    const struct node *node;
};

static bool is_given(const struct node *node)
{
    return node && node->present;
}

static void list_parameters(const struct expressions *expressions,
                            struct expression_parameter list[EXPRESSION_PARAMETERS])
{
    list[0] = (struct expression_parameter){"UpdateExpression", expressions->update_text};
    list[1] = (struct expression_parameter){"ConditionExpression", expressions->condition_text};
    list[2] = (struct expression_parameter){"ProjectionExpression", expressions->projection_text};
    list[3] = (struct expression_parameter){"FilterExpression", expressions->filter_text};
    list[4] = (struct expression_parameter){"KeyConditionExpression", expressions->key_condition_text};
    list[5] = (struct expression_parameter){"SearchConditionExpression", expressions->search_text};
}

/* ---- which parameters may stand together ---- */

/* KeyConditions may stand next to other expressions than their own successor. */
static bool is_in_the_way(const struct expressions *expressions, const struct legacy_parameter *parameter)
{
    if (!is_given(parameter->node)) return false;
    return strcmp(parameter->name, "KeyConditions") != 0 || is_given(expressions->key_condition_text);
}

static bool refuse_mixture(struct api_call *call, const struct expressions *expressions,
                           const struct expression_parameter list[EXPRESSION_PARAMETERS])
{
    struct buf message = {0};
    const char *between = "";
    buf_text(&message, "Can not use both expression and non-expression parameters in the same request: "
                       "Non-expression parameters: {");
    for (int i = 0; i < LEGACY_PARAMETERS; i++) {
        const struct legacy_parameter *legacy = &expressions->legacy[i];
        if (!legacy->name || !is_in_the_way(expressions, legacy)) continue;
        buf_printf(&message, "%s%s", between, legacy->name);
        between = ", ";
    }
    buf_text(&message, "} Expression parameters: {");
    between = "";
    for (int i = 0; i < EXPRESSION_PARAMETERS; i++) {
        if (!is_given(list[i].node)) continue;
        buf_printf(&message, "%s%s", between, list[i].name);
        between = ", ";
    }
    buf_byte(&message, '}');
    invalid_text(call, buf_view(&message));
    buf_free(&message);
    return false;
}

/* Values without any expression that could use them; the message lists those of the operation. */
static bool refuse_values(struct api_call *call,
                          const struct expression_parameter list[EXPRESSION_PARAMETERS])
{
    struct buf names = {0};
    unsigned count = 0;
    for (int i = 0; i < EXPRESSION_PARAMETERS; i++) {
        if (!list[i].node || strcmp(list[i].name, "ProjectionExpression") == 0) continue;
        buf_printf(&names, "%s%s", count++ ? " and " : "", list[i].name);
    }
    invalid(call, "ExpressionAttributeValues can only be specified when using expressions: %.*s %s null",
            SLICE_ARG(buf_view(&names)), count > 1 ? "are" : "is");
    buf_free(&names);
    return false;
}

bool expressions_check(struct api_call *call, const struct expressions *expressions)
{
    struct expression_parameter list[EXPRESSION_PARAMETERS];
    bool has_expression = false, has_value_user = false;
    list_parameters(expressions, list);
    for (int i = 0; i < EXPRESSION_PARAMETERS; i++) {
        if (!is_given(list[i].node)) continue;
        has_expression = true;
        if (list[i].node != expressions->projection_text) has_value_user = true;
    }
    for (int i = 0; has_expression && i < LEGACY_PARAMETERS; i++)
        if (expressions->legacy[i].name && is_in_the_way(expressions, &expressions->legacy[i]))
            return refuse_mixture(call, expressions, list);
    if (is_given(expressions->names) && !has_expression)
        return invalid(call, "ExpressionAttributeNames can only be specified when using expressions");
    if (is_given(expressions->values) && !has_value_user) return refuse_values(call, list);
    return true;
}

/* ---- placeholders ---- */

static bool is_word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_placeholder(struct slice text, char sign)
{
    if (text.len < 2 || text.data[0] != sign) return false;
    for (size_t i = 1; i < text.len; i++)
        if (!is_word_character(text.data[i])) return false;
    return true;
}

static bool check_name_key(struct api_call *call, struct slice key)
{
    if (!is_placeholder(key, '#'))
        return INVALID(call, SLICE("ExpressionAttributeNames contains invalid key: Syntax error; key: \""),
                       key, SLICE("\""));
    if (key.len > LIMIT_PLACEHOLDER_BYTES)
        return invalid(call,
                       "ExpressionAttributeNames contains invalid key: The expression attribute map contains "
                       "a key that is too long; size of key: %zu",
                       key.len);
    return true;
}

static bool check_name(struct api_call *call, const struct node_entry *entry)
{
    struct slice name = entry->node.present ? entry->node.text : SLICE_NONE;
    if (name.len == 0)
        return invalid(call,
                       "ExpressionAttributeNames contains invalid value: Empty attribute name for key %.*s",
                       SLICE_ARG(entry->key));
    if (name.len > LIMIT_ATTRIBUTE_NAME_BYTES)
        return invalid(
            call,
            "ExpressionAttributeNames contains invalid value: Attribute name is too large, must be "
            "less than 65536 bytes for key %.*s",
            SLICE_ARG(entry->key));
    return true;
}

static bool take_names(struct api_call *call, const struct node *node, struct expr_params *params)
{
    size_t bytes = 0;
    if (node->count == 0) return invalid(call, "ExpressionAttributeNames must not be empty");
    for (uint32_t i = 0; i < node->count; i++)
        if (!check_name_key(call, node->entries[i].key)) return false;
    params->names = arena_array(call->arena, struct expr_name, node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        if (!check_name(call, entry)) return false;
        params->names[i] = (struct expr_name){entry->key, entry->node.text, false};
        bytes += entry->key.len + entry->node.text.len;
    }
    params->name_count = node->count;
    params->has_names = true;
    if (bytes > LIMIT_PARAMETERS_BYTES) return invalid(call, "ExpressionAttributeNames exceeds max size");
    return true;
}

static bool check_value_key(struct api_call *call, struct slice key)
{
    if (!is_placeholder(key, ':'))
        return INVALID(call, SLICE("ExpressionAttributeValues contains invalid key: Syntax error; key: \""),
                       key, SLICE("\""));
    if (key.len > LIMIT_PLACEHOLDER_BYTES)
        return invalid(call, "ExpressionAttributeValues contains invalid key: The expression attribute map "
                             "contains a key that is too long;");
    return true;
}

/* Too deep a value is told as in an item, without saying where it stood. */
static bool refuse_value(struct api_call *call, const struct node_entry *entry)
{
    if (slice_starts(entry->node.fault, SLICE("Nesting Levels")))
        return invalid_text(call, entry->node.fault);
    return INVALID(call, SLICE("ExpressionAttributeValues contains invalid value: "), entry->node.fault,
                   SLICE(" for key "), entry->key);
}

/* Measures only what could be too large: no value is larger than the text it came from. */
static bool check_values_size(struct api_call *call, const struct expr_params *params)
{
    size_t bytes = 0;
    if (call->body.len <= LIMIT_PARAMETERS_BYTES) return true;
    for (uint32_t i = 0; i < params->value_count; i++)
        bytes += params->values[i].placeholder.len + value_size(&params->values[i].value);
    if (bytes > LIMIT_PARAMETERS_BYTES) return invalid(call, "ExpressionAttributeValues exceeds max size");
    return true;
}

static bool take_values(struct api_call *call, const struct node *node, struct expr_params *params)
{
    if (node->count == 0) return invalid(call, "ExpressionAttributeValues must not be empty");
    for (uint32_t i = 0; i < node->count; i++)
        if (!check_value_key(call, node->entries[i].key)) return false;
    params->values = arena_array(call->arena, struct expr_value, node->count);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node_entry *entry = &node->entries[i];
        if (entry->node.fault.len) return refuse_value(call, entry);
        params->values[i] = (struct expr_value){entry->key, entry->node.value, false};
    }
    params->value_count = node->count;
    params->has_values = true;
    return check_values_size(call, params);
}

/* ---- the texts ---- */

static bool parse_condition(struct api_call *call, struct expressions *expressions, enum expr_kind kind,
                            const struct node *text, struct condition **out)
{
    struct slice fault;
    if (!is_given(text)) return true;
    *out = condition_parse(call->arena, kind, text->text, &expressions->params, &fault);
    return *out || invalid_text(call, fault);
}

static bool parse_update(struct api_call *call, struct expressions *expressions)
{
    struct slice fault;
    if (!is_given(expressions->update_text)) return true;
    expressions->update = update_parse(call->arena, expressions->update_text->text, &expressions->params,
                                       &fault);
    return expressions->update || invalid_text(call, fault);
}

static bool parse_projection(struct api_call *call, struct expressions *expressions)
{
    struct slice fault;
    if (!is_given(expressions->projection_text)) return true;
    expressions->projection = arena_new(call->arena, struct projection);
    return projection_parse(call->arena, expressions->projection_text->text, &expressions->params,
                            expressions->projection, &fault) ||
           invalid_text(call, fault);
}

bool expressions_parse(struct api_call *call, struct expressions *expressions)
{
    struct expr_params *params = &expressions->params;
    struct slice fault;
    if (is_given(expressions->names) && !take_names(call, expressions->names, params)) return false;
    if (is_given(expressions->values) && !take_values(call, expressions->values, params)) return false;
    if (!parse_update(call, expressions) ||
        !parse_condition(call, expressions, EXPR_CONDITION, expressions->condition_text,
                         &expressions->condition) ||
        !parse_condition(call, expressions, EXPR_KEY_CONDITION, expressions->key_condition_text,
                         &expressions->key_condition) ||
        !parse_condition(call, expressions, EXPR_SEARCH_CONDITION, expressions->search_text,
                         &expressions->search) ||
        !parse_condition(call, expressions, EXPR_FILTER, expressions->filter_text, &expressions->filter) ||
        !parse_projection(call, expressions))
        return false;
    if (params->name_count == 0 && params->value_count == 0) return true;
    return expr_params_all_used(call->arena, params, &fault) || invalid_text(call, fault);
}
