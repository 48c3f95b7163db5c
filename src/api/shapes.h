/* Shapes that several operations share, and the macros in which every operation writes down its own.
 *
 * An operation numbers its members in an enum, in the order in which the service checks them, and lists them
 * by that number:
 *
 *     enum { GET_TABLE_NAME, GET_KEY };
 *     static const struct shape_member get_members[] = {
 *         [GET_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
 *         [GET_KEY] = REQUIRED("Key", shape_value_map),
 *     };
 *     static const struct shape get_shape = STRUCT_SHAPE("GetItemInput", get_members);
 *
 * so that node_member(input, GET_KEY) cannot drift from the list. */
#ifndef API_SHAPES_H
#define API_SHAPES_H

#include "api/internal.h"

/* A slice that a static initializer may hold. */
#define TEXT(literal)                                                                                        \
    {                                                                                                        \
        "" literal, sizeof(literal) - 1                                                                      \
    }

#define MEMBER(literal, of_shape)                                                                            \
    {                                                                                                        \
        {"" literal, sizeof(literal) - 1}, &(of_shape), false                                                \
    }
#define REQUIRED(literal, of_shape)                                                                          \
    {                                                                                                        \
        {"" literal, sizeof(literal) - 1}, &(of_shape), true                                                 \
    }

#define STRUCT_SHAPE(type, list)                                                                             \
    {                                                                                                        \
        .kind = SHAPE_STRUCT, .type_name = (type), .members = (list),                                        \
        .member_count = sizeof(list) / sizeof *(list)                                                        \
    }
#define LIST_SHAPE(of_shape)                                                                                 \
    {                                                                                                        \
        .kind = SHAPE_LIST, .of = &(of_shape)                                                                \
    }
#define LIST_SHAPE_SIZED(of_shape, least, most)                                                              \
    {                                                                                                        \
        .kind = SHAPE_LIST, .of = &(of_shape), .has_min = true, .min = (least), .has_max = true,             \
        .max = (most)                                                                                        \
    }
#define MAP_SHAPE(of_shape)                                                                                  \
    {                                                                                                        \
        .kind = SHAPE_MAP, .of = &(of_shape)                                                                 \
    }
#define ENUM_SHAPE(list)                                                                                     \
    {                                                                                                        \
        .kind = SHAPE_STRING, .choices = (list)                                                              \
    }
#define STRING_SHAPE_SIZED(least, most)                                                                      \
    {                                                                                                        \
        .kind = SHAPE_STRING, .has_min = true, .min = (least), .has_max = true, .max = (most)                \
    }

/* True for one or more of the characters that names of tables and indexes may have. */
bool is_plain_name(struct slice text);

/* What names of tables and indexes must satisfy: a shape begins with these. */
#define NAME_RULES(least)                                                                                    \
    .kind = SHAPE_STRING, .has_min = true, .min = (least), .has_max = true, .max = 255,                      \
    .pattern = "[a-zA-Z0-9_.-]+", .matches = is_plain_name

/* ---- plain ones ---- */
extern const struct shape shape_string, shape_bool, shape_long;
extern const struct shape shape_expression;  /* any string: its length is judged with its content */
extern const struct shape shape_limit;       /* an integer from 1 */
extern const struct shape shape_limit_terse; /* the same as Query says it */
extern const struct shape shape_segment;     /* from 0 to 999999 */
extern const struct shape shape_segments;    /* from 1 to 1000000 */

/* ---- names ---- */
extern const struct shape shape_table_name;        /* in operations on items */
extern const struct shape shape_table_name_strict; /* in operations on tables */
extern const struct shape shape_table_key;         /* the keys of RequestItems */
extern const struct shape shape_index_name;
extern const struct shape shape_name_list; /* AttributesToGet */
extern const struct shape shape_name_map;  /* ExpressionAttributeNames */

/* ---- values ---- */
extern const struct shape shape_attribute_value;
extern const struct shape shape_value_map;  /* Item, Key, ExpressionAttributeValues, ExclusiveStartKey */
extern const struct shape shape_value_list; /* AttributeValueList */

/* ---- enums ---- */
extern const struct shape shape_return_capacity, shape_return_metrics, shape_return_values;
extern const struct shape shape_return_on_check_failure, shape_select;
extern const struct shape shape_comparison_operator, shape_conditional_operator;

#endif
