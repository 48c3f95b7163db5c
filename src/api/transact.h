/* What TransactWriteItems and TransactGetItems share: the tables that their actions name, and the way in
 * which a transaction is cancelled. */
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

/* A hash of what a request says: equal for requests that differ in the order of their members only. */
uint64_t hash_request(struct buf *scratch, const struct node *node);

#endif
