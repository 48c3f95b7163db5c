"""Jobs over HTTP, on all engines: counted once, one is last, whatever comes in between."""
import json
import time
import urllib.request

import pytest
from conftest import boto_client
from test_patterns import at_once, face, ok, refused  # noqa: F401


@pytest.fixture
def job(unused_name):
    return "/v1/jobs/" + unused_name


def test_pages_with_duplicate_deliveries(face, job):
    """The seed's scenario: 500 pages done side by side, some of them twice; one page is the last."""
    ok(face, "PUT", job, {"total": 500})
    pages = [page for page in range(500)] + list(range(0, 500, 50))
    replies = at_once(8, lambda i: [ok(face, "POST", job + "/done", {"task": page}) for page in pages[i::8]])
    replies = [reply for part in replies for reply in part]
    order = [page for i in range(8) for page in pages[i::8]]
    assert len({page for page, reply in zip(order, replies) if reply["last"]}) == 1
    assert sum(reply["counted"] for reply in replies) == 500
    end = ok(face, "GET", job)
    assert (end["state"], end["done"], end["missing"]) == ("COMPLETE", 500, 0)


def test_what_is_missing(face, job):
    ok(face, "PUT", job, {"total": 600, "first": 1})
    done = ok(face, "POST", job + "/done", {"tasks": [n for n in range(1, 601) if n not in (17, 300, 600)]})
    assert done["counted"] == 597
    assert ok(face, "GET", job + "/missing") == {"missing": [17, 300, 600]}
    assert ok(face, "GET", job + "?progress=1")["done"] == 597
    assert ok(face, "POST", job + "/done?progress=1", {"task": 17})["done"] == 598


def test_names_and_results(face, job):
    names = [f"page {i} of a report" for i in range(100)]
    ok(face, "PUT", job, {"tasks": names})
    ok(face, "PUT", job, {"tasks": names})
    for i, name in enumerate(names[:3]):
        ok(face, "POST", job + "/done", {"task": name, "result": {"words": i}})
    assert ok(face, "POST", job + "/done", {"tasks": names[3:] + ["no such page"]})["unknown"] == ["no such page"]
    assert ok(face, "GET", job)["state"] == "COMPLETE"
    results = {r["task"]: r["result"] for r in ok(face, "GET", job + "/results")["results"]}
    assert results == {name: {"words": i} for i, name in enumerate(names[:3])}


def test_failures_are_tolerated_and_tried_again(face, job):
    ok(face, "PUT", job, {"total": 10, "tolerate": "20%"})
    for task in (3, 4):
        assert ok(face, "POST", job + "/failed", {"task": task, "reason": f"no ink for {task}"})["state"] == "OPEN"
    assert ok(face, "POST", job + "/failed", {"task": 5})["state"] == "FAILED"
    assert ok(face, "GET", job + "/failures")["failures"][0] == {"task": 3, "reason": "no ink for 3"}
    assert ok(face, "POST", job + "/redrive") == {"redriven": [3, 4, 5], "state": "OPEN"}
    last = ok(face, "POST", job + "/done", {"tasks": list(range(10))})
    assert (last["counted"], last["last"]) == (10, True)


def test_growing_and_late_totals(face, job):
    ok(face, "PUT", job, {})
    ok(face, "POST", job + "/done", {"tasks": [0, 1, 2]})
    assert ok(face, "GET", job)["done"] == 3
    assert ok(face, "PUT", job, {"total": 4})["state"] == "OPEN"
    assert ok(face, "PATCH", job, {"total": 300})["total"] == 300
    assert ok(face, "POST", job + "/done", {"tasks": list(range(3, 300))})["last"]
    assert refused(face, "PATCH", job, {"total": 301}) == (409, "job-closed")


def test_deadline_by_the_sweep(face, job):
    ok(face, "PUT", job, {"total": 2, "deadline": "4s"})
    ok(face, "POST", job + "/done", {"task": 0})
    end = ok(face, "GET", job + "?wait=30s")
    while end["state"] in ("OPEN", "CLOSING"):
        end = ok(face, "GET", job + "?wait=30s")
    assert (end["state"], end["done"], end["missing"]) == ("EXPIRED", 1, 1)
    assert refused(face, "POST", job + "/done", {"task": 1}) == (409, "deadline-over")
    assert ok(face, "GET", job + "/missing") == {"missing": [1]}
    assert job.rsplit("/", 1)[1] in [j["id"] for j in ok(face, "GET", "/v1/jobs?state=expired&limit=1000")["jobs"]]


def test_kept_jobs_go_away_by_themselves(face, job):
    ok(face, "PUT", job, {"total": 1, "keep": "1s"})
    ok(face, "POST", job + "/done", {"task": 0, "result": "x"})
    while face.ask("GET", job)[0] == 200:
        time.sleep(0.1)
    assert refused(face, "GET", job) == (404, "no-such-job")


def test_who_waits_is_told(face, job):
    ok(face, "PUT", job, {"total": 1})
    waits = (lambda: ok(face, "GET", job + "?wait=30s"), lambda: ok(face, "POST", job + "/done", {"task": 0}))
    assert at_once(2, lambda i: waits[i]())[0]["state"] == "COMPLETE"


def test_progress_as_events(face, job):
    """Server-sent events: progress while it is open, then the end, and the stream is over."""
    ok(face, "PUT", job, {"total": 3})
    with urllib.request.urlopen(face.url + job + "/events", timeout=240) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        seen = []
        for line in stream:
            line = line.decode().rstrip("\n")
            if line.startswith("data: "):
                seen.append(json.loads(line[6:]))
                if seen[-1]["state"] == "OPEN" and seen[-1]["done"] < 3:
                    ok(face, "POST", job + "/done", {"task": seen[-1]["done"]})
    assert [event["done"] for event in seen] == [0, 1, 2, 3]
    assert seen[-1]["state"] == "COMPLETE"


def test_open_jobs_are_listed_and_deleted(face, job):
    ids = [job.rsplit("/", 1)[1] + f"-{i}" for i in range(5)]
    for id in ids:
        ok(face, "PUT", "/v1/jobs/" + id, {"total": 1})
    ok(face, "POST", f"/v1/jobs/{ids[2]}/done", {"task": 0})
    listed, after = [], ""
    while after is not None:
        page = ok(face, "GET", "/v1/jobs?state=open&limit=2" + (after and "&after=" + after))
        listed += [j["id"] for j in page["jobs"]]
        after = page.get("next")
    assert [id for id in listed if id in ids] == ids[:2] + ids[3:]
    for id in ids:
        assert ok(face, "DELETE", "/v1/jobs/" + id) == {"deleted": True}
        assert refused(face, "GET", "/v1/jobs/" + id) == (404, "no-such-job")


@pytest.mark.parametrize("method, path, body, status, error", [
    ("POST", "/done", {"task": 0}, 404, "no-such-job"),
    ("GET", "", None, 404, "no-such-job"),
    ("PUT", "", {"total": -1}, 400, "bad-request"),
    ("PUT", "", {"total": 3, "deadline": "soon"}, 400, "bad-request"),
    ("PUT", "", {"total": 3, "layout": "heap"}, 400, "bad-request"),
])
def test_clear_refusals(face, job, method, path, body, status, error):
    assert refused(face, method, job + path, body) == (status, error)


def test_refusals_of_an_open_job(face, job):
    ok(face, "PUT", job, {"total": 3})
    assert refused(face, "POST", job + "/done", {"task": 3}) == (400, "task-outside")
    assert refused(face, "POST", job + "/done", {"task": "three"}) == (400, "task-outside")
    assert refused(face, "POST", job + "/done", {"task": -1}) == (400, "task-outside")
    assert refused(face, "PUT", job, {"total": 2}) == (409, "wrong-total")
    assert refused(face, "PUT", job, {"tasks": ["a"]}) == (409, "other-tasks")
    status, reply, _ = face.ask("POST", job + "/done", {"task": 0, "result": "x" * 500_000})
    assert (status, reply["error"]) == (413, "too-large")
    assert ok(face, "GET", job)["done"] == 0


def test_a_plain_sdk_sees_the_tables(face, job):
    """The head of a job is an ordinary item, and what a task costs can be asked for."""
    ok(face, "PUT", job, {"total": 2, "then": "tell-me"})
    cost = ok(face, "POST", job + "/done?cost=1", {"task": 0})["cost"]
    assert (cost["writeUnits"], cost["readUnits"]) == (1, 0.5)  # the first of its leaf
    client = boto_client(face.database)
    item = client.get_item(TableName="quipu-jobs", Key={"id": {"S": job.rsplit("/", 1)[1]}})["Item"]
    assert (item["state"]["S"], item["total"]["N"], item["then"]["S"]) == ("OPEN", "2", "tell-me")
