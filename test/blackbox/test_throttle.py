"""Throughput that acts: SDKs that back off, batches that leave items over, transactions, indexes. The clock stands
still and is moved by the tests, so that what is throttled does not depend on how fast a machine is."""
import json
import subprocess
import urllib.error
import urllib.request

import boto3
import botocore.config
import pytest
from botocore.exceptions import ClientError
from conftest import boto_client
from lambdas import eventually, lambda_client, queue_documents, send
from support.process import Quipu, npm_folder
from support.wire import Connection
from values import S

UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks", "--throttle") as running:
        yield running


@pytest.fixture
def table(server, request):
    """A table with 5 units and an index with 2, which nobody has taken from, in a moment that does not pass."""
    name = request.node.name.split("[")[0]
    hook(server, "clock", {"freeze": True})
    boto_client(server.url).create_table(
        TableName=name, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS,
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "owner")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[{"IndexName": "by-owner", "Projection": {"ProjectionType": "ALL"},
                                 "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
                                 "ProvisionedThroughput": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 2}}])
    return name


def hook(server, path, body):
    request = urllib.request.Request(f"{server.url}/_quipu/{path}", data=json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code


def arn(table):
    return f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}"


def patient(server, kind, advance_at):
    """A boto3 client or resource with its own retries, and the requests that it sends; before the `advance_at`th of
    them, and before all behind it, a second passes."""
    sent = []
    config = botocore.config.Config(retries={"max_attempts": 8, "mode": "standard"}, read_timeout=180)
    made = kind("dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="local",
                aws_secret_access_key="local", config=config)

    def before_send(request, **_):
        sent.append(json.loads(request.body))
        if len(sent) >= advance_at:
            hook(server, "clock", {"advance_seconds": 1})

    (made if kind is boto3.client else made.meta.client).meta.events.register("before-send.dynamodb", before_send)
    return made, sent


def fails(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response


def test_an_sdk_that_backs_off_gets_through(server, table):
    for number in range(5):
        boto_client(server.url).put_item(TableName=table, Item={"pk": S(str(number))})
    client, sent = patient(server, boto3.client, advance_at=3)
    reply = client.put_item(TableName=table, Item={"pk": S("late")})
    assert len(sent) == 3 and reply["ResponseMetadata"]["RetryAttempts"] == 2


def test_the_exception_tells_what_was_exceeded(server, table):
    client = boto_client(server.url)
    client.put_item(TableName=table, Item={"pk": S("a"), "text": S("x" * 4900)})  # all five units
    refused = fails(client.put_item, TableName=table, Item={"pk": S("b")})
    assert refused["Error"]["Code"] == "ProvisionedThroughputExceededException"
    assert refused["Error"]["Message"].startswith("The level of configured provisioned throughput for the table was")
    script = f"""
      const sdk = require("{npm_folder()}/node_modules/@aws-sdk/client-dynamodb");
      const client = new sdk.DynamoDBClient({{ endpoint: "{server.url}", region: "us-east-1", maxAttempts: 1,
        credentials: {{ accessKeyId: "local", secretAccessKey: "local" }} }});
      client.send(new sdk.PutItemCommand({{ TableName: "{table}", Item: {{ pk: {{ S: "c" }} }} }})).catch((error) =>
        console.log(JSON.stringify([error instanceof sdk.ProvisionedThroughputExceededException,
          error.ThrottlingReasons])));"""
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) == [True, [{"reason": "TableWriteProvisionedThroughputExceeded",
                                              "resource": arn(table)}]], done.stderr


def test_batches_are_sent_again_until_all_is_done(server, table):
    """boto3's batch_writer sends what was left over."""
    resource, sent = patient(server, boto3.resource, advance_at=2)
    with resource.Table(table).batch_writer() as batch:
        for number in range(12):
            batch.put_item(Item={"pk": str(number)})
    assert [len(request["RequestItems"][table]) for request in sent] == [12, 7, 2]
    found, keys = [], [{"pk": S(str(number))} for number in range(12)]
    client = boto_client(server.url)
    while keys:
        hook(server, "clock", {"advance_seconds": 1})
        reply = client.batch_get_item(RequestItems={table: {"Keys": keys, "ConsistentRead": True}})
        found += reply["Responses"][table]
        left = reply["UnprocessedKeys"].get(table, {"Keys": []})
        assert len(reply["Responses"][table]) + len(left["Keys"]) == len(keys) and len(left["Keys"]) < len(keys)
        keys = left["Keys"]
    assert len(found) == 12


def test_a_batch_of_which_nothing_is_done_is_refused(server, table):
    hook(server, "throttle", {"table": table, "drain": True})
    client = boto_client(server.url)
    put = {"PutRequest": {"Item": {"pk": S("a")}}}
    assert fails(client.batch_write_item, RequestItems={table: [put]})["Error"]["Code"] == \
        "ProvisionedThroughputExceededException"
    assert fails(client.batch_get_item, RequestItems={table: {"Keys": [{"pk": S("a")}]}})["Error"]["Code"] == \
        "ProvisionedThroughputExceededException"


def test_transactions_are_cancelled_with_a_reason(server, table):
    client = boto_client(server.url)
    actions = [{"Put": {"TableName": table, "Item": {"pk": S(key)}}} for key in "abc"]
    client.transact_write_items(TransactItems=actions)  # six of five units: the last one is owed
    refused = fails(client.transact_write_items, TransactItems=actions)
    assert refused["Error"]["Code"] == "TransactionCanceledException"
    assert [reason["Code"] for reason in refused["CancellationReasons"]] == ["ProvisionedThroughputExceeded"] * 3
    hook(server, "clock", {"advance_ms": 200})
    assert fails(client.transact_write_items, TransactItems=actions)["Error"]["Code"] == "TransactionCanceledException"
    hook(server, "clock", {"advance_ms": 10})
    client.transact_write_items(TransactItems=actions)


def test_an_index_holds_its_table_back(server, table):
    client = boto_client(server.url)
    for key in "ab":
        client.put_item(TableName=table, Item={"pk": S(key), "owner": S("ann")})
    refused = fails(client.put_item, TableName=table, Item={"pk": S("c"), "owner": S("ann")})
    assert "one or more global secondary indexes" in refused["Error"]["Message"]
    client.put_item(TableName=table, Item={"pk": S("c")})
    assert client.scan(TableName=table)["Count"] == 3


def test_maxima_of_on_demand_tables(server):
    client = boto_client(server.url)
    hook(server, "clock", {"freeze": True})
    with Connection(server.url) as wire:  # older SDKs do not know the member
        assert wire.call("CreateTable", {
            "TableName": "maxima", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "OnDemandThroughput": {"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1}}).status == 200
    client.put_item(TableName="maxima", Item={"pk": S("a")})
    refused = fails(client.put_item, TableName="maxima", Item={"pk": S("b")})
    assert (refused["Error"]["Code"], refused["Error"]["Message"]) == \
        ("ThrottlingException", "Throughput exceeds the maximum OnDemandThroughput configured on table or index")
    hook(server, "clock", {"advance_seconds": 1})
    client.put_item(TableName="maxima", Item={"pk": S("b")})


def test_a_test_switches_it_on_for_one_table():
    with Quipu("--memory", "--test-hooks") as server:
        client = boto_client(server.url)
        hook(server, "clock", {"freeze": True})
        for name in ("one", "other"):
            client.create_table(TableName=name + "-table", ProvisionedThroughput={"ReadCapacityUnits": 1,
                                                                                  "WriteCapacityUnits": 1},
                                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
        for _ in range(3):
            client.put_item(TableName="one-table", Item={"pk": S("a")})
        assert hook(server, "throttle", {"table": "one-table", "enforce": True, "drain": True}) == {"throttled": 0}
        assert fails(client.put_item, TableName="one-table", Item={"pk": S("a")})["Error"]["Code"] == \
            "ProvisionedThroughputExceededException"
        for _ in range(3):
            client.put_item(TableName="other-table", Item={"pk": S("a")})
        assert hook(server, "throttle", {}) == {"throttled": 1}
        hook(server, "throttle", {"enforce": False})
        client.put_item(TableName="one-table", Item={"pk": S("a")})
        assert hook(server, "throttle", {"table": "nowhere", "enforce": True}) == 404
        assert hook(server, "throttle", {"burst_seconds": 1e9}) == 400


def test_patterns_wait_until_there_is_room(server):
    """The server's own tables are throttled like all others, and its calls wait and go on."""
    hook(server, "clock", {"reset": True})

    def count():
        request = urllib.request.Request(f"{server.url}/v1/counters/orders", data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)

    first = count()
    hook(server, "throttle", {"drain": True})
    assert count() != first


def test_an_asynchronous_call_comes_in_parts(server, unused_name):
    """What the table of calls gives out one item at a time is waited for, and not taken for a call that is gone."""
    client, functions = boto_client(server.url), lambda_client(server.url)
    hook(server, "clock", {"freeze": True})
    assert send(server.url, "POST", "/2015-03-31/functions",
                {"FunctionName": unused_name, "Code": {"Queue": unused_name}})[0] == 201
    functions.invoke(FunctionName=unused_name, InvocationType="Event", Payload=b"1")
    eventually(lambda: queue_documents(client, unused_name) == [1], "the first call is run")
    client.update_table(TableName="quipu-invocations", BillingMode="PROVISIONED",
                        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5000})
    long = "x" * 300_000
    functions.invoke(FunctionName=unused_name, InvocationType="Event", Payload=json.dumps(long).encode())

    def is_run():
        hook(server, "clock", {"advance_seconds": 1})
        return long in queue_documents(client, unused_name)
    eventually(is_run, "the long call is run")
