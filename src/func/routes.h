/* Our own resources of functions, beside Lambda's: what they printed, what runs. */
#ifndef FUNC_ROUTES_H
#define FUNC_ROUTES_H

#include "rest/rest.h"

/* GET /v1/functions/{name}/logs?from=&max=&wait=30s&follow=1
 * GET /v1/functions/{name}/processes
 * POST /v1/queues/{name}/redrive, see redrive.c */
extern const struct rest_route func_routes[];
extern const size_t func_route_count;

/* ---- redrive.c ---- */
void redrive_serve(void *room, struct rest_call *call);

#endif
