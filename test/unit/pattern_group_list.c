/* Listing open groups: never a Scan, and no dearer for the groups that were completed before. */
#include "pattern/flow.h"
#include "pattern/rows.h"
#include "unit/pattern_fixture.h"

#define CALLS_MOST 64

/* A flow that is run here, so that each of its calls is seen. */
struct watched {
    struct slice operations[CALLS_MOST];
    unsigned calls;
    double read_units;
    bool tells_next; /* there is another page */
};

static const struct flow_row *row_of(const char *method, const char *path)
{
    for (size_t i = 0; row_at(i); i++)
        if (strcmp(row_at(i)->method, method) == 0 && strcmp(row_at(i)->path, path) == 0) return row_at(i);
    ensure(false);
    return NULL;
}

static void take_call(struct patterns *patterns, struct flow *flow, struct watched *watched)
{
    struct buf body = {0};
    struct flow_reply reply = {0};
    ensure(watched->calls < CALLS_MOST);
    watched->operations[watched->calls++] = flow->operation;
    reply.status = dynamo_call(patterns->dynamo, flow->operation, flow->call, &body);
    reply.body = arena_copy(flow->arena, buf_view(&body));
    buf_free(&body);
    CHECK_INT(reply.status, 200);
    flow_next(flow, patterns->now_ms, &reply);
}

static struct watched list_open(struct patterns *patterns, const char *query)
{
    struct watched watched = {0};
    struct buf body = {0};
    struct flow flow;
    struct arena arena = {0};
    struct flow_world world = {.prefix = slice_of(patterns->prefix), .poll_ms = 1000};
    struct rest_call request = {.query = slice_of(query), .arena = &arena, .parameters = {SLICE("g")}};
    flow_begin(&flow, &(struct flow_start){.world = &world,
                                           .row = row_of("GET", "/v1/groups/{name}"),
                                           .request = &request,
                                           .arena = &arena,
                                           .body = &body,
                                           .now_ms = patterns->now_ms});
    while (flow.want == FLOW_CALL) take_call(patterns, &flow, &watched);
    CHECK_INT(flow.want, FLOW_DONE);
    CHECK_INT(flow.status, 200);
    CHECK(slice_contains(buf_view(&body), SLICE("\"key\":\"open 2\"")));
    CHECK(!slice_contains(buf_view(&body), SLICE("closed")));
    watched.read_units = flow.read_units;
    watched.tells_next = slice_contains(buf_view(&body), SLICE("\"next\""));
    buf_free(&body);
    arena_free(&arena);
    return watched;
}

/* Groups of two: with one event they stay open. So many a second that there need not be more slots for them. */
static void add(struct patterns *patterns, const char *kind, int number, int events)
{
    char request[80];
    snprintf(request, sizeof request, "POST /v1/groups/g/%s%%20%d", kind, number);
    patterns->now_ms += 2;
    for (int i = 0; i < events; i++) asks(patterns, request, i ? "{\"id\":\"b\"}" : "{\"id\":\"a\"}");
}

TEST(group_listing_never_scans)
{
    struct patterns patterns;
    struct watched few, many;
    patterns_open(&patterns);
    int closed = getenv("PATTERNS_ON") ? 200 : 10000; /* elsewhere a call takes its time */
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2}}");
    for (int i = 0; i < 5; i++) add(&patterns, "open", i, 1);
    for (int i = 0; i < 10; i++) add(&patterns, "closed", i, 2);
    few = list_open(&patterns, "state=open&cost=1");
    for (int i = 10; i < closed; i++) add(&patterns, "closed", i, 2);
    many = list_open(&patterns, "state=open&cost=1");
    printf("group: open ones are listed by %u calls of %g read units beside 10 closed ones, by %u of %g "
           "beside %d\n",
           few.calls, few.read_units, many.calls, many.read_units, closed);
    CHECK_INT(many.calls, few.calls);
    CHECK(few.read_units > 0 && few.read_units <= 4 && many.read_units == few.read_units);
    CHECK(!many.tells_next);
    CHECK_TEXT(many.operations[0], "GetItem"); /* how many slots there are */
    for (unsigned i = 1; i < many.calls; i++) CHECK_TEXT(many.operations[i], "Query");
    patterns_close(&patterns);
}
