/* A running server's other doors: Lambda's API, the scheduler's, our own. Calls over HTTP whose replies are
 * trees, signed as those to DynamoDB are, and the sentences for what went wrong. */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include "base/node.h"
#include "cli/cli.h"
#include "client/client.h"

struct service {
    struct client *client;
    const char *where;
    bool is_default; /* nobody said where */
    struct credentials keys;
    struct slice base, host, path, region; /* of the URL: without a slash at its end; what follows the host */
    struct arena arena;
};

struct request {
    const char *name;   /* of the service that it is signed for: "lambda", "scheduler" */
    const char *method; /* "GET" */
    const char *path;   /* names in it escaped by put_escaped */
    const char *query;  /* escaped, the names in order; NULL: none */
    struct slice body;
    const char *header;  /* a further one, ready; NULL: none */
    const char *header2; /* and another */
    int64_t total_ms;    /* 0: a minute */
};

struct response {
    int status;
    struct slice body;
    const struct node *json;                         /* NULL when it is no JSON */
    const char *error;                               /* the exception's name; NULL: all went well */
    const char *message;                             /* of the error */
    struct slice function_error, log_tail, position, etag; /* headers; empty: not there */
};

#define UPLOAD_MS                                                                                            \
    (10 * 60 * 1000) /* for an archive to be sent, unpacked and on the disk, on slow ones, too */

/* A request with a body, or without (NULL). */
struct request request_to(const char *service, const char *method, const char *path, const struct buf *body);

/* Where --on points. False after complaining. */
bool service_open(struct service *out, const struct arguments *arguments);
void service_close(struct service *service);

/* A call of the client, signed now: method, url, headers, body, total_ms and arena. */
struct client_call service_sign(struct service *service, struct arena *arena, const struct request *request);
/* What came of a call: the response to it, all in the arena. */
void response_read(struct response *out, struct arena *arena, const struct client_call *call);
/* Calls and waits; all of the response is in the arena. False when nobody answered, and why. */
bool service_try(struct service *service, struct arena *arena, const struct request *request, struct response *out,
                 struct slice *failure);
/* Calls and waits; all of the response is in the arena. False after complaining that nobody answered. */
bool service_ask(struct service *service, struct arena *arena, const struct request *request,
                 struct response *out);
/* The same for who needs no more than a reply: false after complaining also of an error. */
bool service_call(struct service *service, struct arena *arena, const struct request *request,
                  struct response *out);
int service_complain(const struct response *response);
/* The server says that there is no such function. */
bool service_lacks_function(struct service *service, struct arena *arena, const char *function);
/* A whole command: deletes what the words name, one after the other; `format` is the path of one. */
int service_remove_words(const struct arguments *arguments, const char *service, const char *format);
bool response_is(const struct response *response, const char *error);

/* A text as a part of a path or a query. */
void put_escaped(struct buf *out, struct slice text);
/* A path with one or two names in it: "/2015-03-31/functions/%s/aliases/%s". */
const char *path_of(struct arena *arena, const char *format, const char *first, const char *second);

/* All members of a list that comes in pages, in an array of the arena; NULL after complaining. `marker` is
 * the query's name for the reply's `next`. */
const struct node **service_list(struct service *service, struct arena *arena, struct request request,
                                 const char *member, const char *marker, const char *next, size_t *count);

#endif
