/* The parameters of before 2014: Expected and filters as condition trees, KeyConditions as a key condition,
 * AttributesToGet as a projection. They mean what the expressions mean, but are checked in words of their
 * own. */
#include <stdlib.h>

#include "api/items.h"
#include "base/fail.h"

enum { EXPECTED_VALUES, EXPECTED_OPERATOR, EXPECTED_EXISTS, EXPECTED_VALUE };
static const struct shape_member expected_members[] = {
    [EXPECTED_VALUES] = MEMBER("AttributeValueList", shape_value_list),
    [EXPECTED_OPERATOR] = MEMBER("ComparisonOperator", shape_comparison_operator),
    [EXPECTED_EXISTS] = MEMBER("Exists", shape_bool),
    [EXPECTED_VALUE] = MEMBER("Value", shape_attribute_value),
};
static const struct shape shape_expected = STRUCT_SHAPE("ExpectedAttributeValue", expected_members);
const struct shape shape_expected_map = MAP_SHAPE(shape_expected);

enum { CONDITION_VALUES, CONDITION_OPERATOR };
static const struct shape_member condition_members[] = {
    [CONDITION_VALUES] = MEMBER("AttributeValueList", shape_value_list),
    [CONDITION_OPERATOR] = REQUIRED("ComparisonOperator", shape_comparison_operator),
};
static const struct shape shape_condition = STRUCT_SHAPE("Condition", condition_members);
const struct shape shape_condition_map = MAP_SHAPE(shape_condition);

/* ---- comparison operators ---- */

#define TYPE(type) (1u << VALUE_##type)
#define SCALARS    (TYPE(S) | TYPE(N) | TYPE(B))
#define ANY_TYPE   ((1u << VALUE_TYPES) - 1)

struct comparison {
    const char *word;
    enum condition_kind kind;
    uint32_t least, most; /* arguments */
    unsigned types;       /* that the arguments may have */
    enum key_compare key; /* in KeyConditions; KEY_NONE: not there */
};

static const struct comparison comparisons[] = {
    {"EQ", CONDITION_EQ, 1, 1, ANY_TYPE, KEY_EQ},
    {"NE", CONDITION_NE, 1, 1, ANY_TYPE, KEY_NONE},
    {"LE", CONDITION_LE, 1, 1, SCALARS, KEY_LE},
    {"LT", CONDITION_LT, 1, 1, SCALARS, KEY_LT},
    {"GE", CONDITION_GE, 1, 1, SCALARS, KEY_GE},
    {"GT", CONDITION_GT, 1, 1, SCALARS, KEY_GT},
    {"BETWEEN", CONDITION_BETWEEN, 2, 2, SCALARS, KEY_BETWEEN},
    {"BEGINS_WITH", CONDITION_BEGINS_WITH, 1, 1, TYPE(S) | TYPE(B), KEY_BEGINS_WITH},
    {"IN", CONDITION_IN, 1, UINT32_MAX, SCALARS, KEY_NONE},
    {"CONTAINS", CONDITION_CONTAINS, 1, 1, SCALARS | TYPE(BOOL) | TYPE(NULL), KEY_NONE},
    {"NOT_CONTAINS", CONDITION_NOT_CONTAINS, 1, 1, SCALARS | TYPE(BOOL) | TYPE(NULL), KEY_NONE},
    {"NULL", CONDITION_NOT_EXISTS, 0, 0, ANY_TYPE, KEY_NONE},
    {"NOT_NULL", CONDITION_EXISTS, 0, 0, ANY_TYPE, KEY_NONE},
};

static const struct comparison *find_comparison(const struct node *word)
{
    size_t i = 0;
    while (!node_says(word, comparisons[i].word)) {
        i++;
        ensure(i < sizeof comparisons / sizeof *comparisons); /* the shape lets no other word pass */
    }
    return &comparisons[i];
}

/* The arguments of one comparison, whether they came as AttributeValueList or as the single Value. */
struct arguments {
    const struct node *nodes;
    uint32_t count;
};

static struct arguments list_arguments(const struct node *list)
{
    return list->present ? (struct arguments){list->elements, list->count} : (struct arguments){NULL, 0};
}

static bool check_argument_faults(struct api_call *call, struct arguments arguments)
{
    for (uint32_t i = 0; i < arguments.count; i++)
        if (arguments.nodes[i].fault.len) return invalid_text(call, arguments.nodes[i].fault);
    return true;
}

static bool check_arguments(struct api_call *call, const struct comparison *comparison,
                            struct arguments arguments)
{
    if (arguments.count < comparison->least || arguments.count > comparison->most)
        return invalid(call,
                       "One or more parameter values were invalid: Invalid number of argument(s) for the %s "
                       "ComparisonOperator",
                       comparison->word);
    for (uint32_t i = 1; i < arguments.count; i++)
        if (arguments.nodes[i].value.type != arguments.nodes[0].value.type)
            return invalid(call, "One or more parameter values were invalid: AttributeValues inside "
                                 "AttributeValueList must be of same type");
    if (arguments.count && !(comparison->types & (1u << arguments.nodes[0].value.type)))
        return invalid(call,
                       "One or more parameter values were invalid: ComparisonOperator %s is not valid for "
                       "%.*s AttributeValue type",
                       comparison->word, SLICE_ARG(value_type_name(arguments.nodes[0].value.type)));
    if (comparison->kind == CONDITION_BETWEEN &&
        value_compare(&arguments.nodes[0].value, &arguments.nodes[1].value) > 0)
        return invalid(call, "The BETWEEN condition was provided a range where the lower bound is greater "
                             "than the upper bound");
    return true;
}

/* ---- condition trees ---- */

static struct path single_path(struct arena *arena, struct slice name)
{
    struct path path = {arena_new(arena, struct path_part), 1};
    path.parts[0].name = name;
    return path;
}

static void make_comparison(struct arena *arena, struct condition *out, enum condition_kind kind,
                            struct slice name, struct arguments arguments)
{
    out->kind = kind;
    out->operand_count = 1 + arguments.count;
    out->operands = arena_zero(arena, out->operand_count * sizeof *out->operands);
    out->operands[0] = (struct operand){.kind = OPERAND_PATH, .path = single_path(arena, name)};
    for (uint32_t i = 0; i < arguments.count; i++)
        out->operands[i + 1] = (struct operand){.kind = OPERAND_VALUE, .value = &arguments.nodes[i].value};
}

/* Joins the comparisons into a balanced tree: a request may hold so many that a chain would be too deep to
 * walk. */
static struct condition *join(struct arena *arena, struct condition *leaves, uint32_t count,
                              enum condition_kind kind)
{
    if (count == 1) return leaves;
    struct condition *both = arena_new(arena, struct condition);
    uint32_t half = count / 2;
    both->kind = kind;
    both->left = join(arena, leaves, half, kind);
    both->right = join(arena, leaves + half, count - half, kind);
    return both;
}

static bool join_all(struct api_call *call, struct condition *leaves, uint32_t count,
                     const struct node *conditional_operator, struct condition **out)
{
    if (conditional_operator->present && count == 0)
        return invalid(call, "ConditionalOperator cannot be used without Filter or Expected");
    if (conditional_operator->present && count == 1)
        return invalid(call, "ConditionalOperator can only be used when Filter or Expected has two or more "
                             "elements");
    bool any = node_says(conditional_operator, "OR");
    *out = count ? join(call->arena, leaves, count, any ? CONDITION_OR : CONDITION_AND) : NULL;
    return true;
}

/* ---- Expected ---- */

static bool refuse_expected(struct api_call *call, const char *what, struct slice name)
{
    return INVALID(call, SLICE("One or more parameter values were invalid: "), slice_of(what),
                   SLICE(" for Attribute: "), name);
}

static bool expected_comparison(struct api_call *call, const struct node *expected, struct slice name,
                                struct condition *out)
{
    const struct node *values = node_field(expected, EXPECTED_VALUES);
    const struct node *value = node_field(expected, EXPECTED_VALUE);
    const struct comparison *comparison = find_comparison(node_field(expected, EXPECTED_OPERATOR));
    if (node_field(expected, EXPECTED_EXISTS)->present)
        return refuse_expected(call, "Exists and ComparisonOperator cannot be used together", name);
    if (comparison->least && !values->present && !value->present)
        return INVALID(call,
                       SLICE("One or more parameter values were invalid: Value or AttributeValueList must be "
                             "used with ComparisonOperator: "),
                       slice_of(comparison->word), SLICE(" for Attribute: "), name);
    struct arguments arguments = list_arguments(values);
    if (value->present) arguments = (struct arguments){value, 1};
    if (!check_argument_faults(call, arguments) || !check_arguments(call, comparison, arguments))
        return false;
    make_comparison(call->arena, out, comparison->kind, name, arguments);
    return true;
}

/* Without an operator: the attribute equals Value, or does not exist. */
static bool expected_existence(struct api_call *call, const struct node *expected, struct slice name,
                               struct condition *out)
{
    const struct node *exists = node_field(expected, EXPECTED_EXISTS);
    const struct node *value = node_field(expected, EXPECTED_VALUE);
    bool must_exist = !exists->present || exists->truth;
    if (must_exist && !value->present)
        return refuse_expected(call,
                               exists->present ? "Value must be provided when Exists is true"
                                               : "Value must be provided when Exists is null",
                               name);
    if (!must_exist && value->present)
        return refuse_expected(call, "Value cannot be used when Exists is false", name);
    if (value->fault.len) return invalid_text(call, value->fault);
    make_comparison(call->arena, out, must_exist ? CONDITION_EQ : CONDITION_NOT_EXISTS, name,
                    (struct arguments){value, must_exist ? 1 : 0});
    return true;
}

static bool expected_entry(struct api_call *call, const struct node_entry *entry, struct condition *out)
{
    const struct node *expected = &entry->node;
    bool has_list = node_field(expected, EXPECTED_VALUES)->present;
    if (!check_attribute_name(call, entry->key)) return false;
    if (has_list && node_field(expected, EXPECTED_VALUE)->present)
        return refuse_expected(call, "Value and AttributeValueList cannot be used together", entry->key);
    if (node_field(expected, EXPECTED_OPERATOR)->present)
        return expected_comparison(call, expected, entry->key, out);
    if (has_list)
        return refuse_expected(call, "AttributeValueList can only be used with a ComparisonOperator",
                               entry->key);
    return expected_existence(call, expected, entry->key, out);
}

bool expected_to_condition(struct api_call *call, const struct node *expected,
                           const struct node *conditional_operator, struct condition **out)
{
    uint32_t count = expected->present ? expected->count : 0;
    struct condition *leaves = arena_zero(call->arena, count * sizeof *leaves);
    for (uint32_t i = 0; i < count; i++)
        if (!expected_entry(call, &expected->entries[i], &leaves[i])) return false;
    return join_all(call, leaves, count, conditional_operator, out);
}

/* ---- QueryFilter, ScanFilter, KeyConditions ---- */

static bool check_condition(struct api_call *call, const struct node_entry *entry)
{
    if (!check_attribute_name(call, entry->key)) return false;
    if (!entry->node.present)
        return INVALID(call, SLICE("The filter condition for an attribute cannot be null: "), entry->key);
    struct arguments arguments = list_arguments(node_field(&entry->node, CONDITION_VALUES));
    return check_argument_faults(call, arguments) &&
           check_arguments(call, find_comparison(node_field(&entry->node, CONDITION_OPERATOR)), arguments);
}

bool filter_to_condition(struct api_call *call, const struct node *filter,
                         const struct node *conditional_operator, struct condition **out)
{
    uint32_t count = filter->present ? filter->count : 0;
    struct condition *leaves = arena_zero(call->arena, count * sizeof *leaves);
    for (uint32_t i = 0; i < count; i++) {
        const struct node_entry *entry = &filter->entries[i];
        if (!check_condition(call, entry)) return false;
        make_comparison(call->arena, &leaves[i],
                        find_comparison(node_field(&entry->node, CONDITION_OPERATOR))->kind, entry->key,
                        list_arguments(node_field(&entry->node, CONDITION_VALUES)));
    }
    return join_all(call, leaves, count, conditional_operator, out);
}

bool key_conditions_to_terms(struct api_call *call, const struct node *conditions, struct key_terms *out)
{
    struct slice fault;
    *out = (struct key_terms){arena_array(call->arena, struct key_term, conditions->count),
                              conditions->count};
    for (uint32_t i = 0; i < conditions->count; i++) {
        const struct node_entry *entry = &conditions->entries[i];
        if (!check_condition(call, entry)) return false;
        struct arguments arguments = list_arguments(node_field(&entry->node, CONDITION_VALUES));
        struct key_term *term = &out->list[i];
        *term = (struct key_term){
            .name = entry->key,
            .compare = find_comparison(node_field(&entry->node, CONDITION_OPERATOR))->key};
        if (term->compare == KEY_NONE) continue; /* refused when it is bound, whatever it compares with */
        while (term->value_count < arguments.count) {
            term->values[term->value_count] = &arguments.nodes[term->value_count].value;
            term->value_count++;
        }
    }
    return out->count || key_terms_are_plain(call->arena, out, &fault) || invalid_text(call, fault);
}

/* ---- AttributesToGet ---- */

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct path *)a)->parts[0].name, ((const struct path *)b)->parts[0].name);
}

bool attributes_to_projection(struct api_call *call, const struct node *attributes, struct projection **out)
{
    if (!attributes->present) return true;
    struct projection *projection = arena_new(call->arena, struct projection);
    projection->paths = arena_array(call->arena, struct path, attributes->count);
    projection->count = attributes->count;
    for (uint32_t i = 0; i < attributes->count; i++) {
        struct slice name = attributes->elements[i].present ? attributes->elements[i].text : SLICE_NONE;
        if (!check_attribute_name(call, name)) return false;
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(name, projection->paths[j].parts[0].name))
                return INVALID(
                    call,
                    SLICE("One or more parameter values were invalid: Duplicate value in attribute name: "),
                    name);
        projection->paths[i] = single_path(call->arena, name);
    }
    qsort(projection->paths, projection->count, sizeof *projection->paths,
          by_name); /* as the parser leaves them */
    *out = projection;
    return true;
}
