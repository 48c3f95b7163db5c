"""What patterns were told to do `then` is done once: functions, URLs and other patterns, on Quipu and on DynamoDB
Local, and when the server is killed in between."""
import concurrent.futures
import hashlib
import hmac
import http.server
import json
import os
import threading
import urllib.request

import pytest
from conftest import boto_client, create_table
from lambdas import Function, eventually, lambda_client, queue_documents, send
from support.engines import ENGINES, database
from support.process import Quipu

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}

# Counts its calls by a write that it returns: the write happens once, whatever happens to the function.
COUNT = """
def handle(event):
    return {"quipu": {"transact": [{"Update": {
        "TableName": "counts", "Key": {"pk": {"S": event["detail"]["id"]}}, "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}}}}]}}
"""


class Place:
    """A server, and where it keeps its data."""

    def __init__(self, server, url):
        self.server, self.url = server, server.url
        self.data, self.functions = boto_client(url), lambda_client(server.url)

    def ask(self, method, path, body=None):
        return send(self.url, method, path, body)

    def ok(self, method, path, body=None):
        status, reply = self.ask(method, path, body)
        assert status in (200, 201), (method, path, status, reply)
        return reply

    def metrics(self):
        with urllib.request.urlopen(self.url + "/metrics", timeout=240) as reply:
            return reply.read().decode()


@pytest.fixture(scope="module")
def here():
    with Quipu("--memory") as server:
        yield Place(server, server.url)


@pytest.fixture(scope="module", params=ENGINES)
def place(request, tmp_path_factory):
    """On other engines two servers share the work."""
    if request.param == "embedded":
        yield request.getfixturevalue("here")
        return
    with database(request.param) as data:
        first, second = (["--on", data.url, "--functions", str(tmp_path_factory.mktemp("functions"))] for _ in "ab")
        with Quipu(*first, env=KEYS) as server, Quipu(*second, env=KEYS):
            yield Place(server, data.url)


@pytest.fixture
def function(place, tmp_path, unused_name):
    return Function(place.functions, tmp_path, unused_name)


@pytest.fixture
def own(here, tmp_path, unused_name):
    """A function of the server that keeps its data itself."""
    return Function(here.functions, tmp_path, unused_name)


@pytest.fixture
def listener():
    """A URL, and what was sent to it."""
    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", received
    server.shutdown()
    server.server_close()


def first_event(function):
    return eventually(function.events, "the function is called")[0]


def settle(place):
    """All reactions so far have been carried out: the queue of calls is empty, and so is what leads to it."""
    eventually(lambda: all("ended" in item for item in place.data.scan(TableName="quipu-invocations",
                                                                       ConsistentRead=True)["Items"]),
               "all calls are through")  # where there are no transactions, tombstones stay


def test_job_of_500_tasks_is_one_call(place, function, unused_name):
    job = "/v1/jobs/" + unused_name
    place.ok("PUT", job, {"total": 500, "then": function.name})
    pages = list(range(500)) + list(range(0, 500, 25))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda page: place.ok("POST", job + "/done", {"task": page}), pages))
    assert len({page for page, reply in zip(pages, replies) if reply["last"]}) == 1
    event = first_event(function)
    assert (event["version"], event["source"], event["detail-type"]) == ("0", "quipu.jobs", "Job COMPLETE")
    detail = event["detail"]
    assert (detail["id"], detail["state"], detail["total"], detail["done"], detail["failed"], detail["path"]) == \
        (unused_name, "COMPLETE", 500, 500, 0, job)
    assert event["time"] == detail["closed"] and "then" not in detail and event["id"]
    place.ok("POST", job + "/done", {"task": 7})
    settle(place)
    assert len(function.events()) == 1


def test_group_tells_a_url(place, listener, unused_name):
    url, received = listener
    group = "/v1/groups/" + unused_name
    place.ok("PUT", group, {"complete": {"size": 2}, "then": {"url": url, "secret": "s3cret"}})
    place.ok("POST", group + "/a%20b", {"id": "1", "kind": "x", "data": {"n": 1}})
    place.ok("POST", group + "/a%20b", {"id": "2", "kind": "y", "data": {"n": 2}})
    headers, body = eventually(lambda: received, "the URL is called")[0]
    event = json.loads(body)
    assert (event["source"], event["detail-type"]) == ("quipu.groups", "Group COMPLETE")
    detail = event["detail"]
    assert (detail["name"], detail["key"], detail["generation"], detail["count"]) == (unused_name, "a b", 1, 2)
    assert [(one["id"], one["data"]) for one in detail["events"]] == [("1", {"n": 1}), ("2", {"n": 2})]
    assert place.ok("GET", detail["path"])["count"] == 2
    signed = hmac.new(b"s3cret", headers["X-Quipu-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-Quipu-Signature"] == signed
    settle(place)
    assert len(received) == 1


def test_ten_clicks_are_in_the_call(place, function, unused_name):
    """More than one write unit: all but the first of them have items of their own."""
    group = "/v1/groups/" + unused_name
    place.ok("PUT", group, {"complete": {"size": 10}, "late": "append", "then": function.name})
    for n in range(12):
        place.ok("POST", group + "/k", {"id": f"click-{n}", "data": {"page": f"/shoes/{n}", "more": "x" * 200}})
    detail = first_event(function)["detail"]
    assert [event["data"]["page"] for event in detail["events"]] == [f"/shoes/{n}" for n in range(10)]
    assert "truncated" not in detail and detail["count"] == 10
    settle(place)
    assert len(function.events()) == 1


def test_larger_group_says_where_its_events_are(here, own, unused_name):
    group = "/v1/groups/" + unused_name
    here.ok("PUT", group, {"complete": {"size": 5}, "then": own.name})
    for n in range(5):
        here.ok("POST", group + "/k", {"id": str(n), "data": "x" * 250000})
    detail = first_event(own)["detail"]
    assert detail["truncated"] is True and detail["count"] == 5 and "events" not in detail
    assert len(here.ok("GET", detail["path"])["events"]) > 0


def test_bucket_of_several_parts_is_in_the_call(here, own, unused_name):
    period = "/v1/periods/" + unused_name
    here.ok("PUT", period, {"every": "1h", "shards": 1})
    for n in range(3):
        here.ok("POST", period, {"id": str(n), "time": "2020-01-01T00:00:00Z", "data": {"n": n, "text": "x" * 200000}})
    here.ok("PUT", period, {"every": "1s", "then": own.name})
    detail = first_event(own)["detail"]
    assert detail["parts"] > 1 and "truncated" not in detail
    assert sorted(event["data"]["n"] for event in detail["events"]) == [0, 1, 2]


def test_work_that_is_given_up(here, own, unused_name):
    queue = "/v1/work/" + unused_name
    here.ok("PUT", queue, {"lease": "1m", "attempts": 1, "backoff": "0s", "then": {"function": own.name}})
    here.ok("POST", queue + "/unit", {"data": {"n": 1}})
    claim = here.ok("POST", queue + "/claim", {"owner": "me"})
    here.ok("POST", queue + "/unit/fail", {"fence": claim["fence"], "reason": "no use"})
    event = first_event(own)
    assert (event["source"], event["detail-type"]) == ("quipu.work", "Work DEAD")
    assert (event["detail"]["queue"], event["detail"]["id"], event["detail"]["data"]) == (unused_name, "unit", {"n": 1})
    assert event["detail"]["path"] == queue + "/unit"


def test_bucket_that_is_over(here, own, unused_name):
    period = "/v1/periods/" + unused_name
    here.ok("PUT", period, {"every": "1s", "then": own.name})
    here.ok("POST", period, {"id": "e1", "data": {"n": 1}})
    event = first_event(own)
    assert (event["source"], event["detail-type"]) == ("quipu.periods", "Period DONE")
    detail = event["detail"]
    assert (detail["period"], detail["count"], detail["events"][0]["id"]) == (unused_name, 1, "e1")
    assert here.ok("GET", detail["path"])["events"][0]["data"] == {"n": 1}


def test_job_calls_another_pattern(place, unused_name):
    counter = "/v1/counters/done-" + unused_name
    failed = "/v1/counters/failed-" + unused_name
    then = [{"call": "POST " + counter, "on": "COMPLETE"}, {"call": "POST " + failed, "on": ["FAILED", "EXPIRED"]},
            {"call": "PUT /v1/documents/ends/{NewImage.id}",
             "body": {"state": "{detail.state}", "of": "{detail.total}"}}]
    for n in range(3):
        job = f"/v1/jobs/{unused_name}-{n}"
        place.ok("PUT", job, {"total": 1, "then": then})
        place.ok("POST", job + ("/failed" if n == 2 else "/done"), {"task": 0, **({"reason": "x"} if n == 2 else {})})
    eventually(lambda: place.ask("GET", counter) == (200, {"value": 2}), "two jobs are counted")
    eventually(lambda: place.ask("GET", failed) == (200, {"value": 1}), "one failure is counted")
    eventually(lambda: place.ask("GET", f"/v1/documents/ends/{unused_name}-1")[0] == 200, "the document is written")
    assert place.ok("GET", f"/v1/documents/ends/{unused_name}-1") == {"state": "COMPLETE", "of": 1}
    settle(place)
    assert place.ask("GET", counter) == (200, {"value": 2})


def test_chain_of_patterns(here, own, unused_name):
    """Jobs fill a group, and the group calls a function: each step once."""
    here.ok("PUT", "/v1/groups/" + unused_name, {"complete": {"size": 3}, "then": own.name})
    then = {"call": f"POST /v1/groups/{unused_name}/all", "body": {"id": "{eventID}", "data": "{detail.id}"}}
    for n in range(3):
        here.ok("PUT", f"/v1/jobs/{unused_name}-{n}", {"total": 1, "then": then})
        here.ok("POST", f"/v1/jobs/{unused_name}-{n}/done", {"task": 0})
    detail = first_event(own)["detail"]
    assert sorted(event["data"] for event in detail["events"]) == [f"{unused_name}-{n}" for n in range(3)]
    settle(here)
    assert len(own.events()) == 1


def test_chain_that_bites_its_tail_ends(here, unused_name):
    here.ok("PUT", "/v1/groups/" + unused_name, {
        "complete": {"size": 1}, "late": "new",
        "then": {"call": f"POST /v1/groups/{unused_name}/k", "body": {"id": "{eventID}", "data": 1}}})
    here.ok("POST", f"/v1/groups/{unused_name}/k", {"id": "first", "data": 1})
    said = eventually(lambda: [one for one in queue_documents(here.data, "reactions")
                               if one["requestPayload"]["detail"].get("name") == unused_name], "the loop is cut")
    assert "by its own doing" in said[0]["responsePayload"]["errorMessage"]
    settle(here)
    assert here.ok("GET", f"/v1/groups/{unused_name}/k")["generation"] < 25


# Sends to the group whose completion it is called for, and so is the cause of its next call.
BITES_ITS_TAIL = """
import urllib.request

def handle(event):
    detail = event["detail"]
    url = os.environ["AWS_ENDPOINT_URL"] + "/v1/groups/" + detail["name"] + "/" + detail["key"]
    urllib.request.urlopen(urllib.request.Request(
        url, json.dumps({"id": event["id"], "data": 1}).encode(), {
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]}), timeout=180).close()
"""


def test_function_that_calls_itself_is_told_in_its_own_log_that_it_was_stopped(here, tmp_path, unused_name):
    function = Function(here.functions, tmp_path, unused_name, BITES_ITS_TAIL)
    here.ok("PUT", "/v1/groups/" + unused_name, {"complete": {"size": 1}, "late": "new", "then": unused_name})
    here.ok("POST", f"/v1/groups/{unused_name}/k", {"id": "first", "data": 1})

    def told():
        with urllib.request.urlopen(f"{here.url}/v1/functions/{unused_name}/logs", timeout=180) as reply:
            return [line for line in reply.read().decode().splitlines() if line.startswith("LOOP ")]

    line = eventually(told, "the log says that it was stopped")[0]
    assert unused_name in line and "at depth 16" in line and "in groups" in line
    settle(here)
    assert len({event["id"] for event in function.events()}) == 16


def test_function_that_is_not_there(here, unused_name):
    here.ok("PUT", "/v1/jobs/" + unused_name, {"total": 1, "then": "nobody-" + unused_name})
    here.ok("POST", f"/v1/jobs/{unused_name}/done", {"task": 0})
    said = eventually(lambda: [one for one in queue_documents(here.data, "reactions")
                               if one["requestPayload"]["detail"].get("id") == unused_name], "it is put aside")
    assert said[0]["requestContext"]["condition"] == "FunctionNotFound"
    assert said[0]["requestContext"]["functionArn"] == "nobody-" + unused_name


def test_pattern_that_refuses(here, unused_name):
    here.ok("PUT", "/v1/jobs/" + unused_name, {
        "total": 1, "then": {"call": "POST /v1/counters/x", "body": {"by": "{detail.id}"}}})
    here.ok("POST", f"/v1/jobs/{unused_name}/done", {"task": 0})
    said = eventually(lambda: [one for one in queue_documents(here.data, "reactions")
                               if one["requestPayload"]["detail"].get("id") == unused_name], "it is put aside")
    assert "status 400" in said[0]["responsePayload"]["errorMessage"]
    assert said[0]["requestContext"]["functionArn"] == "POST /v1/counters/x"


def test_bad_reaction_by_another_hand_holds_up_nobody(here, own, unused_name):
    """Items may be written by a plain SDK, so what was never checked may stand there."""
    job = {"id": {"S": unused_name + "-bad"}, "state": {"S": "OPEN"}, "then": {"S": "{\"func\":1}"}}
    here.ok("PUT", "/v1/jobs/" + unused_name, {"total": 1, "then": own.name})
    here.data.put_item(TableName="quipu-jobs", Item=job)
    here.data.put_item(TableName="quipu-jobs", Item={**job, "state": {"S": "COMPLETE"}})
    here.ok("POST", f"/v1/jobs/{unused_name}/done", {"task": 0})
    first_event(own)
    said = eventually(lambda: [one for one in queue_documents(here.data, "reactions")
                               if one["requestPayload"]["detail"].get("id") == unused_name + "-bad"], "it is put aside")
    assert said[0]["requestContext"]["condition"] == "BadReaction" and said[0]["then"] == "{\"func\":1}"
    metrics = here.metrics()
    assert "\nquipu_reactions_total{what=\"called\"} " in metrics
    assert "\nquipu_reactions_total{what=\"refused\"} 0\n" not in metrics


@pytest.mark.parametrize("then", [7, True, "", "two words", {}, {"url": "ftp://x"}, {"call": "POST /v1/nothing"},
                                  {"function": "f", "x": 1}, ["f"] * 11, "x" * 20000])
def test_bad_reactions_are_refused(here, unused_name, then):
    for path, body in (("/v1/jobs/", {"total": 1}), ("/v1/groups/", {"complete": {"size": 1}}),
                       ("/v1/periods/", {"every": "1h"}), ("/v1/work/", {"lease": "1m"})):
        status, reply = here.ask("PUT", path + unused_name, {**body, "then": then})
        assert (status, reply["error"]) == (400, "bad-request"), (path, reply)
        assert reply["message"].startswith("then ")
    assert here.ask("GET", "/v1/jobs/" + unused_name)[0] == 404


def counts(client):
    items = client.scan(TableName="counts", ConsistentRead=True)["Items"]
    return {item["pk"]["S"]: int(item["n"]["N"]) for item in items}


def test_killed_between_the_end_and_the_reaction(tmp_path):
    """First by a server that has no functions, then by one that is killed as soon as it has answered."""
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        create_table(boto_client(server.url), "counts")
        Function(lambda_client(server.url), tmp_path, "count", COUNT)
    with Quipu("--data", data, "--no-functions") as server:
        place = Place(server, server.url)
        place.ok("PUT", "/v1/jobs/waiting", {"total": 1, "then": "count"})
        place.ok("POST", "/v1/jobs/waiting/done", {"task": 0})
        server.kill()
    for n in range(4):
        with Quipu("--data", data) as server:
            place = Place(server, server.url)
            place.ok("PUT", f"/v1/jobs/j{n}", {"total": 1, "then": "count"})
            place.ok("POST", f"/v1/jobs/j{n}/done", {"task": 0})
            server.kill()
    with Quipu("--data", data) as server:
        place = Place(server, server.url)
        wanted = {"waiting": 1, **{f"j{n}": 1 for n in range(4)}}
        eventually(lambda: len(counts(place.data)) == len(wanted), "all have been told")
        settle(place)
        assert counts(place.data) == wanted
    assert os.path.isdir(data)
