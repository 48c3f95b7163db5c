/* The one door to data: an operation's name and a request in DynamoDB's JSON go in, a reply in JSON comes out.
 *
 * Whatever stands above (HTTP, command line, and all that is built on top) goes through here, so that the same code can run on
 * the engine in this process or on any other DynamoDB endpoint. A call has two halves, because a write waits for the
 * writer: dynamo_begin either finishes it at once or takes it into the caller's turn; dynamo_turn_end hands the turn's
 * writes over in one piece; when a write is on disk its `done` is called, on a thread of the door's, and the caller
 * finishes it with dynamo_finish on whichever thread it likes.
 *
 * A call belongs to the caller and must stay until it is finished; so must its arena and reply. */
#ifndef DYNAMO_DYNAMO_H
#define DYNAMO_DYNAMO_H

#include <stdbool.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

struct dynamo;

struct dynamo_call {
    const struct operation *operation;
    struct slice request;
    struct arena *arena;
    struct buf *reply;
    void (*done)(struct dynamo_call *call);
    /* answers */
    int status;
    const char *error; /* the exception's short name, NULL when all is well */
    /* private */
    struct api_call api;
};

/* The writes that one thread has begun and not yet handed over. Zeroed: empty. */
struct dynamo_turn {
    struct commit_list writes;
};

/* The engine in this process. Keeps both, owns neither. */
struct dynamo *dynamo_open_local(struct engine *engine, struct api *api);
void dynamo_close(struct dynamo *dynamo);

/* True when the call is finished already; else its `done` will be called some time after dynamo_turn_end. */
bool dynamo_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn);
void dynamo_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn);
void dynamo_finish(struct dynamo_call *call);

#endif
