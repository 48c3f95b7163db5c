"""Histories on all engines: every change once and in order, whoever writes and whatever dies; what held at a time,
and going back to it."""
import base64
import datetime
import random
import threading
import time
import urllib.parse

import pytest
from conftest import boto_client, create_table
from lambdas import eventually
from support.engines import ENGINES, database
from support.process import Quipu, free_port
from test_patterns import Face, at_once, face, refused  # noqa: F401

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


def ok(face, method, path, body=None):
    status, reply, _ = face.ask(method, path, body)
    assert status == 200, (method, path, status, reply)
    return reply


def versions(face, path, more=""):
    """All of them, over pages."""
    found, after = [], ""
    while after is not None:
        page = ok(face, "GET", f"{path}?limit=7{more}" + (after and "&after=" + after))
        found += page["versions"]
        after = page.get("next")
    return found


def wait_for_versions(face, path, count, more=""):
    eventually(lambda: len(versions(face, path, more)) >= count, f"{count} versions of {path}")
    found = versions(face, path, more)
    assert len(found) == count
    return found


class Writer:
    """Changes one item at random and notes what it was behind each change. Each of its changes may be made twice: the
    second changes nothing, and is no change for a stream."""

    def __init__(self, table, key, seed):
        self.table, self.key, self.random = table, key, random.Random(seed)
        self.item, self.states, self.done = None, [], 0

    def next_change(self, n):
        """A call of the SDK and its arguments."""
        kind = self.random.choice(["put", "put", "update", "update", "delete"])
        key, before = {"pk": {"S": self.key}}, self.item
        if kind == "put":
            self.item = {"pk": self.key, "n": n, "by": "put"}
            call = "put_item", {"Item": dict(key, n={"N": str(n)}, by={"S": "put"})}
        elif kind == "update":
            self.item = dict(self.item or {"pk": self.key}, m=n)
            call = "update_item", {"Key": key, "UpdateExpression": "SET m = :m",
                                   "ExpressionAttributeValues": {":m": {"N": str(n)}}}
        else:
            self.item = None
            call = "delete_item", {"Key": key}
        if self.item != before:
            self.states.append(self.item)
        return call

    def run(self, client, numbers, is_patient=False):
        for n in numbers:
            name, arguments = self.next_change(n)
            while True:
                try:
                    getattr(client, name)(TableName=self.table, **arguments)
                    break
                except Exception:  # noqa: B902: whatever a server does that is killed
                    if not is_patient:
                        raise
                    time.sleep(0.05)
            self.done += 1


@pytest.fixture
def table(face, unused_name):
    create_table(boto_client(face.database), unused_name)
    return unused_name


def next_second():
    """A moment behind everything that was, which lies before everything that will be, though streams tell seconds."""
    time.sleep(1.1 - time.time() % 1)
    moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    time.sleep(1.1 - time.time() % 1)
    return moment


def test_every_change_once_and_what_held_when(face, table):
    ok(face, "PUT", f"/v1/history/{table}")
    writers = [Writer(table, f"key {i}", i) for i in range(4)]
    moments = []
    for part in range(2):
        at_once(4, lambda i: writers[i].run(boto_client(face.database), range(part * 12, part * 12 + 12)))
        moments.append((next_second(), [writer.item for writer in writers]))
    for i, writer in enumerate(writers):
        path = f"/v1/history/{table}/key%20{i}"
        found = wait_for_versions(face, path, len(writer.states))
        assert [version["item"] for version in found] == writer.states
        assert [version["version"] for version in found] == sorted({version["version"] for version in found})
        before = None
        for version in versions(face, path, "&diff"):
            after = version["item"]
            changed = {c["name"]: (c.get("before"), c.get("after")) for c in version["changes"]}
            names = set(before or {}) | set(after or {})
            assert changed == {name: ((before or {}).get(name), (after or {}).get(name)) for name in names
                               if (before or {}).get(name) != (after or {}).get(name)}
            assert version["event"] == ("INSERT" if before is None else "MODIFY" if after else "REMOVE")
            before = after
        tells_seconds = any(not version["time"].endswith(":00.000Z") for version in found)
        for moment, items in moments if tells_seconds else []:  # DynamoDB Local's streams tell minutes
            assert ok(face, "GET", f"{path}?at={moment}")["item"] == items[i]
        for moment in {version["time"] for version in found}:
            held = [version for version in found if version["time"] <= moment][-1]
            answer = ok(face, "GET", f"{path}?at={moment}")
            # behind --on, either server may have recorded it: the one that has the data knows its time
            assert answer.pop("precision") in (["1ms"] if face.url == face.database else ["1s", "1ms"])
            assert answer == held
        ranges = [versions(face, path, "&to=" + moments[0][0]), versions(face, path, "&from=" + moments[0][0])]
        assert ranges[0] + ranges[1] == found
        one = found[len(found) // 2]
        assert ok(face, "GET", f"{path}?version={one['version']}") == one


def test_going_back_is_a_version_too(face, table):
    client, path = boto_client(face.database), f"/v1/history/{table}/a"
    ok(face, "PUT", f"/v1/history/{table}")
    for n in range(3):
        client.put_item(TableName=table, Item={"pk": {"S": "a"}, "n": {"N": str(n)}, "s": {"NS": ["1", "2"]}})
    found = wait_for_versions(face, path, 3)
    reply = ok(face, "POST", path + "/restore", {"version": found[0]["version"]})
    assert (reply["item"]["n"], reply["replaced"]["n"], sorted(reply["item"]["s"])) == (0, 2, [1, 2])
    item = client.get_item(TableName=table, Key={"pk": {"S": "a"}}, ConsistentRead=True)["Item"]
    assert item["n"] == {"N": "0"} and sorted(item["s"]["NS"]) == ["1", "2"]
    found = wait_for_versions(face, path, 4)
    assert [version["item"]["n"] for version in found] == [0, 1, 2, 0]
    expecting = {"version": found[1]["version"], "expect": found[2]["version"]}
    status, refusal, _ = face.ask("POST", path + "/restore", expecting)
    assert (status, refusal["error"], refusal["version"]) == (412, "changed-since", found[3]["version"])
    assert ok(face, "POST", path + "/restore", dict(expecting, expect=found[3]["version"]))["item"]["n"] == 1
    client.delete_item(TableName=table, Key={"pk": {"S": "a"}})
    found = wait_for_versions(face, path, 6)
    assert (found[5]["event"], found[5]["item"]) == ("REMOVE", None)
    assert ok(face, "POST", path + "/restore", {"version": found[4]["version"]})["replaced"] is None
    assert ok(face, "POST", path + "/restore", {"version": found[5]["version"]})["item"] is None
    assert "Item" not in client.get_item(TableName=table, Key={"pk": {"S": "a"}}, ConsistentRead=True)


@pytest.mark.parametrize("types, keys, path", [
    ("NS", ({"N": "12.50"}, {"S": "a/b&c=d é"}), "/1.25e1?range=" + urllib.parse.quote("a/b&c=d é", safe="")),
    ("BN", ({"B": b"\xff\x00/"}, {"N": "-7"}), "/" + base64.b64encode(b"\xff\x00/").decode().replace("/", "%2F") +
     "?range=-7.0"),
])
def test_keys_of_all_types(face, unused_name, types, keys, path):
    client = boto_client(face.database)
    create_table(client, unused_name, *types)
    ok(face, "PUT", f"/v1/history/{unused_name}")
    for n in range(2):
        client.put_item(TableName=unused_name, Item={"pk": keys[0], "sk": keys[1], "n": {"N": str(n)}})
    history = f"/v1/history/{unused_name}{path}"
    eventually(lambda: len(ok(face, "GET", history)["versions"]) == 2, "two versions")
    body = {"version": ok(face, "GET", history)["versions"][0]["version"],
            "range": urllib.parse.unquote(path.split("range=")[1])}
    ok(face, "POST", history.split("?")[0] + "/restore", body)
    item = client.get_item(TableName=unused_name, Key={"pk": keys[0], "sk": keys[1]}, ConsistentRead=True)["Item"]
    assert item["n"] == {"N": "0"}


def test_large_images_one_after_the_other(face, table):
    """Ninety of them are more than a transaction holds."""
    client, path = boto_client(face.database), f"/v1/history/{table}/a"
    ok(face, "PUT", f"/v1/history/{table}")
    for n in range(24):
        client.put_item(TableName=table, Item={"pk": {"S": "a"}, "n": {"N": str(n)}, "text": {"S": "x" * 300_000}})
    found = wait_for_versions(face, path, 24)
    assert [version["item"]["n"] for version in found] == list(range(24))


def test_settings_are_told_and_a_history_begins_again(face, table):
    told = ok(face, "PUT", f"/v1/history/{table}", {"keep": "30d", "versions": 5})
    assert (told["table"], told["hash"], told["keep"], told["versions"]) == (table, "pk", "30d", 5)
    assert told == ok(face, "GET", f"/v1/history/{table}")
    assert told in ok(face, "GET", "/v1/history?limit=1000")["histories"]
    assert "keep" not in ok(face, "PUT", f"/v1/history/{table}", {"versions": 5})
    client = boto_client(face.database)
    client.put_item(TableName=table, Item={"pk": {"S": "a"}})
    wait_for_versions(face, f"/v1/history/{table}/a", 1)
    assert ok(face, "DELETE", f"/v1/history/{table}") == {"deleted": True}
    assert refused(face, "GET", f"/v1/history/{table}/a") == (404, "no-such-history")
    ok(face, "PUT", f"/v1/history/{table}")
    client.put_item(TableName=table, Item={"pk": {"S": "b"}})
    wait_for_versions(face, f"/v1/history/{table}/b", 1)


def test_which_transaction_it_was():
    """The engine in the server tells what no stream of the service does."""
    with Quipu("--memory") as server:
        face, client = Face(server.url, server.url), boto_client(server.url)
        create_table(client, "changes")
        ok(face, "PUT", "/v1/history/changes")
        client.transact_write_items(ClientRequestToken="order-7", TransactItems=[
            {"Put": {"TableName": "changes", "Item": {"pk": {"S": key}}}} for key in "ab"])
        for key in "ab":
            assert wait_for_versions(face, f"/v1/history/changes/{key}", 1)[0]["transaction"] == "order-7"


@pytest.mark.parametrize("method, path, body, status, error", [
    ("PUT", "no-such-table", {}, 404, "no-such-table"),
    ("PUT", "quipu-history", {}, 409, "endless"),
    ("PUT", "{table}", {"keep": "a while"}, 400, "bad-request"),
    ("PUT", "{table}", {"versions": 0}, 400, "bad-request"),
    ("GET", "no-such-table/a", None, 404, "no-such-history"),
    ("DELETE", "no-such-table", None, 404, "no-such-history"),
    ("GET", "{table}/a?at=noon", None, 400, "bad-request"),
    ("GET", "{table}/a?at=2026-11-15T00:00:00Z&from=2026-11-15T00:00:00Z", None, 400, "bad-request"),
    ("GET", "{table}/a?range=7", None, 400, "bad-request"),
    ("GET", "{table}/a?at=2026-11-15T00:00:00Z", None, 404, "no-version"),
    ("POST", "{table}/a/restore", {}, 400, "bad-request"),
    ("POST", "{table}/a/restore", {"version": "x"}, 404, "no-version"),
])
def test_clear_refusals(face, table, method, path, body, status, error):
    if "{table}/" in path:
        ok(face, "PUT", f"/v1/history/{table}")
    assert refused(face, method, "/v1/history/" + path.format(table=table), body) == (status, error)


@pytest.mark.parametrize("engine", ENGINES)
def test_kills_in_between(engine, tmp_path):
    """The server gets SIGKILL while four write; the history is what they did, each change once."""
    port = str(free_port())
    other = database(engine) if engine != "embedded" else None
    place = ["--data", str(tmp_path / "data")] if not other else ["--on", other.url, "--functions", str(tmp_path / "f")]
    server = None
    try:
        server = Quipu(*place, "--port", port, env=KEYS)
        face = Face(server.url, other.url if other else server.url)
        create_table(boto_client(face.database), "changes")
        ok(face, "PUT", "/v1/history/changes")
        writers = [Writer("changes", f"key-{i}", 100 + i) for i in range(4)]
        threads = [threading.Thread(target=writer.run, args=(boto_client(face.database), range(60), True))
                   for writer in writers]
        for thread in threads:
            thread.start()
        for part in range(1, 4):
            eventually(lambda: sum(writer.done for writer in writers) >= part * 60, "a quarter of all is written")
            server.kill()
            server.close()
            server = Quipu(*place, "--port", port, env=KEYS)
        for thread in threads:
            thread.join()
        for i, writer in enumerate(writers):
            found = wait_for_versions(face, f"/v1/history/changes/key-{i}", len(writer.states))
            assert [version["item"] for version in found] == writer.states
    finally:
        if server:
            server.close()
        if other:
            other.close()


def changes(face, table, query):
    """All of them, over pages."""
    found, after = [], ""
    while after is not None:
        page = ok(face, "GET", f"/v1/history/{table}?limit=2&{query}" + (after and "&after=" + after))
        found += page["changes"]
        after = page.get("next")
    return found


def test_a_whole_table_and_what_was_there_before(face, table):
    """Items that were there before their history have a baseline; the table of any time is told, and all changes."""
    client = boto_client(face.database)
    for key in "abc":
        client.put_item(TableName=table, Item={"pk": {"S": key}, "n": {"N": "1"}})
    ok(face, "PUT", f"/v1/history/{table}", {})
    eventually(lambda: ok(face, "GET", f"/v1/history/{table}")["baseline"] == {"state": "DONE", "items": 3},
               "a baseline")
    client.put_item(TableName=table, Item={"pk": {"S": "a"}, "n": {"N": "2"}})
    client.delete_item(TableName=table, Key={"pk": {"S": "b"}})
    client.put_item(TableName=table, Item={"pk": {"S": "d"}, "n": {"N": "1"}})
    for key, count in (("a", 2), ("b", 2), ("d", 1)):
        wait_for_versions(face, f"/v1/history/{table}/{key}", count)
    told = [(change["keys"]["pk"], change["event"]) for change in changes(face, table, "from=1970-01-01T00:00:00Z")]
    assert ("c", "BASELINE") in told and ("b", "REMOVE") in told and ("d", "INSERT") in told
    assert len(told) == len(set(told))
    now = {change["keys"]["pk"]: change["item"]["n"] for change in changes(face, table, "at=2999-01-01T00:00:00Z")}
    assert now == {"a": 2, "c": 1, "d": 1}
