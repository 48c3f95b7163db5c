/* A request as Lambda's event: API Gateway's payload formats 2.0 and 1.0.
 *
 * In 2.0 values under one name are joined by commas, names of headers are in small letters, and cookies have a list of
 * their own. In 1.0 the last value of a name counts, and all are in lists besides. A body is text where its type says
 * that it is, and base64 otherwise, as API Gateway decides it: also a form's. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/compose.h"
#include "base/json.h"
#include "gateway/internal.h"

/* ---- names and values ---- */

struct pair {
    struct slice name, value;
    uint32_t number; /* in the order of arrival */
};

struct pairs {
    struct pair *list; /* by name, those of one name as they came */
    uint32_t count;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *first = a, *second = b;
    int order = slice_compare(first->name, second->name);
    return order ? order : first->number < second->number ? -1 : 1;
}

static void pairs_add(struct pairs *pairs, struct slice name, struct slice value)
{
    pairs->list[pairs->count] = (struct pair){name, value, pairs->count};
    pairs->count++;
}

static void pairs_sort(struct pairs *pairs)
{
    if (pairs->count) qsort(pairs->list, pairs->count, sizeof *pairs->list, compare_pairs);
}

/* JOINED: {"a":"1,2"}. LAST: {"a":"2"}. LISTS: {"a":["1","2"]}. */
enum form { JOINED, LAST, LISTS };
static void put_pairs(struct buf *out, const struct pairs *pairs, enum form form)
{
    struct buf value = {0};
    buf_byte(out, '{');
    for (uint32_t i = 0; i < pairs->count;) {
        struct slice name = pairs->list[i].name;
        value.len = 0;
        for (uint32_t first = i; i < pairs->count && slice_equal(pairs->list[i].name, name); i++) {
            if (form == LAST) value.len = 0;
            if (i > first && form != LAST) buf_byte(&value, ',');
            if (form == LISTS)
                json_put_string(&value, pairs->list[i].value);
            else
                buf_slice(&value, pairs->list[i].value);
        }
        if (form == LISTS)
            compose(out, "%,%s:[%A]", name, buf_view(&value));
        else
            compose(out, "%,%s:%s", name, buf_view(&value));
    }
    buf_byte(out, '}');
    buf_free(&value);
}

struct slice http_text(struct arena *arena, struct slice bytes)
{
    if (utf8_valid(bytes)) return bytes;
    char *text = arena_alloc(arena, bytes.len * 2);
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        if (c >= 0x80) text[len++] = (char)(0xc0 | c >> 6);
        text[len++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    return (struct slice){text, len};
}

static struct slice lower(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 32) : text.data[i];
    return (struct slice){copy, text.len};
}

/* A name or value of a query; what cannot be decoded stays as it is. */
static struct slice query_text(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len);
    struct slice decoded;
    for (size_t i = 0; i < text.len; i++) copy[i] = text.data[i] == '+' ? ' ' : text.data[i];
    return rest_decode(arena, (struct slice){copy, text.len}, &decoded) ? decoded : http_text(arena, text);
}

static struct pairs query_of(const struct visit *visit)
{
    struct arena *arena = visit->call->arena;
    struct slice rest = visit->call->query;
    size_t most = 1;
    for (size_t i = 0; i < rest.len; i++) most += rest.data[i] == '&';
    struct pairs pairs = {arena_array(arena, struct pair, most), 0};
    while (rest.len) {
        struct slice value = slice_cut(&rest, '&'), name = slice_cut(&value, '=');
        if (name.len || value.len) pairs_add(&pairs, query_text(arena, name), query_text(arena, value));
    }
    pairs_sort(&pairs);
    return pairs;
}

/* And what a proxy in front of a function adds. In 2.0 cookies have a place of their own. */
static struct pairs headers_of(const struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct arena *arena = call->arena;
    struct slice host = call->header(call, SLICE("Host")), port;
    struct pairs pairs = {arena_array(arena, struct pair, call->head->header_count + 3), 0};
    for (uint32_t i = 0; i < call->head->header_count; i++) {
        const struct http_header *header = &call->head->headers[i];
        if (!visit->is_payload_1 && slice_equal_ignoring_case(header->name, SLICE("cookie"))) continue;
        pairs_add(&pairs, visit->is_payload_1 ? header->name : lower(arena, header->name),
                  http_text(arena, header->value));
    }
    const char *colon = host.len ? memrchr(host.data, ':', host.len) : NULL;
    bool has_port = colon && !memchr(colon, ']', host.len - (size_t)(colon - host.data));
    port = has_port ? slice_from(host, (size_t)(colon + 1 - host.data))
                    : call->is_secure ? SLICE("443") : SLICE("80");
    port = http_text(arena, port);
    pairs_add(&pairs, SLICE("x-forwarded-for"), call->peer);
    if (!call->header(call, SLICE("X-Forwarded-Proto")).data)
        pairs_add(&pairs, SLICE("x-forwarded-proto"), call->is_secure ? SLICE("https") : SLICE("http"));
    if (!call->header(call, SLICE("X-Forwarded-Port")).data) pairs_add(&pairs, SLICE("x-forwarded-port"), port);
    pairs_sort(&pairs);
    return pairs;
}

/* ---- the body ---- */

static bool type_starts(struct slice type, struct slice start)
{
    return type.len >= start.len && slice_equal_ignoring_case((struct slice){type.data, start.len}, start);
}

static bool is_text(struct rest_call *call)
{
    static const struct slice texts[] = {SLICE("text/"), SLICE("application/json"), SLICE("application/xml"),
                                         SLICE("application/javascript"), SLICE("application/graphql")};
    struct slice type = call->header(call, SLICE("Content-Type"));
    if (call->header(call, SLICE("Content-Encoding")).len || !utf8_valid(call->body)) return false;
    const char *end = type.len ? memchr(type.data, ';', type.len) : NULL;
    if (end) type.len = (size_t)(end - type.data);
    while (type.len && type.data[type.len - 1] == ' ') type.len--;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (type_starts(type, texts[i])) return true;
    /* application/vnd.api+json and the like */
    return (type.len > 5 && type_starts(slice_from(type, type.len - 5), SLICE("+json"))) ||
           (type.len > 4 && type_starts(slice_from(type, type.len - 4), SLICE("+xml")));
}

static void put_body(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    /* REST APIs hand on what they get, whatever its type: curl's --data is a form to HTTP APIs only. */
    bool is_plain = !call->body.len || is_text(call) || (visit->is_payload_1 && utf8_valid(call->body));
    if (!call->body.len && visit->is_payload_1) buf_text(out, ",\"body\":null");
    if (call->body.len) {
        buf_text(out, ",\"body\":");
        if (is_plain)
            json_put_string(out, call->body);
        else
            json_put_base64(out, call->body);
    }
    compose(out, ",'isBase64Encoded':%b", !is_plain);
}

/* ---- the event ---- */

static void put_cookies(struct buf *out, struct rest_call *call)
{
    bool has_some = false;
    for (uint32_t i = 0; i < call->head->header_count; i++) {
        const struct http_header *header = &call->head->headers[i];
        if (!slice_equal_ignoring_case(header->name, SLICE("cookie"))) continue;
        for (struct slice rest = http_text(call->arena, header->value); rest.len;) {
            struct slice cookie = slice_cut(&rest, ';');
            while (cookie.len && cookie.data[0] == ' ') cookie = slice_from(cookie, 1);
            if (!cookie.len) continue;
            if (!has_some) buf_text(out, ",\"cookies\":[");
            has_some = true;
            compose(out, "%,%s", cookie);
        }
    }
    if (has_some) buf_byte(out, ']');
}

static struct slice time_text(struct arena *arena, int64_t now_ms)
{
    char text[40];
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm broken;
    gmtime_r(&seconds, &broken);
    size_t len = strftime(text, sizeof text, "%d/%b/%Y:%H:%M:%S +0000", &broken);
    return arena_copy(arena, (struct slice){text, len});
}

static struct slice agent(struct visit *visit)
{
    return http_text(visit->call->arena, visit->call->header(visit->call, SLICE("User-Agent")));
}

/* {"name":...} where there is one. */
static void put_member(struct buf *out, const char *name, struct slice json, bool is_payload_1)
{
    if (json.len)
        compose(out, ",%s:%A", slice_of(name), json);
    else if (is_payload_1)
        compose(out, ",%s:null", slice_of(name));
}

static void put_context(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct arena *arena = call->arena;
    bool is_signed = visit->is_signed && visit->key.len;
    struct slice account = is_signed || visit->api ? slice_of(visit->gateway->options.account) : SLICE("anonymous");
    compose(out, ",'requestContext':{'accountId':%s,'apiId':%s", account, visit->place);
    if (is_signed)
        compose(out,
                ",'authorizer':{'iam':{'accessKey':%s,'accountId':%s,'callerId':%s,'cognitoIdentity':null,"
                "'principalOrgId':null,'userArn':%s,'userId':%s}}",
                visit->key, account, visit->key, arena_printf(arena, "arn:aws:iam::%.*s:root", SLICE_ARG(account)),
                visit->key);
    compose(out,
            ",'domainName':%s,'domainPrefix':%s,"
            "'http':{'method':%s,'path':%s,'protocol':'HTTP/1.1','sourceIp':%s,'userAgent':%s},"
            "'requestId':%s,'routeKey':%s,'stage':%s,'time':%s,'timeEpoch':%d}",
            visit->host, visit->place, call->method, http_text(arena, visit->target.path), call->peer, agent(visit),
            slice_of(visit->id), visit->route, visit->stage, time_text(arena, visit->now_ms), visit->now_ms);
}

static void put_context_1(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct arena *arena = call->arena;
    struct slice resource = visit->route_path.len ? visit->route_path : visit->route;
    bool is_signed = visit->is_signed && visit->key.len;
    compose(out,
            ",'requestContext':{'accountId':%s,'apiId':%s,'domainName':%s,'domainPrefix':%s,'extendedRequestId':%s,"
            "'httpMethod':%s,'identity':{'accessKey':%A,'sourceIp':%s,'userAgent':%s},'path':%s,'protocol':'HTTP/1.1',"
            "'requestId':%s,'requestTime':%s,'requestTimeEpoch':%d,'resourceId':%s,'resourcePath':%s,'stage':%s}",
            slice_of(visit->gateway->options.account), visit->place, visit->host, visit->place, slice_of(visit->id),
            call->method, is_signed ? compose_in(arena, "%s", visit->key) : SLICE("null"), call->peer, agent(visit),
            http_text(arena, visit->target.path), slice_of(visit->id), time_text(arena, visit->now_ms), visit->now_ms,
            visit->route, resource, visit->stage);
}

static void put_event_2(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct pairs query = query_of(visit), headers = headers_of(visit);
    compose(out, "{'version':'2.0','routeKey':%s,'rawPath':%s,'rawQueryString':%s", visit->route,
            http_text(call->arena, visit->target.path), http_text(call->arena, call->query));
    put_cookies(out, call);
    compose(out, ",'headers':");
    put_pairs(out, &headers, JOINED);
    if (query.count) {
        compose(out, ",'queryStringParameters':");
        put_pairs(out, &query, JOINED);
    }
    put_context(out, visit);
}

static void put_event_1(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct pairs query = query_of(visit), headers = headers_of(visit);
    compose(out, "{'version':'1.0','resource':%s,'path':%s,'httpMethod':%s,'headers':",
            visit->route_path.len ? visit->route_path : visit->route, http_text(call->arena, visit->path),
            call->method);
    put_pairs(out, &headers, LAST);
    compose(out, ",'multiValueHeaders':");
    put_pairs(out, &headers, LISTS);
    compose(out, ",'queryStringParameters':");
    if (query.count) put_pairs(out, &query, LAST);
    else buf_text(out, "null");
    compose(out, ",'multiValueQueryStringParameters':");
    if (query.count) put_pairs(out, &query, LISTS);
    else buf_text(out, "null");
    put_context_1(out, visit);
}

/* A context of templates, as far as it can be known here. */
static void put_mapping_context(struct buf *out, struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct arena *arena = call->arena;
    compose(out,
            "{'accountId':%s,'apiId':%s,'domainName':%s,'httpMethod':%s,'identity':{'sourceIp':%s,'userAgent':%s},"
            "'path':%s,'protocol':'HTTP/1.1','requestId':%s,'requestTime':%s,'requestTimeEpoch':%d,"
            "'resourcePath':%s,'stage':%s}",
            slice_of(visit->gateway->options.account), visit->place, visit->host, call->method, call->peer,
            agent(visit), http_text(arena, visit->target.path), slice_of(visit->id), time_text(arena, visit->now_ms),
            visit->now_ms, visit->route_path, visit->stage);
}

struct velocity_input http_mapping_input(struct visit *visit)
{
    struct arena *arena = visit->call->arena;
    struct pairs query = query_of(visit), headers = headers_of(visit);
    struct buf queries = {0}, header_text = {0}, context = {0};
    put_pairs(&queries, &query, LAST);
    put_pairs(&header_text, &headers, LAST);
    put_mapping_context(&context, visit);
    return (struct velocity_input){.body = visit->call->body,
                                   .path = visit->parameters,
                                   .query = arena_take(arena, &queries),
                                   .headers = arena_take(arena, &header_text),
                                   .context = arena_take(arena, &context),
                                   .variables = visit->variables};
}

struct slice http_event_write(struct visit *visit)
{
    struct buf out = {0};
    if (visit->is_payload_1)
        put_event_1(&out, visit);
    else
        put_event_2(&out, visit);
    put_member(&out, "pathParameters", visit->parameters, visit->is_payload_1);
    put_member(&out, "stageVariables", visit->variables, visit->is_payload_1);
    put_body(&out, visit);
    buf_byte(&out, '}');
    return arena_take(visit->call->arena, &out);
}
