/* BatchWriteItem, and the limits of both batches. */
#include "unit/api_items.h"

TEST(a_batch_writes_to_many_tables)
{
    static const struct exchange exchanges[] = {
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'},'v':{'S':'x'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'2'}}}},{'PutRequest':{'Item':{'a':{'S':'3'}}}}],"
         "'pair':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'N':'1'}}}}]}}",
         "{'UnprocessedItems':{}}"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'1'}},{'a':{'S':'2'}},{'a':{'S':'3'}}]}}}",
         "{'Responses':{'hash':[{'a':{'S':'1'},'v':{'S':'x'}},{'a':{'S':'2'}},{'a':{'S':'3'}}]},'UnprocessedKeys':{}}"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'},'v':{'S':'y'}}}},"
         "{'DeleteRequest':{'Key':{'a':{'S':'2'}}}},{'DeleteRequest':{'Key':{'a':{'S':'nothing'}}}}]},"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "{'UnprocessedItems':{},'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':3.0}]}"},
        {"BatchGetItem",
         "{'RequestItems':{'hash':{'Keys':[{'a':{'S':'1'}},{'a':{'S':'2'}},{'a':{'S':'3'}}]}}}",
         "{'Responses':{'hash':[{'a':{'S':'1'},'v':{'S':'y'}},{'a':{'S':'3'}}]},'UnprocessedKeys':{}}"},
        {"BatchWriteItem",
         "{'RequestItems':{'arn:aws:dynamodb:us-east-1:000000000000:table/"
         "hash':[{'DeleteRequest':{'Key':{'a':{'S':'1'}}}}]},'ReturnConsumedCapacity':'INDEXES'}",
         "{'UnprocessedItems':{},"
         "'ConsumedCapacity':[{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/hash',"
         "'CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}]}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
        {"BatchWriteItem",
         "{'RequestItems':{'indexed':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'c'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'2'},'d':{'S':'d'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'2'},'b':{'S':'1'}}}}],"
         "'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}}}]},'ReturnConsumedCapacity':'INDEXES',"
         "'ReturnItemCollectionMetrics':'SIZE'}",
         "{'UnprocessedItems':{},'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':5.0,"
         "'Table':{'CapacityUnits':3.0},'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}},"
         "'GlobalSecondaryIndexes':{'gall':{'CapacityUnits':1.0}}},"
         "{'TableName':'hash','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}],"
         "'ItemCollectionMetrics':{'indexed':[{'ItemCollectionKey':{'a':{'S':'1'}},"
         "'SizeEstimateRangeGB':[0.0,"
         "1.0]},{'ItemCollectionKey':{'a':{'S':'2'}},'SizeEstimateRangeGB':[0.0,1.0]}]}}"},
        {"BatchWriteItem",
         "{'RequestItems':{'indexed':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'c'}}}}]},"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'UnprocessedItems':{},'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':1.0,"
         "'Table':{'CapacityUnits':1.0}}]}"},
        {"BatchWriteItem",
         "{'RequestItems':{'indexed':[{'DeleteRequest':{'Key':{'a':{'S':'1'},'b':{'S':'1'}}}}]},"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'UnprocessedItems':{},'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':2.0,"
         "'Table':{'CapacityUnits':1.0},'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}}}]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(a_batch_write_is_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"BatchWriteItem", "{}",
         "ValidationException: 1 validation error detected: Value null at 'requestItems' failed to satisfy "
         "constraint: Member must not be null"},
        {"BatchWriteItem", "{'RequestItems':{}}",
         "ValidationException: The requestItems parameter is required for BatchWriteItem"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[]}}",
         "ValidationException: 1 validation error detected: Value '{hash=[]}' at 'requestItems' failed to "
         "satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal "
         "to 25, Member must have length greater than or equal to 1]"},
        {"BatchWriteItem", "{'RequestItems':{'hash':null}}",
         "ValidationException: The batch write request list for a table cannot be null or empty: hash"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[null]}}",
         "ValidationException: Supplied AttributeValue has more than one datatypes set, must contain exactly "
         "one of the supported datatypes"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{},'DeleteRequest':{}}]}}",
         "ValidationException: 2 validation errors detected: Value null at "
         "'requestItems.hash.member.1.member.deleteRequest.key' failed to satisfy constraint: Member must "
         "not be null; Value null at 'requestItems.hash.member.1.member.putRequest.item' failed to satisfy "
         "constraint: Member must not be null"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{}}}},{}]}}",
         "ValidationException: Supplied AttributeValue has more than one datatypes set, must contain exactly "
         "one of the supported datatypes"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}},'DeleteRequest':{'Key':{'a':{'S':'1'}}}}]}}",
         "ValidationException: Supplied AttributeValue has more than one datatypes set, must contain exactly "
         "one of the supported datatypes"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'SS':[]}}}}]}}",
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'DeleteRequest':{'Key':{'a':{'S':'1','N':'1'}}}}]}}",
         "ValidationException: Supplied AttributeValue has more than one datatypes set, must contain exactly "
         "one of the supported datatypes"},
        {"BatchWriteItem",
         "{'RequestItems':{'missing':[{'PutRequest':{'Item':{'a':{'S':'1'}}}},"
         "{'DeleteRequest':{'Key':{'a':{'S':'1'}}}}]}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"BatchWriteItem",
         "{'RequestItems':{'missing':[{'PutRequest':{'Item':{'a':{'S':'1'}}}}],"
         "'hash':[{'PutRequest':{'Item':{'b':{'S':'1'}}}}]}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'b':{'S':'1'}}}}]}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'N':'1'}}}}]}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':''}}}}]}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'DeleteRequest':{'Key':{'b':{'S':'1'}}}}]}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'DeleteRequest':{'Key':{'a':{'S':'1'},'b':{'S':'1'}}}}]}}",
         "ValidationException: The provided key element does not match the schema"},
        {"BatchWriteItem", "{'RequestItems':{'hash':[{'DeleteRequest':{'Key':{'a':{'S':''}}}}]}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"BatchWriteItem",
         "{'RequestItems':{'indexed':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'N':'1'}}}}]}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key c "
         "Expected: S Actual: N IndexName: gsi"},
        {"BatchWriteItem",
         "{'RequestItems':{'indexed':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'1'},'d':{'S':''}}}}]}}",
         "ValidationException: One or more parameter values are not valid. A value specified for a secondary "
         "index key is not supported. The AttributeValue for a key attribute cannot contain an empty string "
         "value. IndexName: gsi, IndexKey: d"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'2'}}}},{'DeleteRequest':{'Key':{'a':{'S':'1'}}}}]}}",
         "ValidationException: Provided list of item keys contains duplicates"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'1'},'v':{'S':'x'}}}}],"
         "'pair':[{'PutRequest':{'Item':{'a':{'S':'1'}}}}]}}",
         "ValidationException: Provided list of item keys contains duplicates"},
        {"BatchWriteItem",
         "{'RequestItems':{'pair':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'N':'1'}}}},"
         "{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'N':'1.0'}}}}]}}",
         "ValidationException: Provided list of item keys contains duplicates"},
        {"BatchWriteItem",
         "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}}},{'PutRequest':{'Item':{'b':{'S':'1'}}}}]}}",
         "ValidationException: The provided key element does not match the schema"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
