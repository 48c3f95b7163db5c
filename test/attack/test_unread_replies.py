"""Clients that ask for large replies and never read them: the server's memory stays bounded, and others are served."""
import json
import re

import pytest
from lambdas import eventually
from support.fixtures import boto_client, create_table
from support.process import Quipu
from support.wire import Connection, call_headers, request_bytes
from values import S

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
        yield server


def metric(server, pattern):
    with Connection(server.url) as wire:
        found = re.search(rf"^{pattern} (\d+)$", wire.request("GET", "/metrics").body.decode(), re.M)
    return int(found.group(1)) if found else 0


def resident_mb(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return max(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))


ALL = {"RequestItems": {"large": {"Keys": [{"pk": {"S": str(n)}} for n in range(ITEMS)]}}}


def test_replies_that_nobody_reads_are_bounded(server):
    headers = {"Host": "localhost", **call_headers("BatchGetItem")}
    request = request_bytes("POST", "/", headers, json.dumps(ALL).encode())
    wires = [Connection(server.url) for _ in range(CONNECTIONS)]
    for wire in wires:
        wire.send(request)
    eventually(lambda: metric(server, r'quipu_requests_total\{operation="BatchGetItem"\}') >= CONNECTIONS,
               "all are answered")
    assert resident_mb(server) < BOUND_MB
    with Connection(server.url) as wire:
        assert wire.call("PutItem", {"TableName": "large", "Item": {"pk": {"S": "small"}}}).status == 200
        reply = wire.call("GetItem", {"TableName": "large", "Key": {"pk": {"S": "small"}}})
        assert (reply.status, reply.json["Item"]) == (200, {"pk": S("small")})
    last = wires[-1].read()
    assert (last.status, last.type) == (503, "ServiceUnavailable")
    for wire in wires:
        wire.close()

    def is_served():
        with Connection(server.url) as wire:
            return wire.call("BatchGetItem", ALL).status == 200

    eventually(is_served, "a client that reads gets its large reply")
