"""`quipu serve --imitate alternator`: each of its traits, so that tests on it mean something."""
import json
import time
import urllib.request

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from lambdas import eventually
from support.process import Quipu, StartError



def client_of(server, service="dynamodb"):
    return boto3.client(service, endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=Config(retries={"max_attempts": 0}))


def create(client, name="Things", **more):
    return client.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("id", "kind")],
        GlobalSecondaryIndexes=[{"IndexName": "by-kind", "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}], **more)["TableDescription"]


STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


def put(client, key, **attributes):
    item = {"id": {"S": key}, **{name: {"S": value} for name, value in attributes.items()}}
    return client.put_item(TableName="Things", Item=item, ReturnConsumedCapacity="TOTAL")


def of_kind(client, kind):
    reply = client.query(TableName="Things", IndexName="by-kind", KeyConditionExpression="kind = :k",
                         ExpressionAttributeValues={":k": {"S": kind}})
    return sorted(item["id"]["S"] for item in reply["Items"])


def fault(call, *arguments, **more):
    with pytest.raises(ClientError) as refused:
        call(*arguments, **more)
    response = refused.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"], response["Error"]["Message"]


@pytest.fixture(scope="module")
def server():
    with Quipu("--imitate", "alternator,stream-delay=0") as running:
        yield running


@pytest.fixture
def client(server):
    client = client_of(server)
    yield client
    for table in client.list_tables()["TableNames"]:
        client.delete_table(TableName=table)


def records(server, until):
    """All records of the table's stream, as soon as `until` holds of them."""
    streams = client_of(server, "dynamodbstreams")
    arn = client_of(server).describe_table(TableName="Things")["Table"]["LatestStreamArn"]
    shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]

    def read():
        found = []
        for shard in shards:
            iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                                  ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
            found += streams.get_records(ShardIterator=iterator)["Records"]
        return sorted(found, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))

    eventually(lambda: until(read()), "the stream tells it")
    return read()


OPERATIONS = """BatchGetItem BatchWriteItem CreateTable DeleteItem DeleteTable DescribeContinuousBackups
    DescribeEndpoints DescribeStream DescribeTable DescribeTimeToLive GetItem GetRecords GetShardIterator ListStreams
    ListTables ListTagsOfResource PutItem Query Scan TagResource UntagResource UpdateItem UpdateTable
    UpdateTimeToLive""".split()


def test_operations(server):
    """These and no others."""
    names = {(service, name) for service in ("dynamodb", "dynamodbstreams")
             for name in client_of(server, service).meta.service_model.operation_names}
    known = []
    for service, name in names:
        prefix = "DynamoDBStreams" if service == "dynamodbstreams" else "DynamoDB"
        request = urllib.request.Request(server.url, b"{}", {"X-Amz-Target": f"{prefix}_20120810.{name}",
                                                             "Content-Type": "application/x-amz-json-1.0"})
        try:
            with urllib.request.urlopen(request, timeout=180) as reply:
                status, body = reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            status, body = error.code, json.load(error)
        if "UnknownOperationException" in body.get("__type", ""):
            assert status == 400
        else:
            known.append(name)
    assert len(OPERATIONS) == 24 and sorted(known) == sorted(OPERATIONS)


def test_transactions(client):
    create(client)
    action = {"Put": {"TableName": "Things", "Item": {"id": {"S": "a"}}}}
    assert fault(client.transact_write_items, TransactItems=[action])[:2] == (400, "UnknownOperationException")
    assert client.scan(TableName="Things")["Items"] == []


def test_indexes_project_everything(client):
    assert create(client)["GlobalSecondaryIndexes"][0]["Projection"] == {"ProjectionType": "ALL"}
    client.update_table(TableName="Things", GlobalSecondaryIndexUpdates=[{"Create": {
        "IndexName": "later", "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]}}}],
        AttributeDefinitions=[{"AttributeName": "kind", "AttributeType": "S"}])
    indexes = client.describe_table(TableName="Things")["Table"]["GlobalSecondaryIndexes"]
    assert [index["Projection"] for index in indexes] == [{"ProjectionType": "ALL"}] * 2
    put(client, "a", kind="x", color="red")
    eventually(lambda: of_kind(client, "x") == ["a"], "the index follows")
    assert client.scan(TableName="Things", IndexName="by-kind")["Items"][0]["color"] == {"S": "red"}


def test_indexes_lag():
    """An index shows neither what is there nor that something is gone, until it has followed."""
    with Quipu("--imitate", "alternator,index-delay=600000,seed=5") as server:
        client = client_of(server)
        create(client)
        put(client, "a", kind="x")
        assert client.get_item(TableName="Things", Key={"id": {"S": "a"}})["Item"]["kind"] == {"S": "x"}
        assert of_kind(client, "x") == []


def test_indexes_follow(client):
    create(client)
    put(client, "a", kind="x")
    put(client, "b", kind="x")
    eventually(lambda: of_kind(client, "x") == ["a", "b"], "both are shown")
    put(client, "a", kind="y")
    client.delete_item(TableName="Things", Key={"id": {"S": "b"}})
    eventually(lambda: (of_kind(client, "x"), of_kind(client, "y")) == ([], ["a"]), "it follows changes and deletions")
    client.batch_write_item(RequestItems={"Things": [{"PutRequest": {"Item": {"id": {"S": "c"}, "kind": {"S": "y"}}}},
                                                     {"DeleteRequest": {"Key": {"id": {"S": "a"}}}}]})
    eventually(lambda: of_kind(client, "y") == ["c"], "it follows batches")


def test_indexes_that_never_lag():
    with Quipu("--imitate", "alternator,index-delay=0") as server:
        client = client_of(server)
        create(client)
        for number in range(50):
            put(client, "a", kind=str(number))
            assert of_kind(client, str(number)) == ["a"]


def test_keys_of_indexes(client):
    schema = [{"AttributeName": name, "KeyType": "HASH"} for name in ("a", "b")] + [
        {"AttributeName": "c", "KeyType": "RANGE"}]
    status, code, _ = fault(client.create_table, TableName="Things", BillingMode="PAY_PER_REQUEST",
                            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                            AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in
                                                  ("id", "a", "b", "c")],
                            GlobalSecondaryIndexes=[{"IndexName": "many", "KeySchema": schema,
                                                     "Projection": {"ProjectionType": "ALL"}}])
    assert (status, code) == (400, "ValidationException")


def test_names(client):
    create(client, "t" * 192)
    assert fault(create, client, "t" * 193)[:2] == (400, "ValidationException")


def test_batches(client):
    create(client)
    puts = [{"PutRequest": {"Item": {"id": {"S": str(number)}}}} for number in range(101)]
    assert fault(client.batch_write_item, RequestItems={"Things": puts})[:2] == (400, "ValidationException")
    assert client.batch_write_item(RequestItems={"Things": puts[:100]})["UnprocessedItems"] == {}
    keys = [{"id": {"S": str(number)}} for number in range(100)]
    found = client.batch_get_item(RequestItems={"Things": {"Keys": keys}})["Responses"]["Things"]
    assert len(found) == 100


def test_capacity(client):
    """Of the table alone, where the service counts what an index costs, too."""
    create(client)
    assert put(client, "a", kind="x")["ConsumedCapacity"] == {"TableName": "Things", "CapacityUnits": 1.0}
    assert fault(client.get_item, TableName="Things", Key={"id": {"S": "a"}}, ReturnConsumedCapacity="INDEXES") == (
        400, "ValidationException", "INDEXES consumed capacity is not supported.")


def test_the_tag_of_isolation(client):
    arn = create(client, Tags=[{"Key": "system:write_isolation", "Value": "always"}])["TableArn"]
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [
        {"Key": "system:write_isolation", "Value": "always"}]
    wrong = [{"Key": "system:write_isolation", "Value": "sometimes"}]
    assert fault(client.tag_resource, ResourceArn=arn, Tags=wrong)[:2] == (400, "ValidationException")


def test_records(server, client):
    create(client, **STREAM)
    put(client, "a", color="red")
    for number in range(40):
        put(client, "a", color=str(number))
    put(client, "a", color="39")  # changes nothing
    client.delete_item(TableName="Things", Key={"id": {"S": "a"}})
    told = records(server, lambda found: len(found) == 43)
    assert {record["eventSource"] for record in told} == {"scylladb:alternator"}
    assert all("SizeBytes" not in record["dynamodb"] for record in told)
    names = [record["eventName"] for record in told]
    assert (names[0], names[-1]) == ("INSERT", "REMOVE")
    assert set(names[1:-1]) == {"INSERT", "MODIFY"}, "some changes are told as insertions"
    assert told[-2]["dynamodb"]["NewImage"] == told[-2]["dynamodb"]["OldImage"]
    assert names == [record["eventName"] for record in records(server, lambda found: len(found) == 43)]


def test_many_shards(server, client):
    arn = create(client, **STREAM)["LatestStreamArn"]
    described = client_of(server, "dynamodbstreams").describe_stream(StreamArn=arn)["StreamDescription"]
    assert len(described["Shards"]) == 16


def test_records_are_late():
    """Nothing is told that is younger, and nobody loses his place while he waits."""
    with Quipu("--imitate", "alternator,stream-delay=600000", "--stream-shards", "1") as server:
        client, streams = client_of(server), client_of(server, "dynamodbstreams")
        arn = create(client, **STREAM)["LatestStreamArn"]
        shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard,
                                              ShardIteratorType="LATEST")["ShardIterator"]
        put(client, "a")
        reply = streams.get_records(ShardIterator=iterator)
        assert reply["Records"] == [] and reply["NextShardIterator"] == iterator
    with Quipu("--imitate", "alternator,stream-delay=1500", "--stream-shards", "1") as server:
        client, streams = client_of(server), client_of(server, "dynamodbstreams")
        arn = create(client, **STREAM)["LatestStreamArn"]
        shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard,
                                              ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        found = []

        def go_on():
            nonlocal iterator
            reply = streams.get_records(ShardIterator=iterator)
            iterator = reply["NextShardIterator"]
            found.extend(record["dynamodb"]["Keys"]["id"]["S"] for record in reply["Records"])

        for number in range(10):
            put(client, str(number))
            go_on()
            time.sleep(0.2)
        eventually(lambda: go_on() or len(found) >= 10, "all are told")
        assert found == [str(number) for number in range(10)]


def test_time_outs():
    """Every write is answered with a time-out, and happens all the same."""
    with Quipu("--imitate", "alternator,timeouts=100,late=300") as server:
        client = client_of(server)
        create(client)
        assert fault(put, client, "a", kind="x")[:2] == (500, "InternalServerError")
        eventually(lambda: client.scan(TableName="Things")["Count"] == 1, "the write happens")
        eventually(lambda: of_kind(client, "x") == ["a"], "the index follows it")
    with Quipu("--imitate", "alternator,timeouts=100,late=600000,seed=3") as server:
        client = client_of(server)
        create(client)
        assert fault(put, client, "a")[0] == 500
        assert client.scan(TableName="Things", ConsistentRead=True)["Count"] == 0, "it happens later"


def test_expiry_is_a_day_late(client):
    create(client)
    client.update_time_to_live(TableName="Things", TimeToLiveSpecification={"Enabled": True, "AttributeName": "gone"})
    client.put_item(TableName="Things", Item={"id": {"S": "a"}, "gone": {"N": str(int(time.time()) - 3600)}})
    deadline = time.monotonic() + 2.5  # elsewhere expired items go every second
    while time.monotonic() < deadline:
        assert client.get_item(TableName="Things", Key={"id": {"S": "a"}}).get("Item")
        time.sleep(0.2)


@pytest.mark.parametrize("setting,nodes", [("", ["127.0.0.1"]),
                                           (",nodes=127.0.0.1+127.0.0.2", ["127.0.0.1", "127.0.0.2"])])
def test_nodes(setting, nodes):
    with Quipu("--imitate", "alternator" + setting) as server:
        with urllib.request.urlopen(server.url + "/localnodes", timeout=180) as reply:
            assert (reply.status, json.load(reply)) == (200, nodes)


@pytest.mark.parametrize("arguments,sentence", [
    (["--imitate", "cassandra"], "--imitate takes 'alternator', not 'cassandra'"),
    (["--imitate", "alternator,timeouts=101"], "'timeouts=101' is none of"),
    (["--imitate", "alternator,stream-delay"], "'stream-delay' is none of"),
    (["--imitate", "alternator,speed=1"], "'speed=1' is none of"),
    (["--imitate", "alternator", "--on", "http://127.0.0.1:1"], "--imitate and --on exclude each other"),
    (["--imitate", "alternator", "--test-hooks"], "--imitate and --test-hooks exclude each other"),
])
def test_what_it_takes(arguments, sentence):
    with pytest.raises(StartError) as refused:
        Quipu(*arguments).close()
    assert sentence in str(refused.value)
