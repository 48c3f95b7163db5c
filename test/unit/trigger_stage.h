/* A stage for the consumer: a database in memory, a clock, functions written in C, and one or several
 * consumers without threads. Whatever a consumer asks of the outside waits in a list until the test lets it
 * happen, fail, vanish, or happen unheard. */
#ifndef TEST_UNIT_TRIGGER_STAGE_H
#define TEST_UNIT_TRIGGER_STAGE_H

#include "trigger/consume.h"
#include "unit/test.h"

#define STAGE_ACTORS 3
#define STAGE_ACTS   4096
#define STAGE_LATE   32
#define STAGE_ID     "11111111-2222-4333-8444-555555555555"

struct stage;

/* What waits to happen: a call of the door, or an invocation. */
struct act {
    struct actor *actor;
    struct dynamo_call *call;
    struct invocation *invocation;
    int64_t ready_us;
};

struct actor {
    struct stage *stage;
    struct consumer *consumer; /* NULL: it is not there */
    char result[160];          /* the last one told */
    enum mapping_state state;  /* the last one reached */
    unsigned states_told;
    bool is_over; /* the stream, as it was last told */
};

struct stage {
    int64_t now_ms, ticks_us;
    struct clock clock;
    struct store_faults faults;
    struct engine *engine;
    struct api *api;
    struct dynamo *door;
    struct random random;
    struct arena arena;
    struct buf reply;
    const char *error;
    char stream_arn[200];
    bool shared, without_news, without_transactions;
    struct actor actors[STAGE_ACTORS];
    struct act acts[STAGE_ACTS];
    unsigned act_count;
    struct dynamo_call late[STAGE_LATE]; /* writes that are still under way, unheard; texts in the arena */
    unsigned late_count;
    /* Answers an invocation: sets `end` and fills `reply`. */
    void (*function)(struct stage *stage, struct invocation *invocation);
    void *context;
    void (*on_call)(struct actor *actor); /* told of each call that it begins; NULL: nobody */
    int64_t function_us;                  /* how long a function takes */
    bool allows_loops;
    const char *mended; /* a table that is made anew when it is not there; NULL: none */
    bool mends;         /* it was, just now */
    /* what was seen */
    unsigned invocations, queue_wakes, calls;
    struct buf log;        /* the function's own */
    struct buf payloads;   /* of all invocations, a line each */
    struct buf operations; /* of all calls of the door, separated by blanks */
    unsigned owners;       /* so that each consumer has its own name */
};

void stage_open(struct stage *stage, uint32_t shards);
/* Records are kept so long; 0: a day. */
void stage_open_keeping(struct stage *stage, uint32_t shards, int64_t retention_ms);
void stage_close(struct stage *stage);
/* Straight to the database; 200 when all is well. */
int stage_call(struct stage *stage, const char *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a call of the test's own, whose cause it may say. */
int stage_run(struct stage *stage, struct dynamo_call *call);
/* A table whose hash key is a text. */
void stage_make_table(struct stage *stage, const char *name, const char *key);
/* The table "things" (pk S, sk N) with a stream of both images. */
void stage_make_things(struct stage *stage);
/* All of it, with a function that accepts everything. */
void stage_open_things(struct stage *stage, uint32_t shards);
void stage_put(struct stage *stage, const char *pk, int sk, const char *text);
/* Splits all open shards of the stream. */
void stage_split(struct stage *stage);

/* A mapping with the defaults; to be changed before it is handed over. One reference. */
struct mapping *stage_mapping(const struct stage *stage);
void stage_add_filter(struct mapping *mapping, const char *pattern);
struct actor *stage_start(struct stage *stage, unsigned number);
/* It is gone without a word; its calls may still happen. */
void stage_crash(struct stage *stage, struct actor *actor);
void stage_stop(struct stage *stage, struct actor *actor);
void stage_set(struct actor *actor, struct mapping *mapping); /* takes the reference over */

/* What waits happens as it should, until nothing happens any more at this time. */
void stage_settle(struct stage *stage);
/* And time goes by, so long, stopping where something is due. */
void stage_pass(struct stage *stage, int64_t ms);
/* One of them happens. */
void stage_perform(struct stage *stage, unsigned index);
/* How it can go wrong. */
enum mishap {
    MISHAP_NONE,
    MISHAP_LOST_REPLY,
    MISHAP_NEVER_SENT,
    MISHAP_LATE, /* no reply comes, and one day it happens after all */
    MISHAP_THROTTLED,
    MISHAP_CONFLICT
};
#define MISHAPS 5
void stage_perform_with(struct stage *stage, unsigned index, enum mishap mishap);
/* One of those that are late arrives, if there is one. */
void stage_arrive(struct stage *stage);

/* An answer of a function. */
void stage_answer(struct invocation *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void stage_fail(struct invocation *invocation, const char *message);
/* How often a text occurs in another. */
unsigned count_text(struct slice text, const char *part);

#endif
