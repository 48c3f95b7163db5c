/* What the files of schedules share.
 *
 * A schedule is an item; what is in memory is only when which one is to be looked at again (the agenda). All of it,
 * the API's requests too, are tasks on one host: functions that read from top to bottom and share one thread.
 *
 * Invariants, beside T6 of trigger.h:
 *  A1. `next` of an item is the earliest due time that was neither fired nor left out; it only moves by a
 *      write on the condition that it still is what was read, together with the call that it stands for or behind it
 *      (task_commit). A call that is put again is the same one, also when it has run meanwhile.
 *  A2. Whoever changes an item's timing gives it a new `revision`, on which each firing is conditional: a due
 *      time of an expression that is no more is never fired. Where there are no transactions, one that had come
 *      before the change, and was read before it, may still be.
 *  A3. A schedule without `next` has nothing to come: it is switched off, or at its end.
 *  A4. The time at which a due time is fired depends on nothing but the schedule and that time.
 *  A5. When a group is gone, no schedule of it is there, or ever fires. A schedule is put into a group other than
 *      `default`, which is always there, by three conditional writes: its item with `pending`, which counts as not
 *      there and has no `next`; a write that finds its group ACTIVE; its item without `pending`. A group that is
 *      deleted is marked first, then its schedules are deleted, then the group. So what was put before the group was
 *      found ACTIVE is seen by who deletes it, and what was put later is never finished. */
#ifndef TRIGGER_SCHEDULE_H
#define TRIGGER_SCHEDULE_H

#include "base/compose.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/raw.h"
#include "base/ring.h"
#include "calendar/calendar.h"
#include "task/task.h"
#include "trigger/internal.h"

#define SCHEDULE_GROUPS         "*"       /* the hash under which the groups' items stand */
#define SCHEDULE_DEFAULT        "default" /* the group that is always there */
#define SCHEDULE_NONE           INT64_MIN /* of a number that is not set */
#define SCHEDULE_WINDOW_MAX_MIN 1440      /* the service's own */

/* ---- a schedule; in an arena ---- */

/* All that a schedule has. A row is: its kind, its field here, its attribute in the item (times in milliseconds since
 * 1970), its place in requests and replies, and where it occurs. Items and replies follow from it, and what is taken of
 * requests; what those must satisfy stands in schedule_members.c. Replies have this order.
 * ASKED: in the bodies of CreateSchedule and UpdateSchedule; SHOWN: by GetSchedule; LISTED: by ListSchedules. */
// clang-format off
#define SCHEDULE_MEMBERS(X)                                                                         \
    X(TEXT, arn, NULL, "Arn", SHOWN | LISTED)                                                       \
    X(TEXT, group, "group", "GroupName", ASKED | SHOWN | LISTED)                                    \
    X(TEXT, name, "name", "Name", ASKED | SHOWN | LISTED)                                           \
    X(TEXT, state, "state", "State", ASKED | SHOWN | LISTED)                                        \
    X(TEXT, expression, "expression", "ScheduleExpression", ASKED | SHOWN | LISTED)                 \
    X(TEXT, zone, "zone", "ScheduleExpressionTimezone", ASKED | SHOWN | LISTED)                     \
    X(TIME, created_ms, "created", "CreationDate", SHOWN | LISTED)                                  \
    X(TIME, changed_ms, "changed", "LastModificationDate", SHOWN | LISTED)                          \
    X(TIME, next_ms, "next", "NextDueTime", SHOWN | LISTED) /* A1 */                                \
    X(TEXT, description, "description", "Description", ASKED | SHOWN)                               \
    X(TEXT, after, "after", "ActionAfterCompletion", ASKED | SHOWN)                                 \
    X(TEXT, missed, "missed", "MissedRuns", ASKED | SHOWN)                                          \
    X(TEXT, kms_key, "kms_key", "KmsKeyArn", ASKED | SHOWN)                                         \
    X(TIME, start_ms, "start", "StartDate", ASKED | SHOWN)                                          \
    X(TIME, end_ms, "end", "EndDate", ASKED | SHOWN)                                                \
    X(TEXT, mode, NULL, "FlexibleTimeWindow.Mode", ASKED | SHOWN)                                   \
    X(NUMBER, window_min, "window", "FlexibleTimeWindow.MaximumWindowInMinutes", ASKED | SHOWN)     \
    /* a function's name or ARN, as it came */                                                      \
    X(TEXT, target, "target", "Target.Arn", ASKED | SHOWN | LISTED)                                 \
    X(TEXT, role, "role", "Target.RoleArn", ASKED | SHOWN)                                          \
    X(TEXT, input, "input", "Target.Input", ASKED | SHOWN)                                          \
    X(TEXT, dead_letter, "dead_letter", "Target.DeadLetterConfig.Arn", ASKED | SHOWN)               \
    X(NUMBER, age_max_s, "age", "Target.RetryPolicy.MaximumEventAgeInSeconds", ASKED | SHOWN)       \
    X(NUMBER, retries_max, "retries", "Target.RetryPolicy.MaximumRetryAttempts", ASKED | SHOWN)     \
    /* what nobody else sees: of the last change its token and a sum of what it asked for; where a  \
     * rate counts from */                                                                          \
    X(TEXT, token, "token", "ClientToken", ASKED)                                                   \
    X(NUMBER, token_sum, "token_sum", NULL, 0)                                                      \
    X(TIME, anchor_ms, "anchor", NULL, 0)                                                           \
    X(NUMBER, revision, "revision", NULL, 0)                                                        \
    X(TEXT, pending, "pending", NULL, 0) /* A5 */
// clang-format on

/* Texts that are not set have NULL data, numbers are SCHEDULE_NONE. */
struct schedule {
#define SCHEDULE_TEXT(field)             struct slice field;
#define SCHEDULE_NUMBER(field)           int64_t field;
#define SCHEDULE_TIME(field)             int64_t field;
#define SCHEDULE_FIELD(kind, field, ...) SCHEDULE_##kind(field)
    SCHEDULE_MEMBERS(SCHEDULE_FIELD)
};

/* ---- schedule_members.c: requests, items and replies. Pure ---- */

/* Shapes that several operations share. */
extern const struct shape schedule_shape_name, schedule_shape_token, schedule_shape_state, schedule_shape_group_arn;

/* Reads CreateSchedule or UpdateSchedule, with defaults. False after an error. */
bool schedule_read(struct rest_call *call, struct schedule *out);
/* The expression in its zone; NULL and a sentence. */
struct timetable *schedule_timetable(struct arena *arena, const struct schedule *schedule, struct slice *why);
/* The function that a target names by a name, name:qualifier or an ARN of lambda's; NULL data when it names
 * something else. */
struct slice schedule_function(struct slice target);
/* The item's attributes as an object in DynamoDB's JSON. */
struct slice schedule_item(struct arena *arena, const struct schedule *schedule);
/* False when it is no such item. */
bool schedule_from_item(struct arena *arena, struct slice item, struct schedule *out);
struct slice schedule_arn(struct arena *arena, const struct trigger *trigger, struct slice group,
                          struct slice name);
/* GetSchedule's reply, or the member of ListSchedules'. */
enum schedule_where { ASKED = 1, SHOWN = 2, LISTED = 4 };
void schedule_put_reply(struct buf *out, struct arena *arena, const struct trigger *trigger,
                        const struct schedule *schedule, enum schedule_where where);

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
struct slice schedule_event(struct arena *arena, const struct trigger *trigger,
                            const struct schedule *schedule, const struct schedule_attempt *attempt);
/* The same with placeholders' texts, to see whether it is JSON. */
bool schedule_input_is_json(struct arena *arena, struct slice input);

/* ---- schedule_clock.c: the host, the agenda ---- */

/* What lies outside beside the door, so that a test can let it fail: functions of func.h. */
struct schedule_doors {
    bool (*resolve)(struct func *func, struct slice function, struct arena *arena, struct slice *arn,
                    struct slice *name);
    unsigned (*queue_put)(struct func *func, const struct func_call *call, struct buf *members);
    const char *(*destination_fault)(struct func *func, struct slice destination);
    bool (*dead_letter)(struct func *func, struct slice destination, struct slice document, struct slice id,
                        const struct func_call *call, struct buf *members, unsigned *count);
    void (*wake)(struct func *func);
    bool (*mend_tables)(struct func *func);
};

/* When a schedule is to be looked at. */
struct agenda_entry {
    struct ring by_name;
    struct heap_place due;
    bool is_in_hand;  /* of a task; then it is not in the heap, and stays */
    bool is_noted;    /* while it was in hand somebody changed it: */
    int64_t noted_ms; /* it is due then */
    uint64_t round;   /* of reading the table in which it was last seen there */
    unsigned failures;
    int64_t failing_since_ms;
    int64_t put_ms; /* the due time whose call may have been put while the schedule was not moved on */
    struct schedules *schedules;
    size_t group_len, name_len;
    char names[]; /* group, name */
};
static inline struct slice agenda_group(const struct agenda_entry *entry)
{
    return (struct slice){entry->names, entry->group_len};
}
static inline struct slice agenda_name(const struct agenda_entry *entry)
{
    return (struct slice){entry->names + entry->group_len, entry->name_len};
}
/* From the task that has it in hand: when to look again. HEAP_NEVER: it is forgotten. */
void agenda_give_back(struct agenda_entry *entry, int64_t due_ms);

#define SCHEDULE_BUCKETS   4096
#define SCHEDULE_DELETIONS 256 /* whose tokens are remembered */

struct schedules {
    struct trigger *trigger;
    struct schedule_doors doors;
    struct slice table;
    struct arena arena; /* of the table's name */
    struct task_host *host;
    struct task_note stopping, closing;
    pthread_t thread;
    bool has_thread, is_halted;
    bool is_readable; /* as the first reading of the table has found */
    /* for those who ask from other threads */
    _Atomic uint32_t active; /* firings and readings under way */
    _Atomic int64_t next_ms; /* of those that wait */
    /* the host's */
    struct ring by_name[SCHEDULE_BUCKETS];
    struct heap due;
    uint32_t count, in_hand;
    uint64_t round; /* of reading the table */
    bool table_is_there, is_stopping, is_closing;
    struct task_signal changed;             /* something is due earlier, or is to end */
    uint64_t deletions[SCHEDULE_DELETIONS]; /* hashes of token and name, round and round */
    unsigned deletion_count;
};

/* The host is its own from here on; its thread is not started. NULL: the table cannot be read. */
struct schedules *schedules_open_with(struct trigger *trigger, const struct schedule_doors *doors,
                                      struct task_host *host);
/* What is due is fired by tasks from here on; whoever has no thread steps them. */
void schedules_begin(struct schedules *schedules);
/* Of tasks: reads the whole table again. */
bool schedules_read(struct schedules *schedules);
/* The agenda hears of a schedule that was written, or of one that is gone. */
void schedules_note(struct schedules *schedules, const struct schedule *schedule);
void schedules_forget(struct schedules *schedules, struct slice group, struct slice name);
/* A deletion that was done before with this token. */
bool schedules_has_deleted(struct schedules *schedules, struct slice token, struct slice name);
void schedules_note_deletion(struct schedules *schedules, struct slice token, struct slice name);

/* ---- schedule_table.c: the door, for tasks ---- */

/* Composes a request, of which TableName is there, calls, and repeats what meets another's transaction; what else is
 * wrong than MISSING and CONDITION is logged. */
#define SCHEDULE_KEY "'Key':{'group':%S,'name':%S}"
#define SCHEDULE_OF_GROUP                                                                                    \
    "'ConsistentRead':true,'KeyConditionExpression':'#group = :group',%#,'ExpressionAttributeValues':{':group':%S}"
struct task_reply schedules_call(struct schedules *schedules, const char *operation, const char *format, ...);
/* Makes the table with its default group, if need be. */
bool schedule_table_make(struct schedules *schedules);
/* The item of this key, in the task's arena; MISSING: there is none. */
enum dynamo_fault schedule_get(struct schedules *schedules, struct slice group, struct slice name,
                               struct slice *item);
enum dynamo_fault schedule_load(struct schedules *schedules, struct slice group, struct slice name,
                                struct schedule *out);
/* As it was read; CONDITION: it is not that one any more. */
enum dynamo_fault schedule_delete(struct schedules *schedules, struct slice group, struct slice name,
                                  int64_t revision);

/* Through one group, or all (NULL data). What a page showed is gone with the next one. */
struct schedule_walk {
    struct schedules *schedules;
    struct slice group;
    struct slice after; /* the key that the next page begins behind, as JSON */
    struct arena_mark page;
    struct raw_look look;
    bool has_page;
    enum dynamo_fault fault; /* why it has ended */
};
struct schedule_walk schedule_walk_from(struct schedules *schedules, struct slice group,
                                        struct slice after_group, struct slice after_name);
bool schedule_walk_next(struct schedule_walk *walk, struct slice *item);

/* ---- schedule_fire.c ---- */

/* A task: looks at a schedule whose time has come, and gives the entry back. */
void schedule_fire_task(void *entry);

/* ---- schedule_api.c, schedule_group.c: requests, as tasks ---- */

typedef void schedule_handler(struct trigger *trigger, struct rest_call *call);

/* An error in the service's form, and done. Answers false. */
bool schedule_error(struct rest_call *call, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads and checks a request; false after an error. */
bool schedule_decode(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                     struct shape_node *nodes);
/* What the end of a call of the door is to the client; false after an error. What: "Schedule", "Schedule group". */
bool schedule_is_fine(struct rest_call *call, enum dynamo_fault fault, const char *what, struct slice name);
void schedule_done(struct rest_call *call);

/* What a listing asks for; false after an error. */
struct schedule_page {
    size_t max, count;
    struct slice after_group, after_name; /* NULL data: from the beginning */
    struct slice group, prefix, state;    /* NULL data: all */
    struct slice last;                    /* the next page begins behind it */
    bool has_more;
};
bool schedule_page_read(struct rest_call *call, struct schedule_page *out);
/* Whether this one is shown; has_more: the page is full. */
bool schedule_page_takes(struct schedule_page *page, struct rest_call *call, struct slice group,
                         struct slice name, struct slice state);
/* Ends the array and the reply, or tells what the walk's fault was. */
void schedule_page_end(const struct schedule_page *page, struct rest_call *call, enum dynamo_fault fault);
/* Whether there is such a group; after an error when there is none. */
bool schedule_group_exists(struct schedules *schedules, struct rest_call *call, struct slice group);

/* Puts the group's item, unless there is one; CONDITION: the reply has that. The tags are members of a map. */
struct task_reply schedule_group_put(struct schedules *schedules, struct slice name, int64_t now_ms,
                                     struct slice tags, struct slice token);

schedule_handler schedule_group_create, schedule_group_get, schedule_group_delete, schedule_group_list,
    schedule_tag_add, schedule_tag_remove, schedule_tag_list;

#endif
