/* What the operations on tables share: the shapes of their requests, the way from a request to a definition
 * with all of the service's checks, and the way from a definition to a TableDescription.
 *
 * Checks that depend on the table run on the writer's thread, where nothing can change between check and
 * write. There no reply may be written, so every check of this part leaves its sentence in a verdict, and the
 * operation tells it when its turn comes. */
#ifndef API_TABLES_H
#define API_TABLES_H

#include "api/shapes.h"

#define INVALID_VALUES "One or more parameter values were invalid: "
#define DAY_MS         (24 * 3600 * INT64_C(1000)) /* decreases of throughput are counted by the day */

/* ---- verdicts ---- */

struct verdict {
    struct arena *arena;
    const char *error; /* the exception's short name; NULL while nothing is wrong */
    struct slice message;
};

/* Each answers false, so that a check can `return reject(...)`. */
bool reject(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool reject_as(struct verdict *verdict, const char *short_name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True when nothing was wrong; else the call is refused with what was. */
bool verdict_tell(struct api_call *call, const struct verdict *verdict);

/* ---- shapes ---- */

enum { ATTRIBUTE_NAME, ATTRIBUTE_TYPE };
enum { KEY_NAME, KEY_TYPE };
enum { PROJECTION_TYPE, PROJECTION_NON_KEY };
enum { UNITS_WRITE, UNITS_READ };
enum { ON_DEMAND_READ, ON_DEMAND_WRITE };
enum { WARM_READ, WARM_WRITE };
enum { LOCAL_NAME, LOCAL_KEYS, LOCAL_PROJECTION };
enum { GLOBAL_NAME, GLOBAL_PROJECTION, GLOBAL_UNITS, GLOBAL_KEYS, GLOBAL_ON_DEMAND, GLOBAL_WARM };
enum { STREAM_ENABLED, STREAM_VIEW };
enum { SSE_ENABLED, SSE_TYPE, SSE_KEY };
enum { TAG_KEY, TAG_VALUE };

extern const struct shape shape_attribute_definitions, shape_key_schema, shape_units, shape_on_demand,
    shape_warm;
extern const struct shape shape_local_indexes, shape_global_indexes, shape_global_index_create;
extern const struct shape shape_billing_mode, shape_stream, shape_sse, shape_tags, shape_table_class;
extern const struct shape shape_unsupported_list,
    shape_unsupported_struct; /* known, and refused where given */

/* ---- from requests to definitions (table_define.c, table_settings.c) ---- */

struct attributes {
    struct key_attribute *list;
    uint32_t count;
};

bool define_attributes(struct verdict *verdict, const struct node *list, struct attributes *out);
bool define_keys(struct verdict *verdict, const struct node *key_schema, const struct attributes *attributes,
                 struct table_definition *out);
/* Appends to out->indexes, which has room for as many as the request names. */
bool define_local_indexes(struct verdict *verdict, const struct node *list, struct table_definition *out);
bool define_global_indexes(struct verdict *verdict, const struct node *list, struct table_definition *out);
/* One global index, whose keys must be among the attributes. */
bool define_global_index(struct verdict *verdict, const struct node *node,
                         const struct attributes *attributes, bool on_demand, struct index_definition *out);
bool is_index_key(const struct index_definition *index, struct slice name);
struct index_definition *definition_index(const struct table_definition *definition, struct slice name);
/* True when the table or one of its indexes has the attribute as a key. */
bool definition_uses(const struct table_definition *definition, struct slice name);

/* Attributes that are defined and no key. */
bool check_all_used(struct verdict *verdict, const struct table_definition *definition);
/* What all indexes together name as NonKeyAttributes. */
bool check_projected(struct verdict *verdict, const struct table_definition *definition);

/* Units above what the service can count. */
bool check_units(struct verdict *verdict, const struct node *units);
void take_units(const struct node *units, struct throughput *out);
/* Warm throughput, where it is given. */
bool define_warm(struct verdict *verdict, const struct node *node, struct throughput *out);
/* The ceilings of an on-demand table or index; removable: -1 takes one away. */
bool define_on_demand(struct verdict *verdict, const struct node *node, bool removable,
                      struct throughput *out);
/* The first member of OnDemandThroughput that is there, for messages; NULL when none is. */
const char *on_demand_member(const struct node *node);

extern const struct throughput throughput_none;

enum stream_view stream_view_from_node(const struct node *view);
const char *stream_view_name(enum stream_view view);
void define_encryption(const struct node *sse, struct table_definition *out);

/* ---- from definitions to TableDescription (table_describe.c) ---- */

struct description {
    const struct api *api;
    const struct table_definition *definition;
    const struct table_definition *before; /* UPDATING: what it was; else NULL */
    const char *status;                    /* CREATING, ACTIVE, UPDATING, DELETING */
    int64_t items, bytes, now_ms;
    const struct table *table; /* for the counts of its indexes; NULL: they hold nothing yet */
};

void table_describe(struct buf *out, const struct description *description);
/* ,"name":... behind another member; times are seconds with a fraction. */
void put_text(struct buf *out, const char *name, struct slice text);
void put_int(struct buf *out, const char *name, int64_t value);
void put_time(struct buf *out, const char *name, int64_t time_ms);
/* 2026-11-15T04:13:25.340 */
void put_stream_label(struct buf *out, int64_t time_ms);

#endif
