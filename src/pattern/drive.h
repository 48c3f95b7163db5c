/* What the server is told to drive by itself (src/drive): units of a queue, batches of a log, tasks of a job. See
 * drive.c. */
#ifndef PATTERN_DRIVE_H
#define PATTERN_DRIVE_H

#include "pattern/flow.h"

#define DRIVE_NONE INT64_MIN

/* One setting: a field of the request that sets it, by its name. */
struct drive_setting {
    const char *name;
    enum field_type type; /* THEN: the target, which is the first of them; INT, DURATION (ms) or BOOL */
    int64_t otherwise;    /* where it was never given; DRIVE_NONE: nothing */
};

struct drive_kind {
    const char *name;
    const struct drive_setting *settings;
    size_t count;
};

/* All kinds: X(name) is struct drive_kind NAME_drive_kind. */
#define DRIVE_KINDS(X) X(work) X(log) X(job)
#define X(name)        extern const struct drive_kind name##_drive_kind;
DRIVE_KINDS(X)
#undef X
#define DRIVE_KIND(kind)                                                                                     \
    const struct drive_kind kind##_drive_kind = {                                                            \
        #kind, kind##_drive_settings, sizeof kind##_drive_settings / sizeof *kind##_drive_settings}

/* One thing: of a log's consumer `part` is the consumer. */
struct drive_thing {
    const struct drive_kind *kind;
    struct slice name, part;
};

/* Refuses what drive_put would refuse; nothing is written. */
void drive_check(struct flow *flow, const struct drive_thing *thing);
/* Writes what the request gives of the settings. The item as it is then; SLICE_NONE: it is not driven (any more).
 * Refuses settings without a target. */
struct slice drive_put(struct flow *flow, const struct drive_thing *thing);
/* SLICE_NONE: it is not driven. */
struct slice drive_read(struct flow *flow, const struct drive_thing *thing);
/* Makes it what this item says, which has the settings by the same names. Where it says that already nothing changes,
 * unless `anew`: then it has another version, and is not removed by who has seen its thing before. `stamp` grows with
 * each change of the thing: what comes late changes nothing. Empty: only where there is none yet. */
void drive_copy(struct flow *flow, const struct drive_thing *thing, struct slice settings, struct slice stamp,
                bool anew);
/* A setting's number as it is stored. */
struct slice drive_number(struct flow *flow, const struct drive_setting *setting, int64_t number);
/* The target that a field names, as it is stored; SLICE_NONE: none. Refuses what cannot be called. */
struct slice drive_target(struct flow *flow, const char *name, unsigned field);
/* Where there is one. */
void drive_remove(struct flow *flow, const struct drive_thing *thing);
/* ,"each":"send-mail","concurrency":10,... of an answer; empty for SLICE_NONE. */
struct slice drive_members(struct flow *flow, const struct drive_thing *thing, struct slice item);

#endif
