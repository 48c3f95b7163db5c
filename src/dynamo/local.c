/* The door to the engine in this process. */
#include <stddef.h>
#include <stdlib.h>

#include "base/fail.h"
#include "dynamo/dynamo.h"

struct dynamo {
    struct engine *engine;
    struct api *api;
};

struct dynamo *dynamo_open_local(struct engine *engine, struct api *api)
{
    struct dynamo *dynamo = must_zero(1, sizeof *dynamo);
    dynamo->engine = engine;
    dynamo->api = api;
    return dynamo;
}

void dynamo_close(struct dynamo *dynamo)
{
    free(dynamo);
}

static void commit_done(struct commit *commit)
{
    struct dynamo_call *call = (struct dynamo_call *)((char *)commit - offsetof(struct dynamo_call, api.commit));
    call->done(call);
}

static void take_answer(struct dynamo_call *call)
{
    call->status = call->api.status;
    call->error = call->api.error;
}

bool dynamo_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    call->api = (struct api_call){.api = dynamo->api,
                                  .arena = call->arena,
                                  .reply = call->reply,
                                  .operation = call->operation,
                                  .body = call->request};
    api_begin(&call->api);
    take_answer(call);
    if (!call->api.is_write) return true;
    call->api.commit.done = commit_done;
    commit_list_add(&turn->writes, &call->api.commit);
    return false;
}

void dynamo_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    engine_submit(dynamo->engine, &turn->writes);
}

void dynamo_finish(struct dynamo_call *call)
{
    api_finish(&call->api);
    take_answer(call);
}
