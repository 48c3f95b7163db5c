/* The shared shapes. The order of an enum's words is the order in which the service prints them. */
#include "api/shapes.h"

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool is_plain_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_name_character(text.data[i])) return false;
    return text.len > 0;
}

const struct shape shape_string = {.kind = SHAPE_STRING};
const struct shape shape_bool = {.kind = SHAPE_BOOL};
const struct shape shape_long = {.kind = SHAPE_LONG};
const struct shape shape_expression = {.kind = SHAPE_STRING};
const struct shape shape_limit = {.kind = SHAPE_INT, .has_min = true, .min = 1};
const struct shape shape_limit_terse = {.kind = SHAPE_INT, .has_min = true, .min = 1, .terse = true};
const struct shape shape_segment = {
    .kind = SHAPE_INT, .has_min = true, .min = 0, .has_max = true, .max = LIMIT_SCAN_SEGMENTS - 1};
const struct shape shape_segments = {
    .kind = SHAPE_INT, .has_min = true, .min = 1, .has_max = true, .max = LIMIT_SCAN_SEGMENTS};

const struct shape shape_table_name = {NAME_RULES(1), .table_name = TABLE_NAME_OF_ITEMS};
const struct shape shape_table_name_strict = {NAME_RULES(3), .length_first = true,
                                              .table_name = TABLE_NAME_STRICT};
const struct shape shape_table_key = {
    .kind = SHAPE_STRING, .has_min = true, .min = 1, .has_max = true, .max = 1024};
const struct shape shape_index_name = {NAME_RULES(3), .length_first = true};
const struct shape shape_name_list = LIST_SHAPE_SIZED(shape_string, 1, 255);
const struct shape shape_name_map = MAP_SHAPE(shape_string);

const struct shape shape_attribute_value = {.kind = SHAPE_VALUE, .type_name = "AttributeValue"};
const struct shape shape_value_map = MAP_SHAPE(shape_attribute_value);
const struct shape shape_value_list = LIST_SHAPE(shape_attribute_value);

static const char *const return_capacity[] = {"INDEXES", "TOTAL", "NONE", NULL};
static const char *const return_metrics[] = {"SIZE", "NONE", NULL};
static const char *const return_values[] = {"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW", NULL};
static const char *const return_on_check_failure[] = {"ALL_OLD", "NONE", NULL};
static const char *const select_words[] = {"SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES",
                                           "ALL_PROJECTED_ATTRIBUTES", NULL};
static const char *const comparison_operators[] = {"IN",          "NULL", "BETWEEN",  "LT", "NOT_CONTAINS",
                                                   "EQ",          "GT",   "NOT_NULL", "NE", "LE",
                                                   "BEGINS_WITH", "GE",   "CONTAINS", NULL};
static const char *const conditional_operators[] = {"OR", "AND", NULL};

const struct shape shape_return_capacity = ENUM_SHAPE(return_capacity);
const struct shape shape_return_metrics = ENUM_SHAPE(return_metrics);
const struct shape shape_return_values = ENUM_SHAPE(return_values);
const struct shape shape_return_on_check_failure = ENUM_SHAPE(return_on_check_failure);
const struct shape shape_select = ENUM_SHAPE(select_words);
const struct shape shape_comparison_operator = ENUM_SHAPE(comparison_operators);
const struct shape shape_conditional_operator = ENUM_SHAPE(conditional_operators);
