/* What the files of jobs share: the head, the branches and the leaves as they were read, and what all flows do with
 * them. The tables and what holds for them: job.c. */
#ifndef PATTERN_JOB_H
#define PATTERN_JOB_H

#include "pattern/drive.h"
#include "pattern/edit.h"
#include "pattern/flow.h"
#include "pattern/slots.h"

#define JOB_FAN           256      /* tasks of a leaf, leaves of a branch: its set stays below 1 KB */
#define JOB_SET_MOST      100000   /* tasks of a job with layout set: its one item must stay below 400 KB */
#define JOB_TASKS_MOST    10000000 /* of a job: their leaves are read in one go, 256 tasks in about 1 KB */
#define JOB_CALL_TASKS    1000     /* of one request */
#define JOB_BATCH         100      /* what BatchGetItem takes */
#define JOB_FEW           16       /* leaves: so many are read by everybody who asks how far a job is */
#define JOB_NAME_BYTES    200      /* of a task */
#define JOB_LONG_MS       (3660 * 24 * 3600 * 1000ll)
#define JOB_ATTEMPTS_MOST 100

extern const struct flow_table job_table, job_parts_table, job_items_table;

/* X(name): what the head's `state` says. */
#define JOB_STATES(X) X(OPEN) X(COMPLETE) X(FAILED) X(CLOSING) X(EXPIRED) X(DELETING)
enum job_state {
    JOB_NONE,
#define X(name) JOB_##name,
    JOB_STATES(X)
#undef X
};
struct slice job_state_name(enum job_state state);

/* A job, and its head as it was read last. */
struct job {
    /* of the flow, which it is the state of */
    struct slice id;
    struct slice caller; /* its key, or the tasks that it names */
    bool is_fresh;       /* the head was read consistently, or is the image of a write */
    bool is_recalled;    /* it is what the process remembered */
    bool is_last;        /* this flow is the one to be told so */
    /* of the last job_count or job_heal */
    bool has_counted, at_least; /* at_least: `done` may be more */
    int64_t done, missing;
    const struct job_scan *counted; /* what each leaf is known to have */
    int64_t ranges;                 /* so many are told of at most, see job_ranges_member; 0: none */
    /* of the head */
    struct slice item;        /* SLICE_NONE: there is no such job */
    struct slice run;         /* tells it from others that had its id before */
    struct slice last_caller; /* SLICE_NONE: nobody was told to be last */
    enum job_state state;
    bool named, prepared;
    int64_t total;                          /* -1: not known yet */
    int64_t first;                          /* the number of its first task */
    int64_t fan;                            /* tasks of a leaf */
    int64_t leaves, branches;               /* where the total is not known: those that somebody reached */
    int64_t failures, deadline_ms, keep_ms; /* 0: none */
    int64_t revived_ms;                     /* what was closed for deadlines up to here is open again; 0 */
    int64_t epoch;                          /* grows with every change of what has to be done */
    int64_t changing, changing_ms; /* the epoch of a change that is under way, and since when; 0: none is */
    bool reached;                  /* tasks were done before its total was known */
    bool blank;                    /* nobody said yet whether its tasks are numbers or names */
    bool is_driven;                /* the server calls something for each task */
    bool has_items;                /* each task has an item */
};

/* A leaf as it was read, or as it is before anybody wrote it. */
enum { LEAF_DONE = 1, LEAF_FAILED = 2 };
struct leaf {
    int64_t index, wanted, epoch;
    bool there, closed;
    bool failed_once;        /* a task of it has failed, perhaps long ago */
    struct slice *names;     /* of named tasks; NULL: they are numbered */
    uint8_t *marks;          /* of each task: LEAF_DONE, LEAF_FAILED or 0 */
    int64_t count;           /* of marks */
    int64_t done, failed;    /* of those that count */
    struct slice failed_set; /* the attribute; SLICE_NONE: nobody failed */
    struct slice pages;      /* the attribute: which pages of results count; SLICE_NONE: none */
};

/* What a branch knows of a leaf. */
struct leaf_entry {
    struct slice text; /* as it is stored; SLICE_NONE: nothing, or it is final */
    int64_t wanted, done, failed;
    bool is_final; /* all its tasks are done, and it cannot get more */
};

/* A branch as it was read: sums over what it knows of its leaves. */
struct branch {
    int64_t index, version, finished, failed;
    bool is_full; /* all its leaves are known to be */
};

/* ---- job.c ---- */

struct job *job_new(struct flow *flow, struct slice id);
/* A change of the head (edit.h) by literals and values, and of a part. */
#define JOB_EDIT(flow, update, condition, ...)                                                               \
    edit_item(flow, &job_table, job_key(flow), SLICE(update), SLICE(condition), __VA_ARGS__)
struct slice job_key(struct flow *flow); /* of the head, an object */
/* "done 17", "failed "a"": who calls without a key. */
struct slice job_caller(struct flow *flow, const char *what, struct slice name, int64_t number);
/* Reads the head, and remembers it. */
void job_load(struct flow *flow);
/* The same, eventually consistent, or what the process remembers of it. */
void job_glance(struct flow *flow);
void job_recall(struct flow *flow);
/* Takes the image of a write to the head. */
void job_take(struct flow *flow, struct slice item);
/* Takes it if it was written, and passes on whether it was. */
bool job_took(struct flow *flow, bool is_written);
void job_forget(struct flow *flow);
/* Reads the head; ends the task where there is none. */
void job_load_existing(struct flow *flow);
_Noreturn void job_refuse_unknown(struct flow *flow);
/* It has ended, or its deadline is over. */
_Noreturn void job_refuse_closed(struct flow *flow);
_Noreturn void job_refuse_unprepared(struct flow *flow);
void job_wake(struct flow *flow); /* those who wait for its end, and for its progress */
uint64_t job_topic(struct slice id);
uint64_t job_progress_topic(struct slice id);
/* Waits until the job as it was read changes or its deadline passes. */
void job_wait_for_change(struct flow *flow, uint64_t topic, int64_t until_ms);
/* "OPEN/2": where unfinished jobs are listed; "2": where due ones are. How many slots there are is told by an item. */
struct slice job_listed(struct flow *flow, enum job_state state);
struct slice job_slot(struct flow *flow);
extern const struct slots job_slots;
/* How many failures do no harm. */
int64_t job_tolerated(struct flow *flow, const struct job *job);
/* Where the total is not known, the head says how far the leaves reach before one is written. */
void job_reach(struct flow *flow, int64_t leaf);
int64_t job_opened_ms(struct slice run);                             /* when a job began */
int64_t job_due_ms(const struct flow *flow, const struct job *job);  /* when the sweep takes it up again */
bool job_is_over(const struct flow *flow, const struct job *job);    /* its deadline has passed for all */
bool job_is_closing(const struct flow *flow, const struct job *job); /* and for those who write */
/* Answers the job, with what was counted. */
void job_answer(struct flow *flow, int status);
struct slice job_describe(struct flow *flow);

/* ---- job_leaf.c ---- */

/* A part of a job has a level: leaves, branches, tallies. */
enum { LEVEL_LEAF, LEVEL_BRANCH, LEVEL_TALLY };
/* Its key, an object. */
struct slice job_part_key(struct flow *flow, int level, int64_t index);
/* Of what is known of one task beside its leaf. */
struct slice job_task_key(struct flow *flow, const struct leaf *leaf, int64_t offset);
int64_t job_leaf_wanted(const struct job *job, int64_t index);
/* SLICE_NONE: it is not there. */
void job_leaf_read(struct flow *flow, int64_t index, struct slice item, struct leaf *leaf);
void job_leaf_load(struct flow *flow, int64_t index, struct leaf *leaf);
/* A task of it has come to this; its counts follow. */
void job_leaf_mark(struct leaf *leaf, int64_t offset, uint8_t mark);
bool job_leaf_is_full(const struct job *job, const struct leaf *leaf);
/* The condition that a leaf is not closed, with the value ':revived':%N; and one more of an edit: it has all of these
 * names, or none of them. */
#define LEAF_UNCLOSED "(attribute_not_exists(#closed) or #closed <= :revived)"
void job_leaf_if_names(struct flow *flow, struct edit *edit, const struct slice *names, size_t count,
                       bool has);
/* The offset of a name; -1: it is not in the leaf. */
int64_t job_leaf_find(const struct leaf *leaf, struct slice name);
int64_t job_leaf_of_name(const struct job *job, struct slice name);
/* {"NS":[...]} or {"SS":[...]} of the tasks of a leaf. */
struct slice job_leaf_set(struct flow *flow, const struct leaf *leaf, const int64_t *offsets, size_t count);
struct slice job_number_set(struct flow *flow, int64_t number);
/* A task in an answer: its number or, in quotes, its name. */
struct slice job_task_text(struct flow *flow, const struct leaf *leaf, int64_t offset);
/* Reads a task that was sent, a number or a name; ends the task of the flow where it is neither. */
struct slice job_task_sent(struct flow *flow, struct slice value, int64_t *number);

/* ---- job_propagate.c ---- */

/* What a branch's item says, also of each of its leaves where `entries` (JOB_FAN of them) is given. */
void job_branch_read(struct flow *flow, int64_t index, struct slice item, struct leaf_entry *entries,
                     struct branch *branch);
/* What a branch should know of a leaf; of one that it knows already: whether it does not. */
bool job_leaf_is_news(struct flow *flow, const struct leaf *leaf, const struct leaf_entry *entry);
/* Brings what the leaf is now to its branch. */
void job_tell_branch(struct flow *flow, const struct leaf *leaf, struct branch *branch);
/* Brings what the branch is now to the head, and ends the job if that completes it or is one failure too many.
 * NULL: only the latter. `claims`: whoever completes the job by this is last. */
void job_tell_head(struct flow *flow, const struct branch *branch, bool claims);
/* All the way. */
void job_propagate(struct flow *flow, const struct leaf *leaf, bool claims);
/* The job is COMPLETE: is this flow the one to be told to be last? */
void job_claim(struct flow *flow);

/* Begins a change of what has to be done, which is written to several leaves: the job cannot complete meanwhile. Its
 * epoch is job.changing then. False: the job is neither OPEN nor FAILED. */
bool job_change_begin(struct flow *flow);
/* Ends it, with what `branch` is now (or NULL) and another total (or -1); opens a FAILED job again that has no more
 * failures than are tolerated. False: somebody else has ended the change before. */
bool job_change_end(struct flow *flow, int64_t epoch, int64_t total, const struct branch *branch);
/* Finishes a change that its caller has left. */
void job_change_settle(struct flow *flow);

/* Adds to a change of the head what opens the job again, with this deadline. */
void job_open(struct flow *flow, struct edit *edit, int64_t deadline_ms);
/* Adds to a change of the head what ends the job. `last_caller` SLICE_NONE: nobody is last by it. */
void job_end(struct flow *flow, struct edit *edit, enum job_state state, struct slice last_caller);

/* ---- job_scan.c ---- */

/* Reads leaves one after the other. */
enum job_scan_kind {
    SCAN_ALL,
    SCAN_UNSETTLED, /* but those that are known to be full, without failures */
    SCAN_NOT_FINAL, /* but those that are known to be final */
    SCAN_FAILING,   /* only those that are known to have failures */
};
struct job_scan {
    enum job_scan_kind kind;
    int64_t at, end;            /* leaves that were not asked for yet */
    struct leaf_entry *entries; /* of each leaf; NULL: of SCAN_ALL */
    struct branch *branches;
    int64_t branch_count;
    int64_t asked[JOB_BATCH];
    struct slice items[JOB_BATCH];
    unsigned count, next;
};
struct job_scan *job_scan_begin(struct flow *flow, int64_t from, enum job_scan_kind kind);
bool job_scan_next(struct flow *flow, struct job_scan *scan, struct leaf *leaf);

/* Reads what is not settled, counts it, and brings up what somebody left half done. */
void job_heal(struct flow *flow);
/* Counts. Of a large job summaries will do, and job->at_least is set; what is read of a small one is healed, too,
 * if `heals`. */
void job_count(struct flow *flow, bool heals);
/* After one of them: of each range of tasks how many are done and failed, as a member of an answer. */
struct slice job_ranges_member(struct flow *flow);
/* Notes in a summary how many tasks of the leaf are done, if it has come a quarter further from `before`. */
void job_tally(struct flow *flow, const struct leaf *leaf, int64_t before);
int64_t job_tallies(const struct job *job);

/* ---- job_close.c ---- */

/* Ends a job whose deadline is over. */
void job_expire(struct flow *flow);
/* Gives a job as it was read, which may have ended by its deadline, another one, and opens it again. False: it is
 * another one by now. */
bool job_revive(struct flow *flow, int64_t deadline_ms);

/* ---- job_put.c ---- */

/* Tells the job its total, or another; false: somebody was faster. */
bool job_grow(struct flow *flow, int64_t total);

/* ---- job_each.c: settings of `each`, as fields of a request from `first` on ---- */

#define JOB_EACH_FIELDS 6
/* clang-format off */
#define JOB_EACH(first)                                                                                      \
    [first] = {"each", IN_BODY, FIELD_THEN,                                                                  \
               .help = "what the server calls for each task, by itself: a function, a URL or a call"},       \
    {"concurrency", IN_BODY, FIELD_INT, .min = 1, .max = LIMIT_DRIVE_CONCURRENCY,                            \
     .help = "how many of these calls run at a time, over all servers (default: 10)"},                       \
    {"attempts", IN_BODY, FIELD_INT, .min = 1, .max = JOB_ATTEMPTS_MOST,                                     \
     .help = "so often a task is called before it has failed (default: 3)"},                                 \
    {"backoff", IN_BODY, FIELD_DURATION, .max = 3600000,                                                     \
     .help = "the pause before the second attempt, doubled with each further one (default: 1s)"},            \
    {"timeout", IN_BODY, FIELD_DURATION, .min = 1, .max = 24 * 3600000,                                      \
     .help = "of a call, where it is shorter than the function's own"},                                      \
    {"paused", IN_BODY, FIELD_BOOL, .help = "true: no such call is begun"}
/* clang-format on */
/* An item with those settings that were sent; `with_others`: also with those that have a default. SLICE_NONE: none
 * were. */
struct slice job_each_sent(struct flow *flow, unsigned first, bool with_others);
/* Refuses a target that cannot be called. */
void job_each_check(struct flow *flow, unsigned first);
void job_each_set(struct flow *flow, struct edit *edit, struct slice settings);
/* The name of what was sent and is otherwise in the job that is there; NULL: nothing is. */
const char *job_each_other(struct flow *flow, unsigned first);
struct slice job_each_members(struct flow *flow); /* of an answer */
/* Writes the drive of a job that is to be opened; of one that is OPEN as it was read (`anew`: it was not before). */
void job_each_prepare(struct flow *flow, struct slice settings);
void job_each_follow(struct flow *flow, bool anew);

/* ---- job_items.c ---- */

/* The items of a leaf's tasks, JOB_FAN attribute values; answers how many there are so far. */
int64_t job_items_read(struct flow *flow, int64_t leaf, struct slice **items);
int64_t job_items_count(struct flow *flow); /* so far */
void job_items_remove(struct flow *flow);
/* Of a list in a request: refuses what cannot be stored; stores it, and tells the job its total. */
void job_items_check(struct flow *flow, struct slice list);
void job_items_put(struct flow *flow, struct slice list);
void job_source_check(struct flow *flow, struct slice source);
bool job_reads_table(struct flow *flow); /* its items come from one */

/* ---- routes ---- */

enum { JOB_ID };
#define FIELD_JOB_ID FIELD_IN_PATH("id", 200, "the job")
flow_step job_put, job_patch;                     /* job_put.c */
flow_step job_done, job_failed;                   /* job_done.c, job_fail.c */
flow_step job_missing, job_failures, job_results; /* job_read.c */
flow_step job_events;                             /* job_events.c */
flow_step job_redrive;                            /* job_close.c */
flow_step job_delete;                             /* job_sweep.c */
flow_step job_tasks;                              /* job_each.c */
flow_step job_items, job_read;                    /* job_items.c */
extern const struct field job_put_fields[26], job_patch_fields[11], job_done_fields[6], job_failed_fields[4],
    job_page_fields[3], job_events_fields[2], job_only_fields[1], job_redrive_fields[2], job_tasks_fields[3],
    job_items_fields[4], job_read_fields[1];

#endif
