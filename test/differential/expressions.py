"""Random expressions of every kind with their names and values, valid as a rule and broken now and then; and the older
parameters that say the same without expressions."""
import re

from values import HASHES, NAMES, RANGES

COMPARATORS = ["=", "<>", "<", "<=", ">", ">="]
RESERVED = ["name", "data", "status", "size", "type", "key", "order"]
TYPES = ["S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"]
TOKENS = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_]*|\d+|<>|<=|>=|\S")
NOISE = ["(", ")", ",", ".", "=", "AND", "OR", "NOT", "[", "]", ":zz", "#zz", "SET", "0", "+", "-", "&", "a", "BETWEEN"]


class Expressions:
    """The expressions of one request: they share their placeholders."""

    def __init__(self, values):
        self.values_of = values
        self.rng = values.rng
        self.names, self.values = {}, {}

    def chance(self, probability):
        return self.rng.random() < probability

    # ---- parts ----

    def name(self, name):
        if name.lower() in RESERVED and not self.chance(0.05) or self.chance(0.3):
            for placeholder, meant in self.names.items():
                if meant == name:
                    return placeholder
            placeholder = f"#n{len(self.names)}"
            self.names[placeholder] = name
            return placeholder
        return name

    def path(self, deep=True):
        text = self.name(self.rng.choice(NAMES + RESERVED[:1] if self.chance(0.1) else NAMES))
        while deep and self.chance(0.25):
            if self.chance(0.5):
                text += "." + self.name(self.rng.choice(NAMES))
            else:
                text += f"[{self.rng.randrange(3)}]"
        return text

    def value(self, value=None):
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value if value is not None else self.values_of.value()
        return placeholder

    def number(self):
        return self.value({"N": self.values_of.number()})

    def operand(self):
        pick = self.rng.random()
        if pick < 0.45:
            return self.path()
        if pick < 0.9:
            return self.value()
        return f"size({self.path()})"

    # ---- conditions ----

    def condition(self, depth=2):
        if depth and self.chance(0.3):
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return self.rng.choice([f"{left} AND {right}", f"{left} OR {right}", f"({left}) AND {right}",
                                    f"NOT {left}", f"({left} or {right})", f"NOT ({left} AND NOT {right})"])
        pick = self.rng.randrange(10)
        if pick < 4:
            return f"{self.operand()} {self.rng.choice(COMPARATORS)} {self.operand()}"
        if pick == 4:
            return f"{self.operand()} BETWEEN {self.operand()} AND {self.operand()}"
        if pick == 5:
            options = ", ".join(self.operand() for _ in range(self.rng.randint(1, 3)))
            return f"{self.operand()} IN ({options})"
        return self.function()

    def function(self):
        pick = self.rng.randrange(6)
        if pick == 0:
            return f"attribute_exists({self.path()})"
        if pick == 1:
            return f"attribute_not_exists({self.path()})"
        if pick == 2:
            kind = self.rng.choice(TYPES) if not self.chance(0.05) else "X"
            return f"attribute_type({self.path()}, {self.value({'S': kind})})"
        if pick == 3:
            return f"begins_with({self.path()}, {self.operand()})"
        if pick == 4:
            return f"contains({self.path()}, {self.operand()})"
        return f"size({self.path()}) {self.rng.choice(COMPARATORS)} {self.number()}"

    # ---- updates ----

    def update(self):
        clauses = self.rng.sample(["SET", "REMOVE", "ADD", "DELETE"], self.rng.choice([1, 1, 1, 2, 3]))
        return " ".join(getattr(self, "update_" + clause.lower())() for clause in clauses)

    def several(self, make):
        return ", ".join(make() for _ in range(self.rng.choice([1, 1, 2, 3])))

    def update_set(self):
        return "SET " + self.several(lambda: f"{self.path()} = {self.set_operand()}")

    def set_operand(self):
        pick = self.rng.randrange(8)
        if pick < 3:
            return self.value()
        if pick == 3:
            return self.path()
        if pick == 4:
            return f"if_not_exists({self.path()}, {self.value()})"
        if pick == 5:
            lists = [self.path(), self.value({"L": [self.values_of.value(1)]})]
            self.rng.shuffle(lists)
            return f"list_append({lists[0]}, {lists[1]})"
        left = self.path() if self.chance(0.7) else f"if_not_exists({self.path()}, {self.number()})"
        return f"{left} {self.rng.choice('+-')} {self.number()}"

    def update_remove(self):
        return "REMOVE " + self.several(self.path)

    def update_add(self):
        return "ADD " + self.several(lambda: f"{self.path()} {self.number_or_set()}")

    def number_or_set(self):
        if self.chance(0.05):
            return self.value()
        if self.chance(0.5):
            return self.number()
        return self.set_value()

    def set_value(self):
        value = self.values_of.value(1)
        while not {"SS", "NS", "BS"} & set(value):
            value = self.values_of.value(1)
        return self.value(value)

    def update_delete(self):
        return "DELETE " + self.several(lambda: f"{self.path()} {self.set_value()}")

    # ---- keys and projections ----

    def key_condition(self, schema):
        hash_name, hash_type = schema.hash
        parts = [f"{self.name(hash_name)} = {self.value({hash_type: self.rng.choice(HASHES[hash_type])})}"]
        if schema.range and self.chance(0.7):
            parts.append(self.range_condition(*schema.range))
        if self.chance(0.1):
            parts.reverse()
        return " AND ".join(f"({p})" if self.chance(0.1) else p for p in parts)

    def range_condition(self, range_name, range_type):
        name = self.name(range_name)

        def bound():
            return self.value({range_type: self.rng.choice(RANGES[range_type])})

        pick = self.rng.randrange(7)
        if pick == 5:
            return f"{name} BETWEEN {bound()} AND {bound()}"
        if pick == 6:
            return f"begins_with({name}, {bound()})"
        return f"{name} {['=', '<', '<=', '>', '>='][pick]} {bound()}"

    def projection(self):
        return self.several(self.path)

    # ---- errors on purpose ----

    def broken(self, text):
        """One token left out, doubled, or added."""
        tokens = TOKENS.findall(text)
        place = self.rng.randrange(len(tokens))
        pick = self.rng.randrange(3)
        if pick == 0:
            del tokens[place]
        elif pick == 1:
            tokens.insert(place, tokens[place])
        else:
            tokens.insert(place, self.rng.choice(NOISE))
        return " ".join(tokens)

    def maybe_broken(self, text):
        return self.broken(text) if self.chance(0.04) else text

    def parameters(self):
        """ExpressionAttributeNames and -Values; now and then one too many or one too few."""
        if self.chance(0.02):
            self.value()
        if self.chance(0.02):
            self.names["#unused"] = "a"
        if self.values and self.chance(0.02):
            self.values.pop(self.rng.choice(list(self.values)))
        if self.names and self.chance(0.02):
            self.names.pop(self.rng.choice(list(self.names)))
        result = {}
        if self.names:
            result["ExpressionAttributeNames"] = self.names
        if self.values:
            result["ExpressionAttributeValues"] = self.values
        return result


class Legacy:
    """Expected, AttributeUpdates, filters and KeyConditions."""

    OPERATORS = ["EQ", "NE", "LE", "LT", "GE", "GT", "NOT_NULL", "NULL", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH",
                 "IN", "BETWEEN"]

    def __init__(self, values):
        self.values_of = values
        self.rng = values.rng

    def chance(self, probability):
        return self.rng.random() < probability

    def condition(self):
        operator = self.rng.choice(self.OPERATORS)
        count = {"NOT_NULL": 0, "NULL": 0, "BETWEEN": 2, "IN": self.rng.randint(1, 3)}.get(operator, 1)
        if self.chance(0.04):
            count = self.rng.randrange(4)
        value = self.values_of.value(1)
        values = [value if self.chance(0.6) else self.values_of.value(1) for _ in range(count)]
        if operator == "BETWEEN" and not self.chance(0.1):
            values = [{"N": str(self.rng.randrange(5))}, {"N": str(5 + self.rng.randrange(5))}]
        condition = {"ComparisonOperator": operator}
        if values or self.chance(0.1):
            condition["AttributeValueList"] = values
        return condition

    def expected(self):
        if self.chance(0.4):
            if self.chance(0.4):
                return {"Exists": False}
            return {"Value": self.values_of.value(1), **({"Exists": True} if self.chance(0.3) else {})}
        return self.condition()

    def several(self, make):
        return {name: make() for name in self.rng.sample(NAMES, self.rng.choice([1, 1, 2]))}

    def updates(self):
        return self.several(self.attribute_update)

    def attribute_update(self):
        action = self.rng.choice(["PUT", "PUT", "ADD", "DELETE"])
        update = {"Action": action}
        if action == "DELETE" and self.chance(0.5):
            return update
        update["Value"] = self.values_of.value(1)
        if action == "ADD" and self.chance(0.7):
            update["Value"] = {"N": self.values_of.number()}
        return update

    def key_conditions(self, schema):
        hash_name, hash_type = schema.hash
        result = {hash_name: {"ComparisonOperator": "EQ",
                              "AttributeValueList": [{hash_type: self.rng.choice(HASHES[hash_type])}]}}
        if schema.range and self.chance(0.7):
            range_name, range_type = schema.range
            operator = self.rng.choice(["EQ", "LE", "LT", "GE", "GT", "BEGINS_WITH", "BETWEEN"])
            values = [{range_type: self.rng.choice(RANGES[range_type])} for _ in range(1 + (operator == "BETWEEN"))]
            result[range_name] = {"ComparisonOperator": operator, "AttributeValueList": values}
        return result
