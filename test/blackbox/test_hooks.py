"""The hooks for tests: clock, expiry, snapshots, rules, shards."""
import json
import urllib.error
import urllib.request

import pytest
from conftest import boto_client, create_table
from lambdas import Function, Mapping, eventually, lambda_client
from support.process import Quipu
from support.wire import Connection


@pytest.fixture
def server():
    with Quipu("--memory", "--test-hooks") as running:
        yield running


@pytest.fixture
def client(server):
    return boto_client(server.url)


def hook(server, path, body=None, method="POST"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/_quipu/{path}", data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def put(client, key, **more):
    client.put_item(TableName="Things", Item={"pk": {"S": key}, **more})


def count(client):
    return client.scan(TableName="Things", Select="COUNT")["Count"]


def test_without_the_flag_there_are_no_hooks():
    with Quipu("--memory") as plain:
        request = urllib.request.Request(f"{plain.url}/_quipu/idle", data=b"", method="POST")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=120)
        assert caught.value.code == 400


def test_the_clock_moves_and_stands(server):
    _, before = hook(server, "clock")
    _, moved = hook(server, "clock", {"advance_seconds": 3600})
    assert 3_600_000 <= moved["now"] - before["now"] < 4_200_000
    _, frozen = hook(server, "clock", {"now": 1000, "freeze": True})
    assert frozen == {"now": 1000}
    assert hook(server, "clock", {"advance_ms": 5})[1] == {"now": 1005}
    assert hook(server, "clock")[1] == {"now": 1005}
    assert hook(server, "clock", {"reset": True})[1]["now"] >= before["now"]


def test_items_expire_when_the_clock_says_so(server, client):
    create_table(client, "Things")
    client.update_time_to_live(TableName="Things", TimeToLiveSpecification={"Enabled": True, "AttributeName": "ends"})
    now = hook(server, "clock")[1]["now"] // 1000
    put(client, "short", ends={"N": str(now + 100)})
    put(client, "long", ends={"N": str(now + 100000)})
    hook(server, "expire")
    assert count(client) == 2
    hook(server, "clock", {"advance_seconds": 200})
    hook(server, "expire")
    assert count(client) == 1


def test_snapshot_and_rollback(server, client):
    create_table(client, "Things")
    put(client, "kept")
    assert hook(server, "snapshot") == (200, {"snapshot": 1})
    for _ in range(3):
        put(client, "gone")
        client.create_table(TableName="Other", BillingMode="PAY_PER_REQUEST",
                            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}])
        assert hook(server, "rollback", {"snapshot": 1}) == (200, {"snapshot": 1})
        assert client.list_tables()["TableNames"] == ["Things"]
        assert count(client) == 1
        assert client.describe_table(TableName="Things")["Table"]["ItemCount"] == 1
    assert hook(server, "rollback", {"snapshot": 2})[0] == 404


def test_rules_make_requests_fail(server, client):
    create_table(client, "Things")
    assert hook(server, "rules", {"error": "ProvisionedThroughputExceededException", "operation": "PutItem",
                                  "table": "Things", "count": 2})[0] == 200
    for _ in range(2):
        with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
            put(client, "a")
    put(client, "a")
    hook(server, "rules", {"error": "TransactionCanceledException", "operation": "TransactWriteItems"})
    with pytest.raises(client.exceptions.TransactionCanceledException) as caught:
        client.transact_write_items(TransactItems=[{"Put": {"TableName": "Things", "Item": {"pk": {"S": "b"}}}}])
    assert caught.value.response["CancellationReasons"][0]["Code"] == "TransactionConflict"
    assert hook(server, "rules", method="DELETE") == (200, {"rules": 0})
    client.transact_write_items(TransactItems=[{"Put": {"TableName": "Things", "Item": {"pk": {"S": "b"}}}}])
    assert hook(server, "rules", {"error": "NoSuchThing"})[0] == 400


@pytest.mark.parametrize("error, kind", [
    ("ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded"),
    ("ThrottlingException", "KeyRangeThroughputExceeded"), ("RequestLimitExceeded", "AccountLimitExceeded")])
def test_rules_throttle_as_the_service_does(server, client, error, kind):
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/"
    key = {"pk": {"S": "a"}}
    for operation, request, verb, tables in [
            ("GetItem", {"TableName": "Things", "Key": key}, "Read", ["Things"]),
            ("PutItem", {"TableName": "Things", "Item": key}, "Write", ["Things"]),
            ("BatchWriteItem", {"RequestItems": {"Things": [{"PutRequest": {"Item": key}}],
                                                 "Others": [{"PutRequest": {"Item": key}}]}}, "Write",
             ["Things", "Others"])]:
        hook(server, "rules", {"error": error, "operation": operation, "table": "Things", "count": 1})
        with Connection(server.url) as connection:
            reply = connection.call(operation, request)
        assert (reply.status, reply.type) == (400, error)
        assert reply.json["ThrottlingReasons"] == [{"reason": f"Table{verb}{kind}", "resource": arn + table}
                                                   for table in tables]
    hook(server, "rules", {"error": error, "operation": "ListTables", "count": 1})
    with Connection(server.url) as connection:
        assert "ThrottlingReasons" not in connection.call("ListTables", {}).json
    hook(server, "rules", method="DELETE")


def test_a_rule_may_leave_a_batch_unprocessed(server, client):
    create_table(client, "Things")
    batch = {"Things": [{"PutRequest": {"Item": {"pk": {"S": "later"}}}}]}
    rule = {"error": "ProvisionedThroughputExceededException", "table": "Things", "unprocessed": True, "count": 2}
    hook(server, "rules", rule)
    assert client.batch_write_item(RequestItems=batch)["UnprocessedItems"] == batch
    keys = {"Things": {"Keys": [{"pk": {"S": "later"}}]}}
    reply = client.batch_get_item(RequestItems=keys)
    assert (reply["Responses"], reply["UnprocessedKeys"]) == ({}, keys)
    assert client.batch_write_item(RequestItems=batch)["UnprocessedItems"] == {}
    assert len(client.batch_get_item(RequestItems=keys)["Responses"]["Things"]) == 1
    hook(server, "rules", {**rule, "count": 1})
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
        put(client, "a")
    hook(server, "rules", method="DELETE")


def test_bad_hooks_are_refused(server):
    assert hook(server, "nothing")[0] == 404
    assert hook(server, "clock", {"when": 5})[0] == 400
    assert hook(server, "shards/split", {"table": "none"})[0] == 404


def test_an_index_is_filled_when_idle_answers(server, client):
    create_table(client, "Things")
    for i in range(50):
        put(client, str(i), color={"S": "red" if i % 2 else "blue"})
    client.update_table(TableName="Things", AttributeDefinitions=[{"AttributeName": "color", "AttributeType": "S"}],
                        GlobalSecondaryIndexUpdates=[{"Create": {
                            "IndexName": "by-color", "KeySchema": [{"AttributeName": "color", "KeyType": "HASH"}],
                            "Projection": {"ProjectionType": "ALL"}}}])
    hook(server, "idle")
    index = client.describe_table(TableName="Things")["Table"]["GlobalSecondaryIndexes"][0]
    assert index["IndexStatus"] == "ACTIVE" and index["ItemCount"] == 50
    found = client.query(TableName="Things", IndexName="by-color", KeyConditionExpression="color = :c",
                         ExpressionAttributeValues={":c": {"S": "red"}})
    assert found["Count"] == 25


@pytest.mark.parametrize("body", [{"now": 1e300}, {"now": -1}, {"now": 4102444800000}, {"advance_seconds": 1e12},
                                  {"advance_ms": -1e18}, {"reset": True, "now": 1e16}])
def test_absurd_times_are_refused_and_change_nothing(server, body):
    hook(server, "clock", {"now": 5000, "freeze": True})
    status, fault = hook(server, "clock", body)
    assert status == 400 and "2099" in fault["error"]
    assert hook(server, "clock")[1] == {"now": 5000}
    hook(server, "clock", {"reset": True})


def test_a_stream_is_split_into_so_many_shards(server, client):
    create_table(client, "shattered", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    statuses = [hook(server, "shards/split", {"table": "shattered"})[0] for _ in range(12)]
    assert 200 in statuses and statuses[-1] == 409 and statuses == sorted(statuses)
    client.put_item(TableName="shattered", Item={"pk": {"S": "a"}})


def test_waiting_for_rest_has_a_time_out(server):
    assert hook(server, "idle?timeout=30s")[0] == 200
    for wrong in ("idle?timeout=61s", "idle?timeout=", "idle?timeout=5h", "idle?patience=5s"):
        status, fault = hook(server, wrong)
        assert status == 400 and "timeout" in fault["error"], wrong


def test_whoever_does_not_wait_is_told_too(server):
    """A time that is over at once: what was found by then counts. A server that has just begun may be busy."""
    for none in ("idle?timeout=0", "idle?timeout=0s", "idle?timeout=1ms"):
        _, answer = eventually(lambda: rest(server, none), "nothing is at work")
        assert answer["now"] > 0, none


GATED = """
def handle(event):
    while not os.path.exists(os.environ["NOTES"] + ".open"):
        time.sleep(0.01)
"""


def gated_function(server, folder):
    """It runs until the test opens its gate, or ends."""
    return Function(lambda_client(server.url), folder, "gated", GATED, Timeout=900)


def open_gate(function):
    with open(function.notes + ".open", "w"):
        pass


def test_waiting_for_a_function_that_goes_on(server, tmp_path):
    function = gated_function(server, tmp_path)
    function.client.invoke(FunctionName="gated", InvocationType="Event", Payload=b"{}")
    eventually(function.events, "the function runs")
    for soon in ("idle?timeout=0", "idle?timeout=50ms"):
        eventually(lambda: hook_busy(server, soon) == "functions are still at work", "triggers have seen the call")
    open_gate(function)
    status, answer = eventually(lambda: rest(server), "the function is at rest")
    assert status == 200 and answer["now"] > 0 and len(function.events()) == 1


def test_waiting_for_a_trigger_that_goes_on(server, client, tmp_path):
    function = gated_function(server, tmp_path)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    source = create_table(client, "Things", StreamSpecification=stream)["LatestStreamArn"]
    Mapping(function.client, source, "gated")
    put(client, "a")
    eventually(function.events, "the change has come to the function")
    assert hook_busy(server, "idle?timeout=50ms") == "triggers and functions are still at work"
    open_gate(function)
    eventually(lambda: rest(server), "the trigger is at rest")
    assert len(function.events()) == 1


def rest(server, path="idle?timeout=30s"):
    """The reply when everything is at rest; else None."""
    reply = hook(server, path)
    assert reply[0] in (200, 504), reply
    return reply if reply[0] == 200 else None


def hook_busy(server, path):
    """What is said to be at work."""
    status, fault = hook(server, path)
    assert status == 504, fault
    return fault["error"]
