/* Scan of a table: pages, filters, segments, and what is refused in which order. */
#include "unit/api_items.h"

/* An on-demand table has four partitions from its beginning, and a scan reads each. The key x is in the last. */
TEST(a_scan_is_charged_for_each_partition)
{
#define SCAN(members) "{'TableName':'pair','Select':'COUNT','ReturnConsumedCapacity':'TOTAL'" members "}"
#define COUNTED(count, rest, units)                                                                          \
    "{'Count':" count ",'ScannedCount':" count "" rest                                                       \
    ",'ConsumedCapacity':{'TableName':'pair','CapacityUnits':" units "}}"
#define LAST ",'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'1'}}"
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'1'}}}", "{}"},
        {"Scan", SCAN(""), COUNTED("1", "", "2.0")},
        {"Scan", SCAN(",'ConsistentRead':true"), COUNTED("1", "", "4.0")},
        {"Scan", SCAN(",'Limit':1"), COUNTED("1", LAST, "2.0")},
        {"Scan", SCAN(",'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'1'}}"), COUNTED("0", "", "0.5")},
        {"Scan", SCAN(",'Segment':0,'TotalSegments':2"), COUNTED("0", "", "1.0")},
        {"Scan", SCAN(",'Segment':3,'TotalSegments':4"), COUNTED("1", "", "0.5")},
        {"Scan", SCAN(",'Segment':1,'TotalSegments':3"), COUNTED("0", "", "1.0")},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
#undef SCAN
#undef COUNTED
#undef LAST
}

TEST(a_scan_reads_all_in_pages)
{
    static const struct exchange exchanges[] = {
        {"Scan", "{'TableName':'pair'}", "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Scan", "{'TableName':'pair','ReturnConsumedCapacity':'TOTAL'}",
         "{'Items':[],'Count':0,'ScannedCount':0,'ConsumedCapacity':{'TableName':'pair','CapacityUnits':2.0}}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"Scan", "{'TableName':'pair'}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}},"
         "{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}},{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}],"
         "'Count':3,'ScannedCount':3}"},
        {"Scan", "{'TableName':'pair','Limit':2}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}},"
         "{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}],'Count':2,'ScannedCount':2,"
         "'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'2'}}}"},
        {"Scan", "{'TableName':'pair','Limit':2,'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'2'}}}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}],'Count':1,'ScannedCount':1}"},
        {"Scan", "{'TableName':'pair','Limit':3}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}},"
         "{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}},{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}],"
         "'Count':3,'ScannedCount':3,'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'10'}}}"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'10'}}}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Scan",
         "{'TableName':'pair','Select':'COUNT','ReturnConsumedCapacity':'INDEXES','ConsistentRead':true}",
         "{'Count':3,'ScannedCount':3,'ConsumedCapacity':{'TableName':'pair','CapacityUnits':4.0,"
         "'Table':{'CapacityUnits':4.0}}}"},
        {"Scan",
         "{'TableName':'pair','FilterExpression':'b > "
         ":b','ExpressionAttributeValues':{':b':{'N':'1'}},'ProjectionExpression':'v'}",
         "{'Items':[{'v':{'S':'v2'}},{'v':{'S':'v10'}}],'Count':2,'ScannedCount':3}"},
        {"Scan",
         "{'TableName':'pair','FilterExpression':'b > "
         ":b','ExpressionAttributeValues':{':b':{'N':'1'}},'Select':'COUNT','Limit':2}",
         "{'Count':1,'ScannedCount':2,'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'2'}}}"},
        {"Scan",
         "{'TableName':'pair','ScanFilter':{'v':{'ComparisonOperator':'CONTAINS',"
         "'AttributeValueList':[{'S':'1'}]},'b':{'ComparisonOperator':'GT',"
         "'AttributeValueList':[{'N':'0'}]}},'AttributesToGet':['v']}",
         "{'Items':[{'v':{'S':'v10'}}],'Count':1,'ScannedCount':3}"},
        {"Scan",
         "{'TableName':'pair','ScanFilter':{'v':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'v2'}]},'b':{'ComparisonOperator':'LT',"
         "'AttributeValueList':[{'N':'0'}]}},'ConditionalOperator':'OR','AttributesToGet':['v']}",
         "{'Items':[{'v':{'S':'v-1'}},{'v':{'S':'v2'}}],'Count':2,'ScannedCount':3}"},
        {"Scan", "{'TableName':'pair','Segment':0,'TotalSegments':1,'Select':'COUNT'}",
         "{'Count':3,'ScannedCount':3}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(a_scan_is_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'y'},'b':{'N':'1'}}}", "{}"},
        {"Scan",
         "{'TableName':'pair','AttributesToGet':['a','a'],"
         "'ScanFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'ConditionalOperator':'OR','ProjectionExpression':'','FilterExpression':'',"
         "'ExclusiveStartKey':{'a':{}},'Segment':1}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributesToGet, ScanFilter, ConditionalOperator} Expression "
         "parameters: {ProjectionExpression, FilterExpression}"},
        {"Scan", "{'TableName':'pair','ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"Scan", "{'TableName':'pair','ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "FilterExpression is null"},
        {"Scan", "{'TableName':'pair','ProjectionExpression':'a','ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "FilterExpression is null"},
        {"Scan",
         "{'TableName':'pair','AttributesToGet':['a','a'],"
         "'ScanFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}}}",
         "ValidationException: One or more parameter values were invalid: Duplicate value in attribute name: "
         "a"},
        {"Scan",
         "{'TableName':'pair','ScanFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},'Segment':1}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"Scan", "{'TableName':'pair','ScanFilter':{'a':{'ComparisonOperator':'EQ'}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the EQ ComparisonOperator"},
        {"Scan", "{'TableName':'pair','ScanFilter':{'a':null}}",
         "ValidationException: The filter condition for an attribute cannot be null: a"},
        {"Scan",
         "{'TableName':'pair','ScanFilter':{'a':{'ComparisonOperator':'NULL'}},'ConditionalOperator':'OR'}",
         "ValidationException: ConditionalOperator can only be used when Filter or Expected has two or more "
         "elements"},
        {"Scan", "{'TableName':'pair','ConditionalOperator':'OR'}",
         "ValidationException: ConditionalOperator cannot be used without Filter or Expected"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{'a':{}},'Segment':1}",
         "ValidationException: The provided starting key is invalid: Supplied AttributeValue is empty, must "
         "contain exactly one of the supported datatypes"},
        {"Scan", "{'TableName':'pair','Segment':0,'FilterExpression':''}",
         "ValidationException: The TotalSegments parameter is required but was not present in the request "
         "when Segment parameter is present"},
        {"Scan", "{'TableName':'pair','TotalSegments':2,'FilterExpression':''}",
         "ValidationException: The Segment parameter is required but was not present in the request when "
         "parameter TotalSegments is present"},
        {"Scan", "{'TableName':'pair','Segment':2,'TotalSegments':2,'FilterExpression':''}",
         "ValidationException: The Segment parameter is zero-based and must be less than parameter "
         "TotalSegments: Segment: 2 is not less than TotalSegments: 2"},
        {"Scan", "{'TableName':'pair','FilterExpression':''}",
         "ValidationException: Invalid FilterExpression: The expression can not be empty;"},
        {"Scan", "{'TableName':'pair','ProjectionExpression':''}",
         "ValidationException: Invalid ProjectionExpression: The expression can not be empty;"},
        {"Scan", "{'TableName':'pair','FilterExpression':'a = :a'}",
         "ValidationException: Invalid FilterExpression: An expression attribute value used in expression is "
         "not defined; attribute value: :a"},
        {"Scan",
         "{'TableName':'pair','FilterExpression':'attribute_exists(a)','ExpressionAttributeNames':{'#a':'a'}}",
         "ValidationException: Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}"},
        {"Scan", "{'TableName':'pair','Select':'SPECIFIC_ATTRIBUTES'}",
         "ValidationException: Must specify the AttributesToGet or ProjectionExpression when choosing to get "
         "SPECIFIC_ATTRIBUTES"},
        {"Scan", "{'TableName':'pair','Select':'COUNT','ProjectionExpression':'a'}",
         "ValidationException: Cannot specify the ProjectionExpression when choosing to get only the Count"},
        {"Scan", "{'TableName':'pair','Select':'ALL_PROJECTED_ATTRIBUTES'}",
         "ValidationException: ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
        {"Scan", "{'TableName':'pair','Segment':-1,'TotalSegments':0}",
         "ValidationException: 2 validation errors detected: Value '0' at 'totalSegments' failed to satisfy "
         "constraint: Member must have value greater than or equal to 1; Value '-1' at 'segment' failed to "
         "satisfy constraint: Member must have value greater than or equal to 0"},
        {"Scan", "{'TableName':'pair','Segment':1000000,'TotalSegments':1000001}",
         "ValidationException: 2 validation errors detected: Value '1000001' at 'totalSegments' failed to "
         "satisfy constraint: Member must have value less than or equal to 1000000; Value '1000000' at "
         "'segment' failed to satisfy constraint: Member must have value less than or equal to 999999"},
        {"Scan", "{'TableName':'pair','Limit':0}",
         "ValidationException: 1 validation error detected: Value '0' at 'limit' failed to satisfy "
         "constraint: Member must have value greater than or equal to 1"},
        {"Scan", "{'TableName':'missing','IndexName':'none'}",
         "ResourceNotFoundException: Requested resource not found"},
        {"Scan", "{'TableName':'pair','IndexName':'none','ExclusiveStartKey':{}}",
         "ValidationException: The table does not have the specified index: none"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{}}",
         "ValidationException: The provided starting key is invalid: The provided key element does not match "
         "the schema"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{'a':{'S':'x'},'c':{'N':'1'}}}",
         "ValidationException: The provided starting key is invalid: The provided key element does not match "
         "the schema"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{'a':{'S':'x'},'b':{'S':'x'}}}",
         "ValidationException: The provided starting key is invalid: The provided key element does not match "
         "the schema"},
        {"Scan", "{'TableName':'pair','ExclusiveStartKey':{'a':{'S':''},'b':{'N':'1'}}}",
         "ValidationException: The provided starting key is invalid: One or more parameter values are not "
         "valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: a"},
        {"Scan",
         "{'TableName':'pair','ProjectionExpression':'a.b','FilterExpression':'attribute_exists(b.c)'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: a"},
        {"Scan", "{'TableName':'pair','FilterExpression':'attribute_exists(b.c)'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: b"},
        {"Scan", "{'TableName':'indexed','FilterExpression':'attribute_exists(d[1])'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: IndexKey: d"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
