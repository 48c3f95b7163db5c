"""/metrics: Prometheus' text format, read strictly, and numbers that follow what was done."""
import contextlib
import re

import pytest
from lambdas import Function, eventually, lambda_client
from support.process import Quipu
from support.wire import Connection

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="[^"\\]*",?)*)\})? (\S+)')


def parse(text):
    """{name: {labels: value}} and {name: type}; fails on what Prometheus would not take."""
    samples, types = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"two TYPE lines for {name}"
            assert kind in ("counter", "gauge", "histogram")
            types[name] = kind
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels = match.group(1), match.group(2) or ""
        assert labels not in samples.get(name, {}), f"twice: {line}"
        samples.setdefault(name, {})[labels] = float(match.group(3))
        family = re.sub("_(bucket|sum|count)$", "", name)
        assert name in types or types.get(family) == "histogram", f"no TYPE for {name}"
    return samples, types


@pytest.fixture(scope="module")
def server():
    with Quipu() as running:
        yield running


def read_metrics(server):
    with Connection(server.url) as wire:
        reply = wire.request("GET", "/metrics")
        assert reply.status == 200
        assert reply.header("content-type").startswith("text/plain; version=0.0.4")
        return parse(reply.body.decode())


def test_what_is_there(server):
    samples, types = read_metrics(server)
    for name in ("quipu_commits_total", "quipu_connections_total", "quipu_received_bytes_total",
                 "quipu_sent_bytes_total", "quipu_refused_total", "quipu_timeouts_total"):
        assert types[name] == "counter"
    for name in ("quipu_cache_bytes", "quipu_vector_bytes", "quipu_store_disk_bytes", "quipu_connections_open",
                 "quipu_uptime_seconds"):
        assert types[name] == "gauge"
        assert samples[name][""] >= 0
    assert types["quipu_request_seconds"] == types["quipu_commit_seconds"] == "histogram"


def test_connections_are_spread_over_the_loops():
    with Quipu("--threads", "2") as server, contextlib.ExitStack() as open_ones:
        for _ in range(64):
            open_ones.enter_context(Connection(server.url))
        loops = read_metrics(server)[0]["quipu_loop_connections"]
    assert set(loops) == {'loop="0"', 'loop="1"'}
    assert sum(loops.values()) == 65 and abs(loops['loop="0"'] - loops['loop="1"']) <= 1, loops


def test_numbers_follow_the_requests(server):
    with Connection(server.url) as wire:
        wire.call("CreateTable", {
            "TableName": "counted", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        before, _ = read_metrics(server)
        for number in range(10):
            assert wire.call("PutItem", {"TableName": "counted", "Item": {"pk": {"S": str(number)}}}).status == 200
        for _ in range(3):
            assert wire.call("PutItem", {"TableName": "counted", "Item": {}}).status == 400
        after, _ = read_metrics(server)

    def grown(name, labels=""):
        return after[name][labels] - before.get(name, {}).get(labels, 0)

    assert grown("quipu_requests_total", 'operation="PutItem"') == 13
    assert grown("quipu_errors_total", 'exception="ValidationException"') == 3
    assert grown("quipu_commits_total") == 10
    assert grown("quipu_request_seconds_count", 'operation="PutItem"') == 13
    assert grown("quipu_received_bytes_total") > 1000


def test_histograms_add_up(server):
    samples, types = read_metrics(server)
    for family in [name for name, kind in types.items() if kind == "histogram"]:
        buckets = {}
        for labels, value in samples.get(family + "_bucket", {}).items():
            series, bound = re.fullmatch(r'(?:(.*),)?le="([^"]*)"', labels).groups()
            buckets.setdefault(series or "", []).append((float(bound), value))
        for series, steps in buckets.items():
            values = [value for _, value in sorted(steps)]
            assert values == sorted(values), f"{family} falls"
            assert sorted(steps)[-1][0] == float("inf")
            assert values[-1] == samples[family + "_count"][series]
            assert samples[family + "_sum"][series] >= 0


def test_functions_have_numbers_of_their_own(server, tmp_path):
    functions = lambda_client(server.url)
    source = "def handle(event):\n    print('x' * 1000)\n    return 1 // event\n"
    for name in ("first", "second"):
        Function(functions, tmp_path, name, source)
    ends = {"answered": 3, "failed": 2, "throttled": 1, "refused": 0}
    for _ in range(ends["answered"]):
        assert "FunctionError" not in functions.invoke(FunctionName="first", Payload="1")
    for _ in range(ends["failed"]):
        assert functions.invoke(FunctionName="first", Payload="0")["FunctionError"] == "Unhandled"
    functions.put_function_concurrency(FunctionName="first", ReservedConcurrentExecutions=0)
    with pytest.raises(functions.exceptions.TooManyRequestsException):
        functions.invoke(FunctionName="first", Payload="1")
    functions.invoke(FunctionName="second", Payload="1")
    samples, types = read_metrics(server)
    assert types["quipu_function_calls_total"] == "counter" and types["quipu_function_live_processes"] == "gauge"
    assert {end: samples["quipu_function_calls_total"][f'function="first",end="{end}"'] for end in ends} == ends
    assert samples["quipu_function_calls_total"]['function="second",end="answered"'] == 1
    assert samples["quipu_function_call_seconds_total"]['function="first"'] > 0
    assert samples["quipu_function_log_bytes_total"]['function="first"'] > 5000
    assert samples["quipu_function_live_processes"]['function="first"'] >= 1
    assert samples["quipu_function_running_calls"]['function="first"'] == 0
    functions.delete_function(FunctionName="first")
    eventually(lambda: 'function="first"' not in str(read_metrics(server)[0]), "what was deleted is gone from here")
    samples, _ = read_metrics(server)
    assert samples["quipu_function_calls_total"]['function="second",end="answered"'] == 1
