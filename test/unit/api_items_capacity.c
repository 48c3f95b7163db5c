/* Consumed capacity and item collection metrics of single writes. */
#include "unit/api_items.h"

TEST(a_write_charges_the_change_of_each_index)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET c = :c','ExpressionAttributeValues':{':c':{'S':'c'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':2.0,'Table':{'CapacityUnits':1.0},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET d = :d','ExpressionAttributeValues':{':d':{'S':'d'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':3.0,'Table':{'CapacityUnits':1.0},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':1.0},'gall':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET c = :c','ExpressionAttributeValues':{':c':{'S':'cc'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':6.0,'Table':{'CapacityUnits':1.0},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':2.0}},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':2.0},'gall':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET f = :f','ExpressionAttributeValues':{':f':{'S':'f'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':2.0,'Table':{'CapacityUnits':1.0},"
         "'GlobalSecondaryIndexes':{'gall':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET f = :f','ExpressionAttributeValues':{':f':{'S':'f'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'SET e = :f','ExpressionAttributeValues':{':f':{'S':'f'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':3.0,'Table':{'CapacityUnits':1.0},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':1.0},'gall':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES',"
         "'UpdateExpression':'REMOVE d'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':3.0,'Table':{'CapacityUnits':1.0},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':1.0},'gall':{'CapacityUnits':1.0}}}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'TOTAL',"
         "'UpdateExpression':'REMOVE d'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'TOTAL',"
         "'UpdateExpression':'SET d = :d','ExpressionAttributeValues':{':d':{'S':'d'}}}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':3.0}}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'cc'},'d':{'S':'d'},"
         "'e':{'S':'f'},'f':{'S':'f'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"DeleteItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':4.0,'Table':{'CapacityUnits':1.0},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':1.0},'gall':{'CapacityUnits':1.0}}}}"},
        {"DeleteItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnConsumedCapacity':'NONE'}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"GetItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'ReturnConsumedCapacity':'INDEXES','ConsistentRead':true}",
         "{'Item':{'a':{'S':'1'}},'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0,"
         "'Table':{'CapacityUnits':1.0}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'2'}},'ReturnConsumedCapacity':'TOTAL'}",
         "{'ConsumedCapacity':{'TableName':'hash','CapacityUnits':0.5}}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'2'}},'ReturnConsumedCapacity':'TOTAL'}",
         "{'ConsumedCapacity':{'TableName':'hash','CapacityUnits':1.0}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(item_collections_are_measured_where_local_indexes_are)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnItemCollectionMetrics':'SIZE'}",
         "{'ItemCollectionMetrics':{'ItemCollectionKey':{'a':{'S':'1'}},'SizeEstimateRangeGB':[0.0,1.0]}}"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnItemCollectionMetrics':'SIZE',"
         "'ReturnValues':'ALL_NEW','ReturnConsumedCapacity':'TOTAL'}",
         "{'Attributes':{'a':{'S':'1'},'b':{'S':'1'}},'ConsumedCapacity':{'TableName':'indexed',"
         "'CapacityUnits':1.0},'ItemCollectionMetrics':{'ItemCollectionKey':{'a':{'S':'1'}},"
         "'SizeEstimateRangeGB':[0.0,1.0]}}"},
        {"DeleteItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnItemCollectionMetrics':'SIZE'}",
         "{'ItemCollectionMetrics':{'ItemCollectionKey':{'a':{'S':'1'}},'SizeEstimateRangeGB':[0.0,1.0]}}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'}},'ReturnItemCollectionMetrics':'NONE'}",
         "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnItemCollectionMetrics':'SIZE'}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ReturnItemCollectionMetrics':'SOME'}",
         "ValidationException: 1 validation error detected: Value 'SOME' at 'returnItemCollectionMetrics' "
         "failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
