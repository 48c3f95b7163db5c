/* Explores the orders of calls; see pattern_explore.h. */
#include "unit/pattern_explore.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "pattern/rows.h"

#define DEPTH          200
#define BEGIN_MS       1794716005340
#define AWAY_MS        300000 /* how long somebody is away */
#define LATE           4      /* calls of which a copy is on its way */
#define SHOWN          3      /* failing schedules that are printed */
#define WORLDS         3
#define OF_ALL         UINT_MAX /* what all processes remember */
#define USUAL_MOST     1000     /* schedules of the first world, unless EXPLORE_MOST says otherwise, */
#define ELSEWHERE_MOST 300      /* and of the second and the third */
#define BROKEN_MOST    100000   /* until what is broken must have been seen */

/* What a process has remembered; the youngest first, and none is ever changed, so that a point keeps what was
 * remembered then. */
struct memo {
    const struct memo *before;
    unsigned process;
    uint64_t topic;
    struct slice what; /* NULL data: forgotten */
};

/* What a flow was given so far, the last first. */
struct event {
    const struct event *before;
    const struct memo *memory; /* before it */
    int64_t now_ms;
    bool has_reply;
    struct flow_reply reply;
};

/* A flow on its way: what it has been given, and what it wants now. */
struct track {
    const struct event *last;
    uint64_t place; /* tells this point of the flow's life from all others */
    unsigned attempt, began, called;
    int64_t began_ms;
    const struct memo *began_memory;
    enum flow_want want;
    struct slice operation, call;
    int64_t until_ms;
    uint64_t writes_seen; /* WATCH: how many writes there were when it began */
    struct explored_answer answer;
};

struct late_call {
    struct slice operation, call;
};

/* A point between two events. */
struct point {
    struct track tracks[EXPLORED_FLOWS];
    struct late_call late[LATE];
    unsigned late_count;
    const struct memo *memory;
    int64_t now_ms;
    uint64_t writes;
    unsigned jumps, faults, events;
};

/* The choices of a point that are left, and the schedules that may be tried in all of them. */
struct share {
    bool counts; /* the choices, before any is tried */
    unsigned choices;
    uint64_t schedules;
};

struct explorer {
    const struct exploration *exploration;
    unsigned flow_count;
    struct engine *engine;
    struct api *api;
    struct dynamo *dynamo;
    struct clock clock;
    int64_t now_ms;
    struct flow_world world;
    unsigned world_number;
    unsigned process;           /* of the flow at work */
    const struct memo *memory;  /* of all processes, now */
    struct arena *memory_arena; /* NULL: nobody remembers */
    bool needs_transactions;    /* somebody has asked for one where there are none */
    struct rest_route routes[256];
    size_t route_count;
    struct share shares[DEPTH];
    struct random random;
    const char *broken, *instead; /* text of requests that is replaced */

    struct arena levels[DEPTH]; /* what a point at this depth is made of */
    struct arena flow_arenas[EXPLORED_FLOWS], root, scratch;
    struct buf bodies[EXPLORED_FLOWS];
    struct flow flows[EXPLORED_FLOWS]; /* as they were run last, and where they stand */
    uint64_t places[EXPLORED_FLOWS], places_given;
    char choices[DEPTH][8];
    unsigned depth;
    uint64_t schedules, faults;
    bool faulty; /* this schedule */
    char fault[400];
    bool stops;         /* at the first fault */
    bool shows;         /* the calls, of a schedule that is replayed */
    const char *replay; /* the rest of its choices */
};

/* ---- the world ---- */

static int64_t explorer_now(void *self)
{
    return ((struct explorer *)self)->now_ms;
}

static struct slice explorer_recall(void *self, uint64_t topic, struct arena *arena)
{
    const struct explorer *explorer = self;
    const struct memo *memo = explorer->memory;
    while (memo && (memo->topic != topic || (memo->process != explorer->process && memo->process != OF_ALL)))
        memo = memo->before;
    return memo && memo->what.data ? arena_copy(arena, memo->what) : SLICE_NONE;
}

static void explorer_remember(void *self, uint64_t topic, struct slice what)
{
    struct explorer *explorer = self;
    if (!explorer->memory_arena) return;
    struct memo *memo = arena_new(explorer->memory_arena, struct memo);
    *memo = (struct memo){explorer->memory, explorer->process, topic,
                          what.data ? arena_copy(explorer->memory_arena, what) : SLICE_NONE};
    explorer->memory = memo;
}

/* The flow of this number is at work, and what its process remembers goes to the arena. */
static void process_enter(struct explorer *explorer, unsigned number, struct arena *arena)
{
    explorer->process = explorer->world_number == 1 ? number % 2 : 0;
    explorer->memory_arena = explorer->world_number == 2 ? NULL : arena;
}

static const struct flow_row *explored_row(const struct explorer *explorer, size_t number)
{
    const struct exploration *exploration = explorer->exploration;
    if (!exploration->rows) return row_at(number);
    return number < exploration->row_count ? &exploration->rows[number] : NULL;
}

static void explorer_open(struct explorer *explorer, const struct exploration *exploration,
                          unsigned world_number)
{
    static struct store_faults faults;
    char error[300];
    *explorer = (struct explorer){
        .exploration = exploration, .world_number = world_number, .now_ms = BEGIN_MS};
    explorer->clock = (struct clock){explorer_now, explorer};
    struct engine_options options = {.store = store_open_memory(&faults),
                                     .durable = true,
                                     .inline_writer = true,
                                     .cache_bytes = 1 << 20,
                                     .clock = &explorer->clock,
                                     .seed = 1,
                                     .stream_shards = 1};
    explorer->engine = engine_open(&options, error, sizeof error);
    ensure(explorer->engine);
    explorer->api = api_new(&(struct api_options){.engine = explorer->engine,
                                                  .region = "us-east-1",
                                                  .account = "000000000000",
                                                  .endpoint = "localhost:8000"});
    explorer->dynamo = dynamo_open_local(explorer->engine, explorer->api);
    explorer->world = (struct flow_world){
        .prefix = SLICE("quipu-"), .poll_ms = 1000, .memory = {explorer_recall, explorer_remember, explorer}};
    while (explored_row(explorer, explorer->route_count)) {
        const struct flow_row *row = explored_row(explorer, explorer->route_count);
        ensure(explorer->route_count < sizeof explorer->routes / sizeof *explorer->routes);
        explorer->routes[explorer->route_count++] = (struct rest_route){.method = row->method,
                                                                        .path = row->path};
    }
    while (explorer->flow_count < EXPLORED_FLOWS && exploration->flows[explorer->flow_count].request)
        explorer->flow_count++;
}

static void explorer_close(struct explorer *explorer)
{
    dynamo_close(explorer->dynamo);
    engine_close(explorer->engine);
    api_free(explorer->api);
    for (unsigned i = 0; i < DEPTH; i++) arena_free(&explorer->levels[i]);
    for (unsigned i = 0; i < EXPLORED_FLOWS; i++) {
        flow_release(&explorer->flows[i]);
        arena_free(&explorer->flow_arenas[i]);
        buf_free(&explorer->bodies[i]);
    }
    arena_free(&explorer->root);
    arena_free(&explorer->scratch);
}

/* ---- calls ---- */

/* The request with the broken text in the place of the right one. */
static struct slice break_call(struct explorer *explorer, struct slice call, struct arena *arena)
{
    if (!explorer->broken) return call;
    struct slice text = slice_of(explorer->broken);
    const char *found = memmem(call.data, call.len, text.data, text.len);
    if (!found) return call;
    size_t before = (size_t)(found - call.data);
    return arena_printf(arena, "%.*s%s%.*s", (int)before, call.data, explorer->instead,
                        SLICE_ARG(slice_from(call, before + text.len)));
}

static bool is_write(struct slice operation)
{
    return !slice_equal(operation, SLICE("GetItem")) && !slice_equal(operation, SLICE("Query")) &&
           !slice_equal(operation, SLICE("Scan"));
}

/* The reply, in the arena. */
static struct flow_reply make_call(struct explorer *explorer, struct slice operation, struct slice call,
                                   struct arena *arena)
{
    struct buf body = {0};
    struct slice message;
    if (explorer->world_number == 2 && slice_starts(operation, SLICE("Transact")))
        explorer->needs_transactions = true;
    int status = dynamo_call(explorer->dynamo, operation, break_call(explorer, call, arena), &body);
    struct flow_reply reply = {.status = status, .body = arena_copy(arena, buf_view(&body))};
    if (status != 200) dynamo_error(reply.body, arena, &reply.error, &message);
    buf_free(&body);
    if (explorer->broken && slice_equal(reply.error, SLICE("ValidationException")) && !explorer->faults++)
        test_failed(__FILE__, __LINE__, "broken beyond use: %.*s %.*s", SLICE_ARG(call),
                    SLICE_ARG(reply.body));
    if (explorer->shows)
        fprintf(stderr, "    %.*s %.*s\n    -> %d %.*s\n", SLICE_ARG(operation), SLICE_ARG(call), status,
                SLICE_ARG(reply.body));
    return reply;
}

/* ---- flows ---- */

static struct slice explored_header(const struct rest_call *call, struct slice name)
{
    const struct explored_flow *flow = call->context;
    if (!flow->header || !slice_equal_ignoring_case(slice_of(flow->header), name)) return SLICE_NONE;
    return slice_of(flow->value);
}

/* The request as a call, in the arena, and its row. */
static struct rest_call *request_make(struct explorer *explorer, const struct explored_flow *flow,
                                      struct arena *arena, const struct flow_row **row)
{
    struct rest_call *call = arena_new(arena, struct rest_call);
    const struct rest_route *route = NULL;
    const char *space = strchr(flow->request, ' '), *query = strchr(flow->request, '?');
    size_t path_len = query ? (size_t)(query - space - 1) : strlen(space + 1);
    *call = (struct rest_call){.method = {flow->request, (size_t)(space - flow->request)},
                               .path = {space + 1, path_len},
                               .query = query ? slice_of(query + 1) : SLICE(""),
                               .body = flow->body ? slice_of(flow->body) : SLICE_NONE,
                               .header = explored_header,
                               .arena = arena,
                               .context = (void *)(uintptr_t)flow};
    ensure(rest_route(explorer->routes, explorer->route_count, call, &route) == REST_FOUND);
    *row = explored_row(explorer, (size_t)(route - explorer->routes));
    return call;
}

/* The sweep of this name, or NULL when it is a request. */
static const struct flow_sweep *sweep_of(const struct explored_flow *flow)
{
    if (strncmp(flow->request, "SWEEP ", 6) != 0) return NULL;
    size_t i = 0;
    while (sweep_at(i) && strcmp(sweep_at(i)->name, flow->request + 6) != 0) i++;
    ensure(sweep_at(i));
    return sweep_at(i);
}

static void flow_begin_explored(struct explorer *explorer, const struct explored_flow *explored,
                                struct flow *flow, struct flow_start *start)
{
    const struct flow_sweep *sweep = sweep_of(explored);
    if (!sweep) start->request = request_make(explorer, explored, start->arena, &start->row);
    if (sweep)
        flow_begin_sweep(flow, start, sweep);
    else
        flow_begin(flow, start);
}

/* Brings the flow to where its track stands: it need not be run again from the start unless another branch
 * was tried meanwhile. */
static void flow_rebuild(struct explorer *explorer, unsigned number, const struct track *track)
{
    struct arena *arena = &explorer->flow_arenas[number];
    const struct event *events[DEPTH];
    unsigned count = 0;
    if (explorer->places[number] == track->place) return;
    flow_release(&explorer->flows[number]);
    arena_reset(arena);
    explorer->bodies[number].len = 0;
    process_enter(explorer, number, arena);
    explorer->memory = track->began_memory;
    struct flow_start start = {.world = &explorer->world,
                               .arena = arena,
                               .body = &explorer->bodies[number],
                               .seed = number * 100 + track->attempt + 1,
                               .serial = number,
                               .now_ms = track->began_ms};
    flow_begin_explored(explorer, &explorer->exploration->flows[number], &explorer->flows[number], &start);
    for (const struct event *event = track->last; event; event = event->before) events[count++] = event;
    while (count-- > 0) {
        explorer->memory = events[count]->memory;
        flow_next(&explorer->flows[number], events[count]->now_ms,
                  events[count]->has_reply ? &events[count]->reply : NULL);
    }
    explorer->places[number] = track->place;
}

/* The flow, which stands where its track does, gets what it waited for. */
static void event_add(struct explorer *explorer, struct point *point, unsigned number,
                      const struct flow_reply *reply, struct arena *arena)
{
    struct track *track = &point->tracks[number];
    struct event *event = arena_new(arena, struct event);
    *event = (struct event){
        .before = track->last, .memory = point->memory, .now_ms = point->now_ms, .has_reply = reply != NULL};
    if (reply) event->reply = *reply;
    track->last = event;
    process_enter(explorer, number, arena);
    explorer->memory = point->memory;
    flow_next(&explorer->flows[number], point->now_ms, reply ? &event->reply : NULL);
    point->memory = explorer->memory;
    explorer->places[number] = track->place = ++explorer->places_given;
}

static void track_answer(struct explorer *explorer, struct track *track, const struct flow *flow,
                         const struct point *point, struct arena *arena)
{
    track->answer = (struct explored_answer){.status = flow->status,
                                             .body = arena_copy(arena, buf_view(flow->body)),
                                             .event = point->events,
                                             .began = track->began,
                                             .called = track->called,
                                             .began_ms = track->began_ms,
                                             .now_ms = point->now_ms,
                                             .attempts = track->attempt + 1};
    if (explorer->shows)
        fprintf(stderr, "  answered %d %.*s\n", flow->status, SLICE_ARG(buf_view(flow->body)));
}

/* Brings the track up to date with what its flow wants now. A pause is passed at once: whatever others do
 * meanwhile, they can as well do before the call behind it. */
static void track_take(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    struct track *track = &point->tracks[number];
    struct flow *flow = &explorer->flows[number];
    while (flow->want == FLOW_PAUSE || flow->want == FLOW_PIECE || flow->want == FLOW_JOIN)
        event_add(explorer, point, number, NULL, arena);
    track->want = flow->want;
    track->writes_seen = point->writes;
    track->until_ms = flow->until_ms;
    if (flow->want == FLOW_CALL) {
        track->operation = arena_copy(arena, flow->operation);
        track->call = arena_copy(arena, flow->call);
    } else if (flow->want == FLOW_DONE) {
        track_answer(explorer, track, flow, point, arena);
    }
}

static void track_start(struct explorer *explorer, struct point *point, unsigned number, unsigned attempt,
                        struct arena *arena)
{
    struct track *track = &point->tracks[number];
    *track = (struct track){.attempt = attempt,
                            .began = point->events,
                            .began_ms = point->now_ms,
                            .began_memory = point->memory,
                            .place = ++explorer->places_given};
    flow_rebuild(explorer, number, track);
    track_take(explorer, point, number, arena);
}

static void track_give(struct explorer *explorer, struct point *point, unsigned number,
                       const struct flow_reply *reply, struct arena *arena)
{
    flow_rebuild(explorer, number, &point->tracks[number]);
    event_add(explorer, point, number, reply, arena);
    track_take(explorer, point, number, arena);
}

/* ---- choices: each makes of *point the next point ---- */

static struct flow_reply point_call(struct explorer *explorer, struct point *point, unsigned number,
                                    struct arena *arena)
{
    struct track *track = &point->tracks[number];
    if (!track->last) track->called = point->events;
    if (is_write(track->operation)) point->writes++;
    return make_call(explorer, track->operation, track->call, arena);
}

static bool may_go(const struct point *point, unsigned number)
{
    const struct track *track = &point->tracks[number];
    if (track->want == FLOW_DONE) return false;
    return track->want != FLOW_WATCH || point->writes > track->writes_seen ||
           point->now_ms >= track->until_ms;
}

static void choose_step(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    if (point->tracks[number].want == FLOW_CALL) {
        struct flow_reply reply = point_call(explorer, point, number, arena);
        track_give(explorer, point, number, &reply, arena);
    } else {
        track_give(explorer, point, number, NULL, arena);
    }
}

static void choose_crash(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    point->faults++;
    point_call(explorer, point, number, arena);
    track_start(explorer, point, number, point->tracks[number].attempt + 1, arena);
}

static void choose_retry(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    point->faults++;
    point_call(explorer, point, number, arena);
    struct flow_reply reply = point_call(explorer, point, number, arena);
    track_give(explorer, point, number, &reply, arena);
}

static void choose_copy(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    const struct track *track = &point->tracks[number];
    ensure(point->late_count < LATE);
    point->faults++;
    point->late[point->late_count++] = (struct late_call){track->operation, track->call};
    choose_step(explorer, point, number, arena);
}

static void choose_late(struct explorer *explorer, struct point *point, unsigned number, struct arena *arena)
{
    struct late_call late = point->late[number];
    point->late[number] = point->late[--point->late_count];
    if (is_write(late.operation)) point->writes++;
    make_call(explorer, late.operation, late.call, arena);
}

/* How far the clock may jump next; 0: not any more. */
static int64_t next_jump(const struct explorer *explorer, const struct point *point)
{
    const struct exploration *exploration = explorer->exploration;
    if (point->jumps == EXPLORED_JUMPS) return 0;
    bool has_own = exploration->jumps[0] || exploration->never_away;
    return point->jumps || has_own ? exploration->jumps[point->jumps] : AWAY_MS;
}

static void choose_jump(struct explorer *explorer, struct point *point)
{
    point->now_ms += next_jump(explorer, point);
    point->jumps++;
}

/* All watch in vain: the first of their moments comes. */
static void choose_time(struct point *point, unsigned count)
{
    int64_t first = INT64_MAX;
    for (unsigned i = 0; i < count; i++)
        if (point->tracks[i].want == FLOW_WATCH && point->tracks[i].until_ms < first)
            first = point->tracks[i].until_ms;
    ensure(first != INT64_MAX);
    point->now_ms = first;
}

/* ---- the search ---- */

static void walk(struct explorer *explorer, const struct point *point, uint64_t most);

/* How many schedules the next choice of this point may have: each choice gets an equal part of what is left, so the
 * schedules that are tried are spread over all there are, and none is tried twice. */
static uint64_t share_next(struct explorer *explorer, struct share *share)
{
    uint64_t rest = share->schedules % share->choices, part = share->schedules / share->choices;
    if (rest && random_below(&explorer->random, share->choices) < rest) part++;
    share->choices--;
    return part;
}

static void print_schedule(struct explorer *explorer)
{
    fprintf(stderr, "EXPLORE_WORLD=%u EXPLORE='%s:", explorer->world_number, explorer->exploration->name);
    for (unsigned i = 0; i < explorer->depth; i++)
        fprintf(stderr, "%s%s", i ? " " : "", explorer->choices[i]);
    fprintf(stderr, "': %s\n", explorer->fault);
}

static void check_leaf(struct explorer *explorer, const struct point *point)
{
    struct outcome outcome = {
        .explorer = explorer, .count = explorer->flow_count, .arena = &explorer->scratch};
    arena_reset(&explorer->scratch);
    for (unsigned i = 0; i < explorer->flow_count; i++) outcome.answers[i] = point->tracks[i].answer;
    explorer->schedules++;
    explorer->faulty = false;
    explorer->memory = NULL; /* checks look at what is there */
    explorer->memory_arena = NULL;
    explorer->exploration->check(&outcome);
    if (!explorer->faulty) return;
    explorer->faults++;
    if (!explorer->broken && explorer->faults <= SHOWN) print_schedule(explorer);
}

/* Tries one choice: "kind" and number name it. */
static void try_choice(struct explorer *explorer, const struct point *point, struct engine_snapshot *snapshot,
                       const char *kind, unsigned number)
{
    struct point next = *point;
    struct arena *arena = &explorer->levels[explorer->depth];
    char *name = explorer->choices[explorer->depth];
    struct share *share = &explorer->shares[explorer->depth];
    if (share->counts) {
        share->choices++;
        return;
    }
    uint64_t most = share_next(explorer, share), before = explorer->schedules;
    if (!most || explorer->needs_transactions || (explorer->stops && explorer->faults)) return;
    snprintf(name, sizeof explorer->choices[0], "%s%u", kind, number);
    if (explorer->replay) {
        size_t len = strlen(name);
        if (strncmp(explorer->replay, name, len) != 0 ||
            (explorer->replay[len] && explorer->replay[len] != ' '))
            return;
        explorer->replay += len + (explorer->replay[len] == ' ');
        fprintf(stderr, "  %s\n", name);
    }
    engine_snapshot_restore(explorer->engine, snapshot);
    explorer->now_ms = point->now_ms;
    arena_reset(arena);
    ensure(++explorer->depth < DEPTH);
    next.events++;
    switch (kind[0]) {
    case '\0': choose_step(explorer, &next, number, arena); break;
    case 'c': choose_crash(explorer, &next, number, arena); break;
    case 'r': choose_retry(explorer, &next, number, arena); break;
    case 'd': choose_copy(explorer, &next, number, arena); break;
    case 'l': choose_late(explorer, &next, number, arena); break;
    case 'j': choose_jump(explorer, &next); break;
    default: choose_time(&next, explorer->flow_count); break;
    }
    explorer->now_ms = next.now_ms;
    walk(explorer, &next, most);
    explorer->depth--;
    share->schedules -= explorer->schedules - before; /* what it did not need is for the others */
}

static void try_flow(struct explorer *explorer, const struct point *point, struct engine_snapshot *snapshot,
                     unsigned number)
{
    const struct exploration *exploration = explorer->exploration;
    bool fails = point->tracks[number].want == FLOW_CALL && point->faults < exploration->faults;
    bool writes = fails && is_write(point->tracks[number].operation);
    if (fails) try_choice(explorer, point, snapshot, "c", number);
    if (writes) try_choice(explorer, point, snapshot, "r", number);
    if (writes && !exploration->never_late) try_choice(explorer, point, snapshot, "d", number);
    try_choice(explorer, point, snapshot, "", number);
}

static bool is_end(const struct explorer *explorer, const struct point *point)
{
    for (unsigned i = 0; i < explorer->flow_count; i++)
        if (point->tracks[i].want != FLOW_DONE) return false;
    return point->late_count == 0;
}

/* Those behind which there are fewest first, so that the last ones get what these leave. */
static void try_choices(struct explorer *explorer, const struct point *point,
                        struct engine_snapshot *snapshot)
{
    bool goes = point->late_count > 0;
    for (unsigned i = 0; i < point->late_count; i++) try_choice(explorer, point, snapshot, "l", i);
    if (next_jump(explorer, point)) try_choice(explorer, point, snapshot, "j", point->jumps);
    for (unsigned i = 0; i < explorer->flow_count; i++) {
        if (!may_go(point, i)) continue;
        goes = true;
        try_flow(explorer, point, snapshot, i);
    }
    if (!goes && !next_jump(explorer, point)) try_choice(explorer, point, snapshot, "t", 0);
}

static void walk(struct explorer *explorer, const struct point *point, uint64_t most)
{
    if (is_end(explorer, point)) {
        check_leaf(explorer, point);
        return;
    }
    struct engine_snapshot *snapshot = engine_snapshot_take(explorer->engine);
    struct share *share = &explorer->shares[explorer->depth];
    *share = (struct share){.counts = true, .schedules = most};
    try_choices(explorer, point, snapshot);
    share->counts = false;
    try_choices(explorer, point, snapshot);
    engine_snapshot_free(snapshot);
}

/* ---- running ---- */

static struct slice run_to_end(struct explorer *explorer, const struct explored_flow *request,
                               struct arena *arena, int *status)
{
    struct buf body = {0};
    struct flow flow;
    struct flow_start start = {.world = &explorer->world,
                               .arena = arena,
                               .body = &body,
                               .seed = 7,
                               .serial = 99,
                               .now_ms = explorer->now_ms};
    flow_begin_explored(explorer, request, &flow, &start);
    while (flow.want != FLOW_DONE) {
        if (flow.want == FLOW_CALL) {
            struct flow_reply reply = make_call(explorer, flow.operation, flow.call, arena);
            flow_next(&flow, explorer->now_ms, &reply);
        } else {
            if (flow.want == FLOW_WATCH && flow.until_ms > explorer->now_ms) explorer->now_ms = flow.until_ms;
            flow_next(&flow, explorer->now_ms, NULL);
        }
    }
    struct slice text = arena_copy(arena, buf_view(&body));
    *status = flow.status;
    buf_free(&body);
    return text;
}

static void prepare(struct explorer *explorer)
{
    const struct exploration *exploration = explorer->exploration;
    int status;
    explorer->process = OF_ALL;
    explorer->memory_arena = explorer->world_number == 2 ? NULL : &explorer->root;
    for (unsigned i = 0; i < EXPLORED_BEFORE && exploration->before[i].request; i++) {
        struct slice reply = run_to_end(explorer, &exploration->before[i], &explorer->scratch, &status);
        if (status >= 300) test_failed(__FILE__, __LINE__, "%s: %.*s", exploration->name, SLICE_ARG(reply));
    }
}

static void explorer_run(struct explorer *explorer, uint64_t most)
{
    explorer->now_ms += explorer->exploration->later_ms;
    struct point root = {.now_ms = explorer->now_ms, .memory = explorer->memory};
    for (unsigned i = 0; i < explorer->flow_count; i++) track_start(explorer, &root, i, 0, &explorer->root);
    random_seed(&explorer->random, 7);
    walk(explorer, &root, most);
}

static const char *replay_of(const struct exploration *exploration)
{
    const char *wanted = getenv("EXPLORE");
    size_t len = strlen(exploration->name);
    return wanted && strncmp(wanted, exploration->name, len) == 0 && wanted[len] == ':' ? wanted + len + 1
                                                                                        : NULL;
}

/* It goes back in time, which only a database in memory can. */
static bool is_elsewhere(void)
{
    return getenv("PATTERNS_ON") != NULL;
}

static uint64_t schedules_in(unsigned world_number)
{
    const char *wanted = getenv("EXPLORE_MOST"), *worlds = getenv("EXPLORE_WORLDS");
    uint64_t most = wanted ? strtoull(wanted, NULL, 10) : USUAL_MOST;
    bool all = !world_number || getenv("EXPLORE_WORLD") || (worlds && strcmp(worlds, "all") == 0);
    return all || most < ELSEWHERE_MOST ? most : ELSEWHERE_MOST;
}

static uint64_t all_schedules;

static void print_all(void)
{
    printf("explored %llu schedules in all\n", (unsigned long long)all_schedules);
}

static void explore_in(const struct exploration *exploration, unsigned world_number)
{
    static struct explorer explorer;
    explorer_open(&explorer, exploration, world_number);
    prepare(&explorer);
    explorer.replay = replay_of(exploration);
    explorer.shows = explorer.replay != NULL;
    uint64_t most = explorer.replay ? UINT64_MAX : schedules_in(world_number);
    if (!explorer.needs_transactions) explorer_run(&explorer, most);
    printf("explored %s in world %u: %llu schedules%s\n", exploration->name, world_number,
           (unsigned long long)explorer.schedules, explorer.needs_transactions ? ", needs transactions" : "");
    if (!all_schedules) atexit(print_all);
    all_schedules += explorer.schedules;
    if (explorer.faults && !explorer.needs_transactions)
        test_failed(__FILE__, __LINE__, "%s: %llu of %llu schedules break an invariant in world %u",
                    exploration->name, (unsigned long long)explorer.faults,
                    (unsigned long long)explorer.schedules, world_number);
    if (!explorer.schedules && !explorer.needs_transactions)
        test_failed(__FILE__, __LINE__, "%s: no schedule", exploration->name);
    explorer_close(&explorer);
}

void explore(const struct exploration *exploration)
{
    const char *only = getenv("EXPLORE_WORLD");
    if (is_elsewhere()) return;
    for (unsigned i = 0; i < WORLDS; i++)
        if (!only || (unsigned)atoi(only) == i) explore_in(exploration, i);
}

void explore_broken(const struct exploration *exploration, const char *text, const char *instead)
{
    static struct explorer explorer;
    if (is_elsewhere() || getenv("EXPLORE_QUICKLY")) return;
    explorer_open(&explorer, exploration, 0);
    prepare(&explorer);
    explorer.broken = text;
    explorer.instead = instead;
    explorer.stops = true;
    explorer_run(&explorer, BROKEN_MOST);
    if (!explorer.faults)
        test_failed(__FILE__, __LINE__, "%s: %llu schedules do not miss %s", exploration->name,
                    (unsigned long long)explorer.schedules, text);
    explorer_close(&explorer);
}

/* ---- for checks ---- */

void outcome_fault(struct outcome *outcome, const char *format, ...)
{
    va_list args;
    if (outcome->explorer->faulty) return;
    outcome->explorer->faulty = true;
    va_start(args, format);
    vsnprintf(outcome->explorer->fault, sizeof outcome->explorer->fault, format, args);
    va_end(args);
}

int64_t outcome_int(struct outcome *outcome, unsigned flow, const char *member)
{
    int64_t value;
    struct slice text = raw_text(outcome->arena,
                                 raw_member(outcome->arena, outcome->answers[flow].body, member));
    return text.data && raw_int(text, &value) ? value : INT64_MIN;
}

struct slice outcome_text(struct outcome *outcome, unsigned flow, const char *member)
{
    return raw_text(outcome->arena, raw_member(outcome->arena, outcome->answers[flow].body, member));
}

void outcome_jump(struct outcome *outcome, int64_t ms)
{
    outcome->explorer->now_ms += ms;
}

struct slice outcome_ask(struct outcome *outcome, const char *request, const char *body)
{
    int status;
    const char *broken = outcome->explorer->broken;
    outcome->explorer->broken = NULL;
    struct slice text = run_to_end(outcome->explorer,
                                   &(struct explored_flow){.request = request, .body = body}, outcome->arena,
                                   &status);
    outcome->explorer->broken = broken;
    return text;
}

struct slice outcome_call(struct outcome *outcome, const char *operation, const char *request)
{
    const char *broken = outcome->explorer->broken;
    outcome->explorer->broken = NULL;
    struct slice text =
        make_call(outcome->explorer, slice_of(operation), slice_of(request), outcome->arena).body;
    outcome->explorer->broken = broken;
    return text;
}
