/* Expected, AttributeUpdates and their kin: the parameters of before the expressions. */
#include "unit/api_items.h"

TEST(expected_decides_over_writes)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'a':{'Exists':false}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'a':{'Exists':false}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'a':{'Exists':true,'Value':{'S':'1'}}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'Value':{'S':'hello'}}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'Value':{'S':'x'}}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'hello'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'ComparisonOperator':'NE','AttributeValueList':[{'S':'hello'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'q':{'ComparisonOperator':'NE','AttributeValueList':[{'S':'hello'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'LT','AttributeValueList':[{'N':'6'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'LE','AttributeValueList':[{'N':'5'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'GT','AttributeValueList':[{'N':'5'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'GE','AttributeValueList':[{'N':'5.0'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'LT','AttributeValueList':[{'S':'6'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'q':{'ComparisonOperator':'NULL'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'z':{'ComparisonOperator':'NULL'}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'z':{'ComparisonOperator':'NOT_NULL'}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'ComparisonOperator':'BEGINS_WITH','AttributeValueList':[{'S':'he'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'s':{'ComparisonOperator':'CONTAINS','AttributeValueList':[{'S':'ll'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'t':{'ComparisonOperator':'CONTAINS','AttributeValueList':[{'S':'y'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'l':{'ComparisonOperator':'CONTAINS','AttributeValueList':[{'N':'7'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'t':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'q'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'t':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'y'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'q':{'ComparisonOperator':'NOT_CONTAINS','AttributeValueList':[{'S':'y'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'IN','AttributeValueList':[{'N':'4'},{'N':'5'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'IN','AttributeValueList':[{'N':'4'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'5'},{'N':'9'}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'6'},{'N':'9'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'t':{'ComparisonOperator':'EQ','AttributeValueList':[{'SS':['y','x']}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'b':{'ComparisonOperator':'EQ','AttributeValueList':[{'BOOL':true}]}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'GE','Value':{'N':'5'}}}}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'5'}]},"
         "'s':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'no'}]}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'5'}]},"
         "'s':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'no'}]}},'ConditionalOperator':'AND'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'5'}]},"
         "'s':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'no'}]}},'ConditionalOperator':'OR'}",
         "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'n':{'ComparisonOperator':'EQ','AttributeValueList':[{'N':'0'}]},"
         "'s':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'no'}]},"
         "'b':{'ComparisonOperator':'NULL'}},'ConditionalOperator':'OR',"
         "'ReturnValuesOnConditionCheckFailure':'NONE'}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD',"
         "'Value':{'N':'1'}}},'Expected':{'n':{'Value':{'N':'4'}}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD',"
         "'Value':{'N':'1'}}},'Expected':{'n':{'Value':{'N':'5'}}},'ReturnValues':'UPDATED_NEW'}",
         "{'Attributes':{'n':{'N':'6'}}}"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'Expected':{'n':{'Value':{'N':'5'}}}}",
         "ConditionalCheckFailedException: The conditional request failed"},
        {"DeleteItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'Expected':{'n':{'Value':{'N':'6'}}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},'Expected':{}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributesToGet':['n']}",
         "{'Item':{'n':{'N':'5'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(expected_is_refused_in_the_order_of_the_service)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},'Expected':{'x':{}}}",
         "ValidationException: One or more parameter values were invalid: Value must be provided when Exists "
         "is null for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},'Expected':{'x':null}}",
         "ValidationException: One or more parameter values were invalid: Value must be provided when Exists "
         "is null for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':true}}}",
         "ValidationException: One or more parameter values were invalid: Value must be provided when Exists "
         "is true for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':false,'Value':{'SS':[]}}}}",
         "ValidationException: One or more parameter values were invalid: Value cannot be used when Exists "
         "is false for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Value':{'SS':[]}}}}",
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'AttributeValueList':[],'Value':{'S':''}}}}",
         "ValidationException: One or more parameter values were invalid: Value and AttributeValueList "
         "cannot be used together for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'AttributeValueList':[]}}}",
         "ValidationException: One or more parameter values were invalid: AttributeValueList can only be "
         "used with a ComparisonOperator for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':true,'AttributeValueList':[]}}}",
         "ValidationException: One or more parameter values were invalid: AttributeValueList can only be "
         "used with a ComparisonOperator for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':true,'ComparisonOperator':'LT'}}}",
         "ValidationException: One or more parameter values were invalid: Exists and ComparisonOperator "
         "cannot be used together for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'LT'}}}",
         "ValidationException: One or more parameter values were invalid: Value or AttributeValueList must "
         "be used with ComparisonOperator: LT for Attribute: x"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'EQ','AttributeValueList':[]}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the EQ ComparisonOperator"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'NULL','AttributeValueList':[{'S':''}]}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the NULL ComparisonOperator"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'BETWEEN','Value':{'S':''}}}}",
         "ValidationException: One or more parameter values were invalid: Invalid number of argument(s) for "
         "the BETWEEN ComparisonOperator"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'EQ','AttributeValueList':[{'NS':[]}]}}}",
         "ValidationException: One or more parameter values were invalid: An number set  may not be empty"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'IN','AttributeValueList':[{'S':'a'},{'N':'1'}]}}}",
         "ValidationException: One or more parameter values were invalid: AttributeValues inside "
         "AttributeValueList must be of same type"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'LT','AttributeValueList':[{'SS':['a']}]}}}",
         "ValidationException: One or more parameter values were invalid: ComparisonOperator LT is not valid "
         "for SS AttributeValue type"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'BEGINS_WITH','AttributeValueList':[{'N':'1'}]}}}",
         "ValidationException: One or more parameter values were invalid: ComparisonOperator BEGINS_WITH is "
         "not valid for N AttributeValue type"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'CONTAINS','AttributeValueList':[{'L':[]}]}}}",
         "ValidationException: One or more parameter values were invalid: ComparisonOperator CONTAINS is not "
         "valid for L AttributeValue type"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'IN','AttributeValueList':[{'BOOL':true}]}}}",
         "ValidationException: One or more parameter values were invalid: ComparisonOperator IN is not valid "
         "for BOOL AttributeValue type"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'2'},{'N':'1'}]}}}",
         "ValidationException: The BETWEEN condition was provided a range where the lower bound is greater "
         "than the upper bound"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'ComparisonOperator':'LIKE','AttributeValueList':[{'S':''}]}}}",
         "ValidationException: 1 validation error detected: Value 'LIKE' at "
         "'expected.x.member.comparisonOperator' failed to satisfy constraint: Member must satisfy enum "
         "value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, "
         "CONTAINS]"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'':{'Exists':false}}}",
         "ValidationException: Empty attribute name"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},'Expected':{},"
         "'ConditionalOperator':'AND'}",
         "ValidationException: ConditionalOperator cannot be used without Filter or Expected"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionalOperator':'AND'}",
         "ValidationException: ConditionalOperator cannot be used without Filter or Expected"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':false}},'ConditionalOperator':'OR'}",
         "ValidationException: ConditionalOperator can only be used when Filter or Expected has two or more "
         "elements"},
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}},"
         "'Expected':{'x':{'Exists':false},'y':{'Exists':false}},'ConditionalOperator':'XOR'}",
         "ValidationException: 1 validation error detected: Value 'XOR' at 'conditionalOperator' failed to "
         "satisfy constraint: Member must satisfy enum value set: [OR, AND]"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(attribute_updates_change_items)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}}}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'s':{'Action':'PUT',"
         "'Value':{'S':'bye'}},'n':{'Action':'ADD','Value':{'N':'2'}},"
         "'t':{'Action':'ADD','Value':{'SS':['z']}},'l':{'Action':'ADD','Value':{'L':[{'S':'f'}]}},"
         "'b':{'Action':'DELETE'},'z':{'Value':{'S':'v'}}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'1'},'l':{'L':[{'S':'e'},{'N':'7'},{'S':'f'}]},'n':{'N':'7'},"
         "'s':{'S':'bye'},'t':{'SS':['x','y','z']},'z':{'S':'v'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'t':{'Action':'DELETE',"
         "'Value':{'SS':['x','y']}},'q':{'Action':'DELETE','Value':{'NS':['1']}},"
         "'n2':{'Action':'ADD','Value':{'N':'3'}},'l2':{'Action':'ADD','Value':{'L':[{'N':'1'}]}}},"
         "'ReturnValues':'UPDATED_NEW'}",
         "{'Attributes':{'l2':{'L':[{'N':'1'}]},'n2':{'N':'3'},'t':{'SS':['z']}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'t':{'Action':'DELETE',"
         "'Value':{'SS':['z']}}},'ReturnValues':'UPDATED_OLD'}",
         "{'Attributes':{'t':{'SS':['z']}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{},'ReturnValues':'UPDATED_NEW'}",
         "{}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'begun'}},'AttributeUpdates':{},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'begun'}}}"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'begun too'}},'AttributeUpdates':{'x':{'Action':'DELETE'}}}",
         "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'begun too'}}}", "{}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'l':{'L':[{'S':'e'},{'N':'7'},{'S':'f'}]},'l2':{'L':[{'N':'1'}]},"
         "'n':{'N':'7'},'n2':{'N':'3'},'s':{'S':'bye'},'z':{'S':'v'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(attribute_updates_are_refused)
{
    static const struct exchange exchanges[] = {
        {"PutItem",
         "{'TableName':'hash','Item':{'a':{'S':'1'},'s':{'S':'hello'},'n':{'N':'5'},'t':{'SS':['x','y']},"
         "'l':{'L':[{'S':'e'},{'N':'7'}]},'z':{'NULL':true},'b':{'BOOL':true}}}",
         "{}"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{}}}",
         "ValidationException: One or more parameter values were invalid: Only DELETE action is allowed when "
         "no attribute value is specified"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':null}}",
         "ValidationException: One or more parameter values were invalid: Only DELETE action is allowed when "
         "no attribute value is specified"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'PUT'}}}",
         "ValidationException: One or more parameter values were invalid: Only DELETE action is allowed when "
         "no attribute value is specified"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD'}}}",
         "ValidationException: One or more parameter values were invalid: Only DELETE action is allowed when "
         "no attribute value is specified"},
        {"UpdateItem", "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'NO'}}}",
         "ValidationException: 1 validation error detected: Value 'NO' at 'attributeUpdates.n.member.action' "
         "failed to satisfy constraint: Member must satisfy enum value set: [ADD, PUT, DELETE]"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'DELETE','Value':{'N':'1'}}}}",
         "ValidationException: One or more parameter values were invalid: DELETE action with value is not "
         "supported for the type N"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD','Value':{'S':'x'}}}}",
         "ValidationException: One or more parameter values were invalid: ADD action is not supported for "
         "the type S"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD','Value':{'M':{}}}}}",
         "ValidationException: One or more parameter values were invalid: ADD action is not supported for "
         "the type M"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'PUT','Value':{'SS':[]}}}}",
         "ValidationException: One or more parameter values were invalid: An string set  may not be empty"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'':{'Action':'DELETE'}}}",
         "ValidationException: Empty attribute name"},
        {"UpdateItem",
         "{'TableName':'missing','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'DELETE'},'x':{}},"
         "'Expected':{'a':{}}}",
         "ValidationException: One or more parameter values were invalid: Only DELETE action is allowed when "
         "no attribute value is specified"},
        {"UpdateItem",
         "{'TableName':'missing','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'DELETE'}},"
         "'Expected':{'a':{}}}",
         "ValidationException: One or more parameter values were invalid: Value must be provided when Exists "
         "is null for Attribute: a"},
        {"UpdateItem",
         "{'TableName':'missing','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'DELETE'}}}",
         "ResourceNotFoundException: Requested resource not found"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'a':{'Action':'PUT','Value':{'S':'2'}}}}",
         "ValidationException: One or more parameter values were invalid: Cannot update attribute a. This "
         "attribute is part of the key"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'a':{'Action':'DELETE'}}}",
         "ValidationException: One or more parameter values were invalid: Cannot update attribute a. This "
         "attribute is part of the key"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD','Value':{'SS':['q']}}}}",
         "ValidationException: Type mismatch for attribute to update"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'s':{'Action':'ADD','Value':{'N':'1'}}}}",
         "ValidationException: Type mismatch for attribute to update"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'DELETE','Value':{'SS':['q']}}}}",
         "ValidationException: Type mismatch for attribute to update"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'t':{'Action':'DELETE','Value':{'NS':['1']}}}}",
         "ValidationException: Type mismatch for attribute to update"},
        {"UpdateItem",
         "{'TableName':'hash','Key':{'a':{'S':'1'}},'AttributeUpdates':{'n':{'Action':'ADD',"
         "'Value':{'L':[{'N':'1'}]}}}}",
         "ValidationException: Type mismatch for attribute to update"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'AttributeUpdates':{'c':{'Action':'PUT',"
         "'Value':{'N':'1'}}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key c "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'AttributeUpdates':{'d':{'Action':'ADD',"
         "'Value':{'N':'1'}}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: N IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},"
         "'AttributeUpdates':{'d':{'Action':'DELETE','Value':{'SS':['x']}}}}",
         "ValidationException: One or more parameter values were invalid: Type mismatch for Index Key d "
         "Expected: S Actual: SS IndexName: gsi"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'AttributeUpdates':{'c':{'Action':'PUT',"
         "'Value':{'S':''}}}}",
         "ValidationException: One or more parameter values are not valid. A value specified for a secondary "
         "index key is not supported. The AttributeValue for a key attribute cannot contain an empty string "
         "value. IndexName: gsi, IndexKey: c"},
        {"UpdateItem",
         "{'TableName':'indexed','Key':{'a':{'S':'1'},'b':{'S':'1'}},'AttributeUpdates':{'c':{'Action':'PUT',"
         "'Value':{'S':'x'}}},'ReturnValues':'ALL_NEW'}",
         "{'Attributes':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'x'}}}"},
        {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",
         "{'Item':{'a':{'S':'1'},'b':{'BOOL':true},'l':{'L':[{'S':'e'},{'N':'7'}]},'n':{'N':'5'},"
         "'s':{'S':'hello'},'t':{'SS':['x','y']},'z':{'NULL':true}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}
