/* ExecuteStatement: what a statement of PartiQL reads and writes, page by page, and what it is refused for.
 *
 * As in the other tests of items, requests are written with ' in place of "; the quotes of PartiQL's own
 * strings are ^. */
#include "unit/api_statements.h"

#define STATEMENT(text)  "{'Statement':'" text "'}"
#define WITH(text, rest) "{'Statement':'" text "'," rest "}"
#define DONE             "{'Items':[]}"

TEST(statements_write_and_read_items)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement",
         STATEMENT("INSERT INTO hash VALUE {^a^: ^1^, ^n^: 2.50, ^l^: [1, <<^x^>>], ^z^: null}"), DONE},
        {"ExecuteStatement", STATEMENT("SELECT * FROM hash WHERE a = ^1^"),
         "{'Items':[{'a':{'S':'1'},'l':{'L':[{'N':'1'},{'SS':['x']}]},'n':{'N':'2.5'},'z':{'NULL':true}}]}"},
        {"ExecuteStatement", STATEMENT("SELECT l[1], n FROM hash WHERE a = ^1^"),
         "{'Items':[{'l[1]':{'SS':['x']},'n':{'N':'2.5'}}]}"},
        {"ExecuteStatement", STATEMENT("SELECT nope FROM hash WHERE a = ^1^"), "{'Items':[{}]}"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM hash WHERE a = ^2^"), DONE},
        {"ExecuteStatement", STATEMENT("INSERT INTO hash VALUE {^a^: ^1^}"),
         "DuplicateItemException: Duplicate primary key exists in table"},
        {"ExecuteStatement",
         STATEMENT("UPDATE hash SET n = n - 1 + 4 REMOVE z WHERE a = ^1^ RETURNING ALL NEW *"),
         "{'Items':[{'a':{'S':'1'},'l':{'L':[{'N':'1'},{'SS':['x']}]},'n':{'N':'5.5'}}]}"},
        {"ExecuteStatement", STATEMENT("UPDATE hash SET n = 1 WHERE a = ^2^"),
         "ConditionalCheckFailedException: The conditional request failed"},
        {"ExecuteStatement", STATEMENT("UPDATE hash SET n = 1 WHERE a = ^1^ AND n = 7"),
         "ConditionalCheckFailedException: The conditional request failed"},
        {"ExecuteStatement",
         WITH("UPDATE hash REMOVE l WHERE a = ^1^ AND n = 7",
              "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'"),
         "{'__type':'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException','message':'The "
         "conditional request failed','Item':{'a':{'S':'1'},'l':{'L':[{'N':'1'},{'SS':['x']}]},"
         "'n':{'N':'5.5'}}}"},
        {"ExecuteStatement",
         STATEMENT("FROM hash WHERE a = ^1^ SET l = list_append(l, [2]) SET s = set_add(s, <<1>>)"), DONE},
        {"ExecuteStatement", STATEMENT("UPDATE hash REMOVE l[0] WHERE a = ^1^ RETURNING MODIFIED NEW *"),
         "{'Items':[{'l':{'L':[{'SS':['x']}]}}]}"},
        {"ExecuteStatement", STATEMENT("UPDATE hash SET s = set_delete(s, <<1>>) WHERE a = ^1^"), DONE},
        {"ExecuteStatement", STATEMENT("DELETE FROM hash WHERE a = ^1^ AND attribute_exists(s)"),
         "ConditionalCheckFailedException: The conditional request failed"},
        {"ExecuteStatement", STATEMENT("DELETE FROM hash WHERE a = ^2^ AND n = 9"), DONE},
        {"ExecuteStatement", STATEMENT("DELETE FROM hash WHERE a = ^1^ RETURNING ALL OLD *"),
         "{'Items':[{'a':{'S':'1'},'l':{'L':[{'SS':['x']},{'N':'2'}]},'n':{'N':'5.5'}}]}"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM hash"), DONE},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(parameters_stand_for_values)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement",
         WITH("INSERT INTO hash VALUE {^a^: ?, ^b^: ?}", "'Parameters':[{'S':'1'},{'B':'AAE='}]"), DONE},
        {"ExecuteStatement",
         WITH("SELECT * FROM hash WHERE a IN [?, ^x^] AND b = ?", "'Parameters':[{'S':'1'},{'B':'AAE='}]"),
         "{'Items':[{'a':{'S':'1'},'b':{'B':'AAE='}}]}"},
        {"ExecuteStatement",
         WITH("FROM hash WHERE a = ? SET b = ? RETURNING ALL NEW *", "'Parameters':[{'S':'1'},{'N':'7'}]"),
         "{'Items':[{'a':{'S':'1'},'b':{'N':'7'}}]}"},
        {"ExecuteStatement", WITH("SELECT * FROM hash WHERE a = ? AND b = ?", "'Parameters':[{'S':'1'}]"),
         "ValidationException: Number of parameters in request and statement don't match."},
        {"ExecuteStatement", WITH("not even a statement", "'Parameters':[{'SS':[]}]"),
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"ExecuteStatement", WITH("SELECT * FROM hash WHERE a = ?", "'Parameters':[]"),
         "ValidationException: 1 validation error detected: Value '[]' at 'parameters' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define ROW(a, b) "{'a':{'S':'" a "'},'b':{'N':'" b "'}}"

static void put_rows(struct world *world)
{
    static const char *const keys[][2] = {{"o", "1"}, {"o", "2"}, {"o", "3"}, {"p", "1"}, {"p", "2"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ask_statement(world, "ExecuteStatement",
                      arena_printf(&world->scratch,
                                   "{'Statement':'INSERT INTO pair VALUE {^a^: ^%s^, ^b^: %s}'}%c",
                                   keys[i][0], keys[i][1], '\0')
                          .data);
}

TEST(selects_come_in_the_order_of_keys)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement", STATEMENT("SELECT * FROM pair WHERE a IN [^p^, ^o^] AND b >= 2"),
         "{'Items':[" ROW("o", "2") "," ROW("o", "3") "," ROW("p", "2") "]}"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM pair WHERE a = ^o^ ORDER BY b DESC"),
         "{'Items':[" ROW("o", "3") "," ROW("o", "2") "," ROW("o", "1") "]}"},
        {"ExecuteStatement",
         STATEMENT("SELECT * FROM pair WHERE a IN [^o^, ^p^] AND b < 3 ORDER BY a DESC, b ASC"),
         "{'Items':[" ROW("p", "1") "," ROW("p", "2") "," ROW("o", "1") "," ROW("o", "2") "]}"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM pair WHERE a = ^o^ AND (b = 3 OR b = 1)"),
         "{'Items':[" ROW("o", "1") "," ROW("o", "3") "]}"},
        {"ExecuteStatement", STATEMENT("SELECT b FROM pair WHERE a = ^o^ AND b <> 2 AND b < 3"),
         "{'Items':[{'b':{'N':'1'}}]}"},
    };
    struct world world;
    items_open(&world);
    put_rows(&world);
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) check_statement(&world, &exchanges[i]);
    world_close(&world);
}

/* Every page of a statement, as "o1 o2|o3" with | between pages. */
static struct slice pages_of(struct world *world, const char *statement, int limit)
{
    struct buf text = {0};
    struct slice token = SLICE_NONE;
    for (int page = 0; page < 20; page++) {
        struct slice request = arena_printf(&world->scratch, "{'Statement':'%s','Limit':%d%s%.*s%s}%c",
                                            statement, limit, token.len ? ",'NextToken':'" : "",
                                            SLICE_ARG(token), token.len ? "'" : "", '\0');
        struct slice reply = ask_statement(world, "ExecuteStatement", request.data);
        if (page) buf_byte(&text, '|');
        for (size_t i = 0; i + 1 < reply.len; i++) {
            if (slice_starts(slice_from(reply, i), SLICE("\"a\":{\"S\":\"")))
                buf_byte(&text, (unsigned char)reply.data[i + 10]);
            if (slice_starts(slice_from(reply, i), SLICE("\"b\":{\"N\":\"")))
                buf_byte(&text, (unsigned char)reply.data[i + 10]);
            if (slice_starts(slice_from(reply, i), SLICE("],\"NextToken\""))) break;
        }
        token = arena_copy(&world->scratch, member_text(world, reply, "NextToken"));
        if (!token.len) break;
    }
    return arena_take(&world->scratch, &text);
}

TEST(pages_go_on_where_the_last_one_ended)
{
    struct world world;
    items_open(&world);
    put_rows(&world);
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a = ^o^", 2), "o1o2|o3");
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a = ^o^", 3), "o1o2o3|");
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a IN [^o^, ^p^]", 2), "o1o2|o3p1|p2");
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a IN [^o^, ^p^] ORDER BY a DESC", 2),
               "p2p1|o3o2|o1");
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a IN [^o^, ^p^] AND b = 1", 1), "o1|p1");
    CHECK_TEXT(pages_of(&world, "SELECT * FROM pair WHERE a = ^o^ AND x = 1", 2), "|");
    world_close(&world);
}

TEST(tokens_belong_to_their_statement)
{
    struct world world;
    items_open(&world);
    put_rows(&world);
    struct slice reply = ask_statement(&world, "ExecuteStatement",
                                       WITH("SELECT * FROM pair WHERE a = ^o^", "'Limit':1"));
    struct slice token = arena_copy(&world.scratch, member_text(&world, reply, "NextToken"));
    CHECK(token.len > 0);
    struct slice other = arena_printf(
        &world.scratch, "{'Statement':'SELECT * FROM pair','NextToken':'%.*s'}%c", SLICE_ARG(token), '\0');
    check_statement(&world, &(struct exchange){"ExecuteStatement", other.data,
                                               "ValidationException: NextToken does not match request"});
    check_statement(&world,
                    &(struct exchange){"ExecuteStatement", WITH("SELECT * FROM pair", "'NextToken':'abcd'"),
                                       "ValidationException: Invalid NextToken"});
    /* Whatever bytes stand behind the head of a token, they are refused or harmless. */
    for (size_t cut = 4; cut < token.len; cut += 4) {
        char *changed = (char *)arena_copy(&world.scratch, token).data;
        changed[cut] = changed[cut] == 'B' ? 'A' : 'B';
        struct slice request = arena_printf(
            &world.scratch, "{'Statement':'SELECT * FROM pair WHERE a = ^o^','NextToken':'%.*s'}%c",
            (int)(cut % 8 ? token.len : cut), changed, '\0');
        ask_statement(&world, "ExecuteStatement", request.data);
        CHECK(world.status == 200 || world.status == 400);
    }
    world_close(&world);
}

TEST(indexes_are_read_by_their_names)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement",
         STATEMENT("INSERT INTO indexed VALUE {^a^: ^1^, ^b^: ^1^, ^c^: ^c^, ^d^: ^d^, ^e^: 1, ^f^: 2}"),
         DONE},
        {"ExecuteStatement", STATEMENT("SELECT * FROM indexed.gsi WHERE c = ^c^"),
         "{'Items':[{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'c'},'d':{'S':'d'},'e':{'N':'1'}}]}"},
        {"ExecuteStatement", STATEMENT("SELECT f, e, x FROM indexed.gsi WHERE c = ^c^"),
         "ValidationException: One or more parameter values were invalid: Global secondary index gsi does not "
         "project [f, x]"},
        /* Which names of a filter come first is not documented. Two orders were seen; a hash set gives both. */
        {"ExecuteStatement", STATEMENT("SELECT e FROM indexed.gsi WHERE c = ^c^ AND h = 1 AND (f = 2 OR g = 3)"),
         "ValidationException: One or more parameter values were invalid: Secondary index gsi does not project "
         "one or more filter attributes: [f, g, h]"},
        {"ExecuteStatement", STATEMENT("SELECT e FROM indexed.gsi WHERE c = ^c^ AND (zz = 1 OR aa = 2 OR mm = 3)"),
         "ValidationException: One or more parameter values were invalid: Secondary index gsi does not project "
         "one or more filter attributes: [zz, aa, mm]"},
        {"ExecuteStatement", STATEMENT("SELECT e FROM indexed.gsi WHERE c = ^c^ AND f = 2"),
         "ValidationException: One or more parameter values were invalid: Secondary index gsi does not project "
         "one or more filter attributes: [f]"},
        {"ExecuteStatement", STATEMENT("SELECT e FROM indexed.gsi WHERE NOT f = 2"),
         "{'Items':[{'e':{'N':'1'}}]}"},
        {"ExecuteStatement",
         WITH("SELECT f FROM indexed.lsi WHERE a = ^1^",
              "'ReturnConsumedCapacity':'INDEXES','ConsistentRead':true"),
         "{'Items':[{'f':{'N':'2'}}],'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':2.0,"
         "'Table':{'CapacityUnits':1.0},'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}}}}"},
        {"ExecuteStatement", WITH("SELECT e FROM indexed.gsi WHERE c = ^c^", "'ConsistentRead':true"),
         "ValidationException: Strongly consistent read is not supported on Global Secondary Indexes"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM indexed.nope WHERE c = 1"),
         "ValidationException: The table does not have the specified index"},
        {"ExecuteStatement", STATEMENT("SELECT * FROM nope.nope WHERE c = 1"),
         "ResourceNotFoundException: Requested resource not found"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(statements_cost_what_their_operations_cost)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement", WITH("INSERT INTO hash VALUE {^a^: ^1^}", "'ReturnConsumedCapacity':'TOTAL'"),
         "{'Items':[],'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0}}"},
        {"ExecuteStatement",
         WITH("SELECT * FROM hash WHERE a IN [^1^, ^2^]", "'ReturnConsumedCapacity':'TOTAL'"),
         "{'Items':[{'a':{'S':'1'}}],'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0}}"},
        {"ExecuteStatement",
         WITH("SELECT * FROM hash WHERE x = 1", "'ReturnConsumedCapacity':'TOTAL','ConsistentRead':true"),
         "{'Items':[],'ConsumedCapacity':{'TableName':'hash','CapacityUnits':4.0}}"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(statements_are_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement", STATEMENT("SELECT COUNT(*) FROM nope"),
         "ValidationException: Unexpected path component at 1:8:5"},
        {"ExecuteStatement", STATEMENT("UPDATE nope.idx SET x = 1 WHERE a = 1"),
         "ValidationException: This operation is not supported on an index"},
        {"ExecuteStatement", STATEMENT("UPDATE nope SET x = 1"),
         "ResourceNotFoundException: Requested resource not found"},
        {"ExecuteStatement", STATEMENT("INSERT INTO pair VALUE {^a^: ^1^}"),
         "ValidationException: Key attribute should be present in the item: Key b"},
        {"ExecuteStatement", STATEMENT("INSERT INTO pair VALUE {^a^: 1, ^b^: 1}"),
         "ValidationException: Key attribute's data type should match its data type in table's schema: Key a"},
        {"ExecuteStatement", STATEMENT("UPDATE pair SET x = 1 WHERE a = ^1^"),
         "ValidationException: Where clause does not contain a mandatory equality on all key attributes"},
        {"ExecuteStatement", STATEMENT("UPDATE hash SET a = ^2^ WHERE a = ^1^"),
         "ValidationException: One or more parameter values were invalid: Cannot update attribute a. This "
         "attribute is part of the key"},
        {"ExecuteStatement", STATEMENT("SELECT a.x FROM hash"),
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' are "
         "not allowed: Key: a"},
        {"ExecuteStatement", WITH("SELECT * FROM hash", "'Limit':0"),
         "ValidationException: 1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: "
         "Member must have value greater than or equal to 1"},
        {"ExecuteStatement", "{}",
         "ValidationException: 1 validation error detected: Value null at 'statement' failed to satisfy "
         "constraint: Member must not be null"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}
