"""quipu top: one frame as text, and on a terminal."""
import re
import threading

import pytest
from cli import on_terminal, quipu
from support.process import Quipu
from support.wire import Connection

KEYS = "[one]\naws_access_key_id = AKIDONE\naws_secret_access_key = secret\n"


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory") as running, Connection(running.url) as wire:
        wire.call("CreateTable", {"TableName": "Busy", "BillingMode": "PAY_PER_REQUEST",
                                  "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                                  "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]})
        yield running


@pytest.fixture
def load(server):
    """Somebody writes and reads all the time."""
    ends = threading.Event()

    def work():
        with Connection(server.url) as wire:
            while not ends.wait(0.02):
                wire.call("PutItem", {"TableName": "Busy", "Item": {"id": {"S": "1"}}})
                wire.call("GetItem", {"TableName": "Busy", "Key": {"id": {"S": "1"}}})

    worker = threading.Thread(target=work)
    worker.start()
    yield
    ends.set()
    worker.join()


def busy_frame(server, flags):
    """A frame of a second in which both were done; on a slow machine others come before it."""
    for _ in range(60):
        result = quipu("top", *flags, on=server.url)
        assert (result.returncode, result.stderr) == (0, "")
        if re.search(r"^Busy +[1-9]\d* +[1-9]\d*$", result.stdout, re.MULTILINE):
            break
    return result


def test_one_frame_as_text(server, load):
    for flags in (["--once"], []):  # without a terminal it is one frame in any case
        result = busy_frame(server, flags)
        assert "\033" not in result.stdout
        lines = result.stdout.splitlines()
        assert re.fullmatch(r"quipu top   http://\S+   \d\d:\d\d:\d\d", lines[0])
        assert re.match(r"ops/s [1-9][0-9,]*   p50 \S+ [um]?s   p99 \S+ [um]?s   errors/s 0 ", lines[1])
        assert re.search(r"connections [1-9].*   memory \S+ MB   disk ", result.stdout)
        assert re.search(r"GetItem \d+   PutItem \d+", result.stdout)
        assert re.search(r"^TABLE +READS/s +WRITES/s$", result.stdout, re.MULTILINE)
        assert re.search(r"^Busy +[1-9]\d* +[1-9]\d*$", result.stdout, re.MULTILINE)


def test_jobs_and_lags(tmp_path):
    (tmp_path / "main.py").write_text(
        "import os, time\ndef handler(event, context):\n"
        "    while not os.path.exists(os.path.join(os.path.dirname(__file__), 'go')): time.sleep(0.05)\n")
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    with Quipu("--memory") as server, Connection(server.url) as wire:
        wire.call("CreateTable", {"TableName": "Late", "BillingMode": "PAY_PER_REQUEST", "StreamSpecification": stream,
                                  "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                                  "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]})
        assert quipu("function", "add", "slow", "--dir", str(tmp_path), "--runtime", "python3", "--handler",
                     "main.handler", on=server.url).returncode == 0
        assert quipu("trigger", "add", "Late", "slow", "--from", "oldest", on=server.url).returncode == 0
        wire.call("PutItem", {"TableName": "Late", "Item": {"id": {"S": "1"}}})
        assert quipu("job", "put", "pages", "--total", "5000", on=server.url).returncode == 0
        ends = threading.Event()

        def work():
            with Connection(server.url) as other:
                for task in range(5000):
                    if ends.wait(0.05):
                        return
                    other.request("POST", "/v1/jobs/pages/done", {"Content-Type": "application/json"},
                                  f'{{"task":{task}}}'.encode())

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for _ in range(60):
                shown = quipu("top", "--once", on=server.url).stdout
                if re.search(r"^pages +[1-9]", shown, re.MULTILINE):
                    break
        finally:
            ends.set()
            worker.join()
            (tmp_path / "go").write_text("")
        assert re.search(r"^JOB +DONE/s +FAILED/s +TASKS$", shown, re.MULTILINE)
        assert re.search(r"^pages +[1-9]\d* +0 +5,000$", shown, re.MULTILINE)
        assert re.search(r"^TRIGGER +LAG$", shown, re.MULTILINE)
        assert re.search(r"^Late > slow +[0-9.]+ m?s$", shown, re.MULTILINE)


def test_on_a_terminal(server, load):
    status, shown = on_terminal("top", on=server.url, columns=100,
                                typed=[("Busy", "s"), ("READS/s*", "\033[C"), ("WRITES/s*", "\033[A\033[B"),
                                       ("q quit", "q")])
    assert status == 0
    assert shown.startswith("\033[?1049h\033[?25l")
    assert shown.endswith("\033[?25h\033[?1049l"), "the screen is as it was"


def test_control_c_ends_it_in_order(server):
    status, shown = on_terminal("top", on=server.url, typed=[("q quit", "\003")])
    assert status == 0
    assert shown.endswith("\033[?25h\033[?1049l")


class StopsServer:
    """What is typed when something was shown; here it is nothing, but the server stops."""

    def __init__(self, server):
        self.server = server

    def encode(self):
        self.server.stop()
        return b""


def test_a_server_that_goes_is_waited_for():
    with Quipu("--memory") as server:
        status, shown = on_terminal("top", on=server.url,
                                    typed=[("connections 1", StopsServer(server)), ("Trying again", "q")])
    assert status == 0
    assert "The server does not answer. Trying again." in shown


def test_with_keys(tmp_path):
    keys = tmp_path / "keys.ini"
    keys.write_text(KEYS)
    with Quipu("--memory", "--credentials", str(keys)) as server:
        own = {"AWS_ACCESS_KEY_ID": "AKIDONE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        assert quipu("top", "--once", on=server.url, env=own).returncode == 0
        refused = quipu("top", "--once", on=server.url, env={**own, "AWS_SECRET_ACCESS_KEY": "wrong"})
        assert refused.returncode == 1
        assert "signature" in refused.stderr and refused.stdout == ""


def test_where_there_is_nothing_to_see(server):
    with Quipu("--memory", "--no-console") as other:
        result = quipu("top", "--once", on=other.url)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == "quipu: This server has no console.\n"
        status, shown = on_terminal("top", on=other.url)
        assert status == 1
        assert shown.endswith("quipu: This server has no console.\n")
    gone = quipu("top", "--once", on=other.url)
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"quipu: nobody answers on {other.url}")
    assert quipu("top", "--once", on="./folder").returncode == 1
    assert quipu("top", "word", on=server.url).returncode == 2
