/* DynamoDB's JSON protocol over the engine: requests are decoded, validated in the service's order with the
 * service's words, executed, and answered.
 *
 * A call walks through three steps, so that a server can do each on the right thread:
 * - api_begin: decode, validate, and execute what only reads. Afterwards the call is either finished or it is
 *   a write;
 * - the writer: a write's `commit` goes to engine_submit; the engine applies it with all others that wait;
 * - api_finish, after the commit is done: the reply's JSON.
 *
 * Everything of a call lives in its arena, but for the reply, which goes into the caller's buf. */
#ifndef API_API_H
#define API_API_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "engine/engine.h"

struct api;
struct operation;

struct api_options {
    struct engine *engine; /* kept, not owned */
    const char *region;    /* in ARNs */
    const char *account;   /* in ARNs: twelve digits */
    const char *endpoint;  /* host:port for DescribeEndpoints */
    int64_t creating_ms;   /* how long a new table is CREATING; 0: it is of use at once */
    bool is_lenient;       /* take what other local DynamoDBs take, see lenient.c */
};

struct api *api_new(const struct api_options *options);
void api_free(struct api *api);

/* Operations by name ("PutItem"); NULL when there is none. The name and number serve metrics. */
const struct operation *api_operation_find(struct slice name);
struct slice api_operation_name(const struct operation *operation);
/* True for those that the service offers as DynamoDBStreams_20120810. */
bool api_operation_is_of_streams(const struct operation *operation);
unsigned api_operation_number(const struct operation *operation);
unsigned api_operation_count(void);
const struct operation *api_operation_at(unsigned number);

struct api_call {
    /* the caller's part */
    struct api *api;
    struct arena *arena;
    struct buf *reply; /* the JSON body is appended */
    const struct operation *operation;
    struct slice body;
    bool in_order;     /* TransactWriteItems: takes its turn among those that wait, as single writes do; no
                          conflict */
    bool shows_causes; /* GetRecords: tell what led to the changes, in members "cause" and "transaction", and
                        * when they were made, in "time" (ms) */
    /* the answer */
    int status;        /* HTTP: 200, 400, 500 */
    const char *error; /* the exception's short name, NULL when all is well */
    /* between begin and finish */
    struct commit commit;
    bool is_write;           /* after api_begin: submit the commit, then api_finish */
    void *state;             /* of the operation */
    struct held_table *held; /* tables counted for this call, released when it ends */
    size_t reply_start;      /* of this call's part of the reply: an error takes back what stands behind */
};

void api_begin(struct api_call *call);
void api_finish(struct api_call *call);
/* All steps at once, waiting for the writer. */
void api_run(struct api_call *call);

/* An item in DynamoDB JSON: {"a":{"S":"x"},...}. Also straight from its encoded form, without decoding it. */
void api_put_item_json(struct buf *out, const struct map *item);
bool api_put_encoded_item_json(struct buf *out, struct slice encoded);

/* Errors outside any operation in the service's form, {"__type":"...","message":"..."}. Answers the status.
 */
int api_put_error(struct buf *out, const char *short_name, struct slice message);
/* The exception's short name as the table of errors spells it; NULL when there is none. */
const char *api_error_find(struct slice short_name);
/* The same with further members of the body: text of the form "Name":value,... */
int api_put_error_with(struct buf *out, const char *short_name, struct slice message, struct slice members);

#endif
