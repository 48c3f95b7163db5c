/* quipu cost: what the patterns cost on Amazon DynamoDB, measured here.
 *
 * A meter runs patterns on a database in memory, or at a URL in tables of its own, by a clock of its own:
 * what a call costs may depend on the second that it comes in, and here it always comes in the same one. */
#ifndef CLI_COST_H
#define CLI_COST_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/node.h"
#include "cli/cli.h"
#include "cli/listing.h"

struct meter {
    struct dynamo *dynamo;
    struct pattern *pattern;
    struct clock clock;
    int64_t now_ms;
    char prefix[40]; /* of the tables */
    bool is_remote;
    struct arena arena; /* of the last call */
    struct buf reply;
    const char *header; /* "Name: value" of the call under way, or NULL */
};

/* What a call came to. The texts live until the next. */
struct measure {
    int status;
    struct slice reply;
    const struct node *json; /* of the reply; NULL when it is none */
    double writes, reads, dollars;
    unsigned long long calls;
};

/* Opens what --on names, else memory. False after complaining. */
bool meter_open(struct meter *out, const struct arguments *arguments);
/* Removes the tables that were made elsewhere. */
void meter_close(struct meter *meter);

/* Calls a pattern by "POST /v1/counters/x". False when there is no such route. */
bool meter_ask(struct meter *meter, const char *request, const char *header, struct slice body,
               struct measure *out);
/* Calls an operation of DynamoDB. False after complaining. */
bool meter_call(struct meter *meter, const char *operation, struct slice request);
void meter_wait(struct meter *meter, int64_t ms);

/* ,"writeUnits":1,"readUnits":0,"calls":1,"dollarsPerMillion":0.625 */
void put_measure(struct buf *out, const struct measure *measure);
/* A number as people read it: 1, 0.5, 1.0041. In the arena. */
struct slice number_shown(struct arena *arena, double number);

/* The tables that the command prints; they answer the exit status. */
int cost_of_book(struct meter *meter, const struct arguments *arguments);
int cost_of_job(struct meter *meter, const struct arguments *arguments);
int cost_of_log(struct meter *meter, const struct arguments *arguments);

#define COST_BYTES_DEFAULT 200 /* of what users store: a few words */
#define COST_BYTES_MOST    10000

#endif
