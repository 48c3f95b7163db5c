/* What an endpoint is: who counts as ScyllaDB Alternator, who is asked and when, and what becomes of the calls. */
#include "dynamo/internal.h"
#include "unit/dynamo_scripted.h"
#include "unit/test.h"

#define FINE                                                                                                 \
    {                                                                                                        \
        DEED_REPLY, 200, NULL, "{\"fine\":true}"                                                             \
    }
#define NODES                                                                                                \
    {                                                                                                        \
        DEED_REPLY, 200, NULL, "[\"10.0.0.1\",\"10.0.0.2\"]"                                                 \
    }
#define BUSY                                                                                                 \
    {                                                                                                        \
        DEED_REPLY, 503, NULL, "busy"                                                                        \
    }
#define STEPS(...)                                                                                           \
    (const struct scripted_step[]){__VA_ARGS__},                                                             \
        sizeof((const struct scripted_step[]){__VA_ARGS__}) / sizeof(struct scripted_step)

TEST(a_list_of_nodes_is_strict)
{
    static const char *const lists[] = {"[\"10.0.0.1\"]", " [ \"::1\" , \"node.example\" ]\n"},
                             *const others[] = {"",
                                                "[]",
                                                "{}",
                                                "[1]",
                                                "[\"\"]",
                                                "[\"a\",1]",
                                                "[\"a\",null]",
                                                "[[\"a\"]]",
                                                "[\"a\"",
                                                "[\"a\",]",
                                                "[\"a\"]x",
                                                "[\"a\"][]",
                                                "\"a\"",
                                                "{\"nodes\":[\"a\"]}",
                                                "healthy: dynamodb.us-east-1.amazonaws.com ",
                                                "<html>[\"a\"]</html>"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        CHECK(kind_is_alternator(200, slice_of(lists[i]), &arena));
        CHECK(!kind_is_alternator(404, slice_of(lists[i]), &arena));
        CHECK(!kind_is_alternator(204, slice_of(lists[i]), &arena));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (kind_is_alternator(200, slice_of(others[i]), &arena))
            test_failed(__FILE__, __LINE__, "is taken for a list of nodes: %s", others[i]);
    arena_free(&arena);
}

/* ---- calls ---- */

static _Atomic unsigned told;

static void count_told(void)
{
    told++;
}

struct place {
    struct scripted scripted;
    struct dynamo *dynamo;
    struct buf reply;
};

static void place_open(struct place *place, const struct scripted_step *steps, unsigned count)
{
    char error[700] = "";
    *place = (struct place){0};
    told = 0;
    scripted_start(&place->scripted, steps, count);
    place->dynamo = dynamo_open(place->scripted.url, &(struct dynamo_options){.on_alternator = count_told},
                                error, sizeof error);
    if (!place->dynamo) test_failed(__FILE__, __LINE__, "%s", error);
}

static void place_close(struct place *place)
{
    dynamo_close(place->dynamo);
    scripted_stop(&place->scripted);
    buf_free(&place->reply);
}

static int transact(struct place *place)
{
    place->reply.len = 0;
    return dynamo_call_wait(place->dynamo, &(struct dynamo_call){.name = SLICE("GetItem"),
                                                                 .request = SLICE("{}"),
                                                                 .needs_transactions = true,
                                                                 .reply = &place->reply});
}

static bool reply_has(const struct place *place, const char *text)
{
    return slice_contains(buf_view(&place->reply), slice_of(text));
}

TEST(what_needs_transactions_is_not_sent_to_alternator)
{
    struct place place;
    place_open(&place, STEPS(NODES, FINE));
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_UNKNOWN);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(transact(&place), 400);
        CHECK(reply_has(&place, DYNAMO_NO_TRANSACTIONS) && reply_has(&place, "ScyllaDB Alternator"));
        CHECK_INT(place.scripted.requests, 1); /* and it is asked once */
    }
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_ALTERNATOR);
    CHECK_INT(told, 1);
    place_close(&place);
    CHECK(strstr(place.scripted.last_request, "GET /localnodes HTTP/1.1\r\n"));
    CHECK(!strstr(place.scripted.last_request, "Authorization"));
}

TEST(what_needs_none_does_not_ask)
{
    struct place place;
    place_open(&place, STEPS(FINE));
    CHECK_INT(dynamo_call(place.dynamo, SLICE("TransactWriteItems"), SLICE("{}"), &place.reply), 200);
    CHECK_INT(place.scripted.requests, 1);
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_UNKNOWN);
    place_close(&place);
}

TEST(others_get_the_call_and_are_asked_once)
{
    struct place place;
    place_open(&place, STEPS({DEED_REPLY, 400, NULL, "{\"__type\":\"MissingAuthenticationToken\"}"}, FINE));
    CHECK_INT(transact(&place), 200);
    CHECK(reply_has(&place, "fine"));
    CHECK_INT(transact(&place), 200);
    CHECK_INT(place.scripted.requests, 3);
    CHECK_INT(dynamo_kind_ask(place.dynamo), DYNAMO_KIND_USUAL);
    CHECK_INT(place.scripted.requests, 3);
    CHECK_INT(told, 0);
    place_close(&place);
}

TEST(who_cannot_tell_now_is_asked_again)
{
    struct place place;
    place_open(&place, STEPS(BUSY, FINE, NODES));
    CHECK_INT(transact(&place), 200);
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_UNKNOWN);
    CHECK_INT(transact(&place), 400);
    CHECK(reply_has(&place, DYNAMO_NO_TRANSACTIONS));
    CHECK_INT(place.scripted.requests, 3);
    place_close(&place);
}

TEST(who_never_tells_is_not_asked_for_ever)
{
    struct place place;
    place_open(&place, STEPS({DEED_CLOSE, 0, NULL, NULL}, FINE, BUSY, FINE, BUSY, FINE));
    for (int i = 0; i < 5; i++) CHECK_INT(transact(&place), 200);
    CHECK_INT(place.scripted.requests, 3 + 5);
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_USUAL);
    place_close(&place);
}

TEST(nobody_there_is_nobody_known)
{
    struct place place;
    place_open(&place, STEPS(FINE));
    scripted_stop(&place.scripted); /* a port that nobody has */
    CHECK_INT(dynamo_kind_ask(place.dynamo), DYNAMO_KIND_UNKNOWN);
    CHECK_INT(transact(&place), 0);
    CHECK(reply_has(&place, "NoReplyException") && reply_has(&place, "(3 attempts)"));
    CHECK_INT(dynamo_kind(place.dynamo), DYNAMO_KIND_UNKNOWN);
    dynamo_close(place.dynamo);
    buf_free(&place.reply);
}

TEST(asked_at_the_start)
{
    struct place place;
    place_open(&place, STEPS(NODES, FINE));
    CHECK_INT(dynamo_kind_ask(place.dynamo), DYNAMO_KIND_ALTERNATOR);
    CHECK_INT(dynamo_kind_ask(place.dynamo), DYNAMO_KIND_ALTERNATOR);
    CHECK_INT(place.scripted.requests, 1);
    CHECK_INT(told, 1);
    CHECK_INT(transact(&place), 400);
    CHECK_INT(place.scripted.requests, 1);
    place.reply.len = 0; /* what needs no transaction goes there */
    CHECK_INT(dynamo_call(place.dynamo, SLICE("GetItem"), SLICE("{}"), &place.reply), 200);
    place_close(&place);
}
