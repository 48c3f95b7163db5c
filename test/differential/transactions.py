"""Random transactions: several actions, as a rule on different items, of one or more tables."""
from expressions import Expressions


class Transactions:
    def __init__(self, requests):
        self.requests = requests  # of which single parts are made
        self.rng, self.values = requests.rng, requests.values

    def next(self):
        """(operation, request): one in eight is spoilt in one random place."""
        operation, request = self.rng.choices([self.write, self.get], [3, 1])[0]()
        return operation, self.requests.spoil(request) if self.requests.chance(0.125) else request

    def targets(self):
        """(schema, key) pairs; repeats refuse the whole transaction, so they are rare."""
        result = []
        for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4])):
            schema = self.requests.schema()
            target = schema, self.values.key(schema)
            if target not in result or self.requests.chance(0.05):
                result.append(target)
        return result

    def write(self):
        kinds = [("Put", self.put), ("Update", self.update), ("Delete", self.delete), ("ConditionCheck", self.check)]
        actions = []
        for schema, key in self.targets():
            (kind, make), expressions = self.rng.choices(kinds, [4, 5, 2, 3])[0], Expressions(self.values)
            action = {"TableName": self.requests.table_name(schema), **make(schema, key, expressions)}
            self.requests.maybe(action, 0.3, ReturnValuesOnConditionCheckFailure=self.rng.choice(["NONE", "ALL_OLD"]))
            actions.append({kind: {**action, **expressions.parameters()}})
        return "TransactWriteItems", {"TransactItems": actions}

    def condition(self, expressions, probability):
        if not self.requests.chance(probability):
            return {}
        return {"ConditionExpression": expressions.maybe_broken(expressions.condition())}

    def put(self, schema, key, expressions):
        return {"Item": {**self.values.item(schema), **key}, **self.condition(expressions, 0.3)}

    def update(self, schema, key, expressions):
        text = expressions.maybe_broken(expressions.update())
        return {"Key": key, "UpdateExpression": text, **self.condition(expressions, 0.3)}

    def delete(self, schema, key, expressions):
        return {"Key": key, **self.condition(expressions, 0.3)}

    def check(self, schema, key, expressions):
        return {"Key": key, **self.condition(expressions, 1)}

    def get(self):
        gets = []
        for schema, key in self.targets():
            expressions = Expressions(self.values)
            get = {"TableName": self.requests.table_name(schema), "Key": key}
            if self.requests.chance(0.4):
                get["ProjectionExpression"] = expressions.maybe_broken(expressions.projection())
            gets.append({"Get": {**get, **expressions.parameters()}})
        return "TransactGetItems", {"TransactItems": gets}
