"""Clients that ask for large replies and never read them: the server's memory stays bounded, and others are served."""
import json
import re

import pytest
from lambdas import Function, eventually, lambda_client
from support.fixtures import boto_client, create_table
from support.process import Quipu
from support.wire import Connection, call_headers, request_bytes
from values import N, S

CONNECTIONS = 150  # 16 MB each: 2.4 GB
ITEMS = 60
BOUND_MB = 1000  # LIMIT_UNREAD_BYTES, the cache, and room for the allocator


@pytest.fixture
def server():
    with Quipu("--memory", "--cache", "32") as server:
        create_table(boto_client(server.url), "large")
        with Connection(server.url) as wire:
            for number in range(ITEMS):
                item = {"pk": {"S": str(number)}, "v": {"S": "x" * 280_000}}
                assert wire.call("PutItem", {"TableName": "large", "Item": item}).status == 200
            item = {"pk": S("numbers"), "v": {"L": [N("1E-130")] * 130_000}}  # 18 MB when they are written out
            assert wire.call("PutItem", {"TableName": "large", "Item": item}).status == 200
        yield server


def metric(server, pattern):
    with Connection(server.url) as wire:
        found = re.search(rf"^{pattern} (\d+)$", wire.request("GET", "/metrics").body.decode(), re.M)
    return int(found.group(1)) if found else 0


def resident_mb(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return max(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


def some(count):
    return {"RequestItems": {"large": {"Keys": [{"pk": {"S": str(n)}} for n in range(count)]}}}


ALL = some(ITEMS)


def ask_without_reading(server, bodies):
    headers = {"Host": "localhost", **call_headers("BatchGetItem")}
    count = r'quipu_requests_total\{operation="BatchGetItem"\}'
    before = metric(server, count)
    wires = [Connection(server.url) for _ in bodies]
    for wire, body in zip(wires, bodies):
        wire.send(request_bytes("POST", "/", headers, json.dumps(body).encode()))
    eventually(lambda: metric(server, count) >= before + len(bodies), "all are answered")
    return wires


def under_pressure(server, is_read_refused, act):
    """Acts while a read of the same size is refused, before and behind it. Who does not read is cut off after seconds,
    so a slow machine may need more than one attempt, or not get there at all; acting must go well in any case."""
    for _ in range(3):
        wires = ask_without_reading(server, [ALL] * 20)
        for count in (50, 40, 30, 20):  # what fits beside them
            wires += ask_without_reading(server, [some(count)])
        was_refused = is_read_refused()
        act()
        was_refused = is_read_refused() and was_refused
        for wire in wires:
            wire.close()
        if was_refused:
            return


def test_replies_that_nobody_reads_are_bounded(server):
    wires = ask_without_reading(server, [ALL] * CONNECTIONS)
    assert resident_mb(server) < BOUND_MB
    with Connection(server.url) as wire:
        assert wire.call("PutItem", {"TableName": "large", "Item": {"pk": {"S": "small"}}}).status == 200
        reply = wire.call("GetItem", {"TableName": "large", "Key": {"pk": {"S": "small"}}})
        assert (reply.status, reply.json["Item"]) == (200, {"pk": S("small")})
    assert metric(server, "quipu_refused_total") + metric(server, "quipu_timeouts_total") > 0
    for wire in wires:
        wire.close()

    def is_served():
        with Connection(server.url) as wire:
            return wire.call("BatchGetItem", ALL).status == 200

    eventually(is_served, "a client that reads gets its large reply")


def status(server, operation, request):
    with Connection(server.url) as wire:
        reply = wire.call(operation, request)
    assert reply.status == 200 or (reply.status, reply.type) == (503, "ServiceUnavailable")
    return reply.status


def test_a_write_that_was_done_is_answered_all_the_same(server):
    """With 18 MB, where fewer are left. A client that is told to try again would add twice."""
    numbers = {"TableName": "large", "Key": {"pk": S("numbers")}}
    added = []

    def add():
        change = {**numbers, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": N(1)},
                  "ReturnValues": "ALL_NEW"}
        with Connection(server.url) as wire:
            reply = wire.call("UpdateItem", change)
        assert reply.status == 200 and len(reply.body) > 17 << 20, reply.body[:200]
        added.append(reply.json["Attributes"]["n"])

    under_pressure(server, lambda: status(server, "GetItem", numbers) == 503, add)
    assert added == [N(n + 1) for n in range(len(added))]


def test_a_function_that_ran_is_answered_all_the_same(server, tmp_path):
    """With 6 MB, where fewer are left. A client that is told to try again would run it twice."""
    function = Function(lambda_client(server.url), tmp_path, "long", "def handle(event):\n    return 'x' * 6_000_000\n")
    function.client.invoke(FunctionName="long")  # the next one is quick
    replies = []

    def invoke():
        with Connection(server.url) as wire:
            replies.append(wire.request("POST", "/2015-03-31/functions/long/invocations"))
        assert replies[-1].status == 200 and len(replies[-1].body) == 6_000_002, replies[-1].body[:200]

    under_pressure(server, lambda: status(server, "BatchGetItem", some(21)) == 503, invoke)
    assert len(function.events()) == 1 + len(replies)
