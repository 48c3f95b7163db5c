/* Query of a table: conditions, order, pages, counts, and what is refused in which order. */
#include "unit/api_items.h"

TEST(a_query_finds_what_its_conditions_say)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'y'},'b':{'N':'1'}}}", "{}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}},"
         "{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}},{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}],"
         "'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'nothing'}}}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b = "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}}}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b < "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b <= "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}}],'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b > "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':':b <= b and a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'2'}},{'b':{'N':'10'}}],'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b between :b and "
         ":c','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'-1'},':c':{'N':'3'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}}],'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'#a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExpressionAttributeNames':{'#a':'a','#v':'v'},"
         "'ProjectionExpression':'#v'}",
         "{'Items':[{'v':{'S':'v-1'}},{'v':{'S':'v2'}},{'v':{'S':'v10'}}],'Count':3,'ScannedCount':3}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'ab'}}}", "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'abc'}}}", "{}"},
        {"PutItem", "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'b'}}}", "{}"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :a and begins_with(b, "
         ":b)','ExpressionAttributeValues':{':a':{'S':'p'},':b':{'S':'ab'}}}",
         "{'Items':[{'a':{'S':'p'},'b':{'S':'ab'}},{'a':{'S':'p'},'b':{'S':'abc'}}],'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'hash','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'1'}}}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}}}", "{}"},
        {"Query",
         "{'TableName':'hash','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'1'}}}",
         "{'Items':[{'a':{'S':'1'}}],'Count':1,'ScannedCount':1}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(a_query_goes_both_ways_in_pages)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'y'},'b':{'N':'1'}}}", "{}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ScanIndexForward':false,'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}},{'b':{'N':'2'}},{'b':{'N':'-1'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':2,'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}}],'Count':2,'ScannedCount':2,"
         "'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'2'}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':2,"
         "'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':3,'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}},{'b':{'N':'10'}}],'Count':3,'ScannedCount':3,"
         "'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'10'}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':3,"
         "'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'10'}},'ProjectionExpression':'b'}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':4,'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}},{'b':{'N':'10'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':2,'ScanIndexForward':false,"
         "'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}},{'b':{'N':'2'}}],'Count':2,'ScannedCount':2,"
         "'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'2'}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':2,'ScanIndexForward':false,"
         "'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'3'}},"
         "'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b > "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'-1'}},'Limit':1,'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'2'}}],'Count':1,'ScannedCount':1,'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'2'}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b > "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'-1'}},"
         "'ExclusiveStartKey':{'a':{'S':'x'},'b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b = "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ExclusiveStartKey':{'a':{'S':'x'},"
         "'b':{'N':'2'}},'ProjectionExpression':'b'}",
         "{'Items':[],'Count':0,'ScannedCount':0}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* Without a range key there is at most one item, and nothing behind it. */
TEST(a_query_of_one_item_cannot_be_continued)
{
#define ONE_ITEM "'KeyConditionExpression':'a = :a','ExpressionAttributeValues':{':a':{'S':'x'}}"
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'x'}}}", "{}"},
        {"Query", "{'TableName':'hash','Limit':1," ONE_ITEM "}",
         "{'Items':[{'a':{'S':'x'}}],'Count':1,'ScannedCount':1}"},
        {"Query", "{'TableName':'hash'," ONE_ITEM ",'ExclusiveStartKey':{'a':{'S':'x'}}}",
         "ValidationException: The provided exclusive start key is invalid: ExclusiveStartKey: "
         "{a=AttributeValue: {S:x}}"},
        {"Query", "{'TableName':'hash'," ONE_ITEM ",'ExclusiveStartKey':{'a':{'S':'y'}}}",
         "ValidationException: The provided starting key is outside query boundaries based on provided "
         "conditions"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
#undef ONE_ITEM
}

TEST(a_query_filters_counts_and_charges)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'y'},'b':{'N':'1'}}}", "{}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'},':v':{'S':'v2'}},'FilterExpression':'v >= "
         ":v','ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'2'}}],'Count':1,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'},':v':{'S':'v2'}},'FilterExpression':'v = "
         ":v','Select':'COUNT'}",
         "{'Count':1,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'},':v':{'S':'v2'}},'FilterExpression':'v = "
         ":v','Limit':1,'ProjectionExpression':'b'}",
         "{'Items':[],'Count':0,'ScannedCount':1,'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'-1'}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'COUNT','ReturnConsumedCapacity':'TOTAL'}",
         "{'Count':3,'ScannedCount':3,'ConsumedCapacity':{'TableName':'pair','CapacityUnits':0.5}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'ALL_ATTRIBUTES','ConsistentRead':true,"
         "'ReturnConsumedCapacity':'INDEXES','Limit':1}",
         "{'Items':[{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}],'Count':1,'ScannedCount':1,"
         "'LastEvaluatedKey':{'a':{'S':'x'},'b':{'N':'-1'}},"
         "'ConsumedCapacity':{'TableName':'pair','CapacityUnits':1.0,'Table':{'CapacityUnits':1.0}}}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'SPECIFIC_ATTRIBUTES','ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'-1'}},{'b':{'N':'2'}},{'b':{'N':'10'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'no'}},'ReturnConsumedCapacity':'TOTAL'}",
         "{'Items':[],'Count':0,'ScannedCount':0,'ConsumedCapacity':{'TableName':'pair','CapacityUnits':0.5}}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'QueryFilter':{'v':{'ComparisonOperator':'BEGINS_WITH',"
         "'AttributeValueList':[{'S':'v1'}]},'w':{'ComparisonOperator':'NULL'}},'AttributesToGet':['b','v']}",
         "{'Items':[{'b':{'N':'10'},'v':{'S':'v10'}}],'Count':1,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'QueryFilter':{'v':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'v2'}]},'w':{'ComparisonOperator':'NOT_NULL'}},"
         "'ConditionalOperator':'OR','AttributesToGet':['b']}",
         "{'Items':[{'b':{'N':'2'}}],'Count':1,'ScannedCount':3}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'GT',"
         "'AttributeValueList':[{'N':'2'}]}},"
         "'FilterExpression':'attribute_exists(v)','ProjectionExpression':'b'}",
         "{'Items':[{'b':{'N':'10'}}],'Count':1,'ScannedCount':1}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'BETWEEN',"
         "'AttributeValueList':[{'N':'2'},{'N':'10'}]}},'Select':'COUNT'}",
         "{'Count':2,'ScannedCount':2}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'b':{'ComparisonOperator':'LE',"
         "'AttributeValueList':[{'N':'2'}]},'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'Select':'COUNT'}",
         "{'Count':2,'ScannedCount':2}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(a_query_is_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'-1'},'v':{'S':'v-1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'2'},'v':{'S':'v2'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'x'},'b':{'N':'10'},'v':{'S':'v10'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{'a':{'S':'y'},'b':{'N':'1'}}}", "{}"},
        /* what the request alone tells */
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'AttributesToGet':['a','a'],'QueryFilter':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{}]}},'ConditionalOperator':'OR','ProjectionExpression':'',"
         "'FilterExpression':'','KeyConditionExpression':'','ExclusiveStartKey':{'a':{}},"
         "'Select':'SPECIFIC_ATTRIBUTES'}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator, "
         "KeyConditions} Expression parameters: {ProjectionExpression, FilterExpression, "
         "KeyConditionExpression}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'',"
         "'QueryFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}}}",
         "ValidationException: Can not use both expression and non-expression parameters in the same "
         "request: Non-expression parameters: {QueryFilter} Expression parameters: {KeyConditionExpression}"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'ProjectionExpression':'a','ExpressionAttributeValues':{}}",
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "FilterExpression and KeyConditionExpression are null"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'QueryFilter':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'AttributesToGet':['a','a']}",
         "ValidationException: Supplied AttributeValue is empty, must contain exactly one of the supported "
         "datatypes"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'QueryFilter':{'a':{'ComparisonOperator':'EQ'}},'AttributesToGet':['a','a']}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the EQ ComparisonOperator"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{},'QueryFilter':{'v':{'ComparisonOperator':'NULL'}},"
         "'ConditionalOperator':'OR'}",
         "ValidationException: ConditionalOperator can only be used when Filter or Expected has two or more "
         "elements"},
        {"Query", "{'TableName':'pair','KeyConditions':{},'ConditionalOperator':'OR'}",
         "ValidationException: ConditionalOperator cannot be used without Filter or Expected"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{}]}},"
         "'ExclusiveStartKey':{'a':{}},'AttributesToGet':['a','a']}",
         "ValidationException: One or more parameter values were invalid: Duplicate value in attribute name: "
         "a"},
        {"Query", "{'TableName':'pair','ExclusiveStartKey':{'a':{}}}",
         "ValidationException: The provided starting key is invalid: Supplied AttributeValue is empty, must "
         "contain exactly one of the supported datatypes"},
        {"Query", "{'TableName':'pair','ExclusiveStartKey':{'a':{'SS':[]}}}",
         "ValidationException: The provided starting key is invalid: One or more parameter values were "
         "invalid: An string set  may not be empty"},
        {"Query", "{'TableName':'pair','ExclusiveStartKey':{'a':{'NS':[]}}}",
         "ValidationException: One or more parameter values were invalid: An number set  may not be empty"},
        {"Query", "{'TableName':'pair','ExclusiveStartKey':{'a':{'N':'x'}}}",
         "ValidationException: The parameter cannot be converted to a numeric value: x"},
        {"Query", "{'TableName':'pair','Select':'SPECIFIC_ATTRIBUTES'}",
         "ValidationException: Either the KeyConditions or KeyConditionExpression parameter must be "
         "specified in the request."},
        {"Query", "{'TableName':'pair','KeyConditionExpression':'','ExpressionAttributeNames':{}}",
         "ValidationException: ExpressionAttributeNames must not be empty"},
        {"Query", "{'TableName':'pair','KeyConditionExpression':'','ExpressionAttributeValues':{':a':{}}}",
         "ValidationException: ExpressionAttributeValues contains invalid value: Supplied AttributeValue is "
         "empty, must contain exactly one of the supported datatypes for key :a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'','FilterExpression':'','ProjectionExpression':''}",
         "ValidationException: Invalid KeyConditionExpression: The expression can not be empty;"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'contains(a, "
         ":a)','ExpressionAttributeValues':{':a':{'S':'x'}},'FilterExpression':'','ProjectionExpression':''}",
         "ValidationException: Invalid FilterExpression: The expression can not be empty;"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'contains(a, "
         ":a)','ExpressionAttributeValues':{':a':{'S':'x'}},'ProjectionExpression':''}",
         "ValidationException: Invalid ProjectionExpression: The expression can not be empty;"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'contains(a, "
         ":a)','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'S':'x'}}}",
         "ValidationException: Value provided in ExpressionAttributeValues unused in expressions: keys: "
         "{:b}"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'contains(a, "
         ":a)','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Invalid operator used in KeyConditionExpression: contains"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a or b = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Invalid operator used in KeyConditionExpression: OR"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'not a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Invalid operator used in KeyConditionExpression: NOT"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a <> "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Invalid operator used in KeyConditionExpression: <>"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a.b = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: KeyConditionExpressions cannot have conditions on nested attributes"},
        {"Query", "{'TableName':'pair','KeyConditionExpression':'a = b'}",
         "ValidationException: Invalid condition in KeyConditionExpression: Multiple attribute names used in "
         "one condition"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'size(a) = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: KeyConditionExpressions cannot contain nested operations"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Invalid KeyConditionExpression: KeyConditionExpressions must only contain one "
         "condition per key"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b = :a and c = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: The number of query conditions (3) exceeds the number of key attributes defined in the "
         "schema (2)"},
        {"Query", "{'TableName':'pair','KeyConditions':{'a':null}}",
         "ValidationException: The filter condition for an attribute cannot be null: a"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'QueryFilter':{'v':null}}",
         "ValidationException: The filter condition for an attribute cannot be null: v"},
        {"Query", "{'TableName':'pair','KeyConditions':{}}",
         "ValidationException: Conditions can be of length 1 or 2 only"},
        {"Query", "{'TableName':'missing','KeyConditions':{'a':{'ComparisonOperator':'EQ'}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the EQ ComparisonOperator"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'},{'S':'y'}]}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the EQ ComparisonOperator"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{'SS':[]}]}}}",
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'BETWEEN',"
         "'AttributeValueList':[{'N':'2'},{'S':'x'}]}}}",
         "ValidationException: One or more parameter values were invalid: AttributeValues inside "
         "AttributeValueList must be of same type"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'BETWEEN',"
         "'AttributeValueList':[{'N':'2'},{'N':'1'}]}}}",
         "ValidationException: The BETWEEN condition was provided a range where the lower bound is greater "
         "than the upper bound"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'BEGINS_WITH',"
         "'AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: One or more parameter values were invalid: ComparisonOperator BEGINS_WITH is "
         "not valid for N AttributeValue type"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'1'}]},"
         "'c':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: Conditions can be of length 1 or 2 only"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'SPECIFIC_ATTRIBUTES'}",
         "ValidationException: 1 validation error detected: Must specify the AttributesToGet or "
         "ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'ALL_ATTRIBUTES','ProjectionExpression':'b'}",
         "ValidationException: Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'COUNT','ProjectionExpression':'b'}",
         "ValidationException: Cannot specify the ProjectionExpression when choosing to get only the Count"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'ALL_PROJECTED_ATTRIBUTES'}",
         "ValidationException: ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'Select':'COUNT','AttributesToGet':['a']}",
         "ValidationException: Cannot specify the AttributesToGet when choosing to get only the Count"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Select':'SOME'}",
         "ValidationException: 1 validation error detected: Value 'SOME' at 'select' failed to satisfy "
         "constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, "
         "ALL_PROJECTED_ATTRIBUTES]"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'Limit':0}",
         "ValidationException: 1 validation error detected: Value at 'Limit' failed to satisfy constraint: "
         "Member must have value greater than or equal to 1"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'IndexName':'x'}",
         "ValidationException: 1 validation error detected: Value 'x' at 'indexName' failed to satisfy "
         "constraint: Member must have length greater than or equal to 3"},
        /* what needs the table */
        {"Query",
         "{'TableName':'missing','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'IndexName':'none','ExclusiveStartKey':{}}",
         "ValidationException: The table does not have the specified index: none"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{}}",
         "ValidationException: The provided starting key is invalid"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'x'}}}",
         "ValidationException: The provided starting key is invalid"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'x'},'c':{'S':'x'}}}",
         "ValidationException: Query condition missed key schema element: a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'N':'1'},'b':{'N':'1'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'x'},'b':{'S':'x'}}}",
         "ValidationException: Query condition missed key schema element: a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and z = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'x'},'b':{'S':'x'}}}",
         "ValidationException: The provided key element does not match the schema"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':''},'b':{'N':'1'}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'b = "
         ":b','ExpressionAttributeValues':{':b':{'N':'1'}}}",
         "ValidationException: Query condition missed key schema element: a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and v = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Query condition missed key schema element: b"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a > "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Query key condition not supported"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'N':'1'}}}",
         "ValidationException: One or more parameter values were invalid: Condition parameter type does not "
         "match schema type"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: One or more parameter values were invalid: Condition parameter type does not "
         "match schema type"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a','ExpressionAttributeValues':{':a':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"Query",
         "{'TableName':'hash','KeyConditionExpression':'a = :a and b = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}}}",
         "ValidationException: Query key condition not supported"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = :a and b = "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'S':''}}}",
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: b"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'b':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: Query condition missed key schema element: a"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'v':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: Query condition missed key schema element: b"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'GT','AttributeValueList':[{'S':'x'}]}}}",
         "ValidationException: Query key condition not supported"},
        {"Query", "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'NULL'}}}",
         "ValidationException: Attempted conditional constraint is not an indexable operation"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'NE',"
         "'AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: Attempted conditional constraint is not an indexable operation"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: One or more parameter values were invalid: Condition parameter type does not "
         "match schema type"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'LT',"
         "'AttributeValueList':[{'S':'x'}]}}}",
         "ValidationException: One or more parameter values were invalid: Condition parameter type does not "
         "match schema type"},
        {"Query",
         "{'TableName':'hash','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]},'b':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}}}",
         "ValidationException: Query key condition not supported"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'ExclusiveStartKey':{'a':{'S':'y'},'b':{'N':'1'}}}",
         "ValidationException: The provided starting key is outside query boundaries based on provided "
         "conditions"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b > "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ExclusiveStartKey':{'a':{'S':'x'},"
         "'b':{'N':'2'}}}",
         "ValidationException: The provided starting key does not match the range key predicate"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = :a and b > "
         ":b','ExpressionAttributeValues':{':a':{'S':'x'},':b':{'N':'2'}},'ExclusiveStartKey':{'a':{'S':'y'},"
         "'b':{'N':'3'}}}",
         "ValidationException: The query can return at most one row and cannot be restarted"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'FilterExpression':'a = "
         ":a','ProjectionExpression':'b.c'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: Key: b"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'FilterExpression':'size(a) = :a'}",
         "ValidationException: Filter Expression can only contain non-primary key attributes: Primary key "
         "attribute: a"},
        {"Query",
         "{'TableName':'pair','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'FilterExpression':'v = :a or b = :a'}",
         "ValidationException: Filter Expression can only contain non-primary key attributes: Primary key "
         "attribute: b"},
        {"Query",
         "{'TableName':'pair','KeyConditions':{'a':{'ComparisonOperator':'EQ',"
         "'AttributeValueList':[{'S':'x'}]}},'QueryFilter':{'b':{'ComparisonOperator':'NULL'}}}",
         "ValidationException: QueryFilter can only contain non-primary key attributes: Primary key "
         "attribute: b"},
        {"Query",
         "{'TableName':'indexed','KeyConditionExpression':'a = "
         ":a','ExpressionAttributeValues':{':a':{'S':'x'}},'FilterExpression':'c.x = :a'}",
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are not allowed: IndexKey: c"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
