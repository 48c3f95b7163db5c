/* A stage for functions that run: a database in memory, a server with two loops, the sandbox, and functions
 * whose processes are the guest (func_guest.c) or a script. */
#ifndef TEST_UNIT_FUNC_STAGE_H
#define TEST_UNIT_FUNC_STAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "func/internal.h"
#include "unit/test.h"

struct stage_options {
    uint32_t process_max;
    int64_t idle_ms;
    bool shared;
    struct dynamo *dynamo; /* of another stage; NULL: its own */
};

struct stage {
    struct stage_options options;
    struct dynamo *dynamo;
    struct sandbox *sandbox;
    struct net_server *server;
    struct func *func;
    struct clock clock;
    _Atomic int64_t ahead_ms; /* of the system's clock */
    pthread_t thread;
    char folder[64];
    bool has_server_ended;
    /* what the functions' requests to the server were */
    pthread_mutex_t lock;
    char forwarded_path[128], forwarded_cause[256];
};

void stage_open(struct stage *stage, const struct stage_options *options);
/* Ends the server first (or after, as `func_close` must bear both), then all. */
void stage_close(struct stage *stage);
void stage_close_func_first(struct stage *stage);
/* Closes the room and opens it again on the same tables. */
void stage_restart(struct stage *stage);

/* Makes a function whose bootstrap is the guest; `more` is JSON behind a comma, or "". `guest` is how it
 * begins. It has a minute for an event unless `more` says otherwise. */
void stage_function(struct stage *stage, const char *name, const char *guest, const char *more);
/* The same with a script. */
void stage_script(struct stage *stage, const char *name, const char *script, const char *more);
/* Puts the guest into a folder as this file. */
void stage_put_guest(const char *path);
/* An event that the guest answers with 2 as soon as the gate is opened; in the arena. */
const char *stage_gated(struct stage *stage, struct arena *arena);
void stage_open_gate(struct stage *stage);
/* The folder of a function. */
void stage_folder(struct stage *stage, const char *name, char *out, size_t room);
void stage_write_file(const char *path, const char *text, unsigned mode);

/* One call and its outcome. */
struct outcome {
    struct invocation invocation; /* first: the invocation is us */
    struct arena arena;
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_done;
    _Atomic int *counter; /* raised when done, or NULL */
};

/* Fills it, for whoever invokes by himself. */
void outcome_prepare(struct outcome *outcome, const char *name, const char *payload);
void outcome_begin(struct outcome *outcome, struct stage *stage, const char *name, const char *payload);
void outcome_wait(struct outcome *outcome);
void outcome_free(struct outcome *outcome);
/* Begins and waits. */
void outcome_call(struct outcome *outcome, struct stage *stage, const char *name, const char *payload);

/* Calls and compares the end and the reply. */
#define STAGE_EXPECT(stage, name, payload, expected_end, expected_reply)                                     \
    do {                                                                                                     \
        struct outcome stage_outcome = {0};                                                                  \
        outcome_call(&stage_outcome, (stage), (name), (payload));                                            \
        CHECK_INT(stage_outcome.invocation.end, (expected_end));                                             \
        CHECK_TEXT(buf_view(&stage_outcome.invocation.reply), (expected_reply));                             \
        outcome_free(&stage_outcome);                                                                        \
    } while (0)

/* Calls the door; the reply's text is in the arena. */
struct slice stage_dynamo(struct stage *stage, const char *operation, const char *request,
                          struct arena *arena);
/* Waits until the condition holds; false when that takes too long for any machine. */
bool stage_until(bool (*holds)(void *context), void *context);
/* How many processes of a function are in a state, as GET /v1/functions/NAME/processes tells; NULL: in any.
 */
unsigned stage_processes(struct stage *stage, const char *name, const char *state);
/* Waits until its one process has asked for the next event, so that a call finds it. */
void stage_rest_process(struct stage *stage, const char *name);
/* The log of a function once it holds the text; in the arena. */
struct slice stage_log(struct stage *stage, const char *name, const char *until, struct arena *arena);
/* Calls a route of the room's; the status, and the reply in the arena. */
int stage_rest(struct stage *stage, const char *method, const char *target, const char *body,
               struct arena *arena, struct slice *reply);

#endif
