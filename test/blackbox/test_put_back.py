"""What GET of a pattern's resource answers can be PUT back as it is, and then nothing has changed."""
import json
import re
import urllib.error
import urllib.request

import pytest
from support.engines import ENGINES, server_on

THEN = {"call": "POST /v1/counters/ends", "on": "COMPLETE"}

# Of each route that has GET and PUT: how the resource comes to be, with every setting that there is.
RESOURCES = {
    "counter": [("PUT", "/v1/counters/c", {"value": 7})],
    "document": [("PUT", "/v1/documents/d/k", {"version": 7, "a": [1]})],
    "group": [("PUT", "/v1/groups/g", {"complete": {"size": 2, "kinds": ["a"],
                                                    "when": "count > 1 and sum < 5 and paid > 3"},
                                       "fold": {"paid": {"sum": "a.b", "of": "a"}, "who": {"distinct": "*"}},
                                       "quiet": "90s", "deadline": "2h", "late": "new", "keep": "1d", "then": [THEN]})],
    "history": [("PUT", "/v1/history/quipu-counters", {"keep": "2h", "versions": 3})],
    "history without settings": [("PUT", "/v1/history/quipu-documents", {})],
    "job": [("PUT", "/v1/jobs/j", {"total": 3, "first": 5, "layout": "tree", "deadline": "1h", "tolerate": "40%",
                                   "keep": "1d", "then": THEN}),
            ("POST", "/v1/jobs/j/done", {"task": 5}), ("POST", "/v1/jobs/j/failed", {"task": 6})],
    "job without a total": [("PUT", "/v1/jobs/blank", {"layout": "set", "tolerate": 1})],
    "job of names": [("PUT", "/v1/jobs/names", {"tasks": ["a", "b"]})],
    "job that is complete": [("PUT", "/v1/jobs/full", {"total": 1, "deadline": "1h"}),
                             ("POST", "/v1/jobs/full/done", {"task": 0})],
    "job of many": [("PUT", "/v1/jobs/many", {"total": 100000})],
    "job with each": [("PUT", "/v1/jobs/each", {"items": [1, 2], "each": "f", "paused": True, "timeout": "5m",
                                                "then": "g", "parent": {"job": "outer", "task": 3}})],
    "job of a table": [("PUT", "/v1/jobs/table", {"each": {"url": "http://127.0.0.1:1"}, "paused": True, "from": {
        "table": "quipu-jobs", "scan": {}}})],
    "lease": [("POST", "/v1/leases/l", {"owner": "me", "for": "1h", "data": {"x": 1}})],
    "once": [("POST", "/v1/once/o/k", {"owner": "me", "for": "1h"})],
    "log": [("PUT", "/v1/logs/l", {"partitions": 3, "keep": "2h"}), ("POST", "/v1/logs/l", {"key": "k", "data": 1}),
            ("POST", "/v1/logs/l/split", {"partition": "0"}),
            ("POST", "/v1/logs/l/consumers/c/read", {"owner": "me"})],
    "log's consumer": [("PUT", "/v1/logs/pushed", {}),
                       ("PUT", "/v1/logs/pushed/consumers/c", {
                           "function": {"url": "http://127.0.0.1:9/", "secret": "s"}, "batch": 7, "window": "2s",
                           "attempts": 3, "backoff": "2s", "parallel": 2, "bisect": False, "timeout": "5s",
                           "paused": True})],
    "log without settings": [("PUT", "/v1/logs/plain", {})],
    "period": [("PUT", "/v1/periods/p", {"every": "1d", "grace": "5s", "shards": 2, "keep": "3h", "then": [THEN]}),
               ("POST", "/v1/periods/p", {"id": "a", "data": 1})],
    "period by cron": [("PUT", "/v1/periods/cron", {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"})],
    "work": [("PUT", "/v1/work/q", {"lease": "45s", "attempts": 2, "backoff": "3s", "keep": "1h",
                                    "then": {"call": "POST /v1/counters/ends"}, "paused": True, "timeout": "5s",
                                    "each": {"url": "http://127.0.0.1:9/", "secret": "s"}, "concurrency": 3}),
             ("POST", "/v1/work/q/a", {"data": {"x": 1}}), ("POST", "/v1/work/q/claim", {"owner": "me"})],
    "work without settings": [("PUT", "/v1/work/usual", {})],
}


@pytest.fixture(scope="module", params=ENGINES)
def server(request, tmp_path_factory):
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (running, _):
        yield running


def ask(server, method, path, body=None, text=None):
    data = text if text is not None else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def settled(text):
    """Without what time itself changes: the bucket of a period that is open now."""
    return {name: value for name, value in json.loads(text).items() if name not in ("bucket", "end")}


@pytest.mark.parametrize("name", RESOURCES)
def test_what_get_answers_is_put_back(server, name):
    calls = RESOURCES[name]
    if name.startswith("history"):
        for call in RESOURCES["counter"] + RESOURCES["document"]:
            ask(server, *call)
    for call in calls:
        status, text = ask(server, *call)
        assert status < 300, text
    made = calls[1] if name == "log's consumer" else calls[0]
    whole = r"/v1/(documents|once)/[^/]+/[^/]+|/v1/logs/[^/]+/consumers/[^/]+|/v1/[^/]+/[^/]+"
    path = re.match(whole, made[1]).group()
    status, first = ask(server, "GET", path)
    assert status == 200, first
    status, text = ask(server, "PUT", path, text=first)
    assert status == 200, text
    status, again = ask(server, "GET", path)
    assert status == 200 and settled(again) == settled(first)
    told = json.loads(first)
    for setting, value in made[2].items():  # all that was sent is told by the same name
        if setting not in ("tasks", "items", "for", "complete", "deadline"):
            assert told[setting] == value, setting


def test_every_route_with_both_is_tried(server):
    _, text = ask(server, "GET", "/v1/openapi.json")
    both = [path for path, methods in json.loads(text)["paths"].items() if {"get", "put"} <= set(methods)]
    tried = [call[1] for calls in RESOURCES.values() for call in calls if call[0] == "PUT" or call is calls[0]]
    for path in both:
        if not path.startswith("/v1/"):
            continue  # routes of the originals
        pattern = re.compile(re.sub(r"\\{[^/]*\\}", "[^/]+", re.escape(path)))
        assert any(pattern.fullmatch(one) for one in tried), path
