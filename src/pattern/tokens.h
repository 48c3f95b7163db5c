/* Idempotency-Keys: what a call that carried one has done, remembered for a day.
 *
 * Table PREFIXtokens: hash key `token` (S): "KIND/NAME/KEY" (the name percent-encoded); what the call's
 * answer is made of; `expires` (N, seconds since 1970; time to live). Where a token stands, its call is done or
 * decided: it is put by the redo that says so (intent.h), or first of all, with everything that makes the
 * call's outcome. */
#ifndef PATTERN_TOKENS_H
#define PATTERN_TOKENS_H

#include "pattern/flow.h"

extern const struct flow_table token_table;
#define TOKEN_KEPT_S (24 * 3600)
/* The hash key of a token's item. */
struct slice token_text(struct flow *flow, const char *kind, struct slice name, struct slice key);

/* For tasks: puts the token if it is absent. Answers the one that was there; SLICE_NONE: none was.
 * `attributes`: members of the item, each behind a comma. */
struct slice token_keep(struct flow *flow, const char *kind, struct slice name, struct slice key,
                        struct slice attributes);
/* A few characters that stand for what a call has sent: a key may come again, but not with something else. */
struct slice token_digest(struct flow *flow, struct slice sent);
/* 422 key-reused: it came with something else. The task ends. */
_Noreturn void token_refuse(struct flow *flow);
/* What the call with this key has left; SLICE_NONE: it was not done. For tasks. */
struct slice token_find(struct flow *flow, const char *kind, struct slice name, struct slice key);

#endif
