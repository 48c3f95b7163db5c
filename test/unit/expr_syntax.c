/* Syntax errors: which token is shown, and what stands near it. */
#include "unit/expr_world.h"

struct example {
    const char *text, *token, *near;
};

static void check_examples(enum expr_kind kind, const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) {
        struct slice expected = arena_printf(
            &world.arena, "Invalid %.*s: Syntax error; token: \"%s\", near: \"%s\"%c",
            SLICE_ARG(expr_kind_name(kind)), examples[i].token, examples[i].near, '\0');
        CHECK_TEXT(fault_of(&world, kind, examples[i].text), expected.data);
    }
    world_close(&world);
}

#define CHECK_EXAMPLES(kind, examples)                                                                       \
    check_examples((kind), (examples), sizeof(examples) / sizeof *(examples))

TEST(syntax_window_reaches_one_token_each_way)
{
    static const struct example examples[] = {
        {"a x b", "x", "a x b"},
        {"a    x     b", "x", "a    x     b"},
        {"   a    x     b   ", "x", "a    x     b"},
        {"a\tx\nb", "x", "a\tx\nb"},
        {"a = b c", "c", "b c"},
        {"a = b     AND     ", "<EOF>", "AND     "},
        {"   ", "<EOF>", "   "},
        {"   !   ", "!", "   !   "},
        {"  and a", "and", "  and a"},
        {"a !! b", "!", "a !!"},
        {"a = \"x\"", "\"", "= \"x"},
        {"(a = b))", ")", "))"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
}

TEST(syntax_characters_that_begin_no_token)
{
    static const struct example examples[] = {
        {"a > 4", "4", "> 4"},
        {"\xc3\xbc > a", "\xc3\xbc", "\xc3\xbc >"},
        {"a \xf0\x9f\x98\x80 b", "\xf0\x9f\x98\x80", "a \xf0\x9f\x98\x80 b"},
        {"a\x0b= b", "\x0b", "a\x0b="},
        {"_a = :n", "_", "_a"},
        {"a$ = :n", "$", "a$ ="},
        {"a = #", "#", "= #"},
        {"a = :", ":", "= :"},
        {"a = #$", "#", "= #$"},
        {"a == b", "=", "== b"},
        {"a != b", "!", "a !="},
        {"a < > b", ">", "< > b"},
        {"1a = :n", "1", "1a"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
}

TEST(syntax_of_paths)
{
    static const struct example examples[] = {
        {"a.b..c = d", ".", "..c"}, {"a[b] = c", "b", "[b]"},      {"a[4.5] = c", ".", "4.5"},
        {"a[01] = c", "1", "01]"},  {"a[-1] = c", "-", "[-1"},     {"a[] = c", "]", "[] ="},
        {"a[1 = c", "=", "1 = c"},  {"a.1 = c", "1", ".1 ="},      {"(a.b).c = d", ".", ").c"},
        {"(a)[0] = c", "[", ")[0"}, {"a.(b) = c", "(", ".(b"},     {"a.and = c", "and", ".and ="},
        {"a#b = c", "#b", "a#b ="}, {"a:n = c", ":n", "a:n ="},    {"a.:n = c", ":n", ".:n ="},
        {"a = :n.b", ".", ":n.b"},  {"size(a).b > c", ".", ").b"}, {"a[0]b = c", "b", "]b ="},
        {"[0] = a", "[", "[0"},     {"#a#b = c", "#b", "#a#b ="},  {"a[#b] = c", "#b", "[#b]"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
}

TEST(syntax_of_conditions)
{
    static const struct example examples[] = {
        {"a", "<EOF>", "a"},
        {"(a)", "<EOF>", ")"},
        {"()", ")", "()"},
        {"NOT", "<EOF>", "NOT"},
        {"(a) AND b = c", "AND", ") AND b"},
        {"(a = b) = c", "=", ") = c"},
        {"a = (b = c)", "=", "b = c"},
        {"a = NOT b", "NOT", "= NOT b"},
        {"a between b or c", "or", "b or c"},
        {"a between (b and c)", "and", "b and c"},
        {"a in b", "b", "in b"},
        {"a in ()", ")", "()"},
        {"a in (b,c,)", ")", ",)"},
        {"a in ((:n, :s))", ",", ":n, :s"},
        {"a not in (b)", "not", "a not in"},
        {"contains()", ")", "()"},
        {"contains(a b)", "b", "a b)"},
        {"contains(a = b)", "=", "a = b"},
        {"#a(b)", "(", "#a(b"},
        {"a = b set", "set", "b set"},
        {"a < b > c", ">", "b > c"},
    };
    CHECK_EXAMPLES(EXPR_FILTER, examples);
}

TEST(syntax_of_updates)
{
    static const struct example examples[] = {
        {"INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"},
        {"set", "<EOF>", "set"},
        {"set a", "<EOF>", "a"},
        {"set a = :n,", "<EOF>", ","},
        {"set a = :n,remove b", "remove", ",remove b"},
        {"set a = :n; remove b", ";", ":n; remove"},
        {"set :n = a", ":n", "set :n ="},
        {"set (a) = b", "(", "set (a"},
        {"set a = b + c + d", "+", "c + d"},
        {"set a = b+(c+d)", "+", "c+d"},
        {"set a = (b+c)+d", "+", ")+d"},
        {"set a = - b", "-", "= - b"},
        {"set a = list_append(b,c+d)", "+", "c+d"},
        {"remove a b", "b", "a b"},
        {"add a b", "b", "a b"},
        {"add a (:n)", "(", "a (:n"},
        {"add a :n b :n", "b", ":n b :n"},
        {"delete a", "<EOF>", "a"},
        {"set a = 5", "5", "= 5"},
    };
    CHECK_EXAMPLES(EXPR_UPDATE, examples);
}

TEST(syntax_of_projections)
{
    static const struct example examples[] = {
        {"!!! INVALID !!!", "!", "!!"},
        {"a b", "b", "a b"},
        {"a,", "<EOF>", ","},
        {"a,,b", ",", ",,b"},
        {"(a)", "(", "(a"},
        {"a(b)", "(", "a(b"},
        {":n", ":n", ":n"},
        {"a.", "<EOF>", "."},
        {"set", "set", "set"},
    };
    CHECK_EXAMPLES(EXPR_PROJECTION, examples);
}
