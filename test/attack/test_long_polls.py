"""Thousands of requests that wait for something: they cost no work while nothing happens, little memory, and what they
had is given back."""
import json
import os
import re
import resource
import socket
import time
import urllib.request

import pytest

from support.process import Quipu

POLLS = 1500
POLLS_MANY = 5000  # bench/run tries as many as there are connections
LEASE_WAITERS = 400
BYTES_PER_POLL = 20_000  # of the server's memory, connection and all: ten thousand fit in 200 MB
ROUNDS = 4


@pytest.fixture
def server():
    """Without functions: else the server itself waits for something to drive, and is counted."""
    with Quipu("--memory", "--no-functions") as running:
        yield running


def call(server, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=data, method=method)
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.loads(reply.read() or b"null")


def metrics(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=120) as reply:
        text = reply.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(quipu_(?:flow|task)\w*) (\S+)$", text, re.M)}


def await_metrics(server, is_so):
    """Only what hangs ends this."""
    until = time.monotonic() + 50
    while not is_so(metrics(server)):
        assert time.monotonic() < until, metrics(server)
        time.sleep(0.02)


def await_waiting(server, count):
    await_metrics(server, lambda now: now["quipu_flows_waiting"] == count)


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def send(server, method, path, body=b""):
    """A request whose reply nobody reads yet."""
    connection = socket.create_connection((server.host, server.port), timeout=120)
    head = f"{method} {path} HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def status_of(connection):
    with connection, connection.makefile("rb") as file:
        return int(file.readline().split()[1])


def test_polls_that_wait_take_no_steps(server):
    call(server, "PUT", "/v1/documents/c/before", 1)
    polls = [send(server, "GET", f"/v1/documents/c/d{i % 100}?wait=60s") for i in range(POLLS)]
    await_waiting(server, POLLS)
    idle = metrics(server)
    for i in range(30):  # others are served meanwhile, and others' things change
        call(server, "PUT", f"/v1/documents/c/other-{i}", i)
    busy = metrics(server)
    assert busy["quipu_flow_wakes_total"] == idle["quipu_flow_wakes_total"]
    assert busy["quipu_flow_calls_total"] - idle["quipu_flow_calls_total"] <= 60
    assert busy["quipu_flows_waiting"] == POLLS
    call(server, "PUT", "/v1/documents/c/d7", 7)  # wakes those who wait for it, and nobody else
    for poll in polls[7::100]:
        assert status_of(poll) == 200
    await_waiting(server, POLLS - POLLS // 100)
    assert metrics(server)["quipu_flow_wakes_total"] - idle["quipu_flow_wakes_total"] == POLLS // 100
    for i, poll in enumerate(polls):
        if i % 100 != 7:
            poll.close()
    await_waiting(server, 0)  # clients that leave are noticed, though nothing happens


@pytest.mark.parametrize("path", ["/v1/documents/c/d", "/v1/boards/b"])
def test_thousands_of_polls_take_little_memory(server, path):
    """`bench/run --only polls` has twice as many, and shows what they take of a core."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(POLLS_MANY, hard // 2 - 500)  # the server deals out its descriptors, half of them to clients
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    polls = []
    try:
        call(server, "PUT", "/v1/documents/c/before", 1)
        call(server, "POST", "/v1/boards/before", {"text": "x"})
        before = resident_bytes(server)
        polls = [send(server, "GET", f"{path}{i}?wait=60s") for i in range(count)]
        await_waiting(server, count)
        assert (resident_bytes(server) - before) / count < BYTES_PER_POLL
        now = metrics(server)
        assert now["quipu_tasks_waiting"] >= count and now["quipu_tasks_begun_total"] > count
        for poll in polls:
            poll.close()
        await_waiting(server, 0)
        now = metrics(server)
        assert 0 < now["quipu_task_stacks_kept"] < count
        assert 0 < now["quipu_task_stack_used_bytes"] < now["quipu_task_stack_bytes"]
    finally:
        for poll in polls:
            poll.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_polls_are_woken_by_plain_writes(server):
    """A command in another process, or any SDK, writes with DynamoDB's own calls."""
    call(server, "PUT", "/v1/documents/c/before", 1)
    polls = [send(server, "GET", "/v1/documents/c/a?wait=60s"), send(server, "GET", "/v1/documents/c/b?wait=60s")]
    await_waiting(server, 2)
    item = {"collection": {"S": "c"}, "key": {"S": "a"}, "version": {"N": "1"}, "data": {"S": "x"}}
    request = urllib.request.Request(server.url + "/", method="POST",
                                     data=json.dumps({"TableName": "quipu-documents", "Item": item}).encode(),
                                     headers={"X-Amz-Target": "DynamoDB_20120810.PutItem",
                                              "Content-Type": "application/x-amz-json-1.0"})
    urllib.request.urlopen(request, timeout=120).read()
    assert status_of(polls[0]) == 200
    await_waiting(server, 1)
    polls[1].close()


def test_waiters_of_a_lease_give_their_memory_back(server):
    sizes = []
    for turn in range(ROUNDS):
        fence = call(server, "POST", f"/v1/leases/x{turn}", {"owner": "holder", "for": "1h"})["fence"]
        waiters = [send(server, "POST", f"/v1/leases/x{turn}",
                        json.dumps({"owner": f"w{turn}-{i}", "for": "100ms", "wait": "60s"}).encode())
                   for i in range(LEASE_WAITERS)]
        # The line is full; the others are told so.
        await_metrics(server, lambda now: now["quipu_flows"] == now["quipu_flows_waiting"] >= 100)
        if turn % 2:
            for waiter in waiters:
                waiter.close()
        else:
            waiting = metrics(server)["quipu_flows"]
            call(server, "DELETE", f"/v1/leases/x{turn}?owner=holder&fence={fence}")
            await_metrics(server, lambda now: now["quipu_flows"] < waiting - 2)  # some have got it, one by one
            for waiter in waiters:
                waiter.close()
        await_waiting(server, 0)
        sizes.append(resident_bytes(server))
    assert max(sizes) < 300_000_000
    assert sizes[-1] - sizes[0] < 50_000_000
