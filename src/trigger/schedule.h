/* What the files of schedules share.
 *
 * A schedule is an item; what is in memory is only when which one is to be looked at again (the agenda). What
 * is due is read, judged and moved on by one transaction, so it does not matter how old the agenda is, nor
 * how many servers have one.
 *
 * Invariants, beside T6 of trigger.h:
 *  A1. `next` of an item is the earliest due time that was neither fired nor left out; it only moves by a
 *      write on the condition that it still is what was read, together with the calls that it stands for.
 *  A2. Whoever changes an item's timing gives it a new `revision`, on which each firing is conditional: a due
 *      time of an expression that is no more is never fired.
 *  A3. A schedule without `next` has nothing to come: it is switched off, or at its end.
 *  A4. The time at which a due time is fired depends on nothing but the schedule and that time. */
#ifndef TRIGGER_SCHEDULE_H
#define TRIGGER_SCHEDULE_H

#include "base/json.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "trigger/internal.h"

#define SCHEDULE_GROUPS   "*"       /* the hash under which the groups' items stand */
#define SCHEDULE_DEFAULT  "default" /* the group that is always there */
#define SCHEDULE_NONE     (-1)      /* of a number that is not set */
#define SCHEDULE_UNSET    INT64_MIN /* the same in a request, where -1 is a number */
#define SCHEDULE_NAME_MAX 64

/* ---- a schedule as its item has it; in an arena ---- */

/* Texts that are not set have NULL data, numbers are SCHEDULE_NONE. */
struct schedule {
    struct slice group, name, description;
    struct slice expression, zone; /* zone: empty is UTC */
    struct slice state;            /* ENABLED, DISABLED */
    struct slice missed;           /* ALL, LATEST, SKIP */
    struct slice after;            /* ActionAfterCompletion: NONE, DELETE */
    int64_t start_ms, end_ms;
    int64_t window_min;  /* MaximumWindowInMinutes; NONE: OFF */
    struct slice target; /* a function's name or ARN, as it came */
    struct slice role, input, dead_letter, kms_key;
    int64_t retries_max, age_max_s; /* RetryPolicy */
    int64_t created_ms, changed_ms;
    int64_t anchor_ms; /* where a rate counts from */
    int64_t next_ms;   /* A1; NONE: nothing to come */
    int64_t revision;
    struct slice token; /* ClientToken of the last change */
    int64_t token_sum;  /* of what it asked for */
};

/* ---- schedule_check.c: the constraints of the service's model, and its sentences. Pure ---- */

struct schedule_fault {
    const char *type; /* ValidationException, ... */
    char text[1024];
};

/* These answer false after a fault. A text that is not there is fine. */
bool schedule_fail(struct schedule_fault *fault, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "1 validation error detected: Value 'x' at 'member' failed to satisfy constraint: rule" */
bool schedule_constraint(struct schedule_fault *fault, const char *member, struct slice value,
                         const char *rule);
bool schedule_length_check(struct slice text, size_t min, size_t max, const char *member,
                           struct schedule_fault *fault);
/* One of "ONE, OTHER". */
bool schedule_choice_check(struct slice text, const char *choices, const char *member,
                           struct schedule_fault *fault);
bool schedule_range_check(int64_t value, int64_t min, int64_t max, const char *member,
                          struct schedule_fault *fault);
/* The name of a schedule or a group. */
bool schedule_name_check(struct slice name, const char *member, struct schedule_fault *fault);
bool schedule_token_check(struct slice token, struct schedule_fault *fault);
bool schedule_arn_check(struct slice text, const char *service, const char *resource, size_t max,
                        const char *member, const char *pattern, struct schedule_fault *fault);
/* The function that a target names by a name, name:qualifier or an ARN of lambda's; NULL data when it names
 * something else. */
struct slice schedule_function(struct slice target);
/* The group that an ARN names; NULL data when it names none. */
struct slice schedule_group_of_arn(struct slice arn);

struct schedule_tag {
    struct slice key, value;
};
/* The bodies of CreateScheduleGroup and TagResource. */
struct schedule_group_request {
    struct slice token;
    struct schedule_tag *tags;
    size_t tag_count;
    bool has_tags;
};
bool schedule_group_read(struct arena *arena, struct slice body, struct schedule_group_request *out,
                         struct schedule_fault *fault);

/* ---- schedule_request.c: the bodies of CreateSchedule and UpdateSchedule. Pure ---- */

/* Defaults are filled in. False and a fault. */
bool schedule_read(struct arena *arena, struct slice body, struct slice name, struct schedule *out,
                   struct schedule_fault *fault);
/* The expression in its zone; NULL and a fault. */
struct timetable *schedule_timetable(struct arena *arena, const struct schedule *schedule,
                                     struct schedule_fault *fault);

/* ---- schedule_item.c: items and replies ---- */

/* The item's attributes as an object in DynamoDB's JSON. */
void schedule_put_item(struct buf *out, const struct schedule *schedule);
/* Reads the object that comes next; false when it is no such item. */
bool schedule_from_item(struct json_reader *reader, struct schedule *out);
/* A number that two equal requests have in common. */
int64_t schedule_sum(const struct schedule *schedule);
struct slice schedule_arn(struct arena *arena, const struct trigger *trigger, struct slice group,
                          struct slice name);
struct slice schedule_group_arn(struct arena *arena, const struct trigger *trigger, struct slice group);
/* GetSchedule's reply, and the member of ListSchedules'. */
void schedule_put_reply(struct buf *out, struct arena *arena, const struct trigger *trigger,
                        const struct schedule *schedule);
void schedule_put_summary(struct buf *out, struct arena *arena, const struct trigger *trigger,
                          const struct schedule *schedule);
/* "Name": seconds since 1970, as the service writes times. */
void schedule_put_time(struct buf *out, const char *name, int64_t time_ms);

/* ---- schedule_due.c: which due times are fired, left out or to come. Pure ---- */

/* When a due time is fired: within its flexible window, always the same moment for the same due time. */
int64_t schedule_fire_ms(const struct schedule *schedule, const struct timetable *timetable, int64_t due_ms);
/* The first due time not before `from_ms`, within start and end; NONE. */
int64_t schedule_first(const struct schedule *schedule, const struct timetable *timetable, int64_t from_ms);

struct schedule_verdict {
    int64_t due_ms;  /* to be fired now; NONE: nothing is */
    int64_t next_ms; /* what `next` becomes; NONE: it is at its end */
};
/* What is to be done with `next`, whose moment has come. */
struct schedule_verdict schedule_judge(const struct schedule *schedule, const struct timetable *timetable,
                                       int64_t now_ms);

/* The event: Input with its attributes filled in, or the service's default. */
struct schedule_attempt {
    struct slice arn;
    int64_t due_ms;
    struct slice execution_id;
    unsigned number; /* from 1 */
};
void schedule_put_event(struct buf *out, struct arena *arena, const struct trigger *trigger,
                        const struct schedule *schedule, const struct schedule_attempt *attempt);
/* The same with placeholders' texts, to see whether it is JSON. */
bool schedule_input_is_json(struct arena *arena, struct slice input);

/* ---- schedule_agenda.c: what to look at when ---- */

struct agenda_entry {
    int64_t at_ms;
    struct agenda_entry *chain;
    uint32_t place;   /* in the heap */
    uint32_t changes; /* that we heard of */
    uint64_t round;   /* of reading the table in which it was last seen there */
    unsigned failures;
    int64_t failing_since_ms;
    size_t group_len, name_len;
    char names[]; /* group, name */
};

struct agenda {
    struct agenda_entry **heap, **buckets;
    uint32_t count, room, bucket_count;
};

void agenda_free(struct agenda *agenda);
struct slice agenda_group(const struct agenda_entry *entry);
struct slice agenda_name(const struct agenda_entry *entry);
/* Puts it in, or moves it. */
struct agenda_entry *agenda_set(struct agenda *agenda, struct slice group, struct slice name, int64_t at_ms);
void agenda_remove(struct agenda *agenda, struct slice group, struct slice name);
struct agenda_entry *agenda_find(const struct agenda *agenda, struct slice group, struct slice name);
/* The earliest; NULL when there is none. */
struct agenda_entry *agenda_first(const struct agenda *agenda);
/* Those that were not seen in this round are gone from the table. */
void agenda_sweep(struct agenda *agenda, uint64_t round);

/* ---- schedule_table.c: the door ---- */

/* What lies outside, so that a test can let it fail. */
struct schedule_doors {
    void *self;
    dynamo_caller *call;
    bool (*resolve)(void *self, struct slice function, struct arena *arena);
    unsigned (*queue_put)(void *self, struct slice function, struct slice payload, struct slice id,
                          struct buf *members);
    bool (*dead_letter)(void *self, struct slice destination, struct slice document, struct slice id,
                        const struct func_call *call, struct buf *members, unsigned *count);
    void (*wake)(void *self);
};

#define SCHEDULE_DELETIONS 256 /* whose tokens are remembered */

struct schedules {
    struct trigger *trigger;
    struct schedule_doors doors;
    struct slice table;
    struct arena arena;   /* of the table's name */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t news;
    struct agenda agenda;
    uint64_t round; /* of reading the table */
    int64_t read_us;
    bool table_is_there, is_busy, is_stopping, has_thread;
    pthread_t thread;
    uint64_t deletions[SCHEDULE_DELETIONS]; /* hashes of token and name, round and round */
    unsigned deletion_count;
};

enum schedule_end {
    SCHEDULE_FINE,
    SCHEDULE_MISSING, /* no such item, or no table */
    SCHEDULE_MOVED,   /* a condition did not hold */
    SCHEDULE_BUSY,    /* another transaction is at the same item */
    SCHEDULE_FAILED,  /* the door's fault: a sentence is in the log */
};

/* Calls and sorts the answer; *reply is emptied first. */
enum schedule_end schedule_ask_once(struct schedules *schedules, const char *operation,
                                    const struct buf *request, struct buf *reply);
/* The same, and waits a moment for others' transactions: never BUSY. */
enum schedule_end schedule_ask(struct schedules *schedules, const char *operation, const struct buf *request,
                               struct buf *reply);
/* The table with its default group, if need be. */
bool schedule_table_make(struct schedules *schedules);
enum schedule_end schedule_load(struct schedules *schedules, struct arena *arena, struct slice group,
                                struct slice name, struct schedule *out);
/* {"TableName":"...","Key":{...} */
void schedule_put_key(struct buf *out, const struct schedules *schedules, struct slice group,
                      struct slice name);
/* Reads one group, or all (NULL data), from behind a key on; `each` takes one item off the reader and answers
 * false to stop. Slices that it saw live as long as the call. */
typedef bool schedule_visit(void *context, struct json_reader *item);
enum schedule_end schedule_each(struct schedules *schedules, struct slice group, struct slice after_group,
                                struct slice after_name, schedule_visit *each, void *context);

/* ---- schedule_fire.c ---- */

struct schedule_failures {
    unsigned count;
    int64_t since_ms;
};
/* DONE: look again at *at_ms. OVER: nothing is to come before somebody changes it. AGAIN: it failed. */
enum fire_end { FIRE_DONE, FIRE_OVER, FIRE_AGAIN };
enum fire_end schedule_fire(struct schedules *schedules, struct slice group, struct slice name,
                            struct schedule_failures failures, int64_t *at_ms);

/* ---- schedule_clock.c ---- */

struct schedules *schedules_open_with(struct trigger *trigger, const struct schedule_doors *doors,
                                      char *error, size_t error_len);
/* The agenda hears of a schedule that was written, or of one that is gone. */
void schedules_note(struct schedules *schedules, const struct schedule *schedule);
void schedules_forget(struct schedules *schedules, struct slice group, struct slice name);
/* Reads the whole table again. */
bool schedules_read(struct schedules *schedules);
/* Looks at the one schedule whose time came first, if it has come. */
bool schedules_turn(struct schedules *schedules);
uint32_t schedules_count(struct schedules *schedules);
/* A deletion that was done before with this token. */
bool schedules_has_deleted(struct schedules *schedules, struct slice token, struct slice name);
void schedules_note_deletion(struct schedules *schedules, struct slice token, struct slice name);

/* ---- schedule_api.c, schedule_group.c: handlers, on the workers' threads ---- */

/* An error in the service's form, and done. */
void schedule_error(struct rest_call *call, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void schedule_fault_reply(struct rest_call *call, const struct schedule_fault *fault);
/* What a failed call of the door is to the client. */
void schedule_door_error(struct rest_call *call);
void schedule_done(struct rest_call *call);

/* MaxResults and NextToken of a listing; false after an error. */
struct schedule_page {
    size_t max;
    struct slice after_group, after_name; /* NULL data: from the beginning */
    struct slice prefix, state;           /* NULL data: all */
};
bool schedule_page_read(struct rest_call *call, struct schedule_page *out);
void schedule_put_token(struct buf *out, struct slice group, struct slice name);
/* Whether there is such a group; after an error when there is none. */
bool schedule_group_exists(struct schedules *schedules, struct rest_call *call, struct slice group);

void schedule_group_create(void *room, struct rest_call *call);
void schedule_group_get(void *room, struct rest_call *call);
void schedule_group_delete(void *room, struct rest_call *call);
void schedule_group_list(void *room, struct rest_call *call);
void schedule_tag_add(void *room, struct rest_call *call);
void schedule_tag_remove(void *room, struct rest_call *call);
void schedule_tag_list(void *room, struct rest_call *call);

#endif
