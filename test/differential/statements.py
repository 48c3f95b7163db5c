"""Random statements of PartiQL: one at a time, in batches and in transactions, on tables of their own."""
import re

from values import Index, Schema, Values

NAMES = ["a", "b", "m", "l", "s"]
HASHES = ["h1", "h2", "h3"]
RANGES = ["a", "ab", "b", "c"]
TYPES = ["MISSING", "NULL", "BOOLEAN", "STRING", "NUMERIC", "STRUCT", "LIST"]
WORDS = ["AND", "OR", "NOT", "=", "(", ")", ",", "SET", "WHERE", "FROM", "IN", "value", "''", "1", "[", "]", "?", "*",
         "."]
PARAMETERS = [{"S": "a"}, {"N": "1"}, {"BOOL": True}, {"L": [{"N": "1"}]}, {"B": "AAE="}]
ITEM = re.compile(r"[ps]k'?(?: = |: )'(\w*)'|-(\w+)\"")  # a statement's keys and its table


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Statements:
    def __init__(self, rng, prefix):
        self.rng, self.values = rng, Values(rng)
        pk, sk = ("pk", "S"), ("sk", "S")
        indexes = [Index("global", ("g", "S"), None, {"ProjectionType": "ALL"})]
        self.schemas = [Schema(prefix + "words", pk), Schema(prefix + "rows", pk, sk, indexes)]
        self.parameters = []

    def chance(self, probability):
        return self.rng.random() < probability

    def next(self):
        return self.rng.choices([self.single, self.batch, self.transaction], [8, 2, 2])[0]()

    # ---- values and conditions ----

    def literal(self, depth=2):
        kind = self.rng.choice("S S N N BOOL NULL SS NS L M".split())
        if depth == 0 and kind in "LM":
            kind = "S"
        if kind == "S":
            return quoted(self.rng.choice(["", "a", "ab", "it's", "x y"]))
        if kind == "N":
            return self.rng.choice(["0", "1", "2", "-1", "- -3", "2.50", ".5", "1e3", "007", "12345678901234567890"])
        if kind == "BOOL":
            return self.rng.choice(["true", "FALSE"])
        if kind == "NULL":
            return "null"
        if kind == "SS":
            return "<<" + ", ".join(map(quoted, self.rng.sample(["a", "b", "c"], self.rng.randint(1, 3)))) + ">>"
        if kind == "NS":
            return "<<" + ", ".join(self.rng.sample(["1", "2", "3.5"], self.rng.randint(1, 3))) + ">>"
        if kind == "L":
            return "[" + ", ".join(self.literal(depth - 1) for _ in range(self.rng.randrange(3))) + "]"
        names = self.rng.sample(NAMES, self.rng.randrange(3))
        return "{" + ", ".join(f"{quoted(name)}: {self.literal(depth - 1)}" for name in names) + "}"

    def value(self):
        """A literal, or a parameter."""
        if not self.chance(0.2):
            return self.literal()
        self.parameters.append(self.rng.choice(PARAMETERS))
        return "?"

    def path(self):
        path = self.rng.choice(NAMES)
        if self.chance(0.2):
            path += self.rng.choice([".a", "[0]", "['b']", '."l"', "[1]"])
        return path

    def comparison(self):
        path = self.path()
        make = self.rng.randrange(8)
        if make < 3:
            return f"{path} {self.rng.choice(['=', '<>', '<', '<=', '>', '>=', '!='])} {self.value()}"
        if make == 3:
            return f"{path} {self.rng.choice(['IN', 'NOT IN'])} [{self.value()}, {self.value()}]"
        if make == 4:
            return f"{path} IS {self.rng.choice(['', 'NOT '])}{self.rng.choice(TYPES)}"
        if make == 5:
            return f"{path} BETWEEN {self.value()} AND {self.value()}"
        if make == 6:
            return f"size({path}) > {self.rng.choice('012')}"
        return self.rng.choice([f"begins_with({path}, {self.value()})", f"contains({path}, {self.value()})",
                                f"attribute_exists({path})", f"attribute_type({path}, 'S')"])

    def condition(self, depth=2):
        if depth == 0 or self.chance(0.5):
            return self.comparison()
        make = self.rng.randrange(4)
        if make == 0:
            return f"NOT {self.comparison()}"
        if make == 1:
            return f"({self.condition(depth - 1)})"
        return f"{self.condition(depth - 1)} {self.rng.choice(['AND', 'OR'])} {self.condition(depth - 1)}"

    def key(self, schema):
        text = f"pk = {quoted(self.rng.choice(HASHES))}"
        return text + (f" AND sk = {quoted(self.rng.choice(RANGES))}" if schema.range else "")

    # ---- statements ----

    def insert(self, schema):
        members = [f"'pk': {quoted(self.rng.choice(HASHES))}"]
        if schema.range:
            members.append(f"'sk': {quoted(self.rng.choice(RANGES))}")
        members += [f"{quoted(name)}: {self.value()}" for name in self.rng.sample(NAMES, self.rng.randrange(4))]
        if self.chance(0.4):
            members.append(f"'g': {quoted(self.rng.choice(HASHES))}")
        return f'INSERT INTO "{schema.name}" VALUE {{{", ".join(members)}}}'

    def update(self, schema):
        actions = []
        for name in self.rng.sample(NAMES, self.rng.randint(1, 2)):
            right = self.rng.choice([self.literal(), self.literal(), f"{name} + 1", f"{self.path()} - 1 + 2",
                                     self.path(), f"list_append({name}, [1])",
                                     f"if_not_exists({name}, {self.literal()})",
                                     f"set_add({name}, <<'a', 'z'>>)", f"set_delete({name}, <<'a'>>)"])
            actions.append(f"SET {name} = {right}" if not self.chance(0.2) else f"REMOVE {name}")
        where = self.key(schema) + (f" AND ({self.condition(1)})" if self.chance(0.3) else "")
        returning = self.rng.choice(["", "", " RETURNING ALL NEW *", " RETURNING ALL OLD *"])
        if self.chance(0.2):
            return f'FROM "{schema.name}" WHERE {where} {" ".join(actions)}{returning}'
        return f'UPDATE "{schema.name}" {" ".join(actions)} WHERE {where}{returning}'

    def delete(self, schema):
        where = self.key(schema) + (f" AND {self.comparison()}" if self.chance(0.3) else "")
        return f'DELETE FROM "{schema.name}" WHERE {where}{self.rng.choice(["", " RETURNING ALL OLD *"])}'

    def select(self, schema):
        columns = "*" if self.chance(0.6) else ", ".join(self.rng.sample(["pk", "a", "b", "m.a", "l[0]", "s"], 2))
        source = f'"{schema.name}"' + ('."global"' if schema.indexes and self.chance(0.15) else "")
        hashes = ", ".join(map(quoted, self.rng.sample(HASHES, 2)))
        where = self.rng.choice(["", f" WHERE {self.condition()}", f" WHERE {self.key(schema)}",
                                 f" WHERE pk = 'h1' AND ({self.condition(1)})", f" WHERE pk IN [{hashes}]",
                                 f" WHERE pk = 'h2' AND sk {self.rng.choice(['>', '<=', '='])} 'ab'",
                                 f" WHERE pk IN [{hashes}] AND sk IN ['a', 'c']", " WHERE pk = 'h1' OR pk = 'h3'"])
        return f"SELECT {columns} FROM {source}{where}"

    def broken(self, statement):
        """One word more or less."""
        words = statement.split(" ")
        place = self.rng.randrange(len(words))
        words[place:place + self.rng.randrange(2)] = [self.rng.choice(WORDS)] if self.chance(0.5) else []
        return " ".join(words)

    def statement(self, makers):
        self.parameters = []
        text = self.rng.choice(makers)(self.rng.choice(self.schemas))
        if self.chance(0.1):
            text = self.broken(text)
        return {"Statement": text, **({"Parameters": self.parameters} if self.parameters else {})}

    def single(self):
        makers = [self.insert] * 3 + [self.select] * 3 + [self.update] * 2 + [self.delete]
        return "ExecuteStatement", self.statement(makers)

    def get(self, schema):
        return f'SELECT * FROM "{schema.name}" WHERE {self.key(schema)}'

    def several(self, returning):
        """Statements of different items: of a batch that is refused for one item twice, Local has done a part."""
        makers = [self.get] if self.chance(0.4) else [self.insert, self.insert, self.delete, self.update]
        statements = {}
        for _ in range(self.rng.randint(1, 3)):
            statement = self.statement(makers)
            if not returning:
                statement["Statement"] = statement["Statement"].split(" RETURNING")[0]
            statements.setdefault(tuple(ITEM.findall(statement["Statement"])), statement)
        return list(statements.values())

    def batch(self):
        return "BatchExecuteStatement", {"Statements": self.several(True)}

    def transaction(self):
        return "ExecuteTransaction", {"TransactStatements": self.several(False)}
