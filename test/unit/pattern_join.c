/* Flows that do the same thing together: who leads, who follows, and that nothing is lost or doubled. */
#include "pattern/join.h"

#include <pthread.h>
#include <semaphore.h>

#include "unit/pattern_fixture.h"

/* ---- parties ---- */

static void seat_make(struct seat *seat, struct flow *flow, struct arena *arena, uint64_t topic,
                      size_t percent)
{
    *flow = (struct flow){.arena = arena, .topic = topic, .share = {.bytes = percent * FLOW_ROUND_BYTES / 100}};
    *seat = (struct seat){.flow = flow};
}

TEST(join_leads_rounds_in_order)
{
    enum { SEATS = 6 };
    static const size_t percents[SEATS] = {1, 50, 40, 10, 1, 90};
    struct joins joins;
    struct arena arena = {0};
    struct flow flows[SEATS];
    struct seat seats[SEATS], *next;
    joins_open(&joins);
    for (int i = 0; i < SEATS; i++) seat_make(&seats[i], &flows[i], &arena, 7, percents[i]);
    for (int i = 0; i < SEATS; i++) CHECK(joins_begin(&joins, &seats[i]) == (i == 0));
    CHECK(joins_end(&joins, &seats[0], 0, &next) == NULL); /* it led alone */
    CHECK(next == &seats[1]);
    CHECK_INT((int64_t)flows[1].follower_count, 2); /* 50, 40 and 10 make 100 */
    CHECK(flows[1].followers[0] == &flows[2] && flows[1].followers[1] == &flows[3]);
    struct seat *followers = joins_end(&joins, &seats[1], 503, &next);
    CHECK(followers == &seats[2] && followers->next == &seats[3] && !seats[3].next);
    CHECK(!flows[2].leads && flows[3].led_status == 503);
    CHECK(next == &seats[4] && flows[4].follower_count == 1 && flows[4].leads);
    CHECK(joins_end(&joins, &seats[4], 0, &next) == &seats[5]);
    CHECK(!next && !seats[5].party);
    seat_make(&seats[0], &flows[0], &arena, 7, 1);
    seat_make(&seats[1], &flows[1], &arena, 8, 1);
    CHECK(joins_begin(&joins, &seats[0]) &&
          joins_begin(&joins, &seats[1])); /* another topic, another party */
    for (int i = 0; i < 2; i++) joins_end(&joins, &seats[i], 0, &next);
    joins_close(&joins);
    arena_free(&arena);
}

/* Who is in a round, and what it holds, does not depend on who leads it. */
TEST(join_is_led_by_the_thread_that_ends_the_round_before)
{
    enum { SEATS = 6 };
    static const int threads[SEATS] = {1, 2, 2, 1, 2, 1};
    static const int percents[SEATS] = {1, 30, 30, 30, 30, 30};
    struct joins joins;
    struct arena arena = {0};
    struct flow flows[SEATS];
    struct seat seats[SEATS], *next;
    joins_open(&joins);
    for (int i = 0; i < SEATS; i++) {
        seat_make(&seats[i], &flows[i], &arena, 7, (size_t)percents[i]);
        seats[i].thread = &threads[threads[i]];
        joins_begin(&joins, &seats[i]);
    }
    joins_end(&joins, &seats[0], 0, &next);
    CHECK(next == &seats[3] && flows[3].leads && flows[3].follower_count == 2);
    CHECK(flows[3].followers[0] == &flows[1] && flows[3].followers[1] == &flows[2]);
    CHECK(joins_end(&joins, &seats[3], 0, &next) == &seats[1]);
    CHECK(next == &seats[5] && joins_end(&joins, &seats[5], 0, &next) == &seats[4] && !next);
    joins_close(&joins);
    arena_free(&arena);
}

/* ---- appends that are served beside each other ---- */

#define CALLERS 8
#define CALLS   150

struct served {
    struct rest_call call;
    struct arena arena;
    struct buf reply;
    sem_t done;
};

static void served_done(struct rest_call *call)
{
    sem_post(&((struct served *)call)->done);
}

static void serve(struct patterns *patterns, struct served *served, const char *request, const char *body)
{
    const char *space = strchr(request, ' ');
    *served = (struct served){.call = {.method = {request, (size_t)(space - request)},
                                       .path = slice_of(space + 1),
                                       .query = SLICE(""),
                                       .body = slice_of(body),
                                       .done = served_done}};
    served->call.arena = &served->arena;
    served->call.reply = &served->reply;
    ensure(sem_init(&served->done, 0, 0) == 0);
    CHECK(pattern_serve(patterns->pattern, &served->call));
}

static int await(struct served *served)
{
    while (sem_wait(&served->done) != 0) {
        /* a signal's handler ran */
    }
    return served->call.status;
}

static void served_free(struct served *served)
{
    sem_destroy(&served->done);
    arena_free(&served->arena);
    buf_free(&served->reply);
}

static int64_t sequence_of(struct arena *arena, struct slice reply)
{
    int64_t value = 0;
    raw_int(raw_text(arena, raw_member(arena, reply, "sequence")), &value);
    return value;
}

struct caller {
    struct patterns *patterns;
    int number;
    _Atomic unsigned char *seen; /* of each sequence number */
};

struct crowd {
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
};

static void crowd_begin(struct crowd *crowd, struct patterns *patterns, _Atomic unsigned char *seen,
                        void *(*calls)(void *caller))
{
    for (int i = 0; i < CALLERS; i++) {
        crowd->callers[i] = (struct caller){patterns, i, seen};
        ensure(pthread_create(&crowd->threads[i], NULL, calls, &crowd->callers[i]) == 0);
    }
}

static void crowd_end(struct crowd *crowd)
{
    for (int i = 0; i < CALLERS; i++) pthread_join(crowd->threads[i], NULL);
}

/* Its own events come back in the order in which it sent them; one in ten is sent twice. */
static void *append_many(void *argument)
{
    const struct caller *caller = argument;
    char body[120];
    int64_t last = 0;
    for (int i = 0; i < CALLS; i++) {
        struct served first, second;
        bool twice = i % 10 == 0;
        snprintf(body, sizeof body, "{\"key\":\"k%d\",\"data\":%d,\"token\":\"%d/%d\"}", caller->number, i,
                 caller->number, i);
        serve(caller->patterns, &first, "POST /v1/logs/l", body);
        if (twice) serve(caller->patterns, &second, "POST /v1/logs/l", body);
        CHECK_INT(await(&first), 201);
        int64_t sequence = sequence_of(&first.arena, buf_view(&first.reply));
        CHECK(sequence > last && sequence <= CALLERS * CALLS);
        last = sequence;
        if (sequence > 0 && sequence <= CALLERS * CALLS) CHECK_INT(caller->seen[sequence - 1]++, 0);
        if (twice) {
            CHECK_INT(await(&second), 201);
            CHECK_INT(sequence_of(&second.arena, buf_view(&second.reply)), sequence);
            served_free(&second);
        }
        served_free(&first);
    }
    return NULL;
}

TEST(join_appends_of_many_have_no_gap)
{
    static _Atomic unsigned char seen[CALLERS * CALLS];
    struct patterns patterns;
    struct crowd crowd;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    memset(seen, 0, sizeof seen);
    crowd_begin(&crowd, &patterns, seen, append_many);
    crowd_end(&crowd);
    for (int i = 0; i < CALLERS * CALLS; i++) CHECK_INT(seen[i], 1);
    CHECK_INT(sequence_of(&patterns.arena, asks(&patterns, "GET /v1/logs/l/partitions/0", NULL)),
              CALLERS * CALLS);
    patterns_close(&patterns);
}

#define LISTS        40 /* of each caller */
#define LIST_EVENTS  30
#define LIST_NUMBERS (CALLERS * LISTS * LIST_EVENTS + LISTS)

/* A list of events, every other one with tokens. */
static void list_make(struct buf *body, const struct caller *caller, int number)
{
    buf_text(body, "{\"events\":[");
    for (int i = 0; i < LIST_EVENTS; i++) {
        buf_printf(body, "%s{\"key\":\"k%d\",\"data\":%d", i ? "," : "", caller->number, i);
        if (number % 2) buf_printf(body, ",\"token\":\"%d/%d/%d\"", caller->number, number, i);
        buf_byte(body, '}');
    }
    buf_text(body, "]}");
    buf_byte(body, 0);
}

/* The numbers of a list rise, and each is given once. */
static void list_check(const struct caller *caller, struct served *served)
{
    struct raw_walk walk;
    struct slice event;
    int64_t last = 0;
    raw_walk_begin(&walk, &served->arena, raw_member(&served->arena, buf_view(&served->reply), "events"));
    while (raw_walk_next(&walk, NULL, &event)) {
        int64_t sequence = 0;
        raw_int(raw_member(&served->arena, event, "sequence"), &sequence);
        CHECK(sequence > last && sequence <= LIST_NUMBERS);
        last = sequence;
        if (sequence > 0 && sequence <= LIST_NUMBERS) CHECK_INT(caller->seen[sequence - 1]++, 0);
    }
}

/* Two at a time, so that more wait than one round holds. One with tokens is sent again now and then. */
static void *append_lists(void *argument)
{
    const struct caller *caller = argument;
    struct buf bodies[2] = {0};
    for (int i = 0; i < LISTS; i += 2) {
        struct served served[2];
        for (int k = 0; k < 2; k++) {
            bodies[k].len = 0;
            list_make(&bodies[k], caller, i + k);
            serve(caller->patterns, &served[k], "POST /v1/logs/l", bodies[k].data);
        }
        for (int k = 0; k < 2; k++) {
            CHECK_INT(await(&served[k]), 201);
            list_check(caller, &served[k]);
            served_free(&served[k]);
        }
        if (i % 5) continue;
        serve(caller->patterns, &served[1], "POST /v1/logs/l", bodies[1].data);
        CHECK_INT(await(&served[1]), 201);
        CHECK(slice_contains(buf_view(&served[1].reply), SLICE("\"repeated\":true")));
        served_free(&served[1]);
    }
    for (int k = 0; k < 2; k++) buf_free(&bodies[k]);
    return NULL;
}

/* Rounds of one process, while somebody else appends, too. */
TEST(join_rounds_that_overlap_have_no_gap)
{
    static _Atomic unsigned char seen[LIST_NUMBERS];
    struct patterns patterns;
    struct crowd crowd;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/logs/l", "{\"partitions\":1}");
    memset(seen, 0, sizeof seen);
    crowd_begin(&crowd, &patterns, seen, append_lists);
    for (int i = 0; i < LISTS; i++) {
        struct slice reply = asks(&patterns, "POST /v1/logs/l", "{\"key\":\"alone\"}");
        /* On a remote database who is alone may lose many races in a row: it is told to try again. */
        while (patterns.call.status == 503) reply = asks(&patterns, "POST /v1/logs/l", "{\"key\":\"alone\"}");
        int64_t sequence = sequence_of(&patterns.arena, reply);
        CHECK(sequence > 0 && sequence <= LIST_NUMBERS);
        if (sequence > 0 && sequence <= LIST_NUMBERS) CHECK_INT(seen[sequence - 1]++, 0);
    }
    crowd_end(&crowd);
    for (int i = 0; i < LIST_NUMBERS; i++) CHECK_INT(seen[i], 1);
    patterns_close(&patterns);
}

/* A reader that waits is woken by an append; one that still waits when all ends is answered. */
TEST(join_appends_wake_readers)
{
    struct patterns patterns;
    struct served reader, append;
    char body[100];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/logs/l", "{\"partitions\":40}");
    for (int i = 0; i < 10; i++) {
        serve(&patterns, &reader, "POST /v1/logs/l/consumers/g/read", "{\"owner\":\"o\",\"wait\":\"60s\"}");
        snprintf(body, sizeof body, "{\"key\":\"k%d\"}", i);
        serve(&patterns, &append, "POST /v1/logs/l", body);
        CHECK_INT(await(&append), 201);
        CHECK_INT(await(&reader), 200);
        served_free(&append);
        struct slice reply = buf_view(&reader.reply);
        struct slice partition = raw_text(&reader.arena, raw_member(&reader.arena, reply, "partition"));
        snprintf(body, sizeof body, "{\"partition\":\"%.*s\",\"fence\":1,\"sequence\":1}",
                 SLICE_ARG(partition));
        serve(&patterns, &append, "POST /v1/logs/l/consumers/g/ack", body);
        CHECK_INT(await(&append), 200);
        served_free(&append);
        served_free(&reader);
    }
    serve(&patterns, &reader, "POST /v1/logs/l/consumers/g/read", "{\"owner\":\"o\",\"wait\":\"60s\"}");
    pattern_stop(patterns.pattern);
    CHECK_INT(await(&reader), 503);
    served_free(&reader);
    patterns_close(&patterns);
}

/* ---- events of a period that are added beside each other ---- */

static _Atomic int known; /* answers 200: it was there before */

static void *add_many(void *argument)
{
    const struct caller *caller = argument;
    char body[80];
    for (int i = 0; i < CALLS; i++) {
        struct served first, second;
        bool twice = i % 10 == 0;
        snprintf(body, sizeof body, "{\"id\":\"%d/%d\",\"data\":1}", caller->number, i);
        serve(caller->patterns, &first, "POST /v1/periods/p", twice || i % 2 ? body : "{\"data\":1}");
        if (twice) serve(caller->patterns, &second, "POST /v1/periods/p", body);
        CHECK(await(&first) / 100 == 2);
        known += first.call.status == 200;
        served_free(&first);
        if (!twice) continue;
        CHECK(await(&second) / 100 == 2);
        known += second.call.status == 200;
        served_free(&second);
    }
    return NULL;
}

TEST(join_adds_of_many_are_there_once)
{
    struct patterns patterns;
    struct crowd crowd;
    char done[60];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}");
    known = 0;
    crowd_begin(&crowd, &patterns, NULL, add_many);
    crowd_end(&crowd);
    CHECK_INT(known, CALLERS * CALLS / 10);
    __atomic_add_fetch(&patterns.now_ms, 3600000, __ATOMIC_SEQ_CST); /* others look at the clock */
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    snprintf(done, sizeof done, "\"state\":\"DONE\",\"count\":%d,", CALLERS * CALLS);
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/last", NULL), slice_of(done)));
    patterns_close(&patterns);
}
