/* What the files of gateway share. */
#ifndef GATEWAY_INTERNAL_H
#define GATEWAY_INTERNAL_H

#include <stdatomic.h>

#include "gateway/gateway.h"

struct gateway {
    struct gateway_options options;
    struct rest_workers *workers; /* for what waits for the tables */
    _Atomic uint64_t count;       /* of requests: ids follow from it */
    uint64_t seed;
};

/* A request on its way to a function; in the call's arena. */
struct visit {
    struct gateway *gateway;
    struct rest_call *call;
    struct gateway_target target;
    struct func_url url;
    struct slice key;  /* that signed it; empty: none */
    struct slice host; /* the name that it came by, without the port */
    int64_t now_ms;
    char id[37];
    bool has_looked; /* into the tables, for what was not known */
    struct invocation invocation;
};

/* ---- event.c ---- */

/* The event of a request in the payload format 2.0; in the arena. */
struct slice http_event_write(struct visit *visit);

/* ---- answer.c ---- */

/* What a function's reply says. */
struct http_answer {
    int status;
    struct slice content_type; /* empty: none was given */
    struct slice headers;      /* ready lines, each ended by CRLF */
    struct slice body;
};
/* NULL, or a sentence that tells what is wrong with it. */
const char *http_answer_read(struct slice reply, struct arena *arena, struct http_answer *out);

/* ---- cors.c: settings are {"AllowOrigins":[...], ...} as Lambda has them; empty: there are none ---- */

/* Whether pages of the origin may come in; an empty one: pages of whatever origin. */
bool cors_allows(struct slice cors, struct slice origin, struct arena *arena);
/* True when the request is a browser's question before the one that it means, and the server's to answer. */
bool cors_is_preflight(const struct rest_call *call, struct slice cors);
/* The lines that go with a reply, where the settings let the origin in. */
void cors_put(struct rest_call *call, struct slice cors, bool is_preflight);
/* Whether a line of this name is the settings' to write. */
bool cors_owns_header(struct slice name);

#endif
