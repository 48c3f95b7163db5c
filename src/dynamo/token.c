/* Tokens that make a repeat harmless: the service knows a request by its token and does it once. AWS's own
 * clients add one where the caller gave none, since they may have to repeat a call whose reply was lost; so
 * do we. */
#include "base/json.h"
#include "dynamo/internal.h"

static const char *token_member(struct slice operation)
{
    if (slice_equal(operation, SLICE("TransactWriteItems")) ||
        slice_equal(operation, SLICE("ExecuteTransaction")))
        return "ClientRequestToken";
    if (slice_equal(operation, SLICE("ExportTableToPointInTime")) ||
        slice_equal(operation, SLICE("ImportTable")))
        return "ClientToken";
    return NULL;
}

/* Where the first member of the object begins; 0 when it is no object, is malformed, or has the member. */
static size_t first_member_at(struct slice request, struct slice member, struct arena *arena, bool *is_empty)
{
    struct json_reader reader;
    struct slice name;
    json_begin(&reader, request, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return 0;
    size_t at = json_offset(&reader);
    *is_empty = true;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, member)) return 0;
        *is_empty = false;
        json_skip(&reader);
    }
    return json_done(&reader) ? at : 0;
}

struct slice request_with_token(struct slice operation, struct slice request, struct arena *arena,
                                const uint64_t random_bits[2])
{
    const char *member = token_member(operation);
    bool is_empty;
    size_t at = member ? first_member_at(request, slice_of(member), arena, &is_empty) : 0;
    if (!at) return request;
    struct slice token = arena_printf(arena, "\"%s\":\"%016llx%016llx\"%s", member,
                                      (unsigned long long)random_bits[0], (unsigned long long)random_bits[1],
                                      is_empty ? "" : ",");
    char *copy = arena_alloc(arena, request.len + token.len);
    memcpy(copy, request.data, at);
    memcpy(copy + at, token.data, token.len);
    memcpy(copy + at + token.len, request.data + at, request.len - at);
    return (struct slice){copy, request.len + token.len};
}
