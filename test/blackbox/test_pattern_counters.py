"""Counters under many callers at once: no number twice, none left out, and no write that is lost."""
import concurrent.futures
import http.client
import json
import re
import urllib.request

from support.process import Quipu

CALLERS, EACH = 32, 15
SECONDS = 300  # ends only what hangs


def numbers(server, caller):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=SECONDS)
    values = []
    for call in range(EACH):
        connection.request("POST", "/v1/counters/orders", headers={"Idempotency-Key": f"{caller}-{call}"})
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status == 200, text
        values.append(json.loads(text)["value"])
    connection.close()
    return values


def calls_made(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=SECONDS) as reply:
        return int(re.search(r"^quipu_flow_calls_total (\d+)$", reply.read().decode(), re.M)[1])


def test_keys_of_one_counter_take_turns():
    """A number takes four calls: a look for the key, and three writes. Whoever lost a race would make more."""
    with Quipu() as server, concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        numbers(server, "first")
        before = calls_made(server)
        given = [value for values in pool.map(lambda caller: numbers(server, caller), range(CALLERS))
                 for value in values]
        made = calls_made(server) - before
    count = CALLERS * EACH
    assert sorted(given) == list(range(EACH + 1, EACH + count + 1))
    assert made < 4.5 * count  # sweeps make some, too
