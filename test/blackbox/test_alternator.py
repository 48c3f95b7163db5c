"""ScyllaDB Alternator, which has no transactions: what works on it works, what cannot work is refused before anything
is written, and nothing else is taken for it. `quipu serve --imitate alternator` stands for it."""
import os
import re
import threading
import urllib.request

import pytest
from botocore.exceptions import ClientError
from cli import items, output, quipu
from conftest import boto_client, create_table
from lambdas import eventually, lambda_client, send
from test_patterns import (Face, test_counters_never_repeat, test_errors_are_clear,  # noqa: F401
                           test_long_polls_end_when_something_comes, test_the_original_counter_and_wall,
                           test_those_who_wait_for_a_lease_take_turns, test_two_writers_on_one_document,
                           test_work_goes_from_hand_to_hand)
from support.engines import UNIT_PARTS_REFUSED
from support.process import ROOT, DynamoLocal, Quipu, free_port
from support.proxy import Node, Proxy

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
with open(os.path.join(ROOT, "src", "pattern", "pattern.h"), encoding="utf-8") as header:
    SENTENCE = "".join(re.findall('"(.*?)"', re.search("#define PATTERN_ON_ALTERNATOR(.*?)\n\n", header.read(),
                                                       re.S).group(1)))


@pytest.fixture(scope="module")
def database():
    with Quipu("--memory", "--no-functions") as other:
        yield other


@pytest.fixture(scope="module")
def imitation():
    with Quipu("--imitate", "alternator") as running:
        yield running


@pytest.fixture
def alternator(imitation):
    """Writes down what it is asked; what was made goes."""
    client = boto_client(imitation.url)
    with Node(imitation.url) as node:
        yield node
    for table in client.list_tables()["TableNames"]:
        client.delete_table(TableName=table)


@pytest.fixture
def server(alternator):
    with Quipu("--on", alternator.url, env=KEYS) as running:
        yield running


# What a server looks at by itself: sweeps of patterns, and what starts functions.
LOOKS = {("Query", "quipu-jobs"), ("Query", "quipu-drives"), ("Scan", "quipu-group-rules"), ("Query", "quipu-periods"),
         *((operation, "quipu-functions") for operation in ("DescribeTable", "GetItem", "Scan", "Query")),
         *(("Scan", "quipu-" + table) for table in ("mappings", "schedules", "histories", "invocations", "routes")),
         *(("DescribeTable", "quipu-" + table) for table in ("jobs", "groups", "period-buckets", "work"))}


def asked(alternator):
    """What it was asked but for that."""
    calls = [(call.operation, call.request.get("TableName")) for call in alternator.calls]
    return [call for call in calls if call not in LOOKS]


def tables(alternator):
    return boto_client(alternator.url).list_tables()["TableNames"]


# ---- what works, with late indexes; so do the tests of test_patterns.py that are named above ----

@pytest.fixture
def face(server, alternator):
    return Face(server.url, alternator.url)


def test_numbers(server):
    assert [send(server.url, "POST", "/v1/counters/c", body)[1] for body in ({}, {"by": 5}, {"block": 10})] == [
        {"value": 1}, {"value": 6}, {"first": 7, "last": 16}]
    assert send(server.url, "PUT", "/v1/counters/c", {"value": 3}) == (200, {"value": 3})
    assert send(server.url, "GET", "/v1/counters/c") == (200, {"value": 3})
    assert send(server.url, "DELETE", "/v1/counters/c") == (200, {"deleted": True})


def test_tables_are_made_for_conditional_writes(server, alternator):
    """By its tag, whatever the cluster's setting; and with a stream where reactions may come of it."""
    for method, path, body in [("POST", "/v1/counters/c", {}), ("POST", "/v1/leases/l", {"owner": "o"}),
                               ("POST", "/v1/work/q/u", {"data": 1}), ("PUT", "/v1/documents/c/d", {"a": 1}),
                               ("POST", "/v1/boards/b", {"text": "hello"})]:
        assert send(server.url, method, path, body)[0] in (200, 201), path
    made = [call.request for call in alternator.calls if call.operation == "CreateTable"]
    assert {"quipu-counters", "quipu-leases", "quipu-work", "quipu-documents", "quipu-boards"} <= {
        request["TableName"] for request in made}
    for request in made:
        assert request["Tags"] == [{"Key": "system:write_isolation", "Value": "always"}]
        assert ("StreamSpecification" in request) == (request["TableName"] == "quipu-work")


def test_tables_and_items(server):
    client = boto_client(server.url)
    create_table(client, "plain")
    client.put_item(TableName="plain", Item={"pk": {"S": "a"}})
    assert client.scan(TableName="plain")["Items"] == [{"pk": {"S": "a"}}]
    with pytest.raises(ClientError) as refused:
        client.transact_get_items(TransactItems=[{"Get": {"TableName": "plain", "Key": {"pk": {"S": "a"}}}}])
    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


def test_commands_and_copies(alternator, tmp_path):
    """Commands on items, and copies there and back."""
    here, there, back = tmp_path / "here", alternator.url, tmp_path / "back"
    output("table", "create", "Music", "Artist:S", "Song:S", "--index", "by-year:Year:N,Song:S", "--ttl", "gone",
           on=here)
    for song in ("Sinnerman", "Four Women"):
        output("put", "Music", "Artist=Nina Simone", f"Song={song}", "Year:=1965", on=here)
    output("copy", str(here), there, env=KEYS)
    assert len(items("query", "Music", "1965", "--index", "by-year", on=there, env=KEYS)) == 2
    output("update", "Music", "Nina Simone", "Sinnerman", "SET plays = if_not_exists(plays, 0) + 1", on=there, env=KEYS)
    output("delete", "Music", "Nina Simone", "Four Women", on=there, env=KEYS)
    output("copy", there, str(back), "--no-follow", env=KEYS)
    assert items("scan", "Music", on=back) == [{"Artist": "Nina Simone", "Song": "Sinnerman", "Year": 1965, "plays": 1}]
    assert output("dump", "Music", on=there, env=KEYS).count('"Item"') == 1


# ---- a cluster ----

NODES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


@pytest.fixture
def cluster(imitation):
    """Three nodes on one port, before the same data."""
    for attempt in range(20):
        port, nodes = free_port(), []
        try:
            for host in NODES:
                nodes.append(Node(imitation.url, port, host, NODES))
            break
        except OSError:
            for node in nodes:
                node.close()
    yield nodes
    for node in nodes:
        node.close()
    client = boto_client(imitation.url)
    for table in client.list_tables()["TableNames"]:
        client.delete_table(TableName=table)


def keys_of(node):
    return {call.request["Key"]["name"]["S"] for call in node.calls if call.operation == "UpdateItem"}


def test_calls_of_one_key_go_to_one_node(cluster):
    names = [f"c{number}" for number in range(30)]
    with Quipu("--on", cluster[0].url, env=KEYS) as server:
        def count_all(expected):
            for name in names:
                assert send(server.url, "POST", f"/v1/counters/{name}", {}) == (200, {"value": expected})

        send(server.url, "POST", "/v1/counters/first", {})
        for value in (1, 2):
            count_all(value)
        parts = [keys_of(node) - {"first"} for node in cluster]
        assert sorted(name for part in parts for name in part) == sorted(names), "each at one node"
        assert all(parts), "and all nodes have some"
        cluster[2].close()
        count_all(3)
        now = [keys_of(node) - {"first"} for node in cluster[:2]]
        assert now[0] | now[1] == set(names)
        assert (now[0] - parts[0]) | (now[1] - parts[1]) == parts[2], "only those of the dead one have moved"


def test_tables_without_isolation_are_refused(server, alternator):
    """One that somebody else has made, or copied here."""
    assert send(server.url, "POST", "/v1/counters/c", {})[0] == 200
    client = boto_client(alternator.url)
    arn = client.describe_table(TableName="quipu-counters")["Table"]["TableArn"]
    client.untag_resource(ResourceArn=arn, TagKeys=["system:write_isolation"])
    refused = quipu("counter", "add", "c", on=alternator.url, env=KEYS)
    sentence = "The table quipu-counters on this ScyllaDB Alternator has not the tag system:write_isolation"
    assert refused.returncode == 1 and sentence in refused.stderr
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "system:write_isolation", "Value": "always"}])
    assert quipu("counter", "add", "c", on=alternator.url, env=KEYS).stdout == "2\n"


# ---- what else works ----

@pytest.mark.parametrize("path,body", [("/v1/counters/c", {}), ("/v1/boards/b", {"text": "hello"})])
def test_keys_of_counters_and_boards(server, alternator, path, body):
    first = send(server.url, "POST", path, body, {"Idempotency-Key": "k"})
    assert first[0] in (200, 201) and send(server.url, "POST", path, body, {"Idempotency-Key": "k"}) == first
    assert send(server.url, "POST", path, body)[1] != first[1]


def test_no_sweep_looks_there(server, alternator):
    """Nothing is due in patterns that are not there; those of jobs, groups and periods may be."""
    def sweeps():
        with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
            return int(re.search(r"^quipu_flow_calls_total (\d+)$", reply.read().decode(), re.M).group(1))

    eventually(lambda: sweeps() >= 4, "every sweep has begun")
    assert not asked(alternator)


def test_on_the_command_line(alternator):
    """Commands run the patterns themselves, by the library."""
    counted = quipu("counter", "add", "orders", on=alternator.url, env=KEYS)
    assert (counted.returncode, counted.stdout.strip()) == (0, "1")


def test_by_way_of_a_server(server, alternator):
    """A Quipu before an Alternator has no transactions either, and commands that run the patterns need none."""
    assert quipu("counter", "add", "orders", on=server.url, env=KEYS).stdout.strip() == "1"


# ---- functions, triggers, schedules ----

def test_the_server_says_it_at_its_start(server):
    assert server.stderr().count(SENTENCE) == 1


@pytest.mark.parametrize("flag,value", [("--functions", "here"), ("--node-modules", "here"), ("--processes", "5")])
def test_flags_of_functions_are_taken(alternator, flag, value, tmp_path):
    with Quipu("--on", alternator.url, flag, str(tmp_path) if value == "here" else value, env=KEYS) as server:
        assert lambda_client(server.url).list_functions()["Functions"] == []


def test_a_cluster_without_streams(alternator):
    """Where streams are not offered, tables of patterns are made without."""
    class Streamless(Node):
        def answer(self, operation, text, headers):
            if operation == "CreateTable" and b"StreamSpecification" in text:
                return self.fault("ValidationException", "Streams are not supported on this cluster")
            return super().answer(operation, text, headers)

    with Streamless(alternator.url) as other:
        made = quipu("job", "put", "j", "--total", "1", on=other.url, env=KEYS)
        assert made.returncode == 0, made.stderr
    assert "LatestStreamArn" not in boto_client(alternator.url).describe_table(TableName="quipu-jobs")["Table"]


# ---- who is one, and when ----

class Answering(Proxy):
    """Answers GET /localnodes in its own way."""

    def __init__(self, upstream, status, body):
        self.reply = status, "application/json", body
        super().__init__(upstream)

    def answer_get(self, path):
        return self.reply


def is_usual(url):
    """A server on it has all that a DynamoDB offers."""
    with Quipu("--on", url, env=KEYS) as server:
        assert send(server.url, "PUT", "/v1/jobs/j", {"total": 2})[0] in (200, 201)
        assert lambda_client(server.url).list_functions()["Functions"] == []
        assert "Alternator" not in server.stderr()


OTHERS = [(200, b"healthy: dynamodb.us-east-1.amazonaws.com "), (200, b'{"nodes":["127.0.0.1"]}'), (200, b"[]"),
          (200, b"[1]"), (200, b'["127.0.0.1", null]'), (200, b'["127.0.0.1"'), (200, b'["127.0.0.1"] []'), (200, b""),
          (404, b'["127.0.0.1"]'), (400, b'{"__type":"MissingAuthenticationToken"}'), (501, b""), (503, b"busy"),
          (200, b'["' + b"x" * 300000 + b'"]')]


@pytest.mark.parametrize("status,body", OTHERS, ids=[f"{status} {body[:30]}" for status, body in OTHERS])
def test_others_are_not_taken_for_it(database, status, body):
    with Answering(database.url, status, body) as other:
        is_usual(other.url)
        assert other.gets and set(other.gets) == {"/localnodes"}


def test_quipu_is_not_taken_for_it(database):
    is_usual(database.url)


def test_dynamodb_local_is_not_taken_for_it():
    with DynamoLocal() as other:
        is_usual(other.url)


def test_one_that_does_not_answer_the_question(database):
    """It is waited for at the start, and not for long."""
    class Silent(Proxy):
        def answer_get(self, path):
            if len(self.gets) == 1:
                over.wait()
            return super().answer_get(path)

    over = threading.Event()
    with Silent(database.url) as other:
        try:
            is_usual(other.url)
        finally:
            over.set()


def test_it_is_asked_once(server, alternator):
    for _ in range(3):
        assert send(server.url, "POST", "/v1/counters/c", {})[0] == 200
    assert alternator.gets == ["/localnodes"]


def test_one_that_starts_late(imitation):
    """The server is there first; the database is asked before anything is written to it."""
    port = free_port()
    with Quipu("--on", f"http://127.0.0.1:{port}", "--no-functions", env=KEYS) as server:
        assert send(server.url, "POST", "/v1/counters/late", {})[0] == 503
        assert SENTENCE not in server.stderr()
        with Node(imitation.url, port):
            assert send(server.url, "POST", "/v1/counters/late", {})[0] == 200
            eventually(lambda: server.stderr().count(SENTENCE) == 1, "the server says it")


# ---- what is written about it ----

def test_the_documentation_quotes_the_sentence():
    with open(os.path.join(ROOT, "doc", "patterns.md")) as file:
        assert SENTENCE in " ".join(file.read().replace("\n>", "\n").split())


def test_the_page_of_engines_claims_what_is_tested():
    """A pattern's row says "refused" where none of its unit tests works there, and only there."""
    with open(os.path.join(ROOT, "doc", "engines.md")) as file:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file if line.startswith("| ")]
    patterns = {"counters": "counter", "leases": "lease_", "documents": "document_", "boards": "board_",
                "work": "work_", "logs": "log_", "jobs": "job_", "groups": "group_",
                "periods": "period_", "histories": "history_"}
    told = {row[0].split(" (")[0]: row[4] for row in rows if len(row) == 6}
    assert set(patterns) <= set(told)
    refused = {name for name, part in patterns.items() if part in UNIT_PARTS_REFUSED["alternator"]}
    assert {name for name in patterns if told[name] == "refused"} == refused
