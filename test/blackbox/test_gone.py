"""Clients that wait and are killed: what waited for them ends, and who lives gets what they waited for."""
import json
import re
import subprocess
import threading
import time
import urllib.request

import pytest
from support.process import Quipu

WAITERS = 200
SECONDS = 180


@pytest.fixture(scope="module")
def server():
    """Without functions: else the server itself waits for something to drive, and is counted."""
    with Quipu("--memory", "--no-functions") as running:
        yield running


def ask(server, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, method=method)
    with urllib.request.urlopen(request, timeout=240) as reply:
        return json.loads(reply.read())


def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
        return int(re.search(rf"^{name} (\d+)$", reply.read().decode(), re.M)[1])


def await_metric(server, name, is_fine):
    end = time.monotonic() + SECONDS
    while not is_fine(metric(server, name)):
        assert time.monotonic() < end, (name, metric(server, name))
        time.sleep(0.1)


def curls(server, *requests):
    """One process, each request on a connection of its own."""
    arguments = ["curl", "-sN", "--parallel", "--parallel-immediate", "--parallel-max", str(len(requests))]
    for number, (path, *more) in enumerate(requests):
        arguments += (["--next", "-sN"] if number else []) + [server.url + path, *more]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_what_nobody_waits_for_any_more_ends(server):
    ask(server, "PUT", "/v1/jobs/j", {"total": 2})
    ask(server, "PUT", "/v1/logs/l", {"partitions": 1})
    read = ("/v1/logs/l/consumers/c/read", "-d", '{"owner":"o","wait":"60s"}')
    kinds = [("/v1/documents/c/none?wait=60s",), ("/v1/jobs/j?wait=60s",),
             ("/v1/jobs/j", "-H", "Accept: text/event-stream"), read]
    processes = [curls(server, *kinds * (WAITERS // 8)) for _ in range(2)]
    try:
        await_metric(server, "quipu_flows_waiting", lambda count: count >= WAITERS // 2)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    await_metric(server, "quipu_flows_waiting", lambda count: count == 0)
    await_metric(server, "quipu_flows", lambda count: count <= 1)
    assert metric(server, "quipu_flows_gone_total") >= WAITERS // 2


def test_a_lease_goes_to_one_who_lives(server):
    fence = ask(server, "POST", "/v1/leases/x", {"owner": "first", "for": "10m"})["fence"]
    dead = curls(server, *[("/v1/leases/x", "-d", json.dumps({"owner": f"dead{i}", "wait": "60s", "for": "10m"}))
                           for i in range(50)])
    try:
        end = time.monotonic() + SECONDS
        while len(ask(server, "GET", "/v1/leases/x")["waiting"]) < 50:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        dead.kill()
        dead.wait()
    told = {}
    alive = threading.Thread(target=lambda: told.update(
        ask(server, "POST", "/v1/leases/x", {"owner": "alive", "wait": "55s"})))
    alive.start()
    ask(server, "DELETE", f"/v1/leases/x?owner=first&fence={fence}")
    alive.join()
    assert told["fence"] == fence + 1
    assert ask(server, "GET", "/v1/leases/x")["waiting"] == []
