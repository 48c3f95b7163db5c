/* Which pages may use a URL: the lines that browsers ask for. The settings decide alone: where there are some, lines of
 * the same names that a function gives do not count. */
#include "base/raw.h"
#include "gateway/internal.h"

/* A star behind the scheme stands for all names. */
static bool origin_fits(struct slice allowed, struct slice origin)
{
    if (slice_equal(allowed, SLICE("*"))) return true;
    bool is_scheme = allowed.len > 4 && memcmp(allowed.data + allowed.len - 4, "://*", 4) == 0;
    if (!is_scheme) return origin.len && slice_equal_ignoring_case(allowed, origin);
    allowed.len--;
    return origin.len >= allowed.len &&
           slice_equal_ignoring_case((struct slice){origin.data, allowed.len}, allowed);
}

bool cors_allows(struct slice cors, struct slice origin, struct arena *arena)
{
    struct slice one;
    raw_each(arena, raw_member(arena, cors, "AllowOrigins"), &one)
        if (origin_fits(raw_string(arena, one), origin)) return true;
    return false;
}

bool cors_is_preflight(const struct rest_call *call, struct slice cors)
{
    return cors.len && slice_equal(call->method, SLICE("OPTIONS")) && call->header(call, SLICE("Origin")).len &&
           call->header(call, SLICE("Access-Control-Request-Method")).len;
}

bool cors_owns_header(struct slice name)
{
    static const struct slice start = SLICE("access-control-");
    return name.len > start.len && slice_equal_ignoring_case((struct slice){name.data, start.len}, start);
}

/* The words of a list, a comma between them. */
static struct slice joined(struct rest_call *call, struct slice list)
{
    struct buf out = {0};
    struct slice one;
    raw_each(call->arena, list, &one)
    {
        if (out.len) buf_byte(&out, ',');
        buf_slice(&out, raw_string(call->arena, one));
    }
    return arena_take(call->arena, &out);
}

static void put_list(struct rest_call *call, const char *line, struct slice list)
{
    struct slice text = joined(call, list);
    if (text.len) rest_add_header(call, "%s: %.*s", line, SLICE_ARG(text));
}

void cors_put(struct rest_call *call, struct slice cors, bool is_preflight)
{
    static const char *const names[] = {"AllowCredentials", "AllowHeaders", "AllowMethods", "ExposeHeaders", "MaxAge"};
    enum { CREDENTIALS, HEADERS, METHODS, EXPOSE, AGE, NAMES };
    struct slice origin = call->header(call, SLICE("Origin")), raws[NAMES];
    if (!cors.len || !origin.len || !cors_allows(cors, origin, call->arena)) return;
    raw_pick(call->arena, cors, names, raws, NAMES);
    bool with_credentials = raw_kind(raws[CREDENTIALS]) == JSON_TRUE;
    bool is_any = !with_credentials && cors_allows(cors, SLICE_NONE, call->arena);
    rest_add_header(call, "Access-Control-Allow-Origin: %.*s", SLICE_ARG(is_any ? SLICE("*") : origin));
    if (!is_any) rest_add_header(call, "Vary: Origin");
    if (with_credentials) rest_add_header(call, "Access-Control-Allow-Credentials: true");
    if (!is_preflight) {
        put_list(call, "Access-Control-Expose-Headers", raws[EXPOSE]);
        return;
    }
    put_list(call, "Access-Control-Allow-Methods", raws[METHODS]);
    put_list(call, "Access-Control-Allow-Headers", raws[HEADERS]);
    if (raw_kind(raws[AGE]) == JSON_NUMBER)
        rest_add_header(call, "Access-Control-Max-Age: %.*s", SLICE_ARG(raws[AGE]));
    if (call->header(call, SLICE("Access-Control-Request-Private-Network")).len)
        rest_add_header(call, "Access-Control-Allow-Private-Network: true");
}
