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
#define IN_USE         "Attempt to change a resource which is still in use: "
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

enum { ATTRIBUTE_TYPE, ATTRIBUTE_NAME };
enum { KEY_NAME, KEY_TYPE };
enum { PROJECTION_TYPE, PROJECTION_NON_KEY };
enum { UNITS_WRITE, UNITS_READ };
enum { ON_DEMAND_READ, ON_DEMAND_WRITE };
enum { WARM_READ, WARM_WRITE };
enum { LOCAL_NAME, LOCAL_KEYS, LOCAL_PROJECTION };
enum { GLOBAL_NAME, GLOBAL_PROJECTION, GLOBAL_UNITS, GLOBAL_KEYS, GLOBAL_ON_DEMAND, GLOBAL_WARM };
enum { VECTOR_NAME, VECTOR_ATTRIBUTE, VECTOR_SCHEMA, VECTOR_PROJECTION, VECTOR_DIMENSIONS, VECTOR_DISTANCE };
enum { STREAM_ENABLED, STREAM_VIEW };
enum { SSE_ENABLED, SSE_TYPE, SSE_KEY };
enum { TAG_KEY, TAG_VALUE };

extern const struct shape shape_attribute_definitions, shape_key_schema, shape_units, shape_on_demand,
    shape_warm;
extern const struct shape shape_local_indexes, shape_global_indexes, shape_global_index_create;
extern const struct shape shape_vector_indexes, shape_vector_index_create;
extern const struct shape shape_billing_mode, shape_stream, shape_sse, shape_tags;
extern const struct shape shape_unsupported_list,
    shape_unsupported_struct; /* known, and refused where given */
extern const struct shape shape_projection;

/* ---- from requests to definitions: keys (table_keys.c) ---- */

struct attributes {
    struct key_attribute *list; /* sorted by name, as the service shows them */
    uint32_t count;
};

bool define_attributes(struct verdict *verdict, const struct node *list, struct attributes *out);
void sort_attributes(struct attributes *attributes);
bool define_keys(struct verdict *verdict, const struct node *key_schema, const struct attributes *attributes,
                 struct table_definition *out);
bool define_local_keys(struct verdict *verdict, const struct node *key_schema,
                       const struct table_definition *table, struct index_definition *out);
bool define_global_keys(struct verdict *verdict, const struct node *key_schema,
                        const struct attributes *attributes, struct index_definition *out);
/* Refuses attributes that are defined and no key. */
bool check_all_used(struct verdict *verdict, const struct table_definition *definition);
/* True when the table or one of its indexes has the attribute as a key. */
bool definition_uses(const struct table_definition *definition, struct slice name);

/* ---- indexes (table_indexes.c) ---- */

/* All indexes of a new table, whose own keys and attributes are defined already. */
bool define_indexes(struct verdict *verdict, const struct node *local, const struct node *global,
                    const struct node *vectors, struct table_definition *out);
bool define_projection(struct verdict *verdict, const struct node *node, struct index_definition *out);
/* One global index that is added to a table. Its keys must be among the attributes that the request defines.
 */
bool define_added_index(struct verdict *verdict, const struct node *node, const struct attributes *attributes,
                        bool on_demand, struct index_definition *out);
/* The index whose older entries are still being made, or NULL: the service makes one at a time. */
const struct index_definition *creating_index(const struct table_definition *definition);
struct index_definition *definition_index(const struct table_definition *definition, struct slice name);
/* True when an index of any kind has the name. */
bool definition_has_index(const struct table_definition *definition, struct slice name);
/* What all indexes together name as NonKeyAttributes has a limit. */
bool check_projected(struct verdict *verdict, const struct table_definition *definition);

/* ---- vector indexes (table_vectors.c) ---- */

/* All of a new table, and one that is added to a table; both end up in out->vectors. */
bool define_vectors(struct verdict *verdict, const struct node *list, struct table_definition *out);
bool define_added_vectors(struct verdict *verdict, const struct node *node, const struct attributes *attributes,
                          struct table_definition *out);
/* Refuses a table that has vector indexes and is not, or would not be, on demand. */
bool check_vector_billing(struct verdict *verdict, const struct table_definition *definition);
/* ,"VectorIndexes":[...] */
struct description;
void put_vector_indexes(struct buf *out, const struct description *description);
/* The same as they were asked for: without status and counts. */
void put_vector_definitions(struct buf *out, const struct table_definition *definition);
/* Whether both are the same but for their names. */
bool vectors_are_alike(const struct vector_definition *a, const struct vector_definition *b);
/* The vector index that is being filled, or NULL. */
const struct vector_definition *filling_vectors(const struct table *table);

/* ---- settings (table_settings.c) ---- */

extern const struct throughput throughput_none;

/* Refuses units above what the service can count. */
bool check_units(struct verdict *verdict, const struct node *units);
void take_units(const struct node *units, struct throughput *out);

/* Of which throughput is spoken, and when. */
struct throughput_rules {
    struct slice index; /* empty: the table's own */
    bool on_demand;     /* the table is, or becomes so */
    bool is_update;
};

/* The ceilings of OnDemandThroughput; in an update -1 takes one away. */
bool define_on_demand(struct verdict *verdict, const struct node *node, const struct throughput_rules *rules,
                      struct throughput *out);
bool define_warm(struct verdict *verdict, const struct node *node, const struct throughput_rules *rules,
                 struct throughput *out);
/* What can be served at once, given or not. */
void warm_effective(const struct throughput *throughput, bool on_demand, int64_t *read, int64_t *write);
/* False for a structure that is absent or has no member. */
bool has_members(const struct node *node);

enum stream_view stream_view_from_node(const struct node *view);
const char *stream_view_name(enum stream_view view);
bool check_table_class(struct verdict *verdict, const struct node *class);
bool define_encryption(struct verdict *verdict, const struct node *sse, struct table_definition *out);

/* ---- a table that an import makes (create_table.c) ---- */

extern const struct shape shape_table_creation;
/* TableCreationParameters as CreateTable takes them; what an import does not know counts as not given. Refuses. */
bool table_creation_define(struct api_call *call, const struct node *node, struct table_definition *out);

/* ---- from definitions to TableDescription (table_describe.c) ---- */

struct description {
    const struct api *api;
    const struct table_definition *definition;
    const struct table_definition *before; /* in the answer to an update: what it was; else NULL */
    const char *status;                    /* CREATING, ACTIVE, UPDATING, DELETING */
    bool changes_warm, changes_encryption; /* these show their own status */
    int64_t items, bytes, now_ms;
    const struct table *table; /* for the counts of its indexes; NULL: they hold nothing yet */
};

void table_describe(struct buf *out, const struct description *description);
void put_projection(struct buf *out, const struct index_definition *index);
void put_key_schema(struct buf *out, const struct table_definition *definition);
void put_index_schema(struct buf *out, const struct index_definition *index);
void put_units_only(struct buf *out, const struct throughput *throughput);
void put_on_demand(struct buf *out, const struct throughput *throughput);
void put_encryption(struct buf *out, const struct description *description);
/* ,"name":... behind another member; times are seconds with a fraction. */
void put_text(struct buf *out, const char *name, struct slice text);
void put_int(struct buf *out, const char *name, int64_t value);
void put_time(struct buf *out, const char *name, int64_t time_ms);
/* 2026-11-15T04:13:25.340 */
void put_stream_label(struct buf *out, int64_t time_ms);

#endif
