/* What the files of histories share: settings, keys, and records as items. */
#ifndef PATTERN_HISTORY_H
#define PATTERN_HISTORY_H

#include "pattern/flow.h"

extern const struct flow_table history_table, history_settings_table;

#define HISTORY_SHARDS 4 /* of a day's changes in the index: each takes 1,000 a second on AWS */

enum { HISTORY_TABLE, HISTORY_KEY, HISTORY_RANGE };
#define FIELD_HISTORY_TABLE FIELD_IN_PATH("table", 0, "the table")
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

/* ---- history.c ---- */

/* The hash key of an item's versions, by the fields HISTORY_KEY and HISTORY_RANGE, and the name of its own hash
 * key. Ends the task where the table has no history, or a field is missing, too much or of another type. */
struct slice history_item_key(struct flow *flow, struct slice *hash);
/* Ends with what was said of a call to the user's table. */
_Noreturn void history_refuse_table(struct flow *flow);

/* ---- history_record.c: pure ---- */

struct history_part {
    struct slice name, value; /* the characters of a string, a number as number_plain writes it, base64 */
};
/* Appends "TABLE/name=value&name=value", names in order; what does not fit a key: "TABLE/~" and the SHA-256
 * of the part behind the slash. */
void history_put_key(struct buf *out, struct slice table, const struct history_part *parts, size_t count);

/* A record of a stream as an item. */
struct history_item {
    struct slice key, version; /* its two keys */
    struct slice text;         /* {"item":{"S":...},...} */
};
/* Makes an item of each record of the array. NULL, or a sentence: one of them is none. */
const char *history_items(struct arena *arena, struct slice table, struct slice records,
                          struct history_item *items);

/* ---- history_changes.c ---- */

extern const struct field history_changes_fields[6];
/* Whether a request wants changes, or the table as of a time, and not the settings; and a page of them. */
bool history_asks_changes(const struct flow *flow);
void history_changes(struct flow *flow, struct slice settings);

/* ---- history_look.c, history_restore.c ---- */

flow_step history_get, history_restore;
extern const struct field history_get_fields[11], history_restore_fields[6];

/* Appends ,"NAME":image, or null, to the answer. */
void history_put_image(struct flow *flow, const char *name, struct slice image);
/* The attribute of an image, by its name. */
static inline struct slice history_attribute(struct arena *arena, struct slice image, struct slice name)
{
    return raw_member(arena, image, arena_printf(arena, "%.*s", SLICE_ARG(name)).data);
}
/* A version's image as it was put; SLICE_NONE: the item was removed by it. */
struct slice history_image(struct flow *flow, struct slice version);
/* The moment that a field means, as the begin of a version's range key; SLICE_NONE where it is not given. What is no
 * time ends the task. */
struct slice history_bound(struct flow *flow, unsigned field);
/* The begin of a moment's second, which keys of versions have: "2026-11-15T04:13:25.340Z" -> "...25". */
struct slice history_second(struct flow *flow, struct slice moment);
/* The last version of the item up to a bound; SLICE_NONE: there is none. */
struct slice history_last(struct flow *flow, struct slice key, struct slice bound);
/* The one that held at a moment, which history_bound has read. */
struct slice history_at(struct flow *flow, struct slice key, struct slice moment);

#endif
