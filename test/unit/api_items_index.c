/* Query and Scan of secondary indexes. */
#include "unit/api_items.h"

TEST(a_query_reads_an_index_in_its_order)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'},'d':{'S':'k'},"
         "'e':{'S':'e1'},'f':{'S':'f1'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},"
         "'e':{'S':'e2'},'f':{'S':'f2'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'},'f':{'S':'f3'}}}", "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'},'f':{'S':'f4'}}}",
         "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'2'},'f':{'S':'f5'}}}", "{}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi'}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}},{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}},"
         "{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','ScanIndexForward':false,"
         "'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'S':'1'}},{'b':{'S':'3'}},{'b':{'S':'2'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :a and c = "
         ":c','ExpressionAttributeValues':{':a':{'S':'p'},':c':{'S':'m'}},'IndexName':'lsi','ConsistentRead':true}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}},{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}],"
         "'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Select':'ALL_ATTRIBUTES'}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},'e':{'S':'e2'},'f':{'S':'f2'}},"
         "{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'},'f':{'S':'f3'}},"
         "{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'},'d':{'S':'k'},'e':{'S':'e1'},'f':{'S':'f1'}}],'Count':3,"
         "'ScannedCount':3}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','ProjectionExpression':'f'}",
         "{'Items':[{'f':{'S':'f2'}},{'f':{'S':'f3'}},{'f':{'S':'f1'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :a and begins_with(c, "
         ":c)','ExpressionAttributeValues':{':a':{'S':'p'},':c':{'S':'n'}},'IndexName':'lsi',"
         "'Select':'ALL_PROJECTED_ATTRIBUTES'}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi'}",
         "{'Items':[{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'}},"
         "{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},'e':{'S':'e2'}}],'Count':2,"
         "'ScannedCount':2}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = :c and d > "
         ":d','ExpressionAttributeValues':{':c':{'S':'m'},':d':{'S':'j'}},'IndexName':'gsi'}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},'e':{'S':'e2'}}],'Count':1,"
         "'ScannedCount':1}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'},':e':{'S':'e2'}},'IndexName':'gsi',"
         "'FilterExpression':'e = :e'}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},'e':{'S':'e2'}}],'Count':1,"
         "'ScannedCount':2}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'x'}},'IndexName':'gsi'}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'d = "
         ":d','ExpressionAttributeValues':{':d':{'S':'j'}},'IndexName':'gall','Select':'ALL_ATTRIBUTES'}",
         "{'Items':[{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'},'f':{'S':'f4'}}],'Count':1,"
         "'ScannedCount':1}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'d = "
         ":d','ExpressionAttributeValues':{':d':{'S':'k'}},'IndexName':'gall','Select':'COUNT'}",
         "{'Count':2,'ScannedCount':2}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_index_is_read_in_pages)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'},'d':{'S':'k'},"
         "'e':{'S':'e1'},'f':{'S':'f1'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},"
         "'e':{'S':'e2'},'f':{'S':'f2'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'},'f':{'S':'f3'}}}", "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'},'f':{'S':'f4'}}}",
         "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'2'},'f':{'S':'f5'}}}", "{}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':1}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}}],'Count':1,'ScannedCount':1,"
         "'LastEvaluatedKey':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':1,"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}}}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}],'Count':1,'ScannedCount':1,"
         "'LastEvaluatedKey':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':1,"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}}],'Count':1,'ScannedCount':1,"
         "'LastEvaluatedKey':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':1,"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}}}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':2,'ScanIndexForward':false}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'}},{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}],"
         "'Count':2,'ScannedCount':2,'LastEvaluatedKey':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Limit':2,"
         "'ScanIndexForward':false,'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'}}}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Limit':1}",
         "{'Items':[{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'}}],'Count':1,'ScannedCount':1,"
         "'LastEvaluatedKey':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Limit':1,"
         "'ExclusiveStartKey':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'}}}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},'e':{'S':'e2'}}],'Count':1,"
         "'ScannedCount':1,'LastEvaluatedKey':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Limit':1,"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'}}}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Scan", "{'TableName':'indexed','IndexName':'gsi','Select':'COUNT'}",
         "{'Count':3,'ScannedCount':3}"},
        {"Scan", "{'TableName':'indexed','IndexName':'lsi','Select':'COUNT'}",
         "{'Count':4,'ScannedCount':4}"},
        {"Scan", "{'TableName':'indexed','IndexName':'gall','Select':'COUNT'}",
         "{'Count':3,'ScannedCount':3}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_index_charges_what_it_holds)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'},'d':{'S':'k'},"
         "'e':{'S':'e1'},'f':{'S':'f1'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},"
         "'e':{'S':'e2'},'f':{'S':'f2'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'},'f':{'S':'f3'}}}", "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'},'f':{'S':'f4'}}}",
         "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'2'},'f':{'S':'f5'}}}", "{}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','Select':'COUNT',"
         "'ReturnConsumedCapacity':'INDEXES','ConsistentRead':true}",
         "{'Count':3,'ScannedCount':3,'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':1.0,"
         "'Table':{'CapacityUnits':0.0},'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0}}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'p'}},'IndexName':'lsi','ProjectionExpression':'f',"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'Items':[{'f':{'S':'f2'}},{'f':{'S':'f3'}},{'f':{'S':'f1'}}],'Count':3,'ScannedCount':3,"
         "'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':2.0,'Table':{'CapacityUnits':1.5},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':0.5}}}}"},
        /* What a filter leaves out was read as well. */
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :a','FilterExpression':'b = :b',"
         "'ExpressionAttributeValues':{':a':{'S':'p'},':b':{'S':'3'}},'IndexName':'lsi','ProjectionExpression':'f',"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'Items':[{'f':{'S':'f3'}}],'Count':1,'ScannedCount':3,"
         "'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':2.0,'Table':{'CapacityUnits':1.5},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':0.5}}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Select':'COUNT',"
         "'ReturnConsumedCapacity':'INDEXES'}",
         "{'Count':2,'ScannedCount':2,'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':0.5,"
         "'Table':{'CapacityUnits':0.0},'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':0.5}}}}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'no'}},'IndexName':'gsi','Select':'COUNT',"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "{'Count':0,'ScannedCount':0,'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':0.5}}"},
        {"Scan",
         "{'TableName':'indexed','IndexName':'gsi','Select':'COUNT','ReturnConsumedCapacity':'INDEXES'}",
         "{'Count':3,'ScannedCount':3,'ConsumedCapacity':{'TableName':'indexed','CapacityUnits':0.5,"
         "'Table':{'CapacityUnits':0.0},'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':0.5}}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_index_is_refused_what_it_does_not_hold)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'n'},'d':{'S':'k'},"
         "'e':{'S':'e1'},'f':{'S':'f1'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'m'},'d':{'S':'k'},"
         "'e':{'S':'e2'},'f':{'S':'f2'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'3'},'c':{'S':'m'},'f':{'S':'f3'}}}", "{}"},
        {"PutItem",
         "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'1'},'c':{'S':'m'},'d':{'S':'j'},'f':{'S':'f4'}}}",
         "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'q'},'b':{'S':'2'},'f':{'S':'f5'}}}", "{}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','ConsistentRead':true,"
         "'ExclusiveStartKey':{}}",
         "ValidationException: Consistent reads are not supported on global secondary indexes"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi',"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'}}}",
         "ValidationException: The provided starting key is invalid"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi',"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'},'c':{'N':'1'},'d':{'S':'x'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi',"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'N':'1'},'c':{'S':'x'},'d':{'S':'x'}}}",
         "ValidationException: The provided starting key is invalid: The provided key element does not match "
         "the schema"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi',"
         "'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'},'c':{'S':'x'},'d':{'S':'x'}}}",
         "ValidationException: The provided starting key is outside query boundaries based on provided "
         "conditions"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi'}",
         "ValidationException: Query condition missed key schema element: c"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = :c and a = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi'}",
         "ValidationException: Query condition missed key schema element: d"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'d = :c and a = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gall'}",
         "ValidationException: Query key condition not supported"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :c and b = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'lsi'}",
         "ValidationException: Query condition missed key schema element: c"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Select':'ALL_ATTRIBUTES'}",
         "ValidationException: One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not "
         "supported for global secondary index gsi because its projection type is not ALL"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','Select':'ALL_ATTRIBUTES',"
         "'ProjectionExpression':'a'}",
         "ValidationException: Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','ProjectionExpression':'a, f, "
         "g.h'}",
         "ValidationException: One or more parameter values were invalid: Global secondary index gsi does "
         "not project [f, g]"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','FilterExpression':'d = :c'}",
         "ValidationException: Filter Expression can only contain non-primary key attributes: Primary key "
         "attribute: d"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'c = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'gsi','FilterExpression':'f = :c and "
         "a = :c and NOT g = f'}",
         "ValidationException: One or more parameter values were invalid: Secondary index gsi does not "
         "project one or more filter attributes: [f, g]"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":c','ExpressionAttributeValues':{':c':{'S':'m'}},'IndexName':'lsi','FilterExpression':'f = :c'}",
         "ValidationException: One or more parameter values were invalid: Secondary index lsi does not "
         "project one or more filter attributes: [f]"},
        {"Scan", "{'TableName':'indexed','IndexName':'gsi','ConsistentRead':true}",
         "ValidationException: Consistent reads are not supported on global secondary indexes"},
        {"Scan", "{'TableName':'indexed','IndexName':'gsi','Select':'ALL_ATTRIBUTES'}",
         "ValidationException: One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not "
         "supported for global secondary index gsi because its projection type is not ALL"},
        {"Scan", "{'TableName':'indexed','IndexName':'gsi','ProjectionExpression':'f'}",
         "ValidationException: One or more parameter values were invalid: Global secondary index gsi does "
         "not project [f]"},
        {"Scan",
         "{'TableName':'indexed','IndexName':'gsi','FilterExpression':'attribute_exists(f)','Select':'COUNT'}",
         "{'Count':0,'ScannedCount':3}"},
        {"Scan",
         "{'TableName':'indexed','IndexName':'gsi','ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'}}}",
         "ValidationException: The provided starting key is invalid"},
        {"Scan",
         "{'TableName':'indexed','IndexName':'gsi','ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'1'},"
         "'c':{'S':'x'},'d':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"Scan",
         "{'TableName':'indexed','IndexName':'gsi','ExclusiveStartKey':{'a':{'S':'p'},'b':{'N':'1'},"
         "'c':{'S':'x'},'d':{'S':'x'}}}",
         "ValidationException: The provided starting key is invalid: The provided key element does not match "
         "the schema"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
