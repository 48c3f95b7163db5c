/* Flows: how the operations of the patterns are written.
 *
 * A flow is a task: a function on a fiber (fiber/fiber.h) that waits where it stands and reads from top to bottom. It
 * waits by
 *   task_call, task_try   a DynamoDB operation, whose reply is then in flow->reply
 *   task_sleep            some time
 *   task_again            the same after losing a race: back-off with jitter, and an end to it ("busy") after many
 *   task_watch            until somebody wakes a topic or a moment has come (long-polls)
 *   task_piece            until a piece of a reply that goes on is sent (server-sent events)
 *   task_join             to do something together with the flows of this process that want the same
 * and ends by flow_answer, flow_finish or flow_refuse. Whoever runs the flow (run.c, server.c, the explorer of the
 * tests) does what it wants and calls flow_next, which takes the next step: what comes behind the wait. A task reads
 * no clock, no random source and no memory but the flow's own and what flow_recall gives: flow->now_ms, flow_random
 * and flow->serial are given. So the same replies at the same times make the same calls, which is what lets the tests
 * drop a flow anywhere, repeat it, and run several in every order.
 *
 * What a step need not care about, because flow_next deals with it before the step sees a reply:
 *  - tables that do not exist are made (tables.c), and the call is repeated;
 *  - throttling, conflicts with others' transactions and faults of the service are repeated after a pause;
 *  - everything else but success and a failed condition ends the flow with a clear error.
 * So a step sees success, or flow_failed(flow): the condition did not hold, and flow_item tells
 * why. A call may therefore happen twice: every write must be conditional, or harmless when repeated.
 *
 * A pattern's file has: its tables (struct flow_table), its rows (struct flow_row) with their fields, and the
 * tasks. The patterns are listed in rows.h. Fields are checked before the task begins, which reads them by their
 * place. */
#ifndef PATTERN_FLOW_H
#define PATTERN_FLOW_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attribute.h"
#include "base/buf.h"
#include "base/random.h"
#include "base/slice.h"
#include "pattern/operation.h"
#include "rest/rest.h"

typedef void flow_step(struct flow *flow);

/* ---- tables ---- */

struct flow_table {
    const char *name; /* without the prefix */
    /* What it is made of: "hash range; index hash range more; stream". Keys are strings, but for those that say their
     * type, "due:N"; `more` of an index: further attributes, "*": all of them. */
    const char *definition;
    const char *expiry; /* the attribute with the time to live, in seconds since 1970; NULL: nothing ends */
};

#define FLOW_HASH(hash) hash
#define FLOW_STREAM     "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'}"

/* ---- fields: what a row says of them is in operation.h ---- */

/* What a page has at most, and where nobody says how many it shall have; how long a call may wait. */
#define LIST_MOST    1000
#define LIST_USUAL   100
#define WAIT_MOST_MS 60000

struct field_value {
    bool given;
    struct slice text; /* NAME, TEXT, CHOICE, RAW: the characters; JSON, LIST: as it stands */
    int64_t number;    /* INT, DURATION in ms, BOOL, CHOICE */
    bool is_time;      /* DURATION that takes a time: the number is ms since 1970 */
};

/* What a server does by itself every so often. Its flow has no request, and makes no tables for a pattern
 * that nobody uses. */
struct flow_sweep {
    const char *name;
    int64_t every_ms;
    flow_step *begin;
};

/* ---- the flow ---- */

/* What a process remembers from one flow to the next (memory.h); without functions: nothing. */
struct flow_memory {
    struct slice (*recall)(void *self, uint64_t topic, struct arena *arena);
    void (*remember)(void *self, uint64_t topic, struct slice what); /* NULL data: forget */
    void *self;
};

/* The same for all flows of a process. */
struct flow_world {
    struct slice prefix; /* of tables' names */
    int64_t skew_ms;     /* see pattern_options */
    int64_t poll_ms;     /* how soon a watch looks again where nobody tells of others' writes; 0: never */
    int64_t lag_ms;      /* an index may follow its table so late */
    struct flow_memory memory;
    struct job_meters *job_meters; /* NULL: nobody counts */
};

enum flow_want { FLOW_CALL, FLOW_PAUSE, FLOW_WATCH, FLOW_PIECE, FLOW_JOIN, FLOW_DONE };

struct flow_reply {
    int status;         /* 0: none came */
    struct slice error; /* the exception's short name; empty: none */
    struct slice body;
};

struct flow_wake {
    uint64_t topic; /* or a kin, where at_ms is given */
    int64_t at_ms;  /* 0: now */
    struct flow_wake *next;
};

/* What a flow brings to a common round: whatever the pattern makes of it, and how much of a round it takes. */
struct flow_share {
    void *what;
    size_t bytes;
};
#define FLOW_ROUND_BYTES (3 * 1000000) /* of all shares: what comes after so much need not wait for more */

struct flow {
    /* given, and read by steps */
    const struct flow_world *world;
    const struct rest_call *request;
    struct field_value *fields;     /* as in the row, */
    struct field_value *own_fields; /* also while flow_with has others read */
    struct arena *arena;            /* of the whole flow: what it and its replies are made of lives as long */
    int64_t now_ms;
    uint64_t serial;         /* grows from flow to flow of a process */
    struct flow_reply reply; /* the last one */
    void *state;             /* the pattern's own, in the arena */

    /* wanted, for those who run it */
    enum flow_want want;
    struct slice operation, call; /* CALL: the request's JSON */
    int64_t pause_ms;             /* PAUSE */
    uint64_t topic;               /* WATCH: flows wake it when they have written */
    uint64_t thing;               /*   what others than flows may write, see flow_thing */
    uint64_t kin;                 /*   flows of the same kin make the same calls to look */
    int64_t until_ms;             /*   on the clock that now_ms is of */
    int64_t change_ms;            /*   by then what it watches may have changed by itself; INT64_MAX: never */
    enum { LOOK_NEVER, LOOK_BEGINS, LOOK_GOES_ON } look; /* see flow_look */
    struct slice piece;                                  /* PIECE */
    struct flow_share share;                             /* JOIN, on the topic */
    bool leads;                                          /*   set by the runner: not, when it has been led */
    bool disbands;           /* the round is over for those who followed; taken like the wakes */
    struct flow **followers; /* of a leader, in the order in which they came */
    size_t follower_count;
    int led_status;            /* of one who was led: how its leader ended, 0 when it went well */
    int status;                /* DONE */
    struct buf *body;          /*   the caller's */
    struct slice content_type; /*   empty: JSON; also before the first PIECE */
    struct slice etag;         /*   without quotes; empty: none */
    bool is_bare;              /*   the body is no object of ours: no member may be added to it */
    struct slice cost;         /*   where it is not in the body; empty: not told */
    int64_t retry_after_ms;    /*   0: not told */
    struct flow_wake *wakes;   /* topics to be woken; taken by the runner after each step */

    /* private to flow.c, tables.c, cost.c */
    const struct flow_row *row;
    struct fiber *fiber; /* of the task, as long as it waits */
    bool outlives_client;
    bool is_gone; /* its client: nothing is waited for any more */
    struct random random;
    struct arena_mark mark; /* of the arena where the first look began */
    unsigned races;         /* lost, see task_again */
    bool makes_tables;
    bool looks_first; /* a sweep: makes no tables until a call has shown that the pattern is in use */
    size_t body_start;
    const struct flow_table *table; /* named since the task went on last; a call has one at the most */
    bool tells_cost;
    double write_units, read_units;
    uint64_t calls;
};

/* ---- for steps: reading ---- */

bool flow_given(const struct flow *flow, unsigned field);
struct slice flow_text(const struct flow *flow, unsigned field); /* SLICE_NONE: it was not given */
struct slice flow_text_or(const struct flow *flow, unsigned field, struct slice otherwise);
int64_t flow_int(const struct flow *flow, unsigned field);
int64_t flow_int_or(const struct flow *flow, unsigned field, int64_t otherwise);
/* A duration from now, or a time, where the field takes both: ms since 1970; 0 where it was not given. */
int64_t flow_moment(const struct flow *flow, unsigned field);

/* The elements of a list, 1 to `most` objects: each has the fields of a call for one of them, from its body or from its
 * path behind the first, and is checked in the same way. Where one is wrong the task ends with a sentence that tells
 * which. flow_with has flow_given and its like read them; NULL: the request's own again. */
struct field_value **flow_elements(struct flow *flow, unsigned list, size_t most, const struct field *fields,
                                   uint32_t field_count, size_t *count);
void flow_with(struct flow *flow, struct field_value *fields);

/* A reaction (FIELD_THEN) as it is stored, attribute "then" of type S: a string's characters, else the JSON text;
 * SLICE_NONE where it was not given, as flow_text is. */
struct slice flow_then(const struct flow *flow, unsigned field);

/* A target or a `then` as it is stored, as far as who asks may see it. */
struct slice flow_then_shown(struct flow *flow, struct slice then);
/* The member ",'then':..." of an answer, likewise; empty where the item has none. */
struct slice flow_then_member(struct flow *flow, struct slice item);

/* The last call's condition did not hold. */
bool flow_failed(const struct flow *flow);
/* The reply's Item or Attributes; after a failed condition with ALL_OLD, the item as it is. SLICE_NONE: none.
 */
struct slice flow_item(const struct flow *flow);
/* The array of a Query or Scan, and where its next page begins (SLICE_NONE: nowhere). */
struct slice flow_items(const struct flow *flow);
struct slice flow_last_key(const struct flow *flow);

/* What an earlier flow of this process has remembered under the topic, copied into the arena; SLICE_NONE: nothing.
 * A guess: others may have changed what it tells of, so the write must be conditional on it. */
struct slice flow_recall(struct flow *flow, uint64_t topic);
void flow_remember(struct flow *flow, uint64_t topic, struct slice what);
void flow_forget(struct flow *flow, uint64_t topic);

uint64_t flow_random(struct flow *flow);
uint64_t flow_random_below(struct flow *flow, uint64_t bound);
/* A text that sorts by time and is nobody else's: "2026-11-15T03:42:06.250Z-00002a-5f3c9d". */
struct slice flow_new_id(struct flow *flow);

/* ---- for steps: going on ---- */

/* JSON from formats, as base/compose.h has it, and in them
 *   %T struct flow_table *   the table's name, as a string */
struct slice flow_compose(struct flow *flow, const char *format, ...);
void flow_put(struct flow *flow, struct buf *out, const char *format, ...); /* the same, appended */

/* Ends with what the service said of such a call. */
void flow_refuse_call(struct flow *flow);
/* Begins a look at what the flow waits for: whatever is woken from now on ends the watch behind the look. Every
 * flow that watches says so before the first call of each look. What is allocated from the first look on is
 * gone when a watch has ended: so a flow may wait as long as it likes and does not grow. What a step must
 * know from one look to the next are plain numbers in its state. */
void flow_look(struct flow *flow);
/* Ends the round that the task leads. */
void flow_disband(struct flow *flow);
/* Gives back what was allocated since the mark was taken, the last reply too: for walks over more than memory
 * should hold. What comes then may lose as many races again. */
void flow_rewind(struct flow *flow, struct arena_mark mark);

/* ---- the same for tasks: each comes back when what was asked for has happened ---- */

/* Makes a call. What comes back is success, or flow_failed; whatever else happens ends the task here. */
#define task_call(flow, operation, ...) flow_call(flow, false, operation, __VA_ARGS__)
/* The same of a table of the user's: a failure comes back whatever it is, but for what is repeated. */
#define task_try(flow, operation, ...) flow_call(flow, true, operation, __VA_ARGS__)
void flow_call(struct flow *flow, bool sees_error, const char *operation, const char *format, ...);
/* A Query: the condition of its key, "#part = :part", further members of the request, and values of both,
 * "':part':%S". Their places are filled in this order, behind the table. */
#define task_query(flow, condition, members, values, ...)                                                    \
    task_call(flow, "Query",                                                                                 \
              "{'TableName':%T,'KeyConditionExpression':'" condition "'" members                             \
              ",%#,'ExpressionAttributeValues':{" values "}}",                                               \
              __VA_ARGS__)
/* A DeleteItem of a key, on a condition. */
#define task_delete(flow, condition, values, ...)                                                            \
    task_call(flow, "DeleteItem",                                                                            \
              "{'TableName':%T,'Key':%A,'ConditionExpression':'" condition                                   \
              "',%#,'ExpressionAttributeValues':{" values "}}",                                              \
              __VA_ARGS__)
/* Members of a request that reads: as it is now; the last item only; behind this key, where it is there. */
#define READ_FRESH ",'ConsistentRead':true"
#define QUERY_LAST ",'ScanIndexForward':false,'Limit':1"
#define READ_FROM  "%[,'ExclusiveStartKey':%A%]"
/* The item of a key, "{'name':%S}", as it is now; SLICE_NONE: there is none. */
struct slice task_get(struct flow *flow, const struct flow_table *table, const char *key, ...);
void task_sleep(struct flow *flow, int64_t ms);
/* Waits until the topic is woken, `until_ms` at the latest, or for no reason: look (flow_look), do not trust. Flows
 * wake topics; `thing` is for what others write. */
void task_watch(struct flow *flow, uint64_t topic, uint64_t thing, int64_t until_ms);
/* With more to say. kin: its looks tell the same as those of all flows that give this number; 0: as those with the
 * same request. change_ms: what it watches changes by itself then, and somebody should look; INT64_MAX: it does not. */
void task_watch_as(struct flow *flow, uint64_t topic, uint64_t thing, uint64_t kin, int64_t change_ms,
                   int64_t until_ms);
/* Sends a piece of a reply that goes on. A flow whose client has gone is dropped. */
void task_piece(struct flow *flow, struct slice piece);
/* After losing a race: a pause; too many of them end the task here. */
void task_again(struct flow *flow);
/* The first who wants to do something about a topic leads, at once. Those who come while it is at it wait; then the
 * first of them leads a round for as many as fit. A leader deals with its own share and with those of flow->followers,
 * leaves there what became of them and calls flow_disband. One that ends without that leaves them unsettled. Where
 * flows do not run beside each other everybody leads alone. True: this task leads; false: another one has led it, and
 * flow->led_status tells how that ended. */
bool task_join(struct flow *flow, uint64_t topic, struct flow_share share);
/* From now on the task goes on when its client leaves while it watches, and finds flow->is_gone. */
void task_outlives_client(struct flow *flow);
/* Ends the task here, from within whatever it has called; the answer must have been given. */
_Noreturn void task_end(struct flow *flow);

/* The whole answer by a format; or the end of what was appended to flow->body. */
void flow_answer(struct flow *flow, int status, const char *format, ...);
void flow_finish(struct flow *flow, int status);
/* {"error":code,"message":sentence}. The code is words with hyphens; further members by flow_refuse_with,
 * whose `members` ("'version':7", made by flow_compose) may be empty. */
#define flow_refuse(flow, ...) flow_refuse_with(flow, SLICE(""), __VA_ARGS__)
void flow_refuse_with(struct flow *flow, struct slice members, int status, const char *code,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same, and the task ends. */
#define task_refuse(flow, ...)      (flow_refuse(flow, __VA_ARGS__), task_end(flow))
#define task_refuse_with(flow, ...) (flow_refuse_with(flow, __VA_ARGS__), task_end(flow))

/* What flows wait for: "lease", the name, and what else tells it from others. */
uint64_t flow_topic(const char *kind, struct slice name, struct slice more);
/* Something about it has been written. */
void flow_wake(struct flow *flow, uint64_t topic);

/* What those of a kin wait for changes by itself at this moment: one of them should look then. */
void flow_wake_kin_at(struct flow *flow, uint64_t kin, int64_t at_ms);

/* What plain clients may write, by the tables' own keys. A thing is all that the tables of a pattern have
 * about one name ("job" and its id: tables jobs and job-parts); an item is one of them, by its keys. */
uint64_t flow_thing(const char *kind, struct slice name);
uint64_t flow_item_thing(const struct flow_table *table, struct slice hash, struct slice range);
/* Of an item that was written: its thing, all items of its hash key, and itself. `table` without the prefix;
 * range may be SLICE_NONE. */
#define FLOW_THINGS 3
void flow_things_of(struct slice table, struct slice hash, struct slice range, uint64_t things[FLOW_THINGS]);

/* ---- for those who run flows ---- */

struct flow_start {
    const struct flow_world *world;
    const struct flow_row *row;
    const struct rest_call *request; /* its parameters are filled; kept, as are the next two */
    struct arena *arena;
    struct buf *body;
    uint64_t seed, serial;
    int64_t now_ms;
};
/* Checks the fields and takes the first step, or is done already. */
void flow_begin(struct flow *flow, const struct flow_start *start);
/* A flow without a request. */
void flow_begin_sweep(struct flow *flow, const struct flow_start *start, const struct flow_sweep *sweep);
/* What was wanted has happened: the next step. `reply` for a CALL, whose texts must live as long as the
 * arena; else NULL. */
void flow_next(struct flow *flow, int64_t now_ms, const struct flow_reply *reply);
/* The flow watches and has nothing to do for now: gives back what its look has allocated. */
void flow_rest(struct flow *flow);
/* All sweeps, in order; NULL behind the last. */
const struct flow_sweep *sweep_at(size_t number);
/* Ends a flow that waits, because whoever runs it ends. */
void flow_give_up(struct flow *flow);
/* Whoever runs the flow goes on with it no more, although it is not done. */
void flow_release(struct flow *flow);
/* The client of a flow that watches has gone: ends it, or has it leave first. (Who pauses is at work, and
 * others may rely on it: that is finished.) */
void flow_abandon(struct flow *flow, int64_t now_ms);

/* ---- private parts ---- */

/* fields.c: fills flow->fields, or ends the flow with a refusal and answers false. */
bool fields_read(struct flow *flow);
/* The beginning of a name that somebody sent, for a sentence: whole characters, or words in its place. */
struct slice flow_shown(struct slice name);
/* Where it stands: how long to wait may be said in the query wherever it may be said in the body. */
bool field_is_in_query(const struct field *field);
/* tables.c: makes the table of the present call, which is then repeated. Waits. */
void flow_make_table(struct flow *flow);
/* cost.c: asks for the capacity of a call; adds up what a reply tells; puts "cost" into an answer. */
struct slice cost_ask(struct flow *flow, struct slice operation, struct slice call);
void cost_count(struct flow *flow);
void cost_tell(struct flow *flow);

#endif
