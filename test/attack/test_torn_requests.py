"""Bytes that are no HTTP, and requests that end in their middle: a refusal or a closed connection, nothing is
written, and everybody else is served as before."""
import json
import random
import socket

import pytest
from lambdas import eventually
from support.process import Quipu
from support.wire import Closed, Connection, call_headers, request_bytes


def put(table, value):
    item = {"TableName": table, "Item": {"pk": {"S": value}, "v": {"S": "x" * 200}}}
    return request_bytes("POST", "/", {"Host": "localhost", **call_headers("PutItem")}, json.dumps(item).encode())


def is_served(endpoint):
    with Connection(endpoint) as wire:
        return wire.call("ListTables", {}).status == 200


def refused(wire):
    """Ends the sending half and reads what comes: refusals, or nothing."""
    try:
        wire.socket.shutdown(socket.SHUT_WR)
        while True:
            reply = wire.read()
            if not 400 <= reply.status < 500 and reply.status != 505:
                return False
    except (Closed, ConnectionError, OSError):
        return wire.buffer == b""


GARBAGE = [b"\x00" * 100, b"\xff" * 5000, b"\r\n" * 1000, b"GET", b"GET /",
           b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
           b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"POST / HTTP/9.9\r\n\r\n",
           b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
           b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}", b" / HTTP/1.1\r\n\r\n",
           b"A" * 100_000]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_refused(endpoint, data):
    with Connection(endpoint) as wire:
        try:
            wire.send(data)
        except ConnectionError:
            pass  # refused before all of it was sent
        assert refused(wire)
    assert is_served(endpoint)


def test_random_bytes_are_refused(endpoint):
    chance = random.Random(7)
    for _ in range(100):
        with Connection(endpoint) as wire:
            wire.send(chance.randbytes(chance.randrange(1, 2000)))
            assert refused(wire)
    assert is_served(endpoint)


def test_a_request_cut_anywhere_writes_nothing(endpoint, client, table):
    whole = put(table, "cut")
    for length in range(1, len(whole), 7):
        with Connection(endpoint) as wire:
            wire.send(whole[:length])
            assert refused(wire), length
    assert client.scan(TableName=table)["Count"] == 0
    with Connection(endpoint) as wire:
        wire.send(whole)
        assert wire.read().status == 200
    assert client.scan(TableName=table)["Count"] == 1


HALVES = [b"", b"POS", b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
          b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
          b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"]


def resident_mb(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return max(int(line.split()[1]) // 1024 for line in file if line.startswith("VmRSS"))


def is_admitted(server):
    try:
        return is_served(server.url)
    except (Closed, OSError):
        return False


def test_thousands_of_halves_shut_nobody_out():
    """More connections than are allowed, each with the beginning of a request: whoever comes next gets in, and they
    hold little memory."""
    wrapper = ["bash", "-c", 'ulimit -n 2048; exec "$0" "$@"']
    with Quipu("--memory", "--cache", "16", "--no-functions", wrapper=wrapper) as server:
        before = resident_mb(server)
        hoard = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(3000)]
        for number, connection in enumerate(hoard):
            try:
                connection.sendall(HALVES[number % len(HALVES)])
            except ConnectionError:
                pass  # one of those that are too many
        eventually(lambda: is_admitted(server), "a newcomer is served")
        assert resident_mb(server) - before < 300
        with Connection(server.url) as wire:
            assert b"\nquipu_displaced_total 0\n" not in wire.request("GET", "/metrics").body
        for connection in hoard:
            connection.close()
        assert is_served(server.url)
