/* Which requests may come in at all, by what they say about the page that sent them.
 *
 * A browser sends requests for any page that its user looks at, also to addresses that only the user's
 * machine can reach. It lets the page read an answer only where the server agrees, but the request has been
 * served by then. So a request of a foreign page is refused before anything is done for it. Two lies remain
 * to a page: that its own name stands for our address (DNS rebinding), which the Host header gives away; and
 * to send no Origin (an image, a link), which Sec-Fetch-Site and Referer give away.
 *
 * Programs send none of these headers and a Host that somebody typed: they see nothing of this rule unless
 * they call us by a name that we do not know. */
#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "rest/rest.h"

#define SHOWN_BYTES 120 /* of a header's value in our sentence */

struct rest_door {
    struct arena arena; /* all texts */
    struct slice host;  /* the address that we listen on */
    struct slice machine;
    struct slice *origins, *hosts;
    size_t origin_count, host_count;
    bool is_public; /* it listens on more than the loopback */
    bool any_origin, any_host;
};

/* What a head says of where it comes from. */
struct provenance {
    struct slice host, origin, site, referer;
    unsigned origin_count;
};

static bool is_loopback_name(struct slice name);
static bool is_address(struct slice name);

/* ---- making one ---- */

struct rest_door *rest_door_new(const char *host)
{
    char machine[HOST_NAME_MAX + 1] = "";
    struct rest_door *door = must_zero(1, sizeof *door);
    struct slice name = slice_of(host);
    if (name.len > 1 && name.data[0] == '[') name = (struct slice){name.data + 1, name.len - 2};
    if (gethostname(machine, sizeof machine - 1) != 0) machine[0] = '\0';
    door->host = arena_copy(&door->arena, name);
    door->machine = arena_copy(&door->arena, slice_of(machine));
    door->is_public = !is_loopback_name(name);
    return door;
}

void rest_door_free(struct rest_door *door)
{
    free(door->origins);
    free(door->hosts);
    arena_free(&door->arena);
    free(door);
}

static void add_text(struct rest_door *door, struct slice **list, size_t *count, struct slice text)
{
    *list = must_realloc(*list, (*count + 1) * sizeof **list);
    (*list)[(*count)++] = arena_copy(&door->arena, text);
}

/* Visible ASCII that means nothing in a URL's authority. */
static bool is_authority(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~' || strchr("/?#@,\\\"'<>", text.data[i])) return false;
    return text.len > 0;
}

static bool allow_origin(struct rest_door *door, struct slice text)
{
    const char *colon = memchr(text.data, ':', text.len);
    size_t scheme = colon ? (size_t)(colon - text.data) : 0;
    bool is_null = slice_equal(text, SLICE("null"));
    if (slice_equal(text, SLICE("*"))) return door->any_origin = true;
    if (!is_null && !(scheme && slice_starts(slice_from(text, scheme), SLICE("://")) &&
                      is_authority(slice_from(text, scheme + 3))))
        return false;
    add_text(door, &door->origins, &door->origin_count, text);
    return true;
}

static bool allow_host(struct rest_door *door, struct slice text)
{
    if (slice_equal(text, SLICE("*"))) return door->any_host = true;
    bool has_port = memchr(text.data, ':', text.len) && !is_address(text);
    if (!is_authority(text) || has_port || text.data[0] == '[' || text.data[0] == '*') return false;
    add_text(door, &door->hosts, &door->host_count, text);
    return true;
}

/* Each of a list with commas: one flag, or one environment variable, may name several. */
static bool allow_each(struct rest_door *door, const char *texts, struct slice *wrong,
                       bool (*allow)(struct rest_door *door, struct slice text))
{
    for (struct slice rest = slice_of(texts);;) {
        const char *comma = memchr(rest.data, ',', rest.len);
        struct slice text = {rest.data, comma ? (size_t)(comma - rest.data) : rest.len};
        while (text.len && text.data[0] == ' ') text = slice_from(text, 1);
        while (text.len && text.data[text.len - 1] == ' ') text.len--;
        *wrong = text;
        if (!text.len || !allow(door, text)) return false;
        if (!comma) return true;
        rest = slice_from(rest, (size_t)(comma - rest.data) + 1);
    }
}

bool rest_door_allow_origin(struct rest_door *door, const char *origins, char *error, size_t error_len)
{
    struct slice wrong;
    if (allow_each(door, origins, &wrong, allow_origin)) return true;
    snprintf(error, error_len,
             "--allow-origin must be a page's scheme, name and port, such as http://localhost:3000, or '*' "
             "for all "
             "pages, not '%.*s'",
             SLICE_ARG(wrong));
    return false;
}

bool rest_door_allow_host(struct rest_door *door, const char *hosts, char *error, size_t error_len)
{
    struct slice wrong;
    if (allow_each(door, hosts, &wrong, allow_host)) return true;
    snprintf(
        error, error_len,
        "--allow-host must be a name without a port, such as db.example.com, or .example.com for all names "
        "below it, or '*', not '%.*s'",
        SLICE_ARG(wrong));
    return false;
}

/* ---- names and addresses ---- */

static bool to_address(struct slice name, int family, void *out)
{
    char text[64];
    if (!name.len || name.len >= sizeof text) return false;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    return inet_pton(family, text, out) == 1;
}

static bool is_address(struct slice name)
{
    struct in6_addr address;
    return to_address(name, AF_INET, &address) || to_address(name, AF_INET6, &address);
}

static bool ends_in(struct slice text, struct slice end)
{
    return text.len >= end.len && slice_equal_ignoring_case(slice_from(text, text.len - end.len), end);
}

/* 0.0.0.0 is an address to listen on, but systems take it for themselves when something connects to it. */
static bool is_loopback_name(struct slice name)
{
    struct in_addr four;
    struct in6_addr six;
    if (slice_equal_ignoring_case(name, SLICE("localhost")) || ends_in(name, SLICE(".localhost")))
        return true;
    if (to_address(name, AF_INET, &four)) return ntohl(four.s_addr) >> 24 == 127;
    return to_address(name, AF_INET6, &six) && IN6_IS_ADDR_LOOPBACK(&six);
}

/* The name in "name:port" or "[address]:port", without the dot that a full name may end in. */
static struct slice host_name(struct slice host)
{
    if (host.len && host.data[0] == '[') {
        const char *end = memchr(host.data, ']', host.len), *after = end ? end + 1 : NULL;
        bool is_whole = end && (after == host.data + host.len || *after == ':');
        return is_whole ? (struct slice){host.data + 1, (size_t)(end - host.data) - 1} : host;
    }
    const char *colon = host.len ? memchr(host.data, ':', host.len) : NULL;
    if (colon) host.len = (size_t)(colon - host.data);
    if (host.len > 1 && host.data[host.len - 1] == '.') host.len--;
    return host;
}

/* Of a name with dots, the part before the first of them counts, too. */
static bool is_machine(const struct rest_door *door, struct slice name)
{
    struct slice machine = door->machine;
    const char *dot = machine.len ? memchr(machine.data, '.', machine.len) : NULL;
    struct slice first = {machine.data, dot ? (size_t)(dot - machine.data) : machine.len};
    return machine.len &&
           (slice_equal_ignoring_case(name, machine) || slice_equal_ignoring_case(name, first));
}

/* "quipu", as containers beside ours call us by the service's name. A page cannot rebind it: for that its
 * owner would have to own a top-level domain. */
static bool is_single_label(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_') return false;
    }
    return name.len > 0;
}

static bool host_is_allowed(const struct rest_door *door, struct slice name)
{
    for (size_t i = 0; i < door->host_count; i++) {
        struct slice allowed = door->hosts[i];
        if (slice_equal_ignoring_case(name, allowed)) return true;
        if (allowed.data[0] == '.' &&
            (ends_in(name, allowed) || slice_equal_ignoring_case(name, slice_from(allowed, 1))))
            return true;
    }
    return door->any_host;
}

/* ID.lambda-url.NAME and ID.execute-api.NAME, where functions answer: NAME. Else the name itself. */
static struct slice below_function(struct slice name)
{
    static const struct slice middles[] = {SLICE("lambda-url."), SLICE("execute-api.")};
    struct slice rest = name, id = slice_cut(&rest, '.');
    for (size_t i = 0; id.len && i < 2; i++)
        if (rest.len > middles[i].len &&
            slice_equal_ignoring_case((struct slice){rest.data, middles[i].len}, middles[i]))
            return slice_from(rest, middles[i].len);
    return name;
}

static bool host_is_ours(const struct rest_door *door, struct slice host)
{
    struct slice name = host_name(host);
    if (door && slice_equal_ignoring_case(name, door->host)) return true;
    if (is_loopback_name(name) || slice_equal(name, SLICE("0.0.0.0"))) return true;
    if (!door) return false;
    if (door->is_public && (is_address(name) || is_machine(door, name) || is_single_label(name))) return true;
    if (host_is_allowed(door, name)) return true;
    /* A single label will not do here: lambda-url.com may be a stranger's. */
    struct slice below = below_function(name);
    return below.len < name.len &&
           (slice_equal_ignoring_case(below, door->host) || host_is_allowed(door, below));
}

/* ---- origins ---- */

/* Whether a page of this origin or URL came from the server that the Host header names. */
static bool is_own_page(struct slice page, struct slice host)
{
    static const struct slice schemes[] = {SLICE("http://"), SLICE("https://")};
    for (size_t i = 0; host.len && i < 2; i++) {
        if (!slice_starts(page, schemes[i])) continue;
        page = slice_from(page, schemes[i].len);
        const char *slash = page.len ? memchr(page.data, '/', page.len) : NULL;
        if (slash) page.len = (size_t)(slash - page.data);
        return slice_equal_ignoring_case(page, host);
    }
    return false;
}

static bool origin_is_allowed(const struct rest_door *door, struct slice origin)
{
    if (!door || !origin.len) return door && door->any_origin;
    for (size_t i = 0; i < door->origin_count; i++)
        if (slice_equal_ignoring_case(door->origins[i], origin)) return true;
    return door->any_origin;
}

/* "none": the user did it, not a page. */
static bool site_is_own(struct slice site)
{
    return slice_equal(site, SLICE("same-origin")) || slice_equal(site, SLICE("none"));
}

/* NULL: no page sent it, or one of ours, or one that is allowed. Else how it is known. */
static const char *foreign_by(const struct rest_door *door, const struct provenance *from)
{
    if (from->origin_count > 1) return "Origin";
    if (from->origin.data) {
        if (origin_is_allowed(door, from->origin)) return NULL;
        if (!is_own_page(from->origin, from->host)) return "Origin";
    }
    if (origin_is_allowed(door, SLICE_NONE)) return NULL;
    if (from->site.data) return site_is_own(from->site) ? NULL : "Sec-Fetch-Site";
    return from->referer.len && !is_own_page(from->referer, from->host) ? "Referer" : NULL;
}

/* ---- the rule ---- */

static struct provenance provenance_of(const struct rest_head *head)
{
    static const struct slice host = SLICE("Host"), origin = SLICE("Origin"), site = SLICE("Sec-Fetch-Site"),
                              referer = SLICE("Referer");
    struct provenance from = {0};
    for (uint32_t i = 0; i < head->header_count; i++) {
        struct slice name = head->headers[i].name, value = head->headers[i].value;
        if (name.len == host.len && slice_equal_ignoring_case(name, host)) from.host = value;
        if (name.len == origin.len && slice_equal_ignoring_case(name, origin)) {
            from.origin = value;
            from.origin_count++;
        }
        if (name.len == referer.len && slice_equal_ignoring_case(name, referer)) from.referer = value;
        /* Of two values, the worse counts. */
        if (name.len == site.len && slice_equal_ignoring_case(name, site) &&
            !(from.site.data && site_is_own(value)))
            from.site = value;
    }
    return from;
}

/* What came from outside, fit for a sentence. */
static struct slice shown(char out[SHOWN_BYTES], struct slice value)
{
    size_t len = value.len < SHOWN_BYTES ? value.len : SHOWN_BYTES;
    for (size_t i = 0; i < len; i++) {
        bool is_plain = value.data[i] > ' ' && value.data[i] <= '~' && !strchr("\"'\\<>`$", value.data[i]);
        out[i] = is_plain ? value.data[i] : '?';
    }
    return (struct slice){out, len};
}

static bool host_is_known(const struct rest_door *door, struct slice host, char *reason, size_t reason_len)
{
    char text[SHOWN_BYTES];
    if (!host.len || host_is_ours(door, host)) return true;
    struct slice name = shown(text, host_name(host));
    snprintf(reason, reason_len,
             "This server is not known as '%.*s'. A web page could have pointed that name here (DNS "
             "rebinding), so the request was refused. If the name is yours, start the server with "
             "--allow-host %.*s",
             SLICE_ARG(name), SLICE_ARG(name));
    return false;
}

bool rest_door_knows_host(const struct rest_door *door, const struct rest_head *head, char *reason,
                          size_t reason_len)
{
    return host_is_known(door, provenance_of(head).host, reason, reason_len);
}

bool rest_door_admits(const struct rest_door *door, const struct rest_head *head, char *reason,
                      size_t reason_len)
{
    char text[SHOWN_BYTES];
    struct provenance from = provenance_of(head);
    if (!host_is_known(door, from.host, reason, reason_len)) return false;
    const char *sign = foreign_by(door, &from);
    if (!sign) return true;
    if (from.origin.data && strcmp(sign, "Origin") == 0) {
        struct slice origin = shown(text, from.origin);
        snprintf(
            reason, reason_len,
            "A web page of %.*s sent this request, and pages of other origins may not use this server. If "
            "the page is yours, start the server with --allow-origin %.*s",
            SLICE_ARG(origin), SLICE_ARG(origin));
    } else {
        snprintf(reason, reason_len,
                 "A web page of another origin sent this request (its %s header says so), and such pages may "
                 "not use this server. If the page is yours, start the server with --allow-origin and the "
                 "page's origin, and let the page use fetch",
                 sign);
    }
    return false;
}

struct slice rest_door_origin(const struct rest_door *door, const struct rest_head *head)
{
    struct slice origin = rest_head_find(head, SLICE("Origin"));
    return origin.len && origin_is_allowed(door, origin) ? origin : SLICE_NONE;
}
