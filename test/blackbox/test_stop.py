"""Stopping and starting again: what is in flight is finished, what was written is there."""
import json
import signal
import socket
import threading
import time

import botocore.exceptions
import pytest
from conftest import boto_client, create_table
from lambdas import Function, Mapping, eventually, lambda_client
from support.process import Quipu, run_quipu
from support.wire import Closed, Connection, call_headers, request_bytes
from values import B, L, M, N, NS, S, SS, same

ITEM = {"pk": S("a"), "n": N("3.25"), "b": B(b"\x00\xff"), "l": L(S("x"), N(1)), "m": M(k=NS(1, 2)), "ss": SS("p", "q")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_status_0(number):
    with Quipu("--memory") as server:
        server.signal(number)
        assert server.wait() == 0
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", server.port), timeout=2)


DRAIN_SECONDS = 10  # for what is in flight; longer, and an idle connection counts as such


def stop_beside_an_idle_connection():
    with Quipu("--memory") as server:
        with Connection(server.url) as wire:
            wire.call("ListTables", {})
            began = time.monotonic()
            assert server.stop() == 0
            assert wire.closed_by_server()
            return time.monotonic() - began


def test_an_idle_connection_does_not_delay_the_end():
    """If it does, it always does; a busy machine may delay one of them."""
    assert any(stop_beside_an_idle_connection() < DRAIN_SECONDS / 2 for _ in range(3))


def terminate(server):
    """SIGTERM, which the server has taken note of when this returns."""
    def is_taken():
        with open(f"/proc/{server.process.pid}/status") as file:
            pending = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
        return not any(mask >> (signal.SIGTERM - 1) & 1 for mask in pending)

    server.signal(signal.SIGTERM)
    eventually(is_taken, "the signal is taken")


def await_refusal(server):
    """Nobody is let in any more."""
    def is_refused():
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=60).close()
        except ConnectionRefusedError:
            return True
        return False

    eventually(is_refused, "no connection is accepted")


def test_a_request_in_flight_is_finished(tmp_path):
    """Half of its body has come when the signal arrives."""
    with Quipu("--data", str(tmp_path / "data")) as server:
        create_table(boto_client(server.url), "flight")
        body = json.dumps({"TableName": "flight", "Item": ITEM_JSON}).encode()
        headers = {"Host": "localhost", "Expect": "100-continue", **call_headers("PutItem")}
        request = request_bytes("POST", "/", headers, body)
        with Connection(server.url) as wire:
            wire.send(request[:-len(body)])
            assert wire.read().status == 100  # it has begun to read
            wire.send(body[:-20])
            server.signal(signal.SIGTERM)
            await_refusal(server)
            wire.send(body[-20:])
            reply = wire.read()
            assert (reply.status, reply.json) == (200, {})
        assert server.wait() == 0
    with Quipu("--data", str(tmp_path / "data")) as server:
        item = boto_client(server.url).get_item(TableName="flight", Key={"pk": S("a")})["Item"]
        assert item == {"pk": S("a"), "v": S("x")}


ITEM_JSON = {"pk": S("a"), "v": S("x")}


def test_every_reply_before_the_end_is_kept(tmp_path):
    """Writers until the connection breaks under SIGTERM: what was acknowledged is there."""
    acknowledged = []
    with Quipu("--data", str(tmp_path / "data")) as server:
        create_table(boto_client(server.url), "kept")
        threads = [threading.Thread(target=write_until_closed, args=(server.url, name, acknowledged))
                   for name in "abcd"]
        for thread in threads:
            thread.start()
        eventually(lambda: len(acknowledged) > 20, "they are at work")
        assert server.stop() == 0
        for thread in threads:
            thread.join()
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = boto_client(server.url)
        found = {item["pk"]["S"] for page in client.get_paginator("scan").paginate(TableName="kept")
                 for item in page["Items"]}
        assert set(acknowledged) <= found


def write_until_closed(url, name, acknowledged):
    with Connection(url) as wire:
        for number in range(100_000):
            key = f"{name}{number}"
            try:
                reply = wire.call("PutItem", {"TableName": "kept", "Item": {"pk": S(key)}})
            except (Closed, OSError):
                return
            if reply.status != 200:
                return
            acknowledged.append(key)


def test_a_restart_keeps_tables_and_items(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        client = boto_client(server.url)
        create_table(client, "kept", "S", "N")
        create_table(client, "dropped")
        for number in range(50):
            client.put_item(TableName="kept", Item={**ITEM, "sk": N(number)})
        client.delete_item(TableName="kept", Key={"pk": S("a"), "sk": N(7)})
        client.delete_table(TableName="dropped")
        before = client.describe_table(TableName="kept")["Table"]
        assert server.stop() == 0
    with Quipu("--data", data) as server:
        client = boto_client(server.url)
        assert client.list_tables()["TableNames"] == ["kept"]
        after = client.describe_table(TableName="kept")["Table"]
        assert after["ItemCount"] == 49
        for member in ("TableId", "TableArn", "CreationDateTime", "KeySchema", "AttributeDefinitions",
                       "TableSizeBytes"):
            assert after[member] == before[member]
        items = client.query(TableName="kept", KeyConditionExpression="pk = :a",
                             ExpressionAttributeValues={":a": S("a")})["Items"]
        assert [i["sk"] for i in items] == [N(n) for n in range(50) if n != 7]
        assert same(items[0], {**ITEM, "sk": N(0)})


@pytest.mark.parametrize("durability", ["sync", "os"])
def test_a_kill_keeps_what_was_acknowledged(tmp_path, durability):
    data = str(tmp_path / "data")
    with Quipu("--data", data, "--durability", durability) as server:
        client = boto_client(server.url)
        create_table(client, "kept")
        for number in range(20):
            client.put_item(TableName="kept", Item={"pk": S(str(number))})
        server.kill()
    with Quipu("--data", data) as server:
        assert boto_client(server.url).scan(TableName="kept")["Count"] == 20


def test_memory_keeps_nothing(tmp_path):
    for _ in range(2):
        with Quipu("--memory", cwd=tmp_path) as server:
            client = boto_client(server.url)
            assert client.list_tables()["TableNames"] == []
            create_table(client, "gone")
            client.put_item(TableName="gone", Item=ITEM)
            assert same(client.get_item(TableName="gone", Key={"pk": S("a")})["Item"], ITEM)
    assert list(tmp_path.iterdir()) == []


def test_many_restarts(tmp_path):
    data = str(tmp_path / "data")
    for number in range(5):
        with Quipu("--data", data) as server:
            client = boto_client(server.url)
            if number == 0:
                create_table(client, "counted")
            reply = client.update_item(TableName="counted", Key={"pk": S("n")}, UpdateExpression="ADD n :one",
                                       ExpressionAttributeValues={":one": N(1)}, ReturnValues="ALL_NEW")
            assert reply["Attributes"]["n"] == N(number + 1)
            assert server.stop() == 0
    assert run_quipu("check", "--data", data).returncode == 0


SLOW = """
def handle(event):
    note(begun=True)
    while not os.path.exists(os.environ["NOTES"] + ".go"):
        time.sleep(0.02)
    key = {"pk": {"S": "effects"}}
    return {"quipu": {"transact": [{"Update": {"TableName": "effects", "Key": key,
        "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}}]}}
"""


def slow_function(server, folder):
    """One that ends when it is let go."""
    create_table(boto_client(server.url), "watched",
                 StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    create_table(boto_client(server.url), "effects")
    return Function(lambda_client(server.url), folder, "slow", SLOW, Timeout=900)


def let_go(function):
    with open(function.notes + ".go", "w"):
        pass


def await_begun(function, count):
    eventually(lambda: len([line for line in function.lines() if "begun" in line]) >= count, f"{count} have begun")


def test_what_functions_do_when_the_signal_comes_is_finished_once(tmp_path):
    """A batch and an asynchronous call are under way: both end, what they return is applied, and neither runs again."""
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        function = slow_function(server, tmp_path)
        Mapping(function.client, "watched", "slow")
        boto_client(server.url).put_item(TableName="watched", Item={"pk": S("a")})
        function.client.invoke(FunctionName="slow", InvocationType="Event", Payload=b"{}")
        await_begun(function, 2)
        terminate(server)
        let_go(function)
        assert server.wait() == 0
    with Quipu("--data", data) as server:
        client = boto_client(server.url)
        effects = client.get_item(TableName="effects", Key={"pk": S("effects")}, ConsistentRead=True)["Item"]
        assert effects["n"] == N(2)
        client.put_item(TableName="watched", Item={"pk": S("b")})
        eventually(lambda: client.get_item(TableName="effects", Key={"pk": S("effects")})["Item"]["n"] == N(3),
                   "the mapping went on")
        keys = [[record["dynamodb"]["Keys"]["pk"]["S"] for record in event.get("Records", [])]
                for event in function.events()]
        assert sorted(keys) == [[], ["a"], ["b"]]


def invoke_and_wait(url):
    """A caller who waits for the answer; the end of the server is the end of its connection."""
    try:
        lambda_client(url).invoke(FunctionName="slow")
    except botocore.exceptions.BotoCoreError:
        pass


def wait_for_rest(url, replies):
    with Connection(url) as wire:
        replies.append(wire.request("POST", "/_quipu/idle").status)


def test_calls_that_run_on_do_not_hold_the_end(tmp_path):
    """They would run for fifteen minutes: one that a caller waits for, one in the queue, and somebody who waits for
    both."""
    replies = []
    with Quipu("--memory", "--test-hooks") as server:
        function = slow_function(server, tmp_path)
        function.client.invoke(FunctionName="slow", InvocationType="Event", Payload=b"{}")
        threads = [threading.Thread(target=invoke_and_wait, args=(server.url,)),
                   threading.Thread(target=wait_for_rest, args=(server.url, replies))]
        for thread in threads:
            thread.start()
        await_begun(function, 2)
        assert server.stop() == 0
        for thread in threads:
            thread.join()
        assert replies == [504]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path, number):
    with Quipu("--memory") as server:
        function = slow_function(server, tmp_path)
        Mapping(function.client, "watched", "slow")
        boto_client(server.url).put_item(TableName="watched", Item={"pk": S("a")})
        await_begun(function, 1)
        terminate(server)  # else the two might become one
        server.signal(number)
        assert server.wait() == 128 + number
