"""Jobs that start their tasks: the server calls a function, a URL or a pattern for each of them."""
import json
import os
import subprocess
import urllib.request

import places
import pytest
from lambdas import Function, eventually
from support.engines import ENGINES
from support.process import BINARY, Quipu

# Fails as often as its item says, the third time when it may.
PAGE = """
def handle(event):
    item = event.get("item") or {}
    fails = item.get("fails", 0) if isinstance(item, dict) else 0
    if event["attempt"] <= fails:
        while event["attempt"] == 3 and not os.path.exists(os.environ["NOTES"] + ".go"):
            time.sleep(0.01)
        raise ValueError("no ink")
    return {"page": event["task"], "attempt": event["attempt"]}
"""


class Place(places.Place):
    def lines(self, job, query, body):
        request = urllib.request.Request(f"{self.url}/v1/jobs/{job}/items?{query}", body.encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def end(self, job):
        return eventually(lambda: (lambda told: told if told["state"] != "OPEN" else None)(
            self.ok("GET", f"/v1/jobs/{job}?wait=20s")), f"{job} ends")

    def results(self, job):
        results, after = [], ""
        while True:
            page = self.ok("GET", f"/v1/jobs/{job}/results{after}")
            results += page["results"]
            if "next" not in page:
                return results
            after = f"?after={page['next']}"


@pytest.fixture(scope="module", params=ENGINES)
def place(request, tmp_path_factory):
    """On other engines two servers share the tasks."""
    with places.served(request.param, tmp_path_factory) as url:
        yield Place(url)


@pytest.fixture(scope="module")
def here():
    with Quipu("--memory") as server:
        yield Place(server.url)


def test_each_task_is_called_and_then_has_all_results(place, tmp_path, unused_name):
    function = Function(place.functions, tmp_path, unused_name, PAGE)
    (tmp_path / "then").mkdir()
    last = Function(place.functions, tmp_path / "then", unused_name + "-then")
    place.ok("PUT", f"/v1/jobs/{unused_name}",
             {"total": 300, "each": unused_name, "concurrency": 20, "then": last.name})
    assert place.end(unused_name)["state"] == "COMPLETE"
    event = eventually(last.events, "then is called")[0]
    # On a slow machine a call may take longer than it may, and is made again.
    assert [(told["task"], told["result"]["page"]) for told in event["detail"]["results"]] == [
        (task, task) for task in range(300)]
    assert event["detail"]["failures"] == [] and len(last.events()) == 1
    tasks = [event["task"] for event in function.events()]
    assert sorted(set(tasks)) == list(range(300))
    assert function.events()[0].keys() == {"job", "task", "attempt"}
    eventually(lambda: place.ok("GET", "/v1/drives")["drives"] == [], "its drive is gone")


def test_attempts_failures_and_redrive(here, tmp_path, unused_name):
    function = Function(here.functions, tmp_path, unused_name, PAGE, Timeout=300)
    items = [{"fails": 0}, {"fails": 2}, {"fails": 4}]
    path = f"/v1/jobs/{unused_name}"
    here.ok("PUT", path, {"items": items, "each": unused_name, "attempts": 3, "backoff": 1})
    # A job that is FAILED begins no further call.
    eventually(lambda: here.ok("GET", path)["done"] == 2, "the others are done")
    open(function.notes + ".go", "w").close()
    told = here.end(unused_name)
    assert (told["state"], told["failed"]) == ("FAILED", 1)
    assert here.ok("GET", path + "/failures")["failures"] == [{"task": 2, "reason": "ValueError: no ink"}]
    assert here.results(unused_name) == [{"task": 0, "result": {"page": 0, "attempt": 1}},
                                         {"task": 1, "result": {"page": 1, "attempt": 3}}]
    assert here.ok("POST", path + "/redrive", {})["redriven"] == [2]
    assert here.end(unused_name)["state"] == "FAILED"  # it was called again, as often as before
    assert [event["attempt"] for event in function.events() if event["task"] == 2] == [1, 2, 3, 1, 2, 3]


def test_no_more_than_its_concurrency_at_a_time_and_none_while_paused(here, tmp_path, unused_name):
    source = """
def handle(event):
    note(begin=event["task"])
    time.sleep(0.02)
    note(end=event["task"])
"""
    function = Function(here.functions, tmp_path, unused_name, source)
    path = f"/v1/jobs/{unused_name}"
    here.ok("PUT", path, {"total": 40, "each": unused_name, "concurrency": 3, "paused": True})
    assert here.ok("GET", path)["paused"] is True
    assert function.events() == []
    here.ok("PATCH", path, {"paused": False})
    assert here.end(unused_name)["state"] == "COMPLETE"
    running, most = 0, 0
    for note in function.lines():
        if "event" in note:
            continue
        running += 1 if "begin" in note else -1
        most = max(most, running)
    assert 1 <= most <= 3, most
    assert here.ok("GET", path)["concurrency"] == 3


def test_items_in_lines_and_of_a_table(place, tmp_path, unused_name):
    function = Function(place.functions, tmp_path, unused_name, PAGE)
    lines, table = unused_name + "-lines", unused_name + "-table"
    place.ok("PUT", f"/v1/jobs/{lines}", {"each": unused_name, "concurrency": 20})
    for start in range(0, 300, 100):
        body = "".join(json.dumps({"line": n}) + "\n" for n in range(start, start + 100))
        end = "&end=true" if start == 200 else ""
        for _ in range(2):  # whoever does not know whether it has arrived sends it again
            assert place.lines(lines, f"from={start}{end}", body)["stored"] == start + 100
    assert place.end(lines)["total"] == 300
    seen = {event["task"]: event["item"] for event in function.events()}
    assert seen == {n: {"line": n} for n in range(300)}

    place.ok("PUT", f"/v1/jobs/{table}", {"each": unused_name, "from": {
        "table": "quipu-jobs", "query": {"KeyConditionExpression": "id = :id",
                                         "ExpressionAttributeValues": {":id": {"S": lines}}}}})
    told = place.end(table)
    assert (told["state"], told["total"]) == ("COMPLETE", 1)
    assert any(event.get("item", {}).get("id") == lines for event in function.events() if event["job"] == table)


def test_a_table_of_many_items(here, tmp_path, unused_name):
    function = Function(here.functions, tmp_path, unused_name, PAGE)
    for n in range(0, 700, 100):
        batch = [f"{m:04}" for m in range(n, n + 100)]
        here.ok("PUT", f"/v1/jobs/{unused_name}-source{n}", {"tasks": batch})
        here.ok("POST", f"/v1/jobs/{unused_name}-source{n}/done",
                {"tasks": [{"task": name, "result": name * 20} for name in batch]})
    here.ok("PUT", f"/v1/jobs/{unused_name}", {"each": unused_name, "concurrency": 50, "from": {
        "table": "quipu-job-parts", "scan": {"FilterExpression": "attribute_exists(results)"}}})
    told = here.end(unused_name)
    assert told["state"] == "COMPLETE" and told["total"] > 0
    items = {event["task"]: json.dumps(event["item"]["part"]) + event["item"]["task"]
             for event in function.events() if event["job"] == unused_name}
    assert len(items) == told["total"] and len(set(items.values())) == told["total"]


def test_a_job_is_a_task_of_another(place, tmp_path, unused_name):
    Function(place.functions, tmp_path, unused_name, PAGE)
    outer = f"/v1/jobs/{unused_name}-outer"
    place.ok("PUT", outer, {"total": 2, "tolerate": 1})
    place.ok("PUT", f"/v1/jobs/{unused_name}-a", {
        "total": 2, "each": unused_name, "parent": {"job": unused_name + "-outer", "task": 0}})
    place.ok("PUT", f"/v1/jobs/{unused_name}-b", {"items": [{"fails": 9}], "each": unused_name, "attempts": 1,
                                                  "parent": {"job": unused_name + "-outer", "task": 1}})
    told = place.end(unused_name + "-outer")
    assert (told["state"], told["done"], told["failed"]) == ("COMPLETE", 1, 1)
    assert place.results(unused_name + "-outer") == [
        {"task": 0, "result": {"job": unused_name + "-a", "total": 2, "done": 2, "failed": 0}}]
    assert place.ok("GET", outer + "/failures")["failures"] == [
        {"task": 1, "reason": f"The job {unused_name}-b is FAILED."}]


def test_nothing_to_do_ends_at_once(place, tmp_path, unused_name):
    last = Function(place.functions, tmp_path, unused_name)
    place.ok("PUT", f"/v1/jobs/{unused_name}", {"items": [], "each": "nobody", "then": unused_name})
    assert place.end(unused_name)["state"] == "COMPLETE"
    assert eventually(last.events, "then is called")[0]["detail"]["results"] == []


def test_a_function_that_is_not_there_fails_its_tasks(here, unused_name):
    here.ok("PUT", f"/v1/jobs/{unused_name}", {"total": 1, "each": "nobody-" + unused_name, "attempts": 1})
    assert here.end(unused_name)["state"] == "FAILED"
    reason = here.ok("GET", f"/v1/jobs/{unused_name}/failures")["failures"][0]["reason"]
    assert reason.startswith("There is no function")


def test_a_pattern_as_the_target(here, unused_name):
    here.ok("PUT", f"/v1/jobs/{unused_name}", {"items": [3, 4], "each": {
        "call": f"POST /v1/counters/{unused_name}", "body": {"by": "{item}"}}})
    assert here.end(unused_name)["state"] == "COMPLETE"
    assert here.ok("GET", f"/v1/counters/{unused_name}")["value"] == 7


def test_a_server_that_was_killed_goes_on(tmp_path, unused_name):
    """Every task is called, each result is counted once, and `then` has all of them."""
    folder = str(tmp_path / "data")
    (tmp_path / "then").mkdir()
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        slow = PAGE.replace("    return", "    time.sleep(0.01)\n    return")
        function = Function(place.functions, tmp_path, unused_name, slow)
        last = Function(place.functions, tmp_path / "then", unused_name + "-then")
        place.ok("PUT", f"/v1/jobs/{unused_name}",
                 {"total": 400, "each": unused_name, "concurrency": 8, "then": last.name})
        eventually(lambda: len(function.events()) > 50, "it has begun")
        server.kill()
    with Quipu("--data", folder) as server:
        place = Place(server.url)
        assert place.end(unused_name)["state"] == "COMPLETE"
        event = eventually(last.events, "then is called")[0]
        assert [result["task"] for result in event["detail"]["results"]] == list(range(400))
        assert {event["task"] for event in function.events()} == set(range(400))
        assert len(last.events()) == 1
    assert os.path.exists(folder)


def test_job_start_sends_a_file_and_goes_on(here, tmp_path, unused_name):
    def start(*words, stdin=None):
        return subprocess.run([BINARY, "job", "start", unused_name, "--each", "nobody", "--paused", "true", *words,
                               "--on", here.url], input=stdin, capture_output=True, text=True,
                           timeout=60, env=places.KEYS)

    file = tmp_path / "items.jsonl"
    file.write_text("".join(f'{{"n": {n}}}\n\n' for n in range(5000)))
    head = here.url + f"/v1/jobs/{unused_name}"
    here.ok("PUT", f"/v1/jobs/{unused_name}", {"each": "nobody", "paused": True})
    here.lines(unused_name, "from=0", '{"n": 0}\n{"n": 1}\n')  # somebody was interrupted
    ended = start("--items", str(file))
    assert ended.returncode == 0, ended.stderr
    assert here.ok("GET", f"/v1/jobs/{unused_name}")["total"] == 5000, head
    tasks = here.ok("GET", f"/v1/jobs/{unused_name}/tasks?from=4999")["tasks"]
    assert tasks == [{"task": 4999, "item": {"n": 4999}}]
    assert start("--items", "-", stdin=file.read_text()).returncode == 0  # once more changes nothing
    ended = start("--items", "-", stdin="{}\n")
    assert ended.returncode == 1 and "5000 items already" in ended.stderr
    ended = subprocess.run([BINARY, "job", "start", unused_name], capture_output=True, text=True,
                           timeout=60, env=places.KEYS)
    assert ended.returncode == 2 and "--each is missing" in ended.stderr
    ended = start("--items", "-", "--parent", "{}")
    assert ended.returncode == 2 and "parent must be" in ended.stderr
