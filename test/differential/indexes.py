"""Random requests to tables with many secondary indexes, some of them with keys of several attributes."""
from compare import INDEX_ORDERS
from expressions import Expressions
from generate import CAPACITY, Requests
from values import HASHES, NAMES, RANGES, Index, Schema

G, H, R, S, T = ("g", "S"), ("h", "N"), ("r", "S"), ("s", "N"), ("t", "B")
KEY_ATTRIBUTES = [G, H, R, S, T]
OTHERS = [name for name in NAMES if name not in dict(KEY_ATTRIBUTES)]
EVERYTHING, KEYS_ONLY = {"ProjectionType": "ALL"}, {"ProjectionType": "KEYS_ONLY"}


def some(*names):
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}


class CompoundIndex(Index):
    """A global index with several hash or range attributes."""

    def __init__(self, name, hashes, ranges, projection):
        super().__init__(name, hashes[0], ranges[0] if ranges else None, projection)
        self.hashes, self.ranges = hashes, ranges

    @property
    def keys(self):
        return self.hashes + self.ranges

    def key_schema(self):
        types = ["HASH"] * len(self.hashes) + ["RANGE"] * len(self.ranges)
        return [{"AttributeName": name, "KeyType": kind} for (name, _), kind in zip(self.keys, types)]


def index_tables(prefix):
    """`many` has every kind of index from the beginning; those of `grown` come and go."""
    pk, sk = ("pk", "S"), ("sk", "N")
    indexes = [CompoundIndex("gsi-deep", [G, H], [R, S], EVERYTHING),
               CompoundIndex("gsi-wide", [G], [S, R, T], KEYS_ONLY),
               CompoundIndex("gsi-pair", [H, G], [], some("a", "b")),
               Index("gsi-plain", R, T, EVERYTHING),
               Index("lsi-all", pk, S, EVERYTHING),
               Index("lsi-keys", pk, R, KEYS_ONLY),
               Index("lsi-some", pk, T, some("a", "c"))]
    return [Schema(prefix + "many", pk, sk, indexes), Schema(prefix + "grown", pk, sk)]


GROWN = [CompoundIndex("made-deep", [G, H], [R, S], EVERYTHING), Index("made-plain", G, S, KEYS_ONLY),
         Index("made-hash", H, None, some("a"))]
for known in [*index_tables("")[0].indexes, *GROWN]:
    INDEX_ORDERS[known.name] = [name for name, _ in known.keys[len(getattr(known, "hashes", [known.hash])):]]


class IndexExpressions(Expressions):
    """Of the attributes that are keys of indexes, too."""

    def path(self, deep=True):
        if self.chance(0.3):
            return self.name(self.rng.choice(KEY_ATTRIBUTES)[0])
        return super().path(deep)


class Indexes(Requests):
    def __init__(self, rng, prefix):
        super().__init__(rng, prefix)
        self.schemas = index_tables(prefix)
        self.kinds = [(self.put, 14), (self.update, 14), (self.delete, 4), (self.batch_write, 4), (self.query, 24),
                      (self.scan, 8), (self.make_index, 2), (self.drop_index, 2), (self.describe_table, 2)]

    def spoil(self, request):
        writes = {"Item", "RequestItems", "TransactItems", "AttributeUpdates", "UpdateExpression"} & set(request)
        if writes and self.schemas[1].name in str(request):
            return request
        return super().spoil(request)

    # ---- items ----

    def key_value(self, kind, schema):
        """As a rule what a key may be; always so where an index may be made later, for then Local never finishes it."""
        if schema.indexes and self.chance(0.03):
            return self.values.value(0)
        return {kind: self.rng.choice((HASHES if self.chance(0.5) else RANGES)[kind])}

    def put(self):
        schema, expressions = self.schema(), IndexExpressions(self.values)
        request = {"TableName": self.table_name(schema), "Item": self.item(schema)}
        self.add_condition(request, expressions, 0.1)
        self.maybe(request, 0.3, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "PutItem", {**request, **expressions.parameters()}

    def item(self, schema):
        item = self.values.key(schema)
        for name in self.rng.sample(OTHERS, self.rng.randrange(4)):
            item[name] = self.values.value()
        for name, kind in KEY_ATTRIBUTES:
            if self.chance(0.75):
                item[name] = self.key_value(kind, schema)
        return item

    def write_of(self, key):
        if self.chance(0.3):
            return {"DeleteRequest": {"Key": key}}
        return {"PutRequest": {"Item": {**self.item(self.schemas[1]), **key}}}

    def update(self):
        """Changes keys of indexes, as a rule to what they may be."""
        schema, expressions = self.schema(), IndexExpressions(self.values)
        request = {"TableName": self.table_name(schema), "Key": self.values.key(schema)}
        if self.chance(0.15):
            chosen = self.rng.sample(KEY_ATTRIBUTES, self.rng.choice([1, 2]))
            request["AttributeUpdates"] = {
                n: {"Action": "PUT", "Value": self.key_value(k, schema)} for n, k in chosen}
        else:
            request["UpdateExpression"] = expressions.maybe_broken(self.update_text(schema, expressions))
        self.maybe(request, 0.4, ReturnValues=self.rng.choice(["ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]))
        self.maybe(request, 0.3, ReturnConsumedCapacity=self.rng.choice(CAPACITY))
        return "UpdateItem", {**request, **expressions.parameters()}

    def update_text(self, schema, expressions):
        if schema.indexes and self.chance(0.15):
            return expressions.update()
        sets, removes = [], []
        for name, kind in self.rng.sample(KEY_ATTRIBUTES, self.rng.choice([1, 1, 2, 3])):
            pick = self.rng.randrange(6)
            path = expressions.name(name)
            if pick == 0:
                removes.append(path)
            elif pick == 1:
                sets.append(f"{path} = if_not_exists({path}, {expressions.value(self.key_value(kind, schema))})")
            elif pick == 2 and kind == "N":
                sets.append(f"{path} = {path} + {expressions.value({'N': '1'})}")
            else:
                sets.append(f"{path} = {expressions.value(self.key_value(kind, schema))}")
        if self.chance(0.3):
            sets.append(f"{expressions.name('a')} = {expressions.value()}")
        return " ".join(clause for clause in ("SET " + ", ".join(sets) if sets else "",
                                              "REMOVE " + ", ".join(removes) if removes else "") if clause)

    # ---- reading ----

    def maybe_index(self, request, table, probability):
        indexes = table.indexes or GROWN
        if not self.chance(max(probability, 0.9)):
            return table
        index = self.rng.choice(indexes)
        request["IndexName"] = index.name
        return index

    def query(self):
        schema, expressions = self.schema(), IndexExpressions(self.values)
        request = {"TableName": self.table_name(schema)}
        table, schema = schema, self.maybe_index(request, schema, 0.9)
        terms = self.terms(schema)
        if self.chance(0.2):
            request["KeyConditions"] = {
                name: {"ComparisonOperator": operator, "AttributeValueList": values}
                for name, operator, values in terms}
        else:
            text = " AND ".join(self.term_text(expressions, *term) for term in terms)
            request["KeyConditionExpression"] = expressions.maybe_broken(text)
            if self.chance(0.2):
                request["FilterExpression"] = expressions.maybe_broken(expressions.condition())
        self.add_read_options(request, expressions)
        self.maybe(request, 0.3, ScanIndexForward=self.chance(0.4))
        if self.chance(0.1):
            keys = {name: self.key_value(kind, schema) for name, kind in schema.keys}
            request["ExclusiveStartKey"] = {**self.values.key(table), **keys}
        return "Query", {**request, **expressions.parameters()}

    def terms(self, schema):
        """(name, legacy operator, values): all hash attributes, range attributes from the left; now and then not."""
        hashes = getattr(schema, "hashes", [schema.hash])
        ranges = getattr(schema, "ranges", [schema.range] if schema.range else [])
        ranges = ranges[:self.rng.randint(0, len(ranges))]
        terms = [(name, "EQ", [{kind: self.rng.choice(HASHES[kind])}]) for name, kind in hashes]
        for place, (name, kind) in enumerate(ranges):
            last = place == len(ranges) - 1
            operator = self.rng.choice(["EQ", "LE", "LT", "GE", "GT", "BEGINS_WITH", "BETWEEN"] if last else ["EQ"])
            values = [{kind: self.rng.choice(RANGES[kind])} for _ in range(1 + (operator == "BETWEEN"))]
            terms.append((name, operator, values))
        if self.chance(0.15):
            self.break_terms(terms)
        if self.chance(0.3):
            self.rng.shuffle(terms)
        return terms

    def break_terms(self, terms):
        place = self.rng.randrange(len(terms))
        name, operator, values = terms[place]
        pick = self.rng.randrange(5)
        if pick == 0 and len(terms) > 1:
            del terms[place]
        elif pick == 1:
            terms[place] = (name, self.rng.choice(["LT", "GE", "BEGINS_WITH"]), values[:1])
        elif pick == 2:
            terms[place] = (name, operator, [self.values.value(0) for _ in values])
        elif pick == 3:
            extra, kind = self.rng.choice(KEY_ATTRIBUTES + [("zz", "S")])
            if extra not in {n for n, _, _ in terms}:
                terms.append((extra, "EQ", [{kind: self.rng.choice(RANGES[kind])}]))
        else:
            terms[place] = (name, operator, [{"S": ""} for _ in values])

    def term_text(self, expressions, name, operator, values):
        path, placeholders = expressions.name(name), [expressions.value(value) for value in values]
        if operator == "BETWEEN":
            return f"{path} BETWEEN {placeholders[0]} AND {placeholders[1]}"
        if operator == "BEGINS_WITH":
            return f"begins_with({path}, {placeholders[0]})"
        return f"{path} {dict(EQ='=', LE='<=', LT='<', GE='>=', GT='>')[operator]} {placeholders[0]}"

    # ---- indexes that come and go ----

    def make_index(self):
        index = self.rng.choice(GROWN)
        definitions = [{"AttributeName": name, "AttributeType": kind} for name, kind in index.keys]
        create = {"IndexName": index.name, "KeySchema": index.key_schema(), "Projection": index.projection}
        return "UpdateTable", {"TableName": self.schemas[1].name, "AttributeDefinitions": definitions,
                               "GlobalSecondaryIndexUpdates": [{"Create": create}]}

    def drop_index(self):
        name = self.rng.choice([index.name for index in GROWN] + ["nothing"])
        return "UpdateTable", {"TableName": self.schemas[1].name,
                               "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]}

    def describe_table(self):
        return "DescribeTable", {"TableName": self.schema().name}
