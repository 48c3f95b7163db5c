"""Vector search from outside: against all vectors sorted, across restarts and SIGKILL, while an index is filled, with
items that expire."""
import math
import os
import random
import threading
import time

import pytest
from cli import on_terminal
from support.process import Quipu, run_quipu
from support.wire import Connection

DIMENSIONS = 24
INDEX = {"IndexName": "near", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": DIMENSIONS,
         "DistanceFunction": "EUCLIDEAN", "Projection": {"ProjectionType": "ALL"}}
SPLIT = {**INDEX, "IndexName": "split", "DistanceFunction": "COSINE",
         "SearchSchema": [{"AttributeName": "tenant", "SearchSchemaElementType": "HASH"},
                          {"AttributeName": "kind", "SearchSchemaElementType": "INLINE_FILTER"}]}
TYPES = [{"AttributeName": name, "AttributeType": "S"} for name in ("id", "tenant", "kind")]


class Server(Quipu):
    """Called over one connection for each thread."""

    def call(self, operation, **payload):
        local = self.__dict__.setdefault("local", threading.local())
        if not hasattr(local, "connection"):
            local.connection = Connection(self.url)
        return local.connection.call(operation, payload)

    def fine(self, operation, **payload):
        reply = self.call(operation, **payload)
        assert reply.status == 200, reply.body
        return reply.json

    def create(self, indexes=(INDEX, SPLIT)):
        used = TYPES if SPLIT in indexes else TYPES[:1]
        more = {"VectorIndexes": list(indexes)} if indexes else {}
        self.fine("CreateTable", TableName="docs", BillingMode="PAY_PER_REQUEST", AttributeDefinitions=used,
                  KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}], **more)

    def put(self, number, vector, **more):
        texts = {name: {"S": text} for name, text in more.items()}
        self.fine("PutItem", TableName="docs", Item={"id": {"S": str(number)}, "v": listed(vector), **texts})

    def search(self, vector, top=10, index="near", **more):
        return self.fine("SearchVectors", TableName="docs", IndexName=index, TopK=top,
                         SearchVector=listed(vector)["L"], **more)["SearchResults"]

    def found(self, vector, top=10, **more):
        return [result["Item"]["id"]["S"] for result in self.search(vector, top, **more)]

    def index(self, name="near"):
        indexes = self.fine("DescribeTable", TableName="docs")["Table"].get("VectorIndexes", [])
        return next((index for index in indexes if index["IndexName"] == name), None)


def listed(vector):
    return {"L": [{"N": repr(value)} for value in vector]}


def some_vector(rng):
    return [round(rng.uniform(-1, 1), 6) for _ in range(DIMENSIONS)]


def nearest(vectors, query, top=10):
    order = sorted(vectors, key=lambda number: math.dist(vectors[number], query))
    return [str(number) for number in order[:top]]


def in_tenant(tenant, kind=None):
    values = {":t": {"S": tenant}, **({":k": {"S": kind}} if kind else {})}
    return {"index": "split", "SearchConditionExpression": "tenant = :t" + (" AND kind = :k" if kind else ""),
            "ExpressionAttributeValues": values}


@pytest.fixture
def server():
    with Server("--memory", "--test-hooks") as running:
        yield running


def fill(server, count, rng):
    vectors = {number: some_vector(rng) for number in range(count)}
    for number, vector in vectors.items():
        server.put(number, vector, tenant=f"t{number % 3}", kind=f"k{number % 2}")
    return vectors


def test_the_nearest_are_those_of_all_sorted(server):
    rng = random.Random(1)
    server.create()
    vectors = fill(server, 300, rng)
    for _ in range(10):
        query = some_vector(rng)
        results = server.search(query, 25)
        assert [result["Item"]["id"]["S"] for result in results] == nearest(vectors, query, 25)
        for result in results:
            exact = math.dist(vectors[int(result["Item"]["id"]["S"])], query)
            assert abs(result["Score"] - exact) < 1e-5 * exact
            assert "v" not in result["Item"]
    query = vectors[4]
    found = server.found(query, 100, **in_tenant("t1", "k0"))
    assert found[0] == "4" and len(found) == 50 and all(int(number) % 3 == 1 and int(number) % 2 == 0
                                                        for number in found)


def test_a_write_is_found_at_once_and_a_deleted_item_never(server):
    rng = random.Random(2)
    server.create()
    for number in range(30):
        vector = some_vector(rng)
        server.put(number, vector, tenant="a", kind="x")
        assert server.found(vector, 1) == [str(number)]
        assert server.found(vector, 1, **in_tenant("a")) == [str(number)]
        server.fine("UpdateItem", TableName="docs", Key={"id": {"S": str(number)}},
                    UpdateExpression="SET tenant = :b", ExpressionAttributeValues={":b": {"S": "b"}})
        assert server.found(vector, 1, **in_tenant("a")) == []
        assert server.found(vector, 1, **in_tenant("b", "x")) == [str(number)]
        server.fine("DeleteItem", TableName="docs", Key={"id": {"S": str(number)}})
        assert server.found(vector, 1) == server.found(vector, 1, **in_tenant("b")) == []
    assert server.index()["ItemCount"] == 0


def test_transactions_and_batches_move_vectors_too(server):
    server.create()
    one, other = [1.0] + [0.0] * 23, [0.0] * 23 + [1.0]
    server.fine("BatchWriteItem", RequestItems={"docs": [
        {"PutRequest": {"Item": {"id": {"S": name}, "v": listed(vector)}}} for name, vector in
        (("one", one), ("other", other))]})
    assert server.found(one, 2) == ["one", "other"]
    refused = server.call("TransactWriteItems", TransactItems=[
        {"Delete": {"TableName": "docs", "Key": {"id": {"S": "one"}}}},
        {"Put": {"TableName": "docs", "Item": {"id": {"S": "other"}, "v": listed(one)},
                 "ConditionExpression": "attribute_not_exists(id)"}}])
    assert refused.type == "TransactionCanceledException"
    assert server.found(one, 2) == ["one", "other"]
    server.fine("TransactWriteItems", TransactItems=[
        {"Delete": {"TableName": "docs", "Key": {"id": {"S": "one"}}}},
        {"Put": {"TableName": "docs", "Item": {"id": {"S": "other"}, "v": listed(one)}}}])
    assert [(result["Item"]["id"]["S"], result["Score"]) for result in server.search(one, 2)] == [("other", 0)]


def test_an_expired_item_is_not_found_any_more(server):
    server.create()
    server.fine("UpdateTimeToLive", TableName="docs",
                TimeToLiveSpecification={"AttributeName": "ends", "Enabled": True})
    vector = [0.5] * DIMENSIONS
    for name, ends in (("stays", "4102444800"), ("goes", str(int(time.time()) - 10))):
        server.fine("PutItem", TableName="docs",
                    Item={"id": {"S": name}, "v": listed(vector), "ends": {"N": ends}})
    deadline = time.monotonic() + 120
    while server.found(vector) != ["stays"]:
        assert time.monotonic() < deadline, "an expired item stays in the index"
        time.sleep(0.02)


def test_snapshots_bring_back_what_was_found(server):
    server.create()
    vector = [0.5] * DIMENSIONS
    server.put(1, vector)
    with Connection(server.url) as connection:
        snapshot = connection.request("POST", "/_quipu/snapshot")
        assert snapshot.status == 200
        server.put(2, vector)
        assert len(server.found(vector)) == 2
        assert connection.request("POST", "/_quipu/rollback", body=snapshot.body).status == 200
    assert server.found(vector) == ["1"]


def test_all_is_found_again_after_a_restart_and_after_a_kill(tmp_path):
    rng = random.Random(3)
    folder = str(tmp_path / "data")
    with Server("--data", folder) as server:
        server.create()
        vectors = fill(server, 200, rng)
        assert server.stop() == 0
    for _ in range(3):
        with Server("--data", folder) as server:
            query = some_vector(rng)  # the first request: a search that comes too early waits
            assert server.found(query, 20) == nearest(vectors, query, 20)
            for _ in range(20):
                number = rng.randrange(250)
                vectors[number] = some_vector(rng)
                server.put(number, vectors[number], tenant="t")
            server.fine("DeleteItem", TableName="docs", Key={"id": {"S": "7"}})
            vectors.pop(7, None)
            server.kill()
    check = run_quipu("check", "--data", folder)
    assert check.returncode == 0, check.stdout


def test_an_index_is_filled_while_the_table_is_written(tmp_path):
    """And a kill on the way loses nothing: it is filled from the start."""
    rng = random.Random(4)
    folder = str(tmp_path / "data")
    vectors = {number: some_vector(rng) for number in range(2500)}
    with Server("--data", folder, "--durability", "os") as server:
        server.create(indexes=())
        numbers = list(vectors)
        for start in range(0, len(numbers), 25):
            puts = [{"PutRequest": {"Item": {"id": {"S": str(number)}, "v": listed(vectors[number])}}}
                    for number in numbers[start:start + 25]]
            server.fine("BatchWriteItem", RequestItems={"docs": puts})
        made = server.fine("UpdateTable", TableName="docs", VectorIndexUpdates=[{"Create": INDEX}])
        assert made["TableDescription"]["VectorIndexes"][0]["IndexStatus"] == "CREATING"
        for number in range(0, 200, 2):  # some before the walk, some behind it
            vectors[number] = some_vector(rng)
            server.put(number, vectors[number])
            del vectors[number + 1]
            server.fine("DeleteItem", TableName="docs", Key={"id": {"S": str(number + 1)}})
        deadline = time.monotonic() + 120
        while server.index()["IndexStatus"] != "ACTIVE":
            assert server.index().get("Backfilling") is not False
            assert time.monotonic() < deadline, "the index does not become active"
            time.sleep(0.01)
        assert server.index()["ItemCount"] == len(vectors)
        query = some_vector(rng)
        assert server.found(query, 50) == nearest(vectors, query, 50)
        server.fine("UpdateTable", TableName="docs", VectorIndexUpdates=[{"Delete": {"IndexName": "near"}}])
        assert server.index() is None
        server.fine("UpdateTable", TableName="docs", VectorIndexUpdates=[{"Create": INDEX}])
        server.kill()
    with Server("--data", folder) as server:
        query = some_vector(rng)
        assert server.found(query, 50) == nearest(vectors, query, 50)


def test_searches_and_writes_at_the_same_time(server):
    """Each result is an item with its own score, and no write is kept waiting for all searches to end."""
    server.create(indexes=(INDEX,))
    rng = random.Random(5)
    fill_one = {number: some_vector(rng) for number in range(200)}
    for number, vector in fill_one.items():
        server.put(number, vector)
    ended, faults = threading.Event(), []

    def search(seed):
        own = random.Random(seed)
        while not ended.is_set():
            query = some_vector(own)
            for result in server.search(query, 10, ProjectionExpression="id, v"):
                vector = [float(value["N"]) for value in result["Item"]["v"]["L"]]
                if abs(math.dist(vector, query) - result["Score"]) > 1e-4:
                    faults.append(result)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        server.put(rng.randrange(250), some_vector(rng))
    ended.set()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_table_with_vectors_is_dumped_loaded_and_copied(server, tmp_path):
    rng = random.Random(6)
    server.create()
    vectors = fill(server, 20, rng)
    dump = run_quipu("dump", "docs", "--on", server.url)
    assert dump.returncode == 0, dump.stderr
    other = os.path.join(tmp_path, "other")
    loaded = run_quipu("load", "--on", other, input=dump.stdout)
    assert loaded.returncode == 0, loaded.stderr
    with Server("--data", other) as again:
        query = some_vector(rng)
        assert again.found(query, 20) == nearest(vectors, query, 20)
        assert {name: again.index("split")[name] for name in SPLIT} == SPLIT


def test_a_description_for_people_names_vector_indexes(server):
    server.create()
    shown = on_terminal("table", "describe", "docs", on=server.url, columns=120)
    assert "split: v, 24 dimensions, COSINE; by tenant, kind; all attributes" in str(shown)
