/* What the files of trigger share: mappings and their settings, the parts that read streams, schedules. */
#ifndef TRIGGER_INTERNAL_H
#define TRIGGER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "match/match.h"
#include "trigger/trigger.h"

struct mappings;
struct consumer;
struct schedules;
struct watches;
struct watch;

struct trigger {
    struct trigger_options options;
    struct slice prefix, region, account;
    struct arena texts;          /* has the bytes of these three */
    struct mappings *mappings;   /* mapping_*.c: settings, API */
    struct consumer *consumer;   /* consume*.c: what reads streams and invokes */
    struct schedules *schedules; /* schedule_*.c */
    struct watches *watches;     /* watch.c */
    struct workers *workers;
};

/* ---- a mapping's settings: immutable and counted; a change makes a new one ---- */

enum start_position { START_TRIM_HORIZON, START_LATEST };

/* Where a mapping is to go on. Each has a number, greater than those before it; the positions tell which they have. */
struct mapping_move {
    int64_t number;     /* 0: there was none */
    struct slice to;    /* TRIM_HORIZON, LATEST, or the last sequence number that is done */
    int64_t since_ms;   /* LATEST: from the changes of this time on; 0: from those that come */
    struct slice shard; /* only this one; empty: all */
};

enum mapping_state {
    MAPPING_CREATING,
    MAPPING_ENABLING,
    MAPPING_ENABLED,
    MAPPING_DISABLING,
    MAPPING_DISABLED,
    MAPPING_UPDATING,
    MAPPING_DELETING,
};

struct settings;
struct mapping {
    const struct settings *settings; /* as the API has them (mapping.h); all below follows from these */
    struct slice id;                 /* UUID */
    struct slice stream_arn;         /* EventSourceArn */
    struct slice function;           /* as func_invoke takes it: name or name:qualifier */
    struct slice function_arn;       /* as it is told */
    enum start_position start;
    struct mapping_move move;
    uint64_t revision; /* grows with each change */
    bool enabled;
    uint32_t batch_size;             /* 1..10000, 100 */
    int64_t window_ms;               /* MaximumBatchingWindowInSeconds */
    uint32_t lanes;                  /* ParallelizationFactor 1..10 */
    int64_t retries_max;             /* -1: until expiry */
    int64_t age_max_ms;              /* -1: none */
    bool bisect;                     /* BisectBatchOnFunctionError */
    bool reports_failures;           /* ReportBatchItemFailures */
    int64_t tumbling_ms;             /* TumblingWindowInSeconds; 0: none */
    struct slice *filters;           /* patterns' texts */
    struct event_pattern **patterns; /* compiled; a record passes when one matches, or when there are none */
    uint32_t filter_count;
    struct slice on_failure; /* destination; empty: none */
    uint32_t depth_max;  /* of its own doing that it still wants to see (MaximumRecursionDepth); 0: none */
    struct watch *watch; /* who answers in the place of a function; NULL: a function does. Kept */
    /* private */
    struct arena arena;
    _Atomic uint32_t references;
};

struct mapping *mapping_keep(struct mapping *mapping);
void mapping_release(struct mapping *mapping);

/* ---- mapping_*.c ---- */

/* The table's name in arn:...:table/NAME/stream/LABEL. */
struct slice mapping_table_of(struct slice stream_arn);

struct mappings *mappings_open(struct trigger *trigger, char *error, size_t error_len);
/* Hands what the table held to the consumer, which must be there; from here on changes go to it, too. */
void mappings_start(struct mappings *mappings);
void mappings_close(struct mappings *mappings);
/* What LastProcessingResult tells: "OK", "No records processed", "PROBLEM: Function call failed", ... Copied.
 */
void mappings_note_result(struct mappings *mappings, struct slice id, const char *result);
/* A state that the consumer has reached: ENABLED, DISABLED; after DELETING it is gone. */
void mappings_reached(struct mappings *mappings, struct slice id, enum mapping_state state);
/* Nothing will come from this stream any more: the mapping goes on with the next one of the table. */
void mappings_note_over(struct mappings *mappings, struct slice id, struct slice arn, bool is_over);
/* Lets the mappings whose streams are over go on where a next stream is there, and waits for it; true when one
 * has. */
bool mappings_follow(struct mappings *mappings);
extern const struct rest_route mapping_routes[];
extern const size_t mapping_route_count;
/* Lambda's operations on tags, where the path names a mapping's ARN. False: it is not ours, and func's routes
 * for tags are to be asked. */
bool mapping_tags_serve(struct trigger *trigger, struct rest_call *call);

/* ---- consume*.c ---- */

struct consumer *consumer_open(struct trigger *trigger);
void consumer_start(struct consumer *consumer);
void consumer_close(struct consumer *consumer);
/* A new mapping, or a new revision of one; takes a reference. A disabled one stops after its batches under way.
 * NULL: the one of this id is stopped and its positions are removed; mappings_reached(DELETING) when that is done. */
void consumer_command(struct consumer *consumer, struct mapping *mapping, struct slice id);
bool consumer_is_quiet(struct consumer *consumer);

/* ---- schedule_*.c ---- */

struct schedules *schedules_open(struct trigger *trigger, char *error, size_t error_len);
void schedules_start(struct schedules *schedules);
/* Nothing is fired any more. */
void schedules_halt(struct schedules *schedules);
void schedules_close(struct schedules *schedules);
bool schedules_are_idle(struct schedules *schedules);
extern const struct rest_route schedule_routes[];
extern const size_t schedule_route_count;

#endif
