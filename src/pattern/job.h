/* What the files of jobs share: the head and the leaves as they were read, and the ways that all flows go:
 * up from a full leaf, and over all leaves. The tables and what holds for them: job.c. */
#ifndef PATTERN_JOB_H
#define PATTERN_JOB_H

#include "pattern/flow.h"

#define JOB_FAN        256      /* tasks of a leaf, leaves of a branch: its set stays below 1 KB */
#define JOB_SET_MOST   100000   /* tasks of a job with layout set: its one item must stay below 400 KB */
#define JOB_TASKS_MOST 10000000 /* of a job: their leaves are read in one go, 256 tasks in about 1 KB */
#define JOB_SLOTS      4        /* of the indexes: each takes 1000 writes a second on AWS */
#define JOB_CALL_TASKS 1000     /* of one request */
#define JOB_BATCH      100      /* what BatchGetItem takes */
#define JOB_FEW        16       /* leaves: so many are read by everybody who asks how far a job is */
#define JOB_TALLY      64       /* leaves of a tally, with three numbers of each: it stays below 1 KB */
#define JOB_LONG_MS    (3660 * 24 * 3600 * 1000ll)
#define JOB_WAIT_MS    60000

extern const struct flow_table job_table, job_parts_table;

/* X(name): what the head's `state` says. */
#define JOB_STATES(X) X(OPEN) X(COMPLETE) X(FAILED) X(CLOSING) X(EXPIRED) X(DELETING)
enum job_state {
    JOB_NONE,
#define X(name) JOB_##name,
    JOB_STATES(X)
#undef X
};
struct slice job_state_name(enum job_state state);

/* A head as it was read. */
struct job {
    struct slice item; /* SLICE_NONE: there is no such job */
    struct slice run;  /* tells it from others that had its id before */
    struct slice told; /* who was told to be last; SLICE_NONE: nobody yet */
    enum job_state state;
    bool named, prepared;
    int64_t total;                          /* -1: not told yet */
    int64_t first;                          /* the number of its first task */
    int64_t fan;                            /* tasks of a leaf */
    int64_t leaves, branches;               /* where the total is not known: those that somebody reached */
    int64_t failures, deadline_ms, keep_ms; /* 0: none */
    int64_t revived_ms;                     /* what was closed for deadlines up to here is open again; 0 */
    bool reached;                           /* tasks were done before its total was known */
    bool blank;                             /* nobody told yet whether its tasks are numbers or names */
};

/* A leaf as it was read, or as it is before anybody wrote it. */
enum { LEAF_DONE = 1, LEAF_FAILED = 2 };
struct leaf {
    int64_t index, wanted;
    bool there, closed;
    struct slice *names;  /* of named tasks; NULL: they are numbered */
    uint8_t *marks;       /* of each task: what is known of it */
    int64_t count;        /* of marks */
    int64_t done, failed; /* of those that count; who was both is done */
    int64_t both;
    struct slice failed_set;            /* the attribute; SLICE_NONE: nobody failed */
    int64_t done_beyond, failed_beyond; /* in its sets, but behind the end that the leaf was given later */
};

/* The state of all flows about one job. */
struct job_work {
    struct slice id;
    struct slice me; /* who calls: its key, or the tasks that it tells of */
    struct job job;
    bool fresh; /* it was read consistently */
    bool last;  /* this flow is the one to be told so */
    flow_step *loaded;
    struct {
        struct leaf leaf;
        int64_t branch, wanted;
        bool claims; /* whoever completes the job by this is last */
        bool completes;
        bool at_once; /* past the branch, see job_climb.c */
        enum job_state end;
        flow_step *then;
    } climb;
    struct {
        int64_t at, end, branches;
        bool all;                 /* also leaves that are known to be full */
        bool failing;             /* only leaves that had failures */
        bool stays_above;         /* only branches are read */
        bool sums_up;             /* tallies will do where more than JOB_FEW leaves are not full */
        bool at_least;            /* they did: `done` may be more */
        int64_t tally;            /* the next that is read */
        int64_t branch;           /* the next whose leaves are looked up */
        uint8_t *marked;          /* of each leaf: its branch knows that it is full */
        uint8_t *whole;           /* of each branch: it is full itself */
        int64_t asked[JOB_BATCH]; /* parts that are being read, */
        struct slice items[JOB_BATCH];
        unsigned asked_count;
        flow_step *read;       /* and where it goes on then */
        struct slice rest;     /* what the service did not get to */
        int64_t missing, done; /* found so far */
        struct leaf full[64];  /* and not known to be; what is left is found the next time */
        unsigned full_count, healed;
        int64_t healed_branch;
        void (*each)(struct flow *flow, const struct leaf *leaf); /* NULL: nothing */
        bool (*stops)(const struct flow *flow);                   /* behind a leaf; NULL: at the end */
        flow_step *then, *healed_then;
    } walk;
    void *own; /* of the route */
};

/* ---- job.c ---- */

struct job_work *job_work_new(struct flow *flow, struct slice id);
/* "done 17", "failed "a"": who calls without a key. */
struct slice job_caller(struct flow *flow, const char *what, struct slice name, int64_t number);
/* Reads the head; `fresh`: consistently. */
void job_load(struct flow *flow, bool fresh, flow_step *then);
void job_read(struct flow *flow, struct slice item, struct job *job);
void job_refuse_unknown(struct flow *flow);
/* It has ended, or its deadline is over. */
void job_refuse_closed(struct flow *flow);
uint64_t job_topic(struct slice id);
/* flow_watch, until the job as it was read changes or its deadline passes. */
void job_news_watch(struct flow *flow, uint64_t topic, int64_t until_ms, flow_step *then);
/* "OPEN/2": where unfinished jobs are listed; "2": where due ones are. */
struct slice job_listed(struct flow *flow, enum job_state state);
struct slice job_slot(struct flow *flow);
/* How many failures do no harm. */
int64_t job_tolerated(struct flow *flow, const struct job *job);
/* Where the total is not known, the head is told how far the leaves reach before one is written. */
void job_reach(struct flow *flow, int64_t leaf, flow_step *then);
/* The part of an update that ends a job, behind "SET", and its values. `told` may be SLICE_NONE. */
struct slice job_end(struct flow *flow, enum job_state state, struct slice told, struct slice *values);
int64_t job_opened_ms(struct slice run); /* when a job began */
int64_t job_heal_ms(const struct flow *flow, const struct job *job); /* when to look at it again */
bool job_is_over(const struct flow *flow, const struct job *job);    /* its deadline has passed for all */
/* Answers the job. `missing` below 0: not known. */
void job_tell(struct flow *flow, int status, int64_t missing);
struct slice job_describe(struct flow *flow, int64_t missing);

/* ---- job_leaf.c ---- */

/* The key of a leaf (level 0) or branch (level 1), an object. */
struct slice job_part_key(struct flow *flow, int level, int64_t index);
/* Of what is known of one task beside its leaf. */
struct slice job_task_key(struct flow *flow, const struct leaf *leaf, int64_t offset);
int64_t job_leaf_wanted(const struct job *job, int64_t index);
int64_t job_branch_wanted(const struct job *job, int64_t branch);
/* SLICE_NONE: it is not there. */
void job_leaf_read(struct flow *flow, int64_t index, struct slice item, struct leaf *leaf);
void job_leaf_count(struct leaf *leaf);
bool job_leaf_is_full(const struct leaf *leaf);
/* A condition that the leaf is not closed, and its values (",':..."). */
struct slice job_leaf_unclosed(struct flow *flow, struct slice *values);
/* The offset of a name; -1: it is not in the leaf. */
int64_t job_leaf_find(const struct leaf *leaf, struct slice name);
int64_t job_leaf_of_name(const struct job *job, struct slice name);
/* {"NS":[...]} or {"SS":[...]} of the tasks of a leaf. */
struct slice job_leaf_set(struct flow *flow, const struct leaf *leaf, const int64_t *offsets, size_t count);
struct slice job_number_set(struct flow *flow, const int64_t *numbers, size_t count);
/* A task as it is told: its number or, in quotes, its name. */
struct slice job_task_text(struct flow *flow, const struct leaf *leaf, int64_t offset);
/* A condition that the leaf is as it was read, and its values (",':..."). */
struct slice job_leaf_same(struct flow *flow, const struct leaf *leaf, struct slice *values);

/* ---- job_climb.c ---- */

/* Brings it up that the leaf is full: to its branch, to the head, to the end of the job, whose total is
 * known. Of a leaf that is not full only those are taken from the failed ones that have been done since. */
void job_climb(struct flow *flow, const struct leaf *leaf, bool claims, flow_step *then);
void job_climb_branch(struct flow *flow, int64_t branch, flow_step *then);
/* Is the branch among the head's full ones? *count: how many these are. */
bool job_branch_is_known(struct flow *flow, int64_t branch, int64_t *count);
/* The job is COMPLETE: is it this flow that is told to be last? */
void job_claim(struct flow *flow, flow_step *then);

/* ---- job_walk.c ---- */

/* Reads the leaves from .. to - 1 and hands each to `each`. */
void job_walk(struct flow *flow, int64_t from, int64_t to, bool all,
              void (*each)(struct flow *flow, const struct leaf *leaf),
              bool (*stops)(const struct flow *flow), flow_step *then);
/* The same of those leaves alone that their branches know to have had failures. */
void job_walk_failing(struct flow *flow, int64_t from, int64_t to,
                      void (*each)(struct flow *flow, const struct leaf *leaf),
                      bool (*stops)(const struct flow *flow), flow_step *then);
/* Walks over what is not full, counts what is missing, and brings up what somebody left half done. */
void job_heal(struct flow *flow, flow_step *then);
/* The same for whom it will do to know how many are done at least: of large jobs tallies are read instead of
 * leaves, and then walk.at_least is set. */
void job_count(struct flow *flow, flow_step *then);
void job_sum(struct flow *flow, flow_step *then); /* only counts */
/* Adds to the tally how many tasks of the leaf are done, if it has come a quarter further from `before`. */
void job_tally(struct flow *flow, const struct leaf *leaf, int64_t before, flow_step *then);
int64_t job_tallies(const struct job *job);
/* The same from the branches on: leaves are not read. */
void job_heal_branches(struct flow *flow, flow_step *then);

/* ---- job_close.c ---- */

/* Ends a job whose deadline is over. The route's own state is kept aside meanwhile. */
void job_expire(struct flow *flow, flow_step *then);
/* Gives a job as it was read, which may have ended by its deadline, another one, and opens it again. `then` sees
 * by flow_failed whether it is another one by now. */
void job_revive(struct flow *flow, int64_t deadline_ms, flow_step *then);

/* ---- routes ---- */

enum { JOB_ID };
#define FIELD_JOB_ID                                                                                         \
    {                                                                                                        \
        "id", IN_PATH, FIELD_NAME, true, .max = 200, .help = "the job"                                       \
    }
flow_step job_put, job_patch;                     /* job_put.c */
flow_step job_done, job_failed;                   /* job_done.c, job_fail.c */
flow_step job_missing, job_failures, job_results; /* job_read.c */
flow_step job_events;                             /* job_events.c */
flow_step job_redrive;                            /* job_close.c */
flow_step job_delete;                             /* job_sweep.c */
extern const struct field job_put_fields[16], job_patch_fields[5], job_done_fields[6], job_failed_fields[4],
    job_page_fields[3], job_events_fields[2], job_only_fields[1], job_redrive_fields[2];

#endif
