/* Faults behind the syntax: their words, and which of several is reported. */
#include "unit/expr_world.h"

struct example {
    const char *text, *fault;
};

static void check_examples(enum expr_kind kind, const struct example *examples, size_t count)
{
    struct world world;
    world_open_usual(&world);
    for (size_t i = 0; i < count; i++) {
        struct slice expected = arena_printf(&world.arena, "Invalid %.*s: %s%c",
                                             SLICE_ARG(expr_kind_name(kind)), examples[i].fault, '\0');
        CHECK_TEXT(fault_of(&world, kind, examples[i].text), expected.data);
    }
    world_close(&world);
}

#define CHECK_EXAMPLES(kind, examples)                                                                       \
    check_examples((kind), (examples), sizeof(examples) / sizeof *(examples))

#define PARENTHESES "The expression has redundant parentheses;"
#define NO_SUCH     "Invalid function name; function: "
#define MISPLACED   "The function is not allowed to be used this way in an expression; function: "
#define RESERVED    "Attribute name is a reserved keyword; reserved keyword: "
#define NO_NAME     "An expression attribute name used in the document path is not defined; attribute name: "
#define NO_VALUE    "An expression attribute value used in expression is not defined; attribute value: "
#define COUNT       "Incorrect number of operands for operator or function; operator or function: "
#define OPERAND     "Incorrect operand type for operator or function; operator or function: "
#define NO_PATH     "Operator or function requires a document path; operator or function: "
#define SAME                                                                                                 \
    "The first operand must be distinct from the remaining operands for this operator or function; "         \
    "operator: "
#define OVERLAP                                                                                              \
    "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
#define CONFLICT                                                                                             \
    "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: "

TEST(faults_of_parentheses)
{
    static const struct example examples[] = {
        {"((a = b))", PARENTHESES},
        {"a = ((b))", PARENTHESES},
        {"((a)) = b", PARENTHESES},
        {"contains(((a)), :n)", PARENTHESES},
        {"not ((a = b)) and c = d", PARENTHESES},
        {"((attribute_exists(a)))", PARENTHESES},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
    static const struct example updates[] = {{"set a = ((b+c))", PARENTHESES},
                                             {"set a = ((b)) + c", PARENTHESES}};
    CHECK_EXAMPLES(EXPR_UPDATE, updates);
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, "(a = b AND (c = d)) OR ((a) = (b))"), "");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, "(size(a)) = :n AND (contains(a, :s))"), "");
    CHECK_TEXT(fault_of(&world, EXPR_UPDATE, "set a = ((b)+(c))"), "");
    world_close(&world);
}

/* The service looks ahead until it knows what a parenthesis belongs to; a syntax error on the way comes
 * first. */
TEST(faults_of_parentheses_before_or_behind_syntax)
{
    static const struct example examples[] = {
        {"((a)) x", "Syntax error; token: \"x\", near: \") x\""},
        {"((a))", "Syntax error; token: \"<EOF>\", near: \")\""},
        {"((a)).c = :n", "Syntax error; token: \".\", near: \").c\""},
        {"contains(((a)) b", "Syntax error; token: \"b\", near: \") b\""},
        {"(((contains(a, :n))) x", "Syntax error; token: \"x\", near: \") x\""},
        {"((a)) = ", PARENTHESES},
        {"((a = b)) c", PARENTHESES},
        {"a = ((b)) c", PARENTHESES},
        {"a = contains(((b)) c", PARENTHESES},
        {"((contains(a, :n))) x", PARENTHESES},
        {"(((a)) = b c", PARENTHESES},
    };
    CHECK_EXAMPLES(EXPR_FILTER, examples);
    static const struct example updates[] = {
        {"set a = (((b)) d", "Syntax error; token: \"d\", near: \") d\""},
        {"set a = list_append(((b)) c", "Syntax error; token: \"c\", near: \") c\""},
        {"set a = ((b)) c", PARENTHESES},
        {"set a = b + list_append(((c)) d", PARENTHESES},
    };
    CHECK_EXAMPLES(EXPR_UPDATE, updates);
}

TEST(faults_of_functions)
{
    static const struct example examples[] = {
        {"foo(a)", NO_SUCH "foo"},
        {"Attribute_exists(a)", NO_SUCH "Attribute_exists"},
        {"size(a)", MISPLACED "size"},
        {"not size(a)", MISPLACED "size"},
        {"contains(a, :s) = :t", MISPLACED "contains"},
        {"size(contains(a, b)) = :n", MISPLACED "contains"},
        {"a between b and attribute_exists(c)", MISPLACED "attribute_exists"},
        {"if_not_exists(a, :n) = b",
         "The function is not allowed in a condition expression; function: if_not_exists"},
        {"list_append(a, b)", "The function is not allowed in a condition expression; function: list_append"},
    };
    CHECK_EXAMPLES(EXPR_KEY_CONDITION, examples);
    static const struct example updates[] = {
        {"set a = foo(b)", NO_SUCH "foo"},
        {"set a = size(b)", "The function is not allowed in an update expression; function: size"},
        {"set a = attribute_exists(b)",
         "The function is not allowed in an update expression; function: attribute_exists"},
        {"set a = list_append(b, :l) + c", MISPLACED "list_append"},
        {"set a = if_not_exists(b, list_append(c, :l))", MISPLACED "list_append"},
        {"set a = list_append(list_append(b, :l), :l)", MISPLACED "list_append"},
    };
    CHECK_EXAMPLES(EXPR_UPDATE, updates);
}

TEST(faults_of_words_come_in_the_order_of_the_text)
{
    static const struct example examples[] = {
        {"name = b", RESERVED "name"},
        {"a.Status = b", RESERVED "Status"},
        {"a[0].ABORT = b", RESERVED "ABORT"},
        {"foo(name)", NO_SUCH "foo"},
        {"name = foo(a)", RESERVED "name"},
        {"contains(name, b) = c", MISPLACED "contains"},
        {"name = contains(a, b)", RESERVED "name"},
        {"a[2147483648] = b", "List index is not within the allowable range; index: [2147483648]"},
        {"a[99999999999999999999999].name = b",
         "List index is not within the allowable range; index: [99999999999999999999999]"},
        {"#none = :none and name = b", RESERVED "name"},
        {"a = a and foo(b)", NO_SUCH "foo"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
    struct world world;
    world_open_usual(&world);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, "a[2147483647] = b and a[0] = :n"), "");
    world_close(&world);
}

TEST(faults_of_binding_come_inner_first)
{
    static const struct example examples[] = {
        {"#none = :n", NO_NAME "#none"},
        {"a.b[1].#none = :n", NO_NAME "#none"},
        {"a = :none", NO_VALUE ":none"},
        {":none = #none", NO_VALUE ":none"},
        {"#none = :none", NO_NAME "#none"},
        {"contains(:none, size(a, b))", NO_VALUE ":none"},
        {"contains(size(a, b), :none)", COUNT "size, number of operands: 2"},
        {"attribute_exists(a, :none)", NO_VALUE ":none"},
        {"a = b and c = :none and a = a", NO_VALUE ":none"},
        {"a = a and c = :none", SAME "=, first operand: [a]"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
}

TEST(faults_of_operands)
{
    static const struct example examples[] = {
        {"attribute_exists(a, b)", COUNT "attribute_exists, number of operands: 2"},
        {"contains(a)", COUNT "contains, number of operands: 1"},
        {"begins_with(a, a, :n)", COUNT "begins_with, number of operands: 3"},
        {"attribute_exists(:n)", NO_PATH "attribute_exists"},
        {"attribute_not_exists(size(a))", NO_PATH "attribute_not_exists"},
        {"a < :t", OPERAND "<, operand type: BOOL"},
        {":ss >= a", OPERAND ">=, operand type: SS"},
        {"a between :z and b", OPERAND "BETWEEN, operand type: NULL"},
        {"a between :t and a", OPERAND "BETWEEN, operand type: BOOL"},
        {"begins_with(a, :n)", OPERAND "begins_with, operand type: N"},
        {"begins_with(size(a), :s)", OPERAND "begins_with, operand type: N"},
        {"size(:n) = b", OPERAND "size, operand type: N"},
        {"size(size(a)) = b", OPERAND "size, operand type: N"},
        {"attribute_type(a, :n)", OPERAND "attribute_type, operand type: N"},
        {"attribute_type(a, b)", OPERAND "attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}"},
        {"attribute_type(a, :s)",
         "Invalid attribute type name found; type: abc, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
        {"a = #a", SAME "=, first operand: [a]"},
        {"a.b[1] <> a.b[1]", SAME "<>, first operand: [a, b, [1]]"},
        {"a in (b, a)", SAME "IN, first operand: [a]"},
        {"a between b and a", SAME "BETWEEN, first operand: [a]"},
        {"attribute_type(a, a)", SAME "attribute_type, first operand: [a]"},
    };
    CHECK_EXAMPLES(EXPR_FILTER, examples);
}

TEST(faults_of_bounds)
{
    static const struct example examples[] = {
        {"a between :n and :s",
         "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: "
         "AttributeValue: {N:5}, upper bound operand: AttributeValue: {S:abc}"},
        {"a between :b and :n",
         "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: "
         "AttributeValue: "
         "{B:java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]}, upper bound operand: AttributeValue: {N:5}"},
    };
    CHECK_EXAMPLES(EXPR_CONDITION, examples);
    struct world world;
    world_open(&world, NULL, "{\":low\":{\"N\":\"10\"},\":high\":{\"N\":\"9\"}}", NULL);
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, "a between :low and :high"),
               "Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than or "
               "equal to "
               "lower bound; lower bound operand: AttributeValue: {N:10}, upper bound operand: "
               "AttributeValue: {N:9}");
    CHECK_TEXT(fault_of(&world, EXPR_CONDITION, "a between :high and :low"), "");
    world_close(&world);
}

TEST(faults_of_updates)
{
    static const struct example examples[] = {
        {"set a = b set c = d", "The \"SET\" section can only be used once in an update expression;"},
        {"remove a set b = c remove d",
         "The \"REMOVE\" section can only be used once in an update expression;"},
        {"add a :none add b :none", "The \"ADD\" section can only be used once in an update expression;"},
        {"set a = b set name = c", RESERVED "name"},
        {"set a = b set c = d set e = foo(f)",
         "The \"SET\" section can only be used once in an update expression;"},
        {"add a :s",
         "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: "
         "ALLOWED_FOR_ADD_OPERAND"},
        {"delete a :n",
         "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: "
         "ALLOWED_FOR_DELETE_OPERAND"},
        {"set a = list_append(b)", COUNT "list_append, number of operands: 1"},
        {"set a = list_append(:s, :l)", OPERAND "list_append, operand type: S"},
        {"set a = b + :s", OPERAND "+, operand type: S"},
        {"set a = :t - b", OPERAND "-, operand type: BOOL"},
        {"set a = if_not_exists(:n, b)", NO_PATH "if_not_exists"},
        {"set a = if_not_exists(a, a)", SAME "if_not_exists, first operand: [a]"},
        {"set a = list_append(if_not_exists(b), :none)", COUNT "if_not_exists, number of operands: 1"},
    };
    CHECK_EXAMPLES(EXPR_UPDATE, examples);
}

/* The service binds updates from behind: targets first, then operands. */
TEST(faults_of_updates_come_last_action_first)
{
    static const struct example examples[] = {
        {"set a = :none1, b = :none2", NO_VALUE ":none2"},
        {"set a = :none1 + :none2", NO_VALUE ":none1"},
        {"set #none1 = :n, #none2 = :n", NO_NAME "#none2"},
        {"set #none = :n, a = :none", NO_NAME "#none"},
        {"set a = #none, b = :n remove b.c", OVERLAP "[b], path two: [b, c]"},
        {"set #none = :n, a = :n, a.b = :n", OVERLAP "[a], path two: [a, b]"},
        {"add a :s set b = :none", NO_VALUE ":none"},
    };
    CHECK_EXAMPLES(EXPR_UPDATE, examples);
}

/* Of the paths under one parent, the service names the one that its hash map happens to hold first. */
TEST(faults_of_paths)
{
    static const struct example examples[] = {
        {"a, a", OVERLAP "[a], path two: [a]"},
        {"a.b, a", OVERLAP "[a, b], path two: [a]"},
        {"a, b, #a", OVERLAP "[a], path two: [b]"},
        {"a, b, c, d, a", OVERLAP "[a], path two: [d]"},
        {"c, a, b, a, d, c", OVERLAP "[a], path two: [d]"},
        {"a.b, a.c, a.d, a.b.c, e", OVERLAP "[a, b], path two: [a, d]"},
        {"x, y, a.b.c, q, a.b, w", OVERLAP "[a, b, c], path two: [a, b]"},
        {"x, zeta, s[4], s, zeta.b", OVERLAP "[s, [4]], path two: [zeta, b]"},
        {"a[0], a.b", CONFLICT "[a, [0]], path two: [a, b]"},
        {"a.b[1], #a[1], c", CONFLICT "[a, b, [1]], path two: [a, [1]]"},
        {"l[3], l[14], l[3]", OVERLAP "[l, [3]], path two: [l, [14]]"},
        {"#none, a, a", OVERLAP "[a], path two: [a]"},
        {"a, a, #none", NO_NAME "#none"},
    };
    CHECK_EXAMPLES(EXPR_PROJECTION, examples);
}
