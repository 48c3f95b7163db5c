"""What the server drives by itself: each unit of a queue is handed to a function, a URL or a pattern."""
import concurrent.futures
import json
import urllib.request

import places
import pytest
from cli import items, output, quipu
from lambdas import Function, eventually
from support.engines import ENGINES
from support.process import Quipu

# Fails as often as its data says, tells what it was given, and how many of its kind run.
SEND = """
def handle(event):
    data = event["data"] or {}
    if data.get("slow"):
        note(begin=event["id"])
        time.sleep(data["slow"])
        note(end=event["id"])
    if event["attempt"] <= data.get("fails", 0):
        raise ValueError("no ink")
    return {"sent": event["id"]}
"""


class Place(places.Place):
    def submit(self, queue, id, data=None):
        return self.ok("POST", f"/v1/work/{queue}/{id}", {"data": data})

    def end(self, queue, id):
        return eventually(lambda: (lambda unit: unit if "finished" in unit else None)(
            self.ok("GET", f"/v1/work/{queue}/{id}?wait=20s")), f"{queue}/{id} ends")

    def drives(self):
        return {drive["id"]: drive for drive in self.ok("GET", "/v1/drives")["drives"]}


@pytest.fixture(scope="module", params=ENGINES)
def place(request, tmp_path_factory):
    """On other engines two servers share the work."""
    with places.served(request.param, tmp_path_factory) as url:
        yield Place(url)


@pytest.fixture(scope="module")
def here():
    with Quipu("--memory") as server:
        yield Place(server.url)


@pytest.fixture
def queue(place, tmp_path, unused_name):
    """A queue that a function works at."""
    function = Function(place.functions, tmp_path, unused_name, SEND)
    place.ok("PUT", f"/v1/work/{unused_name}", {"each": unused_name, "attempts": 3, "backoff": 1})
    yield unused_name, function
    place.ok("PUT", f"/v1/work/{unused_name}", {"each": []})


def test_each_unit_is_handed_to_the_function(place, queue):
    name, function = queue
    for i in range(5):
        place.submit(name, f"u-{i}", {"n": i})
    for i in range(5):
        unit = place.end(name, f"u-{i}")
        assert (unit["state"], unit["result"], unit["attempts"]) == ("DONE", {"sent": f"u-{i}"}, 1)
    assert sorted(map(json.dumps, function.events())) == sorted(
        json.dumps({"queue": name, "id": f"u-{i}", "attempt": 1, "data": {"n": i}}) for i in range(5))


def test_a_failure_is_tried_again_and_given_up_by_the_queues_rules(place, queue):
    name, function = queue
    place.submit(name, "twice", {"fails": 1})
    place.submit(name, "never", {"fails": 9})
    assert place.end(name, "twice")["attempts"] == 2
    dead = place.end(name, "never")
    assert (dead["state"], dead["attempts"], dead["error"]) == ("DEAD", 3, "ValueError: no ink")
    assert sorted(event["attempt"] for event in function.events()) == [1, 1, 2, 2, 3]


def test_settings_are_the_queues_and_can_be_changed(place, queue):
    name, _ = queue
    assert place.drives()[f"work:{name}"]["concurrency"] == 10
    changed = place.ok("PUT", f"/v1/work/{name}", {"concurrency": 3, "paused": True, "timeout": "1m"})
    expected = {"each": name, "concurrency": 3, "paused": True, "timeout": "1m"}
    assert expected.items() <= changed.items()
    assert expected.items() <= place.ok("GET", f"/v1/work/{name}").items()
    assert expected.items() <= place.drives()[f"work:{name}"].items()


def test_what_is_paused_waits(here, tmp_path, unused_name):
    name, function = unused_name, Function(here.functions, tmp_path, unused_name, SEND)
    here.ok("PUT", f"/v1/work/{name}", {"each": name, "paused": True})
    here.submit(name, "a")
    other = here.ok("PUT", f"/v1/work/{name}-other", {"each": name})
    here.submit(name + "-other", "b")
    here.end(name + "-other", "b")  # that one is driven meanwhile
    assert here.ok("GET", f"/v1/work/{name}/a")["state"] == "READY" and other["paused"] is False
    here.ok("PUT", f"/v1/work/{name}", {"paused": False})
    assert here.end(name, "a")["state"] == "DONE"
    here.ok("PUT", f"/v1/work/{name}", {"each": []})
    assert f"work:{name}" not in here.drives() and "each" not in here.ok("GET", f"/v1/work/{name}")
    assert len(function.events()) == 2


def test_no_more_run_at_a_time_than_the_concurrency_says(place, tmp_path, unused_name):
    name, function = unused_name, Function(place.functions, tmp_path, unused_name, SEND)
    place.ok("PUT", f"/v1/work/{name}", {"each": name, "concurrency": 2})
    for i in range(6):
        place.submit(name, f"u-{i}", {"slow": 0.1})
    for i in range(6):
        assert place.end(name, f"u-{i}")["state"] == "DONE"
    running = most = 0
    for line in function.lines():
        running += ("begin" in line) - ("end" in line)
        most = max(most, running)
    assert 1 <= most <= 2


def test_a_claim_is_beaten_while_the_function_runs(here, tmp_path, unused_name):
    name, function = unused_name, Function(here.functions, tmp_path, unused_name, SEND)
    here.ok("PUT", f"/v1/work/{name}", {"each": name, "lease": "4s"})
    here.submit(name, "a", {"slow": 5})
    unit = here.end(name, "a")
    assert (unit["state"], unit["attempts"], len(function.events())) == ("DONE", 1, 1)


def test_a_time_out_of_the_queues_own(here, tmp_path, unused_name):
    Function(here.functions, tmp_path, unused_name, SEND)
    here.ok("PUT", f"/v1/work/{unused_name}", {"each": unused_name, "timeout": "200ms", "attempts": 1})
    here.submit(unused_name, "a", {"slow": 60})
    unit = here.end(unused_name, "a")
    assert unit["state"] == "DEAD" and "Task timed out after 0.20 seconds" in unit["error"]


def test_a_pattern_as_the_target(here, unused_name):
    here.ok("PUT", f"/v1/work/{unused_name}", {"each": {"call": "POST /v1/counters/{id}", "body": {"by": "{data.by}"}}})
    here.submit(unused_name, unused_name, {"by": 7})
    assert here.end(unused_name, unused_name)["state"] == "DONE"
    assert here.ok("GET", f"/v1/counters/{unused_name}")["value"] == 7


def test_what_makes_no_sense_is_refused(here, unused_name):
    path = f"/v1/work/{unused_name}"
    for body, words in [({"concurrency": 5}, "each is needed"), ({"each": ["a", "b"]}, "one function"),
                        ({"each": {"function": "a", "on": "DONE"}}, "no \"on\""), ({"each": "no blanks"}, "function"),
                        ({"each": "f", "concurrency": 1001}, "concurrency")]:
        status, reply = here.ask("PUT", path, body)
        assert status == 400 and words in reply["message"], reply
    assert f"work:{unused_name}" not in here.drives()


def test_returned_writes_are_refused(here, tmp_path, unused_name):
    write = {"Delete": {"TableName": "any", "Key": {"pk": {"S": "a"}}}}
    source = f"def handle(event):\n    return {{'quipu': {{'transact': [{write}]}}}}\n"
    Function(here.functions, tmp_path, unused_name, source)
    here.ok("PUT", f"/v1/work/{unused_name}", {"each": unused_name})
    here.submit(unused_name, "a")
    unit = here.end(unused_name, "a")
    assert (unit["state"], unit["attempts"]) == ("DEAD", 1) and "returned writes" in unit["error"]


def test_a_server_that_was_killed_goes_on(tmp_path, unused_name):
    folder = str(tmp_path / "data")
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        Function(place.functions, tmp_path, unused_name, SEND)
        place.ok("PUT", f"/v1/work/{unused_name}", {"each": unused_name, "lease": "1s"})
        place.submit(unused_name, "a", {"slow": 60})
        eventually(lambda: place.ok("GET", f"/v1/work/{unused_name}/a")["state"] == "CLAIMED", "it is claimed")
        server.kill()
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        place.submit(unused_name, "b")
        assert place.end(unused_name, "b")["state"] == "DONE"
        eventually(lambda: place.ok("GET", f"/v1/work/{unused_name}/a")["attempts"] == 2, "it is called again")


def test_metrics_count_the_calls(here, tmp_path, unused_name):
    def metric(name):
        with urllib.request.urlopen(here.url + "/metrics", timeout=60) as reply:
            return float(reply.read().decode().split(f"\nquipu_drive_{name} ")[1].split()[0])

    Function(here.functions, tmp_path, unused_name, SEND)
    before = metric("calls_total")
    here.ok("PUT", f"/v1/work/{unused_name}", {"each": unused_name})
    here.submit(unused_name, "a")
    here.end(unused_name, "a")
    assert metric("calls_total") > before
    eventually(lambda: metric("running") == 0, "nothing runs")


# ---- logs ----

# Fails for events that say so, as a whole or one by one; tells the numbers it was given.
BILL = """
def handle(event):
    note(got=[[e["key"], e["data"]["n"]] for e in event["events"]], partition=event["partition"])
    if any(e["data"].get("slow") for e in event["events"]):
        time.sleep(0.05)
    bad = [e for e in event["events"] if e["data"].get("bad")]
    if bad and os.environ.get("PARTIAL"):
        return {"batchItemFailures": [{"itemIdentifier": str(e["sequence"])} for e in bad]}
    if bad:
        raise ValueError("bad order")
    return {}
"""


def got(function):
    """What the function was given, in the order of its calls."""
    return [tuple(one) for line in function.lines() if "got" in line for one in line["got"]]


def by_key(events):
    keys = {}
    for key, n in events:
        if n not in keys.setdefault(key, []):
            keys[key].append(n)
    return keys


def append(place, log, events):
    place.ok("POST", f"/v1/logs/{log}", {"events": [{"key": key, "data": data} for key, data in events]})


def read_all(place, log, parked=0):
    def is_read():
        status, lag = place.ask("GET", f"/v1/logs/{log}/consumers/billing/lag")
        assert status == 200 or lag["error"] == "no-such-consumer"  # its first read makes it
        return status == 200 and lag["lag"] == 0 and lag["parked"] == parked

    return eventually(is_read, "all is read")


@pytest.fixture
def log(place, tmp_path, unused_name):
    """A log that a function consumes."""
    function = Function(place.functions, tmp_path, unused_name, BILL)
    place.ok("PUT", f"/v1/logs/{unused_name}", {"partitions": 2})
    place.ok("PUT", f"/v1/logs/{unused_name}/consumers/billing",
             {"function": unused_name, "batch": 5, "attempts": 2, "backoff": 1})
    yield unused_name, function
    place.ok("DELETE", f"/v1/logs/{unused_name}")


def test_a_function_is_called_with_all_events_in_the_order_of_their_keys(place, log):
    name, function = log
    path = f"/v1/logs/{name}/consumers/billing"
    assert place.ok("GET", path)["batch"] == 5 and f"log:{name}:billing" in place.drives()
    for i in range(3):
        append(place, name, [(f"k{n % 4}", {"n": 10 * i + n}) for n in range(10)])
    place.ok("PUT", path, {"parallel": 3})
    read_all(place, name)
    place.ok("POST", f"/v1/logs/{name}/split", {"partition": "0"})
    for i in range(3, 6):
        append(place, name, [(f"k{n % 4}", {"n": 10 * i + n, "slow": True}) for n in range(10)])
    read_all(place, name)
    expected = by_key([(f"k{n % 4}", 10 * i + n) for i in range(6) for n in range(10)])
    assert by_key(got(function)) == expected
    assert all(len(line["got"]) <= 5 for line in function.lines() if "got" in line)


def test_an_event_that_fails_is_found_by_halves_and_parked(place, log):
    name, function = log
    append(place, name, [("k", {"n": n, "bad": n == 3}) for n in range(8)])
    read_all(place, name, parked=1)
    parked = place.ok("GET", f"/v1/logs/{name}/consumers/billing/parked")["parked"][0]
    assert (parked["data"]["n"], parked["reason"]) == (3, "ValueError: bad order")
    assert by_key(got(function)) == {"k": list(range(8))}
    assert [("k", 3)] in [[tuple(one) for one in line["got"]] for line in function.lines() if "got" in line]


def test_failures_that_the_function_names(here, tmp_path, unused_name):
    name = unused_name
    function = Function(here.functions, tmp_path, name, BILL,
                        Environment={"Variables": {"NOTES": str(tmp_path / f"{name}.notes"), "PARTIAL": "1"}})
    here.ok("PUT", f"/v1/logs/{name}", {"partitions": 1})
    append(here, name, [("k", {"n": n, "bad": n == 3}) for n in range(6)])
    here.ok("PUT", f"/v1/logs/{name}/consumers/billing",
            {"function": name, "attempts": 3, "backoff": 1, "bisect": False})
    read_all(here, name, parked=1)
    batches = [[n for _, n in line["got"]] for line in function.lines() if "got" in line]
    assert batches == [[0, 1, 2, 3, 4, 5], [3, 4, 5], [3, 4, 5], [4, 5]]


def test_a_window_waits_for_a_full_batch(here, tmp_path, unused_name):
    name, function = unused_name, Function(here.functions, tmp_path, unused_name, BILL)
    here.ok("PUT", f"/v1/logs/{name}", {"partitions": 1})
    here.ok("PUT", f"/v1/logs/{name}/consumers/billing", {"function": name, "batch": 3, "window": "1m"})
    for n in range(3):
        append(here, name, [("k", {"n": n})])
    read_all(here, name)
    assert [line["got"] for line in function.lines() if "got" in line] == [[["k", 0], ["k", 1], ["k", 2]]]


def test_a_paused_consumer_waits_and_a_removed_one_is_gone(here, tmp_path, unused_name):
    name, function = unused_name, Function(here.functions, tmp_path, unused_name, BILL)
    path = f"/v1/logs/{name}/consumers/billing"
    assert here.ask("PUT", path, {"function": name})[0] == 404
    here.ok("PUT", f"/v1/logs/{name}", {"partitions": 1})
    assert here.ask("PUT", path, {"batch": 7})[0] == 400 and here.ask("GET", path)[0] == 404
    here.ok("PUT", path, {"function": name, "paused": True})
    append(here, name, [("k", {"n": 1})])
    here.ok("PUT", path, {"paused": False})
    read_all(here, name)
    here.ok("DELETE", path)
    assert f"log:{name}:billing" not in here.drives() and here.ask("GET", path)[0] == 404
    assert got(function) == [("k", 1)]


def test_a_consumer_goes_on_when_its_server_was_killed(tmp_path, unused_name):
    name, folder = unused_name, str(tmp_path / "data")
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        function = Function(place.functions, tmp_path, name, BILL)
        place.ok("PUT", f"/v1/logs/{name}", {"partitions": 3})
        place.ok("PUT", f"/v1/logs/{name}/consumers/billing", {"function": name, "batch": 2})
        append(place, name, [(f"k{n % 5}", {"n": n, "slow": True}) for n in range(50)])
        eventually(lambda: len(got(function)) > 4, "some are called")
        server.kill()
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        read_all(place, name)
    assert by_key(got(function)) == by_key([(f"k{n % 5}", n) for n in range(50)])


def test_the_commands_of_triggers(here, tmp_path, unused_name):
    name, function = unused_name, Function(here.functions, tmp_path, unused_name, SEND)
    consumer = Function(here.functions, tmp_path, name + "-bill", BILL)
    here.ok("PUT", f"/v1/logs/{name}", {"partitions": 1})
    on = here.url
    output("trigger", "add", f"work:{name}", name, "--lanes", "3", on=on)
    output("trigger", "add", f"log:{name}:billing", name + "-bill", "--batch", "7", "--retries", "2", on=on)
    here.submit(name, "a")
    append(here, name, [("k", {"n": 1})])
    assert here.end(name, "a")["state"] == "DONE" and function.events()
    read_all(here, name)
    assert consumer.events()
    listed = {row["id"]: row for row in items("trigger", "ls", on=on) if "id" in row}
    assert (listed[f"work:{name}"]["each"], listed[f"work:{name}"]["concurrency"]) == (name, 3)
    assert (listed[f"log:{name}:billing"]["batch"], listed[f"log:{name}:billing"]["attempts"]) == (7, 3)
    output("trigger", "pause", f"log:{name}:billing", on=on)
    output("trigger", "set", f"work:{name}", "--lanes", "4", on=on)
    assert here.drives()[f"log:{name}:billing"]["paused"] and here.drives()[f"work:{name}"]["concurrency"] == 4
    output("trigger", "resume", f"log:{name}:billing", on=on)
    assert items("trigger", "show", f"log:{name}:billing", on=on)[0]["paused"] is False
    assert name in output("trigger", "ls", "--table", on=on)
    for one in (f"log:{name}:billing", f"work:{name}"):
        output("trigger", "rm", one, on=on)
        assert one not in here.drives()
    assert "is for triggers of tables" in quipu("trigger", "add", f"work:{name}", name, "--filter", "{}", on=on).stderr
    assert "there is no function" in quipu("trigger", "add", f"work:{name}", "nobody", on=on).stderr


def test_a_drive_that_another_process_writes_is_seen_by_whoever_waits(here, tmp_path, unused_name):
    """The command writes to the tables itself; the server's own long-poll must be woken by that, in every slot."""
    Function(here.functions, tmp_path, unused_name, SEND)
    for n in range(6):
        mark = here.ok("GET", "/v1/drives")["mark"]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            poll = pool.submit(urllib.request.urlopen, f"{here.url}/v1/drives?wait=60s&mark={mark}", timeout=50)
            output("work", "put", f"{unused_name}-{n}", "--each", unused_name, on=here.url)
            assert f"work:{unused_name}-{n}" in [drive["id"] for drive in json.load(poll.result())["drives"]]
    for n in range(6):
        here.ok("PUT", f"/v1/work/{unused_name}-{n}", {"each": []})
