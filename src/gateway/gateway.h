/* From any URL to a function: requests of HTTP become Lambda's events, and what the function answers becomes the reply.
 *
 * A function's URL is http://ID.lambda-url.HOST/, or /_url/NAME/ on any host of the server's. Behind the one or the
 * other everything is the function's: methods, paths and queries mean nothing to us. The events have the payload format
 * 2.0 of API Gateway.
 *
 * An API is a name with routes, "GET /users/{id}" and the like, each to a function. It answers at
 * http://NAME.execute-api.HOST/ and /_api/NAME/; /v1/routes is where it is defined.
 *
 * What holds always:
 *  - A host name with lambda-url or execute-api in it leads to functions only, whatever the path: a page that a
 *    function has served there reaches nothing else of this server by its own origin. What is served below a path of
 *    ours is sandboxed (Content-Security-Policy), for the same reason.
 *  - A page of another origin comes in only where the settings for CORS name its origin; else the server's own rule
 *    about pages (rest_door) refuses it.
 *  - Nothing waits on the thread that a request came in by, and every request is answered: a function's run ends by
 *    its time-out at the latest, also when the client is gone or takes nothing. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "base/clock.h"
#include "func/func.h"
#include "rest/rest.h"

struct gateway;

struct gateway_options {
    struct func *func; /* all of these are kept, not owned */
    struct dynamo *dynamo;
    const char *prefix; /* of our tables' names; NULL: "quipu-" */
    bool shared;        /* other servers work on the same tables */
    const struct clock *clock;
    const char *account;
    /* Whether the request is signed by somebody who may call functions, and by which key. On the thread that it came in
     * by. */
    bool (*is_signed)(struct rest_call *call, struct slice *key);
};

struct gateway *gateway_open(const struct gateway_options *options);
/* When no request is under way any more. */
void gateway_close(struct gateway *gateway);

/* Whom a request is for, by its host and its path. */
enum gateway_door {
    GATEWAY_NONE, /* somebody else */
    GATEWAY_URL,  /* a function's URL */
    GATEWAY_API,
};
struct gateway_target {
    enum gateway_door door;
    struct slice name; /* an id, a function's name[:alias], an API's name */
    bool by_host;      /* the id */
    struct slice path; /* that is left for the function */
};
struct gateway_target gateway_target(const struct rest_head *head);

/* Whether CORS lets the page in that sent the request. Never waits. */
bool gateway_opens(struct gateway *gateway, const struct rest_head *head);
/* Answers the request, now or later. */
void gateway_serve(struct gateway *gateway, struct rest_call *call, const struct gateway_target *target);

/* /v1/routes. False: it is none of these paths. */
bool gateway_serve_routes(struct gateway *gateway, struct rest_call *call);

#endif
