/* GetItem and BatchGetItem. */
#include "unit/api_items.h"

TEST(projections_take_parts_of_items)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'x'},'l':{'L':[{'S':'0'},{'S':'1'},{'S':'2'}]},"
         "'m':{'M':{'k':{'S':'v'},'o':{'M':{'p':{'N':'1'}}}}}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'s'}",
         "{'Item':{'s':{'S':'x'}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'l[2], l[0], m.o.p'}",
         "{'Item':{'l':{'L':[{'S':'0'},{'S':'2'}]},'m':{'M':{'o':{'M':{'p':{'N':'1'}}}}}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'nothing'}",
         "{'Item':{}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'2'}},'ProjectionExpression':'s'}", "{}"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'#s, "
         "#m.#k','ExpressionAttributeNames':{'#s':'s','#m':'m','#k':'k'}}",
         "{'Item':{'m':{'M':{'k':{'S':'v'}}},'s':{'S':'x'}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':['s','a','nothing']}",
         "{'Item':{'a':{'S':'1'},'s':{'S':'x'}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':['nothing']}",
         "{'Item':{}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(get_refuses_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{}},'AttributesToGet':['a','a'],'ProjectionExpression':'',"
         "'ExpressionAttributeNames':{}}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributesToGet} Expression parameters: "
         "{ProjectionExpression}"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{}},'AttributesToGet':['a','a'],'ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{}},'AttributesToGet':['a','a']}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'BS':[]}},'ProjectionExpression':''}",
         "ValidationException: One or more parameter values were invalid: Binary sets should not be empty"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':['a','b','a']}",
         "ValidationException: One or more parameter values were invalid: Duplicate value in attribute name: "
         "a"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':['']}",
         "ValidationException: Empty attribute name"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':[null]}",
         "ValidationException: Empty attribute name"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'#a',"
         "'ExpressionAttributeNames':{'#a':null}}",
         "ValidationException: ExpressionAttributeNames contains invalid value: Empty attribute name for key "
         "#a"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':[]}",
         "ValidationException: 1 validation error detected: Value '[]' at 'attributesToGet' failed to "
         "satisfy constraint: Member must have length greater than or equal to 1"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'','ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames must not be empty"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':''}",
         "ValidationException: Invalid ProjectionExpression: The expression can not be empty;"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'a, a'}",
         "ValidationException: Invalid ProjectionExpression: Two document paths overlap with each other; "
         "must remove or rewrite one of these paths; path one: [a], path two: [a]"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'b','ExpressionAttributeNames':{'#b':'b'}}",
         "ValidationException: Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"},
        {"GetItem", "{'TableName':'missing','Key':{}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"GetItem", "{'TableName':'hash','Key':{}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"GetItem", "{'TableName':'hash','Key':{'b':{'S':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'pair','Key':{'a':{'S':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'pair','Key':{'a':{'S':'1'},'c':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'a.b'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
        {"GetItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ProjectionExpression':'b[0]'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: b"},
        {"GetItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ProjectionExpression':'x, d.y'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: IndexKey: d"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnConsumedCapacity':'SOME'}",
         "ValidationException: 1 validation error detected: Value 'SOME' at 'returnConsumedCapacity' failed "
         "to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"},
        {"GetItem", "{'TableName':'hash'}",
         "ValidationException: 1 validation error detected: Value null at 'key' failed to satisfy "
         "constraint: Member must not be null"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(batches_read_from_many_tables)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'v':{'S':'x'}}}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'2'},'v':{'S':'y'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'1'},'b':{'N':'1'},'v':{'S':'z'}}}", "{}"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'2'}},{'a':{'S':'3'}},{'a':{'S':'1'}}]},"
         "'pair':{'Keys':[{'a':{'S':'1'},'b':{'N':'1'}}],'ConsistentRead':true,'ProjectionExpression':'#v',"
         "'ExpressionAttributeNames':{'#v':'v'}}},'ReturnConsumedCapacity':'TOTAL'}",
         "{'Responses':{'hash':[{'a':{'S':'2'},'v':{'S':'y'}},{'a':{'S':'1'},'v':{'S':'x'}}],"
         "'pair':[{'v':{'S':'z'}}]},'UnprocessedKeys':{},"
         "'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':1.5},"
         "{'TableName':'pair','CapacityUnits':1.0}]}"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'9'}}],'AttributesToGet':['a']}},"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'Responses':{'hash':[]},'UnprocessedKeys':{},"
         "'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':0.5,'Table':{'CapacityUnits':0.5}}]}"},
        {"BatchGetItem",
         "{'RequestItems':{'arn:aws:dynamodb:us-east-1:000000000000:table/hash':{'Keys':[{'a':{'S':'1'}}],"
         "'AttributesToGet':['v']}}}",
         "{'Responses':{'arn:aws:dynamodb:us-east-1:000000000000:table/hash':[{'v':{'S':'x'}}]},'UnprocessedKeys':{}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(batch_get_refuses_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"BatchGetItem", "{}",
         "ValidationException: 1 validation error detected: Value null at 'requestItems' failed to satisfy "
         "constraint: Member must not be null"},
        {"BatchGetItem", "{'RequestItems':{}}",
         "ValidationException: The requestItems parameter is required for BatchGetItem"},
        {"BatchGetItem",
         "{'RequestItems':{'arn:aws:dynamodb:us-east-1:000000000000:table/none':{'Keys':[{'a':{'S':'1'}}]}}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"BatchGetItem", "{'RequestItems':{'hash':{}}}",
         "ValidationException: 1 validation error detected: Value null at 'requestItems.hash.member.keys' "
         "failed to satisfy constraint: Member must not be null"},
        {"BatchGetItem", "{'RequestItems':{'hash':null}}",
         "ValidationException: 1 validation error detected: Value null at 'requestItems.hash.member.keys' "
         "failed to satisfy constraint: Member must not be null"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[null]}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[]}}}",
         "ValidationException: 1 validation error detected: Value at 'RequestItems.hash.member.Keys' failed "
         "to satisfy constraint: Member must have length greater than or equal to 1"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{}}],'AttributesToGet':['a'],'ProjectionExpression':''}}}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributesToGet} Expression parameters: "
         "{ProjectionExpression}"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'1'}}],'AttributesToGet':['a']},"
         "'pair':{'Keys':[{'a':{'S':'1'},'b':{'N':'1'}}],'ProjectionExpression':'a'}}}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributesToGet} Expression parameters: "
         "{ProjectionExpression}"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{}}],'ExpressionAttributeNames':{}}}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{}}],'AttributesToGet':['a','a']}}}",
         "ValidationException: One or more parameter values were invalid: Duplicate value in attribute name: "
         "a"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{}}],'ProjectionExpression':''}}}",
         "ValidationException: Invalid ProjectionExpression: The expression can not be empty;"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{}}]}}}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"BatchGetItem", "{'RequestItems':{'missing':{'Keys':[{'a':{'S':'1'}},{'a':{'S':'1'}}]}}}",
         "ValidationException: Provided list of item keys contains duplicates"},
        {"BatchGetItem", "{'RequestItems':{'missing':{'Keys':[{'a':{'S':'1'}}]},'hash':{'Keys':[{}]}}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{}]}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'1'}},{'b':{'S':'1'}}]}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{'S':''}}]}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"BatchGetItem", "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'1'}}],'ProjectionExpression':'a.b'}}}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(batch_get_names_its_tables_as_they_may_be_called)
{
    struct world world;
    items_open(&world);
    struct slice reply = ask_quoted(
        &world, "BatchGetItem",
        "{'RequestItems': {'bad!name':{ 'Keys':[{'a':{'S':'1 \\\\\\'2'}}]\n} },'ReturnConsumedCapacity':'ALL'}");
    CHECK_TEXT(
        member_text(&world, reply, "message"),
        "2 validation errors detected: Value '{\"bad!name\":{\"Keys\":[{\"a\":{\"S\":\"1 \\\\\\\"2\"}}]}}' at "
        "'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length "
        "less than or equal to 255, Member must have length greater than or equal to 3, Member must satisfy "
        "regular expression pattern: [a-zA-Z0-9_.-]+]; Value 'ALL' at 'returnConsumedCapacity' failed to satisfy "
        "constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]");
    world_close(&world);
}
