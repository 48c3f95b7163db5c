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
};

/* The first member of each door. */
struct dynamo {
    const struct dynamo_methods *methods;
    struct engine *engine; /* NULL: remote */
};

/* Ends a call whose operation nobody knows. Always true: it is finished. */
bool refuse_unknown_operation(struct dynamo_call *call);

/* ---- local.c ---- */

/* A door with an api of its own that closes the engine with itself. */
struct dynamo *local_open_owning(struct engine *engine, const char *region);

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

/* ---- credentials.c: who we are, by AWS's variables and files ---- */

struct credentials {
    struct slice access_key, secret_key, session_token; /* token.len 0: none */
    struct slice region;                                /* by variables and files; empty: they name none */
};

/* What a profile of one of AWS's files says; slices of its text. */
struct profile {
    struct slice access_key, secret_key, session_token, region;
    bool uses_more; /* roles, SSO, processes: what other tools can turn into keys, but not we */
};

/* False when the text has no such profile. The config file writes [profile NAME] for all but the default. */
bool profile_find(struct slice text, struct slice name, bool is_config, struct profile *out);

/* Looks a variable of the environment up, as getenv does. */
typedef char *credentials_variable(const char *name);

/* The options' keys, else the variables', else the profile's; empty when nobody names any. In the arena.
 * False and a sentence when something was asked for by name and is not there, or of no use. */
bool credentials_find(const struct dynamo_options *options, credentials_variable *variable,
                      struct arena *arena, struct credentials *out, char *error, size_t error_len);

/* ---- sign.c: Signature Version 4 ---- */

struct signed_request {
    const struct credentials *credentials;
    struct slice region, host, path, target, body;
    int64_t time_s; /* since 1970 */
};

/* Room for the texts that signature_make writes, ended by NUL. */
#define SIGNED_DATE_BYTES 17 /* 20261115T034206Z */

/* Writes the headers x-amz-date (its value) and Authorization (its value, appended to *out). */
void signature_make(const struct signed_request *request, char date[SIGNED_DATE_BYTES], struct buf *out);

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
