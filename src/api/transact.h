/* What the operations of transactions share: TransactWriteItems and TransactGetItems, and ExecuteTransaction,
 * which makes the same of statements. */
#ifndef API_TRANSACT_H
#define API_TRANSACT_H

#include "api/items.h"

/* Why an action stood in the way of its transaction; code "None" when it did not. */
struct reason {
    const char *code;
    struct slice message;
    struct slice image; /* the item that failed the condition, encoded, where it was asked for; or empty */
};

/* TransactionCanceledException with a reason for each action. Always answers false. */
bool refuse_cancelled(struct api_call *call, const struct reason *reasons, uint32_t count);
bool refuse_twice(struct api_call *call); /* two actions on one item */

/* The place of the table among those named so far, of which it becomes one. There must be room for it. */
uint32_t place_table(struct named_table *tables, uint32_t *count, struct slice name);

/* ---- writes (transact_write.c) ---- */

extern const struct shape shape_request_token; /* ClientRequestToken */

/* What an action has beside its write. */
struct action {
    struct slice fault; /* found before the writer came to it; empty when sound */
    bool return_on_failure;
    bool is_insert; /* of PartiQL: fails where the item exists */
    bool only_clears;
    bool keeps; /* on the writer's thread: there is something to keep */
};

enum outcome {
    OUTCOME_APPLIED,
    OUTCOME_CANCELLED,
    OUTCOME_NO_TABLE,
    OUTCOME_REPLAYED,
    OUTCOME_MISMATCHED,
    OUTCOME_RUNNING
};

struct transaction {
    struct many_writes many;
    struct action *actions; /* by the places of many.writes */
    size_t payload_bytes;
    struct slice token; /* empty: none */
    uint64_t payload_hash;
    enum outcome outcome;
    bool of_statements;              /* ExecuteTransaction */
    struct throttle_demand *demands; /* one for each action, where throughput acts; else NULL */
};

/* Room for so many writes, all zero. */
void transaction_size(struct api_call *call, struct transaction *transaction, uint32_t count);
/* Counts what an action says; refuses when all together say too much. */
bool transaction_add_bytes(struct api_call *call, struct transaction *transaction, size_t bytes);
bool transaction_has_fault(const struct transaction *transaction);
/* True when an earlier write has the same key. */
bool write_is_repeated(const struct many_writes *many, uint32_t index);
bool is_about_empty_key(struct slice fault);
/* Hands the transaction over; `items` are what its token stands for. */
void transaction_submit(struct api_call *call, struct transaction *transaction, const struct node *token,
                        const struct node *items);
void transaction_finish(struct api_call *call);

/* ---- reads (transact_get.c) ---- */

struct get {
    struct map key;
    struct item_key item_key;
    const struct projection *projection;
    uint32_t place; /* of its table */
    struct slice fault;
    struct slice image; /* empty: there is no such item */
};

struct transact_get {
    struct get *gets;
    uint32_t count;
    struct named_table *tables;
    uint32_t table_count;
    const struct node *return_capacity;
    bool table_is_gone;
};

void transact_get_size(struct api_call *call, struct transact_get *transaction, uint32_t count);
bool get_is_repeated(const struct transact_get *transaction, uint32_t index);
bool transact_get_refuse_faults(struct api_call *call, const struct transact_get *transaction);
void transact_get_submit(struct api_call *call, struct transact_get *transaction);
void transact_get_finish(struct api_call *call);

/* A hash of what a request says: equal for requests that differ in the order of their members only. */
uint64_t hash_request(struct buf *scratch, const struct node *node);

#endif
