/* The HTTP doors: DynamoDB's protocol (POST with X-Amz-Target), the REST routes of the rooms below (Lambda's API,
 * schedules, patterns under /v1), health, metrics, hooks for tests.
 *
 * Runs on the loops' threads of net. Each loop has its own turn of writes and its own random numbers, so
 * requests of different loops share nothing here but counters. A write's exchange waits for the writer and is
 * answered on the loop that read it. */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include <stdatomic.h>

#include "dynamo/dynamo.h"
#include "net/net.h"

struct web;
struct func;
struct trigger;
struct react;
struct drive;
struct pattern;
struct gateway;
struct backup;
struct console;
struct rest_call;

/* The time that the database lives by: the system's, unless a test hook has moved it. */
struct web_clock {
    _Atomic int64_t offset_ms;
    _Atomic int64_t frozen_ms; /* not 0: it stands still here */
};
int64_t web_clock_now(void *clock); /* of a struct web_clock: the function of a struct clock */

/* Databases of their own for each access key and region, up to `most`. In a folder, or in memory where that is NULL;
 * each is opened with these options when it is first used. */
struct web_regions;
struct web_regions *web_regions_open(const char *folder, uint32_t most, const struct dynamo_options *options);
/* When no loop runs any more. */
void web_regions_close(struct web_regions *regions);
/* True and the reason when one of them has stopped writing. */
bool web_regions_failed(struct web_regions *regions, char *reason, size_t reason_len);

/* What it points at is kept, not owned. */
struct web_options {
    struct dynamo *dynamo;
    struct engine *engine;       /* for metrics and health only; NULL: the data is elsewhere */
    struct api *api;             /* for the hooks for tests only; NULL as the engine */
    struct func *func;           /* NULL: there are no functions, */
    struct trigger *trigger;     /* no triggers and schedules, */
    struct react *react;         /* nobody carries out reactions, */
    struct drive *drive;         /* nothing is driven, */
    struct backup *backup;       /* nobody may copy the database, */
    struct pattern *pattern;     /* there are no patterns, */
    struct gateway *gateway;     /* no URLs of functions, */
    struct console *console;     /* and no console */
    struct web_regions *regions; /* NULL: all keys and regions see the same tables */
    const char *credentials;     /* a file of keys, or NULL: any key is taken */
    const char *host;            /* that the server listens on; NULL: the loopback */
    const char *nodes;           /* that GET /localnodes lists, + between them; NULL or empty: the host alone */
    const char *const *allow_origins, *const *allow_hosts; /* of web pages, see rest_door; NULL ends each; may
                                                              be NULL */
    const char *prefix;                                    /* of the server's own tables; NULL: quipu- */
    const char *region;
    unsigned threads; /* of the server: each loop has its own turn */
    const struct clock *clock;
    struct web_clock *hook_clock; /* serve the hooks for tests, which may move this clock; NULL: none */
};

/* NULL and one clear sentence when the credentials cannot be read or what is allowed is not understood. */
struct web *web_new(const struct web_options *options, char *error, size_t error_len);
void web_free(struct web *web);
struct net_handler web_handler(struct web *web);
/* What a function of ours sends to the port that it was given; a func_forward whose context is the web. */
void web_forward(void *context, struct http_exchange *exchange, struct slice cause);
/* For pattern_options: flows run on the loops that their requests came in by. */
extern const struct pattern_host web_pattern_host;
/* For gateway_options. */
bool web_is_signed(struct rest_call *call, struct slice *key);
/* For the metrics of connections; before the server runs. */
void web_set_server(struct web *web, struct net_server *server);
/* The console begins to sample what the doors do. */
void web_start(struct web *web);

#endif
