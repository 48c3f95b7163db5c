/* ExecuteTransaction: all statements or none, in the words of transactions. */
#include "unit/api_statements.h"

#define TRANSACTION(statements) "{'TransactStatements':[" statements "]}"
#define ONE(text)               "{'Statement':'" text "'}"
#define CANCELLED(codes)                                                                                     \
    "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','Message':'Transaction "      \
    "cancelled, please refer cancellation reasons for specific reasons [" codes "]','CancellationReasons':["
#define NONE "{'Code':'None'}"
#define IN(index) "ValidationException: Validation failed in TransactStatements[" index "]: "

/* clang-format off */
TEST(statements_of_a_transaction_happen_together)
{
    static const struct exchange exchanges[] = {
        {"ExecuteTransaction",
         TRANSACTION(ONE("INSERT INTO hash VALUE {^a^: ^1^, ^n^: 1}") ","
                     ONE("INSERT INTO pair VALUE {^a^: ^1^, ^b^: 2}")),
         "{'Responses':[]}"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("UPDATE hash SET n = n + 1 WHERE a = ^1^ AND n = 1") ","
                     ONE("DELETE FROM pair WHERE a = ^1^ AND b = 2") ","
                     ONE("EXISTS(SELECT * FROM pair WHERE a = ^1^ AND b = 3 AND x = 1)")),
         CANCELLED("None, None, ConditionalCheckFailed") NONE "," NONE
         ",{'Code':'ConditionalCheckFailed','Message':'The conditional request failed'}]}"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("INSERT INTO hash VALUE {^a^: ^1^}") "," ONE("INSERT INTO hash VALUE {^a^: ^2^}")),
         CANCELLED("DuplicateItem, None")
         "{'Code':'DuplicateItem','Message':'Duplicate primary key exists in table'}," NONE "]}"},
        {"ExecuteTransaction",
         TRANSACTION("{'Statement':'UPDATE hash SET n = 0 WHERE a = ^1^ AND n = 9',"
                     "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}"),
         CANCELLED("ConditionalCheckFailed") "{'Code':'ConditionalCheckFailed','Item':{'a':{'S':'1'},"
         "'n':{'N':'1'}},'Message':'The conditional request failed'}]}"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("UPDATE hash SET n = n + 1 WHERE a = ^1^") ","
                     ONE("EXISTS(SELECT * FROM pair WHERE a = ^1^ AND b = 2 AND attribute_not_exists(x))")),
         "{'Responses':[]}"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("SELECT n FROM hash WHERE a = ^1^") ","
                     ONE("SELECT * FROM pair WHERE a = ^1^ AND b = 2") ","
                     ONE("SELECT * FROM hash WHERE a = ^9^")),
         "{'Responses':[{'Item':{'n':{'N':'2'}}},{'Item':{'a':{'S':'1'},'b':{'N':'2'}}},{}]}"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(statements_that_no_transaction_takes)
{
    static const struct exchange exchanges[] = {
        {"ExecuteTransaction", TRANSACTION(""),
         "ValidationException: 1 validation error detected: Value '[]' at 'transactStatements' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("SELECT * FROM hash WHERE a = ^1^") "," ONE("DELETE FROM hash WHERE a = ^2^")),
         "ValidationException: ExecuteTransaction API does not support both read and write operations in the "
         "same request."},
        {"ExecuteTransaction",
         TRANSACTION(ONE("DELETE FROM hash WHERE a = ^1^") "," ONE("INSERT INTO hash VALUE {^a^: ^1^}")),
         "ValidationException: Transaction request cannot include multiple operations on one item"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("DELETE FROM hash WHERE a = ^1^") "," ONE("DELETE FROM hash WHERE")),
         IN("1") "Statement wasn't well formed, can't be processed: Unexpected term"},
        {"ExecuteTransaction", TRANSACTION(ONE("DELETE FROM hash WHERE a = ^1^ RETURNING ALL OLD *")),
         IN("0") "RETURNING clause is not supported in ExecuteTransaction."},
        {"ExecuteTransaction", TRANSACTION(ONE("SELECT * FROM indexed.lsi WHERE a = ^1^")),
         IN("0") "Reads on indices are not supported within transactions."},
        {"ExecuteTransaction", TRANSACTION(ONE("SELECT * FROM pair WHERE a = ^1^")),
         IN("0") "Select statements within ExecuteTransaction must specify the primary key in the where clause."},
        {"ExecuteTransaction", TRANSACTION(ONE("EXISTS(SELECT * FROM hash WHERE a = ^1^)")),
         IN("0") "EXISTS() must contain a single item read with additional condition"},
        {"ExecuteTransaction", TRANSACTION(ONE("EXISTS(SELECT * FROM hash WHERE a IN [^1^] AND n = 1)")),
         IN("0") "EXISTS() must contain a single item read with additional condition"},
        {"ExecuteTransaction",
         TRANSACTION("{'Statement':'DELETE FROM hash WHERE a = ?','Parameters':[{'SS':[]}]}"),
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"ExecuteTransaction",
         TRANSACTION(ONE("DELETE FROM hash WHERE a = ^1^") "," ONE("DELETE FROM nope WHERE a = ^1^")),
         CANCELLED("None, ResourceNotFound") NONE
         ",{'Code':'ResourceNotFound','Message':'Requested resource not found'}]}"},
        {"ExecuteTransaction", TRANSACTION(ONE("DELETE FROM pair WHERE a = ^1^")),
         CANCELLED("ValidationError")
         "{'Code':'ValidationError','Message':'The provided key element does not match the schema'}]}"},
        {"ExecuteTransaction", TRANSACTION(ONE("INSERT INTO pair VALUE {^a^: ^1^}")),
         CANCELLED("ValidationError") "{'Code':'ValidationError','Message':'One or more parameter values were "
         "invalid: Missing the key b in the item'}]}"},
        {"ExecuteTransaction", TRANSACTION(ONE("INSERT INTO hash VALUE {^a^: ^^}")),
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key attribute "
         "cannot contain an empty string value. Key: a"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define COUNTED(rest)                                                                                        \
    "{'ClientRequestToken':'t','ReturnConsumedCapacity':'TOTAL','TransactStatements':[{'Statement':"         \
    "'UPDATE hash SET n = n + 1 WHERE a = ?','Parameters':[{'S':'" rest "'}]}]}"
#define COST(axis)                                                                                           \
    "{'Responses':[],'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':2.0,'" axis "':2.0}]}"

TEST(a_token_stands_for_statements_and_parameters)
{
    static const struct exchange exchanges[] = {
        {"ExecuteTransaction", TRANSACTION(ONE("INSERT INTO hash VALUE {^a^: ^1^, ^n^: 1}")), "{'Responses':[]}"},
        {"ExecuteTransaction", COUNTED("1"), COST("WriteCapacityUnits")},
        {"ExecuteTransaction", COUNTED("1"), COST("ReadCapacityUnits")},
        {"ExecuteTransaction", COUNTED("2"),
         "IdempotentParameterMismatchException: DynamoDB rejected the request because you retried a request with "
         "a different payload but with an idempotent token that was already used."},
        {"ExecuteStatement", "{'Statement':'SELECT n FROM hash WHERE a = ^1^'}", "{'Items':[{'n':{'N':'2'}}]}"},
    };
    check_statements(exchanges, sizeof exchanges / sizeof *exchanges);
}
/* clang-format on */
