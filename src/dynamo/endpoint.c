/* What an endpoint's URL says: where to connect, what stands in the Host header, and for Amazon's own names
 * the region and the address of the streams.
 *
 * Amazon's names, with the service's label in front of the region's:
 *   dynamodb.REGION.amazonaws.com, dynamodb-fips.REGION..., ACCOUNT.ddb.REGION...
 *                                                 streams at streams.dynamodb.REGION...
 *   dynamodb.REGION.api.aws                       streams at streams-dynamodb.REGION...
 *   vpce-....dynamodb.REGION.vpce.amazonaws.com   nobody knows: the same
 *
 * The endings differ in China (amazonaws.com.cn and api.amazonwebservices.com.cn). Everybody else serves
 * streams at the same address. */
#include <stdio.h>

#include "base/limits.h"
#include "dynamo/internal.h"

/* A URL in its parts. */
struct url_parts {
    struct slice scheme, name, port, path; /* port: with its colon, or empty */
};

static bool refuse(char *error, size_t error_len, const char *url, const char *why)
{
    snprintf(error, error_len, "the URL %.200s %s", url, why);
    return false;
}

static struct slice take_until_any(struct slice *rest, const char *marks)
{
    size_t len = 0;
    while (len < rest->len && !strchr(marks, rest->data[len])) len++;
    struct slice part = {rest->data, len};
    *rest = slice_from(*rest, len);
    return part;
}

/* Letters, digits and these: what needs no encoding, and cannot break out of a header. */
static bool is_made_of(struct slice text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == '\0' || !strchr(others, c))) return false;
    }
    return true;
}

static bool is_port(struct slice port)
{
    unsigned long long number;
    return port.len == 0 || (slice_to_u64(slice_from(port, 1), 65535, &number) && number > 0);
}

static bool split(const char *url, struct url_parts *out, char *error, size_t error_len)
{
    struct slice rest = slice_of(url);
    if (rest.len > LIMIT_REMOTE_URL_BYTES) return refuse(error, error_len, url, "is too long");
    out->scheme = take_until_any(&rest, ":");
    rest = slice_from(rest, 3); /* "://": the caller has seen the scheme */
    struct slice authority = take_until_any(&rest, "/?#");
    out->path = rest;
    if (memchr(authority.data, '@', authority.len))
        return refuse(error, error_len, url, "must not hold a password");
    bool is_bracketed = authority.len && authority.data[0] == '[';
    out->name = take_until_any(&authority, is_bracketed ? "]" : ":");
    if (is_bracketed && authority.len) { /* the bracket belongs to the name */
        out->name.len++;
        authority = slice_from(authority, 1);
    }
    out->port = authority;
    bool is_named = out->name.len && is_made_of(out->name, is_bracketed ? "[:.]" : "-._");
    if (!is_named || (authority.len && authority.data[0] != ':') || !is_port(authority))
        return refuse(error, error_len, url, "is not of the form http://host:port");
    if (!is_made_of(out->path, "/-._~")) return refuse(error, error_len, url, "must end behind its path");
    return true;
}

/* ---- Amazon's names ---- */

static bool ends_in(struct slice text, struct slice end)
{
    return text.len > end.len && slice_equal_ignoring_case(slice_from(text, text.len - end.len), end);
}

static bool is_new_style(struct slice name)
{
    return ends_in(name, SLICE(".api.aws")) || ends_in(name, SLICE(".api.amazonwebservices.com.cn"));
}

static bool is_amazon_name(struct slice name)
{
    return is_new_style(name) || ends_in(name, SLICE(".amazonaws.com")) ||
           ends_in(name, SLICE(".amazonaws.com.cn"));
}

static bool is_service_label(struct slice label)
{
    static const char *const labels[] = {"dynamodb", "dynamodb-fips", "ddb", "ddb-fips", "streams-dynamodb"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (slice_equal_ignoring_case(label, slice_of(labels[i]))) return true;
    return false;
}

/* The label behind the service's; dynamodb.amazonaws.com is that of the oldest region. */
static struct slice region_of(struct slice name)
{
    struct slice rest = name, label;
    do {
        label = take_until_any(&rest, ".");
        if (rest.len) rest = slice_from(rest, 1);
    } while (rest.len && !is_service_label(label));
    label = take_until_any(&rest, ".");
    return slice_equal_ignoring_case(label, SLICE("amazonaws")) ? SLICE("us-east-1") : label;
}

static struct slice stream_name_of(struct slice name, struct slice region, struct arena *arena)
{
    if (slice_contains(name, SLICE(".vpce.")) || slice_starts(name, SLICE("streams"))) return name;
    if (is_new_style(name)) return arena_printf(arena, "streams-%.*s", SLICE_ARG(name));
    if (slice_starts(name, SLICE("dynamodb"))) return arena_printf(arena, "streams.%.*s", SLICE_ARG(name));
    return arena_printf(arena, "streams.dynamodb.%.*s.amazonaws.com%s", SLICE_ARG(region),
                        ends_in(name, SLICE(".cn")) ? ".cn" : "");
}

/* ---- all together ---- */

static void put_addresses(const struct url_parts *parts, struct slice name, struct arena *arena,
                          const char **url, const char **host)
{
    bool secure = slice_equal(parts->scheme, SLICE("https"));
    bool usual_port = slice_equal(parts->port, secure ? SLICE(":443") : SLICE(":80"));
    struct slice port = usual_port ? SLICE("") : parts->port;
    *host = arena_printf(arena, "%.*s%.*s", SLICE_ARG(name), SLICE_ARG(port)).data;
    *url = arena_printf(arena, "%.*s://%s%.*s", SLICE_ARG(parts->scheme), *host, SLICE_ARG(parts->path)).data;
}

bool endpoint_parse(const char *url, struct arena *arena, struct endpoint *out, char *error, size_t error_len)
{
    struct url_parts parts;
    if (!split(url, &parts, error, error_len)) return false;
    *out = (struct endpoint){.is_amazon = is_amazon_name(parts.name)};
    if (!parts.path.len) parts.path = SLICE("/");
    struct slice stream_name = parts.name;
    if (out->is_amazon) {
        out->region = arena_copy(arena, region_of(parts.name));
        stream_name = stream_name_of(parts.name, out->region, arena);
    }
    out->path = arena_copy(arena, parts.path).data;
    put_addresses(&parts, parts.name, arena, &out->url, &out->host);
    put_addresses(&parts, stream_name, arena, &out->stream_url, &out->stream_host);
    return true;
}
