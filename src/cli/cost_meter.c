/* The meter: a database that nobody else uses, and the cost of a call out of its answer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "cli/cost.h"
#include "dynamo/dynamo.h"
#include "pattern/pattern.h"

#define NOON_MS 43200000LL /* the clock begins at a whole second, far from the end of an hour or a day */
#define DAY_MS  86400000LL

static int64_t meter_now(void *self)
{
    return __atomic_load_n(&((struct meter *)self)->now_ms, __ATOMIC_SEQ_CST);
}

void meter_wait(struct meter *meter, int64_t ms)
{
    __atomic_add_fetch(&meter->now_ms, ms, __ATOMIC_SEQ_CST);
}

bool meter_open(struct meter *out, const struct arguments *arguments)
{
    const char *on = argument_text(arguments, "on");
    char error[512];
    struct random random;
    *out = (struct meter){.is_remote = on != NULL, .prefix = "quipu-"};
    out->clock = (struct clock){meter_now, out};
    out->now_ms = clock_now_ms(&clock_system) / DAY_MS * DAY_MS + NOON_MS;
    random_seed_from_system(&random);
    if (on && strncmp(on, "http://", 7) != 0 && strncmp(on, "https://", 8) != 0)
        return complain("'%s' should be a URL", on), false;
    if (on) snprintf(out->prefix, sizeof out->prefix, "quipu-cost-%08x-", (unsigned)random_next(&random));
    struct dynamo_options options = {.clock = &out->clock,
                                     .region = argument_text(arguments, "region"),
                                     .profile = argument_text(arguments, "profile")};
    out->dynamo = dynamo_open(on ? on : ":memory:", &options, error, sizeof error);
    if (!out->dynamo) return complain("%s", error), false;
    out->pattern = pattern_open(&(struct pattern_options){
        .dynamo = out->dynamo, .clock = &out->clock, .prefix = out->prefix, .skew_ms = -1, .seed = 1});
    return true;
}

/* ---- closing ---- */

static void remove_table(struct meter *meter, struct slice name)
{
    struct buf reply = {0};
    struct slice request = arena_printf(&meter->arena, "{\"TableName\":\"%.*s\"}", SLICE_ARG(name));
    if (dynamo_call(meter->dynamo, SLICE("DeleteTable"), request, &reply) != 200)
        complain("the table %.*s could not be removed: %.*s", SLICE_ARG(name), SLICE_ARG(buf_view(&reply)));
    buf_free(&reply);
}

/* A page of names that begin with the prefix; those before it are skipped by where the page starts. */
static void remove_tables(struct meter *meter)
{
    struct buf reply = {0};
    const char *fault;
    struct slice request = arena_printf(&meter->arena, "{\"ExclusiveStartTableName\":\"%s\"}", meter->prefix);
    int status = dynamo_call(meter->dynamo, SLICE("ListTables"), request, &reply);
    const struct node *json = status == 200 ? node_parse(&meter->arena, buf_view(&reply), &fault) : NULL;
    const struct node *names = node_member(json, "TableNames");
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        if (slice_starts(name->text, slice_of(meter->prefix))) remove_table(meter, name->text);
    buf_free(&reply);
}

void meter_close(struct meter *meter)
{
    arena_reset(&meter->arena);
    if (meter->is_remote) remove_tables(meter);
    pattern_close(meter->pattern);
    dynamo_close(meter->dynamo);
    arena_free(&meter->arena);
    buf_free(&meter->reply);
}

/* ---- calling ---- */

struct meter_request {
    struct rest_call call; /* first */
    const struct meter *meter;
};

static struct slice header_of(const struct rest_call *call, struct slice name)
{
    const struct meter *meter = ((const struct meter_request *)call)->meter;
    const char *colon = meter->header ? strchr(meter->header, ':') : NULL;
    if (!colon) return SLICE_NONE;
    struct slice given = {meter->header, (size_t)(colon - meter->header)};
    return slice_equal_ignoring_case(given, name) ? slice_of(colon + 1 + strspn(colon + 1, " ")) : SLICE_NONE;
}

/* The member of the answer, or the header where the answer is somebody's own text. */
static const struct node *cost_in(struct meter *meter, const struct rest_call *call, const struct node *json)
{
    static const char name[] = "Quipu-Cost: ";
    const char *fault;
    const struct node *member = node_member(json, "cost");
    if (member) return member;
    for (size_t i = 0; i + sizeof name < call->headers.len; i++) {
        struct slice rest = {call->headers.data + i, call->headers.len - i};
        if (!slice_starts(rest, slice_of(name))) continue;
        rest = (struct slice){rest.data + sizeof name - 1, rest.len - sizeof name + 1};
        const char *end = memchr(rest.data, '\r', rest.len);
        if (end) rest.len = (size_t)(end - rest.data);
        return node_parse(&meter->arena, rest, &fault);
    }
    return NULL;
}

/* Pieces of a reply that goes on count for nothing here. */
static bool take_piece(struct rest_call *call, struct slice bytes)
{
    (void)call, (void)bytes;
    return true;
}

bool meter_ask(struct meter *meter, const char *request, const char *header, struct slice body,
               struct measure *out)
{
    const char *fault, *space = strchr(request, ' ');
    if (!space) return false;
    const char *query = strchr(space, '?');
    arena_reset(&meter->arena);
    meter->reply.len = 0;
    meter->header = header;
    struct meter_request asked = {
        .call = {.method = {request, (size_t)(space - request)},
                 .path = {space + 1, query ? (size_t)(query - space - 1) : strlen(space + 1)},
                 .query = arena_printf(&meter->arena, "%s%scost=1", query ? query + 1 : "", query ? "&" : ""),
                 .body = body,
                 .header = header_of,
                 .piece = take_piece,
                 .arena = &meter->arena,
                 .reply = &meter->reply},
        .meter = meter};
    if (!pattern_run(meter->pattern, &asked.call)) return false;
    *out = (struct measure){.status = asked.call.status, .reply = buf_view(&meter->reply)};
    out->json = out->reply.len ? node_parse(&meter->arena, out->reply, &fault) : NULL;
    const struct node *cost = cost_in(meter, &asked.call, out->json);
    out->writes = fmax(0, node_number(cost, "writeUnits"));
    out->reads = fmax(0, node_number(cost, "readUnits"));
    out->dollars = fmax(0, node_number(cost, "dollarsPerMillion"));
    out->calls = node_count(cost, "calls");
    return true;
}

bool meter_call(struct meter *meter, const char *operation, struct slice request)
{
    meter->reply.len = 0;
    if (dynamo_call(meter->dynamo, slice_of(operation), request, &meter->reply) == 200) return true;
    complain("%s: %.*s", operation, SLICE_ARG(buf_view(&meter->reply)));
    return false;
}

/* ---- telling ---- */

void put_measure(struct buf *out, const struct measure *measure)
{
    buf_text(out, ",\"writeUnits\":");
    json_put_double(out, measure->writes);
    buf_text(out, ",\"readUnits\":");
    json_put_double(out, measure->reads);
    buf_printf(out, ",\"calls\":%llu,\"dollarsPerMillion\":", measure->calls);
    json_put_double(out, measure->dollars);
}

struct slice number_shown(struct arena *arena, double number)
{
    struct slice text = arena_printf(arena, "%.4f", number);
    while (text.data[text.len - 1] == '0') text.len--;
    if (text.data[text.len - 1] == '.') text.len--;
    return text;
}
