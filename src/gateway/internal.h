/* What the files of gateway share. */
#ifndef GATEWAY_INTERNAL_H
#define GATEWAY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "gateway/gateway.h"
#include "velocity/velocity.h"

struct gateway {
    struct gateway_options options;
    struct workers *workers; /* for what waits for the tables */
    struct slice table;      /* of the APIs: its name */
    _Atomic uint64_t count;  /* of requests: ids follow from it */
    uint64_t seed;
    pthread_mutex_t lock; /* of all below */
    struct api *apis;
    uint32_t api_count;
    _Atomic bool is_reading; /* all of them */
    uint64_t changes; /* made here: what was read before one is not kept */
    struct arena arena;
};

/* ---- api.c: definitions; immutable and counted ---- */

struct route {
    struct slice key;          /* "GET /users/{id}", "$default" */
    struct slice method, path; /* empty: of $default */
    struct slice function; /* empty: it is a call of DynamoDB's: */
    struct slice operation, request, response; /* its name, templates; NULL data: the body, the reply as they are */
    struct slice responses;                    /* others by the reply's status, as JSON; empty: none */
    int status;
    bool is_payload_1; /* the event has the payload format 1.0 */
    bool is_signed;
};

struct api {
    struct slice name, definition;
    struct slice cors, variables; /* JSON; empty: none */
    struct slice stage;
    struct route *routes;
    uint32_t count;
    int64_t read_us; /* monotonic */
    struct api *next;
    struct arena arena;
    _Atomic uint32_t references;
};

/* A label of a host's name, in small letters. */
bool api_name_is_valid(struct slice name);
/* NULL and a sentence when the definition is wrong. */
struct api *api_read(struct slice name, struct slice definition, char *error, size_t error_len);
struct api *api_keep(struct api *api);
void api_release(struct api *api); /* NULL is fine */
/* The most specific one; NULL: none. */
const struct route *api_route(const struct api *api, struct slice method, struct slice path);
/* {"id":"7"}; empty: the route has none. */
struct slice route_parameters(const struct route *route, struct slice path, struct arena *arena);

/* ---- apis.c: the table, and what is in memory of it. All but apis_known wait ---- */

enum stored { STORED_FINE, STORED_AGAIN, STORED_ANSWERED, STORED_FAILED };
/* NULL data: there is none. False: the table cannot be read. */
bool apis_read(struct gateway *gateway, struct slice name, struct arena *arena, struct slice *definition,
                int64_t *version);
/* Makes the new definition of the old one (NULL data: there is none); an empty one deletes it. False: it was refused.
 * Called again when somebody else was faster. */
typedef bool apis_edit(void *context, struct slice before, struct arena *arena, struct slice *after);
enum stored apis_change(struct gateway *gateway, struct slice name, apis_edit *edit, void *context);
bool apis_list(struct gateway *gateway, struct arena *arena,
                void (*each)(void *context, struct slice name, struct slice definition), void *context);
/* Counted; NULL: it must be read. `any_age`: also what others may have changed meanwhile. */
struct api *apis_known(struct gateway *gateway, struct slice name, bool any_age);
/* Reads all of them, on a worker, unless that is under way. Does not wait. */
void apis_read_soon(struct gateway *gateway);
struct api *apis_load(struct gateway *gateway, struct slice name, bool *failed); /* the same; NULL: there is none */
void apis_forget(struct gateway *gateway, struct slice name);
void apis_close(struct gateway *gateway);

/* A request on its way to a function; in the call's arena. */
struct visit {
    struct gateway *gateway;
    struct rest_call *call;
    struct gateway_target target;
    struct api *api;     /* counted; NULL: a function's URL */
    struct slice place;  /* the URL's id, the API's name */
    struct slice function, qualifier;
    const struct route *mapped; /* a call of DynamoDB's; NULL: a function's */
    struct slice route, route_path; /* "GET /users/{id}" or $default, "/users/{id}" */
    struct slice stage;
    struct slice cors, variables, parameters; /* JSON; empty: none */
    struct slice path; /* without the stage */
    bool is_payload_1, is_signed;
    struct slice key;  /* that signed it; empty: none */
    struct slice host; /* the name that it came by, without the port */
    int64_t now_ms;
    char id[37];
    bool has_looked; /* into the tables, for what was not known */
    struct invocation invocation;
    bool streams;   /* the reply is sent as it comes */
    bool has_begun; /* its head was sent */
    bool is_bad;    /* its prelude cannot be sent: what follows is thrown away */
    struct buf prelude;         /* as far as it came */
    struct func_stream *stream; /* that waits for room; under the gateway's lock */
};

/* ---- event.c ---- */

/* Bytes of a header that are no UTF-8 are taken for Latin-1, as HTTP had it: what goes into an event must be text. */
struct slice http_text(struct arena *arena, struct slice bytes);

/* The event of a request, in the payload format that is wanted; in the arena. */
struct slice http_event_write(struct visit *visit);

/* What a mapping template sees of it. */
struct velocity_input http_mapping_input(struct visit *visit);

/* ---- mapping.c ---- */

/* The pattern of a status, as API Gateway's selection patterns are; false: it is none. */
bool mapping_pattern_fits(struct slice pattern, int status, bool *fits);
/* Calls DynamoDB and answers the call; waits. `finish` ends it. */
void mapping_run(struct visit *visit, void (*finish)(struct visit *visit, int status));

/* ---- answer.c ---- */

/* What a function's reply says. */
struct http_answer {
    int status;
    struct slice content_type; /* empty: none was given */
    struct slice headers;      /* ready lines, each ended by CRLF */
    struct slice body;
};
/* NULL, or a sentence that tells what is wrong with it. `is_strict`: it must be an object, as the payload format 1.0
 * has it. */
const char *http_answer_read(struct slice reply, bool is_strict, struct arena *arena, struct http_answer *out);
/* The same where status, headers and cookies stand before the body: JSON, then 8 zeros. */
const char *http_answer_read_prelude(struct slice reply, struct arena *arena, struct http_answer *out);

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
