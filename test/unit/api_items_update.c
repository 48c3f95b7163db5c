/* UpdateItem with expressions. */
#include "unit/api_items.h"

TEST(an_update_changes_or_begins_an_item)
{
    static const struct exchange exchanges[] = {
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{'Item':{'a':{'S':'1'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = :n, s = "
         ":s','ExpressionAttributeValues':{':n':{'N':'1'},':s':{'S':'x'}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'n':{'N':'1'},'s':{'S':'x'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = n + :n REMOVE s ADD t :t "
         "DELETE u :t','ExpressionAttributeValues':{':n':{'N':'0.5'},':t':{'SS':['q']}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'n':{'N':'1.5'},'t':{'SS':['q']}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET #m = "
         ":m','ExpressionAttributeValues':{':m':{'M':{'x':{'N':'1'}}}},'ExpressionAttributeNames':{'#m':'m'}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET m.x = m.x - :n, m.y = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'m':{'M':{'x':{'N':'0'},'y':{'N':'1'}}},'n':{'N':'1.5'},'t':{'SS':['q']}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET l = list_append(if_not_exists(l, "
         ":e), :l)','ExpressionAttributeValues':{':e':{'L':[]},':l':{'L':[{'N':'1'},{'N':'2'}]}}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE l[0] SET l[9] = "
         ":n','ExpressionAttributeValues':{':n':{'N':'3'}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'l':{'L':[{'N':'2'},{'N':'3'}]},'m':{'M':{'x':{'N':'0'},'y':{'N':'1'}}},"
         "'n':{'N':'1.5'},'t':{'SS':['q']}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'DELETE t "
         ":t','ExpressionAttributeValues':{':t':{'SS':['q']}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'l':{'L':[{'N':'2'},{'N':'3'}]},'m':{'M':{'x':{'N':'0'},'y':{'N':'1'}}},"
         "'n':{'N':'1.5'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_update_returns_what_was_asked_for)
{
    static const struct exchange exchanges[] = {
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnValues':'ALL_OLD'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'2'}},'ReturnValues':'ALL_OLD'}",
         "{'Attributes':{'a':{'S':'1'},'n':{'N':'1'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'3'}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'1'},'n':{'N':'3'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = n + "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnValues':'UPDATED_OLD'}",
         "{'Attributes':{'n':{'N':'3'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = n + "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnValues':'UPDATED_NEW'}",
         "{'Attributes':{'n':{'N':'5'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET x = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnValues':'UPDATED_OLD'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE "
         "x','ReturnValues':'UPDATED_NEW'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE x, "
         "n','ReturnValues':'UPDATED_OLD'}",
         "{'Attributes':{'n':{'N':'5'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET m = "
         ":m','ExpressionAttributeValues':{':m':{'M':{'x':{'N':'1'},'y':{'N':'2'}}}},'ReturnValues':'NONE'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET m.x = "
         ":n','ExpressionAttributeValues':{':n':{'N':'9'}},'ReturnValues':'UPDATED_NEW'}",
         "{'Attributes':{'m':{'M':{'x':{'N':'9'}}}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET m.x = "
         ":n','ExpressionAttributeValues':{':n':{'N':'8'}},'ReturnValues':'UPDATED_OLD'}",
         "{'Attributes':{'m':{'M':{'x':{'N':'9'}}}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'no'}},'UpdateExpression':'REMOVE "
         "x','ReturnValues':'ALL_NEW','ReturnConsumedCapacity':'TOTAL'}",
         "{'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'no'}},'UpdateExpression':'DELETE x "
         ":x','ExpressionAttributeValues':{':x':{'SS':['a']}},'ReturnValues':'ALL_NEW'}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'no'}}}", "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'yes'}},'UpdateExpression':'REMOVE x SET y = "
         ":y','ExpressionAttributeValues':{':y':{'N':'1'}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'yes'},'y':{'N':'1'}}}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'UPDATED_NEW'}", "{}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'1'},'m':{'M':{'x':{'N':'8'},'y':{'N':'2'}}}}}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'new'}},'ReturnValues':'ALL_OLD'}", "{}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'newer'}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'newer'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(conditions_decide_over_updates)
{
    static const struct exchange exchanges[] = {
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ConditionExpression':'attribute_exists(a)'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}},'ConditionExpression':'attribute_not_exists(n)'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'2'},':o':{'N':'2'}},'ConditionExpression':'n = "
         ":o','ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
         "{'__type':'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException','message':'The "
         "conditional request failed','Item':{'a':{'S':'1'},'n':{'N':'1'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'N':'2'},':o':{'N':'1'}},'ConditionExpression':'n = "
         ":o','ReturnValues':'UPDATED_NEW'}",
         "{'Attributes':{'n':{'N':'2'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'no'}},'ConditionExpression':'attribute_exists(a)',"
         "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'no'}}}", "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_update_is_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{}},'UpdateExpression':'','AttributeUpdates':{'x':{}},"
         "'Expected':{'a':{}},'ConditionalOperator':'OR','ConditionExpression':'',"
         "'ExpressionAttributeNames':{}}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributeUpdates, Expected, ConditionalOperator} Expression "
         "parameters: {UpdateExpression, ConditionExpression}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{}},'AttributeUpdates':{'x':{}},'ExpressionAttributeNames':{},"
         "'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{}},'AttributeUpdates':{'x':{}},'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "UpdateExpression and ConditionExpression are null"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{}},'UpdateExpression':''}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'','ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames must not be empty"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':''}",
         "ValidationException: Invalid UpdateExpression: The expression can not be empty;"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET','ConditionExpression':''}",
         "ValidationException: Invalid UpdateExpression: Syntax error; token: \"<EOF>\", near: \"SET\""},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = :n'}",
         "ValidationException: Invalid UpdateExpression: An expression attribute value used in expression is "
         "not defined; attribute value: :n"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE "
         "n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: Value provided in ExpressionAttributeValues unused in expressions: keys: "
         "{:n}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE n','ConditionExpression':''}",
         "ValidationException: Invalid ConditionExpression: The expression can not be empty;"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE n, n'}",
         "ValidationException: Invalid UpdateExpression: Two document paths overlap with each other; must "
         "remove or rewrite one of these paths; path one: [n], path two: [n]"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'ADD n "
         ":s','ExpressionAttributeValues':{':s':{'S':'x'}}}",
         "ValidationException: Invalid UpdateExpression: Incorrect operand type for operator or function; "
         "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"},
        {"UpdateItem",
         "{'TableName':'missing','Key':{},'UpdateExpression':'SET a = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{},'UpdateExpression':'SET a = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET a = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Cannot update attribute a. This "
         "attribute is part of the key"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'REMOVE a.b'}",
         "ValidationException: One or more parameter values were invalid: Cannot update attribute a. This "
         "attribute is part of the key"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET b = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Cannot update attribute b. This "
         "attribute is part of the key"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET q = a[0]'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET c = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key c "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET d = "
         "if_not_exists(d, :n)','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'ADD c "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key c "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET d = e + "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET d = "
         "list_append(e, f)'}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: L IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'DELETE d "
         ":n','ExpressionAttributeValues':{':n':{'NS':['1']}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: NS IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET c[0] = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: IndexKey: c"},
        /* what only the item can tell */
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET x = y'}",
         "ValidationException: The provided expression refers to an attribute that does not exist in the "
         "item"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET m.x = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: The document path provided in the update expression is invalid for update"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = "
         ":n','ExpressionAttributeValues':{':n':{'S':'text'}}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET n = n + "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: An operand in the update expression has an incorrect data type"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'ADD n "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "ValidationException: An operand in the update expression has an incorrect data type"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'n':{'S':'text'}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET e = "
         ":n','ExpressionAttributeValues':{':n':{'N':'1'}}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET d = e'}",
         "ValidationException: The update expression attempted to update the secondary index key to "
         "unsupported type"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET c = "
         ":n','ExpressionAttributeValues':{':n':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The update expression attempted "
         "to update a secondary index key to a value that is not supported. The AttributeValue for a key "
         "attribute cannot contain an empty string value."},
        {"GetItem", "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'b':{'S':'1'},'e':{'N':'1'}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET d = :n, c = "
         ":m','ExpressionAttributeValues':{':n':{'S':'d'},':m':{'S':'c'}}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'REMOVE c, d'}",
         "{}"},
        {"GetItem", "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'b':{'S':'1'},'e':{'N':'1'}}}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'SOMETHING'}",
         "ValidationException: 1 validation error detected: Value 'SOMETHING' at 'returnValues' failed to "
         "satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, "
         "UPDATED_NEW]"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValuesOnConditionCheckFailure':'SOMETHING'}",
         "ValidationException: 1 validation error detected: Value 'SOMETHING' at "
         "'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value "
         "set: [ALL_OLD, NONE]"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
