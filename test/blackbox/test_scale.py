"""doc/scale.md: its units are those that are really consumed, and its dollars follow from them."""
import collections
import json
import math
import os
import re
import urllib.request

import pytest
from cli import items
from support.process import ROOT, DynamoLocal, Quipu
from support.proxy import Proxy
from support.wire import Connection

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}


# ---- the same calls on two engines ----

def book_of(proxy):
    """The rows of quipu cost on what is behind the proxy, and its calls that were charged."""
    rows = items("cost", "--on", proxy.url, env=KEYS)
    calls = [call for call in proxy.calls if "ReturnConsumedCapacity" in call.request]
    return rows, strip(calls)


@pytest.fixture(scope="module")
def engines():
    """Of the embedded engine's rules and of DynamoDB Local: rows and calls."""
    with Quipu("--memory") as quipu, DynamoLocal() as local, Proxy(quipu.url) as ours, Proxy(local.url) as theirs:
        yield book_of(ours), book_of(theirs)


def strip(calls):
    """The calls as they are whatever the tables are called."""
    for call in calls:
        call.request, call.reply = (json.loads(re.sub(r"quipu-cost-[0-9a-f]{8}-", "", json.dumps(text)))
                                    for text in (call.request, call.reply))
    return calls


def units_of_nothing(call):
    """What a read is charged for that it looked for and did not find: table, arm, units."""
    if call.operation == "Query" and not call.reply["ScannedCount"]:
        units = 1 if "ConsistentRead" in call.request else 0.5
        yield call.request["TableName"], call.request.get("IndexName", ""), units
    if call.operation == "BatchGetItem":
        for table, wanted in call.request["RequestItems"].items():
            lost = len(wanted["Keys"]) - len(call.reply["Responses"].get(table, []))
            yield table, "", lost * (1 if "ConsistentRead" in wanted else 0.5)


def actions_of(call):
    """How many items of each table a transaction writes."""
    tables = [list(action.values())[0]["TableName"] for action in call.request["TransactItems"]]
    return collections.Counter(tables)


def in_transaction(call, ours):
    """Each item is charged twice, its index entries once. Local charges each table twice and the index entries of one
    of its items twice, so it says nothing about the entries where there are several items of a table."""
    consumed = call.consumed()
    for table, items_written in actions_of(call).items():
        arms = {arm: units / 2 for arm, units in consumed[table].items()} if items_written == 1 else ours[table]
        consumed[table] = {**arms, "": 2 * items_written}
    return consumed


def by_the_service(call, ours):
    """What Local says a call consumed, put right where the service is known to count otherwise: a query or batch that
    finds nothing is charged as if it found something small (Local: nothing), one that wants some attributes of what it
    finds for the whole items (Local: for those attributes), a scan of a small table for each of the four partitions
    that an on-demand table has (Local: once), and transactions as above."""
    if call.operation == "Scan" and call.status == 200:
        assert "LastEvaluatedKey" not in call.reply
        return {call.request["TableName"]: {"": 4 if call.request.get("ConsistentRead") else 2}}
    if call.operation == "Query" and "ProjectionExpression" in call.request:
        return ours
    if call.status == 200 and call.operation == "TransactWriteItems":
        return in_transaction(call, ours)
    consumed = call.consumed()
    for table, arm, units in units_of_nothing(call) if call.status == 200 else []:
        consumed.setdefault(table, {"": 0})[arm] = consumed[table].get(arm, 0) + units
    return consumed


def test_every_call_consumes_what_dynamodb_says(engines):
    (_, ours), (_, theirs) = engines
    assert len(ours) == len(theirs) > 300
    seen = collections.Counter()
    for one, other in zip(ours, theirs):
        assert (one.operation, one.status) == (other.operation, other.status)
        assert one.consumed() == by_the_service(other, one.consumed()), (one.operation, one.request)
        seen[one.operation] += 1
    assert {"GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"} <= set(seen)
    scanned = {call.request["TableName"] for call in ours if call.operation == "Scan"}
    assert scanned <= {"histories"}  # an item for each table that has one


# ---- the tables of the document ----

PRICES = {"writeUnits": 0.625, "readUnits": 0.125}  # dollars a million
RATES = (1_000, 100_000, 10_000_000)                 # operations a second, in the order of the tables
KEY_WRITES, KEY_READS = 1_000, 3_000                 # that one key takes a second
MONTH_HOURS = 730


def number(text):
    return float(text.replace(",", ""))


def table_of(*head):
    """The rows of the table that has these columns first."""
    with open(os.path.join(ROOT, "doc", "scale.md"), encoding="utf-8") as file:
        lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file if line.startswith("|")]
    start = next(i for i, cells in enumerate(lines) if cells[:len(head)] == list(head))
    rows = []
    for cells in lines[start + 2:]:
        if len(cells) != len(lines[start]):
            break
        rows.append(cells)
    return rows


@pytest.fixture(scope="module")
def measured():
    return items("cost")


@pytest.fixture(scope="module")
def units(measured):
    return {(row["pattern"], row["operation"]): row for row in measured}


def markdown(row):
    """As doc/scale.md shows it."""
    shown = [f"{row[name]:.4f}".rstrip("0").rstrip(".") for name in ("writeUnits", "readUnits")]
    dollars = f"{row['dollarsPerMillion']:.4f}".rstrip("0").rstrip(".")
    return f"| {row['pattern']} | {row['operation']} | {' | '.join(shown)} | {row['calls']} | {dollars} |"


def test_units_are_those_that_are_consumed(measured, engines):
    """Told by the document, by the engine in the process, and by a server: the same."""
    (served, _), (on_local, _) = engines
    told = ["| " + " | ".join(cells) + " |" for cells in table_of("pattern", "operation", "write units")]
    assert told == [markdown(row) for row in measured], "script/scale brings the document up to date"
    assert served == measured
    assert [row["calls"] for row in on_local] == [row["calls"] for row in measured]
    for row in measured:
        dollars = sum(row[name] * price for name, price in PRICES.items())
        assert row["dollarsPerMillion"] == pytest.approx(dollars)


def test_no_operation_is_left_out(measured):
    """Whoever adds a route adds it to src/cli/cost_book.c, too; script/scale brings it to the document."""
    with Quipu("--memory") as server:
        paths = routes_of(server.url)
    free = {("GET", "/v1/openapi.json"), ("PUT", "/wall"), ("PATCH", "/wall")}  # no call at all
    for method, path in paths - free:
        route = re.compile(re.sub(r"\\{[^/]*\\}", "[^/?]+", re.escape(f"{method} {path}")) + r"(\?.*)?")
        assert any(route.fullmatch(row["request"]) for row in measured), f"{method} {path}"


def routes_of(url):
    with urllib.request.urlopen(url + "/v1/openapi.json", timeout=180) as reply:
        described = json.load(reply)["paths"]
    return {(method.upper(), path) for path, methods in described.items() for method in methods}


def test_walls_follow_from_the_hottest_key():
    rows = table_of("pattern", "operation", "the hottest key")
    assert {row[0] for row in rows} == {row[0] for row in table_of("pattern", "operation", "write units")}
    for _, operation, _, writes, reads, a_second, *names in rows:
        by_writes, by_reads = (limit / number(one) if number(one) else math.inf
                               for limit, one in ((KEY_WRITES, writes), (KEY_READS, reads)))
        sustained = min(by_writes, by_reads)
        assert number(a_second) == pytest.approx(sustained, rel=0.001), operation
        assert [number(one) for one in names] == [math.ceil(rate / sustained - 1e-9) for rate in RATES], operation


def recipe_units(units, pattern, recipe):
    """Of "grant + release", "8 x add an event + ... / 10"."""
    whole, _, parts = recipe.partition(" / ")
    total = dict.fromkeys(PRICES, 0)
    for term in whole.split(" + "):
        times, _, operation = term.rpartition(" x ")
        for name in total:
            total[name] += (int(times) if times else 1) * units[pattern, operation][name]
    return {name: value / int(parts or 1) for name, value in total.items()}


def test_dollars_follow_from_the_units(units):
    rows = table_of("pattern", "what", "made of")
    assert {row[0] for row in rows} == {pattern for pattern, _ in units}
    for pattern, what, recipe, a_million, *dollars in rows:
        consumed = recipe_units(units, pattern, recipe)
        price = sum(consumed[name] * PRICES[name] for name in PRICES)
        assert number(a_million) == pytest.approx(price, abs=0.0001), what
        hours = [price * rate * 3600 / 1e6 for rate in RATES]
        expected = [value for hour in hours for value in (hour, hour * MONTH_HOURS)]
        assert [number(one) for one in dollars] == pytest.approx(expected, rel=0.01, abs=0.0051), what


def test_sizes_of_jobs():
    """What the tree and the set cost a task; the largest tree takes long and is in the unit tests."""
    rows = [[number(cell) for cell in cells[1:]] for cells in table_of("job", "1,000 tasks")]
    tree = items("cost", "job", "--tasks", "1000,2000,10000")
    single = items("cost", "job", "--layout", "set", "--tasks", "1000,2000,10000,100000")
    assert rows[0][:3] == [pytest.approx(job["writeUnitsPerTask"], abs=0.0001) for job in tree] and rows[0][3] <= 1.1
    assert rows[1][:3] == [pytest.approx(job["dollars"], abs=0.0001) for job in tree]
    assert rows[2] == [pytest.approx(job["writeUnitsPerTask"], abs=0.0001) for job in single]
    assert rows[3] == [pytest.approx(job["dollars"], rel=0.05) for job in single]


# ---- the hottest keys ----

class Watched:
    """A server on a database whose every call is seen; what is asked with ?cost is what counts."""

    def __init__(self, server, proxy, database):
        self.url, self.proxy, self.database = server.url, proxy, database

    def ask(self, call, charged=False):
        method, path, body, *headers = call
        if charged:
            path += "&cost=1" if "?" in path else "?cost=1"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, dict(headers), method=method)
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.read()

    def charged(self, calls):
        start = len(self.proxy.calls)
        for call in calls:
            self.ask(call, charged=True)
        return [call for call in self.proxy.calls[start:] if "ReturnConsumedCapacity" in call.request and
                "ResourceNotFound" not in call.reply.get("__type", "")]

    def hash_name(self, table):
        """The hash key of a table; the database's own server may have made it, for it looks after patterns, too."""
        with Connection(self.database.url) as wire:
            reply = wire.call("DescribeTable", {"TableName": table})
        return reply.json["Table"]["KeySchema"][0]["AttributeName"]

    def loads(self, call):
        """Which keys of which tables a call writes and reads, and how many units that takes of each: small items."""
        if call.operation == "TransactWriteItems":
            for action in call.request["TransactItems"]:
                [one] = action.values()
                yield one["TableName"], self.hash_of(one), 2, 0
        elif call.operation == "BatchGetItem":
            for table, wanted in call.request["RequestItems"].items():
                for key in wanted["Keys"]:
                    units = 1 if wanted.get("ConsistentRead") else 0.5
                    yield table, self.hash_of({"TableName": table, "Key": key}), 0, units
        elif call.operation == "Query":
            [value] = call.request["ExpressionAttributeValues"].values()
            yield call.request["TableName"], json.dumps(value), 0, call.consumed()[call.request["TableName"]][""]
        else:
            units = call.consumed()[call.request["TableName"]][""]
            reads = units if call.operation == "GetItem" else 0
            yield call.request["TableName"], self.hash_of(call.request), units - reads, reads

    def hash_of(self, request):
        return json.dumps((request.get("Key") or request["Item"])[self.hash_name(request["TableName"])])

    def hottest(self, calls, things, spread=()):
        """The most write and the most read units of one key for each of the things, but in tables whose keys differ."""
        writes, reads = collections.Counter(), collections.Counter()
        for call in self.charged(calls):
            for table, key, written, read in self.loads(call):
                if table not in spread:
                    writes[table, key] += written / things
                    reads[table, key] += read / things
        return max(writes.values(), default=0), max(reads.values(), default=0)


@pytest.fixture(scope="module")
def watched():
    with Quipu("--memory") as database, Proxy(database.url) as proxy, Quipu("--on", proxy.url, env=KEYS) as server:
        yield Watched(server, proxy, database)


def post(path, body=None, *headers):
    return "POST", path, body, *headers


def put(path, body, *headers):
    return "PUT", path, body, *headers


def many(times, make):
    return [make(i) for i in range(times)]


EVENTS = [{"key": "k", "data": "x" * 200}] * 25
# of a row of the table: what is there before, the calls, how many things they are, and tables whose keys all differ
HOTTEST = {
    ("counter", "next"): ([post("/v1/counters/c")], many(4, lambda i: post("/v1/counters/c")), 4),
    ("counter", "a number of a block of 10,000"): (
        [post("/v1/counters/b")], [post("/v1/counters/b", {"block": 10000})], 10000),
    ("counter", "next, with a key"): (
        [post("/v1/counters/k", None, ("Idempotency-Key", "first"))],
        many(4, lambda i: post("/v1/counters/k", None, ("Idempotency-Key", f"{i}"))), 4, "quipu-tokens"),
    ("lease", "grant + release"): (
        [post("/v1/leases/l", {"owner": "o"}), ("DELETE", "/v1/leases/l?owner=o&fence=1", None)],
        [post("/v1/leases/l", {"owner": "o"}), ("DELETE", "/v1/leases/l?owner=o&fence=2", None)], 1),
    ("limit", "take"): ([post("/v1/limits/l", {"rate": 100})],
        many(4, lambda i: post("/v1/limits/l", {"rate": 100})), 4),
    ("once", "begin + finish"): (
        [], [post("/v1/once/o/k"), post("/v1/once/o/k/finish", {"fence": 1})], 1),
    ("document", "write over a version"): (
        [put("/v1/documents/c/d", {})], [put("/v1/documents/c/d", {}, ("If-Match", '"1"'))], 1),
    ("document", "read"): ([put("/v1/documents/c/r", {})], [("GET", "/v1/documents/c/r", None)], 1),
    ("job", "done, 1,000 leaves"): (
        [put("/v1/jobs/j", {"total": 4096}), post("/v1/jobs/j/done", {"task": 0})],
        many(8, lambda i: post("/v1/jobs/j/done", {"task": i + 1})), 8),
    ("job", "done, ten tasks a call, 1,000 leaves"): (
        [put("/v1/jobs/k", {"total": 4096}), post("/v1/jobs/k/done", {"task": 0})],
        many(8, lambda i: post("/v1/jobs/k/done", {"tasks": list(range(10 * i, 10 * i + 10))})), 80),
    ("group", "add an event"): (
        [put("/v1/groups/g", {"complete": {"size": 9}}), post("/v1/groups/g/k", {"id": "x"})],
        many(4, lambda i: post("/v1/groups/g/k", {"id": f"{i}"})), 4),
    ("period", "add, 4 shards"): (
        [put("/v1/periods/p", {"every": "7d", "shards": 1}), post("/v1/periods/p", {})],
        many(4, lambda i: post("/v1/periods/p", {"data": i})), 4),
    ("log", "append, 1 partition"): (
        [put("/v1/logs/l", {"partitions": 1}), post("/v1/logs/l", {"key": "k"})],
        many(4, lambda i: post("/v1/logs/l", {"key": "k"})), 4),
    ("log", "append 25 at once, 64 partitions"): (
        [put("/v1/logs/m", {"partitions": 1}), post("/v1/logs/m", {"key": "k"})],
        many(2, lambda i: post("/v1/logs/m", {"events": EVENTS})), 50),
    ("board", "post"): ([], many(4, lambda i: post("/v1/boards/b", {"text": "hello"})), 4),
}


@pytest.mark.parametrize("row", HOTTEST, ids=" ".join)
def test_the_hottest_key_has_that_load(watched, row):
    """Where there are several shards or partitions, one was measured: the writes spread, the settings do not."""
    before, calls, things, *spread = HOTTEST[row]
    told = {(cells[0], cells[1]): cells for cells in table_of("pattern", "operation", "the hottest key")}[row]
    several = re.search(r"([\d,]+) (?:shards|partitions|leaves)", row[1])
    for call in before:
        watched.ask(call)
    for _ in range(3):  # settings that a server remembers grow old, on a slow machine between two calls
        writes, reads = watched.hottest(calls, things, spread)
        if number(told[4]) == pytest.approx(reads):
            break
    assert number(told[3]) == pytest.approx(writes / (number(several[1]) if several else 1))
    assert number(told[4]) == pytest.approx(reads)


def index_units(calls, index):
    return sum(arms.get(index, 0) for call in calls for arms in call.consumed().values() if call.operation != "Query")


def test_indexes_have_that_load(watched):
    """What a unit of work, a job and a group write to the index whose slots they share."""
    slots = {(cells[0], cells[1]): re.search(r"\((?:up to )?(\d+) slots\)", cells[2])
             for cells in table_of("pattern", "operation", "the hottest key")}
    told = {(cells[0], cells[1]): int(slots[cells[0], cells[1]][1]) * number(cells[3])
            for cells in table_of("pattern", "operation", "the hottest key") if slots[cells[0], cells[1]]}
    unit = watched.charged([post("/v1/work/q/u", {"data": 1}), post("/v1/work/q/claim", {"owner": "w"}),
                            post("/v1/work/q/u/finish", {"fence": 1})])
    job = watched.charged([put("/v1/jobs/small", {"total": 1}), post("/v1/jobs/small/done", {"task": 0})])
    watched.ask(put("/v1/groups/two", {"complete": {"size": 2}}))
    group = watched.charged([post("/v1/groups/two/k", {"id": "a"}), post("/v1/groups/two/k", {"id": "b"})])
    assert told == {("work", "submit + claim + finish"): index_units(unit, "claimable"),
                    # finished ones stand in slots of their own
                    ("job", "opened and completed"): max(index_units(job, "due"), index_units(job, "unfinished") - 1),
                    ("group", "opened and completed"): index_units(group, "open") - 1}
