"""The commands on functions, triggers, schedules and queues, against a running server."""
import base64
import json
import os
import re
import signal
import socket
import stat
import struct
import threading
import time
import urllib.request
import zipfile

import pytest
from cli import items, on_terminal, output, quipu, start
from support.process import Quipu, free_port

ECHO = """
exports.handler = async (event) => {
  console.log('got', JSON.stringify(event));
  if (event.fail) throw new Error('as you wish');
  return {echo: event, size: process.env.SIZE};
};
"""
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture(scope="module")
def server():
    with Quipu("--test-hooks") as running:
        yield running


@pytest.fixture
def on(server):
    return server.url


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "index.js").write_text(ECHO)
    return tmp_path


@pytest.fixture
def function(on, unused_name, folder):
    output("function", "add", unused_name, "--dir", str(folder), "--timeout", "30s", on=on)
    yield unused_name
    quipu("function", "rm", unused_name, on=on)


@pytest.fixture
def table(on, unused_name):
    name = unused_name + "-table"
    output("table", "create", name, "id:S", on=on)
    yield name
    quipu("table", "drop", name, "--yes", on=on)


def until(question, seconds=240):
    """Waits until it answers something true, and answers that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("it never came true")


def test_a_bootstrap_that_is_not_executable_is_named_as_that(on, unused_name, tmp_path):
    bootstrap = tmp_path / "bootstrap"
    bootstrap.write_text("#!/bin/sh\n")
    bootstrap.chmod(0o644)
    result = quipu("function", "add", unused_name, "--dir", str(tmp_path), on=on)
    assert result.returncode == 2
    assert f"bootstrap is there but not executable: chmod +x {tmp_path}/bootstrap" in result.stderr
    output("function", "add", unused_name, "--dir", str(tmp_path), "--runtime", "provided.al2023", on=on)
    result = quipu("function", "invoke", unused_name, on=on)
    assert f"bootstrap is there but not executable: chmod +x {tmp_path}/bootstrap" in result.stderr
    output("function", "rm", unused_name, on=on)


def fails(*arguments, on=None, status=1, **options):
    result = quipu(*arguments, on=on, **options)
    assert (result.returncode, result.stdout) == (status, ""), result
    return result.stderr


# ---- functions ----

def test_a_folder_becomes_a_function(on, function, folder):
    shown = items("function", "show", function, on=on)[0]
    assert shown["Configuration"]["Runtime"].startswith("nodejs")
    assert shown["Configuration"]["Handler"] == "index.handler"
    assert shown["Configuration"]["Timeout"] == 30
    assert shown["Configuration"]["Quipu"]["Directory"] == str(folder)
    assert function in [f["FunctionName"] for f in items("function", "ls", on=on)]


def test_invoke(on, function, tmp_path):
    assert items("function", "invoke", function, on=on) == [{"echo": {}}]
    assert items("function", "invoke", function, '{"a":1}', on=on)[0]["echo"] == {"a": 1}
    (tmp_path / "event.json").write_text('{"b":2}')
    assert items("function", "invoke", function, f"@{tmp_path}/event.json", on=on)[0]["echo"] == {"b": 2}
    assert items("function", "invoke", function, "-", on=on, stdin='{"c":3}')[0]["echo"] == {"c": 3}
    result = quipu("function", "invoke", function, '{"d":4}', "--log", on=on)
    assert json.loads(result.stdout)["echo"] == {"d": 4}
    assert "START RequestId" in result.stderr and 'got {"d":4}' in result.stderr


def test_a_function_that_fails(on, function):
    result = quipu("function", "invoke", function, '{"fail":true}', on=on)
    assert result.returncode == 1
    assert json.loads(result.stdout)["errorMessage"] == "as you wish"


def test_events_that_are_none(on, function, tmp_path):
    assert "the event should be JSON" in fails("function", "invoke", function, "{broken", on=on)
    assert "cannot be read" in fails("function", "invoke", function, f"@{tmp_path}/absent", on=on)


def test_asynchronous_calls_and_logs(on, function):
    assert output("function", "invoke", function, '{"later":1}', "--async", on=on) == ""
    until(lambda: 'got {"later":1}' in output("function", "logs", function, on=on))


def test_logs_are_followed(on, function):
    output("function", "invoke", function, '{"n":0}', on=on)
    process = start("function", "logs", function, "-f", on=on)
    try:
        until(lambda: 'got {"n":0}' in process.stdout.readline())
        output("function", "invoke", function, '{"n":1}', on=on)
        until(lambda: 'got {"n":1}' in process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
        process.stderr.close()


def test_adding_again_changes_it(on, function, folder):
    output("function", "add", function, "--dir", str(folder), "--env", "SIZE=64", "--env", "AB=b=c", "--memory", "256",
           "--concurrency", "5", "--description", "echo", on=on)
    shown = items("function", "show", function, on=on)[0]
    assert shown["Configuration"]["Environment"]["Variables"] == {"SIZE": "64", "AB": "b=c"}
    assert (shown["Configuration"]["MemorySize"], shown["Configuration"]["Timeout"]) == (256, 30)
    assert shown["Concurrency"]["ReservedConcurrentExecutions"] == 5
    assert items("function", "invoke", function, on=on) == [{"echo": {}, "size": "64"}]


def test_an_archive(on, unused_name, tmp_path):
    path = str(tmp_path / "code.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("app.py", "def run(event, context):\n    return {'zipped': event}\n")
    assert "say --runtime and --handler" in fails("function", "add", unused_name, "--zip", path, on=on)
    output("function", "add", unused_name, "--zip", path, "--runtime", "python3.11", "--handler", "app.run",
           "--timeout", "60s", on=on)
    assert items("function", "invoke", unused_name, '{"a":1}', on=on) == [{"zipped": {"a": 1}}]
    (tmp_path / "text.zip").write_text("no archive")
    text = str(tmp_path / "text.zip")
    assert "is no zip archive" in fails("function", "add", unused_name, "--zip", text, on=on, status=2)
    output("function", "rm", unused_name, on=on)


def test_versions_and_aliases(on, function):
    assert output("function", "publish", function, "--description", "first", on=on) == "1\n"
    output("function", "alias", function, "live", "1", on=on)
    assert items("function", "alias", function, on=on)[0]["FunctionVersion"] == "1"
    assert items("function", "invoke", f"{function}:live", '{"v":1}', on=on)[0]["echo"] == {"v": 1}
    output("function", "alias", function, "live", "$LATEST", on=on)
    assert items("function", "alias", function, on=on)[0]["FunctionVersion"] == "$LATEST"
    output("function", "alias", function, "live", "--rm", on=on)
    assert output("function", "alias", function, on=on) == ""


@pytest.mark.parametrize("files, runtime, handler", [
    ({"index.mjs": "export const handler = async () => 1"}, "nodejs", "index.handler"),
    ({"package.json": '{"main": "./src/app.js"}', "src/app.js": "exports.handler = async () => 1"}, "nodejs",
     "src/app.handler"),
    ({"lambda_function.py": "def lambda_handler(event, context):\n    return 1"}, "python3",
     "lambda_function.lambda_handler"),
    ({"bootstrap": "#!/bin/sh\nsleep 60\n"}, "provided", "bootstrap"),
])
def test_what_runs_a_folder(on, unused_name, tmp_path, files, runtime, handler):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    output("function", "add", unused_name, "--dir", str(tmp_path), "--timeout", "60s", on=on)
    configuration = items("function", "show", unused_name, on=on)[0]["Configuration"]
    assert configuration["Runtime"].startswith(runtime) and configuration["Handler"] == handler
    if runtime != "provided":
        assert output("function", "invoke", unused_name, on=on) == "1\n"
    output("function", "rm", unused_name, on=on)


@pytest.mark.parametrize("arguments, sentence", [
    (["add", "f"], "say what it runs: --dir, --zip, --url, --to-table, --to-queue or --to-pattern"),
    (["add", "f", "--url", "http://a", "--to-queue", "q"], "--url and --to-queue do not go together"),
    (["add", "f", "--to-queue", "q", "--secret", "s"], "--secret goes with --url"),
    (["add", "f", "--to-queue", "q", "--timeout", "20m"], "--timeout should be whole seconds up to 15m"),
    (["add", "f", "--to-queue", "q", "--env", "X"], "--env should be NAME=VALUE, not 'X'"),
    (["alias", "f", "live"], "say which version it is for"),
    (["alias", "f", "live", "3", "--rm"], "say which alias to remove"),
])
def test_arguments_that_make_no_sense(on, arguments, sentence):
    assert sentence in fails("function", *arguments, on=on, status=2)


def test_a_folder_that_says_nothing(on, tmp_path):
    assert "say --runtime" in fails("function", "add", "f", "--dir", str(tmp_path), on=on, status=2)
    told = fails("function", "add", "f", "--dir", str(tmp_path), "--runtime", "python3.11", on=on)
    assert "say --handler too" in told
    assert "cannot be found" in fails("function", "add", "f", "--dir", f"{tmp_path}/absent", on=on, status=2)


def test_functions_that_are_not_there(on):
    for command in (["show"], ["invoke"], ["logs"], ["rm"], ["publish"]):
        assert "not found" in fails("function", *command, "absent", on=on).lower()


# ---- triggers ----

def test_a_trigger_from_beginning_to_end(on, function, table):
    result = quipu("trigger", "add", table, function, "--batch", "5", "--window", "1s", "--retries", "3", "--bisect",
                   "--partial", "--max-age", "1h", "--lanes", "2", "--on-failure", "lost", "--depth", "2",
                   "--filter", '{"eventName":["INSERT"]}', "--filter", '{"eventName":["REMOVE"]}', on=on)
    assert result.returncode == 0 and f"The table {table} keeps a stream" in result.stderr
    identifier = result.stdout.strip()
    shown = items("trigger", "show", table, function, on=on)[0]
    assert shown["UUID"] == identifier
    assert {name: shown[name] for name in (
        "BatchSize", "MaximumBatchingWindowInSeconds", "MaximumRetryAttempts", "BisectBatchOnFunctionError",
        "FunctionResponseTypes", "MaximumRecordAgeInSeconds", "ParallelizationFactor", "MaximumRecursionDepth")} == {
            "BatchSize": 5, "MaximumBatchingWindowInSeconds": 1, "MaximumRetryAttempts": 3,
            "BisectBatchOnFunctionError": True, "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "MaximumRecordAgeInSeconds": 3600, "ParallelizationFactor": 2, "MaximumRecursionDepth": 2}
    assert len(shown["FilterCriteria"]["Filters"]) == 2
    assert shown["DestinationConfig"]["OnFailure"]["Destination"].endswith(":lost")
    assert identifier in [t["UUID"] for t in items("trigger", "ls", on=on)]

    # Nothing returned before the stream was being read: else the first changes would be older than `latest`.
    assert items("trigger", "show", identifier[:8], on=on)[0]["State"] == "Enabled"
    output("put", table, "id=1", on=on)
    until(lambda: '"eventName":"INSERT"' in output("function", "logs", function, on=on))
    until(lambda: items("trigger", "show", identifier, on=on)[0]["LastProcessingResult"] == "OK")

    output("trigger", "set", identifier, "--batch", "7", on=on)
    output("trigger", "pause", table, function, on=on)
    until(lambda: items("trigger", "show", identifier, on=on)[0]["State"] == "Disabled")
    assert items("trigger", "show", identifier, on=on)[0]["BatchSize"] == 7
    output("trigger", "resume", identifier, on=on)
    until(lambda: items("trigger", "show", identifier, on=on)[0]["State"] == "Enabled")
    output("trigger", "rm", identifier, on=on)
    until(lambda: identifier not in [t["UUID"] for t in items("trigger", "ls", on=on)])


def test_the_lag_of_a_trigger(on, function, table):
    output("table", "set", table, "--stream", "new-and-old", on=on)
    output("trigger", "add", table, function, "--from", "oldest", on=on)
    output("put", table, "id=1", on=on)
    until(lambda: items("trigger", "show", table, function, on=on)[0]["LastProcessingResult"] == "OK")
    assert re.search(r"^lag +none$", on_terminal("trigger", "show", table, function, on=on)[1], re.M)
    output("trigger", "pause", table, function, on=on)
    until(lambda: items("trigger", "show", table, function, on=on)[0]["State"] == "Disabled")
    output("put", table, "id=2", on=on)
    assert re.search(r"^lag +\d+(ms|s)", on_terminal("trigger", "show", table, function, on=on)[1], re.M)
    output("trigger", "rm", table, function, on=on)


def test_a_trigger_is_moved(on, function, table):
    output("table", "set", table, "--stream", "new-and-old", on=on)
    identifier = output("trigger", "add", table, function, "--from", "oldest", on=on).strip()

    def heard(key):
        return output("function", "logs", function, on=on).count('"Keys":{"id":{"S":"%s"}}' % key)

    output("put", table, "id=first", on=on)
    until(lambda: heard("first") == 1)
    output("trigger", "move", table, function, "--to", "start", on=on)
    until(lambda: heard("first") == 2)
    output("trigger", "pause", identifier, on=on)
    until(lambda: items("trigger", "show", identifier, on=on)[0]["State"] == "Disabled")
    output("put", table, "id=skipped", on=on)
    output("trigger", "move", identifier, "--to", "end", on=on)
    assert items("trigger", "show", identifier, on=on)[0]["State"] == "Disabled"
    output("put", table, "id=next", on=on)
    output("trigger", "resume", identifier, on=on)
    until(lambda: heard("next") == 1)
    assert heard("first") == 2 and heard("skipped") == 0
    output("trigger", "move", identifier, "--to", "2001-02-03T04:05:06Z", on=on)
    until(lambda: heard("next") == 2)
    assert heard("first") == 3 and heard("skipped") == 1
    assert "has no shard x" in fails("trigger", "move", identifier, "--to", "start", "--shard", "x", on=on)
    assert "To should be start, end, a time" in fails("trigger", "move", identifier, "--to", "soon", on=on)
    output("trigger", "rm", identifier, on=on)


@pytest.mark.parametrize("arguments, sentence, status", [
    (["add", "t", "absent-function"], "there is no function 'absent-function' ('quipu function ls' lists them)", 1),
    (["add", "t", "f", "--from", "now"], "--from should be oldest or latest, not 'now'", 2),
    (["add", "t", "f", "--batch", "many"], "--batch should be a number, not 'many'", 2),
    (["add", "t", "f", "--window", "10"], "--window should be whole seconds, like 10s or 5m, not '10'", 2),
    (["add", "t", "f", "--filter", "{"], "--filter should be JSON", 2),
    (["set", "0000"], "say what to set, like --batch 50", 2),
    (["show", "0000"], "there is no trigger '0000'", 1),
    (["rm", "t", "f"], "there is no trigger 't f'", 1),
    (["move", "0000"], "say where it is to go on, like --to start", 2),
    (["move", "0000", "--to", "start"], "there is no trigger '0000'", 1),
    (["move", "log:orders:bill", "--to", "start"], "only triggers of tables are moved", 2),
])
def test_triggers_that_make_no_sense(on, arguments, sentence, status):
    assert sentence in fails("trigger", *arguments, on=on, status=status)


def test_a_trigger_needs_both_ends(on, function, table):
    assert "there is no table 'absent-table'" in fails("trigger", "add", "absent-table", function, on=on)
    assert "there is no function 'absent'" in fails("trigger", "add", table, "absent", on=on)
    assert "LatestStreamArn" not in output("table", "describe", table, "--json", on=on)  # what fails changes nothing


def test_a_trigger_whose_table_was_made_again(on, function, unused_name):
    for _ in range(2):
        output("table", "create", unused_name, "id:S", "--stream", "new", on=on)
        last = output("trigger", "add", unused_name, function, on=on).strip()
        assert "stream" not in on_terminal("trigger", "show", last, on=on)[1]
        output("table", "drop", unused_name, "--yes", on=on)
    assert re.search(r"^stream +over: its table was dropped", on_terminal("trigger", "show", last, on=on)[1], re.M)
    assert "name it by its id" in fails("trigger", "show", unused_name, function, on=on)
    for trigger in items("trigger", "ls", on=on):
        if f"/{unused_name}/" in trigger["EventSourceArn"]:
            output("trigger", "rm", trigger["UUID"], on=on)


def test_the_servers_own_words(on, function, table):
    output("table", "set", table, "--stream", "new-and-old", on=on)
    assert "10000" in fails("trigger", "add", table, function, "--batch", "10001", on=on)


def test_a_pattern_as_a_target(on, unused_name):
    tally, orders = unused_name + "-tally", unused_name + "-orders"
    output("table", "create", orders, "id:S", on=on)
    output("function", "add", tally, "--to-pattern", "POST /v1/counters/{NewImage.shop}", "--body",
           '{"by": "{NewImage.n}"}',
           on=on)
    output("trigger", "add", orders, tally, on=on)
    for number in range(4):
        output("put", orders, f"id={number}", f"shop={unused_name}", "n:=10", on=on)

    def value():
        with urllib.request.urlopen(f"{on}/v1/counters/{unused_name}", timeout=120) as reply:
            return json.load(reply)["value"]
    until(lambda: value() == 40)
    output("delete", orders, "1", on=on)  # has no new image: why it fails stands nowhere else
    until(lambda: "NewImage.shop" in items("trigger", "show", orders, tally, on=on)[0]["LastProcessingResult"])
    output("function", "rm", tally, on=on)
    output("table", "drop", orders, "--yes", on=on)


# ---- schedules ----

def clock(server, **body):
    request = urllib.request.Request(f"{server.url}/_quipu/clock", data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=120) as reply:
        return json.load(reply)["now"]


@pytest.fixture
def sink(on, unused_name):
    """A function that puts its events into a queue."""
    output("function", "add", unused_name + "-sink", "--to-queue", unused_name, on=on)
    yield unused_name + "-sink", unused_name
    output("function", "rm", unused_name + "-sink", on=on)


def bodies(queue, on):
    return [json.loads(message["body"]) for message in items("queue", "read", queue, on=on)]


def test_a_schedule_from_beginning_to_end(server, on, sink, unused_name):
    function, queue = sink
    output("schedule", "add", unused_name, "rate(1 hour)", function, "--input",
           '{"at":"<aws.scheduler.scheduled-time>"}', "--missed", "all", on=on)
    until(lambda: len(bodies(queue, on)) == 1)
    clock(server, advance_seconds=2 * 3600)
    until(lambda: len(bodies(queue, on)) == 3)
    assert len({body["at"] for body in bodies(queue, on)}) == 3
    output("schedule", "pause", unused_name, on=on)
    shown = items("schedule", "show", unused_name, on=on)[0]
    assert (shown["State"], shown["MissedRuns"]) == ("DISABLED", "ALL") and "NextDueTime" not in shown
    assert quipu("schedule", "next", unused_name, on=on).stderr == f"quipu: {unused_name} is paused\n"
    output("schedule", "resume", unused_name, on=on)
    assert items("schedule", "show", unused_name, on=on)[0]["State"] == "ENABLED"
    assert unused_name in [schedule["Name"] for schedule in items("schedule", "ls", on=on)]
    output("schedule", "rm", unused_name, on=on)
    assert "does not exist" in fails("schedule", "show", unused_name, on=on)
    clock(server, reset=True)


def test_the_next_due_times(on, unused_name, sink):
    output("schedule", "add", unused_name, "cron(30 2 ? * SUN *)", sink[0], "--zone", "America/New_York", on=on)
    lines = output("schedule", "next", unused_name, "60", on=on).splitlines()
    assert len(lines) == 60 and lines == sorted(lines)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT02:30:00-0[45]:00", line) for line in lines)
    assert len(output("schedule", "next", unused_name, on=on).splitlines()) == 5
    output("schedule", "add", unused_name, "at(2030-01-01T00:00:00)", sink[0], on=on)
    assert output("schedule", "next", unused_name, on=on) == "2030-01-01T00:00:00Z\n"
    output("schedule", "rm", unused_name, on=on)


def test_flags_of_a_schedule(on, unused_name, sink):
    output("schedule", "add", unused_name, "0 9 * * 1-5", sink[0], "--zone", "Europe/Berlin", "--from",
           "2030-01-01T00:00:00Z", "--until", "2030-02-01T00:00:00.5Z", "--window", "15m", "--once", "--missed",
           "skip", "--on-failure", "lost", "--description", "why", on=on)
    shown = items("schedule", "show", unused_name, on=on)[0]
    assert (shown["StartDate"], shown["EndDate"]) == (1893456000, 1896134400.5)
    assert shown["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}
    assert (shown["ActionAfterCompletion"], shown["MissedRuns"], shown["Description"]) == ("DELETE", "SKIP", "why")
    assert shown["Target"]["DeadLetterConfig"]["Arn"].endswith(":lost")
    lines = output("schedule", "next", unused_name, "100", on=on).splitlines()
    assert lines[0] == "2030-01-01T09:00:00+01:00" and lines[-1] == "2030-01-31T09:00:00+01:00"
    output("schedule", "rm", unused_name, on=on)


@pytest.mark.parametrize("arguments, sentence, status", [
    (["add", "s", "every day", "f"], "Invalid Schedule Expression every day.", 1),
    (["add", "s", "rate(1 day)", "f", "--zone", "Mars"], "'Mars' is no time zone", 1),
    (["add", "s", "rate(1 day)", "f", "--missed", "some"], "--missed should be all, latest or skip", 2),
    (["add", "s", "rate(1 day)", "f", "--from", "today"], "--from should be a time like", 2),
    (["add", "s", "rate(1 day)", "f", "--input", "{"], "--input should be JSON", 2),
    (["add", "s", "rate(1 day)", "f", "--window", "10s"], "--window should be whole minutes", 2),
    (["next", "s", "0"], "'0' should be a number from 1 to 10000", 2),
    (["pause", "absent"], "Schedule absent does not exist.", 1),
])
def test_schedules_that_make_no_sense(on, arguments, sentence, status):
    assert sentence in fails("schedule", *arguments, on=on, status=status)


def test_a_schedule_of_no_function(on, unused_name):
    result = quipu("schedule", "add", unused_name, "at(2040-01-01T00:00:00)", "absent-function", on=on)
    assert result.returncode == 0 and "there is no function 'absent-function' yet" in result.stderr
    output("schedule", "rm", unused_name, on=on)


def test_a_schedule_that_never_runs(on, unused_name, sink):
    result = quipu("schedule", "add", unused_name, "at(2020-01-01T00:00:00)", sink[0], on=on)
    assert result.returncode == 0 and f"{unused_name} will never run" in result.stderr
    result = quipu("schedule", "add", unused_name, "at(2040-01-01T00:00:00)", sink[0], on=on)
    assert result.returncode == 0 and "never" not in result.stderr
    assert re.search(r"^next +20(40-01-01|39-12-31) \d\d:\d\d:00 \S+\r?$",
                     on_terminal("schedule", "show", unused_name, on=on)[1], re.M)
    output("schedule", "rm", unused_name, on=on)


# ---- queues ----

def test_queues(server, on, sink, unused_name):
    function, queue = sink
    for i in range(3):
        output("function", "invoke", function, json.dumps({"i": i}), "--async", on=on)
    until(lambda: len(bodies(queue, on)) == 3)
    assert sorted(body["i"] for body in bodies(queue, on)) == [0, 1, 2]
    assert {"queue": queue, "messages": 3}.items() <= [q for q in items("queue", "ls", on=on)
                                                       if q["queue"] == queue][0].items()
    assert len(items("queue", "read", queue, "--limit", "2", on=on)) == 2
    first = items("queue", "read", queue, on=on)[0]["id"]
    output("queue", "rm", queue, first, on=on)
    assert len(bodies(queue, on)) == 2
    assert "say --yes" in fails("queue", "rm", queue, on=on)
    output("queue", "rm", queue, "--yes", on=on)
    assert output("queue", "read", queue, on=on) == ""
    assert queue not in [q["queue"] for q in items("queue", "ls", on=on)]


def test_queues_of_a_folder_without_any(tmp_path):
    output("table", "create", "things", "id:S", on=tmp_path / "data")
    assert output("queue", "ls", on=tmp_path / "data") == ""
    assert output("queue", "read", "q", on=tmp_path / "data") == ""


# ---- on a terminal, and places ----

def test_tables_on_a_terminal(on, function, sink, unused_name):
    output("schedule", "add", unused_name, "rate(9 days)", sink[0], on=on)
    status, shown = on_terminal("function", "ls", on=on, columns=120)
    assert status == 0 and re.search(r"NAME +RUNS ON +HANDLER", shown) and function in shown
    assert f"queue {unused_name}" in shown
    status, shown = on_terminal("schedule", "ls", on=on, columns=160)
    assert status == 0 and re.search(r"NAME +EXPRESSION +ZONE +FUNCTION +STATE +NEXT", shown)
    assert re.search(rf"{unused_name} +rate\(9 days\) +UTC +{sink[0]} +on +\d", shown)
    status, shown = on_terminal("function", "show", function, on=on)
    assert status == 0 and re.search(r"^handler +index.handler$", shown, re.M)
    assert json.loads(on_terminal("function", "show", function, "--json", on=on)[1])["Configuration"]
    assert "NAME" in output("function", "ls", "--table", on=on)
    output("schedule", "rm", unused_name, on=on)


def test_nobody_listens():
    assert "nobody answers on http://127.0.0.1:1:" in fails("function", "ls", on="http://127.0.0.1:1")
    assert "--on should be the URL of a running 'quipu serve', not './data'" in fails("function", "ls", on="./data")
    assert "is Amazon's" in fails("trigger", "ls", on="https://dynamodb.eu-west-1.amazonaws.com")


def test_signed_requests(tmp_path, folder):
    keys = tmp_path / "keys.ini"
    keys.write_text(f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    mine = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-west-1"}
    with Quipu("--credentials", str(keys)) as server:
        output("function", "add", "f", "--dir", str(folder), "--timeout", "60s", on=server.url, env=mine)
        output("table", "create", "things", "id:S", on=server.url, env=mine)
        assert items("function", "invoke", "f:$LATEST", '{"a":"ü"}', on=server.url, env=mine) == [{"echo": {"a": "ü"}}]
        assert quipu("function", "invoke", "f", "{}", "--log", on=server.url, env=mine).returncode == 0
        assert quipu("function", "invoke", "f", "{}", "--async", on=server.url, env=mine).returncode == 0
        assert quipu("trigger", "add", "things", "f", on=server.url, env=mine).returncode == 0
        output("schedule", "add", "s", "at(2040-01-01T00:00:00)", "f", on=server.url, env=mine)
        assert len(items("schedule", "ls", on=server.url, env=mine)) == 1
        output("function", "logs", "f", on=server.url, env=mine)
        wrong = dict(mine, AWS_SECRET_ACCESS_KEY="x")
        for command in (["function", "ls"], ["trigger", "ls"], ["schedule", "ls"], ["queue", "ls"]):
            assert quipu(*command, on=server.url, env=wrong).returncode == 1
            assert quipu(*command, on=server.url).returncode == 1


def test_help_names_the_server():
    for command in (["function", "add"], ["trigger", "add"], ["schedule", "add"]):
        shown = output(*command, "--help")
        assert "Where the server is:" in shown and "--on URL" in shown
    assert "Where the data is:" in output("queue", "ls", "--help")


# ---- debugging ----

SLOW = """
exports.handler = async (event) => {
  await new Promise((resolve) => setTimeout(resolve, event.ms));
  return 'done';
};
"""


def attach(port):
    """As a debugger does: a web socket to the process, which is told to go on."""
    def listed():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=180) as reply:
                return json.loads(reply.read())
        except OSError:
            return None
    target = until(listed)[0]["webSocketDebuggerUrl"].split("/", 3)[3]
    connection = socket.create_connection(("127.0.0.1", port), timeout=180)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall((f"GET /{target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                        "Sec-WebSocket-Version: 13\r\n\r\n").encode())
    assert b" 101 " in connection.recv(4096)
    def go_on():
        """Again and again: on a busy machine the first may come before the process waits."""
        try:
            for number in range(600):
                text = json.dumps({"id": number, "method": "Runtime.runIfWaitingForDebugger"}).encode()
                connection.sendall(struct.pack(">BB4x", 0x81, 0x80 | len(text)) + text)  # masked by zeros
                time.sleep(0.5)
        except OSError:
            pass  # the session is over

    threading.Thread(target=go_on, daemon=True).start()
    return connection


def processes(on, name):
    with urllib.request.urlopen(f"{on}/v1/functions/{name}/processes", timeout=180) as reply:
        return json.loads(reply.read())["Processes"]


def test_a_function_under_a_debugger_has_no_time_limits(on, unused_name, tmp_path):
    (tmp_path / "index.js").write_text(SLOW)
    port = free_port()
    output("function", "add", unused_name, "--dir", str(tmp_path), "--timeout", "1s", on=on)
    assert output("function", "invoke", unused_name, '{"ms": 0}', on=on) == '"done"\n'
    late = '{"ms": 2000}'
    assert "Sandbox.Timedout" in quipu("function", "invoke", unused_name, late, on=on).stdout
    session = start("function", "debug", unused_name, "--port", str(port), on=on)
    assert "no time limits" in session.stdout.readline()
    assert f"127.0.0.1:{port}" in session.stdout.readline()
    with attach(port):
        callers = [start("function", "invoke", unused_name, late, on=on) for _ in range(2)]
        assert [caller.communicate(timeout=180)[0] for caller in callers] == ['"done"\n'] * 2  # one after the other
        assert len(processes(on, unused_name)) == 1
        other = quipu("function", "debug", unused_name, "--port", str(port + 1), on=on)
        assert other.returncode == 1 and "at another port" in other.stderr
        session.send_signal(signal.SIGINT)
        out, err = session.communicate(timeout=180)
    assert session.returncode == 0 and "runs as before" in err
    assert f"Debugger listening on ws://127.0.0.1:{port}/" in out and out.count("START RequestId") == 2
    assert "Sandbox.Timedout" in quipu("function", "invoke", unused_name, late, on=on).stdout
    assert output("function", "invoke", unused_name, '{"ms": 0}', on=on) == '"done"\n'
    output("function", "rm", unused_name, on=on)


def test_a_debug_session_ends_when_nobody_asks_for_it_again(on, function):
    url = f"{on}/v1/functions/{function}/debug?for=1s&port={free_port()}"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=180) as reply:
        assert json.loads(reply.read())["Begun"] is True
    # nobody attaches: a call waits, and is served by an ordinary process when the session is over
    assert json.loads(output("function", "invoke", function, '{"a": 1}', on=on))["echo"] == {"a": 1}


def test_python_under_a_debugger_speaks_pdb_where_there_is_no_debugpy(on, unused_name, tmp_path):
    (tmp_path / "lambda_function.py").write_text(
        "def lambda_handler(event, context):\n    answer = 41\n    breakpoint()\n    return answer\n")
    (tmp_path / "debugpy.py").write_text("raise ImportError('not here')")
    port = free_port()
    output("function", "add", unused_name, "--dir", str(tmp_path), "--timeout", "1s", on=on)
    session = start("function", "debug", unused_name, "--port", str(port), on=on)
    assert "no time limits" in session.stdout.readline()
    caller = start("function", "invoke", unused_name, on=on)
    def connected():
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=180)
        except OSError:
            return None
    with until(connected) as connection:
        connection.sendall(b"answer = answer + 1\ncontinue\n")
        assert caller.communicate(timeout=180)[0] == "42\n"
    session.send_signal(signal.SIGTERM)
    assert session.wait(180) == 0
    output("function", "rm", unused_name, on=on)
