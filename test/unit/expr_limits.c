/* Every limit from both sides, and texts that would break a careless parser. */
#include "base/limits.h"
#include "unit/expr_world.h"

/* The text `count` times, with something between and around. */
static const char *repeated(struct world *world, const char *before, const char *text, const char *between,
                            unsigned count, const char *after)
{
    struct buf out = {0};
    buf_printf(&out, "%s", before);
    for (unsigned i = 0; i < count; i++) buf_printf(&out, "%s%s", i ? between : "", text);
    buf_printf(&out, "%s%c", after, '\0');
    const char *copy = arena_copy(&world->arena, buf_view(&out)).data;
    buf_free(&out);
    return copy;
}

TEST(limits_of_size)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, ""),
               "Invalid ConditionExpression: The expression can not be empty;");
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, ""),
               "Invalid UpdateExpression: The expression can not be empty;");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "a = b", " ", "", 4091, "")), "");
    CHECK_TEXT(fault_of(&world, EXPR_FILTER, repeated(&world, "a = b", " ", "", 4092, "")),
               "Invalid FilterExpression: Expression size has exceeded the maximum allowed size; expression "
               "size: 4097");
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, repeated(&world, "", " ", "", 4097, "")),
               "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;");
    CHECK_TEXT(fault_of(&world, EXPR_PROJECTION, repeated(&world, "", " ", "", 4097, "")),
               "Invalid ProjectionExpression: Expression size has exceeded the maximum allowed size;");
    world_close(&world);
}

TEST(limits_of_operators)
{
    static const char too_many[] =
        "Invalid ConditionExpression: The expression contains too many operators; operator count: 301";
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "a=b", " and ", 150, "")), "");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "a=b", " and ", 151, "")), too_many);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "not", " ", 299, " a = b")), "");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "not", " ", 300, " a = b")), too_many);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "size(a)=b", " or ", 100, "")), "");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "size(a)=b", " or ", 101, "")),
               too_many);
    /* The count comes behind everything else. */
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "a=b", " and ", 151, " and a = a")),
               "Invalid ConditionExpression: The first operand must be distinct from the remaining operands "
               "for this "
               "operator or function; operator: =, first operand: [a]");
    world_close(&world);
}

/* Actions are no operators, but + and functions are. */
TEST(limits_of_operators_in_updates)
{
    struct world world;
    world_open_usual(&world);
    struct buf text = {0};
    buf_text(&text, "set ");
    for (unsigned i = 0; i < 301; i++) {
        buf_printf(&text, "%sa%u=b+c", i ? "," : "", i);
        if (i == 299)
            CHECK_TEXT(fault_of(&world, EXPR_UPDATE, arena_copy(&world.arena, buf_view(&text)).data), "");
    }
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, arena_copy(&world.arena, buf_view(&text)).data),
               "Invalid UpdateExpression: The expression contains too many operators; operator count: 301");
    text.len = 0;
    buf_text(&text, "remove ");
    for (unsigned i = 0; i < 500; i++) buf_printf(&text, "%sa%u", i ? "," : "", i);
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, arena_copy(&world.arena, buf_view(&text)).data), "");
    buf_free(&text);
    world_close(&world);
}

TEST(limits_of_in)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_FILTER, repeated(&world, "a in (", ":n", ",", 100, ")")), "");
    CHECK_TEXT(fault_of(&world, EXPR_FILTER, repeated(&world, "a in (", ":n", ",", 101, ")")),
               "Invalid FilterExpression: The IN operator is provided with too many operands; number of "
               "operands: 101");
    world_close(&world);
}

TEST(limits_of_paths)
{
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_PROJECTION, repeated(&world, "", "a", ".", 32, "")), "");
    CHECK_TEXT(
        fault_of(&world, EXPR_PROJECTION, repeated(&world, "", "a", ".", 33, "")),
        "Invalid ProjectionExpression: The document path has too many nesting levels; nesting levels: 33");
    CHECK_TEXT(
        fault_of(&world, EXPR_CONDITION, repeated(&world, "a", "[0]", "", 32, " = :n")),
        "Invalid ConditionExpression: The document path has too many nesting levels; nesting levels: 33");
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, repeated(&world, "remove #none.", "a", ".", 40, "")),
               "Invalid UpdateExpression: The document path has too many nesting levels; nesting levels: 41");
    CHECK_TEXT(fault_of(&world, EXPR_PROJECTION, repeated(&world, "", "a", ".", 1000, ".name")),
               "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: name");
    world_close(&world);
}

TEST(limits_of_nesting)
{
    static const char parentheses[] =
        "Invalid ConditionExpression: The expression has redundant parentheses;";
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "(", "", 500, "a = b")),
               "Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"b\"");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "(", "", 4096, "")), parentheses);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "a = ", "(", "", 4000, "")), parentheses);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "not", " ", 1000, "")),
               "Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"not\"");
    CHECK_TEXT(
        fault_of(&world, EXPR_CONDITION, repeated(&world, "", "not", " ", 1000, " a = b")),
        "Invalid ConditionExpression: The expression contains too many operators; operator count: 301");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, repeated(&world, "", "f(", "", 900, "")),
               "Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"(\"");
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, repeated(&world, "set a = ", "(", "", 4000, "")),
               "Invalid UpdateExpression: The expression has redundant parentheses;");
    world_close(&world);
}
