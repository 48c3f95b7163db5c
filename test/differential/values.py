"""Random attribute values, keys and items: few keys, so that requests meet the same items, and values at the edges."""
import base64

HASHES = {"S": ["h1", "h2", "h3"], "N": ["1", "2", "-3"], "B": ["AA==", "AQI=", "/w=="]}
RANGES = {
    "S": ["a", "ab", "b", "c", "ca", "é", "\U0001f600"],
    "N": ["0", "1", "2.5", "-1", "100", "1e2", "-0.001"],
    "B": ["AA==", "AAA=", "AQ==", "gA==", "//8="],
}
NAMES = ["a", "b", "c", "d", "e", "m", "l", "t"]
NUMBERS = ["0", "1", "2", "3", "5", "-1", "-0", "01", "1.50", "1e5", "-1e-5", "0.1", "100", "1E2",
           "12345678901234567890", "9" * 38, "1e125", "-1e125", "1e-130", "0.000001", "10.0", "3.14159", ".5", "5."]
BAD_NUMBERS = ["1e126", "1e-131", "abc", "", " 1", "1 ", "1" * 39, "0x1", "--1", "1e", "NaN", "1,5"]
TEXTS = ["", "a", "b", "ab", "abc", "x y", "é", "\U0001f600", "\u0000", "\"quoted\\\"", "hello world", "A"]


class Schema:
    """A table or an index: its keys as (name, type), the range key None where there is none."""

    def __init__(self, name, hash_key, range_key=None, indexes=()):
        self.name, self.hash, self.range, self.indexes = name, hash_key, range_key, indexes

    @property
    def keys(self):
        return [self.hash] + ([self.range] if self.range else [])

    def key_schema(self):
        return [{"AttributeName": n, "KeyType": k} for (n, _), k in zip(self.keys, ("HASH", "RANGE"))]

    def create_request(self):
        keys = dict(self.keys + [key for index in self.indexes for key in index.keys])
        request = {"TableName": self.name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": self.key_schema(),
                   "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in keys.items()]}
        for index in self.indexes:
            kind = "LocalSecondaryIndexes" if index.hash == self.hash else "GlobalSecondaryIndexes"
            request.setdefault(kind, []).append(
                {"IndexName": index.name, "KeySchema": index.key_schema(), "Projection": index.projection})
        return request


class Index(Schema):
    def __init__(self, name, hash_key, range_key, projection):
        super().__init__(name, hash_key, range_key)
        self.projection = projection


def table_schemas(prefix):
    """The tables that items are written to: every type of key, and one table with indexes."""
    pk, sk = ("pk", "S"), ("sk", "S")
    indexes = [Index("global", ("g", "S"), ("r", "N"), {"ProjectionType": "ALL"}),
               Index("keys", ("r", "N"), None, {"ProjectionType": "KEYS_ONLY"}),
               Index("local", pk, ("r", "N"), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b"]})]
    return [Schema(prefix + "hash", pk), Schema(prefix + "text", pk, sk), Schema(prefix + "number", pk, ("sk", "N")),
            Schema(prefix + "bytes", ("pk", "N"), ("sk", "B")), Schema(prefix + "blob", ("pk", "B"), sk),
            Schema(prefix + "indexed", pk, sk, indexes)]


class Values:
    def __init__(self, rng):
        self.rng = rng

    def chance(self, probability):
        return self.rng.random() < probability

    def number(self, bad=0.01):
        return self.rng.choice(BAD_NUMBERS if self.chance(bad) else NUMBERS)

    def text(self):
        return self.rng.choice(TEXTS)

    def binary(self):
        return base64.b64encode(bytes(self.rng.choices(range(256), k=self.rng.randrange(4)))).decode()

    def set_of(self, make):
        """Distinct members as a rule; now and then none, or one twice."""
        members = list(dict.fromkeys(make() for _ in range(self.rng.randint(1, 3))))
        if self.chance(0.02):
            return []
        return members + members[:1] if self.chance(0.02) else members

    def value(self, depth=2):
        kind = self.rng.choice("S S N N N B BOOL NULL SS NS BS L M L M".split())
        if kind in ("L", "M") and depth == 0:
            kind = "S"
        if kind == "S":
            return {"S": self.text()}
        if kind == "N":
            return {"N": self.number()}
        if kind == "B":
            return {"B": self.binary()}
        if kind == "BOOL":
            return {"BOOL": self.chance(0.5)}
        if kind == "NULL":
            return {"NULL": not self.chance(0.03)}
        if kind == "SS":
            return {"SS": self.set_of(lambda: self.rng.choice(TEXTS[1:] if not self.chance(0.1) else TEXTS))}
        if kind == "NS":
            return {"NS": self.set_of(self.number)}
        if kind == "BS":
            return {"BS": self.set_of(lambda: base64.b64encode(bytes([self.rng.randrange(5)])).decode())}
        if kind == "L":
            return {"L": [self.value(depth - 1) for _ in range(self.rng.randrange(4))]}
        return {"M": {self.rng.choice(NAMES): self.value(depth - 1) for _ in range(self.rng.randrange(4))}}

    def key(self, schema):
        key = {schema.hash[0]: {schema.hash[1]: self.rng.choice(HASHES[schema.hash[1]])}}
        if schema.range:
            key[schema.range[0]] = {schema.range[1]: self.rng.choice(RANGES[schema.range[1]])}
        if self.chance(0.03):
            self.spoil_key(key)
        return key

    def spoil_key(self, key):
        name = self.rng.choice(list(key))
        what = self.rng.randrange(5)
        if what == 0:
            del key[name]
        elif what == 1:
            key["extra"] = {"S": "x"}
        elif what == 2:
            key[name] = self.value(1)
        elif what == 3:
            key[name] = {"S": ""}
        else:
            key[name] = {"S": "k" * self.rng.choice([1024, 1025, 2048, 2049])}

    def item(self, schema):
        item = self.key(schema)
        for name in self.rng.sample(NAMES, self.rng.randrange(6)):
            item[name] = self.value()
        for name, kind in (key for index in schema.indexes for key in index.keys):
            if name not in item and self.chance(0.6):
                item[name] = {kind: self.rng.choice(HASHES[kind])} if not self.chance(0.03) else self.value(0)
        return item
