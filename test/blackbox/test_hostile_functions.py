"""Functions that misbehave hurt only themselves.

Each test lets a function do its worst (test/functions/hostile) and looks at it from outside. After each of them, a
well-behaved function answers from the very process that it had before, an item can be read, and the server has no
more descriptors, processes and memory than before.
"""
import base64
import concurrent.futures
import http.client
import itertools
import json
import os
import signal
import time
import urllib.error
import urllib.request

import pytest
from conftest import boto_client, create_table
from lambdas import Function, Mapping, eventually, lambda_client, send
from support.process import ROOT, Quipu

HOSTILE = os.path.join(ROOT, "test", "functions", "hostile")
REPLY_BYTES = 6 * 1024 * 1024 + 100  # Lambda's limit
LOG_BYTES = 8 * 1024 * 1024
GROWTH_BYTES = 256 << 20  # of the server; what it is attacked with is more, or could be any amount
GOOD = """
import os

def lambda_handler(event, context):
    return {"event": event, "pid": os.getpid()}
"""

numbers = itertools.count(1)


# ---- what can be seen of processes ----

def read_proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid):
    stat = read_proc(pid, "stat")
    return bool(stat) and stat.rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")


def await_end(pids):
    """Who is about to end has no memory any more, so no mark either, and is alive for a moment yet."""
    eventually(lambda: not any(is_alive(pid) for pid in pids), f"all of {pids} have ended")


def marked(mark):
    """The processes that were begun with this environment, wherever they have gone since."""
    return {pid for pid in all_pids() if b"MARK=" + mark.encode() in read_proc(pid, "environ").split(b"\0")}


def descendants(root):
    parents = {}
    for pid in all_pids():
        stat = read_proc(pid, "stat")
        if stat:
            parents[pid] = int(stat.rsplit(b")", 1)[1].split()[1])
    found, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return found - {root}


def memory_bytes(pid, what):
    line = next(line for line in read_proc(pid, "status").decode().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


# ---- requests, each on a connection of its own that is gone afterwards ----

class Answer:
    def __init__(self, reply):
        self.status, self.error = reply.status, reply.headers.get("X-Amz-Function-Error")
        self.log = base64.b64decode(reply.headers.get("X-Amz-Log-Result", "")).decode("utf-8", "replace")
        self.payload = json.loads(reply.read() or b"null")


def invoke(server, name, event=None, kind="RequestResponse"):
    request = urllib.request.Request(f"{server.url}/2015-03-31/functions/{name}/invocations", method="POST",
                                     data=json.dumps(event or {}).encode(),
                                     headers={"X-Amz-Invocation-Type": kind, "X-Amz-Log-Type": "Tail"})
    try:
        with urllib.request.urlopen(request, timeout=240) as reply:
            return Answer(reply)
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error)


def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
        return sum(float(line.split()[1]) for line in reply.read().decode().splitlines() if line.startswith(name))


def log_bytes(server, name):
    """What is kept of a function's output."""
    folder = os.path.join(server.functions, "logs")
    return sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder) if file.startswith(name))


class Hostile:
    """A function of the folder of evil, run in place."""

    def __init__(self, server, folder, deed="", **more):
        self.server, self.name = server, f"hostile-{next(numbers)}"
        self.mark = f"{self.name}-{os.getpid()}-{time.monotonic_ns()}"
        self.notes_path = os.path.join(str(folder), self.name + ".notes")
        variables = {"DEED": deed, "MARK": self.mark, "NOTES": self.notes_path, **more.pop("variables", {})}
        status, reply = send(server.url, "POST", "/2015-03-31/functions", {
            "FunctionName": self.name, "Runtime": "provided.al2023", "Timeout": 30, "MemorySize": 512,
            "Code": {"Directory": HOSTILE}, "Environment": {"Variables": variables}, **more})
        assert status == 201, reply

    def invoke(self, event=None, **more):
        return invoke(self.server, self.name, {**(event or {}), **more})

    def log(self):
        """All that it has printed."""
        url = f"{self.server.url}/v1/functions/{self.name}/logs?max=1000000"
        with urllib.request.urlopen(url, timeout=180) as reply:
            return reply.read().decode()

    def notes(self):
        if not os.path.exists(self.notes_path):
            return []
        with open(self.notes_path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def processes(self):
        return marked(self.mark)

    def delete(self):
        send(self.server.url, "DELETE", f"/2015-03-31/functions/{self.name}")

    def wait_gone(self):
        eventually(lambda: not self.processes(), f"no process of {self.name} is left")


# ---- the server, and what must not suffer ----

class Bystanders:
    """A well-behaved function and an item, on a server."""

    def __init__(self, server, folder):
        self.server = server
        code = os.path.join(str(folder), "good")
        os.makedirs(code)
        with open(os.path.join(code, "lambda_function.py"), "w") as file:
            file.write(GOOD)
        status, reply = send(server.url, "POST", "/2015-03-31/functions", {
            "FunctionName": "good", "Runtime": "python3.11", "Handler": "lambda_function.lambda_handler",
            "Timeout": 60, "Code": {"Directory": code}})
        assert status == 201, reply
        status, reply = send(server.url, "PUT", "/2017-10-31/functions/good/concurrency",
                             {"ReservedConcurrentExecutions": 1})  # else a slow machine gives it a second process
        assert status == 200, reply
        dynamodb = boto_client(server.url)
        create_table(dynamodb, "things")
        dynamodb.put_item(TableName="things", Item={"pk": {"S": "a"}, "n": {"N": "1"}})
        dynamodb.close()
        self.pid = self.check()

    def check(self):
        """Both answer; the function's process."""
        event = {"n": next(numbers)}
        answer = invoke(self.server, "good", event)
        while answer.status == 429:  # its process was answered, and has not asked again yet
            answer = invoke(self.server, "good", event)
        assert answer.status == 200 and answer.error is None and answer.payload["event"] == event
        dynamodb = boto_client(self.server.url)
        item = dynamodb.get_item(TableName="things", Key={"pk": {"S": "a"}})["Item"]
        dynamodb.close()
        assert item == {"pk": {"S": "a"}, "n": {"N": "1"}}
        return answer.payload["pid"]

    def check_during(self, future):
        """They answer again and again as long as something else is under way; how often they did."""
        count = 0
        while not future.done():
            assert self.check() == self.pid
            count += 1
        return count


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    functions = str(tmp_path_factory.mktemp("functions"))
    with Quipu("--memory", "--test-hooks", "--functions", functions) as running:
        running.functions = functions
        yield running


@pytest.fixture(scope="module")
def bystanders(server, tmp_path_factory):
    return Bystanders(server, tmp_path_factory.mktemp("code"))


@pytest.fixture(autouse=True)
def unharmed(server, bystanders):
    """What holds after each test: its functions are deleted by then."""
    pid = server.process.pid
    descriptors, family = len(os.listdir(f"/proc/{pid}/fd")), len(descendants(pid))
    before = memory_bytes(pid, "VmRSS")
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")  # the peak is counted from here on
    yield
    assert bystanders.check() == bystanders.pid, "the well-behaved function has lost its process"
    eventually(lambda: len(descendants(pid)) <= family, "no more processes than before")
    eventually(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= descriptors, "no more descriptors than before")
    assert memory_bytes(pid, "VmHWM") < before + GROWTH_BYTES
    assert server.process.poll() is None


@pytest.fixture
def hostile(server, tmp_path):
    """hostile(deed) makes a function; it is deleted after the test, and then nothing of it is left."""
    made = []

    def make(deed="", **more):
        made.append(Hostile(server, tmp_path, deed, **more))
        return made[-1]

    yield make
    for function in made:
        function.delete()
        function.wait_gone()


@pytest.fixture
def attack():
    """Runs something at the same time."""
    with concurrent.futures.ThreadPoolExecutor(32) as executor:
        yield executor.submit


# ---- families ----

def test_daemons_end_with_a_time_out(hostile):
    function = hostile("daemonise", Timeout=3)
    answer = function.invoke(seconds=3600)
    assert (answer.status, answer.error, answer.payload["errorType"]) == (200, "Unhandled", "Sandbox.Timedout")
    pids = function.notes()[0]["pids"]
    assert len(pids) == 3
    function.wait_gone()
    await_end(pids)


def test_daemons_end_with_their_function(hostile):
    function = hostile("daemonise", MemorySize=2048)  # for all of them together
    answer = function.invoke(count=50)
    assert answer.error is None
    assert set(answer.payload["pids"]) <= function.processes() and len(answer.payload["pids"]) == 50
    function.delete()
    function.wait_gone()
    await_end(answer.payload["pids"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_server(number, tmp_path):
    with Quipu("--memory") as other:
        idle, busy = Hostile(other, tmp_path, "daemonise"), Hostile(other, tmp_path, "daemonise", Timeout=900)
        assert idle.invoke().error is None
        assert invoke(other, busy.name, {"seconds": 3600}, "Event").status == 202
        eventually(busy.notes, "the second function is under way")
        family = descendants(other.process.pid)
        assert len(idle.processes()) == 4 and len(busy.processes()) == 4
        assert idle.processes() | busy.processes() <= family
        other.signal(number)
        other.wait()
        idle.wait_gone()
        busy.wait_gone()
        await_end(family)


def test_a_fork_bomb_ends_at_the_limit(hostile, bystanders, attack):
    function = hostile("bomb", Timeout=300)  # on a busy machine it takes its time to grow
    answer = attack(function.invoke)
    bystanders.check_during(answer)
    assert answer.result().payload["errorType"] in ("Runtime.ExitError", "Runtime.OutOfMemory")
    assert "exit status" not in answer.result().payload["errorMessage"], "it ended by itself"
    function.wait_gone()


# ---- output ----

@pytest.mark.parametrize("lines", [True, False])
def test_output_without_end_is_bounded(lines, hostile, server, bystanders, attack):
    function = hostile("loud", Timeout=120)
    answer = attack(function.invoke, megabytes=400, lines=lines)
    assert bystanders.check_during(answer) > 0
    assert answer.result().error is None and answer.result().payload == {"fine": True}
    assert 0 < len(answer.result().log) <= 4096
    eventually(lambda: log_bytes(server, function.name) > 0, "something of it is kept")
    assert log_bytes(server, function.name) <= LOG_BYTES + (1 << 20)


def test_the_end_of_much_output_is_in_the_log(hostile):
    function = hostile("loud")
    answer = function.invoke(megabytes=20)
    assert "REPORT RequestId" in answer.log and "xxxx" in answer.log


# ---- ends ----

def test_without_any_descriptor_it_times_out(hostile):
    function = hostile(Timeout=4)
    answer = function.invoke(deed="closing")
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert function.invoke().payload == {"fine": True}


def test_who_ignores_the_request_to_end_is_ended(hostile):
    function = hostile(Timeout=4)
    answer = function.invoke(deed="stubborn")
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert "Task timed out after 4.00 seconds" in answer.payload["errorMessage"]
    function.wait_gone()
    assert function.invoke().payload == {"fine": True}


def test_who_exits_at_once_is_told_of(hostile, bystanders, attack):
    function = hostile("absent", variables={"STATUS": "7"})
    answers = [attack(function.invoke) for _ in range(20)]
    bystanders.check_during(answers[-1])
    for answer in answers:
        assert answer.result().error == "Unhandled"
        assert answer.result().payload["errorType"] == "Runtime.ExitError"
        assert "exit status 7" in answer.result().payload["errorMessage"]


def test_who_exits_at_once_is_not_started_without_need(hostile, server):
    function = hostile("absent")
    answer = function.invoke()
    assert answer.payload["errorType"] == "Runtime.ExitError"
    assert "Runtime exited without providing a reason" in answer.payload["errorMessage"]
    before = metric(server, "quipu_function_starts_total")
    time.sleep(1.5)
    assert metric(server, "quipu_function_starts_total") == before


def test_a_trigger_that_never_succeeds_does_not_spin(hostile, server, bystanders):
    function = hostile("absent")
    dynamodb, functions = boto_client(server.url), lambda_client(server.url)
    create_table(dynamodb, "doomed", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    for n in range(20):
        dynamodb.put_item(TableName="doomed", Item={"pk": {"S": str(n)}})
    mapping = Mapping(functions, "doomed", function.name)
    eventually(lambda: mapping.get()["LastProcessingResult"].startswith("PROBLEM"), "the first batch has failed")
    starts, tries = metric(server, "quipu_function_starts_total"), metric(server, "quipu_trigger_failures_total")
    began = time.monotonic()
    while time.monotonic() < began + 4:
        bystanders.check()
        time.sleep(0.1)
    starts = metric(server, "quipu_function_starts_total") - starts
    tries = metric(server, "quipu_trigger_failures_total") - tries
    mapping.delete()
    dynamodb.delete_table(TableName="doomed")
    dynamodb.close()
    functions.close()
    assert starts < 100 and tries < 100


@pytest.mark.parametrize("deed, error, message", [
    ("deserter", "Runtime.ExitError", "Runtime exited with error: exit status 3"),
    ("crash", "Runtime.ExitError", "Runtime exited with error: signal: segmentation fault"),
])
def test_an_end_in_the_middle_of_a_call_is_told(deed, error, message, hostile):
    function = hostile()
    assert function.invoke().payload == {"fine": True}
    first = function.processes()
    answer = function.invoke(deed=deed)
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", error)
    assert message in answer.payload["errorMessage"]
    assert function.invoke().payload == {"fine": True}
    assert len(first) == 1 and not first & function.processes()


def test_memory_ends_only_who_eats_it(hostile, bystanders, attack):
    hungry, other = hostile(MemorySize=128), hostile()
    assert other.invoke().payload == {"fine": True}
    before = other.processes()
    answer = attack(hungry.invoke, deed="hungry")
    bystanders.check_during(answer)
    assert (answer.result().error, answer.result().payload["errorType"]) == ("Unhandled", "Runtime.OutOfMemory")
    assert hungry.invoke().payload == {"fine": True}
    assert other.invoke().payload == {"fine": True} and other.processes() == before


def test_who_never_answers_ends_with_the_time_out(hostile, bystanders, attack):
    function = hostile(Timeout=4)
    answers = [attack(function.invoke, deed="silent") for _ in range(5)]
    bystanders.check_during(answers[0])
    for answer in answers:
        assert (answer.result().error, answer.result().payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    function.wait_gone()


def test_who_never_starts_is_told_of(hostile):
    function = hostile("late", Timeout=1)
    answer = function.invoke()
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    function.wait_gone()


# ---- answers ----

def test_a_reply_of_exactly_the_limit_and_one_above(hostile):
    function = hostile("large")
    answer = function.invoke(bytes=REPLY_BYTES - 2)  # two quotes
    assert answer.error is None and answer.payload == "x" * (REPLY_BYTES - 2)
    answer = function.invoke(bytes=REPLY_BYTES - 1)
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Function.ResponseSizeTooLarge")
    assert answer.payload["errorMessage"] == (f"Response payload size ({REPLY_BYTES + 1} bytes) exceeded maximum "
                                              f"allowed payload size ({REPLY_BYTES} bytes).")


def test_replies_of_any_size_are_refused_within_bounds(hostile, bystanders, attack):
    function = hostile("large", Timeout=15, MemorySize=2048)
    answers = [attack(function.invoke, bytes=size) for size in (7_000_000, 60_000_000, 300_000_000)]
    bystanders.check_during(answers[-1])
    errors = [answer.result().payload["errorType"] for answer in answers]
    assert errors[:2] == ["Function.ResponseSizeTooLarge"] * 2
    assert errors[2] in ("Sandbox.Timedout", "Runtime.ExitError")  # who is slow to send so much is cut off
    assert function.invoke(bytes=10).payload == "x" * 10


def test_the_first_of_two_answers_counts(hostile):
    function = hostile()
    answer = function.invoke(deed="twice")
    assert answer.error is None and answer.payload == {"first": True}
    # It came behind the call's end, so the function's log has it and the call's has not.
    eventually(lambda: "second answer: 400" in function.log(), "its output")
    assert function.invoke().payload == {"fine": True}


def test_an_answer_to_a_call_that_is_none_is_refused(hostile):
    function = hostile()
    assert function.invoke(deed="liar").payload == {"status": 400}


def test_half_an_answer_is_none(hostile):
    function = hostile(Timeout=4)
    answer = function.invoke(deed="deaf")
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert function.invoke().payload == {"fine": True}


def test_an_answer_after_the_time_out_comes_too_late(hostile):
    function = hostile(Timeout=4)
    answer = function.invoke(deed="confide")
    assert (answer.error, answer.payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    secret = function.notes()[0]
    late = http.client.HTTPConnection(secret["address"], timeout=20)
    try:
        late.request("POST", f"/2018-06-01/runtime/invocation/{secret['id']}/response", '"late"')
        assert late.getresponse().status in (400, 404, 410)  # another process may have the port by now
    except (OSError, http.client.HTTPException):
        pass
    finally:
        late.close()
    assert function.invoke().payload == {"fine": True}


# ---- its own port ----

def test_hundreds_of_connections_to_its_own_port(hostile, bystanders, attack):
    function = hostile("crowd", Timeout=180)
    answer = attack(function.invoke, connections=600)
    bystanders.check_during(answer)
    assert answer.result().payload == {"connections": 600} and answer.result().error is None


def test_garbage_is_refused(hostile, bystanders, attack):
    function = hostile("babble")
    answer = attack(function.invoke)
    bystanders.check_during(answer)
    assert answer.result().error is None, answer.result().payload
    for what, status in answer.result().payload.items():
        assert status in ("dead", "closed", 404) or status[:2] in ("40", "41", "43", "50"), (what, status)


def test_requests_that_never_end_hold_up_nobody(hostile, bystanders, attack):
    function = hostile("dawdle")
    answer = attack(function.invoke, connections=200, seconds=5)
    assert bystanders.check_during(answer) > 0
    assert answer.result().error is None and answer.result().payload["bytes"] > 1


# ---- the server's own processes ----

@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
def test_who_attacks_its_keeper_ends_all_the_same(number, hostile):
    function = hostile(Timeout=3)
    answer = function.invoke(deed="parricide", signal=number)
    assert answer.error == "Unhandled"
    assert answer.payload["errorType"] == ("Runtime.ExitError" if number == "SIGKILL" else "Sandbox.Timedout")
    own, keeper, _ = function.notes()[0]["pids"]
    function.wait_gone()
    await_end([own, keeper])
    assert function.invoke().payload == {"fine": True}


def test_who_attacks_the_nursery_ends_all_the_same(tmp_path):
    with Quipu("--memory") as other:
        others = Bystanders(other, tmp_path)
        function = Hostile(other, tmp_path, Timeout=3)
        assert function.invoke(deed="parricide", generation=1).error == "Unhandled"
        await_end(function.notes()[0]["pids"])
        function.wait_gone()
        assert function.invoke().payload == {"fine": True}
        others.check()
        family = descendants(other.process.pid)
        assert other.stop() == 0
        await_end(family)


def test_it_has_only_the_three_usual_descriptors(hostile):
    found = hostile().invoke(deed="look").payload
    assert sorted(found) == ["/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"]
    assert found["/proc/self/fd/0"] == "/dev/null"
    assert found["/proc/self/fd/1"] == found["/proc/self/fd/2"] and found["/proc/self/fd/1"].startswith("pipe:")


# ---- loops ----

PING = """
import urllib.request

def handle(event):
    for record in event["Records"]:
        n = int(record["dynamodb"]["NewImage"]["n"]["N"]) + 1
        body = json.dumps({"TableName": os.environ["OTHER"], "Item": {"pk": {"S": "a"}, "n": {"N": str(n)}}}).encode()
        urllib.request.urlopen(urllib.request.Request(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], body, {
            "X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]}), timeout=180).close()
"""


@pytest.mark.parametrize("depth", [0, 4])
def test_functions_that_write_to_each_others_tables_stop_at_the_depth(depth, server, bystanders, tmp_path):
    dynamodb, functions = boto_client(server.url), lambda_client(server.url)
    tables = [f"court-{depth}-{side}" for side in "ab"]
    players, mappings = [], []
    for table in tables:
        create_table(dynamodb, table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
    for table, other in zip(tables, reversed(tables)):
        player = Function(functions, tmp_path, f"player-of-{table}", PING)
        functions.update_function_configuration(FunctionName=player.name, Environment={"Variables": {
            "NOTES": player.notes, "OTHER": other}})
        mapping = Mapping(functions, table, player.name)
        status, _ = send(server.url, "PUT", f"/2015-03-31/event-source-mappings/{mapping.id}",
                         {"MaximumRecursionDepth": depth})
        assert status == 202
        mapping.wait("Enabled")
        players.append(player)
        mappings.append(mapping)
    dynamodb.put_item(TableName=tables[0], Item={"pk": {"S": "a"}, "n": {"N": "0"}})
    eventually(lambda: len(players[1].events()) == depth + 1, "the second function ran as often as it may")
    assert send(server.url, "POST", "/_quipu/idle")[0] == 200
    assert [len(player.events()) for player in players] == [depth + 1, depth + 1]
    bystanders.check()
    for mapping in mappings:
        mapping.delete()
    for player, table in zip(players, tables):
        functions.delete_function(FunctionName=player.name)
        dynamodb.delete_table(TableName=table)
    dynamodb.close()
    functions.close()
