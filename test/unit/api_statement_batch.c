/* BatchExecuteStatement: each statement with its own outcome, and what refuses all of them. */
#include "unit/api_statements.h"

#define BATCH(statements)      "{'Statements':[" statements "]}"
#define BATCH_COST(statements) "{'Statements':[" statements "],'ReturnConsumedCapacity':'INDEXES'}"
#define ONE(text)              "{'Statement':'" text "'}"
#define DONE                   "{'TableName':'hash'}"
#define ITEM(item)             "{'TableName':'hash','Item':{" item "}}"
#define FAILED(code, message)  "{'Error':{'Code':'" code "','Message':'" message "'},'TableName':'hash'}"
#define REFUSED(code, message) "{'Error':{'Code':'" code "','Message':'" message "'}}"
#define REPLY(responses)       "{'Responses':[" responses "]}"

TEST(each_statement_of_a_batch_has_its_outcome)
{
    /* clang-format off */
    static const struct exchange exchanges[] = {
        {"BatchExecuteStatement",
         BATCH(ONE("INSERT INTO hash VALUE {^a^: ^1^, ^n^: 1}") "," ONE("INSERT INTO hash VALUE {^a^: ^2^}")),
         REPLY(DONE "," DONE)},
        {"BatchExecuteStatement",
         BATCH(ONE("INSERT INTO hash VALUE {^a^: ^1^}") ","
               ONE("UPDATE hash SET n = 5 WHERE a = ^2^ RETURNING ALL NEW *") ","
               ONE("UPDATE hash SET n = 5 WHERE a = ^3^") ","
               ONE("DELETE FROM hash WHERE a = ^4^")),
         REPLY(FAILED("DuplicateItem", "Duplicate primary key exists in table") ","
               ITEM("'a':{'S':'2'},'n':{'N':'5'}") ","
               FAILED("ConditionalCheckFailed", "The conditional request failed") ","
               DONE)},
        {"BatchExecuteStatement",
         BATCH(ONE("SELECT * FROM hash WHERE a = ^1^") ","
               ONE("SELECT n FROM hash WHERE a IN [^2^]") ","
               ONE("SELECT * FROM hash WHERE a = ^3^")),
         REPLY(ITEM("'a':{'S':'1'},'n':{'N':'1'}") "," ITEM("'n':{'N':'5'}") "," DONE)},
    };
    /* clang-format on */
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define BY_KEY                                                                                               \
    "Select statements within BatchExecuteStatement must specify the primary key in the where clause."

TEST(statements_of_a_batch_are_refused_one_by_one)
{
    static const struct exchange exchanges[] = {
        {"BatchExecuteStatement", BATCH(ONE("SELECT * FROM hash")),
         REPLY(REFUSED("ValidationError", BY_KEY))},
        {"BatchExecuteStatement", BATCH(ONE("SELECT * FROM hash WHERE a = ^1^ AND n = 1")),
         REPLY(REFUSED("ValidationError", BY_KEY))},
        {"BatchExecuteStatement", BATCH(ONE("SELECT * FROM indexed.lsi WHERE a = ^1^ AND b = ^1^")),
         REPLY(REFUSED("ValidationError", BY_KEY))},
        {"BatchExecuteStatement",
         BATCH(ONE("SELECT * FROM nope WHERE a = ^1^") "," ONE("SELECT * FROM hash WHERE") "," ONE(
             "SELECT * FROM hash WHERE a = ^1^")),
         REPLY(REFUSED("ResourceNotFound", "Requested resource not found") "," DONE)},
        {"BatchExecuteStatement", BATCH(ONE("EXISTS(SELECT * FROM hash WHERE a = ^1^)")),
         REPLY(REFUSED("ValidationError", "EXISTS can only be used in ExecuteTransaction write requests."))},
        /* As seen on the service. */
        {"BatchExecuteStatement",
         BATCH(
             "{'Statement':'SELECT * FROM hash WHERE a = ^x^ AND n = ?','Parameters':[{'N':'1e99999999999'}]}," ONE(
                 "SELECT * FROM hash WHERE a = ^1^")),
         REPLY(REFUSED("ValidationError",
                       "The parameter cannot be converted to a numeric value: 1e99999999999") "," DONE)},
        {"BatchExecuteStatement", BATCH("{'Statement':'not even a statement','Parameters':[{'NULL':false}]}"),
         REPLY(REFUSED("ValidationError",
                       "One or more parameter values were invalid: Null attribute value types "
                       "must have the value of true"))},
    };
    struct world world;
    items_open(&world);
    for (size_t i = 0; i < 3; i++) check_statement(&world, &exchanges[i]);
    for (size_t i = 5; i < sizeof exchanges / sizeof *exchanges; i++) check_statement(&world, &exchanges[i]);
    /* The text of a syntax error has quotes of its own. */
    struct slice reply = ask_statement(&world, "BatchExecuteStatement", exchanges[3].request);
    CHECK_TEXT(reply,
               "{\"Responses\":[{\"Error\":{\"Code\":\"ResourceNotFound\",\"Message\":\"Requested "
               "resource not found\"}},{\"Error\":{\"Code\":\"ValidationError\",\"Message\":\"Statement "
               "wasn't well formed, can't be processed: Unexpected term\"}},{\"TableName\":\"hash\"}]}");
    check_statement(&world, &exchanges[4]);
    world_close(&world);
}

TEST(a_batch_is_refused_as_a_whole)
{
    static const struct exchange exchanges[] = {
        {"BatchExecuteStatement", BATCH(""),
         "ValidationException: 1 validation error detected: Value '[]' at 'statements' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1"},
        {"BatchExecuteStatement",
         BATCH(ONE("SELECT * FROM hash WHERE a = ^1^") "," ONE("DELETE FROM hash WHERE a = ^2^")),
         "ValidationException: Read and write requests together in the same batch is not supported."},
        {"BatchExecuteStatement",
         BATCH(ONE("SELECT * FROM hash WHERE a = ^1^") "," ONE("SELECT n FROM hash WHERE a = ^1^")),
         "ValidationException: Provided list of item keys contains duplicates"},
        {"BatchExecuteStatement", BATCH("null"),
         "ValidationException: 1 validation error detected: Value null at 'statements.1.member' failed to "
         "satisfy constraint: Member must not be null"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* What failed counts in the sum and in no arm; a table where all failed is left out. */
TEST(a_batch_costs_what_it_tried)
{
    /* clang-format off */
    static const struct exchange exchanges[] = {
        {"BatchExecuteStatement",
         BATCH_COST(ONE("INSERT INTO hash VALUE {^a^: ^1^}") ","
                    ONE("UPDATE pair SET n = 1 WHERE a = ^1^ AND b = 1")),
         "{'Responses':[{'TableName':'hash'},{'Error':{'Code':'ConditionalCheckFailed','Message':'The "
         "conditional request failed'},'TableName':'pair'}],'ConsumedCapacity':[{'TableName':'hash',"
         "'CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}]}"},
        {"BatchExecuteStatement",
         BATCH_COST(ONE("INSERT INTO hash VALUE {^a^: ^1^}") "," ONE("INSERT INTO hash VALUE {^a^: ^2^}")),
         "{'Responses':[" FAILED("DuplicateItem", "Duplicate primary key exists in table") ","
         "{'TableName':'hash'}],'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':2.0,"
         "'Table':{'CapacityUnits':1.0}}]}"},
        {"BatchExecuteStatement",
         "{'Statements':[{'Statement':'SELECT * FROM hash WHERE a = ^1^','ConsistentRead':true},{'Statement':"
         "'SELECT * FROM hash WHERE a = ^2^'}],'ReturnConsumedCapacity':'TOTAL'}",
         "{'Responses':[{'TableName':'hash','Item':{'a':{'S':'1'}}},{'TableName':'hash','Item':{'a':{'S':'2'}}}"
         "],'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':1.5}]}"},
    };
    /* clang-format on */
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}
