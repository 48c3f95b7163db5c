"""Random requests for every operation on tables and items. What a request is depends only on the generator's seed."""
import copy

from expressions import Expressions, Legacy
from values import NAMES, Schema, Values, table_schemas

WRONG = [None, True, 0, 1.5, -1, "", "x", "x" * 300, [], {}, [[]], {"S": "x"}, [{}], "ALL_OLD", 10 ** 20]
CAPACITY = ["NONE", "TOTAL", "INDEXES"]


class Requests:
    def __init__(self, rng, prefix):
        self.rng = rng
        self.values = Values(rng)
        self.legacy = Legacy(self.values)
        self.prefix = prefix
        self.schemas = table_schemas(prefix)
        self.kinds = [(self.put, 12), (self.get, 8), (self.update, 20), (self.delete, 7), (self.batch_get, 4),
                      (self.batch_write, 6), (self.query, 16), (self.scan, 12), (self.create_table, 3),
                      (self.describe_table, 2), (self.update_table, 2), (self.delete_table, 3), (self.list_tables, 2)]

    def chance(self, probability):
        return self.rng.random() < probability

    def next(self):
        """(operation, request): one in eight is spoilt in one random place."""
        make = self.rng.choices([k for k, _ in self.kinds], [w for _, w in self.kinds])[0]
        operation, request = make()
        if not self.chance(0.125):
            return operation, request
        return operation, self.with_actions(self.spoil(request))

    # ---- parts ----

    def schema(self):
        return self.rng.choice(self.schemas)

    def table_name(self, schema):
        return schema.name if not self.chance(0.01) else self.prefix + "missing"

    def maybe(self, request, probability, **members):
        if self.chance(probability):
            request.update(members)

    def add_condition(self, request, expressions, probability):
        if not self.chance(probability):
            return
        if self.chance(0.25):
            request["Expected"] = self.legacy.several(self.legacy.expected)
            self.maybe(request, 0.2, ConditionalOperator=self.rng.choice(["AND", "OR"]))
        else:
            request["ConditionExpression"] = expressions.maybe_broken(expressions.condition())
            self.maybe(request, 0.2, ReturnValuesOnConditionCheckFailure=self.rng.choice(["NONE", "ALL_OLD"]))

    # ---- items ----

    def put(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema), "Item": self.values.item(schema)}
        self.add_condition(request, expressions, 0.35)
        self.maybe(request, 0.3, ReturnValues=self.rng.choice(["NONE", "ALL_OLD", "ALL_OLD", "ALL_NEW"]))
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "PutItem", {**request, **expressions.parameters()}

    def get(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema), "Key": self.values.key(schema)}
        self.add_projection(request, expressions, 0.4)
        self.maybe(request, 0.3, ConsistentRead=self.chance(0.5))
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "GetItem", {**request, **expressions.parameters()}

    def add_projection(self, request, expressions, probability):
        if not self.chance(probability):
            return
        if self.chance(0.25):
            request["AttributesToGet"] = self.rng.sample(NAMES, self.rng.randint(1, 3))
        else:
            request["ProjectionExpression"] = expressions.maybe_broken(expressions.projection())

    def update(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema), "Key": self.values.key(schema)}
        if self.chance(0.2):
            request["AttributeUpdates"] = self.legacy.updates()
            if self.chance(0.4):
                request["Expected"] = self.legacy.several(self.legacy.expected)
        elif not self.chance(0.03):
            request["UpdateExpression"] = expressions.maybe_broken(expressions.update())
            self.add_condition(request, expressions, 0.3)
        self.maybe(request, 0.6, ReturnValues=self.rng.choice(
            ["NONE", "ALL_OLD", "ALL_NEW", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]))
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "UpdateItem", {**request, **expressions.parameters()}

    def delete(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema), "Key": self.values.key(schema)}
        self.add_condition(request, expressions, 0.4)
        self.maybe(request, 0.4, ReturnValues=self.rng.choice(["NONE", "ALL_OLD", "ALL_OLD", "UPDATED_NEW"]))
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "DeleteItem", {**request, **expressions.parameters()}

    # ---- batches ----

    def batch_get(self):
        tables = {}
        for schema in self.rng.sample(self.schemas, self.rng.choice([1, 1, 2])):
            expressions = Expressions(self.values)
            keys = self.distinct(self.values.key(schema) for _ in range(self.rng.randint(1, 5)))
            entry = {"Keys": keys}
            self.add_projection(entry, expressions, 0.3)
            self.maybe(entry, 0.2, ConsistentRead=self.chance(0.5))
            tables[self.table_name(schema)] = {**entry, **expressions.parameters()}
        request = {"RequestItems": tables}
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "BatchGetItem", request

    def distinct(self, keys):
        """Without repeats as a rule, since these refuse the whole batch."""
        result = []
        for key in keys:
            if key not in result or self.chance(0.05):
                result.append(key)
        return result

    def batch_write(self):
        tables = {}
        for schema in self.rng.sample(self.schemas, self.rng.choice([1, 1, 2])):
            keys = self.distinct(self.values.key(schema) for _ in range(self.rng.randint(1, 5)))
            tables[self.table_name(schema)] = [self.write_of(key) for key in keys]
        request = {"RequestItems": tables}
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "BatchWriteItem", request

    def write_of(self, key):
        if self.chance(0.3):
            return {"DeleteRequest": {"Key": key}}
        item = dict(key)
        for name in self.rng.sample(NAMES, self.rng.randrange(4)):
            item[name] = self.values.value()
        return {"PutRequest": {"Item": item}}

    # ---- reading many ----

    def query(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema)}
        table, schema = schema, self.maybe_index(request, schema, 0.7)
        if self.chance(0.2):
            request["KeyConditions"] = self.legacy.key_conditions(schema)
            if self.chance(0.3):
                request["QueryFilter"] = self.legacy.several(self.legacy.condition)
                self.maybe(request, 0.3, ConditionalOperator=self.rng.choice(["AND", "OR"]))
        else:
            request["KeyConditionExpression"] = expressions.maybe_broken(expressions.key_condition(schema))
            if self.chance(0.3):
                request["FilterExpression"] = expressions.maybe_broken(expressions.condition())
        self.add_read_options(request, expressions)
        self.maybe(request, 0.3, ScanIndexForward=self.chance(0.4))
        if self.chance(0.15):
            request["ExclusiveStartKey"] = {**self.values.key(table), **self.values.key(schema)}
        return "Query", {**request, **expressions.parameters()}

    def maybe_index(self, request, table, probability):
        """Names an index of the table and answers it; else the table itself."""
        if not table.indexes or not self.chance(probability):
            self.maybe(request, 0.01, IndexName=self.rng.choice(["missing", "x"]))
            return table
        index = self.rng.choice(table.indexes)
        request["IndexName"] = index.name
        return index

    def add_read_options(self, request, expressions):
        if self.chance(0.2):
            self.add_projection(request, expressions, 1)
        else:
            self.maybe(request, 0.15, Select=self.rng.choice(
                ["ALL_ATTRIBUTES", "COUNT", "COUNT", "SPECIFIC_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"]))
        self.maybe(request, 0.3, Limit=self.rng.choice([1, 2, 3, 10, 0]))
        self.maybe(request, 0.2, ConsistentRead=self.chance(0.5))
        self.maybe(request, 0.2, ReturnConsumedCapacity=self.rng.choice(CAPACITY))

    def scan(self):
        schema, expressions = self.schema(), Expressions(self.values)
        request = {"TableName": self.table_name(schema)}
        self.maybe_index(request, schema, 0.5)
        if self.chance(0.15):
            request["ScanFilter"] = self.legacy.several(self.legacy.condition)
            self.maybe(request, 0.3, ConditionalOperator=self.rng.choice(["AND", "OR"]))
        elif self.chance(0.75):
            request["FilterExpression"] = expressions.maybe_broken(expressions.condition())
        self.add_read_options(request, expressions)
        if self.chance(0.1):
            request.update(TotalSegments=self.rng.choice([1, 2, 4]), Segment=self.rng.choice([0, 0, 1, 5]))
        return "Scan", {**request, **expressions.parameters()}

    # ---- tables ----

    def other_name(self):
        return f"{self.prefix}other{self.rng.randrange(4)}"

    def throughput(self):
        return {"ReadCapacityUnits": self.rng.randint(1, 5), "WriteCapacityUnits": self.rng.randint(1, 5)}

    def create_table(self):
        keys = self.rng.choice(self.schemas).keys
        request = Schema(self.other_name(), *keys).create_request()
        if self.chance(0.4):
            del request["BillingMode"]
            request["ProvisionedThroughput"] = self.throughput()
        if self.chance(0.3):
            self.add_index(request)
        if self.chance(0.2):
            self.break_table(request)
        return "CreateTable", request

    def add_index(self, request):
        request["AttributeDefinitions"].append({"AttributeName": "ix", "AttributeType": self.rng.choice("SNB")})
        projection = self.rng.choice([{"ProjectionType": "ALL"}, {"ProjectionType": "KEYS_ONLY"},
                                      {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]}])
        if self.chance(0.4) and len(request["KeySchema"]) == 2:
            keys = [request["KeySchema"][0], {"AttributeName": "ix", "KeyType": "RANGE"}]
            request["LocalSecondaryIndexes"] = [{"IndexName": "local", "KeySchema": keys, "Projection": projection}]
        else:
            keys = [{"AttributeName": "ix", "KeyType": "HASH"}]
            index = {"IndexName": "global", "KeySchema": keys, "Projection": projection}
            if "ProvisionedThroughput" in request:
                index["ProvisionedThroughput"] = self.throughput()
            request["GlobalSecondaryIndexes"] = [index]

    def break_table(self, request):
        keys, definitions = request["KeySchema"], request["AttributeDefinitions"]
        pick = self.rng.randrange(6)
        if pick == 0:
            request["TableName"] = self.rng.choice(["ab", "x" * 256, "has space", "üml"])
        elif pick == 1:
            definitions.append({"AttributeName": "spare", "AttributeType": "S"})
        elif pick == 2:
            definitions.pop()
        elif pick == 3:
            keys[0]["KeyType"] = self.rng.choice(["RANGE", "NEITHER"])
        elif pick == 4:
            definitions[0]["AttributeType"] = self.rng.choice(["BOOL", "X"])
        else:
            keys.append(dict(keys[0]))

    def describe_table(self):
        return "DescribeTable", {"TableName": self.other_name()}

    def update_table(self):
        request = {"TableName": self.other_name()}
        if self.chance(0.6):
            request["ProvisionedThroughput"] = self.throughput()
        self.maybe(request, 0.4, BillingMode=self.rng.choice(["PROVISIONED", "PAY_PER_REQUEST"]))
        return "UpdateTable", request

    def delete_table(self):
        return "DeleteTable", {"TableName": self.other_name()}

    def list_tables(self):
        request = {}
        self.maybe(request, 0.5, Limit=self.rng.choice([1, 2, 3, 100, 0, 101]))
        self.maybe(request, 0.4, ExclusiveStartTableName=self.rng.choice([self.other_name(), self.prefix, "zzz", "a"]))
        return "ListTables", request

    # ---- errors on purpose ----

    def spoil(self, request):
        """A copy with one member somewhere left out, replaced, renamed or added."""
        request = copy.deepcopy(request)
        places = list(self.places(request))
        if not places:
            return {"Unknown": 1}
        holder, key = self.rng.choice(places)
        pick = self.rng.randrange(10)
        if pick < 3:
            del holder[key]
        elif pick < 8:
            holder[key] = copy.deepcopy(self.rng.choice(WRONG))
        elif isinstance(holder, dict):
            holder[self.rng.choice(["Unknown", "S", "N", "", "a", "#a", ":a"])] = holder.pop(key) if pick == 8 else "x"
        else:
            holder.append(copy.deepcopy(holder[key]))
        return request

    def with_actions(self, request):
        """Names the action of each attribute update: Local silently ignores one without, and the items would differ."""
        updates = request.get("AttributeUpdates")
        for update in updates.values() if isinstance(updates, dict) else ():
            if isinstance(update, dict) and update.get("Action") is None:
                update["Action"] = "PUT"
        return request

    def places(self, node):
        """Every (container, key or index) in the request."""
        keys = list(node) if isinstance(node, dict) else range(len(node))
        for key in keys:
            yield node, key
            if isinstance(node[key], (dict, list)):
                yield from self.places(node[key])
