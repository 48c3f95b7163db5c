"""The patterns on the command line: every operation has a command, on a folder and on a server's URL."""
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

import pytest
from cli import items, on_terminal, output, quipu, start
from support.engines import OTHERS, database
from support.process import BINARY, ROOT, Quipu

COMMON_FLAGS = {"--json", "--prefix", "--cost", "--on", "--region", "--profile"}
# What the command for one of them sends from lines: group add, work submit.
BY_LINES = {("post", "/v1/groups/{name}"), ("post", "/v1/work/{queue}")}
PATTERNS = ["counter", "job", "group", "period", "work", "doc", "lease", "once", "limit", "history", "log", "board",
            "drive"]


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory") as running:
        yield running


@pytest.fixture(scope="module", params=["server", "folder"])
def place(request, tmp_path_factory):
    if request.param == "folder":
        return tmp_path_factory.mktemp("patterns") / "data"
    return request.getfixturevalue("server").url


@pytest.fixture(scope="module", params=["server", "folder", *OTHERS])
def anywhere(request, tmp_path_factory):
    """A place of any kind: the commands run the same flows on all of them."""
    if request.param == "folder":
        yield tmp_path_factory.mktemp("patterns") / "data"
    elif request.param == "server":
        yield request.getfixturevalue("server").url
    else:
        with database(request.param) as other:
            yield other.url


@pytest.fixture(scope="module")
def operations(server):
    """{(pattern, command): (method, path, fields)} of the description that HTTP serves."""
    with urllib.request.urlopen(server.url + "/v1/openapi.json") as reply:
        paths = json.load(reply)["paths"]
    found = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            if (method, path) in BY_LINES:
                assert "x-command" not in operation
            elif path.startswith("/v1/") and path != "/v1/openapi.json":
                pattern, command = operation["x-command"].split()[:2]
                content = operation.get("requestBody", {}).get("content", {})
                body = content.get("application/json", {}).get("schema", {})
                fields = {field["name"] for field in operation["parameters"]}
                fields |= {name for name, schema in body.get("properties", {}).items() if not schema.get("readOnly")}
                found[pattern, command] = (method.upper(), path, fields)
    return found


class Shell:
    """Runs commands of one pattern and remembers which."""

    def __init__(self, pattern, place, name):
        self.pattern, self.place, self.name, self.used = pattern, place, name, set()

    def run(self, command, *arguments, status=0, **options):
        self.used.add((self.pattern, command))
        result = quipu(self.pattern, command, *arguments, on=self.place, **options)
        assert result.returncode == status, (command, arguments, result.returncode, result.stdout, result.stderr)
        return result

    def text(self, command, *arguments, **options):
        return self.run(command, *arguments, **options).stdout

    def lines(self, command, *arguments, **options):
        return [json.loads(line) for line in self.text(command, *arguments, **options).splitlines()]

    def one(self, command, *arguments, **options):
        (reply,) = self.lines(command, *arguments, **options)
        return reply


def counter(shell):
    name = shell.name
    assert shell.text("add", name) == "1\n"
    assert shell.text("add", name, "5") == shell.text("get", name) == "6\n"
    assert shell.text("add", name, "--by", "-2") == "4\n"
    assert shell.one("add", name, "--block", "10") == {"first": 5, "last": 14}
    assert shell.one("add", name, "--json") == {"value": 15}
    assert shell.text("add", name, "--idempotency-key", "k") == shell.text("add", name, "--idempotency-key", "k")
    assert shell.one("get", name, "--cost")["cost"]["readUnits"] == 1
    assert shell.text("set", name, "100") == "100\n"
    assert shell.lines("list", "--begins", name) == [{"name": name, "value": 100}]
    assert shell.one("rm", name) == {"deleted": True}
    assert "There is no counter" in shell.run("get", name, status=1).stderr


def job(shell):
    name = shell.name
    assert shell.one("put", name, "--total", "4", "--then", "consolidate", "--tolerate", "25%")["state"] == "OPEN"
    assert shell.one("done", name, "0")["counted"] == 1
    assert shell.one("done", name, "1", "0", "--progress")["done"] == 2
    assert shell.lines("missing", name) == [2, 3]
    assert shell.one("change", name, "--total", "5")["total"] == 5
    assert shell.one("get", name, "--wait", "1ms", status=3)["state"] == "OPEN"
    assert name in [found["id"] for found in shell.lines("ls")]
    assert shell.one("failed", name, "2", "no ink")["failed"] == 1
    assert shell.lines("failures", name) == [{"task": 2, "reason": "no ink"}]
    assert shell.one("done", name, "3", "--result", '{"page":3}')["last"] is False
    assert shell.lines("watch", name, "--for", "1ms", status=3)[-1]["state"] == "OPEN"
    assert shell.one("done", name, "4")["last"] is True
    assert shell.one("get", name, "--wait", "1s")["state"] == "COMPLETE"
    assert shell.lines("watch", name)[-1]["state"] == "COMPLETE"
    assert shell.lines("results", name) == [{"task": 3, "result": {"page": 3}}]
    assert name in [found["id"] for found in shell.lines("ls", "--state", "complete")]
    shell.run("redrive", name, status=1)
    lines = name + "-lines"
    assert shell.one("start", lines, "--each", "nobody", "--paused", "true")["paused"] is True
    assert shell.one("items", lines, '{"n":1}', "--end")["stored"] == 1
    assert shell.lines("tasks", lines) == [{"task": 0, "item": {"n": 1}}]
    shell.run("read", lines, status=1)
    shell.one("rm", lines)
    assert shell.one("rm", name) == {"deleted": True}


def group(shell):
    name = shell.name
    rules = shell.one("put", name, "--complete", '{"size":2}', "--late", "new")
    assert rules["late"] == "new" and shell.one("show", name)["complete"] == {"size": 2}
    assert shell.one("add", name, "k", '{"n":1}', "--id", "a")["count"] == 1
    assert shell.one("add", name, "k", "--id", "a")["accepted"] is False
    assert [found["key"] for found in shell.lines("show", name, "--state", "open")] == ["k"]
    assert shell.one("get", name, "k", "--wait", "1ms", status=3)["state"] == "OPEN"
    assert shell.one("add", name, "k", "--data", "text", "--kind", "login")["completed"] is True
    assert shell.one("get", name, "k", "--wait", "1s")["state"] == "COMPLETE"
    assert [found["key"] for found in shell.lines("show", name, "--state", "complete")] == ["k"]
    assert shell.one("list", "--begins", name)["complete"] == {"size": 2}
    assert shell.one("add", name, "k", "--id", "z")["generation"] == 2
    assert shell.one("complete", name, "k", "--generation", "2")["completed"] is True
    assert shell.one("complete", name, "k")["completed"] is False
    lines = '{"key":"m","id":"a"}\n\n{"key":"n","id":"a"}\n{"key":"m","id":"b"}\n{"key":"m","id":"c"}\n'
    assert [told["completed"] for told in shell.lines("add", name, stdin=lines)] == [False, False, True, False]
    assert shell.one("get", name, "m", "--generation", "1")["count"] == 2
    assert "a KEY is missing" in shell.run("add", name, "--id", "a", status=2).stderr
    assert "line 1 should be" in shell.run("add", name, stdin="[]\n", status=1).stderr
    assert shell.one("rm", name, "k") == {"deleted": 2}
    assert shell.one("forget", name) == {"deleted": True}


def period(shell):
    name = shell.name
    assert shell.one("put", name, "--every", "1h", "--grace", "5m")["every"] == "1h"
    assert shell.one("show", name)["name"] == name
    added = shell.one("add", name, '{"n":1}', "--id", "a")
    assert added["id"] == "a"
    assert [event["id"] for event in shell.one("get", name, "now")["events"]] == ["a"]
    lines = '{"id":"b","data":2}\n{"id":"a","data":{"n":1}}\n'
    assert [told["id"] for told in shell.lines("add", name, stdin=lines)] == ["b", "a"]
    assert "key-reused" in shell.run("add", name, stdin='{"id":"b","data":3}\n', status=1).stdout
    assert len(shell.one("get", name, "now")["events"]) == 2
    assert [bucket["bucket"] for bucket in shell.lines("buckets", name, "--state", "open")] == [added["bucket"]]
    assert name in [found["name"] for found in shell.lines("ls", "--limit", "1000")]
    shell.run("close", name)
    assert shell.one("rm", name) == {"deleted": True}
    assert shell.run("put", name, "--every", "soon", status=2).stderr.startswith("quipu: every must be a duration")


def work(shell):
    name = shell.name
    assert shell.one("put", name, "--lease", "1m", "--attempts", "1")["attempts"] == 1
    units = shell.lines("submit", name, stdin='{"id":"m","delay":"1h"}\n{"id":"n","data":[1],"delay":"1h"}\n')
    assert [unit["id"] for unit in units] == ["m", "n"] and shell.one("rm", name, "m") and shell.one("rm", name, "n")
    assert shell.text("claim", name, status=3) == ""
    assert shell.one("submit", name, "a", '{"n":1}')["state"] == "READY"
    shell.run("submit", name, "b", "--data", "-", stdin='[1, 2]')
    claimed = {unit["id"]: unit for unit in (shell.one("claim", name, "me") for _ in range(2))}
    assert claimed["a"]["data"] == {"n": 1} and claimed["b"]["data"] == [1, 2]
    assert shell.one("beat", name, "a", "1", "7", "--for", "2m")["progress"] == 7
    assert "fence" in shell.run("beat", name, "a", "9", status=4).stderr
    assert shell.one("get", name, "a", "--wait", "1ms", status=3)["state"] == "CLAIMED"
    assert shell.one("finish", name, "a", "1", '{"sum":3}')["result"] == {"sum": 3}
    assert shell.one("fail", name, "b", "1", "it broke")["state"] == "DEAD"
    assert [unit["id"] for unit in shell.lines("ls", name, "--state", "dead")] == ["b"]
    assert shell.one("list", "--begins", name)["attempts"] == 1
    assert shell.one("retry", name, "b")["state"] == "READY"
    assert shell.one("rm", name, "b") == {"deleted": True}


def doc(shell):
    name = shell.name
    assert shell.text("put", name, "a", '{"n":1}') == "1\n"
    assert shell.text("put", name, "a", "--if-match", "1", stdin='{"n":2}') == "2\n"
    assert "version 2" in shell.run("put", name, "a", "{}", "--if-match", "1", status=4).stderr
    assert shell.text("patch", name, "a", '{"m":[1]}') == "3\n"
    assert shell.one("get", name, "a") == {"n": 2, "m": [1]}
    assert shell.text("get", name, "a", "--if-none-match", "3", status=3) == ""
    assert shell.run("get", name, "b", "--wait", "1ms", status=3).stdout == ""
    for key in "bcd":
        shell.run("put", name, key, "0")
    assert [found["key"] for found in shell.lines("ls", name)] == ["a", "b", "c", "d"]
    assert [found["key"] for found in shell.lines("ls", name, "--limit", "3")] == ["a", "b", "c"]
    assert shell.one("ls", name, "--json", "--limit", "1")["next"] == "a"
    assert [found["key"] for found in shell.lines("ls", name, "--begins", "c")] == ["c"]
    assert shell.lines("list", "--begins", name) == [{"name": name}]
    assert shell.one("rm", name, "a", "--if-match", "3")["deleted"] is True


def lease(shell):
    name = shell.name
    granted = shell.one("take", name, "me", "--for", "1m", "--data", "busy")
    assert granted["fence"] == 1
    refused = shell.run("take", name, "you", "--wait", "1ms", status=3)
    assert (refused.stdout, refused.stderr) == ("", "quipu: The lease is held by me.\n")
    assert shell.one("renew", name, "me", "1", "--for", "2m")["until"] > granted["until"]
    assert shell.one("get", name)["data"] == "busy"
    assert shell.one("list", "--begins", name)["owner"] == "me"
    shell.run("renew", name, "you", "1", status=4)
    assert shell.one("release", name, "me", "1")["released"] is True
    assert shell.one("take", name, "you")["fence"] == 2


def once(shell):
    name = shell.name
    begun = shell.one("begin", name, "k", "--for", "1m", "--owner", "me")
    assert (begun["state"], begun["fence"]) == ("BEGUN", 1)
    refused = shell.run("begin", name, "k", "--wait", "1ms", status=3)
    assert (refused.stdout, refused.stderr) == ("", "quipu: Another caller is at it.\n")
    assert shell.one("renew", name, "k", "1", "--for", "2m")["until"] > begun["until"]
    assert shell.one("fail", name, "k", "1", "no ink")["error"] == "no ink"
    assert [(failed["key"], failed["error"]) for failed in shell.lines("list", name)] == [("k", "no ink")]
    assert shell.one("begin", name, "k")["fence"] == 2
    shell.run("finish", name, "k", "1", status=4)
    assert shell.one("finish", name, "k", "2", '{"pages":3}')["state"] == "DONE"
    assert shell.one("begin", name, "k")["result"] == {"pages": 3}
    assert shell.one("get", name, "k")["state"] == "DONE"
    assert shell.one("rm", name, "k") == {"deleted": True}
    assert "or it is forgotten" in shell.run("get", name, "k", status=1).stderr


def limit(shell):
    name = shell.name
    assert shell.one("take", name, "--rate", "2", "--per", "1h")["left"] == 1
    assert shell.one("take", name, "--rate", "2", "--per", "1h")["left"] == 0
    refused = shell.run("take", name, "--rate", "2", "--per", "1h", "--wait", "1ms", status=3)
    assert refused.stdout == "" and "The limit is reached" in refused.stderr
    assert shell.one("get", name)["burst"] == 2
    assert shell.one("list", "--begins", name)["burst"] == 2
    assert shell.one("rm", name) == {"deleted": True}
    assert shell.one("take", name, "--rate", "2", "--per", "1h", "--count", "2")["given"] == 2


def history(shell):
    name = shell.name
    output("table", "create", name, "id:S", "--stream", "new-and-old", on=shell.place)
    assert shell.one("put", name, "--versions", "5")["table"] == name
    assert shell.one("show", name)["hash"] == "id"
    assert name in [found["table"] for found in shell.lines("ls")]
    record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {
        "ApproximateCreationDateTime": 1763177526, "SequenceNumber": "000000000000000000042",
        "Keys": {"id": {"S": "a"}}, "NewImage": {"id": {"S": "a"}, "n": {"N": "1"}}}}
    assert shell.one("feed", name, stdin=json.dumps([record])) == {"kept": 1}
    (version,) = shell.lines("get", name, "a")
    assert version["item"] == {"id": "a", "n": 1}
    shell.run("restore", name, "b", "--at", "2026-01-01T00:00:00Z", status=1)
    assert shell.lines("show", name, "--from", "2026-01-01T00:00:00Z") == []  # that is before it began
    assert shell.lines("show", name, "--at", "2026-01-01T00:00:00Z") == []
    assert shell.one("rm", name) == {"deleted": True}


def log(shell):
    name = shell.name
    assert shell.one("put", name, "--partitions", "2")["partitions"] == 2
    written = shell.one("append", name, "k", '{"n":1}')
    assert written["sequence"] == 1
    shell.run("append", name, "--key", "k", "--data", "two", "--token", "t")
    partition = written["partition"]
    assert "was expected" in shell.run("append", name, "k", "3", "--expected", "1", status=4).stderr
    assert [event["sequence"] for event in shell.lines("key", name, "k", "--after", "1")] == [2]
    assert [event["data"] for event in shell.lines("events", name, partition)] == [{"n": 1}, "two"]
    read = shell.one("read", name, "c", "me", "--json")
    assert [event["sequence"] for event in read["events"]] == [1, 2]
    fence = str(read["fence"])
    assert shell.one("ack", name, "c", partition, fence, "1")["position"] == 1
    assert shell.one("park", name, "c", partition, fence, "2", "bad")["position"] == 2
    assert [event["reason"] for event in shell.lines("parked", name, "c")] == ["bad"]
    assert shell.one("lag", name, "c")["lag"] == 0
    shell.run("ack", name, "c", partition, "99", "1", status=4)
    assert shell.one("replay", name, "c", "--parked")["replayed"] == 1
    assert "c" in shell.one("show", name)["consumers"]
    assert [found["log"] for found in shell.lines("list", "--begins", name)] == [name]
    assert shell.one("push", name, "c", "no-such-function", "--batch", "7", "--paused")["batch"] == 7
    assert shell.one("pushed", name, "c")["function"] == "no-such-function"
    scale = {"split_above": "500/s", "merge_below": "50/s", "partitions": 64}
    assert shell.one("put", name, "--scale", json.dumps(scale))["scale"] == scale
    assert shell.one("show", name)["scale"] == scale
    assert "merge_below must be" in shell.run(
        "put", name, "--scale", json.dumps({**scale, "merge_below": "499/s"}), status=2).stderr
    children = shell.one("split", name, partition)["children"]
    assert shell.one("merge", name, *children)["partitions"] == children
    assert shell.one("leave", name, "c") == {"deleted": True}
    assert shell.one("rm", name) == {"deleted": True}


def board(shell):
    name = shell.name
    first = shell.text("post", name, "hello", "--author", "ann").strip()
    shell.run("post", name, "-", stdin="two\nlines\n")
    assert [message["text"] for message in shell.lines("ls", name)] == ["hello", "two\nlines"]
    assert shell.lines("ls", name, "--after", "9", "--wait", "1ms", status=3) == []
    assert [found["name"] for found in shell.lines("list", "--begins", name)] == [name]
    assert shell.one("rm", name, first) == {"deleted": 1}
    assert "must not be empty" in shell.run("rm", name, "", status=2).stderr
    assert shell.one("clear", name) == {"deleted": 1}


def drive(shell):
    name = shell.name
    output("work", "put", name, "--each", "no-such-function", "--concurrency", "2", "--paused", on=shell.place)
    (found,) = [one for one in shell.lines("ls") if one["name"] == name]
    assert found["concurrency"] == 2
    assert shell.one("rm", f"work:{name}", "--version", str(found["version"])) == {"deleted": True}
    assert [found for found in shell.lines("ls") if found["name"] == name] == []


SCENARIOS = {scenario.__name__: scenario for scenario in
             (counter, job, group, period, work, doc, lease, once, limit, history, log, board, drive)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_operation(anywhere, operations, unused_name, pattern):
    shell = Shell(pattern, anywhere, unused_name)
    SCENARIOS[pattern](shell)
    assert shell.used >= {found for found in operations if found[0] == pattern}


# ---- help ----

def names_all_fields(shown, fields):
    """Each field is a flag, or a word of the usage."""
    words = re.findall("[A-Z]+", shown.splitlines()[0].replace("TASK...", "TASK TASKS"))
    return all(f"  --{field.lower()}" in shown or field.upper() in words for field in fields)


@pytest.fixture(scope="module")
def manual():
    with open(os.path.join(ROOT, "doc", "quipu.1"), encoding="utf-8") as page:
        return page.read().replace("\\-", "-")


def manual_entry(manual, pattern, name):
    return re.search(rf"^\\fB{pattern} {name}\\fR.*?(?=^\.(TP|SS))", manual, re.M | re.S).group(0)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_help(operations, manual, pattern):
    shown = output(pattern, "--help")
    assert all(len(line) <= 118 for line in shown.splitlines()), shown
    names = re.findall(rf"^  {pattern} ([a-z]+) ", shown, re.M)
    for name in names:
        shown = output(pattern, name, "--help")
        assert shown.startswith(f"Usage: quipu {pattern} {name} ")
        assert all(len(line) <= 118 for line in shown.splitlines()), shown
        assert re.search(rf"quipu {pattern} {name}\b", shown.partition("Examples:")[2]), "without an example"
        if (pattern, name) in operations:
            method, path, fields = operations[pattern, name]
            assert name == "watch" or f"On HTTP: {method} {path}\n" in shown
            assert names_all_fields(shown, fields), (shown, fields)
        entry = manual_entry(manual, pattern, name)
        for flag in set(re.findall(r"^  (--[a-z-]+)", shown, re.M)) - COMMON_FLAGS:
            assert f"\\fB{flag}\\fR" in entry, f"{flag} is not in the manual: run script/manual"
    assert {name for parent, name in operations if parent == pattern} <= set(names)


# ---- errors ----

@pytest.mark.parametrize("arguments, sentence", [
    (["counter", "add", "x", "y"], "by must be a whole number."),
    (["counter", "add", "x", "1", "--by", "2"], "by is given twice"),
    (["counter", "add"], "an argument is missing: quipu counter add NAME [BY] [flags]"),
    (["counter", "add", ""], "name must not be empty"),
    (["counter", "add", "x", "--idempotency-key", "a\nb"], "--idempotency-key must not hold control characters"),
    (["job", "put", "x", "--deadline", "soon"],
     'deadline must be a duration like "30s", "5m" or "7d", or a time like 2026-11-15T03:42:06Z.'),
    (["job", "put", "x", "--keep", "soon"], 'keep must be a duration like "250ms", "30s", "5m", "1h" or "7d".'),
    (["job", "put", "x", "--layout", "heap"], "layout must be one of tree|set."),
    (["work", "submit", "q", "a", '{"n":'], "data should be JSON: something is missing at the end"),
    (["lease", "take", "x"], "an argument is missing: quipu lease take NAME OWNER [flags]"),
])
def test_wrong_usage(tmp_path, arguments, sentence):
    result = quipu(*arguments, on=tmp_path / "data")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"quipu: {sentence}\nTry 'quipu {arguments[0]} {arguments[1]} --help'.\n"


def test_nobody_there():
    result = quipu("counter", "add", "x", on="http://127.0.0.1:9")
    assert result.returncode == 1 and "nobody answers on http://127.0.0.1:9" in result.stderr


def test_a_folder_is_not_made_by_looking(tmp_path):
    result = quipu("counter", "get", "x", on=tmp_path / "none")
    assert result.returncode == 1 and list(tmp_path.iterdir()) == []


def test_on_a_terminal(place, unused_name):
    output("job", "put", unused_name, "--total", "2", on=place)
    status, shown = on_terminal("job", "get", unused_name, on=place)
    assert status == 0 and re.search(r"^state +OPEN$", shown, re.M)
    output("doc", "put", unused_name, "a", '{"n":1}', on=place)
    status, shown = on_terminal("doc", "ls", unused_name, on=place)
    assert status == 0 and re.search(r"^a +1 +\{\"n\":1\}$", shown, re.M)
    status, shown = on_terminal("doc", "get", unused_name, "a", on=place)
    assert (status, shown.splitlines()) == (0, ['{"n":1}', "version 1"])


def test_waiting_longer_than_one_call_can(server, unused_name):
    output("job", "put", unused_name, "--total", "1", on=server.url)
    running = [start("job", "get", unused_name, "--wait", "10m", on=server.url),
               start("lease", "take", unused_name, "me", "--wait", "2m", on=server.url),
               start("work", "claim", unused_name, "--wait", "1h", on=server.url),
               start("log", "read", unused_name, "c", "--wait", "1h", on=server.url)]
    output("job", "done", unused_name, "0", on=server.url)
    output("work", "submit", unused_name, "a", on=server.url)
    said = [process.communicate(timeout=240) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 1], said
    assert json.loads(said[0][0])["state"] == "COMPLETE" and json.loads(said[2][0])["id"] == "a"
    missing = quipu("job", "get", "none", "--wait", "10m", on=server.url)
    assert (missing.returncode, missing.stderr.startswith("quipu: There is no job")) == (1, True)


def test_lists_have_all_their_pages(place, unused_name):
    output("job", "put", unused_name, "--total", "1500", on=place)
    assert items("job", "missing", unused_name, on=place) == list(range(1500))


# ---- once run ----

def test_a_command_is_run_once_for_a_key(place, unused_name):
    run = ["once", "run", unused_name]
    assert output(*run, "a", "--", "sh", "-c", "echo '{\"fence\":'$QUIPU_FENCE'}'", on=place) == '{"fence":1}\n'
    assert output(*run, "a", "--", "echo", "never", on=place) == '{"fence":1}\n'
    failed = quipu(*run, "b", "--", "sh", "-c", "echo half; exit 7", on=place)
    assert (failed.returncode, failed.stdout) == (7, "half\n")
    assert json.loads(output("once", "get", unused_name, "b", on=place))["error"] == "exit status 7"
    assert output(*run, "b", "--", "echo", "whole", on=place) == "whole\n"
    assert output(*run, "b", "--", "echo", "again", on=place) == "whole\n"
    missing = quipu(*run, "c", "--", "/nowhere/at-all", on=place)
    assert missing.returncode == 127 and "cannot be started" in missing.stderr
    assert output(*run, "c", "--", "true", on=place) == ""


def test_those_who_come_meanwhile_get_the_same(server, unused_name, tmp_path):
    gate = tmp_path / "gate"
    first = start("once", "run", unused_name, "k", "--", "sh", "-c",
                  f"echo $$ >&2; while [ ! -e {gate} ]; do sleep 0.05; done; echo done", on=server.url)
    first.stderr.readline()
    late = quipu("once", "run", unused_name, "k", "--wait", "0s", "--", "echo", "never", on=server.url)
    assert late.returncode == 3 and late.stderr == "quipu: Another caller is at it.\n"
    waiting = [start("once", "run", unused_name, "k", "--", "echo", "never", on=server.url) for _ in range(3)]
    gate.touch()
    assert first.wait(120) == 0 and first.stdout.read() == "done\n"
    for one in waiting:
        assert one.wait(120) == 0 and one.stdout.read() == "done\n"


def test_a_killed_one_is_taken_over(server, unused_name):
    """Its command dies with it, and the next caller begins when its time is over, with the next fence."""
    running = start("once", "run", unused_name, "k", "--for", "2s", "--", "sh", "-c", "echo $$ >&2; exec sleep 1000",
                    on=server.url)
    running.stderr.readline()
    running.kill()
    assert output("once", "run", unused_name, "k", "--", "printenv", "QUIPU_FENCE", on=server.url) == "2\n"


# ---- lease run ----

def test_a_command_under_a_lease(place, unused_name):
    run = ["lease", "run", unused_name]
    result = quipu(*run, "--", "sh", "-c", "echo $QUIPU_LEASE $QUIPU_FENCE; cat; exit 7", on=place, stdin="in\n")
    assert (result.returncode, result.stdout, result.stderr) == (7, f"{unused_name} 1\nin\n", "")
    assert quipu(*run, "--", "sh", "-c", "kill -9 $$", on=place).returncode == 137
    result = quipu(*run, "--", "/no/such/command", on=place)
    assert (result.returncode, result.stderr) == (
        127, "quipu: '/no/such/command' cannot be started: No such file or directory\n")
    assert json.loads(output("lease", "get", unused_name, on=place))["held"] is False


def test_a_lease_is_renewed_while_the_command_runs(server, unused_name, tmp_path):
    gate = tmp_path / "gate"
    running = start("lease", "run", unused_name, "--for", "5s", "--", "sh", "-c",
                    f"echo begins; until [ -e {gate} ]; do sleep 0.05; done", on=server.url)
    assert running.stdout.readline() == "begins\n"
    refused = quipu("lease", "run", unused_name, "--wait", "6s", "--", "echo", "never", on=server.url)
    assert (refused.returncode, refused.stdout) == (3, "") and "is held by" in refused.stderr
    gate.touch()
    assert running.wait(120) == 0
    assert output("lease", "run", unused_name, "--", "printenv", "QUIPU_FENCE", on=server.url) == "2\n"


def test_a_signal_reaches_the_command_and_the_lease_is_released(server, unused_name):
    running = start("lease", "run", unused_name, "--", "sh", "-c",
                    "trap 'echo told; exit 9' TERM; echo begins; while :; do sleep 0.05; done", on=server.url)
    assert running.stdout.readline() == "begins\n"
    running.send_signal(signal.SIGTERM)
    assert (running.stdout.read(), running.wait(120)) == ("told\n", 9)
    assert json.loads(output("lease", "get", unused_name, on=server.url))["held"] is False


def is_alive(pid):
    try:
        state = open(f"/proc/{pid}/stat", encoding="ascii").read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until(condition, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_holder_that_is_killed(server, unused_name):
    """Its command dies with it, and the lease ends by its time for whoever waits."""
    running = start("lease", "run", unused_name, "--for", "2s", "--", "sh", "-c", "echo $$; exec sleep 1000",
                    on=server.url)
    pid = int(running.stdout.readline())
    running.kill()
    wait_until(lambda: not is_alive(pid))
    running.wait()
    assert output("lease", "run", unused_name, "--", "printenv", "QUIPU_FENCE", on=server.url) == "2\n"


def test_a_lease_that_is_lost(server, unused_name):
    """Somebody takes it away, by hand: the command is ended, and says so by its status."""
    running = start("lease", "run", unused_name, "--for", "3s", "--", "sh", "-c", "echo $$; exec sleep 1000",
                    on=server.url)
    pid = int(running.stdout.readline())
    output("update", "quipu-leases", unused_name, 'SET owner = "thief", fence = fence + 1', on=server.url)
    assert running.wait(120) == 4 and "the lease was lost" in running.stderr.read()
    assert not is_alive(pid)


def test_a_server_that_is_gone(unused_name):
    """Nobody can renew the lease, so the command is asked to end before others may have it: the longer the lease, the
    more time it has for that, also on a busy machine."""
    with Quipu("--memory") as server:
        running = start("lease", "run", unused_name, "--for", "20s", "--", "sh", "-c",
                        "trap 'echo told; exit 0' TERM; echo begins; while :; do sleep 0.05; done", on=server.url)
        assert running.stdout.readline() == "begins\n"
        server.kill()
        assert (running.stdout.read(), running.wait(240)) == ("told\n", 4)


# ---- work run ----

def test_commands_for_units_of_work(place, unused_name):
    output("work", "put", unused_name, "--attempts", "1", on=place)
    for number in range(3):
        output("work", "submit", unused_name, f"u{number}", json.dumps({"n": number}), on=place)
    output("work", "submit", unused_name, "u9", "a text", on=place)
    script = "x=$(cat); test $QUIPU_ID != u1 || exit 5; echo $x"
    lines = items("work", "run", unused_name, "--drain", "--", "sh", "-c", script, on=place)
    units = {unit["id"]: unit for unit in lines}
    assert {unit["id"]: unit["state"] for unit in lines} == {"u0": "DONE", "u1": "DEAD", "u2": "DONE", "u9": "DONE"}
    assert (units["u0"]["result"], units["u9"]["result"]) == ({"n": 0}, "a text")
    assert units["u1"]["error"] == "exit status 5"
    assert output("work", "run", unused_name, "--drain", "--", "true", on=place) == ""
    output("work", "submit", unused_name, "large", on=place)
    script = "yes | head -c 500000"
    (unit,) = items("work", "run", unused_name, "--drain", "--", "sh", "-c", script, on=place)
    assert (unit["state"], unit["error"]) == (
        "DEAD", "What was sent does not fit: an item of DynamoDB holds at most 400 KB.")


def test_a_unit_is_kept_while_the_command_runs(server, unused_name, tmp_path):
    gate = tmp_path / "gate"
    output("work", "put", unused_name, "--lease", "5s", on=server.url)
    output("work", "submit", unused_name, "a", on=server.url)
    running = start("work", "run", unused_name, "--units", "1", "--", "sh", "-c",
                    f"until [ -e {gate} ]; do sleep 0.05; done", on=server.url)
    wait_until(lambda: json.loads(output("work", "get", unused_name, "a", on=server.url))["state"] == "CLAIMED")
    assert quipu("work", "claim", unused_name, "--wait", "6s", on=server.url).returncode == 3
    gate.touch()
    assert running.wait(120) == 0
    assert json.loads(running.stdout.read())["attempts"] == 1


def test_nothing_there_is_said_on_a_terminal(server, unused_name):
    assert on_terminal("work", "claim", unused_name, on=server.url) == (3, "There is nothing now.\n")
    result = quipu("work", "claim", unused_name, on=server.url)
    assert (result.returncode, result.stdout, result.stderr) == (3, "", "")
    output("log", "put", unused_name, on=server.url)
    assert on_terminal("log", "read", unused_name, "c", on=server.url) == (3, "There are no unread events.\n")


def test_a_worker_that_is_killed(server, unused_name):
    """Its command dies with it, and another has the unit once its lease is over, with the next fence."""
    output("work", "put", unused_name, "--lease", "2s", on=server.url)
    output("work", "submit", unused_name, "a", on=server.url)
    running = start("work", "run", unused_name, "--", "sh", "-c", "echo $$ >&2; exec sleep 1000", on=server.url)
    pid = int(running.stderr.readline())
    running.kill()
    running.wait()
    wait_until(lambda: not is_alive(pid))
    lines = items("work", "run", unused_name, "--units", "1", "--", "sh", "-c", "echo $QUIPU_FENCE", on=server.url)
    assert [(unit["state"], unit["attempts"], unit["result"]) for unit in lines] == [("DONE", 2, 2)]


def test_a_worker_ends_by_a_signal_behind_its_unit(server, unused_name):
    output("work", "submit", unused_name, "a", on=server.url)
    script = "trap 'exit 0' TERM; echo up >&2; while :; do sleep 0.05; done"
    running = start("work", "run", unused_name, "--", "sh", "-c", script, on=server.url)
    assert running.stderr.readline() == "up\n"
    running.terminate()
    assert running.wait(120) == 0 and json.loads(running.stdout.read())["state"] == "DONE"


# ---- doc edit ----

def edit(place, name, editor, **options):
    return quipu("doc", "edit", name, "a", on=place, env={"EDITOR": editor, **options})


def test_editing_a_document(place, unused_name, tmp_path):
    assert edit(place, unused_name, """sed -i 's/{}/{"n": [1, {"m": 2}]}/'""").stdout == "1\n"
    result = edit(place, unused_name, f"sh -c 'cp $0 {tmp_path}/shown'")
    assert (result.returncode, result.stderr) == (0, "Nothing was changed.\n")
    assert (tmp_path / "shown").read_text() == '{\n  "n": [\n    1,\n    {\n      "m": 2\n    }\n  ]\n}\n'
    assert edit(place, unused_name, "sed -i s/2/3/").stdout == "2\n"
    assert json.loads(output("doc", "get", unused_name, "a", on=place)) == {"n": [1, {"m": 3}]}


def test_what_was_written_is_kept_when_it_is_not_json(place, unused_name, tmp_path):
    output("doc", "put", unused_name, "a", "{}", on=place)
    result = edit(place, unused_name, "sed -i s/}/x/", TMPDIR=str(tmp_path))
    (kept,) = tmp_path.iterdir()
    assert result.returncode == 1 and f"What you wrote is in {kept}\n" in result.stderr
    assert "not JSON" in result.stderr and kept.read_text() == "{x\n"
    assert edit(place, unused_name, "false", TMPDIR=str(tmp_path)).returncode == 1


def test_two_who_edit_a_document(server, unused_name, tmp_path):
    """The second writer is asked again, with what the first has written."""
    output("doc", "put", unused_name, "a", '{"mine": 0, "yours": 0}', on=server.url)
    script = tmp_path / "editor"
    script.write_text(f"""#!/bin/sh
test -e {tmp_path}/once || {BINARY} doc patch {unused_name} a '{{"yours": 1}}' --on {server.url} >&2
touch {tmp_path}/once
sed -i 's/"mine": 0/"mine": 1/' "$1"
""")
    script.chmod(0o755)
    result = edit(server.url, unused_name, str(script), TMPDIR=str(tmp_path))
    assert (result.returncode, result.stdout) == (0, "3\n"), result.stderr
    assert "somebody else has changed the document" in result.stderr
    assert json.loads(output("doc", "get", unused_name, "a", on=server.url)) == {"mine": 1, "yours": 1}


# ---- logs ----

def test_lines_into_a_log_and_out_again(place, unused_name):
    output("log", "put", unused_name, "--partitions", "3", on=place)
    lines = "".join(json.dumps({"key": f"k{n % 7}", "data": n}) + "\n" for n in range(250))
    assert len(items("log", "append", unused_name, on=place, stdin=lines)) == 250
    output("log", "append", unused_name, "k", on=place, stdin='text\n\n{"a":1}\n')
    some = items("log", "read", unused_name, "c", "--max", "10", on=place)
    assert len(some) == 10
    events = some + items("log", "read", unused_name, "c", on=place)
    assert sorted(event["data"] for event in events if isinstance(event["data"], int)) == list(range(250))
    assert [event["data"] for event in events if event["key"] == "k"] == ["text", {"a": 1}]
    for key in range(7):
        numbers = [event["data"] for event in events if event["key"] == f"k{key}"]
        assert numbers == sorted(numbers)
    assert quipu("log", "read", unused_name, "c", on=place).returncode == 3
    assert json.loads(output("log", "lag", unused_name, "c", on=place))["lag"] == 0


def test_lines_that_are_no_events(place, unused_name):
    output("log", "put", unused_name, on=place)
    result = quipu("log", "append", unused_name, on=place, stdin='{"key":"a"}\n[1]\n')
    assert (result.returncode, result.stderr) == (
        1, 'quipu: line 2 should be {"key":...,"data":...}: it is no object\n')
    assert quipu("log", "read", unused_name, "c", on=place).returncode == 3


def test_a_line_without_end_is_no_event(server, unused_name, tmp_path):
    """A gigabyte: what was read of it is where the open file stands."""
    output("log", "put", unused_name, on=server.url)
    path = tmp_path / "endless"
    path.write_text("first\nsecond")
    os.truncate(path, 1 << 30)
    with open(path) as file:
        result = subprocess.run([BINARY, "log", "append", unused_name, "k", "--on", server.url], stdin=file,
                                capture_output=True, text=True, timeout=180)
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) < 4 << 20
    assert (result.returncode, result.stderr) == (1, "quipu: line 2 is longer than 1 MB\n")


def test_following_a_log(server, unused_name):
    output("log", "put", unused_name, on=server.url)
    running = start("log", "read", unused_name, "c", "--follow", on=server.url)
    for number in range(3):
        output("log", "append", unused_name, "k", str(number), on=server.url)
        assert json.loads(running.stdout.readline())["data"] == number
    running.send_signal(signal.SIGINT)
    assert running.wait(120) == 0
    assert quipu("log", "read", unused_name, "c", on=server.url).returncode == 3


# ---- job watch ----

def test_watching_a_job(server, unused_name):
    output("job", "put", unused_name, "--total", "3", on=server.url)
    running = start("job", "watch", unused_name, on=server.url)
    for task in range(3):
        assert json.loads(running.stdout.readline())["done"] == task
        output("job", "done", unused_name, str(task), on=server.url)
    assert json.loads(running.stdout.readline())["state"] == "COMPLETE"
    assert running.wait(120) == 0
    status, shown = on_terminal("job", "watch", unused_name, on=server.url)
    assert status == 0 and f"{unused_name}: 3 tasks done" in shown
    assert quipu("job", "watch", "none", on=server.url).returncode == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_patterns(shell):
    script = output("completion", shell)
    for word in ("counter", "redrive", "idempotency-key", "tolerate"):
        assert word in script
    if shell == "bash":
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr
