/* What the operations on a table's settings share: changes of a definition on the writer's thread, small
 * values under a name in the definition, and ARNs that name a table or one of its streams.
 *
 * A setting that the engine does not act on is kept in definition.settings, a map of names to values; each
 * operation's file says what its values look like. */
#ifndef API_SETTINGS_H
#define API_SETTINGS_H

#include "api/tables.h"

/* ---- changing a table's definition ---- */

/* A change between begin and finish; an operation's own state may begin with it. */
struct table_change {
    /* On the writer's thread, against the table as it is then: changes *definition, or leaves a sentence in
     * the verdict. False: nothing is to be kept. */
    bool (*apply)(struct table_change *change);
    /* What is said when there is no such table; NULL: the words of table operations. */
    void (*missing)(struct table_change *change);
    struct slice table_name;
    struct table_definition *definition; /* a copy, the change's own */
    struct verdict verdict;
    struct node input;
    const struct api *api;
    int64_t now_ms;
};

/* Hands the change to the writer. Keeps it: it must be in the call's arena. The second takes the table's name
 * from a request's member and may refuse it. */
void table_change_submit(struct api_call *call, const struct node *input, struct table_change *change);
void table_change_submit_named(struct api_call *call, const struct node *input, const struct node *name,
                               struct table_change *change);
/* In finish: the change, or NULL when it was refused and the refusal is written. */
struct table_change *table_change_finish(struct api_call *call);

/* ---- settings by name ---- */

/* A setting that is a map, or a list: empty when there is none. */
struct map setting_map(const struct table_definition *definition, const char *name);
struct value setting_list(const struct table_definition *definition, const char *name);
void setting_put(struct arena *arena, struct table_definition *definition, const char *name,
                 struct value value);
void setting_remove(struct arena *arena, struct table_definition *definition, const char *name);

struct value text_value(struct slice text);
struct value integer_value(struct arena *arena, int64_t integer);
struct value truth_value(bool truth);
struct value map_value(struct map map);
/* Adds to a map, or replaces in it. */
void map_put(struct arena *arena, struct map *map, struct slice name, struct value value);

/* Of a map; empty, 0 or false where there is none. */
struct slice map_text(const struct map *map, const char *name);
int64_t map_integer(const struct map *map, const char *name);
bool map_truth(const struct map *map, const char *name);
struct map map_map(const struct map *map, struct slice name);

/* ---- ARNs of tables and streams ---- */

struct resource {
    struct slice table_name, stream_label; /* stream_label empty: the table itself */
};

enum resource_fault {
    RESOURCE_FINE,
    RESOURCE_NO_ARN,
    RESOURCE_FOREIGN,   /* of something else than a table, index or stream */
    RESOURCE_INDEX,     /* which belongs to its table */
    RESOURCE_ELSEWHERE, /* another region */
    RESOURCE_OTHER_ACCOUNT,
};

enum resource_fault resource_parse(const struct api *api, struct slice arn, struct resource *out);
/* The words that all operations have for the first three. */
bool refuse_resource(struct api_call *call, enum resource_fault fault, struct slice arn);

extern const struct shape shape_resource_arn;

#endif
