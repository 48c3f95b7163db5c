/* PutItem and DeleteItem: what they store and answer, what they refuse and in which order. */
#include "unit/api_items.h"

TEST(an_item_is_put_and_read_back)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'text'},'e':{'S':''},'n':{'N':'01.50'},"
         "'b':{'B':'AAEC'},'t':{'BOOL':true},'f':{'BOOL':false},'z':{'NULL':true},"
         "'l':{'L':[{'S':'x'},{'N':'1'},{'L':[]}]},'m':{'M':{'k':{'M':{}}}},'ss':{'SS':['b','a']},"
         "'ns':{'NS':['10','9']},'bs':{'BS':['AQ==','AA==']}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'b':{'B':'AAEC'},'bs':{'BS':['AA==','AQ==']},'e':{'S':''},"
         "'f':{'BOOL':false},'l':{'L':[{'S':'x'},{'N':'1'},{'L':[]}]},'m':{'M':{'k':{'M':{}}}},"
         "'n':{'N':'1.5'},'ns':{'NS':['9',"
         "'10']},'s':{'S':'text'},'ss':{'SS':['a','b']},'t':{'BOOL':true},'z':{'NULL':true}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'2'}}}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'n':{'N':'1e3'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'n':{'N':'1000'}}}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'twice'},'b':{'S':'1'},'b':{'S':'2'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'twice'}}}",
         "{'Item':{'a':{'S':'twice'},'b':{'S':'2'}}}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-5'},'c':{'S':'c'}}}", "{}"},
        {"GetItem", "{'TableName':'pair','Key':{'a':{'S':'x'},'b':{'N':'-5.0'}}}",
         "{'Item':{'a':{'S':'x'},'b':{'N':'-5'},'c':{'S':'c'}}}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'ü😀'},'v':{'S':'\\u0001\\\\/'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'ü😀'}}}",
         "{'Item':{'a':{'S':'ü😀'},'v':{'S':'\\u0001\\\\/'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(put_and_delete_return_old_images)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnValues':'ALL_OLD'}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'v':{'S':'2'}},'ReturnValues':'ALL_OLD'}",
         "{'Attributes':{'a':{'S':'1'}}}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'v':{'S':'3'}},'ReturnValues':'ALL_OLD'}",
         "{'Attributes':{'a':{'S':'1'},'v':{'S':'2'}}}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnValues':'NONE'}", "{}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'ALL_OLD'}",
         "{'Attributes':{'a':{'S':'1'}}}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'ALL_OLD'}", "{}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(conditions_decide_over_put_and_delete)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_not_exists(a)'}", "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_not_exists(a)'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_not_exists(a)',"
         "'ReturnValuesOnConditionCheckFailure':'NONE'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_not_exists(a)',"
         "'ReturnValuesOnConditionCheckFailure':'ALL_OLD','ReturnConsumedCapacity':'TOTAL'}",
         "{'__type':'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException','message':'The "
         "conditional request failed','Item':{'a':{'S':'1'}}}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'new'}},'ConditionExpression':'attribute_exists(a)',"
         "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'v':{'S':'2'}},'ConditionExpression':'#a = "
         ":a','ExpressionAttributeNames':{'#a':'a'},'ExpressionAttributeValues':{':a':{'S':'1'}}}",
         "{}"},
        {"DeleteItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ConditionExpression':'v = "
         ":v','ExpressionAttributeValues':{':v':{'S':'1'}},'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
         "{'__type':'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException','message':'The "
         "conditional request failed','Item':{'a':{'S':'1'},'v':{'S':'2'}}}"},
        {"DeleteItem",
         "{'TableName':'hash','Key':{'a':{'S':'none'}},'ConditionExpression':'v = "
         ":v','ExpressionAttributeValues':{':v':{'S':'1'}},'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"DeleteItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ConditionExpression':'v = "
         ":v','ExpressionAttributeValues':{':v':{'S':'2'}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(put_refuses_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        /* parameters that do not go together */
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{}},'Expected':{'a':{}},'ConditionExpression':'',"
         "'ExpressionAttributeNames':{},'ExpressionAttributeValues':{},'ReturnValues':'ALL_NEW'}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{}},'Expected':{'a':{}},'ConditionalOperator':'AND',"
         "'ConditionExpression':''}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {Expected, ConditionalOperator} Expression parameters: "
         "{ConditionExpression}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{}},'Expected':{'a':{}},'ExpressionAttributeNames':{},"
         "'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{}},'Expected':{'a':{}},'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "ConditionExpression is null"},
        /* values */
        {"PutItem", "{'TableName':'hash','Item':{'a':{}},'Expected':{'a':{}},'ReturnValues':'ALL_NEW'}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'SS':[]}},'ConditionExpression':''}",
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'a','N':'1'}}}",
         "ValidationException: Supplied AttributeValue has more than one datatypes set, must contain exactly "
         "one of the supported datatypes"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'N':'x'}}}",
         "ValidationException: The parameter cannot be converted to a numeric value: x"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'x'},'':{'S':'x'}}}",
         "ValidationException: Empty attribute name"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'N':'x'},'':{'S':'x'}}}",
         "ValidationException: Empty attribute name"},
        /* what to return */
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'Expected':{'a':{}},'ReturnValues':'ALL_NEW'}",
         "ValidationException: ReturnValues can only be ALL_OLD or NONE"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ReturnValues':'UPDATED_OLD'}",
         "ValidationException: ReturnValues can only be ALL_OLD or NONE"},
        {"PutItem", "{'TableName':'missing','Item':{'a':{'S':'1'}},'ReturnValues':'UPDATED_NEW'}",
         "ValidationException: ReturnValues can only be ALL_OLD or NONE"},
        /* expressions */
        {"PutItem", "{'TableName':'missing','Item':{'a':{'S':'1'}},'Expected':{'a':{}}}",
         "ValidationException: One or more parameter values were invalid: Value must be provided when Exists "
         "is null for Attribute: a"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ExpressionAttributeNames':{},"
         "'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeNames must not be empty"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'',"
         "'ExpressionAttributeNames':{'#a':'a'},'ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues must not be empty"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'',"
         "'ExpressionAttributeNames':{'a':''},'ExpressionAttributeValues':{'b':{}}}",
         "ValidationException: ExpressionAttributeNames contains invalid key: Syntax error; key: \"a\""},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'',"
         "'ExpressionAttributeNames':{'#a':''},'ExpressionAttributeValues':{'b':{}}}",
         "ValidationException: ExpressionAttributeNames contains invalid value: Empty attribute name for key "
         "#a"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ExpressionAttributeNames':{'#a-b':'a'}}",
         "ValidationException: ExpressionAttributeNames contains invalid key: Syntax error; key: \"#a-b\""},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ExpressionAttributeNames':{'#':'a'}}",
         "ValidationException: ExpressionAttributeNames contains invalid key: Syntax error; key: \"#\""},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ExpressionAttributeValues':{'b':{}}}",
         "ValidationException: ExpressionAttributeValues contains invalid key: Syntax error; key: \"b\""},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'','ExpressionAttributeValues':{':b':{}}}",
         "ValidationException: ExpressionAttributeValues contains invalid value: Supplied AttributeValue is "
         "empty, must contain exactly one of the supported datatypes for key :b"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'',"
         "'ExpressionAttributeValues':{':b':{'SS':['a','a']}}}",
         "ValidationException: ExpressionAttributeValues contains invalid value: One or more parameter "
         "values were invalid: Input collection [a, a] contains duplicates. for key :b"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'',"
         "'ExpressionAttributeValues':{':b':{'S':''}}}",
         "ValidationException: Invalid ConditionExpression: The expression can not be empty;"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'a = = b'}",
         "ValidationException: Invalid ConditionExpression: Syntax error; token: \"=\", near: \"= = b\""},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'a = :x'}",
         "ValidationException: Invalid ConditionExpression: An expression attribute value used in expression "
         "is not defined; attribute value: :x"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'#x = a'}",
         "ValidationException: Invalid ConditionExpression: An expression attribute name used in the "
         "document path is not defined; attribute name: #x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_exists(a)',"
         "'ExpressionAttributeNames':{'#x':'a','#y':'b'}}",
         "ValidationException: Value provided in ExpressionAttributeNames unused in expressions: keys: {#x, "
         "#y}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_exists(a)',"
         "'ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Value provided in ExpressionAttributeValues unused in expressions: keys: "
         "{:x}"},
        {"PutItem",
         "{'TableName':'missing','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_exists(a)',"
         "'ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Value provided in ExpressionAttributeValues unused in expressions: keys: "
         "{:x}"},
        /* the table and its schema */
        {"PutItem", "{'TableName':'missing','Item':{'b':{'S':''}}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"PutItem", "{'TableName':'hash','Item':{}}",
         "ValidationException: One or more parameter values were invalid: Missing the key a in the item"},
        {"PutItem", "{'TableName':'hash','Item':{'b':{'S':''}}}",
         "ValidationException: One or more parameter values were invalid: Missing the key a in the item"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for key a expected: "
         "S actual: N"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':''},'b':{'N':'1'}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'}}}",
         "ValidationException: One or more parameter values were invalid: Missing the key b in the item"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'S':'x'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for key b expected: "
         "N actual: S"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'x'},'b':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: b"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'x'},'b':{'S':'x'},'c':{'N':'1'},'d':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key c "
         "Expected: S Actual: N IndexName: gsi"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'x'},'b':{'S':'x'},'d':{'SS':['x']}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: SS IndexName: gsi"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'x'},'b':{'S':'x'},'c':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. A value specified for a secondary "
         "index key is not supported. The AttributeValue for a key attribute cannot contain an empty string "
         "value. IndexName: gsi, IndexKey: c"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'a.b = "
         ":x','ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'size(a[0]) = "
         ":x','ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'x'},'b':{'S':'x'}},'ConditionExpression':'NOT c[1] = "
         ":x','ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: IndexKey: c"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(delete_refuses_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{}},'Expected':{'a':{}},'ConditionExpression':''}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'NULL':false}},'ReturnValues':'ALL_NEW'}",
         "ValidationException: One or more parameter values were invalid: Null attribute value types must "
         "have the value of true"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnValues':'ALL_NEW'}",
         "ValidationException: ReturnValues can only be ALL_OLD or NONE"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ConditionExpression':''}",
         "ValidationException: Invalid ConditionExpression: The expression can not be empty;"},
        {"DeleteItem", "{'TableName':'missing','Key':{}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"DeleteItem", "{'TableName':'hash','Key':{}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem", "{'TableName':'hash','Key':{'b':{'S':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'},'b':{'S':'2'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"DeleteItem", "{'TableName':'pair','Key':{'a':{'S':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem", "{'TableName':'pair','Key':{'a':{'S':'1'},'b':{'S':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"DeleteItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ConditionExpression':'a.b = "
         ":x','ExpressionAttributeValues':{':x':{'S':''}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(tables_go_by_name_or_arn)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/hash','Item':{'a':{'S':'1'}},"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "{'ConsumedCapacity':{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/hash','CapacityUnits':1.0}}"},
        {"GetItem",
         "{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/hash','Key':{'a':{'S':'1'}},"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "{'Item':{'a':{'S':'1'}},"
         "'ConsumedCapacity':{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/hash',"
         "'CapacityUnits':0.5}}"},
        {"PutItem",
         "{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/missing','Item':{'a':{'S':'1'}}}",
         "ResourceNotFoundException: Requested resource not found"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
