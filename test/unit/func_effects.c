/* Writes that a function returns. */
#include "func/func.h"
#include "unit/test.h"

struct found {
    enum effects effects;
    struct slice members;
    uint32_t count;
    char error[256];
    struct arena arena;
};

static struct found find(const char *reply, uint32_t max)
{
    struct found found = {.error = ""};
    found.effects = func_effects(slice_of(reply), max, &found.arena, &found.members, &found.count,
                                 found.error, sizeof found.error);
    return found;
}

static void expect(const char *reply, enum effects effects, const char *members, uint32_t count,
                   const char *error)
{
    struct found found = find(reply, 3);
    CHECK_INT(found.effects, effects);
    CHECK_TEXT(found.members, members);
    CHECK_INT(found.count, count);
    CHECK_TEXT(slice_of(found.error), error);
    arena_free(&found.arena);
}

TEST(effects_are_found)
{
    expect("{\"quipu\":{\"transact\":[{\"Put\":{}}]}}", EFFECTS_FOUND, "{\"Put\":{}}", 1, "");
    expect(" { \"a\" : [1,{\"quipu\":0}] , \"quipu\" : { \"transact\" : [ {\"Put\":{\"x\":[1]}} , "
           "{\"Delete\":{}} ] } } ",
           EFFECTS_FOUND, " {\"Put\":{\"x\":[1]}} , {\"Delete\":{}} ", 2, "");
    expect("{\"quipu\":{\"transact\":[{\"Update\":{}},{\"ConditionCheck\":{}},{\"Put\":{}}]},\"z\":null}",
           EFFECTS_FOUND, "{\"Update\":{}},{\"ConditionCheck\":{}},{\"Put\":{}}", 3, "");
}

TEST(effects_are_not_there)
{
    expect("", EFFECTS_NONE, "", 0, "");
    expect("null", EFFECTS_NONE, "", 0, "");
    expect("\"quipu\"", EFFECTS_NONE, "", 0, "");
    expect("[{\"quipu\":{\"transact\":[{\"Put\":{}}]}}]", EFFECTS_NONE, "", 0, "");
    expect("{\"a\":{\"quipu\":{\"transact\":[{\"Put\":{}}]}}}", EFFECTS_NONE, "", 0, "");
    expect("{\"quipu\":{}}", EFFECTS_NONE, "", 0, "");
    expect("{\"quipu\":{\"transact\":[]}}", EFFECTS_NONE, "", 0, "");
    expect("{\"a\":\"quipu\" oops", EFFECTS_NONE, "", 0, "");
}

TEST(effects_that_are_nearly_right_are_errors)
{
    expect("{\"quipu\":1}", EFFECTS_BAD, "", 0, "\"quipu\" must be an object");
    expect("{\"quipu\":{\"transakt\":[]}}", EFFECTS_BAD, "", 0,
           "\"quipu\" has no member \"transakt\"; \"transact\" is one");
    expect("{\"quipu\":{\"transact\":{}}}", EFFECTS_BAD, "", 0, "\"transact\" must be a list of writes");
    expect("{\"quipu\":{\"transact\":[1]}}", EFFECTS_BAD, "", 0, "write 1 of \"transact\" is no object");
    expect("{\"quipu\":{\"transact\":[{\"Put\":{}},{\"put\":{}}]}}", EFFECTS_BAD, "", 0,
           "write 2 of \"transact\" must be one of Put, Update, Delete, ConditionCheck");
    expect("{\"quipu\":{\"transact\":[{\"Put\":1}]}}", EFFECTS_BAD, "", 0,
           "write 1 of \"transact\" must be one of Put, Update, Delete, ConditionCheck");
    expect("{\"quipu\":{\"transact\":[{}]}}", EFFECTS_BAD, "", 0,
           "write 1 of \"transact\" has 0 actions, not one");
    expect("{\"quipu\":{\"transact\":[{\"Put\":{},\"Delete\":{}}]}}", EFFECTS_BAD, "", 0,
           "write 1 of \"transact\" has 2 actions, not one");
    expect("{\"quipu\":{\"transact\":[],\"transact\":[{\"Put\":{}}]}}", EFFECTS_BAD, "", 0,
           "\"transact\" is there twice");
    expect("{\"quipu\":{},\"quipu\":{\"transact\":[{\"Put\":{}}]}}", EFFECTS_BAD, "", 0,
           "\"quipu\" is there twice");
    expect("{\"quipu\":{\"transact\":[{\"Put\":{}},{\"Put\":{}},{\"Put\":{}},{\"Put\":{}}]}}", EFFECTS_BAD,
           "", 0, "\"transact\" has more than 3 writes");
}

/* A reply that was cut off is no reply without effects. */
TEST(effects_that_are_cut_off_are_errors)
{
    const char *whole = "{\"quipu\":{\"transact\":[{\"Put\":{\"a\":1}}]}}";
    for (size_t len = strlen("{\"quipu\":"); len < strlen(whole); len++) {
        struct found found = {.error = ""};
        found.effects = func_effects((struct slice){whole, len}, 3, &found.arena, &found.members,
                                     &found.count, found.error, sizeof found.error);
        if (found.effects != EFFECTS_BAD) test_failed(__FILE__, __LINE__, "%.*s", (int)len, whole);
        CHECK(found.error[0] != 0);
        arena_free(&found.arena);
    }
}
