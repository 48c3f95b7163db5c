/* The one door to data: an operation's name and a request in DynamoDB's JSON go in, a reply comes out.
 *
 * Whatever stands above (HTTP, command line, library, and all that is built on top) goes through here, so
 * that the same code runs on the engine in this process or on any other DynamoDB endpoint. Behind a small
 * table of functions there are two doors: *local* (local.c: the engine in this process, no socket) and
 * *remote* (remote.c: Amazon DynamoDB, DynamoDB Local, Alternator or another Quipu over HTTP).
 *
 * There are two ways to call. dynamo_call waits for the reply. The other has two halves, because a write
 * waits for the writer and a remote call for the network: dynamo_begin either finishes the call at once or
 * takes it into the caller's turn; dynamo_turn_end hands the turn's calls over in one piece; when one is
 * answered its `done` is called, on a thread of the door's, and the caller finishes it with dynamo_finish on
 * whichever thread it likes.
 *
 * Invariants:
 *
 *  D1. A call belongs to the caller and must stay until it is finished; so must its request, arena and reply,
 *      and between dynamo_begin and `done` only the door touches them.
 *
 *  D2. Every call ends: in a reply of the service, or in one of the door's own making (see dynamo_call).
 *
 *  D3. All functions but dynamo_close may be called from any thread; a turn belongs to one thread. */
#ifndef DYNAMO_DYNAMO_H
#define DYNAMO_DYNAMO_H

#include <stdbool.h>

#include "api/api.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/slice.h"

struct dynamo;

/* What a door leads to. The engine in this process and Amazon's names are USUAL without a question. */
enum dynamo_kind {
    DYNAMO_KIND_UNKNOWN,    /* nobody has answered yet */
    DYNAMO_KIND_USUAL,      /* has all that DynamoDB has, as far as anybody knows */
    DYNAMO_KIND_ALTERNATOR, /* ScyllaDB's: no transactions */
};

/* ---- opening ---- */

/* Zeroed: the defaults. Texts are copied. */
struct dynamo_options {
    /* In ARNs and signatures; NULL: of the endpoint's name, else of the environment, else us-east-1. */
    const char *region;

    /* for a folder or memory */
    uint64_t cache_bytes; /* memory for hot items; 0: 64 MB */
    bool must_exist;      /* a missing folder is an error; else it is made */
    bool read_only;       /* nothing is written, nor made: writes are answered with AccessDeniedException */
    uint32_t open_files;  /* of a folder that are kept open, about; 0: all it has */
    bool unsynced; /* replies do not wait for the disk: what the machine loses with its power is lost */
    const struct clock *clock; /* kept; NULL: the system's */
    int64_t ttl_interval_ms;   /* these four as in engine_options */
    int64_t stream_retention_ms;
    uint32_t stream_shards;
    bool records_no_change;
    void (*on_failure)(void *context); /* as in engine_options */
    void *failure_context;
    int64_t creating_ms; /* these three as in api_options */
    bool throttles, is_lenient;
    /* Of the buckets for exports and imports; NULL: the folder s3 in the database's own, and none in memory. */
    const char *s3_folder;
    const char *s3_endpoint; /* http(s)://host[:port] of an S3 that has them instead; NULL: none */

    /* for a URL */
    const char *access_key, *secret_key, *session_token; /* NULL: by the rules of credentials.c */
    const char *profile; /* of AWS's files; NULL: AWS_PROFILE, else "default" */
    const char *ca_file; /* certificates to trust; NULL: AWS_CA_BUNDLE, else the system's */
    uint32_t attempts;   /* of a call, at most; 0: 10, as AWS's own clients do for DynamoDB */
    uint32_t in_flight;  /* calls on the wire, at most; more wait; 0: 64, up to LIMIT_REMOTE_CALLS */
    int64_t connect_ms;  /* to connect; 0: 5 s */
    int64_t attempt_ms;  /* from the begin of an attempt to the end of its reply; 0: 60 s */
    const char *prefix;  /* of the names of our own tables; NULL: quipu- */
    int64_t nodes_every_ms; /* how often the nodes of a cluster are asked for; 0: every minute */
    /* Called once, on any thread, when the endpoint has turned out to be one; NULL: nobody. */
    void (*on_alternator)(void);
};

/* Opens a folder, ":memory:", or http(s)://host[:port]. A folder or memory gets its own store, engine and
 * api, which are closed with the door. NULL and one clear sentence when that cannot be done; a URL is not
 * tried before the first call. */
struct dynamo *dynamo_open(const char *where, const struct dynamo_options *options, char *error,
                           size_t error_len);

/* ScyllaDB Alternator, imitated for tests: imitation.c. */
struct imitation_options {
    uint64_t seed;           /* of all that is left to chance */
    int64_t stream_delay_ms; /* before a record can be read */
    int64_t index_delay_ms;  /* at most, before an index shows a change; 0: it never lags */
    unsigned timeout_percent; /* of writes, which are answered with a time-out */
    int64_t late_ms;          /* ... and happen within this time */
    char nodes[200];          /* for GET /localnodes: addresses with + between them; empty: the server's own */
};
/* "alternator", and behind it settings: ",seed=7,stream-delay=0". False and a sentence when it is not understood. */
bool imitation_options_read(const char *text, struct imitation_options *out, char *error, size_t error_len);
/* A database in memory that behaves as ScyllaDB Alternator. Of the options those of an engine count. */
struct dynamo *dynamo_open_imitation(const struct imitation_options *imitated, const struct dynamo_options *options,
                                     char *error, size_t error_len);

/* The engine in this process. Keeps both, owns neither. */
struct dynamo *dynamo_open_local(struct engine *engine, struct api *api);
/* The process is about to end: what fails is tried again at once and seldom, so that nobody waits long for an endpoint
 * that is gone. Calls that are paused go on. */
void dynamo_hurry(struct dynamo *dynamo);
/* All calls must be finished. */
void dynamo_close(struct dynamo *dynamo);

/* The engine behind the door, to watch its streams; NULL when the door is a remote one. */
struct engine *dynamo_engine(struct dynamo *dynamo);

/* Asks once, for a few seconds at most, if nobody has been told before, and waits. UNKNOWN when nobody was there:
 * calls that must know it ask again. */
enum dynamo_kind dynamo_kind_ask(struct dynamo *dynamo);
/* What is known by now. Never waits. */
enum dynamo_kind dynamo_kind(struct dynamo *dynamo);

/* ---- calling ---- */

/* Calls an operation ("PutItem", "GetRecords", ...; streams' operations find their own endpoint) and waits.
 * The reply's JSON is appended to *reply; the answer is its HTTP status: 200, or an error's, with
 * {"__type":..., "message":...}. Where no reply came at all (nobody listens, time-outs, after all attempts),
 * the status is 0 and the error is the door's own NoReplyException: a write may then have happened or not. */
int dynamo_call(struct dynamo *dynamo, struct slice operation, struct slice request, struct buf *reply);

/* The same; what led to the call goes into the stream records of its writes (a local door only). */
int dynamo_call_caused(struct dynamo *dynamo, struct slice cause, struct slice operation,
                       struct slice request, struct buf *reply);

/* The error of calls on a table of ours that was not made for us: see known_tables.c. The message tells it. */
#define DYNAMO_NOT_ISOLATED "NotIsolatedException"
/* The error of calls that need transactions (see dynamo_call) where the database has none: nothing was sent. */
#define DYNAMO_NO_TRANSACTIONS "NoTransactionsException"

/* The exception's short name and the message of an error's JSON; empty where there is none. In the arena, or
 * slices of the reply. */
void dynamo_error(struct slice reply, struct arena *arena, struct slice *name, struct slice *message);

/* The request of an action as we write it, {"Put":{...}}, {"Update":{...}} or {"Delete":{...}} without white space
 * around, and the operation that does it alone. A slice of the action. */
struct slice dynamo_action_request(struct slice action, const char **operation);

/* ---- what errors mean (fault.c) ---- */

enum dynamo_fault {
    DYNAMO_FINE,
    DYNAMO_AGAIN,     /* throttled: it did not happen, and may the next time */
    DYNAMO_CONFLICT,  /* the same; another transaction is at the item */
    DYNAMO_UNKNOWN,   /* it may have happened, or may happen yet */
    DYNAMO_CONDITION, /* its condition did not hold */
    DYNAMO_CANCELLED, /* a transaction: dynamo_cancellation tells why */
    DYNAMO_MISSING,   /* there is no such table, stream or shard */
    DYNAMO_IN_USE,    /* the table is being made, changed or deleted */
    DYNAMO_EXPIRED,   /* of an iterator: a new one will do */
    DYNAMO_TRIMMED,   /* the records are gone */
    DYNAMO_REFUSED,   /* the request itself is at fault, and would be again */
};
enum dynamo_fault dynamo_fault(int status, struct slice error);
/* dynamo_call with all of its answer in the arena. */
struct dynamo_reply {
    int status;
    enum dynamo_fault fault;
    struct slice body, error, message; /* error: the exception's short name; both empty where all is well */
};
struct dynamo_reply dynamo_ask(struct dynamo *dynamo, struct arena *arena, const char *operation,
                               struct slice request);
/* AGAIN, CONFLICT, UNKNOWN: another try may go well. */
bool dynamo_fault_may_pass(enum dynamo_fault fault);

/* Why a transaction was cancelled, by all of its reasons. */
struct dynamo_cancellation {
    bool may_pass;              /* something was throttled or in conflict */
    bool has_failed;            /* a condition did not hold */
    bool is_refused;            /* something else: it would be so again */
    int first;                  /* the number of the first action that failed or was refused; -1: none */
    struct slice code, message; /* of that */
};
struct dynamo_cancellation dynamo_cancellation(struct slice reply, struct arena *arena);

/* The pause after so many failures in a row (1: the first): chosen by the bits between nothing and a bound that doubles
 * with each, so that many who failed together do not come back together. */
int64_t dynamo_pause_us(unsigned failures, int64_t first_us, int64_t most_us, uint64_t random_bits);

/* A table of our own. Its hash key is a string; range may be NULL. */
struct dynamo_table {
    struct slice name;
    const char *hash, *range;
    char range_type; /* 'S', 'N' */
    const char *index;  /* a string attribute: the items that have it are in an index of that name; NULL: none */
    const char *expiry; /* the attribute of its time to live; NULL: none */
};
/* Makes the table unless it is there and waits until it is of use, also when somebody else makes it: on
 * Amazon's service nobody finds it before. False and a sentence when it is not to be had. */
bool dynamo_table_make(struct dynamo *dynamo, const struct dynamo_table *table, char *error,
                       size_t error_len);
/* The same by whatever calls as dynamo_call does. */
typedef int dynamo_caller(void *self, struct slice operation, struct slice request, struct buf *reply);
bool dynamo_table_make_by(dynamo_caller *call, void *self, const struct dynamo_table *table, char *error,
                          size_t error_len);

/* Holds: the one lease of everything that has one owner at a time. Leases, units of work and consumers of logs
 * write it by pattern/hold.h, asynchronous calls by func/queue_item.c; what all of them need is here.
 * An item that can be held has
 *   owner (S)  who holds it; absent: nobody does
 *   until (N)  ms since 1970: the last moment of the hold
 *   fence (N)  grows by one with every take-over, and stays when the hold is given back
 *
 *  J1. A hold is taken by one conditional write that raises the fence (HOLD_TAKE), on the condition that it is
 *      free (HOLD_FREE). An owner that holds it already may keep its fence.
 *  J2. Whoever acts as the holder does so on the condition of its fence (HOLD_ACT): a holder that does not know that
 *      it has lost its hold changes nothing. Whatever else is guarded by a hold refuses smaller fences than it
 *      has seen.
 *  J3. Clocks differ by at most the skew: `until` is the skew later than the holder is told (dynamo_hold_until), and
 *      nobody takes it before its own clock is behind `until`. So holders end before others begin. Where clocks
 *      differ by more, J2 still holds.
 *  J4. A hold that is over stays its last owner's until somebody takes it: by its fence it may still be renewed or
 *      given back, unless the pattern forbids it. */
#define HOLD_FREE         "(attribute_not_exists(#owner) or #until < :now)"
#define HOLD_FREE_OR_MINE "(attribute_not_exists(#owner) or #until < :now or #owner = :owner)"
#define HOLD_TAKE         "#owner = :owner, #until = :until, #fence = if_not_exists(#fence, :zero) + :one"
#define HOLD_ACT          "#fence = :fence and attribute_exists(#owner)"
/* Names in expressions, of HOLD_ACT, and of all of these. */
#define HOLD_ACT_NAMES "\"#owner\":\"owner\",\"#fence\":\"fence\""
#define HOLD_NAMES     HOLD_ACT_NAMES ",\"#until\":\"until\""

struct dynamo_hold {
    struct slice owner;      /* SLICE_NONE: nobody */
    int64_t until_ms, fence; /* 0: none yet */
};
enum dynamo_hold_state { HOLD_IS_FREE, HOLD_IS_MINE, HOLD_IS_ANOTHERS };

struct dynamo_hold dynamo_hold_read(struct arena *arena, struct slice item);
enum dynamo_hold_state dynamo_hold_state(const struct dynamo_hold *hold, struct slice me, int64_t now_ms);
/* What `until` becomes, of a hold that its owner may count on for so long. */
static inline int64_t dynamo_hold_until(int64_t now_ms, int64_t for_ms, int64_t skew_ms)
{
    return now_ms + for_ms + skew_ms;
}

/* Owners of leases in a process that has the data itself begin with this: there is one such process at a time, so a
 * lease of another one is a dead one's, and nobody else is alive while this one is not. Their leases have no end
 * by time; a server without functions frees them (dynamo_leases_free). */
#define DYNAMO_OWNER_HERE "here-"
#define DYNAMO_NO_END_MS  253402300799000 /* the end of the year 9999 */
static inline bool dynamo_owner_is_here(struct slice owner)
{
    return slice_starts(owner, SLICE(DYNAMO_OWNER_HERE));
}

/* A table of ours whose items are held. */
struct dynamo_leased {
    const char *table;        /* its name behind the prefix */
    const char *hash, *range; /* names of the key's attributes */
};
/* Frees the leases of owners that begin with DYNAMO_OWNER_HERE; a table that is not there has none. NULL: the prefix
 * "quipu-". */
void dynamo_leases_free(struct dynamo *dynamo, const char *prefix, const struct dynamo_leased *items);

struct remote_call;
struct imitated_call;

struct dynamo_call {
    const struct operation *operation; /* NULL: by name */
    struct slice name;                 /* a remote door takes any, also one that the api does not have */
    struct slice request;
    struct slice cause; /* what led to this call: goes into the stream records of its writes; local only */
    /* It is, or leads to, a transaction: refused at once, before anything is written, where there are none. */
    bool needs_transactions;
    bool in_order;      /* TransactWriteItems: waits for its turn instead of a conflict; local only */
    bool is_quiet; /* the caller wakes those who wait for what it writes (engine.h); local only */
    bool
        shows_causes; /* GetRecords: as members "cause", "transaction" (its token), "time" (ms) of records; local
                         * only */
    struct arena *arena;
    struct buf *reply;
    void (*done)(struct dynamo_call *call);
    /* answers */
    int status;
    const char *error; /* the exception's short name, NULL when all is well; lives as long as the arena */
    /* private */
    struct dynamo *dynamo;
    struct api_call api;
    struct remote_call *remote;
    struct imitated_call *imitated;
};

/* The calls that one thread has begun and not yet handed over. Zeroed: empty. */
struct dynamo_turn {
    struct commit_list writes;
    struct commit_list slow; /* calls that read for long: the commits are only their links */
    struct remote_call *first, *last;
};

/* True when the call is finished already; else its `done` will be called some time after dynamo_turn_end. */
bool dynamo_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn);
void dynamo_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn);
void dynamo_finish(struct dynamo_call *call);
/* All of that for one call, of which arena and done need not be given: waits, and answers the status. */
int dynamo_call_wait(struct dynamo *dynamo, const struct dynamo_call *call);

#endif
