/* What those who run flows share: the opened patterns. */
#ifndef PATTERN_INTERNAL_H
#define PATTERN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "pattern/flow.h"
#include "pattern/pattern.h"

struct memory;
struct server;

struct pattern {
    struct dynamo *dynamo;
    const struct clock *clock;
    const struct pattern_host *host;
    struct flow_world world;
    struct memory *memory;
    struct job_meters *job_meters;
    char *prefix;
    struct rest_route *routes; /* one per row, in the same order */
    struct rest_index index;
    size_t route_count;
    _Atomic uint64_t serial;
    uint64_t seed; /* of the first flow */
    struct server *server;
};

/* ---- routes.c ---- */

/* The row of a request, its parameters filled. NULL with *refused: it has been answered (405). NULL: not
 * ours. */
const struct flow_row *pattern_find(struct pattern *pattern, struct rest_call *call, bool *refused);
/* What a flow begins with; row and request are the caller's. */
struct flow_start pattern_start_of(struct pattern *pattern, struct arena *arena, struct buf *body);
/* A finished flow's answer becomes the call's. */
void pattern_answer(const struct flow *flow, struct rest_call *call);
/* The reply of the door as the flow takes it, copied into its arena. */
struct flow_reply pattern_reply(struct arena *arena, int status, struct slice body);

/* ---- then.c ---- */

/* What is wrong with "POST /v1/...", where a segment with a place in it may become anything; words that go on
 * from "then" or "it". NULL: nothing. */
const char *then_call_fault(struct slice call);

/* ---- server.c ---- */

struct server *server_open(struct pattern *pattern, bool sweeps);
/* Nothing waits any more. */
void server_stop(struct server *server);
void server_close(struct server *server);
void server_begin(struct server *server, const struct flow_row *row, struct rest_call *call,
                  const struct pattern_host *host);
/* A sweep, on a thread that is lent to it; the flow is in the arena. */
const struct flow *server_sweep(struct server *server, const struct flow_sweep *what, struct arena *arena,
                                struct buf *body, const struct pattern_host *host);

#endif
