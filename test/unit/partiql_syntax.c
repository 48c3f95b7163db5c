/* The words of malformed statements, and of statements that are refused before any table is looked for. */
#include "partiql/partiql.h"
#include "unit/test.h"

struct example {
    const char *statement, *fault; /* the fault without what all syntax errors begin with; "" for none */
};

static void check_faults(const char *prefix, const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        static const struct value parameters[] = {{.type = VALUE_S, .bytes = {"p", 1}},
                                                  {.type = VALUE_N, .bytes = {"1", 1}}};
        struct arena arena = {0};
        struct slice fault = SLICE_NONE;
        statement_parse(&arena, slice_of(examples[i].statement), parameters, 2, false, &fault);
        struct slice expected = SLICE_NONE;
        if (examples[i].fault) expected = arena_printf(&arena, "%s%s", prefix, examples[i].fault);
        if (!slice_equal(fault, expected))
            test_failed(__FILE__, __LINE__, "%s\n  got:      %.*s\n  expected: %.*s", examples[i].statement,
                        SLICE_ARG(fault), SLICE_ARG(expected));
        arena_free(&arena);
    }
}

#define MALFORMED(examples)                                                                                  \
    check_faults("Statement wasn't well formed, can't be processed: ", (examples),                           \
                 sizeof(examples) / sizeof *(examples))
#define REFUSED(examples) check_faults("", (examples), sizeof(examples) / sizeof *(examples))

TEST(text_without_tokens_has_no_detail)
{
    static const struct example examples[] = {
        {"SELECT # FROM t", ""},
        {"SELECT \xc3\xa9 FROM tbl", ""},
        {"SELECT * FROM \"tbl", ""},
        {"SELECT * FROM tbl WHERE a = 'x", ""},
        {"SELECT * FROM tbl /* and so on", ""},
        {"SELECT * FROM tbl WHERE a = 1e2147483648", ""},
        {"SELECT * FROM tbl WHERE a = 1.5e-2147483647", ""},
        {"SELECT * FROM tbl WHERE a = 1e", ""},
        {"SELECT * FROM tbl WHERE a ! 1", ""},
        {"SELECT * FROM tbl WHERE a | 1", ""},
        {"SELECT * FROM tbl WHERE a ^ 1", ""},
    };
    MALFORMED(examples);
}

TEST(malformed_statements_have_the_words_of_the_parser)
{
    static const struct example examples[] = {
        {"SELECT * FROM tbl)", "Unexpected token after expression"},
        {"SELECT * FROM tbl WHERE a = 1 e5", "Unexpected token after expression"},
        {"SELECT * FROM tbl ORDER BY a WHERE a = 1", "Unexpected token after expression"},
        {"DELETE FROM tbl WHERE a = 1 ORDER BY a", "Unexpected token after expression"},
        {"INSERT INTO tbl VALUE {'a': 1} AS x", "Unexpected token after expression"},
        {"FROM tbl SET a = 1 WHERE a = 1", "Unexpected token after expression"},
        {"SELECT * FROM tbl; SELECT * FROM tbl",
         "Unexpected token after semicolon. (Only one query is allowed.)"},
        {"SLECT * FROM \"tbl\" WHERE a = 1", "Expected data manipulation"},
        {"SELECT * FROM tbl WHERE", "Unexpected term"},
        {"SELECT * FROM tbl WHERE NOT", "Unexpected term"},
        {"SELECT * FROM tbl WHERE (", "Unexpected term"},
        {"SELECT * FROM", "Unexpected term"},
        {"SELECT * FROM;", "Unexpected term"},
        {"SELECT * FROM tbl WHERE a = 1 AND", "Missing right-hand side expression of infix operator"},
        {"SELECT * FROM tbl WHERE a =", "Missing right-hand side expression of infix operator"},
        {"SELECT * FROM tbl WHERE a = 1 AND;", "Unexpected term"},
        {"SELECT * FROM tbl WHERE ORDER BY a", "Unexpected keyword"},
        {"SELECT * FROM tbl WHERE value = 1", "Unexpected keyword"},
        {"SELECT date FROM tbl", "Unexpected keyword"},
        {"SELECT * FROM tbl WHERE IS NULL", "Unexpected operator"},
        {"SELECT * FROM tbl WHERE a = LIKE", "Unexpected operator"},
        {"SELECT * FROM tbl WHERE a IS FOO", "Expected type name"},
        {"SELECT * FROM tbl WHERE @", "Identifier must follow @-operator"},
        {"DELETE FROM", "Expected identifier for simple path"},
        {"DELETE FROM;", "Expected identifier for simple path"},
        {"DELETE FROM WHERE a = 1", "Expected identifier for simple path"},
        {"UPDATE 1 SET a = 1", "Expected identifier for simple path"},
        {"DELETE tbl", "Expected FROM after DELETE"},
        {"UPDATE tbl", "Expected data manipulation"},
        {"UPDATE tbl SET a 1", "Expected '='"},
        {"UPDATE tbl SET", "Expected identifier for simple path"},
        {"UPDATE tbl SET a.* = 1", "Invalid path dot component for simple path"},
        {"UPDATE tbl SET a[*] = 1", "Invalid path component for simple path"},
        {"UPDATE tbl REMOVE a, b WHERE c = 1", "Unexpected token after expression"},
        {"SELECT * FROM tbl WHERE m.inner = 1", "Invalid path dot component"},
        {"SELECT * WHERE a = 1", "Expected FROM after SELECT list"},
        {"SELECT FROM tbl",
         "Expected identifier or an expression but found unexpected keyword 'from' in a select list."},
        {"SELECT *, a FROM tbl", "Other expressions may not be present in the select list when '*' is used "
                                 "without dot notation."},
        {"SELECT a[*] FROM tbl", "Invalid use of * in select list"},
        {"SELECT a.*.b FROM tbl", "Invalid use of * in select list"},
        {"SELECT a[0].* FROM tbl", "Cannot use [] and * together in SELECT list expression"},
        {"SELECT * FROM tbl WHERE a BETWEEN 1", "Expected expression after AND"},
        {"SELECT * FROM tbl WHERE a BETWEEN 1 OR 2", "Expected expression after AND"},
        {"SELECT * FROM tbl WHERE ()", "Expression group cannot be empty"},
        {"SELECT * FROM tbl WHERE a = ` `", ""},
        {"SELECT * FROM tbl WHERE a BETWEEN 1 AND", "Expected expression after AND"},
        {"SELECT * FROM tbl WHERE a IN (1", "Expected RIGHT_PAREN"},
        {"SELECT * FROM tbl WHERE a = [1", "Expected RIGHT_BRACKET"},
        {"INSERT INTO tbl VALUE {'a' 1}", "Expected COLON"},
        {"INSERT INTO tbl VALUE {'a': 1", "Expected RIGHT_CURLY"},
        {"INSERT INTO tbl VALUE {'a': <<1}", "Expected RIGHT_DOUBLE_ANGLE_BRACKET"},
        {"INSERT INTO tbl VALUE {'a': 1} ON CONFLICT", "invalid ON CONFLICT syntax"},
        {"UPDATE tbl SET a = 1 WHERE b = 1 RETURNING *",
         "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element."},
        {"UPDATE tbl SET a = 1 WHERE b = 1 RETURNING ALL OLD 1 + 1",
         "Unsupported syntax in RETURNING columns."},
        {"UPDATE tbl SET a = 1 WHERE b = 1 RETURNING ALL OLD a.b.c",
         "More than two paths in RETURNING columns."},
        {"SELECT COUNT() FROM tbl", "Aggregate functions are always unary"},
        {"SELECT max(*) FROM tbl", "max(*) is not allowed"},
        {"SELECT CASE a END FROM tbl", "Expected a WHEN clause in CASE"},
        {"SELECT CAST 1 FROM tbl", "Missing left parenthesis after cast"},
        {"SELECT * FROM tbl WHERE a IS NUMERIC('x')", "Type parameter must be an unsigned integer literal"},
        {"CREATE VIEW v", "Unexpected token following CREATE"},
        {"DROP VIEW v", "Unexpected token following DROP"},
        {"CREATE INDEX tbl", "Expected ON"},
    };
    MALFORMED(examples);
}

TEST(what_the_service_does_not_offer)
{
    static const struct example examples[] = {
        {"SELECT a AS b FROM tbl", "Aliasing is not supported"},
        {"SELECT a b FROM tbl", "Aliasing is not supported"},
        {"SELECT * FROM tbl t", "Aliasing is not supported"},
        {"UPDATE tbl AS t SET a = 1 WHERE a = 1", "Aliasing is not supported"},
        {"DELETE FROM tbl t WHERE a = 1", "Aliasing is not supported"},
        {"SELECT COUNT(*) FROM tbl", "Unexpected path component at 1:8:5"},
        {"SELECT a + 1 FROM tbl", "Unexpected path component at 1:10:1"},
        {"SELECT 'x' FROM tbl", "Unexpected path component at 1:8:3"},
        {"SELECT ? FROM tbl", "Unexpected path component at 1:8:1"},
        {"SELECT\n  null FROM tbl", "Unexpected path component at 2:3:4"},
        {"SELECT l[-1] FROM tbl", "List index is not within the allowable range; index: [-1] at 1:11:1"},
        {"SELECT l[2147483648] FROM tbl",
         "List index is not within the allowable range; index: [2147483648] at 1:10:10"},
        {"SELECT l[-0] FROM tbl", NULL},
        {"SELECT a, m.a FROM tbl", "Duplicate identifiers in select clause: a"},
        {"SELECT m.x, m FROM tbl",
         "Two document paths overlap with each other; must remove or rewrite one of "
         "these paths; path one: [m], path two: [m, x]"},
        {"SELECT VALUE a FROM tbl", "Select projection doesn't support value or pivot keywords"},
        {"SELECT DISTINCT a FROM tbl", "Unsupported token in expression: DISTINCT"},
        {"SELECT m.* FROM tbl", "Changing item's hierarchy while reading isn't supported"},
        {"SELECT * FROM tbl LIMIT 1", "Unsupported clause: LIMIT at 1:25:1"},
        {"SELECT * FROM tbl GROUP BY a", "Unsupported clause: GROUP BY"},
        {"SELECT * FROM tbl, other", "Only select from a single table or index is supported."},
        {"SELECT * FROM tbl JOIN other ON 1 = 1", "Only select from a single table or index is supported."},
        {"SELECT * FROM (SELECT * FROM tbl)", "Unexpected from source"},
        {"SELECT * FROM ?", "Unexpected from source"},
        {"SELECT * FROM \"\"", "Path component cannot be an empty string"},
        {"SELECT * FROM tbl.\"\"", "Path component cannot be an empty string"},
        {"SELECT * FROM aaa.bbb.ccc", "A path may contain at most 2 components in the FROM clause"},
        {"SELECT * FROM \"t t\"", "Table name should be within the length [3, 255] and only contain 'a-z', "
                                  "'A-Z', '0-9', '-', '_', '.'."},
        {"CREATE TABLE tbl", "Unsupported operation: CreateTable"},
        {"x IS INT4", "Unsupported operation: IsType"},
        {"COUNT(1, 2)", "Unsupported operation: CallAgg"},
        {"SUM(1)", "Unsupported operation: CallAgg"},
        {"[1]", "Unsupported operation: Seq"},
        {"EXISTS(SELECT * FROM tbl WHERE a = 1)",
         "EXISTS can only be used in ExecuteTransaction write requests."},
        {"INSERT INTO tbl.idx VALUE {'a': 1}",
         "FROM clause may only contain a single table name in data manipulation statements at 1:13:3"},
        {"UPDATE tbl.idx SET a = 1 WHERE a = 1", "This operation is not supported on an index"},
        {"DELETE FROM tbl.idx WHERE a = 1", "This operation is not supported on an index"},
        {"INSERT INTO tbl VALUE ?",
         "Unsupported format in item expression. Please use struct format {...} to express item values for "
         "insert statement. at 1:23:1"},
        {"INSERT INTO tbl VALUES (1)", "Unsupported operation: InsertOp"},
        {"DELETE FROM tbl WHERE a = 1 RETURNING MODIFIED OLD *",
         "Invalid returning clause: RETURNING MODIFIED OLD *. Only RETURNING ALL OLD * is allowed in DELETE "
         "statements."},
        {"UPDATE tbl SET a = 1 WHERE b = 1 RETURNING ALL OLD a",
         "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"},
        {"SELECT * FROM tbl ORDER BY a",
         "Must have WHERE clause in the statement when using ORDER BY clause."},
        {"SELECT * FROM tbl WHERE a = 1 ORDER BY 1",
         "Argument to ORDER BY must be of type VariableReference. Type: 1"},
    };
    REFUSED(examples);
}

TEST(literals_tell_where_they_are_wrong)
{
    static const struct example examples[] = {
        {"INSERT INTO tbl VALUE {'a': <<>>}", "Empty bags are not supported"},
        {"INSERT INTO tbl VALUE {'a': <<1, 'x'>>}",
         "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"},
        {"INSERT INTO tbl VALUE {'a': <<'a', 'a'>>}",
         "One or more parameter values were invalid: Input collection [a, a] contains duplicates."},
        {"INSERT INTO tbl VALUE {'a': <<2, 2.0>>}",
         "Input collection [2, 2.0] contains duplicates! under root"},
        {"INSERT INTO tbl VALUE {'a': {'x': [1, 1e200]}}",
         "Number overflow. Attempting to store a number with magnitude larger than supported range under "
         "root.x[1]"},
        {"INSERT INTO tbl VALUE {'a': 1e-200}",
         "Number underflow. Attempting to store a number with magnitude smaller than supported range under "
         "root"},
        {"INSERT INTO tbl VALUE {'a': 123456789012345678901234567890123456789}",
         "Attempting to store more than 38 significant digits in a Number under root"},
        {"INSERT INTO tbl VALUE {'a': [?]}", "Unsupported data type: Parameter under key root[0] at 1:30:1"},
        {"INSERT INTO tbl VALUE {'a': {'k': ?}}",
         "Unsupported data type: Parameter under key root.k at 1:35:1"},
        {"INSERT INTO tbl VALUE {'a': set_add(b, <<1>>)}",
         "Unsupported data type: set_add under key root at 1:29:7"},
        {"INSERT INTO tbl VALUE {'a': 1 + 1}", "Unsupported data type: + under key root at 1:31:1"},
        {"INSERT INTO tbl VALUE {a: 1}",
         "Tuple keys must be of type String. Actual type: VariableReference under root at 1:24:1"},
        {"INSERT INTO tbl VALUE {'a': 1, 'a': 2}", "Duplicate keys in tuple. Key: a under root at 1:32:3"},
        {"INSERT INTO tbl VALUE {'a': ?, 'b': ?, 'c': ?}",
         "Number of parameters in request and statement don't match."},
        {"INSERT INTO tbl VALUE {'a': - - 1, 'b': -/*c*/-1, 'c': +2, 'd': list(1), 'e': bag(1, 2)}", NULL},
    };
    REFUSED(examples);
}

TEST(conditions_and_assignments_are_checked_as_expressions_are)
{
    static const struct example examples[] = {
        {"SELECT * FROM tbl WHERE a < true",
         "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
        {"SELECT * FROM tbl WHERE contains(a, 'x') < true",
         "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
        {"SELECT * FROM tbl WHERE attribute_type(a, 'X')",
         "Invalid attribute type name found; type: X, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}"},
        {"SELECT * FROM tbl WHERE begins_with(a)",
         "Incorrect number of operands for operator or function; operator or function: begins_with, number "
         "of operands: 1"},
        {"SELECT * FROM tbl WHERE attribute_exists(?)",
         "Operator or function requires a document path; operator or function: attribute_exists"},
        {"SELECT * FROM tbl WHERE exists(a)", "Unrecognized function: exists at 1:25:6"},
        {"SELECT * FROM tbl WHERE a = a",
         "The first operand must be distinct from the remaining operands for this operator or function; "
         "operator: =, first operand: [a]"},
        {"SELECT * FROM tbl WHERE a IN []",
         "IN operator must have a left hand argument of type Variable Reference and right hand argument of "
         "type Seq with at least one member"},
        {"SELECT * FROM tbl WHERE a = MISSING", "MISSING must be compared using IS operator"},
        {"SELECT * FROM tbl WHERE a LIKE 'x'",
         "Unsupported operator in Condition Expression. Operator: like"},
        {"SELECT * FROM tbl WHERE -a = 1", "Unsupported operator in Condition Expression. Operator: -"},
        {"SELECT * FROM tbl WHERE 1", "WHERE clause must contain an expression that resolves to a boolean"},
        {"SELECT * FROM tbl WHERE a = 1 AND 1", "The arguments to AND/OR must be Expressions"},
        {"SELECT * FROM tbl WHERE a = (SELECT * FROM tbl)",
         "Unsupported token in expression: SELECT at 1:30:6"},
        {"SELECT * FROM tbl WHERE a IS DATE",
         "Unsupported data type for IS operator: DATE. Supported data types are [MISSING, NULL, BOOLEAN, BLOB, "
         "STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:27:2"},
        {"UPDATE tbl SET a = set_add(b, <<1>>) WHERE c = 1",
         "The first argument to SET_ADD must equal the assignment value at 1:20:7"},
        {"UPDATE tbl SET a = set_delete(a, 1) WHERE c = 1",
         "The second argument to SET_DELETE must be a value with type SET at 1:31:1"},
        {"UPDATE tbl SET a = 'x' + 1 WHERE c = 1",
         "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
        {"UPDATE tbl SET a = b * 2 WHERE c = 1", "Unsupported operator in Update Expression. Operator: *"},
        {"UPDATE tbl SET a = size(b) WHERE c = 1",
         "The function is not allowed in an update expression; function: size"},
        {"UPDATE tbl SET a = 1 SET a.b = 2 WHERE c = 1",
         "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
         "[a, b], path two: [a]"},
    };
    REFUSED(examples);
}

TEST(statements_that_nest_too_deep_are_refused_and_not_followed)
{
    struct arena arena = {0};
    struct buf text = {0};
    struct slice fault = SLICE_NONE;
    static const char *const pieces[] = {"(", "[", "NOT ", "- ", "{'a':", "f(", "a["};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        text.len = 0;
        buf_text(&text, "SELECT * FROM tbl WHERE a = ");
        while (text.len < LIMIT_STATEMENT_CHARACTERS) buf_slice(&text, slice_of(pieces[i]));
        CHECK(!statement_parse(&arena, buf_view(&text), NULL, 0, false, &fault));
        CHECK_TEXT(fault, "Statement wasn't well formed, can't be processed: Unexpected term");
        arena_reset(&arena);
    }
    buf_free(&text);
    arena_free(&arena);
}

/* Truths that are compared with truths, level upon level: each level is looked at once, or nobody would live to
 * see the end of it. */
TEST(nested_comparisons_of_truths_cost_what_they_are_long)
{
    static struct attribute attributes[] = {{{"a", 1}, {.type = VALUE_N, .bytes = {"1", 1}}},
                                            {{"b", 1}, {.type = VALUE_BOOL, .truth = true}}};
    static const struct map item = {attributes, 2};
    static const char *const levels[] = {" = b)", " = (a = 1))", " IN [true])", " IN [true, false])",
                                         " <> false)"};
    struct arena arena = {0};
    struct slice fault;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct buf text = {0};
        buf_text(&text, "SELECT * FROM tbl WHERE ");
        for (int level = 0; level < 300; level++) buf_byte(&text, '(');
        buf_text(&text, "(a = 1)");
        for (int level = 0; level < 300; level++) buf_slice(&text, slice_of(levels[i]));
        struct statement *statement = statement_parse(&arena, buf_view(&text), NULL, 0, false, &fault);
        CHECK(statement && condition_holds(statement->where, &item));
        buf_free(&text);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

TEST(a_statement_needs_memory_like_its_text)
{
    struct arena arena = {0};
    struct buf text = {0};
    struct slice fault;
    buf_text(&text, "INSERT INTO tbl VALUE {'a': [''");
    while (text.len < LIMIT_STATEMENT_CHARACTERS - 10) buf_text(&text, ",''");
    buf_text(&text, "]}");
    CHECK(statement_parse(&arena, buf_view(&text), NULL, 0, false, &fault));
    CHECK(arena.total_bytes < 50 * text.len);
    buf_free(&text);
    arena_free(&arena);
}

/* As DynamoDB Local names them. */
TEST(ion_literals_are_refused_by_their_type)
{
    static const char *const types[][2] = {
        {"2020T", "TIMESTAMP"}, {"2020-01-01", "TIMESTAMP"}, {"2", "INT"},          {"-2", "INT"},
        {"0x1F", "INT"},        {"2.5", "DECIMAL"},          {"1d2", "DECIMAL"},    {"2e1", "FLOAT"},
        {"nan", "FLOAT"},       {"+inf", "FLOAT"},           {"\"x\"", "STRING"},   {"'''x'''", "STRING"},
        {"abc", "SYMBOL"},      {"'abc'", "SYMBOL"},         {"null", "NULL"},      {"null.int", "INT"},
        {"true", "BOOL"},       {"{{aGk=}}", "BLOB"},        {"{{\"x\"}}", "CLOB"}, {"[1]", "LIST"},
        {"(1)", "SEXP"},        {"{a:1}", "STRUCT"},         {"a::b::1", "INT"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct arena arena = {0};
        struct slice fault, text = arena_printf(&arena, "UPDATE tbl SET n=`%s` WHERE a = 1", types[i][0]);
        CHECK(!statement_parse(&arena, text, NULL, 0, false, &fault));
        CHECK_TEXT(fault, arena_printf(&arena, "Ion Literals are not supported: %s under key root at 1:18:%zu",
                                       types[i][1], strlen(types[i][0]) + 2)
                              .data);
        arena_free(&arena);
    }
}
