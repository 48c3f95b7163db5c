"""Streams through boto3: every change once and in order, shards that are split, restarts, many readers."""
import collections
import json
import os
import threading
import time
import urllib.request

import boto3
import botocore.config
import pytest
from conftest import boto_client, create_table
from support.process import Quipu
from values import N, S

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def streams_client(url):
    config = botocore.config.Config(retries={"max_attempts": 0}, parameter_validation=False)
    return boto3.client("dynamodbstreams", endpoint_url=url, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=config)


@pytest.fixture(scope="module")
def streams(endpoint):
    return streams_client(endpoint)


def arn_of(client, table):
    return client.describe_table(TableName=table)["Table"]["LatestStreamArn"]


def shards_of(streams, arn):
    """All shards, in pages of two, parents before their children."""
    shards, start = [], {}
    while True:
        page = streams.describe_stream(StreamArn=arn, Limit=2, **start)["StreamDescription"]
        shards += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            return shards
        start = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}


def iterator_of(streams, arn, shard, kind="TRIM_HORIZON"):
    return streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType=kind)["ShardIterator"]


def read_shard(streams, iterator, limit=1000):
    """Records up to the end or to an empty page, and where to go on (None: the shard is over)."""
    records = []
    while iterator:
        page = streams.get_records(ShardIterator=iterator, Limit=limit)
        records += page["Records"]
        iterator = page.get("NextShardIterator")
        if not page["Records"]:
            break
    return records, iterator


def read_all(streams, arn, limit=1000):
    return [r for shard in shards_of(streams, arn) for r in read_shard(streams, iterator_of(streams, arn, shard),
                                                                       limit)[0]]


def rebuild(records):
    """The table that the records lead to; each must fit what was there before."""
    items = {}
    for record in records:
        change = record["dynamodb"]
        key = json.dumps(change["Keys"], sort_keys=True)
        assert items.get(key) == change.get("OldImage"), record
        assert record["eventName"] == ("REMOVE" if "NewImage" not in change
                                       else "MODIFY" if "OldImage" in change else "INSERT")
        if "NewImage" in change:
            items[key] = change["NewImage"]
        else:
            del items[key]
    return sorted(items.values(), key=lambda item: item["pk"]["S"])


def test_the_stream_rebuilds_the_table(client, streams, make_table):
    table = make_table(StreamSpecification=STREAM)
    for number in range(300):
        key = S(f"item{number * 7 % 40}")
        if number % 5 == 4:
            client.delete_item(TableName=table, Key={"pk": key})
        else:
            client.put_item(TableName=table, Item={"pk": key, "n": N(number)})
    arn = arn_of(client, table)
    records = read_all(streams, arn, limit=7)
    assert rebuild(records) == sorted(client.scan(TableName=table)["Items"], key=lambda item: item["pk"]["S"])
    assert len({r["eventID"] for r in records}) == len(records)
    assert len({r["dynamodb"]["SequenceNumber"] for r in records}) == len(records)
    assert len(shards_of(streams, arn)) == 4


def test_a_write_that_changes_nothing_leaves_no_record(client, streams, make_table):
    table = make_table(StreamSpecification=STREAM)
    for _ in range(3):
        client.put_item(TableName=table, Item={"pk": S("x"), "n": N(1)})
    client.delete_item(TableName=table, Key={"pk": S("nothing")})
    assert [r["eventName"] for r in read_all(streams, arn_of(client, table))] == ["INSERT"]


def test_a_record_can_be_read_as_soon_as_its_write_is_answered(client, streams, make_table):
    table = make_table(StreamSpecification=STREAM)
    arn = arn_of(client, table)
    iterators = [iterator_of(streams, arn, shard, "LATEST") for shard in shards_of(streams, arn)]
    for number in range(20):
        client.put_item(TableName=table, Item={"pk": S(str(number))})
        pages = [streams.get_records(ShardIterator=i) for i in iterators]
        assert [r["dynamodb"]["Keys"]["pk"]["S"] for p in pages for r in p["Records"]] == [str(number)]
        iterators = [p["NextShardIterator"] for p in pages]


def test_readers_keep_up_with_writers(client, streams, make_table, endpoint):
    table = make_table(StreamSpecification=STREAM)
    arn, seen, done = arn_of(client, table), collections.Counter(), threading.Event()

    def write(writer):
        own = boto_client(endpoint)
        for number in range(200):
            own.put_item(TableName=table, Item={"pk": S(f"{writer}/{number % 20}"), "n": N(number)})

    def read(shard):
        own, last = streams_client(endpoint), {}
        iterator = iterator_of(own, arn, shard)
        while True:
            finished = done.is_set()
            records, iterator = read_shard(own, iterator, limit=10)
            for record in records:
                image = record["dynamodb"]["NewImage"]
                assert last.get(image["pk"]["S"], -1) < int(image["n"]["N"])
                last[image["pk"]["S"]] = int(image["n"]["N"])
                seen[record["eventID"]] += 1
            if finished:
                return

    readers = [threading.Thread(target=read, args=(shard,)) for shard in shards_of(streams, arn)]
    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert len(seen) == 600 and set(seen.values()) == {1}


def test_streams_are_apart_from_the_other_operations(wire):
    def status(target):
        return wire.call("ListStreams", {}, headers={"X-Amz-Target": target}).status

    assert status("DynamoDBStreams_20120810.ListStreams") == 200
    assert status("DynamoDB_20120810.ListStreams") == 400
    assert status("DynamoDBStreams_20120810.ListTables") == 400


def post_hook(server, path, body):
    request = urllib.request.Request(f"{server.url}/_quipu/{path}", data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def test_split_shards_follow_their_parents():
    with Quipu("--memory", "--test-hooks", "--stream-shards", "1") as server:
        client, streams = boto_client(server.url), streams_client(server.url)
        create_table(client, "split", StreamSpecification=STREAM)
        arn = arn_of(client, "split")
        for split in range(3):
            for number in range(30):
                client.put_item(TableName="split", Item={"pk": S(str(number)), "n": N(split)})
            post_hook(server, "shards/split", {"table": "split"})
        shards = shards_of(streams, arn)
        assert len(shards) == 1 + 2 + 4 + 8
        root = shards[0]["ShardId"]
        assert [s["ShardId"] for s in shards if s.get("ParentShardId") == root] == [s["ShardId"] for s in shards[1:3]]
        assert [s["ShardId"] for s in shards] == sorted(s["ShardId"] for s in shards)
        ended = [s for s in shards if "EndingSequenceNumber" in s["SequenceNumberRange"]]
        assert len(ended) == 7
        assert all(read_shard(streams, iterator_of(streams, arn, s))[1] is None for s in ended)
        records = read_all(streams, arn)
        assert len(records) == 90
        rebuild(records)


def test_iterators_and_settings_survive_a_restart(tmp_path):
    folder = os.path.join(tmp_path, "data")
    with Quipu("--data", folder) as server:
        client, streams = boto_client(server.url), streams_client(server.url)
        description = create_table(client, "kept", StreamSpecification=STREAM)
        client.update_time_to_live(TableName="kept",
                                   TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
        client.tag_resource(ResourceArn=description["TableArn"], Tags=[{"Key": "a", "Value": "b"}])
        client.update_continuous_backups(TableName="kept",
                                         PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
        arn = arn_of(client, "kept")
        iterators = [iterator_of(streams, arn, shard, "LATEST") for shard in shards_of(streams, arn)]
        client.put_item(TableName="kept", Item={"pk": S("x")})
    with Quipu("--data", folder) as server:
        client, streams = boto_client(server.url), streams_client(server.url)
        assert arn_of(client, "kept") == arn
        assert len([r for i in iterators for r in read_shard(streams, i)[0]]) == 1
        assert client.describe_time_to_live(TableName="kept")["TimeToLiveDescription"]["AttributeName"] == "ttl"
        assert client.list_tags_of_resource(ResourceArn=description["TableArn"])["Tags"] == [{"Key": "a", "Value": "b"}]
        backups = client.describe_continuous_backups(TableName="kept")["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_an_expired_item_is_removed_by_the_service():
    with Quipu("--memory", "--ttl-interval", "50") as server:
        client, streams = boto_client(server.url), streams_client(server.url)
        create_table(client, "expiring", StreamSpecification=STREAM)
        client.update_time_to_live(TableName="expiring",
                                   TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
        client.put_item(TableName="expiring", Item={"pk": S("x"), "ttl": N(1)})  # too long ago: stays
        client.put_item(TableName="expiring", Item={"pk": S("y"), "ttl": N(int(time.time()) - 1)})
        arn, records = arn_of(client, "expiring"), []
        for _ in range(100):
            records = [r for r in read_all(streams, arn) if r["eventName"] == "REMOVE"]
            if records:
                break
            threading.Event().wait(0.05)
        assert [r["dynamodb"]["Keys"]["pk"]["S"] for r in records] == ["y"]
        assert records[0]["userIdentity"] == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
        assert client.scan(TableName="expiring")["Count"] == 1
