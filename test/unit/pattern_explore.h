/* The explorer: runs a few flows of a pattern in every order of their calls, against the real engine in
 * memory.
 *
 * At each point it tries every choice: one of the flows makes its next call (or goes on behind a pause); a
 * call is made but its reply is lost, and the flow is started again from the beginning (a crash); a call is
 * made twice, and the flow sees the second reply (a retry); a copy of a call arrives late, at any later
 * point; the clock jumps. Depth first, going back by the engine's snapshots; where all flows have ended, the
 * invariants are checked.
 *
 * An exploration may try so many schedules. At each point every choice gets an equal share of those that are left, and
 * what a choice does not need goes to the others: all are tried where there are few, no schedule is tried twice, and
 * where there are too many those that are tried differ everywhere.
 *
 * A flow that watches goes on when something was written since, or its time has come. When all watch in vain,
 * time passes until the first of them goes on. A schedule is printed as a list like "0 1 c0 j 1": flow 0,
 * flow 1, a crash of flow 0, a jump, flow 1. With EXPLORE=NAME:LIST in the environment the exploration NAME
 * runs that schedule only and prints its calls. EXPLORE_MOST=N tries so many schedules of each exploration, and
 * EXPLORE_QUICKLY=1 leaves out those of explore_broken, which show that the explorer finds what is wrong. At the end
 * the number of all schedules is printed.
 *
 * There are three worlds. In the first one process runs all flows, and remembers (flow_recall) what any of them has
 * learnt. In the second there are two, as on a remote database: what one has learnt the other has not, so memories grow
 * old. In the third the database has no transactions and nobody remembers anything. In the second and third fewer
 * schedules are tried, so that a test stays short; with EXPLORE_WORLDS=all as many as in the first, and with
 * EXPLORE_WORLD=N this world is the only one. */
#ifndef TEST_UNIT_PATTERN_EXPLORE_H
#define TEST_UNIT_PATTERN_EXPLORE_H

#include "base/fail.h"
#include "pattern/flow.h"
#include "pattern/pattern.h"
#include "unit/test.h"

#define EXPLORED_FLOWS  4
#define EXPLORED_BEFORE 6
#define EXPLORED_JUMPS  4

struct explorer;

struct explored_flow {
    const char *request, *body; /* "POST /v1/counters/x", or "SWEEP name" */
    const char *header, *value; /* one header, or NULL */
};

/* clang-format off */
#define REQUEST(with_request, with_body) {.request = with_request, .body = with_body}
#define REQUEST_WITH(with_request, with_body, with_header, with_value) \
    {.request = with_request, .body = with_body, .header = with_header, .value = with_value}
/* clang-format on */

/* How a flow ended. */
struct explored_answer {
    int status;
    struct slice body;
    unsigned event;           /* its place among all events of the schedule */
    unsigned began;           /* when the attempt that was answered began, */
    unsigned called;          /* and when it made its first call */
    int64_t began_ms, now_ms; /* when that attempt began, and when it ended */
    unsigned attempts;
};

struct outcome {
    struct explorer *explorer;
    struct explored_answer answers[EXPLORED_FLOWS];
    unsigned count;
    struct arena *arena;
};

struct exploration {
    const char *name;
    const struct flow_row *rows; /* the test's own, in the place of the patterns'; NULL: none */
    uint32_t row_count;
    struct explored_flow flows[EXPLORED_FLOWS];
    /* Before the flows: requests that are simply run; also to have the tables, whose making would multiply
     * the schedules. */
    struct explored_flow before[EXPLORED_BEFORE];
    int64_t later_ms; /* the flows begin so long behind them */
    /* Of the clock in ms, each once, in this order, at any point. Where none is given: five minutes, in which somebody
     * was away with what it had read. */
    int64_t jumps[EXPLORED_JUMPS];
    unsigned faults;               /* crashes, retries and late copies, at most so many in one schedule */
    bool never_late;               /* where a late copy is harmful by its nature: a write that overwrites */
    bool never_away;               /* where nobody may be late by its nature: a lease ends meanwhile */
    void (*check)(struct outcome *outcome);
};

/* All schedules; fails the test when an invariant does not hold. Prints how many there were. */
void explore(const struct exploration *exploration);
/* The same with `text` replaced in the requests: the test fails when no schedule shows that it matters. */
void explore_broken(const struct exploration *exploration, const char *text, const char *instead);

/* ---- for checks ---- */

/* The invariant does not hold in this schedule. */
void outcome_fault(struct outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number of an answer's body, by the member's name; INT64_MIN: not there. */
int64_t outcome_int(struct outcome *outcome, unsigned flow, const char *member);
struct slice outcome_text(struct outcome *outcome, unsigned flow, const char *member);
/* Runs a further request to its end, or a call; what it writes is taken back. */
/* Time passes, for what is asked behind it. */
void outcome_jump(struct outcome *outcome, int64_t ms);
struct slice outcome_ask(struct outcome *outcome, const char *request, const char *body);
struct slice outcome_call(struct outcome *outcome, const char *operation, const char *request);

#endif
