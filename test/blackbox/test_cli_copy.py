"""quipu copy: between folders, servers and DynamoDB Local, while others write."""
import json
import random
import re
import signal
import threading
import time
import urllib.request

import pytest
from botocore.exceptions import ClientError
from cli import output, quipu, start
from conftest import boto_client, create_table
from support.process import DynamoLocal, Quipu
from test_cli_data import STREAM, everything, make_example
from values import N, S


@pytest.fixture(scope="module")
def local():
    with DynamoLocal() as running:
        yield running


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks") as running:
        yield running


def repeated(write, **request):
    """DynamoDB Local gives a write up, undone, when it has waited too long for a lock, as on a busy machine."""
    while True:
        try:
            return write(**request)
        except ClientError as error:
            if "waiting for a lock" not in str(error):
                raise


class Writers:
    """Threads that put, update and delete items until they are stopped, and know what the table must then hold."""

    def __init__(self, url, table, threads=4, keys=150, expected=None):
        self.url, self.table, self.keys = url, table, keys
        self.expected, self.writes, self.failure = dict(expected or {}), 0, None
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._write, args=(n,), daemon=True) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def _write(self, number):
        """Each thread has keys of its own, so it knows their state."""
        client, dice = boto_client(self.url), random.Random(number)
        try:
            while not self.over.is_set():
                key = {"pk": S(f"w{number}-{dice.randrange(self.keys)}"), "sk": N(dice.randrange(3))}
                name = (key["pk"]["S"], key["sk"]["N"])
                if dice.random() < 0.25:
                    repeated(client.delete_item, TableName=self.table, Key=key)
                    self.expected.pop(name, None)
                elif dice.random() < 0.5 and name in self.expected:
                    item = repeated(client.update_item, TableName=self.table, Key=key, UpdateExpression="ADD n :one",
                                    ExpressionAttributeValues={":one": N(1)}, ReturnValues="ALL_NEW")
                    self.expected[name] = item["Attributes"]
                else:
                    item = {**key, "n": N(self.writes), "text": S("x" * dice.randrange(200))}
                    repeated(client.put_item, TableName=self.table, Item=item)
                    self.expected[name] = item
                self.writes += 1
        except Exception as failure:  # told by stop(), where it fails the test
            self.failure = failure

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(120)
        assert self.failure is None
        return self.expected


def content(url, table):
    """All items of a table by their keys, but for those that were there before the writers."""
    pages = boto_client(url).get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    found = [item for page in pages for item in page["Items"]]
    return {(item["pk"]["S"], item["sk"]["N"]): item for item in found if item["pk"]["S"].startswith("w")}


def copy(*arguments, **options):
    result = quipu("copy", *map(str, arguments), **options)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    return result.stderr


def wait_for(condition, what, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"still not: {what}"
        time.sleep(0.05)


def count(place, table):
    result = quipu("scan", table, "--count", on=place)
    return int(result.stdout) if result.returncode == 0 else -1


# ---- quiet sources ----

def test_folder_to_folder(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    with Quipu("--data", str(source)) as running:
        make_example(boto_client(running.url), "Example")
        create_table(boto_client(running.url), "Empty", "B")
        assert running.stop() == 0
    errors = copy(source, target)
    assert re.search(r"^Example: 300 items copied in [0-9.]+ s$", errors, re.M)
    assert everything(target) == everything(source)
    assert len(everything(target)[0]) == 2
    copy(source, target)  # again, over what is there
    assert everything(target) == everything(source)
    assert output("query", "Example", "1901", "--index", "by-year", "--count", on=target) == "100\n"


def test_only_some_tables(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("One", "Two", "Three"):
        output("table", "create", name, "a:S", on=source)
    copy(source, target, "One", "Three")
    assert output("table", "ls", on=target) == "One\nThree\n"
    result = quipu("copy", str(source), str(target), "Four")
    assert result.returncode == 1 and "there is no table 'Four'" in result.stderr
    assert "it may be run again" in result.stderr


def test_what_only_the_target_has(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    output("table", "create", "Items", "pk:N", on=source)
    output("put", "Items", on=source, stdin="".join(f'{{"pk":{n}}}\n' for n in range(350)))
    copy(source, target)
    output("put", "Items", on=target, stdin="".join(f'{{"pk":{n}}}\n' for n in range(1000, 1250)))
    copy(source, target)
    assert count(target, "Items") == 600
    assert "Items: 250 items deleted that the source does not have" in copy(source, target, "--delete")
    assert everything(target) == everything(source)


@pytest.mark.parametrize("arguments, status, sentence", [
    (["same", "same"], 2, "source and target are the same"),
    (["one"], 2, "an argument is missing"),
    (["a", "b", "--until-idle", "--no-follow"], 2, "--until-idle and --no-follow exclude each other"),
    (["nothing", "b"], 1, "nothing"),
])
def test_wrong_usage(tmp_path, arguments, status, sentence):
    words = [word if word.startswith("--") else str(tmp_path / word) for word in arguments]
    result = quipu("copy", *words)
    assert (result.returncode, result.stdout) == (status, "") and sentence in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_keys_are_refused(tmp_path):
    output("table", "create", "Items", "pk:N", on=tmp_path / "source")
    output("table", "create", "Items", "pk:S", on=tmp_path / "target")
    result = quipu("copy", str(tmp_path / "source"), str(tmp_path / "target"))
    assert result.returncode == 1 and "its keys are others" in result.stderr


def test_a_source_that_nobody_writes_to_is_left_as_it_is(server, unused_name, tmp_path):
    client = boto_client(server.url)
    create_table(client, unused_name, "S", "N")
    client.put_item(TableName=unused_name, Item={"pk": S("a"), "sk": N(1)})
    copy(server.url, tmp_path / "target", unused_name, "--no-follow")
    assert count(tmp_path / "target", unused_name) == 1
    assert "LatestStreamArn" not in client.describe_table(TableName=unused_name)["Table"]


# ---- under load ----

def follow_until_switched(source, target, table, writers, more_seconds=3, flags=()):
    """Copies a table, or all, while the writers write, stops them, switches over. Answers what must be there, and what
    the copy said."""
    process = start("copy", str(source), str(target), *([table] if table else []), *flags)
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
    reader.start()
    try:
        wait_for(lambda: any("Following" in line for line in said) or process.poll() is not None, "following", 240)
        time.sleep(more_seconds)
        before = writers.writes
        expected = writers.stop()
        assert before > 0
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 0, said
    finally:
        process.kill()
        reader.join(5)
    return expected, "".join(said)


def test_from_a_server_with_a_stream(server, unused_name, tmp_path):
    client = boto_client(server.url)
    make_example(client, unused_name, 2000)
    writers = Writers(server.url, unused_name)
    expected, said = follow_until_switched(server.url, tmp_path / "target", unused_name, writers)
    assert "no stream" not in said and "The target is up to date." in said
    assert content(server.url, unused_name) == expected
    assert everything(tmp_path / "target", unused_name) == everything(server.url, unused_name)


@pytest.mark.parametrize("view", [None, "KEYS_ONLY", "OLD_IMAGE"])
def test_from_a_server_whose_stream_tells_less(server, unused_name, tmp_path, view):
    client = boto_client(server.url)
    more = {"StreamSpecification": {**STREAM, "StreamViewType": view}} if view else {}
    create_table(client, unused_name, "S", "N", **more)
    writers = Writers(server.url, unused_name)
    expected, said = follow_until_switched(server.url, tmp_path / "target", unused_name, writers)
    assert ("the source has no stream; one is switched on for the time of the copy" in said) == (view is None)
    assert content(server.url, unused_name) == expected
    assert everything(tmp_path / "target", unused_name)[1] == everything(server.url, unused_name)[1]
    description = client.describe_table(TableName=unused_name)["Table"]
    assert description.get("StreamSpecification", {}).get("StreamEnabled", False) == (view is not None)


def test_while_shards_split(server, unused_name, tmp_path):
    make_example(boto_client(server.url), unused_name, 500)
    writers = Writers(server.url, unused_name)
    stop = threading.Event()

    def split():
        while not stop.wait(0.5):
            body = json.dumps({"table": unused_name}).encode()
            urllib.request.urlopen(server.url + "/_quipu/shards/split", body).close()

    splitter = threading.Thread(target=split, daemon=True)
    splitter.start()
    time.sleep(1)
    stop_split = threading.Timer(2.5, stop.set)
    stop_split.start()
    expected, _ = follow_until_switched(server.url, tmp_path / "target", unused_name, writers, 4)
    assert content(server.url, unused_name) == expected
    assert everything(tmp_path / "target", unused_name) == everything(server.url, unused_name)


def test_all_tables_of_a_server(tmp_path):
    """Each is followed by itself, those that were copied first while the others still are."""
    with Quipu("--memory") as running:
        client = boto_client(running.url)
        names = [f"table-{n}" for n in range(4)]
        for name in names:
            create_table(client, name, "S", "N", StreamSpecification=STREAM)
        writers = [Writers(running.url, name, threads=1) for name in names]
        wait_for(lambda: all(one.writes > 20 for one in writers), "written")

        class All:
            writes = 1

            @staticmethod
            def stop():
                return {name: one.stop() for name, one in zip(names, writers)}

        expected, said = follow_until_switched(running.url, tmp_path / "target", None, All)
        assert len(re.findall(r"^table-[0-9]: [0-9,]+ items? copied", said, re.M)) == 4
        for name in names:
            assert content(running.url, name) == expected[name]
        assert everything(tmp_path / "target") == everything(running.url)


def test_throttling_and_failures_are_waited_for(server, unused_name, tmp_path):
    client = boto_client(server.url)
    make_example(client, unused_name, 300)
    for operation in ("Scan", "GetRecords", "DescribeTable"):
        rule = {"operation": operation, "table": unused_name, "error": "InternalServerError", "count": 3}
        if operation == "GetRecords":
            del rule["table"]
        urllib.request.urlopen(server.url + "/_quipu/rules", json.dumps(rule).encode()).close()
    writers = Writers(server.url, unused_name)
    expected, _ = follow_until_switched(server.url, tmp_path / "target", unused_name, writers)
    assert content(server.url, unused_name) == expected
    assert everything(tmp_path / "target", unused_name) == everything(server.url, unused_name)


def test_it_ends_by_itself_when_nothing_changes(server, unused_name, tmp_path):
    make_example(boto_client(server.url), unused_name, 100)
    writers = Writers(server.url, unused_name, threads=1)
    threading.Timer(2, writers.stop).start()
    said = copy(server.url, tmp_path / "target", unused_name, "--until-idle")
    assert "The target is up to date." in said
    assert content(server.url, unused_name) == writers.expected
    assert everything(tmp_path / "target", unused_name) == everything(server.url, unused_name)


def test_ctrl_c_before_the_items_are_copied(tmp_path, server, unused_name):
    """The copy says that it is not complete, leaves the source as it was, and may be run again."""
    client = boto_client(server.url)
    create_table(client, unused_name, "S", "N")
    lines = "".join(f'{{"pk":"p{n}","sk":{n},"text":"{"x" * 2000}"}}\n' for n in range(20000))
    assert quipu("load", "--plain", "--table", unused_name, on=server.url, stdin=lines).returncode == 0
    process = start("copy", server.url, str(tmp_path / "target"), unused_name)
    wait_for(lambda: (tmp_path / "target").exists(), "begun")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    if process.returncode == 1:  # else it was faster
        assert "the copy is not complete; it may be run again" in errors
    assert "StreamSpecification" not in client.describe_table(TableName=unused_name)["Table"]
    copy(server.url, tmp_path / "target", unused_name, "--until-idle")
    assert count(tmp_path / "target", unused_name) == 20000


def test_changes_are_applied_behind_the_items(server, local, unused_name):
    """The target takes the items more slowly than they are read, so that many change between being read and written."""
    create_table(boto_client(server.url), unused_name, "S", "N", StreamSpecification=STREAM)
    before = {(f"w{thread}-{key}", str(sk)): {"pk": S(f"w{thread}-{key}"), "sk": N(sk), "text": S("x" * 200)}
              for thread in range(4) for key in range(800) for sk in range(3)}
    lines = "".join(json.dumps({"Item": item}) + "\n" for item in before.values())
    assert quipu("load", "--table", unused_name, on=server.url, stdin=lines).returncode == 0
    writers = Writers(server.url, unused_name, keys=800, expected=before)
    expected, _ = follow_until_switched(server.url, local.url, unused_name, writers, 1)
    assert content(server.url, unused_name) == expected
    assert content(local.url, unused_name) == expected


def test_to_dynamodb_local_and_back_under_load(local, unused_name, tmp_path):
    """An embedded folder to DynamoDB Local; from there, while it is written to, into another folder; and from a server
    on that folder, under load again, back to DynamoDB Local: nothing is lost."""
    first, second = tmp_path / "first", tmp_path / "second"
    with Quipu("--data", str(first)) as running:
        make_example(boto_client(running.url), unused_name, 1000)
        assert running.stop() == 0
    copy(first, local.url, unused_name)
    assert everything(local.url, unused_name)[1] == everything(first)[1]

    writers = Writers(local.url, unused_name)
    expected, _ = follow_until_switched(local.url, second, unused_name, writers)
    assert content(local.url, unused_name) == expected
    assert everything(second)[1] == everything(local.url, unused_name)[1]
    (before,), (after,) = everything(first)[0], everything(second)[0]
    del before["Table"]["Tags"]  # DynamoDB Local has none
    assert after == before

    with Quipu("--data", str(second)) as running:
        writers = Writers(running.url, unused_name)
        # What the writers before these left, and these deleted, also before the copy has begun, must be gone in both.
        expected, _ = follow_until_switched(running.url, local.url, unused_name, writers, flags=["--delete"])
        assert everything(local.url, unused_name)[1] == everything(running.url, unused_name)[1]
        found = content(local.url, unused_name)
        assert {key: found.get(key) for key in expected} == expected
        assert running.stop() == 0
