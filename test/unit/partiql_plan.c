/* Which keys a statement reads by, and which item it writes. */
#include "partiql/partiql.h"
#include "unit/test.h"

static const struct key_fields table_fields = {
    .hash = {{{"pk", 2}, VALUE_S}}, .range = {{{"sk", 2}, VALUE_S}}, .hash_count = 1, .range_count = 1};
static const struct key_fields index_fields = {.index = {"idx", 3},
                                               .hash = {{{"g", 1}, VALUE_S}},
                                               .range = {{{"n", 1}, VALUE_N}},
                                               .hash_count = 1,
                                               .range_count = 1};

static void put_value(struct buf *out, const struct value *value)
{
    buf_slice(out, value->bytes);
}

/* "get a 1", "query a <5 filter", separated by "; " */
static struct slice plan_text(struct arena *arena, const char *where, const struct key_fields *fields)
{
    static const char *const compares[] = {"", "=", "<", "<=", ">", ">=", "between ", "begins "};
    struct slice fault = SLICE_NONE;
    struct statement_plan plan;
    struct buf text = {0};
    struct slice source = fields->index.len ? SLICE("tbl.idx") : SLICE("tbl");
    struct slice statement_text = arena_printf(arena, "SELECT * FROM %.*s WHERE %s", SLICE_ARG(source),
                                               where);
    struct statement *statement = statement_parse(arena, statement_text, NULL, 0, false, &fault);
    if (!statement || !statement_plan(arena, statement, fields, &plan, &fault)) return fault;
    if (plan.is_scan) return SLICE("scan");
    for (uint32_t i = 0; i < plan.part_count; i++) {
        const struct statement_part *part = &plan.parts[i];
        if (i) buf_text(&text, "; ");
        buf_printf(&text, "%s ", part->is_get ? "get" : "query");
        put_value(&text, part->keys.hash[0]);
        if (part->keys.compare != KEY_NONE) {
            buf_printf(&text, " %s", compares[part->keys.compare]);
            put_value(&text, part->keys.range[0]);
        }
        if (part->filter) buf_text(&text, " filtered");
    }
    if (plan.backwards) buf_text(&text, " backwards");
    return arena_take(arena, &text);
}

static void check_plans(const struct key_fields *fields, const char *const (*examples)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = {0};
        CHECK_TEXT(plan_text(&arena, examples[i][0], fields), examples[i][1]);
        arena_free(&arena);
    }
}

#define OVERLAP "Overlapping conditions with range keys are not supported in where clause"

TEST(selects_are_read_by_key_where_they_can_be)
{
    static const char *const examples[][2] = {
        {"pk = 'a'", "query a"},
        {"'a' = pk", "query a"},
        {"pk = 'a' AND sk = '1'", "get a =1"},
        {"pk = 'a' AND sk = '1' AND x = 2", "get a =1 filtered"},
        {"pk = 'a' AND sk > '1'", "query a >1"},
        {"pk = 'a' AND '1' > sk", "query a <1"},
        {"pk = 'a' AND sk BETWEEN '1' AND '5'", "query a between 1"},
        {"pk = 'a' AND begins_with(sk, 'x')", "query a begins x"},
        {"pk = 'a' AND sk > '1' AND sk < '5'", "query a >1 filtered"},
        {"pk = 'a' AND sk <> '1'", "query a filtered"},
        {"pk = 'a' AND NOT sk = '1'", "query a filtered"},
        {"pk = 'a' AND (x = 1 OR y = 2)", "query a filtered"},
        {"pk = 'a' AND sk IN ['1', '2']", "get a =1; get a =2"},
        {"pk IN ['b', 'a']", "query a; query b"},
        {"pk = 'b' OR pk = 'a' AND x = 1", "query a filtered; query b"},
        {"pk IN ['b', 'a'] AND sk = '1'", "get a =1; get b =1"},
        {"(pk = 'a' OR pk = 'b') AND x = 1", "query a filtered; query b filtered"},
        {"x = 1", "scan"},
        {"pk > 'a'", "scan"},
        {"pk > 1", "scan"},
        {"pk = 'a' OR x = 1", "scan"},
        {"pk = x", "scan"},
        {"NOT pk = 'a'", "scan"},
        {"pk = 1", "Key attribute's data type should match its data type in table's schema: Key pk"},
        {"pk IN ['a', 1]", "Key attribute's data type should match its data type in table's schema: Key pk"},
        {"pk = 'a' AND sk = 1",
         "Key attribute's data type should match its data type in table's schema: Key sk"},
        {"pk = ''",
         "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
         "contain an empty string value. Key: pk"},
    };
    check_plans(&table_fields, examples, sizeof examples / sizeof *examples);
}

TEST(parts_of_one_key_must_not_meet)
{
    static const char *const examples[][2] = {
        {"pk IN ['a', 'a']", OVERLAP},
        {"pk = 'a' OR pk = 'a'", OVERLAP},
        {"pk = 'a' AND (sk > '0' OR sk < '5')", OVERLAP},
        {"pk = 'a' AND (sk = '1' OR x = 1)", OVERLAP},
        {"(pk = 'a' AND x = 1) OR (pk = 'a' AND y = 1)", OVERLAP},
        {"pk = 'a' AND (begins_with(sk, 'x') OR sk = 'xy')", OVERLAP},
        {"pk = 'a' AND (sk = '2' OR sk = '1')", "get a =1; get a =2"},
        {"pk = 'a' AND (sk < '1' OR sk > '1' OR sk = '1')", "query a <1; get a =1; query a >1"},
        {"pk = 'a' AND (begins_with(sk, 'x') OR sk = 'y')", "query a begins x; get a =y"},
        {"pk = 'a' AND (sk <> '1' OR sk = '1')", "query a filtered"},
        {"(pk = 'a' AND sk <> '1') OR (pk = 'a' AND sk = '1')", "query a filtered"},
    };
    check_plans(&table_fields, examples, sizeof examples / sizeof *examples);
}

TEST(order_by_keys_only)
{
    static const char *const examples[][2] = {
        {"pk = 'a' ORDER BY sk", "query a"},
        {"pk = 'a' ORDER BY sk DESC", "query a backwards"},
        {"pk = 'a' ORDER BY pk ASC", "query a backwards"},
        {"pk IN ['a', 'b'] ORDER BY pk DESC", "query b; query a backwards"},
        {"pk IN ['a', 'b'] ORDER BY pk DESC, sk ASC", "query b; query a"},
        {"pk = 'a' AND (sk < '1' OR sk > '1') ORDER BY sk DESC", "query a >1; query a <1 backwards"},
        {"pk = 'a' ORDER BY Total", "Attribute Total in ORDER BY clause must be part of the primary key"},
        {"x = 1 ORDER BY pk",
         "Must have at least one non-optional hash key condition in WHERE clause when using "
         "ORDER BY clause."},
        {"pk IN ['a', 'b'] ORDER BY sk", "Must have hash key in ORDER BY clause when more than one hash key "
                                         "condition specified in WHERE clause."},
    };
    check_plans(&table_fields, examples, sizeof examples / sizeof *examples);
}

TEST(an_index_is_read_by_its_own_keys)
{
    static const char *const examples[][2] = {
        {"g = 'a' AND n = 1", "query a =1"},
        {"pk = 'a'", "scan"},
        {"g = 'a' AND n = '1'",
         "Key attribute's data type should match its data type in table's schema: Key n"},
    };
    check_plans(&index_fields, examples, sizeof examples / sizeof *examples);
}

TEST(a_select_has_fifty_parts_at_most)
{
    struct arena arena = {0};
    struct buf where = {0};
    buf_text(&where, "pk IN ['0'");
    for (int i = 1; i < LIMIT_STATEMENT_PARTS; i++) buf_printf(&where, ", '%d'", i);
    struct slice fifty = arena_printf(&arena, "%.*s] AND sk = '1'%c", SLICE_ARG(buf_view(&where)), '\0');
    struct slice more = arena_printf(&arena, "%.*s, 'x']%c", SLICE_ARG(buf_view(&where)), '\0');
    struct slice scan = arena_printf(&arena, "%.*s, 'x'] OR x = 1%c", SLICE_ARG(buf_view(&where)), '\0');
    CHECK(slice_starts(plan_text(&arena, fifty.data, &table_fields), SLICE("get 0 =1; get 1 =1; get 10 =1")));
    CHECK_TEXT(plan_text(&arena, more.data, &table_fields),
               "Too many decomposed read operations for a given query.");
    CHECK_TEXT(plan_text(&arena, scan.data, &table_fields), "scan");
    buf_free(&where);
    arena_free(&arena);
}

TEST(plans_are_explained)
{
    static const char *const examples[][2] = {
        {"SELECT * FROM tbl", "scan of table tbl"},
        {"SELECT * FROM tbl WHERE x = 1", "scan of table tbl, filtered"},
        {"SELECT * FROM tbl WHERE pk = 'a' AND sk = '1'", "key read of table tbl"},
        {"SELECT * FROM tbl WHERE pk IN ['a', 'b'] AND sk = '1'", "2 key reads of table tbl"},
        {"SELECT * FROM tbl WHERE pk = 'a' AND x = 1 ORDER BY sk DESC",
         "query of table tbl, filtered, backwards"},
        {"SELECT * FROM tbl.idx WHERE pk IN ['a', 'b']", "2 queries of index idx of table tbl"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct arena arena = {0};
        struct slice fault;
        struct statement_plan plan;
        struct key_fields fields = table_fields;
        struct statement *statement = statement_parse(&arena, slice_of(examples[i][0]), NULL, 0, false,
                                                      &fault);
        if (statement && statement->index.len) fields.index = statement->index;
        CHECK(statement && statement_plan(&arena, statement, &fields, &plan, &fault));
        CHECK_TEXT(statement_explain(&arena, statement, &plan), examples[i][1]);
        arena_free(&arena);
    }
}

TEST(writes_name_one_item)
{
    static const struct key_schema keys = {{"pk", 2}, {"sk", 2}, VALUE_S, VALUE_S};
    static const struct {
        const char *where;
        enum statement_pinned pinned;
        bool has_condition;
    } examples[] = {
        {"pk = 'a' AND sk = '1'", PINNED_WHOLE, false},
        {"(pk = 'a' AND (sk = '1' AND pk = 'a'))", PINNED_WHOLE, false},
        {"pk = 'a' AND x = 1 AND sk = '1'", PINNED_WHOLE, true},
        {"pk = 'a'", PINNED_NOT, false},
        {"pk = 'a' OR sk = '1'", PINNED_NOT, false},
        {"pk IN ['a'] AND sk = '1'", PINNED_NOT, false},
        {"pk = 'a' AND pk = 'b' AND sk = '1'", PINNED_TWICE, false},
        {"pk = 1 AND sk = '1'", PINNED_WRONG, false},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct arena arena = {0};
        struct slice fault, text = arena_printf(&arena, "DELETE FROM tbl WHERE %s", examples[i].where);
        struct statement_pin pin;
        struct statement *statement = statement_parse(&arena, text, NULL, 0, false, &fault);
        CHECK(statement);
        CHECK_INT(statement_pin(&arena, statement, &keys, false, &pin, &fault), examples[i].pinned);
        if (examples[i].pinned == PINNED_WHOLE) {
            CHECK_INT(pin.condition != NULL, examples[i].has_condition);
            CHECK_INT(pin.key.count, 2);
        }
        arena_free(&arena);
    }
}
