"""What the server does for its console: the page's files, what it tells the page, and whom it refuses."""
import contextlib
import json
import os
import re
import threading
import zlib

import pytest
from lambdas import eventually
from support.process import ROOT, Quipu, run_quipu
from support.sigv4 import sign
from support.wire import Connection, request_bytes

PAGE = os.path.join(ROOT, "src", "console", "page")
KEYS = "[one]\naws_access_key_id = AKIDONE\naws_secret_access_key = secret\n" \
       "[two]\naws_access_key_id = AKIDTWO\naws_secret_access_key = second\nrole = read\n"
BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory") as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.ini"
    path.write_text(KEYS)
    with Quipu("--credentials", str(path)) as running:
        yield running


def get(server, path, headers=None, method="GET"):
    with Connection(server.url) as wire:
        return wire.request(method, path, headers)


def signed(server, path, key="AKIDONE", secret="secret", query="", headers=None):
    host = server.url.split("//")[1]
    return sign({"Host": host, **(headers or {})}, b"", key, secret, service="quipu", method="GET", path=path,
                query=query)


def page_files():
    found = []
    for folder, _, names in os.walk(PAGE):
        found += [os.path.relpath(os.path.join(folder, name), PAGE) for name in names]
    return sorted(found)


# ---- the page ----

def test_every_file_of_the_page_is_served_as_it_is(server):
    types = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
             ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    assert "index.html" in page_files()
    with Connection(server.url) as wire:
        for name in page_files():
            for coding in ("gzip, deflate, br", None):
                reply = wire.request("GET", f"/console/{name}", {"Accept-Encoding": coding})
                assert reply.status == 200, name
                assert reply.header("content-encoding") == ("gzip" if coding else None)
                assert reply.header("content-type") == types[os.path.splitext(name)[1]]
                with open(os.path.join(PAGE, name), "rb") as file:
                    assert reply.body == file.read(), name


def test_headers_that_guard_the_page(server):
    reply = get(server, "/console/index.html")
    assert reply.header("x-content-type-options") == "nosniff"
    assert reply.header("referrer-policy") == "no-referrer"
    assert reply.header("cache-control") == "no-cache"
    assert reply.header("content-security-policy") == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def test_a_file_that_the_browser_has_is_not_sent_again(server):
    reply = get(server, "/console/index.html")
    etag = reply.header("etag")
    assert re.fullmatch('W/"[0-9a-f]{16}"', etag)
    for known in (etag, etag[2:], f'"other", {etag}', "*"):
        again = get(server, "/console/index.html", {"If-None-Match": known})
        assert (again.status, again.raw, again.header("etag")) == (304, b"", etag), known
    assert get(server, "/console/index.html", {"If-None-Match": '"other"'}).status == 200
    assert get(server, "/console/icon.svg").header("etag") != etag


def test_browsers_get_the_page_and_programs_what_they_always_got(server):
    assert get(server, "/", BROWSER).body == get(server, "/console/index.html").body
    assert get(server, "/").body.startswith(b"healthy: dynamodb.")
    assert get(server, "/", {"Accept": "*/*"}).body.startswith(b"healthy: dynamodb.")
    head = get(server, "/", BROWSER, method="HEAD")
    assert (head.status, head.header("content-type")) == (200, "text/html; charset=utf-8")
    for path in ("/console", "/console/"):
        reply = get(server, path)
        assert (reply.status, reply.header("location")) == (302, "/")


@pytest.mark.parametrize("path", ["/console/nothing.js", "/console/../console/index.html", "/console/views/",
                                  "/console/%69ndex.html", "/console//index.html", "/console/index.html/"])
def test_what_is_not_there(server, path):
    reply = get(server, path)
    assert reply.status == 404
    assert reply.json["error"] == "not-found"


def test_it_is_only_read(server):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        reply = get(server, "/console/info", method=method)
        assert (reply.status, reply.header("allow")) == (405, "GET, HEAD")


def test_a_folder_instead_of_the_binary(tmp_path):
    (tmp_path / "views").mkdir()
    (tmp_path / "index.html").write_text("<p>mine</p>")
    (tmp_path / "views" / "a.js").write_text("first")
    (tmp_path / ".hidden").write_text("secret")
    (tmp_path.parent / "outside.js").write_text("secret")
    with Quipu("--memory", "--console-folder", str(tmp_path)) as server:
        assert get(server, "/", BROWSER).body == b"<p>mine</p>"
        first = get(server, "/console/views/a.js")
        assert first.body == b"first"
        (tmp_path / "views" / "a.js").write_text("second")
        second = get(server, "/console/views/a.js", {"If-None-Match": first.header("etag")})
        assert (second.status, second.body) == (200, b"second")
        for path in ("../outside.js", "..%2foutside.js", ".hidden", "views", "views/../.hidden", "icon.svg"):
            assert get(server, f"/console/{path}").status == 404, path
    missing = run_quipu("serve", "--memory", "--port", "0", "--console-folder", str(tmp_path / "none"))
    assert missing.returncode == 1
    assert "--console-folder" in missing.stderr


# ---- what it tells the page ----

def test_info(server):
    reply = get(server, "/console/info")
    assert reply.header("content-type") == "application/json"
    info = reply.json
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["version"])
    assert info["engine"] == {"kind": "memory", "where": "", "transactions": True}
    assert (info["readOnly"], info["signIn"], info["role"]) == (False, False, "admin")
    assert (info["region"], info["prefix"], info["functions"]) == ("us-east-1", "quipu-", True)


def test_info_of_a_server_with_keys(guarded):
    info = get(guarded, "/console/info").json
    assert (info["signIn"], info["role"]) == (True, "")
    assert (info["engine"]["kind"], info["engine"]["where"]) == ("folder", ""), "strangers are not told where"
    known = get(guarded, "/console/info", signed(guarded, "/console/info")).json
    assert (known["role"], known["engine"]["where"][0]) == ("admin", "/")
    reader = get(guarded, "/console/info", signed(guarded, "/console/info", "AKIDTWO", "second")).json
    assert reader["role"] == "read"
    assert get(guarded, "/", BROWSER).status == 200, "the page itself needs no key"


def test_info_of_data_elsewhere(server):
    with Quipu("--on", server.url) as other:
        info = get(other, "/console/info").json
        assert (info["engine"]["kind"], info["engine"]["where"]) == ("remote", server.url)


def test_the_help_is_that_of_the_command_line(server):
    commands = {one["name"]: one for one in get(server, "/console/help").json["commands"]}
    for name in ("serve", "put", "table create", "function invoke", "trigger move", "job done", "top"):
        assert commands[name]["help"] == run_quipu(*name.split(), "--help").stdout, name
        assert commands[name]["summary"]
    assert "job" not in commands and len(commands) > 100


# ---- event patterns ----

def match(server, body, headers=None):
    with Connection(server.url) as wire:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return wire.request("POST", "/console/match", {"Content-Type": "application/json", **(headers or {})}, text)


def test_a_pattern_is_tried_out_by_the_server(server):
    events = [{"eventName": "INSERT", "ip": "10.1.2.3"}, {"eventName": "REMOVE", "ip": "10.1.2.3"},
              {"eventName": "INSERT", "ip": "11.0.0.1"}, {"eventName": "INSERT"}]
    reply = match(server, {"pattern": {"eventName": ["INSERT"], "ip": [{"cidr": "10.0.0.0/8"}]}, "events": events})
    assert (reply.status, reply.json) == (200, {"matches": [True, False, False, False]})
    assert match(server, {"pattern": {"a": [1]}, "events": []}).json == {"matches": []}
    many = match(server, {"pattern": {"a": [1]}, "events": [{"a": 1}] * 100})
    assert many.json == {"matches": [True] * 100}


@pytest.mark.parametrize("body, status, sentence", [
    ({"pattern": {"a": [{"no-such": 1}]}, "events": []}, 400, "no-such"),
    ({"pattern": {"a": 1}, "events": []}, 400, "a"),
    ({"pattern": {"a": ["x" * 5000]}, "events": []}, 400, "4096 characters"),
    ({"pattern": {"a": [1]}, "events": [{}] * 101}, 400, "100 events"),
    ({"pattern": {"a": [1]}, "events": ["x" * 1100000]}, 413, "1048576 bytes"),
    ({"pattern": {"a": [1]}, "events": {}}, 400, "should be"),
    ({"events": []}, 400, "should be"), (b"{", 400, "should be"), (b"", 400, "should be"),
], ids=lambda value: str(value)[:40])
def test_patterns_that_are_not_tried_out(server, body, status, sentence):
    reply = match(server, body)
    assert reply.status == status and sentence in reply.json["message"]


def test_who_may_try_patterns_out(server, guarded):
    body = {"pattern": {"a": [1]}, "events": [{"a": 1}]}
    assert match(guarded, body).status == 403
    assert match(server, body, {"Origin": "http://evil.example"}).status == 403
    refused = get(server, "/console/match")
    assert (refused.status, refused.header("allow")) == (405, "POST")
    with Quipu("--memory", "--read-only-console") as reader:
        assert match(reader, body, {"X-Quipu-Console": "1"}).json == {"matches": [True]}


# ---- events ----

class Events(Connection):
    """A stream of server-sent events; iterates over their data."""

    def __init__(self, server, path="/console/events", headers=None):
        super().__init__(server.url)
        self.unpack = zlib.decompressobj(31).decompress if headers and "Accept-Encoding" in headers else bytes
        self.send(request_bytes("GET", path, {"Host": self.host, **(headers or {})}))
        self.status = int(self._line().split(" ")[1])
        self.headers = {}
        while line := self._line():
            name, value = line.split(":", 1)
            self.headers[name.lower()] = value.strip()
        self.text = b""

    def __iter__(self):
        assert self.status == 200, self.status
        while True:
            while b"\n\n" in self.text:
                event, self.text = self.text.split(b"\n\n", 1)
                assert event.startswith((b"data: ", b": ")) and b"\n" not in event
                yield json.loads(event[6:]) if event.startswith(b"data: ") else {}
            size = int(self._line(), 16)
            self.text += self.unpack(self._bytes(size))
            assert self._line() == ""
            if not size:
                assert not self.text
                return


def test_samples_tell_what_happened(server):
    with Events(server) as events, Connection(server.url) as wire:
        assert events.headers["content-type"] == "text/event-stream"
        assert events.headers["cache-control"] == "no-store"
        first = next(iter(events))
        assert set(first) == {"history", "stepMs"}
        assert first["stepMs"] == 1000
        next(iter(events))  # from now on tables are told, too
        wire.call("CreateTable", {"TableName": "sampled", "BillingMode": "PAY_PER_REQUEST",
                                  "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                                  "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]})
        for _ in range(3):
            wire.call("PutItem", {"TableName": "sampled", "Item": {"id": {"S": "1"}}})
            wire.call("GetItem", {"TableName": "sampled", "Key": {"id": {"S": "1"}}})
        wire.call("PutItem", {"TableName": "missing", "Item": {"id": {"S": "1"}}})
        wire.request("GET", "/v1/counters")
        seen = {"PutItem": 0, "GetItem": 0, "CreateTable": 0, "/v1": 0, "errors": 0, "r": 0, "w": 0}
        for event in events:
            sample = event["sample"]
            for name in seen:
                seen[name] += sample["ops"].get(name, sample.get(name, 0))
                seen[name] += sample["tables"].get("sampled", {}).get(name, 0)
            if "p50" in sample:
                assert 0 < sample["p50"] <= sample["p99"]
            if sample["commits"]:
                assert sample["batch"] >= 1 and sample["syncUs"] > 0
            assert sample["connections"] >= 2 and sample["memory"] > 1000000
            if seen["/v1"] and seen["PutItem"] == 4 and seen["w"] == 3:
                break
        assert seen == {"PutItem": 4, "GetItem": 3, "CreateTable": 1, "/v1": 1, "errors": 1, "r": 3, "w": 3}


def test_samples_tell_of_jobs_and_of_triggers_that_lag(tmp_path):
    (tmp_path / "main.py").write_text(WAITS)
    with Quipu("--memory") as server, Connection(server.url) as wire:
        assert wire.call("CreateTable", {**table_named("lags"), "StreamSpecification": {
            "StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}).status == 200
        rest(wire, "POST", "/2015-03-31/functions", {"FunctionName": "slow", "Runtime": "python3",
                                                     "Handler": "main.handler", "Timeout": 600,
                                                     "Code": {"Directory": str(tmp_path)}})
        made = rest(wire, "POST", "/2015-03-31/event-source-mappings", {
            "EventSourceArn": "lags", "FunctionName": "slow", "StartingPosition": "TRIM_HORIZON"})
        rest(wire, "PUT", "/v1/jobs/pages", {"total": 5})
        with Events(server) as events:
            assert "history" in next(iter(events)) and "sample" in next(iter(events))
            assert wire.call("PutItem", {"TableName": "lags", "Item": item_of("1")}).status == 200
            rest(wire, "POST", "/v1/jobs/pages/done", {"tasks": [0, 1, 1]})
            rest(wire, "POST", "/v1/jobs/pages/failed", {"task": 2})
            jobs, lag = {"done": 0, "failed": 0}, None
            for event in events:
                told = event["sample"]["jobs"].get("pages", {"done": 0, "failed": 0, "total": 5})
                assert told["total"] == 5
                for name in jobs:
                    jobs[name] += told[name]
                lag = event["sample"]["triggers"].get(made["UUID"], lag)
                if lag and jobs["failed"]:
                    break
        assert jobs == {"done": 2, "failed": 1}
        assert (lag["table"], lag["function"]) == ("lags", "slow") and lag["lagMs"] > 0
        (tmp_path / "go").write_text("")


WAITS = """
import os, time
def handler(event, context):
    while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
        time.sleep(0.05)
"""


def rest(wire, method, path, body):
    reply = wire.request(method, path, {"Content-Type": "application/json"}, json.dumps(body).encode())
    assert reply.status in (200, 201, 202), reply.body
    return reply.json


def test_which_tasks_of_a_job_run(tmp_path, guarded):
    (tmp_path / "main.py").write_text(WAITS)
    with Quipu("--memory") as server, Connection(server.url) as wire:
        assert get(server, "/console/running").status == 400
        assert get(server, "/console/running?job=none").json == {"tasks": []}
        rest(wire, "POST", "/2015-03-31/functions", {"FunctionName": "slow", "Runtime": "python3",
                                                     "Handler": "main.handler", "Timeout": 600,
                                                     "Code": {"Directory": str(tmp_path)}})
        rest(wire, "PUT", "/v1/jobs/a%20job", {"tasks": ["x y", "z"], "each": "slow", "concurrency": 5})
        eventually(lambda: sorted(get(server, "/console/running?job=a%20job").json["tasks"]) == ["x y", "z"],
                   "both tasks run")
        assert get(server, "/console/running?job=a").json == {"tasks": []}
        (tmp_path / "go").write_text("")
        eventually(lambda: get(server, "/console/running?job=a%20job").json == {"tasks": []}, "they end")
    assert get(guarded, "/console/running?job=j").status == 403


def test_what_was_kept_since_a_time(server):
    with Events(server) as events:
        samples = [event["sample"] for event in (next(iter(events)), next(iter(events)), next(iter(events)))
                   if "sample" in event]
    with Events(server, f"/console/events?since={samples[0]['t']}") as events:
        history = next(iter(events))["history"]
    times = [sample["t"] for sample in history]
    assert times == sorted(times)
    assert times[0] == samples[1]["t"], "what comes behind that time"
    with Events(server, f"/console/events?since={2 ** 62}") as events:
        assert next(iter(events)) == {"history": [], "stepMs": 1000}
    for wrong in ("x", "-1", "1.5", "9" * 30):
        assert get(server, f"/console/events?since={wrong}").status == 400
        assert get(server, f"/console/events?last={wrong}").status == 400
    with Events(server, "/console/events?last=0") as events:
        assert next(iter(events)) == {"history": [], "stepMs": 1000}
    with Events(server, f"/console/events?last={2 ** 62}") as events:
        assert len(next(iter(events))["history"]) >= len(history)
    with Events(server, f"/console/events?last={2 ** 62}&since={samples[0]['t']}") as events:
        assert next(iter(events))["history"][0]["t"] == samples[1]["t"], "what is less of the past"


def test_who_takes_gzip_gets_it(server):
    with Events(server, headers={"Accept-Encoding": "gzip, br"}) as events, Events(server) as plain:
        assert (events.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
        assert "history" in next(iter(events)), "each event can be read when it is there"
        assert [set(next(iter(events))) for _ in range(2)] == [{"sample"}] * 2


def test_all_listeners_hear_the_same(server):
    with contextlib.ExitStack() as open_ones:
        streams = [open_ones.enter_context(Events(server)) for _ in range(20)]
        for events in streams:
            assert "history" in next(iter(events))
        heard = next(iter(streams[-1]))["sample"]
        for events in streams[:-1]:
            same = next(event["sample"] for event in events if event["sample"]["t"] >= heard["t"])
            assert {**same, "tables": 0, "functions": 0} == {**heard, "tables": 0, "functions": 0}


def test_a_stream_that_is_left_gives_its_place_back(server):
    with contextlib.ExitStack() as open_ones:
        streams = [open_ones.enter_context(Events(server)) for _ in range(100)]
        assert all(next(iter(events)) for events in streams)
        refused = get(server, "/console/events")
        assert (refused.status, refused.json["error"]) == (503, "busy")
    eventually(lambda: get_status(server) == 200, "who leaves makes room")


def get_status(server):
    with Events(server) as events:
        return events.status


def test_who_does_not_read_holds_nobody_up(server):
    with Events(server) as lazy, Events(server) as events:
        for number, event in enumerate(events):
            if number == 3:
                break
        assert "sample" in event
        assert lazy.status == 200


def test_streams_end_with_the_server():
    server = Quipu("--memory")
    try:
        with Events(server) as events:
            assert "history" in next(iter(events))
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            assert all("sample" in event for event in events), "the reply is whole"
            stopping.join()
        assert server.stop() == 0
    finally:
        server.close()


def test_events_are_signed_where_keys_are_asked_for(guarded):
    refused = get(guarded, "/console/events")
    assert (refused.status, refused.header("x-amzn-errortype")) == (403, "MissingAuthenticationTokenException")
    for key, secret in (("AKIDONE", "secret"), ("AKIDTWO", "second")):
        headers = signed(guarded, "/console/events", key, secret, query="since=0")
        with Events(guarded, "/console/events?since=0", headers) as events:
            assert "history" in next(iter(events))
    wrong = signed(guarded, "/console/events", "AKIDONE", "wrong")
    assert get(guarded, "/console/events", wrong).status == 403


# ---- changes ----

def table_named(name):
    return {"TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"},
                                     {"AttributeName": "at", "AttributeType": "N"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}]}


def item_of(name, **attributes):
    return {"id": {"S": name}, "at": {"N": "1"}, **{key: {"S": value} for key, value in attributes.items()}}


def test_changes_of_a_table_without_a_stream(server):
    keys, long = item_of("1"), {"N": "12345678901234567890123456789012345678"}
    with Connection(server.url) as wire:
        for name in ("watched", "other"):
            assert wire.call("CreateTable", table_named(name)).status == 200
        with Events(server, "/console/changes?table=watched") as changes:
            assert next(iter(changes)) == {}, "it has begun"
            wire.call("PutItem", {"TableName": "other", "Item": keys})
            wire.call("PutItem", {"TableName": "watched", "Item": item_of("1", text="a\nb")})
            wire.call("PutItem", {"TableName": "watched", "Item": item_of("1", text="a\nb")})
            wire.call("UpdateItem", {"TableName": "watched", "Key": keys, "UpdateExpression": "SET n = :n",
                                     "ExpressionAttributeValues": {":n": long}})
            wire.call("TransactWriteItems", {"TransactItems": [
                {"Delete": {"TableName": "watched", "Key": keys}},
                {"Put": {"TableName": "watched", "Item": item_of("2")}}]})
            events = [next(iter(changes)) for _ in range(4)]
    full = {**item_of("1", text="a\nb"), "n": long}
    assert [event["seq"] for event in events] == [1, 2, 3, 4]
    assert [event["kind"] for event in events] == ["INSERT", "MODIFY", "REMOVE", "INSERT"]
    assert [event["keys"] for event in events] == [keys, keys, keys, item_of("2")]
    assert [event.get("old") for event in events] == [None, item_of("1", text="a\nb"), full, None]
    assert [event.get("new") for event in events] == [item_of("1", text="a\nb"), full, None, item_of("2")]
    assert all(event["t"] > 1.7e12 for event in events)


def test_what_cannot_be_watched(server):
    for path, status in (("/console/changes", 400), ("/console/changes?table=", 400),
                         ("/console/changes?table=missing", 404), ("/console/changes?table=%24notes", 404)):
        assert get(server, path).status == status, path
    with Quipu("--on", server.url) as other:
        reply = get(other, "/console/changes?table=watched")
        assert (reply.status, reply.json["error"]) == (400, "elsewhere")
        assert f"quipu tail watched --on {server.url}" in reply.message


def test_who_may_watch(guarded):
    assert get(guarded, "/console/changes?table=quipu-names").status == 403
    query = "table=quipu-names"
    reader = signed(guarded, "/console/changes", "AKIDTWO", "second", query)
    reply = get(guarded, f"/console/changes?{query}", reader)
    assert (reply.status, reply.json["error"]) == (403, "access-denied")


def open_streams(server, kind):
    return int(re.search(f'^quipu_console_streams{{kind="{kind}"}} ([0-9]+)$', get(server, "/metrics").body.decode(),
                         re.MULTILINE).group(1))


def test_more_changes_than_fit_are_counted_and_who_reads_nothing_is_told_why():
    with Quipu("--memory") as server, Connection(server.url) as wire:
        assert wire.call("CreateTable", table_named("watched")).status == 200
        with Events(server, "/console/changes?table=watched") as changes:
            assert next(iter(changes)) == {}
            assert open_streams(server, "changes") == 1
            written = 0
            while open_streams(server, "changes"):  # sockets hold some megabytes before the server notices
                for _ in range(10):
                    written += 1
                    put = {"TableName": "watched", "Item": item_of("1", text=f"{written:0200000}")}
                    assert wire.call("PutItem", put).status == 200
            *events, last = changes
        assert last == {"end": "The changes were not read fast enough."}
        assert 0 < len(events) < written
        assert sum(event.get("skipped", 1) for event in events) <= written
        assert any("skipped" in event for event in events)


# ---- who may come in ----

@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"},
                                     {"Sec-Fetch-Site": "cross-site"}, {"Referer": "http://evil.example/"},
                                     {"Host": "evil.example"}])
@pytest.mark.parametrize("path", ["/console/index.html", "/console/info", "/console/events",
                                  "/console/changes?table=watched"])
def test_foreign_pages_are_refused(server, path, headers):
    reply = get(server, path, headers)
    assert reply.status == 403
    assert reply.header("access-control-allow-origin") is None


LINK = {**BROWSER, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
        "Sec-Fetch-User": "?1", "Referer": "https://chat.example/"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_of_another_site_opens_the_page(server, site):
    reply = get(server, "/", {**LINK, "Sec-Fetch-Site": site})
    assert reply.status == 200 and reply.body == get(server, "/", BROWSER).body
    assert "frame-ancestors 'none'" in reply.header("content-security-policy")
    assert reply.header("cross-origin-opener-policy") == "same-origin"
    assert reply.header("access-control-allow-origin") is None
    assert get(server, "/console", LINK).status == 302


@pytest.mark.parametrize("other", [
    {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "frame"}, {"Sec-Fetch-Dest": "embed"},
    {"Sec-Fetch-Dest": "object"}, {"Sec-Fetch-Dest": "empty"}, {"Sec-Fetch-Dest": "script"}, {"Sec-Fetch-Dest": ""},
    {"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Mode": ""},
    {"Origin": "https://chat.example"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Accept": "*/*"}])
def test_what_is_no_link_stays_outside(server, other):
    assert get(server, "/", {**LINK, **other}).status == 403


@pytest.mark.parametrize("path", ["/console/info", "/console/events", "/console/changes?table=watched",
                                  "/console/main.js", "/healthz", "/metrics", "/wall", "/counter?systemKey=k",
                                  "/v1/counters/c", "/v1/openapi.json", "/2015-03-31/functions/", "/schedules", "//"])
def test_a_link_of_another_site_opens_nothing_else(server, path):
    assert get(server, path, LINK).status == 403


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_a_link_only_gets(server, method):
    assert get(server, "/", LINK, method).status == 403


def test_its_own_page_may_come_in(server):
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert get(server, "/console/info", own).status == 200


def test_no_console():
    with Quipu("--memory", "--no-console") as server:
        for path in ("/console", "/console/index.html", "/console/info"):
            reply = get(server, path)
            assert (reply.status, reply.json["message"]) == (404, "This server has no console.")
        assert get(server, "/", BROWSER).body.startswith(b"healthy: dynamodb.")
        assert get(server, "/", LINK).status == 403


def test_a_console_that_may_only_read():
    with Quipu("--memory", "--read-only-console") as server, Connection(server.url) as wire:
        own = {"X-Quipu-Console": "1"}
        table = {"TableName": "things", "BillingMode": "PAY_PER_REQUEST",
                 "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                 "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
        put = {"TableName": "things", "Item": {"id": {"S": "1"}}}
        refused = wire.call("CreateTable", table, own)
        assert (refused.status, refused.type, refused.message) == (
            403, "AccessDeniedException", "this console may only read")
        assert wire.call("CreateTable", table).status == 200, "others may"
        assert wire.call("PutItem", put).status == 200
        for operation, payload in (("PutItem", put), ("TransactWriteItems", {"TransactItems": [{"Put": put}]}),
                                   ("DeleteTable", {"TableName": "things"}),
                                   ("ExecuteStatement", {"Statement": "DELETE FROM things WHERE id = '1'"})):
            assert wire.call(operation, payload, own).status == 403, operation
        for operation, payload in (("Scan", {"TableName": "things"}), ("ListTables", {}),
                                   ("DescribeTable", {"TableName": "things"}),
                                   ("ExecuteStatement", {"Statement": "SELECT * FROM things"})):
            assert wire.call(operation, payload, own).status == 200, operation
        assert wire.call("Scan", {"TableName": "things"}).json["Count"] == 1
        body = json.dumps({"total": 1}).encode()
        assert wire.request("PUT", "/v1/jobs/j", own, body).status == 403
        assert wire.request("POST", "/2015-03-31/functions", own, b"{}").status == 403
        assert wire.request("DELETE", "/2015-03-31/functions/f", own).status == 403
        assert wire.request("GET", "/counter?name=c", own).status == 403
        assert wire.request("GET", "/v1/jobs", own).status == 200
        assert wire.request("GET", "/2015-03-31/functions", own).status == 200
        logs = {**own, "X-Amz-Target": "Logs_20140328.DescribeLogGroups", "Content-Type": "application/x-amz-json-1.1"}
        assert wire.request("POST", "/", logs, b"{}").status == 200
        assert wire.request("PUT", "/v1/jobs/j", {}, body).status in (200, 201)
        assert wire.request("GET", "/console/info", own).json["readOnly"] is True
