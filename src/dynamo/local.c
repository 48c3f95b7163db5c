/* The door to the engine in this process. Its begin is on the path of every request that a server answers: it
 * adds nothing to api_begin but the hand-over of the writes. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/limits.h"
#include "dynamo/internal.h"

#define ACCOUNT "000000000000" /* in ARNs, as the server has it */

struct local {
    struct dynamo door;
    struct api *api;
    bool owns;                           /* engine and api go with the door */
    char region[LIMIT_REGION_BYTES + 1]; /* which the api refers to, when it is ours */
};

static void commit_done(struct commit *commit)
{
    struct dynamo_call *call = (struct dynamo_call *)((char *)commit -
                                                      offsetof(struct dynamo_call, api.commit));
    call->done(call);
}

static void take_answer(struct dynamo_call *call)
{
    call->status = call->api.status;
    call->error = call->api.error;
}

static bool local_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct local *local = (struct local *)dynamo;
    if (!call->operation) call->operation = api_operation_find(call->name);
    if (!call->operation) return refuse_unknown_operation(call);
    call->api = (struct api_call){.api = local->api,
                                  .arena = call->arena,
                                  .reply = call->reply,
                                  .operation = call->operation,
                                  .body = call->request,
                                  .in_order = call->in_order,
                                  .shows_causes = call->shows_causes};
    api_begin(&call->api);
    take_answer(call);
    if (!call->api.is_write) return true;
    call->api.commit.done = commit_done;
    call->api.commit.cause = call->cause;
    call->api.commit.is_quiet = call->is_quiet;
    commit_list_add(&turn->writes, &call->api.commit);
    return false;
}

static void local_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    engine_submit(dynamo->engine, &turn->writes);
}

static void local_finish(struct dynamo_call *call)
{
    api_finish(&call->api);
    take_answer(call);
}

static void local_close(struct dynamo *dynamo)
{
    struct local *local = (struct local *)dynamo;
    if (local->owns) {
        engine_close(dynamo->engine);
        api_free(local->api);
    }
    free(local);
}

static const struct dynamo_methods local_methods = {
    .begin = local_begin, .turn_end = local_turn_end, .finish = local_finish, .close = local_close};

struct dynamo *dynamo_open_local(struct engine *engine, struct api *api)
{
    struct local *local = must_zero(1, sizeof *local);
    local->door = (struct dynamo){&local_methods, engine};
    local->api = api;
    return &local->door;
}

struct dynamo *local_open_owning(struct engine *engine, const char *region,
                                 const struct dynamo_options *options)
{
    struct local *local = (struct local *)dynamo_open_local(engine, NULL);
    ensure(strlen(region) < sizeof local->region);
    strcpy(local->region, region);
    local->owns = true;
    local->api = api_new(&(struct api_options){.engine = engine,
                                               .region = local->region,
                                               .account = ACCOUNT,
                                               .endpoint = "localhost",
                                               .creating_ms = options->creating_ms,
                                               .is_lenient = options->is_lenient});
    return &local->door;
}
