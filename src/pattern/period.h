/* What the files of periods share: a period's settings and its buckets. */
#ifndef PATTERN_PERIOD_H
#define PATTERN_PERIOD_H

#include "base/limits.h"
#include "pattern/chain.h"
#include "pattern/edit.h"
#include "pattern/flow.h"

extern const struct flow_table period_table, period_buckets, period_pages, period_parts;

#define PERIOD_SHARDS_MOST 16
#define PERIOD_SLACK       (4096 + LIMIT_THEN_BYTES) /* of an item beside the data of one event */
/* How long events wait for somebody to close their bucket, before their time to live is over. */
#define PERIOD_WAIT_S (30 * 24 * 3600)

enum { PERIOD_NAME, PERIOD_BUCKET };
#define FIELD_PERIOD FIELD_IN_PATH("name", 200, "the period")

struct timetable;

struct period {
    struct slice name, item;
    int64_t every_ms;                  /* 0: by the timetable */
    const struct timetable *timetable; /* NULL: by every_ms */
    int64_t shards, grace_ms, keep_s;
    int64_t closed_ms; /* nothing comes to buckets that begin before */
    int64_t done_ms;   /* no bucket that begins before waits for its end any more */
    int64_t version;
    struct slice then; /* SLICE_NONE: nothing */
};

/* ---- period.c ---- */

/* The settings of the period that the request names; where there are none, or none that can be understood, the
 * task ends. period_find says so instead. */
void period_get(struct flow *flow, struct period *period);
bool period_find(struct flow *flow, struct slice name, struct period *period);
/* The same as this process remembers it, but for what runs at the end of a bucket; others may have changed it a few
 * seconds ago. */
void period_recall(struct flow *flow, struct period *period);
void period_forget(struct flow *flow, struct slice name);
/* Begin of the bucket that a moment belongs to, by the settings alone; and where one that was made by others
 * was closed meanwhile. End of the bucket that begins at a moment. */
int64_t period_start(const struct period *period, int64_t time_ms);
int64_t period_bucket(const struct period *period, int64_t time_ms);
int64_t period_end(const struct period *period, int64_t start_ms);
/* When the pages of a bucket are not needed any more, in seconds. */
int64_t period_expires_s(const struct period *period, int64_t start_ms);
/* A shard of a bucket, by its key "NAME/BEGIN/3"; its parts have the key "NAME/BEGIN". */
struct chain period_chain(struct flow *flow, const struct period *period, int64_t start_ms, int64_t shard);
struct slice period_parts_key(struct flow *flow, const struct period *period, int64_t start_ms);
/* The key of a bucket; the bucket as it is, SLICE_NONE: there is none. */
struct slice period_bucket_key(struct flow *flow, const struct period *period, int64_t start_ms);
struct slice period_bucket_read(struct flow *flow, const struct period *period, int64_t start_ms);
uint64_t period_topic(struct slice name);

/* ---- period_add.c, period_look.c, period_close.c ---- */

flow_step period_add, period_show, period_list, period_close;
extern const struct field period_add_fields[6], period_get_fields[4], period_list_fields[4],
    period_close_fields[1];

#endif
