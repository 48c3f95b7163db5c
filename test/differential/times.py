"""Random changes of a table's time to live. The attribute is one that no item has: nothing expires."""
from values import Schema

ATTRIBUTES = ["expires", "expires", "expires", "other", "pk", "", "x" * 256]


class Times:
    def __init__(self, requests):
        self.requests, self.rng = requests, requests.rng
        self.schemas = [Schema(requests.prefix + "timed", ("pk", "S"))]

    def next(self):
        """(operation, request): one in eight is spoilt in one random place."""
        operation, request = self.rng.choices([self.update, self.describe], [3, 1])[0]()
        return operation, self.requests.spoil(request) if self.requests.chance(0.125) else request

    def update(self):
        specification = {"Enabled": self.rng.random() < 0.5, "AttributeName": self.rng.choice(ATTRIBUTES)}
        return "UpdateTimeToLive", {"TableName": self.requests.table_name(self.schemas[0]),
                                    "TimeToLiveSpecification": specification}

    def describe(self):
        return "DescribeTimeToLive", {"TableName": self.requests.table_name(self.schemas[0])}
