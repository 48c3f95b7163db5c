/* What the files of web share. */
#ifndef WEB_INTERNAL_H
#define WEB_INTERNAL_H

#include "base/random.h"
#include "base/stats.h"
#include "rest/rest.h"
#include "web/web.h"

#define WEB_ERROR_KINDS 48 /* different exceptions counted; there are about thirty */

struct error_stats {
    _Atomic(const char *) name; /* NULL: free */
    _Atomic uint64_t count;
};

/* What one loop keeps for itself. */
struct web_loop {
    struct dynamo_turn turn;
    struct dynamo_turn *region_turns; /* by place; NULL where regions share a database */
    struct random random;
};

struct web {
    struct dynamo *dynamo;
    struct func *func; /* each of these may be NULL, as web_options tells */
    struct gateway *gateway;
    const char *host, *nodes; /* as web_options tells */
    struct trigger *trigger;
    struct react *react;
    struct drive *drive;
    struct backup *backup;
    struct pattern *pattern;
    struct console *console;
    struct workers *workers;     /* for hooks that wait */
    _Atomic bool stops;          /* the server is about to end: nobody waits any more */
    struct engine *engine;       /* NULL: the data is elsewhere */
    struct web_regions *regions; /* NULL: one database for all */
    struct net_server *server;
    const struct clock *clock;
    struct keyring *keyring; /* NULL: any key is taken */
    struct rest_door *door;  /* which web pages may come in */
    struct slice region, prefix;
    int64_t started_ms;
    struct hooks *hooks; /* NULL: there are none */
    unsigned threads;
    struct web_loop *loops;             /* by index */
    struct histogram *operations; /* microseconds of each request, by operation number */
    struct error_stats errors[WEB_ERROR_KINDS];
    _Atomic uint64_t v1_requests;
};

/* ---- web.c ---- */

struct rest_head web_head_of(const struct http_exchange *exchange);

/* The headers every reply carries, in the exchange's arena; a checksum where the reply is whole already. */
struct slice web_common_headers(struct web *web, struct http_exchange *exchange, bool is_whole,
                                struct slice request_id);

/* NULL when no signature is asked for or the request has a good one; else as signature_fault. */
const char *web_signature_fault(struct web *web, struct http_exchange *exchange, enum signed_door door,
                                struct slice *message, enum rest_role *role);

/* ---- rest.c: Lambda's API, schedules, the resources under /v1 ---- */

/* Hands the request to the room whose route it is; false when it is nobody's. `cause` is empty unless a
 * function of ours calls; `trusted`: it need not be signed. */
bool web_serve_rest(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted);

/* The same for what is a function's by its host or path. */
bool web_serve_gateway(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted);

/* The page for browsers, and what is below /console/. */
bool web_serve_console(struct web *web, struct http_exchange *exchange, bool trusted);
/* Whether a browser opens the page in a tab of its own, from wherever: the page has no data, and changes nothing by
 * being opened. What is in a frame, or sent by a script or a form, is none. */
bool web_is_link_to_console(const struct web *web, const struct http_exchange *exchange);

/* Answers when the database, the triggers and the functions have nothing left to do. */
void web_serve_idle(struct web *web, struct http_exchange *exchange);

/* ---- metrics.c ---- */

void web_count_error(struct web *web, const char *error);
void web_put_metrics(struct web *web, struct buf *out);
struct console_counts;
void web_count_for_console(void *web, struct console_counts *out);

#endif
