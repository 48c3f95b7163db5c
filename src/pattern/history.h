/* What the files of histories share: settings, keys, and records as items. */
#ifndef PATTERN_HISTORY_H
#define PATTERN_HISTORY_H

#include "pattern/flow.h"

extern const struct flow_table history_table, history_settings_table;

enum { HISTORY_TABLE, HISTORY_KEY };
#define FIELD_HISTORY_TABLE                                                                                  \
    {                                                                                                        \
        "table", IN_PATH, FIELD_NAME, true, .help = "the table"                                              \
    }
#define FIELD_HISTORY_KEY                                                                                    \
    {                                                                                                        \
        "key", IN_PATH, FIELD_NAME, true, .max = 2048,                                                       \
                                          .help = "the item's hash key: a string, a number, or base64"       \
    }

struct history_settings {
    struct slice hash, hash_type, range, range_type; /* of the table's key; no range: SLICE_NONE */
    int64_t keep_s, versions;                        /* 0: all */
};

/* False when the table has no history: refused. */
bool history_settings_read(struct flow *flow, struct slice item, struct history_settings *settings);
void history_settings_ask(struct flow *flow, flow_step *then);
/* The hash key of an item's versions, "TABLE/name=value&name=value", names in order; false: the range key is
 * missing or too much, refused. */
bool history_item_key(struct flow *flow, const struct history_settings *settings, struct slice range,
                      struct slice *key);

/* ---- history_record.c: pure ---- */

/* How the records of a stream are kept. */
struct history_rule {
    struct slice prefix; /* of tables' names */
    struct slice table;
    int64_t keep_s; /* 0: for ever */
};
/* Appends an action for each record of the array, "{"Put":{...}}", commas between. False and a sentence. */
bool history_actions(struct arena *arena, const struct history_rule *rule, struct slice records,
                     struct buf *out, size_t *count, const char **fault);

/* ---- history_look.c, history_restore.c ---- */

flow_step history_get_begin, history_restore_begin;
extern const struct field history_get_fields[9], history_restore_fields[5];

/* A version's image as it was put; SLICE_NONE: the item was removed by it. */
struct slice history_image(struct flow *flow, struct slice version);
/* The moment that a bound means, as the begin of a version's range key; false: refused. */
bool history_bound(struct flow *flow, unsigned field, struct slice *bound);

#endif
