/* A world for schedules: a database in memory, a clock that is set by hand, functions that only count their
 * calls, and a door that can be let fail. Servers are opened on it and closed again as a test likes. */
#ifndef TEST_UNIT_TRIGGER_SCHEDULE_H
#define TEST_UNIT_TRIGGER_SCHEDULE_H

#include "trigger/schedule.h"
#include "unit/test.h"

#define SERVERS 2

enum failing { FAIL_NOT, FAIL_BEFORE, FAIL_AFTER }; /* AFTER: it was done, but the reply was lost */

struct world;

struct world_server {
    struct world *world;
    struct trigger trigger;
    struct task_host *host;
};

struct world {
    struct dynamo *dynamo;
    bool has_transactions;
    _Atomic int64_t now_ms, ticks_us;
    struct clock clock;
    bool has_function;
    enum failing failing;
    unsigned fail_at; /* the nth call of the door from now on */
    unsigned calls;
    _Atomic unsigned wakes;
    bool repeats; /* each write is made twice, as by a door whose first attempt got no reply */
    void (*before_write)(struct world *world);                   /* called once, before the next write */
    bool (*hold)(struct world *world, struct dynamo_call *call); /* true: it is kept, and answered later */
    struct world_server servers[SERVERS];
};

/* With now_ms at 2025-06-01T00:00:00Z, and transactions. */
void world_open(struct world *world);
void world_close(struct world *world);
/* What a door does with a call. */
void world_answer(struct world *world, struct dynamo_call *call);
/* Opens, closes or restarts a server; its thread is not started. */
void server_open(struct world *world, unsigned nth);
void server_close(struct world *world, unsigned nth);

/* A request to a server. The reply is in *reply, which the caller frees; answers the status. */
struct asked {
    int status;
    struct buf reply;
    struct arena arena;
    struct slice headers;
};
void ask(struct world *world, unsigned nth, const char *method, const char *path, const char *body,
         struct asked *out);
/* The same where only the status counts, and the reply must contain a text (NULL: any). */
void expect(struct world *world, const char *method, const char *path, const char *body, int status,
            const char *part);
/* Creates a schedule of the function "f" with these further members, ',"State":"DISABLED"'. */
void schedule_make(struct world *world, const char *name, const char *expression, const char *more);
/* The same with its Input, as the text of a JSON string. */
void schedule_make_with(struct world *world, const char *name, const char *expression, const char *input,
                        const char *more);

/* Turns a server until it has nothing to do. */
void server_turn(struct world *world, unsigned nth);
/* Moves the clock on in steps, turning the server after each. */
void server_run(struct world *world, unsigned nth, int64_t until_ms, int64_t step_ms);

struct schedules *schedules_of(struct world *world, unsigned nth);
/* Reads the table again, as servers that share it do. */
bool server_read(struct world *world, unsigned nth);

/* How many calls of the function were put into the queue, each of another due time; any that was put twice is
 * a failure, where they are put by transactions. */
size_t calls_count(struct world *world);
/* How many calls' payloads contain the text, as JSON has it; whether there is one. */
size_t calls_with(struct world *world, const char *part);
bool calls_have(struct world *world, const char *part);
size_t letters_count(struct world *world);

int64_t moment(const char *text);

#endif
