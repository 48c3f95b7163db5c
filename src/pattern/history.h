/* What the files of histories share: settings, keys, and records as items. */
#ifndef PATTERN_HISTORY_H
#define PATTERN_HISTORY_H

#include "pattern/flow.h"

extern const struct flow_table history_table, history_settings_table;

enum { HISTORY_TABLE, HISTORY_KEY, HISTORY_RANGE };
#define FIELD_HISTORY_TABLE                                                                                  \
    {                                                                                                        \
        "table", IN_PATH, FIELD_NAME, true, .help = "the table"                                              \
    }
#define FIELD_HISTORY_KEY                                                                                    \
    {                                                                                                        \
        "key", IN_PATH, FIELD_TEXT, true, .min = 1, .max = HISTORY_HASH_TEXT,                                \
                                          .help = "the item's hash key: a string, a number, or base64"       \
    }
#define FIELD_HISTORY_RANGE(place)                                                                           \
    {                                                                                                        \
        "range", place, FIELD_TEXT, .min = 1, .max = HISTORY_RANGE_TEXT,                                     \
                                    .help = "the item's range key, where the table has one",                 \
                                    .takes_number = true                                                     \
    }
#define HISTORY_HASH_TEXT  2732 /* 2048 bytes in base64 */
#define HISTORY_RANGE_TEXT 1368 /* 1024 bytes in base64 */

struct history_settings {
    struct slice hash, hash_type, range, range_type; /* of the table's key; no range: SLICE_NONE */
    int64_t keep_s, versions;                        /* 0: all */
};

/* ---- history.c ---- */

/* False when the table has no history: refused. */
bool history_settings_read(struct flow *flow, struct slice item, struct history_settings *settings);
void history_settings_ask(struct flow *flow, flow_step *then);
/* The hash key of an item's versions, by the fields HISTORY_KEY and HISTORY_RANGE; false: one of them is
 * missing, too much or of another type, refused. */
bool history_item_key(struct flow *flow, const struct history_settings *settings, struct slice *key);
/* Ends with what was said of a call to the user's table. */
void history_refuse_table(struct flow *flow);

/* ---- history_record.c: pure ---- */

struct history_part {
    struct slice name, value; /* the characters of a string, a number as number_plain writes it, base64 */
};
/* Appends "TABLE/name=value&name=value", names in order; what does not fit a key: "TABLE/~" and the SHA-256
 * of the part behind the slash. */
void history_put_key(struct buf *out, struct slice table, const struct history_part *parts, size_t count);

/* How the records of a stream are kept. */
struct history_rule {
    struct slice prefix; /* of tables' names */
    struct slice table;
};
/* Appends an action for each record of the array, "{"Put":{...}}", commas between. False and a sentence. */
bool history_actions(struct arena *arena, const struct history_rule *rule, struct slice records,
                     struct buf *out, size_t *count, const char **fault);

/* ---- history_look.c, history_restore.c ---- */

flow_step history_get_begin, history_restore_begin;
extern const struct field history_get_fields[11], history_restore_fields[6];

/* The first member of the state of flows that look for versions. */
struct history_search {
    struct slice key, moment;
    flow_step *then;
};

/* A version's image as it was put; SLICE_NONE: the item was removed by it. */
struct slice history_image(struct flow *flow, struct slice version);
/* The first of the versions that were found; SLICE_NONE: none. */
struct slice history_first(struct flow *flow);
/* The moment that a field means, as the begin of a version's range key, where it is given; false: refused. */
bool history_bound(struct flow *flow, unsigned field, struct slice *bound);
/* Asks for the last version of the item up to a bound. */
void history_ask_last(struct flow *flow, struct slice key, struct slice bound, flow_step *then);
/* Asks for the one that held at a moment, which history_bound has read. */
void history_ask_at(struct flow *flow, struct slice key, struct slice moment, flow_step *then);

#endif
