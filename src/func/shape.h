/* Requests of AWS's services as tables: what members an operation has, where each stands (path, query, header or body)
 * and what it must satisfy. One reader checks them all and refuses what breaks a constraint in the services' words, all
 * violations in one message. A part of func.h, for Lambda's API here and what else is served like it. */
#ifndef FUNC_SHAPE_H
#define FUNC_SHAPE_H

#include "rest/rest.h"

enum shape_kind {
    SHAPE_STRING,
    SHAPE_INTEGER,
    SHAPE_DOUBLE,
    SHAPE_BOOL,
    SHAPE_TIME, /* seconds since 1970, or a text; `integer` has milliseconds */
    SHAPE_BLOB,
    SHAPE_STRUCT,
    SHAPE_LIST,
    SHAPE_MAP,
};

struct shape_field;

struct shape {
    enum shape_kind kind;
    bool has_min, has_max; /* of a length, of a value */
    int64_t min, max;
    const char *pattern; /* as the service shows it */
    bool (*matches)(struct slice text);
    const char *const *choices; /* ended by NULL */
    const struct shape *of;     /* elements, values */
    const struct shape *key;    /* of a map */
    const struct shape_field *fields;
    uint32_t field_count;
};

enum shape_source { FROM_BODY, FROM_PATH, FROM_QUERY, FROM_HEADER };

struct shape_field {
    const char *name; /* as the model has it; in a message its first letter is small */
    const struct shape *shape;
    bool required;
    enum shape_source source;
    const char *wire; /* its name in the query or the header; NULL: `name` */
    uint32_t index;   /* of the path's parameter */
};

struct shape_node {
    const struct shape *shape;
    bool present, truth;
    struct slice text; /* strings; of a blob: still base64 */
    int64_t integer;
    double real;
    struct shape_node *nodes; /* of a struct: one for each field; of a list or map: `count` */
    struct slice *keys; /* of a map */
    uint32_t count;
};

/* Reads a request and checks the constraints. NULL, or the exception that refuses it, with its text. Members that are
 * unknown are ignored, as the service does. */
const char *shape_read(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                       struct shape_node *nodes, struct slice *message);
/* The node as JSON, as it came but without what is unknown; NULL data where it was not given. */
struct slice node_json(const struct shape_node *node, struct arena *arena);

#define FIELD(field_name, field_shape)                                                                       \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape)                                                        \
    }
#define REQUIRED(field_name, field_shape)                                                                    \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .required = true                                      \
    }
#define PATH_FIELD(field_name, field_shape, number)                                                          \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .required = true, .source = FROM_PATH,                  \
        .index = (number)                                                                                    \
    }
#define QUERY_FIELD(field_name, field_shape)                                                                 \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .source = FROM_QUERY                                    \
    }
#define HEADER_FIELD(field_name, field_shape, header_name)                                                   \
    {                                                                                                        \
        .name = (field_name), .shape = &(field_shape), .source = FROM_HEADER, .wire = (header_name)            \
    }
#define STRUCT_OF(list)                                                                                      \
    {                                                                                                        \
        .kind = SHAPE_STRUCT, .fields = (list), .field_count = sizeof(list) / sizeof *(list)                 \
    }
#define TEXT_UP_TO(most)          .kind = SHAPE_STRING, .has_max = true, .max = (most)
#define TEXT_BETWEEN(least, most) TEXT_UP_TO(most), .has_min = true, .min = (least)
#define INTEGER_BETWEEN(least, most)                                                                         \
    {                                                                                                        \
        .kind = SHAPE_INTEGER, .has_min = true, .min = (least), .has_max = true, .max = (most)               \
    }
/* Both define a shape of that name: one of some words, an object with these fields. */
#define CHOICE_SHAPE(name, ...)                                                                              \
    static const char *const name##_choices[] = {__VA_ARGS__, NULL};                                         \
    static const struct shape name = {.kind = SHAPE_STRING, .choices = name##_choices}
#define STRUCT_SHAPE(name, ...)                                                                              \
    static const struct shape_field name##_fields[] = {__VA_ARGS__};                                               \
    static const struct shape name = STRUCT_OF(name##_fields)
#define FIELD_COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

/* Of a list X(NAME, field): the indexes, the table. */
#define FIELD_INDEX(name, ...) name,
#define FIELD_ROW(name, ...)   __VA_ARGS__,

/* ---- texts (lambda_shapes.c) ---- */

/* One or more of letters, digits and the given others. */
bool text_consists_of(struct slice text, const char *others);
bool text_is_number(struct slice text);
bool text_is_account(struct slice text); /* twelve digits */
/* arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE */
struct arn {
    struct slice partition, service, region, account, resource;
};
/* False when it has no such form, or is of another partition than aws, aws-cn, ... */
bool arn_parse(struct slice text, struct arn *out);
/* A time as the services write it: seconds since 1970. */
void seconds_put(struct buf *out, int64_t time_ms);

/* ---- shapes that several operations share (lambda_shapes.c) ---- */

extern const struct shape lambda_shape_text, lambda_shape_bool, lambda_shape_blob;
extern const struct shape lambda_shape_function_name,
    lambda_shape_function_name_long; /* long: with dots, up to 170 */
extern const struct shape lambda_shape_qualifier, lambda_shape_version, lambda_shape_alias,
    lambda_shape_description;
extern const struct shape lambda_shape_max_items, lambda_shape_max_items_50, lambda_shape_tags,
    lambda_shape_destinations;
extern const struct shape lambda_shape_architectures;

/* ---- answers (lambda_answer.c) ---- */

/* Ends the call with what is in its reply. */
void lambda_done(struct rest_call *call, int status);

/* An error in Lambda's form: {"Type":"User","Message":...} with X-Amzn-ErrorType, and done. Answers false, so that who
 * checks can return it: false is STEP_ANSWERED. */
bool lambda_error(struct rest_call *call, int status, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for InvalidParameterValueException, status 400. */
bool lambda_refuse(struct rest_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same where nothing is of that name: ResourceNotFoundException. */
bool lambda_no_resource(struct rest_call *call);
/* shape_read. False: the request was refused, and answered so. */
bool lambda_decode(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                   struct shape_node *nodes);

#endif
