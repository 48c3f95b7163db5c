"""The known differences between the service, which Quipu follows, and DynamoDB Local, each with the fact that decides.

A rule matches the one-line outcomes of both sides (`ok`, or status, exception and message) as whole regular
expressions. Replies that are both ok match by the places in the body at which they differ. "Recorded" in a reason means
that a public record of the real service's answers says so: the conformance suite that test/conformance runs, or the
tests of dynalite, which were made by running them against the service."""
import json
import re

import model
from compare import only_clears, updates_of


class Known:
    def __init__(self, name, reason, ours="ok", theirs="ok", operation=".*", places=None, when=None, harmless=False):
        self.name, self.reason = name, reason
        self.harmless = harmless  # of successful writes: both sides hold the same items afterwards
        self.ours, self.theirs = re.compile(ours, re.S), re.compile(theirs, re.S)
        self.operation = re.compile(operation)
        self.places = re.compile(places) if places else None
        self.when = when
        self.used = 0

    def explains(self, difference):
        if not (self.operation.fullmatch(difference.operation)
                and self.ours.fullmatch(difference.ours.outcome)
                and self.theirs.fullmatch(difference.theirs.outcome)):
            return False
        if bool(self.places) != bool(difference.places):
            return False
        if self.places and not all(map(self.places.fullmatch, difference.places)):
            return False
        return not self.when or self.when(difference)


def explain(difference):
    """The rule that explains it, or None."""
    for rule in KNOWN:
        if rule.explains(difference):
            rule.used += 1
            return rule
    return None


def words(name, ours, theirs, reason="recorded: the service's words", **more):
    """Both refuse with ValidationException, in different words."""
    return Known(name, reason, *(f"400 ValidationException: (?:{text})" for text in (ours, theirs)), **more)


# ---- the order of checks ----

# Refusals in the order in which the service makes them, as far as it is recorded.
STEPS = [
    "SerializationException: ",
    r"\d+ validation errors? detected: |The parameter 'TableName' is required|TableName must be at least",
    "Can not use both expression and non-expression",
    r"ConditionalOperator |Empty attribute name|Expression\w+ can only be specified when using expressions",
    "One or more parameter values were invalid: Duplicate value in attribute name",
    "The Segment parameter|The TotalSegments parameter|ReturnValues can only be|Invalid Request: "
    "TransactWriteRequest should contain|TransactItems can only contain one|At least one of "
    "ProvisionedThroughput|One or more parameter values were invalid: (Neither ReadCapacityUnits "
    "nor|ProvisionedThroughput must be specified)",
    r"(One or more parameter values were invalid: )?(Input collection|.* sets? .*may not be empty|\w+ sets "
    "should not be|Null attribute value|The parameter cannot be|Attempting to store|Number "
    "(over|under)flow|Nesting Levels)",
    "(One or more parameter values were invalid: )?(DELETE action|ADD action|Only DELETE action|Cannot "
    "expect|Value or Att)",
    "(One or more parameter values were invalid: )?Supplied AttributeValue",
    "(One or more parameter values were invalid: )?AttributeValues inside AttributeValueList|.*Exists is set",
    "(One or more parameter values were invalid: )?ComparisonOperator",
    "(One or more parameter values were invalid: )?Invalid number of argument|The filter condition for an "
    "attribute|Either the KeyConditions "
    "or|The BETWEEN cond",
    "ALL_PROJECTED",
    "The provided starting key is invalid: ",
    "Return values set|A value provided cannot be",
    r"Expression\w+ (contains invalid|must not be empty)|Invalid \w+: The expression can not be empty",
    "Invalid KeyConditionExpression: Syntax error",
    "Invalid KeyConditionExpression: ",
    "Invalid UpdateExpression: ",
    "Invalid (Filter|Condition)Expression: ",
    "Invalid ProjectionExpression: ",
    r"Value provided in Expression\w+ unused",
    "Must specify the AttributesToGet|Cannot specify the|Consistent reads are not|Provided list of item "
    "keys|Transaction request cannot include multiple",
    "ResourceNotFoundException: |Invalid table/index name",
    "The provided key element does not match|.*Type mismatch for key|.*Missing the key |The number of "
    "conditions on the keys|One of the required keys|Invalid attribute value type|.*for a key attribute "
    "cannot contain an empty|Hash primary key values must|.*Size of hashkey|.*Aggregated size of all range "
    "keys|Query condition missed|Query key condition not|The table does not have the specified index|.*Type "
    "mismatch for Index Key|Key attributes must be scalars|(HASH|RANGE) key attributes|Conditions can be of "
    "length|Cannot update attribute |.*[Ii]ndex .* does not project|Filter Expression can "
    "only|.*does not match schema type|.*Filter can only contain",
    "The provided starting key|The query can return at most one row|Exclusive Start Key must",
    "ConditionalCheckFailedException: |TransactionCanceledException: ",
    "The document path provided in the update|The provided expression refers|An operand in the update|Item "
    "size|Type mis",
]
STEPS = [re.compile(r"400 (ValidationException: )?(" + pattern + ")", re.S) for pattern in STEPS]


def step(reply):
    """The number of the step that makes such a refusal; None for a success and for what is not in the list."""
    for number, pattern in enumerate(STEPS):
        if pattern.match(reply.outcome):
            return number
    return None


def checked_earlier(difference):
    ours, theirs = step(difference.ours), step(difference.theirs)
    return ours is not None and theirs is not None and ours < theirs


def does_not_fit(difference):
    return not model.request_fits(difference.operation, difference.request)


def breaks_limits(difference):
    return not model.request_keeps_limits(difference.operation, difference.request)


def total_units(body):
    capacity = body["ConsumedCapacity"]
    return sum(part["CapacityUnits"] for part in (capacity if isinstance(capacity, list) else [capacity]))


def empty_capacity(difference):
    """Where both tell capacity, Local's is less for what found nothing, and up to twice ours for a batch of writes."""
    def units(node):
        if isinstance(node, dict):
            for name, value in sorted(node.items()):
                yield from [value] if name == "CapacityUnits" else units(value)
        elif isinstance(node, list):
            for element in sorted(node, key=lambda e: e.get("TableName", "")):
                yield from units(element)

    ours = list(units(difference.ours.body.get("ConsumedCapacity")))
    theirs = list(units(difference.theirs.body.get("ConsumedCapacity")))
    return len(ours) == len(theirs) and all(them <= 2 * us for us, them in zip(ours, theirs))


INDEX_NAME = re.compile(r"IndexName: \S+,")
NULL_IN_SET = re.compile(r'"[SNB]S": \[[^]]*null')
NUMBER = re.compile(r"\{N:[^}]*\}")
PLAIN_NUMBER = r"(The parameter cannot be converted to a numeric value(: .*)?)"
TABLE_GONE = "400 ResourceNotFoundException: Cannot do operations on a non-existent table"
KEY_FAULT = (
    r"(The number of conditions on the keys is invalid|One of the required keys was not given a value|Invalid "
    r"attribute value type|Item to put in PutItem cannot be null|One or more parameter values are not valid. The "
    r"AttributeValue for a key attribute cannot contain an empty \w+ value. Key: \S+|One or more parameter values were "
    r"invalid: Type mismatch for key|The list of keys in RequestItems for BatchGetItem may not contain null or empty "
    r"values: \S+ has one or more empty keys)")
LONG_KEY = (
    "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes")
TABLE_MEMBERS = (
    r"\.(TableDescription|Table)(\.TableStatus|\.TableThroughputModeSummary|(\.\w+\[\d+\])?\.WarmThroughput|"
    r"\.GlobalSecondaryIndexes\[\d+\]\.(IndexStatus|Backfilling|ProvisionedThroughput(\.\w+)?|OnDemandThroughput)|"
    r"\.BillingModeSummary|"
    r"\.ProvisionedThroughput\.NumberOfDecreasesToday|\.DeletionProtectionEnabled)")
UPDATE_FAULT = (
    r"(The document path provided in the update|The provided expression refers to an attribute|An operand in the "
    r"update expression|DynamoDB only supports precision)")


CANCELLED = (
    r"TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for specific reasons "
    r"\[.*\]")


def filters(request):
    return {"FilterExpression", "QueryFilter", "ScanFilter"} & set(request)


def reasons_differ_in_order(difference):
    """Ours is one fault of the request and nothing else, theirs has conditions that do not hold, or other faults."""
    ours, theirs = (re.findall(r"\w+", side.message.rsplit("[")[-1]) for side in (difference.ours, difference.theirs))
    return len(ours) == len(theirs) and sorted(ours) == ["None"] * (len(ours) - 1) + ["ValidationError"]


def several_actions(difference):
    expression = difference.request.get("UpdateExpression", "")
    return "," in expression or len(re.findall("SET|REMOVE|ADD|DELETE", expression)) > 1


def only_removes(request):
    """An UpdateItem that can take away but not add."""
    expression, updates = request.get("UpdateExpression"), request.get("AttributeUpdates")
    if isinstance(expression, str):
        return not re.search(r"\b(SET|ADD)\b", expression, re.I)
    return isinstance(updates, dict) and bool(updates) and all(
        isinstance(update, dict) and update.get("Action") == "DELETE" for update in updates.values())


def removes_something(difference):
    updates = updates_of(difference.operation, difference.request)
    return any("REMOVE" in update.get("UpdateExpression", "") for update in updates)


def several_conditions(difference):
    names = ("KeyConditions", "QueryFilter", "ScanFilter", "Expected")
    return sum(len(difference.request.get(name) or ()) for name in names) > 1


def same_but_for_order(difference):
    return sorted(difference.ours.message) == sorted(difference.theirs.message)


STATEMENTS = "(Batch)?Execute(Statement|Transaction)"


def batch_errors(difference):
    pairs = zip(difference.ours.body["Responses"], difference.theirs.body["Responses"])
    return [(a["Error"]["Message"], b["Error"]["Message"]) for a, b in pairs if "Error" in a and "Error" in b]


def malformed(*messages):
    return all(message.startswith("Statement wasn't well formed") for message in messages)


def malformed_on_both_sides(difference):
    """Where the messages of a batch differ, both say that the statement is malformed."""
    return all(a == b or malformed(a, b) for a, b in batch_errors(difference))


def odd_in_a_batch(difference):
    return all(a == b or b in ("Only single item select is supported", "Invalid operation. Only select, insert, update "
                               "and delete operations are valid") or malformed(a, b)
               for a, b in batch_errors(difference))


KNOWN = [
    # ---- whole classes ----
    Known("wrong JSON types",
          "the request does not fit AWS's model: recorded as SerializationException, before all else; Local "
          "answers 500 InternalFailure, converts numbers to text, or goes on to other checks",
          "400 SerializationException: .+", ".*", when=does_not_fit),
    Known("limits of the model",
          "the request breaks a limit of AWS's model: recorded as `N validation errors detected`, before all "
          "other checks; Local has words of its own, counts no violations, or does not look",
          r"400 ValidationException: (\d+ validation errors? detected: .+|The parameter 'TableName' is "
          "required but was not present in the request|TableName must be at least 3 characters long and at "
          "most 255 characters long)",
          ".*", when=breaks_limits),

    # ---- tables ----
    Known("table not found, managing it", "recorded: the service names the table",
          r"400 ResourceNotFoundException: Requested resource not found: Table: \S+ not found", TABLE_GONE,
          operation="(Describe|Update|Delete)Table|(Describe|Update)TimeToLive"),
    words("another attribute of the time to live",
          r"TimeToLive is active on a different AttributeName: current AttributeName is \S+",
          "TimeToLive is active on a different AttributeName", operation="UpdateTimeToLive"),
    Known("table not found", "recorded: the service's words",
          "400 ResourceNotFoundException: Requested resource not found", TABLE_GONE),
    Known("a short name of a table in a batch or transaction",
          "since 2023 the model allows names of one letter there, and there is no such table",
          "400 ResourceNotFoundException: Requested resource not found",
          r"400 ValidationException: Invalid table/index name\.  Table/index names must be between .*",
          operation="(Batch|Transact).*"),
    words("a short name of a table",
          r"1 validation error detected: Value '..?' at 'tableName' failed to satisfy constraint: Member must have "
          "length greater than or equal to 3",
          r"Invalid table/index name\.  Table/index names must be between .*",
          reason="seen at the service by Alternator's authors to be a ValidationException"),
    Known("table exists", "the service names the table",
          r"400 ResourceInUseException: Table already exists: \S+",
          "400 ResourceInUseException: Cannot create preexisting table", operation="CreateTable"),
    Known("what a table's description tells",
          "a new table is CREATING in the service and ACTIVE at once in Local [Local's usage notes]; Local "
          "leaves the mode of throughput out and adds WarmThroughput",
          places=TABLE_MEMBERS, operation="(Create|Describe|Update|Delete)Table", harmless=True),
    Known("the size of an index",
          "an index has what is projected into it [developer guide, storage considerations]; Local counts whole items",
          places=TABLE_MEMBERS + r"|\.Table\.(Local|Global)SecondaryIndexes\[\d+\]\.IndexSizeBytes",
          operation="DescribeTable"),
    Known("an index update that is null", "null means absent; Local fails inside",
          "400 ValidationException: One or more parameter values were invalid: One of GlobalSecondaryIndexUpdate.*",
          "500 InternalFailure: .*", operation="UpdateTable"),
    words("an index without definitions",
          r"One or more parameter values were invalid: AttributeDefinitions is not specified for index: \S+",
          "No Attribute Schema Defined"),
    words("an index updated twice",
          "One or more parameter values were invalid: Only one global secondary index update per index is allowed "
          r"simultaneously\. Index: \S+",
          r"Only one global secondary index update per index is allowed simultaneously\."),
    words("an index update that says nothing",
          "One or more parameter values were invalid: One of GlobalSecondaryIndexUpdate.Update, "
          "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null",
          "(Update global secondary index action|Global secondary index update) is null"),
    Known("what a deleted table's description tells",
          "recorded: neither keys nor indexes; Local tells the whole table",
          places=TABLE_MEMBERS
          + r"|\.TableDescription\.(AttributeDefinitions|KeySchema|(Local|Global)SecondaryIndexes)",
          operation="DeleteTable", harmless=True),
    Known("what an update of a table tells",
          "recorded: the old throughput, while the table is UPDATING, and an empty index, while it is CREATING; Local "
          "the new throughput and no numbers of the index",
          places=TABLE_MEMBERS + r"|\.TableDescription\.(ProvisionedThroughput\.\w+|"
                                 r"GlobalSecondaryIndexes\[\d+\]\.(IndexSizeBytes|ItemCount))",
          operation="UpdateTable", harmless=True),
    Known("an index that is not there, changing it", "recorded: the service names index and table",
          r"400 ResourceNotFoundException: Requested resource not found: Index \S+ for table \S+",
          "400 ResourceNotFoundException: Requested resource not found", operation="UpdateTable"),
    Known("throughput of a table on demand",
          "recorded: it needs throughput to become provisioned and takes none while it is not; Local does "
          "not mind",
          "400 ValidationException: One or more parameter values were invalid: (Neither ReadCapacityUnits "
          "nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST|ProvisionedThroughput "
          "must be specified when BillingMode is PROVISIONED)",
          "ok", operation="UpdateTable"),
    words("nothing to update", "At least one of ProvisionedThroughput, BillingMode, .* is required",
          "Nothing to update"),
    words("throughput that stays the same", r"The provisioned throughput for the table will not change\. .*",
          "The requested throughput value equals the current value"),
    words("throughput left out",
          "One or more parameter values were invalid: ProvisionedThroughput must be specified when "
          "BillingMode is PROVISIONED|One or more parameter values were invalid: ReadCapacityUnits and "
          "WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
          "No provisioned throughput specified for the table"),
    Known("throughput left out for an index", "Local fails inside",
          "400 ValidationException: One or more parameter values were invalid: ProvisionedThroughput must be "
          r"specified for index: \S+",
          "500 InternalFailure: .*", operation="UpdateTable"),
    words("two keys of one name",
          "Both the Hash Key and the Range Key element in the KeySchema have the same name|Invalid "
          "KeySchema: Some index key attribute have no definition",
          "Two keys can not have the same name"),
    words("two definitions of one name", r".*Attribute ?Name.* duplicated: \S+|.*Duplicate AttributeName in .*",
          "Cannot have two attributes with the same name"),
    words("no hash key", "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
          r"No Hash Key specified in schema\.  All Dynamo DB tables must have exactly one hash key"),
    words("a key without definition",
          "(Invalid KeySchema: Some index key attribute have no definition|One or more parameter values were "
          r"invalid: Some index key attributes are not defined in AttributeDefinitions\. .*)",
          r"((Range|Hash) Key not specified in Attribute Definitions\.  Type unknown\.|Attribute \S+ is not "
          "defined in AttributeDefinitions|No Attribute Schema Defined|Local Secondary Index range key not "
          r"specified in Attribute Definitions\.Type unknown\.)"),
    words("a definition without key",
          r"One or more parameter values were invalid: (Some AttributeDefinitions are not used\. .*|Number "
          "of attributes in KeySchema does not exactly match number of attributes defined in "
          "AttributeDefinitions)",
          "The number of attributes in key schema must match the number of attributes defined in attribute "
          r"definitions\."),

    # ---- numbers, values and keys ----
    words("a number that is none", f'(.*: )?{PLAIN_NUMBER}( for key \\S+)?',
          r"(.*: )?A value provided cannot be converted into a number( for key \S+)?"),
    words("too many digits",
          r"(.*: )?Attempting to store more than 38 significant digits in a Number( for key \S+)?",
          r"(.*: )?DynamoDB only supports precision up to 38 digits( for key \S+)?"),
    words("a null value",
          "(.*: )?Supplied AttributeValue is empty, must contain exactly one of the supported datatypes( for "
          r"key \S+)?",
          r"(.*: )?The supplied Item contains a null AttributeValue(: \S+ is null| for key \S+|)",
          "null means absent, and an absent value is an empty one; Local has words of its own"),
    words("a key that does not match", "The provided key element does not match the schema", KEY_FAULT),
    words("several bad keys",
          "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
          r"an empty \w+ value. Key: \S+|Provided list of item keys contains duplicates",
          KEY_FAULT,
          "keys are looked at one by one; Local looks at all for one fault, then at all for the next",
          operation="Batch.*"),
    words("a key of the wrong type in an item",
          r"One or more parameter values were invalid: Type mismatch for key \S+ expected: \w+ actual: \w+",
          "(One or more parameter values were invalid: Type mismatch for key|Invalid attribute value type)"),
    words("an index key of the wrong type",
          r"One or more parameter values were invalid: Type mismatch for Index Key \S+ Expected: \w+ Actual: "
          r"\w+ IndexName: \S+",
          "(One or more parameter values were invalid: Type mismatch for Index Key|Invalid attribute value "
          "type)"),
    Known("an index key of the wrong type that would not be written",
          "dynalite: the types of all actions are looked at before the item; Local looks at what became of the item",
          "400 ValidationException: One or more parameter values were invalid: Type mismatch for Index Key .*|"
          f"400 {CANCELLED}", "ok",
          operation="UpdateItem|TransactWriteItems", when=lambda d: re.search("if_not_exists|DELETE", str(d.request))),
    words("an index key of the wrong type in AttributeUpdates",
          r"One or more parameter values were invalid: Type mismatch for Index Key \S+ Expected: \w+ Actual: "
          r"\w+ IndexName: \S+",
          "Updates on index keys must be of the same data type as the key attribute", operation="UpdateItem"),
    words("which of several indexes is told", r".*IndexName: \S+, IndexKey: \S+", r".*IndexName: \S+, IndexKey: \S+",
          "the indexes of an attribute have no order that is recorded",
          when=lambda d: INDEX_NAME.sub("", d.ours.message) == INDEX_NAME.sub("", d.theirs.message)),
    words("an index key that is empty and of the wrong type",
          r"One or more parameter values were invalid: Type mismatch for Index Key \S+ Expected: \w Actual: "
          r"\w+ IndexName: \S+",
          r"One or more parameter values are not valid\. The update expression attempted to update a secondary index "
          r"key to a value that is not supported\. .* empty \w+ value\.",
          "which is told first is recorded nowhere", operation="UpdateItem"),
    words("a missing key in an item",
          r"One or more parameter values were invalid: Missing the key \S+ in the item",
          "One of the required keys was not given a value"),
    words("too long a key",
          "One or more parameter values were invalid: (Size of hashkey has exceeded the maximum size limit "
          "of2048 bytes|Aggregated size of all range keys has exceeded the size limit of 1024 bytes)",
          LONG_KEY),
    Known("a null inside a set, beside other faults", "null means absent; Local fails inside before it looks further",
          "400 .*", "500 InternalFailure: .*", when=lambda d: NULL_IN_SET.search(json.dumps(d.request))),
    Known("a null inside a set", "null means absent; Local fails inside",
          r"400 ValidationException: (.*: )?One or more parameter values were invalid: An \w+ set may not have a "
          r"null \w+ as a member( for key \S+)?",
          "500 InternalFailure: .*"),
    Known("an index that is younger than a bad key",
          "an update is judged by what it changes; Local looks at all keys of indexes in the item",
          "ok", "400 ValidationException: One or more parameter values are not valid. The update expression attempted "
          r"to update a secondary index key to a value that is not supported. .* empty \w+ value\.",
          operation="UpdateItem", when=lambda d: d.request["TableName"].endswith("grown")),
    Known("an integer of many digits", "recorded nowhere: Local fails inside, Quipu takes it for the largest there is",
          "ok", "500 InternalFailure: .*", operation="Query|Scan|ListTables",
          when=lambda d: d.request.get("Limit", 0) >= 2 ** 31),
    words("a name that is null",
          r"ExpressionAttributeNames contains invalid value: Empty attribute name for key \S+",
          r"ExpressionAttributeNames contains invalid value: null for key \S+",
          "null means absent, so the name is empty"),
    words("too many digits in a sum",
          "Number overflow. Attempting to store a number with magnitude larger than supported range",
          "DynamoDB only supports precision up to 38 digits",
          "the service's words are recorded nowhere; both refuse", operation="UpdateItem"),
    Known("keys that are equal numbers",
          "recorded: numbers are keys by value, so 100 and 1e2 are one key twice",
          "400 ValidationException: Provided list of item keys contains duplicates", "ok", operation="Batch.*"),
    words("an empty batch", "The requestItems parameter is required for Batch(Get|Write)Item",
          "(BatchGetItem must have some requests set|BatchWriteItem cannot have a null or no requests set)"),
    words("numbers in a message", r".*\{N:.*\}.*", r".*\{N:.*\}.*",
          "recorded: in the same normal form as in items",
          when=lambda d: NUMBER.sub('N', d.ours.message) == NUMBER.sub('N', d.theirs.message)),

    # ---- parameters ----
    Known("an update that is null", "an update without a value is one of DELETE alone; Local fails inside",
          "400 ValidationException: One or more parameter values were invalid: Only DELETE action is allowed "
          "when no attribute value is specified",
          "500 InternalFailure: .*", operation="UpdateItem"),
    Known("a page that ends with its table",
          "recorded: a page that was cut by Limit has a LastEvaluatedKey; Local leaves it out where no other "
          "item can follow",
          places=r"\.LastEvaluatedKey", operation="Query",
          when=lambda d: d.ours.body['ScannedCount'] == d.request.get('Limit')),
    Known("a query of one item that is continued",
          "seen at the service by Alternator's authors: behind the only item there is nothing to start from",
          "400 ValidationException: The provided exclusive start key is invalid: ExclusiveStartKey: .*", "ok",
          operation="Query"),
    words("ReturnValues of PutItem and DeleteItem", "ReturnValues can only be ALL_OLD or NONE",
          "Return values set to invalid value", operation="(Put|Delete)Item"),
    words("a segment too high",
          r"The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: \d+ "
          r"is not less than TotalSegments: \d+",
          r"1 validation error detected: Value '\d+' at 'segment' failed to satisfy constraint: Member must "
          r"have value less than or equal to \d+"),
    words("a start key elsewhere",
          "(The provided starting key is outside query boundaries based on provided conditions|The query can "
          "return at most one row and cannot be restarted)",
          "The provided starting key does not match the range key predicate"),
    Known("a start key at the end of its range",
          "the key satisfies the condition, so nothing is wrong with it and the page behind it is empty; "
          "Local refuses it",
          "ok", "400 ValidationException: The provided starting key does not match the range key predicate",
          operation="Query", when=lambda d: d.ours.body['Count'] == 0),
    words("a start key with too few attributes",
          "The provided starting key is invalid", ".*Condition parameter type does not match schema type",
          "recorded (dynalite): its number of attributes is looked at before the conditions", operation="Query"),
    words("no key conditions", "Conditions can be of length 1 or 2 only", "Conditions must be at least length 1"),
    words("more key conditions than keys", r"The number of query conditions \(\d+\) exceeds the number of key .*",
          "Conditions can be of length 1 or 2 only"),
    words("two conditions on a key", "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one .*",
          "KeyConditionExpressions must only contain one condition per key"),
    words("a start key that is no key", "The provided starting key is invalid.*",
          "(Exclusive Start Key must have same size as table's key schema|Supplied AttributeValue is empty, .*)"),
    words("a hash key not asked for", r"Query condition missed key schema element: \S+",
          "Query condition missed key schema element"),
    Known("both kinds of parameters", "recorded: also an empty Expected is one parameter too many",
          "400 ValidationException: Can not use both expression and non-expression parameters in the same "
          "request: .*",
          "ok", when=lambda d: {} in d.request.values()),
    words("names of types",
          "One or more parameter values were invalid: (DELETE action with value|ADD action) is not supported "
          r"for the type \w+",
          "One or more parameter values were invalid: (DELETE action with value|ADD action) is not supported "
          r"for the type \w+",
          "recorded: N, S and so on; Local says NUMBER, STRING"),
    words("order of the names in a set of types",
          r"Invalid \w+: Invalid attribute type name found; type: .*, valid types: "
          r"\{B,NULL,SS,BOOL,L,BS,N,NS,S,M\}",
          r"Invalid \w+: Invalid attribute type name found; type: .*, valid types: \{.*\}"),
    words("order of names in a list", r".*\[.*\].*", r".*\[.*\].*",
          "the service's order is that of no known rule", when=same_but_for_order),
    words("members told twice",
          r".*Input collection \[.*\](of type BS )?contains duplicates\.( for key \S+)?|.*Input collection "
          r"\[.*\] contains duplicates\.( for key \S+)?",
          r".*Input collection .*contains duplicates\.?( for key \S+)?"),
    words("an empty expression", r"Invalid \w+: The expression can not be empty;",
          r"ExpressionAttribute\w+ can only be specified when using expressions: \w+ is null",
          "recorded: empty is not absent"),
    words("which paths overlap", r"Invalid \w+Expression: Two document paths overlap with each other; .*",
          r"Invalid \w+Expression: Two document paths overlap with each other; .*",
          "beside other paths the pair that is told follows the order of a Java hash map"),
    words("a name twice", r"One or more parameter values were invalid: Duplicate value in attribute name: \S+",
          "Cannot have two attributes with the same name"),
    words("half of the segments",
          "The TotalSegments parameter is required but was not present in the request when Segment parameter "
          "is present",
          "If segment is specified, total segment must also be specified"),
    words("an empty placeholder", r'ExpressionAttribute\w+ contains invalid key: Syntax error; key: ""',
          r"ExpressionAttribute\w+ contains invalid key: The expression attribute map contains an empty key;"),
    words("several faults in legacy conditions",
          r"One or more parameter values were invalid: ComparisonOperator \w+ is not valid for \w+ "
          "AttributeValue type",
          r"One or more parameter values were invalid: ComparisonOperator \w+ is not valid for \w+ "
          "AttributeValue type",
          "which of several conditions is looked at first is recorded nowhere",
          when=several_conditions),
    Known("names for no expression", "recorded: also in a batch and when empty",
          "400 ValidationException: ExpressionAttributeNames can only be specified when using expressions",
          "ok", operation="BatchGetItem"),
    Known("a filter on what an index does not project",
          "a query of the service refuses it; of a scan nothing is recorded: Local filters by the whole item and does "
          "not charge for it, Quipu filters by what the index holds, and charges for what it fetches",
          places=r"\.(Count|Items|ConsumedCapacity\..*)", operation="Query|Scan",
          when=lambda d: d.request.get("IndexName") and filters(d.request)),
    words("a path into a key of an index, beside other faults",
          r".*[Ii]ndex \S+ does not project.*|Filter Expression can only contain non-primary key attributes: .*|"
          r"The provided starting key .*|The query can return .*|.*Type mismatch for Index Key .*",
          "Key attributes must be scalars; .*: IndexKey: .*", "which is told first is recorded nowhere",
          operation="Query|Scan|UpdateItem"),
    words("a path into a key of an index that is none",
          "Key attributes must be scalars; .*: IndexKey: .*", "Invalid attribute value type",
          "recorded: paths are looked at before the item's keys", operation="PutItem|TransactWriteItems"),
    words("what an index does not project",
          r".*[Ii]ndex \S+ does not project.*|.*Select type ALL_ATTRIBUTES is not supported .*",
          r".*[Ii]ndex \S+ does not project.*",
          "selection and filter both ask for too much; which is told first is recorded nowhere",
          when=lambda d: 'FilterExpression' in d.request),
    Known("two faults in one update",
          "which of several failing actions is told is not documented; ours are tried in the order of the "
          "expression",
          f'400 ValidationException: {UPDATE_FAULT}.*', f'400 ValidationException: {UPDATE_FAULT}.*',
          operation="UpdateItem",
          when=several_actions),

    Known("an update that only clears makes no item",
          "the API reference on AttributeUpdates: DELETE causes nothing to happen where there is no item; "
          "Alternator's tests, which pass on the service, say the same; Local makes one",
          places=r"\.Attributes.*|\.ConsumedCapacity.*", operation="UpdateItem", when=lambda d: only_clears(d.request)),

    Known("what an update that only removes returns",
          "Alternator's tests, made against the service: where no item is, none comes to be; Local makes one",
          places=r"\.Attributes", operation="UpdateItem", harmless=True,
          when=lambda d: only_removes(d.request) and "Attributes" not in d.ours.body),
    Known("removing what is nowhere",
          "recorded nowhere for an item that does not exist; Quipu finds nothing to remove, Local looks for the path",
          "ok", "400 ValidationException: The document path provided in the update expression is invalid for update",
          operation="UpdateItem|TransactWriteItems", when=removes_something),

    # ---- transactions ----
    Known("an action that is null", "null means absent, so there is no action; Local fails inside",
          "400 ValidationException: (Invalid Request: TransactWriteRequest should contain Delete or Put or Update "
          r"request|1 validation error detected: Value null at 'transactItems\.\d+\.member' failed to satisfy "
          "constraint: Member must not be null)",
          "500 InternalFailure: .*", operation="Transact.*", when=lambda d: None in d.request["TransactItems"]),
    Known("an action that cannot be done",
          "the API reference: such faults are reasons of a cancellation, one for each action; Local refuses the "
          "whole call in the words of the first",
          f"400 {CANCELLED}", f"400 ValidationException: ({UPDATE_FAULT}|{KEY_FAULT}|{LONG_KEY}).*",
          operation="TransactWriteItems"),
    Known("an action with two faults",
          "seen at the service by Alternator's authors: the first thing that a request says wrongly ends the checking, "
          "and no condition is looked at; Local tells all",
          f"400 {CANCELLED}", f"400 {CANCELLED}", operation="TransactWriteItems", when=reasons_differ_in_order),
    Known("a key that cannot be read",
          "recorded: a cancellation with a reason for each key; Local gives none, or refuses the whole call",
          f"400 {CANCELLED}", f"400 (TransactionCanceledException|ValidationException): ({KEY_FAULT}|{LONG_KEY})",
          operation="TransactGetItems"),
    Known("a projection of nothing",
          "measured by the authors of the conformance suite: the item is left out; Local tells an empty one",
          places=r"\.Responses\[\d+\]\.Item", operation="TransactGetItems",
          when=lambda d: all(item or not theirs for item, theirs in zip(
              (r.get("Item") for r in d.ours.body["Responses"]), (r.get("Item") for r in d.theirs.body["Responses"])))),

    # ---- capacity ----
    Known("capacity that nobody asked for",
          "the API reference: NONE is the default; Local tells it of DeleteItem anyhow",
          places=r"\.ConsumedCapacity", operation="DeleteItem",
          when=lambda d: d.request.get('ReturnConsumedCapacity', 'NONE') in ('NONE', None), harmless=True),
    Known("capacity of what found nothing",
          "a read of nothing costs what the smallest read costs, and a write in a batch what it costs alone "
          "[capacity rules of the developer guide]; Local counts 0 for the one and 2 for the other",
          places=r"\.ConsumedCapacity.*\.CapacityUnits", when=empty_capacity, harmless=True),

    Known("capacity of a key that is never whole",
          "an item that an index held neither before nor after costs it nothing; Local charges for parts of a key that "
          "come and go",
          places=r"\.ConsumedCapacity(\[\d+\])?\.(CapacityUnits|WriteCapacityUnits|GlobalSecondaryIndexes"
                 r"(\.(gsi-|made-)\w+(\.\w+)?)?)", harmless=True,
          when=lambda d: total_units(d.ours.body) < total_units(d.theirs.body)),

    # ---- statements of PartiQL ----
    words("what is wrong with a statement",
          "(Validation failed in TransactStatements.*: )?Statement wasn't well formed, can't be processed: .*",
          "Statement wasn't well formed, can't be processed: .*",
          "recorded: the words of the open parser; Local repeats the statement", operation=STATEMENTS),
    Known("what is wrong with a statement of a batch",
          "recorded: the words of the open parser; Local repeats the statement", operation=STATEMENTS,
          places=r"\.Responses\[\d+\]\.Error\.Message", when=malformed_on_both_sides, harmless=True),
    Known("an item that is there", "the API reference names it DuplicateItemException",
          "400 DuplicateItemException: (.*)", "400 DuplicateItem: .*", operation=STATEMENTS),
    Known("an item that is there, in a transaction", "the API reference has DuplicateItem among the codes",
          "400 TransactionCanceledException: .*DuplicateItem.*",
          "400 TransactionCanceledException: .*ValidationError.*",
          operation=STATEMENTS),
    Known("reads of a batch without a key", "recorded: the service's words", operation="BatchExecuteStatement",
          places=r"\.Responses\[\d+\]\.Error\.Message", when=odd_in_a_batch, harmless=True),
    words("statements of a transaction by number", r"Validation failed in TransactStatements\[\d+\]: (.*)", ".*",
          "recorded: the statement is named", operation=STATEMENTS),

    # ---- last, since it explains most ----
    Known("order of checks",
          "recorded (validation-ordering): shapes, limits, parameters, expressions, the table, its keys, the "
          "item, in this order; Local looks at keys and tables before it looks at expressions, and at "
          "filters before key conditions",
          "400 .*", "400 .*", when=checked_earlier),
]
