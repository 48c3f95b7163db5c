/* The inside of the remote door: its calls and their attempts.
 *
 * Between its begin and its `done` a call belongs to the client's thread, which makes one attempt after the
 * other. */
#ifndef DYNAMO_REMOTE_H
#define DYNAMO_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "client/client.h"
#include "dynamo/internal.h"

#define REMOTE_DATE_BYTES 40 /* of the header Date */

/* A node of a cluster: nodes.c. */
struct node {
    const char *host, *url; /* host: as in the header */
    int64_t dead_until_us;  /* monotonic; 0: it has answered last time */
    unsigned failures;      /* one after the other */
};

struct node_list {
    struct node *nodes;
    size_t count;
    struct arena arena; /* of all that is in it */
};

/* The list is asked for again; one at a time, by the client's thread. */
struct nodes_question {
    struct client_call http;
    struct arena arena;
    struct buf reply;
    unsigned times;
    bool is_under_way;
};

/* Of known_tables.c. */
struct known_table {
    struct slice name, hash; /* the attribute of its hash key */
};

/* Lives in its call's arena. */
struct remote_call {
    struct dynamo_call *call;
    struct remote *remote;
    struct remote_call *next; /* in its turn */
    struct slice operation;
    bool to_streams;
    bool keys_renewed, clock_corrected; /* each is a remedy once */
    unsigned attempts;                  /* made so far */
    size_t reply_start;
    uint64_t key; /* of the table and the hash key's value: calls with the same one go to the same node */
    bool has_key;
    const char *node_url, *node_host; /* of this attempt; NULL: the endpoint's */
    struct buf nodes; /* the answer to the question what it is, see kind.c */
    /* the attempt */
    struct client_call http; /* body: the request, with its token */
    bool has_checksum;
    uint32_t checksum;
    char date[REMOTE_DATE_BYTES];
};

struct remote {
    struct dynamo door;
    struct client *client;
    struct arena arena; /* endpoint and options */
    struct endpoint endpoint;
    struct dynamo_options options; /* copied, defaults filled in */
    const struct clock *clock;

    _Atomic int kind; /* an enum dynamo_kind */
    _Atomic unsigned asked_in_vain;

    pthread_mutex_t lock; /* of the next ones */
    struct random tokens;
    struct node_list nodes;
    int64_t nodes_asked_us;
    struct known_table tables[LIMIT_KNOWN_TABLES];
    size_t table_count;
    struct arena tables_arena;

    /* the client's thread's own */
    struct arena keys_arena;
    struct credentials keys;
    struct slice region;
    int64_t clock_offset_s;
    _Atomic bool has_answered;
    _Atomic bool is_hurried; /* see dynamo_hurry */
    struct nodes_question *nodes_question; /* NULL: not yet */
    struct random jitter;
};

/* ---- attempt.c ---- */

/* Fills the call's `http` for its first attempt, all but `done`. */
void attempt_init(struct remote_call *call, struct slice request);
/* What came of an attempt. The error's name and message are in the call's arena or its reply. */
void attempt_judge(struct remote_call *call, struct attempt *attempt, struct slice *message);

/* ---- remote.c ---- */

/* Begins the call itself, or refuses it, now that it is known what the endpoint is. On the client's thread. */
void remote_call_go(struct remote_call *call);
/* The same, when all is known that must be known before. */
void remote_call_send(struct remote_call *call);
/* The call's `done`: takes another attempt, or answers. */
void remote_attempt_end(struct client_call *http);

/* Reads the keys again. True when they are others than before. */
bool remote_keys_renew(struct remote *remote);

/* ---- kind.c ---- */

enum dynamo_kind remote_kind(struct dynamo *dynamo);
enum dynamo_kind remote_kind_ask(struct dynamo *dynamo);
/* The call that asks, of this URL. */
struct client_call kind_question(struct slice url, struct arena *arena, struct buf *reply);
/* Fills the call's `http` with the question what the endpoint is; behind it comes remote_call_go. */
void kind_ask_first(struct remote_call *call);

/* ---- nodes.c ---- */

/* The answer to GET /localnodes. */
void nodes_take(struct remote *remote, struct slice body);
void nodes_free(struct remote *remote);
/* Sets the node of the next attempt. */
void nodes_choose(struct remote_call *call);
/* What came of it. True: that node is left out for a while, and another may answer at once. */
bool nodes_note(struct remote_call *call, bool has_answered);
/* Begins to ask for the list again, if it is time. On the client's thread. */
void nodes_ask_again(struct remote *remote);

/* ---- known_tables.c ---- */

/* A call on an item of a table whose name begins as ours do, or one that makes such a table. */
bool table_is_ours(struct remote *remote, struct slice operation, struct slice request, struct arena *arena);
/* The request; one that makes a table of ours gets the tag, unless it has some. */
struct slice table_isolated(struct remote_call *call, struct slice request);
/* On Alternator: sets the key of a call on an item; or, where its table is not known yet, begins to ask for it in the
 * turn and answers true: behind it comes remote_call_send, or the call is refused. */
bool table_ask_first(struct remote_call *call, struct dynamo_turn *turn);

#endif
