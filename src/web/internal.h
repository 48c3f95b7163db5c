/* What the files of web share. */
#ifndef WEB_INTERNAL_H
#define WEB_INTERNAL_H

#include "base/random.h"
#include "base/stats.h"
#include "web/web.h"

#define WEB_ERROR_KINDS 48 /* different exceptions counted; there are about thirty */

struct operation_stats {
    _Atomic uint64_t requests;
    struct histogram latency_us;
};

struct error_stats {
    _Atomic(const char *) name; /* NULL: free */
    _Atomic uint64_t count;
};

/* What one loop keeps for itself. */
struct web_loop {
    struct dynamo_turn turn;
    struct random random;
};

struct web {
    struct dynamo *dynamo;
    struct engine *engine;
    struct net_server *server;
    const struct clock *clock;
    struct keyring *keyring; /* NULL: any key is taken */
    struct slice region;
    int64_t started_ms;
    struct hooks *hooks;                /* NULL: there are none */
    struct web_loop *loops;             /* by index */
    struct operation_stats *operations; /* by operation number */
    struct error_stats errors[WEB_ERROR_KINDS];
};

/* ---- signature.c ---- */

struct keyring;
/* The keys of a file in the form of AWS's own credentials file. NULL and a sentence on failure. */
struct keyring *keyring_read(const char *path, char *error, size_t error_len);
void keyring_free(struct keyring *keyring);
/* NULL when the request is signed by a known key; else the exception's short name, and its sentence in
 * *message. */
const char *signature_fault(const struct keyring *keyring, const struct http_exchange *exchange,
                            int64_t now_ms, struct arena *arena, struct slice *message);

/* ---- metrics.c ---- */

void web_count_error(struct web *web, const char *error);
void web_put_metrics(struct web *web, struct buf *out);

#endif
