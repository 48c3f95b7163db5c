/* Idempotency-Keys as items; see tokens.h. */
#include "pattern/tokens.h"

#include "base/fail.h"
#include "base/hash.h"

const struct flow_table token_table = {"tokens", "token", "expires"};

struct slice token_text(struct flow *flow, const char *kind, struct slice name, struct slice key)
{
    return arena_printf(flow->arena, "%s/%.*s/%.*s", kind, SLICE_ARG(rest_encoded(flow->arena, name)),
                        SLICE_ARG(key));
}

struct slice token_keep(struct flow *flow, const char *kind, struct slice name, struct slice key,
                        struct slice attributes)
{
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'token':%S,'expires':%N%A},"
              "'ConditionExpression':'attribute_not_exists(#token)',%#,%O}",
              &token_table, token_text(flow, kind, name, key), flow->now_ms / 1000 + TOKEN_KEPT_S,
              attributes);
    return flow_failed(flow) ? flow_item(flow) : SLICE_NONE;
}

struct slice token_digest(struct flow *flow, struct slice sent)
{
    return arena_printf(flow->arena, "%016llx", (unsigned long long)hash_bytes(sent));
}

_Noreturn void token_refuse(struct flow *flow)
{
    task_refuse(flow, 422, "key-reused", "This Idempotency-Key belongs to a call that sent something else.");
}

struct slice token_find(struct flow *flow, const char *kind, struct slice name, struct slice key)
{
    return task_get(flow, &token_table, "{'token':%S}", token_text(flow, kind, name, key));
}
