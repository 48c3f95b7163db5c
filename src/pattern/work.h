/* What the two files of work share: its tables and how an item is told. */
#ifndef PATTERN_WORK_H
#define PATTERN_WORK_H

#include "pattern/flow.h"

extern const struct flow_table work_table, work_settings_table;

/* The rows of work.c begin with the queue; those of one unit go on with its id. */
enum { WORK_QUEUE, WORK_ID };
#define FIELD_WORK_QUEUE FIELD_IN_PATH("queue", 200, "the queue")
#define FIELD_WORK_ID    FIELD_IN_PATH("id", 0, "the unit of work")

#define WORK_SLOTS 4 /* of the index of what can be claimed: each takes 1000 writes a second on AWS */

/* What a queue does by itself; the defaults where the settings' item does not say. */
struct work_settings {
    int64_t lease_ms, attempts, backoff_ms, keep_s;
    struct slice then; /* SLICE_NONE: nothing */
};
void work_settings_read(struct flow *flow, struct slice item, struct work_settings *settings);

struct slice work_slot(struct flow *flow, struct slice queue, uint64_t number);
/* Somebody may find something to claim; somebody may see an end. */
void work_wake_claimers(struct flow *flow);
void work_wake_watchers(struct flow *flow);
uint64_t work_topic(const struct flow *flow, const char *kind, struct slice id);

struct slice work_key(struct flow *flow, struct slice id);
/* The unit of the request; SLICE_NONE: there is none. */
struct slice work_read(struct flow *flow);
/* The unit that the last call has found; SLICE_NONE: there is none, or it was deleted. */
struct slice work_found(struct flow *flow);
/* Answers the unit as it is. */
void work_tell(struct flow *flow, int status, struct slice item);
_Noreturn void work_refuse_unknown(struct flow *flow);

/* ---- work_claim.c ---- */

flow_step work_claim, work_beat, work_finish, work_fail;
extern const struct field work_claim_fields[4], work_beat_fields[6], work_finish_fields[4],
    work_fail_fields[6];

#endif
