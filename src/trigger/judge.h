/* What decides in the consumer, as pure functions over plain values: which records make the next batch, what
 * follows from a function's answer, which leases to take. They know no
 * clock, no door and no thread, so that the tests can ask them everything. */
#ifndef TRIGGER_JUDGE_H
#define TRIGGER_JUDGE_H

#include "task/task.h"
#include "trigger/internal.h"

#define NEVER_US INT64_MAX

/* The records of one answer of GetRecords share their memory; the last one to go frees it. */
struct record_page {
    struct arena arena;
    uint32_t references;
    int64_t arrived_ms, arrived_us;
};

struct record {
    struct slice event;           /* as Lambda shows it; this and the next two are in the page's arena */
    struct slice sequence, cause; /* cause: empty where there is none */
    struct record_page *page;
    int64_t created_ms;
    uint32_t failures; /* invocations that failed at this record */
    bool is_looped;    /* its function's own doing, deeper than the mapping allows */
};

/* Decimal numbers of any length, leading zeros or not. */
int sequence_compare(struct slice a, struct slice b);

/* ---- points ---- */

#define POINT_BYTES 47

/* How far a lane has come: a sequence number, TRIM_HORIZON or LATEST. */
struct point {
    unsigned char len;
    char text[POINT_BYTES];
};

#define POINT_HORIZON ((struct point){12, "TRIM_HORIZON"})
#define POINT_LATEST  ((struct point){6, "LATEST"})

static inline struct slice point_view(const struct point *point)
{
    return (struct slice){point->text, point->len};
}

bool point_set(struct point *point, struct slice text);          /* false when it does not fit */
bool point_is_number(const struct point *point);                 /* else a word */
int point_compare(const struct point *a, const struct point *b); /* words before all numbers */

/* ---- batches ---- */

struct cut {
    uint32_t batch_size;
    int64_t window_ms; /* how long a batch may gather */
    int64_t before_ms; /* records created then or later are another window's; INT64_MAX: there is none */
    size_t room_bytes; /* of the records, each with a comma */
    int64_t now_ms, now_us;
    bool is_last; /* nothing more will come: wait for nothing */
};

struct cut_result {
    uint32_t take;            /* 0: none yet */
    struct task_moment ready; /* when there will be one, if nothing else comes */
};

struct cut_result batch_cut(const struct record *records, uint32_t count, const struct cut *cut);
/* The start of the window that a moment belongs to. */
int64_t window_start_ms(int64_t moment_ms, int64_t tumbling_ms);

/* ---- before an invocation ---- */

struct next_step {
    uint32_t count;        /* of how many of the batch's records */
    const char *condition; /* they are given up for this; NULL: they are handed to the function */
};

struct next_step judge_next(const struct mapping *mapping, const struct record *records, uint32_t count,
                            int64_t now_ms);
/* Why the last call of a window that ended then, and has failed so often, is not made again; NULL: it is. */
const char *judge_last_call(const struct mapping *mapping, uint32_t failures, int64_t end_ms, int64_t now_ms);

/* ---- behind it ---- */

enum outcome {
    OUTCOME_DONE,
    OUTCOME_PARTIAL, /* all before a record are done */
    OUTCOME_FAILED,
    OUTCOME_TOO_MUCH, /* what it returned does not fit into one transaction: fewer records at a time */
    OUTCOME_UNSENT,   /* it was not even begun */
};

struct verdict {
    uint32_t moves; /* so many records are done */
    bool splits;    /* what is left is tried in halves */
    bool counts;    /* the failure counts against the first record that is left */
    bool pauses;    /* before the next try */
};

struct verdict judge_result(const struct mapping *mapping, enum outcome outcome, uint32_t count,
                            uint32_t done);
/* How long to wait behind so many failures in a row: short at first, growing up to a bound. */
int64_t retry_after_us(uint32_t failures, int64_t bound_us, uint64_t random_bits);

/* What a function answered, by Lambda's rules for streams. */
struct answer {
    enum outcome outcome; /* DONE, PARTIAL or FAILED */
    uint32_t done;        /* PARTIAL */
    struct slice state;   /* of a tumbling window, raw; empty: it told none */
    const char *fault;    /* FAILED: what is wrong with the answer */
};

void answer_read(struct slice reply, bool reports_failures, const struct record *records, uint32_t count,
                 struct arena *arena, struct answer *out);

/* ---- sharing ---- */

/* A lease as one server sees it. */
struct lease_view {
    const char *owner;  /* "": nobody; also when its time is over */
    const char *wanted; /* who asked for it; "": nobody */
    bool is_open;       /* there is something to read: not ended, and its parent is */
};

enum lease_wish { LEASE_LEAVE, LEASE_TAKE, LEASE_ASK };
/* Takes what is free up to a fair share; when nothing is free, asks who has more than we for one. */
void lease_wishes(const struct lease_view *views, uint32_t count, const char *me, enum lease_wish *wishes);

#endif
