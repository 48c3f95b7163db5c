/* Phases 3 and 4 where conditions and updates agree: words, then binding and the checks on operands.
 *
 * One table says all that is to be known of an operation. The order of the checks inside each function is the
 * service's: an expression with several faults must report the one that the service reports. */
#include "expr/parse.h"

#include "base/fail.h"
#include "base/limits.h"

#define INDEX_MAX INT32_MAX

/* Sets of types, as bits. */
#define TYPE(type)      (1u << (type))
#define TYPES_ALL       ((1u << VALUE_TYPES) - 1)
#define TYPES_ORDERED   (TYPE(VALUE_S) | TYPE(VALUE_N) | TYPE(VALUE_B))
#define TYPES_BEGINNING (TYPE(VALUE_S) | TYPE(VALUE_B))
#define TYPES_MEASURED  (TYPES_ALL & ~(TYPE(VALUE_N) | TYPE(VALUE_BOOL) | TYPE(VALUE_NULL)))

/* Who may use a function. */
enum users { USERS_NONE, USERS_CONDITIONS, USERS_UPDATES };

struct operation_facts {
    struct slice name;
    uint32_t operand_count; /* 0: as many as the grammar lets through */
    unsigned types;         /* of operands that are known before any item is */
    enum users users;       /* of functions */
    bool wants_path;        /* its first operand must be one */
    bool wants_distinct;    /* its first operand must not be the same path as another */
};

static const struct operation_facts facts[] = {
    [EXPR_OP_AND] = {.name = {"AND", 3}, .types = TYPES_ALL},
    [EXPR_OP_OR] = {.name = {"OR", 2}, .types = TYPES_ALL},
    [EXPR_OP_NOT] = {.name = {"NOT", 3}, .types = TYPES_ALL},
    [EXPR_OP_EQ] = {.name = {"=", 1}, .types = TYPES_ALL, .wants_distinct = true},
    [EXPR_OP_NE] = {.name = {"<>", 2}, .types = TYPES_ALL, .wants_distinct = true},
    [EXPR_OP_LT] = {.name = {"<", 1}, .types = TYPES_ORDERED, .wants_distinct = true},
    [EXPR_OP_LE] = {.name = {"<=", 2}, .types = TYPES_ORDERED, .wants_distinct = true},
    [EXPR_OP_GT] = {.name = {">", 1}, .types = TYPES_ORDERED, .wants_distinct = true},
    [EXPR_OP_GE] = {.name = {">=", 2}, .types = TYPES_ORDERED, .wants_distinct = true},
    [EXPR_OP_BETWEEN] = {.name = {"BETWEEN", 7}, .types = TYPES_ORDERED, .wants_distinct = true},
    [EXPR_OP_IN] = {.name = {"IN", 2}, .types = TYPES_ALL, .wants_distinct = true},
    [EXPR_OP_PLUS] = {.name = {"+", 1}, .types = TYPE(VALUE_N)},
    [EXPR_OP_MINUS] = {.name = {"-", 1}, .types = TYPE(VALUE_N)},
    [EXPR_OP_EXISTS] = {{"attribute_exists", 16}, 1, TYPES_ALL, USERS_CONDITIONS, true, false},
    [EXPR_OP_NOT_EXISTS] = {{"attribute_not_exists", 20}, 1, TYPES_ALL, USERS_CONDITIONS, true, false},
    [EXPR_OP_TYPE] = {{"attribute_type", 14}, 2, TYPES_ALL, USERS_CONDITIONS, false, true},
    [EXPR_OP_BEGINS_WITH] = {{"begins_with", 11}, 2, TYPES_BEGINNING, USERS_CONDITIONS, false, true},
    [EXPR_OP_CONTAINS] = {{"contains", 8}, 2, TYPES_ALL, USERS_CONDITIONS, false, true},
    [EXPR_OP_SIZE] = {{"size", 4}, 1, TYPES_MEASURED, USERS_CONDITIONS, false, false},
    [EXPR_OP_IF_NOT_EXISTS] = {{"if_not_exists", 13}, 2, TYPES_ALL, USERS_UPDATES, true, true},
    [EXPR_OP_LIST_APPEND] = {{"list_append", 11}, 2, TYPE(VALUE_L), USERS_UPDATES, false, false},
    [EXPR_OP_UNKNOWN_FUNCTION] = {.name = {NULL, 0}, .types = TYPES_ALL},
};

struct slice operation_name(const struct expr_node *node)
{
    ensure(node->kind == NODE_OPERATION);
    return node->operation == EXPR_OP_UNKNOWN_FUNCTION ? node->word : facts[node->operation].name;
}

/* ---- phase 3 ---- */

/* size yields a number and stands where operands stand; the other functions of conditions are conditions. Of
 * the update's functions, list_append is a whole value, while if_not_exists may stand in anything. */
static bool is_well_placed(enum expr_operation function, enum place place)
{
    if (function == EXPR_OP_SIZE) return place == PLACE_OPERAND;
    if (function == EXPR_OP_IF_NOT_EXISTS) return place != PLACE_CONDITION;
    if (function == EXPR_OP_LIST_APPEND) return place == PLACE_SET_VALUE;
    return place == PLACE_CONDITION;
}

static bool check_function(struct parser *parser, const struct expr_node *node, enum place place)
{
    struct slice name = operation_name(node);
    enum users users = facts[node->operation].users;
    bool in_update = parser->kind == EXPR_UPDATE;
    if (node->operation == EXPR_OP_UNKNOWN_FUNCTION)
        return REFUSE(parser, SLICE("Invalid function name; function: "), name);
    if (in_update && users != USERS_UPDATES)
        return REFUSE(parser, SLICE("The function is not allowed in an update expression; function: "), name);
    if (!in_update && users != USERS_CONDITIONS)
        return REFUSE(parser, SLICE("The function is not allowed in a condition expression; function: "),
                      name);
    if (is_well_placed(node->operation, place)) return true;
    return REFUSE(
        parser, SLICE("The function is not allowed to be used this way in an expression; function: "), name);
}

bool check_path_words(struct parser *parser, struct path *path)
{
    for (uint32_t i = 0; i < path->count; i++) {
        struct path_part *part = &path->parts[i];
        unsigned long long index;
        if (part->is_index) {
            if (!slice_to_u64(part->name, INDEX_MAX, &index)) {
                return REFUSE(parser, SLICE("List index is not within the allowable range; index: ["),
                              part->name, SLICE("]"));
            }
            part->index = (uint32_t)index;
        } else if (part->name.data[0] != '#' && expr_is_reserved(part->name)) {
            return REFUSE(parser, SLICE("Attribute name is a reserved keyword; reserved keyword: "),
                          part->name);
        }
    }
    return true;
}

bool check_words(struct parser *parser, struct expr_node *node, enum place place)
{
    if (node->kind == NODE_VALUE) return true;
    if (node->kind == NODE_PATH) return check_path_words(parser, &node->path);
    if (node->operation >= EXPR_OP_EXISTS && !check_function(parser, node, place)) return false;
    enum place inner = node->operation <= EXPR_OP_NOT ? PLACE_CONDITION : PLACE_OPERAND;
    for (struct expr_node *operand = node->operands; operand; operand = operand->next) {
        if (!check_words(parser, operand, inner)) return false;
    }
    return true;
}

/* ---- phase 4 ---- */

static bool bind_name(struct parser *parser, struct path_part *part)
{
    struct expr_params *params = parser->params;
    for (uint32_t i = 0; i < params->name_count; i++) {
        if (!slice_equal(params->names[i].placeholder, part->name)) continue;
        params->names[i].used = true;
        part->name = params->names[i].name;
        return true;
    }
    return REFUSE(
        parser,
        SLICE("An expression attribute name used in the document path is not defined; attribute name: "),
        part->name);
}

bool bind_path(struct parser *parser, struct path *path)
{
    if (path->count > LIMIT_NESTING) {
        return REFUSE(parser, SLICE("The document path has too many nesting levels; nesting levels: "),
                      number_slice(parser->arena, path->count));
    }
    if (parser->kind == EXPR_STATEMENT) return true;
    for (uint32_t i = 0; i < path->count; i++) {
        struct path_part *part = &path->parts[i];
        if (!part->is_index && part->name.data[0] == '#' && !bind_name(parser, part)) return false;
    }
    return true;
}

bool bind_value(struct parser *parser, struct slice placeholder, const struct value **out)
{
    struct expr_params *params = parser->params;
    for (uint32_t i = 0; i < params->value_count; i++) {
        if (!slice_equal(params->values[i].placeholder, placeholder)) continue;
        params->values[i].used = true;
        *out = &params->values[i].value;
        return true;
    }
    return REFUSE(parser,
                  SLICE("An expression attribute value used in expression is not defined; attribute value: "),
                  placeholder);
}

bool bind_node(struct parser *parser, struct expr_node *node)
{
    if (node->kind == NODE_PATH) return bind_path(parser, &node->path);
    if (node->kind == NODE_VALUE) return node->value || bind_value(parser, node->word, &node->value);
    for (struct expr_node *operand = node->operands; operand; operand = operand->next) {
        if (!bind_node(parser, operand)) return false;
    }
    return check_operands(parser, node);
}

/* The type that an operand has for every item: NULL where it depends on the item. */
static bool known_type(const struct expr_node *node, enum value_type *type)
{
    if (node->kind == NODE_VALUE) {
        *type = node->value->type;
        return true;
    }
    *type = VALUE_N;
    return node->kind == NODE_OPERATION && node->operation == EXPR_OP_SIZE;
}

static bool refuse_type(struct parser *parser, const struct expr_node *node, struct slice type)
{
    return REFUSE(parser, SLICE("Incorrect operand type for operator or function; operator or function: "),
                  operation_name(node), SLICE(", operand type: "), type);
}

static bool check_types(struct parser *parser, const struct expr_node *node)
{
    unsigned types = facts[node->operation].types;
    for (const struct expr_node *operand = node->operands; operand && types != TYPES_ALL;
         operand = operand->next) {
        enum value_type type;
        if (known_type(operand, &type) && !(types & TYPE(type)))
            return refuse_type(parser, node, value_type_name(type));
    }
    return true;
}

static bool check_distinct(struct parser *parser, const struct expr_node *node)
{
    const struct expr_node *first = node->operands;
    if (!facts[node->operation].wants_distinct || first->kind != NODE_PATH) return true;
    for (const struct expr_node *operand = first->next; operand; operand = operand->next) {
        if (operand->kind != NODE_PATH || !path_equal(&first->path, &operand->path)) continue;
        return REFUSE(
            parser,
            SLICE("The first operand must be distinct from the remaining operands for this operator or "
                  "function; operator: "),
            operation_name(node), SLICE(", first operand: "), path_text(parser->arena, &first->path));
    }
    return true;
}

/* The service prints a value as {S:text}; of a binary it shows where Java keeps it, not what it holds. */
static struct slice value_text(struct arena *arena, const struct value *value)
{
    struct slice text, shown = value->bytes;
    if (value->type == VALUE_B) {
        struct slice len = number_slice(arena, value->bytes.len);
        FAULT(arena, &shown, SLICE("java.nio.HeapByteBuffer[pos=0 lim="), len, SLICE(" cap="), len,
              SLICE("]"));
    }
    FAULT(arena, &text, SLICE("AttributeValue: {"), value_type_name(value->type), SLICE(":"), shown,
          SLICE("}"));
    return text;
}

static bool refuse_bounds(struct parser *parser, struct slice what, const struct value *low,
                          const struct value *high)
{
    return REFUSE(parser, SLICE("The BETWEEN operator requires "), what, SLICE("; lower bound operand: "),
                  value_text(parser->arena, low), SLICE(", upper bound operand: "),
                  value_text(parser->arena, high));
}

static bool check_bounds(struct parser *parser, const struct expr_node *node)
{
    const struct value *low = node->operands->next->value, *high = node->operands->next->next->value;
    if (!low || !high) return true;
    if (low->type != high->type)
        return refuse_bounds(parser, SLICE("same data type for lower and upper bounds"), low, high);
    if (value_compare(low, high) > 0)
        return refuse_bounds(parser, SLICE("upper bound to be greater than or equal to lower bound"), low,
                             high);
    return true;
}

/* The second operand names a type, so it must be a string that does. */
static bool check_type_name(struct parser *parser, const struct expr_node *node)
{
    const struct expr_node *second = node->operands->next;
    enum value_type type;
    if (!known_type(second, &type)) return refuse_type(parser, node, SLICE("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"));
    if (type != VALUE_S) return refuse_type(parser, node, value_type_name(type));
    if (value_type_from_name(second->value->bytes, &type)) return true;
    return REFUSE(parser, SLICE("Invalid attribute type name found; type: "), second->value->bytes,
                  parser->kind == EXPR_STATEMENT ? SLICE(", valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}")
                                                 : SLICE(", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"));
}

bool check_operands(struct parser *parser, const struct expr_node *node)
{
    const struct operation_facts *operation = &facts[node->operation];
    if (operation->operand_count && node->operand_count != operation->operand_count) {
        return REFUSE(parser,
                      SLICE("Incorrect number of operands for operator or function; operator or function: "),
                      operation->name, SLICE(", number of operands: "),
                      number_slice(parser->arena, node->operand_count));
    }
    if (operation->wants_path && node->operands->kind != NODE_PATH) {
        return REFUSE(parser, SLICE("Operator or function requires a document path; operator or function: "),
                      operation->name);
    }
    if (!check_types(parser, node) || !check_distinct(parser, node)) return false;
    if (node->operation == EXPR_OP_BETWEEN) return check_bounds(parser, node);
    if (node->operation == EXPR_OP_TYPE) return check_type_name(parser, node);
    if (node->operation == EXPR_OP_IN && node->operand_count - 1 > LIMIT_EXPRESSION_IN) {
        return REFUSE(parser,
                      SLICE("The IN operator is provided with too many operands; number of operands: "),
                      number_slice(parser->arena, node->operand_count - 1));
    }
    return true;
}
