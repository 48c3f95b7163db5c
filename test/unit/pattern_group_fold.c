/* Groups that are complete by what is folded from their events' data: exact values, however the events stand, and a
 * clear word for what cannot be folded. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LARGE X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

static void check_member(struct patterns *patterns, const char *request, const char *body, const char *name,
                         const char *expected)
{
    struct slice reply = asks(patterns, request, body), value = raw_member(&patterns->arena, reply, name);
    if (patterns->call.status >= 300 || !slice_equal(value, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s %s: %s is not %s: %d %.*s", request, body ? body : "", name,
                    expected, patterns->call.status, SLICE_ARG(reply));
    patterns->now_ms += 10;
}

static void put(struct patterns *patterns, const char *rules)
{
    struct slice reply = asks(patterns, "PUT /v1/groups/g", rules);
    if (patterns->call.status != 200) test_failed(__FILE__, __LINE__, "%s: %.*s", rules, SLICE_ARG(reply));
}

/* Each value of the fold by its name, since databases tell maps in any order. */
static void check_fold(struct patterns *patterns, const char *key, const char *name, const char *expected)
{
    char request[60];
    snprintf(request, sizeof request, "GET /v1/groups/g/%s", key);
    struct slice reply = asks(patterns, request, NULL);
    struct slice value = raw_member(&patterns->arena, raw_member(&patterns->arena, reply, "fold"), name);
    if (!slice_equal(value, expected ? slice_of(expected) : SLICE_NONE))
        test_failed(__FILE__, __LINE__, "%s of %s is not %s: %.*s", name, key, expected ? expected : "absent",
                    SLICE_ARG(reply));
}

#define PAID                                                                                                 \
    "\"fold\":{\"paid\":{\"sum\":\"amount\",\"of\":\"payment\"},\"orders\":{\"count\":\"*\",\"of\":\"order\"}}"

TEST(group_fold_completes)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"when\":\"paid >= 100 and orders >= 1\"}," PAID "}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/groups/g", NULL),
                         SLICE("\"expression\":\"#paid >= :v1 and #orders >= :v2\"")));
    check_member(&patterns, "POST /v1/groups/g/k",
                 "{\"id\":\"a\",\"kind\":\"payment\",\"data\":{\"amount\":99.9}}", "completed", "false");
    check_member(&patterns, "POST /v1/groups/g/k",
                 "{\"id\":\"a\",\"kind\":\"payment\",\"data\":{\"amount\":99.9}}", "accepted",
                 "false"); /* once */
    check_member(&patterns, "POST /v1/groups/g/k", "{\"kind\":\"order\",\"data\":{\"amount\":500}}",
                 "completed", "false");
    check_fold(&patterns, "k", "paid", "99.9");
    check_fold(&patterns, "k", "orders", "1");
    check_member(&patterns, "POST /v1/groups/g/k",
                 "{\"id\":\"b\",\"kind\":\"payment\",\"data\":{\"amount\":0.1}}", "completed", "true");
    check_member(&patterns, "POST /v1/groups/g/k",
                 "{\"id\":\"b\",\"kind\":\"payment\",\"data\":{\"amount\":0.1}}", "completed", "true");
    check_fold(&patterns, "k", "paid", "100");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"kind\":\"payment\",\"data\":{\"amount\":1}}", 409,
                  "closed-group");
    /* the first event may be all of it, whichever way the condition is written */
    put(&patterns,
        "{\"complete\":{\"when\":{\"expression\":\"paid > :least\",\"values\":{\":least\":1e-9}}}," PAID "}");
    check_member(&patterns, "POST /v1/groups/g/one", "{\"kind\":\"payment\",\"data\":{\"amount\":1e-8}}",
                 "completed", "true");
    check_fold(&patterns, "one", "orders", "0");
    patterns_close(&patterns);
}

#define ALL                                                                                                          \
    "\"fold\":{\"n\":{\"count\":\"v\"},\"sum_of\":{\"sum\":\"v\"},\"low\":{\"min\":\"v\"},\"high\":{\"max\":\"v\"}," \
    "\"latest\":{\"last\":\"v\"},\"all\":{\"distinct\":\"v\"},\"first_price\":{\"max\":\"lines.0.price\"}}"

static void add_value(struct patterns *patterns, const char *key, const char *value, bool is_large)
{
    char request[60], body[1200];
    snprintf(request, sizeof request, "POST /v1/groups/g/%s", key);
    snprintf(body, sizeof body, "{\"data\":{\"v\":%s,\"lines\":[{\"price\":%s},7],\"x\":\"%s\"}}", value,
             value, is_large ? LARGE : "");
    check_member(patterns, request, body, "accepted", "true");
}

static void check_all(struct patterns *patterns, const char *key)
{
    check_fold(patterns, key, "n", "4");
    check_fold(patterns, key, "sum_of", "111111111111111111111111111111111113");
    check_fold(patterns, key, "low", "-1.5");
    check_fold(patterns, key, "high", "111111111111111111111111111111111111");
    check_fold(patterns, key, "latest", "2");
    check_fold(patterns, key, "first_price", "111111111111111111111111111111111111");
    char request[60];
    snprintf(request, sizeof request, "GET /v1/groups/g/%s", key);
    struct slice fold = raw_member(&patterns->arena, asks(patterns, request, NULL), "fold");
    CHECK_INT((int)raw_count(&patterns->arena, raw_member(&patterns->arena, fold, "all")), 4);
}

/* In the head, with items of their own, and when the rules come behind the events. */
TEST(group_fold_of_all_kinds)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":50}," ALL "}");
    static const char *const values[] = {"1.50", "111111111111111111111111111111111111", "-1.5", "2.0",
                                         "null"};
    for (size_t i = 0; i < 5; i++) {
        add_value(&patterns, "small", values[i], false);
        add_value(&patterns, "large", values[i], true);
    }
    asks(&patterns, "POST /v1/groups/g/small", "{\"data\":{\"w\":9}}");
    asks(&patterns, "POST /v1/groups/g/small", "{}");
    check_all(&patterns, "small");
    check_all(&patterns, "large");
    put(&patterns, "{\"complete\":{\"size\":50}}");
    check_fold(&patterns, "small", "n", NULL);
    put(&patterns, "{\"complete\":{\"size\":49}," ALL "}");
    check_all(&patterns, "small");
    check_all(&patterns, "large");
    /* a group without any has no least one; texts have an order, too, but no sum */
    add_value(&patterns, "none", "null", false);
    check_fold(&patterns, "none", "sum_of", "0");
    check_fold(&patterns, "none", "low", NULL);
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/texts", "{\"data\":{\"v\":\"b\"}}", 400, "bad-event");
    put(&patterns,
        "{\"complete\":{\"size\":50},\"fold\":{\"low\":{\"min\":\"v\"},\"high\":{\"max\":\"v\"}}}");
    static const char *const texts[] = {"\"b\"", "\"c\"", "\"a\""};
    for (size_t i = 0; i < 3; i++) add_value(&patterns, "texts", texts[i], false);
    check_fold(&patterns, "texts", "low", "\"a\"");
    check_fold(&patterns, "texts", "high", "\"c\"");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/texts", "{\"data\":{\"v\":3}}", 400, "bad-event");
    patterns_close(&patterns);
}

/* Changed folds see all events, and whom they make complete is. */
TEST(group_fold_changes)
{
    struct patterns patterns;
    patterns_open(&patterns);
    put(&patterns, "{\"complete\":{\"size\":50}}");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":\"x\",\"b\":2}}", "accepted", "true");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":\"y\",\"b\":\"no number\"}}", "accepted",
                 "true");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":\"x\",\"b\":3,\"x\":\"" LARGE "\"}}",
                 "accepted", "true");
    put(&patterns, "{\"complete\":{\"when\":\"size(who) >= 3\"},\"fold\":{\"who\":{\"distinct\":\"a\"}}}");
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    put(&patterns, "{\"complete\":{\"when\":\"b >= 6\"},\"fold\":{\"b\":{\"sum\":\"b\"}}}");
    check_fold(&patterns, "k", "b", "5"); /* what cannot be added was there before */
    check_fold(&patterns, "k", "who", NULL);
    put(&patterns, "{\"complete\":{\"when\":\"b >= 5\"},\"fold\":{\"b\":{\"sum\":\"b\"}}}");
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"rules\"");
    check_member(&patterns, "POST /v1/groups/g/l", "{\"data\":{\"a\":\"x\",\"b\":2}}", "state", "\"OPEN\"");
    put(&patterns,
        "{\"complete\":{\"when\":\"contains(who, 'x')\"},\"fold\":{\"who\":{\"distinct\":\"a\"}}}");
    check_member(&patterns, "GET /v1/groups/g/l", NULL, "why", "\"rules\"");
    patterns_close(&patterns);
}

TEST(group_fold_is_bounded)
{
    struct patterns patterns;
    char body[500];
    patterns_open(&patterns);
    put(&patterns,
        "{\"complete\":{\"size\":500},\"fold\":{\"who\":{\"distinct\":\"a\"},\"end\":{\"last\":\"*\"}}}");
    for (int i = 0; i < 100; i++) {
        snprintf(body, sizeof body, "{\"data\":{\"a\":%d}}", i);
        asks(&patterns, "POST /v1/groups/g/k", body);
        CHECK_INT(patterns.call.status, 201);
    }
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":100}}", 400, "bad-event");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":99.0}}", "accepted", "true");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":\"text\"}}", 400, "bad-event");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"data\":{\"a\":[1]}}", 400, "bad-event");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/l", "{\"data\":{\"a\":\"\"}}", 400, "bad-event");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/l", "{\"data\":\"" LARGE "\"}", 400, "bad-event");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/l", NULL, 404, "no-such-group"); /* nothing happened */
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "count", "101");
    put(&patterns, "{\"complete\":{\"size\":500},\"fold\":{\"all\":{\"sum\":\"*\"}}}");
    check_member(&patterns, "POST /v1/groups/g/n", "{\"data\":9e125}", "accepted", "true");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/n", "{\"data\":9e125}", 400, "bad-event");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/n", "{\"data\":1}", 400, "bad-event"); /* 126 digits */
    check_member(&patterns, "GET /v1/groups/g/n", NULL, "count", "1");
    patterns_close(&patterns);
}

/* What can be folded is known by its type: conditions that never hold are refused, as of all else. */
TEST(group_fold_rules_are_checked)
{
    struct patterns patterns;
    static const char *const wrong[] = {
        "\"fold\":3",
        "\"fold\":{}",
        "\"fold\":{\"a\":\"sum\"}",
        "\"fold\":{\"a\":{}}",
        "\"fold\":{\"a\":{\"of\":\"x\"}}",
        "\"fold\":{\"a\":{\"sum\":\"x\",\"max\":\"x\"}}",
        "\"fold\":{\"a\":{\"sum\":3}}",
        "\"fold\":{\"a\":{\"sum\":\"\"}}",
        "\"fold\":{\"a\":{\"average\":\"x\"}}",
        "\"fold\":{\"1a\":{\"sum\":\"x\"}}",
        "\"fold\":{\"a-b\":{\"sum\":\"x\"}}",
        "\"fold\":{\"count\":{\"sum\":\"x\"}}",
        "\"fold\":{\"Between\":{\"sum\":\"x\"}}",
        "\"fold\":{\"a\":{\"sum\":\"x\"}},\"complete\":{\"when\":\"b > 3\"}",
        "\"fold\":{\"a\":{\"sum\":\"x\"}},\"complete\":{\"when\":\"a > 'x'\"}",
        "\"fold\":{\"a\":{\"sum\":\"x\"}},\"complete\":{\"when\":\"events[0].a > 3\"}",
        "\"fold\":{\"a\":{\"count\":\"x\"}},\"complete\":{\"when\":\"attribute_not_exists(a)\"}",
        "\"fold\":{\"a\":{\"distinct\":\"x\"}},\"complete\":{\"when\":\"a >= 3\"}",
        "\"fold\":{\"a\":{\"distinct\":\"x\"}},\"complete\":{\"when\":\"contains(a, true)\"}",
        "\"fold\":{\"a\":{\"max\":\"x\"}},\"complete\":{\"when\":\"a = true\"}",
        "\"complete\":{\"when\":\"fold > 3\"}",
    };
    char rules[300];
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(rules, sizeof rules, "{\"quiet\":\"1h\",%s}", wrong[i]);
        CHECK_REFUSES(&patterns, "PUT /v1/groups/g", rules, 400, "bad-rule");
    }
    CHECK_REFUSES(&patterns, "GET /v1/groups/g", NULL, 404, "no-such-group");
    put(&patterns,
        "{\"complete\":{\"when\":\"not (a.b[0] = 'x') and (size(s) > 2 or contains(s, 3)) and "
        "attribute_exists(a) and m between 'a' and 'b'\","
        "\"size\":2},\"fold\":{\"a\":{\"last\":\"x\"},\"s\":{\"distinct\":\"x\"},\"m\":{\"min\":\"y\"}}}");
    patterns_close(&patterns);
}
