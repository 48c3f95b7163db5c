"""Local and global secondary indexes: what they hold, their order, their pages, and how they come to be."""
import collections
import concurrent.futures
import random
import shutil
import threading
import time

import pytest
from conftest import boto_client, create_table
from support.process import Quipu, run_quipu
from values import N, S, invalid, refused

TYPES = [{"AttributeName": name, "AttributeType": kind} for name, kind in (("pk", "S"), ("sk", "S"), ("team", "S"),
                                                                           ("score", "N"))]


def key_schema(hash_name, range_name):
    return [{"AttributeName": hash_name, "KeyType": "HASH"}, {"AttributeName": range_name, "KeyType": "RANGE"}]


@pytest.fixture
def scores(client, make_table):
    """Players by `pk` and `sk`; by-team orders them by score, by-score does so within `pk`."""
    name = make_table(
        AttributeDefinitions=TYPES, KeySchema=key_schema("pk", "sk"),
        GlobalSecondaryIndexes=[{"IndexName": "by-team", "KeySchema": key_schema("team", "score"),
                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        LocalSecondaryIndexes=[{"IndexName": "by-score", "KeySchema": key_schema("pk", "score"),
                                "Projection": {"ProjectionType": "ALL"}}])
    for number in range(10):
        item = {"pk": S("game"), "sk": S(f"player{number}"), "score": N((number * 7) % 10), "extra": S("x")}
        if number % 2:
            item["team"] = S("odd")
        client.put_item(TableName=name, Item=item)
    client.put_item(TableName=name, Item={"pk": S("game"), "sk": S("spectator"), "team": S("odd")})
    return name


def by_team(client, table, **options):
    return client.query(TableName=table, IndexName="by-team", KeyConditionExpression="team = :t",
                        ExpressionAttributeValues={":t": S("odd")}, **options)


def test_a_global_index_is_sorted_by_its_own_key(client, scores):
    reply = by_team(client, scores)
    assert [i["score"]["N"] for i in reply["Items"]] == ["1", "3", "5", "7", "9"]
    assert set(reply["Items"][0]) == {"pk", "sk", "team", "score"}
    reply = by_team(client, scores, ScanIndexForward=False)
    assert [i["score"]["N"] for i in reply["Items"]] == ["9", "7", "5", "3", "1"]


def test_an_item_without_the_index_key_is_not_in_the_index(client, scores):
    assert "spectator" not in {i["sk"]["S"] for i in by_team(client, scores)["Items"]}
    assert client.scan(TableName=scores, IndexName="by-team")["Count"] == 5
    assert client.scan(TableName=scores, IndexName="by-score")["Count"] == 10


def test_a_local_index_orders_the_partition(client, scores):
    reply = client.query(TableName=scores, IndexName="by-score", KeyConditionExpression="pk = :p AND score >= :s",
                         ExpressionAttributeValues={":p": S("game"), ":s": N(6)}, ConsistentRead=True)
    assert [i["score"]["N"] for i in reply["Items"]] == ["6", "7", "8", "9"]
    assert reply["Items"][0]["extra"] == S("x")


def test_pages_of_an_index(client, scores):
    first = by_team(client, scores, Limit=2)
    assert set(first["LastEvaluatedKey"]) == {"pk", "sk", "team", "score"}
    seen, page = [], first
    while True:
        seen += [i["score"]["N"] for i in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        page = by_team(client, scores, Limit=2, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert seen == ["1", "3", "5", "7", "9"]


def test_an_index_follows_the_writes(client, scores):
    key = {"pk": S("game"), "sk": S("player1")}
    client.update_item(TableName=scores, Key=key, UpdateExpression="SET score = :s",
                       ExpressionAttributeValues={":s": N(100)})
    assert [i["sk"]["S"] for i in by_team(client, scores)["Items"]][-1] == "player1"
    client.update_item(TableName=scores, Key=key, UpdateExpression="REMOVE team")
    assert by_team(client, scores)["Count"] == 4
    client.delete_item(TableName=scores, Key={"pk": S("game"), "sk": S("player3")})
    assert by_team(client, scores)["Count"] == 3


def test_what_an_index_refuses(client, scores):
    with invalid("The table does not have the specified index: nothing"):
        client.scan(TableName=scores, IndexName="nothing")
    with invalid("Consistent reads are not supported on global secondary indexes"):
        by_team(client, scores, ConsistentRead=True)
    with invalid("Type mismatch for Index Key score Expected: N Actual: S"):
        client.put_item(TableName=scores, Item={"pk": S("a"), "sk": S("b"), "score": S("many")})
    with invalid("Select type ALL_ATTRIBUTES is not supported for global secondary index"):
        by_team(client, scores, Select="ALL_ATTRIBUTES")


# ---- keys of several attributes ----

MATCHES = {
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in (
        ("pk", "S"), ("cup", "S"), ("place", "S"), ("stage", "S"), ("score", "N"))],
    "GlobalSecondaryIndexes": [{
        "IndexName": "by-cup", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in (
            ("cup", "HASH"), ("place", "HASH"), ("stage", "RANGE"), ("score", "RANGE"))]}],
}


@pytest.fixture
def matches(client, make_table):
    """Matches of two cups at two places, by stage and score; one without a place."""
    name = make_table(**MATCHES)
    for number, score in enumerate(random.Random(1).sample(range(100), 48)):
        client.put_item(TableName=name, Item={
            "pk": S(str(number)), "cup": S("ab"[number % 2]), "place": S("rome" if number % 3 else "oslo"),
            "stage": S("final" if number % 5 == 0 else "group"), "score": N(score)})
    client.put_item(TableName=name, Item={"pk": S("nowhere"), "cup": S("a"), "stage": S("group"), "score": N(1)})
    return name


def by_cup(client, table, condition="", values=None, **options):
    return client.query(TableName=table, IndexName="by-cup",
                        KeyConditionExpression="cup = :c AND place = :p" + condition,
                        ExpressionAttributeValues={":c": S("a"), ":p": S("rome"), **(values or {})}, **options)


def matches_of(reply):
    return [(item["stage"]["S"], int(item["score"]["N"])) for item in reply["Items"]]


def test_several_attributes_order_an_index(client, matches):
    everything = matches_of(by_cup(client, matches))
    assert everything == sorted(everything) and len(everything) == 16
    assert matches_of(by_cup(client, matches, ScanIndexForward=False)) == everything[::-1]
    finals = by_cup(client, matches, " AND stage = :s", {":s": S("final")})
    assert matches_of(finals) == [match for match in everything if match[0] == "final"]
    high = by_cup(client, matches, " AND stage = :s AND score >= :n", {":s": S("group"), ":n": N(50)})
    assert matches_of(high) == [match for match in everything if match[0] == "group" and match[1] >= 50]


def test_pages_of_several_attributes(client, matches):
    expected, seen, options = matches_of(by_cup(client, matches)), [], {}
    while True:
        page = by_cup(client, matches, Limit=3, **options)
        seen += matches_of(page)
        if "LastEvaluatedKey" not in page:
            break
        assert set(page["LastEvaluatedKey"]) == {"pk", "cup", "place", "stage", "score"}
        options = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert seen == expected


def test_what_several_attributes_refuse(client, matches):
    with invalid("HASH key attributes place must have equality conditions specified in the query"):
        client.query(TableName=matches, IndexName="by-cup", KeyConditionExpression="cup = :c",
                     ExpressionAttributeValues={":c": S("a")})
    with invalid("RANGE key attributes stage must have equality conditions specified in the query because a condition "
                 "is present on key attribute score"):
        by_cup(client, matches, " AND score = :n", {":n": N(1)})
    assert client.scan(TableName=matches, IndexName="by-cup")["Count"] == 48


# ---- indexes of a table that is in use ----

ITEMS, GROUPS, WRITERS = 30000, 50, 3
BY_GROUP = {"IndexName": "by-group", "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["version"]},
            "KeySchema": key_schema("group", "rank")}
DEFINITIONS = [{"AttributeName": "group", "AttributeType": "S"}, {"AttributeName": "rank", "AttributeType": "N"}]


def item_of(number, version, rng):
    """One item in ten is in no group."""
    item = {"pk": S(f"item{number}"), "version": N(version), "text": S("x" * 500)}
    if rng.random() < 0.9:
        item.update(group=S(f"group{rng.randrange(GROUPS)}"), rank=N(rng.randrange(1000)))
    return item


def load(client, numbers):
    rng = random.Random(numbers[0])
    for start in range(0, len(numbers), 25):
        puts = [{"PutRequest": {"Item": item_of(number, 0, rng)}} for number in numbers[start:start + 25]]
        assert client.batch_write_item(RequestItems={"used": puts})["UnprocessedItems"] == {}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with the table `used`, which has many items and no index."""
    path = str(tmp_path_factory.mktemp("filled") / "data")
    with Quipu("--data", path) as server:
        create_table(boto_client(server.url), "used")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            parts = [range(start, ITEMS, 4) for start in range(4)]
            list(pool.map(lambda part: load(boto_client(server.url), part), parts))
        assert server.stop() == 0
    return path


@pytest.fixture
def used(filled, tmp_path):
    """A copy of the folder for one test."""
    path = str(tmp_path / "data")
    shutil.copytree(filled, path)
    return path


class Writer(threading.Thread):
    """Puts, changes and deletes items of its own until it is told to stop, and counts them."""

    def __init__(self, url, place):
        super().__init__(daemon=True)
        self.client, self.place = boto_client(url), place
        self.rng, self.ended, self.written, self.failure = random.Random(place), threading.Event(), 0, None
        self.start()

    def run(self):
        version = 0
        try:
            while not self.ended.is_set():
                version += 1
                number = self.rng.randrange(ITEMS // WRITERS) * WRITERS + self.place
                if self.rng.random() < 0.2:
                    self.client.delete_item(TableName="used", Key={"pk": S(f"item{number}")})
                else:
                    self.client.put_item(TableName="used", Item=item_of(number, version, self.rng))
                self.written += 1
        except Exception as failure:  # told by the test
            self.failure = failure

    def stop(self):
        self.ended.set()
        self.join()
        assert self.failure is None, self.failure


def create_index(client):
    return client.update_table(TableName="used", AttributeDefinitions=DEFINITIONS,
                               GlobalSecondaryIndexUpdates=[{"Create": BY_GROUP}])["TableDescription"]


def describe_index(client):
    indexes = client.describe_table(TableName="used")["Table"].get("GlobalSecondaryIndexes", [])
    return indexes[0] if indexes else None


def wait_for_index(client, seconds=240):
    deadline = time.monotonic() + seconds
    while describe_index(client)["IndexStatus"] != "ACTIVE":
        assert time.monotonic() < deadline, "the index does not become active"
        time.sleep(0.02)


def everything(client, **options):
    return [item for page in client.get_paginator("scan").paginate(TableName="used", **options)
            for item in page["Items"]]


def check_index(client):
    """The index holds, in order, just what the items ask for."""
    groups = collections.defaultdict(list)
    for item in everything(client):
        if "group" in item:
            groups[item["group"]["S"]].append((int(item["rank"]["N"]), item["pk"]["S"], item["version"]["N"]))
    assert sum(map(len, groups.values())) == len(everything(client, IndexName="by-group"))
    for name, expected in groups.items():
        pages = client.get_paginator("query").paginate(
            TableName="used", IndexName="by-group", KeyConditionExpression="#g = :g",
            ExpressionAttributeNames={"#g": "group"}, ExpressionAttributeValues={":g": S(name)})
        found = [item for page in pages for item in page["Items"]]
        assert {frozenset(item) for item in found} == {frozenset(("pk", "group", "rank", "version"))}
        assert [int(item["rank"]["N"]) for item in found] == sorted(rank for rank, _, _ in expected)
        assert sorted((int(i["rank"]["N"]), i["pk"]["S"], i["version"]["N"]) for i in found) == sorted(expected)


def check_folder(path):
    result = run_quipu("check", "--data", path)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert result.stdout.endswith(" 0 faults\n")


def test_an_index_is_made_while_its_table_is_written(used):
    with Quipu("--data", used) as server:
        client = boto_client(server.url)
        writers = [Writer(server.url, place) for place in range(WRITERS)]
        made = create_index(client)
        before = sum(writer.written for writer in writers)
        assert (made["TableStatus"], made["GlobalSecondaryIndexes"][0]["IndexStatus"]) == ("UPDATING", "CREATING")
        under_way = describe_index(client)
        assert (under_way["IndexStatus"], under_way["Backfilling"]) == ("CREATING", True)
        with invalid("Cannot read from backfilling global secondary index: by-group"):
            client.scan(TableName="used", IndexName="by-group")
        with refused("LimitExceededException", "Only 1 online index can be created or deleted simultaneously"):
            client.update_table(TableName="used", AttributeDefinitions=DEFINITIONS, GlobalSecondaryIndexUpdates=[
                {"Create": {**BY_GROUP, "IndexName": "another"}}])
        with refused("ResourceInUseException", "Cannot delete table while indexes are being created"):
            client.delete_table(TableName="used")
        beside = 0
        while True:
            written = sum(writer.written for writer in writers)
            if describe_index(client)["IndexStatus"] == "ACTIVE":
                break
            beside = written - before
        assert "Backfilling" not in describe_index(client)
        for writer in writers:
            writer.stop()
        check_index(client)
        assert describe_index(client)["ItemCount"] == len(everything(client, IndexName="by-group"))
        assert server.stop() == 0
    check_folder(used)
    assert beside > 0, "writes waited for the index"


def test_a_kill_in_the_middle_of_making_an_index(used):
    with Quipu("--data", used) as server:
        client = boto_client(server.url)
        create_index(client)
        while not describe_index(client)["ItemCount"]:
            time.sleep(0.005)
        under_way = describe_index(client)
        server.kill()
    assert under_way["IndexStatus"] == "CREATING" and under_way["ItemCount"] < ITEMS * 0.8
    check_folder(used)
    with Quipu("--data", used) as server:
        client = boto_client(server.url)
        writers = [Writer(server.url, place) for place in range(WRITERS)]
        wait_for_index(client)
        for writer in writers:
            writer.stop()
        check_index(client)
        assert server.stop() == 0
    check_folder(used)


def test_an_index_is_deleted_while_its_table_is_written(used):
    with Quipu("--data", used) as server:
        client = boto_client(server.url)
        create_index(client)
        writers = [Writer(server.url, place) for place in range(WRITERS)]
        dropped = client.update_table(TableName="used", GlobalSecondaryIndexUpdates=[
            {"Delete": {"IndexName": "by-group"}}])["TableDescription"]  # before it is finished
        assert dropped["GlobalSecondaryIndexes"][0]["IndexStatus"] == "DELETING"
        assert describe_index(client) is None
        create_index(client)
        wait_for_index(client)
        client.update_table(TableName="used", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-group"}}])
        with invalid("The table does not have the specified index: by-group"):
            client.scan(TableName="used", IndexName="by-group")
        for writer in writers:
            writer.stop()
        assert server.stop() == 0
    check_folder(used)


# ---- item collections ----

def test_an_item_collection_is_measured(client, scores):
    reply = client.put_item(TableName=scores, Item={"pk": S("game"), "sk": S("new")},
                            ReturnItemCollectionMetrics="SIZE")
    assert reply["ItemCollectionMetrics"] == {"ItemCollectionKey": {"pk": S("game")}, "SizeEstimateRangeGB": [0, 1]}


def test_an_item_counts_with_its_local_entries(client, scores):
    item = {"pk": S("large"), "sk": S("1"), "score": N(1), "text": S("x" * 250000)}
    with invalid("Item size has exceeded the maximum allowed size"):
        client.put_item(TableName=scores, Item=item)
    del item["score"]
    client.put_item(TableName=scores, Item=item)
    with invalid("Item size to update has exceeded the maximum allowed size"):
        client.update_item(TableName=scores, Key={"pk": S("large"), "sk": S("1")}, UpdateExpression="SET score = :s",
                           ExpressionAttributeValues={":s": N(1)})
