/* What the files of dynamo share: the table of functions behind a door, and the parts of the remote one. */
#ifndef DYNAMO_INTERNAL_H
#define DYNAMO_INTERNAL_H

#include "base/random.h"
#include "dynamo/dynamo.h"

struct dynamo_methods {
    bool (*begin)(struct dynamo *, struct dynamo_call *, struct dynamo_turn *);
    void (*turn_end)(struct dynamo *, struct dynamo_turn *);
    void (*finish)(struct dynamo_call *);
    void (*close)(struct dynamo *);
    void (*hurry)(struct dynamo *);            /* NULL: there is nothing to wait for */
    enum dynamo_kind (*kind)(struct dynamo *); /* these two NULL: USUAL */
    enum dynamo_kind (*kind_ask)(struct dynamo *);
};

/* The first member of each door. */
struct dynamo {
    const struct dynamo_methods *methods;
    struct engine *engine; /* NULL: remote */
};

/* Ends a call whose operation nobody knows. Always true: it is finished. */
bool refuse_unknown_operation(struct dynamo_call *call);
/* The same for one that needs what the database does not have. */
bool refuse_without_transactions(struct dynamo_call *call);

/* ---- local.c ---- */

/* A door with an api of its own, and what does its jobs, that closes the engine with itself. NULL and a sentence, and
 * the engine is closed, when the S3 of the options cannot be called. */
struct local_parts {
    struct engine *engine; /* closed with the door, and its store with it */
    struct store *store;
    const char *data;      /* the folder; NULL: in memory. These three are copied */
    const char *region;
    const char *s3_folder; /* NULL: none */
};
struct dynamo *local_open_owning(const struct local_parts *parts, const struct dynamo_options *options, char *error,
                                 size_t error_len);

/* ---- remote.c ---- */

struct dynamo *remote_open(const char *url, const struct dynamo_options *options, char *error,
                           size_t error_len);

/* ---- endpoint.c: what a URL says ---- */

struct endpoint {
    const char *url, *host;               /* host: as in the header, with a port that is not the usual one */
    const char *stream_url, *stream_host; /* of Amazon's streams; elsewhere the same */
    const char *path;                     /* "/" as a rule; signed */
    struct slice region;                  /* of Amazon's host names, else empty */
    bool is_amazon;
};

/* Texts are in the arena. False and a sentence when it is no URL that can be called. */
bool endpoint_parse(const char *url, struct arena *arena, struct endpoint *out, char *error,
                    size_t error_len);

/* ---- kind.c ---- */

/* Of the answer to GET /localnodes: 200, and a list of texts, with at least one. */
bool kind_is_alternator(int status, struct slice body, struct arena *arena);

/* ---- retry.c: what is tried again, and when ---- */

enum attempt_end {
    ATTEMPT_ANSWERED,    /* a whole reply came */
    ATTEMPT_UNCONNECTED, /* nobody there: nothing was sent */
    ATTEMPT_BROKEN,      /* the connection was lost or the time was over: the call may have happened */
    ATTEMPT_DAMAGED,     /* the reply does not have its checksum */
    ATTEMPT_REFUSED,     /* by us: a certificate that is not trusted, a reply without end */
};

struct attempt {
    enum attempt_end end;
    int status;                 /* ANSWERED */
    struct slice error;         /* ANSWERED: the exception's short name, empty when all is well */
    unsigned number;            /* of this attempt, from 1 */
    bool endpoint_has_answered; /* this or an earlier call */
};

bool retry_is_due(const struct attempt *attempt, unsigned attempts_max);
/* The pause behind attempt `number`: chosen by the bits, up to a bound that doubles with each. */
int64_t retry_pause_us(unsigned number, uint64_t random_bits);
/* The keys are of no use any more; others may be there by now. */
bool retry_wants_new_keys(struct slice error);
/* How far our clock is behind the server's, in seconds, when the reply complains of the time; else 0. `date`
 * is the reply's header. */
int64_t retry_clock_offset_s(struct slice error, struct slice message, struct slice date, int64_t our_time_s);

/* ---- token.c ---- */

/* Operations whose request carries a token to make repeats harmless get one when they have none: the request
 * with it, in the arena, or as it was. */
struct slice request_with_token(struct slice operation, struct slice request, struct arena *arena,
                                const uint64_t random_bits[2]);

#endif
