/* Which node of a cluster gets a call, what is known of tables there, and when the list is asked for again. */
#include <stdio.h>

#include "dynamo/remote.h"
#include "unit/dynamo_scripted.h"
#include "unit/test.h"

#define KEYS 300

/* A door of which only the nodes are used. */
struct fixture {
    struct remote remote;
    struct arena arena;
};

static void fixture_open(struct fixture *fixture, const char *url, const char *nodes)
{
    char error[200];
    *fixture = (struct fixture){0};
    pthread_mutex_init(&fixture->remote.lock, NULL);
    CHECK(endpoint_parse(url, &fixture->arena, &fixture->remote.endpoint, error, sizeof error));
    nodes_take(&fixture->remote, slice_of(nodes));
}

static void fixture_close(struct fixture *fixture)
{
    nodes_free(&fixture->remote);
    arena_free(&fixture->arena);
    pthread_mutex_destroy(&fixture->remote.lock);
}

static struct remote_call choose(struct fixture *fixture, struct dynamo_call *call, uint64_t key)
{
    call->arena = &fixture->arena;
    struct remote_call begun = {.call = call, .remote = &fixture->remote, .key = key, .has_key = true};
    nodes_choose(&begun);
    return begun;
}

TEST(nodes_have_keys_of_their_own_and_give_them_to_the_next)
{
    struct fixture fixture;
    struct dynamo_call call = {0};
    const char *before[KEYS];
    unsigned counts[3] = {0}, moved = 0;
    fixture_open(&fixture, "http://127.0.0.1:8000/", "[\"10.0.0.1\",\"10.0.0.2\",\"10.0.0.3\"]");
    for (uint64_t key = 0; key < KEYS; key++) {
        before[key] = choose(&fixture, &call, key).node_host;
        counts[before[key][strlen("10.0.0.")] - '1']++;
        CHECK(strcmp(before[key], choose(&fixture, &call, key).node_host) == 0);
    }
    for (int i = 0; i < 3; i++) CHECK(counts[i] > KEYS / 6);
    struct remote_call failed = choose(&fixture, &call, 0);
    CHECK(nodes_note(&failed, false));
    for (uint64_t key = 0; key < KEYS; key++) {
        const char *now = choose(&fixture, &call, key).node_host;
        bool was_there = strcmp(before[key], failed.node_host) == 0;
        CHECK(strcmp(now, failed.node_host) != 0);
        CHECK(was_there || strcmp(now, before[key]) == 0);
        moved += was_there;
    }
    CHECK(moved > 0);
    nodes_take(&fixture.remote, SLICE("[\"10.0.0.3\",\"10.0.0.2\",\"10.0.0.1\"]")); /* it is still gone */
    CHECK(strcmp(choose(&fixture, &call, 0).node_host, failed.node_host) != 0);
    CHECK(!nodes_note(&failed, true)); /* and is back */
    CHECK(strcmp(choose(&fixture, &call, 0).node_host, failed.node_host) == 0);
    fixture_close(&fixture);
}

TEST(nodes_all_gone_leave_the_endpoint)
{
    struct fixture fixture;
    struct dynamo_call call = {0};
    fixture_open(&fixture, "http://[::1]:8000/some/path", "[\"10.0.0.1\",\"fe80::2\"]");
    for (int i = 0; i < 2; i++) {
        struct remote_call chosen = choose(&fixture, &call, 7);
        bool is_first = strcmp(chosen.node_host, "10.0.0.1:8000") == 0;
        CHECK(is_first || strcmp(chosen.node_host, "[fe80::2]:8000") == 0);
        CHECK(strcmp(chosen.node_url,
                     is_first ? "http://10.0.0.1:8000/some/path" : "http://[fe80::2]:8000/some/path") == 0);
        nodes_note(&chosen, false);
    }
    CHECK(!choose(&fixture, &call, 7).node_url);
    fixture_close(&fixture);
}

TEST(nodes_without_a_choice)
{
    static const char *const lists[] = {"[\"10.0.0.1\"]",  "[]", "{}", "", "[\"10.0.0.1\", 7",
                                        "[7,\"10.0.0.1\"]"};
    struct dynamo_call call = {0};
    struct fixture fixture;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        fixture_open(&fixture, "http://127.0.0.1:8000/", lists[i]);
        CHECK(!choose(&fixture, &call, 7).node_url);
        fixture_close(&fixture);
    }
    fixture_open(&fixture, "https://127.0.0.1:8000/", "[\"10.0.0.1\",\"10.0.0.2\"]"); /* their certificate */
    CHECK(!choose(&fixture, &call, 7).node_url);
    fixture_close(&fixture);
}

/* ---- through a door ---- */

#define NODES                                                                                                \
    {                                                                                                        \
        DEED_REPLY, 200, NULL, "[\"127.0.0.1\",\"127.0.0.1\"]"                                               \
    }
#define TABLE                                                                                                     \
    {                                                                                                             \
        DEED_REPLY, 200, NULL,                                                                                    \
            "{\"Table\":{\"TableArn\":\"arn:t\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}]}}" \
    }
#define FINE                                                                                                 \
    {                                                                                                        \
        DEED_REPLY, 200, NULL, "{\"fine\":1}"                                                                \
    }
#define STEPS(...)                                                                                           \
    (const struct scripted_step[]){__VA_ARGS__},                                                             \
        sizeof((const struct scripted_step[]){__VA_ARGS__}) / sizeof(struct scripted_step)

static struct dynamo *door(struct scripted *scripted, int64_t every_ms)
{
    char error[700] = "";
    struct dynamo *dynamo = dynamo_open(
        scripted->url,
        &(struct dynamo_options){.nodes_every_ms = every_ms, .prefix = "ours-", .in_flight = 1}, error,
        sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "%s", error);
    return dynamo;
}

static int put(struct dynamo *dynamo, const char *table, struct buf *reply)
{
    char request[200];
    reply->len = 0;
    snprintf(request, sizeof request, "{\"TableName\":\"%s\",\"Item\":{\"k\":{\"S\":\"a\"}}}", table);
    return dynamo_call(dynamo, SLICE("PutItem"), slice_of(request), reply);
}

TEST(nodes_are_asked_for_again)
{
    struct scripted scripted;
    struct buf reply = {0};
    scripted_start(&scripted, STEPS(NODES, FINE));
    struct dynamo *dynamo = door(&scripted, 1);
    CHECK_INT(dynamo_kind_ask(dynamo), DYNAMO_KIND_ALTERNATOR);
    unsigned calls = 0; /* each asks for the table, too */
    while (scripted.requests <= 1 + 2 * calls && calls < 100000) {
        CHECK_INT(put(dynamo, "theirs", &reply), 200);
        calls++;
    }
    CHECK(scripted.requests > 1 + 2 * calls);
    dynamo_close(dynamo);
    scripted_stop(&scripted);
    buf_free(&reply);
}

TEST(tables_of_others_are_asked_for_once)
{
    struct scripted scripted;
    struct buf reply = {0};
    scripted_start(&scripted, STEPS(NODES, TABLE, FINE));
    struct dynamo *dynamo = door(&scripted, 0);
    dynamo_kind_ask(dynamo);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(put(dynamo, "theirs", &reply), 200);
        CHECK_INT(scripted.requests, 3 + i);
    }
    dynamo_close(dynamo);
    scripted_stop(&scripted);
    buf_free(&reply);
}

TEST(tables_of_ours_are_isolated_or_refused)
{
    static const struct {
        const char *tags;
        bool is_taken;
    } rows[] = {
        {"{\"Tags\":[{\"Key\":\"a\",\"Value\":\"b\"},{\"Key\":\"system:write_isolation\",\"Value\":\"always\"}]}",
         true},
        {"{\"Tags\":[{\"Key\":\"system:write_isolation\",\"Value\":\"only_rmw_uses_lwt\"}]}", false},
        {"{\"Tags\":[]}", false},
        {"{}", false}};
    struct buf reply = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scripted scripted;
        scripted_start(&scripted, STEPS(NODES, TABLE, {DEED_REPLY, 200, NULL, rows[i].tags}, FINE));
        struct dynamo *dynamo = door(&scripted,
                                     0); /* which asks what it is before the first call on such a table */
        CHECK_INT(put(dynamo, "ours-counters", &reply), rows[i].is_taken ? 200 : 400);
        CHECK(
            slice_contains(buf_view(&reply), rows[i].is_taken ? SLICE("fine") : SLICE(DYNAMO_NOT_ISOLATED)));
        CHECK_INT(scripted.requests, rows[i].is_taken ? 4 : 3);
        dynamo_close(dynamo);
        scripted_stop(&scripted);
    }
    buf_free(&reply);
}

TEST(tables_of_ours_are_made_isolated)
{
    static const struct {
        const char *table, *more;
        bool is_tagged;
    } rows[] = {{"ours-counters", "", true}, {"theirs", "", false}, {"ours-counters", ",\"Tags\":[]", false}};
    struct buf reply = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scripted scripted;
        char request[100];
        scripted_start(&scripted, STEPS(NODES, FINE));
        struct dynamo *dynamo = door(&scripted, 0);
        dynamo_kind_ask(dynamo);
        snprintf(request, sizeof request, " {\"TableName\":\"%s\"%s}", rows[i].table, rows[i].more);
        CHECK_INT(dynamo_call(dynamo, SLICE("CreateTable"), slice_of(request), &reply), 200);
        dynamo_close(dynamo);
        scripted_stop(&scripted);
        const char *sent = strstr(scripted.last_request, "\r\n\r\n");
        CHECK(rows[i].is_tagged == (strstr(sent, "\"system:write_isolation\",\"Value\":\"always\"") != NULL));
        CHECK(rows[i].is_tagged || strcmp(sent + 4, request) == 0);
    }
    buf_free(&reply);
}
